// contract.h: what contract.c, einsum.c and linalg.c share.
#ifndef EMBER_OPS_CONTRACT_H
#define EMBER_OPS_CONTRACT_H
#include "../core/tensor.h"

em_status em_priv_resolved_conj(em_tensor *t, em_tensor **out);  // t itself when it is real
// "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"
em_status em_priv_check_square(const em_tensor *a, const char *name);
#endif
