// conv_store.inc.h: sums into results, and weights into rows. Included by conv_loops.c with T, COMPUTE, N(name).
static inline void N(store_row)(const em_conv_store *s, char *to, const T *from, T bias) {
  const int64_t n = s->size[2], stride = s->stride[2];
  if (s->dtype == COMPUTE) {
    T *t = (T *)to;
    int64_t i = 0;
    if (stride == 1) {
      for (; i + N(L) <= n; i += N(L)) *(N(vecu) *)(t + i) = *(const N(vecu) *)(from + i) + bias;
      if (i < n && i > 0) *(N(vecu) *)(t + n - N(L)) = *(const N(vecu) *)(from + n - N(L)) + bias;  // the last one again, further left
      else for (; i < n; i++) t[i] = from[i] + bias;
    } else {
      for (; i < n; i++) t[i * stride] = from[i] + bias;
    }
    return;
  }
  T line[256];
  const int64_t bytes = stride * (int64_t)em_dtype_size(s->dtype);
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t w = n - at < 256 ? n - at : 256;
    for (int64_t i = 0; i < w; i++) line[i] = from[at + i] + bias;
    em_cast_store(to + at * bytes, s->dtype, bytes, line, COMPUTE, w);
  }
}
static void N(store)(const em_conv_store *s, char *channel, const void *planes, const void *bias) {
  const int64_t item = (int64_t)em_dtype_size(s->dtype);
  const T b = bias == NULL ? 0 : *(const T *)bias;
  for (int64_t n = 0; n < s->n; n++)
    for (int64_t d = 0; d < s->size[0]; d++)
      for (int64_t h = 0; h < s->size[1]; h++)
        N(store_row)(s, channel + (n * s->n_stride + d * s->stride[0] + h * s->stride[1]) * item,
                     (const T *)planes + n * s->from_n + d * s->from[0] + h * s->from[1], b);
}
static void N(gather)(const void *from, const void *second, const int64_t *at, int64_t n, void *to) {
  (void)second;
  for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[at[i]];
}
