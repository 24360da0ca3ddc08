// softmax_bodies.inc.h: included by softmax_loops.c once for float and once for double, with T, FN(name), EXP,
// EXP_ARRAY, LOG, LOWEST defined. Sums run over 16 lanes that are merged pairwise: the order depends on n alone, not on
// the instruction set.
//
//   softmax      o = exp(a - m) / sum exp(a - m), m the maximum           backward  o = b * (a - sum(a * b))
//   log_softmax  o = a - m - log sum exp(a - m)                           backward  o = a - exp(b) * sum(a)
#define LANES 16
// The last m elements of a row, m < LANES, and `rest` after them. AVX2 and AVX-512 load these under a mask.
static inline __attribute__((always_inline)) void FN(tail)(T *t, const T *a, int m, T rest) {
  _Pragma("omp simd") for (int i = 0; i < LANES; i++) t[i] = i < m ? a[i] : rest;
}
typedef T FN(half) __attribute__((vector_size(LANES / 2 * sizeof(T))));
typedef T FN(quarter) __attribute__((vector_size(LANES / 4 * sizeof(T))));
// LANES sums. They are added to as vectors: of a loop over an array gcc 12 makes 16 scalars.
typedef struct FN(sums) {
  FN(half) low, high;
} FN(sums);
static inline __attribute__((always_inline)) void FN(sum_add)(FN(sums) *s, const T *e) {
  FN(half) a, b;
  memcpy(&a, e, sizeof a);
  memcpy(&b, e + LANES / 2, sizeof b);
  s->low += a;
  s->high += b;
}
static inline T FN(merge)(const FN(sums) *s) {  // by vectors: short rows spend their time here
  FN(half) a = s->low + s->high;
  FN(quarter) c, d;
  memcpy(&c, &a, sizeof c);
  memcpy(&d, (char *)&a + sizeof c, sizeof d);
  c += d;
  return (c[0] + c[2]) + (c[1] + c[3]);
}
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
// The largest of those that are not NaN; a NaN comes back through the sum.
static inline T FN(maximum)(const T *a, int64_t n) {
  T m[LANES], h[LANES / 2], q[LANES / 4];
  int64_t k = 0;
  for (int i = 0; i < LANES; i++) m[i] = -LOWEST;
  if (n >= 4 * LANES) {
    T w[4 * LANES];
    for (int i = 0; i < 4 * LANES; i++) w[i] = -LOWEST;
    for (; k + 4 * LANES <= n; k += 4 * LANES)
      for (int i = 0; i < 4 * LANES; i++) w[i] = LARGER(a[k + i], w[i]);
    for (int i = 0; i < 2 * LANES; i++) w[i] = LARGER(w[i + 2 * LANES], w[i]);
    for (int i = 0; i < LANES; i++) m[i] = LARGER(w[i + LANES], w[i]);
  }
  for (; k < n && n >= LANES; k += LANES) {
    const T *last = a + (k + LANES <= n ? k : n - LANES);  // looking twice at an element changes no maximum
    _Pragma("omp simd") for (int i = 0; i < LANES; i++) m[i] = LARGER(last[i], m[i]);
  }
  if (n < LANES) FN(tail)(m, a, (int)n, -LOWEST);
  if (n < LANES)
    for (int i = 0; i < LANES; i++) m[i] = LARGER(m[i], -LOWEST);
  for (int i = 0; i < LANES / 2; i++) h[i] = LARGER(m[i + LANES / 2], m[i]);
  for (int i = 0; i < LANES / 4; i++) q[i] = LARGER(h[i + LANES / 4], h[i]);
  q[0] = LARGER(q[2], q[0]);
  q[1] = LARGER(q[3], q[1]);
  return LARGER(q[1], q[0]);
}
// s += exp(a - m), and e = exp(a - m), for LANES elements
static inline __attribute__((always_inline)) void FN(exp_lanes)(FN(sums) *s, T *e, const T *a, T m) {
  for (int i = 0; i < LANES; i++) e[i] = a[i] - m;
  EXP_ARRAY(e, e, LANES);
  FN(sum_add)(s, e);
}
// o = exp(a - m) when o is given; returns the sum either way
static inline __attribute__((always_inline)) T FN(exp_sum)(T *o, const T *a, T m, int64_t n) {
  FN(sums) s = {0};
  T e[LANES];
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    FN(exp_lanes)(&s, e, a + k, m);
    if (o != NULL) memcpy(o + k, e, sizeof e);
  }
  if (k < n) {
    const int rest = (int)(n - k);
    FN(tail)(e, a + k, rest, m);
    _Pragma("omp simd") for (int i = 0; i < LANES; i++) e[i] -= m;
    EXP_ARRAY(e, e, LANES);
    _Pragma("omp simd") for (int i = 0; i < LANES; i++) e[i] = i < rest ? e[i] : 0;
    FN(sum_add)(&s, e);
    if (o != NULL) memcpy(o + k, e, (size_t)(n - k) * sizeof(T));
  }
  return FN(merge)(&s);
}
// Forward, `rows` rows of n. Rows of one group take each step together: nothing in a step waits for the row before.
static inline int64_t FN(group)(int64_t n, int64_t rows) {
  const int64_t most = n * (int64_t)sizeof(T) > EM_SM_GROUP_BYTES / EM_SM_GROUP ? 1 : EM_SM_GROUP;
  return rows < most ? rows : most;
}
static void FN(softmax_rows)(void *ov, const void *av, const void *bv, int64_t n, int64_t rows, em_softmax_round round) {
  (void)round;
  (void)bv;
  T *o = ov, m[EM_SM_GROUP], s[EM_SM_GROUP];
  const T *a = av;
  while (rows > 0) {
    const int64_t g = FN(group)(n, rows);
    for (int64_t i = 0; i < g; i++) m[i] = FN(maximum)(a + i * n, n);
    for (int64_t i = 0; i < g; i++) s[i] = FN(exp_sum)(o + i * n, a + i * n, m[i], n);
    for (int64_t i = 0; i < g; i++) {
      const T r = (T)1 / s[i];
      T *y = o + i * n;
      for (int64_t k = 0; k < n; k++) y[k] = y[k] * r;
    }
    o += g * n;
    a += g * n;
    rows -= g;
  }
}
static void FN(log_softmax_rows)(void *ov, const void *av, const void *bv, int64_t n, int64_t rows,
                                 em_softmax_round round) {
  (void)bv;
  T *o = ov, m[EM_SM_GROUP], s[EM_SM_GROUP];
  const T *a = av;
  while (rows > 0) {
    const int64_t g = FN(group)(n, rows);
    for (int64_t i = 0; i < g; i++) m[i] = FN(maximum)(a + i * n, n);
    for (int64_t i = 0; i < g; i++) s[i] = FN(exp_sum)(NULL, a + i * n, m[i], n);
    for (int64_t i = 0; round != NULL && i < g; i++) s[i] = (T)round((float)s[i]);
    for (int64_t i = 0; i < g; i++) s[i] = LOG(s[i]);
    for (int64_t i = 0; round != NULL && i < g; i++) s[i] = (T)round((float)s[i]);
    for (int64_t i = 0; i < g; i++) {
      const T first = m[i], second = s[i], *x = a + i * n;
      T *y = o + i * n;
      for (int64_t k = 0; k < n; k++) y[k] = x[k] - first - second;
    }
    o += g * n;
    a += g * n;
    rows -= g;
  }
}
static void FN(softmax_backward_row)(T *o, const T *a, const T *b, int64_t n) {
  T e[LANES];
  FN(sums) s = {0};
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) {
    for (int i = 0; i < LANES; i++) e[i] = a[k + i] * b[k + i];
    FN(sum_add)(&s, e);
  }
  if (k < n) {
    T x[LANES], y[LANES];
    FN(tail)(x, a + k, (int)(n - k), 0);
    FN(tail)(y, b + k, (int)(n - k), 0);
    for (int i = 0; i < LANES; i++) e[i] = x[i] * y[i];
    FN(sum_add)(&s, e);
  }
  const T t = FN(merge)(&s);
  for (k = 0; k < n; k++) o[k] = b[k] * (a[k] - t);
}
static void FN(log_softmax_backward_row)(T *o, const T *a, const T *b, int64_t n) {
  T e[EM_SM_BAND];
  FN(sums) s = {0};
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES) FN(sum_add)(&s, a + k);
  if (k < n) {
    T x[LANES];
    FN(tail)(x, a + k, (int)(n - k), 0);
    FN(sum_add)(&s, x);
  }
  const T t = FN(merge)(&s);
  for (k = 0; k < n; k += EM_SM_BAND) {
    int64_t w = n - k < EM_SM_BAND ? n - k : EM_SM_BAND;
    EXP_ARRAY(e, b + k, w);
    for (int64_t i = 0; i < w; i++) o[k + i] = a[k + i] - e[i] * t;
  }
}
#define BACKWARD(name)                                                                                             \
  static void FN(name##_rows)(void *ov, const void *av, const void *bv, int64_t n, int64_t rows,                   \
                              em_softmax_round round) {                                                            \
    (void)round;                                                                                                   \
    for (int64_t i = 0; i < rows; i++) FN(name##_row)((T *)ov + i * n, (const T *)av + i * n, (const T *)bv + i * n, n); \
  }
BACKWARD(softmax_backward)
BACKWARD(log_softmax_backward)
#undef BACKWARD

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
