// vmath_f64.h: Ember's scalar functions on double: branch-free, vectorisable, at most 1 ulp (2 where it says so).
// The rules are in vmath_bits.h, the fits in tools/fit_vmath.py; tests/c/test_vmath.py asserts the bounds. "Max ulp" is
// what it found on baseline, AVX2 and AVX-512 (one number: all the same). Methods are those of vmath_f32.h unless a
// comment says otherwise. sin, cos, tan: see vmath_circ.h.
#ifndef EMBER_BACKEND_CPU_VMATH_F64_H
#define EMBER_BACKEND_CPU_VMATH_F64_H
#include "vmath_bits.h"

// ---- exact ones ----

VM_FN double vm_abs_f64(double x) { return vm_priv_float_u64(vm_priv_bits_f64(x) & 0x7fffffffffffffffu); }

VM_FN double vm_copysign_f64(double x, double s) {
  return vm_priv_float_u64((vm_priv_bits_f64(x) & 0x7fffffffffffffffu) | (vm_priv_bits_f64(s) & 0x8000000000000000u));
}

// NaN if either is NaN, as torch.maximum and torch.minimum.
VM_FN double vm_maximum_f64(double a, double b) { return ((a > b) | (a != a)) ? a : b; }
VM_FN double vm_minimum_f64(double a, double b) { return ((a < b) | (a != a)) ? a : b; }

// Halves to even, as torch.round. Without SSE4.1: adding 2^52 leaves no bits for a fraction.
VM_FN double vm_round_f64(double x) {
#ifdef __SSE4_1__
  return __builtin_rint(x);
#else
  double a = vm_abs_f64(x), r = (a + 0x1p52) - 0x1p52;
  return vm_copysign_f64(a < 0x1p52 ? r : a, x);
#endif
}

VM_FN double vm_trunc_f64(double x) {
#ifdef __SSE4_1__
  return __builtin_trunc(x);
#else
  double a = vm_abs_f64(x), r = (a + 0x1p52) - 0x1p52;
  r = r > a ? r - 1.0 : r;
  return vm_copysign_f64(a < 0x1p52 ? r : a, x);
#endif
}

VM_FN double vm_floor_f64(double x) {
#ifdef __SSE4_1__
  return __builtin_floor(x);
#else
  double r = vm_round_f64(x);
  return vm_copysign_f64(r > x ? r - 1.0 : r, x);
#endif
}

VM_FN double vm_ceil_f64(double x) {
#ifdef __SSE4_1__
  return __builtin_ceil(x);
#else
  double r = vm_round_f64(x);
  return vm_copysign_f64(r < x ? r + 1.0 : r, x);
#endif
}

// Correctly rounded by the instruction.
VM_FN double vm_sqrt_f64(double x) { return __builtin_sqrt(x); }

// 1 / sqrt(x), as PyTorch computes it. Max ulp 1.49.
VM_FN double vm_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

// ---- exponentials ----

// 2^i for -1022 <= i <= 1023.
VM_FN double vm_priv_pow2_f64(uint64_t i) { return vm_priv_float_u64((i + 1023u) << 52); }

// p * 2^i for -2044 <= i <= 2046, in two steps so that only the last can round or overflow.
VM_FN double vm_priv_scale_f64(double p, uint64_t i) {
  uint64_t h = ((i + 2048u) >> 1) - 1024u;  // i / 2 without a 64-bit arithmetic shift
  return p * vm_priv_pow2_f64(h) * vm_priv_pow2_f64(i - h);
}

// x = *n ln2 + r with |r| <= ln2/2, for |x| < 2^11; *i is *n as an integer (Cody-Waite).
VM_FN double vm_priv_expred_f64(double x, double *n, uint64_t *i) {
  double t = VM_FMA(x, 0x1.71547652b82fep+0, 0x1.8p52), k = t - 0x1.8p52;
  *n = k;
  *i = vm_priv_bits_f64(t) - 0x4338000000000000u;
  return VM_FMA(k, 0x1.8432a1b0e2634p-43, VM_FMA(k, -0x1.62e42fefa4p-1, x));
}

// e^r - 1 for |r| <= ln2/2: minimax of degree 12.
VM_FN double vm_priv_exppoly_f64(double r) {
  double p = VM_FMA(0x1.1df78716a6fcap-29, r, 0x1.af6594bc28c2ap-26);
  p = VM_FMA(p, r, 0x1.27e5d6e42e046p-22);
  p = VM_FMA(p, r, 0x1.71ddf4601ead9p-19);
  p = VM_FMA(p, r, 0x1.a01a01310468ap-16);
  p = VM_FMA(p, r, 0x1.a01a01b17e11fp-13);
  p = VM_FMA(p, r, 0x1.6c16c16c2c9e7p-10);
  p = VM_FMA(p, r, 0x1.111111110f261p-7);
  p = VM_FMA(p, r, 0x1.555555555552ap-5);
  p = VM_FMA(p, r, 0x1.555555555555ap-3);
  p = VM_FMA(p, r, 0x1p-1);
  return VM_FMA(p, r * r, r);
}

// e^x = (h + *l) * 2^*i for -746 <= x <= 711; NaN gives NaN.
VM_FN double vm_priv_exphl_f64(double x, double *l, uint64_t *i) {
  double n, t = vm_priv_exppoly_f64(vm_priv_expred_f64(x, &n, i)), h = 1.0 + t;
  *l = t - (h - 1.0);
  return h;
}

// e^x. Max ulp 0.92 0.95 0.95.
VM_FN double vm_exp_f64(double x) {
  uint64_t i;
  double n;
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  double r = vm_priv_expred_f64(x, &n, &i);
  return vm_priv_scale_f64(1.0 + vm_priv_exppoly_f64(r), i);
}

// 2^x: minimax of degree 11; ln2 in two parts. Max ulp 0.83 0.63 0.63.
VM_FN double vm_exp2_f64(double x) {
  x = x > 1025.0 ? 1025.0 : x;
  x = x < -1076.0 ? -1076.0 : x;
  double t = x + 0x1.8p52, r = x - (t - 0x1.8p52);
  double p = VM_FMA(0x1.e9b5f215c657p-32, r, 0x1.e61cbac918fa3p-28);
  p = VM_FMA(p, r, 0x1.b5250a5dea4c5p-24);
  p = VM_FMA(p, r, 0x1.62bfc6c47a8e2p-20);
  p = VM_FMA(p, r, 0x1.ffcbfc61c0226p-17);
  p = VM_FMA(p, r, 0x1.4309130f3205p-13);
  p = VM_FMA(p, r, 0x1.5d87fe78a5d5fp-10);
  p = VM_FMA(p, r, 0x1.3b2ab6fb9ff4cp-7);
  p = VM_FMA(p, r, 0x1.c6b08d704a0cp-5);
  p = VM_FMA(p, r, 0x1.ebfbdff82c5a5p-3);
  double h = VM_FMA(r, 0x1.62e42fefa39efp-1, 1.0), l = VM_FMA(r, 0x1.62e42fefa39efp-1, 1.0 - h);
  l = VM_FMA(r, 0x1.abc9e3b39803fp-56, VM_FMA(r * r, p, l));
  return vm_priv_scale_f64(h + l, vm_priv_bits_f64(t) - 0x4338000000000000u);
}

// e^x - 1 = (h + *l) * 2^*i for -55 <= x <= 711.
VM_FN double vm_priv_expm1hl_f64(double x, double *l, uint64_t *i) {
  double n, r = vm_priv_expred_f64(x, &n, i), r0 = VM_FMA(n, -0x1.62e42fefa4p-1, x);
  double rl = VM_FMA(n, 0x1.8432a1b0e2634p-43, r0 - r);  // what r lost to rounding
  double p = VM_FMA(0x1.1f2ea8c5eb16bp-29, r, 0x1.af5cdca218a7fp-26);
  p = VM_FMA(p, r, 0x1.27e4fe6805e32p-22);
  p = VM_FMA(p, r, 0x1.71ddf94f33a78p-19);
  p = VM_FMA(p, r, 0x1.a01a019c4a6c1p-16);
  p = VM_FMA(p, r, 0x1.a01a01af95a83p-13);
  p = VM_FMA(p, r, 0x1.6c16c16c16c48p-10);
  p = VM_FMA(p, r, 0x1.111111110f71p-7);
  p = VM_FMA(p, r, 0x1.5555555555559p-5);
  p = VM_FMA(p, r, 0x1.5555555555559p-3);
  p = VM_FMA(p, r, 0x1p-1);
  double q = p * (r * r), t = r + q, nb = n > 1022.0 ? 1022.0 : n;
  double b = vm_priv_pow2_f64(0x4338000000000000u - vm_priv_bits_f64(nb + 0x1.8p52));  // 2^-n, which is 0 for large n
  double u = 1.0 - b, h = u + t;
  *l = ((u - h) + t) + (((1.0 - u) - b) + ((q - (t - r)) + VM_FMA(rl, t, rl)));
  return h;
}

// e^x - 1. Max ulp 0.81 0.80 0.80.
VM_FN double vm_expm1_f64(double x) {
  uint64_t i;
  double l, c = x > 710.0 ? 710.0 : x;
  c = c < -55.0 ? -55.0 : c;
  double h = vm_priv_expm1hl_f64(c, &l, &i), y = vm_priv_scale_f64(h + l, i);
  return x == 0.0 ? x : y;
}

// 1 / (1 + e^-x). Max ulp 0.98 0.97 0.97.
VM_FN double vm_sigmoid_f64(double x) {
  uint64_t i;
  double a = vm_abs_f64(x), l, lo;
  a = a > 746.0 ? 746.0 : a;
  double h = vm_priv_exphl_f64(-a, &l, &i);
  double z = vm_priv_scale_f64(h, i), s = 1.0 + z, sl = ((1.0 - s) + z) + vm_priv_scale_f64(l, i);
  double q = vm_priv_div_f64(x < 0.0 ? h : 1.0, x < 0.0 ? l : 0.0, s, sl, &lo), y = q + lo;
  double tail = vm_priv_scale_f64(y, i);
  return x < 0.0 ? tail : y;
}

// tanh: E / (E + 2) with E = e^2|x| - 1 in two parts. Max ulp 0.72 0.70 0.70.
VM_FN double vm_tanh_f64(double x) {
  uint64_t i;
  double a = vm_abs_f64(x), c = a > 20.0 ? 20.0 : a, l, lo, h = vm_priv_expm1hl_f64(c + c, &l, &i);
  double p2 = vm_priv_pow2_f64(i), eh = h * p2, el = l * p2, d = eh + 2.0;
  double q = vm_priv_div_f64(eh, el, d, vm_priv_adderr_f64(eh, 2.0, d) + el, &lo);
  return vm_copysign_f64(a < 0x1p-28 ? a : q + lo, x);
}

// sinh: (E + E / (E + 1)) / 2 with E = e^|x| - 1. Max ulp 0.71.
VM_FN double vm_sinh_f64(double x) {
  uint64_t i;
  double a = vm_abs_f64(x), l, lo, c = a > 711.0 ? 711.0 : a, h = vm_priv_expm1hl_f64(c, &l, &i);
  double eh = vm_priv_scale_f64(h, i - 1u), el = vm_priv_scale_f64(l, i - 1u);
  int big = eh > 0x1p60;  // there the quotient does not matter
  double n = big ? 0.0 : eh, nl = big ? 0.0 : el, d = n + n, d1 = d + 1.0;
  double q = vm_priv_div_f64(n, nl, d1, vm_priv_adderr_f64(d, 1.0, d1) + (nl + nl), &lo), s = n + q;
  double y = s + (vm_priv_adderr_f64(n, q, s) + (nl + lo));
  y = big ? eh + el : y;
  return vm_copysign_f64(a < 0x1p-27 ? a : y, x);
}

// cosh: e^|x|/2 + 1/(4 (e^|x|/2)). Max ulp 0.95 0.97 0.97.
VM_FN double vm_cosh_f64(double x) {
  uint64_t i;
  double a = vm_abs_f64(x), l;
  a = a > 711.0 ? 711.0 : a;
  double h = vm_priv_exphl_f64(a, &l, &i), e = vm_priv_scale_f64(h, i - 1u), el = vm_priv_scale_f64(l, i - 1u);
  return e + (0.25 / e + el);
}

// ---- logarithms ----

// log x = k ln2 + (f + l) for finite x > 0. With s = f / (2 + f), log(1+f) = f - (f^2/2 - s (f^2/2 + R(s^2))), R a
// minimax of degree 7 (the form of FreeBSD's msun, K. Ng 1993).
VM_FN double vm_priv_log1pl_f64(double f) {
  double s = f / (2.0 + f), z = s * s, hf = 0.5 * f * f;
  double p = VM_FMA(0x1.2f02444ad9bcbp-3, z, 0x1.39a20cc8ea2dcp-3);
  p = VM_FMA(p, z, 0x1.74663b99da401p-3);
  p = VM_FMA(p, z, 0x1.c71c521a3d299p-3);
  p = VM_FMA(p, z, 0x1.24924941db2b1p-2);
  p = VM_FMA(p, z, 0x1.999999997ff64p-2);
  p = VM_FMA(p, z, 0x1.5555555555592p-1);
  return s * VM_FMA(p, z, hf) - hf;
}

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt 2; k + 1023 is read as the low bits of a double near 2^52.
VM_FN double vm_priv_logred_f64(double x, double *f) {
  int tiny = x < 0x1p-1022;
  uint64_t t = vm_priv_bits_f64(tiny ? x * 0x1p54 : x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  *f = vm_priv_float_u64((t & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  return (vm_priv_float_u64(t >> 52 | 0x4330000000000000u) - (0x1p52 + 1023.0)) - (tiny ? 54.0 : 0.0);
}

// The borders of a logarithm y of x.
VM_FN double vm_priv_logfix_f64(double x, double y) {
  double at0 = x == 0.0 ? -VM_INF : VM_NAN;
  y = x == VM_INF ? x : y;
  return x > 0.0 ? y : at0;
}

// k (ln2h + ln2l) + (f + l) with the error of the large sum put back.
VM_FN double vm_priv_logsum_f64(double k, double f, double l) {
  double kh = k * 0x1.62e42fefa4p-1, s = kh + f;
  return s + (((kh - s) + f) + VM_FMA(k, -0x1.8432a1b0e2634p-43, l));
}

// log. Max ulp 0.83.
VM_FN double vm_log_f64(double x) {
  double f, k = vm_priv_logred_f64(x, &f);
  return vm_priv_logfix_f64(x, vm_priv_logsum_f64(k, f, vm_priv_log1pl_f64(f)));
}

// log(1 + x + xl): what 1 + x loses to rounding, and xl, are scaled like 1 + x and added to f.
VM_FN double vm_priv_log1phl_f64(double x, double xl) {
  double u = 1.0 + x, c = vm_priv_adderr_f64(1.0, x, u) + xl;
  uint64_t t = vm_priv_bits_f64(u) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double k = vm_priv_float_u64(t >> 52 | 0x4330000000000000u) - (0x1p52 + 1023.0);
  double m = vm_priv_float_u64((t & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  double back = vm_priv_float_u64(0x7fe0000000000000u - (t & 0x7ff0000000000000u));  // 2^-k
  c = u > 0x1p60 ? 0.0 : c;
  c *= u > 0x1p60 ? 0.0 : back;
  double g = m + c, e = (m - g) + c;
  return vm_priv_logfix_f64(u, vm_priv_logsum_f64(k, g, vm_priv_log1pl_f64(g) + e));
}

// log(1+x). Max ulp 0.84.
VM_FN double vm_log1p_f64(double x) {
  double y = vm_priv_log1phl_f64(x, 0.0);
  return x == 0.0 ? x : y;
}

// k (kh + kl) + (f + l) (ch + cl): f's upper half times the 26-bit ch is exact.
VM_FN double vm_priv_logbase_f64(double x, double kh, double kl, double ch, double cl) {
  double f, k = vm_priv_logred_f64(x, &f), l = vm_priv_log1pl_f64(f);
  double fh = vm_priv_top_f64(f), a = k * kh, b = fh * ch, s = a + b;
  double low = VM_FMA(f - fh, ch, VM_FMA(f, cl, l * (ch + cl)));
  return vm_priv_logfix_f64(x, s + (((a - s) + b) + VM_FMA(k, kl, low)));
}

// log2. Max ulp 0.99.
VM_FN double vm_log2_f64(double x) {
  return vm_priv_logbase_f64(x, 1.0, 0.0, 0x1.7154768p+0, -0x1.6a3e80f444178p-27);
}

// log10. Max ulp 0.92.
VM_FN double vm_log10_f64(double x) {
  return vm_priv_logbase_f64(x, 0x1.34413509f8p-2, -0x1.80433b83b532ap-44, 0x1.bcb7b18p-2, -0x1.6c8d78e6acaa4p-29);
}

// ---- error function ----

VM_FN double vm_priv_erfsmall_f64(double x) {
  double z = x * x;
  double p = VM_FMA(0x1.fdcbbc43e45f8p-31, z, -0x1.78b5e2df5af19p-28);
  p = VM_FMA(p, z, 0x1.9f6eb6b6ecd43p-26);
  p = VM_FMA(p, z, -0x1.78e0e0d109575p-23);
  p = VM_FMA(p, z, 0x1.bc720c8c2ad71p-20);
  p = VM_FMA(p, z, -0x1.f4fd68c825b0ep-17);
  p = VM_FMA(p, z, 0x1.f9a50d3321f4ep-14);
  p = VM_FMA(p, z, -0x1.c02dc2226a537p-11);
  p = VM_FMA(p, z, 0x1.565bcd51298f8p-8);
  p = VM_FMA(p, z, -0x1.b82ce313fd371p-6);
  p = VM_FMA(p, z, 0x1.ce2f21a046f22p-4);
  p = VM_FMA(p, z, -0x1.812746b037a33p-2);
  p = VM_FMA(p, z, 0x1.06eba8214db69p-3);
  return VM_FMA(p, x, x);
}

// erfc(a) for a >= 1/2: e^-a^2 G(t) / (1 + 2a), t = (a - 4) / (a + 4) (M. Shepherd, J. Laframboise 1981), with a^2, the
// last sum of G, 1 + 2a and the quotient in two parts.
VM_FN double vm_priv_erfcbig_f64(double a) {
  uint64_t i;
  double c = a > 27.3 ? 27.3 : a, t = (c - 4.0) / (c + 4.0), l, lo;
  double p = VM_FMA(0x1.de03a936e48c4p-30, t, -0x1.51059d59ae58ap-27);
  p = VM_FMA(p, t, -0x1.3087500feaba7p-26);
  p = VM_FMA(p, t, 0x1.bd758b4d373dep-24);
  p = VM_FMA(p, t, 0x1.4030f8314a024p-24);
  p = VM_FMA(p, t, -0x1.b8487b3589f72p-21);
  p = VM_FMA(p, t, 0x1.3b64b793d2d05p-22);
  p = VM_FMA(p, t, 0x1.7efbfc107aa3ap-18);
  p = VM_FMA(p, t, -0x1.788ba340c826bp-17);
  p = VM_FMA(p, t, -0x1.9955a619c40aep-16);
  p = VM_FMA(p, t, 0x1.3be05edc81fdcp-13);
  p = VM_FMA(p, t, -0x1.a1df3dab8113ep-13);
  p = VM_FMA(p, t, -0x1.8d4a9b8203687p-11);
  p = VM_FMA(p, t, 0x1.49c6729fc3c3ap-8);
  p = VM_FMA(p, t, -0x1.096238838fa5ap-6);
  p = VM_FMA(p, t, 0x1.3079edf6427d6p-5);
  p = VM_FMA(p, t, -0x1.0fb06dfe4fe6dp-4);
  p = VM_FMA(p, t, 0x1.7fee004e13aadp-4);
  p = VM_FMA(p, t, -0x1.9ddb23c3e8d17p-4);
  p = VM_FMA(p, t, 0x1.16ecefcfa5331p-4);
  p = VM_FMA(p, t, 0x1.f7f5df66fd756p-7);
  p = VM_FMA(p, t, -0x1.1df1ad154a28ep-3);
  double g = VM_FMA(p, t, 0x1.3ba5916e9fd7fp+0), gl = VM_FMA(p, t, 0x1.3ba5916e9fd7fp+0 - g) + -0x1.aa9c415679e6fp-55;
  double d = VM_FMA(c, 2.0, 1.0), q = vm_priv_div_f64(g, gl, d, (1.0 - d) + (c + c), &lo);
  double s = c * c, sl = vm_priv_mulerr_f64(c, c, s), h = vm_priv_exphl_f64(-s, &l, &i);
  return vm_priv_scale_f64(VM_FMA(h, q, h * (lo - sl * q) + l * q), i);
}

// erf: x + x P(x^2) up to 0.91, 1 - erfc above. Max ulp 0.90 0.84 0.84.
VM_FN double vm_erf_f64(double x) {
  double a = vm_abs_f64(x), big = 1.0 - vm_priv_erfcbig_f64(a);
  return a < 0.91 ? vm_priv_erfsmall_f64(x) : vm_copysign_f64(big, x);
}

// erfc. Max ulp 1.49 1.17 1.17.
VM_FN double vm_erfc_f64(double x) {
  double a = vm_abs_f64(x), y = vm_priv_erfcbig_f64(a);
  y = x < 0.0 ? 2.0 - y : y;
  return a < 0.5 ? 1.0 - vm_priv_erfsmall_f64(x) : y;
}

VM_FN double vm_gelu_erf_f64(double x) { return x * 0.5 * (1.0 + vm_erf_f64(x * 0x1.6a09e667f3bcdp-1)); }

VM_FN double vm_gelu_tanh_f64(double x) {
  double inner = 0x1.9884533d43651p-1 * (x + 0.044715 * (x * x * x));
  return 0.5 * x * (1.0 + vm_tanh_f64(inner));
}

// ---- power and remainder ----

// v is an integer (infinities count).
VM_FN int vm_priv_isint_f64(double v) { return vm_trunc_f64(v) == v; }

// log x = h + *l to 2^-65 for x > 0: 2 (s + s^3/3 + s^5 P(s^2)), s = (m - 1) / (m + 1), in two parts up to the cube.
VM_FN double vm_priv_loghl_f64(double x, double *l) {
  double f, k = vm_priv_logred_f64(x, &f), d = f + 2.0, lo, q = vm_priv_div_f64(f, 0.0, d, f - (d - 2.0), &lo);
  double s = q + lo, sl = lo - (s - q), z = s * s, zl = VM_FMA(s + s, sl, vm_priv_mulerr_f64(s, s, z));
  double c = z * s, cl = vm_priv_mulerr_f64(z, s, c) + VM_FMA(z, sl, zl * s);
  double t = c * 0x1.5555555555555p-2, tl = vm_priv_mulerr_f64(c, 0x1.5555555555555p-2, t);
  tl += VM_FMA(c, 0x1.5555555555555p-56, cl * 0x1.5555555555555p-2);
  double p = VM_FMA(0x1.0e412eb1eedbcp-4, z, 0x1.0f8015bd0b0c3p-4);
  p = VM_FMA(p, z, 0x1.3b1eea02f92d1p-4);
  p = VM_FMA(p, z, 0x1.745ce9ef70269p-4);
  p = VM_FMA(p, z, 0x1.c71c722d409f7p-4);
  p = VM_FMA(p, z, 0x1.2492492457f2ap-3);
  p = VM_FMA(p, z, 0x1.9999999999b2fp-3);
  double u = s + t, ul = ((s - u) + t) + (VM_FMA(c * z, p, tl) + sl);
  double a = k * 0x1.62e42fefa4p-1, b = u + u, w = a + b;
  double wl = ((a - w) + b) + VM_FMA(k, -0x1.8432a1b0e2634p-43, ul + ul), h = w + wl;
  *l = wl - (h - w);
  return h;
}

// x^y: e^(y log|x|) with logarithm and product in two parts. Special cases as C11 F.10.4.4. Max ulp 1.08 1.13 1.13.
VM_FN double vm_pow_f64(double x, double y) {
  uint64_t i;
  double ax = vm_abs_f64(x), l, h = vm_priv_loghl_f64(ax, &l), n;
  h = ax == 0.0 ? -VM_INF : h;
  h = ax < VM_INF ? h : ax;
  double w = y * h, wl = VM_FMA(y, l, vm_priv_mulerr_f64(y, h, w));
  int far = !(vm_abs_f64(w) < 760.0);
  wl = (far | (vm_abs_f64(w) < 0x1p-60)) ? 0.0 : wl;
  w = w > 760.0 ? 760.0 : w;
  w = w < -760.0 ? -760.0 : w;
  double r = vm_priv_expred_f64(w, &n, &i);
  double v = vm_priv_scale_f64(1.0 + vm_priv_exppoly_f64(r + wl), i);
  int whole = vm_priv_isint_f64(y), odd = whole & !vm_priv_isint_f64(y * 0.5);
  double neg = odd ? -v : v;
  neg = (whole | (ax == 0.0) | (ax == VM_INF)) ? neg : VM_NAN;
  v = vm_copysign_f64(1.0, x) < 0.0 ? neg : v;
  v = ((ax == 1.0) & (vm_abs_f64(y) == VM_INF)) ? 1.0 : v;
  return ((y == 0.0) | (x == 1.0)) ? 1.0 : v;
}

// fmod, exact: long division of the significands, eleven bits a step. The number of steps depends on the operands, so
// this one has branches and does not vectorise.
VM_FN double vm_fmod_f64(double x, double y) {
  double a = vm_abs_f64(x), b = vm_abs_f64(y);
  if (!(a < VM_INF) | !(b > 0.0)) return VM_NAN;
  if (a < b) return x;
  uint64_t u = vm_priv_bits_f64(a), v = vm_priv_bits_f64(b), ex = u >> 52, ey = v >> 52;
  uint64_t mx = (u & 0x000fffffffffffffu) | (uint64_t)(ex != 0) << 52;
  uint64_t my = (v & 0x000fffffffffffffu) | (uint64_t)(ey != 0) << 52, r = mx % my;
  ey += ey == 0;
  ex += ex == 0;
  for (uint64_t d = ex - ey; d > 0 && r != 0;) {
    uint64_t step = d < 11 ? d : 11;
    r = (r << step) % my;
    d -= step;
  }
  return vm_copysign_f64(vm_priv_scale_f64((double)r, ey - 1075u), x);
}

// ---- inverse circular functions ----

// atan2(y, x): c pi/4 +- atan t with |t| <= tan(pi/8), the quotient t in two parts, minimax of degree 23. Quotients so
// small or operands so far out that the error term would under- or overflow do not need it. Max ulp 1.00.
VM_FN double vm_atan2_f64(double y, double x) {
  double ax = vm_abs_f64(x), ay = vm_abs_f64(y), num = ay > ax ? ax : ay, den = ay > ax ? ay : ax;
  num = num == VM_INF ? 1.0 : num;
  den = ((den == 0.0) | ((ax == VM_INF) & (ay == VM_INF))) ? 1.0 : den;
  double k = den > 0x1p400 ? 0x1p-600 : den < 0x1p-400 ? 0x1p600 : 1.0, sn = num * k, sd = den * k, d1 = sn + sd;
  int turn = sn > 0x1.a827999fcef32p-2 * sd;
  double n = turn ? sn - sd : num, d = turn ? d1 : den, dl = turn ? vm_priv_adderr_f64(sn, sd, d1) : 0.0;
  double nl = turn ? vm_priv_adderr_f64(sn, -sd, n) : 0.0;
  double t = n / d, tl = (((n - t * d) - vm_priv_mulerr_f64(t, d, t * d)) + (nl - t * dl)) / d, z = t * t;
  tl = ((d < 0x1p500) & (d > 0x1p-500) & (vm_abs_f64(t) > 0x1p-300)) ? tl : 0.0;
  double p = VM_FMA(-0x1.2569908b09684p-6, z, 0x1.37d5320116abfp-5);
  p = VM_FMA(p, z, -0x1.9cd286b6c4aa8p-5);
  p = VM_FMA(p, z, 0x1.df0f3d398af4dp-5);
  p = VM_FMA(p, z, -0x1.10ebb7329f544p-4);
  p = VM_FMA(p, z, 0x1.3b1119022d9acp-4);
  p = VM_FMA(p, z, -0x1.745cf8daef5a4p-4);
  p = VM_FMA(p, z, 0x1.c71c70e603429p-4);
  p = VM_FMA(p, z, -0x1.24924922ad471p-3);
  p = VM_FMA(p, z, 0x1.9999999995868p-3);
  p = VM_FMA(p, z, -0x1.555555555553dp-2);
  double low = VM_FMA(p * z, t, tl), c = turn ? 1.0 : 0.0, sign = ay > ax ? -1.0 : 1.0;
  c = ay > ax ? 2.0 - c : c;
  int minus = vm_copysign_f64(1.0, x) < 0.0;
  c = minus ? 4.0 - c : c;
  sign = minus ? -sign : sign;
  double base = c * 0x1.921fb54442dp-1, b = sign * t, s = base + b;
  double r = s + (vm_priv_adderr_f64(base, b, s) + VM_FMA(sign, low, c * 0x1.8469898cc5170p-49));
  return vm_copysign_f64(r, y);
}

// atan. Max ulp 0.76.
VM_FN double vm_atan_f64(double x) { return vm_atan2_f64(x, 1.0); }

// w + w z P(z) for the arcsine of w with z = w^2 <= 1/4: the part after w.
VM_FN double vm_priv_asinpoly_f64(double w, double z) {
  double p = VM_FMA(0x1.0b486bd7e902p-5, z, -0x1.58029ffb06655p-6);
  p = VM_FMA(p, z, 0x1.639fe5c977aa9p-6);
  p = VM_FMA(p, z, 0x1.e5ead51b0233p-9);
  p = VM_FMA(p, z, 0x1.613d35a0dc93cp-7);
  p = VM_FMA(p, z, 0x1.75856ddb05dep-7);
  p = VM_FMA(p, z, 0x1.ca1f9083f148ep-7);
  p = VM_FMA(p, z, 0x1.1c49f03fc1c33p-6);
  p = VM_FMA(p, z, 0x1.6e8bdee1a41acp-6);
  p = VM_FMA(p, z, 0x1.f1c71a94e8994p-6);
  p = VM_FMA(p, z, 0x1.6db6db72127c6p-5);
  p = VM_FMA(p, z, 0x1.333333332e13p-4);
  p = VM_FMA(p, z, 0x1.5555555555577p-3);
  return p * z * w;
}

// asin: up to 1/2 directly, above as pi/2 - 2 asin(sqrt((1 - |x|) / 2)) with the root in two parts. Max ulp 0.61.
VM_FN double vm_asin_f64(double x) {
  double a = vm_abs_f64(x), z = a > 0.5 ? (1.0 - a) * 0.5 : a * a, w = a > 0.5 ? __builtin_sqrt(z) : a;
  double q = vm_priv_asinpoly_f64(w, z), wl = ((z - w * w) - vm_priv_mulerr_f64(w, w, w * w)) / (w + w);
  wl = w == 0.0 ? 0.0 : wl;
  double b = w + w, s = 0x1.921fb54442d18p+0 - b;
  double big = s + (((0x1.921fb54442d18p+0 - s) - b) + (0x1.1a62633145c07p-54 - 2.0 * (wl + q)));
  return vm_copysign_f64(a > 0.5 ? big : w + q, x);
}

// acos: pi/2 - asin x up to 1/2, 2 asin(sqrt((1 - x) / 2)) above, pi less that below -1/2. Max ulp 0.60 0.59 0.59.
VM_FN double vm_acos_f64(double x) {
  double a = vm_abs_f64(x), z = a > 0.5 ? (1.0 - a) * 0.5 : a * a, w = a > 0.5 ? __builtin_sqrt(z) : x;
  double q = vm_priv_asinpoly_f64(w, z), wl = ((z - w * w) - vm_priv_mulerr_f64(w, w, w * w)) / (w + w);
  wl = w == 0.0 ? 0.0 : wl;
  double sm = 0x1.921fb54442d18p+0 - w, sl = vm_priv_adderr_f64(0x1.921fb54442d18p+0, -w, sm);
  double small = sm + (sl + (0x1.1a62633145c07p-54 - q)), b = w + w, right = b + 2.0 * (wl + q);
  double s = 0x1.921fb54442d18p+1 - b;
  double left = s + (((0x1.921fb54442d18p+1 - s) - b) + (0x1.1a62633145c07p-53 - 2.0 * (wl + q)));
  return a > 0.5 ? (x > 0.0 ? right : left) : small;
}

// ---- inverse hyperbolic functions, by log1p with its argument in two parts ----

// asinh: log1p(a + a^2 / (1 + sqrt(1 + a^2))); log 2a when a^2 would drown the 1. Max ulp 1.17.
VM_FN double vm_asinh_f64(double x) {
  double a = vm_abs_f64(x), c = a > 0x1p30 ? 1.0 : a, z = c * c, q = z / (1.0 + __builtin_sqrt(1.0 + z));
  double h = c + q, y = vm_priv_log1phl_f64(h, (c - h) + q), f, k = vm_priv_logred_f64(a, &f);
  double big = vm_priv_logfix_f64(a, vm_priv_logsum_f64(k + 1.0, f, vm_priv_log1pl_f64(f)));
  y = a > 0x1p30 ? big : y;
  y = a < 0x1p-27 ? a : y;
  return vm_copysign_f64(a != a ? x : y, x);
}

// acosh: log1p(t + sqrt(2t + t^2)), t = x - 1; log 2x when x is large. Max ulp 0.87 0.85 0.85.
VM_FN double vm_acosh_f64(double x) {
  double t = x > 0x1p30 ? 1.0 : x - 1.0, v = t + t, w = VM_FMA(t, t, v), s = __builtin_sqrt(w);
  double wl = VM_FMA(t, t, v - w);
  double sl = ((((w - s * s) - vm_priv_mulerr_f64(s, s, s * s))) + wl) / (s + s), h = t + s;
  sl = s == 0.0 ? 0.0 : sl;
  double y = vm_priv_log1phl_f64(h, vm_priv_adderr_f64(t, s, h) + sl), f, k = vm_priv_logred_f64(x, &f);
  double big = vm_priv_logfix_f64(x, vm_priv_logsum_f64(k + 1.0, f, vm_priv_log1pl_f64(f)));
  y = x > 0x1p30 ? big : y;
  return x >= 1.0 ? y : VM_NAN;
}

// atanh: log1p(2a / (1 - a)) / 2. Max ulp 1.02.
VM_FN double vm_atanh_f64(double x) {
  double a = vm_abs_f64(x), d = 1.0 - a, lo, q = vm_priv_div_f64(a + a, 0.0, d, (1.0 - d) - a, &lo), h = q + lo;
  double y = 0.5 * vm_priv_log1phl_f64(h, lo - (h - q));
  y = a == 1.0 ? VM_INF : y;
  y = a < 0x1p-27 ? a : y;
  return vm_copysign_f64(a <= 1.0 ? y : VM_NAN, x);
}

#endif
