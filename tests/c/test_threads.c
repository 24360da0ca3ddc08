// test_threads.c: threads of a C program, each with scopes of its own: networks trained side by side, gradients that meet in
// a shared leaf, tensors that are read by all. `make tsan` runs it under ThreadSanitizer.
#include <ember/ember.h>
#include <math.h>
#include <pthread.h>
#include "check.h"

enum { THREADS = 2, STEPS = 30 };

// Trains y = x W from a seed; returns the last loss.
static void *train(void *loss) {
  em_scope *all = em_scope_begin();
  em_generator *g = em_generator_new();
  em_generator_seed(g, 7);
  em_tensor *x = em_randn_generator_with(EM_INTS(16, 4), g, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1);
  em_tensor *truth = em_randn_generator_with(EM_INTS(4, 2), g, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1);
  em_tensor *w = em_zeros(EM_INTS(4, 2)), *y = em_mm(x, truth);
  CHECK_OK(em_tensor_set_requires_grad(w, true));
  em_optimizer *adam;
  CHECK_OK(em_adam_new(&w, 1, em_adam_defaults(0.1), &adam));
  for (int i = 0; i < STEPS; i++) {
    em_scope *s = em_scope_begin();
    em_tensor *error = em_mse_loss(em_tanh(em_mm(x, w)), em_tanh(y));
    CHECK_OK(em_optimizer_zero_grad(adam));
    CHECK_OK(em_backward(error, NULL, 0));
    CHECK_OK(em_optimizer_step(adam));
    CHECK_OK(em_tensor_to_double(error, loss));
    CHECK(em_mm(x, x) == NULL);  // a failure is this thread's own
    CHECK(em_scope_end(s) == EM_ERR_RUNTIME);
  }
  em_optimizer_free(adam);
  em_generator_release(g);
  CHECK_OK(em_scope_end(all));
  return NULL;
}

static em_tensor *shared;  // a leaf

static void *add_gradients(void *unused) {
  (void)unused;
  for (int i = 0; i < STEPS; i++) {
    em_scope *s = em_scope_begin();
    em_tensor *loss = em_sum(em_mul(em_exp(em_mul_Scalar(shared, em_scalar_int(0))), shared));
    CHECK_OK(em_backward(loss, NULL, 0));
    CHECK_OK(em_scope_end(s));
  }
  return NULL;
}

// Both make views of one tensor, retain and release it, and print it.
static void *look(void *text) {
  for (int i = 0; i < STEPS; i++) {
    em_scope *s = em_scope_begin();
    em_tensor *row = em_select(shared, 0, 0);
    CHECK(row != NULL && em_tensor_requires_grad(row));
    CHECK_OK(em_tensor_text(row, text, 200));
    em_tensor_release(em_tensor_retain(shared));
    em_manual_seed(3);
    CHECK(em_rand(EM_INTS(10)) != NULL);
    CHECK_OK(em_scope_end(s));
  }
  return NULL;
}

static void both(void *(*run)(void *), void *a, void *b) {
  pthread_t threads[THREADS];
  void *contexts[THREADS] = {a, b};
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, contexts[i]) == 0);
  for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
  double alone = 0, losses[THREADS] = {0};
  both(train, &losses[0], &losses[1]);
  train(&alone);
  CHECK(losses[0] == alone && losses[1] == alone && alone < 0.5);

  em_scope *s = em_scope_begin();
  shared = em_ones(EM_INTS(3, 4));
  CHECK_OK(em_tensor_set_requires_grad(shared, true));
  both(add_gradients, NULL, NULL);
  em_tensor *grad;
  double sum = 0;
  CHECK_OK(em_tensor_grad(shared, &grad));
  CHECK_OK(em_tensor_to_double(em_sum(grad), &sum));
  CHECK(sum == 12.0 * THREADS * STEPS);
  char first[200], second[200];
  both(look, first, second);
  CHECK_OK(em_scope_end(s));
  CHECK(em_live_tensors() == 0);
  CHECK_DONE();
}
