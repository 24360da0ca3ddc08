// grid_loops.c: built once an instruction set; grid_sample.c picks the table.
#include "grid_loops.h"
#include <math.h>
#include <string.h>

#define TAPS 16
#define T float
#define FN(name) name##_f32
#include "grid_bodies.inc.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "grid_bodies.inc.h"

const em_grid_fns EM_ISA_NAME(em_priv_grid)[2] = {{sample_f32, give_f32}, {sample_f64, give_f64}};
