// storage.c: blocks of bytes with a shared version counter.
#include "storage.h"
#include <string.h>
#include "storage_shared.h"

_Static_assert(sizeof(em_storage) == 64, "the bytes after an inline header must stay 64-byte aligned");

void (*em_priv_storage_watch)(em_storage *s, bool made);

static void header_init(em_storage *s, em_device device, size_t nbytes) {
  atomic_init(&s->rc, 1);
  s->device = device;
  s->resizable = 1;
  s->flags = 0;
  atomic_init(&s->version.value, 0);
  atomic_init(&s->version.rc, 0);
  s->nbytes = nbytes;
  s->deleter = NULL;
  s->context = NULL;
  s->pyobj = NULL;
  em_priv_live(EM_KIND_STORAGE, 1);
}

em_status em_storage_new(size_t nbytes, em_device device, em_storage **out) {
  bool meta = device.type == EM_DEVICE_META;
  size_t total = sizeof(em_storage) + (meta ? 0 : nbytes), capacity;
  if (EM_UNLIKELY(!meta && nbytes > SIZE_MAX / 4)) return EM_NOMEM(nbytes);
  em_storage *s =
      EM_LIKELY(total <= EM_SMALL_MAX) ? (capacity = total, em_alloc(total)) : em_bytes_alloc(total, &capacity);
  if (EM_UNLIKELY(s == NULL)) return EM_NOMEM(nbytes);
  header_init(s, device, nbytes);
  s->flags = EM_STORAGE_INLINE;
  s->capacity = capacity;
  s->data = meta || nbytes == 0 ? NULL : (char *)s + sizeof(em_storage);
  if (EM_UNLIKELY(em_priv_storage_watch != NULL)) em_priv_storage_watch(s, true);
  *out = s;
  return EM_OK;
}

em_status em_storage_wrap(void *data, size_t nbytes, em_device device, void (*deleter)(void *, void *), void *context,
                          em_storage **out) {
  em_storage *s = em_alloc(sizeof *s);
  if (s == NULL) return EM_NOMEM(sizeof *s);
  header_init(s, device, nbytes);
  s->resizable = 0;
  s->capacity = nbytes;
  s->data = data;
  s->deleter = deleter;
  s->context = context;
  if (EM_UNLIKELY(em_priv_storage_watch != NULL)) em_priv_storage_watch(s, true);
  *out = s;
  return EM_OK;
}

static void free_header(em_storage *s, size_t block) {
  if (block > EM_SMALL_MAX) em_bytes_free(s, block);
  else em_free(s, block);
}
void em_storage_free(em_storage *s) {
  size_t block = sizeof *s;
  if (EM_UNLIKELY(em_priv_storage_watch != NULL)) em_priv_storage_watch(s, false);
  if (s->flags & EM_STORAGE_SHARED) block = em_priv_shared_header(s);
  if (s->flags & EM_STORAGE_INLINE) block = s->capacity;
  else if (s->deleter != NULL) s->deleter(s->context, s->data);
  else em_bytes_free(s->data, s->capacity);
  if (s->flags & EM_STORAGE_OUTGROWN) block = (size_t)(uintptr_t)s->context;
  em_priv_live(EM_KIND_STORAGE, -1);
  free_header(s, block);
}

// The header must not move (tensors point at it): a resized inline storage keeps its old block as header only.
em_status em_storage_resize(em_storage *s, size_t nbytes) {
  if (!s->resizable) return em_fail(EM_ERR_RUNTIME, "Trying to resize storage that is not resizable");
  if (s->device.type == EM_DEVICE_META) {
    s->nbytes = nbytes;
    return EM_OK;
  }
  size_t room = s->flags & EM_STORAGE_INLINE ? s->capacity - sizeof *s : s->capacity;
  if (nbytes <= room) {
    if (s->data == NULL && nbytes > 0 && (s->flags & EM_STORAGE_INLINE)) s->data = (char *)s + sizeof *s;
    s->nbytes = nbytes;
    return EM_OK;
  }
  size_t capacity;
  void *data = em_bytes_alloc(nbytes, &capacity);
  if (data == NULL) return EM_NOMEM(nbytes);
  if (s->nbytes > 0) memcpy(data, s->data, s->nbytes);
  // `capacity` speaks of `data` from here on; the header block's own size moves to `context`
  if (s->flags & EM_STORAGE_INLINE) {
    s->context = (void *)(uintptr_t)s->capacity;
    s->flags = (uint8_t)((s->flags & ~EM_STORAGE_INLINE) | EM_STORAGE_OUTGROWN);
  } else {
    em_bytes_free(s->data, s->capacity);
  }
  s->data = data;
  s->capacity = capacity;
  s->nbytes = nbytes;
  return EM_OK;
}

em_status em_version_new(uint32_t value, em_version **out) {
  em_version *v = em_alloc(sizeof *v);
  if (v == NULL) return EM_NOMEM(sizeof *v);
  atomic_init(&v->value, value);
  atomic_init(&v->rc, 1);
  em_priv_live(EM_KIND_VERSION, 1);
  *out = v;
  return EM_OK;
}
void em_version_release(em_version *v) {
  if (v == NULL || !em_ref_dec(&v->rc)) return;
  em_priv_live(EM_KIND_VERSION, -1);
  em_free(v, sizeof *v);
}
