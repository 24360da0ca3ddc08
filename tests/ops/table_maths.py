"""The table's entries for native_maths.yaml, native_special.yaml and native_linalg.yaml. lint: table"""
import math

import mpmath
import numpy as np
import references as r
import references_maths as rm
from makers import (binary, binary_nonzero, calls, corrected, over_dim, over_dims_or_all, unary, unary_positive, unary_unit, whole,
                    with_number)
from subject import Arg

mp = rm.by_mpmath
REAL = "bool int float"


def whole_numbers(m):
    yield (m(3, 4), m(3, 4)), {}
    yield (m(3, 1), m(4)), {}


def unit_interval(*shape):
    return lambda m: m(*shape, low=0.1, high=0.9)


def at_least(low, high):
    """Positive numbers away from a function's poles and zeros."""
    return calls(lambda m: (m.positive(3, 4, low=low, high=high),), lambda m: (m.positive(low=low, high=high),))


def trigonometry(E):
    w = lambda f: r.widened(getattr(np, f))  # noqa: E731
    made = [E(n, unary_unit, w(n), "fio", "float", scale=4) for n in ("arcsin", "arccos", "arctanh")]
    made += [E(n, unary, w(n), "fio", "float", scale=4) for n in ("arctan", "arcsinh")]
    made += [E("a" + n[3:], unary_unit, w(n), "fio", "float", scale=4) for n in ("arcsin", "arccos", "arctanh")]
    made += [E("asinh", unary, w("arcsinh"), "fio", "float", scale=4)]
    above = calls(lambda m: (m.positive(3, 4, low=1.25, high=4),))
    made += [E(n, above, w("arccosh"), "fio", "float", scale=4) for n in ("acosh", "arccosh")]
    made += [E(n, binary, lambda a, b: np.arctan2(np.asarray(a, np.float64), np.asarray(b, np.float64)), "fio", "float")
             for n in ("atan2", "arctan2")]
    made += [E("hypot", binary_nonzero, np.hypot, "fio"), E("sinc", unary, rm.sinc, "fio", "float", scale=8),
             E("special_sinc", unary, rm.sinc, "fo", "float", scale=8),
             E("deg2rad", unary, r.widened(np.deg2rad), "fio", "float"), E("rad2deg", unary, r.widened(np.rad2deg), "fio", "float")]
    return made


def parts(E):
    def truth(f):
        return lambda x: f(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    copy = lambda a, b: np.copysign(np.asarray(a, np.float64), np.asarray(b, np.float64))  # noqa: E731
    pair = calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 1), m(4)))
    odd = calls(lambda m: (Arg(np.where(m.random.rand(3, 4) < 0.3, np.nan, m(3, 4).values) if m.kind == "float" else m(3, 4).values),),
                lambda m: ((m(3, 4),), {"nan": 1.0, "posinf": 2.0, "neginf": -2.0}))
    power = lambda a, b: np.power(np.asarray(a, np.result_type(a, np.float64)), b)  # noqa: E731
    sized = calls(lambda m: (m.positive(3, 4), m.positive(3, 4, high=2)))
    join = lambda a, b: np.asarray(a, np.float64) + 1j * np.asarray(b, np.float64)  # noqa: E731
    return [
        E("copysign.Tensor", pair, copy, "fio", "float"), E("copysign.Scalar", with_number, copy, "fio", "float"),
        E("signbit", unary, lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, "fo", "bool"),
        E("angle", unary, lambda x: np.angle(x.astype(np.result_type(x, np.float64))), "fo", "real_of_float"),
        E("positive", unary, np.copy), E("nextafter", calls(lambda m: (m(3, 4, diff=False), m(3, 4, diff=False))), lambda a, b: a,
                                         "fio"),  # to a tolerance; exactly in test_maths.py
        E("frexp.Tensor", unary, rm.frexp, "fo", ("same", "int32")),
        E("ldexp.Tensor", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 1), m(4))), rm.ldexp, "fio", "float", scale=4,
          kinds="int float"),
        E("nan_to_num", odd, lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan), "fio", kinds=REAL),
        E("complex", pair, join, "fo", "complex"),
        E("polar", pair, lambda a, b: a * np.exp(1j * np.asarray(b, np.float64)), "fo", "complex", scale=4),
        E("float_power.Tensor_Tensor", sized, power, "fo", "double", scale=4),
        E("float_power.Tensor_Scalar", calls(lambda m: (m.positive(3, 4), 2)), power, "fo", "double", scale=4),
        E("float_power.Scalar", calls(lambda m: (2, m.positive(3, 4))), power, "fo", "double", scale=4),
        E("logaddexp", pair, lambda a, b: np.log(np.exp(a) + np.exp(b)), "fo", scale=8),
        E("logaddexp2", pair, lambda a, b: np.log2(np.exp2(a) + np.exp2(b)), "fo", scale=8),
        E("isposinf", unary, truth(np.isposinf), "fo", "bool"), E("isneginf", unary, truth(np.isneginf), "fo", "bool"),
        E("isreal", unary, np.isreal, result="bool"),
        E("heaviside", calls(lambda m: (m(3, 4, diff=False), m(3, 4, diff=False))),
          lambda a, b: np.where(a == 0, b, a > 0), "fio"),
    ]


def products_of_logs(E):
    made = []
    for name, log, forms, names in (("xlogy", np.log, "fio", (".Tensor", ".Scalar_Other", ".Scalar_Self")),
                                    ("special_xlogy", np.log, "f", ("", ".other_scalar", ".self_scalar")),
                                    ("special_xlog1py", np.log1p, "fo", ("", ".other_scalar", ".self_scalar"))):
        f = rm.xlogy(log)
        made += [E(name + names[0], binary_nonzero, f, forms, "float", scale=4),
                 E(name + names[1], calls(lambda m: (m(3, 4), 2.5)), f, forms, "float", scale=4, kinds="float"),
                 E(name + names[2], calls(lambda m: (2.5, m.positive(3, 4))), f, "fo", "float", scale=4, kinds="float")]
    return made


def bits(E):
    shift = calls(lambda m: (m(3, 4), m.positive(3, 4, high=1)), lambda m: (m(3, 1), m.positive(4, high=1)))
    wide = lambda f: lambda a, b: f(np.asarray(a, np.int64), np.asarray(b, np.int64))  # noqa: E731
    made = [E("gcd", whole_numbers, np.gcd, "fio"), E("lcm", whole_numbers, np.lcm, "fio")]
    for side, f in (("left", np.left_shift), ("right", np.right_shift)):
        name = f"bitwise_{side}_shift"
        made += [E(f"{name}.Tensor", shift, wide(f), "fio", kinds="int"), E(f"{name}.Tensor_Scalar", calls(lambda m: (m(3, 4), 2)),
            wide(f), "fio", kinds="int"),
                 E(f"{name}.Scalar_Tensor", calls(lambda m: (2, m.positive(3, 4))), wide(f), "fo", kinds="int")]
    for name, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        made.append(E(f"bitwise_{name}.Scalar_Tensor", calls(lambda m: (m.number(), m(3, 4))), f, "fo"))
    return made


def gamma_functions(E):
    near = at_least(0.6, 3)
    order = lambda f: calls(lambda m: (2, m.positive(3, 4, low=0.6)), lambda m: (0, m.positive(4, low=0.6)))(f)  # noqa: E731
    polygamma = mp(lambda n, x: mpmath.psi(int(n), x))
    made = [E(n, near, mp(lambda x: mpmath.loggamma(x)), forms, "float", scale=8, kinds="int float") for n, forms in (("lgamma", "fio"),
        ("special_gammaln", "fo"))]
    made += [E(n, near, mp(mpmath.digamma), forms, "float", scale=16, kinds="int float")
             for n, forms in (("digamma", "fio"), ("special_digamma", "fo"), ("special_psi", "fo"))]
    made += [E(n, order, polygamma, "fo", "float", scale=16, kinds="int float") for n in ("polygamma", "special_polygamma")]
    made += [E("polygamma_", calls(lambda m: (m.positive(3, 4, low=0.6), 1)), lambda x, n: polygamma(n, x), kinds="float", scale=16)]
    made += [E(n, calls(lambda m: (m.positive(3, 4, low=1.3), 3)), rm.mvlgamma, forms, "float", scale=32, kinds="float")
             for n, forms in (("mvlgamma", "fio"), ("special_multigammaln", "fo"))]
    both = calls(lambda m: (m.positive(3, 4, diff=False), m.positive(3, 4)), lambda m: (m.positive(3, 1, diff=False), m.positive(4)))
    lower = mp(lambda a, x: mpmath.gammainc(a, 0, x, regularized=True))
    upper = mp(lambda a, x: mpmath.gammainc(a, x, regularized=True))
    made += [E("igamma", both, lower, "fio", scale=8), E("igammac", both, upper, "fio", scale=8),
             E("special_gammainc", both, lower, "fo", scale=8), E("special_gammaincc", both, upper, "fo", scale=8)]
    zeta = mp(lambda s, q: mpmath.zeta(s, q))
    made += [E("special_zeta", calls(lambda m: (m.positive(3, 4, low=1.2, diff=False), m.positive(3, 4, low=0.4))), zeta, "fo", "float",
               scale=16, kinds="float"),
             E("special_zeta.other_scalar", calls(lambda m: (m.positive(3, 4, low=1.2, diff=False), 1.5)), zeta, "fo", "float", scale=16,
               kinds="float"),
             E("special_zeta.self_scalar", calls(lambda m: (2.5, m.positive(3, 4, low=0.4))), zeta, "fo", "float", scale=16, kinds="float")]
    return made


def error_functions(E):
    inside = calls(lambda m: (m(3, 4, low=-0.9, high=0.9),))
    unit = calls(lambda m: (unit_interval(3, 4)(m),))
    normal = mp(lambda x: mpmath.ncdf(x))
    made = [E(n, inside, mp(mpmath.erfinv), forms, "float", scale=4, kinds="float") for n, forms in (("erfinv", "fio"), ("special_erfinv",
        "fo"))]
    logit = calls(lambda m: (unit_interval(3, 4)(m),), lambda m: ((unit_interval(3, 4)(m),), {"eps": 0.25}))
    back = calls(lambda m: (m(3, 4), unit_interval(3, 4)(m)), lambda m: ((m(3, 4), unit_interval(3, 4)(m)), {"eps": 0.05}))
    made += [E(n, logit, rm.logit, forms, "float", scale=8, kinds="float") for n, forms in (("logit", "fio"), ("special_logit", "fo"))]
    return made + [
        E("logit_backward", back, lambda g, x, eps=None: g / (x * (1 - x)), "fo", scale=8),
        E("special_erfc", unary, r.erfc, "fo", "float", scale=4),
        E("special_erfcx", unary, mp(lambda x: mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x)), "fo", "float", scale=8, kinds="float"),
        E("special_ndtr", unary, normal, "fo", "float", scale=4),
        E("special_ndtri", unit, mp(lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)), "fo", "float", scale=8,
          kinds="float"),
        E("special_log_ndtr", unary, mp(lambda x: mpmath.log(mpmath.ncdf(x))), "fo", "float", scale=8),
        E("special_entr", unary_positive, lambda x: -x * np.log(np.asarray(x, np.float64)), "fo", "float", scale=4, kinds="int float"),
    ]


def bessel_functions(E):
    made = []
    scaled = lambda f: lambda x: mpmath.exp(x) * f(x)  # noqa: E731
    k0, k1 = (lambda x: mpmath.besselk(0, x)), (lambda x: mpmath.besselk(1, x))
    for name, f, forms in (("i0", lambda x: mpmath.besseli(0, x), "fio"), ("special_i0", lambda x: mpmath.besseli(0, x), "fo"),
                           ("special_i0e", lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), "fo"),
                           ("special_i1", lambda x: mpmath.besseli(1, x), "fo"),
                           ("special_i1e", lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), "fo"),
                           ("special_modified_bessel_i0", lambda x: mpmath.besseli(0, x), "fo"),
                           ("special_modified_bessel_i1", lambda x: mpmath.besseli(1, x), "fo"),
                           ("special_bessel_j0", mpmath.j0, "fo"), ("special_bessel_j1", mpmath.j1, "fo"),
                           ("special_airy_ai", mpmath.airyai, "fo"),
                           ("special_spherical_bessel_j0", lambda x: mpmath.sincpi(x / math.pi) if x else 1, "fo")):
        made.append(E(name, unary, mp(f), forms, "float", scale=16))
    for name, f in (("special_bessel_y0", lambda x: mpmath.bessely(0, x)), ("special_bessel_y1", lambda x: mpmath.bessely(1, x)),
                    ("special_modified_bessel_k0", k0), ("special_modified_bessel_k1", k1),
                    ("special_scaled_modified_bessel_k0", scaled(k0)), ("special_scaled_modified_bessel_k1", scaled(k1))):
        made.append(E(name, unary_positive, mp(f), "fo", "float", scale=16))
    return made


def polynomials(E):
    made = []
    degree = lambda m, *shape: m.index(*shape, high=12)  # noqa: E731
    for name, key in (("chebyshev_polynomial_t", "t"), ("chebyshev_polynomial_u", "u"), ("chebyshev_polynomial_v", "v"),
                      ("chebyshev_polynomial_w", "w"), ("hermite_polynomial_h", "h"), ("hermite_polynomial_he", "he"),
                      ("laguerre_polynomial_l", "l"), ("legendre_polynomial_p", "p")):
        f = mp(rm.polynomial(key))
        for prefix, g in (("", f), ("shifted_", (lambda f: lambda x, n: f(2 * np.asarray(x) - 1, n))(f))):
            if prefix and not name.startswith("cheb"):
                continue
            full = f"special_{prefix}{name}"
            made += [E(full, calls(lambda m: (m(3, 4, low=-2, high=2), degree(m, 3, 4))), g, "fo", "float", scale=256, kinds="float"),
                     E(full + ".n_scalar", calls(lambda m: (m(3, 4, low=-2, high=2), 5)), g, "fo", "float", scale=64, kinds="float"),
                     E(full + ".x_scalar", calls(lambda m: (0.5, m(3, 4, low=0, high=4))),
                       (lambda g: lambda x, n: g(x, np.trunc(n)))(g), "fo", "float", scale=64, kinds="float")]
    return made + [E("special_round", calls(lambda m: ((m(3, 4),), {"decimals": 1}), lambda m: (m(3, 4),)),
                     lambda x, decimals=0: np.round(x, decimals), "fo", kinds="float")]


def along(E):
    lines = calls(lambda m: (m(3, 4), 0), lambda m: (m(2, 3, 4), -1), lambda m: (m(0, 3), 0), lambda m: (m(), 0), lambda m: (m(2, 3, 70),
        1))
    some = calls(lambda m: (m(3, 5),), lambda m: (m(3, 5), 2, 0), lambda m: ((m(3, 4),), {"dim": 1, "prepend": m(3, 1), "append": m(3, 2)}))
    return [
        E("cumprod", lines, rm.accumulated(np.cumprod), "fio", "sum", scale=8),
        E("logcumsumexp", lines, rm.logcumsumexp, "fo", scale=16),
        E("cummax", lines, rm.running(np.greater_equal), "fo", ("same", "int64")),
        E("cummin", lines, rm.running(np.less_equal), "fo", ("same", "int64")),
        E("diff", some, rm.difference, "fo", kinds="int float complex"),
        E("trapezoid.dx", calls(lambda m: ((m(3, 4),), {"dx": 0.5}), lambda m: (m(3, 4),)), rm.trapezoid, result="float", scale=4),
        E("trapz.dx", calls(lambda m: ((m(3, 4),), {"dx": 0.5}), lambda m: (m(3, 4),)), rm.trapezoid, result="float", scale=4),
        E("trapezoid.x", calls(lambda m: (m(3, 4), m(4)), lambda m: (m(2, 4), m(2, 4))), rm.trapezoid, result="float", scale=8,
          kinds="float complex"),
        E("trapz.x", calls(lambda m: (m(3, 4), m(4))), rm.trapezoid, result="float", scale=8, kinds="float complex"),
        E("cumulative_trapezoid.dx", calls(lambda m: ((m(3, 4),), {"dx": 0.5})), rm.cumulative_trapezoid, result="float", scale=8),
        E("cumulative_trapezoid.x", calls(lambda m: (m(3, 4), m(4))), rm.cumulative_trapezoid, result="float", scale=8,
          kinds="float complex"),
    ]


def statistics(E):
    several = calls(lambda m: (m(3, 4),), lambda m: (m(2, 3, 5),))
    spread = calls(lambda m: (m(2, 3, 4), [1], False), lambda m: (m(2, 3, 4), [0, 2], True, True))
    total = lambda x, dim=None, keepdim=False: r.along(r.total)(x, dim, keepdim)  # noqa: E731
    mean = lambda x, dim=None, keepdim=False: r.along(np.mean)(x, dim, keepdim)  # noqa: E731
    count = lambda x, dim=None: np.count_nonzero(x, axis=r.dims(x, dim))  # noqa: E731
    made = [E(n, whole, rm.lower_median, "f") for n in ("median", "nanmedian")]
    made += [E(f"{n}.dim", over_dim, rm.median_along, "fo", ("same", "int64")) for n in ("median", "nanmedian")]
    return made + [
        E("mode", over_dim, rm.mode, "fo", ("same", "int64")),
        E("count_nonzero", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1)), count, result="int64"),
        E("count_nonzero.dim_IntList", calls(lambda m: (m(2, 3, 4), [0, 2])), count, result="int64"),
        E("nansum", over_dims_or_all, total, "fo", "sum", kinds=REAL), E("nanmean", over_dims_or_all, mean, "fo", kinds="float"),
        E("std_mean.correction", corrected, rm.spread, "fo", ("real", "same"), scale=4),
        E("std_mean", several, lambda x: rm.spread(x), result=("real", "same"), scale=4),
        E("std_mean.dim", spread, lambda x, dim, unbiased=True, keepdim=False: rm.spread(x, dim, int(unbiased), keepdim),
          result=("real", "same"), scale=4),
        E("aminmax", calls(lambda m: (m(3, 4),), lambda m: ((m(2, 3, 4),), {"dim": 1, "keepdim": True})), rm.minmax, "fo"),
        E("renorm", calls(lambda m: (m(3, 4), 2, 0, 3.0), lambda m: (m(2, 3, 4), 1, 1, 100.0)), rm.renorm, "fio", scale=8,
          kinds="float complex"),
        E("dist", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: (m(3, 4), m(4), 3)), lambda a, b, p=2: r.vector_norm(a - b, p),
          result="real", scale=8),
        E("cov", calls(lambda m: (m(3, 5),), lambda m: ((m(3, 5),), {"correction": 0})), rm.cov, result="float", scale=16),
        E("corrcoef", calls(lambda m: (m(3, 5),)), np.corrcoef, result="float", scale=16),
    ]


def products(E):
    pairs = [("ij,jk->ik", (3, 4), (4, 2)), ("bij,bjk", (2, 3, 4), (2, 4, 2)), ("i,j->ij", (3,), (4,)), ("ij,ij->", (3, 4), (3, 4)),
             ("ii->i", (3, 3)), ("ij->ji", (3, 4)), ("iij,j->i", (3, 3, 2), (2,)), ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 2)),
             ("ij,kj->ik", (3, 1), (2, 4))]
    rows = [(lambda eq, shapes: lambda m: (eq, [m(*s) for s in shapes]))(p[0], p[1:]) for p in pairs]
    scaled = calls(lambda m: (m(3, 2), m(4, 3, 2), m(4, 2, 2)),
                   lambda m: ((m(3, 2), m(4, 3, 2), m(4, 2, 2)), {"beta": m.number(2), "alpha": m.number(3, 0.25)}))
    chain = calls(lambda m: ([m(2, 3), m(3, 4), m(4, 2)],), lambda m: ([m(2, 3), m(3, 4), m(4, 5), m(5, 2)],))
    dot = lambda ts: np.linalg.multi_dot(ts)  # noqa: E731
    numeric = "int float complex"
    return [
        E("einsum", calls(*rows), rm.einsum, result="sum", scale=8, kinds="float complex"),
        E("tensordot", calls(lambda m: (m(2, 3, 4), m(4, 3, 2), [1, 2], [1, 0])), lambda a, b, x, y: np.tensordot(a, b, (x, y)), "fo",
          scale=8, kinds=numeric),
        E("inner", calls(lambda m: (m(2, 3), m(4, 3)), lambda m: (m(3), m(3))), np.inner, "fo", scale=8, kinds=numeric),
        E("kron", calls(lambda m: (m(2, 3), m(3, 2)), lambda m: (m(2), m(3, 2))), np.kron, "fo"),
        E("linalg_multi_dot", chain, dot, "fo", scale=32, kinds="float complex"), E("chain_matmul", chain, dot, "fo", scale=32,
            kinds="float complex"),
        E("addbmm", scaled, rm.addbmm, "fio", scale=16, kinds=numeric),
        E("bilinear", calls(lambda m: (m(3, 4), m(3, 2), m(5, 4, 2), m(5)), lambda m: (m(4), m(2), m(5, 4, 2))), rm.bilinear, scale=16,
          kinds=numeric),
        E("linalg_vecdot", calls(lambda m: (m(3, 4), m(3, 4)), lambda m: ((m(3, 4), m(4)), {"dim": -1}), lambda m: (m(4), m(4))),
          lambda x, y, dim=-1: np.sum(np.conj(x) * y, dim), "fo", scale=8, kinds="float complex"),
        E("linalg_cross", calls(lambda m: (m(4, 3), m(4, 3)), lambda m: ((m(3, 2), m(3, 1)), {"dim": 0})), rm.cross, "fo", scale=4,
          kinds=numeric),
        E("cross", calls(lambda m: (m(4, 3), m(4, 3), 1)), rm.cross, "fo", scale=4, kinds=numeric),
    ]


def definite(m, *shape):
    """Hermitian, with eigenvalues well above 0 and apart; its lower triangle counts."""
    a = m(*shape).values
    n = shape[-1]
    return Arg(np.matmul(a, np.conj(np.swapaxes(a, -1, -2))) / n + np.diag(np.arange(1, n + 1) * 2.0))


def regular(m, *shape):
    """Far from singular."""
    return Arg(m(*shape).values + 4 * np.eye(shape[-1]))


def linear_algebra(E):
    one = calls(lambda m: (regular(m, 3, 3),), lambda m: (regular(m, 2, 3, 3),))
    plain = calls(lambda m: (Arg(definite(m, 3, 3).values, diff=False),), lambda m: (Arg(definite(m, 2, 3, 3).values, diff=False),))
    system = calls(lambda m: (regular(m, 3, 3), m(3, 2)), lambda m: (regular(m, 2, 3, 3), m(2, 3, 2)), lambda m: (regular(m, 3, 3), m(3)),
                   lambda m: ((regular(m, 3, 3), m(2, 3)), {"left": False}))
    kw = {"scale": 256, "kinds": "float complex"}
    lone = {**kw, "layout": False}  # a layout that repeats rows makes the matrix singular
    code = lambda f: lambda *a, **k: (f(*a), np.zeros(a[0].shape[:-2], np.int32))  # noqa: E731
    return [
        E("linalg_solve", system, rm.solve, "fo", **lone),
        E("linalg_solve_ex", calls(lambda m: (regular(m, 3, 3), m(3, 2))), code(rm.solve), result=("same", "int32"), **kw),
        E("linalg_inv", one, np.linalg.inv, "fo", **lone), E("inverse", one, np.linalg.inv, "fo", **lone),
        E("linalg_inv_ex", one, code(np.linalg.inv), result=("same", "int32"), **kw),
        E("linalg_det", one, np.linalg.det, "fo", **kw), E("det", one, np.linalg.det, **kw),
        E("linalg_slogdet", one, lambda a: tuple(np.linalg.slogdet(a)), "fo", ("same", "real"), **kw),
        E("slogdet", one, lambda a: tuple(np.linalg.slogdet(a)), "fo", ("same", "real"), **kw),
        E("logdet", calls(lambda m: (Arg(definite(m, 3, 3).values),)), lambda a: np.log(np.linalg.det(a)), scale=256, kinds="float"),
        E("linalg_cholesky", calls(lambda m: (Arg(definite(m, 3, 3).values, diff=False),), lambda m: ((Arg(definite(m, 2, 3, 3).values,
          diff=False),), {"upper": True})), rm.cholesky, "fo", **lone),
        E("linalg_cholesky_ex", plain, code(rm.cholesky), result=("same", "int32"), **kw),
        E("linalg_solve_triangular", calls(lambda m: ((regular(m, 3, 3), m(3, 2)), {"upper": False}), lambda m: ((regular(m, 3, 3), m(2,
            3)),
          {"upper": True, "left": False})), rm.triangular, "fo", **kw),
        E("linalg_svdvals", calls(lambda m: (m(4, 3),), lambda m: (m(2, 3, 4),)), lambda a: np.linalg.svd(a, compute_uv=False), "fo",
          "real",
          **kw),
        E("linalg_eigvalsh", plain, np.linalg.eigvalsh, "fo", "real", **kw),
        E("linalg_matrix_power", calls(lambda m: (regular(m, 3, 3), 3), lambda m: (regular(m, 3, 3), -2), lambda m: (regular(m, 3, 3), 0)),
          np.linalg.matrix_power, "fo", **lone),
        E("matrix_power", calls(lambda m: (regular(m, 3, 3), 3)), np.linalg.matrix_power, "fo", **kw),
        E("linalg_matrix_norm", calls(lambda m: (m(3, 4), 1), lambda m: (m(3, 4), float("inf"), [0, 1], True), lambda m: (m(3, 4), 2),
                                      lambda m: (m(2, 3, 4), -1, [0, 2])), rm.matrix_norm, "fo", "real", **kw),
        E("linalg_matrix_norm.str_ord", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), "nuc")), rm.matrix_norm, "fo", "real", **kw),
        E("linalg_norm", calls(lambda m: (m(3, 4),), lambda m: (m(3, 4), 1), lambda m: (m(3, 4), 3, [1])), rm.norm, "fo", "real", **kw),
        E("linalg_norm.ord_str", calls(lambda m: (m(3, 4), "fro"), lambda m: (m(3, 4), "nuc")), rm.norm, "fo", "real", **kw),
        E("cdist", calls(lambda m: (m(4, 3), m(5, 3)), lambda m: (m(2, 4, 3), m(5, 3), 1.0)), rm.cdist, scale=16, kinds="float"),
        E("quantile", calls(lambda m: (m(5, 4), m(3, low=0.1, high=0.9, diff=False), 0), lambda m: (m(5, 4), m(low=0.1, high=0.9,
            diff=False))),
          rm.quantile, "fo", scale=8, kinds="float"),
        E("quantile.scalar", calls(lambda m: (m(5, 4), 0.3, 1, True), lambda m: ((m(5, 4), 0.6), {"interpolation": "nearest"})),
          rm.quantile,
          "fo", scale=8, kinds="float"),
        E("nanquantile", calls(lambda m: (m(5, 4), m(3, low=0.1, high=0.9, diff=False), 0)), rm.quantile, "fo", scale=8, kinds="float"),
        E("nanquantile.scalar", calls(lambda m: ((m(5, 4), 0.3), {"interpolation": "midpoint"})), rm.quantile, "fo", scale=8,
          kinds="float"),
    ]


def groups(E):
    topics = (trigonometry, parts, products_of_logs, bits, gamma_functions, error_functions, bessel_functions, polynomials, along,
              statistics, products, linear_algebra)
    return {"maths_" + t.__name__: t(E) for t in topics}
