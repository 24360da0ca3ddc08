// dispatch_py.c: operators as Python objects, kernels written in Python for any key of any operator, new operators, and
// __torch_dispatch__ (subclasses and modes) by a boxed fallback for the PythonDispatch key.
#include "bridge.h"
#include "dispatch/autocast.h"
#include "dispatch/boxing.h"

// ---------------------------------------------------------------- one overload as an object
typedef struct op_object {
  PyObject_HEAD const em_operator *op;
  PyObject *dict;
} op_object;
static PyTypeObject op_type;
static PyObject *op_objects;  // dict: address -> op_object: one object an operator
#define OP(o) (((op_object *)(o))->op)

static PyObject *op_wrap(const em_operator *op) {
  PyObject *key = PyLong_FromVoidPtr((void *)op);
  PyObject *o = key == NULL ? NULL : PyDict_GetItemWithError(op_objects, key);
  if (o != NULL) {
    Py_INCREF(o);
  } else if (key != NULL && !PyErr_Occurred()) {
    op_object *n = (op_object *)op_type.tp_alloc(&op_type, 0);
    if (n != NULL) {
      n->op = op;
      if (PyDict_SetItem(op_objects, key, (PyObject *)n) < 0) Py_CLEAR(n);
    }
    o = (PyObject *)n;
  }
  Py_XDECREF(key);
  return o;
}
PyObject *em_py_operator_object(const em_operator *op) { return op_wrap(op); }
static PyObject *overload_text(const em_operator *op) {
  return PyUnicode_FromString(op->overload[0] ? op->overload : "default");
}
static PyObject *op_repr(PyObject *o) {
  return PyUnicode_FromFormat("<OpOverload(op='%s.%s', overload='%s')>", OP(o)->ns, OP(o)->name,
                              OP(o)->overload[0] ? OP(o)->overload : "default");
}
static PyObject *op_str(PyObject *o) {
  return PyUnicode_FromFormat("%s.%s.%s", OP(o)->ns, OP(o)->name, OP(o)->overload[0] ? OP(o)->overload : "default");
}
static PyObject *op_call(PyObject *o, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(args), nkw = kw == NULL ? 0 : PyDict_GET_SIZE(kw), at = 0;
  if (nkw == 0) return em_py_call_operator(OP(o), ((PyTupleObject *)args)->ob_item, n, NULL);
  PyObject **all = PyMem_New(PyObject *, n + nkw), *names = PyTuple_New(nkw), *k, *v, *r = NULL;
  if (all != NULL && names != NULL) {
    for (Py_ssize_t i = 0; i < n; i++) all[i] = PyTuple_GET_ITEM(args, i);
    for (Py_ssize_t i = 0; PyDict_Next(kw, &at, &k, &v); i++) {
      PyTuple_SET_ITEM(names, i, Py_NewRef(k));
      all[n + i] = v;
    }
    r = em_py_call_operator(OP(o), all, n, names);
  } else {
    PyErr_NoMemory();
  }
  PyMem_Free(all);
  Py_XDECREF(names);
  return r;
}
static PyObject *get_text(PyObject *o, void *which) {
  const em_operator *op = OP(o);
  switch ((intptr_t)which) {
    case 0: return PyUnicode_FromString(op->schema);
    case 1: return PyUnicode_FromFormat("%s::%s", op->ns, op->name);
    case 2: return overload_text(op);
    case 3: return PyUnicode_FromString(op->ns);
    case 4: return PyUnicode_FromFormat("%s.%s", op->name, op->overload[0] ? op->overload : "default");
    case 5: return PyUnicode_FromString(op->full);
    case 7: return PyUnicode_FromString(op->name);
    default: return PyUnicode_FromFormat("ember._ops.%s", op->ns);
  }
}
static PyObject *get_flag(PyObject *o, void *flag) { return PyBool_FromLong(OP(o)->flags & (intptr_t)flag); }
static PyObject *get_mutable(PyObject *o, void *Py_UNUSED(c)) {
  return PyBool_FromLong(OP(o)->variant != EM_FUNCTIONAL);
}
static PyObject *op_reduce(PyObject *o, PyObject *Py_UNUSED(none)) {
  PyObject *module = PyImport_ImportModule("ember._C"),
           *get = module == NULL ? NULL : PyObject_GetAttrString(module, "_get_operation");
  Py_XDECREF(module);
  return get == NULL ? NULL : Py_BuildValue("(N(sss))", get, OP(o)->ns, OP(o)->name, OP(o)->overload);
}
static PyObject *op_redispatch(PyObject *o, PyObject *args, PyObject *kw);
static PyObject *op_name(PyObject *o, PyObject *Py_UNUSED(none)) { return PyUnicode_FromString(OP(o)->full); }
static PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, NULL},
                                   {"name", op_name, METH_NOARGS, "Its full name: aten::add.Tensor."},
                                   {"redispatch", (PyCFunction)(void *)op_redispatch, METH_VARARGS | METH_KEYWORDS,
                                    "redispatch(excluded_keys, *args): the call without these keys."},
                                   {NULL}};
// What Python makes of an operator: `_schema` and its kind. The closure names a function of a module of the package.
static PyObject *get_python(PyObject *o, void *which) {
  const char *const *names = which;
  PyObject *module = PyImport_ImportModule(names[0]), *r = module == NULL ? NULL : PyObject_CallMethod(module, names[1], "O", o);
  Py_XDECREF(module);
  return r;
}
static const char *const schema_of[] = {"ember._schema", "schema_of"}, *const tags_of[] = {"ember._tags", "of"},
                         *const packet_of[] = {"ember._ops", "packet_of"};
static PyGetSetDef op_getset[] = {{"_schema", get_python, NULL, NULL, (void *)schema_of},
                                  {"_schema_text", get_text, NULL, NULL, (void *)0},
                                  {"tags", get_python, NULL, NULL, (void *)tags_of},
                                  {"_tags", get_python, NULL, NULL, (void *)tags_of},
                                  {"overloadpacket", get_python, NULL, NULL, (void *)packet_of},
                                  {"_overloadpacket", get_python, NULL, NULL, (void *)packet_of},
                                  {"_opname", get_text, NULL, NULL, (void *)7},
                                  {"_name", get_text, NULL, NULL, (void *)5},
                                  {"_namespace", get_text, NULL, NULL, (void *)3},
                                  {"_qualified_op_name", get_text, NULL, NULL, (void *)1},
                                  {"_overloadname", get_text, NULL, NULL, (void *)2},
                                  {"namespace", get_text, NULL, NULL, (void *)3},
                                  {"__name__", get_text, NULL, NULL, (void *)4},
                                  {"_full", get_text, NULL, NULL, (void *)5},
                                  {"__module__", get_text, NULL, NULL, (void *)6},
                                  {"is_view", get_flag, NULL, NULL, (void *)EM_OP_VIEW},
                                  {"_is_composite", get_flag, NULL, NULL, (void *)EM_OP_COMPOSITE},
                                  {"_is_mutable", get_mutable},
                                  {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
                                  {NULL}};
static PyTypeObject op_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._ops.OpOverload",
                               .tp_basicsize = sizeof(op_object),
                               .tp_repr = op_repr,
                               .tp_str = op_str,
                               .tp_call = op_call,
                               .tp_methods = op_methods,
                               .tp_getset = op_getset,
                               .tp_dictoffset = offsetof(op_object, dict),
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION};

// ---------------------------------------------------------------- boxed values to Python arguments and back
// Trailing arguments that hold their defaults are left out, keyword-only ones go by name: what __torch_dispatch__ sees.
static bool is_default(const em_arg *a, const em_value *v) {
  if (!(a->flags & EM_ARG_HAS_DEFAULT)) return false;
  const em_value *d = &a->dflt;
  if (d->tag != v->tag) return false;
  switch (d->tag) {
    case EM_TAG_NONE: return true;
    case EM_TAG_DOUBLE: return d->d == v->d;
    case EM_TAG_SCALAR:
      return d->scalar.kind == v->scalar.kind && d->scalar.kind != EM_SCALAR_COMPLEX && d->scalar.i == v->scalar.i;
    case EM_TAG_INTS:
      return d->list.n == v->list.n && (d->list.n == 0 || memcmp(d->list.p, v->list.p, (size_t)d->list.n * 8) == 0);
    case EM_TAG_STRING: return strcmp(d->string, v->string) == 0;
    case EM_TAG_BOOL:
    case EM_TAG_INT:
    case EM_TAG_DTYPE:
    case EM_TAG_LAYOUT:
    case EM_TAG_MEMORY_FORMAT: return d->i == v->i;
    default: return false;
  }
}
static int python_args(const em_operator *op, const em_value *args, PyObject **tuple, PyObject **kw) {
  int npos = 0, last = 0;
  while (npos < op->nargs && !(op->args[npos].flags & EM_ARG_KWARG_ONLY)) npos++;
  for (int i = 0; i < npos; i++)
    if (!is_default(&op->args[i], &args[i])) last = i + 1;
  *tuple = PyTuple_New(last);
  *kw = PyDict_New();
  if (*tuple == NULL || *kw == NULL) return -1;
  for (int i = 0; i < last; i++) {
    PyObject *o = em_py_from_value_borrowed(&args[i]);
    if (o == NULL) return -1;
    PyTuple_SET_ITEM(*tuple, i, o);
  }
  for (int i = npos; i < op->nargs; i++) {
    if (is_default(&op->args[i], &args[i])) continue;
    PyObject *o = em_py_from_value_borrowed(&args[i]);
    int bad = o == NULL || PyDict_SetItemString(*kw, op->args[i].name, o) < 0;
    Py_XDECREF(o);
    if (bad) return -1;
  }
  return 0;
}

static int one_result(const em_operator *op, int i, PyObject *o, em_value *ret) {
  em_arg a = {.name = "result", .type = op->ret_types[i], .flags = EM_ARG_OPTIONAL};
  em_py_frame f;
  em_value v;
  em_py_frame_init(&f);
  int r = em_py_to_value(o, &a, true, &f, &v);
  if (r == 0)
    PyErr_Format(PyExc_TypeError, "%s: a Python kernel returned %s where the schema says %s", op->full,
                 Py_TYPE(o)->tp_name, em_py_type_name(&a));
  if (r > 0) {
    em_status st = em_value_copy(&v, ret);
    if (st != EM_OK) r = em_py_raise_int(st);
  }
  em_py_frame_clear(&f);
  return r > 0 ? 0 : -1;
}
static em_status take_results(const em_operator *op, const em_value *args, PyObject *r, em_value *rets) {
  if (r == NULL) return em_py_foreign();
  if (op->variant != EM_FUNCTIONAL && op->nrets > 0) {  // the boxed convention returns the written arguments
    int k = 0;
    for (int i = 0; i < op->nargs && k < op->nrets; i++)
      if (op->args[i].flags & EM_ARG_MUTATED && args[i].tag == EM_TAG_TENSOR)
        rets[k++] = em_value_tensor_steal(em_tensor_retain(args[i].tensor));
    Py_DECREF(r);
    return EM_OK;
  }
  int bad = 0;
  if (op->nrets == 1) bad = one_result(op, 0, r, &rets[0]);
  else if (op->nrets > 1) {
    if (!PyTuple_Check(r) && !PyList_Check(r)) {
      PyErr_Format(PyExc_TypeError, "%s: a Python kernel must return %d values", op->full, op->nrets);
      bad = -1;
    } else if (PySequence_Fast_GET_SIZE(r) != op->nrets) {
      PyErr_Format(PyExc_RuntimeError, "%s: a Python kernel returned %zd values, expected %d", op->full,
                   PySequence_Fast_GET_SIZE(r), op->nrets);
      bad = -1;
    }
    for (int i = 0; !bad && i < op->nrets; i++) bad = one_result(op, i, PySequence_Fast_GET_ITEM(r, i), &rets[i]);
  }
  Py_DECREF(r);
  if (!bad) return EM_OK;
  for (int i = 0; i < op->nrets; i++) em_value_clear(&rets[i]);
  return em_py_foreign();
}

// ---------------------------------------------------------------- kernels in Python
typedef struct kernel_context {
  PyObject *fn;
  int key;
  uint8_t with_keys, as_fallback;
} kernel_context;
static void kernel_release(void *context) {
  kernel_context *k = context;
  em_py_decref_anywhere(k->fn);
  em_free(k, sizeof *k);
}
// Runs below its own key: a kernel for Autograd may call operators without meeting itself again. A kernel that calls
// the same operator with the same key switched on asks for it with `redispatch`.
static em_status run_python_kernel(const em_operator *op, uint64_t ks, void *context, const em_value *args,
                                   em_value *rets) {
  kernel_context *k = context;
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *tuple = NULL, *kw = NULL, *r = NULL;
  for (int i = 0; i < op->nrets; i++) rets[i] = em_value_none();
  if (python_args(op, args, &tuple, &kw) == 0) {
    if (k->as_fallback || k->with_keys) {
      PyObject *first = k->as_fallback ? op_wrap(op) : PyLong_FromUnsignedLongLong(ks);
      Py_ssize_t n = PyTuple_GET_SIZE(tuple);
      PyObject *all = first == NULL ? NULL : PyTuple_New(n + 1);
      if (all != NULL) {
        PyTuple_SET_ITEM(all, 0, first);
        for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
      } else {
        Py_XDECREF(first);
      }
      Py_SETREF(tuple, all);
    }
    em_guard g = em_guard_exclude(0);
    bool backend = k->key == EM_KEY_CPU || k->key == EM_KEY_Meta || k->key == EM_KEY_CUDA || k->key == EM_KEY_OpenCL;
    if (!backend) em_priv_tls.exclude |= EM_KEYBIT(k->key);
    if (tuple != NULL) r = PyObject_Call(k->fn, tuple, kw);
    em_guard_restore(g);
  }
  em_status st = take_results(op, args, r, rets);
  Py_XDECREF(tuple);
  Py_XDECREF(kw);
  PyGILState_Release(gil);
  return st;
}

static PyObject *op_redispatch(PyObject *o, PyObject *args, PyObject *kw) {
  if (PyTuple_GET_SIZE(args) < 1) {
    PyErr_SetString(PyExc_TypeError, "redispatch() wants the keys to leave out first");
    return NULL;
  }
  uint64_t keys = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(args, 0));
  if (keys == (uint64_t)-1 && PyErr_Occurred()) return NULL;
  PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
  if (rest == NULL) return NULL;
  em_guard g = em_guard_exclude(keys);
  PyObject *r = op_call(o, rest, kw);
  em_guard_restore(g);
  Py_DECREF(rest);
  return r;
}

static int key_number(const char *name) {
  static const char *const names[] = EM_KEY_NAMES;
  for (int i = 0; i < EM_NUM_KEYS; i++)
    if (strcmp(names[i], name) == 0) return i;
  if (strcmp(name, "ADInplaceOrView") == 0) return EM_KEY_Alias;
  if (strcmp(name, "AutogradCPU") == 0 || strcmp(name, "AutogradCUDA") == 0) return EM_KEY_Autograd;
  if (strcmp(name, "AutocastCPU") == 0) return EM_KEY_Autocast;
  if (strcmp(name, "Python") == 0) return EM_KEY_PythonDispatch;
  PyErr_Format(PyExc_ValueError, "unknown dispatch key '%s'", name);
  return -1;
}

static kernel_context *kernel_new(PyObject *fn, int key, bool with_keys, bool fallback) {
  kernel_context *k = em_alloc(sizeof *k);
  if (k == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  *k = (kernel_context){Py_NewRef(fn), key, with_keys, fallback};
  return k;
}

// _impl(op, key, fn or None, with_keyset)
static PyObject *f_impl(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *o, *fn;
  const char *key;
  int with_keys = 0;
  if (!PyArg_ParseTuple(args, "O!sO|p:_impl", &op_type, &o, &key, &fn, &with_keys)) return NULL;
  int k = key_number(key);
  if (k < 0) return NULL;
  em_status st;
  if (fn == Py_None) {
    st = em_operator_set_boxed((em_operator *)OP(o), k, NULL, NULL, NULL, NULL);
  } else {
    kernel_context *c = kernel_new(fn, k, with_keys, false);
    if (c == NULL) return NULL;
    st = em_operator_set_boxed((em_operator *)OP(o), k, run_python_kernel, c, kernel_release, "Python kernel");
    if (st != EM_OK) kernel_release(c);
  }
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
// _fallback(key, fn or None): fn(op, *args, **kwargs) for every operator without a kernel of its own there
static PyObject *f_fallback(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *fn;
  const char *key;
  if (!PyArg_ParseTuple(args, "sO:_fallback", &key, &fn)) return NULL;
  int k = key_number(key);
  if (k < 0) return NULL;
  em_status st;
  if (fn == Py_None) st = em_dispatch_set_fallback(k, NULL, NULL, NULL, NULL);
  else {
    kernel_context *c = kernel_new(fn, k, false, true);
    if (c == NULL) return NULL;
    st = em_dispatch_set_fallback(k, run_python_kernel, c, kernel_release, "Python fallback");
    if (st != EM_OK) kernel_release(c);
  }
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *f_define(PyObject *Py_UNUSED(m), PyObject *schema) {
  const char *s = PyUnicode_AsUTF8(schema);
  em_operator *op = NULL;
  if (s == NULL) return NULL;
  em_status st = em_operator_define(s, &op);
  return st == EM_OK ? op_wrap(op) : em_py_raise(st);
}

// ---------------------------------------------------------------- looking around
static PyObject *f_get_operation(PyObject *Py_UNUSED(m), PyObject *args) {
  const char *ns, *name, *overload;
  if (!PyArg_ParseTuple(args, "sss:_get_operation", &ns, &name, &overload)) return NULL;
  const em_operator *op = em_operator_find(ns, name, strcmp(overload, "default") == 0 ? "" : overload);
  if (op == NULL) Py_RETURN_NONE;
  return op_wrap(op);
}
static PyObject *f_overloads(PyObject *Py_UNUSED(m), PyObject *args) {
  const char *ns, *name;
  if (!PyArg_ParseTuple(args, "ss:_overloads", &ns, &name)) return NULL;
  PyObject *l = PyList_New(0);
  for (const em_operator *op = em_operator_find_first(ns, name); l != NULL && op != NULL; op = op->next_overload) {
    PyObject *t = overload_text(op);
    if (t == NULL || PyList_Append(l, t) < 0) Py_CLEAR(l);
    Py_XDECREF(t);
  }
  return l;
}
static PyObject *f_all_names(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  PyObject *l = PyList_New((Py_ssize_t)em_operator_count());
  for (size_t i = 0; l != NULL && i < em_operator_count(); i++)
    PyList_SET_ITEM(l, i, PyUnicode_FromString(em_operator_at(i)->full));
  return l;
}
static PyObject *key_names(uint64_t keys) {
  static const char *const names[] = EM_KEY_NAMES;
  PyObject *l = PyList_New(0);
  for (int i = EM_NUM_KEYS - 1; l != NULL && i >= 0; i--) {
    if (!(keys & EM_KEYBIT(i))) continue;
    PyObject *s = PyUnicode_FromString(names[i]);
    if (s == NULL || PyList_Append(l, s) < 0) Py_CLEAR(l);
    Py_XDECREF(s);
  }
  return l;
}
static PyObject *f_keys(PyObject *Py_UNUSED(m), PyObject *o) {
  if (em_py_is_tensor(o)) return key_names(em_py_t(o)->keys);
  if (PyObject_TypeCheck(o, &op_type)) return key_names(OP(o)->mask);
  return PyErr_Format(PyExc_TypeError, "_dispatch_keys wants a Tensor or an operator, got %s", Py_TYPE(o)->tp_name);
}
static PyObject *f_key_bits(PyObject *Py_UNUSED(m), PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  int k = s == NULL ? -1 : key_number(s);
  return k < 0 ? NULL : PyLong_FromUnsignedLongLong(EM_KEYBIT(k));
}
static PyObject *f_set_key(PyObject *Py_UNUSED(m), PyObject *args) {  // (include or exclude, key, on) -> was
  const char *which, *name;
  int on;
  if (!PyArg_ParseTuple(args, "ssp:_dispatch_tls_set", &which, &name, &on)) return NULL;
  int k = key_number(name);
  if (k < 0) return NULL;
  uint64_t *set = strcmp(which, "include") == 0 ? &em_priv_tls.include : &em_priv_tls.exclude;
  bool was = (*set & EM_KEYBIT(k)) != 0;
  *set = on ? *set | EM_KEYBIT(k) : *set & ~EM_KEYBIT(k);
  return PyBool_FromLong(was);
}
// _parse_schema(text) -> text as the run-time parser understood it; the test of schemas reads every row with it
static PyObject *f_parse_schema(PyObject *Py_UNUSED(m), PyObject *text) {
  const char *s = PyUnicode_AsUTF8(text);
  em_operator *op = NULL;
  if (s == NULL) return NULL;
  em_status st = em_schema_parse(s, &op);
  if (st != EM_OK) return em_py_raise(st);
  PyObject *args = PyList_New(op->nargs);
  for (int i = 0; args != NULL && i < op->nargs; i++) {
    const em_arg *a = &op->args[i];
    PyObject *d = a->flags & EM_ARG_HAS_DEFAULT ? em_py_from_value_borrowed(&a->dflt) : Py_NewRef(Py_Ellipsis);
    PyObject *row = d == NULL ? NULL : Py_BuildValue("(siiiN)", a->name, a->type, a->flags, a->list_size, d);
    if (row == NULL) {
      Py_CLEAR(args);
      break;
    }
    PyList_SET_ITEM(args, i, row);
  }
  PyObject *r = args == NULL ? NULL : Py_BuildValue("(sssNi)", op->ns, op->name, op->overload, args, op->nrets);
  em_schema_free(op);
  return r;
}

// ---------------------------------------------------------------- __torch_dispatch__
static int note_type(PyObject *types, PyObject *objects, PyObject *o) {
  if (!em_py_is_tensor(o) || !(Py_TYPE(o)->tp_flags & EM_TP_DISPATCH)) return 0;
  int has = PySequence_Contains(types, (PyObject *)Py_TYPE(o));
  if (has != 0) return has < 0 ? -1 : 0;
  return PyList_Append(types, (PyObject *)Py_TYPE(o)) < 0 || PyList_Append(objects, o) < 0 ? -1 : 0;
}
static int find_subclasses(PyObject *args, PyObject *kw, PyObject *types, PyObject *objects) {
  PyObject *k, *v;
  Py_ssize_t at = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
    PyObject *o = PyTuple_GET_ITEM(args, i);
    if (note_type(types, objects, o) < 0) return -1;
    if (PyList_Check(o) || PyTuple_Check(o))
      for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(o); j++)
        if (note_type(types, objects, PySequence_Fast_GET_ITEM(o, j)) < 0) return -1;
  }
  while (PyDict_Next(kw, &at, &k, &v))
    if (note_type(types, objects, v) < 0) return -1;
  return 0;
}

static PyObject *dispatch_to_mode(const em_operator *op, PyObject *types, PyObject *args, PyObject *kw) {
  PyObject *modes = em_priv_py_tls.dispatch_modes, *func = op_wrap(op);
  Py_ssize_t n = PyList_GET_SIZE(modes);
  PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, n - 1)), *r = NULL;
  if (func != NULL && PyList_SetSlice(modes, n - 1, n, NULL) == 0) {
    uint64_t was = em_priv_tls.include;
    if (n == 1) em_priv_tls.include &= ~EM_KEYBIT(EM_KEY_PythonDispatch);  // inside the mode the next one handles calls
    r = PyObject_CallMethod(mode, "__torch_dispatch__", "OOOO", func, types, args, kw);
    em_priv_tls.include = was;
    if (PyList_Append(modes, mode) < 0) Py_CLEAR(r);
  }
  Py_XDECREF(func);
  Py_DECREF(mode);
  return r;
}
static PyObject *dispatch_to_types(const em_operator *op, PyObject *types, PyObject *objects, PyObject *args,
                                   PyObject *kw) {
  PyObject *func = op_wrap(op), *tuple = PyList_AsTuple(types), *r = NULL;
  for (Py_ssize_t i = 0; func != NULL && tuple != NULL && i < PyList_GET_SIZE(objects); i++) {
    r = PyObject_CallMethod((PyObject *)Py_TYPE(PyList_GET_ITEM(objects, i)), "__torch_dispatch__", "OOOO", func, tuple,
                            args, kw);
    if (r != Py_NotImplemented) goto done;
    Py_CLEAR(r);
  }
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError,
                 "Multiple dispatch failed for 'torch.ops.%s'; all __torch_dispatch__ handlers returned NotImplemented",
                 op->full);
done:
  Py_XDECREF(func);
  Py_XDECREF(tuple);
  return r;
}

static em_status python_dispatch(const em_operator *op, uint64_t ks, void *Py_UNUSED(context), const em_value *args,
                                 em_value *rets) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *tuple = NULL, *kw = NULL, *types = PyList_New(0), *objects = PyList_New(0), *r = NULL;
  em_status st = EM_OK;
  bool modes = em_priv_py_tls.dispatch_modes != NULL && PyList_GET_SIZE(em_priv_py_tls.dispatch_modes) > 0;
  for (int i = 0; i < op->nrets; i++) rets[i] = em_value_none();
  if (types == NULL || objects == NULL || python_args(op, args, &tuple, &kw) < 0 ||
      find_subclasses(tuple, kw, types, objects) < 0) {
    st = em_py_foreign();
  } else if (!modes && PyList_GET_SIZE(types) == 0) {  // nobody wants it: on to the backend
    st = em_redispatch_boxed(op, ks & EM_KEYS_BELOW(EM_KEY_PythonDispatch), args, rets);
  } else {
    // Layers above have run: what the handler calls must not meet them again, except for what it makes itself.
    em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd) | EM_KEYBIT(EM_KEY_Alias) | EM_KEYBIT(EM_KEY_Autocast));
    PyObject *t = PyList_AsTuple(types);
    r = t == NULL ? NULL
        : modes   ? dispatch_to_mode(op, t, tuple, kw)
                  : dispatch_to_types(op, types, objects, tuple, kw);
    Py_XDECREF(t);
    em_guard_restore(g);
    st = take_results(op, args, r, rets);
  }
  Py_XDECREF(types);
  Py_XDECREF(objects);
  Py_XDECREF(tuple);
  Py_XDECREF(kw);
  PyGILState_Release(gil);
  return st;
}

static PyObject *push_dispatch_mode(PyObject *Py_UNUSED(m), PyObject *mode) {
  if (em_priv_py_tls.dispatch_modes == NULL && (em_priv_py_tls.dispatch_modes = PyList_New(0)) == NULL) return NULL;
  if (PyList_Append(em_priv_py_tls.dispatch_modes, mode) < 0) return NULL;
  em_priv_tls.include |= EM_KEYBIT(EM_KEY_PythonDispatch);
  Py_RETURN_NONE;
}
static PyObject *pop_dispatch_mode(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  PyObject *modes = em_priv_py_tls.dispatch_modes;
  if (modes == NULL || PyList_GET_SIZE(modes) == 0) {
    PyErr_SetString(PyExc_IndexError, "the stack of dispatch modes is empty");
    return NULL;
  }
  PyObject *r = PyObject_CallMethod(modes, "pop", NULL);
  if (PyList_GET_SIZE(modes) == 0) em_priv_tls.include &= ~EM_KEYBIT(EM_KEY_PythonDispatch);
  return r;
}
static PyObject *dispatch_mode_depth(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromSsize_t(em_priv_py_tls.dispatch_modes == NULL ? 0 : PyList_GET_SIZE(em_priv_py_tls.dispatch_modes));
}

// ---------------------------------------------------------------- autocast (python/ember/amp)
static PyObject *autocast_set(PyObject *Py_UNUSED(m), PyObject *args) {  // (enabled, dtype)
  int on;
  PyObject *dtype;
  if (!PyArg_ParseTuple(args, "pO!:_autocast_set", &on, &em_py_dtype_type, &dtype)) return NULL;
  em_status st = em_autocast_set(on, em_py_to_dtype(dtype));
  if (st != EM_OK) return em_py_raise(st);
  Py_RETURN_NONE;
}
static PyObject *autocast_get(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {  // -> (enabled, dtype)
  return Py_BuildValue("NN", PyBool_FromLong(em_autocast_enabled()), em_py_dtype_new_ref(em_autocast_dtype()));
}
static PyObject *autocast_enter(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLong(em_autocast_enter());
}
static PyObject *autocast_leave(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyLong_FromLong(em_autocast_leave());
}
static PyObject *autocast_keeps(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  return PyBool_FromLong(em_autocast_cache_enabled());
}
static PyObject *autocast_keep(PyObject *Py_UNUSED(m), PyObject *on) {
  int yes = PyObject_IsTrue(on);
  if (yes < 0) return NULL;
  em_autocast_cache_enable(yes);
  Py_RETURN_NONE;
}
static PyObject *autocast_forget(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  em_autocast_cache_clear();
  Py_RETURN_NONE;
}
static PyObject *autocast_policy(PyObject *Py_UNUSED(m), PyObject *args) {
  const char *name, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return NULL;
  const char *policy = em_autocast_policy(name, overload);
  if (policy == NULL) Py_RETURN_NONE;
  return PyUnicode_FromString(policy);
}

// Names of ember._C that Python files define, imported when somebody asks: torch._C.FunctionSchema.
static PyObject *f_getattr(PyObject *m, PyObject *name) {
  static const char *const there[] = {"FunctionSchema", "Argument", "parse_schema", "_get_schema", "_jit_get_all_schemas",
                                      "_jit_get_schemas_for_operator", "JitType", "TensorType", "NumberType", "IntType", "FloatType",
                                      "BoolType", "StringType", "ListType", "OptionalType", "DeviceObjType", "SymIntType",
                                      "ComplexType"};
  for (size_t i = 0; i < sizeof there / sizeof *there; i++)
    if (PyUnicode_CompareWithASCIIString(name, there[i]) == 0) {
      PyObject *module = PyImport_ImportModule("ember._schema"), *r = module == NULL ? NULL : PyObject_GetAttr(module, name);
      Py_XDECREF(module);
      if (r != NULL && PyObject_SetAttr(m, name, r) < 0) Py_CLEAR(r);
      return r;
    }
  return PyErr_Format(PyExc_AttributeError, "module 'ember._C' has no attribute '%U'", name);
}

static PyMethodDef functions[] = {{"__getattr__", f_getattr, METH_O, NULL},
                                  {"_autocast_set", autocast_set, METH_VARARGS, NULL},
                                  {"_autocast_get", autocast_get, METH_NOARGS, NULL},
                                  {"_autocast_policy", autocast_policy, METH_VARARGS, NULL},
                                  {"autocast_increment_nesting", autocast_enter, METH_NOARGS, NULL},
                                  {"autocast_decrement_nesting", autocast_leave, METH_NOARGS, NULL},
                                  {"is_autocast_cache_enabled", autocast_keeps, METH_NOARGS, NULL},
                                  {"set_autocast_cache_enabled", autocast_keep, METH_O, NULL},
                                  {"clear_autocast_cache", autocast_forget, METH_NOARGS, NULL},
                                  {"_impl", f_impl, METH_VARARGS, NULL},
                                  {"_fallback", f_fallback, METH_VARARGS, NULL},
                                  {"_define", f_define, METH_O, NULL},
                                  {"_get_operation", f_get_operation, METH_VARARGS, NULL},
                                  {"_overloads", f_overloads, METH_VARARGS, NULL},
                                  {"_dispatch_get_all_op_names", f_all_names, METH_NOARGS, NULL},
                                  {"_dispatch_keys", f_keys, METH_O, NULL},
                                  {"_dispatch_key_bits", f_key_bits, METH_O, NULL},
                                  {"_dispatch_tls_set", f_set_key, METH_VARARGS, NULL},
                                  {"_parse_schema", f_parse_schema, METH_O, NULL},
                                  {"_push_on_torch_dispatch_stack", push_dispatch_mode, METH_O, NULL},
                                  {"_pop_torch_dispatch_stack", pop_dispatch_mode, METH_NOARGS, NULL},
                                  {"_len_torch_dispatch_stack", dispatch_mode_depth, METH_NOARGS, NULL},
                                  {NULL}};

int em_py_dispatch_init(PyObject *module) {
  if ((op_objects = PyDict_New()) == NULL || PyType_Ready(&op_type) < 0) return -1;
  em_status st = em_dispatch_set_fallback(EM_KEY_PythonDispatch, python_dispatch, NULL, NULL, "__torch_dispatch__");
  if (st != EM_OK) return em_py_raise_int(st);
  if (PyModule_AddObjectRef(module, "_OpOverload", (PyObject *)&op_type) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
