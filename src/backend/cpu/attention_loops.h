// attention_loops.h: what attention does to one row of scores between two matrix products, built once an instruction set.
// [0]: float, [1]: double; arrays have that type.
#ifndef EMBER_BACKEND_CPU_ATTENTION_LOOPS_H
#define EMBER_BACKEND_CPU_ATTENTION_LOOPS_H
#include <stdint.h>
#include "isa.h"

typedef struct em_attention_loops {
  // Scores of one query with a block of n keys become weights relative to the largest score so far: s = exp(scale s + mask - m). m and l
  // (the sum of weights) are brought up to date; `values` (d of them, the sum of weighted values so far) is scaled to the new m.
  void (*weigh[2])(int64_t n, void *s, double scale, const void *mask, void *m, void *l, int64_t d, void *values);
  // The end of a row: values / l; the logarithm of the sum of exponentials. A query that may see nothing gets zeros.
  void (*finish[2])(int64_t d, void *values, const void *m, const void *l, void *lse);
  // Backward: s becomes the weights, ds (the weights' gradients) the scores' gradients. delta: sum of gradient times result of the row.
  void (*unweigh[2])(int64_t n, void *s, void *ds, double scale, const void *mask, const void *lse, const void *delta);
  // Few queries: a score for each of n rows of k (ld apart), and o += sum of p[j] times row j of v.
  void (*scores[2])(int64_t n, int64_t d, const void *q, const void *k, int64_t ld, void *s);
  void (*values[2])(int64_t n, int64_t d, const void *p, const void *v, int64_t ld, void *o);
  void (*dot[2])(int64_t n, const void *a, const void *b, void *sum);
  void (*bool_mask[2])(int64_t n, const uint8_t *allowed, int64_t stride, void *mask);  // 0 or -inf
} em_attention_loops;
#endif
