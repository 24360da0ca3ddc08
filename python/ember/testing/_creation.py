"""make_tensor: random values in an interval, of any dtype and layout."""

import collections.abc
import math
import warnings

import ember as torch

_INTEGRAL = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
_DEFAULTS = {torch.bool: (0, 2), torch.uint8: (0, 10)}


def _interval(low, high, dtype):
    """The bounds as given or as usual for the dtype, within what the dtype holds."""
    if dtype is torch.bool:
        lowest, highest = 0, 2
    elif dtype in _INTEGRAL:
        lowest, highest = torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1
    else:
        limits = torch.finfo(dtype.to_real())
        lowest, highest = limits.min, limits.max
    usual = _DEFAULTS.get(dtype, (-9, 10) if dtype in _INTEGRAL else (-9, 9))
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and dtype.is_floating_point | dtype.is_complex:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and "
                      "will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
                         f"[{lowest}, {highest})")
    low, high = max(low, lowest), min(high, highest)
    return (math.ceil(low), math.ceil(high)) if dtype in _INTEGRAL or dtype is torch.bool else (low, high)


def _uniform(t, low, high):
    if high - low >= torch.finfo(t.dtype).max:  # the difference itself would overflow
        return t.uniform_(low / 2, high / 2).mul_(2)
    return t.uniform_(low, high)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor with random values of [low, high).

    shape: ints or one sequence. noncontiguous: every second element of a larger tensor. exclude_zero: zeros become the
    smallest positive number. memory_format: a layout, instead of noncontiguous.
    """
    if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence):
        shape = shape[0]
    shape = tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
                         f"{memory_format=}")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _interval(low, high, dtype)
    apart = noncontiguous and math.prod(shape) > 1
    if apart:  # every second element of a tensor that is twice as long
        shape = (*shape[:-1], 2 * shape[-1])
    if dtype.is_complex:
        result = torch.empty(shape, device=device, dtype=dtype)
        _uniform(torch.view_as_real(result), low, high)
    elif dtype.is_floating_point:
        result = _uniform(torch.empty(shape, device=device, dtype=dtype), low, high)
    else:
        result = torch.randint(low, high, shape, device=device, dtype=dtype)
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = 1 if dtype in _INTEGRAL or dtype is torch.bool else torch.finfo(dtype.to_real()).tiny
        result[result == 0] = smallest
    if requires_grad:
        result.requires_grad = True
    return result
