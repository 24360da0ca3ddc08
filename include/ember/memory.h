/* ember/memory.h: what Ember's allocator holds. */
#ifndef EMBER_MEMORY_H
#define EMBER_MEMORY_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct em_alloc_stats {
  int64_t bytes_live;   /* of tensors, now */
  int64_t bytes_peak;   /* the most since em_alloc_reset_peak */
  int64_t bytes_cached; /* free, kept for reuse */
  int64_t requests, reused, from_system; /* of tensor bytes: asked for, served from the cache, from the system */
} em_alloc_stats;
EM_API void em_alloc_get_stats(em_alloc_stats *out);
EM_API void em_alloc_reset_peak(void);
EM_API void em_alloc_empty_cache(void); /* gives cached bytes back to the system */
EM_API int64_t em_live_tensors(void);   /* tensors that exist, of all threads */

#ifdef __cplusplus
}
#endif
#endif
