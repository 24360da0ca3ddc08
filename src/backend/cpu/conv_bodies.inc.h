// conv_bodies.inc.h: a convolution's loops for one compute type. Included by conv_loops.c with T (sums), A (weights),
// COMPUTE (em_dtype of T), SPREAD(a) (a weight as a vector), FMA on vectors, SUM and FOUR_SUMS of lanes (none for
// integers: no gradients), D (rows of gradient), FMA_D, N(name); TARGET: an attribute of every function.
typedef T N(vec) __attribute__((vector_size(VEC_BYTES)));
typedef T N(vecu) __attribute__((vector_size(VEC_BYTES), aligned(2), may_alias));
enum { N(L) = VEC_BYTES / sizeof(T) };
#define LOAD(p) (*(const N(vecu) *)(p))
#define STORE(p) (*(N(vecu) *)(p))

// R rows by V vectors of C.
static inline __attribute__((always_inline)) TARGET void N(tile)(const int R, const int V, const em_conv_product *g, const A *a,
                                                                 const int64_t *at, T *c) {
  N(vec) s[ROWS][FEW_VECS];
  const int64_t *off = g->off, lda = g->lda;
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) s[r][v] = (N(vec)){0};
  const A *from[FEW_VECS];
  UNROLL for (int v = 0; v < V; v++) from[v] = (const A *)g->b + at[v];
  for (int64_t p = 0; p < g->k; p++) {
    const int64_t o = off[p];
    N(vec) x[FEW_VECS];
    UNROLL for (int v = 0; v < V; v++) x[v] = LOAD(from[v] + o);
    UNROLL for (int r = 0; r < R; r++) {
      const N(vec) w = SPREAD(a[r * lda + p]);
      UNROLL for (int v = 0; v < V; v++) s[r][v] = FMA(w, x[v], s[r][v]);
    }
  }
  // sums of one block are added to those before it: shorter chains of roundings than one sum over all
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) {
    T *to = c + r * g->ldc + at[v];
    STORE(to) = g->fresh ? s[r][v] : s[r][v] + LOAD(to);
  }
}
#define TILE(r, v) case (r) * 16 + (v): N(tile)(r, v, g, a, at, c); break;
static TARGET void N(tiles)(const em_conv_product *g, const A *a, const int64_t *at, T *c, int64_t r, int64_t v) {
  switch (r * 16 + v) {
    TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(1, 4) TILE(2, 1) TILE(2, 2) TILE(2, 3) TILE(2, 4) TILE(3, 1) TILE(3, 2) TILE(4, 1) TILE(4, 2)
#if defined(EM_ISA_AVX2) || defined(EM_ISA_AVX512)
    TILE(3, 3) TILE(3, 4) TILE(5, 1) TILE(5, 2) TILE(6, 1) TILE(6, 2)
#endif
#if defined(EM_ISA_AVX512)
    TILE(4, 3) TILE(4, 4) TILE(5, 3) TILE(5, 4) TILE(6, 3) TILE(6, 4)
    TILE(1, 5) TILE(1, 6) TILE(1, 7) TILE(1, 8) TILE(2, 5) TILE(2, 6) TILE(2, 7) TILE(2, 8) TILE(3, 5) TILE(3, 6) TILE(3, 7) TILE(3, 8)
#endif
  }
}
#undef TILE
static TARGET void N(product)(const em_conv_product *g) {
  const int64_t tiles = (g->m + ROWS - 1) / ROWS, rows = (g->m + tiles - 1) / tiles, vecs = rows <= FEW_ROWS ? FEW_VECS : VECS;
  // as many rows' weights as stay in the second cache while the runs pass by
  const int64_t fit = WEIGHT_BYTES / (int64_t)sizeof(A) / (g->k + 1) / rows * rows, stay = fit < rows ? rows : fit;
  for (int64_t m = 0; m < g->m; m += stay)
    for (int64_t j = 0; j < g->vectors; j += vecs) {
      const int64_t v = g->vectors - j < vecs ? g->vectors - j : vecs, end = g->m - m < stay ? g->m : m + stay;
      for (int64_t i = m; i < end; i += rows)
        N(tiles)(g, (const A *)g->a + i * g->lda, g->at + j, (T *)g->c + i * g->ldc, end - i < rows ? end - i : rows, v);
    }
}

#ifdef SUM
// R rows of D with V rows of B. 64 bytes of lanes are summed side by side on every instruction set, so that all give the same bits.
static inline __attribute__((always_inline)) TARGET void N(sums)(const int R, const int V, const em_conv_product *g, const D *d,
                                                                 const int64_t *off, T *w) {
  enum { PER = 64 / VEC_BYTES, DL = VEC_BYTES / sizeof(D) };
  N(vec) s[GROWS][GCOLS][PER];
  UNROLL for (int r = 0; r < R; r++) UNROLL for (int v = 0; v < V; v++) UNROLL for (int l = 0; l < PER; l++) s[r][v][l] = (N(vec)){0};
  const D *row[GCOLS];
  UNROLL for (int v = 0; v < V; v++) row[v] = (const D *)g->b + off[v];
  for (int64_t i = 0; i < g->vectors; i++) {
    const int64_t p = g->at[i];
    UNROLL for (int l = 0; l < PER; l++) {
      N(vec) x[GCOLS];
      UNROLL for (int v = 0; v < V; v++) x[v] = LOAD(row[v] + p + l * DL);
      UNROLL for (int r = 0; r < R; r++) {
        const N(vec) y = LOAD(d + r * g->lda + p + l * DL);
        UNROLL for (int v = 0; v < V; v++) s[r][v][l] = FMA(y, x[v], s[r][v][l]);
      }
    }
  }
  UNROLL for (int r = 0; r < R; r++) {
    T *to = w + r * g->ldc;
#if defined(EM_ISA_AVX512)
    if (V == 4) {
      FOUR_SUMS(s[r], g->fresh, to);
      continue;
    }
#endif
    UNROLL for (int v = 0; v < V; v++) to[v] = (g->fresh ? 0 : to[v]) + SUM((const T *)s[r][v]);
  }
}
#define SUMS(r, v) case (r) * 16 + (v): N(sums)(r, v, g, d, off, w); break;
static TARGET void N(some_sums)(const em_conv_product *g, const D *d, const int64_t *off, T *w, int64_t r, int64_t v) {
  switch (r * 16 + v) {
    SUMS(1, 1) SUMS(2, 1)
#if defined(EM_ISA_AVX2) || defined(EM_ISA_AVX512)
    SUMS(3, 1) SUMS(1, 2) SUMS(2, 2) SUMS(3, 2)
#endif
#if defined(EM_ISA_AVX512)
    SUMS(4, 1) SUMS(5, 1) SUMS(6, 1) SUMS(4, 2) SUMS(5, 2) SUMS(6, 2) SUMS(1, 3) SUMS(2, 3) SUMS(3, 3) SUMS(4, 3) SUMS(5, 3) SUMS(6, 3)
    SUMS(1, 4) SUMS(2, 4) SUMS(3, 4) SUMS(4, 4) SUMS(5, 4) SUMS(6, 4)
#endif
  }
}
#undef SUMS
static TARGET void N(gradient)(const em_conv_product *g) {
  const int64_t tiles = (g->m + GROWS - 1) / GROWS, rows = (g->m + tiles - 1) / tiles;
  const int64_t fit = ROW_BYTES / (int64_t)sizeof(D) / (g->lda + 1) / rows * rows, stay = fit < rows ? rows : fit;
  for (int64_t m = 0; m < g->m; m += stay)
    for (int64_t j = 0; j < g->k; j += GCOLS) {
      const int64_t cols = g->k - j < GCOLS ? g->k - j : GCOLS, end = g->m - m < stay ? g->m : m + stay;
      for (int64_t i = m; i < end; i += rows)
        N(some_sums)(g, (const D *)g->a + i * g->lda, g->off + j, (T *)g->c + i * g->ldc + j, end - i < rows ? end - i : rows, cols);
    }
}
#endif
#undef LOAD
#undef STORE
