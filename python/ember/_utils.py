"""How tensors are rebuilt from pickles. The names and arguments are PyTorch's: files speak of them."""

import copyreg

import ember
from ember import _C
from ember._C import UntypedStorage


def _storage_from_bytes(data):
    storage = UntypedStorage(len(data))
    if data:
        memoryview(storage)[:] = data
    return storage


def _rebuild_typed_storage(untyped, dtype):
    from ember.storage import TypedStorage
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _deepcopy_storage(storage, memo):
    """One copy a storage and deepcopy call: tensors that shared bytes share them afterwards."""
    copies = memo.setdefault("torch", {})
    if storage._cdata not in copies:
        copies[storage._cdata] = storage.clone()
    return copies[storage._cdata]


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _C._window(storage, storage.dtype, storage_offset, size, stride)


def _resolved(t, metadata):
    """PyTorch stores conjugated and negated views as marks on plain ones; here the values change."""
    if not metadata or not (metadata.get("conj") or metadata.get("neg")):
        return t
    whole = _C._window(t.untyped_storage(), t.dtype, 0, (t.untyped_storage().nbytes() // t.dtype.itemsize,), (1,))
    whole = whole.conj() if metadata.get("conj") else whole
    whole = -whole if metadata.get("neg") else whole
    return _C._window(whole.untyped_storage(), t.dtype, t.storage_offset(), t.size(), t.stride())


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    t = _resolved(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    t.requires_grad = requires_grad
    return t


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    t = _C._window(getattr(storage, "_untyped_storage", storage), dtype, storage_offset, size, stride)
    t = _resolved(t, metadata)
    t.requires_grad = requires_grad
    return t


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return ember.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return ember.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_obj_state(ember.nn.Parameter(data, requires_grad), state)


def _get_obj_state(obj):
    """What the instance holds besides its tensor: its dict, and its slots if it has some."""
    slots = copyreg._slotnames(type(obj))
    held = {name: getattr(obj, name) for name in slots if hasattr(obj, name)}
    return (obj.__dict__, held) if held else obj.__dict__


def _set_obj_state(obj, state):
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    else:
        slots = None
    for held in (state, slots):
        for name, value in (held or {}).items():
            setattr(obj, name, value)
    return obj


# ---------------------------------------------------------------- exceptions from other processes
class KeyErrorMessage(str):
    """Text that a KeyError shows as it is: KeyError shows the repr of its argument."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again elsewhere."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback
        exc_type, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_type
        self.exc_msg = "".join(traceback.format_exception(exc_type, value, trace))  # text only: frames hold the world
        self.where = where

    def reraise(self):
        """Raise an exception of the same class, or a RuntimeError where the class wants other arguments than a text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(text))
        named = {"message": text} if getattr(self.exc_type, "message", None) else None
        try:
            error = self.exc_type(text) if named is None else self.exc_type(**named)
        except Exception:
            error = RuntimeError(text)
        raise error from None
