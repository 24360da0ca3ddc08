// hooks.h: callbacks on tensors and nodes. The core holds function pointers with contexts; the bridge puts Python
// callables there.
#ifndef EMBER_AUTOGRAD_HOOKS_H
#define EMBER_AUTOGRAD_HOOKS_H
#include "node.h"
#include <ember/autograd.h>  // em_tensor_hook_fn, em_accumulate_hook_fn

typedef struct em_hook em_hook;
// Tensor pre-hook: sees the gradient of one tensor, may replace it (new reference in *out, or NULL to keep).
// Node pre-hook: sees all incoming gradients, may replace them (out[n], NULL entry keeps; set *replaced).
typedef em_status (*em_node_prehook_fn)(void *context, em_tensor *const *grads, int64_t n, em_tensor **out,
                                        bool *replaced);
// Node post-hook: sees outgoing and incoming gradients, may replace the outgoing ones.
typedef em_status (*em_node_posthook_fn)(void *context, em_tensor *const *grads_out, int64_t n_out,
                                         em_tensor *const *grads_in, int64_t n_in, em_tensor **out, bool *replaced);
// Hooks of tensors and of accumulation are declared in ember/autograd.h.
// Each returns an id for removal (unique in the process). Hooks run in registration order; retain_grad runs last. A
// tensor's hooks live on its grad_fn: after an in-place write the old ones stay with the old value, retain_grad follows
// the tensor.
EM_PRIV em_status em_hook_node_pre(em_node *n, em_node_prehook_fn fn, void *context, void (*release)(void *),
                                   uint64_t *id);
EM_PRIV em_status em_hook_node_post(em_node *n, em_node_posthook_fn fn, void *context, void (*release)(void *),
                                    uint64_t *id);
EM_PRIV void em_hook_remove_node(em_node *n, uint64_t id);
// For the cycle collector: visits the contexts of all hooks of a tensor or node.
EM_PRIV void em_hook_visit_tensor(em_tensor *t, int (*visit)(void *context, void *arg), void *arg);
EM_PRIV void em_hook_visit_node(em_node *n, int (*visit)(void *context, void *arg), void *arg);
EM_PRIV void em_hook_clear_tensor(em_tensor *t);  // drops all hooks (tp_clear)
EM_PRIV void em_hook_clear_node(em_node *n);
#endif
