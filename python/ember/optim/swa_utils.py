"""Averages of weights: stochastic weight averaging (P. Izmailov and others, 2018) and exponential moving averages."""

import itertools
import math
import warnings
from copy import deepcopy
from typing import Any

import ember
from ember.nn import Module
from .lr_scheduler import LRScheduler, _per_group
from .optimizer import Optimizer

__all__ = ["AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn",
           "get_swa_avg_fn"]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999) -> Any:
    """A function (averages, currents, count) that moves every average towards its current: decay * average + ..."""
    _check_decay(decay)

    @ember.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Any:
    """A function (averages, currents, count) that takes each current into the equal average of count so far."""
    @ember.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, current in zip(averaged_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, float(1 / (num_averaged + 1)))
            else:
                average.add_((current - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay=0.999) -> Any:
    """A function (average, current, count) -> the next exponential moving average."""
    _check_decay(decay)

    @ember.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Any:
    """A function (average, current, count) -> the equal average with current taken in."""
    @ember.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of model whose parameters are averages of what update_parameters() was given.

    avg_fn (one parameter) or multi_avg_fn (lists) says how; without either, the equal average. use_buffers: buffers are
    averaged too; otherwise they are copied. Buffer n_averaged counts the updates.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False) -> None:
        super().__init__()
        assert avg_fn is None or multi_avg_fn is None, "Only one of avg_fn and multi_avg_fn should be provided"
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", ember.tensor(0, dtype=ember.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs) -> Any:
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        return [t.detach() for t in (itertools.chain(model.parameters(), model.buffers()) if self.use_buffers
                                     else model.parameters())]

    def update_parameters(self, model) -> None:
        """Take the parameters of model into the averages; the first time they are copied."""
        own, new = self._averaged(self.module), self._averaged(model)
        new = [t.to(p.device) for t, p in zip(new, own)]
        count = self.n_averaged.item()
        if count == 0:
            for p, t in zip(own, new):
                p.copy_(t)
        elif self.avg_fn is not None:
            for p, t in zip(own, new):
                p.copy_(self.avg_fn(p, t, self.n_averaged.to(p.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(own, new, count)
        if not self.use_buffers:
            for p, t in zip(self.module.buffers(), model.buffers()):
                p.detach().copy_(t.detach().to(p.device))
        self.n_averaged += 1


@ember.no_grad()
def update_bn(loader, model, device=None) -> None:
    """Compute the running statistics of batch norms anew: one pass of loader's batches (or their first items)."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, ember.nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        if device is not None:
            batch = batch.to(device)
        model(batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rate of each group to swa_lr in anneal_epochs steps ("cos" or "linear"), and stays there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1) -> None:
        if isinstance(optimizer, Optimizer):
            for group, rate in zip(optimizer.param_groups, _per_group("swa_lr", optimizer, swa_lr)):
                group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step):
        """How far the annealing is after `step` steps, from 0 to 1."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> Any:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                          UserWarning, stacklevel=2)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(max(0, step - 1)), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            if before == 1:
                rates.append(group["swa_lr"])
                continue
            start = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
