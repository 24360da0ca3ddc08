// optim_loops.c: optimizer steps, for each instruction set.
#include <math.h>
#include "optim_loops.h"

#define T float
#define SQRT sqrtf
#define NAME(x) x##_f32
#include "optim_bodies.inc.h"

#define T double
#define SQRT sqrt
#define NAME(x) x##_f64
#include "optim_bodies.inc.h"

const em_optim_table EM_ISA_NAME(em_priv_optim) = {.fn = {{sgd_f32, sgd_f64}, {adam_f32, adam_f64}}};
