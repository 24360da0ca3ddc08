// refcount.h: reference counts. Always atomic: a tensor may be released by any thread. Who holds the only reference
// can skip the locked decrement, since nobody else can reach the object to retain it (acquire load pairs with the
// release half of other threads' decrements, so their writes are seen before the free).
#ifndef EMBER_CORE_REFCOUNT_H
#define EMBER_CORE_REFCOUNT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t em_ref;

static inline void em_ref_inc(em_ref *r) { atomic_fetch_add_explicit(r, 1, memory_order_relaxed); }
// True when this was the last reference: the caller frees.
static inline bool em_ref_dec(em_ref *r) {
  return atomic_load_explicit(r, memory_order_acquire) == 1 || atomic_fetch_sub_explicit(r, 1, memory_order_acq_rel) == 1;
}
static inline bool em_ref_is_one(em_ref *r) { return atomic_load_explicit(r, memory_order_acquire) == 1; }
// Retains unless the count is already zero (weak to strong). False when the object is dying.
static inline bool em_ref_inc_unless_zero(em_ref *r) {
  uint32_t c = atomic_load_explicit(r, memory_order_relaxed);
  while (c != 0)
    if (atomic_compare_exchange_weak_explicit(r, &c, c + 1, memory_order_acq_rel, memory_order_relaxed)) return true;
  return false;
}
#endif
