"""Special functions: those of ember._C._special under their public names."""

from ._C import _special

__all__ = [name.removeprefix("special_") for name in dir(_special) if name.startswith("special_")]
globals().update({name: getattr(_special, "special_" + name) for name in __all__})
