// vmath_bits.h: what every vmath header stands on: fused multiply-add where the machine has it, bit casts, splits.
//
// The vm_* functions are called from plain C loops and must vectorise there, so all of them keep these rules:
//   - no branches: both sides of a choice are computed, then `?:` selects;
//   - no library calls; integers only as wide as the floats beside them; no 64-bit arithmetic shifts, signed 64-bit
//     compares or int64 <-> double conversions, which SSE2 and AVX2 lack;
//   - right with and without FMA: where an error term needs an exact product, an operand is split first;
//   - compiled with -ffp-contract=off -fwrapv, never with -ffast-math: the sums below rely on each rounding.
#ifndef EMBER_BACKEND_CPU_VMATH_BITS_H
#define EMBER_BACKEND_CPU_VMATH_BITS_H

#include <stdint.h>

#define VM_FN static inline __attribute__((always_inline, unused))

#ifdef __FMA__
#define VM_FMA(a, b, c) __builtin_fma(a, b, c)
#define VM_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#else
#define VM_FMA(a, b, c) ((a) * (b) + (c))
#define VM_FMAF(a, b, c) ((a) * (b) + (c))
#endif

#define VM_INF __builtin_inf()
#define VM_NAN __builtin_nan("")
#define VM_INFF __builtin_inff()
#define VM_NANF __builtin_nanf("")

VM_FN uint32_t vm_priv_bits_f32(float x) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u; }
VM_FN float vm_priv_float_u32(uint32_t u) { float x; __builtin_memcpy(&x, &u, 4); return x; }
VM_FN uint64_t vm_priv_bits_f64(double x) { uint64_t u; __builtin_memcpy(&u, &x, 8); return u; }
VM_FN double vm_priv_float_u64(uint64_t u) { double x; __builtin_memcpy(&x, &u, 8); return x; }

// The upper half of x's significand (12 and 26 bits): products of two such are exact.
VM_FN float vm_priv_top_f32(float x) { return vm_priv_float_u32(vm_priv_bits_f32(x) & 0xfffff000u); }
VM_FN double vm_priv_top_f64(double x) { return vm_priv_float_u64(vm_priv_bits_f64(x) & 0xfffffffff8000000u); }

// a * b - p, exact when p is the rounded product and nothing under- or overflows (T. Dekker 1971).
VM_FN float vm_priv_mulerr_f32(float a, float b, float p) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, -p);
#else
  float ah = vm_priv_top_f32(a), al = a - ah, bh = vm_priv_top_f32(b), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

VM_FN double vm_priv_mulerr_f64(double a, double b, double p) {
#ifdef __FMA__
  return __builtin_fma(a, b, -p);
#else
  double ah = vm_priv_top_f64(a), al = a - ah, bh = vm_priv_top_f64(b), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

// a + b - s, exact for the rounded sum s, whichever is larger (D. Knuth, TAOCP 2, 4.2.2).
VM_FN float vm_priv_adderr_f32(float a, float b, float s) { float t = s - a; return (a - (s - t)) + (b - t); }
VM_FN double vm_priv_adderr_f64(double a, double b, double s) { double t = s - a; return (a - (s - t)) + (b - t); }

// (ah + al) / (bh + bl) as q + *lo, with one division and about twice the format's precision.
VM_FN float vm_priv_div_f32(float ah, float al, float bh, float bl, float *lo) {
  float r = 1.0f / bh, q = ah * r, p = q * bh;
  *lo = (((ah - p) - vm_priv_mulerr_f32(q, bh, p)) + (al - q * bl)) * r;
  return q;
}

VM_FN double vm_priv_div_f64(double ah, double al, double bh, double bl, double *lo) {
  double r = 1.0 / bh, q = ah * r, p = q * bh;
  *lo = (((ah - p) - vm_priv_mulerr_f64(q, bh, p)) + (al - q * bl)) * r;
  return q;
}

#endif
