"""Linear algebra, Fourier transforms and statistics without a network."""
from __future__ import annotations

import math
from typing import Callable, Union

import ember as torch
from ember import Tensor

Number = Union[int, float]


def least_squares(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The solution by QR and its residual."""
    q, r = torch.linalg.qr(a)
    x = torch.linalg.solve_triangular(r, (q.mT @ b).unsqueeze(-1), upper=True).squeeze(-1)
    return x, torch.linalg.vector_norm(a @ x - b)


def principal(data: Tensor, k: int) -> tuple[Tensor, Tensor]:
    centred = data - data.mean(dim=0, keepdim=True)
    _, s, vh = torch.linalg.svd(centred, full_matrices=False)
    share = s.square() / s.square().sum()
    return centred @ vh[:k].mH, share[:k]


def spectrum(signal: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    window = 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(len(signal)) / len(signal))
    power = torch.fft.rfft(signal * window, norm="ortho").abs() ** 2
    return torch.fft.rfftfreq(signal.size(-1), d=1 / rate), power


def newton(f: Callable[[Tensor], Tensor], x: Tensor, steps: int = 12) -> Tensor:
    for _ in range(steps):
        x = x.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(f(x).sum(), x)
        x = x - f(x) / slope
    return x.detach()


def quantiles(x: Tensor, probabilities: list[float]) -> dict[float, float]:
    values = torch.quantile(x, torch.tensor(probabilities))
    return {p: v.item() for p, v in zip(probabilities, values)}


def summary(x: Tensor) -> dict[str, Number]:
    low, high = torch.aminmax(x)
    variance, mean = torch.var_mean(x, dim=0, correction=0)
    middle = x.median()
    counts, edges = torch.histogram(x, bins=8)
    largest = x.topk(3)
    order = x.sort(descending=True)
    assert torch.equal(order.values[:3], largest.values) and torch.equal(order.indices[:3], largest.indices)
    return {"n": x.numel(), "min": low.item(), "max": high.item(), "mean": mean.item(), "std": variance.sqrt().item(),
            "median": middle.item(), "mode_count": int(counts.max()), "edge": edges[0].item()}


def pieces() -> None:
    a = torch.eye(3, dtype=torch.float64) * 2 + torch.ones(3, 3, dtype=torch.float64).tril(-1)
    sign, logabs = torch.linalg.slogdet(a)
    assert math.isclose(float(sign * logabs.exp()), torch.linalg.det(a).item(), rel_tol=1e-12)
    symmetric = a @ a.T
    eigenvalues, vectors = torch.linalg.eigh(symmetric)
    assert torch.allclose(vectors @ torch.diag(eigenvalues) @ vectors.T, symmetric)
    factor = torch.linalg.cholesky(symmetric)
    assert torch.allclose(factor @ factor.transpose(-1, -2), symmetric)
    assert torch.allclose(torch.linalg.solve(a, a), torch.eye(3, dtype=a.dtype))
    joined = torch.cat([a, torch.stack([a[0], a[1]])], dim=0)
    first, *rest = joined.split([2, 2, 1])
    assert first.shape == (2, 3) and len(rest) == 2
    ragged = torch.where(joined > 1, joined, joined.new_tensor(float("nan")))
    assert torch.isnan(ragged).any().item() and ragged.nansum().item() == joined[joined > 1].sum().item()
    values, inverse, counts = torch.unique(torch.tensor([3, 1, 3, 2]), return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3] and inverse[0] == 2 and counts[-1] == 2
    grid_x, grid_y = torch.meshgrid(torch.linspace(0, 1, 3), torch.linspace(0, 1, 2), indexing="ij")
    assert (grid_x + grid_y).shape == (3, 2)
    z = torch.complex(torch.ones(2), torch.tensor([0.0, 1.0]))
    assert z.real.dtype is torch.float64 and torch.view_as_real(z).shape == (2, 2) and z.angle()[0] == 0
    weights = torch.einsum("bi,ij,bj->b", joined, symmetric, joined)
    assert weights.shape == torch.Size([5]) and bool((weights > 0).all())
    assert torch.special.erf(torch.tensor(0.0)).item() == 0.0
    assert torch.cumsum(torch.arange(4), dim=0).tolist() == [0, 1, 3, 6]
    assert torch.bitwise_and(torch.tensor(6), 3).item() == 2
    moved = joined.to(dtype=torch.float32, device="cpu").contiguous()
    assert moved.element_size() == 4 and moved.stride(0) == 3 and moved.is_contiguous()
    numpy_view = moved.numpy()
    assert numpy_view.shape == (5, 3) and torch.from_numpy(numpy_view).data_ptr() == moved.data_ptr()


def main() -> float:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    a, truth = torch.randn(50, 3), torch.tensor([1.0, -2.0, 0.5])
    x, residual = least_squares(a, a @ truth + 0.01 * torch.randn(50))
    assert torch.allclose(x, truth, atol=0.02) and residual.item() < 0.2
    scores, share = principal(torch.randn(40, 2) @ torch.tensor([[3.0, 0.0], [0.0, 0.1]]), 1)
    assert scores.shape == (40, 1) and share.item() > 0.9
    time = torch.arange(256) / 128
    frequencies, power = spectrum(torch.sin(2 * math.pi * 16 * time), rate=128.0)
    peak = frequencies[power.argmax()].item()
    assert abs(newton(lambda t: t ** 3 - 2, torch.tensor(1.0)).item() - 2 ** (1 / 3)) < 1e-12
    assert summary(torch.randn(200))["n"] == 200 and quantiles(torch.arange(5.0), [0.25, 0.5])[0.5] == 2.0
    pieces()
    torch.set_default_dtype(torch.float32)
    return peak


if __name__ == "__main__":
    print(f"peak {main():.1f}")
