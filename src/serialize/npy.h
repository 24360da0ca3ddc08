// npy.h: numpy's .npy files: a magic string, a header that is a Python dict in text, the elements.
#ifndef EMBER_SERIALIZE_NPY_H
#define EMBER_SERIALIZE_NPY_H
#include "core/tensor.h"
#include "source.h"

// Both orders and both byte orders are read; with `share` the bytes stay where the source has them, if they can.
EM_PRIV em_status em_npy_read(em_source *s, bool share, em_tensor **out);
// Version 1.0, C order. The tensor must be contiguous, in host memory, of a dtype that numpy has.
EM_PRIV em_status em_npy_write(em_sink *k, const em_tensor *t);
#endif
