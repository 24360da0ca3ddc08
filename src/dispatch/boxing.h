// boxing.h: single values across the two calling conventions. Included by generated adapters.
#ifndef EMBER_DISPATCH_BOXING_H
#define EMBER_DISPATCH_BOXING_H
#include "operator.h"

static inline em_value em_value_opt_int(em_opt_int v) { return v.has ? em_value_int(v.v) : em_value_none(); }
static inline em_value em_value_opt_double(em_opt_double v) { return v.has ? em_value_double(v.v) : em_value_none(); }
static inline em_value em_value_opt_bool(em_opt_bool v) { return v >= 0 ? em_value_bool(v) : em_value_none(); }
static inline em_value em_value_doubles(em_doubles l) {
  em_value v = {.tag = l.n < 0 ? EM_TAG_NONE : EM_TAG_DOUBLES};
  v.list.doubles = l.p;
  v.list.n = l.n;
  return v;
}
static inline em_value em_value_bools(em_bools l) {
  em_value v = {.tag = l.n < 0 ? EM_TAG_NONE : EM_TAG_BOOLS};
  v.list.bools = l.p;
  v.list.n = l.n;
  return v;
}
static inline em_value em_value_scalars(em_scalars l) {
  em_value v = {.tag = EM_TAG_SCALARS};
  v.list.scalars = l.p;
  v.list.n = l.n;
  return v;
}
static inline em_value em_value_device(em_device d) {
  em_value v = {.device = d, .tag = d.type < 0 ? EM_TAG_NONE : EM_TAG_DEVICE};
  return v;
}
static inline em_value em_value_generator(struct em_generator *g) {
  em_value v = {.generator = g, .tag = g == NULL ? EM_TAG_NONE : EM_TAG_GENERATOR};
  return v;
}
static inline em_value em_value_enum(int tag, int i) {
  em_value v = {.i = i, .tag = (uint8_t)(i < 0 ? EM_TAG_NONE : tag)};
  return v;
}
// Results: these own.
static inline em_value em_value_tensor_list_steal(em_tensor_list l) {
  em_value v = {.tag = EM_TAG_TENSORS, .owned = 1};
  v.list.tensors = l.p;
  v.list.n = l.n;
  return v;
}

// A Scalar-like tag (int, double, bool given where a number of another kind is wanted) is converted here, so that boxed
// callers may be as loose as the schema language is.
static inline em_scalar em_unbox_scalar(const em_value *v) {
  switch (v->tag) {
    case EM_TAG_SCALAR: return v->scalar;
    case EM_TAG_BOOL: return em_scalar_bool(v->i != 0);
    case EM_TAG_INT: return em_scalar_int(v->i);
    case EM_TAG_DOUBLE: return em_scalar_double(v->d);
    case EM_TAG_COMPLEX: return em_scalar_complex(v->c.re, v->c.im);
    default: return em_scalar_none();
  }
}
static inline em_tensor *em_unbox_tensor(const em_value *v) { return v->tag == EM_TAG_TENSOR ? v->tensor : NULL; }
static inline em_tensors em_unbox_tensors(const em_value *v) {
  em_tensors l = {v->tag == EM_TAG_TENSORS ? v->list.tensors : NULL, v->tag == EM_TAG_TENSORS ? v->list.n : 0};
  return l;
}
static inline em_ints em_unbox_ints(const em_value *v) {
  em_ints l = {v->tag == EM_TAG_INTS ? v->list.ints : NULL, v->tag == EM_TAG_INTS ? v->list.n : -1};
  return l;
}
static inline em_doubles em_unbox_doubles(const em_value *v) {
  em_doubles l = {v->tag == EM_TAG_DOUBLES ? v->list.doubles : NULL, v->tag == EM_TAG_DOUBLES ? v->list.n : -1};
  return l;
}
static inline em_bools em_unbox_bools(const em_value *v) {
  em_bools l = {v->tag == EM_TAG_BOOLS ? v->list.bools : NULL, v->tag == EM_TAG_BOOLS ? v->list.n : -1};
  return l;
}
static inline em_scalars em_unbox_scalars(const em_value *v) {
  em_scalars l = {v->tag == EM_TAG_SCALARS ? v->list.scalars : NULL, v->tag == EM_TAG_SCALARS ? v->list.n : 0};
  return l;
}
static inline int64_t em_unbox_int(const em_value *v) {
  return v->tag == EM_TAG_SCALAR ? em_scalar_to_int(v->scalar) : v->i;
}
static inline em_opt_int em_unbox_opt_int(const em_value *v) {
  return v->tag == EM_TAG_NONE ? em_no_int() : em_some_int(em_unbox_int(v));
}
static inline double em_unbox_double(const em_value *v) {
  return v->tag == EM_TAG_DOUBLE ? v->d : em_scalar_to_double(em_unbox_scalar(v));
}
static inline em_opt_double em_unbox_opt_double(const em_value *v) {
  return v->tag == EM_TAG_NONE ? em_no_double() : em_some_double(em_unbox_double(v));
}
static inline bool em_unbox_bool(const em_value *v) { return v->tag != EM_TAG_NONE && v->i != 0; }
static inline em_opt_bool em_unbox_opt_bool(const em_value *v) {
  return (em_opt_bool)(v->tag == EM_TAG_NONE ? -1 : v->i != 0);
}
static inline const char *em_unbox_string(const em_value *v) { return v->tag == EM_TAG_STRING ? v->string : NULL; }
static inline em_device em_unbox_device(const em_value *v) {
  return v->tag == EM_TAG_DEVICE ? v->device : EM_DEVICE_NONE;
}
static inline struct em_generator *em_unbox_generator(const em_value *v) {
  return v->tag == EM_TAG_GENERATOR ? v->generator : NULL;
}
static inline int em_unbox_enum(const em_value *v) { return v->tag == EM_TAG_NONE ? -1 : (int)v->i; }

// Keys of lists and of factories' device arguments.
EM_PRIV uint64_t em_priv_list_keys(em_tensors l);
// Is it no list, or does it lack an entry that must be there?
static inline bool em_priv_list_broken(em_tensors l, bool gaps) {
  if (EM_UNLIKELY(l.n < 0 || (l.p == NULL && l.n > 0))) return true;
  for (int64_t i = 0; !gaps && i < l.n; i++)
    if (EM_UNLIKELY(l.p[i] == NULL)) return true;
  return false;
}
static inline uint64_t em_priv_device_keys(em_device d) {
  return EM_KEYBIT(em_device_key(d.type < 0 ? (em_device){EM_DEVICE_CPU, -1} : d));
}
static inline uint64_t em_priv_tensor_keys(const em_tensor *t) { return t == NULL ? 0 : t->keys; }
// The adapter's half that is the same for all: runs the boxed kernel of the top key.
EM_PRIV em_status em_priv_run_boxed(const em_operator *op, uint64_t ks, const em_value *args, em_value *rets);
#endif
