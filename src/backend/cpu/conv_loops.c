// conv_loops.c: inner loops of convolutions for one instruction set: sums of ROWS x VECS vectors are held in registers.
#include "conv_loops.h"
#include <string.h>
#include "../../core/iterator.h"
#include "isa.h"

#if defined(EM_ISA_AVX512)
#include <immintrin.h>
enum { VEC_BYTES = 64, ROWS = 6, VECS = 4, GROWS = 6, GCOLS = 4 };
#define FMA_F32(a, b, c) ((vec_f32)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(EM_ISA_AVX2)
#include <immintrin.h>
enum { VEC_BYTES = 32, ROWS = 6, VECS = 2, GROWS = 3, GCOLS = 2 };
#define FMA_F32(a, b, c) ((vec_f32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
enum { VEC_BYTES = 16, ROWS = 4, VECS = 2, GROWS = 2, GCOLS = 1 };
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64(a, b, c) ((a) * (b) + (c))
#endif
#define FMA_I64(a, b, c) ((a) * (b) + (c))

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define N(name) JOIN(name, SUFFIX)

#define SUFFIX f32
#define T float
#define COMPUTE EM_F32
#define FMA FMA_F32
#include "conv_bodies.inc.h"
#undef SUFFIX
#undef T
#undef COMPUTE
#undef FMA

#define SUFFIX f64
#define T double
#define COMPUTE EM_F64
#define FMA FMA_F64
#include "conv_bodies.inc.h"
#undef SUFFIX
#undef T
#undef COMPUTE
#undef FMA

#define SUFFIX i64
#define T int64_t
#define COMPUTE EM_I64
#define FMA FMA_I64
#include "conv_bodies.inc.h"

#define TABLE(s, T, dtype) {dtype, ROWS, VECS * VEC_BYTES / (int)sizeof(T), sizeof(T), product_##s, gradient_##s, load_##s, store_##s}
extern const em_conv_loops EM_ISA_NAME(em_priv_conv_loops)[3];
const em_conv_loops EM_ISA_NAME(em_priv_conv_loops)[3] = {TABLE(f32, float, EM_F32), TABLE(f64, double, EM_F64),
                                                          TABLE(i64, int64_t, EM_I64)};
