"""Instance normalisation: batch normalisation of each sample by itself."""

import warnings
from typing import Any

from .. import functional as F
from .batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    _dims = 0  # of an input without a batch

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None, *, bias=True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        if input.dim() not in (self._dims, self._dims + 1):
            raise ValueError(f"expected {self._dims}D or {self._dims + 1}D input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if stale:
                kind = type(self).__name__
                names = " and ".join(f'"{prefix}{n}"' for n in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict "
                    "is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{kind} does not track running stats by default since 0.4.0. Please remove these keys from "
                    "state_dict. If the running stats are actually needed, instead set track_running_stats=True in "
                    f"{kind} to enable them. See the documentation of {kind} for details.")
                for n in stale:
                    state_dict.pop(prefix + n)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)

    def _normalise(self, input):
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats,
                               0.0 if self.momentum is None else self.momentum, self.eps)

    def forward(self, input) -> Any:
        self._check_input_dim(input)
        dim = input.dim() - self._dims
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                                 f"but got: {input.size(dim)}.")
            warnings.warn(f"input's size at dim={dim} does not match num_features. You can silence this warning by "
                          "not passing in num_features, which is not used because affine=False", stacklevel=2)
        return self._normalise(input) if dim == 1 else self._normalise(input.unsqueeze(0)).squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """instance_norm of (N, C, L) or (C, L)."""

    _dims = 2


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each picture, (N, C, H, W) or (C, H, W), by its own mean and variance.

    affine: whether there are weight and bias. track_running_stats: whether evaluation uses running statistics.
    """

    _dims = 3


class InstanceNorm3d(_InstanceNorm):
    """instance_norm of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 4
