"""The standard library's multiprocessing, in which tensors travel through shared memory instead of being copied.

Importing it (or calling share_memory_(), or a DataLoader with workers) registers how: see reductions.py.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403

from . import reductions
from .reductions import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy
from .spawn import (ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn,
                    start_processes)

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies"] + multiprocessing.__all__

reductions.init_reductions()


def __getattr__(name):
    if name in ("pool", "queue", "queues", "connection", "managers", "context", "process", "util"):
        import importlib
        return importlib.import_module("multiprocessing." + ("queues" if name == "queue" else name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_names = (ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes)
