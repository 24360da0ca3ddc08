// vmath_array.h: the busiest functions on arrays, o[i] = f(a[i]) (o may be a): 16 at a time where vmath_v512.h has the
// function, else a plain loop. An element's result does not depend on where in the array it stands. sin, cos and tan
// have theirs in vmath_circ.h.
#ifndef EMBER_BACKEND_CPU_VMATH_ARRAY_H
#define EMBER_BACKEND_CPU_VMATH_ARRAY_H
#include "vmath_f32.h"
#include "vmath_f64.h"
#include "vmath_v512.h"

#define VM_PRIV_PLAIN(fn, F, T)                                                                    \
  static inline __attribute__((unused)) void vm_##fn##_array_##F(T *o, const T *a, int64_t n) {    \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) o[i] = vm_##fn##_##F(a[i]);                \
  }

#ifdef VM_HAVE_V16
#define VM_PRIV_ARRAY_F32(fn)                                                                      \
  static inline __attribute__((unused)) void vm_##fn##_array_f32(float *o, const float *a, int64_t n) { \
    for (; n >= 16; n -= 16, o += 16, a += 16) _mm512_storeu_ps(o, vm_##fn##_v16(_mm512_loadu_ps(a)));   \
    if (n == 0) return;                                                                            \
    __mmask16 rest = (__mmask16)((1u << n) - 1u);                                                  \
    _mm512_mask_storeu_ps(o, rest, vm_##fn##_v16(_mm512_maskz_loadu_ps(rest, a)));                 \
  }
#else
#define VM_PRIV_ARRAY_F32(fn) VM_PRIV_PLAIN(fn, f32, float)
#endif

#define VM_PRIV_ARRAY(fn) VM_PRIV_ARRAY_F32(fn) VM_PRIV_PLAIN(fn, f64, double)
VM_PRIV_ARRAY(exp)
VM_PRIV_ARRAY(log)
VM_PRIV_ARRAY(tanh)
VM_PRIV_ARRAY(erf)
VM_PRIV_ARRAY(sigmoid)
VM_PRIV_ARRAY(gelu_erf)
VM_PRIV_ARRAY(gelu_tanh)

#endif
