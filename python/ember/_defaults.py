"""Process-wide choices, and small questions about objects."""

import numbers

import ember
from ember import _C

_state = {"deterministic": False, "warn_only": False, "precision": "highest"}


def set_default_dtype(d):
    """The dtype of floating-point tensors made without one: float32, float64, float16 or bfloat16."""
    _C._set_default_dtype(d)


def set_default_tensor_type(t):
    """The older way to say set_default_dtype: takes "torch.DoubleTensor" or the class."""
    name = t if isinstance(t, str) else t.__name__
    for d in (ember.float16, ember.bfloat16, ember.float32, ember.float64):
        if name.rsplit(".", 1)[-1] == d._storage_name:
            return set_default_dtype(d)
    raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {name}")


def set_default_device(device):
    """Where factories of this thread put tensors when they are not told. None: the processor."""
    _C._set_default_device(device)


def get_default_device():
    """Where factories of this thread put tensors when they are not told: a torch.device."""
    return _C._get_default_device()


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Accepted: Ember's operators give the same bits for every thread count as it is."""
    _state["deterministic"], _state["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled():
    """What use_deterministic_algorithms was last told; operators give the same bits either way."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """What warn_only use_deterministic_algorithms was last told."""
    return _state["warn_only"]


def set_float32_matmul_precision(precision):
    """"highest", "high" or "medium"; RuntimeError for another word. Products of float32 are computed in float32 always."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _state["precision"] = precision


def get_float32_matmul_precision():
    """The word that set_float32_matmul_precision was last given: "highest" at first."""
    return _state["precision"]


def is_warn_always_enabled():
    return False


def set_flush_denormal(mode):
    """Ember never flushes denormal numbers; False says that the request was not taken."""
    return not mode


def get_num_interop_threads():
    return 1


def set_num_interop_threads(n):
    """Accepted: operators of one program run one after another."""
    if not isinstance(n, int) or n < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def is_tensor(obj):
    """Whether the object is a torch.Tensor, or of a subclass of it."""
    return isinstance(obj, ember.Tensor)


def is_storage(obj):
    return isinstance(obj, (ember.UntypedStorage, ember.TypedStorage))


def typename(obj):
    """The type's name as PyTorch writes it: "torch.FloatTensor" for tensors."""
    if isinstance(obj, ember.Tensor):
        return obj.type()
    module = getattr(obj, "__module__", None) or ""
    name = getattr(obj, "__qualname__", None) or type(obj).__qualname__
    if not module or module == "builtins":
        module = type(obj).__module__ if not hasattr(obj, "__qualname__") else module
    return name if module in ("", "builtins") else f"{module}.{name}"


def _assert(condition, message):
    assert condition, message


def sym_int(a):
    return a.__int__() if not isinstance(a, numbers.Number) else int(a)


def sym_float(a):
    return float(a)
