// crc32.c: the check sum of zip records. Carry-less multiplication where the processor has it (folding 64 bytes a
// step), eight tables a byte at a time otherwise.
#include "source.h"
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0xedb88320u  // reflected
static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
    table[0][i] = c;
  }
  for (int t = 1; t < 8; t++)
    for (uint32_t i = 0; i < 256; i++) table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 255];
}

static uint32_t by_tables(uint32_t c, const uint8_t *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t a = c ^ (uint32_t)em_le(p, 4), b = (uint32_t)em_le(p + 4, 4);
    c = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
        table[3][b & 255] ^ table[2][b >> 8 & 255] ^ table[1][b >> 16 & 255] ^ table[0][b >> 24];
  }
  for (; n > 0; n--) c = c >> 8 ^ table[0][(c ^ *p++) & 255];
  return c;
}

#if defined(__x86_64__)
// x^k mod the polynomial, bit-reflected and shifted left by one: what a fold over k bits multiplies with.
static uint64_t power(int k) {
  uint32_t r = 0x80000000u;  // x^0, reflected
  for (int i = 0; i < k; i++) r = r & 1 ? r >> 1 ^ POLYNOMIAL : r >> 1;
  return (uint64_t)r << 1;
}
static uint64_t fold512[2], fold128[2];
static void make_folds(void) {
  make_tables();
  fold512[0] = power(512 + 32), fold512[1] = power(512 - 32);
  fold128[0] = power(128 + 32), fold128[1] = power(128 - 32);
}

__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i x, __m128i k, __m128i next) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}
// n >= 128. Folds until 16 bytes with the same remainder are left; the tables finish.
__attribute__((target("pclmul,sse4.1"))) static uint32_t by_folding(uint32_t c, const uint8_t *p, size_t n) {
  const __m128i k512 = _mm_set_epi64x((int64_t)fold512[1], (int64_t)fold512[0]);
  const __m128i k128 = _mm_set_epi64x((int64_t)fold128[1], (int64_t)fold128[0]);
  const __m128i *q = (const __m128i *)p;
  __m128i x[4];
  for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128(q + i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
  for (q += 4, n -= 64; n >= 64; q += 4, n -= 64)
    for (int i = 0; i < 4; i++) x[i] = fold(x[i], k512, _mm_loadu_si128(q + i));
  for (int i = 1; i < 4; i++) x[0] = fold(x[0], k128, x[i]);
  uint8_t rest[16];
  _mm_storeu_si128((__m128i *)rest, x[0]);
  return by_tables(by_tables(0, rest, 16), (const uint8_t *)q, n);
}
#else
static void make_folds(void) { make_tables(); }
#endif

uint32_t em_crc32(uint32_t crc, const void *p, size_t n) {
  pthread_once(&once, make_folds);
#if defined(__x86_64__)
  if (n >= 128 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
    return ~by_folding(~crc, p, n);
#endif
  return ~by_tables(~crc, p, n);
}
