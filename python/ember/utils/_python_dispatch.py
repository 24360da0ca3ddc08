"""TorchDispatchMode: sees every operator that runs below autograd while it is entered."""
from .. import _C


class TorchDispatchMode:
    """A context manager whose __torch_dispatch__(func, types, args, kwargs) takes the place of the backend's kernels.

    Modes nest: inside a mode's handler the next outer one is at work. Composite operators are seen as their parts.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _C._pop_torch_dispatch_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """A new mode of this class; the older spelling of `with cls(...)`."""
        return cls(*args, **kwargs)


def _len_torch_dispatch_stack():
    return _C._len_torch_dispatch_stack()


def is_in_torch_dispatch_mode():
    return _C._len_torch_dispatch_stack() > 0
