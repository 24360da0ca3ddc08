"""Pooling of torch.nn.functional, which re-exports what stands here."""

from typing import Any

import ember
from ember import _C
from ember.overrides import handle_torch_function, has_torch_function_unary, has_torch_function_variadic

_nn = _C._nn
avg_pool1d = ember.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
adaptive_avg_pool1d = ember.adaptive_avg_pool1d

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
           "adaptive_avg_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"]


def _ints(value, n):
    """An int for each of n dims."""
    return [value] * n if isinstance(value, int) else list(value)


# ---- max -----------------------------------------------------------------------------------------------------


def _make_max_pool(n):
    """max_poolNd and max_poolNd_with_indices. The plain one returns indices too if return_indices says so."""
    name = f"max_pool{n}d"
    plain = getattr(ember, name)
    both = ember.max_pool1d_with_indices if n == 1 else getattr(_nn, f"{name}_with_indices")

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if has_torch_function_unary(input):
            return handle_torch_function(max_pool, (input,), input, kernel_size, stride=stride, padding=padding,
                                         dilation=dilation, ceil_mode=ceil_mode, return_indices=return_indices)
        function = both if return_indices else plain
        return function(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if has_torch_function_unary(input):
            return handle_torch_function(with_indices, (input,), input, kernel_size, stride=stride, padding=padding,
                                         dilation=dilation, ceil_mode=ceil_mode, return_indices=return_indices)
        return both(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    max_pool.__doc__ = f"The largest of each window of {n} dims. return_indices: also where it lies in its plane."
    with_indices.__doc__ = f"{name} with return_indices=True."
    return _publish(max_pool, name), _publish(with_indices, f"{name}_with_indices")


def _publish(function, name):
    function.__name__ = function.__qualname__ = name
    globals()[name] = function
    __all__.append(name)
    return function


def _make_adaptive_max_pool(n):
    name = f"adaptive_max_pool{n}d"
    both = getattr(ember if n == 1 else _nn, name)

    def with_indices(input, output_size, return_indices=False):
        if has_torch_function_unary(input):
            return handle_torch_function(with_indices, (input,), input, output_size, return_indices=return_indices)
        return both(input, output_size if n == 1 else _list_with_default(output_size, input.size()))

    def max_pool(input, output_size, return_indices=False):
        if has_torch_function_unary(input):
            return handle_torch_function(max_pool, (input,), input, output_size, return_indices=return_indices)
        result = with_indices(input, output_size)
        return result if return_indices else result[0]

    max_pool.__doc__ = f"The largest of output_size windows that share out the last {n} dims among them."
    with_indices.__doc__ = f"{name} with return_indices=True."
    _publish(max_pool, name)
    _publish(with_indices, f"{name}_with_indices")


def _list_with_default(out_size, defaults):
    """out_size with None replaced by the input's own size."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size):])]


for _n in (1, 2, 3):
    _make_max_pool(_n)
    _make_adaptive_max_pool(_n)


def adaptive_avg_pool2d(input, output_size) -> "ember.Tensor":
    """The mean of output_size windows that share out the last two dims among them."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_avg_pool2d, (input,), input, output_size)
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size) -> "ember.Tensor":
    """The mean of output_size windows that share out the last three dims among them."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_avg_pool3d, (input,), input, output_size)
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


# ---- unpooling -----------------------------------------------------------------------------------------------


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    input_size = input.size()
    n = len(kernel_size)
    default = [(input_size[-n + d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError("output_size should be a sequence containing "
                         f"{n} or {n + 2} elements, but it has a length of '{len(output_size)}'")
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return output_size


def _unpool(n, input, indices, kernel_size, stride, padding, output_size):
    kernel_size = _ints(kernel_size, n)
    stride = kernel_size if stride is None else _ints(stride, n)
    padding = _ints(padding, n)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    if n == 1:
        size = [*size, 1]
        return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size).squeeze(-1)
    if n == 2:
        return _nn.max_unpool2d(input, indices, size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


def max_unpool1d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None) -> "ember.Tensor":
    """The inverse of max_pool1d, zero where there was no maximum."""
    if has_torch_function_unary(input):
        return handle_torch_function(max_unpool1d, (input,), input, indices, kernel_size, stride=stride,
                                     padding=padding, output_size=output_size)
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None) -> "ember.Tensor":
    """The inverse of max_pool2d, zero where there was no maximum."""
    if has_torch_function_unary(input):
        return handle_torch_function(max_unpool2d, (input,), input, indices, kernel_size, stride=stride,
                                     padding=padding, output_size=output_size)
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding: Any = 0, output_size=None) -> "ember.Tensor":
    """The inverse of max_pool3d, zero where there was no maximum."""
    if has_torch_function_unary(input):
        return handle_torch_function(max_unpool3d, (input,), input, indices, kernel_size, stride=stride,
                                     padding=padding, output_size=output_size)
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# ---- power averages ------------------------------------------------------------------------------------------


def _root(pooled, norm_type, count):
    return (ember.sign(pooled) * ember.relu(ember.abs(pooled))).mul(count).pow(1.0 / norm_type)


def _lp_pool(n, input, norm_type, kernel_size, stride, ceil_mode):
    count = 1
    for k in _ints(kernel_size, n):
        count *= k
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]
    powers = input.pow(norm_type)
    pooled = pool(powers, kernel_size, [] if stride is None else stride, 0, ceil_mode)
    return _root(pooled, norm_type, count)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> "ember.Tensor":
    """The p-norm of each window; nothing where its sum of powers is negative."""
    if has_torch_function_unary(input):
        return handle_torch_function(lp_pool1d, (input,), input, norm_type, kernel_size, stride=stride,
                                     ceil_mode=ceil_mode)
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> "ember.Tensor":
    """The p-norm of each window of two dims."""
    if has_torch_function_unary(input):
        return handle_torch_function(lp_pool2d, (input,), input, norm_type, kernel_size, stride=stride,
                                     ceil_mode=ceil_mode)
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> "ember.Tensor":
    """The p-norm of each window of three dims."""
    if has_torch_function_unary(input):
        return handle_torch_function(lp_pool3d, (input,), input, norm_type, kernel_size, stride=stride,
                                     ceil_mode=ceil_mode)
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ---- fractional ----------------------------------------------------------------------------------------------


def _make_fractional(n):
    name = f"fractional_max_pool{n}d"
    both = getattr(_nn, name)

    def with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                     _random_samples=None):
        if has_torch_function_variadic(input, _random_samples):
            return handle_torch_function(with_indices, (input, _random_samples), input, kernel_size,
                                         output_size=output_size, output_ratio=output_ratio,
                                         return_indices=return_indices, _random_samples=_random_samples)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = [output_ratio] * n if isinstance(output_ratio, (int, float)) else output_ratio
            if len(ratio) > n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(-n + d) * ratio[d]) for d in range(n)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = ember.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
        return both(input, kernel_size, output_size, _random_samples)

    def max_pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if has_torch_function_variadic(input, _random_samples):
            return handle_torch_function(max_pool, (input, _random_samples), input, kernel_size,
                                         output_size=output_size, output_ratio=output_ratio,
                                         return_indices=return_indices, _random_samples=_random_samples)
        result = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return result if return_indices else result[0]

    max_pool.__doc__ = (f"Max pooling over {n} dims to output_size, or to output_ratio of the input: windows begin where "
                        "random numbers put them.")
    with_indices.__doc__ = f"{name} with return_indices=True."
    _publish(max_pool, name)
    _publish(with_indices, f"{name}_with_indices")


for _n in (2, 3):
    _make_fractional(_n)
