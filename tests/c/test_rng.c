// test_rng.c: the random streams against golden samples of torch (rng_golden.h), saved states, and what rng.h promises
// about pieces, strides and threads. test_rng.py compares bigger samples with a live torch.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

typedef enum fill {
  UNIFORM, NORMAL, NORMAL_SERIAL, RANDINT, RANDOM, RANDOM64, BERNOULLI, BERNOULLI_F32, EXPONENTIAL, GEOMETRIC, CAUCHY,
  LOG_NORMAL, RANDPERM,
} fill;
typedef struct golden_row {
  fill fill;
  em_rng_type type;
  uint64_t seed;
  int64_t n;
  double a, b;
  uint64_t samples[6], values_hash, state_hash;
  int caches;
} golden_row;
#include "rng_golden.h"

static int failures;
#define CHECK(ok, ...)                                  \
  do {                                                  \
    if (!(ok)) {                                        \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);   \
      fprintf(stderr, __VA_ARGS__);                     \
      fputc('\n', stderr);                              \
      failures++;                                       \
    }                                                   \
  } while (0)

static int64_t size_of(em_rng_type t) {
  switch (t) {
    case EM_RNG_U8: case EM_RNG_I8: case EM_RNG_BOOL: return 1;
    case EM_RNG_I16: case EM_RNG_U16: case EM_RNG_F16: case EM_RNG_BF16: return 2;
    case EM_RNG_I32: case EM_RNG_U32: case EM_RNG_F32: return 4;
    default: return 8;
  }
}

static uint64_t fnv(const void *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
  return h;
}

static void run(em_generator *g, fill f, em_rng_type t, void *out, int64_t stride, int64_t n, double a, double b) {
  float p = (float)a;
  int64_t from = (int64_t)a, to = (int64_t)b;
  switch (f) {
    case UNIFORM: em_rng_fill_uniform(g, t, out, stride, n, a, b); return;
    case NORMAL: em_rng_fill_normal(g, t, out, n, a, b); return;
    case NORMAL_SERIAL: em_rng_fill_normal_serial(g, t, out, stride, n, a, b); return;
    case RANDINT:
      em_rng_adjust_bounds(t, &from, &to);
      em_rng_fill_randint(g, t, out, stride, n, from, (uint64_t)to - (uint64_t)from);
      return;
    case RANDOM: em_rng_fill_random(g, t, out, stride, n); return;
    case RANDOM64: em_rng_fill_random64(g, t, out, stride, n); return;
    case BERNOULLI: em_rng_fill_bernoulli(g, t, out, stride, n, a); return;
    case BERNOULLI_F32: em_rng_fill_bernoulli_tensor(g, t, out, stride, n, EM_RNG_F32, &p, 0); return;
    case EXPONENTIAL: em_rng_fill_exponential(g, t, out, stride, n, a); return;
    case GEOMETRIC: em_rng_fill_geometric(g, t, out, stride, n, a); return;
    case CAUCHY: em_rng_fill_cauchy(g, t, out, stride, n, a, b); return;
    case LOG_NORMAL: em_rng_fill_log_normal(g, t, out, stride, n, a, b); return;
    case RANDPERM: em_rng_fill_randperm(g, t, out, n); return;
  }
}

static void test_golden(em_generator *g) {
  static uint8_t out[70000 * 8], state[EM_RNG_STATE_SIZE];
  for (size_t k = 0; k < sizeof golden / sizeof *golden; k++) {
    const golden_row *r = &golden[k];
    int64_t size = size_of(r->type), last = r->n - 1;
    int64_t at[6] = {0, last < 1 ? last : 1, last < 8 ? last : 8, r->n / 2, last < 8 ? 0 : last - 8, last};
    em_rng_seed(g, r->seed);
    run(g, r->fill, r->type, out, size, r->n, r->a, r->b);
    for (int i = 0; i < 6; i++) {
      uint64_t v = 0;
      memcpy(&v, out + at[i] * size, (size_t)size);
      uint64_t off = v > r->samples[i] ? v - r->samples[i] : r->samples[i] - v;
      CHECK(off <= (r->values_hash == 0 ? 4 : 0), "row %zu, element %lld: %llx, not %llx", k, (long long)at[i],
            (unsigned long long)v, (unsigned long long)r->samples[i]);
    }
    CHECK(r->values_hash == 0 || fnv(out, (size_t)(r->n * size)) == r->values_hash, "row %zu: other values", k);
    em_rng_get_state(g, state);
    CHECK(fnv(state, 5016) == r->state_hash, "row %zu: the stream is elsewhere", k);
    CHECK(state[5040] == r->caches, "row %zu: cached normal", k);
  }
}

// The engine alone, against the number that the C++ standard gives for std::mt19937.
static void test_engine(em_generator *g) {
  uint32_t words[700], last = 0;
  em_rng_seed(g, 5489);
  em_rng_lock(g);
  for (int i = 0; i < 10000; i++) last = em_rng_u32(g);
  em_rng_unlock(g);
  CHECK(last == 4123659995u, "the 10000th word is %u", last);
  em_generator *twin = em_generator_clone(g);
  for (int i = 0; i < 50; i++) {  // single draws and blocks of words walk the same stream
    em_priv_rng_words(g, words, (size_t)(i * 13 + 1));
    for (int j = 0; j < i * 13 + 1; j++) CHECK(words[j] == em_rng_u32(twin), "word %d of block %d", j, i);
    CHECK(em_rng_u64(g) == em_rng_u64(twin), "after block %d", i);
  }
  em_generator_release(twin);
}

// A fill in pieces, with gaps, equals the fill at once; the bytes in the gaps stay.
static void test_pieces(em_generator *g) {
  static const fill fills[] = {UNIFORM, NORMAL_SERIAL, RANDINT, RANDOM, BERNOULLI, BERNOULLI_F32, EXPONENTIAL,
                               GEOMETRIC, CAUCHY, LOG_NORMAL};
  static const em_rng_type types[] = {EM_RNG_F32, EM_RNG_F64, EM_RNG_F16, EM_RNG_BF16, EM_RNG_U8, EM_RNG_I64};
  static const int64_t pieces[] = {1, 2, 0, 15, 256, 300, 26};
  static uint8_t whole[600 * 8], parts[600 * 24], state[2][EM_RNG_STATE_SIZE];
  for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      if (t >= 4 && (fills[f] == UNIFORM || fills[f] == NORMAL_SERIAL || fills[f] >= EXPONENTIAL)) continue;
      int64_t size = size_of(types[t]), done = 0, gaps = 0;
      em_rng_seed(g, 7);
      run(g, fills[f], types[t], whole, size, 600, 0.25, 3);
      em_rng_get_state(g, state[0]);
      memset(parts, 0xa5, sizeof parts);
      em_rng_seed(g, 7);
      for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        run(g, fills[f], types[t], parts + done * 3 * size, 3 * size, pieces[p], 0.25, 3);
        done += pieces[p];
      }
      em_rng_get_state(g, state[1]);
      CHECK(done == 600 && memcmp(state[0], state[1], sizeof state[0]) == 0, "fill %zu, type %zu: state", f, t);
      for (int64_t i = 0; i < 600; i++) {
        CHECK(memcmp(whole + i * size, parts + i * 3 * size, (size_t)size) == 0, "fill %zu, type %zu: %lld", f, t,
              (long long)i);
        for (int64_t j = size; j < 3 * size; j++) gaps += parts[i * 3 * size + j] != 0xa5;
      }
      CHECK(gaps == 0, "fill %zu, type %zu: wrote between elements", f, t);
    }
  }
}

static void test_states(em_generator *g) {
  uint8_t saved[EM_RNG_STATE_SIZE + 1], again[EM_RNG_STATE_SIZE];
  double a[7], b[7];
  em_rng_seed(g, 11);
  em_rng_fill_normal(g, EM_RNG_F64, a, 3, 0, 1);  // leaves a cached normal
  em_rng_get_state(g, saved);
  em_generator *copy = em_generator_clone(g);
  em_rng_fill_normal(g, EM_RNG_F64, a, 7, 0, 1);
  em_rng_fill_normal(copy, EM_RNG_F64, b, 7, 0, 1);
  CHECK(memcmp(a, b, sizeof a) == 0, "a clone draws something else");
  CHECK(em_rng_initial_seed(copy) == 11, "a clone's seed");
  em_rng_seed(copy, 5);
  CHECK(em_rng_set_state(copy, saved, EM_RNG_STATE_SIZE) == EM_OK, "refused its own state");
  em_rng_get_state(copy, again);
  CHECK(memcmp(saved, again, sizeof again) == 0, "a state changed on the way");
  em_rng_fill_normal(copy, EM_RNG_F64, b, 7, 0, 1);
  CHECK(memcmp(a, b, sizeof a) == 0, "a restored generator draws something else");
  static const struct { int at; uint32_t value; } bad[] = {{8, 0}, {8, 625}, {8, ~0u}, {12, 0}, {16, 625}, {16, 600}};
  em_rng_get_state(g, again);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    memcpy(saved, again, sizeof again);
    memcpy(saved + 8, &(uint32_t){300}, 4);
    memcpy(saved + bad[i].at, &bad[i].value, 4);
    CHECK(em_rng_set_state(g, saved, EM_RNG_STATE_SIZE) == EM_ERR_RUNTIME, "took bad state %zu", i);
  }
  CHECK(em_rng_set_state(g, again, EM_RNG_STATE_SIZE - 8) == EM_ERR_RUNTIME, "took a short state");
  CHECK(em_rng_set_state(g, saved, EM_RNG_STATE_SIZE + 1) == EM_ERR_RUNTIME, "took a long state");
  em_rng_get_state(g, saved);
  CHECK(memcmp(saved, again, sizeof again) == 0, "a refused state left traces");
  em_generator_release(copy);
}

static void test_seeds(void) {
  em_generator *g = em_generator_new(), *d = em_default_generator();
  CHECK(em_rng_initial_seed(g) == 67280421310721u && em_rng_initial_seed(d) == 67280421310721u, "default seed");
  CHECK(d == em_default_generator() && d != g, "the default generator is one");
  uint64_t first = em_rng_seed_fresh(g), second = em_rng_seed_fresh(g);
  CHECK(first != second && em_rng_initial_seed(g) == second, "fresh seeds");
  em_generator_release(em_generator_retain(g));
  CHECK(em_rng_initial_seed(g) == second, "a retained generator lives");
  em_generator_release(g);
  em_generator_release(NULL);
}

static void *draw_many(void *g) {
  uint8_t v[100];
  for (int i = 0; i < 2000; i++) em_rng_fill_random(g, EM_RNG_U8, v, 1, 100);
  return NULL;
}

// No draw is lost or made twice when two threads share a generator.
static void test_threads(em_generator *g) {
  uint8_t alone[EM_RNG_STATE_SIZE], shared[EM_RNG_STATE_SIZE];
  pthread_t other;
  em_rng_seed(g, 3);
  draw_many(g);
  draw_many(g);
  em_rng_get_state(g, alone);
  em_rng_seed(g, 3);
  if (pthread_create(&other, NULL, draw_many, g) != 0) {
    CHECK(false, "no thread");
    return;
  }
  draw_many(g);
  pthread_join(other, NULL);
  em_rng_get_state(g, shared);
  CHECK(memcmp(alone, shared, sizeof alone) == 0, "two threads left the stream elsewhere");
}

int main(void) {
  int64_t live = em_alloc_live(EM_KIND_GENERATOR);
  em_generator *g = em_generator_new();
  test_golden(g);
  test_engine(g);
  test_pieces(g);
  test_states(g);
  test_seeds();
  test_threads(g);
  em_generator_release(g);
  CHECK(em_alloc_live(EM_KIND_GENERATOR) == live, "%lld generators left",
        (long long)(em_alloc_live(EM_KIND_GENERATOR) - live));
  return failures != 0;
}
