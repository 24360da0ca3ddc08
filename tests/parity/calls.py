"""How a call path of ops.txt becomes a function of the module under test.

add, nn.functional.relu     an attribute of the module            Tensor.view   a method (self comes first)
@name                       a function below, for OpInfo entries whose arguments come in another order
"""

import operator


def _where(T, x, condition, other, **kw):
    return T.where(condition, x, other, **kw)


def _embedding(T, weight, index, **kw):
    return T.nn.functional.embedding(index, weight, **kw)


def _embedding_bag(T, weight, index, **kw):
    return T.nn.functional.embedding_bag(index, weight, **kw)


def _zero(T, x):
    return x.clone().zero_()


def _attribute(name):
    return lambda T, x: getattr(x, name)


def _normal_number_mean(T, std, mean, *a, **kw):
    return T.normal(mean, std, *a, **kw)


def _clone_then(name):
    """In-place random operators, run on a clone so that the sample's input stays."""
    return lambda T, x, *a, **kw: getattr(x.clone(), name)(*a, **kw)


def _slice(T, x, dim=0, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]


def _max_pool2d_backward(T, grad, x, kernel_size=(), stride=(), padding=(0,), dilation=(1,), ceil_mode=False, **kw):
    indices = T.nn.functional.max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode)[1]
    return T.ops.aten.max_pool2d_with_indices_backward(grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices)


def _order_first(name):
    """OpInfo's input comes first; polygamma's order does."""
    return lambda T, x, n, **kw: (T.special.polygamma if name == "special" else T.polygamma)(n, x, **kw)


SPECIAL = {
    "where": _where,
    "embedding": _embedding,
    "embedding_bag": _embedding_bag,
    "zero": _zero,
    "T": _attribute("T"),
    "mT": _attribute("mT"),
    "normal_number_mean": _normal_number_mean,
    "uniform_": _clone_then("uniform_"),
    "normal_": _clone_then("normal_"),
    "slice": _slice,
    "max_pool2d_backward": _max_pool2d_backward,
    "polygamma": _order_first("torch"),
    "special_polygamma": _order_first("special"),
}


def resolve(T, path):
    """The function a path names; AttributeError where the module has none."""
    if path.startswith("@"):
        fn = SPECIAL[path[1:]]
        return lambda *a, **kw: fn(T, *a, **kw)
    if path.startswith("operator."):
        return getattr(operator, path[9:])
    if path.startswith("Tensor."):
        name = path[7:]
        getattr(T.Tensor, name)
        return lambda x, *a, **kw: getattr(x, name)(*a, **kw)
    obj = T
    for part in path.removeprefix("torch.").split("."):
        obj = getattr(obj, part)
    return obj
