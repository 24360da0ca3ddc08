"""skip_init: modules without initial values."""

import inspect
from typing import Any

import ember

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs) -> Any:
    """module_cls(*args, **kwargs) with parameters whose values are not set: for weights that will be loaded anyway."""
    if not issubclass(module_cls, ember.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final_device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=final_device)
