// embedding_bag.c: checks and public forms of embedding_bag. Modes: 0 sum, 1 mean, 2 max.
#include "gen_ops.h"

enum { SUM, MEAN, MAX };
static em_status check_ids(em_tensor *t, int number, const char *name) {
  if (t->dtype == EM_I64 || t->dtype == EM_I32) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected tensor for argument #%d '%s' to have one of the following scalar types: Long, Int; but got "
                 "torch.%sTensor instead (while checking arguments for embedding_bag)",
                 number, name, em_dtype_scalar_name(t->dtype));
}
static em_status check_weight(em_tensor *weight, em_tensor *per_sample_weights, int64_t mode) {
  if (!em_dtype_is_float(weight->dtype))
    return em_fail(EM_ERR_RUNTIME,
                   "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
                   "Float, Double; but got torch.%sTensor instead (while checking arguments for embedding_bag)",
                   em_dtype_scalar_name(weight->dtype));
  if (weight->ndim != 2) return em_fail(EM_ERR_RUNTIME, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
  if (per_sample_weights == NULL) return EM_OK;
  if (mode != SUM)
    return em_fail(EM_ERR_RUNTIME,
                   "embedding_bag: per_sample_weights only supported with mode='sum'");
  if (per_sample_weights->dtype == weight->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME,
                 "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                 "'per_sample_weights'; but type torch.%sTensor does not equal torch.%sTensor (while checking arguments for "
                 "embedding_bag)",
                 em_dtype_scalar_name(weight->dtype), em_dtype_scalar_name(per_sample_weights->dtype));
}
em_status check__embedding_bag(em_tensor *weight, em_tensor *indices, em_tensor *offsets, bool scale, int64_t mode,
                               bool sparse, em_tensor *per_sample_weights, bool include_last_offset,
                               int64_t padding_idx, em_plan *p) {
  if (mode < SUM || mode > MAX) return em_fail(EM_ERR_RUNTIME, "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max)");
  EM_PASS(check_ids(indices, 1, "indices"));
  EM_PASS(check_ids(offsets, 1, "offsets"));
  EM_PASS(check_weight(weight, per_sample_weights, mode));
  if (indices->ndim != 1)
    return em_fail(EM_ERR_RUNTIME, "input has to be a 1D Tensor, but got Tensor of dimension %d", indices->ndim);
  if (offsets->ndim != 1)
    return em_fail(EM_ERR_RUNTIME, "offsets has to be a 1D Tensor, but got Tensor of dimension %d", offsets->ndim);
  if (per_sample_weights != NULL && (per_sample_weights->ndim != 1 || per_sample_weights->numel != indices->numel))
    return em_fail(EM_ERR_RUNTIME, "expected per_sample_weights to be of shape [%lld]", (long long)indices->numel);
  if (scale && mode == MAX)
    return em_fail(EM_ERR_RUNTIME, "embedding_bag: scale_grad_by_freq=True is only supported for mode='sum' and 'mean'");
  if (sparse) return em_fail(EM_ERR_NOT_IMPLEMENTED, "embedding_bag: sparse gradients are not supported");
  if (include_last_offset && offsets->numel < 1)
    return em_fail(EM_ERR_RUNTIME, "include_last_offset: number of offset should be at least 1");
  const int64_t bags = offsets->numel - (include_last_offset ? 1 : 0), sizes[] = {bags, weight->sizes[1]};
  // A plain sum needs no map from elements to bags: PyTorch leaves it out for all but float64.
  const int64_t mapped = mode == SUM && padding_idx < 0 && weight->dtype != EM_F64 ? 0 : indices->numel;
  em_plan_output_set(p, weight->dtype, 2, sizes, weight->device);
  em_plan_output_set(p, EM_I64, 1, &mapped, weight->device);
  em_plan_output_set(p, EM_I64, 1, &bags, weight->device);
  em_plan_output_set(p, EM_I64, mode == MAX ? 2 : 1, sizes, weight->device);
  return EM_OK;
}
em_status check__embedding_bag_backward(em_tensor *grad, em_tensor *indices, em_tensor *offsets, em_tensor *offset2bag,
                                        em_tensor *bag_size, em_tensor *maximum_indices, int64_t num_weights, bool scale,
                                        int64_t mode, bool sparse, em_tensor *per_sample_weights, int64_t padding_idx,
                                        em_plan *p) {
  (void)offset2bag;
  (void)padding_idx;
  (void)scale;
  EM_PASS(check_ids(indices, 2, "indices"));
  EM_PASS(check_ids(offsets, 3, "offsets"));
  if (sparse) return em_fail(EM_ERR_NOT_IMPLEMENTED, "embedding_bag: sparse gradients are not supported");
  if (num_weights < 0 || !em_dtype_is_float(grad->dtype) || grad->ndim != 2 || mode < SUM || mode > MAX ||
      indices->ndim != 1 || offsets->ndim != 1 || offsets->numel < grad->sizes[0] || bag_size->numel != grad->sizes[0] ||
      (mode == MAX && maximum_indices->numel != grad->numel) ||
      (per_sample_weights != NULL && per_sample_weights->numel != indices->numel))
    return em_fail(EM_ERR_RUNTIME, "_embedding_bag_backward: the arguments' shapes do not fit each other");
  em_plan_output_set(p, grad->dtype, 2, (int64_t[]){num_weights, grad->sizes[1]}, grad->device);
  return EM_OK;
}
em_status check__embedding_bag_per_sample_weights_backward(em_tensor *grad, em_tensor *weight, em_tensor *indices,
                                                           em_tensor *offsets, em_tensor *offset2bag, int64_t mode,
                                                           int64_t padding_idx, em_plan *p) {
  (void)offset2bag;
  (void)padding_idx;
  if (mode != SUM)
    return em_fail(EM_ERR_RUNTIME, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  EM_PASS(check_ids(indices, 3, "indices"));
  EM_PASS(check_ids(offsets, 4, "offsets"));
  if (grad->ndim != 2 || weight->ndim != 2 || grad->sizes[1] != weight->sizes[1] || indices->ndim != 1 ||
      offsets->ndim != 1 || offsets->numel < grad->sizes[0] || !em_dtype_is_float(grad->dtype))
    return em_fail(EM_ERR_RUNTIME, "_embedding_bag_per_sample_weights_backward: the arguments' shapes do not fit each other");
  em_plan_output_set(p, grad->dtype, 1, &indices->numel, grad->device);
  return EM_OK;
}
em_status c__embedding_bag_forward_only(em_tensor *weight, em_tensor *indices, em_tensor *offsets, bool scale,
                                        int64_t mode, bool sparse, em_tensor *per_sample_weights,
                                        bool include_last_offset, int64_t padding_idx, em_tensor **out0,
                                        em_tensor **out1, em_tensor **out2, em_tensor **out3) {
  const em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call__embedding_bag(weight, indices, offsets, scale, mode, sparse, per_sample_weights,
                                        include_last_offset, padding_idx, out0, out1, out2, out3);
  em_guard_restore(g);
  return st;
}
em_status c_embedding_bag_padding_idx(em_tensor *weight, em_tensor *indices, em_tensor *offsets, bool scale,
                                      int64_t mode, bool sparse, em_tensor *per_sample_weights,
                                      bool include_last_offset, em_opt_int padding_idx, em_tensor **out0,
                                      em_tensor **out1, em_tensor **out2, em_tensor **out3) {
  int64_t skip = -1;
  const int64_t rows = weight->ndim > 0 ? weight->sizes[0] : 0;
  if (padding_idx.has) {
    if (padding_idx.v < -rows || padding_idx.v >= rows)
      return em_fail(EM_ERR_RUNTIME, "padding_idx must be within the number of embeddings, -%lld through %lld, but got %lld",
                     (long long)rows, (long long)rows - 1, (long long)padding_idx.v);
    skip = padding_idx.v < 0 ? padding_idx.v + rows : padding_idx.v;
  }
  return em_call__embedding_bag(weight, indices, offsets, scale, mode, sparse, per_sample_weights, include_last_offset,
                                skip, out0, out1, out2, out3);
}
em_status c_embedding_bag(em_tensor *weight, em_tensor *indices, em_tensor *offsets, bool scale, int64_t mode,
                          bool sparse, em_tensor *per_sample_weights, bool include_last_offset, em_tensor **out0,
                          em_tensor **out1, em_tensor **out2, em_tensor **out3) {
  return em_call_embedding_bag_padding_idx(weight, indices, offsets, scale, mode, sparse, per_sample_weights,
                                           include_last_offset, em_no_int(), out0, out1, out2, out3);
}
