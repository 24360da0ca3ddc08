// resample_loops.h: one dim resampled, built once an instruction set; and the other way for gradients.
#ifndef EMBER_BACKEND_CPU_RESAMPLE_LOOPS_H
#define EMBER_BACKEND_CPU_RESAMPLE_LOOPS_H
#include <stdbool.h>
#include "isa.h"

typedef struct em_resample_axis {
  int64_t in, out, taps;
  int64_t *count;  // taps of each output
  int64_t *index;  // out x taps: the inputs that it is mixed from
  void *weight;    // out x taps, in the loop's dtype
  int bits;        // of bytes' weights, after the point
} em_resample_axis;
// to: (outer, out, inner) from (outer, in, inner); backward: to (outer, in, inner) from (outer, out, inner).
typedef void (*em_resample_pass)(void *to, const void *from, int64_t outer, int64_t inner, const em_resample_axis *a);
typedef struct em_resample_fns { em_resample_pass forward, backward; } em_resample_fns;
#endif
