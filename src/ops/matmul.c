// matmul.c: matmul and linear over any number of dimensions. Which of mm, mv, bmm they become, and what is viewed, copied or expanded on
// the way, is visible (nodes of the graph, strides, memory in backward), so it follows PyTorch step for step.
#include <string.h>
#include "dispatch/view_entry.h"
#include "gen_ops.h"

static bool wants_grad(const em_tensor *t) {
  if (t->flags & EM_T_REQUIRES_GRAD) return true;
  const em_view_info *view = t->meta == NULL ? NULL : t->meta->view;
  return view != NULL && view->differentiable && (view->base->flags & EM_T_REQUIRES_GRAD) != 0;
}

// Whether the leading dims of t, down to its last two, are one dimension in memory.
static bool leading_dims_join(const em_tensor *t) {
  for (int d = 0; d < t->ndim - 2; d++)
    if (t->strides[d] != t->strides[d + 1] * t->sizes[d + 1]) return false;
  return true;
}

// A batch times one matrix (or vector) can be one large mm. `large` is the batch, turned so that it stands on the left.
// It is always worth it when the matrix wants a gradient: bmm's would be a batch of matrices, summed afterwards.
static bool should_fold(const em_tensor *a, const em_tensor *b, const em_tensor *large) {
  const em_tensor *small = a->ndim >= b->ndim ? b : a;
  if (large->ndim < 3 || small->ndim > 2) return false;
  if (wants_grad(small)) return true;
  if (a->ndim == 2) return false;  // the result would have to be turned back by a copy
  return large->numel == 0 || leading_dims_join(large);
}

static em_status transpose_last(em_tensor *t, em_tensor **out) { return em_call_transpose_int(t, -2, -1, out); }

// `large` (3 or more dims) times `b` (1 or 2) as one mm or mv. `turn`: b stood on the left, both were transposed.
static em_status matmul_folded(em_tensor *large, em_tensor *b, bool turn, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *folded = NULL, *flat = NULL, *shaped = NULL, *turned = NULL;
  int64_t sizes[EM_MAX_DIMS], rows = 1;
  const int n = large->ndim;
  for (int d = 0; d < n - 1; d++) rows *= sizes[d] = large->sizes[d];
  if (b->ndim == 2) sizes[n - 1] = b->sizes[1];
  EM_TRY(em_call_reshape(large, EM_INTS(rows, large->sizes[n - 1]), &folded));
  EM_TRY(b->ndim == 2 ? em_call_mm(folded, b, &flat) : em_call_mv(folded, b, &flat));
  EM_TRY(em_call__unsafe_view(flat, (em_ints){sizes, b->ndim == 2 ? n : n - 1}, &shaped));
  if (turn && b->ndim == 2) {
    EM_TRY(transpose_last(shaped, &turned));
    EM_TRY(em_call_contiguous(turned, EM_FORMAT_CONTIGUOUS, out));
  } else {
    *out = shaped;
    shaped = NULL;
  }
fail:
  em_tensor_release(folded);
  em_tensor_release(flat);
  em_tensor_release(shaped);
  em_tensor_release(turned);
  return st;
}

// t expanded to batch sizes and flattened to three dims.
static em_status as_batch(em_tensor *t, const em_shape *batch, int64_t count, int64_t rows, int64_t cols, em_tensor **out) {
  em_tensor *expanded;
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, batch->sizes, sizeof(int64_t) * (size_t)batch->ndim);
  sizes[batch->ndim] = rows;
  sizes[batch->ndim + 1] = cols;
  EM_PASS(em_call_expand(t, (em_ints){sizes, batch->ndim + 2}, false, &expanded));
  em_status st = em_call_reshape(expanded, EM_INTS(count, rows, cols), out);
  em_tensor_release(expanded);
  return st;
}
// A vector on the right is expanded without the column that it stands for: broadcasting would make it a batch.
static em_status vector_as_batch(em_tensor *t, const em_shape *batch, int64_t count, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *expanded = NULL, *flat = NULL;
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, batch->sizes, sizeof(int64_t) * (size_t)batch->ndim);
  sizes[batch->ndim] = t->sizes[0];
  EM_TRY(em_call_expand(t, (em_ints){sizes, batch->ndim + 1}, false, &expanded));
  EM_TRY(em_call_reshape(expanded, EM_INTS(count, t->sizes[0]), &flat));
  EM_TRY(em_call_unsqueeze(flat, 2, out));
fail:
  em_tensor_release(expanded);
  em_tensor_release(flat);
  return st;
}

static em_status matmul_batched(em_tensor *a, em_tensor *b, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *left = NULL, *right = NULL, *product = NULL, *squeezed = NULL;
  const int64_t n = a->ndim > 1 ? a->sizes[a->ndim - 2] : 1, k = a->sizes[a->ndim - 1];
  const int64_t k2 = b->ndim > 1 ? b->sizes[b->ndim - 2] : b->sizes[0], m = b->ndim > 1 ? b->sizes[b->ndim - 1] : 1;
  em_shape batch = {.ndim = a->ndim > 2 ? a->ndim - 2 : 0};
  memcpy(batch.sizes, a->sizes, sizeof(int64_t) * (size_t)batch.ndim);
  EM_PASS(em_shape_broadcast(&batch, b->ndim > 2 ? b->ndim - 2 : 0, b->sizes));
  int64_t count;
  EM_PASS(em_shape_numel(batch.ndim, batch.sizes, &count));
  EM_TRY(as_batch(a, &batch, count, n, k, &left));
  EM_TRY(b->ndim == 1 ? vector_as_batch(b, &batch, count, &right) : as_batch(b, &batch, count, k2, m, &right));
  EM_TRY(em_call_bmm(left, right, &product));
  if (b->ndim == 1) EM_TRY(em_call_squeeze_dim(product, -1, &squeezed));
  if (a->ndim > 1) batch.sizes[batch.ndim++] = n;
  if (b->ndim > 1) batch.sizes[batch.ndim++] = m;
  EM_TRY(em_call__unsafe_view(squeezed != NULL ? squeezed : product, (em_ints){batch.sizes, batch.ndim}, out));
fail:
  em_tensor_release(left);
  em_tensor_release(right);
  em_tensor_release(product);
  em_tensor_release(squeezed);
  return st;
}

static em_status vector_times_matrix(em_tensor *a, em_tensor *b, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *row = NULL, *product = NULL;
  EM_TRY(em_call_unsqueeze(a, 0, &row));
  EM_TRY(em_call_mm(row, b, &product));
  EM_TRY(em_call_squeeze_dim(product, 0, out));
fail:
  em_tensor_release(row);
  em_tensor_release(product);
  return st;
}

// A batch of one matrix that wants a gradient, broadcast against a real batch, is a matrix.
static bool is_lone_matrix(const em_tensor *t, const em_tensor *other) {
  return t->ndim == 3 && other->ndim == 3 && t->sizes[0] == 1 && other->sizes[0] != 1 && wants_grad(t);
}

em_status c_matmul(em_tensor *self, em_tensor *other, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *lone = NULL, *turned = NULL, *small = NULL;
  em_tensor *a = self, *b = other;
  if (a->ndim == 0 || b->ndim == 0)
    return em_fail(EM_ERR_RUNTIME, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->ndim, b->ndim);
  if (a->ndim == 2 && b->ndim == 2) return em_call_mm(a, b, out);
  if (a->ndim == 1 && b->ndim == 1) return em_call_dot(a, b, out);
  if (a->ndim == 2 && b->ndim == 1) return em_call_mv(a, b, out);
  if (a->ndim == 1 && b->ndim == 2) return vector_times_matrix(a, b, out);
  if (is_lone_matrix(a, b)) {
    EM_TRY(em_call_squeeze_dim(a, 0, &lone));
    a = lone;
  } else if (is_lone_matrix(b, a)) {
    EM_TRY(em_call_squeeze_dim(b, 0, &lone));
    b = lone;
  }
  const bool turn = b->ndim > a->ndim;
  if (turn) EM_TRY(transpose_last(b, &turned));
  if (!should_fold(a, b, turn ? turned : a)) {
    st = matmul_batched(a, b, out);
  } else if (!turn) {
    st = matmul_folded(a, b, false, out);
  } else {
    if (a->ndim == 2) EM_TRY(em_call_t(a, &small));
    st = matmul_folded(turned, small != NULL ? small : a, true, out);
  }
fail:
  em_tensor_release(lone);
  em_tensor_release(turned);
  em_tensor_release(small);
  return st;
}

// out=: a vector times a matrix is a product of one row: out becomes that row, contiguous, before it loses the dim.
static em_status write_product(em_tensor *out, em_tensor *result, bool row) {
  EM_PASS(em_plan_check_out_dtype(result->dtype, out->dtype));
  if (row) {
    EM_PASS(em_plan_resize_out(out, 2, (const int64_t[]){1, result->sizes[0]}, NULL));
    EM_PASS(em_tensor_set_window(out, 1, result->sizes, NULL, out->offset));
  }
  return em_priv_write_out(out, result);
}
em_status c_matmul_out(em_tensor *self, em_tensor *other, em_tensor *out) {
  em_tensor *result;
  EM_PASS(c_matmul(self, other, &result));
  em_status st = write_product(out, result, self->ndim == 1 && other->ndim == 2);
  em_tensor_release(result);
  return st;
}

// --- linear

// A bias that is one row can be added by addmm itself.
static bool is_row(const em_tensor *bias, const em_tensor *input) {
  return bias->ndim == 1 || (bias->ndim == 2 && bias->sizes[0] == 1 && input->ndim == 3);
}

static em_status linear_flattened(em_tensor *input, em_tensor *turned, em_tensor *bias, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *rows = NULL, *product = NULL;
  int64_t sizes[EM_MAX_DIMS], count = 1;
  const int last = input->ndim - 1;
  for (int d = 0; d < last; d++) count *= sizes[d] = input->sizes[d];
  EM_TRY(em_call_reshape(input, EM_INTS(count, input->sizes[last]), &rows));
  EM_TRY(em_call_addmm(bias, rows, turned, em_scalar_int(1), em_scalar_int(1), &product));
  sizes[last] = product->sizes[1];
  EM_TRY(em_call_view(product, (em_ints){sizes, input->ndim}, out));
fail:
  em_tensor_release(rows);
  em_tensor_release(product);
  return st;
}

em_status c_linear(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *turned = NULL, *product = NULL;
  if (input->ndim == 0 || weight->ndim == 0)
    return em_fail(EM_ERR_RUNTIME, "both arguments to linear need to be at least 1D, but they are %dD and %dD", input->ndim, weight->ndim);
  EM_TRY(em_call_t(weight, &turned));
  if (bias == NULL) {
    st = em_call_matmul(input, turned, out);
  } else if (input->ndim == 2) {
    st = em_call_addmm(bias, input, turned, em_scalar_int(1), em_scalar_int(1), out);
  } else if (em_tensor_is_contiguous(input) && is_row(bias, input)) {
    st = linear_flattened(input, turned, bias, out);
  } else {
    EM_TRY(em_call_matmul(input, turned, &product));
    st = em_call_add_Tensor(product, bias, em_scalar_int(1), out);
  }
fail:
  em_tensor_release(turned);
  em_tensor_release(product);
  return st;
}
em_status c_linear_out(em_tensor *input, em_tensor *weight, em_tensor *bias, em_tensor *out) {
  em_status st = EM_OK;
  em_tensor *turned = NULL, *product = NULL, *result = NULL;
  if (bias == NULL || input->ndim == 2) {
    EM_TRY(c_linear(input, weight, bias, &result));
  } else {  // the bias is added to a rounded product here
    EM_TRY(em_call_t(weight, &turned));
    EM_TRY(c_matmul(input, turned, &product));
    EM_TRY(em_call_add_Tensor(product, bias, em_scalar_int(1), &result));
  }
  st = write_product(out, result, input->ndim == 1 && weight->ndim == 2);
fail:
  em_tensor_release(turned);
  em_tensor_release(product);
  em_tensor_release(result);
  return st;
}
