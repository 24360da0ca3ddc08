// conv_load.inc.h: pieces of a picture into planes. Included by conv_loops.c with S (the stored type), STORED (its em_dtype), N(name).
// With PAIRED, S is a pair of bfloat16: two channels in one plane.
typedef S N(svec) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(S)), may_alias));
enum { N(SL) = VEC_BYTES / sizeof(S) };

// The positions [*from, *to) of a dim that lie inside the source.
static void N(inside)(const em_conv_load *l, int d, int64_t x0, int64_t *from, int64_t *to) {
  const int64_t step = l->step[d], size = l->size[d];
  int64_t a = x0 >= l->lo[d] ? 0 : (l->lo[d] - x0 - 1) / step + 1, b = x0 >= l->hi[d] ? 0 : (l->hi[d] - x0 - 1) / step + 1;
  if (b > size) b = size;
  *from = a < b ? a : b;
  *to = b;
}
#ifdef PAIRED
#define SECOND , const char *second
static inline void N(load_row)(const em_conv_load *l, const char *from, const char *second, int64_t stride, S *to, int64_t n) {
  const uint16_t *a = (const uint16_t *)from, *b = (const uint16_t *)second;
  (void)l;
  if (b == NULL) for (int64_t i = 0; i < n; i++) to[i] = a[i * stride];
  else if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = a[i] | (uint32_t)b[i] << 16;
  else for (int64_t i = 0; i < n; i++) to[i] = a[i * stride] | (uint32_t)b[i * stride] << 16;
}
#else
#define SECOND
static inline void N(load_row)(const em_conv_load *l, const char *from, int64_t stride, S *to, int64_t n) {
  if (l->dtype != STORED) {
    em_cast_load(to, STORED, from, l->dtype, stride * (int64_t)em_dtype_size(l->dtype), n);
    return;
  }
  const S *f = (const S *)from;
  int64_t i = 0;
  if (stride != 1) {
    for (; i < n; i++) to[i] = f[i * stride];
    return;
  }
  for (; i + N(SL) <= n; i += N(SL)) *(N(svec) *)(to + i) = *(const N(svec) *)(f + i);
  if (i == n) return;
  if (i > 0) {  // the last vector again, further left
    *(N(svec) *)(to + n - N(SL)) = *(const N(svec) *)(f + n - N(SL));
    return;
  }
  for (; i + 4 <= n; i += 4) memcpy(to + i, f + i, 4 * sizeof(S));
  for (; i < n; i++) to[i] = f[i];
}
#endif
static inline void N(zero)(S *to, int64_t n) {
  int64_t i = 0;
  for (; i + N(SL) <= n; i += N(SL)) *(N(svec) *)(to + i) = (N(svec)){0};
  for (; i < n; i++) to[i] = 0;
}
static void N(load)(const em_conv_load *l, const char *channel SECOND, const int64_t *x0, void *planes) {
  int64_t from[3], end[3];
  const int64_t item = (int64_t)em_dtype_size(l->dtype), row = l->size[2], sheet = l->size[1] * row, wide = l->stride[2] * l->step[2];
  for (int d = 0; d < 3; d++) N(inside)(l, d, x0[d], &from[d], &end[d]);
  S *to = planes;
  for (int64_t n = 0; n < l->n; n++)
    for (int64_t d = 0; d < l->size[0]; d++, to += sheet) {
      if (d < from[0] || d >= end[0] || from[1] == end[1] || from[2] == end[2]) {
        N(zero)(to, sheet);
        continue;
      }
      const int64_t start = n * l->n_stride + (x0[0] + d * l->step[0]) * l->stride[0] + (x0[2] + from[2] * l->step[2]) * l->stride[2];
      N(zero)(to, from[1] * row + from[2]);
      for (int64_t h = from[1]; h < end[1]; h++) {  // a row, and the zeros up to the next one
        S *line = to + h * row;
        const int64_t at = (start + (x0[1] + h * l->step[1]) * l->stride[1]) * item;
#ifdef PAIRED
        N(load_row)(l, channel + at, second == NULL ? NULL : second + at, wide, line + from[2], end[2] - from[2]);
#else
        N(load_row)(l, channel + at, wide, line + from[2], end[2] - from[2]);
#endif
        N(zero)(line + end[2], h + 1 < end[1] ? row - end[2] + from[2] : row - end[2]);
      }
      N(zero)(to + end[1] * row, (l->size[1] - end[1]) * row);
    }
}
#undef SECOND
