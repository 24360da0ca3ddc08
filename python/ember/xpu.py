"""Intel's GPUs. This build has no backend for them: the questions are answered, the rest says so."""

from ember import _absent_device

_made = _absent_device.make("XPU", "xpu")
globals().update(_made)
set_device = _made["_no_device"]

__all__ = [name for name in _made if not name.startswith("_")]
