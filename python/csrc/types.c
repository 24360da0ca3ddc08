// types.c: dtype, layout and memory_format objects. They print as PyTorch prints them ("torch.float32"), because
// programs compare and parse those strings; they pickle by name in the module `ember`.
#include "bridge.h"

static em_py_enum *dtypes[EM_NUM_DTYPES];
static em_py_enum *strided, *formats[4];
static const char *const format_names[4] = {"contiguous_format", "preserve_format", "channels_last",
                                            "channels_last_3d"};

static PyObject *enum_repr(PyObject *o) { return PyUnicode_FromFormat("torch.%s", ((em_py_enum *)o)->name); }
static PyObject *enum_reduce(PyObject *o, PyObject *Py_UNUSED(none)) {
  return PyUnicode_FromString(((em_py_enum *)o)->name);
}
static PyObject *enum_copy(PyObject *o, PyObject *Py_UNUSED(memo)) { return Py_NewRef(o); }
static PyObject *enum_module(PyObject *Py_UNUSED(o), void *Py_UNUSED(c)) { return PyUnicode_FromString("ember"); }

static PyMethodDef enum_methods[] = {
    {"__reduce__", enum_reduce, METH_NOARGS, NULL},
    {"__copy__", enum_copy, METH_NOARGS, NULL},
    {"__deepcopy__", enum_copy, METH_O, NULL},
    {NULL},
};

#define DTYPE(o) (((em_py_enum *)(o))->value)
static PyObject *dtype_is_floating(PyObject *o, void *Py_UNUSED(c)) {
  return PyBool_FromLong(em_dtype_is_float(DTYPE(o)));
}
static PyObject *dtype_is_complex(PyObject *o, void *Py_UNUSED(c)) {
  return PyBool_FromLong(em_dtype_is_complex(DTYPE(o)));
}
static PyObject *dtype_is_signed(PyObject *o, void *Py_UNUSED(c)) {
  return PyBool_FromLong(DTYPE(o) != EM_U8 && DTYPE(o) != EM_BOOL);
}
static PyObject *dtype_itemsize(PyObject *o, void *Py_UNUSED(c)) { return PyLong_FromSize_t(em_dtype_size(DTYPE(o))); }
static PyObject *dtype_name(PyObject *o, void *Py_UNUSED(c)) { return PyUnicode_FromString(((em_py_enum *)o)->name); }
static PyObject *dtype_code(PyObject *o, void *Py_UNUSED(c)) { return PyLong_FromLong(em_priv_dtypes[DTYPE(o)].code); }
static PyObject *dtype_storage(PyObject *o, void *Py_UNUSED(c)) {
  return PyUnicode_FromString(em_priv_dtypes[DTYPE(o)].storage);
}
static PyObject *dtype_np(PyObject *o, void *Py_UNUSED(c)) {
  const char *np = em_priv_dtypes[DTYPE(o)].np;
  if (np == NULL) Py_RETURN_NONE;
  return PyUnicode_FromString(np);
}
static PyObject *dtype_abbr(PyObject *o, void *Py_UNUSED(c)) {
  const em_dtype_info *i = &em_priv_dtypes[DTYPE(o)];
  static const char letters[] = {
      [EM_CLASS_BOOL] = 'b', [EM_CLASS_INT] = 'i', [EM_CLASS_FLOAT] = 'f', [EM_CLASS_COMPLEX] = 'c'};
  if (DTYPE(o) == EM_BOOL) return PyUnicode_FromString("b8");
  if (DTYPE(o) == EM_BF16) return PyUnicode_FromString("bf16");
  if (DTYPE(o) == EM_U8) return PyUnicode_FromString("u8");
  return PyUnicode_FromFormat("%c%d", letters[i->cls], i->size * 8);
}
static PyObject *dtype_to_real(PyObject *o, PyObject *Py_UNUSED(none)) {
  return em_py_dtype_new_ref(em_dtype_to_real(DTYPE(o)));
}
static PyObject *dtype_to_complex(PyObject *o, PyObject *Py_UNUSED(none)) {
  return em_py_dtype_new_ref(em_dtype_to_complex(DTYPE(o)));
}

static PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating},
    {"is_complex", dtype_is_complex},
    {"is_signed", dtype_is_signed},
    {"itemsize", dtype_itemsize},
    {"abbr", dtype_abbr},
    {"__module__", enum_module},
    {"__name__", dtype_name},
    {"_code", dtype_code},
    {"_storage_name", dtype_storage},
    {"_np", dtype_np},
    {NULL},
};
static PyMethodDef dtype_methods[] = {
    {"to_real", dtype_to_real, METH_NOARGS, NULL},  {"to_complex", dtype_to_complex, METH_NOARGS, NULL},
    {"__reduce__", enum_reduce, METH_NOARGS, NULL}, {"__copy__", enum_copy, METH_NOARGS, NULL},
    {"__deepcopy__", enum_copy, METH_O, NULL},      {NULL},
};
static PyGetSetDef enum_getset[] = {{"__module__", enum_module}, {NULL}};

#define ENUM_TYPE(var, text, getset, methods)                                                                          \
  PyTypeObject var = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = text,                                                   \
                      .tp_basicsize = sizeof(em_py_enum),                                                              \
                      .tp_repr = enum_repr,                                                                            \
                      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,                              \
                      .tp_getset = getset,                                                                             \
                      .tp_methods = methods}
ENUM_TYPE(em_py_dtype_type, "ember.dtype", dtype_getset, dtype_methods);
ENUM_TYPE(em_py_layout_type, "ember.layout", enum_getset, enum_methods);
ENUM_TYPE(em_py_memory_format_type, "ember.memory_format", enum_getset, enum_methods);

PyObject *em_py_dtype_new_ref(int dtype) { return Py_NewRef(dtype < 0 ? Py_None : (PyObject *)dtypes[dtype]); }
PyObject *em_py_layout_new_ref(void) { return Py_NewRef((PyObject *)strided); }
PyObject *em_py_memory_format_new_ref(int format) {
  return Py_NewRef(format < 0 ? Py_None : (PyObject *)formats[format]);
}

bool em_py_is_dtype(PyObject *o) {
  return Py_TYPE(o) == &em_py_dtype_type || o == (PyObject *)&PyFloat_Type || o == (PyObject *)&PyLong_Type ||
         o == (PyObject *)&PyBool_Type || o == (PyObject *)&PyComplex_Type;
}
int em_py_to_dtype(PyObject *o) {
  if (o == (PyObject *)&PyFloat_Type) return EM_F64;
  if (o == (PyObject *)&PyLong_Type) return EM_I64;
  if (o == (PyObject *)&PyBool_Type) return EM_BOOL;
  if (o == (PyObject *)&PyComplex_Type) return EM_C128;
  return DTYPE(o);
}

static em_py_enum *make(PyTypeObject *type, int value, const char *name) {
  em_py_enum *e = PyObject_New(em_py_enum, type);
  if (e != NULL) {
    e->value = value;
    e->name = name;
  }
  return e;
}

int em_py_types_init(PyObject *module) {
  PyTypeObject *types[] = {&em_py_dtype_type, &em_py_layout_type, &em_py_memory_format_type};
  static const char *const names[] = {"dtype", "layout", "memory_format"};
  for (int i = 0; i < 3; i++)
    if (PyType_Ready(types[i]) < 0 || PyModule_AddObjectRef(module, names[i], (PyObject *)types[i]) < 0) return -1;
  for (int i = 0; i < EM_NUM_DTYPES; i++) {
    if ((dtypes[i] = make(&em_py_dtype_type, i, em_dtype_name(i))) == NULL) return -1;
    if (PyModule_AddObjectRef(module, em_dtype_name(i), (PyObject *)dtypes[i]) < 0) return -1;
  }
  static const struct {
    const char *alias;
    int dtype;
  } aliases[] = {{"short", EM_I16}, {"int", EM_I32},    {"long", EM_I64},   {"half", EM_F16},
                 {"float", EM_F32}, {"double", EM_F64}, {"cfloat", EM_C64}, {"cdouble", EM_C128}};
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (PyModule_AddObjectRef(module, aliases[i].alias, (PyObject *)dtypes[aliases[i].dtype]) < 0) return -1;
  for (int i = 0; i < 4; i++) {
    if ((formats[i] = make(&em_py_memory_format_type, i, format_names[i])) == NULL) return -1;
    if (PyModule_AddObjectRef(module, format_names[i], (PyObject *)formats[i]) < 0) return -1;
  }
  if ((strided = make(&em_py_layout_type, 0, "strided")) == NULL) return -1;
  return PyModule_AddObjectRef(module, "strided", (PyObject *)strided);
}
