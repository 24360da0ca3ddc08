"""Normal vectors that depend on few common numbers."""

import math
from typing import Any

import ember
from . import constraints
from .distribution import Distribution
from .multivariate_normal import batch_mv, mahalanobis
from .utils import lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Covariance cov_factor cov_factor' + diag(cov_diag), and no work with matrices larger than cov_factor's columns ask for."""

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        shapes = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        try:
            batch_shape = ember.broadcast_shapes(*shapes)
        except RuntimeError as e:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag "
                             f"{cov_diag.shape}") from e
        self._set(batch_shape, event_shape, loc, cov_factor, cov_diag)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        # 1 + W' D^-1 W, by which the determinant and the inverse of the covariance come from small matrices
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        capacitance = ember.matmul(scaled, cov_factor)
        eye = ember.eye(cov_factor.size(-1), dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = ember.linalg.cholesky(capacitance + eye)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _set(self, batch_shape, event_shape, loc, cov_factor, cov_diag):
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + event_shape + cov_factor.shape[-1:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = ember.Size(batch_shape)
        new._set(batch_shape, self.event_shape, self.loc, self.cov_factor, self.cov_diag)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    def _wide(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = ember.matmul(scaled, scaled.mT) + ember.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return self._wide(root * ember.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_cov_factor
        return self._wide(ember.matmul(factor, factor.mT) + ember.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Any:
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        half = ember.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._wide(ember.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - ember.matmul(half.mT, half))

    def rsample(self, sample_shape=ember.Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = ember.empty(shape[:-1] + self.cov_factor.shape[-1:], **options).normal_()
        own = ember.empty(shape, **options).normal_()
        return self.loc + batch_mv(self._unbroadcasted_cov_factor, common) + self._unbroadcasted_cov_diag.sqrt() * own

    def _log_det(self):
        return (2 * self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
                + self._unbroadcasted_cov_diag.log().sum(-1))

    def _mahalanobis(self, gap):
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        whole = (gap.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return whole - mahalanobis(self._capacitance_tril, batch_mv(scaled, gap))

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        squares = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + squares)

    def entropy(self) -> Any:
        h = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)
