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
} em_gemm_loops;
#endif
