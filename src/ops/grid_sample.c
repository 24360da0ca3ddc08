// grid_sample.c: checks of grid_sampler; affine grids, which are made of products.
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

static const char *text(const em_tensor *t, char *buf, size_t n) { return em_shape_format(t->ndim, t->sizes, buf, n); }
static em_status check_common(em_tensor *input, em_tensor *grid) {
  char a[256], b[256];
  if (input->ndim == 0 || grid->ndim == 0)
    return em_fail(EM_ERR_RUNTIME, "grid_sampler(): expected input and grid to have dimensions");
  if (input->sizes[0] != grid->sizes[0])
    return em_fail(EM_ERR_RUNTIME,
                   "grid_sampler(): expected grid and input to have same batch size, but got input with sizes %s and "
                   "grid with sizes %s",
                   text(input, a, sizeof a), text(grid, b, sizeof b));
  if (grid->sizes[grid->ndim - 1] != input->ndim - 2)
    return em_fail(EM_ERR_RUNTIME,
                   "grid_sampler(): expected grid to have size %d in last dimension, but got grid with sizes %s",
                   input->ndim - 2, text(grid, b, sizeof b));
  for (int d = 2; d < input->ndim; d++)
    if (input->sizes[d] == 0)
      return em_fail(EM_ERR_RUNTIME,
                     "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes %s with "
                     "dimension %d being empty",
                     text(input, a, sizeof a), d);
  return EM_OK;
}
static em_status check_dims(int n, em_tensor *input, em_tensor *grid, int64_t mode) {
  char a[256], b[256];
  if (input->ndim != n || grid->ndim != n)
    return em_fail(EM_ERR_RUNTIME,
                   "grid_sampler(): expected %dD input and grid with same number of dimensions, but got input with "
                   "sizes %s and grid with sizes %s",
                   n, text(input, a, sizeof a), text(grid, b, sizeof b));
  if (n == 5 && mode == 2)
    return em_fail(EM_ERR_RUNTIME, "grid_sampler(): bicubic interpolation only supports 4D input");
  return EM_OK;
}
static em_status check_types(em_tensor *input, em_tensor *grid, const char *kernel) {
  if (!em_dtype_is_float(input->dtype))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel,
                   em_dtype_scalar_name(input->dtype));
  if (input->dtype == grid->dtype) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(input->dtype),
                 em_dtype_scalar_name(grid->dtype));
}
static em_status check_forward(int n, em_tensor *input, em_tensor *grid, int64_t mode, em_plan *p) {
  EM_PASS(check_common(input, grid));
  EM_PASS(check_dims(n, input, grid, mode));
  EM_PASS(check_types(input, grid, n == 4 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu"));
  int64_t sizes[5];
  memcpy(sizes, input->sizes, sizeof(int64_t) * 2);
  memcpy(sizes + 2, grid->sizes + 1, sizeof(int64_t) * (size_t)(n - 2));
  em_plan_output_set(p, input->dtype, n, sizes, input->device);
  return EM_OK;
}
em_status check_grid_sampler_2d(em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align,
                                em_plan *p) {
  (void)padding, (void)align;
  return check_forward(4, input, grid, mode, p);
}
em_status check_grid_sampler_3d(em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align,
                                em_plan *p) {
  (void)padding, (void)align;
  return check_forward(5, input, grid, mode, p);
}
static em_status check_backward(int n, em_tensor *grad, em_tensor *input, em_tensor *grid, int64_t mode, em_plan *p) {
  char a[256];
  EM_PASS(check_common(input, grid));
  EM_PASS(check_dims(n, input, grid, mode));
  EM_PASS(check_types(input, grid, n == 4 ? "grid_sampler_2d_backward_cpu_kernel_impl"
                                          : "grid_sampler_3d_backward_cpu"));
  bool fits = grad->ndim == n && grad->sizes[0] == input->sizes[0] && grad->sizes[1] == input->sizes[1];
  for (int d = 2; fits && d < n; d++) fits = grad->sizes[d] == grid->sizes[d - 1];
  if (!fits)
    return em_fail(EM_ERR_RUNTIME, "grid_sampler_%dd_backward(): grad_output of shape %s does not fit the output", n - 2,
                   text(grad, a, sizeof a));
  if (grad->dtype != input->dtype)
    return em_fail(EM_ERR_RUNTIME, "expected scalar type %s but found %s", em_dtype_scalar_name(input->dtype),
                   em_dtype_scalar_name(grad->dtype));
  em_plan_output_set(p, input->dtype, n, input->sizes, input->device);
  em_plan_output_set(p, input->dtype, n, grid->sizes, input->device);
  return EM_OK;
}
em_status check_grid_sampler_2d_backward(em_tensor *grad, em_tensor *input, em_tensor *grid, int64_t mode,
                                         int64_t padding, bool align, em_bools mask, em_plan *p) {
  (void)padding, (void)align, (void)mask;
  return check_backward(4, grad, input, grid, mode, p);
}
em_status check_grid_sampler_3d_backward(em_tensor *grad, em_tensor *input, em_tensor *grid, int64_t mode,
                                         int64_t padding, bool align, em_bools mask, em_plan *p) {
  (void)padding, (void)align, (void)mask;
  return check_backward(5, grad, input, grid, mode, p);
}
em_status c_grid_sampler(em_tensor *input, em_tensor *grid, int64_t mode, int64_t padding, bool align,
                         em_tensor **out) {
  EM_PASS(check_common(input, grid));
  EM_PASS(check_dims(input->ndim == 5 ? 5 : 4, input, grid, mode));
  return input->ndim == 4 ? em_call_grid_sampler_2d(input, grid, mode, padding, align, out)
                          : em_call_grid_sampler_3d(input, grid, mode, padding, align, out);
}

// --- affine grids: the coordinates of every output, and one, times the batch's matrices
static em_status line(em_tensor *like, int64_t n, bool align, em_tensor **out) {
  if (n <= 1) return em_call_new_zeros(like, EM_INTS(n < 0 ? 0 : n), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out);
  em_tensor *t = NULL;
  EM_PASS(em_call_linspace(em_scalar_int(-1), em_scalar_int(1), n, like->dtype, -1, like->device, -1, &t));
  if (align) {
    *out = t;
    return EM_OK;
  }
  em_tensor *m = NULL;
  em_status st = em_call_mul_Scalar(t, em_scalar_int(n - 1), &m);
  em_tensor_release(t);
  if (st == EM_OK) st = em_call_div_Scalar(m, em_scalar_int(n), out);
  em_tensor_release(m);
  return st;
}
// base: (N, sizes..., dims + 1), the last of which is x, y, (z,) 1
static em_status base_grid(em_tensor *theta, em_ints size, bool align, em_tensor **out) {
  const int dims = (int)size.n - 2;
  em_status st = EM_OK;
  em_tensor *part[4] = {NULL}, *t = NULL, *v = NULL;
  int64_t full[4] = {size.p[0]}, shape[4];
  for (int d = 0; d < dims; d++) full[d + 1] = size.p[d + 2];
  for (int k = 0; k < dims; k++) {  // x runs along the last dim
    EM_TRY(line(theta, full[dims - k], align, &t));
    for (int d = 0; d <= dims; d++) shape[d] = 1;
    shape[dims - k] = full[dims - k];
    EM_TRY(em_call_view(t, (em_ints){shape, dims + 1}, &v));
    EM_TRY(em_call_expand(v, (em_ints){full, dims + 1}, false, &part[k]));
    EM_CLEAR_TENSOR(&t);
    EM_CLEAR_TENSOR(&v);
  }
  EM_TRY(em_call_new_ones(theta, (em_ints){full, dims + 1}, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, &part[dims]));
  EM_TRY(em_call_stack((em_tensors){part, dims + 1}, -1, out));
fail:
  for (int k = 0; k < 4; k++) em_tensor_release(part[k]);
  em_tensor_release(t);
  em_tensor_release(v);
  return st;
}
static em_status check_size(em_ints size) {
  char a[256];
  if (size.n != 4 && size.n != 5)
    return em_fail(EM_ERR_RUNTIME, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  int64_t base[5] = {size.p[0]};
  for (int64_t k = 2; k < size.n; k++) base[k - 1] = size.p[k];
  base[size.n - 1] = size.n - 1;
  for (int64_t k = 0; k < size.n; k++)
    if (base[k] < 0)
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)base[k],
                     em_shape_format((int)size.n, base, a, sizeof a));
  return EM_OK;
}
em_status c_affine_grid_generator(em_tensor *theta, em_ints size, bool align, em_tensor **out) {
  EM_PASS(check_size(size));
  const int64_t dims = size.n - 2;
  em_status st = EM_OK;
  em_tensor *base = NULL, *flat = NULL, *turned = NULL, *grid = NULL;
  int64_t sizes[5] = {size.p[0]}, n = 1;
  for (int64_t d = 0; d < dims; d++) {
    sizes[d + 1] = size.p[d + 2];
    n *= size.p[d + 2];
  }
  sizes[dims + 1] = dims;
  if (theta->ndim != 3 || theta->sizes[0] != size.p[0] || theta->sizes[2] != dims + 1)
    return em_fail(EM_ERR_RUNTIME, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: "
                   "[%lld, %lld].",
                   (long long)size.p[0], (long long)dims + 1, (long long)(theta->ndim > 0 ? theta->sizes[0] : 0),
                   (long long)(theta->ndim > 2 ? theta->sizes[2] : 0));
  EM_TRY(base_grid(theta, size, align, &base));
  EM_TRY(em_call_view(base, EM_INTS(size.p[0], n, dims + 1), &flat));
  EM_TRY(em_call_transpose_int(theta, 1, 2, &turned));
  EM_TRY(em_call_bmm(flat, turned, &grid));
  EM_TRY(em_call_view(grid, (em_ints){sizes, dims + 2}, out));
fail:
  em_tensor_release(base);
  em_tensor_release(flat);
  em_tensor_release(turned);
  em_tensor_release(grid);
  return st;
}
em_status c_affine_grid_generator_backward(em_tensor *grad, em_ints size, bool align, em_tensor **out) {
  EM_PASS(check_size(size));
  const int64_t dims = size.n - 2;
  em_status st = EM_OK;
  em_tensor *base = NULL, *flat = NULL, *turned = NULL, *rows = NULL, *product = NULL;
  int64_t n = 1;
  for (int64_t d = 0; d < dims; d++) n *= size.p[d + 2];
  EM_TRY(base_grid(grad, size, align, &base));
  EM_TRY(em_call_view(base, EM_INTS(size.p[0], n, dims + 1), &flat));
  EM_TRY(em_call_transpose_int(flat, 1, 2, &turned));
  EM_TRY(em_call_reshape(grad, EM_INTS(size.p[0], n, dims), &rows));
  EM_TRY(em_call_bmm(turned, rows, &product));
  EM_TRY(em_call_transpose_int(product, 1, 2, out));
fail:
  em_tensor_release(base);
  em_tensor_release(flat);
  em_tensor_release(turned);
  em_tensor_release(rows);
  em_tensor_release(product);
  return st;
}
