// formulas_conv.c: gradients of convolution and of its gradients. A convolution is linear in input and in weight, so everything here is
// made of convolution and convolution_backward.
#include "formulas.h"
#include "gen_ops.h"

em_status formula_convolution(em_tensor *grad, em_tensor *input, em_tensor *weight, em_ints stride, em_ints padding, em_ints dilation,
                              bool transposed, em_ints output_padding, int64_t groups, em_bools mask, em_tensor **ginput,
                              em_tensor **gweight, em_tensor **gbias) {
  const uint8_t wanted[3] = {mask.p[0], mask.p[1], mask.n > 2 && mask.p[2]};
  const int64_t channels = grad->ndim > 1 ? grad->sizes[1] : 0;
  return em_call_convolution_backward(grad, input, weight, (em_ints){&channels, 1}, stride, padding, dilation, transposed, output_padding,
                                      groups, (em_bools){wanted, 3}, ginput, gweight, gbias);
}

// One of the gradients that convolution_backward makes: 0 of the input, 1 of the weight.
static em_status one_gradient(int which, em_tensor *grad, em_tensor *input, em_tensor *weight, em_ints stride, em_ints padding,
                              em_ints dilation, bool transposed, em_ints output_padding, int64_t groups, em_tensor **out) {
  const uint8_t wanted[3] = {which == 0, which == 1, 0};
  em_tensor *made[3] = {NULL, NULL, NULL};
  EM_PASS(em_call_convolution_backward(grad, input, weight, EM_INTS_NONE, stride, padding, dilation, transposed, output_padding, groups,
                                       (em_bools){wanted, 3}, &made[0], &made[1], &made[2]));
  *out = made[which];
  made[which] = NULL;
  for (int i = 0; i < 3; i++) em_tensor_release(made[i]);
  return EM_OK;
}

// *sum = *sum + more, which is taken over.
static em_status add_steal(em_tensor **sum, em_tensor *more) {
  em_tensor *both = NULL;
  if (*sum == NULL) {
    *sum = more;
    return EM_OK;
  }
  em_status st = em_call_add_Tensor(*sum, more, em_scalar_int(1), &both);
  em_tensor_release(more);
  if (st != EM_OK) return st;
  em_tensor_release(*sum);
  *sum = both;
  return EM_OK;
}

// The result would grow by convolution(ginput, weight) + convolution(input, gweight) + gbias.
static em_status grad_of_grad_output(em_tensors grads, em_tensor *input, em_tensor *weight, em_ints stride, em_ints padding,
                                     em_ints dilation, bool transposed, em_ints output_padding, int64_t groups, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *sum = NULL, *part = NULL, *bias = NULL;
  if (grads.p[0] != NULL) {
    EM_TRY(em_call_convolution(grads.p[0], weight, NULL, stride, padding, dilation, transposed, output_padding, groups, &part));
    EM_TRY(add_steal(&sum, part));
  }
  if (grads.p[1] != NULL) {
    EM_TRY(em_call_convolution(input, grads.p[1], NULL, stride, padding, dilation, transposed, output_padding, groups, &part));
    EM_TRY(add_steal(&sum, part));
  }
  if (grads.p[2] != NULL && sum != NULL) {
    int64_t sizes[EM_MAX_DIMS];
    for (int d = 0; d < sum->ndim; d++) sizes[d] = d == 1 ? grads.p[2]->numel : 1;
    EM_TRY(em_call_reshape(grads.p[2], (em_ints){sizes, sum->ndim}, &bias));
    part = em_tensor_retain(bias);
    EM_TRY(add_steal(&sum, part));
  }
  *out = sum;
  sum = NULL;
fail:
  em_tensor_release(sum);
  em_tensor_release(bias);
  return st;
}
// Only the bias' gradient was used: it spreads over the result's shape.
static em_status spread_bias(em_tensor *gbias, em_tensor *grad_output, em_tensor **out) {
  em_tensor *shaped;
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < grad_output->ndim; d++) sizes[d] = d == 1 ? gbias->numel : 1;
  EM_PASS(em_call_reshape(gbias, (em_ints){sizes, grad_output->ndim}, &shaped));
  em_status st = em_call_expand(shaped, (em_ints){grad_output->sizes, grad_output->ndim}, false, out);
  em_tensor_release(shaped);
  return st;
}

em_status formula_convolution_second(em_tensors grads, em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints stride,
                                     em_ints padding, em_ints dilation, bool transposed, em_ints output_padding, int64_t groups,
                                     em_bools mask, em_tensor **ggrad, em_tensor **ginput, em_tensor **gweight) {
  if (mask.p[0]) {
    if (grads.p[0] == NULL && grads.p[1] == NULL && grads.p[2] != NULL) EM_PASS(spread_bias(grads.p[2], grad_output, ggrad));
    else EM_PASS(grad_of_grad_output(grads, input, weight, stride, padding, dilation, transposed, output_padding, groups, ggrad));
  }
  if (mask.p[1] && grads.p[1] != NULL)
    EM_PASS(one_gradient(0, grad_output, input, grads.p[1], stride, padding, dilation, transposed, output_padding, groups, ginput));
  if (mask.p[2] && grads.p[0] != NULL)
    EM_PASS(one_gradient(1, grad_output, grads.p[0], weight, stride, padding, dilation, transposed, output_padding, groups, gweight));
  return EM_OK;
}
