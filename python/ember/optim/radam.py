"""RAdam (L. Liu and others, "On the variance of the adaptive learning rate and beyond", 2019)."""

from .optimizer import EachParameter, _check_at_least_zero, _check_betas, _check_lr, _new_step, _to_scalar, _zeros

__all__ = ["RAdam"]


class RAdam(EachParameter):
    """Adam that trusts its second moment only once enough steps were seen. State: step, exp_avg, exp_avg_sq."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False) -> None:
        _check_lr(lr)
        _check_at_least_zero(epsilon=eps)
        _check_betas(betas)
        _check_at_least_zero(weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable})

    _options = dict(EachParameter._options, decoupled_weight_decay=False)

    def _start(self, group, p):
        return {"step": _new_step(), "exp_avg": _zeros(p), "exp_avg_sq": _zeros(p)}

    def _update(self, group, p, grad, state):
        (beta1, beta2), lr = group["betas"], _to_scalar(group["lr"])
        step = _to_scalar(state["step"].add_(1))
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(p, alpha=group["weight_decay"])
        exp_avg = state["exp_avg"].lerp_(grad, 1 - beta1)
        exp_avg_sq = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2 = 1 - beta2 ** step
        corrected = exp_avg / (1 - beta1 ** step)
        # The length of the approximated simple moving average decides whether the second moment is used.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2 ** step / correction2
        if length > 5.0:
            root = exp_avg_sq.sqrt()
            root = root.add(group["eps"]) if group["differentiable"] else root.add_(group["eps"])
            rectified = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
            p.add_(corrected * lr * (correction2 ** 0.5 / root) * rectified, alpha=-1.0)
        else:
            p.add_(corrected * lr, alpha=-1.0)
