// gemm.h: one description for every matrix product: C = alpha * A B + beta * S, for `batch` matrices. Strides are in elements and may be
// anything, zero included; that is how transposes, slices and broadcasts come in without a copy.
#ifndef EMBER_BACKEND_CPU_GEMM_H
#define EMBER_BACKEND_CPU_GEMM_H
#include "../../core/scalar.h"

typedef struct em_matrix { char *data; int64_t row, col, step; } em_matrix;  // step: from one matrix of the batch to the next
typedef struct em_gemm {
  int dtype;
  int64_t m, n, k, batch;
  em_matrix a, b, c, s;   // m x k, k x n, m x n, m x n. s.data NULL: beta is 0, and what S holds is not looked at
  em_c128 alpha, beta;    // for float and complex dtypes
  int64_t ialpha, ibeta;  // for integers
} em_gemm;

// The largest C that one `block` call makes: rows and columns. Buffers for it are on the stack.
#define EM_GEMM_ROWS 128
#define EM_GEMM_COLS 128

// Loops of one instruction set. All of them take the first matrix of the batch only.
typedef struct em_gemm_loops {
  // Any dtype, any strides. m <= EM_GEMM_ROWS, n <= EM_GEMM_COLS, k free. The sum over k is made in float (f16, bf16, f32, c64), double,
  // or integers that wrap, and rounded once.
  void (*block)(const em_gemm *g);
  // n = 1, for f16, bf16, f32, f64.
  void (*column)(const em_gemm *g);
  // C = alpha * acc + beta * S from a float product: the end of what a library computed in f32 for f16 and bf16.
  void (*finish)(const em_gemm *g, const float *acc);
  // Sum of a[i] * b[i] as one value of the compute dtype (conj: of conj(a[i])); strides in elements.
  void (*dot)(int dtype, bool conj, int64_t n, const char *a, int64_t as, const char *b, int64_t bs, void *out);
  // For a B (k x n, strides in elements) that many products of few rows share, f32 and f64 alone: it is laid out once by `pack`, into
  // em_gemm_packed_size(n, k) elements, and `packed` computes C (m x n, rows `ld` apart) = A B, added to what C holds when `add`.
  void (*pack)(int dtype, int64_t n, int64_t k, const void *b, int64_t row, int64_t col, void *to);
  void (*packed)(int dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row, int64_t a_col, const void *panels, void *c,
                 int64_t ld, bool add);
} em_gemm_loops;
#define EM_GEMM_PANEL 32  // columns of the widest panel
static inline int64_t em_gemm_packed_size(int64_t n, int64_t k) { return (n + EM_GEMM_PANEL - 1) / EM_GEMM_PANEL * EM_GEMM_PANEL * k; }

// For other kernels (products.c): the loops of this processor, and the product as mm computes it, cut into pieces for the threads. f16 and
// bf16 go without a library when S is there.
EM_PRIV const em_gemm_loops *em_priv_gemm_table(void);
EM_PRIV em_status em_priv_gemm(em_gemm *g);
#endif
