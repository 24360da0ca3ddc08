// linalg.c: factorisations by LAPACK, matrix by matrix of a batch. Results lie by columns, as LAPACK writes them and PyTorch shows them.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../../core/note.h"
#include "../../core/threads.h"
#include "gen_ops.h"
#include "lib_blas.h"

// ---- shapes and columns -------------------------------------------------------------------------------------------------

static em_status library(const em_lapack **out, const char *name) {
  *out = em_priv_lapack();
  if (*out != NULL) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: Calling it requires a LAPACK library; Ember found none (pip install scipy-openblas32)", name);
}
// Which of LAPACK's four types.
static em_status type_of(const em_tensor *a, const char *name, const char *kernel, int *t) {
  *t = a->dtype == EM_F32 ? 0 : a->dtype == EM_F64 ? 1 : a->dtype == EM_C64 ? 2 : a->dtype == EM_C128 ? 3 : -1;
  if (*t >= 0) return EM_OK;
  if (em_dtype_is_integral(a->dtype))
    return em_fail(EM_ERR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s", name,
                   em_dtype_scalar_name(a->dtype));
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(a->dtype));
}
static em_status check_matrix(const em_tensor *a, const char *name, bool square) {
  if (a->ndim < 2) return em_fail(EM_ERR_RUNTIME, "%s: The input tensor A must have at least 2 dimensions.", name);
  const int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
  if (m > INT32_MAX || n > INT32_MAX) return em_fail(EM_ERR_RUNTIME, "%s: matrices of more than 2^31 rows or columns", name);
  if (!square || m == n) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", name, (long long)m,
                 (long long)n);
}
static int rows_of(const em_tensor *a) { return (int)a->sizes[a->ndim - 2]; }
static int columns_of(const em_tensor *a) { return (int)a->sizes[a->ndim - 1]; }
static int leading(int64_t n) { return n < 1 ? 1 : (int)n; }
static bool is_meta(const em_tensor *a) { return a->device.type == EM_DEVICE_META; }

// A tensor of batches of m x n matrices, each by columns (by_columns) or by rows.
static em_status new_matrices(const em_tensor *like, int nbatch, const int64_t *batch, int64_t m, int64_t n, int dtype, bool by_columns,
                              em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  for (int d = 0; d < nbatch; d++) sizes[d] = batch[d];
  sizes[nbatch] = m;
  sizes[nbatch + 1] = n;
  em_shape_contiguous_strides(nbatch + 2, sizes, strides);
  if (by_columns) {
    strides[nbatch] = 1;
    strides[nbatch + 1] = m < 1 ? 1 : m;
  }
  return em_tensor_new_strided(nbatch + 2, sizes, strides, dtype, like->device, out);
}
static em_status new_like(const em_tensor *a, int64_t m, int64_t n, int dtype, em_tensor **out) {
  return new_matrices(a, a->ndim - 2, a->sizes, m, n, dtype, true, out);
}
// A batch of vectors of n elements (n < 0: of numbers).
static em_status new_vectors(const em_tensor *a, int64_t n, int dtype, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS];
  int k = 0;
  for (int d = 0; d < a->ndim - 2; d++) sizes[k++] = a->sizes[d];
  if (n >= 0) sizes[k++] = n;
  return em_tensor_new(k, sizes, dtype, a->device, out);
}
static em_status copy_columns(em_tensor *a, em_tensor **out) {
  EM_PASS(new_like(a, a->sizes[a->ndim - 2], a->sizes[a->ndim - 1], a->dtype, out));
  if (is_meta(a)) return EM_OK;
  em_status st = em_copy_into(*out, a);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}

typedef struct job job;
struct job {
  const em_lapack *l;
  int (*fn)(const job *j, int64_t i);  // one matrix; returns info
  int t, m, n, nrhs;
  char option;
  em_tensor *a, *b, *c, *pivots, *info, *work;
};
static char *matrix(em_tensor *t, int64_t i) {
  if (t == NULL || t->numel == 0) return NULL;
  return (char *)em_tensor_data(t) + (size_t)(i * t->sizes[t->ndim - 1] * t->sizes[t->ndim - 2]) * em_tensor_itemsize(t);
}
static char *vector(em_tensor *t, int64_t i) {
  return (char *)em_tensor_data(t) + (size_t)(i * t->sizes[t->ndim - 1]) * em_tensor_itemsize(t);
}
// Iterations of LAPACK need not end where a matrix holds inf or nan.
static bool all_finite(const job *j, int64_t i) {
  const int64_t n = (int64_t)j->m * j->n * (j->t < 2 ? 1 : 2);
  const void *p = matrix(j->a, i);
  double sum = 0;  // 0 times anything finite is 0
  for (int64_t k = 0; k < n; k++) sum += 0 * (j->t % 2 == 0 ? (double)((const float *)p)[k] : ((const double *)p)[k]);
  return sum == 0;
}
static int64_t batches(const em_tensor *a) {
  int64_t n = 1;
  for (int d = 0; d < a->ndim - 2; d++) n *= a->sizes[d];
  return n;
}
static em_status some(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t i = begin; i < end; i++) {
    const int info = j->fn(j, i);
    if (j->info != NULL) ((int32_t *)em_tensor_data(j->info))[i] = info;
  }
  return EM_OK;
}
static em_status each(job *j, int64_t count) {
  const double work = (double)j->n * (double)j->n * (double)(j->m > j->n ? j->m : j->n) + 1;
  EM_NOTE("LAPACK of OpenBLAS: %lld of %d x %d, by columns (Ember's loops refused: it has no factorisations of its own)", (long long)count,
          j->m, j->n);
  void *token = em_priv_begin_long((double)count * work > 1e5);
  em_status st = em_threads_for(count, (int64_t)(65536 / work) + 1, some, j);
  em_priv_end_long(token);
  return st;
}
// The first matrix that failed: its place in the batch and its info.
static bool failed(const em_tensor *info, char *where, size_t size, int *code) {
  if (is_meta(info)) return false;
  const int32_t *p = em_tensor_data(info);
  for (int64_t i = 0; i < info->numel; i++) {
    if (p[i] == 0) continue;
    where[0] = 0;
    if (info->ndim > 0) snprintf(where, size, "(Batch element %lld): ", (long long)i);
    *code = p[i];
    return true;
  }
  return false;
}
// `words` may hold one %d, for info.
static em_status raise_errors(const em_tensor *info, const char *name, const char *words) {
  char where[64];
  int code;
  if (!failed(info, where, sizeof where, &code)) return EM_OK;
  const char *number = strstr(words, "%d");
  if (number == NULL) return em_fail(EM_ERR_LINALG, "%s: %s%s", name, where, words);
  return em_fail(EM_ERR_LINALG, "%s: %s%.*s%d%s", name, where, (int)(number - words), words, code, number + 2);
}
#define SINGULAR "The solver failed because the input matrix is singular."

// ---- LU, solve, inverse ----------------------------------------------------------------------------------------------------

static int lu_one(const job *j, int64_t i) {
  if (j->m == 0 || j->n == 0) return 0;
  return j->l->getrf[j->t](EM_LAPACK_COLUMNS, j->m, j->n, matrix(j->a, i), j->m, (int *)vector(j->pivots, i));
}
static int solve_one(const job *j, int64_t i) {
  const int info = lu_one(j, i);
  if (j->n == 0 || j->nrhs == 0) return info;
  j->l->getrs[j->t](EM_LAPACK_COLUMNS, j->option, j->n, j->nrhs, matrix(j->a, i), j->n, (const int *)vector(j->pivots, i), matrix(j->b, i),
                    j->n);
  return info;
}
em_status n_linalg_lu_factor_ex(uint64_t ks, em_tensor *A, bool pivot, bool check_errors, em_tensor **out0, em_tensor **out1,
                                em_tensor **out2) {
  (void)ks;
  job j = {.fn = lu_one};
  EM_PASS(check_matrix(A, "torch.lu_factor", false));
  EM_PASS(type_of(A, "torch.lu_factor", "lu_cpu", &j.t));
  if (!pivot) return em_fail(EM_ERR_RUNTIME, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  EM_PASS(library(&j.l, "linalg.lu_factor"));
  em_status st = EM_OK;
  em_tensor *lu = NULL, *pivots = NULL, *info = NULL;
  j.m = rows_of(A);
  j.n = columns_of(A);
  EM_TRY(copy_columns(A, &lu));
  EM_TRY(new_vectors(A, j.m < j.n ? j.m : j.n, EM_I32, &pivots));
  EM_TRY(new_vectors(A, -1, EM_I32, &info));
  if (!is_meta(A)) {
    j.a = lu;
    j.pivots = pivots;
    j.info = info;
    EM_TRY(each(&j, batches(A)));
    char where[64];
    int code;
    if (check_errors && failed(info, where, sizeof where, &code))
      EM_FAIL(EM_ERR_RUNTIME, "torch.linalg.lu_factor_ex: %sU[%d,%d] is zero and using it on lu_solve would result in a division by "
              "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
              "linalg.lu_factor_ex(A, pivot)", where, code, code);
  }
  *out0 = lu;
  *out1 = pivots;
  *out2 = info;
  return EM_OK;
fail:
  em_tensor_release(lu);
  em_tensor_release(pivots);
  em_tensor_release(info);
  return st;
}
// Solves A X = B (left) or X A = B for B already broadcast to a batch of matrices; the composite in src/ops takes care of vectors.
em_status n_linalg_solve_ex(uint64_t ks, em_tensor *A, em_tensor *B, bool left, bool check_errors, em_tensor **out0, em_tensor **out1,
                            em_tensor **out2, em_tensor **out3) {
  (void)ks;
  job j = {.fn = solve_one, .option = left ? 'N' : 'T'};
  EM_PASS(check_matrix(A, "linalg.solve", true));
  EM_PASS(check_matrix(B, "linalg.solve", false));
  if (A->dtype != B->dtype || (left ? rows_of(B) : columns_of(B)) != rows_of(A) ||
      !em_shape_equal(A->ndim - 2, A->sizes, B->ndim - 2, B->sizes))
    return em_fail(EM_ERR_RUNTIME, "linalg.solve: A and B must be of one dtype, batch and size here; linalg_solve_ex broadcasts them");
  EM_PASS(type_of(A, "linalg.solve", "lu_cpu", &j.t));
  EM_PASS(library(&j.l, "linalg.solve"));
  em_status st = EM_OK;
  em_tensor *lu = NULL, *pivots = NULL, *info = NULL, *x = NULL;
  j.m = j.n = rows_of(A);
  j.nrhs = left ? columns_of(B) : rows_of(B);
  EM_TRY(copy_columns(A, &lu));
  EM_TRY(new_vectors(A, j.n, EM_I32, &pivots));
  EM_TRY(new_vectors(A, -1, EM_I32, &info));
  EM_TRY(new_matrices(A, A->ndim - 2, A->sizes, B->sizes[B->ndim - 2], B->sizes[B->ndim - 1], A->dtype, left, &x));
  if (!is_meta(A)) {
    EM_TRY(em_copy_into(x, B));
    j.a = lu;
    j.b = x;
    j.pivots = pivots;
    j.info = info;
    EM_TRY(each(&j, batches(A)));
    if (check_errors) EM_TRY(raise_errors(info, "torch.linalg.solve", SINGULAR));
  }
  *out0 = x;
  *out1 = lu;
  *out2 = pivots;
  *out3 = info;
  return EM_OK;
fail:
  em_tensor_release(lu);
  em_tensor_release(pivots);
  em_tensor_release(info);
  em_tensor_release(x);
  return st;
}
static em_status set_identity(em_tensor *t, int n, int64_t count) {
  EM_PASS(em_fill(t, em_scalar_int(0)));
  const size_t item = em_tensor_itemsize(t);
  char one[16];
  EM_PASS(em_scalar_store(em_scalar_int(1), t->dtype, one));
  for (int64_t i = 0; i < count; i++)
    for (int k = 0; k < n; k++) memcpy(matrix(t, i) + (size_t)k * (size_t)(n + 1) * item, one, item);
  return EM_OK;
}
em_status n_linalg_inv_ex(uint64_t ks, em_tensor *A, bool check_errors, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  job j = {.fn = solve_one, .option = 'N'};
  EM_PASS(check_matrix(A, "linalg.inv", true));
  if (A->dtype == EM_F16 || A->dtype == EM_BF16)
    return em_fail(EM_ERR_RUNTIME, "linalg.inv: Low precision dtypes not supported. Got %s", em_dtype_scalar_name(A->dtype));
  EM_PASS(type_of(A, "linalg.inv", "inverse_cpu", &j.t));
  EM_PASS(library(&j.l, "linalg.inv"));
  em_status st = EM_OK;
  em_tensor *lu = NULL, *pivots = NULL, *info = NULL, *x = NULL;
  j.m = j.n = j.nrhs = rows_of(A);
  EM_TRY(copy_columns(A, &lu));
  EM_TRY(new_vectors(A, j.n, EM_I32, &pivots));
  EM_TRY(new_vectors(A, -1, EM_I32, &info));
  EM_TRY(new_like(A, j.n, j.n, A->dtype, &x));
  if (!is_meta(A)) {
    EM_TRY(set_identity(x, j.n, x->numel == 0 ? 0 : batches(A)));
    j.a = lu;
    j.b = x;
    j.pivots = pivots;
    j.info = info;
    EM_TRY(each(&j, batches(A)));
    if (check_errors)
      EM_TRY(raise_errors(info, "linalg.inv", "The diagonal element %d is zero, the inversion could not be completed because the "
                                   "input matrix is singular."));
  }
  *out0 = x;
  *out1 = info;
  x = info = NULL;
fail:
  em_tensor_release(lu);
  em_tensor_release(pivots);
  em_tensor_release(info);
  em_tensor_release(x);
  return st;
}

// ---- Cholesky, triangular systems --------------------------------------------------------------------------------------------

static int cholesky_one(const job *j, int64_t i) {
  if (j->n == 0) return 0;
  const size_t item = em_tensor_itemsize(j->a);
  char *a = matrix(j->a, i);
  const int info = j->l->potrf[j->t](EM_LAPACK_COLUMNS, j->option, j->n, a, j->n);
  for (int c = 0; c < j->n; c++) {  // the other triangle is 0
    if (j->option == 'L') memset(a + (size_t)c * (size_t)j->n * item, 0, (size_t)c * item);
    else memset(a + ((size_t)c * (size_t)j->n + (size_t)c + 1) * item, 0, (size_t)(j->n - c - 1) * item);
  }
  return info;
}
em_status n_linalg_cholesky_ex(uint64_t ks, em_tensor *self, bool upper, bool check_errors, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  job j = {.fn = cholesky_one, .option = upper ? 'U' : 'L'};
  EM_PASS(check_matrix(self, "linalg.cholesky", true));
  EM_PASS(type_of(self, "linalg.cholesky", "cholesky_cpu", &j.t));
  EM_PASS(library(&j.l, "linalg.cholesky"));
  em_status st = EM_OK;
  em_tensor *l = NULL, *info = NULL;
  j.m = j.n = rows_of(self);
  EM_TRY(copy_columns(self, &l));
  EM_TRY(new_vectors(self, -1, EM_I32, &info));
  if (!is_meta(self)) {
    j.a = l;
    j.info = info;
    EM_TRY(each(&j, batches(self)));
    if (check_errors)
      EM_TRY(raise_errors(info, "linalg.cholesky", "The factorization could not be completed because the input is not "
                                   "positive-definite (the leading minor of order %d is not positive-definite)."));
  }
  *out0 = l;
  *out1 = info;
  return EM_OK;
fail:
  em_tensor_release(l);
  em_tensor_release(info);
  return st;
}
static int triangular_one(const job *j, int64_t i) {
  if (j->n == 0 || j->nrhs == 0) return 0;
  j->l->trtrs[j->t](EM_LAPACK_COLUMNS, j->option & 1 ? 'U' : 'L', j->option & 2 ? 'T' : 'N', j->option & 4 ? 'U' : 'N', j->n, j->nrhs,
                    matrix(j->a, i), j->n, matrix(j->b, i), j->n);
  return 0;
}
// A and B are batches of matrices of one batch shape; the composite broadcasts. X A = B is solved as A^T X^T = B^T.
em_status n_linalg_solve_triangular(uint64_t ks, em_tensor *self, em_tensor *B, bool upper, bool left, bool unitriangular,
                                    em_tensor **out) {
  (void)ks;
  job j = {.fn = triangular_one};
  EM_PASS(check_matrix(self, "linalg.solve_triangular", true));
  if (B->ndim < 2) return em_fail(EM_ERR_RUNTIME, "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.");
  EM_PASS(type_of(self, "linalg.solve_triangular", "triangular_solve_cpu", &j.t));
  if (self->dtype != B->dtype)
    return em_fail(EM_ERR_RUNTIME, "linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type %s and B of type "
                   "%s instead", em_dtype_scalar_name(self->dtype), em_dtype_scalar_name(B->dtype));
  j.m = j.n = rows_of(self);
  if ((left ? rows_of(B) : columns_of(B)) != j.n)
    return em_fail(EM_ERR_RUNTIME, "linalg.solve_triangular: Incompatible shapes of A and B for the equation %s (%dx%d and %dx%d)",
                   left ? "AX = B" : "XA = B", j.n, j.n, rows_of(B), columns_of(B));
  EM_PASS(library(&j.l, "linalg.solve_triangular"));
  em_shape batch = {.ndim = B->ndim - 2};
  for (int d = 0; d < batch.ndim; d++) batch.sizes[d] = B->sizes[d];
  EM_PASS(em_shape_broadcast(&batch, self->ndim - 2, self->sizes));
  em_status st = EM_OK;
  em_tensor *a = NULL, *x = NULL, *by_columns = NULL;
  EM_TRY(new_matrices(self, batch.ndim, batch.sizes, j.n, j.n, self->dtype, true, &a));
  EM_TRY(new_matrices(self, batch.ndim, batch.sizes, B->sizes[B->ndim - 2], B->sizes[B->ndim - 1], self->dtype, left, &x));
  if (!is_meta(self)) {
    EM_TRY(em_copy_into(a, self));
    EM_TRY(em_copy_into(x, B));
    j.nrhs = left ? columns_of(B) : rows_of(B);
    j.option = (char)((upper ? 1 : 0) | (left ? 0 : 2) | (unitriangular ? 4 : 0));
    j.a = a;
    j.b = x;
    EM_TRY(each(&j, batches(x)));
  }
  if (!left) {  // solved by rows, given by columns
    EM_TRY(new_matrices(self, batch.ndim, batch.sizes, B->sizes[B->ndim - 2], B->sizes[B->ndim - 1], self->dtype, true, &by_columns));
    if (!is_meta(self)) EM_TRY(em_copy_into(by_columns, x));
    em_tensor *rows = x;
    x = by_columns;
    by_columns = rows;
  }
  *out = x;
  x = NULL;
fail:
  em_tensor_release(a);
  em_tensor_release(by_columns);
  em_tensor_release(x);
  return st;
}

// ---- QR ------------------------------------------------------------------------------------------------------------------------

static int qr_one(const job *j, int64_t i) {
  const int k = j->m < j->n ? j->m : j->n, wide = j->b == NULL ? 0 : columns_of(j->b);
  const size_t item = em_tensor_itemsize(j->a);
  if (k == 0) return 0;
  char *a = matrix(j->a, i), *r = matrix(j->c, i);
  j->l->geqrf[j->t](EM_LAPACK_COLUMNS, j->m, j->n, a, j->m, vector(j->work, i));
  const size_t rows = (size_t)rows_of(j->c);
  for (int c = 0; c < j->n; c++) {
    const size_t kept = (size_t)(c + 1) < rows ? (size_t)(c + 1) : rows;
    memcpy(r + (size_t)c * rows * item, a + (size_t)c * (size_t)j->m * item, kept * item);
    memset(r + ((size_t)c * rows + kept) * item, 0, (rows - kept) * item);
  }
  if (wide == 0) return 0;
  char *q = matrix(j->b, i);
  memcpy(q, a, (size_t)j->m * (size_t)k * item);
  j->l->orgqr[j->t](EM_LAPACK_COLUMNS, j->m, wide, k, q, j->m, vector(j->work, i));
  return 0;
}
em_status n_linalg_qr(uint64_t ks, em_tensor *A, const char *mode, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  job j = {.fn = qr_one};
  EM_PASS(check_matrix(A, "linalg.qr", false));
  EM_PASS(type_of(A, "linalg.qr", "qr_cpu", &j.t));
  const bool complete = strcmp(mode, "complete") == 0, only_r = strcmp(mode, "r") == 0;
  if (!complete && !only_r && strcmp(mode, "reduced") != 0)
    return em_fail(EM_ERR_RUNTIME, "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
  EM_PASS(library(&j.l, "linalg.qr"));
  j.m = rows_of(A);
  j.n = columns_of(A);
  const int k = j.m < j.n ? j.m : j.n, wide = complete ? j.m : k;
  em_status st = EM_OK;
  em_tensor *a = NULL, *q = NULL, *r = NULL, *tau = NULL;
  EM_TRY(copy_columns(A, &a));
  EM_TRY(new_vectors(A, k, A->dtype, &tau));
  if (only_r) EM_TRY(em_tensor_new(1, (const int64_t[]){0}, A->dtype, A->device, &q));
  else EM_TRY(new_like(A, j.m, wide, A->dtype, &q));
  EM_TRY(new_like(A, wide, j.n, A->dtype, &r));
  if (!is_meta(A)) {
    j.a = a;
    j.b = only_r ? NULL : q;
    j.c = r;
    j.work = tau;
    if (k == 0 && !only_r && q->numel > 0) EM_TRY(set_identity(q, j.m, batches(A)));
    EM_TRY(each(&j, batches(A)));
  }
  *out0 = q;
  *out1 = r;
  q = r = NULL;
fail:
  em_tensor_release(a);
  em_tensor_release(tau);
  em_tensor_release(q);
  em_tensor_release(r);
  return st;
}

// ---- singular values, eigenvalues --------------------------------------------------------------------------------------------------

static int svd_one(const job *j, int64_t i) {
  if (j->m == 0 || j->n == 0) return 0;
  if (!all_finite(j, i)) return -4;
  const int vt_rows = j->c == NULL ? 1 : rows_of(j->c);
  return j->l->gesdd[j->t](EM_LAPACK_COLUMNS, j->option, j->m, j->n, matrix(j->a, i), j->m, vector(j->work, i), matrix(j->b, i), j->m,
                           matrix(j->c, i), leading(vt_rows));
}
em_status n_linalg_svd(uint64_t ks, em_tensor *A, bool full_matrices, bool compute_uv, const char *driver, em_tensor **out0,
                       em_tensor **out1,
                       em_tensor **out2) {
  (void)ks;
  job j = {.fn = svd_one, .option = !compute_uv ? 'N' : full_matrices ? 'A' : 'S'};
  EM_PASS(check_matrix(A, "linalg.svd", false));
  EM_PASS(type_of(A, "linalg.svd", "svd_cpu", &j.t));
  if (driver != NULL) return em_fail(EM_ERR_RUNTIME, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                                     "cuSOLVER backend.");
  EM_PASS(library(&j.l, "linalg.svd"));
  j.m = rows_of(A);
  j.n = columns_of(A);
  const int k = j.m < j.n ? j.m : j.n;
  em_status st = EM_OK;
  em_tensor *a = NULL, *u = NULL, *s = NULL, *vh = NULL, *info = NULL;
  EM_TRY(copy_columns(A, &a));
  EM_TRY(new_vectors(A, k, em_dtype_to_real(A->dtype), &s));
  EM_TRY(new_vectors(A, -1, EM_I32, &info));
  if (compute_uv) {
    EM_TRY(new_like(A, j.m, full_matrices ? j.m : k, A->dtype, &u));
    EM_TRY(new_like(A, full_matrices ? j.n : k, j.n, A->dtype, &vh));
  } else {
    EM_TRY(em_tensor_new(1, (const int64_t[]){0}, A->dtype, A->device, &u));
    EM_TRY(em_tensor_new(1, (const int64_t[]){0}, A->dtype, A->device, &vh));
  }
  if (!is_meta(A)) {
    j.a = a;
    j.b = compute_uv ? u : NULL;
    j.c = compute_uv ? vh : NULL;
    j.work = s;
    j.info = info;
    if (k == 0 && full_matrices && compute_uv) {
      if (u->numel > 0) EM_TRY(set_identity(u, j.m, batches(A)));
      if (vh->numel > 0) EM_TRY(set_identity(vh, j.n, batches(A)));
    }
    EM_TRY(each(&j, batches(A)));
    EM_TRY(raise_errors(info, "linalg.svd",
                                 "The algorithm failed to converge because the input matrix contained non-finite values."));
  }
  *out0 = u;
  *out1 = s;
  *out2 = vh;
  u = s = vh = NULL;
fail:
  em_tensor_release(a);
  em_tensor_release(u);
  em_tensor_release(s);
  em_tensor_release(vh);
  em_tensor_release(info);
  return st;
}
static int eigh_one(const job *j, int64_t i) {
  if (j->n == 0) return 0;
  if (!all_finite(j, i)) {  // as PyTorch: not a number, and no error
    const double nan[2] = {NAN, NAN};
    for (int64_t k = 0; k < (int64_t)j->n * j->n; k++) em_tensor_put(j->a, i * j->n * j->n + k, nan, EM_C128, 1);
    for (int64_t k = 0; k < j->n; k++) em_tensor_put(j->work, i * j->n + k, nan, EM_F64, 1);
    return 0;
  }
  return j->l->syevd[j->t](EM_LAPACK_COLUMNS, j->nrhs ? 'V' : 'N', j->option, j->n, matrix(j->a, i), j->n, vector(j->work, i));
}
em_status n_linalg_eigh(uint64_t ks, em_tensor *A, const char *UPLO, bool compute_v, em_tensor **out0, em_tensor **out1) {
  (void)ks;
  const char uplo = (char)(UPLO[0] & ~0x20);
  job j = {.fn = eigh_one, .option = uplo, .nrhs = compute_v};
  EM_PASS(check_matrix(A, "linalg.eigh", true));
  if (UPLO[0] == 0 || UPLO[1] != 0 || (uplo != 'L' && uplo != 'U'))
    return em_fail(EM_ERR_RUNTIME, "Expected UPLO argument to be 'L' or 'U', but got %s", UPLO);
  EM_PASS(type_of(A, "linalg.eigh", "linalg_eigh_cpu", &j.t));
  EM_PASS(library(&j.l, "linalg.eigh"));
  j.m = j.n = rows_of(A);
  em_status st = EM_OK;
  em_tensor *v = NULL, *w = NULL, *info = NULL;
  EM_TRY(copy_columns(A, &v));
  EM_TRY(new_vectors(A, j.n, em_dtype_to_real(A->dtype), &w));
  EM_TRY(new_vectors(A, -1, EM_I32, &info));
  if (!is_meta(A)) {
    j.a = v;
    j.work = w;
    j.info = info;
    EM_TRY(each(&j, batches(A)));
    EM_TRY(raise_errors(info, "linalg.eigh", "The algorithm failed to converge because the input matrix is ill-conditioned or has "
                                 "too many repeated eigenvalues (error code: %d)."));
  }
  if (!compute_v) {
    EM_CLEAR_TENSOR(&v);
    EM_TRY(em_tensor_new(1, (const int64_t[]){0}, A->dtype, A->device, &v));
  }
  *out0 = w;
  *out1 = v;
  w = v = NULL;
fail:
  em_tensor_release(v);
  em_tensor_release(w);
  em_tensor_release(info);
  return st;
}
