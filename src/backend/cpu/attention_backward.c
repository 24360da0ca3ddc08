// attention_backward.c: the gradients of attention, its weights computed again block by block from the logsumexp that forward kept.
//
//   P = exp(scale Q K' + mask - lse)    dV = P' dO    dP = dO V'    dS = scale P (dP - rowsum(dO O))    dQ = dS K    dK = dS' Q
//
// A thread takes one head of the keys with all queries that use it, so that no two write the same gradient.
#include <string.h>
#include "../../core/alloc.h"
#include "../../core/note.h"
#include "../../core/threads.h"
#include "attention.h"
#include "gen_ops.h"

#define QUERIES 64  // rows of a block of scores
#define KEYS 128    // its columns
#define FEW 4       // queries for which packing does not pay

typedef struct backward {
  em_attention a;
  em_attention_operand dout, out, lse, dq, dk, dv;
} backward;
// What a thread works in. The last eight hold a head's rows where operands or gradients are not of the scores' type.
typedef struct room {
  char *queries, *grads;             // Q and dO, packed a block of queries after the other
  char *keys, *values, *key_rows;    // a block of K', V' and K, packed
  char *scores, *ds, *line, *delta, *lse;
  char *k, *v, *q, *dout, *out, *dq, *dk, *dv;
  char *base;
  size_t size, capacity;
} room;
static char *take(room *r, int64_t n, size_t item) {
  char *p = r->base == NULL ? NULL : r->base + r->size;
  r->size += ((size_t)n * item + 63) / 64 * 64;
  return p;
}
static bool in_place(const em_attention *a, const em_attention_operand *x) { return x->dtype == a->dtype && x->col == 1; }
static void lay_out(room *r, const backward *b) {
  const em_attention *a = &b->a;
  const int64_t d = a->columns, L = a->queries, blocks = (L + QUERIES - 1) / QUERIES;
  const size_t item = a->item;
  r->size = 0;
  r->queries = take(r, blocks * em_gemm_packed_size(d, QUERIES), item);
  r->grads = take(r, blocks * em_gemm_packed_size(d, QUERIES), item);
  r->keys = take(r, em_gemm_packed_size(KEYS, d), item);
  r->values = take(r, em_gemm_packed_size(KEYS, d), item);
  r->key_rows = take(r, em_gemm_packed_size(d, KEYS), item);
  r->scores = take(r, QUERIES * KEYS, item);
  r->ds = take(r, QUERIES * KEYS, item);
  r->line = take(r, KEYS, item);
  r->delta = take(r, L, item);
  r->lse = take(r, L, item);
  r->k = take(r, in_place(a, &a->k) ? 0 : KEYS * d, item);
  r->v = take(r, in_place(a, &a->v) ? 0 : KEYS * d, item);
  r->q = take(r, in_place(a, &a->q) ? 0 : L * d, item);
  r->dout = take(r, in_place(a, &b->dout) ? 0 : L * d, item);
  r->out = take(r, in_place(a, &b->out) ? 0 : d, item);
  r->dq = take(r, in_place(a, &b->dq) ? 0 : L * d, item);
  r->dk = take(r, in_place(a, &b->dk) ? 0 : a->keys * d, item);
  r->dv = take(r, in_place(a, &b->dv) ? 0 : a->keys * d, item);
}

// The rows of a gradient where they are summed, zeroed; and to where they belong.
static char *open_grad(const em_attention *a, const em_attention_operand *x, int64_t batch, int64_t head, int64_t rows, char *buffer,
                       int64_t *ld) {
  const bool direct = in_place(a, x);
  char *at = direct ? x->data + (size_t)(batch * x->batch + head * x->head) * a->item : buffer;
  *ld = direct ? x->row : a->columns;
  for (int64_t i = 0; i < rows; i++) memset(at + (size_t)(i * *ld) * a->item, 0, (size_t)a->columns * a->item);
  return at;
}
static void close_grad(const em_attention *a, const em_attention_operand *x, int64_t batch, int64_t head, int64_t rows, const char *from) {
  if (in_place(a, x)) return;
  const int64_t item = (int64_t)em_dtype_size(x->dtype);
  char *to = x->data + (batch * x->batch + head * x->head) * item;
  for (int64_t i = 0; i < rows; i++)
    em_cast_store(to + i * x->row * item, x->dtype, x->col * item, from + (size_t)(i * a->columns) * a->item, a->dtype, a->columns);
}

typedef struct head {
  int64_t batch, head;
  char *q, *dout, *dq, *dk, *dv;
  int64_t q_ld, dout_ld, dq_ld, dk_ld, dv_ld;
} head;

// Q and dO packed, and what each row needs of the forward pass.
static void open_head(const backward *b, const room *r, head *h) {
  const em_attention *a = &b->a;
  const int64_t d = a->columns, L = a->queries;
  h->q = em_priv_attention_rows(a, &a->q, h->batch, h->head, 0, L, r->q, &h->q_ld);
  h->dout = em_priv_attention_rows(a, &b->dout, h->batch, h->head, 0, L, r->dout, &h->dout_ld);
  const size_t panel = (size_t)em_gemm_packed_size(d, QUERIES) * a->item;
  for (int64_t i = 0; i < L && L > FEW; i += QUERIES) {
    const int64_t n = L - i < QUERIES ? L - i : QUERIES;
    const size_t at = (size_t)(i / QUERIES) * panel;
    a->gemm->pack(a->dtype, d, n, h->q + (size_t)(i * h->q_ld) * a->item, h->q_ld, 1, r->queries + at);
    a->gemm->pack(a->dtype, d, n, h->dout + (size_t)(i * h->dout_ld) * a->item, h->dout_ld, 1, r->grads + at);
  }
  for (int64_t i = 0; i < L; i++) {
    int64_t ld;
    const char *out = em_priv_attention_rows(a, &b->out, h->batch, h->head, i, 1, r->out, &ld);
    a->loops->dot[a->wide](d, h->dout + (size_t)(i * h->dout_ld) * a->item, out, r->delta + (size_t)i * a->item);
    memcpy(r->lse + (size_t)i * a->item,
           b->lse.data + (size_t)(h->batch * b->lse.batch + h->head * b->lse.head + i * b->lse.row) * a->item, a->item);
  }
  h->dq = open_grad(a, &b->dq, h->batch, h->head, L, r->dq, &h->dq_ld);
}
// The same for few queries: a dot product and an addition a key instead of packed products.
static void meet_few(const backward *b, const room *r, const head *h, int64_t first, int64_t n, const char *k, int64_t k_ld, const char *v,
                     int64_t v_ld) {
  const em_attention *a = &b->a;
  const em_attention_loops *loops = a->loops;
  const int64_t d = a->columns;
  const size_t item = a->item;
  for (int64_t i = 0; i < a->queries; i++) {
    const int64_t seen = em_attention_visible(a, i, first, n);
    const char *q = h->q + (size_t)(i * h->q_ld) * item, *dout = h->dout + (size_t)(i * h->dout_ld) * item;
    if (seen == 0) continue;
    loops->scores[a->wide](seen, d, q, k, k_ld, r->scores);
    loops->scores[a->wide](seen, d, dout, v, v_ld, r->ds);
    loops->unweigh[a->wide](seen, r->scores, r->ds, a->scale, em_priv_attention_mask(a, h->batch, h->head, i, first, seen, r->line),
                            r->lse + (size_t)i * item, r->delta + (size_t)i * item);
    loops->values[a->wide](seen, d, r->ds, k, k_ld, h->dq + (size_t)(i * h->dq_ld) * item);
    for (int64_t j = 0; j < seen; j++) {
      loops->values[a->wide](1, d, r->scores + (size_t)j * item, dout, d, h->dv + (size_t)((first + j) * h->dv_ld) * item);
      loops->values[a->wide](1, d, r->ds + (size_t)j * item, q, d, h->dk + (size_t)((first + j) * h->dk_ld) * item);
    }
  }
}
static void meet_block(const backward *b, const room *r, const head *h, int64_t first, int64_t n) {
  const em_attention *a = &b->a;
  const em_gemm_loops *g = a->gemm;
  const int64_t d = a->columns, L = a->queries, kv = h->head / (a->heads / a->key_heads);
  const size_t item = a->item, panel = (size_t)em_gemm_packed_size(d, QUERIES) * item;
  int64_t k_ld, v_ld;
  const char *k = em_priv_attention_rows(a, &a->k, h->batch, kv, first, n, r->k, &k_ld);
  const char *v = em_priv_attention_rows(a, &a->v, h->batch, kv, first, n, r->v, &v_ld);
  if (L <= FEW) {
    meet_few(b, r, h, first, n, k, k_ld, v, v_ld);
    return;
  }
  g->pack(a->dtype, n, d, k, 1, k_ld, r->keys);
  g->pack(a->dtype, n, d, v, 1, v_ld, r->values);
  g->pack(a->dtype, d, n, k, k_ld, 1, r->key_rows);
  for (int64_t i = 0; i < L; i += QUERIES) {
    const int64_t rows = L - i < QUERIES ? L - i : QUERIES;
    if (em_attention_visible(a, i + rows - 1, first, n) == 0) continue;
    g->packed(a->dtype, rows, n, d, h->q + (size_t)(i * h->q_ld) * item, h->q_ld, 1, r->keys, r->scores, KEYS, false);
    g->packed(a->dtype, rows, n, d, h->dout + (size_t)(i * h->dout_ld) * item, h->dout_ld, 1, r->values, r->ds, KEYS, false);
    for (int64_t s = 0; s < rows; s++) {
      const int64_t seen = em_attention_visible(a, i + s, first, n);
      char *scores = r->scores + (size_t)(s * KEYS) * item, *ds = r->ds + (size_t)(s * KEYS) * item;
      if (seen > 0)
        a->loops->unweigh[a->wide](seen, scores, ds, a->scale, em_priv_attention_mask(a, h->batch, h->head, i + s, first, seen, r->line),
                                   r->lse + (size_t)(i + s) * item, r->delta + (size_t)(i + s) * item);
      memset(scores + (size_t)seen * item, 0, (size_t)(n - seen) * item);
      memset(ds + (size_t)seen * item, 0, (size_t)(n - seen) * item);
    }
    const size_t at = (size_t)(i / QUERIES) * panel;
    g->packed(a->dtype, n, d, rows, r->scores, 1, KEYS, r->grads + at, h->dv + (size_t)(first * h->dv_ld) * item, h->dv_ld, true);
    g->packed(a->dtype, n, d, rows, r->ds, 1, KEYS, r->queries + at, h->dk + (size_t)(first * h->dk_ld) * item, h->dk_ld, true);
    g->packed(a->dtype, rows, d, n, r->ds, KEYS, 1, r->key_rows, h->dq + (size_t)(i * h->dq_ld) * item, h->dq_ld, true);
  }
}
static em_status backward_heads(void *context, int64_t begin, int64_t end) {
  const backward *b = context;
  const em_attention *a = &b->a;
  room r = {.base = NULL};
  lay_out(&r, b);
  const size_t size = r.size;
  r.base = em_bytes_alloc(size, &r.capacity);
  if (r.base == NULL) return EM_NOMEM(size);
  lay_out(&r, b);
  const int64_t share = a->heads / a->key_heads;
  for (int64_t t = begin; t < end; t++) {
    const int64_t kv = t % a->key_heads;
    head h = {.batch = t / a->key_heads};
    h.dk = open_grad(a, &b->dk, h.batch, kv, a->keys, r.dk, &h.dk_ld);
    h.dv = open_grad(a, &b->dv, h.batch, kv, a->keys, r.dv, &h.dv_ld);
    for (h.head = kv * share; h.head < (kv + 1) * share; h.head++) {
      open_head(b, &r, &h);
      for (int64_t j = 0; j < a->keys; j += KEYS) meet_block(b, &r, &h, j, a->keys - j < KEYS ? a->keys - j : KEYS);
      close_grad(a, &b->dq, h.batch, h.head, a->queries, h.dq);
    }
    close_grad(a, &b->dk, h.batch, kv, a->keys, h.dk);
    close_grad(a, &b->dv, h.batch, kv, a->keys, h.dv);
  }
  em_bytes_free(r.base, r.capacity);
  return EM_OK;
}

em_status k_cpu_flash_attention_backward(em_plan *p, em_tensor *grad_out, em_tensor *query, em_tensor *key,
                                         em_tensor *value, em_tensor *out, em_tensor *logsumexp, double dropout_p,
                                         bool is_causal, em_tensor *attn_mask, em_opt_double scale,
                                         em_tensor *grad_query, em_tensor *grad_key, em_tensor *grad_value) {
  (void)p;
  (void)dropout_p;
  if (query->numel == 0 || key->numel == 0) {
    em_tensor *const grads[] = {grad_query, grad_key, grad_value};
    for (int i = 0; i < 3; i++)
      if (grads[i]->numel > 0) EM_PASS(em_call_zero_(grads[i]));
    return EM_OK;
  }
  backward b = {.dout = em_priv_attention_operand(grad_out), .out = em_priv_attention_operand(out),
                .dq = em_priv_attention_operand(grad_query), .dk = em_priv_attention_operand(grad_key),
                .dv = em_priv_attention_operand(grad_value)};
  em_priv_attention_set_up(&b.a, query, key, value, attn_mask, is_causal, scale);
  b.lse = (em_attention_operand){em_tensor_data(logsumexp), b.a.dtype, logsumexp->strides[0], logsumexp->strides[1],
                                 logsumexp->strides[2],     0};
  const int64_t tasks = b.a.batch * b.a.key_heads;
  const double work = (double)b.a.batch * (double)b.a.heads * (double)b.a.queries * (double)b.a.keys * (double)b.a.columns;
  EM_NOTE("flash attention: %lld heads of keys, scores are made again in blocks of %d x %d, %s loop (keeping them refused: memory would "
          "grow "
          "with queries x keys)", (long long)tasks, QUERIES, KEYS, em_priv_note_isa);
  void *token = em_priv_begin_long(work > 1e6);
  const em_status st = em_threads_for(tasks, (int64_t)(131072.0 * (double)tasks / (work + 1)) + 1, backward_heads, &b);
  em_priv_end_long(token);
  return st;
}
