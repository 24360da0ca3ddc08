// lib_onednn.c: the few functions of oneDNN's C interface that a matrix product needs, declared here because the library's headers are
// no part of the build. Constants and signatures are oneDNN 3's binary interface.
//
// Threads: oneDNN's gomp build shares libgomp's pool. A product is cut into pieces by size before it comes here, and each piece runs on
// one thread: the limit is this thread's own setting, and Ember's loops name their thread count in each call.
//
// Making a primitive takes longer than a product of middling size. Each thread keeps the last few that it made, with everything that a
// call needs but the addresses; a primitive's scratchpad belongs to the thread that made it, so they are not shared.
#include "lib_onednn.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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
  X(memory_set_data_handle, int, (void *memory, void *handle))                                                                \
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


// --- products that were made before

#define KEPT 16
typedef struct key { int64_t m, n, k, row[3], col[3]; int dtype[3], unused; } key;
typedef struct product {
  key key;
  uint64_t used;                     // when: the longest unused one makes room
  void *primitive, *stream, *memory[3];
  bool refused;                      // the library has no kernel for this
} product;
typedef struct products { product kept[KEPT]; uint64_t clock; } products;
static pthread_key_t products_key;   // frees a thread's products when it ends

static void product_clear(product *p) {
  for (int i = 0; i < 3; i++)
    if (p->memory[i] != NULL) dnnl.memory_destroy(p->memory[i]);
  if (p->stream != NULL) dnnl.stream_destroy(p->stream);
  if (p->primitive != NULL) dnnl.primitive_destroy(p->primitive);
  memset(p, 0, sizeof *p);
}
static void products_free(void *all) {
  for (int i = 0; i < KEPT; i++) product_clear(&((products *)all)->kept[i]);
  free(all);
}
static products *products_of_thread(void) {
  products *all = pthread_getspecific(products_key);
  if (all != NULL) return all;
  all = calloc(1, sizeof *all);
  if (all != NULL && pthread_setspecific(products_key, all) != 0) {
    free(all);
    all = NULL;
  }
  return all;
}

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
  if (pthread_key_create(&products_key, products_free) != 0) {
    snprintf(why, size, "there is no room for another thread-specific value");
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

static void *make_desc(const key *k, int i) {
  void *desc = NULL;
  const int dtype = k->dtype[i] == EM_BF16 ? DT_BF16 : k->dtype[i] == EM_F16 ? DT_F16 : DT_F32;
  const dims_t dims = {i == 1 ? k->k : k->m, i == 0 ? k->k : k->n}, strides = {k->row[i], k->col[i]};
  return dnnl.memory_desc_create_with_strides(&desc, 2, dims, dtype, strides) == 0 ? desc : NULL;
}
// Fills an empty entry. Whatever fails, the entry says so, and is not tried again while it is kept.
static void product_make(product *p) {
  void *desc[3] = {make_desc(&p->key, 0), make_desc(&p->key, 1), make_desc(&p->key, 2)}, *pd = NULL;
  bool ok = desc[0] != NULL && desc[1] != NULL && desc[2] != NULL;
  ok = ok && dnnl.matmul_primitive_desc_create(&pd, engine, desc[0], desc[1], NULL, desc[2], NULL) == 0;
  ok = ok && dnnl.primitive_create(&p->primitive, pd) == 0 && dnnl.stream_create(&p->stream, engine, STREAM_DEFAULT) == 0;
  for (int i = 0; i < 3 && ok; i++) ok = dnnl.memory_create(&p->memory[i], desc[i], engine, NULL) == 0;
  if (pd != NULL) dnnl.primitive_desc_destroy(pd);
  for (int i = 0; i < 3; i++)
    if (desc[i] != NULL) dnnl.memory_desc_destroy(desc[i]);
  p->refused = !ok;
}
static product *product_find(const key *k) {
  products *all = products_of_thread();
  product *oldest;
  if (all == NULL) return NULL;
  oldest = all->kept;
  for (product *p = all->kept; p < all->kept + KEPT; p++) {
    if (p->used != 0 && memcmp(&p->key, k, sizeof *k) == 0) {
      p->used = ++all->clock;
      return p;
    }
    if (p->used < oldest->used) oldest = p;
  }
  product_clear(oldest);
  oldest->key = *k;
  oldest->used = ++all->clock;
  product_make(oldest);
  return oldest;
}

bool em_priv_onednn_matmul(int64_t m, int64_t n, int64_t k, const em_onednn_operand *a, const em_onednn_operand *b,
                           const em_onednn_operand *c) {
  static const int which[3] = {ARG_SRC, ARG_WEIGHTS, ARG_DST};
  const em_onednn_operand *const operands[3] = {a, b, c};
  key wanted = {.m = m, .n = n, .k = k};
  exec_arg args[3];
  pthread_once(&once, open_once);
  if (!usable) return false;
  for (int i = 0; i < 3; i++) {
    wanted.dtype[i] = operands[i]->dtype;
    wanted.row[i] = operands[i]->row;
    wanted.col[i] = operands[i]->col;
  }
  const int threads = em_priv_threads_limit(1);
  product *p = product_find(&wanted);
  bool ok = p != NULL && !p->refused;
  for (int i = 0; i < 3 && ok; i++) {
    args[i] = (exec_arg){which[i], p->memory[i]};
    ok = dnnl.memory_set_data_handle(p->memory[i], (void *)(uintptr_t)operands[i]->data) == 0;
  }
  ok = ok && dnnl.primitive_execute(p->primitive, p->stream, 3, args) == 0 && dnnl.stream_wait(p->stream) == 0;
  (void)em_priv_threads_limit(threads);
  return ok;
}
