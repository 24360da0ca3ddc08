// complain.c: the TypeError of a call that fits none of several signatures, in PyTorch's words.
#include "bridge.h"

static void append(PyObject **text, PyObject *more) {
  if (*text != NULL) PyUnicode_AppendAndDel(text, more);
  else Py_XDECREF(more);
}

static PyObject *default_text(const em_py_param *p) {
  if (p->arg == NULL) return PyUnicode_FromString(p->kind == EM_PARAM_OUT ? "None" : "False");
  const em_value *d = &p->arg->dflt;
  if (strcmp(p->arg->name, "pin_memory") == 0) return PyUnicode_FromString("False");  // PyTorch's parser knows it as a plain bool
  if (d->tag == EM_TAG_INTS && p->arg->list_size > 0 && d->list.n > 0)
    return PyUnicode_FromFormat("%lld", (long long)d->list.ints[0]);
  PyObject *o = em_py_from_value_borrowed(d);
  if (o == NULL) return NULL;
  PyObject *text = PyObject_Repr(o);
  Py_DECREF(o);
  return text;
}

// "(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)"
static PyObject *signature_text(const em_py_signature *s) {
  PyObject *text = PyUnicode_FromString("(");
  bool star = false;
  for (int i = 0; i < s->nparams; i++) {
    const em_py_param *p = &s->params[i];
    const char *type = p->kind == EM_PARAM_OUT             ? (s->nouts > 1 || s->out_list ? "tuple of Tensors" : "Tensor")
                       : p->kind == EM_PARAM_REQUIRES_GRAD ? "bool"
                                                           : em_py_type_name(p->arg);
    append(&text, PyUnicode_FromFormat("%s%s%s %U", i ? ", " : "", p->kwonly && !star ? "*, " : "", type, p->name));
    star |= p->kwonly;
    if (p->optional) {
      append(&text, PyUnicode_FromString(" = "));
      append(&text, default_text(p));
    }
  }
  append(&text, PyUnicode_FromString(")"));
  return text;
}

// "int", "tuple of (int, int)", "list of [Tensor, str]"
static PyObject *type_text(PyObject *o) {
  bool tuple = PyTuple_Check(o);
  if (!tuple && !PyList_Check(o)) return PyUnicode_FromString(em_py_class_name(o));
  PyObject *text = PyUnicode_FromString(tuple ? "tuple of (" : "list of [");
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && i < 16; i++)
    append(&text, PyUnicode_FromFormat("%s%s", i ? ", " : "", em_py_class_name(PySequence_Fast_GET_ITEM(o, i))));
  if (n > 16) append(&text, PyUnicode_FromString(", ..."));
  append(&text, PyUnicode_FromString(n == 1 && tuple ? ",)" : tuple ? ")" : "]"));
  return text;
}

static bool fits(em_py_callable *c, const em_py_signature *s, const em_py_param *p, PyObject *o) {
  if (o == Py_None)
    return p->arg == NULL || (p->arg->flags & EM_ARG_OPTIONAL) || (p->optional && p->arg->dflt.tag == EM_TAG_NONE);
  if (p->kind == EM_PARAM_OUT) return s->nouts > 1 || s->out_list ? PyTuple_Check(o) : em_py_is_tensor(o);
  if (p->kind == EM_PARAM_REQUIRES_GRAD) return PyBool_Check(o);
  em_py_frame f;
  em_value v;
  em_py_frame_init(&f);
  int r = em_py_to_value(o, p->arg, c->numbers, &f, &v);
  em_py_frame_clear(&f);
  if (r < 0) PyErr_Clear();
  return r > 0;
}

static const em_py_param *find_param(const em_py_signature *s, PyObject *key) {
  for (int i = 0; i < s->nparams; i++)
    if (PyUnicode_Compare(s->params[i].name, key) == 0) return &s->params[i];
  return NULL;
}

// "(Tensor, str, dim=int)"; with a signature, what does not fit stands between exclamation marks.
static PyObject *given_text(em_py_callable *c, const em_py_signature *s, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames) {
  PyObject *text = PyUnicode_FromString("(");
  Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  for (Py_ssize_t i = 0; i < all; i++) {
    PyObject *key = i < nargs ? NULL : PyTuple_GET_ITEM(kwnames, i - nargs);
    const em_py_param *p = s == NULL ? NULL : key != NULL ? find_param(s, key) : i < s->max_pos ? &s->params[i] : NULL;
    const char *mark = s != NULL && (p == NULL || !fits(c, s, p, args[i])) ? "!" : "";
    PyObject *type = type_text(args[i]);
    if (type == NULL) {
      Py_XDECREF(text);
      return NULL;
    }
    if (key == NULL) append(&text, PyUnicode_FromFormat("%s%s%U%s", i ? ", " : "", mark, type, mark));
    else append(&text, PyUnicode_FromFormat("%s%U=%s%U%s", i ? ", " : "", key, mark, type, mark));
    Py_DECREF(type);
  }
  append(&text, PyUnicode_FromString(")"));
  return text;
}

static PyObject *wrong_keywords(const em_py_signature *s, PyObject *kwnames) {  // "" when all are known
  PyObject *text = PyUnicode_FromString("");
  int n = 0;
  for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++)
    if (find_param(s, PyTuple_GET_ITEM(kwnames, i)) == NULL)
      append(&text, PyUnicode_FromFormat("%s%U", n++ ? ", " : "", PyTuple_GET_ITEM(kwnames, i)));
  return text;
}

static void append_option(em_py_callable *c, const em_py_signature *s, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, PyObject **text) {
  bool star = s->nparams > 0 && s->params[s->nparams - 1].kwonly;
  append(text, PyUnicode_FromString(" * "));
  append(text, signature_text(s));
  append(text, PyUnicode_FromString("\n"));
  if (nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames)) != s->nparams + star)
    return;  // PyTorch counts the "*" as one
  PyObject *wrong = wrong_keywords(s, kwnames);
  if (wrong != NULL && PyUnicode_GET_LENGTH(wrong) > 0) {
    append(text, PyUnicode_FromFormat("      didn't match because some of the keywords were incorrect: %U\n", wrong));
  } else {
    append(text, PyUnicode_FromString("      didn't match because some of the arguments have invalid types: "));
    append(text, given_text(c, s, args, nargs, kwnames));
    append(text, PyUnicode_FromString("\n"));
  }
  Py_XDECREF(wrong);
}

PyObject *em_py_no_match(em_py_callable *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames) {
  Py_ssize_t all = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  em_py_signature *plausible = NULL;
  int n = 0;
  for (int i = 0; i < c->nsigs; i++)
    if (all >= c->sigs[i]->min_args && all <= c->sigs[i]->nparams) {
      plausible = c->sigs[i];
      n++;
    }
  if (n == 1) {  // only one can have been meant: say what is wrong with it
    em_py_frame f;
    em_value values[EM_PY_MAX_ARGS];
    PyObject *out;
    bool grad;
    em_py_frame_init(&f);
    (void)em_py_try(c, plausible, self, args, nargs, kwnames, true, &f, values, &out, &grad);
    em_py_frame_clear(&f);
    if (PyErr_Occurred()) return NULL;
  }
  bool one = c->nsigs == 1;
  PyObject *text = PyUnicode_FromFormat("%s() received an invalid combination of arguments - got ", c->fn->name);
  append(&text, given_text(c, one ? c->sigs[0] : NULL, args, nargs, kwnames));
  append(&text, PyUnicode_FromString(one ? ", but expected " : ", but expected one of:\n"));
  if (one) append(&text, signature_text(c->sigs[0]));
  else
    for (int i = 0; i < c->nsigs; i++) append_option(c, c->sigs[i], args, nargs, kwnames, &text);
  if (text != NULL) PyErr_SetObject(PyExc_TypeError, text);
  Py_XDECREF(text);
  return NULL;
}
