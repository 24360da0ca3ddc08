"""Networks: Module, layers, losses, initial values. Names and behaviour of torch.nn."""

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .modules import *
from . import attention, functional, grad, init, modules, utils

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", *modules.__all__]
