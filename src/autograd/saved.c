// saved.c: what a node keeps for backward. The tensor itself when it is an input; an alias without history when it is
// the node's own output (or the node would own itself); whatever a pack hook returned while saved-tensor hooks are on.
#include "saved.h"
#include <stdio.h>
#include <string.h>
#include "gen_ops.h"
#include "internal.h"

static void hooks_release(em_saved_hooks *h) {
  if (!em_ref_dec(&h->rc)) return;
  if (h->free_context != NULL) h->free_context(h->context);
  em_free(h, sizeof *h);
}

static em_status pack(em_saved *s, em_tensor *t, em_saved_hooks *hooks) {
  s->is_leaf = em_tensor_is_leaf(t);
  s->requires_grad = em_tensor_requires_grad(t);
  s->output_nr = t->meta == NULL ? 0 : t->meta->output_nr;
  em_node *fn = NULL;
  if (!s->is_leaf && !s->is_output) EM_PASS(em_tensor_grad_fn(t, &fn));
  em_tensor *bare = NULL;  // hooks see no history, and run outside it
  EM_PASS(em_tensor_alias(t, &bare));
  uint32_t version = em_tensor_version(bare);
  em_guard g = em_priv_set_recording(false);
  em_saved_hooks *outer = em_priv_tls.saved_hooks;
  em_status st = hooks->pack(hooks->context, bare, &s->packed);
  em_priv_tls.saved_hooks = outer;
  em_guard_restore(g);
  if (st == EM_OK) {
    em_ref_inc(&hooks->rc);
    s->hooks = hooks;
    s->grad_fn = em_node_retain(fn);
    s->full = 1;
    if (em_tensor_version(bare) != version)
      st = em_fail(
          EM_ERR_RUNTIME,
          "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
          "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
          "you need "
          "to perform in-place operations on the input to a pack hook.");
  }
  em_tensor_release(bare);
  return st;
}

em_status em_saved_save_slow(em_saved *s, em_tensor *t, bool is_output) {
  if (t == NULL) return EM_OK;
  if (EM_UNLIKELY(t->flags & EM_T_INFERENCE))
    return em_fail(
        EM_ERR_RUNTIME,
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
        "in "
        "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  s->is_output = is_output;
  s->version = em_tensor_version(t);
  em_saved_hooks *hooks = em_priv_tls.saved_hooks;
  if (EM_UNLIKELY(hooks != NULL && !(t->flags & EM_T_WRAPPED))) {
    if (hooks->disabled_message != NULL) return em_fail(EM_ERR_RUNTIME, "%s", hooks->disabled_message);
    return pack(s, t, hooks);
  }
  if (!is_output) {
    s->tensor = em_tensor_retain(t);
  } else {
    EM_PASS(em_tensor_alias(t, &s->tensor));
    s->output_nr = t->meta == NULL ? 0 : t->meta->output_nr;
    s->requires_grad = (t->flags & EM_T_REQUIRES_GRAD) != 0;
  }
  s->full = 1;
  return EM_OK;
}

em_status em_priv_second_time(void) {
  return em_fail(EM_ERR_RUNTIME,
                 "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                 "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                 "autograd.grad(). "
                 "Specify retain_graph=True if you need to backward through the graph a second time or if you need to "
                 "access saved "
                 "tensors after calling backward.");
}

static em_status changed(const em_saved *s, em_node *made_by) {
  char sizes[512], name[128], which[192] = "";
  if (made_by != NULL)
    snprintf(which, sizeof which, ", which is output %u of %s,", s->is_output || s->tensor->meta == NULL ? s->output_nr
             : s->tensor->meta->output_nr, em_node_forward_name(made_by, name, sizeof name));
  return em_fail(
      EM_ERR_RUNTIME,
      "one of the variables needed for gradient computation has been modified by an inplace operation: "
      "[torch.%s %s]%s is at version %u; expected version %u instead. Hint: %s",
      em_priv_dtypes[s->tensor->dtype].storage, em_shape_format(s->tensor->ndim, s->tensor->sizes, sizes, sizeof sizes),
      which, em_tensor_version(s->tensor), s->version,
      em_priv_tls.anomaly ? "the backtrace further above shows the operation that failed to compute its gradient. The "
                            "variable in question was "
                            "changed in there or anywhere later. Good luck!"
                          : "enable anomaly detection to find the operation that failed to compute its gradient, with "
                            "torch.autograd.set_detect_anomaly(True, check_nan=False).");
}

// A tensor with t's bytes and the history (fn, nr), or requiring grad as a leaf.
static em_status with_history(em_tensor *t, em_node *fn, uint32_t nr, bool requires_grad, em_tensor **out) {
  em_tensor *a;
  EM_PASS(em_tensor_alias(t, &a));
  em_status st = EM_OK;
  if (em_dtype_is_differentiable(a->dtype)) {
    if (fn != NULL) st = em_priv_point_history(fn, nr, a);
    else if (requires_grad) st = em_tensor_set_requires_grad(a, true);
  }
  if (st == EM_OK) *out = a;
  else em_tensor_release(a);
  return st;
}

static em_status unpack_hooked(em_saved *s, em_node *owner, em_tensor **out) {
  em_tensor *t = NULL;
  em_guard g = em_priv_set_recording(false);
  em_status st = s->hooks->unpack(s->hooks->context, s->packed, &t);
  em_guard_restore(g);
  if (st != EM_OK) return st;
  em_node *fn = s->is_leaf ? NULL : s->grad_fn != NULL ? s->grad_fn : s->is_output ? owner : NULL;
  if (fn == NULL && !s->requires_grad) {
    *out = t;
    return EM_OK;
  }
  st = with_history(t, fn, s->output_nr, s->requires_grad, out);
  em_tensor_release(t);
  return st;
}

em_status em_saved_unpack(em_saved *s, em_node *owner, em_tensor **out) {
  *out = NULL;
  if (!s->full) return EM_OK;
  if (EM_UNLIKELY(s->hooks != NULL)) return unpack_hooked(s, owner, out);
  if (EM_UNLIKELY(s->tensor == NULL)) return em_priv_second_time();
  if (EM_UNLIKELY(em_tensor_version(s->tensor) != s->version)) {
    em_node *fn = owner;
    if (!s->is_output) EM_PASS(em_tensor_grad_fn(s->tensor, &fn));
    return changed(s, fn);
  }
  if (!s->is_output || owner == NULL || !s->requires_grad) {
    *out = em_tensor_retain(s->tensor);
    return EM_OK;
  }
  return with_history(s->tensor, owner, s->output_nr, false, out);
}

void em_saved_release(em_saved *s) {
  em_tensor *t = s->tensor;
  em_node *fn = s->grad_fn;
  em_saved_hooks *hooks = s->hooks;
  void *packed = s->packed;
  s->tensor = NULL;
  s->grad_fn = NULL;
  s->hooks = NULL;
  s->packed = NULL;
  em_tensor_release(t);
  em_node_release(fn);
  if (EM_UNLIKELY(hooks != NULL)) {
    if (packed != NULL && hooks->free_packed != NULL) hooks->free_packed(hooks->context, packed);
    hooks_release(hooks);
  }
}

em_status em_saved_list_save(em_saved_list *l, em_tensors ts) {
  if (ts.n == 0) return EM_OK;
  l->p = em_alloc_zeroed(sizeof *l->p * (size_t)ts.n);
  if (l->p == NULL) return EM_NOMEM(sizeof *l->p * (size_t)ts.n);
  l->n = ts.n;
  for (int64_t i = 0; i < ts.n; i++) EM_PASS(em_saved_save(&l->p[i], ts.p[i], false));
  return EM_OK;
}
em_status em_saved_list_unpack(em_saved_list *l, em_node *owner, em_tensor_list *out) {
  EM_PASS(em_tensor_list_new(l->n, out));
  for (int64_t i = 0; i < l->n; i++) {
    em_status st = em_saved_unpack(&l->p[i], owner, &out->p[i]);
    if (st != EM_OK) {
      em_tensor_list_clear(out);
      return st;
    }
  }
  return EM_OK;
}
void em_saved_list_release(em_saved_list *l) {
  for (int64_t i = 0; i < l->n; i++) em_saved_release(&l->p[i]);
}
void em_saved_list_free(em_saved_list *l) {
  em_saved_list_release(l);
  em_free(l->p, sizeof *l->p * (size_t)l->n);
  l->p = NULL;
  l->n = 0;
}

em_status em_saved_save_copy(em_saved *s, em_tensor *t) {
  em_tensor *copy;
  EM_PASS(em_call_clone(t, EM_FORMAT_NONE, &copy));
  em_status st = em_saved_save(s, copy, false);
  em_tensor_release(copy);
  return st;
}

em_status em_saved_ints_set(em_saved_ints *s, em_ints l) {
  int64_t *to = s->few;
  if (l.n > (int64_t)(sizeof s->few / sizeof *s->few)) {
    if ((s->p = em_alloc(sizeof *s->p * (size_t)l.n)) == NULL) return EM_NOMEM(sizeof *s->p * (size_t)l.n);
    to = s->p;
  }
  s->n = l.n;
  for (int64_t i = 0; i < l.n; i++) to[i] = l.p[i];
  return EM_OK;
}
void em_saved_ints_free(em_saved_ints *s) {
  if (s->p != NULL) em_free(s->p, sizeof *s->p * (size_t)s->n);
}
// Names of modes: longer ones were refused by the operator that ran before.
void em_saved_text_set(em_saved_text *s, const char *text) {
  s->has = text != NULL;
  snprintf(s->s, sizeof s->s, "%s", text == NULL ? "" : text);
}
