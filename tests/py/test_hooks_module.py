"""Hooks of modules, and the tools of autograd that are written in Python: modes, checkpoint, gradcheck, graph."""

import gc
import importlib
import os
import sys
import weakref
from collections import namedtuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def sub(T, name):
    return importlib.import_module(f"{T.__name__}.{name}")


def scale(T, factor=2.0):
    class Scale(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = T.nn.Parameter(T.tensor(factor))

        def forward(self, x, shift=0.0):
            return x * self.factor + shift

    return Scale()


# ---- forward hooks -------------------------------------------------------------------------------------------


@cases.add()
def forward_hooks(T):
    m, x, log = scale(T), T.tensor([1.0, 2.0]), []
    m.register_forward_pre_hook(lambda mod, args: log.append(("pre", len(args))))
    m.register_forward_pre_hook(lambda mod, args: args[0] + 1, prepend=True)
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"shift": kwargs["shift"] * 10}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: log.append(("post", args[0].tolist(), out.tolist())))
    last = m.register_forward_hook(lambda mod, args, kwargs, out: out + kwargs["shift"], with_kwargs=True)
    first = m(x, shift=1.0)
    last.remove()
    last.remove()
    second = m(x, shift=1.0)
    with m.register_forward_hook(lambda *a: T.zeros(1)):
        third = m(x, shift=0.0)
    bad = scale(T)
    bad.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    return [first, second, third, m(x, shift=0.0), log, raises(bad, x)]


@cases.add()
def always_called_hooks(T):
    class Fails(T.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    m, log = Fails(), []
    m.register_forward_hook(lambda mod, args, out: log.append("not this"))
    m.register_forward_hook(lambda mod, args, out: log.append(out is None), always_call=True)

    def broken(mod, args, out):
        raise KeyError("silenced")

    m.register_forward_hook(broken, always_call=True)
    said = []

    def call():
        said.append(raises(m, T.ones(1)))

    return [warned(call)[0], said, log, raises(T.nn.Module(), 1)]


@cases.add()
def global_hooks(T):
    mod, log = sub(T, "nn.modules.module"), []
    handles = [mod.register_module_forward_pre_hook(lambda m, a: log.append(f"pre {type(m).__name__}")),
               mod.register_module_forward_hook(lambda m, a, o: log.append(f"post {type(m).__name__}")),
               mod.register_module_full_backward_hook(lambda m, gi, go: log.append(f"back {type(m).__name__}")),
               mod.register_module_module_registration_hook(lambda m, n, s: log.append(f"module {n}")),
               mod.register_module_parameter_registration_hook(lambda m, n, p: log.append(f"parameter {n}")),
               mod.register_module_buffer_registration_hook(lambda m, n, b: log.append(f"buffer {n}"))]
    try:
        net = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.Tanh())
        net.register_buffer("b", None)
        net(T.ones(1, 1)).sum().backward()
        clash = raises(mod.register_module_backward_hook, lambda *a: None)
    finally:
        for h in handles:
            h.remove()
    n = len(log)
    net(T.ones(1, 1)).sum().backward()
    return [log, clash, len(log) == n]


# ---- backward hooks ------------------------------------------------------------------------------------------


@cases.add()
def full_backward_hooks(T):
    m, log = scale(T), []
    x = T.tensor([1.0, 2.0], requires_grad=True)
    m.register_full_backward_pre_hook(lambda mod, go: log.append(go[0].tolist()))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    m.register_full_backward_hook(lambda mod, gi, go: log.append([len(gi), gi[0].tolist(), go[0].tolist()]))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] + 1,))
    y = m(x)
    y.sum().backward()
    bad, worse = scale(T), scale(T)
    bad.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    worse.register_full_backward_pre_hook(lambda mod, go: (go[0], go[0]))
    return [y, type(y.grad_fn).__name__, log, x.grad, m.factor.grad, raises(bad(x).sum().backward),
            raises(worse(x).sum().backward), raises(m.register_backward_hook, lambda *a: None)]


@cases.add()
def backward_hooks_see_none(T):
    class Pair(T.nn.Module):
        def forward(self, a, n, b):
            return a * b, n, b + 1

    m, log = Pair(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append([[g if g is None else g.tolist() for g in gs]
                                                                 for gs in (gi, go)]))
    a, b = T.tensor([3.0], requires_grad=True), T.tensor([2.0])
    y, _, z = m(a, 5, b)
    (y * 2).sum().backward()
    linear = T.nn.Linear(1, 1)
    linear.register_full_backward_hook(lambda mod, gi, go: log.append([gi[0] is None, len(gi), go[0].tolist()]))
    out = linear(T.ones(1, 1))
    warns = warned(out.sum().backward)[0]
    return [log, a.grad, warns]


@cases.add()
def backward_hooks_odd_outputs(T):
    Two = namedtuple("Two", ["p", "q"])

    class Named(T.nn.Module):
        def forward(self, x):
            return Two(x * 2, x * 3)

    class Listed(T.nn.Module):
        def forward(self, x):
            return [x * 2]

    m, log, x = Named(), [], T.ones(1, requires_grad=True)
    m.register_full_backward_hook(lambda mod, gi, go: log.append([g.tolist() for g in (*gi, *go)]))
    out = m(x)
    (out.p + out.q).sum().backward()
    listed = Listed()
    listed.register_full_backward_hook(lambda *a: log.append("never"))
    warns = warned(listed, x)[0]
    with T.no_grad():
        m(x)
    return [type(out).__name__, log, [w.split("<")[0] for w in warns]]


@cases.add()
def old_backward_hooks(T):
    m, log = T.nn.Tanh(), []
    m.register_backward_hook(lambda mod, gi, go: log.append([type(mod).__name__, gi[0].tolist(), go[0].tolist()]))
    x = T.zeros(2, requires_grad=True)
    m(x).sum().backward()
    return [log, x.grad, raises(m.register_full_backward_hook, lambda *a: None)]


# ---- state dict hooks, life of handles -----------------------------------------------------------------------


@cases.add()
def state_dict_hooks(T):
    m, log = T.nn.Linear(1, 1), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(["pre", prefix, keep]))
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: log.append(["post", list(sd), prefix]))
    m._register_state_dict_hook(lambda mod, sd, prefix, meta: {**sd, "more": T.ones(1)})
    m.register_load_state_dict_pre_hook(lambda mod, sd, prefix, meta, strict, missing, unexpected, errors:
                                        log.append(["load", type(mod).__name__, list(sd), prefix, strict]) or
                                        sd.pop("more", None) and None)
    m.register_load_state_dict_post_hook(lambda mod, keys: log.append([list(keys.missing_keys)]))
    sd = m.state_dict()
    result = m.load_state_dict(sd)
    bad, worse = T.nn.Linear(1, 1), T.nn.Linear(1, 1)
    bad.register_state_dict_post_hook(lambda *a: 1)
    worse.register_load_state_dict_post_hook(lambda *a: 1)
    return [list(sd), repr(result), log, raises(bad.state_dict), raises(worse.load_state_dict, worse.state_dict())]


@cases.add()
def handles_keep_nothing_alive(T):
    m = scale(T)
    handle = m.register_forward_hook(lambda *a: None)
    ref = weakref.ref(m)
    m.register_load_state_dict_pre_hook(lambda *a: None)
    del m
    gc.collect()
    handle.remove()
    return [ref() is None]


# ---- grad modes ----------------------------------------------------------------------------------------------


@cases.add()
def grad_modes(T):
    on = T.is_grad_enabled

    @T.no_grad()
    def plain():
        return on()

    @T.no_grad
    def bare():
        "doc"
        return on()

    @T.enable_grad()
    def enabled():
        return on()

    @T.no_grad()
    def generator(seen):
        seen.append(on())
        got = yield on()
        seen.append([got, on()])
        try:
            yield on()
        except KeyError:
            seen.append(["thrown", on()])
        yield 3
        return 7

    seen = []
    gen = generator(seen)
    walked = [next(gen), on(), gen.send("x"), on(), gen.throw(KeyError("k")), on()]
    gen.close()
    with T.no_grad():
        inside = [on(), enabled()]
    setter = T.set_grad_enabled(False)
    off = on()
    T.set_grad_enabled(True)
    with T.set_grad_enabled(False):
        managed = on()

    @T.set_grad_enabled(False)
    def decorated():
        return on()

    def use_class():
        @T.no_grad()
        class Thing:
            def __init__(self):
                self.mode = on()
        return Thing().mode

    try:
        with T.no_grad():
            raise ValueError
    except ValueError:
        after = on()
    return [plain(), bare(), bare.__doc__, bare.__name__, walked, seen, inside, repr(setter).split(".")[-1], off,
            managed, decorated(), on(), warned(use_class), after]


@cases.add()
def inference(T):
    with T.inference_mode():
        x = T.ones(1, requires_grad=False)
        inside = [T.is_inference_mode_enabled(), x.is_inference(), T.is_grad_enabled()]

    @T.inference_mode()
    def f():
        return T.is_inference_mode_enabled()

    @T.inference_mode
    def g():
        return T.is_inference_mode_enabled()

    with T.inference_mode(False):
        off = T.is_inference_mode_enabled()
    return [inside, f(), g(), off, T.is_inference_mode_enabled()]


# ---- checkpoint ----------------------------------------------------------------------------------------------


@cases.add(tol=1e-5)
def checkpoints(T):
    ck = sub(T, "utils.checkpoint")
    w, out = T.linspace(-1, 1, 9).reshape(3, 3).requires_grad_(), []
    for reentrant in (True, False):
        calls = []

        def f(x):
            calls.append(T.is_grad_enabled())
            return T.nn.functional.dropout(T.tanh(x @ w), 0.5)

        x = T.linspace(0, 1, 6).reshape(2, 3).requires_grad_()
        T.manual_seed(3)
        y = ck.checkpoint(f, x, use_reentrant=reentrant)
        after = T.rand(2)
        y.sum().backward()
        T.manual_seed(3)
        plain = f(x)
        gx, gw = T.autograd.grad(plain.sum(), (x, w))
        out.append([bool((x.grad == gx).all()), bool((w.grad == gw).all()), bool((y == plain).all()), after, calls])
        w.grad = None
    return out


@cases.add(tol=1e-5)
def checkpoint_details(T):
    ck = sub(T, "utils.checkpoint")
    x = T.linspace(0.5, 1, 3).requires_grad_()
    runs = []

    def f(a, k=1.0, stop=None):
        b = T.exp(T.tanh(a) * k)
        runs.append(stop)
        return b + 1

    y = ck.checkpoint(lambda a: f(ck.checkpoint(f, a, use_reentrant=False), k=2.0), x, use_reentrant=False)
    nested = T.autograd.grad(y.sum(), x)[0]
    y = ck.checkpoint(f, x, k=3.0, use_reentrant=False)
    g1, = T.autograd.grad(y.sum(), x, create_graph=True)
    g2, = T.autograd.grad(g1.sum(), x)
    runs.clear()
    ck.checkpoint(f, x, use_reentrant=False).sum().backward()
    early = len(runs)
    with ck.set_checkpoint_early_stop(False):
        y = ck.checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    late = len(runs) - early
    flips = []

    def flip(a):
        flips.append(1)
        return T.exp(T.tanh(a)) if len(flips) == 1 else T.tanh(a)

    def shrink(a):
        flips.append(1)
        return T.tanh(a) if len(flips) == 1 else T.tanh(a[:1])

    other = raises(ck.checkpoint(flip, x, use_reentrant=False).sum().backward).split("\n")[:3]
    flips.clear()
    meta = raises(ck.checkpoint(shrink, x, use_reentrant=False).sum().backward).split("\n")[:4]
    seq = T.nn.Sequential(T.nn.Tanh(), T.nn.Linear(3, 3), T.nn.Tanh(), T.nn.Linear(3, 1))
    same = (ck.checkpoint_sequential(seq, 2, x, use_reentrant=False) == seq(x)).all()
    return [nested, g1, g2, early, late, other, meta, bool(same), warned(ck.checkpoint, f, x)[0],
            raises(ck.checkpoint, f, x, use_reentrant=True, k=1), warned(ck.checkpoint, f, x.detach(),
                                                                         use_reentrant=True)[0],
            raises(lambda: T.autograd.grad(ck.checkpoint(f, x, use_reentrant=True).sum(), x))]


# ---- gradcheck, graph ----------------------------------------------------------------------------------------


@cases.add()
def gradient_checks(T):
    a = T.autograd
    x = T.linspace(-1, 1.3, 6, dtype=T.float64).reshape(2, 3).requires_grad_()
    z = (T.linspace(0, 1, 4, dtype=T.float64) * (1 + 2j)).detach().requires_grad_()
    ok = [check(f, (x,), fast_mode=fast) for fast in (False, True) for check in (a.gradcheck, a.gradgradcheck)
          for f in (T.tanh, lambda t: (t * t, t.sum()), lambda t: t.transpose(0, 1)[1:] * t[0, 0])]
    ok += [a.gradcheck(lambda t: t * t, (z,)), a.gradcheck(lambda t: (t * t).abs(), (z,), fast_mode=True)]

    def wrong(t):
        return t.detach() * t

    class Offset(a.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 + 1

    return [ok, a.gradcheck(wrong, (x,), raise_exception=False), raises(a.gradcheck, wrong, (x,)),
            raises(a.gradcheck, wrong, (x,), fast_mode=True).split(",")[0],
            raises(a.gradcheck, Offset.apply, (x,), atol=9), raises(a.gradcheck, T.tanh, (x.detach(),)),
            warned(a.gradcheck, T.tanh, (T.zeros(2, requires_grad=True),), atol=1.0)]


@cases.add()
def graph_tools(T):
    graph = sub(T, "autograd.graph")
    a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    seen, packed = [], []
    c, d = a * 2, b * 3
    every = graph.register_multi_grad_hook((a, c, b, d), lambda gs: seen.append([g is not None for g in gs]))
    (c * d).sum().backward(retain_graph=True)
    c.sum().backward()
    every.remove()
    some = graph.register_multi_grad_hook((b, d), lambda g: seen.append(g.tolist()), mode="any")
    d.sum().backward()
    some.remove()
    with graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or len(packed), lambda i: T.full((2,), 5.0 * i)):
        y = (a * b).sum()
    a.grad = b.grad = None
    y.backward()
    hooked = [packed, a.grad, b.grad]
    with graph.save_on_cpu():
        y = (a * b).sum()
    a.grad = None
    y.backward()

    def inside():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with graph.disable_saved_tensors_hooks("not here"):
        disabled = raises(inside)
    inside()
    version = a._version
    graph.increment_version(a)
    edge = graph.get_gradient_edge(c)
    return [seen, hooked, a.grad, disabled, a._version - version, type(edge.node).__name__, edge.output_nr,
            isinstance(c.grad_fn, graph.Node), isinstance(c, graph.Node), issubclass(type(c.grad_fn), graph.Node),
            raises(graph.get_gradient_edge, T.ones(1)),
            raises(graph.register_multi_grad_hook, (a,), print, mode="x")]


@cases.add()
def anomaly(T):
    state = []
    warns = []
    for _ in range(1):
        warns, _ = warned(lambda: T.autograd.detect_anomaly().__enter__())
        state.append(T.is_anomaly_enabled())
        T.autograd.set_detect_anomaly(False)
    with T.autograd.set_detect_anomaly(True, check_nan=False):
        state.append([T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()])
    return [warns, state, T.is_anomaly_enabled()]


# ---- __torch_function__ in functions that are written in Python ----------------------------------------------


@cases.add()
def functions_overridden(T):
    o, F, log = sub(T, "overrides"), T.nn.functional, []

    class Base:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append([cls.__name__, func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})])
            return NotImplemented if cls.__name__ == "Derived" else 5

    class Derived(Base):
        pass

    class Shy:
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            return NotImplemented

    class Mode(o.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(["mode", func.__name__])
            return func(*args, **(kwargs or {}))

    answers = [F.mse_loss(Base(), T.ones(1)), F.cross_entropy(T.ones(1), Derived(), weight=Base()),
               F.softmin(Base(), 1),
               F.dropout(Base(), p=0.25), F.embedding(Base(), Base()), T.nn.init.uniform_(Base())]
    with Mode():
        answers.append(F.relu(T.tensor([-1.0, 2.0])))
        answers.append(T.nn.Tanh()(T.zeros(1)))
    shy = raises(F.relu, Shy())
    return [answers, log, shy.split(":")[:2], o.is_tensor_like(T.ones(1)),
            o.is_tensor_like(Base()), o.is_tensor_like([1]), o.has_torch_function((T.ones(1), Base())),
            o.has_torch_function_unary(T.nn.Parameter(T.ones(1)))]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
