// formula_tools.h: what files of formulas share: owned locals, and short names for common calls.
#ifndef EMBER_AUTOGRAD_FORMULA_TOOLS_H
#define EMBER_AUTOGRAD_FORMULA_TOOLS_H
#include "formulas.h"
#include "gen_ops.h"

// A tensor of this function's own, released when the function is left, by whatever way.
static inline void formula_drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(formula_drop))) em_tensor *
static inline em_status formula_move(em_tensor **from, em_tensor **out) {
  *out = *from;
  *from = NULL;
  return EM_OK;
}
static inline em_status formula_same(em_tensor *t, em_tensor **out) {
  *out = em_tensor_retain(t);
  return EM_OK;
}
static inline em_status formula_zeros_like(em_tensor *t, em_tensor **out) {
  return em_call_zeros_like(t, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, out);
}
static inline em_status formula_new_zeros(em_tensor *t, em_ints sizes, em_tensor **out) {
  return em_call_new_zeros(t, sizes, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out);
}
static inline em_status formula_sum_over(em_tensor *t, em_ints dims, em_tensor **out) {
  return em_call_sum_dim_IntList(t, dims, true, EM_DTYPE_NONE, out);
}
em_status formula_has_zero(em_tensor *t, bool *zero);  // looks at values; false on the meta device
#endif
