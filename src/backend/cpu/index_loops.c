// index_loops.c: self[tensors]: moving elements by offset tables; nonzero and masks; rows of embedding tables. What runs along
// one dim is in scatter_loops.c.
#include <string.h>
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "../../dispatch/index_plan.h"
#include "gen_ops.h"
#include "index_runs.h"

// --- walking a window in row-major order
typedef struct walk {
  int ndim;
  const int64_t *sizes, *strides;
  int64_t counter[EM_MAX_DIMS], at;  // at: elements from the window's first
} walk;
static void walk_start(walk *w, int ndim, const int64_t *sizes, const int64_t *strides) {
  w->ndim = ndim;
  w->sizes = sizes;
  w->strides = strides;
  w->at = 0;
  memset(w->counter, 0, sizeof(int64_t) * (size_t)ndim);
}
static inline void walk_next(walk *w) {
  for (int d = w->ndim - 1; d >= 0; d--) {
    w->at += w->strides[d];
    if (++w->counter[d] < w->sizes[d]) return;
    w->at -= w->strides[d] * w->sizes[d];
    w->counter[d] = 0;
  }
}
static inline void move(char *dst, const char *src, size_t size) {
  switch (size) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    case 8: memcpy(dst, src, 8); break;
    default: memcpy(dst, src, 16);
  }
}

// The index tensor broadcast to `shape`, times stride, into the offsets: written by the first index, added by the others.
static em_status offsets_run(const char *data, int64_t step, bool wide, int64_t size, int64_t stride, bool first, int64_t *sum, int64_t n) {
  int64_t bad = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t v = wide ? *(const int64_t *)(data + k * step) : *(const int32_t *)(data + k * step);
    v += size & (v >> 63);
    bad |= v | (size - 1 - v);
    sum[k] = (first ? 0 : sum[k]) + v * stride;
  }
  return bad < 0 ? EM_ERR_INDEX : EM_OK;
}
em_status em_priv_index_offsets(em_tensor *index, const em_shape *shape, int64_t size, int64_t stride, int dim, bool first,
                                em_tensor *offsets) {
  int64_t counter[EM_MAX_DIMS] = {0}, step[EM_MAX_DIMS], n = 1, run = 1;
  const int lead = shape->ndim - index->ndim;
  const int64_t item = (int64_t)em_tensor_itemsize(index);
  for (int i = 0; i < shape->ndim; i++) {
    step[i] = i < lead || index->sizes[i - lead] == 1 ? 0 : index->strides[i - lead] * item;
    n *= shape->sizes[i];
  }
  int tail = shape->ndim;  // dims [tail, ndim) of the index are one dense run
  if (tail > 0) {
    run = shape->sizes[--tail];
    while (tail > 0 && step[tail - 1] == step[tail] * shape->sizes[tail]) run *= shape->sizes[--tail];
  }
  const int64_t along = shape->ndim > 0 ? step[shape->ndim - 1] : 0;
  const char *data = em_tensor_data(index);
  int64_t *sum = em_tensor_data(offsets);
  for (int64_t k = 0; k < n; k += run) {
    const bool wide = index->dtype == EM_I64;
    em_status st = wide && along == 8 && first ? offsets_run(data, 8, true, size, stride, true, sum + k, run)
                                               : offsets_run(data, along, wide, size, stride, first, sum + k, run);
    if (EM_UNLIKELY(st != EM_OK)) {
      for (int64_t j = 0; j < run; j++) {
        const int64_t v = wide ? *(const int64_t *)(data + j * along) : *(const int32_t *)(data + j * along);
        if (v < -size || v >= size)
          return em_fail(EM_ERR_INDEX, "index %lld is out of bounds for dimension %d with size %lld", (long long)v, dim,
                         (long long)size);
      }
    }
    for (int d = tail - 1; d >= 0; d--) {
      data += step[d];
      if (++counter[d] < shape->sizes[d]) break;
      data -= step[d] * shape->sizes[d];
      counter[d] = 0;
    }
  }
  return EM_OK;
}

// --- index: result position (a, k, b) stands for self[before(a) + offsets[k] + after(b)]; the other side is dense, or one
// value everywhere
typedef struct table {
  const em_index_plan *p;
  char *x, *o;
  const int64_t *offsets;
  int64_t size, step;     // bytes of an element; of a step on the other side: size or 0
  int64_t places, block;  // index positions; elements after them
  int after;              // first dim after the index dims
  bool dense;             // the elements after them lie side by side in self
  em_index_run_fn run;
} table;
static void one_block(const table *t, char *x, char *o) {  // the elements after one place
  const em_index_plan *p = t->p;
  if (t->dense) {
    t->run(x, t->size, o, t->step, NULL, 0, t->block);
    return;
  }
  walk w;
  const int last = p->shape.ndim - 1;
  walk_start(&w, last - t->after, p->shape.sizes + t->after, p->strides + t->after);
  const int64_t n = p->shape.sizes[last];
  for (int64_t k = 0; k < t->block; k += n, walk_next(&w))
    t->run(x + w.at * t->size, p->strides[last] * t->size, o + k * t->step, t->step, NULL, 0, n);
}
static em_status table_range(void *context, int64_t begin, int64_t end) {
  const table *t = context;
  const em_index_plan *p = t->p;
  while (begin < end) {
    int64_t a = begin / t->places, k = begin % t->places, n = t->places - k < end - begin ? t->places - k : end - begin, at = 0;
    for (int d = p->at - 1; d >= 0; d--) {
      at += a % p->shape.sizes[d] * p->strides[d];
      a /= p->shape.sizes[d];
    }
    char *x = t->x + at * t->size, *o = t->o + begin * t->block * t->step;
    if (t->block == 1) t->run(x, 0, o, t->step, t->offsets + k, t->size, n);
    else for (int64_t j = 0; j < n; j++) one_block(t, x + t->offsets[k + j] * t->size, o + j * t->block * t->step);
    begin += n;
  }
  return EM_OK;
}
static void table_of(const em_index_plan *p, em_tensor *self, em_tensor *other, int op, table *t) {
  *t = (table){.p = p, .x = em_tensor_data(self), .o = em_tensor_data(other), .offsets = em_tensor_data(p->offsets),
               .size = (int64_t)em_tensor_itemsize(self), .step = (int64_t)em_tensor_itemsize(self),
               .places = p->offsets->numel, .block = 1, .after = p->at + p->ndim, .dense = true,
               .run = em_priv_index_run_of(op, self->dtype)};
  for (int d = p->shape.ndim - 1; d >= t->after; d--) {
    t->dense &= p->shape.sizes[d] == 1 || p->strides[d] == t->block;
    t->block *= p->shape.sizes[d];
  }
}
static __attribute__((cold)) void note_table(const table *t, const char *order) {
  if (t->block == 1)
    em_note_write("offset table: %lld places, single elements, %s loop (blocks refused: nothing lies behind the indexed dims)%s",
                  (long long)t->places, em_priv_note_isa, order);
  else
    em_note_write("offset table: %lld places, blocks of %lld elements %s, %s loop (single elements refused: dims lie behind the indexed "
                  "ones)%s",
                  (long long)t->places, (long long)t->block, t->dense ? "side by side" : "row by row, since they lie apart",
                   em_priv_note_isa,
                  order);
}
em_status em_priv_index_get(const em_index_plan *p, em_tensor *self, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  table t;
  table_of(p, self, out, EM_INDEX_GET, &t);
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_table(&t, "");
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(out->numel / t.block, EM_LONG_NUMEL / (t.block + 1) + 1, table_range, &t);
  em_priv_end_long(token);
  return st;
}
// One thread, in order: with repeated places the last write wins, and sums do not depend on the number of threads.
em_status em_priv_index_set(const em_index_plan *p, em_tensor *self, em_tensor *values, bool accumulate) {
  if (values->numel == 0) return EM_OK;
  bool one = true;
  for (int d = 0; d < values->ndim; d++) one &= values->sizes[d] == 1 || values->strides[d] == 0;
  em_tensor *dense = NULL;
  if (!one) EM_PASS(em_call_contiguous(values, EM_FORMAT_CONTIGUOUS, &dense));
  table t;
  table_of(p, self, one ? values : dense, accumulate ? EM_INDEX_ADD : EM_INDEX_PUT, &t);
  if (one) t.step = 0;
  if (EM_UNLIKELY(em_priv_notes_wanted))
    note_table(&t, accumulate ? "; on 1 thread (more refused: sums are made in order)"
                              : "; on 1 thread (more refused: of equal places the last write wins)");
  void *token = em_priv_begin_long(values->numel > EM_LONG_NUMEL);
  em_status st = table_range(&t, 0, values->numel / t.block);
  em_priv_end_long(token);
  em_tensor_release(dense);
  return st;
}

// --- which elements are true, a piece at a time: their numbers in the piece, counted on from `from`
enum { PIECE = 1024 };
#define HITS(T, TEST)                                 \
  for (int64_t k = 0; k < n; k++) {                   \
    const T v = *(const T *)(p + k * stride);         \
    hits[count] = from + k;                           \
    count += (TEST);                                  \
  }                                                   \
  return count
static int64_t hits_of(int dtype, const char *p, int64_t stride, int64_t from, int64_t n, int64_t *hits) {
  int64_t count = 0;
  switch (dtype) {  // -0.0 is zero
    case EM_F32: { HITS(float, v != 0); }
    case EM_F64: { HITS(double, v != 0); }
    case EM_F16: case EM_BF16: { HITS(uint16_t, (v & 0x7fff) != 0); }
    case EM_C64: { HITS(em_c64, (v.re != 0) | (v.im != 0)); }
    case EM_C128: { HITS(em_c128, (v.re != 0) | (v.im != 0)); }
    case EM_I64: { HITS(int64_t, v != 0); }
    case EM_I32: { HITS(int32_t, v != 0); }
    case EM_I16: { HITS(int16_t, v != 0); }
    default: { HITS(uint8_t, v != 0); }
  }
}

// --- nonzero: row-major positions of true elements, one row each (strides as PyTorch gives them: column-major)
// Row by row of the last dim; with `out` NULL it only counts.
static int64_t find_true(em_tensor *self, int64_t *out, int64_t total) {
  const int64_t size = (int64_t)em_tensor_itemsize(self), inner = self->ndim == 0 ? 1 : self->sizes[self->ndim - 1];
  const int64_t stride = self->ndim == 0 ? 0 : self->strides[self->ndim - 1] * size;
  const int outer = self->ndim == 0 ? 0 : self->ndim - 1;
  int64_t hits[PIECE], count = 0;
  walk w;
  walk_start(&w, outer, self->sizes, self->strides);
  const char *data = em_tensor_data(self);
  for (int64_t row = 0; row < self->numel; row += inner, walk_next(&w))
    for (int64_t b = 0; b < inner; b += PIECE) {
      const int64_t n = inner - b < PIECE ? inner - b : PIECE;
      const int64_t m = hits_of(self->dtype, data + w.at * size + b * stride, stride, b, n, hits);
      if (out != NULL && self->ndim > 0) {
        for (int d = 0; d < outer; d++)
          for (int64_t k = 0; k < m; k++) out[d * total + count + k] = w.counter[d];
        memcpy(out + outer * total + count, hits, sizeof(int64_t) * (size_t)m);
      }
      count += m;
    }
  return count;
}
em_status n_nonzero(uint64_t ks, em_tensor *self, em_tensor **out) {
  (void)ks;
  void *token = em_priv_begin_long(self->numel > EM_LONG_NUMEL);
  const int64_t count = find_true(self, NULL, 0);
  em_priv_end_long(token);
  int64_t sizes[2] = {count, self->ndim}, strides[2] = {1, count};
  em_tensor *t;
  EM_PASS(em_tensor_new_strided(2, sizes, strides, EM_I64, self->device, &t));
  token = em_priv_begin_long(self->numel > EM_LONG_NUMEL);
  if (t->numel > 0) find_true(self, em_tensor_data(t), count);
  em_priv_end_long(token);
  *out = t;
  return EM_OK;
}

// --- masks over dense tensors: out takes the elements where the mask is true, or gives them its own
int64_t em_priv_mask_count(em_tensor *mask) {
  int64_t count = 0;
  const uint8_t *m = em_tensor_data(mask);
  for (int64_t k = 0; k < mask->numel; k++) count += m[k] != 0;
  return count;
}
void em_priv_mask_move(em_tensor *self, em_tensor *mask, em_tensor *other, bool gets) {
  const int64_t size = (int64_t)em_tensor_itemsize(self);
  const em_index_run_fn run = em_priv_index_run_of(gets ? EM_INDEX_GET : EM_INDEX_PUT, self->dtype);
  const char *m = em_tensor_data(mask);
  char *x = em_tensor_data(self), *o = em_tensor_data(other);
  int64_t hits[PIECE];
  EM_NOTE("mask: positions of true elements in pieces of %d, then their elements, %s loop (an offset table refused: the mask alone says "
          "where); "
          "on 1 thread (more refused: where a piece goes depends on those before it)", PIECE, em_priv_note_isa);
  for (int64_t b = 0; b < mask->numel; b += PIECE) {
    const int64_t n = hits_of(EM_BOOL, m + b, 1, b, mask->numel - b < PIECE ? mask->numel - b : PIECE, hits);
    run(x, 0, o, size, hits, size, n);
    o += n * size;
  }
}

// --- accumulation: one element, in the dtype's compute type
static inline void add_element(char *dst, const char *src, int dtype) {
  switch (dtype) {
    case EM_F32: { float a, b; memcpy(&a, dst, 4); memcpy(&b, src, 4); a += b; memcpy(dst, &a, 4); break; }
    case EM_F64: { double a, b; memcpy(&a, dst, 8); memcpy(&b, src, 8); a += b; memcpy(dst, &a, 8); break; }
    case EM_I64: { int64_t a, b; memcpy(&a, dst, 8); memcpy(&b, src, 8); a += b; memcpy(dst, &a, 8); break; }
    case EM_I32: { int32_t a, b; memcpy(&a, dst, 4); memcpy(&b, src, 4); a += b; memcpy(dst, &a, 4); break; }
    case EM_I16: {
      int16_t a, b;
      memcpy(&a, dst, 2);
      memcpy(&b, src, 2);
      a = (int16_t)(a + b);
      memcpy(dst, &a, 2);
      break;
    }
    case EM_I8: case EM_U8: *(uint8_t *)dst = (uint8_t)(*(uint8_t *)dst + *(const uint8_t *)src); break;
    case EM_BOOL: *(uint8_t *)dst = *(uint8_t *)dst || *(const uint8_t *)src; break;
    case EM_F16: {
      uint16_t a, b;
      memcpy(&a, dst, 2);
      memcpy(&b, src, 2);
      a = em_f32_to_f16(em_f16_to_f32(a) + em_f16_to_f32(b));
      memcpy(dst, &a, 2);
      break;
    }
    case EM_BF16: {
      uint16_t a, b;
      memcpy(&a, dst, 2);
      memcpy(&b, src, 2);
      a = em_f32_to_bf16(em_bf16_to_f32(a) + em_bf16_to_f32(b));
      memcpy(dst, &a, 2);
      break;
    }
    case EM_C64: {
      em_c64 a, b;
      memcpy(&a, dst, 8);
      memcpy(&b, src, 8);
      a.re += b.re;
      a.im += b.im;
      memcpy(dst, &a, 8);
      break;
    }
    default: {
      em_c128 a, b;
      memcpy(&a, dst, 16);
      memcpy(&b, src, 16);
      a.re += b.re;
      a.im += b.im;
      memcpy(dst, &a, 16);
    }
  }
}

static inline int64_t index_at(const em_tensor *index, int64_t at) {
  if (index->dtype == EM_I64) return ((const int64_t *)em_tensor_data(index))[at];
  return ((const int32_t *)em_tensor_data(index))[at];
}
// --- the positions 0, 0, ..., 1, 1, ...: i as often as repeats[i] says
em_status n_repeat_interleave(uint64_t ks, em_tensor *repeats, em_opt_int output_size, em_tensor **out) {
  (void)ks;
  if (repeats->ndim != 1) return em_fail(EM_ERR_RUNTIME, "repeat_interleave only accept 1D vector as repeat");
  if (repeats->dtype != EM_I64 && repeats->dtype != EM_I32)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"repeat_interleave_cpu\" not implemented for '%s'",
                   em_dtype_scalar_name(repeats->dtype));
  const int64_t n = repeats->numel, step = repeats->strides[0];
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t times = index_at(repeats, i * step);
    if (times < 0) return em_fail(EM_ERR_RUNTIME, "repeats can not be negative");
    if (__builtin_add_overflow(total, times, &total))
      return em_fail(EM_ERR_RUNTIME, "repeat_interleave: the sum of repeats overflows");
  }
  if (output_size.has && output_size.v != total)
    return em_fail(EM_ERR_RUNTIME, "allocated size does not match required size");
  em_tensor *t;
  EM_PASS(em_tensor_new(1, &total, repeats->dtype, repeats->device, &t));
  int64_t *wide = em_tensor_data(t), at = 0;
  int32_t *narrow = em_tensor_data(t);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = index_at(repeats, i * step); k > 0; k--, at++) {
      if (t->dtype == EM_I64) wide[at] = i;
      else narrow[at] = (int32_t)i;
    }
  *out = t;
  return EM_OK;
}

// --- embedding: rows of a table
em_status k_cpu_embedding(em_plan *p, em_tensor *weight, em_tensor *indices, int64_t padding_idx, bool scale,
                          bool sparse, em_tensor *out) {
  (void)p;
  (void)padding_idx;
  (void)scale;
  (void)sparse;
  size_t size = em_tensor_itemsize(weight);
  int64_t rows = weight->sizes[0], width = weight->sizes[1];
  walk w;
  walk_start(&w, indices->ndim, indices->sizes, indices->strides);
  const char *src = em_tensor_data(weight);
  char *dst = em_tensor_data(out);
  EM_NOTE("rows: %lld of %lld elements %s", (long long)indices->numel, (long long)width,
          weight->strides[1] == 1 ? "by memcpy (element by element refused: rows are dense)"
                                  : "element by element (memcpy refused: a row's elements lie apart)");
  for (int64_t i = 0; i < indices->numel; i++, walk_next(&w)) {
    int64_t v = index_at(indices, w.at);
    if (EM_UNLIKELY(v < 0 || v >= rows)) return em_fail(EM_ERR_INDEX, "index out of range in self");
    if (width == 0) continue;
    if (weight->strides[1] == 1) {
      memcpy(dst + (size_t)(i * width) * size, src + v * weight->strides[0] * (int64_t)size, (size_t)width * size);
      continue;
    }
    for (int64_t k = 0; k < width; k++)
      move(dst + (size_t)(i * width + k) * size,
           src + (v * weight->strides[0] + k * weight->strides[1]) * (int64_t)size, size);
  }
  return EM_OK;
}
em_status k_cpu_embedding_dense_backward(em_plan *p, em_tensor *grad, em_tensor *indices, int64_t num_weights,
                                         int64_t padding_idx, bool scale, em_tensor *out) {
  int64_t width = out->sizes[1], *counts = p->work;
  EM_PASS(em_fill(out, em_scalar_int(0)));
  if (out->numel == 0) return EM_OK;
  walk w;
  if (scale) memset(counts, 0, sizeof(int64_t) * (size_t)num_weights);
  walk_start(&w, indices->ndim, indices->sizes, indices->strides);
  for (int64_t i = 0; scale && i < indices->numel; i++, walk_next(&w)) {
    int64_t v = index_at(indices, w.at);
    if (v >= 0 && v < num_weights) counts[v]++;
  }
  em_status st = EM_OK;
  em_tensor *dense = NULL;
  EM_PASS(em_call_contiguous(grad, EM_FORMAT_CONTIGUOUS, &dense));
  const char *src = em_tensor_data(dense);
  char *dst = em_tensor_data(out);
  size_t size = em_tensor_itemsize(out);
  walk_start(&w, indices->ndim, indices->sizes, indices->strides);
  for (int64_t i = 0; i < indices->numel; i++, walk_next(&w)) {
    int64_t v = index_at(indices, w.at);
    if (v < 0 || v >= num_weights || v == padding_idx) continue;  // forward has refused what is not in the table
    for (int64_t k = 0; k < width; k++) {
      char scaled[16];
      const char *from = src + (size_t)(i * width + k) * size;
      if (scale && counts[v] > 1) {
        em_scalar s = em_scalar_load(out->dtype, from);
        EM_TRY(em_scalar_store(em_scalar_double(em_scalar_to_double(s) / (double)counts[v]), out->dtype, scaled));
        from = scaled;
      }
      add_element(dst + (size_t)(v * width + k) * size, from, out->dtype);
    }
  }
fail:
  em_tensor_release(dense);
  return st;
}
