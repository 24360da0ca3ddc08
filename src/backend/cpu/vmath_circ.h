// vmath_circ.h: sin, cos and tan on float and double, right for every finite argument.
//
// On float every function is branch-free: the reduction is done in double for all arguments alike. On double, arguments
// beyond 2^20 take a scalar path behind a branch, so vm_sin_f64 and its like do not vectorise by themselves; the
// vm_*_small_* functions do, and the vm_*_array_* routines use them tile by tile wherever no element is large: prefer
// those wherever the argument lies in an array (output and argument may be the same array).
#ifndef EMBER_BACKEND_CPU_VMATH_CIRC_H
#define EMBER_BACKEND_CPU_VMATH_CIRC_H
#include "vmath_f32.h"
#include "vmath_pi.h"

#define VM_CIRC_SMALL 0x1p20  // the vm_*_small_* functions are right up to here

// ---- reduction: x = (n + f) pi/2 or n pi/2 + r ----

// Entry j of the row for the masks m1, m2, m3. Gathers do not vectorise where the output may alias the input, and gcc
// multiplies out a product with a select between constants.
#define VM_PRIV_STEP(s, j) (vm_priv_bits_f64(vm_priv_pi_f32[s][j]) ^ vm_priv_bits_f64(vm_priv_pi_f32[s - 1][j]))
#define VM_PRIV_PI(j)                                                                          \
  vm_priv_float_u64(vm_priv_bits_f64(vm_priv_pi_f32[0][j]) ^ (m1 & VM_PRIV_STEP(1, j)) ^       \
                    (m2 & VM_PRIV_STEP(2, j)) ^ (m3 & VM_PRIV_STEP(3, j)))

// |f| <= 1/2 + 2^-6, for every finite float (after M. Payne, R. Hanek 1983): x 2^-26s is an integer whenever s > 0, so
// 2^26s 2/pi matters mod 4 only; four 29-bit parts leave an error below 2^-63, and no float comes nearer to a multiple
// of pi/2 than 2^-30.
VM_FN double vm_priv_turns_f32(float x, uint64_t *n) {
  double v = (double)x, a = v < 0.0 ? -v : v;
  double ones = vm_priv_float_u64(~UINT64_C(0));  // masks selected as doubles: SSE2 can
  uint64_t m1 = vm_priv_bits_f64(a < 0x1p49 ? 0.0 : ones), m2 = vm_priv_bits_f64(a < 0x1p75 ? 0.0 : ones);
  uint64_t m3 = vm_priv_bits_f64(a < 0x1p101 ? 0.0 : ones);
  v = vm_priv_float_u64(vm_priv_bits_f64(v) - (((m1 & 26u) + (m2 & 26u) + (m3 & 26u)) << 52));
  double p = v * VM_PRIV_PI(0), q = v * VM_PRIV_PI(1);
  p -= (p + 0x1.8p54) - 0x1.8p54;  // p mod 4: the sum has no bits below 4
  q -= (q + 0x1.8p54) - 0x1.8p54;
  double h = p + q, t = h + 0x1.8p52;
  *n = vm_priv_bits_f64(t);
  return (h - (t - 0x1.8p52)) + (vm_priv_adderr_f64(p, q, h) + (v * VM_PRIV_PI(2) + v * VM_PRIV_PI(3)));
}

// r for |x| <= 2^20: n fits 20 bits, so its product with a 33-bit part of pi/2 is exact (Cody-Waite).
VM_FN double vm_priv_small_f32(double x, uint64_t *n) {
  double t = VM_FMA(x, 0x1.45f306dc9c883p-1, 0x1.8p52), k = t - 0x1.8p52;
  *n = vm_priv_bits_f64(t);
  return VM_FMA(k, -0x1.0b4611a626331p-34, VM_FMA(k, -0x1.921fb544p+0, x));
}

// The same to 2^-120, as r + *lo: three 33-bit parts and a rest.
VM_FN double vm_priv_small_f64(double x, double *lo, uint64_t *n) {
  double t = VM_FMA(x, 0x1.45f306dc9c883p-1, 0x1.8p52), k = t - 0x1.8p52;
  *n = vm_priv_bits_f64(t);
  double a = VM_FMA(k, -0x1.921fb544p+0, x), b = k * -0x1.0b4611a6p-34, c = k * -0x1.3198a2ep-69;
  double s = a + b, r = s + c;
  double l = (vm_priv_adderr_f64(a, b, s) + vm_priv_adderr_f64(s, c, r)) + k * -0x1.b839a252049c1p-104, h = r + l;
  *lo = l - (h - r);
  return h;
}

// The same for any finite x >= 2^20: significand times the 192 bits of 2/pi that matter, in integers (Payne-Hanek).
static __attribute__((noinline, cold, unused)) double vm_priv_big_f64(double x, double *lo, uint64_t *n) {
  uint64_t u = vm_priv_bits_f64(x), m = (u & 0x000fffffffffffffu) | 0x0010000000000000u;
  unsigned at = (unsigned)(u >> 52 & 0x7ffu) - 1023u - 52u + 62u, word = at / 64u, bit = at % 64u;  // 64 zeros lead
  uint64_t w[3];
  for (unsigned i = 0; i < 3; i++)
    w[i] = vm_priv_pi_bits[word + i] << bit | (bit ? vm_priv_pi_bits[word + i + 1] >> (64u - bit) : 0u);
  unsigned __int128 v = ((unsigned __int128)(m * w[0]) << 64) + (unsigned __int128)m * w[1];
  v += (unsigned __int128)m * w[2] >> 64;  // quarter turns mod 4, scaled by 2^126
  uint64_t k = (uint64_t)((v + ((unsigned __int128)1 << 125)) >> 126);
  __int128 f = (__int128)(v - ((unsigned __int128)k << 126));
  double h = (double)f, l = (double)(f - (__int128)h), p = h * 0x1.921fb54442d18p+0;
  l = (vm_priv_mulerr_f64(h, 0x1.921fb54442d18p+0, p) + (h * 0x1.1a62633145c07p-54 + l * 0x1.921fb54442d18p+0));
  int minus = vm_copysign_f64(1.0, x) < 0.0;
  h = (p + l) * 0x1p-126;
  l = (l - ((p + l) - p)) * 0x1p-126;
  *n = minus ? 0u - k : k;
  *lo = minus ? -l : l;
  return minus ? -h : h;
}

// ---- polynomials on |r| <= pi/4 and a little more ----

// sin r and cos r to float's precision: minimax of degree 9 and 8.
VM_FN double vm_priv_sinpoly_f32(double r, double *c) {
  double z = r * r, s;
  {
    double p = VM_FMA(0x1.997cf8037afc7p-16, z, -0x1.6c0aaab39dfefp-10);
    p = VM_FMA(p, z, 0x1.55554782e1abdp-5);
    *c = VM_FMA(z * z, p, VM_FMA(z, -0.5, 1.0));
  }
  double p = VM_FMA(0x1.6c790aa505781p-19, z, -0x1.a00dff0af6518p-13);
  p = VM_FMA(p, z, 0x1.1111067e76a33p-7);
  p = VM_FMA(p, z, -0x1.55555549b691bp-3);
  s = VM_FMA(p * z, r, r);
  return s;
}

// sin (r + l) and cos (r + l), each in two parts, the second optional to use: minimax of degree 13 and 14.
VM_FN double vm_priv_sinpoly_f64(double r, double l, double *sl, double *c, double *cl) {
  double z = r * r, h = 0.5 * z, w = 1.0 - h;
  {
    double p = VM_FMA(-0x1.8fa673bb9ae02p-37, z, 0x1.1ee9dbb6dda88p-29);
    p = VM_FMA(p, z, -0x1.27e4f7f17aa3fp-22);
    p = VM_FMA(p, z, 0x1.a01a019c8f176p-16);
    p = VM_FMA(p, z, -0x1.6c16c16c15015p-10);
    p = VM_FMA(p, z, 0x1.555555555554bp-5);
    double e = ((1.0 - w) - h) + (z * z * p - r * l);
    *c = w + e;
    *cl = e - (*c - w);
  }
  double p = VM_FMA(0x1.5d8b550ad6c1p-33, z, -0x1.ae5e4b8287a62p-26);
  p = VM_FMA(p, z, 0x1.71de35552a3a1p-19);
  p = VM_FMA(p, z, -0x1.a01a019be920ep-13);
  p = VM_FMA(p, z, 0x1.111111110f73p-7);
  p = VM_FMA(p, z, -0x1.5555555555548p-3);
  double e = VM_FMA(p * z, r, VM_FMA(-h, l, l)), s = r + e;
  *sl = e - (s - r);
  return s;
}

// s for even n, c for odd, negated for n = 2, 3 mod 4. Masks: SSE2 has no 64-bit compare.
VM_FN double vm_priv_quadrant(double s, double c, uint64_t n) {
  uint64_t odd = 0u - (n & 1u);
  return vm_priv_float_u64(((vm_priv_bits_f64(c) & odd) | (vm_priv_bits_f64(s) & ~odd)) ^ (n & 2u) << 62);
}

// tan: sin / cos, or cos / -sin in odd quadrants.
VM_FN float vm_priv_tan_f32(double s, double c, uint64_t n) {
  return (float)(vm_priv_quadrant(s, c, n & 1u) / vm_priv_quadrant(c, s, (n & 1u) * 3u));
}

VM_FN double vm_priv_tan_f64(double s, double sl, double c, double cl, uint64_t n) {
  uint64_t m = (n & 1u) * 3u;
  double lo, t = vm_priv_div_f64(vm_priv_quadrant(s, c, n & 1u), vm_priv_quadrant(sl, cl, n & 1u),
                                 vm_priv_quadrant(c, s, m), vm_priv_quadrant(cl, sl, m), &lo);
  return t + lo;
}

// ---- float ----

// sin. Max ulp 0.51.
VM_FN float vm_sin_f32(float x) {
  uint64_t n;
  double c, f = vm_priv_turns_f32(x, &n), s = vm_priv_sinpoly_f32(f * 0x1.921fb54442d18p+0, &c);
  float y = (float)vm_priv_quadrant(s, c, n), a = vm_abs_f32(x);
  y = a < 0x1p-12f ? x : y;
  return a < VM_INFF ? y : VM_NANF;
}

// cos. Max ulp 0.51.
VM_FN float vm_cos_f32(float x) {
  uint64_t n;
  double c, f = vm_priv_turns_f32(x, &n), s = vm_priv_sinpoly_f32(f * 0x1.921fb54442d18p+0, &c);
  float y = (float)vm_priv_quadrant(s, c, n + 1u);
  return vm_abs_f32(x) < VM_INFF ? y : VM_NANF;
}

// tan. Max ulp 0.51.
VM_FN float vm_tan_f32(float x) {
  uint64_t n;
  double c, f = vm_priv_turns_f32(x, &n), s = vm_priv_sinpoly_f32(f * 0x1.921fb54442d18p+0, &c);
  float y = vm_priv_tan_f32(s, c, n), a = vm_abs_f32(x);
  y = a < 0x1p-13f ? x : y;
  return a < VM_INFF ? y : VM_NANF;
}

// The same for |x| <= VM_CIRC_SMALL.
VM_FN float vm_sin_small_f32(float x) {
  uint64_t n;
  double c, s = vm_priv_sinpoly_f32(vm_priv_small_f32((double)x, &n), &c);
  float y = (float)vm_priv_quadrant(s, c, n);
  return x == 0.0f ? x : y;
}

VM_FN float vm_cos_small_f32(float x) {
  uint64_t n;
  double c, s = vm_priv_sinpoly_f32(vm_priv_small_f32((double)x, &n), &c);
  return (float)vm_priv_quadrant(s, c, n + 1u);
}

VM_FN float vm_tan_small_f32(float x) {
  uint64_t n;
  double c, s = vm_priv_sinpoly_f32(vm_priv_small_f32((double)x, &n), &c);
  float y = vm_priv_tan_f32(s, c, n);
  return x == 0.0f ? x : y;
}

// ---- double ----

// For |x| <= VM_CIRC_SMALL.
VM_FN double vm_sin_small_f64(double x) {
  uint64_t n;
  double l, c, sl, cl, r = vm_priv_small_f64(x, &l, &n), s = vm_priv_sinpoly_f64(r, l, &sl, &c, &cl);
  double y = vm_priv_quadrant(s, c, n);
  return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

VM_FN double vm_cos_small_f64(double x) {
  uint64_t n;
  double l, c, sl, cl, r = vm_priv_small_f64(x, &l, &n), s = vm_priv_sinpoly_f64(r, l, &sl, &c, &cl);
  return vm_priv_quadrant(s, c, n + 1u);
}

VM_FN double vm_tan_small_f64(double x) {
  uint64_t n;
  double l, c, sl, cl, r = vm_priv_small_f64(x, &l, &n), s = vm_priv_sinpoly_f64(r, l, &sl, &c, &cl);
  double y = vm_priv_tan_f64(s, sl, c, cl, n);
  return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

// sin and cos of any finite x, NaN otherwise.
VM_FN double vm_priv_sincos_f64(double x, double *sl, double *c, double *cl, uint64_t *n) {
  double l, r;
  if (vm_abs_f64(x) <= VM_CIRC_SMALL)
    r = vm_priv_small_f64(x, &l, n);
  else if (vm_abs_f64(x) < VM_INF)
    r = vm_priv_big_f64(x, &l, n);
  else
    *n = 0, r = l = VM_NAN;
  return vm_priv_sinpoly_f64(r, l, sl, c, cl);
}

// sin. Max ulp 0.76.
VM_FN double vm_sin_f64(double x) {
  uint64_t n;
  double c, sl, cl, s = vm_priv_sincos_f64(x, &sl, &c, &cl, &n), y = vm_priv_quadrant(s, c, n);
  return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

// cos. Max ulp 0.78 0.77 0.77.
VM_FN double vm_cos_f64(double x) {
  uint64_t n;
  double c, sl, cl, s = vm_priv_sincos_f64(x, &sl, &c, &cl, &n);
  return vm_priv_quadrant(s, c, n + 1u);
}

// tan. Max ulp 0.97 0.92 0.92.
VM_FN double vm_tan_f64(double x) {
  uint64_t n;
  double c, sl, cl, s = vm_priv_sincos_f64(x, &sl, &c, &cl, &n), y = vm_priv_tan_f64(s, sl, c, cl, n);
  return vm_abs_f64(x) < 0x1p-27 ? x : y;
}

// ---- arrays ----

#define VM_PRIV_CIRC_ARRAY(fn, F, T)                                                           \
  static inline __attribute__((unused)) void vm_##fn##_array_##F(T *o, const T *a, int64_t n) { \
    enum { TILE = 128 };                                                                       \
    for (int64_t at = 0; at < n; at += TILE, o += TILE, a += TILE) {                           \
      int m = n - at < TILE ? (int)(n - at) : TILE, small = 1;                                 \
      for (int i = 0; i < m; i++) small &= vm_abs_##F(a[i]) <= (T)VM_CIRC_SMALL;               \
      if (small)                                                                               \
        for (int i = 0; i < m; i++) o[i] = vm_##fn##_small_##F(a[i]);                          \
      else                                                                                     \
        for (int i = 0; i < m; i++) o[i] = vm_##fn##_##F(a[i]);                                \
    }                                                                                          \
  }

VM_PRIV_CIRC_ARRAY(sin, f32, float)
VM_PRIV_CIRC_ARRAY(cos, f32, float)
VM_PRIV_CIRC_ARRAY(tan, f32, float)
VM_PRIV_CIRC_ARRAY(sin, f64, double)
VM_PRIV_CIRC_ARRAY(cos, f64, double)
VM_PRIV_CIRC_ARRAY(tan, f64, double)

#endif
