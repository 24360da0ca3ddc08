// pointwise.c: runs a pointwise row. The iterator plans; a run whose operands have the loop's dtype and unit or zero
// strides goes to the loop as it is, everything else passes through tiles that fit L1.
//
// Which rounding happens where: an operand of another dtype becomes the common dtype first, as PyTorch converts it,
// except a number (0-dim operand or Scalar) beside f16 or bf16, which goes straight to f32: `a + s * b` rounds once.
// Integers always pass through the common dtype, so that 300 beside int8 is 44.
#include "pointwise.h"
#include "gen_ops.h"
#include "view_entry.h"
#include "../core/threads.h"
#include <stdio.h>
#include <string.h>

const uint8_t em_priv_cd_dtype[EM_CD_COUNT] = {EM_F32, EM_F64, EM_I64, EM_C64, EM_C128, EM_BOOL, EM_I32};

#define TILE_BYTES 4096
#define MAX_OPS (EM_PW_MAX_OUT + EM_PW_MAX_IN)

typedef struct pw_operand {
  int storage, loop;  // dtypes
  int via;            // dtype in between, or EM_DTYPE_NONE
  int64_t item;       // bytes of a loop element
} pw_operand;

typedef struct pw_run {
  const em_pw_desc *d;
  em_pw_loop loop;
  int nops;
  int64_t tile;                  // elements a tile
  pw_operand op[MAX_OPS];
  em_pw_buffer attr;
  _Atomic uint32_t sticky;
} pw_run;

typedef union tile { char bytes[TILE_BYTES]; em_c128 align; } tile;

em_status em_pw_division_by_zero(void) { return em_fail(EM_ERR_RUNTIME, "ZeroDivisionError"); }

// A scalar as one element of the loop's dtype. Unchecked: wraps and truncates as a cast of a tensor would.
static void scalar_element(em_scalar s, int via, int loop, void *p) {
  char middle[16];
  int from = s.kind == EM_SCALAR_DOUBLE ? EM_F64 : s.kind == EM_SCALAR_COMPLEX ? EM_C128 : EM_I64;
  const void *src = s.kind == EM_SCALAR_COMPLEX ? (const void *)&s.c : (const void *)&s.i;
  if (via != EM_DTYPE_NONE) {
    em_cast_load(middle, via, src, from, 0, 1);
    src = middle;
    from = via;
  }
  em_cast_load(p, loop, src, from, 0, 1);
}

em_status em_pw_attrs(const em_pw_desc *d, int slot, int common, const em_scalar *attr, void *buf) {
  int loop = em_priv_cd_dtype[slot];
  size_t size = em_dtype_size(loop);
  for (int i = 0; i < d->nattr; i++) {
    bool operand = d->promote_attr >> i & 1;
    int via = operand && em_dtype_is_integral(common) && common != loop ? common : EM_DTYPE_NONE;
    scalar_element(attr[i], via, loop, (char *)buf + size * (size_t)i);
  }
  return EM_OK;
}

bool em_pw_number2(const em_pw_desc *d, em_tensor *a, em_tensor *b, const em_scalar *attr, em_tensor **out,
                   em_status *st) {
  if (em_dtype_class_of(b->dtype) > em_dtype_class_of(a->dtype) || (a->ndim == 0 && !(b->flags & EM_T_WRAPPED)))
    return false;
  if (a->flags & EM_T_WRAPPED) return false;
  em_pw_loop loop = em_pw_direct(d, a->dtype);
  em_pw_buffer buf, value;
  *st = EM_OK;
  if (loop == NULL || !em_pw_fast_attrs(d, a->dtype, attr, &buf, st)) return false;
  if (*st != EM_OK) return true;
  em_cast_load(value.bytes, a->dtype, em_tensor_data(b), b->dtype, 0, 1);
  *st = em_pw_flat(d, loop, a, em_tensor_data(a), value.bytes, a->numel == 1 ? 0 : 2, buf.bytes, out);
  return true;
}

static void load(const pw_operand *o, void *dst, const char *src, int64_t stride, int64_t n) {
  if (o->via == EM_DTYPE_NONE) {
    em_cast_load(dst, o->loop, src, o->storage, stride, n);
    return;
  }
  tile middle;
  em_cast_load(middle.bytes, o->via, src, o->storage, stride, n);
  em_cast_load(dst, o->loop, middle.bytes, o->via, (int64_t)em_dtype_size(o->via), n);
}

static void store(const pw_operand *o, char *dst, int64_t stride, const void *src, int64_t n) {
  if (o->via == EM_DTYPE_NONE) {
    em_cast_store(dst, o->storage, stride, src, o->loop, n);
    return;
  }
  tile middle;
  em_cast_store(middle.bytes, o->via, (int64_t)em_dtype_size(o->via), src, o->loop, n);
  em_cast_store(dst, o->storage, stride, middle.bytes, o->via, n);
}

enum { AS_IS, ONE_VALUE, BY_TILE, FILLED };  // how an operand reaches the loop

static em_status run_piece(void *context, char **data, const int64_t *strides, int64_t n) {
  pw_run *r = context;
  int nout = r->d->nout, nops = r->nops;
  uint8_t how[MAX_OPS];
  tile tiles[MAX_OPS];
  uint32_t bcast = 0;
  bool direct = true;
  for (int i = 0; i < nops; i++) {
    const pw_operand *o = &r->op[i];
    bool same = o->storage == o->loop;
    how[i] = same && strides[i] == o->item           ? AS_IS
             : i >= nout && strides[i] == 0 && n > 1 ? ONE_VALUE
             : same && n == 1                        ? AS_IS
                                                     : BY_TILE;
    if (how[i] == ONE_VALUE) bcast |= 1u << (i - nout);
    if (how[i] == BY_TILE) direct = false;
  }
  bool fill = (r->d->bcast >> bcast & 1) == 0;  // no loop for this pattern: tiles of one value stand in
  int64_t step = direct && !fill ? n : n < r->tile ? n : r->tile;
  char *at[MAX_OPS];
  for (int i = 0; i < nops; i++) {
    at[i] = how[i] == AS_IS ? data[i] : tiles[i].bytes;
    if (how[i] != ONE_VALUE) continue;
    load(&r->op[i], tiles[i].bytes, data[i], 0, fill ? step : 1);
    if (fill) how[i] = FILLED;
  }
  if (fill) bcast = 0;
  uint32_t flags = 0;
  for (int64_t done = 0; done < n; done += step) {
    int64_t m = n - done < step ? n - done : step;
    for (int i = nout; i < nops; i++)
      if (how[i] == BY_TILE) load(&r->op[i], tiles[i].bytes, data[i] + done * strides[i], strides[i], m);
      else if (how[i] == AS_IS) at[i] = data[i] + done * strides[i];
    for (int i = 0; i < nout; i++)
      if (how[i] == AS_IS) at[i] = data[i] + done * strides[i];
    flags |= r->loop(at, bcast, m, r->attr.bytes);
    for (int i = 0; i < nout; i++)
      if (how[i] == BY_TILE) store(&r->op[i], data[i] + done * strides[i], strides[i], tiles[i].bytes, m);
  }
  if (EM_UNLIKELY(flags != 0)) atomic_fetch_or_explicit(&r->sticky, flags, memory_order_relaxed);
  return EM_OK;
}

static int between(int storage, int common, int loop) {
  return storage != common && common != loop ? common : EM_DTYPE_NONE;
}

// Dtypes of every operand on its way between memory and the loop.
static void plan_operands(pw_run *r, const em_iter *it, int slot) {
  const em_pw_desc *d = r->d;
  int loop = em_priv_cd_dtype[slot];
  int64_t widest = 1;
  for (int i = 0; i < r->nops; i++) {
    pw_operand *o = &r->op[i];
    o->storage = it->op[i].dtype;
    o->loop = loop;
    o->via = EM_DTYPE_NONE;
    if (i < d->nout) {
      bool flag = d->bool_out >> i & 1;
      int result = flag ? EM_BOOL : em_pw_result_dtype(d, it->common);
      if (flag) o->loop = EM_BOOL;
      else if (em_pw_to_real(d)) o->loop = em_dtype_to_real(loop);
      o->via = between(o->storage, result, o->loop);
    } else if (d->mask >> (i - d->nout) & 1) {
      o->loop = EM_BOOL;
    } else if (it->op[i].tensor->ndim > 0 || em_dtype_is_integral(it->common)) {
      o->via = between(o->storage, it->common, loop);
    }
    o->item = (int64_t)em_dtype_size(o->loop);
    if (o->item > widest) widest = o->item;
    if (o->via != EM_DTYPE_NONE && (int64_t)em_dtype_size(o->via) > widest) widest = (int64_t)em_dtype_size(o->via);
  }
  r->tile = TILE_BYTES / widest;
}

// --- an operand that lies across the others (x + y.t()): squares of it are turned in tiles, so that every line of memory that is
// fetched is used whole. BAND rows are computed at a time.

#define BAND EM_TURN_ROWS
#define ACROSS_BYTES 16384
typedef union across { char bytes[ACROSS_BYTES]; em_c128 align; } across;
typedef struct across_run {
  pw_run *r;
  const em_iter *it;
  uint32_t turned;   // bit i: operand i lies across
  int64_t bands;     // of dim 1
  int64_t columns;   // that a tile holds
} across_run;

static void across_band(const across_run *a, char *const *start, int64_t rows, uint32_t bcast, uint32_t *flags) {
  const em_iter *it = a->it;
  const int nout = a->r->d->nout, nops = a->r->nops;
  across tiles[EM_PW_MAX_IN];
  char *at[MAX_OPS];
  for (int64_t c = 0; c < it->sizes[0]; c += a->columns) {
    const int64_t n = it->sizes[0] - c < a->columns ? it->sizes[0] - c : a->columns;
    for (int i = nout; i < nops; i++)
      if (a->turned >> i & 1)
        em_priv_turn(tiles[i - nout].bytes, a->columns, start[i] + c * it->op[i].strides[0], it->op[i].strides[0], n, rows,
                     a->r->op[i].item);
    for (int64_t j = 0; j < rows; j++) {
      for (int i = 0; i < nops; i++)
        at[i] = a->turned >> i & 1 ? tiles[i - nout].bytes + j * a->columns * a->r->op[i].item
                                   : start[i] + j * it->op[i].strides[1] + c * it->op[i].strides[0];
      *flags |= a->r->loop(at, bcast, n, a->r->attr.bytes);
    }
  }
}
static em_status across_bands(void *context, int64_t begin, int64_t end) {
  const across_run *a = context;
  const em_iter *it = a->it;
  const int nout = a->r->d->nout, nops = a->r->nops;
  uint32_t flags = 0, bcast = 0;
  for (int i = nout; i < nops; i++) bcast |= (uint32_t)(it->op[i].strides[0] == 0) << (i - nout);
  for (int64_t u = begin; u < end; u++) {
    const int64_t row = u % a->bands * BAND;
    char *start[MAX_OPS];
    for (int i = 0; i < nops; i++) {
      start[i] = it->op[i].data + row * it->op[i].strides[1];
      int64_t rest = u / a->bands;
      for (int d = 2; d < it->ndim; d++) {
        start[i] += rest % it->sizes[d] * it->op[i].strides[d];
        rest /= it->sizes[d];
      }
    }
    across_band(a, start, it->sizes[1] - row < BAND ? it->sizes[1] - row : BAND, bcast, &flags);
  }
  if (EM_UNLIKELY(flags != 0)) atomic_fetch_or_explicit(&a->r->sticky, flags, memory_order_relaxed);
  return EM_OK;
}
// Whether an input lies across and all others can go to the loop as they are.
static bool lies_across(const pw_run *r, const em_iter *it, across_run *a) {
  if (it->ndim < 2 || it->sizes[0] < BAND || it->sizes[1] < BAND) return false;
  uint32_t bcast = 0;
  int64_t widest = 1;
  a->turned = 0;
  for (int i = 0; i < r->nops; i++) {
    const pw_operand *o = &r->op[i];
    const int64_t *strides = it->op[i].strides;
    if (o->storage != o->loop || o->via != EM_DTYPE_NONE) return false;
    if (o->item > widest) widest = o->item;
    if (strides[0] == o->item) continue;
    if (i < r->d->nout) return false;
    if (strides[0] == 0) bcast |= 1u << (i - r->d->nout);
    else if (strides[1] == o->item) a->turned |= 1u << i;
    else return false;
  }
  a->columns = ACROSS_BYTES / BAND / widest;
  a->bands = (it->sizes[1] + BAND - 1) / BAND;
  return a->turned != 0 && (r->d->bcast >> bcast & 1);
}

// For the lights: which path, and why not the others.
void em_pw_note_short(const em_pw_desc *d, const em_tensor *like, const char *b, uint32_t bcast) {
  (void)d;
  em_note_write("short path: one run of %lld %s elements through the %s loop%s (planning refused: %s; threads refused: %d elements or "
                "fewer)", (long long)like->numel, em_dtype_name(like->dtype), em_priv_note_isa,
                bcast != 0 ? ", one number beside them" : "", b == NULL ? "one contiguous operand" : "same dtype, contiguous",
                EM_PW_GRAIN);
}
static const char *why_not_short(const em_pw_desc *d, const em_iter *it, em_tensor *const *in) {
  if (it->numel > EM_PW_GRAIN) return "many elements, worth threads";
  for (int i = 0; i < d->nin; i++) {
    if (in[i] == NULL) continue;
    if (!(in[i]->flags & EM_T_CONTIGUOUS)) return "an operand is not contiguous";
    if (in[i]->dtype != it->common && !(d->mask >> i & 1)) return "operands are cast to a common dtype";
    if (in[i]->numel != it->numel) return "an operand is broadcast";
  }
  if (it->common != EM_DTYPE_NONE && em_pw_direct(d, it->common) == NULL) return "no loop takes this dtype as it is";
  return it->op[0].allocated ? "it is for one or two operands" : "it is for results that it makes, or operands that it writes over";
}
static __attribute__((cold)) void note_plan(const pw_run *r, const em_iter *it, em_tensor *const *in, bool across) {
  int whole = 0, single = 0, tiled = 0;
  for (int i = 0; i < r->nops; i++) {
    const bool same = r->op[i].storage == r->op[i].loop;
    if (same && it->op[i].strides[0] == r->op[i].item) whole++;
    else if (i >= r->d->nout && it->op[i].strides[0] == 0 && it->sizes[0] > 1) single++;
    else if (!same || it->sizes[0] > 1) tiled++;
    else whole++;
  }
  char how[160] = "";
  if (whole > 0) snprintf(how, sizeof how, ", %d as they lie", whole);
  if (single > 0) snprintf(how + strlen(how), sizeof how - strlen(how), ", %d as one value", single);
  if (tiled > 0)
    snprintf(how + strlen(how), sizeof how - strlen(how), ", %d %s", tiled,
             across ? "turned in squares (element by element refused: it lies across the others)" : "through tiles (cast or strided)");
  em_note_write("iterator: %lld %s elements in runs of %lld through the %s %s loop; operands: %s (short path refused: %s)",
                (long long)it->numel, em_dtype_name(it->common), (long long)it->sizes[0], em_priv_note_isa,
                em_dtype_name(r->op[r->nops - 1].loop), how + 2, why_not_short(r->d, it, in));
}

em_status em_pw_run(const em_pw_desc *d, uint32_t iter_flags, em_tensor *const *in, const em_scalar *attr,
                    em_tensor **outs) {
  em_iter it;
  em_status st = EM_OK;
  em_iter_init(&it, iter_flags);
  for (int i = 0; i < d->nout; i++) em_iter_add_output(&it, outs[i], d->bool_out >> i & 1 ? EM_BOOL : EM_DTYPE_NONE);
  for (int i = 0; i < d->nin; i++) {
    if (d->mask >> i & 1) em_iter_add_mask(&it, in[i]);
    else em_iter_add_input(&it, in[i]);
  }
  for (int i = 0; i < d->nattr; i++)
    if (d->promote_attr >> i & 1) em_iter_add_scalar(&it, attr[i]);
  EM_PASS(em_iter_build(&it, (em_promotion)d->promotion));
  int slot = d->slot[it.common];
  if (slot == EM_CD_NONE)
    EM_FAIL(EM_ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", d->kernel_name, em_dtype_scalar_name(it.common));
  if (!(iter_flags & EM_ITER_META) && it.numel > 0) {
    pw_run r;
    r.d = d;
    r.loop = d->loops[slot];
    r.nops = d->nout + d->nin;
    atomic_init(&r.sticky, 0);
    plan_operands(&r, &it, slot);
    EM_TRY(em_pw_attrs(d, slot, it.common, attr, r.attr.bytes));
    across_run a = {.r = &r, .it = &it};
    const bool across = lies_across(&r, &it, &a);
    if (EM_UNLIKELY(em_priv_notes_wanted)) note_plan(&r, &it, in, across);
    if (across) {
      const int64_t each = BAND * it.sizes[0];
      void *token = em_priv_begin_long(it.numel >= EM_LONG_NUMEL);
      st = em_threads_for(it.numel / (it.sizes[0] * it.sizes[1]) * a.bands, EM_PW_GRAIN / each + 1, across_bands, &a);
      em_priv_end_long(token);
      if (st != EM_OK) goto fail;
    } else {
      EM_TRY(em_iter_for_each(&it, run_piece, &r, EM_PW_GRAIN));
    }
    if (EM_UNLIKELY(atomic_load_explicit(&r.sticky, memory_order_relaxed) & EM_PW_DIV_ZERO))
      EM_TRY(em_pw_division_by_zero());
  }
  return em_iter_finish(&it, outs);
fail:
  em_iter_abandon(&it);
  return st;
}

enum { REDUCE_NONE, REDUCE_MEAN };
em_status em_pw_reduce(em_tensor *t, int64_t reduction, em_tensor **out) {
  if (reduction == REDUCE_NONE) {
    *out = t;
    return EM_OK;
  }
  em_status st = reduction == REDUCE_MEAN ? em_call_mean(t, EM_DTYPE_NONE, out) : em_call_sum(t, EM_DTYPE_NONE, out);
  em_tensor_release(t);
  return st;
}
em_status em_pw_reduce_out(em_tensor *t, int64_t reduction, em_tensor *out) {
  em_tensor *result;
  EM_PASS(em_pw_reduce(t, reduction, &result));
  em_status st = em_plan_check_out_dtype(result->dtype, out->dtype);
  if (st == EM_OK) st = em_priv_write_out(out, result);
  em_tensor_release(result);
  return st;
}
em_status em_pw_spread(em_tensor *grad, int64_t reduction, em_tensor *const *operands, int n, em_tensor **out) {
  if (reduction != REDUCE_MEAN) {
    *out = em_tensor_retain(grad);
    return EM_OK;
  }
  em_shape shape;
  int64_t count;
  EM_PASS(em_shape_of(operands[0], &shape));
  for (int i = 1; i < n; i++) EM_PASS(em_shape_broadcast(&shape, operands[i]->ndim, operands[i]->sizes));
  EM_PASS(em_shape_numel(shape.ndim, shape.sizes, &count));
  const em_guard g = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = em_call_div_Scalar(grad, em_scalar_int(count), out);
  em_guard_restore(g);
  return st;
}
