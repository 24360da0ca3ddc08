// tensor.c: ember/tensor.h.
#include "api.h"
#include <string.h>
#include "../autograd/node.h"
#include "../core/iterator.h"
#include "../core/shape.h"
#include <ember/tensor.h>  // after the library's own headers, whose inline forms win

EXPORT(em_tensor *, em_tensor_retain, (em_tensor *t)) { return em_tensor_retain(t); }
EXPORT(void, em_tensor_release, (em_tensor *t)) { em_tensor_release(t); }
EXPORT(bool, em_tensor_is_contiguous, (const em_tensor *t)) { return t != NULL && em_tensor_is_contiguous(t); }
EXPORT(void *, em_tensor_data, (const em_tensor *t)) { return t == NULL ? NULL : em_tensor_data(t); }

// NULL comes here as the result of a short form that failed: its scope will tell.
int em_tensor_ndim(const em_tensor *t) { return t == NULL ? -1 : t->ndim; }
const int64_t *em_tensor_sizes(const em_tensor *t) { return t == NULL ? NULL : t->sizes; }
const int64_t *em_tensor_strides(const em_tensor *t) { return t == NULL ? NULL : t->strides; }
int64_t em_tensor_numel(const em_tensor *t) { return t == NULL ? -1 : t->numel; }
int em_tensor_dtype(const em_tensor *t) { return t == NULL ? EM_DTYPE_NONE : t->dtype; }
em_device em_tensor_device(const em_tensor *t) { return t == NULL ? EM_DEVICE_NONE : t->device; }
int64_t em_tensor_size(const em_tensor *t, int dim) {
  if (t == NULL) return -1;
  if (dim < 0) dim += t->ndim;
  return dim < 0 || dim >= t->ndim ? -1 : t->sizes[dim];
}
size_t em_dtype_itemsize(int dtype) { return (unsigned)dtype < EM_NUM_DTYPES ? em_dtype_size(dtype) : 0; }
const char *em_dtype_text(int dtype) { return (unsigned)dtype < EM_NUM_DTYPES ? em_dtype_name(dtype) : "no dtype"; }

// The bytes of a contiguous tensor with these sizes, or why there is none.
static em_status count_bytes(const char *who, int dtype, int ndim, const int64_t *sizes, int64_t *bytes) {
  if ((unsigned)dtype >= EM_NUM_DTYPES) return em_fail(EM_ERR_VALUE, "%s(): %d is no dtype", who, dtype);
  if (ndim < 0 || ndim > EM_MAX_DIMS)
    return em_fail(EM_ERR_VALUE, "%s(): ndim must be between 0 and %d, got %d", who, EM_MAX_DIMS, ndim);
  if (ndim > 0 && sizes == NULL) return em_fail(EM_ERR_VALUE, "%s(): sizes is NULL, but ndim is %d", who, ndim);
  *bytes = (int64_t)em_dtype_size(dtype);
  bool none = false;
  for (int i = 0; i < ndim; i++) {
    if (sizes[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "%s(): sizes must not be negative, got %lld at dim %d", who, (long long)sizes[i], i);
    none = none || sizes[i] == 0;
  }
  if (none) *bytes = 0;
  for (int i = 0; i < ndim && !none; i++)
    if (__builtin_mul_overflow(*bytes, sizes[i], bytes)) return em_fail(EM_ERR_RUNTIME, "%s(): the size overflows", who);
  return EM_OK;
}

em_status em_tensor_from_data(const void *data, int dtype, int ndim, const int64_t *sizes, em_tensor **out) {
  int64_t bytes;
  EM_PASS(count_bytes("em_tensor_from_data", dtype, ndim, sizes, &bytes));
  if (data == NULL && bytes > 0) return em_fail(EM_ERR_VALUE, "em_tensor_from_data(): data is NULL");
  em_tensor *t;
  EM_PASS(em_tensor_new(ndim, sizes, dtype, (em_device){EM_DEVICE_CPU, -1}, &t));
  if (bytes > 0) memcpy(em_tensor_data(t), data, (size_t)bytes);
  *out = t;
  return EM_OK;
}

static void keep_bytes(void *context, void *data) {
  (void)context, (void)data;
}
em_status em_tensor_wrap_data(void *data, int dtype, int ndim, const int64_t *sizes,
                              void (*deleter)(void *context, void *data), void *context, em_tensor **out) {
  int64_t bytes;
  EM_PASS(count_bytes("em_tensor_wrap_data", dtype, ndim, sizes, &bytes));
  if (data == NULL && bytes > 0) return em_fail(EM_ERR_VALUE, "em_tensor_wrap_data(): data is NULL");
  if ((uintptr_t)data % em_dtype_size(dtype) != 0 && bytes > 0)
    return em_fail(EM_ERR_VALUE, "em_tensor_wrap_data(): data is not aligned to %s", em_dtype_name(dtype));
  int64_t strides[EM_MAX_DIMS];
  em_shape_contiguous_strides(ndim, sizes, strides);
  em_storage *storage;
  // The deleter is put in last: a failure before that must leave the caller's memory alone.
  EM_PASS(em_storage_wrap(data, (size_t)bytes, (em_device){EM_DEVICE_CPU, -1}, keep_bytes, context, &storage));
  em_status st = em_tensor_new_window(storage, ndim, sizes, strides, 0, dtype, out);
  if (st == EM_OK && deleter != NULL) storage->deleter = deleter;
  em_storage_release(storage);
  return st;
}

em_status em_tensor_from_number(em_scalar number, int dtype, em_tensor **out) {
  if (number.kind == EM_SCALAR_NONE || number.kind > EM_SCALAR_COMPLEX)
    return em_fail(EM_ERR_VALUE, "em_tensor_from_number(): no number was given");
  if (dtype == EM_DTYPE_NONE) dtype = em_scalar_dtype(number);
  if ((unsigned)dtype >= EM_NUM_DTYPES) return em_fail(EM_ERR_VALUE, "em_tensor_from_number(): %d is no dtype", dtype);
  return em_tensor_from_scalar(number, dtype, (em_device){EM_DEVICE_CPU, -1}, out);
}

em_status em_tensor_read(em_tensor *t, int dtype, void *out, size_t bytes) {
  if (t == NULL) return em_fail_null("em_tensor_read", "tensor");
  if ((unsigned)dtype >= EM_NUM_DTYPES) return em_fail(EM_ERR_VALUE, "em_tensor_read(): %d is no dtype", dtype);
  size_t wanted = (size_t)t->numel * em_dtype_size(dtype);
  if (bytes < wanted || (out == NULL && wanted > 0))
    return em_fail(EM_ERR_VALUE, "em_tensor_read(): %zu bytes are needed for %lld elements of %s, got %zu", wanted,
                   (long long)t->numel, em_dtype_name(dtype), out == NULL ? (size_t)0 : bytes);
  if (wanted == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *plain = NULL, *dense = NULL;
  EM_TRY(em_tensor_new(t->ndim, t->sizes, dtype, (em_device){EM_DEVICE_CPU, -1}, &dense));
  EM_TRY(em_tensor_detach(t, &plain));
  EM_TRY(em_copy_into(dense, plain));
  memcpy(out, em_tensor_data(dense), wanted);
fail:
  em_tensor_release(plain);
  em_tensor_release(dense);
  return st;
}

static em_status one_element(const char *who, em_tensor *t, em_scalar *s) {
  if (t == NULL) return em_fail_null(who, "tensor");
  if (t->numel != 1)
    return em_fail(EM_ERR_RUNTIME, "%s(): a Tensor with %lld elements cannot be converted to Scalar", who,
                   (long long)t->numel);
  return em_tensor_item(t, s);
}
em_status em_tensor_to_double(em_tensor *t, double *out) {
  em_scalar s;
  EM_PASS(one_element("em_tensor_to_double", t, &s));
  *out = em_scalar_to_double(s);
  return EM_OK;
}
em_status em_tensor_to_int(em_tensor *t, int64_t *out) {
  em_scalar s;
  EM_PASS(one_element("em_tensor_to_int", t, &s));
  *out = em_scalar_to_int(s);
  return EM_OK;
}
