// formulas.h: what derivatives.yaml calls where its language is too small: loops over dims, choices, constants.
// Everything here is made of operators, so second derivatives, other dtypes and other devices come along. The generator
// reads the prototypes: arguments are borrowed, results new references; `const em_node *` receives the running node.
#ifndef EMBER_AUTOGRAD_FORMULAS_H
#define EMBER_AUTOGRAD_FORMULAS_H
#include <string.h>
#include "saved.h"

// --- numbers
EM_PRIV em_scalar formula_scalar_add(em_scalar a, em_scalar b);
EM_PRIV em_scalar formula_scalar_sub(em_scalar a, em_scalar b);
EM_PRIV int64_t formula_size(em_tensor *t, int64_t dim);  // -1: the last one; 1 for a 0-dim tensor
EM_PRIV em_status formula_scale(em_tensor *t, em_scalar s, em_tensor **out);              // t * s; t itself when s is 1
EM_PRIV em_status formula_subtract_from(em_scalar s, em_tensor *t, em_tensor **out);      // s - t
EM_PRIV em_status formula_conj(em_tensor *t, em_tensor **out);
// The j-th gradient of a node with several outputs: zeros when it is undefined.
EM_PRIV em_status formula_grad(const em_node *node, int64_t j, em_tensor *grad, em_tensor **out);

// --- arithmetic
EM_PRIV em_status formula_div_self(em_tensor *grad, em_tensor *other, const char *mode, em_tensor **out);
EM_PRIV em_status formula_div_other(em_tensor *grad, em_tensor *self, em_tensor *other, const char *mode,
                                    em_tensor **out);
EM_PRIV em_status formula_pow_scalar(em_tensor *grad, em_tensor *self, em_scalar exponent, em_tensor **out);
EM_PRIV em_status formula_pow_self(em_tensor *grad, em_tensor *self, em_tensor *exponent, em_tensor **out);
EM_PRIV em_status formula_pow_exponent(em_tensor *grad, em_tensor *self, em_tensor *exponent, em_tensor *result,
                                       em_tensor **out);
EM_PRIV em_status formula_pow_scalar_base(em_tensor *grad, em_scalar base, em_tensor *exponent, em_tensor *result,
                                          em_tensor **out);
EM_PRIV em_status formula_larger(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out);  // ties share
EM_PRIV em_status formula_fmax(em_tensor *grad, em_tensor *self, em_tensor *other, bool first, em_tensor **out);
EM_PRIV em_status formula_clamp(em_tensor *grad, em_tensor *self, em_scalar min, em_scalar max, em_tensor **out);
EM_PRIV em_status formula_clamp_tensor(em_tensor *grad, em_tensor *self, em_tensor *min, em_tensor *max,
                                       em_tensor **out);
EM_PRIV em_status formula_clamp_bounds(em_tensor *grad, em_tensor *self, em_tensor *min, em_tensor *max, em_bools mask,
                                       em_tensor **gmin, em_tensor **gmax);

// --- second derivatives: grad is the gradient of the first derivative, grad_output what went into it
EM_PRIV em_status formula_gelu_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, const char *approximate,
                                      em_tensor **out);
EM_PRIV em_status formula_silu_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_tensor **out);
EM_PRIV em_status formula_elu_second(em_tensor *grad, em_tensor *grad_output, em_scalar alpha, em_scalar scale,
                                     em_scalar input_scale, bool is_result, em_tensor *x, em_tensor **out);
EM_PRIV em_status formula_softplus_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_scalar beta,
                                          em_scalar threshold, em_tensor **out);
EM_PRIV em_status formula_softmax_second(em_tensor *grad, em_tensor *grad_output, em_tensor *output, int64_t dim,
                                         em_tensor **out);
EM_PRIV em_status formula_mse_grad_output(em_tensor *grad, em_tensor *self, em_tensor *target, int64_t reduction,
                                          em_tensor **out);
EM_PRIV em_status formula_mse_second(em_tensor *grad, em_tensor *grad_output, int64_t reduction, em_tensor **out);
EM_PRIV em_status formula_bce_target(em_tensor *grad, em_tensor *self, em_tensor *weight, int64_t reduction,
                                     em_tensor **out);
EM_PRIV em_status formula_nll_second(em_tensor *grad, em_tensor *target, em_tensor *weight, int64_t reduction,
                                     int64_t ignore_index, em_tensor **out);
EM_PRIV em_status formula_nll2d_second(em_tensor *grad, em_tensor *target, em_tensor *weight, int64_t reduction,
                                     int64_t ignore_index, em_tensor **out);
EM_PRIV em_status formula_embedding_second(em_tensor *grad, em_tensor *indices, int64_t padding_idx, em_tensor **out);

// --- activations and losses
EM_PRIV em_status formula_celu(em_tensor *grad, em_tensor *x, em_scalar alpha, bool is_result, em_tensor **out);
EM_PRIV em_status formula_mish_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_tensor **out);
// grad * slope, summed when the loss was reduced: the gradient of grad_output. slope: the first derivative for 1.
EM_PRIV em_status formula_reduced_dot(em_tensor *grad, em_tensor *slope, int64_t reduction, em_tensor **out);
// t, or t over its number of elements when the loss was a mean
EM_PRIV em_status formula_over_mean(em_tensor *t, int64_t reduction, em_tensor **out);
// the same of losses that have one value a row
EM_PRIV em_status formula_rows_dot(em_tensor *grad, em_tensor *slope, int64_t reduction, em_tensor **out);
EM_PRIV em_status formula_multi_margin_second(em_tensor *grad, em_scalar p, em_tensor **out);
EM_PRIV em_status formula_bag_second(em_tensor *grad, em_tensor *indices, em_tensor *offsets, bool scale, int64_t mode,
                                     em_tensor *per_sample_weights, int64_t padding_idx, em_tensor **out);
EM_PRIV em_status formula_bce_logits(em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                     em_tensor *pos_weight, int64_t reduction, em_tensor **out);
EM_PRIV em_status formula_bce_logits_target(em_tensor *grad, em_tensor *self, em_tensor *weight, em_tensor *pos_weight,
                                            int64_t reduction, em_tensor **out);

// --- reductions
EM_PRIV em_status formula_sum(em_tensor *grad, em_ints sizes, em_ints dims, bool keepdim, em_tensor **out);
EM_PRIV em_status formula_mean(em_tensor *grad, em_ints sizes, em_ints dims, bool keepdim, em_tensor **out);
EM_PRIV em_status formula_var(em_tensor *grad, em_tensor *self, em_ints dims, em_scalar correction, bool keepdim,
                              em_tensor **out);
EM_PRIV em_status formula_std(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, em_scalar correction,
                              bool keepdim, em_tensor **out);
EM_PRIV em_status formula_var_mean(em_tensor *grad_var, em_tensor *grad_mean, em_tensor *self, em_ints dims,
                                   em_scalar correction, bool keepdim, em_tensor **out);
EM_PRIV em_status formula_prod(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_prod_dim(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, bool keepdim,
                                   em_tensor **out);
EM_PRIV em_status formula_norm(em_tensor *grad, em_tensor *self, em_tensor *result, em_scalar ord, em_ints dims,
                               bool keepdim, em_tensor **out);
EM_PRIV em_status formula_extremes(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, bool keepdim,
                                   bool nan_counts, em_tensor **out);
EM_PRIV em_status formula_selected(em_tensor *grad, int64_t dim, em_tensor *indices, em_ints sizes, bool keepdim,
                                   em_tensor **out);
EM_PRIV em_status formula_logsumexp(em_tensor *grad, em_tensor *self, em_tensor *result, em_ints dims, bool keepdim,
                                    em_tensor **out);

// --- products: gradients of mm's operands; one that was column-major gets a column-major gradient
EM_PRIV em_status formula_mm_first(em_tensor *grad, em_tensor *mat2, em_ints sizes, em_ints strides, em_scalar alpha,
                                   em_tensor **out);
EM_PRIV em_status formula_mm_second(em_tensor *grad, em_tensor *mat1, em_ints sizes, em_ints strides, em_scalar alpha,
                                    em_tensor **out);

// --- native_maths.yaml, native_special.yaml (formulas_maths.c)
EM_PRIV em_status formula_not_implemented(const char *what, em_tensor **out);  // raises when the gradient is asked for
// The two gradients of an operator that is recorded but has no derivative; one gradient of another.
EM_PRIV em_status formula_no_derivative(const char *op, em_tensor *grad, em_bools mask, em_tensor **first, em_tensor **second);
EM_PRIV em_status formula_not_derivable(const char *op, em_tensor **out);
EM_PRIV em_status formula_cumsum(em_tensor *grad, int64_t dim, em_tensor **out);
EM_PRIV em_status formula_cumprod(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out);
EM_PRIV em_status formula_logcumsumexp(em_tensor *grad, em_tensor *self, em_tensor *result, int64_t dim, em_tensor **out);
EM_PRIV em_status formula_selected_along(em_tensor *grad, em_tensor *indices, em_ints sizes, int64_t dim, em_tensor **out);
EM_PRIV em_status formula_std_mean(em_tensor *grad_std, em_tensor *grad_mean, em_tensor *self, em_tensor *std, em_ints dims,
                                   em_scalar correction, bool keepdim, em_tensor **out);
EM_PRIV em_status formula_aminmax(em_tensor *grad_min, em_tensor *grad_max, em_tensor *self, em_tensor *min, em_tensor *max,
                                  em_opt_int dim, bool keepdim, em_tensor **out);
EM_PRIV em_status formula_dist(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor *result, em_scalar p, em_tensor **out);
EM_PRIV em_status formula_renorm(em_tensor *grad, em_tensor *self, em_scalar p, int64_t dim, em_scalar maxnorm, em_tensor **out);
EM_PRIV em_status formula_sinc(em_tensor *grad, em_tensor *self, em_tensor **out);
EM_PRIV em_status formula_copysign(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_sgn_backward(em_tensor *grad, em_tensor *self, em_tensor **out);
EM_PRIV em_status formula_angle(em_tensor *grad, em_tensor *self, em_tensor **out);
EM_PRIV em_status formula_polar_abs(em_tensor *grad, em_tensor *angle, em_tensor **out);
EM_PRIV em_status formula_polar_angle(em_tensor *grad, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_logaddexp(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_logaddexp2(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_xlogy(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out);
EM_PRIV em_status formula_xlogy_number(em_tensor *grad, em_tensor *self, em_scalar other, em_tensor **out);
EM_PRIV em_status formula_xlog1py(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out);
EM_PRIV em_status formula_xlog1py_number(em_tensor *grad, em_tensor *self, em_scalar other, em_tensor **out);
EM_PRIV em_status formula_logit_second(em_tensor *grad, em_tensor *grad_output, em_tensor *self, em_opt_double eps,
                                       em_tensor **out);
EM_PRIV em_status formula_mvlgamma(em_tensor *grad, em_tensor *self, int64_t p, em_tensor **out);
EM_PRIV em_status formula_igamma(em_tensor *grad, em_tensor *self, em_tensor *other, em_tensor **out);
EM_PRIV em_status formula_i1(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);
EM_PRIV em_status formula_i1e(em_tensor *grad, em_tensor *self, em_tensor *result, em_tensor **out);

// --- linear algebra (formulas_linalg.c)
EM_PRIV em_status formula_adjoint(em_tensor *t, em_tensor **out);  // the conjugate transpose of matrices
EM_PRIV em_status formula_solve_first(em_tensor *grad, em_tensor *A, em_tensor *result, bool left, em_tensor **out);
EM_PRIV em_status formula_cholesky(em_tensor *grad, em_tensor *L, bool upper, em_tensor **out);
EM_PRIV em_status formula_triangular_first(em_tensor *grad, em_tensor *self, em_tensor *result, bool upper, bool left, bool unitriangular,
                                           em_tensor **out);
EM_PRIV em_status formula_det(em_tensor *grad, em_tensor *A, em_tensor *det, em_tensor **out);
EM_PRIV em_status formula_slogdet(em_tensor *grad_sign, em_tensor *grad_log, em_tensor *A, em_tensor *sign, em_tensor **out);
EM_PRIV em_status formula_qr(em_tensor *grad_q, em_tensor *grad_r, em_tensor *Q, em_tensor *R, const char *mode, em_tensor **out);
EM_PRIV em_status formula_svd(em_tensor *grad_u, em_tensor *grad_s, em_tensor *grad_vh, em_tensor *U, em_tensor *S, em_tensor *Vh,
                              bool full_matrices, bool compute_uv, em_tensor **out);
EM_PRIV em_status formula_eigh(em_tensor *grad_w, em_tensor *grad_v, em_tensor *w, em_tensor *v, bool compute_v, em_tensor **out);

// --- views and joins
EM_PRIV em_status formula_sum_to(em_tensor *grad, em_ints sizes, em_tensor **out);
EM_PRIV em_status formula_as_strided(em_tensor *grad, em_ints in_size, em_ints in_stride, int64_t in_offset,
                                     em_ints size, em_ints stride, em_opt_int offset, em_tensor **out);
EM_PRIV em_status formula_permute(em_tensor *grad, em_ints dims, em_tensor **out);
EM_PRIV em_status formula_select(em_tensor *grad, em_ints sizes, int64_t dim, int64_t index, em_tensor **out);
EM_PRIV em_status formula_slice(em_tensor *grad, em_ints sizes, int64_t dim, em_opt_int start, em_opt_int end,
                                int64_t step, em_tensor **out);
EM_PRIV em_status formula_diagonal(em_tensor *grad, em_ints sizes, int64_t offset, int64_t dim1, int64_t dim2,
                                   em_tensor **out);
EM_PRIV em_status formula_unfold(em_tensor *grad, em_ints sizes, int64_t dim, int64_t size, int64_t step,
                                 em_tensor **out);
EM_PRIV em_status formula_cat_grads(const em_node *node, em_tensors grads, int64_t dim, em_tensor **out);
EM_PRIV em_status formula_stack_grads(const em_node *node, em_tensors grads, int64_t dim, em_tensor **out);
// Sizes of the list's tensors along dim; -1 marks an empty 1-d tensor among others, which cat leaves out.
EM_PRIV em_status formula_list_size(em_tensors l, int64_t dim, em_saved_ints *out);
EM_PRIV em_status formula_cat(em_tensor *grad, em_ints lengths, int64_t dim, em_tensor_list *out);

// --- indexing and layers
EM_PRIV em_status formula_masked_select(em_tensor *grad, em_ints sizes, em_tensor *mask, em_tensor **out);
EM_PRIV em_status formula_take(em_tensor *grad, em_ints sizes, em_tensor *index, em_tensor **out);
EM_PRIV em_status formula_dropout(em_tensor *grad, em_tensor *mask, double p, em_opt_bool train, em_tensor **out);

// --- convolutions (formulas_conv.c)
EM_PRIV em_status formula_convolution(em_tensor *grad, em_tensor *input, em_tensor *weight, em_ints stride, em_ints padding,
                                      em_ints dilation, bool transposed, em_ints output_padding, int64_t groups, em_bools mask,
                                      em_tensor **ginput, em_tensor **gweight, em_tensor **gbias);
EM_PRIV em_status formula_convolution_second(em_tensors grads, em_tensor *grad_output, em_tensor *input, em_tensor *weight, em_ints stride,
                                             em_ints padding, em_ints dilation, bool transposed, em_ints output_padding, int64_t groups,
                                             em_bools mask, em_tensor **ggrad, em_tensor **ginput, em_tensor **gweight);
// --- pooling, padding, folding (formulas_pooling.c)
EM_PRIV em_status formula_im2col(em_tensor *grad, em_ints sizes, em_ints kernel, em_ints dilation, em_ints padding,
                                 em_ints stride, em_tensor **out);
EM_PRIV em_status formula_channel_shuffle(em_tensor *grad, int64_t groups, em_tensor **out);
EM_PRIV em_status formula_pooled(em_tensor *grad, em_tensor *indices, int64_t spatial, em_tensor **out);
EM_PRIV em_status formula_adaptive_avg(em_tensor *grad, em_ints sizes, int64_t spatial, em_tensor **out);
EM_PRIV em_status formula_unwrap(em_tensor *grad, em_ints pad, em_tensor **out);
EM_PRIV em_status formula_unpad(em_tensor *grad, em_ints pad, em_tensor **out);
// --- shape and writing at positions (formulas_shape.c)
EM_PRIV em_status formula_roll(em_tensor *grad, em_ints shifts, em_ints dims, em_tensor **out);
EM_PRIV em_status formula_trace(em_tensor *grad, em_ints sizes, em_tensor **out);
EM_PRIV em_status formula_repeat(em_tensor *grad, em_ints repeats, em_ints sizes, em_tensor **out);
EM_PRIV em_status formula_index_fill_value(em_tensor *grad, int64_t dim, em_tensor *index, em_tensor **out);
EM_PRIV em_status formula_index_copy_source(em_tensor *grad, int64_t dim, em_tensor *index, em_ints sizes, em_tensor **out);
EM_PRIV em_status formula_scatter_reduce(em_tensor *grad, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *src,
                                         const char *reduce, bool include_self, em_tensor *result, em_bools mask,
                                         em_tensor **out0, em_tensor **out1);
EM_PRIV em_status formula_index_reduce(em_tensor *grad, em_tensor *self, int64_t dim, em_tensor *index, em_tensor *source,
                                       const char *reduce, bool include_self, em_tensor *result, em_bools mask,
                                       em_tensor **out0, em_tensor **out1);
// --- layers that are one kernel (formulas_layers.c)
EM_PRIV em_status formula_rnn_layer(em_tensors grads, em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih,
                                    em_tensor *w_hh, em_tensor *b_ih, em_tensor *b_hh, em_tensor *w_hr, em_tensor *output,
                                    em_tensor *reserve, em_ints batch_sizes, int64_t mode, bool reverse, em_bools mask,
                                    em_tensor **g_input, em_tensor **g_hx, em_tensor **g_cx, em_tensor **g_w_ih,
                                    em_tensor **g_w_hh, em_tensor **g_b_ih, em_tensor **g_b_hh, em_tensor **g_w_hr);
EM_PRIV em_status formula_attention(em_tensor *grad, em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *output,
                                    em_tensor *logsumexp, double dropout_p, bool is_causal, em_tensor *attn_mask,
                                    em_opt_double scale, em_bools mask, em_tensor **g_query, em_tensor **g_key,
                                    em_tensor **g_value);
EM_PRIV em_status formula_pack_rows(em_tensor *grad, em_tensor *batch_sizes, bool batch_first, em_tensor **out);

// --- Fourier transforms (formulas_fft.c)
EM_PRIV em_status formula_fft_r2c(em_tensor *grad, em_ints dim, int64_t normalization, bool onesided, em_ints sizes,
                                  em_tensor **out);
EM_PRIV em_status formula_fft_c2r(em_tensor *grad, em_ints dim, int64_t normalization, em_tensor **out);
#endif
