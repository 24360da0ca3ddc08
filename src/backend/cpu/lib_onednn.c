// lib_onednn.c: the few functions of oneDNN's C interface that a matrix product needs, declared here because the library's headers are
// no part of the build. Constants and signatures are oneDNN 3's binary interface.
//
// Threads: oneDNN's gomp build shares libgomp's pool. A product is cut into pieces by size before it comes here, and each piece runs on
// one thread: the limit is this thread's own setting, and Ember's loops name their thread count in each call.
#include "lib_onednn.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "../../core/dtype.h"
#include "../../core/threads.h"

typedef int64_t dims_t[12];
typedef struct exec_arg { int arg; void *memory; } exec_arg;
typedef struct version_t { int major, minor, patch; const char *hash; unsigned cpu_runtime, gpu_runtime; } version_t;
enum { DT_F16 = 1, DT_BF16 = 2, DT_F32 = 3, ENGINE_CPU = 1, STREAM_DEFAULT = 1, ARG_SRC = 1, ARG_DST = 17, ARG_WEIGHTS = 33 };
enum { RUNTIME_OMP = 2 };

// name, result, arguments. A status of 0 is success.
#define FUNCTIONS(X)                                                                                                          \
  X(version, const version_t *, (void))                                                                                       \
  X(engine_create, int, (void **engine, int kind, size_t index))                                                              \
  X(stream_create, int, (void **stream, void *engine, unsigned flags))                                                        \
  X(stream_wait, int, (void *stream))                                                                                         \
  X(stream_destroy, int, (void *stream))                                                                                      \
  X(memory_desc_create_with_strides, int, (void **desc, int ndims, const dims_t dims, int dtype, const dims_t strides))       \
  X(memory_desc_destroy, int, (void *desc))                                                                                   \
  X(memory_create, int, (void **memory, const void *desc, void *engine, void *handle))                                        \
  X(memory_destroy, int, (void *memory))                                                                                      \
  X(matmul_primitive_desc_create, int,                                                                                        \
    (void **pd, void *engine, const void *src, const void *weights, const void *bias, const void *dst, const void *attr))     \
  X(primitive_desc_destroy, int, (void *pd))                                                                                  \
  X(primitive_create, int, (void **primitive, const void *pd))                                                                \
  X(primitive_execute, int, (const void *primitive, void *stream, int nargs, const exec_arg *args))                           \
  X(primitive_destroy, int, (void *primitive))

#define FIELD(name, result, args) result (*name) args;
static struct { FUNCTIONS(FIELD) } dnnl;
static void *engine;
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;


static bool accept(void *handle, char *why, size_t size) {
#define NAME(name, result, args) {"dnnl_" #name, &dnnl.name},
  const struct { const char *name; void *to; } wanted[] = {FUNCTIONS(NAME)};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *fn = dlsym(handle, wanted[i].name);
    if (fn == NULL) {
      snprintf(why, size, "it has no %s", wanted[i].name);
      return false;
    }
    memcpy(wanted[i].to, &fn, sizeof fn);
  }
  const version_t *v = dnnl.version();
  if (v->major != 3) {
    snprintf(why, size, "it is version %d.%d.%d; version 3 is wanted", v->major, v->minor, v->patch);
    return false;
  }
  if (v->cpu_runtime != RUNTIME_OMP) {
    snprintf(why, size, "it brings threads of its own (run-time %u); the OpenMP build is wanted", v->cpu_runtime);
    return false;
  }
  int status = dnnl.engine_create(&engine, ENGINE_CPU, 0);
  if (status != 0) {
    snprintf(why, size, "it made no engine (status %d)", status);
    return false;
  }
  snprintf(why, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
  return true;
}

static void open_once(void) {
  static const char *const in_folders[] = {"libdnnl.so.3", NULL};
  static const char *const on_system[] = {"libdnnl.so.3", NULL};
  static const em_lib_spec spec = {"oneDNN", "EMBER_ONEDNN", in_folders, on_system, accept};
  (void)em_priv_threads_limit(em_priv_threads_limit(1));  // the pool is set up by us, before oneDNN loads it
  usable = em_priv_lib_open(&spec);
}

// Without instructions for the dtype, oneDNN converts as Ember's own loops do, and gains nothing.
static bool processor_has(int dtype) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return dtype == EM_BF16 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool em_priv_onednn_likes(int dtype) {
  if (!processor_has(dtype)) return false;
  pthread_once(&once, open_once);
  return usable;
}

static void *make_desc(int64_t rows, int64_t cols, const em_onednn_operand *o) {
  void *desc = NULL;
  int dtype = o->dtype == EM_BF16 ? DT_BF16 : o->dtype == EM_F16 ? DT_F16 : DT_F32;
  const dims_t dims = {rows, cols}, strides = {o->row, o->col};
  return dnnl.memory_desc_create_with_strides(&desc, 2, dims, dtype, strides) == 0 ? desc : NULL;
}

static bool execute(void *primitive, void *const desc[3], const void *const data[3]) {
  static const int which[3] = {ARG_SRC, ARG_WEIGHTS, ARG_DST};
  exec_arg args[3] = {{ARG_SRC, NULL}, {ARG_WEIGHTS, NULL}, {ARG_DST, NULL}};
  void *stream = NULL;
  bool ok = dnnl.stream_create(&stream, engine, STREAM_DEFAULT) == 0;
  for (int i = 0; i < 3 && ok; i++) {
    args[i].arg = which[i];
    ok = dnnl.memory_create(&args[i].memory, desc[i], engine, (void *)(uintptr_t)data[i]) == 0;
  }
  ok = ok && dnnl.primitive_execute(primitive, stream, 3, args) == 0 && dnnl.stream_wait(stream) == 0;
  for (int i = 0; i < 3; i++)
    if (args[i].memory != NULL) dnnl.memory_destroy(args[i].memory);
  if (stream != NULL) dnnl.stream_destroy(stream);
  return ok;
}

bool em_priv_onednn_matmul(int64_t m, int64_t n, int64_t k, const em_onednn_operand *a, const em_onednn_operand *b,
                           const em_onednn_operand *c) {
  pthread_once(&once, open_once);
  if (!usable) return false;
  int threads = em_priv_threads_limit(1);
  void *desc[3] = {make_desc(m, k, a), make_desc(k, n, b), make_desc(m, n, c)}, *pd = NULL, *primitive = NULL;
  const void *data[3] = {a->data, b->data, c->data};
  bool ok = desc[0] != NULL && desc[1] != NULL && desc[2] != NULL;
  ok = ok && dnnl.matmul_primitive_desc_create(&pd, engine, desc[0], desc[1], NULL, desc[2], NULL) == 0;
  ok = ok && dnnl.primitive_create(&primitive, pd) == 0;
  ok = ok && execute(primitive, desc, data);
  if (primitive != NULL) dnnl.primitive_destroy(primitive);
  if (pd != NULL) dnnl.primitive_desc_destroy(pd);
  for (int i = 0; i < 3; i++)
    if (desc[i] != NULL) dnnl.memory_desc_destroy(desc[i]);
  (void)em_priv_threads_limit(threads);
  return ok;
}
