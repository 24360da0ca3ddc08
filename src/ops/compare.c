// compare.c: whole-tensor comparisons.
#include "gen_ops.h"

em_status n_equal(uint64_t ks, em_tensor *self, em_tensor *other, bool *out) {
  (void)ks;
  *out = false;
  if (!em_tensor_same_sizes(self, other)) return EM_OK;
  em_status st = EM_OK;
  em_tensor *same = NULL, *all = NULL;
  em_scalar s;
  EM_TRY(em_call_eq_Tensor(self, other, &same));
  EM_TRY(em_call_all(same, &all));
  EM_TRY(em_tensor_item(all, &s));
  *out = s.i != 0;
fail:
  em_tensor_release(same);
  em_tensor_release(all);
  return st;
}

// |self - other| <= atol + rtol * |other|; equal infinities are close, nan to nan only when asked for.
em_status c_isclose(em_tensor *self, em_tensor *other, double rtol, double atol, bool equal_nan, em_tensor **out) {
  if (self->dtype != other->dtype)
    return em_fail(EM_ERR_RUNTIME, "%s did not match %s", em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(other->dtype));
  if (!(rtol >= 0)) return em_fail(EM_ERR_RUNTIME, "rtol must be greater than or equal to zero, but got %g", rtol);
  if (!(atol >= 0)) return em_fail(EM_ERR_RUNTIME, "atol must be greater than or equal to zero, but got %g", atol);
  em_status st = EM_OK;
  em_tensor *t[12] = {NULL};
  em_scalar one = em_scalar_int(1);
  EM_TRY(em_call_eq_Tensor(self, other, &t[0]));
  if (equal_nan && em_dtype_is_differentiable(self->dtype)) {
    EM_TRY(em_call_ne_Tensor(self, self, &t[1]));
    EM_TRY(em_call_ne_Tensor(other, other, &t[2]));
    EM_TRY(em_call_logical_and(t[1], t[2], &t[3]));
    EM_TRY(em_call_logical_or(t[0], t[3], &t[4]));
  } else {
    t[4] = em_tensor_retain(t[0]);
  }
  if (rtol == 0 && atol == 0) {
    *out = em_tensor_retain(t[4]);
    goto fail;
  }
  // The distance of integers is taken in float, where it can't wrap.
  bool ints = em_dtype_is_integral(self->dtype);
  EM_TRY(em_call_to_dtype(self, ints ? em_dtype_default() : self->dtype, false, false, EM_FORMAT_NONE, &t[5]));
  EM_TRY(em_call_to_dtype(other, ints ? em_dtype_default() : self->dtype, false, false, EM_FORMAT_NONE, &t[6]));
  EM_TRY(em_call_abs(t[6], &t[7]));
  EM_TRY(em_call_mul_Scalar(t[7], em_scalar_double(rtol), &t[8]));
  em_tensor *allowed = NULL, *distance = NULL, *finite = NULL, *within = NULL, *near = NULL;
  st = em_call_add_Scalar(t[8], em_scalar_double(atol), one, &allowed);
  if (st == EM_OK) st = em_call_sub_Tensor(t[5], t[6], one, &t[9]);
  if (st == EM_OK) st = em_call_abs(t[9], &distance);
  if (st == EM_OK) st = em_call_isfinite(distance, &finite);
  if (st == EM_OK) st = em_call_le_Tensor(distance, allowed, &within);
  if (st == EM_OK) st = em_call_logical_and(finite, within, &near);
  if (st == EM_OK) st = em_call_logical_or(t[4], near, out);
  em_tensor_release(allowed);
  em_tensor_release(distance);
  em_tensor_release(finite);
  em_tensor_release(within);
  em_tensor_release(near);
fail:
  for (int i = 0; i < 12; i++) em_tensor_release(t[i]);
  return st;
}
em_status c_allclose(em_tensor *self, em_tensor *other, double rtol, double atol, bool equal_nan, bool *out) {
  em_status st = EM_OK;
  em_tensor *close = NULL, *all = NULL;
  em_scalar s;
  EM_TRY(em_call_isclose(self, other, rtol, atol, equal_nan, &close));
  EM_TRY(em_call_all(close, &all));
  EM_TRY(em_tensor_item(all, &s));
  *out = s.i != 0;
fail:
  em_tensor_release(close);
  em_tensor_release(all);
  return st;
}
