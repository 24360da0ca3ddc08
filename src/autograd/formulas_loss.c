// formulas_loss.c: derivatives of activations and losses where the language of the rows is too small.
#include "formulas.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *
static em_status same(em_tensor *t, em_tensor **out) {
  *out = em_tensor_retain(t);
  return EM_OK;
}
// a * x + b
static em_status affine(em_tensor *x, double a, double b, em_tensor **out) {
  OWN t = NULL;
  EM_PASS(em_call_mul_Scalar(x, em_scalar_double(a), &t));
  return em_call_add_Scalar(t, em_scalar_double(b), em_scalar_int(1), out);
}

// celu is elu with its argument and its negative side scaled by alpha.
em_status formula_celu(em_tensor *grad, em_tensor *x, em_scalar alpha, bool is_result, em_tensor **out) {
  return em_call_elu_backward(grad, alpha, em_scalar_int(1), em_scalar_double(1 / em_scalar_to_double(alpha)), is_result,
                              x, out);
}
// With t = tanh(softplus(x)) and s = sigmoid(x): s (1 - t^2) (2 + x (1 - s) - 2 x t s).
em_status formula_mish_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_tensor **out) {
  OWN s = NULL;
  OWN softplus = NULL;
  OWN t = NULL;
  OWN t2 = NULL;
  OWN slope = NULL;
  OWN front = NULL;
  OWN xs = NULL;
  OWN xts = NULL;
  OWN less = NULL;
  OWN sum = NULL;
  OWN last = NULL;
  OWN d = NULL;
  OWN both = NULL;
  EM_PASS(em_call_sigmoid(self, &s));
  EM_PASS(em_call_softplus(self, em_scalar_int(1), em_scalar_int(20), &softplus));
  EM_PASS(em_call_tanh(softplus, &t));
  EM_PASS(em_call_mul_Tensor(t, t, &t2));
  EM_PASS(affine(t2, -1, 1, &slope));
  EM_PASS(em_call_mul_Tensor(slope, s, &front));
  EM_PASS(em_call_mul_Tensor(self, s, &xs));
  EM_PASS(em_call_mul_Tensor(xs, t, &xts));
  EM_PASS(em_call_sub_Tensor(self, xs, em_scalar_int(1), &less));
  EM_PASS(em_call_sub_Tensor(less, xts, em_scalar_int(2), &sum));
  EM_PASS(affine(sum, 1, 2, &last));
  EM_PASS(em_call_mul_Tensor(front, last, &d));
  EM_PASS(em_call_mul_Tensor(grad, grad_output, &both));
  return em_call_mul_Tensor(both, d, out);
}

em_status formula_reduced_dot(em_tensor *grad, em_tensor *slope, int64_t reduction, em_tensor **out) {
  OWN product = NULL;
  if (reduction == 0) return em_call_mul_Tensor(grad, slope, out);
  EM_PASS(em_call_mul_Tensor(grad, slope, &product));
  return em_call_sum(product, EM_DTYPE_NONE, out);
}
em_status formula_over_mean(em_tensor *t, int64_t reduction, em_tensor **out) {
  if (reduction != 1 || t->numel == 0) return same(t, out);
  return em_call_div_Scalar(t, em_scalar_int(t->numel), out);
}

em_status formula_rows_dot(em_tensor *grad, em_tensor *slope, int64_t reduction, em_tensor **out) {
  OWN product = NULL;
  EM_PASS(em_call_mul_Tensor(grad, slope, &product));
  if (reduction == 0 && grad->ndim > 1) return em_call_sum_dim_IntList(product, EM_INTS(1), false, EM_DTYPE_NONE, out);
  return em_call_sum(product, EM_DTYPE_NONE, out);
}
// The hinge is piecewise linear; its square is not.
em_status formula_multi_margin_second(em_tensor *grad, em_scalar p, em_tensor **out) {
  if (em_scalar_equal(p, 1))
    return em_call_zeros_like(grad, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, out);
  return em_fail(EM_ERR_RUNTIME, "derivative for aten::multi_margin_loss_backward is not implemented");
}
// The gradient of a table is linear in the gradients of its bags: each bag takes back from its rows.
em_status formula_bag_second(em_tensor *grad, em_tensor *indices, em_tensor *offsets, bool scale, int64_t mode,
                             em_tensor *per_sample_weights, int64_t padding_idx, em_tensor **out) {
  if (mode == 2 || scale)
    return em_fail(EM_ERR_RUNTIME, "derivative for aten::_embedding_bag_backward is not implemented");
  OWN a = NULL;
  OWN b = NULL;
  OWN c = NULL;
  return em_call__embedding_bag(grad, indices, offsets, false, mode, false, per_sample_weights, false, padding_idx, out,
                                &a, &b, &c);
}

// --- binary cross entropy with logits: (1 - y) x + (1 + (p - 1) y) softplus(-x)
static em_status weighted(em_tensor *grad, em_tensor *weight, em_tensor *like, int64_t reduction, em_tensor **out) {
  OWN scaled = NULL;
  if (reduction == 1 && like->numel > 0) EM_PASS(em_call_div_Scalar(grad, em_scalar_int(like->numel), &scaled));
  else scaled = em_tensor_retain(grad);
  return weight == NULL ? same(scaled, out) : em_call_mul_Tensor(scaled, weight, out);
}
em_status formula_bce_logits(em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                             em_tensor *pos_weight, int64_t reduction, em_tensor **out) {
  OWN g = NULL;
  OWN s = NULL;
  OWN py = NULL;
  OWN more = NULL;
  OWN scale = NULL;
  OWN up = NULL;
  OWN d = NULL;
  EM_PASS(weighted(grad, weight, self, reduction, &g));
  EM_PASS(em_call_sigmoid(self, &s));
  if (pos_weight == NULL) {
    EM_PASS(em_call_sub_Tensor(s, target, em_scalar_int(1), &d));
    return em_call_mul_Tensor(d, g, out);
  }
  EM_PASS(em_call_mul_Tensor(pos_weight, target, &py));  // (1 - y + p y) s - p y
  EM_PASS(em_call_sub_Tensor(py, target, em_scalar_int(1), &more));
  EM_PASS(affine(more, 1, 1, &scale));
  EM_PASS(em_call_mul_Tensor(scale, s, &up));
  EM_PASS(em_call_sub_Tensor(up, py, em_scalar_int(1), &d));
  return em_call_mul_Tensor(d, g, out);
}
em_status formula_bce_logits_target(em_tensor *grad, em_tensor *self, em_tensor *weight, em_tensor *pos_weight,
                                    int64_t reduction, em_tensor **out) {
  OWN g = NULL;
  OWN n = NULL;
  OWN l = NULL;
  OWN nl = NULL;
  OWN pl = NULL;
  OWN d = NULL;
  EM_PASS(weighted(grad, weight, self, reduction, &g));
  if (pos_weight == NULL) {
    EM_PASS(em_call_neg(self, &n));
    return em_call_mul_Tensor(n, g, out);
  }
  // log sigmoid(-x) - p log sigmoid(x)
  EM_PASS(em_call_neg(self, &n));
  EM_PASS(em_call_log_sigmoid(n, &nl));
  EM_PASS(em_call_log_sigmoid(self, &l));
  EM_PASS(em_call_mul_Tensor(l, pos_weight, &pl));
  EM_PASS(em_call_sub_Tensor(nl, pl, em_scalar_int(1), &d));
  return em_call_mul_Tensor(d, g, out);
}
