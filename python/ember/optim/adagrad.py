"""Adagrad (J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning", 2011)."""

import ember
from .optimizer import EachParameter, _check_at_least_zero, _check_lr, _new_step, _to_scalar

__all__ = ["Adagrad"]


class Adagrad(EachParameter):
    """The gradient over the root of the sum of its squares. State, from the start: step, sum."""

    _options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(self, params, lr=1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None) -> None:
        _check_lr(lr)
        _check_at_least_zero(lr_decay=lr_decay, weight_decay=weight_decay,
                             initial_accumulator_value=initial_accumulator_value, epsilon=eps)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused})
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._start(group, p)

    def _start(self, group, p):
        value = group["initial_accumulator_value"]
        value = complex(value, value) if p.is_complex() else value
        return {"step": _new_step(), "sum": ember.full_like(p, value, memory_format=ember.preserve_format)}

    def share_memory(self) -> None:
        """Put the state where other processes see it."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _update(self, group, p, grad, state):
        step = state["step"].add_(1)
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        rate = _to_scalar(group["lr"]) / (1 + (_to_scalar(step) - 1) * group["lr_decay"])
        squares = state["sum"].addcmul_(grad, grad, value=1)
        root = squares.sqrt()
        p.addcdiv_(grad, root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"]), value=-rate)
