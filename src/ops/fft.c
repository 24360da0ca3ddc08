// fft.c: Fourier transforms: the checks of three kernels (complex to complex, real to complex and back), and the named
// transforms that are made of them. Results lie as MKL's do in PyTorch: transformed dims innermost.
#include <math.h>
#include <string.h>
#include "gen_ops.h"

enum { NORM_NONE, NORM_ROOT, NORM_ALL };  // by nothing, by the root of the signal's size, by its size

// --- layout. Dims that are not transformed come first, by stride; the transformed ones follow, three at a time.
static void sort_by_stride(int *dims, int n, const int64_t *strides) {
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && strides[dims[k - 1]] < strides[dims[k]]; k--) {
      const int t = dims[k];
      dims[k] = dims[k - 1];
      dims[k - 1] = t;
    }
}
static void lay_out(int ndim, const int64_t *sizes, const int *dims, int n, int64_t *strides) {
  int order[EM_MAX_DIMS], m = 0;
  for (int d = 0; d < ndim; d++) {
    bool taken = false;
    for (int k = 0; k < n; k++) taken |= dims[k] == d;
    if (!taken) order[m++] = d;
  }
  sort_by_stride(order, m, strides);
  for (int k = 0; k < n; k++) order[m++] = dims[k];
  int64_t step = 1;
  for (int k = ndim - 1; k >= 0; k--) {
    strides[order[k]] = step;
    step *= sizes[order[k]] > 1 ? sizes[order[k]] : 1;
  }
}
// Strides of the result, from the input's. `last`: the last of dims stays last (a real transform's).
static void plan_strides(const em_tensor *self, const int64_t *sizes, const int *dims, int n, bool last,
                         int64_t *strides) {
  int left[EM_MAX_DIMS];
  memcpy(left, dims, sizeof(int) * (size_t)n);
  memcpy(strides, self->strides, sizeof(int64_t) * (size_t)self->ndim);
  for (bool first = true; n > 0; first = false) {
    sort_by_stride(left, last && first ? n - 1 : n, strides);
    const int step = n < 3 ? n : 3;
    lay_out(self->ndim, sizes, left + n - step, step, strides);
    n -= step;
  }
}
// dims has room for every dim; one more can only be there twice.
static em_status read_dims(em_tensor *self, em_ints dim, int *dims) {
  for (int64_t k = 0; k < dim.n; k++) {
    int64_t d;
    EM_PASS(em_shape_wrap_dim(dim.p[k], self->ndim, false, &d));
    for (int64_t e = 0; e < k; e++)
      if (dims[e] == (int)d) return em_fail(EM_ERR_RUNTIME, "FFT dims must be unique");
    dims[k] = (int)d;
  }
  return EM_OK;
}
static void plan_result(em_tensor *self, int dtype, const int64_t *sizes, const int *dims, int n, bool last,
                        em_plan *p) {
  em_plan_output_set(p, dtype, self->ndim, sizes, self->device);
  p->out[0].strided = true;
  plan_strides(self, sizes, dims, n, last, p->out[0].strides);
}
static em_status check_complex(const em_tensor *self) {
  if (em_dtype_is_complex(self->dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Only supports complex dtypes, but found: %s", em_dtype_scalar_name(self->dtype));
}
em_status check_fft_c2c(em_tensor *self, em_ints dim, int64_t normalization, bool forward, em_plan *p) {
  (void)normalization, (void)forward;
  int dims[EM_MAX_DIMS];
  EM_PASS(check_complex(self));
  EM_PASS(read_dims(self, dim, dims));
  plan_result(self, self->dtype, self->sizes, dims, (int)dim.n, false, p);
  return EM_OK;
}
em_status check_fft_r2c(em_tensor *self, em_ints dim, int64_t normalization, bool onesided, em_plan *p) {
  (void)normalization;
  int dims[EM_MAX_DIMS];
  if (self->dtype != EM_F32 && self->dtype != EM_F64)
    return em_fail(EM_ERR_RUNTIME, "Only supports floating-point dtypes, but found: %s",
                   em_dtype_scalar_name(self->dtype));
  EM_PASS(read_dims(self, dim, dims));
  if (dim.n == 0) return em_fail(EM_ERR_RUNTIME, "_fft_r2c must transform at least one axis");
  int64_t sizes[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  const int last = dims[dim.n - 1];
  if (sizes[last] < 1) return em_fail(EM_ERR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)sizes[last]);
  if (onesided) sizes[last] = self->sizes[last] / 2 + 1;
  plan_result(self, em_dtype_to_complex(self->dtype), sizes, dims, (int)dim.n, true, p);
  return EM_OK;
}
em_status check_fft_c2r(em_tensor *self, em_ints dim, int64_t normalization, int64_t last_dim_size, em_plan *p) {
  (void)normalization;
  int dims[EM_MAX_DIMS];
  EM_PASS(check_complex(self));
  EM_PASS(read_dims(self, dim, dims));
  if (dim.n == 0) return em_fail(EM_ERR_RUNTIME, "_fft_c2r must transform at least one axis");
  const int last = dims[dim.n - 1];
  if (last_dim_size < 1)
    return em_fail(EM_ERR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)last_dim_size);
  if (self->sizes[last] < last_dim_size / 2 + 1)
    return em_fail(EM_ERR_RUNTIME, "_fft_c2r: %lld frequencies are too few for a result of size %lld",
                   (long long)self->sizes[last], (long long)last_dim_size);
  int64_t sizes[EM_MAX_DIMS], between[EM_MAX_DIMS];
  memcpy(sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim);
  sizes[last] = last_dim_size;
  em_plan_output_set(p, em_dtype_to_real(self->dtype), self->ndim, sizes, self->device);
  p->out[0].strided = true;
  plan_strides(self, self->sizes, dims, (int)dim.n - 1, false, between);
  memcpy(p->out[0].strides, between, sizeof(int64_t) * (size_t)self->ndim);
  lay_out(self->ndim, sizes, &last, 1, p->out[0].strides);
  return EM_OK;
}

// --- what the named transforms share
static em_status norm_of(const char *norm, bool forward, int64_t *out) {
  if (norm == NULL || strcmp(norm, "backward") == 0) *out = forward ? NORM_NONE : NORM_ALL;
  else if (strcmp(norm, "forward") == 0) *out = forward ? NORM_ALL : NORM_NONE;
  else if (strcmp(norm, "ortho") == 0) *out = NORM_ROOT;
  else return em_fail(EM_ERR_RUNTIME, "Invalid normalization mode: \"%s\"", norm);
  return EM_OK;
}
// self in a dtype that the kernels take: float or double, or complex where asked for.
static em_status promoted(em_tensor *self, bool complex, em_tensor **out) {
  int dtype = self->dtype;
  if (em_dtype_is_integral(dtype)) dtype = em_dtype_default();
  if (dtype == EM_F16 || dtype == EM_BF16)
    return em_fail(EM_ERR_RUNTIME, "Unsupported dtype %s", em_dtype_scalar_name(dtype));
  if (complex) dtype = em_dtype_to_complex(dtype);
  if (dtype != self->dtype)
    return em_call__to_copy(self, dtype, -1, EM_DEVICE_NONE, -1, false, EM_FORMAT_NONE, out);
  *out = em_tensor_retain(self);
  return EM_OK;
}
// Cut or filled up with zeros to sizes[k] along dims[k]; -1: as it is.
static em_status resized(em_tensor *x, const int64_t *dims, const int64_t *sizes, int64_t n, em_tensor **out) {
  int64_t pad[2 * EM_MAX_DIMS] = {0};
  bool change = false;
  for (int64_t k = 0; k < n; k++) {
    if (sizes[k] < 0 || sizes[k] == x->sizes[dims[k]]) continue;
    pad[2 * (x->ndim - 1 - dims[k]) + 1] = sizes[k] - x->sizes[dims[k]];
    change = true;
  }
  if (change) return em_call_constant_pad_nd(x, (em_ints){pad, 2 * x->ndim}, em_scalar_int(0), out);
  *out = em_tensor_retain(x);
  return EM_OK;
}
static em_status check_points(int64_t n) {
  if (n >= 1) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)n);
}
static em_status conjugate(em_tensor **t) {
  em_tensor *c = NULL;
  EM_PASS(em_call_conj_physical(*t, &c));
  em_tensor_release(*t);
  *t = c;
  return EM_OK;
}

// --- one dim
static em_status complex_1d(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, bool forward,
                            em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  int64_t mode;
  EM_TRY(promoted(self, true, &x));
  EM_TRY(em_shape_wrap_dim(dim, x->ndim, false, &dim));
  EM_TRY(check_points(n.has ? n.v : x->sizes[dim]));
  EM_TRY(resized(x, &dim, &n.v, n.has ? 1 : 0, &y));
  EM_TRY(norm_of(norm, forward, &mode));
  EM_TRY(em_call__fft_c2c(y, EM_INTS(dim), mode, forward, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
static em_status real_1d(const char *name, em_tensor *self, em_opt_int n, int64_t dim, const char *norm, bool forward,
                         bool onesided, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "%s expects a real input tensor, but got %s", name,
                   em_dtype_scalar_name(self->dtype));
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *r = NULL;
  int64_t mode;
  EM_TRY(promoted(self, false, &x));
  EM_TRY(em_shape_wrap_dim(dim, x->ndim, false, &dim));
  EM_TRY(check_points(n.has ? n.v : x->sizes[dim]));
  EM_TRY(resized(x, &dim, &n.v, n.has ? 1 : 0, &y));
  EM_TRY(norm_of(norm, forward, &mode));
  EM_TRY(em_call__fft_r2c(y, EM_INTS(dim), mode, onesided, &r));
  if (!forward) EM_TRY(conjugate(&r));
  *out = r;
  r = NULL;
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(r);
  return st;
}
static em_status back_1d(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, bool forward, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  int64_t mode;
  EM_TRY(promoted(self, true, &x));
  EM_TRY(em_shape_wrap_dim(dim, x->ndim, false, &dim));
  const int64_t points = n.has ? n.v : 2 * (x->sizes[dim] - 1), half = points / 2 + 1;
  EM_TRY(check_points(points));
  EM_TRY(resized(x, &dim, &half, n.has ? 1 : 0, &y));
  EM_TRY(norm_of(norm, forward, &mode));
  if (forward) EM_TRY(conjugate(&y));
  EM_TRY(em_call__fft_c2r(y, EM_INTS(dim), mode, points, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
em_status c_fft_fft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return em_dtype_is_complex(self->dtype) ? complex_1d(self, n, dim, norm, true, out)
                                          : real_1d("fft", self, n, dim, norm, true, false, out);
}
em_status c_fft_ifft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return em_dtype_is_complex(self->dtype) ? complex_1d(self, n, dim, norm, false, out)
                                          : real_1d("ifft", self, n, dim, norm, false, false, out);
}
em_status c_fft_rfft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return real_1d("rfft", self, n, dim, norm, true, true, out);
}
em_status c_fft_ihfft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return real_1d("ihfft", self, n, dim, norm, false, true, out);
}
em_status c_fft_irfft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return back_1d(self, n, dim, norm, false, out);
}
em_status c_fft_hfft(em_tensor *self, em_opt_int n, int64_t dim, const char *norm, em_tensor **out) {
  return back_1d(self, n, dim, norm, true, out);
}

// --- several dims
typedef struct shaped { int64_t n, dim[EM_MAX_DIMS], size[EM_MAX_DIMS]; } shaped;
static em_status shape_of(em_tensor *x, em_ints s, em_ints dim, shaped *out) {
  out->n = dim.n >= 0 ? dim.n : s.n >= 0 ? s.n : x->ndim;
  if (dim.n >= 0) {
    int dims[EM_MAX_DIMS];
    EM_PASS(read_dims(x, dim, dims));
    for (int64_t k = 0; k < dim.n; k++) out->dim[k] = dims[k];
  }
  if (s.n >= 0) {
    if (dim.n >= 0 && dim.n != s.n)
      return em_fail(EM_ERR_RUNTIME, "When given, dim and shape arguments must have the same length");
    if (s.n > x->ndim)
      return em_fail(EM_ERR_RUNTIME, "Got shape with %lld values but input tensor only has %d dimensions.",
                     (long long)s.n, x->ndim);
  }
  for (int64_t k = 0; k < out->n; k++) {
    if (dim.n < 0) out->dim[k] = x->ndim - out->n + k;
    out->size[k] = s.n >= 0 && s.p[k] != -1 ? s.p[k] : x->sizes[out->dim[k]];
    EM_PASS(check_points(out->size[k]));
  }
  return EM_OK;
}
static em_status need_one(const char *name, const shaped *s) {
  if (s->n > 0) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s must transform at least one axis", name);
}
static em_status complex_nd(em_tensor *self, em_ints s, em_ints dim, const char *norm, bool forward, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  shaped d;
  int64_t mode;
  EM_TRY(promoted(self, true, &x));
  EM_TRY(shape_of(x, s, dim, &d));
  EM_TRY(resized(x, d.dim, d.size, d.n, &y));
  EM_TRY(norm_of(norm, forward, &mode));
  EM_TRY(em_call__fft_c2c(y, (em_ints){d.dim, d.n}, mode, forward, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
em_status c_fft_fftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  return complex_nd(self, s, dim, norm, true, out);
}
em_status c_fft_ifftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  return complex_nd(self, s, dim, norm, false, out);
}
em_status c_fft_rfftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "rfftn expects a real-valued input tensor, but got %s",
                   em_dtype_scalar_name(self->dtype));
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  shaped d;
  int64_t mode;
  EM_TRY(promoted(self, false, &x));
  EM_TRY(shape_of(x, s, dim, &d));
  EM_TRY(need_one("rfftn", &d));
  EM_TRY(resized(x, d.dim, d.size, d.n, &y));
  EM_TRY(norm_of(norm, true, &mode));
  EM_TRY(em_call__fft_r2c(y, (em_ints){d.dim, d.n}, mode, true, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}
em_status c_fft_ihfftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  if (em_dtype_is_complex(self->dtype))
    return em_fail(EM_ERR_RUNTIME, "ihfftn expects a real-valued input tensor, but got %s",
                   em_dtype_scalar_name(self->dtype));
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL, *r = NULL;
  shaped d;
  int64_t mode;
  EM_TRY(promoted(self, false, &x));
  EM_TRY(shape_of(x, s, dim, &d));
  EM_TRY(need_one("ihfftn", &d));
  EM_TRY(resized(x, d.dim, d.size, d.n, &y));
  EM_TRY(norm_of(norm, false, &mode));
  EM_TRY(em_call__fft_r2c(y, (em_ints){d.dim + d.n - 1, 1}, mode, true, &r));
  EM_TRY(conjugate(&r));
  if (d.n > 1) {
    EM_TRY(em_call__fft_c2c(r, (em_ints){d.dim, d.n - 1}, mode, false, out));
  } else {
    *out = r;
    r = NULL;
  }
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  em_tensor_release(r);
  return st;
}
// The shape of a real result: the input's last dim holds half of it.
static em_status real_result(const char *name, em_tensor *self, em_ints s, em_ints dim, em_tensor **x, shaped *d,
                             int64_t *points) {
  em_tensor *t = NULL;
  EM_PASS(promoted(self, true, &t));
  em_status st = EM_OK;
  EM_TRY(shape_of(t, s, dim, d));
  EM_TRY(need_one(name, d));
  const bool given = s.n >= 0 && s.p[s.n - 1] != -1;
  *points = given ? s.p[s.n - 1] : 2 * (t->sizes[d->dim[d->n - 1]] - 1);
  EM_TRY(check_points(*points));
  d->size[d->n - 1] = *points / 2 + 1;
  EM_TRY(resized(t, d->dim, d->size, d->n, x));
fail:
  em_tensor_release(t);
  return st;
}
em_status c_fft_irfftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL;
  shaped d;
  int64_t mode, points;
  EM_TRY(real_result("irfftn", self, s, dim, &x, &d, &points));
  EM_TRY(norm_of(norm, false, &mode));
  EM_TRY(em_call__fft_c2r(x, (em_ints){d.dim, d.n}, mode, points, out));
fail:
  em_tensor_release(x);
  return st;
}
em_status c_fft_hfftn(em_tensor *self, em_ints s, em_ints dim, const char *norm, em_tensor **out) {
  em_status st = EM_OK;
  em_tensor *x = NULL, *y = NULL;
  shaped d;
  int64_t mode, points;
  EM_TRY(real_result("hfftn", self, s, dim, &x, &d, &points));
  EM_TRY(norm_of(norm, true, &mode));
  if (d.n > 1) EM_TRY(em_call__fft_c2c(x, (em_ints){d.dim, d.n - 1}, mode, true, &y));
  else y = em_tensor_retain(x);
  EM_TRY(conjugate(&y));
  EM_TRY(em_call__fft_c2r(y, (em_ints){d.dim + d.n - 1, 1}, mode, points, out));
fail:
  em_tensor_release(x);
  em_tensor_release(y);
  return st;
}

// --- frequencies and shifts
static em_status check_freq(const char *name, int dtype) {
  if (dtype == EM_DTYPE_NONE || em_dtype_is_differentiable(dtype)) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s requires a floating point or complex dtype", name);
}
em_status c_fft_rfftfreq(int64_t n, double d, int dtype, int layout, em_device device, em_opt_bool pin,
                         em_tensor **out) {
  EM_PASS(check_freq("rfftfreq", dtype));
  const int type = dtype == EM_DTYPE_NONE ? em_dtype_default() : dtype;
  const int64_t count = n / 2 + 1;
  em_tensor *t = NULL;
  EM_PASS(em_call_arange(em_scalar_int(count > 0 ? count : 0), type, layout, device, pin, &t));
  em_status st = em_call_mul__Scalar(t, em_scalar_double(1.0 / ((double)n * d)));
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status c_fft_fftfreq(int64_t n, double d, int dtype, int layout, em_device device, em_opt_bool pin,
                        em_tensor **out) {
  EM_PASS(check_freq("fftfreq", dtype));
  if (n < 0)
    return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: [%lld]", (long long)n,
                   (long long)n);
  const int type = dtype == EM_DTYPE_NONE ? em_dtype_default() : dtype;
  em_status st = EM_OK;
  em_tensor *part[2] = {NULL}, *t = NULL;
  EM_TRY(em_call_arange(em_scalar_int((n + 1) / 2), type, layout, device, pin, &part[0]));
  EM_TRY(em_call_arange_start(em_scalar_int(-(n / 2)), em_scalar_int(0), type, layout, device, pin, &part[1]));
  EM_TRY(em_call_cat((em_tensors){part, 2}, 0, &t));
  EM_TRY(em_call_mul__Scalar(t, em_scalar_double(1.0 / ((double)n * d))));
  *out = t;
  t = NULL;
fail:
  em_tensor_release(part[0]);
  em_tensor_release(part[1]);
  em_tensor_release(t);
  return st;
}
static em_status shifted(em_tensor *self, em_ints dim, bool up, em_tensor **out) {
  int64_t shifts[EM_MAX_DIMS], dims[EM_MAX_DIMS];
  const int64_t n = dim.n >= 0 ? dim.n : self->ndim;
  if (n > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "at most %d dimensions are supported", EM_MAX_DIMS);
  for (int64_t k = 0; k < n; k++) {
    EM_PASS(em_shape_wrap_dim(dim.n >= 0 ? dim.p[k] : k, self->ndim, false, &dims[k]));
    shifts[k] = (self->sizes[dims[k]] + (up ? 0 : 1)) / 2;
  }
  return em_call_roll(self, (em_ints){shifts, n}, (em_ints){dims, n}, out);
}
em_status c_fft_fftshift(em_tensor *self, em_ints dim, em_tensor **out) { return shifted(self, dim, true, out); }
em_status c_fft_ifftshift(em_tensor *self, em_ints dim, em_tensor **out) { return shifted(self, dim, false, out); }
