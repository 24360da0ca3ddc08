// conv_loops.h: what a convolution's inner loops are asked to do. A convolution is a product C = A B where row k of B, for one channel
// and one place in the kernel, is not copied: it is a run of the (padded) picture that starts at off[k]. See conv.c.
#ifndef EMBER_BACKEND_CPU_CONV_LOOPS_H
#define EMBER_BACKEND_CPU_CONV_LOOPS_H
#include "../../core/dtype.h"
#include "../../core/status.h"

#define EM_CONV_SLACK 128  // elements behind a buffer's end that loops may read or write

// Strides in elements. Of C's columns, and of B's runs, only the vectors at `at` are looked at: `lanes` elements each.
typedef struct em_conv_product {
  int64_t m, k, vectors;
  const int64_t *at;   // positions of the vectors, ascending, apart
  const void *a, *b;   // m x k; planes
  const int64_t *off;  // k of them
  void *c;             // m x positions
  int64_t lda, ldc;
  bool fresh;          // C is written, else added to
} em_conv_product;

// Some channel's piece of the picture as a plane of the stored type; position q of a dim is the source's x0 + step * q; what lies outside
// of [lo, hi) is zero.
typedef struct em_conv_load {
  int dtype;
  int64_t n, size[3];           // pictures; positions
  int64_t step[3], lo[3], hi[3];
  int64_t n_stride, stride[3];  // of the source, in elements
} em_conv_load;

typedef struct em_conv_store {
  int dtype;
  int64_t n, size[3];           // pictures; positions that are results
  int64_t from_n, from[2];      // distance of two positions of a dim in the planes; 1 in the last
  int64_t n_stride, stride[3];  // of the result
} em_conv_store;

typedef struct em_conv_loops {
  int compute, stored;          // em_dtype of sums and biases; of weights and of what planes hold
  int pair;                     // of product: channels in one element of a plane, and in one of a weight's row
  int lanes, sum_lanes;         // elements of product's and of gradient's vectors
  size_t item, plane_item;      // bytes of sums and packed weights; of a plane's elements in product
  void (*product)(const em_conv_product *g);
  // W (m x k, row length ldc) += D B^T over the vectors at `at`; D's rows are lda apart. `a` is D, `c` is W. NULL for integers.
  void (*gradient)(const em_conv_product *g);
  void (*load)(const em_conv_load *l, const char *channel, const int64_t *x0, void *to);
  // Two channels in one plane; the second may be NULL, for zeros. NULL where `pair` is 1.
  void (*load_pair)(const em_conv_load *l, const char *channel, const char *second, const int64_t *x0, void *to);
  void (*store)(const em_conv_store *s, char *channel, const void *from, const void *bias);
  // to[i] = from[at[i]] for n weights, or the pair of that and second[at[i]]
  void (*gather)(const void *from, const void *second, const int64_t *at, int64_t n, void *to);
} em_conv_loops;
#endif
