"""Fourier transforms: those of ember._C._fft under their public names."""

from ._C import _fft
from ._C import Tensor  # noqa: F401  PyTorch has it here too

__all__ = [name.removeprefix("fft_") for name in dir(_fft) if name.startswith("fft_")]
globals().update({name: getattr(_fft, "fft_" + name) for name in __all__})
