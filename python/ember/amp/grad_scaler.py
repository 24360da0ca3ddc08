"""GradScaler: keeps small float16 gradients from vanishing by scaling the loss, and skips steps that overflowed."""

import enum
import inspect
import warnings
from collections.abc import Iterable
from typing import Any

import ember

__all__ = ["OptState", "GradScaler"]


class OptState(enum.Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """scale(loss).backward(), step(optimizer), update(): each iteration.

    The scale grows by `growth_factor` after `growth_interval` steps without overflow, and shrinks by `backoff_factor`
    after one with it.
    """

    def __init__(self, device="cuda", init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # a tensor from the first scale() on
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = {}

    # ---------------------------------------------------------------- the iteration
    def scale(self, outputs) -> Any:
        """outputs (a tensor, or an iterable of them) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, ember.Tensor):
            self._start(outputs.device)
            return outputs * self._scale.to(device=outputs.device)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def _start(self, device):
        if self._scale is not None:
            return
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = ember.full((), self._init_scale, dtype=ember.float32, device=device)
        self._growth_tracker = ember.full((), self._init_growth_tracker, dtype=ember.int32, device=device)

    def _check_started(self, caller):
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(f"Attempted {caller} but {name} is None.  {fix}")

    def _state_of(self, optimizer):
        return self._per_optimizer_states.setdefault(id(optimizer), {"stage": OptState.READY, "found_inf_per_device": {}})

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiplies the gradients and looks for infinities. Gives {device: 0-dim tensor, 1 if there was one}."""
        lists = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, ember.Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if param.grad.dtype == ember.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                lists.setdefault(param.grad.device, []).append(param.grad)
        found = {device: found_inf.to(device=device, copy=i > 0) for i, device in enumerate(lists)}
        with ember.no_grad():
            for device, grads in lists.items():
                ember._amp_foreach_non_finite_check_and_unscale_(grads, found[device], inv_scale.to(device=device))
        return found

    def _look(self, optimizer, factor, allow_fp16):
        zero = ember.full((), 0.0, dtype=ember.float32, device=self._scale.device)
        state = self._state_of(optimizer)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, factor, zero, allow_fp16)
        return state["found_inf_per_device"]

    def unscale_(self, optimizer) -> None:
        """Divides the optimizer's gradients by the scale: to clip them, say, before step()."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._look(optimizer, self._scale.double().reciprocal().float(), False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs) -> Any:
        """optimizer.step(), with gradients unscaled, unless one of them is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_unscales(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            overflowed = any(found.item() for found in state["found_inf_per_device"].values())
            result = None if overflowed else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_unscales(self, optimizer, state, args, kwargs):
        """Of a fused optimizer, which takes scale and verdict as tensors."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the "
                          "near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed "
                          "optimizer and let the optimizer use them directly.", FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        before = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.UNSCALED:
            optimizer.grad_scale = before
        else:
            optimizer.grad_scale = self._scale if before is None else self._scale * before
        optimizer.found_inf = sum(found.to(self._scale.device) for found in state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale=None) -> None:
        """The scale for the next iteration, from what this one has found; or `new_scale`."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is None:
            found = [t.to(device=self._scale.device) for state in self._per_optimizer_states.values()
                     for t in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            ember._amp_update_scale_(self._scale, self._growth_tracker, sum(found[1:], found[0]), self._growth_factor,
                                     self._backoff_factor, self._growth_interval)
        elif isinstance(new_scale, float):
            self._scale.fill_(new_scale)
        else:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                                     "torch.FloatTensor with requires_grad=False.")
            self._scale.copy_(new_scale)
        self._per_optimizer_states = {}

    # ---------------------------------------------------------------- questions, settings
    def _get_scale_async(self):
        return self._scale

    def get_scale(self) -> Any:
        """The scale as a number; 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def get_growth_factor(self) -> Any:
        return self._growth_factor

    def set_growth_factor(self, new_factor) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> Any:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> Any:
        return self._growth_interval

    def set_growth_interval(self, new_interval) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> Any:
        """Whether losses are scaled at all: what the constructor was told."""
        return self._enabled

    def _check_inf_per_device(self, optimizer):
        self._check_started("_check_inf_per_device")
        return self._look(optimizer, ember.full((), 1.0, dtype=ember.float32, device=self._scale.device), True)

    def _found_inf_per_device(self, optimizer):
        return self._state_of(optimizer)["found_inf_per_device"]

    # ---------------------------------------------------------------- state
    def state_dict(self) -> Any:
        """Scale, factors, interval and the count of steps without overflow; empty if disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict) -> None:
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of "
                               "GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the "
                                     "end after scaler.update().")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
