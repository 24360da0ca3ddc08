// dtype.c: questions about element types. The tables themselves are generated from ops/dtypes.yaml.
#include "dtype.h"
#include <stdatomic.h>

static _Atomic int default_dtype = EM_F32;

int em_dtype_to_real(int d) { return d == EM_C64 ? EM_F32 : d == EM_C128 ? EM_F64 : d; }
int em_dtype_to_complex(int d) { return d == EM_F64 || d == EM_C128 ? EM_C128 : EM_C64; }
bool em_dtype_can_cast(int from, int to) {
  if (em_dtype_is_complex(from) && !em_dtype_is_complex(to)) return false;
  if (em_dtype_is_float(from) && em_dtype_is_integral(to)) return false;
  return !(from != EM_BOOL && to == EM_BOOL);
}
const char *em_dtype_scalar_name(int d) {
  static const char *const names[EM_NUM_DTYPES] = {[EM_U8] = "Byte",          [EM_I8] = "Char",
                                                   [EM_I16] = "Short",        [EM_I32] = "Int",
                                                   [EM_I64] = "Long",         [EM_F16] = "Half",
                                                   [EM_F32] = "Float",        [EM_F64] = "Double",
                                                   [EM_C64] = "ComplexFloat", [EM_C128] = "ComplexDouble",
                                                   [EM_BOOL] = "Bool",        [EM_BF16] = "BFloat16"};
  return d >= 0 && d < EM_NUM_DTYPES ? names[d] : "Undefined";
}
const char *em_dtype_type_name(int d) {
  static const char *const names[EM_NUM_DTYPES] = {[EM_U8] = "unsigned char",
                                                   [EM_I8] = "signed char",
                                                   [EM_I16] = "short int",
                                                   [EM_I32] = "int",
                                                   [EM_I64] = "long int",
                                                   [EM_F16] = "c10::Half",
                                                   [EM_F32] = "float",
                                                   [EM_F64] = "double",
                                                   [EM_C64] = "c10::complex<float>",
                                                   [EM_C128] = "c10::complex<double>",
                                                   [EM_BOOL] = "bool",
                                                   [EM_BF16] = "c10::BFloat16"};
  return names[d];
}
int em_dtype_default(void) { return atomic_load_explicit(&default_dtype, memory_order_relaxed); }
em_status em_dtype_set_default(int d) {
  if (!em_dtype_is_float(d)) return em_fail(EM_ERR_TYPE, "only floating-point types are supported as the default type");
  atomic_store(&default_dtype, d);
  return EM_OK;
}
