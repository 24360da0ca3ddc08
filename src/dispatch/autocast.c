// autocast.c: mixed precision as a layer. One boxed function, registered at the Autocast key for the operators of
// PyTorch's CPU lists, casts their arguments and calls below. It knows nothing of the operators but their list;
// autograd, which lies below, records the casts like any other operator. While nobody uses autocast no operator has
// this key in its mask.
#include "autocast.h"
#include <string.h>
#include "gen_ops.h"

enum { LOWER = 1, FLOAT32, WIDEST };
static const struct { const char *name; int policy;
} lists[] = {
    {"mm", LOWER},         {"bmm", LOWER},
    {"addmm", LOWER},      {"baddbmm", LOWER},
    {"matmul", LOWER},     {"linear", LOWER},
    {"mv", LOWER},         {"addmv", LOWER},
    {"conv1d", LOWER},     {"conv2d", LOWER},
    {"conv3d", LOWER},     {"conv_tbc", LOWER},
    {"conv_transpose1d", LOWER}, {"conv_transpose2d", LOWER}, {"conv_transpose3d", LOWER},
    {"dot", LOWER},        {"mse_loss", FLOAT32},
    {"nll_loss", FLOAT32}, {"nll_loss2d", FLOAT32},
    {"l1_loss", FLOAT32},  {"binary_cross_entropy", FLOAT32},
    {"prod", FLOAT32},     {"view_as_complex", FLOAT32},
    {"cat", WIDEST},       {"stack", WIDEST},
};

static bool castable(const em_tensor *t) {
  return t != NULL && t->device.type == EM_DEVICE_CPU &&
         (t->dtype == EM_F32 || t->dtype == EM_BF16 || t->dtype == EM_F16);
}
static int target_of(int policy, const em_operator *op, const em_value *args) {
  if (policy == LOWER) return em_autocast_dtype();
  if (policy == FLOAT32) return EM_F32;
  int widest = em_autocast_dtype();  // WIDEST: float32 if one is among them
  for (int i = 0; i < op->nargs; i++) {
    if (args[i].tag == EM_TAG_TENSOR && castable(args[i].tensor) && args[i].tensor->dtype == EM_F32) widest = EM_F32;
    for (int64_t k = 0; args[i].tag == EM_TAG_TENSORS && k < args[i].list.n; k++)
      if (castable(args[i].list.tensors[k]) && args[i].list.tensors[k]->dtype == EM_F32) widest = EM_F32;
  }
  return widest;
}
static em_status cast(em_tensor *t, int dtype, em_tensor **out) {
  if (castable(t) && t->dtype != dtype)
    return em_call__to_copy(t, dtype, -1, EM_DEVICE_NONE, -1, false, EM_FORMAT_NONE, out);
  *out = em_tensor_retain(t);
  return EM_OK;
}
static em_status cast_value(const em_value *v, int dtype, em_value *out) {
  *out = *v;
  out->owned = 0;
  if (v->tag == EM_TAG_TENSOR) {
    em_tensor *t;
    EM_PASS(cast(v->tensor, dtype, &t));
    *out = em_value_tensor_steal(t);
  } else if (v->tag == EM_TAG_TENSORS) {
    em_tensor_list l;
    EM_PASS(em_tensor_list_new(v->list.n, &l));
    for (int64_t i = 0; i < l.n; i++) {
      em_status st = cast(v->list.tensors[i], dtype, &l.p[i]);
      if (st != EM_OK) {
        em_tensor_list_clear(&l);
        return st;
      }
    }
    *out = em_value_tensor_list_steal(l);
  }
  return EM_OK;
}

static em_status autocast(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)ks;
  int dtype = target_of((int)(intptr_t)context, op, args);
  em_value cast_args[64] = {{.tag = EM_TAG_NONE}};
  em_status st = EM_OK;
  int n = 0;
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autocast));  // the parts of a composite are not cast again
  for (; n < op->nargs; n++) EM_TRY(cast_value(&args[n], dtype, &cast_args[n]));
  EM_TRY(em_call_boxed(op, cast_args, rets));
fail:
  em_guard_restore(guard);
  for (int i = 0; i < n; i++) em_value_clear(&cast_args[i]);
  return st;
}

static em_status install(void) {
  static bool installed;
  if (installed) return EM_OK;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    for (em_operator *op = em_operator_find_first("aten", lists[i].name); op != NULL; op = op->next_overload)
      if (op->variant == EM_FUNCTIONAL)
        EM_PASS(
            em_operator_set_boxed(op, EM_KEY_Autocast, autocast, (void *)(intptr_t)lists[i].policy, NULL, "autocast"));
  installed = true;
  return EM_OK;
}
em_status em_autocast_set(bool enabled, int dtype) {
  if (dtype >= 0 && dtype != EM_BF16 && dtype != EM_F16)
    return em_fail(
        EM_ERR_RUNTIME,
        "In CPU autocast, but the target dtype is not supported: CPU Autocast only supports dtype of torch.bfloat16, "
        "torch.float16 currently, got %s",
        em_dtype_name(dtype));
  EM_PASS(install());
  if (dtype >= 0) em_priv_tls.autocast_dtype = dtype + 1;  // 0: never set
  if (enabled) em_priv_tls.include |= EM_KEYBIT(EM_KEY_Autocast);
  else em_priv_tls.include &= ~EM_KEYBIT(EM_KEY_Autocast);
  return EM_OK;
}
bool em_autocast_enabled(void) { return (em_priv_tls.include & EM_KEYBIT(EM_KEY_Autocast)) != 0; }
int em_autocast_dtype(void) { return em_priv_tls.autocast_dtype == 0 ? EM_BF16 : em_priv_tls.autocast_dtype - 1; }
