// rng_builds.h: the loops of rng.c and rng_fill.c, each compiled plainly and for AVX2 + FMA, chosen at run time. Both
// give the same bits: without FMA, fma() is a call into libm, which is exact. EMBER_ISA=baseline forces the plain one.
//
//     EM_BODY(name) (params) { ... }             the loop, once
//     EM_TWO_BUILDS(name, (params), (args))      defines static void name(params)
#ifndef EMBER_CORE_RNG_BUILDS_H
#define EMBER_CORE_RNG_BUILDS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EM_BODY(name) static inline __attribute__((always_inline)) void name##_body

#if defined(__x86_64__)
static inline bool em_priv_rng_have_fma(void) {
  static _Atomic int known;  // 0 not asked yet, 1 no, 2 yes; two threads that ask at once find the same
  int k = atomic_load_explicit(&known, memory_order_relaxed);
  if (__builtin_expect(k == 0, 0)) {
    const char *isa = getenv("EMBER_ISA");
    bool forced_off = isa != NULL && strcmp(isa, "baseline") == 0;
    __builtin_cpu_init();
    k = !forced_off && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 2 : 1;
    atomic_store_explicit(&known, k, memory_order_relaxed);
  }
  return k == 2;
}
#define EM_TWO_BUILDS(name, params, args)                                                            \
  static __attribute__((noinline)) void name##_plain params { name##_body args; }                   \
  static __attribute__((noinline, target("avx2,fma"))) void name##_fma params { name##_body args; } \
  static inline void name params {                                                                   \
    if (em_priv_rng_have_fma()) name##_fma args;                                                     \
    else name##_plain args;                                                                          \
  }
#else
#define EM_TWO_BUILDS(name, params, args) \
  static void name params { name##_body args; }
#endif
#endif
