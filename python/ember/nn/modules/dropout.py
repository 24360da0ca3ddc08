"""Dropout layers."""

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    def __init__(self, p=0.5, inplace=False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training: zeroes each element with probability p and scales the rest by 1 / (1 - p). Else: identity.

    Input of any shape, output the same. ValueError for a p outside [0, 1].

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of an input (N, C, L) or (C, L)."""

    def forward(self, input) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Drops whole channels of an input (N, C, H, W), each with probability p, and divides the rest by 1 - p; in training only.

    ValueError for a p outside [0, 1].
    """

    def forward(self, input) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of a SELU network."""

    def forward(self, input) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)
