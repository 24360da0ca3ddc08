// pool_bodies.inc.h: included by pool_loops.c once a dtype, with T, I (positions), FN(name), LEAST, ISNAN(x) defined. A block of
// output columns is worked on tap by tap, so that loops run along the row; sums add taps in PyTorch's order.

// m = max(m, x), at = where; a NaN wins, the last one.
static inline __attribute__((always_inline)) void FN(take_max)(T *m, I *at, const T *x, I pos, const int64_t s,
                                                               int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i * s];
    const int up = (v > m[i]) | ISNAN(v);
    m[i] = up ? v : m[i];
    at[i] = up ? (I)(pos + (I)(i * s)) : at[i];
  }
}
static void FN(max_block)(T *o, int64_t *ix, const T *plane, const em_window *w, int64_t d0, int64_t h0, int64_t b,
                          int64_t e) {
  T m[BLOCK];
  I at[BLOCK];
  const int64_t s = w->stride[2], width = w->in[2];
  const int64_t base = (first_tap(d0, w->dilation[0]) * w->in[1] + first_tap(h0, w->dilation[1])) * width;
  for (int64_t i = b; i < e; i++) {
    m[i - b] = LEAST;
    at[i - b] = (I)(base + first_tap(i * s - w->pad[2], w->dilation[2]));
  }
  const int64_t d1 = tap_end(d0, w, 0), h1 = tap_end(h0, w, 1), k0 = tap_from(w, e), k1 = tap_to(w, b);
  for (int64_t d = first_tap(d0, w->dilation[0]); d < d1; d += w->dilation[0])
    for (int64_t h = first_tap(h0, w->dilation[1]); h < h1; h += w->dilation[1]) {
      const int64_t line = (d * w->in[1] + h) * width;
      for (int64_t kw = k0; kw < k1; kw++) {
        int64_t lo, hi;
        columns(w, kw, b, e, &lo, &hi);
        if (lo >= hi) continue;
        const int64_t pos = line + kw * w->dilation[2] - w->pad[2] + lo * s;
        if (s == 1) FN(take_max)(m + (lo - b), at + (lo - b), plane + pos, (I)pos, 1, hi - lo);
        else if (s == 2) FN(take_max)(m + (lo - b), at + (lo - b), plane + pos, (I)pos, 2, hi - lo);
        else FN(take_max)(m + (lo - b), at + (lo - b), plane + pos, (I)pos, s, hi - lo);
      }
    }
  for (int64_t i = b; i < e; i++) {
    o[i] = m[i - b];
    ix[i] = at[i - b];
  }
}
// Windows of 2 x 2 side by side: nothing between loads and stores.
static void FN(max_2x2)(T *o, int64_t *ix, const T *plane, I line, int64_t width, int64_t n) {
  const T *r0 = plane + line, *r1 = r0 + width;
  const I below = (I)width;
  for (int64_t i = 0; i < n; i++) {
    T m = r0[2 * i];
    const T b = r0[2 * i + 1], c = r1[2 * i], d = r1[2 * i + 1];
    I at = 0;
    int up = (b > m) | ISNAN(b);
    m = up ? b : m;
    at = up ? (I)1 : at;
    up = (c > m) | ISNAN(c);
    m = up ? c : m;
    at = up ? below : at;
    up = (d > m) | ISNAN(d);
    m = up ? d : m;
    at = up ? (I)(below + 1) : at;
    o[i] = m;
    ix[i] = (I)(at + line + (I)(2 * i));
  }
}
static void FN(max_rows)(void *outv, int64_t *index, const void *inv, const em_window *w, int64_t begin, int64_t end) {
  const bool two = w->kernel[0] == 1 && w->pad[0] == 0 && w->stride[0] == 1 && w->kernel[1] == 2 && w->kernel[2] == 2 &&
                   w->stride[2] == 2 && w->pad[1] == 0 && w->pad[2] == 0 && w->dilation[1] == 1 &&
                   w->dilation[2] == 1 && 2 * w->out[2] <= w->in[2] &&
                   (w->out[1] - 1) * w->stride[1] + 2 <= w->in[1];
  for (int64_t r = begin; r < end; r++) {
    const int64_t oh = r % w->out[1], od = r / w->out[1] % w->out[0], p = r / (w->out[1] * w->out[0]);
    const T *plane = (const T *)inv + p * w->in_area;
    T *o = (T *)outv + r * w->out[2];
    int64_t *ix = index + r * w->out[2];
    const int64_t d0 = od * w->stride[0] - w->pad[0], h0 = oh * w->stride[1] - w->pad[1];
    if (two) {
      FN(max_2x2)(o, ix, plane, (I)((d0 * w->in[1] + h0) * w->in[2]), w->in[2], w->out[2]);
      continue;
    }
    for (int64_t b = 0; b < w->out[2]; b += BLOCK)
      FN(max_block)(o, ix, plane, w, d0, h0, b, b + BLOCK < w->out[2] ? b + BLOCK : w->out[2]);
  }
}

// --- averages
static inline __attribute__((always_inline)) void FN(add_taps)(T *sum, const T *x, const int64_t s, int64_t n) {
  for (int64_t i = 0; i < n; i++) sum[i] += x[i * s];
}
static inline __attribute__((always_inline)) void FN(give_taps)(T *x, const T *g, const int64_t s, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i * s] += g[i];
}
// o = a / divisor for columns [b, e); 0 where the window lies in the padding alone.
static void FN(divide)(T *o, const T *a, const em_window *w, em_pool_divisor d, int64_t size, int64_t count, int64_t b,
                       int64_t e) {
  int64_t lo, hi, lo_last, unused;
  columns(w, 0, b, e, &lo, &unused);
  columns(w, w->kernel[2] - 1, b, e, &lo_last, &hi);
  for (int64_t i = b; i < e; i++) {
    int64_t s, c;
    if (i == lo && hi > lo) {  // whole windows
      const T by = (T)(d.override != 0 ? d.override : (d.count_include_pad ? size : count) * w->kernel[2]);
      for (; i < hi; i++) o[i - b] = count > 0 ? a[i - b] / by : 0;
      i--;
      continue;
    }
    window_size(i, w->stride[2], w->pad[2], w->kernel[2], w->in[2], &s, &c);
    const T by = (T)(d.override != 0 ? d.override : d.count_include_pad ? size * s : count * c);
    o[i - b] = count > 0 && c > 0 ? a[i - b] / by : 0;
  }
}
static void FN(avg_rows)(void *outv, const void *inv, const em_window *w, em_pool_divisor div, int64_t begin,
                         int64_t end) {
  const int64_t s = w->stride[2];
  for (int64_t r = begin; r < end; r++) {
    const int64_t oh = r % w->out[1], od = r / w->out[1] % w->out[0], p = r / (w->out[1] * w->out[0]);
    const T *plane = (const T *)inv + p * w->in_area;
    T *o = (T *)outv + r * w->out[2];
    const int64_t d0 = od * w->stride[0] - w->pad[0], h0 = oh * w->stride[1] - w->pad[1];
    int64_t size[2], count[2];
    window_size(od, w->stride[0], w->pad[0], w->kernel[0], w->in[0], &size[0], &count[0]);
    window_size(oh, w->stride[1], w->pad[1], w->kernel[1], w->in[1], &size[1], &count[1]);
    for (int64_t b = 0; b < w->out[2]; b += BLOCK) {
      const int64_t e = b + BLOCK < w->out[2] ? b + BLOCK : w->out[2];
      const int64_t k0 = tap_from(w, e), k1 = tap_to(w, b);
      T sum[BLOCK] = {0};
      for (int64_t d = d0 < 0 ? 0 : d0; d < d0 + w->kernel[0] && d < w->in[0]; d++)
        for (int64_t h = h0 < 0 ? 0 : h0; h < h0 + w->kernel[1] && h < w->in[1]; h++)
          for (int64_t kw = k0; kw < k1; kw++) {
            int64_t lo, hi;
            columns(w, kw, b, e, &lo, &hi);
            if (lo >= hi) continue;
            const T *x = plane + (d * w->in[1] + h) * w->in[2] + kw - w->pad[2] + lo * s;
            if (s == 1) FN(add_taps)(sum + (lo - b), x, 1, hi - lo);
            else if (s == 2) FN(add_taps)(sum + (lo - b), x, 2, hi - lo);
            else FN(add_taps)(sum + (lo - b), x, s, hi - lo);
          }
      FN(divide)(o + b, sum, w, div, size[0] * size[1], count[0] > 0 && count[1] > 0 ? count[0] * count[1] : 0, b, e);
    }
  }
}
static void FN(avg_row_back)(T *plane, const T *g, const em_window *w, em_pool_divisor div, int64_t od, int64_t oh) {
  const int64_t s = w->stride[2], d0 = od * w->stride[0] - w->pad[0], h0 = oh * w->stride[1] - w->pad[1];
  int64_t size[2], count[2];
  window_size(od, w->stride[0], w->pad[0], w->kernel[0], w->in[0], &size[0], &count[0]);
  window_size(oh, w->stride[1], w->pad[1], w->kernel[1], w->in[1], &size[1], &count[1]);
  for (int64_t b = 0; b < w->out[2]; b += BLOCK) {
    const int64_t e = b + BLOCK < w->out[2] ? b + BLOCK : w->out[2];
    const int64_t k0 = tap_from(w, e), k1 = tap_to(w, b);
    T part[BLOCK];
    FN(divide)(part, g + b, w, div, size[0] * size[1], count[0] > 0 && count[1] > 0 ? count[0] * count[1] : 0, b, e);
    for (int64_t d = d0 < 0 ? 0 : d0; d < d0 + w->kernel[0] && d < w->in[0]; d++)
      for (int64_t h = h0 < 0 ? 0 : h0; h < h0 + w->kernel[1] && h < w->in[1]; h++)
        for (int64_t kw = k0; kw < k1; kw++) {
          int64_t lo, hi;
          columns(w, kw, b, e, &lo, &hi);
          if (lo >= hi) continue;
          T *x = plane + (d * w->in[1] + h) * w->in[2] + kw - w->pad[2] + lo * s;
          if (s == 1) FN(give_taps)(x, part + (lo - b), 1, hi - lo);
          else if (s == 2) FN(give_taps)(x, part + (lo - b), 2, hi - lo);
          else FN(give_taps)(x, part + (lo - b), s, hi - lo);
        }
  }
}
static void FN(avg_planes)(void *to, const void *from, const em_window *w, em_pool_divisor div, int64_t begin,
                           int64_t end) {
  for (int64_t p = begin; p < end; p++) {
    T *plane = (T *)to + p * w->in_area;
    const T *g = (const T *)from + p * w->out_area;
    memset(plane, 0, sizeof(T) * (size_t)w->in_area);
    for (int64_t od = 0; od < w->out[0]; od++)
      for (int64_t oh = 0; oh < w->out[1]; oh++, g += w->out[2]) FN(avg_row_back)(plane, g, w, div, od, oh);
  }
}

// --- adaptive: `s` says where windows begin and end, worked out once for all rows
static void FN(adaptive_avg_rows)(void *outv, const void *inv, const em_window *w, const em_shares *s, int64_t begin,
                                  int64_t end) {
  for (int64_t r = begin; r < end; r++) {
    const int64_t oh = r % w->out[1], od = r / w->out[1] % w->out[0], p = r / (w->out[1] * w->out[0]);
    const T *plane = (const T *)inv + p * w->in_area;
    T *o = (T *)outv + r * w->out[2];
    const int64_t d0 = s->from[0][od], d1 = s->to[0][od], h0 = s->from[1][oh], h1 = s->to[1][oh];
    for (int64_t ow = 0; ow < w->out[2]; ow++) {
      const int64_t w0 = s->from[2][ow], w1 = s->to[2][ow];
      T sum = 0;
      for (int64_t d = d0; d < d1; d++)
        for (int64_t h = h0; h < h1; h++) {
          const T *x = plane + (d * w->in[1] + h) * w->in[2];
          for (int64_t i = w0; i < w1; i++) sum += x[i];
        }
      o[ow] = sum / (T)(d1 - d0) / (T)(h1 - h0) / (T)(w1 - w0);
    }
  }
}
static void FN(adaptive_avg_planes)(void *to, const void *from, const em_window *w, const em_shares *s, int64_t begin,
                                    int64_t end) {
  for (int64_t p = begin; p < end; p++) {
    T *plane = (T *)to + p * w->in_area;
    const T *g = (const T *)from + p * w->out_area;
    memset(plane, 0, sizeof(T) * (size_t)w->in_area);
    for (int64_t od = 0; od < w->out[0]; od++)
      for (int64_t oh = 0; oh < w->out[1]; oh++, g += w->out[2]) {
        const int64_t d0 = s->from[0][od], d1 = s->to[0][od], h0 = s->from[1][oh], h1 = s->to[1][oh];
        for (int64_t ow = 0; ow < w->out[2]; ow++) {
          const int64_t w0 = s->from[2][ow], w1 = s->to[2][ow];
          const T part = g[ow] / (T)(d1 - d0) / (T)(h1 - h0) / (T)(w1 - w0);
          for (int64_t d = d0; d < d1; d++)
            for (int64_t h = h0; h < h1; h++) {
              T *x = plane + (d * w->in[1] + h) * w->in[2];
              for (int64_t i = w0; i < w1; i++) x[i] += part;
            }
        }
      }
  }
}
// The largest of a box: its first position of several, the last NaN if there are any.
static inline void FN(box_max)(T *o, int64_t *ix, const T *plane, const em_window *w, const int64_t *from,
                               const int64_t *to) {
  T m = LEAST;
  int64_t at = (from[0] * w->in[1] + from[1]) * w->in[2] + from[2];
  for (int64_t d = from[0]; d < to[0]; d++)
    for (int64_t h = from[1]; h < to[1]; h++) {
      const int64_t line = (d * w->in[1] + h) * w->in[2];
      for (int64_t i = from[2]; i < to[2]; i++) {
        const T v = plane[line + i];
        if (v > m || ISNAN(v)) {
          m = v;
          at = line + i;
        }
      }
    }
  *o = m;
  *ix = at;
}
static void FN(adaptive_max_rows)(void *outv, int64_t *index, const void *inv, const em_window *w, const em_shares *s,
                                  int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; r++) {
    const int64_t od = r / w->out[1] % w->out[0], oh = r % w->out[1], p = r / (w->out[1] * w->out[0]);
    int64_t from[3] = {s->from[0][od], s->from[1][oh], 0}, to[3] = {s->to[0][od], s->to[1][oh], 0};
    for (int64_t ow = 0; ow < w->out[2]; ow++) {
      from[2] = s->from[2][ow];
      to[2] = s->to[2][ow];
      FN(box_max)((T *)outv + r * w->out[2] + ow, index + r * w->out[2] + ow, (const T *)inv + p * w->in_area, w, from, to);
    }
  }
}

// --- by index
static bool FN(scatter)(void *tov, const void *fromv, const int64_t *index, const em_window *w, bool add, int64_t begin,
                        int64_t end, int64_t *bad) {
  for (int64_t p = begin; p < end; p++) {
    T *to = (T *)tov + p * w->in_area;
    const T *from = (const T *)fromv + p * w->out_area;
    const int64_t *at = index + p * w->out_area;
    memset(to, 0, sizeof(T) * (size_t)w->in_area);
    for (int64_t i = 0; i < w->out_area; i++) {
      if (EM_UNLIKELY((uint64_t)at[i] >= (uint64_t)w->in_area)) {
        *bad = at[i];
        return false;
      }
      if (add) to[at[i]] += from[i];
      else to[at[i]] = from[i];
    }
  }
  return true;
}
static void FN(fractional_plane)(void *outv, int64_t *index, const void *in, const em_window *w,
                                 const int64_t *const *start) {
  T *out = outv;
  for (int64_t o = 0; o < w->out_area; o++) {
    const int64_t at[3] = {o / (w->out[2] * w->out[1]), o / w->out[2] % w->out[1], o % w->out[2]};
    int64_t from[3], to[3];
    for (int k = 0; k < 3; k++) {
      from[k] = start[k][at[k]];
      to[k] = from[k] + w->kernel[k];
    }
    FN(box_max)(out + o, index + o, in, w, from, to);
  }
}
