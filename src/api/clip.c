// clip.c: gradients are made smaller before a step: em_clip_grad_norm, em_clip_grad_value.
#include "api.h"
#include <math.h>
#include "../autograd/node.h"
#include "gen_ops.h"
#include <ember/autograd.h>  // after the library's own headers, whose inline forms win
#include <ember/optim.h>

static em_status check_params(const char *who, em_tensor *const *params, int64_t n) {
  if (n < 0 || (n > 0 && params == NULL)) return em_fail(EM_ERR_TYPE, "%s(): the parameters are NULL", who);
  for (int64_t i = 0; i < n; i++)
    if (params[i] == NULL) return em_fail_null_entry(who, "parameter", i);
  return EM_OK;
}

// The norm of the gradients' norms, a 0-dim tensor. norms: room for n references, NULL at first.
static em_status total_norm(em_tensor *const *params, int64_t n, em_scalar type, em_tensor **norms, int64_t *count,
                            em_tensor **out) {
  for (int64_t i = 0; i < n; i++) {
    em_tensor *grad;
    EM_PASS(em_tensor_grad(params[i], &grad));
    if (grad == NULL) continue;
    EM_PASS(em_call_linalg_vector_norm(grad, type, EM_INTS_NONE, false, EM_DTYPE_NONE, &norms[*count]));
    ++*count;
  }
  if (*count == 0) return em_tensor_from_scalar(em_scalar_double(0), EM_F32, (em_device){EM_DEVICE_CPU, -1}, out);
  em_tensor *all;
  EM_PASS(em_call_stack((em_tensors){norms, *count}, 0, &all));
  em_status st = em_call_linalg_vector_norm(all, type, EM_INTS_NONE, false, EM_DTYPE_NONE, out);
  em_tensor_release(all);
  return st;
}

em_status em_clip_grad_norm(em_tensor *const *params, int64_t n, double max_norm, double norm_type, double *total) {
  EM_PASS(check_params("em_clip_grad_norm", params, n));
  if (isnan(max_norm) || isnan(norm_type))
    return em_fail(EM_ERR_VALUE, "em_clip_grad_norm(): max_norm and norm_type must be numbers, got %g and %g", max_norm, norm_type);
  em_status st = EM_OK;
  const size_t bytes = ((size_t)n + 1) * sizeof(em_tensor *);
  em_tensor **norms = em_alloc_zeroed(bytes), *norm = NULL, *above = NULL, *inverse = NULL, *scale = NULL;
  if (norms == NULL) return EM_NOMEM(bytes);
  int64_t count = 0;
  em_scalar value;
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  EM_TRY(total_norm(params, n, em_scalar_double(norm_type), norms, &count, &norm));
  EM_TRY(em_tensor_item(norm, &value));
  // max_norm / (norm + 1e-6), at most 1: multiplied in any case, as PyTorch does, so that no number decides what runs.
  EM_TRY(em_call_add_Scalar(norm, em_scalar_double(1e-6), em_scalar_int(1), &above));
  EM_TRY(em_call_reciprocal(above, &inverse));
  EM_TRY(em_call_mul_Scalar(inverse, em_scalar_double(max_norm), &scale));
  EM_TRY(em_call_clamp_(scale, em_scalar_none(), em_scalar_double(1)));
  for (int64_t i = 0; i < n; i++) {
    em_tensor *grad;
    EM_TRY(em_tensor_grad(params[i], &grad));
    if (grad != NULL) EM_TRY(em_call_mul__Tensor(grad, scale));
  }
  if (total != NULL) *total = em_scalar_to_double(value);
fail:
  em_guard_restore(guard);
  for (int64_t i = 0; i <= count && i < n; i++) em_tensor_release(norms[i]);
  em_free(norms, bytes);
  em_tensor_release(norm);
  em_tensor_release(above);
  em_tensor_release(inverse);
  em_tensor_release(scale);
  return st;
}

em_status em_clip_grad_value(em_tensor *const *params, int64_t n, double value) {
  EM_PASS(check_params("em_clip_grad_value", params, n));
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = EM_OK;
  for (int64_t i = 0; i < n && st == EM_OK; i++) {
    em_tensor *grad;
    st = em_tensor_grad(params[i], &grad);
    if (st == EM_OK && grad != NULL) st = em_call_clamp_(grad, em_scalar_double(-value), em_scalar_double(value));
  }
  em_guard_restore(guard);
  return st;
}
