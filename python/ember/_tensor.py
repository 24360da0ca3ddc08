"""Methods of Tensor that are written in Python. They are attached to the type when ember is imported."""

import copyreg
import threading
from collections import OrderedDict

from . import _C
from ._C import Tensor, UntypedStorage


def method(fn):
    """Attach fn to Tensor under its own name."""
    setattr(Tensor, fn.__name__, fn)
    return fn


# ---------------------------------------------------------------- text
@method
def __repr__(self, *, tensor_contents=None):
    """The elements as set_printoptions says, then dtype, device and grad_fn where they are not what one expects."""
    if _C._has_torch_function_unary(self) and not _C._is_torch_function_all_disabled():
        from .overrides import handle_torch_function
        return handle_torch_function(Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
    from . import _tensor_str
    return _tensor_str._str(self, tensor_contents=tensor_contents)


@method
def __format__(self, format_spec):
    """The format of the number, for a tensor without dimensions; else that of an object."""
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return self.item().__format__(format_spec)
    return object.__format__(self, format_spec)


# ---------------------------------------------------------------- copies and pickles
def _copy_bytes(self, memo):
    """A tensor of the same geometry over the copy of the storage, which other tensors of this deepcopy share."""
    from ._utils import _deepcopy_storage
    storage = _deepcopy_storage(self.untyped_storage(), memo)
    return _C._window(storage, self.dtype, self.storage_offset(), self.size(), self.stride())


@method
def __deepcopy__(self, memo):
    """A copy with bytes and .grad of its own; the views and storages that it was copied with still share. Leaves only."""
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
                           "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001")
    if id(self) in memo:
        return memo[id(self)]
    with _C.DisableTorchFunctionSubclass():
        if self.is_meta:
            new = self.detach().clone()
        else:
            new = _copy_bytes(self, memo)
        if type(self) is not Tensor:
            new = new.as_subclass(type(self))
        new.requires_grad_(self.requires_grad)
        memo[id(self)] = new
        if self.grad is not None:
            new.grad = self.grad.__deepcopy__(memo)
        if type(self) is not Tensor:
            for name in copyreg._slotnames(type(self)):
                if hasattr(self, name):
                    setattr(new, name, _deepcopy(getattr(self, name), memo))
        state = self.__dict__
        if state:
            new.__dict__ = _deepcopy(state, memo)
    return new


def _deepcopy(value, memo):
    from copy import deepcopy
    return deepcopy(value, memo)


def _reduce_storage(storage):
    from ._utils import _storage_from_bytes
    return _storage_from_bytes, (bytes(memoryview(storage)),)


# Registered with the import, not at first use: multiprocessing's pickler copies this table before it begins.
copyreg.pickle(UntypedStorage, _reduce_storage)


class _Saving(threading.local):
    place = None  # a function of a tensor that says which storage and offset a file should give it


_saving = _Saving()


def _reduce_plain(self):
    from . import _utils
    if self.is_meta:
        return _utils._rebuild_meta_tensor_no_storage, (self.dtype, tuple(self.size()), self.stride(),
                                                        self.requires_grad)
    from .storage import TypedStorage
    place = _saving.place
    untyped, offset = (self.untyped_storage(), self.storage_offset()) if place is None else place(self)
    storage = TypedStorage(wrap_storage=untyped, dtype=self.dtype)
    return _utils._rebuild_tensor_v2, (storage, offset, tuple(self.size()), self.stride(),
                                       self.requires_grad, OrderedDict())


def _rebuild_from_type_v2(func, new_type, args, state):
    """What pickles of subclasses and of tensors with attributes call; the name is PyTorch's."""
    from ._utils import _set_obj_state
    t = func(*args)
    if type(t) is not new_type:
        t = t.as_subclass(new_type)
    if getattr(type(t), "__setstate__", None) is not Tensor.__setstate__:
        t.__setstate__(state)
    else:
        t = _set_obj_state(t, state)
    return t


@method
def __reduce_ex__(self, proto):
    """What pickle keeps: the storage, offset, sizes, strides, requires_grad and what a subclass's __dict__ holds."""
    from . import _utils
    state = _utils._get_obj_state(self)
    if type(self) is Tensor and not state:
        return _reduce_plain(self)
    if _C._has_torch_function_unary(self):
        with _C.DisableTorchFunctionSubclass():
            func, args = _reduce_plain(self)
    else:
        func, args = _reduce_plain(self)
    return _rebuild_from_type_v2, (func, type(self), args, state)


@method
def __setstate__(self, state):
    for name, value in (state or {}).items():
        setattr(self, name, value)


# ---------------------------------------------------------------- subclasses
_NO_WRAP = None


def _no_wrap():
    global _NO_WRAP
    if _NO_WRAP is None:
        _NO_WRAP = {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}
    return _NO_WRAP


def _convert(ret, cls):
    if cls is Tensor:
        return ret
    if isinstance(ret, Tensor) and not isinstance(ret, cls):
        return ret.as_subclass(cls)
    if isinstance(ret, (tuple, list)):
        kind = type(ret)
        parts = [_convert(r, cls) for r in ret]
        return kind(*parts) if hasattr(ret, "_fields") else kind(parts)
    return ret


def _torch_function(cls, func, types, args=(), kwargs=None):
    """The default: run func with overrides off and give results the subclass's type."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        ret = func(*args, **(kwargs or {}))
    return ret if func in _no_wrap() else _convert(ret, cls)


Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
Tensor.__array_priority__ = 1000


@method
def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


@method
def __array_wrap__(self, array, context=None, return_scalar=False):
    if array.dtype == bool:
        array = array.astype("uint8")
    return _C.from_numpy(array)


# ---------------------------------------------------------------- storages
@method
def storage(self):
    """The bytes that the tensor looks at, as a storage with its dtype; untyped_storage() is the newer name."""
    from .storage import TypedStorage, _warn_typed_storage_removal
    _warn_typed_storage_removal(stacklevel=2)
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@method
def _typed_storage(self):
    from .storage import TypedStorage
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@method
def storage_type(self):
    """The class of the tensor's typed storage: torch.FloatStorage and its kin."""
    return type(self._typed_storage())


@method
def is_shared(self):
    """Whether the bytes lie in memory that other processes can map: after share_memory_()."""
    return self.untyped_storage().is_shared()


@method
def share_memory_(self):
    """Move the bytes to shared memory: other processes that get this tensor see them, and their changes."""
    from .multiprocessing.reductions import share
    if not self.is_meta:
        share(self.untyped_storage())
    return self


def _elementwise(name, self, *values):
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    results = [values[-1](*x) for x in zip(*(t.flatten().tolist() for t in (self, *values[:-1])))]
    return self.copy_(_C.tensor(results, dtype=self.dtype).view(self.shape))


@method
def apply_(self, callable):
    """Each element becomes callable(element): slow, for tensors on the CPU."""
    return _elementwise("apply_", self, callable)


@method
def map_(self, tensor, callable):
    """Each element becomes callable(element, its counterpart in tensor), which is broadcast."""
    return _elementwise("map_", self, tensor.expand_as(self), callable)


@method
def pin_memory(self, device=None):
    """Pinned memory is for devices that copy by themselves. This build has none, and says so as PyTorch does without one."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


# ---------------------------------------------------------------- autograd
@method
def detach_(self):
    """Cuts the tensor itself out of the graph: it becomes a leaf. RuntimeError for views, whose base goes on recording."""
    from . import autograd
    return autograd._detach_inplace(self)


@method
def reinforce(self, reward):
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.\n"
                       "See https://pytorch.org/docs/main/distributions.html")


# ---------------------------------------------------------------- functions with methods of their own
def _delegate(name):
    def call(self, *args, **kwargs):
        from . import functional
        return getattr(functional, name)(self, *args, **kwargs)
    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    call.__doc__ = f"What torch.{name} computes, with this tensor as its first argument: help(torch.{name}) says what it takes."
    return call


for _name in ("split", "norm", "unique", "unique_consecutive", "nonzero"):
    setattr(Tensor, _name, _delegate(_name))


@method
def is_nonzero(self):
    """Whether the only element is not zero. RuntimeError for more or none."""
    from .functional import is_nonzero as ask
    return ask(self)


@method
def is_same_size(self, other):
    """Whether both tensors have the same sizes."""
    return self.shape == other.shape


@method
def __dir__(self):
    names = set(dir(type(self))) | set(self.__dict__)
    return sorted(names - {"volatile"})
