"""Pooling layers: each applies the function of the same name in nn.functional."""

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d", "AvgPool2d",
           "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
           "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
           "AdaptiveAvgPool3d"]


def _tuple(value, n):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _function = ""

    def __init__(self, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1, return_indices=False, ceil_mode=False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                          ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """The largest of each window of (N, C, L) or (C, L)."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of (N, C, H, W) or (C, H, W).

    stride: kernel_size without one. Output H_out = floor((H + 2 padding - dilation (k - 1) - 1) / stride) + 1, ceil when
    ceil_mode. return_indices: also where each stood, for MaxUnpool2d. RuntimeError for a padding of more than half the
    kernel.

    >>> nn.MaxPool2d(2)(torch.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The largest of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "max_pool3d"


class _MaxUnpoolNd(Module):
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self._dims)
        self.stride = _tuple(stride if stride is not None else kernel_size, self._dims)
        self.padding = _tuple(padding, self._dims)

    def forward(self, input, indices, output_size=None) -> Any:
        return getattr(F, f"max_unpool{self._dims}d")(input, indices, self.kernel_size, self.stride, self.padding,
                                                      output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """MaxPool1d backwards: maxima at their places, zero elsewhere."""

    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """MaxPool2d backwards: maxima at their places, zero elsewhere."""

    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """MaxPool3d backwards: maxima at their places, zero elsewhere."""

    _dims = 3


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L); output length floor((L + 2 padding - k) / stride) + 1, ceil when
    ceil_mode.

    stride: kernel_size without one. count_include_pad: whether padding counts as elements.
    """

    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode=False, count_include_pad=True) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, 1)
        self.stride = _tuple(stride if stride is not None else kernel_size, 1)
        self.padding = _tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input) -> Any:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class _AvgPoolMany(_AvgPoolNd):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
    _function = ""

    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                          self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolMany):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    stride: kernel_size without one. Output H_out = floor((H + 2 padding - k) / stride) + 1, ceil when ceil_mode.
    count_include_pad: whether padding counts as elements. divisor_override: what sums are divided by.
    """

    _function = "avg_pool2d"


class AvgPool3d(_AvgPoolMany):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "avg_pool3d"


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None) -> None:
        super().__init__()
        n = self._dims
        self.kernel_size = _tuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = _tuple(output_size, n) if output_size is not None else None
        self.output_ratio = _tuple(output_ratio, n) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input) -> Any:
        return getattr(F, f"fractional_max_pool{self._dims}d")(input, self.kernel_size, self.output_size,
                                                               self.output_ratio, self.return_indices,
                                                               _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling of (N, C, H, W) or (C, H, W) to a size or a ratio, with windows at random places."""

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling of (N, C, D, H, W) or (C, D, H, W) to a size or a ratio, with windows at random places."""

    _dims = 3


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _function = ""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of (N, C, L) or (C, L)."""

    _function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of (N, C, H, W) or (C, H, W)."""

    _function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "lp_pool3d"


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]
    _function = ""

    def __init__(self, output_size, return_indices=False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest of output_size windows over the last dim."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest of output_size windows over the last two dims. None: as many as the input has."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest of output_size windows over the last three dims. None: as many as the input has."""

    _function = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]
    _function = ""

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input) -> Any:
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean of output_size windows over the last dim."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean of output_size windows over the last two dims of (N, C, H, W) or (C, H, W). None: as many as the input has.

    >>> nn.AdaptiveAvgPool2d(1)(torch.arange(4.0).view(1, 2, 2))
    tensor([[[1.5000]]])
    """

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean of output_size windows over the last three dims. None: as many as the input has."""

    _function = "adaptive_avg_pool3d"
