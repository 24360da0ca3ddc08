"""Hooks that apply to every module, and the registries that Module.__call__ consults."""

import weakref
from collections import OrderedDict
from typing import Any

from ember.utils.hooks import RemovableHandle

backward_pre_hooks = OrderedDict()
backward_hooks = OrderedDict()
forward_pre_hooks = OrderedDict()
forward_hooks = OrderedDict()
forward_hooks_with_kwargs = OrderedDict()
forward_hooks_always_called = OrderedDict()
buffer_registration_hooks = OrderedDict()
module_registration_hooks = OrderedDict()
parameter_registration_hooks = OrderedDict()

# None until a backward hook is registered; then whether those in backward_hooks are of the full kind.
is_full_backward = None


def _add(registry, hook, extra_dict=None):
    handle = RemovableHandle(registry, extra_dict=extra_dict)
    registry[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook) -> Any:
    """hook(module, name, buffer) runs at each register_buffer; what it returns, if not None, is registered."""
    return _add(buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook) -> Any:
    """hook(module, name, submodule) runs at each add_module; what it returns, if not None, is registered."""
    return _add(module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook) -> Any:
    """hook(module, name, param) runs at each register_parameter; what it returns, if not None, is registered."""
    return _add(parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook) -> Any:
    """hook(module, args) runs before forward of every module; it may return new args."""
    return _add(forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False) -> Any:
    """hook(module, args, output) runs after forward of every module; it may return a new output."""
    handle = _add(forward_hooks, hook, [forward_hooks_with_kwargs, forward_hooks_always_called])
    if with_kwargs:
        forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        forward_hooks_always_called[handle.id] = True
    return handle


def _set_backward_kind(full):
    global is_full_backward
    if is_full_backward is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    is_full_backward = full


def register_module_backward_hook(hook) -> Any:
    """Deprecated kind: hook(module, grad_input, grad_output) of the last node of the module's forward."""
    _set_backward_kind(False)
    return _add(backward_hooks, hook)


def register_module_full_backward_pre_hook(hook) -> Any:
    """hook(module, grad_output) runs before backward of every module; it may return a new grad_output."""
    return _add(backward_pre_hooks, hook)


def register_module_full_backward_hook(hook) -> Any:
    """hook(module, grad_input, grad_output) runs after backward of every module; may return a new grad_input."""
    _set_backward_kind(True)
    return _add(backward_hooks, hook)


class WrappedHook:
    """A hook that takes its module first, without keeping the module alive (the module holds the hook)."""

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if hasattr(hook, name):
                setattr(self, name, getattr(hook, name))
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> Any:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])
