// sort_plan.h: what operators (src/ops/sorting.c, unique.c) and kernels (src/backend/cpu) of ordering say to each other.
#ifndef EMBER_DISPATCH_SORT_PLAN_H
#define EMBER_DISPATCH_SORT_PLAN_H
#include "plan.h"

// Bytes that sorting `rows` rows of n elements wants.
size_t em_priv_sort_workspace(int dtype, int64_t rows, int64_t n);
// out[i] = whether elements[i] is among the sorted ones (or is not: invert). All dense, of one dtype.
em_status em_priv_isin(em_tensor *elements, em_tensor *sorted, bool invert, em_tensor *out);
// starts[i] = whether the i-th of n dense elements (or rows of `width` elements) differs from the one before; the first does.
void em_priv_group_starts(em_tensor *values, int64_t width, em_tensor *starts);
// For sorted or consecutive groups: group numbers to inverse[order[i]] (order NULL: i), sizes to counts. Either may be NULL.
void em_priv_group_numbers(em_tensor *starts, em_tensor *order, em_tensor *inverse, em_tensor *counts);
// The order of the rows of a dense matrix, compared element by element; equal rows keep theirs. `order` and `room`: int64, n.
void em_priv_order_rows(em_tensor *rows, int64_t width, em_tensor *order, em_tensor *room);
#endif
