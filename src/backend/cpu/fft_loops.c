// fft_loops.c: built once an instruction set; fft.c picks the table.
#include "fft_loops.h"
#include <string.h>

#define T float
#define FN(name) name##_f32
#include "fft_bodies.inc.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "fft_bodies.inc.h"
#undef T
#undef FN

// Four complex numbers of each of eight lines, `stride` floats apart, to four times eight real parts and imaginary ones.
typedef float eight __attribute__((vector_size(32)));
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
static inline __attribute__((always_inline)) void turn_eight(eight *r) {
  eight a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = MIX(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = MIX(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) {
      b[i + 2 * k] = MIX(a[i + k], a[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * k + 1] = MIX(a[i + k], a[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; i++) {
    r[i] = MIX(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = MIX(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
static void turn_in(const float *x, int64_t stride, float *re, float *im) {
  eight r[8];
  for (int v = 0; v < 8; v++) memcpy(&r[v], x + v * stride, sizeof r[v]);
  turn_eight(r);
  for (int i = 0; i < 4; i++) {
    memcpy(re + i * 8, &r[2 * i], sizeof r[i]);
    memcpy(im + i * 8, &r[2 * i + 1], sizeof r[i]);
  }
}
static void turn_out(float *y, int64_t stride, const float *re, const float *im, float scale) {
  eight r[8];
  for (int i = 0; i < 4; i++) {
    memcpy(&r[2 * i], re + i * 8, sizeof r[i]);
    memcpy(&r[2 * i + 1], im + i * 8, sizeof r[i]);
  }
  for (int i = 0; i < 8; i++) r[i] *= scale;
  turn_eight(r);
  for (int v = 0; v < 8; v++) memcpy(y + v * stride, &r[v], sizeof r[v]);
}
#undef MIX

#define E float
#define S float
#define FN(name) name##_float_float
#include "fft_lines.inc.h"
#undef S
#undef FN
#define S double
#define FN(name) name##_float_double
#include "fft_lines.inc.h"
#undef E
#undef FN
#define E double
#define FN(name) name##_double_double
#include "fft_lines.inc.h"

const em_fft_fns EM_ISA_NAME(em_priv_fft)[2] = {
    {run_f32, multiply_f32, split_f32, join_f32, {load_float_float, NULL}, {store_float_float, NULL}},
    {run_f64, multiply_f64, split_f64, join_f64, {load_float_double, load_double_double},
     {store_float_double, store_double_double}}};
