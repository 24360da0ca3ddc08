"""Counts of classes."""

from typing import Any

import ember
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each class comes up in total_count draws of Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._expanded(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(ember.Size(batch_shape))
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=ember.Size()) -> Any:
        sample_shape = ember.Size(sample_shape)
        drawn = self._categorical.sample(ember.Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, ember.ones_like(drawn)).type_as(self.probs)

    def entropy(self) -> Any:
        n = ember.tensor(self.total_count)
        common = n * self._categorical.entropy() - ember.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        return common + (ember.exp(self._binomial.log_prob(counts)) * ember.lgamma(counts + 1)).sum([0, -1])

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -ember.inf), 0)
        ways = ember.lgamma(value.sum(-1) + 1) - ember.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
