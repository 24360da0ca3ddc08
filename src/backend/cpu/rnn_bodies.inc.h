// rnn_bodies.inc.h: included by rnn_loops.c once for float and once for double, with T, FN(name), SIGMOID and TANH (on arrays).
static void FN(lstm)(int64_t h, void *gates, void *cell, void *tanh_cell, void *out) {
  T *g = gates, *c = cell, *tc = tanh_cell, *o = out;
  SIGMOID(g, g, 2 * h);
  TANH(g + 2 * h, g + 2 * h, h);
  SIGMOID(g + 3 * h, g + 3 * h, h);
  for (int64_t j = 0; j < h; j++) c[j] = g[h + j] * c[j] + g[j] * g[2 * h + j];
  TANH(tc, c, h);
  for (int64_t j = 0; j < h; j++) o[j] = g[3 * h + j] * tc[j];
}
static void FN(lstm_backward)(int64_t h, const void *gates, const void *c_before, const void *tanh_cell, const void *grad, void *grad_cell,
                              void *dgates) {
  const T *i = gates, *f = i + h, *g = f + h, *o = g + h, *c = c_before, *tc = tanh_cell, *dh = grad;
  T *dc = grad_cell, *di = dgates, *df = di + h, *dg = df + h, *d_o = dg + h;
#pragma omp simd
  for (int64_t j = 0; j < h; j++) {
    const T all = dc[j] + dh[j] * o[j] * ((T)1 - tc[j] * tc[j]);
    di[j] = all * g[j] * i[j] * ((T)1 - i[j]);
    df[j] = all * c[j] * f[j] * ((T)1 - f[j]);
    dg[j] = all * i[j] * ((T)1 - g[j] * g[j]);
    d_o[j] = dh[j] * tc[j] * o[j] * ((T)1 - o[j]);
    dc[j] = all * f[j];
  }
}
static void FN(gru)(int64_t h, void *gates, const void *bias, void *hidden) {
  T *r = gates, *z = r + h, *n = z + h, *hn = n + h, *x = hidden;
  const T *b = bias;
  SIGMOID(r, r, 2 * h);
  if (b != NULL)
    for (int64_t j = 0; j < h; j++) hn[j] += b[j];
  for (int64_t j = 0; j < h; j++) n[j] += r[j] * hn[j];
  TANH(n, n, h);
  for (int64_t j = 0; j < h; j++) x[j] = (x[j] - n[j]) * z[j] + n[j];
}
static void FN(gru_backward)(int64_t h, const void *gates, const void *hidden_before, void *grad, void *dgates) {
  const T *r = gates, *z = r + h, *n = z + h, *hn = n + h, *before = hidden_before;
  T *dh = grad, *dr = dgates, *dz = dr + h, *dhn = dz + h, *dn = dhn + h;
#pragma omp simd
  for (int64_t j = 0; j < h; j++) {
    const T d = dh[j] * ((T)1 - z[j]) * ((T)1 - n[j] * n[j]);
    dr[j] = d * hn[j] * r[j] * ((T)1 - r[j]);
    dz[j] = dh[j] * (before[j] - n[j]) * z[j] * ((T)1 - z[j]);
    dn[j] = d;
    dhn[j] = d * r[j];
    dh[j] *= z[j];
  }
}
static void FN(simple)(int64_t h, int relu, void *values) {
  T *x = values;
  if (relu)
    for (int64_t j = 0; j < h; j++) x[j] = x[j] < 0 ? 0 : x[j];  // NaN stays
  else TANH(x, x, h);
}
static void FN(simple_backward)(int64_t h, int relu, const void *result, const void *grad, void *dgates) {
  const T *y = result, *dh = grad;
  T *d = dgates;
  if (relu)
    for (int64_t j = 0; j < h; j++) d[j] = y[j] <= 0 ? 0 : dh[j];
  else
    for (int64_t j = 0; j < h; j++) d[j] = dh[j] * ((T)1 - y[j] * y[j]);
}
static void FN(add)(int64_t h, void *to, const void *from) {
  T *a = to;
  const T *b = from;
  for (int64_t j = 0; j < h; j++) a[j] += b[j];
}
static void FN(column_sums)(int64_t rows, int64_t cols, int64_t ld, const void *x, void *to) {
  const T *a = x;
  T *sums = to;
  for (int64_t j = 0; j < cols; j++) sums[j] = 0;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, a += 4 * ld)
    for (int64_t j = 0; j < cols; j++) sums[j] += (a[j] + a[ld + j]) + (a[2 * ld + j] + a[3 * ld + j]);
  for (; i < rows; i++, a += ld)
    for (int64_t j = 0; j < cols; j++) sums[j] += a[j];
}
