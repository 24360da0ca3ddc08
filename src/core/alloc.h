// alloc.h: every byte Ember owns comes from here. Small blocks (headers, nodes, small storages) come from per-thread
// magazines backed by a global depot; large blocks are kept in a cache and reused. See alloc.c for the size classes.
// With EMBER_ALLOC=plain, under sanitizers, valgrind and while the fault countdown is armed every cache is bypassed.
#ifndef EMBER_CORE_ALLOC_H
#define EMBER_CORE_ALLOC_H
#include <ember/memory.h>  // em_alloc_stats
#include "status.h"
#include "tls.h"

// Live objects by kind: every test ends where it began.
#define EM_KIND_LIST(X) X(TENSOR) X(STORAGE) X(NODE) X(META) X(GENERATOR) X(VERSION) X(OTHER)
typedef enum em_kind {
#define X(n) EM_KIND_##n,
  EM_KIND_LIST(X)
#undef X
  EM_KIND_COUNT
} em_kind;

// Host memory for headers, arrays and nodes: 16-byte aligned, 64-byte aligned from 64 bytes on, contents undefined.
// NULL when there is none (no record is written; EM_NOMEM does). em_free needs the size that was asked for. n = 0 is
// fine.
EM_PRIV void *em_alloc_slow(size_t n);
EM_PRIV void em_free_slow(void *p, size_t n);
EM_PRIV void *em_alloc_zeroed(size_t n);
EM_PRIV em_status em_fail_memory(size_t nbytes)
    __attribute__((cold));  // "DefaultCPUAllocator: can't allocate memory: ..."
#define EM_NOMEM(n) em_fail_memory((size_t)(n))

// The magazines: one singly linked list a class, 16-byte steps up to EM_SMALL_MAX. Empty or disabled -> slow path.
#define EM_SMALL_MAX 1024
#define EM_SMALL_CLASSES (EM_SMALL_MAX / 16 + 1)
#define EM_MAGAZINE_MAX 64  // blocks a list holds before half of it goes to the depot
typedef struct em_magazines {
  struct { void *head; uint32_t count; } list[EM_SMALL_CLASSES];
  int64_t live[EM_KIND_COUNT];  // this thread's makes minus frees; the sum over threads is the live count
  struct em_magazines *next, *prev;  // registry of all threads' blocks, under the depot's lock
} em_magazines;

static inline void *em_alloc(size_t n) {
  em_magazines *m = em_priv_tls.magazines;
  if (EM_LIKELY(n <= EM_SMALL_MAX && m != NULL)) {
    size_t c = (n + 15) / 16;
    void *p = m->list[c].head;
    if (EM_LIKELY(p != NULL)) {
      m->list[c].head = *(void **)p;
      m->list[c].count--;
      return p;
    }
  }
  return em_alloc_slow(n);
}
static inline void em_free(void *p, size_t n) {
  em_magazines *m = em_priv_tls.magazines;
  if (EM_LIKELY(n <= EM_SMALL_MAX && m != NULL && p != NULL)) {
    size_t c = (n + 15) / 16;
    if (EM_LIKELY(m->list[c].count < EM_MAGAZINE_MAX)) {
      *(void **)p = m->list[c].head;
      m->list[c].head = p;
      m->list[c].count++;
      return;
    }
  }
  em_free_slow(p, n);
}

// Live-object counts. A thread counts in its own block, without atomics; em_alloc_live sums.
EM_PRIV void em_priv_live_slow(em_kind kind, int delta);
static inline void em_priv_live(em_kind kind, int delta) {
  em_magazines *m = em_priv_tls.magazines;
  if (EM_LIKELY(m != NULL)) m->live[kind] += delta;
  else em_priv_live_slow(kind, delta);
}
EM_PRIV int64_t em_alloc_live(em_kind kind);

// Tensor bytes. `*capacity` is what the block really holds (>= n); give it back to em_bytes_free. 64-byte aligned.
EM_PRIV void *em_bytes_alloc(size_t n, size_t *capacity);
EM_PRIV void em_bytes_free(void *p, size_t capacity);

// Fault countdown: the n-th request from now fails (and only it), 0 disarms. Returns how many requests were made since
// it was last armed. Counts requests of em_alloc, em_bytes_alloc alike, of all threads.
EM_PRIV int64_t em_priv_fault_countdown(int64_t n);

EM_PRIV void em_alloc_get_stats(em_alloc_stats *out);
EM_PRIV void em_alloc_reset_peak(void);
EM_PRIV void em_alloc_empty_cache(void);
#endif
