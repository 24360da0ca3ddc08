"""Functions of the main namespace that need Python: variable numbers of tensors, alternatives in one name."""

import ember
from . import _C
from ._C import _VariableFunctions as _VF

__all__ = ["broadcast_tensors", "broadcast_shapes", "split", "einsum", "meshgrid", "tensordot", "cdist", "cartesian_prod",
           "block_diag", "atleast_1d", "atleast_2d", "atleast_3d", "norm", "unique", "unique_consecutive",
           "chain_matmul", "numel", "is_floating_point", "is_complex", "is_signed", "is_inference",
           "is_conj", "is_neg", "resolve_conj", "resolve_neg", "is_nonzero", "is_same_size", "nonzero"]
inf = float("inf")


def _override(public, relevant, *args, **kwargs):
    from .overrides import handle_torch_function
    return handle_torch_function(public, relevant, *args, **kwargs)


def _tensors(args):
    """f(a, b, c) and f([a, b, c]) mean the same."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args


def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape."""
    tensors = _tensors(tensors)
    if _C._has_torch_function(tensors):
        return _override(broadcast_tensors, tensors, *tensors)
    shape = ()
    for t in tensors:  # by two, as operators do it: the message names the first pair that does not fit
        shape = _broadcast_two(shape, t.shape)
    return tuple(t.expand(shape) for t in tensors)


def _broadcast_two(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    for dim, (x, y) in enumerate(zip(a, b)):
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton "
                               f"dimension {dim}")
    return ember.Size(y if x == 1 else x for x, y in zip(a, b))


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    result = [1] * max(map(len, shapes), default=0)
    for number, shape in enumerate(shapes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({shape[i]}): ({shape[i]})")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument "
                                   f"at index {number} had {shape}; but expected shape should be broadcastable to {result}")
            result[i] = shape[i]
    return ember.Size(result)


def split(tensor, split_size_or_sections, dim=0):
    """Pieces of a size, or of the sizes given, along dim: views."""
    if _C._has_torch_function_unary(tensor):
        return _override(split, (tensor,), tensor, split_size_or_sections, dim=dim)
    if isinstance(split_size_or_sections, (list, tuple)):
        return tensor.split_with_sizes(split_size_or_sections, dim)
    return _VF.split(tensor, split_size_or_sections, dim)


def nonzero(input, *, out=None, as_tuple=False):
    """Positions of the true elements: one a row, or a tensor for each dim."""
    if _C._has_torch_function_variadic(input, out):
        return _override(nonzero, (input, out), input, out=out, as_tuple=as_tuple)
    if out is not None and (as_tuple or not isinstance(out, ember.Tensor)):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if as_tuple:
        return _VF.where(input)
    return _VF.nonzero(input) if out is None else _VF.nonzero(input, out=out)


def _sublist_letter(i):
    if not 0 <= i < 52:
        raise ValueError("subscripts in list are not within the valid range [0, 52)")
    return chr(ord("A") + i) if i < 26 else chr(ord("a") + i - 26)


def _sublist_text(parts):
    return "".join("..." if p is Ellipsis else _sublist_letter(p) for p in parts)


def einsum(*args):
    """Sums of products by Einstein's convention: einsum("ij,jk->ik", a, b), or with lists of subscripts."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    if isinstance(args[0], str):
        equation, operands = args[0], _tensors(args[1:])
    else:
        equation = ",".join(_sublist_text(s) for s in args[1::2])
        if len(args) % 2 == 1:
            equation += "->" + _sublist_text(args[-1])
            operands = args[:-1:2]
        else:
            operands = args[::2]
    if _C._has_torch_function(operands):
        return _override(einsum, operands, equation, *operands)
    return _VF.einsum(equation, list(operands))


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates from vectors: result k varies along dimension k, as wide as all tensors are long.

    indexing: "ij", or "xy" which exchanges the first two dimensions; without it "ij", with a warning. RuntimeError for
    tensors of more dimensions, or of several dtypes.

    >>> torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[1]
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    tensors = _tensors(tensors)
    if _C._has_torch_function(tensors):
        return _override(meshgrid, tensors, *tensors, indexing=indexing)
    if indexing is None:
        import warnings
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      stacklevel=2)
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t.dim()}")
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) > 1
    order = list(tensors)
    if swap:
        order[0], order[1] = order[1], order[0]
    shape = [t.numel() for t in order]
    grids = [t.reshape([-1 if i == k else 1 for i in range(len(shape))]).expand(shape) for k, t in enumerate(order)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def tensordot(a, b, dims=2, out=None):
    """The contraction of a and b over dims: a count, or the dims of each."""
    if _C._has_torch_function_variadic(a, b):
        return _override(tensordot, (a, b), a, b, dims=dims, out=out)
    if isinstance(dims, ember.Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        dims_a, dims_b = (list(d) if isinstance(d, (list, tuple)) else [d] for d in dims)
    return _VF.tensordot(a, b, dims_a, dims_b) if out is None else _VF.tensordot(a, b, dims_a, dims_b, out=out)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The distances between all rows of x1 and all rows of x2."""
    if _C._has_torch_function_variadic(x1, x2):
        return _override(cdist, (x1, x2), x1, x2, p=p, compute_mode=compute_mode)
    modes = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _VF.cdist(x1, x2, p, modes[compute_mode])


def cartesian_prod(*tensors):
    """All combinations of the elements of 1-d tensors, one a row."""
    tensors = _tensors(tensors)
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return ember.stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


def block_diag(*tensors):
    """A matrix with the tensors on its diagonal, zero elsewhere; scalars and vectors count as one row."""
    tensors = _tensors(tensors)
    blocks = [atleast_2d(t) for t in tensors] or [ember.empty(1, 0)]
    for i, b in enumerate(blocks):
        if b.dim() != 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                               f"{b.dim()} dimensions")
    rows, columns = sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)
    dtype = blocks[0].dtype
    for b in blocks:
        dtype = ember.promote_types(dtype, b.dtype)
    result = ember.zeros(rows, columns, dtype=dtype, device=blocks[0].device)
    r = c = 0
    for b in blocks:
        result[r:r + b.shape[0], c:c + b.shape[1]] = b.to(dtype)
        r, c = r + b.shape[0], c + b.shape[1]
    return result


def _each(fn, tensors):
    tensors = _tensors(tensors)
    results = tuple(fn(t) for t in tensors)
    return results


def _at_least(fn):
    def public(*tensors):
        one = len(tensors) == 1 and isinstance(tensors[0], ember.Tensor)
        results = _each(fn, tensors)
        return results[0] if one else results
    return public


atleast_1d = _at_least(lambda t: t.reshape(1) if t.dim() == 0 else t)
atleast_2d = _at_least(lambda t: t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t)
atleast_3d = _at_least(lambda t: t.reshape(1, 1, 1) if t.dim() == 0 else t.unsqueeze(0).unsqueeze(-1) if t.dim() == 1
                       else t.unsqueeze(-1) if t.dim() == 2 else t)
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm over dim, all elements when dim is None: (sum of |x|^p)^(1 / p); p may be "fro", "nuc", inf, -inf.

    Result without dim, or with 1 there when keepdim. torch.linalg's norms are the newer functions.
    """
    if _C._has_torch_function_unary(input):
        return _override(norm, (input,), input, p=p, dim=dim, keepdim=keepdim, out=out, dtype=dtype)
    if p == "nuc":
        return ember.linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if p == "fro" or p is None:
        p = 2.0
    if isinstance(p, str):
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if isinstance(dim, int):
        dim = [dim]
    keywords = {} if out is None else {"out": out}
    return _C._linalg.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, **keywords)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements, sorted; with dim the distinct slices along it. return_inverse: also which each became;
    return_counts: also how often each occurs.

    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if _C._has_torch_function_unary(input):
        return _override(unique, (input,), input, sorted=sorted, return_inverse=return_inverse,
                         return_counts=return_counts, dim=dim)
    if dim is None:
        values, inverse, counts = _VF._unique2(input, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _VF.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _unique_results(values, inverse, counts, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements, or slices along dim, without those that equal the one before. return_inverse, return_counts: as unique."""
    if _C._has_torch_function_unary(input):
        return _override(unique_consecutive, (input,), input, return_inverse=return_inverse,
                         return_counts=return_counts, dim=dim)
    values, inverse, counts = _VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return _unique_results(values, inverse, counts, return_inverse, return_counts)


def _unique_results(values, inverse, counts, return_inverse, return_counts):
    wanted = [values] + [inverse] * bool(return_inverse) + [counts] * bool(return_counts)
    return values if len(wanted) == 1 else tuple(wanted)


def chain_matmul(*matrices, out=None):
    """The product of a chain of matrices."""
    matrices = _tensors(matrices)
    if _C._has_torch_function(matrices):
        return _override(chain_matmul, matrices, *matrices)
    return _VF.chain_matmul(matrices) if out is None else _VF.chain_matmul(matrices, out=out)


# ---------------------------------------------------------------- questions about metadata, as functions
def _asks(name):
    def public(input):
        if not isinstance(input, ember.Tensor) and not hasattr(type(input), "__torch_function__"):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return getattr(input, name)()
    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"What input.{name}() says, as a function: torch.{name}(input)."
    return public


for _name in ("numel", "is_floating_point", "is_complex", "is_signed", "is_inference", "is_conj", "is_neg",
              "resolve_conj", "resolve_neg"):
    globals()[_name] = _asks(_name)


def is_nonzero(input):
    """Whether a tensor of one element is not zero."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if input.numel() == 0 else
                           "Boolean value of Tensor with more than one value is ambiguous")
    return bool(input)


def is_same_size(input, other):
    return input.shape == other.shape


# What the operators of the same names say: arguments, dtypes, errors.
for _name in ("einsum", "split", "tensordot", "cdist", "norm", "nonzero", "unique_consecutive", "chain_matmul", "broadcast_tensors"):
    _text = getattr(_VF, _name).__doc__
    globals()[_name].__doc__ += f"\n\n{_text}" if _text else ""
del _name, _text
