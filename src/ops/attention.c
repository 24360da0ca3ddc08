// attention.c: scaled dot product attention: its checks, the choice between the fused kernel and operators, and the latter.
#include "attention.h"
#include <math.h>
#include "../core/note.h"
#include "copy.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

// --- which backends may be taken; PyTorch keeps these for the process too

static _Atomic int enabled = EM_SDP_MATH | EM_SDP_FLASH | EM_SDP_EFFICIENT | EM_SDP_CUDNN | EM_SDP_OVERRIDEABLE;
int em_priv_sdp_enabled(void) { return enabled; }
void em_priv_sdp_enable(int which, bool on) {
  if (on) enabled |= which;
  else enabled &= ~which;
}

static bool wants_grad(const em_tensor *t) {
  if (t == NULL) return false;
  const em_view_info *view = t->meta == NULL ? NULL : t->meta->view;
  return (t->flags & EM_T_REQUIRES_GRAD) || (view != NULL && view->differentiable && (view->base->flags & EM_T_REQUIRES_GRAD) != 0);
}
static bool grad_mode(void) { return !(em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd)); }

static em_status validate(em_tensor *q, em_tensor *k, em_tensor *v, em_tensor *mask) {
  if (q->dtype != k->dtype || q->dtype != v->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected query, key, and value to have the same dtype, but got query.dtype: %s key.dtype: %s and "
                   "value.dtype: %s instead.",
                   em_dtype_type_name(q->dtype), em_dtype_type_name(k->dtype), em_dtype_type_name(v->dtype));
  if (q->device.type != k->device.type || q->device.type != v->device.type)
    return em_fail(EM_ERR_RUNTIME, "Expected query, key, and value to have the same device type");
  if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: %d key.dim: "
                   "%d and value.dim: %d instead.",
                   q->ndim, k->ndim, v->ndim);
  if (mask != NULL && mask->dtype != EM_BOOL && mask->dtype != q->dtype && mask->dtype != EM_F32)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: %s "
                   "and  query.dtype: %s instead.",
                   em_dtype_type_name(mask->dtype), em_dtype_type_name(q->dtype));
  if (mask != NULL && mask->ndim < 2)
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got -2)",
                   mask->ndim > 0 ? -mask->ndim : -1, mask->ndim > 0 ? mask->ndim - 1 : 0);
  return EM_OK;
}
static bool mask_fits(const em_tensor *mask, const em_tensor *q, const em_tensor *k) {
  if (mask == NULL) return true;
  if (mask->ndim != 2 && mask->ndim != 4) return false;
  const int64_t want[4] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
  for (int d = 0; d < mask->ndim; d++)
    if (mask->sizes[d] != 1 && mask->sizes[d] != want[4 - mask->ndim + d]) return false;
  return true;
}
// Why the fused kernel cannot be taken; NULL: it can.
static const char *why_no_flash(const em_tensor *q, const em_tensor *k, const em_tensor *v, const em_tensor *mask, double dropout_p,
                                bool gqa) {
  if (q->device.type != EM_DEVICE_CPU || !em_dtype_is_float(q->dtype)) return "not floating point on the CPU";
  if (dropout_p > 0) return "it has no dropout";
  if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) return "not 4 dims";
  if (q->sizes[0] != k->sizes[0] || q->sizes[0] != v->sizes[0]) return "batches that are broadcast";
  if (k->sizes[1] != v->sizes[1] || k->sizes[2] != v->sizes[2]) return "keys and values differ in size";
  if (gqa ? k->sizes[1] == 0 || q->sizes[1] % k->sizes[1] != 0 : q->sizes[1] != k->sizes[1]) return "heads that do not fit each other";
  if (q->sizes[3] != k->sizes[3] || q->sizes[3] != v->sizes[3]) return "head sizes differ";
  if (q->numel == 0 || k->numel == 0) return "nothing to attend to";
  if (q->strides[3] != 1 || k->strides[3] != 1 || v->strides[3] != 1) return "rows that are not dense";
  if (!mask_fits(mask, q, k)) return "a mask of another shape";
  return grad_mode() && wants_grad(mask) ? "the mask wants a gradient" : NULL;
}
em_status c_fused_sdp_choice(em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *attn_mask, double dropout_p, bool is_causal,
                             em_opt_double scale, bool enable_gqa, int64_t *out) {
  (void)is_causal;
  (void)scale;
  EM_PASS(validate(query, key, value, attn_mask));
  const int may = enabled;
  const char *why = may & EM_SDP_FLASH ? why_no_flash(query, key, value, attn_mask, dropout_p, enable_gqa) : "switched off";
  *out = why == NULL;
  if (why == NULL) {
    EM_NOTE("fused attention: scores live a block at a time (operators refused: they would write queries x keys scores)");
    return EM_OK;
  }
  if (may & EM_SDP_MATH) {
    EM_NOTE("attention of operators: products, softmax, product (the fused kernel refused: %s)", why);
    return EM_OK;
  }
  return em_fail(
      EM_ERR_RUNTIME, "%s",
      may & EM_SDP_FLASH
          ? "No available kernel.  Aborting execution."
          : "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off "
            "both the math kernel and the fused kernels.");
}

em_status c_scaled_dot_product_attention(em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *attn_mask, double dropout_p,
                                         bool is_causal, em_opt_double scale, bool enable_gqa, em_tensor **out) {
  int64_t choice;
  OWN rest = NULL;
  EM_PASS(c_fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, &choice));
  if (choice == 1)
    return em_call__scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask, scale, out, &rest);
  return em_call__scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, NULL, scale,
                                                    enable_gqa, out, &rest);
}

// --- of operators

em_status c_safe_softmax(em_tensor *self, int64_t dim, int dtype, em_tensor **out) {
  OWN weights = NULL;
  OWN hidden = NULL;
  OWN all = NULL;
  EM_PASS(em_call_softmax_int(self, dim, dtype, &weights));
  EM_PASS(em_call_eq_Scalar(self, em_scalar_double(-INFINITY), &hidden));
  EM_PASS(em_call_all_dim(hidden, dim, true, &all));
  return em_call_where_ScalarSelf(all, em_scalar_double(0), weights, out);
}
// Which keys each query may see: those up to its own place.
static em_status causal_mask(em_tensor *query, int64_t rows, int64_t cols, em_tensor **out) {
  OWN r = NULL;
  OWN column = NULL;
  OWN c = NULL;
  EM_PASS(em_call_arange(em_scalar_int(rows), EM_I64, -1, query->device, -1, &r));
  EM_PASS(em_call_arange(em_scalar_int(cols), EM_I64, -1, query->device, -1, &c));
  EM_PASS(em_call_unsqueeze(r, 1, &column));
  return em_call_ge_Tensor(column, c, out);
}
// True becomes 0, False -inf.
static em_status as_numbers(em_tensor *mask, int dtype, em_tensor **out) {
  OWN zeros = NULL;
  OWN hidden = NULL;
  EM_PASS(em_call_zeros_like(mask, dtype, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &zeros));
  EM_PASS(em_call_logical_not(mask, &hidden));
  return em_call_masked_fill_Scalar(zeros, hidden, em_scalar_double(-INFINITY), out);
}
static em_status mask_of(em_tensor *query, em_tensor *key, em_tensor *attn_mask, bool is_causal, em_tensor **out) {
  OWN causal = NULL;
  if (is_causal) {
    if (attn_mask != NULL)
      return em_fail(EM_ERR_RUNTIME, "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    EM_PASS(causal_mask(query, query->sizes[query->ndim - 2], key->sizes[key->ndim - 2], &causal));
    attn_mask = causal;
  }
  if (attn_mask != NULL && attn_mask->dtype == EM_BOOL) return as_numbers(attn_mask, query->dtype, out);
  *out = em_tensor_retain(attn_mask);
  return EM_OK;
}
// Heads of keys and values repeated for the queries' heads that share them.
static em_status repeat_heads(em_tensor *t, int64_t times, em_tensor **out) {
  if (times == 1) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  OWN apart = NULL;
  OWN wide = NULL;
  int64_t sizes[EM_MAX_DIMS];
  const int at = t->ndim - 2;  // the new dim
  EM_PASS(em_call_unsqueeze(t, at, &apart));
  for (int d = 0; d < apart->ndim; d++) sizes[d] = d == at ? times : apart->sizes[d];
  EM_PASS(em_call_expand(apart, (em_ints){sizes, apart->ndim}, false, &wide));
  for (int d = 0; d < t->ndim; d++) sizes[d] = d == t->ndim - 3 ? t->sizes[d] * times : t->sizes[d];
  return em_call_reshape(wide, (em_ints){sizes, t->ndim}, out);
}
static em_status share_heads(em_tensor *q, em_tensor *k, em_tensor *v, bool enable_gqa, em_tensor **key, em_tensor **value) {
  int64_t for_k = 1, for_v = 1;
  if (enable_gqa) {
    if (q->ndim < 3 || k->ndim < 3 || v->ndim < 3)
      return em_fail(EM_ERR_RUNTIME, "enable_gqa needs query, key and value of at least 3 dimensions");
    const int64_t heads = q->sizes[q->ndim - 3], kh = k->sizes[k->ndim - 3], vh = v->sizes[v->ndim - 3];
    if (kh == 0 || vh == 0 || heads % kh != 0 || heads % vh != 0)
      return em_fail(EM_ERR_RUNTIME, "Number of heads in key and value must divide the number of heads in ");
    for_k = heads / kh;
    for_v = heads / vh;
  }
  EM_PASS(repeat_heads(k, for_k, key));
  return repeat_heads(v, for_v, value);
}
// softmax(q k' * scale + mask), the scale split over both operands.
static em_status weights_of(em_tensor *q, em_tensor *k, em_tensor *mask, em_opt_double scale, em_tensor **out) {
  OWN turned = NULL;
  OWN left = NULL;
  OWN right = NULL;
  OWN scores = NULL;
  OWN masked = NULL;
  const int64_t columns = q->sizes[q->ndim - 1];
  const double by = scale.has ? scale.v : 1 / sqrt((double)columns), root = sqrt(fabs(by));
  EM_PASS(em_call_mul_Scalar(q, em_scalar_double(by < 0 ? -root : root), &left));
  EM_PASS(em_call_transpose_int(k, -2, -1, &turned));
  EM_PASS(em_call_mul_Scalar(turned, em_scalar_double(root), &right));
  EM_PASS(em_call_matmul(left, right, &scores));
  if (mask != NULL) EM_PASS(em_call_add_Tensor(scores, mask, em_scalar_int(1), &masked));
  return em_call__safe_softmax(mask != NULL ? masked : scores, -1, EM_DTYPE_NONE, out);
}
static em_status drop_weights(em_tensor *weights, em_tensor *value, double p, em_tensor *dropout_mask, em_tensor **out) {
  OWN kept = NULL;
  OWN scaled = NULL;
  if (dropout_mask == NULL) {
    EM_PASS(em_call_dropout(weights, p, true, &kept));
    return em_call_matmul(kept, value, out);
  }
  OWN hidden = NULL;
  EM_PASS(em_call_logical_not(dropout_mask, &hidden));
  EM_PASS(em_call_masked_fill_Scalar(weights, hidden, em_scalar_double(0), &kept));
  EM_PASS(em_call_mul_Scalar(value, em_scalar_double(1 / (1 - p)), &scaled));
  return em_call_matmul(kept, scaled, out);
}
em_status c_scaled_dot_product_attention_math(em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *attn_mask, double dropout_p,
                                              bool is_causal, em_tensor *dropout_mask, em_opt_double scale, bool enable_gqa,
                                              em_tensor **out0, em_tensor **out1) {
  EM_PASS(validate(query, key, value, attn_mask));
  const int dtype = query->dtype, compute = dtype == EM_F16 || dtype == EM_BF16 ? EM_F32 : dtype;  // halves are too coarse for the sums
  OWN q = NULL;
  OWN k = NULL;
  OWN v = NULL;
  OWN keys = NULL;
  OWN values = NULL;
  OWN mask = NULL;
  OWN weights = NULL;
  OWN result = NULL;
  EM_PASS(em_call_to_dtype(query, compute, false, false, EM_FORMAT_NONE, &q));
  EM_PASS(em_call_to_dtype(key, compute, false, false, EM_FORMAT_NONE, &k));
  EM_PASS(em_call_to_dtype(value, compute, false, false, EM_FORMAT_NONE, &v));
  EM_PASS(mask_of(query, key, attn_mask, is_causal, &mask));
  EM_PASS(share_heads(q, k, v, enable_gqa, &keys, &values));
  EM_PASS(weights_of(q, keys, mask, scale, &weights));
  if (dropout_p > 0) EM_PASS(drop_weights(weights, values, dropout_p, dropout_mask, &result));
  else EM_PASS(em_call_matmul(weights, values, &result));
  EM_PASS(em_call_to_dtype(weights, dtype, false, false, EM_FORMAT_NONE, out1));
  const em_status st = em_call_to_dtype(result, dtype, false, false, EM_FORMAT_NONE, out0);
  if (st != EM_OK) EM_CLEAR_TENSOR(out1);
  return st;
}

// --- the fused kernel's checks

static em_status check_operands(em_tensor *q, em_tensor *k, em_tensor *v, em_tensor *mask, double dropout_p) {
  if (dropout_p != 0) return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0");
  if (q->dtype != k->dtype || q->dtype != v->dtype || !em_dtype_is_float(q->dtype))
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Q/K/V should have the same data "
                                   "type, one of double, float, bfloat16, half");
  if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4)
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}");
  if (q->sizes[3] != k->sizes[3] || q->sizes[3] != v->sizes[3])
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Q/K/V should have the same head size");
  if (k->sizes[0] != q->sizes[0] || v->sizes[0] != q->sizes[0] || k->sizes[1] != v->sizes[1] || k->sizes[2] != v->sizes[2] ||
      (k->sizes[1] == 0 ? q->sizes[1] != 0 : q->sizes[1] % k->sizes[1] != 0))
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Q/K/V do not fit each other");
  if (mask == NULL) return EM_OK;
  if (mask->dtype != EM_BOOL && !em_dtype_is_float(mask->dtype))
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Attention mask must be bool or of a float dtype");
  if (!mask_fits(mask, q, k))
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention: Attention mask does not fit the scores");
  return EM_OK;
}
// A (batch, heads, length, ...) output that lies in memory as (batch, length, heads, ...).
static void plan_by_length(em_plan *p, int dtype, int ndim, const int64_t *sizes, em_device device) {
  em_plan_output_set(p, dtype, ndim, sizes, device);
  em_plan_output *o = &p->out[p->nout - 1];
  const int64_t inner = ndim == 4 ? sizes[3] : 1;
  o->strided = true;
  o->strides[3] = 1;
  o->strides[2] = inner * sizes[1];
  o->strides[1] = inner;
  o->strides[0] = inner * sizes[1] * sizes[2];
}
em_status check_flash_attention(em_tensor *query, em_tensor *key, em_tensor *value, double dropout_p, bool is_causal, em_tensor *attn_mask,
                                em_opt_double scale, em_plan *p) {
  (void)is_causal;
  (void)scale;
  EM_PASS(check_operands(query, key, value, attn_mask, dropout_p));
  em_plan_output_set(p, query->dtype, 4, query->sizes, query->device);
  p->out[0].strided = true;
  EM_PASS(em_priv_format_strides(query, EM_FORMAT_PRESERVE, p->out[0].strides));
  plan_by_length(p, query->dtype == EM_F64 ? EM_F64 : EM_F32, 3, query->sizes, query->device);
  return EM_OK;
}
em_status check_flash_attention_backward(em_tensor *grad_out, em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *out,
                                         em_tensor *logsumexp, double dropout_p, bool is_causal, em_tensor *attn_mask, em_opt_double scale,
                                         em_plan *p) {
  (void)is_causal;
  (void)scale;
  EM_PASS(check_operands(query, key, value, attn_mask, dropout_p));
  if (!em_tensor_same_sizes(grad_out, query) || !em_tensor_same_sizes(out, query) || grad_out->dtype != query->dtype ||
      out->dtype != query->dtype)
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention_backward: grad_out and out must be like query");
  if (logsumexp->ndim != 3 || !em_shape_equal(3, logsumexp->sizes, 3, query->sizes) ||
      logsumexp->dtype != (query->dtype == EM_F64 ? EM_F64 : EM_F32))
    return em_fail(EM_ERR_RUNTIME, "scaled_dot_product_attention_flash_attention_backward: logsumexp is not that of a forward call");
  plan_by_length(p, query->dtype, 4, query->sizes, query->device);
  plan_by_length(p, query->dtype, 4, key->sizes, query->device);
  plan_by_length(p, query->dtype, 4, value->sizes, query->device);
  return EM_OK;
}
