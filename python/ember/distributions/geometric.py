"""Numbers of failures before a success."""

from typing import Any

import ember
import ember.nn.functional as F
from . import constraints
from .distribution import Distribution
from .utils import batch_shape_of, broadcast_all, exactly_one, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Geometric"]


class Geometric(Distribution):
    """How many attempts fail before the first success, which has probability probs."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        exactly_one(probs, logits)
        if logits is None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        tensor = self.probs if logits is None else self.logits
        super().__init__(batch_shape_of(probs if logits is None else logits, tensor=tensor), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                             f"{self!r} to be positive but found invalid values:\n{value[~(value > 0)]}")

    def expand(self, batch_shape, _instance=None) -> Any:
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: ember.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    def sample(self, sample_shape=ember.Size()) -> Any:
        with ember.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(ember.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = ember.where((probs == 1) & (value == 0), 0.0, probs)  # 0 log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
