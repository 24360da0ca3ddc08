"""Reductions and softmax over inner dims of every length around the sizes where the loops change their way."""

import numpy as np
import pytest
from subject import torch

LENGTHS = (1, 2, 3, 7, 15, 16, 17, 49, 64, 65, 127, 128, 129, 196, 256, 1000, 2048, 2049)
COUNTS = (1, 3, 15, 17, 63, 65, 200)


def near(got, want, tolerance):
    got = np.asarray(got.tolist(), dtype=np.float64)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("n", LENGTHS)
def test_inner_reductions(n):
    for m in COUNTS:
        a = np.random.default_rng(n + m).standard_normal((m, n))
        t = torch.tensor(a)
        near(t.sum(1), a.sum(1), 1e-12)
        near(t.float().sum(1), a.sum(1), 1e-5)
        near(t.bfloat16().sum(1, dtype=torch.float32), np.asarray(t.bfloat16().double().tolist()).sum(1), 1e-5)
        near(torch.tensor(np.concatenate([a, a], 1))[:, ::2].sum(1), np.concatenate([a, a], 1)[:, ::2].sum(1), 1e-12)
        near(torch.view_as_real(torch.complex(t, -t).sum(1)), np.stack([a.sum(1), -a.sum(1)], -1), 1e-12)
        near((t * 100).to(torch.int32).sum(1), np.trunc(a * 100).sum(1), 0)
        near(t.argmax(1), a.argmax(1), 0)
        near(t.float().argmin(1), a.argmin(1), 0)
        near(t.amax(1), a.max(1), 0)
        assert (t > -2).all(1).tolist() == (a > -2).all(1).tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_of_rows(n):
    for m in (1, 17):
        a = np.random.default_rng(n + m).standard_normal((m, n))
        p = np.exp(a - a.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        w = np.cos(np.arange(m * n)).reshape(m, n)
        for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
            x = torch.tensor(a, dtype=dtype, requires_grad=True)
            y = torch.softmax(x, 1)
            near(y.detach(), p, tolerance)
            (y * torch.tensor(w, dtype=dtype)).sum().backward()
            near(x.grad, p * (w - (p * w).sum(1, keepdims=True)), tolerance)
            x.grad = None
            y = torch.log_softmax(x, 1)
            near(y.detach(), np.log(p), tolerance)
            (y * torch.tensor(w, dtype=dtype)).sum().backward()
            near(x.grad, w - p * w.sum(1, keepdims=True), tolerance)


@pytest.mark.parametrize("shape", [(16, 16), (17, 33), (18, 65), (100, 70)])
def test_turned_copies(shape):
    a = np.arange(shape[0] * shape[1]).reshape(shape)
    for dtype in (torch.float32, torch.float64, torch.int16, torch.int32, torch.complex64, torch.complex128):
        t = torch.tensor(a).to(dtype)
        assert t.t().contiguous().tolist() == t.t().tolist()
        assert (t.t() + torch.zeros(shape[::-1], dtype=dtype)).tolist() == t.t().tolist()


def test_rows_that_have_no_softmax():
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[-inf] * 3, [1.0, nan, 2.0], [inf, 0.0, 1.0]])
    assert torch.softmax(x, 1).isnan().all() and torch.log_softmax(x, 1).isnan().all()
    assert torch.log_softmax(torch.tensor([-inf, 0.0, -inf]), 0).tolist() == [-inf, 0.0, -inf]
