// own.h: tensors that a function owns and drops by whatever way it is left, for composites with many intermediates.
#ifndef EMBER_OPS_OWN_H
#define EMBER_OPS_OWN_H
#include "../core/tensor.h"

static inline void em_priv_drop(em_tensor **t) { em_tensor_release(*t); }
#define EM_OWN __attribute__((cleanup(em_priv_drop))) em_tensor *
// Hands *from to the caller.
static inline em_status em_priv_give(em_tensor **from, em_tensor **out) {
  *out = *from;
  *from = NULL;
  return EM_OK;
}
#endif
