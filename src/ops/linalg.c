// linalg.c: linear algebra made of factorisations, and norms of matrices.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "contract.h"
#include "gen_ops.h"

static em_status t_(em_tensor *a, em_tensor **out) { return em_call_transpose_int(a, -2, -1, out); }

// ---- solve and inverse ------------------------------------------------------------------------------------------------------

// B is a batch of vectors when its sizes are A's without the last.
static bool is_vector(const em_tensor *A, const em_tensor *B) {
  return B->ndim == 1 || (B->ndim == A->ndim - 1 && em_shape_equal(B->ndim, B->sizes, A->ndim - 1, A->sizes));
}
static em_status check_system(const em_tensor *A, const em_tensor *B, bool left, bool vector) {
  EM_PASS(em_priv_check_square(A, "linalg.solve"));
  if (em_dtype_is_integral(A->dtype))
    return em_fail(EM_ERR_RUNTIME, "linalg.solve: Expected a floating point or complex tensor as input. Got %s",
                   em_dtype_scalar_name(A->dtype));
  if (A->dtype != B->dtype)
    return em_fail(EM_ERR_RUNTIME, "linalg.solve: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead",
                   em_dtype_scalar_name(A->dtype), em_dtype_scalar_name(B->dtype));
  if (B->ndim < 1) return em_fail(EM_ERR_RUNTIME, "linalg.solve: The input tensor B must have at least 1 dimension.");
  if (vector && !left)
    return em_fail(EM_ERR_RUNTIME, "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                   "linalg.solve is equivalent to B / A.squeeze(-1)");
  const int64_t n = A->sizes[A->ndim - 1], rows = vector ? B->sizes[B->ndim - 1] : B->sizes[B->ndim - 2],
                columns = vector ? 1 : B->sizes[B->ndim - 1];
  if ((left ? rows : columns) != n)
    return em_fail(EM_ERR_RUNTIME, "linalg.solve: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)",
                   left ? "AX = B" : "XA = B", (long long)n, (long long)n, (long long)rows, (long long)columns);
  return EM_OK;
}
// t with its leading dims expanded to the batch shape.
static em_status in_batch(em_tensor *t, const em_shape *batch, em_tensor **out) {
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d < batch->ndim; d++) sizes[d] = batch->sizes[d];
  sizes[batch->ndim] = t->sizes[t->ndim - 2];
  sizes[batch->ndim + 1] = t->sizes[t->ndim - 1];
  if (em_shape_equal(t->ndim, t->sizes, batch->ndim + 2, sizes)) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  return em_call_expand(t, (em_ints){sizes, batch->ndim + 2}, false, out);
}
// The solutions that are the matrices' only columns; a batch of them lies by columns, as PyTorch's does.
static em_status vectors_of(em_tensor *x, bool by_columns, em_tensor **out) {
  if (!by_columns || x->ndim < 3) return em_call_squeeze_dim(x, -1, out);
  em_status st = EM_OK;
  em_tensor *v = NULL, *turned = NULL, *dense = NULL;
  EM_TRY(em_call_squeeze_dim(x, -1, &v));
  EM_TRY(t_(v, &turned));
  EM_TRY(em_call_clone(turned, EM_FORMAT_CONTIGUOUS, &dense));
  EM_TRY(t_(dense, out));
fail:
  em_tensor_release(v);
  em_tensor_release(turned);
  em_tensor_release(dense);
  return st;
}
em_status c_linalg_solve_ex(em_tensor *A, em_tensor *B, bool left, bool check_errors, em_tensor **out0, em_tensor **out1) {
  const bool vector = is_vector(A, B);
  EM_PASS(check_system(A, B, left, vector));
  em_status st = EM_OK;
  em_tensor *b = NULL, *wide_a = NULL, *wide_b = NULL, *x = NULL, *lu = NULL, *pivots = NULL, *info = NULL;
  em_shape batch = {.ndim = A->ndim - 2};
  for (int d = 0; d < batch.ndim; d++) batch.sizes[d] = A->sizes[d];
  if (vector) EM_TRY(em_call_unsqueeze(B, -1, &b));
  else b = em_tensor_retain(B);
  EM_TRY(em_shape_broadcast(&batch, b->ndim - 2, b->sizes));
  EM_TRY(in_batch(A, &batch, &wide_a));
  EM_TRY(in_batch(b, &batch, &wide_b));
  EM_TRY(em_call__linalg_solve_ex(wide_a, wide_b, left, check_errors, &x, &lu, &pivots, &info));
  if (vector) EM_TRY(vectors_of(x, left, out0));
  else *out0 = em_tensor_retain(x);
  *out1 = em_tensor_retain(info);
fail:;
  em_tensor *const all[] = {b, wide_a, wide_b, x, lu, pivots, info};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
em_status c_linalg_solve(em_tensor *A, em_tensor *B, bool left, em_tensor **out) {
  em_tensor *info = NULL;
  em_status st = em_call_linalg_solve_ex(A, B, left, true, out, &info);
  em_tensor_release(info);
  return st;
}
em_status c_linalg_inv(em_tensor *A, em_tensor **out) {
  em_tensor *info = NULL;
  em_status st = em_call_linalg_inv_ex(A, true, out, &info);
  em_tensor_release(info);
  return st;
}
em_status c_linalg_cholesky(em_tensor *self, bool upper, em_tensor **out) {
  em_tensor *info = NULL;
  em_status st = em_call_linalg_cholesky_ex(self, upper, true, out, &info);
  em_tensor_release(info);
  return st;
}
em_status c_linalg_lu_factor(em_tensor *A, bool pivot, em_tensor **out0, em_tensor **out1) {
  em_tensor *info = NULL;
  em_status st = em_call_linalg_lu_factor_ex(A, pivot, true, out0, out1, &info);
  em_tensor_release(info);
  static const char name[] = "torch.linalg.lu_factor_ex:";
  char words[512];
  if (st == EM_OK || strncmp(em_error_message(), name, sizeof name - 1) != 0) return st;
  snprintf(words, sizeof words, "%s", em_error_message() + sizeof name - 1);
  return em_fail(EM_ERR_RUNTIME, "torch.linalg.lu_factor:%s", words);
}

// ---- determinants --------------------------------------------------------------------------------------------------------------

// LU, its diagonal, and whether the row exchanges turn the sign (1 or -1, of A's dtype).
static em_status factor(em_tensor *A, const char *name, em_tensor **lu, em_tensor **pivots, em_tensor **diagonal, em_tensor **sign) {
  EM_PASS(em_priv_check_square(A, name));
  if (em_dtype_is_integral(A->dtype))
    return em_fail(EM_ERR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s", name,
                   em_dtype_scalar_name(A->dtype));
  em_status st = EM_OK;
  em_tensor *info = NULL, *straight = NULL, *moved = NULL, *count = NULL, *odd = NULL, *twice = NULL, *whole = NULL;
  EM_TRY(em_call_linalg_lu_factor_ex(A, true, false, lu, pivots, &info));
  EM_TRY(em_call_diagonal(*lu, 0, -2, -1, diagonal));
  EM_TRY(em_call_arange_start_step(em_scalar_int(1), em_scalar_int(A->sizes[A->ndim - 1] + 1), em_scalar_int(1), EM_I32, -1, A->device, -1,
                                   &straight));
  EM_TRY(em_call_ne_Tensor(*pivots, straight, &moved));
  EM_TRY(em_call_sum_dim_IntList(moved, EM_INTS(-1), false, EM_DTYPE_NONE, &count));
  EM_TRY(em_call_remainder_Scalar(count, em_scalar_int(2), &odd));
  EM_TRY(em_call_mul_Scalar(odd, em_scalar_int(-2), &twice));
  EM_TRY(em_call_add_Scalar(twice, em_scalar_int(1), em_scalar_int(1), &whole));
  EM_TRY(em_call_to_dtype(whole, A->dtype, false, false, EM_FORMAT_NONE, sign));
fail:;
  em_tensor *const all[] = {info, straight, moved, count, odd, twice, whole};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
em_status c__linalg_det(em_tensor *A, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  em_status st = EM_OK;
  em_tensor *lu = NULL, *pivots = NULL, *diagonal = NULL, *sign = NULL, *product = NULL;
  EM_TRY(factor(A, "linalg.det", &lu, &pivots, &diagonal, &sign));
  EM_TRY(em_call_prod_dim_int(diagonal, -1, false, EM_DTYPE_NONE, &product));
  EM_TRY(em_call_mul_Tensor(product, sign, out0));
  *out1 = em_tensor_retain(lu);
  *out2 = em_tensor_retain(pivots);
fail:;
  em_tensor *const all[] = {lu, pivots, diagonal, sign, product};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
em_status c_linalg_det(em_tensor *A, em_tensor **out) {
  em_tensor *lu = NULL, *pivots = NULL;
  em_status st = em_call__linalg_det(A, out, &lu, &pivots);
  em_tensor_release(lu);
  em_tensor_release(pivots);
  return st;
}
em_status c__linalg_slogdet(em_tensor *A, em_tensor **out0, em_tensor **out1, em_tensor **out2, em_tensor **out3) {
  em_status st = EM_OK;
  em_tensor *lu = NULL, *pivots = NULL, *diagonal = NULL, *turns = NULL, *signs = NULL, *product = NULL, *sizes = NULL, *logs = NULL,
            *sign = NULL, *total = NULL;
  EM_TRY(factor(A, "linalg.slogdet", &lu, &pivots, &diagonal, &turns));
  EM_TRY(em_call_sgn(diagonal, &signs));
  EM_TRY(em_call_prod_dim_int(signs, -1, false, EM_DTYPE_NONE, &product));
  EM_TRY(em_call_abs(diagonal, &sizes));
  EM_TRY(em_call_log(sizes, &logs));
  EM_TRY(em_call_mul_Tensor(product, turns, &sign));
  EM_TRY(em_call_sum_dim_IntList(logs, EM_INTS(-1), false, EM_DTYPE_NONE, &total));
  *out0 = em_tensor_retain(sign);
  *out1 = em_tensor_retain(total);
  *out2 = em_tensor_retain(lu);
  *out3 = em_tensor_retain(pivots);
fail:;
  em_tensor *const all[] = {lu, pivots, diagonal, turns, signs, product, sizes, logs, sign, total};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
em_status c_linalg_slogdet(em_tensor *A, em_tensor **out0, em_tensor **out1) {
  em_tensor *lu = NULL, *pivots = NULL;
  em_status st = em_call__linalg_slogdet(A, out0, out1, &lu, &pivots);
  em_tensor_release(lu);
  em_tensor_release(pivots);
  return st;
}
em_status c_logdet(em_tensor *self, em_tensor **out) {
  EM_PASS(em_priv_check_square(self, "logdet"));
  em_status st = EM_OK;
  em_tensor *sign = NULL, *size = NULL, *log = NULL, *negative = NULL;
  EM_TRY(c_linalg_slogdet(self, &sign, &size));
  if (em_dtype_is_complex(self->dtype)) {
    EM_TRY(em_call_log(sign, &log));
    EM_TRY(em_call_add_Tensor(log, size, em_scalar_int(1), out));
  } else {
    EM_TRY(em_call_eq_Scalar(sign, em_scalar_int(-1), &negative));
    EM_TRY(em_call_where_ScalarSelf(negative, em_scalar_double(NAN), size, out));
  }
fail:
  em_tensor_release(sign);
  em_tensor_release(size);
  em_tensor_release(log);
  em_tensor_release(negative);
  return st;
}

// ---- singular values and eigenvalues -----------------------------------------------------------------------------------------------

em_status c_linalg_svd(em_tensor *A, bool full_matrices, const char *driver, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  return em_call__linalg_svd(A, full_matrices, true, driver, out0, out1, out2);
}
// The vectors are wanted for the gradient.
em_status c_linalg_svdvals(em_tensor *A, const char *driver, em_tensor **out) {
  em_tensor *u = NULL, *vh = NULL;
  em_status st = em_call__linalg_svd(A, false, (A->flags & EM_T_REQUIRES_GRAD) != 0, driver, &u, out, &vh);
  em_tensor_release(u);
  em_tensor_release(vh);
  return st;
}
em_status c_svd(em_tensor *self, bool some, bool compute_uv, em_tensor **out0, em_tensor **out1, em_tensor **out2) {
  EM_PASS(self->ndim >= 2 ? EM_OK : em_fail(EM_ERR_RUNTIME, "linalg.svd: input should have at least 2 dimensions, but has %d dimensions "
                                            "instead", self->ndim));
  em_status st = EM_OK;
  em_tensor *u = NULL, *s = NULL, *vh = NULL, *v = NULL;
  EM_TRY(em_call__linalg_svd(self, !some, compute_uv, NULL, &u, &s, &vh));
  if (compute_uv) {
    EM_TRY(t_(vh, &v));
    EM_TRY(em_priv_resolved_conj(v, out2));
    *out0 = em_tensor_retain(u);
  } else {
    int64_t sizes[EM_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++) sizes[d] = self->sizes[d];
    const int64_t m = sizes[self->ndim - 2], n = sizes[self->ndim - 1];
    sizes[self->ndim - 1] = m;
    EM_TRY(em_call_zeros((em_ints){sizes, self->ndim}, self->dtype, -1, self->device, -1, &v));
    sizes[self->ndim - 2] = sizes[self->ndim - 1] = n;
    EM_TRY(em_call_zeros((em_ints){sizes, self->ndim}, self->dtype, -1, self->device, -1, out2));
    *out0 = em_tensor_retain(v);
  }
  *out1 = em_tensor_retain(s);
fail:
  em_tensor_release(u);
  em_tensor_release(s);
  em_tensor_release(vh);
  em_tensor_release(v);
  return st;
}
em_status c_linalg_eigh(em_tensor *self, const char *UPLO, em_tensor **out0, em_tensor **out1) {
  return em_call__linalg_eigh(self, UPLO, true, out0, out1);
}
em_status c_linalg_eigvalsh(em_tensor *self, const char *UPLO, em_tensor **out) {
  em_tensor *v = NULL;
  em_status st = em_call__linalg_eigh(self, UPLO, (self->flags & EM_T_REQUIRES_GRAD) != 0, out, &v);
  em_tensor_release(v);
  return st;
}

// ---- powers of matrices -----------------------------------------------------------------------------------------------------

static em_status identity_like(em_tensor *t, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *eye = NULL, *wide = NULL;
  EM_TRY(em_call_eye(t->sizes[t->ndim - 1], t->dtype, -1, t->device, -1, &eye));
  EM_TRY(em_call_expand(eye, (em_ints){t->sizes, t->ndim}, false, &wide));
  EM_TRY(em_call_clone(wide, EM_FORMAT_CONTIGUOUS, out));
fail:
  em_tensor_release(eye);
  em_tensor_release(wide);
  return st;
}
// The identity, written over a copy of t so that it depends on t, with a gradient of 0.
static em_status zeroth_power(em_tensor *t, em_tensor **out) {
  em_tensor *eye = NULL, *copy = NULL;
  em_status st = identity_like(t, &eye);
  if (st == EM_OK) st = em_call_clone(t, EM_FORMAT_CONTIGUOUS, &copy);
  if (st == EM_OK) st = em_call_copy_(copy, eye, false);
  em_tensor_release(eye);
  if (st != EM_OK) em_tensor_release(copy);
  else *out = copy;
  return st;
}
static em_status raised(em_tensor *base, uint64_t n, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *power = em_tensor_retain(base), *result = NULL, *next;
  for (;; n >>= 1) {
    if (n & 1) {
      if (result == NULL) {
        result = em_tensor_retain(power);
      } else {
        EM_TRY(em_call_matmul(result, power, &next));
        em_tensor_release(result);
        result = next;
      }
    }
    if (n <= 1) break;
    EM_TRY(em_call_matmul(power, power, &next));
    em_tensor_release(power);
    power = next;
  }
  *out = result;
  result = NULL;
fail:
  em_tensor_release(power);
  em_tensor_release(result);
  return st;
}
em_status c_linalg_matrix_power(em_tensor *self, int64_t n, em_tensor **out) {
  EM_PASS(em_priv_check_square(self, "linalg.matrix_power"));
  if (self->dtype == EM_BOOL || em_dtype_is_integral(self->dtype))
    if (n < 0)
      return em_fail(EM_ERR_RUNTIME, "linalg.inv: Expected a floating point or complex tensor as input. Got %s",
                     em_dtype_scalar_name(self->dtype));
  if (n == 0) return zeroth_power(self, out);
  if (n == 1) return em_call_clone(self, EM_FORMAT_NONE, out);
  if (n > 0) return raised(self, (uint64_t)n, out);
  em_tensor *inverse;
  EM_PASS(em_call_linalg_inv(self, &inverse));
  em_status st = raised(inverse, -(uint64_t)n, out);
  em_tensor_release(inverse);
  return st;
}
em_status em_priv_check_square(const em_tensor *a, const char *name) {
  if (a->ndim < 2) return em_fail(EM_ERR_RUNTIME, "%s: The input tensor A must have at least 2 dimensions.", name);
  if (a->sizes[a->ndim - 1] == a->sizes[a->ndim - 2]) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", name,
                 (long long)a->sizes[a->ndim - 2], (long long)a->sizes[a->ndim - 1]);
}

// ---- norms of matrices ---------------------------------------------------------------------------------------------------------------

static em_status check_norm(em_tensor *self, em_ints dim, int64_t *d) {
  if (self->ndim < 2) return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
  if (dim.n != 2) {
    char text[256];
    const char *shown = em_shape_format((int)(dim.n < 0 ? 0 : dim.n > 20 ? 20 : dim.n), dim.p, text, sizeof text);
    return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: dim must be a 2-tuple. Got %.*s", (int)strlen(shown) - 2, shown + 1);
  }
  EM_PASS(em_shape_wrap_dim(dim.p[0], self->ndim, true, &d[0]));
  EM_PASS(em_shape_wrap_dim(dim.p[1], self->ndim, true, &d[1]));
  if (em_dtype_is_integral(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got %s",
                   em_dtype_scalar_name(self->dtype));
  if (d[0] != d[1]) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: dims must be different. Got (%lld, %lld)", (long long)dim.p[0], (long long)dim.p[1]);
}
// The singular values of the matrices in dims d, in the last dim; the others keep their order.
static em_status singular_values(em_tensor *self, const int64_t *d, em_tensor **out) {
  em_tensor *moved;
  EM_PASS(em_call_movedim_intlist(self, (em_ints){d, 2}, EM_INTS(-2, -1), &moved));
  em_status st = em_call_linalg_svdvals(moved, NULL, out);
  em_tensor_release(moved);
  return st;
}
// Puts dims of size 1 back where the matrix was.
static em_status kept(em_tensor *t, const int64_t *d, bool keepdim, em_tensor **out) {
  if (!keepdim) {
    *out = em_tensor_retain(t);
    return EM_OK;
  }
  em_tensor *one;
  EM_PASS(em_call_unsqueeze(t, d[0] < d[1] ? d[0] : d[1], &one));
  em_status st = em_call_unsqueeze(one, d[0] < d[1] ? d[1] : d[0], out);
  em_tensor_release(one);
  return st;
}
em_status c_linalg_matrix_norm(em_tensor *self, em_scalar ord, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  int64_t d[2];
  EM_PASS(check_norm(self, dim, d));
  const double p = em_scalar_to_double(ord), size = fabs(p);
  if (size != 1 && size != 2 && !isinf(size)) return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: Order %g not supported.", p);
  em_status st = EM_OK;
  em_tensor *x = NULL, *values = NULL, *best = NULL;
  EM_TRY(em_call_to_dtype(self, dtype == EM_DTYPE_NONE ? self->dtype : dtype, false, false, EM_FORMAT_NONE, &x));
  if (size == 2) {
    EM_TRY(singular_values(x, d, &values));
    EM_TRY(p > 0 ? em_call_amax(values, EM_INTS(-1), false, &best) : em_call_amin(values, EM_INTS(-1), false, &best));
    EM_TRY(kept(best, d, keepdim, out));
  } else {  // sums of columns (1) or rows (inf); their extreme
    const int64_t first = size == 1 ? d[0] : d[1], second = size == 1 ? d[1] : d[0];
    const int64_t then = !keepdim && first < second ? second - 1 : second;
    EM_TRY(em_call_linalg_vector_norm(x, em_scalar_int(1), EM_INTS(first), keepdim, EM_DTYPE_NONE, &values));
    EM_TRY(p > 0 ? em_call_amax(values, EM_INTS(then), keepdim, out) : em_call_amin(values, EM_INTS(then), keepdim, out));
  }
fail:
  em_tensor_release(x);
  em_tensor_release(values);
  em_tensor_release(best);
  return st;
}
em_status c_linalg_matrix_norm_str(em_tensor *self, const char *ord, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  int64_t d[2];
  EM_PASS(check_norm(self, dim, d));
  if (strcmp(ord, "fro") == 0) return em_call_linalg_vector_norm(self, em_scalar_int(2), (em_ints){d, 2}, keepdim, dtype, out);
  if (strcmp(ord, "nuc") != 0) return em_fail(EM_ERR_RUNTIME, "linalg.matrix_norm: Order %s not supported.", ord);
  em_status st = EM_OK;
  em_tensor *x = NULL, *values = NULL, *sum = NULL;
  EM_TRY(em_call_to_dtype(self, dtype == EM_DTYPE_NONE ? self->dtype : dtype, false, false, EM_FORMAT_NONE, &x));
  EM_TRY(singular_values(x, d, &values));
  EM_TRY(em_call_sum_dim_IntList(values, EM_INTS(-1), false, EM_DTYPE_NONE, &sum));
  EM_TRY(kept(sum, d, keepdim, out));
fail:
  em_tensor_release(x);
  em_tensor_release(values);
  em_tensor_release(sum);
  return st;
}
// Vectors, or matrices: two dims named, or none named and a matrix given with an order.
em_status c_linalg_norm(em_tensor *self, em_scalar ord, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  const bool given = em_scalar_given(ord);
  if (dim.n >= 0 && dim.n != 1 && dim.n != 2)
    return em_fail(EM_ERR_RUNTIME, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %lld", (long long)dim.n);
  if (dim.n < 0 && given && self->ndim != 1 && self->ndim != 2)
    return em_fail(EM_ERR_RUNTIME, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", self->ndim);
  if (given && (dim.n == 2 || (dim.n < 0 && self->ndim == 2)))
    return em_call_linalg_matrix_norm(self, ord, dim.n < 0 ? EM_INTS(0, 1) : dim, keepdim, dtype, out);
  return em_call_linalg_vector_norm(self, given ? ord : em_scalar_int(2), dim, keepdim, dtype, out);
}
em_status c_linalg_norm_str(em_tensor *self, const char *ord, em_ints dim, bool keepdim, int dtype, em_tensor **out) {
  if (dim.n < 0 && self->ndim != 2)
    return em_fail(EM_ERR_RUNTIME, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", self->ndim);
  return em_call_linalg_matrix_norm_str_ord(self, ord, dim.n < 0 ? EM_INTS(0, 1) : dim, keepdim, dtype, out);
}

// ---- distances between rows -----------------------------------------------------------------------------------------------------------

static em_status check_rows(const em_tensor *x1, const em_tensor *x2, double p) {
  const em_tensor *x[2] = {x1, x2};
  for (int i = 0; i < 2; i++) {
    if (!em_dtype_is_float(x[i]->dtype))
      return em_fail(EM_ERR_RUNTIME, "cdist only supports floating-point dtypes, X%d got: %s", i + 1, em_dtype_scalar_name(x[i]->dtype));
    if (x[i]->ndim < 2) return em_fail(EM_ERR_RUNTIME, "cdist only supports at least 2D tensors, X%d got: %dD", i + 1, x[i]->ndim);
  }
  const int64_t a = x1->sizes[x1->ndim - 1], b = x2->sizes[x2->ndim - 1];
  if (a != b)
    return em_fail(EM_ERR_RUNTIME, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld", (long long)a, (long long)b);
  if (x1->dtype != x2->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(x1->dtype),
                   em_dtype_scalar_name(x2->dtype));
  return p >= 0 ? EM_OK : em_fail(EM_ERR_RUNTIME, "cdist only supports non-negative p values");
}
em_status c_cdist(em_tensor *x1, em_tensor *x2, double p, em_opt_int compute_mode, em_tensor **out) {
  EM_PASS(check_rows(x1, x2, p));
  if (compute_mode.has && (compute_mode.v < 0 || compute_mode.v > 2))
    return em_fail(EM_ERR_RUNTIME, "possible modes: 0, 1, 2, but was: %lld", (long long)compute_mode.v);
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL, *d = NULL;
  EM_TRY(em_call_unsqueeze(x1, -2, &a));
  EM_TRY(em_call_unsqueeze(x2, -3, &b));
  EM_TRY(em_call_sub_Tensor(a, b, em_scalar_int(1), &d));
  EM_TRY(em_call_linalg_vector_norm(d, em_scalar_double(p), EM_INTS(-1), false, EM_DTYPE_NONE, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(d);
  return st;
}
