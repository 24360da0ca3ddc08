// init.c: ember/init.h.
#include "api.h"
#include <math.h>
#include <string.h>
#include "../autograd/node.h"
#include "gen_ops.h"
#include <ember/init.h>  // after the library's own headers, whose inline forms win
#include <ember/scope.h>

enum { MOST_DRAWS = 100000 };  // of a cut normal: farther out than chance gets in these, quantiles are used

// fan in and fan out: channels times the elements of a kernel.
static em_status fans(const em_tensor *t, double *in, double *out) {
  if (t->ndim < 2)
    return em_fail(EM_ERR_VALUE, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  double field = 1;
  for (int d = 2; d < t->ndim; d++) field *= (double)t->sizes[d];
  *in = (double)t->sizes[1] * field;
  *out = (double)t->sizes[0] * field;
  return EM_OK;
}

static em_status uniform(em_tensor *t, double low, double high, em_generator *g) {
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call_uniform_(t, low, high, g);
  em_guard_restore(guard);
  return st;
}
static em_status normal(em_tensor *t, double mean, double std, em_generator *g) {
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call_normal_(t, mean, std, g);
  em_guard_restore(guard);
  return st;
}

em_tensor *em_init_uniform_(em_tensor *t, double low, double high, em_generator *g) {
  return em_scope_note(t == NULL ? em_fail_null("em_init_uniform_", "tensor") : uniform(t, low, high, g), t);
}
em_tensor *em_init_normal_(em_tensor *t, double mean, double std, em_generator *g) {
  return em_scope_note(t == NULL ? em_fail_null("em_init_normal_", "tensor") : normal(t, mean, std, g), t);
}
em_tensor *em_init_constant_(em_tensor *t, double value) {
  if (t == NULL) return em_scope_note(em_fail_null("em_init_constant_", "tensor"), NULL);
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call_fill__Scalar(t, em_scalar_double(value));
  em_guard_restore(guard);
  return em_scope_note(st, t);
}

// One more draw: *done if every element lies inside, else those outside are replaced by a draw of the whole, as in PyTorch.
static em_status redraw(em_tensor *t, double mean, double std, double low, double high, em_generator *g, bool *done) {
  em_status st = EM_OK;
  em_tensor *below = NULL, *above = NULL, *outside = NULL, *any = NULL, *drawn = NULL, *mixed = NULL;
  em_scalar some;
  EM_TRY(em_call_lt_Scalar(t, em_scalar_double(low), &below));
  EM_TRY(em_call_gt_Scalar(t, em_scalar_double(high), &above));
  EM_TRY(em_call_logical_or(below, above, &outside));
  EM_TRY(em_call_any(outside, &any));
  EM_TRY(em_tensor_item(any, &some));
  *done = some.i == 0;
  if (*done) goto fail;
  EM_TRY(em_call_empty_like(t, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &drawn));
  EM_TRY(em_call_normal_(drawn, mean, std, g));
  EM_TRY(em_call_where_self(outside, drawn, t, &mixed));
  EM_TRY(em_call_copy_(t, mixed, false));
fail:
  em_tensor_release(below);
  em_tensor_release(above);
  em_tensor_release(outside);
  em_tensor_release(any);
  em_tensor_release(drawn);
  em_tensor_release(mixed);
  return st;
}
static em_status trunc_normal(em_tensor *t, double mean, double std, double low, double high, em_generator *g) {
  bool done = false;
  if (mean < low - 2 * std || mean > high + 2 * std)
    EM_PASS(em_warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."));
  EM_PASS(em_call_normal_(t, mean, std, g));
  for (int i = 0; i < MOST_DRAWS && !done; i++) EM_PASS(redraw(t, mean, std, low, high, g, &done));
  if (done) return EM_OK;
  const double root = std * sqrt(2.0);
  EM_PASS(em_call_uniform_(t, erf((low - mean) / root), erf((high - mean) / root), g));
  EM_PASS(em_call_erfinv_(t));
  EM_PASS(em_call_mul__Scalar(t, em_scalar_double(root)));
  EM_PASS(em_call_add__Scalar(t, em_scalar_double(mean), em_scalar_int(1)));
  return em_call_clamp_(t, em_scalar_double(low), em_scalar_double(high));
}
em_tensor *em_init_trunc_normal_(em_tensor *t, double mean, double std, double low, double high, em_generator *g) {
  if (t == NULL) return em_scope_note(em_fail_null("em_init_trunc_normal_", "tensor"), NULL);
  if (!(low <= high) || !(std >= 0))
    return em_scope_note(em_fail(EM_ERR_VALUE, "em_init_trunc_normal_(): std must not be negative and low not above high, got "
                                 "%g, %g and %g", std, low, high), NULL);
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = t->numel == 0 ? EM_OK : trunc_normal(t, mean, std, low, high, g);
  em_guard_restore(guard);
  return em_scope_note(st, t);
}

static em_status xavier(const char *who, em_tensor *t, double gain, double *std) {
  double in, out;
  if (t == NULL) return em_fail_null(who, "tensor");
  EM_PASS(fans(t, &in, &out));
  *std = gain * sqrt(2.0 / (in + out));
  return EM_OK;
}
em_tensor *em_init_xavier_uniform_(em_tensor *t, double gain, em_generator *g) {
  double std = 0;
  em_status st = xavier("em_init_xavier_uniform_", t, gain, &std);
  return em_scope_note(st == EM_OK ? uniform(t, -sqrt(3.0) * std, sqrt(3.0) * std, g) : st, t);
}
em_tensor *em_init_xavier_normal_(em_tensor *t, double gain, em_generator *g) {
  double std = 0;
  em_status st = xavier("em_init_xavier_normal_", t, gain, &std);
  return em_scope_note(st == EM_OK ? normal(t, 0, std, g) : st, t);
}

static em_status kaiming(const char *who, em_tensor *t, double gain, em_fan fan, double *std) {
  double in, out;
  if (t == NULL) return em_fail_null(who, "tensor");
  if (fan != EM_FAN_IN && fan != EM_FAN_OUT) return em_fail(EM_ERR_VALUE, "%s(): %d is no fan", who, (int)fan);
  *std = 0;
  if (t->numel == 0) return em_warn("Initializing zero-element tensors is a no-op");
  EM_PASS(fans(t, &in, &out));
  *std = gain / sqrt(fan == EM_FAN_IN ? in : out);
  return EM_OK;
}
em_tensor *em_init_kaiming_uniform_(em_tensor *t, double gain, em_fan fan, em_generator *g) {
  double std = 0;
  em_status st = kaiming("em_init_kaiming_uniform_", t, gain, fan, &std);
  return em_scope_note(st == EM_OK ? uniform(t, -sqrt(3.0) * std, sqrt(3.0) * std, g) : st, t);
}
em_tensor *em_init_kaiming_normal_(em_tensor *t, double gain, em_fan fan, em_generator *g) {
  double std = 0;
  em_status st = kaiming("em_init_kaiming_normal_", t, gain, fan, &std);
  return em_scope_note(st == EM_OK ? normal(t, 0, std, g) : st, t);
}

double em_init_gain(const char *nonlinearity, double param) {
  static const char *const unit[] = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                                     "conv_transpose3d", "sigmoid"};
  const char *name = nonlinearity == NULL ? "NULL" : nonlinearity;
  for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
    if (strcmp(name, unit[i]) == 0) return 1;
  if (strcmp(name, "tanh") == 0) return 5.0 / 3;
  if (strcmp(name, "relu") == 0) return sqrt(2.0);
  if (strcmp(name, "leaky_relu") == 0) return sqrt(2.0 / (1 + param * param));
  if (strcmp(name, "selu") == 0) return 3.0 / 4;
  em_fail(EM_ERR_VALUE, "Unsupported nonlinearity %s", name);
  return NAN;
}
