"""What the allocator holds. Bytes of tensors and of everything else that Ember made in this process."""

from ember import _C

__all__ = ["memory_stats", "memory_allocated", "max_memory_allocated", "memory_cached", "reset_peak_memory_stats",
           "empty_cache", "live_objects"]


def memory_stats():
    """bytes_live, bytes_peak, bytes_cached; requests, and how many were reused or came from the system."""
    return _C._memory_stats()


def memory_allocated():
    return _C._memory_stats()["bytes_live"]


def max_memory_allocated():
    return _C._memory_stats()["bytes_peak"]


def memory_cached():
    return _C._memory_stats()["bytes_cached"]


def reset_peak_memory_stats():
    _C._reset_peak_memory()


def empty_cache():
    """Give cached blocks back to the system."""
    _C._empty_cache()


def live_objects():
    """How many tensors, storages, nodes, ... are alive."""
    return _C._live_objects()
