// softmax_bodies.inc.h: included by softmax_loops.c once for float and once for double, with T, FN(name), EXP,
// EXP_ARRAY, LOG, LOWEST defined. Sums run over 16 lanes that are merged pairwise: the order depends on n alone, not on
// the instruction set.
//
//   softmax      o = exp(a - m) / sum exp(a - m), m the maximum           backward  o = b * (a - sum(a * b))
//   log_softmax  o = a - m - log sum exp(a - m)                           backward  o = a - exp(b) * sum(a)
#define LANES 16
static inline T FN(merge)(T *s) {
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) s[i] += s[i + w];
  return s[0];
}
// The largest of those that are not NaN; a NaN comes back through the sum.
static inline T FN(maximum)(const T *a, int64_t n) {
  T m[4 * LANES];
  for (int i = 0; i < 4 * LANES; i++) m[i] = -LOWEST;
  int64_t k = 0;
  for (; k + 4 * LANES <= n; k += 4 * LANES)
    for (int i = 0; i < 4 * LANES; i++) m[i] = a[k + i] > m[i] ? a[k + i] : m[i];
  for (; k < n; k++) m[0] = a[k] > m[0] ? a[k] : m[0];
  for (int w = 2 * LANES; w > 0; w /= 2)
    for (int i = 0; i < w; i++) m[i] = m[i + w] > m[i] ? m[i + w] : m[i];
  return m[0];
}
// s += exp(a - m), and o = exp(a - m) when o is given, for LANES elements
static inline __attribute__((always_inline)) void FN(exp_lanes)(T *s, T *o, const T *a, T m) {
  T e[LANES];
  for (int i = 0; i < LANES; i++) e[i] = a[i] - m;
  EXP_ARRAY(e, e, LANES);
  for (int i = 0; i < LANES; i++) s[i] += e[i];
  if (o != NULL) memcpy(o, e, sizeof e);
}
// o = exp(a - m) when o is given; returns the sum either way
static inline T FN(exp_sum)(T *o, const T *a, T m, int64_t n) {
  T s[LANES] = {0};
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES)
    FN(exp_lanes)(s, o == NULL ? NULL : o + k, a + k, m);
  for (; k < n; k++) {
    T e = EXP(a[k] - m);
    s[0] += e;
    if (o != NULL) o[k] = e;
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
  for (; k < n; k++) s[0] += a[k] * b[k];
  T t = FN(merge)(s);
  for (k = 0; k < n; k++) o[k] = b[k] * (a[k] - t);
}
static void FN(log_softmax_backward_row)(void *ov, const void *av, const void *bv, int64_t n, em_softmax_round round) {
  (void)round;
  T *o = ov, s[LANES] = {0};
  const T *a = av, *b = bv;
  int64_t k = 0;
  for (; k + LANES <= n; k += LANES)
    for (int i = 0; i < LANES; i++) s[i] += a[k + i];
  for (; k < n; k++) s[0] += a[k];
  T t = FN(merge)(s), e[EM_SM_BAND];
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
