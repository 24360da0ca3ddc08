// plan.h: what a check function decides before anything is written: outputs' dtype, sizes, strides, and workspace.
// Generated entries call check_<op>(arguments..., &plan), allocate or prepare outputs from it, then the kernel.
// check functions are pure: they see metadata and attributes only, and raise every error.
#ifndef EMBER_DISPATCH_PLAN_H
#define EMBER_DISPATCH_PLAN_H
#include "../core/iterator.h"
#include "operator.h"

#define EM_PLAN_OUTPUTS 8
typedef struct em_plan_output {
  int dtype, ndim;
  bool strided;                   // strides given, else contiguous
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
} em_plan_output;
typedef struct em_plan {
  em_plan_output out[EM_PLAN_OUTPUTS];
  int nout;
  em_device device;
  size_t workspace;               // bytes the kernel wants, given as plan->work
  void *work;
  int given;                      // dtype of the first given output (out=, self in place), or EM_DTYPE_NONE; set before the check
  // What a given output (out=, or self in place) may be. Zero: it has the planned dtype, and may lie over inputs.
  bool out_casts;                 // any dtype that the result can be cast to
  em_status out_dtype_error;      // class and words of the refusal, where they are an operator's own; %s: the dtype
  const char *out_dtype_words;
  uint32_t apart;                 // bit i: the output may share no bytes with the i-th tensor argument
  em_tensors apart_list;          // nor with these
  bool over_self;                 // in place the kernel may be given self itself as output; else it gets a temporary
  int64_t attr[8];                // wrapped dims, counts: what the check worked out and the kernel needs again
} em_plan;

static inline void em_plan_init(em_plan *p) {
  p->nout = 0;
  p->workspace = 0;
  p->work = NULL;
  p->out_casts = false;
  p->given = EM_DTYPE_NONE;
  p->out_dtype_words = NULL;
  p->apart = 0;
  p->apart_list = (em_tensors){NULL, 0};
  p->over_self = false;
  p->device = (em_device){EM_DEVICE_CPU, -1};
}
// Declares the next output (contiguous). sizes are copied.
EM_PRIV void em_plan_output_set(em_plan *p, int dtype, int ndim, const int64_t *sizes, em_device device);
// Used by generated entries:
EM_PRIV em_status em_plan_alloc(em_plan *p, int i, bool meta, em_tensor **out);
EM_PRIV em_status em_plan_workspace(em_plan *p);
// Adds room for n things of `size` bytes to the plan's workspace. EM_ERR_OOM when no memory could hold them.
EM_PRIV em_status em_plan_workspace_of(em_plan *p, int64_t n, size_t size);
EM_PRIV void em_plan_release(em_plan *p);  // frees the workspace
// out=: checks dtype (above), device, resizes with a warning; `*target` is `out` itself, or a temporary when out overlaps
// an input or has another dtype or strides a kernel can't write (kernels write any strides unless `contiguous`).
EM_PRIV em_status em_plan_prepare_out(em_plan *p, int i, em_tensor *out, em_tensor *const *inputs, int ninputs,
                                      bool contiguous, em_tensor **target);
// "Expected out tensor to have dtype float, but got double instead"
EM_PRIV em_status em_plan_check_out_dtype(int result, int out);
// When different: resizes `out`, which prepare leaves as it was while an input may be the same tensor, and copies. Releases target.
EM_PRIV em_status em_plan_commit_out(em_tensor *out, em_tensor *target, bool meta);
// in-place: the planned output must have self's sizes and castable dtype.
EM_PRIV em_status em_plan_check_inplace(em_plan *p, em_tensor *self);
// Resize of a given output with PyTorch's warning when it had elements of another shape.
EM_PRIV em_status em_plan_resize_out(em_tensor *out, int ndim, const int64_t *sizes, const int64_t *strides_or_null);
#endif
