// rnn.c: recurrent networks. Layers, directions, batch_first, dropout and projections are put together here; the work of one layer in one
// direction is _rnn_layer (dispatch/rnn_plan.h, backend/cpu/rnn.c).
#include "dispatch/autocast.h"
#include "dispatch/rnn_plan.h"
#include "gen_ops.h"

static void drop(em_tensor **t) { em_tensor_release(*t); }
#define OWN __attribute__((cleanup(drop))) em_tensor *

// --- one layer: checks

static em_status check_same(em_tensor *input, em_tensor *t, const char *what) {
  if (t == NULL) return EM_OK;
  if (t->dtype != input->dtype)
    return em_fail(EM_ERR_RUNTIME, "Input and %s tensors are not the same dtype, found input tensor with %s and %s tensor with %s", what,
                   em_dtype_scalar_name(input->dtype), what, em_dtype_scalar_name(t->dtype));
  if (t->device.type != input->device.type)
    return em_fail(EM_ERR_RUNTIME, "Input and %s tensors are not at the same device", what);
  return EM_OK;
}
static em_status check_sizes(em_tensor *t, int ndim, int64_t a, int64_t b, const char *what) {
  if (t->ndim == ndim && t->sizes[0] == a && (ndim == 1 || t->sizes[1] == b)) return EM_OK;
  const int64_t want[2] = {a, b};
  char got[256], wanted[256];
  return em_fail(EM_ERR_RUNTIME, "Expected %s of size %s, got %s", what, em_shape_format(ndim, want, wanted, sizeof wanted),
                 em_shape_format(t->ndim, t->sizes, got, sizeof got));
}
static em_status check_batch_sizes(em_ints batch_sizes, int64_t rows, int64_t batch) {
  int64_t sum = 0, last = batch;
  for (int64_t t = 0; t < batch_sizes.n; t++) {
    const int64_t n = batch_sizes.p[t];
    if (n < 1 || n > last || (t == 0 && n != batch))
      return em_fail(EM_ERR_RUNTIME, "batch_sizes must begin with the batch size (%lld) and may not grow, got %lld at step %lld",
                     (long long)batch, (long long)n, (long long)t);
    last = n;
    sum += n;  // no overflow: more rows than memory holds were refused before
    if (sum > rows) break;
  }
  if (sum == rows) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "batch_sizes must sum to the rows of the packed input (%lld)", (long long)rows);
}
static em_status check_product(em_tensor *a, int64_t rows, em_tensor *w) {
  if (a->sizes[a->ndim - 1] == w->sizes[1]) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)rows,
                 (long long)a->sizes[a->ndim - 1], (long long)w->sizes[1], (long long)w->sizes[0]);
}
static em_status check_biases(em_tensor *input, em_tensor *b_ih, em_tensor *b_hh, int64_t n) {
  EM_PASS(check_same(input, b_ih, "parameter"));
  EM_PASS(check_same(input, b_hh, "parameter"));
  if (b_ih != NULL) EM_PASS(check_sizes(b_ih, 1, n, 0, "bias_ih"));
  return b_hh == NULL ? EM_OK : check_sizes(b_hh, 1, n, 0, "bias_hh");
}
// Everything but which dtypes: the kernel and the walk by steps have this in common.
static em_status check_layer(em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih, em_tensor *w_hh, em_tensor *b_ih,
                             em_tensor *b_hh, em_tensor *w_hr, em_ints batch_sizes, int64_t mode) {
  if (mode < EM_RNN_RELU || mode > EM_RNN_GRU) return em_fail(EM_ERR_RUNTIME, "Unknown mode of a recurrent layer: %lld", (long long)mode);
  if (input->ndim != (batch_sizes.n > 0 ? 2 : 3))
    return em_fail(EM_ERR_RUNTIME, "input must have %d dimensions, got %d", batch_sizes.n > 0 ? 2 : 3, input->ndim);
  if (input->ndim == 3 && input->sizes[0] == 0) return em_fail(EM_ERR_RUNTIME, "Expected sequence length to be larger than 0 in RNN");
  if (hx->ndim != 2 || w_ih->ndim != 2 || w_hh->ndim != 2)
    return em_fail(EM_ERR_RUNTIME, "hidden states and weights must have 2 dimensions, got %d, %d and %d", hx->ndim, w_ih->ndim, w_hh->ndim);
  EM_PASS(check_same(input, hx, "hidden"));
  EM_PASS(check_same(input, cx, "hidden"));
  EM_PASS(check_same(input, w_ih, "parameter"));
  EM_PASS(check_same(input, w_hh, "parameter"));
  EM_PASS(check_same(input, w_hr, "parameter"));
  const int64_t gates = em_rnn_gates(mode), rows = input->ndim == 3 ? input->sizes[0] * input->sizes[1] : input->sizes[0];
  const int64_t hidden = w_hh->sizes[0] / gates, batch = hx->sizes[0];
  if (w_hh->sizes[0] % gates != 0)
    return em_fail(EM_ERR_RUNTIME, "weight_hh has %lld rows, which are not %lld gates", (long long)w_hh->sizes[0], (long long)gates);
  EM_PASS(check_product(input, rows, w_ih));
  EM_PASS(check_product(hx, batch, w_hh));
  EM_PASS(check_sizes(w_ih, 2, w_hh->sizes[0], w_ih->sizes[1], "weight_ih"));
  EM_PASS(check_biases(input, b_ih, b_hh, w_hh->sizes[0]));
  if (w_hr != NULL && mode != EM_RNN_LSTM) return em_fail(EM_ERR_RUNTIME, "proj_size argument is only supported for LSTM, not RNN or GRU");
  if (w_hr != NULL) EM_PASS(check_sizes(w_hr, 2, hx->sizes[1], hidden, "weight_hr"));
  else EM_PASS(check_sizes(hx, 2, batch, hidden, "hx"));
  if (cx != NULL) EM_PASS(check_sizes(cx, 2, batch, hidden, "cx"));
  if (batch_sizes.n > 0) return check_batch_sizes(batch_sizes, rows, batch);
  if (input->sizes[1] == batch) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Expected hidden batch size %lld, got %lld", (long long)input->sizes[1], (long long)batch);
}
static em_status check_cell_state(em_tensor *cx, int64_t mode) {
  if ((cx != NULL) == (mode == EM_RNN_LSTM)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, cx == NULL ? "lstm expects two hidden states" : "only an LSTM has a cell state");
}
static em_status check_fused(em_tensor *input, const em_rnn_shape *s) {
  if (input->dtype != EM_F32 && input->dtype != EM_F64)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"rnn_layer\" not implemented for '%s'", em_dtype_scalar_name(input->dtype));
  const double columns = 6.0 * (double)s->hidden + (double)s->input + 2.0 * (double)s->out + 64;
  if (((double)s->rows + (double)s->batch + 128) * columns > 1e17) return em_fail_memory((size_t)1 << 60);
  return EM_OK;
}
em_status check_rnn_layer(em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih, em_tensor *w_hh,
                          em_tensor *b_ih, em_tensor *b_hh, em_tensor *w_hr, em_ints batch_sizes, int64_t mode,
                          bool reverse, bool keep, em_plan *p) {
  (void)reverse;
  em_rnn_shape s;
  em_rnn_forward_work w;
  EM_PASS(check_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode));
  EM_PASS(check_cell_state(cx, mode));
  em_rnn_measure(input, hx, w_hh, w_hr, batch_sizes, mode, &s);
  EM_PASS(check_fused(input, &s));
  int64_t sizes[3];
  for (int d = 0; d < input->ndim; d++) sizes[d] = input->sizes[d];
  sizes[input->ndim - 1] = s.out;
  em_plan_output_set(p, input->dtype, input->ndim, sizes, input->device);
  em_plan_output_set(p, input->dtype, 2, hx->sizes, input->device);
  if (cx != NULL) em_plan_output_set(p, input->dtype, 2, cx->sizes, input->device);
  else em_plan_output_set(p, input->dtype, 1, (const int64_t[]){0}, input->device);
  em_plan_output_set(p, input->dtype, 2, (const int64_t[]){keep ? s.rows : 0, keep ? s.keep : 0}, input->device);
  p->workspace = em_rnn_forward_room(&s, keep, !em_tensor_is_contiguous(input), em_tensor_itemsize(input), NULL, &w);
  return EM_OK;
}
em_status check_rnn_layer_backward(em_tensor *grad_output, em_tensor *grad_hy, em_tensor *grad_cy, em_tensor *input, em_tensor *hx,
                                   em_tensor *w_ih, em_tensor *w_hh, em_tensor *w_hr, em_tensor *output, em_tensor *reserve,
                                   em_ints batch_sizes, int64_t mode, bool reverse, em_bools output_mask, em_plan *p) {
  (void)reverse;
  em_rnn_shape s;
  em_rnn_backward_work w;
  EM_PASS(check_layer(input, hx, grad_cy, w_ih, w_hh, NULL, NULL, w_hr, batch_sizes, mode));
  if (grad_cy != NULL) EM_PASS(check_cell_state(grad_cy, mode));
  em_rnn_measure(input, hx, w_hh, w_hr, batch_sizes, mode, &s);
  EM_PASS(check_fused(input, &s));
  EM_PASS(check_same(input, output, "output"));
  EM_PASS(check_same(input, reserve, "reserve"));
  if (!em_tensor_is_contiguous(output) || output->numel != s.rows * s.out || !em_tensor_is_contiguous(reserve) ||
      reserve->numel != s.rows * s.keep)
    return em_fail(EM_ERR_RUNTIME, "_rnn_layer_backward needs output and reserve of a forward call that kept them (keep=True)");
  if (grad_output != NULL && (!em_tensor_same_sizes(grad_output, output) || grad_output->dtype != input->dtype))
    return em_fail(EM_ERR_RUNTIME, "grad_output must have the size and dtype of the output");
  if (grad_hy != NULL && (!em_tensor_same_sizes(grad_hy, hx) || grad_hy->dtype != input->dtype))
    return em_fail(EM_ERR_RUNTIME, "grad_hy must have the size and dtype of hx");
  em_tensor *const like[3] = {input, w_ih, w_hh};
  const bool lstm = mode == EM_RNN_LSTM;
  const int64_t cell[2] = {lstm ? s.batch : 0, s.hidden}, bias[1] = {w_hh->sizes[0]}, nothing[1] = {0};
  for (int i = 0; i < 8; i++) {
    const bool wanted = output_mask.p[i] != 0;
    if (i == 1) em_plan_output_set(p, input->dtype, 2, hx->sizes, input->device);
    else if (i == 2 && lstm) em_plan_output_set(p, input->dtype, 2, cell, input->device);
    else if (!wanted || i == 2 || (i == 7 && w_hr == NULL)) em_plan_output_set(p, input->dtype, 1, nothing, input->device);
    else if (i == 0) em_plan_output_set(p, input->dtype, like[0]->ndim, like[0]->sizes, input->device);
    else if (i == 3) em_plan_output_set(p, input->dtype, 2, like[1]->sizes, input->device);
    else if (i == 4) em_plan_output_set(p, input->dtype, 2, like[2]->sizes, input->device);
    else if (i == 7) em_plan_output_set(p, input->dtype, 2, w_hr->sizes, input->device);
    else em_plan_output_set(p, input->dtype, 1, bias, input->device);
  }
  p->workspace = em_rnn_backward_room(&s, !em_tensor_is_contiguous(input), em_tensor_itemsize(input), NULL, &w);
  return EM_OK;
}

// --- one layer, a step at a time

static em_status rows_of(em_tensor *t, int64_t start, int64_t n, em_tensor **out) {
  if (start == 0 && t->sizes[0] == n) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  return em_call_narrow(t, 0, start, n, out);
}
static em_status add(em_tensor *a, em_tensor *b, em_tensor **out) { return em_call_add_Tensor(a, b, em_scalar_int(1), out); }
static em_status columns(em_tensor *t, int64_t block, int64_t hidden, em_tensor **out) {
  return em_call_narrow(t, t->ndim - 1, block * hidden, hidden, out);
}
static void replace(em_tensor **t, em_tensor **by) {
  em_tensor_release(*t);
  *t = *by;
  *by = NULL;
}

// gi: what the inputs give to the gates, h: the hidden state (replaced).
static em_status step_simple(em_tensor *gi, em_tensor *gh, int64_t mode, em_tensor **h) {
  OWN sum = NULL;
  em_tensor *next;
  EM_PASS(add(gi, gh, &sum));
  EM_PASS(mode == EM_RNN_RELU ? em_call_relu(sum, &next) : em_call_tanh(sum, &next));
  replace(h, &next);
  return EM_OK;
}
static em_status step_lstm(em_tensor *gi, em_tensor *gh, em_tensor *w_hr, int64_t hidden, em_tensor **h, em_tensor **c) {
  OWN sum = NULL;
  OWN a = NULL;
  OWN i = NULL;
  OWN b = NULL;
  OWN f = NULL;
  OWN d = NULL;
  OWN g = NULL;
  OWN e = NULL;
  OWN o = NULL;
  OWN kept = NULL;
  OWN fresh = NULL;
  OWN cell = NULL;
  OWN tc = NULL;
  OWN next = NULL;
  EM_PASS(add(gi, gh, &sum));
  EM_PASS(columns(sum, 0, hidden, &a));
  EM_PASS(em_call_sigmoid(a, &i));
  EM_PASS(columns(sum, 1, hidden, &b));
  EM_PASS(em_call_sigmoid(b, &f));
  EM_PASS(columns(sum, 2, hidden, &d));
  EM_PASS(em_call_tanh(d, &g));
  EM_PASS(columns(sum, 3, hidden, &e));
  EM_PASS(em_call_sigmoid(e, &o));
  EM_PASS(em_call_mul_Tensor(f, *c, &kept));
  EM_PASS(em_call_mul_Tensor(i, g, &fresh));
  EM_PASS(add(kept, fresh, &cell));
  EM_PASS(em_call_tanh(cell, &tc));
  EM_PASS(em_call_mul_Tensor(o, tc, &next));
  if (w_hr != NULL) {
    em_tensor *projected;
    EM_PASS(em_call_linear(next, w_hr, NULL, &projected));
    replace(&next, &projected);
  }
  replace(h, &next);
  replace(c, &cell);
  return EM_OK;
}
static em_status step_gru(em_tensor *gi, em_tensor *gh, int64_t hidden, em_tensor **h) {
  em_tensor *x[6] = {0}, *gate[2] = {0}, *scaled = NULL, *sum = NULL, *n = NULL, *less = NULL, *part = NULL, *next = NULL;
  em_status st = EM_OK;
  for (int k = 0; k < 3; k++) {
    EM_TRY(columns(gi, k, hidden, &x[k]));
    EM_TRY(columns(gh, k, hidden, &x[3 + k]));
  }
  for (int k = 0; k < 2; k++) {
    EM_TRY(add(x[k], x[3 + k], &sum));
    EM_TRY(em_call_sigmoid(sum, &gate[k]));
    EM_CLEAR_TENSOR(&sum);
  }
  EM_TRY(em_call_mul_Tensor(gate[0], x[5], &scaled));
  EM_TRY(add(x[2], scaled, &sum));
  EM_TRY(em_call_tanh(sum, &n));
  EM_TRY(em_call_sub_Tensor(*h, n, em_scalar_int(1), &less));
  EM_TRY(em_call_mul_Tensor(less, gate[1], &part));
  EM_TRY(add(part, n, &next));
  replace(h, &next);
fail:
  for (int k = 0; k < 6; k++) em_tensor_release(x[k]);
  em_tensor_release(gate[0]);
  em_tensor_release(gate[1]);
  em_tensor_release(scaled);
  em_tensor_release(sum);
  em_tensor_release(n);
  em_tensor_release(less);
  em_tensor_release(part);
  return st;
}

typedef struct stepper {
  em_tensor *hx, *cx, *w_hh, *b_hh, *w_hr;
  int64_t mode, hidden;
  em_tensor *h, *c, *gates;                    // owned
  em_tensor **outs, **done_h, **done_c;        // owned: one a step; states of sequences that ended
  int64_t steps, ended;
} stepper;

static em_status take_step(stepper *s, int64_t t, int64_t first, int64_t n) {
  OWN gi = NULL;
  OWN gh = NULL;
  EM_PASS(rows_of(s->gates, first, n, &gi));
  EM_PASS(em_call_linear(s->h, s->w_hh, s->b_hh, &gh));
  if (s->mode == EM_RNN_LSTM) EM_PASS(step_lstm(gi, gh, s->w_hr, s->hidden, &s->h, &s->c));
  else if (s->mode == EM_RNN_GRU) EM_PASS(step_gru(gi, gh, s->hidden, &s->h));
  else EM_PASS(step_simple(gi, gh, s->mode, &s->h));
  s->outs[t] = em_tensor_retain(s->h);
  return EM_OK;
}
// The state for n sequences: those that end give theirs up, those that begin get their first one.
static em_status fit_state(em_tensor **state, em_tensor *start, em_tensor **done, int64_t n) {
  em_tensor *next = NULL;
  const int64_t had = (*state)->sizes[0];
  if (n < had) {
    EM_PASS(em_call_narrow(*state, 0, n, had - n, done));
    EM_PASS(em_call_narrow(*state, 0, 0, n, &next));
  } else if (n > had) {
    OWN more = NULL;
    EM_PASS(em_call_narrow(start, 0, had, n - had, &more));
    EM_PASS(em_call_cat((em_tensors){(em_tensor *[]){*state, more}, 2}, 0, &next));
  } else {
    return EM_OK;
  }
  replace(state, &next);
  return EM_OK;
}
static em_status walk_steps(stepper *s, em_ints sizes, int64_t batch, int64_t rows, bool reverse) {
  int64_t first = reverse ? rows : 0;
  for (int64_t k = 0; k < s->steps; k++) {
    const int64_t t = reverse ? s->steps - 1 - k : k, n = sizes.n > 0 ? sizes.p[t] : batch;
    if (reverse) first -= n;
    if (k == 0) {
      EM_PASS(rows_of(s->hx, 0, n, &s->h));
      if (s->cx != NULL) EM_PASS(rows_of(s->cx, 0, n, &s->c));
    }
    const bool ends = s->h->sizes[0] > n;
    EM_PASS(fit_state(&s->h, s->hx, &s->done_h[s->ended], n));
    if (s->cx != NULL) EM_PASS(fit_state(&s->c, s->cx, &s->done_c[s->ended], n));
    s->ended += ends;
    EM_PASS(take_step(s, t, first, n));
    if (!reverse) first += n;
  }
  return EM_OK;
}
static em_status last_state(em_tensor *state, em_tensor **done, int64_t ended, em_tensor **out) {
  if (ended == 0) {
    *out = em_tensor_retain(state);
    return EM_OK;
  }
  em_tensor **all = em_alloc((size_t)(ended + 1) * sizeof *all);
  if (all == NULL) return EM_NOMEM((size_t)(ended + 1) * sizeof *all);
  all[0] = state;
  for (int64_t i = 0; i < ended; i++) all[i + 1] = done[ended - 1 - i];
  em_status st = em_call_cat((em_tensors){all, ended + 1}, 0, out);
  em_free(all, (size_t)(ended + 1) * sizeof *all);
  return st;
}

em_status c_rnn_layer_steps(em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih, em_tensor *w_hh,
                            em_tensor *b_ih, em_tensor *b_hh, em_tensor *w_hr, em_ints batch_sizes, int64_t mode,
                            bool reverse, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  em_rnn_shape m;
  EM_PASS(check_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode));
  EM_PASS(check_cell_state(cx, mode));
  em_rnn_measure(input, hx, w_hh, w_hr, batch_sizes, mode, &m);
  stepper s = {.hx = hx, .cx = cx, .w_hh = w_hh, .b_hh = b_hh, .w_hr = w_hr, .mode = mode, .hidden = m.hidden, .steps = m.steps};
  em_status st = EM_OK;
  em_tensor *flat = NULL, *joined = NULL, *output = NULL, *hy = NULL;
  const size_t bytes = (size_t)m.steps * 3 * sizeof(em_tensor *);
  s.outs = em_alloc_zeroed(bytes);
  if (s.outs == NULL) return EM_NOMEM(bytes);
  s.done_h = s.outs + m.steps;
  s.done_c = s.done_h + m.steps;
  EM_TRY(input->ndim == 2 ? rows_of(input, 0, m.rows, &flat) : em_call_reshape(input, EM_INTS(m.rows, m.input), &flat));
  EM_TRY(em_call_linear(flat, w_ih, b_ih, &s.gates));
  EM_TRY(walk_steps(&s, batch_sizes, m.batch, m.rows, reverse));
  if (input->ndim == 2) EM_TRY(em_call_cat((em_tensors){s.outs, m.steps}, 0, &output));
  else EM_TRY(em_call_stack((em_tensors){s.outs, m.steps}, 0, &output));
  EM_TRY(last_state(s.h, s.done_h, s.ended, &hy));
  if (cx != NULL) EM_TRY(last_state(s.c, s.done_c, s.ended, out2));
  else EM_TRY(em_call_new_empty(input, EM_INTS(0), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out2));
  *out0 = output;
  *out1 = hy;
  output = hy = NULL;
fail:
  for (int64_t i = 0; i < 3 * m.steps; i++) em_tensor_release(s.outs[i]);
  em_free(s.outs, bytes);
  em_tensor_release(s.h);
  em_tensor_release(s.c);
  em_tensor_release(s.gates);
  em_tensor_release(flat);
  em_tensor_release(joined);
  em_tensor_release(output);
  em_tensor_release(hy);
  return st;
}

// --- networks

static bool wants_grad(const em_tensor *t) {
  if (t == NULL) return false;
  if (t->flags & EM_T_REQUIRES_GRAD) return true;
  const em_view_info *view = t->meta == NULL ? NULL : t->meta->view;
  return view != NULL && view->differentiable && (view->base->flags & EM_T_REQUIRES_GRAD) != 0;
}

typedef struct network {
  int64_t mode, layers, directions, batch;
  bool biases, projects, train;
  double dropout;
  em_tensors params;
  em_ints batch_sizes;
  em_tensor *hx, *cx;   // all layers' first states
  em_tensor **hy, **cy; // owned: of each layer and direction
} network;
// The layers' batch_sizes: an empty list where the sequences are not packed.
static em_ints steps_of(const network *n) { return n->batch_sizes.n < 0 ? (em_ints){NULL, 0} : n->batch_sizes; }

// Parameters of one layer and direction: w_ih, w_hh, b_ih, b_hh, w_hr, as far as there are.
static void parameters_of(const network *n, int64_t index, em_tensor **w) {
  const int64_t each = 2 + (n->biases ? 2 : 0) + (n->projects ? 1 : 0);
  em_tensor *const *p = n->params.p + index * each;
  w[0] = p[0];
  w[1] = p[1];
  w[2] = n->biases ? p[2] : NULL;
  w[3] = n->biases ? p[3] : NULL;
  w[4] = n->projects ? p[each - 1] : NULL;
}
// In an autocast region products are computed in its dtype: step by step, where each product is cast by itself. An LSTM without projection
// is cast as a whole, as PyTorch's kernel for it is.
static em_status run_autocast(const network *n, em_tensor *x, em_tensor *h, em_tensor *c, em_tensor *const *w,
                              bool reverse, em_tensor **out, em_tensor **hy, em_tensor **cy) {
  em_tensor *const given[8] = {x, h, c, w[0], w[1], w[2], w[3], w[4]};
  em_tensor *t[8] = {NULL};
  em_status st = EM_OK;
  const int dtype = n->mode == EM_RNN_LSTM && !n->projects ? em_autocast_dtype() : w[0]->dtype;
  for (int i = 0; i < 8; i++)
    if (given[i] != NULL) EM_TRY(em_call_to_dtype(given[i], dtype, false, false, EM_FORMAT_NONE, &t[i]));
  EM_TRY(em_call__rnn_layer_steps(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], steps_of(n), n->mode, reverse, out, hy, cy));
fail:
  for (int i = 0; i < 8; i++) em_tensor_release(t[i]);
  return st;
}
static em_status run_layer(const network *n, em_tensor *x, em_tensor *h, em_tensor *c, em_tensor *const *w, bool reverse, em_tensor **out,
                           em_tensor **hy, em_tensor **cy) {
  if (em_autocast_enabled() && w[0]->dtype == EM_F32) return run_autocast(n, x, h, c, w, reverse, out, hy, cy);
  if (x->dtype != EM_F32 && x->dtype != EM_F64)
    return em_call__rnn_layer_steps(x, h, c, w[0], w[1], w[2], w[3], w[4], steps_of(n), n->mode, reverse, out, hy, cy);
  em_tensor *const all[] = {x, h, c, w[0], w[1], w[2], w[3], w[4]};
  bool keep = false;
  if (!(em_priv_tls.exclude & EM_KEYBIT(EM_KEY_Autograd)))
    for (int i = 0; i < 8; i++) keep = keep || wants_grad(all[i]);
  OWN reserve = NULL;
  return em_call__rnn_layer(x, h, c, w[0], w[1], w[2], w[3], w[4], steps_of(n), n->mode, reverse, keep, out, hy, cy, &reserve);
}
// One layer in all its directions; its output takes the input's place.
static em_status layer_pass(const network *n, int64_t layer, em_tensor **x) {
  em_tensor *outs[2] = {NULL, NULL}, *next = NULL;
  em_status st = EM_OK;
  for (int64_t d = 0; d < n->directions; d++) {
    const int64_t index = layer * n->directions + d;
    em_tensor *w[5], *h = NULL, *c = NULL;
    parameters_of(n, index, w);
    st = em_call_select_int(n->hx, 0, index, &h);
    if (st == EM_OK && n->cx != NULL) st = em_call_select_int(n->cx, 0, index, &c);
    if (st == EM_OK) st = run_layer(n, *x, h, c, w, d == 1, &outs[d], &n->hy[index], &n->cy[index]);
    em_tensor_release(h);
    em_tensor_release(c);
    EM_TRY(st);
  }
  if (n->directions == 1) {
    replace(x, &outs[0]);
  } else {
    EM_TRY(em_call_cat((em_tensors){outs, 2}, outs[0]->ndim - 1, &next));
    replace(x, &next);
  }
  if (n->dropout != 0 && n->train && layer < n->layers - 1) {
    EM_TRY(em_call_dropout(*x, n->dropout, true, &next));
    replace(x, &next);
  }
fail:
  em_tensor_release(outs[0]);
  em_tensor_release(outs[1]);
  return st;
}
static em_status check_state(const network *n, em_tensor *input, em_tensor *t) {
  if (t->ndim != 3) return em_fail(EM_ERR_RUNTIME, "hidden states must have 3 dimensions, got %d", t->ndim);
  if (t->sizes[0] != n->layers * n->directions)
    return em_fail(EM_ERR_RUNTIME, "Expected %s hidden states in stacked_rnn", t->sizes[0] < n->layers * n->directions ? "more" : "fewer");
  const int64_t batch = n->batch_sizes.n > 0 ? n->batch_sizes.p[0] : input->sizes[1];
  if (t->sizes[1] == batch) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Expected hidden batch size %lld, got %lld", (long long)batch, (long long)t->sizes[1]);
}
static em_status check_network(network *n, em_tensor *input, int64_t num_layers, bool bidirectional) {
  if (num_layers < 1) return em_fail(EM_ERR_RUNTIME, "num_layers must be greater than zero, got %lld", (long long)num_layers);
  if (input->ndim != (n->batch_sizes.n >= 0 ? 2 : 3))
    return em_fail(EM_ERR_INDEX, "Dimension out of range (expected to be in range of [-%d, %d], but got %d)",
                   input->ndim > 0 ? input->ndim : 1, input->ndim > 0 ? input->ndim - 1 : 0, 2);
  n->layers = num_layers;
  n->directions = bidirectional ? 2 : 1;
  n->projects = n->cx != NULL && n->cx->ndim == 3 && n->hx->ndim == 3 && n->cx->sizes[2] != n->hx->sizes[2];
  const int64_t each = 2 + (n->biases ? 2 : 0) + (n->projects ? 1 : 0);
  if (n->params.n % each != 0) return em_fail(EM_ERR_RUNTIME, "got an incorrect number of RNN parameters");
  if (num_layers > n->params.n || n->params.n < n->layers * n->directions * each)
    return em_fail(EM_ERR_RUNTIME, "Expected more weights in stacked_rnn");
  if (n->params.n > n->layers * n->directions * each) return em_fail(EM_ERR_RUNTIME, "got an incorrect number of RNN parameters");
  EM_PASS(check_state(n, input, n->hx));
  if (n->cx != NULL) EM_PASS(check_state(n, input, n->cx));
  if (n->batch_sizes.n < 0 && input->sizes[0] == 0) return em_fail(EM_ERR_RUNTIME, "Expected sequence length to be larger than 0 in RNN");
  return EM_OK;
}
// All layers. out[0]: output, out[1]: hy, out[2]: cy (LSTM).
static em_status run_network(network *n, em_tensor *input, int64_t num_layers, bool bidirectional, bool batch_first, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *result[3] = {NULL, NULL, NULL};
  if (batch_first && input->ndim == 3) EM_PASS(em_call_transpose_int(input, 0, 1, &x));
  else x = em_tensor_retain(input);
  size_t bytes = 0;
  EM_TRY(check_network(n, x, num_layers, bidirectional));
  const int64_t count = n->layers * n->directions;
  bytes = (size_t)count * 2 * sizeof(em_tensor *);
  n->hy = em_alloc_zeroed(bytes);
  if (n->hy == NULL) {
    st = EM_NOMEM(bytes);
    goto fail;
  }
  n->cy = n->hy + count;
  for (int64_t layer = 0; layer < n->layers; layer++) EM_TRY(layer_pass(n, layer, &x));
  if (batch_first) EM_TRY(em_call_transpose_int(x, 0, 1, &result[0]));
  else result[0] = em_tensor_retain(x);
  if (count == 1) {
    EM_TRY(em_call_unsqueeze(n->hy[0], 0, &result[1]));
    if (n->cx != NULL) EM_TRY(em_call_unsqueeze(n->cy[0], 0, &result[2]));
  } else {
    EM_TRY(em_call_stack((em_tensors){n->hy, count}, 0, &result[1]));
    if (n->cx != NULL) EM_TRY(em_call_stack((em_tensors){n->cy, count}, 0, &result[2]));
  }
  for (int i = 0; i < (n->cx != NULL ? 3 : 2); i++) {
    out[i] = result[i];
    result[i] = NULL;
  }
fail:
  if (n->hy != NULL) {
    for (int64_t i = 0; i < 2 * n->layers * n->directions; i++) em_tensor_release(n->hy[i]);
    em_free(n->hy, bytes);
  }
  em_tensor_release(x);
  for (int i = 0; i < 3; i++) em_tensor_release(result[i]);
  return st;
}

em_status c_lstm_input(em_tensor *input, em_tensors hx, em_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                       bool bidirectional, bool batch_first, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  if (hx.n != 2) return em_fail(EM_ERR_RUNTIME, "lstm expects two hidden states");
  network n = {.mode = EM_RNN_LSTM, .biases = has_biases, .train = train, .dropout = dropout, .params = params, .batch_sizes = EM_INTS_NONE,
               .hx = hx.p[0], .cx = hx.p[1]};
  em_tensor *out[3] = {NULL};
  EM_PASS(run_network(&n, input, num_layers, bidirectional, batch_first, out));
  *out0 = out[0];
  *out1 = out[1];
  *out2 = out[2];
  return EM_OK;
}
static em_status plain_input(int64_t mode, em_tensor *input, em_tensor *hx, em_tensors params, bool has_biases, int64_t num_layers,
                             double dropout, bool train, bool bidirectional, bool batch_first, em_tensor **out0, em_tensor **out1) {
  network n = {.mode = mode,
               .biases = has_biases,
               .train = train,
               .dropout = dropout,
               .params = params,
               .batch_sizes = EM_INTS_NONE,
               .hx = hx};
  em_tensor *out[3] = {NULL};
  EM_PASS(run_network(&n, input, num_layers, bidirectional, batch_first, out));
  *out0 = out[0];
  *out1 = out[1];
  return EM_OK;
}
// batch_sizes as numbers: they shape everything.
static em_status run_packed(network *n, em_tensor *data, em_tensor *batch_sizes, int64_t num_layers, bool bidirectional, em_tensor **out) {
  if (batch_sizes->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type Long but found %s", em_dtype_scalar_name(batch_sizes->dtype));
  if (batch_sizes->ndim != 1 || batch_sizes->numel == 0)
    return em_fail(EM_ERR_RUNTIME, "batch_sizes must be a vector of at least one step, got %d dimensions", batch_sizes->ndim);
  const size_t bytes = (size_t)batch_sizes->numel * sizeof(int64_t);
  int64_t *sizes = em_alloc(bytes);
  if (sizes == NULL) return EM_NOMEM(bytes);
  em_status st = EM_OK;
  for (int64_t t = 0; t < batch_sizes->numel && st == EM_OK; t++) {
    OWN one = NULL;
    em_scalar value;
    st = em_call_select_int(batch_sizes, 0, t, &one);
    if (st == EM_OK) st = em_tensor_item(one, &value);
    if (st == EM_OK) sizes[t] = em_scalar_to_int(value);
  }
  if (st == EM_OK && data->ndim != 2) st = em_fail(EM_ERR_RUNTIME, "packed input must have 2 dimensions, got %d", data->ndim);
  if (st == EM_OK) st = check_batch_sizes((em_ints){sizes, batch_sizes->numel}, data->sizes[0], sizes[0]);
  n->batch_sizes = (em_ints){sizes, batch_sizes->numel};
  if (st == EM_OK) st = run_network(n, data, num_layers, bidirectional, false, out);
  em_free(sizes, bytes);
  return st;
}
em_status c_lstm_data(em_tensor *data, em_tensor *batch_sizes, em_tensors hx, em_tensors params, bool has_biases, int64_t num_layers,
                      double dropout, bool train, bool bidirectional, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  if (hx.n != 2) return em_fail(EM_ERR_RUNTIME, "lstm expects two hidden states");
  network n = {.mode = EM_RNN_LSTM,
               .biases = has_biases,
               .train = train,
               .dropout = dropout,
               .params = params,
               .hx = hx.p[0],
               .cx = hx.p[1]};
  em_tensor *out[3] = {NULL};
  EM_PASS(run_packed(&n, data, batch_sizes, num_layers, bidirectional, out));
  *out0 = out[0];
  *out1 = out[1];
  *out2 = out[2];
  return EM_OK;
}
static em_status plain_data(int64_t mode, em_tensor *data, em_tensor *batch_sizes, em_tensor *hx, em_tensors params, bool has_biases,
                            int64_t num_layers, double dropout, bool train, bool bidirectional, em_tensor **out0, em_tensor **out1) {
  network n = {.mode = mode, .biases = has_biases, .train = train, .dropout = dropout, .params = params, .hx = hx};
  em_tensor *out[3] = {NULL};
  EM_PASS(run_packed(&n, data, batch_sizes, num_layers, bidirectional, out));
  *out0 = out[0];
  *out1 = out[1];
  return EM_OK;
}
#define PLAIN(name, mode)                                                                                                               \
  em_status c_##name##_input(em_tensor *input, em_tensor *hx, em_tensors params, bool has_biases, int64_t num_layers, double dropout,   \
                             bool train, bool bidirectional, bool batch_first, em_tensor **out0, em_tensor **out1) {                    \
    return plain_input(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, out0, out1);        \
  }                                                                                                                                     \
  em_status c_##name##_data(em_tensor *data, em_tensor *batch_sizes, em_tensor *hx, em_tensors params, bool has_biases,                 \
                            int64_t num_layers, double dropout, bool train, bool bidirectional, em_tensor **out0, em_tensor **out1) {   \
    return plain_data(mode, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, out0, out1);          \
  }
PLAIN(gru, EM_RNN_GRU)
PLAIN(rnn_tanh, EM_RNN_TANH)
PLAIN(rnn_relu, EM_RNN_RELU)
