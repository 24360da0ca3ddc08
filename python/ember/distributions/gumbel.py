"""Largest of many."""

import math
from numbers import Number
from typing import Any

import ember
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """How the largest of many numbers is distributed: loc - scale * log(-log(u)) for a uniform u."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = ember.finfo(self.loc.dtype)
        low, high = finfo.tiny, 1 - finfo.eps
        if not (isinstance(loc, Number) and isinstance(scale, Number)):
            low, high = ember.full_like(self.loc, low), ember.full_like(self.loc, high)
        steps = [ExpTransform().inv, AffineTransform(loc=0, scale=-ember.ones_like(self.scale)), ExpTransform().inv,
                 AffineTransform(loc=self.loc, scale=-self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
