// compat.h: where CPython 3.9 to 3.13 differ. The rest of the bridge is written for 3.10.
#ifndef EMBER_CSRC_COMPAT_H
#define EMBER_CSRC_COMPAT_H
#include <Python.h>

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *em_py_new_ref(PyObject *o) {
  Py_INCREF(o);
  return o;
}
static inline PyObject *em_py_xnew_ref(PyObject *o) {
  Py_XINCREF(o);
  return o;
}
static inline int em_py_add_object_ref(PyObject *module, const char *name, PyObject *value) {
  if (value == NULL) return -1;  // with the exception that its maker left
  Py_INCREF(value);
  int failed = PyModule_AddObject(module, name, value);
  if (failed < 0) Py_DECREF(value);
  return failed;
}
#define Py_NewRef(o) em_py_new_ref((PyObject *)(o))
#define Py_XNewRef(o) em_py_xnew_ref((PyObject *)(o))
#define PyModule_AddObjectRef em_py_add_object_ref
#define PySet_CheckExact(o) (Py_TYPE(o) == &PySet_Type)
// A static type without tp_new under `object` cannot be called there either.
#define Py_TPFLAGS_DISALLOW_INSTANTIATION 0
#endif

// What a weak reference points at, as a new reference; NULL (without an exception) when it is gone.
static inline PyObject *em_py_weakref_get(PyObject *reference) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *o = NULL;
  if (PyWeakref_GetRef(reference, &o) < 0) PyErr_Clear();
  return o;
#else
  PyObject *o = PyWeakref_GET_OBJECT(reference);
  return o == Py_None ? NULL : Py_NewRef(o);
#endif
}

#endif
