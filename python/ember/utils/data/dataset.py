"""Datasets: things with samples. A map-style one has `__getitem__`, an iterable one has `__iter__`."""

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable
from typing import Generic, TypeVar
from typing import Any

from ember import default_generator, randperm

__all__ = ["Dataset", "IterableDataset", "TensorDataset", "StackDataset", "ConcatDataset", "ChainDataset", "Subset",
           "random_split"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Map-style: subclasses give `__getitem__(key)`, mostly `__len__`, and `__getitems__(keys)` if many at once are
    cheaper."""

    def __getitem__(self, index) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream: subclasses give `__iter__`. With workers each has a copy: see get_worker_info()."""

    def __add__(self, other) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Sample i is the tuple of the i-th row of each tensor. AssertionError when their first sizes differ.

    >>> data = torch.utils.data.TensorDataset(torch.arange(3), torch.eye(3))
    >>> len(data), data[1]
    (3, (tensor(1), tensor([0., 1., 0.])))
    """

    def __init__(self, *tensors) -> None:
        if any(tensors[0].size(0) != t.size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index) -> Any:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Datasets side by side: a sample is a tuple (or, for keyword arguments, a dict) of their samples."""

    def __init__(self, *args, **kwargs) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                             "but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args if args else kwargs
        parts = args if args else list(kwargs.values())
        self._length = len(parts[0])
        if any(len(d) != self._length for d in parts):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices) -> Any:
        if isinstance(self.datasets, dict):
            columns = [_fetch_many(d, indices) for d in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*[_fetch_many(d, indices) for d in self.datasets]))

    def __len__(self) -> int:
        return self._length


def _fetch_many(dataset, indices):
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[_T_co]):
    """Map-style datasets one after another, as one: its length is their sum. AssertionError for iterable ones; ValueError for
    an index out of range.
    """

    @staticmethod
    def cumsum(sequence) -> Any:
        return list(itertools.accumulate(len(d) for d in sequence))

    def __init__(self, datasets) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which > 0 else 0)]

    @property
    def cummulative_sizes(self) -> Any:
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Streams one after another."""

    def __init__(self, datasets) -> None:
        super().__init__()
        self.datasets = datasets

    def _parts(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Any:
        for d in self._parts():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._parts())


class Subset(Dataset[_T_co]):
    """The samples of a dataset that `indices` name, in that order. IndexError comes from the dataset itself."""

    def __init__(self, dataset, indices) -> None:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\ndef __getitems__(self, indices):\n    return "
                "[self.__getitem__(idx) for idx in indices]")
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices) -> Any:
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def _lengths_of_fractions(n, fractions):
    """Fractions of n rounded down; what is left goes to the first ones, one each, in turn."""
    lengths = []
    for i, f in enumerate(fractions):
        if f < 0 or f > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(n * f))
    for i in range(n - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths


def random_split(dataset, lengths, generator=default_generator) -> Any:
    """Subsets of the given lengths, or fractions that sum to 1, of a random permutation of the dataset; generator: whose
    draws.

    ValueError for lengths that do not sum to the dataset's.

    >>> parts = torch.utils.data.random_split(range(10), [0.8, 0.2])
    >>> [len(part) for part in parts]
    [8, 2]
    """
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of_fractions(len(dataset), lengths)
        total = sum(lengths)
    if total != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - n:end]) for end, n in zip(ends, lengths)]
