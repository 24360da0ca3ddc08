"""Loss layers: each calls the function of the same name in nn.functional with the options it was made with."""

from typing import Any

from .. import _reduction as _Reduction
from .. import functional as F
from .module import Module

__all__ = ["L1Loss", "NLLLoss", "KLDivLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss", "SmoothL1Loss", "HuberLoss",
           "CrossEntropyLoss"]


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _Reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """|input - target|, averaged ("mean"), summed ("sum") or as it is ("none"). input and target of one shape."""

    def forward(self, input, target) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)^2, averaged ("mean"), summed ("sum") or as it is ("none"). input and target of one shape; floating
    point.

    Sizes that differ but broadcast give a warning.

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input, target) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2. input and target of one shape."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared error below delta, absolute error above."""

    def __init__(self, reduction="mean", delta=1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input, target) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target * (log(target) - input), input being log-probabilities; with log_target, target too. input and target of one
    shape.

    reduction "batchmean" divides the sum by the first size, which is the divergence; "mean" divides by the number of
    elements.
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(_WeightedLoss):
    """-weight[target] * input[target], input being log-probabilities (N, C) or (C) or (N, C, d1, ...), target class indices of
    that shape without C.

    weight: (C). ignore_index: targets that count for nothing. "mean" divides by the sum of the weights. IndexError for a
    target that is no class.
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target) -> Any:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """-weight * (target * log(input) + (1 - target) * log(1 - input)) of probabilities in [0, 1]; logarithms no less than
    -100.

    input and target of one shape, ValueError otherwise; RuntimeError for elements outside [0, 1]. weight broadcasts to
    input.
    """

    def forward(self, input, target) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of sigmoid(input), computed without overflow. input and target of one shape, ValueError otherwise.

    weight: factors that broadcast to input. pos_weight: factors of the positive part, one a class.
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target) -> Any:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                  reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of logits (C), (N, C) or (N, C, d1, ...) with class indices (of that shape without C, int64) or
    probabilities (of the logits' shape): -log(exp(input[target]) / sum of exp(input)).

    weight: (C). ignore_index: targets that count for nothing. reduction: "mean" (over the targets' weights), "sum", "none".
    label_smoothing: share of each target that is spread over all classes. IndexError for a target that is no class.

    >>> nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target) -> Any:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)
