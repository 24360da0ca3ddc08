// unpooling.c: checks of max_unpool and of fractional pooling.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
static em_status not_implemented(const char *kernel, const em_tensor *t) {
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t->dtype));
}

static em_status check_unpool(int spatial, em_tensor *self, em_tensor *indices, em_ints size) {
  char a[256], b[256];
  if (self->ndim != spatial + 1 && self->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME,
                   "Input to max_unpooling%dd should be a %dd or %dd Tensor, but got a tensor with %d dimensions.",
                   spatial, spatial + 1, spatial + 2, self->ndim);
  if (!em_tensor_same_sizes(self, indices))
    return em_fail(EM_ERR_RUNTIME,
                   "Expected shape of indices to be same as that of the input tensor (%s) but got indices tensor with "
                   "shape: %s",
                   text(self, a, sizeof a), text(indices, b, sizeof b));
  for (int d = 1; d < self->ndim; d++)
    if (self->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "max_unpooling%dd_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                     "dimensions, but got %s with dimension %d being empty.",
                     spatial, text(self, a, sizeof a), d);
  for (int i = 0; i < spatial; i++)
    if (size.p[i] < 0) {
      if (spatial == 2)
        return em_fail(EM_ERR_RUNTIME,
                       "max_unpooling2d(): output_size must contain non-negative spatial dimensions, but got "
                       "output_size=(%lld, %lld)",
                       (long long)size.p[0], (long long)size.p[1]);
      return em_fail(EM_ERR_RUNTIME,
                     "max_unpooling3d(): output_size must contain non-negative spatial dimensions, but got "
                     "output_size=(%lld, %lld, %lld)",
                     (long long)size.p[0], (long long)size.p[1], (long long)size.p[2]);
    }
  if (em_dtype_is_float(self->dtype)) return EM_OK;
  return not_implemented(spatial == 2 ? "max_unpool2d" : "max_unpool3d", self);
}
static void plan_unpool(int spatial, em_tensor *self, em_ints size, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  for (int i = 0; i < spatial; i++) sizes[self->ndim - spatial + i] = size.p[i];
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
}
em_status check_max_unpool2d(em_tensor *self, em_tensor *indices, em_ints size, em_plan *p) {
  if (indices->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "elements in indices should be type int64 but got: %s",
                   em_dtype_scalar_name(indices->dtype));
  if (size.n != 2)
    return em_fail(EM_ERR_RUNTIME,
                   "There should be exactly two elements (height, width) in output_size, but got %lld elements.",
                   (long long)size.n);
  EM_PASS(check_unpool(2, self, indices, size));
  plan_unpool(2, self, size, p);
  if (em_shape_suggested_format(self) == EM_FORMAT_CHANNELS_LAST) {
    p->out[0].strided = true;
    em_priv_channels_last_strides(4, p->out[0].sizes, p->out[0].strides);
  }
  return EM_OK;
}
static em_status check_three(const char *name, const char *got, em_ints l) {
  if (l.n == 3) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "There should be exactly three elements (depth, height, width) in %s, but got%s %lld elements.", name,
                 got, (long long)l.n);
}
em_status check_max_unpool3d(em_tensor *self, em_tensor *indices, em_ints size, em_ints stride, em_ints padding,
                             em_plan *p) {
  char a[256];
  if (indices->dtype != EM_I64) return em_fail(EM_ERR_RUNTIME, "elements in indices should be type int64");
  if (self->ndim == 4 || self->ndim == 5) {
    EM_PASS(check_three("output_size", "", size));
    EM_PASS(check_three("stride", ":", stride));
    EM_PASS(check_three("padding", ":", padding));
  } else {
    return em_fail(EM_ERR_RUNTIME,
                   "Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with %d dimensions.",
                   self->ndim);
  }
  if (stride.p[0] <= 0 || stride.p[1] <= 0 || stride.p[2] <= 0)
    return em_fail(EM_ERR_RUNTIME, "strides should be greater than zero, but got stride: %s",
                   em_shape_format(3, stride.p, a, sizeof a));
  EM_PASS(check_unpool(3, self, indices, size));
  plan_unpool(3, self, size, p);
  return EM_OK;
}

// --- fractional
static em_status check_samples(int spatial, em_tensor *self, em_tensor *samples) {
  if (samples->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME, "Expect _random_samples to have the same dtype as input");
  if (samples->ndim != 3)
    return em_fail(EM_ERR_RUNTIME, "Expect _random_samples to have 3 dimensions, got %d", samples->ndim);
  const bool batched = self->ndim == spatial + 2;
  const int64_t n = batched ? self->sizes[0] : 1, c = self->sizes[batched ? 1 : 0];
  if (samples->sizes[0] < n)
    return em_fail(EM_ERR_RUNTIME, "Expect _random_samples.size(0) no less then input batch size.");
  if (samples->sizes[1] != c)
    return em_fail(EM_ERR_RUNTIME, "Expect _random_samples.size(1) equals to input channel size.");
  if (samples->sizes[2] != spatial)
    return em_fail(EM_ERR_RUNTIME, "Expect _random_samples.size(2) equals to %d; got %lld.", spatial,
                   (long long)samples->sizes[2]);
  return EM_OK;
}
static em_status check_fractional(int spatial, em_tensor *self, em_ints kernel, em_ints size, em_tensor *samples,
                                  em_plan *p) {
  static const char *const names[] = {"width", "height", "time"};
  char a[256];
  const char *op = spatial == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d_out",
             *ints = spatial == 2 ? "tuple of Ints" : "tuple of three Ints";
  if (kernel.n != spatial)
    return em_fail(EM_ERR_RUNTIME, "fractional_max_pool%dd: kernel_size must either be a single Int or %s", spatial,
                   ints);
  if (size.n != spatial)
    return em_fail(EM_ERR_RUNTIME, "fractional_max_pool%dd: output_size must either be a single Int or %s", spatial,
                   ints);
  if (self->ndim != spatial + 1 && self->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected %dD or %dD tensor, but got: %s", op, spatial + 1, spatial + 2,
                   text(self, a, sizeof a));
  for (int d = self->ndim == spatial + 2 ? 1 : 0; d < self->ndim; d++)
    if (self->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "%s(): Expected input to have non-zero size for non-batch dimensions, but got%s with dimension %d "
                     "being empty.",
                     op, text(self, a, sizeof a), d);
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  for (int i = 0; i < spatial; i++) {
    const int64_t in = self->sizes[self->ndim - spatial + i];
    if (size.p[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "%s(): output_size may not be negative, got %lld", op, (long long)size.p[i]);
    if (kernel.p[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "%s(): kernel_size may not be negative, got %lld", op, (long long)kernel.p[i]);
    if (size.p[i] > in || kernel.p[i] > in || size.p[i] + kernel.p[i] - 1 > in)
      return em_fail(EM_ERR_RUNTIME, "%s(): pool %s %lld too large relative to input %s %lld", op,
                     names[spatial - 1 - i], (long long)kernel.p[i], names[spatial - 1 - i], (long long)in);
    sizes[self->ndim - spatial + i] = size.p[i];
  }
  EM_PASS(check_samples(spatial, self, samples));
  if (!em_dtype_is_float(self->dtype))
    return not_implemented(spatial == 2 ? "fractional_max_pool2d_out_frame" : "fractional_max_pool3d_out_frame", self);
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, sizes, self->device);
  for (int i = 0; i < spatial; i++) EM_PASS(em_plan_workspace_of(p, size.p[i], sizeof(int64_t)));
  return em_plan_workspace_of(p, 1, sizeof(int64_t));
}
em_status check_fractional_max_pool2d(em_tensor *self, em_ints kernel, em_ints size, em_tensor *samples, em_plan *p) {
  return check_fractional(2, self, kernel, size, samples, p);
}
em_status check_fractional_max_pool3d(em_tensor *self, em_ints kernel, em_ints size, em_tensor *samples, em_plan *p) {
  return check_fractional(3, self, kernel, size, samples, p);
}
static em_status check_fractional_backward(int spatial, em_tensor *grad, em_tensor *self, em_ints size,
                                           em_tensor *indices, em_plan *p) {
  bool fits = self->ndim >= spatial + 1 && self->ndim <= spatial + 2 && grad->ndim == self->ndim && size.n == spatial &&
              em_tensor_same_sizes(grad, indices);
  for (int d = 0; fits && d < self->ndim; d++)
    fits = grad->sizes[d] == (d < self->ndim - spatial ? self->sizes[d] : size.p[d - (self->ndim - spatial)]);
  if (!fits)
    return spatial == 2 ? em_fail(EM_ERR_RUNTIME, "fractional_max_pool2d_backward(): gradOutput sizes unexpected")
                        : em_fail(EM_ERR_RUNTIME, "fractional_max_pool3d_backward_out(): gradOutput time unexpected");
  if (!em_dtype_is_float(self->dtype) || grad->dtype != self->dtype)
    return not_implemented(spatial == 2 ? "fractional_max_pool2d_backward_out_frame"
                                        : "fractional_max_pool3d_backward_out_frame", grad);
  if (indices->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type Long but found %s", em_dtype_scalar_name(indices->dtype));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_fractional_max_pool2d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints size,
                                               em_tensor *indices, em_plan *p) {
  (void)kernel;
  return check_fractional_backward(2, grad, self, size, indices, p);
}
em_status check_fractional_max_pool3d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints size,
                                               em_tensor *indices, em_plan *p) {
  (void)kernel;
  return check_fractional_backward(3, grad, self, size, indices, p);
}
