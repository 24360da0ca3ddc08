"""Flatten and Unflatten."""

from typing import Any

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins dimensions start_dim to end_dim (both included) into one; keeps the batch dimension by default.

    >>> nn.Flatten()(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim=1, end_dim=-1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension dim (an index, or a name) into unflattened_size."""

    def __init__(self, dim, unflattened_size) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input):
        if not isinstance(input, tuple):
            raise TypeError(f"unflattened_size must be a tuple of tuples, but found type {type(input).__name__}")
        for idx, elem in enumerate(input):
            if not isinstance(elem, tuple):
                raise TypeError("unflattened_size must be tuple of tuples, "
                                f"but found element of type {type(elem).__name__} at pos {idx}")

    def _require_tuple_int(self, input):
        if not isinstance(input, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}")
        for idx, elem in enumerate(input):
            if not isinstance(elem, int):
                raise TypeError("unflattened_size must be tuple of ints, "
                                f"but found element of type {type(elem).__name__} at pos {idx}")

    def forward(self, input) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
