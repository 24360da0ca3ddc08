// gather.c: checks of gather, scatter, index_select, index_add, index_copy, their reductions, and embedding.
#include <stdio.h>
#include <string.h>
#include "../dispatch/index_along.h"
#include "gen_ops.h"

static em_status check_index_dtype(const em_tensor *index, const char *op) {
  if (index->dtype == EM_I64 || index->dtype == EM_I32) return EM_OK;
  if (strcmp(op, "index_select") == 0)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected dtype int32 or int64 for index", op);
  return em_fail(EM_ERR_RUNTIME, "%s(): Expected dtype int32/int64 for index", op);
}
static int64_t size_at(const em_tensor *t, int64_t d) { return t->ndim == 0 ? 1 : t->sizes[d]; }

em_status check_gather(em_tensor *self, int64_t dim, em_tensor *index, bool sparse_grad, em_plan *p) {
  (void)sparse_grad;
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (index->numel != 0) {
    EM_PASS(check_index_dtype(index, "gather"));
    int a = self->ndim == 0 ? 1 : self->ndim, b = index->ndim == 0 ? 1 : index->ndim;
    if (a != b) return em_fail(EM_ERR_RUNTIME, "Index tensor must have the same number of dimensions as input tensor");
    for (int d = 0; d < a; d++)
      if (d != dim && size_at(index, d) > size_at(self, d)) {
        char x[256], y[256];
        return em_fail(EM_ERR_RUNTIME,
                       "Size does not match at dimension %d expected index %s to be no larger than self %s apart from "
                       "dimension %lld",
                       d, em_shape_format(index->ndim, index->sizes, x, sizeof x),
                       em_shape_format(self->ndim, self->sizes, y, sizeof y), (long long)dim);
      }
  }
  p->attr[0] = dim;
  p->apart = 3;
  em_plan_output_set(p, self->dtype, index->ndim, index->sizes, self->device);
  return EM_OK;
}

static em_status check_scatter(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (src != NULL && src->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME, "scatter(): Expected self.dtype to be equal to src.dtype");
  if (index->numel != 0) {
    EM_PASS(check_index_dtype(index, "scatter"));
    int a = self->ndim == 0 ? 1 : self->ndim, b = index->ndim == 0 ? 1 : index->ndim,
        c = src == NULL || src->ndim == 0 ? (src == NULL ? a : 1) : src->ndim;
    if (a != b) return em_fail(EM_ERR_RUNTIME, "Index tensor must have the same number of dimensions as self tensor");
    if (a != c) return em_fail(EM_ERR_RUNTIME, "Index tensor must have the same number of dimensions as src tensor");
    char x[256], y[256], z[256];
    for (int d = 0; d < a; d++) {
      bool over =
          (d != dim && size_at(index, d) > size_at(self, d)) || (src != NULL && size_at(index, d) > size_at(src, d));
      if (over)
        return em_fail(EM_ERR_RUNTIME, "Expected index %s to be no larger than self %s apart from dimension %lld%s%s",
                       em_shape_format(index->ndim, index->sizes, x, sizeof x),
                       em_shape_format(self->ndim, self->sizes, y, sizeof y), (long long)dim,
                       src != NULL ? " and to be no larger size than src " : "",
                       src != NULL ? em_shape_format(src->ndim, src->sizes, z, sizeof z) : "");
    }
  }
  p->attr[0] = dim;
  p->apart = 6;
  p->over_self = true;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_scatter_src(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, em_plan *p) {
  return check_scatter(self, dim, index, src, p);
}
em_status check_scatter_add(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, em_plan *p) {
  return check_scatter(self, dim, index, src, p);
}
em_status check_scatter_value(em_tensor *self, int64_t dim, em_tensor *index, em_scalar value, em_plan *p) {
  (void)value;
  return check_scatter(self, dim, index, NULL, p);
}

em_status check_index_select(em_tensor *self, int64_t dim, em_tensor *index, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (index->ndim > 1)
    return em_fail(EM_ERR_INDEX, "index_select(): Index is supposed to be a vector");
  EM_PASS(check_index_dtype(index, "index_select"));
  if (self->ndim == 0 && index->numel != 1)
    return em_fail(EM_ERR_RUNTIME, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                   (long long)index->numel);
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
  if (self->ndim > 0) sizes[dim] = index->numel;
  p->attr[0] = dim;
  p->apart = 3;
  p->out_dtype_error = EM_ERR_RUNTIME;
  p->out_dtype_words = "index_select(): self and result must have the same scalar type (result has %s)";
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  return EM_OK;
}
// ---- whole slices along a dim
static em_status check_slices(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, const char *op, em_plan *p) {
  char x[256], y[256];
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (index->dtype != EM_I64 && index->dtype != EM_I32)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected dtype int32/int64 for index but got: %s", op, em_dtype_scalar_name(index->dtype));
  if (index->ndim > 1)
    return em_fail(EM_ERR_INDEX, "%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", op,
                   index->ndim, em_dtype_scalar_name(index->dtype), em_shape_format(index->ndim, index->sizes, x, sizeof x));
  if (self->dtype != source->dtype)
    return em_fail(EM_ERR_RUNTIME, "%s(): self (%s) and source (%s) must have the same scalar type", op,
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(source->dtype));
  const int n = self->ndim == 0 ? 1 : self->ndim, m = source->ndim == 0 ? 1 : source->ndim;
  bool fits = self->ndim == source->ndim;
  for (int d = 0; d < self->ndim && fits; d++) fits = d == dim || self->sizes[d] == source->sizes[d];
  if (dim < m && index->numel != size_at(source, dim) && (fits || self->ndim == source->ndim))
    return em_fail(EM_ERR_RUNTIME, "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld", op,
                   (long long)index->numel, (long long)size_at(source, dim), (long long)dim);
  if (!fits && !(n == 1 && source->ndim == 0 && index->numel == 1) && !(self->ndim == 0 && m == 1 && source->numel == 1))
    return em_fail(EM_ERR_RUNTIME,
                   "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                   "self.shape = %s source.shape = %s",
                   em_shape_format(self->ndim, self->sizes, x, sizeof x),
                   em_shape_format(source->ndim, source->sizes, y, sizeof y));
  p->attr[0] = dim;
  p->apart = 6;
  p->over_self = true;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_index_add(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, em_scalar alpha,
                          em_plan *p) {
  if (alpha.kind == EM_SCALAR_COMPLEX && !em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type %s without overflow", em_dtype_type_name(self->dtype));
  return check_slices(self, dim, index, source, "index_add_", p);
}
// The operation's number (index_along.h), -1 for a mean; EM_INDEX_GET when the name is none of them.
static int reduction_of(const char *name, bool sums) {
  static const struct { const char *name; int op; } all[] = {
      {"prod", EM_INDEX_MUL}, {"mean", -1}, {"amax", EM_INDEX_MAX}, {"amin", EM_INDEX_MIN}, {"sum", EM_INDEX_ADD}};
  for (int i = 0; i < (sums ? 5 : 4); i++)
    if (strcmp(name, all[i].name) == 0) return all[i].op;
  return EM_INDEX_GET;
}
static em_status refuse_dtype(int op, int dtype, const char *largest, const char *least, const char *mean) {
  const bool extreme = op == EM_INDEX_MAX || op == EM_INDEX_MIN;
  if (!(em_dtype_is_complex(dtype) && extreme) && !(dtype == EM_BOOL && op < 0)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'",
                 op == EM_INDEX_MAX ? largest : op == EM_INDEX_MIN ? least : mean, em_dtype_scalar_name(dtype));
}
em_status check_index_reduce(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, const char *reduce,
                             bool include_self, em_plan *p) {
  (void)include_self;
  const int op = reduction_of(reduce, false);
  if (op == EM_INDEX_GET)
    return em_fail(EM_ERR_RUNTIME, "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got %s.", reduce);
  EM_PASS(refuse_dtype(op, self->dtype, "maximum_cpu", "minimum_cpu", "index_reduce_mean"));
  p->attr[1] = op;
  return check_slices(self, dim, index, source, "index_reduce_", p);
}
static void shape_words(const em_tensor *t, int64_t dim, char *buf, size_t n) {  // "4 5": the sizes apart from dim
  size_t at = 0;
  buf[0] = 0;
  for (int d = 0; d < t->ndim && at + 24 < n; d++)
    if (d != dim) at += (size_t)snprintf(buf + at, n - at, at == 0 ? "%lld" : " %lld", (long long)t->sizes[d]);
}
em_status check_index_copy(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (index->ndim > 1)
    return em_fail(EM_ERR_INDEX, "index_copy_(): Index should have dimension 1 or 0 (got %d)", index->ndim);
  const int64_t n = index->numel;
  if (source->ndim == 0 && n != 1)
    return em_fail(EM_ERR_INDEX, "index_copy_(): When source is scalar, index should have one element (got %lld)", (long long)n);
  if (source->ndim != self->ndim && source->ndim != 0 && self->ndim != 0)
    return em_fail(EM_ERR_INDEX,
                   "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
                   "dimensionality (%d), destination dimensionality (%d)",
                   source->ndim, self->ndim);
  if (index->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "index_copy_(): Expected a long tensor for index, but got %s", em_dtype_scalar_name(index->dtype));
  if (self->dtype != source->dtype)
    return em_fail(EM_ERR_RUNTIME, "index_copy_(): self and source expected to have the same dtype, but got (self) %s and (source) %s",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(source->dtype));
  char x[512], y[512];
  shape_words(self, dim, x, sizeof x);
  shape_words(source, dim, y, sizeof y);
  if (strcmp(x, y) != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: %s at "
                   "dimension %lld and source slice shape: %s at dimension 0.",
                   x, (long long)dim, y);
  if (source->ndim > 0 && n != source->sizes[source->ndim > dim ? dim : 0])
    return em_fail(EM_ERR_INDEX, "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)", (long long)n,
                   (long long)source->sizes[source->ndim > dim ? dim : 0]);
  p->attr[0] = dim;
  p->apart = 6;
  p->over_self = true;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}

// ---- scatter with a reduction
static int two_ways(const char *reduce) {
  return strcmp(reduce, "add") == 0 ? EM_INDEX_ADD : strcmp(reduce, "multiply") == 0 ? EM_INDEX_MUL : EM_INDEX_GET;
}
em_status check_scatter_src_reduce(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, const char *reduce, em_plan *p) {
  p->attr[1] = two_ways(reduce);
  if (p->attr[1] == EM_INDEX_GET) return em_fail(EM_ERR_RUNTIME, "reduce argument must be either add or multiply.");
  EM_PASS(em_warn("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
                  "release. Use torch.scatter_reduce instead for more reduction options."));
  return check_scatter(self, dim, index, src, p);
}
em_status check_scatter_value_reduce(em_tensor *self, int64_t dim, em_tensor *index, em_scalar value, const char *reduce, em_plan *p) {
  (void)value;
  p->attr[1] = two_ways(reduce);
  if (p->attr[1] == EM_INDEX_GET) return em_fail(EM_ERR_RUNTIME, "reduce argument must be either add or multiply.");
  return check_scatter(self, dim, index, NULL, p);
}
em_status check_scatter_reduce(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, const char *reduce,
                               bool include_self, em_plan *p) {
  (void)include_self;
  const int op = reduction_of(reduce, true);
  if (op == EM_INDEX_GET)
    return em_fail(EM_ERR_RUNTIME, "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
  p->attr[1] = op;
  EM_PASS(check_scatter(self, dim, index, src, p));
  return refuse_dtype(op, self->dtype, "scatter_gather_tensor_cpu_reduce_amax", "scatter_gather_tensor_cpu_reduce_amin",
                      "scatter_gather_tensor_cpu_reduce_mean");
}

static em_status check_ids(const em_tensor *indices, const char *op) {
  if (indices->dtype == EM_I64 || indices->dtype == EM_I32) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
                 "got torch.%sTensor instead "
                 "(while checking arguments for %s)",
                 em_dtype_scalar_name(indices->dtype), op);
}
em_status check_embedding(em_tensor *weight, em_tensor *indices, int64_t padding_idx, bool scale, bool sparse,
                          em_plan *p) {
  (void)padding_idx;
  (void)scale;
  (void)sparse;
  if (weight->ndim != 2) return em_fail(EM_ERR_RUNTIME, "'weight' must be 2-D");
  EM_PASS(check_ids(indices, "embedding"));
  if (indices->ndim >= EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "embedding: at most %d dimensions are supported", EM_MAX_DIMS);
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, indices->sizes, sizeof(int64_t) * indices->ndim);
  sizes[indices->ndim] = weight->sizes[1];
  em_plan_output_set(p, weight->dtype, indices->ndim + 1, sizes, weight->device);
  return EM_OK;
}
em_status check_embedding_dense_backward(em_tensor *grad, em_tensor *indices, int64_t num_weights, int64_t padding_idx,
                                         bool scale, em_plan *p) {
  (void)padding_idx;
  EM_PASS(check_ids(indices, "embedding_backward"));
  if (grad->ndim == 0) return em_fail(EM_ERR_RUNTIME, "embedding_dense_backward: grad_output needs a dimension");
  const int64_t width = grad->sizes[grad->ndim - 1];
  int64_t numel;
  if (__builtin_mul_overflow(indices->numel, width, &numel) || numel != grad->numel)
    return em_fail(EM_ERR_RUNTIME, "shape '[%lld, %lld]' is invalid for input of size %lld", (long long)indices->numel, (long long)width,
                   (long long)grad->numel);
  if (num_weights < 0) return em_fail(EM_ERR_RUNTIME, "zeros: Dimension size must be non-negative.");
  if (scale) EM_PASS(em_plan_workspace_of(p, num_weights, sizeof(int64_t)));
  em_plan_output_set(p, grad->dtype, 2, (int64_t[]){num_weights, width}, grad->device);
  return EM_OK;
}
