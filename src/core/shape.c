// shape.c: arithmetic on sizes and strides.
#include "shape.h"
#include <stdio.h>
#include <string.h>
#include "value.h"

void em_shape_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides) {
  int64_t s = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = s;
    // only reached with a zero size elsewhere
    if (__builtin_mul_overflow(s, sizes[i] > 1 ? sizes[i] : 1, &s)) s = INT64_MAX;
  }
}
em_status em_shape_wrap_dim(int64_t dim, int ndim, bool wrap_scalar, int64_t *out) {
  int64_t n = ndim;
  if (ndim == 0) {
    if (!wrap_scalar)
      return em_fail(EM_ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    n = 1;
  }
  if (EM_UNLIKELY(dim < -n || dim >= n))
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                   (long long)-n, (long long)(n - 1), (long long)dim);
  *out = dim < 0 ? dim + n : dim;
  return EM_OK;
}
em_status em_shape_of(const em_tensor *t, em_shape *out) {
  out->ndim = t->ndim;
  memcpy(out->sizes, t->sizes, sizeof(int64_t) * t->ndim);
  return EM_OK;
}
bool em_shape_equal(int na, const int64_t *a, int nb, const int64_t *b) {
  if (na != nb) return false;
  for (int i = 0; i < na; i++)
    if (a[i] != b[i]) return false;
  return true;
}
em_status em_shape_broadcast(em_shape *io, int ndim, const int64_t *sizes) {
  int n = io->ndim > ndim ? io->ndim : ndim;
  int64_t merged[EM_MAX_DIMS];
  for (int i = n - 1; i >= 0; i--) {
    int ia = i - (n - io->ndim), ib = i - (n - ndim);
    int64_t a = ia >= 0 ? io->sizes[ia] : 1, b = ib >= 0 ? sizes[ib] : 1;
    if (EM_UNLIKELY(a != b && a != 1 && b != 1))
      return em_fail(EM_ERR_RUNTIME,
                     "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                     (long long)a, (long long)b, i);
    merged[i] = a == 1 ? b : a;
  }
  io->ndim = n;
  memcpy(io->sizes, merged, sizeof(int64_t) * (size_t)n);
  return EM_OK;
}
em_status em_shape_numel(int ndim, const int64_t *sizes, int64_t *out) {
  for (int i = 0; i < ndim; i++)
    if (sizes[i] == 0) {
      *out = 0;
      return EM_OK;
    }
  int64_t n = 1;
  for (int i = 0; i < ndim; i++)
    if (__builtin_mul_overflow(n, sizes[i], &n) || n > EM_MAX_NUMEL)
      return em_fail(EM_ERR_RUNTIME, "numel: integer multiplication overflow");
  *out = n;
  return EM_OK;
}
em_status em_shape_infer(int ndim, const int64_t *sizes, int64_t numel, int64_t *out) {
  int64_t known = 1;
  int unknown = -1;
  bool over = false;
  char text[512];
  for (int i = 0; i < ndim; i++) {
    out[i] = sizes[i];
    if (sizes[i] == -1) {
      if (unknown >= 0) return em_fail(EM_ERR_RUNTIME, "only one dimension can be inferred");
      unknown = i;
    } else if (sizes[i] < 0) {
      return em_fail(EM_ERR_RUNTIME, "invalid shape dimension %lld at index %d of shape %s", (long long)sizes[i], i,
                     em_shape_format(ndim, sizes, text, sizeof text));
    } else {
      over |= __builtin_mul_overflow(known, sizes[i], &known);
    }
  }
  if (!over && known == numel && unknown < 0) return EM_OK;
  if (!over && unknown >= 0 && known > 0 && numel % known == 0) {
    out[unknown] = numel / known;
    return EM_OK;
  }
  if (!over && unknown >= 0 && known == 0 && numel == 0)
    return em_fail(
        EM_ERR_RUNTIME,
        "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any "
        "value and is ambiguous",
        em_shape_format(ndim, sizes, text, sizeof text));
  return em_fail(EM_ERR_RUNTIME, "shape '%s' is invalid for input of size %lld",
                 em_shape_format(ndim, sizes, text, sizeof text), (long long)numel);
}

// Walks old dims from the last in runs that lie densely behind each other; each run must be cut exactly into new dims.
bool em_shape_view_strides(int ndim, const int64_t *sizes, const int64_t *strides, int64_t numel, int new_ndim,
                           const int64_t *new_sizes, int64_t *new_strides) {
  if (numel == 0) {
    if (em_shape_equal(ndim, sizes, new_ndim, new_sizes)) memcpy(new_strides, strides, sizeof(int64_t) * (size_t)ndim);
    else em_shape_contiguous_strides(new_ndim, new_sizes, new_strides);
    return true;
  }
  int v = new_ndim - 1;
  int64_t run_stride = ndim > 0 ? strides[ndim - 1] : 1, run = 1, covered = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    run *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * run_stride);
    if (!ends) continue;
    while (v >= 0 && (covered < run || new_sizes[v] == 1)) {
      new_strides[v] = covered * run_stride;
      covered *= new_sizes[v--];
    }
    if (covered != run) return false;
    if (d > 0) {
      run_stride = strides[d - 1];
      run = covered = 1;
    }
  }
  if (ndim == 0)
    for (; v >= 0; v--) new_strides[v] = 1;
  return v == -1;
}

em_status em_shape_storage_bytes(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                                 size_t itemsize, size_t *out) {
  int64_t last = offset, t;
  for (int i = 0; i < ndim; i++) {
    if (sizes[i] == 0) {
      *out = 0;
      return EM_OK;
    }
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &t) || __builtin_add_overflow(last, t, &last)) goto over;
  }
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, (int64_t)itemsize, &last)) goto over;
  *out = (size_t)last;
  return EM_OK;
over:;
  char a[512], b[512];
  return em_fail(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s and strides=%s",
                 em_shape_format(ndim, sizes, a, sizeof a), em_shape_format(ndim, strides, b, sizeof b));
}
em_status em_shape_check_storage(const em_storage *s, int ndim, const int64_t *sizes, const int64_t *strides,
                                 int64_t offset, size_t itemsize) {
  char a[512], b[512];
  if (offset < 0) return em_fail(EM_ERR_RUNTIME, "Tensor: invalid storage offset %lld", (long long)offset);
  for (int i = 0; i < ndim; i++) {
    if (strides[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "as_strided: Negative strides are not supported at the moment, got strides: %s",
                     em_shape_format(ndim, strides, b, sizeof b));
    if (sizes[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes[i],
                     em_shape_format(ndim, sizes, a, sizeof a));
  }
  size_t need;
  EM_PASS(em_shape_storage_bytes(ndim, sizes, strides, offset, itemsize, &need));
  if (need > s->nbytes)
    return em_fail(EM_ERR_RUNTIME,
                   "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %zu requiring a storage size "
                   "of %zu are out "
                   "of bounds for storage of size %zu",
                   em_shape_format(ndim, sizes, a, sizeof a), em_shape_format(ndim, strides, b, sizeof b),
                   (long long)offset, itemsize, need, s->nbytes);
  return EM_OK;
}
const char *em_shape_format(int ndim, const int64_t *sizes, char *buf, size_t n) {
  size_t at = (size_t)snprintf(buf, n, "[");
  for (int i = 0; i < ndim && at < n; i++)
    at += (size_t)snprintf(buf + at, n - at, i ? ", %lld" : "%lld", (long long)sizes[i]);
  if (at < n) snprintf(buf + at, n - at, "]");
  return buf;
}

// --- overlap. Sorted by stride, a tensor whose every stride is at least the reach of the smaller ones cannot meet
// itself.
em_overlap em_shape_internal_overlap(const em_tensor *t) {
  if (em_tensor_is_contiguous(t) || t->numel <= 1) return EM_OVERLAP_NO;
  int order[EM_MAX_DIMS], n = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (t->sizes[i] == 1) continue;
    if (t->strides[i] == 0) return EM_OVERLAP_YES;
    int j = n++;
    for (; j > 0 && t->strides[order[j - 1]] > t->strides[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  int64_t reach = 0;
  for (int j = 0; j < n; j++) {
    if (t->strides[order[j]] <= reach) return EM_OVERLAP_TOO_HARD;
    reach += (t->sizes[order[j]] - 1) * t->strides[order[j]];
  }
  return EM_OVERLAP_NO;
}
em_overlap_pair em_shape_pair_overlap(const em_tensor *a, const em_tensor *b) {
  if (a == b) return EM_PAIR_FULL;
  if (a->numel == 0 || b->numel == 0 || a->storage == NULL || a->storage != b->storage || a->storage->data == NULL)
    return EM_PAIR_NO;
  const char *da = em_tensor_data(a), *db = em_tensor_data(b);
  if (da == db && a->dtype == b->dtype && em_tensor_same_sizes(a, b) &&
      (memcmp(a->strides, b->strides, sizeof(int64_t) * a->ndim) == 0 ||
       (em_tensor_is_contiguous(a) && em_tensor_is_contiguous(b))))
    return EM_PAIR_FULL;
  int64_t ra = 0, rb = 0;
  for (int i = 0; i < a->ndim; i++) ra += (a->sizes[i] - 1) * a->strides[i];
  for (int i = 0; i < b->ndim; i++) rb += (b->sizes[i] - 1) * b->strides[i];
  const char *ea = da + (ra + 1) * (int64_t)em_tensor_itemsize(a), *eb = db + (rb + 1) * (int64_t)em_tensor_itemsize(b);
  if (ea <= db || eb <= da) return EM_PAIR_NO;
  // Interleaved windows (columns of a matrix) may miss each other; PyTorch gives up on them, and so do we.
  bool dense = ra + 1 == a->numel && rb + 1 == b->numel;
  return dense ? EM_PAIR_PARTIAL : EM_PAIR_TOO_HARD;
}
em_status em_shape_assert_no_internal_overlap(const em_tensor *t) {
  if (EM_LIKELY(em_shape_internal_overlap(t) != EM_OVERLAP_YES)) return EM_OK;
  return em_fail(
      EM_ERR_RUNTIME,
      "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
      "Please clone() the tensor before performing the operation.");
}
static em_status fail_overlap(void) {
  return em_fail(
      EM_ERR_RUNTIME,
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. Please clone() the tensor before performing the operation.");
}
em_status em_shape_assert_no_partial_overlap(const em_tensor *out, const em_tensor *in) {
  return EM_UNLIKELY(em_shape_pair_overlap(out, in) == EM_PAIR_PARTIAL) ? fail_overlap() : EM_OK;
}
em_status em_shape_assert_no_overlap(const em_tensor *out, const em_tensor *in) {
  em_overlap_pair p = em_shape_pair_overlap(out, in);
  return EM_UNLIKELY(p == EM_PAIR_PARTIAL || p == EM_PAIR_FULL) ? fail_overlap() : EM_OK;
}

int em_shape_suggested_format(const em_tensor *t) {
  if (t->ndim != 4 && t->ndim != 5) return EM_FORMAT_CONTIGUOUS;
  int64_t least = 0;
  if (t->strides[1] == 0) return EM_FORMAT_CONTIGUOUS;
  for (int k = 0; k < t->ndim; k++) {  // channels, then the last dim to the first of the picture, then the batch
    int d = k == 0 ? 1 : k == t->ndim - 1 ? 0 : t->ndim - k;
    if (t->sizes[d] == 0 || t->strides[d] < least) return EM_FORMAT_CONTIGUOUS;
    if (d == 0 && least == t->strides[1]) return EM_FORMAT_CONTIGUOUS;  // every order fits
    least = t->strides[d] * (t->sizes[d] > 1 ? t->sizes[d] : 1);
  }
  return t->ndim == 4 ? EM_FORMAT_CHANNELS_LAST : EM_FORMAT_CHANNELS_LAST_3D;
}
