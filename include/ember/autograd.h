/* ember/autograd.h: recording, walking backward, gradients, hooks, modes. As in PyTorch: operators record themselves while
 * an input requires grad and recording is on in the calling thread. */
#ifndef EMBER_AUTOGRAD_H
#define EMBER_AUTOGRAD_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- leaves and gradients ---- */
/* Errors: EM_ERR_RUNTIME for integer dtypes and for tensors that were computed. */
EM_API EM_MUST_CHECK em_status em_tensor_set_requires_grad(em_tensor *t, bool on);
/* The same as an expression, `w = em_requires_grad_(em_randn(...))`: returns t, or NULL after a failure, which the scope notes. */
EM_API em_tensor *em_requires_grad_(em_tensor *t);
EM_API bool em_tensor_is_leaf(em_tensor *t);
#ifndef EMBER_AUTOGRAD_NODE_H /* the library's own files see inline forms of these */
EM_API bool em_tensor_requires_grad(em_tensor *t);
EM_API bool em_grad_enabled(void);
#endif
/* What backward left: *borrowed is the gradient, or NULL. */
EM_API EM_MUST_CHECK em_status em_tensor_grad(em_tensor *t, em_tensor **borrowed);
/* Replaces it; NULL drops it. Errors: EM_ERR_RUNTIME if shape, dtype or device differ. */
EM_API EM_MUST_CHECK em_status em_tensor_set_grad(em_tensor *t, em_tensor *grad);
/* Keep the gradient of a tensor that was computed, too. */
EM_API EM_MUST_CHECK em_status em_tensor_retain_grad(em_tensor *t);
/* Shares bytes, is not recorded. */
EM_API EM_MUST_CHECK em_status em_tensor_detach(em_tensor *t, em_tensor **out);

/* ---- backward ---- */
enum {
  EM_KEEP_GRAPH = 1,   /* what nodes saved stays, for another backward */
  EM_CREATE_GRAPH = 2, /* record the backward too (second order); implies EM_KEEP_GRAPH */
  EM_ALLOW_UNUSED = 4  /* em_grad: inputs that the outputs do not depend on get NULL instead of an error */
};
/* Adds to the .grad of every leaf behind `root`. grad: its gradient, or NULL for a root with one element.
 * Errors: whatever hooks and formulas report; EM_ERR_RUNTIME without a graph, or when it was freed. */
EM_API EM_MUST_CHECK em_status em_backward(em_tensor *root, em_tensor *grad, int flags);
/* Gradients of the sum of outputs[n] (weighted by grad_outputs[n]; the array or its entries may be NULL) for inputs[m],
 * into results[m] as new references. .grad of leaves is left alone. */
EM_API EM_MUST_CHECK em_status em_grad(em_tensor *const *outputs, em_tensor *const *grad_outputs, int64_t n,
                                       em_tensor *const *inputs, int64_t m, int flags, em_tensor **results);

/* ---- checking a derivative ---- */
/* A function of n tensors: *out = a new reference. A scope is open around each call, so that it can be an expression of
 * short forms: `*out = em_keep(...); return EM_OK;` (a failure among them is found by em_gradcheck). */
typedef em_status (*em_function)(void *context, em_tensor *const *inputs, int64_t n, em_tensor **out);
/* Compares the gradients that backward gives with central differences of step eps, for every element of every input that
 * requires grad and every element of the result: they agree where |a - b| <= atol + rtol |b|. PyTorch's values are eps
 * 1e-6, atol 1e-5, rtol 1e-3. While it runs the elements of the inputs change, one at a time; they are put back.
 * Errors: EM_ERR_RUNTIME for a gradient that differs, which the message gives with its place and both numbers;
 * EM_ERR_VALUE for inputs or results that are not float64 on the CPU, or if no input requires grad; what `fn` reports. */
EM_API EM_MUST_CHECK em_status em_gradcheck(em_function fn, void *context, em_tensor *const *inputs, int64_t n, double eps,
                                            double atol, double rtol);

/* ---- modes of the calling thread ---- */
/* Turns recording on or off; returns what it was, to be put back. */
EM_API bool em_grad_set_enabled(bool on);

/* ---- hooks ---- */
/* Sees the gradient of t when it is known, and may replace it: *out = a new reference, or NULL to leave it. A status
 * other than EM_OK ends the backward with it. */
typedef em_status (*em_tensor_hook_fn)(void *context, em_tensor *grad, em_tensor **out);
/* release(context) runs when the hook is gone. *id removes it again. */
EM_API EM_MUST_CHECK em_status em_hook_tensor(em_tensor *t, em_tensor_hook_fn fn, void *context, void (*release)(void *),
                                              uint64_t *id);
EM_API void em_hook_remove_tensor(em_tensor *t, uint64_t id);
/* Runs after a gradient was added to a leaf's .grad. */
typedef em_status (*em_accumulate_hook_fn)(void *context, em_tensor *leaf);
EM_API EM_MUST_CHECK em_status em_hook_accumulate(em_tensor *leaf, em_accumulate_hook_fn fn, void *context,
                                                  void (*release)(void *), uint64_t *id);
EM_API void em_hook_remove_accumulate(em_tensor *leaf, uint64_t id);

/* ---- the graph, to look at ---- */
/* The record that made t: *borrowed, or NULL for leaves. */
EM_API EM_MUST_CHECK em_status em_tensor_grad_fn(em_tensor *t, em_node **borrowed);
EM_API const char *em_node_name(const em_node *n);                    /* "MulBackward0" */
EM_API int em_node_next_count(const em_node *n);
EM_API em_node *em_node_next(const em_node *n, int i);                /* borrowed, or NULL: no gradient goes there */

#ifdef __cplusplus
}
#endif
#endif
