// nll_loops.c: negative log likelihood. For each place of `target` reads (or writes) one class of the input:
//   loss = -weight[t] * input[n, t, place], summed, or divided by the sum of the weights of the places that count.
// Sums are kept in double and rounded once.
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

em_status k_cpu_nll_loss_forward(em_plan *plan, em_tensor *self, em_tensor *target, em_tensor *weight,
                                 int64_t reduction, int64_t ignore_index, em_tensor *out0, em_tensor *out1) {
  (void)plan;
  places p;
  places_of(&p, self, target, weight, ignore_index);
  bool each = reduction == 0 && self->ndim > 1;
  double sum = 0, total = 0;
  for (int64_t i = 0; i < target->numel; i++) {
    int64_t at = 0, class = 0;
    double w = 0;
    bool counts;
    EM_PASS(place_at(&p, i, &at, &class, &w, &counts));
    double loss = counts ? -w * read(self, at + class * p.class_stride) : 0;
    if (each) put(out0, i, loss);
    sum += loss;
    total += counts ? w : 0;
  }
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
