// tensor.h: a tensor is a window over a storage: sizes, strides (in elements) and an offset. Everything that makes
// it more than that (gradient, view, Python object) hangs on two pointers that are usually NULL.
//
// Invariants: strides >= 0; numel = product of sizes; EM_T_CONTIGUOUS says exactly "row-major dense" (size-1 dims free,
// numel 0 counts as contiguous); `keys` holds the device's key always, Alias unless the tensor was made in inference
// mode, Autograd when the tensor requires grad or is a differentiable view. sizes/strides point into `dims` up to 6
// dims, else to a block of 2*ndim.
#ifndef EMBER_CORE_TENSOR_H
#define EMBER_CORE_TENSOR_H
#include "scalar.h"
#include "storage.h"

#define EM_MAX_DIMS 64
#define EM_INLINE_DIMS 6

enum {
  EM_T_CONTIGUOUS = 1,
  EM_T_WRAPPED = 2,         // made from a Python number: lowest class in promotion
  EM_T_REQUIRES_GRAD = 4,   // leaf flag, or has a grad_fn. For views ask em_tensor_requires_grad
  EM_T_INFERENCE = 8,
  EM_T_OWN_VERSION = 16,    // `version` is a block of its own, owned
  EM_T_IS_VIEW = 32,        // meta->view is set
  EM_T_PY_OWNED = 64,       // C owns one reference on `pyobj` (identity flipped, see python/csrc/tensor_type.c)
  EM_T_PY_SUBCLASS = 128,   // pyobj's type may define __torch_function__ or __torch_dispatch__
};


// What a view remembers, so that a later in-place write can be told to its base and be seen by its siblings.
typedef enum em_creation {
  EM_CREATED_DEFAULT,         // ordinary view, both sides may be written
  EM_CREATED_IN_NO_GRAD,      // made under no_grad: writing with grad on is refused
  EM_CREATED_MULTI_OUTPUT,    // one of several outputs of split, unbind, ...: writing is refused
  EM_CREATED_IN_CUSTOM,       // output of a custom Function that is a view
  EM_CREATED_IN_INFERENCE,    // view of a normal tensor made in inference mode
} em_creation;

struct em_view_recipe;  // src/autograd/view.h
typedef struct em_view_info {
  em_tensor *base;                // owned; never itself a view
  struct em_view_recipe *recipe;  // owned, NULL: as_strided of the base says it all
  uint32_t attr_version;          // version at which meta->grad_fn was right; differs -> regenerate from base
  uint8_t creation;               // em_creation
  uint8_t differentiable;         // false for views of detached kind: grad never flows
  const char *multi_name;         // node name for messages of EM_CREATED_MULTI_OUTPUT, static
} em_view_info;

struct em_tensor_hooks;
typedef struct em_autograd_meta {
  em_tensor *grad;                     // owned or NULL
  struct em_node *grad_fn;             // owned or NULL (leaf)
  struct em_node *_Atomic accumulator; // made once; awake while referred to (src/autograd/accumulate.c)
  uint32_t output_nr;                  // which output of grad_fn this tensor is
  uint8_t retains_grad;
  struct em_tensor_hooks *hooks;       // owned or NULL; src/autograd/hooks.h
  em_view_info *view;                  // owned or NULL
} em_autograd_meta;

struct em_tensor {
  em_ref rc;
  uint8_t dtype;       // em_dtype
  uint8_t ndim;
  uint16_t flags;      // EM_T_*
  uint64_t keys;       // dispatch key set
  em_device device;
  em_storage *storage; // owned; NULL only for wrappers without bytes
  int64_t offset;      // elements from the storage's start
  int64_t numel;
  int64_t *sizes;      // ndim values
  int64_t *strides;    // ndim values, in elements
  em_version *version; // NULL for inference tensors; borrowed of `storage` unless EM_T_OWN_VERSION
  em_autograd_meta *meta;
  void *pyobj;         // the one Python object; borrowed unless EM_T_PY_OWNED
  void *inner;         // owned value of wrapper tensors (batched, functional), NULL otherwise
  int64_t dims[2 * EM_INLINE_DIMS];
};

// --- life
// Contiguous tensor with undefined contents. New reference.
EM_PRIV em_status em_tensor_new(int ndim, const int64_t *sizes, int dtype, em_device device, em_tensor **out);
// As above with given strides (>= 0); the storage holds just what they reach. strides NULL: contiguous.
EM_PRIV em_status em_tensor_new_strided(int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                                        em_device device, em_tensor **out);
// Window over an existing storage (retained). Checks nothing but sizes >= 0: callers check bounds
// (em_shape_check_storage).
EM_PRIV em_status em_tensor_new_window(em_storage *storage, int ndim, const int64_t *sizes, const int64_t *strides,
                                       int64_t offset, int dtype, em_tensor **out);
// Shares storage and version counter, has neither grad nor view info: what detach() and saved outputs need.
EM_PRIV em_status em_tensor_alias(em_tensor *t, em_tensor **out);
// 0-dim CPU tensor of a Python number: EM_T_WRAPPED, dtype bool, int64, float64 or complex128 with the exact value.
EM_PRIV em_status em_tensor_wrap_scalar(em_scalar s, em_tensor **out);
// 0-dim tensor of a given dtype.
EM_PRIV em_status em_tensor_from_scalar(em_scalar s, int dtype, em_device device, em_tensor **out);
EM_PRIV void em_tensor_free(em_tensor *t);  // the count reached zero
static inline em_tensor *em_tensor_retain(em_tensor *t) { if (t != NULL) em_ref_inc(&t->rc); return t; }
static inline void em_tensor_release(em_tensor *t) { if (t != NULL && em_ref_dec(&t->rc)) em_tensor_free(t); }
#define EM_CLEAR_TENSOR(p) do { em_tensor *em_c_ = *(p); *(p) = NULL; em_tensor_release(em_c_); } while (0)

// --- query
static inline size_t em_tensor_itemsize(const em_tensor *t) { return em_dtype_size(t->dtype); }
static inline bool em_tensor_is_contiguous(const em_tensor *t) { return (t->flags & EM_T_CONTIGUOUS) != 0; }
// First element's address. Only kernels and the iterator dereference it. NULL without bytes.
static inline void *em_tensor_data(const em_tensor *t) {
  return t->storage == NULL || t->storage->data == NULL
             ? NULL
             : (char *)t->storage->data + t->offset * (int64_t)em_tensor_itemsize(t);
}
EM_PRIV bool em_tensor_same_sizes(const em_tensor *a, const em_tensor *b);
// The value of a one-element CPU tensor.
EM_PRIV em_status em_tensor_item(em_tensor *t, em_scalar *out);
static inline uint32_t em_tensor_version(const em_tensor *t) { return em_version_get(t->version); }

// --- change the window (never the bytes). Used on fresh tensors and by set_/resize_.
EM_PRIV em_status em_tensor_set_window(em_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                                       int64_t offset);
// Recomputes numel and EM_T_CONTIGUOUS after sizes/strides were written directly. EM_ERR_RUNTIME when numel overflows.
EM_PRIV em_status em_tensor_refresh(em_tensor *t);
// contiguous, grows the storage if needed
EM_PRIV em_status em_tensor_resize(em_tensor *t, int ndim, const int64_t *sizes);

// --- autograd metadata, made on demand
EM_PRIV em_status em_tensor_meta(em_tensor *t, em_autograd_meta **out);
// Installed by src/autograd; free of a meta with graph parts must not recurse.
EM_PRIV extern void (*em_priv_meta_release)(em_autograd_meta *meta);
// Installed by the bridge: called when a tensor dies while it owns its Python object, and asked before death.
EM_PRIV extern void (*em_priv_pyobj_release)(em_tensor *t);
#endif
