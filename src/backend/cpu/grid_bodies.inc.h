// grid_bodies.inc.h: included by grid_sample.c once a dtype, with T and FN(name) defined. Coordinates are worked out in T.

// From [-1, 1] to positions; *slope is the derivative.
static T FN(position)(T x, int64_t size, bool align, T *slope) {
  *slope = (T)(align ? size - 1 : size) / 2;
  return align ? ((x + 1) / 2) * (T)(size - 1) : ((x + 1) * (T)size - 1) / 2;
}
static T FN(clip)(T x, int64_t size, T *slope) {
  if (!(x > 0)) {
    *slope = 0;
    return 0;
  }
  if (x >= (T)(size - 1)) {
    *slope = 0;
    return (T)(size - 1);
  }
  return x;
}
static T FN(reflect)(T x, int64_t size, bool align, T *slope) {
  const T low = align ? 0 : (T)-0.5, span = (T)(align ? size - 1 : size);
  if (span == 0) {
    *slope = 0;
    return 0;
  }
  x -= low;
  if (x < 0) {
    x = -x;
    *slope = -*slope;
  }
  const T extra = (T)fmod((double)x, (double)span);
  const bool even = fmod(floor((double)(x / span)), 2) == 0;
  if (!even) *slope = -*slope;
  return even ? extra + low : span - extra + low;
}
// The padding rule on a position.
static T FN(bounded)(T x, int64_t size, const job *j, T *slope) {
  if (j->padding == BORDER) x = FN(clip)(x, size, slope);
  else if (j->padding == REFLECTION) x = FN(clip)(FN(reflect)(x, size, j->align, slope), size, slope);
  return x > -2147483648.0 && x < 2147483646.0 ? x : -100;  // far away, or not a number: nowhere
}
// Positions of output point g along each dim, the first dim first. The grid gives the last dim's first.
static void FN(point)(const job *j, const T *g, bool bound, T *x, T *slope) {
  for (int k = 0; k < j->dims; k++) {
    x[k] = FN(position)(g[j->dims - 1 - k], j->in[k], j->align, &slope[k]);
    if (bound) x[k] = FN(bounded)(x[k], j->in[k], j, &slope[k]);
  }
}
static void FN(cubic)(T t, T *w) {
  const T a = (T)-0.75, s = 1 - t, u = t + 1, v = s + 1;
  w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
  w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  w[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
  w[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;
}
static void FN(cubic_slope)(T t, T *w) {
  const T a = (T)-0.75, s = 1 - t, u = t + 1, v = s + 1;
  w[0] = (3 * a * u - 10 * a) * u + 8 * a;
  w[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
  w[2] = -((3 * (a + 2) * s - 2 * (a + 3)) * s);
  w[3] = -((3 * a * v - 10 * a) * v + 8 * a);
}
// Element of tap (y, x) of a bicubic window, or -1.
static int64_t FN(tap)(const job *j, T y, T x) {
  T unused = 0;
  y = FN(bounded)(y, j->in[0], j, &unused);
  x = FN(bounded)(x, j->in[1], j, &unused);
  const int64_t iy = (int64_t)y, ix = (int64_t)x;
  return iy < 0 || ix < 0 || iy >= j->in[0] || ix >= j->in[1] ? -1 : iy * j->in[1] + ix;
}

// What a block of points reads: for each tap the element (-1: none), its weight, and the weight's derivative along each dim.
typedef struct FN(taps) {
  int count;
  bool outside;  // some tap may be
  int64_t at[TAPS][BLOCK];
  T weight[TAPS][BLOCK], slope[3][TAPS][BLOCK];
} FN(taps);
static inline __attribute__((always_inline)) void FN(nearest_taps)(const job *j, const T *x, int i, FN(taps) *t) {
  int64_t e = 0;
  for (int k = 0; k < j->dims && e >= 0; k++) {
    const int64_t n = (int64_t)nearbyint((double)x[k]);
    e = n < 0 || n >= j->in[k] ? -1 : e * j->in[k] + n;
  }
  t->at[0][i] = e;
  t->weight[0][i] = 1;
  for (int k = 0; k < j->dims; k++) t->slope[k][0][i] = 0;
}
// Inlined, as its relatives are: gcc 12 takes the call for one that nobody reads when it inlines FN(find_taps) alone.
static inline __attribute__((always_inline)) void FN(cubic_taps)(const job *j, const T *x, const T *slope, int i, FN(taps) *t) {
  T wy[4], wx[4], dy[4], dx[4];
  const T y0 = (T)floor((double)x[0]), x0 = (T)floor((double)x[1]);
  FN(cubic)(x[0] - y0, wy);
  FN(cubic)(x[1] - x0, wx);
  FN(cubic_slope)(x[0] - y0, dy);
  FN(cubic_slope)(x[1] - x0, dx);
  for (int q = 0; q < 16; q++) {
    t->at[q][i] = FN(tap)(j, y0 - 1 + (T)(q / 4), x0 - 1 + (T)(q % 4));
    t->weight[q][i] = wx[q % 4] * wy[q / 4];
    t->slope[0][q][i] = dy[q / 4] * wx[q % 4] * slope[0];
    t->slope[1][q][i] = wy[q / 4] * dx[q % 4] * slope[1];
  }
}
// floor of a position that FN(bounded) let through
static inline T FN(below)(T x) {
  const T t = (T)(int32_t)x;
  return t > x ? t - 1 : t;
}
// The corners of the cell: bit k of q is set for the upper one along dim k. Forward needs no slopes.
static inline __attribute__((always_inline)) void FN(linear_taps)(const job *j, int dims, const T *x, const T *slope, int i,
                                                                  bool slopes, FN(taps) *t) {
  T share[3][2];
  int64_t low[3];
  for (int k = 0; k < dims; k++) {
    const T l = FN(below)(x[k]);
    low[k] = (int64_t)l;
    share[k][1] = x[k] - l;
    share[k][0] = 1 - share[k][1];
  }
  for (int q = 0; q < 1 << dims; q++) {
    int64_t e = 0;
    bool inside = true;
    T w = 1;
    for (int k = 0; k < dims; k++) {
      const int64_t n = low[k] + (q >> k & 1);
      inside &= (uint64_t)n < (uint64_t)j->in[k];
      e = e * j->in[k] + n;
      w *= share[k][q >> k & 1];
    }
    t->at[q][i] = inside ? e : -1;
    t->weight[q][i] = w;
    t->outside |= !inside;
    for (int o = 0; slopes && o < dims; o++) {
      T d = slope[o];
      for (int k = 0; k < dims; k++) d *= o != k ? share[k][q >> k & 1] : q >> k & 1 ? 1 : -1;
      t->slope[o][q][i] = d;
    }
  }
}
static inline __attribute__((always_inline)) void FN(find_taps)(const job *j, int64_t n, int64_t p, int count, bool slopes,
                                                                FN(taps) *t) {
  const T *g = (const T *)j->grid + (n * j->points + p) * j->dims;
  t->count = j->mode == NEAREST ? 1 : j->mode == BICUBIC ? 16 : 1 << j->dims;
  t->outside = j->mode != BILINEAR;
  for (int i = 0; i < count; i++, g += j->dims) {
    T x[3], slope[3];
    FN(point)(j, g, j->mode != BICUBIC, x, slope);
    if (j->mode == NEAREST) FN(nearest_taps)(j, x, i, t);
    else if (j->mode == BICUBIC) FN(cubic_taps)(j, x, slope, i, t);
    else if (j->dims == 2) FN(linear_taps)(j, 2, x, slope, i, slopes, t);
    else FN(linear_taps)(j, 3, x, slope, i, slopes, t);
  }
}
static void FN(sample)(const job *j, int64_t n, int64_t p, int count) {
  FN(taps) t;
  FN(find_taps)(j, n, p, count, false, &t);
  for (int64_t c = 0; c < j->channels; c++) {
    const T *x = (const T *)j->input + (n * j->channels + c) * j->in_area;
    T *o = (T *)j->out + (n * j->channels + c) * j->points + p, sum[BLOCK] = {0};
    if (!t.outside && t.count == 4) {  // a cell of a picture, all of it inside
      for (int i = 0; i < count; i++)
        o[i] = ((x[t.at[0][i]] * t.weight[0][i] + x[t.at[1][i]] * t.weight[1][i]) + x[t.at[2][i]] * t.weight[2][i]) +
               x[t.at[3][i]] * t.weight[3][i];
      continue;
    }
    for (int q = 0; q < t.count; q++)
      for (int i = 0; i < count; i++) sum[i] += t.at[q][i] >= 0 ? x[t.at[q][i]] * t.weight[q][i] : 0;
    memcpy(o, sum, sizeof(T) * (size_t)count);
  }
}
static void FN(give)(const job *j, int64_t n, int64_t p, int count) {
  FN(taps) t;
  T sum[3][BLOCK] = {{0}};
  FN(find_taps)(j, n, p, count, true, &t);
  for (int64_t c = 0; c < j->channels; c++) {
    const int64_t plane = (n * j->channels + c) * j->in_area;
    const T *x = (const T *)j->input + plane, *v = (const T *)j->grad + (n * j->channels + c) * j->points + p;
    T *gx = (T *)j->out + plane;
    for (int q = 0; j->want_input && q < t.count; q++)
      for (int i = 0; i < count; i++)
        if (t.at[q][i] >= 0) gx[t.at[q][i]] += v[i] * t.weight[q][i];
    for (int q = 0; j->mode != NEAREST && q < t.count; q++)
      for (int i = 0; i < count; i++) {
        const T u = t.at[q][i] >= 0 ? x[t.at[q][i]] * v[i] : 0;
        for (int k = 0; k < j->dims; k++) sum[k][i] += u * t.slope[k][q][i];
      }
  }
  T *gg = (T *)j->grid_grad + (n * j->points + p) * j->dims;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < j->dims; k++) gg[i * j->dims + j->dims - 1 - k] = sum[k][i];
}
