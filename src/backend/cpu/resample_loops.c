// resample_loops.c: built once an instruction set; resample.c picks the table.
#include "resample_loops.h"
#include <string.h>

#define T float
#define FN(name) name##_f32
#include "resample_bodies.inc.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "resample_bodies.inc.h"

const em_resample_fns EM_ISA_NAME(em_priv_resample)[2] = {{forward_f32, backward_f32}, {forward_f64, backward_f64}};
