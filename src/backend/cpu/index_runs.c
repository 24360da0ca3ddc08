// index_runs.c: see index_runs.h; built once an instruction set. Runs that move look at the size of an element, those that
// compute are typed.
#include "index_runs.h"
#include <math.h>
#include <string.h>
#include "../../core/half.h"

typedef struct em_c128_bytes { uint64_t a, b; } __attribute__((may_alias)) b16;
typedef uint8_t b1;
typedef uint16_t __attribute__((may_alias)) b2;
typedef uint32_t __attribute__((may_alias)) b4;
typedef uint64_t __attribute__((may_alias)) b8;

// ---- runs that move
#define MOVES(T)                                                                                                  \
  static void get_##T(char *x, int64_t xs, char *o, int64_t os, const int64_t *at, int64_t step, int64_t n) {     \
    const int64_t item = (int64_t)sizeof(T);                                                                      \
    if (at == NULL && xs == item && os == item) memcpy(o, x, (size_t)(n * item));                                 \
    else if (at == NULL) for (int64_t k = 0; k < n; k++) *(T *)(o + k * os) = *(T *)(x + k * xs);                 \
    else if (xs == 0 && os == item && step == item) for (int64_t k = 0; k < n; k++) ((T *)o)[k] = ((T *)x)[at[k]]; \
    else for (int64_t k = 0; k < n; k++) *(T *)(o + k * os) = *(T *)(x + k * xs + at[k] * step);                  \
  }                                                                                                               \
  static void put_##T(char *x, int64_t xs, char *o, int64_t os, const int64_t *at, int64_t step, int64_t n) {     \
    const int64_t item = (int64_t)sizeof(T);                                                                      \
    if (at == NULL) get_##T(o, os, x, xs, NULL, 0, n);                                                            \
    else if (xs == 0 && os == item && step == item) for (int64_t k = 0; k < n; k++) ((T *)x)[at[k]] = ((T *)o)[k]; \
    else for (int64_t k = 0; k < n; k++) *(T *)(x + k * xs + at[k] * step) = *(T *)(o + k * os);                  \
  }
MOVES(b1)
MOVES(b2)
MOVES(b4)
MOVES(b8)
MOVES(b16)
// ---- runs that compute: x = x op o. LOAD and STORE go between the stored type T and the computing one C. A run whose
// position stays the same has at == NULL and x already there.
#define RUN(NAME, T, C, LOAD, STORE, OP)                                                                               \
  static void NAME(char *x, int64_t xs, char *o, int64_t os, const int64_t *at, int64_t step, int64_t n) {             \
    if (at == NULL && xs == (int64_t)sizeof(T) && os == (int64_t)sizeof(T)) {                                          \
      for (int64_t k = 0; k < n; k++) {                                                                                \
        C a = LOAD(((T *)x)[k]), b = LOAD(((const T *)o)[k]);                                                          \
        ((T *)x)[k] = STORE(OP(a, b));                                                                                 \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    if (at != NULL && xs == 0 && os == (int64_t)sizeof(T) && step == (int64_t)sizeof(T)) {                             \
      for (int64_t k = 0; k < n; k++) {                                                                                \
        C a = LOAD(((T *)x)[at[k]]), b = LOAD(((const T *)o)[k]);                                                      \
        ((T *)x)[at[k]] = STORE(OP(a, b));                                                                             \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    for (int64_t k = 0; k < n; k++) {                                                                                  \
      T *p = (T *)(x + k * xs + (at == NULL ? 0 : at[k] * step));                                                      \
      C a = LOAD(*p), b = LOAD(*(const T *)(o + k * os));                                                              \
      *p = STORE(OP(a, b));                                                                                            \
    }                                                                                                                  \
  }
#define ID(v) (v)
#define TRUTH(v) ((v) != 0)
#define SUM(a, b) (a + b)
#define PRODUCT(a, b) (a * b)
#define MAX_OF(a, b) (isnan(b) ? b : a < b ? b : a)
#define MIN_OF(a, b) (isnan(b) ? b : b < a ? b : a)
#define IMAX_OF(a, b) (a < b ? b : a)
#define IMIN_OF(a, b) (b < a ? b : a)
#define OR(a, b) (a | b)
#define AND(a, b) (a & b)
#define REALS(N, T, C, LOAD, STORE)                \
  RUN(add_##N, T, C, LOAD, STORE, SUM)             \
  RUN(mul_##N, T, C, LOAD, STORE, PRODUCT)         \
  RUN(max_##N, T, C, LOAD, STORE, MAX_OF)          \
  RUN(min_##N, T, C, LOAD, STORE, MIN_OF)
#define INTEGERS(N, T, C)                          \
  RUN(add_##N, T, C, ID, (T), SUM)                 \
  RUN(mul_##N, T, C, ID, (T), PRODUCT)             \
  RUN(max_##N, T, C, ID, (T), IMAX_OF)             \
  RUN(min_##N, T, C, ID, (T), IMIN_OF)
REALS(f32, float, float, ID, ID)
REALS(f64, double, double, ID, ID)
REALS(f16, uint16_t, float, em_f16_to_f32, em_f32_to_f16)
REALS(bf16, uint16_t, float, em_bf16_to_f32, em_f32_to_bf16)
INTEGERS(i64, int64_t, int64_t)
INTEGERS(i32, int32_t, int32_t)
INTEGERS(i16, int16_t, int32_t)
INTEGERS(i8, int8_t, int32_t)
INTEGERS(u8, uint8_t, int32_t)
RUN(or_b8, uint8_t, uint8_t, TRUTH, (uint8_t), OR)
RUN(and_b8, uint8_t, uint8_t, TRUTH, (uint8_t), AND)
static inline em_c64 sum_c64(em_c64 a, em_c64 b) { return (em_c64){a.re + b.re, a.im + b.im}; }
static inline em_c128 sum_c128(em_c128 a, em_c128 b) { return (em_c128){a.re + b.re, a.im + b.im}; }
static inline em_c64 product_c64(em_c64 a, em_c64 b) { return (em_c64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static inline em_c128 product_c128(em_c128 a, em_c128 b) {
  return (em_c128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
RUN(add_c64, em_c64, em_c64, ID, ID, sum_c64)
RUN(add_c128, em_c128, em_c128, ID, ID, sum_c128)
RUN(mul_c64, em_c64, em_c64, ID, ID, product_c64)
RUN(mul_c128, em_c128, em_c128, ID, ID, product_c128)

static bool inside(const int64_t *at, int64_t n, int64_t last) {
  int64_t bad = 0;  // negative once some position is below 0 or above the last
  for (int64_t k = 0; k < n; k++) bad |= at[k] | (last - at[k]);
  return bad >= 0;
}
static void widen(int64_t *to, const char *from, int64_t stride, bool i32, int64_t n) {
  if (i32)
    for (int64_t k = 0; k < n; k++) to[k] = *(const int32_t *)(from + k * stride);
  else
    for (int64_t k = 0; k < n; k++) to[k] = *(const int64_t *)(from + k * stride);
}

const em_index_runs EM_ISA_NAME(em_priv_index_runs) = {
    .move = {{get_b1, get_b2, get_b4, get_b8, get_b16}, {put_b1, put_b2, put_b4, put_b8, put_b16}},
    .compute = {
      {[EM_F32] = add_f32, [EM_F64] = add_f64, [EM_F16] = add_f16, [EM_BF16] = add_bf16, [EM_I64] = add_i64, [EM_I32] = add_i32,
       [EM_I16] = add_i16, [EM_I8] = add_i8, [EM_U8] = add_u8, [EM_BOOL] = or_b8, [EM_C64] = add_c64, [EM_C128] = add_c128},
      {[EM_F32] = mul_f32, [EM_F64] = mul_f64, [EM_F16] = mul_f16, [EM_BF16] = mul_bf16, [EM_I64] = mul_i64, [EM_I32] = mul_i32,
       [EM_I16] = mul_i16, [EM_I8] = mul_i8, [EM_U8] = mul_u8, [EM_BOOL] = and_b8, [EM_C64] = mul_c64, [EM_C128] = mul_c128},
      {[EM_F32] = max_f32, [EM_F64] = max_f64, [EM_F16] = max_f16, [EM_BF16] = max_bf16, [EM_I64] = max_i64, [EM_I32] = max_i32,
       [EM_I16] = max_i16, [EM_I8] = max_i8, [EM_U8] = max_u8, [EM_BOOL] = or_b8},
      {[EM_F32] = min_f32, [EM_F64] = min_f64, [EM_F16] = min_f16, [EM_BF16] = min_bf16, [EM_I64] = min_i64, [EM_I32] = min_i32,
       [EM_I16] = min_i16, [EM_I8] = min_i8, [EM_U8] = min_u8, [EM_BOOL] = and_b8}},
    .inside = inside,
    .widen = widen,
};
