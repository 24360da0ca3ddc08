/* ember/value.h: the boxed value: one argument or result of an operator, as kernels of your own get and give them. */
#ifndef EMBER_VALUE_H
#define EMBER_VALUE_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum em_tag {
  EM_TAG_NONE,          /* an optional that was not given, of whatever type */
  EM_TAG_BOOL,          /* i */
  EM_TAG_INT,           /* i */
  EM_TAG_DOUBLE,        /* d */
  EM_TAG_COMPLEX,       /* c */
  EM_TAG_SCALAR,        /* scalar: a Scalar argument keeps its kind */
  EM_TAG_TENSOR,        /* tensor */
  EM_TAG_TENSORS,       /* list.tensors: Tensor[]; entries may be NULL for Tensor?[] */
  EM_TAG_INTS,          /* list.ints */
  EM_TAG_DOUBLES,       /* list.doubles */
  EM_TAG_BOOLS,         /* list.bools, uint8_t each */
  EM_TAG_SCALARS,       /* list.scalars */
  EM_TAG_DTYPE,         /* i */
  EM_TAG_LAYOUT,        /* i; only strided (0) exists */
  EM_TAG_DEVICE,        /* device */
  EM_TAG_MEMORY_FORMAT, /* i, em_memory_format */
  EM_TAG_GENERATOR,     /* generator */
  EM_TAG_STRING,        /* string */
  EM_TAG_OPAQUE         /* opaque: an object of the host language */
} em_tag;

typedef struct em_value {
  union {
    int64_t i;
    double d;
    em_c128 c;
    em_scalar scalar;
    em_tensor *tensor;
    em_device device;
    em_generator *generator;
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
  uint8_t tag;   /* em_tag */
  uint8_t owned; /* list memory, string or references belong to this value: em_value_clear frees them */
} em_value;

static inline em_value em_value_none(void) {
  em_value v = {{0}, EM_TAG_NONE, 0};
  return v;
}
static inline em_value em_value_int(int64_t i) {
  em_value v = {{i}, EM_TAG_INT, 0};
  return v;
}
static inline em_value em_value_bool(bool b) {
  em_value v = {{b}, EM_TAG_BOOL, 0};
  return v;
}
static inline em_value em_value_double(double d) {
  em_value v = {{0}, EM_TAG_DOUBLE, 0};
  v.d = d;
  return v;
}
static inline em_value em_value_scalar(em_scalar s) {
  em_value v = {{0}, EM_TAG_SCALAR, 0};
  v.scalar = s;
  if (s.kind == EM_SCALAR_NONE) v.tag = EM_TAG_NONE;
  return v;
}
/* A borrowed tensor; NULL is "not given". */
static inline em_value em_value_tensor(em_tensor *t) {
  em_value v = {{0}, EM_TAG_TENSOR, 0};
  v.tensor = t;
  if (t == NULL) v.tag = EM_TAG_NONE;
  return v;
}
/* A result: takes over the caller's reference. */
static inline em_value em_value_tensor_steal(em_tensor *t) {
  em_value v = em_value_tensor(t);
  v.owned = t != NULL;
  return v;
}
static inline em_value em_value_ints(em_ints l) {
  em_value v = {{0}, EM_TAG_INTS, 0};
  v.list.ints = l.p;
  v.list.n = l.n;
  if (l.n < 0) v.tag = EM_TAG_NONE;
  return v;
}
static inline em_value em_value_tensors(em_tensors l) {
  em_value v = {{0}, EM_TAG_TENSORS, 0};
  v.list.tensors = l.p;
  v.list.n = l.n;
  return v;
}
/* The text is borrowed; NULL is "not given". */
static inline em_value em_value_string(const char *text) {
  em_value v = {{0}, EM_TAG_STRING, 0};
  v.string = text;
  if (text == NULL) v.tag = EM_TAG_NONE;
  return v;
}

/* Frees what an owning value holds, and makes it EM_TAG_NONE. */
EM_API void em_value_clear(em_value *v);
/* A deep copy that owns everything. */
EM_API EM_MUST_CHECK em_status em_value_copy(const em_value *v, em_value *out);

#ifdef __cplusplus
}
#endif
#endif
