// rnn_cells.c: single steps of recurrent networks, and pad_sequence.
#include <string.h>
#include "dispatch/autocast.h"
#include "dispatch/rnn_plan.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

static em_status check_cell(em_tensor *input, em_tensor *h, em_tensor *c, em_tensor *w_ih, em_tensor *w_hh, int64_t mode) {
  em_tensor *const all[] = {input, h, w_ih, w_hh};
  for (int i = 0; i < 4; i++)
    if (all[i]->ndim != 2)
      return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-%d, %d], but got %d)",
                     all[i]->ndim > 0 ? all[i]->ndim : 1, all[i]->ndim > 0 ? all[i]->ndim - 1 : 0, 1);
  if (input->sizes[1] != w_ih->sizes[1])
    return em_fail(EM_ERR_RUNTIME, "input has inconsistent input_size: got %lld expected %lld", (long long)input->sizes[1],
                   (long long)w_ih->sizes[1]);
  em_tensor *const states[] = {h, c};
  for (int i = 0; i < (c == NULL ? 1 : 2); i++) {
    if (states[i]->ndim != 2) return em_fail(EM_ERR_INDEX, "hidden%d must have 2 dimensions, got %d", i, states[i]->ndim);
    if (states[i]->sizes[0] != input->sizes[0])
      return em_fail(EM_ERR_RUNTIME, "Input batch size %lld doesn't match hidden%d batch size %lld", (long long)input->sizes[0], i,
                     (long long)states[i]->sizes[0]);
    if (states[i]->sizes[1] != w_hh->sizes[1])
      return em_fail(EM_ERR_RUNTIME, "hidden%d has inconsistent hidden_size: got %lld, expected %lld", i, (long long)states[i]->sizes[1],
                     (long long)w_hh->sizes[1]);
  }
  if (input->dtype != w_ih->dtype)
    return em_fail(EM_ERR_RUNTIME, "mat1 and mat2 must have the same dtype, but got %s and %s", em_dtype_scalar_name(input->dtype),
                   em_dtype_scalar_name(w_ih->dtype));
  (void)mode;
  return EM_OK;
}
static bool wants_grad(const em_tensor *t) {
  if (t == NULL) return false;
  const em_view_info *view = t->meta == NULL ? NULL : t->meta->view;
  return (t->flags & EM_T_REQUIRES_GRAD) || (view != NULL && view->differentiable && (view->base->flags & EM_T_REQUIRES_GRAD) != 0);
}
static em_status run_cell(int64_t mode, em_tensor *input, em_tensor *h, em_tensor *c, em_tensor *w_ih, em_tensor *w_hh, em_tensor *b_ih,
                          em_tensor *b_hh, em_tensor **hy, em_tensor **cy) {
  EM_PASS(check_cell(input, h, c, w_ih, w_hh, mode));
  OWN steps = NULL;
  OWN output = NULL;
  OWN reserve = NULL;
  EM_PASS(em_call_unsqueeze(input, 0, &steps));
  const em_ints none = {NULL, 0};
  if ((input->dtype != EM_F32 && input->dtype != EM_F64) || em_autocast_enabled())
    return em_call__rnn_layer_steps(steps, h, c, w_ih, w_hh, b_ih, b_hh, NULL, none, mode, false, &output, hy, cy);
  em_tensor *const all[] = {input, h, c, w_ih, w_hh, b_ih, b_hh};
  bool keep = false;
  if (!(em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd)))
    for (int i = 0; i < 7; i++) keep = keep || wants_grad(all[i]);
  return em_call__rnn_layer(steps, h, c, w_ih, w_hh, b_ih, b_hh, NULL, none, mode, false, keep, &output, hy, cy, &reserve);
}
em_status c_lstm_cell(em_tensor *input, em_tensors hx, em_tensor *w_ih, em_tensor *w_hh, em_tensor *b_ih, em_tensor *b_hh, em_tensor **out0,
                      em_tensor **out1) {
  if (hx.n != 2) return em_fail(EM_ERR_RUNTIME, "lstm_cell expects two hidden states");
  return run_cell(EM_RNN_LSTM, input, hx.p[0], hx.p[1], w_ih, w_hh, b_ih, b_hh, out0, out1);
}
#define CELL(name, mode)                                                                                                               \
  em_status c_##name##_cell(em_tensor *input, em_tensor *hx, em_tensor *w_ih, em_tensor *w_hh, em_tensor *b_ih, em_tensor *b_hh,       \
                            em_tensor **out) {                                                                                         \
    OWN none = NULL;                                                                                                                   \
    return run_cell(mode, input, hx, NULL, w_ih, w_hh, b_ih, b_hh, out, &none);                                                        \
  }
CELL(gru, EM_RNN_GRU)
CELL(rnn_tanh, EM_RNN_TANH)
CELL(rnn_relu, EM_RNN_RELU)

// --- pad_sequence

static em_status check_sequences(em_tensors l, const char *side, int64_t *longest) {
  if (l.n == 0) return em_fail(EM_ERR_RUNTIME, "received an empty list of sequences");
  if (strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
    return em_fail(EM_ERR_RUNTIME, "Expected padding_side to be one of left or right, but got %s.", side);
  *longest = 0;
  for (int64_t i = 0; i < l.n; i++) {
    if (l.p[i]->ndim == 0)
      return em_fail(EM_ERR_RUNTIME, "Dimension specified as 0 but tensor has no dimensions");
    if (l.p[i]->sizes[0] > *longest) *longest = l.p[i]->sizes[0];
  }
  return EM_OK;
}
em_status c_pad_sequence(em_tensors sequences, bool batch_first, double padding_value, const char *padding_side, em_tensor **out) {
  int64_t longest = 0, sizes[EM_MAX_DIMS];
  EM_PASS(check_sequences(sequences, padding_side, &longest));
  em_tensor *first = sequences.p[0];
  if (first->ndim + 1 > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "tensors have at most %d dimensions", EM_MAX_DIMS);
  sizes[0] = batch_first ? sequences.n : longest;
  sizes[1] = batch_first ? longest : sequences.n;
  for (int d = 1; d < first->ndim; d++) sizes[d + 1] = first->sizes[d];
  OWN result = NULL;
  EM_PASS(em_call_new_full(first, (em_ints){sizes, first->ndim + 1}, em_scalar_double(padding_value), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1,
                           &result));
  for (int64_t i = 0; i < sequences.n; i++) {
    OWN row = NULL;
    OWN part = NULL;
    const int64_t n = sequences.p[i]->sizes[0];
    EM_PASS(em_call_select_int(result, batch_first ? 0 : 1, i, &row));
    EM_PASS(em_call_narrow(row, 0, strcmp(padding_side, "left") == 0 ? longest - n : 0, n, &part));
    EM_PASS(em_call_copy_(part, sequences.p[i], false));
  }
  *out = result;
  result = NULL;
  return EM_OK;
}
