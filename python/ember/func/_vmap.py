"""vmap: a function of slices, over whole tensors."""

import functools

import ember
from ember.utils._pytree import tree_flatten, tree_unflatten

Tensor = ember.Tensor


def _name(func):
    return func.__name__ if hasattr(func, "__name__") else repr(func)


def _spread(dims, spec):
    """dims for each leaf: one number for a whole part of the tree. None: the structures do not fit."""
    flat = []

    def walk(d, node):
        leaf = node.num_leaves == 1 and not node.num_children
        if d is None or not isinstance(d, (tuple, list, dict)):
            flat.extend([d] * node.num_leaves)
            return True
        if leaf:
            return False
        children = [node.child(i) for i in range(node.num_children)]
        values = list(d.values()) if isinstance(d, dict) else list(d)
        same = node.type is type(d) and len(values) == len(children)
        return same and all([walk(v, c) for v, c in zip(values, children)])

    return flat if walk(dims, spec) else None


def _in_dims(func, in_dims, args):
    """(leaves, dim of each, structure, size of the mapped dim)."""
    name = _name(func)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (t, d) in enumerate(zip(leaves, dims)):
        if d is None:
            continue
        if not isinstance(d, int):
            raise ValueError(
                f"{head}Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(t, Tensor):
            raise ValueError(
                f"{head}Got in_dim={d} for an input but the input is of type {type(t)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -t.dim() <= d < t.dim():
            raise ValueError(
                f"{head}Got in_dim={d} for some input, but that input is a Tensor of dimensionality {t.dim()} so "
                f"expected in_dim to satisfy -{t.dim()} <= in_dim < {t.dim()}."
            )
        sizes.append(t.size(d))
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


def _out_dims(func, out_dims, spec):
    name = _name(func)
    for d in tree_flatten(out_dims)[0]:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )
    dims = _spread(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {_short(spec)}."
        )
    return dims


def _short(spec):
    return "*" if spec.num_leaves == 1 and not spec.num_children else spec


class _Draws:
    """Random numbers within a mapped call: refused, the same for each slice, or going on from slice to slice."""

    def __init__(self, randomness):
        if randomness not in ("error", "different", "same"):
            raise RuntimeError(
                f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
            )
        self.kind = randomness
        self.state = None if randomness == "different" else ember.get_rng_state()

    def before(self):
        if self.kind == "same":
            ember.set_rng_state(self.state)

    def after(self):
        if self.kind == "error" and not ember.equal(self.state, ember.get_rng_state()):
            ember.set_rng_state(self.state)
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """func, which takes slices, as a function of tensors with one more dim, at in_dims; results get it at out_dims.

    The function runs once for each slice (chunk_size changes nothing); derivatives go through, and vmap nests.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        leaves, dims, spec, size = _in_dims(func, in_dims, args)
        draws = _Draws(randomness)
        results, made = [], None
        for i in range(max(size, 1)):
            draws.before()
            pick = _slice if size else _nothing
            part = [t if d is None else pick(t, d, i) for t, d in zip(leaves, dims)]
            output, made = tree_flatten(func(*tree_unflatten(part, spec), **kwargs))
            for t in output:
                if not isinstance(t, Tensor):
                    raise ValueError(
                        f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(t)}. Did "
                        "you mean to set out_dims= to None for output?"
                    )
            draws.after()
            results.append(output)
        return tree_unflatten(_stacked(func, results, _out_dims(func, out_dims, made), size), made)

    return wrapper


def _slice(t, dim, i):
    return t.select(dim, i)


def _nothing(t, dim, i):
    """A slice of a tensor without slices: for its shape alone."""
    shape = list(t.shape)
    del shape[dim]
    return t.new_zeros(shape)


def _stacked(func, results, dims, size):
    out = []
    for j, dim in enumerate(dims):
        parts = [r[j] for r in results]
        if dim is None:
            if any(p is not parts[0] for p in parts):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
                )
            out.append(parts[0])
        elif not -parts[0].dim() - 1 <= dim <= parts[0].dim():
            n = parts[0].dim() + 1
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        elif size:
            out.append(ember.stack(parts).movedim(0, dim))
        else:
            out.append(parts[0].new_empty((0, *parts[0].shape)).movedim(0, dim))
    return out
