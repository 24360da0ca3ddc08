"""exp of a normal distribution."""

import ember
from . import constraints
from .distribution import Distribution
from .normal import Normal

__all__ = ["LogNormal"]


class LogNormal(Distribution):
    """exp of a Normal(loc, scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._normal = Normal(loc, scale, validate_args)
        super().__init__(self._normal.batch_shape, validate_args=validate_args)

    loc = property(lambda self: self._normal.loc)
    scale = property(lambda self: self._normal.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(LogNormal, batch_shape, _instance)
        new._normal = self._normal.expand(batch_shape)
        return new

    def rsample(self, sample_shape=ember.Size()):
        return self._normal.rsample(sample_shape).exp()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logs = value.log()
        return self._normal.log_prob(logs) - logs

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._normal.cdf(value.log())

    def icdf(self, value):
        return self._normal.icdf(value).exp()

    def entropy(self):
        return self._normal.entropy() + self.loc
