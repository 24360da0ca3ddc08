// cast_loops.c: n elements of one dtype into another, both sides with a byte stride (a source stride of 0 fills).
// Compiled once an instruction set; src/core/cast.c reaches the chosen table. Unit strides get a loop of their own,
// which the compiler vectorises. Rules, the same on every instruction set:
//   float -> int64 truncates; what does not fit, and nan, is INT64_MIN. float -> int32 the same with INT32_MIN,
//   narrower integers take the low bits of that. Integers wrap. Anything -> bool is != 0. Complex -> real drops the
//   imaginary part.
#include "../../core/half.h"
#include "../../core/iterator.h"
#include "isa.h"
#include <string.h>

// --- reading one element: to a float, an integer or a pair, whichever class the storage has
typedef uint8_t em_bool_t;
typedef struct { uint16_t bits; } f16_t;
typedef struct { uint16_t bits; } bf16_t;

static inline int64_t f64_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static inline int64_t f32_to_i64(float x) { return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN; }
static inline int32_t f64_to_i32(double x) { return x > -0x1.000002p31 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }
static inline int32_t f32_to_i32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }

// Class letters: i integer, s float, d double, c complex64, z complex128. `VAL_x` is the loaded value's C type.
#define VAL_i int64_t
#define VAL_s float
#define VAL_d double
#define VAL_c em_c64
#define VAL_z em_c128

#define LOAD_U8(p) ((int64_t)*(const uint8_t *)(p))
#define LOAD_I8(p) ((int64_t)*(const int8_t *)(p))
#define LOAD_I16(p) ((int64_t)*(const int16_t *)(p))
#define LOAD_I32(p) ((int64_t)*(const int32_t *)(p))
#define LOAD_I64(p) (*(const int64_t *)(p))
#define LOAD_BOOL(p) ((int64_t)(*(const uint8_t *)(p) != 0))
#define LOAD_F16(p) em_f16_to_f32(*(const uint16_t *)(p))
#define LOAD_BF16(p) em_bf16_to_f32(*(const uint16_t *)(p))
#define LOAD_F32(p) (*(const float *)(p))
#define LOAD_F64(p) (*(const double *)(p))
#define LOAD_C64(p) (*(const em_c64 *)(p))
#define LOAD_C128(p) (*(const em_c128 *)(p))

// --- STORE_<to>_<class>(p, v)
#define TO_I64_i(v) (v)
#define TO_I64_s(v) f32_to_i64(v)
#define TO_I64_d(v) f64_to_i64(v)
#define TO_I64_c(v) f32_to_i64((v).re)
#define TO_I64_z(v) f64_to_i64((v).re)
#define TO_I32_i(v) ((int32_t)(v))
#define TO_I32_s(v) f32_to_i32(v)
#define TO_I32_d(v) f64_to_i32(v)
#define TO_I32_c(v) f32_to_i32((v).re)
#define TO_I32_z(v) f64_to_i32((v).re)
#define NONZERO_i(v) ((v) != 0)
#define NONZERO_s(v) ((v) != 0)
#define NONZERO_d(v) ((v) != 0)
#define NONZERO_c(v) (((v).re != 0) | ((v).im != 0))
#define NONZERO_z(v) (((v).re != 0) | ((v).im != 0))
#define TO_F32_i(v) ((float)(v))
#define TO_F32_s(v) (v)
#define TO_F32_d(v) ((float)(v))
#define TO_F32_c(v) ((v).re)
#define TO_F32_z(v) ((float)(v).re)
#define TO_F64_i(v) ((double)(v))
#define TO_F64_s(v) ((double)(v))
#define TO_F64_d(v) (v)
#define TO_F64_c(v) ((double)(v).re)
#define TO_F64_z(v) ((v).re)
#define IMAG_i(v) 0
#define IMAG_s(v) 0
#define IMAG_d(v) 0
#define IMAG_c(v) ((v).im)
#define IMAG_z(v) ((v).im)

#define STORE_U8(c, p, v) (*(uint8_t *)(p) = (uint8_t)TO_I32_##c(v))
#define STORE_I8(c, p, v) (*(int8_t *)(p) = (int8_t)TO_I32_##c(v))
#define STORE_I16(c, p, v) (*(int16_t *)(p) = (int16_t)TO_I32_##c(v))
#define STORE_I32(c, p, v) (*(int32_t *)(p) = TO_I32_##c(v))
#define STORE_I64(c, p, v) (*(int64_t *)(p) = TO_I64_##c(v))
#define STORE_BOOL(c, p, v) (*(uint8_t *)(p) = (uint8_t)NONZERO_##c(v))
#define STORE_F16(c, p, v) (*(uint16_t *)(p) = em_f32_to_f16(TO_F32_##c(v)))
#define STORE_BF16(c, p, v) (*(uint16_t *)(p) = em_f32_to_bf16(TO_F32_##c(v)))
#define STORE_F32(c, p, v) (*(float *)(p) = TO_F32_##c(v))
#define STORE_F64(c, p, v) (*(double *)(p) = TO_F64_##c(v))
#define STORE_C64(c, p, v) (*(em_c64 *)(p) = (em_c64){TO_F32_##c(v), (float)IMAG_##c(v)})
#define STORE_C128(c, p, v) (*(em_c128 *)(p) = (em_c128){TO_F64_##c(v), (double)IMAG_##c(v)})

// Exact aliasing is legal (a copy onto itself); `omp simd` says that there is no other overlap that a run depends on.
#define CAST(to, to_size, from, from_size, c)                                               \
  static void cast_##to##_##from(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n) { \
    if (ds == to_size && ss == from_size) {                                                 \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                 \
        VAL_##c v = LOAD_##from(src + i * from_size);                                       \
        STORE_##to(c, dst + i * to_size, v);                                                \
      }                                                                                     \
    } else if (ds == to_size && ss == 0 && n > 0) {                                         \
      VAL_##c v = LOAD_##from(src);                                                         \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) STORE_##to(c, dst + i * to_size, v); \
    } else {                                                                                \
      for (int64_t i = 0; i < n; i++) {                                                     \
        VAL_##c v = LOAD_##from(src + i * ss);                                              \
        STORE_##to(c, dst + i * ds, v);                                                     \
      }                                                                                     \
    }                                                                                       \
  }

#define EACH_FROM(X, to, ts) \
  X(to, ts, U8, 1, i) X(to, ts, I8, 1, i) X(to, ts, I16, 2, i) X(to, ts, I32, 4, i) \
  X(to, ts, I64, 8, i) X(to, ts, BOOL, 1, i) X(to, ts, F16, 2, s) X(to, ts, BF16, 2, s) \
  X(to, ts, F32, 4, s) X(to, ts, F64, 8, d) X(to, ts, C64, 8, c) X(to, ts, C128, 16, z)
#define EACH_TO(Y, X) \
  Y(X, U8, 1) Y(X, I8, 1) Y(X, I16, 2) Y(X, I32, 4) Y(X, I64, 8) Y(X, BOOL, 1) Y(X, F16, 2) Y(X, BF16, 2) Y(X, F32, 4) \
  Y(X, F64, 8) Y(X, C64, 8) Y(X, C128, 16)
#define DEFINE(X, to, ts) EACH_FROM(X, to, ts)
EACH_TO(DEFINE, CAST)

// A dtype onto itself moves bits: nan payloads and bools that are neither 0 nor 1 survive a copy.
#define MOVE(bytes, type)                                                                          \
  static void move_##bytes(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n) {        \
    if (ds == bytes && ss == bytes) {                                                              \
      memmove(dst, src, (size_t)n * bytes);                                                        \
    } else if (ds == bytes && ss == 0 && n > 0) {                                                  \
      type v = *(const type *)src;                                                                 \
      for (int64_t i = 0; i < n; i++) *(type *)(dst + i * bytes) = v;                              \
    } else if (ds == bytes && ss == -bytes) { /* flip */                                           \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                          \
        *(type *)(dst + i * bytes) = *(const type *)(src - i * bytes);                             \
    } else {                                                                                       \
      for (int64_t i = 0; i < n; i++) *(type *)(dst + i * ds) = *(const type *)(src + i * ss);     \
    }                                                                                              \
  }
MOVE(1, uint8_t)
MOVE(2, uint16_t)
MOVE(4, uint32_t)
MOVE(8, uint64_t)
MOVE(16, em_c128)

#define SLOT(to, ts, from, fs, c) [EM_##to][EM_##from] = cast_##to##_##from,
#define SAME(d, bytes) [EM_##d][EM_##d] = move_##bytes
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"  // the diagonal replaces the casts onto themselves
const em_cast_fn EM_ISA_NAME(em_priv_casts)[EM_NUM_DTYPES][EM_NUM_DTYPES] = {
  EACH_TO(DEFINE, SLOT)
  SAME(U8, 1), SAME(I8, 1), SAME(I16, 2), SAME(I32, 4), SAME(I64, 8), SAME(BOOL, 1), SAME(F16, 2), SAME(BF16, 2),
  SAME(F32, 4), SAME(F64, 8), SAME(C64, 8), SAME(C128, 16),
};
#pragma GCC diagnostic pop
