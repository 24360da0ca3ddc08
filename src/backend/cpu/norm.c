// norm.c: layer norm and RMS norm, and what group and batch norm share with them. Loops are in norm_bodies.inc.h.
#include "norm.h"
#include <math.h>
#include <string.h>

EM_ISA_DECLARE(em_norm_set, em_priv_norm, );
const em_norm_table *em_priv_norm_loops(int dtype) {
  const int kind = dtype == EM_F64 ? EM_NORM_F64 : dtype == EM_F16 ? EM_NORM_F16 : dtype == EM_BF16 ? EM_NORM_BF16 : EM_NORM_F32;
  return EM_ISA_PICK(em_priv_norm)[kind];
}
static void channels_last_strides(int ndim, const int64_t *sizes, int64_t *strides) {
  int64_t step = sizes[1] > 0 ? sizes[1] : 1;
  strides[1] = 1;
  for (int d = ndim - 1; d != 1; d = d == 2 ? 0 : d == 0 ? 1 : d - 1) {
    strides[d] = step;
    step *= sizes[d] > 0 ? sizes[d] : 1;
  }
}
bool em_priv_norm_is_channels_last(const em_tensor *t) {
  if (t->ndim != 4 && t->ndim != 5) return false;
  int64_t want[5];
  channels_last_strides(t->ndim, t->sizes, want);
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] != 1 && t->strides[d] != want[d]) return false;
  return true;
}
static bool lies_as(const em_tensor *t, bool channels_last) {
  return channels_last ? em_priv_norm_is_channels_last(t) : em_tensor_is_contiguous(t);
}
static em_status fresh(em_tensor *like, int dtype, bool channels_last, em_tensor **out) {
  int64_t strides[5];
  if (channels_last) channels_last_strides(like->ndim, like->sizes, strides);
  return em_tensor_new_strided(like->ndim, like->sizes, channels_last ? strides : NULL, dtype, like->device, out);
}
em_status em_priv_norm_dense(em_tensor *t, int dtype, bool channels_last, em_tensor **out) {
  if (t->dtype == dtype && lies_as(t, channels_last)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  EM_PASS(fresh(t, dtype, channels_last, out));
  em_status st = em_copy_into(*out, t);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
em_status em_priv_norm_weight(em_tensor *t, int dtype, em_tensor **out, const void **p) {
  *out = NULL;
  *p = NULL;
  if (t == NULL) return EM_OK;
  EM_PASS(em_priv_norm_dense(t, dtype, false, out));
  *p = em_tensor_data(*out);
  return EM_OK;
}
em_status em_priv_norm_target(em_tensor *out, bool channels_last, em_tensor **target) {
  if (!lies_as(out, channels_last)) return fresh(out, out->dtype, channels_last, target);
  *target = em_tensor_retain(out);
  return EM_OK;
}
em_status em_priv_norm_commit(em_tensor *out, em_tensor *target, em_status st) {
  if (st == EM_OK && target != NULL && target != out) st = em_copy_into(out, target);
  em_tensor_release(target);
  return st;
}

// --- layer norm and RMS norm, forward: rows of n elements
typedef struct rows {
  const em_norm_table *loops;
  int64_t n;
  size_t size;
  double eps;
  bool rms;
  const char *x, *dy;
  char *o;
  const void *gamma, *beta;
  em_tensor *mean, *rstd;          // results of forward
  const double *means, *rstds;     // given to backward
  // backward: rows a part takes; sums of the weight's and bias's gradients, n elements a part
  int64_t m, per_part;
  char *dgamma, *dbeta;
  size_t compute_size;
} rows;
enum { AT_ONCE = 64 };
static em_status forward_rows(void *context, int64_t begin, int64_t end) {
  const rows *j = context;
  double means[AT_ONCE], rstds[AT_ONCE];
  for (int64_t first = begin; first < end; first += AT_ONCE) {
    const int64_t count = end - first < AT_ONCE ? end - first : AT_ONCE;
    for (int64_t i = 0; i < count; i++) {
      const size_t at = (size_t)((first + i) * j->n) * j->size;
      const double mean = j->rms ? 0 : j->loops->sum(j->x + at, j->n) / (double)j->n;
      const double rstd = 1 / sqrt(j->loops->squares(j->x + at, j->n, mean) / (double)j->n + j->eps);
      j->loops->row(j->o + at, j->x + at, j->n, j->gamma, j->beta, mean, rstd);
      means[i] = mean;
      rstds[i] = rstd;
    }
    if (j->mean != NULL) em_tensor_put(j->mean, first, means, EM_F64, count);
    em_tensor_put(j->rstd, first, rstds, EM_F64, count);
  }
  return EM_OK;
}
static int64_t count_of(em_ints sizes) {
  int64_t n = 1;
  for (int64_t i = 0; i < sizes.n; i++) n *= sizes.p[i];
  return n;
}
static em_status forward(em_tensor *input, em_ints shape, em_tensor *weight, em_tensor *bias, double eps, bool rms,
                         em_tensor *out, em_tensor *mean, em_tensor *rstd) {
  const int compute = em_priv_dtypes[input->dtype].compute;
  rows j = {.loops = em_priv_norm_loops(input->dtype),
            .n = count_of(shape),
            .size = em_tensor_itemsize(input),
            .eps = eps,
            .rms = rms,
            .mean = mean,
            .rstd = rstd};
  if (rstd->numel == 0) return EM_OK;
  if (j.n == 0) {  // the mean of nothing
    if (mean != NULL) EM_PASS(em_fill(mean, em_scalar_double(0)));
    return em_fill(rstd, em_scalar_double(rms ? NAN : 0));
  }
  em_status st = EM_OK;
  em_tensor *x = NULL, *g = NULL, *b = NULL, *o = NULL;
  EM_TRY(em_priv_norm_dense(input, input->dtype, false, &x));
  EM_TRY(em_priv_norm_weight(weight, compute, &g, &j.gamma));
  EM_TRY(em_priv_norm_weight(bias, compute, &b, &j.beta));
  EM_TRY(em_priv_norm_target(out, false, &o));
  j.x = em_tensor_data(x);
  j.o = em_tensor_data(o);
  EM_NOTE("rows: %lld of %lld elements, one after another, so that a row is in cache for all its passes, %s loop (columns refused: the "
          "normalized dims are the "
          "last ones)", (long long)rstd->numel, (long long)j.n, em_priv_note_isa);
  void *token = em_priv_begin_long(x->numel > EM_LONG_NUMEL);
  st = em_threads_for(rstd->numel, EM_NORM_GRAIN / j.n + 1, forward_rows, &j);
  em_priv_end_long(token);
fail:
  em_tensor_release(x);
  em_tensor_release(g);
  em_tensor_release(b);
  return em_priv_norm_commit(out, o, st);
}
em_status k_cpu_native_layer_norm(em_plan *p, em_tensor *input, em_ints shape, em_tensor *weight, em_tensor *bias,
                                  double eps, em_tensor *out, em_tensor *mean, em_tensor *rstd) {
  (void)p;
  return forward(input, shape, weight, bias, eps, false, out, mean, rstd);
}
em_status k_cpu__fused_rms_norm(em_plan *p, em_tensor *input, em_ints shape, em_tensor *weight, em_opt_double eps,
                                em_tensor *out, em_tensor *rstd) {
  (void)p;
  const double least = input->dtype == EM_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  return forward(input, shape, weight, NULL, eps.has ? eps.v : least, true, out, NULL, rstd);
}

// --- backward. Rows fall into parts by size alone; each part sums the gradients of weight and bias for itself, and the
// parts are added in order: the same bits for every number of threads.
enum { MAX_PARTS = 16 };
static em_status backward_part(void *context, int64_t begin, int64_t end) {
  const rows *j = context;
  for (int64_t part = begin; part < end; part++) {
    const size_t own = (size_t)(part * j->n) * j->compute_size;
    char *dgamma = j->dgamma == NULL ? NULL : j->dgamma + own, *dbeta = j->dbeta == NULL ? NULL : j->dbeta + own;
    const int64_t last = (part + 1) * j->per_part < j->m ? (part + 1) * j->per_part : j->m;
    for (int64_t i = part * j->per_part; i < last; i++) {
      const size_t at = (size_t)(i * j->n) * j->size;
      double s[2];
      const double mean = j->means == NULL ? 0 : j->means[i];
      j->loops->row_dot(j->dy + at, j->x + at, j->n, j->gamma, mean, j->rstds[i], dgamma, dbeta, s);
      if (j->o != NULL)
        j->loops->row_mix(j->o + at, j->dy + at, j->x + at, j->n, j->gamma, mean, j->rstds[i],
                          j->rms ? 0 : s[0] / (double)j->n, s[1] / (double)j->n);
    }
  }
  return EM_OK;
}
// A block of parts * n zeros of the compute dtype, for the gradients of a weight; NULL if `out` is not wanted.
static em_status sums_for(em_tensor *out, int compute, int64_t parts, int64_t n, em_tensor **sums, char **p) {
  *sums = NULL;
  *p = NULL;
  if (out == NULL) return EM_OK;
  EM_PASS(em_tensor_new(2, (int64_t[]){parts, n}, compute, out->device, sums));
  EM_PASS(em_fill(*sums, em_scalar_int(0)));
  *p = em_tensor_data(*sums);
  return EM_OK;
}
static void add_parts(em_tensor *sums, int64_t parts, int64_t n, em_tensor *out) {
  if (out == NULL) return;
  for (int64_t part = 1; part < parts; part++) {
    if (sums->dtype == EM_F64) {
      double *s = em_tensor_data(sums);
      for (int64_t k = 0; k < n; k++) s[k] += s[part * n + k];
    } else {
      float *s = em_tensor_data(sums);
      for (int64_t k = 0; k < n; k++) s[k] += s[part * n + k];
    }
  }
  em_tensor_put(out, 0, em_tensor_data(sums), sums->dtype, n);
}
// dx, dgamma and dbeta are fresh, contiguous, or NULL.
static em_status backward(em_tensor *grad, em_tensor *input, em_ints shape, em_tensor *mean, em_tensor *rstd,
                          em_tensor *weight, bool rms, em_tensor *dx, em_tensor *dgamma, em_tensor *dbeta) {
  const int compute = em_priv_dtypes[input->dtype].compute;
  em_status st = EM_OK;
  em_tensor *x = NULL, *dy = NULL, *g = NULL, *mu = NULL, *r = NULL, *sg = NULL, *sb = NULL;
  rows j = {.loops = em_priv_norm_loops(input->dtype),
            .n = count_of(shape),
            .m = rstd->numel,
            .size = em_tensor_itemsize(input),
            .compute_size = em_dtype_size(compute),
            .rms = rms,
            .o = dx == NULL ? NULL : em_tensor_data(dx)};
  if (j.n == 0 || j.m == 0) {
    if (dgamma != NULL) EM_PASS(em_fill(dgamma, em_scalar_int(0)));
    return dbeta == NULL ? EM_OK : em_fill(dbeta, em_scalar_int(0));
  }
  const void *means = NULL, *rstds = NULL;
  int64_t parts = input->numel / 65536 + 1;
  parts = parts > MAX_PARTS ? MAX_PARTS : parts;
  if (dgamma == NULL && dbeta == NULL) parts = j.m;
  j.per_part = (j.m + parts - 1) / parts;
  parts = (j.m + j.per_part - 1) / j.per_part;
  EM_TRY(em_priv_norm_dense(input, input->dtype, false, &x));
  EM_TRY(em_priv_norm_dense(grad, input->dtype, false, &dy));
  EM_TRY(em_priv_norm_weight(weight, compute, &g, &j.gamma));
  EM_TRY(em_priv_norm_weight(mean, EM_F64, &mu, &means));
  EM_TRY(em_priv_norm_weight(rstd, EM_F64, &r, &rstds));
  EM_TRY(sums_for(dgamma, compute, parts, j.n, &sg, &j.dgamma));
  EM_TRY(sums_for(dbeta, compute, parts, j.n, &sb, &j.dbeta));
  j.means = means;
  j.rstds = rstds;
  j.x = em_tensor_data(x);
  j.dy = em_tensor_data(dy);
  if (sg == NULL && sb == NULL)
    EM_NOTE("rows: %lld of %lld elements, %s loop (parts refused: no weight's gradient is summed up)", (long long)j.m, (long long)j.n,
            em_priv_note_isa);
  else
    EM_NOTE("parts: %lld of up to %lld rows, each sums the weight's gradients for itself, %s loop (single rows refused: their sums "
            "would depend on "
            "the threads)", (long long)parts, (long long)j.per_part, em_priv_note_isa);
  void *token = em_priv_begin_long(x->numel > EM_LONG_NUMEL);
  st = em_threads_for(parts, EM_NORM_GRAIN / (j.n * j.per_part) + 1, backward_part, &j);
  em_priv_end_long(token);
  if (st != EM_OK) goto fail;
  add_parts(sg, parts, j.n, dgamma);
  add_parts(sb, parts, j.n, dbeta);
fail:
  em_tensor_release(x);
  em_tensor_release(dy);
  em_tensor_release(g);
  em_tensor_release(mu);
  em_tensor_release(r);
  em_tensor_release(sg);
  em_tensor_release(sb);
  return st;
}

// --- entries: what is not wanted stays NULL
static em_status check_backward(const char *name, em_tensor *grad, em_tensor *input, em_ints shape, em_tensor *mean,
                                em_tensor *rstd, em_tensor *weight) {
  int64_t rows_ = 1, n = 1;
  bool fits = shape.n >= 1 && shape.n <= input->ndim && em_tensor_same_sizes(grad, input);
  for (int64_t i = 0; fits && i < shape.n; i++) fits = shape.p[i] == input->sizes[input->ndim - shape.n + i];
  for (int d = 0; fits && d < input->ndim; d++) *(d < input->ndim - shape.n ? &rows_ : &n) *= input->sizes[d];
  fits = fits && rstd->numel == rows_ && (mean == NULL || mean->numel == rows_) && (weight == NULL || weight->numel == n);
  if (!fits) return em_fail(EM_ERR_RUNTIME, "%s: the arguments' shapes do not fit each other", name);
  if (!em_dtype_is_float(input->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"LayerNormBackwardKernelImpl\" not implemented for '%s'",
                   em_dtype_scalar_name(input->dtype));
  return EM_OK;
}
static em_status rows_backward(const char *name, em_tensor *grad, em_tensor *input, em_ints shape, em_tensor *mean,
                               em_tensor *rstd, em_tensor *weight, bool rms, em_bools mask, em_tensor **dx,
                               em_tensor **dgamma, em_tensor **dbeta) {
  em_status st = EM_OK;
  const int dtype = weight == NULL ? input->dtype : weight->dtype;
  EM_PASS(check_backward(name, grad, input, shape, mean, rstd, weight));
  em_tensor *d[3] = {NULL};
  if (mask.p[0]) EM_TRY(em_tensor_new(input->ndim, input->sizes, input->dtype, input->device, &d[0]));
  if (mask.p[1]) EM_TRY(em_tensor_new((int)shape.n, shape.p, dtype, input->device, &d[1]));
  if (!rms && mask.p[2]) EM_TRY(em_tensor_new((int)shape.n, shape.p, dtype, input->device, &d[2]));
  if (input->device.type != EM_DEVICE_META)
    EM_TRY(backward(grad, input, shape, mean, rstd, weight, rms, d[0], d[1], d[2]));
  *dx = d[0];
  *dgamma = d[1];
  if (dbeta != NULL) *dbeta = d[2];
  return EM_OK;
fail:
  for (int i = 0; i < 3; i++) em_tensor_release(d[i]);
  return st;
}
em_status n_native_layer_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_ints shape,
                                       em_tensor *mean, em_tensor *rstd, em_tensor *weight, em_tensor *bias,
                                       em_bools mask, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  (void)ks;
  (void)bias;
  return rows_backward("native_layer_norm_backward", grad_out, input, shape, mean, rstd, weight, false, mask, out0,
                       out1, out2);
}
em_status n__fused_rms_norm_backward(uint64_t ks, em_tensor *grad_out, em_tensor *input, em_ints shape,
                                     em_tensor *rstd, em_tensor *weight, em_bools mask, em_tensor **out0,
                                     em_tensor **out1) {
  (void)ks;
  return rows_backward("_fused_rms_norm_backward", grad_out, input, shape, NULL, rstd, weight, true, mask, out0, out1,
                       NULL);
}
