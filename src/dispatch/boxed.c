// boxed.c: calls whose arguments are em_values.
#include "boxing.h"
#include <stdio.h>
#include <string.h>

uint64_t em_priv_list_keys(em_tensors l) {
  uint64_t keys = 0;
  for (int64_t i = 0; i < l.n; i++)
    if (l.p[i] != NULL) keys |= l.p[i]->keys;
  return keys == 0 ? EM_KEYBIT(EM_KEY_CPU) : keys;
}
uint64_t em_priv_boxed_keys(const em_operator *op, const em_value *args) {
  uint64_t keys = 0;
  em_device device = EM_DEVICE_NONE;
  for (int i = 0; i < op->nargs; i++) {
    const em_value *v = &args[i];
    if (v->tag == EM_TAG_TENSOR) keys |= v->tensor->keys;
    else if (v->tag == EM_TAG_TENSORS) keys |= em_priv_list_keys(em_unbox_tensors(v));
    else if (v->tag == EM_TAG_DEVICE) device = v->device;
  }
  if (em_device_given(device) && (keys == 0 || (op->flags & EM_OP_FACTORY))) keys = em_priv_device_keys(device);
  return keys == 0 ? EM_KEYBIT(EM_KEY_CPU) : keys;
}
em_status em_priv_no_kernel(const em_operator *op, uint64_t arg_keys) {
  static const char *const names[] = EM_KEY_NAMES;
  uint64_t left = (arg_keys | em_priv_tls.include) & EM_BACKEND_KEYS;
  const char *backend = left == 0 ? "(none)" : names[em_priv_top_key(left)];
  char have[256] = "";
  for (int k = EM_NUM_KEYS - 1; k >= 0; k--)
    if ((op->mask & EM_KEYBIT(k)) && !(k == EM_KEY_Meta && (op->flags & EM_OP_NO_META)))
      snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", have[0] ? ", " : "", names[k]);
  return em_fail(
      EM_ERR_NOT_IMPLEMENTED,
      "Could not run '%s' with arguments from the '%s' backend. '%s' is only available for these backends: [%s].",
      op->full, backend, op->full, have);
}
em_status em_priv_missing_argument(const em_operator *op) {
  EM_PASS(em_priv_pending());
  return em_fail_operator(em_fail(EM_ERR_TYPE, "%s: an argument that must be given is NULL", op->full), op->full);
}
em_status em_redispatch_boxed(const em_operator *op, uint64_t ks, const em_value *args, em_value *rets) {
  ks &= op->mask;
  if (EM_UNLIKELY(ks == 0)) return em_priv_no_kernel(op, em_priv_boxed_keys(op, args));
  int key = em_priv_top_key(ks);
  const em_host_kernel *host = em_priv_host_kernel(op, key);
  if (host != NULL) return host->boxed(op, ks, host->context, args, rets);
  return op->unbox(op->slots[key].fn, ks, args, rets);
}
em_status em_priv_call_boxed(const em_operator *op, const em_value *args, em_value *rets) {
  em_status st = em_redispatch_boxed(op, em_priv_keys(op, em_priv_boxed_keys(op, args)), args, rets);
  return EM_LIKELY(st == EM_OK) ? EM_OK : em_fail_operator(st, op->full);
}
em_status em_priv_run_boxed(const em_operator *op, uint64_t ks, const em_value *args, em_value *rets) {
  const em_host_kernel *host = em_priv_host_kernel(op, em_priv_top_key(ks));
  return host->boxed(op, ks, host->context, args, rets);
}
