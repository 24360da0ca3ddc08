// rng_standalone.c: the few functions that rng.c calls, so that test_rng.py can build it without the rest of the core.
#include <stdlib.h>

#include "core/alloc.h"

_Thread_local em_tls em_priv_tls;  // no magazines: em_alloc takes the slow path
static _Atomic int64_t live[EM_KIND_COUNT];

void *em_alloc_slow(size_t n) { return malloc(n); }
void em_free_slow(void *p, size_t n) { free(p); }
void em_priv_live_slow(em_kind kind, int delta) { live[kind] += delta; }
int64_t em_alloc_live(em_kind kind) { return live[kind]; }
em_status em_fail(em_status code, const char *format, ...) {
  (void)format;  // the message's text is the real core's business; the codes are checked here
  return code;
}
