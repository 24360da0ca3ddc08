// cast.c: entry to the cast loops of the CPU backend. Everything that meets a dtype other than its own comes through
// here.
#include "iterator.h"

const em_cast_fn (*em_priv_casts)[EM_NUM_DTYPES];

void em_cast_load(void *dst, int to, const void *src, int from, int64_t stride, int64_t n) {
  em_priv_casts[to][from](dst, (int64_t)em_dtype_size(to), src, stride, n);
}

void em_cast_store(void *dst, int to, int64_t stride, const void *src, int from, int64_t n) {
  em_priv_casts[to][from](dst, stride, src, (int64_t)em_dtype_size(from), n);
}
