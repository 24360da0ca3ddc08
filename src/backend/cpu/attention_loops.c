// attention_loops.c: built once an instruction set; attention.c picks the table.
#include "attention_loops.h"
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "vmath_array.h"

#define LANES 16
#define T float
#define FN(name) name##_f32
#define EXP vm_exp_f32
#define EXP_ARRAY vm_exp_array_f32
#define LOG vm_log_f32
#include "attention_bodies.inc.h"
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
#include "attention_bodies.inc.h"

#define BOTH(name) {name##_f32, name##_f64}
extern const em_attention_loops EM_ISA_NAME(em_priv_attention_loops)[1];
const em_attention_loops EM_ISA_NAME(em_priv_attention_loops)[1] = {{
    .weigh = BOTH(weigh), .finish = BOTH(finish), .unweigh = BOTH(unweigh), .scores = BOTH(scores), .values = BOTH(values),
    .dot = BOTH(dot), .bool_mask = BOTH(bool_mask)}};
