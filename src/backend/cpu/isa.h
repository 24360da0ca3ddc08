// isa.h: names of what is compiled once an instruction set, and the choice made at load.
#ifndef EMBER_BACKEND_CPU_ISA_H
#define EMBER_BACKEND_CPU_ISA_H
#include "../../core/status.h"

enum { EM_ISA_BASE, EM_ISA_V2, EM_ISA_V512, EM_ISA_COUNT };
EM_PRIV extern int em_priv_isa;  // EM_ISA_BASE: baseline, 1: AVX2 + FMA, 2: AVX-512
// Makes the choice if it was not made yet. Constructors that pick a table call it first: their order is not defined.
EM_PRIV int em_priv_isa_choose(void);

#define EM_ISA_JOIN2(name, isa) name##_##isa
#define EM_ISA_JOIN(name, isa) EM_ISA_JOIN2(name, isa)
#ifdef EM_ISA
#define EM_ISA_NAME(name) EM_ISA_JOIN(name, EM_ISA)  // my_table_avx2
#endif

// `pick = EM_ISA_PICK(my_table)` in a file that is compiled once: the chosen instruction set's table.
#if defined(EM_HAVE_AVX2) && defined(EM_HAVE_AVX512)
#define EM_ISA_DECLARE(type, name, dims) extern type name##_baseline dims, name##_avx2 dims, name##_avx512 dims
#define EM_ISA_PICK(name) \
  (em_priv_isa_choose() == EM_ISA_V512 ? name##_avx512 \
   : em_priv_isa_choose() == EM_ISA_V2 ? name##_avx2 : name##_baseline)
#else
#define EM_ISA_DECLARE(type, name, dims) extern type name##_baseline dims
#define EM_ISA_PICK(name) (name##_baseline)
#endif
#endif
