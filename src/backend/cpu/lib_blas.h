// lib_blas.h: OpenBLAS, opened at its first use. Every call runs on the calling thread alone: the library is set to one thread, and
// callers split the work with em_threads_for.
#ifndef EMBER_BACKEND_CPU_LIB_BLAS_H
#define EMBER_BACKEND_CPU_LIB_BLAS_H
#include "lib_path.h"

// CBLAS's constants, part of its binary interface.
enum { EM_BLAS_ROW_MAJOR = 101, EM_BLAS_NO_TRANS = 111, EM_BLAS_TRANS = 112 };

typedef struct em_blas {
  void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                float *c, int ldc);
  void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb,
                double beta, double *c, int ldc);
  void (*cgemm)(int order, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda, const void *b, int ldb,
                const void *beta, void *c, int ldc);
  void (*zgemm)(int order, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda, const void *b, int ldb,
                const void *beta, void *c, int ldc);
} em_blas;

// LAPACK, by its C interface, from the same library. One function a type: float, double, complex of each. Matrices lie by columns.
// Each returns 0, or what LAPACK calls info.
enum { EM_LAPACK_COLUMNS = 102 };
typedef struct em_lapack {
  int (*getrf[4])(int layout, int m, int n, void *a, int lda, int *pivots);
  int (*getrs[4])(int layout, char trans, int n, int nrhs, const void *a, int lda, const int *pivots, void *b, int ldb);
  int (*potrf[4])(int layout, char uplo, int n, void *a, int lda);
  int (*geqrf[4])(int layout, int m, int n, void *a, int lda, void *tau);
  int (*orgqr[4])(int layout, int m, int n, int k, void *a, int lda, const void *tau);
  int (*gesdd[4])(int layout, char job, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *vt, int ldvt);
  int (*syevd[4])(int layout, char job, char uplo, int n, void *a, int lda, void *w);
  int (*trtrs[4])(int layout, char uplo, char trans, char diag, int n, int nrhs, const void *a, int lda, void *b, int ldb);
} em_lapack;
EM_PRIV const em_lapack *em_priv_lapack(void);  // NULL: the library has none, or there is no library

EM_PRIV const em_blas *em_priv_blas(void);  // NULL: there is none, or EMBER_OPENBLAS=none
#endif
