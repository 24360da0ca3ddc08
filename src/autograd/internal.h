// internal.h: what the files of this folder share with each other and with nobody else.
#ifndef EMBER_AUTOGRAD_INTERNAL_H
#define EMBER_AUTOGRAD_INTERNAL_H
#include "../core/shape.h"
#include "engine.h"
#include "hooks.h"
#include "node.h"

struct em_view_recipe;
void em_priv_recipe_release(struct em_view_recipe *r);
void em_priv_node_hooks_free(struct em_node_hooks *h);
void em_priv_tensor_hooks_free(struct em_tensor_hooks *h);
void em_priv_accumulator_sleep(em_node *n);
em_status em_priv_accumulate(em_node *n, em_tensor **grad);
em_status em_priv_fill_input(em_input_meta *m, const em_tensor *t);
em_status em_priv_point_history(em_node *n, uint32_t j, em_tensor *t);
em_status em_priv_move_retain_grad(em_autograd_meta *meta, em_node *from);
void em_priv_forget_retained(em_node *n, const em_autograd_meta *meta);

em_status em_priv_regenerate(em_tensor *view);
em_status em_priv_refuse_view(em_tensor *view, bool indirect);
em_status em_priv_replay(const struct em_view_recipe *recipe, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, em_tensor *base, em_tensor **out);
em_status em_priv_second_time(void) __attribute__((cold));  // "Trying to backward through the graph a second time ..."

// Run at their place by the engine. `grads` are owned entries, replaced in place.
em_status em_priv_run_tensor_hooks(em_node *n, em_tensor **grads);
em_status em_priv_run_pre_hooks(em_node *n, em_tensor **grads);
em_status em_priv_run_post_hooks(em_node *n, em_tensor **outs, em_tensor *const *grads);
bool em_priv_has_post_hooks(const em_node *n);
em_status em_priv_run_leaf_hooks(em_tensor *leaf, em_tensor **grad);
em_status em_priv_run_accumulate_hooks(em_tensor *leaf);

// Whether the only thing that sees these bytes is this reference.
static inline bool em_priv_sole_owner(em_tensor *t) {
  return em_ref_is_one(&t->rc) && t->storage != NULL && em_ref_is_one(&t->storage->rc) && t->meta == NULL &&
         t->pyobj == NULL;
}
// Recording on or off for a stretch of code: take the TLS's masks back with em_guard_restore.
static inline em_guard em_priv_set_recording(bool on) {
  em_guard g = {em_priv_tls.include, em_priv_tls.exclude};
  if (on) em_priv_tls.exclude &= ~(EM_KEYBIT(EM_KEY_Autograd) | EM_KEYBIT(EM_KEY_Alias));
  else em_priv_tls.exclude |= EM_KEYBIT(EM_KEY_Autograd);
  return g;
}
#endif
