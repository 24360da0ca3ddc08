"""How far large numbers exceed a threshold."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import batch_shape_of, broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Tails: exponential for concentration 0, heavier above, bounded below."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(batch_shape_of(loc, scale, concentration, tensor=self.loc), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    def rsample(self, sample_shape=ember.Size()) -> Any:
        return self.icdf(ember.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def _shape(self):
        """Where the tail is exponential, and the concentration, 1 there, so that nothing is divided by 0."""
        exponential = ember.isclose(self.concentration, ember.zeros_like(self.concentration))
        return exponential, ember.where(exponential, 1.0, self.concentration)

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        exponential, c = self._shape()
        power = 1 / c + ember.ones_like(z)
        power = ember.where(power == 0, power, power * ember.log1p(c * z))
        return -ember.log(self.scale) - ember.where(exponential, z, power)

    def log_survival_function(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        exponential, c = self._shape()
        z = (value - self.loc) / self.scale
        return ember.where(exponential, -z, -ember.log1p(c * z) / c)

    def log_cdf(self, value) -> Any:
        return ember.log1p(-ember.exp(self.log_survival_function(value)))

    def cdf(self, value) -> Any:
        return ember.exp(self.log_cdf(value))

    def icdf(self, value) -> Any:
        exponential, c = self._shape()
        log_rest = ember.log1p(-value)
        return self.loc + self.scale * ember.where(exponential, -log_rest, ember.expm1(-c * log_rest) / c)

    def _finite(self, limit, value, beyond):
        return ember.where(self.concentration < limit, value, beyond)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Any:
        return self._finite(1, self.loc + self.scale / (1 - self.concentration), math.inf)

    @property
    def variance(self) -> Any:
        value = self.scale ** 2 / ((1 - self.concentration) ** 2 * (1 - 2 * self.concentration))
        return self._finite(0.5, value, math.inf)

    def entropy(self) -> Any:
        return ember.log(self.scale) + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = ember.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
