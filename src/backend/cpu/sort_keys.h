// sort_keys.h: elements as unsigned keys that order as the elements do: -0.0 like 0.0, every nan above everything else.
#ifndef EMBER_BACKEND_CPU_SORT_KEYS_H
#define EMBER_BACKEND_CPU_SORT_KEYS_H
#include "../../core/dtype.h"
#include "isa.h"

// A short row: n pairs (all different) from a in order to `to`, by counting for each how many are below it.
typedef void (*em_rank_fn)(uint64_t *to, const uint64_t *a, int64_t n);
// n keys of elements `stride` bytes apart, each turned over by `flip` (all ones of the key's width: the order reversed).
typedef void (*em_keys32_fn)(uint32_t *to, const char *from, int64_t stride, int64_t n, uint32_t flip);
typedef void (*em_keys64_fn)(uint64_t *to, const char *from, int64_t stride, int64_t n, uint64_t flip);
typedef struct em_sort_keys {
  em_keys32_fn narrow[EM_NUM_DTYPES];  // dtypes of up to 32 bits
  em_keys64_fn wide[EM_NUM_DTYPES];    // of 64
  em_rank_fn rank;
  bool (*any_above32)(const uint32_t *keys, int64_t n, uint32_t bound);
  bool (*any_above64)(const uint64_t *keys, int64_t n, uint64_t bound);
} em_sort_keys;
extern em_sort_keys em_priv_sort_keys;  // of the chosen instruction set
static inline int em_sort_key_bits(int dtype) { return (int)em_dtype_size(dtype) * 8; }
#endif
