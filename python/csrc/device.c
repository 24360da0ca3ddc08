// device.c: ember.device, and the default device that factories of this thread use (torch.set_default_device).
#include "bridge.h"

static PyObject *device_text(em_device d) {
  char buf[32];
  return PyUnicode_FromString(em_device_format(d, buf));
}
static PyObject *device_repr(PyObject *o) {
  em_device d = ((em_py_device *)o)->device;
  char buf[32];
  em_device bare = {d.type, -1};
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", em_device_format(bare, buf));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", em_device_format(bare, buf), d.index);
}
static PyObject *device_str(PyObject *o) { return device_text(((em_py_device *)o)->device); }

PyObject *em_py_device_new(em_device d) {
  em_py_device *o = PyObject_New(em_py_device, &em_py_device_type);
  if (o != NULL) o->device = d;
  return (PyObject *)o;
}

int em_py_to_device(PyObject *o, em_device *out) {
  if (Py_TYPE(o) == &em_py_device_type) {
    *out = ((em_py_device *)o)->device;
    return 0;
  }
  if (PyUnicode_Check(o)) {
    const char *s = PyUnicode_AsUTF8(o);
    if (s == NULL) return -1;
    em_status st = em_device_parse(s, out);
    return st == EM_OK ? 0 : em_py_raise_int(st);
  }
  if (em_py_is_int(o)) {
    long i = PyLong_AsLong(o);
    if (i == -1 && PyErr_Occurred()) return -1;
    PyErr_SetString(PyExc_RuntimeError, i < 0 ? "Device index must not be negative"
                                              : "Cannot access accelerator device when none is available.");
    return -1;
  }
  PyErr_Format(PyExc_TypeError, "device(): argument 'device' must be torch.device, not %s", Py_TYPE(o)->tp_name);
  return -1;
}

// PyTorch imports torch.<type> and wakes the device up before an operator or a conversion sees it; that is where a build without
// it says no. What is left is refused by em_device_check, or by the dispatcher.
int em_py_device_wake(em_device d, const char *made_by) {
  char buf[32];
  if (d.type == EM_DEVICE_CPU || d.type == EM_DEVICE_META || d.type < 0) return 0;
  const char *type = em_device_format((em_device){d.type, -1}, buf);
  if (strcmp(type, "cuda") == 0) PyErr_SetString(PyExc_AssertionError, "Torch not compiled with CUDA enabled");
  else if (strcmp(type, "xpu") == 0) PyErr_SetString(PyExc_AssertionError, "Torch not compiled with XPU enabled");
  else if (strcmp(type, "mtia") == 0)
    PyErr_SetString(PyExc_AssertionError,
                    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in "
                    "your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!");
  else if (strcmp(type, "hpu") == 0 || strcmp(type, "privateuseone") == 0)
    PyErr_Format(PyExc_ModuleNotFoundError, "No module named 'torch.%s'", type);
  else if (made_by == NULL) return em_py_raise_int(em_device_check(d));
  else {
    char shown[32];
    snprintf(shown, sizeof shown, "%s", type);
    if (strcmp(type, "vulkan") == 0 || strcmp(type, "lazy") == 0) shown[0] = (char)(shown[0] - 'a' + 'A');
    else
      for (char *c = shown; *c != 0; c++) *c = (char)(*c - 'a' + 'A');
    PyErr_Format(PyExc_NotImplementedError,
                 "Could not run '%s' with arguments from the '%s' backend. '%s' is only available for these backends: [CPU, Meta].",
                 made_by, shown, made_by);
  }
  return -1;
}

// The words of PyTorch's parser for device(...) with nothing or with something else at the start.
static PyObject *no_such_device(PyObject *args, PyObject *type) {
  if (PyTuple_GET_SIZE(args) > 1) return PyErr_Format(PyExc_TypeError, "device(): argument 'type' (position 1) must be str, not %s",
                                                      Py_TYPE(type)->tp_name);
  const char *given = type == NULL ? "" : Py_TYPE(type)->tp_name;
  PyObject *why = type == NULL ? PyUnicode_FromString("")
                               : PyUnicode_FromFormat("      didn't match because some of the arguments have invalid types: (!%s!)\n",
                                                      given);
  if (why != NULL)
    PyErr_Format(PyExc_TypeError,
                 "device() received an invalid combination of arguments - got (%s), but expected one of:\n"
                 " * (torch.device device)\n%U * (str type, int index = -1)\n",
                 given, why);
  Py_XDECREF(why);
  return NULL;
}

static PyObject *device_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kw) {
  static char *names[] = {"type", "index", NULL};
  PyObject *type, *index = Py_None;
  if (PyTuple_GET_SIZE(args) == 0 && (kw == NULL || PyDict_GET_SIZE(kw) == 0)) return no_such_device(args, NULL);
  if (kw != NULL && PyDict_GetItemString(kw, "device") != NULL) names[0] = "device";
  else names[0] = "type";
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O:device", names, &type, &index)) return NULL;
  em_device d;
  if (!PyUnicode_Check(type) && Py_TYPE(type) != &em_py_device_type && !em_py_is_int(type)) return no_such_device(args, type);
  if (em_py_to_device(type, &d) < 0) return NULL;
  if (index != Py_None && !em_py_is_int(index))
    return PyErr_Format(PyExc_TypeError, "device(): argument 'index' (position 2) must be int, not %s", Py_TYPE(index)->tp_name);
  if (index != Py_None) {
    long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (d.index >= 0)
      return PyErr_Format(PyExc_RuntimeError,
                          "type (string) must not include an index because index "
                          "was passed explicitly: %U",
                          type);
    if (i < 0 || i > 127) {
      PyErr_SetString(PyExc_RuntimeError, "Device index must not be negative");
      return NULL;
    }
    d.index = (int8_t)i;
  }
  return em_py_device_new(d);
}

static PyObject *device_compare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(a) != &em_py_device_type || Py_TYPE(b) != &em_py_device_type || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  bool same = em_device_equal(((em_py_device *)a)->device, ((em_py_device *)b)->device);
  return PyBool_FromLong(same == (op == Py_EQ));
}
static Py_hash_t device_hash(PyObject *o) {
  em_device d = ((em_py_device *)o)->device;
  return (Py_hash_t)(((uint8_t)d.type << 8) | (uint8_t)d.index) + 1;
}
static PyObject *device_get_type(PyObject *o, void *Py_UNUSED(c)) {
  return device_text((em_device){((em_py_device *)o)->device.type, -1});
}
static PyObject *device_get_index(PyObject *o, void *Py_UNUSED(c)) {
  int i = ((em_py_device *)o)->device.index;
  if (i < 0) Py_RETURN_NONE;
  return PyLong_FromLong(i);
}
static PyObject *device_reduce(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_device d = ((em_py_device *)o)->device;
  char buf[32];
  em_device bare = {d.type, -1};
  if (d.index < 0) return Py_BuildValue("(O(s))", Py_TYPE(o), em_device_format(bare, buf));
  return Py_BuildValue("(O(si))", Py_TYPE(o), em_device_format(bare, buf), d.index);
}

// --- the default device, and `with device:`. The devices that a block replaced wait in a list of this thread.
static _Thread_local struct {
  em_device stack[64];
  int n;
} entered;

em_device em_py_default_device(void) {
  em_device d = em_priv_py_tls.default_device;
  return d.type == 0 && d.index == 0 ? EM_DEVICE_NONE : d;  // zeroed TLS: none was set
}
static void set_default(em_device d) {
  em_priv_py_tls.default_device = d.type == EM_DEVICE_CPU ? (em_device){0, 0} : d;
}
static PyObject *device_enter(PyObject *o, PyObject *Py_UNUSED(none)) {
  if (entered.n == 64) {
    PyErr_SetString(PyExc_RuntimeError, "default devices are nested too deeply");
    return NULL;
  }
  entered.stack[entered.n++] = em_priv_py_tls.default_device;
  set_default(((em_py_device *)o)->device);
  return Py_NewRef(o);
}
static PyObject *device_exit(PyObject *Py_UNUSED(o), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n)) {
  if (entered.n > 0) em_priv_py_tls.default_device = entered.stack[--entered.n];
  Py_RETURN_NONE;
}
static PyObject *set_default_device(PyObject *Py_UNUSED(m), PyObject *o) {
  em_device d = {EM_DEVICE_CPU, -1};
  if (o != Py_None && em_py_to_device(o, &d) < 0) return NULL;
  set_default(d);
  Py_RETURN_NONE;
}
static PyObject *get_default_device(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_device d = em_py_default_device();
  return em_py_device_new(d.type < 0 ? (em_device){EM_DEVICE_CPU, -1} : d);
}

static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void *)device_exit, METH_FASTCALL, NULL},
    {NULL},
};
static PyGetSetDef device_getset[] = {{"type", device_get_type}, {"index", device_get_index}, {NULL}};
PyTypeObject em_py_device_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember.device",
    .tp_basicsize = sizeof(em_py_device),
    .tp_repr = device_repr,
    .tp_str = device_str,
    .tp_new = device_new,
    .tp_richcompare = device_compare,
    .tp_hash = device_hash,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = device_methods,
    .tp_getset = device_getset,
};

static PyMethodDef functions[] = {
    {"_set_default_device", set_default_device, METH_O, NULL},
    {"_get_default_device", get_default_device, METH_NOARGS, NULL},
    {NULL},
};

int em_py_device_init(PyObject *module) {
  if (PyType_Ready(&em_py_device_type) < 0) return -1;
  if (PyModule_AddObjectRef(module, "device", (PyObject *)&em_py_device_type) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
