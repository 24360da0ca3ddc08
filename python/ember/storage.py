"""TypedStorage: a storage seen as elements of one dtype. Tensors have untyped ones; this is what files speak of."""

import warnings

import ember
from ember import _C
from ember._C import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _warn_typed_storage_removal(stacklevel=1):
    """Tells once a process that typed storages will go."""
    if not hasattr(_warn_typed_storage_removal, "has_warned"):
        _warn_typed_storage_removal.has_warned = True
        warnings.warn("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
                      "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
                      "directly, use tensor.untyped_storage() instead of tensor.storage()", UserWarning, stacklevel=stacklevel + 1)


class TypedStorage:
    """Elements of `dtype` in an untyped storage. Shares; indexing reads and writes single elements."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if dtype is None:
            dtype = type(self).dtype if isinstance(type(self).dtype, ember.dtype) else ember.get_default_dtype()
        self.dtype = dtype
        if wrap_storage is None and not _internal:
            _warn_typed_storage_removal(stacklevel=2)
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif args and isinstance(args[0], int):
            self._untyped_storage = UntypedStorage(args[0] * dtype.itemsize)
        else:
            values = ember.tensor(list(args[0]) if args else [], dtype=dtype)
            self._untyped_storage = values.untyped_storage()

    dtype = None

    def _tensor(self):
        n = self.size()
        return _C._window(self._untyped_storage, self.dtype, 0, (n,), (1,))

    def untyped(self):
        return self._untyped_storage

    def size(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    _size = __len__ = size

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    _share_memory_ = share_memory_

    def __getattr__(self, name):
        raise AttributeError(f"'torch.storage.TypedStorage' object has no attribute '{name}'")

    def __getitem__(self, index):
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._tensor()[index].item() if isinstance(index, int) else TypedStorage(
            wrap_storage=self._tensor()[index].clone().untyped_storage(), dtype=self.dtype)

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._tensor().tolist()

    def fill_(self, value):
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._tensor().copy_(source._tensor())
        return self

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self):
        return self

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """`size` elements of a mapped file. shared: writes change the file, which is made or made longer if need be."""
        storage = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return cls(wrap_storage=storage, dtype=cls.dtype)

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self):
        return hash(self._untyped_storage)

    def __deepcopy__(self, memo):
        from ember._utils import _deepcopy_storage
        return TypedStorage(wrap_storage=_deepcopy_storage(self._untyped_storage, memo), dtype=self.dtype)

    def __reduce__(self):
        from ember._utils import _rebuild_typed_storage
        return _rebuild_typed_storage, (self._untyped_storage, self.dtype)

    def pickle_storage_type(self):
        return self.dtype._storage_name.replace("Tensor", "Storage")

    def __repr__(self):
        lines = "\n".join(f" {x}" for x in self.tolist())
        return f"{lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _make(dtype):
    name = dtype._storage_name.replace("Tensor", "Storage")
    doc = f"{name}(size) or {name}(numbers): a storage whose elements are {dtype}; torch.UntypedStorage is the newer class."
    return type(name, (TypedStorage,), {"dtype": dtype, "__module__": "ember", "__doc__": doc})


STORAGE_CLASSES = {}  # FloatStorage and its kin, by dtype; files name them
for _dtype in (ember.float32, ember.float64, ember.float16, ember.bfloat16, ember.int32, ember.int64, ember.int16,
               ember.int8, ember.uint8, ember.bool, ember.complex64, ember.complex128):
    STORAGE_CLASSES[_dtype] = globals()[_dtype._storage_name.replace("Tensor", "Storage")] = _make(_dtype)
