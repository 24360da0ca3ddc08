"""References of table_maths.py: special functions by mpmath, statistics and products in plain numpy."""
import itertools
import math

import mpmath
import numpy as np
import references as r


def by_mpmath(function):
    """A function of real numbers, element by element, in mpmath's precision."""
    def on_arrays(*arrays):
        arrays = [np.asarray(a, np.float64) for a in arrays]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        if 0 in shape:
            return np.zeros(shape)
        return np.vectorize(lambda *x: float(function(*map(float, x))), otypes=[np.float64])(*arrays)
    return on_arrays


def xlogy(log):
    return lambda x, y: np.where(np.asarray(x) == 0, 0.0, np.asarray(x, np.float64) * log(np.asarray(y, np.float64)))


def ldexp(x, y):
    return x * 2.0 ** y


def second_kind(first, x, n):
    """p(k+1) = 2x p(k) - p(k-1) from 1 and `first`: Chebyshev's polynomials but those of the first kind."""
    p, q = 1.0, first
    for _ in range(int(n)):
        p, q = q, 2 * x * q - p
    return p


def polynomial(name):
    """Orthogonal polynomials by mpmath, where it has them."""
    made = {"t": lambda n, x: mpmath.chebyt(int(n), x), "u": lambda n, x: second_kind(2 * x, x, n),
            "v": lambda n, x: second_kind(2 * x - 1, x, n), "w": lambda n, x: second_kind(2 * x + 1, x, n),
            "h": lambda n, x: mpmath.hermite(int(n), x),
            "he": lambda n, x: mpmath.hermite(int(n), x / mpmath.sqrt(2)) * mpmath.mpf(2) ** (-mpmath.mpf(int(n)) / 2),
            "l": lambda n, x: mpmath.laguerre(int(n), 0, x), "p": lambda n, x: mpmath.legendre(int(n), x)}[name]
    return lambda x, n: made(n, x)


def sinc(x):
    return np.sinc(x) if not np.iscomplexobj(x) else np.where(x == 0, 1, np.sin(np.pi * x) / (np.pi * x))


def logit(x, eps=None):
    x = np.asarray(x, np.float64)
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


def frexp(x):
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent


def mvlgamma(x, p):
    lgamma = by_mpmath(mpmath.loggamma)
    return p * (p - 1) / 4 * math.log(math.pi) + sum(lgamma(x - k / 2) for k in range(p))


def accumulated(function):
    return lambda x, dim: function(x, dim, dtype=None if x.dtype.kind in "fc" else np.int64) if x.ndim else x


def logcumsumexp(x, dim):
    return x if x.ndim == 0 else np.log(np.cumsum(np.exp(x), dim))


def running(best):
    """cummax and cummin: the last position of the extreme so far."""
    def reduce(x, dim):
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        moved = np.moveaxis(x, dim, 0)
        values, index = np.array(moved), np.zeros(moved.shape, np.int64)
        for i in range(1, len(moved)):
            newer = best(moved[i], values[i - 1])
            values[i] = np.where(newer, moved[i], values[i - 1])
            index[i] = np.where(newer, i, index[i - 1])
        return np.moveaxis(values, 0, dim), np.moveaxis(index, 0, dim)
    return reduce


def difference(x, n=1, dim=-1, prepend=None, append=None):
    parts = [p for p in (prepend, x, append) if p is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


def trapezoid(y, x=None, dx=1, dim=-1):
    return np.trapezoid(y, x, dx, dim) if hasattr(np, "trapezoid") else np.trapz(y, x, dx, dim)


def cumulative_trapezoid(y, x=None, dx=1, dim=-1):
    width = dx if x is None else np.diff(x)
    return np.cumsum((y[..., 1:] + y[..., :-1]) * width / 2, -1)


def lower_median(x):
    return np.sort(x.reshape(-1))[(x.size - 1) // 2]


def median_along(x, dim, keepdim=False):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    k = (x.shape[dim] - 1) // 2
    at = np.take(np.argsort(x, dim, kind="stable"), [k], dim)
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (np.squeeze(values, dim), np.squeeze(at, dim))


def mode(x, dim=-1, keepdim=False):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    def one(line):
        values, counts = np.unique(line, return_counts=True)
        best = values[np.argmax(counts)]
        return best, np.nonzero(line == best)[0][-1]
    moved = np.moveaxis(x, dim, -1)
    rows = [one(line) for line in moved.reshape(-1, moved.shape[-1])]
    shape = moved.shape[:-1]
    values = np.array([v for v, _ in rows], x.dtype).reshape(shape)
    at = np.array([i for _, i in rows], np.int64).reshape(shape)
    return (np.expand_dims(values, dim), np.expand_dims(at, dim)) if keepdim else (values, at)


def renorm(x, p, dim, maxnorm):
    other = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norm = np.sum(np.abs(x) ** p, axis=other, keepdims=True) ** (1 / p)
    return x * np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


def cov(x, correction=1, fweights=None, aweights=None):
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def minmax(x, dim=None, keepdim=False):
    axis = dim if x.ndim else None
    return np.min(x, axis=axis, keepdims=keepdim), np.max(x, axis=axis, keepdims=keepdim)


def spread(x, dim=None, correction=1, keepdim=False):
    return r.deviation(x, dim, correction, keepdim), np.mean(x, axis=r.dims(x, dim), keepdims=keepdim)


def einsum(equation, tensors):
    """By the definition: all labels run over their sizes."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    names = inputs.split(",")
    size = {}
    for labels, t in zip(names, tensors):
        for label, n in zip(labels, t.shape):
            size[label] = max(n, size.get(label, 1))
    if "->" not in equation:
        output = "".join(sorted(c for c in size if inputs.count(c) == 1))
    kind = np.result_type(*tensors)
    out = np.zeros([size[c] for c in output], kind if kind.kind in "fc" else np.int64)
    for at in itertools.product(*(range(n) for n in size.values())):
        where = dict(zip(size, at))
        product = 1
        for labels, t in zip(names, tensors):
            product = product * t[tuple(where[c] if n > 1 else 0 for c, n in zip(labels, t.shape))]
        out[tuple(where[c] for c in output)] += product
    return out


def cross(a, b, dim=-1):
    a, b = np.broadcast_arrays(np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0))
    rows = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return np.moveaxis(np.array(rows), 0, dim)


def bilinear(a, b, w, bias=0):
    return np.einsum("...i,oij,...j->...o", a, w, b) + bias


def addbmm(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * np.matmul(a, b).sum(0)


def solve(a, b, left=True):
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    if vector:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b) if left else np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def cholesky(a, upper=False):
    low = np.linalg.cholesky(a)
    return np.conj(np.swapaxes(low, -1, -2)) if upper else low


def triangular(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return solve(a, b, left)


def matrix_norm(x, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(x, ord, tuple(dim), keepdim)


def norm(x, ord=None, dim=None, keepdim=False):
    return np.linalg.norm(x, ord, tuple(dim) if isinstance(dim, list) and len(dim) > 1 else dim[0] if isinstance(dim, list) else dim,
                          keepdim)


def quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.quantile(x, q, dim, keepdims=keepdim, method=interpolation)


def cdist(a, b, p=2.0):
    return np.sum(np.abs(a[..., :, None, :] - b[..., None, :, :]) ** p, -1) ** (1 / p)
