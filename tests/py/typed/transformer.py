"""A small transformer over sequences of unequal length: a Module of one's own, a Dataset and a collate function."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

import ember as torch
import ember.nn as nn
import ember.nn.functional as F
from ember import Tensor
from ember.nn.utils.rnn import pad_sequence
from ember.utils.data import DataLoader, Dataset, Sampler

PAD, VOCABULARY = 0, 12


class Batch(NamedTuple):
    tokens: Tensor
    lengths: Tensor
    targets: Tensor


class Sums(Dataset[tuple[Tensor, int]]):
    """Sequences of digits; the target is the remainder of their sum."""

    def __init__(self, n: int, seed: int = 0) -> None:
        g = torch.Generator()
        g.manual_seed(seed)
        lengths = torch.randint(3, 9, (n,), generator=g)
        self.items = [torch.randint(1, VOCABULARY, (int(length),), generator=g) for length in lengths]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        item = self.items[index]
        return item, int(item.max()) % 4


class ByLength(Sampler[int]):
    def __init__(self, data: Sums) -> None:
        self.order: list[int] = torch.tensor([len(item) for item in data.items]).argsort().tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


def collate(samples: Sequence[tuple[Tensor, int]]) -> Batch:
    tokens = pad_sequence([t for t, _ in samples], batch_first=True, padding_value=PAD)
    lengths = torch.tensor([t.size(0) for t, _ in samples], dtype=torch.int64)
    return Batch(tokens, lengths, torch.tensor([y for _, y in samples]))


class Positions(nn.Module):
    table: Tensor

    def __init__(self, width: int, longest: int = 64) -> None:
        super().__init__()
        position = torch.arange(longest, dtype=torch.float32).unsqueeze(1)
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rates), torch.cos(position * rates)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[:x.size(1)]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        b, t, w = x.shape
        q, k, v = self.project(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q * self.scale, k, v, attn_mask=mask)
        result: Tensor = self.out(y.transpose(1, 2).reshape(b, t, w))
        return result


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attend, self.norms = Attention(width, heads), nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, mask: Optional[Tensor]) -> Tensor:
        seen: Tensor = x + self.attend(self.norms[0](x), mask)
        result: Tensor = seen + self.feed(self.norms[1](seen))
        return result


class Classifier(nn.Module):
    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        self.positions = Positions(width)
        self.layers = nn.ModuleList(Layer(width, 2) for _ in range(depth))
        self.head = nn.Linear(width, 4)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        there = torch.arange(tokens.size(1))[None, :] < lengths[:, None]
        x = self.positions(self.embed(tokens))
        for layer in self.layers:
            x = layer(x, there[:, None, None, :])
        pooled = (x * there.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(1)
        scores: Tensor = self.head(pooled)
        return scores


def main() -> list[float]:
    torch.manual_seed(0)
    data = Sums(96)
    loader = DataLoader(data, batch_size=16, sampler=ByLength(data), collate_fn=collate)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    means: list[float] = []
    for _ in range(6):
        losses: list[Tensor] = []
        for batch in loader:
            loss = F.cross_entropy(model(batch.tokens, batch.lengths), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        warm.step()
        means.append(torch.stack(losses).mean().item())
    return means


if __name__ == "__main__":
    curve = main()
    assert curve[-1] < curve[0], curve
    print(f"loss {curve[0]:.3f} -> {curve[-1]:.3f}")
