// operator.c: what ember/operator.h asks beyond the registry.
#include "../dispatch/operator.h"

const char *em_operator_schema(const em_operator *op) { return op == NULL ? NULL : op->schema; }
int em_operator_arg_count(const em_operator *op) { return op == NULL ? 0 : op->nargs; }
int em_operator_return_count(const em_operator *op) { return op == NULL ? 0 : op->nrets; }

#define BIT(tag) (1u << EM_TAG_##tag)
#define NUMBER (BIT(BOOL) | BIT(INT) | BIT(DOUBLE) | BIT(COMPLEX) | BIT(SCALAR))
// The tags that an argument of each type may have.
static const uint32_t takes[] = {
    [EM_TYPE_TENSOR] = BIT(TENSOR), [EM_TYPE_TENSOR_LIST] = BIT(TENSORS), [EM_TYPE_OPT_TENSOR_LIST] = BIT(TENSORS),
    [EM_TYPE_SCALAR] = NUMBER, [EM_TYPE_SCALAR_LIST] = BIT(SCALARS), [EM_TYPE_INT] = BIT(INT) | BIT(BOOL) | BIT(SCALAR),
    [EM_TYPE_SYMINT] = BIT(INT) | BIT(BOOL) | BIT(SCALAR), [EM_TYPE_INT_LIST] = BIT(INTS), [EM_TYPE_DOUBLE] = NUMBER,
    [EM_TYPE_DOUBLE_LIST] = BIT(DOUBLES), [EM_TYPE_BOOL] = BIT(BOOL) | BIT(INT), [EM_TYPE_BOOL_LIST] = BIT(BOOLS),
    [EM_TYPE_DTYPE] = BIT(DTYPE) | BIT(INT), [EM_TYPE_LAYOUT] = BIT(LAYOUT) | BIT(INT), [EM_TYPE_DEVICE] = BIT(DEVICE),
    [EM_TYPE_MEMORY_FORMAT] = BIT(MEMORY_FORMAT) | BIT(INT), [EM_TYPE_GENERATOR] = BIT(GENERATOR),
    [EM_TYPE_STRING] = BIT(STRING), [EM_TYPE_DIMNAME] = 0};

// Does the value fit the argument? A C program's union can hold anything.
static bool fits(const em_arg *a, const em_value *v) {
  if (v->tag == EM_TAG_NONE) return (a->flags & EM_ARG_OPTIONAL) != 0;
  if (v->tag > EM_TAG_OPAQUE || (takes[a->type] & (1u << v->tag)) == 0) return false;
  switch (v->tag) {
    case EM_TAG_TENSOR: return v->tensor != NULL;
    case EM_TAG_GENERATOR: return v->generator != NULL;
    case EM_TAG_STRING: return v->string != NULL;
    case EM_TAG_TENSORS:
      for (int64_t i = 0; a->type == EM_TYPE_TENSOR_LIST && v->list.tensors != NULL && i < v->list.n; i++)
        if (v->list.tensors[i] == NULL) return false;
      break;
    case EM_TAG_INTS: case EM_TAG_DOUBLES: case EM_TAG_BOOLS: case EM_TAG_SCALARS: break;
    default: return true;
  }
  return v->list.n >= 0 && (v->list.p != NULL || v->list.n == 0);
}

em_status em_call_boxed(const em_operator *op, const em_value *args, em_value *rets) {
  if (op == NULL) return em_fail(EM_ERR_TYPE, "em_call_boxed(): the operator is NULL");
  if ((args == NULL && op->nargs > 0) || (rets == NULL && op->nrets > 0))
    return em_fail(EM_ERR_TYPE, "%s: the array of %s is NULL", op->full, args == NULL ? "arguments" : "results");
  for (int i = 0; i < op->nargs; i++)
    if (!fits(&op->args[i], &args[i])) {
      if (args[i].tag == EM_TAG_NONE && op->args[i].type == EM_TYPE_TENSOR) EM_PASS(em_priv_pending());
      return em_fail(EM_ERR_TYPE, "%s: the value given for argument '%s' (position %d) is not of its type", op->full,
                     op->args[i].name, i);
    }
  return em_priv_call_boxed(op, args, rets);
}

em_status em_operator_set_kernel(em_operator *op, int device_type, em_boxed_fn fn, void *context, void (*release)(void *)) {
  if (op == NULL) return em_fail(EM_ERR_TYPE, "em_operator_set_kernel(): the operator is NULL");
  if (device_type < 0 || device_type >= EM_DEVICE_TYPES)
    return em_fail(EM_ERR_VALUE, "em_operator_set_kernel(): no device type has the number %d", device_type);
  int key = em_device_key((em_device){(int8_t)device_type, -1});
  return em_operator_set_boxed(op, key, fn, context, release, op->full);
}
