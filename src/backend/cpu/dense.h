// dense.h: operands as kernels without strides want them: contiguous, in one of a few dtypes.
#ifndef EMBER_BACKEND_CPU_DENSE_H
#define EMBER_BACKEND_CPU_DENSE_H
#include "../../core/iterator.h"

// t itself, or a contiguous copy of another dtype. New reference.
static inline em_status em_dense_in(em_tensor *t, int dtype, em_tensor **out) {
  if (t->dtype == dtype && em_tensor_is_contiguous(t)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  EM_PASS(em_tensor_new(t->ndim, t->sizes, dtype, t->device, out));
  em_status st = em_copy_into(*out, t);
  if (st != EM_OK) {
    em_tensor_release(*out);
    *out = NULL;
  }
  return st;
}
// What a kernel writes for t: t itself, or a contiguous tensor of another dtype that em_dense_back brings home.
static inline em_status em_dense_out(em_tensor *t, int dtype, em_tensor **out) {
  if (t->dtype == dtype && em_tensor_is_contiguous(t)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  return em_tensor_new(t->ndim, t->sizes, dtype, t->device, out);
}
static inline em_status em_dense_back(em_tensor *t, em_tensor *written) {
  return t == written ? EM_OK : em_copy_into(t, written);
}
#endif
