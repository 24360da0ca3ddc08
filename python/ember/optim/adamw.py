"""AdamW."""

from .adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly, p *= 1 - lr * weight_decay, and does not pass through the
    averages.

    State and options are Adam's. ValueError for a negative rate, eps or decay, or a beta outside [0, 1).

    >>> p = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([p], lr=0.5)
    >>> (3 * p).sum().backward()
    >>> optimizer.step()
    >>> p
    tensor([0.4950], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
