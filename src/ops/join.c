// join.c: cat and stack. The result's dtype is the common one of all inputs; a 1-d tensor of size 0 among others is
// skipped, as in PyTorch.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

static bool skipped(const em_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

static em_status common(em_tensors tensors, int *dtype) {
  em_promote_state s;
  em_promote_init(&s);
  for (int64_t i = 0; i < tensors.n; i++) em_promote_add(&s, tensors.p[i]);
  *dtype = em_promote_result(&s);
  return EM_OK;
}

// What out= may be, cat's words also for stack.
static void output_rules(em_plan *p, em_tensors tensors) {
  p->out_casts = true;
  p->out_dtype_error = EM_ERR_TYPE;
  p->out_dtype_words = "torch.cat(): input types can't be cast to the desired output type %s";
  p->apart_list = tensors;
}
// channels_last if all inputs are.
static int common_format(em_tensors tensors) {
  int format = em_shape_suggested_format(tensors.p[0]);
  for (int64_t i = 1; i < tensors.n; i++)
    if (em_shape_suggested_format(tensors.p[i]) != format) return EM_FORMAT_CONTIGUOUS;
  return format;
}

em_status check_cat(em_tensors tensors, int64_t dim, em_plan *p) {
  if (tensors.n == 0) return em_fail(EM_ERR_VALUE, "torch.cat(): expected a non-empty list of Tensors");
  const em_tensor *first = NULL;
  for (int64_t i = 0; i < tensors.n; i++) {
    if (tensors.p[i]->ndim == 0)
      return em_fail(EM_ERR_RUNTIME, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
    if (first == NULL && !skipped(tensors.p[i])) first = tensors.p[i];
  }
  int dtype;
  EM_PASS(common(tensors, &dtype));
  output_rules(p, tensors);
  if (first == NULL) {
    EM_PASS(em_shape_wrap_dim(dim, 1, true, &p->attr[0]));
    em_plan_output_set(p, dtype, 1, (const int64_t[]){0}, tensors.p[0]->device);
    return EM_OK;
  }
  EM_PASS(em_shape_wrap_dim(dim, first->ndim, true, &dim));
  int64_t total = 0;
  for (int64_t i = 0; i < tensors.n; i++) {
    const em_tensor *t = tensors.p[i];
    if (skipped(t)) continue;
    if (t->ndim != first->ndim)
      return em_fail(EM_ERR_RUNTIME, "Tensors must have same number of dimensions: got %d and %d", first->ndim,
                     t->ndim);
    for (int d = 0; d < t->ndim; d++)
      if (d != dim && t->sizes[d] != first->sizes[d])
        return em_fail(EM_ERR_RUNTIME,
                       "Sizes of tensors must match except in dimension %lld. Expected size %lld but got size %lld for "
                       "tensor number %lld in "
                       "the list.",
                       (long long)dim, (long long)first->sizes[d], (long long)t->sizes[d], (long long)i);
    total += t->sizes[dim];
  }
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, first->sizes, sizeof(int64_t) * first->ndim);
  sizes[dim] = total;
  p->attr[0] = dim;
  em_plan_output_set(p, dtype, first->ndim, sizes, first->device);
  const int format = common_format(tensors);
  if (format != EM_FORMAT_CONTIGUOUS) {
    p->out[0].strided = true;
    em_priv_channels_last_strides(first->ndim, sizes, p->out[0].strides);
  }
  return EM_OK;
}
em_status c_concat(em_tensors tensors, int64_t dim, em_tensor **out) { return em_call_cat(tensors, dim, out); }

em_status check_stack(em_tensors tensors, int64_t dim, em_plan *p) {
  if (tensors.n == 0) return em_fail(EM_ERR_RUNTIME, "stack expects a non-empty TensorList");
  const em_tensor *first = tensors.p[0];
  EM_PASS(em_shape_wrap_dim(dim, first->ndim + 1, true, &dim));
  char a[256], b[256];
  for (int64_t i = 1; i < tensors.n; i++)
    if (!em_tensor_same_sizes(first, tensors.p[i]))
      return em_fail(EM_ERR_RUNTIME,
                     "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld",
                     em_shape_format(first->ndim, first->sizes, a, sizeof a),
                     em_shape_format(tensors.p[i]->ndim, tensors.p[i]->sizes, b, sizeof b), (long long)i);
  if (first->ndim == EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "stack: at most %d dimensions are supported", EM_MAX_DIMS);
  int dtype;
  EM_PASS(common(tensors, &dtype));
  int64_t sizes[EM_MAX_DIMS];
  for (int i = 0; i <= first->ndim; i++)
    sizes[i] = i < dim ? first->sizes[i] : i == dim ? tensors.n : first->sizes[i - 1];
  p->attr[0] = dim;
  output_rules(p, tensors);
  em_plan_output_set(p, dtype, first->ndim + 1, sizes, first->device);
  return EM_OK;
}
