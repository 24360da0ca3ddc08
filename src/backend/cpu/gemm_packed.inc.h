// gemm_packed.inc.h: products of few rows with a B that was packed beforehand, for float and double. Included after gemm_bodies.inc.h with
// the same macros. Recurrent layers and attention multiply by the same matrix again and again.
// B into panels for N(packed), as N(pack_b) does for one of its blocks. Along k in memory: PACK_RUN elements of each column at a time, so
// that reads and writes stay in the first cache.
#define PACK_RUN 16
static void N(pack)(int64_t n, int64_t k, const T *b, int64_t row, int64_t col, T *to) {
  if (row != 1 || col == 1) {
    const em_gemm g = {.dtype = COMPUTE, .n = n, .k = k, .b = {(char *)(uintptr_t)b, row, col, 0}};
    N(pack_b)(&g, 0, k, to);
    return;
  }
  for (int64_t j = 0; j < n; j += N(NR), to += k * N(NR)) {
    const int64_t w = n - j < N(NR) ? n - j : N(NR);
    if (w < N(NR)) memset(to, 0, (size_t)(k * N(NR)) * sizeof(T));
    for (int64_t p0 = 0; p0 < k; p0 += PACK_RUN) {
      const int64_t end = k - p0 < PACK_RUN ? k : p0 + PACK_RUN;
      for (int64_t p = p0; p < end; p++) {
        const T *from = b + j * col + p;
        for (int64_t i = 0; i < w; i++) to[p * N(NR) + i] = from[i * col];
      }
    }
  }
}
#undef PACK_RUN
// C = A B, or C += A B. A tile that hangs over C's edge is made beside it.
static void N(packed)(int64_t m, int64_t n, int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *panels, T *c, int64_t ld,
                      bool add) {
  T tile[MR * N(NR)];
  for (int64_t j = 0; j < n; j += N(NR), panels += k * N(NR)) {
    const int64_t w = n - j < N(NR) ? n - j : N(NR);
    for (int64_t i = 0; i < m; i += MR) {
      const int64_t rows = m - i < MR ? m - i : MR;
      T *to = c + i * ld + j;
      if (rows == MR && w == N(NR)) {
        N(micro)(k, a + i * a_row, a_row, a_col, MR, panels, to, ld, !add);
        continue;
      }
      N(micro)(k, a + i * a_row, a_row, a_col, rows, panels, tile, N(NR), true);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t l = 0; l < w; l++) to[r * ld + l] = add ? to[r * ld + l] + tile[r * N(NR) + l] : tile[r * N(NR) + l];
    }
  }
}
