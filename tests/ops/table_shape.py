"""The shape family and writing at positions: tests/ops/table.py says what an entry is."""
import itertools

import numpy as np
import references as r
from makers import calls, unary
from subject import Arg, Dtype


def triangle_indices(function):
    def made(row, col, offset=0, dtype=None):
        return np.stack(function(row, offset, col))
    return made


def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    out = np.zeros(x.shape[:-1] + (n, n), x.dtype)
    at = np.arange(x.shape[-1])
    out[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def fill_diagonal(x, value, wrap=False):
    out = np.array(x)
    np.fill_diagonal(out, value, wrap)
    return out


def roll(x, shifts, dims=()):
    return np.roll(x, shifts, tuple(dims) if len(dims) else None)


def adjoint(x):
    return np.conj(np.swapaxes(x, -2, -1))


def repeat(x, repeats):
    return np.tile(x, repeats)


def repeat_interleave(x, times, dim=None, output_size=None):
    return np.repeat(x, times, dim)


def combinations(x, r=2, with_replacement=False):
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(pick(x, r)), x.dtype).reshape(-1, r)


def tensor_split(x, at, dim=0):
    return np.array_split(x, at if np.ndim(at) == 0 else [int(i) for i in at], dim)


def replaced(view):
    """A copy of x in which the view's values are src's. Positions are viewed, so that any view function serves."""
    def scattered(x, src, *args):
        out = np.array(x)
        out.reshape(-1)[view(np.arange(x.size).reshape(x.shape), *args)] = src
        return out
    return scattered


def unfold_backward(grad, sizes, dim, size, step):
    out = np.zeros(int(np.prod(sizes)), grad.dtype)
    np.add.at(out, r.unfold(np.arange(out.size).reshape(sizes), dim, size, step), grad)
    return out.reshape(sizes)


def reducing(kind, a, b):
    return {"sum": a + b, "add": a + b, "mean": a + b, "prod": a * b, "multiply": a * b,
            "amax": max(a, b) if kind == "amax" else a, "amin": min(a, b) if kind == "amin" else a}[kind]


def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    out, count = np.array(x), np.full(np.shape(x), int(include_self))
    fresh = np.zeros(np.shape(x), bool) if not include_self else np.ones(np.shape(x), bool)
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        to, value = tuple(to), src if np.ndim(src) == 0 else src[at]
        if out.dtype == np.bool_:
            out[to] = value if not fresh[to] else (out[to] and value) if reduce in ("prod", "amin") else (out[to] or value)
        else:
            out[to] = reducing(reduce, out[to], value) if fresh[to] else value
        fresh[to] = True
        count[to] += 1
    if reduce == "mean":
        out = np.where(count > 0, (np.floor_divide if out.dtype.kind in "iu" else np.true_divide)(out, np.maximum(count, 1)), out)
    return out


def index_reduce(x, dim, index, source, reduce, include_self=True):
    shape = [-1 if d == dim % x.ndim else 1 for d in range(x.ndim)]
    return scatter_reduce(x, dim, np.broadcast_to(np.reshape(index, shape), source.shape), source, reduce, include_self)


def index_copy(x, dim, index, source):
    out = np.moveaxis(np.array(x), dim, 0)
    out[index] = np.moveaxis(source, dim, 0)
    return np.moveaxis(out, 0, dim)


def index_fill(x, dim, index, value):
    out = np.moveaxis(np.array(x), dim, 0)
    out[index] = value
    return np.moveaxis(out, 0, dim)


def put(x, index, source, accumulate=False):
    out = np.array(x).reshape(-1)
    if accumulate:
        np.add.at(out, index.reshape(-1), source.reshape(-1))
    else:
        out[index.reshape(-1)] = source.reshape(-1)
    return out.reshape(x.shape)


def masked_scatter(x, mask, source):
    mask = np.broadcast_to(mask, x.shape)
    out = np.array(x)
    out[mask] = source.reshape(-1)[:mask.sum()]
    return out


def masked_scatter_backward(grad, mask, sizes):
    taken = grad[mask]
    return np.concatenate([taken, np.zeros(int(np.prod(sizes)) - taken.size, grad.dtype)]).reshape(sizes)


def nonzero_static(x, size, fill_value=-1):
    out = np.full((size, x.ndim), fill_value, np.int64)
    found = np.argwhere(x)[:size]
    out[:len(found)] = found
    return out


def take_along_dim(x, index, dim=None):
    return np.take_along_axis(x.reshape(-1), index.reshape(-1), 0) if dim is None else np.take_along_axis(x, index, dim)


def one_hot(x, num_classes=-1):
    return np.eye(num_classes if num_classes >= 0 else int(x.max()) + 1, dtype=np.int64)[x]


def cube(*args):
    return calls(lambda m: (m(2, 3, 4), *args))


def at(*i):
    return Arg(list(i), "int64")


def copies_of_views(E):
    strided = {"view_copy", "as_strided_copy", "view_copy.dtype"}
    copies = [
        ("alias_copy", unary, lambda x: x), ("detach_copy", calls(lambda m: (m(3, 4, diff=False),)), lambda x: x),
        ("view_copy", cube([6, -1]), lambda x, s: x.reshape(s)),
        ("view_copy.dtype", calls(lambda m: (m(3, 4), Dtype(m.dtype))), lambda x, _: x),
        ("select_copy.int", cube(1, -1), lambda x, d, i: np.take(x, i, d)),
        ("slice_copy.Tensor", cube(2, 0, 4, 2), r.slice_of), ("as_strided_copy", cube([2, 3], [1, 4], 1), r.as_strided),
        ("diagonal_copy", cube(1, 0, 2), np.diagonal), ("expand_copy", calls(lambda m: (m(3, 1), [2, -1, 4])), r.expand),
        ("permute_copy", cube([2, 0, -2]), np.transpose), ("transpose_copy.int", cube(0, 2), np.swapaxes),
        ("t_copy", calls(lambda m: (m(3, 4),)), np.transpose), ("squeeze_copy", calls(lambda m: (m(1, 3, 1),)), r.squeeze),
        ("squeeze_copy.dim", calls(lambda m: (m(1, 3, 1), -1)), r.squeeze),
        ("squeeze_copy.dims", calls(lambda m: (m(1, 3, 1), [0, 2])), r.squeeze),
        ("unsqueeze_copy", cube(1), np.expand_dims), ("unfold_copy", calls(lambda m: (m(3, 7), 1, 3, 2)), r.unfold),
        ("unbind_copy.int", cube(1), r.unbind), ("split_copy.Tensor", calls(lambda m: (m(5, 4), 2)), r.split),
        ("split_with_sizes_copy", calls(lambda m: (m(5, 4), [1, 4])), r.split),
    ]
    lists = {"unbind_copy.int", "split_copy.Tensor", "split_with_sizes_copy"}
    return [E(name, samples, ref, "f" if name in lists else "fo", layout=name not in strided) for name, samples, ref in copies]


def rearranged(E):
    lists = calls(lambda m: ([m(2, 3), m(2, 3)],), lambda m: ([m(4), m(4)],))
    pieces = lambda *args: calls(lambda m: (m(4, 6, 2), *args))  # noqa: E731
    return [
        E("diag", calls(lambda m: (m(4),), lambda m: (m(3, 4), 1), lambda m: (m(4), -2)), np.diag, "fo"),
        E("diagflat", calls(lambda m: (m(2, 3),), lambda m: (m(3), 1)), np.diagflat),
        E("diag_embed", calls(lambda m: (m(2, 3),), lambda m: (m(2, 3), -1, 0, 2)), diag_embed),
        E("linalg_diagonal", calls(lambda m: ((m(2, 3, 4),), {"offset": 1})),
          lambda x, offset: np.diagonal(x, offset, -2, -1)),
        E("fill_diagonal_", calls(lambda m: (m(3, 4), m.number()), lambda m: (m(7, 2), m.number(), True),
                                  lambda m: (m(3, 3, 3), m.number())), fill_diagonal,
          layout=False),
        E("tril_indices", calls(lambda m: (3, 4), lambda m: (5, 3, -2), lambda m: (2, 5, 2)), triangle_indices(np.tril_indices),
          result="int64", kinds="int"),
        E("triu_indices", calls(lambda m: (3, 4), lambda m: (5, 3, -2), lambda m: (2, 5, 2)), triangle_indices(np.triu_indices),
          result="int64", kinds="int"),
        E("fliplr", cube(), np.fliplr), E("flipud", calls(lambda m: (m(3, 4),), lambda m: (m(5),)), np.flipud),
        E("roll", calls(lambda m: (m(3, 4), [1]), lambda m: (m(3, 4), [1, -2], [0, 1]), lambda m: (m(2, 5), [7], [1])), roll),
        E("rot90", calls(lambda m: (m(3, 4),), lambda m: (m(2, 3, 4), 3, [1, 2]), lambda m: (m(3, 4), 2), lambda m: (m(3, 4), 4)),
          lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims)),
        E("moveaxis.intlist", cube([0, 1], [2, 0]), np.moveaxis), E("moveaxis.int", cube(0, -1), np.moveaxis),
        E("adjoint", cube(), adjoint),
        E("repeat", calls(lambda m: (m(2, 3), [2, 1]), lambda m: (m(2, 3), [2, 1, 3]), lambda m: (m(2), [0, 2]), lambda m: (m(), [3])),
          repeat),
        E("tile", calls(lambda m: (m(2, 3), [2]), lambda m: (m(2, 3), [2, 1, 3])), np.tile),
        E("repeat_interleave.Tensor", calls(lambda m: (at(1, 0, 3),)), lambda t: np.repeat(np.arange(len(t)), t),
          result="int64", kinds="int"),
        E("repeat_interleave.self_Tensor", calls(lambda m: (m(3, 4), at(1, 0, 2), 0), lambda m: (m(2, 2), at(2))),
          repeat_interleave),
        E("repeat_interleave.self_int", calls(lambda m: (m(3, 4), 2), lambda m: (m(3, 4), 3, 1)), repeat_interleave),
        E("hstack", lists, np.hstack, "fo"), E("vstack", lists, np.vstack, "fo"), E("row_stack", lists, np.vstack, "fo"),
        E("dstack", lists, np.dstack, "fo"), E("column_stack", lists, np.column_stack, "fo"),
        E("combinations", calls(lambda m: (m(4),), lambda m: (m(3), 2, True), lambda m: (m(4), 3), lambda m: (m(2), 3)), combinations),
        E("vander", calls(lambda m: (m(3),), lambda m: (m(4), 3, True)), lambda x, n=None, inc=False: np.vander(
            x.astype(np.int64) if x.dtype == np.bool_ else x, n, inc), result="int_of_integral", scale=4),
        E("linalg_vander", calls(lambda m: (m(3),), lambda m: ((m(2, 4),), {"N": 3})),
          lambda x, N=None: np.stack([x ** i for i in range(x.shape[-1] if N is None else N)], -1), result="int_of_integral",
          scale=4, kinds="int float complex"),
        E("tensor_split.sections", pieces(3), tensor_split), E("tensor_split.indices", pieces([1, 3], 1), tensor_split),
        E("tensor_split.tensor_indices_or_sections", calls(lambda m: (m(4, 6), at(1, 3), 1), lambda m: (m(4, 6), Arg(3, "int64"))),
          lambda x, t, dim=0: tensor_split(x, t if np.ndim(t) else int(t), dim)),
        E("hsplit.int", pieces(3), np.hsplit), E("hsplit.array", pieces([1, 4]), np.hsplit),
        E("vsplit.int", pieces(2), np.vsplit), E("vsplit.array", pieces([1]), np.vsplit),
        E("dsplit.int", pieces(2), np.dsplit), E("dsplit.array", pieces([1]), np.dsplit),
        E("unsafe_split.Tensor", calls(lambda m: (m(5, 4), 2)), r.split),
        E("unsafe_split_with_sizes", calls(lambda m: (m(5, 4), [1, 4])), r.split),
        E("unsafe_chunk", calls(lambda m: (m(5, 4), 2)), r.chunk),
        E("select_scatter", calls(lambda m: (m(2, 3, 4), m(2, 4), 1, -1)), replaced(lambda i, d, k: np.take(i, k, d))),
        E("slice_scatter", calls(lambda m: (m(5, 4), m(2, 4), 0, 1, 4, 2)), replaced(r.slice_of)),
        E("diagonal_scatter", calls(lambda m: (m(3, 4), m(3), 1)), replaced(np.diagonal)),
        E("as_strided_scatter", calls(lambda m: (m(3, 4), m(2, 2), [2, 2], [4, 1], 1)), replaced(r.as_strided), layout=False),
        E("unfold_backward", calls(lambda m: (m(3, 3, 3), [3, 7], 1, 3, 2), lambda m: (m(3, 6, 2), [3, 7], 1, 2, 1)), unfold_backward),
        E("logspace", calls(lambda m: ((0, 3, 4, 2.0), {"dtype": Dtype(m.dtype)}), lambda m: ((1, 2, 1), {"dtype": Dtype(m.dtype)})),
          lambda a, b, n, base=10.0, dtype=None: np.logspace(a, b, n, base=base), "fo", scale=4, kinds="int float complex"),
        E("view_as_real_copy", unary, lambda x: np.stack([x.real, x.imag], -1), result="real"),
        E("view_as_complex_copy", calls(lambda m: (m(3, 4, 2, diff=False),)),
          lambda x: x[..., 0] + 1j * x[..., 1], result="complex",
          layout=False),
        E("narrow_copy", cube(1, 1, 2), lambda x, d, s, n: r.slice_of(x, d, s, s + n), "fo"),
    ]


def written(E):
    twice = Arg([[0, 2, 1], [2, 2, 0]], "int64")
    reductions = [("sum", True), ("mean", True), ("prod", False), ("amax", True), ("amin", False), ("mean", False)]
    return [
        E("scatter.reduce", calls(lambda m: ((m(3, 4, diff=False), 1, twice, m(2, 3, diff=False)), {"reduce": "add"}),
                                  lambda m: ((m(3, 4, diff=False), 0, twice, m(2, 3, diff=False)), {"reduce": "multiply"})),
          scatter_reduce, "fi", kinds="int float"),
        E("scatter.value_reduce", calls(lambda m: ((m(3, 4, diff=False), 1, twice, m.number()), {"reduce": "add"}),
                                        lambda m: ((m(3, 4, diff=False), 0, twice, m.number()), {"reduce": "multiply"})), scatter_reduce,
          "fi", kinds="int float"),
        E("scatter_reduce.two", calls(*[lambda m, k=k, s=s: ((m(3, 4), 1, twice, m(2, 3), k), {"include_self": s})
                                        for k, s in reductions]), scatter_reduce, "fio", scale=4, kinds="int float"),
        E("index_reduce", calls(*[lambda m, k=k, s=s: ((m(3, 4), 0, at(0, 2, 2), m(3, 4), k), {"include_self": s})
                                  for k, s in reductions if k != "sum"]), index_reduce, "fio", scale=4, kinds="int float"),
        E("index_copy", calls(lambda m: (m(3, 4), 0, at(2, 0), m(2, 4)), lambda m: (m(3, 4), 1, at(3), m(3, 1))), index_copy, "fio"),
        *[E(name, calls(lambda m: (m(3, 4), 0, at(2, 0), m.number()), lambda m: (m(3, 4), -1, at(-1), m.number())), index_fill)
          for name in ("index_fill.int_Scalar", "index_fill_.int_Scalar")],
        *[E(name, calls(lambda m: (m(3, 4), 0, at(2, 0), m())), index_fill)
          for name in ("index_fill.int_Tensor", "index_fill_.int_Tensor")],
        *[E(name, calls(lambda m: (m(3, 4), at(0, 7, -1), m(3)), lambda m: (m(3, 4), at(5, 5), m(2), True)), put)
          for name in ("put", "put_")],
        *[E(name, calls(lambda m: (m(3, 4), Arg([True, False, True, True], "bool"), m(12))), masked_scatter)
          for name in ("masked_scatter", "masked_scatter_")],
        E("masked_scatter_backward", calls(lambda m: (m(2, 2), Arg([[True, False], [True, True]], "bool"), [5])),
          masked_scatter_backward),
        E("nonzero_static", calls(lambda m: ((m(3, 4, low=0),), {"size": 5}), lambda m: ((m(3),), {"size": 4, "fill_value": 7})),
          nonzero_static, "fo", "int64"),
        E("nonzero_numpy", calls(lambda m: (m(3, 4, low=0),)), np.nonzero, result="int64"),
        E("argwhere", calls(lambda m: (m(3, 4, low=0),)), np.argwhere, result="int64"),
        E("take_along_dim", calls(lambda m: (m(3, 4), Arg([[1, 0], [3, 3], [2, 1]], "int64"), 1), lambda m: (m(3, 4), at(0, 11))),
          take_along_dim, "fo", layout=False),
        E("one_hot", calls(lambda m: (at(0, 2, 1),), lambda m: (at(0, 2, 1), 5)), one_hot, result="int64", kinds="int"),
    ]


def groups(E):
    return {"shape": rearranged(E), "copies of views": copies_of_views(E), "puts": written(E)}
