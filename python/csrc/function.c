// function.c: makes builtin functions and method descriptors of the generated table. CPython hands a C function no data
// of ours, so each callable has an entry point of its own: a one-line function that knows its number.
#include "fast.h"

#define EM_PY_MAX_CALLABLES 2048
static em_py_callable callables[EM_PY_MAX_CALLABLES];
static PyMethodDef definitions[EM_PY_MAX_CALLABLES];
static PyObject *functions_class;
// Modules of ember._C that hold functions of their own: torch._C._nn and its kind.
static struct {
  int where;
  const char *attribute, *name;
  PyObject *module;
} homes[] = {{EM_PY_NN, "_nn", "ember._C._nn", NULL},
             {EM_PY_LINALG, "_linalg", "ember._C._linalg", NULL},
             {EM_PY_SPECIAL, "_special", "ember._C._special", NULL},
             {EM_PY_FFT, "_fft", "ember._C._fft", NULL}};
static PyObject *home_module(int where) {
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
    if (homes[i].where == where) return homes[i].module;
  return NULL;
}

// ---------------------------------------------------------------- entry points
static PyObject *enter(int i, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kw) {
  em_py_callable *c = &callables[i];
  return em_py_call(c, c->fn->where == EM_PY_METHOD ? self : NULL, args, n, kw);
}
// clang-format off
#define E1(i)                                                                                  \
  static PyObject *entry_##i(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) {     \
    return enter(0x##i, s, a, n, k);                                                           \
  }
#define P1(i) entry_##i,
#define X16(M, p) M(p##0) M(p##1) M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7) \
                  M(p##8) M(p##9) M(p##a) M(p##b) M(p##c) M(p##d) M(p##e) M(p##f)
#define X256(M, p) X16(M, p##0) X16(M, p##1) X16(M, p##2) X16(M, p##3) X16(M, p##4) X16(M, p##5) \
                   X16(M, p##6) X16(M, p##7) X16(M, p##8) X16(M, p##9) X16(M, p##a) X16(M, p##b) \
                   X16(M, p##c) X16(M, p##d) X16(M, p##e) X16(M, p##f)
#define X2048(M) X256(M, 0) X256(M, 1) X256(M, 2) X256(M, 3) X256(M, 4) X256(M, 5) X256(M, 6) X256(M, 7)
// clang-format on
X2048(E1)
static PyObject *(*const entries[EM_PY_MAX_CALLABLES])(PyObject *, PyObject *const *, Py_ssize_t,
                                                       PyObject *) = {X2048(P1)};

// ---------------------------------------------------------------- what a callable can do fast
uint8_t em_py_fast_kind(const em_operator *op) {
  const em_arg *a = op->args;
  bool inplace = op->variant == EM_INPLACE;
  if (op->variant == EM_OUT || op->nargs == 0 || op->nrets != 1 || op->ret_types[0] != EM_TYPE_TENSOR)
    return EM_FAST_NONE;
  if (a[0].type != EM_TYPE_TENSOR || (a[0].flags & EM_ARG_OPTIONAL)) return EM_FAST_NONE;
  uint8_t more = inplace ? EM_FAST_INPLACE : 0;
  if (op->nargs == 1) return EM_FAST_T | more;
  if (op->nargs == 2 && a[1].type == EM_TYPE_DTYPE && (a[1].flags & EM_ARG_HAS_DEFAULT) &&
      a[1].dflt.tag == EM_TAG_NONE && !inplace)
    return EM_FAST_T_DTYPE;
  if (a[1].type != EM_TYPE_TENSOR || (a[1].flags & EM_ARG_OPTIONAL)) return EM_FAST_NONE;
  if (op->nargs == 2) return EM_FAST_TT | more;
  bool alpha = op->nargs == 3 && a[2].type == EM_TYPE_SCALAR && (a[2].flags & EM_ARG_HAS_DEFAULT) &&
               a[2].dflt.tag == EM_TAG_SCALAR && em_scalar_is_int_one(a[2].dflt.scalar);
  return alpha ? (uint8_t)(EM_FAST_TT_ALPHA | more) : EM_FAST_NONE;
}

// PyTorch takes Python numbers for tensors in these.
static bool numbers_as_tensors(const char *name) {
  static const char *const names[] = {"add",      "sub",      "mul",         "div",          "divide",
                                      "multiply", "subtract", "true_divide", "floor_divide", "copy"};
  size_t n = strlen(name);
  if (n > 0 && name[n - 1] == '_') n--;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0) return true;
  return false;
}

static bool has_deprecated(const char *name) {
  static const char *const names[] = {"add",   "sub",   "addbmm", "addcdiv", "addcmul",
                                      "addmm", "addmv", "addr",   "baddbmm"};
  size_t n = strlen(name);
  if (n > 0 && name[n - 1] == '_') n--;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0) return true;
  return false;
}

static void prepare(em_py_callable *c, const em_py_function *fn) {
  c->fn = fn;
  c->numbers = numbers_as_tensors(fn->name);
  c->deprecated = has_deprecated(fn->name);
  for (int i = 0; i < fn->n; i++) {
    const em_operator *op = fn->overloads[i];
    uint8_t kind = em_py_fast_kind(op), base = kind & (uint8_t)~EM_FAST_INPLACE;
    if ((base == EM_FAST_T || base == EM_FAST_T_DTYPE) && c->unary == NULL) {
      c->unary = op;
      c->unary_kind = kind;
    }
    if ((base == EM_FAST_TT || base == EM_FAST_TT_ALPHA) && c->binary == NULL) {
      c->binary = op;
      c->binary_kind = kind;
    }
  }
}

// ---------------------------------------------------------------- lookups
em_py_callable *em_py_callable_find(const char *name, int where) {
  size_t low = 0, high = em_py_function_count;  // sorted by (name, where)
  while (low < high) {
    size_t mid = (low + high) / 2;
    int d = strcmp(em_py_functions[mid].name, name);
    if (d == 0) d = em_py_functions[mid].where - where;
    if (d == 0) return &callables[mid];
    if (d < 0) low = mid + 1;
    else high = mid;
  }
  return NULL;
}

PyObject *em_py_function_object(em_py_callable *c) {
  PyObject *module = home_module(c->fn->where);
  PyObject *home = c->fn->where == EM_PY_METHOD ? (PyObject *)em_py_tensor_class : functions_class;
  return PyObject_GetAttrString(module != NULL ? module : home, c->fn->name);
}

static PyObject *not_built(const char *name) {
  return PyErr_Format(PyExc_NotImplementedError, "this build of Ember has no operator '%s'", name);
}
PyObject *em_py_call_method(const char *name, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames) {
  em_py_callable *c = em_py_callable_find(name, EM_PY_METHOD);
  return c == NULL ? not_built(name) : em_py_call(c, self, args, nargs, kwnames);
}
PyObject *em_py_call_function(const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  em_py_callable *c = em_py_callable_find(name, EM_PY_FUNCTION);
  for (size_t i = 0; c == NULL && i < sizeof homes / sizeof *homes; i++) c = em_py_callable_find(name, homes[i].where);
  return c == NULL ? not_built(name) : em_py_call(c, NULL, args, nargs, kwnames);
}

// An out= overload called by the schema's names: max.dim_max(x, 0, max=a, max_values=b). The parser knows one `out`, so
// the named ones become it, a tuple when there are several. Fills `all` and a new tuple `names`; 0 when there are none.
static int join_outs(const em_operator *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **all,
                     PyObject **names, PyObject **joined) {
  PyObject *found[EM_PY_MAX_ARGS] = {0};
  Py_ssize_t n = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames), kept = 0, nouts = 0;
  if (op->variant != EM_OUT || nargs + n > EM_PY_MAX_ARGS || (*names = PyTuple_New(0)) == NULL) return 0;
  PyObject *rest = PyList_New(0);
  for (Py_ssize_t i = 0; i < nargs; i++) all[i] = args[i];
  for (Py_ssize_t i = 0; rest != NULL && i < n; i++) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i);
    int at = op->nargs;
    while (--at >= 0)
      if ((op->args[at].flags & EM_ARG_OUT) && PyUnicode_CompareWithASCIIString(name, op->args[at].name) == 0) break;
    if (at >= 0) found[at] = args[nargs + i];
    else if (PyList_Append(rest, name) < 0) Py_CLEAR(rest);
    else all[nargs + kept++] = args[nargs + i];
  }
  for (int i = 0; i < op->nargs; i++) nouts += found[i] != NULL;
  PyObject *outs = rest == NULL ? NULL : PyTuple_New(nouts), *out = PyUnicode_InternFromString("out");
  if (outs == NULL || out == NULL || (nouts > 0 && PyList_Append(rest, out) < 0)) goto fail;
  for (int i = 0, k = 0; i < op->nargs; i++)
    if (found[i] != NULL) PyTuple_SET_ITEM(outs, k++, Py_NewRef(found[i]));
  Py_SETREF(*names, PyList_AsTuple(rest));
  if (*names == NULL) goto fail;
  if (nouts > 0) all[nargs + kept] = nouts == 1 ? PyTuple_GET_ITEM(outs, 0) : outs;
  *joined = outs;
  Py_DECREF(rest);
  Py_DECREF(out);
  return nouts > 0;
fail:
  Py_CLEAR(*names);
  Py_XDECREF(rest);
  Py_XDECREF(outs);
  Py_XDECREF(out);
  return -1;
}

// Calls one overload, as ember.ops.aten.add.Tensor does. A callable made for the occasion reads the arguments.
PyObject *em_py_call_operator(const em_operator *op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  em_operator *one[1] = {(em_operator *)op};
  em_py_function fn = {op->name, one, 1, 0};
  em_py_callable c = {.fn = &fn, .numbers = 1};
  if (em_py_signatures(&c) < 0) return NULL;
  em_py_signature *s = c.sigs[0];
  for (int i = 0; i < s->nparams; i++)  // the schema's own names: self is self, out tensors are ordinary arguments
    if (s->params[i].arg != NULL) {
      PyObject *name = PyUnicode_InternFromString(s->params[i].arg->name);
      if (name == NULL) goto fail;
      Py_SETREF(s->params[i].name, name);
      memset(s->params[i].alias, 0, sizeof s->params[i].alias);
    }
  PyObject *all[EM_PY_MAX_ARGS], *names = NULL, *outs = NULL;
  int joined = join_outs(op, args, nargs, kwnames, all, &names, &outs);
  PyObject *r = joined < 0    ? NULL
                : joined == 0 ? em_py_call(&c, NULL, args, nargs, kwnames)
                              : em_py_call(&c, NULL, all, nargs, names);
  Py_XDECREF(names);
  Py_XDECREF(outs);
  for (int i = 0; i < s->nparams; i++) Py_DECREF(s->params[i].name);
  PyMem_Free(s);
  PyMem_Free(c.sigs);
  return r;
fail:
  PyMem_Free(s);
  PyMem_Free(c.sigs);
  return NULL;
}

// ---------------------------------------------------------------- start
static PyTypeObject functions_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C._VariableFunctionsClass",
                                      .tp_basicsize = sizeof(PyObject), .tp_flags = Py_TPFLAGS_DEFAULT};

// _make_return_type(name): the named tuple of an operator's results, before it was ever called.
static PyObject *make_return_type(PyObject *Py_UNUSED(m), PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  if (s == NULL) return NULL;
  for (const em_operator *op = em_operator_find_first("aten", s); op != NULL; op = op->next_overload)
    (void)em_py_return_type(op);
  Py_RETURN_NONE;
}
static PyMethodDef module_functions[] = {{"_make_return_type", make_return_type, METH_O, NULL}, {NULL}};

static int place(size_t i) {
  const em_py_function *fn = callables[i].fn;
  PyMethodDef *d = &definitions[i];
  *d = (PyMethodDef){fn->name, (PyCFunction)(void *)entries[i], METH_FASTCALL | METH_KEYWORDS,
                     em_py_help_text(i)};
  PyObject *o;
  int bad;
  if (fn->where == EM_PY_METHOD) {
    o = PyDescr_NewMethod(&em_py_base_type, d);
    // a hand-written method of the same name wins, and has the row's words
    PyObject *there = o == NULL ? NULL : PyDict_SetDefault(em_py_base_type.tp_dict, PyDescr_NAME(o), o);
    bad = there == NULL;
    if (!bad && there != o) em_py_describe(there, d->ml_doc);
  } else {
    PyObject *module = home_module(fn->where);
    o = PyCFunction_NewEx(d, module != NULL ? NULL : functions_class, NULL);
    bad = o == NULL || (module != NULL ? PyObject_SetAttrString(module, fn->name, o)
                                       : PyDict_SetItemString(functions_type.tp_dict, fn->name, o));
  }
  Py_XDECREF(o);
  return bad ? -1 : 0;
}

int em_py_functions_init(PyObject *module) {
  if (em_py_function_count > EM_PY_MAX_CALLABLES) {
    PyErr_Format(PyExc_SystemError, "%zu callables do not fit EM_PY_MAX_CALLABLES in function.c", em_py_function_count);
    return -1;
  }
  if (em_py_return_types() == NULL || PyType_Ready(&functions_type) < 0) return -1;
  functions_class = (PyObject *)&functions_type;
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
    if ((homes[i].module = PyModule_New(homes[i].name)) == NULL ||
        PyModule_AddObjectRef(module, homes[i].attribute, homes[i].module) < 0)
      return -1;
  for (size_t i = 0; i < em_py_function_count; i++) {
    prepare(&callables[i], &em_py_functions[i]);
    if (place(i) < 0) return -1;
  }
  if (PyModule_AddFunctions(module, module_functions) < 0) return -1;
  PyType_Modified(&functions_type);
  PyType_Modified(&em_py_base_type);
  if (PyModule_AddObjectRef(module, "_VariableFunctions", functions_class) < 0) return -1;
  if (PyModule_AddObjectRef(module, "_VariableFunctionsClass", functions_class) < 0) return -1;
  return PyModule_AddObjectRef(module, "_return_types", em_py_return_types());
}
