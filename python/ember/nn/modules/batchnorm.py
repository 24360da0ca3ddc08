"""Batch normalisation, and what it shares with instance normalisation: affine parameters and running statistics."""

from typing import Any

import ember
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """weight and bias where affine; running_mean, running_var and num_batches_tracked where track_running_stats."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(ember.empty(num_features, **options)) if wanted else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", ember.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", ember.ones(num_features, **options) if tracked else None)
        self.register_buffer("num_batches_tracked",
                             ember.tensor(0, dtype=ember.long, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        # Version 2 brought num_batches_tracked: an older state goes on from the count that is here.
        version = local_metadata.get("version", None)
        if self.track_running_stats and (version is None or version < 2):
            count = self.num_batches_tracked
            known = count is not None and count.device.type != "meta"
            state_dict.setdefault(prefix + "num_batches_tracked",
                                  count if known else ember.tensor(0, dtype=ember.long))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


class _BatchNorm(_NormBase):
    """momentum None: running statistics are the plain average of all batches."""

    def forward(self, input) -> Any:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_running = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if use_running else (None, None)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L): each channel minus its mean, over its deviation, times weight plus bias.

    In training the batch's own statistics are used and the running ones move by momentum; in evaluation the running ones
    are used. momentum None: their plain average. ValueError for another number of dimensions, or for one value a channel in
    training.
    """

    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of pictures (N, C, H, W): each channel minus its mean, over its deviation, times weight plus bias.

    In training the batch's own statistics are used and running_mean, running_var move by momentum; in evaluation these are
    used. ValueError for another number of dimensions.

    >>> nn.BatchNorm2d(3)(torch.randn(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    def _check_input_dim(self, input):
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W): each channel minus its mean, over its deviation, times weight plus bias.

    In training the batch's own statistics are used and the running ones move by momentum; in evaluation the running ones
    are used. ValueError for another number of dimensions.
    """

    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """batch_norm of (N, C, *). Statistics are this process's own: process_group is kept for programs that name one."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 process_group=None, device=None, dtype=None, *, bias=True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None) -> Any:
        """module with every BatchNorm layer in it replaced by a SyncBatchNorm that has its parameters and buffers."""
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine,
                                 module.track_running_stats, process_group, bias=module.bias is not None)
            made.train(module.training)
            shared = ["running_mean", "running_var", "num_batches_tracked"] + ["weight", "bias"] * bool(module.affine)
            for name in shared:
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
