"""ember.ops: every operator as an object: ember.ops.aten.add.Tensor. (`torch.ops`)"""

import types

from . import _C
from ._C import _OpOverload as OpOverload


class OpOverloadPacket:
    """The overloads of one name. Calling it picks the first overload that takes the arguments."""

    def __init__(self, namespace, name):
        self._namespace, self.__name__ = namespace, name
        self._qualified_op_name = f"{namespace}::{name}"

    def overloads(self):
        """Names of the overloads; the one without a name is "default"."""
        return _C._overloads(self._namespace, self.__name__)

    @property
    def _overload_names(self):
        return ["" if name == "default" else name for name in self.overloads()]

    @property
    def _schemas(self):
        return {"" if name == "default" else name: getattr(self, name)._schema for name in self.overloads()}

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        op = _C._get_operation(self._namespace, self.__name__, overload)
        if op is None:
            raise AttributeError(f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name "
                                 f"'{overload}'")
        setattr(self, overload, op)
        return op

    def __call__(self, *args, **kwargs):
        error = None
        for overload in self.overloads():
            try:
                return getattr(self, overload)(*args, **kwargs)
            except TypeError as e:
                error = error or e
        raise error

    def __iter__(self):
        return iter(self.overloads())

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self.overloads()))

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"


class _OpNamespace(types.ModuleType):
    """The operators of one namespace."""

    def __init__(self, name):
        super().__init__("ember.ops." + name)
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if not _C._overloads(self._name, name):
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self._name, name)
        setattr(self, name, packet)
        return packet

    def __dir__(self):
        prefix = self._name + "::"
        return sorted({n[len(prefix):].split(".")[0] for n in _C._dispatch_get_all_op_names() if n.startswith(prefix)})


class _Ops(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path):
        """Load a shared library that registers operators through the C API."""
        import ctypes
        ctypes.CDLL(path)


ops = _Ops("ember.ops")


def packet_of(op):
    """The packet that an OpOverload is in."""
    return getattr(getattr(ops, op.namespace), op._opname)
