// optim.c: ember/optim.h, over the fused operators that Python's optimizers call too.
#include <ember/optim.h>
#include <ember/serialize.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../autograd/node.h"
#include "gen_ops.h"

enum { LISTS = 5 };  // parameters, gradients, and up to three of state

typedef enum kind { SGD, ADAM } kind;

struct em_optimizer {
  kind kind;
  int64_t n;
  em_tensor **params;           // owned references
  em_tensor **state[3];         // owned; SGD: momentum; Adam: exp_avg, exp_avg_sq, max_exp_avg_sq. NULL before a first step
  em_tensor **steps;            // Adam's counters, 0-dim
  em_tensor **now[LISTS + 1];   // scratch of one step: the lists of those that have a gradient
  em_sgd_options sgd;
  em_adam_options adam;
};

static em_status number_below(const char *what, double v, bool bad) {
  return bad ? em_fail(EM_ERR_VALUE, "Invalid %s: %g", what, v) : EM_OK;
}

static em_status check_params(const char *who, em_tensor *const *params, int64_t n) {
  if (n <= 0 || params == NULL) return em_fail(EM_ERR_VALUE, "%s(): optimizer got an empty parameter list", who);
  for (int64_t i = 0; i < n; i++) {
    if (params[i] == NULL) return em_fail_null_entry(who, "parameter", i);
    if (!em_tensor_is_leaf(params[i]))
      return em_fail(EM_ERR_VALUE, "%s(): can't optimize a non-leaf Tensor (parameter %lld)", who, (long long)i);
    if (!em_dtype_is_float(params[i]->dtype))
      return em_fail(EM_ERR_RUNTIME, "%s(): parameter %lld is %s; optimizers change floating point tensors", who,
                     (long long)i, em_dtype_name(params[i]->dtype));
  }
  return EM_OK;
}

static void free_list(em_tensor **list, int64_t n) {
  if (list == NULL) return;
  for (int64_t i = 0; i < n; i++) em_tensor_release(list[i]);
  em_free(list, (size_t)n * sizeof *list);
}

void em_optimizer_free(em_optimizer *o) {
  if (o == NULL) return;
  free_list(o->params, o->n);
  for (int k = 0; k < 3; k++) free_list(o->state[k], o->n);
  free_list(o->steps, o->n);
  for (int k = 0; k <= LISTS; k++)
    if (o->now[k] != NULL) em_free(o->now[k], (size_t)o->n * sizeof(em_tensor *));
  em_free(o, sizeof *o);
}

static em_status make(kind kind, em_tensor *const *params, int64_t n, em_optimizer **out) {
  size_t bytes = (size_t)n * sizeof(em_tensor *);
  em_optimizer *o = em_alloc_zeroed(sizeof *o);
  if (o == NULL) return EM_NOMEM(sizeof *o);
  o->kind = kind;
  o->n = n;
  em_tensor ***lists[] = {&o->params, &o->state[0], &o->state[1], &o->state[2], &o->steps,
                          &o->now[0], &o->now[1],   &o->now[2],   &o->now[3],   &o->now[4], &o->now[5]};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    *lists[k] = em_alloc_zeroed(bytes);
    if (*lists[k] == NULL) {
      em_optimizer_free(o);
      return EM_NOMEM(bytes);
    }
  }
  for (int64_t i = 0; i < n; i++) o->params[i] = em_tensor_retain(params[i]);
  *out = o;
  return EM_OK;
}

em_status em_sgd_new(em_tensor *const *params, int64_t n, em_sgd_options v, em_optimizer **out) {
  EM_PASS(check_params("em_sgd_new", params, n));
  EM_PASS(number_below("learning rate", v.lr, !(v.lr >= 0)));
  EM_PASS(number_below("momentum value", v.momentum, !(v.momentum >= 0)));
  EM_PASS(number_below("weight_decay value", v.weight_decay, !(v.weight_decay >= 0)));
  if (v.nesterov && (v.momentum <= 0 || v.dampening != 0))
    return em_fail(EM_ERR_VALUE, "Nesterov momentum requires a momentum and zero dampening");
  EM_PASS(make(SGD, params, n, out));
  (*out)->sgd = v;
  return EM_OK;
}

em_status em_adam_new(em_tensor *const *params, int64_t n, em_adam_options v, em_optimizer **out) {
  EM_PASS(check_params("em_adam_new", params, n));
  EM_PASS(number_below("learning rate", v.lr, !(v.lr >= 0)));
  EM_PASS(number_below("epsilon value", v.eps, !(v.eps >= 0)));
  EM_PASS(number_below("beta parameter at index 0", v.beta1, !(v.beta1 >= 0 && v.beta1 < 1)));
  EM_PASS(number_below("beta parameter at index 1", v.beta2, !(v.beta2 >= 0 && v.beta2 < 1)));
  EM_PASS(number_below("weight_decay value", v.weight_decay, !(v.weight_decay >= 0)));
  EM_PASS(make(ADAM, params, n, out));
  (*out)->adam = v;
  return EM_OK;
}

static em_status none(const char *who) { return em_fail(EM_ERR_TYPE, "%s(): the optimizer is NULL", who); }

double em_optimizer_lr(const em_optimizer *o) { return o == NULL ? NAN : o->kind == SGD ? o->sgd.lr : o->adam.lr; }
em_status em_optimizer_set_lr(em_optimizer *o, double lr) {
  if (o == NULL) return none("em_optimizer_set_lr");
  EM_PASS(number_below("learning rate", lr, !(lr >= 0)));
  if (o->kind == SGD) o->sgd.lr = lr;
  else o->adam.lr = lr;
  return EM_OK;
}

em_status em_optimizer_set_momentum(em_optimizer *o, double momentum) {
  if (o == NULL) return none("em_optimizer_set_momentum");
  if (o->kind == SGD) {
    EM_PASS(number_below("momentum value", momentum, !(momentum >= 0)));
    if (o->sgd.nesterov && momentum == 0)
      return em_fail(EM_ERR_VALUE, "Nesterov momentum requires a momentum and zero dampening");
    o->sgd.momentum = momentum;
  } else {
    EM_PASS(number_below("beta parameter at index 0", momentum, !(momentum >= 0 && momentum < 1)));
    o->adam.beta1 = momentum;
  }
  return EM_OK;
}

em_status em_optimizer_zero_grad(em_optimizer *o) {
  if (o == NULL) return none("em_optimizer_zero_grad");
  for (int64_t i = 0; i < o->n; i++) EM_PASS(em_tensor_set_grad(o->params[i], NULL));
  return EM_OK;
}

static em_status fresh(em_tensor *like, em_tensor **out) {
  if (*out != NULL) return EM_OK;
  return em_call_zeros_like(like, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_PRESERVE, out);
}

#define LIST(k) ((em_tensors){o->now[k], count})

// Those of one dtype whose momentum buffer is new (or old): a first step copies the gradient into it.
static em_status step_sgd(em_optimizer *o, int dtype, bool first) {
  const em_sgd_options *v = &o->sgd;
  int64_t count = 0;
  for (int64_t i = 0; i < o->n; i++) {
    em_tensor *p = o->params[i], *grad;
    EM_PASS(em_tensor_grad(p, &grad));
    if (grad == NULL || p->dtype != dtype) continue;
    if (v->momentum != 0) {
      if ((o->state[0][i] == NULL) != first) continue;
      EM_PASS(fresh(p, &o->state[0][i]));
      o->now[2][count] = o->state[0][i];
    }
    o->now[0][count] = p;
    o->now[1][count++] = grad;
  }
  if (count == 0) return EM_OK;
  em_tensors buffers = {o->now[2], v->momentum != 0 ? count : 0};
  return em_call__fused_sgd_(LIST(0), LIST(1), buffers, v->weight_decay, v->momentum, v->lr, v->dampening, v->nesterov,
                             v->maximize, first, NULL, NULL);
}

static em_status step_adam(em_optimizer *o, int dtype) {
  const em_adam_options *v = &o->adam;
  int64_t count = 0;
  for (int64_t i = 0; i < o->n; i++) {
    em_tensor *p = o->params[i], *grad;
    EM_PASS(em_tensor_grad(p, &grad));
    if (grad == NULL || p->dtype != dtype) continue;
    for (int k = 0; k < (v->amsgrad ? 3 : 2); k++) {
      EM_PASS(fresh(p, &o->state[k][i]));
      o->now[2 + k][count] = o->state[k][i];
    }
    if (o->steps[i] == NULL)
      EM_PASS(em_tensor_from_scalar(em_scalar_double(0), EM_F32, (em_device){EM_DEVICE_CPU, -1}, &o->steps[i]));
    o->now[0][count] = p;
    o->now[1][count] = grad;
    o->now[5][count++] = o->steps[i];
  }
  if (count == 0) return EM_OK;
  for (int64_t i = 0; i < count; i++)
    EM_PASS(em_call_add__Scalar(o->now[5][i], em_scalar_int(1), em_scalar_int(1)));
  em_tensors maxima = {o->now[4], v->amsgrad ? count : 0};
  em_status (*run)(em_tensors, em_tensors, em_tensors, em_tensors, em_tensors, em_tensors, double, double, double, double,
                   double, bool, bool, em_tensor *, em_tensor *) =
      v->decoupled_weight_decay ? em_call__fused_adamw_ : em_call__fused_adam_;
  return run(LIST(0), LIST(1), LIST(2), LIST(3), maxima, LIST(5), v->lr, v->beta1, v->beta2, v->weight_decay, v->eps,
             v->amsgrad, v->maximize, NULL, NULL);
}

em_status em_optimizer_step(em_optimizer *o) {
  if (o == NULL) return none("em_optimizer_step");
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = EM_OK;
  const int dtypes[] = {EM_F32, EM_F64, EM_F16, EM_BF16};  // one call takes one dtype
  for (int d = 0; d < 4 && st == EM_OK; d++) {
    if (o->kind == ADAM) {
      st = step_adam(o, dtypes[d]);
    } else {
      if (o->sgd.momentum != 0) st = step_sgd(o, dtypes[d], false);  // before the new buffers become old ones
      if (st == EM_OK) st = step_sgd(o, dtypes[d], true);
    }
  }
  em_guard_restore(guard);
  return st;
}

// ---- what it remembers ----
enum { PARTS = 4, NAME_SIZE = 48 };
// The k-th thing that is remembered of a parameter: its name, and where. NULL: there is no k-th.
static const char *part(const em_optimizer *o, int k, em_tensor ***where) {
  static const char *const adam[PARTS] = {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  if (o->kind == SGD) {
    *where = o->state[0];
    return k == 0 && o->sgd.momentum != 0 ? "momentum_buffer" : NULL;
  }
  if (k >= (o->adam.amsgrad ? 4 : 3)) return NULL;
  *where = k == 0 ? o->steps : o->state[k - 1];
  return adam[k];
}

em_tensor *em_optimizer_state(const em_optimizer *o, int64_t i, const char *name) {
  if (o == NULL || name == NULL || i < 0 || i >= o->n) return NULL;
  em_tensor **where;
  const char *called;
  for (int k = 0; (called = part(o, k, &where)) != NULL; k++)
    if (strcmp(called, name) == 0) return where[i];
  return NULL;
}

em_status em_optimizer_save(const em_optimizer *o, const char *path) {
  if (o == NULL) return none("em_optimizer_save");
  const size_t most = (size_t)o->n * PARTS, bytes = most * (sizeof(char *) + sizeof(em_tensor *) + NAME_SIZE);
  const char **names = em_alloc(bytes), *called;
  if (names == NULL) return EM_NOMEM(bytes);
  em_tensor **tensors = (em_tensor **)(void *)(names + most), **where;
  char (*texts)[NAME_SIZE] = (char(*)[NAME_SIZE])(void *)(tensors + most);
  size_t n = 0;
  for (int64_t i = 0; i < o->n; i++) {
    for (int k = 0; (called = part(o, k, &where)) != NULL; k++) {
      if (where[i] == NULL) continue;
      snprintf(texts[n], NAME_SIZE, "%lld.%s", (long long)i, called);
      names[n] = texts[n];
      tensors[n++] = where[i];
    }
  }
  em_status st = em_save_safetensors(path, names, tensors, n);
  em_free(names, bytes);
  return st;
}

// The parts of parameter i among the weights, each of its shape: all of them, or none. found: PARTS entries, NULL where none is.
static em_status find_parts(const em_optimizer *o, int64_t i, const em_weights *w, const char *prefix, em_tensor **found) {
  char name[1024];
  em_tensor **where;
  const char *called, *missing = NULL, *present = NULL;
  for (int k = 0; (called = part(o, k, &where)) != NULL; k++) {
    int used = snprintf(name, sizeof name, "%s%lld.%s", prefix, (long long)i, called);
    if (used < 0 || (size_t)used >= sizeof name) return em_fail(EM_ERR_VALUE, "em_optimizer_load(): the prefix is too long");
    found[k] = em_weights_find(w, name);
    *(found[k] == NULL ? &missing : &present) = called;
    bool counter = o->kind == ADAM && k == 0;
    if (found[k] != NULL && (counter ? found[k]->numel != 1 : !em_tensor_same_sizes(found[k], o->params[i])))
      return em_fail(EM_ERR_RUNTIME, "em_optimizer_load(): size mismatch for %s: the parameter has %d dims and %lld elements, the "
                     "file's tensor %d and %lld", name, o->params[i]->ndim, (long long)o->params[i]->numel, found[k]->ndim,
                     (long long)found[k]->numel);
  }
  if (missing == NULL || present == NULL) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "em_optimizer_load(): Missing key(s) in state_dict: \"%s%lld.%s\"", prefix, (long long)i, missing);
}

// Copies of what was found for parameter i: made before anything is replaced.
static em_status copy_parts(const em_optimizer *o, int64_t i, em_tensor *const *found, em_tensor **copies) {
  for (int k = 0; k < PARTS; k++) {
    if (found[k] == NULL) continue;
    if (o->kind == ADAM && k == 0)
      EM_PASS(em_tensor_from_scalar(em_scalar_double(0), EM_F32, (em_device){EM_DEVICE_CPU, -1}, &copies[k]));
    else
      EM_PASS(fresh(o->params[i], &copies[k]));
    em_tensor *flat = NULL;  // a counter may have one dim
    if (found[k]->ndim != copies[k]->ndim) EM_PASS(em_call_reshape(found[k], (em_ints){NULL, 0}, &flat));
    em_status st = em_call_copy_(copies[k], flat == NULL ? found[k] : flat, false);
    em_tensor_release(flat);
    EM_PASS(st);
  }
  return EM_OK;
}

em_status em_optimizer_load(em_optimizer *o, const em_weights *w, const char *prefix) {
  if (o == NULL) return none("em_optimizer_load");
  if (w == NULL || prefix == NULL)
    return em_fail(EM_ERR_TYPE, "em_optimizer_load(): the %s NULL", w == NULL ? "weights are" : "prefix is");
  const size_t most = (size_t)o->n * PARTS, bytes = most * sizeof(em_tensor *);
  em_tensor **copies = em_alloc_zeroed(bytes), **where;
  if (copies == NULL) return EM_NOMEM(bytes);
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = EM_OK;
  bool any = false;
  for (int64_t i = 0; i < o->n; i++) {
    em_tensor *found[PARTS] = {NULL};
    EM_TRY(find_parts(o, i, w, prefix, found));
    any = any || found[0] != NULL;
    EM_TRY(copy_parts(o, i, found, copies + i * PARTS));
  }
  if (!any) EM_FAIL(EM_ERR_RUNTIME, "em_optimizer_load(): no weight's name begins with \"%s\" and a parameter's number", prefix);
  for (int64_t i = 0; i < o->n; i++) {
    for (int k = 0; part(o, k, &where) != NULL; k++) {
      em_tensor_release(where[i]);
      where[i] = copies[i * PARTS + k];
      copies[i * PARTS + k] = NULL;
    }
  }
fail:
  em_guard_restore(guard);
  free_list(copies, o->n * PARTS);
  return st;
}
