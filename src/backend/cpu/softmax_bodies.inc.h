// softmax_bodies.inc.h: included by softmax_loops.c once for float and once for double, with T, FN(name), EXP,
// EXP_ARRAY, LOG, LOWEST defined. Sums run over 16 lanes that are merged pairwise: the order depends on n alone, not on
// the instruction set.
//
//   softmax      o = exp(a - m) / sum exp(a - m), m the maximum           backward  o = b * (a - sum(a * b))
//   log_softmax  o = a - m - log sum exp(a - m)                           backward  o = a - exp(b) * sum(a)
#define LANES 16
// The last m elements of a row, m < LANES, and `rest` after them. AVX2 and AVX-512 load these under a mask.
static inline __attribute__((always_inline)) void FN(tail)(T *t, const T *a, int64_t m, T rest) {
  for (int i = 0; i < LANES; i++) t[i] = i < m ? a[i] : rest;
}
typedef T FN(half) __attribute__((vector_size(LANES / 2 * sizeof(T))));
typedef T FN(quarter) __attribute__((vector_size(LANES / 4 * sizeof(T))));
static inline T FN(merge)(const T *s) {  // by vectors: short rows spend their time here
  FN(half) a, b;
  FN(quarter) c, d;
  memcpy(&a, s, sizeof a);
  memcpy(&b, s + LANES / 2, sizeof b);
  a += b;
  memcpy(&c, &a, sizeof c);
  memcpy(&d, (char *)&a + sizeof c, sizeof d);
  c += d;
  return (c[0] + c[2]) + (c[1] + c[3]);
}
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
// The largest of those that are not NaN; a NaN comes back through the sum.
static inline T FN(maximum)(const T *a, int64_t n) {
  T m[LANES], h[LANES / 2], q[LANES / 4];
  for (int i = 0; i < LANES; i++) m[i] = -LOWEST;
  int64_t k = 0;
  if (n >= 16 * LANES) {
    T w[4 * LANES];
    for (int i = 0; i < 4 * LANES; i++) w[i] = -LOWEST;
    for (; k + 4 * LANES <= n; k += 4 * LANES)
      for (int i = 0; i < 4 * LANES; i++) w[i] = LARGER(a[k + i], w[i]);
    for (int i = 0; i < 2 * LANES; i++) w[i] = LARGER(w[i + 2 * LANES], w[i]);
    for (int i = 0; i < LANES; i++) m[i] = LARGER(w[i + LANES], w[i]);
  }
  for (; k + LANES <= n; k += LANES)
    for (int i = 0; i < LANES; i++) m[i] = LARGER(a[k + i], m[i]);
  if (k < n) {
    T t[LANES];
    FN(tail)(t, a + k, n - k, -LOWEST);
    for (int i = 0; i < LANES; i++) m[i] = LARGER(t[i], m[i]);
  }
  for (int i = 0; i < LANES / 2; i++) h[i] = LARGER(m[i + LANES / 2], m[i]);
  for (int i = 0; i < LANES / 4; i++) q[i] = LARGER(h[i + LANES / 4], h[i]);
  q[0] = LARGER(q[2], q[0]);
  q[1] = LARGER(q[3], q[1]);
  return LARGER(q[1], q[0]);
}
// s += exp(a - m), and e = exp(a - m), for LANES elements
static inline __attribute__((always_inline)) void FN(exp_lanes)(T *s, T *e, const T *a, T m) {
  for (int i = 0; i < LANES; i++) e[i] = a[i] - m;
  EXP_ARRAY(e, e, LANES);
  for (int i = 0; i < LANES; i++) s[i] += e[i];
}
// o = exp(a - m) when o is given; returns the sum either way
static inline __attribute__((always_inline)) T FN(exp_sum)(T *o, const T *a, T m, int64_t n) {
  T s[LANES] = {0}, e[LANES];
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    FN(exp_lanes)(s, e, a + k, m);
    if (o != NULL) memcpy(o + k, e, sizeof e);
  }
  if (k < n) {
    T t[LANES];
    FN(tail)(t, a + k, n - k, -LOWEST);  // e^-inf adds nothing
    FN(exp_lanes)(s, e, t, m);
    for (int i = 0; o != NULL && i < LANES; i++)
      if (i < n - k) o[k + i] = e[i];
  }
  return FN(merge)(s);
}
static void FN(softmax_row)(void *ov, const void *av, const void *bv, int64_t n, em_softmax_round round) {
  (void)round;
  (void)bv;
  T *o = ov;
  const T *a = av;
  T m = FN(maximum)(a, n), s = FN(exp_sum)(o, a, m, n);
  T r = (T)1 / s;
  for (int64_t k = 0; k < n; k++) o[k] = o[k] * r;
}
static void FN(log_softmax_row)(void *ov, const void *av, const void *bv, int64_t n, em_softmax_round round) {
  (void)bv;
  T *o = ov;
  const T *a = av;
  T m = FN(maximum)(a, n), s = FN(exp_sum)(NULL, a, m, n);
  T l = round == NULL ? LOG(s) : (T)round((float)LOG((T)round((float)s)));
  for (int64_t k = 0; k < n; k++) o[k] = a[k] - m - l;
}
static void FN(softmax_backward_row)(void *ov, const void *av, const void *bv, int64_t n, em_softmax_round round) {
  (void)round;
  T *o = ov, s[LANES] = {0};
  const T *a = av, *b = bv;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES)
    for (int i = 0; i < LANES; i++) s[i] += a[k + i] * b[k + i];
  if (k < n) {
    T x[LANES], y[LANES];
    FN(tail)(x, a + k, n - k, 0);
    FN(tail)(y, b + k, n - k, 0);
    for (int i = 0; i < LANES; i++) s[i] += x[i] * y[i];
  }
  const T t = FN(merge)(s);
  for (k = 0; k < n; k++) o[k] = b[k] * (a[k] - t);
}
static void FN(log_softmax_backward_row)(void *ov, const void *av, const void *bv, int64_t n, em_softmax_round round) {
  (void)round;
  T *o = ov, s[LANES] = {0}, e[EM_SM_BAND];
  const T *a = av, *b = bv;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES)
    for (int i = 0; i < LANES; i++) s[i] += a[k + i];
  if (k < n) {
    T x[LANES];
    FN(tail)(x, a + k, n - k, 0);
    for (int i = 0; i < LANES; i++) s[i] += x[i];
  }
  const T t = FN(merge)(s);
  for (k = 0; k < n; k += EM_SM_BAND) {
    int64_t w = n - k < EM_SM_BAND ? n - k : EM_SM_BAND;
    EXP_ARRAY(e, b + k, w);
    for (int64_t i = 0; i < w; i++) o[k + i] = a[k + i] - e[i] * t;
  }
}

// --- bands: the reduced dim is not the last one, so columns go side by side
static void FN(band_max)(T *m, const T *a, int64_t n, int64_t stride, int64_t w) {
  for (int64_t i = 0; i < w; i++) m[i] = -LOWEST;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) {
      T x = a[k * stride + i];
      m[i] = ((x > m[i]) | (x != x)) ? x : m[i];
    }
}
static void FN(softmax_band)(void *ov, const void *av, const void *bv, int64_t n, int64_t stride, int64_t w) {
  (void)bv;
  T *o = ov, m[EM_SM_BAND], s[EM_SM_BAND];
  const T *a = av;
  FN(band_max)(m, a, n, stride, w);
  for (int64_t i = 0; i < w; i++) s[i] = 0;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < w; i++) o[k * stride + i] = a[k * stride + i] - m[i];
    EXP_ARRAY(o + k * stride, o + k * stride, w);
    for (int64_t i = 0; i < w; i++) s[i] += o[k * stride + i];
  }
  for (int64_t i = 0; i < w; i++) s[i] = (T)1 / s[i];
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) o[k * stride + i] *= s[i];
}
static void FN(log_softmax_band)(void *ov, const void *av, const void *bv, int64_t n, int64_t stride, int64_t w) {
  (void)bv;
  T *o = ov, m[EM_SM_BAND], s[EM_SM_BAND], e[EM_SM_BAND];
  const T *a = av;
  FN(band_max)(m, a, n, stride, w);
  for (int64_t i = 0; i < w; i++) s[i] = 0;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < w; i++) e[i] = a[k * stride + i] - m[i];
    EXP_ARRAY(e, e, w);
    for (int64_t i = 0; i < w; i++) s[i] += e[i];
  }
  for (int64_t i = 0; i < w; i++) s[i] = LOG(s[i]);
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) o[k * stride + i] = a[k * stride + i] - m[i] - s[i];
}
static void FN(softmax_backward_band)(void *ov, const void *av, const void *bv, int64_t n, int64_t stride, int64_t w) {
  T *o = ov, s[EM_SM_BAND];
  const T *a = av, *b = bv;
  for (int64_t i = 0; i < w; i++) s[i] = 0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) s[i] += a[k * stride + i] * b[k * stride + i];
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) o[k * stride + i] = b[k * stride + i] * (a[k * stride + i] - s[i]);
}
static void FN(log_softmax_backward_band)(void *ov, const void *av, const void *bv, int64_t n, int64_t stride,
                                          int64_t w) {
  T *o = ov, s[EM_SM_BAND], e[EM_SM_BAND];
  const T *a = av, *b = bv;
  for (int64_t i = 0; i < w; i++) s[i] = 0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < w; i++) s[i] += a[k * stride + i];
  for (int64_t k = 0; k < n; k++) {
    EXP_ARRAY(e, b + k * stride, w);
    for (int64_t i = 0; i < w; i++) o[k * stride + i] = a[k * stride + i] - e[i] * s[i];
  }
}
#undef LANES
#undef LARGER
