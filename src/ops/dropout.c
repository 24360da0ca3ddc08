// dropout.c: dropout of whole features, and alpha dropout, which keeps mean and variance of a SELU network.
#include <math.h>
#include "gen_ops.h"

typedef struct rule { bool feature, alpha; } rule;
static em_status check_p(double p) {
  if (p >= 0 && p <= 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "dropout probability has to be between 0 and 1, but got %g", p);
}
// One number an element, or one a feature of each batch entry, drawn as PyTorch draws them.
static em_status draw(em_tensor *input, bool feature, double p, em_tensor **out) {
  em_tensor *t = NULL;
  if (!feature) {
    EM_PASS(em_call_empty_like(input, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t));
  } else {
    if (input->ndim < 2)
      return em_fail(EM_ERR_RUNTIME, "Feature dropout requires at least 2 dimensions in the input");
    int64_t sizes[EM_MAX_DIMS] = {input->sizes[0], input->sizes[1]};
    for (int d = 2; d < input->ndim; d++) sizes[d] = 1;
    EM_PASS(em_call_new_empty(input, (em_ints){sizes, input->ndim}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &t));
  }
  em_status st = em_call_bernoulli__float(t, 1 - p, NULL);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
// factor and shift with input * factor + shift as the result; shift NULL without alpha.
static em_status noise_of(em_tensor *input, rule r, double p, em_tensor **factor, em_tensor **shift) {
  em_status st = EM_OK;
  em_tensor *t = NULL, *s = NULL;
  EM_TRY(draw(input, r.feature, p, &t));
  if (!r.alpha) {
    EM_TRY(em_call_div__Scalar(t, em_scalar_double(1 - p)));
  } else {
    const double alpha = 1.7580993408473766, a = 1.0 / sqrt((alpha * alpha * p + 1) * (1 - p));
    EM_TRY(em_call_add_Scalar(t, em_scalar_int(-1), em_scalar_int(1), &s));
    EM_TRY(em_call_mul__Scalar(s, em_scalar_double(alpha * a)));
    EM_TRY(em_call_add__Scalar(s, em_scalar_double(alpha * a * p), em_scalar_int(1)));
    EM_TRY(em_call_mul__Scalar(t, em_scalar_double(a)));
  }
  *factor = t;
  *shift = s;
  return EM_OK;
fail:
  em_tensor_release(t);
  em_tensor_release(s);
  return st;
}
static em_status dropped(em_tensor *input, rule r, double p, bool train, em_tensor **out) {
  EM_PASS(check_p(p));
  if (p == 0 || !train || input->numel == 0) {
    *out = em_tensor_retain(input);
    return EM_OK;
  }
  em_status st = EM_OK;
  em_tensor *t = NULL, *s = NULL, *y = NULL;
  if (p == 1) {
    EM_TRY(em_call_new_zeros(input, (em_ints){NULL, 0}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &t));
    EM_TRY(em_call_mul_Tensor(input, t, out));
  } else {
    EM_TRY(noise_of(input, r, p, &t, &s));
    EM_TRY(em_call_mul_Tensor(input, t, &y));
    if (s != NULL) EM_TRY(em_call_add__Tensor(y, s, em_scalar_int(1)));
    *out = y;
    y = NULL;
  }
fail:
  em_tensor_release(t);
  em_tensor_release(s);
  em_tensor_release(y);
  return st;
}
static em_status dropped_in_place(em_tensor *self, rule r, double p, bool train) {
  EM_PASS(check_p(p));
  if (p == 0 || !train || self->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *t = NULL, *s = NULL;
  if (p == 1) {
    EM_TRY(em_call_new_zeros(self, (em_ints){NULL, 0}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &t));
    EM_TRY(em_call_mul__Tensor(self, t));
  } else {
    EM_TRY(noise_of(self, r, p, &t, &s));
    EM_TRY(em_call_mul__Tensor(self, t));
    if (s != NULL) EM_TRY(em_call_add__Tensor(self, s, em_scalar_int(1)));
  }
fail:
  em_tensor_release(t);
  em_tensor_release(s);
  return st;
}
em_status c_feature_dropout(em_tensor *input, double p, bool train, em_tensor **out) {
  return dropped(input, (rule){true, false}, p, train, out);
}
em_status c_feature_dropout_(em_tensor *self, double p, bool train) {
  return dropped_in_place(self, (rule){true, false}, p, train);
}
em_status c_alpha_dropout(em_tensor *input, double p, bool train, em_tensor **out) {
  return dropped(input, (rule){false, true}, p, train, out);
}
em_status c_alpha_dropout_(em_tensor *self, double p, bool train) {
  return dropped_in_place(self, (rule){false, true}, p, train);
}
em_status c_feature_alpha_dropout(em_tensor *input, double p, bool train, em_tensor **out) {
  return dropped(input, (rule){true, true}, p, train, out);
}
em_status c_feature_alpha_dropout_(em_tensor *self, double p, bool train) {
  return dropped_in_place(self, (rule){true, true}, p, train);
}
