// conv_kernels.c: the operators convolution and convolution_backward: from their arguments to whoever computes them.
#include "conv.h"
#include "gen_ops.h"

static void describe(const em_tensor *input, const int64_t *made, const em_tensor *weight, em_ints stride, em_ints padding,
                     em_ints dilation, bool transposed, int64_t groups, em_conv *c) {
  if (transposed) em_conv_describe(made, input->sizes, weight, stride, padding, dilation, groups, c);
  else em_conv_describe(input->sizes, made, weight, stride, padding, dilation, groups, c);
}

em_status k_cpu_convolution(em_plan *p, em_tensor *input, em_tensor *weight, em_tensor *bias, em_ints stride, em_ints padding,
                            em_ints dilation, bool transposed, em_ints output_padding, int64_t groups, em_tensor *out) {
  em_conv c;
  (void)p;
  (void)output_padding;
  describe(input, out->sizes, weight, stride, padding, dilation, transposed, groups, &c);
  if (transposed) return em_priv_conv_image(&c, input, weight, bias, out);
  return em_priv_conv_made(&c, input, weight, bias, out);
}

static em_status bias_gradient(uint64_t ks, em_tensor *grad_output, em_ints bias_sizes, em_tensor **out) {
  int64_t dims[EM_MAX_DIMS];
  int n = 0;
  if (grad_output->numel == 0 && bias_sizes.n >= 0)
    return em_redispatch_zeros(ks, bias_sizes, grad_output->dtype, -1, grad_output->device, -1, out);
  for (int d = 0; d < grad_output->ndim; d++)
    if (d != 1) dims[n++] = d;
  return em_redispatch_sum_dim_IntList(ks, grad_output, (em_ints){dims, n}, false, EM_DTYPE_NONE, out);
}

em_status n_cpu_convolution_backward(uint64_t ks, em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints bias_sizes,
                                     em_ints stride, em_ints padding, em_ints dilation, bool transposed, em_ints output_padding,
                                     int64_t groups, em_bools output_mask, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  em_status st = EM_OK;
  em_plan p;
  em_conv c;
  em_tensor *made[3] = {NULL, NULL, NULL};
  em_plan_init(&p);
  EM_PASS(em_priv_check_convolution_backward(grad_output, input, weight, stride, padding, dilation, transposed,
                                             output_padding, groups, &p));
  describe(input, grad_output->sizes, weight, stride, padding, dilation, transposed, groups, &c);
  for (int i = 0; i < 2; i++)
    if (output_mask.p[i]) EM_TRY(em_plan_alloc(&p, i, false, &made[i]));
  if (made[0] != NULL)
    EM_TRY(transposed ? em_priv_conv_made(&c, grad_output, weight, NULL, made[0])
                      : em_priv_conv_image(&c, grad_output, weight, NULL, made[0]));
  if (made[1] != NULL)
    EM_TRY(transposed ? em_priv_conv_weight(&c, grad_output, input, made[1]) : em_priv_conv_weight(&c, input, grad_output, made[1]));
  if (output_mask.p[2]) EM_TRY(bias_gradient(ks, grad_output, bias_sizes, &made[2]));
  *out0 = made[0];
  *out1 = made[1];
  *out2 = made[2];
  return EM_OK;
fail:
  for (int i = 0; i < 3; i++) em_tensor_release(made[i]);
  return st;
}
