// statistics.c: medians and modes of lines. Elements become whole numbers of the same order (nan above all, -0 with 0), so that one
// selection and one sort do for every dtype; equal elements keep the order of their positions.
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

typedef struct pair { int64_t key, at; } pair;
#define NAN_KEY INT64_MAX
#define SLOTS 16  // lines are shared out to so many workers at most, each with room of its own
#define TILE 256

static inline bool before(pair a, pair b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
static inline void swap(pair *a, pair *b) {
  pair t = *a;
  *a = *b;
  *b = t;
}
static inline int64_t key_of(double x) {
  int64_t bits;
  x += 0.0;  // -0 becomes 0
  if (x != x) return NAN_KEY;
  memcpy(&bits, &x, 8);
  return bits < 0 ? (int64_t)((uint64_t)INT64_MIN - (uint64_t)bits) : bits;
}

// Merge sort, bottom up; the result lies in `a`.
static void sort_pairs(pair *a, pair *room, int64_t n) {
  pair *from = a, *to = room;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * run) {
      int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n, i = lo, j = mid;
      for (int64_t k = lo; k < hi; k++) to[k] = i < mid && (j >= hi || !before(from[j], from[i])) ? from[i++] : from[j++];
    }
    pair *t = from;
    from = to;
    to = t;
  }
  if (from != a) memcpy(a, from, (size_t)n * sizeof *a);
}
// The element that sorting would put at k: quickselect, and a sort of what is left if the pivots keep being bad.
static pair select_pair(pair *a, pair *room, int64_t n, int64_t k) {
  int64_t lo = 0, hi = n - 1;
  for (int patience = 128; hi - lo > 16 && patience > 0; patience--) {
    int64_t mid = lo + (hi - lo) / 2;
    if (before(a[mid], a[lo])) swap(&a[mid], &a[lo]);
    if (before(a[hi], a[mid])) swap(&a[hi], &a[mid]);
    if (before(a[mid], a[lo])) swap(&a[mid], &a[lo]);
    pair pivot = a[mid];
    int64_t i = lo, j = hi;
    while (i <= j) {
      while (before(a[i], pivot)) i++;
      while (before(pivot, a[j])) j--;
      if (i <= j) swap(&a[i++], &a[j--]);
    }
    if (k <= j) hi = j;
    else if (k >= i) lo = i;
    else return a[k];
  }
  sort_pairs(a + lo, room, hi - lo + 1);
  return a[k];
}

typedef struct job job;
struct job {
  pair (*choose)(pair *a, pair *room, int64_t n, int64_t nans);
  const em_tensor *self;
  em_tensor *values, *indices;
  char *work;
  int64_t n, stride, lines, slots;  // stride: bytes between a line's elements
  int dim;                          // -1: all elements are one line
};

// Address of a line's first element.
static const char *line_start(const job *j, int64_t line) {
  const em_tensor *t = j->self;
  int64_t at = 0;
  for (int d = t->ndim - 1; d >= 0; d--) {
    if (d == j->dim) continue;
    at += line % t->sizes[d] * t->strides[d];
    line /= t->sizes[d];
  }
  return (const char *)em_tensor_data(t) + at * (int64_t)em_tensor_itemsize(t);
}
// Fills a[] from m elements; returns how many are nan.
static int64_t fill(pair *a, const char *src, int dtype, int64_t stride, int64_t m, int64_t first) {
  int64_t nans = 0;
  union { double f[TILE]; int64_t i[TILE]; } tile;
  const bool real = em_dtype_is_float(dtype);
  for (int64_t done = 0; done < m; done += TILE) {
    const int64_t w = m - done < TILE ? m - done : TILE;
    em_cast_load(&tile, real ? EM_F64 : EM_I64, src + done * stride, dtype, stride, w);
    for (int64_t k = 0; k < w; k++) {
      a[done + k] = (pair){real ? key_of(tile.f[k]) : tile.i[k], first + done + k};
      nans += real && a[done + k].key == NAN_KEY;
    }
  }
  return nans;
}
static int64_t fill_line(const job *j, pair *a, int64_t line) {
  const em_tensor *t = j->self;
  const int64_t item = (int64_t)em_tensor_itemsize(t);
  if (j->dim >= 0 || t->ndim == 0 || em_tensor_is_contiguous(t))
    return fill(a, j->dim >= 0 ? line_start(j, line) : em_tensor_data(t), t->dtype, j->stride, j->n, 0);
  const int64_t last = t->sizes[t->ndim - 1];
  int64_t nans = 0;
  for (int64_t r = 0; r < j->n / last; r++) {
    int64_t at = 0, rest = r;
    for (int d = t->ndim - 2; d >= 0; d--) {
      at += rest % t->sizes[d] * t->strides[d];
      rest /= t->sizes[d];
    }
    nans += fill(a + r * last, (const char *)em_tensor_data(t) + at * item, t->dtype, t->strides[t->ndim - 1] * item, last, r * last);
  }
  return nans;
}
// The element at a position within a line.
static const char *element(const job *j, int64_t line, int64_t at) {
  if (j->dim >= 0) return line_start(j, line) + at * j->stride;
  return line_start(j, at);
}
static em_status lines(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const size_t size = em_tensor_itemsize(j->values);
  for (int64_t slot = begin; slot < end; slot++) {
    pair *a = (pair *)j->work + slot * 2 * j->n, *room = a + j->n;
    for (int64_t line = slot * j->lines / j->slots; line < (slot + 1) * j->lines / j->slots; line++) {
      const int64_t nans = fill_line(j, a, line);
      const pair chosen = j->choose(a, room, j->n, nans);
      memcpy((char *)em_tensor_data(j->values) + (size_t)line * size, element(j, line, chosen.at), size);
      if (j->indices != NULL) ((int64_t *)em_tensor_data(j->indices))[line] = chosen.at;
    }
  }
  return EM_OK;
}
static pair choose_mode(pair *a, pair *room, int64_t n, int64_t nans);
static em_status run(em_plan *p, em_tensor *self, int dim, em_tensor *values, em_tensor *indices,
                     pair (*choose)(pair *, pair *, int64_t, int64_t)) {
  if (values->numel == 0) return EM_OK;
  job j = {.choose = choose, .self = self, .values = values, .indices = indices, .work = p->work, .dim = dim};
  const bool whole = dim < 0 || self->ndim == 0;
  j.n = whole ? self->numel : self->sizes[dim];
  j.stride = (int64_t)em_tensor_itemsize(self) * (whole ? 1 : self->strides[dim]);
  if (whole) j.dim = -1;
  j.lines = values->numel;
  j.slots = p->attr[1];
  if (j.n == 0) {  // the median of nothing
    const double nan = __builtin_nan("");
    em_cast_store(em_tensor_data(values), values->dtype, 0, &nan, EM_F64, 1);
    return EM_OK;
  }
  if (choose == choose_mode)
    EM_NOTE("sorting: %lld line%s of %lld pairs of a key and a position (selecting refused: equal elements are counted)",
            (long long)j.lines,
            EM_NOTE_S(j.lines), (long long)j.n);
  else
    EM_NOTE("selecting: %lld line%s of %lld pairs of a key and a position (sorting refused: one element is wanted)", (long long)j.lines,
            EM_NOTE_S(j.lines), (long long)j.n);
  void *token = em_priv_begin_long(self->numel >= EM_LONG_NUMEL);
  em_status st = em_threads_for(j.slots, 8192 / (j.n * (j.lines / j.slots + 1)) + 1, lines, &j);
  em_priv_end_long(token);
  return st;
}
// What run() needs: SLOTS rooms at most, each for twice n pairs.
em_status em_priv_statistics_plan(em_plan *p, int64_t n, int64_t lines_) {
  p->attr[1] = lines_ < SLOTS ? lines_ : SLOTS;
  if (n > INT64_MAX / (2 * SLOTS * (int64_t)sizeof(pair))) return em_fail(EM_ERR_OOM, "a line of %lld elements is too long", (long long)n);
  p->workspace = (size_t)(p->attr[1] * n * 2) * sizeof(pair);
  return EM_OK;
}

// ---- the choices ------------------------------------------------------------------------------------------------------

static pair first_nan(const pair *a) {
  while (a->key != NAN_KEY) a++;
  return *a;
}
static pair choose_median(pair *a, pair *room, int64_t n, int64_t nans) {
  return nans > 0 ? first_nan(a) : select_pair(a, room, n, (n - 1) / 2);
}
static pair choose_nanmedian(pair *a, pair *room, int64_t n, int64_t nans) {
  return nans == n ? a[0] : select_pair(a, room, n, (n - nans - 1) / 2);
}
// The last position of the least of the most frequent values.
static pair choose_mode(pair *a, pair *room, int64_t n, int64_t nans) {
  (void)nans;
  sort_pairs(a, room, n);
  pair best = a[0];
  int64_t most = 0, start = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i + 1 < n && a[i + 1].key == a[i].key) continue;
    if (i - start + 1 > most) {
      most = i - start + 1;
      best = a[i];
    }
    start = i + 1;
  }
  return best;
}
em_status k_cpu_median(em_plan *p, em_tensor *self, em_tensor *out) { return run(p, self, -1, out, NULL, choose_median); }
em_status k_cpu_nanmedian(em_plan *p, em_tensor *self, em_tensor *out) { return run(p, self, -1, out, NULL, choose_nanmedian); }
em_status k_cpu_median_dim(em_plan *p, em_tensor *self, int64_t dim, bool keepdim, em_tensor *values, em_tensor *indices) {
  (void)dim, (void)keepdim;
  return run(p, self, (int)p->attr[0], values, indices, choose_median);
}
em_status k_cpu_nanmedian_dim(em_plan *p, em_tensor *self, int64_t dim, bool keepdim, em_tensor *values, em_tensor *indices) {
  (void)dim, (void)keepdim;
  return run(p, self, (int)p->attr[0], values, indices, choose_nanmedian);
}
em_status k_cpu_mode(em_plan *p, em_tensor *self, int64_t dim, bool keepdim, em_tensor *values, em_tensor *indices) {
  (void)dim, (void)keepdim;
  return run(p, self, (int)p->attr[0], values, indices, choose_mode);
}
