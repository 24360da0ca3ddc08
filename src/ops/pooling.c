// pooling.c: checks of pooling, and the composites that bring one dim to two. Messages are PyTorch's, dim by dim.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"
#include "../dispatch/window.h"

static em_status not_implemented(const char *kernel, const em_tensor *t) {
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t->dtype));
}
// Outputs lie as their input does: channels last if it does.
static void lie_like(em_plan *p, int i, const em_tensor *t) {
  if (t->ndim != p->out[i].ndim || em_shape_suggested_format(t) < EM_FORMAT_CHANNELS_LAST) return;
  p->out[i].strided = true;
  em_priv_channels_last_strides(t->ndim, p->out[i].sizes, p->out[i].strides);
}
static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }

// --- sliding windows
static em_status check_list(const char *op, const char *name, const char *must, int n, em_ints l, bool optional) {
  if (!(l.n == 1 || l.n == n || (optional && l.n == 0)))
    return em_fail(EM_ERR_RUNTIME, "%s: %s %s, or a tuple of %s ints", op, name, must, n == 2 ? "two" : "three");
  for (int64_t i = 0; i < l.n; i++)
    if (l.p[i] != (int32_t)l.p[i])
      return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type int without overflow");
  return EM_OK;
}
static em_status pooled_size(const em_window *w, int k, bool ceil_mode, int64_t *out) {
  const int64_t in = w->in[k], kernel = w->kernel[k], stride = w->stride[k], pad = w->pad[k], d = w->dilation[k];
  if (stride == 0) return em_fail(EM_ERR_RUNTIME, "stride should not be zero");
  if (pad < 0) return em_fail(EM_ERR_RUNTIME, "pad must be non-negative, but got pad: %lld", (long long)pad);
  if (pad > ((kernel - 1) * d + 1) / 2)
    return em_fail(EM_ERR_RUNTIME,
                   "pad should be at most half of effective kernel size, but got pad=%lld, kernel_size=%lld and "
                   "dilation=%lld",
                   (long long)pad, (long long)kernel, (long long)d);
  const int64_t span = in + 2 * pad - d * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  *out = span / stride - (span % stride != 0 && (span ^ stride) < 0) + 1;
  if (ceil_mode && (*out - 1) * stride >= in + pad) --*out;
  return EM_OK;
}
static em_status check_positive(const em_window *w, int spatial, const int64_t *values, const char *what,
                                const char *prefix) {
  if (values[0] > 0 && values[1] > 0 && values[2] > 0) return EM_OK;
  (void)w;
  if (spatial == 2)
    return em_fail(EM_ERR_RUNTIME, "%s should be greater than zero, but got %sH: %lld %sW: %lld", what, prefix,
                   (long long)values[1], prefix, (long long)values[2]);
  return em_fail(EM_ERR_RUNTIME, "%s should be greater than zero, but got %sT: %lld %sH: %lld %sW: %lld", what, prefix,
                 (long long)values[0], prefix, (long long)values[1], prefix, (long long)values[2]);
}
static em_status check_windows(const em_window *w, int spatial, const em_tensor *self, bool fits) {
  char a[256];
  EM_PASS(check_positive(w, spatial, w->kernel, "kernel size", "k"));
  EM_PASS(check_positive(w, spatial, w->stride, "stride", "d"));
  EM_PASS(check_positive(w, spatial, w->dilation, "dilation", "dilation"));
  bool empty = false;
  for (int k = self->ndim == spatial + 1 ? 0 : 1; k < self->ndim; k++) empty |= self->sizes[k] == 0;
  if (spatial == 2 && (empty || self->ndim < 3 || self->ndim > 4))
    return em_fail(EM_ERR_RUNTIME,
                   "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:%s",
                   text(self, a, sizeof a));
  if (empty)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected input's non-batch dimensions to have positive length, but input has a shape of %s and "
                   "non-batch dimension 0 has length zero!",
                   text(self, a, sizeof a));
  const long long *in = (const long long *)w->in, *k = (const long long *)w->kernel, *p = (const long long *)w->pad,
                  *o = (const long long *)w->out;
  if (fits && (in[0] < k[0] || in[1] < k[1] || in[2] < k[2]))
    return em_fail(EM_ERR_RUNTIME,
                   "input image (T: %lld H: %lld W: %lld) smaller than kernel size (kT: %lld kH: %lld kW: %lld)", in[0],
                   in[1], in[2], k[0], k[1], k[2]);
  if (spatial == 2 && (p[1] > k[1] / 2 || p[2] > k[2] / 2))
    return em_fail(EM_ERR_RUNTIME,
                   "pad should be smaller than or equal to half of kernel size, but got padW = %lld, padH = %lld, kW = "
                   "%lld, kH = %lld",
                   p[2], p[1], k[2], k[1]);
  if (spatial == 3 && (p[0] > k[0] / 2 || p[1] > k[1] / 2 || p[2] > k[2] / 2))
    return em_fail(EM_ERR_RUNTIME,
                   "pad should be smaller than or equal to half of kernel size, but got kT: %lld kW: %lld kH: %lld "
                   "padT: %lld padW: %lld padH: %lld",
                   k[0], k[2], k[1], p[0], p[2], p[1]);
  const long long c = self->sizes[self->ndim - spatial - 1];
  if (o[0] >= 1 && o[1] >= 1 && o[2] >= 1) return EM_OK;
  if (spatial == 2)
    return em_fail(EM_ERR_RUNTIME,
                   "Given input size: (%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lld). Output size is too "
                   "small",
                   c, in[1], in[2], c, o[1], o[2]);
  return em_fail(EM_ERR_RUNTIME,
                 "Given input size: (%lldx%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lldx%lld). Output size "
                 "is too small",
                 c, in[0], in[1], in[2], c, o[0], o[1], o[2]);
}

typedef struct pool {
  const char *op, *must, *omitted;
  int spatial;
  bool fits;  // the kernel may be no larger than the input
} pool;
static const pool max2 = {"max_pool2d", "must either be a single int", "must either be omitted, a single int", 2, false},
                  max3 = {"max_pool3d", "must either be a single int", "must either be omitted, a single int", 3, false},
                  avg2 = {"avg_pool2d", "must either be a single int", "must either be omitted, a single int", 2, false},
                  avg3 = {"avg_pool3d", "must be a single int", "must be omitted, a single int", 3, true};

// Everything about the arguments; sizes of the output in w->out and `sizes`.
static em_status check_pool(const pool *k, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                            em_ints dilation, bool ceil_mode, em_window *w, int64_t *sizes) {
  const bool is_max = k == &max2 || k == &max3;
  EM_PASS(check_list(k->op, "kernel_size", k->must, k->spatial, kernel, false));
  EM_PASS(check_list(k->op, "stride", k->omitted, k->spatial, stride, true));
  EM_PASS(check_list(k->op, "padding", k->must, k->spatial, pad, false));
  if (is_max) EM_PASS(check_list(k->op, "dilation", "must be either a single int", k->spatial, dilation, false));
  if (k == &avg2 && self->ndim < 3) {
    if (self->ndim == 0)
      return em_fail(EM_ERR_INDEX, "Dimension specified as -3 but tensor has no dimensions");
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-%d, %d], but got -3)",
                   self->ndim, self->ndim - 1);
  }
  if (self->ndim != k->spatial + 1 && self->ndim != k->spatial + 2) {
    char a[256];
    if (k == &avg2)
      return em_fail(EM_ERR_RUNTIME,
                     "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:%s",
                     text(self, a, sizeof a));
    return em_fail(EM_ERR_RUNTIME, "non-empty %dD or %dD (batch mode) tensor expected for input", k->spatial + 1,
                   k->spatial + 2);
  }
  em_window_input(w, self, k->spatial);
  em_window_parameters(w, k->spatial, kernel, stride, pad, dilation);
  const int lead = EM_WINDOW_DIMS - k->spatial;
  for (int i = 0; i < EM_WINDOW_DIMS; i++) w->out[i] = 1;
  for (int i = lead; i < EM_WINDOW_DIMS; i++) EM_PASS(pooled_size(w, i, ceil_mode, &w->out[i]));
  EM_PASS(check_windows(w, k->spatial, self, k->fits));
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  for (int i = 0; i < k->spatial; i++) sizes[self->ndim - k->spatial + i] = w->out[lead + i];
  return EM_OK;
}
static em_status check_max(const pool *k, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                           em_ints dilation, bool ceil_mode, em_plan *p) {
  em_window w;
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_pool(k, self, kernel, stride, pad, dilation, ceil_mode, &w, sizes));
  if (self->dtype == EM_BOOL || em_dtype_is_complex(self->dtype)) return not_implemented(k->op, self);
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, sizes, self->device);
  lie_like(p, 0, self);
  lie_like(p, 1, self);
  return EM_OK;
}
em_status check_max_pool2d_with_indices(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation,
                                        bool ceil_mode, em_plan *p) {
  return check_max(&max2, self, kernel, stride, pad, dilation, ceil_mode, p);
}
em_status check_max_pool3d_with_indices(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation,
                                        bool ceil_mode, em_plan *p) {
  return check_max(&max3, self, kernel, stride, pad, dilation, ceil_mode, p);
}
static em_status check_grad_sizes(const em_tensor *grad, const em_tensor *self, const int64_t *sizes, int spatial) {
  for (int d = self->ndim - spatial - 1; d < self->ndim; d++)
    if (grad->ndim != self->ndim || grad->sizes[d] != sizes[d])
      return em_fail(EM_ERR_RUNTIME,
                     "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension %d and "
                     "tensor.size[%d] = %lld",
                     self->ndim, d, (long long)sizes[d], grad->ndim, d,
                     (long long)(d < grad->ndim ? grad->sizes[d] : 0));
  if (self->ndim == spatial + 2 && grad->sizes[0] != self->sizes[0])
    return em_fail(EM_ERR_RUNTIME, "Expected a tensor of dimension %d and tensor.size[0] == %lld but got: %lld",
                   self->ndim, (long long)self->sizes[0], (long long)grad->sizes[0]);
  return EM_OK;
}
static em_status same_dtype(const em_tensor *grad, const em_tensor *self, const char *name) {
  if (grad->dtype == self->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%sexpected dtype %s for `%s` but got dtype %s", "", em_dtype_type_name(self->dtype),
                 name, em_dtype_type_name(grad->dtype));
}
static em_status check_indices(const em_tensor *indices) {
  if (indices->dtype == EM_I64) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected scalar type Long but found %s", em_dtype_scalar_name(indices->dtype));
}
static em_status check_max_backward(const pool *k, em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride,
                                    em_ints pad, em_ints dilation, bool ceil_mode, em_tensor *indices, em_plan *p) {
  em_window w;
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(same_dtype(grad, self, "gradOutput"));
  EM_PASS(check_pool(k, self, kernel, stride, pad, dilation, ceil_mode, &w, sizes));
  EM_PASS(check_grad_sizes(grad, self, sizes, k->spatial));
  EM_PASS(check_grad_sizes(indices, self, sizes, k->spatial));
  if (!em_dtype_is_float(self->dtype))
    return not_implemented(k == &max2 ? "max_pool2d_backward" : "max_pool3d_backward", self);
  EM_PASS(check_indices(indices));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  lie_like(p, 0, self);
  return EM_OK;
}
em_status check_max_pool2d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                    em_ints dilation, bool ceil_mode, em_tensor *indices, em_plan *p) {
  return check_max_backward(&max2, grad, self, kernel, stride, pad, dilation, ceil_mode, indices, p);
}
em_status check_max_pool3d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                    em_ints dilation, bool ceil_mode, em_tensor *indices, em_plan *p) {
  return check_max_backward(&max3, grad, self, kernel, stride, pad, dilation, ceil_mode, indices, p);
}

static em_status check_avg(const pool *k, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode,
                           em_opt_int divisor, int64_t *sizes) {
  em_window w;
  EM_PASS(check_list(k->op, "kernel_size", k->must, k->spatial, kernel, false));
  EM_PASS(check_list(k->op, "stride", k->omitted, k->spatial, stride, true));
  EM_PASS(check_list(k->op, "padding", k->must, k->spatial, pad, false));
  if (divisor.has && divisor.v == 0) return em_fail(EM_ERR_RUNTIME, "divisor must be not zero");
  return check_pool(k, self, kernel, stride, pad, EM_INTS_NONE, ceil_mode, &w, sizes);
}
static bool averages(const pool *k, const em_tensor *self) {
  if (self->dtype == EM_I64 || self->dtype == EM_F32 || self->dtype == EM_F64) return true;
  return k == &avg2 && em_dtype_is_float(self->dtype);
}
static em_status check_avg_forward(const pool *k, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                   bool ceil_mode, em_opt_int divisor, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_avg(k, self, kernel, stride, pad, ceil_mode, divisor, sizes));
  if (!averages(k, self)) return not_implemented(k == &avg2 ? "avg_pool2d" : "avg_pool3d_out_frame", self);
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  if (k == &avg2) lie_like(p, 0, self);
  return EM_OK;
}
em_status check_avg_pool2d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode, bool include,
                           em_opt_int divisor, em_plan *p) {
  (void)include;
  return check_avg_forward(&avg2, self, kernel, stride, pad, ceil_mode, divisor, p);
}
em_status check_avg_pool3d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode, bool include,
                           em_opt_int divisor, em_plan *p) {
  (void)include;
  return check_avg_forward(&avg3, self, kernel, stride, pad, ceil_mode, divisor, p);
}
em_status check_avg_pool2d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                    bool ceil_mode, bool include, em_opt_int divisor, em_plan *p) {
  (void)include;
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_avg(&avg2, self, kernel, stride, pad, ceil_mode, divisor, sizes));
  EM_PASS(check_grad_sizes(grad, self, sizes, 2));
  EM_PASS(same_dtype(grad, self, "gradOutput"));
  if (!averages(&avg2, self)) return not_implemented("avg_pool2d_backward", self);
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  lie_like(p, 0, self);
  return EM_OK;
}
em_status check_avg_pool3d_backward(em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                    bool ceil_mode, bool include, em_opt_int divisor, em_plan *p) {
  (void)include;
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_avg(&avg3, self, kernel, stride, pad, ceil_mode, divisor, sizes));
  EM_PASS(check_grad_sizes(grad, self, sizes, 3));
  if (!averages(&avg3, self)) return not_implemented("avg_pool3d_backward_out_frame", self);
  if (grad->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(self->dtype),
                   em_dtype_scalar_name(grad->dtype));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}

// --- one dim: the same over a height of one
static em_status squeezed(em_tensor **wide, em_tensor **out) {
  em_status st = em_call_squeeze_dim(*wide, -2, out);
  EM_CLEAR_TENSOR(wide);
  return st;
}
static em_status check_max1d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation,
                             bool ceil_mode) {
  const struct { const char *name, *must; em_ints l; bool optional; } lists[] = {
      {"kernel_size", "an int, list of ints or tuple of ints", kernel, false},
      {"stride", "None, an int, list of ints, or tuple of ints", stride, true},
      {"padding", "an int, list of ints, or tuple of ints", pad, false},
      {"dilation", "an int, list of ints or tuple of ints", dilation, false}};
  char a[256];
  bool empty = false;
  for (int d = self->ndim == 2 ? 0 : 1; d < self->ndim; d++) empty |= self->sizes[d] == 0;
  if (empty || self->ndim < 2 || self->ndim > 3)
    return em_fail(EM_ERR_RUNTIME,
                   "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
                   "got:%s",
                   text(self, a, sizeof a));
  for (int i = 0; i < 4; i++)
    if (lists[i].l.n != 1 && !(lists[i].optional && lists[i].l.n == 0))
      return em_fail(EM_ERR_RUNTIME, "max_pool1d() %s must be %s of size 1 but got size %lld", lists[i].name,
                     lists[i].must, (long long)lists[i].l.n);
  const long long k = kernel.p[0], s = stride.n == 0 ? k : stride.p[0], p = pad.p[0], d = dilation.p[0];
  if (k <= 0) return em_fail(EM_ERR_RUNTIME, "max_pool1d() kernel_size must be greater than zero, but got %lld", k);
  if (s <= 0) return em_fail(EM_ERR_RUNTIME, "max_pool1d() stride must be greater than zero, but got %lld", s);
  if (p < 0) return em_fail(EM_ERR_RUNTIME, "max_pool1d() padding must be non-negative, but got %lld", p);
  if (p > k / 2)
    return em_fail(EM_ERR_RUNTIME,
                   "max_pool1d() padding should be at most half of kernel size, but got padding=%lld and "
                   "kernel_size=%lld",
                   p, k);
  if (d <= 0) return em_fail(EM_ERR_RUNTIME, "max_pool1d() dilation must be greater than zero, but got %lld", d);
  for (int i = 0; i < 4; i++) EM_PASS(check_list("max_pool1d", lists[i].name, "", 1, lists[i].l, true));
  em_window w = {.in = {1, 1, self->sizes[self->ndim - 1]}, .kernel = {1, 1, k}, .stride = {1, 1, s}, .pad = {0, 0, p},
                 .dilation = {1, 1, d}};
  int64_t out;
  EM_PASS(pooled_size(&w, 2, ceil_mode, &out));
  if (out < 1) return em_fail(EM_ERR_RUNTIME, "max_pool1d() Invalid computed output size: %lld", (long long)out);
  return EM_OK;
}
em_status c_max_pool1d_with_indices(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation,
                                    bool ceil_mode, em_tensor **out0, em_tensor **out1) {
  EM_PASS(check_max1d(self, kernel, stride, pad, dilation, ceil_mode));
  em_status st = EM_OK;
  em_tensor *wide = NULL, *v = NULL, *i = NULL, *r = NULL;
  EM_TRY(em_call_unsqueeze(self, -2, &wide));
  EM_TRY(em_call_max_pool2d_with_indices(wide, EM_INTS(1, kernel.p[0]),
                                         EM_INTS(1, stride.n == 0 ? kernel.p[0] : stride.p[0]), EM_INTS(0, pad.p[0]),
                                         EM_INTS(1, dilation.p[0]), ceil_mode, &v, &i));
  EM_TRY(squeezed(&v, &r));
  EM_TRY(squeezed(&i, out1));
  *out0 = r;
  r = NULL;
fail:
  em_tensor_release(wide);
  em_tensor_release(v);
  em_tensor_release(i);
  em_tensor_release(r);
  return st;
}
em_status c_max_pool1d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation, bool ceil_mode,
                       em_tensor **out) {
  EM_PASS(check_max1d(self, kernel, stride, pad, dilation, ceil_mode));
  if (!em_dtype_is_float(self->dtype)) return not_implemented("max_pool1d_impl", self);
  em_tensor *indices = NULL;
  em_status st = em_call_max_pool1d_with_indices(self, kernel, stride, pad, dilation, ceil_mode, out, &indices);
  em_tensor_release(indices);
  return st;
}
em_status c_max_pool2d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation, bool ceil_mode,
                       em_tensor **out) {
  em_tensor *indices = NULL;
  em_status st = em_call_max_pool2d_with_indices(self, kernel, stride, pad, dilation, ceil_mode, out, &indices);
  em_tensor_release(indices);
  return st;
}
em_status c_max_pool3d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation, bool ceil_mode,
                       em_tensor **out) {
  em_tensor *indices = NULL;
  em_status st = em_call_max_pool3d_with_indices(self, kernel, stride, pad, dilation, ceil_mode, out, &indices);
  em_tensor_release(indices);
  return st;
}
static em_status check_one(const char *op, const char *name, em_ints l) {
  if (l.n == 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s() argument '%s' should contain one int (got %lld)", op, name, (long long)l.n);
}
static em_status check_two_or_three(const em_tensor *self, const char *op) {
  if (self->ndim == 2 || self->ndim == 3) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while checking "
                 "arguments for %s)",
                 self->ndim, op);
}
em_status c_avg_pool1d(em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode, bool include,
                       em_tensor **out) {
  EM_PASS(check_two_or_three(self, "avg_pool1d"));
  EM_PASS(check_one("avg_pool1d", "kernel_size", kernel));
  if (stride.n != 0) EM_PASS(check_one("avg_pool1d", "stride", stride));
  EM_PASS(check_one("avg_pool1d", "padding", pad));
  em_status st = EM_OK;
  em_tensor *wide = NULL, *r = NULL;
  EM_TRY(em_call_unsqueeze(self, -2, &wide));
  EM_TRY(em_call_avg_pool2d(wide, EM_INTS(1, kernel.p[0]), EM_INTS(1, stride.n == 0 ? kernel.p[0] : stride.p[0]),
                            EM_INTS(0, pad.p[0]), ceil_mode, include, em_no_int(), &r));
  st = squeezed(&r, out);
fail:
  em_tensor_release(wide);
  em_tensor_release(r);
  return st;
}

// --- adaptive
static em_status check_adaptive(const char *op, int spatial, em_tensor *self, em_ints size, bool is_max) {
  char a[256];
  if (is_max && size.n != spatial)
    return em_fail(EM_ERR_RUNTIME, "%s(): internal error: output_size.size() must be %d", op, spatial);
  if (self->ndim != spatial + 1 && self->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected %dD or %dD tensor, but got%s %s", op, spatial + 1, spatial + 2,
                   is_max ? ":" : "", text(self, a, sizeof a));
  for (int d = is_max ? (self->ndim == spatial + 2 ? 1 : 0) : self->ndim - spatial; d < self->ndim; d++)
    if (self->sizes[d] == 0 && (is_max || spatial == 2 || d > 0))
      return em_fail(EM_ERR_RUNTIME,
                     "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with "
                     "dimension %d being empty",
                     op, text(self, a, sizeof a), d);
  return EM_OK;
}
static void adaptive_sizes(int spatial, em_tensor *self, em_ints size, int64_t *sizes) {
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  for (int i = 0; i < spatial; i++) sizes[self->ndim - spatial + i] = size.p[i];
}
// A beginning and an end for each output of each dim.
static em_status plan_shares(int spatial, const int64_t *sizes, int ndim, em_plan *p) {
  int64_t all;
  EM_PASS(em_shape_numel(ndim, sizes, &all));
  if (all == 0) return EM_OK;  // sizes beside a 0 know no bounds, and nothing is computed
  for (int d = ndim - spatial; d < ndim; d++) EM_PASS(em_plan_workspace_of(p, sizes[d], 2 * sizeof(int64_t)));
  return em_plan_workspace_of(p, 2 * EM_WINDOW_DIMS, sizeof(int64_t));
}
static em_status check_output_size(const char *op, int spatial, em_ints size) {
  if (size.n != spatial) return em_fail(EM_ERR_RUNTIME, "%s: output_size must be %d", op, spatial);
  bool bad = false;
  for (int i = 0; i < spatial; i++) bad |= size.p[i] < 0;
  if (bad && spatial == 2)
    return em_fail(EM_ERR_RUNTIME,
                   "%s: elements of output_size must be greater than or equal to 0 but received {%lld, %lld}", op,
                   (long long)size.p[0], (long long)size.p[1]);
  if (bad)
    return em_fail(EM_ERR_RUNTIME,
                   "%s: elements of output_size must be greater than or equal to 0 but received {%lld, %lld,%lld}", op,
                   (long long)size.p[0], (long long)size.p[1], (long long)size.p[2]);
  return EM_OK;
}
static em_status check_adaptive_avg(int spatial, em_tensor *self, em_ints size, em_plan *p) {
  const char *op = spatial == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d";
  EM_PASS(check_output_size(op, spatial, size));
  if (spatial == 3 && self->ndim == 5 && self->sizes[1] == 0) {
    char a[256];
    return em_fail(EM_ERR_RUNTIME,
                   "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with "
                   "dimension 1 being empty",
                   op, text(self, a, sizeof a));
  }
  EM_PASS(check_adaptive(op, spatial, self, size, false));
  if (!em_dtype_is_float(self->dtype)) return not_implemented(spatial == 2 ? op : "adaptive_avg_pool3d_cpu", self);
  int64_t sizes[EM_MAX_DIMS];
  adaptive_sizes(spatial, self, size, sizes);
  EM_PASS(plan_shares(spatial, sizes, self->ndim, p));
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  if (spatial == 2) lie_like(p, 0, self);
  return EM_OK;
}
em_status check_adaptive_avg_pool2d(em_tensor *self, em_ints output_size, em_plan *p) {
  return check_adaptive_avg(2, self, output_size, p);
}
em_status check_adaptive_avg_pool3d(em_tensor *self, em_ints output_size, em_plan *p) {
  return check_adaptive_avg(3, self, output_size, p);
}
static em_status check_adaptive_avg_backward(int spatial, em_tensor *grad, em_tensor *self, em_plan *p) {
  const char *op = spatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward",
             *name = spatial == 2 ? "grad_output" : "gradOutput_";
  char a[256];
  for (int d = 1; d < grad->ndim; d++)
    if (grad->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "%s(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has "
                     "sizes %s with dimension %d being empty",
                     op, text(grad, a, sizeof a), d);
  if (self->ndim != spatial + 1 && self->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected %dD or %dD tensor, but got %s", op, spatial + 1, spatial + 2,
                   text(self, a, sizeof a));
  if (grad->ndim != self->ndim)
    return em_fail(EM_ERR_RUNTIME, "%s_out_cpu_template: Expected dimensions %d for `%s` but got dimensions %d", op,
                   self->ndim, name, grad->ndim);
  if (grad->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME, "%s_out_cpu_template: Expected dtype %s for `%s` but got dtype %s", op,
                   em_dtype_type_name(self->dtype), name, em_dtype_type_name(grad->dtype));
  for (int d = 0; d < self->ndim - spatial; d++)
    if (grad->sizes[d] != self->sizes[d])
      return em_fail(EM_ERR_RUNTIME, "%s(): grad_output of shape %s does not fit the input", op, text(grad, a, sizeof a));
  if (!em_dtype_is_float(self->dtype))
    return not_implemented(spatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward_cpu", self);
  EM_PASS(plan_shares(spatial, grad->sizes, grad->ndim, p));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  if (spatial == 2) lie_like(p, 0, self);
  return EM_OK;
}
em_status check_adaptive_avg_pool2d_backward(em_tensor *grad, em_tensor *self, em_plan *p) {
  return check_adaptive_avg_backward(2, grad, self, p);
}
em_status check_adaptive_avg_pool3d_backward(em_tensor *grad, em_tensor *self, em_plan *p) {
  return check_adaptive_avg_backward(3, grad, self, p);
}
static em_status check_adaptive_max(const char *op, const char *kernel, int spatial, em_tensor *self, em_ints size,
                                    em_plan *p) {
  EM_PASS(check_adaptive(op, spatial, self, size, true));
  int64_t sizes[EM_MAX_DIMS];
  char a[256];
  adaptive_sizes(spatial, self, size, sizes);
  for (int i = 0; i < spatial; i++)
    if (size.p[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)size.p[i],
                     em_shape_format(self->ndim, sizes, a, sizeof a));
  if (!em_dtype_is_float(self->dtype)) return not_implemented(kernel, self);
  EM_PASS(plan_shares(spatial, sizes, self->ndim, p));
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, sizes, self->device);
  if (spatial != 2) return EM_OK;
  lie_like(p, 0, self);
  lie_like(p, 1, self);
  return EM_OK;
}
em_status check_adaptive_max_pool2d(em_tensor *self, em_ints output_size, em_plan *p) {
  return check_adaptive_max("adaptive_max_pool2d", "adaptive_max_pool2d", 2, self, output_size, p);
}
em_status check_adaptive_max_pool3d(em_tensor *self, em_ints output_size, em_plan *p) {
  return check_adaptive_max("adaptive_max_pool3d", "adaptive_max_pool3d_cpu", 3, self, output_size, p);
}
static em_status check_adaptive_max_backward(int spatial, em_tensor *grad, em_tensor *self, em_tensor *indices,
                                             em_plan *p) {
  char a[256], b[256];
  const char *op = spatial == 2 ? "adaptive_max_pooling2d_backward" : "adaptive_max_pooling3d_backward",
             *name = spatial == 2 ? "grad_output" : "gradOutput";
  for (int d = 1; d < grad->ndim; d++)
    if (grad->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "%s(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has "
                     "sizes %s with dimension %d being empty",
                     op, text(grad, a, sizeof a), d);
  if (grad->ndim != spatial + 1 && grad->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected %dD or %dD grad_output, but got: %s", op, spatial + 1, spatial + 2,
                   text(grad, a, sizeof a));
  if (grad->dtype != self->dtype) return same_dtype(grad, self, name);
  if (!em_tensor_same_sizes(grad, indices))
    return em_fail(EM_ERR_RUNTIME, "expected sizes %s for `%s` but got sizes %s", text(indices, a, sizeof a), name,
                   text(grad, b, sizeof b));
  bool fits = grad->ndim == self->ndim;
  for (int d = 0; fits && d < self->ndim - spatial; d++) fits = grad->sizes[d] == self->sizes[d];
  if (!fits)
    return em_fail(EM_ERR_RUNTIME, "%s(): grad_output of shape %s does not fit input of shape %s", op,
                   text(grad, a, sizeof a), text(self, b, sizeof b));
  if (!em_dtype_is_float(self->dtype))
    return not_implemented(spatial == 2 ? "adaptive_max_pool2d_backward" : "adaptive_max_pool3d_backward", self);
  EM_PASS(check_indices(indices));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  if (spatial == 2) lie_like(p, 0, self);
  return EM_OK;
}
em_status check_adaptive_max_pool2d_backward(em_tensor *grad, em_tensor *self, em_tensor *indices, em_plan *p) {
  return check_adaptive_max_backward(2, grad, self, indices, p);
}
em_status check_adaptive_max_pool3d_backward(em_tensor *grad, em_tensor *self, em_tensor *indices, em_plan *p) {
  return check_adaptive_max_backward(3, grad, self, indices, p);
}
static bool all_ones(em_ints l) {
  for (int64_t i = 0; i < l.n; i++)
    if (l.p[i] != 1) return false;
  return true;
}
// One output a plane is a mean, and is recorded as one.
static em_status mean_of_planes(int spatial, em_tensor *self, em_tensor **out) {
  static const int64_t last[] = {-1, -2, -3};
  em_tensor *m = NULL;
  EM_PASS(em_call_mean_dim(self, (em_ints){last, spatial}, true, EM_DTYPE_NONE, &m));
  if (self->ndim != spatial + 2 || em_shape_suggested_format(self) < EM_FORMAT_CHANNELS_LAST) {
    *out = m;
    return EM_OK;
  }
  int64_t strides[EM_MAX_DIMS];
  em_priv_channels_last_strides(m->ndim, m->sizes, strides);
  em_status st = em_tensor_is_contiguous(m) ? em_tensor_set_window(m, m->ndim, m->sizes, strides, m->offset) : EM_OK;
  if (st == EM_OK) *out = m;
  else em_tensor_release(m);
  return st;
}
em_status c_adaptive_avg_pool2d(em_tensor *self, em_ints output_size, em_tensor **out) {
  EM_PASS(check_output_size("adaptive_avg_pool2d", 2, output_size));
  if (all_ones(output_size) && self->ndim >= 2) return mean_of_planes(2, self, out);
  return em_call__adaptive_avg_pool2d(self, output_size, out);
}
em_status c_adaptive_avg_pool3d(em_tensor *self, em_ints output_size, em_tensor **out) {
  EM_PASS(check_output_size("adaptive_avg_pool3d", 3, output_size));
  if (all_ones(output_size) && self->ndim >= 3) return mean_of_planes(3, self, out);
  return em_call__adaptive_avg_pool3d(self, output_size, out);
}
em_status c_adaptive_avg_pool1d(em_tensor *self, em_ints output_size, em_tensor **out) {
  EM_PASS(check_two_or_three(self, "adaptive_avg_pool1d"));
  EM_PASS(check_one("adaptive_avg_pool1d", "output_size", output_size));
  em_status st = EM_OK;
  em_tensor *wide = NULL, *r = NULL;
  EM_TRY(em_call_unsqueeze(self, -2, &wide));
  EM_TRY(em_call_adaptive_avg_pool2d(wide, EM_INTS(1, output_size.p[0]), &r));
  st = squeezed(&r, out);
fail:
  em_tensor_release(wide);
  em_tensor_release(r);
  return st;
}
em_status c_adaptive_max_pool1d(em_tensor *self, em_ints output_size, em_tensor **out0, em_tensor **out1) {
  EM_PASS(check_two_or_three(self, "adaptive_max_pool1d"));
  EM_PASS(check_one("adaptive_max_pool1d", "output_size", output_size));
  char a[256];
  for (int d = 1; d < self->ndim; d++)
    if (self->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, but input "
                     "has sizes %s with dimension %d being empty",
                     text(self, a, sizeof a), d);
  em_status st = EM_OK;
  em_tensor *wide = NULL, *v = NULL, *i = NULL, *r = NULL;
  EM_TRY(em_call_unsqueeze(self, -2, &wide));
  EM_TRY(em_call_adaptive_max_pool2d(wide, EM_INTS(1, output_size.p[0]), &v, &i));
  EM_TRY(squeezed(&v, &r));
  EM_TRY(squeezed(&i, out1));
  *out0 = r;
  r = NULL;
fail:
  em_tensor_release(wide);
  em_tensor_release(v);
  em_tensor_release(i);
  em_tensor_release(r);
  return st;
}
