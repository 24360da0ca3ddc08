// storage_shared_py.c: shared storages as Python sees them; ember.multiprocessing is written over these functions.
#include "bridge.h"
#include "core/storage_shared.h"

static PyObject *give(em_status st, em_storage *s) {  // steals s
  if (st != EM_OK) return em_py_raise(st);
  PyObject *o = em_py_storage_of(s);
  em_storage_release(s);
  return o;
}
static int to_size(PyObject *o, size_t *out) {
  int64_t n;
  if (em_py_to_int64(o, &n) < 0) return -1;
  if (n < 0) {
    PyErr_SetString(PyExc_RuntimeError, "Storage size must not be negative");
    return -1;
  }
  *out = (size_t)n;
  return 0;
}

static PyObject *shared_new(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *size;
  const char *name = NULL;
  size_t n;
  em_storage *s = NULL;
  if (!PyArg_ParseTuple(args, "O|z", &size, &name) || to_size(size, &n) < 0) return NULL;
  em_status st = em_shared_new(n, name, &s);
  return give(st, s);
}
static PyObject *shared_open(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *offset, *size;
  int fd, fresh = 0;
  size_t at, n;
  em_storage *s = NULL;
  if (!PyArg_ParseTuple(args, "iOO|p", &fd, &offset, &size, &fresh)) return NULL;
  if (to_size(offset, &at) < 0 || to_size(size, &n) < 0) return NULL;
  em_status st = em_shared_open(fd, at, n, fresh, &s);
  return give(st, s);
}
static PyObject *shared_open_named(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *size;
  const char *name;
  size_t n;
  em_storage *s = NULL;
  if (!PyArg_ParseTuple(args, "sO", &name, &size) || to_size(size, &n) < 0) return NULL;
  em_status st = em_shared_open_named(name, n, &s);
  return give(st, s);
}
static PyObject *shared_move(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *o;
  const char *name = NULL;
  if (!PyArg_ParseTuple(args, "O|z", &o, &name)) return NULL;
  em_storage *s = em_py_to_storage(o);
  if (s == NULL) return NULL;
  em_status st = em_shared_move(s, name);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *shared_find(PyObject *Py_UNUSED(m), PyObject *o) {
  em_storage *s = em_py_to_storage(o);
  em_shared_place place;
  if (s == NULL) return NULL;
  if (!em_shared_find(s, &place)) Py_RETURN_NONE;
  return Py_BuildValue("(izn)", place.fd, place.name, (Py_ssize_t)place.offset);
}
static PyObject *shared_count(PyObject *Py_UNUSED(m), PyObject *o) {
  em_storage *s = em_py_to_storage(o);
  if (s == NULL) return NULL;
  em_shared_count(s);
  Py_RETURN_NONE;
}
static PyObject *shared_leave(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_shared_leave();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_shared_new", shared_new, METH_VARARGS, "_shared_new(nbytes, name=None): a storage in a new shared file."},
    {"_shared_open", shared_open, METH_VARARGS,
     "_shared_open(fd, offset, nbytes, fresh=False): the storage over a piece of an anonymous shared file."},
    {"_shared_open_named", shared_open_named, METH_VARARGS,
     "_shared_open_named(name, nbytes): the storage over a named shared file; takes over one count of its users."},
    {"_shared_move", shared_move, METH_VARARGS, "_shared_move(storage, name=None): moves its bytes to shared memory."},
    {"_shared_find", shared_find, METH_O, "_shared_find(storage): (fd or -1, name or None, offset), None if not shared."},
    {"_shared_count", shared_count, METH_O, "_shared_count(storage): one more process will open the named file."},
    {"_shared_leave", shared_leave, METH_NOARGS, "_shared_leave(): this process ends; its named files go unless used."},
    {NULL}};

int em_py_shared_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
