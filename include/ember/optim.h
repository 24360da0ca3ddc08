/* ember/optim.h: optimizers: one step over all parameters is one operator call. The numbers are PyTorch's. */
#ifndef EMBER_OPTIM_H
#define EMBER_OPTIM_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct em_optimizer em_optimizer;

typedef struct em_sgd_options {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
} em_sgd_options;
typedef struct em_adam_options {
  double lr, beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize;
  bool decoupled_weight_decay; /* AdamW */
} em_adam_options;

/* PyTorch's defaults: SGD lr 1e-3; Adam lr 1e-3, betas 0.9 and 0.999, eps 1e-8; AdamW the same with decay 1e-2. */
static inline em_sgd_options em_sgd_defaults(double lr) {
  em_sgd_options o = {lr, 0, 0, 0, false, false};
  return o;
}
static inline em_adam_options em_adam_defaults(double lr) {
  em_adam_options o = {lr, 0.9, 0.999, 1e-8, 0, false, false, false};
  return o;
}
static inline em_adam_options em_adamw_defaults(double lr) {
  em_adam_options o = {lr, 0.9, 0.999, 1e-8, 1e-2, false, false, true};
  return o;
}

/* params[n]: leaves, kept by the optimizer. Errors: EM_ERR_VALUE for an option out of its range ("Invalid learning rate:
 * ..."), for no parameters, for a tensor that was computed; EM_ERR_OOM. */
EM_API EM_MUST_CHECK em_status em_sgd_new(em_tensor *const *params, int64_t n, em_sgd_options options, em_optimizer **out);
EM_API EM_MUST_CHECK em_status em_adam_new(em_tensor *const *params, int64_t n, em_adam_options options,
                                           em_optimizer **out);
EM_API void em_optimizer_free(em_optimizer *o); /* NULL is fine */
/* Changes every parameter that has a gradient, once. */
EM_API EM_MUST_CHECK em_status em_optimizer_step(em_optimizer *o);
/* Drops the gradients. */
EM_API EM_MUST_CHECK em_status em_optimizer_zero_grad(em_optimizer *o);
EM_API double em_optimizer_lr(const em_optimizer *o);
/* Errors: EM_ERR_VALUE for a negative rate or one that is no number. */
EM_API EM_MUST_CHECK em_status em_optimizer_set_lr(em_optimizer *o, double lr);
/* SGD's momentum, Adam's first beta. Errors: EM_ERR_VALUE outside [0, 1) for Adam, below 0 for SGD. */
EM_API EM_MUST_CHECK em_status em_optimizer_set_momentum(em_optimizer *o, double momentum);

/* ---- what an optimizer remembers ---- */
/* state[params[i]][name], as PyTorch calls it: "momentum_buffer"; "step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq". Borrowed;
 * NULL before the parameter's first step, and for other names. */
EM_API em_tensor *em_optimizer_state(const em_optimizer *o, int64_t i, const char *name);
/* Writes all of it as safetensors, named "0.exp_avg" for parameter 0. The options are not in it. */
EM_API EM_MUST_CHECK em_status em_optimizer_save(const em_optimizer *o, const char *path);
struct em_weights; /* ember/serialize.h */
/* Takes it from weights that were read, whose names begin with `prefix`: "" for em_optimizer_save's files; "state." for what
 * PyTorch saves with torch.save(optimizer.state_dict(), path). Parameters without an entry start afresh. Errors: EM_ERR_RUNTIME
 * if there are no entries, for a part that is missing and a shape that differs; then nothing was changed. */
EM_API EM_MUST_CHECK em_status em_optimizer_load(em_optimizer *o, const struct em_weights *weights, const char *prefix);

/* ---- gradients, after backward and before the step ---- */
/* torch.nn.utils.clip_grad_norm_: scales the gradients of params[n] together, so that their norm is at most max_norm. The norm
 * that they had goes to *total, if it is not NULL. norm_type: 2, or INFINITY for the largest element, ... */
EM_API EM_MUST_CHECK em_status em_clip_grad_norm(em_tensor *const *params, int64_t n, double max_norm, double norm_type,
                                                 double *total);
/* clip_grad_value_: clamps each element to [-value, value]. */
EM_API EM_MUST_CHECK em_status em_clip_grad_value(em_tensor *const *params, int64_t n, double value);

/* ---- schedules: the rate at step 0, 1, ... as torch.optim.lr_scheduler computes it; set it with em_optimizer_set_lr ---- */
EM_API double em_lr_step(double lr, int64_t step, int64_t step_size, double gamma);                  /* StepLR */
EM_API double em_lr_exponential(double lr, int64_t step, double gamma);                              /* ExponentialLR */
EM_API double em_lr_linear(double lr, int64_t step, double start_factor, double end_factor, int64_t total); /* LinearLR */
EM_API double em_lr_cosine(double lr, int64_t step, int64_t t_max, double lr_min);                   /* CosineAnnealingLR */
EM_API double em_lr_one_cycle(double max_lr, int64_t step, int64_t total);                           /* OneCycleLR */
/* The momentum that OneCycleLR sets beside it, between 0.85 and 0.95. */
EM_API double em_momentum_one_cycle(int64_t step, int64_t total);

#ifdef __cplusplus
}
#endif
#endif
