"""Normalisation. References are the definitions, in double precision; gradients by the formula over the normalised dims."""
import numpy as np
from makers import calls
from subject import Arg

ALL = [True, True, True]


def normalised(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def last(x, shape):
    return tuple(range(x.ndim - len(shape), x.ndim))


def wide(w, x):
    """A weight of each channel, beside x."""
    return w.reshape(1, -1, *[1] * (x.ndim - 2))


def affine(y, w, b, spread=lambda t: t):
    y = y if w is None else y * spread(w)
    return y if b is None else y + spread(b)


def layer(x, shape, w=None, b=None, eps=1e-5, *_):
    y, mean, rstd = normalised(x, last(x, shape), eps)
    return affine(y, w, b), mean, rstd


def rms(x, shape, w=None, eps=None):
    rstd = 1 / np.sqrt((x * x).mean(last(x, shape), keepdims=True) + (1.1920928955078125e-07 if eps is None else eps))
    return affine(x * rstd, w, None), rstd


def batch(x, w, b, rm, rv, training, momentum, eps, *_):
    axes = (0, *range(2, x.ndim))
    if training:
        y, mean, rstd = normalised(x, axes, eps)
        return affine(y, w, b, lambda t: wide(t, x)), mean.reshape(-1), rstd.reshape(-1)
    y = (x - wide(rm, x)) / np.sqrt(wide(rv, x) + eps)
    return affine(y, w, b, lambda t: wide(t, x)), np.zeros(0), np.zeros(0)


def group(x, groups, w=None, b=None, eps=1e-5, *_):
    split = x.reshape(x.shape[0], groups, -1)
    y, mean, rstd = normalised(split, (2,), eps)
    return affine(y.reshape(x.shape), w, b, lambda t: wide(t, x)), mean[..., 0], rstd[..., 0]


def instance(x, w, b, rm, rv, training, momentum, eps, *_):
    if not training:
        return batch(x, w, b, rm, rv, False, momentum, eps)[0]
    return affine(normalised(x, tuple(range(2, x.ndim)), eps)[0], w, b, lambda t: wide(t, x))


def backward(g, x, mean, rstd, w, axes, others, centred=True):
    """Gradients of x, weight and bias; mean, rstd and w broadcast against x."""
    xhat = (x - mean) * rstd
    gw = g if w is None else g * w
    along = xhat * (gw * xhat).mean(axes, keepdims=True)
    dx = rstd * (gw - along - (gw.mean(axes, keepdims=True) if centred else 0))
    return dx, (g * xhat).sum(others), g.sum(others)


def layer_backward(g, x, shape, mean, rstd, w, b, mask):
    return backward(g, x, mean, rstd, w, last(x, shape), tuple(range(x.ndim - len(shape))))


def rms_backward(g, x, shape, rstd, w, mask):
    return backward(g, x, 0, rstd, w, last(x, shape), tuple(range(x.ndim - len(shape))), False)[:2]


def batch_backward(g, x, w, rm, rv, mean, invstd, train, eps, mask):
    axes = (0, *range(2, x.ndim))
    if not train:
        mean, invstd = rm, 1 / np.sqrt(rv + eps)
        xhat = (x - wide(mean, x)) * wide(invstd, x)
        return g * wide(w, x) * wide(invstd, x), (g * xhat).sum(axes), g.sum(axes)
    return backward(g, x, wide(mean, x), wide(invstd, x), wide(w, x), axes, axes)


def group_backward(g, x, mean, rstd, w, n, c, rest, groups, mask):
    shape = (n, groups, c // groups, rest)
    m, r = mean.reshape(n, groups, 1, 1), rstd.reshape(n, groups, 1, 1)
    dx, dw, db = backward(g.reshape(shape), x.reshape(shape), m, r, w.reshape(1, groups, -1, 1), (2, 3), (0, 3))
    return dx.reshape(x.shape), dw.reshape(-1), db.reshape(-1)


def stats(*ts):
    """Statistics of the samples, as constants."""
    return [Arg(np.asarray(t), diff=False) for t in ts]


def groups(E):
    fixed = lambda m, *s: m.positive(*s, diff=False)  # noqa: E731
    first = lambda f: lambda *a, **k: f(*a, **k)[0]  # noqa: E731
    rows = calls(lambda m: (m(3, 4), [4], m(4), m(4), 1e-3), lambda m: (m(2, 3, 4), [3, 4], None, None, 1e-5),
                 lambda m: (m(2, 5), [5], m(5), None, 1e-5))
    plain_rows = calls(lambda m: (m(3, 4), [4], m(4), m(4), 1e-3), lambda m: (m(2, 3, 4), [3, 4]),
                       lambda m: (m(2, 3, 5), [5], m(5)))
    rms_rows = calls(lambda m: (m(3, 4), [4], m(4), 1e-3), lambda m: (m(2, 3, 4), [3, 4], None, 1e-5))
    cube = (2, 4, 3)

    def batches(*flags):
        return calls(lambda m: (m(*cube), m(4), m(4), fixed(m, 4), fixed(m, 4), True, 0.1, 1e-3, *flags),
                     lambda m: (m(*cube), None, None, None, None, True, 0.1, 1e-5, *flags),
                     lambda m: (m(2, 4, 3, 2), m(4), m(4), fixed(m, 4), fixed(m, 4), False, 0.1, 1e-5, *flags),
                     lambda m: (m(5, 4), m(4), None, None, None, True, 0.1, 1e-5, *flags))

    def layer_grads(m):
        x = m(3, 4)
        return m(3, 4), x, [4], *stats(*layer(x.values, [4])[1:]), m(4), m(4, diff=False), ALL

    def rms_grads(m):
        x = m(3, 4)
        return m(3, 4), x, [4], *stats(rms(x.values, [4], None, 1e-3)[1]), m(4), ALL[:2]

    def batch_grads(m, train):
        x = m(*cube)
        saved = stats(*batch(x.values, None, None, None, None, True, 0.1, 1e-5)[1:])
        return m(*cube), x, m(4), fixed(m, 4), fixed(m, 4), *saved, train, 1e-5, ALL

    def group_grads(m):
        x = m(2, 4, 3)
        return m(2, 4, 3), x, *stats(*group(x.values, 2)[1:]), m(4), 2, 4, 3, 2, ALL
    of_groups = lambda x, w, b, n, c, rest, g, eps: group(x, g, w, b, eps)  # noqa: E731
    same3, kinds = ("same",) * 3, {"kinds": "float", "scale": 16}
    return {"norm": [
        E("layer_norm", plain_rows, first(layer), **kinds),
        E("native_layer_norm", rows, layer, "fo", result=same3, **kinds),
        E("native_layer_norm_backward", calls(layer_grads), layer_backward, result=same3, **kinds),
        E("rms_norm", calls(lambda m: (m(3, 4), [4], m(4), 1e-3), lambda m: (m(2, 3, 4), [3, 4], None, 1e-5)), first(rms), **kinds),
        E("_fused_rms_norm", rms_rows, rms, result=("same", "statistic"), **kinds),
        E("_fused_rms_norm_backward", calls(rms_grads), rms_backward, result=("same", "same"), **kinds),
        E("batch_norm", batches(False), first(batch), **kinds),
        E("native_batch_norm", batches(), batch, "fo", result=same3, **kinds),
        E("native_batch_norm_backward", calls(lambda m: batch_grads(m, True), lambda m: batch_grads(m, False)),
          batch_backward, result=same3, **kinds),
        E("_native_batch_norm_legit", calls(
            lambda m: (m(*cube), m(4), m(4), fixed(m, 4), fixed(m, 4), True, 0.1, 1e-3),
            lambda m: (m(*cube), m(4), m(4), fixed(m, 4), fixed(m, 4), False, 0.1, 1e-3)), batch, result=same3, **kinds),
        E("_native_batch_norm_legit.no_stats", calls(lambda m: (m(*cube), m(4), m(4), True, 0.1, 1e-3)),
          lambda x, w, b, t, mo, eps: batch(x, w, b, None, None, t, mo, eps), result=same3, **kinds),
        E("_native_batch_norm_legit_no_training", calls(lambda m: (m(*cube), m(4), m(4), fixed(m, 4), fixed(m, 4), 0.1, 1e-3)),
          lambda x, w, b, rm, rv, mo, eps: batch(x, w, b, rm, rv, False, mo, eps), result=same3, **kinds),
        E("group_norm", calls(lambda m: (m(2, 4, 3), 2, m(4), m(4), 1e-3), lambda m: (m(2, 6), 3)), first(group), **kinds),
        E("native_group_norm", calls(lambda m: (m(2, 4, 3), m(4), m(4), 2, 4, 3, 2, 1e-3),
                                     lambda m: (m(2, 4, 3, 2), None, None, 2, 4, 6, 1, 1e-5)), of_groups, "fo",
          result=same3, **kinds),
        E("native_group_norm_backward", calls(group_grads), group_backward, result=same3, **kinds),
        E("instance_norm", calls(lambda m: (m(*cube), m(4), m(4), None, None, True, 0.1, 1e-3, False),
                                 lambda m: (m(*cube), m(4), m(4), fixed(m, 4), fixed(m, 4), False, 0.1, 1e-5, False)),
          instance, **kinds),
    ]}
