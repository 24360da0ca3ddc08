// rng.c: the generator: engine, seeds, saved states, life and death. The fills are in rng_fill.c.
#include "rng.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "alloc.h"
#include "rng_builds.h"

enum { MT_N = EM_RNG_MT_N, MT_M = 397 };

// ---- engine ----------------------------------------------------------------------------------------------------

static void mt_init(em_generator *g, uint64_t seed) {
  uint32_t w = (uint32_t)seed;
  g->seed = seed;
  for (uint32_t i = 0; i < MT_N; i++) {
    g->words[i] = w;
    w = 1812433253u * (w ^ (w >> 30)) + (i + 1);
  }
  g->left = 1;
  g->next = 0;
  g->has_double_normal = g->has_float_normal = false;
  g->next_double_normal = 0;
  g->next_float_normal = 0;
}

// One step of the recurrence: the top bit of `a` and the rest of `b`, times the twist matrix.
static inline uint32_t mt_twist(uint32_t a, uint32_t b) {
  return (((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1) ^ (-(b & 1u) & 0x9908b0dfu);
}

// Word i needs the old i+1 and word i+397 (mod 624), which is old in the first loop and new in the second; neither
// distance is below 227, so both loops vectorise.
EM_BODY(twist_all)(uint32_t *w) {
#pragma omp simd
  for (int i = 0; i < MT_N - MT_M; i++) w[i] = w[i + MT_M] ^ mt_twist(w[i], w[i + 1]);
#pragma omp simd safelen(64)
  for (int i = MT_N - MT_M; i < MT_N - 1; i++) w[i] = w[i + MT_M - MT_N] ^ mt_twist(w[i], w[i + 1]);
  w[MT_N - 1] = w[MT_M - 1] ^ mt_twist(w[MT_N - 1], w[0]);
}
EM_TWO_BUILDS(twist_all, (uint32_t *w), (w))

// Called when the last word was used.
void em_priv_rng_regenerate(em_generator *g) {
  twist_all(g->words);
  g->left = MT_N;
  g->next = 0;
}

EM_BODY(temper)(const uint32_t *w, uint32_t *out, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; i++) {
    uint32_t y = w[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
}
EM_TWO_BUILDS(temper, (const uint32_t *w, uint32_t *out, size_t n), (w, out, n))

void em_priv_rng_words(em_generator *g, uint32_t *out, size_t n) {
  while (n > 0) {
    if (g->left == 1) {
      em_priv_rng_regenerate(g);
      g->left = MT_N + 1;  // `left` counts before the draw here, after its decrement in em_rng_u32
    }
    size_t take = (size_t)(g->left - 1) < n ? (size_t)(g->left - 1) : n;
    temper(g->words + g->next, out, take);
    g->left -= (int32_t)take;
    g->next += (uint32_t)take;
    out += take;
    n -= take;
  }
}

// ---- life ------------------------------------------------------------------------------------------------------

static void generator_init(em_generator *g) {
  pthread_mutex_init(&g->mutex, NULL);  // cannot fail with default attributes
  atomic_init(&g->refs, 1);
  mt_init(g, EM_RNG_DEFAULT_SEED);
}

em_generator *em_generator_new(void) {
  em_generator *g = em_alloc(sizeof *g);
  if (g == NULL) return NULL;
  generator_init(g);
  em_priv_live(EM_KIND_GENERATOR, 1);
  return g;
}

em_generator *em_generator_retain(em_generator *g) {
  if (g == NULL) return NULL;
  em_ref_inc(&g->refs);
  return g;
}

void em_generator_release(em_generator *g) {
  if (g == NULL || !em_ref_dec(&g->refs)) return;
  pthread_mutex_destroy(&g->mutex);
  em_free(g, sizeof *g);
  em_priv_live(EM_KIND_GENERATOR, -1);
}

em_generator *em_generator_clone(em_generator *g) {
  if (g == NULL) return NULL;
  em_generator *copy = em_generator_new();
  if (copy == NULL) return NULL;
  em_rng_lock(g);
  memcpy(copy, g, offsetof(em_generator, mutex));
  em_rng_unlock(g);
  return copy;
}

static em_generator default_generator;
static pthread_once_t default_once = PTHREAD_ONCE_INIT;
static void default_init(void) { generator_init(&default_generator); }  // its first reference is never dropped

em_generator *em_default_generator(void) {
  pthread_once(&default_once, default_init);
  return &default_generator;
}

void em_rng_lock(em_generator *g) { pthread_mutex_lock(&g->mutex); }
void em_rng_unlock(em_generator *g) { pthread_mutex_unlock(&g->mutex); }

// ---- seeds -----------------------------------------------------------------------------------------------------

void em_rng_seed(em_generator *g, uint64_t seed) {
  em_rng_lock(g);
  mt_init(g, seed);
  em_rng_unlock(g);
}

uint64_t em_rng_seed_fresh(em_generator *g) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {  // kernels without it: the clock differs by call
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    seed = ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * 0x9e3779b97f4a7c15u;
  }
  em_rng_seed(g, seed);
  return seed;
}

uint64_t em_rng_initial_seed(em_generator *g) {
  em_rng_lock(g);
  uint64_t seed = g->seed;
  em_rng_unlock(g);
  return seed;
}

// ---- saved states ----------------------------------------------------------------------------------------------

// The layout of rng.h as a C struct. Its padding is part of the format and written as zero.
typedef struct saved_state {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t words[MT_N];
  double unused_x, double_normal, unused_rho;
  int32_t has_double_normal, pad0;
  float float_normal;
  uint8_t has_float_normal, pad1[3];
} saved_state;
_Static_assert(sizeof(saved_state) == EM_RNG_STATE_SIZE, "torch.get_rng_state()'s size");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "saved states are little-endian; swap here");

void em_rng_get_state(em_generator *g, void *out) {
  saved_state s;
  memset(&s, 0, sizeof s);
  em_rng_lock(g);
  s.seed = g->seed;
  s.left = g->left;
  s.seeded = 1;
  s.next = g->next;
  for (int i = 0; i < MT_N; i++) s.words[i] = g->words[i];
  if (g->has_double_normal) {
    s.double_normal = g->next_double_normal;
    s.has_double_normal = 1;
  }
  if (g->has_float_normal) {
    s.float_normal = g->next_float_normal;
    s.has_float_normal = 1;
  }
  em_rng_unlock(g);
  memcpy(out, &s, sizeof s);
}

em_status em_rng_set_state(em_generator *g, const void *bytes, size_t size) {
  saved_state s;
  if (size != sizeof s)
    return em_fail(EM_ERR_RUNTIME,
                   "Expected a CPUGeneratorImplState of size %zu but found the input RNG state size to be %zu",
                   sizeof s, size);
  memcpy(&s, bytes, sizeof s);
  uint32_t next = (uint32_t)s.next;  // torch keeps 32 bits
  // The last condition is stricter than torch, which would draw past its array from such a state.
  if (s.seeded == 0 || s.left < 1 || s.left > MT_N || next > MT_N || next + (uint32_t)s.left - 1 > MT_N)
    return em_fail(EM_ERR_RUNTIME, "Invalid mt19937 state");
  em_rng_lock(g);
  g->seed = s.seed;
  g->left = s.left;
  g->next = next;
  for (int i = 0; i < MT_N; i++) g->words[i] = (uint32_t)s.words[i];
  g->has_double_normal = s.has_double_normal != 0;
  g->next_double_normal = g->has_double_normal ? s.double_normal : 0;
  g->has_float_normal = s.has_float_normal != 0;
  g->next_float_normal = g->has_float_normal ? s.float_normal : 0;
  em_rng_unlock(g);
  return EM_OK;
}
