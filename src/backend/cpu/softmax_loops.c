// softmax_loops.c: built once an instruction set; softmax.c picks the table.
#include "softmax_loops.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include "vmath_array.h"

#define T float
#define FN(name) name##_f32
#define EXP vm_exp_f32
#define EXP_ARRAY vm_exp_array_f32
#define LOG vm_log_f32
#define LOWEST INFINITY
#include "softmax_bodies.inc.h"
#undef T
#undef FN
#undef EXP
#undef EXP_ARRAY
#undef LOG
#define T double
#define FN(name) name##_f64
#define EXP vm_exp_f64
#define EXP_ARRAY vm_exp_array_f64
#define LOG vm_log_f64
#include "softmax_bodies.inc.h"

const em_softmax_table EM_ISA_NAME(em_priv_softmax) = {
    .rows = {{softmax_rows_f32, softmax_rows_f64},
            {log_softmax_rows_f32, log_softmax_rows_f64},
            {softmax_backward_rows_f32, softmax_backward_rows_f64},
            {log_softmax_backward_rows_f32, log_softmax_backward_rows_f64}},
    .band = {{softmax_band_f32, softmax_band_f64},
             {log_softmax_band_f32, log_softmax_band_f64},
             {softmax_backward_band_f32, softmax_backward_band_f64},
             {log_softmax_backward_band_f32, log_softmax_backward_band_f64}},
};
