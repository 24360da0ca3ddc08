"""Waiting times."""

from typing import Any

import ember
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, batch_shape_of

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times of events that happen at this rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_shape_of(rate, tensor=self.rate), validate_args=validate_args)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: ember.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))
    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x):
        return -ember.log(-x)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Exponential, batch_shape, _instance, "rate")

    def rsample(self, sample_shape=ember.Size()) -> Any:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - ember.exp(-self.rate * value)

    def icdf(self, value) -> Any:
        return -ember.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1 - ember.log(self.rate)
