"""Kullback-Leibler divergences: a formula a pair of classes."""

import math
from typing import Any

import ember
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

__all__ = ["register_kl", "kl_divergence"]

_FORMULAS = {}


def register_kl(type_p, type_q) -> Any:
    """Decorator: the formula for this pair of classes, and for their subclasses where these have none."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function):
        _FORMULAS[type_p, type_q] = function
        return function
    return register


def _formula(type_p, type_q):
    """The formula of the nearest classes: p's first, then q's."""
    found = [(p, q) for p, q in _FORMULAS if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        return None
    return _FORMULAS[min(found, key=lambda pq: (type_p.__mro__.index(pq[0]), type_q.__mro__.index(pq[1])))]


def kl_divergence(p, q) -> "ember.Tensor":
    """The expected value of log(p / q) under p."""
    formula = _formula(type(p), type(q))
    if formula is None:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                                  f"{type(q).__name__}")
    return formula(p, q)


@register_kl(Normal, Normal)
def _normals(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _uniforms(p, q):
    result = ember.log((q.high - q.low) / (p.high - p.low))
    return ember.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Exponential, Exponential)
def _exponentials(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplaces(p, q):
    ratio, gap = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + gap / q.scale + ratio * ember.exp(-gap / p.scale) - 1


@register_kl(Bernoulli, Bernoulli)
def _bernoullis(p, q):
    softplus = ember.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = ember.where(q.probs == 0, math.inf, ones)
    ones = ember.where(p.probs == 0, 0.0, ones)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = ember.where(q.probs == 1, math.inf, zeros)
    zeros = ember.where(p.probs == 1, 0.0, zeros)
    return ones + zeros


@register_kl(Categorical, Categorical)
def _categoricals(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = ember.where((q.probs == 0).expand_as(terms), math.inf, terms)
    terms = ember.where((p.probs == 0).expand_as(terms), 0.0, terms)
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hots(p, q):
    return _categoricals(p._categorical, q._categorical)


@register_kl(Independent, Independent)
def _independents(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return p._sum(kl_divergence(p.base_dist, q.base_dist))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p, q):
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot                             "
                                  "be computed using Bregman divergences")
    p_params = [param.detach().requires_grad_() for param in p._natural_params]
    p_normalizer = p._log_normalizer(*p_params)
    means = ember.autograd.grad(p_normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - p_normalizer
    for p_param, q_param, mean in zip(p_params, q._natural_params, means):
        result = result - sum_rightmost((q_param - p_param) * mean, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Beta, Beta)
def _betas(p, q):
    p_sum, q_sum = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    return (q.concentration1.lgamma() + q.concentration0.lgamma() + p_sum.lgamma()
            - (p.concentration1.lgamma() + p.concentration0.lgamma() + q_sum.lgamma())
            + (p.concentration1 - q.concentration1) * p.concentration1.digamma()
            + (p.concentration0 - q.concentration0) * p.concentration0.digamma() + (q_sum - p_sum) * p_sum.digamma())


@register_kl(Binomial, Binomial)
def _binomials(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return ember.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Cauchy, Cauchy)
def _cauchys(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Dirichlet, Dirichlet)
def _dirichlets(p, q):
    p_sum, q_sum = p.concentration.sum(-1), q.concentration.sum(-1)
    gaps = p.concentration.digamma() - p_sum.digamma().unsqueeze(-1)
    return (p_sum.lgamma() - q_sum.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
            + ((p.concentration - q.concentration) * gaps).sum(-1))


@register_kl(Gamma, Gamma)
def _gammas(p, q):
    return (q.concentration * (p.rate / q.rate).log() + ember.lgamma(q.concentration) - ember.lgamma(p.concentration)
            + (p.concentration - q.concentration) * ember.digamma(p.concentration)
            + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Gumbel, Gumbel)
def _gumbels(p, q):
    ratio, p_place, q_place = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    return (-ratio.log() - q_place + p_place + ratio * euler_constant
            + ember.exp(q_place + (1 + ratio).lgamma() - p_place) - (1 + euler_constant))


@register_kl(Geometric, Geometric)
def _geometrics(p, q):
    return -p.entropy() - ember.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normals(p, q):
    return _normals(p.base_dist, q.base_dist)


@register_kl(Poisson, Poisson)
def _poissons(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Pareto, Pareto)
def _paretos(p, q):
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return ember.where(p.support.lower_bound < q.support.lower_bound, math.inf, kl)


def _trace_of_square(matrix):
    """The trace of matrix matrix'."""
    return matrix.pow(2).sum((-2, -1))


def _check_events(p, q, names):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between {names} with                          different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normals(p, q):
    _check_events(p, q, "two Multivariate Normals")
    n = p.event_shape[0]
    batch = ember.broadcast_shapes(p._unbroadcasted_scale_tril.shape[:-2], q._unbroadcasted_scale_tril.shape[:-2])
    p_factor = p._unbroadcasted_scale_tril.expand(batch + (n, n))
    q_factor = q._unbroadcasted_scale_tril.expand(batch + (n, n))
    trace = _trace_of_square(ember.linalg.solve_triangular(q_factor, p_factor, upper=False))
    squares = mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + squares - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_and_low_rank(p, q):
    _check_events(p, q, "two (Low Rank) Multivariate Normals")
    q_factor, q_diag = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    whole = _trace_of_square(p._unbroadcasted_scale_tril * q_diag.rsqrt().unsqueeze(-1))
    low = ember.linalg.solve_triangular(q._capacitance_tril, q_factor.mT / q_diag.unsqueeze(-2), upper=False)
    trace = whole - _trace_of_square(low.matmul(p._unbroadcasted_scale_tril))
    return 0.5 * (q._log_det() - 2 * p._half_log_det() + trace + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_ranks(p, q):
    _check_events(p, q, "two Low Rank Multivariate Normals")
    q_diag, p_diag, p_factor = q._unbroadcasted_cov_diag, p._unbroadcasted_cov_diag, p._unbroadcasted_cov_factor
    low = ember.linalg.solve_triangular(q._capacitance_tril, q._unbroadcasted_cov_factor.mT / q_diag.unsqueeze(-2), upper=False)
    trace = ((p_diag / q_diag).sum(-1) + _trace_of_square(p_factor * q_diag.rsqrt().unsqueeze(-1))
             - _trace_of_square(low * p_diag.sqrt().unsqueeze(-2)) - _trace_of_square(low.matmul(p_factor)))
    return 0.5 * (q._log_det() - p._log_det() + trace + q._mahalanobis(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_full(p, q):
    _check_events(p, q, "two (Low Rank) Multivariate Normals")
    n = p.event_shape[0]
    q_factor = q._unbroadcasted_scale_tril
    batch = ember.broadcast_shapes(q_factor.shape[:-2], p._unbroadcasted_cov_factor.shape[:-2])
    wide = q_factor.expand(batch + (n, n))
    low = ember.linalg.solve_triangular(wide, p._unbroadcasted_cov_factor.expand(batch + (n, -1)), upper=False)
    own = ember.linalg.solve_triangular(wide, ember.diag_embed(p._unbroadcasted_cov_diag.sqrt()).expand(batch + (n, n)),
                                        upper=False)
    squares = mahalanobis(q_factor, q.loc - p.loc)
    return q._half_log_det() - 0.5 * p._log_det() + 0.5 * (_trace_of_square(low) + _trace_of_square(own) + squares - n)
