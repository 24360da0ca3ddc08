"""Loss functions of nn.functional beside those of classes and of plain differences."""

import math
import warnings

import ember
from ember import _C
from ember.overrides import handle_torch_function, has_torch_function_variadic
from . import _reduction as _Reduction

__all__ = ["kl_div", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "multi_margin_loss", "hinge_embedding_loss", "margin_ranking_loss",
           "cosine_embedding_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss", "ctc_loss",
           "cosine_similarity", "pairwise_distance"]

cosine_similarity, pairwise_distance = ember.cosine_similarity, ember.pairwise_distance


def _number(size_average, reduce, reduction):
    """The reduction's number; the deprecated flags win."""
    if size_average is not None or reduce is not None:
        return _Reduction.legacy_get_enum(size_average, reduce)
    return _Reduction.get_enum(reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False) -> "ember.Tensor":
    """target * (log(target) - input), input being log-probabilities; with log_target exp(target) * (target - input).

    input and target of one shape. reduction: "none", "sum", "mean" over all elements, "batchmean" over the first size,
    which is the divergence.
    """
    if has_torch_function_variadic(input, target):
        return handle_torch_function(kl_div, (input, target), input, target, size_average=size_average, reduce=reduce,
                                     reduction=reduction, log_target=log_target)
    if size_average is not None or reduce is not None:
        number = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size."
                          "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                          "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                          stacklevel=2)
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = ember.kl_div(input, target, number, log_target=log_target)
    return loss / input.size()[0] if reduction == "batchmean" and input.dim() != 0 else loss


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean") -> "ember.Tensor":
    """Minus the log-likelihood of counts target under rate exp(input), or input where log_input is False.

    full: with Stirling's approximation of log(target!).
    """
    if has_torch_function_variadic(input, target):
        return handle_torch_function(poisson_nll_loss, (input, target), input, target, log_input=log_input, full=full,
                                     size_average=size_average, eps=eps, reduce=reduce, reduction=reduction)
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return ember.poisson_nll_loss(input, target, log_input, full, eps, _Reduction.get_enum(reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean") -> "ember.Tensor":
    """Minus the log-likelihood of target under a normal distribution of mean input and variance var, at least eps."""
    if has_torch_function_variadic(input, target, var):
        return handle_torch_function(gaussian_nll_loss, (input, target, var), input, target, var, full=full, eps=eps,
                                     reduction=reduction)
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ember.ones_like(input)
    elif ember.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():  # one variance for all outputs of a sample
            var = ember.unsqueeze(var, -1)
        elif not _broadcasts_last(input, var):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with ember.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (ember.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _broadcasts_last(input, var):
    """Whether var has input's sizes but for one dimension of size 1."""
    if input.dim() != var.dim():
        return False
    differ = [(a, b) for a, b in zip(input.size(), var.size()) if a != b]
    return all(b == 1 for _, b in differ) and len(differ) == 1


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """log(1 + exp(-target * input)), target 1 or -1."""
    if has_torch_function_variadic(input, target):
        return handle_torch_function(soft_margin_loss, (input, target), input, target, size_average=size_average,
                                     reduce=reduce, reduction=reduction)
    return _C._nn.soft_margin_loss(input, target, _number(size_average, reduce, reduction))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """Hinge of each labelled class against each other one. target: class numbers, up to the first -1 of a row."""
    if has_torch_function_variadic(input, target):
        return handle_torch_function(multilabel_margin_loss, (input, target), input, target, size_average=size_average,
                                     reduce=reduce, reduction=reduction)
    return _C._nn.multilabel_margin_loss(input, target, _number(size_average, reduce, reduction))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """Binary cross entropy with logits, averaged over classes."""
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(multilabel_soft_margin_loss, (input, target, weight), input, target,
                                     weight=weight, size_average=size_average, reduce=reduce, reduction=reduction)
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce)
    loss = -(target * _C._nn.log_sigmoid(input) + (1 - target) * _C._nn.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def multi_margin_loss(input, target, p: float = 1, margin=1.0, weight=None, size_average=None, reduce=None,
                      reduction="mean") -> "ember.Tensor":
    """Sum over other classes of max(0, margin - input[target] + input[class]) ** p, over the number of classes."""
    if has_torch_function_variadic(input, target, weight):
        return handle_torch_function(multi_margin_loss, (input, target, weight), input, target, p=p, margin=margin,
                                     weight=weight, size_average=size_average, reduce=reduce, reduction=reduction)
    number = _number(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _C._nn.multi_margin_loss(input, target, p, margin, weight, number)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """input where target is 1, max(0, margin - input) where it is -1."""
    if has_torch_function_variadic(input, target):
        return handle_torch_function(hinge_embedding_loss, (input, target), input, target, margin=margin,
                                     size_average=size_average, reduce=reduce, reduction=reduction)
    return ember.hinge_embedding_loss(input, target, margin, _number(size_average, reduce, reduction))


def margin_ranking_loss(input1, input2, target, margin: float = 0, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """max(0, -target * (input1 - input2) + margin)."""
    if has_torch_function_variadic(input1, input2, target):
        return handle_torch_function(margin_ranking_loss, (input1, input2, target), input1, input2, target,
                                     margin=margin, size_average=size_average, reduce=reduce, reduction=reduction)
    number = _number(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return ember.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(input1, input2, target, margin: float = 0, size_average=None, reduce=None, reduction="mean") -> "ember.Tensor":
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1."""
    if has_torch_function_variadic(input1, input2, target):
        return handle_torch_function(cosine_embedding_loss, (input1, input2, target), input1, input2, target,
                                     margin=margin, size_average=size_average, reduce=reduce, reduction=reduction)
    return ember.cosine_embedding_loss(input1, input2, target, margin, _number(size_average, reduce, reduction))


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p: float = 2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean") -> "ember.Tensor":
    """max(0, distance to positive - distance to negative + margin). swap: the nearer of anchor and positive counts."""
    if has_torch_function_variadic(anchor, positive, negative):
        return handle_torch_function(triplet_margin_loss, (anchor, positive, negative), anchor, positive, negative,
                                     margin=margin, p=p, eps=eps, swap=swap, size_average=size_average, reduce=reduce,
                                     reduction=reduction)
    number = _number(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ember.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean") -> "ember.Tensor":
    """triplet_margin_loss with a distance of one's own (default: pairwise_distance)."""
    if has_torch_function_variadic(anchor, positive, negative):
        return handle_torch_function(triplet_margin_with_distance_loss, (anchor, positive, negative), anchor, positive,
                                     negative, distance_function=distance_function, margin=margin, swap=swap,
                                     reduction=reduction)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    dims = anchor.ndim, positive.ndim, negative.ndim
    if len(set(dims)) != 1:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           "dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs".format(*dims))
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ember.minimum(far, distance(positive, negative))
    loss = ember.clamp_min(margin + near - far, 0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False) -> "ember.Tensor":
    """Minus the log-probability of targets over all alignments with log_probs (T, N, C) or (T, C).

    targets: (N, S), or all of them in a row; blank: the class that stands for nothing.
    """
    if has_torch_function_variadic(log_probs, targets, input_lengths, target_lengths):
        return handle_torch_function(ctc_loss, (log_probs, targets, input_lengths, target_lengths), log_probs, targets,
                                     input_lengths, target_lengths, blank=blank, reduction=reduction,
                                     zero_infinity=zero_infinity)
    return ember.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _Reduction.get_enum(reduction),
                          zero_infinity)
