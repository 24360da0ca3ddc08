// formulas_linalg.c: derivatives of native_linalg.yaml. Notation: X' is the conjugate transpose. See formulas.h.
#include "formula_tools.h"

static em_status matmul(em_tensor *a, em_tensor *b, em_tensor **out) { return em_call_matmul(a, b, out); }
static em_status plus(em_tensor *a, em_tensor *b, int sign, em_tensor **out) {
  return sign > 0 ? em_call_add_Tensor(a, b, em_scalar_int(1), out) : em_call_sub_Tensor(a, b, em_scalar_int(1), out);
}
em_status formula_adjoint(em_tensor *t, em_tensor **out) {
  OWN turned = NULL;
  EM_PASS(em_call_transpose_int(t, -2, -1, &turned));
  return formula_conj(turned, out);
}
// a' b
static em_status inner(em_tensor *a, em_tensor *b, em_tensor **out) {
  OWN t = NULL;
  EM_PASS(formula_adjoint(a, &t));
  return matmul(t, b, out);
}
// a b'
static em_status outer(em_tensor *a, em_tensor *b, em_tensor **out) {
  OWN t = NULL;
  EM_PASS(formula_adjoint(b, &t));
  return matmul(a, t, out);
}

// ---- systems ------------------------------------------------------------------------------------------------------------

// The gradient of A, from that of B and the solution: -(gB X') or -(X' gB).
static em_status from_solution(em_tensor *grad_b, em_tensor *x, bool left, em_tensor **out) {
  OWN product = NULL;
  EM_PASS(left ? outer(grad_b, x, &product) : inner(x, grad_b, &product));
  return em_call_neg(product, out);
}
em_status formula_solve_first(em_tensor *grad, em_tensor *A, em_tensor *result, bool left, em_tensor **out) {
  OWN t = NULL;
  OWN grad_b = NULL;
  EM_PASS(formula_adjoint(A, &t));
  EM_PASS(em_call_linalg_solve(t, grad, left, &grad_b));
  return from_solution(grad_b, result, left, out);
}
em_status formula_triangular_first(em_tensor *grad, em_tensor *self, em_tensor *result, bool upper, bool left, bool unitriangular,
                                   em_tensor **out) {
  OWN t = NULL;
  OWN grad_b = NULL;
  OWN whole = NULL;
  EM_PASS(formula_adjoint(self, &t));
  EM_PASS(em_call_linalg_solve_triangular(t, grad, !upper, left, unitriangular, &grad_b));
  EM_PASS(from_solution(grad_b, result, left, &whole));
  return upper ? em_call_triu(whole, unitriangular ? 1 : 0, out) : em_call_tril(whole, unitriangular ? -1 : 0, out);
}
// L'^-1 S L^-1, 2 S being the lower triangle of L' gL and, above it, the adjoint of what is below the diagonal.
em_status formula_cholesky(em_tensor *grad, em_tensor *L_, bool upper, em_tensor **out) {
  OWN L = NULL;
  OWN g = NULL;
  if (upper) {
    EM_PASS(formula_adjoint(L_, &L));
    EM_PASS(formula_adjoint(grad, &g));
  } else {
    L = em_tensor_retain(L_);
    g = em_tensor_retain(grad);
  }
  OWN product = NULL;
  OWN low = NULL;
  OWN strict = NULL;
  OWN above = NULL;
  OWN twice = NULL;
  OWN half = NULL;
  EM_PASS(inner(L, g, &product));
  EM_PASS(em_call_tril(product, 0, &low));
  EM_PASS(em_call_tril(product, -1, &strict));
  EM_PASS(formula_adjoint(strict, &above));
  EM_PASS(plus(low, above, 1, &twice));
  EM_PASS(em_call_mul_Scalar(twice, em_scalar_double(0.5), &half));
  OWN t = NULL;
  OWN x = NULL;
  EM_PASS(formula_adjoint(L, &t));
  EM_PASS(em_call_linalg_solve_triangular(t, half, true, true, false, &x));
  return em_call_linalg_solve_triangular(L, x, false, false, false, out);
}

// ---- determinants ---------------------------------------------------------------------------------------------------------

// g A'^-1 for a number g a matrix. A singular matrix has no such inverse: infinities and nan say so.
static em_status scaled_inverse(em_tensor *g, em_tensor *A, em_tensor **out) {
  OWN t = NULL;
  OWN eye = NULL;
  OWN column = NULL;
  OWN number = NULL;
  OWN right = NULL;
  OWN info = NULL;
  EM_PASS(formula_adjoint(A, &t));
  EM_PASS(em_call_eye(A->sizes[A->ndim - 1], A->dtype, -1, A->device, -1, &eye));
  EM_PASS(em_call_unsqueeze(g, -1, &column));
  EM_PASS(em_call_unsqueeze(column, -1, &number));
  EM_PASS(em_call_mul_Tensor(eye, number, &right));
  return em_call_linalg_solve_ex(t, right, true, false, out, &info);
}
em_status formula_det(em_tensor *grad, em_tensor *A, em_tensor *det, em_tensor **out) {
  OWN conj = NULL;
  OWN g = NULL;
  EM_PASS(formula_conj(det, &conj));
  EM_PASS(em_call_mul_Tensor(grad, conj, &g));
  return scaled_inverse(g, A, out);
}
em_status formula_slogdet(em_tensor *grad_sign, em_tensor *grad_log, em_tensor *A, em_tensor *sign, em_tensor **out) {
  if (!em_dtype_is_complex(A->dtype)) return scaled_inverse(grad_log, A, out);
  OWN conj = NULL;
  OWN product = NULL;
  OWN part = NULL;
  OWN turned = NULL;
  OWN g = NULL;
  EM_PASS(formula_conj(grad_sign, &conj));
  EM_PASS(em_call_mul_Tensor(conj, sign, &product));
  EM_PASS(em_call_imag(product, &part));
  EM_PASS(em_call_mul_Scalar(part, em_scalar_complex(0, 1), &turned));
  EM_PASS(plus(grad_log, turned, -1, &g));
  return scaled_inverse(g, A, out);
}

// ---- QR ---------------------------------------------------------------------------------------------------------------------

// The diagonal of a complex *t, a triangle and its adjoint, made real.
static em_status hermitian(em_tensor **t) {
  if (!em_dtype_is_complex((*t)->dtype)) return EM_OK;
  OWN turned = NULL;
  OWN twice = NULL;
  em_tensor *half;
  EM_PASS(formula_adjoint(*t, &turned));
  EM_PASS(plus(*t, turned, 1, &twice));
  EM_PASS(em_call_mul_Scalar(twice, em_scalar_double(0.5), &half));
  em_tensor_release(*t);
  *t = half;
  return EM_OK;
}
// (gQ + Q S) R'^-1 with M = R gR' - gQ' Q and S its lower triangle, mirrored.
em_status formula_qr(em_tensor *grad_q, em_tensor *grad_r, em_tensor *Q, em_tensor *R, const char *mode, em_tensor **out) {
  if (strcmp(mode, "r") == 0)
    return em_fail(EM_ERR_RUNTIME, "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                   "linalg.qr(A, mode='reduced') if you are going to require gradients through Q.");
  const int64_t m = Q->sizes[Q->ndim - 2], n = R->sizes[R->ndim - 1];
  if (strcmp(mode, "complete") == 0 && m > n)
    return em_fail(EM_ERR_RUNTIME, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
  if (m < n) return em_fail(EM_ERR_NOT_IMPLEMENTED,
                            "the derivative for 'linalg_qr' of matrices with more columns than rows is not implemented.");
  OWN first = NULL;
  OWN second = NULL;
  OWN M = NULL;
  OWN low = NULL;
  OWN strict = NULL;
  OWN mirrored = NULL;
  OWN S = NULL;
  OWN spread = NULL;
  OWN whole = NULL;
  OWN t = NULL;
  EM_PASS(outer(R, grad_r, &first));
  EM_PASS(inner(grad_q, Q, &second));
  EM_PASS(plus(first, second, -1, &M));
  EM_PASS(em_call_tril(M, 0, &low));
  EM_PASS(em_call_tril(M, -1, &strict));
  EM_PASS(formula_adjoint(strict, &mirrored));
  EM_PASS(plus(low, mirrored, 1, &S));
  EM_PASS(hermitian(&S));
  EM_PASS(matmul(Q, S, &spread));
  EM_PASS(plus(grad_q, spread, 1, &whole));
  EM_PASS(formula_adjoint(R, &t));
  return em_call_linalg_solve_triangular(t, whole, false, false, false, out);
}

// ---- eigenvalues and singular values ------------------------------------------------------------------------------------------

// b[j] - a[i] in place i, j, and 1 on the diagonal, where nothing is divided that matters.
static em_status gaps(em_tensor *a, em_tensor **out) {
  OWN row = NULL;
  OWN column = NULL;
  OWN d = NULL;
  OWN eye = NULL;
  EM_PASS(em_call_unsqueeze(a, -2, &row));
  EM_PASS(em_call_unsqueeze(a, -1, &column));
  EM_PASS(plus(row, column, -1, &d));
  EM_PASS(em_call_eye(a->sizes[a->ndim - 1], a->dtype, -1, a->device, -1, &eye));
  return plus(d, eye, 1, out);
}
// a with b on its diagonal instead of its own; a NULL: of zeros.
static em_status with_diagonal(em_tensor *a, em_tensor *b, em_tensor **out) {
  OWN eye = NULL;
  OWN column = NULL;
  OWN line = NULL;
  OWN other = NULL;
  OWN rest = NULL;
  EM_PASS(em_call_eye(b->sizes[b->ndim - 1], b->dtype, -1, b->device, -1, &eye));
  EM_PASS(em_call_unsqueeze(b, -1, &column));
  EM_PASS(em_call_mul_Tensor(eye, column, &line));
  if (a == NULL) return formula_move(&line, out);
  EM_PASS(formula_subtract_from(em_scalar_int(1), eye, &other));
  EM_PASS(em_call_mul_Tensor(a, other, &rest));
  return plus(rest, line, 1, out);
}
em_status formula_eigh(em_tensor *grad_w, em_tensor *grad_v, em_tensor *w, em_tensor *v, bool compute_v, em_tensor **out) {
  if (!compute_v) return em_fail(EM_ERR_RUNTIME, "linalg_eigh: the gradient needs the eigenvectors, which were not computed");
  OWN turned = NULL;
  OWN e = NULL;
  OWN ratio = NULL;
  OWN middle = NULL;
  OWN left = NULL;
  EM_PASS(inner(v, grad_v, &turned));
  EM_PASS(gaps(w, &e));
  EM_PASS(em_call_div_Tensor(turned, e, &ratio));
  EM_PASS(with_diagonal(ratio, grad_w, &middle));
  EM_PASS(matmul(v, middle, &left));
  return outer(left, v, out);
}
// x - x', divided by the gaps between the squares of the singular values.
static em_status skew_over(em_tensor *basis, em_tensor *grad, em_tensor *e, em_tensor **out) {
  OWN x = NULL;
  OWN t = NULL;
  OWN skew = NULL;
  EM_PASS(inner(basis, grad, &x));
  EM_PASS(formula_adjoint(x, &t));
  EM_PASS(plus(x, t, -1, &skew));
  return em_call_div_Tensor(skew, e, out);
}
// What of grad lies outside the basis, over the singular values: (grad - basis basis' grad) / S.
static em_status outside(em_tensor *basis, em_tensor *grad, em_tensor *S, em_tensor **out) {
  OWN along = NULL;
  OWN inside = NULL;
  OWN rest = NULL;
  OWN row = NULL;
  EM_PASS(inner(basis, grad, &along));
  EM_PASS(matmul(basis, along, &inside));
  EM_PASS(plus(grad, inside, -1, &rest));
  EM_PASS(em_call_unsqueeze(S, -2, &row));
  return em_call_div_Tensor(rest, row, out);
}
static em_status svd_middle(em_tensor *grad_u, em_tensor *grad_s, em_tensor *grad_v, em_tensor *U, em_tensor *S, em_tensor *V,
                            em_tensor **out) {
  OWN squares = NULL;
  OWN e = NULL;
  OWN of_u = NULL;
  OWN of_v = NULL;
  OWN row = NULL;
  OWN column = NULL;
  OWN a = NULL;
  OWN b = NULL;
  OWN sum = NULL;
  EM_PASS(em_call_mul_Tensor(S, S, &squares));
  EM_PASS(gaps(squares, &e));
  EM_PASS(skew_over(U, grad_u, e, &of_u));
  EM_PASS(skew_over(V, grad_v, e, &of_v));
  EM_PASS(em_call_unsqueeze(S, -2, &row));
  EM_PASS(em_call_unsqueeze(S, -1, &column));
  EM_PASS(em_call_mul_Tensor(of_u, row, &a));
  EM_PASS(em_call_mul_Tensor(column, of_v, &b));
  EM_PASS(plus(a, b, 1, &sum));
  if (!em_dtype_is_complex(U->dtype)) return with_diagonal(sum, grad_s, out);
  // complex vectors may turn: what the gradient of U says of that stays on the diagonal
  OWN x = NULL;
  OWN line = NULL;
  OWN imag = NULL;
  OWN unit = NULL;
  OWN turn = NULL;
  OWN diagonal = NULL;
  EM_PASS(inner(U, grad_u, &x));
  EM_PASS(em_call_diagonal(x, 0, -2, -1, &line));
  EM_PASS(em_call_imag(line, &imag));
  EM_PASS(em_call_div_Tensor(imag, S, &unit));
  EM_PASS(em_call_mul_Scalar(unit, em_scalar_complex(0, 1), &turn));
  EM_PASS(plus(turn, grad_s, 1, &diagonal));
  return with_diagonal(sum, diagonal, out);
}
// Whether t is zeros that nothing depends on: the gradient of a result that was not used.
static em_status unused(em_tensor *t, bool *is) {
  *is = false;
  if ((t->flags & EM_T_REQUIRES_GRAD) != 0 || t->device.type != EM_DEVICE_CPU) return EM_OK;
  OWN any = NULL;
  em_scalar some;
  EM_PASS(em_call_any(t, &any));
  EM_PASS(em_tensor_item(any, &some));
  *is = em_scalar_to_double(some) == 0;
  return EM_OK;
}
// U diag(g) Vh: the gradient of the singular values alone, which exists also where some are equal or 0.
static em_status of_values(em_tensor *u, em_tensor *grad_s, em_tensor *vh, em_tensor **out) {
  OWN row = NULL;
  OWN scaled = NULL;
  EM_PASS(em_call_unsqueeze(grad_s, -2, &row));
  EM_PASS(em_call_mul_Tensor(u, row, &scaled));
  return matmul(scaled, vh, out);
}
em_status formula_svd(em_tensor *grad_u, em_tensor *grad_s, em_tensor *grad_vh, em_tensor *U, em_tensor *S, em_tensor *Vh,
                      bool full_matrices,
                      bool compute_uv, em_tensor **out) {
  if (!compute_uv) return em_fail(EM_ERR_RUNTIME, "linalg_svd: the gradient needs the singular vectors, which were not computed");
  const int64_t k = S->sizes[S->ndim - 1];
  OWN u = NULL;
  OWN gu = NULL;
  OWN vh = NULL;
  OWN gvh = NULL;
  EM_PASS(em_call_narrow(U, -1, 0, k, &u));
  EM_PASS(em_call_narrow(grad_u, -1, 0, k, &gu));
  EM_PASS(em_call_narrow(Vh, -2, 0, k, &vh));
  EM_PASS(em_call_narrow(grad_vh, -2, 0, k, &gvh));
  (void)full_matrices;  // the vectors beyond the first k have no derivative
  bool no_u, no_v;
  EM_PASS(unused(gu, &no_u));
  EM_PASS(unused(gvh, &no_v));
  if (no_u && no_v) return of_values(u, grad_s, vh, out);
  OWN v = NULL;
  OWN gv = NULL;
  OWN middle = NULL;
  OWN left = NULL;
  OWN whole = NULL;
  OWN beyond_u = NULL;
  OWN beyond_v = NULL;
  OWN more_u = NULL;
  OWN more_v = NULL;
  OWN sum = NULL;
  EM_PASS(formula_adjoint(vh, &v));
  EM_PASS(formula_adjoint(gvh, &gv));
  EM_PASS(svd_middle(gu, grad_s, gv, u, S, v, &middle));
  EM_PASS(matmul(u, middle, &left));
  EM_PASS(matmul(left, vh, &whole));
  EM_PASS(outside(u, gu, S, &beyond_u));
  EM_PASS(outside(v, gv, S, &beyond_v));
  EM_PASS(matmul(beyond_u, vh, &more_u));
  EM_PASS(outer(u, beyond_v, &more_v));
  EM_PASS(plus(whole, more_u, 1, &sum));
  return plus(sum, more_v, 1, out);
}
