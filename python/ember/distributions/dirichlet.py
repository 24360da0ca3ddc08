"""Shares of a whole."""

from typing import Any

import ember
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Draw(ember.autograd.Function):
    """A draw and how it changes with the concentration."""

    @staticmethod
    def forward(ctx, concentration) -> Any:
        x = ember._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @ember.autograd.function.once_differentiable
    def backward(ctx, grad_output) -> Any:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        slope = ember._dirichlet_grad(x, concentration, total)
        return slope * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Positive numbers with the sum 1, along the last dimension of concentration."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Dirichlet, _instance)
        batch_shape = ember.Size(batch_shape)
        new.concentration = self.concentration.expand(batch_shape + self.event_shape)
        super(Dirichlet, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))
    _natural_params = property(lambda self: (self.concentration,))

    @property
    def mode(self) -> Any:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        at_corner = (self.concentration < 1).all(dim=-1)
        mode[at_corner] = ember.nn.functional.one_hot(mode[at_corner].argmax(dim=-1), excess.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()) -> Any:
        return _Draw.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (ember.xlogy(self.concentration - 1.0, value).sum(-1) + ember.lgamma(self.concentration.sum(-1))
                - ember.lgamma(self.concentration).sum(-1))

    def entropy(self) -> Any:
        n, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (ember.lgamma(self.concentration).sum(-1) - ember.lgamma(total) - (n - total) * ember.digamma(total)
                - ((self.concentration - 1.0) * ember.digamma(self.concentration)).sum(-1))

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - ember.lgamma(x.sum(-1))
