"""The parts of the DataLoader that run in workers, or at either end of their queues."""

from . import collate, fetch, pin_memory, worker

MP_STATUS_CHECK_INTERVAL = worker.CHECK_INTERVAL  # seconds between two looks at whether the other side lives

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]
