"""The module under test, its operators by full name, and the way between its tensors and plain numpy arrays.

EMBER_TEST_MODULE=torch runs the same tests on the oracle: they test PyTorch's behaviour before Ember's.
"""

import importlib
import os

import numpy as np

NAME = os.environ.get("EMBER_TEST_MODULE", "ember")
torch = importlib.import_module(NAME)
IS_EMBER = NAME == "ember"
FULL = os.environ.get("EMBER_TEST_FULL") == "1"

BOOL, UINT8 = ["bool"], ["uint8"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
HALVES = ["float16", "bfloat16"]
FLOATS = HALVES + ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
DTYPES = BOOL + INTS + FLOATS + COMPLEX

# What a result may differ from a reference that was computed in double precision: (relative, absolute).
TOLERANCE = {
    "float16": (1.5e-3, 1.5e-3),
    "bfloat16": (1e-2, 1e-2),
    "float32": (4e-6, 4e-6),
    "float64": (1e-11, 1e-11),
    "complex64": (8e-6, 8e-6),
    "complex128": (1e-11, 1e-11),
}


def kind(dtype):
    """bool, int, float or complex, of a dtype's name."""
    return "bool" if dtype == "bool" else "int" if dtype in INTS else "complex" if dtype in COMPLEX else "float"


def wide(dtype):
    """The numpy type in which references compute."""
    return {"bool": np.bool_, "int": np.int64, "float": np.float64, "complex": np.complex128}[kind(dtype)]


def dtype_of(name):
    return getattr(torch, name)


def name_of(dtype):
    return str(dtype).split(".")[-1]


def operator(full):
    """`add.Tensor` -> the operator that takes exactly that overload's arguments, or None."""
    name, _, overload = full.partition(".")
    if IS_EMBER:
        return torch._C._get_operation("aten", name, overload or "default")
    packet = getattr(torch.ops.aten, name, None)
    return getattr(packet, overload or "default", None)


def schema_of(full):
    return str(operator(full)._schema)


class Arg:
    """A tensor argument before it is one: values in a wide numpy type, and a dtype (None: the one under test).

    `diff` says whether a gradient with respect to it makes sense, for floating and complex dtypes.
    """

    def __init__(self, values, dtype=None, diff=True):
        self.values, self.dtype = np.asarray(values), dtype
        self.diff = diff and dtype is None

    def tensor(self, dtype, device=None):
        made = torch.tensor(self.values.tolist(), dtype=dtype_of(self.dtype or dtype))
        return made.reshape(self.values.shape) if self.values.size == 0 else made


class Dtype:
    """A dtype argument, by name."""

    def __init__(self, name):
        self.name = name


def map_args(value, change):
    """`value` with every Arg in it (in lists and tuples too) replaced by change(arg), every Dtype by the module's."""
    if isinstance(value, Arg):
        return change(value)
    if isinstance(value, Dtype):
        return dtype_of(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(map_args(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_args(item, change) for key, item in value.items()}
    return value


def numpy_of(tensor):
    """Any tensor as a wide numpy array. Through tolist(), which reads element by element whatever the layout."""
    return np.array(tensor.detach().tolist(), dtype=wide(name_of(tensor.dtype))).reshape(tuple(tensor.shape))


def flat(result):
    """Results as a list: one tensor, several, a list of them, a number."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def round_to(values, dtype):
    """A reference's result in the value range of `dtype`, still in the wide type."""
    values = np.asarray(values)
    if kind(dtype) == "int":
        return values.astype(getattr(np, dtype)).astype(np.int64)
    if kind(dtype) == "bool":
        return values.astype(np.bool_)
    return values.astype(wide(dtype))


def check_close(got, want, dtype, what, scale=1.0):
    """`got` (a tensor) has dtype and shape and, within the dtype's tolerance, the values of `want` (a numpy array)."""
    assert name_of(got.dtype) == dtype, f"{what}: dtype {got.dtype}, expected {dtype}"
    want = round_to(want, dtype)
    assert tuple(got.shape) == want.shape, f"{what}: shape {tuple(got.shape)}, expected {want.shape}"
    have = numpy_of(got)
    if kind(dtype) in ("bool", "int"):
        same = np.array_equal(have, want)
    else:
        relative, absolute = TOLERANCE[dtype]
        same = np.allclose(have, want, rtol=relative * scale, atol=absolute * scale, equal_nan=True)
    assert same, f"{what}:\ngot\n{have}\nexpected\n{want}"


def same_bits(a, b):
    """Equal in dtype, shape and every value, nan included."""
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(numpy_of(a), numpy_of(b), equal_nan=True)


def agree(a, b):
    """Two ways to the same result. Ember gives the same bits, except that complex loops round their last elements
    differently from their first; PyTorch, whose loops depend on the layout, gives nearly the same."""
    if IS_EMBER and not a.is_complex() or kind(name_of(a.dtype)) in ("bool", "int"):
        return same_bits(a, b)
    relative, absolute = TOLERANCE[name_of(a.dtype)]
    return a.dtype == b.dtype and np.allclose(numpy_of(a), numpy_of(b), relative, absolute, equal_nan=True)
