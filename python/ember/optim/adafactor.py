"""Adafactor (N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018)."""

import ember
from .optimizer import EachParameter, _new_step, _to_scalar

__all__ = ["Adafactor"]


class Adafactor(EachParameter):
    """A second moment kept by rows and columns. State: step, and row_var with col_var (matrices) or variance."""

    _complex_as_pairs = False
    _options = {"foreach": None}

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None,
                 maximize=False) -> None:
        if isinstance(lr, ember.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize})

    def _start(self, group, p):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.grad.dim() > 1:
            shape = list(p.grad.shape)
            return {"step": _new_step(), "row_var": p.grad.new_zeros([*shape[:-1], 1]),
                    "col_var": p.grad.new_zeros([*shape[:-2], 1, shape[-1]])}
        return {"step": _new_step(), "variance": ember.zeros_like(p.grad, memory_format=ember.preserve_format)}

    def _update(self, group, p, grad, state):
        lr, (eps1, eps2) = _to_scalar(group["lr"]), group["eps"]
        if eps1 is None:
            eps1 = ember.finfo(p.dtype).eps
        step = _to_scalar(state["step"].add_(1))
        near = step ** group["beta2_decay"]
        alpha = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step ** 0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            row_var, col_var = state["row_var"], state["col_var"]
            row_var.lerp_(ember.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), near)
            col_var.lerp_(ember.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), near)
            variance = row_var @ col_var
            variance.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(grad * grad, near).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        too_long = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        p.add_(update, alpha=-alpha / too_long)
