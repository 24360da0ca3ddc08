// resample.c: interpolation dim by dim, the last first, plane by plane. Weights are worked out once a call, in the dtype
// that the loops run in, as PyTorch works them out.
#include "dense.h"
#include <math.h>
#include "../../core/half.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "../../dispatch/resample.h"
#include "gen_ops.h"
#include "resample_loops.h"

EM_ISA_DECLARE(const em_resample_fns, em_priv_resample, [2]);
static const em_resample_fns *table;
__attribute__((constructor)) static void pick(void) { table = EM_ISA_PICK(em_priv_resample); }

// --- weights. Everything is rounded to float where the loops are float's.
typedef struct maker {
  int kind, dtype;  // dtype: of the weights, where it is a half
  bool align, wide;
  double scale;
  em_resample_axis *a;
} maker;
static double fit(const maker *m, double v) { return m->wide ? v : (double)(float)v; }
static void put(const maker *m, int64_t at, double w) {
  if (m->wide) ((double *)m->a->weight)[at] = w;
  else
    ((float *)m->a->weight)[at] = m->dtype == EM_F16    ? em_f16_to_f32(em_f32_to_f16((float)w))
                                  : m->dtype == EM_BF16 ? em_bf16_to_f32(em_f32_to_bf16((float)w)) : (float)w;
}
static int64_t clamped(int64_t i, int64_t in) { return i < 0 ? 0 : i >= in ? in - 1 : i; }
static int64_t whole(double v, int64_t in) {  // floor, and no further than the input goes
  const double f = floor(v);
  return f >= (double)(in - 1) ? in - 1 : f >= -4 ? (int64_t)f : -4;
}
static double source(const maker *m, int64_t o, bool cubic) {
  if (m->align) return fit(m, m->scale * (double)o);
  const double at = fit(m, fit(m, m->scale * fit(m, (double)o + 0.5)) - 0.5);
  return at < 0 && !cubic ? 0 : at;
}
static double near(const maker *m, double x, double a) {  // the cubic convolution kernel at distance x <= 1
  return fit(m, fit(m, fit(m, fit(m, fit(m, (a + 2) * x) - (a + 3)) * x) * x) + 1);
}
static double far(const maker *m, double x, double a) {  // at 1 < x <= 2
  return fit(m, fit(m, fit(m, fit(m, fit(m, fit(m, a * x) - 5 * a) * x) + 8 * a) * x) - 4 * a);
}
static void make_linear(const maker *m) {
  const int64_t in = m->a->in;
  for (int64_t o = 0; o < m->a->out; o++) {
    int64_t i = o, next = o;
    double t = 0;
    if (in != m->a->out) {
      const double at = source(m, o, false);
      i = whole(at, in);
      t = fit(m, at - (double)i);
      t = t > 1 ? 1 : t < 0 ? 0 : t;
      next = i + (i < in - 1);
    }
    m->a->index[2 * o] = i;
    m->a->index[2 * o + 1] = next;
    put(m, 2 * o, fit(m, 1 - t));
    put(m, 2 * o + 1, t);
  }
}
static void make_cubic(const maker *m) {
  const double a = -0.75;
  for (int64_t o = 0; o < m->a->out; o++) {
    const double at = source(m, o, true);
    const int64_t i = whole(at, m->a->in);
    double t = fit(m, at - (double)i);
    t = t > 1 ? 1 : t < 0 ? 0 : t;
    const double s = fit(m, 1 - t);
    for (int64_t k = 0; k < 4; k++) m->a->index[4 * o + k] = clamped(i - 1 + k, m->a->in);
    put(m, 4 * o, far(m, fit(m, t + 1), a));
    put(m, 4 * o + 1, near(m, t, a));
    put(m, 4 * o + 2, near(m, s, a));
    put(m, 4 * o + 3, far(m, fit(m, s + 1), a));
  }
}
static double filter(const maker *m, double x) {
  x = fabs(x);
  if (m->kind == EM_RESAMPLE_LINEAR_AA) return x < 1 ? fit(m, 1 - x) : 0;
  if (m->kind == EM_RESAMPLE_CUBIC_AA) return x < 1 ? near(m, x, -0.5) : x < 2 ? far(m, x, -0.5) : 0;
  if (x >= 3) return 0;
  if (x == 0) return 1;
  const double pi = 3.14159265358979323846;
  return sin(pi * x) / (pi * x) * (sin(pi * x / 3) / (pi * x / 3));
}
static void make_smooth(const maker *m) {
  em_resample_axis *a = m->a;
  const double support = fit(m, em_resample_support(m->kind, m->scale)), shift = 0.5,
               inverse = m->scale >= 1 ? fit(m, 1 / m->scale) : 1;
  for (int64_t o = 0; o < a->out; o++) {
    const double centre = fit(m, m->scale * fit(m, (double)o + shift));
    const double low = fit(m, fit(m, centre - support) + shift), high = fit(m, fit(m, centre + support) + shift);
    const int64_t from = low > 0 ? (low < (double)a->in ? (int64_t)low : a->in) : 0,
                  to = high < (double)a->in ? (int64_t)high : a->in;
    const int64_t n = to <= from ? 0 : to - from < a->taps ? to - from : a->taps;
    double total = 0, w;
    for (int64_t k = 0; k < n; k++) {
      w = filter(m, fit(m, fit(m, fit(m, (double)(k + from) - centre) + shift) * inverse));
      total = fit(m, total + w);
    }
    for (int64_t k = 0; k < n; k++) {
      w = filter(m, fit(m, fit(m, fit(m, (double)(k + from) - centre) + shift) * inverse));
      a->index[o * a->taps + k] = from + k;
      put(m, o * a->taps + k, total != 0 ? fit(m, w / total) : w);
    }
    a->count[o] = n;
  }
}
static void make_nearest(const maker *m) {
  const double shift = m->kind == EM_RESAMPLE_EXACT ? 0.5 : 0;
  for (int64_t o = 0; o < m->a->out; o++) {
    m->a->index[o] = clamped(whole(fit(m, fit(m, (double)o + shift) * m->scale), m->a->in), m->a->in);
    put(m, o, 1);
  }
}
static void make_axis(int kind, int dtype, bool align, bool wide, em_opt_double scale, em_resample_axis *a,
                      char **work) {
  const double exact = em_resample_scale(a->in, a->out, align, scale);
  a->taps = em_resample_taps(kind, a->in, exact);
  maker m = {kind, dtype, align, wide, wide ? exact : (double)(float)exact, a};
  a->index = (int64_t *)(void *)*work;
  a->weight = a->index + a->out * a->taps;
  a->count = kind >= EM_RESAMPLE_LINEAR_AA ? a->index + 2 * a->out * a->taps : NULL;
  *work += (size_t)(a->out * (2 * a->taps + 1)) * 8;
  if (kind <= EM_RESAMPLE_EXACT) make_nearest(&m);
  else if (kind == EM_RESAMPLE_LINEAR) make_linear(&m);
  else if (kind == EM_RESAMPLE_CUBIC) make_cubic(&m);
  else make_smooth(&m);
}

// --- bytes: weights are whole numbers over a power of two, and every dim's result is rounded to a byte, as PyTorch does it
static void round_weights(em_resample_axis *a) {
  double *w = a->weight, most = 0;
  for (int64_t o = 0; o < a->out; o++) {
    int64_t *at = a->index + o * a->taps, n = a->count == NULL ? a->taps : a->count[o];
    double *v = w + o * a->taps;
    for (int64_t k = 1; k < n; k++)
      for (int64_t e = 0; e < k; e++)
        if (at[e] == at[k]) {  // several taps on the edge are one
          v[e] += v[k];
          v[k] = 0;
          break;
        }
    for (int64_t k = 0; k < n; k++) most = v[k] > most ? v[k] : most;
  }
  int bits = 0;
  while (bits < 22 && (int64_t)(0.5 + most * (double)(1 << (bits + 1))) < 1 << 15) bits++;
  for (int64_t o = 0; o < a->out; o++) {
    double *v = w + o * a->taps;
    for (int64_t k = 0; k < (a->count == NULL ? a->taps : a->count[o]); k++)
      v[k] = (double)(int16_t)(v[k] * (double)(1 << bits) + (v[k] < 0 ? -0.5 : 0.5));
  }
  a->bits = bits;
}
static void bytes_forward(void *tov, const void *fromv, int64_t outer, int64_t inner, const em_resample_axis *a) {
  uint8_t *to = tov;
  const uint8_t *from = fromv;
  for (int64_t r = 0; r < outer; r++, from += a->in * inner)
    for (int64_t o = 0; o < a->out; o++, to += inner) {
      const int64_t *at = a->index + o * a->taps, n = a->count == NULL ? a->taps : a->count[o];
      const double *w = (const double *)a->weight + o * a->taps;
      for (int64_t i = 0; i < inner; i++) {
        int32_t sum = (1 << a->bits) >> 1;
        for (int64_t k = 0; k < n; k++) sum += (int32_t)w[k] * from[at[k] * inner + i];
        sum >>= a->bits;
        to[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
      }
    }
}
static const em_resample_fns bytes_fns = {bytes_forward, NULL};

// --- planes
#define DIMS 3
typedef struct job {
  em_resample_axis axis[DIMS];  // missing dims lead, with size 1
  int first;                    // the first dim there is
  bool back;
  const em_resample_fns *fns;
  size_t size, in_bytes, out_bytes, half_bytes[2];  // of a plane: input, output, and what lies between
  const char *from;
  char *to;
} job;
static em_status planes(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int n = DIMS - j->first;
  const size_t bytes = j->half_bytes[0] + j->half_bytes[1];
  char *between = bytes > 0 ? em_alloc(bytes) : NULL;
  if (bytes > 0 && between == NULL) return EM_NOMEM(bytes);
  for (int64_t p = begin; p < end; p++) {
    const char *from = j->from + (size_t)p * (j->back ? j->out_bytes : j->in_bytes);
    char *last = j->to + (size_t)p * (j->back ? j->in_bytes : j->out_bytes);
    for (int s = 0; s < n; s++) {
      // Forward the last dim goes first, backward it goes last: sizes on either side of dim k follow.
      const int k = j->back ? j->first + s : DIMS - 1 - s;
      char *to = s == n - 1 ? last : between + (s == 0 ? 0 : j->half_bytes[0]);
      int64_t outer = 1, inner = 1;
      for (int d = 0; d < k; d++) outer *= j->axis[d].in;
      for (int d = k + 1; d < DIMS; d++) inner *= j->axis[d].out;
      (j->back ? j->fns->backward : j->fns->forward)(to, from, outer, inner, &j->axis[k]);
      from = to;
    }
  }
  if (bytes > 0) em_free(between, bytes);
  return EM_OK;
}
static em_status run(em_plan *plan, int kind, int spatial, bool back, em_tensor *x, em_tensor *y, bool align,
                     const em_opt_double *scales) {
  if (y->numel == 0) return EM_OK;
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL;
  const bool bytes = x->dtype == EM_U8 && kind > EM_RESAMPLE_EXACT;
  const int compute = bytes ? EM_U8 : x->dtype == EM_F64 ? EM_F64 : EM_F32;
  const em_tensor *in = back ? y : x, *out = back ? x : y;
  job j = {.first = DIMS - spatial, .back = back, .fns = bytes ? &bytes_fns : &table[compute == EM_F64],
           .size = em_dtype_size(compute)};
  char *work = plan->work;
  // PyTorch keeps the weights of halves in halves, but for planes' linear ones, and for gradients.
  const int weights = back || (spatial == 2 && kind == EM_RESAMPLE_LINEAR) ? EM_F32 : x->dtype;
  j.in_bytes = j.out_bytes = j.size;
  for (int k = 0; k < DIMS; k++) {
    const int d = k - j.first + 2;
    j.axis[k] = (em_resample_axis){.in = k < j.first ? 1 : in->sizes[d], .out = k < j.first ? 1 : out->sizes[d]};
    if (k >= j.first) make_axis(kind, weights, align, compute != EM_F32, scales[k - j.first], &j.axis[k], &work);
    if (k >= j.first && bytes) round_weights(&j.axis[k]);
    j.in_bytes *= (size_t)j.axis[k].in;
    j.out_bytes *= (size_t)j.axis[k].out;
  }
  const em_resample_axis *ax = j.axis;
  if (spatial >= 2) {  // after the first step: all but one dim as it was
    const int step = back ? j.first : DIMS - 1;
    j.half_bytes[0] = (back ? j.out_bytes / (size_t)ax[step].out * (size_t)ax[step].in
                            : j.in_bytes / (size_t)ax[step].in * (size_t)ax[step].out);
  }
  const size_t before = (size_t)(back ? ax[1].out : ax[1].in), after = (size_t)(back ? ax[1].in : ax[1].out);
  if (spatial == 3) j.half_bytes[1] = j.half_bytes[0] / before * after;
  EM_TRY(em_dense_in(x, compute, &a));
  EM_TRY(em_dense_out(y, compute, &b));
  j.from = em_tensor_data(a);
  j.to = em_tensor_data(b);
  const int64_t n = x->sizes[0] * x->sizes[1], cost = (x->numel + y->numel) / n * (ax[DIMS - 1].taps + 1) + 1;
  if (bytes)
    EM_NOTE("dim by dim in bytes: %lld planes, %d dims, weights are whole numbers (the %s float loop refused: uint8 is rounded after "
            "each dim)",
            (long long)n, spatial, em_priv_note_isa);
  else
    EM_NOTE("dim by dim: %lld planes, %d dims, up to %lld taps each, %s loop in %s (bytes refused: %s)", (long long)n, spatial,
            (long long)ax[DIMS - 1].taps, em_priv_note_isa, em_dtype_name(compute),
            x->dtype == EM_U8 ? "nearest neighbours need no weights" : "not uint8");
  void *token = em_priv_begin_long(n > EM_LONG_NUMEL / cost);
  st = em_threads_for(n, EM_LONG_NUMEL / 2 / cost + 1, planes, &j);
  em_priv_end_long(token);
  if (st == EM_OK) st = em_dense_back(y, b);
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  return st;
}

#define P1 em_opt_double s0
#define P2 em_opt_double s0, em_opt_double s1
#define P3 em_opt_double s0, em_opt_double s1, em_opt_double s2
#define L1 (const em_opt_double[]){s0}
#define L2 (const em_opt_double[]){s0, s1}
#define L3 (const em_opt_double[]){s0, s1, s2}
#define BY_SIZE(op, n, kind)                                                                                         \
  em_status k_cpu_##op(em_plan *p, em_tensor *self, em_ints size, P##n, em_tensor *out) {                            \
    (void)size;                                                                                                      \
    return run(p, kind, n, false, self, out, false, L##n);                                                           \
  }                                                                                                                  \
  em_status k_cpu_##op##_backward(em_plan *p, em_tensor *grad, em_ints size, em_ints input, P##n, em_tensor *out) {  \
    (void)size, (void)input;                                                                                         \
    return run(p, kind, n, true, grad, out, false, L##n);                                                            \
  }
#define BY_ALIGNED(op, n, kind)                                                                                      \
  em_status k_cpu_##op(em_plan *p, em_tensor *self, em_ints size, bool align, P##n, em_tensor *out) {                \
    (void)size;                                                                                                      \
    return run(p, kind, n, false, self, out, align, L##n);                                                           \
  }
#define BACK_ALIGNED(op, n, kind)                                                                                    \
  em_status k_cpu_##op##_backward(em_plan *p, em_tensor *grad, em_ints size, em_ints input, bool align, P##n,        \
                                  em_tensor *out) {                                                                  \
    (void)size, (void)input;                                                                                         \
    return run(p, kind, n, true, grad, out, align, L##n);                                                            \
  }
BY_SIZE(upsample_nearest1d, 1, EM_RESAMPLE_NEAREST)
BY_SIZE(upsample_nearest2d, 2, EM_RESAMPLE_NEAREST)
BY_SIZE(upsample_nearest3d, 3, EM_RESAMPLE_NEAREST)
BY_SIZE(upsample_nearest_exact1d, 1, EM_RESAMPLE_EXACT)
BY_SIZE(upsample_nearest_exact2d, 2, EM_RESAMPLE_EXACT)
BY_SIZE(upsample_nearest_exact3d, 3, EM_RESAMPLE_EXACT)
BY_ALIGNED(upsample_linear1d, 1, EM_RESAMPLE_LINEAR)
BACK_ALIGNED(upsample_linear1d, 1, EM_RESAMPLE_LINEAR)
BY_ALIGNED(upsample_bilinear2d, 2, EM_RESAMPLE_LINEAR)
BACK_ALIGNED(upsample_bilinear2d, 2, EM_RESAMPLE_LINEAR)
BY_ALIGNED(upsample_trilinear3d, 3, EM_RESAMPLE_LINEAR)
BACK_ALIGNED(upsample_trilinear3d, 3, EM_RESAMPLE_LINEAR)
BY_ALIGNED(upsample_bicubic2d, 2, EM_RESAMPLE_CUBIC)
BACK_ALIGNED(upsample_bicubic2d, 2, EM_RESAMPLE_CUBIC)
BY_ALIGNED(upsample_bilinear2d_aa, 2, EM_RESAMPLE_LINEAR_AA)
BACK_ALIGNED(upsample_bilinear2d_aa, 2, EM_RESAMPLE_LINEAR_AA)
BY_ALIGNED(upsample_bicubic2d_aa, 2, EM_RESAMPLE_CUBIC_AA)
BACK_ALIGNED(upsample_bicubic2d_aa, 2, EM_RESAMPLE_CUBIC_AA)
BY_ALIGNED(upsample_lanczos2d_aa, 2, EM_RESAMPLE_LANCZOS_AA)
BACK_ALIGNED(upsample_lanczos2d_aa, 2, EM_RESAMPLE_LANCZOS_AA)
