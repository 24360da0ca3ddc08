"""Averaged stochastic gradient descent (B. T. Polyak and A. B. Juditsky, 1992)."""

import ember
from .optimizer import EachParameter, _check_at_least_zero, _check_lr, _new_step, _scalar_dtype, _to_scalar, _zeros

__all__ = ["ASGD"]


class ASGD(EachParameter):
    """SGD with a decaying rate, and in `ax` the mean of the parameters since step t0. State: step, eta, mu, ax."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay: float = 0, foreach=None, maximize=False,
                 differentiable=False, capturable=False) -> None:
        _check_lr(lr)
        _check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p, {})
                for name in ("eta", "mu"):
                    if name in kept and not isinstance(kept[name], ember.Tensor):
                        kept[name] = ember.tensor(kept[name], dtype=_scalar_dtype())

    def _start(self, group, p):
        return {"step": _new_step(), "eta": ember.tensor(_to_scalar(group["lr"]), dtype=_scalar_dtype()),
                "mu": ember.ones((), dtype=_scalar_dtype()), "ax": _zeros(p)}

    def _update(self, group, p, grad, state):
        eta, mu, ax = state["eta"], state["mu"], state["ax"]
        lr, lambd = _to_scalar(group["lr"]), group["lambd"]
        step = _to_scalar(state["step"].add_(1))
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        rate = eta.item()
        p.mul_(1 - lambd * rate)
        p.add_(grad, alpha=-rate)
        if mu.item() != 1:
            ax.add_(p.sub(ax).mul_(mu))
        else:
            ax.copy_(p)
        # Through a tensor of the default dtype, whatever dtype a checkpoint gave the state: PyTorch rounds there.
        eta.copy_(ember.tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
        mu.copy_(ember.tensor(1 / max(1, step - group["t0"])))
