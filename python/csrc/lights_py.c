// lights_py.c: what ember.memory.snapshot and python -m ember.info tell: live storages and where they were made, the build.
#include "bridge.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/lib_blas.h"
#include "backend/cpu/lib_onednn.h"
#include "core/storage.h"

// ---------------------------------------------------------------- live storages
#define MAX_FRAMES 16
static PyObject *made;   // dict: address of a storage -> ((file, line, function), ...), innermost first
static bool with_frames;

static PyObject *frames_now(void) {
  PyObject *l = PyList_New(0);
  PyFrameObject *f = with_frames ? PyEval_GetFrame() : NULL;  // borrowed
  Py_XINCREF(f);
  for (int i = 0; l != NULL && f != NULL && i < MAX_FRAMES; i++) {
    PyCodeObject *code = PyFrame_GetCode(f);
    PyObject *row = Py_BuildValue("(OiO)", code->co_filename, PyFrame_GetLineNumber(f), code->co_name);
    if (row == NULL || PyList_Append(l, row) < 0) Py_CLEAR(l);
    Py_XDECREF(row);
    Py_DECREF(code);
    Py_SETREF(f, PyFrame_GetBack(f));
  }
  Py_XDECREF(f);
  return l;
}
// Storages come and go on any thread, and while exceptions are pending: neither may be disturbed.
static void watch(em_storage *s, bool is_new) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *key = made == NULL ? NULL : PyLong_FromVoidPtr(s);
  if (key != NULL && is_new) {
    PyObject *frames = frames_now();
    if (frames != NULL) (void)PyDict_SetItem(made, key, frames);
    Py_XDECREF(frames);
  } else if (key != NULL && PyDict_Contains(made, key) > 0) {
    (void)PyDict_DelItem(made, key);
  }
  Py_XDECREF(key);
  PyErr_Clear();  // without memory an entry is missing: a history must not fail what it watches
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(gil);
}
static PyObject *history(PyObject *Py_UNUSED(m), PyObject *args) {  // (on, with frames)
  int on, frames;
  if (!PyArg_ParseTuple(args, "pp:_memory_history", &on, &frames)) return NULL;
  with_frames = frames;
  if (on && made == NULL) {
    made = PyDict_New();
    if (made == NULL) return NULL;
  }
  em_priv_storage_watch = on ? watch : NULL;
  if (!on) Py_CLEAR(made);
  Py_RETURN_NONE;
}
static PyObject *storages(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  if (made == NULL) Py_RETURN_NONE;
  PyObject *l = PyList_New(0), *all = PyDict_Items(made);  // a copy: what follows makes objects
  for (Py_ssize_t i = 0; l != NULL && all != NULL && i < PyList_GET_SIZE(all); i++) {
    PyObject *item = PyList_GET_ITEM(all, i), *key = PyTuple_GET_ITEM(item, 0);
    if (PyDict_Contains(made, key) <= 0) continue;
    const em_storage *s = PyLong_AsVoidPtr(key);
    PyObject *row = Py_BuildValue("(OnnisO)", key, (Py_ssize_t)s->nbytes, (Py_ssize_t)s->capacity, (int)atomic_load(&s->rc),
                                  s->flags & EM_STORAGE_SHARED ? "shared" : s->deleter != NULL ? "borrowed" :
                                  s->device.type == EM_DEVICE_META ? "meta" : "own", PyTuple_GET_ITEM(item, 1));
    if (row == NULL || PyList_Append(l, row) < 0) Py_CLEAR(l);
    Py_XDECREF(row);
  }
  Py_XDECREF(all);
  return l;
}

// ---------------------------------------------------------------- the build
static PyObject *build(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  static const char *const isa[] = {"baseline", "avx2", "avx512"};
  const int chosen = em_priv_isa_choose();
#if defined(__clang__)
  const char *compiler = "clang " __clang_version__;
#else
  const char *compiler = "gcc " __VERSION__;
#endif
#ifdef EM_SANITIZE
  const int sanitized = 1;
#else
  const int sanitized = 0;
#endif
  return Py_BuildValue("{sssssisi}", "compiler", compiler, "isa", isa[chosen], "sanitized", sanitized, "operators",
                       (int)em_operator_count());
}
// Opens the math libraries, as the first operator that wants them would: {name: "file (version)" or None}.
static PyObject *libraries(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  (void)em_priv_blas();
  (void)em_priv_onednn_likes(EM_BF16);
  return Py_BuildValue("{szsz}", "OpenBLAS", em_priv_lib_found("OpenBLAS"), "oneDNN", em_priv_lib_found("oneDNN"));
}

static PyMethodDef functions[] = {
    {"_memory_history", history, METH_VARARGS, "_memory_history(on, frames): notes storages that are made from now on."},
    {"_memory_storages", storages, METH_NOARGS,
     "[(address, bytes, capacity, references, kind, frames)] of those that live; None without a history."},
    {"_build_info", build, METH_NOARGS, NULL},
    {"_library_info", libraries, METH_NOARGS, NULL},
    {NULL}};

int em_py_lights_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
