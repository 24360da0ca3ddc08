"""Attention. The reference holds the whole score matrix, in double precision."""

import numpy as np
from makers import calls
from subject import Arg


def softmax(s, safe=True):
    hidden = np.isneginf(s).all(-1, keepdims=True)
    e = np.exp(s - np.where(hidden, 0, s.max(-1, keepdims=True)))
    total = e.sum(-1, keepdims=True)
    return np.where(hidden, 0, e / np.where(hidden, 1, total))


def scores(q, k, mask, causal, scale):
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == np.bool_ else s + mask
    if causal:
        s = np.where(np.arange(s.shape[-2])[:, None] >= np.arange(s.shape[-1]), s, -np.inf)
    return s


def attention(q, k, v, mask=None, p=0.0, causal=False, *, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (np.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    return softmax(scores(q, k, mask, causal, scale)) @ v


def math(q, k, v, mask=None, p=0.0, causal=False, dropout_mask=None, **kw):
    return attention(q, k, v, mask, p, causal, **kw), softmax(scores(q, k, mask, causal, kw.get("scale")))


def logsumexp(s):
    hidden = np.isneginf(s).all(-1)
    top = np.where(hidden, 0, s.max(-1))
    with np.errstate(divide="ignore"):
        return np.where(hidden, 0, top + np.log(np.exp(s - top[..., None]).sum(-1)))


def flash(q, k, v, p=0.0, causal=False, *, attn_mask=None, scale=None):
    return attention(q, k, v, attn_mask, p, causal, scale=scale), logsumexp(scores(q, k, attn_mask, causal, scale))


def flash_backward(g, q, k, v, out, lse, p, causal, *, attn_mask=None, scale=None):
    by = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    w = softmax(scores(q, k, attn_mask, causal, scale))
    ds = w * (g @ v.swapaxes(-1, -2) - (g * out).sum(-1, keepdims=True)) * by
    return ds @ k, ds.swapaxes(-1, -2) @ q, w.swapaxes(-1, -2) @ g


def three(m, *q, keys=None):
    k = q if keys is None else (*q[:-2], keys, q[-1])
    return m(*q, low=-1, high=1), m(*k, low=-1, high=1), m(*k, low=-1, high=1)


def backward_sample(causal, keys):
    def make(m):
        q, k, v = three(m, 2, 2, 3, 4, keys=keys)
        out, lse = flash(q.values, k.values, v.values, causal=causal)
        lse_arg = Arg(lse, "float64" if m.dtype == "float64" else "float32")
        return m(2, 2, 3, 4), q, k, v, Arg(out, diff=False), lse_arg, 0.0, causal

    return make


def groups(E):
    some = Arg(np.array([[True, False, True], [False, False, False]]), "bool")
    wide = {"kinds": "float", "scale": 8}
    forward = calls(
        lambda m: three(m, 2, 2, 3, 4),
        lambda m: ((*three(m, 1, 2, 2, 4, keys=3), some), {}),
        lambda m: ((*three(m, 2, 2, 3, 4, keys=5), None, 0.0, True), {"scale": 0.5}),
        lambda m: three(m, 2, 3, 4),
        lambda m: ((m(1, 4, 3, 2), m(1, 2, 3, 2), m(1, 2, 3, 2)), {"enable_gqa": True}),
        lambda m: ((*three(m, 2, 2, 3, 4), m(3, 3, diff=False)), {}),
    )
    fused = calls(
        lambda m: three(m, 2, 2, 3, 4),
        lambda m: (*three(m, 1, 2, 5, 4, keys=3), 0.0, True),
        lambda m: (three(m, 1, 2, 2, 4, keys=3), {"attn_mask": m(2, 3, diff=False)}),
    )
    return {
        "attention": [
            E(
                "scaled_dot_product_attention", forward, attention, layout=False, **wide
            ),  # strides decide which of two ways is taken
            E(
                "_scaled_dot_product_attention_math",
                calls(
                    lambda m: three(m, 2, 2, 3, 4),
                    lambda m: (*three(m, 2, 3, 4), None, 0.0, True),
                    lambda m: (*three(m, 2, 4, keys=3), some),
                ),
                math,
                result=("same", "same"),
                **wide,
            ),
            E("_scaled_dot_product_flash_attention_for_cpu", fused, flash, result=("same", "statistic"), **wide),
            E(
                "_scaled_dot_product_flash_attention_for_cpu_backward",
                calls(backward_sample(False, 3), backward_sample(True, 5)),
                flash_backward,
                result=("same",) * 3,
                kinds="float",
                scale=16,
            ),
            E(
                "_safe_softmax",
                calls(lambda m: (m(3, 4), -1), lambda m: (m(2, 3), 0)),
                lambda x, dim: np.moveaxis(softmax(np.moveaxis(x, dim, -1)), -1, dim),
                **wide,
            ),
        ]
    }
