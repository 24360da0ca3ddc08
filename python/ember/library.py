"""Operators and kernels of your own: define a schema, give kernels for any key of any operator. (`torch.library`)"""

import contextlib
import inspect
import typing

import ember
from . import _C
from ._ops import OpOverload, ops

__all__ = ["Library", "impl", "define", "fallthrough_kernel", "custom_op", "CustomOpDef", "register_fake",
           "register_kernel", "register_autograd", "register_torch_dispatch", "infer_schema", "impl_abstract"]


def fallthrough_kernel():
    """A kernel that stands for "not interested": the call goes on to the next key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _find(name, default_namespace=None):
    """An operator from "ns::name.overload", an OpOverload, or a packet (its only or default overload)."""
    if isinstance(name, OpOverload):
        return name
    if isinstance(name, CustomOpDef):
        return name._opoverload
    text = getattr(name, "_qualified_op_name", name)
    if "::" not in text and default_namespace is not None:
        text = f"{default_namespace}::{text}"
    if "::" not in text:
        raise ValueError(f"expected the name of an operator as 'namespace::name', got '{name}'")
    namespace, rest = text.split("::", 1)
    base, _, overload = rest.partition(".")
    op = _C._get_operation(namespace, base, overload)
    if op is None:
        known = _C._overloads(namespace, base)
        if len(known) != 1:
            raise RuntimeError(f"operator {text} does not exist" + (f": its overloads are {known}" if known else ""))
        op = _C._get_operation(namespace, base, known[0])
    return op


# A composite kernel serves every backend; derivatives come from its parts.
_KEYS = {"": ("CPU", "Meta"), "CompositeImplicitAutograd": ("CPU", "Meta"),
         "CompositeExplicitAutograd": ("CPU", "Meta"), "Functionalize": ("Functionalize",)}


class Library:
    """A group of definitions and kernels: Library("my", "DEF"), or Library("aten", "IMPL", "CPU") for kernels only.

    What it registered is taken back when it is destroyed (definitions stay).
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported library kind: ", kind)
        if kind == "DEF" and ns in ("aten", "prim", "prims"):
            raise ValueError(ns, " is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._kernels = []
        self._fallbacks = []

    def define(self, schema, alias_analysis="", *, tags=()):
        """Add an operator: define("f(Tensor x, int n=1) -> Tensor"). Returns its name."""
        if self.kind not in ("DEF", "FRAGMENT"):
            raise RuntimeError("define() needs a library of kind DEF or FRAGMENT")
        _C._define(f"{self.ns}::{schema}")
        return schema.split("(")[0]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Make fn the kernel of an operator for a key ("CPU", "Meta", "Autograd", ...; "" for every backend)."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        op = _find(op_name, self.ns)
        for k in _KEYS.get(key, (key,)):
            if (op._full, k) in self._kernels and not allow_override:
                raise RuntimeError(f"This is not allowed since there's already a kernel registered from python "
                                   f"overriding {op._full}'s behavior for {k} dispatch key and {self.ns} namespace.")
            _C._impl(op, k, None if fn is fallthrough_kernel else fn, with_keyset)
            self._kernels.append((op._full, k))
        self._ops = getattr(self, "_ops", {})
        self._ops[op._full] = op

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """fn(op, *args, **kwargs) runs for every operator that has no kernel of its own for the key."""
        key = dispatch_key or self.dispatch_key
        _C._fallback(key, None if fn is fallthrough_kernel else fn)
        self._fallbacks.append(key)

    def _destroy(self):
        for name, key in self._kernels:
            _C._impl(self._ops[name], key, None)
        for key in self._fallbacks:
            _C._fallback(key, None)
        self._kernels, self._fallbacks = [], []


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_kept = []  # registrations by decorators last as long as the process


def _library(ns, lib=None):
    if lib is not None:
        return lib
    library = Library(ns, "FRAGMENT")
    _kept.append(library)
    return library


def define(qualname, schema, *, lib=None, tags=()):
    """define("my::f", "(Tensor x) -> Tensor")"""
    ns, name = qualname.split("::")
    _library(ns, lib).define(name + schema)


def impl(qualname, types, func=None, *, lib=None):
    """Kernel of an operator for device types: impl("my::f", "cpu")(fn). Or impl(lib, name, key)(fn), the older form."""
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""
        return lambda fn: (library.impl(name, fn, key), fn)[1]
    keys = _type_keys(types)

    def register(fn):
        op = _find(qualname)
        library = _library(op.namespace, lib)
        for key in keys:
            library.impl(op, fn, key)
        return fn
    return register if func is None else register(func)


def _type_keys(types):
    names = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "opencl": "OpenCL", "default": ""}
    if types is None:
        return [""]
    types = [types] if isinstance(types, str) else types
    return [names.get(t, t) for t in types]


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Another kernel of a custom operator, for device types."""
    register = impl(op if not isinstance(op, CustomOpDef) else op._qualname, device_types, lib=lib)
    return register if func is None else register(func)


def register_fake(op, func=None, /, *, lib=None, allow_override=False):
    """How results look (shape, dtype), without computing them: the kernel for meta tensors."""
    def register(fn):
        found = _find(op)
        _library(found.namespace, lib).impl(found, fn, "Meta", allow_override=allow_override)
        return fn
    return register if func is None else register(func)


impl_abstract = register_fake


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    raise NotImplementedError("register_torch_dispatch: define __torch_dispatch__ on the class instead")


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative: backward(ctx, *grads); setup_context(ctx, inputs, output) saves what it needs."""
    found = _find(op)
    exclude = _C._dispatch_key_bits("Autograd")

    class Generated(ember.autograd.Function):
        @staticmethod
        def forward(ctx, keywords, *args):
            result = found.redispatch(exclude, *args, **keywords)
            if setup_context is not None:
                inputs = args
                if keywords:
                    setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=keywords, output=result)
                else:
                    setup_context(ctx=ctx, inputs=inputs, output=result)
            return result

        @staticmethod
        def backward(ctx, *grads):
            result = backward(ctx, *grads)
            return (None, *result) if isinstance(result, tuple) else (None, result)

    name = f"GeneratedBackwardFor_{found.namespace}_{found.__name__.split('.')[0]}"
    Generated.__name__ = Generated.__qualname__ = name
    Generated._backward_cls.__name__ = Generated.__name__ + "Backward"

    def kernel(*args, **kwargs):
        if ember.is_grad_enabled() and any(isinstance(a, ember.Tensor) and a.requires_grad for a in args):
            return Generated.apply(kwargs, *args)
        return found.redispatch(exclude, *args, **kwargs)

    def enabled(*args, **kwargs):
        # The kernel runs with Autograd switched off for its own calls; recording needs it on.
        was = _C._dispatch_tls_set("exclude", "Autograd", False)
        try:
            return kernel(*args, **kwargs)
        finally:
            _C._dispatch_tls_set("exclude", "Autograd", was)

    _library(found.namespace, lib).impl(found, enabled, "Autograd", allow_override=True)


# ---------------------------------------------------------------- custom_op
_TYPES = {ember.Tensor: "Tensor", typing.Optional[ember.Tensor]: "Tensor?", int: "SymInt", float: "float",
          ember._C.bool: "bool", str: "str", ember.dtype: "ScalarType", ember.device: "Device"}
_BUILTIN = {bool: "bool", int: "SymInt", float: "float", str: "str"}


def _type_text(annotation):
    if annotation in _BUILTIN:
        return _BUILTIN[annotation]
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        rest = [a for a in args if a is not type(None)]
        if rest == list(args) or len(rest) != 1:
            if set(rest) == {int, float, bool}:
                return "Scalar"
            raise ValueError(f"infer_schema: unsupported type {annotation}")
        return _type_text(rest[0]) + "?"
    if origin in (list, tuple) or getattr(origin, "__name__", "") == "Sequence":
        return _type_text(args[0]) + "[]"
    raise ValueError(f"infer_schema: unsupported type {annotation}")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of a function with type annotations."""
    hints = typing.get_type_hints(prototype_function)
    signature = inspect.signature(prototype_function)
    parts, star, written = [], False, 0
    for name, p in signature.parameters.items():
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if p.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        text = _type_text(hints[name])
        if mutates_args == "unknown" and text.startswith("Tensor") or name in mutates_args:
            text = text.replace("Tensor", f"Tensor(a{written}!)", 1)
            written += 1
        default = ""
        if p.default is not inspect.Parameter.empty:
            value = p.default
            default = "=" + (f"'{value}'" if isinstance(value, str) else str(value))
        parts.append(f"{text} {name}{default}")
    returned = hints.get("return", type(None))
    if returned is type(None):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = "(" + ", ".join(_type_text(a) for a in typing.get_args(returned)) + ")"
    else:
        result = _type_text(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class CustomOpDef:
    """An operator made from a Python function; calling it dispatches."""

    def __init__(self, qualname, schema, fn, device_types):
        self._qualname, self._init_fn = qualname, fn
        self._namespace, self._name = qualname.split("::")
        self._lib = Library(self._namespace, "FRAGMENT")
        self._lib.define(self._name + schema)
        self._opoverload = _find(qualname)
        for key in _type_keys(device_types) if device_types is not None else ["CPU"]:
            self._lib.impl(self._opoverload, fn, key)

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None):
        return register_kernel(self, device_types, fn, lib=self._lib) if fn else \
            lambda f: register_kernel(self, device_types, f, lib=self._lib)

    def register_fake(self, fn):
        return register_fake(self, fn, lib=self._lib)

    def register_autograd(self, backward, /, *, setup_context=None):
        register_autograd(self, backward, setup_context=setup_context, lib=self._lib)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a function an operator: @custom_op("my::f", mutates_args=()). Its types come from annotations, or from schema."""
    def make(function):
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        return CustomOpDef(name, text, function, device_types)
    return make if fn is None else make(fn)
