"""TorchScript's names, as PyTorch has them under PYTORCH_JIT=0: decorators and script() give back what they were given.

There is no script compiler: nothing is compiled, saved or loaded here, and is_scripting() is always False.
"""

import contextlib
import typing

import ember

__all__ = ["Attribute", "ScriptFunction", "ScriptModule", "annotate", "export", "ignore", "interface", "is_scripting",
           "is_tracing", "isinstance", "optimized_execution", "script", "script_if_tracing", "script_method", "trace",
           "trace_module", "unused", "freeze", "optimize_for_inference"]

_isinstance = isinstance


class ScriptFunction:
    """For isinstance: script() makes none."""


class ScriptModule(ember.nn.Module):
    """A module. script() makes none, a class may derive from it."""


RecursiveScriptModule = ScriptModule


def is_scripting():
    """Whether this code is being compiled by TorchScript: never, False."""
    return False


def is_tracing():
    """Whether this code is being traced by TorchScript: never, False."""
    return False


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The object itself: nothing is compiled, Ember runs Python as it is."""
    return obj


def script_method(fn):
    return fn


def script_if_tracing(fn):
    return fn


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
          _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True):
    """The function or module itself: nothing is traced, Ember runs Python as it is."""
    return func


def trace_module(mod, inputs, *args, **kwargs):
    return mod


def export(fn):
    return fn


def unused(fn):
    """The function itself: TorchScript would replace it by an exception."""
    return fn


def ignore(drop=False, **kwargs):
    """The function itself: TorchScript would leave it to Python. A decorator if called with arguments."""
    return drop if callable(drop) else lambda fn: fn


def interface(obj):
    return obj


def annotate(the_type, the_value):
    return the_value


def Attribute(value, type):
    return value


def isinstance(obj, target_type):
    """Whether obj is of a type as typing writes it: list[int], Optional[Tensor], ..."""
    kinds = target_type if _isinstance(target_type, tuple) else (target_type,)
    return any(_fits(obj, kind) for kind in kinds)


def _fits(obj, kind):
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return True
    if kind is None:
        return obj is None
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        return any(_fits(obj, a) for a in args)
    if origin is None:
        return _isinstance(obj, kind)
    if not _isinstance(obj, origin):
        return False
    if origin is tuple:
        return len(obj) == len(args) and all(map(_fits, obj, args))
    if origin is dict:
        return all(_fits(k, args[0]) and _fits(v, args[1]) for k, v in obj.items())
    return all(_fits(x, args[0]) for x in obj) if args else True


@contextlib.contextmanager
def optimized_execution(should_optimize):
    yield


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself: there is no TorchScript to freeze."""
    raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script "
                       "your 'nn.Module'.")


def optimize_for_inference(mod, other_methods=None):
    raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or "
                       "torch.jit.trace to script your 'nn.Module'.")
