// signature.c: Python signatures made from operator schemas: self is `input` for functions, out= joins its functional
// form, factories take requires_grad, numpy's names are understood. Also the texts of errors that need no arguments.
#include "bridge.h"

// ---------------------------------------------------------------- names
static const struct {
  const char *name, *alias[3];
} numpy_names[] = {{"dim", {"axis"}}, {"keepdim", {"keepdims"}}, {"input", {"x", "a", "x1"}}, {"other", {"x2"}}};

const char *em_py_type_name(const em_arg *arg) {
  static const char *const names[] = {[EM_TYPE_TENSOR] = "Tensor",
                                      [EM_TYPE_TENSOR_LIST] = "tuple of Tensors",
                                      [EM_TYPE_OPT_TENSOR_LIST] = "tuple of Tensors",
                                      [EM_TYPE_SCALAR] = "Number",
                                      [EM_TYPE_SCALAR_LIST] = "tuple of Scalars",
                                      [EM_TYPE_INT] = "int",
                                      [EM_TYPE_SYMINT] = "int",
                                      [EM_TYPE_INT_LIST] = "tuple of ints",
                                      [EM_TYPE_DOUBLE] = "float",
                                      [EM_TYPE_DOUBLE_LIST] = "tuple of floats",
                                      [EM_TYPE_BOOL] = "bool",
                                      [EM_TYPE_BOOL_LIST] = "tuple of bools",
                                      [EM_TYPE_DTYPE] = "torch.dtype",
                                      [EM_TYPE_LAYOUT] = "torch.layout",
                                      [EM_TYPE_DEVICE] = "torch.device",
                                      [EM_TYPE_MEMORY_FORMAT] = "torch.memory_format",
                                      [EM_TYPE_GENERATOR] = "torch.Generator",
                                      [EM_TYPE_STRING] = "str",
                                      [EM_TYPE_DIMNAME] = "name"};
  return names[arg->type];
}

const char *em_py_class_name(PyObject *o) {
  static const struct {
    PyTypeObject *type;
    const char *name;
  } ours[] = {{&em_py_dtype_type, "torch.dtype"},
              {&em_py_device_type, "torch.device"},
              {&em_py_size_type, "torch.Size"},
              {&em_py_layout_type, "torch.layout"},
              {&em_py_memory_format_type, "torch.memory_format"}};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    if (Py_TYPE(o) == ours[i].type) return ours[i].name;
  return Py_TYPE(o)->tp_name;
}

static int set_name(em_py_param *p, const char *name) {
  if ((p->name = PyUnicode_InternFromString(name)) == NULL) return -1;
  for (size_t i = 0; i < sizeof numpy_names / sizeof *numpy_names; i++)
    if (strcmp(name, numpy_names[i].name) == 0) memcpy(p->alias, numpy_names[i].alias, sizeof p->alias);
  return 0;
}

// ---------------------------------------------------------------- out=
static bool is_option(const char *name) {
  return strcmp(name, "dtype") == 0 || strcmp(name, "layout") == 0 || strcmp(name, "device") == 0 ||
         strcmp(name, "pin_memory") == 0;
}
static int find_arg(const em_operator *op, const char *name) {
  for (int i = 0; i < op->nargs; i++)
    if (strcmp(op->args[i].name, name) == 0) return i;
  return -1;
}

// Whether `out` takes the arguments of `op` (tensor options aside) and writes somewhere else; fills the map.
static bool is_out_form(const em_operator *op, const em_operator *out, em_py_signature *s) {
  int nouts = 0, used = 0, needed = 0;
  for (int i = 0; i < out->nargs; i++) {
    if (out->args[i].flags & EM_ARG_OUT) {
      s->out_map[i] = (int8_t)(-1 - nouts++);
      s->out_list = out->args[i].type == EM_TYPE_TENSOR_LIST;
      continue;
    }
    int at = find_arg(op, out->args[i].name);
    if (at < 0 || op->args[at].type != out->args[i].type ||
        ((op->args[at].flags ^ out->args[i].flags) & EM_ARG_OPTIONAL))
      return false;
    s->out_map[i] = (int8_t)at;
    used++;
  }
  for (int i = 0; i < op->nargs; i++) needed += find_arg(out, op->args[i].name) >= 0 || !is_option(op->args[i].name);
  s->nouts = nouts;
  return nouts > 0 && used == needed;
}

// PyTorch gives no Python signature to these: numbers reach the Tensor overload, or out= belongs to another overload.
static bool hidden(const em_operator *op) {
  static const char *const scalars[] = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"};
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (strcmp(op->overload, "Scalar") == 0 && strcmp(op->name, scalars[i]) == 0) return true;
  return op->variant == EM_OUT && (strcmp(op->name, "sum") == 0 || strcmp(op->name, "prod") == 0) &&
         op->overload[0] == 'o';
}

static const em_operator *find_out_form(const em_py_function *fn, const em_operator *op, em_py_signature *s) {
  for (int i = 0; i < fn->n; i++)
    if (fn->overloads[i]->variant == EM_OUT && !hidden(fn->overloads[i]) && is_out_form(op, fn->overloads[i], s))
      return fn->overloads[i];
  return NULL;
}

// ---------------------------------------------------------------- one signature
static bool is_factory(const em_operator *op) {
  return op->variant == EM_FUNCTIONAL && find_arg(op, "dtype") >= 0 && find_arg(op, "layout") >= 0 &&
         find_arg(op, "device") >= 0;
}

static int add_special(em_py_signature *s, uint8_t kind, const char *name) {
  em_py_param *p = &s->params[s->nparams++];
  p->kind = kind;
  p->kwonly = p->optional = 1;
  return set_name(p, name);
}

static int add_out(em_py_signature *s) {
  if (s->out_op == NULL || s->out_slot >= 0) return 0;
  s->out_slot = s->nparams;
  return add_special(s, EM_PARAM_OUT, "out");
}

static int add_params(em_py_signature *s, int where) {
  const em_operator *op = s->op;
  bool factory = is_factory(op);
  for (int i = 0; i < op->nargs; i++) {
    const em_arg *a = &op->args[i];
    if (i == s->self_slot || (a->flags & EM_ARG_OUT)) continue;
    if (factory && is_option(a->name) && add_out(s) < 0) return -1;  // before the tensor options
    em_py_param *p = &s->params[s->nparams++];
    p->arg = a;
    p->slot = (uint8_t)i;
    p->kwonly = (a->flags & EM_ARG_KWARG_ONLY) != 0;
    p->optional = (a->flags & EM_ARG_HAS_DEFAULT) != 0;
    if (set_name(p, where != EM_PY_METHOD && strcmp(a->name, "self") == 0 ? "input" : a->name) < 0) return -1;
  }
  if (add_out(s) < 0) return -1;
  return factory ? add_special(s, EM_PARAM_REQUIRES_GRAD, "requires_grad") : 0;
}

static int build(em_py_callable *c, const em_operator *op, em_py_signature *s) {
  s->op = op;
  s->self_slot = c->fn->where == EM_PY_METHOD ? find_arg(op, "self") : -1;
  s->out_slot = s->device_slot = -1;
  if (op->nargs + 3 > EM_PY_MAX_ARGS || op->nrets > EM_PY_MAX_RETS) {
    PyErr_Format(PyExc_SystemError, "%s has too many arguments", op->full);
    return -1;
  }
  if (op->variant == EM_OUT) {  // an operator with no functional form: its own out form
    s->out_op = op;
    (void)is_out_form(op, op, s);
  } else if (c->fn->where != EM_PY_METHOD) {
    s->out_op = find_out_form(c->fn, op, s);
  }
  bool tensor = false;
  for (int i = 0; i < op->nargs; i++)
    tensor |= op->args[i].type <= EM_TYPE_OPT_TENSOR_LIST && !(op->args[i].flags & EM_ARG_OUT);
  s->device_arg = find_arg(op, "device");
  s->pin_arg = find_arg(op, "pin_memory");
  if (!tensor) s->device_slot = s->device_arg;
  if (add_params(s, c->fn->where) < 0) return -1;
  for (int i = 0; i < s->nparams; i++) {
    s->min_args += !s->params[i].optional;
    s->max_pos += !s->params[i].kwonly;
  }
  s->tuple_type = em_py_return_type(op);
  return 0;
}

// Functional and in-place overloads make a signature each; out= forms only when they have no functional one.
static bool has_functional(const em_py_function *fn, const em_operator *out) {
  em_py_signature scratch;
  for (int i = 0; i < fn->n; i++)
    if (fn->overloads[i]->variant != EM_OUT && is_out_form(fn->overloads[i], out, &scratch)) return true;
  return false;
}

// PyTorch tries signatures in the order of their texts, except that one which takes a Scalar where another takes a
// Tensor (or a list where it takes an int) comes after it.
static const char *sort_text(const em_py_param *p) {
  static const char *const names[] = {[EM_TYPE_TENSOR] = "Tensor",
                                      [EM_TYPE_TENSOR_LIST] = "TensorList",
                                      [EM_TYPE_OPT_TENSOR_LIST] = "TensorList",
                                      [EM_TYPE_SCALAR] = "Scalar",
                                      [EM_TYPE_SCALAR_LIST] = "ScalarList",
                                      [EM_TYPE_INT] = "int64_t",
                                      [EM_TYPE_SYMINT] = "SymInt",
                                      [EM_TYPE_INT_LIST] = "SymIntArrayRef",
                                      [EM_TYPE_DOUBLE] = "double",
                                      [EM_TYPE_DOUBLE_LIST] = "ArrayRef<double>",
                                      [EM_TYPE_BOOL] = "bool",
                                      [EM_TYPE_BOOL_LIST] = "std::array<bool>",
                                      [EM_TYPE_DTYPE] = "ScalarType",
                                      [EM_TYPE_LAYOUT] = "Layout",
                                      [EM_TYPE_DEVICE] = "Device",
                                      [EM_TYPE_MEMORY_FORMAT] = "MemoryFormat",
                                      [EM_TYPE_GENERATOR] = "Generator",
                                      [EM_TYPE_STRING] = "c10::string_view",
                                      [EM_TYPE_DIMNAME] = "Dimname"};
  return p->arg == NULL ? "Tensor" : names[p->arg->type];
}
static int compare_signatures(const em_py_signature *a, const em_py_signature *b) {
  bool star_a = false, star_b = false;
  for (int i = 0; i < a->nparams && i < b->nparams; i++) {
    const em_py_param *p = &a->params[i], *q = &b->params[i];
    if (p->kwonly != q->kwonly && !star_a && !star_b) return p->kwonly ? -1 : 1;  // '*' sorts first
    star_a |= p->kwonly;
    star_b |= q->kwonly;
    int d = strcmp(sort_text(p), sort_text(q));
    if (d == 0) d = PyUnicode_Compare(p->name, q->name);
    if (d != 0) return d;
  }
  return a->nparams - b->nparams;
}
static bool comes_after(const em_py_signature *a, const em_py_signature *b) {  // a is "smaller" than b
  int na = 0, nb = 0;
  bool differs = false;
  for (int i = 0; i < a->nparams; i++) na += a->params[i].arg != NULL;
  for (int i = 0; i < b->nparams; i++) nb += b->params[i].arg != NULL;
  if (na != nb) return false;
  for (int i = 0; i < a->nparams && i < b->nparams; i++) {
    if (a->params[i].arg == NULL || b->params[i].arg == NULL) continue;
    int s = a->params[i].arg->type, t = b->params[i].arg->type;
    if (s == t) continue;
    differs = true;
    bool less = (s == EM_TYPE_SCALAR && t == EM_TYPE_TENSOR) ||
                (s == EM_TYPE_INT_LIST && (t == EM_TYPE_INT || t == EM_TYPE_SYMINT)) ||
                (s == EM_TYPE_TENSOR_LIST &&
                 (t == EM_TYPE_INT_LIST || t == EM_TYPE_DOUBLE_LIST || t == EM_TYPE_BOOL_LIST));
    if (!less) return false;
  }
  return differs;
}
static void sort_signatures(em_py_signature **sigs, int n) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && compare_signatures(sigs[j - 1], sigs[j]) > 0; j--) {
      em_py_signature *s = sigs[j];
      sigs[j] = sigs[j - 1];
      sigs[j - 1] = s;
    }
  for (int i = 0; i < n; i++) {  // the first of the rest that none of the rest must precede
    int pick = i;
    for (int j = i; j < n; j++) {
      bool free = true;
      for (int k = i; k < n && free; k++) free = k == j || !comes_after(sigs[j], sigs[k]);
      if (free) {
        pick = j;
        break;
      }
    }
    em_py_signature *s = sigs[pick];
    memmove(&sigs[i + 1], &sigs[i], (size_t)(pick - i) * sizeof *sigs);
    sigs[i] = s;
  }
}

int em_py_signatures(em_py_callable *c) {
  if (c->sigs != NULL) return 0;
  int n = 0;
  em_py_signature **sigs = PyMem_Calloc((size_t)c->fn->n, sizeof *sigs);
  if (sigs == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < c->fn->n; i++) {
    const em_operator *op = c->fn->overloads[i];
    if (c->fn->n > 1 && (hidden(op) || (op->variant == EM_OUT && has_functional(c->fn, op)))) continue;
    em_py_signature *s = PyMem_Calloc(1, sizeof *s);
    if (s == NULL) {
      PyErr_NoMemory();
      goto fail;
    }
    sigs[n++] = s;
    if (build(c, op, s) < 0) goto fail;
  }
  sort_signatures(sigs, n);
  c->sigs = sigs;
  c->nsigs = n;
  return 0;
fail:
  for (int i = 0; i < n; i++) PyMem_Free(sigs[i]);
  PyMem_Free(sigs);
  return -1;
}

// ---------------------------------------------------------------- named tuples of results
static PyObject *return_types;  // dict: "max" -> type
static PyObject *return_repr(PyObject *o) {
  const char *name = Py_TYPE(o)->tp_name, *short_name = strrchr(name, '.');
  PyObject *text = PyUnicode_FromFormat("torch.return_types.%s(", short_name == NULL ? name : short_name + 1);
  PyObject *fields = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__match_args__");
  for (Py_ssize_t i = 0; text != NULL && fields != NULL && i < PyTuple_GET_SIZE(fields); i++) {
    PyObject *line = PyUnicode_FromFormat("%s\n%U=%R", i ? "," : "", PyTuple_GET_ITEM(fields, i),
                                          PyTuple_GET_ITEM(o, i));
    PyUnicode_AppendAndDel(&text, line);
  }
  if (fields == NULL) Py_CLEAR(text);
  Py_XDECREF(fields);
  if (text != NULL) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
  return text;
}

// Names of results stand in the schema: "-> (Tensor values, Tensor indices)". Returns how many, 0 if any has none.
static int return_names(const char *schema, char names[][32], int max) {
  const char *p = strstr(schema, "-> (");
  if (p == NULL) return 0;
  int n = 0;
  for (p += 4; n < max; n++) {
    const char *end = p + strcspn(p, ",)");
    while (*end == ')' && memchr(p, '(', (size_t)(end - p)) != NULL) {  // the ")" of an alias note "(a!)"
      p = end + 1;
      end = p + strcspn(p, ",)");
    }
    const char *word = end;
    while (word > p && word[-1] != ' ') word--;
    if (word <= p || word == end || end - word > 31) return 0;
    memcpy(names[n], word, (size_t)(end - word));
    names[n][end - word] = 0;
    if (*end != ',') return n + 1;
    p = end + 1 + (end[1] == ' ');
  }
  return 0;
}

PyTypeObject *em_py_return_type(const em_operator *op) {
  char scratch[EM_PY_MAX_RETS][32];
  if (op->nrets < 2 || op->variant == EM_INPLACE || return_names(op->schema, scratch, EM_PY_MAX_RETS) != op->nrets)
    return NULL;
  PyObject *found = PyDict_GetItemString(return_types, op->name);
  if (found != NULL && PyObject_HasAttrString(found, scratch[0])) return (PyTypeObject *)found;
  // The type keeps pointing at these texts and lives as long as the process.
  size_t room = strlen(op->name) + 32;
  char(*names)[32] = PyMem_Malloc(sizeof scratch), *type_name = PyMem_Malloc(room);
  PyStructSequence_Field fields[EM_PY_MAX_RETS + 1] = {{NULL}};
  PyTypeObject *type = NULL;
  if (names != NULL && type_name != NULL) {
    memcpy(names, scratch, sizeof scratch);
    snprintf(type_name, room, "torch.return_types.%s", op->name);
    for (int i = 0; i < op->nrets; i++) fields[i].name = names[i];
    PyStructSequence_Desc desc = {type_name, NULL, fields, op->nrets};
    type = PyStructSequence_NewType(&desc);
  }
  if (type == NULL) {
    PyMem_Free(names);
    PyMem_Free(type_name);
    PyErr_Clear();  // a plain tuple serves
    return NULL;
  }
  type->tp_repr = return_repr;
  if (PyDict_SetItemString(return_types, op->name, (PyObject *)type) < 0) PyErr_Clear();
  return type;
}

PyObject *em_py_return_types(void) {
  if (return_types == NULL) return_types = PyDict_New();
  return return_types;
}
