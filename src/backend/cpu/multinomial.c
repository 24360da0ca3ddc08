// multinomial.c: positions drawn by weight, with PyTorch's numbers for a seed. Without replacement (and for one draw) each weight
// is divided by an exponential number, and the largest quotients win; else a uniform number is looked up in the running sums.
#include <math.h>
#include "../../core/rng.h"
#include "../../dispatch/random_fill.h"
#include "gen_ops.h"

// A row's running sums in the weights' own precision (halves: single). Divided by the last they are probabilities.
#define SUMS(NAME, T)                                                                                                     \
  static em_status add_up_##NAME(T *sums, const T *weights, int64_t n) {                                                  \
    T sum = 0;                                                                                                            \
    for (int64_t j = 0; j < n; j++) {                                                                                     \
      const T v = weights[j];                                                                                             \
      if (EM_UNLIKELY(!(v >= 0)))                                                                                         \
        return em_fail(EM_ERR_RUNTIME, "invalid multinomial distribution (encountering probability entry < 0)");          \
      if (EM_UNLIKELY(v == INFINITY))                                                                                     \
        return em_fail(EM_ERR_RUNTIME,                                                                                    \
                       "invalid multinomial distribution (encountering probability entry = infinity or NaN)");            \
      sum += v;                                                                                                           \
      sums[j] = sum;                                                                                                      \
    }                                                                                                                     \
    if (!(sum > 0)) return em_fail(EM_ERR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");       \
    for (int64_t j = 0; j < n; j++) sums[j] /= sum;                                                                       \
    sums[n - 1] = 1;                                                                                                      \
    return EM_OK;                                                                                                         \
  }                                                                                                                       \
  static void look_up_##NAME(const T *sums, int64_t n, const double *u, int64_t count, int64_t *o) {                      \
    for (int64_t k = 0; k < count; k++) {                                                                                 \
      int64_t low = 0, left = n;                                                                                          \
      while (left > 0) { /* without branches: which way it goes cannot be foretold */                                     \
        const int64_t half = left / 2;                                                                                    \
        const bool below = (double)sums[low + half] < u[k];                                                               \
        low = below ? low + half + 1 : low;                                                                               \
        left = below ? left - half - 1 : half;                                                                            \
      }                                                                                                                   \
      o[k] = low < n ? low : n - 1;                                                                                       \
    }                                                                                                                     \
  }
SUMS(f32, float)
SUMS(f64, double)
static em_status with_replacement(em_tensor *self, int64_t samples, em_generator *g, em_tensor *out) {
  em_status st = EM_OK;
  em_tensor *weights = NULL, *cumulated = NULL, *drawn = NULL;
  const int64_t n = self->sizes[self->ndim - 1], rows = n == 0 ? 0 : self->numel / n;
  if (n == 0) return em_fail(EM_ERR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");
  const bool wide = self->dtype == EM_F64;
  if (em_tensor_is_contiguous(self) && (wide || self->dtype == EM_F32)) {
    weights = em_tensor_retain(self);
  } else {
    EM_TRY(em_tensor_new(self->ndim, self->sizes, wide ? EM_F64 : EM_F32, self->device, &weights));
    EM_TRY(em_copy_into(weights, self));
  }
  EM_TRY(em_tensor_new(1, &n, wide ? EM_F64 : EM_F32, self->device, &cumulated));
  EM_TRY(em_tensor_new(1, &samples, EM_F64, self->device, &drawn));
  double *u = em_tensor_data(drawn);
  int64_t *o = em_tensor_data(out);
  void *sums = em_tensor_data(cumulated);
  const char *w = em_tensor_data(weights);
  for (int64_t r = 0; r < rows; r++, o += samples, w += n * (int64_t)em_tensor_itemsize(weights)) {
    EM_TRY(wide ? add_up_f64(sums, (const double *)w, n) : add_up_f32(sums, (const float *)w, n));
    em_rng_fill_uniform(g, (em_rng_type)em_priv_dtypes[EM_F64].code, (char *)u, sizeof *u, samples, 0, 1);
    if (wide) look_up_f64(sums, n, u, samples, o);
    else look_up_f32(sums, n, u, samples, o);
  }
fail:
  em_tensor_release(weights);
  em_tensor_release(cumulated);
  em_tensor_release(drawn);
  return st;
}
static em_status holds(em_tensor *t, bool *yes) {
  em_scalar s;
  EM_PASS(em_tensor_item(t, &s));
  *yes = s.i != 0;
  return EM_OK;
}
// Weights are finite and not negative, and no row sums to 0.
static em_status check_weights(em_tensor *self) {
  em_status st = EM_OK;
  em_tensor *low = NULL, *high = NULL, *sum = NULL, *zero = NULL, *any = NULL;
  em_scalar a, b;
  bool none;
  EM_TRY(em_call_min(self, &low));
  EM_TRY(em_call_max(self, &high));
  EM_TRY(em_tensor_item(low, &a));
  EM_TRY(em_tensor_item(high, &b));
  if (!(em_scalar_to_double(b) < INFINITY && em_scalar_to_double(a) >= 0))
    EM_FAIL(EM_ERR_RUNTIME, "probability tensor contains either `inf`, `nan` or element < 0");
  EM_TRY(em_call_sum_dim_IntList(self, EM_INTS(self->ndim - 1), false, EM_DTYPE_NONE, &sum));
  EM_TRY(em_call_eq_Scalar(sum, em_scalar_int(0), &zero));
  EM_TRY(em_call_any(zero, &any));
  EM_TRY(holds(any, &none));
  if (none) EM_FAIL(EM_ERR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");
fail:
  em_tensor_release(low);
  em_tensor_release(high);
  em_tensor_release(sum);
  em_tensor_release(zero);
  em_tensor_release(any);
  return st;
}
static em_status largest_quotients(em_tensor *self, int64_t samples, em_generator *g, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *q = NULL, *ratio = NULL, *values = NULL;
  EM_TRY(check_weights(self));
  EM_TRY(em_call_empty_like(self, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &q));
  EM_TRY(em_call_exponential_(q, 1, g));
  EM_TRY(em_call_div_Tensor(self, q, &ratio));
  if (samples == 1) EM_TRY(em_call_argmax(ratio, em_some_int(-1), true, out));
  else EM_TRY(em_call_topk(ratio, samples, -1, true, true, &values, out));
fail:
  em_tensor_release(q);
  em_tensor_release(ratio);
  em_tensor_release(values);
  return st;
}
em_status n_multinomial(uint64_t ks, em_tensor *self, int64_t samples, bool replacement, em_generator *generator,
                        em_tensor **out) {
  (void)ks;
  if (self->ndim < 1 || self->ndim > 2) return em_fail(EM_ERR_RUNTIME, "prob_dist must be 1 or 2 dim");
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "multinomial only supports floating-point dtypes for input, got: %s",
                   em_dtype_scalar_name(self->dtype));
  if (samples <= 0) return em_fail(EM_ERR_RUNTIME, "cannot sample n_sample <= 0 samples");
  const int64_t n = self->sizes[self->ndim - 1];
  if (!replacement && samples > n)
    return em_fail(EM_ERR_RUNTIME, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (n > 1ll << 24) return em_fail(EM_ERR_RUNTIME, "number of categories cannot exceed 2^24");
  em_generator *g = generator != NULL ? generator : em_default_generator();
  if (g == NULL) return EM_NOMEM(sizeof *g);
  const int64_t sizes[2] = {self->ndim == 2 ? self->sizes[0] : samples, samples};
  const bool meta = self->device.type == EM_DEVICE_META;
  if (!meta && self->numel > 0 && (!replacement || samples == 1)) return largest_quotients(self, samples, g, out);
  em_tensor *t;
  EM_PASS(em_tensor_new(self->ndim, sizes, EM_I64, self->device, &t));
  em_status st = meta || t->numel == 0 ? EM_OK : with_replacement(self, samples, g, t);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
