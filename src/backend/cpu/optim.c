// optim.c: _fused_sgd_, _fused_adam_, _fused_adamw_: one step over lists of parameters, gradients and state.
//
// Tensors that are dense and of a compute dtype are stepped where they lie. Others (bf16, strided) go through dense
// copies of the compute dtype and back, so that a step rounds once.
#include <math.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "optim_loops.h"

EM_ISA_DECLARE(const em_optim_table, em_priv_optim, );
static const em_optim_table *table;
__attribute__((constructor)) static void pick(void) {
  int isa = em_priv_isa_choose();
  (void)isa;
#if defined(EM_HAVE_AVX2) && defined(EM_HAVE_AVX512)
  table = isa == EM_ISA_V512 ? &em_priv_optim_avx512
          : isa == EM_ISA_V2 ? &em_priv_optim_avx2
                             : &em_priv_optim_baseline;
#else
  table = &em_priv_optim_baseline;
#endif
}

enum { STATES = 3, OPERANDS = 2 + STATES, GRAIN = 16384 };

typedef struct step {
  em_optim_fn fn;
  em_optim_args args;
  size_t size;
  char *at[OPERANDS];  // parameter, gradient, states; NULL: absent
} step;

static em_status run_range(void *context, int64_t begin, int64_t end) {
  const step *s = context;
  char *at[OPERANDS];
  for (int k = 0; k < OPERANDS; k++) at[k] = s->at[k] == NULL ? NULL : s->at[k] + (size_t)begin * s->size;
  s->fn(&s->args, end - begin, at[0], at[1], (void *const[STATES]){at[2], at[3], at[4]});
  return EM_OK;
}

// Steps one parameter with operands t[OPERANDS] (absent ones NULL).
static em_status run_one(em_optim_fn const fns[2], const em_optim_args *args, em_tensor *const t[OPERANDS]) {
  em_status st = EM_OK;
  em_tensor *dense[OPERANDS] = {NULL};
  int compute = em_priv_dtypes[t[0]->dtype].compute;
  step s = {.fn = fns[compute == EM_F64], .args = *args, .size = compute == EM_F64 ? 8 : 4};
  for (int k = 0; k < OPERANDS; k++) {
    if (t[k] == NULL) continue;
    if (t[k]->dtype == compute && em_tensor_is_contiguous(t[k])) {
      dense[k] = em_tensor_retain(t[k]);
    } else {
      EM_TRY(em_tensor_new(t[k]->ndim, t[k]->sizes, compute, t[k]->device, &dense[k]));
      EM_TRY(em_copy_into(dense[k], t[k]));
    }
    s.at[k] = em_tensor_data(dense[k]);
  }
  if (EM_UNLIKELY(em_priv_notes_wanted)) {
    bool in_place = true;
    for (int k = 0; k < OPERANDS; k++) in_place = in_place && dense[k] == t[k];
    em_note_write("fused step: parameter, gradient and state in one pass, %s loop in %s, %s", em_priv_note_isa, em_dtype_name(compute),
                  in_place ? "where they lie (dense copies refused: all are dense)" : "through dense copies (in place refused: strided, "
                                              "or rounded once from "
                                                                                "a wider dtype)");
  }
  EM_TRY(em_threads_for(t[0]->numel, GRAIN, run_range, &s));
  for (int k = 0; k < OPERANDS; k++) {
    bool written = k != 1 || args->grad_scale != 1;
    if (dense[k] != NULL && dense[k] != t[k] && written) EM_TRY(em_copy_into(t[k], dense[k]));
  }
fail:
  for (int k = 0; k < OPERANDS; k++)
    if (dense[k] != NULL) em_tensor_release(dense[k]);
  return st;
}

// Does for a list what the layers do for one tensor that an operator writes.
static void count_writes(em_tensors list) {
  for (int64_t i = 0; i < list.n; i++) em_version_bump(list.p[i]->version);
}

static em_status check_list(const char *op, const char *name, em_tensors params, em_tensors list, bool required) {
  if (!required && list.n == 0) return EM_OK;
  if (list.n != params.n)
    return em_fail(EM_ERR_RUNTIME, "%s(): Tensor lists must have the same number of tensors, got %lld and %lld (%s)",
                   op, (long long)params.n, (long long)list.n, name);
  for (int64_t i = 0; i < params.n; i++) {
    const em_tensor *p = params.p[i], *t = list.p[i];
    if (!em_tensor_same_sizes(p, t))
      return em_fail(EM_ERR_RUNTIME, "%s(): tensor %lld of %s must have the size of its parameter", op, (long long)i,
                     name);
    if (p->dtype != t->dtype || p->device.type != t->device.type)
      return em_fail(EM_ERR_RUNTIME, "%s(): params, grads and state must have same dtype, device, and layout (tensor "
                     "%lld of %s)", op, (long long)i, name);
  }
  return EM_OK;
}
static em_status check_params(const char *op, em_tensors params) {
  for (int64_t i = 0; i < params.n; i++) {
    const em_tensor *p = params.p[i];
    int compute = em_priv_dtypes[p->dtype].compute;
    if (p->device.type != EM_DEVICE_CPU && p->device.type != EM_DEVICE_META)
      return em_fail(EM_ERR_NOT_IMPLEMENTED, "%s(): parameters must be on the CPU", op);
    if ((em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd)) == 0 && (p->flags & EM_T_REQUIRES_GRAD) != 0)
      return em_fail(EM_ERR_RUNTIME, "%s(): a step is not differentiable: call it under no_grad", op);
    if (compute != EM_F32 && compute != EM_F64)
      return em_fail(EM_ERR_RUNTIME, "%s(): parameters must be floating point tensors", op);
    if (p->dtype != params.p[0]->dtype || p->device.type != params.p[0]->device.type)
      return em_fail(EM_ERR_RUNTIME, "%s(): params must have same dtype, device, and layout", op);
  }
  return EM_OK;
}

static double read_number(const em_tensor *t) {
  double v;
  em_cast_load(&v, EM_F64, em_tensor_data(t), t->dtype, 0, 1);
  return v;
}

// What a gradient scaler hands over. *skip: some gradient was infinite, the step must not happen.
static void read_scaler(em_tensor *grad_scale, em_tensor *found_inf, em_optim_args *a, bool *skip) {
  a->grad_scale = grad_scale == NULL ? 1 : read_number(grad_scale);
  *skip = found_inf != NULL && read_number(found_inf) == 1;
}

em_status c_fused_sgd_(em_tensors self, em_tensors grads, em_tensors momentum_buffer_list,
                       double weight_decay, double momentum, double lr, double dampening, bool nesterov, bool maximize,
                       bool is_first_step, em_tensor *grad_scale, em_tensor *found_inf) {
  const char *op = "_fused_sgd_";
  EM_PASS(check_params(op, self));
  EM_PASS(check_list(op, "grads", self, grads, true));
  EM_PASS(check_list(op, "momentum_buffer_list", self, momentum_buffer_list, momentum != 0));
  if (self.n == 0 || self.p[0]->device.type == EM_DEVICE_META) return EM_OK;
  em_optim_args a = {.lr = lr, .weight_decay = weight_decay, .momentum = momentum, .dampening = dampening,
                     .nesterov = nesterov, .first = is_first_step, .maximize = maximize};
  bool skip;
  read_scaler(grad_scale, found_inf, &a, &skip);
  for (int64_t i = 0; i < self.n && !skip; i++) {
    em_tensor *buffer = momentum_buffer_list.n > 0 ? momentum_buffer_list.p[i] : NULL;
    em_tensor *const t[OPERANDS] = {self.p[i], grads.p[i], buffer};
    EM_PASS(run_one(table->fn[EM_OPTIM_SGD], &a, t));
  }
  count_writes(self);
  count_writes(momentum_buffer_list);
  return EM_OK;
}

typedef struct adam_lists { em_tensors params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps; } adam_lists;

static em_status adam_step(const char *op, const adam_lists *l, em_optim_args *a, bool amsgrad, em_tensor *grad_scale,
                           em_tensor *found_inf) {
  EM_PASS(check_params(op, l->params));
  EM_PASS(check_list(op, "grads", l->params, l->grads, true));
  EM_PASS(check_list(op, "exp_avgs", l->params, l->exp_avgs, true));
  EM_PASS(check_list(op, "exp_avg_sqs", l->params, l->exp_avg_sqs, true));
  EM_PASS(check_list(op, "max_exp_avg_sqs", l->params, l->max_exp_avg_sqs, amsgrad));
  if (l->steps.n != l->params.n)
    return em_fail(EM_ERR_RUNTIME, "%s(): state_steps must have one tensor for each parameter", op);
  if (l->params.n == 0 || l->params.p[0]->device.type == EM_DEVICE_META) return EM_OK;
  bool skip;
  read_scaler(grad_scale, found_inf, a, &skip);
  for (int64_t i = 0; i < l->params.n && !skip; i++) {
    if (l->steps.p[i]->numel != 1 || l->steps.p[i]->device.type == EM_DEVICE_META)
      return em_fail(EM_ERR_RUNTIME, "%s(): state_steps must hold singleton tensors", op);
    double t = read_number(l->steps.p[i]);
    a->step_size = a->lr / (1 - pow(a->beta1, t));
    a->correction2_sqrt = sqrt(1 - pow(a->beta2, t));
    em_tensor *const operands[OPERANDS] = {l->params.p[i], l->grads.p[i], l->exp_avgs.p[i], l->exp_avg_sqs.p[i],
                                           amsgrad ? l->max_exp_avg_sqs.p[i] : NULL};
    EM_PASS(run_one(table->fn[EM_OPTIM_ADAM], a, operands));
  }
  count_writes(l->params);
  count_writes(l->exp_avgs);
  count_writes(l->exp_avg_sqs);
  if (amsgrad) count_writes(l->max_exp_avg_sqs);
  return EM_OK;
}

em_status c_fused_adam_(em_tensors self, em_tensors grads, em_tensors exp_avgs, em_tensors exp_avg_sqs,
                        em_tensors max_exp_avg_sqs, em_tensors state_steps, double lr, double beta1, double beta2,
                        double weight_decay, double eps, bool amsgrad, bool maximize, em_tensor *grad_scale,
                        em_tensor *found_inf) {
  const adam_lists l = {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps};
  em_optim_args a = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay, .eps = eps,
                     .maximize = maximize};
  return adam_step("_fused_adam_", &l, &a, amsgrad, grad_scale, found_inf);
}

em_status c_fused_adamw_(em_tensors self, em_tensors grads, em_tensors exp_avgs, em_tensors exp_avg_sqs,
                         em_tensors max_exp_avg_sqs, em_tensors state_steps, double lr, double beta1, double beta2,
                         double weight_decay, double eps, bool amsgrad, bool maximize, em_tensor *grad_scale,
                         em_tensor *found_inf) {
  const adam_lists l = {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps};
  em_optim_args a = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay, .eps = eps,
                     .maximize = maximize, .decoupled = true};
  return adam_step("_fused_adamw_", &l, &a, amsgrad, grad_scale, found_inf);
}
