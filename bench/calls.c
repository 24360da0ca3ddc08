/* calls.c: what a call costs from C, in nanoseconds: bench_c.py compiles it, runs it in turn with others, and takes medians.
 * Each line: what, forms, nanoseconds. Tensors have one element, so that nothing but the call is measured. */
#include <ember/ember.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 200, BURSTS = 400 }; /* calls a burst; a scope is opened for each burst, as a training step does */
static void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s\n", em_error_message());
  exit(1);
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static em_tensor *a, *b, *w;

static void add_handles(void) {
  for (int i = 0; i < CALLS; i++) {
    em_tensor *c;
    check(em_call_add_Tensor(a, b, em_scalar_int(1), &c));
    em_tensor_release(c);
  }
}
static void add_short(void) {
  em_scope *s = em_scope_begin();
  for (int i = 0; i < CALLS; i++) em_add(a, b);
  check(em_scope_end(s));
}
static void train_handles(void) {
  for (int i = 0; i < CALLS; i++) {
    em_tensor *product, *sum;
    check(em_call_mul_Tensor(w, a, &product));
    check(em_call_sum(product, EM_DTYPE_NONE, &sum));
    check(em_backward(sum, NULL, 0));
    check(em_tensor_set_grad(w, NULL));
    em_tensor_release(product);
    em_tensor_release(sum);
  }
}
static void train_short(void) {
  for (int i = 0; i < CALLS; i++) {
    em_scope *s = em_scope_begin();
    check(em_backward(em_sum(em_mul(w, a)), NULL, 0));
    check(em_tensor_set_grad(w, NULL));
    check(em_scope_end(s));
  }
}

static void measure(const char *what, const char *forms, void (*run)(void)) {
  static double took[BURSTS];
  for (int i = 0; i < BURSTS; i++) {
    double start = now();
    run();
    took[i] = (now() - start) / CALLS;
  }
  qsort(took, BURSTS, sizeof *took, by_size);
  printf("%s,%s,%.1f\n", what, forms, took[BURSTS / 2]);
}

int main(void) {
  check(em_call_ones(EM_INTS(1), EM_F32, -1, EM_DEVICE_NONE, -1, &a));
  check(em_call_ones(EM_INTS(1), EM_F32, -1, EM_DEVICE_NONE, -1, &b));
  check(em_call_ones(EM_INTS(1), EM_F32, -1, EM_DEVICE_NONE, -1, &w));
  check(em_tensor_set_requires_grad(w, true));
  measure("a + b", "explicit", add_handles);
  measure("a + b", "short", add_short);
  measure("(w * a).sum().backward()", "explicit", train_handles);
  measure("(w * a).sum().backward()", "short", train_short);
  em_tensor_release(a), em_tensor_release(b), em_tensor_release(w);
  return 0;
}
