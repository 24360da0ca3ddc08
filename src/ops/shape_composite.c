// shape_composite.c: rearranging operators made of others: rolls, rotations, stacks, pieces, repeats. Their parts record.
#include <string.h>
#include "../core/iterator.h"
#include "gen_ops.h"
#include "own.h"

// ---- diagonals
em_status c_diag(em_tensor *self, int64_t diagonal, em_tensor **out) {
  if (self->ndim == 1) return em_call_diag_embed(self, diagonal, 0, 1, out);
  if (self->ndim == 2) return em_call_diagonal_copy(self, diagonal, 0, 1, out);
  return em_fail(EM_ERR_RUNTIME, "diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
}
em_status c_diagflat(em_tensor *self, int64_t offset, em_tensor **out) {
  EM_OWN flat = NULL;
  EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
  return em_call_diag_embed(flat, offset, 0, 1, out);
}
em_status c_trace(em_tensor *self, em_tensor **out) {
  if (self->ndim != 2) return em_fail(EM_ERR_RUNTIME, "trace: expected a matrix, but got tensor with dim %d", self->ndim);
  if (self->dtype == EM_BOOL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "\"trace\" not implemented for '%s'", em_dtype_scalar_name(self->dtype));
  EM_OWN diagonal = NULL;
  EM_PASS(em_call_diagonal(self, 0, 0, 1, &diagonal));
  return em_call_sum(diagonal, EM_DTYPE_NONE, out);
}
em_status c_linalg_diagonal(em_tensor *self, int64_t offset, int64_t dim1, int64_t dim2, em_tensor **out) {
  return em_call_diagonal(self, offset, dim1, dim2, out);
}
em_status c_fill_diagonal_(em_tensor *self, em_scalar value, bool wrap) {
  if (self->ndim < 2) return em_fail(EM_ERR_RUNTIME, "dimensions must larger than 1");
  const int64_t height = self->sizes[0], width = self->sizes[1];
  for (int d = 1; self->ndim > 2 && d < self->ndim; d++)
    if (self->sizes[d] != height) return em_fail(EM_ERR_RUNTIME, "all dimensions of input must be of equal length");
  int64_t stride = 0, size = height < width ? height : width;
  for (int d = 0; d < self->ndim; d++) stride += self->strides[d];
  EM_OWN diagonal = NULL;
  EM_PASS(em_call_as_strided(self, EM_INTS(size), EM_INTS(stride), em_some_int(self->offset), &diagonal));
  EM_PASS(em_call_fill__Scalar(diagonal, value));
  if (!wrap || self->ndim != 2 || height <= width + 1) return EM_OK;
  // below the square it begins again, one row further down each time
  EM_OWN rest = NULL;
  const int64_t step = width + 1, again = (self->numel + step - 1) / step - size;
  EM_PASS(em_call_as_strided(self, EM_INTS(again), EM_INTS(stride), em_some_int(self->offset + self->strides[0] * step),
                             &rest));
  return em_call_fill__Scalar(rest, value);
}

// ---- order along dims
em_status c_fliplr(em_tensor *self, em_tensor **out) {
  if (self->ndim < 2) return em_fail(EM_ERR_RUNTIME, "Input must be >= 2-d.");
  return em_call_flip(self, EM_INTS(1), out);
}
em_status c_flipud(em_tensor *self, em_tensor **out) {
  if (self->ndim < 1) return em_fail(EM_ERR_RUNTIME, "Input must be >= 1-d.");
  return em_call_flip(self, EM_INTS(0), out);
}
static em_status roll_one(em_tensor *self, int64_t shift, int64_t dim, em_tensor **out) {
  if (self->ndim == 0)
    return em_fail(EM_ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
  EM_PASS(em_shape_wrap_dim(dim, self->ndim, true, &dim));
  const int64_t n = self->sizes[dim];
  if (n == 0) return em_call_clone(self, EM_FORMAT_NONE, out);
  int64_t start = -(shift % n);
  if (start < 0) start += n;
  EM_OWN first = NULL;
  EM_OWN second = NULL;
  EM_PASS(em_call_narrow(self, dim, start, n - start, &first));
  EM_PASS(em_call_narrow(self, dim, 0, start, &second));
  return em_call_cat((em_tensors){(em_tensor *[]){first, second}, 2}, dim, out);
}
em_status c_roll(em_tensor *self, em_ints shifts, em_ints dims, em_tensor **out) {
  if (shifts.n == 0) return em_fail(EM_ERR_RUNTIME, "`shifts` required");
  if (dims.n == 0 && shifts.n == 1) {
    EM_OWN flat = NULL;
    EM_OWN rolled = NULL;
    EM_PASS(em_call_reshape(self, EM_INTS(-1), &flat));
    EM_PASS(roll_one(flat, shifts.p[0], 0, &rolled));
    return em_call_view(rolled, (em_ints){self->sizes, self->ndim}, out);
  }
  if (shifts.n != dims.n)
    return em_fail(EM_ERR_RUNTIME, "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)shifts.n,
                   (long long)dims.n);
  EM_OWN t = em_tensor_retain(self);
  for (int64_t i = 0; i < shifts.n; i++) {
    em_tensor *next;
    EM_PASS(roll_one(t, shifts.p[i], dims.p[i], &next));
    em_tensor_release(t);
    t = next;
  }
  return em_priv_give(&t, out);
}
em_status c_rot90(em_tensor *self, int64_t k, em_ints dims, em_tensor **out) {
  if (dims.n != 2)
    return em_fail(EM_ERR_RUNTIME, "expected total rotation dims == 2, but got dims = %lld", (long long)dims.n);
  if (self->ndim < 2)
    return em_fail(EM_ERR_RUNTIME, "expected total dims >= 2, but got total dims = %d", self->ndim);
  int64_t a, b;
  const int64_t given = dims.p[0] > dims.p[1] ? dims.p[0] - dims.p[1] : dims.p[1] - dims.p[0];
  if (dims.p[0] == dims.p[1] || given == self->ndim)
    return em_fail(EM_ERR_RUNTIME, "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                   (long long)dims.p[0], (long long)dims.p[1]);
  EM_PASS(em_shape_wrap_dim(dims.p[0], self->ndim, true, &a));
  EM_PASS(em_shape_wrap_dim(dims.p[1], self->ndim, true, &b));
  k = ((k % 4) + 4) % 4;
  if (k == 0) return em_call_clone(self, EM_FORMAT_CONTIGUOUS, out);
  if (k == 2) return em_call_flip(self, dims, out);
  EM_OWN flipped = NULL;
  EM_PASS(em_call_flip(self, EM_INTS(k == 1 ? b : a), &flipped));
  EM_PASS(em_call_transpose_(flipped, a, b));
  return em_priv_give(&flipped, out);
}
em_status c_adjoint(em_tensor *self, em_tensor **out) {
  if (self->ndim == 1)
    return em_fail(EM_ERR_RUNTIME,
                   "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
  if (self->ndim == 0) {
    EM_PASS(em_warn("adjoint() is deprecated on 0-D tensors. Consider using x.conj()."));
    return em_call_conj(self, out);
  }
  EM_OWN t = NULL;
  EM_PASS(em_call_transpose_int(self, -2, -1, &t));
  return em_call_conj(t, out);
}

// ---- repeats
em_status c_tile(em_tensor *self, em_ints dims, em_tensor **out) {
  if (dims.n > EM_MAX_DIMS / 2)
    return em_fail(EM_ERR_RUNTIME, "tile: at most %d dimensions are supported", EM_MAX_DIMS / 2);
  int64_t repeats[EM_MAX_DIMS], n = dims.n > self->ndim ? dims.n : self->ndim;
  for (int64_t i = 0; i < n; i++) repeats[i] = i < n - dims.n ? 1 : dims.p[i - (n - dims.n)];
  return em_call_repeat(self, (em_ints){repeats, n}, out);
}
// The dim to repeat along, and self flattened when none is given.
static em_status along_dim(em_tensor *self, em_opt_int dim, int64_t *at, em_tensor **input) {
  if (!dim.has) {
    *at = 0;
    return em_call_flatten_using_ints(self, 0, -1, input);
  }
  *at = dim.v;
  *input = em_tensor_retain(self);
  return EM_OK;
}
em_status c_repeat_interleave_tensor(em_tensor *self, em_tensor *repeats, em_opt_int dim, em_opt_int output_size,
                                     em_tensor **out) {
  EM_OWN input = NULL;
  EM_OWN times = NULL;
  EM_OWN index = NULL;
  int64_t d;
  if (self->ndim == 0 && dim.has && self->numel == 1 && repeats->ndim > 0)
    return em_fail(EM_ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim.v);
  EM_PASS(along_dim(self, dim, &d, &input));
  EM_PASS(em_shape_wrap_dim(d, input->ndim, true, &d));
  const int64_t n = input->ndim == 0 ? 1 : input->sizes[d];
  if (repeats->ndim > 1) return em_fail(EM_ERR_RUNTIME, "repeats must be 0-dim or 1-dim tensor");
  if (repeats->ndim == 0 || repeats->numel == 1) {
    EM_OWN one = NULL;
    EM_PASS(em_call_reshape(repeats, EM_INTS(1), &one));
    EM_PASS(em_call_expand(one, EM_INTS(n), false, &times));
  } else {
    if (repeats->numel != n)
      return em_fail(EM_ERR_RUNTIME,
                     "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and "
                     "input.size(%lld) = %lld",
                     (long long)repeats->numel, (long long)d, (long long)n);
    times = em_tensor_retain(repeats);
  }
  EM_PASS(em_call_repeat_interleave_Tensor(times, output_size, &index));
  return em_call_index_select(input, d, index, out);
}
em_status c_repeat_interleave_int(em_tensor *self, int64_t repeats, em_opt_int dim, em_opt_int output_size,
                                  em_tensor **out) {
  EM_OWN input = NULL;
  EM_OWN deep = NULL;
  EM_OWN wide = NULL;
  EM_OWN copy = NULL;
  int64_t d, sizes[EM_MAX_DIMS], total;
  EM_PASS(along_dim(self, dim, &d, &input));
  EM_PASS(em_shape_wrap_dim(d, input->ndim, true, &d));
  if (repeats < 0) return em_fail(EM_ERR_RUNTIME, "Repeats must be non-negative");
  EM_PASS(em_call_unsqueeze(input, d + 1, &deep));
  if (__builtin_mul_overflow(input->sizes[d], repeats, &total))
    return em_fail(EM_ERR_RUNTIME, "Storage size calculation overflowed with sizes=[%lld, %lld]",
                   (long long)input->sizes[d], (long long)repeats);
  if (output_size.has && output_size.v != total)
    return em_fail(EM_ERR_RUNTIME, "repeat_interleave: Invalid output_size, expected %lld but got %lld",
                   (long long)total, (long long)output_size.v);
  memcpy(sizes, deep->sizes, sizeof(int64_t) * deep->ndim);
  sizes[d + 1] = repeats;
  EM_PASS(em_call_expand(deep, (em_ints){sizes, deep->ndim}, false, &wide));
  EM_PASS(em_call_clone(wide, EM_FORMAT_CONTIGUOUS, &copy));
  return em_call_flatten_using_ints(copy, d, d + 1, out);
}

// ---- stacks
// cat of what `lift` makes of each tensor.
static em_status joined(em_tensors tensors, const char *name, em_status (*lift)(em_tensor *, em_tensor **), int64_t dim,
                        em_tensor **out) {
  if (tensors.n == 0) return em_fail(EM_ERR_RUNTIME, "%s expects a non-empty TensorList", name);
  em_tensor_list l;
  EM_PASS(em_tensor_list_new(tensors.n, &l));
  em_status st = EM_OK;
  for (int64_t i = 0; i < l.n && st == EM_OK; i++) st = lift(tensors.p[i], &l.p[i]);
  if (st == EM_OK) st = em_call_cat((em_tensors){l.p, l.n}, dim < 0 ? (l.p[0]->ndim == 1 ? 0 : 1) : dim, out);
  em_tensor_list_clear(&l);
  return st;
}
static em_status same(em_tensor *t, em_tensor **out) {
  *out = em_tensor_retain(t);
  return EM_OK;
}
static em_status lift_1d(em_tensor *t, em_tensor **out) {
  return t->ndim == 0 ? em_call_reshape(t, EM_INTS(1), out) : same(t, out);
}
static em_status lift_2d(em_tensor *t, em_tensor **out) {
  if (t->ndim == 0) return em_call_reshape(t, EM_INTS(1, 1), out);
  return t->ndim == 1 ? em_call_unsqueeze(t, 0, out) : same(t, out);
}
static em_status lift_3d(em_tensor *t, em_tensor **out) {
  if (t->ndim == 0) return em_call_reshape(t, EM_INTS(1, 1, 1), out);
  if (t->ndim == 2) return em_call_unsqueeze(t, -1, out);
  if (t->ndim > 2) return same(t, out);
  EM_OWN row = NULL;
  EM_PASS(em_call_unsqueeze(t, 0, &row));
  return em_call_unsqueeze(row, -1, out);
}
static em_status lift_column(em_tensor *t, em_tensor **out) {
  return t->ndim <= 1 ? em_call_reshape(t, EM_INTS(t->numel, 1), out) : same(t, out);
}
em_status c_hstack(em_tensors tensors, em_tensor **out) { return joined(tensors, "hstack", lift_1d, -1, out); }
em_status c_vstack(em_tensors tensors, em_tensor **out) { return joined(tensors, "vstack", lift_2d, 0, out); }
em_status c_dstack(em_tensors tensors, em_tensor **out) { return joined(tensors, "dstack", lift_3d, 2, out); }
em_status c_column_stack(em_tensors tensors, em_tensor **out) {
  return joined(tensors, "column_stack", lift_column, 1, out);
}

// The positions [0, n) taken r at a time, in order, one choice a row.
static em_status choices(int64_t n, int64_t r, int64_t count, bool again, em_device device, em_tensor **out) {
  EM_OWN t = NULL;
  EM_PASS(em_tensor_new(1, (const int64_t[]){count * r}, EM_I64, device, &t));
  if (device.type == EM_DEVICE_META || count == 0) return em_priv_give(&t, out);
  int64_t *at = em_alloc(sizeof *at * (size_t)r);
  if (at == NULL) return EM_NOMEM(sizeof *at * (size_t)r);
  for (int64_t k = 0; k < r; k++) at[k] = again ? 0 : k;
  for (int64_t row = 0; row < count; row++) {
    em_tensor_put(t, row * r, at, EM_I64, r);
    int64_t k = r - 1;  // the last position that can still move
    while (k > 0 && at[k] == (again ? n - 1 : n - r + k)) k--;
    at[k]++;
    for (int64_t j = k + 1; j < r; j++) at[j] = again ? at[k] : at[j - 1] + 1;
  }
  em_free(at, sizeof *at * (size_t)r);
  return em_priv_give(&t, out);
}
em_status c_combinations(em_tensor *self, int64_t r, bool with_replacement, em_tensor **out) {
  char a[256];
  if (self->ndim != 1)
    return em_fail(EM_ERR_RUNTIME, "Expect a 1D vector, but got shape %s",
                   em_shape_format(self->ndim, self->sizes, a, sizeof a));
  if (r < 0) return em_fail(EM_ERR_RUNTIME, "Expect a non-negative number, but got %lld", (long long)r);
  if (r == 0) return em_call_new_empty(self, EM_INTS(0), EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, out);
  const int64_t n = self->numel;
  if (r > 1 << 20) return em_fail(EM_ERR_RUNTIME, "combinations: r is too large: %lld", (long long)r);
  // how many: n over r, or n + r - 1 over r
  __int128 count = 1;
  const int64_t m = with_replacement ? n + r - 1 : n;
  if (m < r || n == 0) count = 0;
  for (int64_t i = 1; count > 0 && i <= r; i++) {
    count = count * (m - r + i) / i;
    if (count > INT64_MAX / 8 / r)
      return em_fail(EM_ERR_RUNTIME, "combinations: too many of them for n = %lld, r = %lld", (long long)n, (long long)r);
  }
  EM_OWN flat = NULL;
  EM_OWN taken = NULL;
  EM_PASS(choices(n, r, (int64_t)count, with_replacement, self->device, &flat));
  EM_PASS(em_call_index_select(self, 0, flat, &taken));
  return em_call_reshape(taken, EM_INTS((int64_t)count, r), out);
}

// ---- pieces: windows one after another, each recorded by slice
static em_status pieces(em_tensor *self, int64_t dim, int64_t n, int64_t (*start)(const void *, int64_t), const void *rule,
                        em_tensor_list *out) {
  EM_PASS(em_tensor_list_new(n, out));
  em_status st = EM_OK;
  for (int64_t i = 0; i < n && st == EM_OK; i++) {
    em_opt_int end = i + 1 < n ? em_some_int(start(rule, i + 1)) : em_some_int(self->sizes[dim]);
    st = em_call_slice_Tensor(self, dim, em_some_int(start(rule, i)), end, 1, &out->p[i]);
  }
  if (st != EM_OK) em_tensor_list_clear(out);
  return st;
}
typedef struct sections { int64_t size, n; } sections;
static int64_t section_start(const void *rule, int64_t i) {  // the first size % n are one longer
  const sections *s = rule;
  const int64_t longer = s->size % s->n;
  return i * (s->size / s->n) + (i < longer ? i : longer);
}
static int64_t index_start(const void *rule, int64_t i) { return i == 0 ? 0 : ((const em_ints *)rule)->p[i - 1]; }
static em_status check_pieces(em_tensor *self, int64_t *dim) {
  if (self->ndim == 0)
    return em_fail(EM_ERR_RUNTIME,
                   "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return em_shape_wrap_dim(*dim, self->ndim, true, dim);
}
em_status c_tensor_split_sections(em_tensor *self, int64_t n, int64_t dim, em_tensor_list *out) {
  EM_PASS(check_pieces(self, &dim));
  if (n <= 0) return em_fail(EM_ERR_RUNTIME, "number of sections must be larger than 0, got %lld", (long long)n);
  sections rule = {self->sizes[dim], n};
  return pieces(self, dim, n, section_start, &rule, out);
}
em_status c_tensor_split_indices(em_tensor *self, em_ints indices, int64_t dim, em_tensor_list *out) {
  EM_PASS(check_pieces(self, &dim));
  return pieces(self, dim, indices.n + 1, index_start, &indices, out);
}
em_status c_tensor_split_tensor(em_tensor *self, em_tensor *where, int64_t dim, em_tensor_list *out) {
  EM_PASS(check_pieces(self, &dim));
  if (where->device.type != EM_DEVICE_CPU)
    return em_fail(EM_ERR_RUNTIME, "tensor_split expected tensor_indices_or_sections to be on cpu");
  if (where->dtype != EM_I64)
    return em_fail(EM_ERR_RUNTIME, "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
                   em_dtype_scalar_name(where->dtype));
  if (where->ndim > 1)
    return em_fail(EM_ERR_RUNTIME,
                   "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                   "tensor, but got a tensor with %d dims",
                   where->ndim);
  em_scalar s;
  if (where->ndim == 0) {
    EM_PASS(em_tensor_item(where, &s));
    return em_call_tensor_split_sections(self, s.i, dim, out);
  }
  int64_t *p = em_alloc(sizeof *p * (size_t)(where->numel + 1));
  if (p == NULL) return EM_NOMEM(sizeof *p * (size_t)(where->numel + 1));
  em_status st = EM_OK;
  for (int64_t i = 0; i < where->numel && st == EM_OK; i++) {
    EM_OWN one = NULL;
    st = em_call_select_int(where, 0, i, &one);
    if (st == EM_OK) st = em_tensor_item(one, &s);
    p[i] = s.i;
  }
  if (st == EM_OK) st = em_call_tensor_split_indices(self, (em_ints){p, where->numel}, dim, out);
  em_free(p, sizeof *p * (size_t)(where->numel + 1));
  return st;
}
static em_status named_split(em_tensor *self, const char *name, int least, int64_t dim, int64_t n, em_tensor_list *out) {
  if (self->ndim < least)
    return em_fail(EM_ERR_RUNTIME, "torch.%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!",
                   name, least, self->ndim);
  if (n == 0 || self->sizes[dim] % n != 0)
    return em_fail(EM_ERR_RUNTIME,
                   "torch.%s attempted to split along dimension %lld, but the size of the dimension %lld is not "
                   "divisible by the split_size %lld!",
                   name, (long long)dim, (long long)self->sizes[dim], (long long)n);
  return em_call_tensor_split_sections(self, n, dim, out);
}
static em_status named_cuts(em_tensor *self, const char *name, int least, int64_t dim, em_ints at, em_tensor_list *out) {
  if (self->ndim < least)
    return em_fail(EM_ERR_RUNTIME, "torch.%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!",
                   name, least, self->ndim);
  return em_call_tensor_split_indices(self, at, dim, out);
}
em_status c_hsplit_int(em_tensor *self, int64_t n, em_tensor_list *out) {
  return named_split(self, "hsplit", 1, self->ndim == 1 ? 0 : 1, n, out);
}
em_status c_hsplit_array(em_tensor *self, em_ints at, em_tensor_list *out) {
  return named_cuts(self, "hsplit", 1, self->ndim == 1 ? 0 : 1, at, out);
}
em_status c_vsplit_int(em_tensor *self, int64_t n, em_tensor_list *out) { return named_split(self, "vsplit", 2, 0, n, out); }
em_status c_vsplit_array(em_tensor *self, em_ints at, em_tensor_list *out) { return named_cuts(self, "vsplit", 2, 0, at, out); }
em_status c_dsplit_int(em_tensor *self, int64_t n, em_tensor_list *out) { return named_split(self, "dsplit", 3, 2, n, out); }
em_status c_dsplit_array(em_tensor *self, em_ints at, em_tensor_list *out) { return named_cuts(self, "dsplit", 3, 2, at, out); }

// ---- powers of a vector
static em_status powers(em_tensor *x, int64_t n, em_tensor **out) {  // x^0 ... x^(n-1) along a new last dim
  const int dtype = em_dtype_is_integral(x->dtype) ? EM_I64 : x->dtype;
  EM_OWN wide = NULL;
  EM_OWN deep = NULL;
  EM_PASS(em_call_to_dtype(x, dtype, false, false, EM_FORMAT_NONE, &wide));
  EM_PASS(em_call_unsqueeze(wide, -1, &deep));
  em_tensor_list l;
  EM_PASS(em_tensor_list_new(n, &l));
  em_status st = em_call_ones_like(deep, EM_DTYPE_NONE, -1, EM_DEVICE_NONE, -1, EM_FORMAT_NONE, &l.p[0]);
  for (int64_t i = 1; i < n && st == EM_OK; i++) st = i == 1 ? same(deep, &l.p[1]) : em_call_mul_Tensor(l.p[i - 1], deep, &l.p[i]);
  if (st == EM_OK) st = em_call_cat((em_tensors){l.p, n}, -1, out);
  em_tensor_list_clear(&l);
  return st;
}
em_status c_linalg_vander(em_tensor *x, em_opt_int N, em_tensor **out) {
  const int64_t n = N.has ? N.v : x->ndim == 0 ? 1 : x->sizes[x->ndim - 1];
  if (n <= 1) return em_fail(EM_ERR_RUNTIME, "N must be greater than 1.");
  if (x->ndim > 0) return powers(x, n, out);
  EM_OWN one = NULL;
  EM_PASS(em_call_reshape(x, EM_INTS(1), &one));
  return powers(one, n, out);
}
em_status c_vander(em_tensor *x, em_opt_int N, bool increasing, em_tensor **out) {
  if (x->ndim != 1) return em_fail(EM_ERR_RUNTIME, "x must be a one-dimensional tensor.");
  const int64_t n = N.has ? N.v : x->numel;
  if (n < 0) return em_fail(EM_ERR_RUNTIME, "N must be non-negative.");
  if (n == 0) {
    const int dtype = em_dtype_is_integral(x->dtype) ? EM_I64 : x->dtype;
    return em_call_new_empty(x, EM_INTS(x->numel, 0), dtype, -1, EM_DEVICE_NONE, -1, out);
  }
  EM_OWN t = NULL;
  EM_PASS(powers(x, n, &t));
  return increasing ? em_priv_give(&t, out) : em_call_flip(t, EM_INTS(1), out);
}
