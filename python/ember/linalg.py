"""Linear algebra: the functions of ember._C._linalg under their public names."""

from ._C import _linalg, _LinAlgError as LinAlgError

__all__ = [name.removeprefix("linalg_") for name in dir(_linalg) if name.startswith("linalg_")]
globals().update({name: getattr(_linalg, "linalg_" + name) for name in __all__})
__all__.append("LinAlgError")
