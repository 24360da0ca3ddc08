"""Apple's GPUs. This build has no backend for them: the questions are answered, the rest says so."""

__all__ = ["device_count", "get_rng_state", "manual_seed", "seed", "set_rng_state", "synchronize", "empty_cache",
           "set_per_process_memory_fraction", "current_allocated_memory", "driver_allocated_memory", "Event",
           "recommended_max_memory", "is_available"]


def is_available():
    return False


def device_count():
    return 0


def manual_seed(seed):
    """Without a device there is nothing to seed."""


def _absent(what):
    def function(*args, **kwargs):
        raise RuntimeError(f"Cannot execute {what}() without MPS backend.")

    function.__doc__ = f"What would ask Apple's device to {what}: RuntimeError, there is none in this build."
    return function


synchronize, empty_cache = _absent("deviceSynchronize"), _absent("emptyCache")
current_allocated_memory, driver_allocated_memory = _absent("getCurrentAllocatedMemory"), _absent("getDriverAllocatedMemory")
get_rng_state = set_rng_state = seed = _absent("getDefaultGenerator")
set_per_process_memory_fraction, recommended_max_memory = _absent("setMemoryFraction"), _absent("getRecommendedMaxMemory")


class Event:
    def __new__(cls, *args, **kwargs):
        return _absent("acquireEvent")()
