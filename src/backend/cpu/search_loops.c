// search_loops.c: searchsorted and isin (the searches are in search_runs.c), groups of equal neighbours, the order of rows.
#include <math.h>
#include <string.h>
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "../../dispatch/sort_plan.h"
#include "gen_ops.h"
#include "search_runs.h"

#define ID(v) (v)
EM_ISA_DECLARE(const em_searches, em_priv_searches, [EM_NUM_DTYPES]);
static const em_searches *table;
__attribute__((constructor)) static void pick(void) { table = EM_ISA_PICK(em_priv_searches); }

typedef struct search {
  const em_searches *fn;
  const char *seq, *values;
  int64_t n, size, row, step;  // n: of a sequence; row: values a sequence serves; step: bytes from one sequence to the next
  bool right;
  em_tensor *out;
} search;
enum { PIECE = 512 };
static em_status search_range(void *context, int64_t begin, int64_t end) {
  const search *s = context;
  int64_t found[PIECE];
  while (begin < end) {
    const int64_t line = s->row > 0 ? begin / s->row : 0, left = (line + 1) * s->row - begin;
    int64_t m = end - begin < PIECE ? end - begin : PIECE;
    if (m > left) m = left;
    s->fn->search(s->seq + line * s->step, s->n, s->values + begin * s->size, m, s->right, found);
    em_tensor_put(s->out, begin, found, EM_I64, m);
    begin += m;
  }
  return EM_OK;
}
// A dense copy in the dtype that both sides are compared in.
static em_status dense_in(em_tensor *t, int dtype, em_tensor **out) {
  em_tensor *cast;
  EM_PASS(em_call_to_dtype(t, dtype, false, false, EM_FORMAT_NONE, &cast));
  em_status st = em_call_contiguous(cast, EM_FORMAT_CONTIGUOUS, out);
  em_tensor_release(cast);
  return st;
}
static em_status sorted_by(em_tensor *seq, em_tensor *sorter, em_tensor **out) {
  const int64_t n = seq->sizes[seq->ndim - 1];
  em_tensor *dense;
  EM_PASS(em_call_contiguous(sorter, EM_FORMAT_CONTIGUOUS, &dense));
  const int64_t *at = em_tensor_data(dense);
  bool inside = true;
  for (int64_t i = 0; i < dense->numel; i++) inside &= at[i] >= 0 && at[i] < n;
  em_status st = inside ? em_call_gather(seq, -1, dense, false, out)
                        : em_fail(EM_ERR_RUNTIME, "torch.searchsorted(): sorter index out of range");
  em_tensor_release(dense);
  return st;
}
em_status k_cpu_searchsorted(em_plan *p, em_tensor *seq, em_tensor *self, bool out_int32, bool right, const char *side,
                             em_tensor *sorter, em_tensor *out) {
  (void)out_int32, (void)right, (void)side;
  em_status st = EM_OK;
  em_tensor *ordered = NULL, *s = NULL, *v = NULL, *whole = NULL;
  if (sorter != NULL) EM_TRY(sorted_by(seq, sorter, &ordered));
  if (self->numel == 0) goto fail;
  EM_TRY(dense_in(ordered != NULL ? ordered : seq, (int)p->attr[0], &s));
  EM_TRY(dense_in(self, (int)p->attr[0], &v));
  if (em_tensor_is_contiguous(out)) whole = em_tensor_retain(out);
  else EM_TRY(em_tensor_new(out->ndim, out->sizes, out->dtype, out->device, &whole));
  const int64_t n = s->sizes[s->ndim - 1], size = (int64_t)em_tensor_itemsize(s);
  search job = {.fn = &table[p->attr[0]], .seq = em_tensor_data(s), .values = em_tensor_data(v), .n = n, .size = size,
                .row = s->ndim == 1 ? v->numel : v->sizes[v->ndim - 1], .step = s->ndim == 1 ? 0 : n * size,
                .right = p->attr[1] != 0, .out = whole};
  EM_NOTE("bisection: %lld values in %s of %lld, %s loop", (long long)v->numel, s->ndim == 1 ? "one sorted row" : "sorted rows",
          (long long)n,
          em_priv_note_isa);
  void *token = em_priv_begin_long(v->numel > EM_LONG_NUMEL / 8);
  st = em_threads_for(v->numel, 4096, search_range, &job);
  em_priv_end_long(token);
  if (st == EM_OK && whole != out) st = em_copy_into(out, whole);
fail:
  em_tensor_release(ordered);
  em_tensor_release(s);
  em_tensor_release(v);
  em_tensor_release(whole);
  return st;
}

typedef struct membership { const em_searches *fn; const char *seq, *values; uint8_t *out; int64_t n, size; bool invert; } membership;
static em_status isin_range(void *context, int64_t begin, int64_t end) {
  const membership *m = context;
  m->fn->isin(m->seq, m->n, m->values + begin * m->size, end - begin, m->invert, m->out + begin);
  return EM_OK;
}
em_status em_priv_isin(em_tensor *elements, em_tensor *sorted, bool invert, em_tensor *out) {
  membership m = {&table[elements->dtype], em_tensor_data(sorted), em_tensor_data(elements), em_tensor_data(out), sorted->numel,
                  (int64_t)em_tensor_itemsize(elements), invert};
  void *token = em_priv_begin_long(elements->numel > EM_LONG_NUMEL / 8);
  em_status st = em_threads_for(elements->numel, 4096, isin_range, &m);
  em_priv_end_long(token);
  return st;
}

// ---- groups of equal neighbours: values, or rows of `width` of them. A nan equals nothing.
#define STARTS(T, LOAD)                                                                            \
  do {                                                                                             \
    const T *v = em_tensor_data(values);                                                           \
    for (int64_t i = 1; i < n; i++) {                                                              \
      int differs = 0;                                                                             \
      for (int64_t k = 0; k < width && !differs; k++)                                              \
        differs = !(LOAD(v[i * width + k]) == LOAD(v[(i - 1) * width + k]));                       \
      s[i] = (uint8_t)differs;                                                                     \
    }                                                                                              \
  } while (0)
void em_priv_group_starts(em_tensor *values, int64_t width, em_tensor *starts) {
  const int64_t n = starts->numel;
  uint8_t *s = em_tensor_data(starts);
  if (n == 0) return;
  s[0] = 1;
  switch (values->dtype) {
    case EM_F32: STARTS(float, ID); break;
    case EM_F64: STARTS(double, ID); break;
    case EM_F16: STARTS(uint16_t, em_f16_to_f32); break;
    case EM_BF16: STARTS(uint16_t, em_bf16_to_f32); break;
    case EM_I64: STARTS(int64_t, ID); break;
    case EM_I32: STARTS(int32_t, ID); break;
    case EM_I16: STARTS(int16_t, ID); break;
    default: STARTS(uint8_t, ID); break;
  }
}
void em_priv_group_numbers(em_tensor *starts, em_tensor *order, em_tensor *inverse, em_tensor *counts) {
  const uint8_t *s = em_tensor_data(starts);
  const int64_t n = starts->numel, *at = order == NULL ? NULL : em_tensor_data(order);
  int64_t *to = inverse == NULL ? NULL : em_tensor_data(inverse), *c = counts == NULL ? NULL : em_tensor_data(counts);
  int64_t group = -1, begin = 0;
  for (int64_t i = 0; i < n; i++) {
    if (s[i]) {
      if (c != NULL && group >= 0) c[group] = i - begin;
      begin = i;
      group++;
    }
    if (to != NULL) to[at == NULL ? i : at[i]] = group;
  }
  if (c != NULL && group >= 0) c[group] = n - begin;
}

// ---- rows in order: a merge sort of their numbers
#define COMPARE(N, T, C, LOAD)                                                  \
  static int compare_##N(const char *a, const char *b, int64_t width) {         \
    for (int64_t k = 0; k < width; k++) {                                       \
      const C x = LOAD(((const T *)a)[k]), y = LOAD(((const T *)b)[k]);         \
      if (x < y || (y != y && x == x)) return -1; /* nan comes last */          \
      if (y < x || (x != x && y == y)) return 1;                                \
    }                                                                           \
    return 0;                                                                   \
  }
COMPARE(u8, uint8_t, uint8_t, ID)
COMPARE(i8, int8_t, int8_t, ID)
COMPARE(i16, int16_t, int16_t, ID)
COMPARE(i32, int32_t, int32_t, ID)
COMPARE(i64, int64_t, int64_t, ID)
COMPARE(f16, uint16_t, float, em_f16_to_f32)
COMPARE(bf16, uint16_t, float, em_bf16_to_f32)
COMPARE(f32, float, float, ID)
COMPARE(f64, double, double, ID)
void em_priv_order_rows(em_tensor *rows, int64_t width, em_tensor *order, em_tensor *room) {
  typedef int (*compare)(const char *a, const char *b, int64_t width);
  static const compare by_dtype[EM_NUM_DTYPES] = {
      [EM_BOOL] = compare_u8, [EM_U8] = compare_u8, [EM_I8] = compare_i8, [EM_I16] = compare_i16, [EM_I32] = compare_i32,
      [EM_I64] = compare_i64, [EM_F16] = compare_f16, [EM_BF16] = compare_bf16, [EM_F32] = compare_f32, [EM_F64] = compare_f64};
  const compare cmp = by_dtype[rows->dtype];
  const int64_t n = order->numel, size = width * (int64_t)em_tensor_itemsize(rows);
  const char *data = em_tensor_data(rows);
  int64_t *a = em_tensor_data(order), *b = em_tensor_data(room);
  for (int64_t i = 0; i < n; i++) a[i] = i;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * run) {
      const int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
      int64_t i = lo, j = mid, k = lo;
      while (i < mid && j < hi) b[k++] = cmp(data + a[j] * size, data + a[i] * size, width) < 0 ? a[j++] : a[i++];
      while (i < mid) b[k++] = a[i++];
      while (j < hi) b[k++] = a[j++];
    }
    int64_t *t = a;
    a = b;
    b = t;
  }
  if (a != em_tensor_data(order)) memcpy(em_tensor_data(order), a, sizeof(int64_t) * (size_t)n);
}
