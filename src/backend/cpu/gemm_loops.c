// gemm_loops.c: matrix products in plain C for one instruction set: small products, every dtype and layout that a library does not take,
// and all of them when there is no library. The inner loop holds MR x 2 vectors of sums in registers; B is packed into panels as wide.
#include <string.h>
#include "../../core/half.h"
#include "../../core/iterator.h"
#include "gemm.h"
#include "isa.h"

#if defined(EM_ISA_AVX512)
#include <immintrin.h>
enum { VEC_BYTES = 64 };
#define MR 8
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define FMA_F32(a, b, c) ((vec_f32)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(EM_ISA_AVX2)
#include <immintrin.h>
enum { VEC_BYTES = 32 };
#define MR 6
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define FMA_F32(a, b, c) ((vec_f32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_F64(a, b, c) ((vec_f64)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#else
enum { VEC_BYTES = 16 };
#define MR 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

#define KC 128           // depth of a packed block
#define SMALL 32         // sides of a product that fits small buffers
#define COLUMN_RUN 1024  // elements of a row at a time
#define COLUMN_ROWS 256  // sums held while A is read column by column

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define N(name) JOIN(name, SUFFIX)

#define SUFFIX f32
#define T float
#define COMPUTE EM_F32
#define PAIR EM_C64
#define FMA FMA_F32
#define SCALAR(g, which) (g)->which.re
#include "gemm_bodies.inc.h"
#include "gemm_column.inc.h"
#include "gemm_packed.inc.h"
#undef SUFFIX
#undef T
#undef COMPUTE
#undef PAIR
#undef FMA

#define SUFFIX f64
#define T double
#define COMPUTE EM_F64
#define PAIR EM_C128
#define FMA FMA_F64
#include "gemm_bodies.inc.h"
#include "gemm_column.inc.h"
#include "gemm_packed.inc.h"
#undef SUFFIX
#undef T
#undef COMPUTE
#undef PAIR
#undef FMA
#undef SCALAR

#define FMA(a, b, c) ((a) * (b) + (c))
#define PAIR EM_DTYPE_NONE
#define SCALAR(g, which) (g)->i##which
#define SUFFIX i32
#define T int32_t
#define COMPUTE EM_I32
#include "gemm_bodies.inc.h"
#undef SUFFIX
#undef T
#undef COMPUTE
#define SUFFIX i64
#define T int64_t
#define COMPUTE EM_I64
#include "gemm_bodies.inc.h"

static void block(const em_gemm *g) {
  switch (g->dtype) {
    case EM_F16: case EM_BF16: case EM_F32: case EM_C64: block_f32(g); break;
    case EM_F64: case EM_C128: block_f64(g); break;
    case EM_I64: block_i64(g); break;
    default: block_i32(g); break;
  }
}
static void column(const em_gemm *g) {
  if (g->dtype == EM_F64) column_f64(g);
  else column_f32(g);
}
static void finish(const em_gemm *g, const float *acc) {
  em_gemm part = *g;
  for (int64_t j = 0; j < g->n; j += EM_GEMM_COLS) {  // put_row's buffers hold that many columns
    part.n = g->n - j < EM_GEMM_COLS ? g->n - j : EM_GEMM_COLS;
    part.c.data = g->c.data + j * g->c.col * (int64_t)em_dtype_size(g->dtype);
    if (g->s.data != NULL) part.s.data = g->s.data + j * g->s.col * (int64_t)em_dtype_size(g->dtype);
    for (int64_t i = 0; i < g->m; i++) put_row_f32(&part, i, acc + i * g->n + j, NULL);
  }
}

static int64_t dot_int(int dtype, int64_t n, const char *a, int64_t as, const char *b, int64_t bs) {
  const int64_t item = (int64_t)em_dtype_size(dtype);
  int64_t la[COLUMN_RUN], lb[COLUMN_RUN], sum = 0;
  for (int64_t i = 0; i < n; i += COLUMN_RUN) {
    const int64_t w = n - i < COLUMN_RUN ? n - i : COLUMN_RUN;
    em_cast_load(la, EM_I64, a + i * as * item, dtype, as * item, w);
    em_cast_load(lb, EM_I64, b + i * bs * item, dtype, bs * item, w);
    for (int64_t p = 0; p < w; p++) sum += la[p] * lb[p];
  }
  return sum;
}
static void dot(int dtype, bool conj, int64_t n, const char *a, int64_t as, const char *b, int64_t bs, void *out) {
  switch (dtype) {
    case EM_F16: case EM_BF16: case EM_F32: *(float *)out = dot_f32(dtype, n, a, as, b, bs); break;
    case EM_F64: *(double *)out = dot_f64(dtype, n, a, as, b, bs); break;
    case EM_C64: dot_pair_f32(conj, n, (const float *)a, as, (const float *)b, bs, out); break;
    case EM_C128: dot_pair_f64(conj, n, (const double *)a, as, (const double *)b, bs, out); break;
    default: *(int64_t *)out = dot_int(dtype, n, a, as, b, bs); break;
  }
}

static void pack(int dtype, int64_t n, int64_t k, const void *b, int64_t row, int64_t col, void *to) {
  if (dtype == EM_F64) pack_f64(n, k, b, row, col, to);
  else pack_f32(n, k, b, row, col, to);
}
static void packed(int dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row, int64_t a_col, const void *panels, void *c,
                   int64_t ld, bool add) {
  if (dtype == EM_F64) packed_f64(m, n, k, a, a_row, a_col, panels, c, ld, add);
  else packed_f32(m, n, k, a, a_row, a_col, panels, c, ld, add);
}

extern const em_gemm_loops EM_ISA_NAME(em_priv_gemm_loops)[1];
const em_gemm_loops EM_ISA_NAME(em_priv_gemm_loops)[1] = {{block, column, finish, dot, pack, packed}};
