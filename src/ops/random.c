// random.c: random operators over the streams of src/core/rng.h. Elements are drawn in memory order of dense tensors
// and in iteration order of others, one generator never split over threads: so a seed gives PyTorch's numbers.
#include <math.h>
#include "../core/note.h"
#include "../core/rng.h"
#include "../dispatch/random_fill.h"
#include "copy.h"
#include "gen_ops.h"

static em_generator *generator_of(em_generator *g) { return g != NULL ? g : em_default_generator(); }
static bool real_view(const em_tensor *t) { return em_dtype_is_complex(t->dtype); }

// Runs `fn` over the runs of `self`, in order, on one thread.
typedef em_status (*run_fn)(void *context, char *data, int64_t stride, int64_t n);
typedef struct runner { run_fn fn; void *context; } runner;
static em_status run_one(void *context, char **data, const int64_t *strides, int64_t n) {
  runner *r = context;
  return r->fn(r->context, data[0], strides[0], n);
}
static em_status each_run(em_tensor *self, run_fn fn, void *context) {
  EM_PASS(em_shape_assert_no_internal_overlap(self));
  if (self->device.type == EM_DEVICE_META || self->numel == 0) return EM_OK;
  em_iter *it = em_alloc(sizeof *it);
  if (it == NULL) return EM_NOMEM(sizeof *it);
  em_iter_init(it, EM_ITER_MEM_OVERLAP_OK);
  em_iter_add_output(it, self, self->dtype);
  em_status st = em_iter_build(it, EM_PROMO_NONE);
  runner r = {fn, context};
  if (st == EM_OK)
    EM_NOTE("random fill: %lld %s elements in runs of %lld, %s", (long long)it->numel, em_dtype_name(self->dtype), (long long)it->sizes[0],
            it->op[0].strides[0] == (int64_t)em_tensor_itemsize(self) ? "side by side" : "apart (runs side by side refused: strided)");
  if (st == EM_OK) st = em_iter_for_each(it, run_one, &r, INT64_MAX);
  em_iter_abandon(it);
  em_free(it, sizeof *it);
  return st;
}

typedef struct fill {
  em_generator *g;
  em_rng_type type;
  int kind;
  double a, b;
  int64_t from;
  uint64_t range;
} fill;
enum { UNIFORM, NORMAL_SERIAL, RANDINT, RANDOM, RANDOM64, BERNOULLI, EXPONENTIAL, GEOMETRIC, CAUCHY, LOG_NORMAL };

static em_status fill_run(void *context, char *data, int64_t stride, int64_t n) {
  fill *f = context;
  switch (f->kind) {
    case UNIFORM: em_rng_fill_uniform(f->g, f->type, data, stride, n, f->a, f->b); break;
    case NORMAL_SERIAL: em_rng_fill_normal_serial(f->g, f->type, data, stride, n, f->a, f->b); break;
    case RANDINT: em_rng_fill_randint(f->g, f->type, data, stride, n, f->from, f->range); break;
    case RANDOM: em_rng_fill_random(f->g, f->type, data, stride, n); break;
    case RANDOM64: em_rng_fill_random64(f->g, f->type, data, stride, n); break;
    case BERNOULLI: em_rng_fill_bernoulli(f->g, f->type, data, stride, n, f->a); break;
    case EXPONENTIAL: em_rng_fill_exponential(f->g, f->type, data, stride, n, f->a); break;
    case GEOMETRIC: em_rng_fill_geometric(f->g, f->type, data, stride, n, f->a); break;
    case CAUCHY: em_rng_fill_cauchy(f->g, f->type, data, stride, n, f->a, f->b); break;
    default: em_rng_fill_log_normal(f->g, f->type, data, stride, n, f->a, f->b); break;
  }
  return EM_OK;
}
static em_status fill_all(em_tensor *self, em_generator *g, int kind, double a, double b) {
  fill f = {.g = generator_of(g), .type = (em_rng_type)em_priv_dtypes[self->dtype].code, .kind = kind, .a = a, .b = b};
  if (f.g == NULL) return EM_NOMEM(sizeof *f.g);
  return each_run(self, fill_run, &f);
}
static em_status need_float(const em_tensor *self, const char *name) {
  if (em_dtype_is_float(self->dtype)) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, em_dtype_scalar_name(self->dtype));
}
static const char *limits_of(int dtype, double *lo, double *hi) {
  static const double top[EM_NUM_DTYPES] = {
      [EM_F16] = 65504.0, [EM_BF16] = 0x1.fep127, [EM_F32] = 0x1.fffffep127, [EM_F64] = 0x1.fffffffffffffp1023};
  *hi = top[dtype];
  *lo = -top[dtype];
  return em_dtype_name(dtype);
}

em_status n_uniform_(uint64_t ks, em_tensor *self, double from, double to, em_generator *generator) {
  if (real_view(self)) {
    em_tensor *pairs;
    EM_PASS(em_call_view_as_real(self, &pairs));
    em_status st = n_uniform_(ks, pairs, from, to, generator);
    em_tensor_release(pairs);
    return st;
  }
  EM_PASS(need_float(self, "check_uniform_bounds"));
  double lo, hi;
  const char *name = limits_of(self->dtype, &lo, &hi);
  if (!(from >= lo && from <= hi)) return em_fail(EM_ERR_RUNTIME, "from is out of bounds for %s", name);
  if (!(to >= lo && to <= hi)) return em_fail(EM_ERR_RUNTIME, "to is out of bounds for %s", name);
  if (from > to)
    return em_fail(EM_ERR_RUNTIME, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from,
                   to);
  if (to - from > hi)
    return em_fail(EM_ERR_RUNTIME,
                   "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g which "
                   "result in to-from to exceed the limit",
                   name, to, from);
  return fill_all(self, generator, UNIFORM, from, to);
}

em_status n_normal_(uint64_t ks, em_tensor *self, double mean, double std, em_generator *generator) {
  if (!(std >= 0)) return em_fail(EM_ERR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
  if (real_view(self)) {  // variance is shared between the two parts
    em_tensor *pairs;
    EM_PASS(em_call_view_as_real(self, &pairs));
    em_status st = n_normal_(ks, pairs, mean, std / sqrt(2), generator);
    em_tensor_release(pairs);
    return st;
  }
  EM_PASS(need_float(self, "normal_kernel_cpu"));
  if (self->device.type == EM_DEVICE_META || self->numel == 0) return EM_OK;
  em_generator *g = generator_of(generator);
  if (g == NULL) return EM_NOMEM(sizeof *g);
  if (self->numel < 16 || !em_tensor_is_contiguous(self)) {
    EM_NOTE("serial normals: %lld, one pair of draws after another in double; on 1 thread (blocks of 16 refused: %s)",
            (long long)self->numel,
            self->numel < 16 ? "fewer than 16 elements" : "not contiguous");
    return fill_all(self, g, NORMAL_SERIAL, mean, std);
  }
  EM_NOTE("blocks of 16 normals: %lld elements, uniforms turned by Box-Muller; on 1 thread (pairs one after another refused: "
          "contiguous, 16 or "
          "more; threads refused: a generator's draws have one order)", (long long)self->numel);
  em_priv_fill_whole(g, self, EM_FILL_NORMAL, mean, std);
  return EM_OK;
}

// --- integers in [from, to)
static em_status check_from_to(const em_tensor *self, int64_t *from, int64_t to_last) {
  static const int64_t low[EM_NUM_DTYPES] = {[EM_U8] = 0,          [EM_I8] = INT8_MIN,   [EM_I16] = INT16_MIN,
                                             [EM_I32] = INT32_MIN, [EM_I64] = INT64_MIN, [EM_BOOL] = 0};
  static const int64_t high[EM_NUM_DTYPES] = {[EM_U8] = UINT8_MAX,  [EM_I8] = INT8_MAX,   [EM_I16] = INT16_MAX,
                                              [EM_I32] = INT32_MAX, [EM_I64] = INT64_MAX, [EM_BOOL] = 1};
  if (!em_dtype_is_integral(self->dtype)) return EM_OK;
  if (*from < low[self->dtype] || *from > high[self->dtype])
    return em_fail(EM_ERR_RUNTIME, "from is out of bounds for %s", em_dtype_name(self->dtype));
  if (to_last < low[self->dtype] || to_last > high[self->dtype])
    return em_fail(EM_ERR_RUNTIME, "to - 1 is out of bounds for %s", em_dtype_name(self->dtype));
  return EM_OK;
}
em_status n_random_from_(uint64_t ks, em_tensor *self, int64_t from, em_opt_int to, em_generator *generator) {
  (void)ks;
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"random_from_to\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  fill f = {.g = generator_of(generator), .type = (em_rng_type)em_priv_dtypes[self->dtype].code, .kind = RANDINT};
  if (f.g == NULL) return EM_NOMEM(sizeof *f.g);
  if (to.has) {
    if (from >= to.v)
      return em_fail(EM_ERR_RUNTIME, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                     (long long)from, (long long)to.v);
    em_rng_adjust_bounds(f.type, &from, &to.v);
    if (from >= to.v)
      return em_fail(
          EM_ERR_RUNTIME,
          "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= to=%lld",
          (long long)from, (long long)to.v);
    EM_PASS(check_from_to(self, &from, to.v - 1));
    f.range = (uint64_t)to.v - (uint64_t)from;
  } else if (from != INT64_MIN) {  // [from, the largest value that the dtype holds exactly]
    static const int64_t top[EM_NUM_DTYPES] = {[EM_U8] = UINT8_MAX,        [EM_I8] = INT8_MAX,   [EM_I16] = INT16_MAX,
                                               [EM_I32] = INT32_MAX,       [EM_I64] = INT64_MAX, [EM_BOOL] = 1,
                                               [EM_F16] = 1 << 11,         [EM_BF16] = 1 << 8,   [EM_F32] = 1 << 24,
                                               [EM_F64] = (int64_t)1 << 53};
    int64_t last = top[self->dtype];
    em_rng_adjust_bounds(f.type, &from, &last);
    EM_PASS(check_from_to(self, &from, last));
    f.range = (uint64_t)last - (uint64_t)from + 1;
  } else {
    f.kind = RANDOM64;
  }
  f.from = from;
  return each_run(self, fill_run, &f);
}
em_status n_random_to_(uint64_t ks, em_tensor *self, int64_t to, em_generator *generator) {
  return n_random_from_(ks, self, 0, em_some_int(to), generator);
}
em_status n_random_(uint64_t ks, em_tensor *self, em_generator *generator) {
  (void)ks;
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"random_\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  return fill_all(self, generator, RANDOM, 0, 0);
}

// --- Bernoulli
em_status n_bernoulli_float_(uint64_t ks, em_tensor *self, double p, em_generator *generator) {
  (void)ks;
  if (!(p >= 0 && p <= 1)) return em_fail(EM_ERR_RUNTIME, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"bernoulli_scalar_cpu_\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  return fill_all(self, generator, BERNOULLI, p, 0);
}
typedef struct coin { em_generator *g; em_rng_type type, p_type; } coin;
static em_status coin_run(void *context, char **data, const int64_t *strides, int64_t n) {
  coin *c = context;
  em_rng_fill_bernoulli_tensor(c->g, c->type, data[0], strides[0], n, c->p_type, data[1], strides[1]);
  return EM_OK;
}
static em_status check_probabilities(em_tensor *p) {
  if (p->device.type != EM_DEVICE_CPU || p->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *lo = NULL, *hi = NULL;
  em_scalar a, b;
  EM_TRY(em_call_amin(p, (em_ints){NULL, 0}, false, &lo));
  EM_TRY(em_call_amax(p, (em_ints){NULL, 0}, false, &hi));
  EM_TRY(em_tensor_item(lo, &a));
  EM_TRY(em_tensor_item(hi, &b));
  if (!(em_scalar_to_double(a) >= 0 && em_scalar_to_double(b) <= 1))
    EM_FAIL(EM_ERR_RUNTIME, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
fail:
  em_tensor_release(lo);
  em_tensor_release(hi);
  return st;
}
em_status n_bernoulli_tensor_(uint64_t ks, em_tensor *self, em_tensor *p, em_generator *generator) {
  (void)ks;
  EM_PASS(em_shape_assert_no_internal_overlap(self));
  EM_PASS(need_float(p, "bernoulli_tensor_cpu_p_"));
  EM_PASS(check_probabilities(p));
  if (self->device.type == EM_DEVICE_META || self->numel == 0) return EM_OK;
  coin c = {generator_of(generator), (em_rng_type)em_priv_dtypes[self->dtype].code,
            (em_rng_type)em_priv_dtypes[p->dtype].code};
  if (c.g == NULL) return EM_NOMEM(sizeof *c.g);
  em_iter *it = em_alloc(sizeof *it);
  if (it == NULL) return EM_NOMEM(sizeof *it);
  em_iter_init(it, EM_ITER_MEM_OVERLAP_OK | EM_ITER_INPLACE);
  em_iter_add_output(it, self, self->dtype);
  em_iter_add_input(it, p);
  em_status st = em_iter_build(it, EM_PROMO_NONE);
  if (st == EM_OK) st = em_iter_for_each(it, coin_run, &c, INT64_MAX);
  em_iter_abandon(it);
  em_free(it, sizeof *it);
  return st;
}
em_status n_bernoulli(uint64_t ks, em_tensor *self, em_generator *generator, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_priv_empty_like(self, self->dtype, self->device, EM_FORMAT_CONTIGUOUS, &t));
  em_status st = n_bernoulli_tensor_(ks, t, self, generator);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status n_bernoulli_p(uint64_t ks, em_tensor *self, double p, em_generator *generator, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_priv_empty_like(self, self->dtype, self->device, EM_FORMAT_PRESERVE, &t));
  em_status st = n_bernoulli_float_(ks, t, p, generator);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}

// --- other distributions
em_status n_exponential_(uint64_t ks, em_tensor *self, double lambd, em_generator *generator) {
  (void)ks;
  if (!(lambd > 0)) return em_fail(EM_ERR_RUNTIME, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
  EM_PASS(need_float(self, "exponential_cpu"));
  return fill_all(self, generator, EXPONENTIAL, lambd, 0);
}
em_status n_geometric_(uint64_t ks, em_tensor *self, double p, em_generator *generator) {
  (void)ks;
  if (!(p > 0 && p < 1)) return em_fail(EM_ERR_RUNTIME, "geometric_ expects p to be in (0, 1), but got p=%g", p);
  if (em_dtype_is_complex(self->dtype) || self->dtype == EM_BOOL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"geometric_cpu\" not implemented for '%s'",
                   em_dtype_scalar_name(self->dtype));
  return fill_all(self, generator, GEOMETRIC, p, 0);
}
em_status n_cauchy_(uint64_t ks, em_tensor *self, double median, double sigma, em_generator *generator) {
  (void)ks;
  if (!(sigma > 0)) return em_fail(EM_ERR_RUNTIME, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
  EM_PASS(need_float(self, "cauchy_cpu"));
  return fill_all(self, generator, CAUCHY, median, sigma);
}
em_status n_log_normal_(uint64_t ks, em_tensor *self, double mean, double std, em_generator *generator) {
  (void)ks;
  if (!(std > 0)) return em_fail(EM_ERR_RUNTIME, "log_normal_ expects std > 0.0, but found std=%g", std);
  EM_PASS(need_float(self, "log_normal_cpu"));
  return fill_all(self, generator, LOG_NORMAL, mean, std);
}

// --- factories: an empty tensor, then the in-place fill
#define OPTIONS int dtype, int layout, em_device device, em_opt_bool pin_memory
static em_status finish(em_status st, em_tensor *t, em_tensor **out) {
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
#define FACTORY(NAME, FILL)                                                                                            \
  em_status n_##NAME##_generator(uint64_t ks, em_ints size, em_generator *generator, OPTIONS, em_tensor **out) {       \
    em_tensor *t;                                                                                                      \
    EM_PASS(em_call_empty_memory_format(size, dtype, layout, device, pin_memory, EM_FORMAT_NONE, &t));                 \
    return finish(FILL(ks, t, 0, 1, generator), t, out);                                                               \
  }                                                                                                                    \
  em_status n_##NAME(uint64_t ks, em_ints size, OPTIONS, em_tensor **out) {                                            \
    return n_##NAME##_generator(ks, size, NULL, dtype, layout, device, pin_memory, out);                               \
  }                                                                                                                    \
  em_status n_##NAME##_like(uint64_t ks, em_tensor *self, OPTIONS, int memory_format, em_tensor **out) {               \
    em_tensor *t;                                                                                                      \
    EM_PASS(em_call_empty_like(self, dtype, layout, device, pin_memory, memory_format, &t));                           \
    return finish(FILL(ks, t, 0, 1, NULL), t, out);                                                                    \
  }
FACTORY(rand, n_uniform_)
FACTORY(randn, n_normal_)

em_status n_randint_low_generator(uint64_t ks, int64_t low, int64_t high, em_ints size, em_generator *generator,
                                  OPTIONS, em_tensor **out) {
  em_tensor *t;
  EM_PASS(
      em_call_empty_memory_format(size, dtype < 0 ? EM_I64 : dtype, layout, device, pin_memory, EM_FORMAT_NONE, &t));
  return finish(n_random_from_(ks, t, low, em_some_int(high), generator), t, out);
}
em_status n_randint_low(uint64_t ks, int64_t low, int64_t high, em_ints size, OPTIONS, em_tensor **out) {
  return n_randint_low_generator(ks, low, high, size, NULL, dtype, layout, device, pin_memory, out);
}
em_status n_randint_generator(uint64_t ks, int64_t high, em_ints size, em_generator *generator, OPTIONS,
                              em_tensor **out) {
  return n_randint_low_generator(ks, 0, high, size, generator, dtype, layout, device, pin_memory, out);
}
em_status n_randint(uint64_t ks, int64_t high, em_ints size, OPTIONS, em_tensor **out) {
  return n_randint_low_generator(ks, 0, high, size, NULL, dtype, layout, device, pin_memory, out);
}
em_status n_randint_like_low(uint64_t ks, em_tensor *self, int64_t low, int64_t high, OPTIONS, int memory_format,
                             em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_call_empty_like(self, dtype, layout, device, pin_memory, memory_format, &t));
  return finish(n_random_from_(ks, t, low, em_some_int(high), NULL), t, out);
}
em_status n_randint_like(uint64_t ks, em_tensor *self, int64_t high, OPTIONS, int memory_format, em_tensor **out) {
  return n_randint_like_low(ks, self, 0, high, dtype, layout, device, pin_memory, memory_format, out);
}
em_status n_randperm_generator(uint64_t ks, int64_t n, em_generator *generator, OPTIONS, em_tensor **out) {
  (void)ks;
  if (dtype < 0) dtype = EM_I64;
  if (n < 0) return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: [%lld]", (long long)n, (long long)n);
  if (dtype == EM_BOOL || em_dtype_is_complex(dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"randperm\" not implemented for '%s'", em_dtype_scalar_name(dtype));
  _Alignas(16) char largest[16];
  if (em_dtype_is_integral(dtype) && n > 0) EM_PASS(em_scalar_store(em_scalar_int(n - 1), dtype, largest));
  static const struct { int dtype; int64_t most; const char *text; } limits[] = {
      {EM_F16, 2049, "2049"}, {EM_F32, (1 << 24) + 1, "2^24+1"}, {EM_F64, ((int64_t)1 << 53) + 1, "2^53+1"}};
  for (int i = 0; i < 3; i++)
    if (dtype == limits[i].dtype && n > limits[i].most)
      return em_fail(EM_ERR_RUNTIME, "n cannot be greater than %s for %s type.", limits[i].text, em_dtype_scalar_name(dtype));
  em_tensor *t;
  EM_PASS(em_call_empty_memory_format((em_ints){&n, 1}, dtype, layout, device, pin_memory, EM_FORMAT_NONE, &t));
  em_generator *g = generator_of(generator);
  if (g == NULL) return finish(EM_NOMEM(sizeof *g), t, out);
  if (t->device.type == EM_DEVICE_CPU && n > 0)
    em_priv_fill_whole(g, t, EM_FILL_RANDPERM, 0, 0);
  *out = t;
  return EM_OK;
}
em_status n_randperm(uint64_t ks, int64_t n, OPTIONS, em_tensor **out) {
  return n_randperm_generator(ks, n, NULL, dtype, layout, device, pin_memory, out);
}

em_status c_normal_float_float(double mean, double std, em_ints size, em_generator *generator, OPTIONS,
                               em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_call_empty_memory_format(size, dtype, layout, device, pin_memory, EM_FORMAT_NONE, &t));
  return finish(em_call_normal_(t, mean, std, generator), t, out);
}
// mean + std * standard normals, broadcast.
em_status c_normal_tensor_tensor(em_tensor *mean, em_tensor *std, em_generator *generator, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *z = NULL, *scaled = NULL, *lowest = NULL;
  if (std->numel > 0 && std->device.type == EM_DEVICE_CPU && !em_dtype_is_complex(std->dtype)) {
    em_scalar s;
    EM_TRY(em_call_amin(std, (em_ints){NULL, 0}, false, &lowest));
    EM_TRY(em_tensor_item(lowest, &s));
    if (!(em_scalar_to_double(s) >= 0)) EM_FAIL(EM_ERR_RUNTIME, "normal expects all elements of std >= 0.0");
  }
  em_shape shape;
  EM_TRY(em_shape_of(mean, &shape));
  EM_TRY(em_shape_broadcast(&shape, std->ndim, std->sizes));
  EM_TRY(em_call_empty_memory_format((em_ints){shape.sizes, shape.ndim}, mean->dtype, -1, mean->device, -1,
                                     EM_FORMAT_NONE, &z));
  EM_TRY(em_call_normal_(z, 0, 1, generator));
  EM_TRY(em_call_mul_Tensor(z, std, &scaled));
  EM_TRY(em_call_add_Tensor(scaled, mean, em_scalar_int(1), out));
fail:
  em_tensor_release(z);
  em_tensor_release(scaled);
  em_tensor_release(lowest);
  return st;
}
em_status c_normal_tensor_float(em_tensor *mean, double std, em_generator *generator, em_tensor **out) {
  if (!(std >= 0)) return em_fail(EM_ERR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
  em_tensor *s;
  EM_PASS(em_tensor_from_scalar(em_scalar_double(std), mean->dtype, mean->device, &s));
  em_status st = c_normal_tensor_tensor(mean, s, generator, out);
  em_tensor_release(s);
  return st;
}
em_status c_normal_float_tensor(double mean, em_tensor *std, em_generator *generator, em_tensor **out) {
  em_tensor *m;
  EM_PASS(em_tensor_from_scalar(em_scalar_double(mean), std->dtype, std->device, &m));
  em_status st = c_normal_tensor_tensor(m, std, generator, out);
  em_tensor_release(m);
  return st;
}

// --- dropout: noise of 0 and 1/(1-p), one product; its gradient is the product's
static em_status check_p(double p) {
  if (p >= 0 && p <= 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "dropout probability has to be between 0 and 1, but got %g", p);
}
static em_status noise(em_tensor *input, double p, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *t = NULL;
  EM_TRY(em_call_empty_like(input, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &t));
  EM_TRY(em_call_bernoulli__float(t, 1 - p, NULL));
  EM_TRY(em_call_div__Scalar(t, em_scalar_double(1 - p)));
  *out = t;
  return EM_OK;
fail:
  em_tensor_release(t);
  return st;
}
em_status c_dropout(em_tensor *input, double p, bool train, em_tensor **out) {
  EM_PASS(check_p(p));
  if (!train || p == 0 || input->numel == 0) {
    *out = em_tensor_retain(input);
    return EM_OK;
  }
  em_tensor *n;
  if (p == 1) EM_PASS(em_call_zeros_like(input, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &n));
  else EM_PASS(noise(input, p, &n));
  em_status st = em_call_mul_Tensor(input, n, out);
  em_tensor_release(n);
  return st;
}
em_status c_dropout_(em_tensor *self, double p, bool train) {
  EM_PASS(check_p(p));
  if (!train || p == 0 || self->numel == 0) return EM_OK;
  if (p == 1) return em_call_zero_(self);
  em_tensor *n;
  EM_PASS(noise(self, p, &n));
  em_status st = em_call_mul__Tensor(self, n);
  em_tensor_release(n);
  return st;
}
em_status n_native_dropout(uint64_t ks, em_tensor *input, double p, em_opt_bool train, em_tensor **out0,
                           em_tensor **out1) {
  (void)ks;
  em_status st = EM_OK;
  em_tensor *mask = NULL, *kept = NULL, *y = NULL;
  EM_PASS(check_p(p));
  if (train == 0 || input->numel == 0) {
    EM_TRY(em_call_clone(input, EM_FORMAT_NONE, &y));
    EM_TRY(em_call_ones_like(input, EM_BOOL, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &mask));
  } else {
    EM_TRY(em_call_empty_like(input, EM_BOOL, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &mask));
    EM_TRY(em_call_bernoulli__float(mask, 1 - p, NULL));
    EM_TRY(em_call_mul_Tensor(input, mask, &kept));
    EM_TRY(em_call_mul_Scalar(kept, em_scalar_double(p == 1 ? 0 : 1 / (1 - p)), &y));
  }
  *out0 = y;
  *out1 = mask;
  em_tensor_release(kept);
  return EM_OK;
fail:
  em_tensor_release(mask);
  em_tensor_release(kept);
  em_tensor_release(y);
  return st;
}
