// attention.c: attention without its score matrix. A block of queries meets one block of keys after the other; each row keeps the largest
// score so far, the sum of weights and the weighted values relative to it. Memory is one block of scores a thread.
#include "attention.h"
#include <math.h>
#include <string.h>
#include "../../core/alloc.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"

EM_ISA_DECLARE(const em_attention_loops, em_priv_attention_loops, [1]);

#define QUERIES 32   // rows of a block of scores
#define KEYS 256     // its columns
#define GROUP 512    // queries that share a packed block of keys, at most
#define FEW 4        // queries for which packing does not pay
#define TASKS 8      // wanted, so that threads have something to share

em_attention_operand em_priv_attention_operand(const em_tensor *t) {
  return (em_attention_operand){em_tensor_data(t), t->dtype, t->strides[0], t->strides[1], t->strides[2], t->strides[3]};
}
static em_attention_operand mask_operand(const em_tensor *t) {
  if (t == NULL) return (em_attention_operand){NULL, 0, 0, 0, 0, 0};
  int64_t stride[4] = {0, 0, 0, 0};
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] != 1) stride[4 - t->ndim + d] = t->strides[d];
  return (em_attention_operand){em_tensor_data(t), t->dtype, stride[0], stride[1], stride[2], stride[3]};
}
void em_priv_attention_set_up(em_attention *a, em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *mask, bool causal,
                              em_opt_double scale) {
  a->wide = query->dtype == EM_F64;
  a->dtype = a->wide ? EM_F64 : EM_F32;
  a->item = em_dtype_size(a->dtype);
  a->causal = causal;
  a->batch = query->sizes[0];
  a->heads = query->sizes[1];
  a->key_heads = key->sizes[1];
  a->queries = query->sizes[2];
  a->keys = key->sizes[2];
  a->columns = query->sizes[3];
  a->scale = scale.has ? scale.v : 1 / sqrt((double)a->columns);
  a->q = em_priv_attention_operand(query);
  a->k = em_priv_attention_operand(key);
  a->v = em_priv_attention_operand(value);
  a->mask = mask_operand(mask);
  a->loops = EM_ISA_PICK(em_priv_attention_loops);
  a->gemm = em_priv_gemm_table();
}
char *em_priv_attention_rows(const em_attention *a, const em_attention_operand *x, int64_t batch, int64_t head, int64_t first, int64_t rows,
                             char *buffer, int64_t *ld) {
  const int64_t item = (int64_t)em_dtype_size(x->dtype);
  char *from = x->data + (batch * x->batch + head * x->head + first * x->row) * item;
  if (x->dtype == a->dtype && (x->col == 1 || a->columns == 1)) {
    *ld = x->row;
    return from;
  }
  *ld = a->columns;
  for (int64_t i = 0; i < rows; i++)
    em_cast_load(buffer + (size_t)(i * a->columns) * a->item, a->dtype, from + i * x->row * item, x->dtype, x->col * item, a->columns);
  return buffer;
}
const void *em_priv_attention_mask(const em_attention *a, int64_t batch, int64_t head, int64_t row, int64_t first, int64_t n, void *line) {
  const em_attention_operand *m = &a->mask;
  if (m->data == NULL) return NULL;
  const int64_t item = (int64_t)em_dtype_size(m->dtype);
  const char *from = m->data + (batch * m->batch + head * m->head + row * m->row + first * m->col) * item;
  if (m->dtype == a->dtype && m->col == 1) return from;
  if (m->dtype == EM_BOOL) a->loops->bool_mask[a->wide](n, (const uint8_t *)from, m->col, line);
  else em_cast_load(line, a->dtype, from, m->dtype, m->col * item, n);
  return line;
}

typedef struct forward {
  em_attention a;
  em_attention_operand out, lse;
  int64_t groups, rows;  // of queries: groups a head, queries in each
} forward;
// What a thread works in.
typedef struct room { char *keys, *values, *scores, *line, *k, *v, *q, *o, *m, *l; size_t size; char *base; size_t capacity; } room;
static char *take(room *r, int64_t n, size_t item) {
  char *p = r->base == NULL ? NULL : r->base + r->size;
  r->size += ((size_t)n * item + 63) / 64 * 64;
  return p;
}
static void lay_out(room *r, const forward *f) {
  const int64_t d = f->a.columns;
  const size_t item = f->a.item;
  r->size = 0;
  r->keys = take(r, em_gemm_packed_size(KEYS, d), item);
  r->values = take(r, em_gemm_packed_size(d, KEYS), item);
  r->scores = take(r, QUERIES * KEYS, item);
  r->line = take(r, KEYS, item);
  r->k = take(r, KEYS * d, item);
  r->v = take(r, KEYS * d, item);
  r->q = take(r, f->rows * d, item);
  r->o = take(r, f->rows * d, item);
  r->m = take(r, f->rows, item);
  r->l = take(r, f->rows, item);
}

// Where a group of queries stands.
typedef struct place { int64_t batch, head, first, rows; char *q, *o; int64_t q_ld, o_ld; } place;

static void meet_block(const forward *f, const room *r, const place *p, int64_t first, int64_t n) {
  const em_attention *a = &f->a;
  const int64_t d = a->columns, kv = p->head / (a->heads / a->key_heads);
  const bool few = p->rows <= FEW;
  int64_t k_ld, v_ld;
  char *k = em_priv_attention_rows(a, &a->k, p->batch, kv, first, n, r->k, &k_ld);
  char *v = em_priv_attention_rows(a, &a->v, p->batch, kv, first, n, r->v, &v_ld);
  if (!few) {
    a->gemm->pack(a->dtype, n, d, k, 1, k_ld, r->keys);
    a->gemm->pack(a->dtype, d, n, v, v_ld, 1, r->values);
  }
  for (int64_t i = 0; i < p->rows; i += QUERIES) {
    const int64_t rows = p->rows - i < QUERIES ? p->rows - i : QUERIES;
    if (em_attention_visible(a, p->first + i + rows - 1, first, n) == 0) continue;
    char *q = p->q + (size_t)(i * p->q_ld) * a->item;
    if (!few) a->gemm->packed(a->dtype, rows, n, d, q, p->q_ld, 1, r->keys, r->scores, KEYS, false);
    for (int64_t s = 0; s < rows; s++) {
      const int64_t row = p->first + i + s, seen = em_attention_visible(a, row, first, n);
      char *scores = r->scores + (size_t)(s * KEYS) * a->item, *o = p->o + (size_t)((i + s) * p->o_ld) * a->item;
      if (few) a->loops->scores[a->wide](seen, d, q + (size_t)(s * p->q_ld) * a->item, k, k_ld, scores);
      if (seen > 0)
        a->loops->weigh[a->wide](seen, scores, a->scale, em_priv_attention_mask(a, p->batch, p->head, row, first, seen, r->line),
                                 r->m + (size_t)(i + s) * a->item, r->l + (size_t)(i + s) * a->item, d, o);
      if (few) a->loops->values[a->wide](seen, d, scores, v, v_ld, o);
      else if (seen < n) memset(scores + (size_t)seen * a->item, 0, (size_t)(n - seen) * a->item);
    }
    if (!few) a->gemm->packed(a->dtype, rows, d, n, r->scores, KEYS, 1, r->values, p->o + (size_t)(i * p->o_ld) * a->item, p->o_ld, true);
  }
}
static void run_group(const forward *f, const room *r, place *p) {
  const em_attention *a = &f->a;
  const int64_t d = a->columns, item = (int64_t)em_dtype_size(f->out.dtype);
  char *out = f->out.data + (p->batch * f->out.batch + p->head * f->out.head + p->first * f->out.row) * item;
  const bool direct = f->out.dtype == a->dtype && f->out.col == 1;
  p->q = em_priv_attention_rows(a, &a->q, p->batch, p->head, p->first, p->rows, r->q, &p->q_ld);
  p->o = direct ? out : r->o;
  p->o_ld = direct ? f->out.row : d;
  for (int64_t i = 0; i < p->rows; i++) {
    memset(p->o + (size_t)(i * p->o_ld) * a->item, 0, (size_t)d * a->item);
    if (a->wide) ((double *)r->m)[i] = -INFINITY, ((double *)r->l)[i] = 0;
    else ((float *)r->m)[i] = -INFINITY, ((float *)r->l)[i] = 0;
  }
  for (int64_t j = 0; j < a->keys; j += KEYS) {
    if (a->causal && j > p->first + p->rows - 1) break;
    meet_block(f, r, p, j, a->keys - j < KEYS ? a->keys - j : KEYS);
  }
  for (int64_t i = 0; i < p->rows; i++) {
    char *o = p->o + (size_t)(i * p->o_ld) * a->item;
    char *lse = f->lse.data + (size_t)(p->batch * f->lse.batch + p->head * f->lse.head + (p->first + i) * f->lse.row) * a->item;
    a->loops->finish[a->wide](d, o, r->m + (size_t)i * a->item, r->l + (size_t)i * a->item, lse);
    if (!direct) em_cast_store(out + i * f->out.row * item, f->out.dtype, f->out.col * item, o, a->dtype, d);
  }
}
static em_status forward_groups(void *context, int64_t begin, int64_t end) {
  const forward *f = context;
  room r = {.base = NULL};
  lay_out(&r, f);
  const size_t size = r.size;
  r.base = em_bytes_alloc(size, &r.capacity);
  if (r.base == NULL) return EM_NOMEM(size);
  lay_out(&r, f);
  for (int64_t t = begin; t < end; t++) {
    const int64_t pair = t / f->groups, first = t % f->groups * f->rows, left = f->a.queries - first;
    if (left <= 0) continue;
    place p = {.batch = pair / f->a.heads, .head = pair % f->a.heads, .first = first, .rows = left < f->rows ? left : f->rows};
    run_group(f, &r, &p);
  }
  em_bytes_free(r.base, r.capacity);
  return EM_OK;
}

em_status k_cpu_flash_attention(em_plan *p, em_tensor *query, em_tensor *key, em_tensor *value, double dropout_p, bool is_causal,
                                em_tensor *attn_mask, em_opt_double scale, em_tensor *output, em_tensor *logsumexp) {
  (void)p;
  (void)dropout_p;
  if (output->numel == 0) return EM_OK;
  forward f = {.out = em_priv_attention_operand(output)};
  em_priv_attention_set_up(&f.a, query, key, value, attn_mask, is_causal, scale);
  f.lse = (em_attention_operand){em_tensor_data(logsumexp), f.a.dtype, logsumexp->strides[0], logsumexp->strides[1],
                                 logsumexp->strides[2],     0};
  const int64_t pairs = f.a.batch * f.a.heads;
  int64_t wanted = (TASKS + pairs - 1) / pairs;
  const int64_t least = (f.a.queries + GROUP - 1) / GROUP, most = (f.a.queries + QUERIES - 1) / QUERIES;
  wanted = wanted < least ? least : wanted > most ? most : wanted;
  f.rows = ((f.a.queries + wanted - 1) / wanted + QUERIES - 1) / QUERIES * QUERIES;
  if (f.rows > f.a.queries) f.rows = f.a.queries;
  f.groups = (f.a.queries + f.rows - 1) / f.rows;
  const double work = (double)pairs * (double)f.a.queries * (double)f.a.keys * (double)f.a.columns;
  const int64_t grain = (int64_t)(262144.0 * (double)(pairs * f.groups) / (work + 1)) + 1;
  const bool few = f.rows <= FEW;
  EM_NOTE("flash attention: %lld heads, groups of %lld queries meet %d keys at a time, %s loop; keys and values are %s", (long long)pairs,
          (long long)f.rows, KEYS, em_priv_note_isa,
          few ? "read where they lie (packing refused: at most 4 queries)" : "packed once for a group (reading where they lie refused: "
                                      "more than 4 "
                                                                               "queries share them)");
  void *token = em_priv_begin_long(work > 1e6);
  const em_status st = em_threads_for(pairs * f.groups, grain, forward_groups, &f);
  em_priv_end_long(token);
  return st;
}
