"""Activations beside those of table.py."""
import numpy as np
import references as r
from makers import activations, calls, gradient_of
from subject import Arg


def kept(x, lambd):
    return np.abs(x) > lambd


def log_sigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def mish(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def celu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def glu(x, dim=-1):
    a, b = np.split(x, 2, dim)
    return a * r.sigmoid(b)


def glu_backward(g, x, dim):
    a, b = np.split(x, 2, dim)
    s = r.sigmoid(b)
    return np.concatenate([g * s, g * a * s * (1 - s)], dim)


def channels(w, x):
    return w.reshape((1, -1) + (1,) * (x.ndim - 2)) if x.ndim > 1 and w.size > 1 else w.reshape(-1)[0]


def rrelu(x, lower=1 / 8, upper=1 / 3, *_):
    return np.where(x > 0, x, x * (lower + upper) / 2)


def groups(E):
    fl = {"kinds": "float"}
    hard = lambda x: np.clip(x + 3, 0, 6) / 6  # noqa: E731
    selu = lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))  # noqa: E731
    noisy = calls(lambda m: (m(3, 4), m(3, 4, diff=False), 0.1, 0.3), lambda m: (m(), m(diff=False), 0.1, 0.3))
    plain = lambda x, _, low, high: rrelu(x, low, high)  # noqa: E731
    return {"activation": [
        E("celu", activations(0.75), celu, "fio", **fl), E("selu", activations(), selu, "fi", scale=2, **fl),
        E("mish", activations(), mish, "fio", scale=4, **fl),
        E("mish_backward", gradient_of(), r.backward_of(mish), scale=40, **fl),
        E("hardsigmoid", activations(), hard, "fio", **fl),
        E("hardsigmoid_backward", gradient_of(), lambda g, x: g / 6 * (np.abs(x) < 3), "fo", **fl),
        E("hardswish", activations(), lambda x: x * hard(x), "fio", scale=2, **fl),
        E("hardswish_backward", gradient_of(), lambda g, x: np.where(x <= -3, 0, np.where(x < 3, g * (x / 3 + 0.5), g)), "fo",
          scale=2, **fl),
        E("log_sigmoid", activations(), log_sigmoid, "fo", scale=2, **fl),
        E("log_sigmoid_forward", activations(), lambda x: (log_sigmoid(x), np.exp(-np.abs(x))), "f", scale=2, **fl),
        E("log_sigmoid_backward", calls(lambda m: (m(3, 4), *logged(m))), lambda g, x, _: g * r.sigmoid(-x), "fo", scale=4,
          **fl),
        E("softshrink", activations(0.7), lambda x, k: np.sign(x) * np.maximum(np.abs(x) - k, 0), "fo", **fl),
        E("softshrink_backward", gradient_of(0.7), lambda g, x, k: g * kept(x, k), "fo", **fl),
        E("hardshrink", activations(0.7), lambda x, k: x * kept(x, k), "fo", **fl),
        E("hardshrink_backward", gradient_of(0.7), lambda g, x, k: g * kept(x, k), "fo", **fl),
        E("glu", calls(lambda m: (m(3, 4),), lambda m: (m(2, 3, 5), 0)), glu, "fo", scale=2, **fl),
        E("glu_backward", calls(lambda m: (m(3, 2), m(3, 4), 1), lambda m: (m(1, 3), m(2, 3), 0)), glu_backward, "fo", scale=4,
          **fl),
        E("prelu", calls(lambda m: (m(2, 3, 4), m(3)), lambda m: (m(4), m(1)), lambda m: (m(), m(1))),
          lambda x, w: np.where(x > 0, x, channels(w, x) * x), **fl),
        E("_prelu_kernel", calls(lambda m: (m(3, 4), m(4)), lambda m: (m(3, 4), m(3, 1))),
          lambda x, w: np.where(x > 0, x, w * x), **fl),
        E("_prelu_kernel_backward", calls(lambda m: (m(3, 4), m(3, 4), m(3, 4))),
          lambda g, x, w: (np.where(x > 0, g, w * g), np.where(x > 0, 0, x * g)), **fl),
        E("rrelu", activations(0.1, 0.3, False), rrelu, "fi", **fl),
        E("rrelu_with_noise", noisy, plain, **fl),
        E("rrelu_with_noise_", noisy, plain, **fl),
        E("rrelu_with_noise_backward", calls(lambda m: (m(3, 4), m(3, 4), m(3, 4, diff=False), 0.1, 0.3, True, False),
                                             lambda m: (m(3, 4), m(3, 4), m(3, 4, diff=False), 0.1, 0.3, False, False)),
          lambda g, x, n, low, high, training, _: g * n if training else np.where(x > 0, g, g * (low + high) / 2), **fl),
    ]}


def logged(m):
    x = m(3, 4)
    return x, Arg(np.exp(-np.abs(x.values)), diff=False)
