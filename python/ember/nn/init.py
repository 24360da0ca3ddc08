"""Initial values of parameters. Each function fills its tensor in place, records nothing, and returns the tensor."""

import math
import warnings

import ember
from ember.overrides import handle_torch_function, has_torch_function_variadic

__all__ = ["calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_",
           "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_",
           "dirac_", "sparse_"]

_UNIT_GAIN = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
              "sigmoid")


def calculate_gain(nonlinearity, param=None) -> float:
    """The factor that keeps a signal's deviation through a nonlinearity. param: the slope of leaky_relu."""
    if nonlinearity in _UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None) -> "ember.Tensor":
    """Draws from the uniform distribution on [a, b). Writes the tensor in place, without recording, and returns it."""
    if has_torch_function_variadic(tensor):
        return handle_torch_function(uniform_, (tensor,), tensor=tensor, a=a, b=b, generator=generator)
    with ember.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None) -> "ember.Tensor":
    """Draws from the normal distribution with this mean and standard deviation. Writes the tensor in place, without recording,
    and returns it.
    """
    if has_torch_function_variadic(tensor):
        return handle_torch_function(normal_, (tensor,), tensor=tensor, mean=mean, std=std, generator=generator)
    with ember.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None) -> "ember.Tensor":
    """Draws from the normal distribution with this mean and standard deviation, cut off outside [a, b]. Writes the tensor in
    place, without recording, and returns it.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
                      "The distribution of values may be incorrect.", stacklevel=2)
    with ember.no_grad():
        tensor.normal_(mean, std, generator=generator)
        for _ in range(_MOST_DRAWS):  # as PyTorch: all are drawn again, and those outside are replaced
            outside = (tensor < a) | (tensor > b)
            if not outside.any():
                return tensor
            tensor.copy_(ember.where(outside, ember.empty_like(tensor).normal_(mean, std, generator=generator), tensor))
        return _trunc_normal_by_quantiles(tensor, mean, std, a, b, generator)


_MOST_DRAWS = 100_000  # [a, b] lies so far out that chance will not get there


def _trunc_normal_by_quantiles(tensor, mean, std, a, b, generator):
    """Uniform in the part of [-1, 1] that the inverse error function sends into [a, b]."""
    low, high = (math.erf((x - mean) / (std * math.sqrt(2.0))) for x in (a, b))
    tensor.uniform_(low, high, generator=generator).erfinv_()
    return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def orthogonal_(tensor, gain: float = 1, generator=None) -> "ember.Tensor":
    """Orthonormal rows or columns (A. M. Saxe and others, "Exact solutions to the nonlinear dynamics of learning", 2013)."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    with ember.no_grad():
        q, r = ember.linalg.qr(drawn.t() if rows < columns else drawn)
        q = q * r.diagonal().sign()  # makes the decomposition unique
        tensor.view(rows, columns).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def dirac_(tensor, groups=1) -> "ember.Tensor":
    """Convolution weights that pass their input on: ones at the kernels' middles, for as many channels as there are."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_channels = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with ember.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(out_channels, tensor.size(1))):
                tensor[(group * out_channels + channel, channel, *middle)] = 1
    return tensor


def constant_(tensor, val) -> "ember.Tensor":
    """Every element becomes val. Writes the tensor in place, without recording, and returns it."""
    if has_torch_function_variadic(tensor):
        return handle_torch_function(constant_, (tensor,), tensor=tensor, val=val)
    with ember.no_grad():
        return tensor.fill_(val)


def ones_(tensor) -> "ember.Tensor":
    """Every element becomes 1. Writes the tensor in place, without recording, and returns it."""
    return constant_(tensor, 1.0)


def zeros_(tensor) -> "ember.Tensor":
    """Every element becomes 0. Writes the tensor in place, without recording, and returns it."""
    return constant_(tensor, 0.0)


def eye_(tensor) -> "ember.Tensor":
    """A matrix with ones on its diagonal. tensor: 2 dimensions."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with ember.no_grad():
        ember.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    valid_modes = ["fan_in", "fan_out"]
    if mode not in valid_modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid_modes}")
    return _calculate_fan_in_and_fan_out(tensor)[valid_modes.index(mode)]


def xavier_uniform_(tensor, gain=1.0, generator=None) -> "ember.Tensor":
    """Draws from the uniform distribution on [-x, x], x = gain * sqrt(6 / (fan_in + fan_out)). Writes the tensor in place,
    without recording, and returns it.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    with ember.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def xavier_normal_(tensor, gain=1.0, generator=None) -> "ember.Tensor":
    """Draws from the normal distribution with deviation gain * sqrt(2 / (fan_in + fan_out)). Writes the tensor in place,
    without recording, and returns it.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    with ember.no_grad():
        return tensor.normal_(0.0, std, generator=generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu", generator=None) -> "ember.Tensor":
    """Draws from the uniform distribution on [-x, x], x = gain * sqrt(3 / fan). Writes the tensor in place, without recording,
    and returns it.

    mode: "fan_in" or "fan_out". nonlinearity, a: what the gain is for (calculate_gain). ValueError for fewer than two
    dimensions.
    """
    if has_torch_function_variadic(tensor):
        return handle_torch_function(kaiming_uniform_, (tensor,), tensor=tensor, a=a, mode=mode,
                                     nonlinearity=nonlinearity, generator=generator)
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    with ember.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def kaiming_normal_(tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu", generator=None) -> "ember.Tensor":
    """Draws from the normal distribution with deviation gain / sqrt(fan). Writes the tensor in place, without recording, and
    returns it.

    mode: "fan_in" or "fan_out". nonlinearity, a: what the gain is for (calculate_gain). ValueError for fewer than two
    dimensions.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    with ember.no_grad():
        return tensor.normal_(0, std, generator=generator)


def sparse_(tensor, sparsity, std=0.01, generator=None) -> "ember.Tensor":
    """Normal, with a fraction `sparsity` of each column zero. tensor: 2 dimensions."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    num_zeros = int(math.ceil(sparsity * rows))
    with ember.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[ember.randperm(rows)[:num_zeros], col] = 0
    return tensor


def _deprecated(new):
    def old(*args, **kwargs):
        warnings.warn(f"`nn.init.{old.__name__}` is now deprecated in favor of `nn.init.{new.__name__}`.",
                      FutureWarning, stacklevel=2)
        return new(*args, **kwargs)

    old.__name__ = new.__name__[:-1]
    old.__doc__ = f"Deprecated name of {new.__name__}."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
orthogonal = _deprecated(orthogonal_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
sparse = _deprecated(sparse_)
