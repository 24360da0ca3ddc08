"""Parameters as one vector and back."""

from typing import Any

import ember

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(param, device):
    """The one device of all parameters so far. Raises TypeError."""
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters) -> Any:
    """All parameters, flattened and joined into one vector; differentiable."""
    device, parts = None, []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.view(-1))
    return ember.cat(parts)


def vector_to_parameters(vec, parameters) -> None:
    """Make each parameter's data the next piece of vec (a view of it)."""
    if not isinstance(vec, ember.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {ember.typename(vec)}")
    device, at = None, 0
    for param in parameters:
        device = _check_device(param, device)
        n = param.numel()
        param.data = vec[at:at + n].view_as(param).data
        at += n
