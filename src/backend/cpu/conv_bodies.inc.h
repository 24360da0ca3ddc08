// conv_bodies.inc.h: a convolution's loops for one compute type. Included by conv_loops.c with T, COMPUTE (em_dtype of T), FMA on vectors,
// N(name).
typedef T N(vec) __attribute__((vector_size(VEC_BYTES)));
typedef T N(vecu) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));
// LANES sums are made side by side in `gradient` on every instruction set, so that all give the same bits.
enum { N(L) = VEC_BYTES / sizeof(T), N(LANES) = 64 / sizeof(T), N(PER) = 64 / VEC_BYTES };

// R rows by V vectors of C.
static inline __attribute__((always_inline)) void N(tile)(const int R, const int V, const em_conv_product *g,
                                                          const T *a, const T *b, T *c) {
  N(vec) s[ROWS][VECS];
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++)
    s[r][v] = (N(vec)){0};
  if (!g->fresh)
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) s[r][v] =
        *(const N(vecu) *)(c + r * g->ldc + v * N(L));
  const int64_t *off = g->off, lda = g->lda;
  for (int64_t p = 0; p < g->k; p++) {
    const T *row = b + off[p];
    N(vec) x[VECS];
    UNROLL for (int v = 0; v < V; v++) x[v] = *(const N(vecu) *)(row + v * N(L));
    UNROLL for (int r = 0; r < R; r++) {
      const N(vec) w = a[r * lda + p] - (N(vec)){0};
      UNROLL for (int v = 0; v < V; v++) s[r][v] = FMA(w, x[v], s[r][v]);
    }
  }
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) *(N(vecu) *)(c + r * g->ldc + v * N(L)) = s[r][v];
}
#define TILE(r, v) case (r) * 8 + (v): N(tile)(r, v, g, a, b, c); break;
#define TILES(v) TILE(1, v) TILE(2, v) TILE(3, v) TILE(4, v)
#define TILES_MORE(v) TILE(5, v) TILE(6, v)
static void N(product)(const em_conv_product *g) {
  const int64_t tiles = (g->m + ROWS - 1) / ROWS, rows = (g->m + tiles - 1) / tiles;
  for (int64_t j = 0; j < g->p; j += VECS * N(L)) {
    const int64_t left = (g->p - j + N(L) - 1) / N(L), vecs = left < VECS ? left : VECS;
    for (int64_t i = 0; i < g->m; i += rows) {
      const int64_t r = g->m - i < rows ? g->m - i : rows;
      const T *a = (const T *)g->a + i * g->lda, *b = (const T *)g->b + j;
      T *c = (T *)g->c + i * g->ldc + j;
      switch (r * 8 + vecs) {
        TILES(1) TILES(2)
#if defined(EM_ISA_AVX2) || defined(EM_ISA_AVX512)
        TILES_MORE(1) TILES_MORE(2)
#endif
#if defined(EM_ISA_AVX512)
        TILES(3) TILES_MORE(3) TILES(4) TILES_MORE(4)
#endif
      }
    }
  }
}
#undef TILE
#undef TILES
#undef TILES_MORE

// R rows of D with V rows of B: sums of products over p.
static inline __attribute__((always_inline)) void N(gtile)(const int R, const int V, const em_conv_product *g, const T *d, const T *b,
                                                           const int64_t *off, T *w) {
  N(vec) s[GROWS][GCOLS][N(PER)];
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) UNROLL for (int l = 0; l < N(PER); l++) s[r][v][l] = (N(vec)){0};
  const T *row[GCOLS];
  UNROLL for (int v = 0; v < V; v++) row[v] = b + off[v];
  for (int64_t p = 0; p < g->p; p += N(LANES)) {
    UNROLL for (int l = 0; l < N(PER); l++) {
      N(vec) x[GCOLS];
      UNROLL for (int v = 0; v < V; v++) x[v] = *(const N(vecu) *)(row[v] + p + l * N(L));
      UNROLL for (int r = 0; r < R; r++) {
        const N(vec) y = *(const N(vecu) *)(d + r * g->lda + p + l * N(L));
        UNROLL for (int v = 0; v < V; v++) s[r][v][l] = FMA(y, x[v], s[r][v][l]);
      }
    }
  }
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) {
    T lane[N(LANES)];
    memcpy(lane, s[r][v], sizeof lane);
    for (int half = N(LANES) / 2; half > 0; half /= 2)
      for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    w[r * g->ldc + v] += lane[0];
  }
}
#define GTILE(r, v) case (r) * 8 + (v): N(gtile)(r, v, g, d, g->b, off, w); break;
static void N(gradient)(const em_conv_product *g) {
  const int64_t tiles = (g->m + GROWS - 1) / GROWS, rows = (g->m + tiles - 1) / tiles;
  for (int64_t j = 0; j < g->k; j += GCOLS) {
    const int64_t cols = g->k - j < GCOLS ? g->k - j : GCOLS, *off = g->off + j;
    for (int64_t i = 0; i < g->m; i += rows) {
      const int64_t r = g->m - i < rows ? g->m - i : rows;
      const T *d = (const T *)g->a + i * g->lda;
      T *w = (T *)g->c + i * g->ldc + j;
      switch (r * 8 + cols) {
        GTILE(1, 1) GTILE(2, 1)
#if defined(EM_ISA_AVX2) || defined(EM_ISA_AVX512)
        GTILE(3, 1) GTILE(1, 2) GTILE(2, 2) GTILE(3, 2)
#endif
#if defined(EM_ISA_AVX512)
        GTILE(4, 1) GTILE(5, 1) GTILE(6, 1) GTILE(4, 2) GTILE(5, 2) GTILE(6, 2)
        GTILE(1, 3) GTILE(2, 3) GTILE(3, 3) GTILE(4, 3) GTILE(5, 3) GTILE(6, 3)
        GTILE(1, 4) GTILE(2, 4) GTILE(3, 4) GTILE(4, 4) GTILE(5, 4) GTILE(6, 4)
#endif
      }
    }
  }
}
#undef GTILE

// The positions [*from, *to) of a dim that lie inside the source.
static void N(inside)(const em_conv_load *l, int d, int64_t x0, int64_t *from, int64_t *to) {
  const int64_t step = l->step[d], size = l->size[d];
  int64_t a = x0 >= l->lo[d] ? 0 : (l->lo[d] - x0 - 1) / step + 1, b = x0 >= l->hi[d] ? 0 : (l->hi[d] - x0 - 1) / step + 1;
  if (b > size) b = size;
  *from = a < b ? a : b;
  *to = b;
}
static inline void N(load_row)(const em_conv_load *l, const char *from, int64_t stride, T *to, int64_t n) {
  if (l->dtype != COMPUTE) {
    em_cast_load(to, COMPUTE, from, l->dtype, stride * (int64_t)em_dtype_size(l->dtype), n);
    return;
  }
  const T *f = (const T *)from;
  if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = f[i];
  else for (int64_t i = 0; i < n; i++) to[i] = f[i * stride];
}
static inline void N(zero)(T *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = 0;
}
static void N(load)(const em_conv_load *l, const char *channel, const int64_t *x0, void *planes) {
  int64_t from[3], end[3];
  const int64_t item = (int64_t)em_dtype_size(l->dtype), row = l->size[2], sheet = l->size[1] * row, wide = l->stride[2] * l->step[2];
  for (int d = 0; d < 3; d++) N(inside)(l, d, x0[d], &from[d], &end[d]);
  T *to = planes;
  for (int64_t n = 0; n < l->n; n++)
    for (int64_t d = 0; d < l->size[0]; d++, to += sheet) {
      if (d < from[0] || d >= end[0] || from[1] == end[1] || from[2] == end[2]) {
        N(zero)(to, sheet);
        continue;
      }
      const char *source = channel + (n * l->n_stride + (x0[0] + d * l->step[0]) * l->stride[0] +
                                      (x0[2] + from[2] * l->step[2]) * l->stride[2]) *
                                         item;
      N(zero)(to, from[1] * row);
      for (int64_t h = from[1]; h < end[1]; h++) {
        T *line = to + h * row;
        N(zero)(line, from[2]);
        N(load_row)(l, source + (x0[1] + h * l->step[1]) * l->stride[1] * item, wide, line + from[2], end[2] - from[2]);
        N(zero)(line + end[2], row - end[2]);
      }
      N(zero)(to + end[1] * row, (l->size[1] - end[1]) * row);
    }
}

static inline void N(store_row)(const em_conv_store *s, char *to, const T *from, T bias) {
  const int64_t n = s->size[2], stride = s->stride[2];
  if (s->dtype == COMPUTE) {
    T *t = (T *)to;
    if (stride == 1) for (int64_t i = 0; i < n; i++) t[i] = from[i] + bias;
    else for (int64_t i = 0; i < n; i++) t[i * stride] = from[i] + bias;
    return;
  }
  T line[256];
  const int64_t bytes = stride * (int64_t)em_dtype_size(s->dtype);
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t w = n - at < 256 ? n - at : 256;
    for (int64_t i = 0; i < w; i++) line[i] = from[at + i] + bias;
    em_cast_store(to + at * bytes, s->dtype, bytes, line, COMPUTE, w);
  }
}
static void N(store)(const em_conv_store *s, char *channel, const void *planes, const void *bias) {
  const int64_t item = (int64_t)em_dtype_size(s->dtype);
  const T b = bias == NULL ? 0 : *(const T *)bias;
  for (int64_t n = 0; n < s->n; n++)
    for (int64_t d = 0; d < s->size[0]; d++)
      for (int64_t h = 0; h < s->size[1]; h++)
        N(store_row)(s, channel + (n * s->n_stride + d * s->stride[0] + h * s->stride[1]) * item,
                     (const T *)planes + n * s->from_n + d * s->from[0] + h * s->from[1], b);
}
