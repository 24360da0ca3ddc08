// copy.c: operators that move bytes: clone, copy_, casts, fills. Layouts follow PyTorch's memory formats.
#include <string.h>
#include <stdatomic.h>
#include "copy.h"
#include "gen_ops.h"

static bool dense(const em_tensor *t) {  // non-overlapping and dense: every byte of the window's span is some element
  if (em_tensor_is_contiguous(t)) return true;
  if (em_shape_internal_overlap(t) != EM_OVERLAP_NO) return false;
  int64_t reach = 1;
  for (int i = 0; i < t->ndim; i++) reach += (t->sizes[i] - 1) * t->strides[i];
  return reach == t->numel;
}
// Dense strides in the order of t's own, as TensorIterator would lay an output out: dims sorted by stride, ties and
// zeros keep their order.
static void dense_strides(const em_tensor *t, int64_t *strides) {
  int order[EM_MAX_DIMS];  // innermost first
  for (int i = 0; i < t->ndim; i++) order[i] = t->ndim - 1 - i;
  for (int i = 1; i < t->ndim; i++)
    for (int j = i; j > 0; j--) {
      int64_t a = t->strides[order[j - 1]], b = t->strides[order[j]];
      if (a == 0 || b == 0 || a < b || (a == b && t->sizes[order[j - 1]] <= t->sizes[order[j]])) break;
      int o = order[j];
      order[j] = order[j - 1];
      order[j - 1] = o;
    }
  int64_t s = 1;
  for (int i = 0; i < t->ndim; i++) {
    strides[order[i]] = s;
    s *= t->sizes[order[i]] > 1 ? t->sizes[order[i]] : 1;
  }
}
void em_priv_channels_last_strides(int ndim, const int64_t *sizes, int64_t *strides) {
  int64_t s = sizes[1] > 1 ? sizes[1] : 1;
  strides[1] = 1;
  for (int i = ndim - 1; i >= 2; i--) {
    strides[i] = s;
    s *= sizes[i] > 1 ? sizes[i] : 1;
  }
  strides[0] = s;
}
// Strides of a fresh copy of t in a memory format. EM_ERR_RUNTIME for channels_last of the wrong rank.
em_status em_priv_format_strides(const em_tensor *t, int format, int64_t *strides) {
  if (format > EM_FORMAT_CHANNELS_LAST_3D) return em_fail(EM_ERR_VALUE, "no memory format has the number %d", format);
  if (format == EM_FORMAT_CONTIGUOUS) {
    em_shape_contiguous_strides(t->ndim, t->sizes, strides);
  } else if (format == EM_FORMAT_CHANNELS_LAST || format == EM_FORMAT_CHANNELS_LAST_3D) {
    int want = format == EM_FORMAT_CHANNELS_LAST ? 4 : 5;
    if (t->ndim != want)
      return em_fail(EM_ERR_RUNTIME, "required rank %d tensor to use channels_last%s format", want,
                     want == 4 ? "" : "_3d");
    em_priv_channels_last_strides(want, t->sizes, strides);
  } else if (dense(t)) {
    memcpy(strides, t->strides, sizeof(int64_t) * t->ndim);
  } else {
    dense_strides(t, strides);
  }
  return EM_OK;
}
em_status em_priv_empty_like(em_tensor *t, int dtype, em_device device, int format, em_tensor **out) {
  int64_t strides[EM_MAX_DIMS];
  bool plain = em_tensor_is_contiguous(t) && format < EM_FORMAT_CHANNELS_LAST;
  for (int d = 0; d < t->ndim && plain && format != EM_FORMAT_CONTIGUOUS; d++)
    plain = t->sizes[d] > 1;  // the stride of a dim of size 1 is kept, whatever it is
  if (plain) return em_tensor_new(t->ndim, t->sizes, dtype, device, out);
  EM_PASS(em_priv_format_strides(t, format, strides));
  return em_tensor_new_strided(t->ndim, t->sizes, strides, dtype, device, out);
}

em_status n_clone(uint64_t ks, em_tensor *self, int memory_format, em_tensor **out) {
  (void)ks;
  em_tensor *t;
  EM_PASS(em_priv_empty_like(self, self->dtype, self->device, memory_format, &t));
  em_status st = self->device.type == EM_DEVICE_META ? EM_OK : em_copy_into(t, self);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_contiguous(em_tensor *self, int memory_format, em_tensor **out) {
  bool already = memory_format <= EM_FORMAT_PRESERVE && em_tensor_is_contiguous(self);
  if (memory_format == EM_FORMAT_PRESERVE && !already)
    return em_fail(EM_ERR_RUNTIME, "preserve memory format is unsupported by the contiguous operator");
  if (!already && memory_format >= EM_FORMAT_CHANNELS_LAST) {
    int64_t strides[EM_MAX_DIMS];
    EM_PASS(em_priv_format_strides(self, memory_format, strides));
    already = true;
    for (int i = 0; i < self->ndim; i++) already &= self->sizes[i] == 1 || self->strides[i] == strides[i];
  }
  if (!already) return em_call_clone(self, memory_format < 0 ? EM_FORMAT_CONTIGUOUS : memory_format, out);
  *out = em_tensor_retain(self);
  return EM_OK;
}
// Said once a process, as in PyTorch.
static em_status warn_discards(const em_tensor *src, int to) {
  static _Atomic int told;
  if (!em_dtype_is_complex(src->dtype) || em_dtype_is_complex(to) || to == EM_BOOL || atomic_exchange(&told, 1)) return EM_OK;
  return em_warn("Casting complex values to real discards the imaginary part");
}

em_status n_copy_(uint64_t ks, em_tensor *self, em_tensor *src, bool non_blocking) {
  (void)ks;
  (void)non_blocking;
  em_shape s = {.ndim = 0};
  EM_PASS(em_shape_assert_no_internal_overlap(self));
  EM_PASS(em_shape_of(self, &s));
  em_status st = em_shape_broadcast(&s, src->ndim, src->sizes);
  if (st != EM_OK || !em_shape_equal(s.ndim, s.sizes, self->ndim, self->sizes)) {
    if (st != EM_OK) return st;
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a),
                   em_shape_format(s.ndim, s.sizes, b, sizeof b));
  }
  if (self->device.type == EM_DEVICE_META) return EM_OK;
  if (src->device.type == EM_DEVICE_META)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
  EM_PASS(warn_discards(src, self->dtype));
  return em_copy_into(self, src);
}

em_status n_to_copy(uint64_t ks, em_tensor *self, int dtype, int layout, em_device device, em_opt_bool pin_memory,
                    bool non_blocking, int memory_format, em_tensor **out) {
  (void)ks;
  (void)layout;
  (void)pin_memory;
  (void)non_blocking;
  em_device to = em_device_given(device) ? device : self->device;
  EM_PASS(em_device_check(to));
  if (self->device.type == EM_DEVICE_META && to.type != EM_DEVICE_META)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
  if (dtype >= 0 && to.type != EM_DEVICE_META) EM_PASS(warn_discards(self, dtype));
  em_tensor *t;
  EM_PASS(em_priv_empty_like(self, dtype < 0 ? self->dtype : dtype, (em_device){to.type, -1}, memory_format, &t));
  em_status st = to.type == EM_DEVICE_META ? EM_OK : em_copy_into(t, self);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_to_dtype_layout(em_tensor *self, int dtype, int layout, em_device device, em_opt_bool pin_memory,
                            bool non_blocking, bool copy, int memory_format, em_tensor **out) {
  bool same = (dtype < 0 || dtype == self->dtype) && (!em_device_given(device) || device.type == self->device.type) &&
              (memory_format < 0 || memory_format == EM_FORMAT_PRESERVE ||
               memory_format == em_shape_suggested_format(self));
  if (!same || copy) return em_call__to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format, out);
  if (em_device_given(device)) EM_PASS(em_device_check(device));
  *out = em_tensor_retain(self);
  return EM_OK;
}
em_status c_to_dtype(em_tensor *self, int dtype, bool non_blocking, bool copy, int memory_format, em_tensor **out) {
  return c_to_dtype_layout(self, dtype, -1, EM_DEVICE_NONE, -1, non_blocking, copy, memory_format, out);
}
em_status c_type_as(em_tensor *self, em_tensor *other, em_tensor **out) {
  return c_to_dtype_layout(self, other->dtype, -1, other->device, -1, false, false, EM_FORMAT_NONE, out);
}

// Every element gets the same value: elements that share bytes do no harm.
em_status n_fill_(uint64_t ks, em_tensor *self, em_scalar value) {
  (void)ks;
  return self->device.type == EM_DEVICE_META ? EM_OK : em_fill(self, value);
}
em_status n_fill_tensor_(uint64_t ks, em_tensor *self, em_tensor *value) {
  if (value->ndim != 0)
    return em_fail(EM_ERR_RUNTIME, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
                   value->ndim);
  if (self->device.type == EM_DEVICE_META) return EM_OK;
  em_scalar s;
  EM_PASS(em_tensor_item(value, &s));
  return n_fill_(ks, self, s);
}
em_status c_fill(em_tensor *self, em_scalar value, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_call_empty_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t));
  em_status st = em_call_fill__Scalar(t, value);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_fill_tensor(em_tensor *self, em_tensor *value, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_call_empty_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t));
  em_status st = em_call_fill__Tensor(t, value);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
// A copy from a window that walks the flipped dims backwards. No tensor that a user sees has a negative stride.
em_status n_flip(uint64_t ks, em_tensor *self, em_ints dims, em_tensor **out) {
  (void)ks;
  uint64_t flipped = 0;
  int64_t strides[EM_MAX_DIMS], offset = self->offset;
  if (self->ndim > 0) memcpy(strides, self->strides, sizeof(int64_t) * self->ndim);
  for (int64_t i = 0; i < dims.n; i++) {
    int64_t d;
    EM_PASS(em_shape_wrap_dim(dims.p[i], self->ndim, true, &d));
    if (flipped >> d & 1)
      return em_fail(EM_ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (long long)d);
    flipped |= 1ull << d;
    if (self->ndim == 0 || self->sizes[d] < 2) continue;
    offset += (self->sizes[d] - 1) * self->strides[d];
    strides[d] = -self->strides[d];
  }
  em_tensor *t, *backwards;
  EM_PASS(em_priv_empty_like(self, self->dtype, self->device, EM_FORMAT_PRESERVE, &t));
  em_status st = EM_OK;
  if (t->device.type != EM_DEVICE_META && t->numel > 0) {
    st = em_tensor_new_window(self->storage, self->ndim, self->sizes, strides, offset, self->dtype, &backwards);
    if (st == EM_OK) {
      st = em_copy_into(t, backwards);
      em_tensor_release(backwards);
    }
  }
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status n_zero_(uint64_t ks, em_tensor *self) { return n_fill_(ks, self, em_scalar_int(0)); }
em_status n_resize_(uint64_t ks, em_tensor *self, em_ints size, int memory_format) {
  (void)ks;
  if (memory_format == EM_FORMAT_PRESERVE) return em_fail(EM_ERR_RUNTIME, "Unsupported memory formatPreserve");
  if (memory_format > EM_FORMAT_CHANNELS_LAST_3D)
    return em_fail(EM_ERR_VALUE, "no memory format has the number %d", memory_format);
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "resize_: at most %d dimensions are supported, got %lld", EM_MAX_DIMS, (long long)size.n);
  const int rank = memory_format == EM_FORMAT_CHANNELS_LAST ? 4 : memory_format == EM_FORMAT_CHANNELS_LAST_3D ? 5 : 0;
  if (rank > 0 && size.n != rank)
    return em_fail(EM_ERR_RUNTIME, "required rank %d tensor to use channels_last%s format", rank, rank == 4 ? "" : "_3d");
  EM_PASS(em_tensor_resize(self, (int)size.n, size.p));
  if (rank == 0) return EM_OK;
  int64_t strides[EM_MAX_DIMS];
  em_priv_channels_last_strides(rank, size.p, strides);
  return em_tensor_set_window(self, rank, size.p, strides, self->offset);
}
