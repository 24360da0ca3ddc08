// maths.c: errors of pointwise functions in native_maths.yaml, and those of them that are made of others.
#include <math.h>
#include "gen_ops.h"
#include "../dispatch/view_entry.h"

em_status check_bool_out(em_tensor *out, const char *message) {
  return out->dtype == EM_BOOL ? EM_OK : em_fail(EM_ERR_RUNTIME, "%s", message);
}
em_status check_heaviside(em_tensor *self, em_tensor *values) {
  if (em_dtype_is_complex(self->dtype) || em_dtype_is_complex(values->dtype))
    return em_fail(EM_ERR_RUNTIME, "heaviside is not yet implemented for complex tensors.");
  if (self->dtype == values->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "heaviside is not yet implemented for tensors with different dtypes.");
}
em_status check_heaviside_out(em_tensor *self, em_tensor *out) {
  if (self->dtype == out->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "heaviside is not yet implemented for tensors with different dtypes.");
}
em_status check_polygamma(int64_t n) {
  return n >= 0 ? EM_OK : em_fail(EM_ERR_RUNTIME, "polygamma(n, x) does not support negative n.");
}

em_status c_positive(em_tensor *self, em_tensor **out) {
  if (self->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "The `+` operator, on a bool tensor is not supported.");
  *out = em_tensor_retain(self);
  return EM_OK;
}
em_status c_polygamma_(em_tensor *self, int64_t n) {
  em_tensor *result;
  EM_PASS(em_call_polygamma(n, self, &result));
  em_status st = em_priv_write_inplace(self, result);
  em_tensor_release(result);
  return st;
}

em_status c_ldexp(em_tensor *self, em_tensor *other, em_tensor **out) {
  em_tensor *scale;
  EM_PASS(em_call_pow_Scalar(em_scalar_double(2), other, &scale));
  em_status st = em_call_mul_Tensor(self, scale, out);
  em_tensor_release(scale);
  return st;
}

// The arguments of lgamma whose values mvlgamma sums: self + (1 - p) / 2, ..., self, in a new last dim.
em_status em_priv_mvlgamma_arguments(em_tensor *self, int64_t p, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *column = NULL, *steps = NULL;
  if (p < 1) return em_fail(EM_ERR_RUNTIME, "p has to be greater than or equal to 1");
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"mvlgamma_cpu\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  const int dtype = em_dtype_is_integral(self->dtype) ? em_dtype_default() : self->dtype;
  EM_TRY(em_call_to_dtype(self, dtype, false, false, EM_FORMAT_NONE, &x));
  EM_TRY(em_call_unsqueeze(x, -1, &column));
  EM_TRY(em_call_arange_start_step(em_scalar_double(0.5 - (double)p / 2), em_scalar_double(0.5), em_scalar_double(0.5), dtype, -1,
                                   self->device, -1, &steps));
  EM_TRY(em_call_add_Tensor(column, steps, em_scalar_int(1), out));
fail:
  em_tensor_release(x);
  em_tensor_release(column);
  em_tensor_release(steps);
  return st;
}
em_status c_mvlgamma(em_tensor *self, int64_t p, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *arguments = NULL, *values = NULL, *sum = NULL;
  EM_TRY(em_priv_mvlgamma_arguments(self, p, &arguments));
  EM_TRY(em_call_lgamma(arguments, &values));
  EM_TRY(em_call_sum_dim_IntList(values, EM_INTS(-1), false, EM_DTYPE_NONE, &sum));
  const double shift = (double)p * (double)(p - 1) / 4 * 1.14472988584940017414;  // log pi
  EM_TRY(em_call_add_Scalar(sum, em_scalar_double(shift), em_scalar_int(1), out));
fail:
  em_tensor_release(arguments);
  em_tensor_release(values);
  em_tensor_release(sum);
  return st;
}

// ---- float_power: pow in double or complex double -------------------------------------------------------------------

static int wide(bool complex) { return complex ? EM_C128 : EM_F64; }
static em_status widened(em_tensor *t, int dtype, em_tensor **out) {
  return em_call_to_dtype(t, dtype, false, false, EM_FORMAT_NONE, out);
}
static bool complex_number(em_scalar s) { return s.kind == EM_SCALAR_COMPLEX; }

em_status c_float_power(em_tensor *self, em_tensor *exponent, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL;
  const int dtype = wide(em_dtype_is_complex(self->dtype) || em_dtype_is_complex(exponent->dtype));
  EM_TRY(widened(self, dtype, &a));
  EM_TRY(widened(exponent, dtype, &b));
  EM_TRY(em_call_pow_Tensor_Tensor(a, b, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  return st;
}
em_status c_float_power_scalar(em_tensor *self, em_scalar exponent, em_tensor **out) {
  em_tensor *a;
  EM_PASS(widened(self, wide(em_dtype_is_complex(self->dtype) || complex_number(exponent)), &a));
  em_status st = em_call_pow_Tensor_Scalar(a, exponent, out);
  em_tensor_release(a);
  return st;
}
em_status c_float_power_base(em_scalar self, em_tensor *exponent, em_tensor **out) {
  em_tensor *b;
  const bool complex = em_dtype_is_complex(exponent->dtype) || complex_number(self);
  EM_PASS(widened(exponent, wide(complex), &b));
  em_c128 c = em_scalar_to_c128(self);
  em_status st = em_call_pow_Scalar(complex ? em_scalar_complex(c.re, c.im) : em_scalar_double(c.re), b, out);
  em_tensor_release(b);
  return st;
}
static em_status give(em_tensor *result, em_tensor *out, const char *what) {
  if (out->dtype == result->dtype) return em_priv_write_out(out, result);
  return em_fail(EM_ERR_RUNTIME, "the %s has dtype %s but the operation's result requires dtype %s", what, em_dtype_scalar_name(out->dtype),
                 em_dtype_scalar_name(result->dtype));
}
static em_status give_steal(em_status st, em_tensor *result, em_tensor *out, const char *what) {
  if (st == EM_OK) st = give(result, out, what);
  em_tensor_release(result);
  return st;
}
em_status c_float_power_out(em_tensor *self, em_tensor *exponent, em_tensor *out) {
  em_tensor *t = NULL;
  em_status st = c_float_power(self, exponent, &t);
  return give_steal(st, t, out, "output given to float_power");
}
em_status c_float_power_scalar_out(em_tensor *self, em_scalar exponent, em_tensor *out) {
  em_tensor *t = NULL;
  em_status st = c_float_power_scalar(self, exponent, &t);
  return give_steal(st, t, out, "output given to float_power");
}
em_status c_float_power_base_out(em_scalar self, em_tensor *exponent, em_tensor *out) {
  em_tensor *t = NULL;
  em_status st = c_float_power_base(self, exponent, &t);
  return give_steal(st, t, out, "output given to float_power");
}
static em_status check_base(const em_tensor *self, int dtype) {
  if (self->dtype == dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "the base given to float_power_ has dtype %s but the operation's result requires dtype %s",
                 em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(dtype));
}
em_status c_float_power_(em_tensor *self, em_tensor *exponent) {
  EM_PASS(check_base(self, wide(em_dtype_is_complex(self->dtype) || em_dtype_is_complex(exponent->dtype))));
  em_tensor *b;
  EM_PASS(widened(exponent, self->dtype, &b));
  em_status st = em_call_pow__Tensor(self, b);
  em_tensor_release(b);
  return st;
}
em_status c_float_power_scalar_(em_tensor *self, em_scalar exponent) {
  EM_PASS(check_base(self, wide(em_dtype_is_complex(self->dtype) || complex_number(exponent))));
  return em_call_pow__Scalar(self, exponent);
}
