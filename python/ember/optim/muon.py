"""Muon (K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024)."""

import math

import ember
from .optimizer import EachParameter, _to_scalar

__all__ = ["Muon"]


def _orthogonalized(update, coefficients, steps, eps):
    """The nearest semi-orthogonal matrix, roughly, by Newton and Schulz's iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = update.bfloat16()
    tall = update.size(0) > update.size(1)
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = ember.addmm(x, ember.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(EachParameter):
    """Momentum whose direction is made orthogonal; for the matrices of hidden layers. State: momentum_buffer."""

    _complex_as_pairs = False
    _options = {}

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None) -> None:
        if isinstance(lr, ember.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _start(self, group, p):
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": ember.zeros_like(p.grad, memory_format=ember.preserve_format)}

    def _update(self, group, p, grad, state):
        lr, momentum, (rows, columns) = _to_scalar(group["lr"]), group["momentum"], p.shape
        buf = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = _orthogonalized(grad.lerp(buf, momentum) if group["nesterov"] else buf, group["ns_coefficients"],
                                 group["ns_steps"], group["eps"])
        ratio = (0.2 * math.sqrt(max(rows, columns)) if group["adjust_lr_fn"] == "match_rms_adamw"
                 else math.sqrt(max(1, rows / columns)))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-lr * ratio)
