"""Numbers between 0 and 1 whose density is an exponential."""

import math
from numbers import Number
from typing import Any

import ember
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ExponentialFamily):
    """Density in proportion to probs ** x * (1 - probs) ** (1 - x). Within lims its formulas cancel: series are used there."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None) -> None:
        exactly_one(probs, logits)
        given = probs if logits is None else logits
        if logits is None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if logits is None else self.logits
        self._lims = lims
        super().__init__(ember.Size() if isinstance(given, Number) else self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._expanded(ContinuousBernoulli, batch_shape, _instance, "probs", "logits")
        new._lims = self._lims
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]
        return new

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    param_shape = property(lambda self: self._param.size())

    def _stable(self):
        """Where the formulas hold, and probabilities that they can be computed at everywhere."""
        stable = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return stable, ember.where(stable, self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        stable, p = self._stable()
        low, high = ember.where(p <= 0.5, p, 0.0), ember.where(p >= 0.5, p, 1.0)
        log_norm = ember.log(ember.abs(ember.log1p(-p) - ember.log(p))) - ember.where(
            p <= 0.5, ember.log1p(-2.0 * low), ember.log(2.0 * high - 1.0))
        x = (self.probs - 0.5).pow(2)
        return ember.where(stable, log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        stable, p = self._stable()
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return ember.where(stable, p / (2.0 * p - 1.0) + 1.0 / (ember.log1p(-p) - ember.log(p)), series)

    @property
    def stddev(self) -> Any:
        return ember.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        stable, p = self._stable()
        x = (self.probs - 0.5).pow(2)
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (ember.log1p(-p) - ember.log(p)).pow(2)
        return ember.where(stable, exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape=ember.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ember.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        losses = ember.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -losses + self._cont_bern_log_norm()

    def cdf(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        stable, p = self._stable()
        inside = (ember.pow(p, value) * ember.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = ember.where(stable, inside, value)
        return ember.where(value <= 0.0, 0.0, ember.where(value >= 1.0, 1.0, inside))

    def icdf(self, value) -> Any:
        stable, p = self._stable()
        exact = (ember.log1p(-p + value * (2.0 * p - 1.0)) - ember.log1p(-p)) / (ember.log(p) - ember.log1p(-p))
        return ember.where(stable, exact, value)

    def entropy(self) -> Any:
        zeros, ones = ember.log1p(-self.probs), ember.log(self.probs)
        return self.mean * (zeros - ones) - self._cont_bern_log_norm() - zeros

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = ember.where(stable, x, self._lims[0] - 0.5)
        exact = ember.log(ember.abs(ember.special.expm1(cut))) - ember.log(ember.abs(cut))
        return ember.where(stable, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
