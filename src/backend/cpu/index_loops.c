// index_loops.c: moving elements by offset tables, and the gather/scatter family. Elements move as 1, 2, 4, 8 or 16
// bytes; only accumulation looks at dtypes.
#include <string.h>
#include "../../core/half.h"
#include "../../core/threads.h"
#include "../../dispatch/index_plan.h"
#include "gen_ops.h"

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

// Adds index * stride into the offsets, walking the index tensor broadcast to `shape`.
em_status em_priv_index_offsets(em_tensor *index, const em_shape *shape, int64_t size, int64_t stride, int dim, em_tensor *offsets) {
  int64_t counter[EM_MAX_DIMS] = {0}, step[EM_MAX_DIMS], n = 1;
  int lead = shape->ndim - index->ndim;
  for (int i = 0; i < shape->ndim; i++) {
    step[i] = i < lead || index->sizes[i - lead] == 1 ? 0 : index->strides[i - lead];
    n *= shape->sizes[i];
  }
  int64_t at = 0, value;
  size_t item = em_tensor_itemsize(index);
  const char *data = em_tensor_data(index);
  int64_t *sum = em_tensor_data(offsets);
  for (int64_t k = 0; k < n; k++) {
    em_cast_load(&value, EM_I64, data + at * (int64_t)item, index->dtype, 0, 1);
    if (EM_UNLIKELY(value < -size || value >= size))
      return em_fail(EM_ERR_INDEX, "index %lld is out of bounds for dimension %d with size %lld", (long long)value, dim,
                     (long long)size);
    sum[k] += (value < 0 ? value + size : value) * stride;
    for (int d = shape->ndim - 1; d >= 0; d--) {
      at += step[d];
      if (++counter[d] < shape->sizes[d]) break;
      at -= step[d] * shape->sizes[d];
      counter[d] = 0;
    }
  }
  return EM_OK;
}

// --- index: result position (a, k, b) reads self[before(a) + offsets[k] + after(b)]
typedef struct get {
  const em_index_plan *p;
  const char *src;
  char *dst;
  const int64_t *offsets;
  size_t size;
  int64_t places, block;  // index positions; elements after them
  int after;              // first dim after the index dims
  bool dense;             // the elements after them lie side by side in self
} get;
static em_status get_range(void *context, int64_t begin, int64_t end) {
  get *g = context;
  const em_index_plan *p = g->p;
  int tail = p->shape.ndim - g->after;
  for (int64_t i = begin; i < end; i++) {
    int64_t a = i / g->places, at = g->offsets[i % g->places];
    for (int d = p->at - 1; d >= 0; d--) {
      at += a % p->shape.sizes[d] * p->strides[d];
      a /= p->shape.sizes[d];
    }
    const char *src = g->src + at * (int64_t)g->size;
    char *dst = g->dst + i * g->block * (int64_t)g->size;
    if (g->dense) {
      if (g->block == 1) move(dst, src, g->size);
      else memcpy(dst, src, (size_t)g->block * g->size);
      continue;
    }
    walk w;
    walk_start(&w, tail, p->shape.sizes + g->after, p->strides + g->after);
    for (int64_t k = 0; k < g->block; k++, walk_next(&w))
      move(dst + (size_t)k * g->size, src + w.at * (int64_t)g->size, g->size);
  }
  return EM_OK;
}
em_status em_priv_index_get(const em_index_plan *p, em_tensor *self, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  get g = {.p = p,
           .src = em_tensor_data(self),
           .dst = em_tensor_data(out),
           .offsets = em_tensor_data(p->offsets),
           .size = em_tensor_itemsize(self),
           .places = p->offsets->numel,
           .block = 1,
           .after = p->at + p->ndim,
           .dense = true};
  for (int d = p->shape.ndim - 1; d >= g.after; d--) {
    g.dense &= p->shape.sizes[d] == 1 || p->strides[d] == g.block;
    g.block *= p->shape.sizes[d];
  }
  int64_t grain = EM_LONG_NUMEL / (g.block + 1) + 1;
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(out->numel / g.block, grain, get_range, &g);
  em_priv_end_long(token);
  return st;
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

// One thread, in order: with repeated places the last write wins, and sums do not depend on the number of threads.
em_status em_priv_index_set(const em_index_plan *p, em_tensor *self, em_tensor *values, bool accumulate) {
  if (values->numel == 0) return EM_OK;
  size_t size = em_tensor_itemsize(self);
  const int64_t *offsets = em_tensor_data(p->offsets);
  int64_t place_strides[EM_MAX_DIMS], s = 1;
  memset(place_strides, 0, sizeof place_strides);
  for (int d = p->at + p->ndim - 1; d >= p->at; d--) {
    place_strides[d] = s;
    s *= p->shape.sizes[d];
  }
  walk ws, wv, wp;
  walk_start(&ws, p->shape.ndim, p->shape.sizes, p->strides);
  walk_start(&wv, values->ndim, values->sizes, values->strides);
  walk_start(&wp, p->shape.ndim, p->shape.sizes, place_strides);
  char *dst = em_tensor_data(self);
  const char *src = em_tensor_data(values);
  for (int64_t i = 0; i < values->numel; i++, walk_next(&ws), walk_next(&wv), walk_next(&wp)) {
    char *d = dst + (ws.at + offsets[wp.at]) * (int64_t)size;
    if (accumulate) add_element(d, src + wv.at * (int64_t)size, self->dtype);
    else move(d, src + wv.at * (int64_t)size, size);
  }
  return EM_OK;
}

// --- nonzero: row-major positions of true elements, one row each (strides as PyTorch gives them: column-major)
static bool is_true(const char *p, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (p[i]) return true;
  return false;
}
static bool nonzero_at(const char *p, int dtype) {
  switch (dtype) {  // -0.0 is zero
    case EM_F32: { float v; memcpy(&v, p, 4); return v != 0; }
    case EM_F64: { double v; memcpy(&v, p, 8); return v != 0; }
    case EM_F16: case EM_BF16: { uint16_t v; memcpy(&v, p, 2); return (v & 0x7fff) != 0; }
    case EM_C64: { em_c64 v; memcpy(&v, p, 8); return v.re != 0 || v.im != 0; }
    case EM_C128: { em_c128 v; memcpy(&v, p, 16); return v.re != 0 || v.im != 0; }
    default: return is_true(p, em_dtype_size(dtype));
  }
}
em_status n_nonzero(uint64_t ks, em_tensor *self, em_tensor **out) {
  (void)ks;
  size_t size = em_tensor_itemsize(self);
  const char *data = em_tensor_data(self);
  int64_t count = 0;
  walk w;
  walk_start(&w, self->ndim, self->sizes, self->strides);
  for (int64_t i = 0; i < self->numel; i++, walk_next(&w))
    count += nonzero_at(data + w.at * (int64_t)size, self->dtype);
  int64_t sizes[2] = {count, self->ndim}, strides[2] = {1, count > 1 ? count : 1};
  em_tensor *t;
  EM_PASS(em_tensor_new_strided(2, sizes, strides, EM_I64, self->device, &t));
  int64_t *o = em_tensor_data(t), k = 0;
  walk_start(&w, self->ndim, self->sizes, self->strides);
  for (int64_t i = 0; i < self->numel; i++, walk_next(&w)) {
    if (!nonzero_at(data + w.at * (int64_t)size, self->dtype)) continue;
    for (int d = 0; d < self->ndim; d++) o[k + d * count] = w.counter[d];
    k++;
  }
  *out = t;
  return EM_OK;
}

// --- gather and scatter along one dim. Strides of a tensor with the dim's stride taken out; the index supplies the
// position.
typedef struct along {
  int64_t strides[EM_MAX_DIMS];
  int64_t dim_stride, size;
} along;
static void along_of(const em_tensor *t, int64_t dim, along *a) {
  for (int d = 0; d < t->ndim; d++) a->strides[d] = d == dim ? 0 : t->strides[d];
  if (t->ndim == 0) a->strides[0] = 0;
  a->dim_stride = t->ndim == 0 ? 0 : t->strides[dim];
  a->size = t->ndim == 0 ? 1 : t->sizes[dim];
}
static em_status fail_bounds(int64_t v, int64_t dim, int64_t size) {
  return em_fail(EM_ERR_RUNTIME, "index %lld is out of bounds for dimension %lld with size %lld", (long long)v,
                 (long long)dim, (long long)size);
}
static inline int64_t read_index(const em_tensor *index, int64_t at) {
  if (index->dtype == EM_I64) return ((const int64_t *)em_tensor_data(index))[at];
  return ((const int32_t *)em_tensor_data(index))[at];
}
static int64_t dims1(const em_tensor *t, int64_t *sizes) {  // a 0-dim tensor counts as one element along one dim
  if (t->ndim == 0) sizes[0] = 1;
  else memcpy(sizes, t->sizes, sizeof(int64_t) * t->ndim);
  return t->ndim == 0 ? 1 : t->ndim;
}
em_status k_cpu_gather(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, bool sparse_grad, em_tensor *out) {
  (void)sparse_grad;
  dim = p->attr[0];
  if (index->numel == 0) return EM_OK;
  along from;
  along_of(self, dim, &from);
  size_t size = em_tensor_itemsize(self);
  int64_t sizes[EM_MAX_DIMS];
  int n = (int)dims1(index, sizes);
  static const int64_t one[1] = {1};
  walk ws, wi, wo;
  walk_start(&ws, n, sizes, from.strides);
  walk_start(&wi, n, sizes, index->ndim == 0 ? one : index->strides);
  walk_start(&wo, n, sizes, out->ndim == 0 ? one : out->strides);
  const char *src = em_tensor_data(self);
  char *dst = em_tensor_data(out);
  for (int64_t i = 0; i < index->numel; i++, walk_next(&ws), walk_next(&wi), walk_next(&wo)) {
    int64_t v = read_index(index, wi.at);
    if (EM_UNLIKELY(v < 0 || v >= from.size)) return fail_bounds(v, dim, from.size);
    move(dst + wo.at * (int64_t)size, src + (ws.at + v * from.dim_stride) * (int64_t)size, size);
  }
  return EM_OK;
}
// Indices are checked before the first write: a failing scatter leaves its target as it was.
static em_status check_all(em_tensor *index, int64_t dim, int64_t size) {
  walk w;
  walk_start(&w, index->ndim, index->sizes, index->strides);
  for (int64_t i = 0; i < index->numel; i++, walk_next(&w)) {
    int64_t v = read_index(index, w.at);
    if (EM_UNLIKELY(v < 0 || v >= size)) return fail_bounds(v, dim, size);
  }
  return EM_OK;
}
static em_status scatter(em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src, const void *value, bool add,
                         em_tensor *out) {
  along to;
  along_of(out, dim, &to);
  if (index->numel > 0) EM_PASS(check_all(index, dim, to.size));
  if (out != self) EM_PASS(em_copy_into(out, self));
  if (index->numel == 0) return EM_OK;
  size_t size = em_tensor_itemsize(out);
  int64_t sizes[EM_MAX_DIMS];
  int n = (int)dims1(index, sizes);
  static const int64_t one[1] = {1}, none[EM_MAX_DIMS] = {0};
  walk wo, wi, ws;
  walk_start(&wo, n, sizes, to.strides);
  walk_start(&wi, n, sizes, index->ndim == 0 ? one : index->strides);
  walk_start(&ws, n, sizes, src == NULL || src->ndim == 0 ? none : src->strides);
  const char *from = src == NULL ? value : em_tensor_data(src);
  char *dst = em_tensor_data(out);
  for (int64_t i = 0; i < index->numel; i++, walk_next(&wo), walk_next(&wi), walk_next(&ws)) {
    char *d = dst + (wo.at + read_index(index, wi.at) * to.dim_stride) * (int64_t)size;
    const char *s = from + ws.at * (int64_t)size;
    if (add) add_element(d, s, out->dtype);
    else move(d, s, size);
  }
  return EM_OK;
}
em_status k_cpu_scatter_src(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src,
                            em_tensor *out) {
  (void)dim;
  return scatter(self, p->attr[0], index, src, NULL, false, out);
}
em_status k_cpu_scatter_value(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_scalar value,
                              em_tensor *out) {
  (void)dim;
  char element[16];
  EM_PASS(em_scalar_store(value, out->dtype, element));
  return scatter(self, p->attr[0], index, NULL, element, false, out);
}
em_status k_cpu_scatter_add(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src,
                            em_tensor *out) {
  (void)dim;
  return scatter(self, p->attr[0], index, src, NULL, true, out);
}

// --- whole slices along a dim
em_status k_cpu_index_select(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *out) {
  dim = p->attr[0];
  if (out->numel == 0 && index->numel == 0) return EM_OK;
  int64_t n = self->ndim == 0 ? 1 : self->sizes[dim], step = index->ndim == 0 ? 0 : index->strides[0];
  for (int64_t i = 0; i < index->numel; i++) {
    int64_t v = read_index(index, i * step);
    if (EM_UNLIKELY(v < 0 || v >= n)) return em_fail(EM_ERR_INDEX, "index out of range in self");
  }
  for (int64_t i = 0; i < index->numel && out->numel > 0; i++) {
    em_geometry a, b;
    em_tensor *from = NULL, *to = NULL;
    em_status st = EM_OK;
    if (self->ndim == 0) {
      EM_PASS(em_copy_into(out, self));
      continue;
    }
    EM_PASS(view_select(self, dim, read_index(index, i * step), &a));
    EM_PASS(view_select(out, dim, i, &b));
    EM_TRY(em_tensor_new_window(self->storage, a.ndim, a.sizes, a.strides, a.offset, self->dtype, &from));
    EM_TRY(em_tensor_new_window(out->storage, b.ndim, b.sizes, b.strides, b.offset, out->dtype, &to));
    EM_TRY(em_copy_into(to, from));
  fail:
    em_tensor_release(from);
    em_tensor_release(to);
    EM_PASS(st);
  }
  return EM_OK;
}
em_status k_cpu_index_add(em_plan *p, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source,
                          em_scalar alpha, em_tensor *out) {
  dim = p->attr[0];
  int64_t n = self->ndim == 0 ? 1 : self->sizes[dim], step = index->ndim == 0 ? 0 : index->strides[0];
  for (int64_t i = 0; i < index->numel; i++) {
    int64_t v = read_index(index, i * step);
    if (EM_UNLIKELY(v < 0 || v >= n)) return em_fail(EM_ERR_INDEX, "index out of range in self");
  }
  if (out != self) EM_PASS(em_copy_into(out, self));
  em_status st = EM_OK;
  em_tensor *scaled = NULL;
  if (em_scalar_is_int_one(alpha)) scaled = em_tensor_retain(source);
  else EM_TRY(em_call_mul_Scalar(source, alpha, &scaled));
  size_t size = em_tensor_itemsize(out);
  int64_t sizes[EM_MAX_DIMS], shape[EM_MAX_DIMS];
  int nd = (int)dims1(scaled, sizes);
  static const int64_t none[EM_MAX_DIMS] = {0};
  along to;
  along_of(out, dim, &to);
  memcpy(shape, sizes, sizeof sizes);
  walk wo, ws;
  walk_start(&wo, nd, shape, to.strides);
  walk_start(&ws, nd, shape, scaled->ndim == 0 ? none : scaled->strides);
  char *dst = em_tensor_data(out);
  const char *src = em_tensor_data(scaled);
  for (int64_t i = 0; i < scaled->numel; i++, walk_next(&wo), walk_next(&ws)) {
    int64_t v = read_index(index, wo.counter[dim] * step);
    add_element(dst + (wo.at + v * to.dim_stride) * (int64_t)size, src + ws.at * (int64_t)size, out->dtype);
  }
fail:
  em_tensor_release(scaled);
  return st;
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
  for (int64_t i = 0; i < indices->numel; i++, walk_next(&w)) {
    int64_t v = read_index(indices, w.at);
    if (EM_UNLIKELY(v < 0 || v >= rows)) return em_fail(EM_ERR_INDEX, "index out of range in self");
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
  memset(counts, 0, sizeof(int64_t) * (size_t)num_weights);
  walk w;
  walk_start(&w, indices->ndim, indices->sizes, indices->strides);
  for (int64_t i = 0; i < indices->numel; i++, walk_next(&w)) {
    int64_t v = read_index(indices, w.at);
    if (EM_UNLIKELY(v < -num_weights || v >= num_weights)) return em_fail(EM_ERR_INDEX, "index out of range in self");
    if (v >= 0) counts[v]++;
  }
  em_tensor *dense = NULL;
  EM_PASS(em_call_contiguous(grad, EM_FORMAT_CONTIGUOUS, &dense));
  const char *src = em_tensor_data(dense);
  char *dst = em_tensor_data(out);
  size_t size = em_tensor_itemsize(out);
  walk_start(&w, indices->ndim, indices->sizes, indices->strides);
  for (int64_t i = 0; i < indices->numel; i++, walk_next(&w)) {
    int64_t v = read_index(indices, w.at);
    if (v < 0 || v == padding_idx) continue;
    for (int64_t k = 0; k < width; k++) {
      char scaled[16];
      const char *from = src + (size_t)(i * width + k) * size;
      if (scale && counts[v] > 1) {
        em_scalar s = em_scalar_load(out->dtype, from);
        EM_PASS(em_scalar_store(em_scalar_double(em_scalar_to_double(s) / (double)counts[v]), out->dtype, scaled));
        from = scaled;
      }
      add_element(dst + (size_t)(v * width + k) * size, from, out->dtype);
    }
  }
  em_tensor_release(dense);
  return EM_OK;
}
