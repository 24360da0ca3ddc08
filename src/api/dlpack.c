// dlpack.c: DLPack's protocol, for C programs and for the bridge. Its structs have a fixed, documented layout; only their
// names are ours.
#include "api.h"
#include "../autograd/node.h"
#include "../core/shape.h"
#include <ember/autograd.h>  // after the library's own headers, whose inline forms win
#include <ember/tensor.h>

enum { KIND_INT = 0, KIND_UINT = 1, KIND_FLOAT = 2, KIND_BFLOAT = 4, KIND_COMPLEX = 5, KIND_BOOL = 6, ON_CPU = 1 };

typedef struct dl_tensor {
  void *memory;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;  // strides in elements; NULL: contiguous
  uint64_t byte_offset;
} dl_tensor;
struct DLManagedTensor {
  dl_tensor t;
  void *context;
  void (*deleter)(struct DLManagedTensor *);
};
typedef struct exported {
  struct DLManagedTensor m;  // first: what others hold
  em_tensor *tensor;
  int64_t dims[2 * EM_MAX_DIMS];
} exported;

static uint8_t kind_of(int dtype) {
  static const uint8_t kinds[] = {
      [EM_CLASS_BOOL] = KIND_BOOL, [EM_CLASS_INT] = KIND_INT, [EM_CLASS_FLOAT] = KIND_FLOAT, [EM_CLASS_COMPLEX] = KIND_COMPLEX};
  return dtype == EM_BF16 ? KIND_BFLOAT : dtype == EM_U8 ? KIND_UINT : kinds[em_dtype_class_of(dtype)];
}

static void give_back(struct DLManagedTensor *m) {
  if (m == NULL) return;
  exported *e = m->context;
  em_tensor_release(e->tensor);
  em_free(e, sizeof *e);
}

em_status em_tensor_to_dlpack(em_tensor *t, struct DLManagedTensor **out) {
  if (t == NULL) return em_fail_null("em_tensor_to_dlpack", "tensor");
  if (em_tensor_requires_grad(t))
    return em_fail(EM_ERR_RUNTIME, "Can't export tensors that require gradient, use tensor.detach()");
  if (t->device.type != EM_DEVICE_CPU)
    return em_fail(EM_ERR_RUNTIME, "Can't export tensors with layout other than torch.strided");
  exported *e = em_alloc_zeroed(sizeof *e);
  if (e == NULL) return EM_NOMEM(sizeof *e);
  dl_tensor *d = &e->m.t;
  d->memory = em_tensor_data(t);  // lint: allow data, because DLPack hands the address on
  d->device.type = ON_CPU;
  d->ndim = t->ndim;
  d->dtype.code = kind_of(t->dtype);
  d->dtype.bits = (uint8_t)(em_tensor_itemsize(t) * 8);
  d->dtype.lanes = 1;
  d->shape = e->dims;
  d->strides = e->dims + EM_MAX_DIMS;
  for (int i = 0; i < t->ndim; i++) {
    d->shape[i] = t->sizes[i];
    d->strides[i] = t->sizes[i] == 1 ? 1 : t->strides[i];
  }
  e->m.context = e;
  e->m.deleter = give_back;
  e->tensor = em_tensor_retain(t);
  t->storage->resizable = 0;  // others point into it
  *out = &e->m;
  return EM_OK;
}

static int dtype_of(const dl_tensor *d) {
  for (int i = 0; i < EM_NUM_DTYPES && d->dtype.lanes == 1; i++)
    if (kind_of(i) == d->dtype.code && em_dtype_size(i) * 8 == d->dtype.bits) return i;
  return EM_DTYPE_NONE;
}
static void keep_bytes(void *context, void *data) {
  (void)context, (void)data;
}
static void drop(void *context, void *data) {
  struct DLManagedTensor *m = context;
  (void)data;
  if (m->deleter != NULL) m->deleter(m);
}

em_status em_tensor_from_dlpack(struct DLManagedTensor *m, em_tensor **out) {
  if (m == NULL) return em_fail(EM_ERR_TYPE, "em_tensor_from_dlpack(): the managed tensor is NULL");
  const dl_tensor *d = &m->t;
  int dtype = dtype_of(d);
  if (d->device.type != ON_CPU)
    return em_fail(EM_ERR_RUNTIME, "from_dlpack: device type %d is not in this build", d->device.type);
  if (dtype < 0) return em_fail(EM_ERR_RUNTIME, "Unsupported kInt bits %d", d->dtype.bits);
  if (d->ndim < 0 || d->ndim > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "from_dlpack: too many dimensions");
  if (d->ndim > 0 && d->shape == NULL) return em_fail(EM_ERR_RUNTIME, "from_dlpack: there is no shape");
  int64_t strides[EM_MAX_DIMS];
  for (int i = 0; i < d->ndim; i++)
    if (d->shape[i] < 0) return em_fail(EM_ERR_RUNTIME, "from_dlpack: sizes must not be negative");
  if (d->strides == NULL) em_shape_contiguous_strides(d->ndim, d->shape, strides);
  for (int i = 0; i < d->ndim && d->strides != NULL; i++) {
    if (d->strides[i] < 0) return em_fail(EM_ERR_VALUE, "from_dlpack: tensors with negative strides are not supported");
    strides[i] = d->strides[i];
  }
  size_t bytes;
  em_storage *s = NULL;
  EM_PASS(em_shape_storage_bytes(d->ndim, d->shape, strides, 0, em_dtype_size(dtype), &bytes));
  if (d->memory == NULL && bytes > 0) return em_fail(EM_ERR_RUNTIME, "from_dlpack: there is no memory");
  char *data = d->memory == NULL ? NULL : (char *)d->memory + d->byte_offset;
  // The deleter is put in last: a failure before that leaves the memory to the caller.
  EM_PASS(em_storage_wrap(data, bytes, (em_device){EM_DEVICE_CPU, -1}, keep_bytes, m, &s));
  em_status st = em_tensor_new_window(s, d->ndim, d->shape, strides, 0, dtype, out);
  if (st == EM_OK) s->deleter = drop;
  em_storage_release(s);
  return st;
}
