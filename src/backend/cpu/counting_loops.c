// counting_loops.c: bincount, histc, histogram. A histogram's counts are kept in double and stored once.
#include <math.h>
#include <string.h>
#include "gen_ops.h"

// ---- bincount
em_status n_bincount(uint64_t ks, em_tensor *self, em_tensor *weights, int64_t minlength, em_tensor **out) {
  (void)ks;
  em_status st = EM_OK;
  em_tensor *at = NULL, *w = NULL, *t = NULL;
  if (minlength < 0) return em_fail(EM_ERR_RUNTIME, "minlength should be >= 0");
  if (self->ndim == 1 && self->numel == 0) return em_call_zeros(EM_INTS(minlength), EM_I64, -1, self->device, -1, out);
  if (em_dtype_class_of(self->dtype) != EM_CLASS_INT)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"bincount_cpu\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  if (self->ndim != 1) return em_fail(EM_ERR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
  if (weights != NULL && (weights->ndim != 1 || weights->numel != self->numel))
    return em_fail(EM_ERR_RUNTIME, "weights should be 1-d and have the same length as input");
  EM_TRY(em_tensor_new(1, self->sizes, EM_I64, self->device, &at));
  EM_TRY(em_copy_into(at, self));
  const int64_t *k = em_tensor_data(at), n = at->numel;
  int64_t bins = minlength;
  for (int64_t i = 0; i < n; i++) {
    if (k[i] < 0) EM_FAIL(EM_ERR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    if (k[i] >= bins) bins = k[i] == INT64_MAX ? k[i] : k[i] + 1;
  }
  const int dtype = weights == NULL ? EM_I64 : weights->dtype == EM_F32 ? EM_F32 : EM_F64;
  EM_TRY(em_call_zeros((em_ints){&bins, 1}, dtype, -1, self->device, -1, &t));
  if (weights != NULL) {
    EM_TRY(em_tensor_new(1, weights->sizes, dtype, self->device, &w));
    EM_TRY(em_copy_into(w, weights));
  }
  void *data = em_tensor_data(t);
  if (w == NULL)
    for (int64_t i = 0; i < n; i++) ((int64_t *)data)[k[i]]++;
  else if (dtype == EM_F32)
    for (int64_t i = 0; i < n; i++) ((float *)data)[k[i]] += ((const float *)em_tensor_data(w))[i];
  else
    for (int64_t i = 0; i < n; i++) ((double *)data)[k[i]] += ((const double *)em_tensor_data(w))[i];
  *out = t;
  t = NULL;
fail:
  em_tensor_release(at);
  em_tensor_release(w);
  em_tensor_release(t);
  return st;
}

// ---- histograms
typedef struct histogram {
  int64_t bins;
  double low, high;
  bool single;          // bins are found in single precision
  const double *edges;  // the bins' edges (bins + 1), to settle what arithmetic leaves open; NULL: arithmetic alone
  bool search;          // the edges are not evenly spaced
  double *counts;
} histogram;
static int64_t bin_of(const histogram *h, double v) {
  const double *e = h->edges;
  if (h->search) {  // the last edge that is not above v
    int64_t base = 0, n = h->bins + 1;
    while (n > 0) {
      const int64_t half = n / 2;
      if (e[base + half] <= v) base += half + 1, n -= half + 1;
      else n = half;
    }
    return base - 1;
  }
  int64_t at = h->single ? (int64_t)(((float)v - (float)h->low) * (float)h->bins / ((float)h->high - (float)h->low))
                         : (int64_t)((v - h->low) * (double)h->bins / (h->high - h->low));
  if (e == NULL) return at;
  if (at > h->bins) at = h->bins;
  if (at > 0 && v < e[at]) at--;
  else if (at < h->bins && v >= e[at + 1]) at++;
  return at;
}
static void count_all(const histogram *h, const double *v, const double *weights, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!(v[i] >= h->low && v[i] <= h->high)) continue;  // nan, too
    int64_t at = bin_of(h, v[i]);
    if (at == h->bins) at--;  // the last bin has its right edge
    if (at >= 0 && at < h->bins) h->counts[at] += weights == NULL ? 1 : weights[i];
  }
}
static em_status as_doubles(em_tensor *t, em_tensor **out) {
  EM_PASS(em_tensor_new(1, &t->numel, EM_F64, t->device, out));
  em_tensor *flat = NULL;
  em_status st = em_call_reshape(t, EM_INTS(-1), &flat);
  if (st == EM_OK) st = em_copy_into(*out, flat);
  em_tensor_release(flat);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
static void range_of(const double *v, int64_t n, double *low, double *high) {
  *low = n > 0 ? v[0] : 0;
  *high = n > 0 ? v[0] : 0;
  for (int64_t i = 1; i < n; i++) {
    if (v[i] < *low || isnan(v[i])) *low = v[i];
    if (v[i] > *high || isnan(v[i])) *high = v[i];
    if (isnan(v[i])) return;
  }
}
static double rounded(double v, int dtype) { return dtype == EM_F64 ? v : (double)(float)v; }
static em_status store(const double *counts, int64_t n, int dtype, em_device device, em_tensor **out) {
  EM_PASS(em_tensor_new(1, &n, dtype, device, out));
  em_tensor_put(*out, 0, counts, EM_F64, n);
  return EM_OK;
}

em_status n_histc(uint64_t ks, em_tensor *self, int64_t bins, em_scalar min, em_scalar max, em_tensor **out) {
  (void)ks;
  if (bins <= 0) return em_fail(EM_ERR_RUNTIME, "torch.histogram(): bins must be > 0, but got %lld for dimension 0", (long long)bins);
  if (min.kind == EM_SCALAR_COMPLEX || max.kind == EM_SCALAR_COMPLEX)
    return em_fail(EM_ERR_RUNTIME, "value cannot be converted to type double without overflow");
  if (!em_dtype_is_float(self->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'",
                   em_dtype_is_complex(self->dtype) ? "aminmax_cpu" : self->dtype == EM_BOOL ? "linspace_cpu" : "histogram_cpu",
                   em_dtype_scalar_name(self->dtype));
  if (self->device.type == EM_DEVICE_META) return em_tensor_new(1, &bins, self->dtype, self->device, out);
  em_status st = EM_OK;
  em_tensor *v = NULL, *counts = NULL;
  histogram h = {.bins = bins, .low = em_scalar_to_double(min), .high = em_scalar_to_double(max), .single = self->dtype != EM_F64};
  EM_TRY(as_doubles(self, &v));
  if (h.low == h.high && self->numel > 0) range_of(em_tensor_data(v), v->numel, &h.low, &h.high);
  if (h.low == h.high) h.low -= 1, h.high += 1;
  if (!isfinite(h.low) || !isfinite(h.high))
    EM_FAIL(EM_ERR_RUNTIME, "torch.histc: range of [%g, %g] is not finite", h.low, h.high);
  if (h.low > h.high) EM_FAIL(EM_ERR_RUNTIME, "torch.histc: max must be larger than min");
  EM_TRY(em_call_zeros((em_ints){&bins, 1}, EM_F64, -1, self->device, -1, &counts));
  h.counts = em_tensor_data(counts);
  count_all(&h, em_tensor_data(v), NULL, v->numel);
  EM_TRY(store(h.counts, bins, self->dtype, self->device, out));
fail:
  em_tensor_release(v);
  em_tensor_release(counts);
  return st;
}

static em_status check_histogram(em_tensor *self, em_tensor *weight, em_tensor *edges) {
  char a[256], b[256];
  const em_tensor *others[] = {weight, edges};
  for (int i = 0; i < 2; i++)
    if (others[i] != NULL && others[i]->device.type != self->device.type)
      return em_fail(EM_ERR_RUNTIME, "Expected all tensors to be on the same device");
  if (edges != NULL) {
    if (edges->dtype != self->dtype)
      return em_fail(EM_ERR_RUNTIME,
                     "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s and "
                     "bins for dimension 0 with dtype %s",
                     em_dtype_type_name(self->dtype), em_dtype_type_name(edges->dtype));
    if (edges->ndim != 1)
      return em_fail(EM_ERR_RUNTIME,
                     "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions in the bins tensor for "
                     "dimension 0",
                     edges->ndim);
    if (edges->numel == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                     "dimension 0");
    if (edges->numel == 1)
      return em_fail(EM_ERR_RUNTIME, "torch.histogram(): bins must be > 0, but got 0 for dimension 0");
  }
  if (weight != NULL && weight->dtype != self->dtype)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                   "but got input(%s), and weight(%s)",
                   em_dtype_type_name(self->dtype), em_dtype_type_name(weight->dtype));
  if (weight != NULL && weight->numel != self->numel) {
    const int64_t n[2] = {self->numel, 1};
    return em_fail(EM_ERR_RUNTIME,
                   "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                   "its innermost dimension, but got input with shape %s and weight with shape %s",
                   em_shape_format(2, n, a, sizeof a), em_shape_format(1, &weight->numel, b, sizeof b));
  }
  const bool takes = edges != NULL ? em_dtype_is_float(self->dtype) : self->dtype == EM_F32 || self->dtype == EM_F64;
  if (!takes)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"histogramdd\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  return EM_OK;
}
// Counts into the bins between the edges (double, bins + 1 of them).
static em_status fill_bins(histogram *h, em_tensor *self, em_tensor *weight, bool density, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *v = NULL, *w = NULL, *counts = NULL;
  EM_TRY(as_doubles(self, &v));
  if (weight != NULL) EM_TRY(as_doubles(weight, &w));
  EM_TRY(em_call_zeros((em_ints){&h->bins, 1}, EM_F64, -1, self->device, -1, &counts));
  h->counts = em_tensor_data(counts);
  count_all(h, em_tensor_data(v), w == NULL ? NULL : em_tensor_data(w), v->numel);
  if (density) {
    double sum = 0;
    for (int64_t i = 0; i < h->bins; i++) sum += h->counts[i];
    for (int64_t i = 0; i < h->bins; i++) h->counts[i] /= sum * (h->edges[i + 1] - h->edges[i]);
  }
  EM_TRY(store(h->counts, h->bins, self->dtype, self->device, out));
fail:
  em_tensor_release(v);
  em_tensor_release(w);
  em_tensor_release(counts);
  return st;
}
em_status n_histogram_edges(uint64_t ks, em_tensor *self, em_tensor *bins, em_tensor *weight, bool density, em_tensor **out0,
                            em_tensor **out1) {
  (void)ks;
  EM_PASS(check_histogram(self, weight, bins));
  em_tensor *edges = NULL, *hist = NULL;
  em_status st = EM_OK;
  const int64_t n = bins->numel - 1;
  if (self->device.type == EM_DEVICE_META) {
    EM_TRY(em_tensor_new(1, &n, self->dtype, self->device, &hist));
  } else {
    EM_TRY(as_doubles(bins, &edges));
    const double *e = em_tensor_data(edges);
    histogram h = {.bins = n, .low = e[0], .high = e[n], .edges = e, .search = true};
    EM_TRY(fill_bins(&h, self, weight, density, &hist));
  }
  EM_TRY(em_call_clone(bins, EM_FORMAT_CONTIGUOUS, out1));
  *out0 = hist;
  hist = NULL;
fail:
  em_tensor_release(edges);
  em_tensor_release(hist);
  return st;
}
em_status n_histogram_count(uint64_t ks, em_tensor *self, int64_t bins, em_doubles range, em_tensor *weight, bool density,
                            em_tensor **out0, em_tensor **out1) {
  (void)ks;
  em_status st = EM_OK;
  em_tensor *v = NULL, *edges = NULL, *hist = NULL, *wide = NULL;
  double low = 0, high = 1;
  if (bins <= 0) return em_fail(EM_ERR_RUNTIME, "torch.histogram(): bins must be > 0, but got %lld for dimension 0", (long long)bins);
  EM_PASS(check_histogram(self, weight, NULL));
  if (range.n >= 0) {
    if (range.n != 2)
      return em_fail(EM_ERR_RUNTIME, "torch.histogramdd: for a 1-dimensional histogram range should have 2 elements, but got %lld",
                     (long long)range.n);
    low = range.p[0];
    high = range.p[1];
  } else if (self->numel > 0 && self->device.type != EM_DEVICE_META) {
    EM_TRY(as_doubles(self, &v));
    range_of(em_tensor_data(v), v->numel, &low, &high);
  }
  if (!isfinite(low) || !isfinite(high))
    EM_FAIL(EM_ERR_RUNTIME, "torch.histogramdd: dimension 0's range [%g, %g] is not finite", low, high);
  if (low > high)
    EM_FAIL(EM_ERR_RUNTIME, "torch.histogramdd: min should not exceed max, but got min %g max %g for dimension 0", low, high);
  low = rounded(low, self->dtype);
  high = rounded(high, self->dtype);
  if (low == high) low -= 0.5, high += 0.5;
  EM_TRY(em_call_linspace(em_scalar_double(low), em_scalar_double(high), bins + 1, self->dtype, -1, self->device, -1, &edges));
  if (self->device.type == EM_DEVICE_META) {
    EM_TRY(em_tensor_new(1, &bins, self->dtype, self->device, &hist));
  } else {
    EM_TRY(as_doubles(edges, &wide));
    histogram h = {.bins = bins, .low = low, .high = high, .single = self->dtype != EM_F64, .edges = em_tensor_data(wide)};
    EM_TRY(fill_bins(&h, self, weight, density, &hist));
  }
  *out0 = hist;
  *out1 = edges;
  hist = edges = NULL;
fail:
  em_tensor_release(v);
  em_tensor_release(edges);
  em_tensor_release(hist);
  em_tensor_release(wide);
  return st;
}
