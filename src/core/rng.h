// rng.h: PyTorch's CPU random streams, draw for draw and bit for bit, on raw buffers. No tensors here: the operator
// layer checks arguments (from <= to, std >= 0, 0 <= p <= 1, ...), walks strides and calls the fills.
//
// Engine: mt19937 (M. Matsumoto, T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
// pseudo-random number generator", ACM TOMACS 8(1), 1998), seeded by its reference initialiser from the LOW 32 bits of
// the seed; the seed itself is kept in all 64 bits, for em_rng_initial_seed.
//
// Draws, as observed on torch 2.13 (CPU build) with tools/make_rng_golden.py and tests/c/test_rng.py:
//   u32   one engine output                 u64   two outputs, the first one is the HIGH half
//   u24   (u32 & (2^24 - 1)) * 2^-24        u53   (u64 & (2^53 - 1)) * 2^-53
// Every a * b + c below rounds once (fma): the reference's kernels are built so.
//
//   fill                  torch function             draws for n elements
//   em_rng_fill_uniform   uniform_, rand             f64: u53; f32, f16, bf16: u24 in f32, then cast. A value that
//                                                    rounds to `to` becomes `from`.
//   em_rng_fill_normal    normal_, randn, contiguous n < 16: em_rng_fill_normal_serial. Otherwise n uniforms (u24, f64:
//                                                    u53), Box-Muller on blocks of 16 (8 radii, then 8 angles); if
//                                                    16 does not divide n, 16 fresh uniforms replace the LAST 16
//                                                    values. f16, bf16: computed in f32, and the n mod 16 uniforms
//                                                    that the tail overwrites are not drawn.
//   ..._normal_serial     normal_ not contiguous     f64 Box-Muller of (u53, u53) for every dtype; the second value
//                                                    waits in the generator for the next call
//   em_rng_fill_randint   random_(from, to), randint range < 2^28: u32 % range; else u64 % range (NOT 2^32)
//   em_rng_fill_random    random_()                  u32 % (max + 1), floats u32 % (2^digits + 1), bool u32 & 1;
//                                                    i64 and f64 use u64
//   em_rng_fill_random64  random_(-2^63, None)       u64 (i64, f64, f32, bf16 only)
//   em_rng_fill_randperm  randperm                   n < (2^32 - 1) / 20: swap i with i + u32 % (n - i), n - 1 draws;
//                                                    else inside out: swap i with u64 % (i + 1), n draws
//   em_rng_fill_bernoulli bernoulli_(p), dropout     u53 < p for every dtype, p a double; p = 0 and 1 draw too
//   ..._bernoulli_tensor  bernoulli_(P), bernoulli   P f64: u53 < p; P f32, f16, bf16: u24 < p
//   em_rng_fill_exponential, _cauchy, _geometric     one u53 each, computed in f64, then cast
//   em_rng_fill_log_normal                           exp of the normal_serial stream (it shares the cached value)
// f32 normals of n >= 16 follow the reference's AVX2 kernel, whose log, sin and cos are the Cephes single-precision
// polynomials (S. Moshier); f64 uses libm, and so is equal wherever libm is.
//
// Order over strides: torch writes in its iterator's order, which for a dense permuted tensor is MEMORY order, and a
// transposed tensor is not "contiguous" for normal_ (so it takes the serial stream). A fill may be called piece by
// piece: except em_rng_fill_normal and randperm, k calls with n_1 .. n_k elements equal one call with their sum.
// Complex tensors are filled as twice as many reals (randn: std / sqrt(2)).
//
// Threads: each function locks the generator for its duration; em_rng_lock/unlock bracket a fork (and the inline
// draws em_rng_u32/u64, which do not lock). Fills of one generator are never split over threads.
#ifndef EMBER_CORE_RNG_H
#define EMBER_CORE_RNG_H
#include <pthread.h>
#include "refcount.h"
#include "status.h"

#define EM_RNG_DEFAULT_SEED 67280421310721ull
#define EM_RNG_MT_N 624

// The state is one plain struct so that draws inline. Touch only the lock-holding inline draws below.
struct em_generator {
  uint64_t seed;               // as given, all 64 bits
  int32_t left;                // engine outputs until the next regeneration, plus one: 1 .. 624
  uint32_t next;               // index of the next word; next + left - 1 <= 624, so draws stay inside `words`
  uint32_t words[EM_RNG_MT_N];
  double next_double_normal;   // the cached half of a Box-Muller pair, if has_double_normal
  float next_float_normal;     // never drawn on the CPU; kept because saved states carry it
  bool has_double_normal, has_float_normal;
  pthread_mutex_t mutex;
  em_ref refs;
};

// A fresh generator, seeded with EM_RNG_DEFAULT_SEED. NULL when there is no memory. Release drops one reference.
EM_PRIV em_generator *em_generator_new(void);
EM_PRIV em_generator *em_generator_retain(em_generator *g);
EM_PRIV void em_generator_release(em_generator *g);
// An independent generator in the same state (seed, engine, cached normals). NULL when there is no memory.
EM_PRIV em_generator *em_generator_clone(em_generator *g);
// The process's own generator: borrowed, lives for ever, made at first use.
EM_PRIV em_generator *em_default_generator(void);

EM_PRIV void em_rng_lock(em_generator *g);
EM_PRIV void em_rng_unlock(em_generator *g);

// torch.manual_seed(s): reseeds and drops cached normals. Negative Python seeds arrive as s + 2^64.
EM_PRIV void em_rng_seed(em_generator *g, uint64_t seed);
// torch.seed(): seeds from the system's entropy and returns the seed.
EM_PRIV uint64_t em_rng_seed_fresh(em_generator *g);
EM_PRIV uint64_t em_rng_initial_seed(em_generator *g);

// torch.get_rng_state()'s bytes, little-endian:
//      0 u64 seed    8 i32 left    12 i32 seeded    16 u64 next    24 u64[624] words (high halves 0)
//   5016 f64 0    5024 f64 cached double normal    5032 f64 0    5040 i32 has it    5048 f32 cached float normal
//   5052 u8 has it    padding is 0
#define EM_RNG_STATE_SIZE 5056
EM_PRIV void em_rng_get_state(em_generator *g, void *out);  // writes EM_RNG_STATE_SIZE bytes
// Refuses other sizes and states that no generator can be in, leaving `g` as it was.
EM_PRIV em_status em_rng_set_state(em_generator *g, const void *bytes, size_t size);

// Element types by PyTorch's ScalarType number (em_dtype_info.code).
typedef enum em_rng_type {
  EM_RNG_U8 = 0, EM_RNG_I8 = 1, EM_RNG_I16 = 2, EM_RNG_I32 = 3, EM_RNG_I64 = 4, EM_RNG_F16 = 5, EM_RNG_F32 = 6,
  EM_RNG_F64 = 7, EM_RNG_BOOL = 11, EM_RNG_BF16 = 15, EM_RNG_U16 = 27, EM_RNG_U32 = 28, EM_RNG_U64 = 29,
} em_rng_type;

// ---- fills: n elements of `type` from `data` on, `stride` bytes apart (the element size: contiguous) ----
EM_PRIV void em_rng_fill_uniform(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double from,
                                 double to);
// Contiguous and whole: the stream depends on n.
EM_PRIV void em_rng_fill_normal(em_generator *g, em_rng_type type, void *data, int64_t n, double mean, double std);
EM_PRIV void em_rng_fill_normal_serial(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n,
                                       double mean, double std);
// from + [0, range), range >= 1; the caller has moved the bounds with em_rng_adjust_bounds for float types.
EM_PRIV void em_rng_fill_randint(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, int64_t from,
                                 uint64_t range);
EM_PRIV void em_rng_fill_random(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n);
EM_PRIV void em_rng_fill_random64(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n);
EM_PRIV void em_rng_fill_bernoulli(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double p);
// One probability an element, of float type p_type; p_stride in bytes, 0 for one p for all.
EM_PRIV void em_rng_fill_bernoulli_tensor(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n,
                                          em_rng_type p_type, const void *p, int64_t p_stride);
EM_PRIV void em_rng_fill_exponential(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n,
                                     double lambda);
EM_PRIV void em_rng_fill_geometric(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double p);
EM_PRIV void em_rng_fill_cauchy(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n, double median,
                                double sigma);
EM_PRIV void em_rng_fill_log_normal(em_generator *g, em_rng_type type, void *data, int64_t stride, int64_t n,
                                    double mean, double std);
// A permutation of 0 .. n-1, contiguous. All types but bool and the wide unsigned ones, as in torch.
EM_PRIV void em_rng_fill_randperm(em_generator *g, em_rng_type type, void *data, int64_t n);

// random_(from, to) on a float type: moves the bounds inward to where casting cannot leave [from, to). f64, f32, f16
// and bf16; other types are left alone.
EM_PRIV void em_rng_adjust_bounds(em_rng_type type, int64_t *from, int64_t *to);

// ---- draws: the caller holds the lock ----
EM_PRIV void em_priv_rng_regenerate(em_generator *g);
// n tempered engine outputs, in order.
EM_PRIV void em_priv_rng_words(em_generator *g, uint32_t *out, size_t n);
// A standard normal number of the serial stream (f64 Box-Muller; the second value waits for the next call).
EM_PRIV double em_priv_rng_normal(em_generator *g);

static inline uint32_t em_rng_u32(em_generator *g) {
  if (EM_UNLIKELY(--g->left == 0)) em_priv_rng_regenerate(g);
  uint32_t y = g->words[g->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}
static inline uint64_t em_rng_u64(em_generator *g) {
  uint64_t high = em_rng_u32(g);
  return high << 32 | em_rng_u32(g);
}
#endif
