// log.c: the lights of the dispatcher. Two boxed fallbacks that see every operator:
//   EMBER_LOG=dispatch  at the Tracer key, above all layers: for each call the layers that it will pass, the kernel at
//                       the bottom, and the bytes of its results; printed when the call is over, so its parts come first
//   EMBER_LOG=kernels   what kernels note about the way they chose: which library or loop, and why others were refused (core/note.h)
//   EMBER_LOG=ops       at the Capture key, below autograd: the operators as a backend sees them, gradients included
// Lines go to stderr, one a call, indented by depth (a composite's parts stand above it).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boxing.h"
#include "log.h"

static _Thread_local int depth __attribute__((tls_model("initial-exec")));

static int64_t result_bytes(const em_operator *op, const em_value *rets) {
  int64_t n = 0;
  for (int i = 0; i < op->nrets; i++) {
    if (rets[i].tag == EM_TAG_TENSOR) n += rets[i].tensor->numel * (int64_t)em_tensor_itemsize(rets[i].tensor);
    if (rets[i].tag == EM_TAG_TENSORS)
      for (int64_t k = 0; k < rets[i].list.n; k++)
        n += rets[i].list.tensors[k]->numel * (int64_t)em_tensor_itemsize(rets[i].list.tensors[k]);
  }
  return n;
}
static void put_value(char *buf, size_t size, const em_value *v) {
  size_t at = strlen(buf);
  char text[256];
  switch (v->tag) {
  case EM_TAG_TENSOR:
    snprintf(buf + at, size - at, "%s%s", em_dtype_name(v->tensor->dtype),
             em_shape_format(v->tensor->ndim, v->tensor->sizes, text, sizeof text));
    break;
  case EM_TAG_TENSORS: snprintf(buf + at, size - at, "[%lld tensors]", (long long)v->list.n); break;
  case EM_TAG_INTS:
    snprintf(buf + at, size - at, "%s", em_shape_format((int)v->list.n, v->list.ints, text, sizeof text));
    break;
  case EM_TAG_NONE: snprintf(buf + at, size - at, "None"); break;
  case EM_TAG_BOOL: snprintf(buf + at, size - at, v->i ? "True" : "False"); break;
  case EM_TAG_INT: snprintf(buf + at, size - at, "%lld", (long long)v->i); break;
  case EM_TAG_DOUBLE: snprintf(buf + at, size - at, "%g", v->d); break;
  case EM_TAG_SCALAR: snprintf(buf + at, size - at, "%g", em_scalar_to_double(v->scalar)); break;
  case EM_TAG_DTYPE: snprintf(buf + at, size - at, "%s", em_dtype_name((int)v->i)); break;
  case EM_TAG_STRING: snprintf(buf + at, size - at, "'%.40s'", v->string); break;
  default: snprintf(buf + at, size - at, "..."); break;
  }
}
static void put_call(char *buf, size_t size, const em_operator *op, const em_value *args) {
  buf[0] = 0;
  for (int i = 0; i < op->nargs; i++) {
    if (strlen(buf) + 8 >= size) return;
    if (i) strcat(buf, ", ");
    put_value(buf, size, &args[i]);
  }
}

// Tracer: above everything. Prints after the call, when the bytes are known; depth tells what ran inside.
static em_status trace_dispatch(const em_operator *op, uint64_t ks, void *context, const em_value *args,
                                em_value *rets) {
  static const char *const names[] = EM_KEY_NAMES;
  (void)context;
  uint64_t below = ks & EM_KEYS_BELOW(EM_KEY_Tracer), left = below & op->mask;
  char layers[512] = "";
  while (left != 0) {
    int k = em_priv_top_key(left);
    const em_slot *s = &op->slots[k];
    snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "%s%s(%s)", layers[0] ? " > " : "", names[k],
             s->name != NULL ? s->name : "boxed");
    if (EM_KEYBIT(k) & EM_BACKEND_KEYS) break;
    left &= EM_KEYS_BELOW(k);
  }
  depth++;
  em_status st = em_redispatch_boxed(op, below, args, rets);
  depth--;
  fprintf(stderr, "[dispatch] %*s%s  %s  %lld bytes%s\n", 2 * depth, "", op->full, layers,
          (long long)(st == EM_OK ? result_bytes(op, rets) : 0), st == EM_OK ? "" : "  FAILED");
  return st;
}
static em_status trace_ops(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)context;
  char call[1024];
  put_call(call, sizeof call, op, args);
  fprintf(stderr, "[ops] %s(%s)\n", op->full, call);
  return em_redispatch_boxed(op, ks & EM_KEYS_BELOW(EM_KEY_Capture), args, rets);
}

em_status em_log_enable(const char *what, bool on) {
  if (strcmp(what, "kernels") == 0) {
    em_note_to_stderr(on);
    return EM_OK;
  }
  int key = strcmp(what, "dispatch") == 0 ? EM_KEY_Tracer : strcmp(what, "ops") == 0 ? EM_KEY_Capture : -1;
  if (key < 0) return em_fail(EM_ERR_VALUE, "EMBER_LOG: unknown subject '%s' (known: dispatch, ops, kernels, libs)", what);
  EM_PASS(em_dispatch_set_fallback(key, on ? (key == EM_KEY_Tracer ? trace_dispatch : trace_ops) : NULL, NULL, NULL,
                                   on ? "log" : NULL));
  if (on) em_priv_global_include |= EM_KEYBIT(key);
  else em_priv_global_include &= ~EM_KEYBIT(key);
  return EM_OK;
}
em_status em_log_from_environment(void) {
  const char *text = getenv("EMBER_LOG");
  if (text == NULL) return EM_OK;
  char copy[256], *save = NULL;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *w = strtok_r(copy, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
    if (strcmp(w, "libs") == 0) continue;  // read where libraries are opened
    if (strcmp(w, "kernels") == 0 || strcmp(w, "dispatch") == 0 || strcmp(w, "ops") == 0) EM_PASS(em_log_enable(w, true));
  }
  return EM_OK;
}
