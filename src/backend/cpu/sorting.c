// sorting.c: sort, topk, kthvalue along a dim. An element becomes a pair of a key that orders as it does and its position;
// pairs are sorted by radix, digit by digit from the lowest, which keeps equal ones in order. A digit that all keys share is
// skipped; short rows are sorted by counting. Threads take rows; each lane has a piece of the plan's workspace.
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "sort_keys.h"

EM_ISA_DECLARE(const em_sort_keys, em_priv_sort_keys, );
em_sort_keys em_priv_sort_keys;
__attribute__((constructor)) static void pick(void) { em_priv_sort_keys = EM_ISA_PICK(em_priv_sort_keys); }

// A pair: 32 bits of key above 32 bits of position. Keys of 64 bits take two rounds, the upper halves first.
typedef uint64_t pair;
#define KEY(p) ((p) >> 32)
#define AT(p) ((int64_t)((p) & 0xffffffffu))

enum { SHORT_ROW = 20, PIECE = 512 };

static void count_digits(const pair *a, int64_t n, int digits, uint32_t (*count)[256]) {
  memset(count, 0, sizeof count[0] * (size_t)digits);
  if (digits == 4)
    for (int64_t i = 0; i < n; i++) {
      const uint64_t k = a[i];
      count[0][k >> 32 & 255]++;
      count[1][k >> 40 & 255]++;
      count[2][k >> 48 & 255]++;
      count[3][k >> 56]++;
    }
  else
    for (int64_t i = 0; i < n; i++)
      for (int d = 0; d < digits; d++) count[d][a[i] >> (32 + 8 * d) & 255]++;
}
// Sorts n pairs in a (b is room for as many); where the result lies is returned.
static pair *sort_pairs(pair *a, pair *b, int64_t n, int bits) {
  if (n <= SHORT_ROW) {
    em_priv_sort_keys.rank(b, a, n);
    return b;
  }
  const int digits = bits / 8;
  uint32_t count[4][256];
  count_digits(a, n, digits, count);
  for (int d = 0; d < digits; d++) {
    const int shift = 32 + 8 * d;
    uint32_t *c = count[d], at = 0;
    if (c[a[0] >> shift & 255] == n) continue;
    for (int k = 0; k < 256; k++) {
      const uint32_t m = c[k];
      c[k] = at;
      at += m;
    }
    for (int64_t i = 0; i < n; i++) b[c[a[i] >> shift & 255]++] = a[i];
    pair *t = a;
    a = b;
    b = t;
  }
  return a;
}
// Runs of pairs whose upper halves are equal, sorted by the lower ones. `keys` by position.
static void sort_lower_halves(pair *p, pair *room, int64_t n, const uint64_t *keys) {
  for (int64_t i = 0, end; i < n; i = end) {
    const uint64_t upper = KEY(p[i]);
    for (end = i + 1; end < n && KEY(p[end]) == upper;) end++;
    if (end - i == 1) continue;
    for (int64_t k = i; k < end; k++) p[k] = keys[AT(p[k])] << 32 | (uint64_t)AT(p[k]);
    const pair *sorted = sort_pairs(p + i, room + i, end - i, 32);
    if (sorted != p + i) memcpy(p + i, sorted, sizeof *p * (size_t)(end - i));
  }
}

// ---- rows of a tensor along a dim
typedef struct job {
  em_tensor *self, *values, *indices;
  int64_t dim, n, k, rows, lanes;  // n: length of a row
  int bits;
  bool wide, flip;                 // keys of 64 bits; the largest first
  bool plain;                      // rows lie one after another in all three
  char *work;
} job;
static int64_t lanes_of(int64_t rows) {
  const int64_t t = em_threads_get();
  return rows < t ? (rows > 0 ? rows : 1) : t;
}
static size_t room_of(int dtype, int64_t n) { return (size_t)n * (em_dtype_size(dtype) == 8 ? 3 : 2) * sizeof(pair); }
size_t em_priv_sort_workspace(int dtype, int64_t rows, int64_t n) { return (size_t)lanes_of(rows) * room_of(dtype, n); }

static void start(job *j, em_tensor *self, int64_t dim, em_tensor *values, em_tensor *indices, void *work) {
  const int64_t n = self->ndim == 0 ? 1 : self->sizes[dim];
  *j = (job){.self = self, .values = values, .indices = indices, .dim = dim, .n = n, .rows = n == 0 ? 0 : self->numel / n,
             .bits = em_sort_key_bits(self->dtype), .wide = em_dtype_size(self->dtype) == 8, .work = work};
  j->lanes = lanes_of(j->rows);
  j->plain = dim == self->ndim - 1 && em_tensor_is_contiguous(self) && em_tensor_is_contiguous(values) &&
             em_tensor_is_contiguous(indices) && values->ndim == self->ndim;
}
// First element of row r in each tensor; strides along the row: src's and values' in bytes.
typedef struct row { const char *src; char *values; int64_t *indices, ss, vs, is; } row;
static row row_at(const job *j, int64_t r) {
  const em_tensor *s = j->self, *v = j->values, *x = j->indices;
  const int64_t size = (int64_t)em_tensor_itemsize(s);
  int64_t a = 0, b = 0, c = 0;
  if (j->plain) {
    const int64_t m = v->sizes[j->dim];
    return (row){(const char *)em_tensor_data(s) + r * j->n * size, (char *)em_tensor_data(v) + r * m * size,
                 (int64_t *)em_tensor_data(x) + r * m, size, size, 1};
  }
  int k = v->ndim - 1;
  for (int d = s->ndim - 1; d >= 0; d--) {
    if (d == j->dim) {
      if (v->ndim == s->ndim) k--;
      continue;
    }
    const int64_t i = r % s->sizes[d];
    r /= s->sizes[d];
    a += i * s->strides[d];
    b += i * v->strides[k];
    c += i * x->strides[k];
    k--;
  }
  const bool along = v->ndim > 0 && v->ndim == s->ndim;
  return (row){(const char *)em_tensor_data(s) + a * size, (char *)em_tensor_data(v) + b * size,
               (int64_t *)em_tensor_data(x) + c, s->ndim > 0 ? s->strides[j->dim] * size : size,
               along ? v->strides[j->dim] * size : size, along ? x->strides[j->dim] : 1};
}
static uint32_t flip32(const job *j, bool flip) { return !flip ? 0 : j->bits == 32 ? UINT32_MAX : (1u << j->bits) - 1; }
static void load_pairs(const job *j, const row *r, pair *to) {
  uint32_t keys[PIECE];
  const em_keys32_fn fn = em_priv_sort_keys.narrow[j->self->dtype];
  for (int64_t b = 0; b < j->n; b += PIECE) {
    const int64_t m = j->n - b < PIECE ? j->n - b : PIECE;
    fn(keys, r->src + b * r->ss, r->ss, m, flip32(j, j->flip));
    for (int64_t i = 0; i < m; i++) to[b + i] = (uint64_t)keys[i] << 32 | (uint64_t)(b + i);
  }
}
// Keys of 64 bits to `keys`, and pairs of their upper halves, or of the lower ones when the upper ones are all the same (then
// true is returned: one round is enough).
static bool load_wide(const job *j, const row *r, uint64_t *keys, pair *to) {
  em_priv_sort_keys.wide[j->self->dtype](keys, r->src, r->ss, j->n, j->flip ? UINT64_MAX : 0);
  uint64_t differs = 0;
  for (int64_t i = 0; i < j->n; i++) differs |= keys[i] ^ keys[0];
  const bool lower = differs >> 32 == 0;
  if (lower)
    for (int64_t i = 0; i < j->n; i++) to[i] = keys[i] << 32 | (uint64_t)i;
  else
    for (int64_t i = 0; i < j->n; i++) to[i] = (keys[i] & 0xffffffff00000000u) | (uint64_t)i;
  return lower;
}
// The elements at n positions, and the positions. Elements are read again.
#define STORE(T)                                                                  \
  for (int64_t i = 0; i < n; i++) {                                               \
    *(T *)(r->values + i * r->vs) = *(const T *)(r->src + AT(p[i]) * r->ss);      \
    r->indices[i * r->is] = AT(p[i]);                                             \
  }
static void store(const row *r, size_t size, const pair *p, int64_t n) {
  switch (size) {
    case 1: STORE(uint8_t) break;
    case 2: STORE(uint16_t) break;
    case 4: STORE(uint32_t) break;
    default: STORE(uint64_t) break;
  }
}
// The same where a pair still has its key: the element is worked out from it, which spares a walk all over the source. Not so for
// zeros and nans, which share keys.
#define DECODE(T, K, VALUE, SHARED)                                               \
  for (int64_t i = 0; i < n; i++) {                                               \
    const K k = (K)((KEY(p[i]) | above) ^ flip);                                  \
    *(T *)(r->values + i * r->vs) = (SHARED) ? *(const T *)(r->src + AT(p[i]) * r->ss) : (T)(VALUE); \
    r->indices[i * r->is] = AT(p[i]);                                             \
  }
static void store_decoded(const job *j, const row *r, const pair *p, int64_t n, uint64_t above, uint64_t flip) {
  switch (j->self->dtype) {
    case EM_F32: DECODE(uint32_t, uint32_t, (k & 0x80000000u) ? k ^ 0x80000000u : ~k, k == 0x80000000u || k == UINT32_MAX) break;
    case EM_F16: case EM_BF16: DECODE(uint16_t, uint16_t, (k & 0x8000u) ? k ^ 0x8000u : k ^ 0xffffu, k == 0x8000u || k == UINT16_MAX) break;
    case EM_I32: DECODE(uint32_t, uint32_t, k ^ 0x80000000u, false) break;
    case EM_I16: DECODE(uint16_t, uint16_t, k ^ 0x8000u, false) break;
    case EM_I8: DECODE(uint8_t, uint8_t, k ^ 0x80u, false) break;
    case EM_I64: DECODE(uint64_t, uint64_t, k ^ 0x8000000000000000u, false) break;
    default: store(r, em_tensor_itemsize(j->self), p, n); break;
  }
}
// Sorts a row and stores the first k of it.
static void order_row(const job *j, const row *r, char *room, int64_t k) {
  pair *a = (pair *)room, *b = a + j->n;
  if (!j->wide) {
    load_pairs(j, r, a);
    store_decoded(j, r, sort_pairs(a, b, j->n, j->bits), k, 0, flip32(j, j->flip));
    return;
  }
  uint64_t *keys = (uint64_t *)(b + j->n);
  const bool once = load_wide(j, r, keys, a);
  pair *p = sort_pairs(a, b, j->n, 32);
  if (!once) sort_lower_halves(p, p == a ? b : a, j->n, keys);
  if (once && j->self->dtype == EM_I64)
    store_decoded(j, r, p, k, keys[0] & 0xffffffff00000000u, j->flip ? UINT64_MAX : 0);
  else store(r, sizeof(uint64_t), p, k);
}
typedef void (*each_row)(const job *j, const row *r, char *room);
typedef struct lanes { const job *j; each_row fn; } lanes;
static em_status run_lanes(void *context, int64_t begin, int64_t end) {
  const lanes *l = context;
  const job *j = l->j;
  for (int64_t lane = begin; lane < end; lane++)
    for (int64_t r = lane * j->rows / j->lanes; r < (lane + 1) * j->rows / j->lanes; r++) {
      const row here = row_at(j, r);
      l->fn(j, &here, j->work + (size_t)lane * room_of(j->self->dtype, j->n));
    }
  return EM_OK;
}
static em_status run_rows(const job *j, each_row fn) {
  lanes l = {j, fn};
  if (j->rows == 0) return EM_OK;
  if (EM_UNLIKELY(em_priv_notes_wanted) && j->self->numel <= EM_LONG_NUMEL) em_note_threads(1, j->self->numel, EM_LONG_NUMEL + 1);
  void *token = em_priv_begin_long(j->self->numel > EM_LONG_NUMEL / 8);
  em_status st = j->self->numel > EM_LONG_NUMEL ? em_threads_for(j->lanes, 1, run_lanes, &l) : run_lanes(&l, 0, j->lanes);
  em_priv_end_long(token);
  return st;
}

static __attribute__((cold)) void note_sort(const job *j, const char *why) {
  if (j->n <= SHORT_ROW)
    em_note_write("ranks: %lld row%s of %lld, each element counts the smaller ones, %s loop (radix refused: rows of up to %d elements; %s)",
                  (long long)j->rows, EM_NOTE_S(j->rows), (long long)j->n, em_priv_note_isa, SHORT_ROW, why);
  else
    em_note_write("radix: %lld row%s of %lld pairs of a key of %d bits and a position, %s (ranks refused: rows of more than %d "
                  "elements; %s)",
                  (long long)j->rows, EM_NOTE_S(j->rows), (long long)j->n, j->wide ? 64 : j->bits,
                  j->wide ? "the upper halves first" : "a byte of it at a time", SHORT_ROW, why);
}
static void whole_row(const job *j, const row *r, char *room) {
  order_row(j, r, room, j->n);
}
em_status k_cpu_sort_stable(em_plan *p, em_tensor *self, em_opt_bool stable, int64_t dim, bool descending, em_tensor *values,
                            em_tensor *indices) {
  (void)dim, (void)stable;
  job j;
  start(&j, self, p->attr[0], values, indices, p->work);
  j.flip = descending;
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_sort(&j, "a heap refused: all elements are wanted");
  return run_rows(&j, whole_row);
}
em_status k_cpu_sort(em_plan *p, em_tensor *self, int64_t dim, bool descending, em_tensor *values, em_tensor *indices) {
  return k_cpu_sort_stable(p, self, false, dim, descending, values, indices);
}

// ---- topk. Few of many: a heap of the best so far, its worst on top; whole pieces that have nothing better are passed over.
typedef struct item { uint64_t key, at; } item;
static inline bool worse(item a, item b) { return a.key < b.key || (a.key == b.key && a.at > b.at); }
static void sink(item *heap, int64_t n, int64_t i, item v) {
  for (;;) {
    int64_t c = 2 * i + 1;
    if (c >= n) break;
    if (c + 1 < n && worse(heap[c + 1], heap[c])) c++;
    if (!worse(heap[c], v)) break;
    heap[i] = heap[c];
    i = c;
  }
  heap[i] = v;
}
static void offer(item *heap, int64_t *n, int64_t k, item v) {
  if (*n == k) {
    sink(heap, k, 0, v);
    return;
  }
  heap[(*n)++] = v;
  if (*n == k)
    for (int64_t i = k / 2 - 1; i >= 0; i--) sink(heap, k, i, heap[i]);
}
static void best_of(const job *j, const row *r, item *heap) {  // keys larger is better here
  int64_t n = 0;
  const em_keys32_fn narrow = em_priv_sort_keys.narrow[j->self->dtype];
  const em_keys64_fn wide = em_priv_sort_keys.wide[j->self->dtype];
  uint32_t k32[PIECE];
  uint64_t k64[PIECE];
  for (int64_t b = 0; b < j->n; b += PIECE) {
    const int64_t m = j->n - b < PIECE ? j->n - b : PIECE;
    if (narrow != NULL) {
      narrow(k32, r->src + b * r->ss, r->ss, m, flip32(j, !j->flip));
      if (n == j->k && !em_priv_sort_keys.any_above32(k32, m, (uint32_t)heap[0].key)) continue;
      for (int64_t i = 0; i < m; i++)
        if (n < j->k || k32[i] > heap[0].key) offer(heap, &n, j->k, (item){k32[i], (uint64_t)(b + i)});
    } else {
      wide(k64, r->src + b * r->ss, r->ss, m, j->flip ? 0 : UINT64_MAX);
      if (n == j->k && !em_priv_sort_keys.any_above64(k64, m, heap[0].key)) continue;
      for (int64_t i = 0; i < m; i++)
        if (n < j->k || k64[i] > heap[0].key) offer(heap, &n, j->k, (item){k64[i], (uint64_t)(b + i)});
    }
  }
  for (int64_t m = j->k - 1; m > 0; m--) {  // the worst to the end, so that the best stands first
    item v = heap[m];
    heap[m] = heap[0];
    sink(heap, m, 0, v);
  }
}
static bool few(int64_t k, int64_t n) { return k <= n / 32; }
static void best_row(const job *j, const row *r, char *room) {
  if (!few(j->k, j->n)) {
    order_row(j, r, room, j->k);
    return;
  }
  item *heap = (item *)room;
  best_of(j, r, heap);
  pair *at = (pair *)room;  // an item becomes a pair where it stands
  for (int64_t i = 0; i < j->k; i++) at[i] = heap[i].at;
  store(r, em_tensor_itemsize(j->self), at, j->k);
}
em_status k_cpu_topk(em_plan *p, em_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, em_tensor *values,
                     em_tensor *indices) {
  (void)dim, (void)sorted;
  if (k == 0) return EM_OK;
  job j;
  start(&j, self, p->attr[0], values, indices, p->work);
  j.k = k;
  j.flip = largest;
  if (few(k, j.n))
    EM_NOTE("heap: the %lld best of %lld so far, %lld row%s; pieces of %d with nothing better are passed over, %s loop (radix refused: "
            "at most a "
            "32nd is wanted)", (long long)k, (long long)j.n, (long long)j.rows, EM_NOTE_S(j.rows), PIECE, em_priv_note_isa);
  else if (EM_UNLIKELY(em_priv_notes_wanted)) note_sort(&j, "a heap refused: more than a 32nd is wanted");
  return run_rows(&j, best_row);
}

// ---- kthvalue: digit by digit from the highest, only the pairs that share the wanted element's digits so far stay
static int64_t narrow_down(pair *a, int64_t n, int64_t *rank, int bits) {  // how many are left, in front
  for (int d = bits / 8 - 1; d >= 0 && n > 1; d--) {
    uint32_t count[256] = {0};
    const int shift = 32 + 8 * d;
    int64_t m = 0;
    uint32_t digit = 0;
    for (int64_t i = 0; i < n; i++) count[a[i] >> shift & 255]++;
    while (*rank >= count[digit]) *rank -= count[digit++];
    if (count[digit] == n) continue;
    for (int64_t i = 0; i < n; i++) {
      const pair v = a[i];
      a[m] = v;
      m += (v >> shift & 255) == digit;
    }
    n = m;
  }
  return n;
}
static void kth_row(const job *j, const row *r, char *room) {
  pair *a = (pair *)room;
  int64_t rank = j->k, n = j->n;
  if (!j->wide) {
    load_pairs(j, r, a);
    narrow_down(a, n, &rank, j->bits);
  } else {
    uint64_t *keys = (uint64_t *)(a + 2 * j->n);
    const bool once = load_wide(j, r, keys, a);
    n = narrow_down(a, n, &rank, 32);
    for (int64_t i = 0; !once && i < n; i++) a[i] = keys[AT(a[i])] << 32 | (uint64_t)AT(a[i]);
    if (!once) narrow_down(a, n, &rank, 32);
  }
  store(r, em_tensor_itemsize(j->self), a + rank, 1);
}
em_status k_cpu_kthvalue(em_plan *p, em_tensor *self, int64_t k, int64_t dim, bool keepdim, em_tensor *values,
                         em_tensor *indices) {
  (void)dim, (void)keepdim;
  job j;
  start(&j, self, p->attr[0], values, indices, p->work);
  j.k = k - 1;
  EM_NOTE("narrowing down: %lld row%s of %lld, by bytes of a key of %d bits from the highest on, what differs is dropped (sorting "
          "refused: one "
          "element is wanted)", (long long)j.rows, EM_NOTE_S(j.rows), (long long)j.n, j.wide ? 64 : j.bits);
  return run_rows(&j, kth_row);
}
