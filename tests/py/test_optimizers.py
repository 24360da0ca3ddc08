"""optim: every optimizer over 100 steps on the same gradients, its state, its complaints; averages of weights."""

import copy
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)

OPTIONS = {
    "SGD": [{"lr": 0.05}, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}],
    "Adam": [{"lr": 0.02}, {"lr": 0.02, "weight_decay": 0.1, "amsgrad": True}],
    "AdamW": [{"lr": 0.02}, {"lr": 0.02, "amsgrad": True, "maximize": True}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}, {"maximize": True, "alpha": 0.9, "eps": 1e-4}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1}, {"initial_accumulator_value": 0.5, "maximize": True}],
    "Adadelta": [{}, {"rho": 0.8, "weight_decay": 0.1}, {"lr": 0.5, "maximize": True, "eps": 1e-4}],
    "Adamax": [{}, {"betas": (0.8, 0.9), "weight_decay": 0.1}, {"maximize": True}],
    "ASGD": [{}, {"t0": 20, "lambd": 0.01, "weight_decay": 0.1}, {"maximize": True, "alpha": 0.5, "t0": 0}],
    "NAdam": [{}, {"weight_decay": 0.1, "momentum_decay": 0.01}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [{}, {"weight_decay": 0.1, "betas": (0.8, 0.99)}, {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "Rprop": [{}, {"etas": (0.4, 1.3), "step_sizes": (1e-4, 0.5)}, {"maximize": True}],
    "Adafactor": [{}, {"weight_decay": 0.1, "d": 2.0, "beta2_decay": -0.5}, {"eps": (1e-6, 0.01), "maximize": True}],
}
COMPLAINTS = {
    "RMSprop": [{"lr": -1}, {"eps": -1}, {"momentum": -1}, {"weight_decay": -1}, {"alpha": -1}],
    "Adagrad": [{"lr": -1}, {"lr_decay": -1}, {"weight_decay": -1}, {"initial_accumulator_value": -1}, {"eps": -1}],
    "Adadelta": [{"lr": -1}, {"rho": 2}, {"eps": -1}, {"weight_decay": -1}],
    "Adamax": [{"lr": -1}, {"eps": -1}, {"betas": (1.0, 0)}, {"betas": (0, 1.0)}, {"weight_decay": -1}],
    "ASGD": [{"lr": -1}, {"weight_decay": -1}],
    "NAdam": [{"lr": -1}, {"eps": -1}, {"betas": (2, 0)}, {"weight_decay": -1}, {"momentum_decay": -1}],
    "RAdam": [{"lr": -1}, {"eps": -1}, {"betas": (0, -1)}, {"weight_decay": -1}],
    "Rprop": [{"lr": -1}, {"etas": (1.5, 2)}],
    "Adafactor": [{"lr": -1}, {"beta2_decay": 1}, {"eps": (-1, 0)}, {"eps": (None, -1)}, {"d": 0.5}, {"weight_decay": -1}],
    "Muon": [{"lr": -1}, {"momentum": -1}, {"weight_decay": -1}, {"adjust_lr_fn": "x"}],
    "LBFGS": [{"lr": -1}],
}


def hundred(T, name, options, dtype=None):
    """The parameters at every tenth of 100 steps, then the options and the state; saved and loaded half way."""
    make = getattr(T.optim, name)
    ps = [T.nn.Parameter(T.linspace(-1, 1, n, dtype=dtype).reshape(shape)) for n, shape in ((6, (3, 2)), (4, (4,)), (1, ()))]
    if name == "Adafactor":
        ps = ps[:2]
    opt, seen = make(ps, **options), []
    for step in range(100):
        for i, p in enumerate(ps):
            wave = T.linspace(-1, 1, p.numel(), dtype=dtype).reshape(p.shape) * (i + 1) + step * 0.3
            p.grad = wave.sin() + p.detach() * 0.5
        if step == 50:
            saved = copy.deepcopy(opt.state_dict())
            opt = make(ps, **options)
            opt.load_state_dict(saved)
        opt.step()
        if step % 10 == 9:
            seen.append([p.detach().clone() for p in ps])
    return [seen, opt.state_dict(), repr(opt)]


def add_optimizer(name):
    def run(T):
        return [hundred(T, name, options) for options in OPTIONS[name]]

    run.__name__ = f"hundred_steps_of_{name}"
    cases.add(tol=2e-5 if name != "Rprop" else 1e-6)(run)

    def run_double(T):
        return hundred(T, name, OPTIONS[name][-1], T.float64)

    run_double.__name__ = f"double_steps_of_{name}"
    cases.add(tol=1e-9 if name not in ("SGD", "Adam", "AdamW") else 1e-11)(run_double)


for _name in OPTIONS:
    add_optimizer(_name)


@cases.add(tol=2e-2)
def muon(T):
    """Its iteration runs in bfloat16, so the digits that agree are bfloat16's."""
    out = []
    for options in ({}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0}):
        p = T.nn.Parameter(T.linspace(-1, 1, 12).reshape(4, 3))
        opt = T.optim.Muon([p], lr=0.02, **options)
        for step in range(5):
            p.grad = (T.linspace(0, 3, 12) + step).sin().reshape(4, 3)
            opt.step()
        out.append([p, opt.state_dict()])
    return out


@cases.add(tol=2e-6)
def complex_parameters(T):
    out = {}
    for name in ("RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD"):
        p = T.nn.Parameter(T.view_as_complex(T.stack([T.linspace(-1, 1, 4), T.linspace(0, 1, 4)], -1)))
        opt = getattr(T.optim, name)([p])
        for step in range(4):
            p.grad = T.view_as_complex(T.stack([T.linspace(-1, 2, 4) + step, T.linspace(1, 0, 4) - step], -1))
            opt.step()
        out[name] = [p, {k: v for k, v in opt.state[p].items()}]
    return out


@cases.add(tol=1e-5)
def differentiable(T):
    out = {}
    for name in ("RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"):
        p = T.tensor([1.0, 2.0], requires_grad=True)
        q = p * 1
        q.retain_grad()
        opt = getattr(T.optim, name)([q], differentiable=True)
        q.grad = p * p
        opt.step()
        q.sum().backward()
        out[name] = [q, p.grad]
    return out


@cases.add(tol=1e-5)
def lbfgs(T):
    """Rosenbrock's valley, with and without a line search."""
    out = []
    for options in ({"line_search_fn": "strong_wolfe"}, {"lr": 1e-3, "max_iter": 4, "history_size": 2},
                    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 5}):
        p = T.nn.Parameter(T.tensor([-1.2, 1.0], dtype=T.float64))
        opt = T.optim.LBFGS([p], **options)

        def closure():
            opt.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            return loss

        losses = [opt.step(closure) for _ in range(4)]
        state = opt.state_dict()["state"][0]
        out.append([losses, p, state["n_iter"], state["func_evals"], sorted(state), repr(opt)])
    p = T.nn.Parameter(T.ones(1))
    bad = T.optim.LBFGS([p], line_search_fn="other")

    def linear():
        p.grad = T.ones(1)
        return p.sum()

    return [out, raises(bad.step, linear), raises(T.optim.LBFGS, [{"params": [p]}, {"params": [T.nn.Parameter(T.ones(1))]}])]


@cases.add()
def complaints(T):
    p = T.nn.Parameter(T.ones(2, 2))
    out = {name: [raises(getattr(T.optim, name), [p], **options) for options in some] for name, some in COMPLAINTS.items()}
    out["shapes"] = [raises(T.optim.Muon, [T.nn.Parameter(T.ones(2))]), raises(T.optim.RMSprop, [p], lr=T.ones(2)),
                     raises(T.optim.Adagrad, [p], fused=True, foreach=True)]
    return out


@cases.add(tol=1e-6)
def tensor_learning_rates(T):
    out = {}
    for name in ("RMSprop", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop", "Adafactor"):
        p = T.nn.Parameter(T.ones(2))
        opt = getattr(T.optim, name)([p], lr=T.tensor(0.1))
        p.grad = T.tensor([1.0, -2.0])
        opt.step()
        out[name] = p
    return out


@cases.add(tol=1e-6)
def old_checkpoints(T):
    """States that hold numbers where tensors are kept now."""
    out = {}
    for name, state in (("ASGD", {"step": 3.0, "eta": 0.01, "mu": 1, "ax": T.zeros(2)}),
                        ("NAdam", {"step": 3.0, "mu_product": 0.5, "exp_avg": T.ones(2), "exp_avg_sq": T.ones(2)})):
        p = T.nn.Parameter(T.ones(2))
        opt = getattr(T.optim, name)([p])
        opt.load_state_dict({"state": {0: state}, "param_groups": opt.state_dict()["param_groups"]})
        p.grad = T.ones(2)
        opt.step()
        out[name] = [p, opt.state_dict()["state"]]
    return out


# ---- averages of weights ---------------------------------------------------------------------------------------------


def swa(T):
    return importlib.import_module(T.__name__ + ".optim.swa_utils")


@cases.add(tol=1e-6)
def averaged_models(T):
    out = []
    for options in ({}, {"multi_avg_fn": swa(T).get_ema_multi_avg_fn(0.9)}, {"avg_fn": swa(T).get_ema_avg_fn(0.5)},
                    {"avg_fn": swa(T).get_swa_avg_fn(), "use_buffers": True},
                    {"multi_avg_fn": swa(T).get_swa_multi_avg_fn(), "use_buffers": True}):
        model = T.nn.Linear(2, 1)
        model.register_buffer("seen", T.tensor([1.0]))
        with T.no_grad():
            model.weight.fill_(1.0), model.bias.fill_(0.0)
        average = swa(T).AveragedModel(model, **options)
        for i in range(4):
            with T.no_grad():
                model.weight.mul_(2), model.bias.add_(i), model.seen.add_(1)
            average.update_parameters(model)
        out.append([average.state_dict(), average(T.ones(1, 2)), repr(average)])
    return out


@cases.add(tol=1e-12)
def swa_rates(T):
    out = []
    for options in ({"swa_lr": 0.05, "anneal_epochs": 4}, {"swa_lr": [0.01, 0.2], "anneal_strategy": "linear", "anneal_epochs": 3},
                    {"swa_lr": 0.05, "anneal_epochs": 0}):
        opt = T.optim.SGD([{"params": [T.nn.Parameter(T.ones(1))], "lr": 0.3}, {"params": [T.nn.Parameter(T.ones(1))]}], lr=0.1)
        schedule, rates = swa(T).SWALR(opt, **options), []
        for _ in range(6):
            rates.append([group["lr"] for group in opt.param_groups])
            opt.step()
            schedule.step()
        out.append([rates, schedule.state_dict()])
    opt = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1)
    return [out, raises(swa(T).SWALR, opt, 0.1, anneal_strategy="x"), raises(swa(T).SWALR, opt, 0.1, anneal_epochs=-1),
            raises(swa(T).SWALR, opt, [0.1, 0.2]), raises(swa(T).get_ema_avg_fn, 2.0), raises(swa(T).get_ema_multi_avg_fn, -1),
            raises(swa(T).AveragedModel, T.nn.Linear(1, 1), avg_fn=min, multi_avg_fn=min)]


@cases.add(tol=1e-12)
def cyclic_rates(T):
    L, out = T.optim.lr_scheduler, []
    for options in ({"step_size_up": 4}, {"mode": "triangular2", "step_size_up": 3, "step_size_down": 2},
                    {"mode": "exp_range", "gamma": 0.9, "step_size_up": 4, "base_momentum": [0.7], "max_momentum": 0.95},
                    {"scale_fn": lambda x: 0.5 ** x, "scale_mode": "iterations", "step_size_up": 3},
                    {"cycle_momentum": False, "step_size_up": 2}):
        opt = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1, momentum=0.9)
        schedule, rates = L.CyclicLR(opt, 0.01, 0.1, **options), []
        for _ in range(11):
            rates.append([opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]])
            opt.step()
            schedule.step()
        state = schedule.state_dict()
        schedule.load_state_dict(copy.deepcopy(state))
        out.append([rates, state, schedule.get_last_lr()])
    adam = T.optim.Adam([T.nn.Parameter(T.ones(1))])
    L.CyclicLR(adam, 0.01, 0.1)
    opt = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1)
    return [out, adam.param_groups[0]["betas"], raises(L.CyclicLR, opt, 0.1, 0.2, mode="x"), raises(L.CyclicLR, opt, [0.1, 0.2], 1),
            raises(L.CyclicLR, T.optim.Rprop([T.nn.Parameter(T.ones(1))]), 0.1, 0.2), raises(L.CyclicLR, 3, 0.1, 0.2),
            warned(L.CyclicLR, opt, 0.1, 0.2)[0]]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
