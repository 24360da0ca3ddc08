// samplers.c: numbers from distributions whose parameters are tensors (Poisson, binomial, gamma, Dirichlet), and how the last two
// change with their parameters. Draws are PyTorch's (53-bit uniforms, Box-Muller normals whose second half waits in the
// generator), computed in the parameters' own precision where PyTorch does: so a seed gives PyTorch's numbers. One
// thread, in the order of a contiguous result.
#include <float.h>
#include <math.h>
#include "../../core/rng.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "special.h"

static double uniform(em_generator *g) { return (double)(em_rng_u64(g) & 0x1fffffffffffffull) * 0x1p-53; }

static em_status need_single_or_double(const em_tensor *t, const char *name) {
  if (t->dtype == EM_F32 || t->dtype == EM_F64) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, em_dtype_scalar_name(t->dtype));
}
// The inputs' common shape, and each input with that shape, contiguous, of one dtype.
typedef struct flat { em_tensor *in[3], *out; int n; } flat;
static void drop(flat *f) {
  for (int i = 0; i < f->n; i++) em_tensor_release(f->in[i]);
  em_tensor_release(f->out);
}
static em_status dense(em_tensor *t, const em_shape *shape, int dtype, em_tensor **out) {
  if (t->dtype == dtype && em_tensor_is_contiguous(t) && em_shape_equal(t->ndim, t->sizes, shape->ndim, shape->sizes)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  EM_PASS(em_tensor_new(shape->ndim, shape->sizes, dtype, t->device, out));
  if (t->device.type == EM_DEVICE_META) return EM_OK;
  em_tensor *wide;
  em_status st = em_call_expand(t, (em_ints){shape->sizes, shape->ndim}, false, &wide);
  if (st == EM_OK) {
    st = em_copy_into(*out, wide);
    em_tensor_release(wide);
  }
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
static em_status flatten(em_tensor *const *in, int n, int dtype, flat *f) {
  em_shape shape;
  em_status st = EM_OK;
  *f = (flat){.n = n};
  EM_TRY(em_shape_of(in[0], &shape));
  for (int i = 1; i < n; i++) EM_TRY(em_shape_broadcast(&shape, in[i]->ndim, in[i]->sizes));
  EM_TRY(em_tensor_new(shape.ndim, shape.sizes, dtype, in[0]->device, &f->out));
  for (int i = 0; i < n; i++) EM_TRY(dense(in[i], &shape, dtype, &f->in[i]));
  return EM_OK;
fail:
  drop(f);
  return st;
}
static bool nothing_to_do(const flat *f) { return f->out->device.type == EM_DEVICE_META || f->out->numel == 0; }
static em_status done(flat *f, em_status st, em_tensor **out) {
  if (st == EM_OK) *out = em_tensor_retain(f->out);
  drop(f);
  return st;
}
static em_generator *generator_of(em_generator *g) { return g != NULL ? g : em_default_generator(); }

// ---- Poisson -----------------------------------------------------------------------------------------------------------
// Small rates: as many uniforms as keep their product above exp(-rate). Others: transformed rejection, PTRS of W. Hoermann, "The
// transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12, 1993.

static double poisson_by_rejection(em_generator *g, double rate) {
  const double root = sqrt(rate), log_rate = log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), most = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform(g) - 0.5, v = uniform(g), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + rate + 0.43);
    int sign;
    if (us >= 0.07 && v <= most) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma_r(k + 1, &sign)) return k;
  }
}
static double poisson(em_generator *g, double rate) {
  if (rate >= 10) return poisson_by_rejection(g, rate);
  if (rate == 0) return 0;
  const double limit = exp(-rate);
  double k = 0, product = uniform(g);
  for (; product > limit; k++) product *= uniform(g);
  return k;
}
em_status n_poisson(uint64_t ks, em_tensor *self, em_generator *generator, em_tensor **out) {
  (void)ks;
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"poisson_cpu\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  em_generator *g = generator_of(generator);
  if (g == NULL) return EM_NOMEM(sizeof *g);
  flat f;
  EM_PASS(flatten(&self, 1, EM_F64, &f));
  em_status st = EM_OK;
  if (!nothing_to_do(&f)) {
    const double *rate = em_tensor_data(f.in[0]);
    double *o = em_tensor_data(f.out);
    em_rng_lock(g);
    for (int64_t i = 0; i < f.out->numel && st == EM_OK; i++) {
      if (rate[i] >= 0) o[i] = poisson(g, rate[i]);
      else st = em_fail(EM_ERR_RUNTIME, "invalid Poisson rate, expected rate to be non-negative");
    }
    em_rng_unlock(g);
  }
  em_tensor *t = NULL;  // whole numbers, rounded to the rates' dtype once
  if (st == EM_OK) st = em_tensor_new(self->ndim, self->sizes, self->dtype, self->device, &t);
  if (st == EM_OK && !nothing_to_do(&f)) st = em_copy_into(t, f.out);
  drop(&f);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}

// ---- binomial ----------------------------------------------------------------------------------------------------------
// Few successes expected: waiting times (geometric numbers) are added until they exceed count. Else: transformed rejection with
// squeeze, BTRS of W. Hoermann, "The generation of binomial random variates", J. Statistical Computation and Simulation 46, 1993.

// log(k!) - (log of Stirling's approximation): the first ten, then its series.
static double stirling_tail(double k) {
  static const double first[10] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707,  0.0118967099458917,  0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return first[(int)k];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
#define BINOMIAL(NAME, T, SQRT)                                                                                           \
  static T waits_##NAME(em_generator *g, T count, T prob) {                                                               \
    const double log_miss = (double)(T)log1p(-(double)prob);                                                              \
    double waited = 0;                                                                                                    \
    for (T k = 0;; k++) {                                                                                                 \
      waited += ceil(log(uniform(g)) / log_miss);                                                                         \
      if (waited > (double)count) return k;                                                                               \
    }                                                                                                                     \
  }                                                                                                                       \
  static T rejected_##NAME(em_generator *g, T count, T prob) {                                                            \
    const double deviation = (double)SQRT(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation;                        \
    const double a = -0.0873 + 0.0248 * b + 0.01 * (double)prob, c = (double)(count * prob) + 0.5, most = 0.92 - 4.2 / b; \
    const double odds = (double)(prob / (1 - prob)), alpha = (2.83 + 5.1 / b) * deviation;                                \
    const double m = floor((double)((count + 1) * prob)), n = (double)count;                                              \
    for (;;) {                                                                                                            \
      const double u = uniform(g) - 0.5, us = 0.5 - fabs(u);                                                              \
      double v = uniform(g);                                                                                              \
      const T k = (T)floor((2 * a / us + b) * u + c);                                                                     \
      if (k < 0 || k > count) continue;                                                                                   \
      if (us >= 0.07 && v <= most) return k;                                                                              \
      v = log(v * alpha / (a / (us * us) + b));                                                                           \
      const double bound = (m + 0.5) * log((m + 1) / (odds * (n - m + 1))) +                                              \
                           (double)(count + 1) * log((n - m + 1) / (double)(count - k + 1)) +                             \
                           ((double)k + 0.5) * log(odds * (double)(count - k + 1) / (double)(k + 1)) + stirling_tail(m) + \
                           stirling_tail(n - m) - (double)(T)stirling_tail((double)k) -                                   \
                           (double)(T)stirling_tail((double)(count - k));                                                 \
      if (v <= bound) return k;                                                                                           \
    }                                                                                                                     \
  }                                                                                                                       \
  static T binomial_##NAME(em_generator *g, T count, T prob) {                                                            \
    if (count <= 0 || prob <= 0) return 0;                                                                                \
    if (prob >= 1) return count;                                                                                          \
    if (isnan(prob) || isnan(count)) return (T)NAN; /* PyTorch would never return from a count that is NaN */             \
    const T rare = prob <= (T)0.5 ? prob : 1 - prob;                                                                      \
    const T k = count * rare >= 10 ? rejected_##NAME(g, count, rare) : waits_##NAME(g, count, rare);                      \
    return prob <= (T)0.5 ? k : count - k;                                                                                \
  }                                                                                                                       \
  static void binomials_##NAME(em_generator *g, const flat *f) {                                                          \
    const T *count = em_tensor_data(f->in[0]), *prob = em_tensor_data(f->in[1]);                                          \
    T *o = em_tensor_data(f->out);                                                                                        \
    for (int64_t i = 0; i < f->out->numel; i++) o[i] = binomial_##NAME(g, count[i], prob[i]);                             \
  }
BINOMIAL(f32, float, sqrtf)
BINOMIAL(f64, double, sqrt)

em_status n_binomial(uint64_t ks, em_tensor *count, em_tensor *prob, em_generator *generator, em_tensor **out) {
  (void)ks;
  em_tensor *const in[2] = {count, prob};
  static const char *const names[2] = {"count", "prob"};
  for (int i = 0; i < 2; i++)
    if (!em_dtype_is_float(in[i]->dtype))
      return em_fail(EM_ERR_VALUE, "binomial only supports floating-point dtypes for %s, got: %s", names[i],
                     em_dtype_scalar_name(in[i]->dtype));
  if (count->dtype != prob->dtype)
    return em_fail(EM_ERR_RUNTIME, "Found dtype %s but expected %s", em_dtype_scalar_name(prob->dtype), em_dtype_scalar_name(count->dtype));
  EM_PASS(need_single_or_double(count, "binomial_cpu"));
  em_generator *g = generator_of(generator);
  if (g == NULL) return EM_NOMEM(sizeof *g);
  flat f;
  EM_PASS(flatten(in, 2, count->dtype, &f));
  if (!nothing_to_do(&f)) {
    em_rng_lock(g);
    if (count->dtype == EM_F32) binomials_f32(g, &f);
    else binomials_f64(g, &f);
    em_rng_unlock(g);
  }
  return done(&f, EM_OK, out);
}

// ---- gamma and Dirichlet -----------------------------------------------------------------------------------------------
// G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3), 2000. PyTorch's constants are float's.

#define GAMMA(NAME, T)                                                                  \
  static double gamma_##NAME(em_generator *g, T alpha) {                                \
    double scale = 1;                                                                   \
    if (alpha < 1) {                                                                    \
      if (alpha == 0) return 0;                                                         \
      scale = pow(1 - uniform(g), (double)(1 / alpha));                                 \
      alpha += 1;                                                                       \
    }                                                                                   \
    const double d = (double)(alpha - (T)(1.0f / 3.0f)), c = 1 / sqrt(9 * d);           \
    for (;;) {                                                                          \
      double x, y;                                                                      \
      do {                                                                              \
        x = em_priv_rng_normal(g);                                                      \
        y = 1 + c * x;                                                                  \
      } while (y <= 0);                                                                 \
      const double v = y * y * y, u = 1 - uniform(g), xx = x * x;                       \
      if (u < 1 - (double)0.0331f * xx * xx) return scale * d * v;                      \
      if (log(u) < 0.5 * xx + d * (1 - v + log(v))) return scale * d * v;               \
    }                                                                                   \
  }
GAMMA(f32, float)
GAMMA(f64, double)

em_status n__standard_gamma(uint64_t ks, em_tensor *self, em_generator *generator, em_tensor **out) {
  (void)ks;
  EM_PASS(need_single_or_double(self, "gamma_cpu"));
  em_generator *g = generator_of(generator);
  if (g == NULL) return EM_NOMEM(sizeof *g);
  flat f;
  EM_PASS(flatten(&self, 1, self->dtype, &f));
  if (!nothing_to_do(&f)) {  // never less than the dtype's smallest normal number, nor NaN
    const void *alpha = em_tensor_data(f.in[0]);
    void *o = em_tensor_data(f.out);
    em_rng_lock(g);
    for (int64_t i = 0; i < f.out->numel; i++) {
      if (self->dtype == EM_F32) {
        const float v = (float)gamma_f32(g, ((const float *)alpha)[i]);
        ((float *)o)[i] = FLT_MIN < v ? v : FLT_MIN;
      } else {
        const double v = gamma_f64(g, ((const double *)alpha)[i]);
        ((double *)o)[i] = DBL_MIN < v ? v : DBL_MIN;
      }
    }
    em_rng_unlock(g);
  }
  return done(&f, EM_OK, out);
}
em_status n__sample_dirichlet(uint64_t ks, em_tensor *self, em_generator *generator, em_tensor **out) {
  (void)ks;
  EM_PASS(need_single_or_double(self, "dirichlet"));
  em_generator *g = generator_of(generator);
  if (g == NULL) return EM_NOMEM(sizeof *g);
  flat f;
  EM_PASS(flatten(&self, 1, EM_F64, &f));
  em_status st = EM_OK;
  em_tensor *sum = NULL, *share = NULL, *t = NULL;
  if (!nothing_to_do(&f)) {  // gamma numbers in double whatever the dtype, so that they do not vanish
    const double *alpha = em_tensor_data(f.in[0]);
    double *o = em_tensor_data(f.out);
    em_rng_lock(g);
    for (int64_t i = 0; i < f.out->numel; i++) o[i] = gamma_f64(g, alpha[i]);
    em_rng_unlock(g);
  }
  EM_TRY(em_call_sum_dim_IntList(f.out, EM_INTS(-1), true, EM_DTYPE_NONE, &sum));
  EM_TRY(em_call_div_Tensor(f.out, sum, &share));
  EM_TRY(em_call_to_dtype(share, self->dtype, false, true, EM_FORMAT_NONE, &t));
  if (self->dtype == EM_F32) EM_TRY(em_call_clamp_(t, em_scalar_double(FLT_MIN), em_scalar_double(1 - 0x1p-24)));
  else EM_TRY(em_call_clamp_(t, em_scalar_double(DBL_MIN), em_scalar_double(1 - 0x1p-53)));
  *out = t;
  t = NULL;
fail:
  em_tensor_release(sum);
  em_tensor_release(share);
  em_tensor_release(t);
  drop(&f);
  return st;
}

// ---- how draws change with their parameters ------------------------------------------------------------------------------
// dx/da at a fixed quantile: -(dF/da) / f, by approximations that follow M. Jankowiak, F. Obermeyer, "Pathwise derivatives
// beyond the reparameterization trick", ICML 2018; PyTorch's numbers, and so its choice of regions.

static double no_nan(double v) { return isnan(v) ? 0 : v; }
static double square(double v) { return v * v; }

// The incomplete gamma function's power series and its derivative by a.
static double gamma_slope_small(double a, double x) {
  double numerator = 1, denominator = a, series = 1 / a, slope = 1 / (a * a);
  for (int i = 1; i <= 5; i++) {
    numerator *= -x / i;
    denominator += 1;
    series += numerator / denominator;
    slope += numerator / (denominator * denominator);
  }
  const double power = pow(x, a), density = pow(x, a - 1) * exp(-x), below = power * series;
  return no_nan(-((log(x) - vm_digamma_f64(a)) * below - power * slope) / density);
}
// Saddle points, with a polynomial where the mean makes them singular.
static double gamma_slope_large(double a, double x) {
  if ((double)0.9f * a <= x && x <= (double)1.1f * a) {
    const double first = 1 + 24 * a * (1 + 12 * a);
    const double second = 1440 * (a * a) + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
    return first * second / (1244160 * (a * a) * (a * a));
  }
  const double root = sqrt(8 * a), side = root / (a - x), tail = pow(x - a - a * log(x / a), -1.5);
  const double terms = log(x / a) * (x < a ? side - tail : side + tail) - sqrt(2 / a) * (a + x) / square(a - x);
  const double stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a));
  return -stirling * x * terms / root;
}
static double gamma_slope(double a, double x) {
  if (x < (double)0.8f) return gamma_slope_small(a, x);
  if (a > 8) return gamma_slope_large(a, x);
  // exp of a ratio of polynomials in log(x / a) and log(a)
  static const double table[8][3] = {{0.16009398, 0.53487893, 0.040121004},       {-0.094634809, 0.1298071, -0.0065914022},
                                     {0.025146376, 0.065735949, -0.0026286047},   {-0.0030648343, -0.0015649758, -0.0013441777},
                                     {1, 0.16639465, 0.017050642},                {0.32668115, 0.020070113, -0.0021309326},
                                     {0.10406089, -0.0035938915, 0.00085092367},  {0.0014179084, -0.00058392623, -1.5247877e-07}};
  const double u = log(x / a), v = log(a);
  double k[8];
  for (int i = 0; i < 8; i++) k[i] = table[i][0] + u * (table[i][1] + u * table[i][2]);
  return exp((k[0] + v * (k[1] + v * (k[2] + v * k[3]))) / (k[4] + v * (k[5] + v * (k[6] + v * k[7]))));
}

// x near 0: the incomplete beta function's series, by a.
static double beta_slope_low(double x, double a, double b) {
  const double factor = vm_digamma_f64(a) - vm_digamma_f64(a + b) - log(x);
  double numerator = 1, series = numerator / a * (factor + 1 / a);
  for (int i = 1; i <= 10; i++) {
    numerator *= (i - b) * x / i;
    series += numerator / (a + i) * (factor + 1 / (a + i));
  }
  return no_nan(x * pow(1 - x, -b) * series);
}
// The same by b.
static double beta_slope_low_other(double x, double a, double b) {
  const double factor = vm_digamma_f64(a + b) - vm_digamma_f64(b);
  double numerator = 1, falling = 1, slope = 0, series = factor / a;
  for (int i = 1; i <= 8; i++) {
    numerator *= -x / i;
    slope = slope * (b - i) + falling;
    falling *= b - i;
    series += numerator / (a + i) * (slope + factor * falling);
  }
  return no_nan(-pow(1 - x, 1 - b) * series);
}
// Both parameters large: saddle points, with a polynomial near the mean.
static double beta_slope_large(double x, double a, double b) {
  const double total = a + b, mean = a / total, deviation = sqrt(a * b / (total + 1)) / total, b2 = b * b;
  if (mean - 0.1 * deviation <= x && x <= mean + 0.1 * deviation) {
    const double a3 = (453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11));
    const double a2 = 3 * (59 + 180 * b - 90 * x) * b2 + a * a3;
    const double polynomial = 47 * x * b2 * b2 + a * ((43 + 20 * (16 + 27 * b) * x) * b2 * b + a * a2);
    const double scale = (1 + 12 * a) * (1 + 12 * b) / (total * total);
    return scale / (1 - x) * polynomial / (12960 * a * a * a * b2 * (1 + 12 * total));
  }
#define STIRLING(v) (1 + 1 / (12 * (v)) + 1 / (288 * (v) * (v)))
  const double stirling = STIRLING(a) * STIRLING(b) / STIRLING(total), off = a * (x - 1) + b * x;
#undef STIRLING
  const double first = (2 * a * a * (x - 1) + a * b * (x - 1) - x * b2) / (sqrt(2 * a / b) * pow(total, 1.5) * square(off));
  const double side = sqrt(8 * a * b / total) / off;
  const double tail = pow(b * log(b / (total * (1 - x))) + a * log(a / (total * x)), -1.5);
  const double terms = first + 0.5 * log(a / (total * x)) * (side + (x < mean ? tail : -tail));
  return stirling * (-x / sqrt(2 * a * b / total)) * terms;
}
// A ratio of polynomials in log x, log(a / x) and log(total x / a), times a plain estimate.
static double beta_slope_middle(double x, double a, double total, double b) {
  static const double table[2][3][3][4] = {
      {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
        {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
        {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
       {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
        {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
        {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
       {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
        {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
        {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
      {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
        {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
        {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
       {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
        {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
        {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
       {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
        {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
        {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}}};
  const double u = log(x), v = log(a) - u, w = log(total) - v;
  const double us[3] = {1, u, u * u}, vs[3] = {1, v, v * v};
  double sums[2] = {0, 0};
  for (int s = 0; s < 2; s++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        const double *k = table[s][i][j];
        sums[s] += us[i] * vs[j] * (k[0] + w * (k[1] + w * (k[2] + w * k[3])));
      }
  return sums[0] / sums[1] * (x * (vm_digamma_f64(total) - vm_digamma_f64(a)) / b);
}
// x is one part of a Dirichlet draw, a its parameter, total the sum of them all.
static double dirichlet_slope(double x, double a, double total) {
  const double b = total - a, boundary = total * x * (1 - x);
  if (x <= 0.5 && boundary < 2.5) return beta_slope_low(x, a, b);
  if (x >= 0.5 && boundary < 0.75) return -beta_slope_low_other(1 - x, b, a);
  if (a > 6 && b > 6) return beta_slope_large(x, a, b);
  return beta_slope_middle(x, a, total, b);
}

static em_status run_slopes(void *context, int64_t begin, int64_t end) {
  const flat *f = context;
  const bool single = f->out->dtype == EM_F32;
  for (int64_t i = begin; i < end; i++) {
    double v[3] = {0, 0, 0};
    for (int k = 0; k < f->n; k++)
      v[k] = single ? (double)((const float *)em_tensor_data(f->in[k]))[i] : ((const double *)em_tensor_data(f->in[k]))[i];
    const double slope = f->n == 2 ? gamma_slope(v[0], v[1]) : dirichlet_slope(v[0], v[1], v[2]);
    if (single) ((float *)em_tensor_data(f->out))[i] = (float)slope;
    else ((double *)em_tensor_data(f->out))[i] = slope;
  }
  return EM_OK;
}
static em_status slopes(em_tensor *const *in, int n, const char *name, em_tensor **out) {
  for (int i = 1; i < n; i++)
    if (in[i]->dtype != in[0]->dtype)
      return em_fail(EM_ERR_RUNTIME, "Found dtype %s but expected %s", em_dtype_scalar_name(in[i]->dtype),
                     em_dtype_scalar_name(in[0]->dtype));
  EM_PASS(need_single_or_double(in[0], name));
  flat f;
  EM_PASS(flatten(in, n, in[0]->dtype, &f));
  return done(&f, nothing_to_do(&f) ? EM_OK : em_threads_for(f.out->numel, 256, run_slopes, &f), out);
}
em_status n__standard_gamma_grad(uint64_t ks, em_tensor *self, em_tensor *output, em_tensor **out) {
  (void)ks;
  return slopes((em_tensor *const[]){self, output}, 2, "_standard_gamma_grad_cpu", out);
}
em_status n__dirichlet_grad(uint64_t ks, em_tensor *x, em_tensor *alpha, em_tensor *total, em_tensor **out) {
  (void)ks;
  return slopes((em_tensor *const[]){x, alpha, total}, 3, "_dirichlet_grad_cpu", out);
}
