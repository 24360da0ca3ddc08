"""Handles that remove hooks, and the graph nodes that carry a module's backward hooks."""

import warnings
from collections import OrderedDict
from weakref import ref
from typing import Any

import ember

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]


class RemovableHandle:
    """Removes one hook from the dictionaries that hold it.

    Holds the dictionaries weakly: a handle that outlives its module keeps nothing alive. Usable in `with`.
    extra_dict: one more dictionary, or a list of them, keyed by the same id.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None) -> None:
        self.hooks_dict_ref = ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            self.extra_dict_ref = ()
        elif isinstance(extra_dict, list):
            self.extra_dict_ref = tuple(ref(d) for d in extra_dict)
        else:
            self.extra_dict_ref = (ref(extra_dict),)

    def remove(self) -> None:
        for held in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = held()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id, tuple(held() for held in self.extra_dict_ref))

    def __setstate__(self, state) -> None:
        # A dictionary that was dead when pickled comes back as a fresh one, so that remove() stays a no-op.
        hooks = state[0]
        self.hooks_dict_ref = ref(OrderedDict() if hooks is None else hooks)
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extra = state[2] if len(state) > 2 and state[2] is not None else ()
        self.extra_dict_ref = tuple(ref(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.remove()


def unserializable_hook(f) -> Any:
    """Mark f as a hook that may be dropped silently when its tensor is pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warn for each backward hook of tensor that pickling would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate "
                "the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2)


_gate = None


def _gate_class():
    """The custom Function whose node sits on a module's border; made at first use, so import stays cheap."""
    global _gate
    if _gate is None:
        class BackwardHookFunction(ember.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
                return args

            @staticmethod
            def backward(ctx, *grads):
                return grads

        _gate = BackwardHookFunction
    return _gate


class BackwardHook:
    """One call of a module with full backward hooks.

    The module's tensor inputs and outputs each pass through an identity node. The node of the outputs runs first in
    backward: it notes grad_outputs and runs the pre hooks. The node of the inputs then knows grad_inputs and runs
    the hooks. Positions that are not tensors, or need no gradient, appear to hooks as None.
    """

    def __init__(self, module, user_hooks, user_pre_hooks) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index = self.output_tensors_index = None

    @staticmethod
    def _spread(index, values, size):
        """A tuple of `size` with values at index and None elsewhere."""
        out = [None] * size
        for i, value in zip(index, values):
            out[i] = value
        return tuple(out)

    def _run_hooks(self, grad_inputs):
        result = None
        for hook in self.user_hooks:
            out = hook(self.module, grad_inputs, self.grad_outputs)
            if out is None:
                continue
            out = out if isinstance(out, tuple) else (out,)
            if len(out) != len(grad_inputs):
                raise RuntimeError("Backward hook returned an invalid number of grad_input, "
                                   f"got {len(out)}, but expected {len(grad_inputs)}")
            grad_inputs = result = out
        return result

    def _run_pre_hooks(self):
        expected = len(self.grad_outputs)
        for hook in self.user_pre_hooks:
            out = hook(self.module, self.grad_outputs)
            if out is None:
                continue
            out = out if isinstance(out, tuple) else (out,)
            if len(out) != expected:
                raise RuntimeError("Backward pre hook returned an invalid number of grad_output, "
                                   f"got {len(out)}, but expected {expected}")
            self.grad_outputs = out

    def _on_inputs(self, grad_input, _):
        if self.grad_outputs is None:
            # The gradient reached the inputs by a way that avoids the module's outputs (a double backward does).
            return None
        result = self._run_hooks(self._spread(self.input_tensors_index, grad_input, self.n_inputs))
        self.grad_outputs = None
        if result is None:
            return None
        return tuple(result[i] for i in self.input_tensors_index)

    def _on_outputs(self, _, grad_output):
        self.grad_outputs = self._spread(self.output_tensors_index, grad_output, self.n_outputs)
        self._run_pre_hooks()
        grads = self.grad_outputs
        if self.input_tensors_index is None:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.", stacklevel=5)
            nothing = (None,) * self.n_inputs
            for hook in self.user_hooks:
                out = hook(self.module, nothing, self.grad_outputs)
                if out is not None and not (isinstance(out, tuple) and all(g is None for g in out)):
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always "
                                       "return None or None for all gradients.")
            self.grad_outputs = None
        return tuple(grads[i] for i in self.output_tensors_index)

    @staticmethod
    def _wrap(args, hook):
        """Pass the tensors among args through a gate carrying hook. Returns (args, index of the tensors or None)."""
        index = [i for i, a in enumerate(args) if isinstance(a, ember.Tensor)]
        if not (ember.is_grad_enabled() and any(args[i].requires_grad for i in index)):
            return args, None
        gated = _gate_class().apply(*[args[i] for i in index])
        if len(gated) == 0:
            raise RuntimeError("Cannot set Module backward hook for a Module with no input Tensors.")
        nodes = [t.grad_fn for t in gated
                 if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks. Please open an issue with a code sample to "
                               "reproduce this.")
        nodes[0].register_hook(hook)
        new = list(args)
        for i, tensor in zip(index, gated):
            new[i] = tensor
        return (tuple(new) if type(args) is tuple else type(args)(*new)), index

    def setup_input_hook(self, args) -> Any:
        new, self.input_tensors_index = self._wrap(args, self._on_inputs)
        self.n_inputs = len(args)
        return new

    def setup_output_hook(self, args) -> Any:
        single = not isinstance(args, tuple)
        if single:
            args = (args,)
        new, self.output_tensors_index = self._wrap(args, self._on_outputs)
        self.n_outputs = len(args)
        return new[0] if single else new
