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

#ifdef __cplusplus
}
#endif
#endif
