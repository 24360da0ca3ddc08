"""Helpers around tensors and modules: hook handles, activation checkpointing."""

_LAZY = ("checkpoint", "data", "hooks")


def __getattr__(name):
    if name in _LAZY:
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY])
