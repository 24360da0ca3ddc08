// fft_loops.h: the passes of a mixed-radix Fourier transform, built once an instruction set. Real and imaginary parts lie apart;
// `lanes` transforms run side by side, element by element, so that every loop is as long as that at least.
#ifndef EMBER_BACKEND_CPU_FFT_LOOPS_H
#define EMBER_BACKEND_CPU_FFT_LOOPS_H
#include <stddef.h>
#include "isa.h"

#define EM_FFT_STAGES 64
#define EM_FFT_LARGEST 31  // prime factor that has a pass; lengths with larger ones are turned into convolutions
typedef struct em_fft_stage {
  int radix;
  int64_t ido, l1;        // n = l1 * radix * ido
  const void *wr, *wi;    // (radix - 1) x ido x lanes factors
  const void *cr, *ci;    // radix roots of one, where the radix has no pass of its own
} em_fft_stage;
typedef struct em_fft_plan {
  int64_t n, lanes;
  int stages;
  em_fft_stage stage[EM_FFT_STAGES];
} em_fft_plan;
typedef struct em_fft_fns {
  // Forward, in place; s is as large and holds anything afterwards.
  void (*run)(const em_fft_plan *p, void *re, void *im, void *s_re, void *s_im);
  // (ar, ai) *= (br, bi), n elements
  void (*multiply)(void *ar, void *ai, const void *br, const void *bi, int64_t n);
} em_fft_fns;
#endif
