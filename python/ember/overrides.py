"""__torch_function__: how a type takes over functions that are called with its instances."""

import ember
from ember._C import (_disabled_torch_function_impl, _has_torch_function as has_torch_function,
                      _has_torch_function_unary as has_torch_function_unary,
                      _has_torch_function_variadic as has_torch_function_variadic)

__all__ = ["handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like", "resolve_name"]


def _overloaded_args(relevant_args):
    """One argument of each overriding type: subclasses before their bases, else from left to right."""
    types, args = [], []
    for arg in relevant_args:
        kind = type(arg)
        method = getattr(kind, "__torch_function__", None)
        if kind is ember.Tensor or method is None or method is _disabled_torch_function_impl or kind in types:
            continue
        at = next((i for i, other in enumerate(types) if issubclass(kind, other)), len(types))
        types.insert(at, kind)
        args.insert(at, arg)
    return types, args


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Call the __torch_function__ of relevant_args in turn until one answers.

    Raises TypeError when all return NotImplemented.
    """
    types, overloaded = _overloaded_args(relevant_args)
    for arg in overloaded:
        result = arg.__torch_function__(public_api, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {types}")


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
