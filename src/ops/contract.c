// contract.c: products made of mm, bmm and mul: tensordot, inner, kron, chains of matrices.
#include "contract.h"
#include "gen_ops.h"

em_status em_priv_resolved_conj(em_tensor *t, em_tensor **out) {
  if (em_dtype_is_complex(t->dtype)) return em_call_conj_physical(t, out);
  *out = em_tensor_retain(t);
  return EM_OK;
}

// ---- tensordot ----------------------------------------------------------------------------------------------------------

// Wraps dims and marks them; each once.
static em_status mark(em_ints dims, int ndim, int64_t *wrapped, bool *marked) {
  for (int d = 0; d < ndim; d++) marked[d] = false;
  for (int64_t i = 0; i < dims.n; i++) {
    EM_PASS(em_shape_wrap_dim(dims.p[i], ndim, true, &wrapped[i]));
    if (ndim == 0) continue;
    if (marked[wrapped[i]])
      return em_fail(EM_ERR_RUNTIME, "dim %lld appears multiple times in the list of dims", (long long)wrapped[i]);
    marked[wrapped[i]] = true;
  }
  return EM_OK;
}
// A contracted dim of size 1 meets the other's sum.
static em_status match_sizes(em_tensor **a, em_tensor **b, const int64_t *da, const int64_t *db, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t x = (*a)->sizes[da[i]], y = (*b)->sizes[db[i]];
    if (x == y) continue;
    if (x != 1 && y != 1)
      return em_fail(EM_ERR_RUNTIME, "contracted dimensions need to match, but first has size %lld in dim %lld and second has size %lld in "
                     "dim %lld", (long long)x, (long long)da[i], (long long)y, (long long)db[i]);
    em_tensor **wide = x == 1 ? b : a, *summed;
    EM_PASS(em_call_sum_dim_IntList(*wide, EM_INTS(x == 1 ? db[i] : da[i]), true, EM_DTYPE_NONE, &summed));
    em_tensor_release(*wide);
    *wide = summed;
  }
  return EM_OK;
}
// t as a matrix: its free dims by its contracted ones, or the other way round.
static em_status as_matrix(em_tensor *t, const bool *contracted, const int64_t *dims, int64_t n, bool free_first, int64_t *free_sizes,
                           int *nfree, em_tensor **out) {
  int64_t order[EM_MAX_DIMS], rows = 1, columns = 1;
  int k = 0, count = 0;
  for (int64_t i = 0; i < n && !free_first; i++) order[k++] = dims[i];
  for (int d = 0; d < t->ndim; d++)
    if (!contracted[d]) {
      order[k++] = d;
      free_sizes[count++] = t->sizes[d];
      rows *= t->sizes[d];
    }
  for (int64_t i = 0; i < n; i++) {
    if (free_first) order[k++] = dims[i];
    columns *= t->sizes[dims[i]];
  }
  *nfree = count;
  em_tensor *turned;
  EM_PASS(em_call_permute(t, (em_ints){order, k}, &turned));
  em_status st = em_call_reshape(turned, free_first ? EM_INTS(rows, columns) : EM_INTS(columns, rows), out);
  em_tensor_release(turned);
  return st;
}
em_status c_tensordot(em_tensor *self, em_tensor *other, em_ints dims_self, em_ints dims_other, em_tensor **out) {
  if (dims_self.n != dims_other.n) return em_fail(EM_ERR_RUNTIME, "both dimension lists should have same length");
  if (self->dtype != other->dtype)
    return em_fail(EM_ERR_RUNTIME, "both inputs should have same dtype");
  if (dims_self.n > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "tensordot: too many dims");
  int64_t da[EM_MAX_DIMS], db[EM_MAX_DIMS], sizes[2 * EM_MAX_DIMS];
  bool in_a[EM_MAX_DIMS], in_b[EM_MAX_DIMS];
  EM_PASS(mark(dims_self, self->ndim, da, in_a));
  EM_PASS(mark(dims_other, other->ndim, db, in_b));
  const int64_t n = self->ndim == 0 || other->ndim == 0 ? 0 : dims_self.n;
  em_status st = EM_OK;
  em_tensor *a = em_tensor_retain(self), *b = em_tensor_retain(other), *rows = NULL, *columns = NULL, *product = NULL;
  int na, nb;
  EM_TRY(match_sizes(&a, &b, da, db, n));
  if (self->ndim + other->ndim - 2 * n > EM_MAX_DIMS) EM_FAIL(EM_ERR_RUNTIME, "tensordot: the result has more than 64 dimensions");
  EM_TRY(as_matrix(a, in_a, da, n, true, sizes, &na, &rows));
  EM_TRY(as_matrix(b, in_b, db, n, false, sizes + na, &nb, &columns));
  EM_TRY(em_call_mm(rows, columns, &product));
  EM_TRY(em_call_reshape(product, (em_ints){sizes, na + nb}, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(rows);
  em_tensor_release(columns);
  em_tensor_release(product);
  return st;
}
em_status c_inner(em_tensor *self, em_tensor *other, em_tensor **out) {
  if (self->ndim == 0 || other->ndim == 0) return em_call_mul_Tensor(self, other, out);
  if (self->sizes[self->ndim - 1] != other->sizes[other->ndim - 1]) {
    char a[256], b[256];
    return em_fail(EM_ERR_RUNTIME, "inner() the last dimension must match on both input tensors but got shapes %s and %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a), em_shape_format(other->ndim, other->sizes, b, sizeof b));
  }
  return em_call_tensordot(self, other, EM_INTS(-1), EM_INTS(-1), out);
}

// ---- kron -----------------------------------------------------------------------------------------------------------------

em_status c_kron(em_tensor *self, em_tensor *other, em_tensor **out) {
  const int n = self->ndim > other->ndim ? self->ndim : other->ndim;
  if (2 * n > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "kron: operands have more than 32 dimensions");
  int64_t wide_a[EM_MAX_DIMS], wide_b[EM_MAX_DIMS], sizes[EM_MAX_DIMS];
  for (int d = 0; d < n; d++) {
    const int i = d - (n - self->ndim), k = d - (n - other->ndim);
    wide_a[2 * d] = i < 0 ? 1 : self->sizes[i];
    wide_a[2 * d + 1] = wide_b[2 * d] = 1;
    wide_b[2 * d + 1] = k < 0 ? 1 : other->sizes[k];
    if (__builtin_mul_overflow(wide_a[2 * d], wide_b[2 * d + 1], &sizes[d])) return em_fail(EM_ERR_RUNTIME,
        "kron: the result is too large");
  }
  em_status st = EM_OK;
  em_tensor *a = NULL, *b = NULL, *product = NULL;
  EM_TRY(em_call_reshape(self, (em_ints){wide_a, 2 * n}, &a));
  EM_TRY(em_call_reshape(other, (em_ints){wide_b, 2 * n}, &b));
  EM_TRY(em_call_mul_Tensor(a, b, &product));
  EM_TRY(em_call_reshape(product, (em_ints){sizes, n}, out));
fail:
  em_tensor_release(a);
  em_tensor_release(b);
  em_tensor_release(product);
  return st;
}

// ---- chains of matrices ---------------------------------------------------------------------------------------------------

typedef struct chain {
  em_tensors t;
  int64_t *split;  // [n * n]: where the cheapest order of i..j divides it
} chain;

// The cheapest order by dynamic programming over the sizes. cost: [n * n].
static void cheapest(const chain *c, double *cost) {
  const int64_t n = c->t.n;
  for (int64_t i = 0; i < n; i++) cost[i * n + i] = 0;
  for (int64_t length = 1; length < n; length++)
    for (int64_t i = 0; i + length < n; i++) {
      const int64_t j = i + length;
      cost[i * n + j] = __builtin_inf();
      for (int64_t k = i; k < j; k++) {
        const double work = (double)c->t.p[i]->sizes[0] * (double)c->t.p[k]->sizes[1] * (double)c->t.p[j]->sizes[1];
        const double all = cost[i * n + k] + cost[(k + 1) * n + j] + work;
        if (all < cost[i * n + j]) {
          cost[i * n + j] = all;
          c->split[i * n + j] = k;
        }
      }
    }
}
static em_status multiply(const chain *c, int64_t i, int64_t j, em_tensor **out) {
  if (i == j) {
    *out = em_tensor_retain(c->t.p[i]);
    return EM_OK;
  }
  em_status st = EM_OK;
  em_tensor *left = NULL, *right = NULL;
  const int64_t k = c->split[i * c->t.n + j];
  EM_TRY(multiply(c, i, k, &left));
  EM_TRY(multiply(c, k + 1, j, &right));
  EM_TRY(em_call_mm(left, right, out));
fail:
  em_tensor_release(left);
  em_tensor_release(right);
  return st;
}
static em_status check_chain(em_tensors t) {
  if (t.n < 2) return em_fail(EM_ERR_RUNTIME, "multi_dot(): expected at least 2 tensors but got %lld", (long long)t.n);
  if (t.n > 4096) return em_fail(EM_ERR_RUNTIME, "multi_dot(): a chain of %lld tensors is too long", (long long)t.n);
  for (int64_t i = 0; i < t.n; i++) {
    const bool end = i == 0 || i == t.n - 1;
    if (t.p[i]->ndim != 2 && !(end && t.p[i]->ndim == 1))
      return end ? em_fail(EM_ERR_RUNTIME, "multi_dot(): the %s tensor must be 1D or 2D but got %dD", i == 0 ? "first" : "last",
                           t.p[i]->ndim)
                 : em_fail(EM_ERR_RUNTIME, "multi_dot(): tensor %lld must be 2D but got %dD", (long long)i, t.p[i]->ndim);
    if (t.p[i]->dtype != t.p[0]->dtype)
      return em_fail(EM_ERR_RUNTIME, "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %lld %s",
                     em_dtype_type_name(t.p[0]->dtype), (long long)i, em_dtype_type_name(t.p[i]->dtype));
  }
  return EM_OK;
}
static em_status check_neighbours(em_tensors t) {
  for (int64_t i = 0; i + 1 < t.n; i++)
    if (t.p[i]->sizes[1] != t.p[i + 1]->sizes[0])
      return em_fail(EM_ERR_RUNTIME, "multi_dot(): tensors %lld and %lld with shapes [%lld, %lld] and [%lld, %lld] cannot be multiplied",
                     (long long)i, (long long)i + 1, (long long)t.p[i]->sizes[0], (long long)t.p[i]->sizes[1],
                     (long long)t.p[i + 1]->sizes[0], (long long)t.p[i + 1]->sizes[1]);
  return EM_OK;
}
em_status c_linalg_multi_dot(em_tensors tensors, em_tensor **out) {
  EM_PASS(check_chain(tensors));
  const int64_t n = tensors.n;
  const size_t bytes = (size_t)(n * n) * sizeof(int64_t);
  em_status st = EM_OK;
  em_tensor *product = NULL;
  chain c = {{NULL, n}, NULL};
  double *cost = NULL;
  em_tensor_list list = {NULL, 0};
  EM_PASS(em_tensor_list_new(n, &list));
  for (int64_t i = 0; i < n; i++)
    if (tensors.p[i]->ndim == 2) list.p[i] = em_tensor_retain(tensors.p[i]);
    else EM_TRY(em_call_unsqueeze(tensors.p[i], i == 0 ? 0 : 1, &list.p[i]));
  c.t.p = list.p;
  EM_TRY(check_neighbours(c.t));
  c.split = em_alloc(bytes);
  cost = em_alloc(bytes);
  if (c.split == NULL || cost == NULL) {
    st = EM_NOMEM(bytes);
    goto fail;
  }
  cheapest(&c, cost);
  EM_TRY(multiply(&c, 0, n - 1, &product));
  int64_t sizes[2];
  int k = 0;
  if (tensors.p[0]->ndim == 2) sizes[k++] = product->sizes[0];
  if (tensors.p[n - 1]->ndim == 2) sizes[k++] = product->sizes[1];
  EM_TRY(em_call_view(product, (em_ints){sizes, k}, out));
fail:
  em_tensor_release(product);
  if (c.split != NULL) em_free(c.split, bytes);
  if (cost != NULL) em_free(cost, bytes);
  em_tensor_list_clear(&list);
  return st;
}
em_status c_chain_matmul(em_tensors matrices, em_tensor **out) {
  for (int64_t i = 0; i < matrices.n; i++)
    if (matrices.p[i]->ndim != 2)
      return em_fail(EM_ERR_RUNTIME, "Expected 2-dimensional tensor, but got %d-dimensional tensor for argument #%lld (while checking "
                     "arguments for chain_matmul)", matrices.p[i]->ndim, (long long)i + 1);
  if (matrices.n == 0) return em_fail(EM_ERR_RUNTIME, "chain_matmul(): Expected one or more matrices");
  if (matrices.n == 1) return em_call_clone(matrices.p[0], EM_FORMAT_NONE, out);
  return em_call_linalg_multi_dot(matrices, out);
}

// ---- sums of products ---------------------------------------------------------------------------------------------------------

em_status c_linalg_vecdot(em_tensor *x, em_tensor *y, int64_t dim, em_tensor **out) {
  if (em_dtype_is_integral(x->dtype))
    return em_fail(EM_ERR_RUNTIME, "linalg.vecdot: Expected a floating point or complex tensor as input. Got %s",
                   em_dtype_scalar_name(x->dtype));
  if (x->dtype != y->dtype)
    return em_fail(EM_ERR_RUNTIME, "linalg.vecdot: Expected vectors x and y to have the same dtype, but got %s and %s",
                   em_dtype_scalar_name(x->dtype), em_dtype_scalar_name(y->dtype));
  if (x->ndim == 1 && y->ndim == 1 && x->sizes[0] == y->sizes[0] && (dim == 0 || dim == -1)) return em_call_vdot(x, y, out);
  em_status st = EM_OK;
  em_tensor *conj = NULL, *product = NULL;
  EM_TRY(em_priv_resolved_conj(x, &conj));
  EM_TRY(em_call_mul_Tensor(conj, y, &product));
  EM_TRY(em_call_sum_dim_IntList(product, EM_INTS(dim), false, EM_DTYPE_NONE, out));
fail:
  em_tensor_release(conj);
  em_tensor_release(product);
  return st;
}
// One matrix product over batches and inner dim together.
em_status c_addbmm(em_tensor *self, em_tensor *batch1, em_tensor *batch2, em_scalar beta, em_scalar alpha, em_tensor **out) {
  if (batch1->ndim != 3) return em_fail(EM_ERR_RUNTIME, "batch1 must be a 3D tensor");
  if (batch2->ndim != 3) return em_fail(EM_ERR_RUNTIME, "batch2 must be a 3D tensor");
  const int64_t *a = batch1->sizes, *b = batch2->sizes;
  if (a[0] != b[0])
    return em_fail(EM_ERR_RUNTIME, "batch1 and batch2 must have same number of batches, got %lld and %lld", (long long)a[0],
                   (long long)b[0]);
  if (a[2] != b[1])
    return em_fail(EM_ERR_RUNTIME, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)", (long long)a[1], (long long)a[2],
                   (long long)b[1], (long long)b[2]);
  em_status st = EM_OK;
  em_tensor *turned = NULL, *left = NULL, *right = NULL;
  EM_TRY(em_call_transpose_int(batch1, 0, 1, &turned));
  EM_TRY(em_call_reshape(turned, EM_INTS(a[1], a[0] * a[2]), &left));
  EM_TRY(em_call_reshape(batch2, EM_INTS(b[0] * b[1], b[2]), &right));
  EM_TRY(em_call_addmm(self, left, right, beta, alpha, out));
fail:
  em_tensor_release(turned);
  em_tensor_release(left);
  em_tensor_release(right);
  return st;
}
// out[..., o] = sum over i, j of input1[..., i] weight[o, i, j] input2[..., j]
em_status c_bilinear(em_tensor *input1, em_tensor *input2, em_tensor *weight, em_tensor *bias, em_tensor **out) {
  if (input1->ndim != input2->ndim)
    return em_fail(EM_ERR_RUNTIME, "bilinear(): input dimensions do not match: got %d and %d", input1->ndim, input2->ndim);
  if (weight->ndim != 3) return em_fail(EM_ERR_RUNTIME, "bilinear(): weight must be a 3D tensor, got %dD", weight->ndim);
  if (input1->ndim == 0) return em_fail(EM_ERR_RUNTIME, "bilinear(): inputs must have at least one dimension");
  const int n = input1->ndim;
  const int64_t *w = weight->sizes;
  for (int d = 0; d + 1 < n; d++)
    if (input1->sizes[d] != input2->sizes[d])
      return em_fail(EM_ERR_RUNTIME, "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld", d,
                     (long long)input1->sizes[d], (long long)input2->sizes[d]);
  if (input1->sizes[n - 1] != w[1])
    return em_fail(EM_ERR_RUNTIME, "bilinear(): input1 size does not match weight size: got %lld but expected %lld",
                   (long long)input1->sizes[n - 1], (long long)w[1]);
  if (input2->sizes[n - 1] != w[2])
    return em_fail(EM_ERR_RUNTIME, "bilinear(): input2 size does not match weight size: got %lld but expected %lld",
                   (long long)input2->sizes[n - 1], (long long)w[2]);
  if (bias != NULL && (bias->ndim != 1 || bias->sizes[0] != w[0]))
    return em_fail(EM_ERR_RUNTIME, "bilinear(): bias size does not match weight size: got %lld but expected %lld",
                   (long long)(bias->ndim == 0 ? 1 : bias->sizes[0]), (long long)w[0]);
  em_status st = EM_OK;
  em_tensor *turned = NULL, *flat = NULL, *left = NULL, *shaped = NULL, *row = NULL, *product = NULL, *sum = NULL;
  int64_t sizes[EM_MAX_DIMS];
  for (int d = 0; d + 1 < n; d++) sizes[d] = input1->sizes[d];
  sizes[n - 1] = w[0];
  sizes[n] = w[2];
  if (n + 1 > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "bilinear(): too many dimensions");
  EM_TRY(em_call_transpose_int(weight, 0, 1, &turned));
  EM_TRY(em_call_reshape(turned, EM_INTS(w[1], w[0] * w[2]), &flat));
  EM_TRY(em_call_matmul(input1, flat, &left));
  EM_TRY(em_call_reshape(left, (em_ints){sizes, n + 1}, &shaped));
  EM_TRY(em_call_unsqueeze(input2, -2, &row));
  EM_TRY(em_call_mul_Tensor(shaped, row, &product));
  EM_TRY(em_call_sum_dim_IntList(product, EM_INTS(-1), false, product->dtype, bias != NULL ? &sum : out));
  if (bias != NULL) EM_TRY(em_call_add_Tensor(sum, bias, em_scalar_int(1), out));
fail:;
  em_tensor *const all[] = {turned, flat, left, shaped, row, product, sum};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) em_tensor_release(all[i]);
  return st;
}
