"""Numbers of successes."""

from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Binomial"]


def _positive_part(x):
    """max(x, 0), with the gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Distribution):
    """How many of total_count attempts succeed, each with probability probs."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None) -> None:
        exactly_one(probs, logits)
        if logits is None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
        self._param = self.probs if logits is None else self.logits
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._expanded(Binomial, batch_shape, _instance, "total_count", "probs", "logits")
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._param.size())

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    def sample(self, sample_shape=ember.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        with ember.no_grad():
            return ember.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        # log(1 + exp(logits)) for each attempt, without overflow
        normalizer = (self.total_count * _positive_part(self.logits)
                      + self.total_count * ember.log1p(ember.exp(-ember.abs(self.logits))) - ember.lgamma(self.total_count + 1))
        return value * self.logits - ember.lgamma(value + 1) - ember.lgamma(self.total_count - value + 1) - normalizer

    def _common_count(self, name):
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return count

    def entropy(self) -> Any:
        self._common_count("entropy")
        logs = self.log_prob(self.enumerate_support(False))
        return -(ember.exp(logs) * logs).sum(0)

    def enumerate_support(self, expand=True) -> Any:
        values = ember.arange(1 + self._common_count("enumerate_support"), dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
