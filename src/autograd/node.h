// node.h: the recorded program. A node is one record: which operator ran, what it saved, and which records made its
// inputs. Nodes, their edges and their input metadata are one block. A record is never overwritten.
//
//   forward:  outputs = op(inputs)         one node for the call
//   edges[i]:  where the gradient of the i-th differentiable input goes (node NULL: nowhere)
//   inputs[j]: metadata of the j-th output of the forward call: gradients arriving there are checked and shaped to it
#ifndef EMBER_AUTOGRAD_NODE_H
#define EMBER_AUTOGRAD_NODE_H
#include "../dispatch/operator.h"

typedef struct em_edge {
  em_node *node;  // owned or NULL
  uint32_t nr;    // which of node's inputs
} em_edge;

// Enough of a tensor to shape, cast and check a gradient for it.
typedef struct em_input_meta {
  uint8_t dtype, ndim, known;   // known 0: slot not filled (undefined output)
  em_device device;
  uint64_t keys;
  int64_t *sizes;               // points to `dims` or to a heap block when ndim > EM_INLINE_DIMS
  int64_t dims[EM_INLINE_DIMS];
} em_input_meta;

struct em_saved;
// One saved field, for `grad_fn._saved_<name>`.
typedef enum em_saved_kind { EM_SAVED_TENSOR, EM_SAVED_TENSOR_LIST, EM_SAVED_VALUE } em_saved_kind;
typedef struct em_saved_field {
  const char *name;      // "self", "dim": Python sees _saved_self
  uint16_t offset;       // of the field within the node
  uint8_t kind;          // em_saved_kind; VALUE: get() makes the em_value
  em_status (*get)(em_node *node, em_value *out);
} em_saved_field;

typedef struct em_node_class {
  const char *name;      // "AddBackward0"; the Python type is named by what follows the last "::"
  // grads[n_inputs] borrowed, NULL is undefined; out[n_edges] starts as NULLs and receives new references. Only edges
  // that em_node_wants need filling. The engine sums to size, casts and checks afterwards: formulas need not.
  em_status (*apply)(em_node *node, em_tensor *const *grads, em_tensor **out);
  void (*release_saved)(em_node *node);  // drops saved values (after backward without retain_graph); may run twice
  void (*destroy)(em_node *node);        // frees what else the node owns (attributes on the heap); saved were released
  const em_saved_field *fields;
  uint16_t nfields;
  uint16_t size;         // bytes of the node struct without edges and input metadata
  const char *where;     // row that it came from, "derivatives.yaml:12"
  // apply even when all incoming gradients are NULL (custom functions that don't materialize, hooks)
  uint8_t always_runs;
} em_node_class;

struct em_node_hooks;
struct em_node {
  em_ref rc;
  uint32_t n_edges, n_inputs;
  uint32_t flags;              // EM_NODE_*
  const em_node_class *cls;
  uint64_t seq;                // creation order of this thread; higher runs first. UINT64_MAX for AccumulateGrad
  em_edge *edges;              // in the same block
  em_input_meta *inputs;       // in the same block
  struct em_node_hooks *hooks; // owned or NULL
  void *pyobj;                 // the Python node object, borrowed, or NULL
  em_value *anomaly;           // owned Python traceback in anomaly mode, or NULL
  em_node *anomaly_parent;     // owned
  // Engine scratch: this node's place in the one run that may write here (engine.c). Valid only if `run` is that run's
  // id.
  uint64_t run;
  uint32_t slot;
};
enum { EM_NODE_RELEASED = 1 /* saved values are gone */, EM_NODE_NEEDED_TWICE = 2 };

// In anomaly mode the host records where the node was made (sets n->anomaly), and tells it when the node's backward
// fails.
EM_PRIV extern void (*em_priv_anomaly_record)(em_node *n);
EM_PRIV extern void (*em_priv_anomaly_report)(em_node *n);
// Name for messages about the forward call: "Add" of "AddBackward0". Writes into buf, returns it.
EM_PRIV const char *em_node_forward_name(const em_node *n, char *buf, size_t size);

// One block: node struct (cls->size, zeroed after the header), then edges, then input metadata. New reference. NULL: no
// memory.
EM_PRIV em_node *em_node_new(const em_node_class *cls, uint32_t n_edges, uint32_t n_inputs);
EM_PRIV void em_node_free(em_node *n);  // iterative: never recurses along edges, however deep the graph
static inline em_node *em_node_retain(em_node *n) { if (n != NULL) em_ref_inc(&n->rc); return n; }
static inline void em_node_release(em_node *n) { if (n != NULL && em_ref_dec(&n->rc)) em_node_free(n); }
// Points edge i at whatever made t (its grad_fn, or its AccumulateGrad for a leaf); nowhere when t is NULL or needs no
// gradient.
EM_PRIV em_status em_node_set_edge(em_node *n, uint32_t i, em_tensor *t);
EM_PRIV em_status em_node_edge_of(em_tensor *t, em_edge *out);  // new reference in out->node, or NULL node
// Forward, while recording: some gradient will leave through edge i. Decides what is saved.
static inline bool em_node_has_edge(const em_node *n, uint32_t i) { return n->edges[i].node != NULL; }
// Backward, within apply: the gradient of edge i is asked for (a run with inputs= may leave edges out).
static inline bool em_node_wants(const em_node *n, uint32_t i) {
  return n->edges[i].node != NULL && (em_priv_tls.wants == NULL || em_priv_tls.wants[i]);
}
// Makes t the j-th output of n: grad_fn, output_nr, Autograd key, input metadata. Steals no references (n is retained).
// Integer dtypes are left alone: no gradient flows through them.
EM_PRIV em_status em_node_set_history(em_node *n, uint32_t j, em_tensor *t);
// The same for the usual case of one output: takes over the caller's reference to n, also when it fails.
EM_PRIV em_status em_node_give_history(em_node *n, em_tensor *t);

// --- the questions that autograd asks of tensors
// regenerates a view's when its base was written
EM_PRIV em_status em_tensor_grad_fn(em_tensor *t, em_node **borrowed);
EM_PRIV bool em_tensor_requires_grad_view(em_tensor *t);                // slow part: views
static inline bool em_tensor_requires_grad(em_tensor *t) {
  if (EM_LIKELY(!(t->keys & EM_KEYBIT(EM_KEY_Autograd)))) return false;
  return (t->flags & EM_T_REQUIRES_GRAD) || ((t->flags & EM_T_IS_VIEW) && em_tensor_requires_grad_view(t));
}
static inline bool em_grad_enabled(void) { return !(em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd)); }
static inline bool em_any_requires_grad(em_tensor *const *ts, int n) {
  for (int i = 0; i < n; i++) if (ts[i] != NULL && em_tensor_requires_grad(ts[i])) return true;
  return false;
}
EM_PRIV em_status em_tensor_set_requires_grad(em_tensor *t, bool on);   // leaves only, PyTorch's messages
EM_PRIV bool em_tensor_is_leaf(em_tensor *t);
EM_PRIV em_status em_tensor_detach(em_tensor *t, em_tensor **out);
EM_PRIV em_status em_tensor_grad(em_tensor *t, em_tensor **borrowed);   // .grad or NULL
EM_PRIV em_status em_tensor_set_grad(em_tensor *t, em_tensor *grad_or_null);  // checks as PyTorch does; retains
EM_PRIV em_status em_tensor_retain_grad(em_tensor *t);
// AccumulateGrad of a leaf: made on demand; holds the leaf while somebody holds it. New reference.
EM_PRIV em_status em_node_accumulator(em_tensor *leaf, em_node **out);
EM_PRIV extern const em_node_class em_class_accumulate_grad;
EM_PRIV em_tensor *em_priv_accumulate_variable(em_node *n);  // the leaf, borrowed
#endif
