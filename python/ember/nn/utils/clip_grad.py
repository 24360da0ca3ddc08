"""Limits on the size of gradients."""

import warnings

import ember
from ...linalg import vector_norm

__all__ = ["get_total_norm", "clip_grads_with_norm_", "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"]


def _as_list(tensors):
    return [tensors] if isinstance(tensors, ember.Tensor) else list(tensors)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> "ember.Tensor":
    """The norm of all tensors taken as one vector, 0-dim; 0 for no tensors.

    error_if_nonfinite: RuntimeError when it is nan or infinite. foreach makes no difference here.
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return ember.tensor(0.0)
    with ember.no_grad():
        first = tensors[0].device
        norms = [vector_norm(t, norm_type).to(first) for t in tensors]
        total = vector_norm(ember.stack(norms), norm_type)
        if error_if_nonfinite and not ember.isfinite(total).item():
            raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
                               "so it cannot be clipped. To disable this error and scale the gradients by the "
                               "non-finite norm anyway, set `error_if_nonfinite=False`")
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) -> None:
    """Scale the gradients in place by max_norm / total_norm where that is below 1."""
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    if not grads:
        return
    with ember.no_grad():
        # Always multiplied, by 1 if need be: no branch on a value that may still be under computation.
        coef = ember.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(coef.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> "ember.Tensor":
    """Scale all gradients together so that their norm is at most max_norm. Returns the norm before."""
    if not isinstance(parameters, ember.Tensor):
        is_generator = hasattr(parameters, "gi_frame")
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    parameters = _as_list(parameters)
    total = get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> "ember.Tensor":
    """Deprecated name of clip_grad_norm_."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
                  "`torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None) -> None:
    """Clamp every element of every gradient to [-clip_value, clip_value], in place. Parameters without a gradient are passed
    over.
    """
    clip_value = float(clip_value)
    with ember.no_grad():
        for param in _as_list(parameters):
            if param.grad is not None:
                param.grad.clamp_(min=-clip_value, max=clip_value)
