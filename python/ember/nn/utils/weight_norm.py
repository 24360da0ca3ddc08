"""weight_norm by a forward hook, PyTorch's first form (T. Salimans and D. P. Kingma, "Weight normalization", 2016)."""

import warnings
from typing import Any

from ember.nn.parameter import Parameter, is_lazy
from ._norms import norm_except, weight_of

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


class WeightNorm:
    """The hook: computes module.<name> from <name>_g and <name>_v before each forward."""

    def __init__(self, name, dim) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return weight_of(v, g, self.dim)

    @staticmethod
    def apply(module, name, dim) -> Any:
        warnings.warn("`torch.nn.utils.weight_norm` is deprecated in favor of "
                      "`torch.nn.utils.parametrizations.weight_norm`.", FutureWarning, stacklevel=3)
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError("The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the "
                             "dummy forward before applying weight normalization")
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except(weight, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module) -> None:
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0) -> Any:
    """Split module.<name> into length <name>_g (for each index of dim; None: of all) and direction <name>_v."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight") -> Any:
    """Undo weight_norm: module.<name> is a plain parameter with its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
