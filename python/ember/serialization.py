"""save and load: PyTorch's checkpoint files, both ways.

A file is a zip archive: `data.pkl` holds the objects, with every tensor's storage named by a key, and `data/KEY` the
bytes of each storage. Older files are a row of pickles with the storages' bytes behind them. Files name PyTorch's
modules ("torch._utils"), so that PyTorch reads what is written here; when reading, those names mean Ember's.
"""

import contextlib
import copyreg
import functools
import io
import mmap as _mmap
import os
import pickle
import sys
import threading
import warnings
from enum import Enum

import ember
from ember import _C
from ember.storage import STORAGE_CLASSES, TypedStorage, UntypedStorage

from . import _files
from ._tensor import _saving
from ._files import MAGIC_NUMBER, PROTOCOL_VERSION
from ._weights_only import (UnpicklingError, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals)
from . import _weights_only

__all__ = ["LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals",
           "check_module_version_greater_or_equal", "clear_safe_globals", "default_restore_location",
           "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
           "get_unsafe_globals_in_checkpoint", "load", "location_tag", "normalize_storage_type", "register_package",
           "safe_globals", "save", "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options",
           "skip_data", "storage_to_tensor_type"]

DEFAULT_PROTOCOL = 2
STORAGE_KEY_SEPARATOR = ","
UNSAFE_MESSAGE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source.")
DOCS_MESSAGE = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
                "weights_only https://pytorch.org/docs/stable/generated/torch.load.html.")


class SourceChangeWarning(Warning):
    """Kept for programs that filter it; sources are not stored in files any more."""


class LoadEndianness(Enum):
    NATIVE = 1
    LITTLE = 2
    BIG = 3


class StorageType(Enum):
    UNTYPED = "untyped"
    TYPED = "typed"


class _Options(threading.local):
    endianness = None
    mmap_flags = _mmap.MAP_PRIVATE
    crc32 = True
    alignment = 64
    skip = False


_options = _Options()


def get_default_load_endianness():
    """How files without a byte order record are read; None: as this machine's."""
    return _options.endianness


def set_default_load_endianness(endianness):
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options.endianness = endianness


def get_crc32_options():
    """Whether save computes check sums."""
    return _options.crc32


def set_crc32_options(compute_crc32):
    _options.crc32 = compute_crc32


def get_default_mmap_options():
    return _options.mmap_flags


class set_default_mmap_options:
    """mmap.MAP_PRIVATE (writes stay in this process) or mmap.MAP_SHARED; also a context manager."""

    def __init__(self, flags):
        if flags not in (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")
        self.prev = _options.mmap_flags
        _options.mmap_flags = flags

    def __enter__(self):
        return None

    def __exit__(self, *error):
        _options.mmap_flags = self.prev


class skip_data:
    """Within it save leaves room for the storages' bytes and writes zeros; load makes storages without reading."""

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self.prev = _options.skip
        _options.skip = True

    def __exit__(self, *error):
        _options.skip = self.prev


# ---------------------------------------------------------------- places
_package_registry = []


def register_package(priority, tagger, deserializer):
    """tagger(storage) -> a location or None; deserializer(storage, location) -> storage or None. Lowest first."""
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda item: item[0])


def _cpu_tag(storage):
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_restore(storage, location):
    return storage if location.startswith("cpu") else None


def _meta_tag(storage):
    return "meta" if storage.device.type == "meta" else None


def _meta_restore(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _other_restore(storage, location):
    device = location.split(":")[0]
    if device in ("cuda", "xpu", "hpu", "mps"):
        name = device.upper()
        raise RuntimeError(
            f"Attempting to deserialize object on a {name} device but torch.{device}.is_available() is False. If you "
            "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
            "your storages to the CPU.")
    return None


register_package(10, _cpu_tag, _cpu_restore)
register_package(20, lambda storage: None, _other_restore)
register_package(22, _meta_tag, _meta_restore)


def location_tag(storage):
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError("don't know how to determine data location of " + ember.typename(storage))


def default_restore_location(storage, location):
    for _, _, restore in _package_registry:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError("don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
                       f"{location})")


def _get_restore_location(map_location):
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        place = map_location if isinstance(map_location, str) else map_location.decode("ascii")
        return lambda storage, location: default_restore_location(storage, place)
    if isinstance(map_location, ember.device):
        place = str(map_location)
        return lambda storage, location: default_restore_location(storage, place)

    def by_function(storage, location):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result
    return by_function


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether module.__version__ is at least that version."""
    try:
        version = tuple(kind(part) for kind, part in zip(map(type, req_version_tuple), module.__version__.split(".")))
        return version >= tuple(req_version_tuple)
    except Exception as error:
        message = (f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with "
                   f"tuple {req_version_tuple!s}")
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def normalize_storage_type(storage_type):
    return getattr(ember, storage_type.__name__)


def storage_to_tensor_type(storage):
    return getattr(ember, type(storage).__name__.replace("Storage", "Tensor"))


def _get_layout(name):
    """The layout that a file names, as "torch.strided"."""
    if name != "torch.strided":
        raise NotImplementedError(f"layout {name} is not in this build")
    return ember.strided


copyreg.pickle(ember.layout, lambda layout: (_get_layout, (str(layout),)))


# ---------------------------------------------------------------- saving
class _SharedStorages:
    """persistent_id's side: storages get keys in the order in which they are met."""

    def __init__(self):
        self.keys, self.storages, self.dtypes = {}, [], {}

    def identify(self, obj):
        """(class, key, location, number of elements) for a storage, None for anything else."""
        if isinstance(obj, TypedStorage):
            storage, cls, dtype = obj._untyped_storage, STORAGE_CLASSES[obj.dtype], obj.dtype
            numel = storage.nbytes() // dtype.itemsize
        elif isinstance(obj, UntypedStorage):
            storage, cls, dtype, numel = obj, UntypedStorage, ember.uint8, obj.nbytes()
        else:
            return None
        pointer = storage.data_ptr()
        if pointer != 0 and self.dtypes.setdefault(pointer, dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self.keys.get(storage._cdata)
        if key is None:
            key = self.keys[storage._cdata] = self.new_key(storage)
            self.storages.append(storage)  # kept alive: its address is its identity
        return cls, key, location_tag(storage), numel

    def new_key(self, storage):
        return str(len(self.keys))


class _Addresses(_SharedStorages):
    """The old format names storages by their addresses."""

    def new_key(self, storage):
        return str(storage._cdata)


@functools.lru_cache(maxsize=8)
def _pickler(pickle_module):
    class Pickler(pickle_module.Pickler):
        identify = None

        def persistent_id(self, value):
            return self.identify(value)

    return Pickler


def _pickle_to(buffer, obj, pickle_module, protocol, identify):
    """Pickles obj with names of PyTorch's modules."""
    pickler = _pickler(pickle_module)(buffer, protocol=protocol)
    pickler.identify = identify
    pickler.dump(obj)
    data = bytearray(buffer.getvalue())
    _C._pickle_rename(data, "ember", "torch")
    return data


def _check_dill(pickle_module):
    if pickle_module is not None and not hasattr(pickle_module, "__name__"):
        raise AttributeError(f"'{type(pickle_module).__name__}' object has no attribute '__name__'")


class _Compact:
    """Cuts each storage down to what the tensors in the file show of it. They still share what they shared."""

    def __init__(self, obj, pickle_module, protocol):
        self.spans, self.cut = {}, {}
        with self.placing(self.look):
            _pickle_to(io.BytesIO(), obj, pickle_module, protocol, lambda value: 0 if ember.is_storage(value) else None)

    @contextlib.contextmanager
    def placing(self, place):
        _saving.place = place
        try:
            yield
        finally:
            _saving.place = None

    @staticmethod
    def reach(tensor):
        """The bytes of its storage that a tensor reaches: first and one past the last."""
        size = tensor.element_size()
        first = tensor.storage_offset() * size
        return first, first + size * (1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride())))

    def look(self, tensor):
        """First round: which bytes are seen."""
        storage = tensor.untyped_storage()
        first, last = self.reach(tensor)
        if tensor.numel():
            _, low, high = self.spans.get(storage._cdata, (storage, first, last))
            self.spans[storage._cdata] = storage, min(low, first), max(high, last)
        return storage, tensor.storage_offset()

    def place(self, tensor):
        """Second round: the cut storage, and the tensor's offset in it."""
        storage = tensor.untyped_storage()
        if tensor.numel() == 0:
            return UntypedStorage(0), 0
        _, low, high = self.spans.get(storage._cdata, (storage, 0, 0))
        first, last = self.reach(tensor)
        if first < low or last > high:  # made by pickling itself, after the first round
            return storage, tensor.storage_offset()
        low -= low % 16  # elements of every dtype stay whole
        if storage._cdata not in self.cut:
            whole = low == 0 and high == storage.nbytes()
            self.cut[storage._cdata] = storage if whole else _files.storage_piece(storage, low, high)
        return self.cut[storage._cdata], tensor.storage_offset() - low // tensor.element_size()


def _save_zip(obj, write, folder, pickle_module, protocol, byteorder_record):
    shared = _SharedStorages()

    def identify(value):
        found = shared.identify(value)
        return None if found is None else ("storage", *found)

    data = _pickle_to(io.BytesIO(), obj, pickle_module, protocol, identify)
    zip_file = _C._ZipWriter(write, _options.alignment, _options.crc32)
    zip_file.write(folder + "/data.pkl", data)
    zip_file.write(folder + "/.format_version", b"1")
    zip_file.write(folder + "/.storage_alignment", str(_options.alignment).encode())
    if byteorder_record:
        zip_file.write(folder + "/byteorder", sys.byteorder.encode())
    for number, storage in enumerate(shared.storages):
        if _options.skip:
            storage = UntypedStorage(storage.nbytes()).fill_(0)
        zip_file.write_storage(f"{folder}/data/{number}", storage)
    zip_file.write(folder + "/version", b"3\n")
    zip_file.finish(folder + "/")


def _save_stream(obj, file, pickle_module, protocol):
    """The old format: pickles of a magic number, a version, the machine, the object, the keys; then the bytes."""
    shared = _Addresses()

    def identify(value):
        found = shared.identify(value)
        return None if found is None else ("storage", *found, None)

    data = _pickle_to(io.BytesIO(), obj, pickle_module, protocol, identify)
    machine = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little",
               "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, machine):
        pickle_module.dump(value, file, protocol=protocol)
    file.write(data)
    by_key = {str(storage._cdata): storage for storage in shared.storages}
    pickle_module.dump(sorted(by_key), file, protocol=protocol)
    file.flush()
    for key in sorted(by_key):
        storage = by_key[key]
        size = _element_size(shared, storage)
        file.write((storage.nbytes() // size).to_bytes(8, "little"))
        file.write(bytes(memoryview(storage.clone())))


def _element_size(shared, storage):
    return shared.dtypes.get(storage.data_ptr(), ember.uint8).itemsize


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True,
         _disable_byteorder_record=False, *, compact=False):
    """Write obj to the file f (a path, or an object with `write`).

    Tensors that share a storage share it again after load; a storage is written whole, however small the views of it.
    compact (Ember's own): only the part from the first to the last element that a tensor in obj shows.
    """
    if compact:
        cut = _Compact(obj, pickle_module, pickle_protocol)
        with cut.placing(cut.place):
            return save(obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)
    _check_dill(pickle_module)
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is None and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if path is not None and not isinstance(path, str):
        path = os.fsdecode(path)
    if not _use_new_zipfile_serialization:
        with open(path, "wb") if path is not None else contextlib.nullcontext(f) as file:
            _save_stream(obj, file, pickle_module, pickle_protocol)
        return
    if path is None:
        _save_zip(obj, f.write, "archive", pickle_module, pickle_protocol, not _disable_byteorder_record)
        if hasattr(f, "flush"):
            f.flush()
        return
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    folder = os.path.basename(path)
    folder = folder[:folder.rfind(".")] if "." in folder else folder
    folder = folder if path.isascii() else "archive"  # as PyTorch
    _save_zip(obj, path, folder or "archive", pickle_module, pickle_protocol, not _disable_byteorder_record)


# ---------------------------------------------------------------- loading
class _Checkpoint:
    """An opened file and how its storages are restored."""

    def __init__(self, source, map_location, share):
        self.source, self.share = source, share
        self.restore = _get_restore_location(map_location)
        self.loaded = {}
        self.swap = False

    def storage(self, saved_id):
        """What a persistent id of the pickle stands for."""
        if not isinstance(saved_id, tuple) or not saved_id:
            raise RuntimeError(f"Unknown saved id type: {type(saved_id)}")
        kind, *data = (_decode(part) for part in saved_id)
        if kind == "module" and data and isinstance(self, _StreamCheckpoint):
            return data[0]  # a class, with its source code of then
        if kind != "storage" or len(data) < 4:
            raise RuntimeError(f"Unknown saved id type: {kind}")
        cls, key, location, numel = data[:4]
        if isinstance(cls, str):
            raise RuntimeError(f"{self.source.name}: the storage '{key}' has no class")
        dtype = ember.uint8 if cls is UntypedStorage else getattr(cls, "dtype", None)
        if not isinstance(dtype, ember.dtype) or type(numel) is not int or numel < 0 or not isinstance(key, str) or \
                not isinstance(location, str):
            raise RuntimeError(f"{self.source.name}: a storage's description is damaged: {saved_id!r:.200}")
        untyped = self.loaded.get(key)
        if untyped is None:
            untyped = self.read(key, numel * dtype.itemsize, dtype, location)
            self.loaded[key] = untyped
        elif untyped.nbytes() < numel * dtype.itemsize:
            raise RuntimeError(f"{self.source.name}: storage has wrong size: '{key}' is described with {numel} elements "
                               f"of {dtype}, but it has {untyped.nbytes()} bytes")
        if len(data) > 4 and data[4] is not None and isinstance(self, _StreamCheckpoint):
            untyped = self.view(data[4], untyped, dtype)
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    def place(self, storage, location, dtype):
        result = self.restore(storage, location)
        return getattr(result, "_untyped_storage", result)


def _decode(value):
    return value.decode("ascii") if isinstance(value, bytes) else value


class _ZipCheckpoint(_Checkpoint):
    def __init__(self, source, map_location, share):
        super().__init__(source, map_location, share)
        self.zip = _C._Zip(source)
        names = self.zip.names()
        self.folder = names[0].split("/")[0] if names else ""
        self.names = set(names)

    def has(self, name):
        return f"{self.folder}/{name}" in self.names

    def record(self, name):
        return self.zip.read(f"{self.folder}/{name}")

    def byteorder(self):
        """Decides whether the storages' bytes must be turned around."""
        if self.has("byteorder"):
            order = self.record("byteorder").decode("ascii", "replace")
            if order not in ("little", "big"):
                raise ValueError("Unknown endianness type: " + order)
        else:
            default = get_default_load_endianness()
            order = {None: sys.byteorder, LoadEndianness.NATIVE: sys.byteorder, LoadEndianness.LITTLE: "little",
                     LoadEndianness.BIG: "big"}[default]
        self.swap = order != sys.byteorder

    def read(self, key, nbytes, dtype, location):
        name = f"{self.folder}/data/{key}"
        if name not in self.names:
            raise RuntimeError(f"PytorchStreamReader failed locating file data/{key}: file not found in "
                               f"{self.source.name}: the pickle speaks of a storage that the archive does not have")
        size = self.zip.size(name)
        if size < nbytes:
            raise RuntimeError(f"{self.source.name}: storage has wrong size: expected {nbytes} bytes, got {size} (record "
                               f"data/{key}, at byte {self.zip.offset(name)}): the file is damaged")
        if _options.skip or (location == "meta" and self.restore is default_restore_location):
            device = "cpu" if _options.skip and location != "meta" else "meta"
            return self.place(UntypedStorage(size, device=device), location, dtype)
        storage = self.zip.storage(name, self.share)
        if self.swap and dtype.itemsize > 1:
            storage = _files.swapped(storage, dtype)
        return self.place(storage, location, dtype)


class _StreamCheckpoint(_Checkpoint):
    """The old format. Storages are made when the pickle speaks of them, and filled when their bytes are reached."""

    def __init__(self, source, map_location):
        super().__init__(source, map_location, False)
        self.waiting = {}
        self.wanted = 0

    def read(self, key, nbytes, dtype, location):
        self.wanted += nbytes
        if self.wanted > self.source.size:
            raise RuntimeError(f"{self.source.name}: storage has wrong size: '{key}' is described with {nbytes} bytes, "
                               f"the whole file has {self.source.size}: it is truncated or damaged")
        storage = UntypedStorage(nbytes)
        self.waiting[key] = storage, dtype
        return self.place(storage, location, dtype)

    def view(self, description, root, dtype):
        key, offset, size = description if isinstance(description, tuple) and len(description) == 3 else (0, -1, 0)
        if type(offset) is not int or type(size) is not int:
            raise RuntimeError(f"{self.source.name}: a view of a storage is damaged: {description!r:.200}")
        if key not in self.loaded:
            begin, end = offset * dtype.itemsize, (offset + size) * dtype.itemsize
            if not 0 <= begin <= end <= root.nbytes():
                raise RuntimeError(f"{self.source.name}: a view of a storage reaches outside of it")
            self.loaded[key] = root if begin == 0 and end == root.nbytes() else _files.storage_view(root, begin, end)
        return self.loaded[key]

    def fill(self, keys, at):
        """Reads the bytes of all storages, from byte `at` on; returns where they end."""
        if not isinstance(keys, list) or any(key not in self.waiting for key in keys):
            raise RuntimeError(f"{self.source.name}: the list of storages at the end does not fit the pickle")
        for key in keys:
            storage, dtype = self.waiting.pop(key)
            numel = int.from_bytes(self.source.read(at, 8), "little", signed=True)
            if numel * dtype.itemsize != storage.nbytes():
                raise RuntimeError(f"{self.source.name}: storage has wrong size: expected {numel} got "
                                   f"{storage.nbytes() // dtype.itemsize} (at byte {at}): the file is damaged")
            at += 8
            left = self.source.size - at
            if left < storage.nbytes():
                raise RuntimeError(f"unexpected EOF, expected {storage.nbytes() - left} more bytes. The file might be "
                                   f"corrupted. {self.source.name} is truncated at byte {self.source.size}; was the "
                                   "download or the save interrupted?")
            bytes_ = self.source.storage(at, storage.nbytes())
            storage.copy_(_files.swapped(bytes_, dtype) if self.swap and dtype.itemsize > 1 else bytes_)
            at += storage.nbytes()
        return at


def _find_class(module, name):
    """PyTorch's names mean Ember's; everything else is imported as pickle imports it."""
    return _files.find_global(module, name)


@functools.lru_cache(maxsize=8)
def _unpickler_class(pickle_module):
    class Unpickler(pickle_module.Unpickler):
        find_storage = None

        def find_class(self, module, name):
            found = _find_class(module, name)
            return super().find_class(module, name) if found is None else found

        def persistent_load(self, saved_id):
            return self.find_storage(saved_id)

    return Unpickler


def _unpickle(pickle_module, file, find_storage, pickle_load_args):
    unpickler = _unpickler_class(pickle_module)(file, **pickle_load_args)
    unpickler.find_storage = find_storage
    return unpickler.load()


def _load_zip(checkpoint, pickle_module, weights_only, pickle_load_args):
    if not checkpoint.has("data.pkl"):
        raise RuntimeError(f"PytorchStreamReader failed locating file data.pkl: file not found. {checkpoint.source.name} "
                           "is a zip archive, but not a checkpoint")
    checkpoint.byteorder()
    data = checkpoint.record("data.pkl")
    if weights_only:
        name = f"{checkpoint.source.name}, record data.pkl"
        return _weights_only.load(data, 0, name, checkpoint.storage)[0]
    return _unpickle(pickle_module, io.BytesIO(data), checkpoint.storage, pickle_load_args)


def _load_stream(checkpoint, pickle_module, weights_only, pickle_load_args):
    """Returns the object and where the file ends."""
    source = checkpoint.source
    data = memoryview(source.storage(0, source.size, True))
    if source.size == 0:
        raise EOFError(f"Ran out of input: {source.name} is empty; was the save or the download interrupted?")

    if weights_only:
        def next_pickle(at, persistent=None):
            return _weights_only.load(data, at, source.name, persistent)
    else:
        def next_pickle(at, persistent=None):
            file = io.BytesIO(data[at:])
            return _unpickle(pickle_module, file, persistent, pickle_load_args), at + file.tell()

    if weights_only and data[0] != 0x80:
        raise _weights_only.DamagedError("Invalid magic number; corrupt file? "
                                         f"{source.name}: {_files.describe(source)}")
    magic, at = next_pickle(0)
    if magic != MAGIC_NUMBER:
        raise RuntimeError(f"Invalid magic number; corrupt file? {source.name}: {_files.describe(source)}")
    version, at = next_pickle(at)
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    machine, at = next_pickle(at)
    little = machine.get("little_endian", True) if isinstance(machine, dict) else True
    checkpoint.swap = little != (sys.byteorder == "little")
    result, at = next_pickle(at, checkpoint.storage)
    keys, at = next_pickle(at)
    return result, checkpoint.fill(keys, at)


def _wo_message(text):
    """PyTorch's advice around what went wrong."""
    if "Unsupported global" in text:
        return ("Weights only load failed. This file can still be loaded, to do so you have two options, "
                "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n\t"
                f"(1) {UNSAFE_MESSAGE}\n\t(2) Alternatively, to load with `weights_only=True` please check the "
                f"recommended steps in the following error message.\n\tWeightsUnpickler error: {text}{DOCS_MESSAGE}")
    if "is blocked" in text:
        return f"Weights only load failed. {UNSAFE_MESSAGE}\n\n\n{text}{DOCS_MESSAGE}"
    return (f"Weights only load failed. {UNSAFE_MESSAGE}\nPlease file an issue with the following so that we can make "
            f"`weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{text}{DOCS_MESSAGE}")


def _is_zip(source):
    return source.size >= 4 and source.read(0, 4) == b"PK\x03\x04"


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read a file that save wrote, here or in PyTorch.

    f: path, or an object with read, seek and tell. map_location: where storages go (a device, a string, a dict of
    strings, or a function of storage and location). weights_only (default True): only tensors and plain containers,
    and what add_safe_globals allows; nothing in the file can run code. mmap: storages are windows of the file.
    """
    extra = bool(pickle_load_args)
    if "encoding" not in pickle_load_args:
        pickle_load_args["encoding"] = "utf-8"
    if weights_only is None:
        forced = _forced_weights_only()
        weights_only = forced if forced is not None else pickle_module is None
    if weights_only and extra:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    _check_dill(pickle_module)
    pickle_module = pickle if pickle_module is None else pickle_module
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if mmap and path is None:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if map_location is not None and not callable(map_location) and \
            not isinstance(map_location, (str, bytes, dict, ember.device)):
        raise TypeError(f"'{type(map_location).__name__}' object is not callable")
    source, finish = _files.open_source(f, path, 0 if not mmap else 2 if _options.mmap_flags == _mmap.MAP_SHARED else 1)
    try:
        if _is_zip(source):
            checkpoint = _ZipCheckpoint(source, map_location, bool(mmap))
            if checkpoint.has("constants.pkl"):
                if weights_only:
                    raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to "
                                       "``torch.load``. " + UNSAFE_MESSAGE)
                raise RuntimeError(f"{source.name} is a TorchScript archive: programs in TorchScript do not run in Ember")
            return _load_zip(checkpoint, pickle_module, weights_only, pickle_load_args)
        if mmap:
            name = f"{f}, " if isinstance(f, str) else ""
            raise RuntimeError(f"mmap can only be used with files saved with `torch.save({name}"
                               "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                               "option in order to use mmap.")
        _files.refuse_strange(source)
        result, end = _load_stream(_StreamCheckpoint(source, map_location), pickle_module, weights_only,
                                   pickle_load_args)
        finish(end)
        return result
    except UnpicklingError as error:
        if not weights_only or isinstance(error, _weights_only.DamagedError):
            raise
        raise UnpicklingError(_wo_message(str(error))) from None


def _forced_weights_only():
    """The environment's word, PyTorch's variables: TORCH_FORCE_WEIGHTS_ONLY_LOAD and ..._NO_..."""
    yes = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
    no = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
    if yes and no:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be "
                           "set, but both were set.")
    return True if yes else False if no else None


def get_unsafe_globals_in_checkpoint(f):
    """The names in a checkpoint that load(weights_only=True) would refuse."""
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    source, _ = _files.open_source(f, path, 0)
    if not _is_zip(source):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    checkpoint = _ZipCheckpoint(source, None, False)
    if checkpoint.has("constants.pkl"):
        raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
    found, _ = _C._pickle_globals(checkpoint.record("data.pkl"), 0, _files.shown(source.name))
    names = dict.fromkeys(_weights_only.full_name(module, name) for module, name in found)
    return [name for name in names if not _weights_only.is_allowed(name)]


