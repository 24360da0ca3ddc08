"""The accelerator, whichever there is. There is none in this build."""

import contextlib
import warnings

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "get_device_capability", "current_stream",
           "device_count", "device_index", "empty_cache", "empty_host_cache", "get_memory_info", "is_available",
           "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
           "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
           "synchronize"]


def is_available():
    """Whether there is a device beside the CPU that programs can compute on."""
    return False


def device_count():
    return 0


def current_accelerator(check_available=False):
    """The device type of the accelerator, or None where there is only the CPU."""
    return None


def _none(*args, **kwargs):
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_index = set_device_index = current_stream = set_stream = synchronize = get_device_capability = _none
empty_cache = empty_host_cache = memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _none
memory_stats = reset_peak_memory_stats = reset_accumulated_memory_stats = get_memory_info = _none


def current_device_idx():
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    return _none()


def set_device_idx(device):
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    return _none()


@contextlib.contextmanager
def device_index(device):
    if device is not None:
        _none()
    yield
