"""Padding layers. padding: one number for every side, or (left, right, top, bottom, front, back)."""

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
           "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
           "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]


def _sides(padding, dims):
    return tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * dims)


class _ConstantPadNd(Module):
    __constants__ = ["padding", "value"]
    _dims = 0

    def __init__(self, padding, value) -> None:
        super().__init__()
        self.value = value
        self.padding = _sides(padding, self._dims)

    def forward(self, input) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dim with a value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dims with a value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dims with a value."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dim with zeros."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Puts zeros around pictures. (C, H, W) or (N, C, H, W) with both sizes grown by their pads.

    padding: a number for all sides, or (left, right, top, bottom); negative ones cut.
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dims with zeros."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _PadNd(Module):
    __constants__ = ["padding"]
    _dims, _mode = 0, ""

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _sides(padding, self._dims)

    def forward(self, input) -> Any:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_PadNd):
    """Pads the last dim with its reflection, the edge not repeated."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Continues pictures at each side by their reflection, the edge not repeated. (C, H, W) or (N, C, H, W).

    padding: a number for all sides, or (left, right, top, bottom); each below the size, RuntimeError otherwise.
    """

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Pads the last three dims with their reflection, edges not repeated."""

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dim with its edge."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dims with their edges."""

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Pads the last three dims with their edges."""

    _dims, _mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input):
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input) -> Any:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class CircularPad1d(_CircularPadNd):
    """Pads the last dim with what its other end holds."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dims with what their other ends hold."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dims with what their other ends hold."""

    _dims = 3
