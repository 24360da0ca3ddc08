// padding.c: padded copies. A table a dim says which input each output comes from; the middle of a row is one copy.
#include "dense.h"
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

// --- constant: of a dense input, row by row; of others through a window of the output
typedef struct framed {
  int ndim;
  const int64_t *in, *out;     // sizes
  int64_t left[EM_MAX_DIMS], step[EM_MAX_DIMS];  // of the input, in elements
  const char *from;
  char *to, value[16];
  int64_t item;
} framed;
#define ROW(W)                                                                                                     \
  static void row_##W(char *to, const char *from, const char *value, int64_t left, int64_t n, int64_t right) {     \
    for (int64_t i = 0; i < left; i++) memcpy(to + i * W, value, W);                                               \
    memcpy(to + left * W, from, (size_t)(n * W));                                                                  \
    to += (left + n) * W;                                                                                          \
    for (int64_t i = 0; i < right; i++) memcpy(to + i * W, value, W);                                              \
  }
ROW(1)
ROW(2)
ROW(4)
ROW(8)
ROW(16)
static void (*row_of(int64_t item))(char *, const char *, const char *, int64_t, int64_t, int64_t) {
  return item == 1 ? row_1 : item == 2 ? row_2 : item == 4 ? row_4 : item == 8 ? row_8 : row_16;
}
// Planes [begin, end): all dims but the last two. Rows of a plane lie side by side in the output.
static em_status framed_planes(void *context, int64_t begin, int64_t end) {
  const framed *f = context;
  const int last = f->ndim - 1, rows = f->ndim - 2;
  void (*row)(char *, const char *, const char *, int64_t, int64_t, int64_t) = row_of(f->item);
  const int64_t width = f->out[last], height = rows >= 0 ? f->out[rows] : 1, item = f->item;
  const int64_t left = f->left[last] > 0 ? f->left[last] : 0, skip = f->left[last] < 0 ? -f->left[last] : 0;
  int64_t n = f->in[last] - skip < width - left ? f->in[last] - skip : width - left;
  if (n < 0) n = 0;
  for (int64_t p = begin; p < end; p++) {
    char *to = f->to + p * height * width * item;
    int64_t from = skip, rest = p;
    bool inside = true;
    for (int d = rows - 1; d >= 0; d--) {
      const int64_t i = rest % f->out[d] - f->left[d];
      rest /= f->out[d];
      inside &= i >= 0 && i < f->in[d];
      from += i * f->step[d];
    }
    for (int64_t h = 0; h < height; h++, to += width * item) {
      const int64_t y = rows >= 0 ? h - f->left[rows] : 0, step = rows >= 0 ? f->step[rows] : 0;
      if (inside && y >= 0 && (rows < 0 || y < f->in[rows]))
        row(to, f->from + (from + y * step) * item, f->value, left, n, width - left - n);
      else row(to, f->value, f->value, width, 0, 0);
    }
  }
  return EM_OK;
}
static em_status pad_dense(em_tensor *self, em_ints pad, em_scalar value, em_tensor *out) {
  framed f = {.ndim = self->ndim, .in = self->sizes, .out = out->sizes, .from = em_tensor_data(self),
              .to = em_tensor_data(out), .item = (int64_t)em_tensor_itemsize(self)};
  const bool half = out->dtype == EM_F16 || out->dtype == EM_BF16;
  EM_PASS((half ? em_scalar_store_rounded : em_scalar_store)(value, out->dtype, f.value));
  for (int d = 0; d < self->ndim; d++) {
    const int64_t k = 2 * (int64_t)(self->ndim - 1 - d);
    f.left[d] = k < pad.n ? pad.p[k] : 0;
    f.step[d] = self->strides[d];
  }
  const int64_t plane = out->sizes[out->ndim - 1] * (out->ndim > 1 ? out->sizes[out->ndim - 2] : 1);
  EM_NOTE("rows: margin, row and margin of each of %lld planes in one go (fill and copy refused: both are contiguous)",
          (long long)(out->numel / plane));
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  em_status st = em_threads_for(out->numel / plane, EM_LONG_NUMEL / plane + 1, framed_planes, &f);
  em_priv_end_long(token);
  return st;
}
em_status k_cpu_constant_pad_nd(em_plan *p, em_tensor *self, em_ints pad, em_scalar value, em_tensor *out) {
  (void)p;
  if (out->numel > 0 && self->numel > 0 && out->ndim > 0 && em_tensor_is_contiguous(self) &&
      em_tensor_is_contiguous(out))
    return pad_dense(self, pad, value, out);
  if (out->numel > 0) EM_NOTE("fill and copy: the whole result, then the window (rows in one go refused: input or result is not "
      "contiguous)");
  em_status st = EM_OK;
  em_tensor *from = NULL, *to = NULL;
  int64_t sizes[EM_MAX_DIMS], in = self->offset, at = out->offset;
  bool grows = false;
  for (int d = 0; d < self->ndim; d++) {
    const int64_t k = 2 * (int64_t)(self->ndim - 1 - d), left = k < pad.n ? pad.p[k] : 0,
                  right = k < pad.n ? pad.p[k + 1] : 0;
    sizes[d] = self->sizes[d] + (left < 0 ? left : 0) + (right < 0 ? right : 0);
    if (left < 0) in -= left * self->strides[d];
    if (left > 0) at += left * out->strides[d];
    grows |= left > 0 || right > 0;
  }
  if (grows) EM_PASS(em_fill(out, value));
  EM_TRY(em_tensor_new_window(self->storage, self->ndim, sizes, self->strides, in, self->dtype, &from));
  if (from->numel == 0) goto fail;
  EM_TRY(em_tensor_new_window(out->storage, out->ndim, sizes, out->strides, at, out->dtype, &to));
  EM_TRY(em_copy_into(to, from));
fail:
  em_tensor_release(from);
  em_tensor_release(to);
  return st;
}

// --- circular: every row is the end of its input's, the middle, and the beginning
static em_status wrapped_planes(void *context, int64_t begin, int64_t end) {
  const framed *f = context;  // left: where the input's kept part begins in the output; step, in: of the kept part
  const int last = f->ndim - 1, rows = f->ndim - 2;
  const int64_t width = f->out[last], height = rows >= 0 ? f->out[rows] : 1, item = f->item, kept = f->in[last];
  const int64_t left = f->left[last], right = width - left - kept;
  for (int64_t p = begin; p < end; p++) {
    int64_t from = 0, rest = p;
    for (int d = rows - 1; d >= 0; d--) {
      from += (rest % f->out[d] - f->left[d] + f->in[d]) % f->in[d] * f->step[d];
      rest /= f->out[d];
    }
    char *to = f->to + p * height * width * item;
    for (int64_t h = 0; h < height; h++, to += width * item) {
      const int64_t y = rows >= 0 ? (h - f->left[rows] + f->in[rows]) % f->in[rows] * f->step[rows] : 0;
      const char *row = f->from + (from + y) * item;
      memcpy(to, row + (kept - left) * item, (size_t)(left * item));
      memcpy(to + left * item, row, (size_t)(kept * item));
      memcpy(to + (left + kept) * item, row, (size_t)(right * item));
    }
  }
  return EM_OK;
}
em_status k_cpu_pad_circular(em_plan *plan, em_tensor *self, em_ints pad, em_tensor *out) {
  (void)plan;
  if (out->numel == 0) return EM_OK;
  if (out->ndim == 0) return em_copy_into(out, self);
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  int64_t kept[EM_MAX_DIMS], first = 0;
  EM_TRY(em_dense_in(self, self->dtype, &x));
  EM_TRY(em_dense_out(out, out->dtype, &y));
  framed f = {.ndim = self->ndim, .in = kept, .out = out->sizes, .to = em_tensor_data(y),
              .item = (int64_t)em_tensor_itemsize(self)};
  for (int d = 0; d < self->ndim; d++) {
    const int64_t k = 2 * (int64_t)(self->ndim - 1 - d), left = k < pad.n ? pad.p[k] : 0,
                  right = k < pad.n ? pad.p[k + 1] : 0;
    kept[d] = self->sizes[d] + (left < 0 ? left : 0) + (right < 0 ? right : 0);
    f.left[d] = left > 0 ? left : 0;
    f.step[d] = x->strides[d];
    if (left < 0) first -= left * x->strides[d];
  }
  f.from = (const char *)em_tensor_data(x) + first * f.item;
  const int64_t plane = out->sizes[out->ndim - 1] * (out->ndim > 1 ? out->sizes[out->ndim - 2] : 1);
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / plane, EM_LONG_NUMEL / plane + 1, wrapped_planes, &f);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}

// --- reflection and replication
#define DIMS 3
typedef struct job {
  int64_t in[DIMS], out[DIMS], *from[DIMS];  // sizes of input and output; from[k][o]: the input of output o
  int64_t first, last;                       // outputs of a row that are its input's elements, in order
  size_t size;
  char *to;
  const char *x;
  int parts;  // numbers an element: 2 of a complex one
  bool wide;
} job;
static int64_t source(int64_t o, int64_t left, int64_t in, bool reflects) {
  const int64_t i = o - left;
  if (!reflects) return i < 0 ? 0 : i >= in ? in - 1 : i;
  return i < 0 ? -i : i >= in ? 2 * (in - 1) - i : i;
}
static void make_tables(job *j, int spatial, bool reflects, em_ints pad, const em_tensor *small, const em_tensor *big,
                        void *work) {
  int64_t *at = work;
  for (int k = 0; k < DIMS; k++) {
    const bool real = k >= DIMS - spatial;
    j->in[k] = real ? small->sizes[small->ndim - DIMS + k] : 1;
    j->out[k] = real ? big->sizes[big->ndim - DIMS + k] : 1;
    j->from[k] = at;
    const int64_t left = real ? pad.p[2 * (DIMS - 1 - k)] : 0;
    for (int64_t o = 0; o < j->out[k]; o++) at[o] = source(o, left, j->in[k], reflects);
    at += j->out[k];
    if (k < DIMS - 1) continue;
    j->first = left > 0 ? left : 0;
    j->last = left + j->in[k] < j->out[k] ? left + j->in[k] : j->out[k];
    if (j->last < j->first) j->last = j->first;
  }
}
static void gather(char *to, const char *row, const int64_t *from, int64_t b, int64_t e, size_t size) {
#define CASE(n) case n: for (int64_t o = b; o < e; o++) memcpy(to + o * n, row + from[o] * n, n); break
  switch (size) {
    CASE(1);
    CASE(2);
    CASE(4);
    CASE(8);
    default: for (int64_t o = b; o < e; o++) memcpy(to + o * 16, row + from[o] * 16, 16);
  }
#undef CASE
}
static em_status rows(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t area = j->in[0] * j->in[1] * j->in[2], size = (int64_t)j->size;
  for (int64_t r = begin; r < end; r++) {
    const int64_t oh = r % j->out[1], od = r / j->out[1] % j->out[0], p = r / (j->out[1] * j->out[0]);
    const char *row = j->x + (p * area + (j->from[0][od] * j->in[1] + j->from[1][oh]) * j->in[2]) * size;
    char *to = j->to + r * j->out[2] * size;
    gather(to, row, j->from[2], 0, j->first, j->size);
    if (j->last > j->first)
      memcpy(to + j->first * size, row + j->from[2][j->first] * size, (size_t)((j->last - j->first) * size));
    gather(to, row, j->from[2], j->last, j->out[2], j->size);
  }
  return EM_OK;
}
#define GIVE(T)                                                                                                   \
  static void give_##T(const job *j, int64_t p) {                                                                 \
    const int64_t area = j->in[0] * j->in[1] * j->in[2] * j->parts, c = j->parts;                                 \
    T *plane = (T *)(void *)j->to + p * area;                                                                     \
    const T *g = (const T *)(const void *)j->x + p * j->out[0] * j->out[1] * j->out[2] * c;                       \
    memset(plane, 0, sizeof(T) * (size_t)area);                                                                   \
    for (int64_t od = 0; od < j->out[0]; od++)                                                                    \
      for (int64_t oh = 0; oh < j->out[1]; oh++, g += j->out[2] * c) {                                            \
        T *row = plane + (j->from[0][od] * j->in[1] + j->from[1][oh]) * j->in[2] * c;                             \
        for (int64_t o = 0; o < j->out[2]; o++)                                                                   \
          for (int64_t k = 0; k < c; k++) row[j->from[2][o] * c + k] += g[o * c + k];                             \
      }                                                                                                           \
  }
GIVE(float)
GIVE(double)
static em_status planes(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t p = begin; p < end; p++) {
    if (j->wide) give_double(j, p);
    else give_float(j, p);
  }
  return EM_OK;
}
static em_status pad(em_plan *plan, int spatial, bool reflects, em_tensor *self, em_ints padding, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  job j = {.size = em_tensor_itemsize(self)};
  make_tables(&j, spatial, reflects, padding, self, out, plan->work);
  EM_TRY(em_dense_in(self, self->dtype, &x));
  EM_TRY(em_dense_out(out, out->dtype, &y));
  j.x = em_tensor_data(x);
  j.to = em_tensor_data(y);
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / j.out[2], EM_LONG_NUMEL / 2 / j.out[2] + 1, rows, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
static em_status pad_backward(em_plan *plan, int spatial, bool reflects, em_tensor *grad, em_ints padding,
                              em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  const int compute = em_priv_dtypes[out->dtype].compute;
  job j = {.parts = em_dtype_is_complex(compute) ? 2 : 1, .wide = compute == EM_F64 || compute == EM_C128};
  make_tables(&j, spatial, reflects, padding, out, grad, plan->work);
  EM_TRY(em_dense_in(grad, compute, &x));
  EM_TRY(em_dense_out(out, compute, &y));
  j.x = em_tensor_data(x);
  j.to = em_tensor_data(y);
  const int64_t area = j.in[0] * j.in[1] * j.in[2], cost = area + j.out[0] * j.out[1] * j.out[2];
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / area, EM_LONG_NUMEL / 2 / cost + 1, planes, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
#define KERNELS(n)                                                                                             \
  em_status k_cpu_reflection_pad##n##d(em_plan *p, em_tensor *self, em_ints padding, em_tensor *out) {         \
    return pad(p, n, true, self, padding, out);                                                                \
  }                                                                                                            \
  em_status k_cpu_replication_pad##n##d(em_plan *p, em_tensor *self, em_ints padding, em_tensor *out) {        \
    return pad(p, n, false, self, padding, out);                                                               \
  }                                                                                                            \
  em_status k_cpu_reflection_pad##n##d_backward(em_plan *p, em_tensor *grad, em_tensor *self, em_ints padding, \
                                                em_tensor *out) {                                              \
    (void)self;                                                                                                \
    return pad_backward(p, n, true, grad, padding, out);                                                       \
  }                                                                                                            \
  em_status k_cpu_replication_pad##n##d_backward(em_plan *p, em_tensor *grad, em_tensor *self,                 \
                                                 em_ints padding, em_tensor *out) {                            \
    (void)self;                                                                                                \
    return pad_backward(p, n, false, grad, padding, out);                                                      \
  }
KERNELS(1)
KERNELS(2)
KERNELS(3)
