// creation.c: tensors from nothing.
#include <math.h>
#include <string.h>
#include "copy.h"
#include "gen_ops.h"

// Undefined contents; the one place where a factory's options meet. dtype NONE: the default float dtype.
static em_status make(em_ints size, int dtype, int layout, em_device device, em_tensor **out) {
  (void)layout;
  if (device.type < 0) device.type = EM_DEVICE_CPU;
  EM_PASS(em_device_check(device));
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "at most %d dimensions are supported, got %lld", EM_MAX_DIMS, (long long)size.n);
  return em_tensor_new((int)size.n, size.p, dtype < 0 ? em_dtype_default() : dtype, (em_device){device.type, -1}, out);
}
static em_status filled(em_status made, em_tensor **out, em_scalar value) {
  if (made != EM_OK) return made;
  if ((*out)->device.type == EM_DEVICE_META) return EM_OK;
  em_status st = em_fill(*out, value);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
#define OPTIONS int dtype, int layout, em_device device, em_opt_bool pin_memory
#define PASS_OPTIONS dtype, layout, device
#define UNUSED_OPTIONS (void)ks, (void)pin_memory

em_status n_empty(uint64_t ks, em_ints size, OPTIONS, int memory_format, em_tensor **out) {
  UNUSED_OPTIONS;
  if (memory_format == EM_FORMAT_PRESERVE) return em_fail(EM_ERR_RUNTIME, "unsupported memory format Preserve");
  if (memory_format < EM_FORMAT_CHANNELS_LAST) return make(size, PASS_OPTIONS, out);
  em_tensor *t;
  EM_PASS(make(size, dtype, layout, device, &t));
  int64_t strides[EM_MAX_DIMS];
  em_status st = em_priv_format_strides(t, memory_format, strides);
  if (st == EM_OK) st = em_tensor_set_window(t, t->ndim, t->sizes, strides, 0);
  if (st == EM_OK) *out = t;
  else em_tensor_release(t);
  return st;
}
em_status n_empty_strided(uint64_t ks, em_ints size, em_ints stride, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  (void)layout;
  if (device.type < 0) device.type = EM_DEVICE_CPU;
  EM_PASS(em_device_check(device));
  if (size.n != stride.n)
    return em_fail(EM_ERR_RUNTIME, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                   (long long)size.n, (long long)stride.n);
  if (size.n > EM_MAX_DIMS)
    return em_fail(EM_ERR_RUNTIME, "at most %d dimensions are supported, got %lld", EM_MAX_DIMS, (long long)size.n);
  for (int64_t i = 0; i < stride.n; i++)
    if (stride.p[i] < 0)
      return em_fail(EM_ERR_RUNTIME, "empty_strided: negative strides are not supported, got %lld",
                     (long long)stride.p[i]);
  return em_tensor_new_strided((int)size.n, size.p, stride.p, dtype < 0 ? em_dtype_default() : dtype,
                               (em_device){device.type, -1}, out);
}
em_status n_zeros(uint64_t ks, em_ints size, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  for (int64_t i = 0; i < size.n && device.type != EM_DEVICE_META; i++)
    if (size.p[i] < 0) return em_fail(EM_ERR_RUNTIME, "zeros: Dimension size must be non-negative.");
  return filled(make(size, PASS_OPTIONS, out), out, em_scalar_int(0));
}
em_status n_ones(uint64_t ks, em_ints size, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  return filled(make(size, PASS_OPTIONS, out), out, em_scalar_int(1));
}
em_status n_full(uint64_t ks, em_ints size, em_scalar value, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  return filled(make(size, dtype < 0 ? em_scalar_dtype(value) : dtype, layout, device, out), out, value);
}
em_status n_scalar_tensor(uint64_t ks, em_scalar s, OPTIONS, em_tensor **out) {
  return n_full(ks, (em_ints){NULL, 0}, s, dtype < 0 ? em_dtype_default() : dtype, layout, device, pin_memory, out);
}

static em_status like(em_tensor *self, OPTIONS, int memory_format, em_tensor **out) {
  (void)layout;
  (void)pin_memory;
  em_device d = em_device_given(device) ? device : self->device;
  EM_PASS(em_device_check(d));
  return em_priv_empty_like(self, dtype < 0 ? self->dtype : dtype, (em_device){d.type, -1}, memory_format, out);
}
em_status n_empty_like(uint64_t ks, em_tensor *self, OPTIONS, int memory_format, em_tensor **out) {
  (void)ks;
  return like(self, PASS_OPTIONS, pin_memory, memory_format, out);
}
em_status n_zeros_like(uint64_t ks, em_tensor *self, OPTIONS, int memory_format, em_tensor **out) {
  (void)ks;
  return filled(like(self, PASS_OPTIONS, pin_memory, memory_format, out), out, em_scalar_int(0));
}
em_status n_ones_like(uint64_t ks, em_tensor *self, OPTIONS, int memory_format, em_tensor **out) {
  (void)ks;
  return filled(like(self, PASS_OPTIONS, pin_memory, memory_format, out), out, em_scalar_int(1));
}
em_status n_full_like(uint64_t ks, em_tensor *self, em_scalar value, OPTIONS, int memory_format, em_tensor **out) {
  (void)ks;
  return filled(like(self, PASS_OPTIONS, pin_memory, memory_format, out), out, value);
}
static int own_dtype(em_tensor *self, int dtype) { return dtype < 0 ? self->dtype : dtype; }
static em_device own_device(em_tensor *self, em_device d) { return em_device_given(d) ? d : self->device; }
em_status n_new_empty(uint64_t ks, em_tensor *self, em_ints size, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  return make(size, own_dtype(self, dtype), layout, own_device(self, device), out);
}
em_status n_new_zeros(uint64_t ks, em_tensor *self, em_ints size, OPTIONS, em_tensor **out) {
  return n_zeros(ks, size, own_dtype(self, dtype), layout, own_device(self, device), pin_memory, out);
}
em_status n_new_ones(uint64_t ks, em_tensor *self, em_ints size, OPTIONS, em_tensor **out) {
  return n_ones(ks, size, own_dtype(self, dtype), layout, own_device(self, device), pin_memory, out);
}
em_status n_new_full(uint64_t ks, em_tensor *self, em_ints size, em_scalar value, OPTIONS, em_tensor **out) {
  return n_full(ks, size, value, own_dtype(self, dtype), layout, own_device(self, device), pin_memory, out);
}

// --- ranges: element i is start + step * i, computed in double (int64 for integers) and rounded once
static em_status arange_count(em_scalar start, em_scalar end, em_scalar step, int dtype, bool integral, int64_t *n) {
  double b = em_scalar_to_double(start), e = em_scalar_to_double(end), s = em_scalar_to_double(step);
  if (s == 0) return em_fail(EM_ERR_RUNTIME, "step must be nonzero");
  if (em_dtype_is_integral(dtype) && em_scalar_to_int(step) == 0) return em_fail(EM_ERR_VALUE, "step must be nonzero");
  if (!isfinite(b) || !isfinite(e)) return em_fail(EM_ERR_RUNTIME, "unsupported range: %g -> %g", b, e);
  if (!((s > 0 && e >= b) || (s < 0 && e <= b)))
    return em_fail(EM_ERR_RUNTIME, "upper bound and lower bound inconsistent with step sign");
  double count;
  if (integral) {  // exact for 64-bit integers, where double has 53 bits
    __int128 diff = (__int128)em_scalar_to_int(end) - em_scalar_to_int(start), st = em_scalar_to_int(step);
    __int128 c = (diff + st - (st > 0 ? 1 : -1)) / st;
    count = (double)c;
    *n = (int64_t)c;
  } else {
    count = ceil((e - b) / s);
    *n = count >= 0 && count < 0x1p62 ? (int64_t)count : 0;
  }
  if (!(count >= 0 && count < 0x1p62)) return em_fail(EM_ERR_RUNTIME, "invalid size, possible overflow?");
  return EM_OK;
}
static em_status arange(em_scalar start, em_scalar end, em_scalar step, OPTIONS, em_tensor **out) {
  (void)pin_memory;
  bool integral = start.kind <= EM_SCALAR_INT && end.kind <= EM_SCALAR_INT && step.kind <= EM_SCALAR_INT;
  if (dtype < 0) dtype = integral ? EM_I64 : em_dtype_default();
  if (em_dtype_is_complex(dtype) || dtype == EM_BOOL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"arange_cpu\" not implemented for '%s'", em_dtype_scalar_name(dtype));
  int64_t n;
  EM_PASS(arange_count(start, end, step, dtype, integral || dtype == EM_I64, &n));
  EM_PASS(make((em_ints){&n, 1}, dtype, layout, device, out));
  em_tensor *t = *out;
  if (t->device.type == EM_DEVICE_META || n == 0) return EM_OK;
  enum { TILE = 512 };
  union { int64_t i[TILE]; double d[TILE]; } tile;
  bool ints = em_dtype_is_integral(dtype);
  int64_t bi = em_scalar_to_int(start), si = em_scalar_to_int(step);
  double bd = em_scalar_to_double(start), sd = em_scalar_to_double(step);
  for (int64_t at = 0; at < n; at += TILE) {
    int64_t m = n - at < TILE ? n - at : TILE;
    for (int64_t k = 0; k < m; k++) {
      if (ints) tile.i[k] = bi + si * (at + k);
      else tile.d[k] = bd + sd * (double)(at + k);
    }
    em_tensor_put(t, at, &tile, ints ? EM_I64 : EM_F64, m);
  }
  return EM_OK;
}
em_status n_arange(uint64_t ks, em_scalar end, OPTIONS, em_tensor **out) {
  (void)ks;
  return arange(em_scalar_int(0), end, em_scalar_int(1), PASS_OPTIONS, pin_memory, out);
}
em_status n_arange_start(uint64_t ks, em_scalar start, em_scalar end, OPTIONS, em_tensor **out) {
  (void)ks;
  return arange(start, end, em_scalar_int(1), PASS_OPTIONS, pin_memory, out);
}
em_status n_arange_start_step(uint64_t ks, em_scalar start, em_scalar end, em_scalar step, OPTIONS, em_tensor **out) {
  (void)ks;
  return arange(start, end, step, PASS_OPTIONS, pin_memory, out);
}

// Both halves count from their own end, so that the last element is exactly `end` and the sequence is symmetric.
em_status n_linspace(uint64_t ks, em_scalar start, em_scalar end, int64_t steps, OPTIONS, em_tensor **out) {
  UNUSED_OPTIONS;
  if (steps < 0) return em_fail(EM_ERR_RUNTIME, "number of steps must be non-negative");
  bool complex_ends = start.kind == EM_SCALAR_COMPLEX || end.kind == EM_SCALAR_COMPLEX;
  if (dtype < 0) dtype = complex_ends ? em_dtype_to_complex(em_dtype_default()) : em_dtype_default();
  else if (complex_ends && !em_dtype_is_complex(dtype))
    return em_fail(EM_ERR_RUNTIME,
                   "torch.linspace(): inferred dtype ComplexFloat can't be safely cast to passed dtype %s",
                   em_dtype_name(dtype));
  if (dtype == EM_BOOL) return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"linspace_cpu\" not implemented for 'Bool'");
  EM_PASS(make((em_ints){&steps, 1}, dtype, layout, device, out));
  em_tensor *t = *out;
  if (t->device.type == EM_DEVICE_META) return EM_OK;
  em_c128 b = em_scalar_to_c128(start), e = em_scalar_to_c128(end);
  double n1 = (double)(steps - 1);
  if (em_dtype_is_integral(dtype)) b.re = trunc(b.re), e.re = trunc(e.re);
  bool single = dtype == EM_F32;
  em_c128 step = {(e.re - b.re) / n1, (e.im - b.im) / n1};
  float step_f = ((float)e.re - (float)b.re) / (float)n1;  // f32 rounds step by step, as the reference does
  for (int64_t i = 0; i < steps; i++) {
    em_c128 v;
    bool low = i < steps / 2;
    double k = (double)(low ? i : steps - 1 - i);
    if (steps == 1) v = b;
    else if (single) v = (em_c128){low ? fmaf(step_f, (float)k, (float)b.re) : fmaf(-step_f, (float)k, (float)e.re), 0};
    else
      v = low ? (em_c128){fma(step.re, k, b.re), fma(step.im, k, b.im)}
              : (em_c128){fma(-step.re, k, e.re), fma(-step.im, k, e.im)};
    em_tensor_put(t, i, &v, EM_C128, 1);
  }
  return EM_OK;
}

em_status c_linspace_tensors(em_tensor *start, em_tensor *end, int64_t steps, OPTIONS, em_tensor **out) {
  em_scalar b, e;
  if (start->ndim > 0 || end->ndim > 0)
    return em_fail(EM_ERR_RUNTIME,
                   "linspace only supports 0-dimensional start and end tensors, but got start with %d dimension(s) and "
                   "end with %d dimension(s).",
                   start->ndim, end->ndim);
  EM_PASS(em_tensor_item(start, &b));
  EM_PASS(em_tensor_item(end, &e));
  return em_call_linspace(b, e, steps, PASS_OPTIONS, pin_memory, out);
}
em_status c_linspace_tensor_scalar(em_tensor *start, em_scalar end, int64_t steps, OPTIONS, em_tensor **out) {
  em_scalar b;
  if (start->ndim > 0)
    return em_fail(EM_ERR_RUNTIME,
                   "linspace only supports 0-dimensional start and end tensors, but got start with %d dimension(s).",
                   start->ndim);
  EM_PASS(em_tensor_item(start, &b));
  return em_call_linspace(b, end, steps, PASS_OPTIONS, pin_memory, out);
}
em_status c_linspace_scalar_tensor(em_scalar start, em_tensor *end, int64_t steps, OPTIONS, em_tensor **out) {
  em_scalar e;
  if (end->ndim > 0)
    return em_fail(EM_ERR_RUNTIME,
                   "linspace only supports 0-dimensional start and end tensors, but got end with %d dimension(s).",
                   end->ndim);
  EM_PASS(em_tensor_item(end, &e));
  return em_call_linspace(start, e, steps, PASS_OPTIONS, pin_memory, out);
}

em_status n_eye_m(uint64_t ks, int64_t n, int64_t m, OPTIONS, em_tensor **out) {
  if (n < 0) return em_fail(EM_ERR_RUNTIME, "n must be greater or equal to 0, got %lld", (long long)n);
  if (m < 0) return em_fail(EM_ERR_RUNTIME, "m must be greater or equal to 0, got %lld", (long long)m);
  EM_PASS(n_zeros(ks, EM_INTS(n, m), dtype, layout, device, pin_memory, out));
  em_tensor *t = *out, *diagonal;
  if (t->device.type == EM_DEVICE_META || t->numel == 0) return EM_OK;
  int64_t k = n < m ? n : m, stride = m + 1;
  em_status st = em_tensor_new_window(t->storage, 1, &k, &stride, 0, t->dtype, &diagonal);
  if (st == EM_OK) {
    st = em_fill(diagonal, em_scalar_int(1));
    em_tensor_release(diagonal);
  }
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}
em_status n_eye(uint64_t ks, int64_t n, OPTIONS, em_tensor **out) {
  return n_eye_m(ks, n, n, PASS_OPTIONS, pin_memory, out);
}
