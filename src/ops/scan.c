// scan.c: checks of cumulative operators, and differences and integrals along a dim.
#include "gen_ops.h"

static em_status known(int dtype, bool known, const char *kernel) {
  if (known) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(dtype));
}
// Integers are accumulated in int64 unless another dtype is asked for, by name or by what is given to write into.
static em_status check_accumulated(em_tensor *self, int64_t dim, int dtype, const char *kernel, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &p->attr[0]));
  if (dtype == EM_DTYPE_NONE) dtype = p->given;
  const int result = dtype != EM_DTYPE_NONE ? dtype : em_dtype_is_integral(self->dtype) ? EM_I64 : self->dtype;
  EM_PASS(known(result, result != EM_BOOL, kernel));
  em_plan_output_set(p, result, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_cumsum(em_tensor *self, int64_t dim, int dtype, em_plan *p) {
  return check_accumulated(self, dim, dtype, "cumsum_out_cpu", p);
}
em_status check_cumprod(em_tensor *self, int64_t dim, int dtype, em_plan *p) {
  return check_accumulated(self, dim, dtype, "cumprod_out_cpu", p);
}
em_status check_logcumsumexp(em_tensor *self, int64_t dim, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &p->attr[0]));
  EM_PASS(known(self->dtype, !em_dtype_is_integral(self->dtype), "logcumsumexp_out_cpu"));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
static em_status check_extreme(em_tensor *self, int64_t dim, const char *kernel, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &p->attr[0]));
  EM_PASS(known(self->dtype, !em_dtype_is_complex(self->dtype), kernel));
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_cummax(em_tensor *self, int64_t dim, em_plan *p) { return check_extreme(self, dim, "cummax_cpu", p); }
em_status check_cummin(em_tensor *self, int64_t dim, em_plan *p) { return check_extreme(self, dim, "cummin_cpu", p); }

// ---- differences ------------------------------------------------------------------------------------------------------

// t[from : size - less] along dim
static em_status part(em_tensor *t, int64_t dim, int64_t from, int64_t less, em_tensor **out) {
  return em_call_narrow(t, dim, from, t->sizes[dim] - from - less, out);
}
static em_status difference(em_tensor *t, int64_t dim, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *later = NULL, *earlier = NULL;
  EM_TRY(part(t, dim, 1, 0, &later));
  EM_TRY(part(t, dim, 0, 1, &earlier));
  if (t->dtype == EM_BOOL) EM_TRY(em_call_logical_xor(later, earlier, out));
  else EM_TRY(em_call_sub_Tensor(later, earlier, em_scalar_int(1), out));
fail:
  em_tensor_release(later);
  em_tensor_release(earlier);
  return st;
}
static em_status check_beside(em_tensor *self, em_tensor *other, int64_t dim) {
  if (other == NULL) return EM_OK;
  if (other->ndim != self->ndim)
    return em_fail(EM_ERR_RUNTIME, "diff expects prepend or append to be the same dimension as input");
  for (int d = 0; d < self->ndim; d++)
    if (other->sizes[d] != self->sizes[d] && d != dim)
      return em_fail(EM_ERR_RUNTIME, "diff expects the shape of tensor to prepend or append to match that of input except along the "
                     "differencing dimension; input.size(%d) = %lld, but got tensor.size(%d) = %lld", d, (long long)self->sizes[d], d,
                     (long long)other->sizes[d]);
  return EM_OK;
}
em_status c_diff(em_tensor *self, int64_t n, int64_t dim, em_tensor *prepend, em_tensor *append, em_tensor **out) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "diff expects input to be at least one-dimensional");
  if (n < 0) return em_fail(EM_ERR_RUNTIME, "order must be non-negative but got %lld", (long long)n);
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  EM_PASS(check_beside(self, prepend, dim));
  EM_PASS(check_beside(self, append, dim));
  if (n == 0) return em_call_clone(self, EM_FORMAT_NONE, out);
  em_status st = EM_OK;
  em_tensor *t = NULL, *list[3];
  int64_t count = 0;
  if (prepend != NULL) list[count++] = prepend;
  list[count++] = self;
  if (append != NULL) list[count++] = append;
  if (count == 1) t = em_tensor_retain(self);
  else EM_TRY(em_call_cat((em_tensors){list, count}, dim, &t));
  if (n > t->sizes[dim]) n = t->sizes[dim];  // nothing is left after that
  for (; n > 0; n--) {
    em_tensor *next;
    if (t->sizes[dim] == 0) break;
    EM_TRY(difference(t, dim, &next));
    em_tensor_release(t);
    t = next;
  }
  *out = t;
  t = NULL;
fail:
  em_tensor_release(t);
  return st;
}

// ---- the trapezoidal rule ---------------------------------------------------------------------------------------------

// Sums of neighbours along dim.
static em_status neighbours(em_tensor *y, int64_t dim, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *left = NULL, *right = NULL;
  EM_TRY(part(y, dim, 0, 1, &left));
  EM_TRY(part(y, dim, 1, 0, &right));
  EM_TRY(em_call_add_Tensor(left, right, em_scalar_int(1), out));
fail:
  em_tensor_release(left);
  em_tensor_release(right);
  return st;
}
// x as wide as y along dim; a 1-d x stands for dim, whatever comes after it.
static em_status widths(em_tensor *y, em_tensor *x, int64_t dim, em_tensor **out) {
  if (x->ndim != 1) {
    em_tensor *shaped = NULL;
    int64_t sizes[EM_MAX_DIMS];
    int lead = y->ndim - x->ndim;
    if (lead <= 0) return difference(x, x->ndim - (y->ndim - dim), out);
    for (int d = 0; d < y->ndim; d++) sizes[d] = d < lead ? 1 : x->sizes[d - lead];
    EM_PASS(em_call_view(x, (em_ints){sizes, y->ndim}, &shaped));
    em_status st = difference(shaped, dim, out);
    em_tensor_release(shaped);
    return st;
  }
  if (x->sizes[0] != y->sizes[dim]) return em_fail(EM_ERR_RUNTIME, "trapezoid: There must be one `x` value for each sample point");
  int64_t sizes[EM_MAX_DIMS];
  em_tensor *d;
  EM_PASS(difference(x, 0, &d));
  for (int i = 0; i < y->ndim; i++) sizes[i] = i == dim ? d->sizes[0] : 1;
  em_status st = em_call_view(d, (em_ints){sizes, y->ndim}, out);
  em_tensor_release(d);
  return st;
}
static em_status check_bool(const em_tensor *y, const em_tensor *x, const char *name) {
  if (y->dtype != EM_BOOL && (x == NULL || x->dtype != EM_BOOL)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: received a bool input for %s, but bool is not supported", name, x == NULL ? "`y`" : "`x` or `y`");
}
static em_status integral(const char *name, em_tensor *y, em_tensor *x, em_scalar dx, int64_t dim, bool cumulative, em_tensor **out) {
  EM_PASS(em_shape_wrap_dim(dim, y->ndim, false, &dim));
  if (!cumulative && y->sizes[dim] == 0) {
    int64_t sizes[EM_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < y->ndim; d++)
      if (d != dim) sizes[n++] = y->sizes[d];
    return em_call_zeros((em_ints){sizes, n}, y->dtype, -1, y->device, -1, out);
  }
  EM_PASS(check_bool(y, x, name));
  if (dx.kind == EM_SCALAR_BOOL) return em_fail(EM_ERR_RUNTIME, "%s: Currently, we only support dx as a real number.", name);
  if (dx.kind == EM_SCALAR_COMPLEX) return em_fail(EM_ERR_RUNTIME, "%s: Currently, we only support dx as a real number.", name);
  em_status st = EM_OK;
  em_tensor *pairs = NULL, *width = NULL, *area = NULL, *sum = NULL;
  EM_TRY(neighbours(y, dim, &pairs));
  if (x != NULL) {
    EM_TRY(widths(y, x, dim, &width));
    EM_TRY(em_call_mul_Tensor(pairs, width, &area));
  } else if (cumulative) {
    EM_TRY(em_call_mul_Scalar(pairs, dx, &area));
  } else {
    area = em_tensor_retain(pairs);
  }
  if (cumulative) EM_TRY(em_call_cumsum(area, dim, EM_DTYPE_NONE, &sum));
  else EM_TRY(em_call_sum_dim_IntList(area, EM_INTS(dim), false, EM_DTYPE_NONE, &sum));
  if (x == NULL && !cumulative) EM_TRY(em_call_mul_Scalar(sum, em_scalar_double(em_scalar_to_double(dx) / 2), out));
  else EM_TRY(em_call_div_Scalar(sum, em_scalar_double(2), out));
fail:
  em_tensor_release(pairs);
  em_tensor_release(width);
  em_tensor_release(area);
  em_tensor_release(sum);
  return st;
}
em_status c_trapezoid_x(em_tensor *y, em_tensor *x, int64_t dim, em_tensor **out) {
  return integral("trapezoid", y, x, em_scalar_int(1), dim, false, out);
}
em_status c_trapezoid_dx(em_tensor *y, em_scalar dx, int64_t dim, em_tensor **out) {
  return integral("trapezoid", y, NULL, dx, dim, false, out);
}
em_status c_trapz_dx(em_tensor *y, double dx, int64_t dim, em_tensor **out) {
  return integral("trapezoid", y, NULL, em_scalar_double(dx), dim, false, out);
}
em_status c_cumulative_trapezoid_x(em_tensor *y, em_tensor *x, int64_t dim, em_tensor **out) {
  return integral("cumulative_trapezoid", y, x, em_scalar_int(1), dim, true, out);
}
em_status c_cumulative_trapezoid_dx(em_tensor *y, em_scalar dx, int64_t dim, em_tensor **out) {
  return integral("cumulative_trapezoid", y, NULL, dx, dim, true, out);
}
