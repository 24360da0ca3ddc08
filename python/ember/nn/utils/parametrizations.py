"""weight_norm and spectral_norm as parametrizations."""

from typing import Any

import ember
import ember.nn.functional as F
from ember.nn.modules.module import Module
from ._norms import as_matrix, norm_except, power_iterations, weight_of
from .parametrize import register_parametrization

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim=0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v) -> Any:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight) -> Any:
        return norm_except(weight, self.dim), weight


def _take_old_keys(module, name):
    """State dicts of the first form of weight_norm load into the second."""
    old = {f"{name}_g": f"parametrizations.{name}.original0", f"{name}_v": f"parametrizations.{name}.original1"}

    def hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if all(prefix + key in state_dict for key in old):
            for key, new in old.items():
                state_dict[prefix + new] = state_dict.pop(prefix + key)

    module._register_load_state_dict_pre_hook(hook)


def weight_norm(module, name="weight", dim=0) -> Any:
    """Parametrize module.<name> by its length along dim (None: of all; original0) and its direction (original1)."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    _take_old_keys(module, name)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            height, width = matrix.shape
            u, v = weight.new_empty(height).normal_(0, 1).detach(), weight.new_empty(width).normal_(0, 1).detach()
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            power_iterations(matrix, self._u, self._v, 15, eps)

    def forward(self, weight) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Clones: autograd saves them, and the next forward writes the buffers.
        u, v = (t.clone(memory_format=ember.contiguous_format) for t in (self._u, self._v))
        return weight / ember.vdot(u, ember.mv(matrix, v))

    def right_inverse(self, value) -> Any:
        return value  # Values are not checked: they may have passed power iterations in training.


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None) -> Any:
    """Parametrize module.<name> by itself over its largest singular value, which power iterations estimate."""
    weight = getattr(module, name, None)
    if not isinstance(weight, ember.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        kinds = tuple(getattr(ember.nn, kind) for kind in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
                      if hasattr(ember.nn, kind))
        dim = 1 if isinstance(module, kinds) else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
