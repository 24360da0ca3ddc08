// conv_geometry.h: a convolution as its kernels see it: always three dims of space, groups apart, parameters in full. A transposed
// convolution is described by the plain one that it is the gradient of: its input has the sizes `out`, its result the sizes `in`, and
// its weight is laid out as the plain one's is.
#ifndef EMBER_DISPATCH_CONV_GEOMETRY_H
#define EMBER_DISPATCH_CONV_GEOMETRY_H
#include "../core/shape.h"
#include "../core/value.h"
#include "plan.h"

#define EM_CONV_SPACE 3
typedef struct em_conv {
  int space;              // how many of the three dims there are; the others, in front, have size 1
  int64_t n, groups;
  int64_t ic, oc;         // channels of one group
  int64_t in[EM_CONV_SPACE], out[EM_CONV_SPACE], kernel[EM_CONV_SPACE];
  int64_t stride[EM_CONV_SPACE], pad[EM_CONV_SPACE], dilation[EM_CONV_SPACE];
} em_conv;

// The i-th of a list that may hold one value for all dims.
static inline int64_t em_conv_at(em_ints l, int i) { return l.n == 1 ? l.p[0] : l.p[i]; }

// `image` has the sizes of the plain convolution's input, `made` those of its result. Checks nothing.
static inline void em_conv_describe(const int64_t *image, const int64_t *made, const em_tensor *weight, em_ints stride, em_ints padding,
                                    em_ints dilation, int64_t groups, em_conv *c) {
  const int space = c->space = weight->ndim - 2, first = EM_CONV_SPACE - space;
  c->n = image[0];
  c->groups = groups;
  c->ic = weight->sizes[1];
  c->oc = weight->sizes[0] / groups;
  for (int d = 0; d < EM_CONV_SPACE; d++) {
    const bool is = d >= first;
    const int at = is ? d - first : 0;
    c->in[d] = is ? image[2 + at] : 1;
    c->out[d] = is ? made[2 + at] : 1;
    c->kernel[d] = is ? weight->sizes[2 + at] : 1;
    c->stride[d] = is ? em_conv_at(stride, at) : 1;
    c->pad[d] = is ? em_conv_at(padding, at) : 0;
    c->dilation[d] = is ? em_conv_at(dilation, at) : 1;
  }
}

// Whether results and gradients of pictures lie channels last: when input or weight does, except where PyTorch's kernel knows no such
// layout (3 dims of space in other dtypes than float32 and bfloat16).
static inline bool em_conv_channels_last(const em_tensor *input, const em_tensor *weight) {
  if (input->ndim == 5 && input->dtype != EM_F32 && input->dtype != EM_BF16 && input->dtype != EM_F16) return false;
  if (input->ndim != 4 && input->ndim != 5) return false;
  return em_shape_suggested_format(input) != EM_FORMAT_CONTIGUOUS || em_shape_suggested_format(weight) != EM_FORMAT_CONTIGUOUS;
}

// src/ops/conv.c: raises every error of convolution_backward and plans the three gradients, wanted or not.
EM_PRIV em_status em_priv_check_convolution_backward(em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints stride,
                                                     em_ints padding, em_ints dilation, bool transposed, em_ints output_padding,
                                                     int64_t groups, em_plan *p);
#endif
