// fold.c: checks of im2col and col2im (F.unfold, F.fold).
#include <string.h>
#include "gen_ops.h"

typedef struct blocks {
  int64_t kernel[2], dilation[2], pad[2], stride[2], count[2];
} blocks;
static em_status check_pair(const char *name, em_ints l) {
  if (l.n == 2) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "It is expected %s equals to 2, but got size %lld", name, (long long)l.n);
}
static em_status check_values(const char *what, const char *name, const char *least, em_ints l, int64_t min) {
  if (l.p[0] < min || l.p[1] < min)
    return em_fail(EM_ERR_RUNTIME, "%s should be %s, but got %s_height: %lld %s_width: %lld", what, least, name,
                   (long long)l.p[0], name, (long long)l.p[1]);
  if (l.p[0] > INT32_MAX || l.p[1] > INT32_MAX)
    return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type int without overflow");
  return EM_OK;
}
static em_status read_blocks(em_ints kernel, em_ints dilation, em_ints pad, em_ints stride, blocks *b) {
  EM_PASS(check_pair("kernel_size", kernel));
  EM_PASS(check_pair("dilation", dilation));
  EM_PASS(check_pair("padding", pad));
  EM_PASS(check_pair("stride", stride));
  EM_PASS(check_values("kernel size", "kernel", "greater than zero", kernel, 1));
  EM_PASS(check_values("dilation", "dilation", "greater than zero", dilation, 1));
  EM_PASS(check_values("padding", "pad", "non-negative", pad, 0));
  EM_PASS(check_values("stride", "stride", "greater than zero", stride, 1));
  for (int k = 0; k < 2; k++) {
    b->kernel[k] = kernel.p[k];
    b->dilation[k] = dilation.p[k];
    b->pad[k] = pad.p[k];
    b->stride[k] = stride.p[k];
  }
  return EM_OK;
}
static void count_blocks(blocks *b, const int64_t *size) {
  for (int k = 0; k < 2; k++) {
    const int64_t span = size[k] + 2 * b->pad[k] - b->dilation[k] * (b->kernel[k] - 1) - 1, s = b->stride[k];
    b->count[k] = span / s - (span % s < 0) + 1;
  }
}
static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
static em_status check_type(const char *kernel, const em_tensor *t) {
  if (t->dtype == EM_BOOL || !em_dtype_is_integral(t->dtype)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t->dtype));
}
#define PAIR(v) (long long)(v)[0], (long long)(v)[1]

em_status check_im2col(em_tensor *self, em_ints kernel, em_ints dilation, em_ints pad, em_ints stride, em_plan *p) {
  blocks b;
  char a[256];
  EM_PASS(read_blocks(kernel, dilation, pad, stride, &b));
  if (self->ndim < 3) {
    if (self->ndim == 0) return em_fail(EM_ERR_INDEX, "Dimension specified as 1 but tensor has no dimensions");
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-%d, %d], but got %d)", self->ndim,
                   self->ndim - 1, self->ndim);
  }
  bool ok = self->ndim <= 4;
  for (int d = self->ndim == 3 ? 0 : 1; ok && d < self->ndim; d++) ok = self->sizes[d] != 0;
  if (!ok)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                   "input, but got: %s",
                   text(self, a, sizeof a));
  const int64_t *size = self->sizes + self->ndim - 2;
  count_blocks(&b, size);
  if (b.count[0] < 1 || b.count[1] < 1)
    return em_fail(EM_ERR_RUNTIME,
                   "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), "
                   "padding=(%lld, %lld), calculated shape of the array of sliding blocks as (%lld, %lld), but its "
                   "components must be at least one.",
                   PAIR(size), PAIR(b.kernel), PAIR(b.dilation), PAIR(b.pad), PAIR(b.count));
  EM_PASS(check_type("im2col_out_cpu", self));
  int64_t sizes[3] = {self->sizes[0]}, *last = sizes + self->ndim - 3;
  EM_PASS(em_shape_numel(3, (const int64_t[]){self->sizes[self->ndim - 3], b.kernel[0], b.kernel[1]}, &last[0]));
  EM_PASS(em_shape_numel(2, b.count, &last[1]));
  em_plan_output_set(p, self->dtype, self->ndim - 1, sizes, self->device);
  return EM_OK;
}
em_status check_col2im(em_tensor *self, em_ints output_size, em_ints kernel, em_ints dilation, em_ints pad,
                       em_ints stride, em_plan *p) {
  blocks b;
  char a[256];
  EM_PASS(check_pair("output_size", output_size));
  EM_PASS(read_blocks(kernel, dilation, pad, stride, &b));
  const int n = self->ndim;
  if (!((n == 2 && self->sizes[0] != 0 && self->sizes[1] != 0) ||
        (n == 3 && self->sizes[1] != 0 && self->sizes[2] != 0)))
    return em_fail(EM_ERR_RUNTIME,
                   "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
                   "for input, but got: %s",
                   text(self, a, sizeof a));
  const int64_t rows = self->sizes[n - 2], taps = b.kernel[0] * b.kernel[1];
  if (rows % taps != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                   "input.size(1)=%lld and kernel_size=(%lld, %lld).",
                   (long long)rows, PAIR(b.kernel));
  if (output_size.p[0] > INT32_MAX || output_size.p[1] > INT32_MAX || output_size.p[0] < -INT32_MAX ||
      output_size.p[1] < -INT32_MAX)
    return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type int without overflow");
  count_blocks(&b, output_size.p);
  if (self->sizes[n - 1] != b.count[0] * b.count[1])
    return em_fail(EM_ERR_RUNTIME,
                   "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), padding=(%lld, "
                   "%lld), stride=(%lld, %lld), expected size of input's dimension 2 to match the calculated number of "
                   "sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.",
                   PAIR(output_size.p), PAIR(b.kernel), PAIR(b.dilation), PAIR(b.pad), PAIR(b.stride), PAIR(b.count),
                   (long long)(b.count[0] * b.count[1]), (long long)self->sizes[n - 1]);
  if (output_size.p[0] < 1 || output_size.p[1] < 1 || b.count[0] < 1 || b.count[1] < 1)
    return em_fail(EM_ERR_RUNTIME, "Expected output spatial size to be positive, but got: output_size=(%lld, %lld).",
                   PAIR(output_size.p));
  EM_PASS(check_type("col2im_out_cpu", self));
  int64_t sizes[4] = {self->sizes[0]}, *last = sizes + n - 2;
  last[0] = rows / taps;
  last[1] = output_size.p[0];
  last[2] = output_size.p[1];
  em_plan_output_set(p, self->dtype, n + 1, sizes, self->device);
  return EM_OK;
}
