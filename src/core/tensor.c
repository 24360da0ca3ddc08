// tensor.c: windows over storages: making, freeing, changing them.
#include "tensor.h"
#include <string.h>
#include "shape.h"

void (*em_priv_meta_release)(em_autograd_meta *meta);
void (*em_priv_pyobj_release)(em_tensor *t);

static inline void header_init(em_tensor *t, int dtype, em_device device) {
  atomic_init(&t->rc, 1);
  t->dtype = (uint8_t)dtype;
  t->device = device;
  t->keys = EM_KEYBIT(em_device_key(device));
  t->flags = 0;
  if (EM_LIKELY(!em_priv_tls.inference)) t->keys |= EM_KEYBIT(EM_KEY_Alias);
  else t->flags = EM_T_INFERENCE;
  t->offset = 0;
  t->version = NULL;
  t->meta = NULL;
  t->pyobj = NULL;
  t->inner = NULL;
  em_priv_live(EM_KIND_TENSOR, 1);
}
static inline em_status dims_init(em_tensor *t, int ndim) {
  t->ndim = (uint8_t)ndim;
  t->sizes = t->dims;
  if (EM_UNLIKELY(ndim > EM_INLINE_DIMS)) {
    t->sizes = em_alloc(sizeof(int64_t) * 2 * (size_t)ndim);
    if (t->sizes == NULL) return EM_NOMEM(sizeof(int64_t) * 2 * (size_t)ndim);
  }
  t->strides = t->sizes + (ndim > EM_INLINE_DIMS ? ndim : EM_INLINE_DIMS);
  return EM_OK;
}
static inline void dims_free(em_tensor *t) {
  if (EM_UNLIKELY(t->ndim > EM_INLINE_DIMS)) em_free(t->sizes, sizeof(int64_t) * 2 * t->ndim);
}
static inline void storage_attach(em_tensor *t, em_storage *s) {  // steals the reference
  t->storage = s;
  if (EM_LIKELY(!(t->flags & EM_T_INFERENCE))) t->version = &s->version;
}

static em_status check_sizes(int ndim, const int64_t *sizes) {
  if (EM_UNLIKELY(ndim < 0 || (sizes == NULL && ndim > 0)))
    return em_fail(EM_ERR_VALUE, "tensor: %d dimensions without sizes", ndim);
  if (ndim > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "tensor: at most %d dimensions are supported, got %d", EM_MAX_DIMS, ndim);
  for (int i = 0; i < ndim; i++)
    if (EM_UNLIKELY(sizes[i] < 0)) {
      char text[512];
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes[i],
                     em_shape_format(ndim, sizes, text, sizeof text));
    }
  return EM_OK;
}

em_status em_tensor_new(int ndim, const int64_t *sizes, int dtype, em_device device, em_tensor **out) {
  EM_PASS(check_sizes(ndim, sizes));
  if (EM_UNLIKELY((unsigned)dtype >= EM_NUM_DTYPES)) return em_fail(EM_ERR_VALUE, "tensor: %d is no dtype", dtype);
  if (EM_UNLIKELY(device.type != EM_DEVICE_CPU && device.type != EM_DEVICE_META)) EM_PASS(em_device_check(device));
  em_tensor *t = em_alloc(sizeof *t);
  if (EM_UNLIKELY(t == NULL)) return EM_NOMEM(sizeof *t);
  em_status st = EM_OK;
  header_init(t, dtype, device);
  t->storage = NULL;
  if (EM_UNLIKELY((st = dims_init(t, ndim)) != EM_OK)) {
    t->ndim = 0;
    goto fail;
  }
  int64_t numel = 1, stride = 1;
  bool over = false;
  for (int i = ndim - 1; i >= 0; i--) {
    int64_t n = sizes[i];
    t->sizes[i] = n;
    t->strides[i] = stride;
    over |= __builtin_mul_overflow(numel, n, &numel);
    over |= __builtin_mul_overflow(stride, n > 1 ? n : 1, &stride);
  }
  if (EM_UNLIKELY(over || numel > EM_MAX_NUMEL)) {
    if (over && em_shape_numel(ndim, sizes, &numel) == EM_OK && numel == 0) {
      em_shape_contiguous_strides(ndim, sizes, t->strides);
    } else {
      char text[512];
      EM_FAIL(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s",
              em_shape_format(ndim, sizes, text, sizeof text));
    }
  }
  t->numel = numel;
  t->flags |= EM_T_CONTIGUOUS;
  em_storage *s;
  EM_TRY(em_storage_new((size_t)numel * em_dtype_size(dtype), device, &s));
  storage_attach(t, s);
  *out = t;
  return EM_OK;
fail:
  em_tensor_release(t);
  return st;
}

em_status em_tensor_new_window(em_storage *storage, int ndim, const int64_t *sizes, const int64_t *strides,
                               int64_t offset, int dtype, em_tensor **out) {
  EM_PASS(check_sizes(ndim, sizes));
  em_tensor *t = em_alloc(sizeof *t);
  if (EM_UNLIKELY(t == NULL)) return EM_NOMEM(sizeof *t);
  header_init(t, dtype, storage->device);
  t->storage = NULL;
  em_status st = dims_init(t, ndim);
  if (EM_UNLIKELY(st != EM_OK)) {
    t->ndim = 0;
    em_tensor_release(t);
    return st;
  }
  for (int i = 0; i < ndim; i++) {
    t->sizes[i] = sizes[i];
    t->strides[i] = strides[i];
  }
  t->offset = offset;
  storage_attach(t, em_storage_retain(storage));
  if (EM_UNLIKELY((st = em_tensor_refresh(t)) != EM_OK)) {
    em_tensor_release(t);
    return st;
  }
  *out = t;
  return EM_OK;
}

em_status em_tensor_new_strided(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, em_device device,
                                em_tensor **out) {
  if (strides == NULL) return em_tensor_new(ndim, sizes, dtype, device, out);
  EM_PASS(check_sizes(ndim, sizes));
  size_t nbytes;
  EM_PASS(em_shape_storage_bytes(ndim, sizes, strides, 0, em_dtype_size(dtype), &nbytes));
  em_storage *s;
  EM_PASS(em_storage_new(nbytes, device, &s));
  em_status st = em_tensor_new_window(s, ndim, sizes, strides, 0, dtype, out);
  em_storage_release(s);
  return st;
}

em_status em_tensor_alias(em_tensor *t, em_tensor **out) {
  em_tensor *a;
  EM_PASS(em_tensor_new_window(t->storage, t->ndim, t->sizes, t->strides, t->offset, t->dtype, &a));
  a->keys = t->keys & ~EM_KEYBIT(EM_KEY_Autograd);
  a->flags = (uint16_t)((a->flags & ~EM_T_INFERENCE) | (t->flags & (EM_T_INFERENCE | EM_T_WRAPPED | EM_T_CONTIGUOUS)));
  a->version = t->version;
  if (t->flags & EM_T_OWN_VERSION) {
    em_ref_inc(&t->version->rc);
    a->flags |= EM_T_OWN_VERSION;
  }
  *out = a;
  return EM_OK;
}

em_status em_tensor_from_scalar(em_scalar s, int dtype, em_device device, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_tensor_new(0, NULL, dtype, device, &t));
  if (t->storage->data != NULL) {
    em_status st = em_scalar_store(s, dtype, t->storage->data);
    if (EM_UNLIKELY(st != EM_OK)) {
      em_tensor_release(t);
      return st;
    }
  }
  *out = t;
  return EM_OK;
}
em_status em_tensor_wrap_scalar(em_scalar s, em_tensor **out) {
  static const uint8_t dtypes[] = {EM_I64, EM_BOOL, EM_I64, EM_F64, EM_C128};
  EM_PASS(em_tensor_from_scalar(s, dtypes[s.kind], (em_device){EM_DEVICE_CPU, -1}, out));
  (*out)->flags |= EM_T_WRAPPED;
  return EM_OK;
}

void em_tensor_free(em_tensor *t) {
  if (EM_UNLIKELY(t->flags & EM_T_PY_OWNED)) {  // its Python object lived only through us: it takes us over, and its
    em_priv_pyobj_release(t);                    // own release, unless a finalizer keeps it, frees us for real
    return;
  }
  if (EM_UNLIKELY(t->meta != NULL)) {
    em_autograd_meta *meta = t->meta;
    t->meta = NULL;
    em_priv_meta_release(meta);
  }
  if (EM_UNLIKELY(t->flags & EM_T_OWN_VERSION)) em_version_release(t->version);
  if (EM_LIKELY(t->storage != NULL)) em_storage_release(t->storage);
  dims_free(t);
  em_priv_live(EM_KIND_TENSOR, -1);
  em_free(t, sizeof *t);
}

bool em_tensor_same_sizes(const em_tensor *a, const em_tensor *b) {
  return em_shape_equal(a->ndim, a->sizes, b->ndim, b->sizes);
}

em_status em_tensor_item(em_tensor *t, em_scalar *out) {
  if (t->numel != 1)
    return em_fail(EM_ERR_RUNTIME, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel);
  if (t->device.type == EM_DEVICE_META)
    return em_fail(EM_ERR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
  *out = em_scalar_load(t->dtype, em_tensor_data(t));
  return EM_OK;
}

em_status em_tensor_refresh(em_tensor *t) {
  int64_t numel = 1, expect = 1;
  bool contiguous = true, over = false;
  for (int i = t->ndim - 1; i >= 0; i--) {
    over |= __builtin_mul_overflow(numel, t->sizes[i], &numel);
    if (t->sizes[i] != 1) {
      contiguous &= t->strides[i] == expect;
      expect = numel;
    }
  }
  if (EM_UNLIKELY(over || numel > EM_MAX_NUMEL)) EM_PASS(em_shape_numel(t->ndim, t->sizes, &numel));  // sizes beside a 0 know no bounds
  t->numel = numel;
  if (contiguous || numel == 0) t->flags |= EM_T_CONTIGUOUS;
  else t->flags = (uint16_t)(t->flags & ~EM_T_CONTIGUOUS);
  return EM_OK;
}

em_status em_tensor_set_window(em_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset) {
  EM_PASS(check_sizes(ndim, sizes));
  int64_t contiguous[EM_MAX_DIMS], numel;
  EM_PASS(em_shape_numel(ndim, sizes, &numel));
  if (strides == NULL) {
    em_shape_contiguous_strides(ndim, sizes, contiguous);
    strides = contiguous;
  }
  if (ndim != t->ndim) {  // sizes may be t's own: allocate before freeing, and copy before that
    int64_t *fresh = t->dims;
    if (ndim > EM_INLINE_DIMS) {
      fresh = em_alloc(sizeof(int64_t) * 2 * (size_t)ndim);
      if (fresh == NULL) return EM_NOMEM(sizeof(int64_t) * 2 * (size_t)ndim);
    }
    int64_t s[EM_MAX_DIMS], d[EM_MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
      s[i] = sizes[i];
      d[i] = strides[i];
    }
    dims_free(t);
    t->ndim = (uint8_t)ndim;
    t->sizes = fresh;
    t->strides = fresh + (ndim > EM_INLINE_DIMS ? ndim : EM_INLINE_DIMS);
    for (int i = 0; i < ndim; i++) {
      t->sizes[i] = s[i];
      t->strides[i] = d[i];
    }
  } else {
    for (int i = 0; i < ndim; i++) {
      t->sizes[i] = sizes[i];
      t->strides[i] = strides[i];
    }
  }
  t->offset = offset;
  return em_tensor_refresh(t);
}

em_status em_tensor_resize(em_tensor *t, int ndim, const int64_t *sizes) {
  EM_PASS(check_sizes(ndim, sizes));
  if (em_shape_equal(t->ndim, t->sizes, ndim, sizes)) return EM_OK;
  int64_t strides[EM_MAX_DIMS], numel;
  EM_PASS(em_shape_numel(ndim, sizes, &numel));
  em_shape_contiguous_strides(ndim, sizes, strides);
  size_t need;
  EM_PASS(em_shape_storage_bytes(ndim, sizes, strides, t->offset, em_tensor_itemsize(t), &need));
  if (need > t->storage->nbytes) EM_PASS(em_storage_resize(t->storage, need));
  return em_tensor_set_window(t, ndim, sizes, strides, t->offset);
}

em_status em_tensor_meta(em_tensor *t, em_autograd_meta **out) {
  if (t->meta == NULL) {
    em_autograd_meta *m = em_alloc(sizeof *m);
    if (EM_UNLIKELY(m == NULL)) return EM_NOMEM(sizeof *m);
    memset(m, 0, sizeof *m);
    em_priv_live(EM_KIND_META, 1);
    t->meta = m;
  }
  *out = t->meta;
  return EM_OK;
}
