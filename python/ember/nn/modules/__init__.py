"""The layers."""

from . import activation, container, dropout, flatten, linear, loss, module, sparse
from .activation import *
from .container import *
from .dropout import *
from .flatten import *
from .linear import Bilinear, Identity, Linear
from .loss import *
from .module import Module
from .sparse import *

__all__ = ["Module", "Identity", "Linear", "Bilinear", *activation.__all__, *container.__all__, *dropout.__all__,
           *flatten.__all__, *loss.__all__, *sparse.__all__]
