"""Module: the base class of every layer and network."""

import warnings
from collections import OrderedDict, namedtuple
from itertools import chain
from typing import Any

import ember
from ember.utils.hooks import BackwardHook, RemovableHandle
from . import _global_hooks as _g
from ._global_hooks import (WrappedHook, register_module_backward_hook, register_module_buffer_registration_hook,
                            register_module_forward_hook, register_module_forward_pre_hook,
                            register_module_full_backward_hook, register_module_full_backward_pre_hook,
                            register_module_module_registration_hook, register_module_parameter_registration_hook)
from ..parameter import Buffer, Parameter, is_lazy

__all__ = ["Module", "register_module_forward_pre_hook", "register_module_forward_hook",
           "register_module_full_backward_pre_hook", "register_module_backward_hook",
           "register_module_full_backward_hook", "register_module_buffer_registration_hook",
           "register_module_module_registration_hook", "register_module_parameter_registration_hook"]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"

# Pickles of modules with hooks name this class; the place and the name are PyTorch's.
_WrappedHook = WrappedHook
WrappedHook.__module__, WrappedHook.__name__, WrappedHook.__qualname__ = __name__, "_WrappedHook", "_WrappedHook"

# The registries themselves never change; bound here, each call of a module finds them quickly.
_global_forward_hooks = _g.forward_hooks
_global_forward_pre_hooks = _g.forward_pre_hooks
_global_backward_hooks = _g.backward_hooks
_global_backward_pre_hooks = _g.backward_pre_hooks


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _addindent(text, spaces):
    """Indent every line of text but the first."""
    return text.replace("\n", "\n" + spaces * " ")


def _may_swap_data(old, new):
    """Whether `old.data = new` is allowed: the object can stay when only dtype, strides or device index change."""
    if ember.__future__.get_overwrite_module_params_on_conversion():
        return False
    return old.device.type == new.device.type and old.layout == new.layout


def _forward_unimplemented(self, *input):
    """What a subclass defines to say what the module computes. NotImplementedError when it does not."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _parse_to(args, kwargs):
    """Arguments of Module.to: (device) or (dtype) or (device, dtype) or (tensor). Returns device, dtype, ..."""
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    tensor = kwargs.pop("tensor", None)
    rest = {"non_blocking": False, "copy": False, "memory_format": None}
    order = ["non_blocking", "copy"]
    args = list(args)
    if args and isinstance(args[0], ember.Tensor):
        tensor = args.pop(0)
    else:
        if args and (args[0] is None or isinstance(args[0], (str, int, ember.device))) and \
                not isinstance(args[0], bool):
            device = args.pop(0)
        if args and isinstance(args[0], ember.dtype):
            dtype = args.pop(0)
    for value in args:
        if not order or not isinstance(value, bool):
            raise TypeError("to() received an invalid combination of arguments - got "
                            f"({', '.join(type(a).__name__ for a in args)}), but expected one of: (device, dtype, "
                            "non_blocking, copy), (dtype, non_blocking, copy), (tensor, non_blocking, copy)")
        rest[order.pop(0)] = value
    for name, value in kwargs.items():
        if name not in rest:
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
        rest[name] = value
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if device is not None:
        device = ember.device(device)
    return device, dtype, rest["non_blocking"], rest["memory_format"]


class Module:
    """Base class of layers: owns parameters, buffers and submodules, and calls forward().

    A subclass calls super().__init__() first, assigns its parts as attributes and defines forward(). Assigning a
    Parameter, Buffer or Module registers it under the attribute's name.
    """

    dump_patches = False
    _version = 1
    call_super_init = False

    # These names are state that users' code and PyTorch's pickles know.
    _HOOK_DICTS = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
                   "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
                   "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
                   "_load_state_dict_post_hooks")

    def __init__(self, *args, **kwargs) -> None:
        """Prepares the registers of parameters, buffers, submodules and hooks: a subclass calls it before it assigns any."""
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                                f"'{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} "
                                "were given")
        # Straight into __dict__: __setattr__ looks these up.
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        for name in Module._HOOK_DICTS:  # the order is PyTorch's: pickles keep it
            own[name] = OrderedDict()
            if name == "_backward_hooks":
                own["_is_full_backward_hook"] = None
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    # ---- registration ----------------------------------------------------------------------------------------

    def _check_name(self, kind, name, registry):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {ember.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in registry and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name, tensor, persistent=True) -> None:
        """Add a tensor (or None) that is state but no parameter. persistent=False: not in state_dict()."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, ember.Tensor):
            raise TypeError(f"cannot assign '{ember.typename(tensor)}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        for hook in _g.buffer_registration_hooks.values():
            output = hook(self, name, tensor)
            if output is not None:
                tensor = output
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param) -> None:
        """Add a Parameter (or None) under name. Raises TypeError, KeyError, ValueError (non-leaf tensor)."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{ember.typename(param)}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")
        if param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                             f"explicitly. To express '{name}' as a function of another Tensor, compute the value in "
                             "the forward() method.")
        for hook in _g.parameter_registration_hooks.values():
            output = hook(self, name, param)
            if output is not None:
                param = output
        self._parameters[name] = param

    def add_module(self, name, module) -> None:
        """Add a submodule (or None) under name. TypeError for what is no module, KeyError for a name that is taken or has a
        dot.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{ember.typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = self._module_hooked(name, module)

    def register_module(self, name, module) -> None:
        """Same as add_module: add a submodule (or None) under name."""
        self.add_module(name, module)

    def _module_hooked(self, name, module):
        for hook in _g.module_registration_hooks.values():
            output = hook(self, name, module)
            if output is not None:
                module = output
        return module

    def __getattr__(self, name) -> Any:
        # Written out: every use of a parameter, buffer or submodule comes through here.
        """Finds parameters, buffers and submodules by name. AttributeError for others."""
        own = self.__dict__
        try:
            members = own["_parameters"]
            if name in members:
                return members[name]
            members = own["_modules"]
            if name in members:
                return members[name]
            members = own["_buffers"]
            if name in members:
                return members[name]
        except KeyError:
            pass  # Before Module.__init__ there are no members.
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name, *but):
        """Drop name from every place that may hold it, except the registries named in `but`."""
        for place in ("_parameters", "_buffers", "_modules"):
            if place not in but:
                self.__dict__[place].pop(name, None)
        self.__dict__.pop(name, None)
        if "_buffers" not in but:
            self._non_persistent_buffers_set.discard(name)

    def __setattr__(self, name, value) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(f"cannot assign '{ember.typename(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            modules[name] = self._module_hooked(name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{ember.typename(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            modules[name] = self._module_hooked(name, value)
            return
        buffers = own.get("_buffers")
        if buffers is not None and (name in buffers or isinstance(value, Buffer)):
            self._set_buffer(name, value, buffers)
            return
        object.__setattr__(self, name, value)

    def _set_buffer(self, name, value, buffers):
        if value is not None and not isinstance(value, ember.Tensor):
            raise TypeError(f"cannot assign '{ember.typename(value)}' as buffer '{name}' "
                            "(torch.nn.Buffer, torch.Tensor or None expected)")
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if name in buffers and type(self).register_buffer is Module.register_buffer:
            Module.register_buffer(self, name, value, persistent)
        elif persistent:
            # A subclass may define register_buffer without the persistent argument.
            self.register_buffer(name, value)
        else:
            self.register_buffer(name, value, persistent=False)

    def __delattr__(self, name) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> Any:
        names = chain(dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers)
        # A name such as "0" (of a Sequential's layer) is no attribute that one could write.
        return sorted({name for name in names if not name[0].isdigit()})

    def __getstate__(self) -> Any:
        return self.__dict__.copy()

    def __setstate__(self, state) -> None:
        """What unpickling calls: restores the attributes, and registers that older files lack."""
        self.__dict__.update(state)
        # Pickles of older versions lack the newer fields.
        for name in Module._HOOK_DICTS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- walking ---------------------------------------------------------------------------------------------

    def get_submodule(self, target) -> Any:
        """The submodule at a dotted path ("layers.0.conv"); "" is self. AttributeError when there is none."""
        if target == "":
            return self
        mod = self
        for item in target.split("."):
            if not hasattr(mod, item):
                raise AttributeError(f"{mod._get_name()} has no attribute `{item}`")
            mod = getattr(mod, item)
            if not isinstance(mod, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return mod

    def set_submodule(self, target, module, strict=False) -> None:
        """Put module at a dotted path. strict: the path must already hold a module."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_leaf(self, target):
        path, _, name = target.rpartition(".")
        mod = self.get_submodule(path)
        if not hasattr(mod, name):
            raise AttributeError(f"{mod._get_name()} has no attribute `{name}`")
        return mod, name, getattr(mod, name)

    def get_parameter(self, target) -> Any:
        """The Parameter at a dotted path ("layers.0.weight"). AttributeError when there is none."""
        _, name, param = self._get_leaf(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target) -> Any:
        """The buffer at a dotted path ("norm.running_mean"). AttributeError when there is none."""
        mod, name, buffer = self._get_leaf(target)
        if name not in mod._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse \
            else [(prefix, self)]
        for module_prefix, module in modules:
            for key, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (module_prefix + "." if module_prefix else "") + key, value

    def parameters(self, recurse=True) -> Any:
        """Iterate over the parameters, each once: this module's own, and those below unless recurse is False."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Any:
        """Iterate over (dotted name, parameter), each parameter once unless remove_duplicate is False; prefix goes before
        names.
        """
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True) -> Any:
        """Iterate over the buffers, each once: this module's own, and those below unless recurse is False."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True) -> Any:
        """Iterate over (dotted name, buffer), each buffer once unless remove_duplicate is False; prefix goes before names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Any:
        """Iterate over the direct submodules, in order of registration, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Any:
        """Iterate over (name, direct submodule), in order of registration, each submodule once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True) -> Any:
        """Iterate over self and all modules below, in depth-first order, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True) -> Any:
        """Iterate over (dotted name, module): self, named prefix, and all modules below."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # ---- changing everything below ---------------------------------------------------------------------------

    def train(self, mode=True) -> Any:
        """Set training mode (mode False: evaluation) here and below: Dropout and BatchNorm ask for it. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Set evaluation mode here and below: train(False). It does not stop recording; no_grad() does. Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True) -> Any:
        """Set requires_grad of every parameter here and below: False freezes them. Returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True) -> None:
        """Set the gradient of every parameter to None, or to zero unless set_to_none."""
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def apply(self, fn) -> Any:
        """Call fn on every module below, then on self: how initial values are set. Returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer t by fn(t), keeping Parameter objects where possible."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is not None:
                self._apply_param(fn, key, param)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    def _apply_param(self, fn, key, param):
        with ember.no_grad():
            applied = fn(param)
        grad = param.grad
        if _may_swap_data(param, applied):
            # The object stays, so optimizers that hold it follow.
            param.data = applied
            out = param
        else:
            out = self._parameters[key] = Parameter(applied, param.requires_grad)
        if grad is None:
            return
        with ember.no_grad():
            applied = fn(grad)
        if out is param and _may_swap_data(grad, applied):
            grad.data = applied
        else:
            out.grad = applied.requires_grad_(grad.requires_grad)

    def to(self, *args, **kwargs) -> Any:
        """Move and cast in place: to(device), to(dtype), to(device, dtype), to(tensor); memory_format=, non_blocking=.

        Only floating point and complex parameters and buffers are cast. Returns self.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got desired "
                                f"dtype={dtype}")
            if dtype.is_complex:
                warnings.warn("Complex modules are a new feature under active development whose design may change, "
                              "and some modules might not work as expected when using complex tensors as parameters "
                              "or buffers. Please file an issue at "
                              "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                              "if a complex module does not work as expected.", stacklevel=2)

        def convert(t):
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            extra = {}
            if memory_format is not None and t.dim() in (4, 5):
                extra["memory_format"] = memory_format
            try:
                return t.to(device, new_dtype, non_blocking, **extra)
            except NotImplementedError as e:
                if str(e) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to()"
                                          " when moving module from meta to a different device.") from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True) -> Any:
        """Move to device without copying: every parameter and buffer gets memory with no values in it. Returns self."""
        return self._apply(lambda t: ember.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type) -> Any:
        """Cast all parameters and buffers to a dtype. Returns self."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Cast floating point parameters and buffers to float32, in place: no new module is made. Returns self."""
        return self._cast(ember.float32)

    def double(self) -> Any:
        """Cast floating point parameters and buffers to float64, in place: no new module is made. Returns self."""
        return self._cast(ember.float64)

    def half(self) -> Any:
        """Cast floating point parameters and buffers to float16, in place: no new module is made. Returns self."""
        return self._cast(ember.float16)

    def bfloat16(self) -> Any:
        """Cast floating point parameters and buffers to bfloat16, in place: no new module is made. Returns self."""
        return self._cast(ember.bfloat16)

    def cpu(self) -> Any:
        """Move parameters and buffers to the CPU, in place: no new module is made. Returns self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Any:
        """Move parameters and buffers to a CUDA device, in place. AssertionError where there is none. Returns self."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None) -> Any:
        """Move parameters and buffers to an XPU device, in place. AssertionError where there is none. Returns self."""
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def compile(self, *args, **kwargs) -> None:
        """Check the arguments of ember.compile(). Calls run as they are: there is no compiler yet."""
        ember.compile(self.forward, *args, **kwargs)

    def share_memory(self) -> Any:
        """Move parameters and buffers to shared memory. Returns self."""
        return self._apply(lambda t: t.share_memory_())

    # ---- hooks -----------------------------------------------------------------------------------------------

    def _add_hook(self, registry, hook, prepend=False, flags=()):
        """flags: (dictionary, on) pairs that note properties of the hook under its id."""
        handle = RemovableHandle(registry, extra_dict=[d for d, _ in flags] or None)
        registry[handle.id] = hook
        for flag, on in flags:
            if on:
                flag[handle.id] = True
        if prepend:
            registry.move_to_end(handle.id, last=False)
        return handle

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False) -> Any:
        """hook(module, args[, kwargs]) runs before forward; it may return new args (and kwargs)."""
        return self._add_hook(self._forward_pre_hooks, hook, prepend,
                              [(self._forward_pre_hooks_with_kwargs, with_kwargs)])

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False) -> Any:
        """hook(module, args[, kwargs], output) runs after forward; it may return a new output.

        always_call: run it also when forward raised; output is then None.
        """
        return self._add_hook(self._forward_hooks, hook, prepend,
                              [(self._forward_hooks_with_kwargs, with_kwargs),
                               (self._forward_hooks_always_called, always_call)])

    def _set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = full

    def register_backward_hook(self, hook) -> Any:
        """Deprecated: hook(module, grad_input, grad_output) of the last node that forward made."""
        self._set_backward_kind(False)
        return self._add_hook(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False) -> Any:
        """hook(module, grad_input, grad_output) runs when gradients of the inputs are known; may replace them."""
        self._set_backward_kind(True)
        return self._add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False) -> Any:
        """hook(module, grad_output) runs before the module's backward; may replace grad_output."""
        return self._add_hook(self._backward_pre_hooks, hook, prepend)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously "
                               "registered via register_state_dict_post_hook")
        return self._add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook) -> Any:
        """hook(module, state_dict, prefix, local_metadata) runs after state_dict(); changes it in place."""
        hook._from_public_api = True
        return self._add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook) -> Any:
        """hook(module, prefix, keep_vars) runs before state_dict()."""
        return self._add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return self._add_hook(self._load_state_dict_pre_hooks, WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook) -> Any:
        """hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook) -> Any:
        """hook(module, incompatible_keys) runs after loading; it may change the keys in place."""
        return self._add_hook(self._load_state_dict_post_hooks, hook)

    # ---- the call --------------------------------------------------------------------------------------------

    def __call__(self, *args, **kwargs) -> Any:
        """Runs forward, and the hooks around it. Arguments and result are forward's."""
        own = self.__dict__  # attributes of a class with __getattr__ are slow to find
        try:
            hooked = (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
                      or own["_backward_pre_hooks"] or _global_forward_hooks or _global_forward_pre_hooks
                      or _global_backward_hooks or _global_backward_pre_hooks)
        except KeyError:  # __init__ has not run: PyTorch misses this one first
            hooked = self._backward_hooks is not None
        return self._call_impl(*args, **kwargs) if hooked else self.forward(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        called = set()
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            self._run_always_called(args, kwargs, called)
            raise

    def _run_always_called(self, args, kwargs, called):
        """After an error: the always_call hooks that have not run yet. Their own errors become warnings."""
        kinds = (("global module", _g.forward_hooks, _g.forward_hooks_always_called, _g.forward_hooks_with_kwargs),
                 ("module", self._forward_hooks, self._forward_hooks_always_called, self._forward_hooks_with_kwargs))
        for kind, hooks, always, with_kwargs in kinds:
            for hook_id, hook in list(hooks.items()):
                if hook_id not in always or hook_id in called:
                    continue
                try:
                    if hook_id in with_kwargs:
                        hook(self, args, kwargs, None)
                    else:
                        hook(self, args, None)
                except Exception as e:
                    warnings.warn(f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                                  f"silenced as another error was raised in forward: {e!s}", stacklevel=2)

    def _run_forward_pre_hooks(self, args, kwargs):
        hooks = [(None, hook) for hook in _g.forward_pre_hooks.values()]
        hooks.extend(self._forward_pre_hooks.items())
        for hook_id, hook in hooks:
            if hook_id in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                                       f"but got {result}.")
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        return args, kwargs

    def _backward_hook_lists(self):
        """(full hooks, deprecated hooks, pre hooks) that apply to this module, global ones first."""
        full, old = [], []
        if _g.backward_hooks:
            (full if _g.is_full_backward else old).extend(_g.backward_hooks.values())
        if self._backward_hooks:
            (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old, [*_g.backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_with_hooks(self, args, kwargs, called):
        full, old, pre = self._backward_hook_lists()
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        border = None
        if full or pre:
            border = BackwardHook(self, full, pre)
            args = border.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        kinds = ((_g.forward_hooks, _g.forward_hooks_with_kwargs),
                 (self._forward_hooks, self._forward_hooks_with_kwargs))
        for hooks, with_kwargs in kinds:
            for hook_id, hook in list(hooks.items()):
                # Noted before the call: a hook that raises does not run a second time.
                called.add(hook_id)
                if hook_id in with_kwargs:
                    output = hook(self, args, kwargs, result)
                else:
                    output = hook(self, args, result)
                if output is not None:
                    result = output
        if border is not None:
            if isinstance(result, (ember.Tensor, tuple)):
                result = border.setup_output_hook(result)
            else:
                warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of "
                              f"Tensors but received {type(result)}", stacklevel=2)
        if old:
            self._attach_old_backward_hooks(old, args, result)
        return result

    def _attach_old_backward_hooks(self, hooks, args, result):
        var = result
        while not isinstance(var, ember.Tensor):
            if isinstance(var, dict):
                var = next(v for v in var.values() if isinstance(v, ember.Tensor))
            else:
                var = var[0]
        grad_fn = var.grad_fn
        if grad_fn is not None:
            for hook in hooks:
                grad_fn.register_hook(WrappedHook(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, grad_fn)

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
        def warn(what, tail=" Please use register_full_backward_hook to get the documented behavior."):
            warnings.warn(what + tail, FutureWarning, stacklevel=5)

        old_kind = " is deprecated and will be removed in future versions. This hook will be missing some"
        results = (result,) if isinstance(result, ember.Tensor) else result
        if not (isinstance(results, tuple) and all(isinstance(r, ember.Tensor) for r in results)):
            return warn("Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of "
                        f"Tensors{old_kind} of the grad_output.")
        inputs = (inputs,) if isinstance(inputs, ember.Tensor) else inputs
        if not (isinstance(inputs, tuple) and all(isinstance(i, ember.Tensor) for i in inputs)):
            return warn("Using non-full backward hooks on a Module that does not take as input a single Tensor or a "
                        f"tuple of Tensors{old_kind} of the grad_input.")
        if any(r.grad_fn is not None and r.grad_fn != grad_fn for r in results):
            return warn("Using a non-full backward hook when outputs are generated by different autograd Nodes"
                        f"{old_kind} grad_output.")
        needed = {i.grad_fn for i in inputs if i.grad_fn is not None}
        following = {edge[0] for edge in grad_fn.next_functions}
        if needed != following and any(i.requires_grad for i in inputs):
            leaves = {n for n in following if n is not None and n.name().endswith("AccumulateGrad")}
            if following - leaves - needed:
                return warn("Using a non-full backward hook when the forward contains multiple autograd Nodes"
                            f"{old_kind} grad_input.")
        return None

    # ---- state dict ------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Override, together with set_extra_state, to put more than tensors into state_dict()."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called. Please file "
                           "an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to "
                           "report this bug.")

    def set_extra_state(self, state) -> Any:
        """Takes what get_extra_state() returned."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called. Please file "
                           "an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to "
                           "report this bug.")

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own parameters and persistent buffers into destination."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if getattr(type(self), "get_extra_state", Module.get_extra_state) is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False) -> Any:
        """An OrderedDict from dotted names to tensors that share memory with the module.

        prefix: put before every name. keep_vars: the Parameters themselves, not detached.
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict "
                          "for details.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _load_one(self, name, param, value, key, assign, error_msgs):
        """Put value into the parameter or buffer `param`, noting what goes wrong."""
        if not ember.overrides.is_tensor_like(value):
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                              f"object from checkpoint but received {type(value)}")
            return
        lazy = is_lazy(param)
        if not lazy and len(param.shape) == 0 and len(value.shape) == 1 and value.shape[0] == 1:
            value = value[0]  # Checkpoints from before scalars existed.
        if not lazy and value.shape != param.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                              f"the shape in current model is {param.shape}.")
            return
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                          "current model, which is a no-op. (Did you mean to pass `assign=True` to assign items in "
                          "the state dictionary to their corresponding key in the module instead of copying them in "
                          "place?)", stacklevel=2)
        try:
            with ember.no_grad():
                if not assign:
                    param.copy_(value)
                    return
                if isinstance(param, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(param.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=param.requires_grad)
                setattr(self, name, value)
        except Exception as ex:
            error_msgs.append(f'While copying the parameter named "{key}", whose dimensions in the model are '
                              f"{param.size()} and whose dimensions in the checkpoint are {value.size()}, an exception "
                              f"occurred : {ex.args}.")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Load this module's own entries; fills the three lists instead of raising."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local = {k: v for k, v in self._parameters.items() if v is not None}
        local.update((k, v) for k, v in self._buffers.items()
                     if v is not None and k not in self._non_persistent_buffers_set)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, param, state_dict[key], key, assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if getattr(type(self), "set_extra_state", Module.set_extra_state) is not Module.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    head, dot, _ = key[len(prefix):].partition(".")
                    if head not in (self._modules if dot else local):
                        unexpected_keys.append(key)

    def load_state_dict(self, state_dict, strict=True, assign=False) -> Any:
        """Copy a state dict's tensors into this module. Returns (missing_keys, unexpected_keys).

        strict: RuntimeError unless the keys match exactly. assign: take the tensors themselves.
        """
        from collections.abc import Mapping
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # Hooks may change it.
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local_state, prefix=""):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    load(child, {k: v for k, v in local_state.items() if k.startswith(child_prefix)}, child_prefix)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not "
                                         "expected to return new values, if incompatible_keys need to be modified, "
                                         "it should be done inplace.")

        load(self, state_dict)
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    quoted = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {quoted}. ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__,
                                                                                     "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)

    # ---- printing --------------------------------------------------------------------------------------------

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """What a subclass wants between the parentheses of its repr: a line, or several."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({key}): {_addindent(repr(module), 2)}" for key, module in self._modules.items()]
        lines = extra_lines + child_lines
        if not lines:
            return self._get_name() + "()"
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"
