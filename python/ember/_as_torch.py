"""Ember under the name torch: `import torch`, `import torch.nn.functional as F`, `from torch import optim`."""

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

import ember


# Modules of multiprocessing that start a fresh Python. They are imported when one is started for the first time.
_STARTERS = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")


class _AsTorch:
    """In the data that a fresh process is given: it calls as_torch() when read, before the program's own modules."""

    def __reduce__(self):
        return as_torch, ()


def _tell_children():
    from multiprocessing import spawn
    ask = spawn.get_preparation_data
    if getattr(ask, "_ember", False):
        return

    def get_preparation_data(name):
        return {"ember": _AsTorch(), **ask(name)}

    get_preparation_data._ember = True
    spawn.get_preparation_data = get_preparation_data


def _installed(name):
    """Whether a package of that name is there without us."""
    from importlib.machinery import PathFinder
    return PathFinder.find_spec(name) is not None


class _Alias:
    """Finds torch.x.y as the very module ember.x.y, imported when first asked for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in _STARTERS:
            _tell_children()
        if name == "torch" or name == "safetensors" and not _installed(name):
            return ModuleSpec(name, _Alias, is_package=True)
        if name == "safetensors.torch" and sys.modules.get("safetensors") is sys.modules.get("ember.safetensors"):
            return ModuleSpec(name, _Alias)
        if not name.startswith("torch."):
            return None
        own = "ember" + name[len("torch"):]
        if own not in sys.modules and importlib.util.find_spec(own) is None:
            return None
        return ModuleSpec(name, _Alias, is_package=True)

    @staticmethod
    def create_module(spec):
        name = spec.name if spec.name.startswith("safetensors") else spec.name[len("torch"):].lstrip(".")
        module = importlib.import_module("ember." + name if name else "ember")
        # The import system writes the new spec into the module; exec_module puts its own one back.
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module):
        module.__spec__ = module.__spec__.loader_state


def as_torch():
    """Make `import torch` mean Ember in this process. Returns ember.

    RuntimeError if another torch has been imported before.
    """
    present = sys.modules.get("torch")
    if present is not None and present is not ember:
        raise RuntimeError("as_torch(): another torch is already imported, from "
                           f"{getattr(present, '__file__', 'an unknown place')}")
    if _Alias not in sys.meta_path:
        sys.meta_path.insert(0, _Alias)
        if any(name in sys.modules for name in _STARTERS):
            _tell_children()
    sys.modules["torch"] = ember
    return ember
