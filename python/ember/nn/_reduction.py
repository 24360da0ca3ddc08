"""The reduction argument of losses, and the two flags that it replaced."""

import warnings
from typing import Any

_ENUM = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction) -> Any:
    """The number that the loss operators take for a reduction's name."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
                      stacklevel=3)
        return 1
    if reduction not in _ENUM:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _ENUM[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True) -> Any:
    """The reduction that the deprecated size_average and reduce flags (None: True) ask for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn("size_average and reduce args will be deprecated, please use "
                      f"reduction='{name}' instead.", stacklevel=3)
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True) -> Any:
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
