"""Classes, as one-hot vectors."""

from typing import Any

import ember
import ember.nn.functional as F
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Categorical, as vectors with a one at the class."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self._categorical.probs * (1 - self._categorical.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mode(self) -> Any:
        return F.one_hot(self._categorical.mode, self._categorical._num_events).to(self.probs)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, ember.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=ember.Size()) -> Any:
        drawn = self._categorical.sample(ember.Size(sample_shape))
        return F.one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand=True) -> Any:
        n = self.event_shape[0]
        values = ember.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + tuple(self.batch_shape) + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose draws have the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=ember.Size()) -> Any:
        probs = self._categorical.probs  # cached, so that the two below are one
        return self.sample(sample_shape) + (probs - probs.detach())
