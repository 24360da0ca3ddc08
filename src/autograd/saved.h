// saved.h: a tensor that a node keeps for backward, with the version it had. A saved *output* is an alias without
// grad_fn, and gets the node back at unpack: so a node never owns itself.
#ifndef EMBER_AUTOGRAD_SAVED_H
#define EMBER_AUTOGRAD_SAVED_H
#include "node.h"

typedef struct em_saved {
  // owned: the tensor itself (leaf or input), or an alias (output); NULL: nothing saved, released, or hooks hold it
  em_tensor *tensor;
  em_node *grad_fn;      // owned for a saved non-leaf input under hooks; NULL for outputs
  uint32_t version;
  uint32_t output_nr;
  uint8_t full;          // something was saved here; false: None was, or no gradient needed it
  uint8_t is_output, requires_grad, is_leaf;
  void *packed;          // what a pack hook returned, owned through hooks->free
  struct em_saved_hooks *hooks;  // retained while packed
} em_saved;

// Pair of hooks on saved tensors (torch.autograd.graph.saved_tensors_hooks). A stack in the TLS: `below` is the next
// one.
typedef struct em_saved_hooks {
  em_ref rc;
  em_status (*pack)(void *context, em_tensor *t, void **packed);
  em_status (*unpack)(void *context, void *packed, em_tensor **out);  // new reference
  void (*free_packed)(void *context, void *packed);
  void (*free_context)(void *context);
  void *context;
  const char *disabled_message;    // not NULL: saving fails with this text (disable_saved_tensors_hooks)
  struct em_saved_hooks *below;
} em_saved_hooks;

// Saves t (NULL is fine). is_output: t is an output of the node being recorded (call after em_node_set_history).
EM_PRIV em_status em_saved_save_slow(em_saved *s, em_tensor *t, bool is_output);
static inline em_status em_saved_save(em_saved *s, em_tensor *t, bool is_output) {
  if (EM_UNLIKELY(t == NULL || is_output || em_priv_tls.saved_hooks != NULL || (t->flags & EM_T_INFERENCE)))
    return em_saved_save_slow(s, t, is_output);
  s->tensor = em_tensor_retain(t);
  s->version = em_tensor_version(t);
  s->full = 1;
  return EM_OK;
}
// New reference in *out (NULL when NULL was saved). Checks released ("Trying to backward through the graph a second
// time ...") and the version ("one of the variables needed for gradient computation has been modified by an inplace
// operation: [FloatTensor [3]], which is output 0 of MulBackward0, is at version 1; expected version 0 instead. Hint:
// ..."). `owner` reattaches as grad_fn of outputs.
EM_PRIV em_status em_saved_unpack(em_saved *s, em_node *owner, em_tensor **out);
EM_PRIV void em_saved_release(em_saved *s);
// The write that is being recorded will change t: keeps a copy, recorded like any other.
EM_PRIV em_status em_saved_save_copy(em_saved *s, em_tensor *t);
// Lists
typedef struct em_saved_list { em_saved *p; int64_t n; } em_saved_list;
EM_PRIV em_status em_saved_list_save(em_saved_list *l, em_tensors ts);
EM_PRIV em_status em_saved_list_unpack(em_saved_list *l, em_node *owner, em_tensor_list *out);
EM_PRIV void em_saved_list_release(em_saved_list *l);
EM_PRIV void em_saved_list_free(em_saved_list *l);  // from destroy: the list's memory too

// Attributes that don't fit a word: int lists (inline up to four) and short texts.
typedef struct em_saved_ints { int64_t n; int64_t *p; int64_t few[4]; } em_saved_ints;
EM_PRIV em_status em_saved_ints_set(em_saved_ints *s, em_ints l);
EM_PRIV void em_saved_ints_free(em_saved_ints *s);
static inline em_ints em_saved_ints_get(const em_saved_ints *s) {
  return (em_ints){s->p != NULL ? s->p : s->few, s->n};
}
typedef struct em_saved_text { bool has; char s[23]; } em_saved_text;
EM_PRIV void em_saved_text_set(em_saved_text *s, const char *text);
static inline const char *em_saved_text_get(const em_saved_text *s) { return s->has ? s->s : NULL; }
#endif
