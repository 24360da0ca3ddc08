// resample_bodies.inc.h: included by resample_loops.c once a dtype, with T and FN(name) defined. Taps are added in order.
static inline __attribute__((always_inline)) void FN(mix_row)(T *to, const T *x, const em_resample_axis *a,
                                                              const int64_t taps) {
  const T *w = a->weight;
  for (int64_t o = 0; o < a->out; o++) {
    const int64_t *at = a->index + o * taps;
    T sum = x[at[0]] * w[o * taps];
    for (int64_t k = 1; k < taps; k++) sum += x[at[k]] * w[o * taps + k];
    to[o] = sum;
  }
}
static void FN(forward_rows)(T *to, const T *from, int64_t outer, const em_resample_axis *a) {
  for (int64_t r = 0; r < outer; r++, to += a->out, from += a->in) {
    if (a->taps == 1 && a->count == NULL)
      for (int64_t o = 0; o < a->out; o++) to[o] = from[a->index[o]];
    else if (a->taps == 2 && a->count == NULL) FN(mix_row)(to, from, a, 2);
    else if (a->taps == 4 && a->count == NULL) FN(mix_row)(to, from, a, 4);
    else
      for (int64_t o = 0; o < a->out; o++) {
        const int64_t *at = a->index + o * a->taps, n = a->count == NULL ? a->taps : a->count[o];
        const T *w = (const T *)a->weight + o * a->taps;
        T sum = n > 0 ? from[at[0]] * w[0] : 0;
        for (int64_t k = 1; k < n; k++) sum += from[at[k]] * w[k];
        to[o] = sum;
      }
  }
}
static void FN(forward)(void *tov, const void *fromv, int64_t outer, int64_t inner, const em_resample_axis *a) {
  T *to = tov;
  const T *from = fromv;
  if (inner == 1) {
    FN(forward_rows)(to, from, outer, a);
    return;
  }
  for (int64_t r = 0; r < outer; r++, from += a->in * inner)
    for (int64_t o = 0; o < a->out; o++, to += inner) {
      const int64_t *at = a->index + o * a->taps, n = a->count == NULL ? a->taps : a->count[o];
      const T *w = (const T *)a->weight + o * a->taps;
      if (a->taps == 1 && a->count == NULL) {
        memcpy(to, from + at[0] * inner, sizeof(T) * (size_t)inner);
        continue;
      }
      if (a->taps == 2 && a->count == NULL) {
        const T *x = from + at[0] * inner, *y = from + at[1] * inner, wx = w[0], wy = w[1];
        for (int64_t i = 0; i < inner; i++) to[i] = x[i] * wx + y[i] * wy;
        continue;
      }
      for (int64_t k = 0; k < n; k++) {
        const T *x = from + at[k] * inner, v = w[k];
        if (k == 0)
          for (int64_t i = 0; i < inner; i++) to[i] = x[i] * v;
        else
          for (int64_t i = 0; i < inner; i++) to[i] += x[i] * v;
      }
      if (n == 0) memset(to, 0, sizeof(T) * (size_t)inner);
    }
}
static void FN(backward)(void *tov, const void *fromv, int64_t outer, int64_t inner, const em_resample_axis *a) {
  T *to = tov;
  const T *from = fromv;
  memset(to, 0, sizeof(T) * (size_t)(outer * a->in * inner));
  for (int64_t r = 0; r < outer; r++, to += a->in * inner)
    for (int64_t o = 0; o < a->out; o++, from += inner) {
      const int64_t *at = a->index + o * a->taps, n = a->count == NULL ? a->taps : a->count[o];
      const T *w = (const T *)a->weight + o * a->taps;
      if (inner == 1) {
        for (int64_t k = 0; k < n; k++) to[at[k]] += from[0] * w[k];
        continue;
      }
      for (int64_t k = 0; k < n; k++) {
        T *x = to + at[k] * inner;
        const T v = w[k];
        for (int64_t i = 0; i < inner; i++) x[i] += from[i] * v;
      }
    }
}
