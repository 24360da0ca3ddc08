// reduction.h: descriptor of a reduction row and what its generated entries call. A reduction carries a state (a few
// variables), steps it over elements, merges states and finishes. The loops work on blocks of up to EM_RED_LANES states
// side by side: neighbouring outputs when the reduced dimension is an outer one, lanes of one output when it is the
// inner one. Lanes, segments, chunks and the tree that merges them depend on sizes alone: every thread count and
// instruction set gives the same bits.
#ifndef EMBER_DISPATCH_REDUCTION_H
#define EMBER_DISPATCH_REDUCTION_H
#include "plan.h"
#include "pointwise.h"

#define EM_RED_LANES 64
#define EM_RED_VARS 3
#define EM_RED_VAR_BYTES (EM_RED_LANES * 16)  // variable k of a block begins at k * EM_RED_VAR_BYTES
typedef union em_red_block { char bytes[EM_RED_VARS * EM_RED_VAR_BYTES]; em_c128 align; } em_red_block;

#define EM_RED_TOGETHER 16                    // outputs of one segment whose folded lanes go side by side
#define EM_RED_FOLDED(bytes) ((bytes) <= 4 ? 16 : EM_RED_VAR_BYTES / EM_RED_TOGETHER / (int64_t)(bytes))

typedef struct em_red_kernel {
  uint8_t var_bytes[EM_RED_VARS];  // of one element of each variable
  void (*init)(char *s, int64_t w);
  // Steps w states over nrows rows, row_stride elements apart. Element (r, j) has index index + r * index_row + j *
  // index_lane.
  void (*rows)(char *s, const char *x, int64_t w, int64_t nrows, int64_t row_stride, int64_t index, int64_t index_row,
               int64_t index_lane);
  void (*merge)(char *a, const char *b, int64_t w);  // a: elements before those of b
  void (*finish)(const char *s, int64_t w, int64_t n, const double *attr, char *const *out);
  // n >= EM_RED_LANES elements on as many lanes, folded to EM_RED_FOLDED; only where the state is one small variable.
  void (*segment)(char *s, const char *x, int64_t n);
} em_red_kernel;

enum {
  EM_RED_SAME,
  EM_RED_INDEX,
  EM_RED_BOOL,
  EM_RED_REAL
}; // what an output holds: loop's dtype, int64, bool, its real part
enum {
  EM_RED_DTYPE_SAME,
  EM_RED_DTYPE_SUM /* integers to int64 */,
  EM_RED_DTYPE_FLOAT /* must be one */,
  EM_RED_DTYPE_BOOL /* uint8 stays */
};
enum {
  EM_RED_ALL_EMPTY_DIMS = 1 /* dim=[] means all */,
  EM_RED_NO_IDENTITY = 2 /* nothing to reduce is an error */,
  EM_RED_FLATTEN = 4
};

typedef struct em_red_desc {
  const char *name, *kernel_name;
  uint8_t nvars, nout, nattr, dtype_rule, flags;
  uint8_t out_kind[2];
  uint8_t slot[EM_NUM_DTYPES];    // EM_CD_* by the dtype that is reduced, EM_CD_NONE: not implemented
  em_red_kernel const *kernels;   // [EM_CD_COUNT] of the instruction set chosen at load
} em_red_desc;

// dims.n == -1: all. `dtype`: EM_DTYPE_NONE when not given. outs: NULLs, or given tensors with EM_ITER_OUT;
// EM_ITER_META plans only.
EM_PRIV em_status em_red_run(const em_red_desc *d, uint32_t flags, em_tensor *self, em_ints dims, bool keepdim,
                             int dtype, const double *attr, em_tensor **outs);

// The walk (src/backend/cpu/reduction.c): reduces `reduced` dims of self into contiguous outputs.
typedef struct em_red_walk {
  const em_red_desc *d;
  const em_red_kernel *k;
  int loop;                                  // dtype of the loop
  em_tensor *self;
  int convert;                               // dtype that elements become before the loop's, or EM_DTYPE_NONE
  uint64_t reduced;                          // bit i: dim i
  const double *attr;
  em_tensor *out[2];
} em_red_walk;
EM_PRIV em_status em_red_walk_cpu(em_red_walk *w);
#endif
