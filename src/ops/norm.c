// norm.c: checks and public forms of layer, RMS, batch, group and instance norm.
#include <string.h>
#include "gen_ops.h"

static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }

// Weights may be of the input's dtype, or all float32 beside a half input ("mixed"): then statistics are float32 too.
static em_status check_mixed(em_tensor *input, em_tensor *const *weights, int n, bool *mixed) {
  *mixed = false;
  const em_tensor *first = NULL;
  for (int i = 0; i < n && first == NULL; i++) first = weights[i];
  if (first == NULL) return EM_OK;
  *mixed = first->dtype != input->dtype;
  for (int i = 0; i < n; i++) {
    if (weights[i] == NULL || weights[i]->dtype == (*mixed ? EM_F32 : input->dtype)) continue;
    if (*mixed) return em_fail(EM_ERR_RUNTIME, "mixed dtype (CPU): expect parameter to have scalar type of Float");
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(input->dtype),
                   em_dtype_scalar_name(weights[i]->dtype));
  }
  if (*mixed && input->dtype != EM_F16 && input->dtype != EM_BF16)
    return em_fail(EM_ERR_RUNTIME, "mixed dtype (CPU): all inputs must share same datatype.");
  return EM_OK;
}
static em_status check_float(em_tensor *input, const char *kernel) {
  if (em_dtype_is_float(input->dtype)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel,
                 em_dtype_scalar_name(input->dtype));
}

// --- layer norm and RMS norm
static em_status check_row_weight(const char *name, em_tensor *w, em_ints shape) {
  char a[256], b[256];
  if (w == NULL || em_shape_equal(w->ndim, w->sizes, (int)shape.n, shape.p)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s",
                 name, name, text(w, a, sizeof a), em_shape_format((int)shape.n, shape.p, b, sizeof b));
}
// "[*, 3, 4]": what an input must end with.
static em_status wrong_input(em_tensor *input, em_ints shape, const char *separator) {
  char a[256], b[256];
  em_shape_format((int)shape.n, shape.p, a, sizeof a);
  return em_fail(EM_ERR_RUNTIME, "Given normalized_shape=%s, expected input with shape [*%s%s, but got input of size%s", a,
                 separator, a + 1, text(input, b, sizeof b));
}
static em_status check_rows(em_tensor *input, em_ints shape, em_tensor *weight, em_tensor *bias, const char *separator) {
  if (shape.n < 1)
    return em_fail(EM_ERR_RUNTIME, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                                   "element, but got normalized_shape = []");
  EM_PASS(check_row_weight("weight", weight, shape));
  EM_PASS(check_row_weight("bias", bias, shape));
  bool fits = input->ndim >= shape.n;
  for (int64_t i = 0; fits && i < shape.n; i++) fits = input->sizes[input->ndim - shape.n + i] == shape.p[i];
  return fits ? EM_OK : wrong_input(input, shape, separator);
}
// Sizes of the statistics: those of the input, 1 where it was normalised.
static void plan_statistics(em_tensor *input, em_ints shape, int dtype, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < input->ndim; d++) sizes[d] = d < input->ndim - shape.n ? input->sizes[d] : 1;
  em_plan_output_set(p, dtype, input->ndim, sizes, input->device);
}
em_status check_native_layer_norm(em_tensor *input, em_ints shape, em_tensor *weight, em_tensor *bias, double eps,
                                  em_plan *p) {
  (void)eps;
  bool mixed;
  EM_PASS(check_rows(input, shape, weight, bias, ", "));
  EM_PASS(check_mixed(input, (em_tensor *const[]){weight, bias}, 2, &mixed));
  EM_PASS(check_float(input, "LayerNormKernelImpl"));
  em_plan_output_set(p, input->dtype, input->ndim, input->sizes, input->device);
  for (int i = 0; i < 2; i++) plan_statistics(input, shape, mixed ? EM_F32 : input->dtype, p);
  return EM_OK;
}
em_status c_layer_norm(em_tensor *input, em_ints shape, em_tensor *weight, em_tensor *bias, double eps, bool cudnn,
                       em_tensor **out) {
  (void)cudnn;
  em_tensor *mean = NULL, *rstd = NULL;
  em_status st = em_call_native_layer_norm(input, shape, weight, bias, eps, out, &mean, &rstd);
  em_tensor_release(mean);
  em_tensor_release(rstd);
  return st;
}
em_status check__fused_rms_norm(em_tensor *input, em_ints shape, em_tensor *weight, em_opt_double eps, em_plan *p) {
  (void)eps;
  EM_PASS(check_rows(input, shape, weight, NULL, ""));
  EM_PASS(check_float(input, "rms_norm"));
  em_plan_output_set(p, input->dtype, input->ndim, input->sizes, input->device);
  const int format = em_shape_suggested_format(input);
  if (format != EM_FORMAT_CONTIGUOUS) {
    p->out[0].strided = true;
    memcpy(p->out[0].strides, input->strides, sizeof(int64_t) * (size_t)input->ndim);
  }
  plan_statistics(input, shape, input->dtype == EM_F64 ? EM_F64 : EM_F32, p);
  return EM_OK;
}
// x / sqrt(mean(x^2) + eps) of complex numbers, from operators
static em_status complex_rms_norm(em_tensor *input, em_ints shape, em_tensor *weight, em_opt_double eps,
                                  em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[7] = {NULL};
  int64_t dims[EM_MAX_DIMS];
  for (int64_t i = 0; i < shape.n; i++) dims[i] = input->ndim - shape.n + i;
  const double least = input->dtype == EM_C128 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  EM_TRY(em_call_contiguous(input, em_shape_suggested_format(input), &t[6]));
  EM_TRY(em_call_mul_Tensor(t[6], t[6], &t[0]));
  EM_TRY(em_call_mean_dim(t[0], (em_ints){dims, shape.n}, true, EM_DTYPE_NONE, &t[1]));
  EM_TRY(em_call_add_Scalar(t[1], em_scalar_double(eps.has ? eps.v : least), em_scalar_int(1), &t[2]));
  EM_TRY(em_call_rsqrt(t[2], &t[3]));
  EM_TRY(em_call_mul_Tensor(t[6], t[3], &t[4]));
  if (weight != NULL) {
    EM_TRY(em_call_mul_Tensor(t[4], weight, &t[5]));
    EM_TRY(em_call_to_dtype(t[5], input->dtype, false, false, EM_FORMAT_NONE, out));
  } else {
    *out = em_tensor_retain(t[4]);
  }
fail:
  for (int i = 0; i < 7; i++) em_tensor_release(t[i]);
  return st;
}
em_status c_rms_norm(em_tensor *input, em_ints shape, em_tensor *weight, em_opt_double eps, em_tensor **out) {
  EM_PASS(check_rows(input, shape, weight, NULL, ""));
  if (weight != NULL && weight->dtype != input->dtype)
    EM_PASS(em_warn("Mismatch dtype between input and weight: input dtype = %s, weight dtype = %s, Cannot dispatch to fused "
                    "implementation.",
                    em_dtype_type_name(input->dtype), em_dtype_type_name(weight->dtype)));
  if (em_dtype_is_complex(input->dtype) || (weight != NULL && em_dtype_is_complex(weight->dtype)))
    return complex_rms_norm(input, shape, weight, eps, out);
  em_tensor *rstd = NULL;
  em_status st = em_call__fused_rms_norm(input, shape, weight, eps, out, &rstd);
  em_tensor_release(rstd);
  return st;
}

// --- batch norm
static em_status check_channels(const char *name, em_tensor *t, int64_t channels) {
  if (t == NULL || t->numel == channels) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s should contain %lld elements not %lld", name, (long long)channels,
                 (long long)t->numel);
}
static em_status check_vector(const em_tensor *t) {  // a kernel writes what it reads here, element by element
  if (t == NULL || t->ndim == 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "TensorAccessor expected 1 dims but tensor has %d", t->ndim);
}
static em_status check_channel_dim(em_tensor *input) {
  if (input->ndim >= 2) return EM_OK;
  return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got 1)",
                 input->ndim == 0 ? -1 : -input->ndim, 0);
}
static em_status check_batch(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *mean, em_tensor *var,
                             bool training) {
  EM_PASS(check_channel_dim(input));
  const int64_t channels = input->sizes[1];
  EM_PASS(check_channels("running_mean", mean, channels));
  if (mean == NULL && !training) return em_fail(EM_ERR_RUNTIME, "running_mean must be defined in evaluation mode");
  EM_PASS(check_channels("running_var", var, channels));
  if (var == NULL && !training) return em_fail(EM_ERR_RUNTIME, "running_var must be defined in evaluation mode");
  EM_PASS(check_channels("weight", weight, channels));
  EM_PASS(check_channels("bias", bias, channels));
  if ((mean == NULL) != (var == NULL))
    return em_fail(EM_ERR_VALUE, "running_mean and running_var must either both be None or neither be None");
  return EM_OK;
}
em_status check_native_batch_norm(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *running_mean,
                                  em_tensor *running_var, bool training, double momentum, double eps, em_plan *p) {
  (void)momentum;
  (void)eps;
  bool mixed;
  EM_PASS(check_batch(input, weight, bias, running_mean, running_var, training));
  EM_PASS(check_vector(running_mean));
  EM_PASS(check_vector(running_var));
  EM_PASS(check_float(input, "batch_norm"));
  EM_PASS(check_mixed(input, (em_tensor *const[]){weight, bias, running_mean, running_var}, 4, &mixed));
  em_plan_output_set(p, input->dtype, input->ndim, input->sizes, input->device);
  if (em_shape_suggested_format(input) != EM_FORMAT_CONTIGUOUS && !em_tensor_is_contiguous(input)) {
    // an image of one pixel lies both ways, and is then row-major
    bool pixels = false;
    for (int d = 2; d < input->ndim; d++) pixels |= input->sizes[d] != 1;
    p->out[0].strided = pixels;
    memcpy(p->out[0].strides, input->strides, sizeof(int64_t) * (size_t)input->ndim);
  }
  const int64_t channels = training ? input->sizes[1] : 0;
  for (int i = 0; i < 2; i++) em_plan_output_set(p, mixed ? EM_F32 : input->dtype, 1, &channels, input->device);
  return EM_OK;
}
// An empty input: nothing to normalise, but weight and bias stay in the graph.
static em_status empty_batch(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *w = NULL, *b = NULL, *y = NULL;
  EM_TRY(em_call_clone(input, EM_FORMAT_NONE, &x));
  if (weight != NULL) {
    EM_TRY(em_call_select_int(weight, 0, 0, &w));
    EM_TRY(em_call_mul_Tensor(x, w, &y));
    EM_CLEAR_TENSOR(&x);
    x = em_tensor_retain(y);
    EM_CLEAR_TENSOR(&y);
  }
  if (bias != NULL) {
    EM_TRY(em_call_select_int(bias, 0, 0, &b));
    EM_TRY(em_call_add_Tensor(x, b, em_scalar_int(1), &y));
    EM_CLEAR_TENSOR(&x);
    x = em_tensor_retain(y);
  }
  *out = em_tensor_retain(x);
fail:
  em_tensor_release(x);
  em_tensor_release(w);
  em_tensor_release(b);
  em_tensor_release(y);
  return st;
}
em_status c_batch_norm(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *running_mean,
                       em_tensor *running_var, bool training, double momentum, double eps, bool cudnn,
                       em_tensor **out) {
  (void)cudnn;
  if (input->numel == 0) return empty_batch(input, weight, bias, out);
  EM_PASS(check_batch(input, weight, bias, running_mean, running_var, training));
  em_tensor *mean = NULL, *invstd = NULL;
  em_status st = em_call_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, out,
                                           &mean, &invstd);
  em_tensor_release(mean);
  em_tensor_release(invstd);
  return st;
}
em_status c__native_batch_norm_legit(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *running_mean,
                                     em_tensor *running_var, bool training, double momentum, double eps,
                                     em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  return em_call_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, out0, out1,
                                   out2);
}
em_status c__native_batch_norm_legit_no_stats(em_tensor *input, em_tensor *weight, em_tensor *bias, bool training,
                                              double momentum, double eps, em_tensor **out0, em_tensor **out1,
                                              em_tensor **out2) {
  return em_call_native_batch_norm(input, weight, bias, NULL, NULL, training, momentum, eps, out0, out1, out2);
}
em_status c__native_batch_norm_legit_no_training(em_tensor *input, em_tensor *weight, em_tensor *bias,
                                                 em_tensor *running_mean, em_tensor *running_var, double momentum,
                                                 double eps, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  return em_call_native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps, out0, out1,
                                   out2);
}

// --- group norm
em_status check_native_group_norm(em_tensor *input, em_tensor *weight, em_tensor *bias, int64_t n, int64_t c,
                                  int64_t rest, int64_t group, double eps, em_plan *p) {
  (void)eps;
  bool mixed;
  int64_t numel;
  char a[256], b[256];
  if (group <= 0)
    return em_fail(EM_ERR_RUNTIME, "Expected num groups to be greater than 0, got %lld", (long long)group);
  if (n < 0 || c < 0 || rest < 0) return em_fail(EM_ERR_RUNTIME, "native_group_norm: N, C and HxW must not be negative");
  if (c % group != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and "
                   "num_groups=%lld",
                   text(input, a, sizeof a), (long long)group);
  em_tensor *const weights[] = {weight, bias};
  for (int i = 0; i < 2; i++)
    if (weights[i] != NULL && (weights[i]->ndim != 1 || weights[i]->numel != c))
      return em_fail(EM_ERR_RUNTIME,
                     "Expected %s to be a vector of size equal to the number of channels in input, but got %s of shape %s and "
                     "input of shape %s",
                     i == 0 ? "weight" : "bias", i == 0 ? "weight" : "bias", text(weights[i], a, sizeof a),
                     text(input, b, sizeof b));
  EM_PASS(em_shape_numel(3, (int64_t[]){n, c, rest}, &numel));
  if (numel != input->numel)
    return em_fail(EM_ERR_RUNTIME, "native_group_norm: N * C * HxW is %lld, but input of shape %s has %lld elements",
                   (long long)numel, text(input, a, sizeof a), (long long)input->numel);
  EM_PASS(check_mixed(input, weights, 2, &mixed));
  EM_PASS(check_float(input, "GroupNormKernelImpl"));
  em_plan_output_set(p, input->dtype, input->ndim, input->sizes, input->device);
  if (em_shape_suggested_format(input) != EM_FORMAT_CONTIGUOUS && !em_tensor_is_contiguous(input)) {
    p->out[0].strided = true;
    memcpy(p->out[0].strides, input->strides, sizeof(int64_t) * (size_t)input->ndim);
  }
  const int64_t sizes[] = {n, group};
  for (int i = 0; i < 2; i++) em_plan_output_set(p, mixed ? EM_F32 : input->dtype, 2, sizes, input->device);
  return EM_OK;
}
em_status c_group_norm(em_tensor *input, int64_t groups, em_tensor *weight, em_tensor *bias, double eps, bool cudnn,
                       em_tensor **out) {
  (void)cudnn;
  if (input->ndim < 2)
    return em_fail(EM_ERR_RUNTIME, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
  int64_t rest = 1;
  for (int d = 2; d < input->ndim; d++) rest *= input->sizes[d];
  em_tensor *mean = NULL, *rstd = NULL;
  em_status st = em_call_native_group_norm(input, weight, bias, input->sizes[0], input->sizes[1], rest, groups, eps, out,
                                           &mean, &rstd);
  em_tensor_release(mean);
  em_tensor_release(rstd);
  return st;
}

// --- instance norm: batch norm of (1, n * c, ...), with a weight for each instance
static em_status repeated(em_tensor *t, int64_t times, em_tensor **out) {
  *out = NULL;
  if (t == NULL) return EM_OK;
  em_tensor *wide;
  EM_PASS(em_call_expand(t, (em_ints){(const int64_t[]){times, t->numel}, 2}, false, &wide));
  em_status st = em_call_reshape(wide, EM_INTS(-1), out);
  em_tensor_release(wide);
  return st;
}
// The mean over instances of what batch norm left in its own copy of a running statistic, and where it goes: `plain`, the
// statistic without a gradient.
static em_status over_instances(em_tensor *running, em_tensor *copy, int64_t n, em_tensor *input, em_tensor **plain,
                                em_tensor **mean) {
  if (running == NULL) return EM_OK;
  em_tensor *view;
  EM_PASS(em_call_alias(running, plain));
  EM_PASS(em_call_view(copy, EM_INTS(n, input->sizes[1]), &view));
  em_status st = em_call_mean_dim(view, EM_INTS(0), false, EM_DTYPE_NONE, mean);
  em_tensor_release(view);
  return st;
}
em_status c_instance_norm(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *running_mean,
                          em_tensor *running_var, bool use_input_stats, double momentum, double eps, bool cudnn,
                          em_tensor **out) {
  if (!use_input_stats && (running_mean == NULL || running_var == NULL))
    return em_fail(EM_ERR_RUNTIME, "Expected running_mean and running_var to be defined when use_input_stats is false");
  EM_PASS(check_channel_dim(input));
  em_status st = EM_OK;
  const int64_t n = input->sizes[0];
  em_tensor *w = NULL, *b = NULL, *rm = NULL, *rv = NULL, *x = NULL, *flat = NULL, *y = NULL, *result = NULL,
            *to[2] = {NULL}, *mean[2] = {NULL};
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < input->ndim; d++) sizes[d] = input->sizes[d];
  sizes[0] = 1;
  sizes[1] = n * input->sizes[1];
  EM_TRY(repeated(weight, n, &w));
  EM_TRY(repeated(bias, n, &b));
  EM_TRY(repeated(running_mean, n, &rm));
  EM_TRY(repeated(running_var, n, &rv));
  EM_TRY(em_call_contiguous(input, EM_FORMAT_CONTIGUOUS, &x));
  EM_TRY(em_call_view(x, (em_ints){sizes, input->ndim}, &flat));
  EM_TRY(em_call_batch_norm(flat, w, b, rm, rv, use_input_stats, momentum, eps, cudnn, &y));
  EM_TRY(em_call_view(y, (em_ints){input->sizes, input->ndim}, &result));
  if (use_input_stats) {  // the statistics are written last, when nothing else can fail
    EM_TRY(over_instances(running_mean, rm, n, input, &to[0], &mean[0]));
    EM_TRY(over_instances(running_var, rv, n, input, &to[1], &mean[1]));
    for (int i = 0; i < 2; i++)
      if (to[i] != NULL) EM_TRY(em_call_copy_(to[i], mean[i], false));
  }
  *out = em_tensor_retain(result);
fail:
  em_tensor_release(result);
  for (int i = 0; i < 2; i++) {
    em_tensor_release(to[i]);
    em_tensor_release(mean[i]);
  }
  em_tensor_release(w);
  em_tensor_release(b);
  em_tensor_release(rm);
  em_tensor_release(rv);
  em_tensor_release(x);
  em_tensor_release(flat);
  em_tensor_release(y);
  return st;
}
