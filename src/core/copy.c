// copy.c: whole-tensor copy and fill. Broadcasting, layout and threads are the iterator's, dtypes the cast loops'.
#include "iterator.h"
#include "note.h"
#include "threads.h"
#include <stdio.h>
#include <string.h>

#define COPY_GRAIN 32768

typedef struct cast_walk { em_cast_fn cast; int64_t item; } cast_walk;

static em_status copy_run(void *context, char **data, const int64_t *strides, int64_t n) {
  const cast_walk *c = context;
  if (c->item != 0 && strides[0] == c->item && strides[1] == c->item) memmove(data[0], data[1], (size_t)(n * c->item));
  else c->cast(data[0], strides[0], data[1], strides[1], n);
  return EM_OK;
}

// A transposed copy walks one side across cache lines at every step. Square blocks keep both sides in L1: inside a
// block the runs are short, but each line is fetched once.
#define BLOCK 32
typedef struct block_walk {
  cast_walk cast;
  char *dst, *src;
  int64_t n0, n1, d0, d1, s0, s1;  // sizes and byte strides; dim 0 is dense in dst, dim 1 in src
} block_walk;

// Squares of four elements of 4 bytes, or of two of 8, are turned in registers, with what every processor has.
typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));
#if defined(__clang__)
#define PICK4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define PICK2(a, b, i, j) __builtin_shufflevector(a, b, i, j)
#else
#define PICK4(a, b, i, j, k, l) __builtin_shuffle(a, b, (four){i, j, k, l})
#define PICK2(a, b, i, j) __builtin_shuffle(a, b, (two){i, j})
#endif
static inline __attribute__((always_inline)) void turn_four(char *to, int64_t row, const char *from, int64_t line) {
  four a, b, c, d;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + line, sizeof b);
  memcpy(&c, from + 2 * line, sizeof c);
  memcpy(&d, from + 3 * line, sizeof d);
  const four ab = PICK4(a, b, 0, 4, 1, 5), cd = PICK4(c, d, 0, 4, 1, 5);
  const four ef = PICK4(a, b, 2, 6, 3, 7), gh = PICK4(c, d, 2, 6, 3, 7);
  a = PICK4(ab, cd, 0, 1, 4, 5);
  b = PICK4(ab, cd, 2, 3, 6, 7);
  c = PICK4(ef, gh, 0, 1, 4, 5);
  d = PICK4(ef, gh, 2, 3, 6, 7);
  memcpy(to, &a, sizeof a);
  memcpy(to + row, &b, sizeof b);
  memcpy(to + 2 * row, &c, sizeof c);
  memcpy(to + 3 * row, &d, sizeof d);
}
static inline __attribute__((always_inline)) void turn_two(char *to, int64_t row, const char *from, int64_t line) {
  two a, b;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + line, sizeof b);
  const two low = PICK2(a, b, 0, 2), high = PICK2(a, b, 1, 3);
  memcpy(to, &low, sizeof low);
  memcpy(to + row, &high, sizeof high);
}
// One line of `rows` elements becomes a column.
static void turn_line(char *dst, int64_t row, const char *src, int64_t rows, int64_t item) {
#define TURN(T) for (int64_t j = 0; j < rows; j++) *(T *)(dst + j * row) = ((const T *)src)[j]
  if (item == 4) TURN(uint32_t);
  else if (item == 8) TURN(uint64_t);
  else if (item == 16) TURN(em_c128);
  else if (item == 2) TURN(uint16_t);
  else TURN(uint8_t);
#undef TURN
}
void em_priv_turn(char *dst, int64_t columns, const char *src, int64_t stride, int64_t n, int64_t rows, int64_t item) {
  const int64_t row = columns * item, side = item == 4 ? 4 : item == 8 ? 2 : 1, whole = side == 1 ? 0 : n / side * side;
  const int64_t turned = rows / side * side;
  if (side == 4) {
    for (int64_t i = 0; i < whole; i += 4)
      for (int64_t j = 0; j < turned; j += 4) turn_four(dst + i * 4 + j * row, row, src + i * stride + j * 4, stride);
  } else if (side == 2) {
    for (int64_t i = 0; i < whole; i += 2)
      for (int64_t j = 0; j < turned; j += 2) turn_two(dst + i * 8 + j * row, row, src + i * stride + j * 8, stride);
  }
  for (int64_t i = 0; i < whole && turned < rows; i++)
    turn_line(dst + i * item + turned * row, row, src + i * stride + turned * item, rows - turned, item);
  for (int64_t i = whole; i < n; i++) turn_line(dst + i * item, row, src + i * stride, rows, item);
}
// Elements of one dtype pass through a tile that is turned in cache and written out row by row.
static em_status turn_blocks(void *context, int64_t begin, int64_t end) {
  const block_walk *b = context;
  const int64_t item = b->cast.item;
  union { char bytes[16384]; em_c128 align; } tile;
  const int64_t columns = (int64_t)sizeof tile / EM_TURN_ROWS / item;
  for (int64_t j = begin * EM_TURN_ROWS; j < end * EM_TURN_ROWS && j < b->n1; j += EM_TURN_ROWS) {
    const int64_t rows = b->n1 - j < EM_TURN_ROWS ? b->n1 - j : EM_TURN_ROWS;
    for (int64_t i = 0; i < b->n0; i += columns) {
      const int64_t n = b->n0 - i < columns ? b->n0 - i : columns;
      em_priv_turn(tile.bytes, columns, b->src + j * b->s1 + i * b->s0, b->s0, n, rows, item);
      for (int64_t r = 0; r < rows; r++)
        memcpy(b->dst + (j + r) * b->d1 + i * b->d0, tile.bytes + r * columns * item, (size_t)(n * item));
    }
  }
  return EM_OK;
}
static em_status copy_blocks(void *context, int64_t begin, int64_t end) {
  const block_walk *b = context;
  for (int64_t j = begin * BLOCK; j < end * BLOCK && j < b->n1; j += BLOCK) {
    int64_t rows = b->n1 - j < BLOCK ? b->n1 - j : BLOCK;
    for (int64_t i = 0; i < b->n0; i += BLOCK) {
      int64_t n = b->n0 - i < BLOCK ? b->n0 - i : BLOCK;
      for (int64_t r = j; r < j + rows; r++)
        b->cast.cast(b->dst + r * b->d1 + i * b->d0, b->d0, b->src + r * b->s1 + i * b->s0, b->s0, n);
    }
  }
  return EM_OK;
}

static bool is_transposed(const em_iter *it) {
  const int64_t *d = it->op[0].strides, *s = it->op[1].strides;
  return it->ndim == 2 && it->numel >= 4096 && d[0] == (int64_t)em_dtype_size(it->op[0].dtype) &&
         s[1] == (int64_t)em_dtype_size(it->op[1].dtype) && s[0] > s[1];
}

static __attribute__((cold)) void note_copy(const em_iter *it, const cast_walk *c, bool transposed) {
  const em_iter_operand *d = &it->op[0], *s = &it->op[1];
  const char *from = em_dtype_name(s->dtype), *to = em_dtype_name(d->dtype);
  char what[96];
  if (c->item != 0) snprintf(what, sizeof what, "%s", to);
  else snprintf(what, sizeof what, "%s cast to %s", from, to);
  if (transposed) {
    em_note_write("copy: %lld x %lld %s in squares, %s (row by row refused: source and destination lie across each other)",
                  (long long)it->sizes[1], (long long)it->sizes[0], what,
                  c->item != 0 ? "turned in cache" : "32 a side, since a cast cannot be turned");
    return;
  }
  const bool dense = c->item != 0 && d->strides[0] == c->item && s->strides[0] == c->item;
  const bool alike = it->ndim == 1 || s->strides[0] == (int64_t)em_dtype_size(s->dtype);
  const char *why = alike ? "neither lies across the other" : it->ndim > 2 ? "more than two dims" : it->numel < 4096 ? "fewer than 4096 "
      "elements"
                                                                                               : "rows are not dense";
  em_note_write("copy: %s, runs of %lld by %s (squares refused: %s)", what, (long long)it->sizes[0],
                dense ? "memmove" : c->item != 0 ? "the strided loop" : "the cast loop", why);
}

em_status em_copy_into(em_tensor *dst, em_tensor *src) {
  em_iter it;
  em_status st = EM_OK;
  if (dst == src) return EM_OK;
  em_iter_init(&it, dst->device.type == EM_DEVICE_META ? EM_ITER_META : 0);
  em_iter_add_output(&it, dst, EM_DTYPE_NONE);
  em_iter_add_input(&it, src);
  EM_PASS(em_iter_build(&it, EM_PROMO_NONE));
  em_tensor *none[1] = {NULL};
  if (dst->device.type == EM_DEVICE_META || it.numel == 0) return em_iter_finish(&it, none);
  cast_walk c = {em_priv_casts[dst->dtype][src->dtype],
                 dst->dtype == src->dtype ? (int64_t)em_dtype_size(dst->dtype) : 0};
  const bool transposed = is_transposed(&it);
  if (EM_UNLIKELY(em_priv_notes_wanted)) note_copy(&it, &c, transposed);
  if (transposed) {
    const em_iter_operand *d = &it.op[0], *s = &it.op[1];
    block_walk b = {
        c, d->data, s->data, it.sizes[0], it.sizes[1], d->strides[0], d->strides[1], s->strides[0], s->strides[1]};
    const bool turned = c.item != 0;
    const int64_t side = turned ? EM_TURN_ROWS : BLOCK, blocks = (b.n1 + side - 1) / side, grain = COPY_GRAIN / (b.n0 * side) + 1;
    void *token = em_priv_begin_long(it.numel >= EM_LONG_NUMEL);
    st = em_threads_for(blocks, grain, turned ? turn_blocks : copy_blocks, &b);
    em_priv_end_long(token);
  } else {
    st = em_iter_for_each(&it, copy_run, &c, COPY_GRAIN);
  }
  if (st != EM_OK) {
    em_iter_abandon(&it);
    return st;
  }
  return em_iter_finish(&it, none);
}

typedef struct fill_walk { char value[16]; em_cast_fn cast; int64_t item; bool zero; } fill_walk;

static em_status fill_run(void *context, char **data, const int64_t *strides, int64_t n) {
  const fill_walk *f = context;
  if (f->zero && strides[0] == f->item) memset(data[0], 0, (size_t)(n * f->item));
  else f->cast(data[0], strides[0], f->value, 0, n);
  return EM_OK;
}

em_status em_fill(em_tensor *dst, em_scalar value) {
  static const char zeros[16];
  fill_walk f = {.cast = em_priv_casts[dst->dtype][dst->dtype], .item = (int64_t)em_dtype_size(dst->dtype)};
  // Halves are filled through float, which has room for what they have not.
  const bool half = dst->dtype == EM_F16 || dst->dtype == EM_BF16;
  EM_PASS((half ? em_scalar_store_rounded : em_scalar_store)(value, dst->dtype, f.value));
  f.zero = memcmp(f.value, zeros, (size_t)f.item) == 0;
  em_iter it;
  em_iter_init(&it, EM_ITER_NO_ALLOC_CHECKS);
  em_iter_add_output(&it, dst, EM_DTYPE_NONE);
  EM_PASS(em_iter_build(&it, EM_PROMO_NONE));
  if (dst->device.type == EM_DEVICE_META) return EM_OK;
  if (it.numel > 0)
    EM_NOTE("fill: %lld %s elements by %s", (long long)it.numel, em_dtype_name(dst->dtype),
            !f.zero ? "the cast loop (memset refused: the value is not all zero bits)"
            : it.op[0].strides[0] == f.item ? "memset (the cast loop refused: all bits are zero)"
                                            : "the cast loop (memset refused: elements lie apart)");
  return em_iter_for_each(&it, fill_run, &f, COPY_GRAIN);
}

void em_tensor_put(em_tensor *t, int64_t at, const void *src, int from, int64_t n) {
  int64_t size = (int64_t)em_tensor_itemsize(t);
  if (n > 0) em_cast_store((char *)em_tensor_data(t) + at * size, t->dtype, size, src, from, n);
}
