// optim.c: ember/optim.h, over the fused operators that Python's optimizers call too.
#include <ember/optim.h>
#include <math.h>
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
    if (params[i] == NULL) return em_fail(EM_ERR_TYPE, "%s(): parameter %lld is NULL", who, (long long)i);
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
