// softmax_loops.h: the bodies of softmax, log_softmax and their backwards, built once an instruction set.
#ifndef EMBER_BACKEND_CPU_SOFTMAX_LOOPS_H
#define EMBER_BACKEND_CPU_SOFTMAX_LOOPS_H
#include <stdint.h>
#include "isa.h"

enum { EM_SM_SOFTMAX, EM_SM_LOG_SOFTMAX, EM_SM_SOFTMAX_BACKWARD, EM_SM_LOG_SOFTMAX_BACKWARD, EM_SM_KINDS };
// `rows` rows of n elements, all side by side. Forward: a is the input, b unused. Backward: a is the gradient, b the output. o may
// be a. `round`: NULL, or rounds to the half type that the row was cast from: PyTorch's log_softmax keeps the sum of
// exponentials and its logarithm in that type.
typedef float (*em_softmax_round)(float x);
typedef void (*em_softmax_rows)(void *o, const void *a, const void *b, int64_t n, int64_t rows, em_softmax_round round);
// A band of `w` columns (w <= EM_SM_BAND), n steps of `stride` elements apart.
typedef void (*em_softmax_band)(void *o, const void *a, const void *b, int64_t n, int64_t stride, int64_t w);
#define EM_SM_BAND 128
#define EM_SM_GROUP 8             // rows that go together when they fit into so many bytes
#define EM_SM_GROUP_BYTES (16 << 10)
typedef struct em_softmax_table {
  em_softmax_rows rows[EM_SM_KINDS][2];    // [kind][0: f32, 1: f64]
  em_softmax_band band[EM_SM_KINDS][2];
} em_softmax_table;
#endif
