// index_plan.h: a tensor-indexing expression worked out: what to read or write, and where.
#ifndef EMBER_DISPATCH_INDEX_PLAN_H
#define EMBER_DISPATCH_INDEX_PLAN_H
#include "plan.h"

// self[indices] with the indexed dims brought together. `view` is self restrided to the result's shape: stride 0 over
// the index dims; `offsets` holds, for each place of the index shape, the elements to add (bounds checked, negatives
// wrapped).
typedef struct em_index_plan {
  em_shape shape;            // of the result
  int64_t strides[EM_MAX_DIMS];
  int at, ndim;              // the index dims are [at, at + ndim) of the result
  em_tensor *offsets;        // owned, int64, contiguous, of the index shape; NULL on the meta device
} em_index_plan;
em_status em_index_plan_make(em_tensor *self, em_tensors indices, bool meta, em_index_plan *out);
void em_index_plan_free(em_index_plan *p);

// src/backend/cpu/index_loops.c. Adds index * stride (elements) to each of the offsets, the index tensor broadcast to `shape`; IndexError
// "index 5 is out of bounds for dimension 0 with size 3".
em_status em_priv_index_offsets(em_tensor *index, const em_shape *shape, int64_t size, int64_t stride, int dim, em_tensor *offsets);
// Reading and writing through a plan: n elements along each run; byte strides.
em_status em_priv_index_get(const em_index_plan *p, em_tensor *self, em_tensor *out);
em_status em_priv_index_set(const em_index_plan *p, em_tensor *self, em_tensor *values, bool accumulate);
#endif
