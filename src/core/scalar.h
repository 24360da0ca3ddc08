// scalar.h: a number without a tensor (a Scalar in schemas). Keeps the caller's full precision: it is converted once,
// to the compute dtype, before a loop.
#ifndef EMBER_CORE_SCALAR_H
#define EMBER_CORE_SCALAR_H
#include "complex_types.h"
#include "dtype.h"

static inline bool em_scalar_given(em_scalar s) { return s.kind != EM_SCALAR_NONE; }
static inline bool em_scalar_is_int_one(em_scalar s) { return s.kind == EM_SCALAR_INT && s.i == 1; }
static inline double em_scalar_to_double(em_scalar s) {  // real part of a complex one
  return s.kind == EM_SCALAR_DOUBLE ? s.d : s.kind == EM_SCALAR_COMPLEX ? s.c.re : (double)s.i;
}
static inline em_c128 em_scalar_to_c128(em_scalar s) {
  if (s.kind == EM_SCALAR_COMPLEX) return s.c;
  em_c128 c = {em_scalar_to_double(s), 0};
  return c;
}
EM_PRIV int64_t em_scalar_to_int(em_scalar s);  // truncates towards zero, saturates, nan -> INT64_MIN (as x86 does)
EM_PRIV bool em_scalar_equal(em_scalar a, double v);
// dtype a Scalar has in promotion: bool, int64, the default float dtype or its complex.
EM_PRIV int em_scalar_dtype(em_scalar s);
// Writes the scalar as one element of `dtype` at p, with PyTorch's checked conversion: "value cannot be converted to
// type uint8_t without overflow" when it does not fit (EM_ERR_RUNTIME).
EM_PRIV em_status em_scalar_store(em_scalar s, int dtype, void *p);
// As a cast would: what is too large for a float or complex dtype becomes infinite.
EM_PRIV em_status em_scalar_store_rounded(em_scalar s, int dtype, void *p);
EM_PRIV em_scalar em_scalar_load(int dtype, const void *p);
EM_PRIV em_scalar em_scalar_neg(em_scalar s);
EM_PRIV em_scalar em_scalar_mul(em_scalar a, em_scalar b);
EM_PRIV em_scalar em_scalar_conj(em_scalar s);
#endif
