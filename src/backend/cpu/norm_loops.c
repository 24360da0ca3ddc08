// norm_loops.c: built once an instruction set; norm.c picks the tables.
#include "norm_loops.h"
#include <stddef.h>
#include <string.h>
#include "../../core/half.h"

typedef float wide_f32 __attribute__((vector_size(64)));
typedef double wide_f64 __attribute__((vector_size(128)));
static inline float same_f32(float x) { return x; }
static inline double same_f64(double x) { return x; }

#define T float
#define C float
#define WIDE wide_f32
#define LD same_f32
#define ST same_f32
#define FN(name) name##_f32
#include "norm_bodies.inc.h"
#undef T
#undef LD
#undef ST
#undef FN
#define T uint16_t
#define LD em_f16_to_f32
#define ST em_f32_to_f16
#define FN(name) name##_f16
#include "norm_bodies.inc.h"
#undef LD
#undef ST
#undef FN
#define LD em_bf16_to_f32
#define ST em_f32_to_bf16
#define FN(name) name##_bf16
#include "norm_bodies.inc.h"
#undef T
#undef C
#undef WIDE
#undef LD
#undef ST
#undef FN
#define T double
#define C double
#define WIDE wide_f64
#define LD same_f64
#define ST same_f64
#define FN(name) name##_f64
#include "norm_bodies.inc.h"

em_norm_set EM_ISA_NAME(em_priv_norm) = {
    [EM_NORM_F32] = &table_f32, [EM_NORM_F64] = &table_f64, [EM_NORM_F16] = &table_f16, [EM_NORM_BF16] = &table_bf16};
