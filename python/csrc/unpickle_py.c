// unpickle_py.c: src/serialize/unpickle.c building Python objects. Names, calls and storages are decided by functions
// that ember.serialization hands in; containers are made here, of exact types only.
#include "bridge.h"
#include "serialize/unpickle.h"

typedef struct hands {
  PyObject *global, *call, *make, *build, *persistent;  // borrowed from the caller
  PyObject *counter;                                    // collections.Counter
  int odd_keys;                                         // how many keys were of kinds that are easily made to collide
} hands;

static em_status got(PyObject *o, void **out) {
  *out = o;
  return o == NULL ? em_py_foreign() : EM_OK;
}
static em_status b_constant(void *context, char which, void **out) {
  return got(Py_NewRef(which == 'N' ? Py_None : which == 'T' ? Py_True : Py_False), out);
}
static em_status b_integer(void *context, int64_t v, void **out) { return got(PyLong_FromLongLong(v), out); }
static em_status b_big(void *context, const uint8_t *le, size_t n, void **out) {
  return got(_PyLong_FromByteArray(le, n, 1, 1), out);
}
static em_status b_real(void *context, double v, void **out) { return got(PyFloat_FromDouble(v), out); }
static em_status b_text(void *context, const char *p, size_t n, void **out) {
  return got(PyUnicode_DecodeUTF8(p, (Py_ssize_t)n, "surrogatepass"), out);
}
static em_status b_bytes(void *context, const uint8_t *p, size_t n, bool writable, void **out) {
  return got(writable ? PyByteArray_FromStringAndSize((const char *)p, (Py_ssize_t)n)
                      : PyBytes_FromStringAndSize((const char *)p, (Py_ssize_t)n), out);
}
static em_status b_empty(void *context, char which, void **out) {
  return got(which == '[' ? PyList_New(0) : which == '{' ? PyDict_New() : PySet_New(NULL), out);
}

// A key made of tuples in tuples is hashed by recursion: deep or repeatedly shared ones would end or hang the process.
static bool small_key(PyObject *o, int depth, int *budget) {
  if (--*budget < 0) return false;
  if (PyTuple_Check(o)) {
    if (depth == 0) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      if (!small_key(PyTuple_GET_ITEM(o, i), depth - 1, budget)) return false;
  }
  return true;  // a frozenset was made of checked members and keeps its hash
}
// Hashes of integers from 2^61 on and of complex numbers can be chosen: a dict of many equal ones takes for ever.
static bool collides(PyObject *key) {
  if (PyComplex_Check(key)) return true;
  int overflow = 0;
  long long v = PyLong_Check(key) ? PyLong_AsLongLongAndOverflow(key, &overflow) : 0;
  return overflow != 0 || v >= 1LL << 61 || v <= -(1LL << 61);
}
static em_status check_key(hands *h, PyObject *key) {
  int budget = 10000;
  if (collides(key) && ++h->odd_keys > 1000)
    return em_fail(EM_ERR_RUNTIME, "more than 1000 keys of dicts are integers beyond 2^61 or complex numbers");
  if (!PyTuple_Check(key) || small_key(key, 30, &budget)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "a key of a dict or set is a tuple of more than 30 levels or 10000 parts");
}
static em_status b_tuple(void *context, void **items, size_t n, char which, void **out) {
  PyObject *t = PyTuple_New((Py_ssize_t)n);
  if (t == NULL) return em_py_foreign();
  for (size_t i = 0; i < n; i++) PyTuple_SET_ITEM(t, i, Py_NewRef((PyObject *)items[i]));
  if (which == '(') return got(t, out);
  em_status st = EM_OK;
  for (size_t i = 0; i < n && st == EM_OK; i++) st = check_key(context, items[i]);
  if (st == EM_OK) st = got(PyFrozenSet_New(t), out);
  Py_DECREF(t);
  return st;
}

static em_status wrong_type(const char *what, PyObject *o) {
  PyErr_Format(PyExc_RuntimeError, "%s, but got %R", what, Py_TYPE(o));
  return em_py_foreign();
}
static em_status b_append(void *context, void *list, void **items, size_t n) {
  if (!PyList_CheckExact((PyObject *)list))
    return wrong_type(n == 1 ? "Can only append to lists" : "Can only extend lists", list);
  for (size_t i = 0; i < n; i++)
    if (PyList_Append(list, items[i]) < 0) return em_py_foreign();
  return EM_OK;
}
static em_status b_set_items(void *context, void *dict, void **pairs, size_t n) {
  hands *h = context;
  PyObject *d = dict;
  bool plain = PyDict_CheckExact(d);
  if (!plain && !PyODict_CheckExact(d) && (PyObject *)Py_TYPE(d) != h->counter)
    return wrong_type(n == 1 ? "Can only SETITEM for dict, collections.OrderedDict, collections.Counter"
                             : "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter", d);
  for (size_t i = 0; i < n; i++) {
    EM_PASS(check_key(h, pairs[2 * i]));
    int bad = plain ? PyDict_SetItem(d, pairs[2 * i], pairs[2 * i + 1]) : PyObject_SetItem(d, pairs[2 * i], pairs[2 * i + 1]);
    if (bad < 0) return em_py_foreign();
  }
  return EM_OK;
}
static em_status b_add(void *context, void *set, void **items, size_t n) {
  if (!PySet_CheckExact((PyObject *)set)) return wrong_type("Can only add to sets", set);
  for (size_t i = 0; i < n; i++) {
    EM_PASS(check_key(context, items[i]));
    if (PySet_Add(set, items[i]) < 0) return em_py_foreign();
  }
  return EM_OK;
}
static em_status b_global(void *context, const char *module, size_t nm, const char *name, size_t nn, void **out) {
  return got(PyObject_CallFunction(((hands *)context)->global, "s#s#", module, (Py_ssize_t)nm, name, (Py_ssize_t)nn), out);
}
static em_status b_text_of(void *context, void *object, const char **p, size_t *n) {
  Py_ssize_t size = 0;
  if (!PyUnicode_Check((PyObject *)object)) return wrong_type("STACK_GLOBAL requires str", object);
  if ((*p = PyUnicode_AsUTF8AndSize(object, &size)) == NULL) return em_py_foreign();
  *n = (size_t)size;
  return EM_OK;
}
static em_status b_call(void *context, void *function, void *args, void **out) {
  if (!PyTuple_CheckExact((PyObject *)args)) return wrong_type("Arguments of a call must be a tuple", args);
  return got(PyObject_CallFunctionObjArgs(((hands *)context)->call, function, args, NULL), out);
}
static em_status b_make(void *context, void *cls, void *args, void *kwargs, void **out) {
  if (!PyTuple_CheckExact((PyObject *)args)) return wrong_type("Arguments of a class must be a tuple", args);
  if (kwargs != NULL && !PyDict_CheckExact((PyObject *)kwargs)) return wrong_type("Keyword arguments must be a dict", kwargs);
  return got(PyObject_CallFunctionObjArgs(((hands *)context)->make, cls, args, kwargs == NULL ? Py_None : kwargs, NULL), out);
}
static em_status b_build(void *context, void *object, void *state) {
  PyObject *r = PyObject_CallFunctionObjArgs(((hands *)context)->build, object, state, NULL);
  Py_XDECREF(r);
  return r == NULL ? em_py_foreign() : EM_OK;
}
static em_status b_persistent(void *context, void *id, void **out) {
  return got(PyObject_CallOneArg(((hands *)context)->persistent, id), out);
}
static void *b_retain(void *context, void *o) { return Py_NewRef((PyObject *)o); }
static void b_release(void *context, void *o) { Py_DECREF((PyObject *)o); }

// _unpickle(buffer, offset, name, (global, call, make, build, persistent)) -> (object, where the pickle ends)
static PyObject *f_unpickle(PyObject *Py_UNUSED(m), PyObject *args) {
  Py_buffer view;
  Py_ssize_t offset;
  const char *name;
  hands h = {0};
  if (!PyArg_ParseTuple(args, "y*ns(OOOOO):_unpickle", &view, &offset, &name, &h.global, &h.call, &h.make, &h.build, &h.persistent))
    return NULL;
  PyObject *collections = PyImport_ImportModule("collections");
  h.counter = collections == NULL ? NULL : PyObject_GetAttrString(collections, "Counter");
  Py_XDECREF(collections);
  PyObject *result = NULL;
  if (h.counter != NULL && (offset < 0 || offset > view.len)) PyErr_SetString(PyExc_ValueError, "_unpickle: offset");
  else if (h.counter != NULL) {
    const em_pickle_builder b = {&h, b_constant, b_integer, b_big, b_real, b_text, b_bytes, b_empty, b_tuple, b_append,
                                 b_set_items, b_add, b_global, b_text_of, b_call, b_make, b_build, b_persistent,
                                 b_retain, b_release};
    void *o = NULL;
    size_t used = 0;
    em_status st = em_unpickle((const uint8_t *)view.buf + offset, (size_t)(view.len - offset), name, (uint64_t)offset, &b, &o, &used);
    result = st == EM_OK ? Py_BuildValue("(Nn)", (PyObject *)o, offset + (Py_ssize_t)used) : em_py_raise(st);
  }
  Py_XDECREF(h.counter);
  PyBuffer_Release(&view);
  return result;
}

// _pickle_rename(bytearray, from, to): in place
static PyObject *f_rename(PyObject *Py_UNUSED(m), PyObject *args) {
  Py_buffer view;
  const char *from, *to;
  if (!PyArg_ParseTuple(args, "w*ss:_pickle_rename", &view, &from, &to)) return NULL;
  em_status st = em_pickle_rename(view.buf, (size_t)view.len, from, to);
  PyBuffer_Release(&view);
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static em_status collect(void *context, const char *module, size_t nm, const char *name, size_t nn) {
  PyObject *pair = Py_BuildValue("(s#s#)", module, (Py_ssize_t)nm, name, (Py_ssize_t)nn);
  int bad = pair == NULL || PyList_Append(context, pair) < 0;
  Py_XDECREF(pair);
  return bad ? em_py_foreign() : EM_OK;
}
// _pickle_globals(buffer, offset, name) -> ([(module, name)], where the pickle ends)
static PyObject *f_globals(PyObject *Py_UNUSED(m), PyObject *args) {
  Py_buffer view;
  Py_ssize_t offset;
  const char *name;
  size_t used = 0;
  if (!PyArg_ParseTuple(args, "y*ns:_pickle_globals", &view, &offset, &name)) return NULL;
  PyObject *list = PyList_New(0);
  em_status st = list == NULL ? em_py_foreign() : EM_OK;
  if (st == EM_OK && (offset < 0 || offset > view.len)) st = em_fail(EM_ERR_VALUE, "_pickle_globals: offset");
  if (st == EM_OK)
    st = em_pickle_globals((const uint8_t *)view.buf + offset, (size_t)(view.len - offset), name, collect, list, &used);
  PyBuffer_Release(&view);
  if (st == EM_OK) return Py_BuildValue("(Nn)", list, offset + (Py_ssize_t)used);
  Py_XDECREF(list);
  return em_py_raise(st);
}

static PyMethodDef functions[] = {{"_unpickle", f_unpickle, METH_VARARGS, NULL},
                                  {"_pickle_rename", f_rename, METH_VARARGS, NULL},
                                  {"_pickle_globals", f_globals, METH_VARARGS, NULL},
                                  {NULL}};
int em_py_unpickle_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
