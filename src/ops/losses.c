// losses.c: losses made of operators, and the checks of those that have kernels. Reductions: 0 none, 1 mean, 2 sum.
#include <math.h>
#include "gen_ops.h"

enum { NONE, MEAN };
static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *
#define ONE em_scalar_int(1)
static em_status reduce(em_tensor *t, int64_t reduction, em_tensor **out) {
  if (reduction == MEAN) return em_call_mean(t, EM_DTYPE_NONE, out);
  if (reduction != NONE) return em_call_sum(t, EM_DTYPE_NONE, out);
  *out = em_tensor_retain(t);
  return EM_OK;
}
static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
// where(target == value, t, 0)
static em_status where_label(em_tensor *target, double value, bool equal, em_tensor *t, em_tensor **out) {
  OWN is = NULL;
  EM_PASS(equal ? em_call_eq_Scalar(target, em_scalar_double(value), &is)
                : em_call_ne_Scalar(target, em_scalar_double(value), &is));
  OWN zeros = NULL;
  EM_PASS(em_call_zeros_like(t, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &zeros));
  return em_call_where_self(is, t, zeros, out);
}

// --- margins of pairs
em_status c_hinge_embedding_loss(em_tensor *self, em_tensor *target, double margin, int64_t reduction,
                                 em_tensor **out) {
  OWN gap = NULL;
  OWN positive = NULL;
  OWN apart = NULL;
  OWN together = NULL;
  OWN loss = NULL;
  EM_PASS(em_call_rsub_Scalar(self, em_scalar_double(margin), ONE, &gap));
  EM_PASS(em_call_clamp_min(gap, em_scalar_int(0), &positive));
  EM_PASS(where_label(target, 1, false, positive, &apart));
  EM_PASS(where_label(target, -1, false, self, &together));
  EM_PASS(em_call_add_Tensor(apart, together, ONE, &loss));
  return reduce(loss, reduction, out);
}
em_status c_margin_ranking_loss(em_tensor *input1, em_tensor *input2, em_tensor *target, double margin,
                                int64_t reduction, em_tensor **out) {
  OWN gap = NULL;
  OWN turned = NULL;
  OWN signed_gap = NULL;
  OWN moved = NULL;
  OWN loss = NULL;
  EM_PASS(em_call_sub_Tensor(input1, input2, ONE, &gap));
  EM_PASS(em_call_neg(target, &turned));
  EM_PASS(em_call_mul_Tensor(turned, gap, &signed_gap));
  EM_PASS(em_call_add_Scalar(signed_gap, em_scalar_double(margin), ONE, &moved));
  EM_PASS(em_call_clamp_min(moved, em_scalar_int(0), &loss));
  return reduce(loss, reduction, out);
}
em_status c_triplet_margin_loss(em_tensor *anchor, em_tensor *positive, em_tensor *negative, double margin, double p,
                                double eps, bool swap, int64_t reduction, em_tensor **out) {
  OWN near = NULL;
  OWN far = NULL;
  OWN other = NULL;
  OWN smaller = NULL;
  OWN gap = NULL;
  OWN moved = NULL;
  OWN loss = NULL;
  if (anchor->ndim != positive->ndim || positive->ndim != negative->ndim)
    return em_fail(EM_ERR_RUNTIME,
                   "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
                   "got: anchor %dD, positive %dD, and negative %dD inputs",
                   anchor->ndim, positive->ndim, negative->ndim);
  EM_PASS(em_call_pairwise_distance(anchor, positive, p, eps, false, &near));
  EM_PASS(em_call_pairwise_distance(anchor, negative, p, eps, false, &far));
  if (swap) {
    EM_PASS(em_call_pairwise_distance(positive, negative, p, eps, false, &other));
    EM_PASS(em_call_minimum(far, other, &smaller));
  }
  EM_PASS(em_call_sub_Tensor(near, swap ? smaller : far, ONE, &gap));
  EM_PASS(em_call_add_Scalar(gap, em_scalar_double(margin), ONE, &moved));
  EM_PASS(em_call_clamp_min(moved, em_scalar_int(0), &loss));
  return reduce(loss, reduction, out);
}
static em_status squared_length(em_tensor *x, int64_t dim, double eps, em_tensor **out) {
  OWN square = NULL;
  OWN sum = NULL;
  EM_PASS(em_call_mul_Tensor(x, x, &square));
  EM_PASS(em_call_sum_dim_IntList(square, EM_INTS(dim), false, EM_DTYPE_NONE, &sum));
  return em_call_add_Scalar(sum, em_scalar_double(eps), ONE, out);
}
static em_status cosine(em_tensor *a, em_tensor *b, int64_t dim, double eps, em_tensor **out) {
  OWN product = NULL;
  OWN dot = NULL;
  OWN la = NULL;
  OWN lb = NULL;
  OWN both = NULL;
  OWN length = NULL;
  EM_PASS(em_call_mul_Tensor(a, b, &product));
  EM_PASS(em_call_sum_dim_IntList(product, EM_INTS(dim), false, EM_DTYPE_NONE, &dot));
  EM_PASS(squared_length(a, dim, eps, &la));
  EM_PASS(squared_length(b, dim, eps, &lb));
  EM_PASS(em_call_mul_Tensor(la, lb, &both));
  EM_PASS(em_call_sqrt(both, &length));
  return em_call_div_Tensor(dot, length, out);
}
em_status c_cosine_embedding_loss(em_tensor *input1, em_tensor *input2, em_tensor *target, double margin,
                                  int64_t reduction, em_tensor **out) {
  char a[256], b[256];
  if (target->ndim > 1)
    return em_fail(EM_ERR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
  if (input1->ndim != target->ndim + 1 || input2->ndim != target->ndim + 1)
    return em_fail(EM_ERR_RUNTIME, "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.",
                   target->ndim, target->ndim + 1, text(input1, a, sizeof a), text(input2, b, sizeof b));
  OWN cos = NULL;
  OWN near = NULL;
  OWN moved = NULL;
  OWN far = NULL;
  OWN alike = NULL;
  OWN unlike = NULL;
  OWN loss = NULL;
  EM_PASS(cosine(input1, input2, target->ndim, 1e-12, &cos));
  EM_PASS(em_call_rsub_Scalar(cos, ONE, ONE, &near));
  EM_PASS(em_call_sub_Scalar(cos, em_scalar_double(margin), ONE, &moved));
  EM_PASS(em_call_clamp_min(moved, em_scalar_int(0), &far));
  EM_PASS(where_label(target, 1, true, near, &alike));
  EM_PASS(where_label(target, -1, true, far, &unlike));
  EM_PASS(em_call_add_Tensor(alike, unlike, ONE, &loss));
  return reduce(loss, reduction, out);
}

// --- distances
// x over its length along dim, which counts as at least eps; the gradient is that of the length itself.
static em_status unit(em_tensor *x, int64_t dim, double eps, em_tensor **out) {
  OWN norm = NULL;
  OWN length = NULL;
  EM_PASS(em_call_linalg_vector_norm(x, em_scalar_int(2), EM_INTS(dim), true, EM_DTYPE_NONE, &norm));
  EM_PASS(em_call_clone(norm, EM_FORMAT_NONE, &length));
  const em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call_clamp_min_(length, em_scalar_double(eps));
  em_guard_restore(g);
  EM_PASS(st);
  return em_call_div_Tensor(x, length, out);
}
em_status c_cosine_similarity(em_tensor *x1, em_tensor *x2, int64_t dim, double eps, em_tensor **out) {
  const int dtype = em_dtype_promote(x1->dtype, x2->dtype);
  if (!em_dtype_is_float(dtype))
    return em_fail(EM_ERR_RUNTIME, "expected common dtype to be floating point, yet common dtype is %s",
                   em_dtype_scalar_name(dtype));
  em_shape shape;
  EM_PASS(em_shape_of(x1, &shape));
  EM_PASS(em_shape_broadcast(&shape, x2->ndim, x2->sizes));
  EM_PASS(em_shape_wrap_dim(dim, shape.ndim, true, &dim));
  OWN a = NULL;
  OWN b = NULL;
  OWN wide_a = NULL;
  OWN wide_b = NULL;
  OWN ua = NULL;
  OWN ub = NULL;
  OWN product = NULL;
  EM_PASS(em_call_to_dtype(x1, dtype, false, false, EM_FORMAT_NONE, &a));
  EM_PASS(em_call_to_dtype(x2, dtype, false, false, EM_FORMAT_NONE, &b));
  EM_PASS(em_call_expand(a, (em_ints){shape.sizes, shape.ndim}, false, &wide_a));
  EM_PASS(em_call_expand(b, (em_ints){shape.sizes, shape.ndim}, false, &wide_b));
  EM_PASS(unit(wide_a, dim, eps, &ua));
  EM_PASS(unit(wide_b, dim, eps, &ub));
  EM_PASS(em_call_mul_Tensor(ua, ub, &product));
  return em_call_sum_dim_IntList(product, EM_INTS(dim), false, EM_DTYPE_NONE, out);
}
em_status c_pairwise_distance(em_tensor *x1, em_tensor *x2, double p, double eps, bool keepdim, em_tensor **out) {
  OWN gap = NULL;
  OWN moved = NULL;
  EM_PASS(em_call_sub_Tensor(x1, x2, ONE, &gap));
  EM_PASS(em_call_add_Scalar(gap, em_scalar_double(eps), ONE, &moved));
  return em_call_norm_ScalarOpt_dim(moved, em_scalar_double(p), EM_INTS(-1), keepdim, out);
}

// --- likelihoods
// target log(target) - target + log(2 pi target) / 2 where target > 1: Stirling's log(target!)
static em_status stirling(em_tensor *target, em_tensor **out) {
  OWN log = NULL;
  OWN scaled = NULL;
  OWN less = NULL;
  OWN twice = NULL;
  OWN half_log = NULL;
  OWN sum = NULL;
  OWN small = NULL;
  EM_PASS(em_call_log(target, &log));
  EM_PASS(em_call_mul_Tensor(target, log, &scaled));
  EM_PASS(em_call_sub_Tensor(scaled, target, ONE, &less));
  EM_PASS(em_call_mul_Scalar(target, em_scalar_double(2 * 3.141592653589793), &twice));
  EM_PASS(em_call_log(twice, &half_log));
  EM_PASS(em_call_add_Tensor(less, half_log, em_scalar_double(0.5), &sum));
  EM_PASS(em_call_le_Scalar(target, ONE, &small));
  return em_call_masked_fill_Scalar(sum, small, em_scalar_int(0), out);
}
em_status c_poisson_nll_loss(em_tensor *input, em_tensor *target, bool log_input, bool full, double eps,
                             int64_t reduction, em_tensor **out) {
  OWN rate = NULL;
  OWN shifted = NULL;
  OWN log = NULL;
  OWN product = NULL;
  OWN loss = NULL;
  OWN constant = NULL;
  OWN whole = NULL;
  if (log_input) {
    EM_PASS(em_call_exp(input, &rate));
    log = em_tensor_retain(input);
  } else {
    rate = em_tensor_retain(input);
    EM_PASS(em_call_add_Scalar(input, em_scalar_double(eps), ONE, &shifted));
    EM_PASS(em_call_log(shifted, &log));
  }
  EM_PASS(em_call_mul_Tensor(target, log, &product));
  EM_PASS(em_call_sub_Tensor(rate, product, ONE, &loss));
  if (!full) return reduce(loss, reduction, out);
  EM_PASS(stirling(target, &constant));
  EM_PASS(em_call_add_Tensor(loss, constant, ONE, &whole));
  return reduce(whole, reduction, out);
}
// target log(target), 0 at 0, and its gradients too
static em_status entropy(em_tensor *target, em_tensor **out) {
  OWN some = NULL;
  OWN safe = NULL;
  OWN log = NULL;
  OWN product = NULL;
  EM_PASS(em_call_gt_Scalar(target, em_scalar_int(0), &some));
  EM_PASS(em_call_where_ScalarOther(some, target, ONE, &safe));
  EM_PASS(em_call_log(safe, &log));
  EM_PASS(em_call_mul_Tensor(target, log, &product));
  return em_call_where_ScalarOther(some, product, em_scalar_int(0), out);
}
em_status c_kl_div(em_tensor *self, em_tensor *target, int64_t reduction, bool log_target, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype) || em_dtype_is_complex(target->dtype))
    return em_fail(EM_ERR_RUNTIME, "kl_div: Complex inputs not supported.");
  OWN first = NULL;
  OWN second = NULL;
  OWN loss = NULL;
  if (log_target) {
    EM_PASS(em_call_exp(target, &first));
    EM_PASS(em_call_sub_Tensor(target, self, ONE, &second));
    EM_PASS(em_call_mul_Tensor(first, second, &loss));
  } else {
    EM_PASS(entropy(target, &first));
    EM_PASS(em_call_mul_Tensor(target, self, &second));
    EM_PASS(em_call_sub_Tensor(first, second, ONE, &loss));
  }
  return reduce(loss, reduction, out);
}

// --- multi_margin_loss and multilabel_margin_loss: (c) or (n, c)
static em_status check_rows(em_tensor *self, em_tensor *target, const char *kernel) {
  char a[256];
  const bool empty = self->ndim > 0 && self->sizes[self->ndim - 1] == 0;
  if (self->ndim > 2 || empty)
    return em_fail(EM_ERR_RUNTIME, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                   text(self, a, sizeof a));
  if (self->dtype != EM_F32 && self->dtype != EM_F64)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel,
                   em_dtype_scalar_name(self->dtype));
  if (target->dtype == EM_I64) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected scalar type Long but found %s", em_dtype_scalar_name(target->dtype));
}
static em_status check_multi(em_tensor *self, em_tensor *target, em_scalar p, em_tensor *weight) {
  char a[256], b[256];
  if (em_scalar_to_double(p) != 1 && em_scalar_to_double(p) != 2)
    return em_fail(EM_ERR_RUNTIME, "only p == 1 and p == 2 supported");
  EM_PASS(check_rows(self, target, "multi_margin_loss_cpu_kernel"));
  const int64_t n = self->ndim < 2 ? 1 : self->sizes[0], c = self->ndim == 0 ? 1 : self->sizes[self->ndim - 1];
  if (target->ndim > 1 || target->numel != n)
    return em_fail(EM_ERR_RUNTIME,
                   "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
                   "size). Expected target size [%lld], but got %s. Input has shape %s.",
                   (long long)n, text(target, a, sizeof a), text(self, b, sizeof b));
  if (weight != NULL && (weight->ndim > 1 || weight->numel != c))
    return em_fail(EM_ERR_RUNTIME, "inconsistent weight size, expected %lld but got %s", (long long)c,
                   text(weight, a, sizeof a));
  return EM_OK;
}
static void plan_losses(em_tensor *self, int64_t reduction, em_plan *p) {
  const bool each = reduction == NONE && self->ndim > 1;
  em_plan_output_set(p, self->dtype, each ? 1 : 0, self->sizes, self->device);
}
static em_status plan_gradient(const char *name, em_tensor *grad, em_tensor *self, int64_t reduction, em_plan *p) {
  char a[256];
  const int64_t wanted = reduction == NONE && self->ndim > 1 ? self->sizes[0] : 1;
  if (grad->numel != wanted)
    return em_fail(EM_ERR_RUNTIME, "%s: grad_output of shape %s does not fit the loss", name, text(grad, a, sizeof a));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_multi_margin_loss(em_tensor *self, em_tensor *target, em_scalar p, em_scalar margin, em_tensor *weight,
                                  int64_t reduction, em_plan *plan) {
  (void)margin;
  EM_PASS(check_multi(self, target, p, weight));
  plan_losses(self, reduction, plan);
  return EM_OK;
}
em_status check_multi_margin_loss_backward(em_tensor *grad, em_tensor *self, em_tensor *target, em_scalar p,
                                           em_scalar margin, em_tensor *weight, int64_t reduction, em_plan *plan) {
  (void)margin;
  EM_PASS(check_multi(self, target, p, weight));
  return plan_gradient("multi_margin_loss_backward", grad, self, reduction, plan);
}
static em_status check_multilabel(em_tensor *self, em_tensor *target) {
  char a[256], b[256];
  EM_PASS(check_rows(self, target, "multilabel_margin_loss_forward_out_frame"));
  if (em_tensor_same_sizes(self, target) || (self->ndim < 2 && target->ndim < 2 && self->numel == target->numel))
    return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "inconsistent target size: %s for input of size: %s", text(target, a, sizeof a),
                 text(self, b, sizeof b));
}
em_status check_multilabel_margin_loss_forward(em_tensor *self, em_tensor *target, int64_t reduction, em_plan *p) {
  EM_PASS(check_multilabel(self, target));
  plan_losses(self, reduction, p);
  em_plan_output_set(p, self->dtype, target->ndim, target->sizes, self->device);
  return EM_OK;
}
em_status check_multilabel_margin_loss_backward(em_tensor *grad, em_tensor *self, em_tensor *target, int64_t reduction,
                                                em_tensor *is_target, em_plan *p) {
  (void)is_target;
  EM_PASS(check_multilabel(self, target));
  return plan_gradient("multilabel_margin_loss_backward", grad, self, reduction, p);
}
em_status c_multilabel_margin_loss(em_tensor *self, em_tensor *target, int64_t reduction, em_tensor **out) {
  OWN is_target = NULL;
  return em_call_multilabel_margin_loss_forward(self, target, reduction, out, &is_target);
}

// --- ctc_loss
#define CTC_WHERE "(while checking arguments for ctc_loss_allocate_outputs)"
static em_status check_ctc(em_tensor *logp, em_tensor *targets, em_ints input_lengths, em_ints target_lengths,
                           int64_t blank, int64_t *longest) {
  if (logp->numel == 0) return em_fail(EM_ERR_RUNTIME, "log_probs tensor must not be empty");
  if (logp->ndim != 3)
    return em_fail(EM_ERR_RUNTIME, "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument #1 'log_probs' " CTC_WHERE,
                   logp->ndim);
  if (targets->ndim < 1 || targets->ndim > 2)
    return em_fail(EM_ERR_RUNTIME, "Expected 1 to 2 dimensions, but got %d-dimensional tensor for argument #2 'targets' " CTC_WHERE,
                   targets->ndim);
  if (logp->dtype != EM_F32 && logp->dtype != EM_F64)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"ctc_loss_cpu\" not implemented for '%s'", em_dtype_scalar_name(logp->dtype));
  const int64_t batch = logp->sizes[1];
  if (blank < 0 || blank >= logp->sizes[2]) return em_fail(EM_ERR_RUNTIME, "blank must be in label range");
  if (input_lengths.n != batch) return em_fail(EM_ERR_RUNTIME, "input_lengths must be of size batch_size");
  if (target_lengths.n != batch) return em_fail(EM_ERR_RUNTIME, "target_lengths must be of size batch_size");
  int64_t total = 0;
  *longest = 0;
  for (int64_t i = 0; i < batch; i++) {
    const int64_t n = target_lengths.p[i];
    if (n < 0)
      return em_fail(EM_ERR_RUNTIME, "Expected target_lengths to have value at least 0, but got value %lld " CTC_WHERE, (long long)n);
    if (n > targets->numel)
      return em_fail(EM_ERR_RUNTIME, "Expected tensor to have size at least %lld at dimension %d, but got size %lld for argument #2 "
                                     "'targets' " CTC_WHERE, (long long)n, targets->ndim - 1, (long long)targets->sizes[targets->ndim - 1]);
    total += n;
    *longest = n > *longest ? n : *longest;
  }
  const int64_t first = targets->ndim == 1 ? total : batch;
  if (targets->sizes[0] != first)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected tensor to have size %lld at dimension 0, but got size %lld for argument #2 'targets' " CTC_WHERE,
                   (long long)first, (long long)targets->sizes[0]);
  if (targets->ndim == 2 && targets->sizes[1] < *longest)
    return em_fail(EM_ERR_RUNTIME, "Expected tensor to have size at least %lld at dimension 1, but got size %lld for argument #2 "
                                   "'targets' " CTC_WHERE, (long long)*longest, (long long)targets->sizes[1]);
  for (int64_t i = 0; i < batch; i++) {
    const int64_t n = input_lengths.p[i];
    if (n < 0)
      return em_fail(EM_ERR_RUNTIME, "Expected input_lengths to have value at least 0, but got value %lld " CTC_WHERE, (long long)n);
    if (n > logp->sizes[0])
      return em_fail(EM_ERR_RUNTIME, "Expected input_lengths to have value at most %lld, but got value %lld " CTC_WHERE,
                     (long long)logp->sizes[0], (long long)n);
  }
  return EM_OK;
}
em_status check__ctc_loss(em_tensor *log_probs, em_tensor *targets, em_ints input_lengths, em_ints target_lengths,
                          int64_t blank, bool zero_infinity, em_plan *p) {
  (void)zero_infinity;
  int64_t longest;
  EM_PASS(check_ctc(log_probs, targets, input_lengths, target_lengths, blank, &longest));
  em_plan_output_set(p, log_probs->dtype, 1, &log_probs->sizes[1], log_probs->device);
  const int64_t sizes[] = {log_probs->sizes[1], log_probs->sizes[0], 2 * longest + 1};
  em_plan_output_set(p, log_probs->dtype, 3, sizes, log_probs->device);
  return EM_OK;
}
em_status check__ctc_loss_backward(em_tensor *grad, em_tensor *log_probs, em_tensor *targets, em_ints input_lengths,
                                   em_ints target_lengths, em_tensor *nll, em_tensor *log_alpha, int64_t blank,
                                   bool zero_infinity, em_plan *p) {
  (void)zero_infinity;
  int64_t longest;
  EM_PASS(check_ctc(log_probs, targets, input_lengths, target_lengths, blank, &longest));
  const int64_t sizes[] = {log_probs->sizes[1], log_probs->sizes[0], 2 * longest + 1};
  if (grad->numel != sizes[0] || nll->numel != sizes[0] ||
      !em_shape_equal(log_alpha->ndim, log_alpha->sizes, 3, sizes))
    return em_fail(EM_ERR_RUNTIME, "_ctc_loss_backward: the arguments' shapes do not fit each other");
  em_plan_output_set(p, log_probs->dtype, 3, log_probs->sizes, log_probs->device);
  return EM_OK;
}
// The mean is of each loss over the length of its target, which counts as at least 1.
static em_status ctc_mean(em_tensor *loss, em_ints target_lengths, em_tensor **out) {
  OWN lengths = NULL;
  OWN ratio = NULL;
  EM_PASS(em_tensor_new(1, &target_lengths.n, loss->dtype, loss->device, &lengths));
  for (int64_t i = 0; i < target_lengths.n && loss->device.type != EM_DEVICE_META; i++) {
    const double n = target_lengths.p[i] < 1 ? 1 : (double)target_lengths.p[i];
    em_tensor_put(lengths, i, &n, EM_F64, 1);
  }
  EM_PASS(em_call_div_Tensor(loss, lengths, &ratio));
  return em_call_mean(ratio, EM_DTYPE_NONE, out);
}
em_status c_ctc_loss(em_tensor *log_probs, em_tensor *targets, em_ints input_lengths, em_ints target_lengths,
                     int64_t blank, int64_t reduction, bool zero_infinity, em_tensor **out) {
  OWN batched = NULL;
  OWN loss = NULL;
  OWN alpha = NULL;
  OWN infinite = NULL;
  OWN kept = NULL;
  const bool single = log_probs->ndim > 0 && log_probs->ndim != 3;
  if (single) EM_PASS(em_call_unsqueeze(log_probs, 1, &batched));
  else batched = em_tensor_retain(log_probs);
  EM_PASS(em_call__ctc_loss(batched, targets, input_lengths, target_lengths, blank, zero_infinity, &loss, &alpha));
  if (zero_infinity) {
    EM_PASS(em_call_eq_Scalar(loss, em_scalar_double(INFINITY), &infinite));
    EM_PASS(em_call_masked_fill_Scalar(loss, infinite, em_scalar_int(0), &kept));
  } else {
    kept = em_tensor_retain(loss);
  }
  if (reduction == MEAN) return ctc_mean(kept, target_lengths, out);
  if (reduction != NONE) return em_call_sum(kept, EM_DTYPE_NONE, out);
  if (single) return em_call_squeeze_dim(kept, 0, out);
  *out = em_tensor_retain(kept);
  return EM_OK;
}
// The lengths that a tensor holds: a block of em_alloc, of 8 bytes each.
static em_status lengths_of(const char *name, em_tensor *t, int64_t **block, em_ints *out) {
  if (!em_dtype_is_integral(t->dtype) || t->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "%s must be integral", name);
  OWN flat = NULL;
  EM_PASS(em_call_reshape(t, EM_INTS(-1), &flat));
  const size_t size = sizeof **block * (size_t)(flat->numel + 1);
  if ((*block = em_alloc(size)) == NULL) return EM_NOMEM(size);
  *out = (em_ints){*block, flat->numel};
  for (int64_t i = 0; i < flat->numel; i++) {
    OWN one = NULL;
    em_scalar v;
    EM_PASS(em_call_select_int(flat, 0, i, &one));
    EM_PASS(em_tensor_item(one, &v));
    (*block)[i] = v.i;
  }
  return EM_OK;
}
static void free_lengths(int64_t *block, em_tensor *t) {
  if (block != NULL) em_free(block, sizeof *block * (size_t)(t->numel + 1));
}
em_status c_ctc_loss_tensor(em_tensor *log_probs, em_tensor *targets, em_tensor *input_lengths,
                            em_tensor *target_lengths, int64_t blank, int64_t reduction, bool zero_infinity,
                            em_tensor **out) {
  em_status st = EM_OK;
  int64_t *a = NULL, *b = NULL;
  em_ints inputs, lengths;
  EM_TRY(lengths_of("input_lengths", input_lengths, &a, &inputs));
  EM_TRY(lengths_of("target_lengths", target_lengths, &b, &lengths));
  EM_TRY(em_call_ctc_loss_IntList(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity, out));
fail:
  free_lengths(a, input_lengths);
  free_lengths(b, target_lengths);
  return st;
}
