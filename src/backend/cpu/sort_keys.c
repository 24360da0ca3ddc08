// sort_keys.c: see sort_keys.h; built once an instruction set.
#include "sort_keys.h"

static inline uint32_t u8_key(uint8_t v) { return v; }
static inline uint32_t bool_key(uint8_t v) { return v != 0; }
static inline uint32_t i8_key(uint8_t v) { return v ^ 0x80u; }
static inline uint32_t i16_key(uint16_t v) { return v ^ 0x8000u; }
static inline uint32_t i32_key(uint32_t v) { return v ^ 0x80000000u; }
static inline uint64_t i64_key(uint64_t v) { return v ^ 0x8000000000000000u; }
// Negative floats turn over whole, others get the top bit; the two zeros become one, nans the largest key.
static inline uint32_t half_key(uint16_t v, uint32_t infinity) {
  uint32_t u = (v & 0x7fffu) == 0 ? 0 : v;
  uint32_t k = (u & 0x8000u) ? ~u & 0xffffu : u | 0x8000u;
  return (v & 0x7fffu) > infinity ? 0xffffu : k;
}
static inline uint32_t f16_key(uint16_t v) { return half_key(v, 0x7c00u); }
static inline uint32_t bf16_key(uint16_t v) { return half_key(v, 0x7f80u); }
static inline uint32_t f32_key(uint32_t v) {
  uint32_t u = (v & 0x7fffffffu) == 0 ? 0 : v;
  uint32_t k = u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u);
  return (v & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : k;
}
static inline uint64_t f64_key(uint64_t v) {
  uint64_t u = (v & 0x7fffffffffffffffu) == 0 ? 0 : v;
  uint64_t k = u ^ ((uint64_t)((int64_t)u >> 63) | 0x8000000000000000u);
  return (v & 0x7fffffffffffffffu) > 0x7ff0000000000000u ? 0xffffffffffffffffu : k;
}

#define KEYS(NAME, T, K)                                                                          \
  static void NAME##_keys(K *to, const char *from, int64_t stride, int64_t n, K flip) {           \
    if (stride == (int64_t)sizeof(T))                                                             \
      for (int64_t i = 0; i < n; i++) to[i] = NAME##_key(((const T *)from)[i]) ^ flip;            \
    else                                                                                          \
      for (int64_t i = 0; i < n; i++) to[i] = NAME##_key(*(const T *)(from + i * stride)) ^ flip; \
  }
KEYS(u8, uint8_t, uint32_t)
KEYS(bool, uint8_t, uint32_t)
KEYS(i8, uint8_t, uint32_t)
KEYS(i16, uint16_t, uint32_t)
KEYS(i32, uint32_t, uint32_t)
KEYS(f16, uint16_t, uint32_t)
KEYS(bf16, uint16_t, uint32_t)
KEYS(f32, uint32_t, uint32_t)
KEYS(i64, uint64_t, uint64_t)
KEYS(f64, uint64_t, uint64_t)

static void rank(uint64_t *to, const uint64_t *a, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = (int64_t)(a[i] ^ 0x8000000000000000u);
    int64_t below = 0;
    for (int64_t k = 0; k < n; k++) below += (int64_t)(a[k] ^ 0x8000000000000000u) < v;
    to[below] = a[i];
  }
}
static bool any_above32(const uint32_t *keys, int64_t n, uint32_t bound) {
  uint32_t any = 0;
  for (int64_t i = 0; i < n; i++) any |= keys[i] > bound;
  return any != 0;
}
static bool any_above64(const uint64_t *keys, int64_t n, uint64_t bound) {
  uint64_t any = 0;
  for (int64_t i = 0; i < n; i++) any |= keys[i] > bound;
  return any != 0;
}
const em_sort_keys EM_ISA_NAME(em_priv_sort_keys) = {
    .narrow = {[EM_U8] = u8_keys, [EM_BOOL] = bool_keys, [EM_I8] = i8_keys, [EM_I16] = i16_keys, [EM_I32] = i32_keys,
               [EM_F16] = f16_keys, [EM_BF16] = bf16_keys, [EM_F32] = f32_keys},
    .wide = {[EM_I64] = i64_keys, [EM_F64] = f64_keys},
    .rank = rank,
    .any_above32 = any_above32,
    .any_above64 = any_above64,
};
