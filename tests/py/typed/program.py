"""A program of the usual kind, read by mypy (test_stubs.py) and run as it is."""
from __future__ import annotations

import math

import ember as torch
import ember.nn.functional as F
from ember import nn, optim
from ember.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width: int, drop: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = F.gelu(self.first(self.norm(x)))
        out: torch.Tensor = x + self.drop(self.second(hidden))
        return out


class Net(nn.Module):
    def __init__(self, inputs: int, width: int, classes: int, depth: int) -> None:
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(x)
        return scores


def spirals(n: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    radius = torch.linspace(0.1, 1.0, n)
    points, labels = [], []
    for c in range(classes):
        angle = radius * 4.0 + 2 * math.pi * c / classes + torch.randn(n) * 0.05
        points.append(torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1))
        labels.append(torch.full((n,), c, dtype=torch.int64))
    return torch.cat(points), torch.cat(labels)


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    with torch.no_grad():
        scores: torch.Tensor = model(x)
        best = scores.max(dim=1)
        right = (best.indices == y).float().mean()
    model.train()
    return right.item()


def parts() -> None:
    a = torch.arange(12, dtype=torch.float32).view(3, 4)
    b = a.t().contiguous()
    c: torch.Tensor = a @ b + 1.5
    values, order = c.sort(dim=-1, descending=True)
    top = values.topk(2).values
    d = 2 ** a.clamp(min=0, max=3) - a[1:, ::2].sum()
    mask = (a > 3) & ~(a == 5)
    picked = torch.where(mask, a, torch.zeros_like(a)).masked_fill(mask, 0.0)
    shape: tuple[int, ...] = picked.shape
    rows, columns = a.shape
    n: int = a.numel() + rows * columns + len(shape) + a.dim()
    e = torch.einsum("ij,kj->ik", a, a).softmax(dim=0).log().exp_()
    f = a.reshape(2, -1).permute(1, 0).unsqueeze(0).expand(5, -1, -1).squeeze(0)
    g = a.to(torch.float64).cpu().numpy()
    h = torch.tensor([[1, 2], [3, 4]], device="cpu", requires_grad=False)
    first, second = torch.split(a, [1, 2]), a.chunk(2, dim=1)
    assert n > 0 and order.dtype == torch.int64 and g.shape == (3, 4) and h.shape == (2, 2)
    assert top.size(1) == 2 and d.ndim == 2 and e.mean().item() > 0 and f.shape[0] == 5
    assert len(first) + len(second) == 4 and math.isfinite(float(a.norm()))


def main() -> float:
    torch.manual_seed(0)
    x, y = spirals(40, 3)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Net(2, 16, 3, depth=2)
    optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for _ in range(10):
        for xs, ys in loader:
            optimizer.zero_grad()
            loss = criterion(model(xs), ys)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        schedule.step()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    model.load_state_dict(weights)
    parts()
    return accuracy(model, x, y)


if __name__ == "__main__":
    print(f"accuracy {main():.2f}")
