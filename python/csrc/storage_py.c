// storage_py.c: ember.UntypedStorage: the bytes under tensors. One Python object a storage while one is alive.
#include "bridge.h"

typedef struct storage_object {
  PyObject_HEAD em_storage *s;
} storage_object;
static PyTypeObject storage_type;
#define S(o) (((storage_object *)(o))->s)

PyObject *em_py_storage_of(em_storage *s) {
  if (s->pyobj != NULL) return Py_NewRef((PyObject *)s->pyobj);
  storage_object *o = PyObject_New(storage_object, &storage_type);
  if (o == NULL) return NULL;
  o->s = em_storage_retain(s);
  s->pyobj = o;
  return (PyObject *)o;
}
em_storage *em_py_to_storage(PyObject *o) {
  if (PyObject_TypeCheck(o, &storage_type)) return S(o);
  PyObject *inner = PyObject_GetAttrString(o, "_untyped_storage");  // a TypedStorage
  if (inner != NULL && PyObject_TypeCheck(inner, &storage_type)) {
    em_storage *s = S(inner);
    Py_DECREF(inner);  // o holds it
    return s;
  }
  Py_XDECREF(inner);
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "expected a storage, not %s", Py_TYPE(o)->tp_name);
  return NULL;
}

static void storage_dealloc(PyObject *o) {
  if (S(o) != NULL) {
    S(o)->pyobj = NULL;
    em_storage_release(S(o));
  }
  Py_TYPE(o)->tp_free(o);
}

static PyObject *storage_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kw) {
  static char *names[] = {"size", "device", NULL};
  PyObject *size = NULL, *device = NULL;
  em_device d = {EM_DEVICE_CPU, -1};
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|O$O:UntypedStorage", names, &size, &device)) return NULL;
  if (device != NULL && device != Py_None && (em_py_to_device(device, &d) < 0 || em_py_device_wake(d, NULL) < 0)) return NULL;
  int64_t n = 0;
  bool sequence = size != NULL && !em_py_is_int(size);
  if (sequence && !PySequence_Check(size))
    return PyErr_Format(PyExc_TypeError, "UntypedStorage: size must be int, not %s", Py_TYPE(size)->tp_name);
  if (sequence && (n = PySequence_Size(size)) < 0) return NULL;
  if (size != NULL && !sequence && em_py_to_int64(size, &n) < 0) return NULL;
  if (n < 0) {
    PyErr_SetString(PyExc_RuntimeError, "Storage size must not be negative");
    return NULL;
  }
  em_storage *s = NULL;
  em_status st = em_storage_new((size_t)n, d, &s);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *o = em_py_storage_of(s);
  em_storage_release(s);
  for (int64_t i = 0; o != NULL && sequence && i < n; i++) {
    PyObject *x = PySequence_GetItem(size, i);
    long v = x == NULL ? -1 : PyLong_AsLong(x);
    Py_XDECREF(x);
    if (v == -1 && PyErr_Occurred()) {
      Py_CLEAR(o);
      break;
    }
    if (s->data != NULL) ((uint8_t *)s->data)[i] = (uint8_t)v;  // a meta storage has none
  }
  return o;
}

static PyObject *s_nbytes(PyObject *o, PyObject *Py_UNUSED(none)) { return PyLong_FromSize_t(S(o)->nbytes); }
static PyObject *s_data_ptr(PyObject *o, PyObject *Py_UNUSED(none)) { return PyLong_FromVoidPtr(S(o)->data); }
static PyObject *s_element_size(PyObject *Py_UNUSED(o), PyObject *Py_UNUSED(none)) { return PyLong_FromLong(1); }
static PyObject *s_resizable(PyObject *o, PyObject *Py_UNUSED(none)) { return PyBool_FromLong(S(o)->resizable); }
static PyObject *s_is_shared(PyObject *o, PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(S(o)->flags & EM_STORAGE_SHARED);
}
// The strategy (ember.multiprocessing.set_sharing_strategy) is Python's.
static PyObject *ask_reductions(const char *name, PyObject *arg) {
  PyObject *module = PyImport_ImportModule("ember.multiprocessing.reductions");
  PyObject *r = module == NULL ? NULL : PyObject_CallMethod(module, name, "O", arg);
  Py_XDECREF(module);
  return r;
}
static PyObject *s_share_memory(PyObject *o, PyObject *Py_UNUSED(none)) { return ask_reductions("share", o); }
static PyObject *s_new_shared(PyObject *Py_UNUSED(type), PyObject *args, PyObject *kw) {
  static char *names[] = {"size", "device", NULL};
  PyObject *size, *device = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$O:_new_shared", names, &size, &device)) return NULL;
  return ask_reductions("new_shared", size);
}
static PyObject *s_self(PyObject *o, PyObject *Py_UNUSED(none)) { return Py_NewRef(o); }
static PyObject *s_device(PyObject *o, void *Py_UNUSED(c)) { return em_py_device_new(S(o)->device); }
static PyObject *s_cdata(PyObject *o, void *Py_UNUSED(c)) { return PyLong_FromVoidPtr(S(o)); }

static PyObject *s_resize(PyObject *o, PyObject *n) {
  int64_t v;
  if (em_py_to_int64(n, &v) < 0) return NULL;
  if (v < 0) {
    PyErr_SetString(PyExc_RuntimeError, "storage size must not be negative");
    return NULL;
  }
  em_status st = em_storage_resize(S(o), (size_t)v);
  return st == EM_OK ? Py_NewRef(o) : em_py_raise(st);
}
static PyObject *s_fill(PyObject *o, PyObject *v) {
  long x = PyLong_AsLong(v);
  if (x == -1 && PyErr_Occurred()) return NULL;
  if (S(o)->data != NULL) memset(S(o)->data, (int)x, S(o)->nbytes);
  return Py_NewRef(o);
}
static PyObject *s_copy(PyObject *o, PyObject *const *args, Py_ssize_t n) {
  em_storage *src = n < 1 ? NULL : em_py_to_storage(args[0]);
  if (src == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "copy_() missing the source");
    return NULL;
  }
  if (src->nbytes != S(o)->nbytes) {
    PyErr_SetString(PyExc_RuntimeError, "size does not match");
    return NULL;
  }
  if (src->nbytes > 0 && src->data == NULL && S(o)->data != NULL) {
    PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    return NULL;
  }
  if (src->data != NULL && S(o)->data != NULL) memmove(S(o)->data, src->data, src->nbytes);
  return Py_NewRef(o);
}
static PyObject *s_clone(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_storage *s = NULL;
  em_status st = em_storage_new(S(o)->nbytes, S(o)->device, &s);
  if (st != EM_OK) return em_py_raise(st);
  if (s->data != NULL && S(o)->data != NULL) memcpy(s->data, S(o)->data, s->nbytes);
  PyObject *r = em_py_storage_of(s);
  em_storage_release(s);
  return r;
}
static PyObject *s_from_file(PyObject *Py_UNUSED(none), PyObject *args, PyObject *kw) {
  static char *names[] = {"filename", "shared", "nbytes", NULL};
  const char *filename;
  int shared = 0;
  long long n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "s|pL:from_file", names, &filename, &shared, &n)) return NULL;
  PyObject *files = PyImport_ImportModule("ember._C");  // files_py.c has it
  PyObject *r = files == NULL ? NULL : PyObject_CallMethod(files, "_storage_from_file", "sOL", filename, shared ? Py_True : Py_False, n);
  Py_XDECREF(files);
  return r;
}
static Py_ssize_t s_length(PyObject *o) { return (Py_ssize_t)S(o)->nbytes; }
static int byte_at(PyObject *o, PyObject *index, uint8_t **p) {
  int64_t i;
  if (em_py_to_int64(index, &i) < 0) return -1;
  if (i < 0) i += (int64_t)S(o)->nbytes;
  if (i < 0 || i >= (int64_t)S(o)->nbytes || S(o)->data == NULL) {
    PyErr_Format(PyExc_IndexError, "index %lld out of range for storage of size %zu", (long long)i, S(o)->nbytes);
    return -1;
  }
  *p = (uint8_t *)S(o)->data + i;
  return 0;
}
static PyObject *s_item(PyObject *o, PyObject *index) {
  uint8_t *p;
  return byte_at(o, index, &p) < 0 ? NULL : PyLong_FromLong(*p);
}
static int s_set_item(PyObject *o, PyObject *index, PyObject *value) {
  uint8_t *p;
  if (value == NULL) {
    PyErr_SetString(PyExc_TypeError, "storages do not support deleting items");
    return -1;
  }
  long v = PyLong_AsLong(value);
  if ((v == -1 && PyErr_Occurred()) || byte_at(o, index, &p) < 0) return -1;
  *p = (uint8_t)v;
  return 0;
}
// Bytes of meta storages exist in number only.
static bool has_bytes(const em_storage *s) {
  if (s->data != NULL || s->nbytes == 0) return true;
  PyErr_SetString(PyExc_NotImplementedError, "Not available for 'meta' device type");
  return false;
}
static PyObject *s_tolist(PyObject *o, PyObject *Py_UNUSED(none)) {
  if (!has_bytes(S(o))) return NULL;
  PyObject *l = PyList_New((Py_ssize_t)S(o)->nbytes);
  for (size_t i = 0; l != NULL && i < S(o)->nbytes; i++)
    PyList_SET_ITEM(l, i, PyLong_FromLong(((uint8_t *)S(o)->data)[i]));
  return l;
}
static PyObject *s_repr(PyObject *o) {
  char device[32];
  PyObject *lines = PyList_New(0), *newline = PyUnicode_FromString("\n"), *joined = NULL, *text = NULL;
  for (size_t i = 0; lines != NULL && S(o)->data != NULL && i < S(o)->nbytes; i++) {
    PyObject *line = PyUnicode_FromFormat(" %d", ((uint8_t *)S(o)->data)[i]);
    if (line == NULL || PyList_Append(lines, line) < 0) Py_CLEAR(lines);
    Py_XDECREF(line);
  }
  if (lines != NULL && newline != NULL) joined = PyUnicode_Join(newline, lines);
  if (joined != NULL)
    text = PyUnicode_FromFormat("%U\n[torch.storage.UntypedStorage(device=%s) of size %zu]", joined,
                                em_device_format(S(o)->device, device), S(o)->nbytes);
  Py_XDECREF(lines);
  Py_XDECREF(newline);
  Py_XDECREF(joined);
  return text;
}
static int s_buffer(PyObject *o, Py_buffer *view, int flags) {
  static char empty;
  void *p = S(o)->data == NULL ? &empty : S(o)->data;
  if (PyBuffer_FillInfo(view, o, p, (Py_ssize_t)(S(o)->data == NULL ? 0 : S(o)->nbytes), 0, flags) < 0) return -1;
  S(o)->resizable = 0;  // somebody points into it
  return 0;
}
static PyObject *s_compare(PyObject *a, PyObject *b, int op) {
  if (!PyObject_TypeCheck(b, &storage_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((S(a) == S(b)) == (op == Py_EQ));
}
static Py_hash_t s_hash(PyObject *o) { return _Py_HashPointer(S(o)); }

static PyMethodDef methods[] = {{"nbytes", s_nbytes, METH_NOARGS, NULL},
                                {"size", s_nbytes, METH_NOARGS, NULL},
                                {"data_ptr", s_data_ptr, METH_NOARGS, NULL},
                                {"element_size", s_element_size, METH_NOARGS, NULL},
                                {"resizable", s_resizable, METH_NOARGS, NULL},
                                {"is_shared", s_is_shared, METH_NOARGS, NULL},
                                {"share_memory_", s_share_memory, METH_NOARGS, NULL},
                                {"_new_shared", (PyCFunction)(void *)s_new_shared,
                                 METH_VARARGS | METH_KEYWORDS | METH_CLASS, NULL},
                                {"untyped", s_self, METH_NOARGS, NULL},
                                {"cpu", s_self, METH_NOARGS, NULL},
                                {"resize_", s_resize, METH_O, NULL},
                                {"fill_", s_fill, METH_O, NULL},
                                {"copy_", (PyCFunction)(void *)s_copy, METH_FASTCALL, NULL},
                                {"clone", s_clone, METH_NOARGS, NULL},
                                {"tolist", s_tolist, METH_NOARGS, NULL},
                                {"from_file", (PyCFunction)(void *)s_from_file, METH_VARARGS | METH_KEYWORDS | METH_STATIC, NULL},
                                {NULL}};
static PyGetSetDef getset[] = {{"device", s_device}, {"_cdata", s_cdata}, {NULL}};
static PyObject *s_iter(PyObject *o) {
  PyObject *l = s_tolist(o, NULL), *r = l == NULL ? NULL : PyObject_GetIter(l);
  Py_XDECREF(l);
  return r;
}
static PyMappingMethods mapping = {.mp_length = s_length, .mp_subscript = s_item, .mp_ass_subscript = s_set_item};
static PyBufferProcs buffer = {.bf_getbuffer = s_buffer};
static PyTypeObject storage_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember.storage.UntypedStorage",
                                    .tp_basicsize = sizeof(storage_object),
                                    .tp_new = storage_new,
                                    .tp_repr = s_repr,
                                    .tp_dealloc = storage_dealloc,
                                    .tp_methods = methods,
                                    .tp_getset = getset,
                                    .tp_as_mapping = &mapping,
                                    .tp_as_buffer = &buffer,
                                    .tp_richcompare = s_compare,
                                    .tp_hash = s_hash,
                                    .tp_iter = s_iter,
                                    .tp_flags = Py_TPFLAGS_DEFAULT};

int em_py_storage_init(PyObject *module) {
  if (PyType_Ready(&storage_type) < 0) return -1;
  return PyModule_AddObjectRef(module, "UntypedStorage", (PyObject *)&storage_type);
}
