"""Linear algebra: the functions of ember._C._linalg under their public names."""

from ._C import _linalg

__all__ = [name.removeprefix("linalg_") for name in dir(_linalg) if name.startswith("linalg_")]
globals().update({name: getattr(_linalg, "linalg_" + name) for name in __all__})
