"""Automatic differentiation: backward() and grad() over the recorded graph."""

import threading
import warnings

import ember
from ember import _C
from ember._C import (_queue_callback, is_anomaly_enabled, is_grad_enabled, set_anomaly_enabled)  # noqa: F401
from .function import Function, NestedIOFunction  # noqa: F401
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled  # noqa: F401
from . import grad_mode  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:  # what __getattr__ finds
    from .anomaly_mode import detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly
    from .gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck

__all__ = ["Variable", "Function", "backward", "grad_mode", "grad", "no_grad", "enable_grad", "set_grad_enabled",
           "inference_mode", "detect_anomaly", "set_detect_anomaly", "gradcheck", "gradgradcheck", "graph"]


def __getattr__(name):
    import importlib
    if name in ("detect_anomaly", "set_detect_anomaly"):
        return getattr(importlib.import_module(".anomaly_mode", __name__), name)
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        module = importlib.import_module(".gradcheck", __name__)
        # The import bound the name gradcheck to the module; here it is the function.
        globals().update({n: getattr(module, n) for n in ("gradcheck", "gradgradcheck", "GradcheckError")})
        return globals()[name]
    if name in ("graph", "anomaly_mode", "functional", "profiler", "profiler_util"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _Runs(threading.local):
    partial = 0  # runs of this thread that go to given inputs only


_runs = _Runs()


class _towards:
    """Around a run of the engine: notes on this thread whether it goes to given inputs only."""

    def __init__(self, inputs=()):
        self.inputs = inputs

    def __enter__(self):
        if self.inputs:
            _runs.partial += 1

    def __exit__(self, *unused):
        if self.inputs:
            _runs.partial -= 1


def _is_checkpoint_valid():
    """Whether the backward of this thread, if one runs, goes to all leaves: reentrant checkpoints need that."""
    return _runs.partial == 0


def _one_or_many(x):
    return (x,) if isinstance(x, ember.Tensor) else tuple(x)


def _shape_text(shape):
    return f"torch.Size({list(shape)})"


def _make_grads(outputs, grads):
    """Checks the gradients given for outputs; the engine makes ones for those that are None."""
    for grad in grads[:0 if len(grads) == len(outputs) else None]:
        if grad is not None and not isinstance(grad, ember.Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for i, (out, grad) in enumerate(zip(outputs, grads)):
        if grad is None:
            if out.requires_grad and out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if out.requires_grad and not out.dtype.is_floating_point:
                raise RuntimeError("grad can be implicitly created only for real scalar outputs "
                                   f"but got {out.dtype}")
        elif not isinstance(grad, ember.Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif grad.shape != out.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {_shape_text(grad.shape)} and "
                               f"output[{i}] has a shape of {_shape_text(out.shape)}.")
        elif out.dtype.is_complex != grad.dtype.is_complex:
            raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. "
                               f"Mismatch in dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has "
                               f"a dtype of {out.dtype}.")
    return grads


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None) -> None:
    """Adds the gradients of `tensors` to the .grad of the graph's leaves (of `inputs` only, when given)."""
    if _C._has_torch_function_variadic(tensors) and isinstance(tensors, ember.Tensor):
        from ember.overrides import handle_torch_function
        return handle_torch_function(backward, (tensors,), tensors, grad_tensors=grad_tensors,
                                     retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to backward(). "
                               "Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    inputs = () if inputs is None else _one_or_many(inputs)
    tensors = _one_or_many(tensors)
    if grad_tensors is None:
        grads = (None,) * len(tensors)
    else:
        grads = _one_or_many(grad_tensors)
    grads = _make_grads(tensors, grads)
    if retain_graph is None:
        retain_graph = create_graph
    if create_graph and not _quiet_create_graph:
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter "
                      "and its gradient which can cause a memory leak. We recommend using autograd.grad when creating "
                      "the graph to avoid this. If you have to use this function, make sure to reset the .grad fields "
                      "of your parameters to None after use to break the cycle and avoid the leak.", stacklevel=2)
    with _towards(inputs):
        _C._run_backward(tensors, grads, retain_graph, create_graph, inputs, True, True)


_quiet_create_graph = False


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False) -> "tuple[ember.Tensor, ...]":
    """The gradients of `outputs` with respect to each of `inputs`, as a tuple; .grad is not touched."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
                      "gradient for other parts of the graph, please use torch.autograd.backward.", FutureWarning,
                      stacklevel=2)
    if is_grads_batched:
        return _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
                             materialize_grads)
    outputs, inputs = _one_or_many(outputs), _one_or_many(inputs)
    if grad_outputs is None:
        grads = (None,) * len(outputs)
    else:
        grads = _one_or_many(grad_outputs)
    grads = _make_grads(outputs, grads)
    if retain_graph is None:
        retain_graph = create_graph
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for i, x in enumerate(outputs):
        if isinstance(x, ember.Tensor) and not x.requires_grad:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    for x in inputs:
        if isinstance(x, ember.Tensor) and not x.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    with _towards(inputs):
        return _C._run_backward(outputs, grads, retain_graph, create_graph, inputs,
                                bool(allow_unused) or materialize_grads, False, materialize_grads)


def _batched_grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    """One backward a row of the batched gradients; the rows are stacked."""
    batches = _one_or_many(grad_outputs)
    n = batches[0].shape[0]
    rows = [grad(outputs, inputs, tuple(b[i] for b in batches), True if i + 1 < n else retain_graph, create_graph,
                 allow_unused=allow_unused, materialize_grads=materialize_grads) for i in range(n)]
    return tuple(None if parts[0] is None else ember.stack(parts) for parts in zip(*rows))


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Tensor.backward with arguments."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _detach_inplace(t):
    """Tensor.detach_: t becomes a leaf that requires no gradient."""
    if t._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, "
                           "gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                           "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
                           "torch/optim/optimizer.py as a reference.")
    t._grad_fn = None
    return t.requires_grad_(False)


class _VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, ember.Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of a tensor that takes part in autograd."""

    def __new__(cls, data, requires_grad=False, volatile=None):
        return data.detach().requires_grad_(requires_grad)

    class _execution_engine:
        run_backward = staticmethod(_C._run_backward)
        queue_callback = staticmethod(_queue_callback)
