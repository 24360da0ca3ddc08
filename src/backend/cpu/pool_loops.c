// pool_loops.c: built once an instruction set; pooling.c picks the table.
#include "pool_loops.h"
#include <math.h>
#include <string.h>

#define BLOCK 128
// The first position at or after 0 of a window that begins at `at` and steps by `dilation`.
static inline int64_t first_tap(int64_t at, int64_t dilation) {
  return at >= 0 ? at : at + (-at + dilation - 1) / dilation * dilation;
}
// Of the output columns [b, e), those whose tap kw lies in the row.
static inline void columns(const em_window *w, int64_t kw, int64_t b, int64_t e, int64_t *lo, int64_t *hi) {
  const int64_t at = kw * w->dilation[2] - w->pad[2], s = w->stride[2], n = w->in[2];
  *lo = at + b * s >= 0 ? b : (-at + s - 1) / s;
  *hi = at + (e - 1) * s < n ? e : n > at ? (n - at + s - 1) / s : 0;
  if (*lo > e) *lo = e;
}
// End of the positions of a window that begins at `at` along dim k.
static inline int64_t tap_end(int64_t at, const em_window *w, int k) {
  const int64_t end = at + (w->kernel[k] - 1) * w->dilation[k] + 1;
  return end < w->in[k] ? end : w->in[k];
}
// Taps of the last dim that some of the output columns before e, or from b on, can reach.
static inline int64_t tap_from(const em_window *w, int64_t e) {
  const int64_t before = w->pad[2] - (e - 1) * w->stride[2];
  return before <= 0 ? 0 : (before + w->dilation[2] - 1) / w->dilation[2];
}
static inline int64_t tap_to(const em_window *w, int64_t b) {
  const int64_t end = (w->in[2] + w->pad[2] - b * w->stride[2] + w->dilation[2] - 1) / w->dilation[2];
  return end < w->kernel[2] ? end : w->kernel[2];
}
// How much of a window's length counts with padding, and without.
static inline void window_size(int64_t o, int64_t stride, int64_t pad, int64_t kernel, int64_t in, int64_t *size,
                               int64_t *count) {
  int64_t from = o * stride - pad, to = from + kernel < in + pad ? from + kernel : in + pad;
  *size = to - from;
  if (from < 0) from = 0;
  if (to > in) to = in;
  *count = to > from ? to - from : 0;
}

#define T float
#define I int32_t
#define LEAST (-INFINITY)
#define ISNAN(x) ((x) != (x))
#define FN(name) name##_f32
#include "pool_bodies.inc.h"
#undef T
#undef I
#undef FN
#define T double
#define I int64_t
#define FN(name) name##_f64
#include "pool_bodies.inc.h"
#undef T
#undef LEAST
#undef ISNAN
#undef FN
#define T int64_t
#define LEAST INT64_MIN
#define ISNAN(x) 0
#define FN(name) name##_i64
#include "pool_bodies.inc.h"

#define TABLE(d)                                                                                                     \
  {max_rows_##d,   avg_rows_##d,            adaptive_max_rows_##d, adaptive_avg_rows_##d,                            \
   avg_planes_##d, adaptive_avg_planes_##d, scatter_##d,           fractional_plane_##d}
const em_pool_fns EM_ISA_NAME(em_priv_pool)[EM_POOL_DTYPES] = {TABLE(f32), TABLE(f64), TABLE(i64)};
