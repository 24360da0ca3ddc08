// views.c: geometry of view operators. Each function is pure: from a tensor's window and the attributes to a new
// window, or an error in PyTorch's words. Nothing is read or written; the generated entry makes the tensor.
#include <string.h>
#include "gen_ops.h"

static void same(const em_tensor *self, em_geometry *g) {
  g->ndim = self->ndim;
  g->offset = self->offset;
  memcpy(g->sizes, self->sizes, sizeof(int64_t) * self->ndim);
  memcpy(g->strides, self->strides, sizeof(int64_t) * self->ndim);
}
static void remove_dim(em_geometry *g, int d) {
  for (int i = d; i + 1 < g->ndim; i++) {
    g->sizes[i] = g->sizes[i + 1];
    g->strides[i] = g->strides[i + 1];
  }
  g->ndim--;
}

em_status view_alias(const em_tensor *self, em_geometry *g) {
  same(self, g);
  return EM_OK;
}

em_status view_view(const em_tensor *self, em_ints size, em_geometry *g) {
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "view: at most %d dimensions are supported, got %lld", EM_MAX_DIMS,
                   (long long)size.n);
  g->ndim = (int)size.n;
  g->offset = self->offset;
  EM_PASS(em_shape_infer(g->ndim, size.p, self->numel, g->sizes));
  if (em_shape_view_strides(self->ndim, self->sizes, self->strides, self->numel, g->ndim, g->sizes, g->strides))
    return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "view size is not compatible with input tensor's size and stride (at least one "
                                 "dimension spans across two contiguous "
                                 "subspaces). Use .reshape(...) instead.");
}

// view(dtype): the last dimension absorbs a change of element size.
em_status view_dtype(const em_tensor *self, int dtype, em_geometry *g) {
  same(self, g);
  g->dtype = dtype;
  int64_t from = (int64_t)em_tensor_itemsize(self), to = (int64_t)em_dtype_size(dtype);
  if (from == to) return EM_OK;
  if (self->ndim == 0)
    return em_fail(EM_ERR_RUNTIME, "self.dim() cannot be 0 to view %s as %s (different element sizes)",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(dtype));
  int last = self->ndim - 1;
  if (self->strides[last] != 1)
    return em_fail(EM_ERR_RUNTIME, "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(dtype), (long long)self->strides[last]);
  if (from > to) {
    int64_t ratio = from / to;
    g->offset *= ratio;
    for (int i = 0; i < last; i++) g->strides[i] *= ratio;
    g->sizes[last] *= ratio;
    return EM_OK;
  }
  int64_t ratio = to / from;
  const char *f = em_dtype_scalar_name(self->dtype), *t = em_dtype_scalar_name(dtype);
  if (self->sizes[last] % ratio != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
                   (long long)ratio, f, t, (long long)self->sizes[last]);
  if (self->offset % ratio != 0)
    return em_fail(
        EM_ERR_RUNTIME,
        "self.storage_offset() must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
        (long long)ratio, f, t, (long long)self->offset);
  for (int i = 0; i < last; i++) {
    if (self->strides[i] % ratio != 0)
      return em_fail(
          EM_ERR_RUNTIME,
          "self.stride(%d) must be divisible by %lld to view %s as %s (different element sizes), but got %lld", i,
          (long long)ratio, f, t, (long long)self->strides[i]);
    g->strides[i] /= ratio;
  }
  g->offset /= ratio;
  g->sizes[last] /= ratio;
  return EM_OK;
}

em_status view_transpose(const em_tensor *self, int64_t dim0, int64_t dim1, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim0, self->ndim, true, &dim0));
  EM_PASS(em_shape_wrap_dim(dim1, self->ndim, true, &dim1));
  same(self, g);
  if (self->ndim == 0) return EM_OK;
  int64_t s = g->sizes[dim0], t = g->strides[dim0];
  g->sizes[dim0] = g->sizes[dim1];
  g->strides[dim0] = g->strides[dim1];
  g->sizes[dim1] = s;
  g->strides[dim1] = t;
  return EM_OK;
}
em_status view_t(const em_tensor *self, em_geometry *g) {
  if (self->ndim > 2)
    return em_fail(EM_ERR_RUNTIME, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
  return view_transpose(self, 0, self->ndim < 2 ? 0 : 1, g);
}
em_status view_permute(const em_tensor *self, em_ints dims, em_geometry *g) {
  if (dims.n != self->ndim) {
    return em_fail(EM_ERR_RUNTIME,
                   "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                   "desired ordering of "
                   "dimensions i.e. input.dim() = %d is not equal to len(dims) = %lld",
                   self->ndim, (long long)dims.n);
  }
  bool seen[EM_MAX_DIMS] = {false};
  g->ndim = self->ndim;
  g->offset = self->offset;
  for (int i = 0; i < self->ndim; i++) {
    int64_t d;
    EM_PASS(em_shape_wrap_dim(dims.p[i], self->ndim, true, &d));
    if (seen[d]) return em_fail(EM_ERR_RUNTIME, "permute(): duplicate dims are not allowed.");
    seen[d] = true;
    g->sizes[i] = self->sizes[d];
    g->strides[i] = self->strides[d];
  }
  return EM_OK;
}

em_status view_expand(const em_tensor *self, em_ints size, bool implicit, em_geometry *g) {
  (void)implicit;
  char a[256], b[256];
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "expand: at most %d dimensions are supported, got %lld", EM_MAX_DIMS,
                   (long long)size.n);
  if (size.n < self->ndim) {
    const bool meta = self->device.type == EM_DEVICE_META;
    // PyTorch has two ways to write a tensor's type; the older one for the dtypes that it began with
    const bool old = !meta && (em_dtype_is_float(self->dtype) ? self->dtype != EM_BF16 : self->dtype != EM_BOOL) &&
                     !em_dtype_is_complex(self->dtype);
    return em_fail(EM_ERR_RUNTIME,
                   "expand(%s%s%s{%s}, size=%s): the number of sizes provided (%lld) must be greater or equal to the number "
                   "of dimensions in "
                   "the tensor (%d)",
                   meta ? "Meta" : old ? "torch." : "CPU", em_dtype_scalar_name(self->dtype), old ? "Tensor" : "Type",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a), em_shape_format((int)size.n, size.p, b, sizeof b),
                   (long long)size.n, self->ndim);
  }
  g->ndim = (int)size.n;
  g->offset = self->offset;
  for (int i = g->ndim - 1; i >= 0; i--) {
    int k = i - (g->ndim - self->ndim);
    int64_t have = k >= 0 ? self->sizes[k] : 1, want = size.p[i];
    int64_t stride = k >= 0 ? self->strides[k] : i + 1 < g->ndim ? g->sizes[i + 1] * g->strides[i + 1] : 0;
    if (want == -1) {
      if (k < 0)
        return em_fail(EM_ERR_RUNTIME,
                       "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %d",
                       (long long)want, i);
      want = have;
    }
    if (have != want) {
      if (have != 1)
        return em_fail(EM_ERR_RUNTIME,
                       "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
                       "dimension %d.  "
                       "Target sizes: %s.  Tensor sizes: %s",
                       (long long)want, (long long)have, i, em_shape_format(g->ndim, size.p, a, sizeof a),
                       em_shape_format(self->ndim, self->sizes, b, sizeof b));
      stride = 0;
    }
    g->sizes[i] = want;
    g->strides[i] = stride;
  }
  return EM_OK;
}

em_status view_select(const em_tensor *self, int64_t dim, int64_t index, em_geometry *g) {
  if (EM_UNLIKELY(self->ndim == 0)) return em_fail(EM_ERR_INDEX, "select() cannot be applied to a 0-dim tensor.");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  int64_t n = self->sizes[dim];
  if (EM_UNLIKELY(index < -n || index >= n)) {
    char a[256];
    return em_fail(EM_ERR_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %lld",
                   (long long)index, em_shape_format(self->ndim, self->sizes, a, sizeof a), (long long)dim);
  }
  same(self, g);
  g->offset += (index < 0 ? index + n : index) * self->strides[dim];
  remove_dim(g, (int)dim);
  return EM_OK;
}
em_status view_slice(const em_tensor *self, int64_t dim, em_opt_int start, em_opt_int end, int64_t step,
                     em_geometry *g) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "slice() cannot be applied to a 0-dim tensor.");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (step <= 0) return em_fail(EM_ERR_RUNTIME, "slice step must be positive");
  int64_t n = self->sizes[dim], b = start.has ? start.v : 0, e = end.has ? end.v : INT64_MAX;
  if (b < 0) b += n;
  if (e < 0) e += n;
  b = b < 0 ? 0 : b > n ? n : b;
  e = e < b ? b : e > n ? n : e;
  same(self, g);
  g->offset += b * self->strides[dim];
  g->sizes[dim] = (e - b) / step + ((e - b) % step != 0);
  g->strides[dim] = __builtin_mul_overflow(self->strides[dim], step, &step) ? INT64_MAX : step;
  if (g->sizes[dim] <= 1 && g->strides[dim] == INT64_MAX) g->strides[dim] = self->strides[dim];
  return EM_OK;
}
em_status view_unsqueeze(const em_tensor *self, int64_t dim, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim + 1, true, &dim));
  if (self->ndim == EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "unsqueeze: at most %d dimensions are supported", EM_MAX_DIMS);
  same(self, g);
  for (int i = g->ndim; i > dim; i--) {
    g->sizes[i] = g->sizes[i - 1];
    g->strides[i] = g->strides[i - 1];
  }
  g->strides[dim] = dim < self->ndim ? self->sizes[dim] * self->strides[dim] : 1;
  g->sizes[dim] = 1;
  g->ndim++;
  return EM_OK;
}
em_status view_squeeze(const em_tensor *self, em_geometry *g) {
  same(self, g);
  for (int i = g->ndim - 1; i >= 0; i--)
    if (g->sizes[i] == 1) remove_dim(g, i);
  return EM_OK;
}
em_status view_squeeze_dim(const em_tensor *self, int64_t dim, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  same(self, g);
  if (self->ndim > 0 && g->sizes[dim] == 1) remove_dim(g, (int)dim);
  return EM_OK;
}
em_status view_squeeze_dims(const em_tensor *self, em_ints dims, em_geometry *g) {
  bool drop[EM_MAX_DIMS] = {false};
  for (int64_t i = 0; i < dims.n; i++) {
    int64_t d;
    EM_PASS(em_shape_wrap_dim(dims.p[i], self->ndim, true, &d));
    if (drop[d]) return em_fail(EM_ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (long long)d);
    drop[d] = true;
  }
  same(self, g);
  for (int i = self->ndim - 1; i >= 0; i--)
    if (drop[i] && g->sizes[i] == 1) remove_dim(g, i);
  return EM_OK;
}

em_status view_as_strided(const em_tensor *self, em_ints size, em_ints stride, em_opt_int storage_offset,
                          em_geometry *g) {
  if (size.n != stride.n) return em_fail(EM_ERR_RUNTIME, "mismatch in length of strides and shape");
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "as_strided: at most %d dimensions are supported, got %lld", EM_MAX_DIMS,
                   (long long)size.n);
  g->ndim = (int)size.n;
  g->offset = storage_offset.has ? storage_offset.v : self->offset;
  if (size.n > 0) {
    memcpy(g->sizes, size.p, sizeof(int64_t) * (size_t)size.n);
    memcpy(g->strides, stride.p, sizeof(int64_t) * (size_t)size.n);
  }
  return em_shape_check_storage(self->storage, g->ndim, g->sizes, g->strides, g->offset, em_tensor_itemsize(self));
}
em_status view_diagonal(const em_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim1, self->ndim, true, &dim1));
  EM_PASS(em_shape_wrap_dim(dim2, self->ndim, true, &dim2));
  if (dim1 == dim2)
    return em_fail(EM_ERR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                   (long long)dim2);
  int64_t n1 = self->sizes[dim1], n2 = self->sizes[dim2];
  int64_t rows = offset < 0 ? n1 + offset : n1, cols = offset < 0 ? n2 : n2 - offset, n = rows < cols ? rows : cols;
  same(self, g);
  int64_t stride = self->strides[dim1] + self->strides[dim2];
  if (n > 0) g->offset += offset >= 0 ? offset * self->strides[dim2] : -offset * self->strides[dim1];
  remove_dim(g, (int)(dim1 > dim2 ? dim1 : dim2));
  remove_dim(g, (int)(dim1 > dim2 ? dim2 : dim1));
  g->sizes[g->ndim] = n > 0 ? n : 0;
  g->strides[g->ndim++] = stride;
  return EM_OK;
}
em_status view_unfold(const em_tensor *self, int64_t dim, int64_t size, int64_t step, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  int64_t n = self->ndim == 0 ? 1 : self->sizes[dim];
  if (step <= 0) return em_fail(EM_ERR_RUNTIME, "step is %lld but must be > 0", (long long)step);
  if (size < 0) return em_fail(EM_ERR_RUNTIME, "size is %lld but must be >= 0", (long long)size);
  if (size > n)
    return em_fail(EM_ERR_RUNTIME, "maximum size for tensor at dimension %lld is %lld but size is %lld", (long long)dim,
                   (long long)n, (long long)size);
  if (self->ndim == EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "unfold: at most %d dimensions are supported", EM_MAX_DIMS);
  same(self, g);
  g->strides[g->ndim] = self->ndim == 0 ? 1 : self->strides[dim];
  g->sizes[g->ndim++] = size;
  if (self->ndim == 0) return EM_OK;
  g->sizes[dim] = (n - size) / step + 1;
  g->strides[dim] = step * self->strides[dim];
  return EM_OK;
}

em_status views_unbind(const em_tensor *self, int64_t dim, int64_t i, int64_t *count, em_geometry *g) {
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, false, &dim));
  *count = self->sizes[dim];
  return i < 0 ? EM_OK : view_select(self, dim, i, g);
}
em_status views_split(const em_tensor *self, int64_t split_size, int64_t dim, int64_t i, int64_t *count,
                      em_geometry *g) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "split expects at least a 1-dimensional tensor");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  if (split_size < 0)
    return em_fail(EM_ERR_RUNTIME, "split expects split_size be non-negative, but got split_size=%lld",
                   (long long)split_size);
  int64_t n = self->sizes[dim];
  if (split_size == 0 && n != 0)
    return em_fail(EM_ERR_RUNTIME, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                   (long long)n);
  *count = split_size == 0 || n == 0 ? 1 : (n - 1) / split_size + 1;
  if (i < 0) return EM_OK;
  return view_slice(self, dim, em_some_int(i * split_size),
                    em_some_int(n - i * split_size < split_size ? n : (i + 1) * split_size), 1, g);
}
em_status views_split_with_sizes(const em_tensor *self, em_ints sizes, int64_t dim, int64_t i, int64_t *count,
                                 em_geometry *g) {
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "split expects at least a 1-dimensional tensor");
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  *count = sizes.n;
  int64_t at = 0, begin = 0;
  char a[256];
  for (int64_t k = 0; k < sizes.n; k++) {
    if (sizes.p[k] < 0)
      return em_fail(EM_ERR_RUNTIME,
                     "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
                     em_shape_format((int)sizes.n, sizes.p, a, sizeof a));
    if (k == i) begin = at;
    if (__builtin_add_overflow(at, sizes.p[k], &at)) at = -1;
  }
  if (at != self->sizes[dim])
    return em_fail(
        EM_ERR_RUNTIME,
        "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %lld), but got "
        "split_sizes=%s",
        (long long)self->sizes[dim], (long long)dim, em_shape_format((int)sizes.n, sizes.p, a, sizeof a));
  return i < 0 ? EM_OK : view_slice(self, dim, em_some_int(begin), em_some_int(begin + sizes.p[i]), 1, g);
}

em_status view_as_real(const em_tensor *self, em_geometry *g) {
  if (!em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "view_as_real is only supported for complex tensors");
  if (self->ndim == EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "view_as_real: at most %d dimensions are supported", EM_MAX_DIMS);
  same(self, g);
  g->dtype = em_dtype_to_real(self->dtype);
  g->offset *= 2;
  for (int i = 0; i < g->ndim; i++) g->strides[i] *= 2;
  g->sizes[g->ndim] = 2;
  g->strides[g->ndim++] = 1;
  return EM_OK;
}
em_status view_as_complex(const em_tensor *self, em_geometry *g) {
  if (self->dtype != EM_F32 && self->dtype != EM_F64)
    return em_fail(
        EM_ERR_RUNTIME,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
        em_dtype_scalar_name(self->dtype));
  if (self->ndim == 0) return em_fail(EM_ERR_RUNTIME, "Input tensor must have one or more dimensions");
  int last = self->ndim - 1;
  if (self->sizes[last] != 2) return em_fail(EM_ERR_RUNTIME, "Tensor must have a last dimension of size 2");
  if (self->strides[last] != 1) return em_fail(EM_ERR_RUNTIME, "Tensor must have a last dimension with stride 1");
  same(self, g);
  g->dtype = em_dtype_to_complex(self->dtype);
  g->ndim = last;
  for (int i = 0; i < last; i++) {
    if (g->strides[i] % 2 != 0)
      return em_fail(EM_ERR_RUNTIME, "Tensor must have a stride divisible by 2 for all but last dimension");
    g->strides[i] /= 2;
  }
  if (g->offset % 2 != 0) return em_fail(EM_ERR_RUNTIME, "Tensor must have a storage_offset divisible by 2");
  g->offset /= 2;
  return EM_OK;
}
