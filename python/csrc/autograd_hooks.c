// autograd_hooks.c: Python callables as hooks of tensors and nodes, saved-tensor hooks, and the handles that remove
// them. A hook's context is the callable; exceptions travel through the engine as EM_ERR_FOREIGN.
#include "bridge.h"

// ---------------------------------------------------------------- calling
// grad: what the hook was given, and its result must be like; NULL where there was none.
static em_status grad_result(PyObject *r, PyObject *hook, const em_tensor *grad, em_tensor **out) {
  if (r == NULL) return em_py_foreign();
  em_status st = EM_OK;
  if (r != Py_None && !em_py_is_tensor(r)) {
    PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'", Py_TYPE(r)->tp_name);
    st = EM_ERR_FOREIGN;
  } else if (r != Py_None && grad != NULL && !em_shape_equal(em_py_t(r)->ndim, em_py_t(r)->sizes, grad->ndim, grad->sizes)) {
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (name == NULL) {
      PyErr_Clear();
      name = PyUnicode_FromString("<unknown>");
    }
    if (name != NULL) PyErr_Format(PyExc_RuntimeError, "hook '%S' has changed the size of value", name);
    Py_XDECREF(name);
    st = EM_ERR_FOREIGN;
  } else if (r != Py_None) {
    *out = em_tensor_retain(em_py_t(r));
  }
  Py_DECREF(r);
  return st;
}

static em_status call_tensor_hook(void *context, em_tensor *grad, em_tensor **out) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *g = em_py_wrap_borrowed(grad);
  PyObject *r = g == NULL ? NULL : PyObject_CallOneArg(context, g);
  Py_XDECREF(g);
  em_status st = grad_result(r, context, grad, out);
  PyGILState_Release(gil);
  return st;
}
static em_status call_accumulate_hook(void *context, em_tensor *leaf) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *t = em_py_wrap_borrowed(leaf), *r = t == NULL ? NULL : PyObject_CallOneArg(context, t);
  em_status st = r == NULL ? em_py_foreign() : EM_OK;
  if (r != NULL && r != Py_None) {
    PyErr_SetString(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
    st = EM_ERR_FOREIGN;
  }
  Py_XDECREF(t);
  Py_XDECREF(r);
  PyGILState_Release(gil);
  return st;
}

static PyObject *grads_tuple(em_tensor *const *grads, int64_t n) {
  PyObject *t = PyTuple_New(n);
  for (int64_t i = 0; t != NULL && i < n; i++) {
    PyObject *g = em_py_wrap(em_tensor_retain(grads[i]));
    if (g == NULL) Py_CLEAR(t);
    else PyTuple_SET_ITEM(t, i, g);
  }
  return t;
}
static em_status take_grads(PyObject *r, PyObject *hook, em_tensor *const *grads, int64_t n, em_tensor **out, bool *replaced) {
  if (r == NULL) return em_py_foreign();
  em_status st = EM_OK;
  if (r != Py_None) {
    PyObject *t = PyTuple_Check(r) || PyList_Check(r) ? PySequence_Tuple(r) : PyTuple_Pack(1, r);
    if (t == NULL || PyTuple_GET_SIZE(t) != n) {
      if (t != NULL)
        PyErr_Format(PyExc_RuntimeError, "hook has returned an incorrect number of values (got %zd, but expected %lld)",
                     PyTuple_GET_SIZE(t), (long long)n);
      st = EM_ERR_FOREIGN;
    }
    for (int64_t i = 0; st == EM_OK && i < n; i++)
      st = grad_result(Py_NewRef(PyTuple_GET_ITEM(t, i)), hook, grads[i], &out[i]);
    *replaced = st == EM_OK;
    Py_XDECREF(t);
  }
  Py_DECREF(r);
  return st;
}
static em_status call_node_prehook(void *context, em_tensor *const *grads, int64_t n, em_tensor **out, bool *replaced) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *t = grads_tuple(grads, n);
  PyObject *r = t == NULL ? NULL : PyObject_CallOneArg(context, t);
  Py_XDECREF(t);
  em_status st = take_grads(r, context, grads, n, out, replaced);
  PyGILState_Release(gil);
  return st;
}
// PyTorch calls node hooks with (gradients of inputs, gradients of outputs).
static em_status call_node_posthook(void *context, em_tensor *const *grads_out, int64_t n_out,
                                    em_tensor *const *grads_in, int64_t n_in, em_tensor **out, bool *replaced) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *a = grads_tuple(grads_out, n_out), *b = grads_tuple(grads_in, n_in);
  PyObject *r = a == NULL || b == NULL ? NULL : PyObject_CallFunctionObjArgs(context, a, b, NULL);
  Py_XDECREF(a);
  Py_XDECREF(b);
  em_status st = take_grads(r, context, grads_out, n_out, out, replaced);
  PyGILState_Release(gil);
  return st;
}

// ---------------------------------------------------------------- handles
enum { HANDLE_TENSOR, HANDLE_ACCUMULATE, HANDLE_NODE };
typedef struct handle_object {
  PyObject_HEAD uint64_t id;
  uint8_t kind, removed;
  PyObject *tensor;  // weak reference: a handle keeps nothing alive
  em_node *node;     // owned, for node hooks
} handle_object;
static PyTypeObject handle_type;

static PyObject *handle_new(uint8_t kind, uint64_t id, PyObject *tensor, em_node *node) {
  handle_object *h = PyObject_New(handle_object, &handle_type);
  if (h == NULL) return NULL;
  h->kind = kind;
  h->removed = 0;
  h->id = id;
  h->node = em_node_retain(node);
  h->tensor = tensor == NULL ? NULL : PyWeakref_NewRef(tensor, NULL);
  if (tensor != NULL && h->tensor == NULL) Py_CLEAR(h);
  return (PyObject *)h;
}
static PyObject *handle_remove(PyObject *o, PyObject *Py_UNUSED(none)) {
  handle_object *h = (handle_object *)o;
  if (!h->removed) {
    h->removed = 1;
    PyObject *t = h->tensor == NULL ? NULL : em_py_weakref_get(h->tensor);
    if (t != NULL) {
      if (h->kind == HANDLE_TENSOR) em_hook_remove_tensor(em_py_t(t), h->id);
      else em_hook_remove_accumulate(em_py_t(t), h->id);
    }
    Py_XDECREF(t);
    if (h->node != NULL) em_hook_remove_node(h->node, h->id);
    em_node_release(h->node);
    h->node = NULL;
  }
  Py_RETURN_NONE;
}
static void handle_dealloc(PyObject *o) {
  handle_object *h = (handle_object *)o;
  Py_XDECREF(h->tensor);
  em_node_release(h->node);
  PyObject_Free(o);
}
static PyObject *handle_enter(PyObject *o, PyObject *Py_UNUSED(none)) { return Py_NewRef(o); }
static PyObject *handle_id(PyObject *o, void *Py_UNUSED(c)) {
  return PyLong_FromUnsignedLongLong(((handle_object *)o)->id);
}
static PyMethodDef handle_methods[] = {{"remove", handle_remove, METH_NOARGS, NULL},
                                       {"__enter__", handle_enter, METH_NOARGS, NULL},
                                       {"__exit__", handle_remove, METH_VARARGS, NULL},
                                       {NULL}};
static PyGetSetDef handle_getset[] = {{"id", handle_id}, {NULL}};
static PyTypeObject handle_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember.utils.hooks.RemovableHandle",
                                   .tp_basicsize = sizeof(handle_object),
                                   .tp_dealloc = handle_dealloc,
                                   .tp_methods = handle_methods,
                                   .tp_getset = handle_getset,
                                   .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};

// ---------------------------------------------------------------- registering
static bool callable(PyObject *fn) {
  if (!PyCallable_Check(fn)) PyErr_Format(PyExc_TypeError, "expected a callable hook, got %s", Py_TYPE(fn)->tp_name);
  return PyCallable_Check(fn);
}
static PyObject *registered(em_status st, PyObject *fn, uint8_t kind, uint64_t id, PyObject *tensor, em_node *node) {
  if (st != EM_OK) {
    Py_DECREF(fn);
    return em_py_raise(st);
  }
  if (tensor != NULL) em_py_track(tensor);
  return handle_new(kind, id, tensor, node);
}
PyObject *em_py_register_tensor_hook(PyObject *self, PyObject *fn) {
  PyObject *r;
  uint64_t id = 0;
  if (em_py_override_method(self, "register_hook", &fn, 1, NULL, &r)) return r;
  if (!callable(fn)) return NULL;
  if (!em_tensor_requires_grad(em_py_t(self))) {
    PyErr_SetString(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    return NULL;
  }
  Py_INCREF(fn);
  em_status st = em_hook_tensor(em_py_t(self), call_tensor_hook, fn, em_py_decref_anywhere, &id);
  return registered(st, fn, HANDLE_TENSOR, id, self, NULL);
}
PyObject *em_py_register_accumulate_hook(PyObject *self, PyObject *fn) {
  PyObject *r;
  uint64_t id = 0;
  if (em_py_override_method(self, "register_post_accumulate_grad_hook", &fn, 1, NULL, &r)) return r;
  if (!callable(fn)) return NULL;
  if (!em_tensor_requires_grad(em_py_t(self))) {
    PyErr_SetString(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    return NULL;
  }
  if (!em_tensor_is_leaf(em_py_t(self))) {
    PyErr_SetString(PyExc_RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return NULL;
  }
  Py_INCREF(fn);
  em_status st = em_hook_accumulate(em_py_t(self), call_accumulate_hook, fn, em_py_decref_anywhere, &id);
  return registered(st, fn, HANDLE_ACCUMULATE, id, self, NULL);
}
static em_node *alive(PyObject *self) {
  em_node *n = em_py_to_node(self);
  if (n == NULL) PyErr_SetString(PyExc_RuntimeError, "this node is no longer part of a graph");
  return n;
}
PyObject *em_py_register_node_hook(PyObject *self, PyObject *fn) {
  em_node *n = alive(self);
  uint64_t id = 0;
  if (n == NULL || !callable(fn)) return NULL;
  Py_INCREF(fn);
  em_status st = em_hook_node_post(n, call_node_posthook, fn, em_py_decref_anywhere, &id);
  return registered(st, fn, HANDLE_NODE, id, NULL, n);
}
PyObject *em_py_register_node_prehook(PyObject *self, PyObject *fn) {
  em_node *n = alive(self);
  uint64_t id = 0;
  if (n == NULL || !callable(fn)) return NULL;
  Py_INCREF(fn);
  em_status st = em_hook_node_pre(n, call_node_prehook, fn, em_py_decref_anywhere, &id);
  return registered(st, fn, HANDLE_NODE, id, NULL, n);
}

// ---------------------------------------------------------------- hooks on saved tensors
typedef struct saved_context {
  PyObject *pack, *unpack;
} saved_context;

static em_status call_pack(void *context, em_tensor *t, void **packed) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *o = em_py_wrap_borrowed(t);
  *packed = o == NULL ? NULL : PyObject_CallOneArg(((saved_context *)context)->pack, o);
  Py_XDECREF(o);
  em_status st = *packed == NULL ? em_py_foreign() : EM_OK;
  PyGILState_Release(gil);
  return st;
}
static em_status call_unpack(void *context, void *packed, em_tensor **out) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *r = PyObject_CallOneArg(((saved_context *)context)->unpack, packed);
  em_status st = EM_OK;
  if (r == NULL) st = em_py_foreign();
  else if (!em_py_is_tensor(r)) {
    PyErr_Format(PyExc_TypeError,
                 "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                 Py_TYPE(r)->tp_name);
    st = EM_ERR_FOREIGN;
  } else {
    *out = em_tensor_retain(em_py_t(r));
  }
  Py_XDECREF(r);
  PyGILState_Release(gil);
  return st;
}
static void free_packed(void *Py_UNUSED(context), void *packed) { em_py_decref_anywhere(packed); }
static void free_context(void *context) {
  saved_context *c = context;
  em_py_decref_anywhere(c->pack);
  em_py_decref_anywhere(c->unpack);
  em_free(c, sizeof *c);
}
static void hooks_release(em_saved_hooks *h) {
  if (!em_ref_dec(&h->rc)) return;
  if (h->free_context != NULL) h->free_context(h->context);
  em_free(h, sizeof *h);
}

static PyObject *disabled_text;  // keeps the message's bytes alive
static PyObject *push_saved_hooks(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t n) {
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "expected a pack hook and an unpack hook");
    return NULL;
  }
  if (disabled_text != NULL) {
    PyErr_SetObject(PyExc_RuntimeError, disabled_text);
    return NULL;
  }
  em_saved_hooks *h = em_alloc(sizeof *h);
  saved_context *c = em_alloc(sizeof *c);
  if (h == NULL || c == NULL) {
    if (h != NULL) em_free(h, sizeof *h);
    if (c != NULL) em_free(c, sizeof *c);
    return PyErr_NoMemory();
  }
  *c = (saved_context){Py_NewRef(args[0]), Py_NewRef(args[1])};
  memset(h, 0, sizeof *h);
  atomic_init(&h->rc, 1);
  h->pack = call_pack;
  h->unpack = call_unpack;
  h->free_packed = free_packed;
  h->free_context = free_context;
  h->context = c;
  h->below = em_priv_tls.saved_hooks;
  em_priv_tls.saved_hooks = h;
  Py_RETURN_NONE;
}
static PyObject *pop_saved_hooks(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_saved_hooks *h = em_priv_tls.saved_hooks;
  if (h != NULL) {
    em_priv_tls.saved_hooks = h->below;
    hooks_release(h);
  }
  Py_RETURN_NONE;
}

// disable_saved_tensors_hooks(message): none may be active, and none may be pushed.
static PyObject *saved_hooks_disable(PyObject *Py_UNUSED(m), PyObject *text) {
  if (!PyUnicode_Check(text)) {
    PyErr_SetString(PyExc_TypeError, "expected a message");
    return NULL;
  }
  if (em_priv_tls.saved_hooks != NULL) {
    PyErr_SetObject(PyExc_RuntimeError, text);
    return NULL;
  }
  Py_XSETREF(disabled_text, Py_NewRef(text));
  Py_RETURN_NONE;
}
static PyObject *saved_hooks_enable(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  Py_CLEAR(disabled_text);
  Py_RETURN_NONE;
}
static PyObject *saved_hooks_message(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return Py_NewRef(disabled_text == NULL ? Py_None : disabled_text);
}

static PyMethodDef functions[] = {
    {"_push_saved_tensors_default_hooks", (PyCFunction)(void *)push_saved_hooks, METH_FASTCALL, NULL},
    {"_pop_saved_tensors_default_hooks", pop_saved_hooks, METH_NOARGS, NULL},
    {"_saved_tensors_hooks_disable", saved_hooks_disable, METH_O, NULL},
    {"_saved_tensors_hooks_enable", saved_hooks_enable, METH_NOARGS, NULL},
    {"_saved_tensors_hooks_get_disabled_error_message", saved_hooks_message, METH_NOARGS, NULL},
    {NULL}};

int em_py_hooks_init(PyObject *autograd) {
  if (PyType_Ready(&handle_type) < 0 ||
      PyModule_AddObjectRef(autograd, "RemovableHandle", (PyObject *)&handle_type) < 0)
    return -1;
  return PyModule_AddFunctions(autograd, functions);
}
