// norm.h: what the kernels of layer, group and batch norm share.
#ifndef EMBER_BACKEND_CPU_NORM_H
#define EMBER_BACKEND_CPU_NORM_H
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "norm_loops.h"

#define EM_NORM_GRAIN 16384  // elements that a thread should get at least

const em_norm_table *em_priv_norm_loops(int dtype);  // of a floating storage dtype
// `t` as dense elements of `dtype`, in row-major order or (channels_last) in the order of channels_last.
em_status em_priv_norm_dense(em_tensor *t, int dtype, bool channels_last, em_tensor **out);
// A weight as a dense row of doubles or of the compute dtype; *p is NULL for no weight. *out owns it.
em_status em_priv_norm_weight(em_tensor *t, int dtype, em_tensor **out, const void **p);
// The tensor that a kernel writes for `out`: itself if it lies as asked, else a temporary. em_priv_norm_commit copies and releases.
em_status em_priv_norm_target(em_tensor *out, bool channels_last, em_tensor **target);
em_status em_priv_norm_commit(em_tensor *out, em_tensor *target, em_status st);
bool em_priv_norm_is_channels_last(const em_tensor *t);  // dense in that order
#endif
