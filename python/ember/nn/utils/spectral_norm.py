"""spectral_norm by a forward hook, PyTorch's first form (T. Miyato and others, "Spectral normalization", 2018)."""

from typing import Any

import ember
import ember.nn.functional as F
from ember.nn.parameter import Parameter, is_lazy
from ._norms import as_matrix, power_iterations

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "spectral_norm",
           "remove_spectral_norm"]


class SpectralNorm:
    """The hook: module.<name> is <name>_orig over its largest singular value, estimated by power iterations."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight) -> Any:
        return as_matrix(weight, self.dim)

    def compute_weight(self, module, do_power_iteration) -> Any:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            power_iterations(matrix, u, v, self.n_power_iterations, self.eps)
            if self.n_power_iterations > 0:  # Autograd saves these; the next forward writes the buffers.
                u, v = (t.clone(memory_format=ember.contiguous_format) for t in (u, v))
        return weight / ember.dot(u, ember.mv(matrix, v))

    def remove(self, module) -> None:
        with ember.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> Any:
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run "
                             "the dummy forward before applying spectral normalization")
        with ember.no_grad():
            height, width = hook.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Takes state dicts of the form before version 1, where <name> itself was saved and v was not."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version", None)
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        if version is None and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")) and key not in state_dict:
            return
        missing = False
        for suffix in ("_orig", "", "_u"):
            if key + suffix not in state_dict:
                missing = True
                if strict:
                    missing_keys.append(key + suffix)
        if missing:
            return
        with ember.no_grad():
            weight, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (weight / state_dict.pop(key)).mean()
            matrix = fn.reshape_weight_to_matrix(weight)
            # The v with u^T W v = sigma and v in the span that an exact power iteration would have left it in.
            v = ember.linalg.multi_dot([matrix.t().mm(matrix).pinverse(), matrix.t(), u.unsqueeze(1)]).squeeze(1)
            state_dict[key + "_v"] = v.mul_(sigma / ember.dot(u, ember.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Writes the form's version."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None) -> Any:
    """Divide module.<name> by its largest singular value, estimated anew in each forward of training."""
    if dim is None:
        kinds = tuple(getattr(ember.nn, kind) for kind in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
                      if hasattr(ember.nn, kind))
        dim = 1 if isinstance(module, kinds) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight") -> Any:
    """Undo spectral_norm: module.<name> is a plain parameter with its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks, kind in ((module._state_dict_hooks, SpectralNormStateDictHook),
                        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, hook in hooks.items():
            hook = getattr(hook, "hook", hook)  # a load hook may lie in a wrapper that passes the module
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
                break
    return module
