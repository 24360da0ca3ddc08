// vmath_complex.h: Ember's scalar functions on em_c64 and em_c128, built from the real ones as real pairs.
//
// Bounds (tests/c/test_vmath.py) are on |got - exact| / |exact| in units of the format's epsilon, as a small component
// beside a large one has no bound of its own in PyTorch either.
#ifndef EMBER_BACKEND_CPU_VMATH_COMPLEX_H
#define EMBER_BACKEND_CPU_VMATH_COMPLEX_H
#include "../../core/complex_types.h"
#include "vmath_circ.h"

// sqrt(x^2 + y^2) without overflow. On float: in double, where squares are exact. On double: scaled by a power of two,
// with the rounding errors of squares, sum and root put back.
VM_FN float vm_priv_hypot_f32(float x, float y) {
  double a = (double)x, b = (double)y;
  float r = (float)__builtin_sqrt(a * a + b * b);
  float ax = vm_abs_f32(x), ay = vm_abs_f32(y);
  return ((ax == VM_INFF) | (ay == VM_INFF)) ? VM_INFF : r;
}

VM_FN double vm_priv_hypot_f64(double x, double y) {
  double a = vm_abs_f64(x), b = vm_abs_f64(y), m = a > b ? a : b;
  double k = m > 0x1p500 ? 0x1p-600 : m < 0x1p-400 ? 0x1p600 : 1.0;
  double back = m > 0x1p500 ? 0x1p600 : m < 0x1p-400 ? 0x1p-600 : 1.0;
  double u = a * k, v = b * k, uu = u * u, vv = v * v, s = uu + vv, h = __builtin_sqrt(s), hh = h * h;
  double e = (vm_priv_mulerr_f64(u, u, uu) + vm_priv_mulerr_f64(v, v, vv)) + vm_priv_adderr_f64(uu, vv, s);
  double c = (((s - hh) - vm_priv_mulerr_f64(h, h, hh)) + e) / (h + h), r = (h + (c == c ? c : 0.0)) * back;
  return ((a == VM_INF) | (b == VM_INF)) ? VM_INF : r;
}

// log sqrt(x^2 + y^2). Near the unit circle through log1p of (m - 1)(m + 1) + n^2, m the larger component.
VM_FN double vm_priv_loghypot_f64(double x, double y) {
  double a = vm_abs_f64(x), b = vm_abs_f64(y), m = a > b ? a : b, n = a > b ? b : a, h = vm_priv_hypot_f64(x, y);
  double p = m - 1.0, q = m + 1.0, pq = p * q, nn = n * n, s = pq + nn;
  double e = vm_priv_mulerr_f64(p, q, pq) + vm_priv_mulerr_f64(n, n, nn) + vm_priv_adderr_f64(pq, nn, s);
  e += p * (m - (q - 1.0));  // what m + 1 lost; m - 1 is exact here
  double near = 0.5 * vm_priv_log1phl_f64(s, e), far = vm_log_f64(h);
  return ((h > 0.71) & (h < 1.4)) ? near : far;
}

VM_FN float vm_priv_loghypot_f32(float x, float y) {
  double a = (double)vm_abs_f32(x), b = (double)vm_abs_f32(y), m = a > b ? a : b, n = a > b ? b : a;
  double s = (m - 1.0) * (m + 1.0) + n * n, h = a * a + b * b;
  float r = (float)(0.5 * (((h > 0.5) & (h < 2.0)) ? vm_log1p_f64(s) : vm_log_f64(h)));
  float ax = vm_abs_f32(x), ay = vm_abs_f32(y);
  return ((ax == VM_INFF) | (ay == VM_INFF)) ? VM_INFF : r;
}

// *re = e^x c, *im = e^x s.
VM_FN void vm_priv_expmul_f32(float x, float c, float s, float *re, float *im) {
  uint32_t i;
  float l;
  x = x > 170.0f ? 170.0f : x;
  x = x < -170.0f ? -170.0f : x;
  float h = vm_priv_exphl_f32(x, &l, &i);
  *re = vm_priv_scale_f32(h * c + l * c, i);
  *im = vm_priv_scale_f32(h * s + l * s, i);
}

VM_FN void vm_priv_expmul_f64(double x, double c, double s, double *re, double *im) {
  uint64_t i;
  double l;
  x = x > 1400.0 ? 1400.0 : x;
  x = x < -1400.0 ? -1400.0 : x;
  double h = vm_priv_exphl_f64(x, &l, &i);
  *re = vm_priv_scale_f64(h * c + l * c, i);
  *im = vm_priv_scale_f64(h * s + l * s, i);
}

#define VM_Z em_c64
#define VM_T float
#define VM_F(fn) vm_##fn##_f32
#define VM_C(fn) vm_##fn##_c64
#include "vmath_complex.inc"
#undef VM_Z
#undef VM_T
#undef VM_F
#undef VM_C
#define VM_Z em_c128
#define VM_T double
#define VM_F(fn) vm_##fn##_f64
#define VM_C(fn) vm_##fn##_c128
#include "vmath_complex.inc"
#undef VM_Z
#undef VM_T
#undef VM_F
#undef VM_C

// sqrt z = (t, y / 2t) or (|y| / 2t, +-t), t = sqrt((|x| + |z|) / 2), scaled by a power of four (W. Kahan 1987).
// Infinities as C11 G.6.4.2.
VM_FN em_c128 vm_sqrt_c128(em_c128 z) {
  double a = vm_abs_f64(z.re), b = vm_abs_f64(z.im), m = a > b ? a : b;
  double k = m > 0x1p500 ? 0x1p-600 : m < 0x1p-400 ? 0x1p600 : 1.0;
  double back = m > 0x1p500 ? 0x1p300 : m < 0x1p-400 ? 0x1p-300 : 1.0;
  double t = __builtin_sqrt((a * k + vm_priv_hypot_f64(z.re * k, z.im * k)) * 0.5), o = b * k / (t + t);
  t *= back;
  o = t == 0.0 ? b : o * back;
  o = a == VM_INF ? (b != b ? b : 0.0) : o;
  t = b == VM_INF ? VM_INF : t;
  o = b == VM_INF ? VM_INF : o;
  int left = z.re < 0.0;
  return (em_c128){left ? o : t, vm_copysign_f64(left ? t : o, z.im)};
}

VM_FN em_c64 vm_sqrt_c64(em_c64 z) {
  em_c128 r = vm_sqrt_c128((em_c128){(double)z.re, (double)z.im});
  return (em_c64){(float)r.re, (float)r.im};
}

// x^y = e^(y log x); 0^0 is 1 and 0^y is 0 for re y > 0, as in numpy. c64 goes by way of double: the error of the
// logarithm is multiplied by |y|.
VM_FN em_c128 vm_pow_c128(em_c128 x, em_c128 y) {
  em_c128 r = vm_exp_c128(vm_mul_c128(y, vm_log_c128(x)));
  int zero = (x.re == 0.0) & (x.im == 0.0), one = (y.re == 0.0) & (y.im == 0.0);
  double re = zero ? (y.re > 0.0 ? 0.0 : VM_NAN) : r.re, im = zero ? (y.re > 0.0 ? 0.0 : VM_NAN) : r.im;
  return (em_c128){one ? 1.0 : re, one ? 0.0 : im};
}

VM_FN em_c64 vm_pow_c64(em_c64 x, em_c64 y) {
  em_c128 r = vm_pow_c128((em_c128){(double)x.re, (double)x.im}, (em_c128){(double)y.re, (double)y.im});
  return (em_c64){(float)r.re, (float)r.im};
}

#endif
