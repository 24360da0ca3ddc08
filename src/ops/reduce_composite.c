// reduce_composite.c: reductions and pointwise operators that are made of others: the short overloads of var and std,
// logsumexp, norms, square. Each part is a dispatch point of its own.
#include "gen_ops.h"
#include "own.h"
#include <math.h>

em_status em_priv_warn_degrees(em_status st, const char *name, const em_tensor *self, bool unbiased, em_tensor **out) {
  if (st != EM_OK || self->device.type == EM_DEVICE_META) return st;
  const int64_t n = (*out)->numel == 0 ? 0 : self->numel / (*out)->numel;
  if (unbiased < n) return EM_OK;
  st = em_warn("%s(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by "
               "output numel).", name);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
em_status c_var_dim(em_tensor *self, em_ints dim, bool unbiased, bool keepdim, em_tensor **out) {
  em_status st = em_call_var_correction(self, dim, em_scalar_int(unbiased), keepdim, out);
  return em_priv_warn_degrees(st, "var", self, unbiased, out);
}
em_status c_var(em_tensor *self, bool unbiased, em_tensor **out) { return c_var_dim(self, EM_INTS_NONE, unbiased, false, out); }
em_status c_std_dim(em_tensor *self, em_ints dim, bool unbiased, bool keepdim, em_tensor **out) {
  em_status st = em_call_std_correction(self, dim, em_scalar_int(unbiased), keepdim, out);
  return em_priv_warn_degrees(st, "std", self, unbiased, out);
}
em_status c_std(em_tensor *self, bool unbiased, em_tensor **out) { return c_std_dim(self, EM_INTS_NONE, unbiased, false, out); }
em_status c_var_mean_dim(em_tensor *self, em_ints dim, bool unbiased, bool keepdim, em_tensor **out0, em_tensor **out1) {
  em_status st = em_call_var_mean_correction(self, dim, em_scalar_int(unbiased), keepdim, out0, out1);
  em_status told = em_priv_warn_degrees(st, "var_mean", self, unbiased, out0);
  if (st == EM_OK && told != EM_OK) EM_CLEAR_TENSOR(out1);
  return told;
}
em_status c_var_mean(em_tensor *self, bool unbiased, em_tensor **out0, em_tensor **out1) {
  return c_var_mean_dim(self, EM_INTS_NONE, unbiased, false, out0, out1);
}

em_status c_square(em_tensor *self, em_tensor **out) { return em_call_pow_Tensor_Scalar(self, em_scalar_int(2), out); }

// log(sum(exp(x))), shifted by the largest (real part of an) element so that nothing overflows. An infinite maximum
// must not be subtracted from itself: there the shift is 0.
em_status c_logsumexp(em_tensor *self, em_ints dim, bool keepdim, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *real = NULL, *top = NULL, *inf = NULL, *shift = NULL, *moved = NULL, *powers = NULL,
            *sum = NULL, *log = NULL;
  int dtype = em_dtype_is_integral(self->dtype) ? em_dtype_default() : self->dtype;
  EM_TRY(em_call_to_dtype(self, dtype, false, false, EM_FORMAT_NONE, &x));
  if (x->numel == 0) {
    EM_TRY(em_call_exp(x, &powers));
    EM_TRY(em_call_sum_dim_IntList(powers, dim, keepdim, EM_DTYPE_NONE, &sum));
    EM_TRY(em_call_log(sum, out));
  } else {
    if (em_dtype_is_complex(dtype)) EM_TRY(em_call_real(x, &real));
    EM_TRY(em_call_amax(real == NULL ? x : real, dim, true, &top));
    EM_TRY(em_call_isinf(top, &inf));
    EM_TRY(em_call_where_ScalarSelf(inf, em_scalar_int(0), top, &shift));
    EM_TRY(em_call_sub_Tensor(x, shift, em_scalar_int(1), &moved));
    EM_TRY(em_call_exp(moved, &powers));
    EM_TRY(em_call_sum_dim_IntList(powers, dim, true, EM_DTYPE_NONE, &sum));
    EM_TRY(em_call_log(sum, &log));
    EM_CLEAR_TENSOR(&sum);
    EM_TRY(em_call_add_Tensor(log, shift, em_scalar_int(1), &sum));
    if (keepdim || x->ndim == 0) {
      *out = sum;
      sum = NULL;
    } else if (dim.n <= 0) {
      EM_TRY(em_call_squeeze(sum, out));
    } else {
      EM_TRY(em_call_squeeze_dims(sum, dim, out));
    }
  }
fail:;  // a label stands before a statement, not a declaration (C11)
  em_tensor *const all[] = {x, real, top, inf, shift, moved, powers, sum, log};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}

// Norms of order < 0 and inf have no value for no elements.
static em_status check_norm_identity(const em_tensor *x, double p, em_ints dim) {
  if (x->numel != 0 || (p >= 0 && !isinf(p))) return EM_OK;
  if (dim.n <= 0)
    return em_fail(
        EM_ERR_RUNTIME,
        "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation does not have an "
        "identity",
        p);
  for (int64_t i = 0; i < dim.n; i++) {
    int64_t d;
    EM_PASS(em_shape_wrap_dim(dim.p[i], x->ndim, true, &d));
    if (x->ndim > 0 && x->sizes[d] == 0)
      return em_fail(
          EM_ERR_RUNTIME,
          "linalg.vector_norm cannot compute the %g norm on the dimension %lldbecause this dimension is empty and "
          "the operation does not have an identity",
          p, (long long)d);
  }
  return EM_OK;
}

// |x| reduced by the norm of order p. `x` is real, not negative and of full precision.
static em_status reduce_norm(em_tensor *x, double p, em_ints dim, bool keepdim, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *powers = NULL, *sum = NULL;
  if (isinf(p)) {
    em_ints all = {NULL, 0};
    if (dim.n < 0) dim = all;
    return p > 0 ? em_call_amax(x, dim, keepdim, out) : em_call_amin(x, dim, keepdim, out);
  }
  if (p == 1) return em_call_sum_dim_IntList(x, dim, keepdim, EM_DTYPE_NONE, out);
  if (p == 0) {
    EM_TRY(em_call_ne_Scalar(x, em_scalar_int(0), &powers));
    EM_TRY(em_call_sum_dim_IntList(powers, dim, keepdim, x->dtype, out));
  } else {
    EM_TRY(em_call_pow_Tensor_Scalar(x, em_scalar_double(p), &powers));
    EM_TRY(em_call_sum_dim_IntList(powers, dim, keepdim, EM_DTYPE_NONE, &sum));
    EM_TRY(em_call_pow_Tensor_Scalar(sum, em_scalar_double(1 / p), out));
  }
fail:
  em_tensor_release(powers);
  em_tensor_release(sum);
  return st;
}

em_status c_linalg_vector_norm(em_tensor *self, em_scalar ord, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *size = NULL, *norm = NULL;
  if (em_dtype_is_integral(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
                   em_dtype_scalar_name(self->dtype));
  EM_PASS(check_norm_identity(self, em_scalar_to_double(ord), dim));
  int from = dtype == EM_DTYPE_NONE ? self->dtype : dtype, result = em_dtype_to_real(from);
  // 16-bit floats are measured in float and rounded once
  int wide = from == EM_F16 || from == EM_BF16 ? EM_F32 : from;
  EM_TRY(em_call_to_dtype(self, wide, false, false, EM_FORMAT_NONE, &x));
  EM_TRY(em_call_abs(x, &size));
  EM_TRY(reduce_norm(size, em_scalar_to_double(ord), dim, keepdim, &norm));
  EM_TRY(em_call_to_dtype(norm, result, false, false, EM_FORMAT_NONE, out));
fail:
  em_tensor_release(x);
  em_tensor_release(size);
  em_tensor_release(norm);
  return st;
}

static em_scalar order_or_two(em_scalar p) { return em_scalar_given(p) ? p : em_scalar_int(2); }

em_status c_norm(em_tensor *self, em_scalar p, em_tensor **out) {
  return em_call_linalg_vector_norm(self, p, EM_INTS_NONE, false, EM_DTYPE_NONE, out);
}
em_status c_norm_dtype(em_tensor *self, em_scalar p, int dtype, em_tensor **out) {
  return em_call_linalg_vector_norm(self, order_or_two(p), EM_INTS_NONE, false, dtype, out);
}
em_status c_norm_dim(em_tensor *self, em_scalar p, em_ints dim, bool keepdim, em_tensor **out) {
  return em_call_linalg_vector_norm(self, order_or_two(p), dim, keepdim, EM_DTYPE_NONE, out);
}
em_status c_norm_dim_dtype(em_tensor *self, em_scalar p, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  return em_call_linalg_vector_norm(self, order_or_two(p), dim, keepdim, dtype, out);
}
