// promote.c: the common dtype of several operands. Dimensioned tensors decide; 0-dim tensors, then Python numbers, only
// when they are of a higher class (bool < int < float < complex) than everything before them.
#include "iterator.h"

static int promote_known(int a, int b) {
  if (a == EM_DTYPE_NONE) return b;
  if (b == EM_DTYPE_NONE) return a;
  return em_dtype_promote(a, b);
}

void em_promote_init(em_promote_state *s) { s->dim_result = s->zero_result = s->wrapped_result = EM_DTYPE_NONE; }

void em_promote_add(em_promote_state *s, const em_tensor *t) {
  int d = t->dtype;
  if (t->flags & EM_T_WRAPPED) {
    // a Python float is "some float": it takes the default's precision
    if (em_dtype_is_complex(d)) d = em_dtype_to_complex(em_dtype_default());
    else if (em_dtype_is_float(d)) d = em_dtype_default();
  }
  if (t->ndim > 0) s->dim_result = promote_known(s->dim_result, d);
  else if (t->flags & EM_T_WRAPPED) s->wrapped_result = promote_known(s->wrapped_result, d);
  else s->zero_result = promote_known(s->zero_result, d);
}

void em_promote_add_scalar(em_promote_state *s, em_scalar v) {
  s->wrapped_result = promote_known(s->wrapped_result, em_scalar_dtype(v));
}

static int combine(int higher, int lower) {
  if (higher == EM_DTYPE_NONE || lower == EM_DTYPE_NONE) return higher == EM_DTYPE_NONE ? lower : higher;
  if (em_dtype_is_complex(higher)) return higher;
  if (em_dtype_is_float(higher)) return em_dtype_is_complex(lower) ? em_dtype_to_complex(higher) : higher;
  if (higher == EM_BOOL || em_dtype_class_of(lower) >= EM_CLASS_FLOAT) return em_dtype_promote(higher, lower);
  return higher;
}

int em_promote_result(const em_promote_state *s) {
  return combine(s->dim_result, combine(s->zero_result, s->wrapped_result));
}
