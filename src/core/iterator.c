// iterator.c: plans a walk over several tensors. The order of the steps is PyTorch's, because it decides which error
// is raised first and which strides a new output gets:
//   overlap of given outputs -> broadcast shape -> dtypes -> devices -> dimension order -> outputs -> coalescing.
#include "iterator.h"
#include "note.h"
#include "threads.h"
#include <string.h>

#define NO_DTYPE 255  // EM_DTYPE_NONE in a uint8_t

void em_iter_init(em_iter *it, uint32_t flags) {
  it->nout = it->nin = it->ndim = 0;
  it->flags = flags;
  it->common = EM_DTYPE_NONE;
  it->numel = 0;
  it->shape.ndim = 0;
  em_promote_init(&it->promote);
}

static em_iter_operand *add_operand(em_iter *it, em_tensor *t) {
  em_iter_operand *o = &it->op[it->nout + it->nin];
  o->tensor = t;
  o->dtype = t == NULL ? NO_DTYPE : t->dtype;
  o->compute = NO_DTYPE;
  o->allocated = o->is_mask = o->resize = 0;
  o->copy_back = NULL;
  o->data = NULL;
  return o;
}

void em_iter_add_output(em_iter *it, em_tensor *out, int dtype_or_none) {
  em_iter_operand *o = add_operand(it, out);
  o->compute = (uint8_t)dtype_or_none;
  if (out == NULL) o->dtype = (uint8_t)dtype_or_none;
  it->nout++;
}

void em_iter_add_input(em_iter *it, em_tensor *in) {
  add_operand(it, in);
  it->nin++;
}

void em_iter_add_mask(em_iter *it, em_tensor *in) {
  add_operand(it, in)->is_mask = 1;
  it->nin++;
}

void em_iter_add_scalar(em_iter *it, em_scalar s) { em_promote_add_scalar(&it->promote, s); }

static bool same_window(const em_tensor *a, const em_tensor *b) {
  if (a == b) return true;
  if (em_tensor_data(a) != em_tensor_data(b) || a->dtype != b->dtype || !em_tensor_same_sizes(a, b)) return false;
  return a->ndim == 0 || memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

// Overlap that PyTorch can decide is refused with its words; where deciding would be too hard (windows with gaps in one
// storage) the output is computed aside and copied, so that the result never depends on the order of the walk.
static em_status check_overlap(em_iter *it) {
  if (it->flags & (EM_ITER_NO_ALLOC_CHECKS | EM_ITER_MEM_OVERLAP_OK)) return EM_OK;
  for (int i = 0; i < it->nout; i++) {
    em_tensor *out = it->op[i].tensor;
    if (out == NULL) continue;
    EM_PASS(em_shape_assert_no_internal_overlap(out));
    for (int j = 0; j < it->nin; j++) {
      em_tensor *in = it->op[it->nout + j].tensor;
      if (in == out || in->storage != out->storage || in->storage == NULL) continue;
      EM_PASS(em_shape_assert_no_partial_overlap(out, in));
      if (em_shape_pair_overlap(out, in) == EM_PAIR_TOO_HARD && !same_window(out, in)) it->op[i].copy_back = out;
    }
  }
  return EM_OK;
}

static em_status plan_shape(em_iter *it) {
  bool first = true;
  for (int i = 0; i < it->nin; i++) {
    const em_tensor *t = it->op[it->nout + i].tensor;
    if (first) EM_PASS(em_shape_of(t, &it->shape));
    else if (!em_shape_equal(it->shape.ndim, it->shape.sizes, t->ndim, t->sizes))
      EM_PASS(em_shape_broadcast(&it->shape, t->ndim, t->sizes));
    first = false;
  }
  if (first && it->nout > 0 && it->op[0].tensor != NULL) EM_PASS(em_shape_of(it->op[0].tensor, &it->shape));
  for (int i = 0; i < it->nout; i++) {
    const em_tensor *t = it->op[i].tensor;
    if (t == NULL || em_shape_equal(it->shape.ndim, it->shape.sizes, t->ndim, t->sizes)) continue;
    if ((it->flags & EM_ITER_OUT) && !((it->flags & EM_ITER_INPLACE) && i == 0)) {
      it->op[i].resize = 1;
      it->op[i].copy_back = NULL;
      continue;
    }
    // an output that was not to be resized: copy_ broadcasts its source against it, in-place operators their operands
    em_shape both;
    EM_PASS(em_shape_of(t, &both));
    EM_PASS(em_shape_broadcast(&both, it->shape.ndim, it->shape.sizes));
    if (!em_shape_equal(both.ndim, both.sizes, t->ndim, t->sizes)) {
      char have[256], want[256];
      return em_fail(EM_ERR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                     em_shape_format(t->ndim, t->sizes, have, sizeof have),
                     em_shape_format(both.ndim, both.sizes, want, sizeof want));
    }
    it->shape = both;
  }
  return em_shape_numel(it->shape.ndim, it->shape.sizes, &it->numel);
}

static em_status common_dtype(em_iter *it, em_promotion promotion) {
  bool mixed = it->promote.wrapped_result != EM_DTYPE_NONE;
  int first = EM_DTYPE_NONE;
  for (int i = 0; i < it->nin; i++) {
    const em_iter_operand *o = &it->op[it->nout + i];
    if (o->is_mask) continue;
    if (first == EM_DTYPE_NONE) first = o->dtype;
    else if (first != o->dtype) {
      if (it->flags & EM_ITER_SAME_DTYPE)
        return em_fail(EM_ERR_RUNTIME, "Found dtype %s but expected %s", em_dtype_scalar_name(o->dtype),
                       em_dtype_scalar_name(first));
      mixed = true;
    }
    em_promote_add(&it->promote, o->tensor);
  }
  int common = mixed ? em_promote_result(&it->promote) : first;
  const bool to_float = promotion == EM_PROMO_INT_TO_FLOAT || promotion == EM_PROMO_FLOAT_TO_REAL;
  if (to_float && common != EM_DTYPE_NONE && em_dtype_is_integral(common))
    common = em_dtype_default();
  it->common = common;
  return EM_OK;
}

static em_status plan_dtypes(em_iter *it, em_promotion promotion) {
  if (promotion == EM_PROMO_NONE) {
    for (int i = 0; i < it->nout + it->nin; i++) it->op[i].compute = em_priv_dtypes[it->op[i].dtype].compute;
    return EM_OK;
  }
  EM_PASS(common_dtype(it, promotion));
  const bool to_real = promotion == EM_PROMO_COMPLEX_TO_REAL || promotion == EM_PROMO_FLOAT_TO_REAL;
  int result = to_real ? em_dtype_to_real(it->common) : it->common;
  for (int i = 0; i < it->nout; i++) {
    em_iter_operand *o = &it->op[i];
    int dtype = o->compute != NO_DTYPE ? o->compute : promotion == EM_PROMO_BOOL_OUT ? EM_BOOL : result;
    o->compute = em_priv_dtypes[dtype].compute;
    if (o->tensor == NULL) {
      o->dtype = (uint8_t)dtype;
    } else if (dtype != o->dtype && dtype != EM_BOOL && !em_dtype_can_cast(result, o->dtype)) {
      return em_fail(EM_ERR_RUNTIME, "result type %s can't be cast to the desired output type %s",
                     em_dtype_scalar_name(result), em_dtype_scalar_name(o->dtype));
    }
  }
  for (int i = 0; i < it->nin; i++) {
    em_iter_operand *o = &it->op[it->nout + i];
    o->compute = o->is_mask ? EM_BOOL : em_priv_dtypes[it->common].compute;
  }
  return EM_OK;
}

// 0-dim CPU tensors may stand beside tensors of any device.
static em_status plan_device(em_iter *it) {
  em_device common = EM_DEVICE_NONE;
  for (int pass = 0; pass < 2 && !em_device_given(common); pass++)
    for (int i = 0; i < it->nout + it->nin && !em_device_given(common); i++) {
      const em_tensor *t = it->op[i].tensor;
      if (t != NULL && (pass == 1 || t->ndim > 0 || t->device.type != EM_DEVICE_CPU)) common = t->device;
    }
  it->device = common;
  for (int i = 0; i < it->nout + it->nin; i++) {
    const em_tensor *t = it->op[i].tensor;
    if (t == NULL || em_device_equal(t->device, common)) continue;
    if (i >= it->nout && t->ndim == 0 && t->device.type == EM_DEVICE_CPU) continue;
    char a[32], b[32];
    if (t->device.type == EM_DEVICE_META || common.type == EM_DEVICE_META)
      return em_fail(EM_ERR_RUNTIME, "Tensor on device %s is not on the expected device %s!",
                     em_device_format(t->device, a), em_device_format(common, b));
    return em_fail(EM_ERR_RUNTIME,
                   "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
                   em_device_format(common, a), em_device_format(t->device, b));
  }
  return EM_OK;
}

// --- dimension order and strides ------------------------------------------------------------------------------------

static bool fixed_strides(const em_iter_operand *o) { return o->tensor != NULL && !o->resize; }

// Byte strides over the broadcast shape, in the user's dimension order.
static void operand_strides(em_iter *it, em_iter_operand *o) {
  const em_tensor *t = o->tensor;
  int lead = it->shape.ndim - t->ndim;
  int64_t item = (int64_t)em_tensor_itemsize(t);
  for (int d = 0; d < lead; d++) o->strides[d] = 0;
  for (int d = 0; d < t->ndim; d++)
    o->strides[lead + d] = t->sizes[d] == 1 && it->shape.sizes[lead + d] != 1 ? 0 : t->strides[d] * item;
}

// Should dim a come outside dim b? 1: yes, swap; -1: no, for sure; 0: the operands do not say.
static int compare_dims(const em_iter *it, int a, int b) {
  for (int i = 0; i < it->nout + it->nin; i++) {
    const em_iter_operand *o = &it->op[i];
    if (!fixed_strides(o)) continue;
    int64_t sa = o->strides[a], sb = o->strides[b];
    if (sa == 0 || sb == 0) continue;
    if (sa < sb) return -1;
    if (sa > sb) return 1;
    if (it->shape.sizes[a] > it->shape.sizes[b]) return 1;
  }
  return 0;
}

// perm[0] is the innermost dimension. Insertion sort that keeps the row-major order where strides are ambiguous.
static void order_dims(const em_iter *it, int *perm) {
  int n = it->shape.ndim;
  for (int i = 0; i < n; i++) perm[i] = n - 1 - i;
  for (int i = 1; i < n; i++) {
    int moving = i;
    for (int j = i - 1; j >= 0; j--) {
      int c = compare_dims(it, perm[j], perm[moving]);
      if (c < 0) break;
      if (c > 0) {
        int keep = perm[j];
        perm[j] = perm[moving];
        perm[moving] = keep;
        moving = j;
      }
    }
  }
}

em_status em_iter_resize_given(em_tensor *out, int ndim, const int64_t *sizes, const int64_t *strides) {
  if (out->numel != 0 && !em_shape_equal(out->ndim, out->sizes, ndim, sizes)) {
    char have[256], want[256];
    EM_PASS(em_warn(
        "An output with one or more elements was resized since it had shape %s, which does not match the required "
        "output shape %s. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
        "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
        "elements with t.resize_(0).",
        em_shape_format(out->ndim, out->sizes, have, sizeof have), em_shape_format(ndim, sizes, want, sizeof want)));
  }
  EM_PASS(em_tensor_resize(out, ndim, sizes));
  return strides == NULL ? EM_OK : em_tensor_set_window(out, ndim, sizes, strides, out->offset);
}

// Makes or resizes one output with the given element strides (NULL: contiguous).
static em_status make_output(em_iter *it, em_iter_operand *o, const int64_t *strides) {
  if (o->resize) return em_iter_resize_given(o->tensor, it->shape.ndim, it->shape.sizes, strides);
  EM_PASS(strides == NULL
              ? em_tensor_new(it->shape.ndim, it->shape.sizes, o->dtype, it->device, &o->tensor)
              : em_tensor_new_strided(it->shape.ndim, it->shape.sizes, strides, o->dtype, it->device, &o->tensor));
  o->allocated = 1;
  return EM_OK;
}

static bool dense(const em_tensor *t) {
  if (em_tensor_is_contiguous(t)) return true;
  int order[EM_MAX_DIMS], n = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (t->sizes[d] < 2) continue;
    int at = n++;
    while (at > 0 && t->strides[order[at - 1]] > t->strides[d]) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = d;
  }
  int64_t want = 1;
  for (int i = 0; i < n; i++) {
    if (t->strides[order[i]] != want) return false;
    want *= t->sizes[order[i]];
  }
  return true;
}

static void channels_last_strides(int ndim, const int64_t *sizes, int64_t *strides) {
  int64_t s = 1;
  strides[1] = s;
  s *= sizes[1];
  for (int d = ndim - 1; d >= 2; d--) {
    strides[d] = s;
    s *= sizes[d];
  }
  strides[0] = s;
}

// Whether the strides are those of channels_last; size-1 dims are free, an ambiguous N111 counts as contiguous first.
static bool is_channels_last(const em_tensor *t) {
  if (t->ndim != 4) return false;
  int64_t want[EM_MAX_DIMS];
  channels_last_strides(t->ndim, t->sizes, want);
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] != 1 && t->strides[d] != want[d]) return false;
  return true;
}

enum { WALK_GENERAL, WALK_CONTIGUOUS, WALK_CHANNELS_LAST, WALK_DENSE };

// Operands of one shape and one dense layout need no permutation: the walk is one run.
static int walk_kind(const em_iter *it) {
  bool contiguous = true, last = true, all_dense = true;
  const em_tensor *first = NULL;
  for (int i = 0; i < it->nout + it->nin; i++) {
    const em_iter_operand *o = &it->op[i];
    if (!fixed_strides(o)) continue;
    const em_tensor *t = o->tensor;
    if (!em_shape_equal(t->ndim, t->sizes, it->shape.ndim, it->shape.sizes)) return WALK_GENERAL;
    contiguous = contiguous && em_tensor_is_contiguous(t);
    if (contiguous) continue;
    break;
  }
  if (contiguous) return WALK_CONTIGUOUS;
  bool same = true;
  for (int i = it->nout + it->nin - 1; i >= 0; i--) {
    const em_iter_operand *o = &it->op[i];
    if (!fixed_strides(o)) continue;
    const em_tensor *t = o->tensor;
    if (!em_shape_equal(t->ndim, t->sizes, it->shape.ndim, it->shape.sizes)) return WALK_GENERAL;
    last = last && is_channels_last(t);
    all_dense = all_dense && dense(t);
    if (first == NULL) first = t;
    else same = same && memcmp(first->strides, t->strides, (size_t)t->ndim * sizeof(int64_t)) == 0;
  }
  return last ? WALK_CHANNELS_LAST : all_dense && same && first != NULL ? WALK_DENSE : WALK_GENERAL;
}

static em_status walk_as_one(em_iter *it, int kind) {
  int64_t buf[EM_MAX_DIMS];
  const int64_t *strides = NULL;
  if (kind == WALK_CHANNELS_LAST) {
    channels_last_strides(it->shape.ndim, it->shape.sizes, buf);
    strides = buf;
  } else if (kind == WALK_DENSE) {
    for (int i = it->nout + it->nin - 1; strides == NULL; i--)
      if (fixed_strides(&it->op[i])) strides = it->op[i].tensor->strides;
    memcpy(buf, strides, (size_t)it->shape.ndim * sizeof(int64_t));
    strides = buf;
  }
  for (int i = 0; i < it->nout + it->nin; i++) {
    em_iter_operand *o = &it->op[i];
    if (!fixed_strides(o)) EM_PASS(make_output(it, o, strides));
    o->strides[0] = (int64_t)em_tensor_itemsize(o->tensor);
  }
  it->ndim = 1;
  it->sizes[0] = it->numel;
  return EM_OK;
}

static void coalesce(em_iter *it, const int64_t *sizes, int n) {
  int nops = it->nout + it->nin, top = 0;
  it->sizes[0] = n == 0 ? 1 : sizes[0];
  if (n == 0)
    for (int i = 0; i < nops; i++) it->op[i].strides[0] = (int64_t)em_tensor_itemsize(it->op[i].tensor);
  for (int d = 1; d < n; d++) {
    bool merge = true;
    if (it->sizes[top] != 1 && sizes[d] != 1)
      for (int i = 0; i < nops && merge; i++)
        merge = it->op[i].strides[top] * it->sizes[top] == it->op[i].strides[d];
    if (!merge) top++;
    if (!merge || it->sizes[top] == 1)
      for (int i = 0; i < nops; i++) it->op[i].strides[top] = it->op[i].strides[d];
    it->sizes[top] = merge ? it->sizes[top] * sizes[d] : sizes[d];
  }
  it->ndim = top + 1;
}

static em_status walk_general(em_iter *it) {
  int n = it->shape.ndim, nops = it->nout + it->nin, perm[EM_MAX_DIMS];
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  for (int i = 0; i < nops; i++)
    if (fixed_strides(&it->op[i])) operand_strides(it, &it->op[i]);
  order_dims(it, perm);
  bool row_major = true;
  int64_t dense_stride = 1;
  for (int d = 0; d < n; d++) {
    row_major = row_major && perm[d] == n - 1 - d;
    sizes[d] = it->shape.sizes[perm[d]];
    strides[perm[d]] = dense_stride;
    dense_stride *= sizes[d];
  }
  for (int i = 0; i < nops; i++) {
    em_iter_operand *o = &it->op[i];
    if (!fixed_strides(o)) {
      EM_PASS(make_output(it, o, row_major ? NULL : strides));
      o->resize = 0;
      operand_strides(it, o);
    }
    int64_t keep[EM_MAX_DIMS];
    memcpy(keep, o->strides, (size_t)n * sizeof(int64_t));
    for (int d = 0; d < n; d++) o->strides[d] = keep[perm[d]];
  }
  coalesce(it, sizes, n);
  return EM_OK;
}

em_status em_iter_build(em_iter *it, em_promotion promotion) {
  em_status st = EM_OK;
  EM_TRY(check_overlap(it));
  EM_TRY(plan_shape(it));
  EM_TRY(plan_dtypes(it, promotion));
  EM_TRY(plan_device(it));
  for (int i = 0; i < it->nout; i++) {
    em_iter_operand *o = &it->op[i];
    if (o->copy_back == NULL) continue;
    EM_TRY(em_tensor_new(it->shape.ndim, it->shape.sizes, o->dtype, it->device, &o->tensor));
    o->allocated = 1;
  }
  int kind = walk_kind(it);
  EM_TRY(kind == WALK_GENERAL ? walk_general(it) : walk_as_one(it, kind));
  for (int i = 0; i < it->nout + it->nin; i++) it->op[i].data = em_tensor_data(it->op[i].tensor);
  return EM_OK;
fail:
  em_iter_abandon(it);
  return st;
}

void em_iter_abandon(em_iter *it) {
  for (int i = 0; i < it->nout; i++) {
    if (!it->op[i].allocated) continue;
    it->op[i].allocated = 0;
    EM_CLEAR_TENSOR(&it->op[i].tensor);
  }
}

em_status em_iter_finish(em_iter *it, em_tensor **outs) {
  em_status st = EM_OK;
  for (int i = 0; i < it->nout; i++) {
    em_iter_operand *o = &it->op[i];
    if (o->copy_back == NULL || (it->flags & EM_ITER_META)) continue;
    EM_TRY(em_copy_into(o->copy_back, o->tensor));
  }
  for (int i = 0; i < it->nout; i++) {
    em_iter_operand *o = &it->op[i];
    if (!o->allocated) continue;
    o->allocated = 0;
    if (o->copy_back != NULL) em_tensor_release(o->tensor);
    else outs[i] = o->tensor;
  }
  return EM_OK;
fail:
  em_iter_abandon(it);
  return st;
}

// --- the walk -------------------------------------------------------------------------------------------------------

typedef struct walk {
  em_iter *it;
  em_iter_loop fn;
  void *context;
} walk;

// Elements [begin, end) in walking order, run by run of the innermost dimension.
static em_status walk_range(void *context, int64_t begin, int64_t end) {
  const walk *w = context;
  em_iter *it = w->it;
  int nops = it->nout + it->nin;
  char *data[EM_ITER_MAX], *piece[EM_ITER_MAX];
  int64_t strides[EM_ITER_MAX], at[EM_MAX_DIMS], rest = begin;
  for (int d = 0; d < it->ndim; d++) {
    at[d] = rest % it->sizes[d];
    rest /= it->sizes[d];
  }
  for (int i = 0; i < nops; i++) {
    strides[i] = it->op[i].strides[0];
    data[i] = it->op[i].data;
    for (int d = 0; d < it->ndim; d++) data[i] += at[d] * it->op[i].strides[d];
  }
  for (int64_t done = begin; done < end;) {
    int64_t n = it->sizes[0] - at[0];
    if (n > end - done) n = end - done;
    memcpy(piece, data, (size_t)nops * sizeof *data);
    EM_PASS(w->fn(w->context, piece, strides, n));
    done += n;
    if (done >= end) break;
    for (int i = 0; i < nops; i++) data[i] -= at[0] * strides[i];
    at[0] = 0;
    for (int d = 1; d < it->ndim; d++) {
      for (int i = 0; i < nops; i++) data[i] += it->op[i].strides[d];
      if (++at[d] < it->sizes[d]) break;
      for (int i = 0; i < nops; i++) data[i] -= it->sizes[d] * it->op[i].strides[d];
      at[d] = 0;
    }
  }
  return EM_OK;
}

em_status em_iter_for_each(em_iter *it, em_iter_loop fn, void *context, int64_t grain) {
  if (it->numel == 0) return EM_OK;
  walk w = {it, fn, context};
  if (EM_UNLIKELY(em_priv_notes_wanted) && it->numel <= grain) em_note_threads(1, it->numel, grain);
  void *token = em_priv_begin_long(it->numel >= EM_LONG_NUMEL);
  em_status st = it->numel <= grain ? walk_range(&w, 0, it->numel) : em_threads_for(it->numel, grain, walk_range, &w);
  em_priv_end_long(token);
  return st;
}
