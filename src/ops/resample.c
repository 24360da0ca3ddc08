// resample.c: checks of interpolation to a size; the overloads that take sizes or factors; one macro a signature.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"
#include "../dispatch/resample.h"

static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
static em_status not_implemented(const char *kernel, const em_tensor *t) {
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t->dtype));
}

typedef struct resample {
  int kind, spatial;
  bool align, back_keeps_format;  // whether gradients lie as the output's gradient does
  const char *forward, *backward; // kernels that messages name
  bool bytes, halves;
} resample;

static em_status check_positive(int spatial, const int64_t *in, const int64_t *out) {
  const long long *i = (const long long *)in, *o = (const long long *)out;
  bool ok = true;
  for (int k = 0; k < spatial; k++) ok &= in[k] > 0 && out[k] > 0;
  if (ok) return EM_OK;
  if (spatial == 1)
    return em_fail(EM_ERR_RUNTIME,
                   "Input and output sizes should be greater than 0, but got input (W: %lld) and output (W: %lld)",
                   i[0], o[0]);
  if (spatial == 2)
    return em_fail(EM_ERR_RUNTIME,
                   "Input and output sizes should be greater than 0, but got input (H: %lld, W: %lld) output (H: %lld, "
                   "W: %lld)",
                   i[0], i[1], o[0], o[1]);
  return em_fail(EM_ERR_RUNTIME,
                 "Input and output sizes should be greater than 0, but got input (D: %lld, H: %lld, W: %lld) output "
                 "(D: %lld, H: %lld, W: %lld)",
                 i[0], i[1], i[2], o[0], o[1], o[2]);
}
// Sizes of the output: batch and channels as they are.
static em_status full_sizes(int spatial, em_ints input, em_ints output, int64_t *sizes) {
  if (output.n != spatial)
    return em_fail(EM_ERR_RUNTIME, "It is expected output_size equals to %d, but got size %lld", spatial,
                   (long long)output.n);
  if (input.n != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "It is expected input_size equals to %d, but got size %lld", spatial + 2,
                   (long long)input.n);
  EM_PASS(check_positive(spatial, input.p + 2, output.p));
  sizes[0] = input.p[0];
  sizes[1] = input.p[1];
  memcpy(sizes + 2, output.p, sizeof(int64_t) * (size_t)spatial);
  return EM_OK;
}
// Bytes of the tables: for each output of each dim a count, and a position and a weight a tap.
static em_status table_bytes(const resample *r, const int64_t *in, const int64_t *out, const em_opt_double *scales,
                             size_t *bytes) {
  *bytes = 0;
  for (int k = 0; k < r->spatial; k++) {
    size_t n;
    const int64_t taps = em_resample_taps(r->kind, in[k], em_resample_scale(in[k], out[k], r->align, scales[k]));
    if (__builtin_mul_overflow((size_t)out[k], (size_t)(2 * taps + 1) * 8, &n) ||
        __builtin_add_overflow(*bytes, n, bytes))
      return em_fail(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=[%lld]", (long long)out[k]);
  }
  return EM_OK;
}
static void keep_format(em_plan *p, const em_tensor *like) {
  if (like->ndim != p->out[0].ndim || em_shape_suggested_format(like) < EM_FORMAT_CHANNELS_LAST) return;
  p->out[0].strided = true;
  em_priv_channels_last_strides(like->ndim, p->out[0].sizes, p->out[0].strides);
}
static em_status check_forward(resample r, em_tensor *self, em_ints output, bool align, const em_opt_double *scales,
                               em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  r.align = align;
  EM_PASS(full_sizes(r.spatial, (em_ints){self->sizes, self->ndim}, output, sizes));
  char a[256];
  if (self->numel == 0 && self->sizes[1] == 0)
    return em_fail(EM_ERR_RUNTIME, "Non-empty %dD data tensor expected but got a tensor with sizes %s", r.spatial + 2,
                   text(self, a, sizeof a));
  const bool half = self->dtype == EM_F16 || self->dtype == EM_BF16;
  if (!(self->dtype == EM_F32 || self->dtype == EM_F64 || (half && r.halves) || (self->dtype == EM_U8 && r.bytes)))
    return not_implemented(r.forward, self);
  int64_t all;
  EM_PASS(em_shape_numel(self->ndim, sizes, &all));
  if (all > 0) EM_PASS(table_bytes(&r, self->sizes + 2, output.p, scales, &p->workspace));
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  keep_format(p, self);
  return EM_OK;
}
static em_status check_backward(resample r, em_tensor *grad, em_ints output, em_ints input, bool align,
                                const em_opt_double *scales, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  r.align = align;
  EM_PASS(full_sizes(r.spatial, input, output, sizes));
  const int n = r.spatial + 2;
  if (r.spatial > 1 && grad->ndim != n)
    return em_fail(EM_ERR_RUNTIME, "Expected grad_output to be a tensor of dimension %d but got: dimension %d", n,
                   grad->ndim);
  for (int d = 0; d < n; d++)
    if (grad->ndim != n || grad->sizes[d] != sizes[d]) {
      if (r.spatial == 1)
        return em_fail(EM_ERR_RUNTIME,
                       "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension %d and "
                       "tensor.size[%d] = %lld",
                       n, d, (long long)sizes[d], grad->ndim, d, (long long)(d < grad->ndim ? grad->sizes[d] : 0));
      return em_fail(EM_ERR_RUNTIME,
                     "Expected grad_output to have the same shape as output; output.size(%d) = %lld but got "
                     "grad_output.size(%d) = %lld",
                     d, (long long)sizes[d], d, (long long)grad->sizes[d]);
    }
  const bool half = grad->dtype == EM_F16 || grad->dtype == EM_BF16;
  if (!(grad->dtype == EM_F32 || grad->dtype == EM_F64 || (half && r.halves))) return not_implemented(r.backward, grad);
  EM_PASS(table_bytes(&r, input.p + 2, output.p, scales, &p->workspace));
  em_plan_output_set(p, grad->dtype, n, input.p, grad->device);
  if (r.back_keeps_format) keep_format(p, grad);
  return EM_OK;
}

// --- output_size or scale_factors
static em_status output_size_of(int spatial, em_tensor *input, em_ints size, em_doubles factors, int64_t *out) {
  if ((size.n >= 0) == (factors.n >= 0))
    return em_fail(EM_ERR_RUNTIME, "Must specify exactly one of output_size and scale_factors");
  const char *which = size.n >= 0 ? "output_size->size()" : "scale_factors->size()";
  if (input->ndim < 2 || (size.n >= 0 ? size.n : factors.n) != spatial || input->ndim != spatial + 2)
    return em_fail(EM_ERR_RUNTIME, "Expected static_cast<int64_t>(%s) == spatial_dimensions to be true, but got false.",
                   which);
  for (int k = 0; k < spatial; k++) {
    if (size.n >= 0) {
      out[k] = size.p[k];
      continue;
    }
    const double v = (double)input->sizes[k + 2] * factors.p[k];
    if (!(v < 9223372036854775807.0 && v >= -9223372036854775808.0))
      return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type int64_t without overflow");
    out[k] = (int64_t)v;
  }
  return EM_OK;
}
static em_opt_double factor(em_doubles factors, int k) {
  return factors.n < 0 ? em_no_double() : em_some_double(factors.p[k]);
}

#define P1 em_opt_double s0
#define P2 em_opt_double s0, em_opt_double s1
#define P3 em_opt_double s0, em_opt_double s1, em_opt_double s2
#define L1 (const em_opt_double[]){s0}
#define L2 (const em_opt_double[]){s0, s1}
#define L3 (const em_opt_double[]){s0, s1, s2}
#define F1 factor(factors, 0)
#define F2 factor(factors, 0), factor(factors, 1)
#define F3 factor(factors, 0), factor(factors, 1), factor(factors, 2)

#define BY_SIZE(op, n, kind, keeps, forward, backward)                                                              \
  static const resample r_##op = {kind, n, false, keeps, forward, backward, true, true};                            \
  em_status check_##op(em_tensor *self, em_ints size, P##n, em_plan *p) {                                           \
    return check_forward(r_##op, self, size, false, L##n, p);                                                       \
  }                                                                                                                 \
  em_status check_##op##_backward(em_tensor *grad, em_ints size, em_ints input, P##n, em_plan *p) {                 \
    return check_backward(r_##op, grad, size, input, false, L##n, p);                                               \
  }
#define VEC(op, call, n)                                                                                            \
  em_status c_##op##_vec(em_tensor *input, em_ints size, em_doubles factors, em_tensor **out) {                     \
    int64_t sizes[3];                                                                                               \
    EM_PASS(output_size_of(n, input, size, factors, sizes));                                                        \
    return call(input, (em_ints){sizes, n}, F##n, out);                                                             \
  }
#define BY_ALIGNED(op, n, kind, keeps, forward, backward, bytes, halves)                                            \
  static const resample r_##op = {kind, n, false, keeps, forward, backward, bytes, halves};                         \
  em_status check_##op(em_tensor *self, em_ints size, bool align, P##n, em_plan *p) {                               \
    return check_forward(r_##op, self, size, align, L##n, p);                                                       \
  }
#define BACK_ALIGNED(op, n)                                                                                         \
  em_status check_##op##_backward(em_tensor *grad, em_ints size, em_ints input, bool align, P##n, em_plan *p) {     \
    return check_backward(r_##op, grad, size, input, align, L##n, p);                                               \
  }
#define VEC_ALIGNED(op, call, n)                                                                                    \
  em_status c_##op##_vec(em_tensor *input, em_ints size, bool align, em_doubles factors, em_tensor **out) {         \
    int64_t sizes[3];                                                                                               \
    EM_PASS(output_size_of(n, input, size, factors, sizes));                                                        \
    return call(input, (em_ints){sizes, n}, align, F##n, out);                                                      \
  }

#define NEAREST EM_RESAMPLE_NEAREST
#define EXACT EM_RESAMPLE_EXACT
BY_SIZE(upsample_nearest1d, 1, NEAREST, false, "compute_indices_weights_nearest", "upsample_nearest1d_backward")
BY_SIZE(upsample_nearest2d, 2, NEAREST, true, "upsample_nearest2d_channels_last", "upsample_nearest2d_backward")
BY_SIZE(upsample_nearest3d, 3, NEAREST, false, "compute_indices_weights_nearest", "upsample_nearest3d_backward")
BY_SIZE(upsample_nearest_exact1d, 1, EXACT, false, "compute_indices_weights_nearest",
        "_upsample_nearest_exact1d_backward")
BY_SIZE(upsample_nearest_exact2d, 2, EXACT, true, "upsample_nearest2d_channels_last",
        "_upsample_nearest_exact2d_backward")
BY_SIZE(upsample_nearest_exact3d, 3, EXACT, false, "compute_indices_weights_nearest",
        "_upsample_nearest_exact3d_backward")
VEC(upsample_nearest1d, em_call_upsample_nearest1d, 1)
VEC(upsample_nearest2d, em_call_upsample_nearest2d, 2)
VEC(upsample_nearest3d, em_call_upsample_nearest3d, 3)
VEC(upsample_nearest_exact1d, em_call__upsample_nearest_exact1d, 1)
VEC(upsample_nearest_exact2d, em_call__upsample_nearest_exact2d, 2)
VEC(upsample_nearest_exact3d, em_call__upsample_nearest_exact3d, 3)

BY_ALIGNED(upsample_linear1d, 1, EM_RESAMPLE_LINEAR, false, "compute_indices_weights_linear",
           "upsample_linear1d_backward", false, true)
BY_ALIGNED(upsample_bilinear2d, 2, EM_RESAMPLE_LINEAR, true, "upsample_bilinear2d_channels_last",
           "upsample_bilinear2d_backward", true, true)
BY_ALIGNED(upsample_trilinear3d, 3, EM_RESAMPLE_LINEAR, true, "compute_indices_weights_linear",
           "upsample_trilinear3d_backward", false, true)
BY_ALIGNED(upsample_bicubic2d, 2, EM_RESAMPLE_CUBIC, false, "compute_indices_weights_cubic",
           "upsample_bicubic2d_backward", true, true)
BY_ALIGNED(upsample_bilinear2d_aa, 2, EM_RESAMPLE_LINEAR_AA, true, "compute_index_ranges_weights",
           "upsample_bilinear2d_aa_backward_cpu", true, false)
BY_ALIGNED(upsample_bicubic2d_aa, 2, EM_RESAMPLE_CUBIC_AA, false, "compute_index_ranges_weights",
           "upsample_bicubic2d_aa_backward_cpu", true, false)
BY_ALIGNED(upsample_lanczos2d_aa, 2, EM_RESAMPLE_LANCZOS_AA, false, "compute_index_ranges_weights",
           "upsample_lanczos2d_aa_backward_cpu", true, false)
BACK_ALIGNED(upsample_linear1d, 1)
BACK_ALIGNED(upsample_bilinear2d, 2)
BACK_ALIGNED(upsample_trilinear3d, 3)
BACK_ALIGNED(upsample_bicubic2d, 2)
BACK_ALIGNED(upsample_bilinear2d_aa, 2)
BACK_ALIGNED(upsample_bicubic2d_aa, 2)
BACK_ALIGNED(upsample_lanczos2d_aa, 2)
VEC_ALIGNED(upsample_linear1d, em_call_upsample_linear1d, 1)
VEC_ALIGNED(upsample_bilinear2d, em_call_upsample_bilinear2d, 2)
VEC_ALIGNED(upsample_trilinear3d, em_call_upsample_trilinear3d, 3)
VEC_ALIGNED(upsample_bicubic2d, em_call_upsample_bicubic2d, 2)
VEC_ALIGNED(upsample_bilinear2d_aa, em_call__upsample_bilinear2d_aa, 2)
VEC_ALIGNED(upsample_bicubic2d_aa, em_call__upsample_bicubic2d_aa, 2)
VEC_ALIGNED(upsample_lanczos2d_aa, em_call__upsample_lanczos2d_aa, 2)
