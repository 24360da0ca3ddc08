// rnn_pack.c: sequences of different lengths as rows without padding: step after step, in each the sequences that are still running, the
// longest first. Lengths are data, so these have no meta kernel.
#include <string.h>
#include "../../core/iterator.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

static em_status dense(em_tensor *t, em_tensor **out) {
  if (em_tensor_is_contiguous(t)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  em_tensor *copy;
  EM_PASS(em_tensor_new(t->ndim, t->sizes, t->dtype, t->device, &copy));
  const em_status st = em_copy_into(copy, t);
  if (st == EM_OK) *out = copy;
  else em_tensor_release(copy);
  return st;
}
static em_status check_counts(em_tensor *t) {
  if (t->dtype == EM_I64 && t->ndim == 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "'lengths' argument should be a 1D CPU int64 tensor, but got %dD cpu %s tensor", t->ndim,
                 em_dtype_scalar_name(t->dtype));
}

// A padded tensor's rows: step t of sequence b lies at t * step + b * sequence bytes.
typedef struct padded { char *data; int64_t step, sequence, row, steps, batch; } padded;
static padded padded_of(const em_tensor *t, bool batch_first) {  // contiguous
  int64_t row = (int64_t)em_tensor_itemsize(t);
  for (int d = 2; d < t->ndim; d++) row *= t->sizes[d];
  padded p = {em_tensor_data(t), row, row, row, t->sizes[batch_first ? 1 : 0], t->sizes[batch_first ? 0 : 1]};
  if (batch_first) p.sequence = row * p.steps;
  else p.step = row * p.batch;
  return p;
}
enum { TO_ROWS, TO_PADDED };
static void move_rows(const padded *p, char *rows, const int64_t *batch_sizes, int64_t steps, int way) {
  for (int64_t t = 0; t < steps; t++)
    for (int64_t b = 0; b < batch_sizes[t]; b++, rows += p->row) {
      char *at = p->data + t * p->step + b * p->sequence;
      if (p->row > 0) memcpy(way == TO_ROWS ? rows : at, way == TO_ROWS ? at : rows, (size_t)p->row);
    }
}

static em_status check_lengths(em_tensor *input, em_tensor *lengths, const int64_t *n, bool batch_first) {
  const int64_t batch = input->sizes[batch_first ? 0 : 1], steps = input->sizes[batch_first ? 1 : 0];
  if (lengths->numel != batch)
    return em_fail(EM_ERR_RUNTIME, "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size=%lld)",
                   (long long)lengths->numel, (long long)batch);
  for (int64_t i = 0; i < batch; i++) {
    if (n[i] <= 0)
      return em_fail(EM_ERR_RUNTIME, "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
    if (i > 0 && n[i] > n[i - 1])
      return em_fail(EM_ERR_RUNTIME, "`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
                                     "True. You can pass `enforce_sorted=False` "
                                     "to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
                                     "do not need ONNX exportability.");
  }
  if (n[0] <= steps) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected the longest of 'lengths' to be at most the length of the input (%lld), but got %lld",
                 (long long)steps, (long long)n[0]);
}

em_status n_cpu_pack_padded_sequence(uint64_t ks, em_tensor *input, em_tensor *lengths, bool batch_first, em_tensor **out0,
                                     em_tensor **out1) {
  (void)ks;
  OWN x = NULL;
  OWN l = NULL;
  OWN rows = NULL;
  em_tensor *sizes;
  EM_PASS(check_counts(lengths));
  if (input->ndim < 2)
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-%d, %d], but got %d)",
                   input->ndim > 0 ? input->ndim : 1, input->ndim > 0 ? input->ndim - 1 : 0, 1);
  if (input->numel == 0) return em_fail(EM_ERR_RUNTIME, "Cannot pack empty tensors.");
  EM_PASS(dense(input, &x));
  EM_PASS(dense(lengths, &l));
  const int64_t *n = em_tensor_data(l);
  EM_PASS(check_lengths(x, l, n, batch_first));
  int64_t shape[EM_MAX_DIMS], total = 0;
  for (int64_t i = 0; i < l->numel; i++) total += n[i];
  shape[0] = total;
  for (int d = 2; d < x->ndim; d++) shape[d - 1] = x->sizes[d];
  EM_PASS(em_tensor_new(x->ndim - 1, shape, x->dtype, x->device, &rows));
  EM_PASS(em_tensor_new(1, n, EM_I64, x->device, &sizes));
  int64_t *counts = em_tensor_data(sizes);
  for (int64_t t = 0, running = l->numel; t < n[0]; t++) {
    while (n[running - 1] <= t) running--;
    counts[t] = running;
  }
  const padded p = padded_of(x, batch_first);
  move_rows(&p, em_tensor_data(rows), counts, n[0], TO_ROWS);
  *out0 = rows;
  *out1 = sizes;
  rows = NULL;
  return EM_OK;
}

// Counts of running sequences: positive, not growing, and as many rows as there are.
static em_status check_batch_sizes(em_tensor *batch_sizes, const int64_t *n, int64_t rows) {
  int64_t sum = 0;
  if (batch_sizes->numel == 0) return em_fail(EM_ERR_RUNTIME, "batch_sizes must have at least one element");
  for (int64_t t = 0; t < batch_sizes->numel; t++) {
    if (n[t] <= 0 || (t > 0 && n[t] > n[t - 1]) || n[t] > rows - sum)
      return em_fail(EM_ERR_RUNTIME,
                     "batch_sizes must be positive, may not grow, and must sum to the rows of the data (%lld)",
                     (long long)rows);
    sum += n[t];
  }
  if (sum == rows) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "batch_sizes sum to %lld, but the data has %lld rows", (long long)sum, (long long)rows);
}

em_status n_cpu_pack_padded_sequence_backward(uint64_t ks, em_tensor *grad, em_ints input_size, em_tensor *batch_sizes, bool batch_first,
                                              em_tensor **out) {
  (void)ks;
  OWN g = NULL;
  OWN b = NULL;
  OWN result = NULL;
  EM_PASS(check_counts(batch_sizes));
  if (grad->ndim < 1 || input_size.n != grad->ndim + 1)
    return em_fail(EM_ERR_RUNTIME, "input_size must have one dimension more than grad, got %lld and %d",
                   (long long)input_size.n, grad->ndim);
  EM_PASS(dense(grad, &g));
  EM_PASS(dense(batch_sizes, &b));
  const int64_t *n = em_tensor_data(b);
  EM_PASS(check_batch_sizes(b, n, g->sizes[0]));
  EM_PASS(em_tensor_new((int)input_size.n, input_size.p, g->dtype, g->device, &result));
  for (int d = 1; d < g->ndim; d++)
    if (g->sizes[d] != input_size.p[d + 1]) return em_fail(EM_ERR_RUNTIME, "grad does not have the sizes that input_size says");
  const padded p = padded_of(result, batch_first);
  if (p.steps < b->numel || p.batch < n[0]) return em_fail(EM_ERR_RUNTIME, "batch_sizes reach beyond input_size");
  if (result->numel > 0) memset(em_tensor_data(result), 0, (size_t)result->numel * em_tensor_itemsize(result));
  move_rows(&p, em_tensor_data(g), n, b->numel, TO_PADDED);
  *out = result;
  result = NULL;
  return EM_OK;
}

em_status n_cpu_pad_packed_sequence(uint64_t ks, em_tensor *data, em_tensor *batch_sizes, bool batch_first, em_scalar padding_value,
                                    int64_t total_length, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  OWN x = NULL;
  OWN b = NULL;
  OWN result = NULL;
  em_tensor *lengths;
  EM_PASS(check_counts(batch_sizes));
  if (data->ndim < 1) return em_fail(EM_ERR_INDEX, "packed data must have at least one dimension");
  if (data->ndim + 1 > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "tensors have at most %d dimensions", EM_MAX_DIMS);
  EM_PASS(dense(data, &x));
  EM_PASS(dense(batch_sizes, &b));
  const int64_t *n = em_tensor_data(b), longest = b->numel;
  EM_PASS(check_batch_sizes(b, n, x->sizes[0]));
  if (total_length > 0 && total_length < longest)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected total_length to be at least the length of the longest sequence in input, but got total_length=%lld and max "
                   "sequence length being %lld",
                   (long long)total_length, (long long)longest);
  int64_t shape[EM_MAX_DIMS] = {total_length > 0 ? total_length : longest, n[0]};
  for (int d = 1; d < x->ndim; d++) shape[d + 1] = x->sizes[d];
  EM_PASS(em_tensor_new(x->ndim + 1, shape, x->dtype, x->device, &result));
  EM_PASS(em_call_fill__Scalar(result, padding_value));
  padded p = padded_of(result, false);
  move_rows(&p, em_tensor_data(x), n, longest, TO_PADDED);
  EM_PASS(em_tensor_new(1, n, EM_I64, x->device, &lengths));
  int64_t *l = em_tensor_data(lengths);
  for (int64_t i = 0; i < n[0]; i++) l[i] = 0;
  for (int64_t t = 0; t < longest; t++)
    for (int64_t i = 0; i < n[t]; i++) l[i]++;
  if (batch_first) {  // the other order of the same memory
    int64_t strides[EM_MAX_DIMS];
    for (int d = 0; d < result->ndim; d++) strides[d] = result->strides[d];
    const int64_t steps = shape[0], step = strides[0];
    shape[0] = shape[1];
    shape[1] = steps;
    strides[0] = strides[1];
    strides[1] = step;
    const em_status st = em_tensor_set_window(result, result->ndim, shape, strides, 0);
    if (st != EM_OK) {
      em_tensor_release(lengths);
      return st;
    }
  }
  *out0 = result;
  *out1 = lengths;
  result = NULL;
  return EM_OK;
}
