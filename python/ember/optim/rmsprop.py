"""RMSprop (G. Hinton's lecture 6e of 2012; centered: A. Graves, "Generating sequences with recurrent neural networks", 2013)."""

from .optimizer import EachParameter, _check_at_least_zero, _check_lr, _new_step, _to_scalar, _zeros

__all__ = ["RMSprop"]


class RMSprop(EachParameter):
    """The gradient over the root of a running mean of its square. State: step, square_avg, momentum_buffer, grad_avg."""

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay: float = 0, momentum: float = 0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False) -> None:
        _check_lr(lr)
        _check_at_least_zero(epsilon=eps, momentum=momentum,
                             weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable})

    def _start(self, group, p):
        state = {"step": _new_step(), "square_avg": _zeros(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros(p)
        if group["centered"]:
            state["grad_avg"] = _zeros(p)
        return state

    def _update(self, group, p, grad, state):
        lr, alpha = _to_scalar(group["lr"]), group["alpha"]
        state["step"].add_(1)
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square_avg = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            grad_avg = state["grad_avg"].lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(group["eps"]) if group["differentiable"] else avg.add_(group["eps"])
        if group["momentum"] > 0:
            p.add_(state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, avg), alpha=-lr)
        else:
            p.addcdiv_(grad, avg, value=-lr)
