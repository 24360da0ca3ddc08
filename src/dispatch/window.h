// window.h: what checks and kernels of pooling and unfolding agree on: windows that move over up to three spatial dims.
// An operator on fewer dims sees the missing ones first, of size 1.
#ifndef EMBER_DISPATCH_WINDOW_H
#define EMBER_DISPATCH_WINDOW_H
#include "../core/value.h"

#define EM_WINDOW_DIMS 3
typedef struct em_window {
  int64_t in[EM_WINDOW_DIMS], out[EM_WINDOW_DIMS];
  int64_t kernel[EM_WINDOW_DIMS], stride[EM_WINDOW_DIMS], pad[EM_WINDOW_DIMS], dilation[EM_WINDOW_DIMS];
  int64_t planes, in_area, out_area;
} em_window;

// The k-th of `spatial` values of a list that has one for all, one each, or none (then `otherwise`).
static inline int64_t em_window_value(em_ints l, int k, int64_t otherwise) {
  return l.n <= 0 ? otherwise : l.p[l.n == 1 ? 0 : k];
}
// in, planes and in_area from the last `spatial` dims of `big`.
static inline void em_window_input(em_window *w, const em_tensor *big, int spatial) {
  const int lead = EM_WINDOW_DIMS - spatial;
  w->in_area = w->planes = 1;
  for (int k = 0; k < EM_WINDOW_DIMS; k++) {
    w->in[k] = k < lead ? 1 : big->sizes[big->ndim - EM_WINDOW_DIMS + k];
    w->in_area *= w->in[k];
  }
  for (int d = 0; d < big->ndim - spatial; d++) w->planes *= big->sizes[d];
}
static inline void em_window_output(em_window *w, const em_tensor *small, int spatial) {
  const int lead = EM_WINDOW_DIMS - spatial;
  w->out_area = 1;
  for (int k = 0; k < EM_WINDOW_DIMS; k++) {
    w->out[k] = k < lead ? 1 : small->sizes[small->ndim - EM_WINDOW_DIMS + k];
    w->out_area *= w->out[k];
  }
}
static inline void em_window_parameters(em_window *w, int spatial, em_ints kernel, em_ints stride, em_ints pad,
                                        em_ints dilation) {
  const int lead = EM_WINDOW_DIMS - spatial;
  for (int k = 0; k < EM_WINDOW_DIMS; k++) {
    const bool real = k >= lead;
    w->kernel[k] = real ? em_window_value(kernel, k - lead, 1) : 1;
    w->stride[k] = real ? em_window_value(stride, k - lead, w->kernel[k]) : 1;
    w->pad[k] = real ? em_window_value(pad, k - lead, 0) : 0;
    w->dilation[k] = real ? em_window_value(dilation, k - lead, 1) : 1;
  }
}
#endif
