// kernel_math.h: what generated loops call besides the vocabulary: extremes, divisions and powers with PyTorch's rules,
// and complex arithmetic on pairs. Everything inline and free of traps: integer division by zero sets a sticky flag
// and yields 0, INT_MIN / -1 wraps.
#ifndef EMBER_BACKEND_CPU_KERNEL_MATH_H
#define EMBER_BACKEND_CPU_KERNEL_MATH_H
#include "../../core/complex_types.h"
#include "special.h"
#include "vmath_array.h"
#include "vmath_circ.h"
#include "vmath_f32.h"
#include "vmath_f64.h"
#include <complex.h>
#include <math.h>
#include <stdint.h>

#define EM_KM static inline __attribute__((always_inline, unused))

// --- floats ---------------------------------------------------------------------------------------------------------
// maximum and minimum hand on nan; fmax and fmin avoid it.
#define EM_KM_FLOAT(T, t, fmod_, trunc_, floor_, copysign_)                                            \
  EM_KM T em_maximum_##t(T a, T b) { return ((a > b) | (a != a)) ? a : b; }                            \
  EM_KM T em_minimum_##t(T a, T b) { return ((a < b) | (a != a)) ? a : b; }                            \
  EM_KM T em_fmax_##t(T a, T b) { return ((a > b) | (b != b)) ? a : b; }                               \
  EM_KM T em_fmin_##t(T a, T b) { return ((a < b) | (b != b)) ? a : b; }                               \
  EM_KM int em_isnan_##t(T a) { return a != a; }                                                       \
  EM_KM int em_isinf_##t(T a) { return (a - a != a - a) & (a == a); }                                  \
  EM_KM int em_isfinite_##t(T a) { return a - a == a - a; }                                            \
  EM_KM int em_signbit_##t(T a) { return copysign_(1, a) < 0; }                                        \
  EM_KM T em_fmod_##t(T a, T b) { return fmod_(a, b); }                                                \
  EM_KM T em_truncdiv_##t(T a, T b) { return trunc_(a / b); }                                          \
  EM_KM T em_mod_##t(T a, T b) {                                                                       \
    T m = fmod_(a, b);                                                                                 \
    return (m != 0 && ((b < 0) != (m < 0))) ? m + b : m;                                                 \
  }                                                                                                    \
  /* Python's floor division: the quotient of a - a % b, so that a // b * b + a % b is a */            \
  EM_KM T em_floordiv_##t(T a, T b) {                                                                  \
    if (b == 0) return a / b;                                                                          \
    T m = fmod_(a, b), d = (a - m) / b;                                                                \
    if (m != 0 && ((b < 0) != (m < 0))) d -= 1;                                                        \
    if (d == 0) return copysign_(0, a / b);                                                            \
    T f = floor_(d);                                                                                   \
    return d - f > (T)0.5 ? f + 1 : f;                                                                 \
  }
EM_KM_FLOAT(float, f32, fmodf, vm_trunc_f32, vm_floor_f32, vm_copysign_f32)
EM_KM_FLOAT(double, f64, fmod, vm_trunc_f64, vm_floor_f64, vm_copysign_f64)
#undef EM_KM_FLOAT

// --- integers -------------------------------------------------------------------------------------------------------
#define EM_KM_INT(T, U, t)                                                                             \
  EM_KM int em_isnan_##t(T a) { return (void)a, 0; }                                                   \
  EM_KM T em_maximum_##t(T a, T b) { return a > b ? a : b; }                                           \
  EM_KM T em_minimum_##t(T a, T b) { return a < b ? a : b; }                                           \
  EM_KM T em_fmax_##t(T a, T b) { return a > b ? a : b; }                                              \
  EM_KM T em_fmin_##t(T a, T b) { return a < b ? a : b; }                                              \
  EM_KM T em_truncdiv_##t(T a, T b, uint32_t *sticky) {                                                \
    *sticky |= b == 0;                                                                                 \
    return b == -1 ? -a : b == 0 ? 0 : a / b;                                                          \
  }                                                                                                    \
  EM_KM T em_fmod_##t(T a, T b, uint32_t *sticky) {                                                    \
    *sticky |= b == 0;                                                                                 \
    return b == -1 || b == 0 ? 0 : a % b;                                                              \
  }                                                                                                    \
  EM_KM T em_floordiv_##t(T a, T b, uint32_t *sticky) {                                                \
    T q = em_truncdiv_##t(a, b, sticky);                                                               \
    return ((q * b != a) & ((a < 0) != (b < 0)) & (b != 0)) ? q - 1 : q;                               \
  }                                                                                                    \
  EM_KM T em_mod_##t(T a, T b, uint32_t *sticky) {                                                     \
    T m = em_fmod_##t(a, b, sticky);                                                                   \
    return (m != 0 && ((b < 0) != (m < 0))) ? m + b : m;                                                 \
  }                                                                                                    \
  /* negative powers of integers are 0 except of 1 and -1, as PyTorch has them */                      \
  EM_KM T em_ipow_##t(T a, T b) {                                                                      \
    if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;                                     \
    U r = 1, s = (U)a;                                                                                 \
    for (; b != 0; b >>= 1, s *= s)                                                                    \
      if (b & 1) r *= s;                                                                               \
    return (T)r;                                                                                       \
  }                                                                                                    \
  EM_KM T em_gcd_##t(T a, T b) {                                                                       \
    U x = a < 0 ? -(U)a : (U)a, y = b < 0 ? -(U)b : (U)b;                                              \
    while (y != 0) {                                                                                   \
      U r = x % y;                                                                                     \
      x = y;                                                                                           \
      y = r;                                                                                           \
    }                                                                                                  \
    return (T)x;                                                                                       \
  }                                                                                                    \
  EM_KM T em_lcm_##t(T a, T b) {                                                                       \
    T g = em_gcd_##t(a, b), m = g == 0 ? 0 : em_truncdiv_##t(a, g, &(uint32_t){0}) * b;                \
    return m < 0 ? -m : m;                                                                             \
  }                                                                                                    \
  /* a shift by less than 0 or by more than there are bits shifts everything out */                    \
  EM_KM T em_shl_##t(T a, T b) {                                                                       \
    const U most = sizeof(T) * 8 - 1;                                                                  \
    return (U)b > most ? 0 : (T)((U)a << ((U)b & most));                                               \
  }                                                                                                    \
  EM_KM T em_shr_##t(T a, T b) {                                                                       \
    const U most = sizeof(T) * 8 - 1;                                                                  \
    return a >> ((U)b > most ? most : (U)b);                                                           \
  }
EM_KM_INT(int64_t, uint64_t, i64)
EM_KM_INT(int32_t, uint32_t, i32)
#undef EM_KM_INT

// --- complex: arithmetic is spelled out on pairs; transcendental functions are the C library's -------------------
#define EM_KM_COMPLEX(C, T, t, r, s, abs_, hypot_)                                               \
  EM_KM C em_cadd_##t(C a, C b) { return (C){a.re + b.re, a.im + b.im}; }                              \
  EM_KM C em_csub_##t(C a, C b) { return (C){a.re - b.re, a.im - b.im}; }                              \
  EM_KM C em_cmul_##t(C a, C b) { return (C){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }  \
  EM_KM C em_cneg_##t(C a) { return (C){-a.re, -a.im}; }                                               \
  EM_KM C em_cconj_##t(C a) { return (C){a.re, -a.im}; }                                               \
  EM_KM T em_creal_##t(C a) { return a.re; }                                                           \
  EM_KM T em_cimag_##t(C a) { return a.im; }                                                           \
  EM_KM int em_ceq_##t(C a, C b) { return (a.re == b.re) & (a.im == b.im); }                           \
  EM_KM int em_cne_##t(C a, C b) { return (a.re != b.re) | (a.im != b.im); }                           \
  EM_KM int em_cnonzero_##t(C a) { return (a.re != 0) | (a.im != 0); }                                 \
  EM_KM int em_cisnan_##t(C a) { return (a.re != a.re) | (a.im != a.im); }                             \
  EM_KM int em_cisinf_##t(C a) { return em_isinf_##r(a.re) | em_isinf_##r(a.im); }                     \
  EM_KM int em_cisfinite_##t(C a) { return em_isfinite_##r(a.re) & em_isfinite_##r(a.im); }            \
  EM_KM T em_cabs_##t(C a) { return hypot_(a.re, a.im); }                                              \
  /* Smith's division: scaled by the larger part, so that it neither overflows nor loses the smaller */ \
  EM_KM C em_cdiv_##t(C a, C b) {                                                                      \
    T br = abs_(b.re), bi = abs_(b.im);                                                                \
    if (br == 0 && bi == 0) return (C){a.re / br, a.im / bi};                                          \
    if (br >= bi) {                                                                                    \
      T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);                                        \
      return (C){(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};                        \
    }                                                                                                  \
    T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);                                          \
    return (C){(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};                          \
  }                                                                                                    \
  EM_KM T _Complex em_cjoin_##t(C a) { return __builtin_complex(a.re, a.im); }                          \
  EM_KM C em_csplit_##t(T _Complex z) { return (C){creal##s(z), cimag##s(z)}; }                        \
  EM_KM C em_cexp_##t(C a) { return em_csplit_##t(cexp##s(em_cjoin_##t(a))); }                         \
  EM_KM C em_clog_##t(C a) { return em_csplit_##t(clog##s(em_cjoin_##t(a))); }                         \
  EM_KM C em_csqrt_##t(C a) { return em_csplit_##t(csqrt##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_csin_##t(C a) { return em_csplit_##t(csin##s(em_cjoin_##t(a))); }                         \
  EM_KM C em_ccos_##t(C a) { return em_csplit_##t(ccos##s(em_cjoin_##t(a))); }                         \
  EM_KM C em_ctanh_##t(C a) { return em_csplit_##t(ctanh##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_ctan_##t(C a) { return em_csplit_##t(ctan##s(em_cjoin_##t(a))); }                         \
  EM_KM C em_csinh_##t(C a) { return em_csplit_##t(csinh##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_ccosh_##t(C a) { return em_csplit_##t(ccosh##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_casin_##t(C a) { return em_csplit_##t(casin##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_cacos_##t(C a) { return em_csplit_##t(cacos##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_catan_##t(C a) { return em_csplit_##t(catan##s(em_cjoin_##t(a))); }                       \
  EM_KM C em_casinh_##t(C a) { return em_csplit_##t(casinh##s(em_cjoin_##t(a))); }                     \
  EM_KM C em_cacosh_##t(C a) { return em_csplit_##t(cacosh##s(em_cjoin_##t(a))); }                     \
  EM_KM C em_catanh_##t(C a) { return em_csplit_##t(catanh##s(em_cjoin_##t(a))); }                     \
  EM_KM C em_cpow_##t(C a, C b) {                                                                      \
    if (b.re == 0 && b.im == 0) return (C){1, 0};                                                      \
    return em_csplit_##t(cpow##s(em_cjoin_##t(a), em_cjoin_##t(b)));                                   \
  }                                                                                                    \
  EM_KM C em_cscale_##t(C a, T k) { return (C){a.re * k, a.im * k}; }                                  \
  EM_KM C em_cexp2_##t(C a) { return em_cexp_##t(em_cscale_##t(a, (T)0.693147180559945309417)); }      \
  EM_KM C em_clog2_##t(C a) { return em_cscale_##t(em_clog_##t(a), (T)1.44269504088896340736); }       \
  EM_KM C em_clog10_##t(C a) { return em_cscale_##t(em_clog_##t(a), (T)0.434294481903251827651); }     \
  /* expm1(x + iy) without cancellation near 0: cos(y) - 1 is -2 sin(y/2)^2 */                         \
  EM_KM C em_cexpm1_##t(C a) {                                                                         \
    T half = sin##s(a.im / 2), e = exp##s(a.re);                                                       \
    return (C){expm1##s(a.re) * cos##s(a.im) - 2 * half * half, e * sin##s(a.im)};                     \
  }                                                                                                    \
  /* log1p(z): the argument of 1 + z, and half log1p of |1 + z|^2 - 1 */                               \
  EM_KM C em_clog1p_##t(C a) {                                                                         \
    T theta = atan2##s(a.im, a.re + 1), sum = a.re * (a.re + 2) + a.im * a.im;                         \
    if (abs_(a.re) > 1 || abs_(a.im) > 1) return (C){log##s(hypot_(a.re + 1, a.im)), theta};           \
    return (C){log1p##s(sum) / 2, theta};                                                              \
  }                                                                                                    \
  /* log(e^a + e^b), shifted by the one with the larger real part */                                   \
  EM_KM C em_clogaddexp_##t(C a, C b) {                                                                \
    C large = a.re >= b.re ? a : b, small = a.re >= b.re ? b : a;                                      \
    if (abs_(large.re) == (T)INFINITY && large.re == small.re)                                         \
      return large.re < 0 ? large : em_clog_##t(em_cadd_##t(em_cexp_##t(large), em_cexp_##t(small)));  \
    return em_cadd_##t(large, em_clog1p_##t(em_cexp_##t(em_csub_##t(small, large))));                  \
  }
EM_KM_COMPLEX(em_c64, float, c64, f32, f, fabsf, hypotf)
EM_KM_COMPLEX(em_c128, double, c128, f64, , fabs, hypot)
#undef EM_KM_COMPLEX
#endif
