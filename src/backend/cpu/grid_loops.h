// grid_loops.h: what pictures and volumes read at a grid's points, built once an instruction set.
#ifndef EMBER_BACKEND_CPU_GRID_LOOPS_H
#define EMBER_BACKEND_CPU_GRID_LOOPS_H
#include <stdbool.h>
#include "isa.h"

enum { EM_GRID_BILINEAR, EM_GRID_NEAREST, EM_GRID_BICUBIC };
enum { EM_GRID_ZEROS, EM_GRID_BORDER, EM_GRID_REFLECTION };
#define EM_GRID_BLOCK 32  // points whose taps are worked out before the channels are gone through
typedef struct em_grid_job {
  int dims, mode, padding;
  bool align, want_input, wide;
  int64_t in[3], in_area, channels, points;
  const void *input, *grid, *grad;
  void *out, *grid_grad;  // backward: out is the input's gradient
} em_grid_job;
// `count` points from p on of batch entry n.
typedef void (*em_grid_block)(const em_grid_job *j, int64_t n, int64_t p, int count);
typedef struct em_grid_fns { em_grid_block sample, give; } em_grid_fns;
#endif
