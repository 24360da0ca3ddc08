"""Modules that learn the sizes of their parameters from their first input."""

import itertools
from typing import Any

import ember
from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Mixed into a layer (before it in the bases) whose parameters are UninitializedParameter until the first forward.

    The layer defines initialize_parameters(*args), called with forward's arguments. Afterwards, and after a state_dict
    gave the parameters their shapes and a forward ran, the module's class becomes `cls_to_become`.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _own_tensors(self):
        return itertools.chain(self._parameters.items(), self._buffers.items())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # As in Module, but what has no shape yet is saved as it is.
        for name, tensor in self._own_tensors():
            if tensor is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = tensor if is_lazy(tensor) or keep_vars else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Before a state_dict is loaded: its tensors decide the shapes."""
        for name, tensor in self._own_tensors():
            given = state_dict.get(prefix + name)
            if tensor is not None and given is not None and is_lazy(tensor) and not is_lazy(given):
                with ember.no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs) -> Any:
        """Give the parameters their shapes. args: forward's."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still has no shape."""
        return any(is_lazy(tensor) for _, tensor in self._own_tensors())

    def _infer_parameters(self, module, args, kwargs=None):
        """The forward pre-hook: sizes from the arguments, then the module becomes an ordinary one."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
                           "forward pass to correctly initialize the modules")
