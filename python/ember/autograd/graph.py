"""Looking at and hooking into the recorded graph."""

from collections import namedtuple
from typing import Any

import ember
from ember import _C
from ember.utils.hooks import RemovableHandle

__all__ = ["saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook", "Node",
           "GradientEdge", "get_gradient_edge", "increment_version"]


class _NodeMeta(type):
    """Every class of nodes that C makes counts as a subclass of Node."""

    def __subclasscheck__(cls, other) -> Any:
        if cls is not Node:
            return type.__subclasscheck__(cls, other)
        return all(hasattr(other, name) for name in ("name", "next_functions", "register_hook", "register_prehook"))

    def __instancecheck__(cls, instance) -> Any:
        return issubclass(type(instance), cls)


class Node(metaclass=_NodeMeta):
    """What all nodes of the graph have: name(), next_functions, metadata, register_hook(), register_prehook()."""


GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])
GradientEdge.__doc__ = "Where a gradient flows into the graph: a node, and which of its inputs to backward."


def _grad_fn_or_accumulator(tensor):
    """The node that receives a tensor's gradient."""
    if isinstance(tensor, GradientEdge):
        return tensor.node
    if tensor.requires_grad and tensor.grad_fn is None:
        # A leaf's accumulator is only reachable as the next node of something computed from it.
        with ember.enable_grad():
            return tensor.view_as(tensor).grad_fn.next_functions[0][0]
    return tensor.grad_fn


def get_gradient_edge(tensor) -> Any:
    """The GradientEdge of a tensor. RuntimeError unless it requires grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_grad_fn_or_accumulator(tensor), tensor.output_nr)


def increment_version(tensor) -> None:
    """Count a change of a tensor (or of an iterable of tensors) that was made behind autograd's back."""
    if isinstance(tensor, ember.Tensor):
        tensor = (tensor,)
    _C._increment_version(tensor)


class saved_tensors_hooks:
    """Context manager: pack_hook(tensor) decides what is saved for backward, unpack_hook(that) gives it back."""

    def __init__(self, pack_hook, unpack_hook) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._autograd._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _C._autograd._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved for backward wait in CPU memory. pin_memory matters with an accelerator only."""

    def __init__(self, pin_memory=False, device_type="cuda") -> None:
        def pack(tensor):
            return tensor.device, tensor.cpu()

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Context manager and decorator: inside, entering saved_tensors_hooks raises RuntimeError(error_message)."""

    def __init__(self, error_message) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        self.prev = _C._autograd._saved_tensors_hooks_get_disabled_error_message()
        _C._autograd._saved_tensors_hooks_disable(self.error_message)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if self.prev is None:
            _C._autograd._saved_tensors_hooks_enable()
        else:
            _C._autograd._saved_tensors_hooks_disable(self.prev)

    def __call__(self, func) -> Any:
        from ember.utils._contextlib import context_decorator
        return context_decorator(lambda: type(self)(self.error_message), func)


class _MultiHandle(RemovableHandle):
    """Removes several hooks as one."""

    def __init__(self, handles) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state) -> None:
        self.handles = state


def _graph_task():
    task = _C._current_graph_task_id()
    if task == -1:
        raise AssertionError("expected this hook to be called inside a backward call")
    return task


def _when_all(tensors, fn):
    """One hook per tensor; the last of those that this backward will reach calls fn."""
    nodes = [_grad_fn_or_accumulator(t) for t in tensors]
    waiting = {}  # graph task -> [gradients still to come, gradients]

    def hook(i, grad):
        task = _graph_task()
        if task not in waiting:
            waiting[task] = [sum(map(_C._will_engine_execute_node, nodes)), [None] * len(tensors)]
        entry = waiting[task]
        entry[1][i] = grad
        entry[0] -= 1
        if entry[0] == 0:
            del waiting[task]
            fn(entry[1])

    return [lambda grad, i=i: hook(i, grad) for i in range(len(tensors))]


def _when_any(tensors, fn):
    """One hook for all; the first gradient of each backward calls fn."""
    done = {}

    def hook(grad):
        task = _graph_task()
        if not done.get(task):
            # Only backwards that are still running matter, and ids grow: forget the old ones.
            done.clear()
            done[task] = True
            fn(grad)

    return [hook] * len(tensors)


def register_multi_grad_hook(tensors, fn, *, mode="all") -> Any:
    """mode="all": fn(list of gradients or None) once all are known. mode="any": fn(gradient) for the first one.

    Returns a handle with remove().
    """
    modes = ("all", "any")
    if mode not in modes:
        raise ValueError(f"Expects mode to be one of {modes} but got {mode}")
    hooks = (_when_all if mode == "all" else _when_any)(tensors, fn)
    return _MultiHandle(t.register_hook(hook) for t, hook in zip(tensors, hooks))
