// tensor_convert.c: to() and its relatives, item(), tolist().
#include "bridge.h"

#define T(o) em_py_t(o)
#define ARGS PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw

// ---------------------------------------------------------------- to
typedef struct to_args {
  int dtype, format;
  em_device device;
  bool copy, non_blocking;
} to_args;

static void set_arg(const em_operator *op, em_value *v, const char *name, em_value x) {
  for (int i = 0; i < op->nargs; i++)
    if (strcmp(op->args[i].name, name) == 0) v[i] = x;
}

static em_status to_copy(em_tensor *t, const to_args *a, em_tensor **out) {
  const em_operator *op = em_operator_find("aten", "_to_copy", "");
  em_value v[EM_PY_MAX_ARGS], ret = em_value_none();
  if (op == NULL) return em_fail(EM_ERR_NOT_IMPLEMENTED, "this build of Ember has no operator '_to_copy'");
  for (int i = 0; i < op->nargs; i++) v[i] = op->args[i].dflt;
  v[0] = em_value_tensor(t);
  em_value dtype = em_value_int(a->dtype), device = em_value_none(), format = em_value_int(a->format);
  dtype.tag = EM_TAG_DTYPE;
  format.tag = EM_TAG_MEMORY_FORMAT;
  device.device = a->device;
  device.tag = EM_TAG_DEVICE;
  if (a->dtype >= 0) set_arg(op, v, "dtype", dtype);
  if (a->format >= 0) set_arg(op, v, "memory_format", format);
  if (em_device_given(a->device)) set_arg(op, v, "device", device);
  set_arg(op, v, "non_blocking", em_value_bool(a->non_blocking));
  em_status st = em_priv_call_boxed(op, v, &ret);
  if (st == EM_OK) *out = ret.tensor;
  return st;
}

static bool same_device(em_device have, em_device want) {
  return !em_device_given(want) ||
         (have.type == want.type && (want.index < 0 || have.index < 0 || have.index == want.index));
}
static PyObject *do_to(PyObject *o, const to_args *a) {
  em_tensor *t = T(o), *out = NULL;
  bool format_ok =
      a->format < 0 || a->format == EM_FORMAT_PRESERVE || a->format == em_shape_suggested_format(t);
  if (!a->copy && (a->dtype < 0 || a->dtype == t->dtype) && same_device(t->device, a->device) && format_ok)
    return Py_NewRef(o);
  if (em_device_given(a->device)) {
    if (em_py_device_wake(a->device, NULL) < 0) return NULL;
    em_status st = em_device_check(a->device);
    if (st != EM_OK) return em_py_raise(st);
  }
  em_status st = to_copy(t, a, &out);
  return st == EM_OK ? em_py_wrap(out) : em_py_raise(st);
}
em_status em_py_to_dtype_device(em_tensor *t, int dtype, em_device device, bool copy, em_tensor **out) {
  to_args a = {dtype, EM_FORMAT_NONE, device, copy, false};
  if (!copy && (dtype < 0 || dtype == t->dtype) && same_device(t->device, device)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  return to_copy(t, &a, out);
}

static int truth(PyObject *v, bool *out) {
  int b = PyObject_IsTrue(v);
  *out = b > 0;
  return b < 0 ? -1 : 0;
}
static int to_keyword(const char *name, PyObject *key, PyObject *v, to_args *a) {
  const char *k = PyUnicode_AsUTF8(key);
  if (k == NULL) return -1;
  if (strcmp(k, "dtype") == 0 && (v == Py_None || em_py_is_dtype(v))) {
    a->dtype = v == Py_None ? EM_DTYPE_NONE : em_py_to_dtype(v);
    return 0;
  }
  if (strcmp(k, "device") == 0) return v == Py_None ? 0 : em_py_to_device(v, &a->device);
  if (strcmp(k, "non_blocking") == 0) return truth(v, &a->non_blocking);
  if (strcmp(k, "copy") == 0) return truth(v, &a->copy);
  if (strcmp(k, "memory_format") == 0 && (v == Py_None || Py_TYPE(v) == &em_py_memory_format_type)) {
    a->format = v == Py_None ? EM_FORMAT_NONE : ((em_py_enum *)v)->value;
    return 0;
  }
  if (strcmp(k, "other") == 0 && em_py_is_tensor(v)) {
    a->dtype = T(v)->dtype;
    a->device = T(v)->device;
    return 0;
  }
  PyErr_Format(PyExc_TypeError, "%s() received an invalid combination of arguments - got (%U=%s)", name, key,
               Py_TYPE(v)->tp_name);
  return -1;
}

// to(dtype, non_blocking, copy), to(device, dtype, non_blocking, copy), to(other, non_blocking, copy) and all by name.
static int read_to(const char *name, PyObject *const *args, Py_ssize_t n, PyObject *kw, to_args *a) {
  *a = (to_args){EM_DTYPE_NONE, EM_FORMAT_NONE, EM_DEVICE_NONE, false, false};
  Py_ssize_t at = 0;
  if (at < n) {
    PyObject *x = args[at++];
    if (em_py_is_dtype(x)) a->dtype = em_py_to_dtype(x);
    else if (em_py_is_tensor(x)) {
      a->dtype = T(x)->dtype;
      a->device = T(x)->device;
    } else if (x == Py_None || PyUnicode_Check(x) || Py_TYPE(x) == &em_py_device_type || em_py_is_int(x)) {
      if (x != Py_None && em_py_to_device(x, &a->device) < 0) return -1;
      if (at < n && (em_py_is_dtype(args[at]) || args[at] == Py_None)) {
        if (args[at] != Py_None) a->dtype = em_py_to_dtype(args[at]);
        at++;
      }
    } else {
      PyErr_Format(
          PyExc_TypeError,
          "%s() received an invalid combination of arguments - got (%s), but expected one of:\n"
          " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
          "torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool non_blocking = False, bool copy = "
          "False, *, "
          "torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, "
          "*, "
          "torch.memory_format memory_format = None)\n",
          name, Py_TYPE(x)->tp_name);
      return -1;
    }
  }
  if (at < n && truth(args[at++], &a->non_blocking) < 0) return -1;
  if (at < n && truth(args[at++], &a->copy) < 0) return -1;
  if (at < n) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most 4 positional arguments (%zd given)", name, n);
    return -1;
  }
  for (Py_ssize_t i = 0; kw != NULL && i < PyTuple_GET_SIZE(kw); i++)
    if (to_keyword(name, PyTuple_GET_ITEM(kw, i), args[n + i], a) < 0) return -1;
  return 0;
}
static PyObject *m_to(ARGS) {
  PyObject *r;
  to_args a;
  if (em_py_override_method(o, "to", args, n, kw, &r)) return r;
  return read_to("to", args, n, kw, &a) < 0 ? NULL : do_to(o, &a);
}
// _parse_to(...) -> (device, dtype, non_blocking, memory_format), for Module.to
static PyObject *parse_to(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  to_args a;
  if (read_to("to", args, n, kw, &a) < 0) return NULL;
  PyObject *device = em_device_given(a.device) ? em_py_device_new(a.device) : Py_NewRef(Py_None);
  return Py_BuildValue("(NNNN)", device, em_py_dtype_new_ref(a.dtype), PyBool_FromLong(a.non_blocking),
                       em_py_memory_format_new_ref(a.format));
}

static PyObject *cast(PyObject *o, const char *name, int dtype, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  PyObject *r;
  if (em_py_override_method(o, name, args, n, kw, &r)) return r;
  to_args a = {dtype, EM_FORMAT_NONE, EM_DEVICE_NONE, false, false};
  if (n > 0) return PyErr_Format(PyExc_TypeError, "%s() takes 0 positional arguments but %zd were given", name, n);
  for (Py_ssize_t i = 0; kw != NULL && i < PyTuple_GET_SIZE(kw); i++)
    if (to_keyword(name, PyTuple_GET_ITEM(kw, i), args[i], &a) < 0) return NULL;
  return do_to(o, &a);
}
#define CAST(fn, name, dtype)                                                                                          \
  static PyObject *fn(ARGS) { return cast(o, name, dtype, args, n, kw); }
CAST(m_float, "float", EM_F32)
CAST(m_double, "double", EM_F64)
CAST(m_half, "half", EM_F16)
CAST(m_bfloat16, "bfloat16", EM_BF16)
CAST(m_int, "int", EM_I32)
CAST(m_long, "long", EM_I64)
CAST(m_short, "short", EM_I16) CAST(m_char, "char", EM_I8) CAST(m_byte, "byte", EM_U8) CAST(m_bool, "bool", EM_BOOL)
    CAST(m_cfloat, "cfloat", EM_C64) CAST(m_cdouble, "cdouble", EM_C128)

        static PyObject *to_device(PyObject *o, const char *name, em_device d, PyObject *const *args, Py_ssize_t n,
                                   PyObject *kw) {
  PyObject *r;
  if (em_py_override_method(o, name, args, n, kw, &r)) return r;
  to_args a = {EM_DTYPE_NONE, EM_FORMAT_NONE, d, false, false};
  if (n > 0 && args[0] != Py_None && em_py_to_device(args[0], &a.device) < 0) return NULL;
  for (Py_ssize_t i = 0; kw != NULL && i < PyTuple_GET_SIZE(kw); i++)
    if (to_keyword(name, PyTuple_GET_ITEM(kw, i), args[n + i], &a) < 0) return NULL;
  if (a.device.type != d.type) return PyErr_Format(PyExc_RuntimeError, "Invalid device, must be %s device", name);
  return do_to(o, &a);
}
static PyObject *m_cpu(ARGS) { return to_device(o, "cpu", (em_device){EM_DEVICE_CPU, -1}, args, n, kw); }
static PyObject *m_cuda(ARGS) { return to_device(o, "cuda", (em_device){EM_DEVICE_CUDA, -1}, args, n, kw); }

static PyObject *m_xpu(ARGS) {
  em_device xpu;
  em_status st = em_device_parse("xpu", &xpu);
  return st == EM_OK ? to_device(o, "xpu", xpu, args, n, kw) : em_py_raise(st);
}

static PyObject *m_type_as(PyObject *o, PyObject *other) {
  PyObject *r;
  if (em_py_override_method(o, "type_as", &other, 1, NULL, &r)) return r;
  if (!em_py_is_tensor(other))
    return PyErr_Format(PyExc_TypeError, "type_as(): argument 'other' (position 1) must be Tensor, not %s",
                        Py_TYPE(other)->tp_name);
  to_args a = {T(other)->dtype, EM_FORMAT_NONE, T(other)->device, false, false};
  return do_to(o, &a);
}

// type() names the type; type(dtype) and type("torch.FloatTensor") cast.
static int dtype_of_type_name(const char *name) {
  const char *dot = strrchr(name, '.');
  for (int i = 0; i < EM_NUM_DTYPES; i++)
    if (strcmp(em_priv_dtypes[i].storage, dot == NULL ? name : dot + 1) == 0) return i;
  if (strcmp(dot == NULL ? name : dot + 1, "Tensor") == 0) return em_dtype_default();
  return EM_DTYPE_NONE;
}
static PyObject *m_type(ARGS) {
  PyObject *r;
  if (em_py_override_method(o, "type", args, n, kw, &r)) return r;
  PyObject *want = n > 0 ? args[0] : kw != NULL && PyTuple_GET_SIZE(kw) > 0 ? args[0] : Py_None;
  if (want == Py_None) {
    const char *where = T(o)->device.type == EM_DEVICE_CUDA ? "torch.cuda." : "torch.";
    return PyUnicode_FromFormat("%s%s", where, em_priv_dtypes[T(o)->dtype].storage);
  }
  to_args a = {EM_DTYPE_NONE, EM_FORMAT_NONE, EM_DEVICE_NONE, false, false};
  if (em_py_is_dtype(want)) a.dtype = em_py_to_dtype(want);
  else {
    PyObject *text = PyUnicode_Check(want) ? Py_NewRef(want) : PyObject_GetAttrString(want, "__name__");
    const char *name = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    a.dtype = name == NULL ? EM_DTYPE_NONE : dtype_of_type_name(name);
    Py_XDECREF(text);
    PyErr_Clear();
  }
  if (a.dtype < 0) return PyErr_Format(PyExc_ValueError, "invalid type: '%S'", want);
  return do_to(o, &a);
}

// ---------------------------------------------------------------- values out
PyObject *em_py_item(em_tensor *t) {
  em_scalar s;
  if (t->numel != 1)
    return PyErr_Format(PyExc_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
                        (long long)t->numel);
  em_status st = em_tensor_item(t, &s);
  return st == EM_OK ? em_py_from_scalar(s) : em_py_raise(st);
}
static PyObject *m_item(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *r;
  if (em_py_override_method(o, "item", NULL, 0, NULL, &r)) return r;
  return em_py_item(T(o));
}

// The elements of a row, for the dtypes that lists are mostly made of: 1; -1: failed; 0: another dtype.
static int fill_row(PyObject *l, int dtype, const char *p, int64_t step, int64_t n) {
#define FILL(make)                             \
  for (int64_t i = 0; i < n; i++, p += step) { \
    PyObject *x = make;                        \
    if (x == NULL) return -1;                  \
    PyList_SET_ITEM(l, i, x);                  \
  }                                            \
  return 1
  switch (dtype) {
    case EM_F32: FILL(PyFloat_FromDouble(*(const float *)(const void *)p));
    case EM_F64: FILL(PyFloat_FromDouble(*(const double *)(const void *)p));
    case EM_I64: FILL(PyLong_FromLongLong(*(const int64_t *)(const void *)p));
    default: return 0;
  }
#undef FILL
}
static PyObject *list_level(const em_tensor *t, const char *p, int d) {
  if (d == t->ndim) return em_py_from_scalar(em_scalar_load(t->dtype, p));
  PyObject *l = PyList_New((Py_ssize_t)t->sizes[d]);
  int64_t step = t->strides[d] * (int64_t)em_tensor_itemsize(t);
  const int filled = l != NULL && d == t->ndim - 1 ? fill_row(l, t->dtype, p, step, t->sizes[d]) : 0;
  if (filled < 0) Py_CLEAR(l);
  if (filled != 0) return l;
  for (int64_t i = 0; l != NULL && i < t->sizes[d]; i++) {
    PyObject *x = list_level(t, p + i * step, d + 1);
    if (x == NULL) Py_CLEAR(l);
    else PyList_SET_ITEM(l, i, x);
  }
  return l;
}
PyObject *em_py_tolist(em_tensor *t) {
  if (t->device.type == EM_DEVICE_META)
    return PyErr_Format(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
  em_tensor *cpu = NULL;
  em_status st = em_py_to_dtype_device(t, EM_DTYPE_NONE, (em_device){EM_DEVICE_CPU, -1}, false, &cpu);
  if (st != EM_OK) return em_py_raise(st);
  // lint: allow data, because each element becomes a Python object
  PyObject *r = list_level(cpu, em_tensor_data(cpu), 0);
  em_tensor_release(cpu);
  return r;
}
static PyObject *m_tolist(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *r;
  if (em_py_override_method(o, "tolist", NULL, 0, NULL, &r)) return r;
  return em_py_tolist(T(o));
}

#define FAST(f) (PyCFunction)(void *) f, METH_FASTCALL | METH_KEYWORDS, NULL
PyMethodDef em_py_convert_methods[] = {
    {"to", FAST(m_to)},
    {"float", FAST(m_float)},
    {"double", FAST(m_double)},
    {"half", FAST(m_half)},
    {"bfloat16", FAST(m_bfloat16)},
    {"int", FAST(m_int)},
    {"long", FAST(m_long)},
    {"short", FAST(m_short)},
    {"char", FAST(m_char)},
    {"byte", FAST(m_byte)},
    {"bool", FAST(m_bool)},
    {"cfloat", FAST(m_cfloat)},
    {"cdouble", FAST(m_cdouble)},
    {"cpu", FAST(m_cpu)},
    {"cuda", FAST(m_cuda)},
    {"xpu", FAST(m_xpu)},
    {"type_as", m_type_as, METH_O, NULL},
    {"type", FAST(m_type)},
    {"item", m_item, METH_NOARGS, NULL},
    {"tolist", m_tolist, METH_NOARGS, NULL},
    {NULL},
};
PyMethodDef em_py_convert_functions[] = {{"_parse_to", FAST(parse_to)}, {NULL}};
