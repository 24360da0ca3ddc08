// shuffle.c: channels to pixels and back, channels mixed: views and one copy.
#include <string.h>
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
em_status c_pixel_shuffle(em_tensor *self, int64_t r, em_tensor **out) {
  EM_PASS(check_pixels("pixel_shuffle", "upscale_factor", self, r));
  const int n = self->ndim, b = n - 3;
  const int64_t c = self->sizes[b], h = self->sizes[b + 1], w = self->sizes[b + 2];
  int64_t area;
  if (__builtin_mul_overflow(r, r, &area))
    return em_fail(EM_ERR_RUNTIME, "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=%lld",
                   (long long)r);
  if (c % area != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                   "upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
                   (long long)c, (long long)area);
  int64_t wide[EM_MAX_DIMS], order[EM_MAX_DIMS], sizes[EM_MAX_DIMS];
  for (int d = 0; d < b; d++) {
    sizes[d] = wide[d] = self->sizes[d];
    order[d] = d;
  }
  const int64_t parts[] = {c / area, r, r, h, w}, turn[] = {0, 3, 1, 4, 2}, last[] = {c / area, h * r, w * r};
  memcpy(wide + b, parts, sizeof parts);
  memcpy(sizes + b, last, sizeof last);
  for (int d = 0; d < 5; d++) order[b + d] = b + turn[d];
  return rearranged(self, n + 2, wide, order, n, sizes, out);
}
em_status c_pixel_unshuffle(em_tensor *self, int64_t r, em_tensor **out) {
  EM_PASS(check_pixels("pixel_unshuffle", "downscale_factor", self, r));
  const int n = self->ndim, b = n - 3;
  const int64_t c = self->sizes[b], h = self->sizes[b + 1], w = self->sizes[b + 2];
  if (h % r != 0 || w % r != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "pixel_unshuffle expects %s to be divisible by downscale_factor, but input.size(%d)=%lld is not "
                   "divisible by %lld",
                   h % r != 0 ? "height" : "width", h % r != 0 ? -2 : -1, (long long)(h % r != 0 ? h : w), (long long)r);
  int64_t wide[EM_MAX_DIMS], order[EM_MAX_DIMS], sizes[EM_MAX_DIMS], area, channels;
  if (__builtin_mul_overflow(r, r, &area) || __builtin_mul_overflow(area, c, &channels))
    return em_fail(EM_ERR_RUNTIME, "pixel_unshuffle: downscale_factor is too large: %lld", (long long)r);
  for (int d = 0; d < b; d++) {
    sizes[d] = wide[d] = self->sizes[d];
    order[d] = d;
  }
  const int64_t parts[] = {c, h / r, r, w / r, r}, turn[] = {0, 2, 4, 1, 3}, last[] = {channels, h / r, w / r};
  memcpy(wide + b, parts, sizeof parts);
  memcpy(sizes + b, last, sizeof last);
  for (int d = 0; d < 5; d++) order[b + d] = b + turn[d];
  if (self->numel == 0) {  // PyTorch's strides of nothing: a clone's
    em_tensor *copy = NULL;
    EM_PASS(em_call_clone(self, EM_FORMAT_NONE, &copy));
    em_status st = em_call_view(copy, (em_ints){sizes, n}, out);
    em_tensor_release(copy);
    return st;
  }
  return rearranged(self, n + 2, wide, order, n, sizes, out);
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
