// lib_blas.c: opens OpenBLAS and takes four functions out of it. The names carry a prefix in PyPI's build.
#include "lib_blas.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static em_blas table;
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *symbol(void *handle, const char *prefix, const char *name) {
  char full[64];
  snprintf(full, sizeof full, "%s%s", prefix, name);
  return dlsym(handle, full);
}

// The LAPACK functions; any that is missing means that the library has none worth using.
static em_lapack lapack;
static bool has_lapack;
static void take_lapack(void *handle, const char *prefix) {
  static const struct { const char *real, *complex; } names[] = {
      {"getrf", "getrf"}, {"getrs", "getrs"}, {"potrf", "potrf"}, {"geqrf", "geqrf"},
      {"orgqr", "ungqr"}, {"gesdd", "gesdd"}, {"syevd", "heevd"}, {"trtrs", "trtrs"}};
  void **slots = (void **)&lapack;
  has_lapack = true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (int t = 0; t < 4; t++) {
      char name[32];
      snprintf(name, sizeof name, "LAPACKE_%c%s", "sdcz"[t], t < 2 ? names[i].real : names[i].complex);
      void *fn = symbol(handle, prefix, name);
      has_lapack &= fn != NULL;
      memcpy(&slots[i * 4 + (size_t)t], &fn, sizeof fn);
    }
  void *check = symbol(handle, prefix, "LAPACKE_set_nancheck");
  void (*set_nancheck)(int);
  memcpy(&set_nancheck, &check, sizeof check);
  if (check != NULL) set_nancheck(0);  // nan goes through, as in PyTorch
}

// OpenBLAS picks a kernel by the processor's name, and on processors before SSE4.2 some of its picks end the process with
// an illegal instruction (seen under qemu). Ember's own loops are as wide there.
static bool processor_is_old(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return !__builtin_cpu_supports("sse4.2");
#else
  return false;
#endif
}

static bool accept(void *handle, char *why, size_t size) {
  if (processor_is_old()) {
    snprintf(why, size, "this processor has no SSE4.2");
    return false;
  }
  static const char *const prefixes[] = {"scipy_", ""};
  const char *missing = "cblas_sgemm";
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    const char *p = prefixes[i];
    if (symbol(handle, p, "cblas_sgemm") == NULL) continue;
    const struct { const char *name; void *to; } wanted[] = {
      {"cblas_sgemm", &table.sgemm}, {"cblas_dgemm", &table.dgemm}, {"cblas_cgemm", &table.cgemm}, {"cblas_zgemm", &table.zgemm}};
    missing = NULL;
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted && missing == NULL; w++) {
      void *fn = symbol(handle, p, wanted[w].name);
      if (fn == NULL) missing = wanted[w].name;
      else memcpy(wanted[w].to, &fn, sizeof fn);  // an object pointer into a function pointer, as POSIX has it
    }
    void *set = symbol(handle, p, "openblas_set_num_threads");
    if (missing == NULL && set == NULL) missing = "openblas_set_num_threads";
    if (missing != NULL) break;
    void (*set_num_threads)(int);
    memcpy(&set_num_threads, &set, sizeof set);
    set_num_threads(1);
    take_lapack(handle, p);
    void *config = symbol(handle, p, "openblas_get_config");
    char *(*get_config)(void);
    memcpy(&get_config, &config, sizeof config);
    snprintf(why, size, "%s", config == NULL ? "version unknown" : get_config());
    return true;
  }
  snprintf(why, size, "it has no %s", missing);
  return false;
}

static void open_once(void) {
  static const char *const in_folders[] = {"scipy_openblas32/lib/libscipy_openblas.so", "libopenblas.so.0", NULL};
  static const char *const on_system[] = {"libopenblas.so.0", "libopenblas.so", NULL};
  static const em_lib_spec spec = {"OpenBLAS", "EMBER_OPENBLAS", in_folders, on_system, accept};
  usable = em_priv_lib_open(&spec);
}

const em_lapack *em_priv_lapack(void) { return em_priv_blas() != NULL && has_lapack ? &lapack : NULL; }

const em_blas *em_priv_blas(void) {
  pthread_once(&once, open_once);
  return usable ? &table : NULL;
}
