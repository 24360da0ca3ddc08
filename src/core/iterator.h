// iterator.h: walks several tensors in step: broadcasting, promotion, output allocation, dimension coalescing.
// Semantics are PyTorch's TensorIterator: output strides follow the inputs' permutation, dtypes follow the promotion
// class.
//
// An iterator has `nout` outputs first, then `nin` inputs. em_iter_build plans (raises every error), allocates or
// resizes outputs; em_iter_* loops hand out 1-d runs with byte strides.
#ifndef EMBER_CORE_ITERATOR_H
#define EMBER_CORE_ITERATOR_H
#include "shape.h"

#define EM_ITER_MAX 8  // operands

typedef enum em_promotion {
  EM_PROMO_DEFAULT,          // result and computation in the common dtype
  EM_PROMO_INT_TO_FLOAT,     // integers and bool become the default float dtype
  EM_PROMO_BOOL_OUT,         // computes in the common dtype, result is bool
  EM_PROMO_COMPLEX_TO_REAL,  // result is the real dtype of a complex common dtype (abs)
  EM_PROMO_FLOAT_TO_REAL,    // both: integers become floats, the result of complex ones is real (angle)
  EM_PROMO_NONE,             // dtypes are given operand by operand; no common dtype
} em_promotion;

enum {
  EM_ITER_NO_ALLOC_CHECKS = 1, // output overlap was checked by the caller
  EM_ITER_INPLACE = 2, // out[0] is also in[0]: its sizes may not change ("output with shape [3] doesn't match the
                       // broadcast shape [2, 3]")
  EM_ITER_META = 4, // plan and allocate only
  EM_ITER_OUT = 8, // outputs were given by the user (out=): resize with a warning, castability, overlap
  EM_ITER_SAME_DTYPE = 16, // inputs must agree without promotion
  EM_ITER_MEM_OVERLAP_OK = 32,
};

// The common dtype of a set of operands by PyTorch's rules (dimension classes, wrapped numbers). Used by result_type,
// where, cat.
typedef struct em_promote_state { int dim_result, zero_result, wrapped_result; } em_promote_state;
EM_PRIV void em_promote_init(em_promote_state *s);
EM_PRIV void em_promote_add(em_promote_state *s, const em_tensor *t);
EM_PRIV void em_promote_add_scalar(em_promote_state *s, em_scalar v);
EM_PRIV int em_promote_result(const em_promote_state *s);

typedef struct em_iter_operand {
  em_tensor *tensor;      // borrowed for inputs and given outputs; owned when `allocated`
  uint8_t dtype;          // storage dtype
  uint8_t compute;        // dtype the loop sees (em_dtype_info.compute of the common dtype, or of bool for masks)
  uint8_t allocated;      // the iterator made it: result of the operator
  uint8_t is_mask;        // bool input that takes no part in promotion (where's condition)
  uint8_t resize;         // given output whose sizes differ: resized once its strides are known
  em_tensor *copy_back;   // given output that overlaps an input: computed in `tensor` (a temporary), then copied here
  char *data;             // first element
  int64_t strides[EM_MAX_DIMS];  // bytes, of the coalesced dims, innermost first
} em_iter_operand;

typedef struct em_iter {
  int nout, nin, ndim;    // ndim after coalescing, at least 1 (numel 0: check numel first)
  uint32_t flags;
  int common;             // common em_dtype, or EM_DTYPE_NONE
  em_promote_state promote;
  int64_t numel;
  em_device device;
  int64_t sizes[EM_MAX_DIMS];  // coalesced, innermost first
  em_shape shape;         // broadcast shape, as the user sees it
  em_iter_operand op[EM_ITER_MAX];
} em_iter;

// Adds operands; then em_iter_build. `out` NULL: allocate. Outputs before inputs.
EM_PRIV void em_iter_init(em_iter *it, uint32_t flags);
EM_PRIV void em_iter_add_output(em_iter *it, em_tensor *out, int dtype_or_none);
EM_PRIV void em_iter_add_input(em_iter *it, em_tensor *in);
EM_PRIV void em_iter_add_mask(em_iter *it, em_tensor *in);
// A Scalar argument that takes part in promotion as a Python number does; it is no operand.
EM_PRIV void em_iter_add_scalar(em_iter *it, em_scalar s);
EM_PRIV em_status em_iter_build(em_iter *it, em_promotion promotion);
// Gives `out` new sizes and strides (NULL: contiguous), with PyTorch's warning when it had elements of another shape.
EM_PRIV em_status em_iter_resize_given(em_tensor *out, int ndim, const int64_t *sizes, const int64_t *strides);
// Ends: copies back temporaries; on success moves the i-th allocated output to *out (new reference).
EM_PRIV em_status em_iter_finish(em_iter *it, em_tensor **outs);
EM_PRIV void em_iter_abandon(em_iter *it);  // releases what it owns after a failure

// Runs fn over all elements as 1-d pieces: data[] addresses, strides[] bytes of the innermost dim, n elements. Splits
// over threads by size. fn may be called from several threads.
typedef em_status (*em_iter_loop)(void *context, char **data, const int64_t *strides, int64_t n);
EM_PRIV em_status em_iter_for_each(em_iter *it, em_iter_loop fn, void *context, int64_t grain);

// One cast loop: n elements from src (byte stride ss) to dst (byte stride ds). [to][from]; the backend sets the table
// at load.
typedef void (*em_cast_fn)(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n);
EM_PRIV extern const em_cast_fn (*em_priv_casts)[EM_NUM_DTYPES];

// Cast/gather: n elements of dtype `from` with byte stride `stride` to contiguous `to` elements, and back. The only
// place where dtypes meet; vectorised for unit strides. Casts are torch's (float to int truncates, to bool is != 0,
// real to complex).
EM_PRIV void em_cast_load(void *dst, int to, const void *src, int from, int64_t stride, int64_t n);
EM_PRIV void em_cast_store(void *dst, int to, int64_t stride, const void *src, int from, int64_t n);
// A square of memory turned: row j of dst, `columns` elements apart, gets src[i][j] for i < n; the rows' elements lie side by side in
// src, whose lines are `stride` bytes apart. At most EM_TURN_ROWS rows, so that each line of memory that is fetched is used whole.
#define EM_TURN_ROWS 16
EM_PRIV void em_priv_turn(char *dst, int64_t columns, const char *src, int64_t stride, int64_t n, int64_t rows, int64_t item);
// Writes n elements of dtype `from` into a contiguous tensor, starting at its element `at`.
EM_PRIV void em_tensor_put(em_tensor *t, int64_t at, const void *src, int from, int64_t n);
// Whole-tensor copy with broadcasting and casting: dst[...] = src[...]. The kernel of copy_, clone, contiguous, to.
EM_PRIV em_status em_copy_into(em_tensor *dst, em_tensor *src);
EM_PRIV em_status em_fill(em_tensor *dst, em_scalar value);
#endif
