"""Dropout of torch.nn.functional, which re-exports what stands here."""

import warnings

import ember
from ember.overrides import handle_torch_function, has_torch_function_unary

__all__ = ["dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def _check_probability(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False) -> "ember.Tensor":
    """In training: zeroes each element with probability p and scales the rest by 1 / (1 - p); otherwise input as it is.

    Any shape and floating point dtype. inplace writes input itself. ValueError for a p outside [0, 1].
    """
    if has_torch_function_unary(input):
        return handle_torch_function(dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    return ember.dropout_(input, p, training) if inplace else ember.dropout(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False) -> "ember.Tensor":
    """Dropout that keeps mean and variance of a SELU network."""
    if has_torch_function_unary(input):
        return handle_torch_function(alpha_dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    return ember.alpha_dropout_(input, p, training) if inplace else ember.alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False) -> "ember.Tensor":
    """alpha_dropout of whole channels."""
    if has_torch_function_unary(input):
        return handle_torch_function(feature_alpha_dropout, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    function = ember.feature_alpha_dropout_ if inplace else ember.feature_alpha_dropout
    return function(input, p, training)


def _feature_dropout(input, p, training, inplace):
    return (ember.feature_dropout_ if inplace else ember.feature_dropout)(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False) -> "ember.Tensor":
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout1d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d "
                           "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
                           "dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _batched(input, ndim == 2, p, training, inplace)


def _batched(input, lonely, p, training, inplace):
    if lonely:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout(input, p, training, inplace)
    if lonely:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def _warn_of_dims(name, ndim, dims):
    warnings.warn(f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a "
                  "future release. To retain the behavior and silence this warning, please use dropout instead. Note "
                  f"that {name} exists to provide channel-wise dropout on inputs with {dims} spatial dimensions, a "
                  f"channel dimension, and an optional batch dimension (i.e. {dims + 1}D or {dims + 2}D inputs).",
                  stacklevel=3)


def dropout2d(input, p=0.5, training=True, inplace=False) -> "ember.Tensor":
    """Dropout of whole channels of (N, C, H, W). Three dims are taken as (N, C, L)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout2d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        _warn_of_dims("dropout2d", ndim, 2)
    if ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
                      "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will "
                      "change in a future release to interpret the input as one without a batch dimension, i.e. shape "
                      "(C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d "
                      "instead.", stacklevel=2)
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False) -> "ember.Tensor":
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if has_torch_function_unary(input):
        return handle_torch_function(dropout3d, (input,), input, p=p, training=training, inplace=inplace)
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_of_dims("dropout3d", ndim, 3)
    return _batched(input, ndim != 5, p, training, inplace)
