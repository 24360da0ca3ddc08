// pool_loops.h: the bodies of pooling, built once an instruction set. Operands are dense; a row is a line of outputs.
#ifndef EMBER_BACKEND_CPU_POOL_LOOPS_H
#define EMBER_BACKEND_CPU_POOL_LOOPS_H
#include "../../dispatch/window.h"
#include "isa.h"

typedef struct em_pool_divisor {
  bool count_include_pad;
  int64_t override;  // 0: none
} em_pool_divisor;

// Windows of an adaptive pool: outputs of dim k see inputs from[k][o] to to[k][o].
typedef struct em_shares { int64_t *from[EM_WINDOW_DIMS], *to[EM_WINDOW_DIMS]; } em_shares;

typedef struct em_pool_fns {
  // Rows [begin, end) of all planes.
  void (*max_rows)(void *out, int64_t *index, const void *in, const em_window *w, int64_t begin, int64_t end);
  void (*avg_rows)(void *out, const void *in, const em_window *w, em_pool_divisor d, int64_t begin, int64_t end);
  void (*adaptive_max_rows)(void *out, int64_t *index, const void *in, const em_window *w, const em_shares *s,
                            int64_t begin, int64_t end);
  void (*adaptive_avg_rows)(void *out, const void *in, const em_window *w, const em_shares *s, int64_t begin,
                            int64_t end);
  // Planes [begin, end) of the input's gradient, which they also clear.
  void (*avg_planes)(void *grad_in, const void *grad, const em_window *w, em_pool_divisor d, int64_t begin, int64_t end);
  void (*adaptive_avg_planes)(void *grad_in, const void *grad, const em_window *w, const em_shares *s, int64_t begin,
                              int64_t end);
  // to[index] += from (add) or = from, plane by plane. False: *bad is an index that is not in its plane.
  bool (*scatter)(void *to, const void *from, const int64_t *index, const em_window *w, bool add, int64_t begin,
                  int64_t end, int64_t *bad);
  // One plane; start[k][o]: where the window of output o begins along dim k.
  void (*fractional_plane)(void *out, int64_t *index, const void *in, const em_window *w, const int64_t *const *start);
} em_pool_fns;

enum { EM_POOL_F32, EM_POOL_F64, EM_POOL_I64, EM_POOL_DTYPES };
#endif
