"""A softmax over many classes: the frequent ones in a head, the rest in clusters of ever smaller projections."""

from collections import namedtuple
from typing import Any

import ember
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes [0, cutoffs[0]) have outputs of their own in the head; each later range is a cluster with one output there.

    The i-th cluster projects to in_features / div_value ** (i + 1) features first.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
                or len(set(cutoffs)) != len(cutoffs) or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // (div_value ** (i + 1)))
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **options),
                                        Linear(hidden, high - low, bias=False, **options)))

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input_, target_) -> Any:
        batched = target_.dim() > 0
        if target_.dim() == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}")
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}")
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        low, high = target.min().item(), target.max().item()
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{low}, {high}] were found. ")
        place = target.clone()  # the head's output of each target: its class, or its cluster
        inside = ember.zeros_like(input[:, 0])
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            chosen = (target >= low) & (target < high)
            if chosen.any():
                place[chosen] = self.shortlist_size + i
                logp = F.log_softmax(self.tail[i](input[chosen]), dim=1)
                inside = inside.index_put((chosen,), logp.gather(1, (target[chosen] - low).unsqueeze(1)).squeeze(1))
        head = F.log_softmax(self.head(input), dim=1)
        output = inside + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """Log-probabilities of all classes, from the head's raw outputs."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inside = F.log_softmax(cluster(input), dim=1)
            parts.append(inside + head[:, self.shortlist_size + i].unsqueeze(1))
        return ember.cat(parts, 1)

    def log_prob(self, input) -> Any:
        """(N, n_classes): log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input) -> Any:
        """The most likely class of each row. Clusters are looked into only where the head says so."""
        head = self.head(input)
        best = ember.argmax(head, dim=1)
        beyond = best >= self.shortlist_size
        if not beyond.any():
            return best
        if beyond.all():
            return ember.argmax(self._get_full_log_prob(input, head), dim=1)
        full = self._get_full_log_prob(input[beyond], head[beyond])
        best[beyond] = ember.argmax(full, dim=1)
        return best
