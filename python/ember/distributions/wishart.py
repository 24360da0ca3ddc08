"""Sums of squares of normal vectors."""

import math
import warnings
from numbers import Number
from typing import Any

import ember
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import cholesky_of_inverse
from .utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of mvlgamma."""
    return ember.digamma(x.unsqueeze(-1) - ember.arange(p, dtype=x.dtype, device=x.device).div(2).expand(x.shape + (-1,))).sum(-1)


class Wishart(ExponentialFamily):
    """The sum of df squares v v' of normal vectors with a covariance given by itself, its inverse or its Cholesky factor."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None) -> None:
        given = [(name, value) for name, value in (("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
                                                   ("precision_matrix", precision_matrix)) if value is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = ember.Size(matrix.shape[:-2])
            self.df = ember.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = ember.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape, n = matrix.shape[-2:], matrix.shape[-1]
        if self.df.le(n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.arg_constraints = {"covariance_matrix": constraints.positive_definite,
                                "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
                                "df": constraints.greater_than(n - 1)}
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(n).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                          stacklevel=2)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = ember.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = cholesky_of_inverse(matrix)
        self._dist_chi2 = self._diagonal(batch_shape)
        self._batch_dims = [-(x + 1) for x in range(len(batch_shape))]

    arg_constraints = {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0)}

    def _diagonal(self, batch_shape):
        """The squares of the diagonal of Bartlett's decomposition."""
        n = self._event_shape[-1]
        rows = ember.arange(n, dtype=self.df.dtype, device=self.df.device).expand(batch_shape + (-1,))
        return Chi2(df=self.df.unsqueeze(-1) - rows)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = ember.Size(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self.event_shape)
        new.df = self.df.expand(batch_shape)
        new._batch_dims = [-(x + 1) for x in range(len(batch_shape))]
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape + self.event_shape))
        new.arg_constraints = self.arg_constraints
        new._event_shape = self.event_shape
        new._dist_chi2 = new._diagonal(batch_shape)
        super(ExponentialFamily, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _wide(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._wide(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        eye = ember.eye(self._event_shape[-1], dtype=self._unbroadcasted_scale_tril.dtype, device=self.df.device)
        root = ember.linalg.solve_triangular(self._unbroadcasted_scale_tril, eye, upper=False)
        return self._wide(root.mT @ root)

    def _by_df(self, df):
        return df.view(self._batch_shape + (1, 1))

    mean = property(lambda self: self._by_df(self.df) * self.covariance_matrix)

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._by_df(ember.where(factor <= 0, math.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._by_df(self.df) * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett(self, sample_shape):
        n = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = ember.tril_indices(n, n, offset=-1)
        noise[..., i, j] = ember.randn(ember.Size(sample_shape) + self._batch_shape + (n * (n - 1) // 2,), dtype=noise.dtype,
                                       device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=ember.Size(), max_try_correction=None) -> Any:
        """Draws everything twice, and what is then singular again, at most max_try_correction (10) times.

        The second draw is PyTorch's, which takes its first for singular where it is not; a seed gives the same numbers.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett(ember.Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(tries):
                drawn = self._bartlett(again[again].shape)
                sample[again] = drawn
                again[again.clone()] = self._any_of_batch(~self.support.check(drawn))
                if not again.any():
                    break
        return sample

    def _any_of_batch(self, flags):
        return flags.any(self._batch_dims) if self._batch_shape else flags

    def _log_det(self):
        return 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        nu, n = self.df, self._event_shape[-1]
        solved = ember.linalg.solve_triangular(self._unbroadcasted_scale_tril, value, upper=False)
        solved = ember.linalg.solve_triangular(self._unbroadcasted_scale_tril.mT, solved, upper=True)
        return (-nu * (n * math.log(2) / 2 + self._log_det() / 2) - ember.mvlgamma(nu / 2, p=n)
                + (nu - n - 1) / 2 * ember.linalg.slogdet(value).logabsdet - solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2)

    def entropy(self) -> Any:
        nu, n = self.df, self._event_shape[-1]
        return ((n + 1) * (n * math.log(2) / 2 + self._log_det() / 2) + ember.mvlgamma(nu / 2, p=n)
                - (nu - n - 1) / 2 * _mvdigamma(nu / 2, p=n) + nu * n / 2)

    @property
    def _natural_params(self):
        nu, n = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - n - 1) / 2

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        return (y + (n + 1) / 2) * (-ember.linalg.slogdet(-2 * x).logabsdet + math.log(2) * n) + ember.mvlgamma(y + (n + 1) / 2, p=n)
