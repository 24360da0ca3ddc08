// threads.c: loops over OpenMP's pool. libgomp's workers do not survive fork, so a child of a process that used them
// runs everything on its own thread: slower, but it never hangs.
#include "threads.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "note.h"
#include "tls.h"

// libgomp's stable entry points, found at the first parallel region: the same pool for gcc, clang and oneDNN, and neither
// -fopenmp nor the library itself is needed before. Opening it late has a second reason: libgomp reads its environment
// when it is loaded, and by default its idle workers spin for some 20 ms, which on a busy machine makes small work a
// hundred times slower than on one thread. Unless the user said otherwise they spin for microseconds here, then sleep.
static void (*gomp_parallel)(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags);
static int (*thread_num)(void), (*num_threads)(void), (*max_threads)(void);
static void (*set_threads)(int n);
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_open(void) {
  bool ours = getenv("OMP_WAIT_POLICY") == NULL && getenv("GOMP_SPINCOUNT") == NULL;
  if (ours) setenv("GOMP_SPINCOUNT", "300", 1);
  void *lib = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (ours) unsetenv("GOMP_SPINCOUNT");
  if (lib == NULL) {
    (void)em_warn("libgomp was not found (%s): everything runs on one thread", dlerror());
    return;
  }
  *(void **)&thread_num = dlsym(lib, "omp_get_thread_num");
  *(void **)&num_threads = dlsym(lib, "omp_get_num_threads");
  *(void **)&max_threads = dlsym(lib, "omp_get_max_threads");
  *(void **)&set_threads = dlsym(lib, "omp_set_num_threads");
  void *parallel = dlsym(lib, "GOMP_parallel");
  if (thread_num != NULL && num_threads != NULL) *(void **)&gomp_parallel = parallel;
}

void *(*em_priv_unlock_host)(void);
void (*em_priv_lock_host)(void *token);

static _Atomic int threads;       // 0: not decided
static _Atomic int pool_used;     // a parallel region ran in this process
static _Atomic int forked_after;  // this process is a child of one whose pool had run
static _Thread_local int in_region __attribute__((tls_model("initial-exec")));

static void fork_child(void) { if (atomic_load(&pool_used)) atomic_store(&forked_after, 1); }
__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, fork_child); }

static int default_threads(void) {
  const char *texts[] = {getenv("EMBER_NUM_THREADS"), getenv("OMP_NUM_THREADS")};
  for (int i = 0; i < 2; i++) {
    char *end = NULL;
    long n = texts[i] == NULL ? 0 : strtol(texts[i], &end, 10);
    if (i == 0 && n > 0 && *end != 0) n = 0;  // environment.c said so; OMP_NUM_THREADS may be a list
    if (n > 0) return n > 1024 ? 1024 : (int)n;
  }
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return n < 1 ? 1 : n;
}
int em_threads_get(void) {
  if (EM_UNLIKELY(atomic_load_explicit(&forked_after, memory_order_relaxed))) return 1;
  int n = atomic_load_explicit(&threads, memory_order_relaxed);
  if (n == 0) atomic_store(&threads, n = default_threads());
  return n;
}
int em_priv_threads_limit(int n) {
  pthread_once(&pool_once, pool_open);
  if (max_threads == NULL || set_threads == NULL) return n;
  int before = max_threads();
  set_threads(n);
  return before;
}
em_status em_threads_set(int n) {
  if (n < 1) return em_fail(EM_ERR_RUNTIME, "set_num_threads expects a positive integer, got %d", n);
  if (atomic_load(&forked_after) && n > 1)
    return em_warn(
        "set_num_threads(%d): this process was forked after its parent had used threads; it stays at one thread", n);
  atomic_store(&threads, n > 1024 ? 1024 : n);
  return EM_OK;
}
bool em_threads_in_region(void) { return in_region; }

typedef struct region {
  em_range_fn body;
  void *context;
  int64_t n, step;
  _Atomic int failed;  // the first worker that fails sets it and owns `status` and `text`
  em_status status;
  char text[512];
} region;

// Part w of the range belongs to thread w; when the run-time gave fewer threads than asked for, they take the rest in
// turn.
static void region_worker(void *arg) {
  region *r = arg;
  for (int64_t begin = thread_num() * r->step; begin < r->n; begin += num_threads() * r->step) {
    int64_t end = begin + r->step < r->n ? begin + r->step : r->n;
    in_region = 1;
    em_status st = r->body(r->context, begin, end);
    in_region = 0;
    if (st != EM_OK && atomic_exchange(&r->failed, 1) == 0) {
      r->status = st;
      strncpy(r->text, em_error_message(), sizeof r->text - 1);
    }
  }
}

em_status em_threads_for(int64_t n, int64_t grain, em_range_fn body, void *context) {
  if (n <= 0) return EM_OK;
  if (grain < 1) grain = 1;
  int64_t chunks = (n + grain - 1) / grain;
  int workers = chunks < em_threads_get() ? (int)chunks : em_threads_get();
  if (EM_UNLIKELY(em_priv_notes_wanted)) em_note_threads(workers, n, grain);
  if (workers <= 1 || in_region) return body(context, 0, n);
  pthread_once(&pool_once, pool_open);
  if (gomp_parallel == NULL) return body(context, 0, n);
  atomic_store_explicit(&pool_used, 1, memory_order_relaxed);
  region r = {.body = body, .context = context, .n = n, .step = (n + workers - 1) / workers};
  gomp_parallel(region_worker, &r, (unsigned)workers, 0);
  return r.failed ? em_fail(r.status, "%s", r.text) : EM_OK;
}
