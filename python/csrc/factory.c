// factory.c: tensors from Python data: tensor(), as_tensor(), from nested sequences; Tensor(...) as a constructor.
#include "bridge.h"
#include "core/iterator.h"

// ---------------------------------------------------------------- shape and dtype of nested data
static bool is_text(PyObject *o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
static bool is_scalar_data(PyObject *o) { return em_py_is_number(o) || (em_py_is_tensor(o) && em_py_t(o)->ndim == 0); }

static int bad_type(PyObject *o) {
  PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(o)->tp_name);
  return -1;
}
// A str in a list is a list of strs, and so on without end.
static int too_many_dimensions(PyObject *o) {
  PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(o)->tp_name);
  return -1;
}

// Sizes by following first elements down; ragged data shows when it is stored.
static int find_sizes(PyObject *data, int64_t *sizes) {
  int n = 0;
  PyObject *o = Py_NewRef(data);
  while (!is_scalar_data(o) && !is_text(o) && PySequence_Check(o)) {
    Py_ssize_t len = PySequence_Size(o);
    if (len < 0 || n == EM_MAX_DIMS) {
      n = len >= 0 ? too_many_dimensions(o) : -1;
      break;
    }
    sizes[n++] = len;
    if (len == 0) break;
    PyObject *first = PySequence_GetItem(o, 0);
    if (first == NULL) {
      n = -1;
      break;
    }
    if (first == o) {
      Py_DECREF(first);
      PyErr_SetString(PyExc_TypeError, "new(): self-referential lists are incompatible");
      n = -1;
      break;
    }
    Py_SETREF(o, first);
  }
  if (n > 0 && PyUnicode_Check(o)) n = too_many_dimensions(o);
  Py_DECREF(o);
  return n;
}

static int numpy_scalar_dtype(PyObject *o) {
  static const struct {
    const char *name;
    int dtype;
  } table[] = {{"numpy.bool_", EM_BOOL},     {"numpy.bool", EM_BOOL},   {"numpy.int8", EM_I8},
               {"numpy.int16", EM_I16},      {"numpy.int32", EM_I32},   {"numpy.int64", EM_I64},
               {"numpy.longlong", EM_I64},   {"numpy.uint8", EM_U8},    {"numpy.float16", EM_F16},
               {"numpy.float32", EM_F32},    {"numpy.float64", EM_F64}, {"numpy.complex64", EM_C64},
               {"numpy.complex128", EM_C128}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(Py_TYPE(o)->tp_name, table[i].name) == 0) return table[i].dtype;
  return EM_DTYPE_NONE;
}

static int merge(int *dtype, int d) {
  *dtype = *dtype < 0 ? d : em_dtype_promote(*dtype, d);
  return 0;
}
static int find_dtype(PyObject *o, int *dtype) {
  if (em_py_is_tensor(o)) return merge(dtype, em_py_t(o)->dtype);
  if (em_py_is_numpy_scalar(o) && numpy_scalar_dtype(o) >= 0) return merge(dtype, numpy_scalar_dtype(o));
  if (PyFloat_Check(o)) return merge(dtype, em_dtype_default());
  if (PyBool_Check(o)) return merge(dtype, EM_BOOL);
  if (PyLong_Check(o)) return merge(dtype, EM_I64);
  if (PyComplex_Check(o)) return merge(dtype, em_dtype_default() == EM_F64 ? EM_C128 : EM_C64);
  if (is_text(o)) return bad_type(o);
  if (!PySequence_Check(o)) {
    PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(o)->tp_name);
    return -1;
  }
  PyObject *seq = PySequence_Fast(o, "not a sequence");
  if (seq == NULL || Py_EnterRecursiveCall(" while reading tensor data")) {
    Py_XDECREF(seq);
    return -1;
  }
  int bad = 0;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
  if (n == 0) bad = merge(dtype, em_dtype_default());
  for (Py_ssize_t i = 0; !bad && i < n; i++) {
    PyObject *x = em_py_list_item(seq, i, n);
    bad = x == NULL ? -1 : find_dtype(x, dtype);
    Py_XDECREF(x);
  }
  Py_LeaveRecursiveCall();
  Py_DECREF(seq);
  return bad;
}

// ---------------------------------------------------------------- storing
static int store_element(PyObject *o, int dtype, void *p) {
  em_scalar s;
  if (PyFloat_CheckExact(o)) s = em_scalar_double(PyFloat_AS_DOUBLE(o));
  else if (PyLong_Check(o) && !PyBool_Check(o) && em_dtype_is_differentiable(dtype)) {
    double d = PyLong_AsDouble(o);  // ints wider than 64 bits are fine here
    if (d == -1.0 && PyErr_Occurred()) return -1;
    s = em_scalar_double(d);
  } else if (is_text(o)) {
    return bad_type(o);
  } else if (em_py_is_tensor(o) && em_py_t(o)->numel != 1) {
    PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    return -1;
  } else if (em_py_to_scalar(o, &s) < 0) {
    return -1;
  }
  if (dtype == EM_BOOL)
    s = em_scalar_bool(s.kind == EM_SCALAR_DOUBLE    ? s.d != 0
                       : s.kind == EM_SCALAR_COMPLEX ? s.c.re != 0 || s.c.im != 0
                                                     : s.i != 0);
  if (s.kind == EM_SCALAR_COMPLEX && !em_dtype_is_complex(dtype) && dtype != EM_BOOL) {
    PyErr_SetString(PyExc_TypeError, em_dtype_is_float(dtype) ? "must be real number, not complex"
                                                              : "'complex' object cannot be interpreted as an integer");
    return -1;
  }
  if (em_dtype_is_differentiable(dtype)) {  // too large a number is inf here
    em_c128 c = em_scalar_to_c128(s);
    if (em_dtype_is_complex(dtype)) em_cast_load(p, dtype, &c, EM_C128, 0, 1);
    else em_cast_load(p, dtype, &c.re, EM_F64, 0, 1);
    return 0;
  }
  em_status st = em_scalar_store(s, dtype, p);
  return st == EM_OK ? 0 : em_py_raise_int(st);
}

static int store_level(PyObject *o, int ndim, const int64_t *sizes, int dim, int dtype, char **p) {
  size_t item = em_dtype_size(dtype);
  if (dim == ndim) {
    if (store_element(o, dtype, *p) < 0) return -1;
    *p += item;
    return 0;
  }
  if (is_text(o)) return bad_type(o);
  PyObject *seq = PySequence_Fast(o, "not a sequence");
  if (seq == NULL) return -1;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
  int bad = 0;
  if (n != sizes[dim]) {
    PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)", (long long)sizes[dim], dim,
                 n);
    bad = -1;
  }
  for (Py_ssize_t i = 0; !bad && i < n; i++) {
    PyObject *x = em_py_list_item(seq, i, n);
    bad = x == NULL ? -1 : store_level(x, ndim, sizes, dim + 1, dtype, p);
    Py_XDECREF(x);
  }
  Py_DECREF(seq);
  return bad;
}

em_status em_py_sequence_tensor(PyObject *data, int dtype, em_device device, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS];
  em_tensor *t = NULL, *moved = NULL;
  em_status st = EM_OK;
  int ndim;
  if (is_text(data)) {
    (void)bad_type(data);
    return EM_ERR_FOREIGN;
  }
  if ((ndim = find_sizes(data, sizes)) < 0 || (dtype < 0 && find_dtype(data, &dtype) < 0)) return EM_ERR_FOREIGN;
  EM_TRY(em_tensor_new(ndim, sizes, dtype, (em_device){EM_DEVICE_CPU, -1}, &t));
  // lint: allow data, because a fresh tensor is filled element by element from Python objects
  char *p = em_tensor_data(t);
  if (t->numel > 0 && store_level(data, ndim, sizes, 0, dtype, &p) < 0) {
    st = EM_ERR_FOREIGN;
    goto fail;
  }
  if (em_device_given(device) && device.type != EM_DEVICE_CPU) {
    EM_TRY(em_device_check(device));
    EM_TRY(em_py_to_dtype_device(t, EM_DTYPE_NONE, device, true, &moved));
    em_tensor_release(t);
    t = moved;
  }
  *out = t;
  return EM_OK;
fail:
  em_tensor_release(t);
  return st;
}

// ---------------------------------------------------------------- any data
typedef struct data_args {
  int dtype;
  em_device device;
  bool requires_grad, copy;
} data_args;

// Tensors and arrays are copied (copy) or shared where dtype and device allow.
static em_status from_tensor(em_tensor *t, const data_args *a, em_tensor **out) {
  em_tensor *plain = NULL;
  em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_py_to_dtype_device(t, a->dtype, a->device, a->copy, &plain);
  em_guard_restore(g);
  *out = plain;
  return st;
}

static em_status make(PyObject *data, const data_args *a, em_tensor **out) {
  em_tensor *t = NULL;
  em_status st;
  if (em_py_is_tensor(data)) return from_tensor(em_py_t(data), a, out);
  int array = em_py_is_array(data) ? em_py_array_tensor(data, false, &t) : 0;
  if (array < 0) return EM_ERR_FOREIGN;
  if (array > 0) {
    st = from_tensor(t, a, out);
    em_tensor_release(t);
    return st;
  }
  em_device d = em_device_given(a->device) ? a->device : em_py_default_device();
  if (em_py_device_wake(d, NULL) < 0) return EM_ERR_FOREIGN;
  return em_py_sequence_tensor(data, a->dtype, d, out);
}

static PyObject *finish(em_status st, em_tensor *t, bool requires_grad) {
  if (st == EM_OK && requires_grad && !em_dtype_is_differentiable(t->dtype))
    st = em_fail(EM_ERR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
  if (st == EM_OK && requires_grad) st = em_tensor_set_requires_grad(t, true);
  if (st == EM_OK) return em_py_wrap(t);
  em_tensor_release(t);
  return em_py_raise(st);
}

static int read_options(const char *name, PyObject *dtype, PyObject *device, PyObject *requires_grad, data_args *a) {
  if (dtype != NULL && dtype != Py_None) {
    if (!em_py_is_dtype(dtype)) {
      PyErr_Format(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %s", name,
                   Py_TYPE(dtype)->tp_name);
      return -1;
    }
    a->dtype = em_py_to_dtype(dtype);
  }
  if (device != NULL && device != Py_None &&
      (em_py_to_device(device, &a->device) < 0 || em_py_device_wake(a->device, NULL) < 0))
    return -1;
  if (requires_grad != NULL && requires_grad != Py_None) {
    if (!PyBool_Check(requires_grad)) {
      PyErr_Format(PyExc_TypeError, "%s(): argument 'requires_grad' must be bool, not %s", name,
                   Py_TYPE(requires_grad)->tp_name);
      return -1;
    }
    a->requires_grad = requires_grad == Py_True;
  }
  return 0;
}

// A function mode sees the functions of this file too. True when it answered; *out is NULL after an error.
static PyObject *home;  // the module that has them
static bool through_mode(const char *name, PyObject *args, PyObject *kw, PyObject **out) {
  if (EM_LIKELY(em_priv_py_tls.function_modes == 0) || em_priv_py_tls.function_disabled >= 2) return false;
  const Py_ssize_t n = PyTuple_GET_SIZE(args), nkw = kw == NULL ? 0 : PyDict_GET_SIZE(kw);
  PyObject *func = PyObject_GetAttrString(home, name), *names = PyTuple_New(nkw), *key, *value;
  PyObject **all = PyMem_New(PyObject *, n + nkw + 1);
  Py_ssize_t at = 0, i = 0;
  *out = NULL;
  if (func != NULL && names != NULL && all != NULL) {
    for (; i < n; i++) all[i] = PyTuple_GET_ITEM(args, i);
    for (; kw != NULL && PyDict_Next(kw, &at, &key, &value); i++) {
      PyTuple_SET_ITEM(names, i - n, Py_NewRef(key));
      all[i] = value;
    }
    *out = em_py_handle_override(func, all, n, nkw == 0 ? NULL : names);
  }
  PyMem_Free(all);
  Py_XDECREF(names);
  Py_XDECREF(func);
  return true;
}

static PyObject *f_tensor(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"data", "dtype", "device", "pin_memory", "requires_grad", "names", NULL};
  PyObject *data = NULL, *dtype = NULL, *device = NULL, *pin = NULL, *grad = NULL, *dims = NULL;
  PyObject *answer;
  if (through_mode("tensor", args, kw, &answer)) return answer;
  if (PyTuple_GET_SIZE(args) == 0 && (kw == NULL || PyDict_GetItemString(kw, "data") == NULL)) {
    PyErr_SetString(PyExc_TypeError, "tensor() missing 1 required positional arguments: \"data\"");
    return NULL;
  }
  if (PyTuple_GET_SIZE(args) > 1)
    return PyErr_Format(PyExc_TypeError, "tensor() takes 1 positional argument but %zd were given", PyTuple_GET_SIZE(args));
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OOOOO:tensor", names, &data, &dtype, &device, &pin, &grad, &dims))
    return NULL;
  data_args a = {EM_DTYPE_NONE, EM_DEVICE_NONE, false, true};
  if (read_options("tensor", dtype, device, grad, &a) < 0) return NULL;
  if (em_py_is_tensor(data) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "To copy construct from a tensor, it is recommended to use "
                   "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
                   "torch.tensor(sourceTensor).",
                   1) < 0)
    return NULL;
  em_tensor *t = NULL;
  em_status st = make(data, &a, &t);
  return finish(st, t, a.requires_grad);
}

static PyObject *f_as_tensor(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"data", "dtype", "device", NULL};
  PyObject *data, *dtype = NULL, *device = NULL;
  PyObject *answer;
  if (through_mode("as_tensor", args, kw, &answer)) return answer;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO:as_tensor", names, &data, &dtype, &device)) return NULL;
  data_args a = {EM_DTYPE_NONE, EM_DEVICE_NONE, false, false};
  if (read_options("as_tensor", dtype, device, NULL, &a) < 0) return NULL;
  em_tensor *t = NULL;
  em_status st = em_py_is_tensor(data) ? em_py_to_dtype_device(em_py_t(data), a.dtype, a.device, false, &t)
                                       : make(data, &a, &t);
  return finish(st, t, false);
}

static PyObject *f_asarray(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"obj", "dtype", "device", "copy", "requires_grad", NULL};
  PyObject *data, *dtype = NULL, *device = NULL, *copy = Py_None, *grad = NULL;
  PyObject *answer;
  if (through_mode("asarray", args, kw, &answer)) return answer;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OOOO:asarray", names, &data, &dtype, &device, &copy, &grad))
    return NULL;
  data_args a = {EM_DTYPE_NONE, EM_DEVICE_NONE, false, copy == Py_True};
  if (read_options("asarray", dtype, device, grad, &a) < 0) return NULL;
  em_tensor *t = NULL;
  em_status st;
  if (em_py_is_tensor(data) && !a.requires_grad) {
    st = em_py_to_dtype_device(em_py_t(data), a.dtype, a.device, a.copy, &t);
  } else if (!em_py_is_tensor(data) && !em_py_is_array(data) && PyObject_CheckBuffer(data)) {
    st = em_py_buffer_tensor(data, a.dtype < 0 ? em_dtype_default() : a.dtype, -1, 0, a.copy, &t);
  } else {
    st = make(data, &a, &t);
  }
  return finish(st, t, a.requires_grad);
}

// x.new_tensor(data): dtype and device of x unless told.
static PyObject *m_new_tensor(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", "layout", NULL};
  PyObject *data, *dtype = NULL, *device = NULL, *grad = NULL, *pin = NULL, *layout = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OOOOO:new_tensor", names, &data, &dtype, &device, &grad, &pin,
                                   &layout))
    return NULL;
  data_args a = {em_py_t(self)->dtype, em_py_t(self)->device, false, true};
  if (read_options("new_tensor", dtype, device, grad, &a) < 0) return NULL;
  em_tensor *t = NULL;
  em_status st = make(data, &a, &t);
  return finish(st, t, a.requires_grad);
}

// ---------------------------------------------------------------- Tensor(...)
// Tensor(), Tensor(2, 3), Tensor(size), Tensor(data), Tensor(tensor), of one dtype.
static em_status legacy(PyObject *args, int dtype, em_device device, em_tensor **out) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject *first = n > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
  int64_t sizes[EM_MAX_DIMS] = {0};
  data_args a = {dtype, device, false, true};
  if (n == 0) return em_tensor_new(1, sizes, dtype, device, out);
  if (n == 1 && em_py_is_tensor(first)) {
    if (em_py_t(first)->dtype == dtype) return em_tensor_alias(em_py_t(first), out);
    PyErr_Format(PyExc_TypeError, "expected %s (got %s)", em_priv_dtypes[dtype].storage,
                 em_priv_dtypes[em_py_t(first)->dtype].storage);
    return EM_ERR_FOREIGN;
  }
  bool shape = n == 1 && Py_TYPE(first) == &em_py_size_type;
  if (n == 1 && !em_py_is_int(first) && !shape) {
    if (PySequence_Check(first)) return make(first, &a, out);
    PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %s)", Py_TYPE(first)->tp_name);
    return EM_ERR_FOREIGN;
  }
  PyObject *list = shape ? first : args;
  Py_ssize_t ndim = PyTuple_GET_SIZE(list);
  if (ndim > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "too many dimensions");
  for (Py_ssize_t i = 0; i < ndim; i++)
    if (em_py_to_int64(PyTuple_GET_ITEM(list, i), &sizes[i]) < 0) return EM_ERR_FOREIGN;
  return em_tensor_new((int)ndim, sizes, dtype, device, out);
}

PyObject *em_py_legacy_new(PyTypeObject *cls, PyObject *args, PyObject *kw) {
  em_device device = {EM_DEVICE_CPU, -1};
  int dtype = em_dtype_default();
  PyObject *d = kw == NULL ? NULL : PyDict_GetItemString(kw, "device"),
           *ty = kw == NULL ? NULL : PyDict_GetItemString(kw, "dtype");
  PyObject *data = kw == NULL ? NULL : PyDict_GetItemString(kw, "data"), *tuple;
  if (d != NULL && d != Py_None && (em_py_to_device(d, &device) < 0 || em_py_device_wake(device, NULL) < 0)) return NULL;
  if (ty != NULL && em_py_is_dtype(ty)) dtype = em_py_to_dtype(ty);
  else if (PyTuple_GET_SIZE(args) == 1 && em_py_is_tensor(PyTuple_GET_ITEM(args, 0)))
    dtype = em_py_t(PyTuple_GET_ITEM(args, 0))->dtype;
  tuple = data != NULL && PyTuple_GET_SIZE(args) == 0 ? PyTuple_Pack(1, data) : Py_NewRef(args);
  if (tuple == NULL) return NULL;
  em_tensor *t = NULL;
  em_status st = legacy(tuple, dtype, device, &t);
  Py_DECREF(tuple);
  return st == EM_OK ? em_py_wrap_as(t, cls) : em_py_raise(st);
}

// x.new(...): like Tensor(...) with x's dtype
static PyObject *m_new(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kw)) {
  em_tensor *t = NULL;
  em_status st = legacy(args, em_py_t(self)->dtype, em_py_t(self)->device, &t);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}

// _legacy_new(dtype, *args): FloatTensor(...) and the like
static PyObject *f_legacy(PyObject *Py_UNUSED(m), PyObject *args) {
  if (PyTuple_GET_SIZE(args) < 1 || !em_py_is_dtype(PyTuple_GET_ITEM(args, 0))) {
    PyErr_SetString(PyExc_TypeError, "_legacy_new() wants a dtype first");
    return NULL;
  }
  PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
  em_tensor *t = NULL;
  if (rest == NULL) return NULL;
  em_status st = legacy(rest, em_py_to_dtype(PyTuple_GET_ITEM(args, 0)), (em_device){EM_DEVICE_CPU, -1}, &t);
  Py_DECREF(rest);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}

// _window(storage, dtype, offset, size, stride): a tensor over a storage; what unpickling and sharing need.
static PyObject *f_window(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *storage, *dtype, *size, *stride;
  long long offset;
  if (!PyArg_ParseTuple(args, "OOLOO:_window", &storage, &dtype, &offset, &size, &stride)) return NULL;
  em_storage *s = em_py_to_storage(storage);
  if (s == NULL) return NULL;
  if (!em_py_is_dtype(dtype)) {
    PyErr_SetString(PyExc_TypeError, "_window(): dtype must be torch.dtype");
    return NULL;
  }
  int d = em_py_to_dtype(dtype);
  em_py_frame f;
  em_ints sz = EM_INTS_NONE, sd = EM_INTS_NONE;
  em_tensor *t = NULL;
  PyObject *r = NULL;
  em_py_frame_init(&f);
  PyObject *a = PySequence_Fast(size, "size must be a sequence"),
           *b = PySequence_Fast(stride, "stride must be a sequence");
  if (a != NULL && b != NULL && em_py_int_list(a, &f, &sz) == 0 && em_py_int_list(b, &f, &sd) == 0) {
    em_status st = sz.n != sd.n || sz.n > EM_MAX_DIMS
                       ? em_fail(EM_ERR_RUNTIME, "mismatch in length of strides and shape")
                       : EM_OK;
    for (int64_t i = 0; st == EM_OK && i < sz.n; i++)
      if (sz.p[i] < 0 || sd.p[i] < 0) st = em_fail(EM_ERR_RUNTIME, "sizes and strides must not be negative");
    if (st == EM_OK) st = em_shape_check_storage(s, (int)sz.n, sz.p, sd.p, offset, em_dtype_size(d));
    if (st == EM_OK) st = em_tensor_new_window(s, (int)sz.n, sz.p, sd.p, offset, d, &t);
    r = finish(st, t, false);
  }
  Py_XDECREF(a);
  Py_XDECREF(b);
  em_py_frame_clear(&f);
  return r;
}

static PyObject *f_set_default_dtype(PyObject *Py_UNUSED(m), PyObject *o) {
  if (!em_py_is_dtype(o)) {
    PyErr_SetString(PyExc_TypeError, "invalid dtype object: only floating-point types are supported as the default type");
    return NULL;
  }
  em_status st = em_dtype_set_default(em_py_to_dtype(o));
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *f_get_default_dtype(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return em_py_dtype_new_ref(em_dtype_default());
}
static PyObject *f_promote(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n && i < 2; i++)
    if (!em_py_is_dtype(args[i]))
      return PyErr_Format(PyExc_TypeError, "promote_types(): argument 'type%zd' (position %zd) must be torch.dtype, not %s", i + 1, i + 1,
                          em_py_class_name(args[i]));
  if (n != 2) return PyErr_Format(PyExc_TypeError, "promote_types() takes 2 positional arguments but %zd were given", n);
  return em_py_dtype_new_ref(em_dtype_promote(em_py_to_dtype(args[0]), em_py_to_dtype(args[1])));
}
// result_type(tensor or number, tensor or number)
static int promote_one(em_promote_state *s, PyObject *o) {
  em_scalar v;
  if (em_py_is_tensor(o)) {
    em_promote_add(s, em_py_t(o));
    return 0;
  }
  if (!em_py_is_number(o)) {
    PyErr_Format(PyExc_TypeError, "result_type() wants tensors and numbers, got %s", em_py_class_name(o));
    return -1;
  }
  if (em_py_to_scalar(o, &v) < 0) return -1;
  em_promote_add_scalar(s, v);
  return 0;
}
static PyObject *f_result_type(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"tensor1", "tensor2", NULL};
  PyObject *a, *b;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO:result_type", names, &a, &b)) return NULL;
  em_promote_state s;
  em_promote_init(&s);
  if (promote_one(&s, a) < 0 || promote_one(&s, b) < 0) return NULL;
  return em_py_dtype_new_ref(em_promote_result(&s));
}
static PyObject *f_can_cast(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"from_", "to", NULL}, *pair[] = {"from", "to", NULL};
  PyObject *from, *to;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO:can_cast",
                                   kw != NULL && PyDict_GetItemString(kw, "from") ? pair : names, &from, &to))
    return NULL;
  if (!em_py_is_dtype(from) || !em_py_is_dtype(to)) {
    const bool first = !em_py_is_dtype(from);
    return PyErr_Format(PyExc_TypeError, "can_cast(): argument '%s' (position %d) must be torch.dtype, not %s", first ? "from_" : "to",
                        first ? 1 : 2, em_py_class_name(first ? from : to));
  }
  return PyBool_FromLong(em_dtype_can_cast(em_py_to_dtype(from), em_py_to_dtype(to)));
}

#define KW(f) (PyCFunction)(void *) f, METH_VARARGS | METH_KEYWORDS, NULL
static PyMethodDef functions[] = {
    {"tensor", KW(f_tensor)},
    {"as_tensor", KW(f_as_tensor)},
    {"asarray", KW(f_asarray)},
    {"_legacy_new", f_legacy, METH_VARARGS, NULL},
    {"_window", f_window, METH_VARARGS, NULL},
    {"_set_default_dtype", f_set_default_dtype, METH_O, NULL},
    {"get_default_dtype", f_get_default_dtype, METH_NOARGS, NULL},
    {"promote_types", (PyCFunction)(void *)f_promote, METH_FASTCALL, NULL},
    {"can_cast", KW(f_can_cast)},
    {"result_type", KW(f_result_type)},
    {NULL},
};
static PyMethodDef methods[] = {{"new_tensor", KW(m_new_tensor)}, {"new", KW(m_new)}, {NULL}};

int em_py_factory_init(PyObject *module) {
  home = module;
  for (PyMethodDef *m = methods; m->ml_name != NULL; m++) {
    PyObject *d = PyDescr_NewMethod(&em_py_base_type, m);
    int bad = d == NULL || PyDict_SetItemString(em_py_base_type.tp_dict, m->ml_name, d) < 0;
    Py_XDECREF(d);
    if (bad) return -1;
  }
  return PyModule_AddFunctions(module, functions) < 0 ? -1 : PyModule_AddFunctions(module, em_py_convert_functions);
}
