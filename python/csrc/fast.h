// fast.h: calls that skip the parser: positional plain tensors, operators of a few C signatures. The operator's typed
// function is called directly, as em_call_<op> does.
#ifndef EMBER_CSRC_FAST_H
#define EMBER_CSRC_FAST_H
#include "bridge.h"

enum { EM_FAST_NONE, EM_FAST_T, EM_FAST_T_DTYPE, EM_FAST_TT, EM_FAST_TT_ALPHA };  // | EM_FAST_INPLACE
#define EM_FAST_INPLACE 8

typedef em_status (*em_fn_t)(uint64_t, em_tensor *, em_tensor **);
typedef em_status (*em_fn_t_dtype)(uint64_t, em_tensor *, int, em_tensor **);
typedef em_status (*em_fn_tt)(uint64_t, em_tensor *, em_tensor *, em_tensor **);
typedef em_status (*em_fn_tt_alpha)(uint64_t, em_tensor *, em_tensor *, em_scalar, em_tensor **);
typedef em_status (*em_fn_t_inplace)(uint64_t, em_tensor *);
typedef em_status (*em_fn_tt_inplace)(uint64_t, em_tensor *, em_tensor *);
typedef em_status (*em_fn_tt_alpha_inplace)(uint64_t, em_tensor *, em_tensor *, em_scalar);

// A tensor that no __torch_function__ wants to hear about (modes are asked separately).
static inline bool em_py_is_plain(PyObject *o) {
  return (Py_TYPE(o)->tp_flags & (EM_TP_TENSOR | EM_TP_FUNCTION)) == EM_TP_TENSOR;
}
static inline bool em_py_no_modes(void) { return EM_LIKELY(em_priv_py_tls.function_modes == 0); }

// What the fast path of an operator looks like, EM_FAST_NONE if it has none.
uint8_t em_py_fast_kind(const em_operator *op);

static inline PyObject *em_py_finish_fast(const em_operator *op, em_status st, em_tensor *out) {
  if (EM_LIKELY(st == EM_OK)) return em_py_wrap(out);
  return em_py_raise(em_fail_operator(st, op->full));
}

static inline PyObject *em_py_run_unary(const em_operator *op, uint8_t kind, PyObject *self) {
  em_tensor *a = em_py_t(self), *out = NULL;
  uint64_t ks = em_priv_keys(op, a->keys);
  if (EM_UNLIKELY(ks == 0)) return em_py_raise(em_priv_no_kernel(op, a->keys));
  em_any_fn fn = op->slots[em_priv_top_key(ks)].fn;
  em_status st;
  switch (kind) {
    case EM_FAST_T: st = ((em_fn_t)fn)(ks, a, &out); break;
    case EM_FAST_T_DTYPE: st = ((em_fn_t_dtype)fn)(ks, a, EM_DTYPE_NONE, &out); break;
    default:
      st = ((em_fn_t_inplace)fn)(ks, a);
      return EM_LIKELY(st == EM_OK) ? Py_NewRef(self) : em_py_raise(em_fail_operator(st, op->full));
  }
  return em_py_finish_fast(op, st, out);
}

static inline PyObject *em_py_run_tensors(const em_operator *op, uint8_t kind, em_tensor *a, em_tensor *b) {
  em_tensor *out = NULL;
  uint64_t keys = a->keys | b->keys, ks = em_priv_keys(op, keys);
  if (EM_UNLIKELY(ks == 0)) return em_py_raise(em_priv_no_kernel(op, keys));
  em_any_fn fn = op->slots[em_priv_top_key(ks)].fn;
  em_status st = kind == EM_FAST_TT ? ((em_fn_tt)fn)(ks, a, b, &out)
                                    : ((em_fn_tt_alpha)fn)(ks, a, b, em_scalar_int(1), &out);
  return em_py_finish_fast(op, st, out);
}
static inline PyObject *em_py_run_inplace(const em_operator *op, uint8_t kind, PyObject *self, em_tensor *b) {
  em_tensor *a = em_py_t(self);
  uint64_t keys = a->keys | b->keys, ks = em_priv_keys(op, keys);
  if (EM_UNLIKELY(ks == 0)) return em_py_raise(em_priv_no_kernel(op, keys));
  em_any_fn fn = op->slots[em_priv_top_key(ks)].fn;
  em_status st = kind == (EM_FAST_TT | EM_FAST_INPLACE) ? ((em_fn_tt_inplace)fn)(ks, a, b)
                                                        : ((em_fn_tt_alpha_inplace)fn)(ks, a, b, em_scalar_int(1));
  return EM_LIKELY(st == EM_OK) ? Py_NewRef(self) : em_py_raise(em_fail_operator(st, op->full));
}
static inline PyObject *em_py_run_binary(const em_operator *op, uint8_t kind, PyObject *a, PyObject *b) {
  return kind & EM_FAST_INPLACE ? em_py_run_inplace(op, kind, a, em_py_t(b))
                                : em_py_run_tensors(op, kind, em_py_t(a), em_py_t(b));
}
#endif
