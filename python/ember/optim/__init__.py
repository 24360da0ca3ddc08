"""Optimizers. Names, options and saved state of torch.optim; each step is one operator call a parameter group."""

from . import adam, adamw, optimizer, sgd
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam", "AdamW", "lr_scheduler"]


def __getattr__(name):
    if name == "lr_scheduler":
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
