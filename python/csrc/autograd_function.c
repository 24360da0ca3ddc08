// autograd_function.c: custom functions (torch.autograd.Function). ctx IS the Python face of the node: the node owns
// ctx, ctx points back without owning, so that dropping the last output frees both. Saved outputs are kept without
// their grad_fn (src/autograd/saved.h), so ctx may hold its own outputs through save_for_backward without a cycle.
#include "bridge.h"
#include "core/iterator.h"

typedef struct output_info {
  uint8_t dtype, ndim;
  em_device device;
  int64_t sizes[EM_MAX_DIMS];
} output_info;

typedef struct ctx_object {
  PyObject_HEAD struct function_node
      *node;  // borrowed: the node owns us; NULL before forward is over and after the node died
  PyObject *to_save, *dirty, *non_differentiable, *needs_input_grad;
  PyObject *dict, *weakrefs;
  em_saved *saved;  // nsaved entries
  Py_ssize_t nsaved;
  output_info **outputs;         // of each output, NULL for what is no tensor
  Py_ssize_t noutputs, ninputs;  // ninputs: all arguments of forward
  uint8_t *input_is_tensor;
  uint8_t materialize, released;
} ctx_object;
static PyTypeObject ctx_type;

typedef struct function_node {
  em_node base;
  PyObject *ctx;
} function_node;
// A class of nodes for each Function: its name is what messages and graphs show.
typedef struct function_class {
  em_node_class base;
  char name[96];
} function_class;

static em_status function_apply(em_node *n, em_tensor *const *grads, em_tensor **out);

bool em_py_is_ctx(PyObject *o) { return PyObject_TypeCheck(o, &ctx_type); }
em_node *em_py_ctx_node(PyObject *o) { return (em_node *)((ctx_object *)o)->node; }
PyObject *em_py_ctx_of(em_node *n) { return n->cls->apply == function_apply ? ((function_node *)n)->ctx : NULL; }

// ---------------------------------------------------------------- ctx: life
static void drop_saved(ctx_object *c) {
  em_saved *saved = c->saved;
  Py_ssize_t n = c->nsaved;
  c->saved = NULL;
  c->nsaved = 0;
  for (Py_ssize_t i = 0; i < n; i++) em_saved_release(&saved[i]);
  PyMem_Free(saved);
}
static int ctx_clear(PyObject *o) {
  ctx_object *c = (ctx_object *)o;
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->non_differentiable);
  Py_CLEAR(c->needs_input_grad);
  Py_CLEAR(c->dict);
  drop_saved(c);
  return 0;
}
static void ctx_dealloc(PyObject *o) {
  ctx_object *c = (ctx_object *)o;
  PyObject_GC_UnTrack(o);
  if (c->weakrefs != NULL) PyObject_ClearWeakRefs(o);
  (void)ctx_clear(o);
  for (Py_ssize_t i = 0; i < c->noutputs; i++) PyMem_Free(c->outputs[i]);
  PyMem_Free(c->outputs);
  PyMem_Free(c->input_is_tensor);
  Py_TYPE(o)->tp_free(o);
}
static int ctx_traverse(PyObject *o, visitproc visit, void *arg) {
  ctx_object *c = (ctx_object *)o;
  Py_VISIT(c->to_save);
  Py_VISIT(c->dirty);
  Py_VISIT(c->non_differentiable);
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(c->dict);
  return 0;
}
static PyObject *ctx_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kw)) {
  ctx_object *c = (ctx_object *)type->tp_alloc(type, 0);
  if (c != NULL) c->materialize = 1;
  return (PyObject *)c;
}

// ---------------------------------------------------------------- ctx: what forward and backward use
// A tuple of our own: `f(*t)` hands t itself over, and entries are replaced when an output turns into an alias.
static PyObject *own_tuple(PyObject *args) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject *copy = PyTuple_New(n);
  for (Py_ssize_t i = 0; copy != NULL && i < n; i++) PyTuple_SET_ITEM(copy, i, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  return copy;
}
static PyObject *keep_tuple(PyObject **field, PyObject *args) {
  PyObject *copy = own_tuple(args);
  if (copy == NULL) return NULL;
  Py_XSETREF(*field, copy);
  Py_RETURN_NONE;
}
static PyObject *ctx_save(PyObject *o, PyObject *args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
    PyObject *x = PyTuple_GET_ITEM(args, i);
    if (x != Py_None && !em_py_is_tensor(x))
      return PyErr_Format(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s",
                          i, Py_TYPE(x)->tp_name);
  }
  return keep_tuple(&((ctx_object *)o)->to_save, args);
}
static PyObject *ctx_mark_dirty(PyObject *o, PyObject *args) {
  return keep_tuple(&((ctx_object *)o)->dirty, args);
}
static PyObject *ctx_mark_non_differentiable(PyObject *o, PyObject *args) {
  return keep_tuple(&((ctx_object *)o)->non_differentiable, args);
}
static PyObject *ctx_set_materialize(PyObject *o, PyObject *v) {
  int b = PyObject_IsTrue(v);
  if (b < 0) return NULL;
  ((ctx_object *)o)->materialize = (uint8_t)b;
  Py_RETURN_NONE;
}

static PyObject *second_time(void) {
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
static PyObject *get_saved_tensors(PyObject *o, void *Py_UNUSED(x)) {
  ctx_object *c = (ctx_object *)o;
  if (c->node == NULL && !c->released && c->to_save != NULL) return own_tuple(c->to_save);  // inside forward
  if (c->released) return second_time();
  Py_ssize_t n = c->nsaved;
  PyObject *t = PyTuple_New(n);
  for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
    if (i >= c->nsaved) {  // an unpack hook ran another backward over this graph
      Py_CLEAR(t);
      return second_time();
    }
    em_tensor *x = NULL;
    em_status st = em_saved_unpack(&c->saved[i], (em_node *)c->node, &x);
    PyObject *w = st == EM_OK ? em_py_wrap(x) : em_py_raise(st);
    if (w == NULL) {
      Py_CLEAR(t);
      break;
    }
    PyTuple_SET_ITEM(t, i, w);
  }
  return t;
}
static PyObject *get_needs_input_grad(PyObject *o, void *Py_UNUSED(x)) {
  PyObject *v = ((ctx_object *)o)->needs_input_grad;
  return Py_NewRef(v == NULL ? Py_None : v);
}
static int set_needs_input_grad(PyObject *o, PyObject *v, void *Py_UNUSED(x)) {
  Py_XSETREF(((ctx_object *)o)->needs_input_grad, Py_XNewRef(v));
  return 0;
}
static PyObject *get_materialize(PyObject *o, void *Py_UNUSED(x)) {
  return PyBool_FromLong(((ctx_object *)o)->materialize);
}
static PyObject *get_field(PyObject *o, void *offset) {
  PyObject *v = *(PyObject **)((char *)o + (size_t)offset);
  return Py_NewRef(v == NULL ? Py_None : v);
}
static int set_field(PyObject *o, PyObject *v, void *offset) {
  PyObject **p = (PyObject **)((char *)o + (size_t)offset), *copy = NULL;
  if (v != NULL && v != Py_None) {
    if (!PyTuple_Check(v)) {
      PyErr_Format(PyExc_TypeError, "expected a tuple of tensors, but got %s", Py_TYPE(v)->tp_name);
      return -1;
    }
    if ((copy = own_tuple(v)) == NULL) return -1;
  }
  Py_XSETREF(*p, copy);
  return 0;
}

// ---------------------------------------------------------------- the node
static void function_release_saved(em_node *n) {
  PyGILState_STATE gil = PyGILState_Ensure();
  ctx_object *c = (ctx_object *)((function_node *)n)->ctx;
  if (c != NULL) {
    if (c->nsaved > 0) c->released = 1;
    drop_saved(c);
  }
  PyGILState_Release(gil);
}
static void function_destroy(em_node *n) {
  function_node *f = (function_node *)n;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *ctx = f->ctx;
  f->ctx = NULL;
  if (ctx != NULL) {
    ((ctx_object *)ctx)->node = NULL;
    Py_DECREF(ctx);
  }
  PyGILState_Release(gil);
}

static void free_class(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, "ember.node_class")); }
static const em_node_class *class_of(PyTypeObject *type) {
  PyObject *capsule = PyDict_GetItemString(type->tp_dict, "_ember_node_class");
  if (capsule != NULL) return PyCapsule_GetPointer(capsule, "ember.node_class");
  function_class *f = PyMem_Calloc(1, sizeof *f);
  if (f == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  snprintf(f->name, sizeof f->name, "%s", type->tp_name);
  f->base = (em_node_class){.name = f->name,
                            .apply = function_apply,
                            .release_saved = function_release_saved,
                            .destroy = function_destroy,
                            .size = sizeof(function_node),
                            .where = "a Python autograd.Function",
                            .always_runs = 1};
  capsule = PyCapsule_New(f, "ember.node_class", free_class);
  if (capsule == NULL) {
    PyMem_Free(f);
    return NULL;
  }
  int bad = PyDict_SetItemString(type->tp_dict, "_ember_node_class", capsule);
  Py_DECREF(capsule);
  return bad ? NULL : &f->base;
}

// ---------------------------------------------------------------- backward
static em_status zeros_of(const output_info *info, em_tensor **out) {
  em_tensor *t = NULL;
  em_status st = em_tensor_new(info->ndim, info->sizes, info->dtype, info->device, &t);
  if (st == EM_OK) st = em_fill(t, em_scalar_int(0));
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}

static PyObject *grads_for_python(ctx_object *c, em_tensor *const *grads) {
  PyObject *args = PyTuple_New(c->noutputs);
  for (Py_ssize_t i = 0; args != NULL && i < c->noutputs; i++) {
    em_tensor *g = em_tensor_retain(grads[i]);
    em_status st = EM_OK;
    if (g == NULL && c->materialize && c->outputs[i] != NULL) st = zeros_of(c->outputs[i], &g);
    PyObject *w = st == EM_OK ? em_py_wrap(g) : em_py_raise(st);
    if (w == NULL) Py_CLEAR(args);
    else PyTuple_SET_ITEM(args, i, w);
  }
  return args;
}

// Checks what backward returned against forward's arguments; fills out[] for those that are tensors.
static int take_gradients(ctx_object *c, em_node *n, PyObject *result, em_tensor **out) {
  PyObject *t = PyTuple_Check(result) ? Py_NewRef(result) : PyTuple_Pack(1, result);
  if (t == NULL) return -1;
  Py_ssize_t given = PyTuple_GET_SIZE(t);
  while (given > c->ninputs && PyTuple_GET_ITEM(t, given - 1) == Py_None) given--;  // extra Nones at the end are fine
  int bad = 0;
  if (given != c->ninputs) {
    PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %zd, got %zd)",
                 n->cls->name, c->ninputs, PyTuple_GET_SIZE(t));
    bad = -1;
  }
  uint32_t edge = 0;
  for (Py_ssize_t i = 0; !bad && i < c->ninputs; i++) {
    PyObject *g = PyTuple_GET_ITEM(t, i);
    if (!c->input_is_tensor[i]) {
      if (g == Py_None) continue;
      PyErr_Format(PyExc_RuntimeError,
                   "function %s returned a gradient different from None at position %zd, but the corresponding forward "
                   "input was "
                   "not a Variable",
                   n->cls->name, i + 1);
      bad = -1;
    } else if (g != Py_None && !em_py_is_tensor(g)) {
      PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %s)", Py_TYPE(g)->tp_name);
      bad = -1;
    } else {
      if (g != Py_None) out[edge] = em_tensor_retain(em_py_t(g));  // wanted or not: hooks of the node see it
      edge++;
    }
  }
  Py_DECREF(t);
  return bad;
}

static em_status function_apply(em_node *n, em_tensor *const *grads, em_tensor **out) {
  PyGILState_STATE gil = PyGILState_Ensure();
  ctx_object *c = (ctx_object *)Py_NewRef(((function_node *)n)->ctx);
  PyObject *fn = PyObject_GetAttrString((PyObject *)c, "apply"), *args = fn == NULL ? NULL : grads_for_python(c, grads);
  PyObject *result = args == NULL ? NULL : PyObject_Call(fn, args, NULL);
  em_status st = EM_OK;
  if (result == NULL || take_gradients(c, n, result, out) < 0) {
    for (uint32_t i = 0; i < n->n_edges; i++) EM_CLEAR_TENSOR(&out[i]);
    st = em_py_foreign();
  }
  Py_XDECREF(result);
  Py_XDECREF(args);
  Py_XDECREF(fn);
  Py_DECREF(c);
  PyGILState_Release(gil);
  return st;
}

// ---------------------------------------------------------------- forward: outputs join the graph
static bool contains(PyObject *tuple, PyObject *o) {
  for (Py_ssize_t i = 0; tuple != NULL && i < PyTuple_GET_SIZE(tuple); i++)
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  return false;
}
static em_status note_output(ctx_object *c, Py_ssize_t i, const em_tensor *t) {
  output_info *info = PyMem_Calloc(1, sizeof *info);
  if (info == NULL) return em_fail(EM_ERR_OOM, "out of memory");
  info->dtype = t->dtype;
  info->ndim = t->ndim;
  info->device = t->device;
  memcpy(info->sizes, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
  c->outputs[i] = info;
  return EM_OK;
}

// An input returned as it is, or an output that needs no gradient although it requires one: another tensor on its
// bytes.
static em_status fresh_alias(PyObject **slot) {
  em_tensor *t = NULL;
  em_status st = em_tensor_alias(em_py_t(*slot), &t);
  if (st != EM_OK) return st;
  PyObject *o = em_py_wrap_as(t, Py_TYPE(*slot));
  if (o == NULL) return EM_ERR_FOREIGN;
  Py_SETREF(*slot, o);
  return EM_OK;
}

static em_status join_modified(em_node *n, uint32_t j, em_tensor *t) {
  if (em_tensor_is_leaf(t) && em_tensor_requires_grad(t))
    return em_fail(EM_ERR_RUNTIME, "a leaf Variable that requires grad has been used in an in-place operation.");
  if ((t->flags & EM_T_IS_VIEW) && t->meta->view->differentiable) return em_inplace_rebase(t, n);
  return em_node_set_history(n, j, t);
}
static em_status join_output(ctx_object *c, em_node *n, PyObject *inputs, Py_ssize_t j, PyObject **slot,
                             Py_ssize_t count) {
  em_tensor *t = em_py_t(*slot);
  bool input = contains(inputs, *slot), modified = contains(c->dirty, *slot);
  if (contains(c->non_differentiable, *slot) || !em_dtype_is_differentiable(t->dtype) || n == NULL)
    return em_tensor_requires_grad(t) && n != NULL ? fresh_alias(slot) : EM_OK;
  if (modified) return join_modified(n, (uint32_t)j, t);
  if (input) {
    EM_PASS(fresh_alias(slot));
    t = em_py_t(*slot);
  }
  if ((t->flags & EM_T_IS_VIEW) && t->meta->view->differentiable) {
    t->meta->view->creation = count > 1 ? EM_CREATED_MULTI_OUTPUT : EM_CREATED_IN_CUSTOM;
    if (count > 1) t->meta->view->multi_name = n->cls->name;
    return em_view_set_history(n, (uint32_t)j, t);
  }
  return em_node_set_history(n, (uint32_t)j, t);
}

static em_status save_tensors(ctx_object *c, em_node *n) {
  Py_ssize_t count = c->to_save == NULL ? 0 : PyTuple_GET_SIZE(c->to_save);
  if (count == 0) return EM_OK;
  if ((c->saved = PyMem_Calloc((size_t)count, sizeof *c->saved)) == NULL) return em_fail(EM_ERR_OOM, "out of memory");
  PyObject *to_save = c->to_save;  // ours from here on: pack hooks run Python, which may look at ctx
  c->to_save = NULL;
  em_status st = EM_OK;
  for (Py_ssize_t i = 0; st == EM_OK && i < count; i++) {
    PyObject *o = PyTuple_GET_ITEM(to_save, i);
    if (o != Py_None && !em_py_is_tensor(o)) {  // assigned to ctx.to_save
      PyErr_Format(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
                   Py_TYPE(o)->tp_name);
      st = EM_ERR_FOREIGN;
      break;
    }
    em_tensor *t = em_py_t_or_null(o);
    bool output = t != NULL && t->meta != NULL && t->meta->grad_fn == n;
    if ((st = em_saved_save(&c->saved[i], t, output)) == EM_OK) c->nsaved++;
  }
  Py_DECREF(to_save);
  return st;
}

static em_node *make_node(ctx_object *c, PyObject *inputs, uint32_t edges, em_status *status) {
  const em_node_class *cls = class_of(Py_TYPE(c));
  if (cls == NULL) {
    *status = EM_ERR_FOREIGN;
    return NULL;
  }
  em_node *n = em_node_new(cls, edges, (uint32_t)c->noutputs);
  if (n == NULL) {
    *status = EM_NOMEM(cls->size);
    return NULL;
  }
  uint32_t e = 0;
  for (Py_ssize_t i = 0; *status == EM_OK && i < c->ninputs; i++)
    if (c->input_is_tensor[i]) *status = em_node_set_edge(n, e++, em_py_t(PyTuple_GET_ITEM(inputs, i)));
  ((function_node *)n)->ctx = Py_NewRef((PyObject *)c);
  c->node = (function_node *)n;
  return n;
}

static PyObject *wrap_outputs(ctx_object *c, PyObject *inputs, PyObject *raw, uint32_t edges, bool records) {
  bool tuple = PyTuple_Check(raw);
  PyObject *outputs = tuple ? PyTuple_GetSlice(raw, 0, PyTuple_GET_SIZE(raw)) : PyTuple_Pack(1, raw);
  em_node *n = NULL;
  em_status st = EM_OK;
  if (outputs == NULL) return NULL;
  Py_ssize_t count = PyTuple_GET_SIZE(outputs);
  if (tuple && outputs == raw) {  // GetSlice hands the same tuple back: entries may be replaced, so a copy
    PyObject *copy = PyTuple_New(count);
    for (Py_ssize_t i = 0; copy != NULL && i < count; i++)
      PyTuple_SET_ITEM(copy, i, Py_NewRef(PyTuple_GET_ITEM(outputs, i)));
    Py_SETREF(outputs, copy);
    if (outputs == NULL) return NULL;
  }
  if ((c->outputs = PyMem_Calloc((size_t)count + 1, sizeof *c->outputs)) == NULL) {
    Py_DECREF(outputs);
    return PyErr_NoMemory();
  }
  c->noutputs = count;
  if (records) {
    n = make_node(c, inputs, edges, &st);
    if (st != EM_OK) goto fail;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject **slot = &((PyTupleObject *)outputs)->ob_item[i];
    if (!em_py_is_tensor(*slot)) continue;
    PyObject *before = Py_NewRef(*slot);
    st = note_output(c, i, em_py_t(*slot));
    if (st == EM_OK) st = join_output(c, n, inputs, i, slot, count);
    if (st == EM_OK && *slot != before && c->to_save != NULL) {  // save what the caller will hold
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(c->to_save); k++)
        if (PyTuple_GET_ITEM(c->to_save, k) == before && !contains(inputs, before)) {
          PyObject **saved = &((PyTupleObject *)c->to_save)->ob_item[k];
          Py_SETREF(*saved, Py_NewRef(*slot));
        }
    }
    Py_DECREF(before);
    if (st != EM_OK) goto fail;
    if (n != NULL) em_py_track(*slot);  // ctx may hold it: the collector must see the cycle
  }
  if (n != NULL && (st = save_tensors(c, n)) != EM_OK) goto fail;
  em_node_release(n);
  if (!records) (void)ctx_clear((PyObject *)c);
  if (!tuple) Py_SETREF(outputs, Py_NewRef(PyTuple_GET_ITEM(outputs, 0)));
  return outputs;
fail:
  em_node_release(n);
  Py_DECREF(outputs);
  return em_py_raise(st);
}

// ---------------------------------------------------------------- Function.apply
static bool has_setup_context(PyObject *cls) {
  PyObject *own = PyObject_GetAttrString(cls, "setup_context"),
           *base = PyObject_GetAttrString((PyObject *)&ctx_type, "_default_setup_context");
  bool yes = own != NULL && base != NULL && own != base;
  if (own == NULL || base == NULL) PyErr_Clear();
  Py_XDECREF(own);
  Py_XDECREF(base);
  return yes;
}

static PyObject *run_forward(PyObject *cls, ctx_object *c, PyObject *args, bool setup) {
  PyObject *fn = PyObject_GetAttrString(cls, "forward"), *out = NULL;
  if (fn == NULL) return NULL;
  if (setup) {
    out = PyObject_Call(fn, args, NULL);
    PyObject *r = out == NULL ? NULL : PyObject_CallMethod(cls, "setup_context", "OOO", c, args, out);
    if (r == NULL) Py_CLEAR(out);
    Py_XDECREF(r);
  } else {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *all = PyTuple_New(n + 1);
    if (all != NULL) {
      PyTuple_SET_ITEM(all, 0, Py_NewRef((PyObject *)c));
      for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
      out = PyObject_Call(fn, all, NULL);
      Py_DECREF(all);
    }
  }
  Py_DECREF(fn);
  return out;
}

static int read_inputs(ctx_object *c, PyObject *args, uint32_t *edges, bool *records) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  c->ninputs = n;
  c->input_is_tensor = PyMem_Calloc((size_t)n + 1, 1);
  c->needs_input_grad = PyTuple_New(n);
  if (c->input_is_tensor == NULL || c->needs_input_grad == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  *edges = 0;
  *records = false;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = PyTuple_GET_ITEM(args, i);
    bool tensor = em_py_is_tensor(x), needs = tensor && em_tensor_requires_grad(em_py_t(x));
    c->input_is_tensor[i] = tensor;
    *edges += tensor;
    *records |= needs;
    PyTuple_SET_ITEM(c->needs_input_grad, i, PyBool_FromLong(needs));
  }
  *records &= em_grad_enabled();
  return 0;
}

static PyObject *function_apply_class(PyObject *cls, PyObject *args) {
  PyObject *backward_cls = PyObject_GetAttrString(cls, "_backward_cls");
  PyObject *ctx = backward_cls == NULL ? NULL : PyObject_CallNoArgs(backward_cls), *result = NULL;
  uint32_t edges;
  bool records, setup = has_setup_context(cls);
  Py_XDECREF(backward_cls);
  if (ctx == NULL) return NULL;
  if (!em_py_is_ctx(ctx)) {
    PyErr_Format(PyExc_TypeError, "%R is not a FunctionCtx", ctx);
  } else if (((ctx_object *)ctx)->input_is_tensor != NULL) {
    PyErr_SetString(PyExc_RuntimeError, "a FunctionCtx serves one call of apply()");
  } else if (read_inputs((ctx_object *)ctx, args, &edges, &records) == 0) {
    em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
    PyObject *raw = run_forward(cls, (ctx_object *)ctx, args, setup);
    em_guard_restore(g);
    if (raw != NULL) result = wrap_outputs((ctx_object *)ctx, args, raw, edges, records);
    Py_XDECREF(raw);
  }
  Py_DECREF(ctx);
  return result;
}
static PyObject *default_setup_context(PyObject *Py_UNUSED(none), PyObject *Py_UNUSED(args)) {
  PyErr_SetString(PyExc_NotImplementedError, "setup_context is not implemented.");
  return NULL;
}

#define FIELD(name)                                                                                                    \
  { #name, get_field, set_field, NULL, (void *)offsetof(ctx_object, name) }
static PyMethodDef methods[] = {{"apply", function_apply_class, METH_CLASS | METH_VARARGS, NULL},
                                {"save_for_backward", ctx_save, METH_VARARGS,
                                 "save_for_backward(*tensors): keeps arguments or results for backward, where ctx.saved_tensors has them."},
                                {"mark_dirty", ctx_mark_dirty, METH_VARARGS,
                                 "mark_dirty(*tensors): says which arguments forward wrote in place; it must return them."},
                                {"mark_non_differentiable", ctx_mark_non_differentiable, METH_VARARGS,
                                 "mark_non_differentiable(*tensors): says which results need no gradient."},
                                {"set_materialize_grads", ctx_set_materialize, METH_O,
                                 "set_materialize_grads(on): whether backward gets zeros, rather than None, for results that nobody used."},
                                {"_default_setup_context", default_setup_context, METH_STATIC | METH_VARARGS, NULL},
                                {NULL}};
static PyGetSetDef getset[] = {{"saved_tensors", get_saved_tensors},
                               {"saved_variables", get_saved_tensors},
                               {"needs_input_grad", get_needs_input_grad, set_needs_input_grad},
                               {"materialize_grads", get_materialize},
                               FIELD(to_save),
                               {"dirty_tensors", get_field, set_field, NULL, (void *)offsetof(ctx_object, dirty)},
                               FIELD(non_differentiable),
                               {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                               {NULL}};
static PyTypeObject ctx_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._FunctionBase",
                                .tp_basicsize = sizeof(ctx_object),
                                .tp_new = ctx_new,
                                .tp_dealloc = ctx_dealloc,
                                .tp_traverse = ctx_traverse,
                                .tp_clear = ctx_clear,
                                .tp_methods = methods,
                                .tp_getset = getset,
                                .tp_dictoffset = offsetof(ctx_object, dict),
                                .tp_weaklistoffset = offsetof(ctx_object, weakrefs),
                                .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC};

int em_py_ctx_init(PyObject *module) {
  if (PyType_Ready(&ctx_type) < 0) return -1;
  for (PyMethodDef *m = em_py_node_methods; m->ml_name != NULL; m++) {  // ctx answers as a node too
    PyObject *d = PyDescr_NewMethod(&ctx_type, m);
    int bad = d == NULL || PyDict_SetItemString(ctx_type.tp_dict, m->ml_name, d) < 0;
    Py_XDECREF(d);
    if (bad) return -1;
  }
  for (PyGetSetDef *g = em_py_node_getset; g->name != NULL; g++) {
    PyObject *d = PyDescr_NewGetSet(&ctx_type, g);
    int bad = d == NULL || PyDict_SetItemString(ctx_type.tp_dict, g->name, d) < 0;
    Py_XDECREF(d);
    if (bad) return -1;
  }
  PyType_Modified(&ctx_type);
  return PyModule_AddObjectRef(module, "_FunctionBase", (PyObject *)&ctx_type);
}
