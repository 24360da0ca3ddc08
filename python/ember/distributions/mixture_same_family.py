"""Mixtures of distributions of one kind."""

from typing import Any

import ember
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw of the component that a draw of mixture_distribution names; components lie along the last batch dimension."""

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        ours, theirs = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(ours), reversed(theirs)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"`mixture_distribution.batch_shape` ({ours}) is not compatible with "
                                 f"`component_distribution.batch_shape`({theirs})")
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count is not None and components is not None and count != components:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({components})")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(theirs, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        batch_shape = ember.Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, new._component_distribution.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _weights(self):
        """The probabilities, beside the components' events."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    def _mixed(self, values):
        return (self._weights() * values).sum(dim=-1 - self._event_ndims)

    mean = property(lambda self: self._mixed(self.component_distribution.mean))

    @property
    def variance(self) -> Any:
        gaps = self.component_distribution.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._mixed(self.component_distribution.variance) + self._mixed(gaps.pow(2.0))

    def cdf(self, x) -> Any:
        x = x.unsqueeze(-1 - self._event_ndims)
        return (self.component_distribution.cdf(x) * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        x = x.unsqueeze(-1 - self._event_ndims)
        logs = ember.log_softmax(self.mixture_distribution.logits, dim=-1)
        return ember.logsumexp(self.component_distribution.log_prob(x) + logs, dim=-1)

    def sample(self, sample_shape=ember.Size()) -> Any:
        with ember.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            which = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            ones = (1,) * (self._event_ndims + 1)
            which = which.reshape(which.shape + ones).expand(which.shape + (1,) + self.event_shape)
            return drawn.gather(dim, which).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
