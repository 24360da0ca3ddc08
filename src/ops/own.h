// own.h: tensors that a function owns and drops by whatever way it is left, for composites with many intermediates.
#ifndef EMBER_OPS_OWN_H
#define EMBER_OPS_OWN_H
#include "../core/tensor.h"
#include "../core/device.h"

static inline void em_priv_drop(em_tensor **t) { em_tensor_release(*t); }
#define EM_OWN __attribute__((cleanup(em_priv_drop))) em_tensor *
// Hands *from to the caller.
static inline em_status em_priv_give(em_tensor **from, em_tensor **out) {
  *out = *from;
  *from = NULL;
  return EM_OK;
}
// reduce_composite.c: var, std and their kin warn when nothing is left to divide by. Passes st on; releases *out after an error.
EM_PRIV em_status em_priv_warn_degrees(em_status st, const char *name, const em_tensor *self, bool unbiased, em_tensor **out);
// What a kernel that reads both must know: a meta tensor beside a real one has nothing to read.
static inline em_status em_priv_same_device(const em_tensor *a, const em_tensor *b) {
  char x[32], y[32];
  if (b == NULL || a->device.type == b->device.type) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
                 em_device_format(a->device, x), em_device_format(b->device, y));
}
#endif
