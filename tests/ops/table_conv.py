"""Convolutions, against sums over the places of the kernel."""
import itertools

import numpy as np
from makers import calls


# ---- the reference: one place of the kernel at a time ----------------------------------------------------------

def spread(value, n):
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * n if len(value) == 1 else value


def windows(padded, out, kernel, stride, dilation):
    """For each place of the kernel: the place, and the slices of the padded picture that meet it."""
    for k in itertools.product(*map(range, kernel)):
        yield k, tuple(slice(d * i, d * i + s * (o - 1) + 1, s) for i, d, s, o in zip(k, dilation, stride, out))


def grouped(w, groups):
    return w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def pad(x, padding):
    return np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])


def plain(x, w, stride, padding, dilation, groups):
    n, space = x.shape[0], w.shape[2:]
    out = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(x.shape[2:], padding, dilation, space, stride)]
    padded = pad(x, padding)
    y = np.zeros((n, groups, w.shape[0] // groups, *out), np.result_type(x, w))
    for k, at in windows(padded, out, space, stride, dilation):
        seen = padded[(slice(None), slice(None), *at)].reshape(n, groups, x.shape[1] // groups, *out)
        y += np.einsum("goi,ngi...->ngo...", grouped(w, groups)[(..., *k)], seen)
    return y.reshape(n, w.shape[0], *out)


def image_gradient(g, w, sizes, stride, padding, dilation, groups):
    n, out = g.shape[0], g.shape[2:]
    full = np.zeros((n, w.shape[1] * groups, *(s + 2 * p for s, p in zip(sizes, padding))), np.result_type(g, w))
    for k, at in windows(full, out, w.shape[2:], stride, dilation):
        part = np.einsum("goi,ngo...->ngi...", grouped(w, groups)[(..., *k)], g.reshape(n, groups, -1, *out))
        full[(slice(None), slice(None), *at)] += part.reshape(n, -1, *out)
    return full[(slice(None), slice(None), *(slice(p, p + s) for s, p in zip(sizes, padding)))]


def weight_gradient(x, g, kernel, stride, padding, dilation, groups):
    n, out = g.shape[0], g.shape[2:]
    padded, rows = pad(x, padding), g.reshape(n, groups, -1, *out)
    made = np.zeros((groups, rows.shape[2], x.shape[1] // groups, *kernel), np.result_type(x, g))
    for k, at in windows(padded, out, kernel, stride, dilation):
        seen = padded[(slice(None), slice(None), *at)].reshape(n, groups, x.shape[1] // groups, *out)
        made[(..., *k)] = np.einsum("ngop,ngip->goi", rows.reshape(*rows.shape[:3], -1), seen.reshape(*seen.shape[:3], -1))
    return made.reshape(-1, *made.shape[2:])


def convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    n = w.ndim - 2
    stride, padding, dilation, more = (spread(v, n) for v in (stride, padding, dilation, output_padding))
    if transposed:
        sizes = [(s - 1) * t - 2 * p + d * (k - 1) + o + 1
                 for s, t, p, d, k, o in zip(x.shape[2:], stride, padding, dilation, w.shape[2:], more)]
        y = image_gradient(x, w, sizes, stride, padding, dilation, groups)
    else:
        y = plain(x, w, stride, padding, dilation, groups)
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask):
    n = w.ndim - 2
    stride, padding, dilation = (spread(v, n) for v in (stride, padding, dilation))
    shared = (stride, padding, dilation, groups)
    if transposed:
        made = plain(g, w, *shared), weight_gradient(g, x, w.shape[2:], *shared)
    else:
        made = image_gradient(g, w, x.shape[2:], *shared), weight_gradient(x, g, w.shape[2:], *shared)
    return (*made, g.sum(axis=(0, *range(2, g.ndim))))


def batched(function):
    """Adds a batch dimension to an input that has none."""
    def run(x, w, *rest, **kwargs):
        return function(x, w, *rest, **kwargs) if x.ndim == w.ndim else function(x[None], w, *rest, **kwargs)[0]
    return run


@batched
def conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.ndim - 2
    if padding == "valid":
        padding = 0
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(spread(dilation, n), w.shape[2:])]
        x = np.pad(x, [(0, 0), (0, 0)] + [(t // 2, t - t // 2) for t in total])
        padding = 0
    return convolution(x, w, bias, stride, padding, dilation, False, 0, groups)


@batched
def transposed(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return convolution(x, w, bias, stride, padding, dilation, True, output_padding, groups)


def tbc(x, w, bias, pad=0):
    return convolution(x.transpose(1, 2, 0), w.transpose(2, 1, 0), bias, 1, pad, 1, False, 0, 1).transpose(2, 0, 1)


# ---- samples: stride, padding, dilation, groups, bias or none, a batch or none ---------------------------------

one = calls(lambda m: (m(2, 4, 9), m(6, 4, 3), m(6)), lambda m: (m(4, 9), m(6, 2, 3), None, [2], [1], [1], 2),
            lambda m: (m(1, 2, 11), m(3, 2, 4), m(3), [3], [2], [2]))
two = calls(lambda m: (m(2, 2, 5, 6), m(3, 2, 3, 3), m(3)), lambda m: (m(4, 5, 4), m(2, 2, 3, 2), None, [1], [1], [1], 2),
            lambda m: (m(1, 2, 7, 6), m(3, 2, 2, 3), m(3), [2, 3], [1, 2], [2, 1]),
            lambda m: (m(2, 3, 4, 4), m(6, 1, 1, 1), m(6), [1, 1], [0, 0], [1, 1], 3))
three = calls(lambda m: (m(1, 2, 3, 4, 5), m(2, 2, 2, 3, 3), m(2)),
              lambda m: (m(2, 4, 3, 3), m(2, 1, 2, 2, 1), None, [1, 2, 1], [1, 0, 1], [2, 1, 1], 2))
words = calls(lambda m: (m(2, 2, 5), m(3, 2, 3), m(3), [1], "same"), lambda m: (m(2, 2, 5), m(3, 2, 2), None, [2], "valid"),
              lambda m: (m(1, 2, 6), m(3, 2, 4), None, [1], "same", [1]))
words2 = calls(lambda m: (m(1, 2, 5, 4), m(3, 2, 3, 3), m(3), [1, 1], "same", [2, 1]),
               lambda m: (m(2, 4, 3), m(2, 2, 2, 3), None, [1, 1], "same"),
               lambda m: (m(1, 2, 5, 4), m(3, 2, 3, 3), None, [2, 1], "valid"))
words3 = calls(lambda m: (m(1, 2, 3, 3, 2), m(1, 2, 3, 1, 2), m(1), [1, 1, 1], "same"),
               lambda m: (m(1, 2, 3, 3, 2), m(1, 2, 3, 1, 2), None, [1, 2, 1], "valid"))
turned = calls(lambda m: (m(2, 4, 5), m(4, 3, 3), m(3)), lambda m: (m(4, 4), m(4, 2, 3), None, [2], [1], [1], 2),
               lambda m: (m(1, 2, 4), m(2, 3, 2), m(3), [3], [2], [2], 1, [2]))
turned2 = calls(lambda m: (m(1, 2, 3, 4), m(2, 3, 3, 2), m(3)), lambda m: (m(4, 3, 2), m(4, 1, 2, 3), None, [2, 1], [1, 0], [1, 0], 2),
                lambda m: (m(1, 2, 3, 3), m(2, 2, 3, 3), m(2), [2, 3], [1, 2], [1, 1], 1, [2, 1]))
turned3 = calls(lambda m: (m(1, 2, 2, 3, 2), m(2, 2, 2, 1, 3), m(2)),
                lambda m: (m(2, 2, 2, 3), m(2, 1, 1, 2, 2), None, [1, 2, 1], [0, 1, 0], [0, 1, 0], 2))
whole = calls(lambda m: (m(2, 4, 5, 4), m(6, 2, 3, 2), m(6), [2, 1], [1, 1], [1, 2], False, [0, 0], 2),
              lambda m: (m(1, 4, 3, 2), m(4, 3, 2, 3), m(6), [2], [1], [1], True, [1], 2),
              lambda m: (m(0, 2, 5), m(3, 2, 3), None, [1], [0], [1], False, [0], 1))
gradients = calls(lambda m: (m(2, 6, 3, 4), m(2, 4, 5, 4), m(6, 2, 3, 2), [6], [2, 1], [1, 1], [1, 2], False, [0, 0], 2,
                             [True, True, True]),
                  lambda m: (m(1, 6, 6, 5), m(1, 4, 3, 2), m(4, 3, 2, 3), [6], [2], [0], [1], True, [0], 2, [True, True, True]),
                  lambda m: (m(2, 3, 4), m(2, 2, 8), m(3, 2, 2), [3], [2], [0], [1], False, [0], 1, [True, True, True]))
mode = calls(lambda m: (m(1, 2, 5), m(3, 2, 3), m(3), [1], "same", [1], 1),
             lambda m: (m(1, 2, 5, 5), m(4, 1, 2, 2), None, [2], "valid", [2], 2))


def with_switches(count):
    def samples(m):
        for args, kwargs in whole(m):
            yield (*args, *[False, False, True, True][:count]), kwargs
    return samples


def groups(E):
    entry = lambda name, samples, ref, forms="f": E(name, samples, ref, forms, scale=16)  # noqa: E731
    return {"conv": [
        entry("conv1d", one, conv), entry("conv2d", two, conv), entry("conv3d", three, conv),
        entry("conv1d.padding", words, conv), entry("conv2d.padding", words2, conv), entry("conv3d.padding", words3, conv),
        entry("conv_transpose1d", turned, transposed), entry("conv_transpose2d.input", turned2, transposed),
        entry("conv_transpose3d.input", turned3, transposed),
        entry("convolution", whole, convolution, "fo"), entry("convolution_backward", gradients, backward),
        entry("_convolution", with_switches(4), convolution), entry("_convolution.deprecated", with_switches(3), convolution),
        entry("_convolution_mode", mode, conv),
        entry("conv_tbc", calls(lambda m: (m(6, 2, 3), m(3, 3, 4), m(4)), lambda m: (m(4, 1, 2), m(2, 2, 3), m(3), 1)), tbc),
    ]}
