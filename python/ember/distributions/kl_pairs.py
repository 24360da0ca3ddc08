"""Divergences between distributions of different kinds."""

import math

import ember
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

__all__ = []

LOG_2_PI = math.log(2 * math.pi)


def _infinite(*kinds):
    """q gives no weight to some values of p."""
    def formula(p, q):
        like = p.mean if not isinstance(p, Poisson) else p.rate
        return ember.full_like(like, math.inf)
    for p, q in kinds:
        register_kl(p, q)(formula)


_infinite(*[(p, q) for p, qs in {
    Beta: [Pareto], ContinuousBernoulli: [Pareto], Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform], Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial]}.items() for q in qs])


def _unless(outside, kl):
    return ember.where(outside, math.inf, kl)


def _x_log_x(x):
    return ember.xlogy(x, x)


def _gamma_normalizer(q):
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Exponential)
def _beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _gamma_normalizer(q) - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _beta_normal(p, q):
    variance, mean = q.scale.pow(2), p.mean
    square = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    return -p.entropy() + 0.5 * (variance.log() + LOG_2_PI) + (square * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    kl = -p.entropy() + (q.high - q.low).log()
    return _unless((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), kl)


def _under_continuous_bernoulli(p, q):
    """For p within 0 and 1."""
    return -p.entropy() - p.mean * q.logits - ember.log1p(-q.probs) - q._cont_bern_log_norm()


register_kl(Beta, ContinuousBernoulli)(_under_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    outside = (p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound)
    return _unless(outside, _under_continuous_bernoulli(p, q))


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoullis(p, q):
    return (p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() + ember.log1p(-p.probs) - q._cont_bern_log_norm()
            - ember.log1p(-q.probs))


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p, q):
    return -p.entropy() - ember.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p, q):
    start = -p.entropy() + 0.5 * (LOG_2_PI + ember.square(q.loc / q.scale)) + ember.log(q.scale)
    return start + (p.variance + ember.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * ember.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p, q):
    outside = (q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound)
    return _unless(outside, -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return (-q.concentration * ember.log(ratio) + ratio + q.concentration.lgamma() + q.concentration * euler_constant
            - (1 + euler_constant))


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    product, place = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - place + ember.exp(place) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p, q):
    variance, square = q.scale.pow(2), p.rate.pow(2)
    gap = square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * ember.log(square * variance * 2 * math.pi) - 1 + gap / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    product, place = p.rate * q.scale, q.loc / q.scale
    return ((p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration + product.log()
            + p.concentration / product + ember.exp(place) * (1 + product.reciprocal()).pow(-p.concentration) - place)


@register_kl(Gamma, Normal)
def _gamma_normal(p, q):
    variance, square = q.scale.pow(2), p.rate.pow(2)
    start = 0.5 * ember.log(square * variance * 2 * math.pi) - p.concentration - p.concentration.lgamma()
    gap = 0.5 * (p.concentration.pow(2) + p.concentration) / square - q.loc * p.concentration / p.rate + 0.5 * q.loc.pow(2)
    return start + (p.concentration - 1) * p.concentration.digamma() + gap / variance


@register_kl(Gumbel, Normal)
def _gumbel_normal(p, q):
    ratio = p.scale / q.scale
    gap = (p.loc + p.scale * euler_constant - q.loc) / q.scale
    return (-(ratio / math.sqrt(2 * math.pi)).log() + (math.pi * ratio * 0.5).pow(2) / 3 + gap.pow(2) * 0.5
            - (euler_constant + 1))


@register_kl(Laplace, Normal)
def _laplace_normal(p, q):
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    return -0.5 * ember.log(2 * ratio / math.pi) + ratio + 0.5 * (p.loc - q.loc).pow(2) / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    mean, place, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    return -ratio.log() * 0.5 + mean - place + ember.exp(-mean + 0.5 * ratio + place) - 0.5 * (1 + LOG_2_PI)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    gap = p.loc - q.loc
    steps = gap / p.scale
    size = math.sqrt(2 / math.pi) * p.scale * ember.exp(-0.5 * steps.pow(2)) + gap * ember.erf(math.sqrt(0.5) * steps)
    return -ember.log(p.scale / q.scale) + size / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    product = p.scale * q.rate
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _unless(p.alpha <= 1, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    kl = (p.alpha.log() - mean_log + _gamma_normalizer(q) + (1 - q.concentration) * mean_log
          + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1)
    return _unless(p.alpha <= 1, kl)


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    step = p.scale / (p.alpha - 1)
    start = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    kl = start + (p.alpha * step.pow(2) / (p.alpha - 2) + (p.alpha * step - q.loc).pow(2)) / (2 * q.scale.pow(2)) - 1
    return _unless(p.alpha <= 2, kl)


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    width = p.high - p.low
    ones = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    zeros = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    kl = zeros + normalizer - width.log() - ones
    return _unless((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), kl)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return _unless(p.low < 0, q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log())


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    width = p.high - p.low
    logs = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return _unless(p.low < 0, -width.log() + _gamma_normalizer(q) + logs + q.rate * (p.high + p.low) / 2)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    step, high, low = q.scale / (p.high - p.low), (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return step.log() + 0.5 * (high + low) - step * (ember.exp(-high) - ember.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    width = p.high - p.low
    squares = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(2 * math.pi) * q.scale / width).log() + 0.5 * squares / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    width = p.high - p.low
    start = (q.alpha * q.scale.pow(q.alpha) * width).log()
    kl = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width * (q.alpha + 1) - start
    return _unless(p.low < q.scale, kl)
