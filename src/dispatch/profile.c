// profile.c: a boxed fallback at the Profile key, above all layers but the function transforms. While a recording runs it
// notes begin, end, and if asked for shapes and bytes of every operator, those inside of composites too: their intervals
// lie within one another, which is all the tree there is. Without a recording no call comes here.
#include "profile.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "boxing.h"

static struct {
  pthread_mutex_t lock;
  em_profile_event *events;
  int64_t n, room;
  bool active, shapes, memory;
} recording = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic int threads_seen;
static _Thread_local int thread_number __attribute__((tls_model("initial-exec")));

static void lock(void) { pthread_mutex_lock(&recording.lock); }
static void unlock(void) { pthread_mutex_unlock(&recording.lock); }
__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(lock, unlock, unlock); }

int64_t em_profile_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
bool em_profile_active(void) { return recording.active; }

static void event_clear(em_profile_event *e) {
  if (e->op == NULL && e->name != NULL) em_free((char *)e->name, strlen(e->name) + 1);
  if (e->shapes != NULL) em_free(e->shapes, e->shapes_size);
}
// Takes the event. Out of memory: it is dropped, a measurement must not fail what it measures.
static void note(em_profile_event e) {
  if (thread_number == 0) thread_number = atomic_fetch_add(&threads_seen, 1) + 1;
  e.thread = thread_number;
  lock();
  bool fits = recording.active;
  if (fits && recording.n == recording.room) {
    int64_t room = recording.room == 0 ? 1024 : 2 * recording.room;
    em_profile_event *events = em_alloc((size_t)room * sizeof *events);
    fits = events != NULL;
    if (fits) {
      if (recording.n > 0) memcpy(events, recording.events, (size_t)recording.n * sizeof *events);
      if (recording.events != NULL) em_free(recording.events, (size_t)recording.room * sizeof *events);
      recording.events = events;
      recording.room = room;
    }
  }
  if (fits) recording.events[recording.n++] = e;
  unlock();
  if (!fits) event_clear(&e);
}

// ---------------------------------------------------------------- shapes
typedef struct text { char *at; size_t n, room; } text;  // at NULL: only counts
static void put(text *t, const char *s) {
  size_t n = strlen(s);
  if (t->at != NULL && t->n + n < t->room) memcpy(t->at + t->n, s, n + 1);
  t->n += n;
}
static void put_sizes(text *t, const em_tensor *x) {
  char number[24];
  put(t, "[");
  for (int d = 0; x != NULL && d < x->ndim; d++) {
    snprintf(number, sizeof number, "%s%lld", d == 0 ? "" : ", ", (long long)x->sizes[d]);
    put(t, number);
  }
  put(t, "]");
}
static void put_shapes(text *t, const em_operator *op, const em_value *args) {
  put(t, "[");
  for (int i = 0; i < op->nargs; i++) {
    if (i > 0) put(t, ", ");
    if (args[i].tag == EM_TAG_TENSOR) {
      put_sizes(t, args[i].tensor);
    } else if (args[i].tag == EM_TAG_TENSORS) {
      put(t, "[");
      for (int64_t k = 0; k < args[i].list.n; k++) {
        if (k > 0) put(t, ", ");
        put_sizes(t, args[i].list.tensors[k]);
      }
      put(t, "]");
    } else {
      put(t, "[]");
    }
  }
  put(t, "]");
}
static void take_shapes(em_profile_event *e, const em_value *args) {
  text t = {NULL, 0, 0};
  put_shapes(&t, e->op, args);
  e->shapes_size = t.n + 1;
  e->shapes = em_alloc(e->shapes_size);
  t = (text){e->shapes, 0, e->shapes_size};
  if (t.at != NULL) put_shapes(&t, e->op, args);
}

// ---------------------------------------------------------------- bytes
static bool reaches(const em_value *v, const em_storage *s) {
  if (v->tag == EM_TAG_TENSOR) return v->tensor != NULL && v->tensor->storage == s;
  for (int64_t k = 0; v->tag == EM_TAG_TENSORS && k < v->list.n; k++)
    if (v->list.tensors[k] != NULL && v->list.tensors[k]->storage == s) return true;
  return false;
}
// Of a result, unless it is a view of an argument, or one itself.
static int64_t new_bytes(const em_operator *op, const em_value *args, const em_tensor *t) {
  if (t == NULL || t->storage == NULL || t->device.type == EM_DEVICE_META) return 0;
  for (int i = 0; i < op->nargs; i++)
    if (reaches(&args[i], t->storage)) return 0;
  return (int64_t)t->storage->nbytes;
}
static int64_t all_new_bytes(const em_operator *op, const em_value *args, const em_value *rets) {
  int64_t n = 0;
  for (int i = 0; i < op->nrets; i++) {
    if (rets[i].tag == EM_TAG_TENSOR) n += new_bytes(op, args, rets[i].tensor);
    for (int64_t k = 0; rets[i].tag == EM_TAG_TENSORS && k < rets[i].list.n; k++)
      n += new_bytes(op, args, rets[i].list.tensors[k]);
  }
  return n;
}

// ---------------------------------------------------------------- the layer
static em_status measure(const em_operator *op, uint64_t ks, void *context, const em_value *args, em_value *rets) {
  (void)context;
  em_profile_event e = {.op = op, .name = op->full};
  if (recording.shapes) take_shapes(&e, args);
  e.begin = em_profile_now();
  em_status st = em_redispatch_boxed(op, ks & EM_KEYS_BELOW(EM_KEY_Profile), args, rets);
  e.end = em_profile_now();
  if (recording.memory && st == EM_OK) e.bytes = all_new_bytes(op, args, rets);
  note(e);
  return st;
}

em_status em_profile_range(const char *name, int64_t begin) {
  em_profile_event e = {.begin = begin, .end = em_profile_now()};
  if (!recording.active) return EM_OK;
  char *copy = em_alloc(strlen(name) + 1);
  if (copy == NULL) return EM_NOMEM(strlen(name) + 1);
  e.name = strcpy(copy, name);
  note(e);
  return EM_OK;
}

em_status em_profile_start(bool shapes, bool memory) {
  if (recording.active) return em_fail(EM_ERR_RUNTIME, "Profiler is already enabled on this thread");
  EM_PASS(em_dispatch_set_fallback(EM_KEY_Profile, measure, NULL, NULL, "profile"));
  recording.shapes = shapes;
  recording.memory = memory;
  recording.active = true;
  em_priv_global_include |= EM_KEYBIT(EM_KEY_Profile);
  return EM_OK;
}
void em_profile_stop(em_profile_event **events, int64_t *n) {
  lock();
  *events = recording.events;
  *n = recording.n;
  if (recording.n == 0 && recording.events != NULL)
    em_free(recording.events, (size_t)recording.room * sizeof *recording.events);
  if (recording.n == 0) *events = NULL;
  recording.events = NULL;
  bool was = recording.active;
  recording.active = false;
  recording.n = recording.room = 0;
  unlock();
  if (!was) return;
  em_priv_global_include &= ~EM_KEYBIT(EM_KEY_Profile);
  (void)em_dispatch_set_fallback(EM_KEY_Profile, NULL, NULL, NULL, NULL);
}
void em_profile_free(em_profile_event *events, int64_t n) {
  int64_t room = 1024;  // as note() grew it
  while (room < n) room *= 2;
  for (int64_t i = 0; i < n; i++) event_clear(&events[i]);
  if (events != NULL) em_free(events, (size_t)room * sizeof *events);
}
