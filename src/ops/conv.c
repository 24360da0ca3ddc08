// conv.c: convolutions. conv1d ... conv_transpose3d add a batch if there is none and call `convolution`; a complex one is made of three
// real ones. check_convolution raises PyTorch's errors, in its order.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "copy.h"
#include "dispatch/conv_geometry.h"
#include "dispatch/view_entry.h"
#include "gen_ops.h"

typedef struct conv_args {
  em_ints stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
} conv_args;

// --- what may be wrong

static em_status check_list(em_ints l, const char *name, int space) {
  char text[256];
  if (l.n == 1 || l.n == space) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, but got %s=%s",
                 name, space, name, em_shape_format((int)l.n, l.p, text, sizeof text));
}
static bool any_below(em_ints l, int64_t least) {
  for (int64_t i = 0; i < l.n; i++)
    if (l.p[i] < least) return true;
  return false;
}
static em_status check_numbers(const em_tensor *weight, const conv_args *a) {
  const int space = weight->ndim - 2;
  if (space <= 0) return em_fail(EM_ERR_RUNTIME, "weight should have at least three dimensions");
  if (a->groups <= 0) return em_fail(EM_ERR_RUNTIME, "non-positive groups is not supported");
  EM_PASS(check_list(a->stride, "stride", space));
  EM_PASS(check_list(a->padding, "padding", space));
  EM_PASS(check_list(a->dilation, "dilation", space));
  EM_PASS(check_list(a->output_padding, "output_padding", space));
  if (any_below(a->padding, 0)) return em_fail(EM_ERR_RUNTIME, "negative padding is not supported");
  if (any_below(a->output_padding, 0)) return em_fail(EM_ERR_RUNTIME, "negative output_padding is not supported");
  if (any_below(a->stride, 1)) return em_fail(EM_ERR_RUNTIME, "non-positive stride is not supported");
  if (any_below(a->dilation, 0)) return em_fail(EM_ERR_RUNTIME, "dilation should be greater than zero");
  if (any_below(a->dilation, 1)) return em_fail(EM_ERR_RUNTIME, "non-positive dilation is not supported");
  return EM_OK;
}
static em_status check_channels(const em_tensor *input, const em_tensor *weight, const em_tensor *bias, const conv_args *a) {
  char w[256], x[256], head[64];
  const char *ws = em_shape_format(weight->ndim, weight->sizes, w, sizeof w);
  const char *xs = em_shape_format(input->ndim, input->sizes, x, sizeof x);
  const long long groups = (long long)a->groups;
  if (weight->ndim != input->ndim)
    return em_fail(
        EM_ERR_RUNTIME,
        "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input of size %s instead",
        weight->ndim, weight->ndim, ws, input->ndim, xs);
  if (weight->sizes[0] < a->groups)
    return em_fail(
        EM_ERR_RUNTIME,
        "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
        groups, groups, ws);
  if (weight->sizes[0] % a->groups != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size "
                   "[%s] instead",
                   groups, groups, ws);
  int64_t channels = weight->sizes[0], made;
  if (__builtin_mul_overflow(weight->sizes[1], a->groups, &made)) made = INT64_MAX;
  if (!a->transposed) channels = made, made = weight->sizes[0];
  snprintf(head, sizeof head, a->transposed ? "Given transposed=1" : "Given groups=%lld", groups);
  if (input->sizes[1] != channels)
    return em_fail(EM_ERR_RUNTIME, "%s, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead", head, ws,
                   xs, (long long)channels, (long long)input->sizes[1]);
  if (bias != NULL && (bias->ndim != 1 || bias->sizes[0] != made))
    return em_fail(EM_ERR_RUNTIME,
                   "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of "
                   "size %s instead",
                   a->transposed ? "transposed=1, " : "", ws, (long long)made,
                   em_shape_format(bias->ndim, bias->sizes, x, sizeof x));
  return EM_OK;
}

static em_status fail_dtypes(const em_tensor *input, const em_tensor *other) {
  char names[2][64];
  const em_tensor *t[2] = {input, other};
  for (int i = 0; i < 2; i++) {
    const char *scalar = em_dtype_scalar_name(t[i]->dtype);
    const bool old = t[i]->dtype != EM_BF16 && !em_dtype_is_complex(t[i]->dtype);
    snprintf(names[i], sizeof names[i], old ? "torch.%sTensor" : "CPU%sType", scalar);
  }
  if (em_dtype_is_float(input->dtype) && input->dtype != EM_F64)
    return em_fail(EM_ERR_RUNTIME,
                   "Input type (%s) and weight type (%s) should be the same or input should be a MKLDNN tensor and "
                   "weight is a dense tensor",
                   names[0], names[1]);
  return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(input->dtype),
                 em_dtype_scalar_name(other->dtype));
}
static em_status check_dtypes(const em_tensor *input, const em_tensor *weight, const em_tensor *bias, const conv_args *a) {
  const int t = input->dtype, space = weight->ndim - 2;
  if (weight->dtype != t) return fail_dtypes(input, weight);
  if (bias != NULL && bias->dtype != t)
    return em_fail(EM_ERR_RUNTIME, "Input type (%s) and bias type (%s) should be the same", em_dtype_type_name(t),
                   em_dtype_type_name(bias->dtype));
  if (em_dtype_is_float(t) || t == EM_I64 || (!a->transposed && em_dtype_is_integral(t) && t != EM_BOOL)) return EM_OK;
  const char *kernel = a->transposed ? (space == 3 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu")
                       : space == 3 ? "compute_columns3d" : "slow_conv2d_cpu";
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t));
}

// --- the result's sizes

static em_status fail_sum(void) { return em_fail(EM_ERR_RUNTIME, "the sizes of this convolution are beyond 64-bit integers"); }

// Length that the kernel spans: dilation * (kernel - 1) + 1.
static bool span_of(int64_t dilation, int64_t kernel, int64_t *out) {
  return !__builtin_mul_overflow(dilation, kernel - 1, out) && !__builtin_add_overflow(*out, 1, out);
}
static void format_product(const int64_t *p, int n, char *buf, size_t size) {
  size_t at = 0;
  buf[0] = 0;
  for (int i = 0; i < n && at < size; i++) at += (size_t)snprintf(buf + at, size - at, i == 0 ? "%lld" : " x %lld", (long long)p[i]);
}
static em_status plain_sizes(const em_tensor *input, const em_tensor *weight, const conv_args *a, int64_t *sizes) {
  int64_t padded[EM_MAX_DIMS], span[EM_MAX_DIMS];
  const int space = weight->ndim - 2;
  bool fits = true;
  for (int d = 0; d < space; d++) {
    const int64_t pad = em_conv_at(a->padding, d);
    if (__builtin_add_overflow(pad, pad, &padded[d]) || __builtin_add_overflow(padded[d], input->sizes[2 + d], &padded[d]) ||
        !span_of(em_conv_at(a->dilation, d), weight->sizes[2 + d], &span[d]))
      return fail_sum();
    fits = fits && span[d] <= padded[d];
    sizes[2 + d] = (padded[d] - span[d]) / em_conv_at(a->stride, d) + 1;
  }
  if (!fits) {
    char p[128], k[128];
    format_product(padded, space, p, sizeof p);
    format_product(span, space, k, sizeof k);
    return em_fail(EM_ERR_RUNTIME,
                   "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater "
                   "than actual input size",
                   p, k);
  }
  return EM_OK;
}
// Whether PyTorch leaves a transposed convolution to oneDNN.
static bool by_library(const em_tensor *input, const conv_args *a) {
  for (int64_t i = 0; i < a->dilation.n; i++)
    if (a->dilation.p[i] != 1) return false;
  return em_dtype_is_float(input->dtype) && input->dtype != EM_F64;
}
static em_status transposed_sizes(const em_tensor *input, const em_tensor *weight, const conv_args *a, int64_t *sizes) {
  const int space = weight->ndim - 2;
  bool small = false;
  const int64_t least = by_library(input, a) ? 0 : 1;  // PyTorch's own kernel makes no empty results, oneDNN does
  for (int d = 0; d < space; d++) {
    const int64_t pad = em_conv_at(a->padding, d), more = em_conv_at(a->output_padding, d);
    int64_t full, span, twice;
    if (__builtin_mul_overflow(input->sizes[2 + d] - 1, em_conv_at(a->stride, d), &full) ||
        !span_of(em_conv_at(a->dilation, d), weight->sizes[2 + d], &span) || __builtin_add_overflow(full, span, &full) ||
        __builtin_add_overflow(pad, pad, &twice) || __builtin_sub_overflow(full, twice, &full) ||
        __builtin_add_overflow(full, more, &full))
      return fail_sum();
    sizes[2 + d] = full;
    small = small || full < least;
  }
  if (small) {
    char in[128], out[128];
    format_product(input->sizes + 2, space, in, sizeof in);
    format_product(sizes + 2, space, out, sizeof out);
    return em_fail(
        EM_ERR_RUNTIME,
        "Given input size per channel: (%s). Calculated output size per channel: (%s). Output size is too small", in,
        out);
  }
  return EM_OK;
}
// output_padding says which of the sizes that a plain convolution would map to one: it can't be more than a stride apart.
static em_status check_output_padding(const conv_args *a, int space) {
  static const char *const names[3][3] = {{"height", "width", ""}, {"height", "width", ""}, {"depth", "height", "width"}};
  char text[512];
  size_t at = 0;
  bool bad = false;
  const em_ints lists[3] = {a->output_padding, a->stride, a->dilation};
  const char *const what[3] = {"output_padding", "stride", "dilation"};
  for (int d = 0; d < space; d++) {
    const int64_t more = em_conv_at(a->output_padding, d);
    bad = bad || (more >= em_conv_at(a->stride, d) && more >= em_conv_at(a->dilation, d));
  }
  if (!bad) return EM_OK;
  const int shown = space == 1 ? 2 : space;  // PyTorch's kernel for one dim is that for two
  text[0] = 0;
  for (int l = 0; l < 3; l++)
    for (int d = 0; d < shown && at < sizeof text; d++) {
      const int64_t none = l == 0 ? 0 : 1, v = space == 1 ? (d == 0 ? none : em_conv_at(lists[l], 0)) : em_conv_at(lists[l], d);
      at += (size_t)snprintf(text + at, sizeof text - at, " %s_%s: %lld", what[l], names[space - 1][d], (long long)v);
    }
  return em_fail(EM_ERR_RUNTIME, "output padding must be smaller than either stride or dilation, but got%s", text);
}

static em_status result_sizes(const em_tensor *input, const em_tensor *weight, const em_tensor *bias, const conv_args *a, int64_t *sizes) {
  const int space = weight->ndim - 2;
  EM_PASS(check_numbers(weight, a));
  EM_PASS(check_channels(input, weight, bias, a));
  sizes[0] = input->sizes[0];
  sizes[1] = a->transposed ? weight->sizes[1] * a->groups : weight->sizes[0];
  if (!a->transposed) EM_PASS(plain_sizes(input, weight, a, sizes));
  EM_PASS(check_dtypes(input, weight, bias, a));
  bool no_kernel = space > EM_CONV_SPACE || (a->transposed && sizes[1] == 0);
  for (int d = 0; d < space; d++) no_kernel = no_kernel || weight->sizes[2 + d] == 0;
  if (no_kernel)
    return em_fail(EM_ERR_RUNTIME, "could not create a primitive descriptor for the %s forward propagation primitive. It takes 1 to 3 "
                   "dimensions of space and kernels that are not empty", a->transposed ? "deconvolution" : "convolution");
  if (input->numel == 0 && input->sizes[0] != 0 && input->sizes[1] != 0) {
    char x[256];
    return em_fail(EM_ERR_RUNTIME, "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                   em_shape_format(input->ndim, input->sizes, x, sizeof x));
  }
  if (!a->transposed) {
    if (input->sizes[1] == 0) sizes[1] = 0;  // PyTorch's answer when there is nothing to sum
    return EM_OK;
  }
  EM_PASS(check_output_padding(a, space));
  return transposed_sizes(input, weight, a, sizes);
}

static void set_layout(em_plan *p, int i, const em_tensor *input, const em_tensor *weight, const conv_args *a) {
  em_plan_output *o = &p->out[i];
  if (input->numel == 0 || !em_conv_channels_last(input, weight)) return;
  if (a->transposed && input->ndim == 5 && !by_library(input, a)) return;
  o->strided = true;
  em_priv_channels_last_strides(o->ndim, o->sizes, o->strides);
}
em_status check_convolution(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding, em_ints dilation,
                            bool transposed, em_ints output_padding, int64_t groups, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  const conv_args a = {stride, padding, dilation, output_padding, transposed, groups};
  EM_PASS(result_sizes(input, weight, bias, &a, sizes));
  em_plan_output_set(p, input->dtype, input->ndim, sizes, input->device);
  set_layout(p, 0, input, weight, &a);
  return EM_OK;
}

// Plans the three gradients, wanted or not.
em_status em_priv_check_convolution_backward(em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints stride, em_ints padding,
                                             em_ints dilation, bool transposed, em_ints output_padding, int64_t groups, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  const conv_args a = {stride, padding, dilation, output_padding, transposed, groups};
  EM_PASS(result_sizes(input, weight, NULL, &a, sizes));
  if (!em_shape_equal(grad_output->ndim, grad_output->sizes, input->ndim, sizes)) {
    char got[256], want[256];
    return em_fail(EM_ERR_RUNTIME, "Expected grad_output of size %s, but got %s", em_shape_format(input->ndim, sizes, want, sizeof want),
                   em_shape_format(grad_output->ndim, grad_output->sizes, got, sizeof got));
  }
  if (grad_output->dtype != input->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(input->dtype),
                   em_dtype_scalar_name(grad_output->dtype));
  if (!em_dtype_is_float(input->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"slow_conv2d_cpu_grad_input\" not implemented for '%s'", em_dtype_scalar_name(input->dtype));
  em_plan_output_set(p, input->dtype, input->ndim, input->sizes, input->device);
  em_plan_output_set(p, input->dtype, weight->ndim, weight->sizes, input->device);
  em_plan_output_set(p, input->dtype, 1, &sizes[1], input->device);
  set_layout(p, 0, input, weight, &a);
  set_layout(p, 1, input, weight, &a);
  return EM_OK;
}
em_status n_meta_convolution_backward(uint64_t ks, em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints bias_sizes,
                                      em_ints stride, em_ints padding, em_ints dilation, bool transposed, em_ints output_padding,
                                      int64_t groups, em_bools output_mask, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  em_plan p;
  em_tensor **outs[3] = {out0, out1, out2};
  (void)ks;
  (void)bias_sizes;
  em_plan_init(&p);
  EM_PASS(em_priv_check_convolution_backward(grad_output, input, weight, stride, padding, dilation, transposed,
                                             output_padding, groups, &p));
  for (int i = 0; i < 3; i++) *outs[i] = NULL;
  for (int i = 0; i < 3; i++)
    if (output_mask.p[i]) EM_PASS(em_plan_alloc(&p, i, true, outs[i]));
  return EM_OK;
}

// --- complex: (a + bi)(c + di) with three real products

typedef struct parts { em_tensor *re, *im, *sum; } parts;
static void parts_release(parts *p) {
  em_tensor_release(p->re);
  em_tensor_release(p->im);
  em_tensor_release(p->sum);
}
static em_status split_complex(em_tensor *t, parts *p) {
  em_status st = EM_OK;
  em_tensor *resolved = NULL, *pairs = NULL;
  EM_TRY(em_call_resolve_conj(t, &resolved));
  EM_TRY(em_call_view_as_real(resolved, &pairs));
  EM_TRY(em_call_select_int(pairs, -1, 0, &p->re));
  EM_TRY(em_call_select_int(pairs, -1, 1, &p->im));
  EM_TRY(em_call_add_Tensor(p->re, p->im, em_scalar_int(1), &p->sum));
fail:
  em_tensor_release(resolved);
  em_tensor_release(pairs);
  return st;
}
typedef em_status (*real_conv)(em_tensor *input, em_tensor *weight, em_tensor *bias, const conv_args *a, em_tensor **out);

static em_status complex_convolution(real_conv conv, em_tensor *input, em_tensor *weight, em_tensor *bias, const conv_args *args,
                                     em_tensor **out) {
  em_status st = EM_OK;
  parts x = {NULL, NULL, NULL}, w = x, b0 = x;
  em_tensor *a = NULL, *b = NULL, *c = NULL, *re = NULL, *ca = NULL, *im = NULL, *turned = NULL;
  if (input->dtype != weight->dtype || (bias != NULL && bias->dtype != input->dtype)) {
    const em_tensor *other = input->dtype != weight->dtype ? weight : bias;
    char name[64];
    snprintf(name, sizeof name, em_dtype_is_complex(other->dtype) ? "CPU%sType" : "torch.%sTensor", em_dtype_scalar_name(other->dtype));
    return em_fail(EM_ERR_RUNTIME, "Input type (CPU%sType) and %s type (%s) should be the same", em_dtype_scalar_name(input->dtype),
                   other == weight ? "weight" : "bias", name);
  }
  EM_TRY(split_complex(input, &x));
  EM_TRY(split_complex(weight, &w));
  if (bias != NULL) EM_TRY(split_complex(bias, &b0));
  EM_TRY(conv(x.re, w.re, b0.re, args, &a));
  EM_TRY(conv(x.im, w.im, NULL, args, &b));
  EM_TRY(conv(x.sum, w.sum, b0.sum, args, &c));
  EM_TRY(em_call_sub_Tensor(a, b, em_scalar_int(1), &re));
  EM_TRY(em_call_sub_Tensor(c, a, em_scalar_int(1), &ca));
  EM_TRY(em_call_sub_Tensor(ca, b, em_scalar_int(1), &im));
  EM_TRY(em_call_mul_Scalar(im, em_scalar_complex(0, 1), &turned));
  EM_TRY(em_call_add_Tensor(re, turned, em_scalar_int(1), out));
fail:
  parts_release(&x);
  parts_release(&w);
  parts_release(&b0);
  em_tensor *const owned[] = {a, b, c, re, ca, im, turned};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) em_tensor_release(owned[i]);
  return st;
}

// --- padding given as a word

static em_status real_same(em_tensor *input, em_tensor *weight, em_tensor *bias, const conv_args *a, em_tensor **out) {
  em_status st = EM_OK;
  int64_t before[EM_MAX_DIMS], after[2 * EM_MAX_DIMS];
  static const int64_t zero = 0;
  const int space = weight->ndim - 2;
  bool even = true;
  em_tensor *padded = NULL;
  if (space <= 0) return em_fail(EM_ERR_RUNTIME, "weight should have at least three dimensions");
  if (a->stride.n != 1 && a->stride.n != space) return em_fail(EM_ERR_RUNTIME, "stride cannot broadcast to %d dimensions", space);
  if (a->dilation.n != 1 && a->dilation.n != space) return em_fail(EM_ERR_RUNTIME, "dilation cannot broadcast to %d dimensions", space);
  for (int d = 0; d < space; d++) {
    int64_t span;
    if (em_conv_at(a->stride, d) != 1) return em_fail(EM_ERR_RUNTIME, "padding='same' is not supported for strided convolutions");
    if (!span_of(em_conv_at(a->dilation, d), weight->sizes[2 + d], &span)) return fail_sum();
    before[d] = (span - 1) / 2;
    after[2 * (space - 1 - d)] = 0;  // last dim first, before and after
    after[2 * (space - 1 - d) + 1] = span - 1 - 2 * before[d];
    even = even && span - 1 == 2 * before[d];
  }
  if (!even) {
    static _Atomic int told;
    if (atomic_exchange(&told, 1) == 0)
      EM_PASS(em_warn("Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy "
                      "of the input be created"));
    EM_PASS(em_call_constant_pad_nd(input, (em_ints){after, 2 * space}, em_scalar_int(0), &padded));
  }
  st = em_call_convolution(padded != NULL ? padded : input, weight, bias, a->stride, (em_ints){before, space}, a->dilation, false,
                           (em_ints){&zero, 1}, a->groups, out);
  em_tensor_release(padded);
  return st;
}
static em_status real_given(em_tensor *input, em_tensor *weight, em_tensor *bias, const conv_args *a, em_tensor **out) {
  return em_call_convolution(input, weight, bias, a->stride, a->padding, a->dilation, a->transposed, a->output_padding, a->groups, out);
}
static em_status choose_padding(const char *padding, conv_args *a, real_conv *conv) {
  static const int64_t zero = 0;
  a->padding = (em_ints){&zero, 1};
  *conv = real_given;
  if (strcmp(padding, "same") == 0) *conv = real_same;
  else if (strcmp(padding, "valid") != 0) return em_fail(EM_ERR_RUNTIME, "Invalid padding string: '%s'", padding);
  return EM_OK;
}

em_status c__convolution_mode(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, const char *padding, em_ints dilation,
                              int64_t groups, em_tensor **out) {
  real_conv conv;
  static const int64_t zero = 0;
  conv_args a = {stride, {NULL, 0}, dilation, {&zero, 1}, false, groups};
  EM_PASS(choose_padding(padding, &a, &conv));
  return conv(input, weight, bias, &a, out);
}
em_status c__convolution(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding, em_ints dilation,
                         bool transposed, em_ints output_padding, int64_t groups, bool benchmark, bool deterministic, bool cudnn_enabled,
                         bool allow_tf32, em_tensor **out) {
  (void)benchmark;
  (void)deterministic;
  (void)cudnn_enabled;
  (void)allow_tf32;
  return em_call_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out);
}
em_status c__convolution_deprecated(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding, em_ints dilation,
                                    bool transposed, em_ints output_padding, int64_t groups, bool benchmark, bool deterministic,
                                    bool cudnn_enabled, em_tensor **out) {
  return c__convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark, deterministic,
                        cudnn_enabled, true, out);
}

// --- conv1d ... conv_transpose3d

static em_status batched(real_conv conv, em_tensor *input, em_tensor *weight, em_tensor *bias, const conv_args *a, em_tensor **out) {
  if (em_dtype_is_complex(input->dtype)) return complex_convolution(conv, input, weight, bias, a, out);
  return conv(input, weight, bias, a, out);
}
static em_status conv_nd(const char *name, int space, real_conv conv, em_tensor *input, em_tensor *weight, em_tensor *bias,
                         const conv_args *a, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *one = NULL, *made = NULL;
  if (bias != NULL && bias->dtype != input->dtype && !em_dtype_is_complex(input->dtype))
    return em_fail(EM_ERR_RUNTIME, "Input type (%s) and bias type (%s) should be the same", em_dtype_type_name(input->dtype),
                   em_dtype_type_name(bias->dtype));
  if (EM_LIKELY(input->ndim == space + 2)) return batched(conv, input, weight, bias, a, out);
  if (input->ndim != space + 1) {
    char x[256];
    return em_fail(EM_ERR_RUNTIME, "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s", space + 1, space + 2,
                   name, em_shape_format(input->ndim, input->sizes, x, sizeof x));
  }
  EM_TRY(em_call_unsqueeze(input, 0, &one));
  EM_TRY(batched(conv, one, weight, bias, a, &made));
  EM_TRY(em_call_squeeze_dim(made, 0, out));
fail:
  em_tensor_release(one);
  em_tensor_release(made);
  return st;
}

#define PLAIN(nd, space)                                                                                                                  \
  em_status c_conv##nd(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding, em_ints dilation,           \
                       int64_t groups, em_tensor **out) {                                                                                 \
    static const int64_t zero = 0;                                                                                                        \
    const conv_args a = {stride, padding, dilation, {&zero, 1}, false, groups};                                                           \
    return conv_nd("conv" #nd, space, real_given, input, weight, bias, &a, out);                                                          \
  }                                                                                                                                       \
  em_status c_conv##nd##_padding(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, const char *padding,               \
                                 em_ints dilation, int64_t groups, em_tensor **out) {                                                     \
    real_conv conv;                                                                                                                       \
    static const int64_t zero = 0;                                                                                                        \
    conv_args a = {stride, {NULL, 0}, dilation, {&zero, 1}, false, groups};                                                               \
    EM_PASS(choose_padding(padding, &a, &conv));                                                                                          \
    return conv_nd("conv" #nd, space, conv, input, weight, bias, &a, out);                                                                \
  }                                                                                                                                       \
  em_status c_conv_transpose##nd(em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding,                   \
                                 em_ints output_padding, int64_t groups, em_ints dilation, em_tensor **out) {                             \
    const conv_args a = {stride, padding, dilation, output_padding, true, groups};                                                        \
    return conv_nd("conv_transpose" #nd, space, real_given, input, weight, bias, &a, out);                                                \
  }
PLAIN(1d, 1)
PLAIN(2d, 2)
PLAIN(3d, 3)

em_status c_conv_tbc(em_tensor *self, em_tensor *weight, em_tensor *bias, int64_t pad, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *w = NULL, *made = NULL, *turned = NULL;
  static const int64_t one = 1, zero = 0;
  const conv_args a = {{&one, 1}, {&pad, 1}, {&one, 1}, {&zero, 1}, false, 1};
  if (self->ndim != 3) return em_fail(EM_ERR_RUNTIME, "Input must have 3 dims: time, batch, in_channel");
  if (weight->ndim != 3) return em_fail(EM_ERR_RUNTIME, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  if (bias->ndim != 1) return em_fail(EM_ERR_RUNTIME, "Bias must be 1-D");
  if (self->sizes[2] != weight->sizes[1])
    return em_fail(EM_ERR_RUNTIME, "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
  if (weight->sizes[2] != bias->sizes[0])
    return em_fail(EM_ERR_RUNTIME, "Bias size must equal dim 2 in the weight tensor (output channels).");
  EM_TRY(em_call_permute(self, EM_INTS(1, 2, 0), &x));
  EM_TRY(em_call_permute(weight, EM_INTS(2, 1, 0), &w));
  EM_TRY(batched(real_given, x, w, bias, &a, &made));
  EM_TRY(em_call_permute(made, EM_INTS(2, 0, 1), &turned));
  EM_TRY(em_call_contiguous(turned, EM_FORMAT_CONTIGUOUS, out));
fail:
  em_tensor_release(x);
  em_tensor_release(w);
  em_tensor_release(made);
  em_tensor_release(turned);
  return st;
}
