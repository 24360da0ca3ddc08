"""Numbers and tensors as parameters; probabilities and logits."""

from numbers import Number
from typing import Any

import ember
import ember.nn.functional as F

__all__ = ["broadcast_all", "batch_shape_of", "exactly_one", "lazy_property", "logits_to_probs", "probs_to_logits", "clamp_probs",
           "sum_rightmost", "tril_matrix_to_vec", "vec_to_tril_matrix", "euler_constant"]

euler_constant = 0.57721566490153286060  # digamma(1) is minus that


def broadcast_all(*values) -> Any:
    """Tensors of one shape; numbers take the dtype and device of the first tensor."""
    if not all(isinstance(v, (ember.Tensor, Number)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")
    first = next((v for v in values if isinstance(v, ember.Tensor)), None)
    options = {"dtype": ember.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return ember.broadcast_tensors(*[v if isinstance(v, ember.Tensor) else ember.tensor(v, **options) for v in values])


def clamp_probs(probs) -> Any:
    eps = ember.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False) -> Any:
    return ember.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False) -> Any:
    clamped = clamp_probs(probs)
    return ember.log(clamped) - ember.log1p(-clamped) if is_binary else ember.log(clamped)


class lazy_property:
    """An attribute that is computed when first asked for, with gradients on."""

    def __init__(self, wrapped) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance, owner=None) -> Any:
        if instance is None:
            return self
        with ember.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def batch_shape_of(*given, tensor) -> Any:
    """The batch shape of parameters that may all be numbers."""
    return ember.Size() if all(isinstance(g, Number) for g in given) else tensor.size()


def exactly_one(probs, logits) -> None:
    """Raises unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def sum_rightmost(value, n) -> Any:
    """value summed over its last n dimensions."""
    return value if n == 0 else value.reshape(value.shape[:-n] + (-1,)).sum(-1)


def vec_to_tril_matrix(vec, diag=0) -> Any:
    """Vectors as the entries, row by row, of matrices that are 0 above a diagonal."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = ember.finfo(vec.dtype).eps
    if round(n) - n > eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part "
                         "of a square D x D matrix.")
    n = round(n.real) if isinstance(n, complex) else round(n)
    low = ember.arange(n).unsqueeze(-1) + diag >= ember.arange(n)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    matrix[..., low] = vec
    return matrix


def tril_matrix_to_vec(mat, diag=0) -> Any:
    """The entries on and below a diagonal, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = ember.arange(n, device=mat.device)
    return mat[..., places < places.view(-1, 1) + (diag + 1)]
