// parser.c: matches the arguments of a Python call against the signatures of a name, in PyTorch's order and with
// PyTorch's complaints, then calls the operator boxed.
#include "fast.h"

// ---------------------------------------------------------------- one parameter
static bool same_name(PyObject *given, const em_py_param *p) {
  if (given == p->name || PyUnicode_Compare(given, p->name) == 0) return true;
  for (int i = 0; i < 3 && p->alias[i] != NULL; i++)
    if (PyUnicode_CompareWithASCIIString(given, p->alias[i]) == 0) return true;
  return false;
}
static PyObject *find_keyword(const em_py_param *p, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Py_ssize_t n = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < n; i++)
    if (PyTuple_GET_ITEM(kwnames, i) == p->name) return args[nargs + i];
  for (Py_ssize_t i = 0; i < n; i++)
    if (same_name(PyTuple_GET_ITEM(kwnames, i), p)) return args[nargs + i];
  return NULL;
}

static bool allows_none(const em_py_param *p) {
  if (p->arg == NULL) return true;
  bool nothing = p->arg->dflt.tag == EM_TAG_NONE || (p->arg->dflt.tag == EM_TAG_INTS && p->arg->dflt.list.n == 0);
  return (p->arg->flags & EM_ARG_OPTIONAL) || (p->optional && nothing);
}
static bool out_fits(const em_py_signature *s, PyObject *o) {
  if (s->nouts == 1 && !s->out_list) return em_py_is_tensor(o);
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  if (!s->out_list && PySequence_Fast_GET_SIZE(o) != s->nouts) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
    if (!em_py_is_tensor(PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}
static const char *param_type(const em_py_signature *s, const em_py_param *p) {
  if (p->kind == EM_PARAM_OUT) return s->nouts > 1 || s->out_list ? "tuple of Tensors" : "Tensor";
  return p->kind == EM_PARAM_REQUIRES_GRAD ? "bool" : em_py_type_name(p->arg);
}

// "failed to unpack ..." and the like get the function's and argument's names in front.
static int name_the_argument(em_py_callable *c, const em_py_param *p) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject *text = value == NULL ? NULL : PyObject_Str(value);
  if (text != NULL && PyUnicode_Check(text) && strncmp(PyUnicode_AsUTF8(text), "failed to unpack", 16) == 0) {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%U' %U", c->fn->name, p->name, text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback);
  }
  Py_XDECREF(text);
  return -1;
}

// 1 stored, 0 does not fit, -1 exception
static int store(em_py_callable *c, em_py_signature *s, const em_py_param *p, PyObject *o, em_py_frame *f,
                 em_value *values, PyObject **out_object, bool *requires_grad) {
  switch (p->kind) {
    case EM_PARAM_OUT:
      if (!out_fits(s, o)) return 0;
      *out_object = o;
      return 1;
    case EM_PARAM_REQUIRES_GRAD:
      if (!PyBool_Check(o)) return 0;
      *requires_grad = o == Py_True;
      return 1;
    default: {
      int r = em_py_to_value(o, p->arg, c->numbers, f, &values[p->slot]);
      return r < 0 ? name_the_argument(c, p) : r;
    }
  }
}

// ---------------------------------------------------------------- complaints about one signature
static int wrong_count(em_py_callable *c, const em_py_signature *s, Py_ssize_t nargs) {
  int min = 0;
  for (int i = 0; i < s->max_pos; i++) min += !s->params[i].optional;
  if (min != s->max_pos) {
    PyErr_Format(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", c->fn->name, min,
                 s->max_pos, nargs);
  } else {
    PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", c->fn->name, s->max_pos,
                 s->max_pos == 1 ? "" : "s", nargs, nargs == 1 ? "was" : "were");
  }
  return -1;
}

static int missing(em_py_callable *c, const em_py_signature *s, int first, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames) {
  int n = 0;
  PyObject *names = PyUnicode_FromString("");
  for (int i = first; names != NULL && i < s->nparams; i++) {
    const em_py_param *p = &s->params[i];
    if (p->optional || find_keyword(p, args, nargs, kwnames) != NULL) continue;
    PyUnicode_AppendAndDel(&names, PyUnicode_FromFormat("%s\"%U\"", n++ ? ", " : "", p->name));
  }
  if (names != NULL)
    PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %U", c->fn->name, n,
                 n == 1 ? "s" : "", names);
  Py_XDECREF(names);
  return -1;
}

static int wrong_type(em_py_callable *c, const em_py_signature *s, const em_py_param *p, PyObject *o,
                      Py_ssize_t position, bool keyword) {
  const char *want = param_type(s, p);
  if ((PyTuple_Check(o) || PyList_Check(o)) && !keyword && PySequence_Fast_GET_SIZE(o) > 0 &&
      strncmp(want, "tuple", 5) == 0) {
    PyErr_Format(PyExc_TypeError,
                 "%s(): argument '%U' (position %zd) must be %s, but found element of type %s at pos 0", c->fn->name,
                 p->name, position, want, em_py_class_name(PySequence_Fast_GET_ITEM(o, 0)));
  } else if (keyword) {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%U' must be %s, not %s", c->fn->name, p->name, want,
                 em_py_class_name(o));
  } else {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%U' (position %zd) must be %s, not %s", c->fn->name, p->name,
                 position, want, em_py_class_name(o));
  }
  return -1;
}

static int extra_keyword(em_py_callable *c, const em_py_signature *s, Py_ssize_t npos, PyObject *kwnames) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject *key = PyTuple_GET_ITEM(kwnames, i);
    int at = 0;
    while (at < s->nparams && !same_name(key, &s->params[at])) at++;
    if (at == s->nparams) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", c->fn->name, key);
      return -1;
    }
    if (at < npos) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", c->fn->name, key);
      return -1;
    }
  }
  PyErr_SetString(PyExc_TypeError, "invalid keyword arguments");
  return -1;
}

// ---------------------------------------------------------------- one signature
// x.view(2, 3): the positional arguments are the one list.
static int store_varargs(em_py_callable *c, const em_py_param *p, PyObject *const *args, Py_ssize_t nargs,
                         em_py_frame *f, em_value *values) {
  if (!em_py_is_int(args[0]) && !em_py_is_tensor(args[0])) return 0;
  PyObject *tuple = PyTuple_New(nargs);
  if (tuple == NULL) return -1;
  for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  int r = em_py_to_value(tuple, p->arg, false, f, &values[p->slot]);
  Py_DECREF(tuple);
  return r < 0 ? name_the_argument(c, p) : r;
}

int em_py_try(em_py_callable *c, em_py_signature *s, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
              PyObject *kwnames, bool explain, em_py_frame *f, em_value *values, PyObject **out_object,
              bool *requires_grad) {
  bool varargs = s->max_pos == 1 && s->params[0].arg != NULL && s->params[0].arg->type == EM_TYPE_INT_LIST;
  if (nargs > s->max_pos && !varargs) return explain ? wrong_count(c, s, nargs) : 0;
  Py_ssize_t at = 0, keywords = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames), positional = 0;
  *out_object = NULL;
  *requires_grad = false;
  if (s->self_slot >= 0) values[s->self_slot] = em_value_tensor(em_py_t(self));
  for (int i = 0; i < s->nparams; i++) {
    const em_py_param *p = &s->params[i];
    PyObject *o = NULL;
    bool keyword = at >= nargs;
    if (!keyword) {
      if (p->kwonly) return explain ? wrong_count(c, s, nargs) : 0;
      o = args[at];
    } else if (keywords > 0) {
      o = find_keyword(p, args, nargs, kwnames);
    }
    if (o == NULL || (o == Py_None && allows_none(p))) {
      if (o == NULL && !p->optional) return explain ? missing(c, s, i, args, nargs, kwnames) : 0;
      if (p->arg != NULL)
        values[p->slot] = o == NULL || !(p->arg->flags & EM_ARG_OPTIONAL) ? p->arg->dflt : em_value_none();
    } else {
      int r = varargs && !keyword && at == 0 && nargs > 1 ? store_varargs(c, p, args, nargs, f, values) : -2;
      if (r == 1) at = positional = nargs;
      if (r == -2 || r == 0) r = store(c, s, p, o, f, values, out_object, requires_grad);
      if (r == 0 && varargs && !keyword && at == 0) {
        r = store_varargs(c, p, args, nargs, f, values);
        if (r == 1) at = positional = nargs;
      }
      if (r < 0) return -1;
      if (r == 0) return explain ? wrong_type(c, s, p, o, at + 1, keyword) : 0;
    }
    if (!keyword) {
      if (at < nargs) at++;
      positional++;
    } else if (o != NULL) {
      keywords--;
    }
  }
  if (at < nargs) return explain ? wrong_count(c, s, nargs) : 0;
  if (keywords > 0) return explain ? extra_keyword(c, s, positional, kwnames) : 0;
  return 1;
}

// ---------------------------------------------------------------- results
static PyObject *tensors_tuple(em_value *v) {
  PyObject *t = PyTuple_New(v->list.n);
  for (int64_t i = 0; t != NULL && i < v->list.n; i++) {
    PyObject *x = em_py_wrap(em_tensor_retain(v->list.tensors[i]));
    if (x == NULL) Py_CLEAR(t);
    else PyTuple_SET_ITEM(t, i, x);
  }
  em_value_clear(v);
  return t;
}
static PyObject *box_one(em_value *v) { return v->tag == EM_TAG_TENSORS ? tensors_tuple(v) : em_py_from_value(v); }

PyObject *em_py_box_results(const em_operator *op, em_value *rets, PyTypeObject *tuple_type) {
  if (op->nrets == 0) Py_RETURN_NONE;
  if (op->nrets == 1) return box_one(&rets[0]);
  PyObject *t = tuple_type != NULL ? PyStructSequence_New(tuple_type) : PyTuple_New(op->nrets);
  for (int i = 0; i < op->nrets; i++) {
    PyObject *x = box_one(&rets[i]);
    if (x == NULL || t == NULL) {
      Py_XDECREF(x);
      Py_CLEAR(t);
    } else {
      PyTuple_SET_ITEM(t, i, x);
    }
  }
  return t;
}

static PyObject *call_functional(em_py_signature *s, const em_value *values, bool requires_grad) {
  em_value rets[EM_PY_MAX_RETS];
  for (int i = 0; i < s->op->nrets; i++) rets[i] = em_value_none();
  em_status st = em_priv_call_boxed(s->op, values, rets);
  if (st == EM_OK && requires_grad && !em_dtype_is_differentiable(rets[0].tensor->dtype))
    st = em_fail(EM_ERR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
  else if (st == EM_OK && requires_grad) st = em_tensor_set_requires_grad(rets[0].tensor, true);
  if (st == EM_OK) return em_py_box_results(s->op, rets, s->tuple_type);
  for (int i = 0; i < s->op->nrets; i++) em_value_clear(&rets[i]);
  return em_py_raise(st);
}

static PyObject *call_out(em_py_signature *s, const em_value *values, PyObject *out, em_py_frame *f) {
  const em_operator *op = s->out_op;
  em_value args[EM_PY_MAX_ARGS], rets[EM_PY_MAX_RETS];
  for (int i = 0; i < op->nargs; i++) {
    int from = s->out_map[i];
    if (from >= 0) {
      args[i] = values[from];
    } else if (s->out_list) {
      if (em_py_to_value(out, &op->args[i], false, f, &args[i]) <= 0) return NULL;
    } else {
      args[i] = em_value_tensor(em_py_t(s->nouts == 1 ? out : PySequence_Fast_GET_ITEM(out, -1 - from)));
    }
  }
  for (int i = 0; i < op->nrets; i++) rets[i] = em_value_none();
  em_status st = em_priv_call_boxed(op, args, rets);
  if (st == EM_OK && op->nrets > 0) return em_py_box_results(op, rets, s->tuple_type);
  for (int i = 0; i < op->nrets; i++) em_value_clear(&rets[i]);
  return st == EM_OK ? Py_NewRef(s->out_list ? Py_None : out) : em_py_raise(st);
}

// A dtype that was given must be out's. One that stands in the schema only (randint's long) gives way to it.
static int check_out_dtype(em_py_signature *s, const em_value *values, PyObject *out, PyObject *kwnames) {
  bool given = false;
  for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++)
    given |= PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "dtype") == 0;
  if (!given) return 0;
  for (int i = 0; i < s->op->nargs; i++) {
    if (s->op->args[i].type != EM_TYPE_DTYPE || values[i].tag != EM_TAG_DTYPE || s->nouts != 1 || s->out_list) continue;
    bool mapped = false;
    for (int j = 0; j < s->out_op->nargs; j++) mapped |= s->out_map[j] == i;
    if (!mapped && values[i].i != em_py_t(out)->dtype) {
      PyErr_Format(PyExc_RuntimeError, "dtype %s does not match dtype of out parameter (%s)",
                   em_dtype_name((int)values[i].i), em_dtype_name(em_py_t(out)->dtype));
      return -1;
    }
  }
  return 0;
}

// ---------------------------------------------------------------- the call
em_py_parse_trace em_priv_py_parse_trace;
static void trace_parse(em_py_callable *c, int fitted, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  em_py_parse_trace *t = &em_priv_py_parse_trace;
  em_value values[EM_PY_MAX_ARGS];
  em_py_frame frame;
  PyObject *out = NULL;
  bool requires_grad;
  t->fresh = true;
  t->name = c->fn->name;
  t->tried = fitted;
  t->count = c->nsigs;
  t->refused[0] = 0;
  for (int i = 0; i < fitted; i++) {  // once more, for the words
    em_py_frame_init(&frame);
    PyObject *type, *value, *traceback;
    (void)em_py_try(c, c->sigs[i], self, args, nargs, kwnames, true, &frame, values, &out, &requires_grad);
    em_py_frame_clear(&frame);
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    const char *words = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    size_t at = strlen(t->refused);
    snprintf(t->refused + at, sizeof t->refused - at, "%s%s: %s", at ? "\n" : "", c->sigs[i]->op->full, words == NULL ? "" : words);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
}

// The device and pin_memory of a call, before the operator sees them: what is not here is refused in PyTorch's words.
static int check_options(const em_py_signature *s, const em_value *values) {
  const em_value *device = &values[s->device_arg];
  const bool given = device->tag == EM_TAG_DEVICE;
  if (given && device->device.type != EM_DEVICE_CPU) {
    const char *maker = strstr(s->op->full, "_like") != NULL ? "aten::empty_strided" : "aten::empty.memory_format";
    return em_py_device_wake(device->device, maker);
  }
  if (s->pin_arg < 0 || values[s->pin_arg].tag != EM_TAG_BOOL || !values[s->pin_arg].i) return 0;
  PyErr_SetString(PyExc_RuntimeError, "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is "
                                      "available on this system.");
  return -1;
}

static PyObject *call_parsed(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames) {
  em_py_frame frame;
  em_value values[EM_PY_MAX_ARGS];
  PyObject *out = NULL, *result = NULL;
  bool requires_grad = false;
  if (em_py_signatures(c) < 0) return NULL;
  em_py_frame_init(&frame);
  int matched = 0, i = 0;
  for (; i < c->nsigs; i++) {
    matched = em_py_try(c, c->sigs[i], self, args, nargs, kwnames, c->nsigs == 1 && !c->deprecated, &frame, values,
                        &out, &requires_grad);
    if (matched != 0) break;
  }
  if (matched == 0) {
    result = em_py_no_match(c, self, args, nargs, kwnames);
  } else if (matched > 0) {
    em_py_signature *s = c->sigs[i];
    if (EM_UNLIKELY(em_priv_py_parse_trace.wanted)) trace_parse(c, i, self, args, nargs, kwnames);
    if (s->device_slot >= 0 && values[s->device_slot].tag == EM_TAG_NONE && em_device_given(em_py_default_device()) &&
        out == NULL) {
      values[s->device_slot].device = em_py_default_device();
      values[s->device_slot].tag = EM_TAG_DEVICE;
    }
    if (s->device_arg >= 0 && check_options(s, values) < 0) {
      result = NULL;
    } else if (out == NULL && s->op->variant == EM_OUT) {
      PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional arguments: \"out\"", c->fn->name);
    } else if (out == NULL) {
      result = call_functional(s, values, requires_grad);
    } else if (check_out_dtype(s, values, out, kwnames) == 0) {
      result = call_out(s, values, out, &frame);
    }
  }
  em_py_frame_clear(&frame);
  return result;
}

static bool wants_override(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (EM_UNLIKELY(em_priv_py_tls.function_modes > 0)) return em_py_any_override(self, args, nargs, kwnames);
  Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  bool maybe = self != NULL && em_py_maybe_override(self);
  for (Py_ssize_t i = 0; i < all && !maybe; i++)
    maybe = !em_py_is_exact(args[i]) && !PyLong_CheckExact(args[i]) && !PyFloat_CheckExact(args[i]) &&
            args[i] != Py_None;
  return maybe && em_py_any_override(self, args, nargs, kwnames);
}

static PyObject *call_override(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) {
  PyObject *func = em_py_function_object(c), *result;
  if (func == NULL) return NULL;
  if (self == NULL) {
    result = em_py_handle_override(func, args, nargs, kwnames);
  } else {
    Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject **with = PyMem_New(PyObject *, all + 1);
    if (with == NULL) {
      Py_DECREF(func);
      return PyErr_NoMemory();
    }
    with[0] = self;
    for (Py_ssize_t i = 0; i < all; i++) with[i + 1] = args[i];
    result = em_py_handle_override(func, with, nargs + 1, kwnames);
    PyMem_Free(with);
  }
  Py_DECREF(func);
  return result;
}

PyObject *em_py_call(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (EM_LIKELY(kwnames == NULL && em_py_no_modes())) {
    PyObject *first = self;
    PyObject *const *rest = args;
    Py_ssize_t n = nargs;
    if (self == NULL && nargs > 0) {
      first = args[0];
      rest = args + 1;
      n--;
    }
    if (n == 0 && c->unary != NULL && first != NULL && em_py_is_plain(first))
      return em_py_run_unary(c->unary, c->unary_kind, first);
    if (n == 1 && c->binary != NULL && em_py_is_plain(first) && em_py_is_plain(rest[0]))
      return em_py_run_binary(c->binary, c->binary_kind, first, rest[0]);
  }
  if (wants_override(self, args, nargs, kwnames)) return call_override(c, self, args, nargs, kwnames);
  return call_parsed(c, self, args, nargs, kwnames);
}
