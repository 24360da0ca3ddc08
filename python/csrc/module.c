// module.c: ember._C: brings the pieces of the bridge up, in the order in which they need each other.
#include "bridge.h"
#include "backend/cpu/lib_path.h"
#include "core/environment.h"
#include "ops/attention.h"

static PyObject *get_num_threads(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLong(em_threads_get());
}
static PyObject *set_num_threads(PyObject *Py_UNUSED(m), PyObject *v) {
  if (!PyLong_Check(v))
    return PyErr_Format(PyExc_RuntimeError, "set_num_threads expects an int, but got %s", Py_TYPE(v)->tp_name);
  long n = PyLong_AsLong(v);
  if (n == -1 && PyErr_Occurred()) return NULL;
  em_status st = n < 1 || n > 4096 ? em_fail(EM_ERR_RUNTIME, "set_num_threads expects a positive integer")
                                   : em_threads_set((int)n);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *live_objects(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  static const char *const names[] = {
#define X(n) #n,
      EM_KIND_LIST(X)
#undef X
  };
  PyObject *d = PyDict_New();
  for (int i = 0; d != NULL && i < EM_KIND_COUNT; i++) {
    PyObject *n = PyLong_FromLongLong(em_alloc_live(i));
    if (n == NULL || PyDict_SetItemString(d, names[i], n) < 0) Py_CLEAR(d);
    Py_XDECREF(n);
  }
  return d;
}
static PyObject *memory_stats(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_alloc_stats s;
  em_alloc_get_stats(&s);
  return Py_BuildValue("{sLsLsLsLsLsL}", "bytes_live", (long long)s.bytes_live, "bytes_peak", (long long)s.bytes_peak,
                       "bytes_cached", (long long)s.bytes_cached, "requests", (long long)s.requests, "reused",
                       (long long)s.reused, "from_system", (long long)s.from_system);
}
static PyObject *reset_peak(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_alloc_reset_peak();
  Py_RETURN_NONE;
}
static PyObject *empty_cache(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_alloc_empty_cache();
  Py_RETURN_NONE;
}
static PyObject *fault_countdown(PyObject *Py_UNUSED(m), PyObject *v) {
  int64_t n;
  if (em_py_to_int64(v, &n) < 0) return NULL;
  return PyLong_FromLongLong(em_priv_fault_countdown(n));
}

static PyObject *add_library_folder(PyObject *Py_UNUSED(m), PyObject *v) {
  const char *folder = PyUnicode_AsUTF8(v);
  if (folder == NULL) return NULL;
  em_status st = em_priv_lib_add_folder(folder);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}

// Bits of ops/attention.h; torch.nn.attention and torch.backends.cuda give them PyTorch's names.
static PyObject *sdp_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) { return PyLong_FromLong(em_priv_sdp_enabled()); }
static PyObject *sdp_enable(PyObject *Py_UNUSED(m), PyObject *args) {
  int which, on;
  if (!PyArg_ParseTuple(args, "ip", &which, &on)) return NULL;
  em_priv_sdp_enable(which, on != 0);
  Py_RETURN_NONE;
}

// (type, module): a static type of the bridge says from now on that it lives in that module. The name is kept for ever, as the type is.
static PyObject *rename_type(PyObject *Py_UNUSED(m), PyObject *args) {
  PyTypeObject *type;
  const char *module;
  if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &module)) return NULL;
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) return PyErr_Format(PyExc_TypeError, "_rename_type: %s has __module__", type->tp_name);
  const char *dot = strrchr(type->tp_name, '.');
  PyObject *text = PyUnicode_FromString(module);
  int failed = text == NULL || PyDict_SetItemString(type->tp_dict, "__module__", text) < 0;  // what instances answer
  Py_XDECREF(text);
  if (failed) return NULL;
  char *name;
  if (asprintf(&name, "%s.%s", module, dot == NULL ? type->tp_name : dot + 1) < 0) return PyErr_NoMemory();
  type->tp_name = name;  // what the type itself answers
  PyType_Modified(type);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_rename_type", rename_type, METH_VARARGS, NULL},
    {"_add_library_folder", add_library_folder, METH_O,
     "A folder in which OpenBLAS and oneDNN are looked for when first needed."},
    {"get_num_threads", get_num_threads, METH_NOARGS, NULL},
    {"set_num_threads", set_num_threads, METH_O, NULL},
    {"_sdp_enabled", sdp_enabled, METH_NOARGS, NULL},
    {"_sdp_enable", sdp_enable, METH_VARARGS, NULL},
    {"_live_objects", live_objects, METH_NOARGS, "Live core objects by kind."},
    {"_memory_stats", memory_stats, METH_NOARGS, NULL},
    {"_reset_peak_memory", reset_peak, METH_NOARGS, NULL},
    {"_empty_cache", empty_cache, METH_NOARGS, NULL},
    {"_fault_countdown", fault_countdown, METH_O,
     "The n-th allocation from now fails; 0 disarms. Returns requests since the last call."},
    {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ember._C",
                                        "Ember's bridge between Python and its core.", -1, functions};

PyMODINIT_FUNC PyInit__C(void) {
  static int (*const parts[])(PyObject *) = {
      em_py_errors_init,    em_py_types_init,     em_py_device_init, em_py_size_init,    em_py_override_init,
      em_py_tensor_init,    em_py_functions_init, em_py_buffer_init, em_py_factory_init, em_py_storage_init,
      em_py_generator_init, em_py_autograd_init,  em_py_node_init,   em_py_ctx_init,     em_py_dispatch_init,
      em_py_shared_init,    em_py_files_init,     em_py_unpickle_init, em_py_profile_init,   em_py_fall_init,
      em_py_lights_init,    em_py_help_init};
  PyObject *m = PyModule_Create(&definition);
  if (m == NULL) return NULL;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i](m) < 0) {
      Py_DECREF(m);
      return NULL;
    }
  if (em_py_number_init() < 0 || PyModule_AddStringConstant(m, "_ember_version", EM_VERSION) < 0) Py_CLEAR(m);
  em_status st = em_environment_check();
  if (m != NULL && st != EM_OK) {
    (void)em_py_raise(st);
    Py_CLEAR(m);
  }
  return m;
}
