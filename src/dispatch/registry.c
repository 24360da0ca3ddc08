// registry.c: the operator table: look-up by name, kernels and fallbacks that come at run time, new operators.
//
// A slot's effective function is the newest of: the host's registration (em_operator_set_boxed), the generated kernel,
// the key's fallback. Fallbacks of layers above Autograd see every operator; those below see no composite one without a
// derivative, since its parts come by themselves.
#include <stdlib.h>
#include <string.h>
#include "../core/alloc.h"
#include "../core/environment.h"
#include "boxing.h"
#include "log.h"

typedef struct em_op_extra {
  em_slot generated[EM_NUM_KEYS];  // what slots[] held before the host came
  em_host_kernel host[EM_NUM_KEYS];
  const em_host_kernel *boxed[EM_NUM_KEYS];  // what slots[] leads to, where that is boxed
} em_op_extra;

static struct {
  em_operator **ops;
  size_t n, capacity;
  uint32_t *index;      // hash table of positions + 1, by full name
  size_t index_size;
  em_host_kernel fallback[EM_NUM_KEYS];
} registry;

static uint64_t hash_name(const char *ns, const char *name, const char *overload) {
  uint64_t h = 1469598103934665603u;  // FNV-1a
  const char *parts[] = {ns, "::", name, ".", overload};
  for (int i = 0; i < 5; i++)
    for (const char *p = parts[i]; *p; p++) h = (h ^ (unsigned char)*p) * 1099511628211u;
  return h;
}
static void index_put(size_t position) {
  em_operator *op = registry.ops[position];
  size_t i = hash_name(op->ns, op->name, op->overload) & (registry.index_size - 1);
  while (registry.index[i] != 0) i = (i + 1) & (registry.index_size - 1);
  registry.index[i] = (uint32_t)position + 1;
}
// The table grows by plain malloc: it lives as long as the process and is filled before any fault test.
static em_status grow(size_t n) {
  if (n > registry.capacity) {
    size_t capacity = n + n / 2 + 64;
    em_operator **ops = realloc(registry.ops, capacity * sizeof *ops);
    if (ops == NULL) return EM_NOMEM(capacity * sizeof *ops);
    registry.ops = ops;
    registry.capacity = capacity;
  }
  if (n * 2 > registry.index_size) {
    size_t size = 1024;
    while (size < n * 4) size *= 2;
    uint32_t *index = calloc(size, sizeof *index);
    if (index == NULL) return EM_NOMEM(size * sizeof *index);
    free(registry.index);
    registry.index = index;
    registry.index_size = size;
    for (size_t i = 0; i < registry.n; i++) index_put(i);
  }
  return EM_OK;
}
void em_priv_register_table(em_operator **ops, size_t n) {
  if (grow(registry.n + n) != EM_OK)
    return;  // at load, without memory for a table: every look-up will say "unknown operator"
  for (size_t i = 0; i < n; i++) {
    registry.ops[registry.n] = ops[i];
    index_put(registry.n++);
  }
  // Called once, at load. The log's layers see every operator, so all must be there; who mistyped a variable learns it here, too.
  if (!em_environment_host_checks()) (void)em_environment_check();
  (void)em_log_from_environment();
}
em_operator *em_operator_find(const char *ns, const char *name, const char *overload) {
  if (registry.index_size == 0 || ns == NULL || name == NULL || overload == NULL) return NULL;
  size_t i = hash_name(ns, name, overload) & (registry.index_size - 1);
  for (; registry.index[i] != 0; i = (i + 1) & (registry.index_size - 1)) {
    em_operator *op = registry.ops[registry.index[i] - 1];
    if (strcmp(op->name, name) == 0 && strcmp(op->overload, overload) == 0 && strcmp(op->ns, ns) == 0) return op;
  }
  return NULL;
}
em_operator *em_operator_find_first(const char *ns, const char *name) {
  for (size_t i = 0; i < registry.n; i++)
    if (strcmp(registry.ops[i]->name, name) == 0 && strcmp(registry.ops[i]->ns, ns) == 0) return registry.ops[i];
  return NULL;
}
size_t em_operator_count(void) { return registry.n; }
em_operator *em_operator_at(size_t i) { return i < registry.n ? registry.ops[i] : NULL; }

static bool fallback_applies(const em_operator *op, int key) {
  return registry.fallback[key].boxed != NULL && (key > EM_KEY_Autograd || !(op->flags & EM_OP_COMPOSITE));
}
static void settle(em_operator *op, int key) {
  em_op_extra *x = op->extra;
  em_slot s = x->generated[key];
  const em_host_kernel *boxed = x->host[key].boxed != NULL ? &x->host[key] : NULL;
  if (boxed == NULL && s.fn == NULL && fallback_applies(op, key)) boxed = &registry.fallback[key];
  if (boxed != NULL) s = (em_slot){.fn = op->box, .name = boxed->name};
  x->boxed[key] = boxed;
  op->slots[key] = s;
  if (s.fn != NULL || boxed != NULL) op->mask |= EM_KEYBIT(key);
  else op->mask &= ~EM_KEYBIT(key);
}
const em_host_kernel *em_priv_host_kernel(const em_operator *op, int key) {
  return op->extra == NULL ? NULL : op->extra->boxed[key];
}
static em_status extra_get(em_operator *op) {
  if (op->extra != NULL) return EM_OK;
  op->extra = calloc(1, sizeof *op->extra);
  if (op->extra == NULL) return EM_NOMEM(sizeof *op->extra);
  memcpy(op->extra->generated, op->slots, sizeof op->slots);
  return EM_OK;
}
void em_priv_set_kernel(em_operator *op, int key, em_any_fn fn, const char *name) {
  em_slot s = {.fn = fn, .name = name};
  if (op->extra != NULL) {
    op->extra->generated[key] = s;
    settle(op, key);
  } else {
    op->slots[key] = s;
    op->mask |= EM_KEYBIT(key);
  }
}
em_status em_operator_set_boxed(em_operator *op, int key, em_boxed_fn fn, void *context, void (*release)(void *),
                                const char *name) {
  if (key < 0 || key >= EM_NUM_KEYS)
    return em_fail(EM_ERR_RUNTIME, "%s: no dispatch key has the number %d", op->full, key);
  EM_PASS(extra_get(op));
  em_host_kernel old = op->extra->host[key];
  op->extra->host[key] = fn == NULL ? (em_host_kernel){0} : (em_host_kernel){fn, context, name, release};
  settle(op, key);
  if (old.release != NULL) old.release(old.context);
  return EM_OK;
}
em_status em_dispatch_set_fallback(int key, em_boxed_fn fn, void *context, void (*release)(void *), const char *name) {
  if (key < 0 || key >= EM_NUM_KEYS) return em_fail(EM_ERR_RUNTIME, "no dispatch key has the number %d", key);
  for (size_t i = 0; i < registry.n; i++) EM_PASS(extra_get(registry.ops[i]));
  em_host_kernel old = registry.fallback[key];
  registry.fallback[key] = (em_host_kernel){fn, context, name, release};
  for (size_t i = 0; i < registry.n; i++) settle(registry.ops[i], key);
  if (old.release != NULL) old.release(old.context);
  return EM_OK;
}

em_status em_operator_define(const char *schema, em_operator **out) {
  if (schema == NULL) return em_fail(EM_ERR_TYPE, "em_operator_define(): the schema is NULL");
  em_operator *op;
  EM_PASS(em_schema_parse(schema, &op));
  em_status st = EM_OK;
  if (em_operator_find(op->ns, op->name, op->overload) != NULL)
    EM_FAIL(EM_ERR_RUNTIME, "Tried to register an operator (%s) with the same name and overload name multiple times.",
            op->full);
  EM_TRY(grow(registry.n + 1));
  EM_TRY(extra_get(op));
  op->flags |= EM_OP_USER;
  em_operator *first = em_operator_find_first(op->ns, op->name);
  for (; first != NULL && first->next_overload != NULL;) first = first->next_overload;
  if (first != NULL) first->next_overload = op;
  registry.ops[registry.n] = op;
  index_put(registry.n++);
  for (int k = 0; k < EM_NUM_KEYS; k++) settle(op, k);
  *out = op;
  return EM_OK;
fail:
  em_schema_free(op);
  return st;
}
