"""The two-sided exponential distribution."""

from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, batch_shape_of

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Exponential to both sides of loc."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_shape_of(loc, scale, tensor=self.loc), validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2 ** 0.5 * self.scale)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Laplace, batch_shape, _instance, "loc", "scale")

    def rsample(self, sample_shape=ember.Size()) -> Any:
        least = ember.finfo(self.loc.dtype).eps - 1
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(least, 1)
        return self.loc - self.scale * u.sign() * ember.log1p(-u.abs())

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -ember.log(2 * self.scale) - ember.abs(value - self.loc) / self.scale

    def cdf(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        gap = value - self.loc
        return 0.5 - 0.5 * gap.sign() * ember.expm1(-gap.abs() / self.scale)

    def icdf(self, value) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * ember.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + ember.log(2 * self.scale)
