"""Order: sorting, the k largest, distinct values, search, counting. tests/ops/table.py says what an entry is."""
import numpy as np
from makers import calls
from subject import Arg


def order(x, dim, descending):
    """numpy's stable order; descending keeps ties in order, too."""
    x = x.astype(np.int64) if x.dtype == np.bool_ else x
    return np.argsort(-x if descending else x, axis=dim, kind="stable")


def sort(x, dim=-1, descending=False, stable=None):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    at = order(x, dim, descending)
    return np.take_along_axis(x, at, dim), at


def topk(x, k, dim=-1, largest=True, sorted=True):
    values, at = sort(x, dim, largest)
    return np.take(values, np.arange(k), dim), np.take(at, np.arange(k), dim)


def kthvalue(x, k, dim=-1, keepdim=False):
    values, at = sort(x, dim)
    pick = [k - 1] if keepdim else k - 1
    return np.take(values, pick, dim), np.take(at, pick, dim)


def unique(x, sorted=True, return_inverse=False, return_counts=False, axis=None):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    none = np.zeros(0, np.int64)
    shape = x.shape if axis is None else x.shape[axis]
    return values, inverse.reshape(shape) if return_inverse else none, counts if return_counts else none


def unique_dim(x, dim, *_):
    return unique(x, True, True, True, dim)


def consecutive(x, return_inverse=False, return_counts=False, dim=None):
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    starts = np.concatenate([[True], np.any(rows[1:] != rows[:-1], axis=1)])
    inverse, counts = np.cumsum(starts) - 1, np.diff(np.append(np.flatnonzero(starts), len(starts)))
    none = np.zeros(0, np.int64)
    if dim is not None:
        return np.take(x, np.flatnonzero(starts), dim), inverse, counts
    return (x.reshape(-1)[starts], inverse.reshape(x.shape) if return_inverse else none, counts if return_counts else none)


def searchsorted(seq, x, out_int32=False, right=False, side=None, sorter=None):
    side = side or ("right" if right else "left")
    if seq.ndim == 1:
        return np.searchsorted(seq if sorter is None else seq[sorter], x, side)
    rows = zip(seq.reshape(-1, seq.shape[-1]), x.reshape(-1, x.shape[-1]))
    return np.stack([np.searchsorted(s, v, side) for s, v in rows]).reshape(x.shape)


def bucketize(x, boundaries, out_int32=False, right=False):
    return np.searchsorted(boundaries, x, "right" if right else "left")


def isin(elements, tests, assume_unique=False, invert=False):
    return np.isin(elements, tests, invert=invert)


def bincount(x, weights=None, minlength=0):
    return np.bincount(x, weights, minlength)


def histc(x, bins=100, min=0, max=0):
    low, high = (x.min(), x.max()) if min == max else (min, max)
    return np.histogram(x, bins, (low, high))[0]


def histogram(x, bins=100, range=None, weight=None, density=False):
    return np.histogram(x, bins, range, weights=weight, density=density)


def drawn_positions(results, args, kwargs):
    weights, count, again = args[0].values, args[1], len(args) > 2 and args[2]
    for row, w in zip(np.atleast_2d(results[0]), np.atleast_2d(weights)):
        assert len(row) == count and np.all((row >= 0) & (row < len(w))) and np.all(w[row] > 0)
        assert again or len(set(row.tolist())) == count


def groups(E):
    sorts = calls(lambda m: (m(3, 7),), lambda m: (m(3, 4, 2), 1, True), lambda m: (m(2, 50), 0), lambda m: (m(90),),
                  lambda m: (m(), 0))
    stable = calls(lambda m: ((m(3, 7),), {"stable": True}),
                   lambda m: ((m(70),), {"stable": None, "dim": 0, "descending": True}))
    repeated = lambda m: Arg([2, 1, 2, 2, 0, 1], diff=False) if m.kind != "bool" else m(6)  # noqa: E731
    rows = lambda m: Arg([[1, 0], [0, 1], [1, 0], [1, 0]], diff=False) if m.kind != "bool" else m(4, 2)  # noqa: E731
    fixed = lambda m, *s: m(*s, diff=False)  # noqa: E731
    edges = lambda m: Arg([0, 1, 1, 2]) if m.kind != "bool" else m(4)  # noqa: E731
    two = lambda m: Arg([[0, 1, 2], [1, 2, 3]]) if m.kind != "bool" else m(2, 3)  # noqa: E731
    return {"sorting": [
        E("sort", sorts, sort, "fo", ("same", "int64"), kinds="bool int float"),
        E("sort.stable", stable, sort, "fo", ("same", "int64"), kinds="bool int float"),
        E("argsort", sorts, lambda x, dim=-1, d=False: sort(x, dim, d)[1], result="int64", kinds="bool int float"),
        E("argsort.stable", calls(lambda m: ((m(3, 7),), {"stable": True})), lambda x, stable: sort(x)[1], "fo", "int64",
          kinds="bool int float"),
        E("msort", calls(lambda m: (m(5, 3),)), lambda x: np.sort(x, 0), "fo", kinds="bool int float"),
        E("topk", calls(lambda m: (m(3, 7), 2), lambda m: (m(4, 3), 3, 0, False), lambda m: (m(200), 3)), topk, "fo",
          ("same", "int64"), kinds="float"),
        E("kthvalue", calls(lambda m: (m(3, 7), 2), lambda m: (m(60), 31), lambda m: (m(4, 3), 3, 0, True)), kthvalue, "fo",
          ("same", "int64"), kinds="float"),
        E("_unique2", calls(lambda m: (repeated(m), True, True, True), lambda m: (fixed(m, 3, 4),)), unique,
          result=("same", "int64", "int64"), kinds="bool int float"),
        E("_unique", calls(lambda m: (repeated(m), True, True)), lambda *a: unique(*a)[:2], result=("same", "int64"),
          kinds="bool int float"),
        E("unique_dim", calls(lambda m: (rows(m), 0, True, True, True), lambda m: (rows(m), 1)), unique_dim,
          result=("same", "int64", "int64"), kinds="bool int float"),
        E("unique_consecutive", calls(lambda m: (repeated(m), True, True), lambda m: (rows(m), True, True, 0), lambda m: (fixed(m, 3, 4),)),
          consecutive, result=("same", "int64", "int64"), kinds="bool int float"),
        E("unique_dim_consecutive", calls(lambda m: (rows(m), 0, True, True)), lambda x, dim, i, c: consecutive(x, i, c, dim),
          result=("same", "int64", "int64"), kinds="bool int float"),
        E("searchsorted.Tensor", calls(lambda m: (edges(m), m(3, 5)), lambda m: ((edges(m), m(11)), {"right": True}),
                                       lambda m: (two(m), m(2, 4)), lambda m: ((Arg([2, 0, 1]), m(3)),
                                                                               {"sorter": Arg([1, 2, 0], "int64")})),
          searchsorted, "fo", "int64", kinds="int float"),
        E("searchsorted.Scalar", calls(lambda m: (edges(m), m.number(1)), lambda m: ((edges(m), 1), {"side": "right"})),
          searchsorted, "fo", "int64", kinds="int float"),
        E("bucketize.Tensor", calls(lambda m: (m(3, 5), edges(m)), lambda m: ((m(4), edges(m)), {"right": True})), bucketize, "fo",
          "int64", kinds="int float"),
        E("bucketize.Scalar", calls(lambda m: (m.number(1), edges(m))), bucketize, result="int64", kinds="int float"),
        E("isin.Tensor_Tensor", calls(lambda m: (m(3, 5), repeated(m)), lambda m: ((m(30), m(20)), {"invert": True})), isin, "fo",
          "bool", kinds="int float"),
        E("isin.Tensor_Scalar", calls(lambda m: (repeated(m), 2)), isin, "fo", "bool", kinds="int float"),
        E("isin.Scalar_Tensor", calls(lambda m: (2, repeated(m))), isin, "fo", "bool", kinds="int float"),
        E("bincount", calls(lambda m: (repeated(m),), lambda m: (repeated(m), None, 5)), bincount, result="int64", kinds="int"),
        E("histc", calls(lambda m: (m(3, 7), 4), lambda m: (m(30), 5, -2, 2)), histc, "fo", kinds="float"),
        E("histogram.bin_ct", calls(lambda m: (fixed(m, 30), 4),
                                    lambda m: ((fixed(m, 30), 5), {"range": [-2.0, 2.0], "weight": m.positive(30, diff=False)}),
                                    lambda m: ((fixed(m, 30), 4), {"density": True})), histogram, "fo", kinds="float", scale=4),
        E("histogram.bins_tensor", calls(lambda m: (fixed(m, 30), Arg([-2, -1, 0.5, 2], diff=False))), histogram, "fo",
          kinds="float"),
        E("multinomial", calls(lambda m: (m.positive(3, 5), 2), lambda m: (m.positive(4), 7, True), lambda m: (m.positive(2, 4), 1)),
          lambda x, n, *_: np.zeros(x.shape[:-1] + (n,)), "f", "int64", random=drawn_positions, kinds="float"),
        E("trace", calls(lambda m: (m(3, 4),)), lambda x: np.trace(x), result="sum", kinds="int float complex"),
    ]}
