// number.c: operators (+ - * / ...), comparisons, and the conversions bool, int, float, complex, len, iter, in, hash.
// Two plain tensors go straight to the operator's typed function; everything else takes the named method.
#include "fast.h"

enum {
  N_ADD,
  N_SUB,
  N_MUL,
  N_DIV,
  N_FLOORDIV,
  N_MOD,
  N_POW,
  N_MATMUL,
  N_AND,
  N_OR,
  N_XOR,
  N_LSHIFT,
  N_RSHIFT,
  N_LT,
  N_LE,
  N_EQ,
  N_NE,
  N_GT,
  N_GE,
  N_IADD,
  N_ISUB,
  N_IMUL,
  N_IDIV,
  N_IFLOORDIV,
  N_IMOD,
  N_IPOW,
  N_IAND,
  N_IOR,
  N_IXOR,
  N_ILSHIFT,
  N_IRSHIFT,
  N_COUNT
};

// `name` is the method that does it; `scalar` says how a Python number comes in: as a wrapped 0-dim tensor to the same
// overload (W), or by the parser, which picks the Scalar overload (P). `reflected` is Tensor's method for number OP
// tensor.
static struct {
  const char *name, *reflected;
  char scalar;
  em_py_callable *c;
} slots[N_COUNT] = {[N_ADD] = {"add", "add", 'W'},
                    [N_SUB] = {"sub", "__rsub__", 'W'},
                    [N_MUL] = {"mul", "mul", 'W'},
                    [N_DIV] = {"div", "__rtruediv__", 'W'},
                    [N_FLOORDIV] = {"floor_divide", "__rfloordiv__", 'W'},
                    [N_MOD] = {"remainder", "__rmod__", 'P'},
                    [N_POW] = {"pow", "__rpow__", 'P'},
                    [N_MATMUL] = {"matmul", "__rmatmul__", 'N'},
                    [N_AND] = {"bitwise_and", "__rand__", 'P'},
                    [N_OR] = {"bitwise_or", "__ror__", 'P'},
                    [N_XOR] = {"bitwise_xor", "__rxor__", 'P'},
                    [N_LSHIFT] = {"bitwise_left_shift", "__rlshift__", 'P'},
                    [N_RSHIFT] = {"bitwise_right_shift", "__rrshift__", 'P'},
                    [N_LT] = {"lt", "gt", 'P'},
                    [N_LE] = {"le", "ge", 'P'},
                    [N_EQ] = {"eq", "eq", 'P'},
                    [N_NE] = {"ne", "ne", 'P'},
                    [N_GT] = {"gt", "lt", 'P'},
                    [N_GE] = {"ge", "le", 'P'},
                    [N_IADD] = {"add_", NULL, 'W'},
                    [N_ISUB] = {"sub_", NULL, 'W'},
                    [N_IMUL] = {"mul_", NULL, 'W'},
                    [N_IDIV] = {"div_", NULL, 'W'},
                    [N_IFLOORDIV] = {"floor_divide_", NULL, 'W'},
                    [N_IMOD] = {"remainder_", NULL, 'P'},
                    [N_IPOW] = {"pow_", NULL, 'P'},
                    [N_IAND] = {"bitwise_and_", NULL, 'P'},
                    [N_IOR] = {"bitwise_or_", NULL, 'P'},
                    [N_IXOR] = {"bitwise_xor_", NULL, 'P'},
                    [N_ILSHIFT] = {"bitwise_left_shift_", NULL, 'P'},
                    [N_IRSHIFT] = {"bitwise_right_shift_", NULL, 'P'}};

// ---------------------------------------------------------------- tensor OP something
// A TypeError means "not for us": Python then asks the other operand.
static PyObject *or_not_implemented(PyObject *r) {
  if (r == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  return r;
}

static PyObject *overridden(PyObject *self, PyObject *other, const char *name) {
  PyObject *args[2] = {self, other}, *func = PyObject_GetAttrString((PyObject *)em_py_tensor_class, name);
  if (func == NULL) return NULL;
  PyObject *r = em_py_handle_override(func, args, 2, NULL);
  Py_DECREF(func);
  return or_not_implemented(r);
}

// number OP tensor, for the operators that do not commute.
static PyObject *reflected(int i, PyObject *tensor, PyObject *number) {
  PyObject *args[2] = {number, tensor}, *swapped[2] = {tensor, number};
  switch (i) {
    case N_ADD:
    case N_MUL:
    case N_AND:
    case N_OR:
    case N_XOR: return em_py_call(slots[i].c, tensor, &number, 1, NULL);
    case N_SUB: {
      em_py_callable *rsub = em_py_callable_find("rsub", EM_PY_FUNCTION);
      if (rsub != NULL) return em_py_call(rsub, NULL, swapped, 2, NULL);
      return em_py_call_function("sub", args, 2, NULL);
    }
    case N_DIV: {
      PyObject *r = em_py_call_method("reciprocal", tensor, NULL, 0, NULL);
      PyObject *result = r == NULL ? NULL : PyNumber_Multiply(r, number);
      Py_XDECREF(r);
      return result;
    }
    case N_FLOORDIV: return em_py_call_function("floor_divide", args, 2, NULL);
    case N_MOD: return em_py_call_function("remainder", args, 2, NULL);
    case N_POW: return em_py_call_function("pow", args, 2, NULL);
    case N_MATMUL: return em_py_call_function("matmul", args, 2, NULL);
    default: return em_py_call_function(slots[i].name, args, 2, NULL);
  }
}

static PyObject *with_wrapped(int i, PyObject *tensor, PyObject *number, bool number_first) {
  em_scalar s;
  em_tensor *w = NULL;
  const em_py_callable *c = slots[i].c;
  if (em_py_to_scalar(number, &s) < 0) return NULL;
  em_status st = em_tensor_wrap_scalar(s, &w);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *r = c->binary_kind & EM_FAST_INPLACE ? em_py_run_inplace(c->binary, c->binary_kind, tensor, w)
                : number_first                   ? em_py_run_tensors(c->binary, c->binary_kind, w, em_py_t(tensor))
                                                 : em_py_run_tensors(c->binary, c->binary_kind, em_py_t(tensor), w);
  em_tensor_release(w);
  return r;
}

static __attribute__((noinline)) PyObject *binary_slow(int i, PyObject *a, PyObject *b) {
  bool left = em_py_is_tensor(a);
  PyObject *tensor = left ? a : b, *other = left ? b : a;
  if (slots[i].c == NULL)
    return PyErr_Format(PyExc_NotImplementedError, "this build of Ember has no operator '%s'", slots[i].name);
  if (em_py_any_override(a, &b, 1, NULL)) return overridden(tensor, other, left ? slots[i].name : slots[i].reflected);
  bool number = em_py_is_number(other);
  if (number && slots[i].scalar == 'W' && slots[i].c->binary != NULL && (left || i == N_ADD || i == N_MUL))
    return with_wrapped(i, tensor, other, false);
  if (left) return or_not_implemented(em_py_call(slots[i].c, a, &b, 1, NULL));
  if (!number && slots[i].scalar != 'N') Py_RETURN_NOTIMPLEMENTED;
  return or_not_implemented(reflected(i, tensor, other));
}

static inline PyObject *binary(int i, PyObject *a, PyObject *b) {
  const em_py_callable *c = slots[i].c;
  if (EM_LIKELY(em_py_is_plain(a) && em_py_is_plain(b) && em_py_no_modes() && c != NULL && c->binary != NULL))
    return em_py_run_binary(c->binary, c->binary_kind, a, b);
  return binary_slow(i, a, b);
}

#define SLOT(fn, i)                                                                                                    \
  static PyObject *fn(PyObject *a, PyObject *b) { return binary(i, a, b); }
SLOT(nb_add, N_ADD)
SLOT(nb_sub, N_SUB)
SLOT(nb_mul, N_MUL)
SLOT(nb_div, N_DIV)
SLOT(nb_floordiv, N_FLOORDIV)
SLOT(nb_mod, N_MOD)
SLOT(nb_matmul, N_MATMUL) SLOT(nb_and, N_AND) SLOT(nb_or, N_OR) SLOT(nb_xor, N_XOR) SLOT(nb_lshift, N_LSHIFT)
    SLOT(nb_rshift, N_RSHIFT) SLOT(nb_iadd, N_IADD) SLOT(nb_isub, N_ISUB) SLOT(nb_imul, N_IMUL) SLOT(nb_idiv, N_IDIV)
        SLOT(nb_ifloordiv, N_IFLOORDIV) SLOT(nb_imod, N_IMOD) SLOT(nb_iand, N_IAND) SLOT(nb_ior, N_IOR)
            SLOT(nb_ixor, N_IXOR) SLOT(nb_ilshift, N_ILSHIFT) SLOT(nb_irshift, N_IRSHIFT)

                static PyObject *nb_pow(PyObject *a, PyObject *b, PyObject *mod) {
  if (mod != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(N_POW, a, b);
}
static PyObject *nb_ipow(PyObject *a, PyObject *b, PyObject *mod) {
  if (mod != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(N_IPOW, a, b);
}

// tensor == ndarray compares elements, as PyTorch's does (and only ==: the other comparisons are left to numpy).
static PyObject *equal_to_array(PyObject *tensor, PyObject *array) {
  PyObject *ember = PyImport_ImportModule("ember"), *other = NULL, *result = NULL;
  if (ember != NULL) other = PyObject_CallMethod(ember, "as_tensor", "O", array);
  if (other != NULL) result = binary(N_EQ, tensor, other);
  Py_XDECREF(ember);
  Py_XDECREF(other);
  return result;
}

PyObject *em_py_tensor_compare(PyObject *a, PyObject *b, int op) {
  static const int map[] = {
      [Py_LT] = N_LT, [Py_LE] = N_LE, [Py_EQ] = N_EQ, [Py_NE] = N_NE, [Py_GT] = N_GT, [Py_GE] = N_GE};
  PyObject *result = binary(map[op], a, b);
  if (EM_UNLIKELY(result == Py_NotImplemented && op == Py_EQ && strcmp(Py_TYPE(b)->tp_name, "numpy.ndarray") == 0)) {
    Py_DECREF(result);
    return equal_to_array(a, b);
  }
  return result;
}

// ---------------------------------------------------------------- one operand
static PyObject *unary(const char *name, PyObject *a) {
  PyObject *r;
  if (em_py_override_method(a, name, NULL, 0, NULL, &r)) return r;
  return em_py_call_method(name, a, NULL, 0, NULL);
}
static PyObject *nb_neg(PyObject *a) {
  static em_py_callable *c;
  if (EM_UNLIKELY(c == NULL)) c = em_py_callable_find("neg", EM_PY_METHOD);
  return c == NULL ? unary("neg", a) : em_py_call(c, a, NULL, 0, NULL);
}
static PyObject *nb_pos(PyObject *a) {
  PyObject *r;
  if (em_py_override_method(a, "__pos__", NULL, 0, NULL, &r)) return r;
  if (em_py_t(a)->dtype == EM_BOOL) {
    PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return NULL;
  }
  return Py_NewRef(a);
}
static PyObject *nb_abs(PyObject *a) { return unary("abs", a); }
static PyObject *nb_invert(PyObject *a) {
  if (em_py_is_plain(a) && !em_dtype_is_integral(em_py_t(a)->dtype)) {
    PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return NULL;
  }
  return unary("bitwise_not", a);
}

static int one_element(PyObject *o, em_scalar *out) {
  em_status st = em_tensor_item(em_py_t(o), out);
  return st == EM_OK ? 0 : em_py_raise_int(st);
}

static int nb_bool(PyObject *o) {
  PyObject *r;
  if (em_py_override_method(o, "__bool__", NULL, 0, NULL, &r)) {
    int b = r == NULL ? -1 : PyObject_IsTrue(r);
    Py_XDECREF(r);
    return b;
  }
  em_tensor *t = em_py_t(o);
  em_scalar s;
  if (EM_UNLIKELY(t->numel != 1)) {
    PyErr_SetString(PyExc_RuntimeError, t->numel == 0
                                            ? "Boolean value of Tensor with no values is ambiguous"
                                            : "Boolean value of Tensor with more than one value is ambiguous");
    return -1;
  }
  if (one_element(o, &s) < 0) return -1;
  if (s.kind == EM_SCALAR_DOUBLE) return s.d != 0;
  return s.kind == EM_SCALAR_COMPLEX ? s.c.re != 0 || s.c.im != 0 : s.i != 0;
}

static int conversion_item(PyObject *o, em_scalar *s) {
  if (em_py_t(o)->numel != 1) {
    PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    return -1;
  }
  static bool told;  // under the GIL; PyTorch says it once a process
  if (EM_UNLIKELY(em_tensor_requires_grad(em_py_t(o)) && !told)) {
    told = true;
    em_status st = em_warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                           "Consider using tensor.detach() first.");
    if (st != EM_OK) return em_py_raise_int(st);
  }
  return one_element(o, s);
}
static PyObject *nb_int(PyObject *o) {
  PyObject *r;
  em_scalar s;
  if (em_py_override_method(o, "__int__", NULL, 0, NULL, &r)) return r;
  if (conversion_item(o, &s) < 0) return NULL;
  if (s.kind == EM_SCALAR_DOUBLE) return PyLong_FromDouble(s.d);
  if (s.kind == EM_SCALAR_COMPLEX) return PyLong_FromDouble(s.c.re);
  return PyLong_FromLongLong(s.i);
}
static PyObject *nb_float(PyObject *o) {
  PyObject *r;
  em_scalar s;
  if (em_py_override_method(o, "__float__", NULL, 0, NULL, &r)) return r;
  if (conversion_item(o, &s) < 0) return NULL;
  if (s.kind == EM_SCALAR_COMPLEX && s.c.im != 0) {
    PyErr_SetString(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
    return NULL;
  }
  return PyFloat_FromDouble(em_scalar_to_double(s));
}
static PyObject *nb_index(PyObject *o) {
  PyObject *r;
  em_tensor *t = em_py_t(o);
  em_scalar s;
  if (em_py_override_method(o, "__index__", NULL, 0, NULL, &r)) return r;
  if (t->numel != 1 || !em_dtype_is_integral(t->dtype)) {
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return NULL;
  }
  if (one_element(o, &s) < 0) return NULL;
  return PyLong_FromLongLong(s.i);
}

PyNumberMethods em_py_tensor_number = {
    .nb_add = nb_add,
    .nb_subtract = nb_sub,
    .nb_multiply = nb_mul,
    .nb_true_divide = nb_div,
    .nb_floor_divide = nb_floordiv,
    .nb_remainder = nb_mod,
    .nb_power = nb_pow,
    .nb_matrix_multiply = nb_matmul,
    .nb_and = nb_and,
    .nb_or = nb_or,
    .nb_xor = nb_xor,
    .nb_lshift = nb_lshift,
    .nb_rshift = nb_rshift,
    .nb_inplace_add = nb_iadd,
    .nb_inplace_subtract = nb_isub,
    .nb_inplace_multiply = nb_imul,
    .nb_inplace_true_divide = nb_idiv,
    .nb_inplace_floor_divide = nb_ifloordiv,
    .nb_inplace_remainder = nb_imod,
    .nb_inplace_power = nb_ipow,
    .nb_inplace_and = nb_iand,
    .nb_inplace_or = nb_ior,
    .nb_inplace_xor = nb_ixor,
    .nb_inplace_lshift = nb_ilshift,
    .nb_inplace_rshift = nb_irshift,
    .nb_negative = nb_neg,
    .nb_positive = nb_pos,
    .nb_absolute = nb_abs,
    .nb_invert = nb_invert,
    .nb_bool = nb_bool,
    .nb_int = nb_int,
    .nb_float = nb_float,
    .nb_index = nb_index,
};

// ---------------------------------------------------------------- hash, iteration, membership
Py_hash_t em_py_tensor_hash(PyObject *o) { return (Py_hash_t)o; }  // id(o), as in PyTorch: == is elementwise

PyObject *em_py_tensor_iter(PyObject *o) {
  PyObject *r;
  if (em_py_override_method(o, "__iter__", NULL, 0, NULL, &r)) return r;
  if (em_py_t(o)->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return NULL;
  }
  PyObject *parts = em_py_call_method("unbind", o, NULL, 0, NULL);
  r = parts == NULL ? NULL : PyObject_GetIter(parts);
  Py_XDECREF(parts);
  return r;
}

static int sq_contains(PyObject *o, PyObject *element) {
  PyObject *r;
  int found = -1;
  if (em_py_override_method(o, "__contains__", &element, 1, NULL, &r)) {
    found = r == NULL ? -1 : PyObject_IsTrue(r);
    Py_XDECREF(r);
    return found;
  }
  if (!em_py_is_tensor(element) && !em_py_is_number(element)) {
    PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                 Py_TYPE(element));
    return -1;
  }
  PyObject *same = PyObject_RichCompare(o, element, Py_EQ);
  PyObject *any = same == NULL ? NULL : em_py_call_method("any", same, NULL, 0, NULL);
  if (any != NULL) found = PyObject_IsTrue(any);
  Py_XDECREF(same);
  Py_XDECREF(any);
  return found;
}
PySequenceMethods em_py_tensor_sequence = {.sq_contains = sq_contains};

static PyObject *number_complex(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *r;
  em_scalar s;
  if (em_py_override_method(o, "__complex__", NULL, 0, NULL, &r)) return r;
  if (conversion_item(o, &s) < 0) return NULL;
  em_c128 c = em_scalar_to_c128(s);
  return PyComplex_FromDoubles(c.re, c.im);
}

// The old name of __rtruediv__: also of two tensors it is the reciprocal's product.
static PyObject *r_div(PyObject *t, PyObject *o) {
  if (em_py_any_override(t, &o, 1, NULL)) return overridden(t, o, slots[N_DIV].reflected);
  return or_not_implemented(reflected(N_DIV, t, o));
}
static PyMethodDef number_methods[] = {
    {"__complex__", number_complex, METH_NOARGS, NULL},
    {"__rdiv__", r_div, METH_O, NULL},
    {NULL},
};

int em_py_number_init(void) {
  for (int i = 0; i < N_COUNT; i++) slots[i].c = em_py_callable_find(slots[i].name, EM_PY_METHOD);
  for (PyMethodDef *m = number_methods; m->ml_name != NULL; m++) {
    PyObject *d = PyDescr_NewMethod(&em_py_base_type, m);
    int bad = d == NULL || PyDict_SetItemString(em_py_base_type.tp_dict, m->ml_name, d) < 0;
    Py_XDECREF(d);
    if (bad) return -1;
  }
  return 0;
}
