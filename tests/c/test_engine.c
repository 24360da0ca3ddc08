// test_engine.c: the engine on graphs of hand-made node classes: depth, order, threads, reentrance, hooks, undefined
// gradients, selected inputs, errors, and that everything is freed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "autograd/saved.h"

static int failures;
#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); failures++; } } while (0)
#define OK(x)                                                                                                          \
  do {                                                                                                                 \
    if ((x) != EM_OK) {                                                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, em_error_message());                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static const em_device cpu = {EM_DEVICE_CPU, -1};
static em_tensor *scalar(float v) {
  em_tensor *t;
  OK(em_tensor_new(0, NULL, EM_F32, cpu, &t));
  *(float *)em_tensor_data(t) = v;
  return t;
}
static float value(em_tensor *t) { return t == NULL ? -1 : *(float *)em_tensor_data(t); }
static em_tensor *leaf(float v) {
  em_tensor *t = scalar(v);
  OK(em_tensor_set_requires_grad(t, true));
  return t;
}

// ---- classes: every output gradient is k times the sum of the incoming ones
typedef struct scale { em_node node; float k; int *calls; char *order; char tag; em_saved saved; } scale;
static em_status scale_apply(em_node *base, em_tensor *const *grads, em_tensor **out) {
  scale *n = (scale *)base;
  if (n->calls != NULL) ++*n->calls;
  if (n->order != NULL) strncat(n->order, &n->tag, 1);
  float sum = 0;
  for (uint32_t j = 0; j < base->n_inputs; j++) sum += grads[j] == NULL ? 0 : value(grads[j]);
  for (uint32_t e = 0; e < base->n_edges; e++)
    if (em_node_wants(base, e)) out[e] = scalar(sum * n->k);
  return EM_OK;
}
static void scale_release(em_node *base) { em_saved_release(&((scale *)base)->saved); }
static const em_node_class scale_class = {.name = "ScaleBackward0",
                                          .apply = scale_apply,
                                          .release_saved = scale_release,
                                          .size = sizeof(scale),
                                          .where = "test"};
static em_status nothing_apply(em_node *base, em_tensor *const *grads, em_tensor **out) {
  (void)base, (void)grads, (void)out;
  return EM_OK;
}
static const em_node_class nothing_class = {
    .name = "NothingBackward0", .apply = nothing_apply, .size = sizeof(scale), .where = "test"};

// One recorded call: an output whose gradient goes to the inputs, times k.
static em_tensor *record_class(const em_node_class *cls, float k, em_tensor **in, int n, scale **node) {
  scale *s = (scale *)em_node_new(cls, (uint32_t)n, 1);
  s->k = k;
  for (int i = 0; i < n; i++) OK(em_node_set_edge(&s->node, (uint32_t)i, in[i]));
  em_tensor *out = scalar(0);
  OK(em_node_set_history(&s->node, 0, out));
  if (node != NULL) *node = s;
  em_node_release(&s->node);
  return out;
}
static em_tensor *record(float k, em_tensor *in) { return record_class(&scale_class, k, &in, 1, NULL); }
static em_tensor *record2(float k, em_tensor *a, em_tensor *b) {
  return record_class(&scale_class, k, (em_tensor *[]){a, b}, 2, NULL);
}

static const em_backward_options backward = {.accumulate = true, .allow_unused = true};
static em_status run_backward(em_tensor *root) { return em_engine_run(&root, NULL, 1, NULL, 0, backward, NULL); }
static em_tensor *grad_of(em_tensor *t) {
  em_tensor *g;
  OK(em_tensor_grad(t, &g));
  return g;
}

static void test_chain(void) {
  em_tensor *x = leaf(1), *y = em_tensor_retain(x);
  for (int i = 0; i < 100000; i++) {
    em_tensor *next = record(1, y);
    em_tensor_release(y);
    y = next;
  }
  OK(run_backward(y));
  CHECK(value(grad_of(x)) == 1);
  em_tensor_release(y);  // frees 100,000 nodes without recursion
  em_tensor_release(x);
}
// Each node also saves the previous output, on which the whole history hangs.
static void test_saved_chain(void) {
  em_tensor *x = leaf(1), *y = em_tensor_retain(x);
  for (int i = 0; i < 100000; i++) {
    scale *n;
    em_tensor *next = record_class(&scale_class, 1, &y, 1, &n);
    OK(em_saved_save(&n->saved, y, false));
    em_tensor_release(y);
    y = next;
  }
  em_tensor_release(y);
  em_tensor_release(x);
}
static void test_grad_chain(void) {  // t.grad.grad.grad...
  em_tensor *t = scalar(0);
  for (int i = 0; i < 100000; i++) {
    em_tensor *outer = scalar(0);
    OK(em_tensor_set_grad(outer, t));
    em_tensor_release(t);
    t = outer;
  }
  em_tensor_release(t);
}
static void test_wide(void) {
  enum { N = 3000 };
  static em_tensor *leaves[N];
  for (int i = 0; i < N; i++) leaves[i] = leaf(1);
  em_tensor *y = record_class(&scale_class, 2, leaves, N, NULL);
  OK(run_backward(y));
  em_tensor_release(y);
  bool all = true;
  for (int i = 0; i < N; i++) {
    all &= value(grad_of(leaves[i])) == 2;
    em_tensor_release(leaves[i]);
  }
  CHECK(all);
}
static void test_diamond(void) {
  char order[16] = "";
  scale *n[4];
  em_tensor *x = leaf(1);
  em_tensor *a = record_class(&scale_class, 2, &x, 1, &n[0]);
  em_tensor *b = record_class(&scale_class, 3, &a, 1, &n[1]);
  em_tensor *c = record_class(&scale_class, 5, &a, 1, &n[2]);
  em_tensor *d = record_class(&scale_class, 1, (em_tensor *[]){b, c}, 2, &n[3]);
  for (int i = 0; i < 4; i++) n[i]->order = order, n[i]->tag = (char)('a' + i);
  em_backward_options keep = backward;
  keep.keep_graph = true;
  OK(em_engine_run(&d, NULL, 1, NULL, 0, keep, NULL));
  CHECK(strcmp(order, "dcba") == 0);  // last recorded runs first, and `a` once, when both have delivered
  CHECK(value(grad_of(x)) == 16);
  OK(run_backward(d));                // kept: once more, and it adds
  CHECK(value(grad_of(x)) == 32);
  em_tensor *all[] = {x, a, b, c, d};
  for (int i = 0; i < 5; i++) em_tensor_release(all[i]);
}

// ---- threads and reentrance
enum { ROUNDS = 2000 };
static void *thread_body(void *p) {
  em_tensor *x = p;
  for (int i = 0; i < ROUNDS; i++) {
    em_tensor *y = record(1, x), *z = record2(1, y, x);
    OK(run_backward(z));
    em_tensor_release(z);
    em_tensor_release(y);
  }
  return NULL;
}
static void test_threads(void) {
  em_tensor *x = leaf(1);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, thread_body, x) == 0);
  thread_body(x);
  pthread_join(other, NULL);
  CHECK(value(grad_of(x)) == 4 * ROUNDS);
  em_tensor_release(x);
}
static em_status reentrant_hook(void *context, em_tensor *grad, em_tensor **out) {
  (void)grad, (void)out;
  em_tensor *y = record(10, context);
  em_status st = run_backward(y);
  em_tensor_release(y);
  return st;
}
static void test_reentrant(void) {
  em_tensor *x = leaf(1), *y = record(2, x), *z = record(3, y);
  OK(em_hook_tensor(y, reentrant_hook, x, NULL, NULL));
  OK(run_backward(z));
  CHECK(value(grad_of(x)) == 16);  // 6 from this run, 10 from the one inside
  em_tensor_release(z);
  em_tensor_release(y);
  em_tensor_release(x);
}

// ---- hooks
static char trail[64];
static em_status add_one(void *context, em_tensor *grad, em_tensor **out) {
  strcat(trail, context);
  *out = scalar(value(grad) + 1);
  return EM_OK;
}
static em_status pre(void *context, em_tensor *const *grads, int64_t n, em_tensor **out, bool *replaced) {
  strcat(trail, context);
  CHECK(n == 1);
  out[0] = scalar(value(grads[0]) * 10);
  *replaced = true;
  return EM_OK;
}
static em_status post(void *context, em_tensor *const *outs, int64_t n, em_tensor *const *ins, int64_t m,
                      em_tensor **out, bool *replaced) {
  (void)out, (void)replaced;
  strcat(trail, context);
  CHECK(n == 1 && m == 1 && value(outs[0]) == 2 * value(ins[0]));
  return EM_OK;
}
static em_status accumulated(void *context, em_tensor *t) {
  strcat(trail, context);
  CHECK(grad_of(t) != NULL);
  return EM_OK;
}
static int released;
static void count_release(void *context) {
  (void)context;
  released++;
}
static void test_hooks(void) {
  em_tensor *x = leaf(1), *y = record(2, x), *z = record(1, y);
  em_node *fn;
  uint64_t id;
  OK(em_tensor_grad_fn(y, &fn));
  OK(em_tensor_retain_grad(y));
  OK(em_hook_node_post(fn, post, "P", count_release, NULL));
  OK(em_hook_node_pre(fn, pre, "p", count_release, NULL));
  OK(em_hook_tensor(y, add_one, "1", count_release, NULL));
  OK(em_hook_tensor(y, add_one, "2", count_release, NULL));
  OK(em_hook_tensor(y, add_one, "gone", count_release, &id));
  em_hook_remove_tensor(y, id);
  CHECK(released == 1);
  OK(em_hook_tensor(x, add_one, "x", count_release, NULL));
  OK(em_hook_accumulate(x, accumulated, "A", count_release, NULL));
  OK(run_backward(z));
  CHECK(strcmp(trail, "12pPxA") == 0);
  CHECK(value(grad_of(y)) == 3);   // after both tensor hooks, before the node's
  CHECK(value(grad_of(x)) == 61);  // (1 + 1 + 1) * 10 * 2, then the leaf's own hook
  em_tensor_release(z);
  em_tensor_release(y);
  em_tensor_release(x);
  CHECK(released == 7);
}

// ---- undefined gradients, selected inputs, errors
static void test_undefined(void) {
  int calls = 0;
  scale *n;
  em_tensor *x = leaf(1);
  em_tensor *y = record_class(&scale_class, 1, &x, 1, &n);
  n->calls = &calls;
  em_tensor *z = record_class(&nothing_class, 1, &y, 1, NULL);
  OK(run_backward(z));
  CHECK(calls == 0 && grad_of(x) == NULL);
  static em_node_class always;
  always = scale_class;
  always.always_runs = 1;
  em_tensor *u = record_class(&always, 1, &x, 1, &n);
  n->calls = &calls;
  em_tensor *w = record_class(&nothing_class, 1, &u, 1, NULL);
  OK(run_backward(w));
  CHECK(calls == 1);
  em_tensor *all[] = {x, y, z, u, w};
  for (int i = 0; i < 5; i++) em_tensor_release(all[i]);
}
static void test_inputs(void) {
  int calls = 0;
  scale *side;
  em_tensor *x = leaf(1), *q = leaf(1), *lost = leaf(1), *y = record(2, x);
  em_tensor *s = record_class(&scale_class, 7, &q, 1, &side);
  side->calls = &calls;
  em_tensor *z = record2(3, y, s), *res[3];
  em_backward_options grad = {.keep_graph = true};
  em_tensor *in[] = {y, x, lost};
  OK(em_engine_run(&z, NULL, 1, in, 2, grad, res));
  CHECK(value(res[0]) == 3 && value(res[1]) == 6);
  // the side branch did not run, nothing was accumulated
  CHECK(calls == 0 && grad_of(x) == NULL && grad_of(q) == NULL);
  em_tensor_release(res[0]);
  em_tensor_release(res[1]);
  CHECK(em_engine_run(&z, NULL, 1, in, 3, grad, res) == EM_ERR_RUNTIME);
  CHECK(strncmp(em_error_message(), "The differentiated Tensor at index 2 appears to not have been used in the graph.",
                70) == 0);
  CHECK(res[0] == NULL);
  grad.allow_unused = true;
  OK(em_engine_run(&z, NULL, 1, in, 3, grad, res));
  CHECK(value(res[1]) == 6 && res[2] == NULL);
  em_tensor_release(res[0]);
  em_tensor_release(res[1]);
  em_tensor *all[] = {x, q, lost, y, s, z};
  for (int i = 0; i < 6; i++) em_tensor_release(all[i]);
}
static em_status wrong_shape(em_node *base, em_tensor *const *grads, em_tensor **out) {
  (void)base, (void)grads;
  return em_tensor_new(1, (int64_t[]){2}, EM_F32, cpu, out);
}
static void test_errors(void) {
  static const em_node_class wrong = {
      .name = "WrongBackward0", .apply = wrong_shape, .size = sizeof(scale), .where = "test"};
  em_tensor *x, *plain = scalar(1), *vec;
  OK(em_tensor_new(1, (int64_t[]){3}, EM_F32, cpu, &x));
  OK(em_tensor_set_requires_grad(x, true));
  em_tensor *y = record_class(&wrong, 1, &x, 1, NULL);
  CHECK(run_backward(y) == EM_ERR_RUNTIME);
  CHECK(
      strcmp(em_error_message(),
             "Function WrongBackward0 returned an invalid gradient at index 0 - got [2] but expected shape compatible "
             "with [3]") == 0);
  CHECK(run_backward(plain) == EM_ERR_RUNTIME);
  CHECK(strcmp(em_error_message(), "element 0 of tensors does not require grad and does not have a grad_fn") == 0);
  OK(em_tensor_new(1, (int64_t[]){3}, EM_F32, cpu, &vec));
  OK(em_tensor_set_requires_grad(vec, true));
  CHECK(run_backward(vec) == EM_ERR_RUNTIME);
  CHECK(strcmp(em_error_message(), "grad can be implicitly created only for scalar outputs") == 0);
  CHECK(em_engine_run(&vec, &plain, 1, NULL, 0, backward, NULL) == EM_ERR_RUNTIME);
  CHECK(strcmp(em_error_message(),
               "Mismatch in shape: grad_output[0] has a shape of torch.Size([]) and output[0] has a shape of "
               "torch.Size([3]).") == 0);
  em_tensor *all[] = {x, plain, y, vec};
  for (int i = 0; i < 4; i++) em_tensor_release(all[i]);
}
static em_status use_saved(em_node *base, em_tensor *const *grads, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_saved_unpack(&((scale *)base)->saved, base, &t));
  out[0] = scalar(value(t) * value(grads[0]));
  em_tensor_release(t);
  return EM_OK;
}
static void test_saved(void) {
  static const em_node_class cls = {.name = "UseBackward0",
                                    .apply = use_saved,
                                    .release_saved = scale_release,
                                    .size = sizeof(scale),
                                    .where = "test"};
  scale *n;
  em_tensor *x = leaf(5), *y = record_class(&cls, 1, &x, 1, &n);
  OK(em_saved_save(&n->saved, x, false));
  OK(run_backward(y));
  CHECK(value(grad_of(x)) == 5);
  CHECK(run_backward(y) == EM_ERR_RUNTIME);
  CHECK(strncmp(em_error_message(), "Trying to backward through the graph a second time", 50) == 0);
  em_tensor *z = record_class(&cls, 1, &x, 1, &n);
  OK(em_saved_save(&n->saved, x, false));
  em_version_bump(x->version);
  CHECK(run_backward(z) == EM_ERR_RUNTIME);
  CHECK(strstr(em_error_message(),
               "modified by an inplace operation: [torch.FloatTensor []] is at version 1; expected version 0") != NULL);
  em_tensor *w = record_class(&cls, 1, &x, 1, &n);
  OK(em_saved_save(&n->saved, w, true));  // its own output: no cycle, and the history comes back
  em_tensor *back;
  OK(em_saved_unpack(&n->saved, &n->node, &back));
  CHECK(back != w && back->meta->grad_fn == &n->node);
  em_tensor *all[] = {x, y, z, w, back};
  for (int i = 0; i < 5; i++) em_tensor_release(all[i]);
}
static em_status note(void *context) {
  ++*(int *)context;
  return EM_OK;
}
static em_status queue(void *context, em_tensor *grad, em_tensor **out) {
  (void)grad, (void)out;
  return em_engine_queue_callback(note, context, NULL);
}
static void test_callback(void) {
  int ran = 0;
  CHECK(em_engine_queue_callback(note, &ran, NULL) == EM_ERR_RUNTIME);
  CHECK(strcmp(em_error_message(), "Final callbacks can only be installed during backward pass.") == 0);
  em_tensor *x = leaf(1), *y = record(1, x);
  OK(em_hook_tensor(x, queue, &ran, NULL, NULL));
  OK(run_backward(y));
  CHECK(ran == 1);
  em_tensor_release(y);
  em_tensor_release(x);
}

int main(void) {
  int64_t tensors = em_alloc_live(EM_KIND_TENSOR), nodes = em_alloc_live(EM_KIND_NODE),
          metas = em_alloc_live(EM_KIND_META);
  test_chain();
  test_saved_chain();
  test_grad_chain();
  test_wide();
  test_diamond();
  test_threads();
  test_reentrant();
  test_hooks();
  test_undefined();
  test_inputs();
  test_errors();
  test_saved();
  test_callback();
  CHECK(em_alloc_live(EM_KIND_TENSOR) == tensors);
  CHECK(em_alloc_live(EM_KIND_NODE) == nodes);
  CHECK(em_alloc_live(EM_KIND_META) == metas);
  return failures != 0;
}
