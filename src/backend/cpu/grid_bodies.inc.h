// grid_bodies.inc.h: included by grid_loops.c once a dtype, with T and FN(name) defined. Coordinates are worked out in T.

// From [-1, 1] to positions; *slope is the derivative.
static inline T FN(position)(T x, int64_t size, bool align, T *slope) {
  *slope = (T)(align ? size - 1 : size) / 2;
  return align ? ((x + 1) / 2) * (T)(size - 1) : ((x + 1) * (T)size - 1) / 2;
}
static inline T FN(clip)(T x, int64_t size, T *slope) {
  const T top = (T)(size - 1), low = x > 0 ? x : 0;
  *slope = ((x > 0) & (x < top)) ? *slope : 0;
  return low >= top ? top : low;
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
static inline __attribute__((always_inline)) T FN(bounded)(T x, int64_t size, int padding, bool align, T *slope) {
  if (padding == EM_GRID_BORDER) x = FN(clip)(x, size, slope);
  else if (padding == EM_GRID_REFLECTION) x = FN(clip)(FN(reflect)(x, size, align, slope), size, slope);
  return x > -2147483648.0 && x < 2147483646.0 ? x : -100;  // far away, or not a number: nowhere
}
// Positions of output point g along each dim, the first dim first. The grid gives the last dim's first.
static void FN(point)(const em_grid_job *j, const T *g, bool bound, T *x, T *slope) {
  for (int k = 0; k < j->dims; k++) {
    x[k] = FN(position)(g[j->dims - 1 - k], j->in[k], j->align, &slope[k]);
    if (bound) x[k] = FN(bounded)(x[k], j->in[k], j->padding, j->align, &slope[k]);
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
// Where tap x of a bicubic window lies along dim k, or -1.
static int64_t FN(tap)(const em_grid_job *j, T x, int k) {
  T unused = 0;
  x = FN(bounded)(x, j->in[k], j->padding, j->align, &unused);
  return x < 0 || (int64_t)x >= j->in[k] ? -1 : (int64_t)x;
}

// What a block of points reads: for each tap the element (-1: none), its weight, and the weight's derivative along each dim.
typedef struct FN(taps) {
  int count;
  int64_t at[TAPS][EM_GRID_BLOCK];
  T weight[TAPS][EM_GRID_BLOCK], slope[3][TAPS][EM_GRID_BLOCK];
} FN(taps);
// No slopes: nothing asks for them.
static inline __attribute__((always_inline)) void FN(nearest_taps)(const em_grid_job *j, const T *x, int i, FN(taps) *t) {
  int64_t e = 0;
  for (int k = 0; k < j->dims && e >= 0; k++) {
    const int64_t n = (int32_t)nearbyint((double)x[k]);  // positions were bounded
    e = n < 0 || n >= j->in[k] ? -1 : e * j->in[k] + n;
  }
  t->at[0][i] = e;
  t->weight[0][i] = 1;
}
// Inlined, as its relatives are: gcc 12.2 wrongly removes the call (also from a small program without undefined behaviour).
static inline __attribute__((always_inline)) void FN(cubic_taps)(const em_grid_job *j, const T *x, const T *slope, int i, FN(taps) *t) {
  T wy[4], wx[4], dy[4], dx[4];
  int64_t iy[4], ix[4];
  const T y0 = (T)floor((double)x[0]), x0 = (T)floor((double)x[1]);
  FN(cubic)(x[0] - y0, wy);
  FN(cubic)(x[1] - x0, wx);
  FN(cubic_slope)(x[0] - y0, dy);
  FN(cubic_slope)(x[1] - x0, dx);
  for (int q = 0; q < 4; q++) {
    iy[q] = FN(tap)(j, y0 - 1 + (T)q, 0);
    ix[q] = FN(tap)(j, x0 - 1 + (T)q, 1);
  }
  for (int q = 0; q < 16; q++) {
    t->at[q][i] = (iy[q / 4] | ix[q % 4]) < 0 ? -1 : iy[q / 4] * j->in[1] + ix[q % 4];
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
// The corners of a volume's cell: bit k of q is set for the upper one along dim k. Forward needs no slopes.
static inline __attribute__((always_inline)) void FN(linear_taps)(const em_grid_job *j, const T *x, const T *slope, int i,
                                                                  bool slopes, FN(taps) *t) {
  enum { dims = 3 };
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
    for (int o = 0; slopes && o < dims; o++) {
      T d = slope[o];
      for (int k = 0; k < dims; k++) d *= o != k ? share[k][q >> k & 1] : q >> k & 1 ? 1 : -1;
      t->slope[o][q][i] = d;
    }
  }
}
static inline __attribute__((always_inline)) void FN(find_taps)(const em_grid_job *j, int64_t n, int64_t p, int count, bool slopes,
                                                                FN(taps) *t) {
  const T *g = (const T *)j->grid + (n * j->points + p) * j->dims;
  t->count = j->mode == EM_GRID_NEAREST ? 1 : j->mode == EM_GRID_BICUBIC ? 16 : 1 << j->dims;
  for (int i = 0; i < count; i++, g += j->dims) {
    T x[3], slope[3];
    FN(point)(j, g, j->mode != EM_GRID_BICUBIC, x, slope);
    if (j->mode == EM_GRID_NEAREST) FN(nearest_taps)(j, x, i, t);
    else if (j->mode == EM_GRID_BICUBIC) FN(cubic_taps)(j, x, slope, i, t);
    else FN(linear_taps)(j, x, slope, i, slopes, t);
  }
}
// --- pictures, bilinear: a point's four taps are two neighbours in each of two rows, and one element says where they are
typedef struct FN(cells) {
  int odd;                                  // points some of whose taps are outside
  int which[EM_GRID_BLOCK];
  int32_t y[EM_GRID_BLOCK], x[EM_GRID_BLOCK];
  int64_t at[EM_GRID_BLOCK];                // 0 for odd ones
  T fy[EM_GRID_BLOCK], fx[EM_GRID_BLOCK], slope[2][EM_GRID_BLOCK], weight[4][EM_GRID_BLOCK];
} FN(cells);
static inline __attribute__((always_inline)) void FN(places)(const em_grid_job *j, const T *g, int count, int padding, T *y, T *x,
                                                             FN(cells) *t) {
  for (int i = 0; i < count; i++) {
    T sy, sx, v = FN(position)(g[2 * i + 1], j->in[0], j->align, &sy), u = FN(position)(g[2 * i], j->in[1], j->align, &sx);
    y[i] = FN(bounded)(v, j->in[0], padding, j->align, &sy);
    x[i] = FN(bounded)(u, j->in[1], padding, j->align, &sx);
    t->slope[0][i] = sy;
    t->slope[1][i] = sx;
  }
}
static void FN(find_cells)(const em_grid_job *j, int64_t n, int64_t p, int count, FN(cells) *t) {
  const T *g = (const T *)j->grid + (n * j->points + p) * 2;
  const int32_t height = (int32_t)(j->in[0] < INT32_MAX ? j->in[0] : INT32_MAX);
  const int32_t width = (int32_t)(j->in[1] < INT32_MAX ? j->in[1] : INT32_MAX);
  T y[EM_GRID_BLOCK], x[EM_GRID_BLOCK];
  int32_t inside[EM_GRID_BLOCK];
  if (j->padding == EM_GRID_ZEROS) FN(places)(j, g, count, EM_GRID_ZEROS, y, x, t);
  else if (j->padding == EM_GRID_BORDER) FN(places)(j, g, count, EM_GRID_BORDER, y, x, t);
  else FN(places)(j, g, count, EM_GRID_REFLECTION, y, x, t);
  for (int i = 0; i < count; i++) {
    const T ly = FN(below)(y[i]), lx = FN(below)(x[i]), hy = y[i] - ly, hx = x[i] - lx;
    const int32_t iy = (int32_t)ly, ix = (int32_t)lx;
    inside[i] = (iy >= 0) & (ix >= 0) & (iy < height - 1) & (ix < width - 1);
    t->y[i] = iy;
    t->x[i] = ix;
    t->at[i] = inside[i] ? iy * (int64_t)width + ix : 0;
    t->fy[i] = hy;
    t->fx[i] = hx;
    t->weight[0][i] = (1 - hy) * (1 - hx);
    t->weight[1][i] = hy * (1 - hx);
    t->weight[2][i] = (1 - hy) * hx;
    t->weight[3][i] = hy * hx;
  }
  t->odd = 0;
  for (int i = 0; i < count; i++) {
    t->which[t->odd] = i;
    t->odd += !inside[i];
  }
}
// Element of tap q of an odd point, or -1.
static inline int64_t FN(corner)(const em_grid_job *j, const FN(cells) *t, int i, int q) {
  const int64_t y = (int64_t)t->y[i] + (q & 1), x = (int64_t)t->x[i] + (q >> 1);
  return y < 0 || x < 0 || y >= j->in[0] || x >= j->in[1] ? -1 : y * j->in[1] + x;
}
static void FN(sample_cells)(const em_grid_job *j, int64_t n, int64_t p, int count) {
  FN(cells) t;
  FN(find_cells)(j, n, p, count, &t);
  const int64_t down = j->in[1];
  for (int64_t c = 0; c < j->channels; c++) {
    const T *x = (const T *)j->input + (n * j->channels + c) * j->in_area;
    T *o = (T *)j->out + (n * j->channels + c) * j->points + p;
    for (int i = 0; t.odd < count && i < count; i++) {
      const T *v = x + t.at[i];
      o[i] = ((v[0] * t.weight[0][i] + v[down] * t.weight[1][i]) + v[1] * t.weight[2][i]) + v[down + 1] * t.weight[3][i];
    }
    for (int k = 0; k < t.odd; k++) {
      const int i = t.which[k];
      T sum = 0;
      for (int q = 0; q < 4; q++) {
        const int64_t e = FN(corner)(j, &t, i, q);
        sum += e >= 0 ? x[e] * t.weight[q][i] : 0;
      }
      o[i] = sum;
    }
  }
}
static void FN(give_cells)(const em_grid_job *j, int64_t n, int64_t p, int count) {
  FN(cells) t;
  FN(find_cells)(j, n, p, count, &t);
  const int64_t down = j->in[1];
  T gy[EM_GRID_BLOCK] = {0}, gx[EM_GRID_BLOCK] = {0};
  bool odd[EM_GRID_BLOCK] = {false};
  for (int k = 0; k < t.odd; k++) odd[t.which[k]] = true;
  for (int64_t c = 0; c < j->channels; c++) {
    const int64_t plane = (n * j->channels + c) * j->in_area;
    const T *x = (const T *)j->input + plane, *v = (const T *)j->grad + (n * j->channels + c) * j->points + p;
    T *into = (T *)j->out + plane;
    for (int i = 0; i < count; i++) {
      T s[4] = {0}, *to = into + t.at[i];
      const T *from = x + t.at[i], u = v[i];
      if (odd[i]) {
        for (int q = 0; q < 4; q++) {
          const int64_t e = FN(corner)(j, &t, i, q);
          if (e < 0) continue;
          s[q] = x[e];
          if (j->want_input) into[e] += u * t.weight[q][i];
        }
      } else {
        s[0] = from[0];
        s[1] = from[down];
        s[2] = from[1];
        s[3] = from[down + 1];
        if (j->want_input) {
          to[0] += u * t.weight[0][i];
          to[down] += u * t.weight[1][i];
          to[1] += u * t.weight[2][i];
          to[down + 1] += u * t.weight[3][i];
        }
      }
      gy[i] += u * ((s[1] - s[0]) * (1 - t.fx[i]) + (s[3] - s[2]) * t.fx[i]);
      gx[i] += u * ((s[2] - s[0]) * (1 - t.fy[i]) + (s[3] - s[1]) * t.fy[i]);
    }
  }
  T *gg = (T *)j->grid_grad + (n * j->points + p) * 2;
  for (int i = 0; i < count; i++) {
    gg[2 * i] = gx[i] * t.slope[1][i];
    gg[2 * i + 1] = gy[i] * t.slope[0][i];
  }
}
static void FN(sample)(const em_grid_job *j, int64_t n, int64_t p, int count) {
  if (j->dims == 2 && j->mode == EM_GRID_BILINEAR) {
    FN(sample_cells)(j, n, p, count);
    return;
  }
  FN(taps) t;
  FN(find_taps)(j, n, p, count, false, &t);
  for (int64_t c = 0; c < j->channels; c++) {
    const T *x = (const T *)j->input + (n * j->channels + c) * j->in_area;
    T *o = (T *)j->out + (n * j->channels + c) * j->points + p, sum[EM_GRID_BLOCK] = {0};
    if (t.count == 1) {
      for (int i = 0; i < count; i++) o[i] = t.at[0][i] >= 0 ? x[t.at[0][i]] : 0;
      continue;
    }
    for (int q = 0; q < t.count; q++)
      for (int i = 0; i < count; i++) sum[i] += t.at[q][i] >= 0 ? x[t.at[q][i]] * t.weight[q][i] : 0;
    memcpy(o, sum, sizeof(T) * (size_t)count);
  }
}
static void FN(give)(const em_grid_job *j, int64_t n, int64_t p, int count) {
  if (j->dims == 2 && j->mode == EM_GRID_BILINEAR) {
    FN(give_cells)(j, n, p, count);
    return;
  }
  FN(taps) t;
  T sum[3][EM_GRID_BLOCK] = {{0}};
  FN(find_taps)(j, n, p, count, true, &t);
  for (int64_t c = 0; c < j->channels; c++) {
    const int64_t plane = (n * j->channels + c) * j->in_area;
    const T *x = (const T *)j->input + plane, *v = (const T *)j->grad + (n * j->channels + c) * j->points + p;
    T *gx = (T *)j->out + plane;
    for (int q = 0; j->want_input && q < t.count; q++)
      for (int i = 0; i < count; i++)
        if (t.at[q][i] >= 0) gx[t.at[q][i]] += v[i] * t.weight[q][i];
    for (int q = 0; j->mode != EM_GRID_NEAREST && q < t.count; q++)
      for (int i = 0; i < count; i++) {
        const T u = t.at[q][i] >= 0 ? x[t.at[q][i]] * v[i] : 0;
        for (int k = 0; k < j->dims; k++) sum[k][i] += u * t.slope[k][q][i];
      }
  }
  T *gg = (T *)j->grid_grad + (n * j->points + p) * j->dims;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < j->dims; k++) gg[i * j->dims + j->dims - 1 - k] = sum[k][i];
}
