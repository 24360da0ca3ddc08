// grad_scale.c: gradients divided by the loss's scale and looked through for infinities in one pass, and the next scale.
#include <math.h>
#include "../../core/iterator.h"
#include "../../core/shape.h"
#include "../../core/threads.h"
#include "gen_ops.h"

enum { GRAIN = 32768 };

static em_status check_one(const em_tensor *t, const char *name, int dtype) {
  if (t->numel != 1) return em_fail(EM_ERR_RUNTIME, "%s must be a 1-element tensor.", name);
  if (t->dtype != dtype)
    return em_fail(EM_ERR_RUNTIME, "%s must be %s tensor.", name, dtype == EM_F32 ? "a float" : "an int");
  if (t->device.type != EM_DEVICE_CPU)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "%s must be on the CPU", name);
  return EM_OK;
}

typedef struct unscale {
  void *data;
  float factor;
  _Atomic int found;
} unscale;

// x - x is 0 for numbers and NaN for infinities and NaN.
#define LOOP(T)                                                        \
  static em_status run_##T(void *context, int64_t begin, int64_t end) { \
    unscale *u = context;                                              \
    T *x = u->data, factor = (T)u->factor;                             \
    int odd = 0;                                                       \
    _Pragma("omp simd reduction(|:odd)")                               \
    for (int64_t i = begin; i < end; i++) {                            \
      odd |= x[i] - x[i] != 0;                                         \
      x[i] = x[i] * factor;                                            \
    }                                                                  \
    if (odd) atomic_store(&u->found, 1);                               \
    return EM_OK;                                                      \
  }
LOOP(float)
LOOP(double)

static em_status unscale_one(em_tensor *t, unscale *u) {
  em_status st = EM_OK;
  int compute = em_priv_dtypes[t->dtype].compute;
  em_tensor *dense = NULL;
  if (t->dtype == compute && em_tensor_is_contiguous(t)) {
    dense = em_tensor_retain(t);
  } else {
    EM_TRY(em_tensor_new(t->ndim, t->sizes, compute, t->device, &dense));
    EM_TRY(em_copy_into(dense, t));
  }
  u->data = em_tensor_data(dense);
  EM_TRY(em_threads_for(t->numel, GRAIN, compute == EM_F64 ? run_double : run_float, u));
  if (dense != t && u->factor != 1) EM_TRY(em_copy_into(t, dense));
  em_version_bump(t->version);
fail:
  em_tensor_release(dense);
  return st;
}

em_status c_amp_unscale_(em_tensors self, em_tensor *found_inf, em_tensor *inv_scale) {
  EM_PASS(check_one(inv_scale, "inv_scale", EM_F32));
  EM_PASS(check_one(found_inf, "found_inf", EM_F32));
  for (int64_t i = 0; i < self.n; i++) {
    const em_tensor *t = self.p[i];
    int compute = em_priv_dtypes[t->dtype].compute;
    if (compute != EM_F32 && compute != EM_F64)
      return em_fail(EM_ERR_NOT_IMPLEMENTED,
                     "\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '%s'",
                     em_dtype_scalar_name(t->dtype));
    EM_PASS(em_shape_assert_no_internal_overlap(t));
  }
  unscale u = {.factor = *(const float *)em_tensor_data(inv_scale)};
  for (int64_t i = 0; i < self.n; i++)
    if (self.p[i]->device.type == EM_DEVICE_CPU && self.p[i]->numel > 0) EM_PASS(unscale_one(self.p[i], &u));
  if (u.found) *(float *)em_tensor_data(found_inf) = 1;
  em_version_bump(found_inf->version);
  return EM_OK;
}

em_status c_amp_update_scale_(em_tensor *self, em_tensor *growth_tracker, em_tensor *found_inf, double growth_factor,
                              double backoff_factor, int64_t growth_interval) {
  EM_PASS(check_one(growth_tracker, "growth_tracker", EM_I32));
  EM_PASS(check_one(self, "current_scale", EM_F32));
  EM_PASS(check_one(found_inf, "found_inf", EM_F32));
  float *scale = em_tensor_data(self);
  int32_t *tracker = em_tensor_data(growth_tracker);
  if (*(const float *)em_tensor_data(found_inf) != 0) {
    *scale = (float)((double)*scale * backoff_factor);
    *tracker = 0;
  } else if ((int64_t)*tracker + 1 == growth_interval) {
    float grown = (float)((double)*scale * growth_factor);
    if (isfinite(grown)) *scale = grown;  // else it stays: a product with infinity says nothing
    *tracker = 0;
  } else {
    *tracker = (int32_t)((uint32_t)*tracker + 1);
  }
  em_version_bump(self->version);
  em_version_bump(growth_tracker->version);
  return EM_OK;
}
