"""Channels to pixels and back."""

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Channels become places: (*, C r^2, H, W) is laid out as (*, C, H r, W r), r being upscale_factor."""

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, C, H r, W r) to (*, C r^2, H, W)."""

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
