"""load(weights_only=True): what a file may name, and what may be called. The list is closed; nothing is imported.

The stack machine is C (src/serialize/unpickle.c) and makes the plain containers. It asks here for names, and to call
what a name stands for: a handful of functions, each with its arguments checked, so that a file can neither run code nor
ask for more memory than it has bytes for.
"""

import _compat_pickle
import codecs
import contextlib
from collections import Counter, OrderedDict
from pickle import UnpicklingError

import ember
from ember import _C, _files, _tensor, _utils
from ember.storage import TypedStorage, UntypedStorage

BLOCKED_MODULES = ("sys", "os", "posix", "nt")
_user_globals = set()


def add_safe_globals(safe_globals):
    """Allow these classes and functions in load(weights_only=True): a list of them, or of (thing, "full.name")."""
    _user_globals.update(safe_globals)


def get_safe_globals():
    return list(_user_globals)


def clear_safe_globals():
    _user_globals.clear()


@contextlib.contextmanager
def safe_globals(safe_globals):
    """Around a `with` block: what add_safe_globals would allow load(weights_only=True) to make."""
    before = set(_user_globals)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _user_globals.clear()
        _user_globals.update(before)


def _torch_name(name):
    """Files name Ember's things as PyTorch's."""
    return "torch" + name[len("ember"):] if name == "ember" or name.startswith("ember.") else name


def _user_allowed():
    allowed = {}
    for item in _user_globals:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError("Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                                 f"length: {len(item)}")
            if type(item[1]) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
            allowed[_torch_name(item[1])] = item[0]
        else:
            module, name = item.__module__, item.__qualname__
            allowed[_torch_name(f"{module}.{name}")] = item
    return allowed


def full_name(module, name):
    """A global's name as Python 3 and PyTorch spell it."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        module, name = _compat_pickle.NAME_MAPPING[module, name]
    elif module in _compat_pickle.IMPORT_MAPPING:
        module = _compat_pickle.IMPORT_MAPPING[module]
    return f"{module}.{name}"


# ---------------------------------------------------------------- what may be called
class _Calls:
    """The functions that one load may call. They count how much they make: `room` bytes or items are allowed."""

    def __init__(self, room):
        self.room, self.odd_keys = room, 0

    def spend(self, value):
        self.room -= len(value) if hasattr(value, "__len__") else 1
        if self.room < 0:
            raise UnpicklingError("calls in the pickle make much more than the pickle holds: the file is hostile")
        return value

    def key(self, key):
        """Hashes of large integers and complex numbers can be chosen: many equal ones would take for ever."""
        if isinstance(key, complex) or isinstance(key, int) and abs(key) >= 1 << 61:
            self.odd_keys += 1
            if self.odd_keys > 1000:
                raise UnpicklingError("more than 1000 keys of dicts are integers beyond 2^61 or complex numbers")
        return _key(key)

    def ordered_dict(self, pairs=()):
        result = OrderedDict()
        for key, value in self.spend(_of(pairs, list, tuple)):
            result[self.key(key)] = value
        return result

    def counter(self, counts=None):
        result = Counter()
        for key, value in (self.spend(_of(counts, dict)) if counts is not None else {}).items():
            result[self.key(key)] = value
        return result

    def encode(self, text, encoding):
        if encoding not in ("latin1", "latin-1"):
            raise UnpicklingError(f"_codecs.encode to latin1 only, not {encoding!r:.40}")
        return codecs.encode(self.spend(_of(text, str)), "latin1")

    def bytearray(self, data=b"", encoding=None):
        if encoding is not None:
            data = self.encode(data, encoding)
        return bytearray(self.spend(_of(data, bytes, bytearray)))

    def no_bytes(self):
        return b""  # how b"" is written in protocol 2

    def set(self, items=()):
        return {self.key(item) for item in self.spend(_of(items, list, tuple, set, frozenset))}

    def complex(self, real, imag=0.0):
        return complex(_of(real, int, float), _of(imag, int, float))

    def size(self, sizes=()):
        return ember.Size(self.spend(_of(sizes, tuple, list)))

    def device(self, kind, index=None):
        return ember.device(_of(kind, str)) if index is None else ember.device(_of(kind, str), _of(index, int))

    def layout(self, name):
        return ember.serialization._get_layout(_of(name, str))

    def parameter(self, data, requires_grad=True):
        return ember.nn.Parameter(_of(data, ember.Tensor), requires_grad)

    def rebuild_tensor(self, storage, offset, size, stride):
        return _utils._rebuild_tensor(_of(storage, TypedStorage), offset, size, stride)

    def rebuild_tensor_v2(self, storage, *args):
        return _utils._rebuild_tensor_v2(_of(storage, TypedStorage), *args)

    def rebuild_tensor_v3(self, storage, *args):
        return _utils._rebuild_tensor_v3(_of(storage, TypedStorage), *args)

    def rebuild_meta(self, dtype, size, stride, requires_grad):
        return _utils._rebuild_meta_tensor_no_storage(_of(dtype, ember.dtype), size, stride, requires_grad)

    def rebuild_parameter(self, data, *args):
        return _utils._rebuild_parameter(_of(data, ember.Tensor), *args)

    def rebuild_parameter_with_state(self, data, *args):
        return _utils._rebuild_parameter_with_state(_of(data, ember.Tensor), *args)


def _of(value, *types):
    if type(value) not in types and not (ember.Tensor in types and isinstance(value, ember.Tensor)):
        expected = " or ".join(t.__name__ for t in types)
        raise UnpicklingError(f"an argument of a call must be {expected}, but it is {type(value)}")
    return value


def _key(key, depth=30):
    """Keys are hashed by recursion: deep ones are refused."""
    if isinstance(key, tuple):
        if depth == 0 or len(key) > 1000:
            raise UnpicklingError("a key is a tuple of more than 30 levels or 1000 parts")
        if depth < 30 and len(key) > 30:
            raise UnpicklingError("a key is a large tuple within a tuple")
        seen = set()
        for part in key:
            if id(part) not in seen:
                seen.add(id(part))
                _key(part, depth - 1)
    return key


_CALLS = {  # PyTorch's name: the method of _Calls
    "collections.OrderedDict": "ordered_dict", "collections.Counter": "counter", "_codecs.encode": "encode",
    "builtins.bytearray": "bytearray", "builtins.bytes": "no_bytes", "builtins.set": "set",
    "builtins.complex": "complex", "torch.Size": "size",
    "torch.device": "device", "torch.serialization._get_layout": "layout", "torch.nn.parameter.Parameter": "parameter",
    "torch._utils._rebuild_tensor": "rebuild_tensor", "torch._utils._rebuild_tensor_v2": "rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3": "rebuild_tensor_v3",
    "torch._utils._rebuild_meta_tensor_no_storage": "rebuild_meta",
    "torch._utils._rebuild_parameter": "rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state": "rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2": "rebuild_from_type",
}
_values = {}


def _plain_values():
    """Names that stand for things which are not called: dtypes, storage classes, Tensor."""
    if not _values:
        from ember import storage
        for name in dir(ember):
            if isinstance(getattr(_C, name, None), ember.dtype):
                _values["torch." + name] = getattr(_C, name)
        for cls in storage.STORAGE_CLASSES.values():
            _values["torch." + cls.__name__] = _values["torch.cuda." + cls.__name__] = cls
        _values["torch.storage.UntypedStorage"] = UntypedStorage
        _values["torch.storage.TypedStorage"] = TypedStorage
        _values["torch.Tensor"] = ember.Tensor
    return _values


def is_allowed(name):
    return name in _CALLS or name in _plain_values() or name in _user_allowed()


# ---------------------------------------------------------------- the machine's questions
class _Names:
    """Answers the machine's questions for one load."""

    def __init__(self, room, persistent):
        self.calls = _Calls(room)
        self._user = None
        self.known = {}   # name: what it stands for
        self.marks = {}   # id of what stands for a callable name: the function that is called
        self.persistent = persistent
        self.failure = None  # what a call or a storage raised

    def forget(self):
        """Breaks the cycles: what was loaded goes when its last user goes, not when the collector runs."""
        self.failure = self.persistent = None
        self.known.clear()
        self.marks.clear()

    @property
    def user(self):
        """What add_safe_globals allows, asked for only by files that need it."""
        if self._user is None:
            self._user = _user_allowed()
        return self._user

    @property
    def user_ids(self):
        return {id(value) for value in self.user.values()}

    def find(self, module, name):
        full = full_name(module, name)
        value = self.known.get(full)
        if value is None:
            value = self.known[full] = self.look_up(module, full)
        return value

    def look_up(self, module, full):
        if module in BLOCKED_MODULES:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        if full in _CALLS:
            owner = self if full.endswith("_from_type_v2") else self.calls
            call = getattr(owner, _CALLS[full])
            value = ember.nn.Parameter if full == "torch.nn.parameter.Parameter" else call
            self.marks[id(value)] = call
            return value
        value = _plain_values().get(full)
        if value is None and full in self.user:
            return self.user[full]
        if value is None:
            _files.refuse_missing(*full.rsplit(".", 1)) if full.startswith("torch.") else None
            shown = full[len("builtins."):] if full.startswith("builtins.") else full
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{shown}])` or the "
                f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global if you trust "
                "this class/function.")
        return value

    def call(self, function, args):
        own = self.marks.get(id(function))
        try:
            if own is not None:
                return own(*args)
            if id(function) in self.user_ids:
                return function(*args)
        except RuntimeError as error:
            self.failure = error
            raise
        text = f"Trying to call reduce for unrecognized function {function!r:.200}"
        raise UnpicklingError(text)

    def rebuild_from_type(self, function, cls, args, state):
        if cls is not ember.Tensor and cls is not ember.nn.Parameter and id(cls) not in self.user_ids:
            raise UnpicklingError(f"a tensor of the type {cls!r:.200}, which is not allowed by `add_safe_globals`")
        return _tensor._rebuild_from_type_v2(lambda *values: self.call(function, values), cls, _of(args, tuple), state)

    def make(self, cls, args, kwargs):
        if cls is ember.nn.Parameter:
            return self.calls.parameter(*args)
        if id(cls) not in self.user_ids or not isinstance(cls, type):
            raise UnpicklingError("Can only create new object for nn.Parameter or classes allowlisted via "
                                  f"`add_safe_globals` but got {cls!r:.200}")
        return cls.__new__(cls, *args, **(kwargs or {}))

    def build(self, instance, state):
        kind = type(instance)
        if kind is ember.nn.Parameter:
            instance.__setstate__(_of(state, dict))
        elif kind is OrderedDict:
            instance.__dict__.update(_of(state, dict))
        elif id(kind) in self.user_ids:
            _set_state(instance, state)
        else:
            raise UnpicklingError("Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                                  f"`add_safe_globals`, but got {kind}")

    def storage(self, saved_id):
        if type(saved_id) is not tuple and type(saved_id) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(saved_id)}")
        if type(saved_id) is tuple and saved_id and saved_id[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {saved_id[0]!r:.100}")
        if self.persistent is None:
            raise UnpicklingError("unsupported persistent id encountered")
        try:
            return self.persistent(saved_id)
        except RuntimeError as error:
            self.failure = error
            raise


def _set_state(instance, state):
    """What pickle does to an object of an allowed class."""
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        instance.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)


class DamagedError(UnpicklingError):
    """The pickle is no pickle, or not of this kind: no other arguments of load would help."""


def load(data, offset, name, persistent):
    """The object of the pickle at `offset` in data, and where the pickle ends."""
    names = _Names(8 * (len(data) - offset) + 100_000, persistent)
    name = _files.shown(name)
    try:
        return _C._unpickle(data, offset, name, (names.find, names.call, names.make, names.build, names.storage))
    except (UnpicklingError, NotImplementedError, MemoryError, ember.OutOfMemoryError):
        raise
    except RuntimeError as error:
        if error is names.failure:  # of a storage or a tensor, not of the pickle
            raise
        kind = UnpicklingError if str(error).startswith("Unsupported operand") else DamagedError
        raise kind(str(error)) from None
    except Exception as error:
        raise DamagedError(f"{name}: the pickle is damaged: {type(error).__name__}: {error}") from None
    finally:
        names.forget()
