"""An LSTM learns to continue a wave: two sines of different length, with noise.

Run it with `python -m ember examples/python/lstm.py`, or with plain `python` on PyTorch.
"""
# tests run this with: --steps 20
import argparse
import json

import torch
from progress import Progress
from torch import nn


class Forecaster(nn.Module):
    """Reads a series [batch, time, 1] and says the next value at every time."""

    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series, state=None):
        seen, state = self.lstm(series, state)
        return self.out(seen), state

    @torch.no_grad()
    def go_on(self, series, length):
        """What the network expects for the next `length` values after series [1, time, 1]."""
        said, state = self(series)
        values = [said[:, -1:]]
        while len(values) < length:
            said, state = self(values[-1], state)
            values.append(said)
        return torch.cat(values, dim=1)


def waves(count, length):
    """Series of two sines with random phases and a little noise: [count, length, 1]."""
    time = torch.arange(length, dtype=torch.float32)
    phase = torch.rand(count, 2, 1) * 2 * torch.pi
    clean = torch.sin(time * 0.25 + phase[:, 0]) + 0.5 * torch.sin(time * 0.6 + phase[:, 1])
    return (clean + 0.05 * torch.randn(count, length)).unsqueeze(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every step's loss to this file, as JSON")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = Forecaster(options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_of, losses, progress = nn.MSELoss(), [], Progress(options.steps)
    for step in range(1, options.steps + 1):
        series = waves(options.batch, options.length + 1)
        said, _ = model(series[:, :-1])
        loss = loss_of(said, series[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        progress.update(step, f"loss {losses[-1]:.4f}")
    progress.close()
    series = waves(1, options.length + 24)
    said = model.go_on(series[:, :options.length], 24)[0, :, 0]
    for truth, value in zip(series[0, options.length:, 0].tolist(), said.tolist()):
        line = [" "] * 61
        line[min(max(round(truth * 18) + 30, 0), 60)] = "."
        line[min(max(round(value * 18) + 30, 0), 60)] = "o"
        print("".join(line).rstrip())
    print(f"the wave (.) and what the network expected (o); loss {losses[0]:.3f} -> {losses[-1]:.4f} "
          f"in {options.steps} steps on {torch.__name__} {torch.__version__}")
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            json.dump(losses, file)


if __name__ == "__main__":
    main()
