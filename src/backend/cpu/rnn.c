// rnn.c: one layer of an RNN, LSTM or GRU in one direction. The inputs of all steps are projected by one product; a step then is one
// product with the recurrent weight, packed once for all steps, and one pass over its gates. Backward goes the other way, and makes the
// weights' gradients by one product over all steps.
//
// Sequences do not depend on each other, so threads take blocks of sequences through all steps. `h`, `c` and their gradients are one row a
// sequence, and a step touches the first batch_sizes[t] of them: a sequence that ended keeps its last state, one that has not begun (in
// the reverse direction) its first.
#include <string.h>
#include "../../core/iterator.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "dispatch/rnn_plan.h"
#include "gemm.h"
#include "gen_ops.h"
#include "rnn_loops.h"

EM_ISA_DECLARE(const em_rnn_loops, em_priv_rnn_loops, [1]);
static const em_rnn_loops *loops;
static const em_gemm_loops *gemm;
__attribute__((constructor)) static void choose_loops(void) {
  loops = EM_ISA_PICK(em_priv_rnn_loops);
  gemm = em_priv_gemm_table();
}

#define BLOCK_ROWS 16      // sequences that are worth a thread
#define WIDE_WEIGHT 262144  // elements of a recurrent weight that blocks should not read too often
#define FEW 3              // sequences for which packing the weight does not pay

typedef struct layer {
  em_rnn_shape s;
  int dtype;
  bool wide, reverse, train;  // wide: f64
  bool packs;                 // the recurrent weight is packed: not for one step, nor for few sequences
  em_tensor *w_hh;
  em_ints batch_sizes;
  size_t item;
  int64_t block;
  const char *b_hn;           // GRU: n's hidden bias, or NULL
  em_rnn_forward_work f;
  em_rnn_backward_work b;
  char *out, *reserve;
  const char *dout, *saved_out, *saved;
  char *dh, *dc;
} layer;

static char *at(const void *base, int64_t index, const layer *l) { return (char *)(uintptr_t)base + index * (int64_t)l->item; }
static int64_t sequences(const layer *l, int64_t t) { return l->batch_sizes.n > 0 ? l->batch_sizes.p[t] : l->s.batch; }

// Steps in the order in which they are taken; `first` is the row of the step's first sequence. Backward takes them from the end.
typedef struct walk { int64_t t, first, left; int by; } walk;
static walk begin_walk(const layer *l, bool from_end) {
  const bool down = l->reverse != from_end;
  walk w = {.t = down ? l->s.steps - 1 : 0, .left = l->s.steps, .by = down ? -1 : 1};
  w.first = down ? l->s.rows - sequences(l, w.t) : 0;
  return w;
}
static void next_step(const layer *l, walk *w) {
  if (--w->left == 0) return;
  if (w->by > 0) w->first += sequences(l, w->t);
  w->t += w->by;
  if (w->by < 0) w->first -= sequences(l, w->t);
}

// --- forward

static em_matrix matrix(const void *data, int64_t row, int64_t col) { return (em_matrix){(char *)(uintptr_t)data, row, col, 0}; }
static em_status multiply(const layer *l, int64_t m, int64_t n, int64_t k, em_matrix a, em_matrix b, em_matrix c, em_matrix s) {
  em_gemm g = {.dtype = l->dtype, .m = m, .n = n, .k = k, .batch = 1, .a = a, .b = b, .c = c, .s = s, .alpha = {1, 0}, .beta = {1, 0}};
  return em_priv_gemm(&g);
}

// What the hidden states give to the gates, added to what the inputs gave; to GRU's n it is kept apart.
static em_status recurrent_products(const layer *l, int64_t n, const char *h, char *gates, int64_t ld) {
  const int64_t H = l->s.hidden, P = l->s.out, added = (l->s.mode == EM_RNN_GRU ? 2 : l->s.gates) * H;
  const bool apart = l->s.mode == EM_RNN_GRU;
  if (l->packs) {
    gemm->packed(l->dtype, n, added, P, h, P, 1, l->f.recurrent, gates, ld, true);
    if (apart)
      gemm->packed(l->dtype, n, H, P, h, P, 1, at(l->f.recurrent, em_gemm_packed_size(added, P), l), at(gates, 3 * H, l), ld, false);
    return EM_OK;
  }
  const int64_t row = l->w_hh->strides[0], col = l->w_hh->strides[1];
  const char *w = em_tensor_data(l->w_hh);
  const em_matrix to = matrix(gates, ld, 1);
  EM_PASS(multiply(l, n, added, P, matrix(h, P, 1), matrix(w, col, row), to, to));
  if (!apart) return EM_OK;
  return multiply(l, n, H, P, matrix(h, P, 1), matrix(at(w, added * row, l), col, row),
                  matrix(at(gates, 3 * H, l), ld, 1), matrix(NULL, 0, 0));
}
// Gates of the rows [lo, lo + n) of a step become states.
static void forward_rows(const layer *l, int64_t row, int64_t lo, int64_t n, char *gates, int64_t ld) {
  const int64_t H = l->s.hidden, P = l->s.out;
  const int k = l->wide;
  for (int64_t i = 0; i < n; i++) {
    char *g = at(gates, i * ld, l), *h = at(l->f.h, (lo + i) * P, l), *out = at(l->out, (row + i) * P, l);
    if (l->s.mode == EM_RNN_LSTM) {
      char *c = at(l->f.c, (lo + i) * H, l);
      char *tc = l->train ? at(g, 5 * H, l) : at(l->f.c, (l->s.batch + lo + i) * H, l);
      if (l->train) memcpy(at(g, 4 * H, l), c, (size_t)H * l->item);
      loops->lstm[k](H, g, c, tc, l->s.projects ? at(l->f.m, (lo + i) * H, l) : h);
    } else if (l->s.mode == EM_RNN_GRU) {
      loops->gru[k](H, g, l->b_hn, h);
    } else {
      loops->simple[k](H, l->s.mode == EM_RNN_RELU, g);
      memcpy(h, g, (size_t)H * l->item);
    }
    if (l->s.mode >= EM_RNN_LSTM && !l->s.projects) memcpy(out, h, (size_t)P * l->item);
  }
  if (!l->s.projects) return;
  char *h = at(l->f.h, lo * P, l);
  gemm->packed(l->dtype, n, P, H, at(l->f.m, lo * H, l), H, 1, l->f.project, h, P, false);
  memcpy(at(l->out, row * P, l), h, (size_t)(n * P) * l->item);
}
static em_status forward_blocks(void *context, int64_t begin, int64_t end) {
  const layer *l = context;
  char *gates = l->s.mode < EM_RNN_LSTM ? l->out : l->train ? l->reserve : l->f.gates;
  const int64_t ld = l->s.mode < EM_RNN_LSTM ? l->s.out : l->train ? l->s.keep : l->s.wide;
  for (int64_t b = begin; b < end; b++) {
    const int64_t lo = b * l->block, most = lo + l->block;
    for (walk w = begin_walk(l, false); w.left > 0; next_step(l, &w)) {
      const int64_t hi = sequences(l, w.t) < most ? sequences(l, w.t) : most;
      if (hi <= lo) continue;
      char *g = at(gates, (w.first + lo) * ld, l);
      EM_PASS(recurrent_products(l, hi - lo, at(l->f.h, lo * l->s.out, l), g, ld));
      forward_rows(l, w.first + lo, lo, hi - lo, g, ld);
    }
  }
  return EM_OK;
}

static em_status dense(em_tensor *t, void *to, int dtype) {  // t's elements in order, at `to`
  em_tensor *copy;
  EM_PASS(em_tensor_new(t->ndim, t->sizes, dtype, t->device, &copy));
  em_status st = em_copy_into(copy, t);
  if (st == EM_OK) memcpy(to, em_tensor_data(copy), (size_t)t->numel * em_dtype_size(dtype));
  em_tensor_release(copy);
  return st;
}
static void copy_run(const layer *l, void *to, const em_tensor *t, int64_t from, int64_t n) {
  em_cast_load(to, l->dtype, (char *)em_tensor_data(t) + from * t->strides[0] * (int64_t)l->item, l->dtype,
               t->strides[0] * (int64_t)l->item, n);
}

static void set_up(layer *l, em_tensor *input, em_tensor *hx, em_tensor *w_hh, em_tensor *w_hr, em_ints batch_sizes, int64_t mode,
                   bool reverse) {
  em_rnn_measure(input, hx, w_hh, w_hr, batch_sizes, mode, &l->s);
  l->dtype = input->dtype;
  l->item = em_tensor_itemsize(input);
  l->wide = input->dtype == EM_F64;
  l->reverse = reverse;
  l->batch_sizes = batch_sizes;
  l->w_hh = w_hh;
  l->packs = l->s.steps > 1 && l->s.batch > FEW;
  const int64_t parts = w_hh->numel > WIDE_WEIGHT ? 2 : 4, part = (l->s.batch / parts + 7) / 8 * 8;
  l->block = part > BLOCK_ROWS ? part : BLOCK_ROWS;
}
// The part of the biases that can be added before the steps: all of it, but for what GRU's r multiplies.
static em_matrix first_bias(layer *l, em_tensor *b_ih, em_tensor *b_hh) {
  const int64_t H = l->s.hidden, n = l->s.gates * H;
  if (b_ih == NULL && b_hh == NULL) return matrix(NULL, 0, 0);
  if (b_ih != NULL) copy_run(l, l->f.bias, b_ih, 0, n);
  else memset(l->f.bias, 0, (size_t)n * l->item);
  if (b_hh != NULL) {
    char *line = l->f.recurrent;  // not packed yet
    copy_run(l, line, b_hh, 0, n);
    loops->add[l->wide](l->s.mode == EM_RNN_GRU ? 2 * H : n, l->f.bias, line);
  }
  return matrix(l->f.bias, 0, 1);
}
static void pack_forward(layer *l, em_tensor *w_hh, em_tensor *w_hr) {
  const int64_t H = l->s.hidden, P = l->s.out, row = w_hh->strides[0], col = w_hh->strides[1];
  const char *w = em_tensor_data(w_hh);
  if (!l->packs) {
    // the weight is read where it lies
  } else if (l->s.mode == EM_RNN_GRU) {
    gemm->pack(l->dtype, 2 * H, P, w, col, row, l->f.recurrent);
    gemm->pack(l->dtype, H, P, at(w, 2 * H * row, l), col, row, at(l->f.recurrent, em_gemm_packed_size(2 * H, P), l));
  } else {
    gemm->pack(l->dtype, l->s.gates * H, P, w, col, row, l->f.recurrent);
  }
  if (w_hr != NULL) gemm->pack(l->dtype, P, H, em_tensor_data(w_hr), w_hr->strides[1], w_hr->strides[0], l->f.project);
}
// Work of all steps, in multiplications, decides whether other threads may run meanwhile.
static void *begin(const layer *l) {
  return em_priv_begin_long((double)l->s.rows * (double)l->s.wide * (double)(l->s.out + l->s.input) > 1e6);
}

static __attribute__((cold)) void note_layer(const layer *l) {
  const char *weight = l->packs ? "packed once for all of them (the product of each step refused: it would pack again)"
                       : l->s.steps == 1 ? "read where it lies (packing refused: one step)"
                                         : "read where it lies (packing refused: at most 3 sequences)";
  em_note_write("layer: %lld step%s, blocks of %lld sequences go through all steps, %s loop; the recurrent weight is %s",
                (long long)l->s.steps, EM_NOTE_S(l->s.steps),
                (long long)l->block, em_priv_note_isa, weight);
}
em_status k_cpu_rnn_layer(em_plan *p, em_tensor *input, em_tensor *hx, em_tensor *cx, em_tensor *w_ih, em_tensor *w_hh, em_tensor *b_ih,
                          em_tensor *b_hh, em_tensor *w_hr, em_ints batch_sizes, int64_t mode, bool reverse, bool train, em_tensor *output,
                          em_tensor *hy, em_tensor *cy, em_tensor *reserve) {
  layer l = {.train = train, .out = em_tensor_data(output), .reserve = em_tensor_data(reserve)};
  set_up(&l, input, hx, w_hh, w_hr, batch_sizes, mode, reverse);
  const bool copy = !em_tensor_is_contiguous(input);
  em_rnn_forward_room(&l.s, train, copy, l.item, p->work, &l.f);
  const int64_t H = l.s.hidden, I = l.s.input, n = l.s.gates * H;
  if (copy) EM_PASS(dense(input, l.f.x, l.dtype));
  EM_PASS(dense(hx, l.f.h, l.dtype));
  if (mode == EM_RNN_LSTM) EM_PASS(dense(cx, l.f.c, l.dtype));
  void *token = begin(&l);
  char *gates = mode < EM_RNN_LSTM ? l.out : train ? l.reserve : l.f.gates;
  const int64_t ld = mode < EM_RNN_LSTM ? l.s.out : train ? l.s.keep : l.s.wide;
  const em_matrix bias = first_bias(&l, b_ih, b_hh);
  em_status st = multiply(&l, l.s.rows, n, I, matrix(copy ? l.f.x : em_tensor_data(input), I, 1),
                          matrix(em_tensor_data(w_ih), w_ih->strides[1], w_ih->strides[0]), matrix(gates, ld, 1), bias);
  if (st == EM_OK) {
    if (mode == EM_RNN_GRU && b_hh != NULL) {
      copy_run(&l, l.f.bias, b_hh, 2 * H, H);
      l.b_hn = l.f.bias;
    }
    pack_forward(&l, w_hh, w_hr);
    if (EM_UNLIKELY(em_priv_notes_wanted)) note_layer(&l);
    st = em_threads_for((l.s.batch + l.block - 1) / l.block, 1, forward_blocks, &l);
  }
  em_priv_end_long(token);
  if (hy->numel > 0) memcpy(em_tensor_data(hy), l.f.h, (size_t)hy->numel * l.item);
  if (cy->numel > 0) memcpy(em_tensor_data(cy), l.f.c, (size_t)cy->numel * l.item);
  return st;
}

// --- backward

// The hidden state before each row: of the step before, or the first one.
static void states_before(const layer *l, const char *hx) {
  const size_t line = (size_t)l->s.out * l->item;
  int64_t before = 0, had = 0;
  for (walk w = begin_walk(l, false); w.left > 0; next_step(l, &w)) {
    const int64_t n = sequences(l, w.t), old = had < n ? had : n;
    char *to = at(l->b.before, w.first * l->s.out, l);
    if (old > 0) memcpy(to, at(l->saved_out, before * l->s.out, l), (size_t)old * line);
    if (n > old) memcpy(to + (size_t)old * line, at(hx, old * l->s.out, l), (size_t)(n - old) * line);
    before = w.first;
    had = n;
  }
}
static void backward_rows(const layer *l, int64_t row, int64_t lo, int64_t n) {
  const int64_t H = l->s.hidden, P = l->s.out;
  const int k = l->wide;
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = row + i, b = lo + i;
    char *dg = at(l->b.gates, r * l->s.wide, l), *dh = at(l->dh, b * P, l);
    const char *kept = l->saved == NULL ? NULL : at(l->saved, r * l->s.keep, l);
    if (l->s.mode == EM_RNN_LSTM)
      loops->lstm_backward[k](H, kept, at(kept, 4 * H, l), at(kept, 5 * H, l), l->s.projects ? at(l->b.dm, b * H, l) : dh,
                              at(l->dc, b * H, l), dg);
    else if (l->s.mode == EM_RNN_GRU) loops->gru_backward[k](H, kept, at(l->b.before, r * P, l), dh, dg);
    else loops->simple_backward[k](H, l->s.mode == EM_RNN_RELU, at(l->saved_out, r * P, l), dh, dg);
  }
}
static em_status backward_blocks(void *context, int64_t begin, int64_t end) {
  const layer *l = context;
  const int64_t H = l->s.hidden, P = l->s.out, wide = l->s.wide;
  for (int64_t b = begin; b < end; b++) {
    const int64_t lo = b * l->block, most = lo + l->block;
    for (walk w = begin_walk(l, true); w.left > 0; next_step(l, &w)) {
      const int64_t hi = sequences(l, w.t) < most ? sequences(l, w.t) : most, row = w.first + lo, n = hi - lo;
      if (n <= 0) continue;
      char *dh = at(l->dh, lo * P, l), *dg = at(l->b.gates, row * wide, l);
      if (l->dout != NULL) loops->add[l->wide](n * P, dh, at(l->dout, row * P, l));
      if (l->s.projects) {
        memcpy(at(l->b.dout, row * P, l), dh, (size_t)(n * P) * l->item);
        gemm->packed(l->dtype, n, H, P, dh, P, 1, l->b.project, at(l->b.dm, lo * H, l), H, false);
      }
      backward_rows(l, row, lo, n);
      if (l->packs) {
        gemm->packed(l->dtype, n, P, l->s.gates * H, dg, wide, 1, l->b.recurrent, dh, P, l->s.mode == EM_RNN_GRU);
        continue;
      }
      const em_matrix to = matrix(dh, P, 1), w = matrix(em_tensor_data(l->w_hh), l->w_hh->strides[0], l->w_hh->strides[1]);
      EM_PASS(multiply(l, n, P, l->s.gates * H, matrix(dg, wide, 1), w, to, l->s.mode == EM_RNN_GRU ? to : matrix(NULL, 0, 0)));
    }
  }
  return EM_OK;
}

enum { D_INPUT, D_HX, D_CX, D_W_IH, D_W_HH, D_B_IH, D_B_HH, D_W_HR, D_COUNT };
static bool asked(em_tensor *t) { return t->ndim > 1 || t->numel > 0; }  // what nobody wants was planned as an empty vector

// What the inputs' projection sees of GRU's gate gradients is r, z, and n's own share, which lies behind the hidden state's.
static em_status input_gradients(const layer *l, const char *x, em_tensor *w_ih, em_tensor *const *d) {
  const bool gru = l->s.mode == EM_RNN_GRU;
  const int64_t H = l->s.hidden, I = l->s.input, N = l->s.rows, n = (gru ? 2 : l->s.gates) * H, wide = l->s.wide;
  const em_matrix none = matrix(NULL, 0, 0), inputs = matrix(x, I, 1);
  const char *last = at(l->b.gates, 3 * H, l);
  if (asked(d[D_W_IH])) {
    char *to = em_tensor_data(d[D_W_IH]);
    EM_PASS(multiply(l, n, I, N, matrix(l->b.gates, 1, wide), inputs, matrix(to, I, 1), none));
    if (gru) EM_PASS(multiply(l, H, I, N, matrix(last, 1, wide), inputs, matrix(at(to, n * I, l), I, 1), none));
  }
  if (asked(d[D_B_IH])) {
    char *to = em_tensor_data(d[D_B_IH]);
    loops->column_sums[l->wide](N, n, wide, l->b.gates, to);
    if (gru) loops->column_sums[l->wide](N, H, wide, last, at(to, n, l));
  }
  if (asked(d[D_INPUT])) {
    const int64_t row = w_ih->strides[0], col = w_ih->strides[1];
    const char *w = em_tensor_data(w_ih);
    const em_matrix to = matrix(em_tensor_data(d[D_INPUT]), I, 1);
    EM_PASS(multiply(l, N, I, n, matrix(l->b.gates, wide, 1), matrix(w, row, col), to, none));
    if (gru) EM_PASS(multiply(l, N, I, H, matrix(last, wide, 1), matrix(at(w, n * row, l), row, col), to, to));
  }
  return EM_OK;
}
static em_status hidden_gradients(const layer *l, em_tensor *const *d) {
  const int64_t H = l->s.hidden, P = l->s.out, N = l->s.rows, n = l->s.gates * H, wide = l->s.wide;
  const em_matrix none = matrix(NULL, 0, 0);
  if (asked(d[D_W_HH]))
    EM_PASS(multiply(l, n, P, N, matrix(l->b.gates, 1, wide), matrix(l->b.before, P, 1), matrix(em_tensor_data(d[D_W_HH]), P, 1), none));
  if (asked(d[D_B_HH])) loops->column_sums[l->wide](N, n, wide, l->b.gates, em_tensor_data(d[D_B_HH]));
  if (!asked(d[D_W_HR])) return EM_OK;
  for (int64_t r = 0; r < N; r++) {  // m = o * tanh c was not kept
    const char *kept = at(l->saved, r * l->s.keep, l);
    char *m = at(l->b.m, r * H, l);
    if (l->wide) for (int64_t j = 0; j < H; j++) ((double *)m)[j] = ((const double *)kept)[3 * H + j] * ((const double *)kept)[5 * H + j];
    else for (int64_t j = 0; j < H; j++) ((float *)m)[j] = ((const float *)kept)[3 * H + j] * ((const float *)kept)[5 * H + j];
  }
  return multiply(l, P, H, N, matrix(l->b.dout, 1, P), matrix(l->b.m, H, 1), matrix(em_tensor_data(d[D_W_HR]), H, 1), none);
}
static void pack_backward(const layer *l, em_tensor *w_hh, em_tensor *w_hr) {
  const int64_t H = l->s.hidden, P = l->s.out;
  if (l->packs) gemm->pack(l->dtype, P, l->s.gates * H, em_tensor_data(w_hh), w_hh->strides[0], w_hh->strides[1], l->b.recurrent);
  if (w_hr != NULL) gemm->pack(l->dtype, H, P, em_tensor_data(w_hr), w_hr->strides[0], w_hr->strides[1], l->b.project);
}
static em_status start(em_tensor *from, em_tensor *to) {
  if (from != NULL) return em_copy_into(to, from);
  if (to->numel > 0) memset(em_tensor_data(to), 0, (size_t)to->numel * em_tensor_itemsize(to));
  return EM_OK;
}

em_status k_cpu_rnn_layer_backward(em_plan *p, em_tensor *grad_output, em_tensor *grad_hy, em_tensor *grad_cy, em_tensor *input,
                                   em_tensor *hx, em_tensor *w_ih, em_tensor *w_hh, em_tensor *w_hr, em_tensor *output, em_tensor *reserve,
                                   em_ints batch_sizes, int64_t mode, bool reverse, em_bools output_mask, em_tensor *d0, em_tensor *d1,
                                   em_tensor *d2, em_tensor *d3, em_tensor *d4, em_tensor *d5, em_tensor *d6, em_tensor *d7) {
  (void)output_mask;
  em_tensor *const d[D_COUNT] = {d0, d1, d2, d3, d4, d5, d6, d7};
  em_status st = EM_OK;
  em_tensor *first = NULL, *grad = NULL;
  layer l = {.dh = em_tensor_data(d1), .dc = em_tensor_data(d2), .saved_out = em_tensor_data(output)};
  set_up(&l, input, hx, w_hh, w_hr, batch_sizes, mode, reverse);
  l.saved = l.s.keep > 0 ? em_tensor_data(reserve) : NULL;
  const bool copy = !em_tensor_is_contiguous(input);
  em_rnn_backward_room(&l.s, copy, l.item, p->work, &l.b);
  if (copy) EM_PASS(dense(input, l.b.x, l.dtype));
  EM_PASS(start(grad_hy, d1));
  EM_PASS(start(grad_cy, d2));
  EM_TRY(em_tensor_new(hx->ndim, hx->sizes, l.dtype, hx->device, &first));
  EM_TRY(em_copy_into(first, hx));
  if (grad_output != NULL && em_tensor_is_contiguous(grad_output)) grad = em_tensor_retain(grad_output);
  else if (grad_output != NULL) {
    EM_TRY(em_tensor_new(output->ndim, output->sizes, l.dtype, output->device, &grad));
    EM_TRY(em_copy_into(grad, grad_output));
  }
  l.dout = grad == NULL ? NULL : em_tensor_data(grad);
  void *token = begin(&l);
  pack_backward(&l, w_hh, w_hr);
  states_before(&l, em_tensor_data(first));
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_layer(&l);
  st = em_threads_for((l.s.batch + l.block - 1) / l.block, 1, backward_blocks, &l);
  if (st == EM_OK) st = input_gradients(&l, copy ? l.b.x : em_tensor_data(input), w_ih, d);
  if (st == EM_OK) st = hidden_gradients(&l, d);
  em_priv_end_long(token);
fail:
  em_tensor_release(first);
  em_tensor_release(grad);
  return st;
}
