// override.c: the __torch_function__ protocol. It is asked before anything else, costs one bit test for each argument
// when nobody overrides, and follows NumPy's rules: subclasses before their bases, left before right.
#include "bridge.h"

_Thread_local em_py_tls em_priv_py_tls __attribute__((tls_model("initial-exec")));

static PyObject *s_torch_function, *s_torch_dispatch;

bool em_py_has_override(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
  if (type->tp_flags & EM_TP_TENSOR) return (type->tp_flags & EM_TP_FUNCTION) != 0;
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyTuple_Type || type == &PyList_Type ||
      type == &PyUnicode_Type || type == &PyBool_Type || o == Py_None || type == &PyDict_Type ||
      type == &PySlice_Type || type == &em_py_dtype_type || type == &em_py_device_type || type == &em_py_size_type ||
      PyType_Check(o))
    return false;
  return _PyType_Lookup(type, s_torch_function) != NULL;
}

static bool list_override(PyObject *o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
    if (em_py_has_override(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

bool em_py_any_override(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (EM_UNLIKELY(em_priv_py_tls.function_modes > 0) && em_priv_py_tls.function_disabled < 2) return true;
  if (em_priv_py_tls.function_disabled) return false;
  if (self != NULL && em_py_has_override(self)) return true;
  Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  for (Py_ssize_t i = 0; i < all; i++)
    if (em_py_has_override(args[i]) || list_override(args[i])) return true;
  return false;
}

// ---------------------------------------------------------------- collecting
typedef struct overloaded {
  PyObject *args;
  PyObject *types;
} overloaded;  // lists, one entry a type

static int add_overloaded(overloaded *o, PyObject *arg) {
  if (!em_py_has_override(arg)) return 0;
  PyObject *type = (PyObject *)Py_TYPE(arg);
  Py_ssize_t at = PyList_GET_SIZE(o->types);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o->types); i++) {
    PyTypeObject *other = (PyTypeObject *)PyList_GET_ITEM(o->types, i);
    if ((PyObject *)other == type) return 0;
    if (at == PyList_GET_SIZE(o->types) && PyType_IsSubtype((PyTypeObject *)type, other)) at = i;  // before its base
  }
  return PyList_Insert(o->types, at, type) < 0 || PyList_Insert(o->args, at, arg) < 0 ? -1 : 0;
}
static int add_all(overloaded *o, PyObject *arg) {
  if (add_overloaded(o, arg) < 0) return -1;
  if (PyTuple_Check(arg) || PyList_Check(arg))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(arg); i++)
      if (add_overloaded(o, PySequence_Fast_GET_ITEM(arg, i)) < 0) return -1;
  return 0;
}

static PyObject *call_one(PyObject *handler, PyObject *func, PyObject *types, PyObject *args, PyObject *kw) {
  return PyObject_CallFunctionObjArgs(handler, func, types, args, kw == NULL ? Py_None : kw, NULL);
}

// The innermost mode handles the call with itself taken off the stack.
static PyObject *call_mode(PyObject *func, PyObject *types, PyObject *args, PyObject *kw) {
  PyObject *modes = em_priv_py_tls.modes;
  Py_ssize_t n = PyList_GET_SIZE(modes);
  PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, n - 1));
  if (PyList_SetSlice(modes, n - 1, n, NULL) < 0) {
    Py_DECREF(mode);
    return NULL;
  }
  em_priv_py_tls.function_modes--;
  PyObject *handler = PyObject_GetAttr(mode, s_torch_function), *r = NULL;
  PyObject *none = kw == NULL ? PyDict_New() : Py_NewRef(kw);
  if (handler != NULL && none != NULL) r = PyObject_CallFunctionObjArgs(handler, func, types, args, none, NULL);
  Py_XDECREF(none);
  Py_XDECREF(handler);
  if (PyList_Append(modes, mode) < 0) Py_CLEAR(r);
  else em_priv_py_tls.function_modes++;
  Py_DECREF(mode);
  return r;
}

static PyObject *no_override(PyObject *func, PyObject *types) {
  PyObject *name = PyObject_GetAttrString(func, "__name__"), *list = PyUnicode_FromString("");
  PyErr_Clear();
  for (Py_ssize_t i = 0; list != NULL && i < PyTuple_GET_SIZE(types); i++)
    PyUnicode_AppendAndDel(&list, PyUnicode_FromFormat("\n\n  - tensor subclass %R", PyTuple_GET_ITEM(types, i)));
  if (list != NULL)
    PyErr_Format(PyExc_TypeError,
                 "Multiple dispatch failed for 'torch.%S'; all __torch_function__ handlers returned NotImplemented:%U",
                 name != NULL ? name : func, list);
  Py_XDECREF(list);
  Py_XDECREF(name);
  return NULL;
}

static PyObject *dispatch_override(PyObject *func, PyObject *args, PyObject *kw, overloaded *o) {
  PyObject *types = PyList_AsTuple(o->types), *r = NULL;
  if (types == NULL) return NULL;
  if (em_priv_py_tls.function_modes > 0 && em_priv_py_tls.function_disabled < 2) {
    r = call_mode(func, types, args, kw);
    if (r != Py_NotImplemented) goto done;
    Py_CLEAR(r);
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o->args); i++) {
    PyObject *handler = PyObject_GetAttr(PyList_GET_ITEM(o->args, i), s_torch_function);
    r = handler == NULL ? NULL : call_one(handler, func, types, args, kw);
    Py_XDECREF(handler);
    if (r != Py_NotImplemented) goto done;
    Py_CLEAR(r);
  }
  r = no_override(func, types);
done:
  Py_DECREF(types);
  return r;
}

PyObject *em_py_handle_override(PyObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Py_ssize_t nkw = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
  overloaded o = {PyList_New(0), PyList_New(0)};
  PyObject *tuple = PyTuple_New(nargs), *kw = nkw ? PyDict_New() : NULL, *r = NULL;
  if (o.args == NULL || o.types == NULL || tuple == NULL || (nkw && kw == NULL)) goto done;
  for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < nkw; i++)
    if (PyDict_SetItem(kw, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) goto done;
  if (!em_priv_py_tls.function_disabled)
    for (Py_ssize_t i = 0; i < nargs + nkw; i++)
      if (add_all(&o, args[i]) < 0) goto done;
  r = dispatch_override(func, tuple, kw, &o);
done:
  Py_XDECREF(o.args);
  Py_XDECREF(o.types);
  Py_XDECREF(tuple);
  Py_XDECREF(kw);
  return r;
}

// ---------------------------------------------------------------- hand-written methods and attributes
static bool wants(PyObject *self) {
  if (EM_LIKELY(em_py_is_exact(self) && em_priv_py_tls.function_modes == 0)) return false;
  if (em_priv_py_tls.function_modes > 0 && em_priv_py_tls.function_disabled < 2) return true;
  return em_py_maybe_override(self) && !em_priv_py_tls.function_disabled;
}

bool em_py_override_method(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                           PyObject **out) {
  if (!wants(self)) return false;
  Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  *out = NULL;
  PyObject **with = PyMem_New(PyObject *, all + 1);
  if (with == NULL) {
    PyErr_NoMemory();
    return true;
  }
  with[0] = self;
  for (Py_ssize_t i = 0; i < all; i++) with[i + 1] = args[i];
  PyObject *func = PyObject_GetAttrString((PyObject *)em_py_tensor_class, name);
  if (func != NULL) *out = em_py_handle_override(func, with, nargs + 1, kwnames);
  Py_XDECREF(func);
  PyMem_Free(with);
  return true;
}

// `which` is "__get__", "__set__" or "__delete__" of the attribute's descriptor.
bool em_py_override_attr(PyObject *self, const char *name, const char *which, PyObject *value, PyObject **out) {
  if (!wants(self)) return false;
  *out = NULL;
  PyObject *d = PyObject_GetAttrString((PyObject *)em_py_tensor_class, name);
  PyObject *func = d == NULL ? NULL : PyObject_GetAttrString(d, which);
  Py_XDECREF(d);
  PyObject *args[2] = {self, value};
  if (func != NULL) *out = em_py_handle_override(func, args, value == NULL ? 1 : 2, NULL);
  Py_XDECREF(func);
  return true;
}

// ---------------------------------------------------------------- what overrides.py uses
static PyObject *push_mode(PyObject *Py_UNUSED(m), PyObject *mode) {
  if (em_priv_py_tls.modes == NULL && (em_priv_py_tls.modes = PyList_New(0)) == NULL) return NULL;
  if (PyList_Append(em_priv_py_tls.modes, mode) < 0) return NULL;
  em_priv_py_tls.function_modes++;
  Py_RETURN_NONE;
}
static PyObject *pop_mode(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  if (em_priv_py_tls.function_modes == 0) {
    PyErr_SetString(PyExc_IndexError, "the stack of function modes is empty");
    return NULL;
  }
  em_priv_py_tls.function_modes--;
  return PyObject_CallMethod(em_priv_py_tls.modes, "pop", NULL);
}
static PyObject *mode_depth(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLong(em_priv_py_tls.function_modes);
}
static PyObject *mode_at(PyObject *Py_UNUSED(m), PyObject *o) {
  Py_ssize_t i = PyLong_AsSsize_t(o);
  if (i == -1 && PyErr_Occurred()) return NULL;
  PyObject *r = em_priv_py_tls.modes == NULL ? NULL : PyList_GetItem(em_priv_py_tls.modes, i);
  if (r == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "no such function mode");
  return Py_XNewRef(r);
}
static PyObject *function_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(!em_priv_py_tls.function_disabled);
}
static PyObject *function_all_disabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_priv_py_tls.function_disabled == 2);
}
// (0: all on, 1: subclasses off, 2: modes off too) -> the former state. For the context managers of overrides.py.
static PyObject *set_disabled(PyObject *Py_UNUSED(m), PyObject *o) {
  long v = PyLong_AsLong(o);
  if (v == -1 && PyErr_Occurred()) return NULL;
  uint8_t was = em_priv_py_tls.function_disabled;
  em_priv_py_tls.function_disabled = (uint8_t)v;
  return PyLong_FromLong(was);
}
static PyObject *has_torch_function(PyObject *Py_UNUSED(m), PyObject *o) {
  PyObject *seq = PySequence_Fast(o, "expected a sequence");
  if (seq == NULL) return NULL;
  bool yes = em_py_any_override(NULL, PySequence_Fast_ITEMS(seq), PySequence_Fast_GET_SIZE(seq), NULL);
  Py_DECREF(seq);
  return PyBool_FromLong(yes);
}
static PyObject *has_torch_function_unary(PyObject *Py_UNUSED(m), PyObject *o) {
  return PyBool_FromLong(em_py_any_override(NULL, &o, 1, NULL));
}
static PyObject *has_torch_function_variadic(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t n) {
  return PyBool_FromLong(em_py_any_override(NULL, args, n, NULL));
}

// --- context managers DisableTorchFunctionSubclass (1) and DisableTorchFunction (2)
typedef struct disable_object {
  PyObject_HEAD uint8_t level, was;
} disable_object;
static PyTypeObject disable_subclass_type, disable_all_type;
static PyObject *disable_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kw)) {
  disable_object *d = (disable_object *)type->tp_alloc(type, 0);
  if (d != NULL) d->level = type == &disable_all_type ? 2 : 1;
  return (PyObject *)d;
}
static PyObject *disable_enter(PyObject *o, PyObject *Py_UNUSED(none)) {
  disable_object *d = (disable_object *)o;
  d->was = em_priv_py_tls.function_disabled;
  if (d->level > d->was) em_priv_py_tls.function_disabled = d->level;
  return Py_NewRef(o);
}
static PyObject *disable_exit(PyObject *o, PyObject *Py_UNUSED(args)) {
  em_priv_py_tls.function_disabled = ((disable_object *)o)->was;
  Py_RETURN_NONE;
}
static PyMethodDef disable_methods[] = {
    {"__enter__", disable_enter, METH_NOARGS, NULL}, {"__exit__", disable_exit, METH_VARARGS, NULL}, {NULL}};
static PyTypeObject disable_subclass_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C.DisableTorchFunctionSubclass",
    .tp_basicsize = sizeof(disable_object), .tp_new = disable_new, .tp_methods = disable_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT};
static PyTypeObject disable_all_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C.DisableTorchFunction",
                                        .tp_basicsize = sizeof(disable_object), .tp_new = disable_new,
                                        .tp_methods = disable_methods, .tp_flags = Py_TPFLAGS_DEFAULT};

static PyMethodDef functions[] = {
    {"_push_on_torch_function_stack", push_mode, METH_O, NULL},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, NULL},
    {"_len_torch_function_stack", mode_depth, METH_NOARGS, NULL},
    {"_get_function_stack_at", mode_at, METH_O, NULL},
    {"_is_torch_function_enabled", function_enabled, METH_NOARGS, NULL},
    {"_is_torch_function_all_disabled", function_all_disabled, METH_NOARGS, NULL},
    {"_set_torch_function_disabled", set_disabled, METH_O, NULL},
    {"_has_torch_function", has_torch_function, METH_O, NULL},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, NULL},
    {"_has_torch_function_variadic", (PyCFunction)(void *)has_torch_function_variadic, METH_FASTCALL, NULL},
    {NULL},
};

int em_py_override_init(PyObject *module) {
  s_torch_function = PyUnicode_InternFromString("__torch_function__");
  s_torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__");
  if (s_torch_function == NULL || s_torch_dispatch == NULL) return -1;
  if (PyType_Ready(&disable_subclass_type) < 0 || PyType_Ready(&disable_all_type) < 0) return -1;
  if (PyModule_AddObjectRef(module, "DisableTorchFunctionSubclass", (PyObject *)&disable_subclass_type) < 0) return -1;
  if (PyModule_AddObjectRef(module, "DisableTorchFunction", (PyObject *)&disable_all_type) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
