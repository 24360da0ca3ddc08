// shape.h: pure arithmetic on sizes and strides, shared by check functions. Nothing here allocates or sees bytes.
#ifndef EMBER_CORE_SHAPE_H
#define EMBER_CORE_SHAPE_H
#include "tensor.h"

// A plain shape on the stack.
// No tensor has more elements, not even one whose strides are 0: so that no count of bytes, at up to 16 an element, overflows.
#define EM_MAX_NUMEL (INT64_MAX / 16)

typedef struct em_shape { int ndim; int64_t sizes[EM_MAX_DIMS]; } em_shape;
// A window on the stack: what view functions compute.
typedef struct em_geometry {
  int ndim;
  int dtype;
  int64_t offset;
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
} em_geometry;

EM_PRIV void em_shape_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
// Wraps a negative dim. ndim 0 accepts -1 and 0 when wrap_scalar. IndexError: "Dimension out of range (expected to be
// in range of
// [-2, 1], but got 5)".
EM_PRIV em_status em_shape_wrap_dim(int64_t dim, int ndim, bool wrap_scalar, int64_t *out);
// Broadcast b into `io` (in place). RuntimeError "The size of tensor a (5) must match the size of tensor b (4) at
// non-singleton dimension 1".
EM_PRIV em_status em_shape_broadcast(em_shape *io, int ndim, const int64_t *sizes);
EM_PRIV em_status em_shape_of(const em_tensor *t, em_shape *out);
EM_PRIV bool em_shape_equal(int na, const int64_t *a, int nb, const int64_t *b);
// Product with overflow check: RuntimeError "Storage size calculation overflowed with sizes=[...]".
EM_PRIV em_status em_shape_numel(int ndim, const int64_t *sizes, int64_t *out);
// Sizes with one -1 filled in: "shape '[2, -1]' is invalid for input of size 5".
EM_PRIV em_status em_shape_infer(int ndim, const int64_t *sizes, int64_t numel, int64_t *out);
// Strides of a view of `t` with new sizes, if one exists without copying (PyTorch's computeStride). False: must copy.
EM_PRIV bool em_shape_view_strides(int ndim, const int64_t *sizes, const int64_t *strides, int64_t numel, int new_ndim,
                                   const int64_t *new_sizes, int64_t *new_strides);
// as_strided bounds: "setStorage: sizes [...], strides [...], storage offset ..., and itemsize ... requiring a storage
// size of ... are out of bounds for storage of size ...".
EM_PRIV em_status em_shape_check_storage(const em_storage *s, int ndim, const int64_t *sizes, const int64_t *strides,
                                         int64_t offset, size_t itemsize);
// Bytes that a window reaches from the storage's start (0 for numel 0).
EM_PRIV em_status em_shape_storage_bytes(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                                         size_t itemsize, size_t *out);
// The memory format that a tensor's strides suggest: channels last when they fall in that order, else contiguous, be it
// contiguous or not.
EM_PRIV int em_shape_suggested_format(const em_tensor *t);
// Text "[2, 3]" into buf.
EM_PRIV const char *em_shape_format(int ndim, const int64_t *sizes, char *buf, size_t n);

// Memory overlap, as PyTorch's MemoryOverlap.
typedef enum em_overlap { EM_OVERLAP_NO, EM_OVERLAP_YES, EM_OVERLAP_TOO_HARD } em_overlap;
typedef enum em_overlap_pair { EM_PAIR_NO, EM_PAIR_FULL, EM_PAIR_PARTIAL, EM_PAIR_TOO_HARD } em_overlap_pair;
EM_PRIV em_overlap em_shape_internal_overlap(const em_tensor *t);
EM_PRIV em_overlap_pair em_shape_pair_overlap(const em_tensor *a, const em_tensor *b);
// RuntimeError "unsupported operation: more than one element of the written-to tensor refers to a single memory
// location. ..."
EM_PRIV em_status em_shape_assert_no_internal_overlap(const em_tensor *t);
// RuntimeError "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single
// memory location. ..."
EM_PRIV em_status em_shape_assert_no_partial_overlap(const em_tensor *out, const em_tensor *in);
EM_PRIV em_status em_shape_assert_no_overlap(const em_tensor *out, const em_tensor *in);
#endif
