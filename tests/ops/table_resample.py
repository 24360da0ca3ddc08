"""Interpolation, grids, folding and shuffles: references that build the matrix of each dim, or walk every point."""
import itertools
import math

import numpy as np
from makers import calls
from subject import Arg
from table_pooling import linear_backward


# ---- one matrix a dim --------------------------------------------------------------------------------------------

def near(x, a):
    return ((a + 2) * x - (a + 3)) * x * x + 1


def far(x, a):
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic(x, a):
    x = abs(x)
    return near(x, a) if x <= 1 else far(x, a) if x < 2 else 0


def lanczos(x):
    return np.sinc(x) * np.sinc(x / 3) if abs(x) < 3 else 0


FILTERS = {"linear": (1, lambda x: max(0, 1 - abs(x))), "cubic": (2, lambda x: cubic(x, -0.5)), "lanczos": (3, lanczos)}


def step(size, out, align, scale):
    if align:
        return (size - 1) / (out - 1) if out > 1 else 0
    return 1 / scale if scale else size / out


def matrix(kind, size, out, align=False, scale=None):
    """M with result = M @ input along a dim."""
    m, s = np.zeros((out, size)), step(size, out, align, scale)
    for o in range(out):
        at = s * o if align else s * (o + 0.5) - 0.5
        if kind in ("nearest", "exact"):
            m[o, min(math.floor((o + (kind == "exact") / 2) * s), size - 1)] = 1
        elif kind == "linear":
            at = o if size == out else min(max(at, 0), size - 1)
            i = min(math.floor(at), size - 1)
            m[o, i] += 1 - (at - i)
            m[o, min(i + 1, size - 1)] += at - i
        else:
            i = math.floor(at)
            for k in range(-1, 3):
                m[o, min(max(i + k, 0), size - 1)] += cubic(at - i - k, -0.75)
    return m


def smooth(kind, size, out, align=False, scale=None):
    """The same with antialias: the filter as wide as the step, if that is more than one."""
    m, s = np.zeros((out, size)), step(size, out, align, scale)
    radius, filter_ = FILTERS[kind]
    wide = max(s, 1)
    for o in range(out):
        centre = s * (o + 0.5)
        first = max(int(centre - radius * wide + 0.5), 0)
        last = min(int(centre + radius * wide + 0.5), size)
        weights = [filter_((i - centre + 0.5) / wide) for i in range(first, last)]
        m[o, first:last] = np.array(weights) / sum(weights)
    return m


def resampled(kind, make, dims):
    """A reference with the operator's arguments: x, output_size, [align_corners,] scales."""
    aligned = kind not in ("nearest", "exact")

    def forward(x, size, *rest):
        align, scales = (rest[0], rest[1:]) if aligned else (False, rest)
        for k in range(dims):
            scale = scales[k] if k < len(scales) else None
            m = make(kind, x.shape[2 + k], size[k], align, scale)
            x = np.moveaxis(np.tensordot(m, x, (1, 2 + k)), 0, 2 + k)
        return x
    return forward


def by_factor(forward, dims):
    def reference(x, size, *rest):
        *align, factors = rest
        size = size or [int(n * f) for n, f in zip(x.shape[2:], factors)]
        return forward(x, size, *align, *(factors or ()))
    return reference


def upsampling(E):
    shapes = {1: (2, 3, 5), 2: (2, 2, 4, 5), 3: (1, 2, 3, 4, 3)}
    larger, smaller = {1: [8], 2: [7, 9], 3: [5, 6, 4]}, {1: [3], 2: [2, 3], 3: [2, 3, 2]}
    families = [(f"upsample_nearest{n}d", "nearest", matrix, n) for n in (1, 2, 3)]
    families += [(f"_upsample_nearest_exact{n}d", "exact", matrix, n) for n in (1, 2, 3)]
    families += [("upsample_linear1d", "linear", matrix, 1), ("upsample_bilinear2d", "linear", matrix, 2),
                 ("upsample_trilinear3d", "linear", matrix, 3), ("upsample_bicubic2d", "cubic", matrix, 2)]
    families += [(f"_upsample_{name}2d_aa", kind, smooth, 2) for name, kind in (
        ("bilinear", "linear"), ("bicubic", "cubic"), ("lanczos", "lanczos"))]
    return [entry for family in families for entry in upsampling_entries(E, *family, shapes, larger, smaller)]


def upsampling_entries(E, name, kind, make, n, shapes, larger, smaller):
    forward = resampled(kind, make, n)
    x, up, down, factors = shapes[n], larger[n], smaller[n], [1.6, 0.75, 1.5][:n]
    both = [()] if kind in ("nearest", "exact") else [(False,), (True,)]
    sized = calls(*[lambda m, s=s, a=a: (m(*x), s, *a) for s in (up, down) for a in both],
                  lambda m: (m(*x), [int(k * f) for k, f in zip(x[2:], factors)], *both[0], *factors))
    vec = calls(lambda m: (m(*x), up, *both[-1], None), lambda m: (m(*x), None, *both[0], factors))
    back = calls(*[lambda m, s=s, a=a: (m(*x[:2], *s), s, list(x), *a) for s in (up, down) for a in both])

    def backward(grad, size, whole, *align):
        return linear_backward(lambda u: forward(u, size, *align))(grad, np.zeros(whole))
    return [E(name, sized, forward, "fo", scale=4, kinds="float"),
            E(f"{name}.vec", vec, by_factor(forward, n), scale=4, kinds="float"),
            E(f"{name}_backward", back, backward, "fo", scale=4, kinds="float")]


# ---- grids -------------------------------------------------------------------------------------------------------

def reflect(x, low, high):
    if high == low:
        return 0.0
    span = high - low
    x = abs(x - low)
    extra, flips = math.fmod(x, span), math.floor(x / span)
    return low + (extra if flips % 2 == 0 else span - extra)


def bounded(x, size, padding, align):
    if padding == 2:
        x = reflect(x, 0, size - 1) if align else reflect(x, -0.5, size - 0.5)
    return x if padding == 0 else min(max(x, 0), size - 1)


def grid_sample(x, grid, mode, padding, align):
    n, c, *size = x.shape
    out = np.zeros((n, c, *grid.shape[1:-1]))
    for at in itertools.product(range(n), *map(range, grid.shape[1:-1])):
        places = [(g + 1) / 2 * (s - 1) if align else ((g + 1) * s - 1) / 2 for g, s in zip(grid[at][::-1], size)]
        out[(at[0], slice(None), *at[1:])] = read(x[at[0]], places, size, mode, padding, align)
    return out


def read(picture, places, size, mode, padding, align):
    if mode == 2:
        taps = [[(math.floor(p) + k, cubic(p - math.floor(p) - k, -0.75)) for k in range(-1, 3)] for p in places]
        taps = [[(bounded(i, s, padding, align), w) for i, w in t] for t, s in zip(taps, size)]
    else:
        places = [bounded(p, s, padding, align) for p, s in zip(places, size)]
        taps = [[(round(p), 1)] if mode == 1 else [(math.floor(p), 1 - (p - math.floor(p))),
                                                   (math.floor(p) + 1, p - math.floor(p))] for p in places]
    total = np.zeros(len(picture))
    for choice in itertools.product(*taps):
        where = [int(i) for i, _ in choice]
        if all(0 <= i < s for i, s in zip(where, size)):
            total += picture[(slice(None), *where)] * math.prod(w for _, w in choice)
    return total


def grid_backward(grad, x, grid, mode, padding, align, mask):
    input_grad = linear_backward(lambda u: grid_sample(u, grid, mode, padding, align))(grad, x)
    made, h = np.zeros(grid.shape), 1e-6
    for i in range(grid.size):
        moved = []
        for d in (h, -h):
            g = grid.copy()
            g.reshape(-1)[i] += d
            moved.append(np.sum(grad * grid_sample(x, g, mode, padding, align)))
        made.reshape(-1)[i] = (moved[0] - moved[1]) / (2 * h)
    return input_grad, made


def affine_grid(theta, size, align):
    def line(n):
        return np.zeros(n) if n <= 1 else np.linspace(-1, 1, n) * (1 if align else (n - 1) / n)
    axes = np.meshgrid(*[line(n) for n in size[2:]], indexing="ij")
    base = np.stack([*axes[::-1], np.ones(size[2:])], -1)
    return np.einsum("...k,njk->n...j", base, theta)


def affine_backward(grad, size, align):
    shape = (size[0], len(size) - 2, len(size) - 1)
    return linear_backward(lambda theta: affine_grid(theta, size, align))(grad, np.zeros(shape))


def grids(E):
    def points(m, *shape):  # away from the places where the picture has kinks, inside and out
        return Arg(m.random.choice(np.array([-1.15, -0.7, -0.3, 0.1, 0.45, 0.77, 1.3]), shape).round(3))

    def exact(m, *shape):  # exact in every dtype
        return Arg(m.random.choice(np.array([-1.1875, -0.6875, -0.3125, 0.1875, 0.4375, 0.8125, 1.3125]), shape))
    plane = [lambda m, k=k, p=p, a=a: (m(2, 2, 4, 5), exact(m, 2, 3, 2, 2), k, p, a)
             for k in (0, 1, 2) for p in (0, 1, 2) for a in (False, True)]
    solid = [lambda m, k=k, p=p, a=a: (m(1, 2, 3, 4, 5), exact(m, 1, 2, 3, 2, 3), k, p, a)
             for k in (0, 1) for p in (0, 1, 2) for a in (False, True)]
    # nearest's step lies where positions are halves: differences see it, gradients do not
    back2 = calls(*[lambda m, k=k, p=p: (m(2, 2, 2, 2), m(2, 2, 4, 5), points(m, 2, 2, 2, 2), k, p, False, [True, True])
                    for k in (0, 1, 2) for p in (0, 1, 2)])
    back3 = calls(*[lambda m, p=p: (m(1, 2, 1, 2, 2), m(1, 2, 3, 4, 5), points(m, 1, 1, 2, 2, 3), 0, p, True, [True, True])
                    for p in (0, 1, 2)])
    theta = calls(lambda m: (m(2, 2, 3), [2, 3, 4, 5], False), lambda m: (m(2, 2, 3), [2, 3, 4, 1], True),
                  lambda m: (m(1, 3, 4), [1, 2, 2, 3, 2], False))
    theta_back = calls(lambda m: (m(2, 4, 5, 2), [2, 3, 4, 5], False), lambda m: (m(1, 2, 3, 2, 3), [1, 2, 2, 3, 2], True))
    return [
        E("grid_sampler", calls(plane[0], solid[3]), grid_sample, scale=8),
        E("grid_sampler_2d", calls(*plane), grid_sample, "fo", scale=8),
        E("grid_sampler_3d", calls(*solid), grid_sample, "fo", scale=8),
        E("grid_sampler_2d_backward", back2, grid_backward, scale=1e4, kinds="float"),
        E("grid_sampler_3d_backward", back3, grid_backward, scale=1e4, kinds="float"),
        E("affine_grid_generator", theta, affine_grid, scale=4, kinds="float complex"),
        E("affine_grid_generator_backward", theta_back, affine_backward, scale=8, kinds="float"),
    ]


# ---- folding and shuffles ----------------------------------------------------------------------------------------

def unfolded(x, kernel, dilation, pad, stride):
    lead = x.shape[:-3]
    x = x.reshape(-1, *x.shape[-3:])
    x = np.pad(x, [(0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])])
    high, wide = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], kernel, dilation, stride)]
    rows = [x[:, :, i * dilation[0]:, j * dilation[1]:][:, :, ::stride[0], ::stride[1]][:, :, :high, :wide]
            for i in range(kernel[0]) for j in range(kernel[1])]
    return np.stack(rows, 2).reshape(*lead, x.shape[1] * len(rows), high * wide)


def folded(x, size, kernel, dilation, pad, stride):
    lead, channels = x.shape[:-2], x.shape[-2] // (kernel[0] * kernel[1])
    parts = linear_backward(lambda u: unfolded(u, kernel, dilation, pad, stride))
    empty = np.zeros((*lead, channels, *size))
    if x.dtype.kind == "c":
        return parts(x.real, empty) + 1j * parts(x.imag, empty)
    made = parts(x.astype(np.float64), empty)
    return made != 0 if x.dtype == np.bool_ else made


def pixel_shuffle(x, r):
    *lead, c, h, w = x.shape
    x = x.reshape(-1, c // r ** 2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, c // r ** 2, h * r, w * r)


def pixel_unshuffle(x, r):
    *lead, c, h, w = x.shape
    x = x.reshape(-1, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, c * r * r, h // r, w // r)


def channel_shuffle(x, groups):
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


def folds(E):
    columns = calls(lambda m: (m(2, 3, 4, 5), [2, 2], [1, 1], [0, 0], [1, 1]),
                    lambda m: (m(2, 4, 5), [2, 3], [2, 1], [1, 2], [2, 1]))
    pictures = calls(lambda m: (m(2, 12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
                     lambda m: (m(12, 14), [4, 5], [2, 3], [2, 1], [1, 2], [2, 1]))
    mixed = calls(lambda m: (m(2, 6, 3, 2), 3), lambda m: (m(1, 4, 3), 2))
    return [
        E("im2col", columns, unfolded, "fo"), E("col2im", pictures, folded, "fo", scale=2),
        E("pixel_shuffle", calls(lambda m: (m(2, 8, 3, 2), 2), lambda m: (m(9, 1, 2), 3)), pixel_shuffle, "fo"),
        E("pixel_unshuffle", calls(lambda m: (m(2, 2, 4, 6), 2), lambda m: (m(1, 3, 6), 3)),
          pixel_unshuffle, "fo"),
        E("channel_shuffle", mixed, channel_shuffle, "fo"), E("native_channel_shuffle", mixed, channel_shuffle),
    ]


def groups(E):
    return {"resample": upsampling(E), "grids": grids(E), "folds": folds(E)}
