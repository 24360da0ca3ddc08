"""Batch dimensions taken as one event."""

from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """base_distribution with its last reinterpreted_batch_ndims batch dimensions taken as one event."""

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None) -> None:
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                             f"actual {n} vs {len(base_distribution.batch_shape)}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        split = len(base_distribution.batch_shape) - n
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    has_enumerate_support = property(lambda self: self.base_dist.has_enumerate_support if self.reinterpreted_batch_ndims == 0
                                     else False)
    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @constraints.dependent_property
    def support(self) -> Any:
        support = self.base_dist.support
        return constraints.independent(support, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else support

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Independent, _instance)
        batch_shape = ember.Size(batch_shape)
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[:self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=ember.Size()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=ember.Size()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def _sum(self, value):
        return sum_rightmost(value, self.reinterpreted_batch_ndims)

    def log_prob(self, value) -> Any:
        return self._sum(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        return self._sum(self.base_dist.entropy())

    def enumerate_support(self, expand=True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
