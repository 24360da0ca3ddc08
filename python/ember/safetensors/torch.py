"""Dicts of tensors to and from safetensors files, and whole modules."""

import ember
from ember import _C

from . import SafetensorError, _device, _opened, _source

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]


def _span(tensor):
    """The bytes of memory that a tensor reaches: first and one past the last."""
    first = tensor.data_ptr()
    if tensor.numel() == 0:
        return first, first
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return first, first + (last + 1) * tensor.element_size()


def _find_shared(tensors):
    """Sets of names whose tensors have bytes in common."""
    by_storage = {}
    for name, tensor in tensors.items():
        if tensor.device.type != "meta" and tensor.numel() > 0:
            by_storage.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    groups = []
    for names in by_storage.values():
        names = sorted(names, key=lambda name: _span(tensors[name]))
        group, end = [], None
        for name in names:
            first, last = _span(tensors[name])
            if end is not None and first >= end:
                groups.append(set(group))
                group = []
            group.append(name)
            end = last if end is None or not group[1:] else max(end, last)
        groups.append(set(group))
    return [group for group in groups if len(group) > 1]


def _check(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, ember.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    shared = _find_shared(tensors)
    if shared:
        lines = ("Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
                 f"loading them again: {shared}.",
                 "A potential way to correctly save your model is to use `save_model`.",
                 "More information at https://huggingface.co/docs/safetensors/torch_shared_tensors", "")
        raise RuntimeError("".join("\n" + " " * 12 + line for line in lines))


def _write(to, tensors, metadata):
    _check(tensors)
    if metadata is not None and not isinstance(metadata, dict):
        raise TypeError(f"argument 'metadata': '{type(metadata).__name__}' object is not an instance of 'dict'")
    pairs = None if metadata is None else tuple(metadata.items())
    _C._safetensors_write(to, tuple(tensors), tuple(tensors.values()), pairs)


def save(tensors, metadata=None):
    """The bytes of a file with these tensors."""
    parts = []
    _write(parts.append, tensors, metadata)
    return b"".join(parts)


def save_file(tensors, filename, metadata=None):
    """Write a dict of tensors. They must be contiguous, and no two may share memory; metadata is str to str."""
    import os
    try:
        _write(os.fspath(filename), tensors, metadata)
    except OSError as error:
        raise SafetensorError(f"Error while serializing: I/O error: {error}") from None


def load(data):
    """The tensors in the bytes of a file. They own their memory."""
    opened = _opened(_C._source_memory(data, "<bytes>"))
    return {entry[0]: opened.tensor(i, False) for i, entry in enumerate(opened.entries())}


def load_file(filename, device="cpu", *, backend="mmap"):
    """The tensors of a file, in the order of their bytes. They are windows of the mapped file; writing to one does not
    change the file."""
    place = _device(device)
    opened = _opened(_source(filename))
    result = {}
    for i, entry in enumerate(opened.entries()):
        tensor = opened.tensor(i, True)
        result[entry[0]] = tensor if place.type == "cpu" else tensor.to(place)
    return result


def _is_whole(tensor):
    first, last = _span(tensor)
    storage = tensor.untyped_storage()
    return first == storage.data_ptr() and last == storage.data_ptr() + storage.nbytes()


def _duplicates(tensors):
    """{name that is kept: [names that say the same]}"""
    by_storage = {}
    for name, tensor in tensors.items():
        by_storage.setdefault(tensor.untyped_storage().data_ptr() if tensor.numel() else name, []).append(name)
    result = {}
    for names in by_storage.values():
        if len(names) < 2 or not _find_shared({name: tensors[name] for name in names}):
            continue
        whole = sorted(name for name in names if _is_whole(tensors[name]))
        if not whole:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for "
                f"saving amongst: {set(names)}. None is covering the entire storage.Refusing to save/load the model "
                "since you could be storing much more memory than needed. Please refer to "
                "https://huggingface.co/docs/safetensors/torch_shared_tensors for more information. Or open an issue.")
        result[whole[0]] = [name for name in sorted(names) if name != whole[0]]
    return result


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Write a module's parameters and buffers; shared ones once, with a note of their other names in the metadata."""
    tensors = dict(model.state_dict())
    metadata = dict(metadata or {})
    for kept, others in _duplicates(tensors).items():
        for name in others:
            metadata.setdefault(name, kept)
            del tensors[name]
    if force_contiguous:
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, filename, metadata or None)


def load_model(model, filename, strict=True, device="cpu", *, backend="mmap"):
    """Fill a module from a file that save_model wrote. Returns (missing names, unexpected names)."""
    found = load_file(filename, device=device)
    others = {name for names in _duplicates(dict(model.state_dict())).values() for name in names}
    missing, unexpected = model.load_state_dict(found, strict=False)
    missing = {name for name in missing if name not in others}
    if strict and (missing or unexpected):
        text = f"Error(s) in loading state_dict for {model.__class__.__name__}:"
        if missing:
            text += "\n    Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(missing))
        if unexpected:
            text += "\n    Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in sorted(unexpected))
        raise RuntimeError(text)
    return missing, unexpected
