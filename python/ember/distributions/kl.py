"""Kullback-Leibler divergences: a formula a pair of classes."""

import math

import ember
from .bernoulli import Bernoulli
from .categorical import Categorical
from .distribution import Distribution
from .exponential import Exponential
from .independent import Independent
from .laplace import Laplace
from .log_normal import LogNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .uniform import Uniform

__all__ = ["register_kl", "kl_divergence"]

_FORMULAS = {}


def register_kl(type_p, type_q):
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


def kl_divergence(p, q):
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


@register_kl(LogNormal, LogNormal)
def _log_normals(p, q):
    return _normals(p._normal, q._normal)


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
