// scalar.c: numbers without tensors, and their checked way into an element.
#include "scalar.h"
#include <math.h>
#include <string.h>
#include "half.h"

int64_t em_scalar_to_int(em_scalar s) {
  if (s.kind == EM_SCALAR_INT || s.kind == EM_SCALAR_BOOL) return s.i;
  double d = em_scalar_to_double(s);
  return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : INT64_MIN;
}
bool em_scalar_equal(em_scalar a, double v) {
  if (a.kind == EM_SCALAR_COMPLEX) return a.c.re == v && a.c.im == 0;
  return a.kind != EM_SCALAR_NONE && em_scalar_to_double(a) == v;
}
int em_scalar_dtype(em_scalar s) {
  switch (s.kind) {
    case EM_SCALAR_BOOL: return EM_BOOL;
    case EM_SCALAR_DOUBLE: return em_dtype_default();
    case EM_SCALAR_COMPLEX: return em_dtype_to_complex(em_dtype_default());
    default: return EM_I64;
  }
}

static em_status fail_range(int dtype) {
  static const char *const names[EM_NUM_DTYPES] = {[EM_U8] = "uint8_t",
                                                   [EM_I8] = "int8_t",
                                                   [EM_I16] = "int16_t",
                                                   [EM_I32] = "int",
                                                   [EM_I64] = "int64_t",
                                                   [EM_F16] = "c10::Half",
                                                   [EM_F32] = "float",
                                                   [EM_F64] = "double",
                                                   [EM_C64] = "c10::complex<float>",
                                                   [EM_C128] = "c10::complex<double>",
                                                   [EM_BOOL] = "bool",
                                                   [EM_BF16] = "c10::BFloat16"};
  return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type %s without overflow", names[dtype]);
}

static em_status store_int(em_scalar s, int dtype, void *p) {
  static const int64_t low[EM_NUM_DTYPES] = {
      [EM_U8] = 0, [EM_I8] = INT8_MIN, [EM_I16] = INT16_MIN, [EM_I32] = INT32_MIN};
  static const int64_t high[EM_NUM_DTYPES] = {
      [EM_U8] = UINT8_MAX, [EM_I8] = INT8_MAX, [EM_I16] = INT16_MAX, [EM_I32] = INT32_MAX};
  int64_t v;
  if (s.kind == EM_SCALAR_COMPLEX && s.c.im != 0) return fail_range(dtype);
  if (s.kind == EM_SCALAR_DOUBLE || s.kind == EM_SCALAR_COMPLEX) {
    double d = em_scalar_to_double(s);
    if (!(d > -0x1p63 - 1 && d < 0x1p63)) return fail_range(dtype);
    v = (int64_t)d;
  } else {
    v = s.i;
  }
  // An unsigned element takes the negatives that wrap onto it (torch: full((1,), -1, dtype=uint8) is 255).
  if (dtype != EM_I64 && (v > high[dtype] || (dtype == EM_U8 ? v < -255 : v < low[dtype]))) return fail_range(dtype);
  switch (dtype) {
    case EM_U8: *(uint8_t *)p = (uint8_t)v; break;
    case EM_I8: *(int8_t *)p = (int8_t)v; break;
    case EM_I16: *(int16_t *)p = (int16_t)v; break;
    case EM_I32: *(int32_t *)p = (int32_t)v; break;
    default: memcpy(p, &v, sizeof v);
  }
  return EM_OK;
}

// A float or complex element; what is too large becomes infinite.
static em_status store_rounded(em_scalar s, int dtype, void *p) {
  const double d = em_scalar_to_double(s);
  switch (dtype) {
    case EM_F16: *(uint16_t *)p = em_f32_to_f16((float)d); break;
    case EM_BF16: *(uint16_t *)p = em_f32_to_bf16((float)d); break;
    case EM_F32: *(float *)p = s.kind == EM_SCALAR_INT ? (float)s.i : (float)d; break;
    case EM_F64: *(double *)p = d; break;
    case EM_C64: {
      em_c128 c = em_scalar_to_c128(s);
      *(em_c64 *)p = (em_c64){(float)c.re, (float)c.im};
      break;
    }
    default: *(em_c128 *)p = em_scalar_to_c128(s);
  }
  return EM_OK;
}

em_status em_scalar_store(em_scalar s, int dtype, void *p) {
  if (dtype == EM_BOOL) {
    *(uint8_t *)p = s.kind == EM_SCALAR_COMPLEX  ? s.c.re != 0 || s.c.im != 0
                    : s.kind == EM_SCALAR_DOUBLE ? s.d != 0
                                                 : s.i != 0;
    return EM_OK;
  }
  if (em_dtype_class_of(dtype) == EM_CLASS_INT) return store_int(s, dtype, p);
  if (s.kind == EM_SCALAR_COMPLEX && s.c.im != 0 && em_dtype_is_float(dtype)) return fail_range(dtype);
  double d = em_scalar_to_double(s);
  static const double limit[EM_NUM_DTYPES] = {
      [EM_F16] = 65504.0, [EM_BF16] = 0x1.fep127, [EM_F32] = 0x1.fffffep127, [EM_C64] = 0x1.fffffep127};
  if (limit[dtype] != 0 && isfinite(d) && fabs(d) > limit[dtype]) return fail_range(dtype);
  return store_rounded(s, dtype, p);
}
em_status em_scalar_store_rounded(em_scalar s, int dtype, void *p) {
  if (em_dtype_is_integral(dtype)) return em_scalar_store(s, dtype, p);
  if (s.kind == EM_SCALAR_COMPLEX && s.c.im != 0 && em_dtype_is_float(dtype)) return fail_range(dtype);
  return store_rounded(s, dtype, p);
}

em_scalar em_scalar_load(int dtype, const void *p) {
  switch (dtype) {
    case EM_U8: return em_scalar_int(*(const uint8_t *)p);
    case EM_I8: return em_scalar_int(*(const int8_t *)p);
    case EM_I16: return em_scalar_int(*(const int16_t *)p);
    case EM_I32: return em_scalar_int(*(const int32_t *)p);
    case EM_I64: return em_scalar_int(*(const int64_t *)p);
    case EM_F16: return em_scalar_double(em_f16_to_f32(*(const uint16_t *)p));
    case EM_BF16: return em_scalar_double(em_bf16_to_f32(*(const uint16_t *)p));
    case EM_F32: return em_scalar_double(*(const float *)p);
    case EM_F64: return em_scalar_double(*(const double *)p);
    case EM_C64: return em_scalar_complex(((const em_c64 *)p)->re, ((const em_c64 *)p)->im);
    case EM_C128: return em_scalar_complex(((const em_c128 *)p)->re, ((const em_c128 *)p)->im);
    default: return em_scalar_bool(*(const uint8_t *)p != 0);
  }
}

em_scalar em_scalar_neg(em_scalar s) {
  switch (s.kind) {
    case EM_SCALAR_DOUBLE: return em_scalar_double(-s.d);
    case EM_SCALAR_COMPLEX: return em_scalar_complex(-s.c.re, -s.c.im);
    default: return em_scalar_int((int64_t)(0 - (uint64_t)s.i));
  }
}
em_scalar em_scalar_mul(em_scalar a, em_scalar b) {
  if (a.kind == EM_SCALAR_COMPLEX || b.kind == EM_SCALAR_COMPLEX) {
    em_c128 x = em_scalar_to_c128(a), y = em_scalar_to_c128(b);
    return em_scalar_complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
  }
  if (a.kind == EM_SCALAR_DOUBLE || b.kind == EM_SCALAR_DOUBLE)
    return em_scalar_double(em_scalar_to_double(a) * em_scalar_to_double(b));
  return em_scalar_int((int64_t)((uint64_t)a.i * (uint64_t)b.i));
}
em_scalar em_scalar_conj(em_scalar s) { return s.kind == EM_SCALAR_COMPLEX ? em_scalar_complex(s.c.re, -s.c.im) : s; }
