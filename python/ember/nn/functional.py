"""The functions behind the layers. Signatures and defaults are those of torch.nn.functional."""

import warnings

import ember
from ember import _C
from ember.overrides import (handle_torch_function, has_torch_function_unary,
                             has_torch_function_variadic)
from . import _reduction as _Reduction
from ._attention import (_canonical_mask, _in_projection, _in_projection_packed, _mha_shape_check,  # noqa: F401
                         _none_or_dtype, multi_head_attention_forward as multi_head_attention_forward,
                         scaled_dot_product_attention as scaled_dot_product_attention)
from ._norm import vector_norm
from ._activation import *  # noqa: F403
from ._embedding import *  # noqa: F403
from ._loss import *  # noqa: F403
from ._normalization import *  # noqa: F403
from ._dropout import *  # noqa: F401, F403
from ._pooling import *  # noqa: F401, F403
from ._resample import *  # noqa: F401, F403

# Operators that need nothing from Python: bound once here, or when first asked for.
linear = _C._nn.linear
gelu = _C._nn.gelu
conv1d, conv2d, conv3d = ember.conv1d, ember.conv2d, ember.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = (ember.conv_transpose1d, ember.conv_transpose2d,
                                                        ember.conv_transpose3d)
conv_tbc = ember.conv_tbc
pad = _C._nn.pad

softplus, softshrink, logsigmoid = _C._nn.softplus, _C._nn.softshrink, _C._nn.log_sigmoid
hardshrink, prelu = ember.hardshrink, ember.prelu
relu_, selu_, celu_, rrelu_ = ember.relu_, ember.selu_, ember.celu_, ember.rrelu_


# ---- activations ---------------------------------------------------------------------------------------------


def relu(input, inplace=False) -> "ember.Tensor":
    """max(input, 0), element by element. Any shape; inplace writes input itself.

    >>> F.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if has_torch_function_unary(input):
        return handle_torch_function(relu, (input,), input, inplace=inplace)
    return ember.relu_(input) if inplace else ember.relu(input)


def tanh(input) -> "ember.Tensor":
    """The hyperbolic tangent of each element. Deprecated in favour of torch.tanh, which it is."""
    return input.tanh()


def sigmoid(input) -> "ember.Tensor":
    """1 / (1 + exp(-input)), element by element. Deprecated in favour of torch.sigmoid, which it is."""
    return input.sigmoid()


def threshold(input, threshold, value, inplace=False) -> "ember.Tensor":
    """input where it is above threshold, else value."""
    if has_torch_function_unary(input):
        return handle_torch_function(globals()["threshold"], (input,), input, threshold, value, inplace=inplace)
    return ember.threshold_(input, threshold, value) if inplace else ember.threshold(input, threshold, value)


def threshold_(input, threshold, value) -> "ember.Tensor":
    """In-place threshold."""
    return ember.threshold_(input, threshold, value)


def leaky_relu(input, negative_slope=0.01, inplace=False) -> "ember.Tensor":
    """input where it is positive, else negative_slope * input. Any shape; inplace writes input itself."""
    if has_torch_function_unary(input):
        return handle_torch_function(leaky_relu, (input,), input, negative_slope=negative_slope, inplace=inplace)
    return (_C._nn.leaky_relu_ if inplace else _C._nn.leaky_relu)(input, negative_slope)


def leaky_relu_(input, negative_slope=0.01) -> "ember.Tensor":
    """In-place leaky_relu."""
    return _C._nn.leaky_relu_(input, negative_slope)


def elu(input, alpha=1.0, inplace=False) -> "ember.Tensor":
    """input where it is positive, else alpha * (exp(input) - 1). Any shape; inplace writes input itself."""
    if has_torch_function_unary(input):
        return handle_torch_function(elu, (input,), input, alpha=alpha, inplace=inplace)
    return (_C._nn.elu_ if inplace else _C._nn.elu)(input, alpha)


def elu_(input, alpha=1.0) -> "ember.Tensor":
    """In-place elu."""
    return _C._nn.elu_(input, alpha)


def selu(input, inplace=False) -> "ember.Tensor":
    """The self-normalising ELU."""
    if has_torch_function_unary(input):
        return handle_torch_function(selu, (input,), input, inplace=inplace)
    return ember.selu_(input) if inplace else ember.selu(input)


def celu(input, alpha=1.0, inplace=False) -> "ember.Tensor":
    """max(0, input) + min(0, alpha * (exp(input / alpha) - 1))."""
    if has_torch_function_unary(input):
        return handle_torch_function(celu, (input,), input, alpha=alpha, inplace=inplace)
    return ember.celu_(input, alpha) if inplace else ember.celu(input, alpha)


def silu(input, inplace=False) -> "ember.Tensor":
    """input * sigmoid(input), element by element. Any shape; inplace writes input itself."""
    if has_torch_function_unary(input):
        return handle_torch_function(silu, (input,), input, inplace=inplace)
    return (_C._nn.silu_ if inplace else _C._nn.silu)(input)


def mish(input, inplace=False) -> "ember.Tensor":
    """input * tanh(softplus(input))."""
    if has_torch_function_unary(input):
        return handle_torch_function(mish, (input,), input, inplace=inplace)
    return (_C._nn.mish_ if inplace else _C._nn.mish)(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) -> "ember.Tensor":
    """input cut to [min_val, max_val]."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardtanh, (input,), input, min_val=min_val, max_val=max_val, inplace=inplace)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_C._nn.hardtanh_ if inplace else _C._nn.hardtanh)(input, min_val, max_val)


def hardtanh_(input, min_val=-1.0, max_val=1.0) -> "ember.Tensor":
    """In-place hardtanh."""
    return _C._nn.hardtanh_(input, min_val, max_val)


def relu6(input, inplace=False) -> "ember.Tensor":
    """min(max(input, 0), 6), element by element. Any shape; inplace writes input itself."""
    if has_torch_function_unary(input):
        return handle_torch_function(relu6, (input,), input, inplace=inplace)
    return (_C._nn.hardtanh_ if inplace else _C._nn.hardtanh)(input, 0.0, 6.0)


def hardsigmoid(input, inplace=False) -> "ember.Tensor":
    """(input + 3) / 6 cut to [0, 1]."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardsigmoid, (input,), input, inplace=inplace)
    return (_C._nn.hardsigmoid_ if inplace else _C._nn.hardsigmoid)(input)


def hardswish(input, inplace=False) -> "ember.Tensor":
    """input * hardsigmoid(input)."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardswish, (input,), input, inplace=inplace)
    return (_C._nn.hardswish_ if inplace else _C._nn.hardswish)(input)


def softsign(input) -> "ember.Tensor":
    """input / (1 + |input|)."""
    if has_torch_function_unary(input):
        return handle_torch_function(softsign, (input,), input)
    return input / (input.abs() + 1)


def tanhshrink(input) -> "ember.Tensor":
    """input - tanh(input)."""
    if has_torch_function_unary(input):
        return handle_torch_function(tanhshrink, (input,), input)
    return input - input.tanh()


def glu(input, dim=-1) -> "ember.Tensor":
    """First half of dim times the sigmoid of the second half."""
    if has_torch_function_unary(input):
        return handle_torch_function(glu, (input,), input, dim=dim)
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _C._nn.glu(input, dim)


def _implicit_softmax_dim(name, ndim, stacklevel):
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
                  "argument.", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None) -> "ember.Tensor":
    """exp(input) / sum of exp(input) along dim: positive numbers that sum to 1. Result of input's shape.

    dim: None chooses 0 or 1 by the number of dimensions, with a warning. dtype: cast the input first.

    >>> F.softmax(torch.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if has_torch_function_unary(input):
        return handle_torch_function(softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _implicit_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None) -> "ember.Tensor":
    """softmax(-input)."""
    if has_torch_function_unary(input):
        return handle_torch_function(softmin, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _implicit_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None) -> "ember.Tensor":
    """input - log(sum of exp(input) along dim), without overflow. Result of input's shape.

    dim: None chooses 0 or 1 by the number of dimensions, with a warning. dtype: cast the input first.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(log_softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _implicit_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


# ---- look-up and normalisation -------------------------------------------------------------------------------


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None) -> "ember.Tensor":
    """input / max(p-norm along dim, eps): vectors of length 1. Result as input; out: where it is written.

    >>> F.normalize(torch.tensor([[3.0, 4.0]]), dim=1)
    tensor([[0.6000, 0.8000]])
    """
    if has_torch_function_variadic(input, out):
        return handle_torch_function(normalize, (input, out), input, p=p, dim=dim, eps=eps, out=out)
    denom = vector_norm(input, p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denom if out is None else ember.div(input, denom, out=out)


one_hot = _C._nn.one_hot


bilinear = _C._VariableFunctions.bilinear


# ---- losses --------------------------------------------------------------------------------------------------


def _legacy(size_average, reduce, reduction):
    if size_average is not None or reduce is not None:
        return _Reduction.legacy_get_string(size_average, reduce)
    return reduction


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0) -> "ember.Tensor":
    """Negative log likelihood of target under log_softmax(input, 1): -log(exp(input[target]) / sum of exp(input)).

    input: scores (C), (N, C) or (N, C, d1, ...), floating point. target: class indices (int64) of that shape without C, or
    probabilities of input's shape. weight: (C), a factor for each class. ignore_index: targets that count for nothing.
    label_smoothing: share of each target that is spread over all classes. Result: a scalar for "mean" and "sum", target's
    shape (of indices) for "none". IndexError for a target that is no class, RuntimeError for sizes that do not fit.

    >>> F.cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(cross_entropy, (input, target, weight), input, target, weight=weight,
                                     size_average=size_average, ignore_index=ignore_index, reduce=reduce,
                                     reduction=reduction, label_smoothing=label_smoothing)
    reduction = _legacy(size_average, reduce, reduction)
    return _C._nn.cross_entropy_loss(input, target, weight, _Reduction.get_enum(reduction), ignore_index,
                                     label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") -> "ember.Tensor":
    """-weight[target] * input[target], input being log-probabilities: (C), (N, C) or (N, C, d1, ...); target: class indices of
    that shape without C.

    reduction "mean" divides by the sum of the weights; ignore_index: targets that count for nothing. IndexError for a
    target that is no class.
    """
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(nll_loss, (input, target, weight), input, target, weight=weight,
                                     size_average=size_average, ignore_index=ignore_index, reduce=reduce,
                                     reduction=reduction)
    reduction = _legacy(size_average, reduce, reduction)
    return _C._nn.nll_loss_nd(input, target, weight, _Reduction.get_enum(reduction), ignore_index)


def _warn_broadcast(input, target):
    if target.size() != input.size():
        warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
                      "This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
                      "same size.", stacklevel=3)


def _weighted_reduce(errors, weight, input, reduction):
    """Reduce errors * weight; the mean is by the sum of the weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = errors * weight
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return ember.sum(weighted)
    if reduction == "mean":
        return ember.sum(weighted) / ember.sum(weight)
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _reduce(errors, reduction):
    kind = _Reduction.get_enum(reduction)
    return errors if kind == 0 else errors.mean() if kind == 1 else errors.sum()


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None) -> "ember.Tensor":
    """(input - target)^2, averaged ("mean"), summed ("sum") or as it is ("none"). Sizes that differ but broadcast give a
    warning.

    weight: factors of input's shape.

    >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(mse_loss, (input, target, weight), input, target, size_average=size_average,
                                     reduce=reduce, reduction=reduction, weight=weight)
    _warn_broadcast(input, target)
    reduction = _legacy(size_average, reduce, reduction)
    expanded_input, expanded_target = ember.broadcast_tensors(input, target)
    if weight is not None:
        return _weighted_reduce(ember.pow(expanded_input - expanded_target, 2), weight, input, reduction)
    return _C._nn.mse_loss(expanded_input, expanded_target, _Reduction.get_enum(reduction))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None) -> "ember.Tensor":
    """|input - target|, averaged ("mean"), summed ("sum") or as it is ("none"). Sizes that differ but broadcast give a
    warning.
    """
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(l1_loss, (input, target, weight), input, target, size_average=size_average,
                                     reduce=reduce, reduction=reduction, weight=weight)
    _warn_broadcast(input, target)
    reduction = _legacy(size_average, reduce, reduction)
    expanded_input, expanded_target = ember.broadcast_tensors(input, target)
    if weight is not None:
        return _weighted_reduce(ember.abs(expanded_input - expanded_target), weight, input, reduction)
    return _C._nn.l1_loss(expanded_input, expanded_target, _Reduction.get_enum(reduction))


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0) -> "ember.Tensor":
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2; averaged, summed or as it is.

    beta 0 is l1_loss; ValueError for a negative one. Sizes that differ but broadcast give a warning.
    """
    if has_torch_function_variadic(input, target):
        return handle_torch_function(smooth_l1_loss, (input, target), input, target, size_average=size_average,
                                     reduce=reduce, reduction=reduction, beta=beta)
    _warn_broadcast(input, target)
    reduction = _legacy(size_average, reduce, reduction)
    expanded_input, expanded_target = ember.broadcast_tensors(input, target)
    if beta == 0.0:
        return _C._nn.l1_loss(expanded_input, expanded_target, _Reduction.get_enum(reduction))
    return _C._nn.smooth_l1_loss(expanded_input, expanded_target, _Reduction.get_enum(reduction), beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None) -> "ember.Tensor":
    """Half the squared error below delta, delta * (absolute error - delta / 2) above."""
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(huber_loss, (input, target, weight), input, target, reduction=reduction,
                                     delta=delta, weight=weight)
    _warn_broadcast(input, target)
    expanded_input, expanded_target = ember.broadcast_tensors(input, target)
    if weight is None:
        return _C._nn.huber_loss(expanded_input, expanded_target, _Reduction.get_enum(reduction), delta)
    errors = _C._nn.huber_loss(expanded_input, expanded_target, _Reduction.get_enum("none"), delta)
    return _weighted_reduce(errors, weight, input, reduction)


_SCALAR_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
                 "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}


def _scalar_name(tensor):
    """PyTorch's word for the tensor's dtype in messages."""
    name = str(tensor.dtype).rpartition(".")[2]
    return _SCALAR_NAMES.get(name, name)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms no less than -100; averaged, summed or as it is.

    input and target of one shape, ValueError otherwise; RuntimeError for an input outside [0, 1]. weight broadcasts to
    input.
    """
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(binary_cross_entropy, (input, target, weight), input, target, weight=weight,
                                     size_average=size_average, reduce=reduce, reduction=reduction)
    reduction = _legacy(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size "
                         f"({input.size()}) is deprecated. Please ensure they have the same size.")
    if not target.is_floating_point():
        raise RuntimeError(f"Found dtype {_scalar_name(target)} but expected {_scalar_name(input)}")
    if weight is not None:
        weight = weight.expand(target.size())
    return _C._nn.binary_cross_entropy(input, target, weight, _Reduction.get_enum(reduction))


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None) -> "ember.Tensor":
    """Binary cross entropy of sigmoid(input), computed without overflow; averaged ("mean"), summed ("sum") or as it is
    ("none").

    input and target of one shape, ValueError otherwise. weight: factors that broadcast to input. pos_weight: factors of the
    positive part, one a class.
    """
    if has_torch_function_variadic(input, target, weight, pos_weight):
        return handle_torch_function(binary_cross_entropy_with_logits, (input, target, weight, pos_weight), input,
                                     target, weight=weight, size_average=size_average, reduce=reduce,
                                     reduction=reduction, pos_weight=pos_weight)
    reduction = _legacy(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    if not target.is_floating_point():
        raise RuntimeError(f"result type {_scalar_name(input)} can't be cast to the desired output type {_scalar_name(target)}")
    return ember.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _Reduction.get_enum(reduction))
