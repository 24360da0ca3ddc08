// fft_loops.c: built once an instruction set; fft.c picks the table.
#include "fft_loops.h"
#include <string.h>

#define T float
#define FN(name) name##_f32
#include "fft_bodies.inc.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "fft_bodies.inc.h"

const em_fft_fns EM_ISA_NAME(em_priv_fft)[2] = {{run_f32, multiply_f32}, {run_f64, multiply_f64}};
