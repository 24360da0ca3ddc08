// vmath_v512.h: the busiest functions on 16 floats at once, with what plain C cannot say: AVX-512's scaling by a power
// of two (denormals and overflow round once, no integers), splitting into exponent and significand, and lookup in 32
// entries that lie in two registers. vmath_array.h calls these and falls back to vmath_f32.h.
#ifndef EMBER_BACKEND_CPU_VMATH_V512_H
#define EMBER_BACKEND_CPU_VMATH_V512_H
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VM_HAVE_V16 1

#include <immintrin.h>
#include "vmath_bits.h"
#include "vmath_tables.h"

#define VM_V16 VM_FN __m512
#define VM_PRIV_ALL(x) _mm512_set1_ps(x)

// y with the sign of x; y is not negative.
VM_V16 vm_priv_sign_v16(__m512 y, __m512 x) {
  return _mm512_or_ps(y, _mm512_and_ps(x, VM_PRIV_ALL(-0.0f)));
}

// min and max hand on the second operand where there is a NaN: the argument.
VM_V16 vm_priv_atmost_v16(float most, __m512 x) { return _mm512_min_ps(VM_PRIV_ALL(most), x); }
VM_V16 vm_priv_atleast_v16(float least, __m512 x) { return _mm512_max_ps(VM_PRIV_ALL(least), x); }

// e^x = (1 + *p) 2^*n for |x| < 2^8, by vm_exp_f32's reduction and polynomial: *p is r + *q, |r| < 0.35.
VM_V16 vm_priv_expred_v16(__m512 x, __m512 *q, __m512 *n) {
  __m512 big = VM_PRIV_ALL(0x1.8p23f), k = _mm512_sub_ps(_mm512_fmadd_ps(x, VM_PRIV_ALL(0x1.715476p+0f), big), big);
  __m512 r = _mm512_fnmadd_ps(k, VM_PRIV_ALL(0x1.62e4p-1f), x);
  r = _mm512_fnmadd_ps(k, VM_PRIV_ALL(0x1.7f7d1cp-20f), r);
  __m512 p = _mm512_fmadd_ps(VM_PRIV_ALL(0x1.9e3c3cp-13f), r, VM_PRIV_ALL(0x1.6d4cfp-10f));
  p = _mm512_fmadd_ps(p, r, VM_PRIV_ALL(0x1.1112fp-7f));
  p = _mm512_fmadd_ps(p, r, VM_PRIV_ALL(0x1.5554e8p-5f));
  p = _mm512_fmadd_ps(p, r, VM_PRIV_ALL(0x1.555554p-3f));
  *q = _mm512_fmadd_ps(p, r, VM_PRIV_ALL(0x1p-1f));
  *n = k;
  return r;
}

// Max ulp 0.97.
VM_V16 vm_exp_v16(__m512 x) {
  __m512 q, n, r = vm_priv_expred_v16(vm_priv_atleast_v16(-104.0f, vm_priv_atmost_v16(89.0f, x)), &q, &n);
  __m512 p = _mm512_fmadd_ps(q, _mm512_mul_ps(r, r), r);
  return _mm512_scalef_ps(_mm512_add_ps(p, VM_PRIV_ALL(1.0f)), n);
}

// With z = e^-|x|: z / (1 + z) or 1 / (1 + z), so that nothing overflows and small results keep their digits; what
// rounding takes from 1 + r is put back. Max ulp 1.87.
VM_V16 vm_sigmoid_v16(__m512 x) {
  __m512 a = vm_priv_atleast_v16(-104.0f, _mm512_or_ps(x, VM_PRIV_ALL(-0.0f))), one = VM_PRIV_ALL(1.0f);
  __m512 q, n, r = vm_priv_expred_v16(a, &q, &n), h = _mm512_add_ps(one, r);
  __m512 l = _mm512_fmadd_ps(q, _mm512_mul_ps(r, r), _mm512_sub_ps(r, _mm512_sub_ps(h, one)));
  __m512 z = _mm512_scalef_ps(_mm512_add_ps(h, l), n);
  __m512 up = _mm512_mask_mov_ps(one, _mm512_movepi32_mask(_mm512_castps_si512(x)), z);
  __m512 d = _mm512_add_ps(one, z), y = _mm512_div_ps(up, d);
  return _mm512_fnmadd_ps(y, _mm512_add_ps(_mm512_sub_ps(one, d), z), y);
}

// log x = k ln2 + log(1 + f), 3/4 <= 1 + f < 3/2, minimax of degree 11; zero, infinity and negatives by a table of
// four bits a class of numbers: QNaN itself, SNaN quiet, 0 -inf, 1 as computed, -inf NaN, inf itself, < 0 NaN.
// Max ulp 0.84.
VM_V16 vm_log_v16(__m512 x) {
  __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src), one = VM_PRIV_ALL(1.0f);
  __m512 k = _mm512_sub_ps(_mm512_getexp_ps(x), _mm512_getexp_ps(m)), f = _mm512_sub_ps(m, one);
  __m512 z = _mm512_mul_ps(f, f), p = _mm512_fmadd_ps(VM_PRIV_ALL(0x1.334bc2p-5f), f, VM_PRIV_ALL(-0x1.755a3ap-4f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(0x1.dfd83ap-4f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(-0x1.04ca2ep-3f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(0x1.245da8p-3f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(-0x1.5517p-3f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(0x1.999772p-3f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(-0x1.000076p-2f));
  p = _mm512_fmadd_ps(p, f, VM_PRIV_ALL(0x1.55555ap-2f));
  __m512 l = _mm512_fmadd_ps(z, VM_PRIV_ALL(-0.5f), _mm512_mul_ps(_mm512_mul_ps(z, f), p));
  __m512 kh = _mm512_mul_ps(k, VM_PRIV_ALL(0x1.62e4p-1f)), s = _mm512_add_ps(kh, f);  // as vm_priv_logsum_f32
  l = _mm512_fmadd_ps(k, VM_PRIV_ALL(0x1.7f7d1cp-20f), l);
  __m512 y = _mm512_add_ps(s, _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(kh, s), f), l));
  return _mm512_fixupimm_ps(y, x, _mm512_set1_epi32(0x03530421), 0);
}

// Entry i mod 32 of a row.
VM_V16 vm_priv_pick_v16(const float *row, __m512i i) {
  return _mm512_permutex2var_ps(_mm512_loadu_ps(row), i, _mm512_loadu_ps(row + 16));
}

// The polynomial of the piece that a >= 0 is in: 0 up to 5/64, then one a quarter of an octave, which is the exponent
// and two bits after it.
VM_V16 vm_priv_piece_v16(const float (*t)[32], __m512 a) {
  __m512i i = _mm512_sub_epi32(_mm512_castps_si512(a), _mm512_set1_epi32(0x3d800000));
  i = _mm512_srli_epi32(_mm512_max_epi32(i, _mm512_setzero_si512()), 21);
  __m512 d = _mm512_sub_ps(a, vm_priv_pick_v16(t[0], i));
  __m512 p = _mm512_fmadd_ps(vm_priv_pick_v16(t[6], i), d, vm_priv_pick_v16(t[5], i));
  p = _mm512_fmadd_ps(p, d, vm_priv_pick_v16(t[4], i));
  p = _mm512_fmadd_ps(p, d, vm_priv_pick_v16(t[3], i));
  p = _mm512_fmadd_ps(p, d, vm_priv_pick_v16(t[2], i));
  return _mm512_fmadd_ps(p, d, vm_priv_pick_v16(t[1], i));
}

// From 9.02 on it is 1. Max ulp 0.99.
VM_V16 vm_tanh_v16(__m512 x) {
  return vm_priv_sign_v16(vm_priv_piece_v16(vm_priv_tanh_table, vm_priv_atmost_v16(9.1f, _mm512_abs_ps(x))), x);
}

// From 3.92 on it is 1. Max ulp 0.88.
VM_V16 vm_erf_v16(__m512 x) {
  __m512 a = _mm512_abs_ps(x), y = vm_priv_piece_v16(vm_priv_erf_table, vm_priv_atmost_v16(3.999f, a));
  y = _mm512_mask_add_ps(y, _mm512_cmp_ps_mask(a, VM_PRIV_ALL(0.078125f), _CMP_LT_OQ), y, a);
  return vm_priv_sign_v16(y, x);
}

// PyTorch's two GELUs, in PyTorch's order of operations: 1.6 and 1.8 ulps of the result or, where larger, of x/2.
VM_V16 vm_gelu_erf_v16(__m512 x) {
  __m512 e = vm_erf_v16(_mm512_mul_ps(x, VM_PRIV_ALL(0x1.6a09e6p-1f)));
  return _mm512_mul_ps(_mm512_mul_ps(x, VM_PRIV_ALL(0.5f)), _mm512_add_ps(e, VM_PRIV_ALL(1.0f)));
}

VM_V16 vm_gelu_tanh_v16(__m512 x) {
  __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x), half = VM_PRIV_ALL(0.5f);
  __m512 in = _mm512_add_ps(x, _mm512_mul_ps(VM_PRIV_ALL(0x1.6e4e26p-5f), cube));
  __m512 t = vm_tanh_v16(_mm512_mul_ps(VM_PRIV_ALL(0x1.988454p-1f), in));
  return _mm512_mul_ps(_mm512_mul_ps(half, x), _mm512_add_ps(t, VM_PRIV_ALL(1.0f)));
}

#endif
#endif
