// attention.h: the operands of attention as both directions see them: attention.c forward, attention_backward.c.
#ifndef EMBER_BACKEND_CPU_ATTENTION_H
#define EMBER_BACKEND_CPU_ATTENTION_H
#include "../../core/iterator.h"
#include "../../core/value.h"
#include "attention_loops.h"
#include "gemm.h"

// A (batch, heads, length, columns) operand.
typedef struct em_attention_operand { char *data; int dtype; int64_t batch, head, row, col; } em_attention_operand;
typedef struct em_attention {
  int dtype;                // of scores and sums: float, or double for double operands
  bool wide, causal;        // wide: double
  size_t item;              // bytes of one of them
  int64_t batch, heads, key_heads, queries, keys, columns;
  double scale;
  em_attention_operand q, k, v, mask;  // mask.data NULL: none
  const em_attention_loops *loops;
  const em_gemm_loops *gemm;
} em_attention;

void em_priv_attention_set_up(em_attention *a, em_tensor *query, em_tensor *key, em_tensor *value, em_tensor *mask, bool causal,
                              em_opt_double scale);
em_attention_operand em_priv_attention_operand(const em_tensor *t);
// Rows of an operand as scores' type with their columns side by side: where they lie if they are that, else copied to `buffer` (rows x
// columns). *ld: elements from row to row.
char *em_priv_attention_rows(const em_attention *a, const em_attention_operand *x, int64_t batch, int64_t head, int64_t first, int64_t rows,
                             char *buffer, int64_t *ld);
// The mask of query `row` for keys [first, first + n) as numbers to add, at `line` or where it lies; NULL: none.
const void *em_priv_attention_mask(const em_attention *a, int64_t batch, int64_t head, int64_t row, int64_t first, int64_t n, void *line);
// How many of the keys [first, first + n) query `row` may see.
static inline int64_t em_attention_visible(const em_attention *a, int64_t row, int64_t first, int64_t n) {
  if (!a->causal || row - first >= n - 1) return n;
  return row < first ? 0 : row - first + 1;
}
#endif
