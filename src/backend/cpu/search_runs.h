// search_runs.h: binary search of many values in a sorted sequence, built once an instruction set.
#ifndef EMBER_BACKEND_CPU_SEARCH_RUNS_H
#define EMBER_BACKEND_CPU_SEARCH_RUNS_H
#include "../../core/dtype.h"
#include "isa.h"

typedef struct em_searches {
  // The first position whose element is not below a value (or, right, is above it).
  void (*search)(const char *seq, int64_t n, const char *values, int64_t count, bool right, int64_t *out);
  // Whether the sequence has a value, or has not (invert).
  void (*isin)(const char *seq, int64_t n, const char *values, int64_t count, bool invert, uint8_t *out);
} em_searches;
#endif
