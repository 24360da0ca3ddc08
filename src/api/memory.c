// memory.c: what ember/memory.h asks of the allocator beyond src/core/alloc.c.
#include <ember/memory.h>
#include "../core/alloc.h"

int64_t em_live_tensors(void) { return em_alloc_live(EM_KIND_TENSOR); }
