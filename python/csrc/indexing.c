// indexing.c: x[...] and x[...] = v. The basic part (ints, slices, None, ...) becomes view operators, so that autograd
// sees it; tensors and lists become one call of index or index_put_.
#include "fast.h"

#define T(o) em_py_t(o)

// ---------------------------------------------------------------- operators used here
typedef em_status (*fn_select)(uint64_t, em_tensor *, int64_t, int64_t, em_tensor **);
typedef em_status (*fn_slice)(uint64_t, em_tensor *, int64_t, em_opt_int, em_opt_int, int64_t, em_tensor **);
typedef em_status (*fn_unsqueeze)(uint64_t, em_tensor *, int64_t, em_tensor **);

static em_status absent(const char *name) {
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "this build of Ember has no operator '%s'", name);
}
static const em_operator *find(const em_operator **cache, const char *name, const char *overload) {
  if (*cache == NULL) *cache = em_operator_find("aten", name, overload);
  return *cache;
}

static em_status run_select(em_tensor *t, int64_t dim, int64_t index, em_tensor **out) {
  static const em_operator *op;
  if (find(&op, "select", "int") == NULL) return absent("select.int");
  uint64_t ks = em_priv_keys(op, t->keys);
  if (ks == 0) return em_priv_no_kernel(op, t->keys);
  return ((fn_select)op->slots[em_priv_top_key(ks)].fn)(ks, t, dim, index, out);
}
static em_status run_slice(em_tensor *t, int64_t dim, int64_t start, int64_t stop, int64_t step, em_tensor **out) {
  static const em_operator *op;
  if (find(&op, "slice", "Tensor") == NULL) return absent("slice.Tensor");
  uint64_t ks = em_priv_keys(op, t->keys);
  if (ks == 0) return em_priv_no_kernel(op, t->keys);
  return ((fn_slice)op->slots[em_priv_top_key(ks)].fn)(ks, t, dim, em_some_int(start), em_some_int(stop), step, out);
}
static em_status run_unsqueeze(em_tensor *t, int64_t dim, em_tensor **out) {
  static const em_operator *op;
  if (find(&op, "unsqueeze", "") == NULL) return absent("unsqueeze");
  uint64_t ks = em_priv_keys(op, t->keys);
  if (ks == 0) return em_priv_no_kernel(op, t->keys);
  return ((fn_unsqueeze)op->slots[em_priv_top_key(ks)].fn)(ks, t, dim, out);
}
static em_status run_alias(em_tensor *t, em_tensor **out) {
  static const em_operator *op;
  if (find(&op, "alias", "") == NULL) return absent("alias");
  em_value a = em_value_tensor(t), r = em_value_none();
  em_status st = em_priv_call_boxed(op, &a, &r);
  if (st == EM_OK) *out = r.tensor;
  return st;
}

// ---------------------------------------------------------------- one step of the basic part
static int fail_status(em_status st) { return em_py_raise_int(st); }
static int replace(em_tensor **t, em_status st, em_tensor *next) {
  if (st != EM_OK) return fail_status(st);
  em_tensor_release(*t);
  *t = next;
  return 0;
}

static int step_int(em_tensor **t, int64_t dim, int64_t index, int64_t real_dim) {
  em_tensor *next = NULL;
  if ((*t)->ndim == 0) {
    PyErr_SetString(
        PyExc_IndexError,
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
        "0-dim tensor to a number");
    return -1;
  }
  int64_t size = (*t)->sizes[dim];
  if (index < -size || index >= size) {
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %lld with size %lld", (long long)index,
                 (long long)real_dim, (long long)size);
    return -1;
  }
  em_status st = run_select(*t, dim, index, &next);
  return replace(t, st, next);
}

static int slice_bound(PyObject *o, int64_t none, int64_t *out) {
  if (o == Py_None) {
    *out = none;
    return 0;
  }
  if (em_py_is_tensor(o)) return em_py_to_int64(o, out);
  Py_ssize_t v;
  if (!_PyEval_SliceIndex(o, &v)) return -1;
  *out = v;
  return 0;
}
static int step_slice(em_tensor **t, int64_t dim, PyObject *o) {
  PySliceObject *s = (PySliceObject *)o;
  int64_t start, stop, step;
  em_tensor *next = NULL;
  if (slice_bound(s->step, 1, &step) < 0) return -1;
  if (step == 0) {
    PyErr_SetString(PyExc_ValueError, "slice step cannot be zero");
    return -1;
  }
  if (step < 0) {
    PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
    return -1;
  }
  if (slice_bound(s->start, 0, &start) < 0 || slice_bound(s->stop, INT64_MAX, &stop) < 0) return -1;
  if (start == 0 && stop >= (*t)->sizes[dim] && step == 1) return 0;  // all of it
  em_status st = run_slice(*t, dim, start, stop, step, &next);
  return replace(t, st, next);
}
static int step_none(em_tensor **t, int64_t dim) {
  em_tensor *next = NULL;
  em_status st = run_unsqueeze(*t, dim, &next);
  return replace(t, st, next);
}

// ---------------------------------------------------------------- the whole index
typedef struct index_state {
  em_tensor *t;                     // owned: the basic part applied so far
  int64_t dim, real_dim;            // of t; of the indexed tensor
  em_tensor *tensors[EM_MAX_DIMS];  // owned: tensor part, NULL for dims that are kept
  int ntensors;
} index_state;

static void state_clear(index_state *s) {
  em_tensor_release(s->t);
  for (int i = 0; i < s->ntensors; i++) em_tensor_release(s->tensors[i]);
}
static int set_tensor(index_state *s, em_tensor *t) {  // steals t
  if (s->dim >= EM_MAX_DIMS) {
    em_tensor_release(t);
    PyErr_SetString(PyExc_IndexError, "too many indices");
    return -1;
  }
  while (s->ntensors <= s->dim) s->tensors[s->ntensors++] = NULL;
  s->tensors[s->dim] = t;
  return 0;
}

static bool is_bool_like(PyObject *o) { return o == Py_True || o == Py_False; }

static int step_bool(index_state *s, bool value) {  // adds a dimension of size one and masks it
  em_tensor *mask = NULL;
  if (step_none(&s->t, s->dim) < 0) return -1;
  int64_t one = 1;
  em_status st = em_tensor_from_scalar(em_scalar_bool(value), EM_BOOL, (em_device){EM_DEVICE_CPU, -1}, &mask);
  if (st == EM_OK && (st = em_tensor_set_window(mask, 1, &one, &one, 0)) != EM_OK) em_tensor_release(mask);
  if (st != EM_OK) return fail_status(st);
  if (set_tensor(s, mask) < 0) return -1;
  s->dim++;
  return 0;
}

static int step_tensor(index_state *s, PyObject *o) {
  em_tensor *t = T(o);
  bool integral = em_dtype_is_integral(t->dtype);
  if (t->ndim == 0 && integral) {
    if (t->dtype == EM_BOOL || t->dtype == EM_U8) {
      em_scalar v;
      em_status st = em_tensor_item(t, &v);
      return st != EM_OK ? fail_status(st) : step_bool(s, v.i != 0);
    }
    if (t->device.type != EM_DEVICE_META || s->t->device.type != EM_DEVICE_META) {  // item() refuses the former
      em_scalar v;
      em_status st = em_tensor_item(t, &v);
      if (st != EM_OK) return fail_status(st);
      s->real_dim++;
      return step_int(&s->t, s->dim, v.i, s->real_dim - 1);
    }
  }
  int consumed = t->dtype == EM_BOOL || t->dtype == EM_U8 ? t->ndim : 1;
  if (set_tensor(s, em_tensor_retain(t)) < 0) return -1;
  s->dim += consumed;
  s->real_dim += consumed;
  return 0;
}

static int step_sequence(index_state *s, PyObject *o) {
  em_tensor *t = NULL;
  int made = em_py_is_array(o) ? em_py_array_tensor(o, false, &t) : 0;
  if (made < 0) return -1;
  if (made == 0) {
    em_status st = em_py_sequence_tensor(o, EM_DTYPE_NONE, (em_device){EM_DEVICE_CPU, -1}, &t);
    if (st != EM_OK) return fail_status(st);
    if (t->numel == 0 && !em_dtype_is_integral(t->dtype)) {  // x[[]]
      em_tensor *ints = NULL;
      st = em_py_to_dtype_device(t, EM_I64, EM_DEVICE_NONE, false, &ints);
      em_tensor_release(t);
      if (st != EM_OK) return fail_status(st);
      t = ints;
    }
  }
  PyObject *w = em_py_wrap(t);
  int r = w == NULL ? -1 : step_tensor(s, w);
  Py_XDECREF(w);
  return r;
}

static int step_any(index_state *s, PyObject *o, int64_t specified, int original_ndim) {
  if (is_bool_like(o)) return step_bool(s, o == Py_True);
  if (PyLong_Check(o) || (em_py_is_int(o) && !em_py_is_tensor(o))) {
    int64_t i;
    if (em_py_to_int64(o, &i) < 0) return -1;
    s->real_dim++;
    return step_int(&s->t, s->dim, i, s->real_dim - 1);
  }
  if (PySlice_Check(o)) {
    if (s->t->ndim == 0) {
      PyErr_SetString(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
      return -1;
    }
    if (step_slice(&s->t, s->dim, o) < 0) return -1;
    s->dim++;
    s->real_dim++;
    return 0;
  }
  if (o == Py_Ellipsis) {
    s->dim += original_ndim - specified;
    s->real_dim += original_ndim - specified;
    return 0;
  }
  if (o == Py_None) {
    if (step_none(&s->t, s->dim) < 0) return -1;
    s->dim++;
    return 0;
  }
  if (em_py_is_tensor(o)) return step_tensor(s, o);
  if (PySequence_Check(o) || em_py_is_array(o)) return step_sequence(s, o);
  if (PyIndex_Check(o)) {
    PyObject *i = PyNumber_Index(o);
    int r = i == NULL ? -1 : step_any(s, i, specified, original_ndim);
    Py_XDECREF(i);
    return r;
  }
  PyErr_Format(
      PyExc_IndexError,
      "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
      Py_TYPE(o)->tp_name);
  return -1;
}

// Dimensions of x that the index names: an ellipsis stands for the rest.
static int64_t count_specified(PyObject *index) {
  int64_t n = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++) {
    PyObject *o = PyTuple_GET_ITEM(index, i);
    if (em_py_is_tensor(o)) {
      em_tensor *t = T(o);
      n += t->dtype == EM_BOOL || t->dtype == EM_U8 ? t->ndim : 1;
    } else if (em_py_is_array(o)) {
      em_tensor *t = NULL;
      if (em_py_array_tensor(o, false, &t) <= 0) PyErr_Clear();
      n += t != NULL && t->dtype == EM_BOOL ? t->ndim : 1;
      em_tensor_release(t);
    } else if (o != Py_None && o != Py_Ellipsis && !is_bool_like(o)) {
      n++;
    }
  }
  return n;
}

// PyTorch still reads a short sequence with slices, None, ..., tensors or sequences in it as a tuple, and warns. -1: an exception.
static int reads_as_tuple(PyObject *index) {
  if (!PySequence_Check(index) || em_py_is_tensor(index) || em_py_is_array(index)) return 0;
  Py_ssize_t n = PySequence_Size(index);
  if (n < 0) PyErr_Clear();
  if (n < 0 || n >= 32) return 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = PySequence_GetItem(index, i);
    if (o == NULL) {
      PyErr_Clear();
      return 0;
    }
    const bool plural = em_py_is_tensor(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None || PySequence_Check(o);
    Py_DECREF(o);
    if (!plural) continue;
    em_status st = em_warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] "
        "instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will result either in "
        "an error or a different result");
    return st == EM_OK ? 1 : em_py_raise_int(st);
  }
  return 0;
}
static PyObject *as_tuple(PyObject *index) {
  if (PyTuple_Check(index)) return Py_NewRef(index);
  int plural = reads_as_tuple(index);
  if (plural < 0) return NULL;
  return plural ? PySequence_Tuple(index) : PyTuple_Pack(1, index);
}

static int apply(em_tensor *self, PyObject *index, index_state *s) {
  memset(s, 0, sizeof *s);
  PyObject *tuple = as_tuple(index);
  if (tuple == NULL) return -1;
  int64_t specified = count_specified(tuple);
  int ndim = self->ndim, r = 0;
  if (specified > ndim) {
    if (ndim == 0 && PyTuple_GET_SIZE(tuple) == 1 &&
        (PyLong_Check(PyTuple_GET_ITEM(tuple, 0)) || PySlice_Check(PyTuple_GET_ITEM(tuple, 0)))) {
      PyErr_SetString(PyExc_IndexError, PySlice_Check(PyTuple_GET_ITEM(tuple, 0))
                                            ? "slice() cannot be applied to a 0-dim tensor."
                                            : "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                                              "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
    } else {
      PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", ndim);
    }
    r = -1;
  }
  s->t = em_tensor_retain(self);
  for (Py_ssize_t i = 0; r == 0 && i < PyTuple_GET_SIZE(tuple); i++)
    r = step_any(s, PyTuple_GET_ITEM(tuple, i), specified, ndim);
  Py_DECREF(tuple);
  if (r < 0) state_clear(s);
  return r;
}

// ---------------------------------------------------------------- get
static PyObject *index_tensors(index_state *s) {
  static const em_operator *op;
  if (find(&op, "index", "Tensor") == NULL) return em_py_raise(absent("index.Tensor"));
  em_value args[2] = {em_value_tensor(s->t), em_value_tensors((em_tensors){s->tensors, s->ntensors})},
           ret = em_value_none();
  em_status st = em_priv_call_boxed(op, args, &ret);
  return st == EM_OK ? em_py_wrap(ret.tensor) : em_py_raise(st);
}

static PyObject *override2(PyObject *self, const char *name, PyObject *index, PyObject *value) {
  PyObject *args[3] = {self, index, value}, *func = PyObject_GetAttrString((PyObject *)em_py_tensor_class, name);
  PyObject *r = func == NULL ? NULL : em_py_handle_override(func, args, value == NULL ? 2 : 3, NULL);
  Py_XDECREF(func);
  return r;
}

PyObject *em_py_getitem(PyObject *self, PyObject *index) {
  PyObject *r;
  em_tensor *t = T(self), *out = NULL;
  if (EM_UNLIKELY(!em_py_is_exact(self) || !em_py_no_modes()) && em_py_any_override(self, NULL, 0, NULL))
    return override2(self, "__getitem__", index, NULL);
  if (PyLong_CheckExact(index) && t->ndim > 0) {
    int64_t i;
    if (em_py_to_int64(index, &i) < 0) return NULL;
    if (EM_LIKELY(i >= -t->sizes[0] && i < t->sizes[0])) {
      em_status st = run_select(t, 0, i, &out);
      return st == EM_OK ? em_py_wrap(out) : em_py_raise(st);
    }
  }
  index_state s;
  if (apply(t, index, &s) < 0) return NULL;
  if (s.ntensors > 0) {
    r = index_tensors(&s);
  } else if (s.t == t) {  // x[...]: a view all the same
    em_status st = run_alias(t, &out);
    r = st == EM_OK ? em_py_wrap(out) : em_py_raise(st);
  } else {
    r = em_py_wrap(em_tensor_retain(s.t));
  }
  state_clear(&s);
  return r;
}

// ---------------------------------------------------------------- set
// The value as a tensor: numbers take self's dtype.
static em_tensor *value_tensor(em_tensor *self, PyObject *value) {
  em_tensor *t = NULL;
  em_scalar s;
  if (em_py_is_tensor(value)) return em_tensor_retain(T(value));
  if (em_py_is_number(value)) {
    if (em_py_to_scalar(value, &s) < 0) return NULL;
    em_status st = em_tensor_from_scalar(s, self->dtype, (em_device){EM_DEVICE_CPU, -1}, &t);
    if (st != EM_OK) (void)em_py_raise(st);
    return t;
  }
  PyErr_Format(PyExc_TypeError, "can't assign a %s to a torch.%s", Py_TYPE(value)->tp_name,
               em_priv_dtypes[self->dtype].storage);
  return NULL;
}

// Assignment expands the value, so its words are expand's.
static em_status check_expands(const em_tensor *dst, const em_tensor *src) {
  char want[256], have[256];
  for (int i = 0; i < src->ndim; i++) {
    int d = dst->ndim - src->ndim + i;
    if (d >= 0 && (src->sizes[i] == dst->sizes[d] || src->sizes[i] == 1)) continue;
    (void)em_shape_format(dst->ndim, dst->sizes, want, sizeof want);
    (void)em_shape_format(src->ndim, src->sizes, have, sizeof have);
    if (d < 0)
      return em_fail(EM_ERR_RUNTIME,
                     "expand(torch.%s{%s}, size=%s): the number of sizes provided (%d) must be greater or equal to the "
                     "number of dimensions in the tensor (%d)",
                     em_priv_dtypes[src->dtype].storage, have, want, dst->ndim, src->ndim);
    return em_fail(
        EM_ERR_RUNTIME,
        "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension "
        "%d.  Target sizes: %s.  Tensor sizes: %s",
        (long long)dst->sizes[d], (long long)src->sizes[i], d, want, have);
  }
  return EM_OK;
}

static em_status copy_to(em_tensor *dst, em_tensor *src) {
  static const em_operator *op;
  em_tensor *view = NULL;
  em_status st = EM_OK;
  if (find(&op, "copy_", "") == NULL) return absent("copy_");
  // leading dimensions of size one of the value are dropped, as NumPy does
  int skip = 0;
  while (src->ndim - skip > dst->ndim && src->sizes[skip] == 1) skip++;
  for (int i = 0; i < skip; i++) {
    em_tensor *next = NULL;
    st = run_select(view == NULL ? src : view, 0, 0, &next);
    em_tensor_release(view);
    view = next;
    if (st != EM_OK) return st;
  }
  if ((st = check_expands(dst, view == NULL ? src : view)) != EM_OK) {
    em_tensor_release(view);
    return st;
  }
  em_value args[3] = {em_value_tensor(dst), em_value_tensor(view == NULL ? src : view), em_value_bool(false)},
           ret = em_value_none();
  st = em_priv_call_boxed(op, args, &ret);
  em_value_clear(&ret);
  em_tensor_release(view);
  return st;
}

static em_status put_tensors(index_state *s, em_tensor *value) {
  static const em_operator *op;
  if (find(&op, "index_put_", "") == NULL) return absent("index_put_");
  em_value args[4] = {em_value_tensor(s->t), em_value_tensors((em_tensors){s->tensors, s->ntensors}),
                      em_value_tensor(value), em_value_bool(false)};
  em_value ret = em_value_none();
  em_status st = em_priv_call_boxed(op, args, &ret);
  em_value_clear(&ret);
  return st;
}

static int put(index_state *s, em_tensor *self, PyObject *value) {
  em_tensor *v = value_tensor(self, value);
  if (v == NULL) return -1;
  em_status st = s->ntensors > 0 ? put_tensors(s, v) : copy_to(s->t, v);
  em_tensor_release(v);
  return st == EM_OK ? 0 : em_py_raise_int(st);
}

int em_py_setitem(PyObject *self, PyObject *index, PyObject *value) {
  if (value == NULL) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  if (EM_UNLIKELY(em_py_any_override(self, &value, 1, NULL))) {
    PyObject *r = override2(self, "__setitem__", index, value);
    Py_XDECREF(r);
    return r == NULL ? -1 : 0;
  }
  index_state s;
  if (apply(T(self), index, &s) < 0) return -1;
  int bad = put(&s, T(self), value);
  state_clear(&s);
  return bad;
}
