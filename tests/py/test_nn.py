"""nn: layers, initial values, losses, Module's bookkeeping."""

import copy
import os
import pickle
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def grid(T, *shape, low=-2.0, high=2.0):
    n = 1
    for s in shape:
        n *= s
    return T.linspace(low, high, n).reshape(shape)


# ---- initial values: the same bits for a seed ----------------------------------------------------------------


@cases.add(tol=0)
def initial_linear(T):
    return dict(T.nn.Linear(5, 3).state_dict())


@cases.add(tol=0)
def initial_mlp(T):
    return dict(T.nn.Sequential(T.nn.Linear(7, 20), T.nn.ReLU(), T.nn.Linear(20, 2, bias=False)).state_dict())


@cases.add(tol=1e-6)
def initial_embedding(T):
    return dict(T.nn.Embedding(5, 4, padding_idx=-2).state_dict())


@cases.add(tol=0)
def initial_bilinear_f64(T):
    return dict(T.nn.Bilinear(2, 3, 2, dtype=T.float64).state_dict())


@cases.add(tol=1e-6)
def init_functions(T):
    init, out = T.nn.init, {}
    for name in ("uniform_", "normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
                 "ones_", "zeros_", "eye_"):
        out[name] = getattr(init, name)(T.empty(3, 4))
    out["constant_"] = init.constant_(T.empty(2), 3.5)
    out["kaiming options"] = init.kaiming_uniform_(T.empty(3, 4), mode="fan_out", nonlinearity="relu")
    out["gains"] = [init.calculate_gain(n) for n in ("linear", "tanh", "relu", "leaky_relu", "selu")]
    out["slope"] = init.calculate_gain("leaky_relu", 0.2)
    out["errors"] = [raises(init.calculate_gain, "what"), raises(init.calculate_gain, "leaky_relu", "x"),
                     raises(init.xavier_uniform_, T.empty(3)), raises(init.kaiming_uniform_, T.empty(2, 2), 0, "fan"),
                     raises(init.eye_, T.empty(2))]
    out["no-op"] = warned(init.kaiming_uniform_, T.empty(0, 3))
    out["old name"] = warned(init.constant, T.empty(1), 2.0)
    return out


# ---- layers --------------------------------------------------------------------------------------------------


@cases.add()
def linear_forward_backward(T):
    m = T.nn.Linear(4, 3)
    x = grid(T, 2, 4).requires_grad_()
    y = m(x)
    (y * y).sum().backward()
    return [y, x.grad, m.weight.grad, m.bias.grad, T.nn.Linear(4, 3)(grid(T, 2, 5, 4)).shape]


@cases.add()
def activations(T):
    x = grid(T, 3, 4)
    nn = T.nn
    layers = [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.GELU(), nn.GELU("tanh"), nn.Softmax(1), nn.Softmax(0),
              nn.LogSoftmax(-1), nn.Identity(1, a=2), nn.Flatten(0), nn.Flatten(), nn.Unflatten(1, (2, 2)),
              nn.Softmin(1), nn.Softsign(), nn.Tanhshrink()]
    out = []
    for layer in layers:
        xi = x.clone().requires_grad_()
        y = layer(xi)
        (y * y).sum().backward()
        out.append([repr(layer), y, xi.grad])
    return out


@cases.add()
def more_activations(T):
    nn, x = T.nn, T.tensor([[-4.0, -3.0, -1.0, -0.5], [0.0, 0.25, 0.5, 1.0], [2.0, 3.0, 6.0, 25.0]])
    layers = [nn.LeakyReLU(), nn.LeakyReLU(0.3, inplace=True), nn.ELU(0.7), nn.SELU(), nn.CELU(0.4), nn.SiLU(),
              nn.Mish(), nn.Mish(inplace=True), nn.Hardtanh(-1.0, 0.5), nn.ReLU6(), nn.Hardsigmoid(), nn.Hardswish(),
              nn.LogSigmoid(), nn.Hardshrink(), nn.Softshrink(0.75), nn.Softplus(), nn.Softplus(2.0, 1.0),
              nn.PReLU(), nn.PReLU(4, 0.5), nn.GLU(), nn.GLU(1), nn.Threshold(0.4, -3.0)]
    out = []
    for layer in layers:
        xi = x.clone().requires_grad_()
        y = layer(xi * 1)
        (y * y).sum().backward()
        out.append([repr(layer), y, xi.grad])
    return out


@cases.add()
def bilinear(T):
    m = T.nn.Bilinear(2, 3, 2)
    with T.no_grad():
        m.weight.copy_(grid(T, 2, 2, 3))
        m.bias.copy_(T.tensor([1.0, -1.0]))
    a, b = grid(T, 2, 2, 2).requires_grad_(), grid(T, 2, 2, 3, low=0.5).requires_grad_()
    y = m(a, b)
    (y * y).sum().backward()
    return [y, a.grad, b.grad, m.weight.grad, m.bias.grad, raises(m, a, a), raises(m, a, b[0])]


@cases.add()
def one_hot(T):
    f = T.nn.functional.one_hot
    return [f(T.tensor([[0, 2], [1, 1]])), f(T.tensor([0, 1]), 4), raises(f, T.tensor([1.0])),
            raises(f, T.tensor([-1])), raises(f, T.tensor([3]), 2)]


@cases.add(tol=1e-6)
def other_dropouts(T):
    x = grid(T, 2, 3, 4)
    return [T.nn.Dropout1d(0.4)(x), T.nn.AlphaDropout(0.3)(x), raises(T.nn.Dropout1d(), T.ones(2))]


@cases.add()
def relu_inplace(T):
    x = grid(T, 5)
    y = T.nn.ReLU(inplace=True)(x)
    return [y is x, x]


@cases.add(tol=1e-6)
def dropout(T):
    m = T.nn.Dropout(0.4)
    x = T.ones(30)
    first = m(x)
    return [first, m(x), m.eval()(x), T.nn.functional.dropout(x, 1.0), raises(T.nn.Dropout, 1.5),
            raises(T.nn.functional.dropout, x, -1)]


@cases.add()
def embedding(T):
    m = T.nn.Embedding.from_pretrained(grid(T, 4, 3), freeze=False, padding_idx=1)
    i = T.tensor([[0, 1], [1, 3]])
    y = m(i)
    y.sum().backward()
    renorm = T.nn.Embedding.from_pretrained(grid(T, 4, 3), max_norm=1.0)
    z = renorm(T.tensor([0, 0, 2]))
    frozen = T.nn.Embedding.from_pretrained(T.ones(2, 2)).weight.requires_grad
    return [y, m.weight.grad, z, renorm.weight, frozen, raises(T.nn.Embedding, 3, 2, padding_idx=3), repr(m)]


@cases.add()
def losses(T):
    nn, x, t = T.nn, grid(T, 3, 4), T.tensor([1, 0, 3])
    soft = T.nn.functional.softmax(grid(T, 3, 4, low=0.0), 1)
    w = T.tensor([1.0, 2.0, 0.5, 1.5])
    made = [(nn.CrossEntropyLoss(), t), (nn.CrossEntropyLoss(weight=w, label_smoothing=0.1), t),
            (nn.CrossEntropyLoss(ignore_index=3), t), (nn.CrossEntropyLoss(reduction="none"), t),
            (nn.CrossEntropyLoss(reduction="sum"), soft), (nn.NLLLoss(weight=w), t), (nn.MSELoss(), soft),
            (nn.MSELoss(reduction="none"), soft), (nn.MSELoss(reduction="sum"), soft)]
    out = []
    for loss, target in made:
        xi = x.clone().requires_grad_()
        value = loss(xi, target)
        value.sum().backward()
        out.append([repr(loss), value, xi.grad])
    return out


@cases.add()
def more_losses(T):
    nn, x, y = T.nn, grid(T, 3, 4), grid(T, 3, 4, low=1.0, high=-3.0)
    p, q = T.linspace(0.05, 0.95, 12).reshape(3, 4), T.linspace(0, 1, 12).reshape(3, 4)
    w = T.linspace(0.5, 2, 4)
    made = [(nn.L1Loss(), x, y), (nn.L1Loss(reduction="none"), x, y), (nn.SmoothL1Loss(), x, y),
            (nn.SmoothL1Loss(beta=0.5, reduction="sum"), x, y), (nn.HuberLoss(delta=2.0), x, y),
            (nn.BCELoss(), p, q), (nn.BCELoss(weight=w), p, q), (nn.BCEWithLogitsLoss(), x, q),
            (nn.BCEWithLogitsLoss(pos_weight=w, reduction="sum"), x, q), (nn.KLDivLoss(reduction="batchmean"), x, p),
            (nn.KLDivLoss(reduction="sum", log_target=True), x, y)]
    out = []
    for loss, inp, target in made:
        inp = inp.clone().requires_grad_()
        value = loss(inp, target)
        value.sum().backward()
        out.append([repr(loss), value, inp.grad])
    F = T.nn.functional
    return [out, raises(F.binary_cross_entropy, p, q[:1]), raises(F.binary_cross_entropy_with_logits, p, q[:1]),
            F.normalize(x), F.normalize(T.zeros(2, 2))]


@cases.add()
def weighted_mse(T):
    F, a, b = T.nn.functional, grid(T, 4), grid(T, 4, low=0.0)
    return [F.mse_loss(a, b, weight=T.arange(4.0), reduction=r) for r in ("none", "sum", "mean")]


@cases.add()
def loss_complaints(T):
    F = T.nn.functional
    a, b = T.zeros(3), T.zeros(1)
    return [warned(F.mse_loss, a, b), warned(T.nn.MSELoss, size_average=False)[0],
            raises(F.mse_loss, a, a, reduction="bad"), warned(F.mse_loss, a, a, reduce=False),
            warned(F.softmax, a)[0]]


# ---- Module's bookkeeping ------------------------------------------------------------------------------------


def net(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = T.nn.Linear(2, 3)
            self.block = T.nn.Sequential(T.nn.Linear(3, 3), T.nn.Tanh())
            self.scale = T.nn.Parameter(T.ones(3))
            self.register_buffer("mean", T.zeros(3))
            self.register_buffer("cache", T.zeros(1), persistent=False)
            self.nothing = None
            self.register_parameter("absent", None)

        def forward(self, x):
            return self.block(self.first(x)) * self.scale - self.mean

        def extra_repr(self):
            return "kind=test"

    return Net()


@cases.add()
def iterators(T):
    m = net(T)
    m.again = m.first
    names = {
        "parameters": [n for n, _ in m.named_parameters()], "buffers": [n for n, _ in m.named_buffers()],
        "modules": [n for n, _ in m.named_modules()], "children": [n for n, _ in m.named_children()],
        "prefix": [n for n, _ in m.named_parameters("p", recurse=False)],
        "all": [n for n, _ in m.named_parameters(remove_duplicate=False)],
        "all modules": [n for n, _ in m.named_modules(prefix="x", remove_duplicate=False)],
        "dir": [n for n in dir(m) if n in ("first", "mean", "scale", "block", "cache", "forward")],
    }
    return [names, len(list(m.parameters())), len(list(m.modules()))]


@cases.add()
def reprs(T):
    nn = T.nn
    return [repr(net(T)), repr(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])),
            repr(nn.ModuleDict({"a": nn.Linear(1, 2), "b": nn.Dropout(0.3)})), repr(nn.Sequential()),
            repr(nn.ParameterList([T.ones(2), T.ones(1, 3)])), repr(nn.ModuleList()), repr(nn.Bilinear(1, 2, 3)),
            repr(nn.Linear(2, 1, bias=False)), repr(nn.Embedding(3, 2, padding_idx=0, max_norm=1.0)),
            repr(nn.Sequential(nn.Sequential(nn.ReLU(inplace=True)), nn.Flatten()))]


@cases.add()
def setattr_rules(T):
    nn, m = T.nn, net(T)

    def no_init(value):
        class Bad(nn.Module):
            def __init__(self):
                self.x = value
        return Bad

    out = [raises(setattr, m, "scale", T.ones(2)), raises(setattr, m, "first", 3), raises(setattr, m, "mean", "x"),
           raises(no_init(nn.Parameter(T.ones(1)))), raises(no_init(nn.ReLU())), raises(getattr, m, "missing"),
           raises(m.register_parameter, "a.b", None), raises(m.register_parameter, "", None),
           raises(m.register_parameter, "forward", None), raises(m.register_parameter, 3, None),
           raises(m.register_parameter, "q", T.ones(1)),
           raises(m.register_buffer, "b.c", None), raises(m.register_buffer, "b", 3),
           raises(m.register_buffer, "scale", T.ones(1)), raises(m.add_module, "x", 3),
           raises(m.add_module, "a.b", nn.ReLU()), raises(m.add_module, "scale", nn.ReLU()),
           raises(nn.Module, 1), raises(nn.Module, a=1), raises(nn.Module(), 1), raises(m.train, 1)]
    m.mean = nn.Parameter(T.ones(3))
    m.scale = None
    m.nothing = nn.ReLU()
    m.tensor = T.ones(1)
    del m.first
    m.buf = nn.Buffer(T.ones(2), persistent=False)
    return out + [list(m._parameters), list(m._buffers), list(m._modules), list(m.state_dict()), "tensor" in m.__dict__]


@cases.add()
def state_dict_round_trip(T):
    a, b = net(T), net(T)
    sd = a.state_dict()
    result = b.load_state_dict(sd)
    x = grid(T, 2, 2)
    return [list(sd), repr(result), dict(sd._metadata), bool((a(x) == b(x)).all()), sd["scale"].requires_grad,
            list(a.state_dict(prefix="p.")), a.state_dict(keep_vars=True)["scale"] is a.scale,
            sd["scale"].data_ptr() == a.scale.data_ptr()]


@cases.add()
def load_state_dict_errors(T):
    m = net(T)
    sd = m.state_dict()
    del sd["scale"], sd["block.0.bias"]
    sd["extra"] = T.ones(1)
    sd["first.more.x"] = T.ones(1)
    sd["mean"] = T.ones(4)
    sd["first.bias"] = 3
    loose = T.nn.Linear(1, 1).load_state_dict({"weight": T.ones(1, 1), "other": T.ones(1)}, strict=False)
    return [raises(m.load_state_dict, sd), raises(m.load_state_dict, [1]), repr(loose), list(loose.missing_keys),
            list(loose.unexpected_keys), raises(m.load_state_dict, {"mean": T.ones(4)}, strict=False)]


@cases.add()
def load_state_dict_assign(T):
    m = T.nn.Linear(2, 1)
    w = T.ones(1, 2, dtype=T.float64)
    m.load_state_dict({"weight": w, "bias": T.zeros(1)}, assign=True)
    return [m.weight, type(m.weight) is T.nn.Parameter, m.weight.requires_grad, m.weight.data_ptr() == w.data_ptr()]


@cases.add()
def extra_state(T):
    class Counted(T.nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = T.nn.Sequential(Counted()), T.nn.Sequential(Counted())
    a[0].count = 7
    b.load_state_dict(a.state_dict())
    return [list(a.state_dict()), b[0].count, raises(b.load_state_dict, {}), raises(T.nn.ReLU().load_state_dict,
                                                                                   {"_extra_state": 1})]


@cases.add()
def paths(T):
    m = net(T)
    m.set_submodule("block.1", T.nn.ReLU())
    return [repr(m.get_submodule("block.1")), m.get_submodule("") is m, m.get_parameter("block.0.bias").shape,
            m.get_buffer("mean"), raises(m.get_submodule, "block.7"), raises(m.get_submodule, "scale"),
            raises(m.get_parameter, "mean"), raises(m.get_parameter, "x"), raises(m.get_buffer, "scale"),
            raises(m.set_submodule, "", T.nn.ReLU()), raises(m.set_submodule, "scale", T.nn.ReLU()),
            raises(m.set_submodule, "new", T.nn.ReLU(), strict=True)]


@cases.add()
def conversions(T):
    m = net(T)
    m.register_buffer("steps", T.tensor([3]))
    p = m.scale
    first = (m.double() is m, m.scale is p, m.scale.dtype, m.mean.dtype, m.steps.dtype)
    m.to(T.float32)
    second = (m.scale.dtype, m.to("cpu") is m, m.to(T.ones(1, dtype=T.float64)).scale.dtype, m.bfloat16().scale.dtype,
              m.half().mean.dtype, m.float().scale.dtype)
    m.scale.grad = T.ones(3)
    m.double()
    third = (m.scale.grad.dtype, raises(m.to, T.int64), str(m.to("meta").scale.device), type(m.scale).__name__)
    return [first, second, third]


@cases.add()
def modes_and_grads(T):
    m = net(T)
    x = grid(T, 2, 2)
    m(x).sum().backward()
    had = m.scale.grad is not None
    m.zero_grad(set_to_none=False)
    zero = m.scale.grad
    m.zero_grad()
    m.eval()
    states = [k.training for k in m.modules()]
    m.train()
    seen = []
    m.apply(lambda k: seen.append(type(k).__name__))
    m.requires_grad_(False)
    return [had, zero, m.scale.grad is None, states, m.block[1].training, seen, m.first.weight.requires_grad]


@cases.add()
def copies(T):
    m = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Tanh())
    m[1].register_buffer("b", T.ones(1))
    twin = copy.deepcopy(m)
    other = pickle.loads(pickle.dumps(m))
    x = grid(T, 3, 2)
    same = [bool((m(x) == k(x)).all()) for k in (twin, other)]
    with T.no_grad():
        m[0].weight.fill_(0)
    tied = T.nn.Module()
    tied.a = T.nn.Parameter(T.ones(1))
    tied.b = tied.a
    tied = copy.deepcopy(tied)
    old = T.nn.ReLU()
    state = {k: v for k, v in old.__dict__.items() if not k.endswith("hooks") or k == "_forward_hooks"}
    old.__setstate__(state)
    return [same, bool((twin[0].weight != 0).any()), type(twin[0].weight) is T.nn.Parameter, tied.a is tied.b,
            list(other.state_dict()), other[0].weight.requires_grad, old(T.tensor([-1.0]))]


# ---- containers ----------------------------------------------------------------------------------------------


@cases.add()
def sequential(T):
    nn = T.nn
    s = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    s.append(nn.Tanh()).insert(1, nn.Sigmoid()).extend([nn.Identity()])
    text = [repr(s), len(s), repr(s[-1]), repr(s[1:3]), [type(m).__name__ for m in s]]
    del s[0]
    s[0] = nn.GELU()
    popped = s.pop(1)
    return text + [repr(s), repr(popped), repr(s + nn.Sequential(nn.ReLU())), repr(s * 2), raises(lambda: s[9]),
                   raises(lambda: s + 1), raises(lambda: s * 0), raises(s.insert, 9, nn.ReLU()), list(s._modules)]


@cases.add()
def lists_and_dicts(T):
    nn = T.nn
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m.append(nn.Sigmoid())
    m.insert(0, nn.Identity())
    m += [nn.GELU()]
    del m[1]
    d = nn.ModuleDict([("x", nn.ReLU()), ("y", nn.Tanh())])
    d["z"] = nn.Identity()
    d.update({"x": nn.GELU()})
    d.pop("y")
    p = nn.ParameterList([T.ones(1)])
    p.append(T.zeros(2)).extend([T.ones(3)])
    q = nn.ParameterDict({"b": T.ones(2), "a": nn.Parameter(T.zeros(1))})
    q.setdefault("c", T.ones(1))
    return [repr(m), repr(m[1:]), raises(lambda: m[7]), raises(m.extend, 3), repr(d), list(d.keys()), "x" in d, len(d),
            [k for k, _ in d.items()], raises(d.update, 3), raises(d.update, [(1, 2, 3)]),
            [n for n, _ in p.named_parameters()], len(p), p[-1], type(p[1]) is nn.Parameter, raises(p, 1),
            [n for n, _ in q.named_parameters()], list(q), "b" in q, q.get("zz", 5), raises(lambda: q[3]),
            list((q | {"e": T.ones(1)}).keys()), q.pop("a"), len(q)]


# ---- parameters as a whole -----------------------------------------------------------------------------------


@cases.add()
def gradients_clipped(T):
    u = T.nn.utils

    def params():
        ps = [T.nn.Parameter(T.ones(3)), T.nn.Parameter(T.ones(2, 2)), T.nn.Parameter(T.ones(1))]
        ps[0].grad, ps[1].grad = grid(T, 3), grid(T, 2, 2)
        return ps

    out = []
    for norm in (2.0, 1.0, float("inf")):
        ps = params()
        out.append([u.clip_grad_norm_(ps, 1.0, norm), ps[0].grad, ps[1].grad])
    ps = params()
    u.clip_grad_value_(ps, 0.5)
    bad = params()
    bad[0].grad = T.tensor([1.0, float("nan"), 0.0])
    return [out, ps[0].grad, u.clip_grad_norm_([], 1.0), u.get_total_norm([p.grad for p in ps[:2]]),
            raises(u.clip_grad_norm_, bad, 1.0, error_if_nonfinite=True)]


@cases.add()
def parameters_as_vector(T):
    m = T.nn.Linear(2, 2)
    v = T.nn.utils.parameters_to_vector(m.parameters())
    T.nn.utils.vector_to_parameters(T.arange(6.0), m.parameters())
    return [v, m.weight, m.bias, raises(T.nn.utils.vector_to_parameters, [1], m.parameters())]


@cases.add()
def parameter(T):
    P = T.nn.Parameter
    p = P(T.ones(2))
    return [repr(p), p.requires_grad, P(T.ones(1), requires_grad=False).requires_grad, isinstance(p, P),
            isinstance(p, T.Tensor), isinstance(T.ones(1), P), type(copy.deepcopy(p)) is P, type(p + 1) is T.Tensor,
            type(p.data) is T.Tensor, repr(P()), isinstance(T.nn.Buffer(T.ones(1)), T.nn.Buffer),
            raises(P, T.ones(1, dtype=T.int64))]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
