"""NVIDIA devices. This build has no backend for them: the questions are answered, the rest says so."""

__all__ = ["is_available", "device_count", "is_initialized", "manual_seed", "manual_seed_all", "empty_cache",
           "current_device", "synchronize", "is_bf16_supported"]


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def manual_seed(seed):
    """Without devices there is nothing to seed; PyTorch ignores it in the same way."""


def manual_seed_all(seed):
    """Without devices there is nothing to seed; PyTorch ignores it in the same way."""


def empty_cache():
    """Without devices there is no cache; PyTorch ignores it in the same way."""


def _no_device(*args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = synchronize = get_device_name = get_device_properties = set_device = current_stream = _no_device
memory_allocated = max_memory_allocated = memory_reserved = reset_peak_memory_stats = _no_device


def __getattr__(name):
    if name == "amp":
        import importlib
        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
