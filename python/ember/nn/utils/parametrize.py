"""Parametrizations: a parameter or buffer of a module computed, at each access, from others by modules of one's own.

A parametrized module gets a class of its own (Parametrized<Class>) with a property for the tensor, and a ModuleDict
`parametrizations` with a ParametrizationList for each parametrized tensor.
"""

import copyreg
from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import ember
from ember.nn.modules.container import ModuleDict, ModuleList
from ember.nn.parameter import Parameter

__all__ = ["cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
           "type_before_parametrizations", "transfer_parametrizations_and_params"]

_cache_enabled = 0
_cache = {}


@contextmanager
def cached() -> Any:
    """While it is entered, a parametrized tensor is computed once and kept."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _kind_matches(where, before, after, first, second, unless):
    """Complain if a parametrization changes dtype or shape. first, second: what the message calls the tensors."""
    for quality in ("dtype", "shape"):
        a, b = getattr(before, quality), getattr(after, quality)
        if a != b:
            raise ValueError(f"{where} may not change the {quality} of the tensor, unless {unless} is enabled.\n"
                             f"{first(quality)}: {a}\n{second(quality)}: {b}")


def _set(tensor, value):
    """Give tensor (a parameter whose identity is to stay) the storage of value."""
    with ember.no_grad():
        tensor.set_(value)


def _remember(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, first to last, and the tensor(s) they start from.

    original: what the first one takes; original0, original1, ... if its right_inverse returned a sequence.
    """

    def __init__(self, modules, original, unsafe=False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new = original
        with ember.no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, ember.Tensor) and not isinstance(new, Sequence):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                             f"Got {type(new).__name__}")
        self.is_tensor = isinstance(new, ember.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not self.unsafe:
            self._check(original)

    def _keep_one(self, original, new):
        if original.dtype != new.dtype:
            raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                             f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}")
        if original.device != new.device:
            raise ValueError("When `right_inverse` outputs one tensor, it may not change the device.\n"
                             f"original.device: {original.device}\nright_inverse(original).device: {new.device}")
        _set(original, new)
        _remember(self, "original", original)

    def _keep_several(self, original, new):
        for i, tensor in enumerate(new):
            if not isinstance(tensor, ember.Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(tensor).__name__}.")
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _remember(self, f"original{i}", tensor)

    def _check(self, original):
        value = self()
        if not isinstance(value, ember.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
        _kind_matches("Registering a parametrization", original, value, lambda q: f"unparametrized {q}",
                      lambda q: f"parametrized {q}", "`unsafe` flag")

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value) -> None:
        """Assign value: what the parametrizations start from becomes what gives value, by their right_inverse."""
        with ember.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, ember.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError("The tensor returned by `right_inverse` has dtype "
                                     f"{value.dtype} while `original` has dtype {self.original.dtype}")
                _set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value)}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                                 f"Got a sequence of length {len(value)}.")
            for i, (tensor, original) in enumerate(zip(value, self._originals())):
                if not isinstance(tensor, ember.Tensor):
                    raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                                     f"{type(tensor).__name__}")
                if original.dtype != tensor.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while "
                                     f"`original{i}` has dtype {original.dtype}")
                _set(original, tensor)

    def forward(self) -> Any:
        x = self[0](*self._originals())
        for module in list(self)[1:]:
            x = module(x)
        return x


def _parametrized_class(module):
    """Give module a subclass of its class, to which properties can be added without touching other instances."""
    cls = module.__class__

    def getstate(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                           "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
                           "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")

    def copy_deep(self, memo):
        """deepcopy past __getstate__, which refuses."""
        found = memo.get(id(self))
        if found is not None:
            return found
        twin = self.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__ = deepcopy(self.__dict__, memo)
        slots = copyreg._slotnames(self.__class__)
        for slot in slots:
            if hasattr(self, slot):
                setattr(twin, slot, deepcopy(getattr(self, slot), memo))
        return twin

    members = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copy_deep
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), {**members, "__module__": __name__})


def _add_property(module, name):
    def get(self):
        parametrization = self.parametrizations[name]
        if not _cache_enabled:
            return parametrization()
        key = (id(module), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False) -> Any:
    """From now on module.<tensor_name> is parametrization(what it was). Returns module.

    parametrization.right_inverse(value), if there is one, says what to start from so that the value stays and can be
    assigned; it may return several tensors. unsafe: do not check that dtype and shape stay. Further calls stack.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _register_another(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _parametrized_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                         f"'{tensor_name}'")
    return module


def _register_another(module, tensor_name, parametrization, unsafe):
    if not unsafe:
        now = getattr(module, tensor_name)
        after = parametrization(now)
        if not isinstance(after, ember.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
        _kind_matches("Registering a parametrization", now, after, lambda q: f"module.{tensor_name}.{q}",
                      lambda q: f"parametrization(module.{tensor_name}).{q}", "the `unsafe` flag")
        if hasattr(parametrization, "right_inverse"):
            try:
                back = parametrization.right_inverse(after)
            except NotImplementedError:
                back = None
            if back is not None:
                if not isinstance(back, ember.Tensor):
                    raise ValueError("parametrization.right_inverse must return a tensor. Got: " f"{type(back).__name__}")
                for quality in ("dtype", "shape"):
                    if getattr(back, quality) != getattr(now, quality):
                        raise ValueError(
                            f"The tensor returned by parametrization.right_inverse must have the same {quality} as "
                            f"module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
                            f"module.{tensor_name}.{quality}: {getattr(now, quality)}\n"
                            f"returned {quality}: {getattr(back, quality)}")
    module.parametrizations[tensor_name].append(parametrization)
    module.parametrizations[tensor_name].unsafe |= unsafe


def is_parametrized(module, tensor_name=None) -> Any:
    """Whether module has parametrizations, of tensor_name if one is given."""
    parametrizations = module.__dict__.get("_modules", {}).get("parametrizations")
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True) -> Any:
    """Make module.<tensor_name> a plain parameter or buffer again: its present value, or the original. Returns module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with ember.no_grad():
                value = getattr(module, tensor_name)
            _set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms "
                         "of a sequence of tensors.")
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _remember(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module) -> Any:
    """The class that module had before it was parametrized."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None) -> Any:
    """Give to_module the parametrizations of from_module and the tensors they start from (copies). Returns to_module."""
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, deepcopy(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for kept in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            if hasattr(target, kept):
                setattr(target, kept, deepcopy(getattr(source, kept)))
    return to_module
