// threads.h: the one pool (OpenMP). Results never depend on the number of threads: callers split by size alone.
#ifndef EMBER_CORE_THREADS_H
#define EMBER_CORE_THREADS_H
#include "status.h"

EM_PRIV int em_threads_get(void);
// >= 1; a forked child of a process that used threads stays at one and is told why
EM_PRIV em_status em_threads_set(int n);
// Calls body(context, begin, end) over [0, n) in chunks of at least `grain`, on the calling thread alone when n <=
// grain, inside another region, or after a fork. The first chunk that fails wins; its record becomes the caller's.
typedef em_status (*em_range_fn)(void *context, int64_t begin, int64_t end);
EM_PRIV em_status em_threads_for(int64_t n, int64_t grain, em_range_fn body, void *context);
EM_PRIV bool em_threads_in_region(void);
// For libraries that use the same pool: sets how many threads the regions that they start from this thread get, returns what it
// was. Opens the pool; call it before loading such a library, so that the pool is set up as threads.c wants it.
EM_PRIV int em_priv_threads_limit(int n);

// Around a long kernel: the bridge lets other Python threads run. NULL in C programs.
EM_PRIV extern void *(*em_priv_unlock_host)(void);
EM_PRIV extern void (*em_priv_lock_host)(void *token);
static inline void *em_priv_begin_long(bool is_long) {
  return is_long && em_priv_unlock_host != NULL ? em_priv_unlock_host() : NULL;
}
static inline void em_priv_end_long(void *token) { if (token != NULL) em_priv_lock_host(token); }
#define EM_LONG_NUMEL 32768  // elements from which work is worth giving the lock up
#endif
