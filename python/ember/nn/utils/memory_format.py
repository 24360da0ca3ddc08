"""Weights of convolutions in another memory format."""

from typing import Any

import ember

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, kinds):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone().contiguous(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module, memory_format) -> Any:
    """Lay out the weights of every Conv2d and ConvTranspose2d in module in memory_format. Returns module."""
    return _convert(module, memory_format, (ember.nn.Conv2d, ember.nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format) -> Any:
    """Lay out the weights of every Conv3d and ConvTranspose3d in module in memory_format. Returns module."""
    return _convert(module, memory_format, (ember.nn.Conv3d, ember.nn.ConvTranspose3d))
