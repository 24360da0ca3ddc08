"""Samplers: the order in which samples are asked for."""

import itertools
from typing import Generic, TypeVar
from typing import Any

import ember

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """Gives the keys of a dataset, in the order in which they are loaded: a subclass defines `__iter__`, and mostly `__len__`."""

    def __iter__(self) -> Any:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The keys 0, 1, ..., len(data_source) - 1, in order, each time."""

    def __init__(self, data_source) -> None:
        self.data_source = data_source

    def __iter__(self) -> Any:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _own_generator():
    """A generator whose seed is drawn from the default one: one draw an epoch, however long the epoch is."""
    seed = int(ember.empty((), dtype=ember.int64).random_().item())
    return ember.Generator().manual_seed(seed)


class RandomSampler(Sampler[int]):
    """A random permutation of the keys each time, or num_samples draws with replacement. ValueError for options that do not
    fit each other.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> Any:
        return len(self.data_source) if self._num_samples is None else self._num_samples  # the source may grow

    def __iter__(self) -> Any:
        n = len(self.data_source)
        generator = _own_generator() if self.generator is None else self.generator
        if self.replacement:
            left = self.num_samples
            while left > 0:  # in pieces of 32, as PyTorch does: the numbers depend on it
                piece = min(left, 32)
                yield from ember.randint(high=n, size=(piece,), dtype=ember.int64, generator=generator).tolist()
                left -= piece
            return
        whole, rest = divmod(self.num_samples, n)
        for _ in range(whole):
            yield from ember.randperm(n, generator=generator).tolist()
        # PyTorch draws this one even if none of it is wanted: the stream afterwards depends on it.
        yield from ember.randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices, in random order."""

    def __init__(self, indices, generator=None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Any:
        for i in ember.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws 0..len(weights)-1, each as often as its weight says."""

    def __init__(self, weights, num_samples, replacement=True, generator=None) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = ember.as_tensor(weights, dtype=ember.double)
        if self.weights.dim() != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Any:
        yield from ember.multinomial(self.weights, self.num_samples, self.replacement,
                                     generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of batch_size keys of another sampler; the last, shorter one is left out when drop_last. ValueError for a size
    that is not positive.
    """

    def __init__(self, sampler, batch_size, drop_last) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Any:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)
