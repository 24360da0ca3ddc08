"""Classes, by number."""

from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of K classes, with probabilities probs (normalised along the last dimension) or softmax(logits)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        exactly_one(probs, logits)
        for name, given in (("probs", probs), ("logits", logits)):
            if given is not None and given.dim() < 1:
                raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if logits is None else self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    param_shape = property(lambda self: self._param.size())
    mode = property(lambda self: self.probs.argmax(dim=-1))

    def _unknown(self):
        return ember.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    mean = variance = property(_unknown)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Categorical, _instance)
        batch_shape = ember.Size(batch_shape)
        shape = batch_shape + ember.Size((self._num_events,))
        for name in ("probs", "logits"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]
        new._num_events = self._num_events
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ember.Size()) -> Any:
        if not isinstance(sample_shape, ember.Size):
            sample_shape = ember.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = ember.multinomial(rows, sample_shape.numel(), True).t()
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logp = ember.broadcast_tensors(value, self.logits)
        return logp.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = ember.clamp(self.logits, min=ember.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True) -> Any:
        values = ember.arange(self._num_events, dtype=ember.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
