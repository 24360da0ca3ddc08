// nll_loops.c: negative log likelihood. For each place of `target` reads (or writes) one class of the input:
//   loss = -weight[t] * input[n, t, place], summed, or divided by the sum of the weights of the places that count.
// Sums are kept in double and rounded once, but for halves: there PyTorch rounds after every step, in partial sums of its own.
#include <string.h>
#include "../../core/half.h"
#include "norm.h"

// Dense copies of what is read: input (samples, classes, inner), one target and one weight for each place and class.
typedef struct places {
  int64_t n, classes, inner, ignore;  // n: places
  const int64_t *target;
  const double *weight;               // NULL: all 1
  em_tensor *t, *w;                   // own target and weight
} places;
static em_status places_of(places *p, em_tensor *self, em_tensor *target, em_tensor *weight, int64_t ignore) {
  const void *w;
  *p = (places){.n = target->numel, .classes = self->sizes[self->ndim == 1 ? 0 : 1], .inner = 1, .ignore = ignore};
  for (int d = 2; d < self->ndim; d++) p->inner *= self->sizes[d];
  EM_PASS(em_priv_norm_dense(target, EM_I64, false, &p->t));
  p->target = em_tensor_data(p->t);
  em_status st = em_priv_norm_weight(weight, EM_F64, &p->w, &w);
  p->weight = w;
  return st;
}
static void places_drop(places *p) {
  em_tensor_release(p->t);
  em_tensor_release(p->w);
}
// Element of the input that place i names.
static inline int64_t element(const places *p, int64_t i, int64_t class) {
  return p->inner == 1 ? i * p->classes + class : (i / p->inner * p->classes + class) * p->inner + i % p->inner;
}
static em_status out_of_bounds(int64_t class) {
  return em_fail(EM_ERR_INDEX, "Target %lld is out of bounds.", (long long)class);
}

// A sum of terms in `dtype`. Halves are added in LEVELS partial sums: the first takes 2^power terms before it goes to the next.
enum { LEVELS = 8 };
typedef struct cascade {
  int dtype, power;
  double part[LEVELS];
} cascade;
static double rounded(int dtype, double v) {
  double element;
  em_cast_store(&element, dtype, (int64_t)em_dtype_size(dtype), &v, EM_F64, 1);
  em_cast_load(&v, EM_F64, &element, dtype, 0, 1);
  return v;
}
static void cascade_start(cascade *c, int dtype, int64_t n) {
  int bits = 0;
  while (bits < 62 && ((int64_t)1 << bits) < n) bits++;
  *c = (cascade){.dtype = dtype, .power = bits / LEVELS > 4 ? bits / LEVELS : 4};
}
static void cascade_add(cascade *c, int64_t i, double term) {
  if (c->dtype == EM_F32 || c->dtype == EM_F64) {
    c->part[0] += term;
    return;
  }
  c->part[0] = rounded(c->dtype, c->part[0] + rounded(c->dtype, term));
  const int64_t mask = ((int64_t)1 << c->power) - 1;
  for (int k = 0; k + 1 < LEVELS && k * c->power < 62 && (i & (mask << (k * c->power))) == 0; k++) {
    c->part[k + 1] = rounded(c->dtype, c->part[k + 1] + c->part[k]);
    c->part[k] = 0;
  }
}
static double cascade_sum(const cascade *c) {
  if (c->dtype == EM_F32 || c->dtype == EM_F64) return c->part[0];
  double sum = 0;
  for (int k = 0; k < LEVELS; k++) sum = rounded(c->dtype, sum + c->part[k]);
  return sum;
}

// --- forward: losses of single places go to `each` where it is given
typedef struct sums { cascade losses, weights; int64_t counted; } sums;
static inline float load_f32(float x) { return x; }
static inline double load_f64(double x) { return x; }
#define FORWARD(NAME, T, LOAD, STORE)                                                                         \
  static em_status forward_##NAME(const places *p, const T *x, T *each, sums *s) {                             \
    for (int64_t i = 0; i < p->n; i++) {                                                                       \
      const int64_t c = p->target[i];                                                                          \
      if (c == p->ignore) {                                                                                    \
        if (each != NULL) each[i] = STORE(0);                                                                  \
        continue;                                                                                              \
      }                                                                                                        \
      if (EM_UNLIKELY(c < 0 || c >= p->classes)) return out_of_bounds(c);                                      \
      const double w = p->weight == NULL ? 1 : p->weight[c], loss = -w * (double)LOAD(x[element(p, i, c)]);    \
      if (each != NULL) each[i] = STORE(loss);                                                                 \
      s->counted++;                                                                                            \
      cascade_add(&s->losses, i, loss);                                                                        \
      cascade_add(&s->weights, i, w);                                                                          \
    }                                                                                                          \
    return EM_OK;                                                                                              \
  }
#define BACKWARD(NAME, T, STORE)                                                                               \
  static em_status backward_##NAME(const places *p, T *o, const double *g, bool each, double total) {          \
    for (int64_t i = 0; i < p->n; i++) {                                                                       \
      const int64_t c = p->target[i];                                                                          \
      if (c == p->ignore) continue;                                                                            \
      if (EM_UNLIKELY(c < 0 || c >= p->classes)) return out_of_bounds(c);                                      \
      const double w = p->weight == NULL ? 1 : p->weight[c];                                                   \
      o[element(p, i, c)] = STORE(-w * g[each ? i : 0] / total);                                               \
    }                                                                                                          \
    return EM_OK;                                                                                              \
  }
#define TO_F32(v) ((float)(v))
#define TO_F64(v) ((double)(v))
#define TO_F16(v) em_f32_to_f16((float)(v))
#define TO_BF16(v) em_f32_to_bf16((float)(v))
FORWARD(f32, float, load_f32, TO_F32)
FORWARD(f64, double, load_f64, TO_F64)
FORWARD(f16, uint16_t, em_f16_to_f32, TO_F16)
FORWARD(bf16, uint16_t, em_bf16_to_f32, TO_BF16)
BACKWARD(f32, float, TO_F32)
BACKWARD(f64, double, TO_F64)
BACKWARD(f16, uint16_t, TO_F16)
BACKWARD(bf16, uint16_t, TO_BF16)

static em_status forward(const places *p, int dtype, const void *x, void *each, sums *s) {
  switch (dtype) {
    case EM_F32: return forward_f32(p, x, each, s);
    case EM_F64: return forward_f64(p, x, each, s);
    case EM_F16: return forward_f16(p, x, each, s);
    default: return forward_bf16(p, x, each, s);
  }
}
em_status k_cpu_nll_loss_forward(em_plan *plan, em_tensor *self, em_tensor *target, em_tensor *weight,
                                 int64_t reduction, int64_t ignore_index, em_tensor *out0, em_tensor *out1) {
  (void)plan;
  const bool each = reduction == 0 && self->ndim > 1;
  em_status st = EM_OK;
  em_tensor *x = NULL;
  places p = {0};
  sums s = {.counted = 0};
  cascade_start(&s.losses, self->dtype, target->numel);
  cascade_start(&s.weights, self->dtype, target->numel);
  EM_TRY(places_of(&p, self, target, weight, ignore_index));
  EM_TRY(em_priv_norm_dense(self, self->dtype, false, &x));
  EM_TRY(forward(&p, self->dtype, em_tensor_data(x), each ? em_tensor_data(out0) : NULL, &s));
  const double sum = cascade_sum(&s.losses), none = 0;
  const double total = weight == NULL ? rounded(self->dtype, (double)s.counted) : cascade_sum(&s.weights);
  const double result = reduction == 1 ? sum / total : sum;
  if (!each) em_tensor_put(out0, 0, &result, EM_F64, 1);
  em_tensor_put(out1, 0, each ? &none : &total, EM_F64, 1);
fail:
  em_tensor_release(x);
  places_drop(&p);
  return st;
}
static em_status backward(const places *p, em_tensor *out, const double *g, bool each, double total) {
  void *o = em_tensor_data(out);
  switch (out->dtype) {
    case EM_F32: return backward_f32(p, o, g, each, total);
    case EM_F64: return backward_f64(p, o, g, each, total);
    case EM_F16: return backward_f16(p, o, g, each, total);
    default: return backward_bf16(p, o, g, each, total);
  }
}
em_status k_cpu_nll_loss_backward(em_plan *plan, em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                  int64_t reduction, int64_t ignore_index, em_tensor *total_weight, em_tensor *out) {
  (void)plan;
  const bool each = reduction == 0 && self->ndim > 1;
  em_status st = EM_OK;
  em_tensor *g = NULL;
  places p = {0};
  double total = 1;
  EM_PASS(em_fill(out, em_scalar_int(0)));
  EM_TRY(places_of(&p, self, target, weight, ignore_index));
  EM_TRY(em_priv_norm_dense(grad, EM_F64, false, &g));
  if (reduction == 1)
    em_cast_load(&total, EM_F64, em_tensor_data(total_weight), total_weight->dtype, 0, 1);
  EM_TRY(backward(&p, out, em_tensor_data(g), each, total));
fail:
  em_tensor_release(g);
  places_drop(&p);
  return st;
}
