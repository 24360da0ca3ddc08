// nll_loops.c: negative log likelihood. For each place of `target` reads (or writes) one class of the input:
//   loss = -weight[t] * input[n, t, place], summed, or divided by the sum of the weights of the places that count.
// Sums are kept in double and rounded once, but for halves: there PyTorch rounds after every step, in partial sums of its own.
#include <string.h>
#include "gen_ops.h"

typedef struct places {
  em_tensor *self, *target, *weight;
  int64_t per_sample, class_stride, classes, ignore;
} places;
static void places_of(places *p, em_tensor *self, em_tensor *target, em_tensor *weight, int64_t ignore) {
  int dim = self->ndim == 1 ? 0 : 1;
  *p = (places){self, target, weight, 1, self->strides[dim], self->sizes[dim], ignore};
  for (int d = 2; d < self->ndim; d++) p->per_sample *= self->sizes[d];
}
// Element of self that class 0 of place i has, and the class; false when the place is ignored.
static em_status place_at(const places *p, int64_t i, int64_t *at, int64_t *class, double *weight, bool *counts) {
  const em_tensor *t = p->target, *s = p->self;
  int64_t ti = 0, rest = i, sample = i / p->per_sample;
  for (int d = t->ndim - 1; d >= 0; d--) {
    ti += rest % t->sizes[d] * t->strides[d];
    rest /= t->sizes[d];
  }
  int64_t c;
  em_cast_load(&c, EM_I64, (const char *)em_tensor_data(t) + ti * (int64_t)em_tensor_itemsize(t), t->dtype, 0, 1);
  *counts = c != p->ignore;
  if (!*counts) return EM_OK;
  if (EM_UNLIKELY(c < 0 || c >= p->classes))
    return em_fail(EM_ERR_INDEX, "Target %lld is out of bounds.", (long long)c);
  *at = s->ndim > 1 ? sample * s->strides[0] : 0;
  int64_t inner = i % p->per_sample;
  for (int d = s->ndim - 1; d >= 2; d--) {
    *at += inner % s->sizes[d] * s->strides[d];
    inner /= s->sizes[d];
  }
  *class = c;
  *weight = 1;
  if (p->weight != NULL)
    em_cast_load(weight, EM_F64,
                 (const char *)em_tensor_data(p->weight) +
                     c * p->weight->strides[0] * (int64_t)em_tensor_itemsize(p->weight),
                 p->weight->dtype, 0, 1);
  return EM_OK;
}
static void put(em_tensor *t, int64_t at, double v) {
  size_t size = em_tensor_itemsize(t);
  em_cast_store((char *)em_tensor_data(t) + (size_t)at * size, t->dtype, (int64_t)size, &v, EM_F64, 1);
}
static double read(const em_tensor *t, int64_t at) {
  double v;
  em_cast_load(&v, EM_F64, (const char *)em_tensor_data(t) + at * (int64_t)em_tensor_itemsize(t), t->dtype, 0, 1);
  return v;
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

em_status k_cpu_nll_loss_forward(em_plan *plan, em_tensor *self, em_tensor *target, em_tensor *weight,
                                 int64_t reduction, int64_t ignore_index, em_tensor *out0, em_tensor *out1) {
  (void)plan;
  places p;
  places_of(&p, self, target, weight, ignore_index);
  bool each = reduction == 0 && self->ndim > 1;
  cascade losses, weights;
  cascade_start(&losses, self->dtype, target->numel);
  cascade_start(&weights, self->dtype, target->numel);
  int64_t counted = 0;
  for (int64_t i = 0; i < target->numel; i++) {
    int64_t at = 0, class = 0;
    double w = 0;
    bool counts;
    EM_PASS(place_at(&p, i, &at, &class, &w, &counts));
    double loss = counts ? -w * read(self, at + class * p.class_stride) : 0;
    if (each) put(out0, i, loss);
    if (!counts) continue;
    counted++;
    cascade_add(&losses, i, loss);
    cascade_add(&weights, i, w);
  }
  const double sum = cascade_sum(&losses);
  const double total = weight == NULL ? rounded(self->dtype, (double)counted) : cascade_sum(&weights);
  if (!each) put(out0, 0, reduction == 1 ? sum / total : sum);
  put(out1, 0, each ? 0 : total);
  return EM_OK;
}
em_status k_cpu_nll_loss_backward(em_plan *plan, em_tensor *grad, em_tensor *self, em_tensor *target, em_tensor *weight,
                                  int64_t reduction, int64_t ignore_index, em_tensor *total_weight, em_tensor *out) {
  (void)plan;
  places q;
  places_of(&q, out, target, weight, ignore_index);
  EM_PASS(em_fill(out, em_scalar_int(0)));
  bool each = reduction == 0 && self->ndim > 1;
  em_tensor *g = NULL;
  EM_PASS(em_call_contiguous(grad, EM_FORMAT_CONTIGUOUS, &g));
  double total = reduction == 1 ? read(total_weight, 0) : 1;
  em_status st = EM_OK;
  for (int64_t i = 0; i < target->numel; i++) {
    int64_t at = 0, class = 0;
    double w = 0;
    bool counts;
    EM_TRY(place_at(&q, i, &at, &class, &w, &counts));
    if (counts) put(out, at + class * q.class_stride, -w * read(g, each ? i : 0) / total);
  }
fail:
  em_tensor_release(g);
  return st;
}
