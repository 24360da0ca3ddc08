// batch_norm.c: batch norm, forward and backward. Two ways through the data: a channel's elements lie in segments (N, C,
// rest), or channels lie side by side as columns (channels_last, and (N, C) without a rest).
#include <math.h>
#include "norm.h"

enum { MAX_PARTS = 16 };
typedef struct batch {
  const em_norm_table *loops;
  int64_t n, c, rest;       // elements: n * c * rest
  bool columns, train;
  int saved;                // dtype of the saved statistics
  size_t size;
  double eps;
  const char *x, *dy;
  char *o;
  // a value for each channel
  double *mean, *invstd, *a, *b, *d, *s0, *s1;
  const double *gamma, *beta;
  // columns: rows fall into parts by size alone; each part sums for itself
  int64_t parts, per_part, bands;
  double *part_sums;  // [parts][2][c]
  int what;
} batch;
static int64_t per_channel(const batch *j) { return j->n * j->rest; }
static void shape_of(batch *j, const em_tensor *input, bool channels_last) {
  j->n = input->sizes[0];
  j->c = input->sizes[1];
  j->rest = 1;
  for (int d = 2; d < input->ndim; d++) j->rest *= input->sizes[d];
  j->columns = channels_last || j->rest == 1;
  j->size = em_tensor_itemsize(input);
  j->loops = em_priv_norm_loops(input->dtype);
  if (!j->columns) return;
  const int64_t m = per_channel(j);
  j->parts = m * j->c / 65536 + 1;
  j->parts = j->parts > MAX_PARTS ? MAX_PARTS : j->parts;
  j->per_part = (m + j->parts - 1) / j->parts;
  j->per_part = j->per_part < 1 ? 1 : j->per_part;
  j->parts = (m + j->per_part - 1) / j->per_part;
  j->bands = (j->c + EM_NORM_COLUMNS - 1) / EM_NORM_COLUMNS;
}

// --- columns: one pass over all parts and bands
enum { PASS_SUM, PASS_SQUARES, PASS_DOT, PASS_SCALE, PASS_SCALE_GRAD, PASS_MIX };
static em_status column_part(void *context, int64_t begin, int64_t end) {
  const batch *j = context;
  for (int64_t i = begin; i < end; i++) {
    const int64_t part = i / j->bands, c0 = i % j->bands * EM_NORM_COLUMNS,
                  w = j->c - c0 < EM_NORM_COLUMNS ? j->c - c0 : EM_NORM_COLUMNS, first = part * j->per_part,
                  m = per_channel(j), count = m - first < j->per_part ? m - first : j->per_part;
    const size_t at = (size_t)(first * j->c + c0) * j->size;
    double *s0 = j->part_sums + (part * 2 * j->c + c0), *s1 = s0 + j->c;
    const em_norm_table *f = j->loops;
    switch (j->what) {
      case PASS_SUM: f->column_sum(j->x + at, count, j->c, w, s0); break;
      case PASS_SQUARES: f->column_squares(j->x + at, count, j->c, w, j->mean + c0, s0); break;
      case PASS_DOT: f->column_dot(j->dy + at, j->x + at, count, j->c, w, j->mean + c0, s0, s1); break;
      case PASS_SCALE: f->column_scale(j->o + at, j->x + at, count, j->c, w, j->mean + c0, j->a + c0, j->b + c0); break;
      case PASS_SCALE_GRAD: f->column_scale(j->o + at, j->dy + at, count, j->c, w, j->d + c0, j->a + c0, j->b + c0); break;
      default:
        f->column_mix(j->o + at, j->dy + at, j->x + at, count, j->c, w, j->mean + c0, j->a + c0, j->b + c0, j->d + c0);
    }
  }
  return EM_OK;
}
static em_status column_pass(batch *j, int what) {
  j->what = what;
  const int64_t sums = j->parts * 2 * j->c;
  for (int64_t i = 0; i < sums; i++) j->part_sums[i] = 0;
  EM_PASS(em_threads_for(j->parts * j->bands, EM_NORM_GRAIN / (j->per_part * EM_NORM_COLUMNS) + 1, column_part, j));
  if (what > PASS_DOT) return EM_OK;
  for (int64_t c = 0; c < j->c; c++) j->s0[c] = j->s1[c] = 0;
  for (int64_t part = 0; part < j->parts; part++)
    for (int64_t c = 0; c < j->c; c++) {
      j->s0[c] += j->part_sums[part * 2 * j->c + c];
      j->s1[c] += j->part_sums[(part * 2 + 1) * j->c + c];
    }
  return EM_OK;
}
// Statistics are used as they are saved: rounded to a half dtype.
static double as_saved(const batch *j, double v) {
  char element[8];
  if (j->saved == EM_F32 || j->saved == EM_F64) return v;
  em_cast_store(element, j->saved, 2, &v, EM_F64, 1);
  em_cast_load(&v, EM_F64, element, j->saved, 2, 1);
  return v;
}
static void forward_factors(const batch *j, int64_t c) {
  if (j->train) {
    j->mean[c] = as_saved(j, j->d[c] = j->mean[c]);  // the running mean moves by what was not rounded
    j->invstd[c] = as_saved(j, j->invstd[c]);
  }
  j->a[c] = j->invstd[c] * (j->gamma == NULL ? 1 : j->gamma[c]);
  j->b[c] = j->beta == NULL ? 0 : j->beta[c];
}
// Leaves the sum of squared deviations in s0.
static em_status forward_columns(batch *j) {
  const double m = (double)per_channel(j);
  if (j->train) {
    EM_PASS(column_pass(j, PASS_SUM));
    for (int64_t c = 0; c < j->c; c++) j->mean[c] = j->s0[c] / m;
    EM_PASS(column_pass(j, PASS_SQUARES));
    for (int64_t c = 0; c < j->c; c++) j->invstd[c] = 1 / sqrt(j->s0[c] / m + j->eps);
  }
  for (int64_t c = 0; c < j->c; c++) forward_factors(j, c);
  return column_pass(j, PASS_SCALE);
}

static __attribute__((cold)) void note_batch(const batch *j) {
  if (j->columns)
    em_note_write("columns: %lld channels side by side, %lld rows in %lld parts, %s loop (channel by channel refused: %s)", (long long)j->c,
                  (long long)per_channel(j), (long long)j->parts, em_priv_note_isa,
                  j->rest == 1 ? "a channel is one element wide" : "channels lie side by side, in channels_last order");
  else
    em_note_write("channel by channel: %lld channels, %lld segments of %lld elements each, %s loop (columns refused: a channel's "
                  "elements lie "
                  "side by side)", (long long)j->c, (long long)j->n, (long long)j->rest, em_priv_note_isa);
}

// --- segments
static em_status forward_segments(void *context, int64_t begin, int64_t end) {
  const batch *j = context;
  const int64_t step = j->c * j->rest;
  for (int64_t c = begin; c < end; c++) {
    const char *x = j->x + (size_t)(c * j->rest) * j->size;
    char *o = j->o + (size_t)(c * j->rest) * j->size;
    if (j->train) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < j->n; i++) sum += j->loops->sum(x + (size_t)(i * step) * j->size, j->rest);
      j->mean[c] = sum / (double)per_channel(j);
      for (int64_t i = 0; i < j->n; i++)
        squares += j->loops->squares(x + (size_t)(i * step) * j->size, j->rest, j->mean[c]);
      j->s0[c] = squares;
      j->invstd[c] = 1 / sqrt(squares / (double)per_channel(j) + j->eps);
    }
    forward_factors(j, c);
    for (int64_t i = 0; i < j->n; i++) {
      const size_t at = (size_t)(i * step) * j->size;
      j->loops->scale(o + at, x + at, j->rest, j->mean[c], j->a[c], j->b[c]);
    }
  }
  return EM_OK;
}

// --- forward
static double *channel_arrays(batch *j, em_tensor *block) {
  double *p = em_tensor_data(block);
  double **arrays[] = {&j->mean, &j->invstd, &j->a, &j->b, &j->d, &j->s0, &j->s1};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++, p += j->c) *arrays[i] = p;
  return j->part_sums = p;
}
static em_status make_arrays(batch *j, em_tensor **block) {
  const int64_t doubles = (7 + 2 * (j->columns ? j->parts : 0)) * j->c;
  EM_PASS(em_tensor_new(1, &doubles, EM_F64, (em_device){EM_DEVICE_CPU, -1}, block));
  channel_arrays(j, *block);
  return EM_OK;
}
// running = momentum * new + (1 - momentum) * running. Needs no memory, so that it can run last and not fail.
static void update(em_tensor *running, const double *fresh, double factor, double momentum) {
  if (running == NULL) return;
  const int64_t step = running->strides[0] * (int64_t)em_tensor_itemsize(running);
  char *p = em_tensor_data(running);
  for (int64_t c = 0; c < running->numel; c++, p += step) {
    double v;
    em_cast_load(&v, EM_F64, p, running->dtype, step, 1);
    v = momentum * (fresh[c] * factor) + (1 - momentum) * v;
    em_cast_store(p, running->dtype, step, &v, EM_F64, 1);
  }
}
static em_status from_running(batch *j, em_tensor *running_mean, em_tensor *running_var) {
  em_status st = EM_OK;
  em_tensor *m = NULL, *v = NULL;
  EM_TRY(em_priv_norm_dense(running_mean, EM_F64, false, &m));
  EM_TRY(em_priv_norm_dense(running_var, EM_F64, false, &v));
  const double *pm = em_tensor_data(m), *pv = em_tensor_data(v);
  for (int64_t c = 0; c < j->c; c++) {
    j->mean[c] = pm[c];
    j->invstd[c] = 1 / sqrt(pv[c] + j->eps);
  }
fail:
  em_tensor_release(m);
  em_tensor_release(v);
  return st;
}
em_status k_cpu_native_batch_norm(em_plan *p, em_tensor *input, em_tensor *weight, em_tensor *bias,
                                  em_tensor *running_mean, em_tensor *running_var, bool training, double momentum,
                                  double eps, em_tensor *out, em_tensor *save_mean, em_tensor *save_invstd) {
  (void)p;
  batch j = {.train = training, .eps = eps, .saved = save_mean->dtype};
  const bool last = em_shape_suggested_format(input) != EM_FORMAT_CONTIGUOUS;
  shape_of(&j, input, last);
  em_status st = EM_OK;
  em_tensor *block = NULL, *x = NULL, *g = NULL, *b = NULL, *o = NULL;
  const void *gamma = NULL, *beta = NULL;
  EM_TRY(make_arrays(&j, &block));
  EM_TRY(em_priv_norm_dense(input, input->dtype, last, &x));
  EM_TRY(em_priv_norm_weight(weight, EM_F64, &g, &gamma));
  EM_TRY(em_priv_norm_weight(bias, EM_F64, &b, &beta));
  EM_TRY(em_priv_norm_target(out, last, &o));
  if (!training) EM_TRY(from_running(&j, running_mean, running_var));
  j.gamma = gamma;
  j.beta = beta;
  j.x = em_tensor_data(x);
  j.o = em_tensor_data(o);
  void *token = em_priv_begin_long(input->numel > EM_LONG_NUMEL);
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_batch(&j);
  if (j.columns) st = forward_columns(&j);
  else st = em_threads_for(j.c, EM_NORM_GRAIN / (per_channel(&j) + 1) + 1, forward_segments, &j);
  em_priv_end_long(token);
  if (st != EM_OK || !training) goto fail;
  em_tensor_put(save_mean, 0, j.mean, EM_F64, j.c);
  em_tensor_put(save_invstd, 0, j.invstd, EM_F64, j.c);
fail:
  st = em_priv_norm_commit(out, o, st);
  if (st == EM_OK && training) {
    update(running_mean, j.d, 1, momentum);
    update(running_var, j.s0, 1 / (double)(per_channel(&j) - 1), momentum);
  }
  em_tensor_release(block);
  em_tensor_release(x);
  em_tensor_release(g);
  em_tensor_release(b);
  return st;
}

// --- backward
// o = a dy + b (x - mean) + d: the gradient, from the sums of dy (s0) and dy (x - mean) (s1).
static void backward_factors(const batch *j, int64_t c) {
  const double m = (double)per_channel(j);
  j->a[c] = j->invstd[c] * (j->gamma == NULL ? 1 : j->gamma[c]);
  j->b[c] = j->train ? -j->a[c] * j->invstd[c] * j->invstd[c] * j->s1[c] / m : 0;
  j->d[c] = j->train ? -j->a[c] * j->s0[c] / m : 0;
}
static em_status backward_segments(void *context, int64_t begin, int64_t end) {
  const batch *j = context;
  const int64_t step = j->c * j->rest;
  for (int64_t c = begin; c < end; c++) {
    const size_t first = (size_t)(c * j->rest) * j->size;
    double s[2] = {0, 0};
    for (int64_t i = 0; i < j->n; i++) {
      const size_t at = first + (size_t)(i * step) * j->size;
      j->loops->dot(j->dy + at, j->x + at, j->rest, j->mean[c], s);
    }
    j->s0[c] = s[0];
    j->s1[c] = s[1];
    backward_factors(j, c);
    for (int64_t i = 0; j->o != NULL && i < j->n; i++) {
      const size_t at = first + (size_t)(i * step) * j->size;
      if (j->train) j->loops->mix(j->o + at, j->dy + at, j->x + at, j->rest, j->mean[c], j->a[c], j->b[c], j->d[c]);
      else j->loops->scale(j->o + at, j->dy + at, j->rest, 0, j->a[c], 0);
    }
  }
  return EM_OK;
}
static em_status backward_columns(batch *j) {
  EM_PASS(column_pass(j, PASS_DOT));
  for (int64_t c = 0; c < j->c; c++) backward_factors(j, c);
  return j->o == NULL ? EM_OK : column_pass(j, j->train ? PASS_MIX : PASS_SCALE_GRAD);
}
static em_status saved_stats(batch *j, em_tensor *mean, em_tensor *invstd) {
  em_status st = EM_OK;
  em_tensor *m = NULL, *v = NULL;
  EM_TRY(em_priv_norm_dense(mean, EM_F64, false, &m));
  EM_TRY(em_priv_norm_dense(invstd, EM_F64, false, &v));
  const double *pm = em_tensor_data(m), *pv = em_tensor_data(v);
  for (int64_t c = 0; c < j->c; c++) {
    j->mean[c] = pm[c];
    j->invstd[c] = pv[c];
  }
fail:
  em_tensor_release(m);
  em_tensor_release(v);
  return st;
}
static em_status backward(em_tensor *grad, em_tensor *input, em_tensor *weight, em_tensor *mean, em_tensor *other,
                          bool train, double eps, bool last, em_tensor *dx, em_tensor *dgamma, em_tensor *dbeta) {
  batch j = {.train = train, .eps = eps};
  shape_of(&j, input, last);
  em_status st = EM_OK;
  em_tensor *block = NULL, *x = NULL, *dy = NULL, *g = NULL;
  const void *gamma = NULL;
  EM_TRY(make_arrays(&j, &block));
  EM_TRY(em_priv_norm_dense(input, input->dtype, last, &x));
  EM_TRY(em_priv_norm_dense(grad, input->dtype, last, &dy));
  EM_TRY(em_priv_norm_weight(weight, EM_F64, &g, &gamma));
  if (train) EM_TRY(saved_stats(&j, mean, other));
  else EM_TRY(from_running(&j, mean, other));
  j.gamma = gamma;
  j.x = em_tensor_data(x);
  j.dy = em_tensor_data(dy);
  j.o = dx == NULL ? NULL : em_tensor_data(dx);
  void *token = em_priv_begin_long(input->numel > EM_LONG_NUMEL);
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_batch(&j);
  if (j.columns) st = backward_columns(&j);
  else st = em_threads_for(j.c, EM_NORM_GRAIN / (per_channel(&j) + 1) + 1, backward_segments, &j);
  em_priv_end_long(token);
  if (st != EM_OK) goto fail;
  if (dbeta != NULL) em_tensor_put(dbeta, 0, j.s0, EM_F64, j.c);
  for (int64_t c = 0; c < j.c; c++) j.s1[c] *= j.invstd[c];
  if (dgamma != NULL) em_tensor_put(dgamma, 0, j.s1, EM_F64, j.c);
fail:
  em_tensor_release(block);
  em_tensor_release(x);
  em_tensor_release(dy);
  em_tensor_release(g);
  return st;
}
static bool channel_count(const em_tensor *t, int64_t c) { return t == NULL || t->numel == c; }
em_status n_native_batch_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_tensor *weight,
                                       em_tensor *running_mean, em_tensor *running_var, em_tensor *save_mean,
                                       em_tensor *save_invstd, bool train, double eps, em_bools mask,
                                       em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  (void)ks;
  em_tensor *mean = train ? save_mean : running_mean, *other = train ? save_invstd : running_var;
  const int64_t c = input->ndim < 2 ? 0 : input->sizes[1];
  if (input->ndim < 2 || !em_tensor_same_sizes(grad_out, input) || mean == NULL || other == NULL ||
      !channel_count(mean, c) || !channel_count(other, c) || !channel_count(weight, c))
    return em_fail(EM_ERR_RUNTIME, "native_batch_norm_backward: the arguments' shapes do not fit each other");
  if (!em_dtype_is_float(input->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"batch_norm_backward_cpu\" not implemented for '%s'",
                   em_dtype_scalar_name(input->dtype));
  em_status st = EM_OK;
  const int dtype = weight == NULL ? input->dtype : weight->dtype;
  const int format = em_shape_suggested_format(input);
  const bool last = format != EM_FORMAT_CONTIGUOUS;
  em_tensor *d[3] = {NULL};
  if (mask.p[0])
    EM_TRY(em_call_empty_like(input, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, last ? format : EM_FORMAT_CONTIGUOUS,
                              &d[0]));
  for (int i = 1; i < 3; i++)
    if (mask.p[i]) EM_TRY(em_tensor_new(1, &c, dtype, input->device, &d[i]));
  if (input->device.type != EM_DEVICE_META)
    EM_TRY(backward(grad_out, input, weight, mean, other, train, eps, last, d[0], d[1], d[2]));
  *out0 = d[0];
  *out1 = d[1];
  *out2 = d[2];
  return EM_OK;
fail:
  for (int i = 0; i < 3; i++) em_tensor_release(d[i]);
  return st;
}
