// conv.c: convolutions as matrix products whose right side is never written down.
//
// For one channel and one place t of the kernel, the product's row is the padded picture read from t on: out[q] needs x[step * q + t]. So
// a piece of the picture is copied once, with its zeros, into planes (one for each t mod step that occurs), and every row is a run of a
// plane that starts at off[k]. The runs pass over the ends of picture rows and of pictures: what is computed there is not stored (and
// meets zeros in `weight`'s gradient). Where too much would be thrown away, each place gets a plane of its own, without the ends: those
// are the columns of im2col.
//
// The image's gradient is such a product too: its positions fall into step^space classes, each of which sees some places of the kernel.
// Pieces depend on sizes alone; each is computed by one thread.
#include "conv.h"
#include <string.h>
#include "../../core/alloc.h"
#include "../../core/iterator.h"
#include "../../core/threads.h"
#include "conv_loops.h"
#include "isa.h"

EM_ISA_DECLARE(const em_conv_loops, em_priv_conv_loops, [3]);
static const em_conv_loops *loops;
__attribute__((constructor)) static void choose_loops(void) { loops = EM_ISA_PICK(em_priv_conv_loops); }

#define PIECE 1024           // positions of a piece
#define PIECE_LEAST 256
#define PIECE_GRADIENT 2048  // of the weight's gradient, which adds its lanes up after each
#define SUMS_BYTES 524288    // what the sums of a piece should not exceed
#define WINDOW_BYTES 24576   // of the picture, under one tile of results: stays in the first cache
#define PLANES_BYTES 393216  // of a piece: stays in the second
#define WASTE 2.5            // positions computed over positions stored, from which columns are better
#define PARTS 8              // partial sums of the weight's gradient
#define PARTS_BYTES 16777216.0
#define LONG_WORK 1e6        // worth giving the host's lock up

typedef struct side { char *data; int64_t n, c, x[3]; } side;  // strides in elements

typedef struct job {
  const em_conv_loops *fn;
  int dtype;
  int64_t n, groups, channels, rows;  // channels of the source and rows of the result in one group
  side src, dst;
  int64_t len[3], lead[3], step[3], out[3];  // out[q] sees the source's step * q + at - lead
  int64_t taps[3], all_taps;
  const int64_t *at[3];
  const char *a, *bias;               // compute dtype: groups x rows x (channels * taps); groups * rows or NULL
  // the plan
  bool columns;
  int64_t block[4], count[4], pieces; // pictures, depth, height, width
  int64_t size[3], planes, plane;     // positions of a piece with its ends; planes of a channel; elements of one
  int64_t cblock;                     // channels at a time
  int64_t *tables, *off, *x0;
  size_t table_bytes;
  // the weight's gradient
  int64_t parts;
  char *sums;
  size_t sums_capacity;
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static const em_conv_loops *loops_of(int dtype) { return &loops[dtype == EM_F64 ? 1 : em_dtype_is_float(dtype) ? 0 : 2]; }

static side side_of(const em_tensor *t) {
  side s = {em_tensor_data(t), t->strides[0], t->strides[1], {0, 0, 0}};
  for (int d = 2; d < t->ndim; d++) s.x[d - t->ndim + 3] = t->strides[d];
  return s;
}

// --- the plan

// `all` cut into equal blocks of at most `want`.
static int64_t even(int64_t all, int64_t want) { return ceil_div(all, ceil_div(all, most(1, least(want, all)))); }

// Blocks of about `target` positions. Returns positions computed over positions stored.
static double set_blocks(job *j, bool columns, int64_t target) {
  double ends[3], flat, kept = 1;
  for (int d = 0; d < 3; d++) ends[d] = columns || j->taps[d] == 0 ? 0 : (double)(j->at[d][j->taps[d] - 1] / j->step[d]);
  int64_t *b = j->block;
  b[0] = b[1] = b[2] = 1;
  b[3] = j->out[2] + ends[2] <= 2.0 * (double)target ? j->out[2] : even(j->out[2], target);
  double run = (double)b[3] + ends[2];
  if (b[3] == j->out[2]) b[2] = even(j->out[1], (int64_t)((double)target / run));
  run *= (double)b[2] + ends[1];
  if (b[3] == j->out[2] && b[2] == j->out[1]) b[1] = even(j->out[0], (int64_t)((double)target / run));
  run *= (double)b[1] + ends[0];
  if (b[3] == j->out[2] && b[2] == j->out[1] && b[1] == j->out[0]) b[0] = even(j->n, (int64_t)((double)target / run));
  flat = (double)(b[0] - 1) * run +
         ((double)(b[1] - 1) * ((double)b[2] + ends[1]) + (double)(b[2] - 1)) * ((double)b[3] + ends[2]) + (double)b[3];
  for (int d = 0; d < 4; d++) kept *= (double)b[d];
  return flat / kept;
}

// Positions mod step that the kernel's places along dim d fall on: which, in order of appearance, and how many.
static int64_t classes_of(const job *j, int d, int64_t *index) {
  int64_t found = 0;
  for (int64_t t = 0; t < j->taps[d]; t++) {
    int64_t u = j->columns ? t : 0;
    while (u < t && j->at[d][u] % j->step[d] != j->at[d][t] % j->step[d]) u++;
    index[t] = u < t ? index[u] : found++;
  }
  return found;
}

static void set_channels(job *j) {
  const int64_t item = (int64_t)j->fn->item, wide = j->fn->columns;
  const double rows = (double)j->taps[0] * (double)j->taps[1];
  const double window = j->columns ? (double)j->all_taps * (double)wide : rows * (double)(wide + j->size[2] - j->block[3]);
  double c = WINDOW_BYTES / most(1, item) / (window > 1 ? window : 1);
  const double held = PLANES_BYTES / (double)item / ((double)j->plane * (double)most(1, j->planes));
  if (held < c) c = held;
  j->cblock = c < 1 ? 1 : c > (double)j->channels ? most(1, j->channels) : (int64_t)c;
  if (j->channels > 0) j->cblock = even(j->channels, j->cblock);
}

// Where each channel's places begin in the planes, and where each plane begins in the source.
static void fill_tables(job *j, int64_t *index, const int64_t *classes) {
  const int64_t t0 = j->taps[0], t1 = j->taps[1], t2 = j->taps[2];
  int64_t *place = j->off;
  for (int64_t a = 0; a < t0; a++)
    for (int64_t b = 0; b < t1; b++)
      for (int64_t c = 0; c < t2; c++) {
        const int64_t t[3] = {a, b, c}, i[3] = {index[a], index[t0 + b], index[t0 + t1 + c]};
        const int64_t plane = (i[0] * classes[1] + i[1]) * classes[2] + i[2];
        int64_t q = 0;
        for (int d = 0; d < 3; d++) {
          const int64_t at = j->at[d][t[d]], whole = j->columns ? 0 : at / j->step[d];
          j->x0[3 * plane + d] = (j->columns ? at : at % j->step[d]) - j->lead[d];
          q = q * j->size[d] + whole;
        }
        *place++ = plane * j->plane + q;
      }
  for (int64_t c = 1; c < j->cblock; c++)
    for (int64_t t = 0; t < j->all_taps; t++) j->off[c * j->all_taps + t] = j->off[t] + c * j->planes * j->plane;
}

static em_status plan(job *j, int64_t target, bool columns) {
  int64_t classes[3], *index, n = j->taps[0] + j->taps[1] + j->taps[2];
  j->all_taps = j->taps[0] * j->taps[1] * j->taps[2];
  target = most(PIECE_LEAST, least(target, SUMS_BYTES / (int64_t)j->fn->item / most(1, j->rows)));
  j->columns = columns || set_blocks(j, false, target) > WASTE;
  if (j->columns) (void)set_blocks(j, true, target);
  index = em_alloc((size_t)(n + 1) * sizeof *index);
  if (index == NULL) return EM_NOMEM((size_t)(n + 1) * sizeof *index);
  j->planes = 1;
  j->plane = j->block[0];
  for (int d = 0, at = 0; d < 3; at += (int)j->taps[d], d++) {
    classes[d] = classes_of(j, d, index + at);
    j->planes *= classes[d];
    j->size[d] = j->block[d + 1] + (j->columns || j->taps[d] == 0 ? 0 : j->at[d][j->taps[d] - 1] / j->step[d]);
    j->plane *= j->size[d];
  }
  set_channels(j);
  j->pieces = 1;
  for (int d = 0; d < 4; d++) {
    j->count[d] = ceil_div(d == 0 ? j->n : j->out[d - 1], j->block[d]);
    j->pieces *= j->count[d];
  }
  const int64_t entries = j->cblock * j->all_taps + 3 * j->planes + 1;
  j->table_bytes = (size_t)entries * sizeof(int64_t);
  j->tables = em_alloc(j->table_bytes);
  if (j->tables != NULL) {
    j->off = j->tables;
    j->x0 = j->tables + j->cblock * j->all_taps;
    fill_tables(j, index, classes);
  }
  em_free(index, (size_t)(n + 1) * sizeof *index);
  return j->tables == NULL ? EM_NOMEM(j->table_bytes) : EM_OK;
}
static void plan_release(job *j) {
  em_free(j->tables, j->table_bytes);
  j->tables = NULL;
}

// --- pieces

typedef struct piece { int64_t first[4], size[4], flat; } piece;  // pictures, depth, height, width

static piece piece_of(const job *j, int64_t i) {
  piece p;
  for (int d = 3; d >= 0; d--) {
    const int64_t all = d == 0 ? j->n : j->out[d - 1];
    p.first[d] = i % j->count[d] * j->block[d];
    p.size[d] = least(j->block[d], all - p.first[d]);
    i /= j->count[d];
  }
  p.flat = (((p.size[0] - 1) * j->size[0] + p.size[1] - 1) * j->size[1] + p.size[2] - 1) * j->size[2] + p.size[3];
  return p;
}

// Channels [c, c + count) of group g.
static void load_planes(const job *j, const piece *p, int64_t g, int64_t c, int64_t count, char *to) {
  const int64_t item = (int64_t)em_dtype_size(j->dtype);
  em_conv_load l = {.dtype = j->dtype, .n = p->size[0], .n_stride = j->src.n};
  for (int d = 0; d < 3; d++) {
    l.size[d] = j->size[d];
    l.step[d] = j->step[d];
    l.hi[d] = j->len[d];
    l.stride[d] = j->src.x[d];
  }
  for (int64_t i = 0; i < count; i++) {
    const char *channel = j->src.data + (p->first[0] * j->src.n + (g * j->channels + c + i) * j->src.c) * item;
    for (int64_t k = 0; k < j->planes; k++, to += j->plane * (int64_t)j->fn->item) {
      int64_t x0[3];
      for (int d = 0; d < 3; d++) {
        x0[d] = j->x0[3 * k + d] + p->first[d + 1] * j->step[d];
        if (j->columns) l.hi[d] = least(j->len[d], x0[d] + (p->size[d + 1] - 1) * j->step[d] + 1);  // nothing that is not asked for
      }
      j->fn->load(&l, channel, x0, to);
    }
  }
}
static void store_rows(const job *j, const piece *p, int64_t g, const char *sums, int64_t ldc) {
  const int64_t item = (int64_t)em_dtype_size(j->dtype), wide = (int64_t)j->fn->item;
  em_conv_store s = {.dtype = j->dtype, .n = p->size[0], .n_stride = j->dst.n};
  s.from[2] = 1;
  s.from[1] = j->size[2];
  s.from[0] = j->size[1] * j->size[2];
  s.from_n = j->size[0] * s.from[0];
  int64_t at = p->first[0] * j->dst.n + g * j->rows * j->dst.c;
  for (int d = 0; d < 3; d++) {
    s.size[d] = p->size[d + 1];
    s.stride[d] = j->dst.x[d];
    at += p->first[d + 1] * j->dst.x[d];
  }
  for (int64_t r = 0; r < j->rows; r++)
    j->fn->store(&s, j->dst.data + (at + r * j->dst.c) * item, sums + r * ldc * wide,
                 j->bias == NULL ? NULL : j->bias + (g * j->rows + r) * wide);
}

static int64_t planes_elements(const job *j) { return j->cblock * j->planes * j->plane + EM_CONV_SLACK; }

static em_status run_made(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t item = (int64_t)j->fn->item, ldc = j->plane + EM_CONV_SLACK;
  const size_t bytes = (size_t)((planes_elements(j) + j->rows * ldc) * item);
  size_t capacity;
  char *planes = em_bytes_alloc(bytes, &capacity), *sums = planes + planes_elements(j) * item;
  if (planes == NULL) return EM_NOMEM(bytes);
  for (int64_t i = begin; i < end; i++) {
    const piece p = piece_of(j, i / j->groups);
    const int64_t g = i % j->groups;
    em_conv_product q = {.m = j->rows, .p = p.flat, .lda = j->channels * j->all_taps, .ldc = ldc, .b = planes, .off = j->off, .c = sums};
    int64_t c = 0;
    do {
      const int64_t count = least(j->cblock, j->channels - c);
      load_planes(j, &p, g, c, count, planes);
      q.a = j->a + (g * j->rows * q.lda + c * j->all_taps) * item;
      q.k = count * j->all_taps;
      q.fresh = c == 0;
      j->fn->product(&q);
      c += count;
    } while (c < j->channels);
    store_rows(j, &p, g, sums, ldc);
  }
  em_bytes_free(planes, capacity);
  return EM_OK;
}

static em_status run_job(job *j) {
  if (j->n == 0 || j->rows == 0 || j->out[0] == 0 || j->out[1] == 0 || j->out[2] == 0) return EM_OK;
  EM_PASS(plan(j, PIECE, false));
  const double each = (double)j->plane * (double)j->rows * (double)(j->channels * j->all_taps + 1);
  const int64_t grain = each >= 262144 ? 1 : (int64_t)(262144 / each) + 1;
  void *token = em_priv_begin_long(each * (double)j->pieces * (double)j->groups >= LONG_WORK);
  em_status st = em_threads_for(j->pieces * j->groups, grain, run_made, j);
  em_priv_end_long(token);
  plan_release(j);
  return st;
}

// --- weights and biases in the compute dtype

typedef struct packed { char *data; size_t capacity; const char *use; } packed;  // data NULL: the tensor's own bytes are used

static em_status pack_weight(const em_conv *c, const em_tensor *w, const em_conv_loops *fn, packed *out) {
  const int64_t item = (int64_t)fn->item, from = (int64_t)em_dtype_size(w->dtype), row = c->kernel[2];
  out->data = NULL;
  out->use = em_tensor_data(w);
  if ((w->dtype == fn->compute && em_tensor_is_contiguous(w)) || w->numel == 0) return EM_OK;
  out->data = em_bytes_alloc((size_t)(w->numel * item), &out->capacity);
  if (out->data == NULL) return EM_NOMEM((size_t)(w->numel * item));
  const side s = side_of(w);
  char *to = out->data;
  for (int64_t o = 0; o < w->sizes[0]; o++)
    for (int64_t i = 0; i < w->sizes[1]; i++)
      for (int64_t d = 0; d < c->kernel[0]; d++)
        for (int64_t h = 0; h < c->kernel[1]; h++, to += row * item)
          em_cast_load(to, fn->compute, s.data + (o * s.n + i * s.c + d * s.x[0] + h * s.x[1]) * from, w->dtype, s.x[2] * from, row);
  out->use = out->data;
  return EM_OK;
}
static em_status pack_bias(const em_tensor *bias, const em_conv_loops *fn, packed *out) {
  out->data = NULL;
  out->use = NULL;
  if (bias == NULL || bias->numel == 0) return EM_OK;
  out->data = em_bytes_alloc((size_t)bias->numel * fn->item, &out->capacity);
  if (out->data == NULL) return EM_NOMEM((size_t)bias->numel * fn->item);
  const int64_t from = (int64_t)em_dtype_size(bias->dtype);
  em_cast_load(out->data, fn->compute, em_tensor_data(bias), bias->dtype, bias->strides[0] * from, bias->numel);
  out->use = out->data;
  return EM_OK;
}
static void packed_release(packed *p) {
  if (p->data != NULL) em_bytes_free(p->data, p->capacity);
}

// --- image -> made

// at[d][k] = k * dilation, in one block.
static em_status kernel_places(const em_conv *c, int64_t **block, const int64_t **at) {
  const int64_t n = c->kernel[0] + c->kernel[1] + c->kernel[2];
  int64_t *p = *block = em_alloc((size_t)n * sizeof(int64_t));
  if (p == NULL) return EM_NOMEM((size_t)n * sizeof(int64_t));
  for (int d = 0; d < 3; d++) {
    at[d] = p;
    for (int64_t k = 0; k < c->kernel[d]; k++) *p++ = k * c->dilation[d];
  }
  return EM_OK;
}
static void kernel_places_free(const em_conv *c, int64_t *block) {
  em_free(block, (size_t)(c->kernel[0] + c->kernel[1] + c->kernel[2]) * sizeof(int64_t));
}

static void describe(job *j, const em_conv *c, const em_tensor *image) {
  *j = (job){.fn = loops_of(image->dtype), .dtype = image->dtype, .n = c->n, .groups = c->groups, .channels = c->ic, .rows = c->oc};
  j->src = side_of(image);
  for (int d = 0; d < 3; d++) {
    j->len[d] = c->in[d];
    j->lead[d] = c->pad[d];
    j->step[d] = c->stride[d];
    j->out[d] = c->out[d];
    j->taps[d] = c->kernel[d];
  }
}

em_status em_priv_conv_made(const em_conv *c, const em_tensor *image, const em_tensor *weight, const em_tensor *bias, em_tensor *made) {
  em_status st = EM_OK;
  job j;
  packed w = {NULL, 0, NULL}, b = w;
  int64_t *places = NULL;
  describe(&j, c, image);
  j.dst = side_of(made);
  EM_TRY(kernel_places(c, &places, j.at));
  EM_TRY(pack_weight(c, weight, j.fn, &w));
  EM_TRY(pack_bias(bias, j.fn, &b));
  j.a = w.use;
  j.bias = b.use;
  st = run_job(&j);
fail:
  if (places != NULL) kernel_places_free(c, places);
  packed_release(&w);
  packed_release(&b);
  return st;
}

// --- made -> image

// The places k of dim d that image positions x with (x + pad) % stride == phase meet, and how far before the first result.
typedef struct phase { int64_t count, first, length; } phase;  // places; first position q; how many positions

// Position x = stride * q + r - pad of the image gets made[q - m] * weight[k] where m = (k * dilation - r) / stride.
static phase phase_of(const em_conv *c, int d, int64_t r, int64_t *k_of, int64_t *at) {
  const int64_t s = c->stride[d], lag = c->pad[d] - r;
  phase p = {0, lag > 0 ? (lag - 1) / s + 1 : 0, 0};
  const int64_t last = (c->in[d] - 1 + lag) >= 0 ? (c->in[d] - 1 + lag) / s : -1;
  p.length = last >= p.first ? last - p.first + 1 : 0;
  for (int64_t k = c->kernel[d] - 1; k >= 0; k--) {
    if (k * c->dilation[d] % s != r) continue;
    k_of[p.count] = k;
    at[p.count++] = (k * c->dilation[d] - r) / s;
  }
  const int64_t far = p.count > 0 ? at[0] : 0;  // ascending, counted from the farthest
  for (int64_t i = 0; i < p.count; i++) at[i] = far - at[i];
  return p;
}

typedef struct image_run {
  const em_conv *c;
  job base;
  side image;
  const char *weight;      // compute dtype, as the tensor's sizes
  char *turned;            // groups x ic x (oc * places of the phase)
  int64_t *k_of[3], *at[3];
} image_run;

static void turn_weight(const image_run *r, const phase *p) {
  const em_conv *c = r->c;
  const size_t item = r->base.fn->item;
  const int64_t kernel = c->kernel[0] * c->kernel[1] * c->kernel[2];
  char *to = r->turned;
  for (int64_t g = 0; g < c->groups; g++)
    for (int64_t i = 0; i < c->ic; i++)
      for (int64_t o = 0; o < c->oc; o++) {
        const char *from = r->weight + (size_t)(((g * c->oc + o) * c->ic + i) * kernel) * item;
        for (int64_t x = 0; x < p[0].count; x++)
          for (int64_t y = 0; y < p[1].count; y++)
            for (int64_t z = 0; z < p[2].count; z++, to += item) {
              const int64_t k = (r->k_of[0][x] * c->kernel[1] + r->k_of[1][y]) * c->kernel[2] + r->k_of[2][z];
              memcpy(to, from + (size_t)k * item, item);
            }
      }
}
static em_status run_phase(const image_run *r, const int64_t *rest) {
  const em_conv *c = r->c;
  job j = r->base;
  phase p[3];
  const int64_t item = (int64_t)em_dtype_size(j.dtype);
  j.dst = r->image;
  for (int d = 0; d < 3; d++) {
    p[d] = phase_of(c, d, rest[d], r->k_of[d], r->at[d]);
    if (p[d].length == 0) return EM_OK;
    j.out[d] = p[d].length;
    j.len[d] = c->out[d];
    j.step[d] = 1;
    j.taps[d] = p[d].count;
    j.at[d] = r->at[d];
    const int64_t k = p[d].count > 0 ? r->k_of[d][0] : 0, far = p[d].count > 0 ? (k * c->dilation[d] - rest[d]) / c->stride[d] : 0;
    j.lead[d] = far - p[d].first;
    j.dst.data += (c->stride[d] * p[d].first + rest[d] - c->pad[d]) * r->image.x[d] * item;
    j.dst.x[d] = r->image.x[d] * c->stride[d];
  }
  turn_weight(r, p);
  j.a = r->turned;
  return run_job(&j);
}

em_status em_priv_conv_image(const em_conv *c, const em_tensor *made, const em_tensor *weight, const em_tensor *bias, em_tensor *image) {
  em_status st = EM_OK;
  image_run r = {.c = c, .image = side_of(image)};
  packed w = {NULL, 0, NULL}, b = w;
  size_t capacity = 0;
  const int64_t places = c->kernel[0] + c->kernel[1] + c->kernel[2];
  int64_t *block = em_alloc((size_t)(2 * places) * sizeof(int64_t)), *at = block;
  if (block == NULL) return EM_NOMEM((size_t)(2 * places) * sizeof(int64_t));
  r.base = (job){.fn = loops_of(made->dtype), .dtype = made->dtype, .n = c->n, .groups = c->groups, .channels = c->oc, .rows = c->ic};
  r.base.src = side_of(made);
  for (int d = 0; d < 3; d++) {
    r.k_of[d] = at;
    r.at[d] = at + c->kernel[d];
    at += 2 * c->kernel[d];
  }
  EM_TRY(pack_weight(c, weight, r.base.fn, &w));
  EM_TRY(pack_bias(bias, r.base.fn, &b));
  r.weight = w.use;
  r.base.bias = b.use;
  r.turned = em_bytes_alloc((size_t)weight->numel * r.base.fn->item, &capacity);
  if (r.turned == NULL) {
    st = EM_NOMEM((size_t)weight->numel * r.base.fn->item);
    goto fail;
  }
  int64_t rest[3];
  for (rest[0] = 0; rest[0] < least(c->stride[0], c->in[0]); rest[0]++)
    for (rest[1] = 0; rest[1] < least(c->stride[1], c->in[1]); rest[1]++)
      for (rest[2] = 0; rest[2] < least(c->stride[2], c->in[2]); rest[2]++) {
        int64_t real[3];  // every position of the image has x + pad in one class: start from the first one's
        for (int d = 0; d < 3; d++) real[d] = (int64_t)(((__int128)rest[d] + c->pad[d]) % c->stride[d]);
        EM_TRY(run_phase(&r, real));
      }
fail:
  em_free(block, (size_t)(2 * places) * sizeof(int64_t));
  packed_release(&w);
  packed_release(&b);
  if (r.turned != NULL) em_bytes_free(r.turned, capacity);
  return st;
}

// --- image, made -> weight

static em_status gradient_part(const job *j, int64_t part, char *planes, char *rows) {
  const int64_t item = (int64_t)j->fn->item, lanes = 64 / item, ldd = j->plane + EM_CONV_SLACK, ldw = j->channels * j->all_taps;
  const int64_t from = (int64_t)em_dtype_size(j->dtype);
  char *sums = j->sums + part * j->groups * j->rows * ldw * item;
  for (int64_t i = part * j->pieces / j->parts; i < (part + 1) * j->pieces / j->parts; i++) {
    const piece p = piece_of(j, i);
    em_conv_load l = {.dtype = j->dtype, .n = p.size[0], .n_stride = j->dst.n, .step = {1, 1, 1}};
    const int64_t used = p.size[0] * j->size[0] * j->size[1] * j->size[2];
    for (int d = 0; d < 3; d++) {
      l.size[d] = j->size[d];
      l.hi[d] = p.first[d + 1] + p.size[d + 1];
      l.stride[d] = j->dst.x[d];
    }
    for (int64_t g = 0; g < j->groups; g++) {
      for (int64_t r = 0; r < j->rows; r++) {
        char *row = rows + r * ldd * item;
        j->fn->load(&l, j->dst.data + (p.first[0] * j->dst.n + (g * j->rows + r) * j->dst.c) * from, p.first + 1, row);
        memset(row + used * item, 0, (size_t)(lanes * item));
      }
      for (int64_t c = 0; c < j->channels; c += j->cblock) {
        const int64_t count = least(j->cblock, j->channels - c);
        load_planes(j, &p, g, c, count, planes);
        const em_conv_product q = {.m = j->rows, .p = ceil_div(p.flat, lanes) * lanes, .k = count * j->all_taps, .a = rows, .b = planes,
                                   .off = j->off, .c = sums + (g * j->rows * ldw + c * j->all_taps) * item, .lda = ldd, .ldc = ldw};
        j->fn->gradient(&q);
      }
    }
  }
  return EM_OK;
}
static em_status run_gradient(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  const int64_t item = (int64_t)j->fn->item, ldd = j->plane + EM_CONV_SLACK;
  const size_t bytes = (size_t)((planes_elements(j) + j->rows * ldd) * item);
  size_t capacity;
  char *planes = em_bytes_alloc(bytes, &capacity);
  if (planes == NULL) return EM_NOMEM(bytes);
  memset(planes, 0, bytes);  // what lies between and behind the planes meets zeros, and must be a number
  for (int64_t i = begin; i < end; i++) (void)gradient_part(j, i, planes, planes + planes_elements(j) * item);
  em_bytes_free(planes, capacity);
  return EM_OK;
}

// The parts' sums, added up in order; whether all of them are numbers.
static bool add_parts(const job *j, int64_t n) {
  bool numbers = true;
  for (int64_t p = 1; p < j->parts; p++) {
    if (j->fn->compute == EM_F32) {
      float *to = (float *)j->sums, *from = to + p * n;
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    } else {
      double *to = (double *)j->sums, *from = to + p * n;
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    }
  }
  for (int64_t i = 0; i < n; i++) {
    const double v = j->fn->compute == EM_F32 ? (double)((float *)j->sums)[i] : ((double *)j->sums)[i];
    numbers = numbers && v == v;
  }
  return numbers;
}
static em_status gradient_sums(job *j, int64_t n, bool columns) {
  EM_PASS(plan(j, PIECE_GRADIENT, columns));
  const double bytes = (double)n * (double)j->fn->item;
  j->parts = least(PARTS, most(1, least(j->pieces, (int64_t)(PARTS_BYTES / (bytes > 1 ? bytes : 1)))));
  const size_t all = (size_t)(j->parts * n) * j->fn->item;
  j->sums = em_bytes_alloc(all, &j->sums_capacity);
  em_status st = j->sums == NULL ? EM_NOMEM(all) : EM_OK;
  if (st == EM_OK) {
    memset(j->sums, 0, all);
    void *token = em_priv_begin_long((double)j->pieces * (double)j->plane * (double)n >= LONG_WORK);
    st = em_threads_for(j->parts, 1, run_gradient, j);
    em_priv_end_long(token);
  }
  plan_release(j);
  if (st == EM_OK && !add_parts(j, n) && !j->columns) {  // an infinity may have met a zero where there is no result
    em_bytes_free(j->sums, j->sums_capacity);
    return gradient_sums(j, n, true);
  }
  if (st != EM_OK && j->sums != NULL) em_bytes_free(j->sums, j->sums_capacity);
  return st;
}
em_status em_priv_conv_weight(const em_conv *c, const em_tensor *image, const em_tensor *made, em_tensor *weight) {
  em_status st = EM_OK;
  job j;
  int64_t *places = NULL;
  const int64_t row = c->kernel[2], item = (int64_t)em_tensor_itemsize(weight), n = weight->numel;
  if (n == 0) return EM_OK;
  describe(&j, c, image);
  j.dst = side_of(made);
  EM_TRY(kernel_places(c, &places, j.at));
  EM_TRY(gradient_sums(&j, n, false));
  const side s = side_of(weight);
  const char *from = j.sums;
  for (int64_t o = 0; o < weight->sizes[0]; o++)
    for (int64_t i = 0; i < weight->sizes[1]; i++)
      for (int64_t d = 0; d < c->kernel[0]; d++)
        for (int64_t h = 0; h < c->kernel[1]; h++, from += row * (int64_t)j.fn->item)
          em_cast_store(s.data + (o * s.n + i * s.c + d * s.x[0] + h * s.x[1]) * item, weight->dtype, s.x[2] * item,
                        from, j.fn->compute, row);
  em_bytes_free(j.sums, j.sums_capacity);
fail:
  if (places != NULL) kernel_places_free(c, places);
  return st;
}
