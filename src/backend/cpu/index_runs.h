// index_runs.h: the inner loops of everything that reads or writes at positions. x is the indexed side, at the positions
// at[k] * step bytes; o the other one, element by element. xs and os are byte strides. A run whose position stays the same
// has at == NULL, and x there already.
#ifndef EMBER_BACKEND_CPU_INDEX_RUNS_H
#define EMBER_BACKEND_CPU_INDEX_RUNS_H
#include "../../dispatch/index_along.h"
#include "isa.h"

typedef void (*em_index_run_fn)(char *x, int64_t xs, char *o, int64_t os, const int64_t *at, int64_t step, int64_t n);
typedef struct em_index_runs {
  em_index_run_fn move[2][5];                 // get and put of 1, 2, 4, 8, 16 bytes
  em_index_run_fn compute[4][EM_NUM_DTYPES];  // EM_INDEX_ADD and the others
  bool (*inside)(const int64_t *at, int64_t n, int64_t last);                 // whether all are in [0, last]
  void (*widen)(int64_t *to, const char *from, int64_t stride, bool i32, int64_t n);
} em_index_runs;
extern em_index_runs em_priv_index_runs;  // of the chosen instruction set
// op: EM_INDEX_GET and the others. NULL when the dtype has no such operation (extremes of complex numbers).
em_index_run_fn em_priv_index_run_of(int op, int dtype);
#endif
