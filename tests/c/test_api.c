// test_api.c: the C face as a program of somebody else's sees it: public headers alone.
#include <ember/ember.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(ok)                                                                                    \
  do {                                                                                               \
    if (!(ok)) {                                                                                     \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #ok, em_error_message());              \
      exit(1);                                                                                       \
    }                                                                                                \
  } while (0)

static const em_device cpu = {EM_DEVICE_CPU, -1};

static void tensors(void) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  em_tensor *t, *n;
  CHECK(em_tensor_from_data(numbers, EM_F32, 2, (const int64_t[]){2, 3}, &t) == EM_OK);
  CHECK(em_tensor_ndim(t) == 2 && em_tensor_size(t, -1) == 3 && em_tensor_size(t, 2) == -1 && em_tensor_numel(t) == 6);
  CHECK(em_tensor_strides(t)[0] == 3 && em_tensor_is_contiguous(t) && em_tensor_dtype(t) == EM_F32);
  em_tensor *back;
  CHECK(em_call_t(t, &back) == EM_OK && !em_tensor_is_contiguous(back));
  int32_t read[6];
  CHECK(em_tensor_read(back, EM_I32, read, sizeof read) == EM_OK && read[0] == 1 && read[1] == 4 && read[5] == 6);
  CHECK(em_tensor_read(back, EM_F64, read, sizeof read) == EM_ERR_VALUE && strstr(em_error_message(), "48 bytes"));
  double value;
  CHECK(em_tensor_to_double(t, &value) == EM_ERR_RUNTIME);
  CHECK(em_tensor_from_number(em_scalar_double(2.5), EM_DTYPE_NONE, &n) == EM_OK && em_tensor_dtype(n) == EM_F32);
  CHECK(em_tensor_to_double(n, &value) == EM_OK && value == 2.5);
  em_tensor_release(n), em_tensor_release(back), em_tensor_release(t), em_tensor_release(NULL);

  CHECK(em_tensor_new(1, (const int64_t[]){-1}, EM_F32, cpu, &t) != EM_OK);
  CHECK(em_tensor_from_data(NULL, EM_F32, 1, (const int64_t[]){3}, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_from_data(numbers, 99, 1, (const int64_t[]){3}, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_from_data(numbers, EM_F32, 2, (const int64_t[]){INT64_MAX, 4}, &t) == EM_ERR_RUNTIME);
  CHECK(em_tensor_from_data(numbers, EM_F32, 65, NULL, &t) == EM_ERR_VALUE);
}

static int deleted;
static void count_deletion(void *context, void *data) {
  (void)data;
  deleted += *(int *)context;
}
static void wrapped(void) {
  double own[4] = {1, 2, 3, 4};
  int one = 1;
  em_tensor *t, *row;
  CHECK(em_tensor_wrap_data(own, EM_F64, 2, (const int64_t[]){2, 2}, count_deletion, &one, &t) == EM_OK);
  CHECK(em_call_select_int(t, 0, 1, &row) == EM_OK);
  CHECK(em_call_mul__Scalar(row, em_scalar_int(10)) == EM_OK && own[2] == 30 && own[3] == 40);
  em_tensor_release(t);
  CHECK(deleted == 0);  // the view still needs the bytes
  em_tensor_release(row);
  CHECK(deleted == 1);
  CHECK(em_tensor_wrap_data((char *)own + 1, EM_F64, 1, (const int64_t[]){1}, count_deletion, &one, &t) == EM_ERR_VALUE);
  CHECK(deleted == 1);
}

static void scopes(void) {
  int64_t before = em_live_tensors();
  CHECK(em_ones(EM_INTS(2)) == NULL && strstr(em_error_message(), "em_scope_begin"));
  em_scope *outer = em_scope_begin();
  em_tensor *a = em_ones(EM_INTS(2, 3)), *indices, *kept;
  em_scope *inner = em_scope_begin();
  em_tensor *largest = em_max_dim(em_add(a, em_add_Scalar(a, em_scalar_int(2))), 1, &indices);
  CHECK(em_tensor_numel(largest) == 2 && em_tensor_numel(indices) == 2);
  em_tensors halves = em_split(a, 1);
  CHECK(halves.n == 2 && em_tensor_size(halves.p[1], 0) == 1);
  kept = em_keep(em_sum(largest));
  CHECK(em_scope_end(inner) == EM_OK);
  double value;
  CHECK(em_tensor_to_double(kept, &value) == EM_OK && value == 8);
  em_tensor_release(kept);

  em_tensor *bad = em_mm(a, a);  // [2, 3] times [2, 3]
  CHECK(bad == NULL && em_relu(bad) == NULL && em_sum(em_relu(bad)) == NULL && em_add_(a, bad) == NULL);
  CHECK(em_select(a, 5, 0) == NULL);  // fails too, later
  CHECK(em_scope_begin() != NULL);         // left open: ends with the outer one
  CHECK(em_scope_end(outer) == EM_ERR_RUNTIME && strstr(em_error_message(), "mat1 and mat2 shapes cannot be multiplied"));
  CHECK(em_scope_end(outer) == EM_ERR_RUNTIME && strstr(em_error_message(), "not open"));
  CHECK(em_live_tensors() == before);
}

static em_status doubled(void *context, em_tensor *grad, em_tensor **out) {
  ++*(int *)context;
  return em_call_mul_Scalar(grad, em_scalar_int(2), out);
}
static em_status refuse(void *context, em_tensor *grad, em_tensor **out) {
  (void)context, (void)grad, (void)out;
  return em_fail(EM_ERR_VALUE, "this hook refuses");
}
static void gradients(void) {
  int calls = 0;
  uint64_t id;
  double value;
  em_scope *s = em_scope_begin();
  em_tensor *x = em_full(EM_INTS(3), em_scalar_double(2)), *grad, *results[2];
  CHECK(em_tensor_set_requires_grad(x, true) == EM_OK && em_tensor_requires_grad(x) && em_tensor_is_leaf(x));
  em_tensor *y = em_mul(x, x);
  CHECK(!em_tensor_is_leaf(y));
  em_node *node;
  CHECK(em_tensor_grad_fn(y, &node) == EM_OK && strcmp(em_node_name(node), "MulBackward0") == 0);
  CHECK(em_node_next_count(node) == 2 && em_node_next(node, 0) != NULL && em_node_next(node, 9) == NULL);
  CHECK(em_hook_tensor(y, doubled, &calls, NULL, &id) == EM_OK);
  CHECK(em_backward(em_sum(y), NULL, EM_KEEP_GRAPH) == EM_OK && calls == 1);
  CHECK(em_tensor_grad(x, &grad) == EM_OK && em_tensor_to_double(em_select(grad, 0, 0), &value) == EM_OK && value == 8);
  em_hook_remove_tensor(y, id);
  em_tensor *cube = em_mul(y, x);  // second order: (x^3)'' = 6 x
  CHECK(em_grad(EM_TENSORS(em_sum(cube)).p, NULL, 1, EM_TENSORS(x).p, 1, EM_CREATE_GRAPH, results) == EM_OK);
  CHECK(em_grad(EM_TENSORS(em_sum(results[0])).p, NULL, 1, EM_TENSORS(x).p, 1, 0, results + 1) == EM_OK);
  CHECK(em_tensor_to_double(em_select(results[1], 0, 1), &value) == EM_OK && value == 12);
  em_tensor_release(results[0]), em_tensor_release(results[1]);
  CHECK(em_hook_tensor(x, refuse, NULL, NULL, &id) == EM_OK);
  CHECK(em_backward(em_sum(em_mul(x, x)), NULL, 0) == EM_ERR_VALUE && strstr(em_error_message(), "this hook refuses"));
  em_hook_remove_tensor(x, id);
  bool was = em_grad_set_enabled(false);
  CHECK(was && !em_grad_enabled() && !em_tensor_requires_grad(em_mul(x, x)));
  em_grad_set_enabled(was);
  CHECK(em_backward(em_ones(EM_INTS(1)), NULL, 0) == EM_ERR_RUNTIME);
  CHECK(em_backward(NULL, NULL, 0) == EM_ERR_TYPE);
  em_tensor *integers = em_ones_with(EM_INTS(2), EM_I64, -1, EM_DEVICE_NONE, -1);
  CHECK(em_tensor_set_requires_grad(integers, true) == EM_ERR_RUNTIME);
  CHECK(em_scope_end(s) == EM_OK);
}

// Fits y = x W for a known W with each optimizer; returns the last loss.
static double fit(int which, double *first) {
  em_manual_seed(1);
  em_scope *all = em_scope_begin();
  em_tensor *x = em_randn(EM_INTS(64, 4)), *truth = em_randn(EM_INTS(4, 2)), *y = em_mm(x, truth), *w = em_zeros(EM_INTS(4, 2));
  CHECK(em_tensor_set_requires_grad(w, true) == EM_OK);
  em_optimizer *o;
  em_sgd_options sgd = em_sgd_defaults(0.1);
  sgd.momentum = which == 1 ? 0.9 : 0;
  em_adam_options adam = which == 3 ? em_adamw_defaults(0.1) : em_adam_defaults(0.1);
  adam.amsgrad = which == 4;
  adam.weight_decay = 0;
  CHECK((which < 2 ? em_sgd_new(&w, 1, sgd, &o) : em_adam_new(&w, 1, adam, &o)) == EM_OK);
  double loss = 0;
  for (int step = 0; step < 100; step++) {
    em_scope *s = em_scope_begin();
    em_tensor *error = em_mse_loss(em_mm(x, w), y);
    CHECK(em_optimizer_zero_grad(o) == EM_OK && em_backward(error, NULL, 0) == EM_OK && em_optimizer_step(o) == EM_OK);
    CHECK(em_tensor_to_double(error, &loss) == EM_OK);
    if (step == 0) *first = loss;
    CHECK(em_scope_end(s) == EM_OK);
  }
  CHECK(em_optimizer_set_lr(o, -1) == EM_ERR_VALUE && em_optimizer_set_lr(o, NAN) == EM_ERR_VALUE);
  CHECK(em_optimizer_set_lr(o, 0.5) == EM_OK && em_optimizer_lr(o) == 0.5);
  em_optimizer_free(o);
  CHECK(em_scope_end(all) == EM_OK);
  return loss;
}
static void optimizers(void) {
  for (int which = 0; which < 5; which++) {
    double first = 0, last = fit(which, &first);
    CHECK(last < 0.01 * first);
  }
  em_optimizer *o;
  em_scope *s = em_scope_begin();
  em_tensor *x = em_ones(EM_INTS(2));
  CHECK(em_tensor_set_requires_grad(x, true) == EM_OK);
  em_tensor *y = em_mul(x, x);
  CHECK(em_sgd_new(&x, 0, em_sgd_defaults(0.1), &o) == EM_ERR_VALUE);
  CHECK(em_sgd_new(&y, 1, em_sgd_defaults(0.1), &o) == EM_ERR_VALUE && strstr(em_error_message(), "non-leaf"));
  CHECK(em_sgd_new(&x, 1, em_sgd_defaults(-1), &o) == EM_ERR_VALUE && strstr(em_error_message(), "Invalid learning rate"));
  CHECK(em_scope_end(s) == EM_OK);
  em_optimizer_free(NULL);
}

static void random_numbers(void) {
  em_manual_seed(0);
  em_scope *s = em_scope_begin();
  double value;
  CHECK(em_tensor_to_double(em_rand(EM_INTS(1)), &value) == EM_OK && fabs(value - 0.4962565899) < 1e-9);  // PyTorch's
  em_generator *g = em_generator_new();
  em_generator_seed(g, 0);
  size_t size = em_generator_state_size();
  char *state = malloc(size);
  em_generator_get_state(g, state);
  em_tensor *a = em_rand_generator_with(EM_INTS(3), g, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1);
  CHECK(em_generator_set_state(g, state, size) == EM_OK);
  em_tensor *b = em_rand_generator_with(EM_INTS(3), g, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1);
  bool equal;
  CHECK(em_call_equal(a, b, &equal) == EM_OK && equal);
  CHECK(em_generator_set_state(g, state, size - 1) != EM_OK);
  free(state);
  em_generator_release(g);
  CHECK(em_scope_end(s) == EM_OK);
}

// ---- an operator of one's own ----
static int released;
static void count_release(void *context) { released += *(int *)context; }
static em_status cube(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)op, (void)ks, (void)context;
  em_tensor *square, *out = NULL;
  em_status st = em_call_mul_Tensor(args[0].tensor, args[0].tensor, &square);
  if (st == EM_OK) {
    st = em_call_mul_Tensor(square, args[0].tensor, &out);
    em_tensor_release(square);
  }
  if (st == EM_OK && args[1].i != 1) st = em_call_mul__Scalar(out, em_scalar_int(args[1].i));
  rets[0] = em_value_tensor_steal(out);
  return st;
}
static em_status cube_backward(void *context, const em_value *args, em_tensor *const *results, em_tensor *const *grads,
                               const bool *wanted, em_tensor **grad_args) {
  (void)context;
  CHECK(wanted[0] && !wanted[1] && em_tensor_numel(results[0]) == em_tensor_numel(args[0].tensor));
  em_tensor *x = args[0].tensor, *square, *slope;
  em_status st = em_call_mul_Tensor(x, x, &square);
  if (st != EM_OK) return st;
  st = em_call_mul_Scalar(square, em_scalar_int(3 * args[1].i), &slope);
  em_tensor_release(square);
  if (st != EM_OK) return st;
  st = em_call_mul_Tensor(grads[0], slope, &grad_args[0]);
  em_tensor_release(slope);
  return st;
}
static void own_operators(void) {
  int one = 1;
  em_operator *op, *other;
  CHECK(em_operator_define("mine::cube(Tensor x, int times=1) -> Tensor", &op) == EM_OK);
  CHECK(em_operator_define("mine::cube(Tensor x) -> Tensor", &other) == EM_ERR_RUNTIME);
  CHECK(em_operator_define("mine::bad(Tensor x", &other) == EM_ERR_RUNTIME);
  CHECK(em_operator_find("mine", "cube", "") == op && em_operator_find("mine", "nothing", "") == NULL);
  CHECK(em_operator_arg_count(op) == 2 && em_operator_return_count(op) == 1);
  CHECK(em_operator_set_kernel(op, EM_DEVICE_CPU, cube, &one, count_release) == EM_OK);
  CHECK(em_operator_set_kernel(op, 77, cube, NULL, NULL) == EM_ERR_VALUE);
  CHECK(em_operator_set_derivative(op, cube_backward, &one, count_release) == EM_OK);
  CHECK(em_operator_set_derivative(em_operator_find("aten", "add", "Tensor"), cube_backward, NULL, NULL) == EM_ERR_RUNTIME);

  em_scope *s = em_scope_begin();
  em_tensor *x = em_full(EM_INTS(2), em_scalar_double(3)), *results[1];
  CHECK(em_tensor_set_requires_grad(x, true) == EM_OK);
  em_value args[2] = {em_value_tensor(x), em_value_int(2)}, ret = em_value_none();
  CHECK(em_call_boxed(op, args, &ret) == EM_OK);
  em_node *node;
  CHECK(em_tensor_grad_fn(ret.tensor, &node) == EM_OK && strcmp(em_node_name(node), "CubeBackward") == 0);
  double value;
  CHECK(em_tensor_to_double(em_select(ret.tensor, 0, 0), &value) == EM_OK && value == 54);
  CHECK(em_grad(EM_TENSORS(em_sum(ret.tensor)).p, NULL, 1, &x, 1, EM_CREATE_GRAPH, results) == EM_OK);
  CHECK(em_tensor_to_double(em_select(results[0], 0, 0), &value) == EM_OK && value == 54);  // 2 * 3 x^2
  CHECK(em_backward(em_sum(results[0]), NULL, 0) == EM_OK);                                  // and once more: 2 * 6 x
  em_tensor *grad;
  CHECK(em_tensor_grad(x, &grad) == EM_OK && em_tensor_to_double(em_select(grad, 0, 0), &value) == EM_OK && value == 36);
  em_tensor_release(results[0]);
  CHECK(em_operator_set_derivative(op, NULL, NULL, NULL) == EM_OK && released == 0);  // the node still needs it
  em_value_clear(&ret);
  CHECK(em_scope_end(s) == EM_OK && released == 1);
  CHECK(em_operator_set_kernel(op, EM_DEVICE_CPU, NULL, NULL, NULL) == EM_OK && released == 2);
  em_value again = em_value_none();
  em_tensor *y;
  CHECK(em_tensor_from_number(em_scalar_int(1), EM_F32, &y) == EM_OK);
  args[0] = em_value_tensor(y);
  CHECK(em_call_boxed(op, args, &again) == EM_ERR_NOT_IMPLEMENTED);
  em_tensor_release(y);
}

// ---- files ----
static void files(void) {
  const char *names[] = {"layer.weight", "layer.bias"};
  em_scope *s = em_scope_begin();
  em_tensor *given[] = {em_t(em_randn(EM_INTS(3, 2))), em_ones_with(EM_INTS(4), EM_I64, -1, EM_DEVICE_NONE, -1)};
  em_tensor *to[] = {em_zeros(EM_INTS(2, 3)), em_zeros(EM_INTS(4))};
  for (int kind = 0; kind < 2; kind++) {
    char path[] = "/tmp/ember-test-api-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    em_weights *w;
    CHECK((kind ? em_save_safetensors : em_save_checkpoint)(path, names, given, 2) == EM_OK);
    CHECK(em_weights_load(path, &w) == EM_OK && em_weights_count(w) == 2 && em_weights_name(w, 2) == NULL);
    bool equal;
    CHECK(em_call_equal(em_weights_find(w, "layer.weight"), given[0], &equal) == EM_OK && equal);
    CHECK(em_tensor_dtype(em_weights_find(w, "layer.bias")) == EM_I64 && em_weights_find(w, "nothing") == NULL);
    CHECK(em_weights_copy_to(w, names, to, 2) == EM_OK);
    CHECK(em_call_equal(to[0], given[0], &equal) == EM_OK && equal);
    CHECK(em_weights_copy_to(w, names, to, 1) == EM_ERR_RUNTIME && strstr(em_error_message(), "Unexpected key"));
    const char *other[] = {"layer.weight", "else"};
    CHECK(em_weights_copy_to(w, other, to, 2) == EM_ERR_RUNTIME && strstr(em_error_message(), "Missing key"));
    em_tensor *wrong[] = {to[1], to[0]};
    CHECK(em_weights_copy_to(w, names, wrong, 2) == EM_ERR_RUNTIME && strstr(em_error_message(), "size mismatch"));
    em_weights_free(w);
    CHECK(truncate(path, 40) == 0 && em_weights_load(path, &w) != EM_OK && strstr(em_error_message(), path));
    unlink(path);
    CHECK(em_weights_load(path, &w) != EM_OK);
  }
  const char *twice[] = {"a", "a"};
  CHECK(em_save_checkpoint("/tmp/ember-never", twice, given, 2) == EM_ERR_RUNTIME);
  CHECK(em_save_safetensors("/nowhere/at/all", names, given, 2) != EM_OK);
  CHECK(em_scope_end(s) == EM_OK);
}

int main(void) {
  int64_t before = em_live_tensors();
  tensors();
  wrapped();
  scopes();
  gradients();
  optimizers();
  random_numbers();
  own_operators();
  files();
  CHECK(em_live_tensors() == before);
  em_alloc_stats stats;
  em_alloc_get_stats(&stats);
  CHECK(stats.requests > 0);
  em_alloc_empty_cache();
  puts("ok");
  return 0;
}
