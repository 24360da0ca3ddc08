// optim_loops.h: one optimizer step over n elements of one parameter. Loops exist for f32 and f64; callers bring other
// dtypes there and back.
#ifndef EMBER_BACKEND_CPU_OPTIM_LOOPS_H
#define EMBER_BACKEND_CPU_OPTIM_LOOPS_H
#include "isa.h"

typedef struct em_optim_args {
  double lr, weight_decay;  // both
  double momentum, dampening;  // SGD
  bool nesterov, first;
  double beta1, beta2, eps, step_size, correction2_sqrt;  // Adam: lr / (1 - beta1^t), sqrt(1 - beta2^t)
  bool decoupled;
  bool maximize;
  double grad_scale;  // gradients are divided by it, and written back, where it is not 1
} em_optim_args;

// state: SGD {momentum buffer or NULL}; Adam {exp_avg, exp_avg_sq, max_exp_avg_sq or NULL}. All dense.
typedef void (*em_optim_fn)(const em_optim_args *a, int64_t n, void *param, void *grad, void *const state[3]);

enum { EM_OPTIM_SGD, EM_OPTIM_ADAM, EM_OPTIM_COUNT };
typedef struct em_optim_table { em_optim_fn fn[EM_OPTIM_COUNT][2]; } em_optim_table;  // [kind][f64]
#endif
