// inplace.c: writes into tensors that have a history. What may not be written is refused before the write; after it the
// written tensor's history is the write's node, or, through a view, the base's history is a CopySlices around that
// node.
#include <string.h>
#include "engine.h"
#include "gen_ops.h"
#include "internal.h"
#include "view.h"

em_status em_priv_refuse_inference(void) {
  return em_fail(
      EM_ERR_RUNTIME,
      "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
      "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
}

em_status em_inplace_check(em_tensor *self, bool records, const em_operator *op) {
  (void)op;
  if (EM_UNLIKELY(self->flags & EM_T_INFERENCE) && !em_priv_tls.inference) return em_priv_refuse_inference();
  if (!records) return EM_OK;
  if ((self->flags & EM_T_IS_VIEW) && self->meta->view->differentiable) {
    EM_PASS(em_priv_refuse_view(self, false));
    if (em_tensor_requires_grad(self) && em_tensor_is_leaf(self->meta->view->base))
      return em_fail(EM_ERR_RUNTIME,
                     "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (em_tensor_requires_grad(self) && em_tensor_is_leaf(self))
    return em_fail(EM_ERR_RUNTIME, "a leaf Variable that requires grad is being used in an in-place operation.");
  return EM_OK;
}

// ---- CopySlices: the history of a base that was written through a view --------------------------------------------
// edge 0 leads to the base's history before the write; the others are the write's other inputs.

typedef struct copy_slices {
  em_node node;
  em_node *fn;              // the write's node, called as a plain function; NULL once released
  em_view_recipe *recipe;   // owned, or NULL: as_strided
  int64_t *geometry;        // base sizes, base strides, view sizes, view strides
  int64_t offset;           // of the view within the base
  uint8_t base_ndim, view_ndim;
} copy_slices;

static size_t geometry_size(const copy_slices *c) {
  return sizeof(int64_t) * 2 * ((size_t)c->base_ndim + c->view_ndim);
}

// The part of the gradient that was written: copied out, run through the write's node, copied back.
static em_status apply_inner(copy_slices *c, em_tensor *slice, em_tensor **res, em_tensor **out) {
  em_node *n = &c->node;
  em_tensor *copy = NULL;
  em_status st = EM_OK;
  EM_TRY(em_call_clone(slice, EM_FORMAT_NONE, &copy));
  EM_TRY(c->fn->cls->apply(c->fn, &copy, res));
  if (em_node_wants(n, 0)) {
    if (res[0] != NULL) EM_TRY(em_call_copy_(slice, res[0], false));
    else EM_TRY(em_call_zero_(slice));
  }
  for (uint32_t i = 1; i < n->n_edges; i++) {
    out[i] = res[i];
    res[i] = NULL;
  }
fail:
  em_tensor_release(copy);
  return st;
}

static em_status apply(em_node *n, em_tensor *const *grads, em_tensor **out) {
  copy_slices *c = (copy_slices *)n;
  em_tensor *grad = grads[0], *result = NULL, *slice = NULL, *fixed[8] = {NULL}, **res = fixed;
  em_status st = EM_OK;
  if (grad == NULL) return EM_OK;
  if (c->fn == NULL) return em_priv_second_time();
  const int64_t *g = c->geometry;
  int b = c->base_ndim, v = c->view_ndim;
  if (n->n_edges > 8 && (res = em_alloc_zeroed(sizeof *res * n->n_edges)) == NULL)
    return EM_NOMEM(sizeof *res * n->n_edges);
  EM_TRY(em_tensor_new_strided(b, g, g + b, grad->dtype, grad->device, &result));
  EM_TRY(em_call_copy_(result, grad, false));
  EM_TRY(em_priv_replay(c->recipe, v, g + 2 * b, g + 2 * b + v, c->offset, result, &slice));
  EM_TRY(apply_inner(c, slice, res, out));
  if (em_node_wants(n, 0)) {
    out[0] = result;
    result = NULL;
  }
fail:
  for (uint32_t i = 0; i < n->n_edges; i++) em_tensor_release(res[i]);
  if (res != fixed) em_free(res, sizeof *res * n->n_edges);
  em_tensor_release(slice);
  em_tensor_release(result);
  return st;
}
static void release_saved(em_node *n) {
  copy_slices *c = (copy_slices *)n;
  em_node *fn = c->fn;
  c->fn = NULL;
  em_node_release(fn);
}
static void destroy(em_node *n) {
  copy_slices *c = (copy_slices *)n;
  em_priv_recipe_release(c->recipe);
  if (c->geometry != NULL) em_free(c->geometry, geometry_size(c));
}
const em_node_class em_class_copy_slices = {
  .name = "torch::autograd::CopySlices", .apply = apply, .release_saved = release_saved, .destroy = destroy,
  .size = sizeof(copy_slices), .where = "src/autograd/inplace.c"};

static em_status fill(copy_slices *c, em_tensor *self, em_tensor *base, em_node *n) {
  c->base_ndim = base->ndim;
  c->view_ndim = self->ndim;
  c->offset = self->offset - base->offset;
  if ((c->geometry = em_alloc(geometry_size(c))) == NULL) return EM_NOMEM(geometry_size(c));
  int64_t *g = c->geometry;
  for (int i = 0; i < base->ndim; i++) *g++ = base->sizes[i];
  for (int i = 0; i < base->ndim; i++) *g++ = base->strides[i];
  for (int i = 0; i < self->ndim; i++) *g++ = self->sizes[i];
  for (int i = 0; i < self->ndim; i++) *g++ = self->strides[i];
  c->recipe = self->meta->view->recipe;
  if (c->recipe != NULL) em_ref_inc(&c->recipe->rc);
  EM_PASS(em_node_set_edge(&c->node, 0, base));
  for (uint32_t i = 1; i < n->n_edges; i++) {
    c->node.edges[i] = n->edges[i];
    em_node_retain(n->edges[i].node);
  }
  c->fn = em_node_retain(n);
  return em_node_set_history(&c->node, 0, base);
}

em_status em_inplace_rebase(em_tensor *self, em_node *n) {
  if (!em_dtype_is_differentiable(self->dtype)) return EM_OK;
  if (EM_LIKELY(!(self->flags & EM_T_IS_VIEW)) || !self->meta->view->differentiable)
    return em_node_set_history(n, 0, self);
  EM_PASS(em_priv_fill_input(&n->inputs[0], self));
  em_node *c = em_node_new(&em_class_copy_slices, n->n_edges, 1);
  if (c == NULL) return EM_NOMEM(sizeof(copy_slices));
  em_status st = fill((copy_slices *)c, self, self->meta->view->base, n);
  em_node_release(c);
  return st == EM_OK ? em_priv_regenerate(self) : st;
}
