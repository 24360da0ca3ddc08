"""Questions and wishes about compilation. Ember has no compiler yet: see ember.compile()."""

import ember._dynamo as _dynamo
from ember._dynamo import allow_in_graph, assume_constant_result, disable
from ember._dynamo.eval_frame import compile, list_backends, reset

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
           "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "wrap_numpy"]

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "aot_eager_then_compile",
            "eager_then_compile")


def is_compiling():
    """Whether this code is being compiled or exported: never, programs run as they are."""
    return _dynamo.is_compiling()


def is_dynamo_compiling():
    return False


def is_exporting():
    return False


def cudagraph_mark_step_begin():
    """There are no CUDA graphs."""


def wrap_numpy(fn):
    """fn, with arrays where tensors are given."""
    import functools

    import ember

    def turn(value):
        return value.numpy() if isinstance(value, ember.Tensor) else value

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        result = fn(*map(turn, args), **{name: turn(value) for name, value in kwargs.items()})
        return ember.from_numpy(result) if type(result).__module__ == "numpy" and hasattr(result, "ctypes") else result

    return wrapped


class set_stance:
    """Everything runs as `force_eager` says, whatever the stance. A context manager and a decorator."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}, expected one of {_STANCES}")
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, exc_type, value, trace):
        return False

    def __call__(self, fn):
        return fn
