// lib_onednn.h: oneDNN (its version 3 C interface), opened at its first use.
#ifndef EMBER_BACKEND_CPU_LIB_ONEDNN_H
#define EMBER_BACKEND_CPU_LIB_ONEDNN_H
#include "lib_path.h"

typedef struct em_onednn_operand { int dtype; const void *data; int64_t row, col; } em_onednn_operand;  // strides in elements

// c (m x n) = a (m x k) b (k x n) on the calling thread. dtypes: f16, bf16, f32. False: the library is not there, or has no kernel for this
// (nothing was written then); the caller has another way.
EM_PRIV bool em_priv_onednn_matmul(int64_t m, int64_t n, int64_t k, const em_onednn_operand *a, const em_onednn_operand *b,
                                   const em_onednn_operand *c);
// Whether it has a kernel for products of this dtype that is worth the call on this processor.
EM_PRIV bool em_priv_onednn_likes(int dtype);
#endif
