"""The gradients of convolutions as functions of their own."""

from typing import Any

import ember
from .modules.utils import _pair, _single, _triple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(which, spread, input, weight, grad_output, stride, padding, dilation, groups):
    """Gradient 0 (of input) or 1 (of weight). Of the operand that it is the gradient of only the sizes are needed."""
    one = grad_output.new_empty(1)
    if which == 0:
        input = one.expand(input)
    else:
        weight = one.expand(weight)
    return ember.ops.aten.convolution_backward(grad_output, input, weight, None, spread(stride), spread(padding),
                                               spread(dilation), False, [0], groups, (which == 0, which == 1, False))[which]


def conv1d_input(input_size, weight, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv1d(input, weight, ...) with respect to an input of input_size."""
    return _gradient(0, _single, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv1d(input, weight, ...) with respect to a weight of weight_size."""
    return _gradient(1, _single, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv2d(input, weight, ...) with respect to an input of input_size."""
    return _gradient(0, _pair, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv2d(input, weight, ...) with respect to a weight of weight_size."""
    return _gradient(1, _pair, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv3d(input, weight, ...) with respect to an input of input_size."""
    return _gradient(0, _triple, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1) -> Any:
    """The gradient of conv3d(input, weight, ...) with respect to a weight of weight_size."""
    return _gradient(1, _triple, input, weight_size, grad_output, stride, padding, dilation, groups)
