// loss.c: losses. Reductions are PyTorch's numbers: 0 none, 1 mean, 2 sum.
#include <math.h>
#include <string.h>
#include "gen_ops.h"

enum { NONE, MEAN, SUM };

static em_status reduce(em_tensor *t, int64_t reduction, em_tensor **out) {
  if (reduction == MEAN) return em_call_mean(t, EM_DTYPE_NONE, out);
  if (reduction == SUM) return em_call_sum(t, EM_DTYPE_NONE, out);
  *out = em_tensor_retain(t);
  return EM_OK;
}

// --- negative log likelihood: checks. attr[0]: elements between classes of one sample, attr[1]: positions a sample
// has.
static em_status check_weight(const em_tensor *weight, int64_t classes) {
  if (weight == NULL || (weight->ndim == 1 && weight->numel == classes)) return EM_OK;
  char a[256];
  return em_fail(
      EM_ERR_RUNTIME,
      "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
      (long long)classes, em_shape_format(weight->ndim, weight->sizes, a, sizeof a));
}
static em_status check_target_dtype(const em_tensor *target) {
  if (target->dtype == EM_I64 || target->dtype == EM_U8) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected target dtype to be Long or Byte, but got %s", em_dtype_scalar_name(target->dtype));
}
static em_status check_nll(const em_tensor *self, const em_tensor *target, const em_tensor *weight) {
  if (self->ndim == 0 || self->ndim > 2) return em_fail(EM_ERR_RUNTIME, "input tensor should be 1D or 2D");
  if (target->ndim > 1) return em_fail(EM_ERR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
  if (self->ndim == 1) {
    if (target->ndim == 1 && target->sizes[0] != 1)
      return em_fail(EM_ERR_VALUE, "For 1D input, 1D target must have size 1, but got target size: %lld", (long long)target->sizes[0]);
  } else if (self->sizes[0] != (target->ndim == 0 ? 1 : target->sizes[0])) {
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "size mismatch (got input: %s, target: %s)",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a),
                   em_shape_format(target->ndim, target->sizes, b, sizeof b));
  }
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"nll_loss_out_frame\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  EM_PASS(check_target_dtype(target));
  return check_weight(weight, self->sizes[self->ndim - 1]);
}
static em_status check_nll2d(const em_tensor *self, const em_tensor *target, const em_tensor *weight) {
  char a[256], b[256];
  if (target->ndim != 3)
    return em_fail(EM_ERR_RUNTIME,
                   "only batches of spatial targets supported (3D tensors) but got targets of dimension: %d",
                   target->ndim);
  if (self->ndim != 4)
    return em_fail(EM_ERR_RUNTIME,
                   "only batches of spatial inputs supported (4D tensors), but got input of dimension: %d", self->ndim);
  if (self->sizes[0] != target->sizes[0] || self->sizes[2] != target->sizes[1] || self->sizes[3] != target->sizes[2])
    return em_fail(EM_ERR_RUNTIME, "size mismatch (got input: %s , target: %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a),
                   em_shape_format(target->ndim, target->sizes, b, sizeof b));
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"nll_loss2d_forward_out_frame\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  EM_PASS(check_target_dtype(target));
  return check_weight(weight, self->sizes[1]);
}
static void plan_nll(em_tensor *self, em_tensor *target, int64_t reduction, em_plan *p) {
  bool each = reduction == NONE && self->ndim > 1;
  em_plan_output_set(p, self->dtype, each ? target->ndim : 0, target->sizes, self->device);
  em_plan_output_set(p, self->dtype, 0, NULL, self->device);
}
em_status check_nll_loss_forward(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction,
                                 int64_t ignore_index, em_plan *p) {
  (void)ignore_index;
  EM_PASS(check_nll(self, target, weight));
  plan_nll(self, target, reduction, p);
  return EM_OK;
}
em_status check_nll_loss2d_forward(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction,
                                   int64_t ignore_index, em_plan *p) {
  (void)ignore_index;
  EM_PASS(check_nll2d(self, target, weight));
  plan_nll(self, target, reduction, p);
  return EM_OK;
}
static em_status plan_backward(em_tensor *grad, em_tensor *self, em_tensor *target, int64_t reduction, em_plan *p) {
  if (grad->numel != (reduction == NONE && self->ndim > 1 ? target->numel : 1)) {
    char a[256];
    return em_fail(EM_ERR_RUNTIME, "nll_loss_backward: grad_output of shape %s does not fit the loss",
                   em_shape_format(grad->ndim, grad->sizes, a, sizeof a));
  }
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_nll_loss_backward(em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                  int64_t reduction, int64_t ignore_index, em_tensor *total_weight, em_plan *p) {
  (void)ignore_index;
  (void)total_weight;
  EM_PASS(check_nll(self, target, weight));
  return plan_backward(grad, self, target, reduction, p);
}
em_status check_nll_loss2d_backward(em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                    int64_t reduction, int64_t ignore_index, em_tensor *total_weight, em_plan *p) {
  (void)ignore_index;
  (void)total_weight;
  EM_PASS(check_nll2d(self, target, weight));
  return plan_backward(grad, self, target, reduction, p);
}

em_status c_nll_loss(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction, int64_t ignore_index,
                     em_tensor **out) {
  em_tensor *total = NULL;
  em_status st = em_call_nll_loss_forward(self, target, weight, reduction, ignore_index, out, &total);
  em_tensor_release(total);
  return st;
}
em_status c_nll_loss2d(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction, int64_t ignore_index,
                       em_tensor **out) {
  em_tensor *total = NULL;
  em_status st = em_call_nll_loss2d_forward(self, target, weight, reduction, ignore_index, out, &total);
  em_tensor_release(total);
  return st;
}
// Any number of dims after the classes: they are folded into one and unfolded again.
em_status c_nll_loss_nd(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction, int64_t ignore_index,
                        em_tensor **out) {
  if (self->ndim < 1) return em_fail(EM_ERR_VALUE, "Expected 1 or more dimensions (got %d)", self->ndim);
  if (self->ndim != 1 && self->sizes[0] != (target->ndim == 0 ? 1 : target->sizes[0]))
    return em_fail(EM_ERR_VALUE, "Expected input batch_size (%lld) to match target batch_size (%lld).",
                   (long long)self->sizes[0], (long long)(target->ndim == 0 ? 1 : target->sizes[0]));
  if (self->ndim <= 2) return em_call_nll_loss(self, target, weight, reduction, ignore_index, out);
  if (self->ndim == 4) return em_call_nll_loss2d(self, target, weight, reduction, ignore_index, out);
  char a[256], b[256];
  bool fits = target->ndim == self->ndim - 1;
  for (int d = 1; fits && d < target->ndim; d++) fits = target->sizes[d] == self->sizes[d + 1];
  if (!fits)
    return em_fail(EM_ERR_RUNTIME, "Expected target size %s, got %s",
                   em_shape_format(self->ndim - 2, self->sizes + 2, a, sizeof a),
                   em_shape_format(target->ndim, target->sizes, b, sizeof b));
  em_status st = EM_OK;
  em_tensor *x = NULL, *t = NULL, *r = NULL;
  int64_t n = self->sizes[0], c = self->sizes[1], rest = n * c == 0 ? 0 : self->numel / (n * c);
  if (n * c == 0)
    for (int d = 2, first = 1; d < self->ndim; d++, first = 0) rest = first ? self->sizes[d] : rest * self->sizes[d];
  EM_TRY(em_call_reshape(self, EM_INTS(n, c, 1, rest), &x));
  EM_TRY(em_call_reshape(target, EM_INTS(n, 1, rest), &t));
  EM_TRY(em_call_nll_loss2d(x, t, weight, reduction, ignore_index, &r));
  if (reduction == NONE) EM_TRY(em_call_view(r, (em_ints){target->sizes, target->ndim}, out));
  else *out = em_tensor_retain(r);
fail:
  em_tensor_release(x);
  em_tensor_release(t);
  em_tensor_release(r);
  return st;
}

// --- cross entropy: log_softmax, then classes (indices), probabilities, or smoothed classes
static em_status check_cross_entropy(const em_tensor *self, const em_tensor *target, const em_tensor *weight,
                                     double smoothing) {
  if (self->ndim < 1)
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  (void)target;
  (void)weight;
  if (!(smoothing >= 0 && smoothing <= 1))
    return em_fail(EM_ERR_RUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
  return EM_OK;
}
// weight broadcast along the class dim of an n-d input
static em_status weight_view(em_tensor *weight, int ndim, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS];
  for (int i = 0; i < ndim; i++) sizes[i] = 1;
  sizes[ndim > 1 ? 1 : 0] = weight->numel;
  return em_call_view(weight, (em_ints){sizes, ndim}, out);
}
static em_status divide_by_count(em_tensor *sum, double n, em_tensor **out) {
  return em_call_div_Scalar(sum, em_scalar_double(n), out);
}

static em_status entropy_of_probabilities(em_tensor *logp, em_tensor *target, em_tensor *weight, int64_t reduction,
                                          double smoothing, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t = NULL, *u = NULL, *w = NULL, *v = NULL, *s = NULL;
  int64_t dim = logp->ndim == 1 ? 0 : 1, classes = logp->sizes[dim];
  if (smoothing > 0) {
    EM_TRY(em_call_mul_Scalar(target, em_scalar_double(1 - smoothing), &u));
    EM_TRY(em_call_add_Scalar(u, em_scalar_double(smoothing / (double)classes), em_scalar_int(1), &t));
    EM_CLEAR_TENSOR(&u);
  } else {
    t = em_tensor_retain(target);
  }
  EM_TRY(em_call_mul_Tensor(logp, t, &u));
  if (weight != NULL) {
    EM_TRY(weight_view(weight, logp->ndim, &w));
    EM_TRY(em_call_mul_Tensor(u, w, &v));
  } else {
    v = em_tensor_retain(u);
  }
  if (reduction == NONE) {
    EM_TRY(em_call_sum_dim_IntList(v, (em_ints){&dim, 1}, false, EM_DTYPE_NONE, &s));
    EM_TRY(em_call_neg(s, out));
  } else {
    EM_TRY(em_call_sum(v, EM_DTYPE_NONE, &s));
    EM_CLEAR_TENSOR(&u);
    EM_TRY(em_call_neg(s, &u));
    double n = reduction == MEAN ? (classes == 0 ? 0 : (double)logp->numel / (double)classes) : 1;
    if (reduction == MEAN) EM_TRY(divide_by_count(u, n, out));
    else *out = em_tensor_retain(u);
  }
fail:
  em_tensor_release(t);
  em_tensor_release(u);
  em_tensor_release(w);
  em_tensor_release(v);
  em_tensor_release(s);
  return st;
}

// The smoothing part: -sum over classes of weighted log-probabilities, ignored places zeroed, reduced; nll is the other
// part.
static em_status smooth_part(em_tensor *logp, em_tensor *target, em_tensor *weight, int64_t reduction,
                             int64_t ignore_index, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *w = NULL, *v = NULL, *s = NULL, *neg = NULL, *mask = NULL, *kept = NULL, *sum = NULL, *count = NULL,
            *safe = NULL;
  int64_t dim = logp->ndim == 1 ? 0 : 1;
  if (weight != NULL) {
    EM_TRY(weight_view(weight, logp->ndim, &w));
    EM_TRY(em_call_mul_Tensor(logp, w, &v));
  } else {
    v = em_tensor_retain(logp);
  }
  EM_TRY(em_call_sum_dim_IntList(v, (em_ints){&dim, 1}, false, EM_DTYPE_NONE, &s));
  EM_TRY(em_call_neg(s, &neg));
  EM_TRY(em_call_eq_Scalar(target, em_scalar_int(ignore_index), &mask));
  EM_TRY(em_call_masked_fill_Scalar(neg, mask, em_scalar_int(0), &kept));
  if (reduction == NONE) {
    *out = em_tensor_retain(kept);
  } else {
    EM_TRY(em_call_sum(kept, EM_DTYPE_NONE, &sum));
    if (reduction == SUM) {
      *out = em_tensor_retain(sum);
    } else if (weight != NULL) {  // mean over the weights of the places that count
      em_tensor *ids = NULL, *zero = NULL, *picked = NULL;
      st = em_call_masked_fill_Scalar(target, mask, em_scalar_int(0), &ids);
      if (st == EM_OK) st = em_call_index_Tensor(weight, (em_tensors){&ids, 1}, &picked);
      if (st == EM_OK) st = em_call_masked_fill_Scalar(picked, mask, em_scalar_int(0), &zero);
      if (st == EM_OK) st = em_call_sum(zero, EM_DTYPE_NONE, &count);
      em_tensor_release(ids);
      em_tensor_release(picked);
      em_tensor_release(zero);
      if (st != EM_OK) goto fail;
      EM_TRY(em_call_div_Tensor(sum, count, out));
    } else {
      EM_TRY(em_call_logical_not(mask, &safe));
      EM_TRY(em_call_sum(safe, EM_DTYPE_NONE, &count));
      EM_TRY(em_call_div_Tensor(sum, count, out));
    }
  }
fail:
  em_tensor_release(w);
  em_tensor_release(v);
  em_tensor_release(s);
  em_tensor_release(neg);
  em_tensor_release(mask);
  em_tensor_release(kept);
  em_tensor_release(sum);
  em_tensor_release(count);
  em_tensor_release(safe);
  return st;
}
static em_status smoothed(em_tensor *logp, em_tensor *target, em_tensor *weight, int64_t reduction,
                          int64_t ignore_index, double smoothing, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *nll = NULL, *smooth = NULL, *a = NULL, *b = NULL;
  double classes = (double)logp->sizes[logp->ndim == 1 ? 0 : 1];
  EM_TRY(em_call_nll_loss_nd(logp, target, weight, reduction, ignore_index, &nll));
  EM_TRY(smooth_part(logp, target, weight, reduction, ignore_index, &smooth));
  EM_TRY(em_call_mul_Scalar(nll, em_scalar_double(1 - smoothing), &a));
  EM_TRY(em_call_mul_Scalar(smooth, em_scalar_double(smoothing / classes), &b));
  EM_TRY(em_call_add_Tensor(a, b, em_scalar_int(1), out));
fail:
  em_tensor_release(nll);
  em_tensor_release(smooth);
  em_tensor_release(a);
  em_tensor_release(b);
  return st;
}
em_status c_cross_entropy_loss(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction,
                               int64_t ignore_index, double label_smoothing, em_tensor **out) {
  EM_PASS(check_cross_entropy(self, target, weight, label_smoothing));
  bool probabilities = em_tensor_same_sizes(self, target);
  if (probabilities) {
    if (!em_dtype_is_float(target->dtype))
      return em_fail(EM_ERR_RUNTIME, "Expected floating point type for target with class probabilities, got %s",
                     em_dtype_scalar_name(target->dtype));
    if (ignore_index >= 0) return em_fail(EM_ERR_RUNTIME, "ignore_index is not supported for floating point target");
    if (weight != NULL && (weight->ndim != 1 || weight->numel != self->sizes[self->ndim == 1 ? 0 : 1])) {
      char a[256];
      return em_fail(EM_ERR_RUNTIME,
                     "cross_entropy: weight tensor should be defined either for all %lld classes or no classes but got "
                     "weight tensor of shape: %s",
                     (long long)self->sizes[self->ndim == 1 ? 0 : 1],
                     em_shape_format(weight->ndim, weight->sizes, a, sizeof a));
    }
  }
  em_tensor *logp;
  EM_PASS(em_call_log_softmax_int(self, self->ndim == 1 ? 0 : 1, self->dtype, &logp));
  em_status st = probabilities         ? entropy_of_probabilities(logp, target, weight, reduction, label_smoothing, out)
                 : label_smoothing > 0 ? smoothed(logp, target, weight, reduction, ignore_index, label_smoothing, out)
                                       : em_call_nll_loss_nd(logp, target, weight, reduction, ignore_index, out);
  em_tensor_release(logp);
  return st;
}

// --- absolute error, and what guards the losses that are rows
em_status check_smooth_l1_loss(double beta) {
  if (beta >= 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "smooth_l1_loss does not support negative values for beta.");
}
em_status check_huber_loss(double delta) {
  if (delta > 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "huber_loss does not support non-positive values for delta.");
}
em_status c_l1_loss(em_tensor *self, em_tensor *target, int64_t reduction, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *d = NULL, *a = NULL;
  EM_TRY(em_call_sub_Tensor(self, target, em_scalar_int(1), &d));
  EM_TRY(em_call_abs(d, &a));
  EM_TRY(reduce(a, reduction, out));
fail:
  em_tensor_release(d);
  em_tensor_release(a);
  return st;
}

// --- binary cross entropy. Logarithms are held at -100, so that a probability of 0 or 1 gives a finite loss.
static em_status check_probability(em_tensor *self, const char *which) {
  if (self->numel == 0 || self->device.type != EM_DEVICE_CPU) return EM_OK;
  em_status st = EM_OK;
  em_tensor *plain = NULL, *lo = NULL, *hi = NULL;
  em_scalar a, b;
  EM_TRY(em_call_detach(self, &plain));
  EM_TRY(em_call_amin(plain, (em_ints){NULL, 0}, false, &lo));
  EM_TRY(em_call_amax(plain, (em_ints){NULL, 0}, false, &hi));
  EM_TRY(em_tensor_item(lo, &a));
  EM_TRY(em_tensor_item(hi, &b));
  if (!(em_scalar_to_double(a) >= 0 && em_scalar_to_double(b) <= 1))  // nan is no probability either
    EM_FAIL(EM_ERR_RUNTIME, "all elements of %s should be between 0 and 1", which);
fail:
  em_tensor_release(plain);
  em_tensor_release(lo);
  em_tensor_release(hi);
  return st;
}
static em_status weighted(em_tensor *t, em_tensor *weight, em_tensor **out) {
  if (weight != NULL) return em_call_mul_Tensor(t, weight, out);
  *out = em_tensor_retain(t);
  return EM_OK;
}
em_status c_binary_cross_entropy(em_tensor *self, em_tensor *target, em_tensor *weight, int64_t reduction,
                                 em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[9] = {NULL};
  if (!em_dtype_is_float(self->dtype))
    EM_FAIL(EM_ERR_NOT_IMPLEMENTED, "\"binary_cross_entropy\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  if (target->dtype != self->dtype)
    EM_FAIL(EM_ERR_RUNTIME, "Found dtype %s but expected %s", em_dtype_scalar_name(target->dtype), em_dtype_scalar_name(self->dtype));
  EM_TRY(check_probability(self, "input"));
  EM_TRY(check_probability(target, "target"));
  EM_TRY(em_call_log(self, &t[0]));
  EM_TRY(em_call_clamp_min(t[0], em_scalar_int(-100), &t[1]));
  EM_TRY(em_call_neg(self, &t[2]));
  EM_TRY(em_call_log1p(t[2], &t[3]));
  EM_TRY(em_call_clamp_min(t[3], em_scalar_int(-100), &t[4]));
  EM_TRY(em_call_sub_Tensor(t[4], t[1], em_scalar_int(1), &t[5]));  // log(1-x) - log(x)
  EM_TRY(em_call_mul_Tensor(target, t[5], &t[6]));
  EM_TRY(em_call_sub_Tensor(t[6], t[4], em_scalar_int(1), &t[7]));  // -(y log x + (1-y) log(1-x))
  EM_TRY(weighted(t[7], weight, &t[8]));
  EM_TRY(reduce(t[8], reduction, out));
fail:
  for (int i = 0; i < 9; i++) em_tensor_release(t[i]);
  return st;
}
em_status c_binary_cross_entropy_backward(em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                          int64_t reduction, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[8] = {NULL};
  EM_TRY(em_call_sub_Tensor(self, target, em_scalar_int(1), &t[0]));
  EM_TRY(em_call_rsub_Scalar(self, em_scalar_int(1), em_scalar_int(1), &t[1]));
  EM_TRY(em_call_mul_Tensor(t[1], self, &t[2]));  // (1 - x) x; x - x x would cancel near 1
  EM_TRY(em_call_clamp_min(t[2], em_scalar_double(1e-12), &t[3]));
  EM_TRY(em_call_div_Tensor(t[0], t[3], &t[4]));
  EM_TRY(em_call_mul_Tensor(t[4], grad, &t[5]));
  EM_TRY(weighted(t[5], weight, &t[6]));
  if (reduction == MEAN && self->numel > 0)
    EM_TRY(em_call_div_Scalar(t[6], em_scalar_double((double)self->numel), out));
  else *out = em_tensor_retain(t[6]);
fail:
  for (int i = 0; i < 8; i++) em_tensor_release(t[i]);
  return st;
}
// (1 - y) x + (1 + (p - 1) y) softplus(-x): softplus(-x) is -log_sigmoid(x), which is exact for large |x|.
em_status c_binary_cross_entropy_with_logits(em_tensor *self, em_tensor *target, em_tensor *weight,
                                             em_tensor *pos_weight, int64_t reduction, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[8] = {NULL};
  em_scalar one = em_scalar_int(1);
  EM_TRY(em_call_log_sigmoid(self, &t[0]));
  if (pos_weight != NULL) {
    EM_TRY(em_call_sub_Scalar(pos_weight, one, one, &t[1]));
    EM_TRY(em_call_mul_Tensor(t[1], target, &t[2]));
    EM_TRY(em_call_add_Scalar(t[2], one, one, &t[3]));
    EM_TRY(em_call_mul_Tensor(t[3], t[0], &t[4]));
  } else {
    t[4] = em_tensor_retain(t[0]);
  }
  EM_TRY(em_call_rsub_Scalar(target, one, one, &t[5]));
  EM_TRY(em_call_mul_Tensor(t[5], self, &t[6]));
  EM_TRY(em_call_sub_Tensor(t[6], t[4], one, &t[7]));
  em_tensor *w = NULL;
  EM_TRY(weighted(t[7], weight, &w));
  st = reduce(w, reduction, out);
  em_tensor_release(w);
fail:
  for (int i = 0; i < 8; i++) em_tensor_release(t[i]);
  return st;
}
