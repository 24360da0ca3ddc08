"""What runs in a worker process."""

from dataclasses import dataclass
from typing import Any

CHECK_INTERVAL = 5.0  # seconds between two looks at whether the other side lives


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: get_worker_info()."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_worker_info = None


def get_worker_info():
    """In a worker: id, num_workers, seed, and its copy of the dataset. In the main process: None."""
    return _worker_info
