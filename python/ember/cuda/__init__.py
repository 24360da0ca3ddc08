"""NVIDIA devices. This build has no backend for them: the questions are answered, the rest says so."""

from typing import Any

from ember import _absent_device
from ember._C import OutOfMemoryError

_made = _absent_device.make("CUDA", "cuda")
globals().update(_made)
memory_cached = _absent_device.renamed("cuda", "memory_cached", "memory_reserved", _made["memory_reserved"])
max_memory_cached = _absent_device.renamed("cuda", "max_memory_cached", "max_memory_reserved", _made["max_memory_reserved"])
has_half, has_magma, default_generators = True, False, ()
_lazy_init = _lazy_call = _made["_no_device"]

__all__ = [name for name in _made if not name.startswith("_")] + ["OutOfMemoryError", "memory_cached", "max_memory_cached"]


def _is_compiled():
    return False


def _legacy(name):
    def __new__(cls, *args, **kwargs):
        raise TypeError(f"type torch.cuda.{name} not available. Torch not compiled with CUDA enabled.")

    return type(name, (), {"__new__": __new__, "__module__": "torch.cuda"})


for _name in ("Float", "Double", "Half", "BFloat16", "Int", "Long", "Short", "Char", "Byte", "Bool"):
    globals()[_name + "Tensor"] = _legacy(_name + "Tensor")


def __getattr__(name) -> Any:
    if name in ("amp", "nvtx"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
