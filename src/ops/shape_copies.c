// shape_copies.c: copies of views (`permute_copy`), and copies of a tensor in which a view's values are replaced
// (`select_scatter`). Each makes the view and copies; the parts record.
#include "gen_ops.h"
#include "own.h"

static em_status copy_of(em_status made, em_tensor *view, em_tensor **out) {
  if (made != EM_OK) return made;
  em_status st = em_call_clone(view, EM_FORMAT_CONTIGUOUS, out);
  em_tensor_release(view);
  return st;
}
// `c_x_copy(arguments..., out)`: a contiguous copy of what the view operator gives.
#define COPY(name, params, call) \
  em_status name params {        \
    em_tensor *view = NULL;      \
    em_status st = call;         \
    return copy_of(st, view, out); \
  }
COPY(c_alias_copy, (em_tensor *self, em_tensor **out), em_call_alias(self, &view))
COPY(c_detach_copy, (em_tensor *self, em_tensor **out), em_call_detach(self, &view))
COPY(c_view_copy, (em_tensor *self, em_ints size, em_tensor **out), em_call_reshape(self, size, &view))
COPY(c_view_copy_dtype, (em_tensor *self, int dtype, em_tensor **out), em_call_view_dtype(self, dtype, &view))
COPY(c_select_copy, (em_tensor *self, int64_t dim, int64_t index, em_tensor **out),
     em_call_select_int(self, dim, index, &view))
COPY(c_slice_copy,
     (em_tensor *self, int64_t dim, em_opt_int start, em_opt_int end, int64_t step, em_tensor **out),
     em_call_slice_Tensor(self, dim, start, end, step, &view))
COPY(c_narrow_copy, (em_tensor *self, int64_t dim, int64_t start, int64_t length, em_tensor **out),
     em_call_narrow(self, dim, start, length, &view))
COPY(c_as_strided_copy, (em_tensor *self, em_ints size, em_ints stride, em_opt_int offset, em_tensor **out),
     em_call_as_strided(self, size, stride, offset, &view))
COPY(c_diagonal_copy, (em_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, em_tensor **out),
     em_call_diagonal(self, offset, dim1, dim2, &view))
COPY(c_expand_copy, (em_tensor *self, em_ints size, bool implicit, em_tensor **out),
     em_call_expand(self, size, implicit, &view))
COPY(c_permute_copy, (em_tensor *self, em_ints dims, em_tensor **out), em_call_permute(self, dims, &view))
COPY(c_transpose_copy, (em_tensor *self, int64_t dim0, int64_t dim1, em_tensor **out),
     em_call_transpose_int(self, dim0, dim1, &view))
COPY(c_t_copy, (em_tensor *self, em_tensor **out), em_call_t(self, &view))
COPY(c_squeeze_copy, (em_tensor *self, em_tensor **out), em_call_squeeze(self, &view))
COPY(c_squeeze_copy_dim, (em_tensor *self, int64_t dim, em_tensor **out), em_call_squeeze_dim(self, dim, &view))
COPY(c_squeeze_copy_dims, (em_tensor *self, em_ints dim, em_tensor **out), em_call_squeeze_dims(self, dim, &view))
COPY(c_unsqueeze_copy, (em_tensor *self, int64_t dim, em_tensor **out), em_call_unsqueeze(self, dim, &view))
COPY(c_unfold_copy, (em_tensor *self, int64_t dim, int64_t size, int64_t step, em_tensor **out),
     em_call_unfold(self, dim, size, step, &view))
COPY(c_view_as_real_copy, (em_tensor *self, em_tensor **out), em_call_view_as_real(self, &view))
COPY(c_view_as_complex_copy, (em_tensor *self, em_tensor **out), em_call_view_as_complex(self, &view))

// Every view in the list copied, in place of it.
static em_status copies_of(em_status made, em_tensor_list *out) {
  if (made != EM_OK) return made;
  em_status st = EM_OK;
  for (int64_t i = 0; i < out->n && st == EM_OK; i++) {
    em_tensor *copy = NULL;
    st = em_call_clone(out->p[i], EM_FORMAT_CONTIGUOUS, &copy);
    if (st != EM_OK) break;
    em_tensor_release(out->p[i]);
    out->p[i] = copy;
  }
  if (st != EM_OK) em_tensor_list_clear(out);
  return st;
}
em_status c_unbind_copy(em_tensor *self, int64_t dim, em_tensor_list *out) {
  return copies_of(em_call_unbind_int(self, dim, out), out);
}
em_status c_split_copy(em_tensor *self, int64_t size, int64_t dim, em_tensor_list *out) {
  return copies_of(em_call_split_Tensor(self, size, dim, out), out);
}
em_status c_split_with_sizes_copy(em_tensor *self, em_ints sizes, int64_t dim, em_tensor_list *out) {
  return copies_of(em_call_split_with_sizes(self, sizes, dim, out), out);
}

// out= of a list: the views in `made`, each copied into its own tensor.
static em_status copies_into(const char *name, em_status made, em_tensor_list *views, em_tensors out) {
  if (made != EM_OK) return made;
  em_status st = EM_OK;
  if (views->n != out.n)
    st = em_fail(EM_ERR_RUNTIME, "%s expected an out= argument of size %lld, got size %lld", name, (long long)views->n, (long long)out.n);
  for (int64_t i = 0; i < views->n && st == EM_OK; i++) st = em_call_alias_copy_out(views->p[i], out.p[i]);
  em_tensor_list_clear(views);
  return st;
}
em_status c_unbind_copy_out(em_tensor *self, int64_t dim, em_tensors out) {
  em_tensor_list views = {NULL, 0};
  return copies_into("unbind_copy_int_out", em_call_unbind_int(self, dim, &views), &views, out);
}
em_status c_split_with_sizes_copy_out(em_tensor *self, em_ints sizes, int64_t dim, em_tensors out) {
  em_tensor_list views = {NULL, 0};
  return copies_into("split_with_sizes_copy_out", em_call_split_with_sizes(self, sizes, dim, &views), &views, out);
}

// ---- unsafe pieces: windows that autograd takes for fresh tensors, so that they may be written
static em_status apart(em_status made, em_tensor_list *out) {
  if (made != EM_OK) return made;
  em_status st = EM_OK;
  for (int64_t i = 0; i < out->n && st == EM_OK; i++) {
    em_tensor *window = NULL;
    st = em_call__unsafe_view(out->p[i], (em_ints){out->p[i]->sizes, out->p[i]->ndim}, &window);
    if (st != EM_OK) break;
    em_tensor_release(out->p[i]);
    out->p[i] = window;
  }
  if (st != EM_OK) em_tensor_list_clear(out);
  return st;
}
em_status c_unsafe_split(em_tensor *self, int64_t size, int64_t dim, em_tensor_list *out) {
  return apart(em_call_split_Tensor(self, size, dim, out), out);
}
em_status c_unsafe_split_with_sizes(em_tensor *self, em_ints sizes, int64_t dim, em_tensor_list *out) {
  return apart(em_call_split_with_sizes(self, sizes, dim, out), out);
}
em_status c_unsafe_chunk(em_tensor *self, int64_t chunks, int64_t dim, em_tensor_list *out) {
  return apart(em_call_chunk(self, chunks, dim, out), out);
}

// ---- a view's values replaced in a copy that keeps self's layout: strides and offset too, as far as its elements are apart
static em_status copy_in_place_of(em_tensor *self, em_tensor **out) {
  if (em_tensor_is_contiguous(self) && self->offset == 0) return em_call_clone(self, EM_FORMAT_PRESERVE, out);
  if (em_shape_internal_overlap(self) != EM_OVERLAP_NO) return em_call_clone(self, EM_FORMAT_PRESERVE, out);
  int64_t reach = self->offset + 1;
  for (int d = 0; d < self->ndim; d++) reach += (self->sizes[d] - 1) * self->strides[d];
  if (self->numel == 0) return em_call_clone(self, EM_FORMAT_PRESERVE, out);
  EM_OWN flat = NULL;
  EM_OWN all = NULL;
  EM_PASS(em_call_as_strided(self, EM_INTS(reach), EM_INTS(1), em_some_int(0), &flat));
  EM_PASS(em_call_clone(flat, EM_FORMAT_CONTIGUOUS, &all));
  return em_call_as_strided(all, (em_ints){self->sizes, self->ndim}, (em_ints){self->strides, self->ndim},
                            em_some_int(self->offset), out);
}
static em_status replaced(em_status made, em_tensor *view, em_tensor *src) {
  if (made != EM_OK) return made;
  em_status st = EM_OK;
  if (!em_tensor_same_sizes(view, src)) {
    char a[256], b[256];
    st = em_fail(EM_ERR_RUNTIME, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                 em_shape_format(src->ndim, src->sizes, a, sizeof a),
                 em_shape_format(view->ndim, view->sizes, b, sizeof b));
  }
  if (st == EM_OK) st = em_call_copy_(view, src, false);
  em_tensor_release(view);
  return st;
}
#define REPLACE(call)                                       \
  EM_OWN copy = NULL;                                       \
  em_tensor *view = NULL;                                   \
  EM_PASS(copy_in_place_of(self, &copy));                   \
  em_status st = call;                                      \
  EM_PASS(replaced(st, view, src));                         \
  return em_priv_give(&copy, out)
em_status c_select_scatter(em_tensor *self, em_tensor *src, int64_t dim, int64_t index, em_tensor **out) {
  REPLACE(em_call_select_int(copy, dim, index, &view));
}
em_status c_slice_scatter(em_tensor *self, em_tensor *src, int64_t dim, em_opt_int start, em_opt_int end, int64_t step,
                          em_tensor **out) {
  REPLACE(em_call_slice_Tensor(copy, dim, start, end, step, &view));
}
em_status c_diagonal_scatter(em_tensor *self, em_tensor *src, int64_t offset, int64_t dim1, int64_t dim2,
                             em_tensor **out) {
  REPLACE(em_call_diagonal(copy, offset, dim1, dim2, &view));
}
em_status c_as_strided_scatter(em_tensor *self, em_tensor *src, em_ints size, em_ints stride, em_opt_int offset,
                               em_tensor **out) {
  REPLACE(em_call_as_strided(copy, size, stride, offset, &view));
}

// The gradient of unfold: every element of a window back where it was, sums where windows overlap.
em_status c_unfold_backward(em_tensor *grad, em_ints sizes, int64_t dim, int64_t size, int64_t step, em_tensor **out) {
  EM_OWN z = NULL;
  EM_OWN windows = NULL;
  EM_OWN positions = NULL;
  EM_OWN flat = NULL;
  EM_OWN index = NULL;
  EM_OWN values = NULL;
  EM_OWN sums = NULL;
  int64_t n;
  EM_PASS(em_shape_numel((int)sizes.n, sizes.p, &n));
  EM_PASS(em_call_arange(em_scalar_int(n), EM_I64, -1, grad->device, -1, &flat));
  EM_PASS(em_call_reshape(flat, sizes, &positions));
  EM_PASS(em_call_unfold(positions, dim, size, step, &windows));
  EM_PASS(em_call_reshape(windows, EM_INTS(-1), &index));
  EM_PASS(em_call_reshape(grad, EM_INTS(-1), &values));
  EM_PASS(em_call_new_zeros(grad, EM_INTS(n), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &z));
  EM_PASS(em_call_index_add(z, 0, index, values, em_scalar_int(1), &sums));
  return em_call_reshape(sums, sizes, out);
}
