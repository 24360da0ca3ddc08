// test_faults.c: each allocation of a training step fails once: an error comes, nothing is left behind, and the step can be
// taken again.
#include <ember/ember.h>
#include <string.h>
#include "check.h"

int64_t em_priv_fault_countdown(int64_t n);  // src/core/alloc.h: the n-th request fails, and only it; 0 disarms

enum { WEIGHTS = 3 };
static em_tensor *x, *labels, *w[WEIGHTS];
static em_optimizer *adam;

// A step of a small network with batch norm, written with short forms; ends with the gradients dropped.
static em_status step(void) {
  em_scope *s = em_scope_begin();
  em_scope *inner = em_scope_begin();  // scopes within scopes fail too
  em_tensor *hidden = em_keep(em_batch_norm(em_mm(x, w[0]), NULL, NULL, NULL, NULL, true, 0.1, 1e-5, false));
  em_status st = em_scope_end(inner), at_end;
  em_tensors parts = em_split_with(em_relu(hidden), 2, 1);
  em_tensor *sum = em_add(em_mm(em_list_at(parts, 0), w[1]), em_mm(em_list_at(parts, 1), w[2]));
  if (st == EM_OK) st = em_scope_check(em_backward(em_cross_entropy_loss(sum, labels), NULL, 0));
  if (st == EM_OK) st = em_scope_check(em_clip_grad_norm(w, WEIGHTS, 0.5, 2, NULL));
  if (st == EM_OK) st = em_scope_check(em_optimizer_step(adam));
  em_tensor_release(hidden);
  at_end = em_scope_end(s);
  if (st == EM_OK) st = at_end;
  em_status dropped = em_optimizer_zero_grad(adam);
  CHECK(dropped == EM_OK);  // needs no memory
  return st;
}

// What the optimizer remembers, written and read; a tensor shared by DLPack; first values.
static em_status around(void) {
  em_weights *file = NULL;
  struct DLManagedTensor *shared = NULL;
  em_tensor *back = NULL;
  em_status st = em_optimizer_save(adam, "test_faults.safetensors");
  if (st == EM_OK) st = em_weights_load("test_faults.safetensors", &file);
  if (st == EM_OK) st = em_optimizer_load(adam, file, "");
  em_weights_free(file);
  if (st == EM_OK) st = em_tensor_to_dlpack(x, &shared);
  if (st == EM_OK) st = em_tensor_from_dlpack(shared, &back);
  if (st != EM_OK && shared != NULL) {  // still ours: this test may say so, as x lives on and the view alone goes
    em_status again = em_tensor_from_dlpack(shared, &back);
    CHECK(again == EM_OK);
  }
  em_tensor_release(back);
  em_scope *s = em_scope_begin();
  em_init_trunc_normal_(em_empty(EM_INTS(40)), 0, 1, -1, 1, NULL);
  em_status ended = em_scope_end(s);
  return st == EM_OK ? ended : st;
}

static void own_function_fails(void) {
  em_operator *op;
  for (int n = 1; n < 100; n++) {
    char schema[64];
    snprintf(schema, sizeof schema, "faults::op%d(Tensor x, int[2] size=1, str name='a') -> Tensor", n);
    em_priv_fault_countdown(n);
    em_status st = em_operator_define(schema, &op);
    em_priv_fault_countdown(0);
    CHECK(st == EM_OK || st == EM_ERR_OOM);
    if (st == EM_OK) return;
  }
  CHECK(!"em_operator_define ends");
}

// `run` with each of its allocations failing once, until one run has fewer; which that was.
static int64_t each_allocation(em_status (*run)(void)) {
  int64_t before = em_live_tensors(), n = 1;
  for (; n < 2000; n++) {
    em_priv_fault_countdown(n);
    em_status st = run();
    em_priv_fault_countdown(0);
    if (em_live_tensors() != before) {
      fprintf(stderr, "failing allocation %lld left %lld tensors behind\n", (long long)n, (long long)(em_live_tensors() - before));
      check_failures++;
      before = em_live_tensors();
    }
    if (st == EM_OK) break;  // there were fewer
    CHECK(st == EM_ERR_OOM);
    CHECK(strstr(em_error_message(), "memory") != NULL);
  }
  return n;
}

int main(void) {
  em_manual_seed(0);
  em_scope *s = em_scope_begin();
  x = em_randn(EM_INTS(8, 6));
  labels = em_remainder_Scalar(em_arange(em_scalar_int(8)), em_scalar_int(3));
  w[0] = em_randn(EM_INTS(6, 4));
  w[1] = em_randn(EM_INTS(2, 3));
  w[2] = em_randn(EM_INTS(2, 3));
  for (int i = 0; i < WEIGHTS; i++) CHECK_OK(em_tensor_set_requires_grad(w[i], true));
  CHECK_OK(em_adam_new(w, WEIGHTS, em_adam_defaults(1e-3), &adam));
  CHECK_OK(step());
  CHECK_OK(step());
  int64_t n = each_allocation(step);
  CHECK(n > 40 && n < 2000);
  printf("%lld allocations of a training step failed, one at a time\n", (long long)n - 1);
  CHECK_OK(step());
  CHECK(each_allocation(around) > 40);
  remove("test_faults.safetensors");
  own_function_fails();
  em_optimizer_free(adam);
  CHECK_OK(em_scope_end(s));
  CHECK(em_live_tensors() == 0);
  CHECK_DONE();
}
