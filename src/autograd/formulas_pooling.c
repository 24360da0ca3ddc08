// formulas_pooling.c: helpers of derivatives_pooling.yaml, derivatives_padding.yaml and derivatives_fold.yaml.
#include "formulas.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

// What a pool whose maxima lie at `indices` takes from `grad`, plane by plane.
em_status formula_pooled(em_tensor *grad, em_tensor *indices, int64_t spatial, em_tensor **out) {
  if (indices->numel == 0)
    return em_call_new_zeros(grad, (em_ints){indices->sizes, indices->ndim}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out);
  int64_t sizes[EM_MAX_DIMS];
  const int planes = grad->ndim - (int)spatial;
  for (int d = 0; d < planes; d++) sizes[d] = grad->sizes[d];
  sizes[planes] = -1;
  OWN flat = NULL;
  OWN at = NULL;
  OWN picked = NULL;
  EM_PASS(em_call_reshape(grad, (em_ints){sizes, planes + 1}, &flat));
  EM_PASS(em_call_reshape(indices, (em_ints){sizes, planes + 1}, &at));
  EM_PASS(em_call_gather(flat, -1, at, false, &picked));
  return em_call_view(picked, (em_ints){indices->sizes, indices->ndim}, out);
}
// The adaptive average pool to the last sizes of `sizes`.
em_status formula_adaptive_avg(em_tensor *grad, em_ints sizes, int64_t spatial, em_tensor **out) {
  const em_ints last = {sizes.p + sizes.n - spatial, spatial};
  return spatial == 2 ? em_call__adaptive_avg_pool2d(grad, last, out) : em_call__adaptive_avg_pool3d(grad, last, out);
}
// Padding's inverse: padding by as much less.
em_status formula_unpad(em_tensor *grad, em_ints pad, em_tensor **out) {
  int64_t back[2 * EM_MAX_DIMS];
  for (int64_t i = 0; i < pad.n; i++) back[i] = -pad.p[i];
  return em_call_constant_pad_nd(grad, (em_ints){back, pad.n}, em_scalar_int(0), out);
}
// What was wrapped over the edges of dim d, added to where it came from.
static em_status unwrap(em_tensor *grad, int d, int64_t left, int64_t right, em_tensor **out) {
  const int64_t l = left > 0 ? left : 0, r = right > 0 ? right : 0, kept = grad->sizes[d] - l - r;
  OWN middle = NULL;
  OWN edge = NULL;
  OWN moved = NULL;
  OWN sum = NULL;
  OWN more = NULL;
  int64_t pad[2 * EM_MAX_DIMS] = {0}, *side = pad + 2 * (grad->ndim - 1 - d);
  const em_ints pads = {pad, 2 * grad->ndim};
  EM_PASS(em_call_narrow(grad, d, l, kept, &middle));
  if (l > 0) {
    side[0] = kept - l;
    EM_PASS(em_call_narrow(grad, d, 0, l, &edge));
    EM_PASS(em_call_constant_pad_nd(edge, pads, em_scalar_int(0), &moved));
    EM_PASS(em_call_add_Tensor(middle, moved, em_scalar_int(1), &sum));
    EM_CLEAR_TENSOR(&edge);
    EM_CLEAR_TENSOR(&moved);
  } else {
    sum = em_tensor_retain(middle);
  }
  if (r > 0) {
    side[0] = 0;
    side[1] = kept - r;
    EM_PASS(em_call_narrow(grad, d, l + kept, r, &edge));
    EM_PASS(em_call_constant_pad_nd(edge, pads, em_scalar_int(0), &moved));
    EM_PASS(em_call_add_Tensor(sum, moved, em_scalar_int(1), &more));
  } else {
    more = em_tensor_retain(sum);
  }
  side[0] = left < 0 ? -left : 0;
  side[1] = right < 0 ? -right : 0;
  if (side[0] == 0 && side[1] == 0) {
    *out = em_tensor_retain(more);
    return EM_OK;
  }
  return em_call_constant_pad_nd(more, pads, em_scalar_int(0), out);
}
em_status formula_unwrap(em_tensor *grad, em_ints pad, em_tensor **out) {
  em_tensor *t = em_tensor_retain(grad);
  for (int64_t k = 0; k < pad.n; k += 2) {
    em_tensor *next = NULL;
    em_status st = pad.p[k] == 0 && pad.p[k + 1] == 0
                       ? EM_OK : unwrap(t, grad->ndim - 1 - (int)(k / 2), pad.p[k], pad.p[k + 1], &next);
    if (st != EM_OK) {
      em_tensor_release(t);
      return st;
    }
    if (next == NULL) continue;
    em_tensor_release(t);
    t = next;
  }
  *out = t;
  return EM_OK;
}
// Blocks back to a picture of the last two of `sizes`.
em_status formula_im2col(em_tensor *grad, em_ints sizes, em_ints kernel, em_ints dilation, em_ints padding,
                         em_ints stride, em_tensor **out) {
  return em_call_col2im(grad, (em_ints){sizes.p + sizes.n - 2, 2}, kernel, dilation, padding, stride, out);
}
em_status formula_channel_shuffle(em_tensor *grad, int64_t groups, em_tensor **out) {
  return em_call_channel_shuffle(grad, grad->sizes[1] == 0 ? 1 : grad->sizes[1] / groups, out);
}
