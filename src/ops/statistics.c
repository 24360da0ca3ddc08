// statistics.c: medians, modes, moments, covariance, distances between tensors: checks, and what is made of other operators.
#include <math.h>
#include <string.h>
#include "gen_ops.h"
#include "own.h"

em_status em_priv_statistics_plan(em_plan *p, int64_t n, int64_t lines);  // src/backend/cpu/statistics.c

// ---- median and mode --------------------------------------------------------------------------------------------------

static em_status check_order(const em_tensor *self, bool takes_bool, const char *kernel) {
  if (!em_dtype_is_complex(self->dtype) && (takes_bool || self->dtype != EM_BOOL)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(self->dtype));
}
em_status check_median(em_tensor *self, em_plan *p) {
  EM_PASS(check_order(self, false, "median_cpu"));
  em_plan_output_set(p, self->dtype, 0, NULL, self->device);
  return em_priv_statistics_plan(p, self->numel, 1);
}
static em_status check_line(em_tensor *self, int64_t dim, bool keepdim, const char *name, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (self->ndim > 0 && self->sizes[dim] == 0)
    return em_fail(EM_ERR_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", name, (long long)dim);
  int64_t sizes[EM_MAX_DIMS], lines = 1;
  int n = 0;
  for (int d = 0; d < self->ndim; d++) {
    if (d != dim) lines *= sizes[n++] = self->sizes[d];
    else if (keepdim) sizes[n++] = 1;
  }
  em_plan_output_set(p, self->dtype, n, sizes, self->device);
  em_plan_output_set(p, EM_I64, n, sizes, self->device);
  p->attr[0] = dim;
  return em_priv_statistics_plan(p, self->ndim > 0 ? self->sizes[dim] : 1, lines);
}
em_status check_median_dim(em_tensor *self, int64_t dim, bool keepdim, em_plan *p) {
  EM_PASS(check_order(self, false, "median_cpu"));
  return check_line(self, dim, keepdim, "median", p);
}
em_status check_mode(em_tensor *self, int64_t dim, bool keepdim, em_plan *p) {
  EM_PASS(check_order(self, true, "mode_cpu"));
  return check_line(self, dim, keepdim, "mode", p);
}

// ---- counts and means -------------------------------------------------------------------------------------------------

static em_status count(em_tensor *self, em_ints dims, em_tensor **out) {
  em_tensor *there;
  EM_PASS(em_call_ne_Scalar(self, em_scalar_int(0), &there));
  em_status st = em_call_sum_dim_IntList(there, dims, false, EM_DTYPE_NONE, out);
  em_tensor_release(there);
  return st;
}
em_status c_count_nonzero(em_tensor *self, em_opt_int dim, em_tensor **out) {
  return count(self, dim.has ? (em_ints){&dim.v, 1} : EM_INTS_NONE, out);
}
em_status c_count_nonzero_dims(em_tensor *self, em_ints dim, em_tensor **out) { return count(self, dim, out); }

em_status check_nansum(em_tensor *self) {
  if (!em_dtype_is_complex(self->dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "nansum on CPU does not support complex inputs");
}
em_status c_nanmean(em_tensor *self, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  if (em_dtype_is_integral(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "nanmean(): expected input to have floating point or complex dtype but got %s",
                   em_dtype_scalar_name(self->dtype));
  em_status st = EM_OK;
  em_tensor *nan = NULL, *there = NULL, *n = NULL, *sum = NULL;
  EM_TRY(em_call_isnan(self, &nan));
  EM_TRY(em_call_logical_not(nan, &there));
  EM_TRY(em_call_sum_dim_IntList(there, dim, keepdim, EM_DTYPE_NONE, &n));
  EM_TRY(em_call_nansum(self, dim, keepdim, dtype, &sum));
  EM_TRY(em_call_div_Tensor(sum, n, out));
fail:
  em_tensor_release(nan);
  em_tensor_release(there);
  em_tensor_release(n);
  em_tensor_release(sum);
  return st;
}
em_status c_std_mean_dim(em_tensor *self, em_ints dim, bool unbiased, bool keepdim, em_tensor **out0, em_tensor **out1) {
  em_status st = em_call_std_mean_correction(self, dim, em_scalar_int(unbiased), keepdim, out0, out1);
  em_status told = em_priv_warn_degrees(st, "std_mean", self, unbiased, out0);
  if (st == EM_OK && told != EM_OK) EM_CLEAR_TENSOR(out1);
  return told;
}
em_status c_std_mean(em_tensor *self, bool unbiased, em_tensor **out0, em_tensor **out1) {
  return c_std_mean_dim(self, EM_INTS_NONE, unbiased, false, out0, out1);
}
em_status check_aminmax(em_tensor *self, em_opt_int dim) {
  if (em_dtype_is_complex(self->dtype)) return check_order(self, true, "aminmax_cpu");
  if (self->numel > 0 || dim.has) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
}

// ---- norms --------------------------------------------------------------------------------------------------------------

static em_status check_renorm(em_tensor *self, em_scalar p, em_scalar maxnorm) {
  if (p.kind == EM_SCALAR_COMPLEX) return em_fail(EM_ERR_RUNTIME, "renorm: p must be real-valued");
  if (!(em_scalar_to_double(p) > 0)) return em_fail(EM_ERR_RUNTIME, "renorm: non-positive-norm not supported");
  if (maxnorm.kind == EM_SCALAR_COMPLEX) return em_fail(EM_ERR_RUNTIME, "renorm: maxnorm must be real-valued");
  if (!(em_scalar_to_double(maxnorm) >= 0))
    return em_fail(EM_ERR_RUNTIME, "renorm: expected maxnorm to be >= 0 but got %g", em_scalar_to_double(maxnorm));
  if (self->ndim > 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "renorm: input needs at least 2 dimensions, got %d dimensions", self->ndim);
}
em_status c_renorm(em_tensor *self, em_scalar p, int64_t dim, em_scalar maxnorm, em_tensor **out) {
  EM_PASS(check_renorm(self, p, maxnorm));
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  int64_t dims[EM_MAX_DIMS];
  int n = 0;
  for (int d = 0; d < self->ndim; d++)
    if (d != dim) dims[n++] = d;
  em_status st = EM_OK;
  em_tensor *norm = NULL, *large = NULL, *shifted = NULL, *inverse = NULL, *factor = NULL, *scale = NULL, *scaled = NULL;
  const int wide = self->dtype == EM_F16 || self->dtype == EM_BF16 ? EM_F32 : EM_DTYPE_NONE;
  EM_TRY(em_call_linalg_vector_norm(self, p, (em_ints){dims, n}, true, wide, &norm));
  EM_TRY(em_call_gt_Scalar(norm, maxnorm, &large));
  EM_TRY(em_call_add_Scalar(norm, em_scalar_double(1e-7), em_scalar_int(1), &shifted));
  EM_TRY(em_call_reciprocal(shifted, &inverse));
  EM_TRY(em_call_mul_Scalar(inverse, maxnorm, &factor));
  EM_TRY(em_call_where_ScalarOther(large, factor, em_scalar_double(1), &scale));
  if (scale->dtype != em_dtype_to_real(self->dtype)) {
    em_tensor *cast;
    EM_TRY(em_call_to_dtype(scale, self->dtype, false, false, EM_FORMAT_NONE, &cast));
    em_tensor_release(scale);
    scale = cast;
  }
  EM_TRY(em_call_mul_Tensor(self, scale, &scaled));
  EM_TRY(em_call_contiguous(scaled, EM_FORMAT_CONTIGUOUS, out));
fail:
  em_tensor_release(scaled);
  em_tensor_release(norm);
  em_tensor_release(large);
  em_tensor_release(shifted);
  em_tensor_release(inverse);
  em_tensor_release(factor);
  em_tensor_release(scale);
  return st;
}
em_status c_dist(em_tensor *self, em_tensor *other, em_scalar p, em_tensor **out) {
  em_tensor *d;
  EM_PASS(em_call_sub_Tensor(self, other, em_scalar_int(1), &d));
  em_status st = em_call_norm_Scalar(d, p, out);
  em_tensor_release(d);
  return st;
}

// ---- covariance -----------------------------------------------------------------------------------------------------------

static em_status check_weights(em_tensor *w, int64_t n, bool whole, const char *name) {
  if (w == NULL) return EM_OK;
  if (w->ndim > 1)
    return em_fail(EM_ERR_RUNTIME, "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions", name, name, w->ndim);
  if (whole ? !em_dtype_is_integral(w->dtype) || w->dtype == EM_BOOL : !em_dtype_is_float(w->dtype))
    return em_fail(EM_ERR_RUNTIME, "cov(): expected %s to have %s dtype but got %s with %s dtype", name,
                   whole ? "integral" : "floating point", name, em_dtype_scalar_name(w->dtype));
  if (w->numel != n)
    return em_fail(EM_ERR_RUNTIME, "cov(): expected %s to have the same numel as there are observations in the input but got %lld != %lld",
                   name, (long long)w->numel, (long long)n);
  if (n == 0 || w->device.type == EM_DEVICE_META) return EM_OK;
  em_tensor *least;
  em_scalar value;
  EM_PASS(em_call_min(w, &least));
  em_status st = em_tensor_item(least, &value);
  em_tensor_release(least);
  EM_PASS(st);
  return em_scalar_to_double(value) >= 0 ? EM_OK : em_fail(EM_ERR_RUNTIME, "cov(): %s cannot be negative", name);
}
// The sum of the weights (or the number of observations) less the correction; nothing below 0.
static em_status degrees(em_tensor *sum, em_tensor *w, em_tensor *aweights, int64_t correction, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *squares = NULL, *total = NULL, *ratio = NULL, *less = NULL;
  if (w != NULL && aweights != NULL && correction != 0) {
    EM_TRY(em_call_mul_Tensor(w, aweights, &squares));
    EM_TRY(em_call_sum(squares, EM_DTYPE_NONE, &total));
    EM_TRY(em_call_div_Tensor(total, sum, &ratio));
    EM_TRY(em_call_sub_Tensor(sum, ratio, em_scalar_int(correction), &less));
  } else {
    EM_TRY(em_call_sub_Scalar(sum, em_scalar_int(correction), em_scalar_int(1), &less));
  }
  if (less->device.type != EM_DEVICE_META) {
    em_scalar value;
    EM_TRY(em_tensor_item(less, &value));
    if (em_scalar_to_double(value) <= 0)
      EM_TRY(em_warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."));
  }
  EM_TRY(em_call_clamp_min(less, em_scalar_int(0), out));
fail:
  em_tensor_release(squares);
  em_tensor_release(total);
  em_tensor_release(ratio);
  em_tensor_release(less);
  return st;
}
// The observations without their mean, and the same times the weights (NULL: all 1).
static em_status centred(em_tensor *x, em_tensor *w, em_tensor *sum, em_tensor **out, em_tensor **weighted) {
  em_status st = EM_OK;
  em_tensor *scaled = NULL, *total = NULL, *mean = NULL, *column = NULL;
  if (w != NULL) EM_TRY(em_call_mul_Tensor(x, w, &scaled));
  EM_TRY(em_call_sum_dim_IntList(w != NULL ? scaled : x, EM_INTS(1), false, EM_DTYPE_NONE, &total));
  EM_TRY(em_call_div_Tensor(total, sum, &mean));
  EM_TRY(em_call_unsqueeze(mean, 1, &column));
  EM_TRY(em_call_sub_Tensor(x, column, em_scalar_int(1), out));
  if (w != NULL) EM_TRY(em_call_mul_Tensor(*out, w, weighted));
  else *weighted = em_tensor_retain(*out);
fail:
  em_tensor_release(scaled);
  em_tensor_release(total);
  em_tensor_release(mean);
  em_tensor_release(column);
  return st;
}
em_status c_cov(em_tensor *self, int64_t correction, em_tensor *fweights, em_tensor *aweights, em_tensor **out) {
  if (self->ndim > 2)
    return em_fail(EM_ERR_RUNTIME, "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions", self->ndim);
  if (self->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "cov(): bool dtype is not supported for input");
  em_status st = EM_OK;
  em_tensor *x = NULL, *w = NULL, *sum = NULL, *n = NULL, *c = NULL, *cw = NULL, *t = NULL, *conj = NULL, *product = NULL, *ratio = NULL;
  if (self->ndim < 2) EM_TRY(em_call_reshape(self, EM_INTS(1, -1), &x));
  else x = em_tensor_retain(self);
  const int64_t count_ = x->sizes[1];
  EM_TRY(check_weights(fweights, count_, true, "fweights"));
  EM_TRY(check_weights(aweights, count_, false, "aweights"));
  if (fweights != NULL && aweights != NULL) EM_TRY(em_call_mul_Tensor(fweights, aweights, &w));
  else w = em_tensor_retain(fweights != NULL ? fweights : aweights);
  if (w != NULL) EM_TRY(em_call_sum(w, EM_DTYPE_NONE, &sum));
  else EM_TRY(em_call_scalar_tensor(em_scalar_int(count_), EM_I64, -1, self->device, -1, &sum));
  if (w != NULL && sum->device.type != EM_DEVICE_META) {
    em_scalar value;
    EM_TRY(em_tensor_item(sum, &value));
    if (em_scalar_to_double(value) == 0) EM_FAIL(EM_ERR_RUNTIME, "cov(): weights sum to zero, can't be normalized");
  }
  EM_TRY(degrees(sum, w, aweights, correction, &n));
  EM_TRY(centred(x, w, sum, &c, &cw));
  EM_TRY(em_call_t(cw, &t));
  if (em_dtype_is_complex(t->dtype)) EM_TRY(em_call_conj_physical(t, &conj));
  EM_TRY(em_call_mm(c, conj != NULL ? conj : t, &product));
  EM_TRY(em_call_div_Tensor(product, n, &ratio));
  EM_TRY(em_call_squeeze(ratio, out));
fail:;
  em_tensor *const all[] = {x, w, sum, n, c, cw, t, conj, product, ratio};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
static em_status clipped(em_tensor *c, em_tensor **out) {
  if (!em_dtype_is_complex(c->dtype)) return em_call_clamp(c, em_scalar_int(-1), em_scalar_int(1), out);
  em_status st = EM_OK;
  em_tensor *parts = NULL, *clip = NULL;
  EM_TRY(em_call_view_as_real(c, &parts));
  EM_TRY(em_call_clamp(parts, em_scalar_int(-1), em_scalar_int(1), &clip));
  EM_TRY(em_call_view_as_complex(clip, out));
fail:
  em_tensor_release(parts);
  em_tensor_release(clip);
  return st;
}
em_status c_corrcoef(em_tensor *self, em_tensor **out) {
  if (self->ndim > 2)
    return em_fail(EM_ERR_RUNTIME, "corrcoef(): expected input to have two or fewer dimensions but got an input with %d dimensions",
                   self->ndim);
  em_status st = EM_OK;
  em_tensor *c = NULL, *d = NULL, *real = NULL, *dev = NULL, *column = NULL, *row = NULL, *half = NULL, *whole = NULL;
  EM_TRY(em_call_cov(self, 1, NULL, NULL, &c));
  if (c->ndim == 0) {
    EM_TRY(em_call_div_Tensor(c, c, out));
    goto fail;
  }
  EM_TRY(em_call_diagonal(c, 0, 0, 1, &d));
  if (em_dtype_is_complex(d->dtype)) EM_TRY(em_call_real(d, &real));
  EM_TRY(em_call_sqrt(real != NULL ? real : d, &dev));
  EM_TRY(em_call_unsqueeze(dev, 1, &column));
  EM_TRY(em_call_unsqueeze(dev, 0, &row));
  EM_TRY(em_call_div_Tensor(c, column, &half));
  EM_TRY(em_call_div_Tensor(half, row, &whole));
  EM_TRY(clipped(whole, out));
fail:;
  em_tensor *const all[] = {c, d, real, dev, column, row, half, whole};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}

// ---- the cross product ------------------------------------------------------------------------------------------------------

em_status c_cross(em_tensor *self, em_tensor *other, em_opt_int dim, em_tensor **out) {
  if (dim.has) return em_call_linalg_cross(self, other, dim.v, out);
  EM_PASS(em_warn("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use "
                  "torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release."));
  for (int d = 0; d < self->ndim; d++)
    if (self->sizes[d] == 3) return em_call_linalg_cross(self, other, d, out);
  return em_fail(EM_ERR_RUNTIME, "no dimension of size 3 in input");
}
// t with its three slices along dim turned by `by`.
static em_status turned(em_tensor *t, int64_t dim, int64_t by, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *parts[2] = {NULL, NULL};
  EM_TRY(em_call_narrow(t, dim, by, 3 - by, &parts[0]));
  EM_TRY(em_call_narrow(t, dim, 0, by, &parts[1]));
  EM_TRY(em_call_cat((em_tensors){parts, 2}, dim, out));
fail:
  em_tensor_release(parts[0]);
  em_tensor_release(parts[1]);
  return st;
}
em_status c_linalg_cross(em_tensor *self, em_tensor *other, int64_t dim, em_tensor **out) {
  if (self->ndim != other->ndim) return em_fail(EM_ERR_RUNTIME, "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t given = dim;
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, false, &dim));
  if (self->sizes[dim] != 3 || other->sizes[dim] != 3)
    return em_fail(EM_ERR_RUNTIME, "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld", (long long)given,
                   (long long)self->sizes[dim], (long long)other->sizes[dim]);
  if (self->dtype != other->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(self->dtype),
                   em_dtype_scalar_name(other->dtype));
  if (self->dtype == EM_BOOL) return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"cross\" not implemented for 'Bool'");
  em_status st = EM_OK;
  em_tensor *a1 = NULL, *a2 = NULL, *b1 = NULL, *b2 = NULL, *left = NULL, *right = NULL;
  EM_TRY(turned(self, dim, 1, &a1));
  EM_TRY(turned(self, dim, 2, &a2));
  EM_TRY(turned(other, dim, 1, &b1));
  EM_TRY(turned(other, dim, 2, &b2));
  EM_TRY(em_call_mul_Tensor(a1, b2, &left));
  EM_TRY(em_call_mul_Tensor(a2, b1, &right));
  EM_TRY(em_call_sub_Tensor(left, right, em_scalar_int(1), out));
fail:;
  em_tensor *const all[] = {a1, a2, b1, b2, left, right};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}

// ---- quantiles ----------------------------------------------------------------------------------------------------------------

enum { Q_LINEAR, Q_LOWER, Q_HIGHER, Q_MIDPOINT, Q_NEAREST };
static em_status interpolation_of(const char *text, int *kind) {
  static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  for (*kind = 0; *kind < 5; (*kind)++)
    if (strcmp(text, names[*kind]) == 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", text);
}
static em_status check_quantile(em_tensor *self, em_tensor *q) {
  if (self->numel == 0) return em_fail(EM_ERR_RUNTIME, "quantile() input tensor must be non-empty");
  if (q->ndim > 1) return em_fail(EM_ERR_RUNTIME, "quantile() q must be a scalar or 1D tensor");
  if (self->dtype != EM_F32 && self->dtype != EM_F64)
    return em_fail(EM_ERR_RUNTIME, "quantile() input tensor must be either float or double dtype");
  if (self->dtype != q->dtype) return em_fail(EM_ERR_RUNTIME, "quantile() q tensor must be same dtype as the input tensor");
  if (q->numel == 0 || q->device.type == EM_DEVICE_META) return EM_OK;
  em_status st = EM_OK;
  em_tensor *least = NULL, *most = NULL;
  em_scalar a, b;
  EM_TRY(em_call_min(q, &least));
  EM_TRY(em_call_max(q, &most));
  EM_TRY(em_tensor_item(least, &a));
  EM_TRY(em_tensor_item(most, &b));
  if (!(em_scalar_to_double(a) >= 0 && em_scalar_to_double(b) <= 1))
    EM_FAIL(EM_ERR_RUNTIME, "quantile() q values must be in the range [0, 1]");
fail:
  em_tensor_release(least);
  em_tensor_release(most);
  return st;
}
// Where in the sorted rows the quantiles lie, [..., quantiles]. A row with nan answers nan: its last element; or nan are left out.
static em_status ranks_of(em_tensor *sorted, em_tensor *q, bool ignore_nan, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[8] = {NULL};
  const int64_t last = sorted->sizes[sorted->ndim - 1] - 1;
  EM_TRY(em_call_isnan(sorted, &t[0]));
  if (ignore_nan) {
    EM_TRY(em_call_logical_not(t[0], &t[1]));
    EM_TRY(em_call_sum_dim_IntList(t[1], EM_INTS(-1), true, EM_DTYPE_NONE, &t[2]));
    EM_TRY(em_call_sub_Scalar(t[2], em_scalar_int(1), em_scalar_int(1), &t[3]));
    EM_TRY(em_call_mul_Tensor(t[3], q, &t[4]));
    EM_TRY(em_call_clamp_min(t[4], em_scalar_int(0), &t[5]));
    EM_TRY(em_call_to_dtype(t[5], q->dtype, false, false, EM_FORMAT_NONE, out));
  } else {
    EM_TRY(em_call_any_dim(t[0], -1, true, &t[1]));
    EM_TRY(em_call_mul_Scalar(q, em_scalar_double((double)last), &t[2]));
    EM_TRY(em_call_where_ScalarSelf(t[1], em_scalar_double((double)last), t[2], out));
  }
fail:
  for (int i = 0; i < 8; i++) em_tensor_release(t[i]);
  return st;
}
// The values at ranks that need not be whole.
static em_status at_ranks(em_tensor *sorted, em_tensor *ranks, int kind, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t[8] = {NULL};
  if (kind == Q_LOWER) EM_TRY(em_call_floor(ranks, &t[0]));
  else if (kind == Q_HIGHER) EM_TRY(em_call_ceil(ranks, &t[0]));
  else if (kind == Q_NEAREST) EM_TRY(em_call_round(ranks, &t[0]));
  else t[0] = em_tensor_retain(ranks);
  EM_TRY(em_call_to_dtype(t[0], EM_I64, false, false, EM_FORMAT_NONE, &t[1]));
  if (kind != Q_LINEAR && kind != Q_MIDPOINT) {
    EM_TRY(em_call_gather(sorted, -1, t[1], false, out));
  } else {
    EM_TRY(em_call_gather(sorted, -1, t[1], false, &t[2]));
    EM_TRY(em_call_ceil(ranks, &t[3]));
    EM_TRY(em_call_to_dtype(t[3], EM_I64, false, false, EM_FORMAT_NONE, &t[4]));
    EM_TRY(em_call_gather(sorted, -1, t[4], false, &t[5]));
    if (kind == Q_MIDPOINT) EM_TRY(em_call_full_like(ranks, em_scalar_double(0.5), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE,
                                                     &t[6]));
    else EM_TRY(em_call_sub_Tensor(ranks, t[1], em_scalar_int(1), &t[6]));
    EM_TRY(em_call_lerp_Tensor(t[2], t[5], t[6], out));
  }
fail:
  for (int i = 0; i < 8; i++) em_tensor_release(t[i]);
  return st;
}
// values: [rows..., quantiles] -> the quantiles first, with the reduced dim kept as 1.
static em_status arranged(em_tensor *values, const em_tensor *self, bool scalar, em_opt_int dim, bool keepdim, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *first = NULL;
  if (scalar) EM_TRY(em_call_squeeze_dim(values, -1, &first));
  else EM_TRY(em_call_movedim_int(values, -1, 0, &first));
  if (!keepdim) {
    *out = first;
    return EM_OK;
  }
  if (dim.has) {
    const int64_t d = self->ndim == 0 ? 0 : dim.v < 0 ? dim.v + self->ndim : dim.v;
    EM_TRY(self->ndim == 0 ? em_call_alias(first, out) : em_call_unsqueeze(first, d + !scalar, out));
  } else {
    int64_t sizes[EM_MAX_DIMS + 1];
    int n = 0;
    if (!scalar) sizes[n++] = first->sizes[0];
    for (int d = 0; d < self->ndim && n < EM_MAX_DIMS; d++) sizes[n++] = 1;
    EM_TRY(em_call_reshape(first, (em_ints){sizes, n}, out));
  }
fail:
  em_tensor_release(first);
  return st;
}
static em_status quantile(em_tensor *self, em_tensor *q, em_opt_int dim, bool keepdim, const char *interpolation, bool ignore_nan,
                          em_tensor **out) {
  int kind;
  EM_PASS(check_quantile(self, q));
  EM_PASS(interpolation_of(interpolation, &kind));
  int64_t d = -1;
  if (dim.has) EM_PASS(em_shape_wrap_dim(dim.v, self->ndim, true, &d));
  em_status st = EM_OK;
  em_tensor *rows = NULL, *sorted = NULL, *order = NULL, *list = NULL, *ranks = NULL, *values = NULL;
  if (!dim.has || self->ndim == 0) EM_TRY(em_call_reshape(self, EM_INTS(-1), &rows));
  else EM_TRY(em_call_movedim_int(self, d, -1, &rows));
  EM_TRY(em_call_sort(rows, -1, false, &sorted, &order));
  EM_TRY(em_call_reshape(q, EM_INTS(-1), &list));
  EM_TRY(ranks_of(sorted, list, ignore_nan, &ranks));
  EM_TRY(at_ranks(sorted, ranks, kind, &values));
  EM_TRY(arranged(values, self, q->ndim == 0, dim, keepdim, out));
fail:;
  em_tensor *const all[] = {rows, sorted, order, list, ranks, values};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
static em_status quantile_of_number(em_tensor *self, double q, em_opt_int dim, bool keepdim, const char *interpolation, bool ignore_nan,
                                    em_tensor **out) {
  if (!(q >= 0 && q <= 1)) return em_fail(EM_ERR_RUNTIME, "quantile() q must be in the range [0, 1] but got %g", q);
  em_tensor *t;
  EM_PASS(em_call_scalar_tensor(em_scalar_double(q), self->dtype, -1, self->device, -1, &t));
  em_status st = quantile(self, t, dim, keepdim, interpolation, ignore_nan, out);
  em_tensor_release(t);
  return st;
}
em_status c_quantile(em_tensor *self, em_tensor *q, em_opt_int dim, bool keepdim, const char *interpolation, em_tensor **out) {
  return quantile(self, q, dim, keepdim, interpolation, false, out);
}
em_status c_nanquantile(em_tensor *self, em_tensor *q, em_opt_int dim, bool keepdim, const char *interpolation, em_tensor **out) {
  return quantile(self, q, dim, keepdim, interpolation, true, out);
}
em_status c_quantile_scalar(em_tensor *self, double q, em_opt_int dim, bool keepdim, const char *interpolation, em_tensor **out) {
  return quantile_of_number(self, q, dim, keepdim, interpolation, false, out);
}
em_status c_nanquantile_scalar(em_tensor *self, double q, em_opt_int dim, bool keepdim, const char *interpolation, em_tensor **out) {
  return quantile_of_number(self, q, dim, keepdim, interpolation, true, out);
}
