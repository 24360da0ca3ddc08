"""autocast: a layer of the dispatcher that casts arguments on their way down (src/dispatch/autocast.c)."""

import copy
import functools
import threading
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import ember
from ember import _C

_LOW = (ember.bfloat16, ember.float16)
# Kinds of devices that autocast knows, and what they start with. Only the CPU's is in this build.
_STARTS = {"cpu": ember.bfloat16, "cuda": ember.float16, "mps": ember.float16, "xpu": ember.float16,
           "hpu": ember.bfloat16, "mtia": ember.float16, "maia": ember.bfloat16, "ipu": ember.float16,
           "xla": ember.bfloat16, "privateuseone": ember.float16}


class _Absent(threading.local):
    """Of devices that this build does not have: what was set for them, to be told when asked."""

    def __init__(self) -> None:
        self.dtypes = dict(_STARTS)
        self.enabled = set()


_absent = _Absent()


def _kind(device_type, function):
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type in _STARTS:
        return device_type
    return ember.device(device_type).type


def is_autocast_available(device_type) -> bool:
    """Whether autocast knows this kind of device."""
    return _kind(device_type, "_is_autocast_available") in _STARTS


def is_autocast_enabled(device_type="cuda") -> Any:
    """Whether this thread's calls are cast now, for the type of device (any without one)."""
    kind = _kind(device_type, "is_autocast_enabled")
    return _C._autocast_get()[0] if kind == "cpu" else kind in _absent.enabled


def get_autocast_dtype(device_type) -> Any:
    """The dtype in which autocast computes products on this type of device."""
    kind = _kind(device_type, "get_autocast_dtype")
    if kind not in _STARTS:
        raise RuntimeError("unsupported scalarType")
    return _C._autocast_get()[1] if kind == "cpu" else _absent.dtypes[kind]


def set_autocast_enabled(device_type, enabled=None) -> None:
    """Turns autocast on or off for this thread, until said otherwise. One argument alone speaks of cuda."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    kind = _kind(device_type, "set_autocast_enabled")
    if kind == "cpu":
        _C._autocast_set(enabled, _C._autocast_get()[1])
    elif enabled:
        _absent.enabled.add(kind)
    else:
        _absent.enabled.discard(kind)


def set_autocast_dtype(device_type, dtype) -> None:
    """Chooses what products are computed in, for this thread."""
    kind = _kind(device_type, "set_autocast_dtype")
    if kind == "cpu":
        _C._autocast_set(_C._autocast_get()[0], dtype)
    else:
        _absent.dtypes[kind] = dtype


def _old_name(name, kind, now, takes=""):
    def function(*args):
        warnings.warn(f"torch.{name}({takes}) is deprecated. Please use torch.{now.__name__}('{kind}'"
                      f"{takes and ', ' + takes}) instead.", DeprecationWarning, stacklevel=2)
        return now(kind, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"torch.{now.__name__}({kind!r}{takes and ', ' + takes}) under its older name; deprecated."
    return function


is_autocast_cpu_enabled = _old_name("is_autocast_cpu_enabled", "cpu", is_autocast_enabled)
get_autocast_cpu_dtype = _old_name("get_autocast_cpu_dtype", "cpu", get_autocast_dtype)
set_autocast_cpu_enabled = _old_name("set_autocast_cpu_enabled", "cpu", set_autocast_enabled, "enabled")
set_autocast_cpu_dtype = _old_name("set_autocast_cpu_dtype", "cpu", set_autocast_dtype, "dtype")
get_autocast_gpu_dtype = _old_name("get_autocast_gpu_dtype", "cuda", get_autocast_dtype)
set_autocast_gpu_dtype = _old_name("set_autocast_gpu_dtype", "cuda", set_autocast_dtype, "dtype")


class autocast:
    """Inside, and in functions that it decorates, products are computed in `dtype` (bfloat16 if none is given), and what
    needs the range of float32 in float32. Parameters are cast once, unless `cache_enabled` is False."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if device_type == "cuda" and enabled:
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
        elif device_type == "cpu" and enabled and self.fast_dtype not in _LOW:
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast "
                          "only supports dtypes of torch.bfloat16, torch.float16 currently.", stacklevel=2)
        self._enabled = bool(enabled) and device_type == "cpu" and self.fast_dtype in _LOW
        self._before = []  # one a nested entry of this object

    def __enter__(self) -> Any:
        kind = self.device
        self._before.append((is_autocast_enabled(kind), get_autocast_dtype(kind), _C.is_autocast_cache_enabled()))
        set_autocast_enabled(kind, self._enabled)
        if kind != "cpu" or self.fast_dtype.is_floating_point:
            set_autocast_dtype(kind, self.fast_dtype)
        _C.autocast_increment_nesting()
        _C.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> bool:
        enabled, dtype, keeps = self._before.pop()
        _C.autocast_decrement_nesting()
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(keeps)
        return False

    def __call__(self, func) -> Any:
        if not callable(func):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use "
                            "autocast as a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                            "        output = model(input)")

        @functools.wraps(func)
        def cast(*args, **kwargs):
            here = copy.copy(self)  # several threads may run the function at a time
            here._before = []
            with here:
                return func(*args, **kwargs)

        return cast


# ---------------------------------------------------------------- functions of one's own
def _cast(value, device_type, dtype):
    """value with the floating point tensors in it cast, double ones excepted."""
    if isinstance(value, ember.Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype != ember.float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes)) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(v, device_type, dtype) for v in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def _check_kind(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None) -> Any:
    """For forward() of an autograd.Function: remembers autocast's state for custom_bwd. With `cast_inputs`, inside of
    autocast, casts the arguments to it and runs with autocast off."""
    _check_kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type) -> Any:
    """For backward() of an autograd.Function whose forward() has custom_fwd: runs with the same state of autocast."""
    _check_kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward
