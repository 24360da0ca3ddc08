// half.h: 16-bit floats as bit patterns. Branch-free, so that loops over them vectorise on every instruction set.
// Rounding is to nearest even; denormals are exact in both directions; NaN stays NaN.
#ifndef EMBER_CORE_HALF_H
#define EMBER_CORE_HALF_H
#include <stdint.h>
#include <string.h>

static inline uint32_t em_bits_of_f32(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float em_f32_of_bits(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

// bfloat16: the upper half of a float32.
static inline float em_bf16_to_f32(uint16_t h) { return em_f32_of_bits((uint32_t)h << 16); }
static inline uint16_t em_f32_to_bf16(float x) {
  uint32_t u = em_bits_of_f32(x);
  uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
  return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (uint32_t)0x7fc0 : rounded);  // torch's one NaN
}

// float16 -> float32: scale the shifted bits by 2^112, which turns denormals into normals exactly; infinities and NaN keep their exponent.
static inline float em_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, body = (uint32_t)(h & 0x7fffu) << 13;
  float scaled = em_f32_of_bits(body) * 0x1p112f;
  uint32_t bits = em_bits_of_f32(scaled) | (body >= 0x0f800000u ? 0x7f800000u : 0u);
  return em_f32_of_bits(bits | sign);
}
// float32 -> float16: normals round by adding half an ulp of the target; denormals by adding 0.5, whose ulp is 2^-24.
static inline uint16_t em_f32_to_f16(float x) {
  uint32_t u = em_bits_of_f32(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  uint32_t normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;  // exponent re-biased by -112
  uint32_t denormal = em_bits_of_f32(em_f32_of_bits(a) + 0.5f) - 0x3f000000u;
  uint32_t r = a < 0x38800000u ? denormal : normal;
  r = a >= 0x477ff000u ? 0x7c00u : r;  // 65520 and above round to infinity
  r = a > 0x7f800000u ? 0x7e00u : r;
  return (uint16_t)(r | sign);
}
#endif
