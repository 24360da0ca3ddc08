// index.c: self[tensors]: masks to positions, broadcasting of index tensors, where the indexed dims go in the result.
#include "../dispatch/index_plan.h"
#include <string.h>
#include "gen_ops.h"

void em_index_plan_free(em_index_plan *p) { EM_CLEAR_TENSOR(&p->offsets); }

// The indices one a dimension of self: masks replaced by the positions of their true elements (one tensor a mask
// dimension).
typedef struct expanded {
  em_tensor *index[EM_MAX_DIMS];  // owned or NULL: the whole dimension
  int n;
} expanded;
static void expanded_free(expanded *e) {
  for (int i = 0; i < e->n; i++) em_tensor_release(e->index[i]);
}
static em_status add_mask(em_tensor *self, em_tensor *mask, int64_t position, expanded *e) {
  char a[256], b[256];
  for (int j = 0; j < mask->ndim; j++)
    if (e->n + j >= self->ndim || mask->sizes[j] != self->sizes[e->n + j])
      return em_fail(
          EM_ERR_INDEX,
          "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
          em_shape_format(mask->ndim, mask->sizes, a, sizeof a), j,
          em_shape_format(self->ndim, self->sizes, b, sizeof b), e->n + j);
  (void)position;
  em_tensor *where;
  EM_PASS(em_call_nonzero(mask, &where));
  em_status st = EM_OK;
  for (int j = 0; j < mask->ndim && st == EM_OK; j++)
    if ((st = em_call_select_int(where, 1, j, &e->index[e->n])) == EM_OK) e->n++;
  em_tensor_release(where);
  return st;
}
static em_status expand(em_tensor *self, em_tensors indices, expanded *e) {
  int64_t dims = 0;
  char device[32];
  for (int64_t i = 0; i < indices.n; i++) {
    const em_tensor *t = indices.p[i];
    if (t != NULL && t->device.type != EM_DEVICE_CPU && !em_device_equal(t->device, self->device))
      return em_fail(EM_ERR_RUNTIME,
                     "indices should be either on cpu or on the same device as the indexed tensor (%s)",
                     em_device_format(self->device, device));
    bool mask = t != NULL && (t->dtype == EM_BOOL || t->dtype == EM_U8);
    dims += mask ? t->ndim : 1;
    if (t != NULL && !mask && t->dtype != EM_I64 && t->dtype != EM_I32)
      return em_fail(EM_ERR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
  }
  if (dims > self->ndim) return em_fail(EM_ERR_INDEX, "too many indices for tensor of dimension %d", self->ndim);
  for (int64_t i = 0; i < indices.n; i++) {
    em_tensor *t = indices.p[i];
    if (t != NULL && t->dtype == EM_U8)
      EM_PASS(em_warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."));
    if (t != NULL && (t->dtype == EM_BOOL || t->dtype == EM_U8)) EM_PASS(add_mask(self, t, i, e));
    else e->index[e->n++] = em_tensor_retain(t);
  }
  return EM_OK;
}

static em_status index_shape(const expanded *e, em_shape *shape) {
  shape->ndim = 0;
  for (int i = 0; i < e->n; i++) {
    if (e->index[i] == NULL || em_shape_broadcast(shape, e->index[i]->ndim, e->index[i]->sizes) == EM_OK) continue;
    char text[1024] = "", one[256];
    for (int k = 0; k < e->n; k++) {
      if (e->index[k] == NULL || strlen(text) + 300 > sizeof text) continue;
      if (text[0]) strcat(text, ", ");
      strcat(text, em_shape_format(e->index[k]->ndim, e->index[k]->sizes, one, sizeof one));
    }
    return em_fail(EM_ERR_INDEX, "shape mismatch: indexing tensors could not be broadcast together with shapes %s",
                   text);
  }
  return EM_OK;
}

static em_status make_offsets(em_tensor *self, const expanded *e, const em_shape *shape, em_index_plan *p) {
  EM_PASS(em_tensor_new(shape->ndim, shape->sizes, EM_I64, (em_device){EM_DEVICE_CPU, -1}, &p->offsets));
  if (p->offsets->numel == 0) return EM_OK;
  for (int d = 0; d < p->shape.ndim; d++)
    if (p->shape.sizes[d] == 0)
      return em_fill(p->offsets, em_scalar_int(0));  // nothing will be read: PyTorch does not look at the indices then
  bool first = true;
  for (int i = 0; i < e->n; i++) {
    if (e->index[i] == NULL) continue;
    EM_PASS(em_priv_index_offsets(e->index[i], shape, self->sizes[i], self->strides[i], i, first, p->offsets));
    first = false;
  }
  return first ? em_fill(p->offsets, em_scalar_int(0)) : EM_OK;
}

static em_status push(em_index_plan *p, int64_t size, int64_t stride) {
  if (p->shape.ndim == EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "index: at most %d dimensions are supported", EM_MAX_DIMS);
  p->shape.sizes[p->shape.ndim] = size;
  p->strides[p->shape.ndim++] = stride;
  return EM_OK;
}
em_status em_index_plan_make(em_tensor *self, em_tensors indices, bool meta, em_index_plan *p) {
  expanded e = {.n = 0};
  em_shape shape;
  em_status st = EM_OK;
  p->offsets = NULL;
  EM_TRY(expand(self, indices, &e));
  EM_TRY(index_shape(&e, &shape));
  int first = -1, last = -1, count = 0;
  for (int i = 0; i < e.n; i++)
    if (e.index[i] != NULL) {
      if (first < 0) first = i;
      last = i;
      count++;
    }
  bool together = count > 0 && last - first + 1 == count;
  // Index dims lie where they were if they were neighbours, else in front.
  p->at = together ? first : 0;
  p->ndim = shape.ndim;
  p->shape.ndim = 0;
  for (int i = 0; i < p->at; i++) EM_TRY(push(p, self->sizes[i], self->strides[i]));
  for (int i = 0; i < shape.ndim; i++) EM_TRY(push(p, shape.sizes[i], 0));
  for (int i = p->at; i < self->ndim; i++)
    if (i >= e.n || e.index[i] == NULL) EM_TRY(push(p, self->sizes[i], self->strides[i]));
  for (int i = 0; i < e.n; i++)
    if (e.index[i] != NULL && self->sizes[i] == 0 && shape.ndim > 0 && !meta) {
      int64_t total;
      EM_TRY(em_shape_numel(shape.ndim, shape.sizes, &total));
      if (total > 0) EM_FAIL(EM_ERR_INDEX, "index is out of bounds for dimension with size 0");
    }
  if (!meta) EM_TRY(make_offsets(self, &e, &shape, p));
fail:
  if (st != EM_OK) em_index_plan_free(p);
  expanded_free(&e);
  return st;
}

// The result lies as an iterator over self's window and the index would lay it out: a transposed self gives a transposed
// result. The walk over the offsets itself writes row by row, so that such a result is a copy of a contiguous one.
static em_status result_like(const em_index_plan *p, em_tensor *self, em_tensor **out) {
  if (em_tensor_is_contiguous(self)) return em_tensor_new(p->shape.ndim, p->shape.sizes, self->dtype, self->device, out);
  em_status st = EM_OK;
  em_tensor *window = NULL, *places = NULL;
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  for (int d = 0; d < p->shape.ndim; d++) sizes[d] = d >= p->at && d < p->at + p->ndim ? p->shape.sizes[d] : 1;
  em_shape_contiguous_strides(p->shape.ndim, sizes, strides);
  em_iter it;
  em_iter_init(&it, EM_ITER_META | EM_ITER_NO_ALLOC_CHECKS);
  EM_TRY(em_tensor_new_window(self->storage, p->shape.ndim, p->shape.sizes, p->strides, self->offset, self->dtype, &window));
  EM_TRY(em_tensor_new_window(self->storage, p->shape.ndim, sizes, strides, self->offset, self->dtype, &places));
  em_iter_add_output(&it, NULL, self->dtype);
  em_iter_add_input(&it, window);
  em_iter_add_input(&it, places);
  EM_TRY(em_iter_build(&it, EM_PROMO_NONE));
  st = em_iter_finish(&it, out);
fail:
  em_tensor_release(window);
  em_tensor_release(places);
  return st;
}
static em_status fill_result(const em_index_plan *p, em_tensor *self, em_tensor *result) {
  if (em_tensor_is_contiguous(result)) return em_priv_index_get(p, self, result);
  em_tensor *rows;
  EM_PASS(em_tensor_new(result->ndim, result->sizes, result->dtype, result->device, &rows));
  em_status st = em_priv_index_get(p, self, rows);
  if (st == EM_OK) st = em_copy_into(result, rows);
  em_tensor_release(rows);
  return st;
}
// self[mask] of one mask over all dims.
static bool is_whole_mask(em_tensor *self, em_tensors indices) {
  if (indices.n != 1 || indices.p[0] == NULL || indices.p[0]->dtype != EM_BOOL || self->ndim == 0) return false;
  return em_tensor_same_sizes(self, indices.p[0]) && em_tensor_is_contiguous(self) && indices.p[0]->device.type == EM_DEVICE_CPU &&
         self->device.type == EM_DEVICE_CPU;
}
em_status n_index(uint64_t ks, em_tensor *self, em_tensors indices, em_tensor **out) {
  if (is_whole_mask(self, indices)) return n_masked_select(ks, self, indices.p[0], out);
  em_index_plan p;
  bool meta = self->device.type == EM_DEVICE_META;
  EM_PASS(em_index_plan_make(self, indices, meta, &p));
  em_tensor *t = NULL;
  em_status st = result_like(&p, self, &t);
  if (st == EM_OK && !meta) st = fill_result(&p, self, t);
  em_index_plan_free(&p);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
// One value written under one mask is a masked fill, which casts. `*mask` is the mask, shaped to broadcast over self; NULL when
// the indices are something else.
static em_status lone_mask(em_tensor *self, em_tensors indices, em_tensor **mask) {
  em_tensor *only = NULL;
  int64_t sizes[EM_MAX_DIMS], n = 0;
  for (int64_t i = 0; i < indices.n; i++) {
    em_tensor *t = indices.p[i];
    if (t == NULL) {
      if (n == EM_MAX_DIMS) return EM_OK;
      sizes[n++] = 1;
      continue;
    }
    if (only != NULL || (t->dtype != EM_BOOL && t->dtype != EM_U8) || n + t->ndim > self->ndim) return EM_OK;
    for (int d = 0; d < t->ndim; d++, n++) {
      if (t->sizes[d] != self->sizes[n]) return EM_OK;  // refused by the general way
      sizes[n] = t->sizes[d];
    }
    only = t;
  }
  if (only == NULL || n > self->ndim || only->dtype != EM_BOOL) return EM_OK;
  while (n < self->ndim) sizes[n++] = 1;
  return em_call_reshape(only, (em_ints){sizes, self->ndim}, mask);
}
static em_status fill_masked(uint64_t ks, em_tensor *self, em_tensor *mask, em_tensor *value) {
  em_scalar s = em_scalar_int(0);
  if (self->device.type == EM_DEVICE_CPU) EM_PASS(em_tensor_item(value, &s));
  return n_masked_fill_(ks, self, mask, s);
}
em_status n_index_put_(uint64_t ks, em_tensor *self, em_tensors indices, em_tensor *values, bool accumulate) {
  if (self->device.type == EM_DEVICE_CPU && values->device.type != EM_DEVICE_CPU) {
    char a[32], b[32];
    return em_fail(EM_ERR_RUNTIME,
                   "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
                   em_device_format(self->device, a), em_device_format(values->device, b));
  }
  if (values->numel == 1 && !accumulate && values->device.type == self->device.type) {
    em_tensor *mask = NULL;
    EM_PASS(lone_mask(self, indices, &mask));
    if (mask != NULL) {
      em_status st = fill_masked(ks, self, mask, values);
      em_tensor_release(mask);
      return st;
    }
  }
  if (em_shape_internal_overlap(self) == EM_OVERLAP_YES)
    EM_PASS(em_warn("Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing "
                    "this operation. This also applies to "
                    "advanced indexing e.g. tensor[indices] = tensor"));
  em_index_plan p;
  bool meta = self->device.type == EM_DEVICE_META;
  EM_PASS(em_index_plan_make(self, indices, meta, &p));
  em_status st = EM_OK;
  em_tensor *wide = NULL, *copy = NULL;
  em_shape s = p.shape;
  if (em_shape_broadcast(&s, values->ndim, values->sizes) != EM_OK ||
      !em_shape_equal(s.ndim, s.sizes, p.shape.ndim, p.shape.sizes)) {
    char a[256], b[256];
    EM_FAIL(EM_ERR_RUNTIME,
            "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
            em_shape_format(values->ndim, values->sizes, a, sizeof a),
            em_shape_format(p.shape.ndim, p.shape.sizes, b, sizeof b));
  }
  if (self->dtype != values->dtype)
    EM_FAIL(EM_ERR_RUNTIME,
            "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
            em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(values->dtype));
  if (meta) goto fail;
  if (em_shape_pair_overlap(self, values) != EM_PAIR_NO) EM_TRY(em_call_clone(values, EM_FORMAT_NONE, &copy));
  em_geometry g;
  EM_TRY(view_expand(copy != NULL ? copy : values, (em_ints){p.shape.sizes, p.shape.ndim}, false, &g));
  EM_TRY(em_tensor_new_window((copy != NULL ? copy : values)->storage, g.ndim, g.sizes, g.strides, g.offset,
                              values->dtype, &wide));
  EM_TRY(em_priv_index_set(&p, self, wide, accumulate));
fail:
  em_tensor_release(wide);
  em_tensor_release(copy);
  em_index_plan_free(&p);
  return st;
}
em_status c_index_put(em_tensor *self, em_tensors indices, em_tensor *values, bool accumulate, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_call_clone(self, EM_FORMAT_PRESERVE, &t));
  em_status st = em_call_index_put_(t, indices, values, accumulate);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}

em_status n_masked_select(uint64_t ks, em_tensor *self, em_tensor *mask, em_tensor **out) {
  (void)ks;
  if (mask->dtype != EM_BOOL) return em_fail(EM_ERR_RUNTIME, "masked_select: expected BoolTensor for mask");
  em_status st = EM_OK;
  em_tensor_list both = {NULL, 0};
  em_tensor *pair[] = {mask, self}, *x = NULL, *m = NULL, *t = NULL;
  EM_TRY(em_call_broadcast_tensors((em_tensors){pair, 2}, &both));
  EM_TRY(em_call_contiguous(both.p[1], EM_FORMAT_CONTIGUOUS, &x));
  EM_TRY(em_call_contiguous(both.p[0], EM_FORMAT_CONTIGUOUS, &m));
  const int64_t n = em_priv_mask_count(m);
  EM_TRY(em_tensor_new(1, &n, self->dtype, self->device, &t));
  em_priv_mask_move(x, m, t, true);
  *out = t;
fail:
  em_tensor_release(x);
  em_tensor_release(m);
  em_tensor_list_clear(&both);
  return st;
}
em_status c_take(em_tensor *self, em_tensor *index, em_tensor **out) {
  if (index->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "take(): Expected a long tensor for index, but got %s",
                   em_dtype_scalar_name(index->dtype));
  if (self->numel == 0 && index->numel > 0)
    return em_fail(EM_ERR_INDEX, "take(): tried to take from an empty tensor");
  em_tensor *flat;
  EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
  em_status st = em_call_index_Tensor(flat, (em_tensors){&index, 1}, out);
  em_tensor_release(flat);
  if (st != EM_ERR_INDEX || index->device.type == EM_DEVICE_META) return st;
  em_tensor *at;
  EM_PASS(em_call_reshape(index, EM_INTS(-1), &at));
  st = em_priv_fail_flat(at, self->numel);
  em_tensor_release(at);
  return st;
}

// --- masked_fill
// Writes where the mask is true and nowhere else, so that elements which share bytes take the value if one of them is masked.
static em_status put_where(em_tensor *self, em_tensor *mask, em_tensor *value) {
  em_status st = EM_OK;
  em_tensor *wide = NULL, *values = NULL;
  em_index_plan p = {.offsets = NULL};
  EM_TRY(em_call_expand(mask, (em_ints){self->sizes, self->ndim}, false, &wide));
  EM_TRY(em_index_plan_make(self, (em_tensors){&wide, 1}, false, &p));
  EM_TRY(em_call_expand(value, (em_ints){p.shape.sizes, p.shape.ndim}, false, &values));
  EM_TRY(em_priv_index_set(&p, self, values, false));
fail:
  em_index_plan_free(&p);
  em_tensor_release(wide);
  em_tensor_release(values);
  return st;
}
em_status n_masked_fill_(uint64_t ks, em_tensor *self, em_tensor *mask, em_scalar value) {
  (void)ks;
  if (mask->dtype != EM_BOOL)
    return em_fail(EM_ERR_RUNTIME, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                   em_dtype_type_name(mask->dtype));
  em_status st = EM_OK;
  em_tensor *v = NULL, *r = NULL;
  const bool expanded = em_shape_internal_overlap(self) == EM_OVERLAP_YES;
  if (expanded)
    EM_TRY(em_warn("Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing "
                   "this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar"));
  EM_TRY(em_tensor_from_scalar(value, self->dtype, self->device, &v));
  EM_TRY(em_call_where_self(mask, v, self, &r));
  if (!em_tensor_same_sizes(r, self)) {
    char a[256], b[256];
    EM_FAIL(EM_ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
            em_shape_format(self->ndim, self->sizes, a, sizeof a), em_shape_format(r->ndim, r->sizes, b, sizeof b));
  }
  if (self->device.type == EM_DEVICE_CPU) EM_TRY(expanded ? put_where(self, mask, v) : em_copy_into(self, r));
fail:
  em_tensor_release(v);
  em_tensor_release(r);
  return st;
}
em_status n_masked_fill_tensor_(uint64_t ks, em_tensor *self, em_tensor *mask, em_tensor *value) {
  if (value->ndim != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                   value->ndim);
  if (self->device.type == EM_DEVICE_META) return EM_OK;
  em_scalar s;
  EM_PASS(em_tensor_item(value, &s));
  return n_masked_fill_(ks, self, mask, s);
}
static em_status fill_broadcast(em_tensor *self, em_tensor *mask, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *wide = NULL;
  em_shape s;
  EM_TRY(em_shape_of(self, &s));
  EM_TRY(em_shape_broadcast(&s, mask->ndim, mask->sizes));
  EM_TRY(em_call_expand(self, (em_ints){s.sizes, s.ndim}, false, &wide));
  EM_TRY(em_call_clone(wide, EM_FORMAT_CONTIGUOUS, out));
fail:
  em_tensor_release(wide);
  return st;
}
em_status c_masked_fill(em_tensor *self, em_tensor *mask, em_scalar value, em_tensor **out) {
  em_tensor *t;
  EM_PASS(fill_broadcast(self, mask, &t));
  em_status st = em_call_masked_fill__Scalar(t, mask, value);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_masked_fill_tensor(em_tensor *self, em_tensor *mask, em_tensor *value, em_tensor **out) {
  em_tensor *t;
  EM_PASS(fill_broadcast(self, mask, &t));
  em_status st = em_call_masked_fill__Tensor(t, mask, value);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
