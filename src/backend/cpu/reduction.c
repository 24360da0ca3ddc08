// reduction.c: walks a tensor and feeds the loops of a reduction. Two ways, chosen by layout alone:
//   outer   the kept innermost dimension is dense: up to 64 neighbouring outputs step together, row by row
//   inner   otherwise: segments of 2048 elements (gathered and converted if need be) run on 64 lanes; shorter outputs, up to 128
//           elements where the state is large, are turned, so that each is a lane
// Segments, chunks of rows and chunks of segments are merged as a binary counter counts, so that rounding errors grow
// with the logarithm of the size.
#include "../../dispatch/reduction.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include <string.h>

#define SEGMENT 2048            // elements a lane block runs over before its lanes are merged
#define CHUNK (64 * SEGMENT)    // elements of one output that one thread takes at least
#define BESIDE 128              // elements up to which outputs of inner dims go side by side, turned; at least EM_RED_LANES
#define ROWS 256                // rows that an outer block steps over before it is merged upwards
#define LEVELS 40
#define GRAIN 32768             // elements worth a thread

typedef struct dim { int64_t size, stride; } dim;  // stride in bytes
typedef struct walk {
  em_red_walk *w;
  dim kept[EM_MAX_DIMS], red[EM_MAX_DIMS];  // row-major, coalesced
  int nkept, nred;
  int64_t n, nout;                          // elements an output, outputs
  const char *data;
  int64_t item, loop_item, out_item[2];
  bool direct;                              // elements have the loop's dtype
  int64_t blocks, chunks;                   // outer: blocks a kept row; inner: chunks an output
  char *states;                             // inner with several chunks: one w=1 state each
  int64_t state_bytes;
} walk;

typedef union tile { char bytes[SEGMENT * 16]; em_c128 align; } tile;

// --- merging as a binary counter ------------------------------------------------------------------------------------

typedef struct cascade {
  const em_red_kernel *k;
  int64_t width;
  size_t bytes;       // of a state block in use
  uint64_t filled;    // bit l: level[l] holds the state of 2^l parts
  em_red_block level[LEVELS];
} cascade;

static void cascade_init(cascade *c, const walk *q, int64_t width) {
  c->k = q->w->k;
  c->width = width;
  c->bytes = (size_t)q->w->d->nvars * EM_RED_VAR_BYTES;
  c->filled = 0;
}

static void cascade_push(cascade *c, const em_red_block *part) {
  int l = 0;
  const em_red_block *carry = part;
  for (; c->filled >> l & 1; l++) {
    c->k->merge(c->level[l].bytes, carry->bytes, c->width);
    carry = &c->level[l];
  }
  memcpy(c->level[l].bytes, carry->bytes, c->bytes);
  c->filled = (c->filled & ~((1ull << l) - 1)) | 1ull << l;
}

// The state of everything pushed; NULL when nothing was.
static const char *cascade_result(cascade *c) {
  char *right = NULL;
  for (int l = 0; l < LEVELS; l++) {
    if (!(c->filled >> l & 1)) continue;
    if (right != NULL) c->k->merge(c->level[l].bytes, right, c->width);
    right = c->level[l].bytes;
  }
  return right;
}

// --- geometry -------------------------------------------------------------------------------------------------------

static void add_dim(dim *dims, int *n, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (*n > 0 && dims[*n - 1].stride == stride * size) {
    dims[*n - 1].size *= size;
    dims[*n - 1].stride = stride;
  } else {
    dims[(*n)++] = (dim){size, stride};
  }
}

static void plan_walk(walk *q, em_red_walk *w) {
  const em_tensor *t = w->self;
  q->w = w;
  q->nkept = q->nred = 0;
  q->n = q->nout = 1;
  q->item = (int64_t)em_tensor_itemsize(t);
  q->loop_item = (int64_t)em_dtype_size(w->loop);
  q->direct = t->dtype == w->loop && w->convert == EM_DTYPE_NONE;
  q->data = em_tensor_data(t);
  for (int i = 0; i < t->ndim; i++) {
    bool reduced = w->reduced >> i & 1;
    *(reduced ? &q->n : &q->nout) *= t->sizes[i];
    add_dim(reduced ? q->red : q->kept, reduced ? &q->nred : &q->nkept, t->sizes[i], t->strides[i] * q->item);
  }
  for (int i = 0; i < w->d->nout; i++) q->out_item[i] = (int64_t)em_tensor_itemsize(w->out[i]);
}

// Byte offset of the index-th element of a set of dims, row-major.
static int64_t offset_of(const dim *dims, int n, int64_t index) {
  int64_t at = 0;
  for (int i = n - 1; i >= 0; i--) {
    at += index % dims[i].size * dims[i].stride;
    index /= dims[i].size;
  }
  return at;
}

static void convert(const walk *q, char *dst, const char *src, int64_t stride, int64_t n) {
  const em_red_walk *w = q->w;
  if (w->convert == EM_DTYPE_NONE) {
    em_cast_load(dst, w->loop, src, w->self->dtype, stride, n);
    return;
  }
  tile middle;
  em_cast_load(middle.bytes, w->convert, src, w->self->dtype, stride, n);
  em_cast_load(dst, w->loop, middle.bytes, w->convert, (int64_t)em_dtype_size(w->convert), n);
}

static int loop_out_dtype(const walk *q, int i) {
  static const int fixed[] = {EM_DTYPE_NONE, EM_I64, EM_BOOL, EM_DTYPE_NONE};
  int kind = q->w->d->out_kind[i];
  return kind == EM_RED_SAME ? q->w->loop : kind == EM_RED_REAL ? em_dtype_to_real(q->w->loop) : fixed[kind];
}

static void write_outputs(const walk *q, const char *state, int64_t width, int64_t at) {
  em_red_block value[2];
  char *out[2] = {value[0].bytes, value[1].bytes};
  em_red_block empty;
  if (state == NULL) {
    q->w->k->init(empty.bytes, width);
    state = empty.bytes;
  }
  q->w->k->finish(state, width, q->n, q->w->attr, out);
  for (int i = 0; i < q->w->d->nout; i++) {
    em_tensor *t = q->w->out[i];
    em_cast_store((char *)em_tensor_data(t) + at * q->out_item[i], t->dtype, q->out_item[i], out[i],
                  loop_out_dtype(q, i), width);
  }
}

// --- inner ----------------------------------------------------------------------------------------------------------

// n contiguous loop elements as a state of `lanes` lanes or fewer, a power of two.
static void run_segment(const walk *q, em_red_block *s, const char *x, int64_t n, int64_t index, int64_t lanes) {
  const em_red_kernel *k = q->w->k;
  int64_t w = n < EM_RED_LANES ? n : EM_RED_LANES, rows = n / w, rest = n - rows * w;
  if (k->segment != NULL && w == EM_RED_LANES && lanes <= EM_RED_FOLDED(k->var_bytes[0])) {
    k->segment(s->bytes, x, n);
    w = EM_RED_FOLDED(k->var_bytes[0]);
  } else {
    k->init(s->bytes, w);
    k->rows(s->bytes, x, w, rows, w, index, w, 1);
    if (rest > 0) k->rows(s->bytes, x + rows * w * q->loop_item, rest, 1, 0, index + rows * w, 0, 1);
  }
  em_red_block upper;
  bool alike = true;  // variables of one size: the upper lanes can be read where they are
  for (int v = 1; v < q->w->d->nvars; v++) alike &= k->var_bytes[v] == k->var_bytes[0];
  while (w > lanes) {  // fold the upper half of the lanes onto the lower
    int64_t half = (w + 1) / 2;
    if (alike) {
      k->merge(s->bytes, s->bytes + half * k->var_bytes[0], w - half);
      w = half;
      continue;
    }
    for (int v = 0; v < q->w->d->nvars; v++)
      memcpy(upper.bytes + v * EM_RED_VAR_BYTES, s->bytes + v * EM_RED_VAR_BYTES + half * k->var_bytes[v],
             (size_t)((w - half) * k->var_bytes[v]));
    k->merge(s->bytes, upper.bytes, w - half);
    w = half;
  }
}

// m elements of an output from `at` on, gathered and converted.
static void gather(const walk *q, char *to, const char *base, int64_t at, int64_t m) {
  dim inner = q->nred > 0 ? q->red[q->nred - 1] : (dim){1, q->item};
  for (int64_t done = 0; done < m;) {
    int64_t left = inner.size - (at + done) % inner.size, take = left < m - done ? left : m - done;
    convert(q, to + done * q->loop_item, base + offset_of(q->red, q->nred, at + done), inner.stride, take);
    done += take;
  }
}
// The same, as a loop takes them: where they are if that can be.
static const char *segment_of(const walk *q, const char *base, int64_t at, int64_t m, tile *gathered) {
  dim inner = q->nred > 0 ? q->red[q->nred - 1] : (dim){1, q->item};
  if (q->direct && inner.stride == q->item && inner.size - at % inner.size >= m) return base + offset_of(q->red, q->nred, at);
  gather(q, gathered->bytes, base, at, m);
  return gathered->bytes;
}
// Elements [begin, end) of the output whose first element is at `base`.
static void run_chunk(const walk *q, const char *base, int64_t begin, int64_t end, cascade *c) {
  tile gathered;
  em_red_block state;
  for (int64_t at = begin; at < end;) {
    int64_t m = end - at < SEGMENT ? end - at : SEGMENT;
    run_segment(q, &state, segment_of(q, base, at, m, &gathered), m, at, 1);
    cascade_push(c, &state);
    at += m;
  }
}

// Short outputs go side by side: 16 elements of each of up to 64 outputs are turned, so that an output is a lane.
typedef struct beside { char turned[EM_TURN_ROWS * EM_RED_LANES * 16]; tile gathered; } beside;

static void turn_outputs(const walk *q, beside *b, int64_t first, int64_t w, int64_t at, int64_t m) {
  const dim last = q->nkept > 0 ? q->kept[q->nkept - 1] : (dim){1, 0};
  if (!q->direct || (q->nred > 0 && (q->nred > 1 || q->red[0].stride != q->item))) {
    const int64_t line = q->n * q->loop_item;  // the caller saw to it that w of them have room
    for (int64_t j = 0; at == 0 && j < w; j++)
      gather(q, b->gathered.bytes + j * line, q->data + offset_of(q->kept, q->nkept, first + j), 0, q->n);
    em_priv_turn(b->turned, EM_RED_LANES, b->gathered.bytes + at * q->loop_item, line, w, m, q->loop_item);
    return;
  }
  for (int64_t j = 0; j < w;) {
    const int64_t left = last.size - (first + j) % last.size, run = left < w - j ? left : w - j;
    const char *src = q->data + offset_of(q->kept, q->nkept, first + j) + at * q->item;
    em_priv_turn(b->turned + j * q->item, EM_RED_LANES, src, last.stride, run, m, q->item);
    j += run;
  }
}
static void inner_beside(const walk *q, int64_t begin, int64_t end) {
  const int64_t room = (int64_t)sizeof(tile) / (q->n * q->loop_item), width = room < EM_RED_LANES ? room : EM_RED_LANES;
  beside b;
  em_red_block state;
  cascade c;
  for (int64_t first = begin; first < end; first += width) {
    const int64_t w = end - first < width ? end - first : width;
    cascade_init(&c, q, w);
    for (int64_t at = 0; at < q->n; at += EM_TURN_ROWS) {
      const int64_t m = q->n - at < EM_TURN_ROWS ? q->n - at : EM_TURN_ROWS;
      turn_outputs(q, &b, first, w, at, m);
      q->w->k->init(state.bytes, w);
      q->w->k->rows(state.bytes, b.turned, w, m, EM_RED_LANES, at, 1, 0);
      if (q->n > EM_TURN_ROWS) cascade_push(&c, &state);
    }
    write_outputs(q, q->n > EM_TURN_ROWS ? cascade_result(&c) : state.bytes, w, first);
  }
}

// Longer outputs of one segment: each is folded to some lanes, then the lanes of EM_RED_TOGETHER outputs go side by side.
static void fold_together(const walk *q, em_red_block *s, int64_t lanes) {
  const em_red_kernel *k = q->w->k;
  em_red_block upper;
  for (; lanes > 1; lanes /= 2) {
    const int64_t half = lanes / 2 * EM_RED_TOGETHER;
    for (int v = 0; v < q->w->d->nvars; v++)
      memcpy(upper.bytes + v * EM_RED_VAR_BYTES, s->bytes + v * EM_RED_VAR_BYTES + half * k->var_bytes[v],
             (size_t)(half * k->var_bytes[v]));
    k->merge(s->bytes, upper.bytes, half);
  }
}
static void inner_short(const walk *q, int64_t begin, int64_t end) {
  const em_red_kernel *k = q->w->k;
  const int nvars = q->w->d->nvars;
  tile gathered;
  em_red_block state, lines, ready;
  int64_t widest = 1;
  for (int v = 0; v < nvars; v++) widest = k->var_bytes[v] > widest ? k->var_bytes[v] : widest;
  const int64_t lanes = EM_RED_FOLDED(widest);
  // Most lines are dense and evenly spaced: nothing to divide for.
  const bool plain = q->direct && q->nred == 1 && q->red[0].stride == q->item && q->nkept == 1;
  for (int64_t first = begin; first < end; first += EM_RED_TOGETHER) {
    const int64_t w = end - first < EM_RED_TOGETHER ? end - first : EM_RED_TOGETHER;
    if (w < EM_RED_TOGETHER) memset(ready.bytes, 0, sizeof ready.bytes);
    for (int64_t j = 0; j < w; j++) {
      const char *base = q->data + (plain ? (first + j) * q->kept[0].stride : offset_of(q->kept, q->nkept, first + j));
      const char *x = plain ? base : segment_of(q, base, 0, q->n, &gathered);
      if (k->segment != NULL && q->n >= EM_RED_LANES) {
        k->segment(lines.bytes + j * lanes * widest, x, q->n);
        continue;
      }
      run_segment(q, &state, x, q->n, 0, lanes);
      for (int v = 0; v < nvars; v++)
        memcpy(lines.bytes + v * EM_RED_VAR_BYTES + j * lanes * k->var_bytes[v], state.bytes + v * EM_RED_VAR_BYTES,
               (size_t)(lanes * k->var_bytes[v]));
    }
    for (int v = 0; v < nvars; v++)
      em_priv_turn(ready.bytes + v * EM_RED_VAR_BYTES, EM_RED_TOGETHER, lines.bytes + v * EM_RED_VAR_BYTES, lanes * k->var_bytes[v], w,
                   lanes, k->var_bytes[v]);
    fold_together(q, &ready, lanes);
    write_outputs(q, ready.bytes, w, first);
  }
}
static em_status inner_outputs(void *context, int64_t begin, int64_t end) {
  const walk *q = context;
  cascade c;
  if (q->n > 0 && q->n <= SEGMENT) {
    if (q->n <= BESIDE && (q->w->k->segment == NULL || q->n < EM_RED_LANES)) inner_beside(q, begin, end);
    else inner_short(q, begin, end);
    return EM_OK;
  }
  for (int64_t o = begin; o < end; o++) {
    cascade_init(&c, q, 1);
    run_chunk(q, q->data + offset_of(q->kept, q->nkept, o), 0, q->n, &c);
    write_outputs(q, cascade_result(&c), 1, o);
  }
  return EM_OK;
}

static em_status inner_chunks(void *context, int64_t begin, int64_t end) {
  const walk *q = context;
  cascade c;
  for (int64_t t = begin; t < end; t++) {
    int64_t o = t / q->chunks, part = t % q->chunks, stop = (part + 1) * CHUNK;
    cascade_init(&c, q, 1);
    run_chunk(q, q->data + offset_of(q->kept, q->nkept, o), part * CHUNK, stop < q->n ? stop : q->n, &c);
    memcpy(q->states + t * q->state_bytes, cascade_result(&c), (size_t)q->state_bytes);
  }
  return EM_OK;
}

static em_status run_inner(walk *q) {
  q->chunks = (q->n + CHUNK - 1) / CHUNK;
  if (q->chunks <= 1) return em_threads_for(q->nout, GRAIN / (q->n + 16) + 1, inner_outputs, q);
  q->state_bytes = q->w->d->nvars * EM_RED_VAR_BYTES;
  size_t bytes = (size_t)(q->nout * q->chunks * q->state_bytes);
  q->states = em_alloc(bytes);
  if (q->states == NULL) return EM_NOMEM(bytes);
  em_status st = em_threads_for(q->nout * q->chunks, 1, inner_chunks, q);
  cascade c;
  for (int64_t o = 0; o < q->nout && st == EM_OK; o++) {
    cascade_init(&c, q, 1);
    for (int64_t t = 0; t < q->chunks; t++)
      cascade_push(&c, (const em_red_block *)(q->states + (o * q->chunks + t) * q->state_bytes));
    write_outputs(q, cascade_result(&c), 1, o);
  }
  em_free(q->states, bytes);
  return st;
}

// --- outer ----------------------------------------------------------------------------------------------------------

// Rows [begin, end) of a block of w outputs.
static void run_rows(const walk *q, em_red_block *s, const char *base, int64_t w, int64_t begin, int64_t end) {
  const em_red_kernel *k = q->w->k;
  dim inner = q->nred > 0 ? q->red[q->nred - 1] : (dim){1, 0};
  tile rows;
  k->init(s->bytes, w);
  for (int64_t at = begin; at < end;) {
    int64_t left = inner.size - at % inner.size, m = left < end - at ? left : end - at;
    const char *x = base + offset_of(q->red, q->nred, at);
    int64_t stride = inner.stride / q->item;
    if (!q->direct) {
      int64_t room = SEGMENT / w;
      if (m > room) m = room;
      for (int64_t r = 0; r < m; r++) convert(q, rows.bytes + r * w * q->loop_item, x + r * inner.stride, q->item, w);
      x = rows.bytes;
      stride = w;
    }
    k->rows(s->bytes, x, w, m, stride, at, 1, 0);
    at += m;
  }
}

static em_status outer_blocks(void *context, int64_t begin, int64_t end) {
  const walk *q = context;
  dim last = q->kept[q->nkept - 1];
  cascade c;
  em_red_block state;
  for (int64_t t = begin; t < end; t++) {
    int64_t row = t / q->blocks, first = t % q->blocks * EM_RED_LANES;
    int64_t w = last.size - first < EM_RED_LANES ? last.size - first : EM_RED_LANES;
    const char *base = q->data + offset_of(q->kept, q->nkept - 1, row) + first * q->item;
    cascade_init(&c, q, w);
    for (int64_t at = 0; at < q->n; at += ROWS) {
      run_rows(q, &state, base, w, at, at + ROWS < q->n ? at + ROWS : q->n);
      cascade_push(&c, &state);
    }
    write_outputs(q, cascade_result(&c), w, row * last.size + first);
  }
  return EM_OK;
}

static bool is_outer(const walk *q) {
  if (q->nkept == 0 || q->kept[q->nkept - 1].stride != q->item || q->kept[q->nkept - 1].size < 4) return false;
  return q->nred > 0 && q->red[q->nred - 1].stride != q->item;
}

// For the lights: which of the ways, and why not another.
static __attribute__((cold)) void note_walk(const walk *q, bool outer) {
  const char *read = q->direct ? "read where they lie" : "cast in tiles first", *s = EM_NOTE_S(q->nout);
  const long long n = q->n, nout = q->nout;
  if (outer)
    em_note_write("reduction over outer dims: %lld result%s of %lld elements, %d neighbours step together, %s, %s loop (lanes within a "
                  "result "
                  "refused: its elements lie apart)", nout, s, n, EM_RED_LANES, read, em_priv_note_isa);
  else if (n > 0 && n <= BESIDE)
    em_note_write("reduction of short rows: %lld result%s of %lld elements, turned so that each is a lane, %s, %s loop (lanes within a "
                  "result "
                  "refused: %d elements or fewer)", nout, s, n, read, em_priv_note_isa, BESIDE);
  else if (n <= SEGMENT)
    em_note_write("reduction of one segment each: %lld result%s of %lld elements, %d lanes within one, %d folded together, %s, %s loop "
                  "(a tree of "
                  "segments refused: %d elements or fewer)", nout, s, n, EM_RED_LANES, EM_RED_TOGETHER, read, em_priv_note_isa, SEGMENT);
  else
    em_note_write("reduction in a tree: %lld result%s of %lld elements, %d lanes within segments of %d%s, %s, %s loop (neighbours together "
                  "refused: %s)", nout, s, n, EM_RED_LANES, SEGMENT, n > CHUNK ? ", several chunks each" : "", read, em_priv_note_isa,
                  nout == 1 ? "there is one result" : "fewer than 4 results lie side by side");
}

em_status em_red_walk_cpu(em_red_walk *w) {
  walk q;
  plan_walk(&q, w);
  if (q.nout == 0) return EM_OK;
  void *token = em_priv_begin_long(w->self->numel >= EM_LONG_NUMEL);
  em_status st;
  const bool outer = is_outer(&q);
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_walk(&q, outer);
  if (outer) {
    dim last = q.kept[q.nkept - 1];
    q.blocks = (last.size + EM_RED_LANES - 1) / EM_RED_LANES;
    st = em_threads_for(q.nout / last.size * q.blocks, GRAIN / (q.n * EM_RED_LANES + 1) + 1, outer_blocks, &q);
  } else {
    st = run_inner(&q);
  }
  em_priv_end_long(token);
  return st;
}
