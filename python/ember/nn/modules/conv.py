"""Convolutions over 1, 2 and 3 dimensions of space, and their transposes."""

import math
from typing import Any

import ember
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
           "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]

_SPREAD = {1: _single, 2: _pair, 3: _triple}


class _ConvNd(Module):
    """What all of them share: the checks, the parameters, their initial values, the text."""

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
                     "out_channels", "kernel_size"]

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                 groups, bias, padding_mode, device=None, dtype=None) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        words = {"same", "valid"}
        if isinstance(padding, str):
            if padding not in words:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {words}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._explicit_padding()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(ember.empty((first, second // groups, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ember.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _explicit_padding(self):
        """The padding as F.pad takes it: last dimension first, before and after."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        both = [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            for i, (d, k) in enumerate(zip(reversed(self.dilation), reversed(self.kernel_size))):
                total = d * (k - 1)
                both[2 * i] = total // 2
                both[2 * i + 1] = total - total // 2
        return both

    def reset_parameters(self) -> None:
        # a=sqrt(5) makes the bound 1/sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", (0,) * n), ("dilation", (1,) * n), ("output_padding", (0,) * n), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A plain convolution over `_space` dimensions."""

    def _build(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
               dtype):
        spread = _SPREAD[self._space]
        _ConvNd.__init__(self, in_channels, out_channels, spread(kernel_size), spread(stride),
                         padding if isinstance(padding, str) else spread(padding), spread(dilation), False, spread(0),
                         groups, bias, padding_mode, device=device, dtype=dtype)

    def _conv_forward(self, input, weight, bias):
        conv = getattr(F, f"conv{self._space}d")
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return conv(padded, weight, bias, self.stride, 0, self.dilation, self.groups)
        return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Slides out_channels filters over sequences (N, in_channels, L) or (in_channels, L); weight (out_channels, in_channels /
    groups, kernel_size). Output (N, out_channels, floor((L + 2 padding - dilation (k - 1) - 1) / stride) + 1).

    padding: a number, one a dimension, 'same' or 'valid'. padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
    groups: into how many groups the channels fall. ValueError for channels that groups does not divide; RuntimeError for an
    input that does not fit the weight, or is smaller than the kernel.

    >>> nn.Conv1d(2, 4, kernel_size=3, stride=2)(torch.zeros(1, 2, 9)).shape
    torch.Size([1, 4, 4])
    """

    _space = 1

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
                    dtype)


class Conv2d(_Conv):
    """Slides out_channels filters over pictures (N, in_channels, H, W) or (in_channels, H, W); weight (out_channels,
    in_channels / groups, kh, kw). Output (N, out_channels, H_out, W_out), H_out = floor((H + 2 padding - dilation (kh - 1)
    - 1) / stride) + 1.

    padding: a number, one a dimension, 'same' or 'valid'. padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
    groups: into how many groups the channels fall. ValueError for channels that groups does not divide; RuntimeError for an
    input that does not fit the weight, or is smaller than the kernel.

    >>> nn.Conv2d(3, 8, kernel_size=3, padding=1)(torch.zeros(1, 3, 16, 16)).shape
    torch.Size([1, 8, 16, 16])
    """

    _space = 2

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
                    dtype)

    def _conv_forward(self, input, weight, bias):
        # As the base's, without its detours: the busiest layer there is.
        if self.padding_mode != "zeros":
            return super()._conv_forward(input, weight, bias)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Slides out_channels filters over volumes (N, in_channels, D, H, W) or (in_channels, D, H, W); weight (out_channels,
    in_channels / groups, kd, kh, kw). Output sizes floor((size + 2 padding - dilation (k - 1) - 1) / stride) + 1.

    padding: a number, one a dimension, 'same' or 'valid'. padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
    groups: into how many groups the channels fall. ValueError for channels that groups does not divide; RuntimeError for an
    input that does not fit the weight, or is smaller than the kernel.
    """

    _space = 3

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device,
                    dtype)


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution as a layer; output_size of forward() chooses among the sizes that a stride allows."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                 groups, bias, padding_mode, device=None, dtype=None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                         groups, bias, padding_mode, device=device, dtype=dtype)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The output_padding that leads to output_size."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        around = 2 if input.dim() == n + 2 else 1
        if len(output_size) == around + n:
            output_size = output_size[around:]
        if len(output_size) != n:
            raise ValueError(f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {around + n} "
                             f"elements (got {len(output_size)})")
        low = [(input.size(d + around) - 1) * stride[d] - 2 * padding[d]
               + (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1) + 1 for d in range(n)]
        high = [low[d] + stride[d] - 1 for d in range(n)]
        if any(not least <= size <= most for size, least, most in zip(output_size, low, high)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {low} to {high} "
                             f"(for an input of {input.size()[2:]})")
        return [output_size[d] - low[d] for d in range(n)]


class _ConvTranspose(_ConvTransposeNd):
    def _build(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
               padding_mode, device, dtype):
        spread = _SPREAD[self._space]
        _ConvTransposeNd.__init__(self, in_channels, out_channels, spread(kernel_size), spread(stride), spread(padding),
                                  spread(dilation), True, spread(output_padding), groups, bias, padding_mode,
                                  device=device, dtype=dtype)

    def forward(self, input, output_size=None) -> Any:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{self._space}d")
        more = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self._space,
                                    self.dilation)
        conv = getattr(F, f"conv_transpose{self._space}d")
        return conv(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """The gradient of Conv1d with respect to its input, as a layer. Input (N, in_channels, L) or (in_channels, L), weight
    (in_channels, out_channels / groups, kernel_size), output length (L - 1) stride - 2 padding + dilation (k - 1) +
    output_padding + 1.

    forward(input, output_size=None): chooses among the lengths that stride leaves open.
    """

    _space = 1

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups=1, bias=True,
                 dilation: Any = 1, padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
                    padding_mode, device, dtype)


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d with respect to its input, as a layer. Input (N, in_channels, H, W) or (in_channels, H, W),
    weight (in_channels, out_channels / groups, kh, kw), output sizes (H - 1) stride - 2 padding + dilation (kh - 1) +
    output_padding + 1.

    forward(input, output_size=None): chooses among the sizes that stride leaves open.

    >>> nn.ConvTranspose2d(4, 2, kernel_size=2, stride=2)(torch.zeros(1, 4, 8, 8)).shape
    torch.Size([1, 2, 16, 16])
    """

    _space = 2

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups=1, bias=True,
                 dilation: Any = 1, padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
                    padding_mode, device, dtype)


class ConvTranspose3d(_ConvTranspose):
    """Input (N, in_channels, D, H, W) or (in_channels, D, H, W), weight (in_channels, out_channels / groups, kd, kh, kw)."""

    _space = 3

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups=1, bias=True,
                 dilation: Any = 1, padding_mode="zeros", device=None, dtype=None) -> None:
        self._build(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
                    padding_mode, device, dtype)


# ---- in_channels from the first input ------------------------------------------------------------------------


class _LazyConvXdMixin(LazyModuleMixin):
    """Builds the layer without input channels, with parameters that get their shapes later."""

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {self.__class__.__name__}, "
                               f"but got input of size: {input.shape}")
        return input.shape[input.dim() - n - 1]

    def _get_num_spatial_dims(self):
        return self._space


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device,
                         dtype=dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups=1,
                 bias=True, dilation: Any = 1,
                 padding_mode="zeros", device=None, dtype=None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device=device, dtype=dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that learns in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that learns in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that learns in_channels from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that learns in_channels from its first input."""

    cls_to_become = ConvTranspose3d
