#!/usr/bin/env python3
"""Fits the polynomials of src/backend/cpu/vmath_*.h and prints them as C hexadecimal literals.

Each fit is a weighted minimax polynomial in v(x), found by Remez's second algorithm (E. Remez 1934) in
multi-precision.  The first two coefficients are rounded to the target format one by one and the rest is fitted again
with them fixed, so that the rounding of a large coefficient costs little.  `python tools/fit_vmath.py [NAME...]` prints
the named fits (all by default) with their error in bits: the headers' tables are this program's output.
"""
import re
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 45


def remez(g, w, v, lo, hi, deg, points=701):
    """Minimax of |w(x) (g(x) - P(v(x)))| over [lo, hi]; returns coefficients (low to high) and the error."""
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    grid = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (points - i) / points) for i in range(points + 1)]
    grid = [x if x != 0 else (hi - lo) * mp.mpf("1e-9") for x in grid]
    gv, wv, vv = [g(x) for x in grid], [abs(w(x)) for x in grid], [v(x) for x in grid]
    n = deg + 2
    ref = [round(points * (1 - mp.cos(mp.pi * i / (n - 1))) / 2) for i in range(n)]
    best = None
    for _ in range(12):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for r, i in enumerate(ref):
            for c in range(deg + 1):
                a[r, c] = wv[i] * vv[i] ** c
            a[r, deg + 1] = (-1) ** r
            b[r] = wv[i] * gv[i]
        sol = mp.lu_solve(a, b)
        coef = [sol[c] for c in range(deg + 1)]
        err = [wv[i] * (gv[i] - mp.polyval(coef[::-1], vv[i])) for i in range(points + 1)]
        worst = max(abs(e) for e in err)
        if best is None or worst < best[1]:
            best = (coef, worst)
        if worst < abs(sol[deg + 1]) * mp.mpf("1.01"):
            break
        peaks = []                                   # alternating extrema, one a run of equal sign
        for i, e in enumerate(err):
            if peaks and (e > 0) == (err[peaks[-1]] > 0):
                if abs(e) > abs(err[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > n:
            peaks.pop(0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1)
        if len(peaks) < n:
            break
        ref = peaks
    return best


def rounded(x, bits):
    return mp.mpf(float(np.float32(float(x)))) if bits == 24 else mp.mpf(float(x))


def fit(g, w, v, lo, hi, deg, bits, fixed=2):
    """As remez, with the first `fixed` coefficients rounded to `bits` in turn and the others refitted."""
    done = []
    for _ in range(min(fixed, deg)):
        def rest(x, done=tuple(done)):
            t, p, vx = g(x), mp.mpf(1), v(x)
            for c in done:
                t -= c * p
                p *= vx
            return t / p
        coef, _ = remez(rest, lambda x: w(x) * v(x) ** len(done), v, lo, hi, deg - len(done), 301)
        done.append(rounded(coef[0], bits))
    coef, err = remez(lambda x: (g(x) - mp.polyval(done[::-1], v(x))) / v(x) ** len(done),
                      lambda x: w(x) * v(x) ** len(done), v, lo, hi, deg - len(done))
    return [float(rounded(c, bits)) for c in done + coef], float(-mp.log(err, 2))


def print_pi_header():
    """The text of src/backend/cpu/vmath_pi.h."""
    print("""// vmath_pi.h: 2/pi for the reduction of huge arguments of sin, cos and tan.
// Written by `python tools/fit_vmath.py PI`.
#ifndef EMBER_BACKEND_CPU_VMATH_PI_H
#define EMBER_BACKEND_CPU_VMATH_PI_H

#include <stdint.h>

// Row s: 2^(26 s) * 2/pi mod 4 in 29-bit parts, so that each product with a float is exact.
static const double vm_priv_pi_f32[4][4] __attribute__((unused)) = {""")
    with mp.workprec(1400):
        for s in range(4):
            a, row = mp.fmod(mp.mpf(2) ** (26 * s) * 2 / mp.pi, 4), []
            for _ in range(4):
                m, e = mp.frexp(a)
                h = mp.nint(m * mp.mpf(2) ** 29) * mp.mpf(2) ** (int(e) - 29)
                row.append(float(h).hex())
                a -= h
            print("  { " + ", ".join(row) + " },")
        print("};\n\n// 64 zero bits, then the bits of 2/pi.")
        print("static const uint64_t vm_priv_pi_bits[21] __attribute__((unused)) = {")
        words, a = [0], 2 / mp.pi
        for _ in range(20):
            words.append(int(mp.floor(a * 2 ** 64)))
            a = a * 2 ** 64 - words[-1]
        for i in range(0, 21, 4):
            print("  " + " ".join(f"0x{w:016x}u," for w in words[i:i + 4]))
    print("};\n\n#endif")


# ---- vmath_tables.h ----


def f32(x):
    return mp.mpf(float(np.float32(float(x))))


def through(g, xs):
    """The polynomial that equals g at xs, low to high."""
    n = len(xs)
    return list(mp.lu_solve(mp.matrix([[x**c for c in range(n)] for x in xs]), mp.matrix([g(x) for x in xs])))


def slope(f, c):
    """(f(c + d) - f(c)) / d."""
    return lambda d: (f(c + d) - f(c)) / d if abs(d) > 1e-12 else mp.diff(f, c)


def pieces(f, first, end):
    """32 columns: piece 0 up to 5/64 with the coefficients `first`, then four an octave up to `end`.

    The centre of a piece is a zero of T6 on it, moved to where f comes nearest to a float: with the five other zeros as
    nodes the error is nearly minimax."""
    edges = [mp.mpf(2) ** (k // 4 - 4) * (1 + mp.mpf(k % 4) / 4) for k in range(1, 32)]
    rows = [[0, 0, *first]]
    for lo, hi in zip(edges, edges[1:]):
        if lo >= end:
            break
        hi = min(hi, end)
        step = mp.mpf(2) ** (mp.floor(mp.log(lo, 2)) - 20)
        zeros = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / 12) for i in range(6)]
        near = f32(zeros.pop(2))
        c = min((near + j * step for j in range(-400, 401)), key=lambda c: abs(f32(f(c)) - f(c)))
        rows.append([c, f(c), *through(slope(f, c), [x - c for x in zeros])])
    return rows + [rows[-1]] * (32 - len(rows))


def odd(f, plus):
    """c1 to c5 of an odd function on [0, 5/64], f(x) / x + plus to begin with."""
    zeros = [mp.mpf(25) / 8192 * (1 + mp.cos(mp.pi * (2 * i + 1) / 6)) for i in range(3)]
    co = through(lambda z: f(mp.sqrt(z)) / mp.sqrt(z) + plus, zeros)
    return [co[0], 0, co[1], 0, co[2]]


def print_tables_header():
    """The text of src/backend/cpu/vmath_tables.h."""
    print("""\
// vmath_tables.h: tanh and erf in 32 pieces each, picked by permutations (vmath_v512.h). Piece i is column i.
// Written by `python tools/fit_vmath.py TABLES`.
#ifndef EMBER_BACKEND_CPU_VMATH_TABLES_H
#define EMBER_BACKEND_CPU_VMATH_TABLES_H
""")
    for name, rows, what in (
        ("tanh", pieces(mp.tanh, odd(mp.tanh, 0), 9.1), "tanh(centre + d)"),
        ("erf", pieces(mp.erf, odd(mp.erf, -1), 4), "erf(centre + d), less d in piece 0"),
    ):
        print(f"// Centre, c0, c1 to c5: {what} = c0 + c1 d + ... + c5 d^5.\n"
              f"static const float vm_priv_{name}_table[7][32] __attribute__((unused)) = {{")
        for column in zip(*rows):
            words = [re.sub(r"\.?0+p", "p", float(f32(v)).hex()) + "f" if v else "0" for v in column]
            for at in range(0, 32, 6):
                print("  " + "{ " * (at == 0) + ", ".join(words[at : at + 6]) + ("," if at + 6 < 32 else " },"))
        print("};\n")
    print("#endif")


ID, SQ = (lambda x: x), (lambda x: x * x)
L2_32 = rounded(mp.log(2), 24)
LN2H = mp.log(2) / 2 + mp.mpf("1e-4")
FLO, FHI = 1 / mp.sqrt(2) - 1 - mp.mpf("1e-6"), mp.sqrt(2) - 1 + mp.mpf("1e-6")
SMAX, PI4 = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) + mp.mpf("1e-7"), mp.pi / 4 + mp.mpf("1e-4")
T8 = mp.sqrt(2) - 1 + mp.mpf("1e-9")


def atanh2(s):
    return mp.log((1 + s) / (1 - s))


def erfcx1(k):
    """x from t = (x - k) / (x + k), and (1 + 2x) exp(x^2) erfc(x) there."""
    return lambda t: (lambda x: (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x))(k * (1 + t) / (1 - t))


def tmap(x, k):
    return (mp.mpf(x) - k) / (mp.mpf(x) + k)


FITS = {
    # name: (g, weight, variable, low, high, degree, bits)
    "EXP32": (lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), ID, -LN2H, LN2H, 5, 24),
    "EXPM1_32": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r), ID, -LN2H, LN2H, 5, 24),
    "EXP2_32": (lambda r: (mp.mpf(2)**r - 1 - L2_32 * r) / r**2, lambda r: r * r, ID, -0.5001, 0.5001, 5, 24),
    "LOG32": (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: f**3 / mp.log1p(f), ID, FLO, FHI, 8, 24),
    "LOGM32": (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: f**3 / mp.log1p(f), ID, -0.25, 0.5, 8, 24),
    "TANH32": (lambda x: (mp.tanh(x) - x) / x**3, lambda x: x**3 / mp.tanh(x), SQ, 1e-4, 0.971, 7, 24),
    "ERF32": (lambda x: mp.erf(x) / x - 1, lambda x: x / mp.erf(x), SQ, 1e-4, 0.911, 6, 24),
    "ERFL32": (lambda t: mp.log(mp.erfc(t)), lambda t: mp.erfc(t) / mp.erf(t), ID, 0.909, 3.95, 7, 24),
    "ERFC32": (erfcx1(2), lambda t: 1, ID, tmap(0.49, 2), tmap(10.2, 2), 11, 24),
    "SIN32": (lambda x: (mp.sin(x) - x) / x**3, lambda x: x**3 / mp.sin(x), SQ, 1e-4, 0.812, 3, 53),
    "COS32": (lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4, lambda x: x**4 / mp.cos(x), SQ, 1e-3, 0.812, 2, 53),
    "POWLOG32": (lambda f: mp.log(1 + f, 2) / f, lambda f: f / mp.log(1 + f, 2), ID, FLO, FHI, 12, 53),
    "POWEXP32": (lambda r: (mp.mpf(2)**r - 1) / r, lambda r: r, ID, -0.5001, 0.5001, 5, 53),
    "EXP64": (lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), ID, -LN2H, LN2H, 10, 53),
    "EXPM1_64": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r), ID, -LN2H, LN2H, 10, 53),
    "EXP2_64": (lambda r: (mp.mpf(2)**r - 1 - mp.log(2) * r) / r**2, lambda r: r * r, ID, -0.5001, 0.5001, 9, 53),
    "LOG64": (lambda s: (atanh2(s) - 2 * s) / s**3, lambda s: s**3 / atanh2(s), SQ, 1e-4, SMAX, 6, 53),
    "POWLOG64": (lambda s: (atanh2(s) / 2 - s - s**3 / 3) / s**5, lambda s: s**5 / atanh2(s), SQ, 1e-3, SMAX, 6, 53),
    "SIN64": (lambda x: (mp.sin(x) - x) / x**3, lambda x: x**3 / mp.sin(x), SQ, 1e-4, PI4, 5, 53),
    "COS64": (lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4, lambda x: x**4 / mp.cos(x), SQ, 1e-3, PI4, 5, 53),
    "ATAN64": (lambda x: (mp.atan(x) - x) / x**3, lambda x: x**3 / mp.atan(x), SQ, 1e-4, T8, 10, 53),
    "ASIN64": (lambda x: (mp.asin(x) - x) / x**3, lambda x: x**3 / mp.asin(x), SQ, 1e-4, 0.50001, 12, 53),
    "ERF64": (lambda x: mp.erf(x) / x - 1, lambda x: x / mp.erf(x), SQ, 1e-4, 0.911, 12, 53),
    "ERFC64": (lambda t: (erfcx1(4)(t) - erfcx1(4)(0)) / t, ID, ID, tmap(0.49, 4), tmap(27.3, 4), 21, 53),
}


def main():
    if sys.argv[1:] == ["PI"]:
        return print_pi_header()
    if sys.argv[1:] == ["TABLES"]:
        return print_tables_header()
    for name in sys.argv[1:] or FITS:
        *spec, bits = FITS[name]
        coef, err = fit(*spec, bits)
        print(f"{name}: error 2^-{err:.1f}, low to high")
        for c in coef:
            print("    " + re.sub(r"\.?0+p", "p", float(c).hex()) + ("f" if bits == 24 else ""))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
