"""Custom differentiable functions: subclass Function, write forward and backward, call apply."""

import functools
import warnings

import ember
from ember._C import _FunctionBase

TYPE_CHECKING = False  # `typing` itself is not imported: `import ember` would pay for it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction",
           "NestedIOFunction"]


class FunctionCtx:
    """What forward and backward know of each other: `ctx`. It is also the node of the graph."""

    save_for_backward = _FunctionBase.save_for_backward
    mark_dirty = _FunctionBase.mark_dirty
    mark_non_differentiable = _FunctionBase.mark_non_differentiable
    set_materialize_grads = _FunctionBase.set_materialize_grads

    def save_for_forward(self, *tensors) -> None:
        self.saved_for_forward = tensors

    def mark_shared_storage(self, *pairs) -> None:
        warnings.warn("mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. "
                      "Note that calls to `set_()` are not tracked", FutureWarning, stacklevel=2)


class BackwardCFunction(_FunctionBase, FunctionCtx):
    """The class of a Function's ctx objects: calls its backward."""

    def apply(self, *args):
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                               "should only implement one of them.")
        return (vjp if vjp is not Function.vjp else backward)(self, *args)


class FunctionMeta(type):
    """Gives each Function a ctx class of its own, whose name the graph shows."""

    def __init__(cls, name, bases, attrs):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attrs)


class Function(_FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    """Base of custom functions.

    forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output); backward(ctx, *grads) returns one
    gradient (or None) for each argument of forward. Call MyFunction.apply(*args).
    """

    def __init__(self, *args, **kwargs):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function will raise an error "
                      "in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use "
                           "new-style autograd function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    generate_vmap_rule = False

    @staticmethod
    def forward(*args, **kwargs) -> "Any":
        """What a subclass defines: forward(ctx, *args), or forward(*args) beside setup_context(ctx, inputs, output). Not
        recorded.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    setup_context = _FunctionBase._default_setup_context

    @staticmethod
    def backward(ctx, *grad_outputs) -> "Any":
        """What a subclass defines: the gradient of each argument of forward from those of its results; None for none."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    @staticmethod
    def vjp(ctx, *grad_outputs) -> "Any":
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx, *grad_inputs) -> "Any":
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args) -> "Any":
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod "
                                  "or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args, **kwargs) -> "Any":
        """Run forward, and record backward as the derivative if an argument requires grad. Returns what forward does."""
        if cls.setup_context is not _FunctionBase._default_setup_context:
            import inspect
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            return super().apply(*bound.args)
        return super().apply(*args, **kwargs)

    @classmethod
    def _is_legacy(cls):
        return False


class InplaceFunction(Function):
    """Only for backward compatibility: forward(ctx, ...) marks what it writes with ctx.mark_dirty."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Only for backward compatibility."""


class _NotDifferentiable(Function):
    """Passes gradients through; asks of a second differentiation end in an error."""

    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


def once_differentiable(fn):
    """Decorates a Function's backward: it runs without recording, and differentiating its result raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with ember.no_grad():
            outputs = fn(ctx, *args)
        if not ember.is_grad_enabled():
            return outputs
        if not any(isinstance(a, ember.Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        outputs = (outputs,) if single else outputs
        at = [i for i, o in enumerate(outputs) if o is not None]
        results = list(outputs)
        delayed = [outputs[i].detach().requires_grad_() for i in at]
        errors = _NotDifferentiable.apply("trying to differentiate twice a function that was marked with "
                                          "@once_differentiable", *delayed)
        for i, value in zip(at, errors):
            results[i] = value
        return results[0] if single else tuple(results)

    return wrapper
