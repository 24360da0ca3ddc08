// products.c: what matrix products check and how their results look. Results are contiguous; dtypes must agree (no promotion, but addr's).
#include "gen_ops.h"

static em_status check_dtype_known(int dtype, const char *kernel) {
  if (dtype != EM_BOOL) return EM_OK;
  return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, em_dtype_scalar_name(dtype));
}
// beta and alpha become values of the operands' dtype; one that does not fit is refused here and not in the kernel.
static em_status check_scalars(em_scalar beta, em_scalar alpha, int dtype) {
  em_c128 value;
  EM_PASS(em_scalar_store(beta, dtype, &value));
  return em_scalar_store(alpha, dtype, &value);
}
static bool is_zero(em_scalar s) { return em_scalar_equal(s, 0); }

static em_status check_shapes(const em_tensor *mat1, const em_tensor *mat2) {
  if (mat1->sizes[1] == mat2->sizes[0]) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)mat1->sizes[0],
                 (long long)mat1->sizes[1], (long long)mat2->sizes[0], (long long)mat2->sizes[1]);
}
static em_status check_same(const em_tensor *mat1, const em_tensor *mat2) {
  if (mat1->dtype == mat2->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s", em_dtype_type_name(mat1->dtype),
                 em_dtype_type_name(mat2->dtype));
}

em_status check_mm(em_tensor *self, em_tensor *mat2, em_plan *p) {
  if (self->ndim != 2) return em_fail(EM_ERR_RUNTIME, "self must be a matrix");
  if (mat2->ndim != 2) return em_fail(EM_ERR_RUNTIME, "mat2 must be a matrix");
  EM_PASS(check_shapes(self, mat2));
  EM_PASS(check_same(self, mat2));
  EM_PASS(check_dtype_known(self->dtype, "addmm_impl_cpu_"));
  em_plan_output_set(p, self->dtype, 2, (const int64_t[]){self->sizes[0], mat2->sizes[1]}, self->device);
  return EM_OK;
}

// f16 and bf16 products that oneDNN computes in f32 need room for that before they are scaled and rounded. Where the product is small
// the kernel does not ask the library, and needs none.
#define LIBRARY_WORK 65536
static size_t half_workspace(int dtype, int64_t m, int64_t n, int64_t k) {
  if (dtype != EM_F16 && dtype != EM_BF16) return 0;
  return (double)m * (double)n * (double)k < LIBRARY_WORK ? 0 : (size_t)m * (size_t)n * sizeof(float);
}

em_status check_addmm(em_tensor *self, em_tensor *mat1, em_tensor *mat2, em_scalar beta, em_scalar alpha, em_plan *p) {
  if (mat1->ndim != 2) return em_fail(EM_ERR_RUNTIME, "mat1 must be a matrix, got %d-D tensor", mat1->ndim);
  if (mat2->ndim != 2) return em_fail(EM_ERR_RUNTIME, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
  EM_PASS(check_shapes(mat1, mat2));
  if (self->dtype != mat2->dtype)
    return em_fail(EM_ERR_RUNTIME, "self and mat2 must have the same dtype, but got %s and %s", em_dtype_scalar_name(self->dtype),
                   em_dtype_scalar_name(mat2->dtype));
  if (mat1->dtype != mat2->dtype)
    return em_fail(EM_ERR_RUNTIME, "mat1 and mat2 must have the same dtype, but got %s and %s", em_dtype_scalar_name(mat1->dtype),
                   em_dtype_scalar_name(mat2->dtype));
  const int64_t sizes[2] = {mat1->sizes[0], mat2->sizes[1]};
  em_geometry g;
  EM_PASS(view_expand(self, (em_ints){sizes, 2}, false, &g));
  EM_PASS(check_dtype_known(self->dtype, "addmm_impl_cpu_"));
  EM_PASS(check_scalars(beta, alpha, self->dtype));
  em_plan_output_set(p, self->dtype, 2, sizes, self->device);
  p->workspace = half_workspace(self->dtype, sizes[0], sizes[1], mat1->sizes[1]);
  return EM_OK;
}

static em_status check_batches(const em_tensor *batch1, const em_tensor *batch2, int64_t *sizes) {
  if (batch1->ndim != 3) return em_fail(EM_ERR_RUNTIME, "batch1 must be a 3D tensor");
  if (batch2->ndim != 3) return em_fail(EM_ERR_RUNTIME, "batch2 must be a 3D tensor");
  const int64_t *a = batch1->sizes, *b = batch2->sizes;
  if (a[0] != b[0] || a[2] != b[1])
    return em_fail(EM_ERR_RUNTIME, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                   (long long)a[0], (long long)a[2], (long long)b[0], (long long)b[1]);
  sizes[0] = a[0];
  sizes[1] = a[1];
  sizes[2] = b[2];
  return EM_OK;
}
static em_status check_same_batches(const em_tensor *batch1, const em_tensor *batch2) {
  if (batch1->dtype != batch2->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(batch1->dtype),
                   em_dtype_scalar_name(batch2->dtype));
  return check_dtype_known(batch1->dtype, "bmm");
}
em_status check_bmm(em_tensor *self, em_tensor *mat2, em_plan *p) {
  int64_t sizes[3];
  EM_PASS(check_batches(self, mat2, sizes));
  EM_PASS(check_same_batches(self, mat2));
  em_plan_output_set(p, self->dtype, 3, sizes, self->device);
  return EM_OK;
}
em_status check_baddbmm(em_tensor *self, em_tensor *batch1, em_tensor *batch2, em_scalar beta, em_scalar alpha, em_plan *p) {
  int64_t sizes[3];
  em_geometry g;
  EM_PASS(check_batches(batch1, batch2, sizes));
  EM_PASS(view_expand(self, (em_ints){sizes, 3}, false, &g));
  if (self->dtype != batch1->dtype)
    return em_fail(EM_ERR_RUNTIME, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s", em_dtype_type_name(self->dtype),
                   em_dtype_type_name(batch1->dtype), em_dtype_type_name(batch2->dtype));
  EM_PASS(check_same_batches(batch1, batch2));
  EM_PASS(check_scalars(beta, alpha, self->dtype));
  em_plan_output_set(p, self->dtype, 3, sizes, self->device);
  return EM_OK;
}

// mv is addmv with beta 0; its messages speak of an input of the result's size.
static em_status check_vector(int input_ndim, int64_t input_size, const em_tensor *mat, const em_tensor *vec, em_plan *p) {
  if (mat->ndim != 2 || vec->ndim != 1 || input_ndim > 1)
    return em_fail(EM_ERR_RUNTIME, "vector + matrix @ vector expected, got %d, %d, %d", input_ndim, mat->ndim, vec->ndim);
  if (mat->sizes[1] != vec->sizes[0] || (input_size != mat->sizes[0] && input_size != 1))
    return em_fail(EM_ERR_RUNTIME, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)", (long long)input_size,
                   (long long)mat->sizes[0], (long long)mat->sizes[1], (long long)vec->sizes[0]);
  em_plan_output_set(p, mat->dtype, 1, mat->sizes, mat->device);
  return EM_OK;
}
static em_status check_vector_dtypes(int input, const em_tensor *mat, const em_tensor *vec) {
  if (input != mat->dtype || mat->dtype != vec->dtype)
    return em_fail(EM_ERR_RUNTIME, "addmv input tensors must have the same dtype, but got %s, %s, and %s", em_dtype_scalar_name(input),
                   em_dtype_scalar_name(mat->dtype), em_dtype_scalar_name(vec->dtype));
  return check_dtype_known(mat->dtype, "addmv_impl_cpu");
}
em_status check_mv(em_tensor *self, em_tensor *vec, em_plan *p) {
  EM_PASS(check_vector(1, self->ndim > 0 ? self->sizes[0] : 1, self, vec, p));
  return check_vector_dtypes(vec->dtype, self, vec);
}
em_status check_addmv(em_tensor *self, em_tensor *mat, em_tensor *vec, em_scalar beta, em_scalar alpha, em_plan *p) {
  EM_PASS(check_vector(self->ndim, self->ndim > 0 ? self->sizes[0] : 1, mat, vec, p));
  EM_PASS(check_vector_dtypes(self->dtype, mat, vec));
  return check_scalars(beta, alpha, self->dtype);
}

em_status check_dot(em_tensor *self, em_tensor *other, em_plan *p) {
  if (self->ndim != 1 || other->ndim != 1)
    return em_fail(EM_ERR_RUNTIME, "1D tensors expected, but got %dD and %dD tensors", self->ndim, other->ndim);
  if (self->dtype != other->dtype)
    return em_fail(EM_ERR_RUNTIME, "dot : expected both vectors to have same dtype, but found %s and %s", em_dtype_scalar_name(self->dtype),
                   em_dtype_scalar_name(other->dtype));
  if (self->numel != other->numel)
    return em_fail(EM_ERR_RUNTIME, "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, "
                   "but got %lld and %lld elements respectively", (long long)self->numel, (long long)other->numel, (long long)self->numel,
                   (long long)other->numel);
  EM_PASS(check_dtype_known(self->dtype, "dot"));
  p->out_casts = true;
  em_plan_output_set(p, self->dtype, 0, NULL, self->device);
  return EM_OK;
}

// --- outer products: these promote

static em_status check_one_d(const em_tensor *t, const char *op, const char *name) {
  if (t->ndim == 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: Expected 1-D argument %s, but got %d-D", op, name, t->ndim);
}
static em_status check_addr_scalar(em_scalar s, const char *name, int dtype) {
  if (s.kind == EM_SCALAR_DOUBLE && em_dtype_is_integral(dtype))
    return em_fail(EM_ERR_RUNTIME, "For integral input tensors, argument %s must not be a floating point number.", name);
  em_c128 value;
  return em_scalar_store(s, dtype, &value);
}
// The kernel multiplies vectors of the result's dtype: the workspace holds those that have another.
em_status check_addr(em_tensor *self, em_tensor *vec1, em_tensor *vec2, em_scalar beta, em_scalar alpha, em_plan *p) {
  EM_PASS(check_one_d(vec1, "addr", "vec1"));
  EM_PASS(check_one_d(vec2, "addr", "vec2"));
  const int64_t sizes[2] = {vec1->sizes[0], vec2->sizes[0]};
  em_geometry g;
  EM_PASS(view_expand(self, (em_ints){sizes, 2}, false, &g));
  em_promote_state state;
  em_promote_init(&state);
  em_promote_add(&state, self);
  em_promote_add(&state, vec1);
  em_promote_add(&state, vec2);
  const int dtype = em_promote_result(&state);
  EM_PASS(check_addr_scalar(beta, "beta", dtype));
  EM_PASS(check_addr_scalar(alpha, "alpha", dtype));
  em_plan_output_set(p, dtype, 2, sizes, self->device);
  p->out_casts = true;
  int64_t count = vec1->numel + vec2->numel;
  if (self->dtype != dtype && !is_zero(beta)) count += sizes[0] * sizes[1];
  p->workspace = (size_t)count * em_dtype_size(dtype);
  return EM_OK;
}
em_status c_outer(em_tensor *self, em_tensor *vec2, em_tensor **out) {
  EM_PASS(check_one_d(self, "outer", "self"));
  EM_PASS(check_one_d(vec2, "outer", "vec2"));
  em_tensor *column;
  EM_PASS(em_call_reshape(self, EM_INTS(self->sizes[0], 1), &column));
  em_status st = em_call_mul_Tensor(column, vec2, out);
  em_tensor_release(column);
  return st;
}
