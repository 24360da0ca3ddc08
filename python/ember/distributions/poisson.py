"""Numbers of events."""

from typing import Any

import ember
from . import constraints
from .exp_family import ExponentialFamily
from .utils import batch_shape_of, broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How many events happen where rate are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_shape_of(rate, tensor=self.rate), validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    _natural_params = property(lambda self: (ember.log(self.rate),))

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Poisson, batch_shape, _instance, "rate")

    def sample(self, sample_shape=ember.Size()) -> Any:
        with ember.no_grad():
            return ember.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    def _log_normalizer(self, x):
        return ember.exp(x)
