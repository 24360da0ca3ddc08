// embedding_bag.c: sums, means and maxima of rows of a table, bag by bag; and embedding_renorm_. Rows are added in double.
#include <math.h>
#include <string.h>
#include "norm.h"

enum { SUM, MEAN, MAX };
typedef struct bags {
  int64_t n, count, d, rows, padding;  // elements, bags, row length, rows of the table
  const int64_t *ids, *offsets;
  const double *weights;               // of single elements, or NULL
  em_tensor *own[3];
} bags;
static void drop(bags *b) {
  for (int i = 0; i < 3; i++) em_tensor_release(b->own[i]);
}
static int64_t first_of(const bags *b, int64_t bag) { return b->offsets[bag]; }
static int64_t end_of(const bags *b, int64_t bag, int64_t given) { return bag + 1 < given ? b->offsets[bag + 1] : b->n; }
static em_status check(const bags *b, int64_t given) {
  if (given > 0 && b->offsets[0] != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                   "However, got %lld", (long long)b->offsets[0]);
  if (given > 0 && b->offsets[given - 1] > b->n)
    return em_fail(EM_ERR_RUNTIME, "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
                   (long long)b->n, (long long)b->offsets[given - 1]);
  for (int64_t i = 0; i < given; i++)
    if (b->offsets[i] < (i == 0 ? 0 : b->offsets[i - 1]) || b->offsets[i] > b->n)
      return em_fail(EM_ERR_RUNTIME, "embedding_bag: offsets must not decrease");
  for (int64_t i = 0; i < b->n; i++)
    if (b->ids[i] < 0 || b->ids[i] >= b->rows)
      return em_fail(EM_ERR_RUNTIME, "Index %lld of input takes value %lld which is not in the valid range [0, %lld)",
                     (long long)i, (long long)b->ids[i], (long long)b->rows);
  return EM_OK;
}
static em_status prepare(bags *b, em_tensor *indices, em_tensor *offsets, em_tensor *per_sample_weights, int64_t count,
                         int64_t rows, int64_t d, int64_t padding) {
  const void *w = NULL;
  *b = (bags){.n = indices->numel, .count = count, .d = d, .rows = rows, .padding = padding};
  EM_PASS(em_priv_norm_dense(indices, EM_I64, false, &b->own[0]));
  EM_PASS(em_priv_norm_dense(offsets, EM_I64, false, &b->own[1]));
  EM_PASS(em_priv_norm_weight(per_sample_weights, EM_F64, &b->own[2], &w));
  b->ids = em_tensor_data(b->own[0]);
  b->offsets = em_tensor_data(b->own[1]);
  b->weights = w;
  return check(b, offsets->numel);
}
static void load_row(const bags *b, const em_tensor *t, int64_t row, double *to) {
  const size_t size = em_tensor_itemsize(t);
  em_cast_load(to, EM_F64, (const char *)em_tensor_data(t) + (size_t)(row * b->d) * size, t->dtype, (int64_t)size, b->d);
}
// One bag: acc = its sum, mean or maximum, at = which row each maximum came from. Returns how many elements counted.
static int64_t one_bag(const bags *b, const em_tensor *w, int64_t begin, int64_t end, int64_t mode, double *acc,
                       double *row, int64_t *at) {
  int64_t counted = 0;
  for (int64_t k = 0; k < b->d; k++) {
    acc[k] = 0;
    at[k] = 0;
  }
  for (int64_t i = begin; i < end; i++) {
    if (b->ids[i] == b->padding) continue;
    load_row(b, w, b->ids[i], row);
    const double s = b->weights == NULL ? 1 : b->weights[i];
    for (int64_t k = 0; k < b->d; k++) {
      if (mode != MAX) {
        acc[k] += s * row[k];
      } else if (counted == 0 || row[k] > acc[k]) {
        acc[k] = row[k];
        at[k] = b->ids[i];
      }
    }
    counted++;
  }
  if (mode == MEAN && counted > 0)
    for (int64_t k = 0; k < b->d; k++) acc[k] /= (double)counted;
  return counted;
}
em_status k_cpu__embedding_bag(em_plan *p, em_tensor *weight, em_tensor *indices, em_tensor *offsets, bool scale,
                               int64_t mode, bool sparse, em_tensor *per_sample_weights, bool include_last_offset,
                               int64_t padding_idx, em_tensor *out, em_tensor *offset2bag, em_tensor *bag_size,
                               em_tensor *max_indices) {
  (void)p, (void)scale, (void)sparse, (void)include_last_offset;
  bags b;
  em_status st = EM_OK;
  em_tensor *w = NULL, *work = NULL;
  const int64_t d = weight->sizes[1], room = 3 * d + 1;
  EM_TRY(prepare(&b, indices, offsets, per_sample_weights, out->sizes[0], weight->sizes[0], d, padding_idx));
  EM_TRY(em_priv_norm_dense(weight, weight->dtype, false, &w));
  EM_TRY(em_tensor_new(1, &room, EM_F64, weight->device, &work));
  EM_NOTE("bag by bag: %lld bags of rows of %lld, %s in float64; on 1 thread (more refused: bags are not shared out)", (long long)b.count,
          (long long)d, mode == MAX ? "largest" : "summed");
  double *acc = em_tensor_data(work), *row = acc + d;
  int64_t *at = (int64_t *)(row + d), none = 0;
  for (int64_t bag = 0; bag < b.count; bag++) {
    const int64_t begin = first_of(&b, bag), end = end_of(&b, bag, offsets->numel);
    const int64_t counted = one_bag(&b, w, begin, end, mode, acc, row, at);
    em_tensor_put(out, bag * d, acc, EM_F64, d);
    em_tensor_put(bag_size, bag, mode == SUM ? &none : &counted, EM_I64, 1);
    if (mode == MAX) em_tensor_put(max_indices, bag * d, at, EM_I64, d);
    else em_tensor_put(max_indices, bag, mode == SUM ? &none : &counted, EM_I64, 1);
    for (int64_t i = begin; i < end && offset2bag->numel > 0; i++) em_tensor_put(offset2bag, i, &bag, EM_I64, 1);
  }
fail:
  em_tensor_release(w);
  em_tensor_release(work);
  drop(&b);
  return st;
}

// --- backward
static void spread_bag(const bags *b, int64_t begin, int64_t end, const double *g, double share, const double *counts,
                       double *result) {
  for (int64_t i = begin; i < end; i++) {
    const int64_t id = b->ids[i];
    if (id == b->padding) continue;
    const double s = share * (b->weights == NULL ? 1 : b->weights[i]) / (counts == NULL ? 1 : counts[id]);
    for (int64_t k = 0; k < b->d; k++) result[id * b->d + k] += s * g[k];
  }
}
em_status k_cpu__embedding_bag_backward(em_plan *p, em_tensor *grad, em_tensor *indices, em_tensor *offsets,
                                        em_tensor *offset2bag, em_tensor *bag_size, em_tensor *maximum_indices,
                                        int64_t num_weights, bool scale, int64_t mode, bool sparse,
                                        em_tensor *per_sample_weights, int64_t padding_idx, em_tensor *out) {
  (void)p, (void)offset2bag, (void)sparse;
  bags b;
  em_status st = EM_OK;
  em_tensor *g = NULL, *sums = NULL, *top = NULL, *sizes = NULL, *counts = NULL;
  const int64_t d = grad->sizes[1];
  EM_TRY(prepare(&b, indices, offsets, per_sample_weights, grad->sizes[0], num_weights, d, padding_idx));
  EM_TRY(em_priv_norm_dense(grad, EM_F64, false, &g));
  EM_TRY(em_priv_norm_dense(bag_size, EM_I64, false, &sizes));
  EM_TRY(em_priv_norm_dense(maximum_indices, EM_I64, false, &top));
  EM_TRY(em_tensor_new(2, (int64_t[]){num_weights, d}, EM_F64, grad->device, &sums));
  EM_TRY(em_fill(sums, em_scalar_int(0)));
  double *result = em_tensor_data(sums), *frequency = NULL;
  if (scale) {
    EM_TRY(em_tensor_new(1, &num_weights, EM_F64, grad->device, &counts));
    EM_TRY(em_fill(counts, em_scalar_int(0)));
    frequency = em_tensor_data(counts);
    for (int64_t i = 0; i < b.n; i++) frequency[b.ids[i]]++;
  }
  EM_NOTE("bag by bag: %lld bags into %lld rows of %lld, summed in float64; on 1 thread (more refused: bags share rows)",
          (long long)b.count,
          (long long)num_weights, (long long)d);
  const int64_t *size = em_tensor_data(sizes), *from = em_tensor_data(top);
  for (int64_t bag = 0; bag < b.count; bag++) {
    const double *row = (const double *)em_tensor_data(g) + bag * d;
    if (mode != MAX) {
      spread_bag(&b, first_of(&b, bag), end_of(&b, bag, offsets->numel), row,
                 mode == MEAN && size[bag] > 0 ? 1 / (double)size[bag] : 1, frequency, result);
      continue;
    }
    for (int64_t k = 0; k < d && size[bag] > 0; k++) {
      const int64_t id = from[bag * d + k];
      if (id < 0 || id >= num_weights) EM_FAIL(EM_ERR_RUNTIME, "_embedding_bag_backward: maximum_indices are out of range");
      result[id * d + k] += row[k];
    }
  }
  st = em_copy_into(out, sums);
fail:
  em_tensor_release(g);
  em_tensor_release(sums);
  em_tensor_release(top);
  em_tensor_release(sizes);
  em_tensor_release(counts);
  drop(&b);
  return st;
}
em_status k_cpu__embedding_bag_per_sample_weights_backward(em_plan *p, em_tensor *grad, em_tensor *weight,
                                                           em_tensor *indices, em_tensor *offsets,
                                                           em_tensor *offset2bag, int64_t mode, int64_t padding_idx,
                                                           em_tensor *out) {
  (void)p, (void)offset2bag, (void)mode;
  bags b;
  em_status st = EM_OK;
  em_tensor *g = NULL, *w = NULL;
  const int64_t d = grad->sizes[1];
  EM_TRY(prepare(&b, indices, offsets, NULL, grad->sizes[0], weight->sizes[0], d, padding_idx));
  EM_TRY(em_priv_norm_dense(grad, EM_F64, false, &g));
  EM_TRY(em_priv_norm_dense(weight, EM_F64, false, &w));
  EM_TRY(em_fill(out, em_scalar_int(0)));
  for (int64_t bag = 0; bag < b.count; bag++)
    for (int64_t i = first_of(&b, bag); i < end_of(&b, bag, offsets->numel); i++) {
      if (b.ids[i] == padding_idx) continue;
      const double *x = (const double *)em_tensor_data(g) + bag * d, *y = (const double *)em_tensor_data(w) + b.ids[i] * d;
      double dot = 0;
      for (int64_t k = 0; k < d; k++) dot += x[k] * y[k];
      em_tensor_put(out, i, &dot, EM_F64, 1);
    }
fail:
  em_tensor_release(g);
  em_tensor_release(w);
  drop(&b);
  return st;
}

// --- embedding_renorm_: rows that are named, and longer than max_norm, are scaled to it; each once
static double length_of(const double *row, int64_t d, double p) {
  double sum = 0, most = 0;
  for (int64_t k = 0; k < d; k++) {
    const double a = fabs(row[k]);
    most = a > most ? a : most;
    sum += p == 2 ? a * a : p == 1 ? a : p == 0 ? (a != 0) : isinf(p) ? 0 : pow(a, p);
  }
  return isinf(p) ? most : p == 2 ? sqrt(sum) : p == 1 || p == 0 ? sum : pow(sum, 1 / p);
}
static em_status renorm(em_tensor *self, const int64_t *ids, int64_t n, double max_norm, double norm_type,
                        uint8_t *done, double *row) {
  const int64_t d = self->sizes[1], size = (int64_t)em_tensor_itemsize(self);
  for (int64_t i = 0; i < n; i++) {
    if (ids[i] < 0 || ids[i] >= self->sizes[0])
      return em_fail(EM_ERR_INDEX, "select(): index %lld out of range for tensor of size [%lld, %lld] at dimension 0",
                     (long long)ids[i], (long long)self->sizes[0], (long long)d);
    if (done[ids[i]]) continue;
    done[ids[i]] = 1;
    char *at = (char *)em_tensor_data(self) + ids[i] * self->strides[0] * size;
    em_cast_load(row, EM_F64, at, self->dtype, self->strides[1] * size, d);
    const double length = length_of(row, d, norm_type);
    if (!(length > max_norm)) continue;
    for (int64_t k = 0; k < d; k++) row[k] *= max_norm / (length + 1e-7);
    em_cast_store(at, self->dtype, self->strides[1] * size, row, EM_F64, d);
  }
  return EM_OK;
}
em_status n_embedding_renorm_(uint64_t ks, em_tensor *self, em_tensor *indices, double max_norm, double norm_type) {
  (void)ks;
  if (self->ndim != 2)
    return em_fail(EM_ERR_RUNTIME, "Expected 2-dimensional tensor, but got %d-dimensional tensor for argument #1 'self' "
                                   "(while checking arguments for embedding_renorm_)", self->ndim);
  if (indices->dtype != EM_I64 && indices->dtype != EM_I32)
    return em_fail(EM_ERR_RUNTIME, "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, "
                                   "Int; but got torch.%sTensor instead (while checking arguments for embedding_renorm_)",
                   em_dtype_scalar_name(indices->dtype));
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"embedding_renorm_\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  if (self->device.type == EM_DEVICE_META) return EM_OK;
  em_status st = EM_OK;
  em_tensor *ids = NULL, *row = NULL, *done = NULL;
  EM_TRY(em_priv_norm_dense(indices, EM_I64, false, &ids));
  EM_TRY(em_tensor_new(1, &self->sizes[1], EM_F64, self->device, &row));
  EM_TRY(em_tensor_new(1, &self->sizes[0], EM_U8, self->device, &done));
  EM_TRY(em_fill(done, em_scalar_int(0)));
  st = renorm(self, em_tensor_data(ids), ids->numel, max_norm, norm_type, em_tensor_data(done), em_tensor_data(row));
fail:
  em_tensor_release(ids);
  em_tensor_release(row);
  em_tensor_release(done);
  return st;
}
