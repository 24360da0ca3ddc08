"""optim: the numbers of SGD, Adam and AdamW, their saved state, hooks and complaints."""

import copy
import importlib
import os
import pickle
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)

SGD_OPTIONS = [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
               {"momentum": 0.8, "dampening": 0.3, "maximize": True}, {"weight_decay": 0.2, "maximize": True},
               {"momentum": 0.9, "foreach": True}, {"fused": False}]
ADAM_OPTIONS = [{}, {"weight_decay": 0.1, "amsgrad": True}, {"maximize": True, "betas": (0.5, 0.9)},
                {"eps": 1e-3, "decoupled_weight_decay": True, "weight_decay": 0.1}, {"foreach": True}]
ADAMW_OPTIONS = [{}, {"amsgrad": True, "weight_decay": 0.3}, {"maximize": True}]


def params(T, dtype=None):
    shapes = ((3, 2), (4,), ())
    return [T.nn.Parameter(T.linspace(-1, 1 + i, max(1, T.empty(s).numel()), dtype=dtype).reshape(s))
            for i, s in enumerate(shapes)]


def set_grads(T, ps, step):
    for i, p in enumerate(ps):
        n = max(1, p.numel())
        p.grad = (T.linspace(-1.5, 2, n, dtype=p.dtype) * (step + 1 - i)).reshape(p.shape)
    if step == 1:
        ps[1].grad = None  # This one starts, and counts its steps, later.


def trajectory(T, make, dtype=None, steps=5):
    """The parameters after each of some steps, and the state at the end; saved and loaded on the way."""
    ps = params(T, dtype)
    opt = make(ps)
    seen = []
    for step in range(steps):
        set_grads(T, ps, step)
        if step == 3:
            saved = opt.state_dict()
            opt = make(ps)
            opt.load_state_dict(saved)
        opt.step()
        seen.append([p.detach().clone() for p in ps])
    return [seen, opt.state_dict(), repr(opt)]


def all_options(T, name, options):
    return [trajectory(T, lambda ps: getattr(T.optim, name)(ps, lr=0.05, **o)) for o in options]


@cases.add(tol=2e-6)
def sgd(T):
    return all_options(T, "SGD", SGD_OPTIONS)


@cases.add(tol=2e-6)
def adam(T):
    return all_options(T, "Adam", ADAM_OPTIONS)


@cases.add(tol=2e-6)
def adamw(T):
    return all_options(T, "AdamW", ADAMW_OPTIONS)


@cases.add(tol=1e-12)
def double_precision(T):
    o = T.optim
    return [trajectory(T, make, T.float64) for make in (lambda p: o.SGD(p, 0.1, 0.9), lambda p: o.Adam(p, 0.1),
                                                        lambda p: o.AdamW(p, 0.1, amsgrad=True))]


@cases.add(tol=1e-6)
def two_dtypes_in_one_group(T):
    ps = [T.nn.Parameter(T.ones(2)), T.nn.Parameter(T.ones(3, dtype=T.float64)), T.nn.Parameter(T.zeros(1))]
    opt = T.optim.Adam(ps, lr=0.1)
    for p in ps:
        p.grad = T.ones_like(p) * 2
    opt.step()
    return list(ps)


@cases.add(tol=1e-6)
def groups(T):
    ps = params(T)
    opt = T.optim.SGD([{"params": ps[:1], "lr": 0.5}, {"params": ps[1:], "momentum": 0.9}], lr=0.1)
    opt.add_param_group({"params": T.nn.Parameter(T.ones(1)), "weight_decay": 0.5})
    set_grads(T, ps, 0)
    opt.param_groups[2]["params"][0].grad = T.ones(1)
    opt.step()
    opt.step()
    return [list(ps), opt.param_groups[2]["params"][0], repr(opt), opt.state_dict()["param_groups"]]


@cases.add(tol=1e-6)
def named_parameters(T):
    m = T.nn.Linear(2, 1)
    opt = T.optim.SGD(m.named_parameters(), lr=0.1)
    other = T.nn.Parameter(T.ones(1))
    return [opt.state_dict(), raises(opt.add_param_group, {"params": [other]}),
            raises(T.optim.SGD, [("a", other), m.weight], lr=1)]


@cases.add(tol=1e-6)
def closures(T):
    p = T.nn.Parameter(T.tensor([1.0, -2.0]))
    opt = T.optim.Adam([p], lr=0.5)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with T.no_grad():
        losses = [opt.step(closure) for _ in range(3)]
    return [losses, p, p.requires_grad, p.is_leaf]


@cases.add(tol=1e-5)
def differentiable(T):
    out = []
    for make in (lambda q: T.optim.SGD([q], 0.1, 0.9, differentiable=True),
                 lambda q: T.optim.Adam([q], 0.1, differentiable=True)):
        p = T.tensor([1.0, 2.0], requires_grad=True)
        q = p * 1
        q.retain_grad()
        opt = make(q)
        for _ in range(2):
            q.grad = p * p
            opt.step()
        q.sum().backward()
        out.append([q, p.grad])
    return out


@cases.add(tol=1e-6)
def tensor_learning_rate(T):
    out = []
    for name in ("SGD", "Adam", "AdamW"):
        p = T.nn.Parameter(T.ones(2))
        opt = getattr(T.optim, name)([p], lr=T.tensor(0.1))
        p.grad = T.tensor([1.0, -2.0])
        opt.step()
        out.append(p)
    return out


@cases.add()
def zero_grad(T):
    p = T.nn.Parameter(T.ones(2))
    opt = T.optim.SGD([p], lr=0.1)
    p.grad = T.ones(2)
    opt.zero_grad(set_to_none=False)
    kept = p.grad
    opt.zero_grad()
    opt.step()
    return [kept, p.grad is None, p]


@cases.add()
def complaints(T):
    o, p = T.optim, T.nn.Parameter(T.ones(1))
    q = p * 2
    opt = o.SGD([p], lr=1)
    return [raises(o.SGD, [], lr=1), raises(o.SGD, p, lr=1), raises(o.SGD, [3], lr=1), raises(o.SGD, [q], lr=1),
            raises(o.SGD, [p], lr=-1), raises(o.SGD, [p], momentum=-1), raises(o.SGD, [p], weight_decay=-1),
            raises(o.SGD, [p], nesterov=True),
            raises(o.SGD, [{"params": {p}}], lr=1), raises(o.SGD, [p], lr=T.ones(2)),
            raises(o.SGD, [p], fused=True, foreach=True), raises(o.Adam, [p], lr=-0.1),
            raises(o.Adam, [p], betas=(1.0, 0.5)), raises(o.Adam, [p], betas=(0.1, -1)), raises(o.Adam, [p], eps=-1),
            raises(o.Adam, [p], weight_decay=-1), raises(o.Adam, [p], lr=T.tensor(0.1), foreach=True),
            raises(opt.add_param_group, [p]), raises(opt.add_param_group, {"params": [p]}),
            warned(o.SGD, [p, p], lr=1)[0], raises(opt.load_state_dict, {"state": {}, "param_groups": []}),
            raises(opt.load_state_dict, {"state": {}, "param_groups": [{"params": [0, 1]}]}),
            raises(o.Optimizer([p], {}).step)]


@cases.add(tol=1e-6)
def hooks(T):
    p = T.nn.Parameter(T.ones(1))
    opt = T.optim.Adam([p], lr=0.1)
    log = []
    opt.register_step_pre_hook(lambda o, a, k: log.append(("pre", o is opt, len(a), k)))
    post = opt.register_step_post_hook(lambda o, a, k: log.append(("post", o is opt, len(a), k)))
    module = importlib.import_module(T.__name__ + ".optim.optimizer")
    every = module.register_optimizer_step_post_hook(lambda o, a, k: log.append("every"))
    opt.register_state_dict_pre_hook(lambda o: log.append("saving"))
    opt.register_state_dict_post_hook(lambda o, s: {**s, "note": 1})
    opt.register_load_state_dict_pre_hook(lambda o, s: log.append(sorted(s)))
    opt.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    p.grad = T.ones(1)
    opt.step()
    post.remove()
    every.remove()
    opt.step()
    opt.load_state_dict(opt.state_dict())
    return log


@cases.add(tol=1e-6)
def user_optimizer(T):
    class Sign(T.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @T.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["calls"] = state.get("calls", 0) + 1
                    p.add_(p.grad, alpha=-group["lr"])

    p = T.nn.Parameter(T.ones(2))
    opt = Sign([p], 0.5)
    calls = []
    opt.register_step_post_hook(lambda *a: calls.append(1))
    p.grad = T.ones(2)
    opt.step()
    return [p, calls, opt.state_dict(), repr(opt)]


@cases.add(tol=1e-6)
def copies(T):
    p = T.nn.Parameter(T.ones(2))
    opt = T.optim.Adam([p], lr=0.1)
    p.grad = T.ones(2)
    opt.step()
    twin = copy.deepcopy(opt)
    other = pickle.loads(pickle.dumps(opt))
    opt.step()
    return [twin.state_dict(), other.state_dict(), twin.param_groups[0]["params"][0] is p]


@cases.add(tol=0)
def step_count_of_half_parameters(T):
    p = T.nn.Parameter(T.zeros(1, dtype=T.bfloat16))
    opt = T.optim.Adam([p], lr=1e-3)
    p.grad = T.ones(1, dtype=T.bfloat16)
    opt.step()
    saved = opt.state_dict()
    saved["state"][0]["step"] = T.tensor(4097.0)
    opt.load_state_dict(saved)
    opt.step()
    loaded = T.optim.Adam([p], lr=1e-3)
    loaded.load_state_dict({"state": {0: {"step": 5, "exp_avg": T.zeros(1), "exp_avg_sq": T.zeros(1)}},
                            "param_groups": loaded.state_dict()["param_groups"]})
    return [opt.state[p]["step"], loaded.state[p]["step"], loaded.state[p]["exp_avg"].dtype]


# ---- schedules -----------------------------------------------------------------------------------------------


def schedules(T):
    L = T.optim.lr_scheduler
    return {
        "lambda": lambda o: L.LambdaLR(o, lambda e: 0.9 ** e),
        "multiplicative": lambda o: L.MultiplicativeLR(o, lambda e: 0.8),
        "step": lambda o: L.StepLR(o, 3), "multistep": lambda o: L.MultiStepLR(o, [2, 2, 5], 0.5),
        "constant": lambda o: L.ConstantLR(o, 0.25, 3), "linear": lambda o: L.LinearLR(o, 0.5, 0.9, 4),
        "exponential": lambda o: L.ExponentialLR(o, 0.9), "polynomial": lambda o: L.PolynomialLR(o, 6, 2.0),
        "cosine": lambda o: L.CosineAnnealingLR(o, 4, 0.01),
        "restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
        "sequential": lambda o: L.SequentialLR(o, [L.ConstantLR(o), L.ExponentialLR(o, 0.9), L.StepLR(o, 2)], [2, 5]),
        "chained": lambda o: L.ChainedScheduler([L.ConstantLR(o), L.ExponentialLR(o, 0.9)]),
        "one cycle": lambda o: L.OneCycleLR(o, 0.5, total_steps=12),
        "one cycle linear": lambda o: L.OneCycleLR(o, [0.5, 0.4], epochs=3, steps_per_epoch=4, three_phase=True,
                                                   anneal_strategy="linear"),
    }


@cases.add(tol=1e-12)
def learning_rates(T):
    out = {}
    for name, make in schedules(T).items():
        ps = params(T)
        opt = T.optim.SGD([{"params": ps[:1], "lr": 0.3}, {"params": ps[1:]}], lr=0.1, momentum=0.5)
        schedule, rates = make(opt), []
        for i in range(11):
            rates.append([[g["lr"], g["momentum"]] for g in opt.param_groups])
            opt.step()
            schedule.step()
            if i == 4:
                saved = opt.state_dict(), schedule.state_dict()
                opt = T.optim.SGD([{"params": ps[:1], "lr": 0.3}, {"params": ps[1:]}], lr=0.1, momentum=0.5)
                schedule = make(opt)
                opt.load_state_dict(saved[0])
                schedule.load_state_dict(saved[1])
                opt._opt_called = True
        out[name] = [rates, schedule.get_last_lr(), schedule.state_dict()]
    return out


@cases.add(tol=1e-12)
def closed_forms(T):
    out = {}
    for name in ("step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine", "restarts"):
        opt = T.optim.SGD(params(T), lr=0.1)
        schedule = schedules(T)[name](opt)
        opt.step()
        rates = []
        for epoch in (1, 3, 4, 2, 7):
            warned(schedule.step, epoch)
            rates.append(opt.param_groups[0]["lr"])
        out[name] = rates
    return out


@cases.add(tol=1e-12)
def plateau(T):
    out = []
    for options in ({}, {"mode": "max", "threshold_mode": "abs", "threshold": 0.5}, {"cooldown": 2, "min_lr": 0.02}):
        opt = T.optim.SGD(params(T), lr=0.1)
        schedule = T.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1, **options)
        rates = []
        for metric in (3.0, 2.0, 2.0, 2.1, 2.0, 1.99999, 1.0, 1.0, 1.0, 1.0, 4.0):
            schedule.step(metric)
            rates.append(opt.param_groups[0]["lr"])
        out.append([rates, schedule.state_dict(), schedule.num_bad_epochs])
    return out


@cases.add(tol=1e-12)
def schedule_complaints(T):
    L, opt = T.optim.lr_scheduler, T.optim.SGD(params(T), lr=0.1)
    early = L.StepLR(opt, 1)
    tensor_lr = T.optim.SGD(params(T), lr=T.tensor(0.5))
    L.StepLR(tensor_lr, 1)
    held = tensor_lr.param_groups[0]["lr"]
    return [warned(early.step)[0], warned(early.get_lr)[0], raises(L.StepLR, 3, 1), held,
            raises(L.StepLR, T.optim.SGD(params(T), lr=0.1), 1, last_epoch=2), raises(L.LambdaLR, opt, []),
            raises(L.ConstantLR, opt, 2), raises(L.LinearLR, opt, 0), raises(L.SequentialLR, opt, [], []),
            raises(L.SequentialLR, opt, [early], [1]), raises(L.ReduceLROnPlateau, opt, factor=2),
            raises(L.ReduceLROnPlateau, opt, "x"), raises(L.CosineAnnealingWarmRestarts, opt, 0),
            raises(L.OneCycleLR, opt, 1.0), raises(L.ChainedScheduler, [])]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
