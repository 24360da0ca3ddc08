"""Adamax (D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", 2014, section 7.1)."""

import ember
from .optimizer import EachParameter, _check_at_least_zero, _check_betas, _check_lr, _new_step, _to_scalar, _zeros

__all__ = ["Adamax"]


class Adamax(EachParameter):
    """Adam with a decaying maximum of |g| for the second moment. State: step, exp_avg, exp_inf."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, foreach=None, *, maximize=False,
                 differentiable=False, capturable=False) -> None:
        _check_lr(lr)
        _check_at_least_zero(epsilon=eps)
        _check_betas(betas)
        _check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def _start(self, group, p):
        return {"step": _new_step(), "exp_avg": _zeros(p), "exp_inf": _zeros(p)}

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        step, exp_inf = _to_scalar(state["step"].add_(1)), state["exp_inf"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        size = grad.abs().add_(group["eps"])
        exp_inf.mul_(beta2)
        if group["differentiable"]:
            exp_inf.copy_(ember.maximum(exp_inf.clone(), size))
        else:
            ember.maximum(exp_inf, size, out=exp_inf)
        p.addcdiv_(exp_avg, exp_inf, value=-_to_scalar(group["lr"]) / (1 - beta1 ** step))
