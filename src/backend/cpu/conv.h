// conv.h: a convolution and its two gradients on tensors, in plain loops: any float dtype, integers, any strides. False is never an
// answer here: what a library does not take comes to these.
#ifndef EMBER_BACKEND_CPU_CONV_H
#define EMBER_BACKEND_CPU_CONV_H
#include "../../dispatch/conv_geometry.h"
#include "conv_plan.h"

// The names are those of the plain convolution `c`: image -> made. `bias` may be NULL.
em_status em_priv_conv_made(const em_conv *c, const em_tensor *image, const em_tensor *weight, const em_tensor *bias, em_tensor *made);
// The image's gradient; also a transposed convolution, which has a bias for the image's channels.
em_status em_priv_conv_image(const em_conv *c, const em_tensor *made, const em_tensor *weight, const em_tensor *bias, em_tensor *image);
em_status em_priv_conv_weight(const em_conv *c, const em_tensor *image, const em_tensor *made, em_tensor *weight);

// The plan's input for image -> made; `block` holds its lists, and is given back to em_priv_conv_free_made.
em_status em_priv_conv_describe_made(const em_conv *c, const em_tensor *image, em_conv_job *j, em_conv_phase *f, int64_t **block);
void em_priv_conv_free_made(const em_conv *c, int64_t *block);
#endif
