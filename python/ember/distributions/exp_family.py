"""Distributions of the exponential family, whose entropy and divergence follow from their log normaliser."""

from typing import Any

import ember
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """density(x) = h(x) exp(natural parameters . t(x) - log normaliser(natural parameters))."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The expected value of log h(x)."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """By the gradient of the log normaliser, which is the expected value of t(x)."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        means = ember.autograd.grad(normalizer.sum(), params, create_graph=True)
        result += normalizer
        for param, mean in zip(params, means):
            result -= (param * mean).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
