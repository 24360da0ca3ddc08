// rnn_loops.h: what a recurrent layer does to one row between two matrix products, built once an instruction set. All arrays hold `h`
// elements unless said otherwise. [0]: float, [1]: double.
#ifndef EMBER_BACKEND_CPU_RNN_LOOPS_H
#define EMBER_BACKEND_CPU_RNN_LOOPS_H
#include <stdint.h>
#include "isa.h"

typedef struct em_rnn_loops {
  // gates (4 h: i f g o) become their activations; c is read and written, tc = tanh c, out = o * tc.
  void (*lstm[2])(int64_t h, void *gates, void *c, void *tc, void *out);
  // dc is read and written (towards the step before); dgates 4 h. gates are activations.
  void (*lstm_backward[2])(int64_t h, const void *gates, const void *c_before, const void *tc, const void *dh, void *dc, void *dgates);
  // gates 4 h: r z n, and what the hidden state gives to n without its bias; that gets `bias` (or NULL). hidden is read and written.
  void (*gru[2])(int64_t h, void *gates, const void *bias, void *hidden);
  // dh is read, and becomes what flows past the gates; dgates 4 h: r, z, n's share that passed through r to the
  // hidden state, n.
  void (*gru_backward[2])(int64_t h, const void *gates, const void *before, void *dh, void *dgates);
  // relu or tanh in place.
  void (*simple[2])(int64_t h, int relu, void *x);
  void (*simple_backward[2])(int64_t h, int relu, const void *out, const void *dh, void *dgates);
  void (*add[2])(int64_t h, void *to, const void *from);                                    // to += from
  void (*column_sums[2])(int64_t rows, int64_t cols, int64_t ld, const void *x, void *sums);  // sums (cols) of rows `ld` apart
} em_rnn_loops;
#endif
