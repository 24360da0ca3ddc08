"""A character-level GPT: learns to write like any text file (--text FILE).

Run it with `python -m ember examples/python/char_gpt.py`, or with plain `python` on PyTorch. Without --text it learns the names of
Unicode's characters, which every Python carries.
"""
# tests run this with: --steps 30
import argparse
import json
import unicodedata

import torch
import torch.nn.functional as F
from progress import Progress
from torch import nn


class Block(nn.Module):
    """Causal self-attention and a small network, each added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):  # [batch, time, width]
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Embeddings of symbol and place, blocks, and the chances of the next symbol (the head shares the embedding)."""

    def __init__(self, symbols, context, width=96, heads=4, layers=3):
        super().__init__()
        self.context = context
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        self.head.weight = self.symbol.weight
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, text):  # [batch, time] -> logits [batch, time, symbols]
        x = self.symbol(text) + self.place(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, text, length):
        """Continue text [batch, time] by `length` sampled symbols."""
        self.eval()
        for _ in range(length):
            chances = F.softmax(self(text[:, -self.context:])[:, -1], dim=-1)
            text = torch.cat([text, torch.multinomial(chances, 1)], dim=1)
        self.train()
        return text


def unicode_names():
    """About 300 kB: the names of the letters of the first planes, one a line."""
    named = (unicodedata.name(chr(code), "") for code in range(0x3000))
    return "\n".join(name.lower() for name in named if name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="a text file to learn from")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--write", type=int, default=300, help="symbols to write at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every step's loss to this file, as JSON")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    if options.text:
        with open(options.text, encoding="utf-8", errors="replace") as file:
            text = file.read()
    else:
        text = unicode_names()
    symbols = sorted(set(text))
    if len(text) < options.context + 2:
        parser.error(f"the text has {len(text)} characters; it needs more than the context of {options.context}")
    number = {symbol: i for i, symbol in enumerate(symbols)}
    data = torch.tensor([number[symbol] for symbol in text])

    model = GPT(len(symbols), options.context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    losses, progress = [], Progress(options.steps)
    for step in range(1, options.steps + 1):
        starts = torch.randint(len(data) - options.context, (options.batch,))
        batch = torch.stack([data[i:i + options.context + 1] for i in starts.tolist()])
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update(step, f"loss {losses[-1]:.4f}")
    progress.close()
    print("".join(symbols[i] for i in model.write(data[:8][None], options.write)[0].tolist()))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {options.steps} steps on {torch.__name__} {torch.__version__}")
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            json.dump(losses, file)


if __name__ == "__main__":
    main()
