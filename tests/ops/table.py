"""Every operator, one entry: what it is tried on and what must come out.

An entry is E(name, samples, reference): the operator with its overload, a function that makes (args, kwargs) from a
Maker, and a function of numpy arrays that says the values. `result` names the result's dtype, `forms` which of
functional, in-place and out= forms exist. Which dtypes an operator takes and which gradients it has is PyTorch's own
answer, stored in oracle_data.py. Operators of later topics stand in table_<topic>.py: `groups(E)` returns {name: [E(...), ...]}.
"""
import copy
import glob
import importlib
import os
import re

import numpy as np
import references as r
from makers import (activations, binary, binary_alpha, binary_nonzero, calls, compare, corrected, gradient_of, over_dim,
                    over_dims, over_dims_or_all, ternary, unary, unary_positive, unary_unit, whole, with_number,
                    with_number_alpha)
from subject import Arg, Dtype, kind

RESULTS = {
    "same": lambda d: d,
    "bool": lambda d: "bool",
    "int64": lambda d: "int64",
    "float32": lambda d: "float32",
    "float": lambda d: d if kind(d) in ("float", "complex") else "float32",
    "sum": lambda d: "int64" if kind(d) in ("bool", "int") else d,
    "real": lambda d: {"complex64": "float32", "complex128": "float64"}.get(d, d),
    "truth": lambda d: "uint8" if d == "uint8" else "bool",
    "double": lambda d: "complex128" if kind(d) == "complex" else "float64",
    "complex": lambda d: {"float32": "complex64", "float64": "complex128"}.get(d, d),
    "wide_complex": lambda d: d if kind(d) == "complex" else "complex128" if d == "float64" else "complex64",
    "wide_real": lambda d: "float64" if d in ("float64", "complex128") else "float32",
    "statistic": lambda d: d if d == "float64" else "float32",
    "real_of_float": lambda d: {"complex64": "float32", "complex128": "float64"}.get(d, d if kind(d) == "float" else "float32"),
    "int32": lambda d: "int32",
    "int_of_bool": lambda d: "int64" if d == "bool" else d,
    "int_of_integral": lambda d: "int64" if kind(d) in ("bool", "int") else d,
}


class E:
    """`scale` widens the tolerance; `layout` False: the result depends on strides by definition; `random`: ref is a
    function (results, args, kwargs) that asserts what must hold of drawn numbers; `kinds`: of the dtypes that PyTorch
    takes, those that make sense (an integer mse_loss_backward computes something, but nobody asks for it)."""

    def __init__(self, name, samples, ref, forms="f", result="same", scale=1.0, layout=True, random=None,
          kinds="bool int float complex"):
        self.name, self.samples, self.ref, self.forms = name, samples, ref, forms
        self.result = result if isinstance(result, tuple) else (result,)
        self.scale, self.layout, self.random, self.kinds = scale, layout, random, kinds.split()

    def results(self, dtype, count):
        """The dtypes of `count` results."""
        rules = self.result if len(self.result) > 1 else self.result * count
        return [RESULTS[rule](dtype) for rule in rules]


def arithmetic():
    add, sub = (lambda a, b, alpha=1: a + alpha * b), (lambda a, b, alpha=1: a - alpha * b)
    rsub, mod = (lambda a, b, alpha=1: b - alpha * a), np.mod
    return [
        E("add.Tensor", binary_alpha, add, "fio"), E("add.Scalar", with_number_alpha, add, "fi"),
        E("sub.Tensor", binary_alpha, sub, "fio"), E("sub.Scalar", with_number_alpha, sub, "fi"),
        E("rsub.Tensor", binary_alpha, rsub), E("rsub.Scalar", with_number_alpha, rsub),
        E("mul.Tensor", binary, np.multiply, "fio"), E("mul.Scalar", with_number, np.multiply, "fi"),
        E("div.Tensor", binary_nonzero, np.true_divide, "fio", "float"),
        E("true_divide.Tensor", binary_nonzero, np.true_divide, "fio", "float"),
        E("true_divide.Scalar", with_number, np.true_divide, "fi", "float"),
        E("div.Scalar", with_number, np.true_divide, "fi", "float"),
        E("div.Tensor_mode", calls(lambda m: ((m(3, 4), m.positive(3, 4)), {"rounding_mode": "floor"}),
                                   lambda m: ((m(3, 4), m.positive(4)), {"rounding_mode": "trunc"})), r.divide, "fi"),
        E("div.Scalar_mode", calls(lambda m: ((m(3, 4), m.number()), {"rounding_mode": "floor"}),
                                   lambda m: ((m(3, 4), m.number()), {"rounding_mode": "trunc"})), r.divide, "fi"),
        E("floor_divide", binary_nonzero, np.floor_divide, "fio"),
        E("floor_divide.Scalar", with_number, np.floor_divide, "fi"),
        E("remainder.Tensor", binary_nonzero, mod, "fio"), E("remainder.Scalar", with_number, mod, "fio"),
        E("remainder.Scalar_Tensor", calls(lambda m: (m.number(7, 2.5), m.positive(3, 4))), mod),
        E("fmod.Tensor", binary_nonzero, np.fmod, "fio"), E("fmod.Scalar", with_number, np.fmod, "fio"),
        E("pow.Tensor_Tensor", calls(lambda m: (m.positive(3, 4), m.positive(3, 4, high=2)),
                                     lambda m: (m.positive(3, 1), m.positive(4, high=2))), r.power, "fio", scale=2),
        E("pow.Tensor_Scalar", calls(lambda m: (m.positive(3, 4), m.number(2, 1.5)), lambda m: (m(3, 4), m.number(2,
          2.0)),
                                     lambda m: (m(4), m.number(0, 0.0))), r.power, "fio", scale=2,
          kinds="int float complex"),
        E("pow.Scalar", calls(lambda m: (m.number(2, 1.5), m.positive(3, 4))), r.power, "fo", scale=2),
        E("addcmul", ternary, lambda a, b, c, value=1: a + value * b * c, "fio"),
        E("addcdiv", ternary, lambda a, b, c, value=1: a + value * b / c, "fio"),
        E("lerp.Scalar", calls(lambda m: (m(3, 4), m(3, 4), 0.25), lambda m: (m(3, 4), m(4), 0.75)),
          lambda a, b, w: a + w * (b - a), "fio", scale=2),
        E("lerp.Tensor", calls(lambda m: (m(3, 4), m(3, 4), m(4, low=0.1, high=0.9))), lambda a, b, w: a + w * (b - a),
          "fio", scale=2),
        E("dot", calls(lambda m: (m(5), m(5))), np.dot, "fo"), E("vdot", calls(lambda m: (m(5), m(5))), np.vdot, "fo"),
        E("conj", unary, np.conj), E("resolve_conj", unary, np.copy),
        E("conj_physical", unary, np.conj, "fio"), E("square", unary, np.square, "fio", "int_of_bool"),
    ]


def functions():
    wave = lambda f: E(f, unary, r.widened(getattr(np, f)), "fio", "float", scale=2)  # noqa: E731
    grow = lambda f: E(f, unary_positive, r.widened(getattr(np, f)), "fio", "float", scale=2)  # noqa: E731
    rounds = lambda f: E(f, unary, getattr(np, f), "fio")  # noqa: E731
    return [
        *map(wave, ("exp", "exp2", "expm1", "sin", "cos", "tanh", "sinh", "cosh")),
        *map(grow, ("log", "log2", "log10", "log1p", "sqrt")),
        *map(rounds, ("floor", "ceil", "trunc")),
        E("tan", unary_unit, r.widened(np.tan), "fio", "float", scale=2),
        E("atan", unary, r.widened(np.arctan), "fio", "float", scale=2),
        E("round", unary, np.round, "fio"), E("round.decimals", calls(lambda m: ((m(3, 4),), {"decimals": 1})),
                                              np.round, "fio"),
        E("frac", unary, lambda x: x - np.trunc(x), "fio"),
        E("neg", unary, np.negative, "fio"), E("abs", unary, np.abs, "fio", "real"),
        E("sign", unary, lambda x: x if x.dtype == np.bool_ else np.sign(x), "fio"), E("sgn", unary, r.sgn, "fio"),
        E("reciprocal", unary_positive, lambda x: 1 / x, "fio", "float"),
        E("rsqrt", unary_positive, r.widened(lambda x: 1 / np.sqrt(x)), "fio", "float", scale=2),
        E("sigmoid", unary, r.sigmoid, "fio", "float"), E("erf", unary, r.erf, "fio", "float"),
        E("erfc", unary, r.erfc, "fio", "float", scale=4),
        E("isnan", unary, np.isnan, result="bool"), E("isinf", unary, np.isinf, result="bool"),
        E("isfinite", unary, np.isfinite, result="bool"),
    ]


def choices():
    two = calls(lambda m: (m.mask(3, 4), m(3, 4), m(3, 4)), lambda m: (m.mask(4), m(3, 1), m()))
    return [
        E("maximum", binary, np.maximum, "fo"), E("minimum", binary, np.minimum, "fo"),
        E("max.other", binary, np.maximum, "fo"), E("min.other", binary, np.minimum, "fo"),
        E("fmax", binary, np.fmax, "fo"), E("fmin", binary, np.fmin, "fo"),
        E("clamp", calls(lambda m: (m(3, 4), 1 if m.kind == "int" else -0.75, m.number(2, 1.25)),
                         lambda m: (m(3, 4), None, m.number(1)), lambda m: (m(), m.number(1))), r.clamp, "fio"),
        E("clamp.Tensor", calls(lambda m: (m(3, 4), m(4), m(3, 1)), lambda m: (m(3, 4), None, m(4))), r.clamp, "fio"),
        E("clamp_min", with_number, np.maximum, "fio"),
        E("clamp_min.Tensor", binary, np.maximum, "fio", kinds="int float"),
        E("clamp_max", with_number, np.minimum, "fio"),
        E("clamp_max.Tensor", binary, np.minimum, "fio", kinds="int float"),
        E("where.self", two, np.where, "fo"),
        E("where.ScalarOther", calls(lambda m: (m.mask(3, 4), m(3, 4), m.number())), np.where),
        E("where.ScalarSelf", calls(lambda m: (m.mask(3, 4), m.number(), m(3, 4))), np.where),
        E("where.Scalar", calls(lambda m: (m.mask(3, 4), 1.5, 2.5)), np.where, result="float32"),
        E("where", calls(lambda m: (m.mask(3, 4),)), np.nonzero, result="int64"),
    ]


def comparisons():
    made = []
    for name, f in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
                    ("ge", np.greater_equal)):
        made += [E(f"{name}.Tensor", compare, f, "fio", "bool"), E(f"{name}.Scalar", with_number, f, "fio", "bool")]
    for name, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        made += [E(f"bitwise_{name}.Tensor", binary, f, "fio"), E(f"bitwise_{name}.Scalar", with_number, f, "fio"),
                 E(f"logical_{name}", binary, getattr(np, f"logical_{name}"), "fio", "bool")]
    return made + [
        E("logical_not", unary, np.logical_not, "fio", "bool"), E("bitwise_not", unary, np.invert, "fio"),
        E("equal", compare, np.array_equal, result="bool"),
        E("isclose", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(4), m(4), 0.5, 0.5)), r.isclose, result="bool"),
        E("allclose", calls(lambda m: (m(3, 4), m(3, 4))), np.allclose, result="bool"),
    ]


def activation_functions():
    def acts(name, ref, *numbers, forms="fio", **kw):
        return E(name, activations(*numbers), ref, forms, **kw)

    def back(name, ref, *numbers, unit=False, forms="fo", **kw):
        return E(name, gradient_of(*numbers, unit=unit), ref, forms, **kw)

    clip = lambda x, low=-1, high=1: np.clip(x, low, high)  # noqa: E731
    tanh = calls(lambda m: ((m(3, 4),), {"approximate": "tanh"}), lambda m: (m(3, 4),))
    tanh_back = calls(lambda m: ((m(3, 4), m(3, 4)), {"approximate": "tanh"}), lambda m: (m(3, 4), m(3, 4)))
    over = lambda x, t, v: np.where(x > t, x, v)  # noqa: E731
    return [
        E("relu", unary, lambda x: np.maximum(x, 0), "fi"), E("gelu", tanh, r.gelu, "fio"),
        E("gelu_backward", tanh_back, r.backward_of(r.gelu), "fo", scale=20),
        acts("silu", r.silu), back("silu_backward", r.backward_of(r.silu), scale=20),
        acts("softplus", r.softplus, 1.5, 2.0, forms="fo"),
        back("softplus_backward", lambda g, x, b, t: g * np.where(x * b > t, 1, r.sigmoid(x * b)), 1.5, 2.0),
        acts("leaky_relu", r.leaky_relu, 0.25),
        back("leaky_relu_backward", lambda g, x, s, _: np.where(x > 0, g, g * s), 0.25, False),
        acts("elu", r.elu, 1.5, 0.75), E("elu_backward", calls(
            lambda m: (m(3, 4), 1.5, 0.75, 1, False, m(3, 4)), lambda m: (m(3, 4), 1.5, 0.75, 1, True, m(3, 4))),
            r.elu_backward, "fo"),
        acts("hardtanh", clip, -1, 2),
        back("hardtanh_backward", lambda g, x, low, high: np.where((x <= low) | (x >= high), 0, g), -1, 2),
        acts("threshold", over, 1, 2), back("threshold_backward", lambda g, x, t: np.where(x > t, g, 0), 0),
        back("sigmoid_backward", lambda g, y: g * np.conj((1 - y) * y), unit=True),
        back("tanh_backward", lambda g, y: g * np.conj(1 - y * y), unit=True),
        acts("relu6", lambda x: np.clip(x, 0, 6), forms="fi"),
    ]


def reductions():
    numbers, truth = r.along(r.total), {"any": np.any, "all": np.all}
    spread = calls(lambda m: (m(2, 3, 4), [1], False), lambda m: (m(2, 3, 4), [0, 2], True, True))
    norm, several = r.vector_norm, calls(lambda m: (m(3, 4),), lambda m: (m(2, 3, 5),))

    def unbiased(f):
        return lambda x, dim, unbiased=True, keepdim=False: f(x, dim, int(unbiased), keepdim)
    largest, least = r.extreme(np.max, np.argmax), r.extreme(np.min, np.argmin)
    made = [
        E("sum", whole, numbers, "fo", "sum"), E("sum.dim_IntList", over_dims_or_all, numbers, "fo", "sum"),
        E("mean", whole, r.along(np.mean), "fo"), E("mean.dim", over_dims_or_all, r.along(np.mean), "fo"),
        E("prod", whole, r.along(r.product), "fo", "sum", scale=4),
        E("prod.dim_int", over_dim, r.along(r.product), "fo", "sum", scale=4),
        E("var.correction", corrected, r.variance, "fo", "real", scale=4),
        E("std.correction", corrected, r.deviation, "fo", "real", scale=4),
        E("var_mean.correction", corrected, r.var_mean, "fo", ("real", "same"), scale=4),
        E("var", several, lambda x: r.variance(x), result="real", scale=4),
        E("std", several, lambda x: r.deviation(x), result="real", scale=4),
        E("var.dim", spread, unbiased(r.variance), "fo", "real", scale=4),
        E("std.dim", spread, unbiased(r.deviation), "fo", "real", scale=4),
        E("var_mean", several, lambda x: r.var_mean(x), result=("real", "same"), scale=4),
        E("var_mean.dim", spread, unbiased(r.var_mean), result=("real", "same"), scale=4),
        E("norm.Scalar", calls(lambda m: (m(3, 4), 2), lambda m: (m(3, 4), 1)), norm, result="real", scale=4),
        E("norm.ScalarOpt_dim", calls(lambda m: (m(3, 4), 2, [1]), lambda m: (m(3, 4), 3, [0], True)), norm,
          result="real", scale=4),
        E("norm.ScalarOpt_dtype", calls(lambda m: ((m(3, 4), 2), {"dtype": Dtype(m.dtype)})), norm, result="real",
          scale=4),
        E("norm.ScalarOpt_dim_dtype", calls(lambda m: ((m(3, 4), 2, [1], False), {"dtype": Dtype(m.dtype)})), norm,
          result="real", scale=4),
        E("linalg_vector_norm", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1, [1]), lambda m: (m(2, 3, 4), 3, [0,
          2], True),
                                      lambda m: (m(3, 4), float("inf"), [0])), norm, "fo", "real", scale=4),
        E("amax", over_dims, r.along(np.max), "fo"), E("amin", over_dims, r.along(np.min), "fo"),
        E("max", whole, np.max, "fo"), E("min", whole, np.min, "fo"),
        E("max.dim", over_dim, largest, "fo", ("same", "int64")),
        E("min.dim", over_dim, least, "fo", ("same", "int64")),
        E("argmax", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1, True), lambda m: (m(2, 3, 4), 0)),
          r.index_of(np.argmax), "fo", "int64"),
        E("argmin", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1, True), lambda m: (m(2, 3, 4), 0)),
          r.index_of(np.argmin), "fo", "int64"),
        E("logsumexp", over_dims, r.along(lambda x, axis, keepdims: np.log(np.sum(
            r.widened(np.exp)(x), axis=axis, keepdims=keepdims))), "fo", "float"),
        E("cumsum", calls(lambda m: (m(3, 4), 0), lambda m: (m(2, 3, 4), -1)),
          lambda x, dim: np.cumsum(x, dim, dtype=None if x.dtype.kind in "fc" else np.int64), "fio", "sum"),
    ]
    for name, f in truth.items():
        result = "truth"
        made += [E(name, whole, r.along(f), "fo", result), E(f"{name}.dim", over_dim, r.along(f), "fo", result),
                 E(f"{name}.dims", over_dims_or_all, r.along(f), "fo", result)]
    return made


def products():
    def added(product):
        def ref(c, a, b, beta=1, alpha=1):
            return beta * c + alpha * product(a, b)
        return ref

    def scaled(*shapes):
        return calls(lambda m: tuple(m(*s) for s in shapes),
                     lambda m: (tuple(m(*s) for s in shapes), {"beta": m.number(2), "alpha": m.number(3, 0.25)}))
    return [
        E("mm", calls(lambda m: (m(3, 4), m(4, 2)), lambda m: (m(3, 0), m(0, 2))), np.matmul, "fo", scale=4),
        E("addmm", scaled((3, 2), (3, 4), (4, 2)), added(np.matmul), "fio", scale=4),
        E("bmm", calls(lambda m: (m(2, 3, 4), m(2, 4, 2))), np.matmul, "fo", scale=4),
        E("baddbmm", scaled((2, 3, 2), (2, 3, 4), (2, 4, 2)), added(np.matmul), "fio", scale=4),
        E("mv", calls(lambda m: (m(3, 4), m(4))), np.matmul, "fo", scale=4),
        E("addmv", scaled((3,), (3, 4), (4,)), added(np.matmul), "fio", scale=4),
        E("addr", scaled((3, 4), (3,), (4,)), added(np.outer), "fio", scale=4),
        E("outer", calls(lambda m: (m(3), m(4))), np.outer, "fo"),
        E("ger", calls(lambda m: (m(3), m(4))), np.outer, "fo"),
        E("matmul", calls(lambda m: (m(3, 4), m(4, 2)), lambda m: (m(4), m(4)), lambda m: (m(3, 4), m(4)),
                          lambda m: (m(2, 1, 3, 4), m(5, 4, 2))), np.matmul, "fo", scale=4),
        E("linalg_matmul", calls(lambda m: (m(3, 4), m(4, 2)), lambda m: (m(2, 3, 4), m(4))), np.matmul, "fo", scale=4),
        E("linear", calls(lambda m: (m(3, 4), m(2, 4), m(2)), lambda m: (m(2, 3, 4), m(2, 4))),
          lambda x, w, b=0: np.matmul(x, w.T) + b, "fo", scale=4),
    ]


def views():
    def cube(*args):
        return calls(lambda m: (m(2, 3, 4), *args))
    swap = calls(lambda m: (m(2, 3, 4), 0, 2), lambda m: (m(3, 4), -1, -2), lambda m: (m(), 0, 0))
    swapped = lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x  # noqa: E731
    pair = calls(lambda m: (m(2, 3, 4), m(6, 4)))
    pieces = calls(lambda m: (m(5, 4), 2), lambda m: (m(5, 4), 3, 1))
    listed = calls(lambda m: (m(5, 4), [1, 4]), lambda m: (m(3, 5), [2, 0, 3], 1))
    return [
        E("alias", unary, lambda x: x), E("detach", unary, lambda x: x),
        E("view", cube([6, -1]), lambda x, s: x.reshape(s), layout=False),
        E("view.dtype", calls(lambda m: (m(3, 4), Dtype(m.dtype))), lambda x, _: x, layout=False),
        E("_unsafe_view", cube([6, 4]), lambda x, s: x.reshape(s), layout=False),
        E("reshape", calls(lambda m: (m(2, 3, 4), [6, -1]), lambda m: (m(), [1, 1]), lambda m: (m(0, 3), [3, 0])),
          lambda x, s: x.reshape(s)),
        E("view_as", pair, lambda x, y: x.reshape(y.shape), layout=False),
        E("reshape_as", pair, lambda x, y: x.reshape(y.shape)),
        E("flatten.using_ints", calls(lambda m: (m(2, 3, 4),), lambda m: (m(2, 3, 4), 1, 2), lambda m: (m(),)),
          r.flatten),
        E("unflatten.int", calls(lambda m: (m(6, 4), 0, [2, -1])), lambda x, d, s: x.reshape(2, 3, 4)),
        E("ravel", unary, np.ravel),
        E("transpose.int", swap, swapped), E("swapaxes", swap, swapped), E("swapdims", swap, swapped),
        E("t", calls(lambda m: (m(3, 4),), lambda m: (m(3),), lambda m: (m(),)), np.transpose),
        E("permute", calls(lambda m: (m(2, 3, 4), [2, 0, -2]), lambda m: (m(), [])), np.transpose),
        E("movedim.intlist", cube([0, 1], [2, 0]), np.moveaxis), E("movedim.int", cube(0, -1), np.moveaxis),
        E("expand", calls(lambda m: (m(3, 1), [2, -1, 4]), lambda m: (m(), [2, 3])), r.expand),
        E("expand_as", calls(lambda m: (m(3, 1), m(2, 3, 4, diff=False))), lambda x, y: np.broadcast_to(x, y.shape)),
        E("broadcast_to", calls(lambda m: (m(3, 1), [2, 3, 4])), np.broadcast_to),
        E("broadcast_tensors", calls(lambda m: ([m(3, 1), m(4), m()],)), lambda ts: np.broadcast_arrays(*ts)),
        E("select.int", calls(lambda m: (m(2, 3, 4), 1, -1), lambda m: (m(3), 0, 1)),
          lambda x, d, i: np.take(x, i, d)),
        E("slice.Tensor", calls(lambda m: (m(5, 4), 0, 1, 4, 2), lambda m: (m(5, 4), 1, -3), lambda m: (m(5, 4),),
                                lambda m: (m(5, 4), 0, 3, 1)), r.slice_of),
        E("narrow", cube(1, 1, 2), lambda x, d, s, n: r.slice_of(x, d, s, s + n)),
        E("unsqueeze", calls(lambda m: (m(3, 4), 1), lambda m: (m(3, 4), -1), lambda m: (m(), 0)), np.expand_dims),
        E("squeeze", calls(lambda m: (m(1, 3, 1),), lambda m: (m(3, 4),)), r.squeeze),
        E("squeeze.dim", calls(lambda m: (m(1, 3, 1), -1), lambda m: (m(1, 3), 1)), r.squeeze),
        E("squeeze.dims", calls(lambda m: (m(1, 3, 1), [0, 2])), r.squeeze),
        E("as_strided", calls(lambda m: (m(3, 4), [2, 3], [1, 4], 1), lambda m: (m(3, 4), [3, 2], [0, 1])),
          r.as_strided,
          layout=False),
        E("diagonal", calls(lambda m: (m(3, 4),), lambda m: (m(2, 3, 4), 1, 0, 2)), np.diagonal),
        E("unfold", calls(lambda m: (m(3, 7), 1, 3, 2)), r.unfold),
        E("unbind.int", calls(lambda m: (m(3, 4),), lambda m: (m(3, 2), -1)), r.unbind),
        E("split.Tensor", pieces, r.split), E("split.sizes", listed, r.split), E("split_with_sizes", listed, r.split),
        E("chunk", calls(lambda m: (m(5, 4), 2), lambda m: (m(3, 4), 4, 1)), r.chunk),
        E("real", unary, np.real, result="real"), E("imag", unary, np.imag, result="real"),
        E("view_as_real", unary, lambda x: np.stack([x.real, x.imag], -1), result="real"),
        E("view_as_complex", calls(lambda m: (m(3, 4, 2),)), lambda x: x[..., 0] + 1j * x[..., 1], result="complex",
          layout=False),
    ]


def copies():
    joined = calls(lambda m: ([m(2, 4), m(3, 4)],), lambda m: ([m(3, 1), m(3, 4), m(3, 0)], 1),
                   lambda m: ([m(0), m(3)], 0))
    put = calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 4), m(4)), lambda m: (m(3, 4), m()))
    double = lambda m: Dtype("complex128" if m.kind == "complex" else "float64")  # noqa: E731
    to_double = calls(lambda m: ((m(3, 4),), {"dtype": double(m)}))
    return [
        E("clone", unary, np.copy), E("contiguous", unary, np.copy),
        E("copy_", put, lambda x, y, *_: np.broadcast_to(y, x.shape)),
        E("_to_copy", to_double, lambda x, dtype: x, result="double"),
        E("to.dtype_layout", to_double, lambda x, dtype: x, result="double"),
        E("to.dtype", calls(lambda m: (m(3, 4), double(m))), lambda x, _: x, result="double"),
        E("type_as", calls(lambda m: (m(3, 4), m(2))), lambda x, y: x),
        E("fill_.Scalar", calls(lambda m: (m(3, 4), m.number())), np.full_like),
        E("fill_.Tensor", calls(lambda m: (m(3, 4), m())), np.full_like), E("zero_", unary, np.zeros_like),
        E("cat", joined, lambda ts, dim=0: np.concatenate([t for t in ts if t.shape != (0,)], dim), "fo"),
        E("concat", joined, lambda ts, dim=0: np.concatenate([t for t in ts if t.shape != (0,)], dim)),
        E("concatenate", joined, lambda ts, dim=0: np.concatenate([t for t in ts if t.shape != (0,)], dim), "fo"),
        E("fill.Scalar", calls(lambda m: (m(3, 4), m.number())), np.full_like),
        E("fill.Tensor", calls(lambda m: (m(3, 4), m())), np.full_like),
        E("stack", calls(lambda m: ([m(3, 4), m(3, 4)],), lambda m: ([m(3), m(3), m(3)], -1)), np.stack, "fo"),
        E("flip", calls(lambda m: (m(3, 4), [0]), lambda m: (m(2, 3, 4), [0, -1])), np.flip),
        E("tril", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1)), np.tril, "fio"),
        E("triu", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), -1)), np.triu, "fio"),
    ]


def indexing():
    at = lambda m, n=4: m.index(2, 3, high=n)  # noqa: E731
    puts = calls(lambda m: (m(3, 4), [Arg([2, 0], "int64")], m(2, 4)),
                 lambda m: (m(3, 4), [None, Arg([3, 1], "int64")], m(3, 2), False),
                 lambda m: (m(3, 4), [Arg([1, 1, 0], "int64"), Arg([2, 2, 3], "int64")], m(3), True),
                 lambda m: (m(3, 4), [Arg([True, False, True], "bool")], m()))
    unique = lambda m: Arg([[0, 2, 1], [2, 1, 0]], "int64")  # noqa: E731  no index twice along dim 1
    masked = calls(lambda m: (m(3, 4), m.mask(3, 4), m.number()), lambda m: (m(3, 4), m.mask(4), m.number()))
    masked_t = calls(lambda m: (m(3, 4), m.mask(3, 4), m()), lambda m: (m(3, 4), m.mask(3, 1), m()))
    fill = lambda x, mask, v: np.where(mask, v, x)  # noqa: E731
    return [
        E("index.Tensor", calls(lambda m: (m(3, 4), [at(m, 3)]), lambda m: (m(2, 3, 4), [None, m.index(5, high=3)]),
                                lambda m: (m(3, 4), [m.index(2, high=3), m.index(3, 1, high=4)]),
                                lambda m: (m(3, 4), [m.mask(3, 4)]), lambda m: (m(3, 4), [Arg([-1, -3], "int64")])),
          r.index), E("index_put_", puts, r.index_put), E("index_put", puts, r.index_put),
        E("nonzero", calls(lambda m: (m(3, 4, low=0),), lambda m: (m(),)), lambda x: np.argwhere(x) if x.ndim else
          np.zeros((int(bool(x)), 0), np.int64), "fo", "int64"),
        E("gather", calls(lambda m: (m(3, 4), 1, m.index(3, 2, high=4)), lambda m: (m(3, 4), 0, m.index(2, 3, high=3))),
          r.gather, "fo"),
        E("scatter.src", calls(lambda m: (m(3, 4), 1, unique(m), m(2, 3))), r.scatter, "fio"),
        E("scatter.value", calls(lambda m: (m(3, 4), 1, unique(m), m.number())), r.scatter, "fio"),
        E("scatter_add", calls(lambda m: (m(3, 4), 1, at(m), m(2, 3)), lambda m: (m(3, 4), 0, at(m, 3), m(2, 3))),
          r.scatter_add, "fio"),
        E("index_select", calls(lambda m: (m(3, 4), 0, m.index(5, high=3)), lambda m: (m(3, 4), 1, m.index(2, high=4))),
          lambda x, d, i: np.take(x, i, d), "fo"),
        E("index_add", calls(lambda m: (m(3, 4), 0, m.index(5, high=3), m(5, 4)),
                             lambda m: ((m(3, 4), 1, m.index(2, high=4), m(3, 2)),
                             {"alpha": m.number(2) if m.kind == "bool" else 2})),
          r.index_add, "fio"),
        E("masked_fill.Scalar", masked, fill), E("masked_fill.Tensor", masked_t, fill),
        E("masked_fill_.Scalar", masked, fill), E("masked_fill_.Tensor", masked_t, fill),
        E("masked_select", calls(lambda m: (m(3, 4), m.mask(3, 4)), lambda m: (m(3, 4), m.mask(4))),
          lambda x, mask: x[np.broadcast_to(mask, x.shape)]),
        E("take", calls(lambda m: (m(3, 4), m.index(2, 3, high=12))), lambda x, i: x.reshape(-1)[i]),
        E("embedding", calls(lambda m: (m(5, 3), m.index(2, 4, high=5)), lambda m: (m(5, 3), Arg([0, 4, 2, 0],
          "int64"), 1)),
          lambda w, i, *_: w[i]),
        E("embedding_dense_backward", calls(lambda m: (m(4, 3), m.index(4, high=5), 5, 1, False),
                                            lambda m: (m(2, 2, 3, diff=False), m.index(2, 2, high=5), 5, -1, True)),
          r.embedding_backward, kinds="float"),
    ]


def losses():
    def nll(m, shape, weighted=False, reduction=1):
        target = (shape[0],) + shape[2:]
        return (m(*shape), m.index(*target, high=shape[1]), m.positive(shape[1], diff=False) if weighted else None,
                reduction, 1)

    def nll_grad(m, shape, reduction):
        x, target, weight, _, ignore = nll(m, shape, True, reduction)
        total = np.sum(weight.values[target.values] * (target.values != ignore))
        grad = m(*((shape[0],) + shape[2:] if reduction == 0 else ()))
        return grad, x, target, weight, reduction, ignore, Arg(total, diff=False)

    flat, deep = (4, 3), (2, 3, 2, 2)
    def each(shape):
        return calls(*[lambda m, k=k, w=w: nll(m, shape, w, k) for k in (0, 1, 2) for w in (0, 1)])
    back = lambda shape: calls(*[lambda m, k=k: nll_grad(m, shape, k) for k in (0, 1, 2)])  # noqa: E731
    soft = calls(lambda m: (m(3, 4), 1), lambda m: (m(2, 3, 4), 0), lambda m: (m(), 0))
    typed = calls(lambda m: (m(3, 4), 1, False), lambda m: (m(2, 3, 4), 0, False))
    unit = lambda m, *s: m(*s, low=0.1, high=0.9)  # noqa: E731
    fixed = lambda m, *s: m(*s, low=0.1, high=0.9, diff=False)  # noqa: E731
    pairs = lambda f: calls(*[lambda m, k=k: f(m, k) for k in (0, 1, 2)])  # noqa: E731
    return [
        E("softmax.int", soft, r.softmax), E("log_softmax.int", soft, r.log_softmax),
        E("special_softmax", soft, r.softmax), E("special_log_softmax", soft, r.log_softmax),
        E("_softmax", typed, r.softmax), E("_log_softmax", typed, r.log_softmax),
        E("_softmax_backward_data", calls(lambda m: (m(3, 4), unit(m, 3, 4), 1, Dtype(m.dtype))), r.softmax_backward),
        E("_log_softmax_backward_data", calls(lambda m: (m(3, 4), m(3, 4, low=-2, high=-0.1), 1, Dtype(m.dtype))),
          r.log_softmax_backward),
        E("nll_loss_forward", each(flat), r.nll_forward), E("nll_loss2d_forward", each(deep), r.nll_forward),
        E("nll_loss_backward", back(flat), r.nll_backward), E("nll_loss2d_backward", back(deep), r.nll_backward),
        E("nll_loss", each(flat), r.nll_loss), E("nll_loss2d", each(deep), r.nll_loss),
        E("nll_loss_nd", each(deep), r.nll_loss, scale=2),
        E("cross_entropy_loss", calls(*[lambda m, k=k: nll(m, s, True, k) for k in (0, 1, 2) for s in (flat, deep)],
                                      lambda m: (*nll(m, flat), 0.25), lambda m: (m(4, 3), unit(m, 4, 3))),
          r.cross_entropy),
        E("l1_loss", pairs(lambda m, k: (m(3, 4), m(3, 4), k)), lambda x, y, k: r.reduced(np.abs(x - y), k),
          result="real"),
        E("binary_cross_entropy", pairs(lambda m, k: (unit(m, 3, 4), fixed(m, 3, 4), fixed(m, 4), k)), r.bce),
        E("binary_cross_entropy_backward", pairs(lambda m, k: (m(*((3, 4) if k == 0 else ())), unit(m, 3, 4),
                                                               fixed(m, 3, 4), fixed(m, 4), k)), r.bce_backward),
        E("binary_cross_entropy_with_logits", pairs(lambda m, k: (m(3, 4), fixed(m, 3, 4), fixed(m, 4), fixed(m, 4),
          k)),
          r.bce_logits),
    ]


def creation():
    def made(m, *args, **kwargs):
        return args, dict(kwargs, dtype=Dtype(m.dtype))

    def of(function):
        return lambda *args, dtype=None, **kw: function(*args, **kw)
    any_size = lambda results, args, kwargs: None  # noqa: E731  contents undefined: dtype and shape are all
    like = calls(lambda m: (m(3, 4),), lambda m: made(m, m(2)), lambda m: ((m(3, 4),), {"dtype": Dtype("float64")})
                 if m.kind != "complex" else (m(3, 4),))
    sized = calls(lambda m: made(m, [2, 3]), lambda m: made(m, []), lambda m: made(m, [0, 2]))
    new = calls(lambda m: (m(2), [2, 3]), lambda m: (m(2), []))
    return [
        E("empty.memory_format", sized, of(np.zeros), random=any_size),
        E("empty_strided", calls(lambda m: made(m, [2, 3], [1, 2])), of(lambda size, stride: np.zeros(size)),
          random=any_size),
        E("zeros", sized, of(np.zeros), "fo"), E("ones", sized, of(np.ones), "fo"),
        E("full", calls(lambda m: made(m, [2, 3], m.number())), of(np.full), "fo"),
        E("scalar_tensor", calls(lambda m: made(m, m.number())), of(np.array)),
        E("empty_like", calls(lambda m: (m(3, 4),)), np.zeros_like, random=any_size),
        E("zeros_like", calls(lambda m: (m(3, 4),)), np.zeros_like),
        E("ones_like", calls(lambda m: (m(3, 4),)), np.ones_like),
        E("full_like", calls(lambda m: (m(3, 4), m.number())), np.full_like),
        E("new_empty", new, lambda x, size: np.zeros(size), random=any_size),
        E("new_empty_strided", calls(lambda m: (m(2), [2, 3], [1, 2])), lambda x, size, stride: np.zeros(size),
          random=any_size),
        E("new_zeros", new, lambda x, size: np.zeros(size)), E("new_ones", new, lambda x, size: np.ones(size)),
        E("new_full", calls(lambda m: (m(2), [2, 3], m.number())), lambda x, size, v: np.full(size, v)),
        E("arange", calls(lambda m: made(m, 5), lambda m: made(m, 0)), of(np.arange), "fo"),
        E("arange.start", calls(lambda m: made(m, 2, 7)), of(np.arange)),
        E("arange.start_step", calls(lambda m: made(m, 1, 8, 3), lambda m: made(m, 9, 1, -2) if m.kind != "bool" else
                                     made(m, 1, 8, 3)), of(np.arange), "fo"),
        E("linspace", calls(lambda m: made(m, 0, 8, 5), lambda m: made(m, 1, 3, 1)), of(np.linspace), "fo"),
        E("eye", calls(lambda m: made(m, 3)), of(np.eye), "fo"),
        E("eye.m", calls(lambda m: made(m, 3, 2)), of(np.eye), "fo"),
    ]


def drawn():
    """Random operators: here their bounds, forms and dtypes; their very numbers stand in tests/c/rng_golden.h."""
    def within(low, high):
        def check(results, args, kwargs):
            for values in results:
                assert np.all((values >= low) & (values <= high)), values
        return check

    def permutation(results, args, kwargs):
        assert sorted(results[0].real.tolist()) == list(range(args[0]))

    def kept_or_zero(results, args, kwargs):
        assert np.all((results[0] == 0) | np.isclose(results[0], args[0].values * 2, rtol=1e-2))

    any_number, unit, bits = within(-np.inf, np.inf), within(0, 1), within(0, 1)
    size = lambda *args: np.zeros(next(a for a in args if isinstance(a, list)))  # noqa: E731

    def made(m, *args):
        return args, {"dtype": Dtype(m.dtype)}

    def like(name, check, *numbers, result="same", low=-3.0, high=3.0):
        return E(name, calls(lambda m: (m(3, 4, low=low, high=high, diff=True), *numbers)), lambda x, *a, **k: x,
          random=check,
                 result=result)

    def sized(name, check, *numbers, forms="f"):
        return E(name, calls(lambda m: made(m, *numbers, [3, 4])), lambda *a, dtype: size(*a), forms, random=check)

    def seeded(name, check, *numbers):
        return E(name, calls(lambda m: (numbers + ([3, 4],), {"dtype": Dtype(m.dtype), "generator": None})),
                 lambda *a, dtype, generator: size(*a), random=check)
    probability = lambda m: m(3, 4, low=0.1, high=0.9)  # noqa: E731
    half = lambda x, *_: x  # noqa: E731
    return [
        sized("rand", unit, forms="fo"), sized("randn", any_number, forms="fo"), seeded("rand.generator", unit),
        seeded("randn.generator", any_number), sized("randint", within(0, 8), 9, forms="fo"),
        sized("randint.low", within(2, 8), 2, 9, forms="fo"), seeded("randint.generator", within(0, 8), 9),
        seeded("randint.low_generator", within(2, 8), 2, 9), like("rand_like", unit), like("randn_like", any_number),
        like("randint_like", within(0, 8), 9), like("randint_like.low_dtype", within(2, 8), 2, 9),
        E("randperm", calls(lambda m: made(m, 7)), lambda n, dtype: np.zeros(n), "fo", random=permutation),
        E("randperm.generator", calls(lambda m: ((7,), {"dtype": Dtype(m.dtype), "generator": None})),
          lambda n, dtype, generator: np.zeros(n), random=permutation),
        like("uniform_", within(-2, 3), -2, 3), like("normal_", any_number, 1, 2), like("random_.from", within(2, 8),
          2, 9),
        like("random_.to", within(0, 8), 9), like("random_", within(0, np.inf)), like("bernoulli_.float", bits, 0.3),
        like("exponential_", within(0, np.inf), 1.5), like("geometric_", within(1, np.inf), 0.3),
        like("cauchy_", any_number), like("log_normal_", within(0, np.inf)),
        E("bernoulli_.Tensor", calls(lambda m: (m(3, 4), Arg(np.full((3, 4), 0.3), "float64"))), half, random=bits),
        E("bernoulli", calls(lambda m: (probability(m),)), half, "fo", random=bits),
        E("bernoulli.p", calls(lambda m: (m(3, 4), 0.3)), half, random=bits),
        E("normal.Tensor_float", calls(lambda m: (m(3, 4), 2.0)), half, "fo", random=any_number),
        E("normal.float_Tensor", calls(lambda m: (1.0, m.positive(3, 4))), lambda _, x: x, "fo", random=any_number),
        E("normal.Tensor_Tensor", calls(lambda m: (m(3, 4), m.positive(3, 4))), half, "fo", random=any_number),
        E("normal.float_float", calls(lambda m: ((1.0, 2.0, [3, 4]), {"dtype": Dtype(m.dtype)})),
          lambda *a, dtype: size(*a), "fo", random=any_number),
        E("dropout", calls(lambda m: (m(3, 4), 0.5, True)), half, random=kept_or_zero),
        E("dropout_", calls(lambda m: (m(3, 4), 0.5, True)), half, random=kept_or_zero),
        E("native_dropout", calls(lambda m: (m(3, 4), 0.5, True)), lambda x, *_: (x, x != 0), result=("same", "bool"),
          random=kept_or_zero),
    ]


GROUPS = {f.__name__: f() for f in (arithmetic, functions, choices, comparisons, activation_functions, reductions,
                                    products, views, copies, indexing, losses, creation, drawn)}
for _path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "table_*.py"))):
    GROUPS.update(importlib.import_module(os.path.basename(_path)[:-3]).groups(E))  # more groups, by topic
TABLE = {entry.name: entry for group in GROUPS.values() for entry in group}


def aliases():
    """Rows of ops/native_alias.yaml: each is tried as the operator whose other name it is."""
    rows = os.path.join(os.path.dirname(__file__), "..", "..", "ops", "native_alias.yaml")
    with open(rows) as file:
        found = re.findall(r"- func: ([\w.]+)\(.*?\n  alias: ([\w.]+)", file.read(), re.S)
    for name, target in found:
        entry = copy.copy(TABLE[target])
        entry.name = name
        if name.startswith("special_"):
            entry.forms = "fo"  # no in-place forms
        yield name, entry


GROUPS["aliases"] = [entry for name, entry in aliases() if name not in TABLE]
TABLE.update((entry.name, entry) for entry in GROUPS["aliases"])
