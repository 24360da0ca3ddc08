// conv_loops.h: what a convolution's inner loops are asked to do. A convolution is a product C = A B where row k of B, for one channel
// and one place in the kernel, is not copied: it is a run of the (padded) picture that starts at off[k]. See conv.c.
#ifndef EMBER_BACKEND_CPU_CONV_LOOPS_H
#define EMBER_BACKEND_CPU_CONV_LOOPS_H
#include "../../core/dtype.h"
#include "../../core/status.h"

#define EM_CONV_SLACK 64  // elements behind a buffer's end that loops may read or write

// Strides in elements. `a` (m x k) and `c` (m x p) are of the compute dtype.
typedef struct em_conv_product {
  int64_t m, p, k;
  const void *a, *b;
  const int64_t *off;  // k of them
  void *c;
  int64_t lda, ldc;
  bool fresh;          // C is written, else added to
} em_conv_product;

// A piece of one channel (or of one batch's channel) as planes of the compute dtype; position q of a dim is the source's
// x0 + step * q; what lies outside of [lo, hi) is zero.
typedef struct em_conv_load {
  int dtype;
  int64_t n, size[3];           // pictures; positions
  int64_t step[3], lo[3], hi[3];
  int64_t n_stride, stride[3];  // of the source, in elements
} em_conv_load;

typedef struct em_conv_store {
  int dtype;
  int64_t n, size[3];           // pictures; positions that are results
  int64_t from[3];              // distance of two positions of a dim in the planes (from[2] is 1)
  int64_t from_n;
  int64_t n_stride, stride[3];  // of the result
} em_conv_store;

typedef struct em_conv_loops {
  int compute, rows, columns;   // em_dtype; best numbers of rows and of elements
  size_t item;
  void (*product)(const em_conv_product *g);
  // W (m x k, row length ldc) += D B^T over p, which is a multiple of 16; D's rows are ldd apart. `a` is D, `c` is W.
  void (*gradient)(const em_conv_product *g);
  void (*load)(const em_conv_load *l, const char *channel, const int64_t *x0, void *to);
  void (*store)(const em_conv_store *s, char *channel, const void *from, const void *bias);
} em_conv_loops;
#endif
