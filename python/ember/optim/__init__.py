"""Optimizers: names, options and saved state of torch.optim. A file an optimizer, a line a file.

The steps of SGD, Adam and AdamW are one operator call a parameter group; the others are written with plain operators.
"""

from typing import Any

from . import adadelta, adafactor, adagrad, adam, adamax, adamw, asgd, lbfgs, muon, nadam, optimizer, radam, rmsprop, rprop, sgd
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam",
           "Rprop", "Adafactor", "Muon", "LBFGS", "lr_scheduler", "swa_utils"]


def __getattr__(name) -> Any:
    if name in ("lr_scheduler", "swa_utils"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
