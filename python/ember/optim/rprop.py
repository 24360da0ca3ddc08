"""Rprop (M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation learning", 1993)."""

import ember
from .optimizer import EachParameter, _check_lr, _new_step, _to_scalar, _zeros

__all__ = ["Rprop"]


class Rprop(EachParameter):
    """Steps by the gradient's sign, longer while the sign stays, shorter when it turns. State: step, prev, step_size."""

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
                 maximize=False, differentiable=False) -> None:
        _check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable})

    def _start(self, group, p):
        lr = _to_scalar(group["lr"])
        return {"step": _new_step(), "prev": _zeros(p),
                "step_size": ember.full_like(p.grad, complex(lr, lr) if p.is_complex() else lr)}

    def _update(self, group, p, grad, state):
        (shorter, longer), (smallest, largest) = group["etas"], group["step_sizes"]
        prev, step_size = state["prev"], state["step_size"]
        state["step"].add_(1)
        turn = grad.mul(prev.clone() if group["differentiable"] else prev).sign()
        turned = turn.lt(0)
        factor = ember.ones_like(step_size).masked_fill_(turn.gt(0), longer).masked_fill_(turned, shorter)
        step_size.mul_(factor).clamp_(smallest, largest)
        grad = grad.masked_fill(turned, 0)
        p.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
