"""Mixed precision: products in bfloat16 or float16, what needs range in float32."""

from .autocast_mode import (autocast, get_autocast_dtype, is_autocast_available, is_autocast_enabled,
                            set_autocast_dtype, set_autocast_enabled)

__all__ = ["autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled", "set_autocast_dtype",
           "set_autocast_enabled"]
