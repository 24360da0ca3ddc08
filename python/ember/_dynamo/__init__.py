"""What torch.compile() is made of. Ember has no compiler yet: functions run as they are, and give the same numbers."""

from .eval_frame import (InvalidBackend, OptimizedModule, compile, disable, is_compiling, list_backends, optimize, reset)

__all__ = ["OptimizedModule", "InvalidBackend", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph",
           "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
           "mark_static_address", "maybe_mark_dynamic", "optimize", "reset", "run"]

_compile = compile


def allow_in_graph(fn):
    """The function itself: there is no graph that it would have to be allowed in."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(x) for x in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


disallow_in_graph = forbid_in_graph = assume_constant_result = run = allow_in_graph


def graph_break(msg=""):
    """Nothing is being captured that could break here."""


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Sizes are what they are at each call: all of them may change."""


def mark_static(t, index=None):
    """Sizes are what they are at each call."""


def mark_static_address(t, guard=False):
    """Accepted: addresses are read at each call, so none has to be promised."""


maybe_mark_dynamic = mark_dynamic
