"""Matrices of correlations."""

import math
from typing import Any

import ember
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of dim x dim matrices of correlations, whose density is in proportion to
    determinant ** (concentration - 1).

    D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion
    method", J. Multivariate Analysis 100, 2009: the onion method.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        rows = ember.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rows = ember.cat([rows.new_zeros((1,)), rows])
        most = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * rows
        self._beta = Beta(rows + 0.5, most)
        super().__init__(self.concentration.size(), ember.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None) -> Any:
        new = self._expanded(LKJCholesky, batch_shape, _instance, "concentration")
        new.dim = self.dim
        new._beta = self._beta.expand(ember.Size(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape=ember.Size()) -> Any:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        rows = ember.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        rows = rows / rows.norm(dim=-1, keepdim=True)
        rows[..., 0, :].fill_(0.0)
        w = ember.sqrt(y) * rows
        return w + ember.diag_embed(ember.clamp(1 - ember.sum(w ** 2, dim=-1), min=ember.finfo(w.dtype).tiny).sqrt())

    def log_prob(self, value) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        order = ember.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        powers = ember.sum(order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log(), dim=-1)
        rest = self.dim - 1
        alpha = self.concentration + 0.5 * rest
        return powers - (0.5 * rest * math.log(math.pi) + ember.mvlgamma(alpha - 0.5, rest) - ember.lgamma(alpha) * rest)
