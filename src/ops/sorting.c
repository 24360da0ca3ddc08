// sorting.c: checks of sort, topk, kthvalue and searchsorted; argsort, msort, bucketize, isin.
#include <string.h>
#include "../dispatch/sort_plan.h"
#include "copy.h"
#include "gen_ops.h"
#include "own.h"

static int64_t length_of(const em_tensor *t, int64_t dim) { return t->ndim == 0 ? 1 : t->sizes[dim]; }
static void want_room(em_plan *p, const em_tensor *self, int64_t dim) {
  const int64_t n = length_of(self, dim);
  if (self->numel > 0 && self->device.type != EM_DEVICE_META)
    p->workspace = em_priv_sort_workspace(self->dtype, self->numel / n, n);
}

static em_status check_length(const em_tensor *self, int64_t dim, const char *op) {  // positions are kept in 32 bits
  if (length_of(self, dim) <= UINT32_MAX) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: a dimension of %lld elements is too large", op, (long long)length_of(self, dim));
}

// ---- sort
em_status check_sort(em_tensor *self, int64_t dim, bool descending, em_plan *p) {
  (void)descending;
  if (em_dtype_is_complex(self->dtype)) return em_fail(EM_ERR_RUNTIME, " Sort does not support complex dtypes on CPU");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  EM_PASS(check_length(self, dim, "sort"));
  p->attr[0] = dim;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, self->sizes, self->device);
  int64_t strides[EM_MAX_DIMS];
  EM_PASS(em_priv_format_strides(self, EM_FORMAT_PRESERVE, strides));
  for (int i = 0; i < 2; i++) {
    p->out[i].strided = true;
    if (self->ndim > 0) memcpy(p->out[i].strides, strides, sizeof(int64_t) * self->ndim);
  }
  want_room(p, self, dim);
  return EM_OK;
}
em_status check_sort_stable(em_tensor *self, em_opt_bool stable, int64_t dim, bool descending, em_plan *p) {
  (void)stable;
  return check_sort(self, dim, descending, p);
}
static em_status order_of(em_tensor *self, int64_t dim, bool descending, bool want_values, em_tensor **out) {
  EM_OWN values = NULL;
  EM_OWN indices = NULL;
  EM_PASS(em_call_sort(self, dim, descending, &values, &indices));
  return em_priv_give(want_values ? &values : &indices, out);
}
em_status c_argsort(em_tensor *self, int64_t dim, bool descending, em_tensor **out) {
  return order_of(self, dim, descending, false, out);
}
em_status c_argsort_stable(em_tensor *self, bool stable, int64_t dim, bool descending, em_tensor **out) {
  (void)stable;
  return order_of(self, dim, descending, false, out);
}
em_status c_msort(em_tensor *self, em_tensor **out) { return order_of(self, 0, false, true, out); }

// ---- topk, kthvalue
em_status check_topk(em_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, em_plan *p) {
  (void)largest, (void)sorted;
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (k < 0 || k > length_of(self, dim)) return em_fail(EM_ERR_RUNTIME, "selected index k out of range");
  if (em_dtype_is_complex(self->dtype)) return em_fail(EM_ERR_RUNTIME, " topk does not support complex dtypes on CPU");
  if (self->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "topk does not support bool dtypes on CPU");
  EM_PASS(check_length(self, dim, "topk"));
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < self->ndim; d++) sizes[d] = d == dim ? k : self->sizes[d];
  p->attr[0] = dim;
  em_plan_output_set(p, self->dtype, self->ndim, sizes, self->device);
  em_plan_output_set(p, EM_I64, self->ndim, sizes, self->device);
  want_room(p, self, dim);
  return EM_OK;
}
em_status check_kthvalue(em_tensor *self, int64_t k, int64_t dim, bool keepdim, em_plan *p) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  const int64_t n = length_of(self, dim);
  if (self->ndim > 0 && n == 0)
    return em_fail(EM_ERR_INDEX, "kthvalue(): Expected reduction dim %lld to have non-zero size.", (long long)dim);
  if (k < 1 || k > n)
    return em_fail(EM_ERR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (long long)dim);
  if (em_dtype_is_complex(self->dtype) || self->dtype == EM_BOOL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"kthvalue_cpu\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  EM_PASS(check_length(self, dim, "kthvalue"));
  int64_t sizes[EM_MAX_DIMS];
  int m = 0;
  for (int d = 0; d < self->ndim; d++)
    if (d != dim || keepdim) sizes[m++] = d == dim ? 1 : self->sizes[d];
  p->attr[0] = dim;
  p->apart = 1;
  em_plan_output_set(p, self->dtype, m, sizes, self->device);
  em_plan_output_set(p, EM_I64, m, sizes, self->device);
  want_room(p, self, dim);
  return EM_OK;
}

// ---- searchsorted
static const char *const wrong_out[2] = {
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether "
    "out_int32 flag is True, but we got output tensor's dtype %s and out_int32 flag is False",
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether "
    "out_int32 flag is True, but we got output tensor's dtype %s and out_int32 flag is True"};
static em_status check_search_side(const char *side, bool right) {
  if (side == NULL) return EM_OK;
  if (strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
    return em_fail(EM_ERR_RUNTIME, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
  if (right && strcmp(side, "left") == 0)
    return em_fail(EM_ERR_RUNTIME, "torch.searchsorted(): side and right can't be set to opposites, got side of %s while "
                                   "right was True", side);
  return EM_OK;
}
em_status check_searchsorted(em_tensor *seq, em_tensor *self, bool out_int32, bool right, const char *side, em_tensor *sorter,
                             em_plan *p) {
  char a[256], b[256];
  EM_PASS(check_search_side(side, right));
  if (sorter != NULL) {
    if (!em_tensor_same_sizes(seq, sorter))
      return em_fail(EM_ERR_RUNTIME,
                     "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor %sand got "
                     "sorter tensor %s",
                     em_shape_format(seq->ndim, seq->sizes, a, sizeof a), em_shape_format(sorter->ndim, sorter->sizes, b, sizeof b));
    if (sorter->dtype != EM_I64)
      return em_fail(EM_ERR_RUNTIME, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
                     em_dtype_scalar_name(sorter->dtype));
  }
  if (self->ndim == 0 && seq->ndim != 1)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
                   "boundaries tensor dim(%d) and input value's dim(0) numel(1)",
                   seq->ndim);
  if (seq->ndim == 0)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool fits = seq->ndim == 1 || seq->ndim == self->ndim;
  for (int d = 0; fits && seq->ndim > 1 && d < seq->ndim - 1; d++) fits = seq->sizes[d] == self->sizes[d];
  if (!fits)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                   "tensor and input value tensor must match, but we got boundaries tensor %s and input value tensor %s",
                   em_shape_format(seq->ndim, seq->sizes, a, sizeof a), em_shape_format(self->ndim, self->sizes, b, sizeof b));
  if (out_int32 && seq->sizes[seq->ndim - 1] >= INT32_MAX)
    return em_fail(EM_ERR_RUNTIME, "torch.searchsorted(): the size of boundaries' last dimension should be less than %d, but we "
                                   "got %lld", INT32_MAX, (long long)seq->sizes[seq->ndim - 1]);
  em_promote_state s;
  em_promote_init(&s);
  em_promote_add(&s, seq);
  em_promote_add(&s, self);
  const int common = em_promote_result(&s);
  if (em_dtype_is_complex(common) || common == EM_BOOL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"searchsorted_out_cpu\" not implemented for '%s'", em_dtype_scalar_name(common));
  p->attr[0] = common;
  p->attr[1] = right || (side != NULL && strcmp(side, "right") == 0);
  p->out_dtype_error = EM_ERR_RUNTIME;
  p->out_dtype_words = wrong_out[out_int32];
  em_plan_output_set(p, out_int32 ? EM_I32 : EM_I64, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status c_searchsorted_scalar(em_tensor *seq, em_scalar self, bool out_int32, bool right, const char *side,
                                em_tensor *sorter, em_tensor **out) {
  EM_OWN v = NULL;
  EM_PASS(em_tensor_wrap_scalar(self, &v));
  return em_call_searchsorted_Tensor(seq, v, out_int32, right, side, sorter, out);
}
em_status c_bucketize(em_tensor *self, em_tensor *boundaries, bool out_int32, bool right, em_tensor **out) {
  if (boundaries->ndim != 1)
    return em_fail(EM_ERR_RUNTIME, "boundaries tensor must be 1 dimension, but got dim(%d)", boundaries->ndim);
  return em_call_searchsorted_Tensor(boundaries, self, out_int32, right, NULL, NULL, out);
}
em_status c_bucketize_scalar(em_scalar self, em_tensor *boundaries, bool out_int32, bool right, em_tensor **out) {
  EM_OWN v = NULL;
  EM_PASS(em_tensor_wrap_scalar(self, &v));
  return em_call_bucketize_Tensor(v, boundaries, out_int32, right, out);
}

// ---- isin
static em_status check_isin(const em_tensor *t) {
  if (t->dtype != EM_BOOL && !em_dtype_is_complex(t->dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Unsupported input type encountered for isin(): %s", em_dtype_scalar_name(t->dtype));
}
em_status c_isin(em_tensor *elements, em_tensor *tests, bool assume_unique, bool invert, em_tensor **out) {
  (void)assume_unique;
  EM_PASS(check_isin(elements));
  EM_PASS(check_isin(tests));
  em_promote_state s;
  em_promote_init(&s);
  em_promote_add(&s, elements);
  em_promote_add(&s, tests);
  const int common = em_promote_result(&s);
  EM_OWN t = NULL;
  const em_device device = tests->device.type == EM_DEVICE_META ? tests->device : elements->device;
  EM_PASS(em_tensor_new(elements->ndim, elements->sizes, EM_BOOL, device, &t));
  if (t->device.type == EM_DEVICE_META || t->numel == 0) return em_priv_give(&t, out);
  EM_OWN e = NULL;
  EM_OWN dense = NULL;
  EM_OWN cast = NULL;
  EM_OWN flat = NULL;
  EM_OWN sorted = NULL;
  EM_PASS(em_call_to_dtype(elements, common, false, false, EM_FORMAT_NONE, &e));
  EM_PASS(em_call_contiguous(e, EM_FORMAT_CONTIGUOUS, &dense));
  EM_PASS(em_call_to_dtype(tests, common, false, false, EM_FORMAT_NONE, &cast));
  EM_PASS(em_call_reshape(cast, EM_INTS(-1), &flat));
  EM_PASS(order_of(flat, 0, false, true, &sorted));
  EM_PASS(em_priv_isin(dense, sorted, invert, t));
  return em_priv_give(&t, out);
}
em_status c_isin_tensor_scalar(em_tensor *elements, em_scalar test, bool assume_unique, bool invert, em_tensor **out) {
  EM_OWN v = NULL;
  EM_PASS(em_tensor_wrap_scalar(test, &v));
  return em_call_isin_Tensor_Tensor(elements, v, assume_unique, invert, out);
}
em_status c_isin_scalar_tensor(em_scalar element, em_tensor *tests, bool assume_unique, bool invert, em_tensor **out) {
  EM_OWN v = NULL;
  EM_PASS(em_tensor_wrap_scalar(element, &v));
  return em_call_isin_Tensor_Tensor(v, tests, assume_unique, invert, out);
}
