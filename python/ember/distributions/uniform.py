"""The uniform distribution."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, batch_shape_of

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Equally likely everywhere in [low, high)."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(batch_shape_of(low, high, tensor=self.low), validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12 ** 0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Uniform, batch_shape, _instance, "low", "high")

    def rsample(self, sample_shape=ember.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.low + ember.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return ember.log(inside) - ember.log(self.high - self.low)

    def cdf(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return ember.log(self.high - self.low)
