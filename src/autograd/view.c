// view.c: views know their base; a view whose bytes were written through somebody else makes its history anew.
#include "view.h"
#include <stdio.h>
#include <string.h>
#include "engine.h"
#include "gen_ops.h"
#include "internal.h"

void em_priv_recipe_release(em_view_recipe *r) {
  while (r != NULL && em_ref_dec(&r->rc)) {
    em_view_recipe *inner = r->inner;
    for (int i = 0; i < (int)(sizeof r->args / sizeof *r->args); i++) em_value_clear(&r->args[i]);
    em_free(r, sizeof *r);
    r = inner;
  }
}

static em_status recipe_new(const em_operator *op, const em_value *args, em_view_recipe *inner, em_view_recipe **out) {
  em_view_recipe *r = em_alloc_zeroed(sizeof *r);
  if (r == NULL) return EM_NOMEM(sizeof *r);
  atomic_init(&r->rc, 1);
  r->op = op;
  for (int i = 1; i < op->nargs; i++) {
    em_status st = em_value_copy(&args[i], &r->args[i]);
    if (st != EM_OK) {
      em_priv_recipe_release(r);
      return st;
    }
  }
  r->inner = inner;
  if (inner != NULL) em_ref_inc(&inner->rc);
  *out = r;
  return EM_OK;
}
// One as_strided step to `to` from a window of its dtype at `from`. The offset is kept relative, as a replay's storage is another.
static em_status strided_step(int64_t from, em_tensor *to, em_view_recipe *inner, em_view_recipe **out) {
  em_value a[4] = {em_value_none(), em_value_ints((em_ints){to->sizes, to->ndim}),
                   em_value_ints((em_ints){to->strides, to->ndim}), em_value_int(to->offset - from)};
  EM_PASS(recipe_new(&em_opr_as_strided, a, inner, out));
  (*out)->relative = true;
  return EM_OK;
}
// The chain of calls that makes `out` from its base, where as_strided alone cannot: the dtype changed here or further up.
static em_status make_recipe(em_tensor *self, em_tensor *made, const em_operator *op, const em_value *args, em_view_recipe **out) {
  const em_view_info *up = self->flags & EM_T_IS_VIEW ? self->meta->view : NULL;
  if (made->dtype == self->dtype) return strided_step(self->offset, made, up->recipe, out);
  if (up == NULL || up->recipe != NULL) return recipe_new(op, args, up == NULL ? NULL : up->recipe, out);
  em_view_recipe *inner;
  EM_PASS(strided_step(up->base->offset, self, NULL, &inner));
  em_status st = recipe_new(op, args, inner, out);
  em_priv_recipe_release(inner);
  return st;
}

em_status em_view_mark(em_tensor *out, em_tensor *self, const em_operator *op, const em_value *args,
                       em_creation creation) {
  if (EM_UNLIKELY((self->flags & EM_T_INFERENCE) || (out->flags & EM_T_INFERENCE))) return EM_OK;
  em_view_info *up = self->flags & EM_T_IS_VIEW ? self->meta->view : NULL;
  em_tensor *base = up == NULL ? self : up->base;
  em_autograd_meta *meta;
  EM_PASS(em_tensor_meta(out, &meta));
  em_view_info *v = em_alloc(sizeof *v);
  if (EM_UNLIKELY(v == NULL)) return EM_NOMEM(sizeof *v);
  memset(v, 0, sizeof *v);
  if (EM_UNLIKELY(out->dtype != base->dtype || (up != NULL && up->recipe != NULL))) {
    em_status st = make_recipe(self, out, op, args, &v->recipe);
    if (st != EM_OK) {
      em_free(v, sizeof *v);
      return st;
    }
  }
  v->base = em_tensor_retain(base);
  v->attr_version = em_tensor_version(out);
  v->creation = (uint8_t)(creation == EM_CREATED_DEFAULT && up != NULL ? up->creation : creation);
  // The same bytes read as another type have no derivative, not even where the type is the same.
  v->differentiable = em_dtype_is_differentiable(out->dtype) && em_dtype_is_differentiable(base->dtype) &&
                      op != &em_opr_view_dtype;
  meta->view = v;
  out->flags |= EM_T_IS_VIEW;
  if (v->differentiable) out->keys |= EM_KEYBIT(EM_KEY_Autograd);
  return EM_OK;
}

em_status em_view_moved(em_tensor *self, int64_t offset) {
  if (!(self->flags & EM_T_IS_VIEW) || self->meta->view->recipe == NULL) return EM_OK;
  em_view_info *v = self->meta->view;
  em_view_recipe *longer;
  EM_PASS(strided_step(offset, self, v->recipe, &longer));
  em_priv_recipe_release(v->recipe);
  v->recipe = longer;
  return EM_OK;
}

em_status em_view_set_history(em_node *n, uint32_t j, em_tensor *view) {
  EM_PASS(em_node_set_history(n, j, view));
  if (view->flags & EM_T_IS_VIEW) view->meta->view->attr_version = em_tensor_version(view);
  return EM_OK;
}

static em_status run_recipe(const em_view_recipe *r, em_tensor *base, em_tensor **out) {
  em_tensor *viewed = NULL;
  if (r->inner != NULL) EM_PASS(run_recipe(r->inner, base, &viewed));  // as deep as the program's chain of dtype views
  else viewed = em_tensor_retain(base);
  em_value args[sizeof r->args / sizeof *r->args], ret = em_value_none();
  memcpy(args, r->args, sizeof args);
  args[0] = em_value_tensor(viewed);
  if (r->relative) args[3].i += viewed->offset;
  em_status st = em_priv_call_boxed(r->op, args, &ret);
  if (st == EM_OK) *out = ret.tensor;
  em_tensor_release(viewed);
  return st;
}
em_status em_priv_replay(const em_view_recipe *recipe, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, em_tensor *base, em_tensor **out) {
  if (EM_UNLIKELY(recipe != NULL)) return run_recipe(recipe, base, out);
  return em_call_as_strided(base, (em_ints){sizes, ndim}, (em_ints){strides, ndim}, em_some_int(offset + base->offset),
                            out);
}
em_status em_view_replay(const em_tensor *view, em_tensor *base_like, em_tensor **out) {
  const em_view_info *v = view->meta->view;
  return em_priv_replay(v->recipe, view->ndim, view->sizes, view->strides, view->offset - v->base->offset, base_like,
                        out);
}

// ---- history made anew --------------------------------------------------------------------------------------------

// Why a view that is special may not be written (or have its base written), in PyTorch's words.
em_status em_priv_refuse_view(em_tensor *t, bool indirect) {
  const em_view_info *v = t->meta->view;
  if (v->creation == EM_CREATED_DEFAULT) return EM_OK;
  const em_node *fn = t->meta->grad_fn;
  const char *object = indirect ? "its base or another view of its base has been" : "is being";
  char head[512], from[192] = "A view was created in", name[128];
  if (v->creation == EM_CREATED_IN_INFERENCE || v->creation == EM_CREATED_IN_NO_GRAD || fn == NULL) {
    if (fn != NULL)
      snprintf(from, sizeof from, "Output %u of %s is a view of a view which was created in", t->meta->output_nr,
               em_node_forward_name(fn, name, sizeof name));
    if (v->creation == EM_CREATED_IN_INFERENCE)
      snprintf(head, sizeof head, "%s inference mode and %s modified inplace in normal mode.", from, object);
    else
      snprintf(head, sizeof head, "%s no_grad mode and %s modified inplace with grad mode enabled.", from, object);
  } else {
    snprintf(head, sizeof head, "Output %u of %s is a view and %s modified inplace.", t->meta->output_nr,
             em_node_forward_name(fn, name, sizeof name), object);
  }
  static const char *const why[] = {
      [EM_CREATED_DEFAULT] = "",
      [EM_CREATED_MULTI_OUTPUT] =
          "This view is the output of a function that returns multiple views. Such functions do not allow the output "
          "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
      [EM_CREATED_IN_NO_GRAD] =
          "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
          "both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
          "tracked) or both outside (if "
          "you want the inplace to be tracked).",
      [EM_CREATED_IN_INFERENCE] =
          "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
          "both the view and the inplace either both inside the inference_mode block (if you don't want the inplace to "
          "be tracked) or both "
          "outside (if you want the inplace to be tracked).",
      [EM_CREATED_IN_CUSTOM] = "This view was created inside a custom Function (or because an input was returned "
                               "as-is) and the autograd logic "
                               "to handle view+inplace would override the custom backward associated with the custom "
                               "Function, leading to incorrect gradients. This "
                               "behavior is forbidden. You can fix this by cloning the output of the custom Function."};
  return em_fail(EM_ERR_RUNTIME, "%s %s", head, why[v->creation]);
}

// Replays the view on its base and takes the history of the result.
em_status em_priv_regenerate(em_tensor *t) {
  em_autograd_meta *meta = t->meta;
  em_view_info *v = meta->view;
  EM_PASS(em_priv_refuse_view(t, true));
  em_guard g = {em_priv_tls.include, em_priv_tls.exclude};
  em_priv_tls.include = 0;
  // nobody watches this call
  em_priv_tls.exclude = ~(EM_KEYBIT(EM_KEY_Autograd) | EM_KEYBIT(EM_KEY_Alias) | EM_BACKEND_KEYS);
  em_tensor *again = NULL;
  em_status st = em_view_replay(t, v->base, &again);
  em_guard_restore(g);
  if (st != EM_OK) return st;
  em_node *old = meta->grad_fn;
  meta->grad_fn = NULL;
  meta->output_nr = 0;
  v->attr_version = em_tensor_version(t);
  if (again->meta != NULL && again->meta->grad_fn != NULL)
    st = em_priv_point_history(again->meta->grad_fn, again->meta->output_nr, t);
  if (st == EM_OK) st = em_priv_move_retain_grad(meta, old);
  em_node_release(old);
  em_tensor_release(again);
  return st;
}

em_status em_tensor_grad_fn(em_tensor *t, em_node **borrowed) {
  *borrowed = NULL;
  if (EM_UNLIKELY(t == NULL)) return em_fail_null("em_tensor_grad_fn", "tensor");
  if (t->meta == NULL) return EM_OK;
  if (EM_UNLIKELY(t->flags & EM_T_IS_VIEW) && t->meta->view->differentiable) {
    const em_view_info *v = t->meta->view;
    if (t->meta->grad_fn == NULL && !em_tensor_requires_grad(v->base)) return EM_OK;
    if (v->attr_version != em_tensor_version(t)) EM_PASS(em_priv_regenerate(t));
  }
  *borrowed = t->meta->grad_fn;
  return EM_OK;
}

// Slow part of em_tensor_requires_grad: a view needs a gradient when its base does, even one made under no_grad, which
// has no history.
bool em_tensor_requires_grad_view(em_tensor *t) {
  const em_view_info *v = t->meta->view;
  return t->meta->grad_fn != NULL || (v->differentiable && em_tensor_requires_grad(v->base));
}
