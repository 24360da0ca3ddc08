// tensor_attrs.c: attributes of Tensor: what it is (shape, dtype, device), its place in the graph, its views.
#include "bridge.h"

#define T(o) em_py_t(o)

static void own_version(em_tensor *t, em_version *v) {  // steals v
  t->version = v;
  t->flags |= EM_T_OWN_VERSION;
}
#define GETTER(fn, attr, expr)                                                                                         \
  static PyObject *fn(PyObject *o, void *Py_UNUSED(c)) {                                                               \
    PyObject *r;                                                                                                       \
    if (em_py_override_attr(o, attr, "__get__", NULL, &r)) return r;                                                   \
    return expr;                                                                                                       \
  }

GETTER(get_shape, "shape", em_py_size_new(T(o)->ndim, T(o)->sizes))
GETTER(get_dtype, "dtype", em_py_dtype_new_ref(T(o)->dtype))
GETTER(get_device, "device", em_py_device_new(T(o)->device))
GETTER(get_layout, "layout", em_py_layout_new_ref())
GETTER(get_requires_grad, "requires_grad", PyBool_FromLong(em_tensor_requires_grad(T(o))))
GETTER(get_is_leaf, "is_leaf", PyBool_FromLong(em_tensor_is_leaf(T(o))))
GETTER(get_ndim, "ndim", PyLong_FromLong(T(o)->ndim))
GETTER(get_itemsize, "itemsize", PyLong_FromSize_t(em_tensor_itemsize(T(o))))
GETTER(get_nbytes, "nbytes", PyLong_FromLongLong(T(o)->numel *(int64_t)em_tensor_itemsize(T(o))))
GETTER(get_version, "_version", PyLong_FromUnsignedLong(em_tensor_version(T(o))))
GETTER(get_retains_grad, "retains_grad", PyBool_FromLong(T(o)->meta != NULL && T(o)->meta->retains_grad))
GETTER(get_output_nr, "output_nr", PyLong_FromUnsignedLong(T(o)->meta == NULL ? 0 : T(o)->meta->output_nr))
GETTER(get_is_meta, "is_meta", PyBool_FromLong(T(o)->device.type == EM_DEVICE_META))
GETTER(get_is_cpu, "is_cpu", PyBool_FromLong(T(o)->device.type == EM_DEVICE_CPU))
GETTER(get_is_cuda, "is_cuda", PyBool_FromLong(T(o)->device.type == EM_DEVICE_CUDA))
static PyObject *get_false(PyObject *Py_UNUSED(o), void *Py_UNUSED(c)) { Py_RETURN_FALSE; }
static PyObject *get_none(PyObject *Py_UNUSED(o), void *Py_UNUSED(c)) { Py_RETURN_NONE; }

// ---------------------------------------------------------------- graph
static PyObject *grad_fn_of(em_tensor *t) {
  em_node *n = NULL;
  em_status st = em_tensor_grad_fn(t, &n);
  return st == EM_OK ? em_py_node_wrap(n) : em_py_raise(st);
}
GETTER(get_grad_fn, "grad_fn", grad_fn_of(T(o)))
static int set_grad_fn(PyObject *o, PyObject *value, void *Py_UNUSED(c)) {
  if (value != Py_None) {
    PyErr_SetString(PyExc_RuntimeError, "_grad_fn can be only set to None");
    return -1;
  }
  em_tensor *alias = NULL;
  em_status st = em_tensor_detach(T(o), &alias);
  if (st != EM_OK) return em_py_raise_int(st);
  em_tensor_release(alias);
  return 0;
}

static PyObject *grad_of(em_tensor *t) {
  em_tensor *g = NULL;
  em_status st = em_tensor_grad(t, &g);
  if (st == EM_OK && g == NULL && !em_tensor_is_leaf(t) && !(t->meta != NULL && t->meta->retains_grad))
    st = em_warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
                 "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
                 ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
                 "Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.");
  return st == EM_OK ? em_py_wrap_borrowed(g) : em_py_raise(st);
}
GETTER(get_grad, "grad", grad_of(T(o)))

static int attr_done(PyObject *r) {
  Py_XDECREF(r);
  return r == NULL ? -1 : 0;
}
static int set_grad(PyObject *o, PyObject *value, void *Py_UNUSED(c)) {
  PyObject *r;
  if (value == NULL) value = Py_None;
  if (em_py_override_attr(o, "grad", "__set__", value, &r)) return attr_done(r);
  if (value != Py_None && !em_py_is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s", Py_TYPE(value)->tp_name);
    return -1;
  }
  if (value == o) {
    PyErr_SetString(PyExc_RuntimeError, "can't assign Variable as its own grad");
    return -1;
  }
  em_status st = em_tensor_set_grad(T(o), em_py_t_or_null(value));
  return st == EM_OK ? 0 : em_py_raise_int(st);
}

static int set_requires_grad(PyObject *o, PyObject *value, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "requires_grad", "__set__", value, &r)) return attr_done(r);
  if (value == NULL || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
    return -1;
  }
  if (value == Py_True && !em_dtype_is_differentiable(T(o)->dtype)) {
    PyErr_SetString(PyExc_RuntimeError, "only Tensors of floating point and complex dtype can require gradients");
    return -1;
  }
  em_status st = em_tensor_set_requires_grad(T(o), value == Py_True);
  return st == EM_OK ? 0 : em_py_raise_int(st);
}

static PyObject *get_base(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "_base", "__get__", NULL, &r)) return r;
  em_tensor *t = T(o);
  if (!(t->flags & EM_T_IS_VIEW)) Py_RETURN_NONE;
  return em_py_wrap_borrowed(t->meta->view->base);
}

// .data: the same bytes, no graph, a version counter of its own: writes to it are not seen by autograd.
static em_status data_of(em_tensor *t, em_tensor **out) {
  em_version *v = NULL;
  em_status st = em_tensor_alias(t, out);
  if (st != EM_OK || (*out)->version == NULL) return st;
  if ((st = em_version_new(0, &v)) != EM_OK) {
    EM_CLEAR_TENSOR(out);
    return st;
  }
  own_version(*out, v);
  return EM_OK;
}
static PyObject *get_data(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "data", "__get__", NULL, &r)) return r;
  em_tensor *t = NULL;
  em_status st = data_of(T(o), &t);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}

// x.data = y: x becomes a window on y's bytes and keeps its identity, grad and requires_grad.
static int set_data(PyObject *o, PyObject *value, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "data", "__set__", value, &r)) return attr_done(r);
  if (value == NULL || !em_py_is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s",
                 value == NULL ? "nothing" : Py_TYPE(value)->tp_name);
    return -1;
  }
  em_tensor *t = T(o), *d = T(value);
  if (t->flags & EM_T_REQUIRES_GRAD && !em_dtype_is_differentiable(d->dtype)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "data set to a tensor that requires gradients must be floating point or complex dtype");
    return -1;
  }
  em_storage *s = d->storage == NULL ? NULL : em_storage_retain(d->storage), *old = t->storage;
  uint8_t dtype = t->dtype;
  t->dtype = d->dtype;
  em_status st = em_tensor_set_window(t, d->ndim, d->sizes, d->strides, d->offset);
  if (st != EM_OK) {
    t->dtype = dtype;
    em_storage_release(s);
    return em_py_raise_int(st);
  }
  const uint64_t device_keys = EM_KEYBIT(EM_KEY_CPU) | EM_KEYBIT(EM_KEY_CUDA) | EM_KEYBIT(EM_KEY_OpenCL) |
                               EM_KEYBIT(EM_KEY_Meta);
  t->keys = (t->keys & ~device_keys) | (d->keys & device_keys);
  t->device = d->device;
  // The counter is x's own history, not y's: it goes on from where it was.
  uint32_t version = em_tensor_version(t);
  em_version *v = NULL;
  if (t->version != NULL && !(t->flags & EM_T_OWN_VERSION)) {
    if ((st = em_version_new(version, &v)) != EM_OK) {
      em_storage_release(s);
      return em_py_raise_int(st);
    }
    own_version(t, v);
  }
  t->storage = s;
  em_storage_release(old);
  return 0;
}

// ---------------------------------------------------------------- views by attribute
static PyObject *get_t(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "T", "__get__", NULL, &r)) return r;
  int n = T(o)->ndim;
  if (n != 2 && n != 0 &&
      PyErr_WarnFormat(
          PyExc_UserWarning, 1,
          "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
          "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
          "`x.permute(*torch.arange("
          "x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.") < 0)
    return NULL;
  PyObject *dims = PyTuple_New(n);
  for (int i = 0; dims != NULL && i < n; i++) PyTuple_SET_ITEM(dims, i, PyLong_FromLong(n - 1 - i));
  r = dims == NULL ? NULL : em_py_call_method("permute", o, &dims, 1, NULL);
  Py_XDECREF(dims);
  return r;
}
static PyObject *transpose_last(PyObject *o) {
  PyObject *d[2] = {PyLong_FromLong(-2), PyLong_FromLong(-1)};
  PyObject *r = d[0] == NULL || d[1] == NULL ? NULL : em_py_call_method("transpose", o, d, 2, NULL);
  Py_XDECREF(d[0]);
  Py_XDECREF(d[1]);
  return r;
}
// mT and mH turn the last two dims; a 0-dim tensor is itself, with a warning.
static PyObject *turn_matrices(PyObject *o, const char *name, const char *advice) {
  if (T(o)->ndim == 1)
    return PyErr_Format(PyExc_RuntimeError,
                        "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.", name);
  if (T(o)->ndim > 0) return transpose_last(o);
  if (PyErr_WarnFormat(PyExc_UserWarning, 1, "Tensor.%s is deprecated on 0-D tensors. %s", name, advice) < 0) return NULL;
  return Py_NewRef(o);
}
static PyObject *get_mt(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "mT", "__get__", NULL, &r)) return r;
  return turn_matrices(o, "mT", "This function is the identity in these cases.");
}
static PyObject *get_h(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "H", "__get__", NULL, &r)) return r;
  if (T(o)->ndim != 2 && T(o)->ndim != 0)
    return PyErr_Format(PyExc_RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s",
                        T(o)->ndim, T(o)->ndim > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  PyObject *t = T(o)->ndim == 0 ? Py_NewRef(o) : transpose_last(o);
  r = t != NULL && em_dtype_is_complex(T(t)->dtype) ? em_py_call_method("conj", t, NULL, 0, NULL) : Py_XNewRef(t);
  Py_XDECREF(t);
  return r;
}
static PyObject *get_mh(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "mH", "__get__", NULL, &r)) return r;
  PyObject *t = turn_matrices(o, "mH", "Consider using x.conj().");
  r = t != NULL && em_dtype_is_complex(T(t)->dtype) ? em_py_call_method("conj", t, NULL, 0, NULL)
                                                              : Py_XNewRef(t);
  Py_XDECREF(t);
  return r;
}
static PyObject *real_part(PyObject *o, const char *name) { return em_py_call_function(name, &o, 1, NULL); }
static PyObject *get_real(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "real", "__get__", NULL, &r)) return r;
  return em_dtype_is_complex(T(o)->dtype) ? real_part(o, "real") : Py_NewRef(o);
}
static PyObject *get_imag(PyObject *o, void *Py_UNUSED(c)) {
  PyObject *r;
  if (em_py_override_attr(o, "imag", "__get__", NULL, &r)) return r;
  if (!em_dtype_is_complex(T(o)->dtype)) {
    PyErr_SetString(PyExc_RuntimeError, "imag is not implemented for tensors with non-complex dtypes.");
    return NULL;
  }
  return real_part(o, "imag");
}
static int set_part(PyObject *o, PyObject *value, void *name) {
  PyObject *part = strcmp(name, "real") == 0 ? get_real(o, NULL) : get_imag(o, NULL), *r = NULL;
  if (part != NULL && value != NULL) {
    PyObject *other = em_py_is_tensor(value) ? Py_NewRef(value) : NULL;
    r = other != NULL ? em_py_call_method("copy_", part, &other, 1, NULL)
                      : em_py_call_method("fill_", part, &value, 1, NULL);
    Py_XDECREF(other);
  }
  Py_XDECREF(part);
  return attr_done(r);
}
static PyObject *get_cdata(PyObject *o, void *Py_UNUSED(c)) { return PyLong_FromVoidPtr(T(o)); }

PyGetSetDef em_py_tensor_getset[] = {
    {"shape", get_shape},
    {"dtype", get_dtype},
    {"device", get_device},
    {"layout", get_layout},
    {"requires_grad", get_requires_grad, set_requires_grad},
    {"is_leaf", get_is_leaf},
    {"grad", get_grad, set_grad},
    {"_grad", get_grad, set_grad},
    {"grad_fn", get_grad_fn},
    {"_grad_fn", get_grad_fn, set_grad_fn},
    {"data", get_data, set_data},
    {"_base", get_base},
    {"ndim", get_ndim},
    {"itemsize", get_itemsize},
    {"nbytes", get_nbytes},
    {"_version", get_version},
    {"retains_grad", get_retains_grad},
    {"output_nr", get_output_nr},
    {"is_meta", get_is_meta},
    {"is_cpu", get_is_cpu},
    {"is_cuda", get_is_cuda},
    {"is_sparse", get_false},
    {"is_sparse_csr", get_false},
    {"is_quantized", get_false},
    {"is_mkldnn", get_false},
    {"is_nested", get_false},
    {"is_xla", get_false},
    {"is_xpu", get_false},
    {"is_mps", get_false},
    {"is_vulkan", get_false},
    {"name", get_none},
    {"T", get_t},
    {"mT", get_mt},
    {"H", get_h},
    {"mH", get_mh},
    {"real", get_real, set_part, NULL, "real"},
    {"imag", get_imag, set_part, NULL, "imag"},
    {"_cdata", get_cdata},
    {NULL},
};
