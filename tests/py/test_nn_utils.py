"""nn.utils: parametrizations, weight and spectral norm in both forms, fusion, skip_init."""

import copy
import importlib
import os
import pickle
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_util import Cases, raises, warned

cases = Cases(__file__)


def parametrize(T):
    return importlib.import_module(T.__name__ + ".nn.utils.parametrize")


def parametrizations(T):
    return importlib.import_module(T.__name__ + ".nn.utils.parametrizations")


def linear(T, width=3, height=3):
    m = T.nn.Linear(width, height)
    with T.no_grad():
        m.weight.copy_(T.linspace(-1, 2, width * height).view(height, width)), m.bias.copy_(T.linspace(0, 1, height))
    return m


def modules(T):
    """Parametrizations good and bad, by name."""
    class Symmetric(T.nn.Module):
        def forward(self, x):
            return x + x.t()

    class Half(T.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    class Sum(T.nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 4, x * 0.75

    class Number(T.nn.Module):
        def forward(self, x):
            return 3

    class Row(T.nn.Module):
        def forward(self, x):
            return x[0]

    class Wider(T.nn.Module):
        def forward(self, x):
            return x.double()

    class BackNumber(Half):
        def right_inverse(self, x):
            return 3

    class BackWider(Half):
        def right_inverse(self, x):
            return x.double()

    return {cls.__name__: cls for cls in (Symmetric, Half, Sum, Number, Row, Wider, BackNumber, BackWider)}


@cases.add(tol=1e-6)
def parametrized_modules(T):
    P, kinds = parametrize(T), modules(T)
    m = linear(T)
    plain = type(m)
    P.register_parametrization(m, "weight", kinds["Half"]())
    P.register_parametrization(m, "weight", kinds["Half"]())
    out = [repr(m), type(m).__name__, isinstance(m, plain), P.type_before_parametrizations(m) is plain, m.state_dict(),
           [name for name, _ in m.named_parameters()], m.weight, P.is_parametrized(m), P.is_parametrized(m, "bias")]
    m(T.ones(1, 3)).sum().backward()
    out += [m.parametrizations.weight.original.grad]
    m.weight = T.ones(3, 3)
    twin = copy.deepcopy(m)
    out += [m.parametrizations.weight.original, twin.weight, twin(T.ones(1, 3)), raises(pickle.dumps, m)]
    with P.cached():
        out += [m.weight is m.weight]
    out += [m.weight is m.weight]
    P.remove_parametrizations(m, "weight")
    out += [type(m) is plain, m.weight, list(m._parameters), m.weight.requires_grad]
    kept = linear(T)
    P.register_parametrization(kept, "weight", kinds["Symmetric"]())
    value = kept.weight
    P.remove_parametrizations(kept, "weight", leave_parametrized=False)
    return out + [value, kept.weight, raises(P.remove_parametrizations, kept, "weight")]


@cases.add(tol=1e-6)
def several_originals(T):
    P, kinds = parametrize(T), modules(T)
    m = linear(T)
    P.register_parametrization(m, "weight", kinds["Sum"]())
    P.register_parametrization(m, "bias", kinds["Half"]())
    out = [m.state_dict(), m.weight, m.parametrizations.weight.ntensors, m.parametrizations.weight.is_tensor]
    out += [raises(P.remove_parametrizations, m, "weight", leave_parametrized=False)]
    other = P.transfer_parametrizations_and_params(m, linear(T))
    out += [other.state_dict(), repr(other)]
    P.remove_parametrizations(m, "weight")
    return out + [m.weight, type(m).__name__, list(m.parametrizations)]


@cases.add()
def parametrization_complaints(T):
    P, kinds = parametrize(T), modules(T)
    out = [raises(P.register_parametrization, linear(T), "weight", kinds[name]())
           for name in ("Number", "Row", "Wider", "BackNumber", "BackWider")]
    m = linear(T)
    out += [raises(P.register_parametrization, m, "nothing", kinds["Half"]())]
    P.register_parametrization(m, "weight", kinds["Symmetric"]())
    out += [raises(P.register_parametrization, m, "weight", kinds[name]()) for name in ("Number", "Row", "Wider", "BackWider")]
    P.register_parametrization(m, "weight", kinds["Row"](), unsafe=True)
    return out + [m.weight, raises(setattr, m, "weight", T.ones(3, 3))]


@cases.add(tol=5e-6)
def weight_norm_as_parametrization(T):
    out = []
    for dim in (0, 1, None):
        m = parametrizations(T).weight_norm(linear(T, 2, 3), dim=dim)
        m(T.ones(1, 2)).square().sum().backward()
        out += [repr(m), m.state_dict(), m.weight, [p.grad for p in m.parameters()]]
    m = parametrizations(T).weight_norm(linear(T, 2, 3))
    old = {"bias": T.zeros(3), "weight_g": T.ones(3, 1), "weight_v": T.ones(3, 2)}
    m.load_state_dict(old)
    return out + [m.weight]


@cases.add(tol=1e-6)
def weight_norm_as_hook(T):
    warnings, m = warned(T.nn.utils.weight_norm, linear(T, 2, 3))
    before = [m.state_dict(), m.weight]
    with T.no_grad():
        m.weight_g.mul_(2)
    m(T.ones(1, 2)).sum().backward()
    after = [m.weight, [p.grad for p in m.parameters()], [type(h).__name__ for h in m._forward_pre_hooks.values()]]
    T.nn.utils.remove_weight_norm(m)
    return [warnings, before, after, m.state_dict(), repr(m), raises(T.nn.utils.remove_weight_norm, m)]


@cases.add(tol=2e-6)
def spectral_norms(T):
    T.manual_seed(5)
    out = []
    m = T.nn.utils.spectral_norm(linear(T, 2, 3), n_power_iterations=2)
    for _ in range(2):
        m(T.ones(1, 2)).square().sum().backward()
    out += [repr(m), m.state_dict(), m.weight, [p.grad for p in m.parameters()], m.eval()(T.ones(1, 2)),
            raises(T.nn.utils.spectral_norm, m), m.state_dict()._metadata[""]["spectral_norm"]]
    twin = T.nn.utils.spectral_norm(linear(T, 2, 3))
    twin.load_state_dict(m.state_dict())
    T.nn.utils.remove_spectral_norm(m)
    out += [m.state_dict(), len(m._state_dict_hooks), len(m._forward_pre_hooks),
            raises(T.nn.utils.remove_spectral_norm, m)]
    m = parametrizations(T).spectral_norm(linear(T, 2, 3))
    m(T.ones(1, 2)).square().sum().backward()
    out += [repr(m), m.state_dict(), m.weight, [p.grad for p in m.parameters()], m.eval().weight]
    bias = parametrizations(T).spectral_norm(linear(T, 2, 3), "bias")
    return out + [bias.bias, raises(T.nn.utils.spectral_norm, linear(T), n_power_iterations=0),
                  raises(parametrizations(T).spectral_norm, linear(T), n_power_iterations=0),
                  raises(parametrizations(T).spectral_norm, linear(T), "bias", dim=5),
                  raises(parametrizations(T).spectral_norm, linear(T), "nothing")]


@cases.add(tol=1e-6)
def fused_batch_norm(T):
    w, b = T.linspace(-1, 1, 6).view(3, 2), T.linspace(0, 1, 3)
    mean, var = T.tensor([0.1, 0.2, 0.3]), T.tensor([1.0, 2.0, 3.0])
    gamma, beta = T.tensor([1.0, -1.0, 2.0]), T.tensor([0.0, 0.5, 1.0])
    kernel = T.linspace(-1, 1, 12).view(3, 2, 2, 1)
    U = T.nn.utils
    return [U.fuse_linear_bn_weights(w, b, mean, var, 1e-5, gamma, beta),
            U.fuse_conv_bn_weights(kernel, None, mean, var, 1e-5, None, None),
            U.fuse_conv_bn_weights(kernel.transpose(0, 1), b, mean, var, 1e-3, gamma, beta, transpose=True)]


@cases.add()
def skipped_initial_values(T):
    m = T.nn.utils.skip_init(T.nn.Linear, 2, 3, bias=False)
    return [repr(m), list(m.weight.shape), str(m.weight.device), m.weight.requires_grad,
            raises(T.nn.utils.skip_init, T.nn.ReLU), raises(T.nn.utils.skip_init, int).split(";")[0]]


test_golden = cases.test()

if __name__ == "__main__":
    cases.write()
