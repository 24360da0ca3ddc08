"""NAdam (T. Dozat, "Incorporating Nesterov momentum into Adam", 2016)."""

import ember
from .optimizer import (EachParameter, _check_at_least_zero, _check_betas, _check_lr, _new_step, _scalar_dtype, _to_scalar,
                        _zeros)

__all__ = ["NAdam"]


class NAdam(EachParameter):
    """Adam with Nesterov's momentum. State: step, mu_product, exp_avg, exp_avg_sq."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, momentum_decay=4e-3,
                 decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False) -> None:
        _check_lr(lr)
        _check_at_least_zero(epsilon=eps)
        _check_betas(betas)
        _check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable})

    _options = dict(EachParameter._options, decoupled_weight_decay=False)

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for kept in self.state.values():
            if "mu_product" in kept and not isinstance(kept["mu_product"], ember.Tensor):
                kept["mu_product"] = ember.tensor(kept["mu_product"], dtype=_scalar_dtype())

    def _start(self, group, p):
        return {"step": _new_step(), "mu_product": ember.ones((), dtype=_scalar_dtype()), "exp_avg": _zeros(p),
                "exp_avg_sq": _zeros(p)}

    def _update(self, group, p, grad, state):
        (beta1, beta2), lr, decay = group["betas"], _to_scalar(group["lr"]), group["momentum_decay"]
        step = _to_scalar(state["step"].add_(1))
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = state["mu_product"].mul_(mu).item()
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = exp_avg_sq.div(1 - beta2 ** step).sqrt()
        denom = denom.add(group["eps"]) if group["differentiable"] else denom.add_(group["eps"])
        p.addcdiv_(grad, denom, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(exp_avg, denom, value=-lr * mu_next / (1.0 - product * mu_next))
