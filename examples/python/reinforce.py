"""REINFORCE teaches a policy to balance a pole on a cart; the cart and its physics are written here.

Run it with `python -m ember examples/python/reinforce.py`, or with plain `python` on PyTorch. The method is R. J. Williams,
"Simple statistical gradient-following algorithms", 1992; the task is Barto, Sutton and Anderson's of 1983.
"""
# tests run this with: --steps 5
import argparse
import json
import math

import torch
from progress import Progress
from torch import nn

GRAVITY, CART, POLE, HALF, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02  # m/s2, kg, kg, m, N, s


def move(state, push):
    """One tick of many carts at once: state [n, 4] (place, speed, angle, its speed) and push [n] (in tens of newtons)."""
    place, speed, angle, turn = state.unbind(1)
    sin, cos = angle.sin(), angle.cos()
    pulled = (push * FORCE + POLE * HALF * turn.square() * sin) / (CART + POLE)
    bend = (GRAVITY * sin - cos * pulled) / (HALF * (4 / 3 - POLE * cos.square() / (CART + POLE)))
    gain = pulled - POLE * HALF * bend * cos / (CART + POLE)
    return torch.stack([place + TICK * speed, speed + TICK * gain, angle + TICK * turn, turn + TICK * bend], dim=1)


class Policy(nn.Module):
    """A normal distribution of the push, its mean a small network of the state."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, state):
        """A push [n] for each state [n, 4], and the logarithms of how likely they were."""
        mean = self.mean(state)[:, 0]
        push = (mean + self.log_std.exp() * torch.randn_like(mean)).detach()
        off = (push - mean) / self.log_std.exp()
        return push, -0.5 * off.square() - self.log_std - 0.5 * math.log(2 * math.pi)


def play(policy, carts, limit):
    """Episodes of all carts side by side. Returns log-likelihoods and who was still up, both [ticks, carts]."""
    state = (torch.rand(carts, 4) - 0.5) * 0.1
    up, chosen, standing = torch.ones(carts), [], []
    for _ in range(limit):
        push, log = policy(state)
        chosen.append(log)
        standing.append(up)
        state = move(state, push)
        up = up * ((state[:, 0].abs() < 2.4) & (state[:, 2].abs() < 0.2095)).float()
        if not up.any():
            break
    return torch.stack(chosen), torch.stack(standing)


def returns(rewards, discount=0.99):
    """Discounted sums of what follows each tick: [ticks, carts]."""
    total, sums = torch.zeros_like(rewards[0]), []
    for reward in reversed(rewards.unbind()):
        total = reward + discount * total
        sums.append(total)
    return torch.stack(sums[::-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="updates of the policy")
    parser.add_argument("--carts", type=int, default=16, help="episodes for each update")
    parser.add_argument("--limit", type=int, default=300, help="ticks after which an episode counts as won")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", help="write every update's loss to this file, as JSON")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
    usual, losses, lengths, progress = 0.0, [], [], Progress(options.steps)
    for step in range(1, options.steps + 1):
        logs, standing = play(policy, options.carts, options.limit)
        gained = returns(standing)
        advantage = (gained - usual) / 20
        usual += 0.1 * ((gained * standing).sum() / standing.sum() - usual).item()
        loss = -(logs * advantage * standing).sum() / standing.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        lengths.append(standing.sum(0).mean().item())
        progress.update(step, f"{lengths[-1]:.0f} ticks upright")
    progress.close()
    print(f"{lengths[0]:.0f} -> {lengths[-1]:.0f} of {options.limit} ticks upright after {options.steps} updates "
          f"on {torch.__name__} {torch.__version__}")
    if options.losses:
        with open(options.losses, "w", encoding="ascii") as file:
            json.dump(losses, file)


if __name__ == "__main__":
    main()
