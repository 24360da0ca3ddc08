"""The normal distribution."""

import math
import typing
from typing import Any

import ember
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, batch_shape_of

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The bell curve around loc with standard deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_shape_of(loc, scale, tensor=self.loc), validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.pow(2))
    _natural_params = property(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * ember.log(-math.pi / y)

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Normal, batch_shape, _instance, "loc", "scale")

    def sample(self, sample_shape: "typing.Any" = ember.Size()) -> "ember.Tensor":
        shape = self._extended_shape(sample_shape)
        with ember.no_grad():
            return ember.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: "typing.Any" = ember.Size()) -> "ember.Tensor":
        shape = self._extended_shape(sample_shape)
        return self.loc + ember.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value) -> "ember.Tensor":
        if self._validate_args:
            self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value) -> "ember.Tensor":
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + ember.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value) -> "ember.Tensor":
        return self.loc + self.scale * ember.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> "ember.Tensor":
        return 0.5 + 0.5 * math.log(2 * math.pi) + ember.log(self.scale)
