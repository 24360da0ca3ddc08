// fall_py.c: the recorder under ember.fall. Two boxed fallbacks see every operator that the thread calls: at the Tracer key, above
// all layers, and at the Capture key, below autograd. The first tells a Python function about each call when it is over; what
// telling costs is measured and taken out of all times. Calls that the function makes are not recorded.
#include "bridge.h"
#include <pthread.h>
#include <stdatomic.h>
#include "dispatch/boxing.h"
#include "dispatch/log.h"
#include "dispatch/profile.h"
#include "fast.h"
#include "gen_ops.h"

enum { NOTES = 1536 };
typedef struct frame {
  struct frame *above;
  char notes[NOTES]; // of the kernel, core/note.h; of parts their own
  int64_t kernel;    // nanoseconds below autograd, parts of composites included
  int64_t children;  // nanoseconds of the calls within
} frame;
static struct {
  bool active, busy;
  pthread_t owner;
  PyObject *tell;
  frame *top;
  int depth;
  int64_t overhead;  // nanoseconds of telling so far
  _Atomic int64_t elsewhere;  // calls of other threads, which are only counted
} fall;

static bool ours(void) { return fall.active && !fall.busy && pthread_equal(fall.owner, pthread_self()); }
// A child (a DataLoader's worker) has nobody to tell: its calls pass by.
static void in_child(void) {
  if (!fall.active) return;
  fall.active = false;
  em_note_into(NULL, 0);
  em_priv_global_include &= ~(EM_KEYBIT(EM_KEY_Tracer) | EM_KEYBIT(EM_KEY_Capture));
}

// ---------------------------------------------------------------- small blocks
typedef struct blocks { uint32_t count[EM_SMALL_CLASSES]; } blocks;
static void count_blocks(blocks *b) {
  const em_magazines *m = em_priv_tls.magazines;
  for (int i = 0; i < EM_SMALL_CLASSES; i++) b->count[i] = m == NULL ? 0 : m->list[i].count;
}
// Blocks that left this thread's magazines, less those that came back.
static PyObject *blocks_taken(const blocks *before, const blocks *after) {
  long long n = 0, bytes = 0;
  for (int i = 0; i < EM_SMALL_CLASSES; i++) {
    if (after->count[i] >= before->count[i]) continue;
    n += before->count[i] - after->count[i];
    bytes += 16ll * i * (before->count[i] - after->count[i]);
  }
  return Py_BuildValue("(LL)", n, bytes);
}

// ---------------------------------------------------------------- telling
static PyObject *argument_keys(const em_operator *op, const em_value *args) {
  PyObject *l = PyTuple_New(op->nargs);
  for (int i = 0; l != NULL && i < op->nargs; i++) {
    uint64_t keys = 0;
    if (args[i].tag == EM_TAG_TENSOR && args[i].tensor != NULL) keys = args[i].tensor->keys;
    for (int64_t k = 0; args[i].tag == EM_TAG_TENSORS && k < args[i].list.n; k++)
      if (args[i].list.tensors[k] != NULL) keys |= args[i].list.tensors[k]->keys;
    PyTuple_SET_ITEM(l, i, PyLong_FromUnsignedLongLong(keys));
  }
  return l;
}
static PyObject *values_tuple(const em_value *v, int n) {
  PyObject *t = PyTuple_New(n);
  for (int i = 0; t != NULL && i < n; i++) {
    PyObject *o = em_py_from_value_borrowed(&v[i]);
    if (o == NULL) Py_CLEAR(t);
    else PyTuple_SET_ITEM(t, i, o);
  }
  return t;
}
static PyObject *slot_names(const em_operator *op) {
  PyObject *l = PyTuple_New(EM_NUM_KEYS);
  for (int i = 0; l != NULL && i < EM_NUM_KEYS; i++)
    PyTuple_SET_ITEM(l, i, op->mask & EM_KEYBIT(i) ? PyUnicode_FromString(op->slots[i].name != NULL ? op->slots[i].name : "boxed")
                                                   : Py_NewRef(Py_None));
  return l;
}
static PyObject *how_it_came(const em_operator *op) {  // (name, index, count, refused), "fast", "direct"
  em_py_parse_trace *t = &em_priv_py_parse_trace;
  if (t->fresh) {
    t->fresh = false;
    return Py_BuildValue("(siis)", t->name, t->tried, t->count, t->refused);
  }
  return PyUnicode_FromString(em_py_fast_kind(op) != EM_FAST_NONE ? "fast" : "direct");
}

typedef struct call {
  const em_operator *op;
  uint64_t ks, include, exclude;
  int64_t begin, end;
  PyObject *keys, *came, *node;  // owned
  blocks before, after;
  em_alloc_stats stats, later;
} call;
static PyObject *describe(const call *c, const frame *f, int64_t total) {
  PyObject *taken = blocks_taken(&c->before, &c->after), *slots = slot_names(c->op);
  PyObject *d = taken == NULL || slots == NULL
                    ? NULL
                    : Py_BuildValue("{sisKsKsKsKsLsLsLsOsOsOsLsLsLsLsOsOsssi}", "depth", fall.depth, "keys", (unsigned long long)c->ks,
                                    "include", (unsigned long long)(c->include | em_priv_global_include), "exclude",
                                    (unsigned long long)c->exclude, "mask", (unsigned long long)c->op->mask, "total", (long long)total,
                                    "kernel", (long long)f->kernel, "children", (long long)f->children, "argument_keys", c->keys, "came",
                                    c->came, "node", c->node, "requests", (long long)(c->later.requests - c->stats.requests), "reused",
                                    (long long)(c->later.reused - c->stats.reused), "from_system",
                                    (long long)(c->later.from_system - c->stats.from_system), "live",
                                    (long long)(c->later.bytes_live - c->stats.bytes_live), "small", taken, "slots", slots, "notes",
                                    f->notes, "flags", (int)c->op->flags);
  Py_XDECREF(taken);
  Py_XDECREF(slots);
  return d;
}
static void tell(const call *c, const frame *f, int64_t total, em_status st, const em_value *args, const em_value *rets) {
  PyObject *type, *value, *traceback;  // of a failing call, kept for its caller
  PyErr_Fetch(&type, &value, &traceback);
  fall.busy = true;
  PyObject *info = describe(c, f, total), *op = em_py_operator_object(c->op), *in = NULL, *out = NULL, *r = NULL;
  if (st == EM_OK) {
    in = values_tuple(args, c->op->nargs);
    out = values_tuple(rets, c->op->nrets);
  } else {  // no operator may run: the error's record is the caller's
    in = Py_NewRef(Py_None);
    out = PyUnicode_FromString(st == EM_ERR_FOREIGN ? "a Python exception" : em_error_message());
  }
  if (info != NULL && op != NULL && in != NULL && out != NULL) r = PyObject_CallFunctionObjArgs(fall.tell, op, in, out, info, NULL);
  if (r == NULL) PyErr_WriteUnraisable(fall.tell);
  Py_XDECREF(info);
  Py_XDECREF(op);
  Py_XDECREF(in);
  Py_XDECREF(out);
  Py_XDECREF(r);
  fall.busy = false;
  PyErr_Restore(type, value, traceback);
}

// ---------------------------------------------------------------- the two layers
static em_status above_all(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)context;
  const uint64_t below = ks & EM_KEYS_BELOW(EM_KEY_Tracer);
  if (!ours()) {
    if (fall.active && !pthread_equal(fall.owner, pthread_self())) atomic_fetch_add_explicit(&fall.elsewhere, 1, memory_order_relaxed);
    return em_redispatch_boxed(op, below, args, rets);
  }
  const int64_t arrived = em_profile_now();
  PyGILState_STATE gil = PyGILState_Ensure();
  frame f = {.above = fall.top};
  call c = {.op = op, .ks = below, .include = em_priv_tls.include, .exclude = em_priv_tls.exclude};
  em_node *node = em_engine_current_node();
  c.keys = argument_keys(op, args);
  c.came = fall.depth == 0 && node == NULL ? how_it_came(op) : Py_NewRef(Py_None);
  c.node = node == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(node->cls->name);
  fall.top = &f;
  fall.depth++;
  em_note_into(f.notes, NOTES);
  em_alloc_get_stats(&c.stats);
  count_blocks(&c.before);
  c.begin = em_profile_now();
  const int64_t overhead = fall.overhead += c.begin - arrived;
  em_status st = em_redispatch_boxed(op, below, args, rets);
  c.end = em_profile_now();
  count_blocks(&c.after);
  em_alloc_get_stats(&c.later);
  em_note_into(NULL, 0);  // telling is not told
  const int64_t total = c.end - c.begin - (fall.overhead - overhead);
  fall.depth--;
  fall.top = f.above;
  if (f.above != NULL) f.above->children += total;
  em_priv_py_parse_trace.fresh = false;
  if (fall.active && c.keys != NULL && c.came != NULL && c.node != NULL) tell(&c, &f, total, st, args, rets);
  Py_XDECREF(c.keys);
  Py_XDECREF(c.came);
  Py_XDECREF(c.node);
  if (fall.active && f.above != NULL) em_note_into(f.above->notes, NOTES);
  PyGILState_Release(gil);
  fall.overhead += em_profile_now() - c.end;
  return st;
}
static em_status below_autograd(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)context;
  const uint64_t below = ks & EM_KEYS_BELOW(EM_KEY_Capture);
  if (!ours() || fall.top == NULL) return em_redispatch_boxed(op, below, args, rets);
  frame *f = fall.top;
  const int64_t overhead = fall.overhead, begin = em_profile_now();
  em_status st = em_redispatch_boxed(op, below, args, rets);
  f->kernel += em_profile_now() - begin - (fall.overhead - overhead);
  return st;
}

// ---------------------------------------------------------------- Python's side
static void switch_off(void) {
  fall.active = false;
  em_priv_py_parse_trace.wanted = em_priv_py_parse_trace.fresh = false;
  em_note_into(NULL, 0);
  em_priv_global_include &= ~(EM_KEYBIT(EM_KEY_Tracer) | EM_KEYBIT(EM_KEY_Capture));
  (void)em_dispatch_set_fallback(EM_KEY_Tracer, NULL, NULL, NULL, NULL);
  (void)em_dispatch_set_fallback(EM_KEY_Capture, NULL, NULL, NULL, NULL);
  (void)em_log_from_environment();  // EMBER_LOG's layers were there before
}
static PyObject *start(PyObject *Py_UNUSED(m), PyObject *function) {
  if (fall.active) {
    PyErr_SetString(PyExc_RuntimeError, "ember.fall: a recording is running");
    return NULL;
  }
  em_status st = em_dispatch_set_fallback(EM_KEY_Tracer, above_all, NULL, NULL, "fall");
  if (st == EM_OK) st = em_dispatch_set_fallback(EM_KEY_Capture, below_autograd, NULL, NULL, "fall");
  if (st != EM_OK) {
    switch_off();
    return em_py_raise(st);
  }
  Py_XSETREF(fall.tell, Py_NewRef(function));
  fall.owner = pthread_self();
  fall.top = NULL;
  fall.depth = 0;
  fall.busy = false;
  fall.overhead = 0;
  atomic_store(&fall.elsewhere, 0);
  em_priv_py_parse_trace.wanted = true;
  em_priv_py_parse_trace.fresh = false;
  em_priv_global_include |= EM_KEYBIT(EM_KEY_Tracer) | EM_KEYBIT(EM_KEY_Capture);
  fall.active = true;
  Py_RETURN_NONE;
}
static PyObject *stop(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  if (fall.active) switch_off();
  Py_CLEAR(fall.tell);
  return Py_BuildValue("(LL)", (long long)fall.overhead, (long long)atomic_load(&fall.elsewhere));
}
static PyObject *keys(PyObject *Py_UNUSED(m), PyObject *Py_UNUSED(none)) {
  static const char *const names[] = EM_KEY_NAMES;
  PyObject *t = PyTuple_New(EM_NUM_KEYS);
  for (int i = 0; t != NULL && i < EM_NUM_KEYS; i++) PyTuple_SET_ITEM(t, i, PyUnicode_FromString(names[i]));
  return t;
}
// Nanoseconds of one a + b from C: through the dispatcher, and of the kernel's entry alone.
static PyObject *fixed_cost(PyObject *Py_UNUSED(m), PyObject *args) {
  PyObject *a, *b;
  int n;
  if (!PyArg_ParseTuple(args, "OOi:_fall_fixed_cost", &a, &b, &n)) return NULL;
  if (!em_py_is_tensor(a) || !em_py_is_tensor(b) || n < 1) {
    PyErr_SetString(PyExc_TypeError, "_fall_fixed_cost wants two tensors and how often");
    return NULL;
  }
  em_status st = EM_OK;
  int64_t t0 = em_profile_now();
  for (int i = 0; i < n && st == EM_OK; i++) {
    em_tensor *out = NULL;
    st = em_call_add_Tensor(em_py_t(a), em_py_t(b), em_scalar_int(1), &out);
    if (st == EM_OK) em_tensor_release(out);
  }
  int64_t t1 = em_profile_now();
  const uint64_t backend = EM_KEYBIT(EM_KEY_CPU);
  for (int i = 0; i < n && st == EM_OK; i++) {
    em_tensor *out = NULL;
    st = em_redispatch_add_Tensor(backend, em_py_t(a), em_py_t(b), em_scalar_int(1), &out);
    if (st == EM_OK) em_tensor_release(out);
  }
  int64_t t2 = em_profile_now();
  if (st != EM_OK) return em_py_raise(st);
  return Py_BuildValue("(dd)", (double)(t1 - t0) / n, (double)(t2 - t1) / n);
}

static PyMethodDef functions[] = {
    {"_fall_start", start, METH_O, "_fall_start(tell): tell(operator, arguments, results, facts) after each call of this thread."},
    {"_fall_stop", stop, METH_NOARGS, "Ends it; nanoseconds that telling took, and how many calls other threads made."},
    {"_fall_keys", keys, METH_NOARGS, "Names of the dispatch keys by bit."},
    {"_fall_fixed_cost", fixed_cost, METH_VARARGS, "_fall_fixed_cost(a, b, n): ns of a + b through the dispatcher, and of the kernel."},
    {NULL}};

int em_py_fall_init(PyObject *module) {
  static bool watched;
  if (!watched && pthread_atfork(NULL, NULL, in_child) == 0) watched = true;
  return PyModule_AddFunctions(module, functions);
}
