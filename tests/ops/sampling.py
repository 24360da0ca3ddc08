"""From the table to calls: samples for a dtype, as tensors and as numpy arrays."""
import oracle_data
from makers import Maker
from subject import DTYPES, map_args, operator
from table import TABLE

# Operators that this build has: the ones that the generator knows; test_coverage.py looks after the difference.
PRESENT = [name for name in TABLE if operator(name) is not None and name in oracle_data.DTYPES]


def dtypes_of(name):
    return [oracle_data.LETTERS[letter] for letter in oracle_data.DTYPES[name]]


def gradients_of(name):
    """float64 and complex128, where PyTorch has gradients of the operator."""
    return [oracle_data.LETTERS[letter] for letter in oracle_data.GRADIENTS[name]]


def cases(names=None, dtypes=DTYPES):
    """(operator, dtype) for every dtype that PyTorch takes."""
    return [(name, dtype) for name in (names or PRESENT) for dtype in dtypes if dtype in dtypes_of(name)]


def samples(name, dtype):
    return list(TABLE[name].samples(Maker(name, dtype)))


def tensors(sample, dtype, change=lambda tensor: tensor):
    """A sample's (args, kwargs) as tensors; `change` is applied to each."""
    args, kwargs = sample
    make = lambda arg: change(arg.tensor(dtype))  # noqa: E731
    return map_args(args, make), map_args(kwargs, make)


def arrays(sample):
    args, kwargs = sample
    return map_args(args, lambda arg: arg.values), map_args(kwargs, lambda arg: arg.values)


def writes_first(name):
    """In-place by its own name: copy_, fill_, index_put_, uniform_."""
    return name.split(".")[0].endswith("_")
