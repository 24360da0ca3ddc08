"""What the allocator holds. Bytes of tensors and of everything else that Ember made in this process."""

from ember import _C

__all__ = ["memory_stats", "memory_allocated", "max_memory_allocated", "memory_cached", "reset_peak_memory_stats",
           "empty_cache", "live_objects", "stats", "record_history", "snapshot"]


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


def stats():
    """memory_stats() and, under `live`, how many tensors, storages, nodes, ... exist."""
    return {**memory_stats(), "live": live_objects()}


def record_history(enabled=True, frames=True):
    """Note each storage that is made from now on, and where (frames: the lines of Python; a few microseconds each)."""
    _C._memory_history(bool(enabled), bool(frames))


_record_memory_history = record_history


def snapshot():
    """What is held now: `stats`, and `storages`, those made since record_history(), the largest first.

    A storage: its address, bytes, the capacity of its block, how many tensors (and others) hold it, its kind (own, shared with
    other processes, borrowed from another library, meta) and the frames that made it, the innermost first. Without a history
    `storages` is None: storages that nobody asked about are not listed anywhere.
    """
    rows = _C._memory_storages()
    if rows is not None:
        rows = [{"address": address, "bytes": nbytes, "capacity": capacity, "references": references, "kind": kind,
                 "frames": [{"filename": file, "line": line, "name": name} for file, line, name in frames]}
                for address, nbytes, capacity, references, kind, frames in rows]
        rows.sort(key=lambda row: -row["bytes"])
    return {"stats": stats(), "storages": rows}
