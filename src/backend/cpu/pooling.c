// pooling.c: pooling by dense planes, several threads over rows or planes. Halves and small integers pass through f32 and i64.
#include "dense.h"
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "pool_loops.h"

EM_ISA_DECLARE(const em_pool_fns, em_priv_pool, [EM_POOL_DTYPES]);
static const em_pool_fns *table;
__attribute__((constructor)) static void pick(void) { table = EM_ISA_PICK(em_priv_pool); }

typedef struct job {
  const em_pool_fns *fns;
  em_window w;
  em_pool_divisor divisor;
  em_shares shares;
  char *to;
  const char *from;
  int64_t *index;
  const int64_t *at;
  int kind;
  bool add;
} job;
enum { MAX_ROWS, AVG_ROWS, ADAPTIVE_MAX_ROWS, ADAPTIVE_AVG_ROWS, AVG_PLANES, ADAPTIVE_AVG_PLANES, SCATTER };

static em_status work(void *context, int64_t begin, int64_t end) {
  job *j = context;
  int64_t bad = 0;
  switch (j->kind) {
    case MAX_ROWS: j->fns->max_rows(j->to, j->index, j->from, &j->w, begin, end); break;
    case AVG_ROWS: j->fns->avg_rows(j->to, j->from, &j->w, j->divisor, begin, end); break;
    case ADAPTIVE_MAX_ROWS: j->fns->adaptive_max_rows(j->to, j->index, j->from, &j->w, &j->shares, begin, end); break;
    case ADAPTIVE_AVG_ROWS: j->fns->adaptive_avg_rows(j->to, j->from, &j->w, &j->shares, begin, end); break;
    case AVG_PLANES: j->fns->avg_planes(j->to, j->from, &j->w, j->divisor, begin, end); break;
    case ADAPTIVE_AVG_PLANES: j->fns->adaptive_avg_planes(j->to, j->from, &j->w, &j->shares, begin, end); break;
    case SCATTER:
      if (j->fns->scatter(j->to, j->from, j->at, &j->w, j->add, begin, end, &bad)) break;
      const long long d = j->w.in[0], h = j->w.in[1], w = j->w.in[2];
      if (d == 1)
        return em_fail(EM_ERR_RUNTIME, "Found an invalid max index: %lld (output volumes are of size %lldx%lld)",
                       (long long)bad, h, w);
      return em_fail(EM_ERR_RUNTIME, "Found an invalid max index: %lld (output volumes are of size %lldx%lldx%lld)",
                     (long long)bad, d, h, w);
  }
  return EM_OK;
}
static em_status run(job *j, int64_t each) {
  const em_window *w = &j->w;
  const bool rows = j->kind <= ADAPTIVE_AVG_ROWS;
  const int64_t n = rows ? w->planes * w->out[0] * w->out[1] : w->planes;
  EM_NOTE("%s: %s loop in %s (%s)", rows ? "rows of the output" : "whole planes", em_priv_note_isa,
          j->fns == &table[EM_POOL_I64] ? "int64" : j->fns == &table[EM_POOL_F64] ? "float64" : "float32",
          rows ? "planes refused: rows can be shared out more finely" : "rows refused: several outputs write the same element");
  const int64_t cost = (rows ? w->out[2] : w->out_area) * each + (rows ? 0 : w->in_area / 4) + 1;
  void *token = em_priv_begin_long(n > EM_LONG_NUMEL / cost);
  em_status st = em_threads_for(n, EM_LONG_NUMEL / 2 / cost + 1, work, j);
  em_priv_end_long(token);
  return st;
}
// The dtype that loops of `t` run in. Positions in large planes need 64 bits, which float's loops do not have.
static int compute_of(const em_tensor *t, int64_t area) {
  if (em_dtype_is_integral(t->dtype)) return EM_I64;
  return t->dtype == EM_F64 || area > INT32_MAX ? EM_F64 : EM_F32;
}
static const em_pool_fns *fns_of(int compute) {
  return &table[compute == EM_I64 ? EM_POOL_I64 : compute == EM_F64 ? EM_POOL_F64 : EM_POOL_F32];
}
static int64_t taps(const em_window *w) {
  int64_t n = 1;
  for (int k = 0; k < EM_WINDOW_DIMS; k++) n *= w->kernel[k] < w->in[k] ? w->kernel[k] : w->in[k];
  return n;
}
static int64_t box(const em_window *w) {  // elements that an output of an adaptive pool sees
  return w->in_area / (w->out_area > 0 ? w->out_area : 1) + 1;
}

// Forward: `from` (dense) to `to`, and positions to `index` if there is one.
static em_status forward(job *j, em_tensor *from, em_tensor *to, em_tensor *index, int64_t each) {
  if (to->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *i = NULL;
  const int compute = compute_of(from, j->w.in_area);
  EM_TRY(em_dense_in(from, compute, &x));
  EM_TRY(em_dense_out(to, compute, &y));
  if (index != NULL) EM_TRY(em_dense_out(index, EM_I64, &i));
  j->fns = fns_of(compute);
  j->from = em_tensor_data(x);
  j->to = em_tensor_data(y);
  j->index = index != NULL ? em_tensor_data(i) : NULL;
  EM_TRY(run(j, each));
  EM_TRY(em_dense_back(to, y));
  if (index != NULL) EM_TRY(em_dense_back(index, i));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(i);
  return st;
}
// Backward: `grad` to every element of `to`; `index` says where, if there is one.
static em_status backward(job *j, em_tensor *grad, em_tensor *index, em_tensor *to, int64_t each) {
  if (to->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *i = NULL;
  const int compute = compute_of(grad, 0);
  EM_TRY(em_dense_in(grad, compute, &x));
  EM_TRY(em_dense_out(to, compute, &y));
  if (index != NULL) EM_TRY(em_dense_in(index, EM_I64, &i));
  j->fns = fns_of(compute);
  j->from = em_tensor_data(x);
  j->to = em_tensor_data(y);
  j->at = index != NULL ? em_tensor_data(i) : NULL;
  EM_TRY(run(j, each));
  EM_TRY(em_dense_back(to, y));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(i);
  return st;
}

// --- max
static em_status max_pool(int spatial, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, em_ints dilation,
                          em_tensor *out, em_tensor *index) {
  job j = {.kind = MAX_ROWS};
  em_window_input(&j.w, self, spatial);
  em_window_output(&j.w, out, spatial);
  em_window_parameters(&j.w, spatial, kernel, stride, pad, dilation);
  return forward(&j, self, out, index, taps(&j.w));
}
em_status k_cpu_max_pool2d_with_indices(em_plan *p, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                        em_ints dilation, bool ceil_mode, em_tensor *out0, em_tensor *out1) {
  (void)p;
  (void)ceil_mode;
  return max_pool(2, self, kernel, stride, pad, dilation, out0, out1);
}
em_status k_cpu_max_pool3d_with_indices(em_plan *p, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad,
                                        em_ints dilation, bool ceil_mode, em_tensor *out0, em_tensor *out1) {
  (void)p;
  (void)ceil_mode;
  return max_pool(3, self, kernel, stride, pad, dilation, out0, out1);
}
static em_status scatter(int spatial, em_tensor *from, em_tensor *index, bool add, em_tensor *to) {
  job j = {.kind = SCATTER, .add = add};
  em_window_input(&j.w, to, spatial);
  em_window_output(&j.w, from, spatial);
  return backward(&j, from, index, to, 2);
}
em_status k_cpu_max_pool2d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride,
                                    em_ints pad, em_ints dilation, bool ceil_mode, em_tensor *indices, em_tensor *out) {
  (void)p, (void)self, (void)kernel, (void)stride, (void)pad, (void)dilation, (void)ceil_mode;
  return scatter(2, grad, indices, true, out);
}
em_status k_cpu_max_pool3d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride,
                                    em_ints pad, em_ints dilation, bool ceil_mode, em_tensor *indices, em_tensor *out) {
  (void)p, (void)self, (void)kernel, (void)stride, (void)pad, (void)dilation, (void)ceil_mode;
  return scatter(3, grad, indices, true, out);
}

// --- average
static em_status avg_pool(int spatial, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool include,
                          em_opt_int divisor, em_tensor *out) {
  job j = {.kind = AVG_ROWS, .divisor = {include, divisor.has ? divisor.v : 0}};
  em_window_input(&j.w, self, spatial);
  em_window_output(&j.w, out, spatial);
  em_window_parameters(&j.w, spatial, kernel, stride, pad, EM_INTS_NONE);
  return forward(&j, self, out, NULL, taps(&j.w));
}
static em_status avg_pool_backward(int spatial, em_tensor *grad, em_ints kernel, em_ints stride, em_ints pad,
                                   bool include, em_opt_int divisor, em_tensor *out) {
  job j = {.kind = AVG_PLANES, .divisor = {include, divisor.has ? divisor.v : 0}};
  em_window_input(&j.w, out, spatial);
  em_window_output(&j.w, grad, spatial);
  em_window_parameters(&j.w, spatial, kernel, stride, pad, EM_INTS_NONE);
  return backward(&j, grad, NULL, out, taps(&j.w));
}
em_status k_cpu_avg_pool2d(em_plan *p, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode,
                           bool include, em_opt_int divisor, em_tensor *out) {
  (void)p, (void)ceil_mode;
  return avg_pool(2, self, kernel, stride, pad, include, divisor, out);
}
em_status k_cpu_avg_pool3d(em_plan *p, em_tensor *self, em_ints kernel, em_ints stride, em_ints pad, bool ceil_mode,
                           bool include, em_opt_int divisor, em_tensor *out) {
  (void)p, (void)ceil_mode;
  return avg_pool(3, self, kernel, stride, pad, include, divisor, out);
}
em_status k_cpu_avg_pool2d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride,
                                    em_ints pad, bool ceil_mode, bool include, em_opt_int divisor, em_tensor *out) {
  (void)p, (void)self, (void)ceil_mode;
  return avg_pool_backward(2, grad, kernel, stride, pad, include, divisor, out);
}
em_status k_cpu_avg_pool3d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel, em_ints stride,
                                    em_ints pad, bool ceil_mode, bool include, em_opt_int divisor, em_tensor *out) {
  (void)p, (void)self, (void)ceil_mode;
  return avg_pool_backward(3, grad, kernel, stride, pad, include, divisor, out);
}

// --- adaptive
static void share_out(em_plan *plan, job *j) {
  int64_t *at = plan->work;
  for (int k = 0; at != NULL && k < EM_WINDOW_DIMS; k++) {
    const int64_t in = j->w.in[k], out = j->w.out[k];
    j->shares.from[k] = at;
    j->shares.to[k] = at + out;
    at += 2 * out;
    for (int64_t o = 0; o < out; o++) {
      j->shares.from[k][o] = o / out * in + o % out * in / out;
      j->shares.to[k][o] = 1 + ((o + 1) * in - 1) / out;
    }
  }
}
static em_status adaptive(em_plan *p, int kind, int spatial, em_tensor *self, em_tensor *out, em_tensor *index) {
  job j = {.kind = kind};
  em_window_input(&j.w, self, spatial);
  em_window_output(&j.w, out, spatial);
  share_out(p, &j);
  return forward(&j, self, out, index, box(&j.w));
}
static em_status adaptive_avg_backward(em_plan *p, int spatial, em_tensor *grad, em_tensor *out) {
  job j = {.kind = ADAPTIVE_AVG_PLANES};
  em_window_input(&j.w, out, spatial);
  em_window_output(&j.w, grad, spatial);
  share_out(p, &j);
  return backward(&j, grad, NULL, out, box(&j.w));
}
em_status k_cpu_adaptive_avg_pool2d(em_plan *p, em_tensor *self, em_ints output_size, em_tensor *out) {
  (void)output_size;
  return adaptive(p, ADAPTIVE_AVG_ROWS, 2, self, out, NULL);
}
em_status k_cpu_adaptive_avg_pool3d(em_plan *p, em_tensor *self, em_ints output_size, em_tensor *out) {
  (void)output_size;
  return adaptive(p, ADAPTIVE_AVG_ROWS, 3, self, out, NULL);
}
em_status k_cpu_adaptive_avg_pool2d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_tensor *out) {
  (void)self;
  return adaptive_avg_backward(p, 2, grad, out);
}
em_status k_cpu_adaptive_avg_pool3d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_tensor *out) {
  (void)self;
  return adaptive_avg_backward(p, 3, grad, out);
}
em_status k_cpu_adaptive_max_pool2d(em_plan *p, em_tensor *self, em_ints output_size, em_tensor *out0,
                                    em_tensor *out1) {
  (void)output_size;
  return adaptive(p, ADAPTIVE_MAX_ROWS, 2, self, out0, out1);
}
em_status k_cpu_adaptive_max_pool3d(em_plan *p, em_tensor *self, em_ints output_size, em_tensor *out0,
                                    em_tensor *out1) {
  (void)output_size;
  return adaptive(p, ADAPTIVE_MAX_ROWS, 3, self, out0, out1);
}
em_status k_cpu_adaptive_max_pool2d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_tensor *indices,
                                             em_tensor *out) {
  (void)p, (void)self;
  return scatter(2, grad, indices, true, out);
}
em_status k_cpu_adaptive_max_pool3d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_tensor *indices,
                                             em_tensor *out) {
  (void)p, (void)self;
  return scatter(3, grad, indices, true, out);
}

// --- unpooling
em_status k_cpu_max_unpool2d(em_plan *p, em_tensor *self, em_tensor *indices, em_ints output_size, em_tensor *out) {
  (void)p, (void)output_size;
  return scatter(2, self, indices, false, out);
}
em_status k_cpu_max_unpool3d(em_plan *p, em_tensor *self, em_tensor *indices, em_ints output_size, em_ints stride,
                             em_ints padding, em_tensor *out) {
  (void)p, (void)output_size, (void)stride, (void)padding;
  return scatter(3, self, indices, false, out);
}

// --- fractional: windows begin where a random number puts them, a number for each dim of each plane
// Computed in the input's dtype, step by step, as PyTorch does.
static double in_dtype(int dtype, double v) {
  if (dtype == EM_F64) return v;
  const float f = (float)v;
  return dtype == EM_F16 ? em_f16_to_f32(em_f32_to_f16(f)) : dtype == EM_BF16 ? em_bf16_to_f32(em_f32_to_bf16(f)) : f;
}
static void starts(int64_t *start, double sample, int dtype, int64_t in, int64_t out, int64_t kernel) {
  if (out > 1) {
    const double alpha = in_dtype(dtype, in_dtype(dtype, (double)(in - kernel)) / in_dtype(dtype, (double)(out - 1)));
    const int64_t first = (int64_t)in_dtype(dtype, sample * alpha);
    for (int64_t i = 0; i < out - 1; i++) {
      const double at = in_dtype(dtype, in_dtype(dtype, (double)i) + sample);
      start[i] = (int64_t)in_dtype(dtype, at * alpha) - first;
    }
  }
  if (out > 0) start[out - 1] = in - kernel;
  for (int64_t i = 0; i < out; i++) start[i] = start[i] < 0 ? 0 : start[i] > in - kernel ? in - kernel : start[i];
}
static em_status fractional(em_plan *plan, int spatial, em_tensor *self, em_ints kernel, em_tensor *samples,
                            em_tensor *out, em_tensor *index) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *i = NULL, *r = NULL;
  job j = {.kind = 0};
  em_window_input(&j.w, self, spatial);
  em_window_output(&j.w, out, spatial);
  em_window_parameters(&j.w, spatial, kernel, EM_INTS_NONE, EM_INTS_NONE, EM_INTS_NONE);
  const int compute = compute_of(self, j.w.in_area), lead = EM_WINDOW_DIMS - spatial;
  int64_t *begin[EM_WINDOW_DIMS];
  begin[0] = plan->work;
  begin[1] = begin[0] + j.w.out[0];
  begin[2] = begin[1] + j.w.out[1];
  begin[0][0] = 0;
  EM_TRY(em_dense_in(self, compute, &x));
  EM_TRY(em_dense_out(out, compute, &y));
  EM_TRY(em_dense_out(index, EM_I64, &i));
  EM_TRY(em_dense_in(samples, EM_F64, &r));
  const size_t size = em_dtype_size(compute);
  for (int64_t p = 0; p < j.w.planes; p++) {
    const double *sample = (const double *)em_tensor_data(r) + p * spatial;
    for (int k = lead; k < EM_WINDOW_DIMS; k++) {  // in two dims the first number is the width's
      const int which = spatial == 2 ? EM_WINDOW_DIMS - 1 - k : k - lead;
      starts(begin[k], sample[which], self->dtype, j.w.in[k], j.w.out[k], j.w.kernel[k]);
    }
    fns_of(compute)->fractional_plane((char *)em_tensor_data(y) + (size_t)(p * j.w.out_area) * size,
                                      (int64_t *)em_tensor_data(i) + p * j.w.out_area,
                                      (const char *)em_tensor_data(x) + (size_t)(p * j.w.in_area) * size, &j.w,
                                      (const int64_t *const *)begin);
  }
  EM_TRY(em_dense_back(out, y));
  EM_TRY(em_dense_back(index, i));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(i);
  em_tensor_release(r);
  return st;
}
em_status k_cpu_fractional_max_pool2d(em_plan *p, em_tensor *self, em_ints kernel, em_ints output_size,
                                      em_tensor *samples, em_tensor *out0, em_tensor *out1) {
  (void)output_size;
  return fractional(p, 2, self, kernel, samples, out0, out1);
}
em_status k_cpu_fractional_max_pool3d(em_plan *p, em_tensor *self, em_ints kernel, em_ints output_size,
                                      em_tensor *samples, em_tensor *out0, em_tensor *out1) {
  (void)output_size;
  return fractional(p, 3, self, kernel, samples, out0, out1);
}
em_status k_cpu_fractional_max_pool2d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel,
                                               em_ints output_size, em_tensor *indices, em_tensor *out) {
  (void)p, (void)self, (void)kernel, (void)output_size;
  return scatter(2, grad, indices, true, out);
}
em_status k_cpu_fractional_max_pool3d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints kernel,
                                               em_ints output_size, em_tensor *indices, em_tensor *out) {
  (void)p, (void)self, (void)kernel, (void)output_size;
  return scatter(3, grad, indices, true, out);
}
