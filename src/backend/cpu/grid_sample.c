// grid_sample.c: pictures and volumes read at the points of a grid. One thread a batch entry where gradients meet.
#include "grid_loops.h"
#include "dense.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

EM_ISA_DECLARE(const em_grid_fns, em_priv_grid, [2]);
static const em_grid_fns *table;
__attribute__((constructor)) static void pick(void) { table = EM_ISA_PICK(em_priv_grid); }

static em_status forward(void *context, int64_t begin, int64_t end) {
  const em_grid_job *j = context;
  const int64_t blocks = (j->points + EM_GRID_BLOCK - 1) / EM_GRID_BLOCK;
  for (int64_t i = begin; i < end; i++) {
    const int64_t p = i % blocks * EM_GRID_BLOCK;
    const int count = (int)(j->points - p < EM_GRID_BLOCK ? j->points - p : EM_GRID_BLOCK);
    table[j->wide].sample(j, i / blocks, p, count);
  }
  return EM_OK;
}
static em_status backward(void *context, int64_t begin, int64_t end) {
  const em_grid_job *j = context;
  for (int64_t n = begin; n < end; n++)
    for (int64_t p = 0; p < j->points; p += EM_GRID_BLOCK) {
      const int count = (int)(j->points - p < EM_GRID_BLOCK ? j->points - p : EM_GRID_BLOCK);
      table[j->wide].give(j, n, p, count);
    }
  return EM_OK;
}
static void describe(em_grid_job *j, em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align) {
  *j = (em_grid_job){.dims = input->ndim - 2, .align = align, .wide = input->dtype == EM_F64, .in_area = 1, .points = 1};
  j->mode = mode == EM_GRID_NEAREST ? EM_GRID_NEAREST : mode == EM_GRID_BICUBIC ? EM_GRID_BICUBIC : EM_GRID_BILINEAR;
  j->padding = padding == EM_GRID_BORDER ? EM_GRID_BORDER : padding == EM_GRID_REFLECTION ? EM_GRID_REFLECTION : EM_GRID_ZEROS;
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
  em_grid_job j;
  describe(&j, input, grid, mode, padding, align);
  EM_TRY(em_dense_in(input, compute, &x));
  EM_TRY(em_dense_in(grid, compute, &g));
  EM_TRY(em_dense_out(out, compute, &o));
  j.input = em_tensor_data(x);
  j.grid = em_tensor_data(g);
  j.out = em_tensor_data(o);
  const int64_t cost = (j.channels + 4) * 8 * EM_GRID_BLOCK, blocks = (j.points + EM_GRID_BLOCK - 1) / EM_GRID_BLOCK;
  EM_NOTE("blocks of %d points: taps are worked out once for all %lld channels, in %s", EM_GRID_BLOCK,
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
  em_grid_job j;
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
