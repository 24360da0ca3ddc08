// margin_losses.c: multi_margin_loss and multilabel_margin_loss. Rows are computed in double from dense copies, and rounded
// once.
#include <math.h>
#include "norm.h"

// One row's loss or gradient: `x` has c elements; grad NULL for the loss.
typedef struct margin {
  int64_t n, c, p;
  double margin;
  const double *x, *weight;
  const int64_t *target;
  double *grad, *is_target;
} margin;
static double hinge(double z, int64_t p) { return p == 1 ? z : z * z; }

static em_status multi_row(const margin *j, int64_t i, double *loss, double scale) {
  const double *x = j->x + i * j->c;
  const int64_t t = j->target[i];
  if (t < 0 || t >= j->c) return em_fail(EM_ERR_RUNTIME, "target out of range");
  const double w = j->weight == NULL ? 1 : j->weight[t];
  double sum = 0, at_target = 0;
  for (int64_t d = 0; d < j->c; d++) {
    const double z = j->margin - x[t] + x[d];
    if (d == t || !(z > 0)) {
      if (d != t && z != z) sum = z;
      continue;
    }
    sum += hinge(z, j->p) * w;
    if (j->grad == NULL) continue;
    const double g = (j->p == 1 ? 1 : 2 * z) * w * scale / (double)j->c;
    j->grad[i * j->c + d] = g;
    at_target -= g;
  }
  if (j->grad != NULL) j->grad[i * j->c + t] = at_target;
  *loss = sum / (double)j->c;
  return EM_OK;
}
// Labels run to the first -1. is_target says which classes they name.
static em_status multilabel_row(const margin *j, int64_t i, double *loss, double scale) {
  const double *x = j->x + i * j->c;
  const int64_t *t = j->target + i * j->c;
  double *is = j->is_target + i * j->c, sum = 0;
  int64_t labels = 0;
  for (int64_t d = 0; d < j->c; d++) {
    if (t[d] < -1 || t[d] >= j->c) return em_fail(EM_ERR_RUNTIME, "argument #2 'target' is out of range");
    is[d] = 0;
  }
  for (; labels < j->c && t[labels] >= 0; labels++) is[t[labels]] = 1;
  for (int64_t k = 0; k < labels; k++)
    for (int64_t d = 0; d < j->c; d++) {
      const double z = 1 - x[t[k]] + x[d];
      if (is[d] != 0 || !(z > 0)) continue;
      sum += z;
      if (j->grad == NULL) continue;
      j->grad[i * j->c + d] += scale / (double)j->c;
      j->grad[i * j->c + t[k]] -= scale / (double)j->c;
    }
  *loss = sum / (double)j->c;
  return EM_OK;
}
typedef em_status (*row_fn)(const margin *j, int64_t i, double *loss, double scale);
static em_status losses(const margin *j, row_fn row, int64_t reduction, em_tensor *out) {
  double total = 0;
  for (int64_t i = 0; i < j->n; i++) {
    double loss;
    EM_PASS(row(j, i, &loss, 0));
    if (out->ndim > 0) em_tensor_put(out, i, &loss, EM_F64, 1);
    total += loss;
  }
  if (out->ndim > 0) return EM_OK;
  if (reduction == 1 && j->n > 0) total /= (double)j->n;
  em_tensor_put(out, 0, &total, EM_F64, 1);
  return EM_OK;
}
static em_status gradients(const margin *j, row_fn row, int64_t reduction, const double *grad, bool each) {
  for (int64_t i = 0; i < j->n; i++) {
    double loss;
    EM_PASS(row(j, i, &loss, each ? grad[i] : reduction == 1 ? grad[0] / (double)j->n : grad[0]));
  }
  return EM_OK;
}

// Dense copies of what a row needs; owns them.
typedef struct copies { em_tensor *x, *target, *weight, *grad, *result, *is_target; } copies;
static void release(copies *k) {
  em_tensor *all[] = {k->x, k->target, k->weight, k->grad, k->result, k->is_target};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
}
static em_status prepare(copies *k, margin *j, em_tensor *self, em_tensor *target, em_tensor *weight) {
  const void *w = NULL;
  j->c = self->ndim == 0 ? 1 : self->sizes[self->ndim - 1];
  j->n = self->ndim < 2 ? 1 : self->sizes[0];
  EM_PASS(em_priv_norm_dense(self, EM_F64, false, &k->x));
  EM_PASS(em_priv_norm_dense(target, EM_I64, false, &k->target));
  EM_PASS(em_priv_norm_weight(weight, EM_F64, &k->weight, &w));
  j->x = em_tensor_data(k->x);
  j->target = em_tensor_data(k->target);
  j->weight = w;
  return EM_OK;
}
static em_status zeros(em_tensor *like, em_tensor **out, double **p) {
  EM_PASS(em_tensor_new(like->ndim, like->sizes, EM_F64, like->device, out));
  *p = em_tensor_data(*out);
  return em_fill(*out, em_scalar_int(0));
}
em_status k_cpu_multi_margin_loss(em_plan *plan, em_tensor *self, em_tensor *target, em_scalar p, em_scalar margin_,
                                  em_tensor *weight, int64_t reduction, em_tensor *out) {
  (void)plan;
  copies k = {NULL};
  margin j = {.p = (int64_t)em_scalar_to_double(p), .margin = em_scalar_to_double(margin_)};
  em_status st = prepare(&k, &j, self, target, weight);
  if (st == EM_OK) st = losses(&j, multi_row, reduction, out);
  release(&k);
  return st;
}
static em_status run_backward(copies *k, margin *j, row_fn row, em_tensor *grad, int64_t reduction, em_tensor *self,
                              em_tensor *out) {
  EM_PASS(em_priv_norm_dense(grad, EM_F64, false, &k->grad));
  EM_PASS(zeros(self, &k->result, &j->grad));
  EM_PASS(gradients(j, row, reduction, em_tensor_data(k->grad), reduction == 0 && grad->ndim > 0));
  return em_copy_into(out, k->result);
}
em_status k_cpu_multi_margin_loss_backward(em_plan *plan, em_tensor *grad, em_tensor *self, em_tensor *target,
                                           em_scalar p, em_scalar margin_, em_tensor *weight, int64_t reduction,
                                           em_tensor *out) {
  (void)plan;
  copies k = {NULL};
  margin j = {.p = (int64_t)em_scalar_to_double(p), .margin = em_scalar_to_double(margin_)};
  em_status st = prepare(&k, &j, self, target, weight);
  if (st == EM_OK) st = run_backward(&k, &j, multi_row, grad, reduction, self, out);
  release(&k);
  return st;
}
em_status k_cpu_multilabel_margin_loss_forward(em_plan *plan, em_tensor *self, em_tensor *target, int64_t reduction,
                                               em_tensor *out, em_tensor *is_target) {
  (void)plan;
  copies k = {NULL};
  margin j = {.p = 1, .margin = 1};
  em_status st = prepare(&k, &j, self, target, NULL);
  if (st == EM_OK) st = zeros(self, &k.is_target, &j.is_target);
  if (st == EM_OK) st = losses(&j, multilabel_row, reduction, out);
  if (st == EM_OK) st = em_copy_into(is_target, k.is_target);
  release(&k);
  return st;
}
em_status k_cpu_multilabel_margin_loss_backward(em_plan *plan, em_tensor *grad, em_tensor *self, em_tensor *target,
                                                int64_t reduction, em_tensor *is_target, em_tensor *out) {
  (void)plan;
  (void)is_target;  // worked out again from target
  copies k = {NULL};
  margin j = {.p = 1, .margin = 1};
  em_status st = prepare(&k, &j, self, target, NULL);
  if (st == EM_OK) st = zeros(self, &k.is_target, &j.is_target);
  if (st == EM_OK) st = run_backward(&k, &j, multilabel_row, grad, reduction, self, out);
  release(&k);
  return st;
}
