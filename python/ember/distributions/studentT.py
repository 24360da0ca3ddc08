"""Student's t distribution."""

import math
from typing import Any

import ember
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import batch_shape_of, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale times a normal number over the root of a Chi2(df) / df."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(batch_shape_of(df, loc, scale, tensor=self.df), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(ember.Size(batch_shape))
        return new

    mean = property(lambda self: ember.where(self.df <= 1, math.nan, self.loc))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        value = ember.where(self.df > 2, self.scale.pow(2) * self.df / (self.df - 2), math.inf)
        return ember.where(self.df <= 1, math.nan, value)

    def rsample(self, sample_shape=ember.Size()) -> Any:
        x = ember.empty(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device).normal_()
        return self.loc + self.scale * (x * ember.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + ember.lgamma(0.5 * self.df)
                      - ember.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * ember.log1p(y ** 2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        beta = ember.lgamma(0.5 * self.df) + math.lgamma(0.5) - ember.lgamma(0.5 * (self.df + 1))
        gap = ember.digamma(0.5 * (self.df + 1)) - ember.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * gap + 0.5 * self.df.log() + beta
