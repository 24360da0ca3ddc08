// tensor_methods.c: methods that answer from metadata alone, without an operator.
#include "bridge.h"

#define T(o) em_py_t(o)
#define ARGS PyObject *o, PyObject *const *args, Py_ssize_t n, PyObject *kw
#define OVERRIDE(name)                                                                                                 \
  do {                                                                                                                 \
    PyObject *r_;                                                                                                      \
    if (em_py_override_method(o, name, args, n, kw, &r_)) return r_;                                                   \
  } while (0)
#define NOARGS(fn, name, expr)                                                                                         \
  static PyObject *fn(PyObject *o, PyObject *Py_UNUSED(none)) {                                                        \
    PyObject *r;                                                                                                       \
    if (em_py_override_method(o, name, NULL, 0, NULL, &r)) return r;                                                   \
    return expr;                                                                                                       \
  }

NOARGS(m_numel, "numel", PyLong_FromLongLong(T(o)->numel))
NOARGS(m_nelement, "nelement", PyLong_FromLongLong(T(o)->numel))
NOARGS(m_dim, "dim", PyLong_FromLong(T(o)->ndim))
NOARGS(m_ndimension, "ndimension", PyLong_FromLong(T(o)->ndim))
NOARGS(m_element_size, "element_size", PyLong_FromSize_t(em_tensor_itemsize(T(o))))
NOARGS(m_storage_offset, "storage_offset", PyLong_FromLongLong(T(o)->offset))
// lint: allow data, because data_ptr() is the address itself
NOARGS(m_data_ptr, "data_ptr", PyLong_FromVoidPtr(T(o)->numel == 0 ? NULL : em_tensor_data(T(o))))
NOARGS(m_is_floating_point, "is_floating_point", PyBool_FromLong(em_dtype_is_float(T(o)->dtype)))
NOARGS(m_is_complex, "is_complex", PyBool_FromLong(em_dtype_is_complex(T(o)->dtype)))
NOARGS(m_is_signed, "is_signed", PyBool_FromLong(T(o)->dtype != EM_U8 && T(o)->dtype != EM_BOOL))
NOARGS(m_is_inference, "is_inference", PyBool_FromLong(T(o)->flags &EM_T_INFERENCE))
NOARGS(m_is_view, "_is_view", PyBool_FromLong(T(o)->flags &EM_T_IS_VIEW))
NOARGS(m_get_device, "get_device",
       PyLong_FromLong(T(o)->device.type == EM_DEVICE_CPU ? -1
                       : T(o)->device.index < 0           ? 0
                                                          : T(o)->device.index))
NOARGS(m_is_pinned, "is_pinned", Py_NewRef(Py_False))
NOARGS(m_is_conj, "is_conj", Py_NewRef(Py_False))  // conjugation is done at once, there is no lazy bit
NOARGS(m_is_neg, "is_neg", Py_NewRef(Py_False))
NOARGS(m_resolve_conj, "resolve_conj", Py_NewRef(o))
NOARGS(m_resolve_neg, "resolve_neg", Py_NewRef(o))
NOARGS(m_has_names, "has_names", Py_NewRef(Py_False))

static PyObject *need_storage(PyObject *o) {
  if (T(o)->storage == NULL)
    return PyErr_Format(PyExc_NotImplementedError, "Cannot access storage of %s", Py_TYPE(o)->tp_name);
  return em_py_storage_of(T(o)->storage);
}
NOARGS(m_untyped_storage, "untyped_storage", need_storage(o))

// size(), size(dim), stride(), stride(dim)
static PyObject *one_or_all(ARGS, const char *name, bool sizes) {
  PyObject *dim = n > 0 ? args[0] : NULL;
  Py_ssize_t nkw = kw == NULL ? 0 : PyTuple_GET_SIZE(kw);
  if (n + nkw > 1 || (nkw == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kw, 0), "dim") != 0))
    return PyErr_Format(PyExc_TypeError, "%s() takes at most one argument: dim", name);
  if (nkw == 1) dim = args[0];
  em_tensor *t = T(o);
  if (dim == NULL || dim == Py_None)
    return sizes ? em_py_size_new(t->ndim, t->sizes) : em_py_ints_tuple(t->ndim, t->strides);
  if (!em_py_is_int(dim) && !em_py_is_tensor(dim))
    return PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' (position 1) must be int, not %s", name,
                        Py_TYPE(dim)->tp_name);
  int64_t d;
  if (em_py_to_int64(dim, &d) < 0) return NULL;
  if (t->ndim == 0)
    return PyErr_Format(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)d);
  em_status st = em_shape_wrap_dim(d, t->ndim, false, &d);
  if (st != EM_OK) return em_py_raise(st);
  return PyLong_FromLongLong(sizes ? t->sizes[d] : t->strides[d]);
}
static PyObject *m_size(ARGS) {
  OVERRIDE("size");
  return one_or_all(o, args, n, kw, "size", true);
}
static PyObject *m_stride(ARGS) {
  OVERRIDE("stride");
  return one_or_all(o, args, n, kw, "stride", false);
}

// ---------------------------------------------------------------- memory formats
static bool channels_last(const em_tensor *t, int ndim) {
  static const int order4[] = {1, 3, 2, 0}, order5[] = {1, 4, 3, 2, 0};
  if (t->ndim != ndim) return false;
  int64_t expect = 1;
  for (int i = 0; i < ndim; i++) {
    int d = ndim == 4 ? order4[i] : order5[i];
    if (t->sizes[d] == 1) continue;
    if (t->strides[d] != expect) return false;
    expect *= t->sizes[d];
  }
  return true;
}
static bool is_contiguous_in(const em_tensor *t, int format) {
  if (format == EM_FORMAT_CHANNELS_LAST) return channels_last(t, 4);
  if (format == EM_FORMAT_CHANNELS_LAST_3D) return channels_last(t, 5);
  return em_tensor_is_contiguous(t);
}
static int format_arg(const char *name, PyObject *const *args, Py_ssize_t n, PyObject *kw, int *format) {
  *format = EM_FORMAT_CONTIGUOUS;
  Py_ssize_t all = n + (kw == NULL ? 0 : PyTuple_GET_SIZE(kw));
  if (all == 0) return 0;
  bool named = kw != NULL && PyTuple_GET_SIZE(kw) == 1 &&
               PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kw, 0), "memory_format") == 0;
  if (all != 1 || (kw != NULL && !named) || Py_TYPE(args[0]) != &em_py_memory_format_type) {
    PyErr_Format(PyExc_TypeError, "%s(): argument 'memory_format' must be torch.memory_format", name);
    return -1;
  }
  *format = ((em_py_enum *)args[0])->value;
  return 0;
}
static PyObject *m_is_contiguous(ARGS) {
  int format;
  OVERRIDE("is_contiguous");
  if (format_arg("is_contiguous", args, n, kw, &format) < 0) return NULL;
  return PyBool_FromLong(is_contiguous_in(T(o), format));
}
static PyObject *m_contiguous(ARGS) {
  int format;
  OVERRIDE("contiguous");
  if (format_arg("contiguous", args, n, kw, &format) < 0) return NULL;
  if (is_contiguous_in(T(o), format)) return Py_NewRef(o);
  if (format == EM_FORMAT_PRESERVE) {
    PyErr_SetString(PyExc_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
    return NULL;
  }
  PyObject *f = em_py_memory_format_new_ref(format), *names = Py_BuildValue("(s)", "memory_format");
  PyObject *r = f == NULL || names == NULL ? NULL : em_py_call_method("clone", o, &f, 0, names);
  Py_XDECREF(f);
  Py_XDECREF(names);
  return r;
}

// ---------------------------------------------------------------- length
static Py_ssize_t mp_length(PyObject *o) {
  PyObject *r;
  if (em_py_override_method(o, "__len__", NULL, 0, NULL, &r)) {
    Py_ssize_t n = r == NULL ? -1 : PyLong_AsSsize_t(r);
    Py_XDECREF(r);
    return n;
  }
  if (T(o)->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return (Py_ssize_t)T(o)->sizes[0];
}
PyMappingMethods em_py_tensor_mapping = {
    .mp_length = mp_length, .mp_subscript = em_py_getitem, .mp_ass_subscript = em_py_setitem};

// set_(source, storage_offset, size, stride): makes the tensor a window on other bytes.
static PyObject *m_set(ARGS) {
  OVERRIDE("set_");
  em_tensor *t = T(o);
  em_py_frame f;
  em_ints size = EM_INTS_NONE, stride = EM_INTS_NONE;
  int64_t offset = 0, strides[EM_MAX_DIMS];
  em_storage *s = NULL, *old;  // s is owned: reading the other arguments may run Python, which may drop it
  PyObject *result = NULL;
  em_status st = EM_OK;
  em_py_frame_init(&f);
  if (kw != NULL) {
    PyErr_SetString(PyExc_TypeError, "set_() takes positional arguments");
    goto done;
  }
  if (n > 0 && em_py_is_tensor(args[0])) {
    em_tensor *src = T(args[0]);
    s = em_storage_retain(src->storage);
    if (n == 1) {
      size = (em_ints){src->sizes, src->ndim};
      stride = (em_ints){src->strides, src->ndim};
      offset = src->offset;
    }
  } else if (n > 0) {
    if ((s = em_py_to_storage(args[0])) == NULL) goto done;
    em_storage_retain(s);
  }
  if (s != NULL && s->device.type != t->device.type) {
    char a[32], b[32];
    PyErr_Format(PyExc_RuntimeError,
                 "Attempted to set the storage of a tensor on device \"%s\" to a storage on different device \"%s\".  "
                 "This is no longer allowed; the devices must match.",
                 em_device_format(t->device, a), em_device_format(s->device, b));
    goto done;
  }
  if (n > 1 && em_py_to_int64(args[1], &offset) < 0) goto done;
  if (n > 2 && em_py_int_list(args[2], &f, &size) < 0) goto done;
  if (n > 3 && em_py_int_list(args[3], &f, &stride) < 0) goto done;
  int64_t whole = s == NULL ? 0 : (int64_t)(s->nbytes / em_tensor_itemsize(t));
  if (size.n < 0) size = (em_ints){&whole, 1};
  if (size.n > EM_MAX_DIMS) {
    PyErr_SetString(PyExc_RuntimeError, "too many dimensions");
    goto done;
  }
  if (stride.n < 0) {
    em_shape_contiguous_strides((int)size.n, size.p, strides);
    stride = (em_ints){strides, size.n};
  }
  if (stride.n != size.n) {
    PyErr_Format(PyExc_RuntimeError, "unequal size length (%lld) and stride length (%lld)", (long long)size.n,
                 (long long)stride.n);
    goto done;
  }
  size_t reach = 0;
  st = em_shape_storage_bytes((int)size.n, size.p, stride.p, offset, em_tensor_itemsize(t), &reach);
  if (st == EM_OK && s != NULL && reach > s->nbytes) st = em_storage_resize(s, reach);  // as PyTorch does
  if (st == EM_OK && s == NULL) st = em_storage_new(0, t->device, &s);
  if (st == EM_OK) st = em_tensor_set_window(t, (int)size.n, size.p, stride.p, offset);
  if (st != EM_OK) {
    (void)em_py_raise(st);
    goto done;
  }
  em_version_bump(t->version);
  if (t->version != NULL && !(t->flags & EM_T_OWN_VERSION)) t->version = &s->version;
  old = t->storage;
  t->storage = s;
  s = old;
  result = Py_NewRef(o);
done:
  em_storage_release(s);
  em_py_frame_clear(&f);
  return result;
}

static PyObject *m_is_set_to(PyObject *o, PyObject *other) {
  if (!em_py_is_tensor(other))
    return PyErr_Format(PyExc_TypeError, "is_set_to(): argument 'tensor' (position 1) must be Tensor, not %s",
                        Py_TYPE(other)->tp_name);
  em_tensor *a = T(o), *b = T(other);
  bool same = a->storage == b->storage && a->offset == b->offset && em_tensor_same_sizes(a, b) &&
              memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0;
  return PyBool_FromLong(same);
}

#define FAST(f) (PyCFunction)(void *) f, METH_FASTCALL | METH_KEYWORDS, NULL
static PyObject *m_use_count(PyObject *o, PyObject *Py_UNUSED(none)) { return PyLong_FromLong((long)em_py_t(o)->rc); }
// Two Python objects exchange their tensors: what torch.utils.swap_tensors needs besides dicts and classes.
static PyObject *m_swap_impl(PyObject *a, PyObject *b) {
  if (!em_py_is_tensor(b)) return PyErr_Format(PyExc_TypeError, "_swap_impl: expected a tensor, not %s", Py_TYPE(b)->tp_name);
  em_py_tensor *x = (em_py_tensor *)a, *y = (em_py_tensor *)b;
  em_tensor *t = x->t;
  x->t = y->t, y->t = t;
  x->t->pyobj = x, y->t->pyobj = y;
  Py_RETURN_NONE;
}

PyMethodDef em_py_tensor_methods[] = {
    {"numel", m_numel, METH_NOARGS, NULL},
    {"nelement", m_nelement, METH_NOARGS, NULL},
    {"dim", m_dim, METH_NOARGS, NULL},
    {"ndimension", m_ndimension, METH_NOARGS, NULL},
    {"element_size", m_element_size, METH_NOARGS, NULL},
    {"storage_offset", m_storage_offset, METH_NOARGS, NULL},
    {"data_ptr", m_data_ptr, METH_NOARGS, NULL},
    {"is_floating_point", m_is_floating_point, METH_NOARGS, NULL},
    {"is_complex", m_is_complex, METH_NOARGS, NULL},
    {"is_signed", m_is_signed, METH_NOARGS, NULL},
    {"is_inference", m_is_inference, METH_NOARGS, NULL},
    {"_is_view", m_is_view, METH_NOARGS, NULL},
    {"get_device", m_get_device, METH_NOARGS, NULL},
    {"is_pinned", m_is_pinned, METH_NOARGS, NULL},
    {"is_conj", m_is_conj, METH_NOARGS, NULL},
    {"is_neg", m_is_neg, METH_NOARGS, NULL},
    {"resolve_conj", m_resolve_conj, METH_NOARGS, NULL},
    {"resolve_neg", m_resolve_neg, METH_NOARGS, NULL},
    {"has_names", m_has_names, METH_NOARGS, NULL},
    {"untyped_storage", m_untyped_storage, METH_NOARGS, NULL},
    {"size", FAST(m_size)},
    {"stride", FAST(m_stride)},
    {"is_contiguous", FAST(m_is_contiguous)},
    {"contiguous", FAST(m_contiguous)},
    {"set_", FAST(m_set)},
    {"is_set_to", m_is_set_to, METH_O, NULL},
    {"_use_count", m_use_count, METH_NOARGS, NULL},
    {"_swap_impl", m_swap_impl, METH_O, NULL},
    {NULL},
};
