// grid_sample.c: pictures and volumes read at the points of a grid. One thread a batch entry where gradients meet.
#include "dense.h"
#include <math.h>
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };
typedef struct job {
  int dims, mode, padding;
  bool align, want_input, wide;
  int64_t in[3], in_area, channels, points;
  const void *input, *grid, *grad;
  void *out, *grid_grad;  // backward: out is the input's gradient
} job;

#define BLOCK 32  // points whose taps are worked out before the channels are gone through
#define TAPS 16
#define T float
#define FN(name) name##_f32
#include "grid_bodies.inc.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "grid_bodies.inc.h"

static em_status forward(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t blocks = (j->points + BLOCK - 1) / BLOCK;
  for (int64_t i = begin; i < end; i++) {
    const int64_t p = i % blocks * BLOCK;
    const int count = (int)(j->points - p < BLOCK ? j->points - p : BLOCK);
    if (j->wide) sample_f64(j, i / blocks, p, count);
    else sample_f32(j, i / blocks, p, count);
  }
  return EM_OK;
}
static em_status backward(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t n = begin; n < end; n++)
    for (int64_t p = 0; p < j->points; p += BLOCK) {
      const int count = (int)(j->points - p < BLOCK ? j->points - p : BLOCK);
      if (j->wide) give_f64(j, n, p, count);
      else give_f32(j, n, p, count);
    }
  return EM_OK;
}
static void describe(job *j, em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align) {
  *j = (job){.dims = input->ndim - 2, .align = align, .wide = input->dtype == EM_F64, .in_area = 1, .points = 1};
  j->mode = mode == NEAREST ? NEAREST : mode == BICUBIC ? BICUBIC : BILINEAR;
  j->padding = padding == BORDER ? BORDER : padding == REFLECTION ? REFLECTION : ZEROS;
  j->channels = input->sizes[1];
  for (int k = 0; k < j->dims; k++) {
    j->in[k] = input->sizes[k + 2];
    j->in_area *= j->in[k];
    j->points *= grid->sizes[k + 1];
  }
}
static em_status sample(em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *g = NULL, *o = NULL;
  const int compute = input->dtype == EM_F64 ? EM_F64 : EM_F32;
  job j;
  describe(&j, input, grid, mode, padding, align);
  EM_TRY(em_dense_in(input, compute, &x));
  EM_TRY(em_dense_in(grid, compute, &g));
  EM_TRY(em_dense_out(out, compute, &o));
  j.input = em_tensor_data(x);
  j.grid = em_tensor_data(g);
  j.out = em_tensor_data(o);
  const int64_t cost = (j.channels + 4) * 8 * BLOCK, blocks = (j.points + BLOCK - 1) / BLOCK;
  EM_NOTE("blocks of %d points: taps are worked out once for all %lld channels, in %s", BLOCK,
          (long long)j.channels, em_dtype_name(compute));
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL / 8);
  st = em_threads_for(input->sizes[0] * blocks, EM_LONG_NUMEL / 2 / cost + 1, forward, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, o);
fail:
  em_tensor_release(x);
  em_tensor_release(g);
  em_tensor_release(o);
  return st;
}
static em_status sample_backward(em_tensor *grad, em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding,
                                 bool align, em_bools mask, em_tensor *out0, em_tensor *out1) {
  em_status st = EM_OK;
  em_tensor *v = NULL, *x = NULL, *g = NULL, *gx = NULL, *gg = NULL;
  const int compute = input->dtype == EM_F64 ? EM_F64 : EM_F32;
  job j;
  describe(&j, input, grid, mode, padding, align);
  j.want_input = mask.n < 1 || mask.p[0];
  EM_TRY(em_dense_in(grad, compute, &v));
  EM_TRY(em_dense_in(input, compute, &x));
  EM_TRY(em_dense_in(grid, compute, &g));
  EM_TRY(em_dense_out(out0, compute, &gx));
  EM_TRY(em_dense_out(out1, compute, &gg));
  EM_TRY(em_fill(gx, em_scalar_int(0)));
  if (out1->numel > 0) {
    j.grad = em_tensor_data(v);
    j.input = em_tensor_data(x);
    j.grid = em_tensor_data(g);
    j.out = em_tensor_data(gx);
    j.grid_grad = em_tensor_data(gg);
    EM_NOTE("entry by entry of the batch: %lld, in %s (blocks of points refused: gradients of several meet in one element)",
            (long long)input->sizes[0], em_dtype_name(compute));
    void *token = em_priv_begin_long(grad->numel > EM_LONG_NUMEL / 8);
    st = em_threads_for(input->sizes[0], EM_LONG_NUMEL / 64 / (j.points * (j.channels + 1)) + 1, backward, &j);
    em_priv_end_long(token);
    if (st != EM_OK) goto fail;
  }
  EM_TRY(em_dense_back(out0, gx));
  EM_TRY(em_dense_back(out1, gg));
fail:
  em_tensor_release(v);
  em_tensor_release(x);
  em_tensor_release(g);
  em_tensor_release(gx);
  em_tensor_release(gg);
  return st;
}
#define KERNELS(n)                                                                                                    \
  em_status k_cpu_grid_sampler_##n##d(em_plan *p, em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding,   \
                                      bool align, em_tensor *out) {                                                   \
    (void)p;                                                                                                          \
    return sample(input, grid, mode, padding, align, out);                                                            \
  }                                                                                                                   \
  em_status k_cpu_grid_sampler_##n##d_backward(em_plan *p, em_tensor *grad, em_tensor *input, em_tensor *grid,        \
                                               int64_t mode, int64_t padding, bool align, em_bools mask,              \
                                               em_tensor *out0, em_tensor *out1) {                                    \
    (void)p;                                                                                                          \
    return sample_backward(grad, input, grid, mode, padding, align, mask, out0, out1);                                \
  }
KERNELS(2)
KERNELS(3)
