"""Which transform leads from all real numbers to a region: biject_to by one-to-one maps, transform_to by any."""

import numbers
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A function of a constraint for each class of constraints."""

    def __init__(self) -> None:
        self._registry = {}

    def register(self, constraint, factory=None) -> Any:
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError("Expected constraint to be either a Constraint subclass or instance, but got "
                            f"{constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds):
    def register(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory
    return register


@_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


def _independent(registry):
    def factory(constraint):
        base, n = registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(base, n)
    return factory


biject_to.register(constraints.independent, _independent(biject_to))
transform_to.register(constraints.independent, _independent(transform_to))


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _below(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, numbers.Number) and low == 0 and isinstance(high, numbers.Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(loc=low, scale=high - low)])


@biject_to.register(constraints.simplex)
def _shares(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _shares_by_softmax(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _triangle(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _correlations(constraint):
    return transforms.CorrCholeskyTransform()


def _cat(registry):
    return lambda constraint: transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


def _stack(registry):
    return lambda constraint: transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _cat(_registry))
    _registry.register(constraints.stack, _stack(_registry))
