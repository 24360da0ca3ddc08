/* ember/tensor.h: making tensors from memory, asking what they are, and reading them back. Everything else that makes or
 * changes tensors is an operator (ember/ops.h). */
#ifndef EMBER_TENSOR_H
#define EMBER_TENSOR_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- life ---- */
#ifndef EMBER_CORE_TENSOR_H /* the library's own files see inline forms of these */
/* One more reference; returns t. NULL is fine. */
EM_API em_tensor *em_tensor_retain(em_tensor *t);
/* Gives a reference back; the tensor is freed with the last one. NULL is fine. */
EM_API void em_tensor_release(em_tensor *t);
#endif
/* Releases the tensors of a result list and frees the list. */
EM_API void em_tensor_list_clear(em_tensor_list *list);

/* ---- making ---- */
/* A contiguous CPU tensor [sizes[0], ..., sizes[ndim - 1]] with undefined contents.
 * Errors: EM_ERR_RUNTIME for a negative size, EM_ERR_OOM. */
EM_API EM_MUST_CHECK em_status em_tensor_new(int ndim, const int64_t *sizes, int dtype, em_device device, em_tensor **out);
/* The same, holding a copy of `data`: the product of the sizes elements of `dtype`, row after row. */
EM_API EM_MUST_CHECK em_status em_tensor_from_data(const void *data, int dtype, int ndim, const int64_t *sizes,
                                                   em_tensor **out);
/* The same without a copy: the tensor reads and writes `data` itself. When the last tensor over it is gone,
 * `deleter(context, data)` runs, if it is not NULL. On failure nothing is deleted. (Other strides: em_as_strided of it.) */
EM_API EM_MUST_CHECK em_status em_tensor_wrap_data(void *data, int dtype, int ndim, const int64_t *sizes,
                                                   void (*deleter)(void *context, void *data), void *context,
                                                   em_tensor **out);
/* A 0-dim CPU tensor of a number. dtype EM_DTYPE_NONE: the one that Python would give it (double: the default dtype). */
EM_API EM_MUST_CHECK em_status em_tensor_from_number(em_scalar number, int dtype, em_tensor **out);

/* ---- asking: -1, NULL or EM_DTYPE_NONE where t is NULL, as a short form's result is after a failure ---- */
EM_API int em_tensor_ndim(const em_tensor *t);
EM_API int64_t em_tensor_size(const em_tensor *t, int dim); /* dim from -ndim to ndim - 1; -1 if it is out of range */
EM_API const int64_t *em_tensor_sizes(const em_tensor *t);  /* ndim values; as long as t's shape is not changed */
EM_API const int64_t *em_tensor_strides(const em_tensor *t); /* in elements */
EM_API int64_t em_tensor_numel(const em_tensor *t);
EM_API int em_tensor_dtype(const em_tensor *t); /* em_dtype */
EM_API em_device em_tensor_device(const em_tensor *t);
EM_API size_t em_dtype_itemsize(int dtype);    /* bytes an element; 0 for what is no dtype */
EM_API const char *em_dtype_text(int dtype);   /* "float32"; static storage */

/* ---- reading ---- */
#ifndef EMBER_CORE_TENSOR_H
EM_API bool em_tensor_is_contiguous(const em_tensor *t);
/* The first element's address; elements lie at the strides. NULL without bytes (meta tensors, no elements). Writing here
 * is not seen by autograd: use it on tensors that no graph holds. */
EM_API void *em_tensor_data(const em_tensor *t);
#endif
/* As Python prints it, "tensor([1., 2.])", into `out`, which has room for `bytes` bytes with the closing zero; more than
 * 1000 elements as their edges. Errors: EM_ERR_VALUE if there is too little room; then the beginning is there. */
EM_API EM_MUST_CHECK em_status em_tensor_text(em_tensor *t, char *out, size_t bytes);
/* Prints the same and a new line to stdout: print(t). For NULL, in a scope whose short forms have failed, returns that failure. */
EM_API em_status em_print(em_tensor *t);
/* Copies the elements, row after row, as `dtype` (converted as `.to(dtype)` converts), into `out`, which has room for
 * `bytes` bytes. Errors: EM_ERR_VALUE if that is too little. */
EM_API EM_MUST_CHECK em_status em_tensor_read(em_tensor *t, int dtype, void *out, size_t bytes);
/* The value of a tensor with one element. Errors: EM_ERR_RUNTIME if it has more or none. */
EM_API EM_MUST_CHECK em_status em_tensor_to_double(em_tensor *t, double *out);
EM_API EM_MUST_CHECK em_status em_tensor_to_int(em_tensor *t, int64_t *out);

/* ---- sharing with other libraries: DLPack's protocol; its dlpack.h says what a DLManagedTensor is ---- */
struct DLManagedTensor;
/* A view of t for others, who call its `deleter` when they are done. Errors: EM_ERR_RUNTIME for a tensor that requires grad
 * (detach it) or is not on the CPU. */
EM_API EM_MUST_CHECK em_status em_tensor_to_dlpack(em_tensor *t, struct DLManagedTensor **out);
/* A tensor over their memory, which is given back to them (through `deleter`) with the last tensor over it. On failure it stays
 * the caller's. Errors: EM_ERR_RUNTIME for a device, a dtype or a shape that there is not; EM_ERR_VALUE for negative strides. */
EM_API EM_MUST_CHECK em_status em_tensor_from_dlpack(struct DLManagedTensor *managed, em_tensor **out);

#ifdef __cplusplus
}
#endif
#endif
