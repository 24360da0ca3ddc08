// gemm_bodies.inc.h: the matrix product for one compute type. Included by gemm_loops.c with
//   T (float, double, int32_t, int64_t), N(name) (name with the type's suffix), FMA(a, b, c) on vectors of T, COMPUTE (em_dtype of T),
//   PAIR (em_dtype of a pair of T, or -1).
//
// A complex product is a real one of twice the size: with A' = [re -im; im re] for each element, and B' = [re; im], the rows of A' B'
// are the real and imaginary parts of A B. So one micro kernel serves real and complex, and packing does the rest.
typedef T N(vec) __attribute__((vector_size(VEC_BYTES)));
typedef T N(vecu) __attribute__((vector_size(VEC_BYTES), aligned(sizeof(T)), may_alias));
enum { N(L) = VEC_BYTES / sizeof(T), N(NR) = 2 * VEC_BYTES / sizeof(T) };

// acc (MR x NR, row length ld) gets the product of MR rows of A with a packed panel of B, over k; added to what is there unless `fresh`.
// Rows beyond `rows` repeat the last one: their results are never read.
static inline void N(micro)(int64_t k, const T *a, int64_t a_row, int64_t a_col, int64_t rows, const T *b, T *acc, int64_t ld, bool fresh) {
#define ROW_POINTER(r) const T *a##r = a + (r < rows ? r : rows - 1) * a_row;
#define ROW_START(r)                                                                                         \
  N(vec) c##r##0 = {0}, c##r##1 = {0};                                                                       \
  if (!fresh) c##r##0 = *(const N(vecu) *)(acc + r * ld), c##r##1 = *(const N(vecu) *)(acc + r * ld + N(L));
#define ROW_STEP(r)                    \
  {                                    \
    const N(vec) x = *a##r - (N(vec)){0}; \
    c##r##0 = FMA(x, b0, c##r##0);     \
    c##r##1 = FMA(x, b1, c##r##1);     \
    a##r += a_col;                     \
  }
#define ROW_END(r) *(N(vecu) *)(acc + r * ld) = c##r##0, *(N(vecu) *)(acc + r * ld + N(L)) = c##r##1;
  EACH_ROW(ROW_POINTER)
  EACH_ROW(ROW_START)
  for (int64_t p = 0; p < k; p++, b += N(NR)) {
    const N(vec) b0 = *(const N(vecu) *)b, b1 = *(const N(vecu) *)(b + N(L));
    EACH_ROW(ROW_STEP)
  }
  EACH_ROW(ROW_END)
#undef ROW_POINTER
#undef ROW_START
#undef ROW_STEP
#undef ROW_END
}

// B's rows [k0, k0 + kc) into panels of NR columns, each kc (twice that for pairs) rows long; columns beyond n are zero.
static void N(pack_b)(const em_gemm *g, int64_t k0, int64_t kc, T *to) {
  const bool pair = g->dtype == PAIR;
  const int64_t item = (int64_t)em_dtype_size(g->dtype), rows = pair ? 2 * kc : kc;
  const char *from = g->b.data + k0 * g->b.row * item;
  for (int64_t j = 0; j < g->n; j += N(NR), to += rows * N(NR)) {
    const int64_t w = g->n - j < N(NR) ? g->n - j : N(NR);
    if (w < N(NR)) memset(to, 0, (size_t)(rows * N(NR)) * sizeof(T));
    if (pair) {
      T line[2 * N(NR)];
      for (int64_t p = 0; p < kc; p++) {
        em_cast_load(line, PAIR, from + (p * g->b.row + j * g->b.col) * item, PAIR, g->b.col * item, w);
        for (int64_t i = 0; i < w; i++) to[2 * p * N(NR) + i] = line[2 * i], to[(2 * p + 1) * N(NR) + i] = line[2 * i + 1];
      }
    } else if (g->b.col != 1 && g->b.row == 1) {  // along k in memory: read columns, not one element of each
      T line[KC];
      for (int64_t i = 0; i < w; i++) {
        const T *source = line;
        const char *column = from + (j + i) * g->b.col * item;
        if (g->dtype == COMPUTE) source = (const T *)column;
        else em_cast_load(line, COMPUTE, column, g->dtype, item, kc);
        for (int64_t p = 0; p < kc; p++) to[p * N(NR) + i] = source[p];
      }
    } else if (g->dtype == COMPUTE && g->b.col == 1) {
      for (int64_t p = 0; p < kc; p++) memcpy(to + p * N(NR), from + (p * g->b.row + j) * item, (size_t)w * sizeof(T));
    } else {
      for (int64_t p = 0; p < kc; p++)
        em_cast_load(to + p * N(NR), COMPUTE, from + (p * g->b.row + j * g->b.col) * item, g->dtype, g->b.col * item, w);
    }
  }
}

// A's columns [k0, k0 + kc) as rows of kc values of T; pairs become two rows of 2 kc.
static void N(pack_a)(const em_gemm *g, int64_t k0, int64_t kc, T *to) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype);
  for (int64_t i = 0; i < g->m; i++) {
    const char *from = g->a.data + (i * g->a.row + k0 * g->a.col) * item;
    if (g->dtype == PAIR) {
      T *re = to + 4 * i * kc, *im = re + 2 * kc;
      em_cast_load(im, PAIR, from, PAIR, g->a.col * item, kc);
      for (int64_t p = 0; p < kc; p++) re[2 * p] = im[2 * p], re[2 * p + 1] = -im[2 * p + 1];
      for (int64_t p = 0; p < kc; p++) im[2 * p] = -re[2 * p + 1], im[2 * p + 1] = re[2 * p];
    } else {
      em_cast_load(to + i * kc, COMPUTE, from, g->dtype, g->a.col * item, kc);
    }
  }
}

// One row of C: n values from acc (pairs: real parts in acc, imaginary ones in im), scaled, added to S, rounded once.
static void N(put_row)(const em_gemm *g, int64_t i, const T *acc, const T *im) {
  const int64_t item = (int64_t)em_dtype_size(g->dtype), n = g->n;
  char *c = g->c.data + i * g->c.row * item;
  const char *s = g->s.data == NULL ? NULL : g->s.data + i * g->s.row * item;
  T line[2 * EM_GEMM_COLS], self[2 * EM_GEMM_COLS];
  if (im != NULL) {
    const T ar = (T)g->alpha.re, ai = (T)g->alpha.im, br = (T)g->beta.re, bi = (T)g->beta.im;
    const bool one = g->alpha.re == 1 && g->alpha.im == 0;
    for (int64_t j = 0; j < n; j++) {
      line[2 * j] = one ? acc[j] : ar * acc[j] - ai * im[j];
      line[2 * j + 1] = one ? im[j] : ar * im[j] + ai * acc[j];
    }
    if (s != NULL) {
      em_cast_load(self, PAIR, s, PAIR, g->s.col * item, n);
      for (int64_t j = 0; j < n; j++) {
        line[2 * j] += br * self[2 * j] - bi * self[2 * j + 1];
        line[2 * j + 1] += br * self[2 * j + 1] + bi * self[2 * j];
      }
    }
    em_cast_store(c, PAIR, g->c.col * item, line, PAIR, n);
    return;
  }
  const T alpha = (T)SCALAR(g, alpha), beta = (T)SCALAR(g, beta);
  T *to = g->dtype == COMPUTE && g->c.col == 1 ? (T *)c : line;
  if (s == NULL) {
    if (alpha == 1) memcpy(to, acc, (size_t)n * sizeof(T));
    else for (int64_t j = 0; j < n; j++) to[j] = alpha * acc[j];
  } else {
    const T *from = self;
    if (g->dtype == COMPUTE && g->s.col == 1) from = (const T *)s;
    else em_cast_load(self, COMPUTE, s, g->dtype, g->s.col * item, n);
    for (int64_t j = 0; j < n; j++) to[j] = alpha * acc[j] + beta * from[j];
  }
  if (to == line) em_cast_store(c, g->dtype, g->c.col * item, line, COMPUTE, n);
}

// The product with buffers given: packed B (kmax x n rounded up to NR), packed A (m x kmax; unused where A is read in place), and the sums
// (m rounded up to MR, n rounded up to NR).
static inline void N(multiply)(const em_gemm *g, int64_t kmax, T *pb, T *pa, T *acc) {
  const bool pair = g->dtype == PAIR, in_place = g->dtype == COMPUTE;
  const int64_t rows = pair ? 2 * g->m : g->m, ld = (g->n + N(NR) - 1) / N(NR) * N(NR);
  if (g->k == 0) memset(acc, 0, (size_t)(rows * ld) * sizeof(T));
  for (int64_t k0 = 0; k0 < g->k; k0 += kmax) {
    const int64_t kc = g->k - k0 < kmax ? g->k - k0 : kmax, depth = pair ? 2 * kc : kc;
    N(pack_b)(g, k0, kc, pb);
    if (!in_place) N(pack_a)(g, k0, kc, pa);
    const T *a = in_place ? (const T *)g->a.data + k0 * g->a.col : pa;
    const int64_t a_row = in_place ? g->a.row : depth, a_col = in_place ? g->a.col : 1;
    for (int64_t j = 0; j < g->n; j += N(NR))
      for (int64_t i = 0; i < rows; i += MR)
        N(micro)(depth, a + i * a_row, a_row, a_col, rows - i < MR ? rows - i : MR, pb + j * depth, acc + i * ld + j, ld, k0 == 0);
  }
  for (int64_t i = 0; i < g->m; i++)
    N(put_row)(g, i, acc + (pair ? 2 * i : i) * ld, pair ? acc + (2 * i + 1) * ld : NULL);
}

// Two sizes of buffers: a frame of hundreds of kilobytes costs more than a small product does.
static __attribute__((noinline)) void N(small)(const em_gemm *g) {
  T pb[SMALL * SMALL * 2 + SMALL * N(NR) * 2], pa[SMALL * SMALL * 4], acc[(2 * SMALL + MR) * (SMALL + N(NR))];
  N(multiply)(g, SMALL, pb, pa, acc);
}
static __attribute__((noinline)) void N(large)(const em_gemm *g) {
  enum { R = EM_GEMM_ROWS, C = EM_GEMM_COLS };
  T pb[KC * C], pa[R * KC], acc[(R + MR) * C];
  if (g->dtype != PAIR) {
    N(multiply)(g, KC, pb, pa, acc);
    return;
  }
  em_gemm part = *g;  // pairs need twice the rows and twice the depth
  for (int64_t i = 0; i < g->m; i += R / 2) {
    part.m = g->m - i < R / 2 ? g->m - i : R / 2;
    part.a.data = g->a.data + i * g->a.row * (int64_t)(2 * sizeof(T));
    part.c.data = g->c.data + i * g->c.row * (int64_t)(2 * sizeof(T));
    if (g->s.data != NULL) part.s.data = g->s.data + i * g->s.row * (int64_t)(2 * sizeof(T));
    N(multiply)(&part, KC / 2, pb, pa, acc);
  }
}
static void N(block)(const em_gemm *g) {
  if (g->m <= SMALL && g->n <= SMALL && g->k <= SMALL) N(small)(g);
  else N(large)(g);
}
