// buffer.c: bytes shared with others: numpy's array interface (without importing numpy), Python's buffer protocol,
// DLPack. Whoever shares keeps the owner of the bytes alive through the storage's deleter.
#include "bridge.h"
#include "core/iterator.h"
#include <ember/tensor.h>

// numpy's C array interface, the struct behind __array_struct__ (a fixed, documented layout).
typedef struct array_struct {
  int two, nd;
  char kind;
  int itemsize, flags;
  Py_intptr_t *shape, *strides;
  void *data;
  PyObject *descr;
} array_struct;
enum { ARRAY_WRITEABLE = 0x400, ARRAY_NOTSWAPPED = 0x200 };

static PyObject *s_array_struct;

bool em_py_is_array(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
  if (em_py_is_tensor(o) || type == &PyLong_Type || type == &PyFloat_Type || type == &PyList_Type ||
      type == &PyTuple_Type || type == &PySlice_Type || PyUnicode_Check(o))
    return false;
  return !em_py_is_numpy_scalar(o) && _PyType_Lookup(type, s_array_struct) != NULL;
}

static int dtype_of(char kind, int itemsize) {
  for (int i = 0; i < EM_NUM_DTYPES; i++) {
    const char *np = em_priv_dtypes[i].np;
    if (np != NULL && np[1] == kind && em_priv_dtypes[i].size == itemsize) return i;
  }
  return EM_DTYPE_NONE;
}

static void drop_owner(void *context, void *Py_UNUSED(data)) { em_py_decref_anywhere(context); }

static int check_array(const array_struct *a, PyObject *o) {
  if (!(a->flags & ARRAY_NOTSWAPPED)) {
    PyErr_SetString(
        PyExc_ValueError,
        "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
        "currently not supported.");
    return -1;
  }
  for (int i = 0; i < a->nd; i++) {
    if (a->strides[i] < 0) {
      PyErr_SetString(
          PyExc_ValueError,
          "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
          "currently supported. (You can probably work around this by making a copy of your array  with "
          "array.copy().) ");
      return -1;
    }
    if (a->strides[i] % a->itemsize != 0) {
      PyErr_SetString(
          PyExc_ValueError,
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate "
          "the memory.");
      return -1;
    }
  }
  if (!(a->flags & ARRAY_WRITEABLE))
    return PyErr_WarnEx(
        PyExc_UserWarning,
        "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
        "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its data "
        "or make it "
        "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this "
        "program.",
        1);
  (void)o;
  return 0;
}

static em_status window_over(PyObject *owner, void *data, int dtype, int nd, const int64_t *sizes,
                             const int64_t *strides, em_tensor **out) {
  em_storage *s = NULL;
  size_t bytes;
  em_status st = em_shape_storage_bytes(nd, sizes, strides, 0, em_dtype_size(dtype), &bytes);
  if (st == EM_OK) st = em_storage_wrap(data, bytes, (em_device){EM_DEVICE_CPU, -1}, drop_owner, owner, &s);
  if (st != EM_OK) return st;
  Py_INCREF(owner);
  st = em_tensor_new_window(s, nd, sizes, strides, 0, dtype, out);
  em_storage_release(s);
  return st;
}

int em_py_array_tensor(PyObject *o, bool copy, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  PyObject *capsule = PyObject_GetAttr(o, s_array_struct);
  if (capsule == NULL) {
    PyErr_Clear();
    return 0;
  }
  const array_struct *a = PyCapsule_CheckExact(capsule) ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  int result = -1, dtype = a == NULL ? EM_DTYPE_NONE : dtype_of(a->kind, a->itemsize);
  if (a == NULL || a->nd > EM_MAX_DIMS) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "invalid __array_struct__");
  } else if (dtype < 0) {
    PyObject *type = PyObject_GetAttrString(o, "dtype"),
             *scalar = type == NULL ? NULL : PyObject_GetAttrString(type, "type");
    PyErr_Clear();
    const char *name = scalar != NULL && PyType_Check(scalar) ? ((PyTypeObject *)scalar)->tp_name : "numpy.void";
    if (strncmp(name, "numpy.uint", 10) == 0)  // PyTorch's list of what it can do names these
      PyErr_Format(PyExc_TypeError, "can't convert np.ndarray of type %s: Ember has no torch.%s", name, name + 6);
    else PyErr_Format(
        PyExc_TypeError,
        "can't convert np.ndarray of type %s. The only supported types are: float64, float32, float16, complex64, "
        "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        name);
    Py_XDECREF(type);
    Py_XDECREF(scalar);
  } else if (check_array(a, o) == 0) {
    for (int i = 0; i < a->nd; i++) {
      sizes[i] = a->shape[i];
      strides[i] = a->strides[i] / a->itemsize;
    }
    em_tensor *t = NULL;
    em_status st = window_over(o, a->data, dtype, a->nd, sizes, strides, &t);
    if (st == EM_OK && copy) {
      st = em_py_to_dtype_device(t, EM_DTYPE_NONE, EM_DEVICE_NONE, true, out);
      em_tensor_release(t);
    } else {
      *out = t;
    }
    result = st == EM_OK ? 1 : em_py_raise_int(st);
  }
  Py_DECREF(capsule);
  return result;
}

static PyObject *f_from_numpy(PyObject *Py_UNUSED(m), PyObject *o) {
  em_tensor *t = NULL;
  if (!em_py_is_array(o)) return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(o)->tp_name);
  int r = em_py_array_tensor(o, false, &t);
  if (r == 0) PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(o)->tp_name);
  return r > 0 ? em_py_wrap(t) : NULL;
}

// ---------------------------------------------------------------- Python's buffer protocol
static void drop_view(void *context, void *Py_UNUSED(data)) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyBuffer_Release(context);
  PyMem_Free(context);
  PyGILState_Release(gil);
}

em_status em_py_buffer_tensor(PyObject *o, int dtype, int64_t count, int64_t offset, bool copy, em_tensor **out) {
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (view == NULL) {
    PyErr_NoMemory();
    return EM_ERR_FOREIGN;
  }
  em_status st = EM_OK;
  em_storage *s = NULL;
  em_tensor *t = NULL;
  if (PyObject_GetBuffer(o, view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(o, view, PyBUF_SIMPLE) < 0) {
      PyMem_Free(view);
      return EM_ERR_FOREIGN;
    }
    if (PyErr_WarnEx(
            PyExc_UserWarning,
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
            "buffer to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this "
            "program.",
            1) < 0) {
      st = EM_ERR_FOREIGN;
      goto fail;
    }
  }
  int64_t item = (int64_t)em_dtype_size(dtype), len = view->len, left = len - offset;
  if (len == 0)
    EM_FAIL(EM_ERR_VALUE, "both buffer length (%lld) and count (%lld) must not be 0", (long long)len, (long long)count);
  if (offset < 0 || offset >= len)
    EM_FAIL(EM_ERR_VALUE,
            "offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes) minus 1",
            (long long)offset, (long long)len);
  if (count < 0 && left % item != 0)
    EM_FAIL(EM_ERR_VALUE,
            "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)",
            (long long)len, (long long)offset, (long long)item);
  if (count == 0) EM_FAIL(EM_ERR_VALUE, "both buffer length (%lld) and count (0) must not be 0", (long long)len);
  if (count < 0) count = left / item;
  if (count > left / item)
    EM_FAIL(EM_ERR_VALUE,
            "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than actual "
            "buffer length (%lld "
            "bytes)",
            (long long)count, (long long)item, (long long)offset, (long long)len);
  int64_t one = 1;
  EM_TRY(em_storage_wrap((char *)view->buf + offset, (size_t)(count * item), (em_device){EM_DEVICE_CPU, -1}, drop_view,
                         view, &s));
  view = NULL;
  EM_TRY(em_tensor_new_window(s, 1, &count, &one, 0, dtype, &t));
  if (copy) {
    EM_TRY(em_py_to_dtype_device(t, EM_DTYPE_NONE, EM_DEVICE_NONE, true, out));
    em_tensor_release(t);
  } else {
    *out = t;
  }
  em_storage_release(s);
  return EM_OK;
fail:
  em_tensor_release(t);
  em_storage_release(s);
  if (view != NULL) {
    PyBuffer_Release(view);
    PyMem_Free(view);
  }
  return st;
}

static PyObject *f_frombuffer(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"buffer", "dtype", "count", "offset", "requires_grad", NULL};
  PyObject *o, *dtype = NULL;
  long long count = -1, offset = 0;
  int grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OLLp:frombuffer", names, &o, &dtype, &count, &offset, &grad))
    return NULL;
  if (dtype == NULL || !em_py_is_dtype(dtype)) {
    PyErr_SetString(PyExc_TypeError, "frombuffer(): argument 'dtype' must be torch.dtype");
    return NULL;
  }
  if (!PyObject_CheckBuffer(o)) {
    PyErr_SetString(PyExc_ValueError, "object does not implement Python buffer protocol.");
    return NULL;
  }
  em_tensor *t = NULL;
  em_status st = em_py_buffer_tensor(o, em_py_to_dtype(dtype), count, offset, false, &t);
  if (st == EM_OK && grad) st = em_tensor_set_requires_grad(t, true);
  if (st == EM_OK) return em_py_wrap(t);
  em_tensor_release(t);
  return em_py_raise(st);
}

// ---------------------------------------------------------------- to numpy
// numpy.ndarray(shape, dtype, storage, offset, strides): the storage object exports its bytes and is the array's base.
// numpy.ndarray, looked up once; borrowed.
static PyObject *array_class(void) {
  static PyObject *cls;
  if (cls != NULL) return cls;
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (numpy == NULL) return NULL;
  cls = PyObject_GetAttrString(numpy, "ndarray");
  Py_DECREF(numpy);
  return cls;
}
// The name of a dtype as numpy's class takes it, made once; borrowed.
static PyObject *array_dtype(int dtype) {
  static PyObject *names[EM_NUM_DTYPES];
  if (names[dtype] == NULL) names[dtype] = PyUnicode_InternFromString(em_priv_dtypes[dtype].np);
  return names[dtype];
}
static PyObject *make_array(em_tensor *t) {
  if (em_priv_dtypes[t->dtype].np == NULL)
    return PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", em_dtype_scalar_name(t->dtype));
  PyObject *cls = array_class(), *np = array_dtype(t->dtype);
  int64_t bytes[EM_MAX_DIMS], item = (int64_t)em_tensor_itemsize(t);
  for (int i = 0; i < t->ndim; i++) bytes[i] = t->strides[i] * item;
  PyObject *shape = em_py_ints_tuple(t->ndim, t->sizes), *strides = em_py_ints_tuple(t->ndim, bytes),
           *storage = em_py_storage_of(t->storage), *offset = PyLong_FromLongLong((long long)(t->offset * item)), *r = NULL;
  if (cls != NULL && np != NULL && shape != NULL && strides != NULL && storage != NULL && offset != NULL) {
    t->storage->resizable = 0;  // the array points into it
    PyObject *args[] = {shape, np, storage, offset, strides};
    r = PyObject_Vectorcall(cls, args, t->numel == 0 || t->storage->data == NULL ? 2 : 5, NULL);
  }
  Py_XDECREF(shape);
  Py_XDECREF(strides);
  Py_XDECREF(storage);
  Py_XDECREF(offset);
  return r;
}

static PyObject *to_numpy(em_tensor *t, bool force) {
  if (!force && em_tensor_requires_grad(t)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return NULL;
  }
  if (t->device.type != EM_DEVICE_CPU && !force) {
    char d[32];
    return PyErr_Format(
        PyExc_TypeError,
        "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        em_device_format(t->device, d));
  }
  em_tensor *cpu = NULL;
  em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_py_to_dtype_device(t, EM_DTYPE_NONE, (em_device){EM_DEVICE_CPU, -1}, false, &cpu);
  em_guard_restore(g);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *r = make_array(cpu);
  em_tensor_release(cpu);
  return r;
}
static PyObject *m_numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  PyObject *r;
  bool force = false;
  if (em_py_override_method(self, "numpy", args, n, kw, &r)) return r;
  if (n > 0)
    return PyErr_Format(PyExc_TypeError, "numpy() takes 0 positional arguments but %zd %s given", n,
                        n == 1 ? "was" : "were");
  for (Py_ssize_t i = 0; kw != NULL && i < PyTuple_GET_SIZE(kw); i++) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kw, i), "force") != 0)
      return PyErr_Format(PyExc_TypeError, "numpy() got an unexpected keyword argument '%U'", PyTuple_GET_ITEM(kw, i));
    force = PyObject_IsTrue(args[i]);
  }
  return to_numpy(em_py_t(self), force);
}
static PyObject *m_array(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *copy = Py_None, *a;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|OO:__array__", names, &dtype, &copy)) return NULL;
  if ((a = to_numpy(em_py_t(self), false)) == NULL) return NULL;
  if (dtype == Py_None) return a;
  PyObject *r = PyObject_CallMethod(a, "astype", "OsOOO", dtype, "K", Py_True, Py_True,
                                    copy == Py_True ? Py_True : Py_False);
  if (r == NULL) {
    PyErr_Clear();
    r = PyObject_CallMethod(a, "astype", "O", dtype);
  }
  Py_DECREF(a);
  return r;
}

// ---------------------------------------------------------------- DLPack
// The first word after DLPack's tensor and its context is the function that gives it back.
struct DLManagedTensor { char tensor[48]; void *context; void (*deleter)(struct DLManagedTensor *); };

static void dl_capsule_free(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;
  struct DLManagedTensor *m = PyCapsule_GetPointer(capsule, "dltensor");
  if (m->deleter != NULL) m->deleter(m);
}

static PyObject *m_dlpack(PyObject *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kw)) {
  struct DLManagedTensor *m;
  em_tensor *t = em_py_t(self);
  bool wanted = em_tensor_requires_grad(t), here = t->device.type == EM_DEVICE_CPU;
  em_status st = em_tensor_to_dlpack(t, &m);
  if (st != EM_OK && (wanted || !here)) {
    PyErr_SetString(PyExc_BufferError, em_error_message());
    return NULL;
  }
  if (st != EM_OK) return em_py_raise(st);
  PyObject *capsule = PyCapsule_New(m, "dltensor", dl_capsule_free);
  if (capsule == NULL) m->deleter(m);
  return capsule;
}
static PyObject *m_dlpack_device(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none)) {
  return Py_BuildValue("(ii)", 1, 0);
}

static PyObject *f_from_dlpack(PyObject *Py_UNUSED(m), PyObject *o) {
  PyObject *capsule = PyCapsule_CheckExact(o) ? Py_NewRef(o) : PyObject_CallMethod(o, "__dlpack__", NULL);
  if (capsule == NULL) return NULL;
  em_tensor *t = NULL;
  struct DLManagedTensor *managed = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  em_status st = managed == NULL
                     ? em_fail(
                           EM_ERR_RUNTIME,
                           "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                           "once, so you might have already constructed a tensor from it once.")
                     : em_tensor_from_dlpack(managed, &t);
  if (st == EM_OK) PyCapsule_SetName(capsule, "used_dltensor");
  Py_DECREF(capsule);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}

static PyMethodDef functions[] = {{"from_numpy", f_from_numpy, METH_O, NULL},
                                  {"frombuffer", (PyCFunction)(void *)f_frombuffer, METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"from_dlpack", f_from_dlpack, METH_O, NULL},
                                  {NULL}};
static PyMethodDef methods[] = {{"numpy", (PyCFunction)(void *)m_numpy, METH_FASTCALL | METH_KEYWORDS, NULL},
                                {"__array__", (PyCFunction)(void *)m_array, METH_VARARGS | METH_KEYWORDS, NULL},
                                {"__dlpack__", (PyCFunction)(void *)m_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
                                {"__dlpack_device__", m_dlpack_device, METH_NOARGS, NULL},
                                {NULL}};

int em_py_buffer_init(PyObject *module) {
  if ((s_array_struct = PyUnicode_InternFromString("__array_struct__")) == NULL) return -1;
  for (PyMethodDef *m = methods; m->ml_name != NULL; m++) {
    PyObject *d = PyDescr_NewMethod(&em_py_base_type, m);
    int bad = d == NULL || PyDict_SetItemString(em_py_base_type.tp_dict, m->ml_name, d) < 0;
    Py_XDECREF(d);
    if (bad) return -1;
  }
  return PyModule_AddFunctions(module, functions);
}
