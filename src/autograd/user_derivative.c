// user_derivative.c: derivatives that C programs give to operators of their own (ember/operator.h): one boxed entry for the
// Autograd key, and one node that keeps the call's arguments and results.
#include <stdio.h>
#include <string.h>
#include "../dispatch/boxing.h"
#include "internal.h"
#include "saved.h"

// One derivative. Its class outlives it: nodes and the bridge's types refer to classes by address, so registrations stay
// in a list for the life of the process; only the context goes.
typedef struct registration {
  em_ref rc;  // the operator's slot and every node
  em_derivative_fn fn;
  void *context;
  void (*release)(void *);
  em_node_class cls;
  char name[128];
  struct registration *next;
} registration;
static registration *_Atomic registrations;

typedef struct user_node {
  em_node node;
  registration *of;    // owned reference
  int nargs, nrets;
  em_value *args;      // owned copies; tensors among them are NULL here and stand in `saved`
  em_saved *saved;     // nargs + nrets
} user_node;

static void drop(registration *r) {
  if (em_ref_dec(&r->rc) && r->release != NULL) r->release(r->context);
}
static void drop_slot(void *context) { drop(context); }

static void release_saved(em_node *base) {
  user_node *n = (user_node *)base;
  for (int i = 0; n->saved != NULL && i < n->nargs + n->nrets; i++) em_saved_release(&n->saved[i]);
}
static void destroy(em_node *base) {
  user_node *n = (user_node *)base;
  for (int i = 0; n->args != NULL && i < n->nargs; i++) em_value_clear(&n->args[i]);
  if (n->args != NULL) em_free(n->args, (size_t)n->nargs * sizeof *n->args);
  if (n->saved != NULL) em_free(n->saved, (size_t)(n->nargs + n->nrets) * sizeof *n->saved);
  if (n->of != NULL) drop(n->of);
}

static em_status apply(em_node *base, em_tensor *const *grads, em_tensor **out) {
  user_node *n = (user_node *)base;
  size_t count = (size_t)(n->nargs + n->nrets), bytes = count * (sizeof(em_value) + sizeof(em_tensor *) + sizeof(bool));
  em_status st = EM_OK;
  em_value *args = em_alloc_zeroed(bytes);  // then results, then wanted: one block
  if (args == NULL) return EM_NOMEM(bytes);
  em_tensor **kept = (em_tensor **)(args + count);
  bool *wanted = (bool *)(kept + count);
  for (size_t i = 0; i < count; i++) EM_TRY(em_saved_unpack(&n->saved[i], base, &kept[i]));
  for (int i = 0; i < n->nargs; i++) {
    args[i] = kept[i] != NULL ? em_value_tensor(kept[i]) : n->args[i];
    args[i].owned = 0;
    wanted[i] = em_node_wants(base, (uint32_t)i);
  }
  st = n->of->fn(n->of->context, args, kept + n->nargs, grads, wanted, out);
fail:
  for (size_t i = 0; i < count; i++) em_tensor_release(kept[i]);
  em_free(args, bytes);
  return st;
}

static em_status keep_call(user_node *n, registration *r, const em_operator *op, const em_value *args) {
  n->nargs = op->nargs;
  n->nrets = op->nrets;
  em_ref_inc(&r->rc);
  n->of = r;
  n->args = em_alloc_zeroed(op->nargs * sizeof *n->args);
  n->saved = em_alloc_zeroed((size_t)(op->nargs + op->nrets) * sizeof *n->saved);
  if ((n->args == NULL && op->nargs > 0) || n->saved == NULL) return EM_NOMEM(sizeof *n->saved);
  for (int i = 0; i < op->nargs; i++) {
    if (args[i].tag == EM_TAG_TENSOR) {
      EM_PASS(em_node_set_edge(&n->node, (uint32_t)i, args[i].tensor));
      EM_PASS(em_saved_save(&n->saved[i], args[i].tensor, false));
    } else {
      EM_PASS(em_value_copy(&args[i], &n->args[i]));
    }
  }
  return EM_OK;
}

// The Autograd entry: runs what is below, and records it if an argument requires grad.
static em_status record(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  registration *r = context;
  ks &= EM_KEYS_BELOW(EM_KEY_Autograd);
  bool wanted = false;
  for (int i = 0; i < op->nargs; i++)
    wanted = wanted || (args[i].tag == EM_TAG_TENSOR && em_tensor_requires_grad(args[i].tensor));
  EM_PASS(em_redispatch_boxed(op, ks, args, rets));
  if (!wanted || !em_grad_enabled()) return EM_OK;
  em_status st = EM_OK;
  user_node *n = (user_node *)em_node_new(&r->cls, op->nargs, op->nrets);
  if (n == NULL) {
    st = EM_NOMEM(sizeof *n);
    goto fail;
  }
  EM_TRY(keep_call(n, r, op, args));
  for (int i = 0; i < op->nrets; i++)
    if (rets[i].tag == EM_TAG_TENSOR) EM_TRY(em_node_set_history(&n->node, (uint32_t)i, rets[i].tensor));
  for (int i = 0; i < op->nrets; i++)
    if (rets[i].tag == EM_TAG_TENSOR) EM_TRY(em_saved_save(&n->saved[op->nargs + i], rets[i].tensor, true));
fail:
  if (n != NULL) em_node_release(&n->node);
  for (int i = 0; i < op->nrets && st != EM_OK; i++) em_value_clear(&rets[i]);
  return st;
}

// "mine::cube" -> "CubeBackward"
static void name_node(char *name, size_t size, const em_operator *op) {
  snprintf(name, size, "%.100sBackward", op->name);
  if (name[0] >= 'a' && name[0] <= 'z') name[0] = (char)(name[0] - 'a' + 'A');
}

em_status em_operator_set_derivative(em_operator *op, em_derivative_fn fn, void *context, void (*release)(void *)) {
  if (op == NULL) return em_fail(EM_ERR_TYPE, "em_operator_set_derivative(): the operator is NULL");
  if (!(op->flags & EM_OP_USER))
    return em_fail(EM_ERR_RUNTIME, "em_operator_set_derivative(): %s is built in and has its derivative", op->full);
  if (fn == NULL) return em_operator_set_boxed(op, EM_KEY_Autograd, NULL, NULL, NULL, NULL);
  for (int i = 0; i < op->nargs; i++) {
    if (op->args[i].flags & EM_ARG_MUTATED)
      return em_fail(EM_ERR_RUNTIME, "em_operator_set_derivative(): %s writes its argument '%s'; only operators that write "
                     "nothing can be given a derivative", op->full, op->args[i].name);
    if (op->args[i].type == EM_TYPE_TENSOR_LIST || op->args[i].type == EM_TYPE_OPT_TENSOR_LIST)
      return em_fail(EM_ERR_RUNTIME, "em_operator_set_derivative(): argument '%s' of %s is a list of tensors; gradients go "
                     "to single tensors", op->args[i].name, op->full);
  }
  for (int i = 0; i < op->nrets; i++)
    if (op->ret_types[i] != EM_TYPE_TENSOR)
      return em_fail(EM_ERR_RUNTIME, "em_operator_set_derivative(): result %d of %s is not a tensor", i, op->full);
  registration *r = em_alloc_zeroed(sizeof *r);
  if (r == NULL) return EM_NOMEM(sizeof *r);
  r->fn = fn;
  r->context = context;
  r->release = release;
  name_node(r->name, sizeof r->name, op);
  r->cls = (em_node_class){.name = r->name, .apply = apply, .release_saved = release_saved, .destroy = destroy,
                           .size = sizeof(user_node), .where = op->full};
  atomic_store(&r->rc, 1);
  em_status st = em_operator_set_boxed(op, EM_KEY_Autograd, record, r, drop_slot, r->name);
  if (st != EM_OK) {
    em_free(r, sizeof *r);
    return st;
  }
  r->next = atomic_load(&registrations);
  while (!atomic_compare_exchange_weak(&registrations, &r->next, r)) continue;
  return EM_OK;
}
