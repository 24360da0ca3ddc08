"""The CPU as a device among others: programs that ask all devices the same questions."""

import contextlib


__all__ = ["is_available", "device_count", "current_device", "set_device", "synchronize", "is_initialized", "Stream",
           "current_stream", "stream", "StreamContext"]


def is_available():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is only one."""


def synchronize(device=None):
    """Nothing runs in the background."""


def is_initialized():
    return True


class Stream:
    """Work on the CPU is done when the call returns: its one stream never has anything to wait for."""

    def __init__(self, priority=-1):
        self.priority = priority

    def wait_stream(self, stream):
        """The other has nothing left to do either."""

    def record_event(self):
        return None

    def wait_event(self, event):
        """It has happened already."""


_stream = Stream()


def current_stream(device=None):
    return _stream


@contextlib.contextmanager
def stream(stream):
    yield stream


StreamContext = stream


def __getattr__(name):
    if name == "amp":
        import importlib
        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


