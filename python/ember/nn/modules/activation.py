"""Activation layers: each applies the function of the same name in nn.functional, element by element."""

from typing import Any

import ember
from .. import functional as F
from .. import init as _init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["Threshold", "ReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish",
           "ELU", "CELU", "SELU", "GLU", "GELU", "RReLU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink",
           "PReLU", "Softsign", "Tanhshrink", "MultiheadAttention", "Softmin", "Softmax", "Softmax2d", "LogSoftmax"]


class _Inplace(Module):
    """An activation whose only option is inplace. `_function` names it in nn.functional."""

    _function = ""

    def __init__(self, inplace=False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(x, 0), element by element. Input of any shape, floating point; result of the same shape and dtype.

    inplace: the input itself is written and returned.

    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input) -> Any:
        return F.relu(input, self.inplace)


class ReLU6(_Inplace):
    """min(max(x, 0), 6), element by element. Input of any shape, floating point; result of the same shape and dtype."""

    _function = "relu6"


class SiLU(_Inplace):
    """x * sigmoid(x), element by element. Input of any shape, floating point; result of the same shape and dtype."""

    _function = "silu"


class Mish(_Inplace):
    """x * tanh(softplus(x))."""

    _function = "mish"


class SELU(_Inplace):
    """The self-normalising ELU."""

    _function = "selu"


class Hardsigmoid(_Inplace):
    """(x + 3) / 6 cut to [0, 1]."""

    _function = "hardsigmoid"

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """x * min(max(x + 3, 0), 6) / 6, element by element. Input of any shape, floating point; result of the same shape and
    dtype.
    """

    _function = "hardswish"

    def extra_repr(self) -> str:
        return ""


class Threshold(Module):
    """x where it is above threshold, else value."""

    def __init__(self, threshold, value, inplace=False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """LeakyReLU with slopes drawn from [lower, upper]; in evaluation their mean."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """x cut to [min_val, max_val]."""

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None) -> None:
        super().__init__()
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if locals()[old] is not None:
                import warnings
                warnings.warn(f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning,
                              stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Sigmoid(Module):
    """1 / (1 + exp(-x)), element by element. Input of any shape, floating point; result of the same shape and dtype."""

    def forward(self, input) -> Any:
        return ember.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent of each element. Input of any shape, floating point; result of the same shape and dtype."""

    def forward(self, input) -> Any:
        return ember.tanh(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input) -> Any:
        return F.tanhshrink(input)


class _Alpha(Module):
    _function = ""

    def __init__(self, alpha=1.0, inplace=False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """x where it is positive, else alpha * (exp(x) - 1). Input of any shape, floating point; result of the same shape and
    dtype.
    """

    _function = "elu"


class CELU(_Alpha):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    _function = "celu"


class GLU(Module):
    """The first half along dim times the sigmoid of the second half. Result with half as many along dim.

    RuntimeError for an odd size of dim.
    """

    def __init__(self, dim=-1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x * Phi(x), Phi the standard normal distribution. Input of any shape, floating point; result of the same shape and
    dtype.

    approximate: "none", or "tanh" for x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
    """

    def __init__(self, approximate="none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(Module):
    _function = ""

    def __init__(self, lambd=0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    _function = "hardshrink"


class Softshrink(_Shrink):
    """x moved by lambd towards 0, and 0 within lambd of it."""

    _function = "softshrink"


class LeakyReLU(Module):
    """x where it is positive, else negative_slope * x. Input of any shape, floating point; result of the same shape and dtype."""

    def __init__(self, negative_slope=0.01, inplace=False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold. Input of any shape; output the same."""

    def __init__(self, beta=1.0, threshold=20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """x where it is positive, else weight * x: a learned slope, one for all channels or num_parameters for dimension 1. Output
    as the input.
    """

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(ember.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _init.constant_(self.weight, self.init)

    def forward(self, input) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _OverDim(Module):
    _function = ""

    def __init__(self, dim=None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_OverDim):
    """softmax(-x) along dim."""

    _function = "softmin"


class Softmax(_OverDim):
    """exp(x) / sum of exp(x) along dim: positive numbers that sum to 1. Result as the input.

    dim: None chooses 0 or 1 by the number of dimensions, with a warning.

    >>> nn.Softmax(dim=1)(torch.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    _function = "softmax"


class LogSoftmax(_OverDim):
    """x - log(sum of exp(x) along dim): what NLLLoss wants. Result as the input.

    dim: None chooses 0 or 1 by the number of dimensions, with a warning.
    """

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class MultiheadAttention(Module):
    """Attention in num_heads heads, with projections of query, key, value and output. (length, batch, embed_dim), or batch first.

    Returns (output, weights): weights averaged over heads unless average_attn_weights is False, None with need_weights=False, which lets
    the fused kernel run.
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        where = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(ember.empty((3 * embed_dim, embed_dim), **where))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(ember.empty((embed_dim, embed_dim), **where))
            self.k_proj_weight = Parameter(ember.empty((embed_dim, self.kdim), **where))
            self.v_proj_weight = Parameter(ember.empty((embed_dim, self.vdim), **where))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(ember.empty(3 * embed_dim, **where))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **where)
        if add_bias_kv:
            self.bias_k = Parameter(ember.empty((1, 1, embed_dim), **where))
            self.bias_v = Parameter(ember.empty((1, 1, embed_dim), **where))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            _init.xavier_uniform_(self.in_proj_weight)
        else:
            _init.xavier_uniform_(self.q_proj_weight)
            _init.xavier_uniform_(self.k_proj_weight)
            _init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            _init.constant_(self.in_proj_bias, 0.0)
            _init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            _init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            _init.xavier_normal_(self.bias_v)

    def __setstate__(self, state) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # files from before kdim and vdim
        super().__setstate__(state)

    def _by_length(self, query, key, value):
        """Batch first to length first; operands that were one tensor stay one."""
        if key is value:
            if query is key:
                query = key = value = query.transpose(1, 0)
            else:
                query, key = (x.transpose(1, 0) for x in (query, key))
                value = key
        else:
            query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        return query, key, value

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ) -> Any:
        turns = self.batch_first and query.dim() == 3
        key_padding_mask = F._canonical_mask(
            key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        alone = turns and self._infers_alone(query, key, value)
        if turns:
            query, key, value = self._by_length(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True,
            "q_proj_weight": self.q_proj_weight,
            "k_proj_weight": self.k_proj_weight,
            "v_proj_weight": self.v_proj_weight,
        }
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        if turns:
            output = output.transpose(1, 0)
            if alone:  # PyTorch's kernel for this case writes batch first
                output = output.contiguous()
        return output, weights

    def _infers_alone(self, query, key, value):
        """Self-attention without training or gradients, of the plainest kind."""
        if self.training or query is not key or key is not value or self.num_heads % 2 or ember.is_autocast_enabled("cpu"):
            return False
        if not self._qkv_same_embed_dim or self.in_proj_bias is None or self.bias_k is not None or self.add_zero_attn:
            return False
        used = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return not ember.is_grad_enabled() or not any(t.requires_grad for t in used)

    def merge_masks(self, attn_mask, key_padding_mask, query) -> Any:
        """Both masks as one, expanded to (batch, heads, length, length), and its kind: 0 attention, 1 padding, 2 both; None, None."""
        kind = merged = None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            merged = attn_mask.view(batch, -1, length, length) if attn_mask.dim() == 3 else (
                attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            )
            if key_padding_mask is not None:
                merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, kind
