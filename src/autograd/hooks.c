// hooks.c: lists of callbacks. A list runs over a snapshot, so that a hook may add and remove hooks, itself too.
#include "hooks.h"
#include <string.h>
#include "gen_ops.h"
#include "internal.h"

typedef enum hook_kind { ON_GRAD, ON_RETAIN, ON_PRE, ON_POST, ON_ACCUMULATED } hook_kind;
struct em_hook {
  em_ref rc;         // the list's reference, and one a running snapshot
  uint8_t kind;      // hook_kind
  uint32_t nr;       // ON_GRAD, ON_RETAIN on a node: which of its outputs
  uint64_t id;
  em_hook *next;
  union {
    em_tensor_hook_fn grad;
    em_node_prehook_fn pre;
    em_node_posthook_fn post;
    em_accumulate_hook_fn accumulated;
  };
  void *context;     // ON_RETAIN: the tensor's em_autograd_meta, or NULL
  void (*release)(void *);
};
struct em_node_hooks { em_hook *first; };
struct em_tensor_hooks { em_hook *first; };

static _Atomic uint64_t next_id = 1;

static void hook_release(em_hook *h) {
  if (!em_ref_dec(&h->rc)) return;
  if (h->release != NULL) h->release(h->context);
  em_free(h, sizeof *h);
}
static void list_free(em_hook *h) {
  while (h != NULL) {
    em_hook *next = h->next;
    hook_release(h);
    h = next;
  }
}
void em_priv_node_hooks_free(struct em_node_hooks *h) {
  list_free(h->first);
  em_free(h, sizeof *h);
}
void em_priv_tensor_hooks_free(struct em_tensor_hooks *h) {
  list_free(h->first);
  em_free(h, sizeof *h);
}

// Appends a hook; on failure the context stays the caller's.
static em_status append(em_hook **list, em_hook init, uint64_t *id) {
  em_hook *h = em_alloc(sizeof *h);
  if (h == NULL) return EM_NOMEM(sizeof *h);
  *h = init;
  atomic_init(&h->rc, 1);
  h->next = NULL;
  h->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
  while (*list != NULL) list = &(*list)->next;
  *list = h;
  if (id != NULL) *id = h->id;
  return EM_OK;
}
static void remove_id(em_hook **list, uint64_t id) {
  for (; *list != NULL; list = &(*list)->next)
    if ((*list)->id == id) {
      em_hook *h = *list;
      *list = h->next;
      hook_release(h);
      return;
    }
}

static em_status node_hooks(em_node *n, struct em_node_hooks **out) {
  if (n->hooks == NULL) {
    if ((n->hooks = em_alloc_zeroed(sizeof *n->hooks)) == NULL) return EM_NOMEM(sizeof *n->hooks);
  }
  *out = n->hooks;
  return EM_OK;
}
static em_status tensor_hooks(em_tensor *t, struct em_tensor_hooks **out) {
  em_autograd_meta *meta;
  EM_PASS(em_tensor_meta(t, &meta));
  if (meta->hooks == NULL) {
    if ((meta->hooks = em_alloc_zeroed(sizeof *meta->hooks)) == NULL) return EM_NOMEM(sizeof *meta->hooks);
  }
  *out = meta->hooks;
  return EM_OK;
}

em_status em_hook_tensor(em_tensor *t, em_tensor_hook_fn fn, void *context, void (*release)(void *), uint64_t *id) {
  if (t == NULL || fn == NULL) return em_fail_null("em_hook_tensor", t == NULL ? "tensor" : "hook");
  if (!em_tensor_requires_grad(t))
    return em_fail(EM_ERR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
  em_hook h = {.kind = ON_GRAD, .grad = fn, .context = context, .release = release};
  em_node *n;
  EM_PASS(em_tensor_grad_fn(t, &n));
  if (n == NULL) {
    struct em_tensor_hooks *hooks = NULL;
    EM_PASS(tensor_hooks(t, &hooks));
    return append(&hooks->first, h, id);
  }
  h.nr = t->meta->output_nr;
  struct em_node_hooks *hooks = NULL;
  EM_PASS(node_hooks(n, &hooks));
  return append(&hooks->first, h, id);
}
em_status em_hook_node_pre(em_node *n, em_node_prehook_fn fn, void *context, void (*release)(void *), uint64_t *id) {
  struct em_node_hooks *hooks = NULL;
  EM_PASS(node_hooks(n, &hooks));
  return append(&hooks->first, (em_hook){.kind = ON_PRE, .pre = fn, .context = context, .release = release}, id);
}
em_status em_hook_node_post(em_node *n, em_node_posthook_fn fn, void *context, void (*release)(void *), uint64_t *id) {
  struct em_node_hooks *hooks = NULL;
  EM_PASS(node_hooks(n, &hooks));
  return append(&hooks->first, (em_hook){.kind = ON_POST, .post = fn, .context = context, .release = release}, id);
}
em_status em_hook_accumulate(em_tensor *leaf, em_accumulate_hook_fn fn, void *context, void (*release)(void *),
                             uint64_t *id) {
  if (leaf == NULL || fn == NULL)
    return em_fail_null("em_hook_accumulate", leaf == NULL ? "leaf" : "hook");
  if (!em_tensor_requires_grad(leaf))
    return em_fail(EM_ERR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
  if (!em_tensor_is_leaf(leaf))
    return em_fail(EM_ERR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
  struct em_tensor_hooks *hooks = NULL;
  EM_PASS(tensor_hooks(leaf, &hooks));
  return append(&hooks->first,
                (em_hook){.kind = ON_ACCUMULATED, .accumulated = fn, .context = context, .release = release}, id);
}

void em_hook_remove_tensor(em_tensor *t, uint64_t id) {
  if (t == NULL || t->meta == NULL) return;
  if (t->meta->hooks != NULL) remove_id(&t->meta->hooks->first, id);
  if (t->meta->grad_fn != NULL) em_hook_remove_node(t->meta->grad_fn, id);
}
void em_hook_remove_node(em_node *n, uint64_t id) {
  if (n->hooks != NULL) remove_id(&n->hooks->first, id);
}
void em_hook_remove_accumulate(em_tensor *leaf, uint64_t id) { em_hook_remove_tensor(leaf, id); }

static void visit_list(em_hook *h, int (*visit)(void *, void *), void *arg) {
  for (; h != NULL; h = h->next)
    if (h->kind != ON_RETAIN && visit(h->context, arg) != 0) return;
}
void em_hook_visit_tensor(em_tensor *t, int (*visit)(void *, void *), void *arg) {
  if (t->meta != NULL && t->meta->hooks != NULL) visit_list(t->meta->hooks->first, visit, arg);
}
void em_hook_visit_node(em_node *n, int (*visit)(void *, void *), void *arg) {
  if (n->hooks != NULL) visit_list(n->hooks->first, visit, arg);
}
void em_hook_clear_tensor(em_tensor *t) {
  if (t->meta == NULL || t->meta->hooks == NULL) return;
  em_hook *list = t->meta->hooks->first;
  t->meta->hooks->first = NULL;
  list_free(list);
}
void em_hook_clear_node(em_node *n) {
  if (n->hooks == NULL) return;
  em_hook *list = n->hooks->first;
  n->hooks->first = NULL;
  list_free(list);
}

// ---- running ------------------------------------------------------------------------------------------------------

#define SNAPSHOT 16
typedef struct snapshot { em_hook **p, *fixed[SNAPSHOT]; size_t n, cap; } snapshot;

static em_status snapshot_take(snapshot *s, em_hook *list, uint32_t kinds) {
  s->p = s->fixed;
  s->n = 0;
  s->cap = SNAPSHOT;
  size_t count = 0;
  for (em_hook *h = list; h != NULL; h = h->next) count += (kinds >> h->kind) & 1;
  if (count > SNAPSHOT) {
    if ((s->p = em_alloc(count * sizeof *s->p)) == NULL) return EM_NOMEM(count * sizeof *s->p);
    s->cap = count;
  }
  for (em_hook *h = list; h != NULL; h = h->next)
    if ((kinds >> h->kind) & 1) {
      em_ref_inc(&h->rc);
      s->p[s->n++] = h;
    }
  return EM_OK;
}
static void snapshot_drop(snapshot *s) {
  for (size_t i = 0; i < s->n; i++) hook_release(s->p[i]);
  if (s->p != s->fixed) em_free(s->p, s->cap * sizeof *s->p);
}

static em_status run_grad_hook(em_hook *h, em_tensor **grad) {
  if (*grad == NULL) return EM_OK;
  em_tensor *out = NULL;
  EM_PASS(h->grad(h->context, *grad, &out));
  if (out != NULL) {
    em_tensor_release(*grad);
    *grad = out;
  }
  return EM_OK;
}

// Hooks of the tensors that n made, in order of registration; retain_grad's come last so that they see the final
// gradient.
em_status em_priv_run_tensor_hooks(em_node *n, em_tensor **grads) {
  if (n->hooks == NULL) return EM_OK;
  em_status st = EM_OK;
  for (int pass = 0; pass < 2 && st == EM_OK; pass++) {
    snapshot s;
    EM_PASS(snapshot_take(&s, n->hooks->first, 1u << (pass == 0 ? ON_GRAD : ON_RETAIN)));
    for (size_t i = 0; i < s.n && st == EM_OK; i++) st = run_grad_hook(s.p[i], &grads[s.p[i]->nr]);
    snapshot_drop(&s);
  }
  return st;
}
em_status em_priv_run_leaf_hooks(em_tensor *leaf, em_tensor **grad) {
  if (leaf->meta == NULL || leaf->meta->hooks == NULL) return EM_OK;
  snapshot s;
  em_status st = snapshot_take(&s, leaf->meta->hooks->first, 1u << ON_GRAD);
  if (st != EM_OK) return st;
  for (size_t i = 0; i < s.n && st == EM_OK; i++) st = run_grad_hook(s.p[i], grad);
  snapshot_drop(&s);
  return st;
}
em_status em_priv_run_accumulate_hooks(em_tensor *leaf) {
  if (leaf->meta == NULL || leaf->meta->hooks == NULL) return EM_OK;
  snapshot s;
  em_status st = snapshot_take(&s, leaf->meta->hooks->first, 1u << ON_ACCUMULATED);
  if (st != EM_OK) return st;
  for (size_t i = 0; i < s.n && st == EM_OK; i++) st = s.p[i]->accumulated(s.p[i]->context, leaf);
  snapshot_drop(&s);
  return st;
}

// Takes what a node hook handed back: an entry that is set replaces.
static void replace(em_tensor **grads, em_tensor **fresh, uint32_t n, bool replaced) {
  for (uint32_t i = 0; i < n; i++) {
    if (fresh[i] == NULL) continue;
    if (replaced) {
      em_tensor_release(grads[i]);
      grads[i] = fresh[i];
    } else {
      em_tensor_release(fresh[i]);
    }
    fresh[i] = NULL;
  }
}

em_status em_priv_run_pre_hooks(em_node *n, em_tensor **grads) {
  if (n->hooks == NULL) return EM_OK;
  snapshot s;
  EM_PASS(snapshot_take(&s, n->hooks->first, 1u << ON_PRE));
  em_status st = EM_OK;
  em_tensor **fresh = em_alloc_zeroed(sizeof *fresh * (n->n_inputs + 1));
  if (fresh == NULL) st = EM_NOMEM(sizeof *fresh * n->n_inputs);
  for (size_t i = 0; i < s.n && st == EM_OK; i++) {
    bool replaced = false;
    st = s.p[i]->pre(s.p[i]->context, grads, n->n_inputs, fresh, &replaced);
    replace(grads, fresh, n->n_inputs, replaced && st == EM_OK);
  }
  em_free(fresh, sizeof *fresh * (n->n_inputs + 1));
  snapshot_drop(&s);
  return st;
}
bool em_priv_has_post_hooks(const em_node *n) {
  if (n->hooks == NULL) return false;
  for (em_hook *h = n->hooks->first; h != NULL; h = h->next)
    if (h->kind == ON_POST) return true;
  return false;
}
em_status em_priv_run_post_hooks(em_node *n, em_tensor **outs, em_tensor *const *grads) {
  snapshot s;
  EM_PASS(snapshot_take(&s, n->hooks->first, 1u << ON_POST));
  em_status st = EM_OK;
  em_tensor **fresh = em_alloc_zeroed(sizeof *fresh * (n->n_edges + 1));
  if (fresh == NULL) st = EM_NOMEM(sizeof *fresh * n->n_edges);
  for (size_t i = 0; i < s.n && st == EM_OK; i++) {
    bool replaced = false;
    st = s.p[i]->post(s.p[i]->context, outs, n->n_edges, grads, n->n_inputs, fresh, &replaced);
    replace(outs, fresh, n->n_edges, replaced && st == EM_OK);
  }
  em_free(fresh, sizeof *fresh * (n->n_edges + 1));
  snapshot_drop(&s);
  return st;
}

// ---- retain_grad --------------------------------------------------------------------------------------------------
// The hook lives on the tensor's grad_fn and must not keep the tensor alive: its context is the tensor's meta,
// borrowed, and the meta takes its hook away when it dies.

static em_status retain(void *context, em_tensor *grad, em_tensor **out) {
  (void)out;
  em_autograd_meta *meta = context;
  if (meta == NULL) return EM_OK;  // died while this run held a snapshot
  em_tensor *sum;
  if (meta->grad == NULL) EM_PASS(em_call_clone(grad, EM_FORMAT_CONTIGUOUS, &sum));
  else EM_PASS(em_call_add_Tensor(meta->grad, grad, em_scalar_int(1), &sum));
  em_tensor *old = meta->grad;
  meta->grad = sum;
  em_tensor_release(old);
  return EM_OK;
}

static em_status retain_on(em_autograd_meta *meta) {
  struct em_node_hooks *hooks = NULL;
  EM_PASS(node_hooks(meta->grad_fn, &hooks));
  em_hook h = {.kind = ON_RETAIN, .nr = meta->output_nr, .grad = retain, .context = meta};
  return append(&hooks->first, h, NULL);
}
void em_priv_forget_retained(em_node *n, const em_autograd_meta *meta) {
  if (n == NULL || n->hooks == NULL) return;
  for (em_hook **p = &n->hooks->first; *p != NULL; p = &(*p)->next)
    if ((*p)->kind == ON_RETAIN && (*p)->context == meta) {
      em_hook *h = *p;
      *p = h->next;
      h->context = NULL;
      hook_release(h);
      return;
    }
}

em_status em_tensor_retain_grad(em_tensor *t) {
  if (t == NULL) return em_fail_null("em_tensor_retain_grad", "tensor");
  if (!em_tensor_requires_grad(t))
    return em_fail(EM_ERR_RUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
  em_node *n;
  EM_PASS(em_tensor_grad_fn(t, &n));
  if (n == NULL || t->meta->retains_grad) return EM_OK;  // leaves keep theirs anyway
  EM_PASS(retain_on(t->meta));
  t->meta->retains_grad = 1;
  return EM_OK;
}
// After t got a new grad_fn in place of `from`: the hook moves along.
em_status em_priv_move_retain_grad(em_autograd_meta *meta, em_node *from) {
  if (EM_LIKELY(!meta->retains_grad)) return EM_OK;
  em_priv_forget_retained(from, meta);
  return meta->grad_fn == NULL ? EM_OK : retain_on(meta);
}
