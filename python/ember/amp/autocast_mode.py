"""autocast: a layer of the dispatcher that casts arguments on their way down (src/dispatch/autocast.c)."""

import warnings

import ember
from ember import _C
from ember.utils._contextlib import ContextDecorator

_LOW = (ember.bfloat16, ember.float16)


def _is_cpu(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return ember.device(device_type).type == "cpu"


def is_autocast_available(device_type):
    """Whether autocast does anything for this kind of device."""
    return _is_cpu(device_type)


def is_autocast_enabled(device_type="cuda"):
    """Whether this thread's calls are cast now."""
    return _is_cpu(device_type) and _C._autocast_get()[0]


def get_autocast_dtype(device_type):
    """What products are computed in."""
    return _C._autocast_get()[1] if _is_cpu(device_type) else ember.float16


def set_autocast_enabled(device_type, enabled):
    """Turns autocast on or off for this thread, until said otherwise."""
    if _is_cpu(device_type):
        _C._autocast_set(enabled, _C._autocast_get()[1])


def set_autocast_dtype(device_type, dtype):
    """Chooses what products are computed in, for this thread."""
    if _is_cpu(device_type):
        _C._autocast_set(_C._autocast_get()[0], dtype)


class autocast(ContextDecorator):
    """Inside, and in functions that it decorates, products are computed in `dtype` (bfloat16 if none is given)."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self._cpu = _is_cpu(device_type)
        self.device = device_type
        self._cache_enabled = cache_enabled  # for the signature: Ember casts anew each time
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and not self._cpu:
            warnings.warn(f"{device_type.upper()} is not available. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in _LOW:
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast "
                          "only supports dtypes of torch.bfloat16, torch.float16 currently.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._before = []  # one a nested entry of this object

    def clone(self):
        return type(self)(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def __enter__(self):
        before = _C._autocast_get()
        self._before.append(before)
        if self._cpu:
            _C._autocast_set(self._enabled, self.fast_dtype if self.fast_dtype in _LOW else before[1])
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        before = self._before.pop()
        if self._cpu:
            _C._autocast_set(*before)
        return False
