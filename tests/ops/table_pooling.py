"""Pooling and padding: samples, and references that walk every window in plain numpy."""
import itertools

import numpy as np
from makers import calls
from subject import Arg


# ---- sliding windows ---------------------------------------------------------------------------------------------

def spread(value, n):
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * n if len(value) == 1 else value


def out_size(size, kernel, stride, pad, dilation, ceil):
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    n = (-(-span // stride) if ceil else span // stride) + 1
    return n - 1 if ceil and (n - 1) * stride >= size + pad else n


def windows(shape, kernel, stride, pad, dilation, ceil):
    """(position of the output, positions of the input that its window sees) for one plane of `shape`."""
    n = len(shape)
    kernel, pad, dilation = spread(kernel, n), spread(pad, n), spread(dilation, n)
    stride = spread(stride, n) if stride not in (None, []) else kernel
    sizes = [out_size(*a, ceil) for a in zip(shape, kernel, stride, pad, dilation)]
    for at in itertools.product(*map(range, sizes)):
        first = [o * s - p for o, s, p in zip(at, stride, pad)]
        taps = [[f + k * d for k in range(n_k) if 0 <= f + k * d < size]
                for f, n_k, d, size in zip(first, kernel, dilation, shape)]
        yield at, sizes, taps, first, kernel, pad


def by_planes(n, function):
    """function(plane) over the planes of an array of n spatial dims, results stacked again."""
    def on_array(x, *args, **kwargs):
        x = np.asarray(x)
        planes = x.reshape((-1, *x.shape[x.ndim - n:]))
        made = [function(plane, *args, **kwargs) for plane in planes]
        join = lambda parts: np.stack(parts).reshape(x.shape[:x.ndim - n] + parts[0].shape)  # noqa: E731
        return tuple(join(parts) for parts in zip(*made)) if isinstance(made[0], tuple) else join(made)
    return on_array


def max_plane(x, kernel, stride=None, pad=0, dilation=1, ceil=False):
    flat, best, where = x.reshape(-1), {}, {}
    for at, sizes, taps, *_ in windows(x.shape, kernel, stride, pad, dilation, ceil):
        places = [np.ravel_multi_index(p, x.shape) for p in itertools.product(*taps)]
        where[at] = max(places, key=lambda i: flat[i])  # the first of several
        best[at] = flat[where[at]]
    fill = lambda d: np.array([d[at] for at in sorted(d)]).reshape(sizes)  # noqa: E731
    return fill(best), fill(where)


def avg_plane(x, kernel, stride=None, pad=0, ceil=False, include=True, divisor=None):
    made = {}
    for at, sizes, taps, first, k, p in windows(x.shape, kernel, stride, pad, 1, ceil):
        seen = x[np.ix_(*taps)].sum() if all(taps) else 0
        with_pad = np.prod([min(f + n, size + q) - f for f, n, size, q in zip(first, k, x.shape, p)])
        count = divisor or (with_pad if include else np.prod([len(t) for t in taps]))
        made[at] = int(seen / count) if x.dtype.kind == "i" else seen / count
    return np.array([made[at] for at in sorted(made)]).reshape(sizes)


def linear_backward(forward):
    """The transpose of a linear function of one array, from its values at unit arrays."""
    def backward(grad, x, *args):
        x, made = np.asarray(x, np.float64), np.zeros(np.shape(x))
        for i in range(made.size):
            unit = np.zeros(made.size)
            unit[i] = 1
            made.reshape(-1)[i] = np.sum(np.asarray(grad) * forward(unit.reshape(x.shape), *args))
        return made
    return backward


def scatter_planes(n):
    """grad to where indices say, planes of x's sizes."""
    def backward(grad, x, *rest):
        indices, made = np.asarray(rest[-1], np.int64), np.zeros(np.shape(x))
        planes = made.reshape(-1, int(np.prod(x.shape[x.ndim - n:])))
        for plane, g, at in zip(planes, grad.reshape(len(planes), -1), indices.reshape(len(planes), -1)):
            np.add.at(plane, at, g)
        return made
    return backward


# ---- adaptive, fractional, unpooling -----------------------------------------------------------------------------

def shares(size, n):
    return [range(i * size // n, -(-(i + 1) * size // n)) for i in range(n)]


def adaptive(pick):
    def plane(x, out):
        cells = list(itertools.product(*(shares(s, n) for s, n in zip(x.shape, out))))
        made = [pick(x, cell) for cell in cells]
        if isinstance(made[0], tuple):
            return tuple(np.array(v).reshape(out) for v in zip(*made))
        return np.array(made).reshape(out)
    return plane


def mean_of(x, cell):
    return x[np.ix_(*cell)].mean()


def max_of(x, cell):
    places = [np.ravel_multi_index(p, x.shape) for p in itertools.product(*cell)]
    best = max(places, key=lambda i: x.reshape(-1)[i])
    return x.reshape(-1)[best], best


def fractional(n):
    def start(sample, size, out, kernel):
        alpha = (size - kernel) / (out - 1) if out > 1 else 0
        return [int((i + sample) * alpha) - int(sample * alpha) for i in range(out - 1)] + [size - kernel]

    def whole(x, kernel, out, samples):
        lead, shape = x.shape[:-n], x.shape[-n:]
        planes, values, where = x.reshape(-1, *shape), [], []
        for plane, sample in zip(planes, samples.reshape(-1, n)):
            sample = sample[::-1] if n == 2 else sample
            begins = [start(s, *dims) for s, dims in zip(sample, zip(shape, out, kernel))]
            for at in itertools.product(*begins):
                value, place = max_of(plane, [range(b, b + k) for b, k in zip(at, kernel)])
                values.append(value)
                where.append(place)
        return np.array(values).reshape(*lead, *out), np.array(where).reshape(*lead, *out)
    return whole


def unpool(n):
    def whole(x, indices, size, *_):
        made = np.zeros((*x.shape[:-n], *size))
        planes = made.reshape(-1, int(np.prod(size)))
        for plane, values, at in zip(planes, x.reshape(len(planes), -1), indices.reshape(len(planes), -1)):
            plane[at] = values
        return made
    return whole


# ---- padding -----------------------------------------------------------------------------------------------------

NUMPY_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(x, pad, mode="constant", value=None):
    x = np.asarray(x)
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    for dim, (left, right) in enumerate(sides):
        x = x[(slice(None),) * dim + (slice(max(-left, 0), x.shape[dim] - max(-right, 0)),)]
    grow = [(max(left, 0), max(right, 0)) for left, right in sides]
    more = {"constant_values": value or 0} if mode == "constant" else {}
    return np.pad(x, grow, NUMPY_MODES[mode], **more)


def constant(x, pad, value=0):
    return padded(x, pad, "constant", value)


# ---- the table ---------------------------------------------------------------------------------------------------

def distinct(m, *shape, diff=True):
    """Values without ties, so that maxima have one place, and far enough apart for differences."""
    n = int(np.prod(shape))
    values = m.random.permutation(n).reshape(shape)
    if m.kind == "float":
        return Arg((values - n // 2 + 0.125) / (16.0 if n > 64 else 4.0), diff=diff)
    return Arg(values % 120 + 1, diff=diff)


def at_maxima(m, n, shape, *args):
    """Indices that max pooling of such an input gives: no place twice where windows do not overlap."""
    return Arg(by_planes(n, max_plane)(distinct(m, *shape).values, *args)[1], "int64")


def max_pools():
    x1, x2, x3 = (2, 3, 7), (2, 2, 5, 6), (1, 2, 4, 5, 4)
    one = calls(lambda m: (distinct(m, *x1), [3], [2], [1]), lambda m: (distinct(m, 3, 8), [2]),
                lambda m: (distinct(m, *x1), [2], [2], [0], [2], True))
    two = calls(lambda m: (distinct(m, *x2), [2, 2]), lambda m: (distinct(m, *x2), [3, 2], [2, 1], [1, 0]),
                lambda m: (distinct(m, 2, 5, 5), [2, 2], [2, 2], [0, 1], [2, 1], True))
    three = calls(lambda m: (distinct(m, *x3), [2, 2, 2]), lambda m: (distinct(m, *x3), [2, 3, 2], [2, 2, 1], [1, 1, 0]),
                  lambda m: (distinct(m, 2, 3, 5, 5), [2, 2, 2], [1, 2, 2], [0, 0, 1], [1, 2, 1], True))
    value = lambda n: lambda *a: by_planes(n, max_plane)(*a)[0]  # noqa: E731
    both = lambda n: by_planes(n, max_plane)  # noqa: E731
    back2 = calls(lambda m: (m(2, 2, 2, 3), m(*x2, diff=False), [2, 2], [2, 2], [0, 0], [1, 1], False,
                             at_maxima(m, 2, x2, [2, 2])))
    back3 = calls(lambda m: (m(1, 2, 2, 2, 2), m(*x3, diff=False), [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False,
                             at_maxima(m, 3, x3, [2, 2, 2])))
    return one, two, three, value, both, back2, back3


def groups(E):
    one, two, three, value, both, back2, back3 = max_pools()
    x2, x3 = (2, 2, 5, 6), (1, 2, 4, 5, 4)
    avg1 = calls(lambda m: (m(2, 3, 7), [3], [2], [1]), lambda m: (m(3, 8), [2]),
                 lambda m: (m(2, 3, 7), [3], [2], [1], True, False))
    avg2 = calls(lambda m: (m(*x2), [2, 2]), lambda m: (m(*x2), [3, 2], [2, 1], [1, 1], False, False),
                 lambda m: (m(2, 5, 5), [2, 3], [2, 2], [1, 1], True, True), lambda m: (m(*x2), [2, 2], [], 0, True, True,
                                                                                        3))
    avg3 = calls(lambda m: (m(*x3), [2, 2, 2]), lambda m: (m(*x3), [2, 3, 2], [2, 2, 1], [1, 1, 1], False, False),
                 lambda m: (m(2, 4, 5, 5), [2, 3, 2], [2, 2, 2], [1, 1, 0], True, True, 5))
    avg2_back = calls(lambda m: (m(2, 2, 2, 3), m(*x2, diff=False), [2, 2], [2, 2], [0, 0], False, True, None),
                      lambda m: (m(2, 2, 3, 7), m(*x2, diff=False), [3, 2], [2, 1], [1, 1], False, False, None))
    avg3_back = calls(lambda m: (m(1, 2, 2, 2, 2), m(*x3, diff=False), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 3))
    pools = [
        E("max_pool1d", one, value(1)), E("max_pool1d_with_indices", one, both(1), result=("same", "int64")),
        E("max_pool2d", two, value(2)), E("max_pool3d", three, value(3)),
        E("max_pool2d_with_indices", two, both(2), "fo", ("same", "int64")),
        E("max_pool3d_with_indices", three, both(3), "fo", ("same", "int64")),
        E("max_pool2d_with_indices_backward", back2, scatter_planes(2), "fo"),
        E("max_pool3d_with_indices_backward", back3, scatter_planes(3), "fo"),
        E("avg_pool1d", avg1, by_planes(1, avg_plane), "fo", scale=2),
        E("avg_pool2d", avg2, by_planes(2, avg_plane), "fo", scale=2),
        E("avg_pool3d", avg3, by_planes(3, avg_plane), "fo", scale=2),
        E("avg_pool2d_backward", avg2_back, linear_backward(by_planes(2, avg_plane_of(2))), "fo", scale=2, kinds="float"),
        E("avg_pool3d_backward", avg3_back, linear_backward(by_planes(3, avg_plane_of(3))), "fo", scale=2, kinds="float"),
        *adaptive_entries(E), *fractional_entries(E),
    ]
    return {"pooling": pools, "padding": padding_entries(E)}


def avg_plane_of(n):
    return lambda x, kernel, stride, pad, ceil, include, divisor: avg_plane(x, kernel, stride, pad, ceil, include, divisor)


def adaptive_entries(E):
    mean, largest = adaptive(mean_of), adaptive(max_of)
    mean2, mean3 = by_planes(2, mean), by_planes(3, mean)
    two = calls(lambda m: (m(2, 3, 5, 7), [3, 2]), lambda m: (m(2, 4, 4), [4, 6]))
    three = calls(lambda m: (m(1, 2, 4, 5, 3), [3, 2, 2]), lambda m: (m(2, 3, 4, 4), [2, 4, 5]))
    whole2 = calls(lambda m: (m(2, 3, 5, 7), [3, 2]), lambda m: (m(2, 3, 5, 4), [1, 1]))
    whole3 = calls(lambda m: (m(1, 2, 4, 5, 3), [3, 2, 2]), lambda m: (m(2, 2, 3, 2, 4), [1, 1, 1]))
    back = lambda ref: lambda g, x: linear_backward(lambda u: ref(u, g.shape[u.ndim - n_of(ref):]))(g, x)  # noqa: E731
    n_of = lambda ref: 2 if ref is mean2 else 3  # noqa: E731
    max2 = calls(lambda m: (distinct(m, 2, 3, 5, 7), [3, 2]), lambda m: (distinct(m, 2, 4, 4), [4, 6]))
    max3 = calls(lambda m: (distinct(m, 1, 2, 4, 5, 3), [3, 2, 2]), lambda m: (distinct(m, 2, 3, 4, 4), [2, 4, 5]))
    return [
        E("adaptive_avg_pool1d", calls(lambda m: (m(2, 3, 7), [3]), lambda m: (m(3, 5), [5])), by_planes(1, mean), "fo",
          scale=2),
        E("adaptive_avg_pool2d", whole2, mean2, "fo", scale=2, kinds="float"),
        E("adaptive_avg_pool3d", whole3, mean3, "fo", scale=2, kinds="float"),
        E("_adaptive_avg_pool2d", two, mean2, "fo", scale=2), E("_adaptive_avg_pool3d", three, mean3, "fo", scale=2),
        E("_adaptive_avg_pool2d_backward", calls(lambda m: (m(2, 3, 3, 2), m(2, 3, 5, 7, diff=False))), back(mean2), "fo",
          scale=2),
        E("_adaptive_avg_pool3d_backward", calls(lambda m: (m(1, 2, 3, 2, 2), m(1, 2, 4, 5, 3, diff=False))), back(mean3),
          "fo", scale=2),
        E("adaptive_max_pool1d", calls(lambda m: (distinct(m, 2, 3, 7), [3]), lambda m: (distinct(m, 3, 5), [5])),
          by_planes(1, largest), result=("same", "int64")),
        E("adaptive_max_pool2d", max2, by_planes(2, largest), "fo", ("same", "int64")),
        E("adaptive_max_pool3d", max3, by_planes(3, largest), "fo", ("same", "int64")),
        E("adaptive_max_pool2d_backward", calls(
            lambda m: (m(2, 3, 3, 2), m(2, 3, 5, 7, diff=False), m.index(2, 3, 3, 2, high=35))), scatter_planes(2), "fo"),
        E("adaptive_max_pool3d_backward", calls(
            lambda m: (m(1, 2, 3, 2, 2), m(1, 2, 4, 5, 3, diff=False), m.index(1, 2, 3, 2, 2, high=60))),
          scatter_planes(3), "fo"),
    ]


def fractional_entries(E):
    part = lambda m, *shape: Arg(m.random.randint(1, 8, shape) / 8.0, diff=False)  # noqa: E731  exact in every dtype
    unique = lambda m, n, *shape: Arg(np.stack([m.random.permutation(n)[:int(np.prod(shape[2:]))].reshape(shape[2:])
                                                for _ in range(shape[0] * shape[1])]).reshape(shape), "int64")  # noqa: E731
    return [
        E("fractional_max_pool2d", calls(lambda m: (distinct(m, 2, 3, 6, 7), [2, 3], [3, 4], part(m, 2, 3, 2))),
          fractional(2), "fo", ("same", "int64")),
        E("fractional_max_pool3d", calls(lambda m: (distinct(m, 1, 2, 4, 6, 5), [2, 3, 2], [2, 3, 3], part(m, 1, 2, 3))),
          fractional(3), "fo", ("same", "int64")),
        E("fractional_max_pool2d_backward", calls(
            lambda m: (m(2, 3, 3, 4), m(2, 3, 6, 7, diff=False), [2, 3], [3, 4], m.index(2, 3, 3, 4, high=42))),
          scatter_planes(2), "fo"),
        E("fractional_max_pool3d_backward", calls(
            lambda m: (m(1, 2, 2, 3, 3), m(1, 2, 4, 6, 5, diff=False), [2, 3, 2], [2, 3, 3],
                       m.index(1, 2, 2, 3, 3, high=120))), scatter_planes(3), "fo"),
        E("max_unpool2d", calls(lambda m: (m(2, 3, 2, 3), unique(m, 30, 2, 3, 2, 3), [5, 6])), unpool(2), "fo"),
        E("max_unpool3d", calls(lambda m: (m(1, 2, 2, 2, 2), unique(m, 60, 1, 2, 2, 2, 2), [3, 4, 5], [2, 2, 2],
                                           [0, 0, 0])), unpool(3), "fo"),
    ]


def padding_entries(E):
    shapes = {1: (2, 3, 5), 2: (2, 2, 4, 5), 3: (1, 2, 4, 3, 5)}
    pads = {1: [2, 1], 2: [2, 1, 1, 3], 3: [2, 1, 1, 2, 3, 0]}
    cuts = {1: [-1, 2], 2: [-1, 2, 1, -2], 3: [2, -1, 1, 2, -1, 1]}
    made = [
        E("pad", calls(lambda m: (m(3, 4), [1, 2, 2, 0]), lambda m: (m(2, 3, 4), [1, -1], "constant", 2.0),
                       lambda m: (m(2, 3, 4), [2, 1], "circular")), padded),
        E("_pad_enum", calls(lambda m: (m(3, 4), [1, 2, 2, 0], 3), lambda m: (m(2, 3, 4), [1, 2], 0)),
          lambda x, pad, mode: padded(x, pad, ("reflect", "replicate", "circular", "constant")[mode]),
          kinds="int float complex"),
        E("_pad_circular", calls(lambda m: (m(2, 3, 4), [2, 1]), lambda m: (m(2, 2, 3, 4), [1, 0, 2, 3]),
                                 lambda m: (m(2, 3, 4), [-1, 2])), lambda x, pad: padded(x, pad, "circular")),
        E("constant_pad_nd", calls(lambda m: (m(3, 4), [1, 2, 2, 0]), lambda m: (m(2, 3, 4), [1, -1], m.number()),
                                   lambda m: (m(3, 4), [-1, -2]), lambda m: (m(2, 3), []), lambda m: (m(2, 0), [1, 2])),
          constant, "fo"),
    ]
    for name, mode in (("reflection_pad", "reflect"), ("replication_pad", "replicate")):
        for n, shape in shapes.items():
            def forward(x, pad, mode=mode):
                return padded(x, pad, mode)
            grown = lambda n=n: [*shapes[n][:-n], *(s + a + b for s, a, b in zip(  # noqa: E731
                shapes[n][-n:], pads[n][::2][::-1], pads[n][1::2][::-1]))]
            back = linear_backward(forward)
            made += [
                E(f"{name}{n}d", calls(lambda m, n=n: (m(*shapes[n]), pads[n]), lambda m, n=n: (m(*shapes[n]), cuts[n]),
                                       lambda m, n=n: (m(*shapes[n][1:]), pads[n])), forward, "fo"),
                E(f"{name}{n}d_backward", calls(lambda m, n=n, g=grown: (m(*g()), m(*shapes[n], diff=False), pads[n])),
                  back, "fo", scale=2, kinds="float"),
            ]
    return made
