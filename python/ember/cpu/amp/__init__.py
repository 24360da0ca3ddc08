"""The names from before ember.amp."""

import ember
from ember.amp import _old_names

autocast, GradScaler = _old_names.make("cpu", ember.bfloat16)

__all__ = ["autocast", "GradScaler"]
