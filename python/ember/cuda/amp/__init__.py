"""The names from before ember.amp."""

import ember
from ember.amp import _old_names
from ember.amp._old_names import custom_bwd, custom_fwd

autocast, GradScaler = _old_names.make("cuda", ember.float16)

__all__ = ["autocast", "custom_bwd", "custom_fwd", "GradScaler"]


def amp_definitely_not_available():
    return True
