// attention_bodies.inc.h: included by attention_loops.c once for float and once for double, with T, FN(name), EXP, EXP_ARRAY, LOG. Sums run
// over 16 lanes that are merged pairwise.
static inline T FN(merge)(T *s) {
  for (int w = LANES / 2; w > 0; w /= 2)
    for (int i = 0; i < w; i++) s[i] += s[i + w];
  return s[0];
}
static inline void FN(prepare)(int64_t n, T *s, T scale, const T *mask) {
  if (mask == NULL)
    for (int64_t j = 0; j < n; j++) s[j] *= scale;
  else
    for (int64_t j = 0; j < n; j++) s[j] = s[j] * scale + mask[j];
}
static inline T FN(largest)(int64_t n, const T *s, T least) {  // NaN comes back through the sum
  T m[4 * LANES];
  for (int i = 0; i < 4 * LANES; i++) m[i] = least;
  int64_t j = 0;
  for (; j + 4 * LANES <= n; j += 4 * LANES)
    for (int i = 0; i < 4 * LANES; i++) m[i] = s[j + i] > m[i] ? s[j + i] : m[i];
  for (; j < n; j++) m[0] = s[j] > m[0] ? s[j] : m[0];
  for (int w = 2 * LANES; w > 0; w /= 2)
    for (int i = 0; i < w; i++) m[i] = m[i + w] > m[i] ? m[i + w] : m[i];
  return m[0];
}
static void FN(weigh)(int64_t n, void *scores, double scale, const void *mask, void *most, void *sum, int64_t d, void *values) {
  T *s = scores, *o = values, *m = most, *l = sum;
  FN(prepare)(n, s, (T)scale, mask);
  const T next = FN(largest)(n, s, *m), from = next == -INFINITY ? 0 : next;  // all masked: exp(-inf) is 0, NaN stays
  T parts[LANES] = {0};
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES) {
    T e[LANES];
    for (int i = 0; i < LANES; i++) e[i] = s[j + i] - from;
    EXP_ARRAY(e, e, LANES);
    for (int i = 0; i < LANES; i++) parts[i] += e[i];
    memcpy(s + j, e, sizeof e);
  }
  if (j < n) {  // what is left, with lanes that add nothing
    T e[LANES];
    for (int i = 0; i < LANES; i++) e[i] = i < n - j ? s[j + i] - from : -INFINITY;
    EXP_ARRAY(e, e, LANES);
    for (int i = 0; i < LANES; i++) parts[i] += e[i];
    memcpy(s + j, e, (size_t)(n - j) * sizeof(T));
  }
  const T all = FN(merge)(parts);
  if (next == *m) {
    *l += all;
    return;
  }
  if (*m == -INFINITY) {  // nothing was seen before: l and the values are 0
    *l += all;
    *m = next;
    return;
  }
  const T factor = EXP(*m - from);
  *l = *l * factor + all;
  *m = next;
  for (j = 0; j < d; j++) o[j] *= factor;
}
static void FN(finish)(int64_t d, void *values, const void *most, const void *sum, void *lse) {
  T *o = values;
  const T m = *(const T *)most, l = *(const T *)sum, r = l == 0 ? 0 : (T)1 / l;
  for (int64_t j = 0; j < d; j++) o[j] *= r;
  *(T *)lse = l == 0 ? 0 : m + LOG(l);
}
static void FN(unweigh)(int64_t n, void *scores, void *grads, double scale, const void *mask, const void *lse, const void *delta) {
  T *s = scores, *ds = grads;
  const T factor = (T)scale, from = *(const T *)lse, d = *(const T *)delta;
  FN(prepare)(n, s, factor, mask);
  for (int64_t j = 0; j < n; j++) s[j] -= from;
  EXP_ARRAY(s, s, n);
  for (int64_t j = 0; j < n; j++) ds[j] = s[j] * (ds[j] - d) * factor;
}
static inline T FN(dot_run)(int64_t n, const T *a, const T *b) {
  T parts[LANES] = {0};
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES)
    for (int i = 0; i < LANES; i++) parts[i] += a[j + i] * b[j + i];
  for (; j < n; j++) parts[0] += a[j] * b[j];
  return FN(merge)(parts);
}
static void FN(dot)(int64_t n, const void *a, const void *b, void *sum) { *(T *)sum = FN(dot_run)(n, a, b); }
static void FN(scores)(int64_t n, int64_t d, const void *q, const void *k, int64_t ld, void *s) {
  for (int64_t j = 0; j < n; j++) ((T *)s)[j] = FN(dot_run)(d, q, (const T *)k + j * ld);
}
static void FN(values)(int64_t n, int64_t d, const void *p, const void *v, int64_t ld, void *o) {
  const T *weights = p, *rows = v;
  T *to = o;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4, rows += 4 * ld)
    for (int64_t i = 0; i < d; i++)
      to[i] += (weights[j] * rows[i] + weights[j + 1] * rows[ld + i]) +
               (weights[j + 2] * rows[2 * ld + i] + weights[j + 3] * rows[3 * ld + i]);
  for (; j < n; j++, rows += ld)
    for (int64_t i = 0; i < d; i++) to[i] += weights[j] * rows[i];
}
static void FN(bool_mask)(int64_t n, const uint8_t *allowed, int64_t stride, void *mask) {
  for (int64_t j = 0; j < n; j++) ((T *)mask)[j] = allowed[j * stride] != 0 ? 0 : -INFINITY;
}
