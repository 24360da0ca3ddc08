"""Numbers of successes before failures."""

from typing import Any

import ember
import ember.nn.functional as F
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Distribution):
    """How many successes, each with probability probs, come before total_count failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None) -> None:
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
        new = self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits")
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]
        return new

    mean = property(lambda self: self.total_count * ember.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / ember.sigmoid(-self.logits))
    param_shape = property(lambda self: self._param.size())

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=ember.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=ember.Size()) -> Any:
        with ember.no_grad():
            return ember.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        powers = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = ember.lgamma(self.total_count + value) - ember.lgamma(1.0 + value) - ember.lgamma(self.total_count)
        return powers + ways.masked_fill(self.total_count + value == 0.0, 0.0)
