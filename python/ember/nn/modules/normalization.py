"""Layers that normalise each sample by itself: layer, RMS, group and local response normalisation."""

import numbers
from typing import Any

import ember
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """x over (k + alpha * mean square of `size` neighbouring channels) ** beta."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input) -> Any:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return "{size}, alpha={alpha}, beta={beta}, k={k}".format(**self.__dict__)


class CrossMapLRN2d(Module):
    """LocalResponseNorm of images (N, C, H, W); its window has an odd length: an even size counts one channel less."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input) -> Any:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        square = input.pow(2)
        end = square.new_zeros([input.size(0), reach, input.size(2), input.size(3)])
        windows = ember.cat([end, square, end], 1).unfold(1, 2 * reach + 1, 1).sum(-1)
        # PyTorch's running window never lets go of the first channel; its numbers count.
        near = min(reach + 1, input.size(1))
        far = windows[:, near:] + square[:, :1]
        windows = ember.cat([windows[:, :near], far], 1)
        return input * (windows * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return "{size}, alpha={alpha}, beta={beta}, k={k}".format(**self.__dict__)


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) over the last dimensions, then times weight plus bias (both of normalized_shape).

    Input (*, *normalized_shape), floating point; output the same. elementwise_affine False: no weight and bias; bias False:
    no bias. RuntimeError for an input of other last sizes.

    >>> nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, Parameter(ember.empty(self.normalized_shape, device=device, dtype=dtype))
                                    if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return "{}, eps={}, elementwise_affine={}, bias={}".format(self.normalized_shape, self.eps, self.elementwise_affine,
                                                                   self.bias is not None)


class GroupNorm(Module):
    """(x - mean) / sqrt(variance + eps) over num_groups groups of channels of each sample, then times weight plus bias, one a
    channel.

    Input (N, num_channels, *), output the same. ValueError for channels that the groups do not divide.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(ember.empty(num_channels, device=device, dtype=dtype))
                                    if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return "{}, {}, eps={}, affine={}, bias={}".format(self.num_groups, self.num_channels, self.eps, self.affine,
                                                           self.bias is not None)


class RMSNorm(Module):
    """x / sqrt(mean of x^2 + eps) along the last dimensions, whose sizes are normalized_shape, times weight. eps None: the
    dtype's own.

    Input (*, *normalized_shape), output the same. RuntimeError for an input of other last sizes.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(ember.empty(self.normalized_shape, device=device, dtype=dtype))
                                if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x) -> Any:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}".format(**self.__dict__)
