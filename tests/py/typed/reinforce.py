"""A policy gradient on a corridor: distributions, returns, entropy, an actor and a critic."""
from __future__ import annotations

from collections import deque
from typing import NamedTuple

import ember as torch
import ember.nn as nn
from ember import Tensor
from ember.distributions import Categorical, Normal, kl_divergence


class Step(NamedTuple):
    log_prob: Tensor
    value: Tensor
    entropy: Tensor
    reward: float


class Corridor:
    """Walk right to the end; each step costs a little."""

    def __init__(self, length: int = 6) -> None:
        self.length, self.place, self.time = length, 0, 0

    def reset(self) -> Tensor:
        self.place = self.time = 0
        return self.observe()

    def observe(self) -> Tensor:
        return torch.nn.functional.one_hot(torch.tensor(self.place), self.length).to(torch.float32)

    def step(self, action: int) -> tuple[Tensor, float, bool]:
        self.place = max(0, min(self.length - 1, self.place + (1 if action == 1 else -1)))
        self.time += 1
        done = self.place == self.length - 1
        return self.observe(), 1.0 if done else -0.05, done or self.time >= 30


class ActorCritic(nn.Module):
    def __init__(self, inputs: int, hidden: int = 16, actions: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, actions)
        self.value = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> tuple[Categorical, Tensor]:
        hidden = self.body(x)
        return Categorical(logits=self.policy(hidden)), self.value(hidden).squeeze(-1)


def play(env: Corridor, model: ActorCritic) -> list[Step]:
    state, done, steps = env.reset(), False, []
    while not done:
        distribution, value = model(state)
        action = distribution.sample()
        state, reward, done = env.step(int(action.item()))
        steps.append(Step(distribution.log_prob(action), value, distribution.entropy(), reward))
    return steps


def returns(rewards: list[float], gamma: float) -> Tensor:
    out: deque[float] = deque()
    total = 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        out.appendleft(total)
    result = torch.tensor(list(out))
    return (result - result.mean()) / (result.std(unbiased=False) + 1e-6)


def loss_of(steps: list[Step], gamma: float = 0.95) -> Tensor:
    targets = returns([s.reward for s in steps], gamma)
    values = torch.stack([s.value for s in steps])
    log_probs = torch.stack([s.log_prob for s in steps])
    advantage = (targets - values).detach()
    actor = -(log_probs * advantage).mean()
    critic = nn.functional.smooth_l1_loss(values, targets)
    entropy = torch.stack([s.entropy for s in steps]).mean()
    return actor + 0.5 * critic - 0.01 * entropy


def gaussians() -> float:
    """What continuous policies use: reparameterised draws, densities, divergences."""
    mean, scale = torch.zeros(3, requires_grad=True), torch.full((3,), 0.5)
    policy, prior = Normal(mean, scale), Normal(torch.zeros(3), torch.ones(3))
    action = policy.rsample((5,))
    density = policy.log_prob(action).sum(-1)
    divergence = kl_divergence(policy, prior).sum()
    (density.mean() + divergence).backward()
    assert mean.grad is not None and action.shape == (5, 3)
    return float(divergence)


def main() -> tuple[float, float]:
    torch.manual_seed(3)
    env = Corridor()
    model = ActorCritic(env.length)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    lengths: list[int] = []
    for _ in range(80):
        steps = play(env, model)
        optimizer.zero_grad()
        loss_of(steps).backward()
        norm: Tensor = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()
        lengths.append(len(steps))
    first, last = torch.tensor(lengths[:10]).float(), torch.tensor(lengths[-10:]).float()
    return first.mean().item(), last.mean().item()


if __name__ == "__main__":
    before, after = main()
    assert after < before, (before, after)
    assert gaussians() > 0
    print(f"steps {before:.1f} -> {after:.1f}")
