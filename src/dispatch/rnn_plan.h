// rnn_plan.h: one layer of a recurrent network in one direction, measured: what its check and its kernels must agree on.
//
// Rows are (step, sequence) pairs, step after step; a step holds `batch` sequences, or batch_sizes[t] of them (never more than the step
// before). Gate columns of a row: LSTM i f g o, GRU r z n, else one block of `hidden`.
#ifndef EMBER_DISPATCH_RNN_PLAN_H
#define EMBER_DISPATCH_RNN_PLAN_H
#include "plan.h"

enum { EM_RNN_RELU, EM_RNN_TANH, EM_RNN_LSTM, EM_RNN_GRU };
typedef struct em_rnn_shape {
  int mode;
  int64_t steps, batch, rows, input, hidden, out;  // out: columns of the output, less than hidden with a projection
  int64_t gates;                                   // blocks of a weight: 4, 3 or 1
  int64_t keep;   // columns of `reserve`: LSTM i f g o, c before the step, tanh c after it; GRU r z n, W_hn h + b_hn; else 0
  int64_t wide;   // columns of a gate gradient: LSTM i f g o, GRU r z, n for the hidden state, n for the input; else 1 block
  bool projects;
} em_rnn_shape;

static inline int64_t em_rnn_gates(int64_t mode) { return mode == EM_RNN_LSTM ? 4 : mode == EM_RNN_GRU ? 3 : 1; }
// From operands that were checked.
static inline void em_rnn_measure(const em_tensor *input, const em_tensor *hx, const em_tensor *w_hh, const em_tensor *w_hr,
                                  em_ints batch_sizes, int64_t mode, em_rnn_shape *s) {
  s->mode = (int)mode;
  s->input = input->sizes[input->ndim - 1];
  s->steps = input->ndim == 3 ? input->sizes[0] : batch_sizes.n;
  s->rows = input->ndim == 3 ? input->sizes[0] * input->sizes[1] : input->sizes[0];
  s->batch = hx->sizes[0];
  s->gates = em_rnn_gates(mode);
  s->hidden = w_hh->sizes[0] / s->gates;
  s->projects = w_hr != NULL;
  s->out = hx->sizes[1];
  s->keep = mode == EM_RNN_LSTM ? 6 * s->hidden : mode == EM_RNN_GRU ? 4 * s->hidden : 0;
  s->wide = (mode == EM_RNN_GRU ? 4 : s->gates) * s->hidden;
}

// Workspace: pieces one after the other, in elements of the layer's dtype. `place` NULL: only counts.
typedef struct em_rnn_room { char *at; size_t used, item; } em_rnn_room;
static inline void *em_rnn_take(em_rnn_room *r, int64_t n) {
  void *p = r->at == NULL ? NULL : r->at + r->used;
  r->used += ((size_t)n * r->item + 63) / 64 * 64;
  return p;
}
static inline int64_t em_rnn_panels(int64_t n, int64_t k) { return (n + 31) / 32 * 32 * k; }  // em_gemm_packed_size

typedef struct em_rnn_forward_work { void *recurrent, *project, *gates, *x, *h, *c, *m, *bias; } em_rnn_forward_work;
static inline size_t em_rnn_forward_room(const em_rnn_shape *s, bool train, bool copy, size_t item, void *at, em_rnn_forward_work *w) {
  em_rnn_room r = {at, 0, item};
  w->recurrent = em_rnn_take(&r, em_rnn_panels(s->gates * s->hidden, s->out) + em_rnn_panels(s->hidden, s->out));
  w->project = em_rnn_take(&r, s->projects ? em_rnn_panels(s->out, s->hidden) : 0);
  w->gates = em_rnn_take(&r, train ? 0 : s->rows * s->wide * (s->mode >= EM_RNN_LSTM));
  w->x = em_rnn_take(&r, copy ? s->rows * s->input : 0);
  w->h = em_rnn_take(&r, s->batch * s->out);
  w->c = em_rnn_take(&r, 2 * s->batch * s->hidden);  // c, and tanh c where nothing is kept
  w->m = em_rnn_take(&r, s->projects ? s->batch * s->hidden : 0);
  w->bias = em_rnn_take(&r, s->gates * s->hidden);
  return r.used;
}

typedef struct em_rnn_backward_work { void *recurrent, *project, *gates, *x, *before, *m, *dm, *dout; } em_rnn_backward_work;
static inline size_t em_rnn_backward_room(const em_rnn_shape *s, bool copy, size_t item, void *at, em_rnn_backward_work *w) {
  em_rnn_room r = {at, 0, item};
  w->recurrent = em_rnn_take(&r, em_rnn_panels(s->out, s->gates * s->hidden));
  w->project = em_rnn_take(&r, s->projects ? em_rnn_panels(s->hidden, s->out) : 0);
  w->gates = em_rnn_take(&r, s->rows * s->wide);
  w->x = em_rnn_take(&r, copy ? s->rows * s->input : 0);
  w->before = em_rnn_take(&r, s->rows * s->out);
  w->m = em_rnn_take(&r, s->projects ? s->rows * s->hidden : 0);     // o * tanh c of each row
  w->dm = em_rnn_take(&r, s->projects ? s->batch * s->hidden : 0);   // its gradient in the running step
  w->dout = em_rnn_take(&r, s->projects ? s->rows * s->out : 0);     // gradients of the projected outputs
  return r.used;
}
#endif
