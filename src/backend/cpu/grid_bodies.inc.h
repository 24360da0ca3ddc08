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
// corner: bit k set: the upper neighbour along dim k. Offset of the element, or -1 outside; *weight its share.
static int64_t FN(corner)(const job *j, int c, const int64_t *base, const T *part, T *weight) {
  int64_t at = 0;
  *weight = 1;
  for (int k = 0; k < j->dims; k++) {
    const int64_t i = base[k] + (c >> k & 1);
    if (i < 0 || i >= j->in[k]) return -1;
    at = at * j->in[k] + i;
    *weight *= c >> k & 1 ? part[k] : 1 - part[k];
  }
  return at;
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
static void FN(sample)(const job *j, int64_t n, int64_t p) {
  const T *g = (const T *)j->grid + (n * j->points + p) * j->dims;
  const T *x = (const T *)j->input + n * j->channels * j->in_area;
  T *o = (T *)j->out + n * j->channels * j->points + p;
  T at[3], slope[3], part[3];
  int64_t base[3];
  FN(point)(j, g, j->mode != BICUBIC, at, slope);
  for (int64_t c = 0; c < j->channels; c++) o[c * j->points] = 0;
  if (j->mode == NEAREST) {
    int64_t e = 0;
    for (int k = 0; k < j->dims && e >= 0; k++) {
      const int64_t i = (int64_t)nearbyint((double)at[k]);
      e = i < 0 || i >= j->in[k] ? -1 : e * j->in[k] + i;
    }
    if (e >= 0)
      for (int64_t c = 0; c < j->channels; c++) o[c * j->points] = x[c * j->in_area + e];
    return;
  }
  if (j->mode == BICUBIC) {
    T wy[4], wx[4];
    const T y0 = (T)floor((double)at[0]), x0 = (T)floor((double)at[1]);
    FN(cubic)(at[0] - y0, wy);
    FN(cubic)(at[1] - x0, wx);
    for (int i = 0; i < 16; i++) {
      const int64_t e = FN(tap)(j, y0 - 1 + (T)(i / 4), x0 - 1 + (T)(i % 4));
      if (e >= 0)
        for (int64_t c = 0; c < j->channels; c++) o[c * j->points] += x[c * j->in_area + e] * wx[i % 4] * wy[i / 4];
    }
    return;
  }
  for (int k = 0; k < j->dims; k++) {
    base[k] = (int64_t)floor((double)at[k]);
    part[k] = at[k] - (T)base[k];
  }
  for (int q = 0; q < 1 << j->dims; q++) {
    T w;
    const int64_t e = FN(corner)(j, q, base, part, &w);
    if (e >= 0)
      for (int64_t c = 0; c < j->channels; c++) o[c * j->points] += x[c * j->in_area + e] * w;
  }
}
// A point's gradient to the corners around it, and to `sum`, its own along each dim.
static void FN(give_corners)(const job *j, const int64_t *base, const T *part, const T *x, const T *go, T *gx, T *sum) {
  const int corners = 1 << j->dims;
  int64_t e[8];
  T w[8], slope[8][3];
  for (int q = 0; q < corners; q++) {
    e[q] = FN(corner)(j, q, base, part, &w[q]);
    for (int k = 0; k < j->dims; k++) {  // the weight's derivative along dim k
      slope[q][k] = q >> k & 1 ? 1 : -1;
      for (int d = 0; d < j->dims; d++)
        if (d != k) slope[q][k] *= q >> d & 1 ? part[d] : 1 - part[d];
    }
  }
  for (int64_t c = 0; c < j->channels; c++) {
    const T v = go[c * j->points], *plane = x + c * j->in_area;
    for (int q = 0; q < corners; q++) {
      if (e[q] < 0) continue;
      if (gx != NULL) gx[c * j->in_area + e[q]] += v * w[q];
      for (int k = 0; k < j->dims; k++) sum[k] += plane[e[q]] * slope[q][k] * v;
    }
  }
}
static void FN(give)(const job *j, int64_t n, int64_t p) {
  const T *g = (const T *)j->grid + (n * j->points + p) * j->dims;
  const T *x = (const T *)j->input + n * j->channels * j->in_area;
  const T *go = (const T *)j->grad + n * j->channels * j->points + p;
  T *gx = j->want_input ? (T *)j->out + n * j->channels * j->in_area : NULL;
  T *gg = (T *)j->grid_grad + (n * j->points + p) * j->dims;
  T at[3], slope[3], part[3], sum[3] = {0};
  int64_t base[3];
  FN(point)(j, g, j->mode != BICUBIC, at, slope);
  if (j->mode == NEAREST) {
    int64_t e = 0;
    for (int k = 0; k < j->dims && e >= 0; k++) {
      const int64_t i = (int64_t)nearbyint((double)at[k]);
      e = i < 0 || i >= j->in[k] ? -1 : e * j->in[k] + i;
    }
    if (e >= 0 && gx != NULL)
      for (int64_t c = 0; c < j->channels; c++) gx[c * j->in_area + e] += go[c * j->points];
  } else if (j->mode == BICUBIC) {
    T wy[4], wx[4], dy[4], dx[4];
    const T y0 = (T)floor((double)at[0]), x0 = (T)floor((double)at[1]);
    FN(cubic)(at[0] - y0, wy);
    FN(cubic)(at[1] - x0, wx);
    FN(cubic_slope)(at[0] - y0, dy);
    FN(cubic_slope)(at[1] - x0, dx);
    for (int i = 0; i < 16; i++) {
      const int64_t e = FN(tap)(j, y0 - 1 + (T)(i / 4), x0 - 1 + (T)(i % 4));
      if (e < 0) continue;
      for (int64_t c = 0; c < j->channels; c++) {
        const T v = go[c * j->points], u = x[c * j->in_area + e];
        if (gx != NULL) gx[c * j->in_area + e] += v * wx[i % 4] * wy[i / 4];
        sum[0] += u * v * dy[i / 4] * wx[i % 4];
        sum[1] += u * v * wy[i / 4] * dx[i % 4];
      }
    }
  } else {
    for (int k = 0; k < j->dims; k++) {
      base[k] = (int64_t)floor((double)at[k]);
      part[k] = at[k] - (T)base[k];
    }
    FN(give_corners)(j, base, part, x, go, gx, sum);
  }
  for (int k = 0; k < j->dims; k++) gg[j->dims - 1 - k] = j->mode == NEAREST ? 0 : sum[k] * slope[k];
}
