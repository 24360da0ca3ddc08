// copy.h: layouts of fresh tensors, shared by the operators that make them.
#ifndef EMBER_OPS_COPY_H
#define EMBER_OPS_COPY_H
#include "../core/value.h"

// Strides of a fresh copy of t in an em_memory_format (NONE counts as PRESERVE). EM_ERR_RUNTIME for channels_last of
// the wrong rank.
em_status em_priv_format_strides(const em_tensor *t, int format, int64_t *strides);
// channels_last of 4 dims or 5.
void em_priv_channels_last_strides(int ndim, const int64_t *sizes, int64_t *strides);
// Undefined contents in t's sizes and the layout that the format asks for.
em_status em_priv_empty_like(em_tensor *t, int dtype, em_device device, int format, em_tensor **out);
#endif
