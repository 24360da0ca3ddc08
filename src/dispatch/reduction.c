// reduction.c: what a reduction decides before it reads an element: dims, dtypes, errors, outputs.
#include "reduction.h"
#include "../core/iterator.h"
#include <string.h>

static em_status reduced_dims(const em_red_desc *d, const em_tensor *self, em_ints dims, uint64_t *out) {
  uint64_t all = self->ndim == 64 ? ~0ull : (1ull << self->ndim) - 1;
  if (dims.n < 0 || (dims.n == 0 && (d->flags & EM_RED_ALL_EMPTY_DIMS))) {
    *out = all;
    return EM_OK;
  }
  *out = 0;
  for (int64_t i = 0; i < dims.n; i++) {
    int64_t dim;
    EM_PASS(em_shape_wrap_dim(dims.p[i], self->ndim, true, &dim));
    if (*out >> dim & 1 && self->ndim > 0)
      return em_fail(EM_ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (long long)dim);
    *out |= 1ull << dim;
  }
  *out &= all;  // dim 0 of a 0-dim tensor
  return EM_OK;
}

static em_status check_empty(const em_red_desc *d, const em_tensor *self, em_ints dims, uint64_t reduced) {
  if (!(d->flags & EM_RED_NO_IDENTITY) || self->numel != 0) return EM_OK;
  if (dims.n <= 0)
    return em_fail(d->flags & EM_RED_FLATTEN ? EM_ERR_INDEX : EM_ERR_RUNTIME,
                   "%s(): Expected reduction dim to be specified for input.numel() == 0.%s", d->name,
                   d->flags & EM_RED_FLATTEN ? "" : " Specify the reduction dim with the 'dim' argument.");
  for (int i = 0; i < self->ndim; i++)
    if ((reduced >> i & 1) && self->sizes[i] == 0)
      return em_fail(EM_ERR_INDEX, "%s(): Expected reduction dim %d to have non-zero size.", d->name, i);
  return EM_OK;
}

// Positions of extremes need an order; argmax and argmin refuse bool, too.
static em_status check_ordered(const em_red_desc *d, const em_tensor *self) {
  bool flat = (d->flags & EM_RED_FLATTEN) != 0;
  if (flat && self->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "%s(): does not support bool input", d->name);
  if (em_dtype_is_complex(self->dtype) && (flat || (d->nout == 2 && d->out_kind[1] == EM_RED_INDEX)))
    return em_fail(EM_ERR_RUNTIME, "%s(): does not support complex input", d->name);
  return EM_OK;
}

// dtype that is reduced: elements become it first. `result` is the first output's.
static em_status plan_dtype(const em_red_desc *d, const em_tensor *self, int dtype, int *reduced, int *result) {
  int in = self->dtype, t = dtype != EM_DTYPE_NONE ? dtype : in;
  switch (d->dtype_rule) {
  case EM_RED_DTYPE_SUM:
    if (dtype == EM_DTYPE_NONE && em_dtype_is_integral(in)) t = EM_I64;
    break;
  case EM_RED_DTYPE_FLOAT:
    if (em_dtype_is_integral(t) && strcmp(d->name, "mean") == 0)
      return em_fail(
          EM_ERR_RUNTIME,
          "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
          dtype != EM_DTYPE_NONE ? "Optional" : "Input", em_dtype_scalar_name(t));
    if (em_dtype_is_integral(t))
      return em_fail(EM_ERR_RUNTIME, "%s only support floating point and complex dtypes",
                     strcmp(d->name, "var_mean") == 0 ? "var_mean" : "std and var");
    break;
  case EM_RED_DTYPE_BOOL:
    *reduced = EM_BOOL;
    *result = in == EM_U8 ? EM_U8 : EM_BOOL;
    return EM_OK;
  default: break;
  }
  *reduced = t;
  *result = t;
  return EM_OK;
}

static int output_dtype(const em_red_desc *d, int i, int result) {
  return d->out_kind[i] == EM_RED_INDEX ? EM_I64 : d->out_kind[i] == EM_RED_REAL ? em_dtype_to_real(result) : result;
}

static void plan_outputs(const em_red_desc *d, const em_tensor *self, uint64_t reduced, bool keepdim, int result,
                         em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  int n = 0;
  for (int i = 0; i < self->ndim; i++) {
    if (!(reduced >> i & 1)) sizes[n++] = self->sizes[i];
    else if (keepdim) sizes[n++] = 1;
  }
  em_plan_init(p);
  for (int i = 0; i < d->nout; i++) em_plan_output_set(p, output_dtype(d, i, result), n, sizes, self->device);
}

em_status em_red_run(const em_red_desc *d, uint32_t flags, em_tensor *self, em_ints dims, bool keepdim, int dtype,
                     const double *attr, em_tensor **outs) {
  em_status st = EM_OK;
  em_red_walk w = {.d = d, .self = self, .attr = attr};
  em_tensor *target[2] = {NULL, NULL};
  em_plan p;
  int reduced_dtype = self->dtype, result = self->dtype;
  bool given = (flags & EM_ITER_OUT) != 0, meta = (flags & EM_ITER_META) != 0;
  if (given && dtype == EM_DTYPE_NONE && d->dtype_rule <= EM_RED_DTYPE_FLOAT && d->dtype_rule != EM_RED_DTYPE_SAME)
    dtype = d->out_kind[0] == EM_RED_REAL && em_dtype_is_complex(self->dtype) && !em_dtype_is_complex(outs[0]->dtype)
                ? em_dtype_to_complex(outs[0]->dtype)  // a real result of complex elements: they stay complex
                : outs[0]->dtype;
  EM_PASS(reduced_dims(d, self, dims, &w.reduced));
  EM_PASS(check_ordered(d, self));
  EM_PASS(check_empty(d, self, dims, w.reduced));
  EM_PASS(plan_dtype(d, self, dtype, &reduced_dtype, &result));
  plan_outputs(d, self, w.reduced, keepdim, result, &p);
  int slot = d->slot[reduced_dtype];
  if (slot == EM_CD_NONE)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", d->kernel_name,
                   em_dtype_scalar_name(reduced_dtype));
  for (int i = 0; i < d->nout; i++) {
    if (given) EM_TRY(em_plan_prepare_out(&p, i, outs[i], &self, 1, true, &target[i]));
    else EM_TRY(em_plan_alloc(&p, i, meta, &target[i]));
    w.out[i] = target[i];
  }
  if (!meta) {
    w.loop = em_priv_cd_dtype[slot];
    w.k = &d->kernels[slot];
    w.convert = self->dtype != reduced_dtype && reduced_dtype != w.loop ? reduced_dtype : EM_DTYPE_NONE;
    EM_TRY(em_red_walk_cpu(&w));
  }
  for (int i = 0; i < d->nout; i++) {
    em_tensor *t = target[i];
    target[i] = NULL;
    if (given) EM_TRY(em_plan_commit_out(outs[i], t, meta));
    else outs[i] = t;
  }
  return EM_OK;
fail:
  for (int i = 0; i < 2; i++) em_tensor_release(target[i]);
  return st;
}
