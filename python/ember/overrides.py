"""__torch_function__: how a type, or a mode, takes over functions.

The C parser asks for operators; functions written in Python ask has_torch_function themselves and hand over through
handle_torch_function.
"""

import warnings

import ember
from ember import _C
from ember._C import (_disabled_torch_function_impl, _has_torch_function as has_torch_function,
                      _has_torch_function_unary as has_torch_function_unary,
                      _has_torch_function_variadic as has_torch_function_variadic)

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "resolve_name"]


def _overloaded_args(relevant_args):
    """One argument of each overriding type: subclasses before their bases, else from left to right."""
    types, args = [], []
    for arg in relevant_args:
        kind = type(arg)
        method = getattr(kind, "__torch_function__", None)
        if method is None or method is _disabled_torch_function_impl or kind in types:
            continue
        at = next((i for i, other in enumerate(types) if issubclass(kind, other)), len(types))
        types.insert(at, kind)
        args.insert(at, arg)
    return types, args


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Call the innermost mode's __torch_function__, then that of relevant_args in turn, until one answers.

    Raises TypeError when all return NotImplemented.
    """
    types, overloaded = _overloaded_args(relevant_args)
    mode = None
    if _C._len_torch_function_stack() > 0:
        # A mode runs with itself off the stack, so that it may call the function.
        mode = _C._pop_torch_function_stack()
        try:
            result = mode.__torch_function__(public_api, tuple(types), args, kwargs)
        finally:
            _C._push_on_torch_function_stack(mode)
        if result is not NotImplemented:
            return result
    for arg in overloaded:
        method = arg.__torch_function__
        if getattr(method, "__self__", None) is arg:
            warnings.warn("Defining your `__torch_function__` as a plain method is deprecated and will be an error in "
                          "future, please define it as a classmethod.", DeprecationWarning, stacklevel=3)
        result = method(public_api, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    text = f"no implementation found for '{name}' on types that implement __torch_function__: {types}"
    raise TypeError(text if mode is None else f"{text} nor in mode {mode}")


class TorchFunctionMode:
    """Context manager whose __torch_function__ sees every function called inside, whatever its arguments."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_function_stack()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that only calls the function."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp):
    """Whether inp is a tensor or an object with __torch_function__."""
    return type(inp) is ember.Tensor or hasattr(inp, "__torch_function__")


def resolve_name(f):
    """A readable name of a function that reached __torch_function__, or None."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if name is None:
        return None
    module = getattr(f, "__module__", None)
    return f"{module}.{name}" if module else name
