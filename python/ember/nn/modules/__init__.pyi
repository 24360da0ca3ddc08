# What __init__.py imports; its __all__ is computed, which type checkers cannot read (tests/py/test_stubs.py compares the two).
from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .lazy import LazyModuleMixin as LazyModuleMixin
from .lazy_norm import *
from .linear import *
from .loss import *
from .margin_loss import *
from .module import Module as Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .upsampling import *
from .transformer import *
