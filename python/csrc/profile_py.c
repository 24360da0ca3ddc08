// profile_py.c: recordings of the dispatcher (dispatch/profile.c) as Python sees them; ember.autograd.profiler is over these.
#include "bridge.h"
#include "dispatch/profile.h"

static PyObject *start(PyObject *Py_UNUSED(m), PyObject *args) {
  int shapes, memory;
  if (!PyArg_ParseTuple(args, "pp", &shapes, &memory)) return NULL;
  em_status st = em_profile_start(shapes, memory);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *event_tuple(const em_profile_event *e) {
  const em_operator *op = e->op;
  PyObject *name = op == NULL ? PyUnicode_FromString(e->name) : PyUnicode_FromFormat("%s::%s", op->ns, op->name);
  if (name == NULL) return NULL;
  return Py_BuildValue("(NzLLiLz)", name, op == NULL ? NULL : op->overload, (long long)e->begin, (long long)e->end,
                       e->thread, (long long)e->bytes, e->shapes);
}
static PyObject *stop(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_profile_event *events;
  int64_t n;
  em_profile_stop(&events, &n);
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (int64_t i = 0; list != NULL && i < n; i++) {
    PyObject *e = event_tuple(&events[i]);
    if (e == NULL) Py_CLEAR(list);
    else PyList_SET_ITEM(list, (Py_ssize_t)i, e);
  }
  em_profile_free(events, n);
  return list;
}
static PyObject *active(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) { return PyBool_FromLong(em_profile_active()); }
static PyObject *now(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLongLong(em_profile_now());
}
static PyObject *range(PyObject *Py_UNUSED(m), PyObject *args) {
  const char *name;
  long long begin;
  if (!PyArg_ParseTuple(args, "sL", &name, &begin)) return NULL;
  em_status st = em_profile_range(name, begin);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_profile_start", start, METH_VARARGS, "_profile_start(shapes, memory): begins a recording."},
    {"_profile_stop", stop, METH_NOARGS, "Ends it: [(name, overload or None, begin, end, thread, bytes, shapes or None)]."},
    {"_profile_active", active, METH_NOARGS, NULL},
    {"_profile_now", now, METH_NOARGS, "Nanoseconds, for _profile_range."},
    {"_profile_range", range, METH_VARARGS, "_profile_range(name, begin): a range of the user's that ends now."},
    {NULL}};

int em_py_profile_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
