"""Adam, and what AdamW shares with it."""

from typing import Any

import ember
from .optimizer import (Optimizer, _by_kind, _check_at_least_zero, _check_betas, _check_lr, _new_step, _real,
                        _restore_steps, _to_scalar, _use_grad_for_differentiable)

__all__ = ["Adam"]


def _check_tensor_option(name, value, capturable, foreach):
    if isinstance(value, ember.Tensor):
        if not capturable and foreach:
            raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        if value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")


class Adam(Optimizer):
    """Adam; amsgrad and decoupled_weight_decay (AdamW's) as PyTorch has them.

    State per parameter: step (0-dim), exp_avg, exp_avg_sq, and max_exp_avg_sq with amsgrad. differentiable: the step
    is recorded by autograd. foreach and fused select nothing here: every step is one operator call for all
    parameters of a group.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False) -> None:
        _check_tensor_option("lr", lr, capturable, foreach)
        _check_lr(lr)
        _check_at_least_zero(epsilon=eps)
        _check_betas(betas)
        _check_at_least_zero(weight_decay=weight_decay)
        if isinstance(betas[0], ember.Tensor) != isinstance(betas[1], ember.Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i in (0, 1):
            _check_tensor_option(f"betas[{i}]", betas[i], capturable, foreach)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay})
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
            _restore_steps(self, group)

    @_use_grad_for_differentiable
    def step(self, closure=None) -> Any:
        """Update every parameter that has a gradient. Returns closure()'s loss, or None."""
        loss = None
        if closure is not None:
            with ember.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            for p in params:
                if not self.state[p]:
                    self._init_state(group, p)
            if group["differentiable"]:
                for p in params:
                    self._step_recorded(group, p)
            else:
                self._step_fused(group, params)
        return loss

    def _init_state(self, group, p):
        state = self.state[p]
        state["step"] = _new_step()
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        for name in names:
            state[name] = ember.zeros_like(p, memory_format=ember.preserve_format)

    def _step_fused(self, group, params):
        states = [self.state[p] for p in params]
        steps = [s["step"] for s in states]
        for step in steps:
            step.add_(1)
        maxima = [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []
        beta1, beta2 = group["betas"]
        operator = ember._fused_adamw_ if group["decoupled_weight_decay"] else ember._fused_adam_
        lists = _by_kind(_real(params), _real([p.grad for p in params]), _real([s["exp_avg"] for s in states]),
                         _real([s["exp_avg_sq"] for s in states]), _real(maxima), steps)
        for one_kind in lists:
            operator(*one_kind, lr=_to_scalar(group["lr"]), beta1=_to_scalar(beta1), beta2=_to_scalar(beta2),
                     weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=group["amsgrad"],
                     maximize=group["maximize"])

    def _step_recorded(self, group, p):
        """The same arithmetic with plain operators, so that autograd can follow it."""
        state, lr, weight_decay = self.state[p], group["lr"], group["weight_decay"]
        if group["amsgrad"] and state["step"].requires_grad:
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        beta1, beta2 = group["betas"]
        grad = -p.grad if group["maximize"] else p.grad
        step = state["step"].add_(1)
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * weight_decay)
            else:
                grad = grad + p * weight_decay
        exp_avg = state["exp_avg"].mul_(beta1).add_(grad * (1 - beta1))
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).add_(grad * grad * (1 - beta2))
        if group["amsgrad"]:
            # The clone keeps the maximum's old value for its own derivative.
            largest = state["max_exp_avg_sq"]
            exp_avg_sq = largest.copy_(ember.maximum(largest.clone(), exp_avg_sq))
        step_size = lr / (1 - beta1 ** step)
        denom = exp_avg_sq.sqrt() / (1 - beta2 ** step).sqrt() + group["eps"]
        # The division saves its numerator, which the next step changes in place.
        p.add_(exp_avg.clone() / denom * -step_size)
