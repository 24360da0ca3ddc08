"""Numbers and tensors as parameters; probabilities and logits."""

from numbers import Number

import ember
import ember.nn.functional as F

__all__ = ["broadcast_all", "batch_shape_of", "exactly_one", "lazy_property", "logits_to_probs", "probs_to_logits", "clamp_probs"]


def broadcast_all(*values):
    """Tensors of one shape; numbers take the dtype and device of the first tensor."""
    if not all(isinstance(v, (ember.Tensor, Number)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")
    first = next((v for v in values if isinstance(v, ember.Tensor)), None)
    options = {"dtype": ember.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return ember.broadcast_tensors(*[v if isinstance(v, ember.Tensor) else ember.tensor(v, **options) for v in values])


def clamp_probs(probs):
    eps = ember.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    return ember.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False):
    clamped = clamp_probs(probs)
    return ember.log(clamped) - ember.log1p(-clamped) if is_binary else ember.log(clamped)


class lazy_property:
    """An attribute that is computed when first asked for, with gradients on."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with ember.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def batch_shape_of(*given, tensor):
    """The batch shape of parameters that may all be numbers."""
    return ember.Size() if all(isinstance(g, Number) for g in given) else tensor.size()


def exactly_one(probs, logits):
    """Raises unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
