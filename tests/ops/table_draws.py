"""Draws from distributions whose parameters are tensors: what must hold of each. tests/py/test_distribution_kinds.py has the numbers."""
import numpy as np
from makers import calls
from subject import Arg


def counts(most):
    def check(results, args, kwargs):
        values = results[0].astype(np.float64)
        assert np.all((values >= 0) & (values <= most(args)) & (values == np.floor(values))), values
    return check


def positive(results, args, kwargs):
    assert np.all(results[0] > 0), results[0]


def shares(results, args, kwargs):
    positive(results, args, kwargs)
    assert np.allclose(results[0].sum(-1), 1, rtol=1e-5), results[0]


def groups(E):
    alike = lambda x, *_: x  # noqa: E731
    plain = lambda m, low, high: Arg(m(3, 4, low=low, high=high).values, diff=False)  # noqa: E731
    return {"draws": [
        E("poisson", calls(lambda m: (plain(m, 0.5, 30),)), alike, random=counts(lambda args: 1000)),
        E("binomial", calls(lambda m: (Arg(np.full((3, 4), 40.0), diff=False), plain(m, 0.1, 0.9))), alike,
          random=counts(lambda args: 40), kinds="float"),
        E("_standard_gamma", calls(lambda m: (plain(m, 0.2, 20),)), alike, random=positive),
        E("_sample_dirichlet", calls(lambda m: (plain(m, 0.5, 9),)), alike, random=shares),
    ]}
