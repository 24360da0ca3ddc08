// activation.c: guards and public forms of activations.
#include <float.h>
#include "gen_ops.h"

em_status check_celu(em_tensor *self, em_scalar alpha) {
  (void)self;
  if (!em_scalar_equal(alpha, 0)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "ZeroDivisionError: alpha cannot be 0 for CELU");
}
em_status check_softshrink(em_tensor *self, em_scalar lambd) {
  if (!em_dtype_is_float(self->dtype)) return EM_OK;  // refused by its own words
  const double most = self->dtype == EM_F16 ? 65504 : self->dtype == EM_F64 ? DBL_MAX
                      : self->dtype == EM_BF16 ? 3.3895313892515355e+38 : (double)FLT_MAX;
  const double value = em_scalar_to_double(lambd);
  if (value >= 0 && value <= most) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "lambda must be in range [0, %g] for input dtype %s, but found %g", most,
                 em_dtype_scalar_name(self->dtype), value);
}
em_status check_elu_backward(em_scalar alpha, bool is_result) {
  if (!is_result || em_scalar_to_double(alpha) >= 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
                 "caused by calling in-place forward function with a negative slope, please call out-of-place version "
                 "instead.");
}
em_status check_leaky_relu_backward(em_scalar negative_slope, bool self_is_result) {
  if (!self_is_result || em_scalar_to_double(negative_slope) >= 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This "
                 "is caused by calling in-place forward function with a negative slope, please call out-of-place version "
                 "instead.");
}

#define SELU_ALPHA em_scalar_double(1.6732632423543772848170429916717)
#define SELU_SCALE em_scalar_double(1.0507009873554804934193349852946)
em_status c_selu(em_tensor *self, em_tensor **out) {
  return em_call_elu(self, SELU_ALPHA, SELU_SCALE, em_scalar_int(1), out);
}
em_status c_selu_(em_tensor *self) { return em_call_elu_(self, SELU_ALPHA, SELU_SCALE, em_scalar_int(1)); }

em_status c_log_sigmoid(em_tensor *self, em_tensor **out) {
  em_tensor *buffer = NULL;
  em_status st = em_call_log_sigmoid_forward(self, out, &buffer);
  em_tensor_release(buffer);
  return st;
}

// --- glu: a * sigmoid(b), a and b the halves of dim
static em_status halves(em_tensor *self, int64_t *dim, em_tensor **a, em_tensor **b) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "glu does not support 0-dimensional tensors");
  EM_PASS(em_shape_wrap_dim(*dim, self->ndim, false, dim));
  const int64_t n = self->sizes[*dim];
  if (n % 2 != 0)
    return em_fail(EM_ERR_RUNTIME, "Halving dimension must be even, but dimension %lld is size %lld", (long long)*dim,
                   (long long)n);
  EM_PASS(em_call_narrow(self, *dim, 0, n / 2, a));
  em_status st = em_call_narrow(self, *dim, n / 2, n / 2, b);
  if (st != EM_OK) EM_CLEAR_TENSOR(a);
  return st;
}
em_status c_glu(em_tensor *self, int64_t dim, em_tensor **out) {
  em_tensor *a = NULL, *b = NULL, *gate = NULL;
  em_status st = EM_OK;
  EM_TRY(halves(self, &dim, &a, &b));
  EM_TRY(em_call_sigmoid(b, &gate));
  EM_TRY(em_call_mul_Tensor(a, gate, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(gate);
  return st;
}
em_status c_glu_backward(em_tensor *grad, em_tensor *self, int64_t dim, em_tensor **out) {
  em_tensor *a = NULL, *b = NULL, *gate = NULL, *first = NULL, *slope = NULL, *second = NULL;
  em_status st = EM_OK;
  EM_TRY(halves(self, &dim, &a, &b));
  EM_TRY(em_call_sigmoid(b, &gate));
  EM_TRY(em_call_mul_Tensor(grad, gate, &first));
  EM_TRY(em_call_mul_Tensor(grad, a, &slope));
  EM_TRY(em_call_sigmoid_backward(slope, gate, &second));
  EM_TRY(em_call_cat((em_tensors){(em_tensor *const[]){first, second}, 2}, dim, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(gate);
  em_tensor_release(first);
  em_tensor_release(slope);
  em_tensor_release(second);
  return st;
}

em_status c_prelu(em_tensor *self, em_tensor *weight, em_tensor **out) {
  if (self->dtype != weight->dtype)
    return em_fail(EM_ERR_RUNTIME, "prelu: Type promoting not supported. Got %s and %s",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(weight->dtype));
  if (weight->numel != 1) {
    if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "Not allow zero-dim input tensor.");
    const int64_t channels = self->ndim > 1 ? self->sizes[1] : 1;
    if (channels != weight->numel)
      return em_fail(EM_ERR_RUNTIME,
                     "Mismatch of parameter numbers and input channel size. Found parameter numbers = %lld and channel "
                     "size = %lld.",
                     (long long)weight->numel, (long long)channels);
  }
  if (weight->ndim > 1)
    return em_fail(EM_ERR_RUNTIME, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                   weight->ndim);
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < self->ndim; d++) sizes[d] = d == 1 ? weight->numel : 1;
  if (self->ndim == 1) sizes[0] = weight->numel;
  em_tensor *w;
  EM_PASS(em_call_reshape(weight, (em_ints){sizes, self->ndim}, &w));
  em_status st = em_call__prelu_kernel(self, w, out);
  em_tensor_release(w);
  return st;
}

// --- rrelu
static double mean_slope(em_scalar lower, em_scalar upper) {
  return (em_scalar_to_double(lower) + em_scalar_to_double(upper)) / 2;
}
em_status c_rrelu(em_tensor *self, em_scalar lower, em_scalar upper, bool training, struct em_generator *generator,
                  em_tensor **out) {
  em_tensor *noise;
  EM_PASS(em_call_empty_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &noise));
  em_status st = em_call_rrelu_with_noise(self, noise, lower, upper, training, generator, out);
  em_tensor_release(noise);
  return st;
}
em_status c_rrelu_(em_tensor *self, em_scalar lower, em_scalar upper, bool training, struct em_generator *generator) {
  em_tensor *noise;
  EM_PASS(em_call_empty_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &noise));
  em_status st = em_call_rrelu_with_noise_(self, noise, lower, upper, training, generator);
  em_tensor_release(noise);
  return st;
}
static em_status check_rrelu(em_tensor *self, em_tensor *noise, em_scalar lower, em_scalar upper) {
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"rrelu_with_noise_out_cpu\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  if (!(em_scalar_to_double(lower) <= em_scalar_to_double(upper)))
    return em_fail(EM_ERR_RUNTIME, "Lower bound should be less than or equal to the upper bound");
  if (em_tensor_same_sizes(self, noise)) return EM_OK;
  char a[256], b[256];
  return em_fail(EM_ERR_RUNTIME, "noise tensor shape must match self tensor shape. Got self.shape = %s noise.shape = %s",
                 em_shape_format(self->ndim, self->sizes, a, sizeof a),
                 em_shape_format(noise->ndim, noise->sizes, b, sizeof b));
}
// noise = a slope drawn for each element of self that is not positive, in their order, and 1 elsewhere.
static em_status draw_slopes(em_tensor *self, em_tensor *noise, double lower, double upper,
                             struct em_generator *generator) {
  em_status st = EM_OK;
  em_tensor *negative = NULL, *one = NULL, *slopes = NULL, *spread = NULL;
  EM_TRY(em_call_le_Scalar(self, em_scalar_int(0), &negative));
  EM_TRY(em_call_masked_select(self, negative, &one));
  EM_TRY(em_tensor_new(1, &one->numel, EM_F64, self->device, &slopes));
  EM_TRY(em_call_uniform_(slopes, lower, upper, generator));
  EM_TRY(em_tensor_new(self->ndim, self->sizes, EM_F64, self->device, &spread));
  EM_TRY(em_fill(spread, em_scalar_int(1)));
  EM_TRY(em_call_index_put_(spread, (em_tensors){&negative, 1}, slopes, false));
  EM_TRY(em_copy_into(noise, spread));  // noise was saved already: no new version of it
fail:
  em_tensor_release(negative);
  em_tensor_release(one);
  em_tensor_release(slopes);
  em_tensor_release(spread);
  return st;
}
static em_status with_noise(em_tensor *self, em_tensor *noise, em_scalar lower, em_scalar upper, bool training,
                            struct em_generator *generator, em_tensor **out) {
  const em_scalar slope = em_scalar_double(mean_slope(lower, upper));
  if (!training && !em_dtype_is_float(self->dtype)) return em_call_leaky_relu(self, slope, out);  // refuses
  EM_PASS(check_rrelu(self, noise, lower, upper));
  if (!training) return em_call_leaky_relu(self, slope, out);
  if (self->device.type != EM_DEVICE_META)
    EM_PASS(draw_slopes(self, noise, em_scalar_to_double(lower), em_scalar_to_double(upper), generator));
  return em_call_mul_Tensor(self, noise, out);
}
em_status n_rrelu_with_noise(uint64_t ks, em_tensor *self, em_tensor *noise, em_scalar lower, em_scalar upper,
                             bool training, struct em_generator *generator, em_tensor **out) {
  (void)ks;
  const em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));  // recorded whole: its parts do not record
  em_status st = with_noise(self, noise, lower, upper, training, generator, out);
  em_guard_restore(g);
  return st;
}
em_status n_rrelu_with_noise_(uint64_t ks, em_tensor *self, em_tensor *noise, em_scalar lower, em_scalar upper,
                              bool training, struct em_generator *generator) {
  em_tensor *t;
  EM_PASS(n_rrelu_with_noise(ks, self, noise, lower, upper, training, generator, &t));
  em_status st = self->device.type == EM_DEVICE_META ? EM_OK : em_copy_into(self, t);
  em_tensor_release(t);
  return st;
}
em_status c_rrelu_with_noise_backward(em_tensor *grad, em_tensor *self, em_tensor *noise, em_scalar lower,
                                      em_scalar upper, bool training, bool self_is_result, em_tensor **out) {
  if (training && em_scalar_to_double(upper) - em_scalar_to_double(lower) > 1e-6)
    return em_call_mul_Tensor(grad, noise, out);
  return em_call_leaky_relu_backward(grad, self, em_scalar_double(mean_slope(lower, upper)), self_is_result, out);
}
