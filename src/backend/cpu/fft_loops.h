// fft_loops.h: the passes of a mixed-radix Fourier transform, built once an instruction set. Real and imaginary parts lie apart;
// `lanes` transforms run side by side, element by element, so that every loop is as long as that at least.
#ifndef EMBER_BACKEND_CPU_FFT_LOOPS_H
#define EMBER_BACKEND_CPU_FFT_LOOPS_H
#include <stddef.h>
#include "isa.h"

#define EM_FFT_STAGES 64
#define EM_FFT_LANES 8      // or 1
#define EM_FFT_LARGEST 127  // prime factor that has a pass; lengths with larger ones are turned into convolutions
typedef struct em_fft_stage {
  int radix;
  int64_t ido, l1;        // n = l1 * radix * ido
  const void *wr, *wi;    // (radix - 1) x ido factors
  const void *cr, *ci;    // radix roots of one, where the radix has no pass of its own
} em_fft_stage;
typedef struct em_fft_plan {
  int64_t n, lanes;
  int stages;
  em_fft_stage stage[EM_FFT_STAGES];
} em_fft_plan;
// Lines of a tensor: part p (0: real, 1: imaginary) of point i of line v is data[base[v] + i * unit + p * imag].
typedef struct em_fft_side {
  void *data;
  int lines;
  int64_t base[EM_FFT_LANES], unit, imag;
  double scale;           // what stored values are multiplied by
} em_fft_side;
typedef struct em_fft_fns {
  // Forward, in place; s is as large and holds anything afterwards.
  void (*run)(const em_fft_plan *p, void *re, void *im, void *s_re, void *s_im);
  // (ar, ai) *= (br, bi): n x lanes elements by n
  void (*multiply)(void *ar, void *ai, const void *br, const void *bi, int64_t n, int64_t lanes);
  // Between the transform of n complex points and the first n + 1 points of one of 2n real ones; n/2 + 1 factors.
  void (*split)(void *re, void *im, const void *wr, const void *wi, int64_t n, int64_t lanes);
  void (*join)(void *re, void *im, const void *wr, const void *wi, int64_t n, int64_t lanes);
  void (*load[2])(const em_fft_side *s, void *re, void *im, int64_t n, int64_t lanes);  // [elements are double]
  void (*store[2])(const em_fft_side *s, const void *re, const void *im, int64_t n, int64_t lanes);
} em_fft_fns;
#endif
