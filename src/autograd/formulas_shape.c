// formulas_shape.c: helpers of derivatives_shape.yaml and derivatives_sorting.yaml. See formulas.h.
#include <string.h>
#include "../core/shape.h"
#include "formulas.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

// Every repetition's gradient summed: the result's dims taken apart into (repeats, size) pairs.
em_status formula_repeat(em_tensor *grad, em_ints repeats, em_ints sizes, em_tensor **out) {
  int64_t pairs[EM_MAX_DIMS], over[EM_MAX_DIMS], lead = repeats.n - sizes.n, n = 0, m = 0;
  bool none = false;
  for (int64_t d = 0; d < repeats.n; d++) {
    none |= repeats.p[d] == 0;
    if (repeats.p[d] != 1 || d < lead) {
      over[m++] = n;
      pairs[n++] = repeats.p[d];
    }
    if (d >= lead) pairs[n++] = sizes.p[d - lead];
  }
  if (none) return em_call_new_zeros(grad, sizes, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out);
  OWN apart = NULL;
  EM_PASS(em_call_reshape(grad, (em_ints){pairs, n}, &apart));
  if (m > 0) return em_call_sum_dim_IntList(apart, (em_ints){over, m}, false, EM_DTYPE_NONE, out);
  *out = em_tensor_retain(apart);
  return EM_OK;
}

em_status formula_roll(em_tensor *grad, em_ints shifts, em_ints dims, em_tensor **out) {
  int64_t fixed[EM_MAX_DIMS], *back = fixed;
  if (shifts.n > EM_MAX_DIMS && (back = em_alloc(sizeof *back * (size_t)shifts.n)) == NULL)
    return EM_NOMEM(sizeof *back * (size_t)shifts.n);
  for (int64_t i = 0; i < shifts.n; i++) back[i] = -shifts.p[i];
  em_status st = em_call_roll(grad, (em_ints){back, shifts.n}, dims, out);
  if (back != fixed) em_free(back, sizeof *back * (size_t)shifts.n);
  return st;
}
em_status formula_trace(em_tensor *grad, em_ints sizes, em_tensor **out) {
  OWN diagonal = NULL;
  OWN z = NULL;
  EM_PASS(em_call_new_zeros(grad, sizes, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &z));
  const int64_t n = sizes.p[0] < sizes.p[1] ? sizes.p[0] : sizes.p[1];
  EM_PASS(em_call_expand(grad, EM_INTS(n), false, &diagonal));
  return em_call_diagonal_scatter(z, diagonal, 0, 0, 1, out);
}

// A slice that index names twice was filled once.
em_status formula_index_fill_value(em_tensor *grad, int64_t dim, em_tensor *index, em_tensor **out) {
  OWN distinct = NULL;
  OWN none = NULL;
  OWN slices = NULL;
  EM_PASS(em_call__unique(index, false, false, &distinct, &none));
  EM_PASS(em_call_index_select(grad, dim, distinct, &slices));
  return em_call_sum(slices, EM_DTYPE_NONE, out);
}
em_status formula_index_copy_source(em_tensor *grad, int64_t dim, em_tensor *index, em_ints sizes, em_tensor **out) {
  OWN rows = NULL;
  EM_PASS(em_call_index_select(grad, dim, index, &rows));
  if (sizes.n > 0) return em_call_expand(rows, sizes, false, out);
  return em_call_reshape(rows, sizes, out);
}

// ---- reductions into chosen places: at one place of every line (an index of the source's shape), or whole slices (a vector)
typedef struct into {
  int64_t dim;
  em_tensor *index;
  bool slices;
} into;
static em_status pick(const into *w, em_tensor *t, em_tensor **out) {  // t's values at the places, in the source's shape
  return w->slices ? em_call_index_select(t, w->dim, w->index, out) : em_call_gather(t, w->dim, w->index, false, out);
}
static em_status add_at(const into *w, em_tensor *t, em_tensor *src, em_tensor **out) {
  return w->slices ? em_call_index_add(t, w->dim, w->index, src, em_scalar_int(1), out)
                   : em_call_scatter_add(t, w->dim, w->index, src, out);
}
static em_status zero_at(const into *w, em_tensor *t, em_tensor **out) {
  return w->slices ? em_call_index_fill_int_Scalar(t, w->dim, w->index, em_scalar_int(0), out)
                   : em_call_scatter_value(t, w->dim, w->index, em_scalar_int(0), out);
}
static em_status product_at(const into *w, em_tensor *t, em_tensor *src, bool include_self, em_tensor **out) {
  return w->slices ? em_call_index_reduce(t, w->dim, w->index, src, "prod", include_self, out)
                   : em_call_scatter_reduce_two(t, w->dim, w->index, src, "prod", include_self, out);
}
// A source may be larger than its index: what lies outside got nothing.
static em_status like_source(const into *w, em_tensor *g, em_tensor *src, em_tensor **out) {
  if (w->slices || em_tensor_same_sizes(g, src)) {
    *out = em_tensor_retain(g);
    return EM_OK;
  }
  OWN z = NULL;
  EM_PASS(em_call_new_zeros(g, (em_ints){src->sizes, src->ndim}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &z));
  OWN part = em_tensor_retain(z);
  for (int d = 0; d < src->ndim; d++) {
    em_tensor *next;
    EM_PASS(em_call_narrow(part, d, 0, g->sizes[d], &next));
    em_tensor_release(part);
    part = next;
  }
  EM_PASS(em_call_copy_(part, g, false));
  *out = em_tensor_retain(z);
  return EM_OK;
}
static em_status source_part(const into *w, em_tensor *src, em_tensor **out) {  // src as far as its index goes
  OWN part = em_tensor_retain(src);
  for (int d = 0; !w->slices && d < src->ndim; d++) {
    if (w->index->ndim == 0 || w->index->sizes[d] == src->sizes[d]) continue;
    em_tensor *next;
    EM_PASS(em_call_narrow(part, d, 0, w->index->sizes[d], &next));
    em_tensor_release(part);
    part = next;
  }
  *out = em_tensor_retain(part);
  return EM_OK;
}

static em_status mean_grads(const into *w, em_tensor *grad, em_tensor *self, em_tensor *src, bool include_self, em_tensor **gself,
                            em_tensor **gsrc) {
  OWN base = NULL;
  OWN ones = NULL;
  OWN n = NULL;
  OWN none = NULL;
  OWN count = NULL;
  OWN shared = NULL;
  if (include_self) EM_PASS(em_call_ones_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &base));
  else EM_PASS(em_call_zeros_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &base));
  EM_PASS(em_call_ones_like(src, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &ones));
  EM_PASS(add_at(w, base, ones, &n));
  EM_PASS(em_call_eq_Scalar(n, em_scalar_int(0), &none));
  EM_PASS(em_call_masked_fill_Scalar(n, none, em_scalar_int(1), &count));
  EM_PASS(em_call_div_Tensor(grad, count, &shared));
  *gself = em_tensor_retain(shared);
  return pick(w, shared, gsrc);
}
// The product of the others, without dividing by zero: a lone zero among what met in a place is taken for a one.
static em_status prod_grads(const into *w, em_tensor *grad, em_tensor *self, em_tensor *src, em_tensor *result, bool include_self,
                            em_tensor **gself, em_tensor **gsrc) {
  OWN zero = NULL;
  OWN ones = NULL;
  OWN others = NULL;
  OWN scaled = NULL;
  EM_PASS(em_call_eq_Scalar(self, em_scalar_int(0), &zero));
  EM_PASS(em_call_masked_fill_Scalar(self, zero, em_scalar_int(1), &ones));
  EM_PASS(product_at(w, ones, src, include_self, &others));
  EM_PASS(em_call_mul_Tensor(grad, others, &scaled));
  EM_PASS(em_call_div_Tensor(scaled, ones, gself));
  OWN src_zero = NULL;
  OWN as_number = NULL;
  OWN empty = NULL;
  OWN zeros = NULL;
  OWN met = NULL;
  OWN one = NULL;
  OWN lone = NULL;
  OWN filled = NULL;
  OWN product = NULL;
  OWN a = NULL;
  OWN at_lone = NULL;
  OWN b = NULL;
  OWN at_all = NULL;
  OWN safe = NULL;
  OWN divided = NULL;
  EM_PASS(em_call_eq_Scalar(src, em_scalar_int(0), &src_zero));
  EM_PASS(em_call_to_dtype(src_zero, self->dtype, false, false, EM_FORMAT_NONE, &as_number));
  EM_PASS(em_call_zeros_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &empty));
  EM_PASS(add_at(w, empty, as_number, &zeros));
  EM_PASS(pick(w, zeros, &met));
  EM_PASS(em_call_eq_Scalar(met, em_scalar_int(1), &one));
  EM_PASS(em_call_logical_and(src_zero, one, &lone));
  EM_PASS(em_call_masked_fill_Scalar(src, lone, em_scalar_int(1), &filled));
  EM_PASS(product_at(w, self, filled, include_self, &product));
  EM_PASS(em_call_mul_Tensor(grad, product, &a));
  EM_PASS(pick(w, a, &at_lone));
  EM_PASS(em_call_mul_Tensor(grad, result, &b));
  EM_PASS(pick(w, b, &at_all));
  EM_PASS(em_call_masked_fill_Scalar(src, src_zero, em_scalar_int(1), &safe));
  EM_PASS(em_call_div_Tensor(at_all, safe, &divided));
  return em_call_where_self(lone, at_lone, divided, gsrc);
}
// All that equal the extreme share its gradient; self only where it took part.
static em_status extreme_grads(const into *w, em_tensor *grad, em_tensor *self, em_tensor *src, em_tensor *result,
                               bool include_self, em_tensor **gself, em_tensor **gsrc) {
  OWN value = NULL;
  OWN self_eq = NULL;
  OWN self_is = NULL;
  OWN src_eq = NULL;
  OWN src_is = NULL;
  OWN count = NULL;
  OWN shared = NULL;
  OWN at = NULL;
  EM_PASS(pick(w, result, &value));
  EM_PASS(em_call_eq_Tensor(self, result, &self_eq));
  EM_PASS(em_call_to_dtype(self_eq, self->dtype, false, false, EM_FORMAT_NONE, &self_is));
  if (!include_self) {
    em_tensor *apart;
    EM_PASS(zero_at(w, self_is, &apart));
    em_tensor_release(self_is);
    self_is = apart;
  }
  EM_PASS(em_call_eq_Tensor(src, value, &src_eq));
  EM_PASS(em_call_to_dtype(src_eq, self->dtype, false, false, EM_FORMAT_NONE, &src_is));
  EM_PASS(add_at(w, self_is, src_is, &count));
  EM_PASS(em_call_div_Tensor(grad, count, &shared));
  EM_PASS(em_call_mul_Tensor(self_is, shared, gself));
  EM_PASS(pick(w, shared, &at));
  return em_call_mul_Tensor(src_is, at, gsrc);
}
static em_status reduce_grads(const into *w, em_tensor *grad, em_tensor *self, em_tensor *whole_src, const char *reduce,
                              bool include_self, em_tensor *result, em_bools mask, em_tensor **out0, em_tensor **out1) {
  OWN src = NULL;
  OWN gself = NULL;
  OWN gsrc = NULL;
  EM_PASS(source_part(w, whole_src, &src));
  if (strcmp(reduce, "sum") == 0) {
    gself = em_tensor_retain(grad);
    EM_PASS(pick(w, grad, &gsrc));
  } else if (strcmp(reduce, "mean") == 0) {
    EM_PASS(mean_grads(w, grad, self, src, include_self, &gself, &gsrc));
  } else if (strcmp(reduce, "prod") == 0) {
    EM_PASS(prod_grads(w, grad, self, src, result, include_self, &gself, &gsrc));
  } else {
    EM_PASS(extreme_grads(w, grad, self, src, result, include_self, &gself, &gsrc));
  }
  if (mask.p[0] && include_self) *out0 = em_tensor_retain(gself);
  else if (mask.p[0]) EM_PASS(zero_at(w, gself, out0));
  if (!mask.p[1]) return EM_OK;
  em_status st = like_source(w, gsrc, whole_src, out1);
  if (st != EM_OK) EM_CLEAR_TENSOR(out0);
  return st;
}
em_status formula_scatter_reduce(em_tensor *grad, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src,
                                 const char *reduce, bool include_self, em_tensor *result, em_bools mask, em_tensor **out0,
                                 em_tensor **out1) {
  into w = {dim, index, false};
  return reduce_grads(&w, grad, self, src, reduce, include_self, result, mask, out0, out1);
}
em_status formula_index_reduce(em_tensor *grad, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source,
                               const char *reduce, bool include_self, em_tensor *result, em_bools mask, em_tensor **out0,
                               em_tensor **out1) {
  into w = {dim, index, true};
  return reduce_grads(&w, grad, self, source, reduce, include_self, result, mask, out0, out1);
}
