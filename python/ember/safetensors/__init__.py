"""safetensors files: names and bytes of tensors, nothing that could run. The names are those of huggingface's package.

The reader is C (src/serialize/safetensors.c). It takes the header for hostile, and tensors are windows of the mapped
file: loading costs nothing until the numbers are read.
"""

import os

import ember
from ember import _C

__all__ = ["SafetensorError", "deserialize", "load", "load_file", "load_model", "safe_open", "save", "save_file",
           "save_model"]


class SafetensorError(Exception):
    """What is wrong with a safetensors file."""


def _opened(source):
    try:
        return _C._SafeFile(source)
    except ember.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise SafetensorError(str(error)) from None


def _source(filename):
    path = os.fspath(filename)
    try:
        return _C._source_open(path, 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"No such file or directory: {os.fsdecode(path)}") from None


def _device(device):
    if isinstance(device, int) and not isinstance(device, bool):
        device = f"cuda:{device}"
    try:
        return ember.device(device)
    except (RuntimeError, TypeError):
        raise SafetensorError(f"device {device} is invalid") from None


class PySafeSlice:
    """A tensor of a file that is read when it is indexed."""

    def __init__(self, opened, index):
        self._opened, self._index = opened, index

    def get_shape(self):
        return list(self._opened._entries[self._index][2])

    def get_dtype(self):
        return self._opened._entries[self._index][1]

    def __getitem__(self, index):
        return self._opened._finish(self._opened._tensor(self._index)[index])


class safe_open:
    """The tensors of a file, one at a time.

    filename: path. framework: "pt" for tensors, "np" for numpy arrays. device: where the tensors go.
    """

    def __init__(self, filename, framework, device="cpu", *, backend="mmap"):
        if framework not in ("pt", "torch", "pytorch", "np", "numpy"):
            raise SafetensorError(f"framework {framework} is invalid")
        self._numpy = framework in ("np", "numpy")
        self._device = _device(device)
        self._file = _opened(_source(filename))
        self._entries = self._file.entries()
        self._places = {entry[0]: i for i, entry in enumerate(self._entries)}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file = None

    def _tensor(self, index):
        if self._file is None:
            raise SafetensorError("File is closed")
        return self._file.tensor(index, True)

    def _finish(self, tensor):
        if self._numpy:
            return tensor.numpy()
        return tensor if self._device.type == "cpu" else tensor.to(self._device)

    def _find(self, name):
        if name not in self._places:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self._places[name]

    def keys(self):
        return sorted(self._places)

    def offset_keys(self):
        """Names in the order of their bytes."""
        return list(self._places)

    def metadata(self):
        return self._file.metadata()

    def get_tensor(self, name):
        return self._finish(self._tensor(self._find(name)))

    def get_tensors(self):
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name):
        return PySafeSlice(self, self._find(name))


def deserialize(data):
    """[(name, {"shape", "dtype", "data"})] of the bytes of a file, in the order of the tensors' bytes."""
    opened = _opened(_C._source_memory(data, "<bytes>"))
    found = []
    for i, (name, dtype, shape) in enumerate(opened.entries()):
        tensor = opened.tensor(i, False)
        found.append((name, {"shape": list(shape), "dtype": dtype, "data": bytearray(_bytes(tensor))}))
    return found


def _bytes(tensor):
    return bytes(memoryview(tensor.untyped_storage())) if tensor.numel() else b""


from .torch import load, load_file, load_model, save, save_file, save_model  # noqa: E402
