"""Ember under the name torch: `import torch`, `import torch.nn.functional as F`, `from torch import optim`.

The modules, classes and functions then say that they are torch's, wherever a program may look: in type(x), in an AttributeError,
in plain pickles, in the module that a warnings filter names. Where files and import specs are concerned they remain Ember's.
"""

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType

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
    return PathFinder.find_spec(name) is not None


def _named(name):
    """The name under which PyTorch's programs know ember.x.y; other names as they are."""
    return "torch" + name[len("ember"):] if name == "ember" or str(name).startswith("ember.") else name


def _rename(module):
    """Gives a module the name it has as part of torch. What is imported through it later finds it under both."""
    own = module.__spec__.name
    module.__name__ = _named(own)
    sys.modules[module.__name__] = module


class _Loader(SourceFileLoader):
    """Runs one of Ember's files with torch's name in __name__, so that its classes take it from there."""

    def exec_module(self, module):
        code = self.get_code(module.__name__)
        _rename(module)
        exec(code, module.__dict__)


def _rename_loaded():
    """The same for what was imported before anybody asked for torch."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "ember" or name in (__name__, "ember.__main__") or not isinstance(module, ModuleType):
            continue
        if module.__spec__ is not None and module.__spec__.name == name:
            _rename(module)
        for value in list(vars(module).values()):
            if isinstance(value, FunctionType) or isinstance(value, type) and value.__flags__ & _HEAP_TYPE:
                value.__module__ = _named(value.__module__)
    _rename_types(object)


_HEAP_TYPE = 1 << 9


def _rename_types(base):
    """Types of the bridge have their module in C."""
    for sub in type.__subclasses__(base):
        if sub.__flags__ & _HEAP_TYPE == 0:
            if sub.__module__.split(".")[0] == "ember":
                ember._C._rename_type(sub, _named(sub.__module__))
            _rename_types(sub)


class _Alias:
    """Finds torch.x.y as the very module ember.x.y, imported when first asked for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in _STARTERS:
            _tell_children()
        if name.startswith("ember."):
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = _Loader(spec.loader.name, spec.loader.path)
            return spec
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
        _rename_loaded()
        if any(name in sys.modules for name in _STARTERS):
            _tell_children()
    sys.modules["torch"] = ember
    return ember
