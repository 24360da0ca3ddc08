// softmax.c: checks and public forms of softmax and log_softmax.
#include "gen_ops.h"

static em_status check_any(em_tensor *self, int64_t dim, const char *name, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &p->attr[0]));
  if (!em_dtype_is_float(self->dtype) && self->numel > 0)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, em_dtype_scalar_name(self->dtype));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
static em_status check_half_to_float(em_tensor *self, bool half_to_float) {
  if (!half_to_float) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "softmax with half to float conversion is not supported on CPU");
}
em_status check_softmax(em_tensor *self, int64_t dim, bool half_to_float, em_plan *p) {
  EM_PASS(check_half_to_float(self, half_to_float));
  return check_any(
      self, dim,
      self->ndim == 0 || dim == -1 || dim == self->ndim - 1 ? "softmax_lastdim_kernel_impl" : "softmax_kernel_impl", p);
}
em_status check_log_softmax(em_tensor *self, int64_t dim, bool half_to_float, em_plan *p) {
  EM_PASS(check_half_to_float(self, half_to_float));
  return check_any(self, dim,
                   self->ndim == 0 || dim == -1 || dim == self->ndim - 1 ? "log_softmax_lastdim_kernel_impl"
                                                                         : "log_softmax_kernel_impl",
                   p);
}
em_status check_softmax_backward(em_tensor *grad_output, em_tensor *output, int64_t dim, int input_dtype, em_plan *p) {
  if (!em_tensor_same_sizes(grad_output, output)) {
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "softmax_backward: grad_output of shape %s does not match output of shape %s",
                   em_shape_format(grad_output->ndim, grad_output->sizes, a, sizeof a),
                   em_shape_format(output->ndim, output->sizes, b, sizeof b));
  }
  if (grad_output->dtype != output->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "expected input and grad types to match, or input to be at::Half and grad to be at::Float");
  (void)input_dtype;
  return check_any(grad_output, dim, "softmax_backward", p);
}

// The input, cast when another dtype is asked for.
static em_status prepare(em_tensor *self, int dtype, em_tensor **out) {
  return em_call_to_dtype(self, dtype < 0 ? self->dtype : dtype, false, false, EM_FORMAT_NONE, out);
}
em_status c_softmax(em_tensor *self, int64_t dim, int dtype, em_tensor **out) {
  em_tensor *x;
  EM_PASS(prepare(self, dtype, &x));
  em_status st = em_call__softmax(x, dim, false, out);
  em_tensor_release(x);
  return st;
}
em_status c_log_softmax(em_tensor *self, int64_t dim, int dtype, em_tensor **out) {
  em_tensor *x;
  EM_PASS(prepare(self, dtype, &x));
  em_status st = em_call__log_softmax(x, dim, false, out);
  em_tensor_release(x);
  return st;
}
