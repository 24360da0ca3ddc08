// view.h: idea 10 of the map: shared bytes plus in-place writes. Views know their base; a write through a view rewrites
// the base's history with CopySlices; a view whose base was written regenerates its grad_fn on the next question.
#ifndef EMBER_AUTOGRAD_VIEW_H
#define EMBER_AUTOGRAD_VIEW_H
#include "node.h"

// How to make the view from its base again when as_strided cannot say it (dtype views): a chain of operator calls.
typedef struct em_view_recipe {
  em_ref rc;
  const em_operator *op;       // args[0] is the tensor viewed
  em_value args[8];            // owned copies; args[0] is empty
  bool relative;               // args[3], an as_strided offset, counts from the viewed tensor's own
  struct em_view_recipe *inner;  // owned: made the tensor viewed from the base; NULL: the base itself
} em_view_recipe;

// Called by generated Alias entries after a view operator ran below: makes `out` a view of `self` (of its base when
// self is a view). args: the boxed arguments, needed only when the dtype changes.
EM_PRIV em_status em_view_mark(em_tensor *out, em_tensor *self, const em_operator *op, const em_value *args,
                               em_creation creation);
// After an in-place view operator (transpose_) moved the window of `self` from `offset`: its way from the base is longer.
EM_PRIV em_status em_view_moved(em_tensor *self, int64_t offset);
// Called by generated Autograd entries for view operators, after the Alias entry: attaches the recorded node to the
// view.
EM_PRIV em_status em_view_set_history(em_node *n, uint32_t j, em_tensor *view);
// Applies the recipe (or as_strided) to another tensor with the base's geometry. New reference. Recorded if grad is
// enabled.
EM_PRIV em_status em_view_replay(const em_tensor *view, em_tensor *base_like, em_tensor **out);

// In-place, called by generated Autograd entries before writing: leaf that requires grad, views made in no_grad or by a
// multi-output op, inference tensors, internal overlap with an expanded tensor are refused in PyTorch's words.
// `records`: a node will be made.
EM_PRIV em_status em_inplace_check(em_tensor *self, bool records, const em_operator *op);
// After the write: makes node n the new history of self; through CopySlices on the base when self is a view. n
// retained.
EM_PRIV em_status em_inplace_rebase(em_tensor *self, em_node *n);
EM_PRIV extern const em_node_class em_class_copy_slices;
EM_PRIV em_status em_priv_refuse_inference(void) __attribute__((cold));

// What generated Alias entries ask.
static inline em_creation em_alias_creation(void) {
  if (EM_LIKELY(em_grad_enabled())) return EM_CREATED_DEFAULT;
  return em_priv_tls.inference ? EM_CREATED_IN_INFERENCE : EM_CREATED_IN_NO_GRAD;
}
static inline em_status em_alias_check_write(const em_tensor *t) {
  return EM_UNLIKELY(t->flags & EM_T_INFERENCE) && !em_priv_tls.inference ? em_priv_refuse_inference() : EM_OK;
}
#endif
