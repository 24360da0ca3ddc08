// shuffle.c: checks of channels to pixels and back; channels mixed, which is views and one copy.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

// x seen in `wide` sizes, turned by `order`, seen in `sizes`, laid out as x is.
static em_status rearranged(em_tensor *x, int n, const int64_t *wide, const int64_t *order, int m, const int64_t *sizes,
                            em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL, *c = NULL;
  EM_TRY(em_call_reshape(x, (em_ints){wide, n}, &a));
  EM_TRY(em_call_permute(a, (em_ints){order, n}, &b));
  EM_TRY(em_call_clone(b, EM_FORMAT_CONTIGUOUS, &c));
  EM_CLEAR_TENSOR(&b);
  EM_TRY(em_call_view(c, (em_ints){sizes, m}, &b));
  EM_TRY(em_call_contiguous(b, x->ndim == m ? em_shape_suggested_format(x) : EM_FORMAT_CONTIGUOUS, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(c);
  return st;
}
static em_status check_pixels(const char *op, const char *factor, em_tensor *self, int64_t value) {
  if (self->ndim < 3)
    return em_fail(EM_ERR_RUNTIME, "%s expects input to have at least 3 dimensions, but got input with %d dimension(s)",
                   op, self->ndim);
  if (self->ndim + 2 > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "%s: at most %d dimensions are supported", op, EM_MAX_DIMS - 2);
  if (value <= 0) return em_fail(EM_ERR_RUNTIME, "%s expects a positive %s, but got %lld", op, factor, (long long)value);
  return EM_OK;
}
static void plan_pixels(em_tensor *self, int64_t c, int64_t h, int64_t w, em_plan *p) {
  int64_t sizes[EM_MAX_DIMS];
  const int n = self->ndim;
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)n);
  sizes[n - 3] = c;
  sizes[n - 2] = h;
  sizes[n - 1] = w;
  em_plan_output_set(p, self->dtype, n, sizes, self->device);
  if (n != 4 || em_shape_suggested_format(self) != EM_FORMAT_CHANNELS_LAST) return;
  p->out[0].strided = true;
  em_priv_channels_last_strides(n, sizes, p->out[0].strides);
}
em_status check_pixel_shuffle(em_tensor *self, int64_t r, em_plan *p) {
  EM_PASS(check_pixels("pixel_shuffle", "upscale_factor", self, r));
  const int n = self->ndim;
  const int64_t c = self->sizes[n - 3];
  int64_t area, h, w;
  if (__builtin_mul_overflow(r, r, &area))
    return em_fail(EM_ERR_RUNTIME, "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=%lld",
                   (long long)r);
  if (c % area != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                   "upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
                   (long long)c, (long long)area);
  if (__builtin_mul_overflow(self->sizes[n - 2], r, &h) || __builtin_mul_overflow(self->sizes[n - 1], r, &w))
    return em_fail(EM_ERR_RUNTIME, "pixel_shuffle: upscale_factor is too large: %lld", (long long)r);
  plan_pixels(self, c / area, h, w, p);
  return EM_OK;
}
em_status check_pixel_unshuffle(em_tensor *self, int64_t r, em_plan *p) {
  EM_PASS(check_pixels("pixel_unshuffle", "downscale_factor", self, r));
  const int n = self->ndim;
  const int64_t h = self->sizes[n - 2], w = self->sizes[n - 1];
  if (h % r != 0 || w % r != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "pixel_unshuffle expects %s to be divisible by downscale_factor, but input.size(%d)=%lld is not "
                   "divisible by %lld",
                   h % r != 0 ? "height" : "width", h % r != 0 ? -2 : -1, (long long)(h % r != 0 ? h : w), (long long)r);
  int64_t area, channels;
  if (__builtin_mul_overflow(r, r, &area) || __builtin_mul_overflow(area, self->sizes[n - 3], &channels))
    return em_fail(EM_ERR_RUNTIME, "pixel_unshuffle: downscale_factor is too large: %lld", (long long)r);
  plan_pixels(self, channels, h / r, w / r, p);
  if (self->numel == 0 && r == 1) {  // PyTorch's strides of nothing: a clone's
    p->out[0].strided = true;
    return em_priv_format_strides(self, EM_FORMAT_PRESERVE, p->out[0].strides);
  }
  return EM_OK;
}
em_status c_channel_shuffle(em_tensor *self, int64_t groups, em_tensor **out) {
  char a[256];
  if (self->ndim <= 2)
    return em_fail(EM_ERR_RUNTIME, "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a));
  if (self->ndim + 1 > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "channel_shuffle: at most %d dimensions are supported", EM_MAX_DIMS - 1);
  if (groups <= 0)
    return em_fail(EM_ERR_RUNTIME, "Number of groups to divide channels in must be positive. Value of groups:%lld",
                   (long long)groups);
  const int64_t c = self->sizes[1];
  if (c % groups != 0)
    return em_fail(EM_ERR_RUNTIME, "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
                   (long long)c, (long long)groups);
  int64_t wide[EM_MAX_DIMS], order[EM_MAX_DIMS];
  wide[0] = self->sizes[0];
  wide[1] = groups;
  wide[2] = c / groups;
  order[0] = 0;
  order[1] = 2;
  order[2] = 1;
  for (int d = 2; d < self->ndim; d++) {
    wide[d + 1] = self->sizes[d];
    order[d + 1] = d + 1;
  }
  return rearranged(self, self->ndim + 1, wide, order, self->ndim, self->sizes, out);
}
