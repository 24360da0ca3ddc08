"""Normal vectors."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["MultivariateNormal"]


def batch_mv(matrix, vector) -> Any:
    return ember.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(scale_tril, gap) -> Any:
    """gap' (L L')^-1 gap, over batches of both."""
    if scale_tril.dim() == 2:  # one factor for all: one system with many right sides
        solved = ember.linalg.solve_triangular(scale_tril, gap.reshape(-1, gap.size(-1)).mT, upper=False)
        return solved.pow(2).sum(-2).reshape(gap.shape[:-1])
    return ember.linalg.solve_triangular(scale_tril, gap.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


def cholesky_of_inverse(precision) -> Any:
    """The lower L with L L' precision = 1, by the factor of the matrix read backwards."""
    backwards = ember.flip(ember.linalg.cholesky(ember.flip(precision, (-2, -1))), (-2, -1)).mT
    eye = ember.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return ember.linalg.solve_triangular(backwards, eye, upper=False)


class MultivariateNormal(Distribution):
    """Mean loc, and a covariance given by itself, its inverse or its lower Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {name: value for name, value in (("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
                                                 ("precision_matrix", precision_matrix)) if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} {'matrix ' if name == 'scale_tril' else ''}must be at least two-dimensional, "
                             "with optional leading batch dimensions")
        batch_shape = ember.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = ember.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = cholesky_of_inverse(matrix)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = ember.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape + self.event_shape + self.event_shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _wide(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._wide(ember.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        eye = ember.eye(factor.size(-1), dtype=factor.dtype, device=factor.device)
        root = ember.linalg.solve_triangular(factor, eye, upper=False)
        return self._wide(root.mT @ root)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape))

    def rsample(self, sample_shape=ember.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = ember.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_()
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, normal)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        squares = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - self._half_log_det()

    def entropy(self) -> Any:
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)
