// scan.c: cumulative sums, products, extremes and log-sums along a dim. The output is contiguous: the input is copied into it (and
// cast on the way) and scanned where it lies, a line at a time when the dim is the last one, else a band of neighbouring lines together.
// Sums of f32 and of 16-bit floats are carried in double and rounded once an element.
#include <math.h>
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "kernel_math.h"

#define BAND 64       // lines scanned side by side
#define GRAIN 16384   // elements that a thread should get at least

typedef struct job job;
typedef void (*scan_fn)(const job *j, char *data, int64_t w);
struct job {
  scan_fn fn;
  char *data, *index;
  int64_t n, inner, bands;
  size_t size;
};

static em_status bands(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t i = begin; i < end; i++) {
    const int64_t outer = i / j->bands, first = i % j->bands * BAND;
    const int64_t w = j->inner - first < BAND ? j->inner - first : BAND;
    const int64_t at = outer * j->n * j->inner + first;
    job mine = *j;
    if (j->index != NULL) mine.index = j->index + at * (int64_t)sizeof(int64_t);
    j->fn(&mine, j->data + (size_t)at * j->size, w);
  }
  return EM_OK;
}
static em_status scan(scan_fn fn, em_tensor *self, int64_t dim, em_tensor *out, em_tensor *index) {
  EM_PASS(em_copy_into(out, self));
  if (out->numel == 0) return EM_OK;
  job j = {.fn = fn, .data = em_tensor_data(out), .index = index == NULL ? NULL : em_tensor_data(index), .n = 1, .inner = 1};
  j.size = em_tensor_itemsize(out);
  if (out->ndim > 0) j.n = out->sizes[dim];
  for (int d = (int)dim + 1; d < out->ndim; d++) j.inner *= out->sizes[d];
  j.bands = (j.inner + BAND - 1) / BAND;
  const int64_t units = out->numel / (j.n * j.inner) * j.bands, each = j.n * (j.inner < BAND ? j.inner : BAND);
  if (j.inner == 1)
    EM_NOTE("lines: %lld of %lld elements, one after another, in place of the copied input (bands refused: the dim is the last one)",
            (long long)units, (long long)j.n);
  else
    EM_NOTE("bands: up to %d neighbouring lines of %lld elements together, in place of the copied input (lines refused: their elements lie "
            "%lld apart)", BAND, (long long)j.n, (long long)j.inner);
  void *token = em_priv_begin_long(out->numel >= EM_LONG_NUMEL);
  em_status st = em_threads_for(units, GRAIN / each + 1, bands, &j);
  em_priv_end_long(token);
  return st;
}

// ---- sums, products, log-sums: T is stored, A carried -----------------------------------------------------------------

#define AS_IS(x) (x)
#define SCAN(name, T, A, LOAD, STORE, FIRST, STEP)                          \
  static void name(const job *j, char *data, int64_t w) {                  \
    T *p = (T *)data;                                                      \
    A carried[BAND];                                                       \
    for (int64_t k = 0; k < w; k++) carried[k] = FIRST;                    \
    if (w == 1) { /* alone: the carried value stays in a register */       \
      A a = FIRST;                                                         \
      for (int64_t i = 0; i < j->n; i++, p += j->inner) {                  \
        const A x = LOAD(*p);                                              \
        a = STEP;                                                          \
        *p = STORE(a);                                                     \
      }                                                                    \
      return;                                                              \
    }                                                                      \
    for (int64_t i = 0; i < j->n; i++, p += j->inner)                      \
      for (int64_t k = 0; k < w; k++) {                                    \
        const A x = LOAD(p[k]), a = carried[k];                            \
        carried[k] = STEP;                                                 \
        p[k] = STORE(carried[k]);                                          \
      }                                                                    \
  }
#define TO_F32(x) ((float)(x))
#define FROM_F16(x) ((double)em_f16_to_f32(x))
#define TO_F16(x) em_f32_to_f16((float)(x))
#define FROM_BF16(x) ((double)em_bf16_to_f32(x))
#define TO_BF16(x) em_f32_to_bf16((float)(x))
#define WHOLE(T) (T)
#define FLOATS(name, FIRST, STEP)                                           \
  SCAN(name##_f64, double, double, AS_IS, AS_IS, FIRST, STEP)              \
  SCAN(name##_f32, float, double, AS_IS, TO_F32, FIRST, STEP)              \
  SCAN(name##_f16, uint16_t, double, FROM_F16, TO_F16, FIRST, STEP)        \
  SCAN(name##_bf16, uint16_t, double, FROM_BF16, TO_BF16, FIRST, STEP)
#define WIDE(z) ((em_c128){(double)(z).re, (double)(z).im})
#define NARROW(z) ((em_c64){(float)(z).re, (float)(z).im})
#define COMPLEXES(name, RE, STEP)                                           \
  SCAN(name##_c128, em_c128, em_c128, AS_IS, AS_IS, ((em_c128){RE, 0}), STEP) \
  SCAN(name##_c64, em_c64, em_c128, WIDE, NARROW, ((em_c128){RE, 0}), STEP)
#define WHOLES(name, FIRST, STEP)                                           \
  SCAN(name##_i64, int64_t, int64_t, AS_IS, AS_IS, FIRST, STEP)            \
  SCAN(name##_i32, int32_t, int64_t, AS_IS, WHOLE(int32_t), FIRST, STEP)   \
  SCAN(name##_i16, int16_t, int64_t, AS_IS, WHOLE(int16_t), FIRST, STEP)   \
  SCAN(name##_i8, int8_t, int64_t, AS_IS, WHOLE(int8_t), FIRST, STEP)      \
  SCAN(name##_u8, uint8_t, int64_t, AS_IS, WHOLE(uint8_t), FIRST, STEP)

FLOATS(sum, 0, a + x)
WHOLES(sum, 0, a + x)
COMPLEXES(sum, 0, em_cadd_c128(a, x))
FLOATS(prod, 1, a * x)
WHOLES(prod, 1, a * x)
COMPLEXES(prod, 1, em_cmul_c128(a, x))
FLOATS(lse, -INFINITY, vm_logaddexp_f64(a, x))
COMPLEXES(lse, -INFINITY, em_clogaddexp_c128(a, x))

static const scan_fn sums[EM_NUM_DTYPES] = {[EM_F64] = sum_f64, [EM_F32] = sum_f32, [EM_F16] = sum_f16, [EM_BF16] = sum_bf16,
                                            [EM_I64] = sum_i64, [EM_I32] = sum_i32, [EM_I16] = sum_i16, [EM_I8] = sum_i8,
                                            [EM_U8] = sum_u8, [EM_C64] = sum_c64, [EM_C128] = sum_c128};
static const scan_fn prods[EM_NUM_DTYPES] = {[EM_F64] = prod_f64, [EM_F32] = prod_f32, [EM_F16] = prod_f16, [EM_BF16] = prod_bf16,
                                             [EM_I64] = prod_i64, [EM_I32] = prod_i32, [EM_I16] = prod_i16, [EM_I8] = prod_i8,
                                             [EM_U8] = prod_u8, [EM_C64] = prod_c64, [EM_C128] = prod_c128};
static const scan_fn lses[EM_NUM_DTYPES] = {[EM_F64] = lse_f64, [EM_F32] = lse_f32, [EM_F16] = lse_f16,
                                            [EM_BF16] = lse_bf16, [EM_C64] = lse_c64, [EM_C128] = lse_c128};

em_status k_cpu_cumsum(em_plan *p, em_tensor *self, int64_t dim, int dtype, em_tensor *out) {
  (void)dim, (void)dtype;
  return scan(sums[out->dtype], self, p->attr[0], out, NULL);
}
em_status k_cpu_cumprod(em_plan *p, em_tensor *self, int64_t dim, int dtype, em_tensor *out) {
  (void)dim, (void)dtype;
  return scan(prods[out->dtype], self, p->attr[0], out, NULL);
}
em_status k_cpu_logcumsumexp(em_plan *p, em_tensor *self, int64_t dim, em_tensor *out) {
  (void)dim;
  return scan(lses[out->dtype], self, p->attr[0], out, NULL);
}

// ---- extremes: of equal values the later counts; the first nan stays, and later nans move its index -------------------------

#define EXTREME(name, T, A, LOAD, BEATS)                                    \
  static void name(const job *j, char *data, int64_t w) {                  \
    T *p = (T *)data;                                                      \
    int64_t *index = (int64_t *)j->index;                                  \
    for (int64_t k = 0; k < w; k++) index[k] = 0;                          \
    for (int64_t i = 1; i < j->n; i++, p += j->inner, index += j->inner)   \
      for (int64_t k = 0; k < w; k++) {                                    \
        const A a = LOAD(p[k]), x = LOAD(p[k + j->inner]);                 \
        const int newer = (x != x) | ((a == a) & (x BEATS a));             \
        p[k + j->inner] = newer ? p[k + j->inner] : p[k];                  \
        index[k + j->inner] = newer ? i : index[k];                        \
      }                                                                    \
  }
#define EXTREMES(name, BEATS)                                               \
  EXTREME(name##_f64, double, double, AS_IS, BEATS)                        \
  EXTREME(name##_f32, float, float, AS_IS, BEATS)                          \
  EXTREME(name##_f16, uint16_t, float, em_f16_to_f32, BEATS)               \
  EXTREME(name##_bf16, uint16_t, float, em_bf16_to_f32, BEATS)             \
  EXTREME(name##_i64, int64_t, int64_t, AS_IS, BEATS)                      \
  EXTREME(name##_i32, int32_t, int32_t, AS_IS, BEATS)                      \
  EXTREME(name##_i16, int16_t, int16_t, AS_IS, BEATS)                      \
  EXTREME(name##_i8, int8_t, int8_t, AS_IS, BEATS)                         \
  EXTREME(name##_u8, uint8_t, uint8_t, AS_IS, BEATS)
EXTREMES(largest, >=)
EXTREMES(least, <=)
static const scan_fn largests[EM_NUM_DTYPES] = {
    [EM_F64] = largest_f64, [EM_F32] = largest_f32, [EM_F16] = largest_f16, [EM_BF16] = largest_bf16, [EM_I64] = largest_i64,
    [EM_I32] = largest_i32, [EM_I16] = largest_i16, [EM_I8] = largest_i8,   [EM_U8] = largest_u8,     [EM_BOOL] = largest_u8};
static const scan_fn leasts[EM_NUM_DTYPES] = {
    [EM_F64] = least_f64, [EM_F32] = least_f32, [EM_F16] = least_f16, [EM_BF16] = least_bf16, [EM_I64] = least_i64,
    [EM_I32] = least_i32, [EM_I16] = least_i16, [EM_I8] = least_i8,   [EM_U8] = least_u8,     [EM_BOOL] = least_u8};

em_status k_cpu_cummax(em_plan *p, em_tensor *self, int64_t dim, em_tensor *values, em_tensor *indices) {
  (void)dim;
  return scan(largests[values->dtype], self, p->attr[0], values, indices);
}
em_status k_cpu_cummin(em_plan *p, em_tensor *self, int64_t dim, em_tensor *values, em_tensor *indices) {
  (void)dim;
  return scan(leasts[values->dtype], self, p->attr[0], values, indices);
}
