"""Batch norm in eval mode is a line: it can be folded into the layer before it."""

import copy
from typing import Any

import ember
from ember.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False) -> Any:
    """Weight and bias of a convolution that does what conv and then batch norm (mean bn_rm, variance bn_rv) do."""
    bias = ember.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (1 if bn_w is None else bn_w) * ember.rsqrt(bn_rv + bn_eps)
    shape = [1, -1] if transpose else [-1, 1]
    weight = conv_w * scale.reshape(shape + [1] * (conv_w.dim() - 2))
    bias = (bias - bn_rm) * scale + (0 if bn_b is None else bn_b)
    return (Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
            Parameter(bias.to(conv_w.dtype if conv_b is None else conv_b.dtype),
                      conv_w.requires_grad if conv_b is None else conv_b.requires_grad))


def fuse_conv_bn_eval(conv, bn, transpose=False) -> Any:
    """A copy of conv that does what conv and then bn do. Both must be in eval mode."""
    assert not (conv.training or bn.training), "Fusion only for eval!"
    fused = copy.deepcopy(conv)
    assert bn.running_mean is not None and bn.running_var is not None, "Fusion needs running statistics"
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                    bn.weight, bn.bias, transpose)
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b) -> Any:
    """Weight and bias of a linear layer that does what linear and then batch norm do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear, bn) -> Any:
    """A copy of linear that does what linear and then bn do. Both must be in eval mode."""
    assert not (linear.training or bn.training), "Fusion only for eval!"
    assert linear.out_features == bn.num_features or bn.num_features == 1, (
        "To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                      bn.weight, bn.bias)
    return fused
