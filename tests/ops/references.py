"""References in plain numpy, double precision: one function an operator that numpy does not name itself."""
import math

import numpy as np


def each(function):
    """A real function of one number, applied to every element."""
    def on_array(x):
        return np.vectorize(function, otypes=[np.float64])(x) if np.size(x) else np.asarray(x, np.float64)
    return on_array


def widened(function):
    """numpy computes functions of bool in half precision: in double then."""
    return lambda x: function(x.astype(np.float64) if x.dtype == np.bool_ else x)


erf = each(math.erf)
erfc = each(math.erfc)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.result_type(x, np.float64))))


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def slope(function, step=1e-5):
    """The derivative of a real function, by central differences with one Richardson step (error about 1e-11)."""
    def derivative(x, *args, **kwargs):
        d1 = (function(x + step, *args, **kwargs) - function(x - step, *args, **kwargs)) / (2 * step)
        h = 2 * step
        d2 = (function(x + h, *args, **kwargs) - function(x - h, *args, **kwargs)) / (2 * h)
        return (4 * d1 - d2) / 3
    return derivative


def backward_of(function):
    d = slope(function)
    return lambda grad, x, *args, **kwargs: grad * d(x, *args, **kwargs)


def silu(x):
    return x * sigmoid(x)


def softplus(x, beta=1, threshold=20):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, x * negative_slope)


def elu(x, alpha=1, scale=1, input_scale=1):
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


def elu_backward(grad, alpha, scale, input_scale, is_result, x):
    inner = (x + alpha * scale) if is_result else alpha * scale * np.exp(x * input_scale)
    return np.where(x > 0, grad * scale, grad * input_scale * inner)


def truncated(a, b):
    q = np.trunc(np.true_divide(a, b))
    return q


def divide(a, b, rounding_mode=None):
    if rounding_mode is None:
        return np.true_divide(a, b)
    return np.floor_divide(a, b) if rounding_mode == "floor" else truncated(a, b)


def power(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "ib" and b.dtype.kind in "ib":
        return a.astype(np.int64) ** b.astype(np.int64)
    return np.power(a.astype(np.result_type(a, np.float64)), b)


def clamp(x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def dims(x, dim):
    """PyTorch's dim argument as numpy's axis: none and an empty list mean all."""
    return None if dim is None or dim == [] else tuple(dim) if isinstance(dim, (list, tuple)) else dim


def along(function):
    """numpy's (x, axis, keepdims) as PyTorch's (self, dim, keepdim)."""
    def reduce(x, dim=None, keepdim=False, **kwargs):
        x, dim = np.asarray(x), dims(x, dim)
        return function(x, axis=dim if x.ndim else None, keepdims=keepdim, **kwargs)
    return reduce


def total(x, axis=None, keepdims=False, dtype=None):
    return np.sum(x if x.dtype.kind in "fc" else x.astype(np.int64), axis=axis, keepdims=keepdims)


def product(x, axis=None, keepdims=False, dtype=None):
    return np.prod(x if x.dtype.kind in "fc" else x.astype(np.int64), axis=axis, keepdims=keepdims)


def variance(x, dim=None, correction=1, keepdim=False):
    axis = dims(x, dim)
    return np.var(x, axis=axis, ddof=1 if correction is None else correction, keepdims=keepdim)


def deviation(*args, **kwargs):
    return np.sqrt(variance(*args, **kwargs))


def var_mean(x, dim=None, correction=1, keepdim=False):
    return variance(x, dim, correction, keepdim), np.mean(x, axis=dims(x, dim), keepdims=keepdim)


def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    axis, x = dims(x, dim), np.abs(x)
    if ord == np.inf:
        return np.max(x, axis=axis, keepdims=keepdim)
    return np.sum(x ** ord, axis=axis, keepdims=keepdim) ** (1 / ord)


def extreme(best, where):
    def reduce(x, dim, keepdim=False):
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        return best(x, axis=dim, keepdims=keepdim), where(x, axis=dim, keepdims=keepdim)
    return reduce


def index_of(where):
    def reduce(x, dim=None, keepdim=False):
        return where(x, axis=dim, keepdims=keepdim) if x.ndim else np.zeros((), np.int64)
    return reduce


def softmax(x, dim, *_):
    if x.ndim == 0:
        return np.ones(())
    e = np.exp(x - np.max(x, axis=dim, keepdims=True)) if x.size else np.exp(x)
    return e / np.sum(e, axis=dim, keepdims=True)


def log_softmax(x, dim, *_):
    return np.log(softmax(x, dim))


def softmax_backward(grad, out, dim, _):
    return out * (grad - np.sum(grad * out, axis=dim, keepdims=True))


def log_softmax_backward(grad, out, dim, _):
    return grad - np.exp(out) * np.sum(grad, axis=dim, keepdims=True)


def reduced(losses, reduction, divisor=None):
    if reduction == 0:
        return losses
    return np.sum(losses) if reduction == 2 else np.sum(losses) / (losses.size if divisor is None else divisor)


def nll(x, target, weight=None, reduction=1, ignore_index=-100):
    """nll_loss over (N, C, ...): losses and total weight."""
    moved = np.moveaxis(x, 1, -1) if x.ndim > 1 else x[None]
    flat, t = moved.reshape(-1, moved.shape[-1]), np.reshape(target, -1)
    w = np.ones(flat.shape[1]) if weight is None else weight
    kept = t != ignore_index
    safe = np.where(kept, t, 0)
    weights = w[safe] * kept
    losses = (-flat[np.arange(len(t)), safe] * weights).reshape(np.shape(target))
    return losses, np.sum(weights)


def nll_forward(x, target, weight, reduction, ignore_index):
    losses, weights = nll(x, target, weight, reduction, ignore_index)
    return reduced(losses, reduction, weights), np.zeros(()) if reduction == 0 else weights


def nll_loss(x, target, weight=None, reduction=1, ignore_index=-100):
    losses, weights = nll(x, target, weight, reduction, ignore_index)
    return reduced(losses, reduction, weights)


def nll_backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    out = np.zeros_like(x)
    w = np.ones(x.shape[1]) if weight is None else weight
    for at in np.ndindex(np.shape(target)):
        c = target[at]
        if c != ignore_index:
            g = grad[at] if reduction == 0 else grad / (total_weight if reduction == 1 else 1)
            out[(at[0], c, *at[1:])] = -w[c] * g
    return out


def cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    logp = log_softmax(x, 1 if x.ndim > 1 else 0)
    if target.dtype.kind == "f":
        w = np.ones(x.shape[1]) if weight is None else weight
        t = target * (1 - label_smoothing) + label_smoothing / x.shape[1]
        return reduced(-np.sum(logp * t * w, axis=1), reduction, x.shape[0])
    losses, weights = nll(logp, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return reduced(losses, reduction, weights)
    w = np.ones(x.shape[1]) if weight is None else weight
    smooth = -np.sum(logp * w.reshape(1, -1), axis=1) * (target != ignore_index)
    mixed = (1 - label_smoothing) * losses + label_smoothing / x.shape[1] * smooth
    return reduced(mixed, reduction, weights)


def mse(x, target, reduction=1):
    return reduced((x - target) ** 2, reduction)


def mse_backward(grad, x, target, reduction):
    return grad * 2 * (x - target) / (x.size if reduction == 1 else 1)


def bce(x, target, weight=None, reduction=1):
    losses = -(target * np.log(x) + (1 - target) * np.log1p(-x))
    return reduced(losses if weight is None else losses * weight, reduction)


def bce_backward(grad, x, target, weight=None, reduction=1):
    out = grad * (x - target) / (x * (1 - x))
    return (out if weight is None else out * weight) / (x.size if reduction == 1 else 1)


def bce_logits(x, target, weight=None, pos_weight=None, reduction=1):
    p = np.ones(()) if pos_weight is None else pos_weight
    losses = -(p * target * np.log(sigmoid(x)) + (1 - target) * np.log(sigmoid(-x)))
    return reduced(losses if weight is None else losses * weight, reduction)


def index(x, indices):
    full = tuple(slice(None) if i is None else i for i in indices)
    return x[full]


def index_put(x, indices, values, accumulate=False):
    out, at = np.array(x), tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(out, at, values)
    else:
        out[at] = values
    return out


def scatter(x, dim, index, src, add=False):
    out = np.array(x)
    src = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        out[tuple(to)] = out[tuple(to)] + src[at] if add else src[at]
    return out


def scatter_add(x, dim, index, src):
    return scatter(x, dim, index, src, add=True)


def index_add(x, dim, index, source, alpha=1):
    out = np.moveaxis(np.array(x), dim, 0)
    np.add.at(out, index, alpha * np.moveaxis(source, dim, 0))
    return np.moveaxis(out, 0, dim)


def gather(x, dim, index):
    cut = tuple(slice(None) if d == dim % x.ndim else slice(0, n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index, dim)


def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    flat_grad, at = grad.reshape(-1, grad.shape[-1]), indices.reshape(-1)
    out = np.zeros((num_weights, grad.shape[-1]), grad.dtype)
    for g, i in zip(flat_grad, at):
        if i != padding_idx:
            out[i] += g / (np.sum(at == i) if scale_grad_by_freq else 1)
    return out


def as_strided(x, size, stride, storage_offset=0):
    flat = np.ascontiguousarray(x).reshape(-1)[storage_offset:]
    return np.lib.stride_tricks.as_strided(flat, size, [s * x.itemsize for s in stride])


def unfold(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return np.take(windows, np.arange(0, windows.shape[dim], step), axis=dim)


def slice_of(x, dim=0, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def expand(x, size):
    """-1 keeps a size."""
    missing = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - missing] if s == -1 else s for i, s in enumerate(size)])


def flatten(x, start_dim=0, end_dim=-1):
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(x.shape[:first] + (-1,) + x.shape[last + 1:])


def split(x, size, dim=0):
    if isinstance(size, int):
        cuts = range(size, x.shape[dim], size)
    else:
        cuts = np.cumsum(size)[:-1]
    return np.split(x, list(cuts), dim)


def chunk(x, chunks, dim=0):
    return split(x, -(-x.shape[dim] // chunks), dim)


def unbind(x, dim=0):
    return [np.take(x, i, dim) for i in range(x.shape[dim])]


def squeeze(x, dim=None):
    wanted = range(x.ndim) if dim is None else [d % max(x.ndim, 1) for d in (dim if isinstance(dim, list) else [dim])]
    return np.squeeze(x, tuple(d for d in wanted if d < x.ndim and x.shape[d] == 1))


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(a, b, rtol, atol, equal_nan)


def sgn(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
