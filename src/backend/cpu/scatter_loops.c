// scatter_loops.c: reading and writing along one dim at the positions that an index names: gather, scatter, index_select,
// index_add and their kin. One walk serves all: the indexed tensor on one side, a plain one on the other, both taken apart
// into runs along the innermost dim. Runs move elements by size; those that compute are typed. Threads take slabs of a
// dim other than the indexed one, so that no two write the same element and results do not depend on their number.
#include <math.h>
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "../../dispatch/index_along.h"
#include "index_runs.h"

EM_ISA_DECLARE(const em_index_runs, em_priv_index_runs, );
em_index_runs em_priv_index_runs;
__attribute__((constructor)) static void pick(void) { em_priv_index_runs = EM_ISA_PICK(em_priv_index_runs); }

em_index_run_fn em_priv_index_run_of(int op, int dtype) {
  const size_t size = em_dtype_size(dtype);
  if (op <= EM_INDEX_PUT) return em_priv_index_runs.move[op][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4];
  return em_priv_index_runs.compute[op - EM_INDEX_ADD][dtype];
}

// ---- the walk
typedef struct walk {
  int ndim;                     // after merging; the last dim is the run
  int indexed;                  // which of them is the indexed one; -1: it had one place
  int split;                    // which threads share out; -1: none
  int64_t sizes[EM_MAX_DIMS];
  int64_t xs[EM_MAX_DIMS], os[EM_MAX_DIMS], is[EM_MAX_DIMS];  // bytes
  char *x, *o;
  const char *index;
  int index_dtype;
  int64_t step, bound, numel, dim;
  size_t size;
  em_index_run_fn run;          // NULL: only looks whether the positions are inside
  bool gets, checked;
  const char *name;             // in errors of index_copy_
} walk;

static em_status fail_bounds(const walk *w, int64_t v) {
  return em_fail(w->name != NULL ? EM_ERR_INDEX : EM_ERR_RUNTIME,
                 "%sindex %lld is out of bounds for dimension %lld with size %lld",
                 w->name != NULL ? w->name : "", (long long)v, (long long)w->dim, (long long)w->bound);
}
enum { PIECE = 1024 };  // positions looked at together: they stay in the first cache
// n positions from `index`, checked. *at points at them where they are, or in buf.
static em_status positions(const walk *w, const char *index, int64_t stride, int64_t n, int64_t *buf, const int64_t **at) {
  if (w->index_dtype == EM_I64 && stride == 8) {
    *at = (const int64_t *)index;
  } else {
    em_priv_index_runs.widen(buf, index, stride, w->index_dtype != EM_I64, n);
    *at = buf;
  }
  if (w->checked || em_priv_index_runs.inside(*at, n, w->bound - 1)) return EM_OK;
  for (int64_t k = 0; k < n; k++)
    if ((*at)[k] < 0 || (*at)[k] >= w->bound) return fail_bounds(w, (*at)[k]);
  return EM_OK;
}
static em_status one_run(const walk *w, char *x, char *o, const char *index, int64_t n) {
  const int d = w->ndim - 1;
  const int64_t xs = w->xs[d], os = w->os[d], is = w->is[d];
  int64_t buf[PIECE];
  const int64_t *at;
  if (is == 0) {  // one position for the whole run
    EM_PASS(positions(w, index, 0, 1, buf, &at));
    if (w->run != NULL) w->run(x + at[0] * w->step, xs, o, os, NULL, 0, n);
    return EM_OK;
  }
  for (int64_t b = 0; b < n; b += PIECE) {
    const int64_t m = n - b < PIECE ? n - b : PIECE;
    EM_PASS(positions(w, index + b * is, is, m, buf, &at));
    if (w->run != NULL) w->run(x + b * xs, xs, o + b * os, os, at, w->step, m);
  }
  return EM_OK;
}
static em_status slab(void *context, int64_t begin, int64_t end) {
  const walk *w = context;
  int64_t sizes[EM_MAX_DIMS], counter[EM_MAX_DIMS];
  memcpy(sizes, w->sizes, sizeof(int64_t) * (size_t)w->ndim);
  memset(counter, 0, sizeof(int64_t) * (size_t)w->ndim);
  char *x = w->x, *o = w->o;
  const char *index = w->index;
  if (w->split >= 0) {
    sizes[w->split] = end - begin;
    x += begin * w->xs[w->split];
    o += begin * w->os[w->split];
    index += begin * w->is[w->split];
  }
  const int last = w->ndim - 1;
  for (;;) {
    EM_PASS(one_run(w, x, o, index, sizes[last]));
    int d = last - 1;
    for (; d >= 0; d--) {
      x += w->xs[d];
      o += w->os[d];
      index += w->is[d];
      if (++counter[d] < sizes[d]) break;
      x -= w->xs[d] * sizes[d];
      o -= w->os[d] * sizes[d];
      index -= w->is[d] * sizes[d];
      counter[d] = 0;
    }
    if (d < 0) return EM_OK;
  }
}

// One dim less wherever two neighbours can be walked as one.
static void merge_dims(walk *w) {
  int n = 0;
  for (int d = 0; d < w->ndim; d++) {
    if (w->sizes[d] == 1 && d != w->indexed) continue;
    const bool indexed = d == w->indexed;
    if (n > 0 && !indexed && n - 1 != w->indexed && w->xs[n - 1] == w->xs[d] * w->sizes[d] &&
        w->os[n - 1] == w->os[d] * w->sizes[d] && w->is[n - 1] == w->is[d] * w->sizes[d]) {
      w->sizes[n - 1] *= w->sizes[d];
      w->xs[n - 1] = w->xs[d];
      w->os[n - 1] = w->os[d];
      w->is[n - 1] = w->is[d];
      continue;
    }
    w->sizes[n] = w->sizes[d];
    w->xs[n] = w->xs[d];
    w->os[n] = w->os[d];
    w->is[n] = w->is[d];
    if (indexed) w->indexed = n;
    n++;
  }
  if (n == 0) {
    w->sizes[0] = 1;
    w->xs[0] = w->os[0] = w->is[0] = 0;
    n = 1;
  }
  w->ndim = n;
}
static __attribute__((cold)) void note_walk(const walk *w) {
  const int d = w->ndim - 1;
  const char *shares = w->split < 0 ? "no dim has two places" : w->gets ? "a dim of the result" : "a dim that is not the indexed one, "
      "so that no two write one element";
  if (w->run == NULL) {
    em_note_write("check: %lld positions are looked at before anything is read or written", (long long)w->numel);
    return;
  }
  if (w->is[d] == 0)
    em_note_write("whole runs: one position for each run of %lld elements, %s loop (element by element refused: the index does not "
                  "change along "
                  "them); threads share %s", (long long)w->sizes[d], em_priv_note_isa, shares);
  else
    em_note_write("element by element: positions in pieces of %d, %s, %s loop (whole runs refused: each element has a position of its "
                  "own); "
                  "threads share %s", PIECE, w->index_dtype == EM_I64 && w->is[d] == 8 ? "read where they lie" : "widened or gathered "
                  "first",
                  em_priv_note_isa, shares);
}
static em_status run_walk(walk *w) {
  if (w->numel == 0) return EM_OK;
  int64_t most = 1;
  w->split = -1;
  for (int d = 0; d < w->ndim; d++)
    if (w->sizes[d] > most && (w->gets || d != w->indexed)) {
      most = w->sizes[d];
      w->split = d;
    }
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_walk(w);
  const int64_t each = w->numel / most, grain = 32768 / (each > 0 ? each : 1) + 1;
  void *token = em_priv_begin_long(w->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(most, grain, slab, w);
  em_priv_end_long(token);
  return st;
}

// Sizes and byte strides: `sizes` are the positions to visit (the index's, or the plain side's), index strides 0 where it
// is a vector that serves every line.
static void set_walk(walk *w, const em_index_along *a) {
  const int n = a->ndim == 0 ? 1 : a->ndim;
  const int64_t xi = (int64_t)em_tensor_itemsize(a->indexed), ii = (int64_t)em_tensor_itemsize(a->index);
  *w = (walk){.ndim = n, .indexed = (int)a->dim, .x = em_tensor_data(a->indexed), .index = em_tensor_data(a->index),
              .index_dtype = a->index->dtype, .bound = a->indexed->ndim == 0 ? 1 : a->indexed->sizes[a->dim],
              .dim = a->dim, .numel = 1, .size = (size_t)xi, .gets = a->gets, .name = a->name};
  w->o = a->plain != NULL ? em_tensor_data(a->plain) : (char *)(uintptr_t)a->value;
  for (int d = 0; d < n; d++) {
    w->sizes[d] = a->ndim == 0 ? 1 : a->sizes[d];
    w->numel *= w->sizes[d];
    w->xs[d] = a->indexed->ndim == 0 || d == a->dim ? 0 : a->indexed->strides[d] * xi;
    w->os[d] = a->plain == NULL || a->plain->ndim == 0 ? 0 : a->plain->strides[d] * xi;
    if (a->vector) w->is[d] = d == a->dim && a->index->ndim > 0 ? a->index->strides[0] * ii : 0;
    else w->is[d] = a->index->ndim == 0 ? 0 : a->index->strides[d] * ii;
  }
  w->step = a->indexed->ndim == 0 ? 0 : a->indexed->strides[a->dim] * xi;
  merge_dims(w);
}
// An index without elements may have any shape beside the others: it is not to be walked.
em_status em_priv_index_check(const em_index_along *a) {
  walk w;
  if (a->index->numel == 0) return EM_OK;
  if (!a->vector) {
    set_walk(&w, a);
    w.o = w.x;
    memset(w.os, 0, sizeof w.os);
    w.gets = true;
    return run_walk(&w);  // without a run: only looks
  }
  set_walk(&w, a);
  w.ndim = 1;
  w.indexed = 0;
  w.sizes[0] = w.numel = a->index->numel;
  w.is[0] = a->index->ndim == 0 ? 0 : a->index->strides[0] * (int64_t)em_tensor_itemsize(a->index);
  w.gets = true;
  return run_walk(&w);
}
em_status em_priv_index_run(const em_index_along *a, int op) {
  walk w;
  if (a->index->numel == 0) return EM_OK;
  set_walk(&w, a);
  w.checked = a->vector;
  w.run = em_priv_index_run_of(op, a->indexed->dtype);
  return run_walk(&w);
}

// ---- kernels
em_status k_cpu_gather(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, bool sparse_grad, em_tensor *out) {
  (void)dim, (void)sparse_grad;
  em_index_along a = {.indexed = self, .index = index, .plain = out, .dim = p->attr[0], .ndim = index->ndim,
                      .sizes = index->sizes, .gets = true};
  return em_priv_index_run(&a, EM_INDEX_GET);
}
em_status k_cpu_index_select(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *out) {
  (void)dim;
  em_index_along a = {.indexed = self, .index = index, .plain = out, .dim = p->attr[0], .ndim = out->ndim,
                      .sizes = out->sizes, .gets = true, .vector = true};
  em_status st = em_priv_index_check(&a);
  if (st == EM_ERR_RUNTIME) return em_fail(EM_ERR_INDEX, "index out of range in self");
  return st != EM_OK ? st : em_priv_index_run(&a, EM_INDEX_GET);
}
// Positions are looked at piece by piece as the writing goes on: like PyTorch, a failing scatter_ may have written some.
static em_status scatter(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, const void *value, int op, em_tensor *out) {
  em_index_along a = {.indexed = out, .index = index, .plain = src, .value = value, .dim = dim, .ndim = index->ndim,
                      .sizes = index->sizes};
  if (out != self) EM_PASS(em_copy_into(out, self));
  return em_priv_index_run(&a, op);
}
em_status k_cpu_scatter_src(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, em_tensor *out) {
  (void)dim;
  return scatter(self, p->attr[0], index, src, NULL, EM_INDEX_PUT, out);
}
em_status k_cpu_scatter_value(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_scalar value, em_tensor *out) {
  (void)dim;
  _Alignas(16) char element[16];
  EM_PASS(em_scalar_store(value, out->dtype, element));
  return scatter(self, p->attr[0], index, NULL, element, EM_INDEX_PUT, out);
}
em_status k_cpu_scatter_add(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, em_tensor *out) {
  (void)dim;
  return scatter(self, p->attr[0], index, src, NULL, EM_INDEX_ADD, out);
}
em_status k_cpu_scatter_src_reduce(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src,
                                   const char *reduce, em_tensor *out) {
  (void)dim, (void)reduce;
  return scatter(self, p->attr[0], index, src, NULL, (int)p->attr[1], out);
}
em_status k_cpu_scatter_value_reduce(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_scalar value,
                                     const char *reduce, em_tensor *out) {
  (void)dim, (void)reduce;
  _Alignas(16) char element[16];
  EM_PASS(em_scalar_store(value, out->dtype, element));
  return scatter(self, p->attr[0], index, NULL, element, (int)p->attr[1], out);
}

// ---- reductions into chosen places
// What a place starts from when its own value does not count.
static em_status neutral(int op, int dtype, void *element) {
  const bool real = em_dtype_is_float(dtype);
  static const int64_t low[EM_NUM_DTYPES] = {[EM_I8] = INT8_MIN, [EM_I16] = INT16_MIN, [EM_I32] = INT32_MIN, [EM_I64] = INT64_MIN};
  static const int64_t high[EM_NUM_DTYPES] = {[EM_U8] = UINT8_MAX, [EM_I8] = INT8_MAX, [EM_I16] = INT16_MAX,
                                              [EM_I32] = INT32_MAX, [EM_I64] = INT64_MAX, [EM_BOOL] = 1};
  em_scalar s = em_scalar_int(op == EM_INDEX_MUL ? 1 : 0);
  if (op == EM_INDEX_MAX) s = real ? em_scalar_double(-INFINITY) : em_scalar_int(low[dtype]);
  if (op == EM_INDEX_MIN) s = real ? em_scalar_double(INFINITY) : em_scalar_int(high[dtype]);
  return em_scalar_store(s, dtype, element);
}
// A mean is a sum divided by how many values met in each place; one where there were none.
static em_status divide_by_counts(const em_index_along *a, bool include_self) {
  static const int64_t one = 1;
  em_status st = EM_OK;
  em_tensor *out = a->indexed, *count = NULL, *none = NULL, *q = NULL;
  EM_TRY(em_tensor_new(out->ndim, out->sizes, EM_I64, out->device, &count));
  EM_TRY(em_fill(count, em_scalar_int(include_self ? 1 : 0)));
  em_index_along c = *a;
  c.indexed = count;
  c.plain = NULL;
  c.value = &one;
  EM_TRY(em_priv_index_run(&c, EM_INDEX_ADD));
  EM_TRY(em_call_eq_Scalar(count, em_scalar_int(0), &none));
  EM_TRY(em_call_masked_fill__Scalar(count, none, em_scalar_int(1)));
  const bool real = em_dtype_is_differentiable(out->dtype);
  EM_TRY(real ? em_call_div_Tensor(out, count, &q) : em_call_div_Tensor_mode(out, count, "floor", &q));
  EM_TRY(em_copy_into(out, q));
fail:
  em_tensor_release(count);
  em_tensor_release(none);
  em_tensor_release(q);
  return st;
}
static em_status reduce_into(em_index_along *a, em_tensor *self, int64_t what, bool include_self) {
  _Alignas(16) char element[16];
  em_tensor *out = a->indexed, *src = a->plain;
  const int op = what < 0 ? EM_INDEX_ADD : (int)what;
  if (out != self) EM_PASS(em_copy_into(out, self));
  if (a->index->numel == 0) return EM_OK;
  if (!include_self) {
    EM_PASS(neutral(op, out->dtype, element));
    a->plain = NULL;
    a->value = element;
    EM_PASS(em_priv_index_run(a, EM_INDEX_PUT));
    a->plain = src;
  }
  EM_PASS(em_priv_index_run(a, op));
  return what < 0 ? divide_by_counts(a, include_self) : EM_OK;
}
em_status k_cpu_scatter_reduce(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, const char *reduce,
                               bool include_self, em_tensor *out) {
  (void)dim, (void)reduce;
  em_index_along a = {.indexed = out, .index = index, .plain = src, .dim = p->attr[0], .ndim = index->ndim, .sizes = index->sizes};
  EM_PASS(em_priv_index_check(&a));
  return reduce_into(&a, self, p->attr[1], include_self);
}

// ---- whole slices along a dim
static em_status slices(em_plan *p, em_tensor *self, em_tensor *index, em_tensor *src, const void *value, int op, em_tensor *out) {
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < out->ndim; d++) sizes[d] = d == p->attr[0] ? index->numel : out->sizes[d];
  em_index_along a = {.indexed = out, .index = index, .plain = src, .value = value, .dim = p->attr[0], .ndim = out->ndim,
                      .sizes = sizes, .vector = true, .name = op == EM_INDEX_PUT ? "index_copy_(): " : NULL};
  EM_PASS(em_priv_index_check(&a));
  if (out != self) EM_PASS(em_copy_into(out, self));
  return em_priv_index_run(&a, op);
}
em_status k_cpu_index_copy(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, em_tensor *out) {
  (void)dim;
  return slices(p, self, index, source, NULL, EM_INDEX_PUT, out);
}
em_status k_cpu_index_add(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, em_scalar alpha,
                          em_tensor *out) {
  (void)dim;
  if (em_scalar_is_int_one(alpha)) return slices(p, self, index, source, NULL, EM_INDEX_ADD, out);
  em_tensor *scaled;
  _Alignas(16) char element[16];  // alpha in the tensors' dtype: 1.5 is 1 among integers
  EM_PASS(em_scalar_store(alpha, out->dtype, element));
  EM_PASS(em_call_mul_Scalar(source, em_scalar_load(out->dtype, element), &scaled));
  em_status st = slices(p, self, index, scaled, NULL, EM_INDEX_ADD, out);
  em_tensor_release(scaled);
  return st;
}
em_status k_cpu_index_reduce(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source, const char *reduce,
                             bool include_self, em_tensor *out) {
  (void)dim, (void)reduce;
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < out->ndim; d++) sizes[d] = d == p->attr[0] ? index->numel : out->sizes[d];
  em_index_along a = {.indexed = out, .index = index, .plain = source, .dim = p->attr[0], .ndim = out->ndim, .sizes = sizes,
                      .vector = true};
  em_status st = em_priv_index_check(&a);
  if (st == EM_ERR_RUNTIME) return em_fail(EM_ERR_INDEX, "index out of range in self");
  return st != EM_OK ? st : reduce_into(&a, self, p->attr[1], include_self);
}
// Negative positions were wrapped by the caller.
em_status em_priv_index_fill(em_tensor *self, int64_t dim, em_tensor *index, em_scalar value) {
  _Alignas(16) char element[16];
  EM_PASS(em_scalar_store(value, self->dtype, element));
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < self->ndim; d++) sizes[d] = d == dim ? index->numel : self->sizes[d];
  em_index_along a = {.indexed = self, .index = index, .value = element, .dim = dim, .ndim = self->ndim, .sizes = sizes,
                      .vector = true, .name = ""};
  EM_PASS(em_priv_index_check(&a));
  return self->ndim == 0 && index->numel == 0 ? EM_OK : em_priv_index_run(&a, EM_INDEX_PUT);
}
