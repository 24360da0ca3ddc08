// storage.h: a block of bytes and the version counter that all tensors over it share. Header and bytes are one block
// when Ember allocates; borrowed memory (numpy, DLPack, files) has a header alone and a deleter.
#ifndef EMBER_CORE_STORAGE_H
#define EMBER_CORE_STORAGE_H
#include "alloc.h"
#include "device.h"
#include "refcount.h"

// Counts in-place writes. Embedded in the storage (then `rc` is not used: the storage's life is its life), or a block
// of its own when a tensor must not share it (`.data`).
typedef struct em_version {
  _Atomic uint32_t value;
  em_ref rc;  // 0: embedded in a storage
} em_version;

typedef struct em_storage {
  em_ref rc;
  em_device device;
  uint8_t resizable;  // false for borrowed memory
  uint8_t flags;      // EM_STORAGE_*
  em_version version;
  size_t nbytes;      // what the user asked for
  size_t capacity;    // whole block including this header when `inline_bytes`; bytes of `data` otherwise
  void *data;         // NULL when nbytes is 0 or the device has no bytes (meta)
  void (*deleter)(void *context, void *data);  // NULL: em_bytes_free
  void *context;      // borrowed by the storage, handed to the deleter
  void *pyobj;        // the one Python storage object, borrowed, or NULL
} em_storage;
enum { EM_STORAGE_INLINE = 1 /* header and bytes are one block */, EM_STORAGE_SHARED = 2, EM_STORAGE_READONLY = 4,
       EM_STORAGE_OUTGROWN = 8 /* was inline, the bytes moved; `context` holds the header block's size */ };

// New storage of n bytes, contents undefined. On the meta device no bytes are made. New reference.
EM_PRIV em_status em_storage_new(size_t nbytes, em_device device, em_storage **out);
// Wraps memory of somebody else's: if this succeeds, `deleter(context, data)` runs when the last tensor is gone. Not
// resizable.
EM_PRIV em_status em_storage_wrap(void *data, size_t nbytes, em_device device, void (*deleter)(void *, void *),
                                  void *context, em_storage **out);
EM_PRIV void em_storage_free(em_storage *s);  // called when the count reached zero
// Grows or shrinks; contents up to the smaller size are kept. EM_ERR_RUNTIME "Trying to resize storage that is not
// resizable".
EM_PRIV em_status em_storage_resize(em_storage *s, size_t nbytes);
// Hears of storages that are made and about to go (for the memory history of a host). NULL: nobody listens.
EM_PRIV extern void (*em_priv_storage_watch)(em_storage *s, bool made);
static inline em_storage *em_storage_retain(em_storage *s) { em_ref_inc(&s->rc); return s; }
static inline void em_storage_release(em_storage *s) { if (s != NULL && em_ref_dec(&s->rc)) em_storage_free(s); }
EM_PRIV em_status em_version_new(uint32_t value, em_version **out);
EM_PRIV void em_version_release(em_version *v);  // only versions of their own, never an embedded one
static inline void em_version_bump(em_version *v) {
  if (v != NULL) atomic_fetch_add_explicit(&v->value, 1, memory_order_relaxed);
}
static inline uint32_t em_version_get(const em_version *v) {
  return v == NULL ? 0 : atomic_load_explicit(&((em_version *)v)->value, memory_order_relaxed);
}
#endif
