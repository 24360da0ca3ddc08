// formulas_maths.c: derivatives of native_maths.yaml and native_special.yaml. See formulas.h.
#include <math.h>
#include "../dispatch/pointwise.h"
#include "formula_tools.h"

#define N(v) em_scalar_double(v)
static em_status mul(em_tensor *a, em_tensor *b, em_tensor **out) { return em_call_mul_Tensor(a, b, out); }
static em_status times(em_tensor *a, double k, em_tensor **out) { return em_call_mul_Scalar(a, N(k), out); }
static em_status plus(em_tensor *a, double k, em_tensor **out) { return em_call_add_Scalar(a, N(k), em_scalar_int(1), out); }
static em_status minus(em_tensor *a, em_tensor *b, em_tensor **out) { return em_call_sub_Tensor(a, b, em_scalar_int(1), out); }
// value where self is 0, else t
static em_status at_zero(em_tensor *t, em_tensor *self, double value, em_tensor **out) {
  OWN zero = NULL;
  EM_PASS(em_call_eq_Scalar(self, em_scalar_int(0), &zero));
  return em_call_masked_fill_Scalar(t, zero, N(value), out);
}

em_status formula_not_implemented(const char *what, em_tensor **out) {
  (void)out;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented.", what);
}

// ---- functions of one number --------------------------------------------------------------------------------------

// (cos(pi x) pi x - sin(pi x)) / (pi x^2)
em_status formula_sinc(em_tensor *grad, em_tensor *self, em_tensor **out) {
  OWN px = NULL;
  OWN sin = NULL;
  OWN cos = NULL;
  OWN first = NULL;
  OWN top = NULL;
  OWN bottom = NULL;
  OWN slope = NULL;
  OWN conj = NULL;
  OWN g = NULL;
  EM_PASS(times(self, 3.14159265358979323846, &px));
  EM_PASS(em_call_sin(px, &sin));
  EM_PASS(em_call_cos(px, &cos));
  EM_PASS(mul(cos, px, &first));
  EM_PASS(minus(first, sin, &top));
  EM_PASS(mul(px, self, &bottom));
  EM_PASS(em_call_div_Tensor(top, bottom, &slope));
  EM_PASS(formula_conj(slope, &conj));
  EM_PASS(mul(grad, conj, &g));
  return at_zero(g, self, 0, out);
}
em_status formula_copysign(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out) {
  OWN ratio = NULL;
  OWN sign = NULL;
  EM_PASS(em_call_div_Tensor(result, self, &ratio));
  EM_PASS(at_zero(ratio, self, 0, &sign));
  return mul(grad, sign, out);
}
// (grad - real(grad / sgn) sgn) / |self|
em_status formula_sgn_backward(em_tensor *grad, em_tensor *self, em_tensor **out) {
  if (!em_dtype_is_complex(self->dtype)) return formula_zeros_like(self, out);
  OWN size = NULL;
  OWN unit = NULL;
  OWN quotient = NULL;
  OWN along = NULL;
  OWN parallel = NULL;
  OWN across = NULL;
  OWN g = NULL;
  EM_PASS(em_call_abs(self, &size));
  EM_PASS(em_call_sgn(self, &unit));
  EM_PASS(em_call_div_Tensor(grad, unit, &quotient));
  EM_PASS(em_call_real(quotient, &along));
  EM_PASS(mul(along, unit, &parallel));
  EM_PASS(minus(grad, parallel, &across));
  EM_PASS(em_call_div_Tensor(across, size, &g));
  return at_zero(g, self, 0, out);
}
// grad i self / |self|^2
em_status formula_angle(em_tensor *grad, em_tensor *self, em_tensor **out) {
  if (!em_dtype_is_complex(self->dtype)) return formula_zeros_like(self, out);
  OWN size = NULL;
  OWN squared = NULL;
  OWN ratio = NULL;
  OWN turned = NULL;
  OWN g = NULL;
  EM_PASS(em_call_abs(self, &size));
  EM_PASS(mul(size, size, &squared));
  EM_PASS(em_call_div_Tensor(self, squared, &ratio));
  EM_PASS(em_call_mul_Scalar(ratio, em_scalar_complex(0, 1), &turned));
  EM_PASS(mul(grad, turned, &g));
  return at_zero(g, self, 0, out);
}
// real(grad * conj(t))
static em_status inner_part(em_tensor *grad, em_tensor *t, em_tensor **out) {
  OWN conj = NULL;
  OWN product = NULL;
  EM_PASS(formula_conj(t, &conj));
  EM_PASS(mul(grad, conj, &product));
  return em_call_real(product, out);
}
em_status formula_polar_abs(em_tensor *grad, em_tensor *angle, em_tensor **out) {
  OWN one = NULL;
  OWN unit = NULL;
  EM_PASS(em_call_ones_like(angle, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &one));
  EM_PASS(em_call_polar(one, angle, &unit));
  return inner_part(grad, unit, out);
}
em_status formula_polar_angle(em_tensor *grad, em_tensor *result, em_tensor **out) {
  OWN turned = NULL;
  EM_PASS(em_call_mul_Scalar(result, em_scalar_complex(0, 1), &turned));
  return inner_part(grad, turned, out);
}

// ---- logarithms -----------------------------------------------------------------------------------------------------

// grad / (1 + exp(other - self)), also exp2: the share of self, which stays right where self or other is infinite.
em_status formula_logaddexp(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN d = NULL;
  OWN ratio = NULL;
  OWN parts = NULL;
  OWN conj = NULL;
  EM_PASS(minus(other, self, &d));
  EM_PASS(em_call_exp(d, &ratio));
  EM_PASS(em_call_add_Scalar(ratio, em_scalar_int(1), em_scalar_int(1), &parts));
  EM_PASS(formula_conj(parts, &conj));
  return em_call_div_Tensor(grad, conj, out);
}
em_status formula_logaddexp2(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN d = NULL;
  OWN ratio = NULL;
  OWN parts = NULL;
  OWN conj = NULL;
  EM_PASS(minus(other, self, &d));
  EM_PASS(em_call_exp2(d, &ratio));
  EM_PASS(em_call_add_Scalar(ratio, em_scalar_int(1), em_scalar_int(1), &parts));
  EM_PASS(formula_conj(parts, &conj));
  return em_call_div_Tensor(grad, conj, out);
}
// grad * f(other), nothing where self is 0 and f(other) has no finite value.
static em_status product_of_log(em_tensor *g, em_tensor *self, em_tensor *low, em_tensor **out) {
  OWN zero = NULL;
  OWN both = NULL;
  EM_PASS(em_call_eq_Scalar(self, em_scalar_int(0), &zero));
  EM_PASS(em_call_logical_and(zero, low, &both));
  return em_call_masked_fill_Scalar(g, both, em_scalar_int(0), out);
}
em_status formula_xlogy(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN g = NULL;
  OWN low = NULL;
  EM_PASS(em_call_xlogy_Tensor(grad, other, &g));
  EM_PASS(em_call_le_Scalar(other, em_scalar_int(0), &low));
  return product_of_log(g, self, low, out);
}
em_status formula_xlogy_number(em_tensor *grad, em_tensor *self, em_scalar other, em_tensor **out) {
  OWN g = NULL;
  EM_PASS(em_call_xlogy_Scalar_Other(grad, other, &g));
  return em_scalar_to_double(other) > 0 ? formula_move(&g, out) : at_zero(g, self, 0, out);
}
em_status formula_xlog1py(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN g = NULL;
  OWN low = NULL;
  EM_PASS(em_call_special_xlog1py(grad, other, &g));
  EM_PASS(em_call_le_Scalar(other, em_scalar_int(-1), &low));
  return product_of_log(g, self, low, out);
}
em_status formula_xlog1py_number(em_tensor *grad, em_tensor *self, em_scalar other, em_tensor **out) {
  OWN g = NULL;
  EM_PASS(em_call_special_xlog1py_other_scalar(grad, other, &g));
  return em_scalar_to_double(other) > -1 ? formula_move(&g, out) : at_zero(g, self, 0, out);
}
// grad * grad_output * (2 x - 1) / (x (1 - x))^2 inside the bounds.
em_status formula_logit_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_opt_double eps, em_tensor **out) {
  OWN once = NULL;
  OWN twice = NULL;
  OWN line = NULL;
  OWN slope = NULL;
  EM_PASS(em_call_logit_backward(grad, self, eps, &once));
  EM_PASS(em_call_logit_backward(once, self, eps, &twice));
  EM_PASS(times(self, 2, &line));
  EM_PASS(plus(line, -1, &slope));
  OWN g = NULL;
  EM_PASS(mul(twice, slope, &g));
  return mul(g, grad_output, out);
}

// ---- gamma and Bessel functions -------------------------------------------------------------------------------------

em_status em_priv_mvlgamma_arguments(em_tensor *self, int64_t p, em_tensor **out);  // src/ops/maths.c
em_status formula_mvlgamma(em_tensor *grad, em_tensor *self, int64_t p, em_tensor **out) {
  OWN arguments = NULL;
  OWN slopes = NULL;
  OWN sum = NULL;
  EM_PASS(em_priv_mvlgamma_arguments(self, p, &arguments));
  EM_PASS(em_call_digamma(arguments, &slopes));
  EM_PASS(em_call_sum_dim_IntList(slopes, EM_INTS(-1), false, EM_DTYPE_NONE, &sum));
  return mul(grad, sum, out);
}
// The density: e^((a - 1) log x - x - lgamma(a)).
em_status formula_igamma(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN less = NULL;
  OWN log = NULL;
  OWN power = NULL;
  OWN decayed = NULL;
  OWN norm = NULL;
  OWN exponent = NULL;
  OWN density = NULL;
  EM_PASS(plus(self, -1, &less));
  EM_PASS(em_call_log(other, &log));
  EM_PASS(mul(less, log, &power));
  EM_PASS(minus(power, other, &decayed));
  EM_PASS(em_call_lgamma(self, &norm));
  EM_PASS(minus(decayed, norm, &exponent));
  EM_PASS(em_call_exp(exponent, &density));
  return mul(grad, density, out);
}
// I1' = I0 - I1 / x, which is 1/2 at 0; the scaled one loses itself times the sign.
static em_status bessel_slope(em_tensor *grad, em_tensor *self, em_tensor *i0, em_tensor *result, em_tensor *decay, em_tensor **out) {
  OWN ratio = NULL;
  OWN slope = NULL;
  OWN less = NULL;
  OWN at = NULL;
  EM_PASS(em_call_div_Tensor(result, self, &ratio));
  EM_PASS(minus(i0, ratio, &slope));
  if (decay != NULL) EM_PASS(minus(slope, decay, &less));
  EM_PASS(at_zero(decay != NULL ? less : slope, self, 0.5, &at));
  return mul(grad, at, out);
}
em_status formula_i1(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out) {
  OWN i0 = NULL;
  EM_PASS(em_call_i0(self, &i0));
  return bessel_slope(grad, self, i0, result, NULL, out);
}
em_status formula_i1e(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out) {
  OWN i0 = NULL;
  OWN sign = NULL;
  OWN decay = NULL;
  EM_PASS(em_call_special_i0e(self, &i0));
  EM_PASS(em_call_sgn(self, &sign));
  EM_PASS(mul(sign, result, &decay));
  return bessel_slope(grad, self, i0, result, decay, out);
}

// ---- operators without a derivative -----------------------------------------------------------------------------------

em_status formula_not_derivable(const char *op, em_tensor **out) {
  (void)out;
  return em_fail(EM_ERR_RUNTIME, "derivative for %s is not implemented", op);
}
em_status formula_no_derivative(const char *op, em_tensor *grad, em_bools mask, em_tensor **first, em_tensor **second) {
  (void)grad, (void)mask, (void)second;
  return formula_not_derivable(op, first);
}

// ---- along a dim --------------------------------------------------------------------------------------------------------

// f from the end: flips, calls, flips back.
static em_status backwards(em_tensor *t, int64_t dim, em_status (*f)(em_tensor *, int64_t, em_tensor **), em_tensor **out) {
  OWN turned = NULL;
  OWN made = NULL;
  EM_PASS(em_call_flip(t, EM_INTS(dim), &turned));
  EM_PASS(f(turned, dim, &made));
  return em_call_flip(made, EM_INTS(dim), out);
}
static em_status cumsum(em_tensor *t, int64_t dim, em_tensor **out) { return em_call_cumsum(t, dim, EM_DTYPE_NONE, out); }
em_status formula_cumsum(em_tensor *grad, int64_t dim, em_tensor **out) {
  if (grad->numel <= 1 || formula_size(grad, dim) == 1) return formula_same(grad, out);
  return backwards(grad, dim, cumsum, out);
}

// t moved by `by` along dim, towards the end or the start; `fill` moves in.
static em_status moved(em_tensor *t, int64_t dim, int64_t by, bool to_end, double fill, em_tensor **out) {
  OWN kept = NULL;
  OWN edge = NULL;
  OWN filled = NULL;
  EM_PASS(em_call_narrow(t, dim, to_end ? 0 : by, t->sizes[dim] - by, &kept));
  EM_PASS(em_call_narrow(t, dim, 0, by, &edge));
  EM_PASS(em_call_full_like(edge, N(fill), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &filled));
  return em_call_cat((em_tensors){(em_tensor *[]){to_end ? filled : kept, to_end ? kept : filled}, 2}, dim, out);
}
// The products of all elements before each.
static em_status products_before(em_tensor *x, int64_t dim, em_tensor **out) {
  OWN shifted = NULL;
  EM_PASS(moved(x, dim, 1, true, 1, &shifted));
  return em_call_cumprod(shifted, dim, EM_DTYPE_NONE, out);
}
// r[i] = b[i] + a[i] r[i + 1] along dim, in log2(n) steps, each doubling how far an element looks.
static em_status recurrence_from_end(em_tensor *a_, em_tensor *b_, int64_t dim, em_tensor **out) {
  OWN a = em_tensor_retain(a_);
  OWN b = em_tensor_retain(b_);
  for (int64_t by = 1; by < b->sizes[dim]; by *= 2) {
    OWN further_b = NULL;
    OWN further_a = NULL;
    OWN reached = NULL;
    em_tensor *next_a, *next_b;
    EM_PASS(moved(b, dim, by, false, 0, &further_b));
    EM_PASS(moved(a, dim, by, false, 0, &further_a));
    EM_PASS(mul(a, further_b, &reached));
    EM_PASS(em_call_add_Tensor(b, reached, em_scalar_int(1), &next_b));
    em_tensor_release(b);
    b = next_b;
    EM_PASS(mul(a, further_a, &next_a));
    em_tensor_release(a);
    a = next_a;
  }
  return formula_move(&b, out);
}
// Where some element is 0, without a division: what is before an element times what follows from the gradients after it.
static em_status cumprod_with_zeros(em_tensor *grad, em_tensor *x, int64_t dim, em_tensor **out) {
  OWN before = NULL;
  OWN next = NULL;
  OWN after = NULL;
  EM_PASS(products_before(x, dim, &before));
  EM_PASS(moved(x, dim, 1, false, 0, &next));
  EM_PASS(recurrence_from_end(next, grad, dim, &after));
  return mul(before, after, out);
}
em_status formula_cumprod(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out) {
  if (self->ndim == 0 || grad->numel == 0) return formula_same(grad, out);
  if (dim < 0) dim += self->ndim;
  bool zero;
  OWN wide = NULL;
  OWN x = NULL;
  OWN conj_y = NULL;
  OWN weighted = NULL;
  OWN sums = NULL;
  EM_PASS(em_call_to_dtype(self, result->dtype, false, false, EM_FORMAT_NONE, &wide));
  EM_PASS(formula_conj(wide, &x));
  EM_PASS(formula_has_zero(x, &zero));
  if (zero) return cumprod_with_zeros(grad, x, dim, out);
  EM_PASS(formula_conj(result, &conj_y));
  EM_PASS(mul(grad, conj_y, &weighted));
  EM_PASS(backwards(weighted, dim, cumsum, &sums));
  return em_call_div_Tensor(sums, x, out);
}
static em_status logcumsumexp(em_tensor *t, int64_t dim, em_tensor **out) { return em_call_logcumsumexp(t, dim, out); }
// exp(self + reversed logcumsumexp(log_grad - result)): the gradients' logarithms, so that nothing overflows.
static em_status share_of_logs(em_tensor *log_grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out) {
  OWN less = NULL;
  OWN sums = NULL;
  OWN exponent = NULL;
  EM_PASS(minus(log_grad, result, &less));
  EM_PASS(backwards(less, dim, logcumsumexp, &sums));
  EM_PASS(em_call_add_Tensor(sums, self, em_scalar_int(1), &exponent));
  return em_call_exp(exponent, out);
}
// The share of those gradients that are positive (sign 1) or negative (-1).
static em_status signed_share(em_tensor *grad, double sign, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out) {
  OWN size = NULL;
  OWN there = NULL;
  OWN log = NULL;
  OWN known = NULL;
  EM_PASS(times(grad, sign, &size));
  EM_PASS(em_call_gt_Scalar(size, em_scalar_int(0), &there));
  EM_PASS(em_call_log(size, &log));
  EM_PASS(em_call_where_ScalarOther(there, log, N(-em_pw_largest(log->dtype)), &known));
  return share_of_logs(known, self, result, dim, out);
}
em_status formula_logcumsumexp(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out) {
  if (grad->ndim == 0 || result->numel == 0) return formula_same(grad, out);
  OWN a = NULL;
  OWN b = NULL;
  if (em_dtype_is_complex(self->dtype)) {
    OWN log = NULL;
    EM_PASS(formula_conj(self, &a));
    EM_PASS(formula_conj(result, &b));
    EM_PASS(em_call_log(grad, &log));
    return share_of_logs(log, a, b, dim, out);
  }
  EM_PASS(signed_share(grad, 1, self, result, dim, &a));
  EM_PASS(signed_share(grad, -1, self, result, dim, &b));
  return minus(a, b, out);
}
em_status formula_selected_along(em_tensor *grad, em_tensor *indices, em_ints sizes, int64_t dim, em_tensor **out) {
  if (grad->numel == 0) return formula_same(grad, out);
  OWN zeros = NULL;
  EM_PASS(formula_new_zeros(grad, sizes, &zeros));
  return em_call_scatter_add(zeros, dim, indices, grad, out);
}

// ---- statistics ---------------------------------------------------------------------------------------------------------

em_status formula_std_mean(em_tensor *grad_std, em_tensor *grad_mean, em_tensor *self, em_tensor *std, em_ints dims, em_scalar correction,
                           bool keepdim, em_tensor **out) {
  OWN a = NULL;
  OWN b = NULL;
  EM_PASS(formula_std(grad_std, self, std, dims, correction, keepdim, &a));
  EM_PASS(formula_mean(grad_mean, (em_ints){self->sizes, self->ndim}, dims, keepdim, &b));
  return em_call_add_Tensor(a, b, em_scalar_int(1), out);
}
em_status formula_aminmax(em_tensor *grad_min, em_tensor *grad_max, em_tensor *self, em_tensor *min, em_tensor *max, em_opt_int dim,
                          bool keepdim, em_tensor **out) {
  OWN a = NULL;
  OWN b = NULL;
  const em_ints dims = dim.has ? (em_ints){&dim.v, 1} : EM_INTS_NONE;
  EM_PASS(formula_extremes(grad_min, self, min, dims, keepdim, false, &a));
  EM_PASS(formula_extremes(grad_max, self, max, dims, keepdim, false, &b));
  return em_call_add_Tensor(a, b, em_scalar_int(1), out);
}
em_status formula_dist(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor *result, em_scalar p, em_tensor **out) {
  OWN d = NULL;
  EM_PASS(minus(self, other, &d));
  return formula_norm(grad, d, result, p, EM_INTS_NONE, false, out);
}
// grad * scale, and where the norm is too large what changes the norm: -maxnorm / norm^2 * sum(grad * self) through the norm.
em_status formula_renorm(em_tensor *grad, em_tensor *self, em_scalar p, int64_t dim, em_scalar maxnorm, em_tensor **out) {
  int64_t all[EM_MAX_DIMS];
  int n = 0;
  if (dim < 0) dim += self->ndim;
  for (int d = 0; d < self->ndim; d++)
    if (d != dim) all[n++] = d;
  const em_ints dims = {all, n};
  OWN norm = NULL;
  OWN large = NULL;
  OWN shifted = NULL;
  OWN factor = NULL;
  OWN scale = NULL;
  OWN first = NULL;
  EM_PASS(em_call_linalg_vector_norm(self, p, dims, true, EM_DTYPE_NONE, &norm));
  EM_PASS(em_call_gt_Scalar(norm, maxnorm, &large));
  EM_PASS(plus(norm, 1e-7, &shifted));
  OWN inverse = NULL;
  EM_PASS(em_call_reciprocal(shifted, &inverse));
  EM_PASS(em_call_mul_Scalar(inverse, maxnorm, &factor));
  EM_PASS(em_call_where_ScalarOther(large, factor, N(1), &scale));
  EM_PASS(mul(grad, scale, &first));
  OWN conj = NULL;
  OWN product = NULL;
  OWN real = NULL;
  OWN sum = NULL;
  OWN slope = NULL;
  OWN change = NULL;
  OWN negative = NULL;
  OWN at = NULL;
  OWN second = NULL;
  EM_PASS(formula_conj(self, &conj));
  EM_PASS(mul(grad, conj, &product));
  if (em_dtype_is_complex(product->dtype)) EM_PASS(em_call_real(product, &real));
  EM_PASS(formula_sum_over(real != NULL ? real : product, dims, &sum));
  EM_PASS(mul(factor, inverse, &slope));
  EM_PASS(mul(slope, sum, &change));
  EM_PASS(em_call_neg(change, &negative));
  EM_PASS(em_call_where_ScalarOther(large, negative, N(0), &at));
  EM_PASS(formula_norm(at, self, norm, p, dims, true, &second));
  if (second == NULL) return formula_move(&first, out);
  return em_call_add_Tensor(first, second, em_scalar_int(1), out);
}
