// formulas_fft.c: helpers of derivatives_fft.yaml.
#include "formulas.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

static int64_t last_of(em_tensor *t, em_ints dim) {
  const int64_t d = dim.p[dim.n - 1];
  return d < 0 ? d + t->ndim : d;
}
// Frequencies that were not computed have no gradient: zeros, and the transform back of all.
em_status formula_fft_r2c(em_tensor *grad, em_ints dim, int64_t normalization, bool onesided, em_ints sizes,
                          em_tensor **out) {
  OWN full = NULL;
  OWN back = NULL;
  const int64_t last = last_of(grad, dim), missing = sizes.p[last] - grad->sizes[last];
  if (onesided && missing > 0) {
    int64_t pad[2 * EM_MAX_DIMS] = {0};
    pad[2 * (grad->ndim - 1 - last) + 1] = missing;
    EM_PASS(em_call_constant_pad_nd(grad, (em_ints){pad, 2 * grad->ndim}, em_scalar_int(0), &full));
  }
  EM_PASS(em_call__fft_c2c(full != NULL ? full : grad, dim, normalization, false, &back));
  return em_call_real(back, out);
}
// A frequency that stands for its mirror image too counts twice.
em_status formula_fft_c2r(em_tensor *grad, em_ints dim, int64_t normalization, em_tensor **out) {
  OWN half = NULL;
  OWN twice = NULL;
  EM_PASS(em_call__fft_r2c(grad, dim, normalization, true, &half));
  const int64_t last = last_of(grad, dim), n = half->sizes[last], mirrored = grad->sizes[last] - n;
  if (mirrored <= 0) {
    *out = em_tensor_retain(half);
    return EM_OK;
  }
  OWN before = NULL;
  OWN middle = NULL;
  OWN after = NULL;
  EM_PASS(em_call_narrow(half, last, 0, 1, &before));
  EM_PASS(em_call_narrow(half, last, 1, mirrored, &middle));
  EM_PASS(em_call_narrow(half, last, 1 + mirrored, n - 1 - mirrored, &after));
  EM_PASS(em_call_mul_Scalar(middle, em_scalar_int(2), &twice));
  return em_call_cat((em_tensors){(em_tensor *const[]){before, twice, after}, 3}, last, out);
}
