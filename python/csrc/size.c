// size.c: ember.Size, a tuple of ints that knows its product.
#include "bridge.h"

static PyObject *from_tuple(PyObject *t) {  // steals a tuple of ints
  if (t == NULL) return NULL;
  Py_ssize_t n = PyTuple_GET_SIZE(t);
  PyObject *s = em_py_size_type.tp_alloc(&em_py_size_type, n);
  for (Py_ssize_t i = 0; s != NULL && i < n; i++) PyTuple_SET_ITEM(s, i, Py_NewRef(PyTuple_GET_ITEM(t, i)));
  Py_DECREF(t);
  return s;
}

PyObject *em_py_ints_tuple(int ndim, const int64_t *v) {
  PyObject *t = PyTuple_New(ndim);
  for (int i = 0; t != NULL && i < ndim; i++) {
    PyObject *x = PyLong_FromLongLong(v[i]);
    if (x == NULL) {
      Py_DECREF(t);
      return NULL;
    }
    PyTuple_SET_ITEM(t, i, x);
  }
  return t;
}
PyObject *em_py_size_new(int ndim, const int64_t *sizes) {
  PyObject *s = em_py_size_type.tp_alloc(&em_py_size_type, ndim);
  for (int i = 0; s != NULL && i < ndim; i++) {
    PyObject *x = PyLong_FromLongLong(sizes[i]);
    if (x == NULL) {
      Py_DECREF(s);
      return NULL;
    }
    PyTuple_SET_ITEM(s, i, x);
  }
  return s;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kw) {
  PyObject *t = PyTuple_Type.tp_new(&PyTuple_Type, args, kw);
  if (t == NULL) return NULL;
  PyObject *s = type->tp_alloc(type, PyTuple_GET_SIZE(t));
  for (Py_ssize_t i = 0; s != NULL && i < PyTuple_GET_SIZE(t); i++) {
    PyObject *x = PyTuple_GET_ITEM(t, i), *n;
    if (PyLong_Check(x)) n = Py_NewRef(x);
    else if ((n = PyNumber_Index(x)) == NULL) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(x)->tp_name);
      Py_CLEAR(s);
      break;
    }
    PyTuple_SET_ITEM(s, i, n);
  }
  Py_DECREF(t);
  return s;
}

static PyObject *size_repr(PyObject *o) {
  PyObject *list = PySequence_List(o);
  if (list == NULL) return NULL;
  PyObject *r = PyUnicode_FromFormat("torch.Size(%R)", list);
  Py_DECREF(list);
  return r;
}
static PyObject *size_numel(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *r = PyLong_FromLong(1);
  for (Py_ssize_t i = 0; r != NULL && i < PyTuple_GET_SIZE(o); i++) {
    PyObject *x = PyNumber_Multiply(r, PyTuple_GET_ITEM(o, i));
    Py_SETREF(r, x);
  }
  return r;
}
static PyObject *size_concat(PyObject *a, PyObject *b) {
  if (!PyTuple_Check(b))
    return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", Py_TYPE(b)->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(b); i++)
    if (!PyLong_Check(PyTuple_GET_ITEM(b, i))) return PyTuple_Type.tp_as_sequence->sq_concat(a, b);
  return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
static PyObject *size_radd(PyObject *a, PyObject *b) {
  if (PyTuple_Check(a) && PyTuple_Check(b)) return size_concat(a, b);
  Py_RETURN_NOTIMPLEMENTED;
}
static PyObject *size_repeat(PyObject *o, Py_ssize_t n) {
  return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(o, n));
}
static PyObject *size_subscript(PyObject *o, PyObject *k) {
  PyObject *r = PyTuple_Type.tp_as_mapping->mp_subscript(o, k);
  return r != NULL && PySlice_Check(k) ? from_tuple(r) : r;
}
static PyObject *size_reduce(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *exact = PySequence_Tuple(o);
  return exact == NULL ? NULL : Py_BuildValue("(O(N))", Py_TYPE(o), exact);
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, NULL},
    {NULL},
};
static PySequenceMethods size_sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
static PyMappingMethods size_mapping = {.mp_subscript = size_subscript};
static PyNumberMethods size_number = {.nb_add = size_radd};
PyTypeObject em_py_size_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember.Size",
    .tp_repr = size_repr,
    .tp_new = size_new,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_as_sequence = &size_sequence,
    .tp_as_mapping = &size_mapping,
    .tp_as_number = &size_number,
    .tp_methods = size_methods,
    .tp_base = &PyTuple_Type,
};

int em_py_size_init(PyObject *module) {
  if (PyType_Ready(&em_py_size_type) < 0) return -1;
  return PyModule_AddObjectRef(module, "Size", (PyObject *)&em_py_size_type);
}
