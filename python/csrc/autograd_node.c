// autograd_node.c: the recorded graph as Python sees it. Each node class is a Python type of its own, made at first use
// ("AddBackward0"); a node has one Python object while one is alive. Nodes of custom Functions are their ctx.
#include "bridge.h"

typedef struct node_object {
  PyObject_HEAD em_node *node;  // owned
  PyObject *metadata;           // dict, made when asked for
  PyObject *weakrefs;
} node_object;
static PyTypeObject node_type;
static PyObject *class_types;  // dict: address of an em_node_class -> its type

bool em_py_is_node(PyObject *o) { return PyObject_TypeCheck(o, &node_type) || em_py_is_ctx(o); }
em_node *em_py_to_node(PyObject *o) { return em_py_is_ctx(o) ? em_py_ctx_node(o) : ((node_object *)o)->node; }

static em_node *need_node(PyObject *o) {
  em_node *n = em_py_to_node(o);
  if (n == NULL) PyErr_Format(PyExc_RuntimeError, "%s is no longer part of a graph", Py_TYPE(o)->tp_name);
  return n;
}

// ---------------------------------------------------------------- saved values
static PyObject *saved_one(em_saved *s, em_node *n) {
  em_tensor *t = NULL;
  em_status st = em_saved_unpack(s, n, &t);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}
static PyObject *saved_list(em_saved_list *l, em_node *n) {
  em_tensor_list ts = {NULL, 0};
  em_status st = em_saved_list_unpack(l, n, &ts);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *r = PyTuple_New(ts.n);
  for (int64_t i = 0; r != NULL && i < ts.n; i++) PyTuple_SET_ITEM(r, i, em_py_wrap(em_tensor_retain(ts.p[i])));
  em_tensor_list_clear(&ts);
  return r;
}
static PyObject *get_saved(PyObject *o, void *field) {
  const em_saved_field *f = field;
  em_node *n = need_node(o);
  if (n == NULL) return NULL;
  if (f->kind == EM_SAVED_TENSOR) return saved_one((em_saved *)((char *)n + f->offset), n);
  if (f->kind == EM_SAVED_TENSOR_LIST) return saved_list((em_saved_list *)((char *)n + f->offset), n);
  if (n->flags & EM_NODE_RELEASED) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
        "tensors after "
        "calling backward.");
    return NULL;
  }
  em_value v = em_value_none();
  em_status st = f->get(n, &v);
  if (st != EM_OK) return em_py_raise(st);
  bool list = v.tag == EM_TAG_INTS || v.tag == EM_TAG_DOUBLES || v.tag == EM_TAG_BOOLS;
  PyObject *r = em_py_from_value(&v);
  if (r != NULL && list) Py_SETREF(r, PyList_AsTuple(r));
  return r;
}

// ---------------------------------------------------------------- types
static int add_saved(PyTypeObject *type, const em_node_class *cls) {
  for (int i = 0; i < cls->nfields; i++) {
    PyGetSetDef *d = PyMem_Calloc(1, sizeof *d);  // lives as long as the type: for ever
    size_t n = strlen(cls->fields[i].name) + 8;
    char *name = d == NULL ? NULL : PyMem_Malloc(n);
    if (name == NULL) {
      PyMem_Free(d);
      PyErr_NoMemory();
      return -1;
    }
    snprintf(name, n, "_saved_%s", cls->fields[i].name);
    *d = (PyGetSetDef){name, get_saved, NULL, NULL, (void *)&cls->fields[i]};
    PyObject *o = PyDescr_NewGetSet(type, d);
    int bad = o == NULL || PyDict_SetItemString(type->tp_dict, name, o) < 0;
    Py_XDECREF(o);
    if (bad) return -1;
  }
  PyType_Modified(type);
  return 0;
}

static PyTypeObject *type_of(const em_node_class *cls) {
  PyObject *key = PyLong_FromVoidPtr((void *)cls);
  PyObject *type = key == NULL ? NULL : PyDict_GetItemWithError(class_types, key);
  if (type == NULL && key != NULL && !PyErr_Occurred()) {
    const char *colon = strrchr(cls->name, ':');  // "torch::autograd::AccumulateGrad"
    type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s(),ss}", colon == NULL ? cls->name : colon + 1,
                                 &node_type, "__slots__", "__module__", "ember.autograd");
    if (type != NULL && (add_saved((PyTypeObject *)type, cls) < 0 || PyDict_SetItem(class_types, key, type) < 0))
      Py_CLEAR(type);
    Py_XDECREF(type);  // class_types keeps it
  }
  Py_XDECREF(key);
  return (PyTypeObject *)type;
}

PyObject *em_py_node_wrap(em_node *n) {
  if (n == NULL) Py_RETURN_NONE;
  PyObject *ctx = em_py_ctx_of(n);
  if (ctx != NULL) return Py_NewRef(ctx);
  if (n->pyobj != NULL) return Py_NewRef((PyObject *)n->pyobj);
  PyTypeObject *type = type_of(n->cls);
  node_object *o = type == NULL ? NULL : (node_object *)type->tp_alloc(type, 0);
  if (o == NULL) return NULL;
  o->node = em_node_retain(n);
  n->pyobj = o;
  return (PyObject *)o;
}

static void node_dealloc(PyObject *self) {
  node_object *o = (node_object *)self;
  PyObject_GC_UnTrack(self);
  if (o->weakrefs != NULL) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->metadata);
  if (o->node != NULL) {
    o->node->pyobj = NULL;
    em_node_release(o->node);
  }
  Py_TYPE(self)->tp_free(self);
}
typedef struct visit_arg {
  visitproc visit;
  void *arg;
  int result;
} visit_arg;
static int visit_context(void *context, void *arg) {
  visit_arg *v = arg;
  return context != NULL && v->result == 0 ? (v->result = v->visit(context, v->arg)) : 0;
}
static int node_traverse(PyObject *self, visitproc visit, void *arg) {
  node_object *o = (node_object *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->metadata);
  visit_arg v = {visit, arg, 0};
  if (o->node != NULL && em_ref_is_one(&o->node->rc)) em_hook_visit_node(o->node, visit_context, &v);
  return v.result;
}
static int node_clear(PyObject *self) {
  node_object *o = (node_object *)self;
  Py_CLEAR(o->metadata);
  if (o->node != NULL && em_ref_is_one(&o->node->rc)) em_hook_clear_node(o->node);
  return 0;
}

// ---------------------------------------------------------------- what every node answers
static PyObject *node_repr(PyObject *o) { return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(o)->tp_name, o); }
static PyObject *n_name(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_node *n = em_py_to_node(o);
  return PyUnicode_FromString(n == NULL ? Py_TYPE(o)->tp_name : n->cls->name);
}
static PyObject *n_sequence_nr(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_node *n = need_node(o);
  return n == NULL ? NULL : PyLong_FromUnsignedLongLong(n->seq);
}
static PyObject *n_next_functions(PyObject *o, void *Py_UNUSED(c)) {
  em_node *n = need_node(o);
  PyObject *t = n == NULL ? NULL : PyTuple_New(n->n_edges);
  for (uint32_t i = 0; t != NULL && i < n->n_edges; i++) {
    PyObject *f = em_py_node_wrap(n->edges[i].node);
    PyObject *pair = f == NULL ? NULL : Py_BuildValue("(NI)", f, n->edges[i].node == NULL ? 0 : n->edges[i].nr);
    if (pair == NULL) {
      Py_CLEAR(t);
      break;
    }
    PyTuple_SET_ITEM(t, i, pair);
  }
  return t;
}
static PyObject *n_input_metadata(PyObject *o, void *Py_UNUSED(c)) {
  em_node *n = need_node(o);
  PyObject *l = n == NULL ? NULL : PyList_New(n->n_inputs);
  for (uint32_t i = 0; l != NULL && i < n->n_inputs; i++) {
    const em_input_meta *m = &n->inputs[i];
    PyObject *d = m->known ? Py_BuildValue("{sNsNsN}", "shape", em_py_size_new(m->ndim, m->sizes), "dtype",
                                           em_py_dtype_new_ref(m->dtype), "device", em_py_device_new(m->device))
                           : Py_NewRef(Py_None);
    if (d == NULL) {
      Py_CLEAR(l);
      break;
    }
    PyList_SET_ITEM(l, i, d);
  }
  return l;
}
static PyObject *n_metadata(PyObject *o, void *Py_UNUSED(c)) {
  if (em_py_is_ctx(o)) return PyDict_New();
  node_object *n = (node_object *)o;
  if (n->metadata == NULL) n->metadata = PyDict_New();
  return Py_XNewRef(n->metadata);
}
static PyObject *n_variable(PyObject *o, void *Py_UNUSED(c)) {
  em_node *n = need_node(o);
  if (n == NULL) return NULL;
  if (n->cls != &em_class_accumulate_grad)
    return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", Py_TYPE(o)->tp_name);
  return em_py_wrap_borrowed(em_priv_accumulate_variable(n));
}

// grad_fn(grad): runs the formula alone, as PyTorch allows.
static PyObject *node_call(PyObject *o, PyObject *args, PyObject *Py_UNUSED(kw)) {
  em_node *n = need_node(o);
  if (n == NULL) return NULL;
  Py_ssize_t given = PyTuple_GET_SIZE(args);
  if ((uint32_t)given != n->n_inputs)
    return PyErr_Format(PyExc_TypeError, "%s expected %u gradients, got %zd", n->cls->name, n->n_inputs, given);
  em_tensor **grads = PyMem_Calloc((size_t)given + n->n_edges + 1, sizeof *grads), **out = grads + given;
  if (grads == NULL) return PyErr_NoMemory();
  PyObject *r = NULL;
  for (Py_ssize_t i = 0; i < given; i++) {
    PyObject *g = PyTuple_GET_ITEM(args, i);
    if (g != Py_None && !em_py_is_tensor(g)) {
      PyErr_Format(PyExc_TypeError, "expected a Tensor or None, got %s", Py_TYPE(g)->tp_name);
      goto done;
    }
    grads[i] = em_py_t_or_null(g);
  }
  em_node_retain(n);
  em_status st = n->cls->apply(n, grads, out);
  r = st == EM_OK ? PyTuple_New(n->n_edges) : em_py_raise(st);
  for (uint32_t i = 0; i < n->n_edges; i++) {
    if (r != NULL) PyTuple_SET_ITEM(r, i, em_py_wrap(out[i]));
    else em_tensor_release(out[i]);
  }
  if (r != NULL && n->n_edges == 1) Py_SETREF(r, Py_NewRef(PyTuple_GET_ITEM(r, 0)));
  em_node_release(n);
done:
  PyMem_Free(grads);
  return r;
}

PyMethodDef em_py_node_methods[] = {{"name", n_name, METH_NOARGS, NULL},
                                    {"_sequence_nr", n_sequence_nr, METH_NOARGS, NULL},
                                    {"register_hook", em_py_register_node_hook, METH_O, NULL},
                                    {"register_prehook", em_py_register_node_prehook, METH_O, NULL},
                                    {NULL}};
PyGetSetDef em_py_node_getset[] = {
    {"next_functions", n_next_functions}, {"_input_metadata", n_input_metadata}, {"metadata", n_metadata}, {NULL}};
static PyGetSetDef variable_getset[] = {{"variable", n_variable}, {NULL}};

static PyTypeObject node_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember.autograd.Node",
                                 .tp_basicsize = sizeof(node_object),
                                 .tp_dealloc = node_dealloc,
                                 .tp_traverse = node_traverse,
                                 .tp_clear = node_clear,
                                 .tp_repr = node_repr,
                                 .tp_call = node_call,
                                 .tp_methods = em_py_node_methods,
                                 .tp_getset = em_py_node_getset,
                                 .tp_weaklistoffset = offsetof(node_object, weakrefs),
                                 .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC};

int em_py_node_init(PyObject *module) {
  if ((class_types = PyDict_New()) == NULL || PyType_Ready(&node_type) < 0) return -1;
  PyTypeObject *accumulate = type_of(&em_class_accumulate_grad);
  PyObject *d = accumulate == NULL ? NULL : PyDescr_NewGetSet(accumulate, variable_getset);
  int bad = d == NULL || PyDict_SetItemString(accumulate->tp_dict, "variable", d) < 0;
  Py_XDECREF(d);
  if (bad) return -1;
  PyType_Modified(accumulate);
  return PyModule_AddObjectRef(module, "_Node", (PyObject *)&node_type);
}
