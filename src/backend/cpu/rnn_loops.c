// rnn_loops.c: built once an instruction set; rnn.c picks the table.
#include "rnn_loops.h"
#include <stddef.h>
#include "vmath_array.h"

#define T float
#define FN(name) name##_f32
#define SIGMOID vm_sigmoid_array_f32
#define TANH vm_tanh_array_f32
#include "rnn_bodies.inc.h"
#undef T
#undef FN
#undef SIGMOID
#undef TANH
#define T double
#define FN(name) name##_f64
#define SIGMOID vm_sigmoid_array_f64
#define TANH vm_tanh_array_f64
#include "rnn_bodies.inc.h"

#define BOTH(name) {name##_f32, name##_f64}
extern const em_rnn_loops EM_ISA_NAME(em_priv_rnn_loops)[1];
const em_rnn_loops EM_ISA_NAME(em_priv_rnn_loops)[1] = {{
    .lstm = BOTH(lstm), .lstm_backward = BOTH(lstm_backward), .gru = BOTH(gru), .gru_backward = BOTH(gru_backward),
    .simple = BOTH(simple), .simple_backward = BOTH(simple_backward), .add = BOTH(add), .column_sums = BOTH(column_sums)}};
