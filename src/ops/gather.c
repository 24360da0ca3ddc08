// gather.c: checks of gather, scatter, index_select, index_add and embedding.
#include <string.h>
#include "gen_ops.h"

static em_status check_index_dtype(const em_tensor *index, const char *op) {
  if (index->dtype == EM_I64 || index->dtype == EM_I32) return EM_OK;
  if (strcmp(op, "index_select") == 0)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected dtype int32 or int64 for index", op);
  if (strcmp(op, "index_add_") == 0)
    return em_fail(EM_ERR_RUNTIME, "%s(): Expected dtype int32/int64 for index but got: %s", op,
                   em_dtype_scalar_name(index->dtype));
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
    char x[256], y[256];
    for (int d = 0; d < a; d++) {
      bool over =
          (d != dim && size_at(index, d) > size_at(self, d)) || (src != NULL && size_at(index, d) > size_at(src, d));
      if (over)
        return em_fail(EM_ERR_RUNTIME, "Expected index %s to be no larger than self %s apart from dimension %lld%s",
                       em_shape_format(index->ndim, index->sizes, x, sizeof x),
                       em_shape_format(self->ndim, self->sizes, y, sizeof y), (long long)dim,
                       src != NULL ? " and to be no larger size than src" : "");
    }
  }
  p->attr[0] = dim;
  p->apart = 6;
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
    return em_fail(EM_ERR_INDEX,
                   "index_select(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %lld",
                   index->ndim, em_dtype_scalar_name(index->dtype), (long long)index->numel);
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
em_status check_index_add(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, em_scalar alpha,
                          em_plan *p) {
  (void)alpha;
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  EM_PASS(check_index_dtype(index, "index_add_"));
  if (index->ndim > 1)
    return em_fail(EM_ERR_INDEX, "index_add_(): Index is supposed to be a vector, but got dim: %d", index->ndim);
  if (self->dtype != source->dtype)
    return em_fail(EM_ERR_RUNTIME, "index_add_(): self (%s) and source (%s) must have the same scalar type",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(source->dtype));
  int a = self->ndim == 0 ? 1 : self->ndim, b = source->ndim == 0 ? 1 : source->ndim;
  if (a != b || size_at(source, dim) != index->numel)
    return em_fail(EM_ERR_RUNTIME,
                   "index_add_(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld",
                   (long long)index->numel, (long long)(a == b ? size_at(source, dim) : source->ndim), (long long)dim);
  for (int d = 0; d < a; d++)
    if (d != dim && size_at(self, d) != size_at(source, d))
      return em_fail(EM_ERR_RUNTIME,
                     "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                     "self.shape[%d] = %lld source.shape[%d] = %lld",
                     d, (long long)size_at(self, d), d, (long long)size_at(source, d));
  p->attr[0] = dim;
  p->apart = 6;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
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
  (void)scale;
  EM_PASS(check_ids(indices, "embedding_backward"));
  if (grad->ndim == 0) return em_fail(EM_ERR_RUNTIME, "embedding_dense_backward: grad_output needs a dimension");
  p->workspace = sizeof(int64_t) * (size_t)(num_weights > 0 ? num_weights : 1);
  em_plan_output_set(p, grad->dtype, 2, (int64_t[]){num_weights, grad->sizes[grad->ndim - 1]}, grad->device);
  return EM_OK;
}
