"""Trees of containers: flattened to a list of leaves and a description, and put together again.

Nodes are tuples, lists, dicts, named tuples and their kin, and what register_pytree_node adds; everything else is a leaf.
"""

import collections
import functools
import importlib
import json
import types

__all__ = ["LeafSpec", "PyTreeSpec", "TreeSpec", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq",
           "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_pytree_node", "tree_all", "tree_all_only",
           "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
           "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
           "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint"]

NodeDef = collections.namedtuple("NodeDef", "type flatten_fn unflatten_fn flatten_with_keys_fn")
Serial = collections.namedtuple("Serial", "name to_dumpable from_dumpable")
SUPPORTED_NODES = {}    # type: NodeDef
SERIALIZED_TYPES = {}   # type: Serial
_by_serial_name = {}


# ---------------------------------------------------------------- keys of paths
class MappingKey(collections.namedtuple("MappingKey", "key")):
    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


class SequenceKey(collections.namedtuple("SequenceKey", "idx")):
    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


class GetAttrKey(collections.namedtuple("GetAttrKey", "name")):
    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


def keystr(kp):
    """A path as text: "['a'][0].b"."""
    return "".join(str(key) for key in kp)


def key_get(obj, kp):
    """What lies at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---------------------------------------------------------------- kinds of nodes
def is_namedtuple_class(cls):
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and \
        all(type(name) is str for name in cls._fields) and callable(getattr(cls, "_make", None)) and \
        callable(getattr(cls, "_asdict", None))


def is_namedtuple_instance(obj):
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether a class or an object is of a named tuple (those that functions return included)."""
    cls = obj if isinstance(obj, type) else type(obj)
    return is_namedtuple_class(cls) or is_structseq_class(cls)


def is_structseq_class(cls):
    return isinstance(cls, type) and issubclass(cls, tuple) and cls.__base__ is tuple and \
        all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))


def is_structseq_instance(obj):
    return is_structseq_class(type(obj))


def is_structseq(obj):
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _node_type(tree):
    cls = type(tree)
    if cls in SUPPORTED_NODES:
        return cls
    if is_namedtuple_class(cls):
        return collections.namedtuple
    if is_structseq_class(cls):
        _register_structseq(cls)
        return cls
    return cls


_get_node_type = _node_type


def tree_is_leaf(tree, is_leaf=None):
    return is_leaf is not None and is_leaf(tree) or _node_type(tree) not in SUPPORTED_NODES


def _private_register(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=None, serial=None):
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serial is not None:
        SERIALIZED_TYPES[cls] = serial
        _by_serial_name[serial.name] = cls


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Make a class a node. flatten_fn(obj) -> (children, context); unflatten_fn(children, context) -> obj."""
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError("Both to_dumpable_context and from_dumpable_context for "
                         f"{cls} must be None or registered.")
    serial = None if serialized_type_name is None else Serial(serialized_type_name, to_dumpable_context, from_dumpable_context)
    _private_register(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serial)


_register_pytree_node = register_pytree_node


def _register_sequence(cls, name, make=None):
    make = cls if make is None else make
    _private_register(cls, lambda value: (list(value), None), lambda children, context: make(children),
                      lambda value: ([(SequenceKey(i), child) for i, child in enumerate(value)], None),
                      Serial(name, None, None) if name else None)


def _register_structseq(cls):
    _register_sequence(cls, None)


def _dict_with_keys(flatten):
    def with_keys(value):
        children, context = flatten(value)
        return [(MappingKey(key), child) for key, child in zip(value, children)], context
    return with_keys


def _register_builtin():
    _register_sequence(tuple, "builtins.tuple")
    _register_sequence(list, "builtins.list")

    def flatten_dict(value):
        return list(value.values()), list(value.keys())
    _private_register(dict, flatten_dict, lambda children, context: dict(zip(context, children)), _dict_with_keys(flatten_dict),
                      Serial("builtins.dict", None, None))
    _private_register(collections.OrderedDict, flatten_dict,
                      lambda children, context: collections.OrderedDict(zip(context, children)), _dict_with_keys(flatten_dict),
                      Serial("collections.OrderedDict", None, None))

    def flatten_default(value):
        return list(value.values()), [value.default_factory, list(value.keys())]
    _private_register(collections.defaultdict, flatten_default,
                      lambda children, context: collections.defaultdict(context[0], zip(context[1], children)),
                      _dict_with_keys(flatten_default),
                      Serial("collections.defaultdict", _dump_default_dict, _load_default_dict))
    _private_register(collections.deque, lambda value: (list(value), value.maxlen),
                      lambda children, context: collections.deque(children, maxlen=context),
                      lambda value: ([(SequenceKey(i), child) for i, child in enumerate(value)], value.maxlen),
                      Serial("collections.deque", None, None))
    _private_register(collections.namedtuple, lambda value: (list(value), type(value)),
                      lambda children, context: context(*children),
                      lambda value: ([(GetAttrKey(name), child) for name, child in zip(value._fields, value)], type(value)))


def _dump_default_dict(context):
    return {"default_factory_module": context[0].__module__, "default_factory_name": context[0].__qualname__,
            "dict_context": context[1]}


def _load_default_dict(dumped):
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


_register_builtin()


def _register_size():
    import ember
    _register_sequence(ember.Size, "torch.Size", tuple)  # put together again it is a plain tuple, as PyTorch's


_register_size()


# ---------------------------------------------------------------- descriptions
class TreeSpec:
    """What a tree looks like without its leaves. type None: a leaf."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs):
        self.type, self._context, self._children = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children_specs)

    context = property(lambda self: self._context)

    @property
    def children_specs(self):
        return self._children

    def children(self):
        return list(self._children)

    def child(self, index):
        return self._children[index]

    def is_leaf(self):
        return self.type is None

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self._context == other._context and self._children == other._children

    def __hash__(self):
        context = self._context
        key = tuple(map(str, context)) if isinstance(context, list) else context
        return hash((self.type, key, tuple(self._children)))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        parts = [child.__repr__(indent + 2) for child in self._children]
        inside = (",\n" + " " * (indent + 2)).join(parts)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inside}])"

    def unflatten(self, leaves):
        """The tree with these leaves."""
        leaves = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                             f"holds {self.num_leaves} items ({self}).")
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self._context)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at the places of this description's leaves."""
        found = []
        self._up_to(tree, found)
        return found

    def _up_to(self, tree, found):
        if self.type is None:
            found.append(tree)
            return
        children = self._match(tree)
        for child, part in zip(self._children, children):
            child._up_to(part, found)

    _MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)

    def _match(self, tree):
        """The children of a node of the same kind, dicts in this description's order."""
        kind = _node_type(tree)
        both = kind in self._MAPPINGS and self.type in self._MAPPINGS
        if kind is not self.type and not both:
            expected = self._context if self.type is collections.namedtuple else self.type
            raise ValueError(f"Node type mismatch; expected {expected!r}, but got {type(tree)!r}.")
        if both:
            keys = self._context[1] if self.type is collections.defaultdict else self._context
            if set(keys) != set(tree):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                text = f"; missing key(s): {missing}" if missing else ""
                text += f"; extra key(s): {extra}" if extra else ""
                raise ValueError(f"Node keys mismatch{text}.")
            return [tree[key] for key in keys]
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if context != self._context and self.type is not collections.deque:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}."
                             if self.type is not collections.namedtuple else
                             f"Node type mismatch; expected {self._context!r}, but got {context!r}.")
        return children


PyTreeSpec = TreeSpec
_LEAF = TreeSpec(None, None, [])


class _LeafMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(metaclass=_LeafMeta):
    """The description of a leaf: LeafSpec() is it."""

    def __new__(cls, *args, **kwargs):
        return _LEAF


# ---------------------------------------------------------------- to and fro
def _flatten(tree, leaves, is_leaf):
    kind = _node_type(tree)
    if kind not in SUPPORTED_NODES or is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """(list of leaves, TreeSpec): what is in lists, tuples, dictionaries and registered containers. is_leaf(node) may stop at
    a node.
    """
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of these leaves, of the form that the TreeSpec describes. Inverse of tree_flatten."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    children, _ = SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)
    for child in children:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The list of leaves of a tree of lists, tuples, dictionaries and registered containers."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments."""
    leaves = []
    for value in (*args, *kwargs.values()):
        leaves += tree_leaves(value)
    return leaves


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of the same shape with func of each leaf (and of what `rests` have there)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(list(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests])))


def tree_map_(func, tree, *rests, is_leaf=None):
    """func of each leaf, for its effect; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    collections.deque(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]), maxlen=0)
    return tree


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is applied to values of these types (or that a predicate names); others stay."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):
        def chosen(value):
            return isinstance(value, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        chosen = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        @functools.wraps(func)
        def wrapped(value):
            return func(value) if chosen(value) else value
        return wrapped
    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """The tree with func applied to the leaves that are instances of the type (or types); others stay as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn "
                         "argument to register_pytree_node.")
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_path((*path, key), child, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)]"""
    return list(_with_path((), tree, is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map whose func gets the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    return spec.unflatten([func(*values) for values in zip(paths, leaves, *[spec.flatten_up_to(rest) for rest in rests])])


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree`, each as often as the description has leaves below its place; None if they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# ---------------------------------------------------------------- descriptions as text
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def _dumped(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serial = SERIALIZED_TYPES.get(spec.type)
    if serial is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if serial.to_dumpable is not None:
        text = serial.to_dumpable(spec.context)
    else:
        try:
            text = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                            "using _register_pytree_node.") from error
    return {"type": serial.name, "context": text, "children_spec": [_dumped(child) for child in spec.children_specs]}


def treespec_dumps(treespec, protocol=None):
    """A TreeSpec as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _dumped(treespec)))


def _loaded(data):
    if data["type"] is None:
        return _LEAF
    if data["type"] not in _by_serial_name:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    cls = _by_serial_name[data["type"]]
    serial = SERIALIZED_TYPES[cls]
    context = json.loads(data["context"]) if serial.from_dumpable is None else serial.from_dumpable(data["context"])
    return TreeSpec(cls, context, [_loaded(child) for child in data["children_spec"]])


def treespec_loads(serialized):
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _loaded(data)


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads


class _Star:
    def __repr__(self):
        return "*"


def treespec_pprint(treespec):
    """The tree with a * for each leaf."""
    return repr(tree_unflatten([_Star() for _ in range(treespec.num_leaves)], treespec))
