// rng_fill.c: PyTorch's distributions over the draws of rng.h. See the table there for who draws what.
//
// One shape for all: numbers are made a chunk at a time into a small array of float, double or int64 and then cast
// into the destination, contiguous or strided. Whatever order of draws a fill promises is therefore independent of
// strides. Packed uniforms are written in place.
#include "rng.h"

#include <math.h>
#include <string.h>

#include "half.h"
#include "rng_builds.h"

enum { CHUNK = 256, BLOCK = 16 };  // CHUNK: a multiple of BLOCK, so that blocks of normals never straddle

// ---- casts: doubles and int64s reach half types through float, as torch's conversions do ----

// Out of range gives the "integer indefinite" value of x86, in every build.
static inline int64_t i64_from_f64(double v) { return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN; }
static inline int32_t i32_from_f64(double v) { return v > -0x1p31 - 1 && v < 0x1p31 ? (int32_t)v : INT32_MIN; }

static inline size_t type_size(em_rng_type t) {
  switch (t) {
    case EM_RNG_U8: case EM_RNG_I8: case EM_RNG_BOOL: return 1;
    case EM_RNG_I16: case EM_RNG_U16: case EM_RNG_F16: case EM_RNG_BF16: return 2;
    case EM_RNG_I32: case EM_RNG_U32: case EM_RNG_F32: return 4;
    case EM_RNG_I64: case EM_RNG_U64: case EM_RNG_F64: return 8;
  }
  return 0;
}

// A destination that moves on as chunks are written.
typedef struct dest {
  char *p;
  int64_t stride;
  em_rng_type type;
} dest;
static inline bool is_packed(const dest *d) { return d->stride == (int64_t)type_size(d->type); }

#define STORE(ctype, expr)                                          \
  for (int64_t i = 0; i < n; i++, p += stride) {                    \
    ctype x = (ctype)(expr);                                        \
    memcpy(p, &x, sizeof x);                                        \
  }                                                                 \
  break

static void store_f32(dest *d, const float *v, int64_t n) {  // float types only
  char *p = d->p;
  int64_t stride = d->stride;
  d->p += n * stride;
  switch (d->type) {
    case EM_RNG_F16: STORE(uint16_t, em_f32_to_f16(v[i]));
    case EM_RNG_BF16: STORE(uint16_t, em_f32_to_bf16(v[i]));
    default: STORE(float, v[i]);
  }
}

static void store_f64(dest *d, const double *v, int64_t n) {
  char *p = d->p;
  int64_t stride = d->stride;
  d->p += n * stride;
  switch (d->type) {
    case EM_RNG_U8: STORE(uint8_t, i32_from_f64(v[i]));
    case EM_RNG_I8: STORE(int8_t, i32_from_f64(v[i]));
    case EM_RNG_I16: STORE(int16_t, i32_from_f64(v[i]));
    case EM_RNG_U16: STORE(uint16_t, i32_from_f64(v[i]));
    case EM_RNG_I32: STORE(int32_t, i32_from_f64(v[i]));
    case EM_RNG_U32: STORE(uint32_t, i64_from_f64(v[i]));
    case EM_RNG_I64: case EM_RNG_U64: STORE(int64_t, i64_from_f64(v[i]));
    case EM_RNG_F16: STORE(uint16_t, em_f32_to_f16((float)v[i]));
    case EM_RNG_BF16: STORE(uint16_t, em_f32_to_bf16((float)v[i]));
    case EM_RNG_F32: STORE(float, v[i]);
    case EM_RNG_F64: STORE(double, v[i]);
    case EM_RNG_BOOL: STORE(uint8_t, v[i] != 0);
  }
}

static void store_i64(dest *d, const int64_t *v, int64_t n) {
  char *p = d->p;
  int64_t stride = d->stride;
  d->p += n * stride;
  switch (d->type) {
    case EM_RNG_U8: case EM_RNG_I8: STORE(uint8_t, v[i]);
    case EM_RNG_I16: case EM_RNG_U16: STORE(uint16_t, v[i]);
    case EM_RNG_I32: case EM_RNG_U32: STORE(uint32_t, v[i]);
    case EM_RNG_I64: case EM_RNG_U64: STORE(int64_t, v[i]);
    case EM_RNG_F16: STORE(uint16_t, em_f32_to_f16((float)v[i]));
    case EM_RNG_BF16: STORE(uint16_t, em_f32_to_bf16((float)v[i]));
    case EM_RNG_F32: STORE(float, v[i]);
    case EM_RNG_F64: STORE(double, v[i]);
    case EM_RNG_BOOL: STORE(uint8_t, v[i] != 0);
  }
}

// 0 or 1 in any type. Masks are made by the million, so the packed types of masks have loops that vectorise.
static void store_flags(dest *d, const int32_t *v, int64_t n) {
  if (is_packed(d) && type_size(d->type) == 1) {
    uint8_t *out = (uint8_t *)d->p;
    for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)v[i];
  } else if (is_packed(d) && d->type == EM_RNG_F32) {
    float *out = (float *)(void *)d->p;
    for (int64_t i = 0; i < n; i++) out[i] = (float)v[i];
  } else {
    int64_t wide[CHUNK];
    for (int64_t i = 0; i < n; i++) wide[i] = v[i];
    store_i64(d, wide, n);
    return;
  }
  d->p += n * d->stride;
}

// ---- uniforms --------------------------------------------------------------------------------------------------

EM_BODY(uniform_f32)(const uint32_t *words, float *out, int64_t n, float from, float to) {
  float range = to - from;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    // through int32: every instruction set converts that directly
    float x = fmaf((float)(int32_t)(words[i] & 0xffffffu) * 0x1p-24f, range, from);
    out[i] = x == to ? from : x;
  }
}
EM_TWO_BUILDS(uniform_f32, (const uint32_t *words, float *out, int64_t n, float from, float to),
           (words, out, n, from, to))

// Two words an element. The 53 bits are converted in two exact parts, through int32: instruction sets before AVX-512
// cannot convert more in vectors.
EM_BODY(uniform_f64)(const uint32_t *words, double *out, int64_t n, double from, double to) {
  double range = to - from;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    double high = (int32_t)(words[2 * i] & 0x1fffffu);
    double low = (double)(int32_t)(words[2 * i + 1] ^ 0x80000000u) + 0x1p31;
    double x = fma((high * 0x1p32 + low) * 0x1p-53, range, from);
    out[i] = x == to ? from : x;
  }
}
EM_TWO_BUILDS(uniform_f64, (const uint32_t *words, double *out, int64_t n, double from, double to),
              (words, out, n, from, to))

// u24 and u53 in [0, 1); the clamp of the bodies never acts there.
static void draw_f32(em_generator *g, float *out, int64_t n) {
  uint32_t words[CHUNK];
  em_priv_rng_words(g, words, (size_t)n);
  uniform_f32(words, out, n, 0, 1);
}
static void draw_f64(em_generator *g, double *out, int64_t n) {
  uint32_t words[2 * CHUNK];
  em_priv_rng_words(g, words, 2 * (size_t)n);
  uniform_f64(words, out, n, 0, 1);
}
static void draw_u64(em_generator *g, uint64_t *out, int64_t n) {
  uint32_t words[2 * CHUNK];
  em_priv_rng_words(g, words, 2 * (size_t)n);
  for (int64_t i = 0; i < n; i++) out[i] = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
}

// Half types: the cast may round up to `to` although the f32 did not.
static void clamp_half(em_rng_type type, float *v, int64_t n, double from, double to) {
  uint16_t bound = type == EM_RNG_F16 ? em_f32_to_f16((float)to) : em_f32_to_bf16((float)to);
  float to_value = type == EM_RNG_F16 ? em_f16_to_f32(bound) : em_bf16_to_f32(bound);
  for (int64_t i = 0; i < n; i++) {
    float x = type == EM_RNG_F16 ? em_f16_to_f32(em_f32_to_f16(v[i])) : em_bf16_to_f32(em_f32_to_bf16(v[i]));
    if (x == to_value) v[i] = (float)from;
  }
}

// Runs `step` over the chunks of a fill: m elements each time, the lock held throughout.
#define FOR_CHUNKS(m)                                                        \
  for (int64_t m, left_ = n; m = left_ < CHUNK ? left_ : CHUNK, left_ > 0; left_ -= m)

static void fill_uniform_f64(em_generator *g, dest d, int64_t n, double from, double to) {
  uint32_t words[2 * CHUNK];
  double v[CHUNK];
  FOR_CHUNKS(m) {
    double *out = is_packed(&d) ? (double *)(void *)d.p : v;
    em_priv_rng_words(g, words, 2 * (size_t)m);
    uniform_f64(words, out, m, from, to);
    if (out == v) store_f64(&d, v, m);
    else d.p += m * d.stride;
  }
}

static void fill_uniform_f32(em_generator *g, dest d, int64_t n, double from, double to) {
  uint32_t words[CHUNK];
  float v[CHUNK];
  FOR_CHUNKS(m) {
    float *out = d.type == EM_RNG_F32 && is_packed(&d) ? (float *)(void *)d.p : v;
    em_priv_rng_words(g, words, (size_t)m);
    uniform_f32(words, out, m, (float)from, (float)to);
    if (d.type != EM_RNG_F32) clamp_half(d.type, v, m, from, to);
    if (out == v) store_f32(&d, v, m);
    else d.p += m * d.stride;
  }
}

void em_rng_fill_uniform(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double from,
                         double to) {
  dest d = {data, stride, type};
  em_rng_lock(g);
  if (type == EM_RNG_F64) fill_uniform_f64(g, d, n, from, to);
  else fill_uniform_f32(g, d, n, from, to);
  em_rng_unlock(g);
}

// ---- normals ---------------------------------------------------------------------------------------------------

// Natural logarithm of x in (0, 1], Cephes logf: x = 2^e * m, sqrt(1/2) <= m < sqrt(2), a polynomial in m - 1, and
// e * log 2 in two parts. The order of operations and roundings is the reference kernel's; do not tidy.
static inline __attribute__((always_inline)) float cephes_log(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  float e = (float)((int32_t)(u >> 23) - 126);
  u = (u & 0x007fffffu) | 0x3f000000u;
  float m;
  memcpy(&m, &u, 4);
  bool low = m < 0.707106781186547524f;
  e = low ? e - 1.0f : e;
  m = (m - 1.0f) + (low ? m : 0.0f);
  float z = m * m, y = 7.0376836292e-2f;
  y = fmaf(y, m, -1.1514610310e-1f);
  y = fmaf(y, m, 1.1676998740e-1f);
  y = fmaf(y, m, -1.2420140846e-1f);
  y = fmaf(y, m, 1.4249322787e-1f);
  y = fmaf(y, m, -1.6668057665e-1f);
  y = fmaf(y, m, 2.0000714765e-1f);
  y = fmaf(y, m, -2.4999993993e-1f);
  y = fmaf(y, m, 3.3333331174e-1f);
  y = fmaf(y * m, z, e * -2.12194440e-4f);
  y = fmaf(z, -0.5f, y);
  return fmaf(e, 0.693359375f, m + y);
}

// Sine and cosine of x in [0, 2 pi], Cephes sinf/cosf: octant j, the remainder in three steps, two polynomials.
static inline __attribute__((always_inline)) void cephes_sincos(float x, float *sine, float *cosine) {
  int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
  float k = (float)j;
  x = fmaf(k, -0.78515625f, x);
  x = fmaf(k, -2.4187564849853515625e-4f, x);
  x = fmaf(k, -3.77489497744594108e-8f, x);
  float z = x * x, c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
  c = fmaf(c, z, -1.388731625493765e-3f);
  c = fmaf(c, z, 4.166664568298827e-2f);
  c = fmaf(c * z, z, -(z * 0.5f)) + 1.0f;
  s = fmaf(s, z, 8.3321608736e-3f);
  s = fmaf(s, z, -1.6666654611e-1f);
  s = fmaf(s * z, x, x);
  bool swap = (j & 2) != 0;
  float sin_part = swap ? c : s, cos_part = swap ? s : c;
  *sine = (j & 4) != 0 ? -sin_part : sin_part;
  *cosine = ((j - 2) & 4) != 0 ? cos_part : -cos_part;
}

// Box-Muller in place on blocks of 16 uniforms: 8 for the radius, then 8 for the angle. n is a multiple of 16.
EM_BODY(box_muller_f32)(float *v, int64_t n, float mean, float std) {
  for (float *end = v + n; v < end; v += BLOCK) {
#pragma omp simd simdlen(8)
    for (int i = 0; i < BLOCK / 2; i++) {
      float radius = sqrtf(-2.0f * cephes_log(1.0f - v[i])), s, c;
      cephes_sincos(6.28318530717958647692f * v[i + BLOCK / 2], &s, &c);
      v[i] = fmaf(radius * c, std, mean);
      v[i + BLOCK / 2] = fmaf(radius * s, std, mean);
    }
  }
}
EM_TWO_BUILDS(box_muller_f32, (float *v, int64_t n, float mean, float std), (v, n, mean, std))

static void box_muller_f64(double *v, int64_t n, double mean, double std) {
  for (double *end = v + n; v < end; v += BLOCK) {
    for (int i = 0; i < BLOCK / 2; i++) {
      double radius = sqrt(-2 * log(1 - v[i])), angle = 2 * M_PI * v[i + BLOCK / 2];
      v[i] = fma(radius * cos(angle), std, mean);
      v[i + BLOCK / 2] = fma(radius * sin(angle), std, mean);
    }
  }
}

static void normal_blocks_f64(em_generator *g, dest d, int64_t n, double mean, double std) {
  double v[CHUNK];
  dest last = {d.p + (n - BLOCK) * d.stride, d.stride, d.type};
  int64_t tail = n % BLOCK;
  FOR_CHUNKS(m) {
    draw_f64(g, v, m);
    box_muller_f64(v, m - m % BLOCK, mean, std);
    store_f64(&d, v, m - m % BLOCK);
  }
  if (tail == 0) return;
  draw_f64(g, v, BLOCK);
  box_muller_f64(v, BLOCK, mean, std);
  store_f64(&last, v, BLOCK);
}

static void normal_blocks_f32(em_generator *g, dest d, int64_t n, float mean, float std) {
  float v[CHUNK];
  dest last = {d.p + (n - BLOCK) * d.stride, d.stride, d.type};
  int64_t tail = n % BLOCK;
  // f32 draws uniforms for the incomplete block too, only to overwrite them; half types do not.
  if (d.type != EM_RNG_F32) n -= tail;
  FOR_CHUNKS(m) {
    draw_f32(g, v, m);
    box_muller_f32(v, m - m % BLOCK, mean, std);
    store_f32(&d, v, m - m % BLOCK);
  }
  if (tail == 0) return;
  draw_f32(g, v, BLOCK);
  box_muller_f32(v, BLOCK, mean, std);
  store_f32(&last, v, BLOCK);
}

void em_rng_fill_normal(em_generator *g, em_rng_type type, void *data, int64_t n, double mean, double std) {
  dest d = {data, (int64_t)type_size(type), type};
  if (n < BLOCK) {
    em_rng_fill_normal_serial(g, type, data, d.stride, n, mean, std);
    return;
  }
  em_rng_lock(g);
  if (type == EM_RNG_F64) normal_blocks_f64(g, d, n, mean, std);
  else normal_blocks_f32(g, d, n, (float)mean, (float)std);
  em_rng_unlock(g);
}

// Standard normals, one pair from two u53; the sine half waits in the generator.
double em_priv_rng_normal(em_generator *g) {
  if (g->has_double_normal) {
    g->has_double_normal = false;
    return g->next_double_normal;
  }
  double u1 = (double)(em_rng_u64(g) & 0x1fffffffffffffull) * 0x1p-53;
  double u2 = (double)(em_rng_u64(g) & 0x1fffffffffffffull) * 0x1p-53;
  double radius = sqrt(-2 * log1p(-u2)), angle = 2 * M_PI * u1;
  g->next_double_normal = radius * sin(angle);
  g->has_double_normal = true;
  return radius * cos(angle);
}

void em_rng_fill_normal_serial(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double mean,
                               double std) {
  dest d = {data, stride, type};
  double v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    for (int64_t i = 0; i < m; i++) v[i] = fma(em_priv_rng_normal(g), std, mean);
    store_f64(&d, v, m);
  }
  em_rng_unlock(g);
}

void em_rng_fill_log_normal(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double mean,
                            double std) {
  dest d = {data, stride, type};
  double v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    for (int64_t i = 0; i < m; i++) v[i] = exp(fma(em_priv_rng_normal(g), std, mean));
    store_f64(&d, v, m);
  }
  em_rng_unlock(g);
}

// ---- integers --------------------------------------------------------------------------------------------------

void em_rng_fill_randint(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, int64_t from,
                         uint64_t range) {
  dest d = {data, stride, type};
  int64_t v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    if (range < 1ull << 28) {
      uint32_t words[CHUNK], r = (uint32_t)range;
      em_priv_rng_words(g, words, (size_t)m);
      for (int64_t i = 0; i < m; i++) v[i] = (int64_t)(words[i] % r + (uint64_t)from);
    } else {
      uint64_t bits[CHUNK];
      draw_u64(g, bits, m);
      for (int64_t i = 0; i < m; i++) v[i] = (int64_t)(bits[i] % range + (uint64_t)from);
    }
    store_i64(&d, v, m);
  }
  em_rng_unlock(g);
}

void em_rng_fill_random(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n) {
  uint64_t modulus;  // one more than the largest value
  switch (type) {
    case EM_RNG_BOOL: modulus = 2; break;
    case EM_RNG_U8: modulus = 1ull << 8; break;
    case EM_RNG_I8: modulus = 1ull << 7; break;
    case EM_RNG_I16: modulus = 1ull << 15; break;
    case EM_RNG_U16: modulus = 1ull << 16; break;
    case EM_RNG_I32: modulus = 1ull << 31; break;
    case EM_RNG_U32: modulus = 1ull << 32; break;
    case EM_RNG_F16: modulus = (1ull << 11) + 1; break;
    case EM_RNG_BF16: modulus = (1ull << 8) + 1; break;
    case EM_RNG_F32: modulus = (1ull << 24) + 1; break;
    case EM_RNG_F64: modulus = (1ull << 53) + 1; break;
    default: modulus = 1ull << 63; break;
  }
  bool wide = type == EM_RNG_I64 || type == EM_RNG_U64 || type == EM_RNG_F64;
  dest d = {data, stride, type};
  int64_t v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    uint64_t bits[CHUNK];
    uint32_t words[CHUNK];
    if (wide) draw_u64(g, bits, m);
    else em_priv_rng_words(g, words, (size_t)m);
    for (int64_t i = 0; i < m; i++) v[i] = (int64_t)((wide ? bits[i] : words[i]) % modulus);
    store_i64(&d, v, m);
  }
  em_rng_unlock(g);
}

void em_rng_fill_random64(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n) {
  dest d = {data, stride, type};
  int64_t v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    draw_u64(g, (uint64_t *)v, m);
    store_i64(&d, v, m);
  }
  em_rng_unlock(g);
}

// v rounded to `type` and back; digits: significant bits of the type, 0 for types that hold every int64.
static int64_t through_float(em_rng_type type, int64_t v, int *digits) {
  switch (type) {
    case EM_RNG_F16: *digits = 11; return i64_from_f64(em_f16_to_f32(em_f32_to_f16((float)v)));
    case EM_RNG_BF16: *digits = 8; return i64_from_f64(em_bf16_to_f32(em_f32_to_bf16((float)v)));
    case EM_RNG_F32: *digits = 24; return i64_from_f64((float)v);
    case EM_RNG_F64: *digits = 53; return i64_from_f64((double)v);
    default: *digits = 0; return v;
  }
}

void em_rng_adjust_bounds(em_rng_type type, int64_t *from, int64_t *to) {
  int digits;
  int64_t above = through_float(type, *from + 1, &digits), below = through_float(type, *to - 1, &digits);
  if (digits == 0) return;
  // spacing of the floats around `near`, less than which no bound needs to move
  if (above < *from) {
    uint64_t near = *from + 1 < 0 ? 0 - (uint64_t)(*from + 1) : (uint64_t)(*from + 1);
    *from = above + (int64_t)(1ull << (63 - __builtin_clzll(near) - digits + 1));
  }
  if (below >= *to) {
    uint64_t near = *to - 1 < 0 ? 0 - (uint64_t)(*to - 1) : (uint64_t)(*to - 1);
    *to = below - (int64_t)(1ull << (63 - __builtin_clzll(near) - digits + 1));
  }
}

// ---- permutations ----------------------------------------------------------------------------------------------

// The swaps for one element width. Values are small enough to be held by the type, or wrap as torch's casts do.
#define SHUFFLE(name, ctype)                                                     \
  static void name(em_generator *g, ctype *r, int64_t n, bool inside_out) {      \
    if (inside_out) {                                                            \
      for (int64_t i = 1; i < n; i++) {                                          \
        int64_t z = (int64_t)(em_rng_u64(g) % (uint64_t)(i + 1));                \
        ctype t = r[i];                                                          \
        r[i] = r[z];                                                             \
        r[z] = t;                                                                \
      }                                                                          \
      return;                                                                    \
    }                                                                            \
    for (int64_t i = 0; i < n - 1; i++) {                                        \
      int64_t z = i + em_rng_u32(g) % (uint32_t)(n - i);                         \
      ctype t = r[i];                                                            \
      r[i] = r[z];                                                               \
      r[z] = t;                                                                  \
    }                                                                            \
  }
SHUFFLE(shuffle_8, uint8_t)
SHUFFLE(shuffle_16, uint16_t)
SHUFFLE(shuffle_32, uint32_t)
SHUFFLE(shuffle_64, uint64_t)

void em_rng_fill_randperm(em_generator *g, em_rng_type type, void *data, int64_t n) {
  dest d = {data, (int64_t)type_size(type), type};
  int64_t v[CHUNK], next = 0;
  FOR_CHUNKS(m) {
    for (int64_t i = 0; i < m; i++) v[i] = next++;
    store_i64(&d, v, m);
  }
  // From here on torch distrusts 32 bits modulo n. Its inside-out loop also draws for i = 0, where nothing moves.
  bool inside_out = n >= UINT32_MAX / 20;
  em_rng_lock(g);
  if (inside_out) (void)em_rng_u64(g);
  switch (type_size(type)) {
    case 1: shuffle_8(g, data, n, inside_out); break;
    case 2: shuffle_16(g, data, n, inside_out); break;
    case 4: shuffle_32(g, data, n, inside_out); break;
    default: shuffle_64(g, data, n, inside_out); break;
  }
  em_rng_unlock(g);
}

// ---- bernoulli -------------------------------------------------------------------------------------------------

// u53 < bound * 2^-53, on the two halves.
EM_BODY(below)(const uint32_t *words, int32_t *out, int64_t n, uint64_t bound) {
  int32_t high = (int32_t)(bound >> 32), low = (int32_t)((uint32_t)bound ^ 0x80000000u);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    int32_t h = (int32_t)(words[2 * i] & 0x1fffffu), l = (int32_t)(words[2 * i + 1] ^ 0x80000000u);
    out[i] = (h < high) | ((h == high) & (l < low));
  }
}
EM_TWO_BUILDS(below, (const uint32_t *words, int32_t *out, int64_t n, uint64_t bound), (words, out, n, bound))

void em_rng_fill_bernoulli(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double p) {
  // k * 2^-53 < p exactly when k < ceil(p * 2^53): scaling by a power of two is exact
  uint64_t bound = (uint64_t)ceil(p * 0x1p53);
  dest d = {data, stride, type};
  uint32_t words[2 * CHUNK];
  int32_t v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    em_priv_rng_words(g, words, 2 * (size_t)m);
    below(words, v, m, bound);
    store_flags(&d, v, m);
  }
  em_rng_unlock(g);
}

static inline float load_p(em_rng_type type, const char *p) {
  uint16_t h;
  float f;
  if (type == EM_RNG_F32) {
    memcpy(&f, p, sizeof f);
    return f;
  }
  memcpy(&h, p, sizeof h);
  return type == EM_RNG_F16 ? em_f16_to_f32(h) : em_bf16_to_f32(h);
}

void em_rng_fill_bernoulli_tensor(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n,
                                  em_rng_type p_type, const void *p, int64_t p_stride) {
  dest d = {data, stride, type};
  const char *at = p;
  int32_t v[CHUNK];
  em_rng_lock(g);
  FOR_CHUNKS(m) {
    if (p_type == EM_RNG_F64) {
      double u[CHUNK], q;
      draw_f64(g, u, m);
      for (int64_t i = 0; i < m; i++, at += p_stride) {
        memcpy(&q, at, sizeof q);
        v[i] = u[i] < q;
      }
    } else {
      float u[CHUNK];
      draw_f32(g, u, m);
      for (int64_t i = 0; i < m; i++, at += p_stride) v[i] = u[i] < load_p(p_type, at);
    }
    store_flags(&d, v, m);
  }
  em_rng_unlock(g);
}

// ---- the rarer continuous ones: one u53 an element, in f64 -----------------------------------------------------

#define FILL_FROM_UNIFORM(expr)                       \
  dest d = {data, stride, type};                      \
  double v[CHUNK];                                    \
  em_rng_lock(g);                                     \
  FOR_CHUNKS(m) {                                     \
    draw_f64(g, v, m);                                \
    for (int64_t i = 0; i < m; i++) v[i] = (expr);    \
    store_f64(&d, v, m);                              \
  }                                                   \
  em_rng_unlock(g)

void em_rng_fill_exponential(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double lambda) {
  FILL_FROM_UNIFORM(-1.0 / lambda * log1p(-v[i]));
}

void em_rng_fill_geometric(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double p) {
  double log_q = log1p(-p);
  FILL_FROM_UNIFORM(ceil(log(v[i]) / log_q));
}

void em_rng_fill_cauchy(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double median,
                        double sigma) {
  FILL_FROM_UNIFORM(fma(sigma, tan(M_PI * (v[i] - 0.5)), median));
}
