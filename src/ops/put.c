// put.c: writing at positions and where masks are true, beyond index_put: index_fill, put, masked_scatter; and what is made
// of indexing: nonzero_static, argwhere, take_along_dim, one_hot.
#include <string.h>
#include "../dispatch/index_along.h"
#include "../dispatch/index_plan.h"
#include "gen_ops.h"
#include "own.h"

// A functional form: a copy, written in place.
#define WRITTEN_COPY(format, call)                    \
  EM_OWN copy = NULL;                                 \
  EM_PASS(em_call_clone(self, format, &copy));        \
  EM_PASS(call);                                      \
  return em_priv_give(&copy, out)

// ---- index_fill
em_status n_index_fill_(uint64_t ks, em_tensor *self, int64_t dim, em_tensor *index, em_scalar value) {
  (void)ks;
  if (index->dtype != EM_I64) return em_fail(EM_ERR_INDEX, "index_fill_(): Expected dtype int64 for index.");
  EM_PASS(em_priv_same_device(self, index));
  if (em_shape_internal_overlap(self) == EM_OVERLAP_YES)
    EM_PASS(em_warn("Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing "
                    "this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar"));
  if (em_shape_pair_overlap(self, index) != EM_PAIR_NO) EM_PASS(em_shape_assert_no_overlap(self, index));
  if (!em_dtype_is_complex(self->dtype) && value.kind == EM_SCALAR_COMPLEX)
    return em_fail(EM_ERR_RUNTIME, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (index->ndim > 1) return em_fail(EM_ERR_RUNTIME, "Index has to be a vector/scalar");
  if (self->device.type == EM_DEVICE_META || (self->numel == 0 && index->numel == 0)) return EM_OK;
  const int64_t n = self->ndim == 0 ? 1 : self->sizes[dim];
  EM_OWN below = NULL;  // negative positions count from the end
  EM_OWN moved = NULL;
  EM_OWN wrapped = NULL;
  EM_PASS(em_call_lt_Scalar(index, em_scalar_int(0), &below));
  EM_PASS(em_call_add_Scalar(index, em_scalar_int(n), em_scalar_int(1), &moved));
  EM_PASS(em_call_where_self(below, moved, index, &wrapped));
  return em_priv_index_fill(self, dim, wrapped, value);
}
static em_status fill_value(em_tensor *value, em_scalar *s) {
  if (value->ndim != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                   value->ndim);
  *s = em_scalar_int(0);
  return value->device.type == EM_DEVICE_META ? EM_OK : em_tensor_item(value, s);
}
em_status n_index_fill_tensor_(uint64_t ks, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *value) {
  em_scalar s;
  EM_PASS(fill_value(value, &s));
  return n_index_fill_(ks, self, dim, index, s);
}
em_status c_index_fill(em_tensor *self, int64_t dim, em_tensor *index, em_scalar value, em_tensor **out) {
  WRITTEN_COPY(EM_FORMAT_PRESERVE, em_call_index_fill__int_Scalar(copy, dim, index, value));
}
em_status c_index_fill_tensor(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *value, em_tensor **out) {
  WRITTEN_COPY(EM_FORMAT_PRESERVE, em_call_index_fill__int_Tensor(copy, dim, index, value));
}

// ---- put: into self as if it were flat
em_status n_put_(uint64_t ks, em_tensor *self, em_tensor *index, em_tensor *source, bool accumulate) {
  (void)ks;
  if (index->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "put_(): Expected a long tensor for index, but got %s",
                   em_dtype_scalar_name(index->dtype));
  if (self->dtype != source->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(source->dtype));
  EM_PASS(em_priv_same_device(self, index));
  EM_PASS(em_priv_same_device(self, source));
  EM_PASS(em_shape_assert_no_internal_overlap(self));
  EM_PASS(em_shape_assert_no_overlap(self, index));
  EM_PASS(em_shape_assert_no_overlap(self, source));
  if (source->numel != index->numel)
    return em_fail(EM_ERR_INDEX,
                   "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, "
                   "index.numel() = %lld",
                   (long long)source->numel, (long long)index->numel);
  if (self->numel == 0 && index->numel > 0)
    return em_fail(EM_ERR_INDEX, "put_(): Tried to put elements into an empty tensor");
  if (self->device.type == EM_DEVICE_META || index->numel == 0) return EM_OK;
  EM_OWN at = NULL;
  EM_OWN values = NULL;
  EM_OWN flat = NULL;
  EM_PASS(em_call_reshape(index, EM_INTS(-1), &at));
  EM_PASS(em_call_reshape(source, EM_INTS(-1), &values));
  EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
  em_tensor *const one[] = {at};
  if (em_call_index_put_(flat, (em_tensors){one, 1}, values, accumulate) != EM_OK)
    return em_error_code() == EM_ERR_INDEX ? em_priv_fail_flat(at, self->numel) : em_error_code();
  if (flat->storage == self->storage) return EM_OK;
  EM_OWN shaped = NULL;  // flat was a copy
  EM_PASS(em_call_reshape(flat, (em_ints){self->sizes, self->ndim}, &shaped));
  return em_copy_into(self, shaped);
}
em_status c_put(em_tensor *self, em_tensor *index, em_tensor *source, bool accumulate, em_tensor **out) {
  WRITTEN_COPY(EM_FORMAT_PRESERVE, em_call_put_(copy, index, source, accumulate));
}
// The first position outside, in the words of take and put.
em_status em_priv_fail_flat(em_tensor *index, int64_t numel) {
  for (int64_t i = 0; i < index->numel; i++) {
    EM_OWN one = NULL;
    em_scalar s;
    EM_PASS(em_call_select_int(index, 0, i, &one));
    EM_PASS(em_tensor_item(one, &s));
    if (s.i < -numel || s.i >= numel)
      return em_fail(EM_ERR_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.", (long long)s.i,
                     (long long)numel);
  }
  return em_error_code();
}

// ---- masked_scatter: the source's elements in order, wherever the mask is true
em_status n_masked_scatter_(uint64_t ks, em_tensor *self, em_tensor *mask, em_tensor *source) {
  (void)ks;
  EM_PASS(em_shape_assert_no_internal_overlap(self));
  if (self->dtype != source->dtype)
    return em_fail(EM_ERR_RUNTIME, "masked_scatter: expected self and source to have same dtypes but got%s and %s",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(source->dtype));
  EM_PASS(em_priv_same_device(self, mask));
  EM_PASS(em_priv_same_device(self, source));
  EM_OWN wide = NULL;
  EM_PASS(em_call_expand(mask, (em_ints){self->sizes, self->ndim}, false, &wide));
  if (mask->dtype != EM_BOOL)
    return em_fail(EM_ERR_RUNTIME, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                   em_dtype_scalar_name(mask->dtype));
  if (self->device.type == EM_DEVICE_META) return EM_OK;
  EM_OWN dense_mask = NULL;
  EM_OWN values = NULL;
  EM_OWN target = NULL;
  EM_PASS(em_call_contiguous(wide, EM_FORMAT_CONTIGUOUS, &dense_mask));
  EM_PASS(em_call_contiguous(source, EM_FORMAT_CONTIGUOUS, &values));
  EM_PASS(em_call_contiguous(self, EM_FORMAT_CONTIGUOUS, &target));
  if (em_priv_mask_count(dense_mask) > source->numel)
    return em_fail(EM_ERR_RUNTIME, "Number of elements of source < number of ones in mask");
  if (em_shape_pair_overlap(self, values) != EM_PAIR_NO) {
    em_tensor *apart;
    EM_PASS(em_call_clone(values, EM_FORMAT_CONTIGUOUS, &apart));
    em_tensor_release(values);
    values = apart;
  }
  em_priv_mask_move(target, dense_mask, values, false);
  return target == self ? EM_OK : em_copy_into(self, target);
}
em_status c_masked_scatter(em_tensor *self, em_tensor *mask, em_tensor *source, em_tensor **out) {
  em_shape s;
  EM_PASS(em_shape_of(mask, &s));
  EM_PASS(em_shape_broadcast(&s, self->ndim, self->sizes));
  EM_OWN wide = NULL;
  EM_OWN copy = NULL;
  EM_PASS(em_call_expand(self, (em_ints){s.sizes, s.ndim}, false, &wide));
  EM_PASS(em_call_clone(wide, EM_FORMAT_CONTIGUOUS, &copy));
  EM_PASS(em_call_masked_scatter_(copy, mask, source));
  return em_priv_give(&copy, out);
}
// What the mask let through, then zeros up to the source's size.
em_status c_masked_scatter_backward(em_tensor *grad, em_tensor *mask, em_ints sizes, em_tensor **out) {
  EM_OWN taken = NULL;
  EM_OWN rest = NULL;
  EM_OWN all = NULL;
  int64_t n;
  EM_PASS(em_shape_numel((int)sizes.n, sizes.p, &n));
  EM_PASS(em_call_masked_select(grad, mask, &taken));
  if (taken->numel >= n) return em_call_reshape(taken, sizes, out);
  EM_PASS(em_call_new_zeros(grad, EM_INTS(n - taken->numel), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &rest));
  EM_PASS(em_call_cat((em_tensors){(em_tensor *[]){taken, rest}, 2}, 0, &all));
  return em_call_reshape(all, sizes, out);
}

// ---- made of nonzero
em_status c_nonzero_static(em_tensor *self, int64_t size, int64_t fill_value, em_tensor **out) {
  if (size < 0) return em_fail(EM_ERR_RUNTIME, "nonzero_static: 'size' must be an non-negative integer");
  EM_OWN all = NULL;
  EM_OWN t = NULL;
  EM_OWN head = NULL;
  EM_OWN some = NULL;
  EM_PASS(em_tensor_new(2, (const int64_t[]){size, self->ndim}, EM_I64, self->device, &t));
  if (self->device.type == EM_DEVICE_META) return em_priv_give(&t, out);
  EM_PASS(em_call_nonzero(self, &all));
  const int64_t n = all->sizes[0] < size ? all->sizes[0] : size;
  EM_PASS(em_fill(t, em_scalar_int(fill_value)));
  EM_PASS(em_call_narrow(t, 0, 0, n, &head));
  EM_PASS(em_call_narrow(all, 0, 0, n, &some));
  EM_PASS(em_copy_into(head, some));
  return em_priv_give(&t, out);
}
em_status c_nonzero_numpy(em_tensor *self, em_tensor_list *out) {
  EM_OWN places = NULL;
  EM_OWN flat = NULL;
  if (self->ndim == 0) EM_PASS(em_call_unsqueeze(self, 0, &flat));
  EM_PASS(em_call_nonzero(flat != NULL ? flat : self, &places));
  return em_call_unbind_int(places, 1, out);
}
em_status c_argwhere(em_tensor *self, em_tensor **out) { return em_call_nonzero(self, out); }

// ---- take_along_dim: gather with broadcasting; negative positions count from the end
static em_status wrapped_gather(em_tensor *self, int64_t dim, em_tensor *index, em_tensor **out) {
  const int64_t n = self->ndim == 0 ? 1 : self->sizes[dim];
  EM_OWN below = NULL;
  EM_OWN moved = NULL;
  EM_OWN wrapped = NULL;
  EM_PASS(em_call_lt_Scalar(index, em_scalar_int(0), &below));
  EM_PASS(em_call_add_Scalar(index, em_scalar_int(n), em_scalar_int(1), &moved));
  EM_PASS(em_call_where_self(below, moved, index, &wrapped));
  return em_call_gather(self, dim, wrapped, false, out);
}
em_status c_take_along_dim(em_tensor *self, em_tensor *indices, em_opt_int dim, em_tensor **out) {
  if (!em_dtype_is_integral(indices->dtype) || indices->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "torch.take_along_dim(): dtype of indices should be Long but got %s",
                   em_dtype_scalar_name(indices->dtype));
  if (!dim.has) {
    EM_OWN flat = NULL;
    EM_OWN at = NULL;
    EM_PASS(em_call_view(self, EM_INTS(-1), &flat));
    EM_PASS(em_call_view(indices, EM_INTS(-1), &at));
    return wrapped_gather(flat, 0, at, out);
  }
  if (self->ndim != indices->ndim)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d "
                   "dimensions for input, and %d dimensions for indices",
                   self->ndim, indices->ndim);
  int64_t d, n = self->ndim;
  EM_PASS(em_shape_wrap_dim(dim.v, self->ndim, true, &d));
  em_shape a, b;
  EM_PASS(em_shape_of(self, &a));
  EM_PASS(em_shape_of(indices, &b));
  if (n > 0) a.sizes[d] = indices->sizes[d];
  em_shape both = a;
  EM_PASS(em_shape_broadcast(&both, b.ndim, b.sizes));
  EM_OWN source = NULL;
  EM_OWN at = NULL;
  EM_PASS(em_call_expand(indices, (em_ints){both.sizes, n}, false, &at));
  if (n > 0) both.sizes[d] = self->sizes[d];
  EM_PASS(em_call_expand(self, (em_ints){both.sizes, n}, false, &source));
  return wrapped_gather(source, d, at, out);
}

em_status c_one_hot(em_tensor *self, int64_t num_classes, em_tensor **out) {
  if (self->dtype != EM_I64) return em_fail(EM_ERR_RUNTIME, "one_hot is only applicable to index tensor of type LongTensor.");
  if (self->ndim >= EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "one_hot: at most %d dimensions are supported", EM_MAX_DIMS);
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
  if (self->numel == 0 && num_classes <= 0)
    return em_fail(EM_ERR_RUNTIME, "Can not infer total number of classes from empty tensor.");
  if (self->numel > 0 && self->device.type != EM_DEVICE_META) {
    EM_OWN least = NULL;
    EM_OWN most = NULL;
    em_scalar low, high;
    EM_PASS(em_call_min(self, &least));
    EM_PASS(em_call_max(self, &most));
    EM_PASS(em_tensor_item(least, &low));
    EM_PASS(em_tensor_item(most, &high));
    if (low.i < 0) return em_fail(EM_ERR_RUNTIME, "Class values must be non-negative.");
    if (num_classes == -1) {
      if (high.i == INT64_MAX) return em_fail(EM_ERR_RUNTIME, "Class values must be smaller than num_classes.");
      num_classes = high.i + 1;
    } else if (num_classes <= high.i) {
      return em_fail(EM_ERR_RUNTIME, "Class values must be smaller than num_classes.");
    }
  } else if (num_classes < 0) {
    return em_fail(EM_ERR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
  }
  sizes[self->ndim] = num_classes;
  EM_OWN t = NULL;
  EM_OWN deep = NULL;
  EM_PASS(em_call_zeros((em_ints){sizes, self->ndim + 1}, EM_I64, -1, self->device, -1, &t));
  EM_PASS(em_call_unsqueeze(self, -1, &deep));
  if (self->numel > 0) EM_PASS(em_call_scatter__value(t, -1, deep, em_scalar_int(1)));
  return em_priv_give(&t, out);
}
