"""Kernels that take lines in groups or points in blocks: every count around the group's size gives what one at a time gives."""

import numpy as np
import pytest
from subject import torch

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 15, 16, 20, 24, 30, 32, 34, 48, 64, 74, 97, 100, 127, 128, 131, 254, 262, 400, 512)
COUNTS = (1, 7, 8, 9, 17)
fft = torch.fft


def numbers(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def near(got, want, tolerance):
    got, want = np.asarray(got.tolist()), np.asarray(want)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * (1 + np.abs(want).max())


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-13), ("float32", 4e-6)])
def test_transforms_of_lines(n, dtype, tolerance):
    for m in COUNTS:
        a, b = numbers(m, n), numbers(m, n, seed=1)
        x = torch.tensor(a, dtype=getattr(torch, dtype))
        z = torch.complex(x, torch.tensor(b, dtype=getattr(torch, dtype)))
        zz = a + 1j * b
        h = zz[:, : n // 2 + 1]
        near(fft.fft(z), np.fft.fft(zz), tolerance)
        near(fft.ifft(z), np.fft.ifft(zz), tolerance)
        near(fft.rfft(x), np.fft.rfft(a), tolerance)
        near(fft.irfft(z[:, : n // 2 + 1], n), np.fft.irfft(h, n), tolerance)
        # lines that lie side by side
        near(fft.fft(z.t().contiguous(), dim=0), np.fft.fft(zz.T, axis=0), tolerance)
        near(fft.rfft(x.t().contiguous(), dim=0), np.fft.rfft(a.T, axis=0), tolerance)
        near(fft.irfft(z.t()[: n // 2 + 1].contiguous(), n, dim=0), np.fft.irfft(h.T, n, axis=0), tolerance)


def test_transforms_of_odd_places():
    """Lines that begin at odd elements, are spaced oddly or not evenly."""
    a = numbers(9, 2, 21)
    x = torch.tensor(a, dtype=torch.float32)
    near(fft.rfft(x[:, :, 1:17]), np.fft.rfft(a[:, :, 1:17]), 4e-6)
    near(fft.rfft(x[:, 0, 2:18]), np.fft.rfft(a[:, 0, 2:18]), 4e-6)
    near(fft.rfft(x[:, :, 1:17:2]), np.fft.rfft(a[:, :, 1:17:2]), 4e-6)
    near(fft.irfft(fft.rfft(x[:, :, 3:19])), a[:, :, 3:19], 4e-6)
    near(fft.rfft2(x), np.fft.rfft2(a), 4e-6)
    near(fft.rfft(x, dim=1), np.fft.rfft(a, axis=1), 4e-6)


@pytest.mark.parametrize("n", (16, 21, 127, 131))
def test_a_line_with_nan_keeps_it(n):
    x = torch.tensor(numbers(11, n), dtype=torch.float32)
    clean = fft.rfft(x)
    x[4, n // 2] = float("nan")
    dirty = fft.rfft(x)
    assert torch.isnan(dirty[4]).all() and not torch.isnan(torch.cat([dirty[:4], dirty[5:]])).any()
    assert torch.equal(torch.view_as_real(dirty)[:4], torch.view_as_real(clean)[:4])


@pytest.mark.parametrize("n", (1, 5, 16, 17, 40, 65, 200, 1030))
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_softmax_of_masked_rows(n, dtype):
    a = numbers(19, n)
    a[np.random.default_rng(n).random((19, n)) < 0.4] = -np.inf
    a[:, 0] = 0.5
    t = torch.tensor(a, dtype=getattr(torch, dtype))
    p = np.exp(a - a.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    got = torch.softmax(t, 1)
    near(got, p, 1e-6)
    assert ((got == 0) == (t == float("-inf"))).all(), "what is masked is 0 exactly, what is not is not"
    with np.errstate(divide="ignore"):
        log = np.asarray(torch.log_softmax(t, 1).tolist())
        assert np.array_equal(np.isinf(log), np.isinf(a))
        finite = np.isfinite(a)
        np.testing.assert_allclose(log[finite], np.log(p)[finite], rtol=1e-5, atol=1e-5)
    t[3] = float("-inf")
    t[7, n - 1] = float("nan")
    t[9, n // 2] = float("inf")
    bad = torch.isnan(torch.softmax(t, 1)).any(1).tolist()
    assert [i for i, b in enumerate(bad) if b] == [3, 7, 9] and torch.isnan(torch.softmax(t, 1)[3]).all()


def test_exp_of_very_small_and_large():
    a = np.array([-np.inf, -1e30, -200.0, -104.5, -103.5, -95.0, -87.5, -1.0, 0.0, 88.7, 89.5, 1e30, np.inf, np.nan])
    with np.errstate(over="ignore", under="ignore"):
        want = np.exp(a).astype(np.float32)
    got = np.asarray(torch.exp(torch.tensor(a, dtype=torch.float32)).tolist(), dtype=np.float32)
    assert np.array_equal(got == 0, want == 0) and np.array_equal(np.isinf(got), np.isinf(want)) and np.isnan(got[-1])
    small = (want > 0) & (want < 1e-30)
    assert small.sum() == 3 and np.all(np.abs(got[small] - want[small]) <= 1.5e-45 + 2e-7 * want[small])


@pytest.mark.parametrize("count", (1, 31, 32, 33, 70))
@pytest.mark.parametrize("mode", ("bilinear", "nearest", "bicubic"))
@pytest.mark.parametrize("padding", ("zeros", "border", "reflection"))
def test_points_of_a_grid(count, mode, padding):
    """A block of points, some of them outside, reads what each reads alone."""
    sample = torch.nn.functional.grid_sample
    for height, width in ((6, 7), (1, 5), (4, 1)):
        x = torch.tensor(numbers(2, 3, height, width), dtype=torch.float64, requires_grad=True)
        g = torch.tensor(np.random.default_rng(count).uniform(-1.4, 1.4, (2, 1, count, 2)), requires_grad=True)
        how = {"mode": mode, "padding_mode": padding, "align_corners": False}
        whole = sample(x, g, **how)
        single = torch.cat([sample(x, g[:, :, i : i + 1], **how) for i in range(count)], 3)
        assert torch.equal(whole, single)
        w = torch.tensor(numbers(2, 3, 1, count, seed=3))
        at_once, one_by_one = (torch.autograd.grad((y * w).sum(), (x, g)) for y in (whole, single))
        for a, b in zip(at_once, one_by_one):
            near(a, b.tolist(), 1e-12)


def test_bilinear_points_by_hand():
    x = torch.arange(12.0).reshape(1, 1, 3, 4)
    # places (y, x) of pixel centres: inside a cell, on a pixel, half outside at the left, outside
    at = [(0.5, 1.25), (2.0, 3.0), (1.0, -0.5), (5.0, 1.0)]
    g = torch.tensor([[(2 * (u + 0.5) / 4 - 1, 2 * (v + 0.5) / 3 - 1) for v, u in at]]).reshape(1, 1, 4, 2)
    got = torch.nn.functional.grid_sample(x, g, align_corners=False).flatten().tolist()
    np.testing.assert_allclose(got, [3.25, 11.0, 2.0, 0.0], atol=1e-5)


SHAPES = [(), (1,), (5,), (3, 4), (2, 3, 9), (0, 3), (2, 600, 9)]


@pytest.mark.parametrize("shape, dim", [(s, d) for s in SHAPES for d in range(-1, len(s) + 1)])
def test_stacks(shape, dim):
    for count in (1, 2, 9):
        a = [numbers(*shape, seed=k) for k in range(count)]
        for dtype in (torch.float64, torch.float32, torch.bool):
            t = [torch.tensor(v).to(dtype) for v in a]
            want = np.stack([np.asarray(v.tolist()).reshape(shape) for v in t], dim)
            assert torch.stack(t, dim).tolist() == want.tolist()
        if len(shape) > 1:
            turned = [torch.tensor(v).transpose(0, 1) for v in a]
            assert torch.stack(turned, dim).tolist() == np.stack([v.swapaxes(0, 1) for v in a], dim).tolist()
            narrowed = [torch.tensor(v)[..., 1:] for v in a]
            assert torch.stack(narrowed, dim).tolist() == np.stack([v[..., 1:] for v in a], dim).tolist()
    mixed = torch.stack([torch.ones(shape), torch.ones(shape, dtype=torch.int64)], dim)
    assert mixed.dtype == torch.float32 and mixed.tolist() == np.ones(mixed.shape).tolist()
