"""Stochastic gradient descent."""

from typing import Any

import ember
from .optimizer import (Optimizer, _by_kind, _check_at_least_zero, _check_lr, _real, _to_scalar,
                        _use_grad_for_differentiable)

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr * g, with momentum, dampening, Nesterov and weight decay as PyTorch has them.

    differentiable: the step is recorded by autograd. foreach and fused select nothing here: every step is one
    operator call for all parameters of a group.
    """

    def __init__(self, params, lr=1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov=False,
                 *, maximize=False,
                 foreach=None, differentiable=False, fused=None) -> None:
        _check_lr(lr)
        _check_at_least_zero(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach, "differentiable": differentiable,
            "fused": fused})
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

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
            grads = [p.grad for p in params]
            if group["differentiable"]:
                self._step_recorded(group, params, grads)
            elif group["momentum"] == 0:
                _fused(group, params, grads, [], True)
            else:
                self._step_with_momentum(group, params, grads)
        return loss

    def _step_with_momentum(self, group, params, grads):
        """A buffer's first step copies the gradient into it, so new and old buffers go in separate calls."""
        new, old = ([], [], []), ([], [], [])
        for p, grad in zip(params, grads):
            state = self.state[p]
            buf = state.get("momentum_buffer")
            lists = old
            if buf is None:
                lists = new
                buf = state["momentum_buffer"] = ember.empty_like(grad, memory_format=ember.preserve_format)
            for one, tensor in zip(lists, (p, grad, buf)):
                one.append(tensor)
        for lists, first in ((new, True), (old, False)):
            if lists[0]:
                _fused(group, *lists, first)

    def _step_recorded(self, group, params, grads):
        """The same arithmetic with plain operators, so that autograd can follow it."""
        lr, momentum, weight_decay = group["lr"], group["momentum"], group["weight_decay"]
        for p, grad in zip(params, grads):
            if group["maximize"]:
                grad = -grad
            if weight_decay != 0:
                grad = grad.add(p * weight_decay)
            if momentum != 0:
                buf = self.state[p].get("momentum_buffer")
                if buf is None:
                    buf = self.state[p]["momentum_buffer"] = grad.detach().clone()
                else:
                    buf.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(buf, alpha=momentum) if group["nesterov"] else buf
            p.add_(grad * -lr)


def _fused(group, params, grads, buffers, first):
    for some_params, some_grads, some_buffers in _by_kind(_real(params), _real(grads), _real(buffers)):
        ember._fused_sgd_(some_params, some_grads, some_buffers, weight_decay=_to_scalar(group["weight_decay"]),
                          momentum=group["momentum"], lr=_to_scalar(group["lr"]), dampening=group["dampening"],
                          nesterov=group["nesterov"], maximize=group["maximize"], is_first_step=first)
