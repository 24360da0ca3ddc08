// unique.c: distinct values and rows. Sorted (or as they come: consecutive), equal neighbours form a group; its first member is
// the result, its number the inverse of each, its size the count.
#include <string.h>
#include "../dispatch/index_plan.h"
#include "../dispatch/sort_plan.h"
#include "gen_ops.h"
#include "own.h"

static em_status refuse(const em_tensor *self) {
  if (!em_dtype_is_complex(self->dtype)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"unique\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
}
static em_status numbers(int64_t n, em_tensor **out) {
  return em_tensor_new(1, &n, EM_I64, (em_device){EM_DEVICE_CPU, -1}, out);
}
typedef struct wanted { bool inverse, counts; } wanted;
// Of n things that begin groups where `starts` says. `order`: where each came from, NULL if nothing was moved. Gives empty
// tensors for what is not wanted.
static em_status group_results(em_tensor *starts, em_tensor *order, wanted w, em_tensor **inverse, em_tensor **counts) {
  EM_PASS(numbers(w.inverse ? starts->numel : 0, inverse));
  em_status st = numbers(w.counts ? em_priv_mask_count(starts) : 0, counts);
  if (st != EM_OK) {
    EM_CLEAR_TENSOR(inverse);
    return st;
  }
  em_priv_group_numbers(starts, order, w.inverse ? *inverse : NULL, w.counts ? *counts : NULL);
  return EM_OK;
}
static em_status unique_flat(em_tensor *self, bool sorts, wanted w, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  EM_PASS(refuse(self));
  EM_OWN flat = NULL;
  EM_OWN values = NULL;
  EM_OWN order = NULL;
  EM_OWN starts = NULL;
  EM_OWN distinct = NULL;
  EM_OWN inverse = NULL;
  EM_OWN counts = NULL;
  EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
  if (sorts) EM_PASS(em_call_sort_stable(flat, true, 0, false, &values, &order));
  else EM_PASS(em_call_contiguous(flat, EM_FORMAT_CONTIGUOUS, &values));
  EM_PASS(em_tensor_new(1, values->sizes, EM_BOOL, self->device, &starts));
  em_priv_group_starts(values, 1, starts);
  const int64_t n = em_priv_mask_count(starts);
  EM_PASS(em_tensor_new(1, &n, self->dtype, self->device, &distinct));
  em_priv_mask_move(values, starts, distinct, true);
  EM_PASS(group_results(starts, order, w, &inverse, &counts));
  if (w.inverse) EM_PASS(em_call_view(inverse, (em_ints){self->sizes, self->ndim}, out1));
  else EM_PASS(em_priv_give(&inverse, out1));
  EM_PASS(em_priv_give(&counts, out2));
  return em_priv_give(&distinct, out0);
}
em_status n_unique2(uint64_t ks, em_tensor *self, bool sorted, bool return_inverse, bool return_counts, em_tensor **out0,
                    em_tensor **out1, em_tensor **out2) {
  (void)ks, (void)sorted;
  return unique_flat(self, true, (wanted){return_inverse, return_counts}, out0, out1, out2);
}
em_status n_unique(uint64_t ks, em_tensor *self, bool sorted, bool return_inverse, em_tensor **out0, em_tensor **out1) {
  (void)ks, (void)sorted;
  em_tensor *counts = NULL;
  em_status st = unique_flat(self, true, (wanted){return_inverse, false}, out0, out1, &counts);
  em_tensor_release(counts);
  return st;
}

static em_status unique_rows(em_tensor *self, int64_t dim, bool sorts, wanted w, em_tensor **out0, em_tensor **out1,
                             em_tensor **out2) {
  EM_PASS(refuse(self));
  if (self->ndim == 0)
    return em_fail(EM_ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, false, &dim));
  const int64_t n = self->sizes[dim];
  int zeros = 0;
  for (int d = 0; d < self->ndim; d++) zeros += self->sizes[d] == 0;
  if (n == 0 && zeros == 1) {
    EM_PASS(numbers(0, out1));
    em_status st = numbers(0, out2);
    if (st == EM_OK) st = em_call_new_empty(self, (em_ints){self->sizes, self->ndim}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out0);
    if (st == EM_OK) return st;
    EM_CLEAR_TENSOR(out1);
    EM_CLEAR_TENSOR(out2);
    return st;
  }
  if (zeros > 0)
    return em_fail(EM_ERR_RUNTIME, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const int64_t width = self->numel / n;
  EM_OWN moved = NULL;
  EM_OWN rows = NULL;
  EM_OWN order = NULL;
  EM_OWN room = NULL;
  EM_OWN sorted = NULL;
  EM_OWN starts = NULL;
  EM_OWN picked = NULL;
  EM_OWN all = NULL;
  EM_OWN inverse = NULL;
  EM_OWN counts = NULL;
  EM_PASS(em_call_movedim_int(self, dim, 0, &moved));
  EM_PASS(em_call_contiguous(moved, EM_FORMAT_CONTIGUOUS, &rows));
  EM_PASS(numbers(n, &order));
  EM_PASS(numbers(n, &room));
  if (sorts) em_priv_order_rows(rows, width, order, room);
  if (sorts) EM_PASS(em_call_index_select(rows, 0, order, &sorted));
  else sorted = em_tensor_retain(rows);
  EM_PASS(em_tensor_new(1, &n, EM_BOOL, self->device, &starts));
  em_priv_group_starts(sorted, width, starts);
  em_tensor *const one[] = {starts};
  EM_PASS(em_call_index_Tensor(sorted, (em_tensors){one, 1}, &picked));
  EM_PASS(em_call_movedim_int(picked, 0, dim, &all));
  EM_PASS(group_results(starts, sorts ? order : NULL, w, &inverse, &counts));
  EM_PASS(em_priv_give(&inverse, out1));
  EM_PASS(em_priv_give(&counts, out2));
  return em_priv_give(&all, out0);
}
em_status n_unique_dim(uint64_t ks, em_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts,
                       em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  (void)ks, (void)sorted, (void)return_inverse, (void)return_counts;  // PyTorch gives both whether asked or not
  return unique_rows(self, dim, true, (wanted){true, true}, out0, out1, out2);
}
em_status n_unique_dim_consecutive(uint64_t ks, em_tensor *self, int64_t dim, bool return_inverse, bool return_counts,
                                   em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  (void)ks, (void)return_inverse, (void)return_counts;
  return unique_rows(self, dim, false, (wanted){true, true}, out0, out1, out2);
}
em_status n_unique_consecutive(uint64_t ks, em_tensor *self, bool return_inverse, bool return_counts, em_opt_int dim,
                               em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  if (dim.has) return n_unique_dim_consecutive(ks, self, dim.v, return_inverse, return_counts, out0, out1, out2);
  return unique_flat(self, false, (wanted){return_inverse, return_counts}, out0, out1, out2);
}
