"""DistributedSampler: each process's share of a dataset."""

import math
from typing import Any

import ember

from .sampler import Sampler

__all__ = ["DistributedSampler"]


def _process_group(name):
    """What `name` of ember.distributed answers."""
    distributed = getattr(ember, "distributed", None)
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return getattr(distributed, name)()


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index, beginning with `rank`. Call set_epoch() before each epoch for another order."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False) -> None:
        num_replicas = _process_group("get_world_size") if num_replicas is None else num_replicas
        rank = _process_group("get_rank") if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Any:
        n = len(self.dataset)
        if self.shuffle:
            indices = ember.randperm(n, generator=ember.Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            indices = list(range(n))
        if self.drop_last:
            indices = indices[:self.total_size]
        elif indices:
            repeats = math.ceil(self.total_size / len(indices))
            indices = (indices * repeats)[:self.total_size]  # from the beginning again, so that all get as many
        if len(indices) != self.total_size:
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        indices = indices[self.rank:self.total_size:self.num_replicas]
        if len(indices) != self.num_samples:
            raise AssertionError(f"Number of subsampled indices ({len(indices)}) does not match num_samples "
                                 f"({self.num_samples})")
        return iter(indices)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch) -> None:
        self.epoch = epoch
