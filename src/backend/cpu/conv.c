// conv.c: convolutions as matrix products whose right side is never written down.
//
// For one channel and one place of the kernel, the product's row is the padded picture, read from that place on: out[q] needs
// x[step * q + shift]. So a piece of the picture is copied once, with its zeros, into planes (one for each shift mod step that occurs),
// and every row is a run of a plane that starts at off[k]. The runs pass over the ends of picture rows and of pictures: what is computed
// there is not stored (and meets zeros in the weight's gradient). Where too much would be thrown away, each shift gets a plane of its own,
// without the ends: those are the columns of im2col.
//
// The image's gradient is such a product too. Position stride * q + r - pad of the image gets made[q - m] * weight[k] of the places with
// k * dilation = m * stride + r: one phase for each r.
// Pieces depend on sizes alone; each is computed by one thread.
#include "conv.h"
#include <string.h>
#include "../../core/alloc.h"
#include "../../core/iterator.h"
#include "../../core/threads.h"
#include "../../core/note.h"
#include "conv_plan.h"

#define PIECE 1024               // positions of a piece
#define PHASES_BYTES 4194304     // sums of all phases of a job
#define GRAIN_WORK 262144.0      // multiplications that are worth another thread
#define LONG_WORK 1e6            // worth giving the host's lock up

// --- one job

static void store_phase(const em_conv_job *j, const em_conv_piece *p, const em_conv_phase *f, int64_t g, const char *sums, int64_t ldc) {
  const int64_t item = (int64_t)em_dtype_size(j->dtype), wide = (int64_t)j->fn->item;
  em_conv_store s = {.dtype = j->dtype, .n = p->size[0], .n_stride = j->dst.n};
  int64_t to = p->first[0] * j->dst.n + g * j->rows * j->dst.c, from = 0;
  s.from[1] = j->size[2];
  s.from[0] = j->size[1] * j->size[2];
  s.from_n = j->size[0] * s.from[0];
  for (int d = 0; d < 3; d++) {
    const int64_t a = em_conv_most(p->first[d + 1], f->first[d]), b = em_conv_least(p->first[d + 1] + p->size[d + 1], f->end[d]);
    if (a >= b) return;
    s.size[d] = b - a;
    s.stride[d] = j->dst.x[d];
    to += a * j->dst.x[d];
    from += (a - p->first[d + 1]) * (d == 2 ? 1 : s.from[d]);
  }
  for (int64_t r = 0; r < j->rows; r++)
    j->fn->store(&s, f->dst + (to + r * j->dst.c) * item, sums + (r * ldc + from) * wide,
                 j->bias == NULL ? NULL : j->bias + (g * j->rows + r) * wide);
}

static void run_piece(const em_conv_job *j, const em_conv_piece *p, int64_t g, int64_t vectors, const int64_t *at,
                      char *planes, char *sums) {
  const int64_t wide = (int64_t)j->fn->item, ldc = j->plane + EM_CONV_SLACK, packed = em_conv_packed(j);
  int64_t c = 0;
  do {
    const int64_t count = em_conv_least(j->cblock, packed - c);
    em_priv_conv_load(j, p, g, c, count, planes);
    for (int64_t i = 0; i < j->phases; i++) {
      const em_conv_phase *f = &j->phase[i];
      const int64_t lda = packed * f->all_taps;
      const em_conv_product q = {.m = j->rows, .k = count * f->all_taps, .vectors = vectors, .at = at, .b = planes, .off = f->off,
                                 .a = f->a + (g * j->rows * lda + c * f->all_taps) * wide, .c = sums + i * j->rows * ldc * wide,
                                 .lda = lda, .ldc = ldc, .fresh = c == 0};
      j->fn->product(&q);
    }
    c += count;
  } while (c < packed);
  for (int64_t i = 0; i < j->phases; i++) store_phase(j, p, &j->phase[i], g, sums + i * j->rows * ldc * wide, ldc);
}
static em_status run_pieces(void *context, int64_t begin, int64_t end) {
  const em_conv_job *j = context;
  const size_t held = (size_t)(em_conv_planes(j) * j->item), list = (size_t)j->vectors * sizeof(int64_t);
  const size_t bytes = held + list + (size_t)(j->phases * j->rows * (j->plane + EM_CONV_SLACK)) * j->fn->item;
  int64_t before[4] = {0, 0, 0, 0}, vectors = 0;
  size_t capacity;
  char *planes = em_bytes_alloc(bytes, &capacity);
  if (planes == NULL) return EM_NOMEM(bytes);
  int64_t *at = (int64_t *)(planes + held);
  for (int64_t i = begin; i < end; i++) {
    const em_conv_piece p = em_priv_conv_piece(j, i / j->groups);
    vectors = em_priv_conv_cover(j, &p, before, vectors, at);
    run_piece(j, &p, i % j->groups, vectors, at, planes, planes + held + list);
  }
  em_bytes_free(planes, capacity);
  return EM_OK;
}
// For the lights: pieces, how they see the picture, and why no library.
static __attribute__((cold)) void note_job(const em_conv_job *j, double taps) {
  em_note_write("implicit matrix product: %lld piece%s of up to %d positions, %lld phase%s, %s loop in %s%s; the picture lies in %s "
                "(im2col refused: "
                "it would write %lld copies of the picture; oneDNN refused: it is asked for products alone)",
                (long long)(j->pieces * j->groups), EM_NOTE_S(j->pieces * j->groups), PIECE, (long long)j->phases, EM_NOTE_S(j->phases),
                em_priv_note_isa, em_dtype_name(j->fn->stored),
                j->pair == 2 ? ", pairs of channels" : "",
                j->columns ? "columns (planes refused: more sums would be thrown away than copies cost)"
                           : "planes (columns refused: a copy for each place of the kernel costs more than sums that are thrown away)",
                (long long)taps);
}
static em_status run_job(em_conv_job *j) {
  if (j->n == 0 || j->rows == 0 || j->out[0] <= 0 || j->out[1] <= 0 || j->out[2] <= 0) return EM_OK;
  double taps = 0;
  for (int64_t i = 0; i < j->phases; i++) taps += (double)j->phase[i].all_taps;
  EM_PASS(em_priv_conv_plan(j, PIECE, j->fn->lanes, j->fn->pair, (int64_t)j->fn->plane_item, false));
  const double each = (double)j->plane * (double)j->rows * ((double)j->channels * taps + 1);
  const int64_t grain = each >= GRAIN_WORK ? 1 : (int64_t)(GRAIN_WORK / each) + 1;
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_job(j, taps);
  void *token = em_priv_begin_long(each * (double)j->pieces * (double)j->groups >= LONG_WORK);
  em_status st = em_threads_for(j->pieces * j->groups, grain, run_pieces, j);
  em_priv_end_long(token);
  em_priv_conv_plan_release(j);
  return st;
}

// --- weights and biases

typedef struct packed { char *data; size_t capacity; const char *use; } packed;  // data NULL: the tensor's own bytes are used

static void packed_release(packed *p) {
  if (p->data != NULL) em_bytes_free(p->data, p->capacity);
  p->data = NULL;
}
static em_status packed_alloc(packed *p, int64_t count, size_t item) {
  p->data = em_bytes_alloc((size_t)count * item, &p->capacity);
  p->use = p->data;
  return p->data == NULL ? EM_NOMEM((size_t)count * item) : EM_OK;
}
// The weight in the dtype that planes hold, contiguous.
static em_status plain_weight(const em_conv *c, const em_tensor *w, int dtype, packed *out) {
  const int64_t item = (int64_t)em_dtype_size(dtype), from = (int64_t)em_dtype_size(w->dtype), row = c->kernel[2];
  out->use = em_tensor_data(w);
  if ((w->dtype == dtype && em_tensor_is_contiguous(w)) || w->numel == 0) return EM_OK;
  EM_PASS(packed_alloc(out, w->numel, (size_t)item));
  const em_conv_side s = em_priv_conv_side(w);
  char *to = out->data;
  for (int64_t o = 0; o < w->sizes[0]; o++)
    for (int64_t i = 0; i < w->sizes[1]; i++)
      for (int64_t d = 0; d < c->kernel[0]; d++)
        for (int64_t h = 0; h < c->kernel[1]; h++, to += row * item)
          em_cast_load(to, dtype, s.data + (o * s.n + i * s.c + d * s.x[0] + h * s.x[1]) * from, w->dtype, s.x[2] * from, row);
  return EM_OK;
}
static em_status pack_bias(const em_tensor *bias, const em_conv_loops *fn, packed *out) {
  if (bias == NULL || bias->numel == 0) return EM_OK;
  EM_PASS(packed_alloc(out, bias->numel, fn->item));
  const int64_t from = (int64_t)em_dtype_size(bias->dtype);
  em_cast_load(out->data, fn->compute, em_tensor_data(bias), bias->dtype, bias->strides[0] * from, bias->numel);
  return EM_OK;
}

// --- image -> made

// shifts[d][k] = k * dilation and the list 0, 1, ..., in one block.
static int64_t *kernel_shifts(const em_conv *c, em_conv_job *j, em_conv_phase *f) {
  const int64_t n = c->kernel[0] + c->kernel[1] + c->kernel[2];
  int64_t *shift = em_alloc((size_t)(2 * n) * sizeof(int64_t)), *list = shift + n;
  if (shift == NULL) return NULL;
  int64_t *block = shift;
  f->all_taps = 1;
  for (int d = 0; d < 3; d++) {
    j->shift[d] = shift;
    f->shift[d] = list;
    j->shifts[d] = f->taps[d] = c->kernel[d];
    f->all_taps *= c->kernel[d];
    for (int64_t k = 0; k < c->kernel[d]; k++) *shift++ = k * c->dilation[d], *list++ = k;
  }
  return block;
}
em_status em_priv_conv_describe_made(const em_conv *c, const em_tensor *image, em_conv_job *j, em_conv_phase *f, int64_t **block) {
  *j = (em_conv_job){.fn = em_priv_conv_loops_of(image->dtype), .dtype = image->dtype, .n = c->n, .groups = c->groups, .channels = c->ic,
                     .rows = c->oc, .src = em_priv_conv_side(image), .phases = 1, .phase = f};
  for (int d = 0; d < 3; d++) {
    j->len[d] = c->in[d];
    j->lead[d] = c->pad[d];
    j->step[d] = c->stride[d];
    j->out[d] = f->end[d] = c->out[d];
    f->first[d] = 0;
  }
  *block = kernel_shifts(c, j, f);
  return *block == NULL ? EM_NOMEM(64) : EM_OK;
}
void em_priv_conv_free_made(const em_conv *c, int64_t *block) {
  if (block != NULL) em_free(block, (size_t)(2 * (c->kernel[0] + c->kernel[1] + c->kernel[2])) * sizeof(int64_t));
}

// Rows of pairs of channels, for planes that hold pairs.
static em_status pair_weight(const em_conv *c, const em_conv_loops *fn, const int64_t *list, int64_t kernel, packed *w) {
  const int64_t pairs = (c->ic + 1) / 2, item = (int64_t)em_dtype_size(fn->stored), rows = c->groups * c->oc;
  packed made = {NULL, 0, NULL};
  EM_PASS(packed_alloc(&made, rows * pairs * kernel, fn->item));
  char *to = made.data;
  for (int64_t o = 0; o < rows; o++)
    for (int64_t i = 0; i < c->ic; i += 2, to += kernel * (int64_t)fn->item) {
      const char *from = w->use + (o * c->ic + i) * kernel * item;
      fn->gather(from, i + 1 < c->ic ? from + kernel * item : NULL, list, kernel, to);
    }
  packed_release(w);
  *w = made;
  return EM_OK;
}

em_status em_priv_conv_made(const em_conv *c, const em_tensor *image, const em_tensor *weight, const em_tensor *bias, em_tensor *made) {
  em_status st = EM_OK;
  em_conv_job j;
  em_conv_phase f = {.a = NULL};
  packed w = {NULL, 0, NULL}, b = w;
  int64_t *block = NULL;
  EM_TRY(em_priv_conv_describe_made(c, image, &j, &f, &block));
  j.dst = em_priv_conv_side(made);
  f.dst = j.dst.data;
  EM_TRY(plain_weight(c, weight, j.fn->stored, &w));
  EM_TRY(pack_bias(bias, j.fn, &b));
  if (j.fn->pair == 2) {
    int64_t *list = em_alloc((size_t)f.all_taps * sizeof(int64_t));
    if (list == NULL) EM_TRY(EM_NOMEM((size_t)f.all_taps * sizeof(int64_t)));
    for (int64_t k = 0; k < f.all_taps; k++) list[k] = k;
    st = pair_weight(c, j.fn, list, f.all_taps, &w);
    em_free(list, (size_t)f.all_taps * sizeof(int64_t));
    if (st != EM_OK) goto fail;
  }
  f.a = w.use;
  j.bias = b.use;
  st = run_job(&j);
fail:
  em_priv_conv_free_made(c, block);
  packed_release(&w);
  packed_release(&b);
  return st;
}

// --- made -> image

// One dim: its phases (rests), and the places of each, by ascending shift.
typedef struct dim_phases {
  int64_t count, shifts, lead, out;  // lead and positions as a job has them
  int64_t *rest, *first, *end, *start, *taps;  // for each phase
  int64_t *shift;                    // distinct shifts
  int64_t *k, *shift_of;             // places of all phases, one phase after the other, and their entries in `shift`
} dim_phases;

static int64_t dim_entries(const em_conv *c, int d) { return 5 * em_conv_least(c->stride[d], c->in[d]) + 3 * c->kernel[d]; }

// The phase that place k of dim d belongs to: that of the positions x with (x + pad) % stride == k * dilation % stride.
static int64_t phase_of(const em_conv *c, int d, int64_t k) {
  const int64_t s = c->stride[d], i = k * c->dilation[d] % s - c->pad[d] % s;
  return i < 0 ? i + s : i;
}
static void dim_phases_fill(const em_conv *c, int d, int64_t *block, dim_phases *p) {
  const int64_t s = c->stride[d], K = c->kernel[d], far = (K - 1) * c->dilation[d] / s;
  int64_t low = INT64_MAX, high = 0, places = 0;
  p->count = em_conv_least(s, c->in[d]);
  p->rest = block;
  p->first = p->rest + p->count;
  p->end = p->first + p->count;
  p->start = p->end + p->count;
  p->taps = p->start + p->count;
  p->shift = p->taps + p->count;
  p->k = p->shift + K;
  p->shift_of = p->k + K;
  p->shifts = 0;
  for (int64_t i = 0; i < p->count; i++) {
    const int64_t r = (int64_t)(((__int128)i + c->pad[d]) % s), lag = c->pad[d] - r;
    p->rest[i] = r;
    p->first[i] = lag > 0 ? (lag - 1) / s + 1 : 0;
    p->end[i] = c->in[d] - 1 + lag >= 0 ? (c->in[d] - 1 + lag) / s + 1 : 0;
    low = em_conv_least(low, p->first[i]);
    high = em_conv_most(high, p->end[i]);
    p->taps[i] = 0;
  }
  for (int64_t k = 0; k < K; k++) {
    const int64_t i = phase_of(c, d, k);
    if (i < p->count) p->taps[i]++;
  }
  for (int64_t i = 0; i < p->count; places += p->taps[i], p->taps[i++] = 0) p->start[i] = places;
  for (int64_t k = K - 1; k >= 0; k--) {  // the farthest place first: shifts ascend
    const int64_t shift = far - k * c->dilation[d] / s, i = phase_of(c, d, k);
    if (p->shifts == 0 || p->shift[p->shifts - 1] != shift) p->shift[p->shifts++] = shift;
    if (i >= p->count) continue;  // it meets no position of a short image
    const int64_t at = p->start[i] + p->taps[i]++;
    p->k[at] = k;
    p->shift_of[at] = p->shifts - 1;
  }
  p->lead = far - low;
  p->out = high - low;
  for (int64_t i = 0; i < p->count; i++) {  // counted from the first position of all
    p->first[i] -= low;
    p->end[i] -= low;
    p->rest[i] += low * s - c->pad[d];      // where position 0 lies in the image
  }
}

typedef struct image_run {
  const em_conv *c;
  em_conv_job base;
  dim_phases dim[3];
  const char *weight;      // plain
  char *turned;            // the phases' weights, one after the other: groups x ic x (packed oc * places)
  int64_t *list;           // places of a phase in a channel's kernel
} image_run;

// Writes the weights of one phase; returns what follows them.
static char *turn_weight(const image_run *r, const em_conv_phase *f, const int64_t *const *k, char *to) {
  const em_conv *c = r->c;
  const em_conv_loops *fn = r->base.fn;
  const int64_t item = (int64_t)em_dtype_size(fn->stored), kernel = c->kernel[0] * c->kernel[1] * c->kernel[2];
  int64_t count = 0;
  for (int64_t x = 0; x < f->taps[0]; x++)
    for (int64_t y = 0; y < f->taps[1]; y++)
      for (int64_t z = 0; z < f->taps[2]; z++)
        r->list[count++] = (k[0][x] * c->kernel[1] + k[1][y]) * c->kernel[2] + k[2][z];
  for (int64_t g = 0; g < c->groups; g++)
    for (int64_t i = 0; i < c->ic; i++)
      for (int64_t o = 0; o < c->oc; o += fn->pair, to += count * (int64_t)fn->item) {
        const char *from = r->weight + ((g * c->oc + o) * c->ic + i) * kernel * item;
        fn->gather(from, o + 1 < c->oc ? from + c->ic * kernel * item : NULL, r->list, count, to);
      }
  return to;
}
static void set_phase(const image_run *r, int64_t i, em_conv_phase *f, char **weights) {
  const int64_t item = (int64_t)em_dtype_size(r->base.dtype);
  const int64_t *k[3];
  f->all_taps = 1;
  f->dst = r->base.dst.data;
  for (int d = 2; d >= 0; d--) {
    const dim_phases *p = &r->dim[d];
    const int64_t which = i % p->count;
    i /= p->count;
    f->taps[d] = p->taps[which];
    f->all_taps *= f->taps[d];
    f->shift[d] = p->shift_of + p->start[which];
    k[d] = p->k + p->start[which];
    f->first[d] = p->first[which];
    f->end[d] = p->end[which];
    f->dst += p->rest[which] * (r->base.dst.x[d] / r->c->stride[d]) * item;
  }
  f->a = *weights;
  *weights = turn_weight(r, f, k, *weights);
}
// The phases [begin, end) together: their planes are the same.
static em_status run_phases(const image_run *r, int64_t begin, int64_t end) {
  em_conv_job j = r->base;
  const size_t bytes = (size_t)(end - begin) * sizeof(em_conv_phase);
  char *weights = r->turned;
  j.phase = em_alloc(bytes);
  if (j.phase == NULL) return EM_NOMEM(bytes);
  j.phases = end - begin;
  for (int64_t i = begin; i < end; i++) set_phase(r, i, &j.phase[i - begin], &weights);
  em_status st = run_job(&j);
  em_free(j.phase, bytes);
  return st;
}
static void describe_image(image_run *r, const em_conv *c, const em_tensor *made, const em_tensor *image) {
  em_conv_job *j = &r->base;
  *j = (em_conv_job){.fn = em_priv_conv_loops_of(made->dtype), .dtype = made->dtype, .n = c->n, .groups = c->groups, .channels = c->oc,
                     .rows = c->ic, .src = em_priv_conv_side(made), .dst = em_priv_conv_side(image)};
  for (int d = 0; d < 3; d++) {
    const dim_phases *p = &r->dim[d];
    j->len[d] = c->out[d];
    j->lead[d] = p->lead;
    j->step[d] = 1;
    j->out[d] = p->out;
    j->shifts[d] = p->shifts;
    j->shift[d] = p->shift;
    j->dst.x[d] *= c->stride[d];
  }
}

em_status em_priv_conv_image(const em_conv *c, const em_tensor *made, const em_tensor *weight, const em_tensor *bias, em_tensor *image) {
  em_status st = EM_OK;
  image_run r = {.c = c};
  packed w = {NULL, 0, NULL}, b = w, turned = w;
  int64_t entries = c->kernel[0] * c->kernel[1] * c->kernel[2], all = 1;
  if (image->numel == 0) return EM_OK;
  for (int d = 0; d < 3; d++) entries += dim_entries(c, d);
  int64_t *block = em_alloc((size_t)entries * sizeof(int64_t)), *at = block;
  if (block == NULL) return EM_NOMEM((size_t)entries * sizeof(int64_t));
  for (int d = 0; d < 3; at += dim_entries(c, d++)) {
    dim_phases_fill(c, d, at, &r.dim[d]);
    all *= r.dim[d].count;
  }
  r.list = at;
  describe_image(&r, c, made, image);
  const em_conv_loops *fn = r.base.fn;
  EM_TRY(plain_weight(c, weight, fn->stored, &w));
  EM_TRY(pack_bias(bias, fn, &b));
  EM_TRY(packed_alloc(&turned, c->groups * c->ic * ((c->oc + fn->pair - 1) / fn->pair) * c->kernel[0] * c->kernel[1] * c->kernel[2],
                      fn->item));
  r.weight = w.use;
  r.base.bias = b.use;
  r.turned = turned.data;
  const int64_t sums = c->ic * PIECE / 4 * (int64_t)fn->item, group = em_conv_most(1, PHASES_BYTES / em_conv_most(1, sums));
  for (int64_t i = 0; i < all; i += group) EM_TRY(run_phases(&r, i, em_conv_least(all, i + group)));
fail:
  em_free(block, (size_t)entries * sizeof(int64_t));
  packed_release(&w);
  packed_release(&b);
  packed_release(&turned);
  return st;
}
