// test_arguments.c: every public function given NULL or nonsense says so and does not crash. The operators' own functions
// are called with nothing by tests/py/test_c_docs.py, which writes that program from the header.
#include <ember/ember.h>
#include <math.h>
#include <string.h>
#include "check.h"

#define REFUSED(call) CHECK((call) == EM_ERR_TYPE && strlen(em_error_message()) > 0)

static em_status hook(void *context, em_tensor *grad, em_tensor **out) {
  (void)context, (void)grad, (void)out;
  return EM_OK;
}
static em_status after(void *context, em_tensor *leaf) {
  (void)context, (void)leaf;
  return EM_OK;
}

static void tensors(void) {
  const em_device cpu = {EM_DEVICE_CPU, -1};
  em_tensor *t = NULL;
  double d;
  int64_t i;
  CHECK(em_tensor_new(2, NULL, EM_F32, cpu, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_new(-1, &(int64_t){1}, EM_F32, cpu, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_new(1000, &(int64_t){1}, EM_F32, cpu, &t) == EM_ERR_RUNTIME);
  CHECK(em_tensor_new(1, &(int64_t){1}, 99, cpu, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_new(1, &(int64_t){1}, -7, cpu, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_new(1, &(int64_t){1}, EM_F32, (em_device){99, 0}, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_new(1, &(int64_t){1}, EM_F32, (em_device){EM_DEVICE_CUDA, 0}, &t) != EM_OK);
  CHECK(em_tensor_new(1, &(int64_t){INT64_MAX}, EM_F64, cpu, &t) != EM_OK);
  CHECK(em_tensor_from_data(&d, EM_F64, 1, NULL, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_from_data(&d, EM_F64, -3, &(int64_t){1}, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_wrap_data(NULL, EM_F64, 1, &(int64_t){1}, NULL, NULL, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_from_number(em_scalar_none(), EM_F32, &t) == EM_ERR_VALUE);
  CHECK(em_tensor_from_number(em_scalar_int(1), 77, &t) == EM_ERR_VALUE);
  CHECK(t == NULL);
  CHECK(em_tensor_retain(NULL) == NULL && em_keep(NULL) == NULL);
  em_tensor_release(NULL);
  em_tensor_list_clear(NULL);
  CHECK(em_tensor_data(NULL) == NULL && !em_tensor_is_contiguous(NULL));
  REFUSED(em_tensor_read(NULL, EM_F32, &d, sizeof d));
  REFUSED(em_tensor_to_double(NULL, &d));
  REFUSED(em_tensor_to_int(NULL, &i));
  CHECK(em_dtype_itemsize(-1) == 0 && em_dtype_itemsize(1000) == 0 && em_dtype_text(-1) != NULL);
  CHECK(em_status_exception((em_status)1000) != NULL && em_status_exception((em_status)-1) != NULL);
}

static void gradients(void) {
  em_tensor *t = NULL;
  em_node *node;
  uint64_t id;
  REFUSED(em_backward(NULL, NULL, 0));
  REFUSED(em_grad(NULL, NULL, 1, NULL, 1, 0, &t));
  REFUSED(em_grad(&t, NULL, 1, &t, 1, 0, &t));
  REFUSED(em_tensor_set_requires_grad(NULL, true));
  REFUSED(em_tensor_grad(NULL, &t));
  REFUSED(em_tensor_set_grad(NULL, NULL));
  REFUSED(em_tensor_retain_grad(NULL));
  REFUSED(em_tensor_detach(NULL, &t));
  REFUSED(em_tensor_grad_fn(NULL, &node));
  REFUSED(em_hook_tensor(NULL, hook, NULL, NULL, &id));
  REFUSED(em_hook_accumulate(NULL, after, NULL, NULL, &id));
  CHECK(!em_tensor_requires_grad(NULL) && !em_tensor_is_leaf(NULL));
  CHECK(em_node_name(NULL) == NULL && em_node_next_count(NULL) == 0 && em_node_next(NULL, 0) == NULL);
  em_hook_remove_tensor(NULL, 1);
  em_hook_remove_accumulate(NULL, 1);
  em_scope *s = em_scope_begin();
  em_tensor *x = em_ones(EM_INTS(2)), *wide = em_ones(EM_INTS(3)), *whole = em_arange(em_scalar_int(2));
  CHECK(em_hook_tensor(x, hook, NULL, NULL, &id) == EM_ERR_RUNTIME);  // it needs no gradient
  CHECK_OK(em_tensor_set_requires_grad(x, true));
  REFUSED(em_hook_tensor(x, NULL, NULL, NULL, &id));
  REFUSED(em_hook_accumulate(x, NULL, NULL, NULL, &id));
  CHECK(em_tensor_set_grad(x, wide) == EM_ERR_RUNTIME && em_tensor_set_grad(x, whole) == EM_ERR_RUNTIME);
  CHECK(em_tensor_set_grad(x, x) == EM_ERR_RUNTIME);
  em_tensor *y = em_mul(x, x);
  CHECK(em_backward(y, NULL, 0) == EM_ERR_RUNTIME && em_backward(y, wide, 0) == EM_ERR_RUNTIME);
  CHECK(em_grad(&y, NULL, 0, &x, 1, 0, &t) == EM_ERR_VALUE && em_grad(&y, NULL, 1, &x, -1, 0, &t) == EM_ERR_VALUE);
  CHECK_OK(em_scope_end(s));
}

static void values(void) {
  em_operator *op, *add = em_operator_find("aten", "add", "Tensor");
  em_value ret = em_value_none(), other;
  CHECK(em_operator_find(NULL, "add", "") == NULL && em_operator_find("aten", NULL, "") == NULL);
  CHECK(em_operator_find("aten", "add", NULL) == NULL && em_operator_at(SIZE_MAX) == NULL);
  CHECK(em_operator_schema(NULL) == NULL && em_operator_arg_count(NULL) == 0 && em_operator_return_count(NULL) == 0);
  REFUSED(em_operator_define(NULL, &op));
  const char *bad[] = {"", "mine::", "mine::f", "mine::f(", "mine::f(Tensor", "mine::f(Tensor x)", "mine::f(Tensor x) ->",
                       "mine::f(Thing x) -> Tensor", "mine::f(int x=) -> Tensor", "::(Tensor x) -> Tensor",
                       "mine::f(int[999999999999] x) -> Tensor"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(em_operator_define(bad[i], &op) != EM_OK);
  REFUSED(em_operator_set_kernel(NULL, EM_DEVICE_CPU, NULL, NULL, NULL));
  REFUSED(em_operator_set_derivative(NULL, NULL, NULL, NULL));
  REFUSED(em_call_boxed(NULL, NULL, &ret));
  REFUSED(em_call_boxed(add, NULL, &ret));
  em_scope *s = em_scope_begin();
  em_tensor *x = em_ones(EM_INTS(2));
  em_value args[3] = {em_value_tensor(x), em_value_tensor(x), em_value_scalar(em_scalar_int(1))};
  REFUSED(em_call_boxed(add, args, NULL));
  CHECK_OK(em_call_boxed(add, args, &ret));
  em_value_clear(&ret);
  for (int i = 0; i < 3; i++) {
    em_value kept = args[i];
    args[i] = em_value_none();
    REFUSED(em_call_boxed(add, args, &ret));
    args[i] = (em_value){.tag = EM_TAG_TENSOR};
    REFUSED(em_call_boxed(add, args, &ret));
    args[i] = (em_value){.tag = 200};
    REFUSED(em_call_boxed(add, args, &ret));
    args[i] = (em_value){.tag = EM_TAG_STRING};
    REFUSED(em_call_boxed(add, args, &ret));
    args[i] = kept;
  }
  CHECK(strstr(em_error_message(), "'alpha'") != NULL);
  em_tensor *gap[2] = {x, NULL};
  em_value list[2] = {em_value_tensors((em_tensors){gap, 2}), em_value_int(0)};
  REFUSED(em_call_boxed(em_operator_find("aten", "cat", ""), list, &ret));
  list[0].list.n = -5;
  REFUSED(em_call_boxed(em_operator_find("aten", "cat", ""), list, &ret));
  CHECK(ret.tag == EM_TAG_NONE);
  em_value_clear(NULL);
  REFUSED(em_value_copy(NULL, &other));

  // the typed functions and the short forms
  em_tensor *out;
  REFUSED(em_call_add_Tensor(x, NULL, em_scalar_int(1), &out));
  CHECK(strstr(em_error_message(), "aten::add.Tensor") != NULL);
  REFUSED(em_call_cat((em_tensors){gap, 2}, 0, &out));
  REFUSED(em_call_cat((em_tensors){NULL, 2}, 0, &out));
  REFUSED(em_call_permute(x, EM_INTS_NONE, &out));
  CHECK(em_call_ones(EM_INTS(2), 99, -1, EM_DEVICE_NONE, -1, &out) != EM_OK);
  CHECK(em_call_ones(EM_INTS(2), EM_F32, -1, (em_device){55, 0}, -1, &out) != EM_OK);
  CHECK(em_call_to_dtype(x, 99, false, false, -1, &out) != EM_OK);
  CHECK(em_call_clone(x, 77, &out) != EM_OK);
  CHECK(em_add(NULL, x) == NULL);
  CHECK_OK(em_scope_end(s));  // NULL where a tensor is needed is no failure of its own: the first failure travels
}

static void others(void) {
  em_optimizer *o;
  em_weights *w;
  em_tensor *none = NULL;
  const char *name = NULL;
  REFUSED(em_optimizer_step(NULL));
  REFUSED(em_optimizer_zero_grad(NULL));
  REFUSED(em_optimizer_set_lr(NULL, 1));
  CHECK(isnan(em_optimizer_lr(NULL)));
  em_optimizer_free(NULL);
  CHECK(em_sgd_new(NULL, 1, em_sgd_defaults(1), &o) == EM_ERR_VALUE && em_adam_new(NULL, 3, em_adam_defaults(1), &o) == EM_ERR_VALUE);
  REFUSED(em_adam_new(&none, 1, em_adam_defaults(1), &o));
  REFUSED(em_generator_set_state(NULL, "", 0));
  REFUSED(em_generator_set_state(em_default_generator(), NULL, em_generator_state_size()));
  CHECK(em_generator_retain(NULL) == NULL && em_generator_clone(NULL) == NULL);
  em_generator_release(NULL);
  em_generator_seed(NULL, 1);
  em_generator_get_state(NULL, NULL);
  REFUSED(em_weights_load(NULL, &w));
  REFUSED(em_weights_copy_to(NULL, NULL, NULL, 0));
  REFUSED(em_save_checkpoint(NULL, NULL, NULL, 0));
  REFUSED(em_save_safetensors("/tmp/never", &name, &none, 1));
  CHECK(em_weights_count(NULL) == 0 && em_weights_name(NULL, 0) == NULL && em_weights_tensor(NULL, 0) == NULL);
  CHECK(em_weights_find(NULL, "a") == NULL);
  em_weights_free(NULL);
  em_alloc_get_stats(NULL);
  em_warn_set_handler(NULL);
  CHECK(em_scope_end(NULL) == EM_ERR_OOM && em_scope_check(EM_OK) == EM_OK);
  CHECK(em_scope_take(EM_OK, NULL) == NULL && em_scope_take_list(EM_OK, NULL).n == 0);
  CHECK(em_error_message() != NULL);
}

int main(void) {
  tensors();
  gradients();
  values();
  others();
  CHECK(em_live_tensors() == 0);
  CHECK_DONE();
}
