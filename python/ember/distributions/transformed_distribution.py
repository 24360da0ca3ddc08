"""Distributions of functions of random numbers."""

from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """What transforms, one after the other, make of base_distribution."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError("base_distribution needs to have shape with size at least "
                             f"{whole.domain.event_dim}, but got {base_shape}.")
        shape = whole.forward_shape(base_shape)
        expanded = whole.inverse_shape(shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[:len(expanded) - base_event_dim])
        taken = whole.domain.event_dim - base_event_dim  # batch dims of the base that make one event
        self.base_dist = Independent(base_distribution, taken) if taken > 0 else base_distribution
        gain = max(base_event_dim - whole.domain.event_dim, 0)
        event_dim = whole.codomain.event_dim + gain
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = ember.Size(batch_shape)
        base_shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(base_shape[:len(base_shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support, gap = self.transforms[-1].codomain, len(self.event_shape) - self.transforms[-1].codomain.event_dim
        return constraints.independent(support, gap) if gap > 0 else support

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=ember.Size()) -> Any:
        with ember.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=ember.Size()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, result, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            result = result - sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            y = x
        return result + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonized(self, value):
        """value, or 1 - value where the transforms fall."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonized(value)))
