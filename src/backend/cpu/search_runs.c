// search_runs.c: see search_runs.h.
#include "search_runs.h"
#include "../../core/half.h"

// ---- binary search. The first position whose element is not below v (left), or is above v (right); a nan is neither, and so
// a search for one, or past one, ends at the end.
enum { LANES = 8 };
#define SEARCH(N, T, C, LOAD)                                                                                \
  static int64_t find_##N(const char *seq, int64_t n, C v, bool right) {                                     \
    const T *s = (const T *)seq;                                                                             \
    int64_t low = 0;                                                                                         \
    while (n > 0) {                                                                                          \
      const int64_t half = n / 2;                                                                            \
      const C m = LOAD(s[low + half]);                                                                       \
      const bool below = right ? !(m > v) : !(m >= v);                                                       \
      low += below ? half + 1 : 0;                                                                           \
      n = below ? n - half - 1 : half;                                                                       \
    }                                                                                                        \
    return low;                                                                                             \
  }                                                                                                          \
  static void search_##N(const char *seq, int64_t n, const char *values, int64_t count, bool right, int64_t *out) { \
    const T *s = (const T *)seq;                                                                             \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= count && n > 0; i += LANES) { /* side by side, so that they wait for memory together */ \
      C v[LANES];                                                                                            \
      int64_t low[LANES] = {0}, left[LANES];                                                                 \
      for (int l = 0; l < LANES; l++) {                                                                      \
        v[l] = LOAD(((const T *)values)[i + l]);                                                             \
        left[l] = n;                                                                                         \
      }                                                                                                      \
      for (int64_t step = n; step > 0; step /= 2)                                                            \
        for (int l = 0; l < LANES; l++) {                                                                    \
          const int64_t half = left[l] / 2, mid = low[l] + half < n ? low[l] + half : n - 1;                 \
          const C m = LOAD(s[mid]);                                                                          \
          const bool below = left[l] > 0 && (right ? !(m > v[l]) : !(m >= v[l]));                            \
          low[l] += below ? half + 1 : 0;                                                                    \
          left[l] = below ? left[l] - half - 1 : half;                                                       \
        }                                                                                                    \
      for (int l = 0; l < LANES; l++) out[i + l] = low[l];                                                   \
    }                                                                                                        \
    for (; i < count; i++) out[i] = find_##N(seq, n, LOAD(((const T *)values)[i]), right);                   \
  }                                                                                                          \
  static void isin_##N(const char *seq, int64_t n, const char *values, int64_t count, bool invert, uint8_t *out) { \
    int64_t at[LANES];                                                                                       \
    for (int64_t i = 0; i < count; i += LANES) {                                                             \
      const int64_t m = count - i < LANES ? count - i : LANES;                                               \
      search_##N(seq, n, values + i * (int64_t)sizeof(T), m, false, at);                                     \
      for (int64_t l = 0; l < m; l++)                                                                        \
        out[i + l] = (uint8_t)((at[l] < n && LOAD(((const T *)seq)[at[l]]) == LOAD(((const T *)values)[i + l])) != invert); \
    }                                                                                                        \
  }
#define ID(v) (v)
SEARCH(u8, uint8_t, uint8_t, ID)
SEARCH(i8, int8_t, int8_t, ID)
SEARCH(i16, int16_t, int16_t, ID)
SEARCH(i32, int32_t, int32_t, ID)
SEARCH(i64, int64_t, int64_t, ID)
SEARCH(f16, uint16_t, float, em_f16_to_f32)
SEARCH(bf16, uint16_t, float, em_bf16_to_f32)
SEARCH(f32, float, float, ID)
SEARCH(f64, double, double, ID)
#define BOTH(N) {search_##N, isin_##N}
const em_searches EM_ISA_NAME(em_priv_searches)[EM_NUM_DTYPES] = {
    [EM_U8] = BOTH(u8), [EM_I8] = BOTH(i8), [EM_I16] = BOTH(i16), [EM_I32] = BOTH(i32), [EM_I64] = BOTH(i64),
    [EM_F16] = BOTH(f16), [EM_BF16] = BOTH(bf16), [EM_F32] = BOTH(f32), [EM_F64] = BOTH(f64)};
