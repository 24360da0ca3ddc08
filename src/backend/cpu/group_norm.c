// group_norm.c: group norm over (n, c, rest) in row-major order, forward and backward. An input in channels_last passes
// through a row-major copy.
#include <math.h>
#include "norm.h"

typedef struct groups {
  const em_norm_table *loops;
  int64_t n, c, rest, group, d;  // d: channels of a group
  size_t size;
  double eps;
  const char *x, *dy;
  char *o;
  const double *gamma, *beta;            // a value for each channel, or NULL
  const void *row_gamma, *row_beta;      // the same in the compute dtype, for rest == 1
  size_t compute_size;
  em_tensor *mean, *rstd;
  const double *means, *rstds;
  double *s0, *s1;                       // sums of dy and of dy (x - mean) for each of n * c
} groups;
static em_status forward(void *context, int64_t begin, int64_t end) {
  const groups *j = context;
  const int64_t count = j->d * j->rest;
  for (int64_t i = begin; i < end; i++) {
    const size_t at = (size_t)(i * count) * j->size;
    const int64_t c0 = i % j->group * j->d;
    const double mean = j->loops->sum(j->x + at, count) / (double)count;
    const double rstd = 1 / sqrt(j->loops->squares(j->x + at, count, mean) / (double)count + j->eps);
    em_tensor_put(j->mean, i, &mean, EM_F64, 1);
    em_tensor_put(j->rstd, i, &rstd, EM_F64, 1);
    if (j->rest == 1) {
      const size_t w = (size_t)c0 * j->compute_size;
      j->loops->row(j->o + at, j->x + at, j->d, j->row_gamma == NULL ? NULL : (const char *)j->row_gamma + w,
                    j->row_beta == NULL ? NULL : (const char *)j->row_beta + w, mean, rstd);
      continue;
    }
    for (int64_t k = 0; k < j->d; k++) {
      const size_t here = at + (size_t)(k * j->rest) * j->size;
      const double a = rstd * (j->gamma == NULL ? 1 : j->gamma[c0 + k]);
      j->loops->scale(j->o + here, j->x + here, j->rest, mean, a, j->beta == NULL ? 0 : j->beta[c0 + k]);
    }
  }
  return EM_OK;
}
static void shape_of(groups *j, const em_tensor *input, int64_t n, int64_t c, int64_t rest, int64_t group) {
  *j = (groups){.loops = em_priv_norm_loops(input->dtype),
                .n = n,
                .c = c,
                .rest = rest,
                .group = group,
                .d = c / group,
                .size = em_tensor_itemsize(input),
                .compute_size = em_dtype_size(em_priv_dtypes[input->dtype].compute)};
}
em_status k_cpu_native_group_norm(em_plan *p, em_tensor *input, em_tensor *weight, em_tensor *bias, int64_t n,
                                  int64_t c, int64_t rest, int64_t group, double eps, em_tensor *out, em_tensor *mean,
                                  em_tensor *rstd) {
  (void)p;
  groups j;
  shape_of(&j, input, n, c, rest, group);
  if (input->numel == 0) {
    EM_PASS(em_fill(mean, em_scalar_int(0)));
    return em_fill(rstd, em_scalar_double(NAN));
  }
  em_status st = EM_OK;
  em_tensor *x = NULL, *g = NULL, *b = NULL, *rg = NULL, *rb = NULL, *o = NULL;
  const void *gamma = NULL, *beta = NULL;
  const int compute = em_priv_dtypes[input->dtype].compute;
  EM_TRY(em_priv_norm_dense(input, input->dtype, false, &x));
  EM_TRY(em_priv_norm_weight(weight, EM_F64, &g, &gamma));
  EM_TRY(em_priv_norm_weight(bias, EM_F64, &b, &beta));
  EM_TRY(em_priv_norm_weight(weight, compute, &rg, &j.row_gamma));
  EM_TRY(em_priv_norm_weight(bias, compute, &rb, &j.row_beta));
  EM_TRY(em_priv_norm_target(out, false, &o));
  j.gamma = gamma;
  j.beta = beta;
  j.eps = eps;
  j.x = em_tensor_data(x);
  j.o = em_tensor_data(o);
  j.mean = mean;
  j.rstd = rstd;
  if (rest == 1)
    EM_NOTE("groups as rows: %lld of %lld channels, %s loop (channel by channel refused: a channel is one element)", (long long)(n * group),
            (long long)j.d, em_priv_note_isa);
  else
    EM_NOTE("groups by channels: %lld groups of %lld channels of %lld elements, %s loop (one row a group refused: a channel has a "
            "factor of its "
            "own)", (long long)(n * group), (long long)j.d, (long long)rest, em_priv_note_isa);
  void *token = em_priv_begin_long(input->numel > EM_LONG_NUMEL);
  st = em_threads_for(n * group, EM_NORM_GRAIN / (j.d * rest + 1) + 1, forward, &j);
  em_priv_end_long(token);
fail:
  em_tensor_release(x);
  em_tensor_release(g);
  em_tensor_release(b);
  em_tensor_release(rg);
  em_tensor_release(rb);
  return em_priv_norm_commit(out, o, st);
}

// --- backward
static em_status backward(void *context, int64_t begin, int64_t end) {
  const groups *j = context;
  for (int64_t i = begin; i < end; i++) {
    const int64_t c0 = i % j->group * j->d, first = i * j->d;
    const double mean = j->means[i], rstd = j->rstds[i], count = (double)(j->d * j->rest);
    double sum = 0, dot = 0;  // of gamma dy, and of gamma dy (x - mean)
    for (int64_t k = 0; k < j->d; k++) {
      const size_t at = (size_t)((first + k) * j->rest) * j->size;
      double s[2] = {0, 0};
      j->loops->dot(j->dy + at, j->x + at, j->rest, mean, s);
      j->s0[first + k] = s[0];
      j->s1[first + k] = s[1] * rstd;
      const double g = j->gamma == NULL ? 1 : j->gamma[c0 + k];
      sum += g * s[0];
      dot += g * s[1];
    }
    for (int64_t k = 0; j->o != NULL && k < j->d; k++) {
      const size_t at = (size_t)((first + k) * j->rest) * j->size;
      const double g = j->gamma == NULL ? 1 : j->gamma[c0 + k];
      j->loops->mix(j->o + at, j->dy + at, j->x + at, j->rest, mean, rstd * g, -rstd * rstd * rstd * dot / count,
                    -rstd * sum / count);
    }
  }
  return EM_OK;
}
// out[c] = sum over n of s[n][c]
static void over_batch(const groups *j, double *s, em_tensor *out) {
  for (int64_t i = 1; i < j->n; i++)
    for (int64_t c = 0; c < j->c; c++) s[c] += s[i * j->c + c];
  em_tensor_put(out, 0, s, EM_F64, j->c);
}
static em_status run_backward(groups *j, em_tensor *grad, em_tensor *input, em_tensor *mean, em_tensor *rstd,
                              em_tensor *weight, em_tensor *dx, em_tensor *dgamma, em_tensor *dbeta) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *dy = NULL, *g = NULL, *m = NULL, *r = NULL, *sums = NULL, *o = NULL;
  const void *gamma = NULL, *means = NULL, *rstds = NULL;
  if (input->numel == 0) {
    if (dgamma != NULL) EM_PASS(em_fill(dgamma, em_scalar_int(0)));
    return dbeta == NULL ? EM_OK : em_fill(dbeta, em_scalar_int(0));
  }
  EM_TRY(em_priv_norm_dense(input, input->dtype, false, &x));
  EM_TRY(em_priv_norm_dense(grad, input->dtype, false, &dy));
  EM_TRY(em_priv_norm_weight(weight, EM_F64, &g, &gamma));
  EM_TRY(em_priv_norm_weight(mean, EM_F64, &m, &means));
  EM_TRY(em_priv_norm_weight(rstd, EM_F64, &r, &rstds));
  EM_TRY(em_tensor_new(2, (int64_t[]){2, j->n * j->c}, EM_F64, input->device, &sums));
  if (dx != NULL) EM_TRY(em_priv_norm_target(dx, false, &o));
  j->gamma = gamma;
  j->means = means;
  j->rstds = rstds;
  j->s0 = em_tensor_data(sums);
  j->s1 = j->s0 + j->n * j->c;
  j->x = em_tensor_data(x);
  j->dy = em_tensor_data(dy);
  j->o = o == NULL ? NULL : em_tensor_data(o);
  EM_NOTE("groups by channels: %lld groups of %lld channels of %lld elements, %s loop", (long long)(j->n * j->group), (long long)j->d,
          (long long)j->rest, em_priv_note_isa);
  void *token = em_priv_begin_long(input->numel > EM_LONG_NUMEL);
  st = em_threads_for(j->n * j->group, EM_NORM_GRAIN / (j->d * j->rest + 1) + 1, backward, j);
  em_priv_end_long(token);
  if (st != EM_OK) goto fail;
  if (dbeta != NULL) over_batch(j, j->s0, dbeta);
  if (dgamma != NULL) over_batch(j, j->s1, dgamma);
fail:
  em_tensor_release(x);
  em_tensor_release(dy);
  em_tensor_release(g);
  em_tensor_release(m);
  em_tensor_release(r);
  em_tensor_release(sums);
  return dx == NULL ? st : em_priv_norm_commit(dx, o, st);
}
em_status n_native_group_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_tensor *mean,
                                       em_tensor *rstd, em_tensor *weight, int64_t n, int64_t c, int64_t rest,
                                       int64_t group, em_bools mask, em_tensor **out0, em_tensor **out1,
                                       em_tensor **out2) {
  (void)ks;
  int64_t numel = 0;
  const int64_t sizes[] = {n, c, rest};
  if (n < 0 || c < 0 || rest < 0 || group < 1 || c % group != 0)
    return em_fail(EM_ERR_RUNTIME, "native_group_norm_backward: N, C, HxW and group do not fit each other");
  EM_PASS(em_shape_numel(3, sizes, &numel));
  if (numel != input->numel || !em_tensor_same_sizes(grad_out, input) || mean->numel != n * group ||
      rstd->numel != n * group || (weight != NULL && weight->numel != c))
    return em_fail(EM_ERR_RUNTIME, "native_group_norm_backward: the arguments' shapes do not fit each other");
  if (!em_dtype_is_float(input->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"GroupNormBackwardKernelImpl\" not implemented for '%s'",
                   em_dtype_scalar_name(input->dtype));
  em_status st = EM_OK;
  em_tensor *d[3] = {NULL};
  const int dtype = weight == NULL ? input->dtype : weight->dtype;
  if (mask.p[0])
    EM_TRY(em_call_empty_like(input, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, em_shape_suggested_format(input), &d[0]));
  for (int i = 1; i < 3; i++)
    if (mask.p[i]) EM_TRY(em_tensor_new(1, &c, dtype, input->device, &d[i]));
  groups j;
  shape_of(&j, input, n, c, rest, group);
  if (input->device.type != EM_DEVICE_META)
    EM_TRY(run_backward(&j, grad_out, input, mean, rstd, weight, d[0], d[1], d[2]));
  *out0 = d[0];
  *out1 = d[1];
  *out2 = d[2];
  return EM_OK;
fail:
  for (int i = 0; i < 3; i++) em_tensor_release(d[i]);
  return st;
}
