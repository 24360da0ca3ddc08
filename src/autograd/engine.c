// engine.c: one run of backward.
//
//   discover   every node reachable from the roots becomes a record; a record counts the edges that lead to it
//   filter     with inputs=, marks the records on a path to an input; others are passed by
//   loop       the ready node with the highest sequence number applies; its outputs are fitted and added to the next
//              nodes' buffers; a node whose last edge delivered becomes ready
//
// How a node finds its record: one run in the process may write `slot` into the nodes themselves; every other run that
// is active at the same time (another thread, or a hook that calls backward) keeps a hash map of its own.
#include "engine.h"
#include <pthread.h>
#include <string.h>
#include "gen_ops.h"
#include "internal.h"

typedef struct record {
  em_node *node;      // borrowed: the roots keep all alive
  uint32_t at;        // its gradients are grads[at .. at + n_inputs)
  uint32_t deps;      // edges that have not delivered yet
  uint8_t needed;     // filter: on a path to an input (or an input's accumulator that must run)
  uint8_t captured;   // filter: some input is one of its gradients
} record;
typedef struct ready { uint64_t seq; uint32_t r; } ready;
typedef struct callback {
  em_status (*fn)(void *);
  void *context;
  void (*release)(void *);
  struct callback *next;
} callback;

// A growable array that starts on the stack.
#define ARRAY(type, start) struct { type *p; size_t n, cap; type fixed[start]; }
#define ARRAY_INIT(a) ((a).p = (a).fixed, (a).n = 0, (a).cap = sizeof (a).fixed / sizeof *(a).p)
#define ARRAY_FREE(a) do { if ((a).p != (a).fixed) em_free((a).p, (a).cap * sizeof *(a).p); } while (0)
#define ARRAY_ROOM(a, want) \
  (EM_LIKELY((want) <= (a).cap) ? EM_OK : grow((void **)&(a).p, (a).fixed, &(a).cap, (a).n, (want), sizeof *(a).p))
static em_status grow(void **p, void *fixed, size_t *cap, size_t n, size_t want, size_t size) {
  size_t fresh = *cap * 2 > want ? *cap * 2 : want;
  void *q = em_alloc(fresh * size);
  if (q == NULL) return EM_NOMEM(fresh * size);
  memcpy(q, *p, n * size);
  if (*p != fixed) em_free(*p, *cap * size);
  *p = q;
  *cap = fresh;
  return EM_OK;
}

typedef struct task {
  struct task *outer;             // the run that this one interrupted, on this thread
  em_backward_options opt;
  uint64_t number;                // no two runs of a process have the same
  uint64_t id;                    // the number while this run may write into the nodes
  ARRAY(record, 24) rec;
  ARRAY(em_tensor *, 32) grads;   // owned
  ARRAY(ready, 24) heap;
  uint32_t *map;                  // open addressing: record index + 1, 0 is free
  size_t map_cap;
  bool filtered;
  em_edge *inputs;                // nodes owned
  int64_t ninputs;
  em_tensor **results;
  em_node *current;
  callback *callbacks, **last;
} task;

// ---- who may write into the nodes ---------------------------------------------------------------------------------

static void *_Atomic writer;      // TLS address of the thread whose run owns the nodes' scratch
static _Atomic uint64_t next_run = 1;
static void after_fork(void) {
  if (atomic_load(&writer) != &em_priv_tls) atomic_store(&writer, NULL);
}
__attribute__((constructor)) static void install(void) { pthread_atfork(NULL, NULL, after_fork); }

static inline size_t hash(const em_node *n) { return (size_t)(((uintptr_t)n >> 4) * 0x9E3779B97F4A7C15u >> 20); }
static uint32_t *map_cell(task *t, const em_node *n) {
  size_t i = hash(n) & (t->map_cap - 1);
  while (t->map[i] != 0 && t->rec.p[t->map[i] - 1].node != n) i = (i + 1) & (t->map_cap - 1);
  return &t->map[i];
}
static em_status map_room(task *t) {
  if ((t->rec.n + 1) * 2 <= t->map_cap) return EM_OK;
  size_t cap = t->map_cap == 0 ? 64 : t->map_cap * 2;
  uint32_t *fresh = em_alloc_zeroed(cap * sizeof *fresh);
  if (fresh == NULL) return EM_NOMEM(cap * sizeof *fresh);
  em_free(t->map, t->map_cap * sizeof *t->map);
  t->map = fresh;
  t->map_cap = cap;
  for (size_t i = 0; i < t->rec.n; i++) *map_cell(t, t->rec.p[i].node) = (uint32_t)i + 1;
  return EM_OK;
}
// The record of n, or NULL when n is not part of this run.
static record *find(task *t, em_node *n) {
  if (EM_LIKELY(t->id != 0)) return n->run == t->id ? &t->rec.p[n->slot] : NULL;
  if (t->map_cap == 0) return NULL;
  uint32_t i = *map_cell(t, n);
  return i == 0 ? NULL : &t->rec.p[i - 1];
}
static em_status find_or_add(task *t, em_node *n, record **out) {
  if ((*out = find(t, n)) != NULL) return EM_OK;
  EM_PASS(ARRAY_ROOM(t->rec, t->rec.n + 1));
  if (t->id != 0) {
    n->run = t->id;
    n->slot = (uint32_t)t->rec.n;
  } else {
    EM_PASS(map_room(t));
    *map_cell(t, n) = (uint32_t)t->rec.n + 1;
  }
  *out = &t->rec.p[t->rec.n++];
  **out = (record){.node = n, .at = (uint32_t)t->grads.n};
  EM_PASS(ARRAY_ROOM(t->grads, t->grads.n + n->n_inputs));
  for (uint32_t j = 0; j < n->n_inputs; j++) t->grads.p[t->grads.n++] = NULL;
  return EM_OK;
}

bool em_engine_will_run(em_node *n) {
  task *t = em_priv_tls.engine;
  const record *r = t == NULL ? NULL : find(t, n);
  return r != NULL && (!t->filtered || r->needed);
}

// ---- the ready heap -----------------------------------------------------------------------------------------------

static em_status push(task *t, uint32_t r) {
  EM_PASS(ARRAY_ROOM(t->heap, t->heap.n + 1));
  ready x = {t->rec.p[r].node->seq, r}, *h = t->heap.p;
  size_t i = t->heap.n++;
  for (; i > 0 && h[(i - 1) / 2].seq < x.seq; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = x;
  return EM_OK;
}
static uint32_t pop(task *t) {
  ready *h = t->heap.p;
  uint32_t top = h[0].r;
  ready x = h[--t->heap.n];
  size_t i = 0, n = t->heap.n;
  for (size_t c; (c = 2 * i + 1) < n; i = c) {
    if (c + 1 < n && h[c + 1].seq > h[c].seq) c++;
    if (h[c].seq <= x.seq) break;
    h[i] = h[c];
  }
  h[i] = x;
  return top;
}

// ---- gradients: fitting and adding --------------------------------------------------------------------------------

static em_status no_fit(const em_input_meta *meta, const em_tensor *grad, const em_node *from, uint32_t i) {
  char got[512], want[512];
  return em_fail(EM_ERR_RUNTIME,
                 "Function %s returned an invalid gradient at index %u - got %s but expected shape compatible with %s",
                 from == NULL ? "torch::autograd::GraphRoot" : from->cls->name, i,
                 em_shape_format(grad->ndim, grad->sizes, got, sizeof got),
                 em_shape_format(meta->ndim, meta->sizes, want, sizeof want));
}
static em_status sum_to(const em_input_meta *meta, em_tensor *grad, em_tensor **out) {
  int64_t dims[EM_MAX_DIMS];
  int n = 0, lead = grad->ndim - meta->ndim;
  for (int i = 0; i < grad->ndim; i++)
    if (i < lead || (meta->sizes[i - lead] == 1 && grad->sizes[i] != 1)) dims[n++] = i;
  em_tensor *sum;
  EM_PASS(em_call_sum_dim_IntList(grad, (em_ints){dims, n}, true, EM_DTYPE_NONE, &sum));
  if (lead == 0) {
    *out = sum;
    return EM_OK;
  }
  em_status st = em_call_view(sum, (em_ints){meta->sizes, meta->ndim}, out);
  em_tensor_release(sum);
  return st;
}
static em_status cast_to(em_tensor *grad, int dtype, em_device device, em_tensor **out) {
  return em_call__to_copy(grad, dtype, -1, device, -1, false, EM_FORMAT_NONE, out);
}

em_status em_engine_fit(const em_input_meta *meta, em_tensor *grad, const em_node *from, uint32_t i, em_tensor **out) {
  bool same = em_shape_equal(meta->ndim, meta->sizes, grad->ndim, grad->sizes);
  em_tensor *t = em_tensor_retain(grad), *next;
  if (EM_LIKELY(!meta->known || (same && grad->dtype == meta->dtype && grad->device.type == meta->device.type))) {
    *out = t;
    return EM_OK;
  }
  em_status st = EM_OK;
  if (!same) {
    int lead = grad->ndim - meta->ndim;
    bool ok = lead >= 0;
    for (int k = 0; ok && k < meta->ndim; k++) ok = meta->sizes[k] == 1 || meta->sizes[k] == grad->sizes[k + lead];
    if (!ok) {
      st = no_fit(meta, grad, from, i);
      goto fail;
    }
    EM_TRY(sum_to(meta, t, &next));
    em_tensor_release(t);
    t = next;
  }
  if (t->device.type != meta->device.type && t->ndim != 0) {
    char want[24], got[24];
    EM_FAIL(EM_ERR_RUNTIME, "Function %s returned an invalid gradient at index %u - expected device %s but got %s",
            from == NULL ? "torch::autograd::GraphRoot" : from->cls->name, i, em_device_format(meta->device, want),
            em_device_format(t->device, got));
  }
  // the real part too: a cast drops the imaginary one
  if (t->dtype != meta->dtype || t->device.type != meta->device.type) {
    EM_TRY(cast_to(t, meta->dtype, t->device.type == meta->device.type ? EM_DEVICE_NONE : meta->device, &next));
    em_tensor_release(t);
    t = next;
  }
  *out = t;
  return EM_OK;
fail:
  em_tensor_release(t);
  return st;
}

em_status em_engine_zeros(const em_input_meta *meta, em_tensor **out) {
  return em_call_zeros((em_ints){meta->sizes, meta->ndim}, meta->dtype, -1, meta->device, -1, out);
}

// Adds `grad` (taken) to a buffer. In place where nobody else sees the buffer's bytes.
static em_status add_to_buffer(em_tensor **buffer, em_tensor *grad) {
  if (*buffer == NULL) {
    *buffer = grad;
    return EM_OK;
  }
  em_tensor *sum = NULL;
  em_status st;
  if (!em_grad_enabled() && em_tensor_is_contiguous(*buffer) && (*buffer)->dtype == grad->dtype &&
      em_priv_sole_owner(*buffer)) {
    st = em_call_add__Tensor(*buffer, grad, em_scalar_int(1));
  } else {
    st = em_call_add_Tensor(*buffer, grad, em_scalar_int(1), &sum);
    if (st == EM_OK) {
      em_tensor_release(*buffer);
      *buffer = sum;
    }
  }
  em_tensor_release(grad);
  return st;
}

// ---- set-up -------------------------------------------------------------------------------------------------------

static em_status check_given_grad(em_tensor *root, em_tensor *grad, int64_t i) {
  if (!em_tensor_same_sizes(root, grad)) {
    char a[512], b[512];
    return em_fail(EM_ERR_RUNTIME,
                   "Mismatch in shape: grad_output[%lld] has a shape of torch.Size(%s) and output[%lld] has a shape of "
                   "torch.Size(%s).",
                   (long long)i, em_shape_format(grad->ndim, grad->sizes, a, sizeof a), (long long)i,
                   em_shape_format(root->ndim, root->sizes, b, sizeof b));
  }
  if (em_dtype_is_complex(root->dtype) != em_dtype_is_complex(grad->dtype))
    return em_fail(EM_ERR_RUNTIME,
                   "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                   "dtype: grad_output[%lld] has a dtype of torch.%s and output[%lld] has a dtype of torch.%s.",
                   (long long)i, em_dtype_name(grad->dtype), (long long)i, em_dtype_name(root->dtype));
  return EM_OK;
}
// The gradient that a root starts with; new reference.
static em_status root_grad(em_tensor *root, em_tensor *given, int64_t i, em_tensor **out) {
  if (given != NULL) {
    EM_PASS(check_given_grad(root, given, i));
    *out = em_tensor_retain(given);
    return EM_OK;
  }
  if (!em_tensor_requires_grad(root)) return EM_OK;  // refused when its edge is asked for
  if (root->numel != 1) return em_fail(EM_ERR_RUNTIME, "grad can be implicitly created only for scalar outputs");
  if (!em_dtype_is_float(root->dtype))
    return em_fail(EM_ERR_RUNTIME, "grad can be implicitly created only for real scalar outputs but got torch.%s",
                   em_dtype_name(root->dtype));
  // One element: without a layer that watches, the one is made directly.
  if (!((root->keys | em_priv_tls.include | em_priv_global_include) &
        ~(EM_KEYBIT(EM_KEY_Autograd) | EM_KEYBIT(EM_KEY_Alias) | EM_KEYBIT(EM_KEY_CPU)))) {
    EM_PASS(em_tensor_from_scalar(em_scalar_double(1), root->dtype, root->device, out));
    return root->ndim == 0 ? EM_OK : em_tensor_set_window(*out, root->ndim, root->sizes, NULL, 0);
  }
  return em_call_ones_like(root, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_PRESERVE, out);
}

static em_status add_root(task *t, em_tensor *root, em_tensor *given, int64_t i, em_edge *edge) {
  em_tensor *grad = NULL, *fitted = NULL;
  em_status st = EM_OK;
  EM_TRY(root_grad(root, given, i, &grad));
  EM_TRY(em_node_edge_of(root, edge));
  if (edge->node == NULL)
    EM_FAIL(EM_ERR_RUNTIME, "element %lld of tensors does not require grad and does not have a grad_fn", (long long)i);
  EM_TRY(em_engine_fit(&edge->node->inputs[edge->nr], grad, NULL, (uint32_t)i, &fitted));
  record *r;
  EM_TRY(find_or_add(t, edge->node, &r));
  EM_CLEAR_TENSOR(&grad);
  EM_TRY(add_to_buffer(&t->grads.p[r->at + edge->nr], fitted));
  fitted = NULL;
fail:
  em_tensor_release(grad);
  if (st != EM_OK) em_tensor_release(fitted);
  return st;
}

static em_status discover(task *t) {
  for (size_t i = 0; i < t->rec.n; i++) {
    em_node *n = t->rec.p[i].node;
    for (uint32_t e = 0; e < n->n_edges; e++) {
      record *r;
      if (n->edges[e].node == NULL) continue;
      EM_PASS(find_or_add(t, n->edges[e].node, &r));
      r->deps++;
    }
  }
  return EM_OK;
}

// Marks what the inputs need: a record is needed when one of its edges leads to an input or to a needed record.
static em_status filter(task *t) {
  size_t n = t->rec.n, head = 0, tail = 0;
  uint32_t *order = em_alloc(2 * n * sizeof *order), *left = order + n;
  if (order == NULL) return EM_NOMEM(2 * n * sizeof *order);
  for (size_t i = 0; i < n; i++)
    if ((left[i] = t->rec.p[i].deps) == 0) order[tail++] = (uint32_t)i;
  while (head < tail) {  // topological order
    em_node *node = t->rec.p[order[head++]].node;
    for (uint32_t e = 0; e < node->n_edges; e++) {
      if (node->edges[e].node == NULL) continue;
      size_t r = (size_t)(find(t, node->edges[e].node) - t->rec.p);
      if (--left[r] == 0) order[tail++] = (uint32_t)r;
    }
  }
  while (tail-- > 0) {
    record *r = &t->rec.p[order[tail]];
    for (uint32_t e = 0; e < r->node->n_edges && !r->needed; e++) {
      if (r->node->edges[e].node == NULL) continue;
      record *c = find(t, r->node->edges[e].node);
      r->needed = c->needed | c->captured;
    }
  }
  em_free(order, 2 * n * sizeof *order);
  return EM_OK;
}

// Edges of the inputs. A leaf that never took part has none: its gradient stays undefined.
static em_status find_inputs(task *t, em_tensor *const *inputs, int64_t m) {
  if ((t->inputs = em_alloc_zeroed((size_t)m * sizeof *t->inputs)) == NULL)
    return EM_NOMEM((size_t)m * sizeof *t->inputs);
  t->ninputs = m;
  t->filtered = true;
  for (int64_t k = 0; k < m; k++) {
    if (!em_tensor_requires_grad(inputs[k]))
      return em_fail(EM_ERR_RUNTIME, "One of the differentiated Tensors does not require grad");
    if (t->opt.accumulate) EM_PASS(em_tensor_retain_grad(inputs[k]));
    EM_PASS(em_node_edge_of(inputs[k], &t->inputs[k]));
  }
  return EM_OK;
}
static void mark_inputs(task *t) {
  for (int64_t k = 0; k < t->ninputs; k++) {
    record *r = find(t, t->inputs[k].node);
    if (r == NULL) continue;
    if (t->opt.accumulate) r->needed = 1;
    else r->captured = 1;
  }
}

// ---- the loop -----------------------------------------------------------------------------------------------------

static em_status tensor_hooks(em_node *n, em_tensor **grads) {
  if (n->cls == &em_class_accumulate_grad) return em_priv_run_leaf_hooks(em_priv_accumulate_variable(n), grads);
  return em_priv_run_tensor_hooks(n, grads);
}

static void capture(task *t, em_node *n, em_tensor *const *grads) {
  for (int64_t k = 0; k < t->ninputs; k++) {
    if (t->inputs[k].node != n) continue;
    em_tensor_release(t->results[k]);
    t->results[k] = em_tensor_retain(grads[t->inputs[k].nr]);
  }
}

static em_status check_nan(em_node *n, em_tensor *const *outs) {
  em_guard g = em_priv_set_recording(false);
  em_tensor *differs = NULL, *any = NULL;
  em_status st = EM_OK;
  for (uint32_t i = 0; i < n->n_edges; i++) {
    if (outs[i] == NULL || !em_dtype_is_differentiable(outs[i]->dtype)) continue;
    em_scalar found;
    EM_TRY(em_call_ne_Tensor(outs[i], outs[i], &differs));
    EM_TRY(em_call_any(differs, &any));
    EM_TRY(em_tensor_item(any, &found));
    EM_CLEAR_TENSOR(&differs);
    EM_CLEAR_TENSOR(&any);
    if (found.i)
      EM_FAIL(EM_ERR_RUNTIME, "Function '%s' returned nan values in its %uth output.", n->cls->name, i);
  }
fail:
  em_tensor_release(differs);
  em_tensor_release(any);
  em_guard_restore(g);
  return st;
}

static em_status apply_wanted(task *t, em_node *n, em_tensor *const *grads, em_tensor **outs) {
  uint8_t fixed[32], *wants = fixed;
  const uint8_t *before = em_priv_tls.wants;
  if (t->filtered) {
    if (n->n_edges > sizeof fixed && (wants = em_alloc(n->n_edges)) == NULL) return EM_NOMEM(n->n_edges);
    for (uint32_t e = 0; e < n->n_edges; e++) {
      record *c = n->edges[e].node == NULL ? NULL : find(t, n->edges[e].node);
      wants[e] = c != NULL && (c->needed || c->captured);
    }
    em_priv_tls.wants = wants;
  } else {
    em_priv_tls.wants = NULL;
  }
  em_status st = n->cls->apply(n, grads, outs);
  em_priv_tls.wants = before;
  if (wants != fixed) em_free(wants, n->n_edges);
  return st;
}

// Runs one node on its gradients: outs[n_edges] receives fitted gradients.
static em_status apply(task *t, em_node *n, em_tensor **grads, em_tensor **outs) {
  em_status st = EM_OK;
  bool any = n->cls->always_runs != 0;
  for (uint32_t j = 0; j < n->n_inputs; j++) any |= grads[j] != NULL;
  if (any) EM_TRY(apply_wanted(t, n, grads, outs));
  for (uint32_t e = 0; e < n->n_edges; e++) {
    if (outs[e] == NULL || n->edges[e].node == NULL) continue;  // what leads nowhere is there for hooks only
    em_tensor *fitted;
    EM_TRY(em_engine_fit(&n->edges[e].node->inputs[n->edges[e].nr], outs[e], n, e, &fitted));
    em_tensor_release(outs[e]);
    outs[e] = fitted;
  }
  if (EM_UNLIKELY(n->hooks != NULL) && em_priv_has_post_hooks(n)) EM_TRY(em_priv_run_post_hooks(n, outs, grads));
  if (EM_UNLIKELY(em_priv_tls.anomaly & 2)) EM_TRY(check_nan(n, outs));
fail:
  return st;
}

static em_status deliver(task *t, em_node *n, em_tensor **outs) {
  em_status st = EM_OK;
  for (uint32_t e = 0; e < n->n_edges; e++) {
    em_node *next = n->edges[e].node;
    em_tensor *grad = outs[e];
    outs[e] = NULL;
    record *r = next == NULL ? NULL : find(t, next);
    bool runs = r != NULL && st == EM_OK && (!t->filtered || r->needed || r->captured);
    if (grad != NULL) {
      if (runs) st = add_to_buffer(&t->grads.p[r->at + n->edges[e].nr], grad);
      else em_tensor_release(grad);
    }
    if (r != NULL && --r->deps == 0 && runs && st == EM_OK) st = push(t, (uint32_t)(r - t->rec.p));
  }
  return st;
}

static em_status evaluate(task *t, record *r) {
  em_node *n = r->node;
  em_tensor **grads = t->grads.p + r->at;
  em_tensor *fixed[8], **outs = fixed;
  em_status st = EM_OK;
  t->current = n;
  if (t->filtered) {
    if (!r->needed) EM_PASS(tensor_hooks(n, grads));
    if (r->captured) capture(t, n, grads);
    if (!r->needed) goto drop;
  }
  EM_PASS(tensor_hooks(n, grads));
  if (EM_UNLIKELY(n->hooks != NULL)) EM_PASS(em_priv_run_pre_hooks(n, grads));
  if (n->n_edges > sizeof fixed / sizeof *fixed) {
    if ((outs = em_alloc(n->n_edges * sizeof *outs)) == NULL) return EM_NOMEM(n->n_edges * sizeof *outs);
  }
  for (uint32_t e = 0; e < n->n_edges; e++) outs[e] = NULL;
  if (n->cls == &em_class_accumulate_grad) {
    bool post = EM_UNLIKELY(n->hooks != NULL) && em_priv_has_post_hooks(n);
    em_tensor *seen = post ? em_tensor_retain(grads[0]) : NULL;  // held for the hooks, so the leaf copies it
    st = em_priv_accumulate(n, &grads[0]);
    if (post && st == EM_OK) st = em_priv_run_post_hooks(n, outs, grads);
    em_tensor_release(seen);
  } else {
    st = apply(t, n, grads, outs);
  }
  if (st != EM_OK && em_priv_tls.anomaly && em_priv_anomaly_report != NULL) em_priv_anomaly_report(n);
  if (!t->opt.keep_graph && n->cls->release_saved != NULL) {
    n->cls->release_saved(n);
    n->flags |= EM_NODE_RELEASED;
  }
  // The node's own gradients go before they are delivered on: a gradient that passed through is then owned by its
  // buffer alone.
  for (uint32_t j = 0; j < n->n_inputs; j++) EM_CLEAR_TENSOR(&grads[j]);
  if (st == EM_OK) st = deliver(t, n, outs);
  for (uint32_t e = 0; e < n->n_edges; e++) em_tensor_release(outs[e]);
  if (outs != fixed) em_free(outs, n->n_edges * sizeof *outs);
  return st;
drop:
  for (uint32_t j = 0; j < n->n_inputs; j++) EM_CLEAR_TENSOR(&grads[j]);
  return EM_OK;
}

static em_status loop(task *t) {
  for (size_t i = 0; i < t->rec.n; i++) {
    record *r = &t->rec.p[i];
    if (r->deps != 0) continue;  // only roots can be without an edge leading to them
    if (!t->filtered || r->needed || r->captured) EM_PASS(push(t, (uint32_t)i));
  }
  while (t->heap.n > 0) EM_PASS(evaluate(t, &t->rec.p[pop(t)]));
  t->current = NULL;
  for (callback *c = t->callbacks; c != NULL; c = c->next) EM_PASS(c->fn(c->context));  // a callback may queue another
  return EM_OK;
}

static em_status check_results(task *t, em_tensor *const *inputs) {
  for (int64_t k = 0; k < t->ninputs; k++) {
    if (t->results[k] != NULL) continue;
    if (t->opt.materialize) {
      EM_PASS(em_call_zeros_like(inputs[k], EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t->results[k]));
    } else if (!t->opt.allow_unused) {
      return em_fail(EM_ERR_RUNTIME,
                     "The differentiated Tensor at index %lld appears to not have been used in the graph. Set "
                     "allow_unused=True if this is the desired behavior.",
                     (long long)k);
    }
  }
  return EM_OK;
}

static void task_end(task *t, em_edge *roots, int64_t n) {
  for (size_t i = 0; i < t->grads.n; i++) em_tensor_release(t->grads.p[i]);
  while (t->callbacks != NULL) {
    callback *c = t->callbacks;
    t->callbacks = c->next;
    if (c->release != NULL) c->release(c->context);
    em_free(c, sizeof *c);
  }
  if (t->id != 0) atomic_store_explicit(&writer, NULL, memory_order_release);
  for (int64_t k = 0; k < t->ninputs; k++) em_node_release(t->inputs[k].node);
  em_free(t->inputs, (size_t)t->ninputs * sizeof *t->inputs);
  for (int64_t i = 0; i < n; i++) em_node_release(roots[i].node);
  em_free(t->map, t->map_cap * sizeof *t->map);
  ARRAY_FREE(t->rec);
  ARRAY_FREE(t->grads);
  ARRAY_FREE(t->heap);
}

em_status em_engine_run(em_tensor *const *roots, em_tensor *const *root_grads, int64_t n, em_tensor *const *inputs,
                        int64_t m, em_backward_options opt, em_tensor **results) {
  task t;
  t.outer = em_priv_tls.engine;
  t.opt = opt;
  t.number = atomic_fetch_add(&next_run, 1);
  t.id = 0;
  t.map = NULL;
  t.map_cap = 0;
  t.filtered = false;
  t.inputs = NULL;
  t.ninputs = 0;
  t.results = results;
  t.current = NULL;
  t.callbacks = NULL;
  t.last = &t.callbacks;
  ARRAY_INIT(t.rec);
  ARRAY_INIT(t.grads);
  ARRAY_INIT(t.heap);
  void *nobody = NULL;
  if (atomic_compare_exchange_strong(&writer, &nobody, &em_priv_tls)) t.id = t.number;
  em_edge fixed[4], *edges = fixed;
  em_status st = EM_OK;
  const uint8_t *wants = em_priv_tls.wants;
  if (n > 4 && (edges = em_alloc((size_t)n * sizeof *edges)) == NULL) {
    if (t.id != 0) atomic_store(&writer, NULL);
    return EM_NOMEM((size_t)n * sizeof *edges);
  }
  memset(edges, 0, (size_t)n * sizeof *edges);
  for (int64_t k = 0; results != NULL && k < m; k++) results[k] = NULL;
  em_guard guard = em_priv_set_recording(opt.create_graph);
  em_priv_tls.engine = &t;
  em_priv_tls.wants = NULL;
  for (int64_t i = 0; i < n; i++)
    EM_TRY(add_root(&t, roots[i], root_grads == NULL ? NULL : root_grads[i], i, &edges[i]));
  if (m > 0) EM_TRY(find_inputs(&t, inputs, m));
  EM_TRY(discover(&t));
  if (m > 0) {
    mark_inputs(&t);
    EM_TRY(filter(&t));
  }
  EM_TRY(loop(&t));
  if (m > 0 && !opt.accumulate) EM_TRY(check_results(&t, inputs));
fail:
  em_priv_tls.engine = t.outer;
  em_priv_tls.wants = wants;
  em_guard_restore(guard);
  task_end(&t, edges, n);
  if (edges != fixed) em_free(edges, (size_t)n * sizeof *edges);
  if (st != EM_OK && results != NULL)
    for (int64_t k = 0; k < m; k++) EM_CLEAR_TENSOR(&results[k]);
  return st;
}

em_status em_engine_queue_callback(em_status (*fn)(void *), void *context, void (*release)(void *)) {
  task *t = em_priv_tls.engine;
  if (t == NULL) return em_fail(EM_ERR_RUNTIME, "Final callbacks can only be installed during backward pass.");
  callback *c = em_alloc(sizeof *c);
  if (c == NULL) return EM_NOMEM(sizeof *c);
  *c = (callback){fn, context, release, NULL};
  *t->last = c;
  t->last = &c->next;
  return EM_OK;
}

int64_t em_engine_run_number(void) {
  const task *t = em_priv_tls.engine;
  return t == NULL ? -1 : (int64_t)t->number;
}
em_node *em_engine_current_node(void) {
  task *t = em_priv_tls.engine;
  return t == NULL ? NULL : t->current;
}
