// triangle_loops.c: tril and triu: each row keeps one piece and is zero elsewhere.
#include <string.h>
#include "../../core/threads.h"
#include "gen_ops.h"

typedef struct triangle {
  const char *src;
  char *dst;
  int64_t size, rows, columns, offset;  // offset between -rows and columns
  const em_tensor *self, *out;
  bool upper, in_place;
} triangle;
static void copy_row(char *dst, int64_t ds, const char *src, int64_t ss, int64_t size, int64_t n) {
  if (ds == size && ss == size) memmove(dst, src, (size_t)(n * size));
  else
    for (int64_t k = 0; k < n; k++) memcpy(dst + k * ds, src + k * ss, (size_t)size);
}
static void clear_row(char *dst, int64_t ds, int64_t size, int64_t n) {
  if (ds == size) memset(dst, 0, (size_t)(n * size));
  else
    for (int64_t k = 0; k < n; k++) memset(dst + k * ds, 0, (size_t)size);
}
static em_status some_rows(void *context, int64_t begin, int64_t end) {
  const triangle *t = context;
  const int nd = t->out->ndim;
  const int64_t *so = t->out->strides, *ss = t->self->strides, dc = so[nd - 1] * t->size, sc = ss[nd - 1] * t->size;
  for (int64_t r = begin; r < end; r++) {
    const int64_t i = r % t->rows;
    int64_t at_out = i * so[nd - 2], at_in = i * ss[nd - 2], batch = r / t->rows;
    for (int d = nd - 3; d >= 0; d--) {
      const int64_t k = batch % t->out->sizes[d];
      batch /= t->out->sizes[d];
      at_out += k * so[d];
      at_in += k * ss[d];
    }
    int64_t edge = i + t->offset + (t->upper ? 0 : 1);  // first column on the other side
    edge = edge < 0 ? 0 : edge > t->columns ? t->columns : edge;
    const int64_t keep = t->upper ? edge : 0, kept = t->upper ? t->columns - edge : edge;
    const int64_t clear = t->upper ? 0 : edge, cleared = t->columns - kept;
    char *dst = t->dst + at_out * t->size;
    const char *src = t->src + at_in * t->size;
    if (!t->in_place) copy_row(dst + keep * dc, dc, src + keep * sc, sc, t->size, kept);
    clear_row(dst + clear * dc, dc, t->size, cleared);
  }
  return EM_OK;
}
static em_status run(em_tensor *self, int64_t diagonal, bool upper, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  const int64_t rows = out->sizes[out->ndim - 2], columns = out->sizes[out->ndim - 1];
  diagonal = diagonal < -rows - 1 ? -rows - 1 : diagonal > columns + 1 ? columns + 1 : diagonal;
  triangle t = {em_tensor_data(self), em_tensor_data(out), (int64_t)em_tensor_itemsize(out), rows, columns, diagonal,
                self, out, upper, out == self};
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(out->numel / columns, EM_LONG_NUMEL / columns + 1, some_rows, &t);
  em_priv_end_long(token);
  return st;
}
em_status k_cpu_tril(em_plan *p, em_tensor *self, int64_t diagonal, em_tensor *out) {
  (void)p;
  return run(self, diagonal, false, out);
}
em_status k_cpu_triu(em_plan *p, em_tensor *self, int64_t diagonal, em_tensor *out) {
  (void)p;
  return run(self, diagonal, true, out);
}
