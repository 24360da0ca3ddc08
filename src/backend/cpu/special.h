// special.h: special functions that loops call one element at a time: the gamma, error and Bessel families, incomplete gamma
// functions, zeta and orthogonal polynomials. Computed in double (float arguments too), in special.c, once for all instruction sets.
// Good to a few units in the last place but near zeros of a function, where the error is absolute.
#ifndef EMBER_BACKEND_CPU_SPECIAL_H
#define EMBER_BACKEND_CPU_SPECIAL_H
#include "vmath_complex.h"

#define EM_SPECIAL1(name)                                                                     \
  double vm_##name##_f64(double x) __attribute__((const, visibility("hidden")));             \
  VM_FN float vm_##name##_f32(float x) { return (float)vm_##name##_f64((double)x); }
#define EM_SPECIAL2(name)                                                                     \
  double vm_##name##_f64(double a, double b) __attribute__((const, visibility("hidden")));    \
  VM_FN float vm_##name##_f32(float a, float b) { return (float)vm_##name##_f64((double)a, (double)b); }

EM_SPECIAL1(lgamma)
EM_SPECIAL1(digamma)
EM_SPECIAL2(polygamma)  // (n, x), n a whole number
EM_SPECIAL2(zeta)       // Hurwitz's zeta(s, q)
EM_SPECIAL1(erfinv)
EM_SPECIAL1(erfcx)
EM_SPECIAL1(ndtri)
EM_SPECIAL1(log_ndtr)
EM_SPECIAL1(i0)
EM_SPECIAL1(i0e)
EM_SPECIAL1(i1)
EM_SPECIAL1(i1e)
EM_SPECIAL1(k0)
EM_SPECIAL1(k0e)
EM_SPECIAL1(k1)
EM_SPECIAL1(k1e)
EM_SPECIAL1(j0)
EM_SPECIAL1(j1)
EM_SPECIAL1(y0)
EM_SPECIAL1(y1)
EM_SPECIAL1(spherical_j0)
EM_SPECIAL1(airy_ai)
EM_SPECIAL2(igamma)     // (a, x): P(a, x)
EM_SPECIAL2(igammac)    // Q(a, x)
EM_SPECIAL2(chebyshev_t)  // (x, n), n truncated to a whole number; so below
EM_SPECIAL2(chebyshev_u)
EM_SPECIAL2(chebyshev_v)
EM_SPECIAL2(chebyshev_w)
EM_SPECIAL2(hermite_h)
EM_SPECIAL2(hermite_he)
EM_SPECIAL2(laguerre_l)
EM_SPECIAL2(legendre_p)
#undef EM_SPECIAL1
#undef EM_SPECIAL2

// --- short ones, inline
VM_FN float vm_hypot_f32(float x, float y) { return vm_priv_hypot_f32(x, y); }
VM_FN double vm_hypot_f64(double x, double y) { return vm_priv_hypot_f64(x, y); }
VM_FN float vm_nextafter_f32(float x, float y) { return __builtin_nextafterf(x, y); }
VM_FN double vm_nextafter_f64(double x, double y) { return __builtin_nextafter(x, y); }

// log(e^a + e^b) and its form to base 2, shifted by the larger so that nothing overflows. Equal infinities are their own sum.
#define EM_LOGADDEXP(T, t)                                                                                       \
  VM_FN T vm_logaddexp_##t(T a, T b) {                                                                           \
    T m = a > b ? a : b, r = m + vm_log1p_##t(vm_exp_##t(-vm_abs_##t(a - b)));                                   \
    return ((a == b) & (vm_abs_##t(a) == (T)VM_INF)) ? a : r;                                                    \
  }                                                                                                              \
  VM_FN T vm_logaddexp2_##t(T a, T b) {                                                                          \
    T m = a > b ? a : b;                                                                                         \
    T r = m + vm_log1p_##t(vm_exp2_##t(-vm_abs_##t(a - b))) * (T)1.44269504088896340736;                         \
    return ((a == b) & (vm_abs_##t(a) == (T)VM_INF)) ? a : r;                                                    \
  }
EM_LOGADDEXP(float, f32)
EM_LOGADDEXP(double, f64)
#undef EM_LOGADDEXP
#endif
