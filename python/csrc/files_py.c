// files_py.c: sources, zip archives and safetensors files as Python objects. What they mean is in ember.serialization
// and ember.safetensors; what is in the bytes is in src/serialize.
#include "bridge.h"
#include "serialize/npy.h"
#include "serialize/safetensors.h"
#include "serialize/zip.h"

// ---------------------------------------------------------------- sources
typedef struct source_object {
  PyObject_HEAD em_source *s;
} source_object;
static PyTypeObject source_type;

static PyObject *source_wrap(em_source *s) {  // steals
  source_object *o = PyObject_New(source_object, &source_type);
  if (o == NULL) em_source_release(s);
  else o->s = s;
  return (PyObject *)o;
}
static em_source *source_of(PyObject *o) {
  if (Py_TYPE(o) == &source_type) return ((source_object *)o)->s;
  PyErr_Format(PyExc_TypeError, "expected a source, not %s", Py_TYPE(o)->tp_name);
  return NULL;
}
static void source_dealloc(PyObject *o) {
  em_source_release(((source_object *)o)->s);
  Py_TYPE(o)->tp_free(o);
}
// OSError where the system refused, otherwise what the core said.
static PyObject *file_error(em_status st, int error, PyObject *path) {
  if (error == 0) return em_py_raise(st);
  em_error_clear();
  errno = error;
  return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

// _source_open(path, how): how 0 reads in pieces, 1 maps privately, 2 maps shared
static PyObject *f_source_open(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *path, *bytes = NULL;
  int how, error = 0;
  if (!PyArg_ParseTuple(args, "Oi:_source_open", &path, &how) || !PyUnicode_FSConverter(path, &bytes)) return NULL;
  em_source *s = NULL;
  em_status st = how == 0 ? em_source_open(PyBytes_AS_STRING(bytes), &s, &error)
                          : em_source_map(PyBytes_AS_STRING(bytes), how == 2, &s, &error);
  Py_DECREF(bytes);
  return st == EM_OK ? source_wrap(s) : file_error(st, error, path);
}
// _storage_from_file(path, shared, nbytes): a mapped file
static PyObject *f_storage_from_file(PyObject *Py_UNUSED(m), PyObject *args) {
  const char *path;
  int shared;
  long long n;
  if (!PyArg_ParseTuple(args, "spL:_storage_from_file", &path, &shared, &n)) return NULL;
  if (n < 0)
    return PyErr_Format(PyExc_RuntimeError, "unable to mmap %lld bytes from file <%s>: Cannot allocate memory (12)", n, path);
  em_source *s = NULL;
  em_storage *made = NULL;
  em_status st = em_source_map_bytes(path, shared, (uint64_t)n, &s);
  if (st == EM_OK) {
    st = em_source_window(s, 0, (uint64_t)n, &made);
    em_source_release(s);
  }
  if (st != EM_OK) return em_py_raise(st);
  made->flags |= EM_STORAGE_SHARED;  // as PyTorch says of every mapped file
  PyObject *o = em_py_storage_of(made);
  em_storage_release(made);
  return o;
}
static PyObject *f_source_fd(PyObject *Py_UNUSED(m), PyObject *args) {
  int fd;
  unsigned long long start;
  const char *name;
  if (!PyArg_ParseTuple(args, "iKs:_source_fd", &fd, &start, &name)) return NULL;
  em_source *s = NULL;
  em_status st = em_source_open_fd(fd, start, name, &s);
  return st == EM_OK ? source_wrap(s) : em_py_raise(st);
}
static void release_buffer(void *context) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyBuffer_Release(context);
  PyMem_Free(context);
  PyGILState_Release(gil);
}
static PyObject *f_source_memory(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *object;
  const char *name;
  if (!PyArg_ParseTuple(args, "Os:_source_memory", &object, &name)) return NULL;
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (view == NULL) return PyErr_NoMemory();
  if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) {
    PyMem_Free(view);
    return NULL;
  }
  em_source *s = NULL;
  em_status st = em_source_memory(view->buf, (size_t)view->len, name, release_buffer, view, &s);
  if (st == EM_OK) return source_wrap(s);
  release_buffer(view);
  return em_py_raise(st);
}

static PyObject *bytes_of(em_source *s, uint64_t offset, uint64_t n) {
  if (!em_source_has(s, offset, n)) return em_py_raise(em_source_read(s, offset, NULL, n));
  PyObject *b = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
  if (b == NULL) return NULL;
  em_status st = em_source_read(s, offset, PyBytes_AS_STRING(b), n);
  if (st == EM_OK) return b;
  Py_DECREF(b);
  return em_py_raise(st);
}
static PyObject *wrap_storage(em_status st, em_storage *s) {
  if (st != EM_OK) return em_py_raise(st);
  PyObject *o = em_py_storage_of(s);
  em_storage_release(s);
  return o;
}
static PyObject *source_read(PyObject *o, PyObject *args) {
  unsigned long long offset, n;
  if (!PyArg_ParseTuple(args, "KK:read", &offset, &n)) return NULL;
  return bytes_of(source_of(o), offset, n);
}
static PyObject *source_storage(PyObject *o, PyObject *args) {
  unsigned long long offset, n;
  int share = 0;
  em_storage *s = NULL;
  if (!PyArg_ParseTuple(args, "KK|p:storage", &offset, &n, &share)) return NULL;
  em_source *from = source_of(o);
  em_status st;
  Py_BEGIN_ALLOW_THREADS
  st = share ? em_source_window(from, offset, n, &s) : em_source_storage(from, offset, n, &s);
  Py_END_ALLOW_THREADS
  return wrap_storage(st, s);
}
static PyObject *source_guess(PyObject *o, PyObject *Py_UNUSED(none)) {
  const char *text = em_source_guess(source_of(o));
  if (text == NULL) Py_RETURN_NONE;
  return PyUnicode_FromString(text);
}
static PyObject *source_size(PyObject *o, void *Py_UNUSED(c)) { return PyLong_FromUnsignedLongLong(source_of(o)->size); }
static PyObject *source_name(PyObject *o, void *Py_UNUSED(c)) { return PyUnicode_DecodeFSDefault(source_of(o)->name); }
static PyMethodDef source_methods[] = {{"read", source_read, METH_VARARGS, NULL},
                                       {"storage", source_storage, METH_VARARGS, NULL},
                                       {"guess", source_guess, METH_NOARGS, NULL},
                                       {NULL}};
static PyGetSetDef source_getset[] = {{"size", source_size}, {"name", source_name}, {NULL}};
static PyTypeObject source_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._Source",
                                   .tp_basicsize = sizeof(source_object),
                                   .tp_dealloc = source_dealloc,
                                   .tp_methods = source_methods,
                                   .tp_getset = source_getset,
                                   .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};

// ---------------------------------------------------------------- zip archives, read
typedef struct zip_object {
  PyObject_HEAD em_zip *z;
} zip_object;
static em_zip *zip_of(PyObject *o) { return ((zip_object *)o)->z; }
static void zip_dealloc(PyObject *o) {
  em_zip_close(zip_of(o));
  Py_TYPE(o)->tp_free(o);
}
static PyObject *zip_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw)) {
  PyObject *source;
  if (!PyArg_ParseTuple(args, "O:_Zip", &source)) return NULL;
  em_source *s = source_of(source);
  if (s == NULL) return NULL;
  em_zip *z = NULL;
  em_status st = em_zip_open(s, &z);
  if (st != EM_OK) return em_py_raise(st);
  zip_object *o = (zip_object *)type->tp_alloc(type, 0);
  if (o == NULL) em_zip_close(z);
  else o->z = z;
  return (PyObject *)o;
}
static const em_zip_entry *entry_of(PyObject *o, PyObject *name) {
  Py_ssize_t n;
  if (!PyUnicode_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "the name of a record is a str");
    return NULL;
  }
  PyObject *bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
  if (bytes == NULL) return NULL;
  n = PyBytes_GET_SIZE(bytes);
  const em_zip_entry *e = em_zip_find(zip_of(o), PyBytes_AS_STRING(bytes), (size_t)n);
  Py_DECREF(bytes);
  if (e == NULL)
    PyErr_Format(PyExc_RuntimeError, "PytorchStreamReader failed locating file %U: file not found in %s", name,
                 zip_of(o)->source->name);
  return e;
}
static PyObject *zip_names(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_zip *z = zip_of(o);
  PyObject *l = PyList_New((Py_ssize_t)z->count);
  for (size_t i = 0; l != NULL && i < z->count; i++) {
    PyObject *name = PyUnicode_DecodeUTF8(z->entries[i].name, z->entries[i].name_size, "surrogateescape");
    if (name == NULL) Py_CLEAR(l);
    else PyList_SET_ITEM(l, i, name);
  }
  return l;
}
static PyObject *zip_read(PyObject *o, PyObject *name) {
  const em_zip_entry *e = entry_of(o, name);
  uint64_t at;
  if (e == NULL) return NULL;
  em_status st = em_zip_locate(zip_of(o), e, &at);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *b = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)e->size);
  if (b == NULL) return NULL;
  if ((st = em_zip_read(zip_of(o), e, PyBytes_AS_STRING(b))) == EM_OK) return b;
  Py_DECREF(b);
  return em_py_raise(st);
}
static PyObject *zip_storage(PyObject *o, PyObject *args) {
  PyObject *name;
  int share = 0;
  if (!PyArg_ParseTuple(args, "O|p:storage", &name, &share)) return NULL;
  const em_zip_entry *e = entry_of(o, name);
  if (e == NULL) return NULL;
  em_storage *s = NULL;
  em_status st;
  Py_BEGIN_ALLOW_THREADS
  st = share ? em_zip_window(zip_of(o), e, &s) : em_zip_storage(zip_of(o), e, &s);
  Py_END_ALLOW_THREADS
  return wrap_storage(st, s);
}
static PyObject *zip_size(PyObject *o, PyObject *name) {
  const em_zip_entry *e = entry_of(o, name);
  return e == NULL ? NULL : PyLong_FromUnsignedLongLong(e->size);
}
static PyObject *zip_offset(PyObject *o, PyObject *name) {
  const em_zip_entry *e = entry_of(o, name);
  uint64_t at;
  if (e == NULL) return NULL;
  em_status st = em_zip_locate(zip_of(o), e, &at);
  return st == EM_OK ? PyLong_FromUnsignedLongLong(at) : em_py_raise(st);
}
static PyMethodDef zip_methods[] = {{"names", zip_names, METH_NOARGS, NULL},   {"read", zip_read, METH_O, NULL},
                                    {"storage", zip_storage, METH_VARARGS, NULL}, {"size", zip_size, METH_O, NULL},
                                    {"offset", zip_offset, METH_O, NULL},      {NULL}};
static PyTypeObject zip_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._Zip",
                                .tp_basicsize = sizeof(zip_object),
                                .tp_new = zip_new,
                                .tp_dealloc = zip_dealloc,
                                .tp_methods = zip_methods,
                                .tp_flags = Py_TPFLAGS_DEFAULT};

// ---------------------------------------------------------------- sinks
// Python's own: `context` is its write method. It gets bytes that it may keep.
static em_status write_python(em_sink *k, const void *p, size_t n) {
  const size_t piece = 4u << 20;
  for (size_t done = 0; done < n; done += piece) {
    size_t now = n - done < piece ? n - done : piece;
    PyObject *r = PyObject_CallFunction(k->context, "y#", (const char *)p + done, (Py_ssize_t)now);
    if (r == NULL) return em_py_foreign();
    Py_DECREF(r);
  }
  return EM_OK;
}
static int sink_open(PyObject *to, em_sink *k) {
  if (PyCallable_Check(to)) {
    *k = (em_sink){.write = write_python, .context = Py_NewRef(to), .fd = -1};
    return 0;
  }
  PyObject *bytes = NULL;
  int error;
  if (!PyUnicode_FSConverter(to, &bytes)) return -1;
  em_status st = em_sink_open(PyBytes_AS_STRING(bytes), k, &error);
  Py_DECREF(bytes);
  if (st != EM_OK) (void)file_error(st, error, to);
  return st == EM_OK ? 0 : -1;
}
static em_status sink_close(em_sink *k) {
  PyObject *write = k->context;
  k->context = NULL;
  Py_XDECREF(write);
  return em_sink_close(k);
}

typedef struct writer_object {
  PyObject_HEAD em_zip_writer w;
  em_sink sink;
} writer_object;
static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw)) {
  PyObject *to;
  int alignment, sums;
  if (!PyArg_ParseTuple(args, "Oip:_ZipWriter", &to, &alignment, &sums)) return NULL;
  if (alignment < 1 || alignment > 1 << 20) {
    PyErr_SetString(PyExc_ValueError, "alignment must be between 1 and 1048576");
    return NULL;
  }
  writer_object *o = (writer_object *)type->tp_alloc(type, 0);
  if (o == NULL) return NULL;
  o->sink.fd = -1;
  em_zip_writer_init(&o->w, &o->sink, (uint32_t)alignment, sums);
  if (sink_open(to, &o->sink) < 0) Py_CLEAR(o);
  return (PyObject *)o;
}
static void writer_dealloc(PyObject *self) {
  writer_object *o = (writer_object *)self;
  em_zip_writer_clear(&o->w);
  if (sink_close(&o->sink) != EM_OK) em_error_clear();  // finish() would have told
  Py_TYPE(self)->tp_free(self);
}
static PyObject *none_or_raise(em_status st) {
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *writer_write(PyObject *self, PyObject *args) {
  writer_object *o = (writer_object *)self;
  const char *name;
  Py_ssize_t n;
  Py_buffer view;
  if (!PyArg_ParseTuple(args, "s#y*:write", &name, &n, &view)) return NULL;
  em_status st = em_zip_write(&o->w, name, (size_t)n, view.buf, (size_t)view.len);
  PyBuffer_Release(&view);
  return none_or_raise(st);
}
static PyObject *writer_write_storage(PyObject *self, PyObject *args) {
  writer_object *o = (writer_object *)self;
  const char *name;
  Py_ssize_t n;
  PyObject *storage;
  if (!PyArg_ParseTuple(args, "s#O:write_storage", &name, &n, &storage)) return NULL;
  em_storage *s = em_py_to_storage(storage);
  return s == NULL ? NULL : none_or_raise(em_zip_write_storage(&o->w, name, (size_t)n, s));
}
// finish(folder): with PyTorch's last record in that folder; None: without
static PyObject *writer_finish(PyObject *self, PyObject *folder) {
  writer_object *o = (writer_object *)self;
  Py_ssize_t n = 0;
  const char *p = folder == Py_None ? "" : PyUnicode_AsUTF8AndSize(folder, &n);
  if (p == NULL) return NULL;
  em_status st = folder == Py_None ? EM_OK : em_zip_write_id(&o->w, p, (size_t)n);
  if (st == EM_OK) st = em_zip_finish(&o->w);
  if (st == EM_OK) st = sink_close(&o->sink);
  return none_or_raise(st);
}
static PyMethodDef writer_methods[] = {{"write", writer_write, METH_VARARGS, NULL},
                                       {"write_storage", writer_write_storage, METH_VARARGS, NULL},
                                       {"finish", writer_finish, METH_O, NULL},
                                       {NULL}};
static PyTypeObject writer_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._ZipWriter",
                                   .tp_basicsize = sizeof(writer_object),
                                   .tp_new = writer_new,
                                   .tp_dealloc = writer_dealloc,
                                   .tp_methods = writer_methods,
                                   .tp_flags = Py_TPFLAGS_DEFAULT};

// ---------------------------------------------------------------- safetensors
typedef struct safe_object {
  PyObject_HEAD em_safetensors *f;
} safe_object;
static em_safetensors *safe_of(PyObject *o) { return ((safe_object *)o)->f; }
static void safe_dealloc(PyObject *o) {
  em_safetensors_close(safe_of(o));
  Py_TYPE(o)->tp_free(o);
}
static PyObject *safe_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw)) {
  PyObject *source;
  if (!PyArg_ParseTuple(args, "O:_SafeFile", &source)) return NULL;
  em_source *s = source_of(source);
  if (s == NULL) return NULL;
  em_safetensors *f = NULL;
  em_status st = em_safetensors_open(s, &f);
  if (st != EM_OK) return em_py_raise(st);
  safe_object *o = (safe_object *)type->tp_alloc(type, 0);
  if (o == NULL) em_safetensors_close(f);
  else o->f = f;
  return (PyObject *)o;
}
// [(name, dtype's name, sizes)], as the bytes lie in the file
static PyObject *safe_entries(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_safetensors *f = safe_of(o);
  PyObject *l = PyList_New((Py_ssize_t)f->count);
  for (size_t i = 0; l != NULL && i < f->count; i++) {
    em_safetensors_entry *e = f->entries + i;
    PyObject *entry = Py_BuildValue("(ssN)", e->name, e->dtype_name, em_py_ints_tuple(e->ndim, e->sizes));
    if (entry == NULL) Py_CLEAR(l);
    else PyList_SET_ITEM(l, i, entry);
  }
  return l;
}
static PyObject *safe_metadata(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_safetensors *f = safe_of(o);
  if (!f->has_metadata) Py_RETURN_NONE;
  PyObject *d = PyDict_New();
  for (size_t i = 0; d != NULL && i < f->metadata_count; i++) {
    PyObject *v = PyUnicode_FromString(f->metadata[i].value);
    if (v == NULL || PyDict_SetItemString(d, f->metadata[i].key, v) < 0) Py_CLEAR(d);
    Py_XDECREF(v);
  }
  return d;
}
// tensor(index in entries(), share)
static PyObject *safe_tensor(PyObject *o, PyObject *args) {
  Py_ssize_t i;
  int share;
  if (!PyArg_ParseTuple(args, "np:tensor", &i, &share)) return NULL;
  em_safetensors *f = safe_of(o);
  if (i < 0 || (size_t)i >= f->count) {
    PyErr_SetString(PyExc_IndexError, "no such tensor");
    return NULL;
  }
  em_tensor *t = NULL;
  em_status st;
  Py_BEGIN_ALLOW_THREADS
  st = em_safetensors_tensor(f, f->entries + i, share, &t);
  Py_END_ALLOW_THREADS
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}
static PyMethodDef safe_methods[] = {{"entries", safe_entries, METH_NOARGS, NULL},
                                     {"metadata", safe_metadata, METH_NOARGS, NULL},
                                     {"tensor", safe_tensor, METH_VARARGS, NULL},
                                     {NULL}};
static PyTypeObject safe_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._SafeFile",
                                 .tp_basicsize = sizeof(safe_object),
                                 .tp_new = safe_new,
                                 .tp_dealloc = safe_dealloc,
                                 .tp_methods = safe_methods,
                                 .tp_flags = Py_TPFLAGS_DEFAULT};

// Terminated text of a str without zero bytes; NULL with an exception.
static char *plain_text(PyObject *o, const char *what) {
  Py_ssize_t n;
  if (!PyUnicode_Check(o)) {
    PyErr_Format(PyExc_TypeError, "%s: '%s' object is not an instance of 'str'", what, Py_TYPE(o)->tp_name);
    return NULL;
  }
  const char *p = PyUnicode_AsUTF8AndSize(o, &n);
  if (p != NULL && strlen(p) != (size_t)n) {
    PyErr_Format(PyExc_ValueError, "%s: embedded zero byte", what);
    return NULL;
  }
  return (char *)p;
}
// _safetensors_write(path or write method, names, tensors, pairs or None)
static PyObject *f_safetensors_write(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *to, *names, *tensors, *pairs, *result = NULL;
  if (!PyArg_ParseTuple(args, "OO!O!O:_safetensors_write", &to, &PyTuple_Type, &names, &PyTuple_Type, &tensors, &pairs)) return NULL;
  Py_ssize_t n = PyTuple_GET_SIZE(names), np = PyTuple_Check(pairs) ? PyTuple_GET_SIZE(pairs) : 0;
  const char **keys = PyMem_Calloc((size_t)n + 1, sizeof *keys);
  em_tensor **values = PyMem_Calloc((size_t)n + 1, sizeof *values);
  em_safetensors_pair *meta = PyMem_Calloc((size_t)np + 1, sizeof *meta);
  em_sink k = {.fd = -1};
  bool good = keys != NULL && values != NULL && meta != NULL && PyTuple_GET_SIZE(tensors) == n;
  if (!good) PyErr_SetString(PyExc_MemoryError, "_safetensors_write");
  for (Py_ssize_t i = 0; good && i < n; i++) {
    PyObject *t = PyTuple_GET_ITEM(tensors, i);
    good = (keys[i] = plain_text(PyTuple_GET_ITEM(names, i), "argument 'tensor_dict'")) != NULL && em_py_is_tensor(t);
    if (good) values[i] = em_py_t(t);
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "_safetensors_write: not a tensor");
  }
  for (Py_ssize_t i = 0; good && i < np; i++) {
    PyObject *pair = PyTuple_GET_ITEM(pairs, i);
    good = (meta[i].key = plain_text(PyTuple_GET_ITEM(pair, 0), "argument 'metadata'")) != NULL &&
           (meta[i].value = plain_text(PyTuple_GET_ITEM(pair, 1), "argument 'metadata'")) != NULL;
  }
  if (good && sink_open(to, &k) == 0) {
    em_status st = em_safetensors_write(&k, keys, values, (size_t)n, meta, (size_t)np, pairs != Py_None);
    em_status closed = sink_close(&k);
    result = none_or_raise(st != EM_OK ? st : closed);
  }
  PyMem_Free(keys);
  PyMem_Free(values);
  PyMem_Free(meta);
  return result;
}

// ---------------------------------------------------------------- numpy's files
// _npy_read(source) -> tensor. _npy_header(dtype, sizes) -> bytes before the data.
static PyObject *f_npy_read(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *source;
  int share;
  if (!PyArg_ParseTuple(args, "Op:_npy_read", &source, &share)) return NULL;
  em_source *s = source_of(source);
  em_tensor *t = NULL;
  if (s == NULL) return NULL;
  em_status st = em_npy_read(s, share, &t);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}
static PyObject *f_npy_write(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *to, *tensor;
  if (!PyArg_ParseTuple(args, "OO:_npy_write", &to, &tensor)) return NULL;
  if (!em_py_is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "save_npy: expected a tensor, not %s", Py_TYPE(tensor)->tp_name);
  em_sink k = {.fd = -1};
  if (sink_open(to, &k) < 0) return NULL;
  em_status st = em_npy_write(&k, em_py_t(tensor)), closed = sink_close(&k);
  return none_or_raise(st != EM_OK ? st : closed);
}
static PyObject *f_crc32(PyObject *Py_UNUSED(m), PyObject *args) {
  Py_buffer view;
  unsigned crc = 0;
  if (!PyArg_ParseTuple(args, "y*|I:_crc32", &view, &crc)) return NULL;
  crc = em_crc32(crc, view.buf, (size_t)view.len);
  PyBuffer_Release(&view);
  return PyLong_FromUnsignedLong(crc);
}

static PyMethodDef functions[] = {{"_source_open", f_source_open, METH_VARARGS, NULL},
                                  {"_source_fd", f_source_fd, METH_VARARGS, NULL},
                                  {"_storage_from_file", f_storage_from_file, METH_VARARGS, NULL},
                                  {"_source_memory", f_source_memory, METH_VARARGS, NULL},
                                  {"_safetensors_write", f_safetensors_write, METH_VARARGS, NULL},
                                  {"_npy_read", f_npy_read, METH_VARARGS, NULL},
                                  {"_npy_write", f_npy_write, METH_VARARGS, NULL},
                                  {"_crc32", f_crc32, METH_VARARGS, NULL},
                                  {NULL}};
int em_py_files_init(PyObject *module) {
  PyTypeObject *types[] = {&source_type, &zip_type, &writer_type, &safe_type};
  static const char *const names[] = {"_Source", "_Zip", "_ZipWriter", "_SafeFile"};
  for (int i = 0; i < 4; i++)
    if (PyType_Ready(types[i]) < 0 || PyModule_AddObjectRef(module, names[i], (PyObject *)types[i]) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
