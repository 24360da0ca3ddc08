// number_parts.c: numbers taken apart and put together (complex, polar, frexp), and nextafter, which steps in the operands' own
// format: what a loop expression over one compute dtype cannot say.
#include <math.h>
#include <string.h>
#include "../../core/half.h"
#include "gen_ops.h"

#define GRAIN 32768

static em_status run(em_iter *it, em_iter_loop loop, void *context, em_tensor **outs) {
  EM_PASS(em_iter_build(it, EM_PROMO_NONE));
  em_status st = it->flags & EM_ITER_META ? EM_OK : em_iter_for_each(it, loop, context, GRAIN);
  if (st == EM_OK) return em_iter_finish(it, outs);
  em_iter_abandon(it);
  return st;
}
static uint32_t flags_of(const em_tensor *a, const em_tensor *b) {
  return a->device.type == EM_DEVICE_META || b->device.type == EM_DEVICE_META ? EM_ITER_META : 0;
}

// ---- complex numbers ------------------------------------------------------------------------------------------------

#define JOIN(name, T, re, im)                                                               \
  static em_status name(void *context, char **data, const int64_t *strides, int64_t n) {    \
    (void)context;                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T a = *(const T *)(data[1] + i * strides[1]), b = *(const T *)(data[2] + i * strides[2]); \
      T *out = (T *)(data[0] + i * strides[0]);                                             \
      out[0] = re;                                                                          \
      out[1] = im;                                                                          \
    }                                                                                       \
    return EM_OK;                                                                           \
  }
JOIN(complex_f32, float, a, b)
JOIN(complex_f64, double, a, b)
JOIN(polar_f32, float, a * cosf(b), a * sinf(b))
JOIN(polar_f64, double, a * cos(b), a * sin(b))

static em_status join(em_tensor *a, em_tensor *b, em_iter_loop f32, em_iter_loop f64, em_tensor **out) {
  if ((a->dtype != EM_F32 && a->dtype != EM_F64) || (b->dtype != EM_F32 && b->dtype != EM_F64))
    return em_fail(EM_ERR_RUNTIME, "Expected both inputs to be Half, Float or Double tensors but got %s and %s (Ember has no complex32)",
                   em_dtype_scalar_name(a->dtype), em_dtype_scalar_name(b->dtype));
  if (a->dtype != b->dtype)
    return em_fail(EM_ERR_RUNTIME, "Expected object of scalar type %s but got scalar type %s for second argument",
                   em_dtype_scalar_name(a->dtype), em_dtype_scalar_name(b->dtype));
  em_iter it;
  em_iter_init(&it, flags_of(a, b));
  em_iter_add_output(&it, NULL, a->dtype == EM_F32 ? EM_C64 : EM_C128);
  em_iter_add_input(&it, a);
  em_iter_add_input(&it, b);
  return run(&it, a->dtype == EM_F32 ? f32 : f64, NULL, out);
}
em_status n_cpu_complex(uint64_t ks, em_tensor *real, em_tensor *imag, em_tensor **out) {
  (void)ks;
  return join(real, imag, complex_f32, complex_f64, out);
}
em_status n_cpu_polar(uint64_t ks, em_tensor *abs, em_tensor *angle, em_tensor **out) {
  (void)ks;
  return join(abs, angle, polar_f32, polar_f64, out);
}

// ---- frexp ----------------------------------------------------------------------------------------------------------

static em_status frexp_loop(void *context, char **data, const int64_t *strides, int64_t n) {
  const int dtype = *(const int *)context;
  for (int64_t i = 0; i < n; i++) {
    double x, mantissa;
    int exponent = 0;
    em_cast_load(&x, EM_F64, data[2] + i * strides[2], dtype, 0, 1);
    mantissa = isfinite(x) ? frexp(x, &exponent) : x;
    em_cast_store(data[0] + i * strides[0], dtype, 0, &mantissa, EM_F64, 1);
    *(int32_t *)(data[1] + i * strides[1]) = exponent;
  }
  return EM_OK;
}
em_status n_cpu_frexp(uint64_t ks, em_tensor *self, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  if (!em_dtype_is_float(self->dtype)) return em_fail(EM_ERR_RUNTIME, "torch.frexp() only supports floating-point dtypes");
  em_iter it;
  em_iter_init(&it, flags_of(self, self));
  em_iter_add_output(&it, NULL, self->dtype);
  em_iter_add_output(&it, NULL, EM_I32);
  em_iter_add_input(&it, self);
  int dtype = self->dtype;
  em_tensor *outs[2] = {NULL, NULL};
  EM_PASS(run(&it, frexp_loop, &dtype, outs));
  *out0 = outs[0];
  *out1 = outs[1];
  return EM_OK;
}

// ---- nextafter ------------------------------------------------------------------------------------------------------

// One step of a 16-bit float towards b: its bits are ordered as a magnitude with a sign.
static uint16_t step16(uint16_t a, float x, float b) {
  if (x == 0) return (uint16_t)(b < 0 ? 0x8001 : 1);
  return (uint16_t)((x < b) == (x > 0) ? a + 1 : a - 1);
}
static em_status next_loop(void *context, char **data, const int64_t *strides, int64_t n) {
  const int dtype = *(const int *)context;
  for (int64_t i = 0; i < n; i++) {
    char *o = data[0] + i * strides[0];
    const char *a = data[1] + i * strides[1], *b = data[2] + i * strides[2];
    if (dtype == EM_F64) {
      *(double *)o = nextafter(*(const double *)a, *(const double *)b);
    } else if (dtype == EM_F32) {
      *(float *)o = nextafterf(*(const float *)a, *(const float *)b);
    } else {
      float x, y;
      em_cast_load(&x, EM_F32, a, dtype, 0, 1);
      em_cast_load(&y, EM_F32, b, dtype, 0, 1);
      if (x != x || y != y || x == y) {
        const float r = x != x ? x : y;
        em_cast_store(o, dtype, 0, &r, EM_F32, 1);
      } else {
        *(uint16_t *)o = step16(*(const uint16_t *)a, x, y);
      }
    }
  }
  return EM_OK;
}
static em_status as_dtype(em_tensor *t, int dtype, em_tensor **out) {
  if (t->dtype == dtype) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  em_tensor *made;
  EM_PASS(em_tensor_new(t->ndim, t->sizes, dtype, t->device, &made));
  em_status st = t->device.type == EM_DEVICE_META ? EM_OK : em_copy_into(made, t);
  if (st == EM_OK) *out = made;
  else em_tensor_release(made);
  return st;
}
em_status n_cpu_nextafter(uint64_t ks, em_tensor *self, em_tensor *other, em_tensor **out) {
  (void)ks;
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL;
  em_promote_state promote;
  em_promote_init(&promote);
  em_promote_add(&promote, self);
  em_promote_add(&promote, other);
  int dtype = em_promote_result(&promote);
  if (!em_dtype_is_float(dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"nextafter_cpu\" not implemented for '%s'", em_dtype_scalar_name(dtype));
  EM_TRY(as_dtype(self, dtype, &a));
  EM_TRY(as_dtype(other, dtype, &b));
  em_iter it;
  em_iter_init(&it, flags_of(a, b));
  em_iter_add_output(&it, NULL, dtype);
  em_iter_add_input(&it, a);
  em_iter_add_input(&it, b);
  EM_TRY(run(&it, next_loop, &dtype, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  return st;
}
