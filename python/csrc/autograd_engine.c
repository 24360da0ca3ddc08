// autograd_engine.c: backward() and grad(), the switches of grad mode, and Tensor's methods that touch the graph.
#include "bridge.h"

// ---------------------------------------------------------------- running the engine
typedef struct run_args {
  em_tensor **roots, **grads, **inputs, **results;
  Py_ssize_t n, m;
} run_args;

// A tuple, for a hook may change a list while the engine runs.
static PyObject *fixed(PyObject *o, const char *message) {
  PyObject *seq = PySequence_Fast(o, message);
  if (seq != NULL && PyList_Check(seq)) Py_SETREF(seq, PyList_AsTuple(seq));
  return seq;
}
static em_tensor **tensors_of(PyObject *seq, bool none_ok, const char *what) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
  em_tensor **p = PyMem_Calloc((size_t)n + 1, sizeof *p);
  if (p == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = PySequence_Fast_GET_ITEM(seq, i);
    if (em_py_is_tensor(o)) p[i] = em_py_t(o);
    else if (!(none_ok && o == Py_None)) {
      PyErr_Format(PyExc_TypeError, "element %zd of %s tuple is not a Tensor%s", i, what, none_ok ? " or None" : "");
      PyMem_Free(p);
      return NULL;
    }
  }
  return p;
}

static PyObject *run_engine(run_args *a, em_backward_options opt) {
  em_status st = em_engine_run(a->roots, a->grads, a->n, a->inputs, a->m, opt, a->results);
  if (st != EM_OK) return em_py_raise(st);
  if (opt.accumulate) Py_RETURN_NONE;
  PyObject *t = PyTuple_New(a->m);
  for (Py_ssize_t i = 0; i < a->m; i++) {
    PyObject *g = em_py_wrap(a->results[i]);
    if (g == NULL || t == NULL) {
      Py_XDECREF(g);
      Py_CLEAR(t);
    } else {
      PyTuple_SET_ITEM(t, i, g);
    }
  }
  return t;
}

// run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad,
// materialize_grads)
static PyObject *run_backward(PyObject *Py_UNUSED(m), PyObject *args, PyObject *kw) {
  static char *names[] = {"tensors", "grad_tensors",      "keep_graph",      "create_graph",
                          "inputs",  "allow_unreachable", "accumulate_grad", "materialize_grads",
                          NULL};
  PyObject *tensors, *grads, *inputs = NULL, *result = NULL;
  int keep = 0, create = 0, unused = 0, accumulate = 0, materialize = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOpp|Oppp:run_backward", names, &tensors, &grads, &keep, &create, &inputs,
                                   &unused, &accumulate, &materialize))
    return NULL;
  run_args a = {NULL};
  PyObject *ts = fixed(tensors, "tensors argument is expected to be a tuple"),
           *gs = fixed(grads, "grad_tensors argument is "
                                        "expected to be a tuple"),
           *is = inputs == NULL || inputs == Py_None ? PyTuple_New(0)
                                                     : fixed(inputs, "inputs argument is "
                                                                               "expected to be a tuple");
  if (ts == NULL || gs == NULL || is == NULL) goto done;
  a.n = PySequence_Fast_GET_SIZE(ts);
  a.m = PySequence_Fast_GET_SIZE(is);
  if (PySequence_Fast_GET_SIZE(gs) != a.n) {
    PyErr_Format(PyExc_RuntimeError, "got %zd tensors and %zd gradients", a.n, PySequence_Fast_GET_SIZE(gs));
    goto done;
  }
  if ((a.roots = tensors_of(ts, false, "tensors")) == NULL || (a.grads = tensors_of(gs, true, "gradients")) == NULL ||
      (a.inputs = tensors_of(is, false, "inputs")) == NULL)
    goto done;
  if ((a.results = PyMem_Calloc((size_t)a.m + 1, sizeof *a.results)) == NULL) {
    PyErr_NoMemory();
    goto done;
  }
  for (Py_ssize_t i = 0; i < a.n; i++)
    if (!em_tensor_requires_grad(a.roots[i])) {
      PyErr_Format(PyExc_RuntimeError, "element %zd of tensors does not require grad and does not have a grad_fn", i);
      goto done;
    }
  result = run_engine(&a, (em_backward_options){.keep_graph = keep,
                                                .create_graph = create,
                                                .allow_unused = unused,
                                                .accumulate = accumulate,
                                                .materialize = materialize});
done:
  PyMem_Free(a.roots);
  PyMem_Free(a.grads);
  PyMem_Free(a.inputs);
  PyMem_Free(a.results);
  Py_XDECREF(ts);
  Py_XDECREF(gs);
  Py_XDECREF(is);
  return result;
}

// loss.backward() with nothing to say: straight to the engine. Everything else: ember.autograd.backward.
static PyObject *m_backward(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  PyObject *r;
  if (em_py_override_method(self, "backward", args, n, kw, &r)) return r;
  em_tensor *t = em_py_t(self), *none = NULL;
  if (n == 0 && kw == NULL && em_tensor_requires_grad(t)) {
    em_status st = em_engine_run(&t, &none, 1, NULL, 0, (em_backward_options){.accumulate = true, .allow_unused = true},
                                 NULL);
    if (st != EM_OK) return em_py_raise(st);
    Py_RETURN_NONE;
  }
  static PyObject *fallback;
  if (fallback == NULL) {
    PyObject *module = PyImport_ImportModule("ember.autograd");
    fallback = module == NULL ? NULL : PyObject_GetAttrString(module, "_tensor_backward");
    Py_XDECREF(module);
    if (fallback == NULL) return NULL;
  }
  Py_ssize_t all = n + (kw == NULL ? 0 : PyTuple_GET_SIZE(kw));
  PyObject **with = PyMem_New(PyObject *, all + 1);
  if (with == NULL) return PyErr_NoMemory();
  with[0] = self;
  for (Py_ssize_t i = 0; i < all; i++) with[i + 1] = args[i];
  r = PyObject_Vectorcall(fallback, with, (size_t)n + 1, kw);
  PyMem_Free(with);
  return r;
}

// ---------------------------------------------------------------- Tensor's methods
static PyObject *m_requires_grad_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  PyObject *r;
  if (em_py_override_method(self, "requires_grad_", args, n, kw, &r)) return r;
  Py_ssize_t all = n + (kw == NULL ? 0 : PyTuple_GET_SIZE(kw));
  if (all > 1 || (kw != NULL && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kw, 0), "requires_grad") != 0))
    return PyErr_Format(PyExc_TypeError, "requires_grad_() takes one argument: requires_grad");
  if (all == 1 && !PyBool_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                        Py_TYPE(args[0])->tp_name);
  em_status st = em_tensor_set_requires_grad(em_py_t(self), all == 0 || args[0] == Py_True);
  return st == EM_OK ? Py_NewRef(self) : em_py_raise(st);
}
static PyObject *m_detach(PyObject *self, PyObject *Py_UNUSED(none)) {
  PyObject *r;
  em_tensor *t = NULL;
  if (em_py_override_method(self, "detach", NULL, 0, NULL, &r)) return r;
  if (em_py_callable_find("detach", EM_PY_METHOD) != NULL) return em_py_call_method("detach", self, NULL, 0, NULL);
  em_status st = em_tensor_detach(em_py_t(self), &t);
  return st == EM_OK ? em_py_wrap(t) : em_py_raise(st);
}
static PyObject *m_retain_grad(PyObject *self, PyObject *Py_UNUSED(none)) {
  PyObject *r;
  if (em_py_override_method(self, "retain_grad", NULL, 0, NULL, &r)) return r;
  em_status st = em_tensor_retain_grad(em_py_t(self));
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}

#define FAST(f) (PyCFunction)(void *) f, METH_FASTCALL | METH_KEYWORDS, NULL
PyMethodDef em_py_autograd_methods[] = {
    {"backward", FAST(m_backward)},
    {"requires_grad_", FAST(m_requires_grad_)},
    {"detach", m_detach, METH_NOARGS, NULL},
    {"retain_grad", m_retain_grad, METH_NOARGS, NULL},
    {"register_hook", em_py_register_tensor_hook, METH_O, NULL},
    {"register_post_accumulate_grad_hook", em_py_register_accumulate_hook, METH_O, NULL},
    {NULL}};

// ---------------------------------------------------------------- modes
static PyObject *is_grad_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_grad_enabled());
}
static PyObject *set_grad_enabled(PyObject *Py_UNUSED(m), PyObject *v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return NULL;
  if (on && !em_priv_tls.inference) em_priv_tls.exclude &= ~EM_KEYBIT(EM_KEY_Autograd);
  else if (!on) em_priv_tls.exclude |= EM_KEYBIT(EM_KEY_Autograd);
  Py_RETURN_NONE;
}
static PyObject *is_inference_enabled(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_priv_tls.inference);
}

// _InferenceMode(on): takes effect when made, ends at __exit__ or when dropped.
typedef struct inference_object {
  PyObject_HEAD uint64_t exclude;
  uint8_t inference, active;
} inference_object;
static PyObject *inference_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kw)) {
  int on = 1;
  if (!PyArg_ParseTuple(args, "|p:_InferenceMode", &on)) return NULL;
  inference_object *o = (inference_object *)type->tp_alloc(type, 0);
  if (o == NULL) return NULL;
  const uint64_t layers = EM_KEYBIT(EM_KEY_Autograd) | EM_KEYBIT(EM_KEY_Alias);
  o->exclude = em_priv_tls.exclude;
  o->inference = em_priv_tls.inference;
  o->active = 1;
  em_priv_tls.inference = (uint8_t)on;
  if (on) em_priv_tls.exclude |= layers;
  else em_priv_tls.exclude &= ~layers;
  return (PyObject *)o;
}
static void inference_end(inference_object *o) {
  if (!o->active) return;
  o->active = 0;
  em_priv_tls.exclude = o->exclude;
  em_priv_tls.inference = o->inference;
}
static PyObject *inference_enter(PyObject *o, PyObject *Py_UNUSED(none)) { return Py_NewRef(o); }
static PyObject *inference_exit(PyObject *o, PyObject *Py_UNUSED(args)) {
  inference_end((inference_object *)o);
  Py_RETURN_NONE;
}
static void inference_dealloc(PyObject *o) {
  inference_end((inference_object *)o);
  Py_TYPE(o)->tp_free(o);
}
static PyMethodDef inference_methods[] = {
    {"__enter__", inference_enter, METH_NOARGS, NULL}, {"__exit__", inference_exit, METH_VARARGS, NULL}, {NULL}};
static PyTypeObject inference_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._InferenceMode",
                                      .tp_basicsize = sizeof(inference_object),
                                      .tp_new = inference_new,
                                      .tp_dealloc = inference_dealloc,
                                      .tp_methods = inference_methods,
                                      .tp_flags = Py_TPFLAGS_DEFAULT};

static PyObject *set_anomaly(PyObject *Py_UNUSED(m), PyObject *const *args, Py_ssize_t n) {
  int on = n > 0 ? PyObject_IsTrue(args[0]) : 0, check = n > 1 ? PyObject_IsTrue(args[1]) : 1;
  if (on < 0 || check < 0) return NULL;
  em_priv_tls.anomaly = (uint8_t)(on ? 1 | (check ? 2 : 0) : 0);
  Py_RETURN_NONE;
}
static PyObject *is_anomaly(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_priv_tls.anomaly & 1);
}
static PyObject *is_anomaly_check(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_priv_tls.anomaly & 2);
}
static bool multithreading = true;
static PyObject *is_multithreading(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(multithreading);
}
static PyObject *set_multithreading(PyObject *Py_UNUSED(m), PyObject *v) {
  int on = PyObject_IsTrue(v);
  if (on < 0) return NULL;
  multithreading = on;
  Py_RETURN_NONE;
}
static PyObject *increment_version(PyObject *Py_UNUSED(m), PyObject *o) {
  PyObject *seq = em_py_is_tensor(o) ? PyTuple_Pack(1, o)
                                     : PySequence_Fast(o, "increment_version expects a tensor or tensors");
  if (seq == NULL) return NULL;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq); i++) {
    PyObject *t = PySequence_Fast_GET_ITEM(seq, i);
    if (!em_py_is_tensor(t)) {
      Py_DECREF(seq);
      return PyErr_Format(PyExc_TypeError, "increment_version expects each element of the iterable to be a tensor");
    }
    em_version_bump(em_py_t(t)->version);
  }
  Py_DECREF(seq);
  Py_RETURN_NONE;
}
static PyObject *graph_task_id(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLongLong(em_engine_run_number());
}
// Whether the backward that runs now will come to this node.
static PyObject *will_execute(PyObject *Py_UNUSED(m), PyObject *o) {
  em_node *n = em_py_is_node(o) ? em_py_to_node(o) : NULL;
  if (!em_py_is_node(o)) return PyErr_Format(PyExc_TypeError, "expected a graph node, got %s", Py_TYPE(o)->tp_name);
  return PyBool_FromLong(n != NULL && em_engine_will_run(n));
}
static PyObject *current_node(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return em_py_node_wrap(em_engine_current_node());
}

static em_status run_callback(void *context) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *r = PyObject_CallNoArgs(context);
  em_status st = r == NULL ? em_py_foreign() : EM_OK;
  Py_XDECREF(r);
  PyGILState_Release(gil);
  return st;
}
static PyObject *queue_callback(PyObject *Py_UNUSED(m), PyObject *fn) {
  em_status st = em_engine_queue_callback(run_callback, Py_NewRef(fn), em_py_decref_anywhere);
  if (st == EM_OK) Py_RETURN_NONE;
  Py_DECREF(fn);
  return em_py_raise(st);
}
static PyObject *gradient_edge(PyObject *Py_UNUSED(m), PyObject *o) {
  if (!em_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  em_edge e = {NULL, 0};
  em_status st = em_node_edge_of(em_py_t(o), &e);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *n = em_py_node_wrap(e.node);
  em_node_release(e.node);
  return n == NULL ? NULL : Py_BuildValue("(NI)", n, e.nr);
}

static PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, NULL},
    {"_set_grad_enabled", set_grad_enabled, METH_O, NULL},
    {"is_inference_mode_enabled", is_inference_enabled, METH_NOARGS, NULL},
    {"set_anomaly_enabled", (PyCFunction)(void *)set_anomaly, METH_FASTCALL, NULL},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, NULL},
    {"is_anomaly_check_nan_enabled", is_anomaly_check, METH_NOARGS, NULL},
    {"_is_multithreading_enabled", is_multithreading, METH_NOARGS, NULL},
    {"_set_multithreading_enabled", set_multithreading, METH_O, NULL},
    {"_increment_version", increment_version, METH_O, NULL},
    {"_current_graph_task_id", graph_task_id, METH_NOARGS, NULL},
    {"_will_engine_execute_node", will_execute, METH_O, NULL},
    {"_current_autograd_node", current_node, METH_NOARGS, NULL},
    {"_run_backward", (PyCFunction)(void *)run_backward, METH_VARARGS | METH_KEYWORDS, NULL},
    {"_queue_callback", queue_callback, METH_O, NULL},
    {"_gradient_edge", gradient_edge, METH_O, NULL},
    {NULL}};

int em_py_autograd_init(PyObject *module) {
  em_py_anomaly_init();
  PyObject *autograd = PyModule_New("ember._C._autograd");
  if (autograd == NULL || PyType_Ready(&inference_type) < 0) return -1;
  if (PyModule_AddObjectRef(module, "_InferenceMode", (PyObject *)&inference_type) < 0 ||
      PyModule_AddFunctions(module, functions) < 0)
    return -1;
  return em_py_hooks_init(autograd) < 0 ? -1 : PyModule_AddObject(module, "_autograd", autograd);
}
