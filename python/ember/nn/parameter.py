"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from collections import OrderedDict
from typing import Any

import ember
from ember import _C

__all__ = ["Parameter", "UninitializedParameter", "is_lazy", "Buffer", "UninitializedBuffer",
           "UninitializedTensorMixin"]


class _ParameterMeta(type(ember.Tensor)):
    """isinstance(x, Parameter) also holds for a tensor subclass instance that carries `_is_param`."""

    def __instancecheck__(self, instance) -> Any:
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, ember.Tensor) and getattr(instance, "_is_param", False)


class Parameter(ember.Tensor, metaclass=_ParameterMeta):
    """A tensor that is a module's parameter. data: tensor, any shape and dtype; it is shared, not copied.

    Requires grad by default. Assigned to a module it joins parameters(); it dispatches as a plain tensor.
    """

    def __new__(cls, data=None, requires_grad=True) -> "Parameter":
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

    def __deepcopy__(self, memo) -> Any:
        done = memo.get(id(self))
        if done is None:
            copy = self.data.clone(memory_format=ember.preserve_format)
            done = memo[id(self)] = type(self)(copy, self.requires_grad)
        return done

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto) -> Any:
        # The functions live in ember._utils, under the names that PyTorch's checkpoints use.
        from ember import _utils
        hooks = OrderedDict()
        state = _utils._get_obj_state(self)
        if not state:
            return _utils._rebuild_parameter, (self.data, self.requires_grad, hooks)
        return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)

    __torch_function__ = _C._disabled_torch_function_impl


class _BufferMeta(type(ember.Tensor)):
    def __instancecheck__(self, instance) -> Any:
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, ember.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(ember.Tensor, metaclass=_BufferMeta):
    """Marks a tensor as a module's buffer when assigned; persistent=False keeps it out of state_dict().

    Returns the data itself, marked: there is no Buffer object at run time.
    """

    def __new__(cls, data=None, *, persistent=True) -> "Buffer":
        if data is None:
            data = ember.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    __torch_function__ = _C._disabled_torch_function_impl


# ---- without a shape yet -------------------------------------------------------------------------------------


class UninitializedTensorMixin:
    """A tensor of lazy modules: it has a dtype and a device, and no shape until materialize()."""

    _allowed_methods = [ember.Tensor.__hash__, ember.Tensor.size, ember.Tensor.copy_, ember.Tensor.is_complex,
                        ember.Tensor.is_floating_point, ember.Tensor.half, ember.Tensor.float, ember.Tensor.double,
                        ember.Tensor.char, ember.Tensor.short, ember.Tensor.int, ember.Tensor.long,
                        ember.Tensor.cuda, ember.Tensor.cpu, ember.Tensor.to, ember.Tensor.get_device]

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Become an ordinary parameter or buffer of this shape, with undefined values."""
        self.data = ember.empty(shape, device=self.data.device if device is None else device,
                                dtype=self.data.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
                           "in `load_state_dict` when trying to load an uninitialized parameter into an initialized "
                           "one. Call `forward` to initialize the parameters before accessing their attributes.")

    def share_memory_(self) -> Any:
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
                           "the parameters before calling `module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto) -> Any:
        return self.__class__, (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None) -> Any:
        # What needs no shape passes, and so do the getters of properties.
        if func in cls._allowed_methods or func.__class__.__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, {} if kwargs is None else kwargs)
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using "
                         f"a `LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When "
                         "using LazyModules Call `forward` with a dummy batch to initialize the parameters before "
                         "calling torch functions")


def is_lazy(param) -> bool:
    """Whether it is an UninitializedParameter or UninitializedBuffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape comes later: materialize(shape) gives it memory. Reading it before is a ValueError or
    RuntimeError.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return ember.Tensor._make_subclass(cls, ember.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, ember.Tensor):
    """A buffer whose shape comes later: materialize(shape)."""

    cls_to_become = ember.Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        made = ember.Tensor._make_subclass(cls, ember.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
