// conv_gradient.c: a convolution's gradient of its weight: products of the result's gradient (rows, with zeros where there is no result)
// with the same runs of the picture that made the result. Each of a few parts, which depend on sizes alone, sums up its pieces.
#include <string.h>
#include "../../core/alloc.h"
#include "../../core/iterator.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "conv.h"
#include "conv_plan.h"

#define PIECE 2048             // positions of a piece: lanes are added up after each
#define PARTS 8
#define UNIT_ROWS 128          // least rows of a unit
#define PARTS_BYTES 4194304.0  // of all parts' sums
#define LONG_WORK 1e6          // worth giving the host's lock up

// A unit of work is a part of the pieces, for some of the rows.
typedef struct run {
  em_conv_job j;
  int64_t parts, splits, split;  // split: rows of a unit
  int64_t row;                   // elements of a weight's row
  char *sums;                    // parts x groups x rows x row
  size_t capacity;               // 0: they are the weight's own bytes
} run;
typedef struct scratch { char *planes, *rows; int64_t *at, before[4], vectors; } scratch;

static int64_t rows_apart(const em_conv_job *j) { return (j->plane + EM_CONV_SLACK + 15) / 16 * 16; }

// `count` rows of group g, from the first-th on.
static void load_made(const em_conv_job *j, const em_conv_piece *p, int64_t g, int64_t first, int64_t count, char *to) {
  const int64_t from = (int64_t)em_dtype_size(j->dtype), used = p->size[0] * j->size[0] * j->size[1] * j->size[2];
  em_conv_load l = {.dtype = j->dtype, .n = p->size[0], .n_stride = j->dst.n, .step = {1, 1, 1}};
  for (int d = 0; d < 3; d++) {
    l.size[d] = j->size[d];
    l.hi[d] = p->first[d + 1] + p->size[d + 1];
    l.stride[d] = j->dst.x[d];
  }
  for (int64_t r = first; r < first + count; r++, to += rows_apart(j) * j->item) {
    j->fn->load(&l, j->dst.data + (p->first[0] * j->dst.n + (g * j->rows + r) * j->dst.c) * from, p->first + 1, to);
    memset(to + used * j->item, 0, 64);
  }
}
static void run_unit(const run *r, int64_t part, int64_t first, scratch *s) {
  const em_conv_job *j = &r->j;
  const em_conv_phase *f = j->phase;
  const int64_t wide = (int64_t)j->fn->item, rows = em_conv_least(r->split, j->rows - first), begin = part * j->pieces / r->parts;
  char *sums = r->sums + (part * j->groups * j->rows + first) * r->row * wide;
  for (int64_t i = begin; i < (part + 1) * j->pieces / r->parts; i++) {
    const em_conv_piece p = em_priv_conv_piece(j, i);
    s->vectors = em_priv_conv_cover(j, &p, s->before, s->vectors, s->at);
    for (int64_t g = 0; g < j->groups; g++) {
      load_made(j, &p, g, first, rows, s->rows);
      for (int64_t c = 0; c < j->channels; c += j->cblock) {
        const int64_t count = em_conv_least(j->cblock, j->channels - c);
        em_priv_conv_load(j, &p, g, c, count, s->planes);
        const em_conv_product q = {.m = rows, .k = count * f->all_taps, .vectors = s->vectors, .at = s->at, .a = s->rows,
                                   .b = s->planes, .off = f->off, .c = sums + (g * j->rows * r->row + c * f->all_taps) * wide,
                                   .lda = rows_apart(j), .ldc = r->row, .fresh = i == begin};
        j->fn->gradient(&q);
      }
    }
  }
}
static em_status run_units(void *context, int64_t begin, int64_t end) {
  const run *r = context;
  const em_conv_job *j = &r->j;
  const size_t held = (size_t)(em_conv_planes(j) * j->item), list = (size_t)j->vectors * sizeof(int64_t);
  const size_t bytes = held + list + (size_t)(r->split * rows_apart(j) * j->item);
  size_t capacity;
  scratch s = {.planes = em_bytes_alloc(bytes, &capacity)};
  if (s.planes == NULL) return EM_NOMEM(bytes);
  memset(s.planes, 0, bytes);  // what lies between and behind the planes meets zeros, and must be a number
  s.at = (int64_t *)(s.planes + held);
  s.rows = s.planes + held + list;
  for (int64_t i = begin; i < end; i++) run_unit(r, i / r->splits, i % r->splits * r->split, &s);
  em_bytes_free(s.planes, capacity);
  return EM_OK;
}

// The parts' sums, added up in order; whether all of them are numbers.
static bool add_parts(const run *r, int64_t n) {
  bool numbers = true;
  for (int64_t p = 1; p < r->parts; p++) {
    if (r->j.fn->compute == EM_F32) {
      float *to = (float *)r->sums, *from = to + p * n;
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    } else {
      double *to = (double *)r->sums, *from = to + p * n;
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    }
  }
  if (r->j.fn->compute == EM_F32)
    for (int64_t i = 0; i < n; i++) numbers = numbers & (((float *)r->sums)[i] == ((float *)r->sums)[i]);
  else
    for (int64_t i = 0; i < n; i++) numbers = numbers & (((double *)r->sums)[i] == ((double *)r->sums)[i]);
  return numbers;
}
// `own`: the weight's bytes, when they can take the sums; else NULL.
static em_status make_sums(run *r, int64_t n, bool columns, char *own) {
  em_conv_job *j = &r->j;
  EM_PASS(em_priv_conv_plan(j, PIECE, j->fn->sum_lanes, 1, (int64_t)em_dtype_size(j->fn->stored), columns));
  const double bytes = (double)n * (double)j->fn->item;
  r->parts = em_conv_least(PARTS, em_conv_most(1, em_conv_least(j->pieces, (int64_t)(PARTS_BYTES / bytes))));
  // how the rows are split changes no sum: it may depend on the threads
  r->splits = em_conv_most(1, em_conv_least(em_threads_get() / r->parts, j->rows / UNIT_ROWS));
  r->split = (j->rows + r->splits - 1) / r->splits;
  r->splits = (j->rows + r->split - 1) / r->split;
  const size_t all = (size_t)(r->parts * n) * j->fn->item;
  r->capacity = 0;
  r->sums = r->parts == 1 && own != NULL ? own : em_bytes_alloc(all, &r->capacity);
  em_status st = r->sums == NULL ? EM_NOMEM(all) : EM_OK;
  if (st == EM_OK) {
    EM_NOTE("weight's gradient: %lld piece%s of up to %d positions in %lld part%s, %s loop; the picture lies in %s",
            (long long)j->pieces, EM_NOTE_S(j->pieces), PIECE, (long long)r->parts, EM_NOTE_S(r->parts), em_priv_note_isa,
            !j->columns ? "planes (columns refused: copies cost more than sums that are thrown away)"
            : columns   ? "columns (planes refused: an infinity may have met a zero in them)"
                        : "columns (planes refused: more sums would be thrown away than copies cost)");
    void *token = em_priv_begin_long((double)j->pieces * (double)j->plane * (double)n >= LONG_WORK);
    st = em_threads_for(r->parts * r->splits, 1, run_units, r);
    em_priv_end_long(token);
  }
  em_priv_conv_plan_release(j);
  if (st != EM_OK && r->capacity != 0) em_bytes_free(r->sums, r->capacity);
  return st;
}
static void store_weight(const em_conv *c, const run *r, em_tensor *weight) {
  const int64_t row = c->kernel[2], item = (int64_t)em_tensor_itemsize(weight);
  const em_conv_side s = em_priv_conv_side(weight);
  const char *from = r->sums;
  for (int64_t o = 0; o < weight->sizes[0]; o++)
    for (int64_t i = 0; i < weight->sizes[1]; i++)
      for (int64_t d = 0; d < c->kernel[0]; d++)
        for (int64_t h = 0; h < c->kernel[1]; h++, from += row * (int64_t)r->j.fn->item)
          em_cast_store(s.data + (o * s.n + i * s.c + d * s.x[0] + h * s.x[1]) * item, weight->dtype, s.x[2] * item, from,
                        r->j.fn->compute, row);
}
em_status em_priv_conv_weight(const em_conv *c, const em_tensor *image, const em_tensor *made, em_tensor *weight) {
  em_status st = EM_OK;
  run r;
  em_conv_phase f = {.a = NULL};
  int64_t *block = NULL;
  const int64_t n = weight->numel;
  if (n == 0) return EM_OK;
  if (image->numel == 0 || made->numel == 0) {
    memset(em_tensor_data(weight), 0, (size_t)n * em_tensor_itemsize(weight));  // it is fresh, and dense in whatever order
    return EM_OK;
  }
  EM_TRY(em_priv_conv_describe_made(c, image, &r.j, &f, &block));
  r.j.dst = em_priv_conv_side(made);
  r.row = c->ic * f.all_taps;
  char *own = weight->dtype == r.j.fn->compute && em_tensor_is_contiguous(weight) ? em_tensor_data(weight) : NULL;
  EM_TRY(make_sums(&r, n, false, own));
  if (!add_parts(&r, n) && !r.j.columns) {  // an infinity may have met a zero where there is no result
    if (r.capacity != 0) em_bytes_free(r.sums, r.capacity);
    EM_TRY(make_sums(&r, n, true, own));
    (void)add_parts(&r, n);
  }
  if (r.capacity != 0) {
    store_weight(c, &r, weight);
    em_bytes_free(r.sums, r.capacity);
  }
fail:
  em_priv_conv_free_made(c, block);
  return st;
}
