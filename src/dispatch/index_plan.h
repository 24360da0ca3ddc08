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

// src/backend/cpu/index_loops.c. Writes index * stride (elements) to each of the offsets (the first index) or adds it, the index
// tensor broadcast to `shape`; IndexError
// "index 5 is out of bounds for dimension 0 with size 3".
em_status em_priv_index_offsets(em_tensor *index, const em_shape *shape, int64_t size, int64_t stride, int dim, bool first,
                                em_tensor *offsets);
// Reading and writing through a plan: n elements along each run; byte strides.
em_status em_priv_index_get(const em_index_plan *p, em_tensor *self, em_tensor *out);
em_status em_priv_index_set(const em_index_plan *p, em_tensor *self, em_tensor *values, bool accumulate);
// How many are true; and the elements of a dense self where a dense mask is true, read into or written from `other`, in order.
int64_t em_priv_mask_count(em_tensor *mask);
void em_priv_mask_move(em_tensor *self, em_tensor *mask, em_tensor *other, bool gets);
// IndexError for the first position outside a flat tensor of `numel` elements, in the words of take and put.
em_status em_priv_fail_flat(em_tensor *index, int64_t numel);
#endif
