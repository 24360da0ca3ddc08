// padding.c: checks of constant, reflection and replication padding; circular padding, which is made of slices; F.pad.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
static int64_t more(int64_t v) { return v > 0 ? v : 0; }
static int64_t less(int64_t v) { return v < 0 ? -v : 0; }
// Paddings of dim d: lists begin with the last dim.
static void pads_of(em_ints pad, int ndim, int d, int64_t *left, int64_t *right) {
  const int64_t k = 2 * (int64_t)(ndim - 1 - d);
  *left = k < pad.n ? pad.p[k] : 0;
  *right = k < pad.n ? pad.p[k + 1] : 0;
}

// --- constant
em_status check_constant_pad_nd(em_tensor *self, em_ints pad, em_scalar value, em_plan *p) {
  (void)value;
  if (pad.n % 2 != 0)
    return em_fail(EM_ERR_RUNTIME, "Length of pad must be even but instead it equals %lld", (long long)pad.n);
  if (pad.n > 2 * self->ndim)
    return em_fail(EM_ERR_RUNTIME,
                   "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
                   "%lldwhile the input has %ddimensions.",
                   (long long)pad.n, self->ndim);
  int64_t sizes[EM_MAX_DIMS] = {0}, cut[EM_MAX_DIMS] = {0};
  bool grows = false;
  for (int d = 0; d < self->ndim; d++) {
    int64_t left, right;
    pads_of(pad, self->ndim, d, &left, &right);
    if (left < -self->sizes[d] || right < -(self->sizes[d] - less(left)))
      return em_fail(EM_ERR_RUNTIME, "narrow(): length must be non-negative.");
    cut[d] = self->sizes[d] - less(left) - less(right);
    grows |= left > 0 || right > 0;
    if (__builtin_add_overflow(self->sizes[d], left, &sizes[d]) || __builtin_add_overflow(sizes[d], right, &sizes[d]))
      return em_fail(EM_ERR_RUNTIME,
                     "The input size %lld, plus negative padding %lld and %lld resulted in a negative output size, "
                     "which is invalid. Check dimension %d of your input.",
                     (long long)self->sizes[d], (long long)left, (long long)right, d);
  }
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  if (grows) {
    if (em_shape_suggested_format(self) < EM_FORMAT_CHANNELS_LAST) return EM_OK;
    p->out[0].strided = true;
    em_priv_channels_last_strides(self->ndim, sizes, p->out[0].strides);
    return EM_OK;
  }
  em_tensor left = *self;  // nothing but a smaller window: laid out as its clone would be
  left.sizes = cut;
  EM_PASS(em_tensor_refresh(&left));
  p->out[0].strided = true;
  return em_priv_format_strides(&left, EM_FORMAT_PRESERVE, p->out[0].strides);
}

// --- reflection and replication
static em_status check_valid(int spatial, const em_tensor *self) {
  bool ok = self->ndim == spatial + 1 || self->ndim == spatial + 2;
  for (int d = self->ndim == spatial + 2 ? 1 : 0; ok && d < self->ndim; d++) ok = self->sizes[d] != 0;
  if (ok) return EM_OK;
  char a[256];
  return em_fail(EM_ERR_RUNTIME,
                 "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                 "input, but got: %s",
                 spatial + 1, spatial + 2, text(self, a, sizeof a));
}
static em_status check_reach(const em_tensor *self, int d, int64_t left, int64_t right) {
  if (left < self->sizes[d] && right < self->sizes[d]) return EM_OK;
  char a[256];
  return em_fail(EM_ERR_RUNTIME,
                 "Argument #%d: Padding size should be less than the corresponding input dimension, but got: padding "
                 "(%lld, %lld) at dimension %d of input %s",
                 4 + 2 * (self->ndim - 1 - d), (long long)left, (long long)right, d, text(self, a, sizeof a));
}
static em_status padded_sizes(int spatial, const em_tensor *self, em_ints pad, int64_t *sizes) {
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  char a[256];
  for (int d = self->ndim - spatial; d < self->ndim; d++) {
    int64_t left, right;
    pads_of(pad, self->ndim, d, &left, &right);
    if (__builtin_add_overflow(self->sizes[d], left, &sizes[d]) || __builtin_add_overflow(sizes[d], right, &sizes[d]))
      return em_fail(EM_ERR_RUNTIME, "numel: integer multiplication overflow");
  }
  if (spatial == 1 && sizes[self->ndim - 1] < 1)
    return em_fail(EM_ERR_RUNTIME, "input (W: %lld) is too small. Calculated output W: %lld",
                   (long long)self->sizes[self->ndim - 1], (long long)sizes[self->ndim - 1]);
  for (int d = self->ndim - spatial; d < self->ndim; d++)
    if (sizes[d] < 0)
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes[d],
                     em_shape_format(self->ndim, sizes, a, sizeof a));
  return EM_OK;
}
typedef struct padding { const char *name, *backward; int spatial; bool reflects; } padding;
static const padding kinds[] = {{"reflection_pad1d", "reflection_pad1d_backward", 1, true},
                                {"reflection_pad2d", "reflection_pad2d_backward", 2, true},
                                {"reflection_pad3d", "reflection_pad3d_backward", 3, true},
                                {"replication_pad1d", "replication_pad1d_backward", 1, false},
                                {"replication_pad2d", "replication_pad2d_backward", 2, false},
                                {"replication_pad3d", "replication_pad3d_backward", 3, false}};
static const padding *kind_of(int spatial, bool reflects) { return &kinds[spatial - 1 + (reflects ? 0 : 3)]; }

static em_status check_arguments(const padding *k, em_tensor *self, em_ints pad, int64_t *sizes) {
  if (pad.n != 2 * k->spatial) {
    if (!k->reflects) return em_fail(EM_ERR_RUNTIME, "padding size is expected to be %d", 2 * k->spatial);
    return em_fail(EM_ERR_RUNTIME, "padding size is expected to be %d, but got: %lld", 2 * k->spatial,
                   (long long)pad.n);
  }
  EM_PASS(check_valid(k->spatial, self));
  if (k->reflects)
    for (int d = self->ndim - 1; d >= self->ndim - k->spatial; d--) {
      int64_t left, right;
      pads_of(pad, self->ndim, d, &left, &right);
      EM_PASS(check_reach(self, d, left, right));
    }
  return padded_sizes(k->spatial, self, pad, sizes);
}
// The output, laid out as self is; room for a position for each of the `padded` sizes.
static em_status plan_padding(const padding *k, em_tensor *self, const int64_t *sizes, const int64_t *padded,
                              em_plan *p) {
  EM_PASS(em_plan_workspace_of(p, 3, sizeof(int64_t)));
  for (int d = self->ndim - k->spatial; d < self->ndim; d++) EM_PASS(em_plan_workspace_of(p, padded[d], sizeof(int64_t)));
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  if (self->ndim != k->spatial + 2 || em_shape_suggested_format(self) < EM_FORMAT_CHANNELS_LAST) return EM_OK;
  p->out[0].strided = true;
  em_priv_channels_last_strides(self->ndim, sizes, p->out[0].strides);
  return EM_OK;
}
static em_status not_implemented(const char *kernel, const em_tensor *t) {
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(t->dtype));
}
static em_status check_padding(const padding *k, em_tensor *self, em_ints pad, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_arguments(k, self, pad, sizes));
  if (self->dtype == EM_BOOL) return not_implemented(k->name, self);
  return plan_padding(k, self, sizes, sizes, p);
}
static em_status check_padding_backward(const padding *k, em_tensor *grad, em_tensor *self, em_ints pad, em_plan *p) {
  static const char *const names[] = {"width", "height", "depth"};
  int64_t sizes[EM_MAX_DIMS];
  EM_PASS(check_arguments(k, self, pad, sizes));
  const char *who = k->reflects && k->spatial != 2 ? "grad_output" : "gradOutput",
             *comma = !k->reflects && k->spatial == 1 ? "" : ",";
  char a[256];
  if (grad->ndim != self->ndim)
    return em_fail(EM_ERR_RUNTIME, "%s(): grad_output of shape %s does not fit the input", k->backward,
                   text(grad, a, sizeof a));
  for (int d = self->ndim - 1; d >= 0; d--)
    if (grad->sizes[d] != sizes[d])
      return em_fail(EM_ERR_RUNTIME, "%s %s unexpected. Expected: %lld%s Got: %lld", who,
                     d >= self->ndim - k->spatial ? names[self->ndim - 1 - d] : "size", (long long)sizes[d], comma,
                     (long long)grad->sizes[d]);
  if (em_dtype_is_integral(self->dtype)) return not_implemented(k->backward, self);
  if (grad->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(self->dtype),
                   em_dtype_scalar_name(grad->dtype));
  return plan_padding(k, self, self->sizes, sizes, p);
}
#define CHECKS(n)                                                                                             \
  em_status check_reflection_pad##n##d(em_tensor *self, em_ints pad, em_plan *p) {                            \
    return check_padding(kind_of(n, true), self, pad, p);                                                     \
  }                                                                                                           \
  em_status check_replication_pad##n##d(em_tensor *self, em_ints pad, em_plan *p) {                           \
    return check_padding(kind_of(n, false), self, pad, p);                                                    \
  }                                                                                                           \
  em_status check_reflection_pad##n##d_backward(em_tensor *grad, em_tensor *self, em_ints pad, em_plan *p) {  \
    return check_padding_backward(kind_of(n, true), grad, self, pad, p);                                      \
  }                                                                                                           \
  em_status check_replication_pad##n##d_backward(em_tensor *grad, em_tensor *self, em_ints pad, em_plan *p) { \
    return check_padding_backward(kind_of(n, false), grad, self, pad, p);                                     \
  }
CHECKS(1)
CHECKS(2)
CHECKS(3)

// --- circular: what goes over one edge comes back at the other
em_status check_pad_circular(em_tensor *self, em_ints pad, em_plan *p) {
  if (pad.n % 2 != 0 || pad.n > 2 * self->ndim)
    return em_fail(EM_ERR_RUNTIME, "Padding length should be even and at most twice the input's dimensions");
  int64_t sizes[EM_MAX_DIMS] = {0};
  for (int d = 0; d < self->ndim; d++) {
    int64_t left, right;
    pads_of(pad, self->ndim, d, &left, &right);
    if (left > self->sizes[d] || right > self->sizes[d])
      return em_fail(EM_ERR_RUNTIME, "Padding value causes wrapping around more than once.");
    if (left < -self->sizes[d] || right < -self->sizes[d] || self->sizes[d] + left + right < 0)
      return em_fail(EM_ERR_RUNTIME, "Negative padding value is resulting in an empty dimension");
    const int64_t kept = self->sizes[d] - less(left) - less(right);
    if (kept < 0 || more(left) > kept || more(right) > kept)
      return em_fail(EM_ERR_RUNTIME, "Padding value causes wrapping around more than once.");
    sizes[d] = self->sizes[d] + left + right;
  }
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  return EM_OK;
}

// --- F.pad
enum { REFLECT, REPLICATE, CIRCULAR, CONSTANT };
static const char *const modes[] = {"reflect", "replicate", "circular", "constant"};

em_status c_pad_enum(em_tensor *self, em_ints pad, int64_t mode, em_opt_double value, em_tensor **out) {
  if (pad.n % 2 != 0) return em_fail(EM_ERR_RUNTIME, "Padding length must be divisible by 2");
  if (pad.n > 2 * self->ndim)
    return em_fail(EM_ERR_RUNTIME,
                   "Padding length should be less than or equal to two times the input dimension but got padding "
                   "length %lld and input of dimension %d",
                   (long long)pad.n, self->ndim);
  if (mode == CONSTANT) return em_call_constant_pad_nd(self, pad, em_scalar_double(value.has ? value.v : 0), out);
  if (mode < 0 || mode > CONSTANT) return em_fail(EM_ERR_RUNTIME, "Unrecognised padding mode %lld", (long long)mode);
  if (value.has && value.v != 0)
    return em_fail(EM_ERR_RUNTIME, "Padding mode \"%s\" doesn't take in value argument", modes[mode]);
  const int spatial = (int)pad.n / 2;
  if (spatial < 1 || spatial > 3 || (self->ndim != spatial + 1 && self->ndim != spatial + 2))
    return em_fail(EM_ERR_NOT_IMPLEMENTED,
                   "Padding size %lld is not supported for %dD input tensor.\n"
                   "Supported combinations for non-constant padding:\n"
                   "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
                   "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                   "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                   (long long)pad.n, self->ndim);
  if (mode == CIRCULAR) return em_call__pad_circular(self, pad, out);
  switch (spatial) {
    case 1: return mode == REFLECT ? em_call_reflection_pad1d(self, pad, out) : em_call_replication_pad1d(self, pad, out);
    case 2: return mode == REFLECT ? em_call_reflection_pad2d(self, pad, out) : em_call_replication_pad2d(self, pad, out);
    default: return mode == REFLECT ? em_call_reflection_pad3d(self, pad, out) : em_call_replication_pad3d(self, pad, out);
  }
}
em_status c_pad(em_tensor *self, em_ints pad, const char *mode, em_opt_double value, em_tensor **out) {
  for (int k = 0; k <= CONSTANT; k++)
    if (strcmp(mode, modes[k]) == 0) return c_pad_enum(self, pad, k, value, out);
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "Unrecognised padding mode %s", mode);
}
