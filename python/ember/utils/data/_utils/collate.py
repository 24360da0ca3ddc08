"""default_collate and default_convert: from a list of samples to a batch of tensors, whatever holds the samples.

numpy is recognised by its types' module, so that it is not imported for those who do not use it.
"""

import copy
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import ember

default_collate_err_msg_format = ("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                                  "found {}")


def _numpy_kind(value):
    """'array', 'number', 'text' (strings and objects, which no tensor holds), or None: nothing of numpy's."""
    if type(value).__module__ != "numpy":
        return None
    if hasattr(value, "__array_interface__") and hasattr(value, "dtype"):
        text = value.dtype.kind in "SUO"
        return "text" if text else "array" if type(value).__name__ == "ndarray" else "number"
    return None


def _remake(like, values):
    """A container like `like` with these values (a dict for mappings, else a list); a plain one if it cannot be made.

    Mutable containers are copied and filled, so that further attributes of theirs survive.
    """
    try:
        if isinstance(like, MutableMapping):
            new = copy.copy(like)
            new.update(values)
        elif isinstance(like, MutableSequence):
            new = copy.copy(like)
            for i, value in enumerate(values):
                new[i] = value
        else:
            new = type(like)(values)
        return new
    except TypeError:
        return values


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def default_convert(data):
    """numpy arrays and numbers in `data` become tensors, in containers too; everything else stays."""
    kind = _numpy_kind(data)
    if isinstance(data, ember.Tensor) or isinstance(data, (str, bytes)) or kind == "text":
        return data
    if kind is not None:
        return ember.as_tensor(data)
    if isinstance(data, Mapping):
        return _remake(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, Sequence):
        values = [default_convert(d) for d in data]
        return values if isinstance(data, tuple) else _remake(data, values)
    return data


def collate(batch, *, collate_fn_map=None):
    """One batch of a list of samples. `collate_fn_map` says by type how leaves are joined, containers are walked."""
    first = batch[0]
    join = _find(type(first), collate_fn_map or {})
    if join is not None:
        return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _remake(first, {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
                               for key in first})
    if _is_namedtuple(first):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return values if isinstance(first, tuple) else _remake(first, values)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _find(cls, functions):
    if functions is default_collate_fn_map and cls.__module__ == "numpy":
        _add_numpy()
    if cls in functions:
        return functions[cls]
    for known, function in functions.items():
        if issubclass(cls, known):
            return function
    return None


def collate_tensor_fn(batch, *, collate_fn_map=None):
    first = batch[0]
    if first.is_nested:
        raise RuntimeError("Batches of nested tensors are not currently supported by the default collate_fn; please "
                           "provide a custom collate_fn to handle them appropriately.")
    if first.layout is not ember.strided:
        raise RuntimeError("Batches of sparse tensors are not currently supported by the default collate_fn; please "
                           "provide a custom collate_fn to handle them appropriately.")
    return ember.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if _numpy_kind(batch[0]) == "text":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([ember.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return ember.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return ember.tensor(batch, dtype=ember.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return ember.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {ember.Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn,
                          str: collate_str_fn, bytes: collate_str_fn}


def _add_numpy():
    """numpy's types join the map when the program has imported numpy, or when a sample is one of them."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.ndarray not in default_collate_fn_map:
        default_collate_fn_map[numpy.ndarray] = collate_numpy_array_fn
        default_collate_fn_map[numpy.bool_, numpy.number, numpy.object_] = collate_numpy_scalar_fn


_add_numpy()


def default_collate(batch):
    """Samples to a batch: tensors are stacked, numbers become one tensor, strings a list, containers keep their form."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
