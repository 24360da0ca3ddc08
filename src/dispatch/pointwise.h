// pointwise.h: descriptor of a pointwise row and the one routine that runs it. The generator writes the loop bodies and
// the descriptors; this is everything they share.
#ifndef EMBER_DISPATCH_POINTWISE_H
#define EMBER_DISPATCH_POINTWISE_H
#include "../core/note.h"
#include "plan.h"

#define EM_PW_MAX_IN 5
#define EM_PW_MAX_OUT 2
#define EM_PW_MAX_ATTR 4
#define EM_PW_GRAIN 32768  // elements that a thread should get at least
// The dtypes that loops exist in. F16 and BF16 compute in F32, integers in I64 unless the row asks for a native loop.
enum { EM_CD_F32, EM_CD_F64, EM_CD_I64, EM_CD_C64, EM_CD_C128, EM_CD_BOOL, EM_CD_I32, EM_CD_COUNT, EM_CD_NONE = 255 };
extern const uint8_t em_priv_cd_dtype[EM_CD_COUNT];

// One loop: n elements. data[]: outputs first, then inputs, each contiguous or (bit i of `bcast`: input i) one value
// for all. attr: attributes already converted to the loop's dtype. Returns sticky flags: EM_PW_DIV_ZERO. An output may
// be exactly an input.
typedef uint32_t (*em_pw_loop)(char *const *data, uint32_t bcast, int64_t n, const void *attr);
enum { EM_PW_DIV_ZERO = 1 };

typedef struct em_pw_desc {
  const char *name;                 // operator's full name, for logs
  const char *kernel_name;          // for '"sub_cpu" not implemented for 'Bool''
  uint8_t nin, nout, nattr;
  uint8_t promotion;                // em_promotion
  uint8_t mask;                     // bit i: input i is a bool mask, outside promotion
  uint8_t bool_out;                 // bit i: output i is bool
  uint8_t promote_attr;             // bit i: attribute i joins promotion as a Python number does
  uint32_t bcast;                   // bit m: the loops take broadcast mask m
  uint8_t slot[EM_NUM_DTYPES];      // EM_CD_* of the loop for a common dtype, EM_CD_NONE: not implemented
  em_pw_loop const *loops;          // [EM_CD_COUNT] of the instruction set chosen at load
} em_pw_desc;

// Plans, allocates, loops. `outs` given for in-place and out= (EM_ITER_INPLACE, EM_ITER_OUT), else NULLs that receive
// new references.
EM_PRIV em_status em_pw_run(const em_pw_desc *d, uint32_t iter_flags, em_tensor *const *in, const em_scalar *attr,
                            em_tensor **outs);
// Losses: the values `t` (stolen) reduced: 0 as they are, 1 their mean, else their sum; and into a given tensor.
EM_PRIV em_status em_pw_reduce(em_tensor *t, int64_t reduction, em_tensor **out);
EM_PRIV em_status em_pw_reduce_out(em_tensor *t, int64_t reduction, em_tensor *out);
// The gradient of each value of a loss over `operands`, broadcast: over their number when the loss was a mean.
EM_PRIV em_status em_pw_spread(em_tensor *grad, int64_t reduction, em_tensor *const *operands, int n, em_tensor **out);
// Generated: the tables of descriptors get the loops of the chosen instruction set.
EM_PRIV em_status em_pw_attrs(const em_pw_desc *d, int slot, int common, const em_scalar *attr, void *buf);
EM_PRIV em_status em_pw_division_by_zero(void) __attribute__((cold));

// --- the short paths of generated entries: what `a + b`, `a * 2.0` and `a.exp()` take when there is nothing to plan.
// They answer through *st when they return true; otherwise nothing has happened and em_pw_run is to be called.
typedef union em_pw_buffer { char bytes[16 * EM_PW_MAX_ATTR]; em_c128 align; } em_pw_buffer;

static inline bool em_pw_to_real(const em_pw_desc *d) {
  return d->promotion == EM_PROMO_COMPLEX_TO_REAL || d->promotion == EM_PROMO_FLOAT_TO_REAL;
}
// The largest finite value of a dtype: what nan_to_num puts for infinity.
static inline double em_pw_largest(int dtype) {
  return dtype == EM_F16 ? 65504.0 : dtype == EM_BF16 ? 0x1.fep127 : dtype == EM_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}
static inline int em_pw_result_dtype(const em_pw_desc *d, int dtype) {
  if (d->bool_out) return EM_BOOL;
  return em_pw_to_real(d) ? em_dtype_to_real(dtype) : dtype;
}

// The loop that takes this storage dtype as it is, or NULL.
static inline em_pw_loop em_pw_direct(const em_pw_desc *d, int dtype) {
  uint8_t slot = d->slot[dtype];
  return slot < EM_CD_COUNT && em_priv_cd_dtype[slot] == dtype ? d->loops[slot] : NULL;
}

// Attributes for a direct loop: the common dtype is the tensor's own, so no promoted attribute may be of a higher
// class.
static inline bool em_pw_fast_attrs(const em_pw_desc *d, int dtype, const em_scalar *attr, em_pw_buffer *buf,
                                    em_status *st) {
  static const uint8_t classes[] = {0, EM_CLASS_BOOL, EM_CLASS_INT, EM_CLASS_FLOAT, EM_CLASS_COMPLEX};
  for (int i = 0; i < d->nattr; i++)
    if ((d->promote_attr >> i & 1) && classes[attr[i].kind] > em_dtype_class_of(dtype)) return false;
  if (dtype == EM_F32) {
    for (int i = 0; i < d->nattr; i++) ((float *)buf->bytes)[i] = (float)em_scalar_to_double(attr[i]);
    return true;
  }
  *st = em_pw_attrs(d, d->slot[dtype], dtype, attr, buf->bytes);
  return true;
}

// For the lights: the short path was taken.
EM_PRIV void em_pw_note_short(const em_pw_desc *d, const em_tensor *like, const char *b, uint32_t bcast) __attribute__((cold));

static inline em_status em_pw_flat(const em_pw_desc *d, em_pw_loop loop, em_tensor *like, const char *a, const char *b,
                                   uint32_t bcast, const void *attr, em_tensor **out) {
  em_tensor *t;
  EM_PASS(em_tensor_new(like->ndim, like->sizes, em_pw_result_dtype(d, like->dtype), like->device, &t));
  char *data[3] = {em_tensor_data(t), (char *)a, (char *)b};
  if (EM_UNLIKELY(loop(data, bcast, t->numel, attr) != 0)) {
    em_tensor_release(t);
    return em_pw_division_by_zero();
  }
  if (EM_UNLIKELY(em_priv_notes_wanted)) em_pw_note_short(d, like, b, bcast);
  *out = t;
  return EM_OK;
}

static inline bool em_pw_fast1(const em_pw_desc *d, em_tensor *a, const em_scalar *attr, em_tensor **out,
                               em_status *st) {
  if (!(a->flags & EM_T_CONTIGUOUS) || a->numel > EM_PW_GRAIN) return false;
  em_pw_loop loop = em_pw_direct(d, a->dtype);
  em_pw_buffer buf;
  *st = EM_OK;
  if (EM_UNLIKELY(loop == NULL) || !em_pw_fast_attrs(d, a->dtype, attr, &buf, st)) return false;
  if (EM_LIKELY(*st == EM_OK)) *st = em_pw_flat(d, loop, a, em_tensor_data(a), NULL, 0, buf.bytes, out);
  return true;
}

// A number beside a tensor: 0-dim and of no higher class, so that the result keeps the tensor's dtype and sizes.
EM_PRIV bool em_pw_number2(const em_pw_desc *d, em_tensor *a, em_tensor *b, const em_scalar *attr, em_tensor **out,
                           em_status *st);

static inline bool em_pw_fast2(const em_pw_desc *d, em_tensor *a, em_tensor *b, const em_scalar *attr, em_tensor **out,
                               em_status *st) {
  if (!(a->flags & b->flags & EM_T_CONTIGUOUS) || a->numel > EM_PW_GRAIN) return false;
  if (b->ndim == 0 && (a->ndim > 0 || a->dtype != b->dtype)) return em_pw_number2(d, a, b, attr, out, st);
  if (a->dtype != b->dtype || a->ndim != b->ndim) return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != b->sizes[i]) return false;
  em_pw_loop loop = em_pw_direct(d, a->dtype);
  em_pw_buffer buf;
  *st = EM_OK;
  if (EM_UNLIKELY(loop == NULL) || !em_pw_fast_attrs(d, a->dtype, attr, &buf, st)) return false;
  if (EM_LIKELY(*st == EM_OK)) *st = em_pw_flat(d, loop, a, em_tensor_data(a), em_tensor_data(b), 0, buf.bytes, out);
  return true;
}

// In place: the result must be self's dtype, and `b` either exactly `a` or in another storage.
static inline bool em_pw_inplace(const em_pw_desc *d, em_tensor *a, const char *b, const em_scalar *attr,
                                 em_status *st) {
  if (!(a->flags & EM_T_CONTIGUOUS) || a->numel > EM_PW_GRAIN || em_pw_result_dtype(d, a->dtype) != a->dtype)
    return false;
  em_pw_loop loop = em_pw_direct(d, a->dtype);
  em_pw_buffer buf;
  *st = EM_OK;
  if (EM_UNLIKELY(loop == NULL) || !em_pw_fast_attrs(d, a->dtype, attr, &buf, st)) return false;
  char *data[3] = {em_tensor_data(a), em_tensor_data(a), (char *)b};
  if (EM_LIKELY(*st == EM_OK) && EM_UNLIKELY(loop(data, 0, a->numel, buf.bytes) != 0)) *st = em_pw_division_by_zero();
  if (EM_UNLIKELY(em_priv_notes_wanted)) em_pw_note_short(d, a, b, 0);
  return true;
}

static inline bool em_pw_inplace1(const em_pw_desc *d, em_tensor *a, const em_scalar *attr, em_status *st) {
  return em_pw_inplace(d, a, NULL, attr, st);
}

static inline bool em_pw_inplace2(const em_pw_desc *d, em_tensor *a, em_tensor *b, const em_scalar *attr,
                                  em_status *st) {
  if (!(b->flags & EM_T_CONTIGUOUS) || a->dtype != b->dtype || a->ndim != b->ndim) return false;
  if (a->storage == b->storage && a->offset != b->offset) return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != b->sizes[i]) return false;
  return em_pw_inplace(d, a, em_tensor_data(b), attr, st);
}
#endif
