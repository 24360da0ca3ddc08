// join_loops.c: cat and stack: tensors side by side along a dim. Dense ones of the result's dtype are rows of bytes laid in turn.
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

static bool skipped(const em_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

// Row o of the result is row o of each tensor, one after another.
typedef struct rows {
  em_tensors from;
  em_tensor *out;
  int64_t dim, inner;  // inner: bytes of one step along dim
  bool stacked;        // dim is the result's alone
} rows;
static em_status some_rows(void *context, int64_t begin, int64_t end) {
  const rows *w = context;
  char *to = (char *)em_tensor_data(w->out) + begin * w->out->sizes[w->dim] * w->inner;
  for (int64_t o = begin; o < end; o++)
    for (int64_t i = 0; i < w->from.n; i++) {
      const em_tensor *t = w->from.p[i];
      if (!w->stacked && skipped(t)) continue;
      const int64_t size = w->stacked ? w->inner : t->sizes[w->dim] * w->inner,
                    stride = w->dim > 0 ? t->strides[w->dim - 1] * (int64_t)em_tensor_itemsize(t) : 0;
      const char *src = em_tensor_data(t);
      if (size > 0) memcpy(to, src + o * stride, (size_t)size);
      to += size;
    }
  return EM_OK;
}
// Whether t's rows, cut before dim, are dense and evenly spaced (a narrowed tensor's are).
static bool has_rows(const em_tensor *t, int64_t dim) {
  int64_t dense = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    if (d >= dim) {
      if (t->sizes[d] > 1 && t->strides[d] != dense) return false;
      dense *= t->sizes[d];
    } else if (d < dim - 1 && t->sizes[d] > 1 && t->strides[d] != t->strides[d + 1] * t->sizes[d + 1]) {
      return false;
    }
  }
  return true;
}
static bool in_rows(em_tensors tensors, int64_t dim, const em_tensor *out, bool stacked) {
  if (!em_tensor_is_contiguous(out)) return false;
  for (int64_t i = 0; i < tensors.n; i++) {
    const em_tensor *t = tensors.p[i];
    if ((stacked || !skipped(t)) && (t->dtype != out->dtype || !has_rows(t, dim))) return false;
  }
  return true;
}
static __attribute__((cold)) const char *why_no_rows(em_tensors tensors, const em_tensor *out) {
  for (int64_t i = 0; i < tensors.n; i++)
    if (!skipped(tensors.p[i]) && tensors.p[i]->dtype != out->dtype) return "dtypes differ";
  return "rows of a tensor, or of the result, are not dense";
}
static int64_t before(const em_tensor *out, int64_t dim) {
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; d++) outer *= out->sizes[d];
  return outer;
}
static em_status lay(rows *w, int64_t outer) {
  void *token = em_priv_begin_long(w->out->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(outer, EM_LONG_NUMEL / (w->out->numel / outer) + 1, some_rows, w);
  em_priv_end_long(token);
  return st;
}
static int64_t step_bytes(const em_tensor *out, int64_t dim) {
  int64_t bytes = (int64_t)em_tensor_itemsize(out);
  for (int64_t d = dim + 1; d < out->ndim; d++) bytes *= out->sizes[d];
  return bytes;
}
em_status k_cpu_stack(em_plan *p, em_tensors tensors, int64_t dim, em_tensor *out) {
  dim = p->attr[0];
  const int64_t outer = before(out, dim), inner = step_bytes(out, dim);
  // Steps of a few bytes are not worth a call each, where there are many.
  if (out->numel > 0 && (outer == 1 ? out->numel < EM_LONG_NUMEL : inner >= 32 || out->numel < 4096) &&
      in_rows(tensors, dim, out, true)) {
    rows w = {tensors, out, dim, inner, true};
    EM_NOTE("rows: %lld tensors laid side by side by memcpy, %lld bytes a step", (long long)tensors.n, (long long)inner);
    return lay(&w, outer);
  }
  if (out->numel > 0) EM_NOTE("windows: each of %lld tensors is copied to its place", (long long)tensors.n);
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  for (int i = 0, k = 0; i < out->ndim; i++) {
    if (i == dim) continue;
    sizes[k] = out->sizes[i];
    strides[k++] = out->strides[i];
  }
  for (int64_t i = 0; i < tensors.n; i++) {
    em_tensor *window;
    EM_PASS(em_tensor_new_window(out->storage, out->ndim - 1, sizes, strides, out->offset + i * out->strides[dim],
                                 out->dtype, &window));
    em_status st = em_copy_into(window, tensors.p[i]);
    em_tensor_release(window);
    EM_PASS(st);
  }
  return EM_OK;
}
em_status k_cpu_cat(em_plan *p, em_tensors tensors, int64_t dim, em_tensor *out) {
  dim = p->attr[0];
  const int64_t outer = before(out, dim);
  const bool rowwise = in_rows(tensors, dim, out, false);
  if (out->numel > 0 && (outer > 1 || out->numel < EM_LONG_NUMEL) && rowwise) {
    rows w = {tensors, out, dim, step_bytes(out, dim), false};
    EM_NOTE("rows: %lld tensors, %lld rows of bytes laid side by side by memcpy (copies into windows refused: all are dense, of one dtype)",
            (long long)tensors.n, (long long)outer);
    return lay(&w, outer);
  }
  if (out->numel > 0)
    EM_NOTE("windows: each of %lld tensors is copied to its place (rows refused: %s)", (long long)tensors.n,
            rowwise ? "one long row: a copy can be shared by threads" : why_no_rows(tensors, out));
  int64_t at = out->offset, sizes[EM_MAX_DIMS];
  for (int64_t i = 0; i < tensors.n; i++) {
    em_tensor *t = tensors.p[i], *window;
    if (skipped(t) || t->numel == 0) continue;
    memcpy(sizes, out->sizes, sizeof(int64_t) * out->ndim);
    sizes[dim] = t->sizes[dim];
    EM_PASS(em_tensor_new_window(out->storage, out->ndim, sizes, out->strides, at, out->dtype, &window));
    em_status st = em_copy_into(window, t);
    em_tensor_release(window);
    EM_PASS(st);
    at += t->sizes[dim] * out->strides[dim];
  }
  return EM_OK;
}
