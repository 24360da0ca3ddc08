// views_composite.c: view operators made of others. Their parts record; they have no derivative of their own.
#include <string.h>
#include "gen_ops.h"

em_status n_detach(uint64_t ks, em_tensor *self, em_tensor **out) {
  (void)ks;
  return em_tensor_alias(self, out);
}
// A view that autograd treats as a fresh tensor: only for tensors nobody else holds.
em_status n_unsafe_view(uint64_t ks, em_tensor *self, em_ints size, em_tensor **out) {
  (void)ks;
  em_geometry g;
  EM_PASS(view_view(self, size, &g));
  if (em_shape_equal(g.ndim, g.sizes, self->ndim, self->sizes)) return em_tensor_alias(self, out);
  em_tensor *t;
  EM_PASS(em_tensor_alias(self, &t));
  em_status st = em_tensor_set_window(t, g.ndim, g.sizes, g.strides, g.offset);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_reshape(em_tensor *self, em_ints shape, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  if (shape.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "reshape: at most %d dimensions are supported, got %lld", EM_MAX_DIMS,
                   (long long)shape.n);
  EM_PASS(em_shape_infer((int)shape.n, shape.p, self->numel, sizes));
  em_ints whole = {sizes, shape.n};
  if (em_shape_view_strides(self->ndim, self->sizes, self->strides, self->numel, (int)shape.n, sizes, strides))
    return em_call_view(self, whole, out);
  em_tensor *copy;
  EM_PASS(em_call_clone(self, EM_FORMAT_CONTIGUOUS, &copy));
  em_status st = em_call__unsafe_view(copy, whole, out);
  em_tensor_release(copy);
  return st;
}
em_status c_view_as(em_tensor *self, em_tensor *other, em_tensor **out) {
  return em_call_view(self, (em_ints){other->sizes, other->ndim}, out);
}
em_status c_reshape_as(em_tensor *self, em_tensor *other, em_tensor **out) {
  return em_call_reshape(self, (em_ints){other->sizes, other->ndim}, out);
}

em_status c_flatten(em_tensor *self, int64_t start, int64_t end, em_tensor **out) {
  EM_PASS(em_shape_wrap_dim(start, self->ndim, true, &start));
  EM_PASS(em_shape_wrap_dim(end, self->ndim, true, &end));
  if (start > end) return em_fail(EM_ERR_RUNTIME, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self->ndim == 0) return em_call_reshape(self, EM_INTS(1), out);
  if (start == end) {
    *out = em_tensor_retain(self);
    return EM_OK;
  }
  int64_t sizes[EM_MAX_DIMS], n = 0, joined = 1;
  for (int64_t i = 0; i < start; i++) sizes[n++] = self->sizes[i];
  for (int64_t i = start; i <= end; i++) joined *= self->sizes[i];
  sizes[n++] = joined;
  for (int64_t i = end + 1; i < self->ndim; i++) sizes[n++] = self->sizes[i];
  return em_call_reshape(self, (em_ints){sizes, n}, out);
}
em_status c_unflatten(em_tensor *self, int64_t dim, em_ints sizes, em_tensor **out) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, false, &dim));
  if (sizes.n == 0) return em_fail(EM_ERR_RUNTIME, "unflatten: sizes must be non-empty");
  if (sizes.n + self->ndim > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "unflatten: at most %d dimensions are supported", EM_MAX_DIMS);
  int64_t inner[EM_MAX_DIMS], all[EM_MAX_DIMS], n = 0;
  if (em_shape_infer((int)sizes.n, sizes.p, self->sizes[dim], inner) != EM_OK) {
    char a[256];
    return em_fail(EM_ERR_RUNTIME,
                   "unflatten: Provided sizes %s don't multiply up to the size of dim %lld (%lld) in the input tensor",
                   em_shape_format((int)sizes.n, sizes.p, a, sizeof a), (long long)dim, (long long)self->sizes[dim]);
  }
  for (int64_t i = 0; i < dim; i++) all[n++] = self->sizes[i];
  for (int64_t i = 0; i < sizes.n; i++) all[n++] = inner[i];
  for (int64_t i = dim + 1; i < self->ndim; i++) all[n++] = self->sizes[i];
  return em_call_view(self, (em_ints){all, n}, out);
}
em_status c_ravel(em_tensor *self, em_tensor **out) {
  em_tensor *dense;
  EM_PASS(em_call_contiguous(self, EM_FORMAT_CONTIGUOUS, &dense));
  em_status st = em_call_view(dense, EM_INTS(-1), out);
  em_tensor_release(dense);
  return st;
}

em_status c_movedim(em_tensor *self, em_ints source, em_ints destination, em_tensor **out) {
  char a[256], b[256];
  if (source.n != destination.n)
    return em_fail(EM_ERR_RUNTIME,
                   "movedim: Invalid source or destination dims: source (%s dims) should contain the same number of "
                   "dims as destination (%s dims)",
                   em_shape_format((int)source.n, source.p, a, sizeof a),
                   em_shape_format((int)destination.n, destination.p, b, sizeof b));
  int64_t order[EM_MAX_DIMS];
  bool from[EM_MAX_DIMS] = {false}, to[EM_MAX_DIMS] = {false};
  for (int64_t i = 0; i < source.n; i++) {
    int64_t s, d;
    EM_PASS(em_shape_wrap_dim(source.p[i], self->ndim, true, &s));
    EM_PASS(em_shape_wrap_dim(destination.p[i], self->ndim, true, &d));
    if (from[s] || to[d])
      return em_fail(EM_ERR_RUNTIME, "movedim: repeated dim in `%s` (%s)", from[s] ? "source" : "destination",
                     em_shape_format((int)source.n, from[s] ? source.p : destination.p, a, sizeof a));
    from[s] = to[d] = true;
    order[d] = s;
  }
  for (int d = 0, s = 0; d < self->ndim; d++) {
    if (to[d]) continue;
    while (from[s]) s++;
    order[d] = s++;
  }
  return em_call_permute(self, (em_ints){order, self->ndim}, out);
}
em_status c_movedim_int(em_tensor *self, int64_t source, int64_t destination, em_tensor **out) {
  return c_movedim(self, EM_INTS(source), EM_INTS(destination), out);
}
em_status c_swapaxes(em_tensor *self, int64_t a, int64_t b, em_tensor **out) {
  return em_call_transpose_int(self, a, b, out);
}
em_status c_swapaxes_(em_tensor *self, int64_t a, int64_t b) { return em_call_transpose_(self, a, b); }
em_status c_expand_as(em_tensor *self, em_tensor *other, em_tensor **out) {
  return em_call_expand(self, (em_ints){other->sizes, other->ndim}, false, out);
}
em_status c_broadcast_to(em_tensor *self, em_ints size, em_tensor **out) {
  return em_call_expand(self, size, false, out);
}
em_status c_broadcast_tensors(em_tensors tensors, em_tensor_list *out) {
  em_status st = EM_OK;
  em_shape s = {.ndim = 0};
  for (int64_t i = 0; i < tensors.n; i++) EM_PASS(em_shape_broadcast(&s, tensors.p[i]->ndim, tensors.p[i]->sizes));
  EM_PASS(em_tensor_list_new(tensors.n, out));
  for (int64_t i = 0; i < tensors.n; i++)
    EM_TRY(em_call_expand(tensors.p[i], (em_ints){s.sizes, s.ndim}, false, &out->p[i]));
  return EM_OK;
fail:
  em_tensor_list_clear(out);
  return st;
}

em_status c_narrow(em_tensor *self, int64_t dim, int64_t start, int64_t length, em_tensor **out) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "narrow() cannot be applied to a 0-dim tensor.");
  if (length < 0) return em_fail(EM_ERR_RUNTIME, "narrow(): length must be non-negative.");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  int64_t n = self->sizes[dim];
  if (start < -n || start > n)
    return em_fail(EM_ERR_INDEX, "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                   (long long)-n, (long long)n, (long long)start);
  if (start < 0) start += n;
  if (start > n - length)
    return em_fail(EM_ERR_RUNTIME, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                   (long long)length, (long long)n);
  return em_call_slice_Tensor(self, dim, em_some_int(start), em_some_int(start + length), 1, out);
}
em_status c_narrow_tensor(em_tensor *self, int64_t dim, em_tensor *start, int64_t length, em_tensor **out) {
  if (start->ndim != 0 || em_dtype_class_of(start->dtype) != EM_CLASS_INT)
    return em_fail(EM_ERR_RUNTIME, "start must be an 0-dim integral Tensor.");
  em_scalar s;
  EM_PASS(em_tensor_item(start, &s));
  return em_call_narrow(self, dim, s.i, length, out);
}
em_status c_split_sizes(em_tensor *self, em_ints sizes, int64_t dim, em_tensor_list *out) {
  return em_call_split_with_sizes(self, sizes, dim, out);
}
em_status c_chunk(em_tensor *self, int64_t chunks, int64_t dim, em_tensor_list *out) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0)
    return em_fail(EM_ERR_RUNTIME, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  int64_t n = self->sizes[dim], size = n / chunks + (n % chunks != 0);
  if (size > 0 || n > 0) return em_call_split_Tensor(self, size, dim, out);
  // An empty dimension still gives `chunks` pieces.
  int64_t *zeros = chunks > EM_MAX_NUMEL ? NULL : em_alloc_zeroed(sizeof(int64_t) * (size_t)chunks);
  if (zeros == NULL) return EM_NOMEM(sizeof(int64_t) * (size_t)chunks);
  em_status st = em_call_split_with_sizes(self, (em_ints){zeros, chunks}, dim, out);
  em_free(zeros, sizeof(int64_t) * (size_t)chunks);
  return st;
}

static em_status part(em_tensor *self, int64_t which, em_tensor **out) {
  em_tensor *pairs;
  EM_PASS(em_call_view_as_real(self, &pairs));
  em_status st = em_call_select_int(pairs, pairs->ndim - 1, which, out);
  em_tensor_release(pairs);
  return st;
}
em_status c_real(em_tensor *self, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype)) return part(self, 0, out);
  *out = em_tensor_retain(self);
  return EM_OK;
}
em_status c_imag(em_tensor *self, em_tensor **out) {
  if (!em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "imag is not implemented for tensors with non-complex dtypes.");
  return part(self, 1, out);
}
// conj() of a real tensor is the tensor itself.
em_status c_conj(em_tensor *self, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype)) return em_call_conj_physical(self, out);
  *out = em_tensor_retain(self);
  return EM_OK;
}
em_status c_resolve_conj(em_tensor *self, em_tensor **out) {
  *out = em_tensor_retain(self);
  return EM_OK;
}
