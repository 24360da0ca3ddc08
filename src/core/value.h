// value.h: the boxed value: one argument or result of an operator, as the boxed calling convention passes it.
// Ownership: an argument stack is borrowed; results are new references that the receiver clears with em_value_clear.
#ifndef EMBER_CORE_VALUE_H
#define EMBER_CORE_VALUE_H
#include "tensor.h"

typedef enum em_tag {
  EM_TAG_NONE,       // an optional that was not given, of whatever type
  EM_TAG_BOOL,       // i
  EM_TAG_INT,        // i
  EM_TAG_DOUBLE,     // d
  EM_TAG_COMPLEX,    // c
  EM_TAG_SCALAR,     // scalar (a Scalar argument keeps its kind)
  EM_TAG_TENSOR,     // tensor
  EM_TAG_TENSORS,    // list.tensors: Tensor[] (entries may be NULL for Tensor?[])
  EM_TAG_INTS,       // list.ints
  EM_TAG_DOUBLES,    // list.doubles
  EM_TAG_BOOLS,      // list.bools (uint8_t each)
  EM_TAG_SCALARS,    // list.scalars
  EM_TAG_DTYPE,      // i
  EM_TAG_LAYOUT,     // i, only strided (0) exists
  EM_TAG_DEVICE,     // device
  EM_TAG_MEMORY_FORMAT,  // i, em_memory_format
  EM_TAG_GENERATOR,  // generator
  EM_TAG_STRING,     // string
  EM_TAG_OPAQUE,     // ptr with a release function: an object of the host language
} em_tag;

// A result list (em_tensor_list): array of new references, made by em_tensor_list_new, freed with em_tensor_list_clear.
EM_PRIV em_status em_tensor_list_new(int64_t n, em_tensor_list *out);  // entries NULL
EM_PRIV void em_tensor_list_clear(em_tensor_list *l);

typedef struct em_value {
  union {
    int64_t i;
    double d;
    em_c128 c;
    em_scalar scalar;
    em_tensor *tensor;
    em_device device;
    struct em_generator *generator;
    const char *string;
    struct {
      union {
        const void *p;
        em_tensor *const *tensors;
        const int64_t *ints;
        const double *doubles;
        const uint8_t *bools;
        const em_scalar *scalars;
      };
      int64_t n;
    } list;
    struct { void *ptr; void (*release)(void *); } opaque;
  };
  uint8_t tag;    // em_tag
  uint8_t owned;  // list memory, string or references belong to this value (em_value_clear frees them)
} em_value;

static inline em_value em_value_none(void) { em_value v = {.tag = EM_TAG_NONE}; return v; }
static inline em_value em_value_int(int64_t i) { em_value v = {.i = i, .tag = EM_TAG_INT}; return v; }
static inline em_value em_value_bool(bool b) { em_value v = {.i = b, .tag = EM_TAG_BOOL}; return v; }
static inline em_value em_value_double(double d) { em_value v = {.d = d, .tag = EM_TAG_DOUBLE}; return v; }
static inline em_value em_value_scalar(em_scalar s) {
  em_value v = {.scalar = s, .tag = s.kind == EM_SCALAR_NONE ? EM_TAG_NONE : EM_TAG_SCALAR};
  return v;
}
// borrowed
static inline em_value em_value_tensor(em_tensor *t) {
  em_value v = {.tensor = t, .tag = t == NULL ? EM_TAG_NONE : EM_TAG_TENSOR};
  return v;
}
static inline em_value em_value_tensor_steal(em_tensor *t) {
  em_value v = em_value_tensor(t);
  v.owned = t != NULL;
  return v;
}
static inline em_value em_value_ints(em_ints l) {
  em_value v = {.tag = l.n < 0 ? EM_TAG_NONE : EM_TAG_INTS};
  v.list.ints = l.p;
  v.list.n = l.n;
  return v;
}
static inline em_value em_value_tensors(em_tensors l) {
  em_value v = {.tag = EM_TAG_TENSORS};
  v.list.tensors = l.p;
  v.list.n = l.n;
  return v;
}
// Deep copy that owns everything (tensors retained).
EM_PRIV em_status em_value_copy(const em_value *v, em_value *out);
EM_PRIV void em_value_clear(em_value *v);
#endif
