"""The p-norm, from plain operators."""

import ember


def vector_norm(t, p=2.0, dim=None, keepdim=False) -> "ember.Tensor":
    """The p-norm of t over dim (all dimensions: 0-dim result). Its gradient at zero is zero."""
    inf = float("inf")
    if dim is None:
        t, dim = t.reshape(-1), 0
    size = t.abs() if t.is_complex() or p != 2 else t
    if abs(p) == inf:
        if t.numel() == 0:
            return size.sum(dim, keepdim=keepdim)
        return size.amax(dim, keepdim=keepdim) if p > 0 else size.amin(dim, keepdim=keepdim)
    if p == 0:
        return (size != 0).to(size.dtype).sum(dim, keepdim=keepdim)
    if p == 1:
        return size.sum(dim, keepdim=keepdim)
    total = (size * size if p == 2 else size.pow(p)).sum(dim, keepdim=keepdim)
    # A root has no finite derivative at zero: take it of one there, and put the zero back.
    zero = total == 0
    safe = ember.where(zero, ember.ones_like(total), total)
    root = safe.sqrt() if p == 2 else safe.pow(1.0 / p)
    return ember.where(zero, ember.zeros_like(root), root)
