// shape.c: operators that rearrange into fresh tensors: triangles, diagonals, repeats, logspace.
#include <math.h>
#include <string.h>
#include "../dispatch/view_entry.h"
#include "copy.h"
#include "gen_ops.h"
#include "own.h"

// ---- tril, triu
static em_status check_triangle(em_tensor *self, const char *name, em_plan *p) {
  if (self->ndim < 2) return em_fail(EM_ERR_RUNTIME, "%s: input tensor must have at least 2 dimensions", name);
  p->over_self = true;
  em_plan_output_set(p, self->dtype, self->ndim, self->sizes, self->device);
  return EM_OK;
}
em_status check_tril(em_tensor *self, int64_t diagonal, em_plan *p) {
  (void)diagonal;
  return check_triangle(self, "tril", p);
}
em_status check_triu(em_tensor *self, int64_t diagonal, em_plan *p) {
  (void)diagonal;
  return check_triangle(self, "triu", p);
}

// ---- tril_indices, triu_indices: a row of row numbers over a row of column numbers, row by row of the matrix
static int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }
// The columns [*from, *to) of row i that belong to the triangle.
static void columns_of(int64_t i, int64_t columns, int64_t offset, bool upper, int64_t *from, int64_t *to) {
  // offset is clamped by the caller, so that nothing overflows
  *from = upper ? clamp(i + offset, 0, columns) : 0;
  *to = upper ? columns : clamp(i + offset + 1, 0, columns);
}
// How many elements a triangle has: the columns of its rows grow by one each between the ends, so that no row is visited.
static em_status count_triangle(int64_t rows, int64_t columns, int64_t offset, bool upper, int64_t *count) {
  __int128 n = 0;
  // lower: row i has clamp(i + offset + 1, 0, columns) elements
  const int64_t empty = clamp(-offset, 0, rows);                     // rows without any
  const int64_t full = clamp(columns - offset - 1, empty, rows);             // first row that has them all
  n = (__int128)(full - empty) * (2 * (__int128)offset + empty + full + 1) / 2 + (__int128)(rows - full) * columns;
  if (upper) {
    // upper with offset d is all that lower with d - 1 is not
    int64_t lower;
    EM_PASS(count_triangle(rows, columns, offset - 1, false, &lower));
    n = (__int128)rows * columns - lower;
  }
  if (n > INT64_MAX / 16) return em_fail(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=[2, %lld]",
                                       (long long)INT64_MAX);
  *count = (int64_t)n;
  return EM_OK;
}
static em_status triangle_indices(int64_t rows, int64_t columns, int64_t offset, bool upper, int dtype,
                                  em_device device, em_tensor **out) {
  if (rows < 0) return em_fail(EM_ERR_RUNTIME, "row must be non-negative, got%lld", (long long)rows);
  if (columns < 0) return em_fail(EM_ERR_RUNTIME, "col must be non-negative, got%lld", (long long)columns);
  if (dtype < 0) dtype = EM_I64;
  if (device.type < 0) device.type = EM_DEVICE_CPU;
  EM_PASS(em_device_check(device));
  if (em_dtype_class_of(dtype) != EM_CLASS_INT)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"%s_indices\" not implemented for '%s'", upper ? "triu" : "tril",
                   em_dtype_scalar_name(dtype));
  int64_t n = 0;
  offset = clamp(offset, -(1ll << 61), 1ll << 61);
  if (rows >= 1ll << 60 || columns >= 1ll << 60)
    return em_fail(EM_ERR_RUNTIME, "invalid size, possible overflow? row %lld, col %lld", (long long)rows, (long long)columns);
  if (rows > 0 && columns > 0) EM_PASS(count_triangle(rows, columns, offset, upper, &n));
  EM_OWN t = NULL;
  EM_PASS(em_tensor_new(2, (const int64_t[]){2, n}, dtype, (em_device){device.type, -1}, &t));
  if (device.type == EM_DEVICE_META || n == 0) return em_priv_give(&t, out);
  enum { TILE = 512 };
  int64_t row[TILE], column[TILE], k = 0, at = 0;
  // rows without elements, before or after the others, may be very many
  const int64_t first = upper ? 0 : clamp(-offset, 0, rows), end = upper ? clamp(columns - offset, 0, rows) : rows;
  for (int64_t i = first; i < end; i++) {
    int64_t from, to;
    columns_of(i, columns, offset, upper, &from, &to);
    for (int64_t j = from; j < to; j++) {
      row[k] = i;
      column[k++] = j;
      if (k < TILE) continue;
      em_tensor_put(t, at, row, EM_I64, k);
      em_tensor_put(t, n + at, column, EM_I64, k);
      at += k;
      k = 0;
    }
  }
  em_tensor_put(t, at, row, EM_I64, k);
  em_tensor_put(t, n + at, column, EM_I64, k);
  return em_priv_give(&t, out);
}
em_status n_tril_indices(uint64_t ks, int64_t row, int64_t col, int64_t offset, int dtype, int layout, em_device device,
                         em_opt_bool pin_memory, em_tensor **out) {
  (void)ks, (void)layout, (void)pin_memory;
  return triangle_indices(row, col, offset, false, dtype, device, out);
}
em_status n_triu_indices(uint64_t ks, int64_t row, int64_t col, int64_t offset, int dtype, int layout, em_device device,
                         em_opt_bool pin_memory, em_tensor **out) {
  (void)ks, (void)layout, (void)pin_memory;
  return triangle_indices(row, col, offset, true, dtype, device, out);
}

// ---- diagonals
em_status n_diag_embed(uint64_t ks, em_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, em_tensor **out) {
  (void)ks;
  const int n = self->ndim + 1;
  EM_PASS(em_shape_wrap_dim(dim1, n, true, &dim1));
  EM_PASS(em_shape_wrap_dim(dim2, n, true, &dim2));
  if (dim1 == dim2)
    return em_fail(EM_ERR_RUNTIME, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                   (long long)dim2);
  if (n > EM_MAX_DIMS) return em_fail(EM_ERR_RUNTIME, "diag_embed: at most %d dimensions are supported", EM_MAX_DIMS);
  int64_t sizes[EM_MAX_DIMS], side;
  if (offset == INT64_MIN || __builtin_add_overflow(self->sizes[self->ndim - 1], offset < 0 ? -offset : offset, &side))
    return em_fail(EM_ERR_RUNTIME, "diag_embed: offset %lld is too large", (long long)offset);
  for (int i = 0, k = 0; i < n; i++) sizes[i] = i == dim1 || i == dim2 ? side : self->sizes[k++];
  EM_OWN t = NULL;
  EM_OWN window = NULL;
  EM_PASS(em_tensor_new(n, sizes, self->dtype, self->device, &t));
  if (t->device.type == EM_DEVICE_META || t->numel == 0) return em_priv_give(&t, out);
  EM_PASS(em_fill(t, em_scalar_int(0)));
  em_geometry g;
  EM_PASS(view_diagonal(t, offset, dim1, dim2, &g));
  EM_PASS(em_tensor_new_window(t->storage, g.ndim, g.sizes, g.strides, g.offset, t->dtype, &window));
  EM_PASS(em_copy_into(window, self));
  return em_priv_give(&t, out);
}

// ---- repeat: self laid over a result whose dims are taken as (repeats, size) pairs: one copy
em_status n_repeat(uint64_t ks, em_tensor *self, em_ints repeats, em_tensor **out) {
  (void)ks;
  if (repeats.n < self->ndim)
    return em_fail(EM_ERR_RUNTIME,
                   "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  if (repeats.n > EM_MAX_DIMS / 2)
    return em_fail(EM_ERR_RUNTIME, "repeat: at most %d dimensions are supported", EM_MAX_DIMS / 2);
  const int n = (int)repeats.n, lead = n - self->ndim;
  int64_t sizes[EM_MAX_DIMS], pairs[EM_MAX_DIMS], to[EM_MAX_DIMS], from[EM_MAX_DIMS];
  bool overflow = false;
  for (int d = 0; d < n; d++) {
    pairs[2 * d] = repeats.p[d];
    pairs[2 * d + 1] = d < lead ? 1 : self->sizes[d - lead];
    overflow |= __builtin_mul_overflow(pairs[2 * d], pairs[2 * d + 1], &sizes[d]);
  }
  char a[512];
  for (int d = 0; d < n; d++)
    if (sizes[d] < 0 && !overflow)
      return em_fail(EM_ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes[d],
                     em_shape_format(n, sizes, a, sizeof a));
  if (overflow)
    return em_fail(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s",
                   em_shape_format(n, repeats.p, a, sizeof a));
  EM_OWN t = NULL;
  EM_OWN source = NULL;
  EM_OWN target = NULL;
  EM_PASS(em_tensor_new(n, sizes, self->dtype, self->device, &t));
  if (t->device.type == EM_DEVICE_META || t->numel == 0) return em_priv_give(&t, out);
  for (int d = 0; d < n; d++) {
    to[2 * d] = t->strides[d] * pairs[2 * d + 1];
    to[2 * d + 1] = t->strides[d];
    from[2 * d] = 0;
    from[2 * d + 1] = d < lead ? 0 : self->strides[d - lead];
  }
  EM_PASS(em_tensor_new_window(t->storage, 2 * n, pairs, to, t->offset, t->dtype, &target));
  EM_PASS(em_tensor_new_window(self->storage, 2 * n, pairs, from, self->offset, self->dtype, &source));
  EM_PASS(em_copy_into(target, source));
  return em_priv_give(&t, out);
}

// ---- logspace: base to the power of what linspace gives, in the dtype's own precision
static em_c128 complex_power(em_c128 base, em_c128 e) {
  if (base.re == 0 && base.im == 0) return e.re == 0 && e.im == 0 ? (em_c128){1, 0} : (em_c128){0, 0};
  const double lr = log(hypot(base.re, base.im)), arg = atan2(base.im, base.re);
  const double size = exp(e.re * lr - e.im * arg), angle = e.im * lr + e.re * arg;
  return (em_c128){size * cos(angle), size * sin(angle)};
}
typedef struct range { em_c128 b, e, step; float step_f; int64_t steps; } range;
static em_c128 power_at(const range *r, double base, int dtype, int64_t i) {
  const bool low = i < r->steps / 2;
  const double k = (double)(low ? i : r->steps - 1 - i);
  if (em_dtype_is_complex(dtype)) {
    em_c128 x = r->steps == 1 ? r->b : low ? (em_c128){r->b.re + r->step.re * k, r->b.im + r->step.im * k}
                                           : (em_c128){r->e.re - r->step.re * k, r->e.im - r->step.im * k};
    return complex_power((em_c128){base, 0}, x);
  }
  if (dtype == EM_F32 || dtype == EM_F16 || dtype == EM_BF16) {
    const float b = (float)r->b.re, e = (float)r->e.re;
    const float x = r->steps == 1 ? b : low ? b + r->step_f * (float)k : e - r->step_f * (float)k;
    return (em_c128){powf((float)base, x), 0};
  }
  if (dtype != EM_F64) {  // integers: the exponent's step in single precision
    const float x = r->steps == 1 ? (float)r->b.re : low ? (float)r->b.re + r->step_f * (float)k
                                                         : (float)r->e.re - r->step_f * (float)k;
    return (em_c128){pow(base, (double)x), 0};
  }
  return (em_c128){pow(base, r->steps == 1 ? r->b.re : low ? r->b.re + r->step.re * k : r->e.re - r->step.re * k), 0};
}
em_status n_logspace(uint64_t ks, em_scalar start, em_scalar end, int64_t steps, double base, int dtype, int layout,
                     em_device device, em_opt_bool pin_memory, em_tensor **out) {
  (void)ks, (void)layout, (void)pin_memory;
  if (steps < 0) return em_fail(EM_ERR_RUNTIME, "number of steps must be non-negative");
  const bool complex_ends = start.kind == EM_SCALAR_COMPLEX || end.kind == EM_SCALAR_COMPLEX;
  if (dtype < 0) dtype = complex_ends ? em_dtype_to_complex(em_dtype_default()) : em_dtype_default();
  else if (complex_ends && !em_dtype_is_complex(dtype))
    return em_fail(EM_ERR_RUNTIME,
                   "torch.logspace(): inferred dtype c10::complex<float> can't be safely cast to passed dtype %s",
                   em_dtype_scalar_name(dtype));
  if (dtype == EM_BOOL) return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"logspace_cpu\" not implemented for 'Bool'");
  if (device.type < 0) device.type = EM_DEVICE_CPU;
  EM_PASS(em_device_check(device));
  EM_OWN t = NULL;
  EM_PASS(em_tensor_new(1, &steps, dtype, (em_device){device.type, -1}, &t));
  if (device.type == EM_DEVICE_META) return em_priv_give(&t, out);
  range r = {.b = em_scalar_to_c128(start), .e = em_scalar_to_c128(end), .steps = steps};
  if (em_dtype_is_integral(dtype)) r.b.re = trunc(r.b.re), r.e.re = trunc(r.e.re);
  r.step = (em_c128){(r.e.re - r.b.re) / (double)(steps - 1), (r.e.im - r.b.im) / (double)(steps - 1)};
  r.step_f = ((float)r.e.re - (float)r.b.re) / (float)(steps - 1);
  for (int64_t i = 0; i < steps; i++) {
    em_c128 v = power_at(&r, base, dtype, i);
    em_tensor_put(t, i, &v, EM_C128, 1);
  }
  return em_priv_give(&t, out);
}
static em_status end_point(em_tensor *t, em_tensor *start, em_tensor *end, em_scalar *out) {
  if (t->ndim == 0) return em_tensor_item(t, out);
  if (start == NULL)
    return em_fail(EM_ERR_RUNTIME, "logspace only supports 0-dimensional start and end tensors, but got end with %d dimension(s).",
                   t->ndim);
  if (end == NULL)
    return em_fail(EM_ERR_RUNTIME,
                   "logspace only supports 0-dimensional start and end tensors, but got start with %d dimension(s).",
                   t->ndim);
  return em_fail(EM_ERR_RUNTIME,
                 "logspace only supports 0-dimensional start and end tensors, but got start with %d dimension(s) and end "
                 "with %d dimension(s).",
                 start->ndim, end->ndim);
}
#define OPTIONS int dtype, int layout, em_device device, em_opt_bool pin_memory
em_status c_logspace_tensors(em_tensor *start, em_tensor *end, int64_t steps, double base, OPTIONS, em_tensor **out) {
  em_scalar b, e;
  EM_PASS(end_point(start, start, end, &b));
  EM_PASS(end_point(end, start, end, &e));
  return em_call_logspace(b, e, steps, base, dtype, layout, device, pin_memory, out);
}
em_status c_logspace_tensor_scalar(em_tensor *start, em_scalar end, int64_t steps, double base, OPTIONS, em_tensor **out) {
  em_scalar b;
  EM_PASS(end_point(start, start, NULL, &b));
  return em_call_logspace(b, end, steps, base, dtype, layout, device, pin_memory, out);
}
em_status c_logspace_scalar_tensor(em_scalar start, em_tensor *end, int64_t steps, double base, OPTIONS, em_tensor **out) {
  em_scalar e;
  EM_PASS(end_point(end, NULL, end, &e));
  return em_call_logspace(start, e, steps, base, dtype, layout, device, pin_memory, out);
}
