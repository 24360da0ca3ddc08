// operator.c: what ember/operator.h asks beyond the registry.
#include "../dispatch/operator.h"

const char *em_operator_schema(const em_operator *op) { return op->schema; }
int em_operator_arg_count(const em_operator *op) { return op->nargs; }
int em_operator_return_count(const em_operator *op) { return op->nrets; }

em_status em_operator_set_kernel(em_operator *op, int device_type, em_boxed_fn fn, void *context, void (*release)(void *)) {
  if (device_type < 0 || device_type >= EM_DEVICE_TYPES)
    return em_fail(EM_ERR_VALUE, "em_operator_set_kernel(): no device type has the number %d", device_type);
  int key = em_device_key((em_device){(int8_t)device_type, -1});
  return em_operator_set_boxed(op, key, fn, context, release, op->full);
}
