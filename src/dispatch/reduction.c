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
static em_status check_flat(const em_red_desc *d, const em_tensor *self) {
  if ((d->flags & EM_RED_FLATTEN) == 0) return EM_OK;
  if (self->dtype == EM_BOOL) return em_fail(EM_ERR_RUNTIME, "%s(): does not support bool input", d->name);
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "%s(): does not support complex input", d->name);
  return EM_OK;
}
static em_status check_ordered(const em_red_desc *d, const em_tensor *self) {
  if (em_dtype_is_complex(self->dtype) && d->nout == 2 && d->out_kind[1] == EM_RED_INDEX)
    return em_fail(EM_ERR_RUNTIME, "%s(): does not support complex input", d->name);
  return EM_OK;
}

// Which dtypes out= may have, beyond being castable to.
static em_status check_given(const em_red_desc *d, const em_tensor *self, em_tensor *const *outs) {
  bool positions = d->out_kind[d->nout - 1] == EM_RED_INDEX;
  if (d->dtype_rule == EM_RED_DTYPE_BOOL && outs[0]->dtype != EM_BOOL && outs[0]->dtype != EM_U8)
    return em_fail(EM_ERR_RUNTIME, "%s only supports bool tensor for result, got: %s", d->name,
                   em_dtype_scalar_name(outs[0]->dtype));
  if ((strcmp(d->name, "amax") == 0 || strcmp(d->name, "amin") == 0) && outs[0]->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected the dtype for input and out to match, but got %s for input's dtype and %s for out's "
                   "dtype.",
                   em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(outs[0]->dtype));
  for (int i = 0; positions && i < d->nout; i++) {
    int want = d->out_kind[i] == EM_RED_INDEX ? EM_I64 : self->dtype;
    if (outs[i]->dtype != want)
      return em_fail(EM_ERR_RUNTIME, "Expected out tensor to have dtype %s, but got %s instead",
                     em_dtype_type_name(want), em_dtype_type_name(outs[i]->dtype));
  }
  return EM_OK;
}

// The dtype to reduce in when only that of out= is known.
static int dtype_of_given(const em_red_desc *d, const em_tensor *self, const em_tensor *out) {
  if (d->dtype_rule != EM_RED_DTYPE_SUM && d->dtype_rule != EM_RED_DTYPE_FLOAT) return EM_DTYPE_NONE;
  if (d->out_kind[0] != EM_RED_REAL) return out->dtype;
  if (!em_dtype_is_float(out->dtype)) return EM_DTYPE_NONE;
  return em_dtype_is_complex(self->dtype) ? em_dtype_to_complex(out->dtype) : out->dtype;
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
                     strstr(d->name, "_mean") != NULL ? d->name : "std and var");
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
  if (given && dtype == EM_DTYPE_NONE) dtype = dtype_of_given(d, self, outs[0]);
  EM_PASS(check_flat(d, self));
  EM_PASS(plan_dtype(d, self, dtype, &reduced_dtype, &result));
  EM_PASS(reduced_dims(d, self, dims, &w.reduced));
  EM_PASS(check_ordered(d, self));
  EM_PASS(check_empty(d, self, dims, w.reduced));
  if (given) EM_PASS(check_given(d, self, outs));
  if (given && d->dtype_rule == EM_RED_DTYPE_BOOL) result = outs[0]->dtype;
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
