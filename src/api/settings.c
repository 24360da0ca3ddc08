// settings.c: ember/settings.h.
#include "api.h"
#include <string.h>
#include "../backend/cpu/isa.h"
#include "../backend/cpu/lib_blas.h"
#include "../backend/cpu/lib_onednn.h"
#include "../core/dtype.h"
#include "../core/threads.h"
#include <ember/settings.h>

em_status em_set_num_threads(int n) { return em_threads_set(n); }
int em_get_num_threads(void) { return em_threads_get(); }

em_status em_set_default_dtype(int dtype) {
  if ((unsigned)dtype >= EM_NUM_DTYPES) return em_fail(EM_ERR_TYPE, "em_set_default_dtype(): %d is no dtype", dtype);
  return em_dtype_set_default(dtype);
}
int em_get_default_dtype(void) { return em_dtype_default(); }

const char *em_cpu_capability(void) {
  static const char *const names[] = {"baseline", "avx2", "avx512"};
  return names[em_priv_isa_choose()];
}

const char *em_library(const char *name) {
  if (name == NULL) return NULL;
  if (strcmp(name, "OpenBLAS") == 0) (void)em_priv_blas();
  if (strcmp(name, "oneDNN") == 0) (void)em_priv_onednn_likes(EM_F32);
  return em_priv_lib_found(name);
}
