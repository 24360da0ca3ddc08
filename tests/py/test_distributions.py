"""torch.distributions: densities, moments, divergences, draws (PyTorch's, for a seed), shapes, messages."""
import math

import pytest

import ember
import ember.distributions as D
from ember.distributions.categorical import Categorical

LOC, SCALE = ember.tensor([0.5, -1.0, 2.0]), ember.tensor([1.0, 0.5, 2.0])
P = ember.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
ONES = ember.tensor([0.2, 0.7, 1.0])


def close(got, want, tolerance=1e-4):
    want = ember.tensor(want)
    assert got.shape == want.shape, (got, want)
    same = (got - want).abs() <= tolerance * (1 + want.abs())
    assert (same | (got == want) | (ember.isnan(got) & ember.isnan(want))).all(), (got, want)


# log_prob at value, entropy, mean, variance
CASES = [
    (lambda: D.Normal(LOC, SCALE), ember.tensor([1.0, 0.0, -1.0]), [-1.0439, -2.2258, -2.7371], [1.4189, 0.7258, 2.1121],
     [0.5, -1.0, 2.0], [1.0, 0.25, 4.0]),
    (lambda: D.LogNormal(LOC, SCALE), ember.tensor([1.0, 0.5, 2.0]), [-1.0439, 0.2790, -2.5189], [1.9189, -0.2742, 4.1121],
     [2.7183, 0.4169, 54.5982], [12.6965, 0.0494, 159773.83]),
    (lambda: D.Uniform(LOC, LOC + SCALE), ember.tensor([0.75, -0.9, 5.0 - 1.5]), [0.0, 0.6931, -0.6931], [0.0, -0.6931, 0.6931],
     [1.0, -0.75, 3.0], [0.0833, 0.0208, 0.3333]),
    (lambda: D.Exponential(SCALE), ember.tensor([1.0, 0.5, 2.0]), [-1.0, -0.9431, -3.3069], [1.0, 1.6931, 0.3069],
     [1.0, 2.0, 0.5], [1.0, 4.0, 0.25]),
    (lambda: D.Laplace(LOC, SCALE), ember.tensor([1.0, 0.0, -1.0]), [-1.1931, -2.0, -2.8863], [1.6931, 1.0, 2.3863],
     [0.5, -1.0, 2.0], [2.0, 0.5, 8.0]),
    (lambda: D.Bernoulli(ONES), ember.tensor([1.0, 0.0, 1.0]), [-1.6094, -1.2040, 0.0], [0.5004, 0.6109, 0.0], [0.2, 0.7, 1.0],
     [0.16, 0.21, 0.0]),
    (lambda: D.Categorical(P), ember.tensor([2, 0]), [-0.6931, -2.3026], [1.0297, 0.6390], [math.nan, math.nan], [math.nan, math.nan]),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_density_and_moments(number):
    make, value, logp, entropy, mean, variance = CASES[number]
    d = make()
    close(d.log_prob(value), logp)
    close(d.entropy(), entropy)
    close(d.mean, mean)
    close(d.variance, variance)
    wide = d.expand((4,) + tuple(d.batch_shape))
    assert wide.batch_shape == (4, *d.batch_shape) and wide.sample().shape == wide.batch_shape
    close(wide.log_prob(value)[2], logp)


def test_draws_are_pytorchs():
    ember.manual_seed(0)
    close(D.Normal(0.0, 1.0).sample((4,)), [1.5410, -0.2934, -2.1788, 0.5684])
    ember.manual_seed(0)
    close(D.Uniform(LOC, LOC + SCALE).sample((2,)), [[0.9963, -0.6159, 2.1770], [0.6320, -0.8463, 3.2682]])


def test_frequencies_of_categorical():
    ember.manual_seed(0)
    x = Categorical(P).sample((4000,))
    assert x.shape == (4000, 2) and x.dtype == ember.int64
    for k in range(3):
        close((x == k).float().mean(0), P[:, k].tolist(), 0.03)


def test_rsample_has_a_gradient_and_sample_has_none():
    loc, scale = LOC.clone().requires_grad_(), SCALE.clone().requires_grad_()
    x = D.Normal(loc, scale).rsample((5,))
    g = ember.autograd.grad(x.sum(), [loc, scale])
    close(g[0], [5.0] * 3)
    close(g[1], ((x - loc) / scale).sum(0).tolist())
    assert not D.Normal(loc, scale).sample().requires_grad
    logits = P.log().requires_grad_()
    assert Categorical(logits=logits).log_prob(ember.tensor([0, 2])).requires_grad


@pytest.mark.parametrize("p, q, want", [
    (lambda: D.Normal(LOC, SCALE), lambda: D.Normal(SCALE, SCALE * 2), [0.3494, 1.4431, 0.3181]),
    (lambda: D.Uniform(LOC, LOC + SCALE), lambda: D.Uniform(LOC + 0.1, LOC + SCALE + 1), [math.inf] * 3),
    (lambda: D.Exponential(SCALE), lambda: D.Exponential(SCALE * 2), [0.3069] * 3),
    (lambda: D.Laplace(LOC, SCALE), lambda: D.Laplace(SCALE, SCALE), [0.1065, 2.0498, 0.0]),
    (lambda: D.Bernoulli(ONES), lambda: D.Bernoulli(ember.tensor([0.3, 0.7, 0.0])), [0.0257, 0.0, math.inf]),
    (lambda: D.Categorical(P), lambda: D.Categorical(P.flip(0)), [0.2332, 0.1968]),
])
def test_divergence(p, q, want):
    close(D.kl_divergence(p(), q()), want, 1e-3)


def test_divergence_of_events_and_of_strangers():
    a, b = D.Independent(D.Normal(LOC, SCALE), 1), D.Independent(D.Normal(SCALE, SCALE * 2), 1)
    close(D.kl_divergence(a, b), 2.1107, 1e-3)
    close(a.log_prob(LOC), (D.Normal(LOC, SCALE).log_prob(LOC)).sum().item())
    with pytest.raises(NotImplementedError):
        D.kl_divergence(D.Normal(LOC, SCALE), D.Bernoulli(ONES))

    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, Mine)
    def _mine(p, q):
        return "mine"
    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)) == "mine"
    assert isinstance(D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)), ember.Tensor)


def test_one_hot_and_supports():
    d = D.OneHotCategorical(P)
    x = d.sample((3,))
    assert x.shape == (3, 2, 3) and (x.sum(-1) == 1).all()
    close(d.log_prob(ember.eye(3)[:2]), [-1.6094, -2.3026])
    assert D.Bernoulli(ONES).enumerate_support().tolist() == [[0.0] * 3, [1.0] * 3]
    assert D.Categorical(P).enumerate_support(expand=False).tolist() == [[0], [1], [2]]
    assert repr(D.Uniform(0.0, 1.0).support) == "Interval(lower_bound=0.0, upper_bound=1.0)"


def test_quantiles_undo_distribution_functions():
    u = ember.tensor([0.1, 0.5, 0.9])
    for d in (D.Uniform(LOC, LOC + SCALE), D.Exponential(SCALE), D.Laplace(LOC, SCALE)):
        close(d.cdf(d.icdf(u)), u.tolist())
    close(D.Normal(0.0, 1.0).cdf(ember.tensor([0.0, 1.0])), [0.5, 0.8413])


@pytest.mark.parametrize("call, words", [
    (lambda: D.Normal(LOC, -SCALE), "Expected parameter scale (Tensor of shape (3,)) of distribution Normal(loc: "),
    (lambda: D.Normal(ember.tensor(math.nan), 1.0), "Expected parameter loc"),
    (lambda: D.Normal(LOC, SCALE).log_prob(ember.ones(2)), "Value is not broadcastable with batch_shape+event_shape: "),
    (lambda: D.Normal(0.0, 1.0).log_prob(1.0), "The value argument to log_prob must be a Tensor"),
    (lambda: D.Uniform(LOC, LOC - 1), "Expected parameter low"),
    (lambda: D.Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
    (lambda: D.Bernoulli(ember.tensor(1.5)), "Expected parameter probs"),
    (lambda: D.Categorical(ember.tensor(0.5)), "`probs` parameter must be at least one-dimensional."),
    (lambda: D.Categorical(P).log_prob(ember.tensor([3, 0])), "Expected value argument (Tensor of shape (2,)) to be within"),
    (lambda: D.Exponential(SCALE).log_prob(ember.tensor(-1.0)), "Expected value argument"),
    (lambda: D.Independent(D.Normal(LOC, SCALE), 2), "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape)"),
])
def test_bad_input(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value).startswith(words)
