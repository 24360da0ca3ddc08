// vmath_f32.h: Ember's scalar functions on float: branch-free, vectorisable, at most 1 ulp unless said otherwise.
// The rules are in vmath_bits.h, the fits in tools/fit_vmath.py, the bounds are asserted by tests/c/test_vmath.py.
// "Max ulp" is what it found on baseline, AVX2 and AVX-512 (one number: all the same), 33 million arguments each.
#ifndef EMBER_BACKEND_CPU_VMATH_F32_H
#define EMBER_BACKEND_CPU_VMATH_F32_H

#include "vmath_bits.h"
#include "vmath_f64.h"

// ---- exact ones ----

VM_FN float vm_abs_f32(float x) { return vm_priv_float_u32(vm_priv_bits_f32(x) & 0x7fffffffu); }

VM_FN float vm_copysign_f32(float x, float s) {
  return vm_priv_float_u32((vm_priv_bits_f32(x) & 0x7fffffffu) | (vm_priv_bits_f32(s) & 0x80000000u));
}

// NaN if either is NaN, as torch.maximum and torch.minimum.
VM_FN float vm_maximum_f32(float a, float b) { return ((a > b) | (a != a)) ? a : b; }
VM_FN float vm_minimum_f32(float a, float b) { return ((a < b) | (a != a)) ? a : b; }

// Halves to even, as torch.round. Without SSE4.1: adding 2^23 leaves no bits for a fraction.
VM_FN float vm_round_f32(float x) {
#ifdef __SSE4_1__
  return __builtin_rintf(x);
#else
  float a = vm_abs_f32(x), r = (a + 0x1p23f) - 0x1p23f;
  return vm_copysign_f32(a < 0x1p23f ? r : a, x);
#endif
}

VM_FN float vm_trunc_f32(float x) {
#ifdef __SSE4_1__
  return __builtin_truncf(x);
#else
  float a = vm_abs_f32(x), r = (a + 0x1p23f) - 0x1p23f;
  r = r > a ? r - 1.0f : r;
  return vm_copysign_f32(a < 0x1p23f ? r : a, x);
#endif
}

VM_FN float vm_floor_f32(float x) {
#ifdef __SSE4_1__
  return __builtin_floorf(x);
#else
  float r = vm_round_f32(x);
  return vm_copysign_f32(r > x ? r - 1.0f : r, x);
#endif
}

VM_FN float vm_ceil_f32(float x) {
#ifdef __SSE4_1__
  return __builtin_ceilf(x);
#else
  float r = vm_round_f32(x);
  return vm_copysign_f32(r < x ? r + 1.0f : r, x);
#endif
}

// Correctly rounded by the instruction.
VM_FN float vm_sqrt_f32(float x) { return __builtin_sqrtf(x); }

// 1 / sqrt(x), as PyTorch computes it. Max ulp 1.49.
VM_FN float vm_rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

// ---- exponentials ----

// 2^i for -126 <= i <= 127.
VM_FN float vm_priv_pow2_f32(uint32_t i) { return vm_priv_float_u32((i + 127u) << 23); }

// p * 2^i for -252 <= i <= 254, in two steps so that only the last can round or overflow.
VM_FN float vm_priv_scale_f32(float p, uint32_t i) {
  uint32_t h = (uint32_t)((int32_t)i >> 1);
  return p * vm_priv_pow2_f32(h) * vm_priv_pow2_f32(i - h);
}

// x = n ln2 + r with |r| <= ln2/2, for |x| < 2^8; *i is n as an integer (W. Cody, W. Waite 1980: ln2 in two parts, the
// first short enough for an exact product). The rounded integer is read off the low bits of x/ln2 + 1.5*2^23.
VM_FN float vm_priv_expred_f32(float x, uint32_t *i) {
  float t = VM_FMAF(x, 0x1.715476p+0f, 0x1.8p23f), n = t - 0x1.8p23f;
  *i = vm_priv_bits_f32(t) - 0x4b400000u;
  return VM_FMAF(n, -0x1.7f7d1cp-20f, VM_FMAF(n, -0x1.62e4p-1f, x));
}

// e^r - 1 for |r| <= ln2/2: minimax of degree 7.
VM_FN float vm_priv_exppoly_f32(float r) {
  float p = VM_FMAF(0x1.9e3c3cp-13f, r, 0x1.6d4cfp-10f);
  p = VM_FMAF(p, r, 0x1.1112fp-7f);
  p = VM_FMAF(p, r, 0x1.5554e8p-5f);
  p = VM_FMAF(p, r, 0x1.555554p-3f);
  p = VM_FMAF(p, r, 0x1p-1f);
  return VM_FMAF(p, r * r, r);
}

// e^x = (h + *l) * 2^*i for -104 <= x <= 89; NaN gives NaN.
VM_FN float vm_priv_exphl_f32(float x, float *l, uint32_t *i) {
  float t = vm_priv_exppoly_f32(vm_priv_expred_f32(x, i)), h = 1.0f + t;
  *l = t - (h - 1.0f);
  return h;
}

// e^x: Cody-Waite reduction, polynomial, two-step scaling (so denormals round once). Max ulp 0.93 0.97 0.97.
// What becomes 0 is not computed: processors take long over products that small, and masks are made of e^-inf.
VM_FN float vm_exp_f32(float x) {
  uint32_t i;
  float c = x > 89.0f ? 89.0f : x;
  c = c < -104.0f ? 0.0f : c;
  float r = vm_priv_expred_f32(c, &i), y = vm_priv_scale_f32(1.0f + vm_priv_exppoly_f32(r), i);
  return x < -104.0f ? 0.0f : y;
}

// 2^x: the reduction is exact; minimax of degree 7. Max ulp 0.82 0.76 0.76.
VM_FN float vm_exp2_f32(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  float t = x + 0x1.8p23f, r = x - (t - 0x1.8p23f);
  float p = VM_FMAF(0x1.ec1cdep-17f, r, 0x1.4409p-13f);
  p = VM_FMAF(p, r, 0x1.5d9cfp-10f);
  p = VM_FMAF(p, r, 0x1.3b2a62p-7f);
  p = VM_FMAF(p, r, 0x1.c6b074p-5f);
  p = VM_FMAF(p, r, 0x1.ebfbep-3f);
  float h = VM_FMAF(r, 0x1.62e43p-1f, 1.0f), l = VM_FMAF(r, 0x1.62e43p-1f, 1.0f - h);
  return vm_priv_scale_f32(h + VM_FMAF(r * r, p, l), vm_priv_bits_f32(t) - 0x4b400000u);
}

// e^x - 1 = (h + *l) * 2^*i for -26 <= x <= 89: the sum (1 - 2^-n) + (e^r - 1) keeps its rounding error.
VM_FN float vm_priv_expm1hl_f32(float x, float *l, uint32_t *i) {
  float r = vm_priv_expred_f32(x, i);
  float p = VM_FMAF(0x1.9eaa64p-13f, r, 0x1.6d387cp-10f);
  p = VM_FMAF(p, r, 0x1.1112bep-7f);
  p = VM_FMAF(p, r, 0x1.5554fap-5f);
  p = VM_FMAF(p, r, 0x1.555554p-3f);
  p = VM_FMAF(p, r, 0x1p-1f);
  float q = p * (r * r), t = r + q, b = (int32_t)*i > 126 ? 0.0f : vm_priv_pow2_f32(0u - *i);
  float u = 1.0f - b, h = u + t;
  *l = ((u - h) + t) + (((1.0f - u) - b) + (q - (t - r)));
  return h;
}

// e^x - 1: see vm_priv_expm1hl_f32. Max ulp 0.92 0.89 0.89.
VM_FN float vm_expm1_f32(float x) {
  uint32_t i;
  float l, c = x > 89.0f ? 89.0f : x;
  c = c < -26.0f ? -26.0f : c;
  float h = vm_priv_expm1hl_f32(c, &l, &i), y = vm_priv_scale_f32(h + l, i);
  return x == 0.0f ? x : y;
}

// 1 / (1 + e^-x): with z = e^-|x| as h + l, z / (1 + z) or 1 / (1 + z) with the errors of sum and quotient put back,
// and the power of two applied last. Max ulp 0.96.
VM_FN float vm_sigmoid_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), l, lo;
  a = a > 104.0f ? 104.0f : a;
  float h = vm_priv_exphl_f32(-a, &l, &i);
  float z = vm_priv_scale_f32(h, i), s = 1.0f + z, sl = ((1.0f - s) + z) + vm_priv_scale_f32(l, i);
  float q = vm_priv_div_f32(x < 0.0f ? h : 1.0f, x < 0.0f ? l : 0.0f, s, sl, &lo);
  return vm_priv_scale_f32(q + lo, x < 0.0f ? i : 0u);
}

// tanh: x + x^3 P(x^2) below 0.97, 1 - 2 / (e^2|x| + 1) above. Max ulp 1.00 0.87 0.87.
VM_FN float vm_tanh_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), z = x * x, c = a > 10.0f ? 10.0f : a;
  float p = VM_FMAF(0x1.17cbc2p-13f, z, -0x1.cff576p-11f);
  p = VM_FMAF(p, z, 0x1.9c09d2p-9f);
  p = VM_FMAF(p, z, -0x1.1b48e2p-7f);
  p = VM_FMAF(p, z, 0x1.6544d2p-6f);
  p = VM_FMAF(p, z, -0x1.ba0602p-5f);
  p = VM_FMAF(p, z, 0x1.1110a6p-3f);
  p = VM_FMAF(p, z, -0x1.555554p-2f);
  float small = VM_FMAF(p * z, x, x);
  float r = vm_priv_exppoly_f32(vm_priv_expred_f32(c + c, &i)), h = 1.0f + r, p2 = vm_priv_pow2_f32(i);
  float e = h * p2, s = e + 1.0f, q = 2.0f / s;
  q -= q * q * (0.5f * ((1.0f - (s - e)) + (r - (h - 1.0f)) * p2));  // what rounding took from e + 1
  float big = 1.0f - q;
  return vm_copysign_f32(a < 0.97f ? small : big, x);
}

// sinh: (E + E / (E + 1)) / 2 with E = e^|x| - 1 carried in two parts, halved so that it cannot overflow early.
// sinh. Max ulp 0.78.
VM_FN float vm_sinh_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), l, lo;
  float c = a > 90.0f ? 90.0f : a;
  float h = vm_priv_expm1hl_f32(c, &l, &i);
  float eh = vm_priv_scale_f32(h, i - 1u), el = vm_priv_scale_f32(l, i - 1u);
  int big = eh > 0x1p30f;  // there the quotient does not matter
  float n = big ? 0.0f : eh, nl = big ? 0.0f : el, d = n + n, d1 = d + 1.0f;
  float q = vm_priv_div_f32(n, nl, d1, vm_priv_adderr_f32(d, 1.0f, d1) + (nl + nl), &lo), s = n + q;
  float y = s + (vm_priv_adderr_f32(n, q, s) + (nl + lo));
  y = big ? eh + el : y;
  return vm_copysign_f32(a < 0x1p-12f ? a : y, x);
}

// cosh: e^|x|/2 + 1/(4 (e^|x|/2)). Max ulp 0.97.
VM_FN float vm_cosh_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), l;
  a = a > 90.0f ? 90.0f : a;
  float h = vm_priv_exphl_f32(a, &l, &i), e = vm_priv_scale_f32(h, i - 1u), el = vm_priv_scale_f32(l, i - 1u);
  return e + (0.25f / e + el);
}

// ---- logarithms ----

// log x = k ln2 + (f + l) for finite x > 0: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt 2 and
// l = log(1+f) - f, minimax of degree 11; with `fine` the rounding of f^2 is put back.
VM_FN float vm_priv_loghl_f32(float x, int fine, float *f, float *l) {
  int tiny = x < 0x1p-126f;
  uint32_t ix = vm_priv_bits_f32(tiny ? x * 0x1p23f : x) - 0x3f3504f3u;
  float k = (float)((int32_t)ix >> 23) - (tiny ? 23.0f : 0.0f);
  float g = vm_priv_float_u32((ix & 0x007fffffu) + 0x3f3504f3u) - 1.0f, z = g * g;
  float p = VM_FMAF(0x1.1206bep-4f, g, -0x1.dc6f5p-4f);
  p = VM_FMAF(p, g, 0x1.e6f98cp-4f);
  p = VM_FMAF(p, g, -0x1.fc6d6p-4f);
  p = VM_FMAF(p, g, 0x1.233c08p-3f);
  p = VM_FMAF(p, g, -0x1.555a6cp-3f);
  p = VM_FMAF(p, g, 0x1.99a468p-3f);
  p = VM_FMAF(p, g, -0x1.00000ap-2f);
  p = VM_FMAF(p, g, 0x1.555548p-2f);
  *f = g;
  float q = z * g * p;
  q = fine ? VM_FMAF(vm_priv_mulerr_f32(g, g, z), -0.5f, q) : q;
  *l = VM_FMAF(z, -0.5f, q);
  return k;
}

// The borders of a logarithm y of x.
VM_FN float vm_priv_logfix_f32(float x, float y) {
  float at0 = x == 0.0f ? -VM_INFF : VM_NANF;
  y = x == VM_INFF ? x : y;
  return x > 0.0f ? y : at0;
}

// k (kh + kl) + (f + l) with the error of the large sum put back; k kh is exact.
VM_FN float vm_priv_logsum_f32(float k, float f, float l) {
  float kh = k * 0x1.62e4p-1f, s = kh + f;
  return s + (((kh - s) + f) + VM_FMAF(k, 0x1.7f7d1cp-20f, l));
}

// log: see vm_priv_loghl_f32. Max ulp 0.85.
VM_FN float vm_log_f32(float x) {
  float f, l, k = vm_priv_loghl_f32(x, 0, &f, &l);
  return vm_priv_logfix_f32(x, vm_priv_logsum_f32(k, f, l));
}

// log(1+x): the part of 1 + x lost to rounding is scaled like 1 + x and added to f. Max ulp 0.87.
VM_FN float vm_log1p_f32(float x) {
  float u = 1.0f + x, c = vm_priv_adderr_f32(1.0f, x, u);
  uint32_t ix = vm_priv_bits_f32(u) - 0x3f3504f3u;
  float k = (float)((int32_t)ix >> 23), m = vm_priv_float_u32((ix & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float back = vm_priv_float_u32(0x3f800000u - (ix & 0xff800000u));  // 2^-k
  c = u > 0x1p30f ? 0.0f : c;
  c *= u > 0x1p30f ? 0.0f : back;
  float g = m + c, e = (m - g) + c, z = g * g;
  float p = VM_FMAF(0x1.1206bep-4f, g, -0x1.dc6f5p-4f);
  p = VM_FMAF(p, g, 0x1.e6f98cp-4f);
  p = VM_FMAF(p, g, -0x1.fc6d6p-4f);
  p = VM_FMAF(p, g, 0x1.233c08p-3f);
  p = VM_FMAF(p, g, -0x1.555a6cp-3f);
  p = VM_FMAF(p, g, 0x1.99a468p-3f);
  p = VM_FMAF(p, g, -0x1.00000ap-2f);
  p = VM_FMAF(p, g, 0x1.555548p-2f);
  float y = vm_priv_logsum_f32(k, g, VM_FMAF(z, -0.5f, z * g * p) + e);
  return x == 0.0f ? x : vm_priv_logfix_f32(u, y);
}

// k (kh + kl) + (f + l) (ch + cl): f's upper half times the 12-bit ch is exact.
VM_FN float vm_priv_logbase_f32(float x, float kh, float kl, float ch, float cl) {
  float f, l, k = vm_priv_loghl_f32(x, 1, &f, &l), fh = vm_priv_top_f32(f), a = k * kh, b = fh * ch, s = a + b;
  float low = VM_FMAF(f - fh, ch, VM_FMAF(f, cl, l * (ch + cl)));
  return vm_priv_logfix_f32(x, s + (((a - s) + b) + VM_FMAF(k, kl, low)));
}

// log2. Max ulp 1.02 0.98 0.98.
VM_FN float vm_log2_f32(float x) {
  return vm_priv_logbase_f32(x, 1.0f, 0.0f, 0x1.716p+0f, -0x1.7135a8p-13f);
}

// log10. Max ulp 0.98 0.97 0.97.
VM_FN float vm_log10_f32(float x) {
  return vm_priv_logbase_f32(x, 0x1.344p-2f, 0x1.3509f8p-18f, 0x1.bccp-2f, -0x1.09d5b2p-15f);
}

// ---- error function ----

// erf: x + x P(x^2) up to 0.91, 1 - e^L(|x|) above with L a minimax of log erfc. Max ulp 0.95 0.93 0.93.
VM_FN float vm_priv_erfsmall_f32(float x) {
  float z = x * x;
  float p = VM_FMAF(0x1.4e68e8p-14f, z, -0x1.a5cf98p-11f);
  p = VM_FMAF(p, z, 0x1.544576p-8f);
  p = VM_FMAF(p, z, -0x1.b800dp-6f);
  p = VM_FMAF(p, z, 0x1.ce2d62p-4f);
  p = VM_FMAF(p, z, -0x1.81274p-2f);
  p = VM_FMAF(p, z, 0x1.06eba8p-3f);
  return VM_FMAF(p, x, x);
}

VM_FN float vm_erf_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), t = a > 3.95f ? 3.95f : a;
  float p = VM_FMAF(-0x1.5f79fp-16f, t, 0x1.c5d076p-12f);
  p = VM_FMAF(p, t, -0x1.10d3b2p-8f);
  p = VM_FMAF(p, t, 0x1.9b360ap-6f);
  p = VM_FMAF(p, t, -0x1.bb61e2p-4f);
  p = VM_FMAF(p, t, -0x1.4449e4p-1f);
  p = VM_FMAF(p, t, -0x1.2126f2p+0f);
#ifdef __FMA__
  float w = __builtin_fmaf(p, t, 0x1.68163p-13f), wl = 0.0f;
#else  // the product's and the sum's rounding would show: keep them
  float v = p * t, w = v + 0x1.68163p-13f, wl = vm_priv_mulerr_f32(p, t, v) + ((v - w) + 0x1.68163p-13f);
#endif
  float r = vm_priv_exppoly_f32(vm_priv_expred_f32(w, &i) + wl), h = 1.0f + r, p2 = vm_priv_pow2_f32(i);
  float e = h * p2, s = 1.0f - e, big = s + (((1.0f - s) - e) - (r - (h - 1.0f)) * p2);
  return a < 0.91f ? vm_priv_erfsmall_f32(x) : vm_copysign_f32(big, x);
}

// erfc: 1 - erf below 1/2; above, e^-x^2 G(t) / (1 + 2x), t = (x - 2) / (x + 2) (M. Shepherd, J. Laframboise 1981),
// with x^2, the sum and the quotient in two parts. Max ulp 1.50 1.18 1.18.
VM_FN float vm_erfc_f32(float x) {
  uint32_t i;
  float a = vm_abs_f32(x), c = a > 10.2f ? 10.2f : a, t = (c - 2.0f) / (c + 2.0f), l, lo;
  float p = VM_FMAF(-0x1.99e004p-13f, t, 0x1.4dfddap-11f);
  p = VM_FMAF(p, t, -0x1.941da4p-13f);
  p = VM_FMAF(p, t, -0x1.eca63ep-10f);
  p = VM_FMAF(p, t, 0x1.3b8dcp-10f);
  p = VM_FMAF(p, t, 0x1.22948p-7f);
  p = VM_FMAF(p, t, -0x1.070c02p-7f);
  p = VM_FMAF(p, t, -0x1.bc5672p-5f);
  p = VM_FMAF(p, t, 0x1.4ffa08p-3f);
  p = VM_FMAF(p, t, -0x1.540736p-3f);
  p = VM_FMAF(p, t, -0x1.7bf5ecp-4f);
  float g = VM_FMAF(p, t, 0x1.46e80ep+0f), gl = VM_FMAF(p, t, 0x1.46e80ep+0f - g);
  float d = VM_FMAF(c, 2.0f, 1.0f), q = vm_priv_div_f32(g, gl, d, (1.0f - d) + (c + c), &lo);
  float s = c * c, sl = vm_priv_mulerr_f32(c, c, s), h = vm_priv_exphl_f32(-s, &l, &i);
  float y = vm_priv_scale_f32(VM_FMAF(h, q, h * (lo - sl * q) + l * q), i);
  y = x < 0.0f ? 2.0f - y : y;
  return a < 0.5f ? 1.0f - vm_priv_erfsmall_f32(x) : y;
}

// PyTorch's two GELUs: x/2 (1 + erf(x/sqrt 2)) and its tanh approximation, in PyTorch's order of operations.
VM_FN float vm_gelu_erf_f32(float x) { return x * 0.5f * (1.0f + vm_erf_f32(x * 0x1.6a09e6p-1f)); }

VM_FN float vm_gelu_tanh_f32(float x) {
  float inner = 0x1.988454p-1f * (x + 0x1.6e4e26p-5f * (x * x * x));
  return 0.5f * x * (1.0f + vm_tanh_f32(inner));
}

// ---- power ----

// v is an integer (infinities count).
VM_FN int vm_priv_isint_f32(float v) { return vm_trunc_f32(v) == v; }

// x^y: 2^(y log2|x|) with logarithm (degree 13) and exponential (degree 6) in double, which holds the 2^8 times larger
// error of the exponent; measured faster than pairs of floats. Special cases as C11 F.10.4.4. Max ulp 0.53.
VM_FN float vm_pow_f32(float x, float y) {
  float ax = vm_abs_f32(x);
  int tiny = ax < 0x1p-126f;
  uint32_t ix = vm_priv_bits_f32(tiny ? ax * 0x1p23f : ax) - 0x3f3504f3u;
  float k = (float)((int32_t)ix >> 23) - (tiny ? 23.0f : 0.0f);
  double g = (double)(vm_priv_float_u32((ix & 0x007fffffu) + 0x3f3504f3u) - 1.0f), w;
  {
    double p = VM_FMA(0x1.2af15d07ee011p-4, g, -0x1.1e5f261c403f8p-3);
    p = VM_FMA(p, g, 0x1.2a009db93e0f6p-3);
    p = VM_FMA(p, g, -0x1.26c48651eecfcp-3);
    p = VM_FMA(p, g, 0x1.4518817e39e37p-3);
    p = VM_FMA(p, g, -0x1.711aa9a3f69fcp-3);
    p = VM_FMA(p, g, 0x1.a63ef84044ef9p-3);
    p = VM_FMA(p, g, -0x1.ec745e5a589cep-3);
    p = VM_FMA(p, g, 0x1.277654fb74808p-2);
    p = VM_FMA(p, g, -0x1.71546cd510d31p-2);
    p = VM_FMA(p, g, 0x1.ec709eb4ec4efp-2);
    p = VM_FMA(p, g, -0x1.71547658beb31p-1);
    p = VM_FMA(p, g, 0x1.71547652a1ed1p+0);
    w = VM_FMA(p, g, (double)k);
  }
  w = ax == 0.0f ? -VM_INF : w;
  w = ax < VM_INFF ? w : (double)ax;
  w *= (double)y;
  w = w > 160.0 ? 160.0 : w;
  w = w < -160.0 ? -160.0 : w;
  double t = w + 0x1.8p52, r = w - (t - 0x1.8p52);
  double p = VM_FMA(0x1.4411b470340bep-13, r, 0x1.5f48888769069p-10);
  p = VM_FMA(p, r, 0x1.3b2a624f9d62ap-7);
  p = VM_FMA(p, r, 0x1.c6aecf865f2f9p-5);
  p = VM_FMA(p, r, 0x1.ebfbe004128ap-3);
  p = VM_FMA(p, r, 0x1.62e430cc91d01p-1);
  float v = (float)(VM_FMA(p, r, 1.0) * vm_priv_float_u64((vm_priv_bits_f64(t) + 1023u) << 52));
  // The choices that depend on y alone are masks on bits, not conditions: gcc does not vectorise a loop over x with a
  // fixed y otherwise.
  int whole = vm_priv_isint_f32(y), odd = whole & !vm_priv_isint_f32(y * 0.5f);
  uint32_t minus = odd ? 0x80000000u : 0u, none = whole ? 0u : 0x7fc00000u, zeroth = y == 0.0f ? 0xffffffffu : 0u;
  uint32_t neg = vm_priv_bits_f32(v) ^ minus;
  neg |= ((ax == 0.0f) | (ax == VM_INFF)) ? 0u : none;
  v = vm_priv_bits_f32(x) >> 31 ? vm_priv_float_u32(neg) : v;
  float unit = vm_abs_f32(y) == VM_INFF ? 1.0f : -1.0f;  // then 1 and -1 give 1
  v = ax == unit ? 1.0f : v;
  v = vm_priv_float_u32((vm_priv_bits_f32(v) & ~zeroth) | (0x3f800000u & zeroth));
  return x == 1.0f ? 1.0f : v;
}

// ---- rare ones, by way of double: measured accurate to a rounding, and not worth polynomials of their own ----

VM_FN float vm_asin_f32(float x) { return (float)vm_asin_f64((double)x); }
VM_FN float vm_acos_f32(float x) { return (float)vm_acos_f64((double)x); }
VM_FN float vm_atan_f32(float x) { return (float)vm_atan_f64((double)x); }
VM_FN float vm_atan2_f32(float y, float x) { return (float)vm_atan2_f64((double)y, (double)x); }
VM_FN float vm_fmod_f32(float x, float y) { return (float)vm_fmod_f64((double)x, (double)y); }
VM_FN float vm_asinh_f32(float x) { return (float)vm_asinh_f64((double)x); }
VM_FN float vm_acosh_f32(float x) { return (float)vm_acosh_f64((double)x); }
VM_FN float vm_atanh_f32(float x) { return (float)vm_atanh_f64((double)x); }

#endif
