"""torch.cpu.amp and torch.cuda.amp: names from before torch.amp, which warn."""

import warnings
from typing import Any

import ember

from . import autocast_mode, grad_scaler


def make(kind, start) -> Any:
    """autocast and GradScaler of one kind of device."""
    class autocast(autocast_mode.autocast):
        def __init__(self, enabled=True, dtype=start, cache_enabled=True):
            warnings.warn(f"`torch.{kind}.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('{kind}', "
                          "args...)` instead.", FutureWarning, stacklevel=2)
            super().__init__(kind, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        def __init__(self, init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                     enabled=True):
            warnings.warn(f"`torch.{kind}.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler("
                          f"'{kind}', args...)` instead.", FutureWarning, stacklevel=2)
            super().__init__(kind, init_scale=init_scale, growth_factor=growth_factor, backoff_factor=backoff_factor,
                             growth_interval=growth_interval, enabled=enabled)

    for cls in (autocast, GradScaler):
        cls.__doc__ = f"torch.amp.{cls.__name__} for {kind!r} under the name from before torch.amp; deprecated."
        cls.__module__ = f"{ember.__name__}.{kind}.amp"
        cls.__qualname__ = cls.__name__
    return autocast, GradScaler


def custom_fwd(fwd=None, *, cast_inputs=None) -> Any:
    """torch.amp.custom_fwd(device_type=...) with the device in its module's name; deprecated."""
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None) -> Any:
    """torch.amp.custom_bwd(device_type=...) with the device in its module's name; deprecated."""
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
