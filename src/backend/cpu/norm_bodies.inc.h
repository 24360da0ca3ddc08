// norm_bodies.inc.h: included by norm_loops.c once a storage dtype, with T (storage), C (compute), LD(x), ST(x), FN(name)
// and WIDE (16 compute elements as one vector) defined.
#define LANES 16
#define BLOCK 4096  // elements whose sum is made in compute precision
static inline __attribute__((always_inline)) void FN(load)(WIDE *v, const T *p) {
  C t[LANES];
  for (int i = 0; i < LANES; i++) t[i] = LD(p[i]);
  memcpy(v, t, sizeof t);
}
static inline __attribute__((always_inline)) void FN(loadc)(WIDE *v, const C *p) { memcpy(v, p, sizeof *v); }
static inline __attribute__((always_inline)) void FN(store)(T *p, const WIDE *v) {
  C t[LANES];
  memcpy(t, v, sizeof t);
  for (int i = 0; i < LANES; i++) p[i] = ST(t[i]);
}
// The lanes' sum, with the elements that filled no vector already added to the first lanes.
static inline __attribute__((always_inline)) double FN(merge)(const WIDE *v, const C *tail, int64_t n) {
  C t[LANES];
  memcpy(t, v, sizeof t);
  for (int64_t i = 0; i < n; i++) t[i] += tail[i];
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) t[i] += t[i + w];
  return (double)t[0];
}

static double FN(sum)(const void *xv, int64_t n) {
  const T *x = xv;
  double total = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const T *p = x + at;
    WIDE s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, v;
    int64_t k = 0;
    for (; k + 4 * LANES <= m; k += 4 * LANES) {
      FN(load)(&v, p + k), s0 += v;
      FN(load)(&v, p + k + LANES), s1 += v;
      FN(load)(&v, p + k + 2 * LANES), s2 += v;
      FN(load)(&v, p + k + 3 * LANES), s3 += v;
    }
    for (; k + LANES <= m; k += LANES) FN(load)(&v, p + k), s0 += v;
    C tail[LANES];
    for (int64_t i = 0; i < m - k; i++) tail[i] = LD(p[k + i]);
    s0 = (s0 + s1) + (s2 + s3);
    total += FN(merge)(&s0, tail, m - k);
  }
  return total;
}
static double FN(squares)(const void *xv, int64_t n, double mean) {
  const T *x = xv;
  const C mu = (C)mean;
  double total = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const T *p = x + at;
    WIDE s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, v;
    int64_t k = 0;
    for (; k + 4 * LANES <= m; k += 4 * LANES) {
      FN(load)(&v, p + k), v -= mu, s0 += v * v;
      FN(load)(&v, p + k + LANES), v -= mu, s1 += v * v;
      FN(load)(&v, p + k + 2 * LANES), v -= mu, s2 += v * v;
      FN(load)(&v, p + k + 3 * LANES), v -= mu, s3 += v * v;
    }
    for (; k + LANES <= m; k += LANES) FN(load)(&v, p + k), v -= mu, s0 += v * v;
    C tail[LANES];
    for (int64_t i = 0; i < m - k; i++) {
      const C d = LD(p[k + i]) - mu;
      tail[i] = d * d;
    }
    s0 = (s0 + s1) + (s2 + s3);
    total += FN(merge)(&s0, tail, m - k);
  }
  return total;
}
static void FN(dot)(const void *dyv, const void *xv, int64_t n, double mean, double *s) {
  const T *dy = dyv, *x = xv;
  const C mu = (C)mean;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const T *p = dy + at, *q = x + at;
    WIDE a0 = {0}, a1 = {0}, b0 = {0}, b1 = {0}, g, v;
    int64_t k = 0;
    for (; k + 2 * LANES <= m; k += 2 * LANES) {
      FN(load)(&g, p + k), FN(load)(&v, q + k), v -= mu, a0 += g, b0 += g * v;
      FN(load)(&g, p + k + LANES), FN(load)(&v, q + k + LANES), v -= mu, a1 += g, b1 += g * v;
    }
    for (; k + LANES <= m; k += LANES) FN(load)(&g, p + k), FN(load)(&v, q + k), v -= mu, a0 += g, b0 += g * v;
    C ta[LANES], tb[LANES];
    for (int64_t i = 0; i < m - k; i++) {
      ta[i] = LD(p[k + i]);
      tb[i] = ta[i] * (LD(q[k + i]) - mu);
    }
    a0 += a1, b0 += b1;
    s[0] += FN(merge)(&a0, ta, m - k);
    s[1] += FN(merge)(&b0, tb, m - k);
  }
}
static void FN(scale)(void *ov, const void *xv, int64_t n, double mean, double ad, double bd) {
  T *o = ov;
  const T *x = xv;
  const C mu = (C)mean, a = (C)ad, b = (C)bd;
  for (int64_t k = 0; k < n; k++) o[k] = ST((LD(x[k]) - mu) * a + b);
}
static void FN(mix)(void *ov, const void *dyv, const void *xv, int64_t n, double mean, double ad, double bd, double cd) {
  T *o = ov;
  const T *dy = dyv, *x = xv;
  const C mu = (C)mean, a = (C)ad, b = (C)bd, c = (C)cd;
  for (int64_t k = 0; k < n; k++) o[k] = ST(LD(dy[k]) * a + (LD(x[k]) - mu) * b + c);
}

// --- rows
static void FN(row)(void *ov, const void *xv, int64_t n, const void *gv, const void *bv, double mean, double rstd) {
  T *o = ov;
  const T *x = xv;
  const C *g = gv, *b = bv, mu = (C)mean, r = (C)rstd;
  if (g != NULL && b != NULL)
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(x[k]) - mu) * r * g[k] + b[k]);
  else if (g != NULL)
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(x[k]) - mu) * r * g[k]);
  else if (b != NULL)
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(x[k]) - mu) * r + b[k]);
  else
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(x[k]) - mu) * r);
}
// Sums of one block; `g`, `dg`, `db` may be NULL, which is constant where this is inlined.
static inline __attribute__((always_inline)) void FN(row_block)(const T *dy, const T *x, int64_t n, const C *g, C mu,
                                                                C r, C *dg, C *db, double *s) {
  WIDE a = {0}, b = {0}, e, v, w, t;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    FN(load)(&e, dy + k), FN(load)(&v, x + k);
    v = (v - mu) * r;
    if (dg != NULL) FN(loadc)(&t, dg + k), t += e * v, memcpy(dg + k, &t, sizeof t);
    if (db != NULL) FN(loadc)(&t, db + k), t += e, memcpy(db + k, &t, sizeof t);
    if (g != NULL) FN(loadc)(&w, g + k), e *= w;
    a += e, b += e * v;
  }
  C ta[LANES], tb[LANES];
  for (int64_t i = 0; i < n - k; i++) {
    const C d = LD(dy[k + i]), h = (LD(x[k + i]) - mu) * r;
    if (dg != NULL) dg[k + i] += d * h;
    if (db != NULL) db[k + i] += d;
    ta[i] = g != NULL ? d * g[k + i] : d;
    tb[i] = ta[i] * h;
  }
  s[0] += FN(merge)(&a, ta, n - k);
  s[1] += FN(merge)(&b, tb, n - k);
}
static void FN(row_dot)(const void *dyv, const void *xv, int64_t n, const void *gv, double mean, double rstd, void *dgv,
                        void *dbv, double *s) {
  const T *dy = dyv, *x = xv;
  const C *g = gv, mu = (C)mean, r = (C)rstd;
  C *dg = dgv, *db = dbv;
  s[0] = s[1] = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const T *p = dy + at, *q = x + at;
    if (g != NULL && dg != NULL && db != NULL) FN(row_block)(p, q, m, g + at, mu, r, dg + at, db + at, s);
    else if (g != NULL && dg != NULL) FN(row_block)(p, q, m, g + at, mu, r, dg + at, NULL, s);
    else if (g == NULL && dg == NULL && db == NULL) FN(row_block)(p, q, m, NULL, mu, r, NULL, NULL, s);
    else FN(row_block)(p, q, m, g == NULL ? NULL : g + at, mu, r, dg == NULL ? NULL : dg + at,
                       db == NULL ? NULL : db + at, s);
  }
}
static void FN(row_mix)(void *ov, const void *dyv, const void *xv, int64_t n, const void *gv, double mean, double rstd,
                        double c1d, double c2d) {
  T *o = ov;
  const T *dy = dyv, *x = xv;
  const C *g = gv, mu = (C)mean, r = (C)rstd, c1 = (C)c1d, c2 = (C)(c2d * rstd);
  if (g != NULL)
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(dy[k]) * g[k] - c1 - (LD(x[k]) - mu) * c2) * r);
  else
    for (int64_t k = 0; k < n; k++) o[k] = ST((LD(dy[k]) - c1 - (LD(x[k]) - mu) * c2) * r);
}

// --- columns: sums over STEP rows in compute precision, then in double
#define STEP 64
static void FN(column_sum)(const void *xv, int64_t rows, int64_t stride, int64_t w, double *s) {
  const T *x = xv;
  C t[EM_NORM_COLUMNS];
  for (int64_t r = 0; r < rows; r += STEP) {
    const int64_t end = rows - r < STEP ? rows : r + STEP;
    for (int64_t i = 0; i < w; i++) t[i] = 0;
    for (int64_t k = r; k < end; k++)
      for (int64_t i = 0; i < w; i++) t[i] += LD(x[k * stride + i]);
    for (int64_t i = 0; i < w; i++) s[i] += (double)t[i];
  }
}
static void FN(column_squares)(const void *xv, int64_t rows, int64_t stride, int64_t w, const double *mean, double *s) {
  const T *x = xv;
  C t[EM_NORM_COLUMNS], mu[EM_NORM_COLUMNS];
  for (int64_t i = 0; i < w; i++) mu[i] = (C)mean[i];
  for (int64_t r = 0; r < rows; r += STEP) {
    const int64_t end = rows - r < STEP ? rows : r + STEP;
    for (int64_t i = 0; i < w; i++) t[i] = 0;
    for (int64_t k = r; k < end; k++)
      for (int64_t i = 0; i < w; i++) {
        const C d = LD(x[k * stride + i]) - mu[i];
        t[i] += d * d;
      }
    for (int64_t i = 0; i < w; i++) s[i] += (double)t[i];
  }
}
static void FN(column_dot)(const void *dyv, const void *xv, int64_t rows, int64_t stride, int64_t w, const double *mean,
                           double *s0, double *s1) {
  const T *dy = dyv, *x = xv;
  C a[EM_NORM_COLUMNS], b[EM_NORM_COLUMNS], mu[EM_NORM_COLUMNS];
  for (int64_t i = 0; i < w; i++) mu[i] = (C)mean[i];
  for (int64_t r = 0; r < rows; r += STEP) {
    const int64_t end = rows - r < STEP ? rows : r + STEP;
    for (int64_t i = 0; i < w; i++) a[i] = b[i] = 0;
    for (int64_t k = r; k < end; k++)
      for (int64_t i = 0; i < w; i++) {
        const C d = LD(dy[k * stride + i]);
        a[i] += d;
        b[i] += d * (LD(x[k * stride + i]) - mu[i]);
      }
    for (int64_t i = 0; i < w; i++) s0[i] += (double)a[i], s1[i] += (double)b[i];
  }
}
static void FN(column_scale)(void *ov, const void *xv, int64_t rows, int64_t stride, int64_t w, const double *mean,
                             const double *ad, const double *bd) {
  T *o = ov;
  const T *x = xv;
  C mu[EM_NORM_COLUMNS], a[EM_NORM_COLUMNS], b[EM_NORM_COLUMNS];
  for (int64_t i = 0; i < w; i++) mu[i] = (C)mean[i], a[i] = (C)ad[i], b[i] = (C)bd[i];
  for (int64_t k = 0; k < rows; k++)
    for (int64_t i = 0; i < w; i++) o[k * stride + i] = ST((LD(x[k * stride + i]) - mu[i]) * a[i] + b[i]);
}
static void FN(column_mix)(void *ov, const void *dyv, const void *xv, int64_t rows, int64_t stride, int64_t w,
                           const double *mean, const double *ad, const double *bd, const double *cd) {
  T *o = ov;
  const T *dy = dyv, *x = xv;
  C mu[EM_NORM_COLUMNS], a[EM_NORM_COLUMNS], b[EM_NORM_COLUMNS], c[EM_NORM_COLUMNS];
  for (int64_t i = 0; i < w; i++) mu[i] = (C)mean[i], a[i] = (C)ad[i], b[i] = (C)bd[i], c[i] = (C)cd[i];
  for (int64_t k = 0; k < rows; k++)
    for (int64_t i = 0; i < w; i++)
      o[k * stride + i] = ST(LD(dy[k * stride + i]) * a[i] + (LD(x[k * stride + i]) - mu[i]) * b[i] + c[i]);
}
#undef STEP
#undef LANES
#undef BLOCK
#define TABLE                                                                                                       \
  {FN(sum), FN(squares), FN(dot), FN(scale), FN(mix), FN(row), FN(row_dot), FN(row_mix), FN(column_sum),           \
   FN(column_squares), FN(column_dot), FN(column_scale), FN(column_mix)}
static const em_norm_table FN(table) = TABLE;
#undef TABLE
