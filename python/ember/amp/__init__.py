"""Mixed precision: products in bfloat16 or float16, what needs range in float32; and GradScaler."""

from .autocast_mode import (autocast, custom_bwd, custom_fwd, get_autocast_dtype, is_autocast_available,
                            is_autocast_enabled, set_autocast_dtype, set_autocast_enabled)
from .grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]

_settings = (get_autocast_dtype, is_autocast_enabled, set_autocast_dtype, set_autocast_enabled)
