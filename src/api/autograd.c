// autograd.c: ember/autograd.h.
#include "api.h"
#include "../autograd/engine.h"
#include <ember/autograd.h>  // after the library's own headers, whose inline forms win
#include <ember/scope.h>

EXPORT(bool, em_tensor_requires_grad, (em_tensor *t)) { return t != NULL && em_tensor_requires_grad(t); }
EXPORT(bool, em_grad_enabled, (void)) { return em_grad_enabled(); }

em_tensor *em_requires_grad_(em_tensor *t) {
  return em_scope_note(t == NULL ? em_fail_null("em_requires_grad_", "tensor") : em_tensor_set_requires_grad(t, true), t);
}

bool em_grad_set_enabled(bool on) {
  bool was = em_grad_enabled();
  if (on) em_priv_tls.exclude &= ~EM_KEYBIT(EM_KEY_Autograd);
  else em_priv_tls.exclude |= EM_KEYBIT(EM_KEY_Autograd);
  return was;
}

static em_backward_options options(int flags, bool accumulate) {
  bool create = (flags & EM_CREATE_GRAPH) != 0;
  return (em_backward_options){.keep_graph = create || (flags & EM_KEEP_GRAPH) != 0,
                               .create_graph = create,
                               .allow_unused = (flags & EM_ALLOW_UNUSED) != 0,
                               .accumulate = accumulate};
}

em_status em_backward(em_tensor *root, em_tensor *grad, int flags) {
  if (root == NULL) return em_fail_null("em_backward", "root");
  return em_engine_run(&root, &grad, 1, NULL, 0, options(flags, true), NULL);
}

em_status em_grad(em_tensor *const *outputs, em_tensor *const *grad_outputs, int64_t n, em_tensor *const *inputs, int64_t m,
                  int flags, em_tensor **results) {
  if (outputs == NULL || inputs == NULL || results == NULL)
    return em_fail(EM_ERR_TYPE, "em_grad(): an array is NULL");
  if (n <= 0 || m <= 0) return em_fail(EM_ERR_VALUE, "em_grad(): needs at least one output and one input");
  for (int64_t i = 0; i < n; i++)
    if (outputs[i] == NULL) return em_fail_null_entry("em_grad", "output", i);
  for (int64_t i = 0; i < m; i++) {
    if (inputs[i] == NULL) return em_fail_null_entry("em_grad", "input", i);
    results[i] = NULL;
  }
  em_tensor **none = NULL;
  if (grad_outputs == NULL) {
    none = em_alloc_zeroed((size_t)n * sizeof *none);
    if (none == NULL) return EM_NOMEM((size_t)n * sizeof *none);
  }
  em_status st = em_engine_run(outputs, grad_outputs == NULL ? none : grad_outputs, n, inputs, m, options(flags, false),
                               results);
  if (none != NULL) em_free(none, (size_t)n * sizeof *none);
  return st;
}

const char *em_node_name(const em_node *n) { return n == NULL ? NULL : n->cls->name; }
int em_node_next_count(const em_node *n) { return n == NULL ? 0 : (int)n->n_edges; }
em_node *em_node_next(const em_node *n, int i) {
  return n == NULL || i < 0 || i >= (int)n->n_edges ? NULL : n->edges[i].node;
}
