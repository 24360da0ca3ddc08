"""Networks: Module, layers, losses, initial values. Names and behaviour of torch.nn."""

from .parameter import Buffer, Parameter
from .modules import *
from . import functional, init, modules, utils

__all__ = ["Parameter", "Buffer", *modules.__all__]
