// fft.c: Fourier transforms dim by dim. A length is taken apart into factors 8, 4, 2, 3, 5 and primes up to 127; one with a larger
// prime becomes a convolution of twice its length (Bluestein), computed in double. Lines go through dense buffers; real ones of
// even length as complex ones of half that.
#include <math.h>
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "fft_loops.h"
#include "gen_ops.h"

EM_ISA_DECLARE(const em_fft_fns, em_priv_fft, [2]);
static const em_fft_fns *table;
__attribute__((constructor)) static void pick(void) { table = EM_ISA_PICK(em_priv_fft); }

// --- plans
typedef struct transform {
  em_fft_plan plan;   // of n, or of the convolution's length
  const em_fft_fns *fns;
  bool wide, chirped;
  int64_t n, lanes, length;
  void *tables, *chirp[2], *kernel[2], *half[2];  // chirp: n, kernel: length, half: n / 2 + 1 roots of 2n
  size_t bytes, item;
} transform;

static bool is_prime(int p) {
  for (int d = 3; d * d <= p; d += 2)
    if (p % d == 0) return false;
  return true;
}
// Odd factors come first: they have no good loop for a single line's last pass. What is left: 1, or a part that has no pass.
static int64_t factors_of(int64_t n, int *factors, int *count) {
  *count = 0;
  int64_t two = 1;
  for (; n % 2 == 0; n /= 2) two *= 2;
  for (int p = EM_FFT_LARGEST; p > 2; p -= 2)
    while (is_prime(p) && n % p == 0) {
      factors[(*count)++] = p;
      n /= p;
    }
  for (; two % 8 == 0 && two != 16; two /= 8) factors[(*count)++] = 8;
  for (; two % 4 == 0; two /= 4) factors[(*count)++] = 4;
  if (two == 2) factors[(*count)++] = 2;
  return n;
}
static void put(const transform *t, void *at, int64_t i, double v) {
  if (t->wide) ((double *)at)[i] = v;
  else ((float *)at)[i] = (float)v;
}
// exp(-2 pi i k / n) for any k, from two short tables.
typedef struct roots { int64_t n, step; double *low, *high; } roots;
static size_t root_bytes(int64_t n) {
  const int64_t step = (int64_t)sqrt((double)n) + 1;
  return sizeof(double) * 2 * (size_t)(step + n / step + 1);
}
static void make_roots(roots *r, int64_t n, void *memory) {
  r->n = n;
  r->step = (int64_t)sqrt((double)n) + 1;
  r->low = memory;
  r->high = r->low + 2 * r->step;
  const double turn = -2 * 3.14159265358979323846 / (double)n;
  for (int64_t k = 0; k < r->step; k++) {
    r->low[2 * k] = cos(turn * (double)k);
    r->low[2 * k + 1] = sin(turn * (double)k);
  }
  for (int64_t k = 0; k <= n / r->step; k++) {
    r->high[2 * k] = cos(turn * (double)(k * r->step));
    r->high[2 * k + 1] = sin(turn * (double)(k * r->step));
  }
}
static void root(const roots *r, int64_t k, double *re, double *im) {
  const double *a = r->high + 2 * (k / r->step), *b = r->low + 2 * (k % r->step);
  *re = a[0] * b[0] - a[1] * b[1];
  *im = a[0] * b[1] + a[1] * b[0];
}
static size_t stage_items(int64_t n, const int *factors, int count) {
  size_t items = 0;
  for (int k = 0; k < count; k++) {
    n /= factors[k];
    items += 2 * ((size_t)(factors[k] - 1) * (size_t)n + (size_t)factors[k]);
  }
  return items;
}
static char *make_stages(transform *t, const int *factors, int count, const roots *r, char *at) {
  em_fft_plan *p = &t->plan;
  int64_t l1 = 1;
  p->n = t->length;
  p->lanes = t->lanes;
  p->stages = count;
  for (int k = 0; k < count; k++) {
    const int radix = factors[k];
    const int64_t ido = t->length / (l1 * radix), n = (radix - 1) * ido;
    void *part[4];
    for (int i = 0; i < 4; i++) {
      part[i] = at;
      at += (size_t)(i < 2 ? n : radix) * t->item;
    }
    p->stage[k] = (em_fft_stage){radix, ido, l1, part[0], part[1], part[2], part[3]};
    for (int64_t q = 1; q < radix; q++)
      for (int64_t i = 0; i < ido; i++) {
        double re, im;
        root(r, i * q * l1, &re, &im);
        put(t, part[0], (q - 1) * ido + i, re);
        put(t, part[1], (q - 1) * ido + i, im);
      }
    for (int64_t q = 0; q < radix; q++) {
      put(t, part[2], q, cos(-2 * 3.14159265358979323846 * (double)q / radix));
      put(t, part[3], q, sin(-2 * 3.14159265358979323846 * (double)q / radix));
    }
    l1 *= radix;
  }
  return at;
}
// exp(-pi i k^2 / n), and the transform of its conjugate wrapped around the convolution's length.
static em_status make_chirp(transform *t) {
  const int64_t n = t->n, m = t->length;
  const size_t size = (size_t)m * sizeof(double);
  double *re = t->kernel[0], *im = t->kernel[1], *scratch = em_alloc(2 * size);
  if (scratch == NULL) return EM_NOMEM(2 * size);
  memset(re, 0, size);
  memset(im, 0, size);
  int64_t square = 0;  // k^2 modulo 2n
  for (int64_t k = 0; k < n; k++) {
    const double angle = 3.14159265358979323846 * (double)square / (double)n, c = cos(angle), s = sin(angle);
    square = (square + 2 * k + 1) % (2 * n);
    ((double *)t->chirp[0])[k] = c;
    ((double *)t->chirp[1])[k] = -s;
    re[k] = re[(m - k) % m] = c / (double)m;
    im[k] = im[(m - k) % m] = s / (double)m;
  }
  em_fft_plan alone = t->plan;
  alone.lanes = 1;
  t->fns->run(&alone, re, im, scratch, scratch + m);
  em_free(scratch, 2 * size);
  return EM_OK;
}
static void transform_free(transform *t) {
  if (t->tables != NULL) em_free(t->tables, t->bytes);
  t->tables = NULL;
}
// n points; `halved`: lines hold twice as many real numbers. Long lines go one by one, where the buffers stay in the first cache,
// unless they are `spread` over memory with neighbours in between.
static em_status transform_make(transform *t, int64_t n, int64_t lines, bool spread, bool wide, bool halved) {
  int factors[EM_FFT_STAGES], count;
  *t = (transform){.n = n, .length = n, .lanes = lines >= EM_FFT_LANES && n <= (spread ? 4096 : 256) ? EM_FFT_LANES : 1};
  t->chirped = factors_of(n, factors, &count) > 1;
  if (n > INT64_MAX / 1024) return EM_NOMEM(INT64_MAX);
  if (t->chirped) {
    t->length = 1;
    while (t->length < 2 * n - 1) t->length *= 2;
    factors_of(t->length, factors, &count);
  }
  t->wide = wide || t->chirped;
  t->item = t->wide ? sizeof(double) : sizeof(float);
  t->fns = &table[t->wide];
  const size_t stages = stage_items(t->length, factors, count) * t->item, halves = halved ? (size_t)(n / 2 + 1) * t->item : 0;
  const size_t chirps = t->chirped ? 2 * (size_t)(n + t->length) * sizeof(double) : 0;
  const size_t rounded = (stages + 63) / 64 * 64, half = (halves + 63) / 64 * 64;
  t->bytes = rounded + 2 * half + chirps + 64;
  t->tables = em_alloc(t->bytes);
  if (t->tables == NULL) return EM_NOMEM(t->bytes);
  const size_t rb = root_bytes(t->length > 2 * n ? t->length : 2 * n);
  void *memory = em_alloc(rb);
  em_status st = memory == NULL ? EM_NOMEM(rb) : EM_OK;
  if (st == EM_OK) {
    roots r;
    char *at = t->tables;
    make_roots(&r, t->length, memory);
    make_stages(t, factors, count, &r, at);
    t->half[0] = at + rounded;
    t->half[1] = at + rounded + half;
    if (halved) make_roots(&r, 2 * n, memory);
    for (int64_t k = 0; halved && k <= n / 2; k++) {
      double re, im;
      root(&r, k, &re, &im);
      put(t, t->half[0], k, re);
      put(t, t->half[1], k, im);
    }
    em_free(memory, rb);
  }
  if (st == EM_OK && t->chirped) {
    double *at = (double *)(void *)((char *)t->tables + rounded + 2 * half);
    t->chirp[0] = at;
    t->chirp[1] = at + n;
    t->kernel[0] = at + 2 * n;
    t->kernel[1] = at + 2 * n + t->length;
    st = make_chirp(t);
  }
  if (st != EM_OK) transform_free(t);
  return st;
}
// n x lanes numbers in b[0] (real) and b[1] (imaginary), transformed; b[2] and b[3] are scratch. All are as long as `length`.
static void transform_run(const transform *t, char *const *b) {
  if (!t->chirped) {
    t->fns->run(&t->plan, b[0], b[1], b[2], b[3]);
    return;
  }
  const int64_t used = t->n * t->lanes, all = t->length * t->lanes;
  t->fns->multiply(b[0], b[1], t->chirp[0], t->chirp[1], t->n, t->lanes);
  memset(b[0] + (size_t)used * t->item, 0, (size_t)(all - used) * t->item);
  memset(b[1] + (size_t)used * t->item, 0, (size_t)(all - used) * t->item);
  t->fns->run(&t->plan, b[0], b[1], b[2], b[3]);
  t->fns->multiply(b[0], b[1], t->kernel[0], t->kernel[1], t->length, t->lanes);
  t->fns->run(&t->plan, b[1], b[0], b[2], b[3]);  // parts exchanged: backwards
  t->fns->multiply(b[0], b[1], t->chirp[0], t->chirp[1], t->n, t->lanes);
}

// --- lines of tensors
enum { COMPLEX, FROM_REAL, TO_REAL };
typedef struct job {
  const transform *t;
  int kind, ndim, dim;
  bool forward, wide, halved;      // wide: elements are double; halved: real lines are taken in pairs
  double scale;
  const em_tensor *from, *to;
  const char *in;
  char *out;
  int64_t outputs, lines;          // elements written to a line
} job;
// Where line l begins in both tensors, in elements.
static void line_at(const job *j, int64_t l, int64_t *in, int64_t *out) {
  *in = *out = 0;
  for (int d = j->ndim - 1; d >= 0; d--) {
    if (d == j->dim) continue;
    const int64_t i = l % j->to->sizes[d];
    l /= j->to->sizes[d];
    *in += i * j->from->strides[d];
    *out += i * j->to->strides[d];
  }
}
// A side of complex numbers, or of real ones in pairs.
static void side_of(const job *j, em_fft_side *s, const em_tensor *t, bool pairs) {
  const int64_t step = t->strides[j->dim];
  s->unit = 2 * step;
  s->imag = pairs ? step : 1;
  for (int v = 0; !pairs && v < s->lines; v++) s->base[v] *= 2;
}
// Real lines that are not taken in pairs: through a line of their own at each end.
#define REAL_LINES(T, S)                                                                                             \
  static void read_##T##_##S(const job *j, const em_fft_side *s, S *re, S *im) {                                     \
    const int64_t step = j->from->strides[j->dim], lanes = j->t->lanes;                                              \
    for (int64_t i = 0; i < j->t->n; i++)                                                                            \
      for (int64_t v = 0; v < s->lines; v++) {                                                                       \
        re[i * lanes + v] = (S)((const T *)s->data)[s->base[v] + i * step];                                          \
        im[i * lanes + v] = 0;                                                                                       \
      }                                                                                                              \
  }                                                                                                                  \
  static void write_##T##_##S(const job *j, const em_fft_side *s, const S *re) {                                     \
    const int64_t step = j->to->strides[j->dim], lanes = j->t->lanes;                                                \
    for (int64_t i = 0; i < j->outputs; i++)                                                                         \
      for (int64_t v = 0; v < s->lines; v++)                                                                         \
        ((T *)s->data)[s->base[v] + i * step] = (T)(re[i * lanes + v] * (S)j->scale);                                \
  }                                                                                                                  \
  static void mirror_##T##_##S(const job *j, S *re, S *im) { /* the half that is not there */                        \
    const int64_t n = j->t->n, lanes = j->t->lanes;                                                                  \
    for (int64_t i = n / 2 + 1; i < n; i++)                                                                          \
      for (int64_t v = 0; v < lanes; v++) {                                                                          \
        re[i * lanes + v] = re[(n - i) * lanes + v];                                                                 \
        im[i * lanes + v] = -im[(n - i) * lanes + v];                                                                \
      }                                                                                                              \
  }
REAL_LINES(float, float)
REAL_LINES(float, double)
REAL_LINES(double, double)
#define BY_DTYPES(name, ...)                                 \
  do {                                                       \
    if (j->wide) name##_double_double(__VA_ARGS__);          \
    else if (j->t->wide) name##_float_double(__VA_ARGS__);   \
    else name##_float_float(__VA_ARGS__);                    \
  } while (0)
static void load(const job *j, em_fft_side *s, void *re, void *im) {
  const transform *t = j->t;
  if (j->kind == FROM_REAL && !j->halved) {
    BY_DTYPES(read, j, s, re, im);
    return;
  }
  side_of(j, s, j->from, j->kind == FROM_REAL);
  const int64_t have = j->kind != TO_REAL ? t->n : j->halved ? t->n + 1 : t->n / 2 + 1;
  t->fns->load[j->wide](s, re, im, have, t->lanes);
  if (j->kind != TO_REAL) return;
  if (j->halved) t->fns->join(re, im, t->half[0], t->half[1], t->n, t->lanes);
  else BY_DTYPES(mirror, j, re, im);
}
static void store(const job *j, em_fft_side *s, void *re, void *im) {
  const transform *t = j->t;
  if (j->kind == TO_REAL && !j->halved) {
    BY_DTYPES(write, j, s, re);
    return;
  }
  side_of(j, s, j->to, j->kind == TO_REAL);
  if (j->kind == FROM_REAL && j->halved) t->fns->split(re, im, t->half[0], t->half[1], t->n, t->lanes);
  t->fns->store[j->wide](s, re, im, j->kind == TO_REAL ? t->n : j->outputs, t->lanes);
}
static em_status groups(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const transform *t = j->t;
  // A point more than the length: the last of a real line's.
  const size_t part = ((size_t)((t->length + 1) * t->lanes) * t->item + 63) / 64 * 64, bytes = 4 * part;
  char *memory = em_alloc(bytes);
  if (memory == NULL) return EM_NOMEM(bytes);
  char *b[4] = {memory, memory + part, memory + 2 * part, memory + 3 * part};
  void *re = j->forward ? b[0] : b[1], *im = j->forward ? b[1] : b[0];
  memset(memory, 0, 2 * part);
  for (int64_t g = begin; g < end; g++) {
    const int64_t first = g * t->lanes, n = j->lines - first < t->lanes ? j->lines - first : t->lanes;
    em_fft_side in = {.data = (void *)(uintptr_t)j->in, .lines = (int)n}, out = {.data = j->out, .lines = (int)n, .scale = j->scale};
    for (int64_t v = 0; v < n; v++) line_at(j, first + v, &in.base[v], &out.base[v]);
    load(j, &in, re, im);
    transform_run(t, b);
    store(j, &out, re, im);
  }
  em_free(memory, bytes);
  return EM_OK;
}
// Lines of `from` along dim to lines of `to`: n points each.
static em_status along(int kind, em_tensor *from, em_tensor *to, int dim, int64_t n, bool forward, double scale) {
  if (to->numel == 0) return EM_OK;
  transform t;
  job j = {.t = &t, .kind = kind, .ndim = to->ndim, .dim = dim, .forward = forward, .scale = scale, .from = from,
           .to = to, .in = em_tensor_data(from), .out = em_tensor_data(to), .outputs = to->sizes[dim],
           .lines = to->numel / to->sizes[dim]};
  j.wide = to->dtype == EM_F64 || to->dtype == EM_C128;
  j.halved = n % 2 == 0 && (kind == TO_REAL || (kind == FROM_REAL && j.outputs == n / 2 + 1));
  EM_PASS(transform_make(&t, j.halved ? n / 2 : n, j.lines, from->strides[dim] != 1, j.wide, j.halved));
  const int64_t many = (j.lines + t.lanes - 1) / t.lanes, cost = t.length * t.lanes * (t.chirped ? 16 : 8);
  if (t.chirped)
    EM_NOTE("chirp: %lld line%s of %lld points by a convolution of %lld in double, %lld at a time, %s loop (stages refused: %lld has a "
            "prime "
            "factor without a stage)", (long long)j.lines, EM_NOTE_S(j.lines), (long long)n, (long long)t.length, (long long)t.lanes,
            em_priv_note_isa, (long long)n);
  else
    EM_NOTE("stages: %lld line%s of %lld points, %lld at a time, %s loop in %s (a chirp refused: all prime factors have a stage)",
            (long long)j.lines, EM_NOTE_S(j.lines), (long long)n, (long long)t.lanes, em_priv_note_isa, t.wide ? "float64" : "float32");
  void *token = em_priv_begin_long(many > EM_LONG_NUMEL / cost);
  em_status st = em_threads_for(many, EM_LONG_NUMEL / 2 / cost + 1, groups, &j);
  em_priv_end_long(token);
  transform_free(&t);
  return st;
}
static double scale_of(const em_tensor *signal, em_ints dim, int64_t last, int64_t normalization) {
  double n = 1;
  for (int64_t k = 0; k < dim.n; k++) {
    const int64_t d = dim.p[k] < 0 ? dim.p[k] + signal->ndim : dim.p[k];
    n *= (double)(k == dim.n - 1 && last > 0 ? last : signal->sizes[d]);
  }
  return normalization == 1 ? 1 / sqrt(n) : normalization == 2 ? 1 / n : 1;
}
static int dim_at(const em_tensor *t, em_ints dim, int64_t k) {
  return (int)(dim.p[k] < 0 ? dim.p[k] + t->ndim : dim.p[k]);
}
// The first n dims of the list, the last of them first; the scale goes to the one that ends.
static em_status several(em_tensor *from, em_tensor *to, em_ints dim, int64_t n, bool forward, double scale) {
  for (int64_t k = n - 1; k >= 0; k--) {
    const int d = dim_at(to, dim, k);
    EM_PASS(along(COMPLEX, from, to, d, to->sizes[d], forward, k == 0 ? scale : 1));
    from = to;
  }
  return EM_OK;
}
em_status k_cpu_fft_c2c(em_plan *p, em_tensor *self, em_ints dim, int64_t normalization, bool forward, em_tensor *out) {
  (void)p;
  if (dim.n == 0) return em_copy_into(out, self);
  return several(self, out, dim, dim.n, forward, scale_of(self, dim, 0, normalization));
}
em_status k_cpu_fft_r2c(em_plan *p, em_tensor *self, em_ints dim, int64_t normalization, bool onesided,
                        em_tensor *out) {
  (void)p, (void)onesided;
  const double scale = scale_of(self, dim, 0, normalization);
  const int last = dim_at(self, dim, dim.n - 1);
  EM_PASS(along(FROM_REAL, self, out, last, self->sizes[last], true, dim.n == 1 ? scale : 1));
  return several(out, out, dim, dim.n - 1, true, scale);
}
em_status k_cpu_fft_c2r(em_plan *p, em_tensor *self, em_ints dim, int64_t normalization, int64_t last_dim_size,
                        em_tensor *out) {
  (void)p;
  const double scale = scale_of(self, dim, last_dim_size, normalization);
  const int last = dim_at(self, dim, dim.n - 1);
  if (dim.n == 1) return along(TO_REAL, self, out, last, last_dim_size, false, scale);
  em_tensor *t;
  EM_PASS(em_tensor_new(self->ndim, self->sizes, self->dtype, self->device, &t));
  em_status st = several(self, t, dim, dim.n - 1, false, 1);
  if (st == EM_OK) st = along(TO_REAL, t, out, last, last_dim_size, false, scale);
  em_tensor_release(t);
  return st;
}
