"""Ember: PyTorch's machine, written in C. `import ember as torch` and programs run as they are."""

import importlib as _importlib
import sys as _sys

from . import _C
from ._C import *  # noqa: F403  dtypes, Tensor, Size, device, tensor(), ...
from .version import __version__

# Where PyPI's math libraries lie; they are opened at first use (EMBER_LOG=libs tells).
for _name in [p for p in _sys.path if p.endswith(("site-packages", "dist-packages"))] + [_sys.prefix + "/lib"]:
    _C._add_library_folder(_name)

# Names that `import *` leaves out, and functions of the operator table.
_functions = {name: getattr(_C._VariableFunctions, name) for name in dir(_C._VariableFunctions)
              if not name.startswith("__")}
globals().update(_functions)
_VF = _C._VariableFunctions
bool, int, float, short, long, half, double, cfloat, cdouble = (
    _C.bool, _C.int, _C.float, _C.short, _C.long, _C.half, _C.double, _C.cfloat, _C.cdouble)

from . import _tensor  # noqa: E402  Python methods of Tensor
from .functional import *  # noqa: E402,F403
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from .random import (fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state)  # noqa: E402,F401
from ._info import finfo, iinfo  # noqa: E402

import math as _math  # noqa: E402

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

# Modules that are imported when first touched: `ember.nn` costs nothing until then.
_LAZY = {
    "__future__",
    "_dynamo",
    "_utils",
    "accelerator",
    "amp",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "debug",
    "distributed",
    "distributions",
    "fft",
    "func",
    "info",
    "io",
    "jit",
    "library",
    "linalg",
    "memory",
    "mps",
    "multiprocessing",
    "nn",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "random",
    "return_types",
    "safetensors",
    "serialization",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "xpu",
}
_FROM = {  # name: the module that has it
    "Tag": "_tags",
    "as_torch": "_as_torch",
    "compile": "_dynamo.eval_frame",
    "fall": "debug",
    "graph": "debug",
    "_assert": "_defaults",
    "are_deterministic_algorithms_enabled": "_defaults",
    "get_default_device": "_defaults",
    "get_float32_matmul_precision": "_defaults",
    "get_num_interop_threads": "_defaults",
    "is_deterministic_algorithms_warn_only_enabled": "_defaults",
    "is_storage": "_defaults",
    "is_tensor": "_defaults",
    "is_warn_always_enabled": "_defaults",
    "set_default_device": "_defaults",
    "set_default_dtype": "_defaults",
    "set_default_tensor_type": "_defaults",
    "set_float32_matmul_precision": "_defaults",
    "set_flush_denormal": "_defaults",
    "set_num_interop_threads": "_defaults",
    "sym_float": "_defaults",
    "sym_int": "_defaults",
    "typename": "_defaults",
    "use_deterministic_algorithms": "_defaults",
    "set_printoptions": "_tensor_str",
    "autocast": "amp",
    "get_autocast_dtype": "amp",
    "is_autocast_enabled": "amp",
    "set_autocast_dtype": "amp",
    "set_autocast_enabled": "amp",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_cpu_dtype": "amp.autocast_mode",
    "set_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_gpu_dtype": "amp.autocast_mode",
    "TypedStorage": "storage",
    "vmap": "func",
    "from_file": "_files",
    "load": "serialization",
    "save": "serialization",
}
for _name in ("Float", "Double", "Half", "BFloat16", "Int", "Long", "Short", "Char", "Byte", "Bool"):
    _FROM[_name + "Tensor"] = "_legacy"
    _FROM[_name + "Storage"] = "storage"
_FROM["ComplexFloatStorage"] = _FROM["ComplexDoubleStorage"] = "storage"


def __getattr__(name):
    if name in _LAZY or name in _FROM:
        module = _importlib.import_module("." + _FROM.get(name, name), __name__)
        value = globals()[name] = getattr(module, name) if name in _FROM else module
        return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted(set(globals()) | _LAZY | set(_FROM))


def set_warn_always(on):
    """Accepted for compatibility: Python's own filters decide how often a warning shows."""


del _name
