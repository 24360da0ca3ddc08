"""Adadelta (M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012)."""

from .optimizer import EachParameter, _check_at_least_zero, _check_lr, _new_step, _to_scalar, _zeros

__all__ = ["Adadelta"]


class Adadelta(EachParameter):
    """Steps sized by the ratio of running means: of squared steps, of squared gradients. State: step, square_avg, acc_delta."""

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay: float = 0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False) -> None:
        _check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_at_least_zero(epsilon=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    def _start(self, group, p):
        return {"step": _new_step(), "square_avg": _zeros(p), "acc_delta": _zeros(p)}

    def _update(self, group, p, grad, state):
        rho, eps, square_avg, acc_delta = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        state["step"].add_(1)
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if group["differentiable"]:
            delta = delta.clone()
        delta.div_(std).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-_to_scalar(group["lr"]))
