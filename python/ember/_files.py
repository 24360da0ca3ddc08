"""What reading files of all kinds shares: opening, PyTorch's names for Ember's things, bytes in the other order."""

import io

import ember
from ember import _C
from ember.storage import UntypedStorage

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001

# dtypes that PyTorch has and this build may not have; a file that needs one is refused with its name.
OTHER_DTYPES = ("uint16", "uint32", "uint64", "complex32", "qint8", "quint8", "qint32", "quint4x2", "quint2x4",
                "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
                "float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")
OTHER_STORAGES = ("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage")
OTHER_REBUILD = ("_rebuild_sparse_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor", "_rebuild_wrapper_subclass",
                 "_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor")


def refuse_missing(module, name):
    """Says in words what a file needs that this build does not have. module: PyTorch's."""
    if module == "torch" and name in OTHER_DTYPES and not hasattr(ember, name):
        raise NotImplementedError(f"the file holds a tensor of dtype torch.{name}, which Ember does not have")
    if module in ("torch", "torch.cuda") and name in OTHER_STORAGES:
        raise NotImplementedError(f"the file holds a quantized tensor ({name}), which Ember does not have")
    if module == "torch._utils" and name in OTHER_REBUILD:
        kind = name.replace("_rebuild_", "").replace("_tensor", "").replace("qtensor", "quantized")
        raise NotImplementedError(f"the file holds a {kind} tensor, which Ember does not have")


def find_global(module, name):
    """Ember's object for a name of PyTorch's modules; None for other modules."""
    if module != "torch" and not module.startswith("torch."):
        return None
    refuse_missing(module, name)
    own = "ember" + module[len("torch"):]
    if own == "ember.cuda" and name.endswith("Storage"):
        own = "ember"  # storages of another device: where they go is map_location's matter
    try:
        value = _import(own)
        for part in name.split("."):
            value = getattr(value, part)
        return value
    except (ImportError, AttributeError):
        found = _elsewhere(own, name)
        if found is not None:
            return found
        raise AttributeError(f"Can't get attribute '{name}' of module '{module}': Ember does not have it") from None


def _import(name):
    """A module, or what stands for one (_C._nn is an attribute of _C)."""
    import importlib
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, last = name.rpartition(".")
        if not parent:
            raise
        return getattr(_import(parent), last)


def _elsewhere(own, name):
    """Classes of nn and optim may live in another file here than in PyTorch."""
    for package in ("ember.nn", "ember.optim"):
        if own.startswith(package + "."):
            import importlib
            return getattr(importlib.import_module(package), name, None)
    return None


def shown(name):
    """A file's name as C can print it: any bytes may be in one."""
    return name.encode("utf-8", "backslashreplace").decode()


def open_source(f, path, how):
    """A source for a path or an object with read and seek, and a function that leaves f at byte n of the source."""
    if path is not None:
        return _C._source_open(path, how), lambda end: None
    for needed in ("seek", "tell", "read"):
        if not hasattr(f, needed):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute '{needed}'. You can only torch.load from "
                                 "a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
                                 "try to load from it instead.")
    start = f.tell()
    plain = type(f) in (io.BufferedReader, io.BufferedRandom) and type(f.raw) is io.FileIO
    if plain or type(f) is io.FileIO:
        if type(f) is io.BufferedRandom:
            f.flush()
        name = f.name if isinstance(f.name, str) else f"<fd {f.fileno()}>"
        try:
            source = _C._source_fd(f.fileno(), start, shown(name))
            return source, lambda end: f.seek(start + end)
        except RuntimeError:
            f.seek(start)  # a pipe or the like: read it below
    if type(f) is io.BytesIO:  # its bytes, without a copy
        data = memoryview(f.getvalue())[start:]
        f.seek(0, io.SEEK_END)
    else:
        data = f.read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"expected bytes from read(), got {type(data).__name__}: open the file in binary mode")
    name = getattr(f, "name", None)
    source = _C._source_memory(data, shown(name) if isinstance(name, str) else f"<{type(f).__name__}>")
    return source, lambda end: f.seek(start + end)


def describe(source):
    """What the first bytes look like, for messages."""
    guess = source.guess()
    return guess if guess is not None else "it is not a checkpoint, or its first bytes were changed"


def refuse_strange(source):
    """Files that no reader here could make sense of, told by their first bytes."""
    head = source.read(0, min(source.size, 512))
    if len(head) >= 262 and head[257:262] == b"ustar" or _looks_like_tar(source, head):
        raise RuntimeError(f"{source.name} has PyTorch's oldest format, a tar archive of before version 0.1.10: load it "
                           "with PyTorch and save it again")
    if head and head[0] != 0x80 and source.guess() is not None:
        raise RuntimeError(f"Invalid magic number; corrupt file? {source.name} is not a checkpoint: {source.guess()}")


def _looks_like_tar(source, head):
    if len(head) < 512 or not head.rstrip(b"\0"):
        return False
    name = head[:100].split(b"\0")[0]
    try:
        recorded = int(head[148:156].rstrip(b"\0 ") or b"x", 8)
    except ValueError:
        return False
    return bool(name) and recorded == sum(head[:148]) + 8 * 32 + sum(head[156:512])


def swapped(storage, dtype):
    """The storage with the bytes of each number reversed (complex: of each part)."""
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    data = bytes(memoryview(storage)) if storage.nbytes() else b""
    import array
    letter = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
    numbers = array.array(letter, data[:len(data) // width * width])
    numbers.byteswap()
    result = UntypedStorage(len(data))
    if data:
        memoryview(result)[:] = numbers.tobytes() + data[len(data) // width * width:]
    return result


def storage_piece(storage, begin, end):
    """A new storage with some bytes of another."""
    piece = UntypedStorage(end - begin)
    whole = _C._window(storage, ember.uint8, begin, (end - begin,), (1,))
    _C._window(piece, ember.uint8, 0, (end - begin,), (1,)).copy_(whole)
    return piece


def storage_view(root, begin, end):
    """A storage over some bytes of another: old files knew such views. Shares the bytes."""
    return _C._source_memory(memoryview(root)[begin:end], "a view of a storage").storage(0, end - begin, True)


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of `size` elements over a mapped file. shared: writes change the file, which is made or made longer if need
    be; otherwise they stay in this process."""
    if not isinstance(filename, str):
        raise TypeError(f"from_file(): argument 'filename' (position 1) must be str, not {type(filename).__name__}")
    if device is not None and ember.device(device).type != "cpu":
        raise NotImplementedError(f"Could not run 'aten::from_file' with arguments from the '{ember.device(device).type}' backend.")
    dtype = ember.get_default_dtype() if dtype is None else dtype
    storage = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    return _C._window(storage, dtype, 0, (size,), (1,)).requires_grad_(requires_grad)
