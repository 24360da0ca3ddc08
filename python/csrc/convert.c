// convert.c: Python objects to core values and back. Everything that an operator's schema can ask for is here.
#include "bridge.h"
#include "core/rng.h"

// ---------------------------------------------------------------- memory of one call
typedef struct heap_block {
  struct heap_block *next;
} heap_block;

void em_py_frame_init(em_py_frame *f) {
  f->ntemps = 0;
  f->used = 0;
  f->heap = NULL;
  f->held = NULL;
}
typedef struct em_py_held {
  struct em_py_held *next;
  Py_ssize_t n;
  em_tensor *tensors[];  // owned, NULL for None
} em_py_held;
void em_py_frame_clear(em_py_frame *f) {
  for (em_py_held *h = f->held; h != NULL; h = h->next)
    for (Py_ssize_t i = 0; i < h->n; i++) em_tensor_release(h->tensors[i]);
  for (int i = 0; i < f->ntemps; i++) em_tensor_release(f->temps[i]);
  for (heap_block *b = f->heap; b != NULL;) {
    heap_block *next = b->next;
    PyMem_Free(b);
    b = next;
  }
}
void *em_py_frame_alloc(em_py_frame *f, size_t n) {
  n = (n + 15) & ~(size_t)15;
  if (f->used + n <= sizeof f->room) {
    void *p = f->room + f->used;
    f->used += n;
    return p;
  }
  heap_block *b = PyMem_Malloc(n + 16);
  if (b == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  b->next = f->heap;
  f->heap = b;
  return (char *)b + 16;
}
int em_py_frame_keep(em_py_frame *f, em_tensor *t) {
  if (f->ntemps == EM_PY_MAX_ARGS) {
    em_tensor_release(t);
    PyErr_SetString(PyExc_RuntimeError, "too many temporaries in one call");
    return -1;
  }
  f->temps[f->ntemps++] = t;
  return 0;
}

PyObject *em_py_list_item(PyObject *seq, Py_ssize_t i, Py_ssize_t n) {
  if (EM_LIKELY(PySequence_Fast_GET_SIZE(seq) == n)) return Py_NewRef(PySequence_Fast_GET_ITEM(seq, i));
  PyErr_SetString(PyExc_RuntimeError, "a list changed its size while it was read");
  return NULL;
}

// ---------------------------------------------------------------- numbers
// numpy's scalar types, without importing numpy: their names say what they are.
bool em_py_is_numpy_scalar(PyObject *o) {
  const char *name = Py_TYPE(o)->tp_name;
  return strncmp(name, "numpy.", 6) == 0 && strcmp(name, "numpy.ndarray") != 0 && Py_TYPE(o)->tp_as_number != NULL &&
         Py_TYPE(o)->tp_as_number->nb_float != NULL && strncmp(name, "numpy.dtype", 11) != 0;
}
static bool numpy_bool(PyObject *o) {
  return strcmp(Py_TYPE(o)->tp_name, "numpy.bool_") == 0 || strcmp(Py_TYPE(o)->tp_name, "numpy.bool") == 0;
}
bool em_py_is_int(PyObject *o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  return em_py_is_numpy_scalar(o) && Py_TYPE(o)->tp_as_number->nb_index != NULL && !numpy_bool(o);
}
bool em_py_is_number(PyObject *o) {
  return PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || em_py_is_numpy_scalar(o);
}

int em_py_to_int64(PyObject *o, int64_t *out) {
  if (em_py_is_tensor(o)) {
    em_scalar s;
    em_status st = em_tensor_item(em_py_t(o), &s);
    if (st != EM_OK) return em_py_raise_int(st);
    *out = em_scalar_to_int(s);
    return 0;
  }
  int overflow = 0;
  PyObject *index = PyNumber_Index(o);
  if (index == NULL) return -1;
  *out = PyLong_AsLongLongAndOverflow(index, &overflow);
  Py_DECREF(index);
  if (overflow) {
    PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    return -1;
  }
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

int em_py_to_scalar(PyObject *o, em_scalar *out) {
  if (PyBool_Check(o) || numpy_bool(o)) {
    int b = PyObject_IsTrue(o);
    *out = em_scalar_bool(b > 0);
    return b < 0 ? -1 : 0;
  }
  if (PyFloat_Check(o)) {
    *out = em_scalar_double(PyFloat_AS_DOUBLE(o));
    return 0;
  }
  if (em_py_is_int(o)) {
    int64_t v;
    if (em_py_to_int64(o, &v) < 0) return -1;
    *out = em_scalar_int(v);
    return 0;
  }
  if (PyComplex_Check(o) || (em_py_is_numpy_scalar(o) && strncmp(Py_TYPE(o)->tp_name, "numpy.complex", 13) == 0)) {
    Py_complex c = PyComplex_AsCComplex(o);
    *out = em_scalar_complex(c.real, c.imag);
    return c.real == -1.0 && PyErr_Occurred() ? -1 : 0;
  }
  if (em_py_is_tensor(o)) {
    em_status st = em_tensor_item(em_py_t(o), out);
    return st == EM_OK ? 0 : em_py_raise_int(st);
  }
  double d = PyFloat_AsDouble(o);
  *out = em_scalar_double(d);
  return d == -1.0 && PyErr_Occurred() ? -1 : 0;
}

PyObject *em_py_from_scalar(em_scalar s) {
  switch (s.kind) {
    case EM_SCALAR_BOOL: return PyBool_FromLong(s.i != 0);
    case EM_SCALAR_INT: return PyLong_FromLongLong(s.i);
    case EM_SCALAR_DOUBLE: return PyFloat_FromDouble(s.d);
    case EM_SCALAR_COMPLEX: return PyComplex_FromDoubles(s.c.re, s.c.im);
    default: Py_RETURN_NONE;
  }
}

// ---------------------------------------------------------------- values to Python
static PyObject *list_of(const em_value *v, PyObject *(*make)(const em_value *, int64_t)) {
  PyObject *l = PyList_New(v->list.n);
  for (int64_t i = 0; l != NULL && i < v->list.n; i++) {
    PyObject *x = make(v, i);
    if (x == NULL) {
      Py_DECREF(l);
      return NULL;
    }
    PyList_SET_ITEM(l, i, x);
  }
  return l;
}
static PyObject *item_tensor(const em_value *v, int64_t i) { return em_py_wrap(em_tensor_retain(v->list.tensors[i])); }
static PyObject *item_int(const em_value *v, int64_t i) { return PyLong_FromLongLong(v->list.ints[i]); }
static PyObject *item_double(const em_value *v, int64_t i) { return PyFloat_FromDouble(v->list.doubles[i]); }
static PyObject *item_bool(const em_value *v, int64_t i) { return PyBool_FromLong(v->list.bools[i]); }
static PyObject *item_scalar(const em_value *v, int64_t i) { return em_py_from_scalar(v->list.scalars[i]); }

PyObject *em_py_from_value_borrowed(const em_value *v) {
  switch ((em_tag)v->tag) {
    case EM_TAG_NONE: Py_RETURN_NONE;
    case EM_TAG_BOOL: return PyBool_FromLong(v->i != 0);
    case EM_TAG_INT: return PyLong_FromLongLong(v->i);
    case EM_TAG_DOUBLE: return PyFloat_FromDouble(v->d);
    case EM_TAG_COMPLEX: return PyComplex_FromDoubles(v->c.re, v->c.im);
    case EM_TAG_SCALAR: return em_py_from_scalar(v->scalar);
    case EM_TAG_TENSOR: return em_py_wrap(em_tensor_retain(v->tensor));
    case EM_TAG_TENSORS: return list_of(v, item_tensor);
    case EM_TAG_INTS: return list_of(v, item_int);
    case EM_TAG_DOUBLES: return list_of(v, item_double);
    case EM_TAG_BOOLS: return list_of(v, item_bool);
    case EM_TAG_SCALARS: return list_of(v, item_scalar);
    case EM_TAG_DTYPE: return em_py_dtype_new_ref((int)v->i);
    case EM_TAG_LAYOUT: return em_py_layout_new_ref();
    case EM_TAG_DEVICE: return em_py_device_new(v->device);
    case EM_TAG_MEMORY_FORMAT: return em_py_memory_format_new_ref((int)v->i);
    case EM_TAG_GENERATOR: return em_py_generator_new_ref(v->generator);
    case EM_TAG_STRING: return PyUnicode_FromString(v->string);
    case EM_TAG_OPAQUE: return Py_NewRef((PyObject *)v->opaque.ptr);
  }
  PyErr_Format(PyExc_SystemError, "unknown value tag %d", v->tag);
  return NULL;
}

PyObject *em_py_from_value(em_value *v) {
  if (v->tag == EM_TAG_TENSOR && v->owned) {
    v->tag = EM_TAG_NONE;
    v->owned = 0;
    return em_py_wrap(v->tensor);
  }
  PyObject *o = em_py_from_value_borrowed(v);
  em_value_clear(v);
  return o;
}

// ---------------------------------------------------------------- Python to values
static bool is_sequence(PyObject *o) { return PyTuple_Check(o) || PyList_Check(o); }
static bool plain_zero_dim(PyObject *o, bool (*dtype_ok)(int)) {
  if (!em_py_is_tensor(o)) return false;
  em_tensor *t = em_py_t(o);
  return t->ndim == 0 && dtype_ok(t->dtype) && !em_tensor_requires_grad(t);
}
static bool any_dtype(int d) { return d >= 0; }
static bool int_dtype(int d) { return em_dtype_class_of(d) == EM_CLASS_INT; }
static bool bool_dtype(int d) { return d == EM_BOOL; }
static bool intlike(PyObject *o) { return em_py_is_int(o) || plain_zero_dim(o, int_dtype); }

static int one_int(PyObject *x, Py_ssize_t i, int64_t *out) {
  if (PyLong_CheckExact(x)) {
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (!overflow) return 0;
    PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    return -1;
  }
  if (intlike(x) || PyIndex_Check(x)) return em_py_to_int64(x, out);
  PyErr_Format(PyExc_TypeError,
               "failed to unpack the object at pos %zd with error \"type must be tuple of ints,but got %s\"", i + 1,
               Py_TYPE(x)->tp_name);
  return -1;
}
int em_py_int_list(PyObject *o, em_py_frame *f, em_ints *out) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  int64_t *p = em_py_frame_alloc(f, (size_t)n * sizeof *p);
  if (p == NULL) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = em_py_list_item(o, i, n);
    int bad = x == NULL ? -1 : one_int(x, i, &p[i]);
    Py_XDECREF(x);
    if (bad) return -1;
  }
  *out = (em_ints){p, n};
  return 0;
}

// A list of ints fits when its first element is one: what follows is checked while it is read, with an error of its
// own.
static int to_ints(PyObject *o, const em_arg *arg, em_py_frame *f, em_value *out) {
  em_ints ints;
  if (is_sequence(o)) {
    if (PySequence_Fast_GET_SIZE(o) > 0 && !intlike(PySequence_Fast_GET_ITEM(o, 0))) return 0;
    if (em_py_int_list(o, f, &ints) < 0) return -1;
  } else if (arg->list_size > 0 && intlike(o)) {
    int64_t v, *p = em_py_frame_alloc(f, (size_t)arg->list_size * sizeof *p);
    if (p == NULL || em_py_to_int64(o, &v) < 0) return -1;
    for (int i = 0; i < arg->list_size; i++) p[i] = v;
    ints = (em_ints){p, arg->list_size};
  } else {
    return 0;
  }
  *out = em_value_ints(ints);
  return 1;
}

static int to_doubles(PyObject *o, const em_arg *arg, em_py_frame *f, em_value *out) {
  bool one = !is_sequence(o);
  if (one && !(arg->list_size > 0 && em_py_is_number(o))) return 0;
  Py_ssize_t n = one ? arg->list_size : PySequence_Fast_GET_SIZE(o);
  double *p = em_py_frame_alloc(f, (size_t)n * sizeof *p);
  if (p == NULL) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = one ? Py_NewRef(o) : em_py_list_item(o, i, n);
    if (x == NULL) return -1;
    bool fits = em_py_is_number(x) || em_py_is_tensor(x);
    em_scalar s = em_scalar_int(0);
    int bad = fits ? em_py_to_scalar(x, &s) : 0;
    Py_DECREF(x);
    if (!fits || bad) return bad;
    p[i] = em_scalar_to_double(s);
  }
  *out = (em_value){.tag = EM_TAG_DOUBLES};
  out->list.doubles = p;
  out->list.n = n;
  return 1;
}

static int to_bools(PyObject *o, em_py_frame *f, em_value *out) {
  if (!is_sequence(o)) return 0;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  uint8_t *p = em_py_frame_alloc(f, (size_t)n);
  if (p == NULL) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = PySequence_Fast_GET_ITEM(o, i);
    if (!PyBool_Check(x)) return 0;
    p[i] = x == Py_True;
  }
  *out = (em_value){.tag = EM_TAG_BOOLS};
  out->list.bools = p;
  out->list.n = n;
  return 1;
}

static int to_scalars(PyObject *o, em_py_frame *f, em_value *out) {
  if (!is_sequence(o)) return 0;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  em_scalar *p = em_py_frame_alloc(f, (size_t)n * sizeof *p);
  if (p == NULL) return -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = em_py_list_item(o, i, n);
    if (x == NULL) return -1;
    bool fits = em_py_is_number(x);
    int bad = fits ? em_py_to_scalar(x, &p[i]) : 0;
    Py_DECREF(x);
    if (!fits || bad) return bad;
  }
  *out = (em_value){.tag = EM_TAG_SCALARS};
  out->list.scalars = p;
  out->list.n = n;
  return 1;
}

static int to_tensors(PyObject *o, bool optional, em_py_frame *f, em_value *out) {
  if (!is_sequence(o)) return 0;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  em_py_held *h = em_py_frame_alloc(f, sizeof *h + (size_t)n * sizeof *h->tensors);
  if (h == NULL) return -1;
  h->next = f->held;
  h->n = 0;
  f->held = h;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *x = PySequence_Fast_GET_ITEM(o, i);
    if (em_py_is_tensor(x)) h->tensors[h->n++] = em_tensor_retain(em_py_t(x));
    else if (optional && x == Py_None) h->tensors[h->n++] = NULL;
    else {
      PyErr_Format(PyExc_TypeError, "expected Tensor as element %zd in argument 0, but got %s", i, Py_TYPE(x)->tp_name);
      return -1;
    }
  }
  *out = em_value_tensors((em_tensors){h->tensors, n});
  return 1;
}

static int to_tensor(PyObject *o, bool numbers, em_py_frame *f, em_value *out) {
  if (EM_LIKELY(em_py_is_tensor(o))) {
    *out = em_value_tensor(em_py_t(o));
    return 1;
  }
  if (!numbers || !em_py_is_number(o)) return 0;
  em_scalar s;
  em_tensor *t = NULL;
  if (em_py_to_scalar(o, &s) < 0) return -1;
  em_status st = em_tensor_wrap_scalar(s, &t);
  if (st != EM_OK) return em_py_raise_int(st);
  *out = em_value_tensor(t);
  return em_py_frame_keep(f, t) < 0 ? -1 : 1;
}

static int to_number(PyObject *o, uint8_t type, em_value *out) {
  em_scalar s;
  bool zero_dim = em_py_is_tensor(o);
  if (zero_dim && !plain_zero_dim(o, type == EM_TYPE_SCALAR || type == EM_TYPE_DOUBLE ? any_dtype
                                     : type == EM_TYPE_BOOL                           ? bool_dtype
                                                                                      : int_dtype))
    return 0;
  switch (type) {
    case EM_TYPE_SCALAR:
      if (!zero_dim && !em_py_is_number(o)) return 0;
      if (em_py_to_scalar(o, &s) < 0) return -1;
      *out = em_value_scalar(s);
      return 1;
    case EM_TYPE_DOUBLE:
      if (!zero_dim && (!em_py_is_number(o) || PyComplex_Check(o))) return 0;
      if (em_py_to_scalar(o, &s) < 0) return -1;
      *out = em_value_double(em_scalar_to_double(s));
      return 1;
    case EM_TYPE_BOOL:
      if (!zero_dim && !PyBool_Check(o) && !numpy_bool(o)) return 0;
      if (em_py_to_scalar(o, &s) < 0) return -1;
      *out = em_value_bool(em_scalar_to_int(s) != 0);
      return 1;
    default: {
      int64_t v;
      if (!zero_dim && !em_py_is_int(o)) return 0;
      if (em_py_to_int64(o, &v) < 0) return -1;
      *out = em_value_int(v);
      return 1;
    }
  }
}

static int to_named(PyObject *o, uint8_t type, em_value *out) {
  *out = em_value_int(0);
  switch (type) {
    case EM_TYPE_DTYPE:
      if (!em_py_is_dtype(o)) return 0;
      out->i = em_py_to_dtype(o);
      out->tag = EM_TAG_DTYPE;
      return 1;
    case EM_TYPE_LAYOUT:
      if (Py_TYPE(o) != &em_py_layout_type) return 0;
      out->tag = EM_TAG_LAYOUT;
      return 1;
    case EM_TYPE_MEMORY_FORMAT:
      if (Py_TYPE(o) != &em_py_memory_format_type) return 0;
      out->i = ((em_py_enum *)o)->value;
      out->tag = EM_TAG_MEMORY_FORMAT;
      return 1;
    case EM_TYPE_DEVICE:
      if (Py_TYPE(o) != &em_py_device_type && !PyUnicode_Check(o) && !em_py_is_int(o)) return 0;
      if (em_py_to_device(o, &out->device) < 0) return -1;
      out->tag = EM_TAG_DEVICE;
      return 1;
    case EM_TYPE_GENERATOR:
      if (!em_py_is_generator(o)) return 0;
      out->generator = em_py_to_generator(o);
      out->tag = EM_TAG_GENERATOR;
      return 1;
    case EM_TYPE_STRING:
      if (!PyUnicode_Check(o)) return 0;
      if ((out->string = PyUnicode_AsUTF8(o)) == NULL) return -1;
      out->tag = EM_TAG_STRING;
      return 1;
    default: return 0;  // names of dimensions: never
  }
}

int em_py_to_value(PyObject *o, const em_arg *arg, bool numbers, em_py_frame *f, em_value *out) {
  if (o == Py_None && (arg->flags & EM_ARG_OPTIONAL)) {
    *out = em_value_none();
    return 1;
  }
  switch (arg->type) {
    case EM_TYPE_TENSOR: return to_tensor(o, numbers, f, out);
    case EM_TYPE_TENSOR_LIST: return to_tensors(o, false, f, out);
    case EM_TYPE_OPT_TENSOR_LIST: return to_tensors(o, true, f, out);
    case EM_TYPE_INT_LIST: return to_ints(o, arg, f, out);
    case EM_TYPE_DOUBLE_LIST: return to_doubles(o, arg, f, out);
    case EM_TYPE_BOOL_LIST: return to_bools(o, f, out);
    case EM_TYPE_SCALAR_LIST: return to_scalars(o, f, out);
    case EM_TYPE_SCALAR:
    case EM_TYPE_INT:
    case EM_TYPE_SYMINT:
    case EM_TYPE_DOUBLE:
    case EM_TYPE_BOOL: return to_number(o, arg->type, out);
    default: return to_named(o, arg->type, out);
  }
}
