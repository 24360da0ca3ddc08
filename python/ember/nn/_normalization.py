"""Normalisation functions of nn.functional."""

import ember
from ember.overrides import handle_torch_function, has_torch_function_unary, has_torch_function_variadic

__all__ = ["batch_norm", "instance_norm", "layer_norm", "rms_norm", "group_norm", "local_response_norm"]


_NAMES = {ember.uint8: "Byte", ember.int8: "Char", ember.int16: "Short", ember.int32: "Int", ember.bool: "Bool"}


def _verify_batch_size(size):
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5) -> "ember.Tensor":
    """input (N, C, *) with each channel's mean 0 and variance 1, then times weight plus bias.

    training: the statistics are the batch's, and move running_mean and running_var by momentum. Else the running ones.
    """
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return handle_torch_function(batch_norm, (input, running_mean, running_var, weight, bias), input, running_mean,
                                     running_var, weight=weight, bias=bias, training=training, momentum=momentum,
                                     eps=eps)
    if training:
        _verify_batch_size(input.size())
    if eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive, but got {eps}")
    return ember.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def _verify_spatial_size(size):
    count = 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5) -> "ember.Tensor":
    """batch_norm with statistics of each sample's own channels."""
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return handle_torch_function(instance_norm, (input, running_mean, running_var, weight, bias), input,
                                     running_mean=running_mean, running_var=running_var, weight=weight, bias=bias,
                                     use_input_stats=use_input_stats, momentum=momentum, eps=eps)
    if use_input_stats:
        _verify_spatial_size(input.size())
    return ember.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5) -> "ember.Tensor":
    """(input - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, whose sizes are normalized_shape.

    input: (*, *normalized_shape), floating point; weight and bias: normalized_shape. Result as input. RuntimeError for
    sizes that do not fit.

    >>> F.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    if has_torch_function_variadic(input, weight, bias):
        return handle_torch_function(layer_norm, (input, weight, bias), input, normalized_shape, weight=weight,
                                     bias=bias, eps=eps)
    return ember.layer_norm(input, normalized_shape, weight, bias, eps, False)


def rms_norm(input, normalized_shape, weight=None, eps=None) -> "ember.Tensor":
    """input over its root mean square along the last dimensions, which are normalized_shape."""
    if has_torch_function_variadic(input, weight):
        return handle_torch_function(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps)
    return ember.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5) -> "ember.Tensor":
    """input (N, C, *) with mean 0 and variance 1 over each sample's groups of channels."""
    if has_torch_function_variadic(input, weight, bias):
        return handle_torch_function(group_norm, (input, weight, bias), input, num_groups, weight=weight, bias=bias,
                                     eps=eps)
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _verify_batch_size([input.size(0) * input.size(1) // num_groups, num_groups, *input.size()[2:]])
    return ember.group_norm(input, num_groups, weight, bias, eps, False)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0) -> "ember.Tensor":
    """input over (k + alpha * mean square of `size` neighbouring channels) ** beta."""
    if has_torch_function_unary(input):
        return handle_torch_function(local_response_norm, (input,), input, size, alpha=alpha, beta=beta, k=k)
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    # The mean over a window of channels, with zeros beyond the ends.
    square = input.mul(input)
    shape = list(square.shape)
    ends = [square.new_zeros([shape[0], n, *shape[2:]]) for n in (size // 2, (size - 1) // 2)]
    windows = ember.cat([ends[0], square, ends[1]], 1).unfold(1, size, 1)
    if input.dtype.is_floating_point or input.dtype.is_complex:
        mean = windows.mean(-1)
    elif input.dtype == ember.int64:
        mean = windows.sum(-1) // size
    else:
        raise NotImplementedError(f"\"avg_pool{min(dim - 1, 3)}d\" not implemented for '{_NAMES[input.dtype]}'")
    return input / mean.mul(alpha).add(k).pow(beta)
