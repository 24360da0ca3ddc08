// resample.h: what checks and kernels of interpolation agree on: how outputs of one dim are mixed from its inputs.
#ifndef EMBER_DISPATCH_RESAMPLE_H
#define EMBER_DISPATCH_RESAMPLE_H
#include <math.h>
#include "../core/value.h"

typedef enum em_resample_kind {
  EM_RESAMPLE_NEAREST,     // the input at or before the output's left edge
  EM_RESAMPLE_EXACT,       // the input under the output's centre
  EM_RESAMPLE_LINEAR,
  EM_RESAMPLE_CUBIC,
  EM_RESAMPLE_LINEAR_AA,   // the same filters, widened by the scale when shrinking
  EM_RESAMPLE_CUBIC_AA,
  EM_RESAMPLE_LANCZOS_AA,
} em_resample_kind;

// Inputs an output is away from the next.
static inline double em_resample_scale(int64_t in, int64_t out, bool align, em_opt_double scale) {
  if (align) return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  return scale.has && scale.v > 0 ? 1 / scale.v : (double)in / (double)out;
}
static inline double em_resample_support(int kind, double scale) {
  const double half = kind == EM_RESAMPLE_LINEAR_AA ? 1 : kind == EM_RESAMPLE_CUBIC_AA ? 2 : 3;
  return scale >= 1 ? half * scale : half;
}
// Most inputs that one output is mixed from.
static inline int64_t em_resample_taps(int kind, int64_t in, double scale) {
  if (kind <= EM_RESAMPLE_EXACT) return 1;
  if (kind <= EM_RESAMPLE_CUBIC) return kind == EM_RESAMPLE_LINEAR ? 2 : 4;
  const double taps = ceil(em_resample_support(kind, scale)) * 2 + 1;
  return taps < (double)in ? (int64_t)taps : in;
}
#endif
