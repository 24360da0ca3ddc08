// ctc.c: connectionist temporal classification: over all ways to spread a sequence of labels, with blanks between them, over
// the time steps. The extended sequence is blank l0 blank l1 ... blank; alpha[t][s] is the log-probability of all ways that
// stand at s after step t, beta the same from the end. Computed in double.
#include <math.h>
#include <string.h>
#include "norm.h"

typedef struct ctc {
  int64_t t, n, c, s;  // steps, samples, classes, length of the longest extended sequence
  int64_t blank;
  const double *logp;  // [t][n][c]
  const int64_t *targets;
  const int64_t *input_lengths, *target_lengths;
  bool packed;         // targets follow each other without padding
  int64_t stride;      // between samples otherwise
} ctc;
static double log_add(double a, double b) {
  const double m = a > b ? a : b;
  return m == -INFINITY ? -INFINITY : m + log(exp(a - m) + exp(b - m));
}
static const int64_t *labels_of(const ctc *k, int64_t i) {
  int64_t at = i * k->stride;
  if (k->packed) {
    at = 0;
    for (int64_t j = 0; j < i; j++) at += k->target_lengths[j];
  }
  return k->targets + at;
}
static int64_t label(const ctc *k, const int64_t *labels, int64_t s) { return s % 2 == 0 ? k->blank : labels[s / 2]; }
static double logp(const ctc *k, int64_t t, int64_t i, int64_t c) { return k->logp[(t * k->n + i) * k->c + c]; }
static em_status check_labels(const ctc *k, int64_t i) {
  const int64_t *labels = labels_of(k, i);
  for (int64_t s = 0; s < k->target_lengths[i]; s++)
    if (labels[s] < 0 || labels[s] >= k->c)
      return em_fail(EM_ERR_RUNTIME, "ctc_loss: target %lld is out of range for %lld classes", (long long)labels[s],
                     (long long)k->c);
  return EM_OK;
}
// alpha: [t][s] of one sample, all -inf. Returns the negative log-likelihood.
static double forward(const ctc *k, int64_t i, double *alpha) {
  const int64_t *labels = labels_of(k, i), steps = k->input_lengths[i], n = 2 * k->target_lengths[i] + 1;
  if (steps == 0) return n == 1 ? 0 : INFINITY;
  alpha[0] = logp(k, 0, i, k->blank);
  if (n > 1) alpha[1] = logp(k, 0, i, labels[0]);
  for (int64_t t = 1; t < steps; t++)
    for (int64_t s = 0; s < n; s++) {
      const double *before = alpha + (t - 1) * k->s;
      double sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (s > 1 && label(k, labels, s - 2) != label(k, labels, s)) sum = log_add(sum, before[s - 2]);
      alpha[t * k->s + s] = sum + logp(k, t, i, label(k, labels, s));
    }
  const double *last = alpha + (steps - 1) * k->s;
  return -(n == 1 ? last[0] : log_add(last[n - 1], last[n - 2]));
}
// grad: [t][n][c], zero where nothing is added. beta: room for 2 * s numbers; total: for c.
static void backward(const ctc *k, int64_t i, const double *alpha, double nll, double g, double *beta, double *total,
                     double *grad) {
  const int64_t *labels = labels_of(k, i), steps = k->input_lengths[i], n = 2 * k->target_lengths[i] + 1;
  double *now = beta, *next = beta + k->s;
  for (int64_t t = steps - 1; t >= 0; t--) {
    for (int64_t c = 0; c < k->c; c++) total[c] = -INFINITY;
    for (int64_t s = n - 1; s >= 0; s--) {
      const int64_t c = label(k, labels, s);
      double sum = -INFINITY;
      if (t == steps - 1) {
        if (s >= n - 2) sum = 0;
      } else {
        sum = next[s];
        if (s + 1 < n) sum = log_add(sum, next[s + 1]);
        if (s + 2 < n && label(k, labels, s + 2) != c) sum = log_add(sum, next[s + 2]);
      }
      now[s] = sum + logp(k, t, i, c);
      total[c] = log_add(total[c], alpha[t * k->s + s] + now[s]);
    }
    for (int64_t c = 0; c < k->c; c++) {
      const double lp = logp(k, t, i, c);
      grad[(t * k->n + i) * k->c + c] = (exp(lp) - exp(total[c] + nll - lp)) * g;
    }
    double *swap = now;
    now = next;
    next = swap;
  }
}
// Dense copies; owns them.
typedef struct copies { em_tensor *logp, *targets, *alpha, *grad, *nll, *result, *work; } copies;
static void release(copies *m) {
  em_tensor *all[] = {m->logp, m->targets, m->alpha, m->grad, m->nll, m->result, m->work};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
}
static em_status prepare(ctc *k, copies *m, em_tensor *log_probs, em_tensor *targets, em_ints input_lengths,
                         em_ints target_lengths, int64_t blank, int64_t s) {
  EM_PASS(em_priv_norm_dense(log_probs, EM_F64, false, &m->logp));
  EM_PASS(em_priv_norm_dense(targets, EM_I64, false, &m->targets));
  *k = (ctc){.t = log_probs->sizes[0],
             .n = log_probs->sizes[1],
             .c = log_probs->sizes[2],
             .s = s,
             .blank = blank,
             .logp = em_tensor_data(m->logp),
             .targets = em_tensor_data(m->targets),
             .input_lengths = input_lengths.p,
             .target_lengths = target_lengths.p,
             .packed = targets->ndim == 1,
             .stride = targets->ndim == 1 ? 0 : targets->sizes[1]};
  for (int64_t i = 0; i < k->n; i++) EM_PASS(check_labels(k, i));
  return EM_OK;
}
static em_status run_forward(em_tensor *log_probs, em_tensor *targets, em_ints input_lengths, em_ints target_lengths,
                             int64_t blank, em_tensor *nll, em_tensor *log_alpha) {
  ctc k;
  copies m = {NULL};
  em_status st = EM_OK;
  EM_TRY(prepare(&k, &m, log_probs, targets, input_lengths, target_lengths, blank, log_alpha->sizes[2]));
  EM_TRY(em_tensor_new(3, log_alpha->sizes, EM_F64, log_alpha->device, &m.alpha));
  EM_TRY(em_fill(m.alpha, em_scalar_double(-INFINITY)));
  double *alpha = em_tensor_data(m.alpha);
  for (int64_t i = 0; i < k.n; i++) {
    const double loss = forward(&k, i, alpha + i * k.t * k.s);
    em_tensor_put(nll, i, &loss, EM_F64, 1);
  }
  st = em_copy_into(log_alpha, m.alpha);
fail:
  release(&m);
  return st;
}
em_status k_cpu__ctc_loss(em_plan *p, em_tensor *log_probs, em_tensor *targets, em_ints input_lengths,
                          em_ints target_lengths, int64_t blank, bool zero_infinity, em_tensor *nll,
                          em_tensor *log_alpha) {
  (void)p;
  (void)zero_infinity;
  return run_forward(log_probs, targets, input_lengths, target_lengths, blank, nll, log_alpha);
}
em_status k_cpu__ctc_loss_backward(em_plan *p, em_tensor *grad, em_tensor *log_probs, em_tensor *targets,
                                   em_ints input_lengths, em_ints target_lengths, em_tensor *nll, em_tensor *log_alpha,
                                   int64_t blank, bool zero_infinity, em_tensor *out) {
  (void)p;
  ctc k;
  copies m = {NULL};
  em_status st = EM_OK;
  EM_TRY(prepare(&k, &m, log_probs, targets, input_lengths, target_lengths, blank, log_alpha->sizes[2]));
  EM_TRY(em_priv_norm_dense(log_alpha, EM_F64, false, &m.alpha));
  EM_TRY(em_priv_norm_dense(nll, EM_F64, false, &m.nll));
  EM_TRY(em_priv_norm_dense(grad, EM_F64, false, &m.grad));
  EM_TRY(em_tensor_new(3, log_probs->sizes, EM_F64, log_probs->device, &m.result));
  EM_TRY(em_fill(m.result, em_scalar_int(0)));
  const int64_t room = 2 * k.s + k.c;
  EM_TRY(em_tensor_new(1, &room, EM_F64, log_probs->device, &m.work));
  const double *alpha = em_tensor_data(m.alpha), *losses = em_tensor_data(m.nll), *g = em_tensor_data(m.grad);
  double *work = em_tensor_data(m.work);
  for (int64_t i = 0; i < k.n; i++)
    if (!(zero_infinity && losses[i] == INFINITY))
      backward(&k, i, alpha + i * k.t * k.s, losses[i], g[i], work, work + 2 * k.s, em_tensor_data(m.result));
  st = em_copy_into(out, m.result);
fail:
  release(&m);
  return st;
}
