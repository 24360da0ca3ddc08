"""Optimizer: parameter groups, state, hooks, saving and loading."""

import warnings
from collections import OrderedDict, defaultdict
from typing import Any

import ember
from ember import _C
from ember.utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]

_global_step_pre_hooks = OrderedDict()
_global_step_post_hooks = OrderedDict()


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _new_state():
    return defaultdict(dict)


def _add(registry, hook, prepend=False):
    handle = RemovableHandle(registry)
    registry[handle.id] = hook
    if prepend:
        registry.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook) -> Any:
    """hook(optimizer, args, kwargs) runs before step() of every optimizer; may return (args, kwargs)."""
    return _add(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> Any:
    """hook(optimizer, args, kwargs) runs after step() of every optimizer."""
    return _add(_global_step_post_hooks, hook)


def _use_grad_for_differentiable(step):
    """step, recorded by autograd only if the optimizer is differentiable."""
    def use_grad(self, *args, **kwargs):
        prev = ember.is_grad_enabled()
        ember._C._set_grad_enabled(self.defaults.get("differentiable", False))
        try:
            return step(self, *args, **kwargs)
        finally:
            ember._C._set_grad_enabled(prev)

    use_grad.__doc__ = step.__doc__
    use_grad.__name__ = step.__name__
    return use_grad


def _scalar_dtype():
    """The dtype of step counters."""
    return ember.float64 if ember.get_default_dtype() == ember.float64 else ember.float32


def _new_step():
    return ember.tensor(0.0, dtype=_scalar_dtype())


def _restore_steps(optimizer, group):
    """Make the step counters of a group tensors: old checkpoints hold numbers."""
    for p in group["params"]:
        state = optimizer.state.get(p, ())
        if len(state) != 0 and "step" in state and not isinstance(state["step"], ember.Tensor):
            state["step"] = ember.tensor(float(state["step"]), dtype=_scalar_dtype())


def _to_scalar(x):
    """A Python number for a number or a one-element tensor."""
    return x.item() if isinstance(x, ember.Tensor) else x


def _by_kind(*lists):
    """Split parallel lists of tensors by the first one's device and dtype; operators take one kind a call."""
    params = lists[0]
    first = params[0]
    if all(p.dtype == first.dtype and p.device == first.device for p in params):
        return [lists]
    groups = {}
    for i, p in enumerate(params):
        groups.setdefault((str(p.device), p.dtype), []).append(i)
    return [tuple([one[i] for i in index] if one else one for one in lists) for index in groups.values()]


def _real(tensors):
    """Complex tensors as pairs of reals: optimizers treat the parts as separate parameters."""
    return [ember.view_as_real(t) if t.is_complex() else t for t in tensors]


class Optimizer:
    """Base of optimizers.

    params: iterable of tensors, of (name, tensor), or of dicts with "params" and options. defaults: the options that
    a group does not give. Raises TypeError and ValueError for bad parameters.
    """

    def __init__(self, params, defaults) -> None:
        """params: parameters, (name, parameter) pairs, or dictionaries of a group's parameters and options; defaults: options
        of all groups.
        """
        self.defaults = defaults
        self._reset_hooks()
        self._patch_step_function()
        if isinstance(params, ember.Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but "
                            "got " + ember.typename(params))
        self.state = _new_state()
        self.param_groups = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    _HOOK_DICTS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
                   "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks",
                   "_optimizer_load_state_dict_post_hooks")

    def _reset_hooks(self):
        for name in Optimizer._HOOK_DICTS:
            self.__dict__.setdefault(name, OrderedDict())

    def __getstate__(self) -> Any:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        self._reset_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- hooks -----------------------------------------------------------------------------------------------

    @staticmethod
    def profile_hook_step(func) -> Any:
        """func (a class's step), with the step hooks around it."""
        def wrapper(*args, **kwargs):
            self = args[0]
            if _C._profile_active():
                from ember.autograd.profiler import record_function
                with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                    return step(self, args, kwargs)
            return step(self, args, kwargs)

        def step(self, args, kwargs):
            for hook in [*_global_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got "
                                       f"{result}.")
                args, kwargs = result
            out = func(*args, **kwargs)
            for hook in [*self._optimizer_step_post_hooks.values(), *_global_step_post_hooks.values()]:
                hook(self, args, kwargs)
            return out

        wrapper.__doc__ = func.__doc__
        wrapper.__name__ = getattr(func, "__name__", "step")
        wrapper.__wrapped__ = func
        wrapper.hooked = True
        return wrapper

    def _patch_step_function(self):
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)

    def register_step_pre_hook(self, hook) -> Any:
        """hook(optimizer, args, kwargs) runs before step(); may return (args, kwargs)."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook) -> Any:
        """hook(optimizer, args, kwargs) runs after step()."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False) -> Any:
        """hook(optimizer) runs before state_dict()."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False) -> Any:
        """hook(optimizer, state_dict) runs after state_dict(); may return another one."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False) -> Any:
        """hook(optimizer, state_dict) runs before loading; may return another one."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False) -> Any:
        """hook(optimizer) runs after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state dict ------------------------------------------------------------------------------------------

    def state_dict(self) -> Any:
        """{"state": {index: values}, "param_groups": [options with "params": indices]}: what load_state_dict reads. Tensors
        are shared, not copied.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index[id(k)] if isinstance(k, ember.Tensor) else k): v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A loaded state tensor in the dtype and on the device that its parameter asks for."""
        if key == "step":
            # Never to the parameter's dtype: a half counter stops at 2048.
            for group in param_groups:
                if param_id in group["params"]:
                    if group.get("capturable") or group.get("fused"):
                        return value.to(dtype=ember.float32, device=param.device)
                    break
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def _cast(self, param, value, param_id, param_groups, key=None):
        if isinstance(value, ember.Tensor):
            return self._process_value_according_to_param_policy(param, value, param_id, param_groups, key)
        if isinstance(value, dict):
            return {k: self._cast(param, v, param_id, param_groups, k) for k, v in value.items()}
        if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
            return type(value)(self._cast(param, v, param_id, param_groups) for v in value)
        return value

    def load_state_dict(self, state_dict) -> None:
        """Take options and state from a state_dict() with the same groups. Raises ValueError if they differ."""
        from copy import deepcopy
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                             "group")
        own = {i: p for g, s in zip(groups, saved) for i, p in zip(s["params"], g["params"])}
        state = _new_state()
        for key, value in state_dict["state"].items():
            if key in own:
                state[own[key]] = self._cast(own[key], value, key, state_dict["param_groups"])
            else:
                state[key] = value
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- gradients and groups --------------------------------------------------------------------------------

    def zero_grad(self, set_to_none=True) -> None:
        """Set the gradient of every parameter to None, or to zero unless set_to_none."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def step(self, closure=None) -> Any:
        """Update the parameters once. closure: recomputes the loss and its gradients, and returns the loss."""
        raise NotImplementedError

    def _split_names(self, param_group):
        """Turn (name, tensor) pairs of a group into params and param_names."""
        params = param_group["params"]
        if any(isinstance(p, tuple) for p in params):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["params"] = [p for _, p in params]
            param_group["param_names"] = [name for name, _ in params]

    def add_param_group(self, param_group) -> None:
        """Add a group: a dict with "params" and options. Raises TypeError, ValueError."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of "
                            "tensors in sets will change between runs. Please use a list instead.")
        param_group["params"] = [params] if isinstance(params, ember.Tensor) else list(params)
        self._split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, ember.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                                + ember.typename(param))
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = {id(p) for p in param_group["params"]}
        if len(ids) != len(param_group["params"]):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause "
                          "an error; see github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        seen = set()
        for group in self.param_groups:
            seen.update(id(p) for p in group["params"])
            if ("param_names" in param_group) != ("param_names" in group):
                named = "with names" if "param_names" in param_group else "without names"
                raise ValueError("all optimizer param groups should be with/without names. cannot add param group "
                                 f"{named} to the optimizer")
        if not seen.isdisjoint(ids):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _check_lr(lr):
    if isinstance(lr, ember.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def _check_at_least_zero(**options):
    """Complaints about options that must not be negative, by the names that PyTorch's messages give them."""
    for name, value in options.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def _check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


class EachParameter(Optimizer):
    """Base of optimizers whose rule is written with plain operators, one parameter after the other.

    A class gives _start(group, p), the state before the first step, and _update(group, p, grad, state), the step.
    With differentiable=True autograd records the step, and a rule must not write what an earlier operator saved.
    Complex parameters are updated as pairs of reals where `_complex_as_pairs` says so: rules write their state in place.
    """

    _options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}  # of old checkpoints
    _complex_as_pairs = True

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._options.items():
                group.setdefault(name, value)
            _restore_steps(self, group)

    @_use_grad_for_differentiable
    def step(self, closure=None) -> Any:
        """Update every parameter that has a gradient. Returns closure()'s loss, or None."""
        loss = None
        if closure is not None:
            with ember.enable_grad():
                loss = closure()
        for group in self.param_groups:
            maximize = group.get("maximize", False)
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(self._start(group, p))
                if maximize:
                    grad = -grad
                if self._complex_as_pairs and p.is_complex():
                    pairs = {name: _pair(value) for name, value in state.items()}
                    self._update(group, ember.view_as_real(p), ember.view_as_real(grad), pairs)
                else:
                    self._update(group, p, grad, state)
        return loss


def _pair(value):
    return ember.view_as_real(value) if isinstance(value, ember.Tensor) and value.is_complex() else value


def _zeros(p):
    return ember.zeros_like(p, memory_format=ember.preserve_format)
