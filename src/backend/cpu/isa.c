// isa.c: which of the three builds of the kernels runs. Chosen once, at load; EMBER_ISA=baseline|avx2|avx512 forces.
#include "isa.h"
#include "../../core/iterator.h"
#include "../../core/note.h"
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

int em_priv_isa = -1;

static const char *const isa_names[EM_ISA_COUNT] = {"baseline", "avx2", "avx512"};

#if defined(__x86_64__)
// Compilers know no name for it everywhere: leaf 1, ecx, bit 29.
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}
#endif

static int best_isa(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  bool v512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return v2 && v512 ? EM_ISA_V512 : v2 ? EM_ISA_V2 : EM_ISA_BASE;
#else
  return EM_ISA_BASE;
#endif
}

int em_priv_isa_choose(void) {
  if (em_priv_isa >= 0) return em_priv_isa;
  int best = best_isa(), chosen = best;
  const char *want = getenv("EMBER_ISA");
  if (want != NULL && want[0] != '\0') {
    int i = 0;
    while (i < EM_ISA_COUNT && strcmp(want, isa_names[i]) != 0) i++;
    // a warning that the host turns into an error has nobody to catch it at load: it is only a warning here
    if (i == EM_ISA_COUNT)
      (void)em_warn("EMBER_ISA=%s is not baseline, avx2 or avx512: using %s", want, isa_names[best]);
    else if (i > best)
      (void)em_warn("EMBER_ISA=%s: this processor has no %s, using %s", want, want, isa_names[best]);
    else
      chosen = i;
  }
  em_priv_note_isa = isa_names[chosen];
  return em_priv_isa = chosen;
}

typedef const em_cast_fn cast_row[EM_NUM_DTYPES];
EM_ISA_DECLARE(cast_row, em_priv_casts, [EM_NUM_DTYPES]);

__attribute__((constructor)) static void choose_casts(void) { em_priv_casts = EM_ISA_PICK(em_priv_casts); }
