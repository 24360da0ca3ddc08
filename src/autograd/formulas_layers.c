// formulas_layers.c: derivatives of layers that are one kernel: recurrent layers and attention. Their gradient is a kernel too. When that
// gradient is to be differentiated (create_graph), the layer is computed once more from operators that record, and the graph of that
// computation gives gradients that have one of their own.
#include "engine.h"
#include "formulas.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

#define MOST 8
typedef struct again {
  em_tensor *in[MOST], *out[MOST];  // owned: aliases of the layer's operands, so that the walk back ends at them; its results
  int64_t n_in;
} again;
static void again_free(again *a) {
  for (int i = 0; i < MOST; i++) {
    em_tensor_release(a->in[i]);
    em_tensor_release(a->out[i]);
  }
}
static em_status again_start(again *a, em_tensor *const *operands, int64_t n) {
  a->n_in = n;
  for (int64_t i = 0; i < n; i++)
    if (operands[i] != NULL) EM_PASS(em_call_alias(operands[i], &a->in[i]));
  return EM_OK;
}
// Gradients of the operands that are wanted, from those of the results.
static em_status again_grads(const again *a, em_tensors grads, em_bools wanted, em_tensor **result) {
  em_tensor *roots[MOST], *root_grads[MOST], *inputs[MOST], *got[MOST] = {NULL};
  int64_t n = 0, m = 0;
  for (int64_t j = 0; j < grads.n; j++)
    if (grads.p[j] != NULL && a->out[j] != NULL && em_tensor_requires_grad(a->out[j])) {
      roots[n] = a->out[j];
      root_grads[n++] = grads.p[j];
    }
  for (int64_t i = 0; i < a->n_in; i++)
    if (wanted.p[i] && a->in[i] != NULL && em_tensor_requires_grad(a->in[i])) inputs[m++] = a->in[i];
  if (n == 0 || m == 0) return EM_OK;
  const em_backward_options how = {.keep_graph = true, .create_graph = true, .allow_unused = true};
  EM_PASS(em_engine_run(roots, root_grads, n, inputs, m, how, got));
  for (int64_t i = 0, k = 0; i < a->n_in; i++)
    if (wanted.p[i] && a->in[i] != NULL && em_tensor_requires_grad(a->in[i])) result[i] = got[k++];
  return EM_OK;
}

em_status formula_rnn_layer(em_tensors grads, em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih, em_tensor *w_hh,
                            em_tensor *b_ih, em_tensor *b_hh, em_tensor *w_hr, em_tensor *output, em_tensor *reserve, em_ints batch_sizes,
                            int64_t mode, bool reverse, em_bools mask, em_tensor **g_input, em_tensor **g_hx, em_tensor **g_cx,
                            em_tensor **g_w_ih, em_tensor **g_w_hh, em_tensor **g_b_ih, em_tensor **g_b_hh, em_tensor **g_w_hr) {
  em_tensor **const to[] = {g_input, g_hx, g_cx, g_w_ih, g_w_hh, g_b_ih, g_b_hh, g_w_hr};
  em_tensor *got[MOST] = {NULL};
  em_status st = EM_OK;
  again a = {.n_in = 0};
  if (em_grad_enabled()) {
    EM_TRY(again_start(&a, (em_tensor *[]){input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr}, MOST));
    EM_TRY(em_call__rnn_layer_steps(a.in[0], a.in[1], a.in[2], a.in[3], a.in[4], a.in[5], a.in[6], a.in[7], batch_sizes, mode, reverse,
                                    &a.out[0], &a.out[1], &a.out[2]));
    EM_TRY(again_grads(&a, grads, mask, got));
  } else {
    EM_TRY(em_call__rnn_layer_backward(grads.p[0], grads.p[1], cx == NULL ? NULL : grads.p[2], input, hx, w_ih, w_hh, w_hr, output, reserve,
                                       batch_sizes, mode, reverse, mask, &got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6],
                                       &got[7]));
  }
  for (int i = 0; i < MOST; i++)
    if (mask.p[i]) {
      *to[i] = got[i];
      got[i] = NULL;
    }
fail:
  for (int i = 0; i < MOST; i++) em_tensor_release(got[i]);
  again_free(&a);
  return st;
}

// The rows of a padded tensor that batch_sizes says were running. Lengths: how many steps had more sequences than this one's number.
em_status formula_pack_rows(em_tensor *grad, em_tensor *batch_sizes, bool batch_first, em_tensor **out) {
  OWN order = NULL;
  OWN column = NULL;
  OWN running = NULL;
  OWN lengths = NULL;
  OWN counts = NULL;
  EM_PASS(em_call_arange(em_scalar_int(grad->sizes[batch_first ? 0 : 1]), EM_I64, -1, batch_sizes->device, -1, &order));
  EM_PASS(em_call_unsqueeze(batch_sizes, 1, &column));
  EM_PASS(em_call_gt_Tensor(column, order, &running));
  EM_PASS(em_call_sum_dim_IntList(running, EM_INTS(0), false, EM_I64, &lengths));
  return em_call__pack_padded_sequence(grad, lengths, batch_first, out, &counts);
}

// A causal mask and an explicit one, as one explicit mask.
static em_status joined_mask(em_tensor *query, em_tensor *key, em_tensor *mask, em_tensor **out) {
  OWN r = NULL;
  OWN column = NULL;
  OWN c = NULL;
  OWN seen = NULL;
  OWN hidden = NULL;
  EM_PASS(em_call_arange(em_scalar_int(query->sizes[2]), EM_I64, -1, query->device, -1, &r));
  EM_PASS(em_call_arange(em_scalar_int(key->sizes[2]), EM_I64, -1, query->device, -1, &c));
  EM_PASS(em_call_unsqueeze(r, 1, &column));
  EM_PASS(em_call_ge_Tensor(column, c, &seen));
  if (mask->dtype == EM_BOOL) return em_call_logical_and(mask, seen, out);
  EM_PASS(em_call_logical_not(seen, &hidden));
  OWN wide = NULL;
  EM_PASS(em_call_add_Tensor(mask, hidden, em_scalar_int(0), &wide));  // mask, broadcast
  return em_call_masked_fill_Scalar(wide, hidden, em_scalar_double(-__builtin_inf()), out);
}
em_status formula_attention(em_tensor *grad, em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *output, em_tensor *logsumexp,
                            double dropout_p, bool is_causal, em_tensor *attn_mask, em_opt_double scale, em_bools mask, em_tensor **g_query,
                            em_tensor **g_key, em_tensor **g_value) {
  if (!em_grad_enabled())
    return em_call__scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, output, logsumexp, dropout_p, is_causal,
                                                                        attn_mask, scale, g_query, g_key, g_value);
  OWN joined = NULL;
  if (is_causal && attn_mask != NULL) {
    EM_PASS(joined_mask(query, key, attn_mask, &joined));
    attn_mask = joined;
    is_causal = false;
  }
  em_tensor *got[MOST] = {NULL};
  again a = {.n_in = 0};
  em_status st = again_start(&a, (em_tensor *[]){query, key, value}, 3);
  if (st == EM_OK)
    st = em_call__scaled_dot_product_attention_math(a.in[0], a.in[1], a.in[2], attn_mask, dropout_p, is_causal, NULL, scale,
                                                    query->sizes[1] != key->sizes[1], &a.out[0], &a.out[1]);
  if (st == EM_OK) st = again_grads(&a, (em_tensors){&grad, 1}, mask, got);
  again_free(&a);
  *g_query = got[0];
  *g_key = got[1];
  *g_value = got[2];
  return st;
}
