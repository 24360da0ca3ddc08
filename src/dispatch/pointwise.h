// pointwise.h: descriptor of a pointwise row and the one routine that runs it. The generator writes the loop bodies and
// the descriptors; this is everything they share.
#ifndef EMBER_DISPATCH_POINTWISE_H
#define EMBER_DISPATCH_POINTWISE_H
#include "plan.h"

#define EM_PW_MAX_IN 5
#define EM_PW_MAX_OUT 2
#define EM_PW_MAX_ATTR 4
// slots of compute dtypes in the tables below
enum { EM_CD_F32, EM_CD_F64, EM_CD_I64, EM_CD_C64, EM_CD_C128, EM_CD_NATIVE0 /* further native loops */, EM_CD_COUNT = 16 };

// One loop: n elements. data[]: outputs first, then inputs, each contiguous or (bit i of `bcast` set) one value for all.
// attr: attributes already converted to the compute dtype. Returns sticky flags: EM_PW_DIV_ZERO.
typedef uint32_t (*em_pw_loop)(char *const *data, uint32_t bcast, int64_t n, const void *attr);
enum { EM_PW_DIV_ZERO = 1 };

typedef struct em_pw_desc {
  const char *name;            // operator's full name
  uint8_t nin, nout, nattr;
  uint8_t promotion;           // em_promotion
  uint8_t in_role[EM_PW_MAX_IN];    // 0: takes part in promotion; 1: mask (bool, loop sees uint8_t)
  uint8_t out_role[EM_PW_MAX_OUT];  // 0: common dtype (or its real); 1: bool (loop writes uint8_t)
  uint8_t attr_role[EM_PW_MAX_ATTR];// 0: compute dtype; 1: double; 2: int64
  uint32_t dtypes;             // bit set of accepted common em_dtypes, else: '"sub_cpu" not implemented for 'Bool''
  const char *kernel_name;     // for that message
  em_pw_loop const *loops;     // [EM_CD_COUNT] for the instruction set chosen at start-up; NULL: not available
  uint8_t const *native;       // [EM_NUM_DTYPES]: EM_CD_* slot of a loop that takes this storage dtype directly, or 255
  int64_t grain;               // elements a thread should get at least
} em_pw_desc;

// Plans, allocates, loops. `outs` given for in-place and out=, else NULLs that receive new references.
EM_PRIV em_status em_pw_run(const em_pw_desc *d, uint32_t iter_flags, em_tensor *const *in, const em_scalar *attr, em_tensor **outs);
// The same with one input and no promotion questions, or two inputs of one dtype and equal contiguous sizes: the path that `a + b`
// takes. Inline in the generated entries; falls back to em_pw_run.
EM_PRIV extern int em_priv_isa;  // 0 baseline, 1 avx2, 2 avx512: chosen at load, EMBER_ISA forces one
#endif
