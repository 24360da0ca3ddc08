// formulas.c: helpers of derivatives.yaml, from operators alone. See formulas.h.
#include "formulas.h"
#include <math.h>
#include "../core/shape.h"
#include "engine.h"
#include "formula_tools.h"

#define move formula_move
#define same formula_same
#define zeros_like formula_zeros_like
#define new_zeros formula_new_zeros
#define sum_over formula_sum_over

// ---- numbers ------------------------------------------------------------------------------------------------------

static em_scalar combine(em_scalar a, em_scalar b, int sign) {
  if (a.kind == EM_SCALAR_COMPLEX || b.kind == EM_SCALAR_COMPLEX) {
    em_c128 x = em_scalar_to_c128(a), y = em_scalar_to_c128(b);
    return em_scalar_complex(x.re + sign * y.re, x.im + sign * y.im);
  }
  if (a.kind == EM_SCALAR_DOUBLE || b.kind == EM_SCALAR_DOUBLE)
    return em_scalar_double(em_scalar_to_double(a) + sign * em_scalar_to_double(b));
  return em_scalar_int(a.i + sign * b.i);
}
em_scalar formula_scalar_add(em_scalar a, em_scalar b) { return combine(a, b, 1); }
em_scalar formula_scalar_sub(em_scalar a, em_scalar b) { return combine(a, b, -1); }
int64_t formula_size(em_tensor *t, int64_t dim) {
  if (t->ndim == 0) return 1;
  return t->sizes[dim < 0 ? dim + t->ndim : dim];
}

em_status formula_scale(em_tensor *t, em_scalar s, em_tensor **out) {
  if (s.kind != EM_SCALAR_COMPLEX && em_scalar_to_double(s) == 1.0) return same(t, out);
  return em_call_mul_Scalar(t, s, out);
}
em_status formula_subtract_from(em_scalar s, em_tensor *t, em_tensor **out) {
  return em_call_rsub_Scalar(t, s, em_scalar_int(1), out);
}
em_status formula_conj(em_tensor *t, em_tensor **out) {
  if (!em_dtype_is_complex(t->dtype)) return same(t, out);
  return em_call_conj_physical(t, out);
}
em_status formula_grad(const em_node *node, int64_t j, em_tensor *grad, em_tensor **out) {
  return grad != NULL ? same(grad, out) : em_engine_zeros(&node->inputs[j], out);
}

// ---- arithmetic ---------------------------------------------------------------------------------------------------

em_status formula_div_self(em_tensor *grad, em_tensor *other, const char *mode, em_tensor **out) {
  if (mode != NULL) return zeros_like(grad, out);
  OWN c = NULL;
  EM_PASS(formula_conj(other, &c));
  return em_call_div_Tensor(grad, c, out);
}
em_status formula_div_other(em_tensor *grad, em_tensor *self, em_tensor *other, const char *mode, em_tensor **out) {
  if (mode != NULL) return zeros_like(other, out);
  OWN q = NULL;
  OWN r = NULL;
  OWN c = NULL;
  OWN n = NULL;
  EM_PASS(em_call_div_Tensor(self, other, &q));
  EM_PASS(em_call_div_Tensor(q, other, &r));
  EM_PASS(formula_conj(r, &c));
  EM_PASS(em_call_neg(grad, &n));
  return em_call_mul_Tensor(n, c, out);
}
em_status formula_pow_scalar(em_tensor *grad, em_tensor *self, em_scalar exponent, em_tensor **out) {
  if (em_scalar_equal(exponent, 0)) return zeros_like(self, out);
  OWN p = NULL;
  OWN d = NULL;
  OWN c = NULL;
  EM_PASS(em_call_pow_Tensor_Scalar(self, formula_scalar_sub(exponent, em_scalar_int(1)), &p));
  EM_PASS(formula_scale(p, exponent, &d));
  EM_PASS(formula_conj(d, &c));
  return em_call_mul_Tensor(grad, c, out);
}
em_status formula_pow_self(em_tensor *grad, em_tensor *self, em_tensor *exponent, em_tensor **out) {
  OWN less = NULL;
  OWN p = NULL;
  OWN d = NULL;
  OWN c = NULL;
  OWN g = NULL;
  OWN constant = NULL;
  EM_PASS(em_call_sub_Scalar(exponent, em_scalar_int(1), em_scalar_int(1), &less));
  EM_PASS(em_call_pow_Tensor_Tensor(self, less, &p));
  EM_PASS(em_call_mul_Tensor(exponent, p, &d));
  EM_PASS(formula_conj(d, &c));
  EM_PASS(em_call_mul_Tensor(grad, c, &g));
  EM_PASS(em_call_eq_Scalar(exponent, em_scalar_int(0), &constant));
  return em_call_where_ScalarSelf(constant, em_scalar_double(0), g, out);
}
static em_status not_negative(em_tensor *t, em_tensor **out) {
  OWN re = NULL;
  if (em_dtype_is_complex(t->dtype)) EM_PASS(em_call_real(t, &re));
  else EM_PASS(same(t, &re));
  return em_call_ge_Scalar(re, em_scalar_int(0), out);
}
em_status formula_pow_exponent(em_tensor *grad, em_tensor *self, em_tensor *exponent, em_tensor *result,
                               em_tensor **out) {
  OWN ge = NULL;
  OWN zero = NULL;
  OWN flat = NULL;
  OWN log = NULL;
  OWN d = NULL;
  OWN c = NULL;
  OWN w = NULL;
  EM_PASS(not_negative(exponent, &ge));
  EM_PASS(em_call_eq_Scalar(self, em_scalar_int(0), &zero));
  EM_PASS(em_call_logical_and(ge, zero, &flat));  // 0 ** x is 0 around here
  EM_PASS(em_call_log(self, &log));
  EM_PASS(em_call_mul_Tensor(result, log, &d));
  EM_PASS(formula_conj(d, &c));
  EM_PASS(em_call_where_ScalarSelf(flat, em_scalar_double(0), c, &w));
  return em_call_mul_Tensor(grad, w, out);
}
em_status formula_pow_scalar_base(em_tensor *grad, em_scalar base, em_tensor *exponent, em_tensor *result,
                                  em_tensor **out) {
  em_c128 b = em_scalar_to_c128(base);
  em_scalar log_base = base.kind == EM_SCALAR_COMPLEX || em_dtype_is_complex(exponent->dtype)
                           ? em_scalar_complex(log(hypot(b.re, b.im)), atan2(b.im, b.re)) : em_scalar_double(log(b.re));
  OWN d = NULL;
  OWN c = NULL;
  OWN w = NULL;
  OWN ge = NULL;
  EM_PASS(em_call_mul_Scalar(result, log_base, &d));
  EM_PASS(formula_conj(d, &c));
  if (b.re != 0 || b.im != 0) return em_call_mul_Tensor(grad, c, out);
  EM_PASS(not_negative(exponent, &ge));
  EM_PASS(em_call_where_ScalarSelf(ge, em_scalar_double(0), c, &w));
  return em_call_mul_Tensor(grad, w, out);
}
em_status formula_larger(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out) {
  OWN tie = NULL;
  OWN half = NULL;
  OWN shared = NULL;
  OWN less = NULL;
  EM_PASS(em_call_eq_Tensor(self, other, &tie));
  EM_PASS(em_call_mul_Scalar(grad, em_scalar_double(0.5), &half));
  EM_PASS(em_call_where_self(tie, half, grad, &shared));
  EM_PASS(em_call_lt_Tensor(self, other, &less));
  return em_call_masked_fill_Scalar(shared, less, em_scalar_int(0), out);
}
em_status formula_fmax(em_tensor *grad, em_tensor *self, em_tensor *other, bool first, em_tensor **out) {
  OWN ge = NULL;
  OWN nan = NULL;
  OWN mine = NULL;
  OWN theirs = NULL;
  EM_PASS(em_call_ge_Tensor(self, other, &ge));
  EM_PASS(em_call_isnan(other, &nan));
  EM_PASS(em_call_logical_or(ge, nan, &mine));
  if (!first) return em_call_masked_fill_Scalar(grad, mine, em_scalar_int(0), out);
  EM_PASS(em_call_logical_not(mine, &theirs));
  return em_call_masked_fill_Scalar(grad, theirs, em_scalar_int(0), out);
}
em_status formula_clamp(em_tensor *grad, em_tensor *self, em_scalar min, em_scalar max, em_tensor **out) {
  OWN ge = NULL;
  OWN le = NULL;
  OWN both = NULL;
  if (em_scalar_given(min)) EM_PASS(em_call_ge_Scalar(self, min, &ge));
  if (em_scalar_given(max)) EM_PASS(em_call_le_Scalar(self, max, &le));
  if (ge == NULL && le == NULL) return same(grad, out);
  if (ge != NULL && le != NULL) EM_PASS(em_call_logical_and(ge, le, &both));
  return em_call_where_ScalarOther(both != NULL ? both : ge != NULL ? ge : le, grad, em_scalar_int(0), out);
}
em_status formula_clamp_tensor(em_tensor *grad, em_tensor *self, em_tensor *min, em_tensor *max, em_tensor **out) {
  OWN ge = NULL;
  OWN le = NULL;
  OWN both = NULL;
  if (min != NULL) EM_PASS(em_call_ge_Tensor(self, min, &ge));
  if (max != NULL) EM_PASS(em_call_le_Tensor(self, max, &le));
  if (ge == NULL && le == NULL) return same(grad, out);
  if (ge != NULL && le != NULL) EM_PASS(em_call_logical_and(ge, le, &both));
  return em_call_where_ScalarOther(both != NULL ? both : ge != NULL ? ge : le, grad, em_scalar_int(0), out);
}
// The upper bound wins where the bounds cross.
em_status formula_clamp_bounds(em_tensor *grad, em_tensor *self, em_tensor *min, em_tensor *max, em_bools mask,
                               em_tensor **gmin, em_tensor **gmax) {
  OWN crossed = NULL;
  OWN ordered = NULL;
  if (min != NULL && max != NULL) {
    EM_PASS(em_call_lt_Tensor(min, max, &ordered));
    EM_PASS(em_call_lt_Tensor(max, min, &crossed));
  }
  if (min != NULL && mask.p[1]) {
    OWN lt = NULL;
    OWN at = NULL;
    EM_PASS(em_call_lt_Tensor(self, min, &lt));
    if (ordered != NULL) EM_PASS(em_call_logical_and(lt, ordered, &at));
    EM_PASS(em_call_where_ScalarOther(at != NULL ? at : lt, grad, em_scalar_int(0), gmin));
  }
  if (max != NULL && mask.p[2]) {
    OWN gt = NULL;
    OWN at = NULL;
    EM_PASS(em_call_gt_Tensor(self, max, &gt));
    if (crossed != NULL) EM_PASS(em_call_logical_or(gt, crossed, &at));
    EM_PASS(em_call_where_ScalarOther(at != NULL ? at : gt, grad, em_scalar_int(0), gmax));
  }
  return EM_OK;
}

// ---- second derivatives -------------------------------------------------------------------------------------------

// grad * grad_output * d
static em_status times_both(em_tensor *grad, em_tensor *grad_output, em_tensor *d, em_tensor **out) {
  OWN g = NULL;
  EM_PASS(em_call_mul_Tensor(grad, grad_output, &g));
  return em_call_mul_Tensor(g, d, out);
}
// a * x + b
static em_status affine(em_tensor *x, double a, double b, em_tensor **out) {
  OWN t = NULL;
  EM_PASS(em_call_mul_Scalar(x, em_scalar_double(a), &t));
  return em_call_add_Scalar(t, em_scalar_double(b), em_scalar_int(1), out);
}
static em_status square(em_tensor *x, em_tensor **out) { return em_call_mul_Tensor(x, x, out); }

// exact: phi(x) * (2 - x^2), phi the normal density.
static em_status gelu_curvature(em_tensor *x, em_tensor **out) {
  OWN x2 = NULL;
  OWN h = NULL;
  OWN e = NULL;
  OWN phi = NULL;
  OWN f = NULL;
  EM_PASS(square(x, &x2));
  EM_PASS(em_call_mul_Scalar(x2, em_scalar_double(-0.5), &h));
  EM_PASS(em_call_exp(h, &e));
  EM_PASS(em_call_mul_Scalar(e, em_scalar_double(0.3989422804014327), &phi));
  EM_PASS(affine(x2, -1, 2, &f));
  return em_call_mul_Tensor(phi, f, out);
}
// With u = b (x + k x^3), t = tanh(u): (1 - t^2) (u' + x u'' / 2 - x t u'^2).
static em_status gelu_tanh_curvature(em_tensor *x, em_tensor **out) {
  const double b = 0.7978845608028654, k = 0.044715;
  OWN x2 = NULL;
  OWN inner = NULL;
  OWN u = NULL;
  OWN t = NULL;
  OWN t2 = NULL;
  OWN s = NULL;
  OWN u1 = NULL;
  OWN u1sq = NULL;
  OWN xt = NULL;
  OWN last = NULL;
  OWN first = NULL;
  OWN sum = NULL;
  EM_PASS(square(x, &x2));
  EM_PASS(affine(x2, b * k, b, &inner));
  EM_PASS(em_call_mul_Tensor(inner, x, &u));
  EM_PASS(em_call_tanh(u, &t));
  EM_PASS(square(t, &t2));
  EM_PASS(affine(t2, -1, 1, &s));
  EM_PASS(affine(x2, 3 * b * k, b, &u1));
  EM_PASS(square(u1, &u1sq));
  EM_PASS(em_call_mul_Tensor(x, t, &xt));
  EM_PASS(em_call_mul_Tensor(xt, u1sq, &last));
  EM_PASS(affine(x2, 6 * b * k, b, &first));  // u' + x u'' / 2
  EM_PASS(em_call_sub_Tensor(first, last, em_scalar_int(1), &sum));
  return em_call_mul_Tensor(s, sum, out);
}
em_status formula_gelu_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, const char *approximate,
                              em_tensor **out) {
  OWN d = NULL;
  if (strcmp(approximate, "tanh") == 0) EM_PASS(gelu_tanh_curvature(self, &d));
  else EM_PASS(gelu_curvature(self, &d));
  return times_both(grad, grad_output, d, out);
}
// s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x).
em_status formula_silu_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_tensor **out) {
  OWN s = NULL;
  OWN one_s = NULL;
  OWN slope = NULL;
  OWN a = NULL;
  OWN b = NULL;
  OWN c = NULL;
  OWN d = NULL;
  EM_PASS(em_call_sigmoid(self, &s));
  EM_PASS(affine(s, -1, 1, &one_s));
  EM_PASS(em_call_mul_Tensor(s, one_s, &slope));
  EM_PASS(affine(s, -2, 1, &a));
  EM_PASS(em_call_mul_Tensor(self, a, &b));
  EM_PASS(affine(b, 1, 2, &c));
  EM_PASS(em_call_mul_Tensor(slope, c, &d));
  return times_both(grad, grad_output, d, out);
}
em_status formula_elu_second(em_tensor *grad, em_tensor *grad_output, em_scalar alpha, em_scalar scale,
                             em_scalar input_scale, bool is_result, em_tensor *x, em_tensor **out) {
  double a = em_scalar_to_double(alpha), s = em_scalar_to_double(scale), i = em_scalar_to_double(input_scale);
  OWN g = NULL;
  OWN e = NULL;
  OWN d = NULL;
  OWN h = NULL;
  OWN below = NULL;
  EM_PASS(em_call_mul_Tensor(grad, grad_output, &g));
  if (is_result) {
    EM_PASS(em_call_mul_Scalar(g, em_scalar_double(i), &d));
  } else {
    EM_PASS(em_call_mul_Scalar(x, em_scalar_double(i), &h));
    EM_PASS(em_call_exp(h, &e));
    OWN c = NULL;
    EM_PASS(em_call_mul_Scalar(e, em_scalar_double(a * s * i * i), &c));
    EM_PASS(em_call_mul_Tensor(g, c, &d));
  }
  EM_PASS(em_call_le_Scalar(x, em_scalar_int(0), &below));
  return em_call_where_ScalarOther(below, d, em_scalar_int(0), out);
}
em_status formula_softplus_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_scalar beta,
                                  em_scalar threshold, em_tensor **out) {
  OWN z = NULL;
  OWN s = NULL;
  OWN one_s = NULL;
  OWN slope = NULL;
  OWN d = NULL;
  OWN r = NULL;
  OWN linear = NULL;
  EM_PASS(em_call_mul_Scalar(self, beta, &z));
  EM_PASS(em_call_sigmoid(z, &s));
  EM_PASS(affine(s, -1, 1, &one_s));
  EM_PASS(em_call_mul_Tensor(s, one_s, &slope));
  EM_PASS(em_call_mul_Scalar(slope, beta, &d));
  EM_PASS(times_both(grad, grad_output, d, &r));
  EM_PASS(em_call_gt_Scalar(z, threshold, &linear));
  return em_call_masked_fill_Scalar(r, linear, em_scalar_int(0), out);
}
// v g - v sum(g y) - g sum(v y)
em_status formula_softmax_second(em_tensor *grad, em_tensor *grad_output, em_tensor *output, int64_t dim,
                                 em_tensor **out) {
  OWN vg = NULL;
  OWN gy = NULL;
  OWN vy = NULL;
  OWN sgy = NULL;
  OWN svy = NULL;
  OWN a = NULL;
  OWN b = NULL;
  OWN c = NULL;
  EM_PASS(em_call_mul_Tensor(grad, grad_output, &vg));
  EM_PASS(em_call_mul_Tensor(grad_output, output, &gy));
  EM_PASS(em_call_mul_Tensor(grad, output, &vy));
  EM_PASS(sum_over(gy, EM_INTS(dim), &sgy));
  EM_PASS(sum_over(vy, EM_INTS(dim), &svy));
  EM_PASS(em_call_mul_Tensor(grad, sgy, &a));
  EM_PASS(em_call_mul_Tensor(grad_output, svy, &b));
  EM_PASS(em_call_sub_Tensor(vg, a, em_scalar_int(1), &c));
  return em_call_sub_Tensor(c, b, em_scalar_int(1), out);
}
enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };
em_status formula_mse_grad_output(em_tensor *grad, em_tensor *self, em_tensor *target, int64_t reduction,
                                  em_tensor **out) {
  OWN d = NULL;
  OWN d2 = NULL;
  OWN g = NULL;
  EM_PASS(em_call_sub_Tensor(self, target, em_scalar_int(1), &d));
  EM_PASS(em_call_mul_Scalar(d, em_scalar_int(2), &d2));
  EM_PASS(em_call_mul_Tensor(d2, grad, &g));
  if (reduction == REDUCE_MEAN) return em_call_mean(g, EM_DTYPE_NONE, out);
  if (reduction == REDUCE_SUM) return em_call_sum(g, EM_DTYPE_NONE, out);
  return move(&g, out);
}
em_status formula_mse_second(em_tensor *grad, em_tensor *grad_output, int64_t reduction, em_tensor **out) {
  OWN g = NULL;
  EM_PASS(em_call_mul_Tensor(grad, grad_output, &g));
  return em_call_mul_Scalar(g, em_scalar_double(reduction == REDUCE_MEAN ? 2.0 / (double)g->numel : 2.0), out);
}
// The first derivative is linear in grad_output: its transpose is the loss itself.
em_status formula_bce_target(em_tensor *grad, em_tensor *self, em_tensor *weight, int64_t reduction, em_tensor **out) {
  OWN rest = NULL;
  OWN log_rest = NULL;
  OWN log_self = NULL;
  OWN slope = NULL;
  OWN all = NULL;
  OWN weighted = NULL;
  EM_PASS(formula_subtract_from(em_scalar_int(1), self, &rest));
  EM_PASS(em_call_log(rest, &log_rest));
  EM_PASS(em_call_log(self, &log_self));
  EM_PASS(em_call_sub_Tensor(log_rest, log_self, em_scalar_int(1), &slope));
  EM_PASS(em_call_mul_Tensor(slope, grad, &all));
  if (weight != NULL) EM_PASS(em_call_mul_Tensor(all, weight, &weighted));
  em_tensor *last = weight != NULL ? weighted : all;
  if (reduction != 1) return same(last, out);
  return em_call_div_Scalar(last, em_scalar_double((double)self->numel), out);
}
em_status formula_nll_second(em_tensor *grad, em_tensor *target, em_tensor *weight, int64_t reduction,
                             int64_t ignore_index, em_tensor **out) {
  OWN total = NULL;
  return em_call_nll_loss_forward(grad, target, weight, reduction, ignore_index, out, &total);
}
em_status formula_nll2d_second(em_tensor *grad, em_tensor *target, em_tensor *weight, int64_t reduction,
                               int64_t ignore_index, em_tensor **out) {
  OWN total = NULL;
  return em_call_nll_loss2d_forward(grad, target, weight, reduction, ignore_index, out, &total);
}

// ---- products -----------------------------------------------------------------------------------------------------

static bool column_major(em_ints sizes, em_ints strides) { return strides.p[0] == 1 && strides.p[1] == sizes.p[0]; }
static em_scalar conj_scalar(em_scalar s) {
  return s.kind == EM_SCALAR_COMPLEX ? em_scalar_complex(s.c.re, -s.c.im) : s;
}
// grad @ other^H, or other^H @ grad: computed transposed where the operand whose gradient this is was column-major.
static em_status gradient_product(em_tensor *grad, em_tensor *other, bool grad_first, bool turn, em_scalar alpha, em_tensor **out) {
  OWN conj = NULL;
  OWN t = NULL;
  OWN product = NULL;
  OWN turned = NULL;
  EM_PASS(formula_conj(other, &conj));
  EM_PASS(em_call_t(turn ? grad : conj, &t));
  em_tensor *g = turn ? t : grad, *o = turn ? conj : t;
  EM_PASS(grad_first != turn ? em_call_mm(g, o, &product) : em_call_mm(o, g, &product));
  if (turn) EM_PASS(em_call_t(product, &turned));
  return formula_scale(turn ? turned : product, conj_scalar(alpha), out);
}
em_status formula_mm_first(em_tensor *grad, em_tensor *mat2, em_ints sizes, em_ints strides, em_scalar alpha,
                           em_tensor **out) {
  return gradient_product(grad, mat2, true, column_major(sizes, strides), alpha, out);
}
em_status formula_mm_second(em_tensor *grad, em_tensor *mat1, em_ints sizes, em_ints strides, em_scalar alpha,
                            em_tensor **out) {
  return gradient_product(grad, mat1, false, column_major(sizes, strides), alpha, out);
}
em_status formula_embedding_second(em_tensor *grad, em_tensor *indices, int64_t padding_idx, em_tensor **out) {
  OWN flat = NULL;
  OWN rows = NULL;
  OWN pad = NULL;
  OWN column = NULL;
  OWN kept = NULL;
  EM_PASS(em_call_reshape(indices, EM_INTS(-1), &flat));
  EM_PASS(em_call_index_select(grad, 0, flat, &rows));
  if (padding_idx >= 0) {
    EM_PASS(em_call_eq_Scalar(flat, em_scalar_int(padding_idx), &pad));
    EM_PASS(em_call_unsqueeze(pad, 1, &column));
    EM_PASS(em_call_masked_fill_Scalar(rows, column, em_scalar_int(0), &kept));
  }
  int64_t sizes[EM_MAX_DIMS];
  int n = 0;
  for (int i = 0; i < indices->ndim; i++) sizes[n++] = indices->sizes[i];
  sizes[n++] = grad->sizes[1];
  return em_call_reshape(kept != NULL ? kept : rows, (em_ints){sizes, n}, out);
}

// ---- reductions ---------------------------------------------------------------------------------------------------

// Which dims were reduced: none named means all. Returns how many elements each result came from.
static int64_t reduced_dims(em_ints sizes, em_ints dims, bool *reduced) {
  int64_t count = 1;
  for (int64_t i = 0; i < sizes.n; i++) reduced[i] = dims.n <= 0;
  for (int64_t k = 0; k < dims.n && sizes.n > 0; k++) reduced[dims.p[k] < 0 ? dims.p[k] + sizes.n : dims.p[k]] = true;
  for (int64_t i = 0; i < sizes.n; i++) count *= reduced[i] ? sizes.p[i] : 1;
  return count;
}
// Puts the dims that a reduction dropped back in as 1.
static em_status restore(em_tensor *t, em_ints sizes, em_ints dims, bool keepdim, em_tensor **out) {
  OWN x = em_tensor_retain(t);
  bool reduced[EM_MAX_DIMS];
  reduced_dims(sizes, dims, reduced);
  for (int64_t i = 0; i < sizes.n && !keepdim; i++) {
    if (!reduced[i]) continue;
    em_tensor *y;
    EM_PASS(em_call_unsqueeze(x, i, &y));
    em_tensor_release(x);
    x = y;
  }
  return move(&x, out);
}
em_status formula_sum(em_tensor *grad, em_ints sizes, em_ints dims, bool keepdim, em_tensor **out) {
  OWN g = NULL;
  EM_PASS(restore(grad, sizes, dims, keepdim, &g));
  return em_call_expand(g, sizes, false, out);
}
em_status formula_mean(em_tensor *grad, em_ints sizes, em_ints dims, bool keepdim, em_tensor **out) {
  bool reduced[EM_MAX_DIMS];
  int64_t count = reduced_dims(sizes, dims, reduced);
  OWN g = NULL;
  EM_PASS(formula_sum(grad, sizes, dims, keepdim, &g));
  return em_call_div_Scalar(g, em_scalar_int(count), out);
}
em_status formula_var(em_tensor *grad, em_tensor *self, em_ints dims, em_scalar correction, bool keepdim,
                      em_tensor **out) {
  bool reduced[EM_MAX_DIMS];
  em_ints sizes = {self->sizes, self->ndim};
  double n =
      (double)reduced_dims(sizes, dims, reduced) - (em_scalar_given(correction) ? em_scalar_to_double(correction) : 1);
  OWN g = NULL;
  OWN scaled = NULL;
  OWN mean = NULL;
  OWN d = NULL;
  EM_PASS(restore(grad, sizes, dims, keepdim, &g));
  EM_PASS(em_call_mul_Scalar(g, em_scalar_double(2 / n), &scaled));
  EM_PASS(em_call_mean_dim(self, dims, true, EM_DTYPE_NONE, &mean));
  EM_PASS(em_call_sub_Tensor(self, mean, em_scalar_int(1), &d));
  return em_call_mul_Tensor(scaled, d, out);
}
em_status formula_std(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, em_scalar correction,
                      bool keepdim, em_tensor **out) {
  OWN twice = NULL;
  OWN q = NULL;
  OWN zero = NULL;
  OWN g = NULL;
  EM_PASS(em_call_mul_Scalar(result, em_scalar_int(2), &twice));
  EM_PASS(em_call_div_Tensor(grad, twice, &q));
  EM_PASS(em_call_eq_Scalar(result, em_scalar_int(0), &zero));
  EM_PASS(em_call_masked_fill_Scalar(q, zero, em_scalar_int(0), &g));
  return formula_var(g, self, dims, correction, keepdim, out);
}
em_status formula_var_mean(em_tensor *grad_var, em_tensor *grad_mean, em_tensor *self, em_ints dims,
                           em_scalar correction, bool keepdim, em_tensor **out) {
  OWN v = NULL;
  OWN m = NULL;
  EM_PASS(formula_var(grad_var, self, dims, correction, keepdim, &v));
  EM_PASS(formula_mean(grad_mean, (em_ints){self->sizes, self->ndim}, dims, keepdim, &m));
  return em_call_add_Tensor(v, m, em_scalar_int(1), out);
}

// One step of products_beside: p times (when `times`) p moved by `by` along dim, ones moving in.
static em_status times_moved(em_tensor *p, int64_t dim, int64_t by, bool after, bool times, em_tensor **out) {
  OWN kept = NULL;
  OWN edge = NULL;
  OWN ones = NULL;
  OWN moved = NULL;
  EM_PASS(em_call_narrow(p, dim, after ? by : 0, p->sizes[dim] - by, &kept));
  EM_PASS(em_call_narrow(p, dim, 0, by, &edge));
  EM_PASS(em_call_ones_like(edge, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &ones));
  EM_PASS(em_call_cat((em_tensors){(em_tensor *[]){after ? kept : ones, after ? ones : kept}, 2}, dim, &moved));
  return times ? em_call_mul_Tensor(p, moved, out) : move(&moved, out);
}
// The product of all elements before each (or after each) along dim, in log2(n) steps.
static em_status products_beside(em_tensor *self, int64_t dim, bool after, em_tensor **out) {
  em_tensor *p, *next;
  EM_PASS(times_moved(self, dim, 1, after, false, &p));
  for (int64_t by = 1; by < self->sizes[dim]; by *= 2) {
    em_status st = times_moved(p, dim, by, after, true, &next);
    em_tensor_release(p);
    if (st != EM_OK) return st;
    p = next;
  }
  *out = p;
  return EM_OK;
}
em_status formula_has_zero(em_tensor *t, bool *zero) {
  *zero = false;
  if (t->device.type == EM_DEVICE_META) return EM_OK;
  OWN eq = NULL;
  OWN any = NULL;
  em_scalar s;
  EM_PASS(em_call_eq_Scalar(t, em_scalar_int(0), &eq));
  EM_PASS(em_call_any(eq, &any));
  EM_PASS(em_tensor_item(any, &s));
  *zero = s.i != 0;
  return EM_OK;
}
// The product of the others: result / self, or where some element is 0 without a division, so that this can be
// differentiated again. grad and result have size 1 along dim.
static em_status prod_along(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out) {
  OWN others = NULL;
  OWN c = NULL;
  bool zero;
  EM_PASS(formula_has_zero(self, &zero));
  if (zero) {
    OWN before = NULL;
    OWN after = NULL;
    EM_PASS(products_beside(self, dim, false, &before));
    EM_PASS(products_beside(self, dim, true, &after));
    EM_PASS(em_call_mul_Tensor(before, after, &others));
  } else {
    EM_PASS(em_call_div_Tensor(result, self, &others));
  }
  EM_PASS(formula_conj(others, &c));
  return em_call_mul_Tensor(grad, c, out);
}
em_status formula_prod(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out) {
  OWN flat = NULL;
  OWN x = NULL;
  OWN g = NULL;
  EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
  EM_PASS(em_call_to_dtype(flat, result->dtype, false, false, EM_FORMAT_NONE, &x));
  EM_PASS(prod_along(grad, x, result, 0, &g));
  return em_call_reshape(g, (em_ints){self->sizes, self->ndim}, out);
}
em_status formula_prod_dim(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, bool keepdim,
                           em_tensor **out) {
  if (self->ndim == 0) return same(grad, out);
  em_ints sizes = {self->sizes, self->ndim};
  OWN x = NULL;
  OWN g = NULL;
  OWN r = NULL;
  EM_PASS(em_call_to_dtype(self, result->dtype, false, false, EM_FORMAT_NONE, &x));
  EM_PASS(restore(grad, sizes, EM_INTS(dim), keepdim, &g));
  EM_PASS(restore(result, sizes, EM_INTS(dim), keepdim, &r));
  return prod_along(g, x, r, dim < 0 ? dim + self->ndim : dim, out);
}

// grad / norm^power, nothing where the norm is 0.
static em_status norm_scale(em_tensor *grad, em_tensor *norm, double power, em_tensor **out) {
  OWN d = NULL;
  OWN q = NULL;
  OWN zero = NULL;
  EM_PASS(em_call_pow_Tensor_Scalar(norm, em_scalar_double(power), &d));
  EM_PASS(em_call_div_Tensor(grad, d, &q));
  EM_PASS(em_call_eq_Scalar(norm, em_scalar_int(0), &zero));
  return em_call_masked_fill_Scalar(q, zero, em_scalar_int(0), out);
}
// sign(x) |x|^(p-1). Below p = 1 that has no value at 0, and the gradient is 0 there.
static em_status norm_slope(em_tensor *self, em_tensor *size, em_tensor *sign, double p, em_tensor **out) {
  OWN power = NULL;
  EM_PASS(em_call_pow_Tensor_Scalar(size, em_scalar_double(p < 2 ? p - 1 : p - 2), &power));
  if (p >= 2) return em_call_mul_Tensor(self, power, out);
  if (p >= 1) return em_call_mul_Tensor(sign, power, out);
  OWN zero = NULL;
  OWN finite = NULL;
  EM_PASS(em_call_eq_Scalar(self, em_scalar_int(0), &zero));
  EM_PASS(em_call_masked_fill_Scalar(power, zero, em_scalar_int(0), &finite));
  return em_call_mul_Tensor(sign, finite, out);
}
em_status formula_norm(em_tensor *grad, em_tensor *self, em_tensor *result, em_scalar ord, em_ints dims, bool keepdim,
                       em_tensor **out) {
  double p = em_scalar_to_double(ord);
  em_ints sizes = {self->sizes, self->ndim};
  OWN g = NULL;
  OWN norm = NULL;
  OWN size = NULL;
  OWN sign = NULL;
  OWN slope = NULL;
  OWN scale = NULL;
  if (p == 0) return EM_OK;  // undefined: a count has no slope
  EM_PASS(restore(grad, sizes, dims, keepdim, &g));
  EM_PASS(restore(result, sizes, dims, keepdim, &norm));
  if (p == 2) {
    EM_PASS(norm_scale(g, norm, 1, &scale));
    return em_call_mul_Tensor(self, scale, out);
  }
  EM_PASS(em_call_sgn(self, &sign));
  if (p == 1) return em_call_mul_Tensor(sign, g, out);
  EM_PASS(em_call_abs(self, &size));
  if (isinf(p)) {  // the extremes share the gradient
    EM_PASS(formula_extremes(g, size, norm, dims, true, true, &scale));
    return em_call_mul_Tensor(sign, scale, out);
  }
  EM_PASS(norm_slope(self, size, sign, p, &slope));
  EM_PASS(norm_scale(g, norm, p - 1, &scale));
  return em_call_mul_Tensor(slope, scale, out);
}

// The elements that equal the extreme share the gradient evenly. A nan is an extreme that nothing equals (amax: the
// gradient is nan, too), unless nan_counts (max: the nans share it).
em_status formula_extremes(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, bool keepdim,
                           bool nan_counts, em_tensor **out) {
  em_ints sizes = {self->sizes, self->ndim};
  OWN g = NULL;
  OWN r = NULL;
  OWN eq = NULL;
  OWN nan_x = NULL;
  OWN nan_r = NULL;
  OWN nans = NULL;
  OWN mask = NULL;
  OWN count = NULL;
  OWN share = NULL;
  EM_PASS(restore(grad, sizes, dims, keepdim, &g));
  EM_PASS(restore(result, sizes, dims, keepdim, &r));
  EM_PASS(em_call_eq_Tensor(self, r, &eq));
  if (nan_counts) {
    EM_PASS(em_call_isnan(self, &nan_x));
    EM_PASS(em_call_isnan(r, &nan_r));
    EM_PASS(em_call_logical_and(nan_x, nan_r, &nans));
    EM_PASS(em_call_logical_or(eq, nans, &mask));
  } else {
    EM_PASS(same(eq, &mask));
  }
  EM_PASS(sum_over(mask, dims, &count));
  EM_PASS(em_call_div_Tensor(g, count, &share));
  return em_call_mul_Tensor(share, mask, out);
}
em_status formula_selected(em_tensor *grad, int64_t dim, em_tensor *indices, em_ints sizes, bool keepdim,
                           em_tensor **out) {
  if (sizes.n == 0) return same(grad, out);
  OWN g = NULL;
  OWN i = NULL;
  OWN z = NULL;
  if (keepdim) {
    EM_PASS(same(grad, &g));
    EM_PASS(same(indices, &i));
  } else {
    EM_PASS(em_call_unsqueeze(grad, dim, &g));
    EM_PASS(em_call_unsqueeze(indices, dim, &i));
  }
  EM_PASS(new_zeros(grad, sizes, &z));
  return em_call_scatter_src(z, dim, i, g, out);
}
em_status formula_logsumexp(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, bool keepdim,
                            em_tensor **out) {
  em_ints sizes = {self->sizes, self->ndim};
  OWN g = NULL;
  OWN r = NULL;
  OWN d = NULL;
  OWN e = NULL;
  OWN c = NULL;
  EM_PASS(restore(grad, sizes, dims, keepdim, &g));
  EM_PASS(restore(result, sizes, dims, keepdim, &r));
  EM_PASS(em_call_sub_Tensor(self, r, em_scalar_int(1), &d));
  EM_PASS(em_call_exp(d, &e));
  EM_PASS(em_call_conj(e, &c));
  return em_call_mul_Tensor(g, c, out);
}

// ---- views and joins ----------------------------------------------------------------------------------------------

em_status formula_sum_to(em_tensor *grad, em_ints sizes, em_tensor **out) {
  em_input_meta meta = {.known = 1, .dtype = grad->dtype, .device = grad->device, .ndim = (uint8_t)sizes.n};
  meta.sizes = (int64_t *)(uintptr_t)sizes.p;
  return em_engine_fit(&meta, grad, NULL, 0, out);
}

// Whether some elements of this geometry may be one.
static bool may_overlap(em_ints size, em_ints stride) {
  bool used[EM_MAX_DIMS] = {false};
  int64_t reach = 0;
  for (int64_t k = 0; k < size.n; k++) {
    int64_t best = -1;
    for (int64_t i = 0; i < size.n; i++)
      if (!used[i] && size.p[i] != 1 && (best < 0 || stride.p[i] < stride.p[best])) best = i;
    if (best < 0) return false;
    if (stride.p[best] <= reach) return true;
    reach += stride.p[best] * (size.p[best] - 1);
    used[best] = true;
  }
  return false;
}
static int64_t extent(em_ints size, em_ints stride, int64_t offset) {
  int64_t last = offset;
  for (int64_t i = 0; i < size.n; i++) {
    if (size.p[i] == 0) return 0;
    last += (size.p[i] - 1) * stride.p[i];
  }
  return last + 1;
}
// Adds t's elements to a flat tensor of n zeros, where a window of this geometry has them.
static em_status spread(em_tensor *t, int64_t n, em_ints size, em_ints stride, int64_t offset, em_tensor **out) {
  OWN flat = NULL;
  OWN numbers = NULL;
  OWN window = NULL;
  OWN index = NULL;
  OWN values = NULL;
  EM_PASS(new_zeros(t, EM_INTS(n), &flat));
  if (!may_overlap(size, stride)) {
    EM_PASS(em_call_as_strided(flat, size, stride, em_some_int(offset), &window));
    EM_PASS(em_call_copy_(window, t, false));
    return move(&flat, out);
  }
  EM_PASS(em_call_arange(em_scalar_int(n), EM_I64, -1, t->device, -1, &numbers));
  EM_PASS(em_call_as_strided(numbers, size, stride, em_some_int(offset), &window));
  EM_PASS(em_call_reshape(window, EM_INTS(-1), &index));
  EM_PASS(em_call_reshape(t, EM_INTS(-1), &values));
  return em_call_index_add(flat, 0, index, values, em_scalar_int(1), out);
}
em_status formula_as_strided(em_tensor *grad, em_ints in_size, em_ints in_stride, int64_t in_offset, em_ints size,
                             em_ints stride, em_opt_int offset, em_tensor **out) {
  int64_t out_offset = offset.has ? offset.v : in_offset, low = out_offset < in_offset ? out_offset : in_offset;
  int64_t n = extent(size, stride, out_offset - low), m = extent(in_size, in_stride, in_offset - low);
  if (n == 0 || m == 0) return new_zeros(grad, in_size, out);
  if (m > n) n = m;
  OWN flat = NULL;
  EM_PASS(spread(grad, n, size, stride, out_offset - low, &flat));
  if (may_overlap(in_size, in_stride)) {  // one element stood for several: they share what it got
    OWN ones = NULL;
    OWN count = NULL;
    EM_PASS(em_call_new_ones(grad, in_size, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &ones));
    EM_PASS(spread(ones, n, in_size, in_stride, in_offset - low, &count));
    em_tensor *shared;
    EM_PASS(em_call_div_Tensor(flat, count, &shared));
    em_tensor_release(flat);
    flat = shared;
  }
  return em_call_as_strided(flat, in_size, in_stride, em_some_int(in_offset - low), out);
}
em_status formula_permute(em_tensor *grad, em_ints dims, em_tensor **out) {
  int64_t back[EM_MAX_DIMS];
  for (int64_t i = 0; i < dims.n; i++) back[dims.p[i] < 0 ? dims.p[i] + dims.n : dims.p[i]] = i;
  return em_call_permute(grad, (em_ints){back, dims.n}, out);
}
em_status formula_select(em_tensor *grad, em_ints sizes, int64_t dim, int64_t index, em_tensor **out) {
  OWN z = NULL;
  OWN window = NULL;
  EM_PASS(new_zeros(grad, sizes, &z));
  EM_PASS(em_call_select_int(z, dim, index, &window));
  EM_PASS(em_call_copy_(window, grad, false));
  return move(&z, out);
}
em_status formula_slice(em_tensor *grad, em_ints sizes, int64_t dim, em_opt_int start, em_opt_int end, int64_t step,
                        em_tensor **out) {
  OWN z = NULL;
  OWN window = NULL;
  EM_PASS(new_zeros(grad, sizes, &z));
  EM_PASS(em_call_slice_Tensor(z, dim, start, end, step, &window));
  EM_PASS(em_call_copy_(window, grad, false));
  return move(&z, out);
}
em_status formula_diagonal(em_tensor *grad, em_ints sizes, int64_t offset, int64_t dim1, int64_t dim2,
                           em_tensor **out) {
  OWN z = NULL;
  OWN window = NULL;
  EM_PASS(new_zeros(grad, sizes, &z));
  EM_PASS(em_call_diagonal(z, offset, dim1, dim2, &window));
  EM_PASS(em_call_copy_(window, grad, false));
  return move(&z, out);
}
em_status formula_unfold(em_tensor *grad, em_ints sizes, int64_t dim, int64_t size, int64_t step, em_tensor **out) {
  int64_t n = 1;
  for (int64_t i = 0; i < sizes.n; i++) n *= sizes.p[i];
  OWN numbers = NULL;
  OWN shaped = NULL;
  OWN windows = NULL;
  OWN index = NULL;
  OWN values = NULL;
  OWN z = NULL;
  OWN flat = NULL;
  EM_PASS(em_call_arange(em_scalar_int(n), EM_I64, -1, grad->device, -1, &numbers));
  EM_PASS(em_call_reshape(numbers, sizes, &shaped));
  EM_PASS(em_call_unfold(shaped, dim, size, step, &windows));
  EM_PASS(em_call_reshape(windows, EM_INTS(-1), &index));
  EM_PASS(em_call_reshape(grad, EM_INTS(-1), &values));
  EM_PASS(new_zeros(grad, EM_INTS(n), &z));
  EM_PASS(em_call_index_add(z, 0, index, values, em_scalar_int(1), &flat));
  return em_call_reshape(flat, sizes, out);
}

static em_status fill_in(const em_node *node, em_tensors grads, em_tensor_list *out) {
  EM_PASS(em_tensor_list_new(grads.n, out));
  for (int64_t i = 0; i < grads.n; i++) {
    em_status st = formula_grad(node, i, grads.p[i], &out->p[i]);
    if (st != EM_OK) {
      em_tensor_list_clear(out);
      return st;
    }
  }
  return EM_OK;
}
em_status formula_cat_grads(const em_node *node, em_tensors grads, int64_t dim, em_tensor **out) {
  em_tensor_list l;
  EM_PASS(fill_in(node, grads, &l));
  em_status st = em_call_cat((em_tensors){l.p, l.n}, dim, out);
  em_tensor_list_clear(&l);
  return st;
}
em_status formula_stack_grads(const em_node *node, em_tensors grads, int64_t dim, em_tensor **out) {
  em_tensor_list l;
  EM_PASS(fill_in(node, grads, &l));
  em_status st = em_call_stack((em_tensors){l.p, l.n}, dim, out);
  em_tensor_list_clear(&l);
  return st;
}
em_status formula_list_size(em_tensors l, int64_t dim, em_saved_ints *out) {
  int64_t fixed[16], *p = fixed;
  if (l.n > 16 && (p = em_alloc(sizeof *p * (size_t)l.n)) == NULL) return EM_NOMEM(sizeof *p * (size_t)l.n);
  bool all_flat = true;
  for (int64_t i = 0; i < l.n; i++) all_flat &= l.p[i]->ndim == 1;
  for (int64_t i = 0; i < l.n; i++)
    p[i] = !all_flat && l.p[i]->ndim == 1 && l.p[i]->numel == 0 ? -1 : formula_size(l.p[i], dim);
  em_status st = em_saved_ints_set(out, (em_ints){p, l.n});
  if (p != fixed) em_free(p, sizeof *p * (size_t)l.n);
  return st;
}
em_status formula_cat(em_tensor *grad, em_ints lengths, int64_t dim, em_tensor_list *out) {
  EM_PASS(em_tensor_list_new(lengths.n, out));
  em_status st = EM_OK;
  int64_t at = 0;
  for (int64_t i = 0; i < lengths.n && st == EM_OK; i++) {
    int64_t n = lengths.p[i];
    if (n < 0) {
      st = new_zeros(grad, EM_INTS(0), &out->p[i]);
      continue;
    }
    st = em_call_narrow(grad, dim, at, n, &out->p[i]);
    at += n;
  }
  if (st != EM_OK) em_tensor_list_clear(out);
  return st;
}

// ---- indexing and layers ------------------------------------------------------------------------------------------

em_status formula_masked_select(em_tensor *grad, em_ints sizes, em_tensor *mask, em_tensor **out) {
  em_shape shape = {.ndim = (int)sizes.n};
  for (int64_t i = 0; i < sizes.n; i++) shape.sizes[i] = sizes.p[i];
  EM_PASS(em_shape_broadcast(&shape, mask->ndim, mask->sizes));
  OWN z = NULL;
  OWN m = NULL;
  EM_PASS(new_zeros(grad, (em_ints){shape.sizes, shape.ndim}, &z));
  EM_PASS(em_call_expand(mask, (em_ints){shape.sizes, shape.ndim}, false, &m));
  return em_call_index_put(z, (em_tensors){&m, 1}, grad, false, out);
}
em_status formula_take(em_tensor *grad, em_ints sizes, em_tensor *index, em_tensor **out) {
  int64_t n = 1;
  for (int64_t i = 0; i < sizes.n; i++) n *= sizes.p[i];
  OWN z = NULL;
  OWN i = NULL;
  OWN g = NULL;
  OWN flat = NULL;
  EM_PASS(new_zeros(grad, EM_INTS(n), &z));
  EM_PASS(em_call_reshape(index, EM_INTS(-1), &i));
  EM_PASS(em_call_reshape(grad, EM_INTS(-1), &g));
  EM_PASS(em_call_index_put(z, (em_tensors){&i, 1}, g, true, &flat));
  return em_call_reshape(flat, sizes, out);
}
em_status formula_dropout(em_tensor *grad, em_tensor *mask, double p, em_opt_bool train, em_tensor **out) {
  double scale = train != 1 ? 1 : p == 1 ? 0 : 1 / (1 - p);
  OWN g = NULL;
  EM_PASS(em_call_mul_Tensor(grad, mask, &g));
  return formula_scale(g, em_scalar_double(scale), out);
}
