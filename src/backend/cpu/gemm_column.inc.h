// gemm_column.inc.h: products with one column, and dot products, for float and double. Included after gemm_bodies.inc.h with the same
// macros. Both read each element once, so what counts is to read along memory.

// Four vectors of partial sums, whose number depends on nothing but n.
static inline T N(dot_run)(int64_t n, const T *a, const T *b) {
  N(vec) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  int64_t i = 0;
  for (; i + 4 * N(L) <= n; i += 4 * N(L)) {
    s0 = FMA(*(const N(vecu) *)(a + i), *(const N(vecu) *)(b + i), s0);
    s1 = FMA(*(const N(vecu) *)(a + i + N(L)), *(const N(vecu) *)(b + i + N(L)), s1);
    s2 = FMA(*(const N(vecu) *)(a + i + 2 * N(L)), *(const N(vecu) *)(b + i + 2 * N(L)), s2);
    s3 = FMA(*(const N(vecu) *)(a + i + 3 * N(L)), *(const N(vecu) *)(b + i + 3 * N(L)), s3);
  }
  for (; i + N(L) <= n; i += N(L)) s0 = FMA(*(const N(vecu) *)(a + i), *(const N(vecu) *)(b + i), s0);
  s0 = (s0 + s1) + (s2 + s3);
  T sum = 0;
  for (int l = 0; l < N(L); l++) sum += s0[l];
  for (; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// n elements as T: where they lie when they are T side by side, else copied to `line`.
static inline const T *N(run)(T *line, int dtype, const char *from, int64_t stride, int64_t n) {
  const int64_t item = (int64_t)em_dtype_size(dtype);
  if (dtype == COMPUTE && stride == 1) return (const T *)from;
  em_cast_load(line, COMPUTE, from, dtype, stride * item, n);
  return line;
}

// sums[r] += A[i0 + r, k0 ... k0 + kc] . x
static void N(column_rows)(const em_gemm *g, int64_t i0, int64_t m, int64_t k0, int64_t kc, const T *x, T *sums) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  T line[COLUMN_RUN];
  const char *from = g->a.data + (i0 * g->a.row + k0 * g->a.col) * item;
  for (int64_t r = 0; r < m; r++) sums[r] += N(dot_run)(kc, N(run)(line, g->dtype, from + r * g->a.row * item, g->a.col, kc), x);
}
// The same where A lies column by column.
static void N(column_columns)(const em_gemm *g, int64_t i0, int64_t m, int64_t k0, int64_t kc, const T *x, T *sums) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  T lines[4][COLUMN_ROWS];
  const char *from = g->a.data + (i0 * g->a.row + k0 * g->a.col) * item;
  int64_t p = 0;
  for (; p + 4 <= kc; p += 4) {
    const T *a0 = N(run)(lines[0], g->dtype, from + p * g->a.col * item, 1, m);
    const T *a1 = N(run)(lines[1], g->dtype, from + (p + 1) * g->a.col * item, 1, m);
    const T *a2 = N(run)(lines[2], g->dtype, from + (p + 2) * g->a.col * item, 1, m);
    const T *a3 = N(run)(lines[3], g->dtype, from + (p + 3) * g->a.col * item, 1, m);
    for (int64_t r = 0; r < m; r++) sums[r] += (a0[r] * x[p] + a1[r] * x[p + 1]) + (a2[r] * x[p + 2] + a3[r] * x[p + 3]);
  }
  for (; p < kc; p++) {
    const T *a0 = N(run)(lines[0], g->dtype, from + p * g->a.col * item, 1, m);
    for (int64_t r = 0; r < m; r++) sums[r] += a0[r] * x[p];
  }
}

static void N(column)(const em_gemm *g) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  T line[COLUMN_RUN], sums[COLUMN_ROWS];
  for (int64_t i = 0; i < g->m; i += COLUMN_ROWS) {
    const int64_t m = g->m - i < COLUMN_ROWS ? g->m - i : COLUMN_ROWS;
    memset(sums, 0, (size_t)m * sizeof(T));
    for (int64_t k0 = 0; k0 < g->k; k0 += COLUMN_RUN) {
      const int64_t kc = g->k - k0 < COLUMN_RUN ? g->k - k0 : COLUMN_RUN;
      const T *x = N(run)(line, g->dtype, g->b.data + k0 * g->b.row * item, g->b.row, kc);
      if (g->a.row == 1 && g->a.col != 1) N(column_columns)(g, i, m, k0, kc, x, sums);
      else N(column_rows)(g, i, m, k0, kc, x, sums);
    }
    em_gemm row = *g;  // the column of C as a row
    row.n = m;
    row.c = (em_matrix){g->c.data + i * g->c.row * item, 0, g->c.row, 0};
    row.s = (em_matrix){g->s.data == NULL ? NULL : g->s.data + i * g->s.row * item, 0, g->s.row, 0};
    N(put_row)(&row, 0, sums, NULL);
  }
}

static T N(dot)(int dtype, int64_t n, const char *a, int64_t as, const char *b, int64_t bs) {
  const int64_t item = (int64_t)em_dtype_size(dtype);
  T la[COLUMN_RUN], lb[COLUMN_RUN], sum = 0;
  for (int64_t i = 0; i < n; i += COLUMN_RUN) {
    const int64_t w = n - i < COLUMN_RUN ? n - i : COLUMN_RUN;
    sum += N(dot_run)(w, N(run)(la, dtype, a + i * as * item, as, w), N(run)(lb, dtype, b + i * bs * item, bs, w));
  }
  return sum;
}

static void N(dot_pair)(bool conj, int64_t n, const T *a, int64_t as, const T *b, int64_t bs, T *out) {
  T re = 0, im = 0;
  const T sign = conj ? -1 : 1;
  for (int64_t i = 0; i < n; i++) {
    const T ar = a[2 * i * as], ai = sign * a[2 * i * as + 1], br = b[2 * i * bs], bi = b[2 * i * bs + 1];
    re += ar * br - ai * bi;
    im += ar * bi + ai * br;
  }
  out[0] = re;
  out[1] = im;
}
