"""Devices that this build has no backend for: questions are answered, orders are refused in PyTorch's words."""

import collections
import contextlib
import warnings

REFUSED = ("current_device", "synchronize", "get_device_name", "get_device_properties", "get_device_capability",
           "current_stream", "default_stream", "mem_get_info", "get_rng_state", "init", "initial_seed",
           "can_device_access_peer", "reset_peak_memory_stats", "reset_accumulated_memory_stats", "ipc_collect", "cudart",
           "set_sync_debug_mode", "get_sync_debug_mode", "set_per_process_memory_fraction", "get_per_process_memory_fraction",
           "graph_pool_handle", "is_current_stream_capturing", "current_blas_handle", "memory_summary")
ANSWERS = {"is_available": False, "is_initialized": False, "device_count": 0, "is_bf16_supported": False,
           "is_tf32_supported": False, "empty_cache": None, "memory_allocated": 0, "max_memory_allocated": 0,
           "memory_reserved": 0, "max_memory_reserved": 0, "manual_seed": None, "manual_seed_all": None, "seed": None,
           "seed_all": None, "set_rng_state": None, "set_rng_state_all": None, "set_stream": None, "get_gencode_flags": ""}
FRESH = {"memory_stats": collections.OrderedDict, "memory_stats_as_nested_dict": dict, "get_rng_state_all": list,
         "get_arch_list": list, "memory_snapshot": list}


ABOUT = {
    "is_available": "Whether there is such a device: no", "is_initialized": "Whether the device's runtime was started: no",
    "device_count": "How many such devices there are: none", "is_bf16_supported": "Whether the device computes in bfloat16: no",
    "empty_cache": "Frees memory that the device's allocator keeps: there is none", "manual_seed": "Seeds the device's generator: nothing",
    "memory_allocated": "Bytes that tensors hold on the device: 0", "max_memory_allocated": "The most bytes that tensors held: 0",
    "memory_reserved": "Bytes that the device's allocator holds: 0", "max_memory_reserved": "The most bytes that it held: 0",
    "manual_seed_all": "Seeds the generators of all such devices: nothing", "set_rng_state": "Restores the device's generator: nothing",
    "memory_stats": "Statistics of the device's allocator: an empty dictionary", "current_device": "The index of the device in use",
    "get_rng_state_all": "States of the generators of all such devices: an empty list", "synchronize": "Waits for the device",
    "get_device_name": "The name of a device", "get_device_properties": "Name, memory and kind of a device",
    "get_device_capability": "Major and minor number of what a device can do", "current_stream": "The stream that work goes to",
    "default_stream": "The device's default stream", "mem_get_info": "Free and total bytes of a device",
    "get_rng_state": "The state of the device's generator", "reset_peak_memory_stats": "Forgets the most that was held",
    "set_device": "Chooses a device; a negative index is no device and is accepted", "stream": "Around a `with` block: where work goes",
    "Stream": "A queue of work of the device", "Event": "A mark in a queue of work", "Graph": "Work that was recorded to be repeated",
    "device": "Around a `with` block: another device", "_no_device": "Starts or chooses the device"}


def _is_none(index):
    """Whether a device argument means no device: a negative index."""
    return isinstance(index, int) and index < 0


def make(label, name):
    """The functions and classes of a module `name`, {name: object}; `label` is what messages call the device."""
    def refuse(*args, **kwargs):
        raise AssertionError(f"Torch not compiled with {label} enabled")

    def answer(what, make_value):
        def function(*args, **kwargs):
            return make_value()

        function.__name__ = function.__qualname__ = what
        return function

    def set_device(device):
        if not _is_none(device):
            refuse()

    class device:
        """Chooses a device for a while. There is none to choose."""

        def __init__(self, device):
            self.idx = device

        def __enter__(self):
            if not _is_none(self.idx):
                raise RuntimeError(f"PyTorch was compiled without {label} support")

        def __exit__(self, exc_type, value, trace):
            return False

    class device_of(device):
        def __init__(self, obj):
            super().__init__(-1)

    @contextlib.contextmanager
    def stream(stream):
        if stream is not None:
            refuse()
        yield

    class Stream:
        def __new__(cls, *args, **kwargs):
            raise RuntimeError(f"torch.{name}.Stream requires {label} support")

    def dummy(what):
        def __new__(cls, *args, **kwargs):
            raise RuntimeError(f"Tried to instantiate dummy base class {what}")

        return type(what, (), {"__new__": __new__, "__module__": f"torch.{name}"})

    made = {"_no_device": refuse, "set_device": set_device, "device": device, "device_of": device_of, "stream": stream,
            "StreamContext": stream, "Stream": Stream, "Event": dummy("Event"), f"{label}Graph": dummy(f"{label}Graph")}
    made.update({what: answer(what, refuse) for what in REFUSED})
    made.update({what: answer(what, lambda value=value: value) for what, value in ANSWERS.items()})
    made.update({what: answer(what, kind) for what, kind in FRESH.items()})
    for what, thing in made.items():
        about = ABOUT.get(what) or ABOUT.get(what.removeprefix(label)) or f"{what.replace('_', ' ')} of the device"
        thing.__doc__ = f"torch.{name}.{what}: {about}. This build has no backend for {label}" + (
            "." if what in ANSWERS or what in FRESH else ": it raises.")
    return made


def renamed(name, old, new, now):
    """An old name of a function, which warns."""
    def function(*args, **kwargs):
        warnings.warn(f"`torch.{name}.{old}` has been renamed to `torch.{name}.{new}`", FutureWarning, stacklevel=2)
        return now(*args, **kwargs)

    function.__name__ = function.__qualname__ = old
    return function
