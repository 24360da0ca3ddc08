// alloc.c: the allocator.
//
//   up to 1024 bytes   one list a 16-byte step in each thread (magazine); half a full list moves to the depot, an empty
//                      one takes a batch from it. Each block is its own malloc, so that bypass mode can free what was
//                      cached.
//   above              four size classes a doubling (at most 19% waste), one list a class for the process, under a
//   mutex.
//                      From 2 MB on blocks are 2 MB aligned and on huge pages: first touch costs 512 times fewer
//                      faults.
//
// The cache holds at most `cache_limit` bytes; beyond that blocks go back to the system. When the system refuses, the
// cache is flushed and the request tried once more. Bypass mode (EMBER_ALLOC=plain, sanitizers, valgrind, armed fault
// countdown) goes to malloc each time.
#include "alloc.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE (2u << 20)
#define CLASSES 160
#define DEPOT_MAX 1024  // blocks a small class keeps in the depot

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static struct {
  pthread_mutex_t lock;
  struct { void *head; uint32_t count; } small[EM_SMALL_CLASSES];
  struct { void *head; uint32_t count; } large[CLASSES];
  size_t cached, cache_limit;
  em_magazines *threads;
  int64_t dead_live[EM_KIND_COUNT];  // counts of threads that ended
} depot = {.lock = PTHREAD_MUTEX_INITIALIZER, .cache_limit = (size_t)1 << 30};

static _Atomic int bypass = -1;          // -1: not decided yet
static bool plain;                       // bypass for the process's life: blocks have their exact size
static _Atomic int64_t fault_left;       // 0: disarmed
static _Atomic int64_t fault_requests;
static _Atomic int64_t shared_live[EM_KIND_COUNT];
static _Atomic int64_t stat_live, stat_peak, stat_requests, stat_reused, stat_system;
uint64_t em_priv_global_include;         // tls.h
static pthread_key_t thread_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void system_free(void *p) { free(p); }
static void *system_alloc(size_t n) {
  void *p;
  if (n < 64) return malloc(n == 0 ? 1 : n);
  size_t align = n >= HUGE ? HUGE : 64;
  if (posix_memalign(&p, align, n) != 0) return NULL;
  if (n >= HUGE) (void)madvise(p, n, MADV_HUGEPAGE);  // advice only: without it we are merely slower
  return p;
}

static void thread_end(void *arg) {
  em_magazines *m = arg;
  pthread_mutex_lock(&depot.lock);
  for (int k = 0; k < EM_KIND_COUNT; k++) depot.dead_live[k] += m->live[k];
  if (m->prev != NULL) m->prev->next = m->next;
  else if (depot.threads == m) depot.threads = m->next;
  if (m->next != NULL) m->next->prev = m->prev;
  pthread_mutex_unlock(&depot.lock);
  for (int c = 0; c < EM_SMALL_CLASSES; c++)
    for (void *p = m->list[c].head, *next; p != NULL; p = next) {
      next = *(void **)p;
      system_free(p);
    }
  em_priv_tls.magazines = NULL;
  free(m);
}
static void fork_prepare(void) { pthread_mutex_lock(&depot.lock); }
static void fork_done(void) { pthread_mutex_unlock(&depot.lock); }
static bool under_valgrind(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload != NULL && strstr(preload, "vgpreload") != NULL;
}
static void start(void) {
  const char *mode = getenv("EMBER_ALLOC"), *limit = getenv("EMBER_CACHE_LIMIT_MB");
  plain = SANITIZED || under_valgrind() || (mode != NULL && strcmp(mode, "plain") == 0);
  bypass = plain;
  if (limit != NULL && *limit != 0 && limit[strspn(limit, "0123456789")] == 0)
    depot.cache_limit = (size_t)strtoull(limit, NULL, 10) << 20;
  (void)pthread_key_create(&thread_key, thread_end);
  (void)pthread_atfork(fork_prepare, fork_done, fork_done);
}

// This thread's magazines; NULL in bypass mode or without memory.
static em_magazines *magazines_get(void) {
  pthread_once(&once, start);
  if (bypass) return NULL;
  em_magazines *m = em_priv_tls.magazines;
  if (m != NULL) return m;
  m = calloc(1, sizeof *m);
  if (m == NULL) return NULL;
  pthread_mutex_lock(&depot.lock);
  m->next = depot.threads;
  if (m->next != NULL) m->next->prev = m;
  depot.threads = m;
  pthread_mutex_unlock(&depot.lock);
  pthread_setspecific(thread_key, m);
  em_priv_tls.magazines = m;
  return m;
}

// True when the countdown says that this request fails.
static bool fault_hits(void) {
  if (EM_LIKELY(atomic_load_explicit(&fault_left, memory_order_relaxed) == 0)) return false;
  atomic_fetch_add(&fault_requests, 1);
  int64_t left = atomic_load(&fault_left);
  while (left > 0)
    if (atomic_compare_exchange_weak(&fault_left, &left, left - 1 == 0 ? -1 : left - 1)) return left == 1;
  return false;
}

static size_t class_bytes(int c);
static int class_of(size_t n);
static void *block_alloc(int c, size_t n, bool cached);

void *em_alloc_slow(size_t n) {
  em_magazines *m = magazines_get();
  if (fault_hits()) return NULL;
  if (plain) return system_alloc(n);
  if (n > EM_SMALL_MAX) return block_alloc(class_of(n), 0, m != NULL);
  size_t c = (n + 15) / 16;
  if (m == NULL) return system_alloc(c * 16);  // the countdown is armed; the block may be freed into a list later
  pthread_mutex_lock(&depot.lock);
  void *p = depot.small[c].head;
  for (int i = 0; p != NULL && i < EM_MAGAZINE_MAX / 2; i++) {  // a batch: the first for the caller, the rest for later
    void *next = *(void **)p;
    depot.small[c].head = next;
    depot.small[c].count--;
    *(void **)p = m->list[c].head;
    m->list[c].head = p;
    m->list[c].count++;
    p = next;
  }
  pthread_mutex_unlock(&depot.lock);
  p = m->list[c].head;
  if (p != NULL) {
    m->list[c].head = *(void **)p;
    m->list[c].count--;
    return p;
  }
  p = system_alloc(c * 16);
  if (EM_UNLIKELY(p == NULL)) {
    em_alloc_empty_cache();
    p = system_alloc(c * 16);
  }
  return p;
}

void em_free_slow(void *p, size_t n) {
  if (p == NULL) return;
  em_magazines *m = magazines_get();
  if (!plain && n > EM_SMALL_MAX) {
    em_bytes_free(p, class_bytes(class_of(n)));
    return;
  }
  if (m == NULL) {
    system_free(p);
    return;
  }
  size_t c = (n + 15) / 16;
  if (m->list[c].count >= EM_MAGAZINE_MAX) {  // half of the full list goes to the depot
    pthread_mutex_lock(&depot.lock);
    for (int i = 0; i < EM_MAGAZINE_MAX / 2; i++) {
      void *q = m->list[c].head;
      m->list[c].head = *(void **)q;
      m->list[c].count--;
      if (depot.small[c].count < DEPOT_MAX) {
        *(void **)q = depot.small[c].head;
        depot.small[c].head = q;
        depot.small[c].count++;
      } else {
        system_free(q);
      }
    }
    pthread_mutex_unlock(&depot.lock);
  }
  *(void **)p = m->list[c].head;
  m->list[c].head = p;
  m->list[c].count++;
}

void *em_alloc_zeroed(size_t n) {
  void *p = em_alloc(n);
  if (p != NULL) memset(p, 0, n);
  return p;
}
em_status em_fail_memory(size_t nbytes) {
  return em_fail(EM_ERR_OOM,
                 "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes. Error code 12 (Cannot "
                 "allocate memory)",
                 nbytes);
}

// Class c: doubling d = c / 4 over 1024 bytes, quarter step c % 4. Bytes are multiples of 64; from 2 MB on of 2 MB.
static size_t class_bytes(int c) {
  size_t base = (size_t)1024 << (c / 4), n = base + base / 4 * (size_t)(c % 4 + 1);
  return n >= HUGE ? (n + HUGE - 1) & ~(size_t)(HUGE - 1) : n;
}
static int class_of(size_t n) {  // smallest class that holds n > 1024; CLASSES when none does
  if (n > ((size_t)1 << 46)) return CLASSES;
  int d = 63 - __builtin_clzll((n - 1) | 1) - 10;
  int c = d < 0 ? 0 : d * 4;
  while (c < CLASSES && class_bytes(c) < n) c++;
  return c;
}

static void note_bytes(int64_t delta) {
  int64_t now = atomic_fetch_add_explicit(&stat_live, delta, memory_order_relaxed) + delta;
  int64_t peak = atomic_load_explicit(&stat_peak, memory_order_relaxed);
  while (now > peak &&
         !atomic_compare_exchange_weak_explicit(&stat_peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {}
}

// A block of class c, from the cache or the system; of exactly n bytes instead when n is not 0. NULL without memory.
static void *block_alloc(int c, size_t n, bool cached) {
  if (c >= CLASSES) return NULL;
  size_t bytes = n != 0 ? n : class_bytes(c);
  void *p = NULL;
  atomic_fetch_add_explicit(&stat_requests, 1, memory_order_relaxed);
  if (cached) {
    pthread_mutex_lock(&depot.lock);
    p = depot.large[c].head;
    if (p != NULL) {
      depot.large[c].head = *(void **)p;
      depot.large[c].count--;
      depot.cached -= bytes;
    }
    pthread_mutex_unlock(&depot.lock);
  }
  if (p != NULL) {
    atomic_fetch_add_explicit(&stat_reused, 1, memory_order_relaxed);
  } else {
    p = system_alloc(bytes);
    if (p == NULL && cached) {
      em_alloc_empty_cache();
      p = system_alloc(bytes);
    }
    if (p == NULL) return NULL;
    atomic_fetch_add_explicit(&stat_system, 1, memory_order_relaxed);
  }
  note_bytes((int64_t)bytes);
  return p;
}

void *em_bytes_alloc(size_t n, size_t *capacity) {
  if (n <= EM_SMALL_MAX) {
    *capacity = n;
    return em_alloc(n);
  }
  em_magazines *m = magazines_get();
  if (fault_hits()) return NULL;
  int c = class_of(n);
  // Plain mode gives the exact size, so that a sanitizer sees one byte too many.
  *capacity = plain || c >= CLASSES ? n : class_bytes(c);
  return block_alloc(c, plain ? n : 0, m != NULL);
}

void em_bytes_free(void *p, size_t capacity) {
  if (p == NULL) return;
  if (capacity <= EM_SMALL_MAX) {
    em_free(p, capacity);
    return;
  }
  note_bytes(-(int64_t)capacity);
  em_magazines *m = magazines_get();
  if (m != NULL) {
    int c = class_of(capacity);
    if (c < CLASSES && class_bytes(c) == capacity) {
      pthread_mutex_lock(&depot.lock);
      bool keep = depot.cached + capacity <= depot.cache_limit;
      if (keep) {
        *(void **)p = depot.large[c].head;
        depot.large[c].head = p;
        depot.large[c].count++;
        depot.cached += capacity;
      }
      pthread_mutex_unlock(&depot.lock);
      if (keep) return;
    }
  }
  system_free(p);
}

void em_alloc_empty_cache(void) {
  for (;;) {
    void *p = NULL;
    pthread_mutex_lock(&depot.lock);
    for (int c = 0; c < CLASSES && p == NULL; c++) {
      if ((p = depot.large[c].head) == NULL) continue;
      depot.large[c].head = *(void **)p;
      depot.large[c].count--;
      depot.cached -= class_bytes(c);
    }
    for (int c = 0; c < EM_SMALL_CLASSES && p == NULL; c++) {
      if ((p = depot.small[c].head) == NULL) continue;
      depot.small[c].head = *(void **)p;
      depot.small[c].count--;
    }
    pthread_mutex_unlock(&depot.lock);
    if (p == NULL) return;
    system_free(p);
  }
}

int64_t em_priv_fault_countdown(int64_t n) {
  static em_magazines *parked;  // the arming thread's lists, put back when disarmed
  pthread_once(&once, start);
  int64_t made = atomic_exchange(&fault_requests, 0);
  if (n > 0) {
    if (em_priv_tls.magazines != NULL) parked = em_priv_tls.magazines;
    em_priv_tls.magazines = NULL;
    bypass = 1;
    atomic_store(&fault_left, n);
  } else {
    atomic_store(&fault_left, 0);
    if (parked != NULL) {
      em_priv_tls.magazines = parked;
      parked = NULL;
      bypass = 0;
    }
  }
  return made;
}

void em_priv_live_slow(em_kind kind, int delta) {
  em_magazines *m = magazines_get();
  if (m != NULL) m->live[kind] += delta;
  else atomic_fetch_add_explicit(&shared_live[kind], delta, memory_order_relaxed);
}
int64_t em_alloc_live(em_kind kind) {
  int64_t n = atomic_load(&shared_live[kind]);
  pthread_mutex_lock(&depot.lock);
  n += depot.dead_live[kind];
  for (em_magazines *m = depot.threads; m != NULL; m = m->next) n += m->live[kind];
  pthread_mutex_unlock(&depot.lock);
  return n;
}
void em_alloc_get_stats(em_alloc_stats *out) {
  if (out == NULL) return;
  out->bytes_live = atomic_load(&stat_live);
  out->bytes_peak = atomic_load(&stat_peak);
  out->requests = atomic_load(&stat_requests);
  out->reused = atomic_load(&stat_reused);
  out->from_system = atomic_load(&stat_system);
  pthread_mutex_lock(&depot.lock);
  out->bytes_cached = (int64_t)depot.cached;
  pthread_mutex_unlock(&depot.lock);
}
void em_alloc_reset_peak(void) { atomic_store(&stat_peak, atomic_load(&stat_live)); }
