// formulas_norm.c: gradients of normalisation as recorded operators. The fused kernels of the backward operators have no
// derivative of their own; where somebody wants a graph of the gradient (second order), the backward is made of
// operators instead. All kinds are one formula over x normalised along `dims`, and a weight broadcast against it.
#include "../core/shape.h"
#include "formulas.h"
#include "gen_ops.h"
#include "node.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

// What a gradient is made of. Shapes: x and grad as reshaped by the caller; mean and rstd with 1 in `dims`.
typedef struct norm {
  em_tensor *grad, *x, *mean, *rstd, *weight;
  em_ints dims;        // normalised over; empty: mean and rstd are constants
  em_ints weight_dims; // summed over for the gradients of weight and bias
  bool centred;
} norm;
static em_status mean_over(em_tensor *t, em_ints dims, em_tensor **out) {
  return em_call_mean_dim(t, dims, true, EM_DTYPE_NONE, out);
}
// 1 / sqrt(var + eps) that depends on x: what was added to the variance is worked out from the given rstd.
static em_status live_rstd(const norm *k, em_tensor *centred, em_tensor **out) {
  OWN square = NULL;
  OWN var = NULL;
  OWN plain = NULL;
  OWN inverse = NULL;
  OWN inverse2 = NULL;
  OWN eps = NULL;
  OWN sum = NULL;
  EM_PASS(em_call_mul_Tensor(centred, centred, &square));
  EM_PASS(mean_over(square, k->dims, &var));
  EM_PASS(em_call_detach(var, &plain));
  EM_PASS(em_call_reciprocal(k->rstd, &inverse));
  EM_PASS(em_call_mul_Tensor(inverse, inverse, &inverse2));
  EM_PASS(em_call_sub_Tensor(inverse2, plain, em_scalar_int(1), &eps));
  EM_PASS(em_call_add_Tensor(var, eps, em_scalar_int(1), &sum));
  return em_call_rsqrt(sum, out);
}
static em_status normalised(const norm *k, em_tensor **rstd, em_tensor **out) {
  OWN mean = NULL;
  OWN centred = NULL;
  if (k->dims.n == 0) {
    *rstd = em_tensor_retain(k->rstd);
    EM_PASS(em_call_sub_Tensor(k->x, k->mean, em_scalar_int(1), &centred));
    return em_call_mul_Tensor(centred, k->rstd, out);
  }
  if (k->centred) {
    EM_PASS(mean_over(k->x, k->dims, &mean));
    EM_PASS(em_call_sub_Tensor(k->x, mean, em_scalar_int(1), &centred));
  } else {
    centred = em_tensor_retain(k->x);
  }
  EM_PASS(live_rstd(k, centred, rstd));
  return em_call_mul_Tensor(centred, *rstd, out);
}
// rstd (g - mean(g) - xhat mean(g xhat)), g = grad * weight
static em_status input_gradient(const norm *k, em_tensor *xhat, em_tensor *rstd, em_tensor **out) {
  OWN g = NULL;
  OWN mean = NULL;
  OWN less = NULL;
  OWN gx = NULL;
  OWN mean_gx = NULL;
  OWN along = NULL;
  OWN rest = NULL;
  if (k->weight != NULL) EM_PASS(em_call_mul_Tensor(k->grad, k->weight, &g));
  else g = em_tensor_retain(k->grad);
  if (k->dims.n == 0) return em_call_mul_Tensor(g, rstd, out);
  if (k->centred) {
    EM_PASS(mean_over(g, k->dims, &mean));
    EM_PASS(em_call_sub_Tensor(g, mean, em_scalar_int(1), &less));
  } else {
    less = em_tensor_retain(g);
  }
  EM_PASS(em_call_mul_Tensor(g, xhat, &gx));
  EM_PASS(mean_over(gx, k->dims, &mean_gx));
  EM_PASS(em_call_mul_Tensor(xhat, mean_gx, &along));
  EM_PASS(em_call_sub_Tensor(less, along, em_scalar_int(1), &rest));
  return em_call_mul_Tensor(rest, rstd, out);
}
static em_status like(em_tensor *t, em_ints sizes, int dtype, em_tensor **out) {
  OWN shaped = NULL;
  EM_PASS(em_call_reshape(t, sizes, &shaped));
  return em_call_to_dtype(shaped, dtype, false, false, EM_FORMAT_NONE, out);
}
static em_status gradients(const norm *k, em_tensor *input, em_ints weight_sizes, int weight_dtype, em_bools mask,
                           em_tensor **dx, em_tensor **dgamma, em_tensor **dbeta) {
  OWN rstd = NULL;
  OWN xhat = NULL;
  OWN t = NULL;
  OWN u = NULL;
  OWN v = NULL;
  OWN w = NULL;
  EM_PASS(normalised(k, &rstd, &xhat));
  em_status st = EM_OK;
  *dx = *dgamma = NULL;
  if (mask.p[0]) {
    EM_TRY(input_gradient(k, xhat, rstd, &t));
    EM_TRY(like(t, (em_ints){input->sizes, input->ndim}, input->dtype, dx));
  }
  if (mask.p[1]) {
    EM_TRY(em_call_mul_Tensor(k->grad, xhat, &u));
    EM_TRY(em_call_sum_dim_IntList(u, k->weight_dims, false, EM_DTYPE_NONE, &v));
    EM_TRY(like(v, weight_sizes, weight_dtype, dgamma));
  }
  if (dbeta != NULL) *dbeta = NULL;
  if (dbeta != NULL && mask.p[2]) {
    EM_TRY(em_call_sum_dim_IntList(k->grad, k->weight_dims, false, EM_DTYPE_NONE, &w));
    EM_TRY(like(w, weight_sizes, weight_dtype, dbeta));
  }
  return EM_OK;
fail:
  EM_CLEAR_TENSOR(dx);
  EM_CLEAR_TENSOR(dgamma);
  return st;
}
static bool wants_graph(em_tensor *a, em_tensor *b, em_tensor *c) {
  em_tensor *const t[] = {a, b, c};
  return em_grad_enabled() && em_any_requires_grad(t, 3);
}
static int weight_type(em_tensor *weight, em_tensor *input) { return weight == NULL ? input->dtype : weight->dtype; }
static em_status maybe_reshape(em_tensor *t, em_ints sizes, em_tensor **out) {
  return t == NULL ? EM_OK : em_call_reshape(t, sizes, out);
}

// --- rows: (m, n), normalised over n
static em_status rows_gradients(em_tensor *grad, em_tensor *input, em_ints shape, em_tensor *mean, em_tensor *rstd,
                                em_tensor *weight, em_bools mask, em_tensor **dx, em_tensor **dgamma,
                                em_tensor **dbeta) {
  OWN g = NULL;
  OWN x = NULL;
  OWN r = NULL;
  OWN w = NULL;
  int64_t n = 1;
  for (int64_t i = 0; i < shape.n; i++) n *= shape.p[i];
  const em_ints flat = EM_INTS(rstd->numel, n);
  EM_PASS(em_call_reshape(grad, flat, &g));
  EM_PASS(em_call_reshape(input, flat, &x));
  EM_PASS(em_call_reshape(rstd, EM_INTS(rstd->numel, 1), &r));
  EM_PASS(maybe_reshape(weight, EM_INTS(1, n), &w));
  const norm k = {g, x, NULL, r, w, EM_INTS(1), EM_INTS(0), mean != NULL};
  return gradients(&k, input, shape, weight_type(weight, input), mask, dx, dgamma, dbeta);
}
em_status n_autograd_native_layer_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_ints shape,
                                                em_tensor *mean, em_tensor *rstd, em_tensor *weight, em_tensor *bias,
                                                em_bools mask, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  if (wants_graph(grad_out, input, weight))
    return rows_gradients(grad_out, input, shape, mean, rstd, weight, mask, out0, out1, out2);
  return em_redispatch_native_layer_norm_backward(ks & EM_KEYS_BELOW(EM_KEY_Autograd), grad_out, input, shape, mean,
                                                  rstd, weight, bias, mask, out0, out1, out2);
}
em_status n_autograd__fused_rms_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_ints shape,
                                              em_tensor *rstd, em_tensor *weight, em_bools mask, em_tensor **out0,
                                              em_tensor **out1) {
  if (wants_graph(grad_out, input, weight))
    return rows_gradients(grad_out, input, shape, NULL, rstd, weight, mask, out0, out1, NULL);
  return em_redispatch__fused_rms_norm_backward(ks & EM_KEYS_BELOW(EM_KEY_Autograd), grad_out, input, shape, rstd,
                                                weight, mask, out0, out1);
}

// --- batches: normalised over all dims but the second
static em_status batch_gradients(em_tensor *grad, em_tensor *input, em_tensor *weight, em_tensor *mean,
                                 em_tensor *invstd, bool train, em_bools mask, em_tensor **dx, em_tensor **dgamma,
                                 em_tensor **dbeta) {
  OWN m = NULL;
  OWN r = NULL;
  OWN w = NULL;
  const int64_t c = input->sizes[1];
  int64_t sizes[EM_MAX_DIMS], others[EM_MAX_DIMS];
  int count = 0;
  for (int d = 0; d < input->ndim; d++) {
    sizes[d] = d == 1 ? c : 1;
    if (d != 1) others[count++] = d;
  }
  const em_ints channels = {sizes, input->ndim}, over = {others, count};
  EM_PASS(em_call_reshape(mean, channels, &m));
  EM_PASS(em_call_reshape(invstd, channels, &r));
  EM_PASS(maybe_reshape(weight, channels, &w));
  const norm k = {grad, input, m, r, w, train ? over : (em_ints){NULL, 0}, over, true};
  return gradients(&k, input, EM_INTS(c), weight_type(weight, input), mask, dx, dgamma, dbeta);
}
em_status n_autograd_native_batch_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_tensor *weight,
                                                em_tensor *running_mean, em_tensor *running_var, em_tensor *save_mean,
                                                em_tensor *save_invstd, bool train, double eps, em_bools mask,
                                                em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  if (!wants_graph(grad_out, input, weight) || input->ndim < 2 || (train ? save_invstd : running_var) == NULL)
    return em_redispatch_native_batch_norm_backward(ks & EM_KEYS_BELOW(EM_KEY_Autograd), grad_out, input, weight,
                                                    running_mean, running_var, save_mean, save_invstd, train, eps, mask,
                                                    out0, out1, out2);
  if (train)
    return batch_gradients(grad_out, input, weight, save_mean, save_invstd, true, mask, out0, out1, out2);
  OWN shifted = NULL;
  OWN invstd = NULL;
  EM_PASS(em_call_add_Scalar(running_var, em_scalar_double(eps), em_scalar_int(1), &shifted));
  EM_PASS(em_call_rsqrt(shifted, &invstd));
  return batch_gradients(grad_out, input, weight, running_mean, invstd, false, mask, out0, out1, out2);
}

// --- groups: (n, group, c / group, rest), normalised over the last two
em_status n_autograd_native_group_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_tensor *mean,
                                                em_tensor *rstd, em_tensor *weight, int64_t n, int64_t c, int64_t rest,
                                                int64_t group, em_bools mask, em_tensor **out0, em_tensor **out1,
                                                em_tensor **out2) {
  if (!wants_graph(grad_out, input, weight) || group < 1)
    return em_redispatch_native_group_norm_backward(ks & EM_KEYS_BELOW(EM_KEY_Autograd), grad_out, input, mean, rstd,
                                                    weight, n, c, rest, group, mask, out0, out1, out2);
  OWN g = NULL;
  OWN x = NULL;
  OWN r = NULL;
  OWN w = NULL;
  const em_ints split = EM_INTS(n, group, c / group, rest);
  EM_PASS(em_call_reshape(grad_out, split, &g));
  EM_PASS(em_call_reshape(input, split, &x));
  EM_PASS(em_call_reshape(rstd, EM_INTS(n, group, 1, 1), &r));
  EM_PASS(maybe_reshape(weight, EM_INTS(1, group, c / group, 1), &w));
  const norm k = {g, x, NULL, r, w, EM_INTS(2, 3), EM_INTS(0, 3), true};
  return gradients(&k, input, EM_INTS(c), weight_type(weight, input), mask, out0, out1, out2);
}
