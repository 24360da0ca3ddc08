// norm_loops.h: the loops of layer, RMS, group and batch norm, built once an instruction set. One set a storage dtype:
// f16 and bf16 are widened as they are read and rounded once as they are written. Sums run over lanes whose number and
// merging are fixed, in blocks whose totals are added in double: the same bits for every instruction set.
#ifndef EMBER_BACKEND_CPU_NORM_LOOPS_H
#define EMBER_BACKEND_CPU_NORM_LOOPS_H
#include <stdbool.h>
#include <stdint.h>
#include "isa.h"

// Storage dtypes that have loops.
enum { EM_NORM_F32, EM_NORM_F64, EM_NORM_F16, EM_NORM_BF16, EM_NORM_KINDS };
#define EM_NORM_COLUMNS 256  // columns that a band has at most

// Arrays called `x`, `dy`, `o` hold storage dtype; gamma, beta and their gradients the compute dtype (double for f64, else float).
typedef struct em_norm_table {
  // --- n elements side by side
  double (*sum)(const void *x, int64_t n);
  double (*squares)(const void *x, int64_t n, double mean);                       // sum of (x - mean)^2
  void (*dot)(const void *dy, const void *x, int64_t n, double mean, double *s);  // s[0] += dy, s[1] += dy (x - mean)
  void (*scale)(void *o, const void *x, int64_t n, double mean, double a, double b);  // a (x - mean) + b
  // a dy + b (x - mean) + c
  void (*mix)(void *o, const void *dy, const void *x, int64_t n, double mean, double a, double b, double c);
  // --- a row with a weight for each element (NULL: 1, 0)
  void (*row)(void *o, const void *x, int64_t n, const void *gamma, const void *beta, double mean, double rstd);
  // s[0] += gamma dy, s[1] += gamma dy xhat; dgamma += dy xhat and dbeta += dy where wanted
  void (*row_dot)(const void *dy, const void *x, int64_t n, const void *gamma, double mean, double rstd, void *dgamma,
                  void *dbeta, double *s);
  // rstd (gamma dy - c1 - c2 xhat)
  void (*row_mix)(void *o, const void *dy, const void *x, int64_t n, const void *gamma, double mean, double rstd,
                  double c1, double c2);
  // --- a band of w columns of `rows` rows, `stride` elements apart; a value for each column, in double
  void (*column_sum)(const void *x, int64_t rows, int64_t stride, int64_t w, double *s);
  void (*column_squares)(const void *x, int64_t rows, int64_t stride, int64_t w, const double *mean, double *s);
  void (*column_dot)(const void *dy, const void *x, int64_t rows, int64_t stride, int64_t w, const double *mean,
                     double *s0, double *s1);
  void (*column_scale)(void *o, const void *x, int64_t rows, int64_t stride, int64_t w, const double *mean,
                       const double *a, const double *b);
  void (*column_mix)(void *o, const void *dy, const void *x, int64_t rows, int64_t stride, int64_t w,
                     const double *mean, const double *a, const double *b, const double *c);
} em_norm_table;
typedef const em_norm_table *const em_norm_set[EM_NORM_KINDS];
#endif
