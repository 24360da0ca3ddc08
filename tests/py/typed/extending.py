"""What libraries do around training: a Function of one's own, hooks, parameter groups, a scheduler, checkpoints."""
from __future__ import annotations

import os
import tempfile
from typing import Any

import ember as torch
import ember.nn as nn
from ember import Tensor
from ember.autograd import Function, gradcheck
from ember.autograd.function import FunctionCtx
from ember.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from ember.utils.checkpoint import checkpoint


class Swish(Function):
    """x * sigmoid(beta x), whose derivative is written by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, beta: float) -> Tensor:
        gate = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, gate)
        ctx.beta = beta
        return x * gate

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, gate = ctx.saved_tensors
        return grad * (gate + ctx.beta * x * gate * (1 - gate)), None


def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    out: Tensor = Swish.apply(x, beta)
    return out


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.gain = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        gate: Tensor = swish(self.linear(x))
        return x + self.gain * gate


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({"first": Block(width), "second": Block(width)})
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        for name, block in self.blocks.items():
            x = checkpoint(block, x, use_reentrant=False) if name == "second" and self.training else block(x)
        out: Tensor = self.head(x).squeeze(-1)
        return out


class Watch:
    """Collects what passes through modules and what comes back."""

    def __init__(self, model: nn.Module) -> None:
        self.sizes: dict[str, torch.Size] = {}
        self.norms: list[float] = []
        self.handles = [module.register_forward_hook(self.remember(name)) for name, module in model.named_children()]
        for p in model.parameters():
            self.handles.append(p.register_hook(self.measure))

    def remember(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            self.sizes[name] = output.shape
        return hook

    def measure(self, grad: Tensor) -> None:
        self.norms.append(torch.linalg.vector_norm(grad).item())

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0, "lr": 2e-3}]


def save(path: str, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
                "rng": torch.get_rng_state()}, path)


def load(path: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    missing, unexpected = model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    assert not missing and not unexpected
    step: int = state["step"]
    return step


def main() -> float:
    torch.manual_seed(0)
    assert gradcheck(swish, (torch.randn(4, dtype=torch.float64, requires_grad=True),))
    model, x = Net(), torch.randn(64, 8)
    target = x.pow(2).sum(dim=1).sqrt()
    optimizer = torch.optim.AdamW(groups(model, 1e-2), lr=1e-2)
    schedule = SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=3), CosineAnnealingLR(optimizer, 20)], milestones=[3])
    watch = Watch(model)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = torch.zeros(())
    for step in range(20):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    watch.remove()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        save(path, model, optimizer, 20)
        again = Net()
        fresh = torch.optim.AdamW(groups(again, 1e-2), lr=1e-2)
        assert load(path, again, fresh) == 20
    with torch.inference_mode():
        assert torch.equal(again.eval()(x), model.eval()(x))
    assert watch.sizes["head"] == (64, 1) and len(watch.norms) > 0
    (slope,) = torch.autograd.grad(model(x[:1]).sum(), [model.head.weight], retain_graph=False)
    assert slope.shape == model.head.weight.shape and isinstance(schedule.get_last_lr()[0], float)
    return loss.item()


def unused(ctx: FunctionCtx) -> None:
    """A context's own methods have types."""
    ctx.mark_non_differentiable(torch.zeros(1))
    ctx.set_materialize_grads(False)


if __name__ == "__main__":
    print(f"loss {main():.3f}")
