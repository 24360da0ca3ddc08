// test_dispatch.c: the operator table, schemas read at run time, kernels and fallbacks that come and go, allocation
// failures.
#include <string.h>
#include "check.h"
#include "core/alloc.h"
#include "gen_ops.h"

static em_device cpu(void) { return (em_device){EM_DEVICE_CPU, -1}; }

static bool same_default(const em_value *a, const em_value *b) {
  if (a->tag != b->tag) return false;
  switch (a->tag) {
    case EM_TAG_NONE: return true;
    case EM_TAG_DOUBLE: return a->d == b->d;
    case EM_TAG_SCALAR:
      return a->scalar.kind == b->scalar.kind && em_scalar_to_double(a->scalar) == em_scalar_to_double(b->scalar);
    case EM_TAG_STRING: return strcmp(a->string, b->string) == 0;
    case EM_TAG_INTS:
      return a->list.n == b->list.n && memcmp(a->list.p, b->list.p, sizeof(int64_t) * (size_t)a->list.n) == 0;
    case EM_TAG_BOOLS: return a->list.n == b->list.n && memcmp(a->list.p, b->list.p, (size_t)a->list.n) == 0;
    case EM_TAG_DOUBLES:
      return a->list.n == b->list.n && memcmp(a->list.p, b->list.p, sizeof(double) * (size_t)a->list.n) == 0;
    case EM_TAG_TENSORS: return a->list.n == b->list.n;
    default: return a->i == b->i;
  }
}
// Every row, read by the generator at build time and by schema.c now, gives the same tables.
static void test_schemas_agree(void) {
  CHECK(em_operator_count() > 50);
  for (size_t i = 0; i < em_operator_count(); i++) {
    em_operator *op = em_operator_at(i), *read = NULL;
    if (em_schema_parse(op->schema, &read) != EM_OK) {
      fprintf(stderr, "%s: %s\n", op->schema, em_error_message());
      check_failures++;
      continue;
    }
    bool same = strcmp(op->name, read->name) == 0 && strcmp(op->overload, read->overload) == 0 &&
                op->nargs == read->nargs && op->nrets == read->nrets && op->variant == read->variant &&
                strcmp(op->full, read->full) == 0;
    for (int k = 0; same && k < op->nargs; k++) {
      const em_arg *a = &op->args[k], *b = &read->args[k];
      same = strcmp(a->name, b->name) == 0 && a->type == b->type && a->flags == b->flags &&
             a->list_size == b->list_size && same_default(&a->dflt, &b->dflt);
      if (!same)
        fprintf(stderr, "argument '%s': type %d/%d flags %d/%d default tag %d/%d\n", a->name, a->type, b->type,
                a->flags, b->flags, a->dflt.tag, b->dflt.tag);
    }
    for (int k = 0; same && k < op->nrets; k++) same = op->ret_types[k] == read->ret_types[k];
    if (!same) fprintf(stderr, "the two readings differ: %s\n", op->schema);
    CHECK(same);
    em_schema_free(read);
  }
}
static void test_bad_schemas(void) {
  static const char *const bad[] = {"",
                                    "f",
                                    "f(",
                                    "f(Tensor x",
                                    "f(Tensor x) ->",
                                    "f(Tensr x) -> Tensor",
                                    "f(Tensor x, Tensor x) -> Tensor",
                                    "f(Tensor) -> Tensor",
                                    "f(int x=) -> Tensor",
                                    "f(str[] x) -> Tensor",
                                    "f(Tensor x) -> Tensor y z",
                                    "f(int[ x) -> int",
                                    "f(int x=[1) -> int",
                                    "f.(int x) -> int"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    em_operator *op = NULL;
    em_status st = em_schema_parse(bad[i], &op);
    if (st == EM_OK) fprintf(stderr, "accepted: '%s'\n", bad[i]);
    CHECK(st == EM_ERR_RUNTIME);
    CHECK(st == EM_OK || strstr(em_error_message(), "schema") != NULL);
    if (st == EM_OK) em_schema_free(op);
  }
}

static int calls;
static em_status count_and_go_on(const em_operator *op, uint64_t ks, void *context, const em_value *args,
                                 em_value *rets) {
  calls++;
  return em_redispatch_boxed(op, ks & EM_KEYS_BELOW((int)(intptr_t)context), args, rets);
}
static em_status ones_instead(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)op;
  (void)ks;
  (void)context;
  em_tensor *t;
  EM_PASS(em_call_ones_like(args[0].tensor, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t));
  rets[0] = em_value_tensor_steal(t);
  return EM_OK;
}
static void test_kernels_and_fallbacks(void) {
  int64_t size = 3;
  em_tensor *t, *c;
  em_scalar s;
  CHECK_OK(em_call_zeros((em_ints){&size, 1}, EM_F32, -1, cpu(), -1, &t));
  // a fallback at a layer key sees calls of typed callers, and costs nothing when its key is not included
  CHECK_OK(em_dispatch_set_fallback(EM_KEY_Profile, count_and_go_on, (void *)EM_KEY_Profile, NULL, "count"));
  CHECK_OK(em_call_clone(t, EM_FORMAT_NONE, &c));
  CHECK(calls == 0);
  em_tensor_release(c);
  em_priv_tls.include |= EM_KEYBIT(EM_KEY_Profile);
  CHECK_OK(em_call_clone(t, EM_FORMAT_NONE, &c));
  em_priv_tls.include &= ~EM_KEYBIT(EM_KEY_Profile);
  CHECK(calls == 1);
  em_tensor_release(c);
  CHECK_OK(em_dispatch_set_fallback(EM_KEY_Profile, NULL, NULL, NULL, NULL));
  CHECK((em_opr_clone.mask & EM_KEYBIT(EM_KEY_Profile)) == 0);
  // a boxed kernel for a built-in operator replaces the generated one, and removing it brings that back
  CHECK_OK(em_operator_set_boxed(&em_opr_clone, EM_KEY_CPU, ones_instead, NULL, NULL, "ones"));
  CHECK_OK(em_call_clone(t, EM_FORMAT_NONE, &c));
  CHECK(((float *)em_tensor_data(c))[0] == 1);
  em_tensor_release(c);
  CHECK_OK(em_operator_set_boxed(&em_opr_clone, EM_KEY_CPU, NULL, NULL, NULL, NULL));
  CHECK_OK(em_call_clone(t, EM_FORMAT_NONE, &c));
  CHECK(((float *)em_tensor_data(c))[0] == 0);
  em_tensor_release(c);
  // a new operator
  em_operator *op;
  CHECK_OK(em_operator_define("mine::ones(Tensor x, int n=2) -> Tensor", &op));
  CHECK(em_operator_find("mine", "ones", "") == op);
  CHECK(em_operator_define("mine::ones(Tensor x, int n=2) -> Tensor", &op) == EM_ERR_RUNTIME);
  op = em_operator_find("mine", "ones", "");
  em_value args[2] = {em_value_tensor(t), em_value_int(2)}, ret = em_value_none();
  CHECK(em_call_boxed(op, args, &ret) == EM_ERR_NOT_IMPLEMENTED);
  CHECK_OK(em_operator_set_boxed(op, EM_KEY_CPU, ones_instead, NULL, NULL, "mine"));
  CHECK_OK(em_call_boxed(op, args, &ret));
  CHECK(ret.tag == EM_TAG_TENSOR && ((float *)em_tensor_data(ret.tensor))[2] == 1);
  em_value_clear(&ret);
  (void)s;
  em_tensor_release(t);
}

static void test_every_allocation_may_fail(void) {
  int64_t live[EM_KIND_COUNT], size[2] = {40, 50};
  for (int k = 0; k < EM_KIND_COUNT; k++) live[k] = em_alloc_live(k);
  int failed = 0;
  for (int64_t n = 1; n < 50; n++) {
    em_tensor *t = NULL, *v = NULL, *c = NULL;
    em_priv_fault_countdown(n);
    em_status st = em_call_zeros((em_ints){size, 2}, EM_F32, -1, cpu(), -1, &t);
    if (st == EM_OK) st = em_call_transpose_int(t, 0, 1, &v);
    if (st == EM_OK) st = em_call_reshape(v, EM_INTS(-1), &c);
    em_priv_fault_countdown(0);
    CHECK(st == EM_OK || st == EM_ERR_OOM);
    failed += st != EM_OK;
    em_tensor_release(t);
    em_tensor_release(v);
    em_tensor_release(c);
    for (int k = 0; k < EM_KIND_COUNT; k++) CHECK(em_alloc_live(k) == live[k]);
  }
  CHECK(failed >= 4 && failed < 49);
}

int main(void) {
  test_schemas_agree();
  test_bad_schemas();
  test_kernels_and_fallbacks();
  test_every_allocation_may_fail();
  CHECK(em_alloc_live(EM_KIND_TENSOR) == 0);
  CHECK(em_alloc_live(EM_KIND_STORAGE) == 0);
  CHECK_DONE();
}
