"""The Cauchy distribution."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import batch_shape_of, broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The quotient of two normal numbers: no mean, no variance."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_shape_of(loc, scale, tensor=self.loc), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Cauchy, batch_shape, _instance, "loc", "scale")

    def _everywhere(self, value):
        return ember.full(self._extended_shape(), value, dtype=self.loc.dtype, device=self.loc.device)

    mean = property(lambda self: self._everywhere(math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self._everywhere(math.inf))

    def rsample(self, sample_shape=ember.Size()) -> Any:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ember.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value) -> Any:
        return ember.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
