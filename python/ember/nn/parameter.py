"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from collections import OrderedDict

import ember
from ember import _C

__all__ = ["Parameter", "Buffer"]


class _ParameterMeta(type(ember.Tensor)):
    """isinstance(x, Parameter) also holds for a tensor subclass instance that carries `_is_param`."""

    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, ember.Tensor) and getattr(instance, "_is_param", False)


class Parameter(ember.Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter. data: tensor, any shape and dtype; it is shared, not copied.

    Requires grad by default. Assigned to a module it joins parameters(); it dispatches as a plain tensor.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = ember.empty(0)
        if type(data) is ember.Tensor or type(data) is Parameter:
            return ember.Tensor._make_subclass(cls, data, requires_grad)
        # A subclass stays what it is and is only marked as a parameter.
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(t).__name__} was found instead. To use the type "
                "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation.")
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        done = memo.get(id(self))
        if done is None:
            copy = self.data.clone(memory_format=ember.preserve_format)
            done = memo[id(self)] = type(self)(copy, self.requires_grad)
        return done

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        # The functions live in ember._utils, under the names that PyTorch's checkpoints use.
        from ember import _utils
        hooks = OrderedDict()
        state = _utils._get_obj_state(self)
        if not state:
            return _utils._rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)

    __torch_function__ = _C._disabled_torch_function_impl


class _BufferMeta(type(ember.Tensor)):
    def __instancecheck__(self, instance):
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, ember.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(ember.Tensor, metaclass=_BufferMeta):
    """Marks a tensor as a module's buffer when assigned; persistent=False keeps it out of state_dict().

    Returns the data itself, marked: there is no Buffer object at run time.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = ember.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    __torch_function__ = _C._disabled_torch_function_impl
