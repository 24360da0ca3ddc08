// index_along.h: one dim of a tensor read or written at the positions that an index names. What operators (src/ops) and
// kernels (src/backend/cpu/scatter_loops.c) say to each other.
#ifndef EMBER_DISPATCH_INDEX_ALONG_H
#define EMBER_DISPATCH_INDEX_ALONG_H
#include "plan.h"

enum { EM_INDEX_GET, EM_INDEX_PUT, EM_INDEX_ADD, EM_INDEX_MUL, EM_INDEX_MAX, EM_INDEX_MIN };

typedef struct em_index_along {
  em_tensor *indexed;    // read (gets) or written
  em_tensor *index;      // int64 or int32
  em_tensor *plain;      // the other side, of the indexed dtype; NULL: `value`, one element, goes everywhere
  const void *value;
  int64_t dim;
  int ndim;              // of the places that are visited, and their sizes (0-dim counts as one place)
  const int64_t *sizes;
  bool gets;
  bool vector;           // the index is a vector along dim that serves every line
  const char *name;      // begins the message of a bad position, which is an IndexError then; NULL: a RuntimeError
} em_index_along;
// Raises when a position is outside. em_priv_index_run trusts a vector, and looks at others itself.
em_status em_priv_index_check(const em_index_along *a);
em_status em_priv_index_run(const em_index_along *a, int op);
// The slices of self that index names (inside, or an IndexError) get one value.
em_status em_priv_index_fill(em_tensor *self, int64_t dim, em_tensor *index, em_scalar value);
#endif
