// conv_plan.h: a convolution cut into pieces: which positions, which channels at a time, where each row of the product begins.
#ifndef EMBER_BACKEND_CPU_CONV_PLAN_H
#define EMBER_BACKEND_CPU_CONV_PLAN_H
#include "../../core/tensor.h"
#include "conv_loops.h"

typedef struct em_conv_side { char *data; int64_t n, c, x[3]; } em_conv_side;  // a tensor; strides in elements

// Results that see the same places of the kernel. A convolution has one phase; the gradient of its input one for each rest of a position
// divided by the stride.
typedef struct em_conv_phase {
  int64_t taps[3], all_taps;
  const int64_t *shift[3];   // for each place of a dim: its entry in the job's shifts, ascending
  int64_t first[3], end[3];  // positions that are results
  const char *a;             // its weights: groups x rows x (packed channels * all_taps)
  char *dst;                 // where position 0 of the first channel goes
  int64_t *off;              // the plan: where the places begin in the planes, for each channel of a block
} em_conv_phase;

typedef struct em_conv_job {
  const em_conv_loops *fn;
  int dtype;
  int64_t n, groups, channels, rows;   // channels of the source and rows of the result in one group
  em_conv_side src, dst;
  int64_t len[3], lead[3], step[3];    // position q meets the source's step * q + shift - lead
  int64_t out[3];                      // positions, of all phases together
  int64_t shifts[3];
  const int64_t *shift[3];             // distinct, ascending
  int64_t phases;
  em_conv_phase *phase;
  const char *bias;                    // compute dtype, groups * rows; or NULL
  // the plan
  int pair;                            // channels in one plane
  int64_t item;                        // bytes of a plane's element
  bool columns;                        // a plane for each shift, without ends
  int64_t block[4], count[4], pieces;  // pictures, depth, height, width
  int64_t size[3], planes, plane;      // positions of a piece with its ends; planes of a channel; elements of one
  int64_t lanes, vectors;              // vectors of a piece
  int64_t cblock;                      // planes of channels at a time
  int64_t *tables, *x0;
  size_t table_bytes;
} em_conv_job;

typedef struct em_conv_piece { int64_t first[4], size[4]; } em_conv_piece;  // pictures, depth, height, width

// `target`: positions of a piece; `lanes`: of a vector; `pair`, `item`: of the planes; `columns`: must there be columns?
em_status em_priv_conv_plan(em_conv_job *j, int64_t target, int64_t lanes, int pair, int64_t item, bool columns);
void em_priv_conv_plan_release(em_conv_job *j);
em_conv_piece em_priv_conv_piece(const em_conv_job *j, int64_t i);
// The vectors that cover a piece's results, in order; `before` and `count` are those of the call before, which may still hold.
int64_t em_priv_conv_cover(const em_conv_job *j, const em_conv_piece *p, int64_t *before, int64_t count, int64_t *at);
// `count` planes' channels from the c-th on, of group g.
void em_priv_conv_load(const em_conv_job *j, const em_conv_piece *p, int64_t g, int64_t c, int64_t count, char *to);
em_conv_side em_priv_conv_side(const em_tensor *t);
const em_conv_loops *em_priv_conv_loops_of(int dtype);

// Planes of channels (pairs count as one) of a group, and elements of the buffer for a block of them.
static inline int64_t em_conv_packed(const em_conv_job *j) { return (j->channels + j->pair - 1) / j->pair; }
static inline int64_t em_conv_planes(const em_conv_job *j) {
  return (j->cblock * j->planes * j->plane + EM_CONV_SLACK + 15) / 16 * 16;
}
static inline int64_t em_conv_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t em_conv_most(int64_t a, int64_t b) { return a > b ? a : b; }
#endif
