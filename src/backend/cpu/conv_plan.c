// conv_plan.c: cuts a convolution into pieces that fit the caches, and fills the tables that its loops walk.
#include "conv_plan.h"
#include <string.h>
#include "../../core/alloc.h"
#include "isa.h"

EM_ISA_DECLARE(const em_conv_loops, em_priv_conv_loops, [4]);
static const em_conv_loops *loops;
static bool has_bf16;
__attribute__((constructor)) static void choose_loops(void) {
  loops = EM_ISA_PICK(em_priv_conv_loops);
#if defined(__x86_64__)
  __builtin_cpu_init();
  has_bf16 = loops[3].product != NULL && __builtin_cpu_supports("avx512bf16");
#endif
}

#define PIECE_LEAST 256
#define SUMS_BYTES 1048576    // what the sums of a piece should not exceed
// What follows decides in which order sums are made, and must not depend on the instruction set.
#define WIDE_BYTES 256        // of a run, read at once
#define WINDOW_BYTES 24576    // of the picture, under one tile of results: stays in the first cache
#define PLANES_BYTES 393216   // of a piece: stays in the second
#define PLANE_MOST 4194304.0  // positions in one picture's piece; more are mostly zeros
#define COLUMNS_BYTES 6.7e7   // of one channel's columns: kernels of very many places get smaller pieces

const em_conv_loops *em_priv_conv_loops_of(int dtype) {
  if (dtype == EM_BF16 && has_bf16) return &loops[3];
  return &loops[dtype == EM_F64 ? 1 : em_dtype_is_float(dtype) ? 0 : 2];
}
em_conv_side em_priv_conv_side(const em_tensor *t) {
  em_conv_side s = {em_tensor_data(t), t->strides[0], t->strides[1], {0, 0, 0}};
  for (int d = 2; d < t->ndim; d++) s.x[d - t->ndim + 3] = t->strides[d];
  return s;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// `all` cut into equal blocks of at most `want`.
static int64_t even(int64_t all, int64_t want) {
  return ceil_div(all, ceil_div(all, em_conv_most(1, em_conv_least(want, all))));
}

// Vectors of `lanes` positions that cover the results of a piece; in order, apart. `at` may be NULL: only counts.
static int64_t cover(const int64_t *block, const int64_t *size, int64_t lanes, int64_t *at) {
  int64_t count = 0, next = 0, line = 0;
  for (int64_t n = 0; n < block[0]; n++, line += (size[0] - block[1]) * size[1] * size[2])
    for (int64_t d = 0; d < block[1]; d++, line += (size[1] - block[2]) * size[2])
      for (int64_t h = 0; h < block[2]; h++, line += size[2]) {
        if (next < line) next = line;
        for (; next < line + block[3]; next += lanes, count++)
          if (at != NULL) at[count] = next;
      }
  return count;
}
int64_t em_priv_conv_cover(const em_conv_job *j, const em_conv_piece *p, int64_t *before, int64_t count, int64_t *at) {
  if (memcmp(before, p->size, sizeof p->size) == 0) return count;
  memcpy(before, p->size, sizeof p->size);
  return cover(p->size, j->size, j->lanes, at);
}

// Blocks of about `target` positions. Returns positions computed over positions stored.
static double set_blocks(em_conv_job *j, bool columns, int64_t target) {
  double ends[3];
  for (int d = 0; d < 3; d++)
    ends[d] = columns || j->shifts[d] == 0 ? 0 : (double)(j->shift[d][j->shifts[d] - 1] / j->step[d]);
  int64_t *b = j->block;
  b[0] = b[1] = b[2] = 1;
  b[3] = (double)j->out[2] + ends[2] <= 2.0 * (double)target ? j->out[2] : even(j->out[2], target);
  double run = (double)b[3] + ends[2];
  if (b[3] == j->out[2]) b[2] = even(j->out[1], (int64_t)((double)target / run));
  run *= (double)b[2] + ends[1];
  if (b[3] == j->out[2] && b[2] == j->out[1]) b[1] = even(j->out[0], (int64_t)((double)target / run));
  run *= (double)b[1] + ends[0];
  if (b[3] == j->out[2] && b[2] == j->out[1] && b[1] == j->out[0]) b[0] = even(j->n, (int64_t)((double)target / run));
  if (run > PLANE_MOST) return PLANE_MOST;
  for (int d = 0; d < 3; d++) j->size[d] = b[d + 1] + (int64_t)ends[d];
  j->vectors = cover(b, j->size, j->lanes, NULL);
  return (double)(j->vectors * j->lanes) / ((double)b[0] * (double)b[1] * (double)b[2] * (double)b[3]);
}
// Columns cost a copy of every row for each shift, planes the sums that are thrown away: cycles for one element of the product.
static bool want_columns(em_conv_job *j, int64_t target) {
  const double dense = set_blocks(j, true, target), copy = 0.5 + 12.0 / (double)j->block[3];
  const double thrown = (set_blocks(j, false, target) - dense) * (double)(j->rows * j->phases) / (2.0 * (double)j->lanes);
  return thrown > copy;
}

// How many planes a dim's shifts need, and which shift uses which.
static int64_t classes_of(const em_conv_job *j, int d, int64_t *index) {
  int64_t found = 0;
  const bool apart = j->columns || (j->shifts[d] > 0 && j->shift[d][j->shifts[d] - 1] < j->step[d]);  // each has its own
  for (int64_t t = 0; t < j->shifts[d]; t++) {
    int64_t u = apart ? t : 0;
    while (u < t && j->shift[d][u] % j->step[d] != j->shift[d][t] % j->step[d]) u++;
    index[t] = u < t ? index[u] : found++;
  }
  return found;
}

static void set_channels(em_conv_job *j) {
  const int64_t wide = WIDE_BYTES / j->item, packed = em_conv_packed(j);
  const double rows = (double)j->shifts[0] * (double)j->shifts[1];
  const double window = j->columns ? rows * (double)j->shifts[2] * (double)wide : rows * (double)(wide + j->size[2] - j->block[3]);
  double c = (double)WINDOW_BYTES / (double)j->item / (window > 1 ? window : 1);
  const double held = (double)PLANES_BYTES / (double)j->item / ((double)j->plane * (double)em_conv_most(1, j->planes));
  if (held < c) c = held;
  j->cblock = c < 1 ? 1 : c > (double)packed ? em_conv_most(1, packed) : (int64_t)c;
  if (packed > 0) j->cblock = even(packed, j->cblock);
}

// Where each plane begins in the source, and where each channel's places begin in the planes.
static void fill_tables(em_conv_job *j, int64_t *const *index, const int64_t *classes) {
  for (int64_t k = 0; k < j->planes; k++) {
    int64_t rest = k;
    for (int d = 2; d >= 0; d--) {
      const int64_t class = rest % classes[d];
      rest /= classes[d];
      int64_t t = class;  // the first shift of a class; with columns each is one
      while (index[d][t] != class) t++;
      j->x0[3 * k + d] = (j->columns ? j->shift[d][t] : j->shift[d][t] % j->step[d]) - j->lead[d];
    }
  }
  for (int64_t i = 0; i < j->phases; i++) {
    const em_conv_phase *p = &j->phase[i];
    int64_t *to = p->off;
    for (int64_t a = 0; a < p->taps[0]; a++)
      for (int64_t b = 0; b < p->taps[1]; b++)
        for (int64_t c = 0; c < p->taps[2]; c++) {
          const int64_t s[3] = {p->shift[0][a], p->shift[1][b], p->shift[2][c]};
          int64_t q = 0, plane = 0;
          for (int d = 0; d < 3; d++) {
            plane = plane * classes[d] + index[d][s[d]];
            q = q * j->size[d] + (j->columns ? 0 : j->shift[d][s[d]] / j->step[d]);
          }
          *to++ = plane * j->plane + q;
        }
    for (int64_t c = 1; c < j->cblock; c++)
      for (int64_t t = 0; t < p->all_taps; t++) *to++ = p->off[t] + c * j->planes * j->plane;
  }
}

em_status em_priv_conv_plan(em_conv_job *j, int64_t target, int64_t lanes, int pair, int64_t item, bool columns) {
  int64_t classes[3], *index[3], entries = 1, places = 0;
  const int64_t n = j->shifts[0] + j->shifts[1] + j->shifts[2] + 1;
  j->lanes = 64 / item;  // for the choice; what the loops have comes below
  j->pair = pair;
  j->item = item;
  target = em_conv_most(PIECE_LEAST, em_conv_least(target, SUMS_BYTES / (int64_t)j->fn->item / em_conv_most(1, j->rows * j->phases)));
  j->columns = columns || want_columns(j, target);
  if (j->columns) {
    const double column = (double)j->shifts[0] * (double)j->shifts[1] * (double)j->shifts[2] * (double)item;
    if (column * (double)target > COLUMNS_BYTES) target = em_conv_most(1, (int64_t)(COLUMNS_BYTES / column));
    (void)set_blocks(j, true, target);
  }
  j->lanes = lanes;
  j->vectors = cover(j->block, j->size, lanes, NULL);
  index[0] = em_alloc((size_t)n * sizeof(int64_t));
  if (index[0] == NULL) return EM_NOMEM((size_t)n * sizeof(int64_t));
  index[1] = index[0] + j->shifts[0];
  index[2] = index[1] + j->shifts[1];
  j->planes = j->pieces = 1;
  j->plane = j->block[0];
  for (int d = 0; d < 3; d++) {
    classes[d] = classes_of(j, d, index[d]);
    j->planes *= classes[d];
    j->plane *= j->size[d];
  }
  if (j->columns) j->plane += 64 / j->item;  // zeros: see em_priv_conv_load
  for (int d = 0; d < 4; d++) {
    j->count[d] = ceil_div(d == 0 ? j->n : j->out[d - 1], j->block[d]);
    j->pieces *= j->count[d];
  }
  set_channels(j);
  for (int64_t i = 0; i < j->phases; i++) places += j->phase[i].all_taps;
  entries += j->cblock * places + 3 * j->planes;
  j->table_bytes = (size_t)entries * sizeof(int64_t);
  int64_t *at = j->x0 = j->tables = em_alloc(j->table_bytes);
  if (at != NULL) {
    at += 3 * j->planes;
    for (int64_t i = 0; i < j->phases; at += j->cblock * j->phase[i++].all_taps) j->phase[i].off = at;
    fill_tables(j, index, classes);
  }
  em_free(index[0], (size_t)n * sizeof(int64_t));
  return at == NULL ? EM_NOMEM(j->table_bytes) : EM_OK;
}
void em_priv_conv_plan_release(em_conv_job *j) {
  em_free(j->tables, j->table_bytes);
  j->tables = NULL;
}

em_conv_piece em_priv_conv_piece(const em_conv_job *j, int64_t i) {
  em_conv_piece p;
  for (int d = 3; d >= 0; d--) {
    const int64_t all = d == 0 ? j->n : j->out[d - 1];
    p.first[d] = i % j->count[d] * j->block[d];
    p.size[d] = em_conv_least(j->block[d], all - p.first[d]);
    i /= j->count[d];
  }
  return p;
}

void em_priv_conv_load(const em_conv_job *j, const em_conv_piece *p, int64_t g, int64_t c, int64_t count, char *to) {
  const int64_t item = (int64_t)em_dtype_size(j->dtype);
  em_conv_load l = {.dtype = j->dtype, .n = p->size[0], .n_stride = j->src.n};
  const int64_t used = p->size[0] * j->size[0] * j->size[1] * j->size[2];
  for (int d = 0; d < 3; d++) {
    l.size[d] = j->size[d];
    l.step[d] = j->step[d];
    l.hi[d] = j->len[d];
    l.stride[d] = j->src.x[d];
  }
  for (int64_t i = c * j->pair; i < (c + count) * j->pair; i += j->pair) {
    const char *channel = j->src.data + (p->first[0] * j->src.n + (g * j->channels + i) * j->src.c) * item;
    const char *second = i + 1 < j->channels ? channel + j->src.c * item : NULL;
    for (int64_t k = 0; k < j->planes; k++, to += j->plane * j->item) {
      int64_t x0[3];
      for (int d = 0; d < 3; d++) {
        x0[d] = j->x0[3 * k + d] + p->first[d + 1] * j->step[d];
        if (j->columns) l.hi[d] = em_conv_least(j->len[d], x0[d] + (p->size[d + 1] - 1) * j->step[d] + 1);  // what is asked for
      }
      if (j->pair == 2) j->fn->load_pair(&l, channel, second, x0, to);
      else j->fn->load(&l, channel, x0, to);
      if (j->columns) memset(to + used * j->item, 0, 64);  // the last vector sees no other plane's numbers, which may be infinite
    }
  }
}
