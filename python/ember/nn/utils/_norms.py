"""What the two kinds of weight_norm and of spectral_norm share."""

from typing import Any

import ember
import ember.nn.functional as F


def weight_of(v, g, dim) -> Any:
    """g times v with every slice along dim of length one."""
    return v * (g / norm_except(v, dim))


def norm_except(v, dim) -> Any:
    """Lengths of the slices of v along dim (-1: of the whole), kept broadcastable."""
    if dim == -1:
        return v.norm(2)
    over = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.square().sum(over, keepdim=True).sqrt() if over else v.abs()


def as_matrix(weight, dim) -> Any:
    """weight with dim first and the others flattened."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.flatten(1) if weight.dim() > 1 else weight


def power_iterations(matrix, u, v, count, eps) -> None:
    """Improve, in place, the singular vectors u and v that belong to the largest singular value of matrix."""
    with ember.no_grad():
        for _ in range(count):
            v.copy_(F.normalize(ember.mv(matrix.t(), u), dim=0, eps=eps))
            u.copy_(F.normalize(ember.mv(matrix, v), dim=0, eps=eps))
