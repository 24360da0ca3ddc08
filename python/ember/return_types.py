"""Types of results with names: torch.return_types.max and so on, made when an operator first needs them."""

from ember import _C

__all__ = []


def __getattr__(name):
    found = _C._return_types.get(name)
    if found is None:
        _C._make_return_type(name)
        found = _C._return_types.get(name)
    if found is None:
        raise AttributeError(f"module 'ember.return_types' has no attribute '{name}'")
    return found


def __dir__():
    return sorted(_C._return_types)
