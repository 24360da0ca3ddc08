// fold.c: pictures to columns of blocks (im2col) and back, added up (col2im); channels to pixels and back.
#include "dense.h"
#include <string.h>
#include "../../core/threads.h"
#include "gen_ops.h"

typedef struct job {
  int64_t size[2], kernel[2], dilation[2], pad[2], stride[2], count[2], taps, area, blocks;
  const char *from;
  char *to;
  int parts;  // numbers an element
  bool wide;
  size_t item;
} job;
static void describe(job *j, const em_tensor *picture, em_ints kernel, em_ints dilation, em_ints pad, em_ints stride) {
  for (int k = 0; k < 2; k++) {
    j->size[k] = picture->sizes[picture->ndim - 2 + k];
    j->kernel[k] = kernel.p[k];
    j->dilation[k] = dilation.p[k];
    j->pad[k] = pad.p[k];
    j->stride[k] = stride.p[k];
    j->count[k] = (j->size[k] + 2 * pad.p[k] - dilation.p[k] * (kernel.p[k] - 1) - 1) / stride.p[k] + 1;
  }
  j->taps = j->kernel[0] * j->kernel[1];
  j->area = j->size[0] * j->size[1];
  j->blocks = j->count[0] * j->count[1];
}
// Blocks [lo, hi) along dim k whose tap at offset `at` lies inside.
static void inside(const job *j, int k, int64_t at, int64_t *lo, int64_t *hi) {
  const int64_t s = j->stride[k], n = j->count[k];
  *lo = at >= 0 ? 0 : (-at + s - 1) / s;
  *hi = j->size[k] > at ? (j->size[k] - at + s - 1) / s : 0;
  if (*hi > n) *hi = n;
  if (*lo > *hi) *lo = *hi;
}
static void copy_row(char *to, const char *from, int64_t stride, int64_t n, size_t item) {
  if (stride == 1) {
    memcpy(to, from, (size_t)n * item);
    return;
  }
#define CASE(w) case w: for (int64_t i = 0; i < n; i++) memcpy(to + i * w, from + i * stride * w, w); break
  switch (item) {
    CASE(1);
    CASE(2);
    CASE(4);
    CASE(8);
    default: for (int64_t i = 0; i < n; i++) memcpy(to + i * 16, from + i * stride * 16, 16);
  }
#undef CASE
}
// One row of the columns: a channel's tap, over all blocks.
static em_status unfold_rows(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t item = (int64_t)j->item;
  for (int64_t r = begin; r < end; r++) {
    const int64_t kw = r % j->kernel[1], kh = r / j->kernel[1] % j->kernel[0], c = r / j->taps;
    const int64_t y0 = kh * j->dilation[0] - j->pad[0], x0 = kw * j->dilation[1] - j->pad[1];
    int64_t top, bottom, left, right;
    inside(j, 0, y0, &top, &bottom);
    inside(j, 1, x0, &left, &right);
    char *to = j->to + r * j->blocks * item;
    const char *plane = j->from + c * j->area * item;
    memset(to, 0, (size_t)(top * j->count[1] * item));
    for (int64_t y = top; y < bottom; y++) {
      char *row = to + y * j->count[1] * item;
      memset(row, 0, (size_t)(left * item));
      if (right > left)
        copy_row(row + left * item, plane + ((y0 + y * j->stride[0]) * j->size[1] + x0 + left * j->stride[1]) * item,
                 j->stride[1], right - left, j->item);
      memset(row + right * item, 0, (size_t)((j->count[1] - right) * item));
    }
    memset(to + bottom * j->count[1] * item, 0, (size_t)((j->count[0] - bottom) * j->count[1] * item));
  }
  return EM_OK;
}
#define GIVE(T)                                                                                                   \
  static void fold_##T(const job *j, int64_t c) {                                                                 \
    T *plane = (T *)(void *)j->to + c * j->area * j->parts;                                                       \
    const T *from = (const T *)(const void *)j->from + c * j->taps * j->blocks * j->parts;                        \
    memset(plane, 0, sizeof(T) * (size_t)(j->area * j->parts));                                                   \
    for (int64_t k = 0; k < j->taps; k++, from += j->blocks * j->parts) {                                         \
      const int64_t y0 = k / j->kernel[1] * j->dilation[0] - j->pad[0];                                           \
      const int64_t x0 = k % j->kernel[1] * j->dilation[1] - j->pad[1];                                           \
      int64_t top, bottom, left, right;                                                                           \
      inside(j, 0, y0, &top, &bottom);                                                                            \
      inside(j, 1, x0, &left, &right);                                                                            \
      for (int64_t y = top; y < bottom; y++) {                                                                    \
        const T *row = from + y * j->count[1] * j->parts;                                                         \
        T *to = plane + ((y0 + y * j->stride[0]) * j->size[1] + x0) * j->parts;                                   \
        for (int64_t x = left; x < right; x++)                                                                    \
          for (int64_t p = 0; p < j->parts; p++) to[x * j->stride[1] * j->parts + p] += row[x * j->parts + p];    \
      }                                                                                                           \
    }                                                                                                             \
  }
GIVE(float)
GIVE(double)
static em_status fold_planes(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t c = begin; c < end; c++) {
    if (j->wide) fold_double(j, c);
    else fold_float(j, c);
  }
  return EM_OK;
}

em_status k_cpu_im2col(em_plan *plan, em_tensor *self, em_ints kernel, em_ints dilation, em_ints pad, em_ints stride,
                       em_tensor *out) {
  (void)plan;
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  job j = {.item = em_tensor_itemsize(self)};
  describe(&j, self, kernel, dilation, pad, stride);
  EM_TRY(em_dense_in(self, self->dtype, &x));
  EM_TRY(em_dense_out(out, out->dtype, &y));
  j.from = em_tensor_data(x);
  j.to = em_tensor_data(y);
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / j.blocks, EM_LONG_NUMEL / 2 / j.blocks + 1, unfold_rows, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
em_status k_cpu_col2im(em_plan *plan, em_tensor *self, em_ints output_size, em_ints kernel, em_ints dilation,
                       em_ints pad, em_ints stride, em_tensor *out) {
  (void)plan, (void)output_size;
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  const int compute = out->dtype == EM_BOOL ? EM_F32 : em_priv_dtypes[out->dtype].compute;
  job j = {.parts = em_dtype_is_complex(compute) ? 2 : 1, .wide = compute == EM_F64 || compute == EM_C128};
  describe(&j, out, kernel, dilation, pad, stride);
  EM_TRY(em_dense_in(self, compute, &x));
  EM_TRY(em_dense_out(out, compute, &y));
  j.from = em_tensor_data(x);
  j.to = em_tensor_data(y);
  void *token = em_priv_begin_long(self->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / j.area, EM_LONG_NUMEL / 2 / (j.taps * j.blocks) + 1, fold_planes, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}

// --- pixels: r x r channels are one, r times as high and wide
typedef struct shuffle {
  int64_t r, high, wide;   // of the planes with many channels
  bool to_pixels;
  const char *from;
  char *to;
  int64_t item;
} shuffle;
#define WEAVE(W)                                                                                                \
  static void weave_##W(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {            \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step * W, from + i * from_step * W, W);                  \
  }
WEAVE(1)
WEAVE(2)
WEAVE(4)
WEAVE(8)
WEAVE(16)
// Rows of pixels: each is woven of r rows of channels, or taken apart into them.
static em_status pixel_rows(void *context, int64_t begin, int64_t end) {
  const shuffle *s = context;
  void (*weave)(char *, int64_t, const char *, int64_t, int64_t) =
      s->item == 1 ? weave_1 : s->item == 2 ? weave_2 : s->item == 4 ? weave_4 : s->item == 8 ? weave_8 : weave_16;
  const int64_t r = s->r, area = s->high * s->wide;
  for (int64_t row = begin; row < end; row++) {
    const int64_t y = row % (s->high * r), plane = row / (s->high * r);
    for (int64_t j = 0; j < r; j++) {
      const int64_t pixel = row * s->wide * r + j, channel = (plane * r * r + y % r * r + j) * area + y / r * s->wide;
      if (s->to_pixels) weave(s->to + pixel * s->item, r, s->from + channel * s->item, 1, s->wide);
      else weave(s->to + channel * s->item, 1, s->from + pixel * s->item, r, s->wide);
    }
  }
  return EM_OK;
}
static em_status shuffle_pixels(em_tensor *self, int64_t r, bool to_pixels, em_tensor *out) {
  if (out->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  const em_tensor *channels = to_pixels ? self : out;
  shuffle s = {.r = r, .high = channels->sizes[channels->ndim - 2], .wide = channels->sizes[channels->ndim - 1],
               .to_pixels = to_pixels, .item = (int64_t)em_tensor_itemsize(self)};
  EM_TRY(em_dense_in(self, self->dtype, &x));
  EM_TRY(em_dense_out(out, out->dtype, &y));
  s.from = em_tensor_data(x);
  s.to = em_tensor_data(y);
  const int64_t width = s.wide * r;
  void *token = em_priv_begin_long(out->numel > EM_LONG_NUMEL);
  st = em_threads_for(out->numel / width, EM_LONG_NUMEL / width + 1, pixel_rows, &s);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(out, y);
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
em_status k_cpu_pixel_shuffle(em_plan *p, em_tensor *self, int64_t upscale_factor, em_tensor *out) {
  (void)p;
  return shuffle_pixels(self, upscale_factor, true, out);
}
em_status k_cpu_pixel_unshuffle(em_plan *p, em_tensor *self, int64_t downscale_factor, em_tensor *out) {
  (void)p;
  return shuffle_pixels(self, downscale_factor, false, out);
}
