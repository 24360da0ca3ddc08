// plan.c: from what a check function decided to tensors that a kernel can write.
#include "plan.h"
#include <string.h>
#include "gen_ops.h"
#include "view_entry.h"

void em_plan_output_set(em_plan *p, int dtype, int ndim, const int64_t *sizes, em_device device) {
  em_plan_output *o = &p->out[p->nout++];
  o->dtype = dtype;
  o->ndim = ndim;
  o->strided = false;
  if (ndim > 0) memcpy(o->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
  p->device = device;
}
em_status em_plan_alloc(em_plan *p, int i, bool meta, em_tensor **out) {
  em_plan_output *o = &p->out[i];
  em_device device = p->device;
  if (meta) device = (em_device){EM_DEVICE_META, -1};
  return em_tensor_new_strided(o->ndim, o->sizes, o->strided ? o->strides : NULL, o->dtype, device, out);
}
em_status em_plan_workspace_of(em_plan *p, int64_t n, size_t size) {
  size_t bytes;
  if (n < 0 || __builtin_mul_overflow((size_t)n, size, &bytes) || __builtin_add_overflow(p->workspace, bytes, &p->workspace) ||
      p->workspace > PTRDIFF_MAX)
    return EM_NOMEM(SIZE_MAX);
  return EM_OK;
}
em_status em_plan_workspace(em_plan *p) {
  if (p->workspace == 0) return EM_OK;
  p->work = em_alloc(p->workspace);
  return p->work == NULL ? EM_NOMEM(p->workspace) : EM_OK;
}
void em_plan_release(em_plan *p) {
  if (p->work != NULL) em_free(p->work, p->workspace);
  p->work = NULL;
}
em_status em_plan_resize_out(em_tensor *out, int ndim, const int64_t *sizes, const int64_t *strides) {
  if (em_shape_equal(out->ndim, out->sizes, ndim, sizes)) return EM_OK;
  if (out->numel != 0) {
    char a[256], b[256];
    EM_PASS(
        em_warn("An output with one or more elements was resized since it had shape %s, which does not match the "
                "required output shape %s. "
                "This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
                "have zero elements. "
                "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                em_shape_format(out->ndim, out->sizes, a, sizeof a), em_shape_format(ndim, sizes, b, sizeof b)));
  }
  EM_PASS(em_tensor_resize(out, ndim, sizes));
  if (strides == NULL) return EM_OK;
  size_t need;
  EM_PASS(em_shape_storage_bytes(ndim, sizes, strides, out->offset, em_tensor_itemsize(out), &need));
  if (need > out->storage->nbytes) EM_PASS(em_storage_resize(out->storage, need));
  return em_tensor_set_window(out, ndim, sizes, strides, out->offset);
}
static em_status check_cast(int from, int to) {
  if (EM_LIKELY(from == to || em_dtype_can_cast(from, to))) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "result type %s can't be cast to the desired output type %s",
                 em_dtype_scalar_name(from), em_dtype_scalar_name(to));
}
em_status em_plan_check_out_dtype(int result, int out) {
  if (EM_LIKELY(result == out)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Expected out tensor to have dtype %s, but got %s instead", em_dtype_type_name(result),
                 em_dtype_type_name(out));
}
static em_status check_given_dtype(const em_plan *p, int result, int out) {
  if (EM_LIKELY(result == out || (p->out_casts && em_dtype_can_cast(result, out)))) return EM_OK;
  if (p->out_dtype_words != NULL) return em_fail(p->out_dtype_error, p->out_dtype_words, em_dtype_scalar_name(out));
  return p->out_casts ? check_cast(result, out) : em_plan_check_out_dtype(result, out);
}
static em_status check_apart(const em_plan *p, const em_tensor *out, em_tensor *const *inputs, int ninputs) {
  EM_PASS(em_shape_assert_no_internal_overlap(out));
  for (int k = 0; k < ninputs; k++)
    if ((p->apart >> k & 1) && inputs[k] != NULL) EM_PASS(em_shape_assert_no_overlap(out, inputs[k]));
  for (int64_t k = 0; k < p->apart_list.n; k++) EM_PASS(em_shape_assert_no_overlap(out, p->apart_list.p[k]));
  return EM_OK;
}
em_status em_plan_prepare_out(em_plan *p, int i, em_tensor *out, em_tensor *const *inputs, int ninputs, bool contiguous,
                              em_tensor **target) {
  em_plan_output *o = &p->out[i];
  if (out->device.type != p->device.type)
    return em_fail(EM_ERR_RUNTIME, "Expected out tensor to have device %s, but got %s instead",
                   p->device.type == EM_DEVICE_META ? "meta" : "cpu",
                   out->device.type == EM_DEVICE_META ? "meta" : "cpu");
  EM_PASS(check_given_dtype(p, o->dtype, out->dtype));
  if (EM_UNLIKELY(p->apart != 0 || p->apart_list.n > 0)) {  // a larger out may reach what a small one did not
    EM_PASS(em_shape_assert_no_internal_overlap(out));
    EM_PASS(em_plan_resize_out(out, o->ndim, o->sizes, o->strided ? o->strides : NULL));
    EM_PASS(check_apart(p, out, inputs, ninputs));
  }
  bool overlaps = false;
  for (int k = 0; k < ninputs; k++)
    overlaps |= inputs[k] != NULL && !(p->over_self && inputs[k] == out) && em_shape_pair_overlap(out, inputs[k]) != EM_PAIR_NO;
  bool resized = !em_shape_equal(out->ndim, out->sizes, o->ndim, o->sizes);
  if (!resized) EM_PASS(em_shape_assert_no_internal_overlap(out));
  // an out that shares memory with an input may be that input: it keeps its shape until all is read (em_plan_commit_out)
  if (!overlaps) EM_PASS(em_plan_resize_out(out, o->ndim, o->sizes, o->strided ? o->strides : NULL));
  if (overlaps || out->dtype != o->dtype || (contiguous && !em_tensor_is_contiguous(out)))
    return em_tensor_new_strided(o->ndim, o->sizes, o->strided ? o->strides : NULL, o->dtype, p->device, target);
  *target = em_tensor_retain(out);
  return EM_OK;
}
em_status em_plan_commit_out(em_tensor *out, em_tensor *target, bool meta) {
  em_status st = EM_OK;
  if (out != target)
    st = em_plan_resize_out(out, target->ndim, target->sizes, em_tensor_is_contiguous(target) ? NULL : target->strides);
  if (out != target && !meta && st == EM_OK) st = em_copy_into(out, target);
  em_tensor_release(target);
  return st;
}
em_status em_plan_check_inplace(em_plan *p, em_tensor *self) {
  em_plan_output *o = &p->out[0];
  if (!em_shape_equal(o->ndim, o->sizes, self->ndim, self->sizes)) {
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a),
                   em_shape_format(o->ndim, o->sizes, b, sizeof b));
  }
  return check_given_dtype(p, o->dtype, self->dtype);
}

em_status em_view_entry(em_tensor *self, const em_geometry *g, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_tensor_new_window(self->storage, g->ndim, g->sizes, g->strides, g->offset, g->dtype, &t));
  // A view lives by its base's rules: an inference view of a normal tensor is normal, and the version counter is the
  // base's.
  t->keys = (self->keys & ~EM_KEYBIT(EM_KEY_Autograd));
  t->flags = (uint16_t)((t->flags & EM_T_CONTIGUOUS) | (self->flags & EM_T_INFERENCE));
  t->version = self->version;
  if (self->flags & EM_T_OWN_VERSION) {
    em_ref_inc(&self->version->rc);
    t->flags |= EM_T_OWN_VERSION;
  }
  *out = t;
  return EM_OK;
}
em_status em_priv_write_out(em_tensor *out, em_tensor *result) {
  EM_PASS(check_cast(result->dtype, out->dtype));
  EM_PASS(em_plan_resize_out(out, result->ndim, result->sizes, NULL));
  return em_call_copy_(out, result, false);
}
em_status em_priv_write_out_laid(em_tensor *out, em_tensor *result) {
  EM_PASS(check_cast(result->dtype, out->dtype));
  EM_PASS(em_plan_resize_out(out, result->ndim, result->sizes, result->strides));
  return em_call_copy_(out, result, false);
}
em_status em_priv_write_inplace(em_tensor *self, em_tensor *result) {
  if (!em_tensor_same_sizes(self, result)) {
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a),
                   em_shape_format(result->ndim, result->sizes, b, sizeof b));
  }
  EM_PASS(check_cast(result->dtype, self->dtype));
  return em_call_copy_(self, result, false);
}
