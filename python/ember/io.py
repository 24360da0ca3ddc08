"""numpy's files without numpy: .npy, one tensor, and .npz, a zip archive of them."""

import os

import ember
from ember import _C, _files

__all__ = ["load_npy", "load_npz", "save_npy", "save_npz"]


def _target(f):
    """What the writers of C take: a path, or a write method."""
    return f.write if hasattr(f, "write") else os.fspath(f)


def _open(f, mmap=False):
    path = os.fspath(f) if isinstance(f, (str, bytes, os.PathLike)) else None
    if mmap and path is None:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _files.open_source(f, path, int(mmap))


def _plain(tensor):
    if not isinstance(tensor, ember.Tensor):
        tensor = ember.as_tensor(tensor)
    return tensor.detach().contiguous()


def load_npy(f, *, mmap=False):
    """The tensor of a .npy file, Fortran order and big-endian numbers included. mmap: a window of the file."""
    return _C._npy_read(_open(f, mmap)[0], mmap)


def save_npy(f, tensor):
    """Write a tensor as a .npy file (version 1.0, C order)."""
    _C._npy_write(_target(f), _plain(tensor))


def load_npz(f):
    """{name: tensor} of a .npz file, compressed or not."""
    source = _open(f)[0]
    archive = _C._Zip(source)
    result = {}
    for name in archive.names():
        data = _C._source_memory(archive.read(name), _files.shown(f"{source.name}, record {name}"))
        result[name[:-4] if name.endswith(".npy") else name] = _C._npy_read(data, False)
    return result


def save_npz(f, *tensors, **named):
    """Write tensors as a .npz file: named as given, the others arr_0, arr_1, ..."""
    for i, tensor in enumerate(tensors):
        if f"arr_{i}" in named:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{i}")
        named[f"arr_{i}"] = tensor
    archive = _C._ZipWriter(_target(f), 64, True)
    for name, tensor in named.items():
        parts = []
        _C._npy_write(parts.append, _plain(tensor))
        archive.write(name + ".npy", b"".join(parts))
    archive.finish(None)
