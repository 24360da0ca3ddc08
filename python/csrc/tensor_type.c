// tensor_type.c: the Python object of a tensor: its life, its identity, its subclasses.
//
// One Python object a tensor (em_tensor.pyobj). It normally owns one reference of the tensor. When it dies while C
// still holds the tensor (a graph saved it, a list of C keeps it) and dying would lose something, because it is of a
// subclass, has a __dict__ or weak references, ownership flips: the tensor owns the object (EM_T_PY_OWNED), the
// object borrows the tensor, and the next em_py_wrap flips it back.
//
// Cycle collection: plain tensors are not tracked. A tensor is tracked from the first attribute, hook or output of a
// custom Function on, and always when of a subclass. While C holds references of its own (count > 1) traverse visits
// nothing: the object counts as reached from outside, which it is.
#include "bridge.h"

#define FREE_MAX 1024
static em_py_tensor *free_list;  // linked through `t`
static int free_count;
PyTypeObject *em_py_tensor_class;

// ---------------------------------------------------------------- making
PyObject *em_py_wrap_new(em_tensor *t) {
  em_py_tensor *p = free_list;
  if (EM_LIKELY(p != NULL)) {
    free_list = (em_py_tensor *)p->t;
    free_count--;
    (void)PyObject_Init((PyObject *)p, em_py_tensor_class);
  } else if ((p = PyObject_GC_New(em_py_tensor, em_py_tensor_class)) == NULL) {
    em_tensor_release(t);
    return NULL;
  }
  p->t = t;
  p->dict = p->weakrefs = NULL;
  t->pyobj = p;
  return (PyObject *)p;
}

PyObject *em_py_wrap(em_tensor *t) {
  if (EM_UNLIKELY(t == NULL)) Py_RETURN_NONE;
  PyObject *o = t->pyobj;
  if (EM_LIKELY(o == NULL)) return em_py_wrap_new(t);
  if (t->flags &
      EM_T_PY_OWNED) {  // flip back: the caller's reference of t becomes o's, t's reference of o the caller's
    t->flags &= (uint16_t)~EM_T_PY_OWNED;
    return o;
  }
  Py_INCREF(o);
  em_tensor_release(t);
  return o;
}

PyObject *em_py_wrap_borrowed(em_tensor *t) { return em_py_wrap(em_tensor_retain(t)); }

PyObject *em_py_wrap_as(em_tensor *t, PyTypeObject *cls) {
  if (cls == em_py_tensor_class) return em_py_wrap_new(t);
  em_py_tensor *p = (em_py_tensor *)cls->tp_alloc(cls, 0);  // zeroed and tracked
  if (p == NULL) {
    em_tensor_release(t);
    return NULL;
  }
  p->t = t;
  t->pyobj = p;
  if (cls->tp_flags & (EM_TP_FUNCTION | EM_TP_DISPATCH)) t->flags |= EM_T_PY_SUBCLASS;
  if (cls->tp_flags & EM_TP_DISPATCH) t->keys |= EM_KEYBIT(EM_KEY_PythonDispatch);
  return (PyObject *)p;
}

void em_py_track(PyObject *o) {
  if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

// ---------------------------------------------------------------- dying
static bool flip_ownership(em_py_tensor *p) {
  em_tensor *t = p->t;
  if (t == NULL || em_ref_is_one(&t->rc)) return false;
  Py_SET_REFCNT((PyObject *)p, 1);
  t->flags |= EM_T_PY_OWNED;
  (void)em_ref_dec(&t->rc);  // was above one, and the GIL is held: never the last
  return true;
}

// The __slots__ of subclasses: a heap type keeps the definitions of its members behind itself.
static void each_slot(PyObject *o, bool (*each)(PyObject **slot, void *arg), void *arg) {
  for (PyTypeObject *type = Py_TYPE(o); type != &em_py_base_type; type = type->tp_base) {
    PyMemberDef *m = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? (PyMemberDef *)((char *)type + Py_TYPE(type)->tp_basicsize)
                                                          : NULL;
    for (Py_ssize_t i = 0; m != NULL && i < Py_SIZE(type); i++)
      if (m[i].type == T_OBJECT_EX && !(m[i].flags & READONLY) && !each((PyObject **)((char *)o + m[i].offset), arg))
        return;
  }
}
static bool clear_slot(PyObject **slot, void *Py_UNUSED(arg)) {
  Py_CLEAR(*slot);
  return true;
}

static void dealloc_slow(PyObject *o) {
  em_py_tensor *p = (em_py_tensor *)o;
  PyTypeObject *type = Py_TYPE(o);
  if (flip_ownership(p)) return;
  if (type->tp_finalize != NULL || type->tp_del != NULL) {
    em_py_track(o);
    if (type->tp_finalize != NULL && PyObject_CallFinalizerFromDealloc(o) < 0) return;  // it lives again
    if (type->tp_del != NULL) type->tp_del(o);
    if (Py_REFCNT(o) > 0) return;
  }
  PyObject_GC_UnTrack(o);
  if (p->weakrefs != NULL) PyObject_ClearWeakRefs(o);
  Py_CLEAR(p->dict);
  if (type != em_py_tensor_class) each_slot(o, clear_slot, NULL);
  em_tensor *t = p->t;
  p->t = NULL;
  if (t != NULL) {
    t->pyobj = NULL;
    em_tensor_release(t);
  }
  PyObject_GC_Del(o);
  Py_DECREF(type);
}

static void tensor_dealloc(PyObject *o) {
  em_py_tensor *p = (em_py_tensor *)o;
  if (EM_UNLIKELY(!em_py_is_exact(o) || p->dict != NULL || p->weakrefs != NULL)) {
    dealloc_slow(o);
    return;
  }
  PyObject_GC_UnTrack(o);
  em_tensor *t = p->t;
  if (EM_LIKELY(t != NULL)) {
    t->pyobj = NULL;
    em_tensor_release(t);
  }
  if (EM_LIKELY(free_count < FREE_MAX)) {
    p->t = (em_tensor *)free_list;
    free_list = p;
    free_count++;
  } else {
    PyObject_GC_Del(o);
  }
  Py_DECREF(em_py_tensor_class);
}

// The tensor dies and owns its object. Ownership flips back for the object's last moments, so that finalizers and
// weakref callbacks see a live tensor; the object's release, now the only owner, frees the tensor for real.
// em_tensor_free returns after this call: a finalizer may also have kept the object.
static void pyobj_release(em_tensor *t) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);  // finalizers must not see or lose an exception in flight
  t->flags &= (uint16_t)~EM_T_PY_OWNED;
  atomic_store_explicit(&t->rc, 1, memory_order_relaxed);
  Py_DECREF((PyObject *)t->pyobj);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(gil);
}

// ---------------------------------------------------------------- cycles
typedef struct visit_arg {
  visitproc visit;
  void *arg;
  int result;
} visit_arg;
static int visit_context(void *context, void *arg) {
  visit_arg *v = arg;
  return context != NULL && v->result == 0 ? (v->result = v->visit(context, v->arg)) : 0;
}
static bool visit_slot(PyObject **slot, void *arg) {
  visit_arg *v = arg;
  if (*slot != NULL) v->result = v->visit(*slot, v->arg);
  return v->result == 0;
}

static int visit_graph(em_tensor *t, visit_arg *v) {
  em_hook_visit_tensor(t, visit_context, v);
  if (v->result != 0 || t->meta == NULL) return v->result;
  em_tensor *grad = t->meta->grad;
  if (grad != NULL && (grad->flags & EM_T_PY_OWNED) && em_ref_is_one(&grad->rc)) visit_context(grad->pyobj, v);
  em_node *node = t->meta->grad_fn;
  if (v->result == 0 && node != NULL && em_ref_is_one(&node->rc)) {
    visit_context(em_py_ctx_of(node), v);
    em_hook_visit_node(node, visit_context, v);
  }
  return v->result;
}

static int tensor_traverse(PyObject *o, visitproc visit, void *arg) {
  em_py_tensor *p = (em_py_tensor *)o;
  if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(o));
  if (p->t != NULL && !em_ref_is_one(&p->t->rc)) return 0;
  Py_VISIT(p->dict);
  visit_arg v = {visit, arg, 0};
  if (!em_py_is_exact(o)) each_slot(o, visit_slot, &v);
  return v.result == 0 && p->t != NULL ? visit_graph(p->t, &v) : v.result;
}

static int tensor_clear(PyObject *o) {
  em_py_tensor *p = (em_py_tensor *)o;
  if (p->t != NULL && !em_ref_is_one(&p->t->rc)) return 0;
  Py_CLEAR(p->dict);
  if (!em_py_is_exact(o)) each_slot(o, clear_slot, NULL);
  if (p->t != NULL && p->t->meta != NULL) em_hook_clear_tensor(p->t);
  return 0;
}

// ---------------------------------------------------------------- attributes
static int tensor_setattro(PyObject *o, PyObject *name, PyObject *value) {
  int bad = PyObject_GenericSetAttr(o, name, value);
  if (((em_py_tensor *)o)->dict != NULL) em_py_track(o);
  return bad;
}
static PyObject *get_dict(PyObject *o, void *context) {
  PyObject *d = PyObject_GenericGetDict(o, context);
  if (d != NULL) em_py_track(o);
  return d;
}
static int set_dict(PyObject *o, PyObject *value, void *context) {
  int bad = PyObject_GenericSetDict(o, value, context);
  if (((em_py_tensor *)o)->dict != NULL) em_py_track(o);
  return bad;
}
static PyGetSetDef dict_getset[] = {{"__dict__", get_dict, set_dict}, {NULL}};

// ---------------------------------------------------------------- subclasses
static PyObject *disabled_function;  // ember._C._disabled_torch_function_impl
static PyObject *disabled_dispatch;

// The function behind an attribute of a type: unwraps classmethod and staticmethod.
static bool overrides(PyTypeObject *type, const char *name, PyObject *disabled) {
  PyObject *key = PyUnicode_InternFromString(name);
  if (key == NULL) {
    PyErr_Clear();
    return false;
  }
  PyObject *found = _PyType_Lookup(type, key);
  Py_DECREF(key);
  if (found == NULL || found == disabled) return false;
  if (Py_TYPE(found) == &PyStaticMethod_Type || Py_TYPE(found) == &PyClassMethod_Type) {
    PyObject *inner = PyObject_GetAttrString(found, "__func__");
    if (inner == NULL) {
      PyErr_Clear();
      return true;
    }
    Py_DECREF(inner);
    return inner != disabled;
  }
  return true;
}

int em_py_type_bits(PyTypeObject *type) {
  if (em_py_tensor_class == NULL || type == em_py_tensor_class) return 0;
  unsigned long bits = 0;
  if (overrides(type, "__torch_function__", disabled_function)) bits |= EM_TP_FUNCTION;
  if (overrides(type, "__torch_dispatch__", disabled_dispatch)) bits |= EM_TP_DISPATCH;
  type->tp_flags = (type->tp_flags & ~(EM_TP_FUNCTION | EM_TP_DISPATCH)) | bits;
  PyObject *subs = PyObject_CallMethod((PyObject *)type, "__subclasses__", NULL);
  if (subs == NULL) return -1;
  int bad = 0;
  for (Py_ssize_t i = 0; !bad && i < PyList_GET_SIZE(subs); i++)
    bad = em_py_type_bits((PyTypeObject *)PyList_GET_ITEM(subs, i));
  Py_DECREF(subs);
  return bad;
}

static PyObject *meta_new(PyTypeObject *meta, PyObject *args, PyObject *kw) {
  PyTypeObject *cls = (PyTypeObject *)PyType_Type.tp_new(meta, args, kw);
  if (cls == NULL) return NULL;
  cls->tp_flags |= EM_TP_TENSOR;
  cls->tp_dealloc = tensor_dealloc;
  cls->tp_traverse = tensor_traverse;
  cls->tp_clear = tensor_clear;
  if (em_py_type_bits(cls) < 0) Py_CLEAR(cls);
  return (PyObject *)cls;
}
static int meta_setattro(PyObject *cls, PyObject *name, PyObject *value) {
  if (PyType_Type.tp_setattro(cls, name, value) < 0) return -1;
  if (!PyUnicode_Check(name) || (PyUnicode_CompareWithASCIIString(name, "__torch_function__") != 0 &&
                                 PyUnicode_CompareWithASCIIString(name, "__torch_dispatch__") != 0))
    return 0;
  return em_py_type_bits((PyTypeObject *)cls);
}
PyTypeObject em_py_meta_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._TensorMeta",
    .tp_new = meta_new,
    .tp_setattro = meta_setattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_base = NULL,
};

static PyObject *base_new(PyTypeObject *cls, PyObject *args, PyObject *kw) {
  if (cls == &em_py_base_type) {
    PyErr_SetString(PyExc_TypeError, "Cannot create a new instance of TensorBase");
    return NULL;
  }
  return em_py_legacy_new(cls, args, kw);
}

PyTypeObject em_py_base_type = {
    PyVarObject_HEAD_INIT(&em_py_meta_type, 0).tp_name = "ember._C.TensorBase",
    .tp_basicsize = sizeof(em_py_tensor),
    .tp_dealloc = tensor_dealloc,
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_new = base_new,
    .tp_setattro = tensor_setattro,
    .tp_dictoffset = offsetof(em_py_tensor, dict),
    .tp_weaklistoffset = offsetof(em_py_tensor, weakrefs),
    .tp_as_number = &em_py_tensor_number,
    .tp_as_mapping = &em_py_tensor_mapping,
    .tp_richcompare = em_py_tensor_compare,
    .tp_hash = em_py_tensor_hash,
    .tp_iter = em_py_tensor_iter,
    .tp_as_sequence = &em_py_tensor_sequence,
    .tp_getset = em_py_tensor_getset,
    .tp_methods = em_py_tensor_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
};

// ---------------------------------------------------------------- making subclass instances
static PyTypeObject *subclass_arg(PyObject *cls) {
  if (PyType_Check(cls) && (((PyTypeObject *)cls)->tp_flags & EM_TP_TENSOR)) return (PyTypeObject *)cls;
  PyErr_Format(PyExc_TypeError, "cls must be a type (got %s)", Py_TYPE(cls)->tp_name);
  return NULL;
}

static PyObject *alias_as(em_tensor *data, PyTypeObject *cls, bool requires_grad) {
  em_tensor *t = NULL;
  em_status st = em_tensor_alias(data, &t);
  if (st == EM_OK && requires_grad && !em_dtype_is_differentiable(t->dtype))
    st = em_fail(EM_ERR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
  if (st == EM_OK && requires_grad) st = em_tensor_set_requires_grad(t, true);
  if (st == EM_OK) return em_py_wrap_as(t, cls);
  em_tensor_release(t);
  return em_py_raise(st);
}

static PyObject *make_subclass(PyObject *Py_UNUSED(none), PyObject *args, PyObject *kw) {
  static char *names[] = {
      "cls", "data", "require_grad", "dispatch_strides", "dispatch_device", "device_for_backend_keys", NULL};
  PyObject *cls, *data, *unused = NULL;
  int require_grad = 0, strides = 0, device = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|p$ppO:_make_subclass", names, &cls, &data, &require_grad, &strides,
                                   &device, &unused))
    return NULL;
  PyTypeObject *type = subclass_arg(cls);
  if (type == NULL) return NULL;
  if (!em_py_is_tensor(data))
    return PyErr_Format(PyExc_TypeError, "_make_subclass(): argument 'data' (position 2) must be Tensor, not %s",
                        Py_TYPE(data)->tp_name);
  return alias_as(em_py_t(data), type, require_grad);
}

// as_subclass keeps the graph: an alias made by an operator.
static PyObject *as_subclass(PyObject *self, PyObject *cls) {
  PyTypeObject *type = subclass_arg(cls);
  if (type == NULL) return NULL;
  const em_operator *op = em_operator_find("aten", "alias", "");
  if (op == NULL) return alias_as(em_py_t(self), type, false);
  em_value arg = em_value_tensor(em_py_t(self)), ret = em_value_none();
  em_status st = em_priv_call_boxed(op, &arg, &ret);
  return st == EM_OK ? em_py_wrap_as(ret.tensor, type) : em_py_raise(st);
}

static int optional_ints(PyObject *o, em_py_frame *f, em_ints *out) {
  *out = EM_INTS_NONE;
  return o == NULL || o == Py_None ? 0 : em_py_int_list(o, f, out);
}

// A tensor without bytes: sizes, dtype and device as told, all calls go to __torch_dispatch__.
static em_status wrapper_new(em_ints size, em_ints strides, int64_t offset, int dtype, em_device device, bool grad,
                             em_tensor **out) {
  em_tensor *t = NULL;
  em_status st = EM_OK;
  EM_TRY(em_tensor_new_strided((int)size.n, size.p, strides.n >= 0 ? strides.p : NULL, dtype,
                               (em_device){EM_DEVICE_META, -1}, &t));
  t->device = device;
  t->keys &= ~EM_KEYBIT(EM_KEY_Meta);
  t->offset = offset;
  if (grad) EM_TRY(em_tensor_set_requires_grad(t, true));
  *out = t;
  return EM_OK;
fail:
  em_tensor_release(t);
  return st;
}

static PyObject *make_wrapper_subclass(PyObject *Py_UNUSED(none), PyObject *args, PyObject *kw) {
  static char *names[] = {"cls",
                          "size",
                          "strides",
                          "storage_offset",
                          "memory_format",
                          "dtype",
                          "layout",
                          "device",
                          "pin_memory",
                          "requires_grad",
                          "dispatch_sizes_strides_policy",
                          "dispatch_device",
                          "dispatch_layout",
                          "_extra_dispatch_keys",
                          "storage_size",
                          NULL};
  PyObject *cls, *size, *strides = NULL, *offset = Py_None, *format = NULL, *dtype = Py_None, *layout = NULL,
                        *device = Py_None, *extra[3];
  int pin = 0, grad = 0, b[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|$OOOOOOppOppOO:_make_wrapper_subclass", names, &cls, &size, &strides,
                                   &offset, &format, &dtype, &layout, &device, &pin, &grad, &extra[0], &b[0], &b[1],
                                   &extra[1], &extra[2]))
    return NULL;
  PyTypeObject *type = subclass_arg(cls);
  if (type == NULL) return NULL;
  if (!(type->tp_flags & EM_TP_DISPATCH)) {
    PyErr_Format(PyExc_TypeError, "%s must define __torch_dispatch__", type->tp_name);
    return NULL;
  }
  em_device d = {EM_DEVICE_CPU, -1};
  int64_t off = 0;
  if (device != Py_None && em_py_to_device(device, &d) < 0) return NULL;
  if (offset != Py_None && em_py_to_int64(offset, &off) < 0) return NULL;
  if (dtype != Py_None && !em_py_is_dtype(dtype)) {
    PyErr_SetString(PyExc_TypeError, "dtype must be torch.dtype");
    return NULL;
  }
  em_py_frame f;
  em_py_frame_init(&f);
  em_ints sizes, st;
  PyObject *result = NULL;
  if (optional_ints(size, &f, &sizes) == 0 && optional_ints(strides, &f, &st) == 0) {
    em_tensor *t = NULL;
    em_status s = wrapper_new(sizes, st, off, dtype == Py_None ? em_dtype_default() : em_py_to_dtype(dtype), d, grad,
                              &t);
    result = s == EM_OK ? em_py_wrap_as(t, type) : em_py_raise(s);
  }
  em_py_frame_clear(&f);
  return result;
}

static PyMethodDef subclass_methods[] = {
    {"_make_subclass", (PyCFunction)(void *)make_subclass, METH_STATIC | METH_VARARGS | METH_KEYWORDS, NULL},
    {"_make_wrapper_subclass", (PyCFunction)(void *)make_wrapper_subclass, METH_STATIC | METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"as_subclass", as_subclass, METH_O, NULL},
    {NULL},
};

// ---------------------------------------------------------------- start
static int add_to_type(PyTypeObject *type, PyMethodDef *methods, PyGetSetDef *getset) {
  for (; methods != NULL && methods->ml_name != NULL; methods++) {
    PyObject *d;
    if (methods->ml_flags & METH_STATIC) {
      PyMethodDef *m = methods;
      m->ml_flags &= ~METH_STATIC;
      PyObject *f = PyCFunction_NewEx(m, NULL, NULL);
      d = f == NULL ? NULL : PyStaticMethod_New(f);
      Py_XDECREF(f);
    } else {
      d = PyDescr_NewMethod(type, methods);
    }
    if (d == NULL) return -1;
    int bad = PyDict_SetItemString(type->tp_dict, methods->ml_name, d);
    Py_DECREF(d);
    if (bad) return -1;
  }
  for (; getset != NULL && getset->name != NULL; getset++) {
    PyObject *d = PyDescr_NewGetSet(type, getset);
    if (d == NULL) return -1;
    int bad = PyDict_SetItemString(type->tp_dict, getset->name, d);
    Py_DECREF(d);
    if (bad) return -1;
  }
  return 0;
}

// _disabled_torch_function_impl(cls, func, types, args, kwargs): calls func with subclasses switched off.
static PyObject *disabled_function_impl(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *func, *types, *a, *kw = NULL;
  Py_ssize_t n = PyTuple_GET_SIZE(args), skip = n > 0 && PyType_Check(PyTuple_GET_ITEM(args, 0)) ? 1 : 0;
  PyObject *rest = PyTuple_GetSlice(args, skip, n);
  if (rest == NULL) return NULL;
  PyObject *result = NULL, *empty = NULL;
  if (PyArg_ParseTuple(rest, "OO|OO:_disabled_torch_function_impl", &func, &types, &a, &kw)) {
    if (PyTuple_GET_SIZE(rest) < 3) a = empty = PyTuple_New(0);
    uint8_t was = em_priv_py_tls.function_disabled;
    if (was == 0) em_priv_py_tls.function_disabled = 1;
    PyObject *tuple = a == NULL ? NULL : PySequence_Tuple(a);
    if (tuple != NULL) result = PyObject_Call(func, tuple, kw == Py_None ? NULL : kw);
    Py_XDECREF(tuple);
    em_priv_py_tls.function_disabled = was;
  }
  Py_XDECREF(empty);
  Py_DECREF(rest);
  return result;
}
static PyObject *disabled_dispatch_impl(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(args)) {
  PyErr_SetString(PyExc_RuntimeError, "_disabled_torch_dispatch_impl is a marker and is not called");
  return NULL;
}
static PyMethodDef disabled[] = {
    {"_disabled_torch_function_impl", disabled_function_impl, METH_VARARGS, NULL},
    {"_disabled_torch_dispatch_impl", disabled_dispatch_impl, METH_VARARGS, NULL},
    {NULL},
};

int em_py_tensor_init(PyObject *module) {
  em_priv_pyobj_release = pyobj_release;
  em_py_meta_type.tp_base = &PyType_Type;
  if (PyType_Ready(&em_py_meta_type) < 0 || PyType_Ready(&em_py_base_type) < 0) return -1;
  em_py_base_type.tp_flags |= EM_TP_TENSOR;
  if (PyModule_AddFunctions(module, disabled) < 0) return -1;
  disabled_function = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  disabled_dispatch = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  if (disabled_function == NULL || disabled_dispatch == NULL) return -1;
  if (add_to_type(&em_py_base_type, subclass_methods, dict_getset) < 0 ||
      add_to_type(&em_py_base_type, em_py_autograd_methods, NULL) < 0 ||
      add_to_type(&em_py_base_type, em_py_convert_methods, NULL) < 0)
    return -1;
  PyObject *cls = PyObject_CallFunction((PyObject *)&em_py_meta_type, "s(O){ssss}", "Tensor", &em_py_base_type,
                                        "__module__", "ember", "__qualname__", "Tensor");
  if (cls == NULL) return -1;
  em_py_tensor_class = (PyTypeObject *)cls;
  em_py_tensor_class->tp_flags &= ~(EM_TP_FUNCTION | EM_TP_DISPATCH);
  if (PyModule_AddObjectRef(module, "_TensorMeta", (PyObject *)&em_py_meta_type) < 0) return -1;
  if (PyModule_AddObjectRef(module, "TensorBase", (PyObject *)&em_py_base_type) < 0) return -1;
  return PyModule_AddObjectRef(module, "Tensor", cls);
}
