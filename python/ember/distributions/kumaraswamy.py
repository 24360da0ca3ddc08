"""Numbers between 0 and 1, with a cdf of elementary functions."""

import math
from typing import Any

import ember
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """(1 - u ** (1 / concentration0)) ** (1 / concentration1) for a uniform u."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(ember.full_like(self.concentration0, 0), ember.full_like(self.concentration0, 1),
                       validate_args=validate_args)
        steps = [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                 PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n):
        """The expected value of the nth power."""
        first = 1 + n / self.concentration1
        logs = ember.lgamma(first) + ember.lgamma(self.concentration0) - ember.lgamma(first + self.concentration0)
        return self.concentration0 * ember.exp(logs)

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - ember.pow(self.mean, 2))

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        logs = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return ember.where((a < 1) | (b < 1), math.nan, logs).exp()

    def entropy(self) -> Any:
        rest1, rest0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = ember.digamma(self.concentration0 + 1) + euler_constant
        return rest0 + rest1 * harmonic - ember.log(self.concentration1) - ember.log(self.concentration0)
