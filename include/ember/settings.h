/* ember/settings.h: the process's settings, and what Ember found on this machine. */
#ifndef EMBER_SETTINGS_H
#define EMBER_SETTINGS_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* torch.set_num_threads: how many threads large operators use; results do not depend on it. At first EMBER_NUM_THREADS, else
 * OMP_NUM_THREADS, else the processors that the process may use. Errors: EM_ERR_RUNTIME below 1. */
EM_API EM_MUST_CHECK em_status em_set_num_threads(int n);
EM_API int em_get_num_threads(void);

/* torch.set_default_dtype: what factories and Python-like numbers make; EM_F32 at first. Errors: EM_ERR_TYPE for one that is
 * not floating. */
EM_API EM_MUST_CHECK em_status em_set_default_dtype(int dtype);
EM_API int em_get_default_dtype(void);

/* The instruction set that kernels use: "avx512", "avx2" or "baseline". Static storage. */
EM_API const char *em_cpu_capability(void);
/* The file, and the version where it tells one, of a library of others that does work for Ember: "OpenBLAS", "oneDNN". NULL if
 * it was not found, is switched off, or has nothing to do on this processor; kernels of Ember's own do its work then. */
EM_API const char *em_library(const char *name);

#ifdef __cplusplus
}
#endif
#endif
