"""Activation functions that draw random numbers."""

import warnings

import ember
from ember.overrides import handle_torch_function, has_torch_function_unary

__all__ = ["rrelu", "gumbel_softmax"]


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False) -> "ember.Tensor":
    """leaky_relu with a slope drawn from [lower, upper] for each element; in evaluation with their mean."""
    if has_torch_function_unary(input):
        return handle_torch_function(rrelu, (input,), input, lower=lower, upper=upper, training=training,
                                     inplace=inplace)
    return (ember.rrelu_ if inplace else ember.rrelu)(input, lower, upper, training)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1) -> "ember.Tensor":
    """A differentiable draw from the categorical distribution of logits: softmax((logits + Gumbel noise) / tau).

    hard: one-hot, with the gradient of the soft draw.
    """
    if has_torch_function_unary(logits):
        return handle_torch_function(gumbel_softmax, (logits,), logits, tau=tau, hard=hard, eps=eps, dim=dim)
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -ember.empty_like(logits, memory_format=ember.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = ember.zeros_like(logits, memory_format=ember.contiguous_format).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft
