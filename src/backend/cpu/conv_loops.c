// conv_loops.c: inner loops of convolutions for one instruction set. Sums of ROWS x VECS vectors are held in registers, or, of few
// rows, of FEW_ROWS x FEW_VECS.
#include "conv_loops.h"
#include <string.h>
#include "../../core/iterator.h"
#include "isa.h"

#if defined(EM_ISA_AVX512)
#include <immintrin.h>
enum { VEC_BYTES = 64, ROWS = 6, VECS = 4, FEW_ROWS = 3, FEW_VECS = 8, GROWS = 6, GCOLS = 4 };
#define FMA_F32(a, b, c) ((vec_f32)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(EM_ISA_AVX2)
#include <immintrin.h>
enum { VEC_BYTES = 32, ROWS = 6, VECS = 2, FEW_ROWS = 3, FEW_VECS = 4, GROWS = 3, GCOLS = 2 };
#define FMA_F32(a, b, c) ((vec_f32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
enum { VEC_BYTES = 16, ROWS = 4, VECS = 2, FEW_ROWS = 2, FEW_VECS = 4, GROWS = 2, GCOLS = 1 };
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64(a, b, c) ((a) * (b) + (c))
#endif
#define FMA_I64(a, b, c) ((a) * (b) + (c))

// The sum of 64 bytes of lanes, always in the same order: in each quarter the second half is added to the first, and so on; then the
// quarters, 0 + 2 to 1 + 3.
static inline float sum_f32(const float *s) {
  float q[4];
  for (int i = 0; i < 4; i++) q[i] = (s[4 * i] + s[4 * i + 2]) + (s[4 * i + 1] + s[4 * i + 3]);
  return (q[0] + q[2]) + (q[1] + q[3]);
}
static inline double sum_f64(const double *s) {
  double q[4];
  for (int i = 0; i < 4; i++) q[i] = s[2 * i] + s[2 * i + 1];
  return (q[0] + q[2]) + (q[1] + q[3]);
}
#if defined(EM_ISA_AVX512)
// Four such sums, to four places. s is an array of vectors, `fresh` as in em_conv_product.
static inline void four_sums_f32(const void *s, bool fresh, float *to) {
  const __m512 *v = s;
  const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
  const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
  const __m512 c = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  const __m256 d = _mm256_add_ps(_mm512_castps512_ps256(c), _mm512_extractf32x8_ps(c, 1));
  const __m128 e = _mm_add_ps(_mm256_castps256_ps128(d), _mm256_extractf128_ps(d, 1));
  _mm_storeu_ps(to, fresh ? e : _mm_add_ps(_mm_loadu_ps(to), e));
}
static inline void four_sums_f64(const void *s, bool fresh, double *to) {
  const __m512d *v = s;
  for (int i = 0; i < 4; i += 2) {
    const __m512d a = _mm512_add_pd(_mm512_unpacklo_pd(v[i], v[i + 1]), _mm512_unpackhi_pd(v[i], v[i + 1]));
    const __m256d d = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    const __m128d e = _mm_add_pd(_mm256_castpd256_pd128(d), _mm256_extractf128_pd(d, 1));
    _mm_storeu_pd(to + i, fresh ? e : _mm_add_pd(_mm_loadu_pd(to + i), e));
  }
}
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define N(name) JOIN(name, SUFFIX)

#define WEIGHT_BYTES 196608  // of weights, and of gradient's rows: stay in the second cache
#define ROW_BYTES 262144

#define TARGET
#define SPREAD(a) ((a) - (N(vec)){0})

#define SUFFIX f32
#define T float
#define A float
#define D float
#define S float
#define COMPUTE EM_F32
#define STORED EM_F32
#define FMA FMA_F32
#define SUM sum_f32
#define FOUR_SUMS four_sums_f32
#include "conv_bodies.inc.h"
#include "conv_load.inc.h"
#include "conv_store.inc.h"
#undef SUFFIX
#undef T
#undef A
#undef D
#undef S
#undef COMPUTE
#undef STORED
#undef FMA
#undef SUM
#undef FOUR_SUMS

#define SUFFIX f64
#define T double
#define A double
#define D double
#define S double
#define COMPUTE EM_F64
#define STORED EM_F64
#define FMA FMA_F64
#define SUM sum_f64
#define FOUR_SUMS four_sums_f64
#include "conv_bodies.inc.h"
#include "conv_load.inc.h"
#include "conv_store.inc.h"
#undef SUFFIX
#undef T
#undef A
#undef D
#undef S
#undef COMPUTE
#undef STORED
#undef FMA
#undef SUM
#undef FOUR_SUMS

#define SUFFIX i64
#define T int64_t
#define A int64_t
#define S int64_t
#define COMPUTE EM_I64
#define STORED EM_I64
#define FMA FMA_I64
#include "conv_bodies.inc.h"
#include "conv_load.inc.h"
#include "conv_store.inc.h"
#undef SUFFIX
#undef T
#undef A
#undef S
#undef COMPUTE
#undef STORED
#undef FMA
#undef TARGET
#undef SPREAD

#if defined(EM_ISA_AVX512)
// bfloat16 by its own instruction: two channels, or two positions, at a time, summed in float. The processor may lack it.
#define TARGET __attribute__((target("avx512bf16")))
#define SUFFIX bf16
#define T float
#define A uint32_t
#define D uint16_t
#define S uint16_t
#define COMPUTE EM_F32
#define STORED EM_BF16
#define SPREAD(a) ((N(vec))_mm512_set1_epi32((int)(a)))
#define FMA(a, b, c) ((N(vec))_mm512_dpbf16_ps((__m512)(c), (__m512bh)(a), (__m512bh)(b)))
#define SUM sum_f32
#define FOUR_SUMS four_sums_f32
#include "conv_bodies.inc.h"
#include "conv_load.inc.h"

#undef SUFFIX
#undef S
#define SUFFIX pair
#define S uint32_t
#define PAIRED
#include "conv_load.inc.h"

static void gather_bf16(const void *from, const void *second, const int64_t *at, int64_t n, void *to) {
  const uint16_t *a = from, *b = second;
  for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = a[at[i]] | (b == NULL ? 0 : (uint32_t)b[at[i]] << 16);
}
#endif

#define TABLE(s, T, dtype, gradient)                                                                                                  \
  {dtype, dtype, 1, VEC_BYTES / (int)sizeof(T), 64 / (int)sizeof(T), sizeof(T), sizeof(T),         \
   product_##s, gradient, load_##s, NULL, store_##s, gather_##s}
extern const em_conv_loops EM_ISA_NAME(em_priv_conv_loops)[4];
const em_conv_loops EM_ISA_NAME(em_priv_conv_loops)[4] = {
  TABLE(f32, float, EM_F32, gradient_f32), TABLE(f64, double, EM_F64, gradient_f64), TABLE(i64, int64_t, EM_I64, NULL),
#if defined(EM_ISA_AVX512)
  {EM_F32, EM_BF16, 2, 16, 32, 4, 4, product_bf16, gradient_bf16, load_bf16, load_pair, store_f32, gather_bf16},
#endif
};
