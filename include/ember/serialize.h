/* ember/serialize.h: weights in files: PyTorch's checkpoints (.pt) and safetensors, both ways, without Python. Files are
 * taken for hostile: a damaged one is an error that says file, format, byte and likely cause. */
#ifndef EMBER_SERIALIZE_H
#define EMBER_SERIALIZE_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Named tensors read from a file, in its order. */
typedef struct em_weights em_weights;

/* Reads a checkpoint or a safetensors file; the bytes tell which. Containers in a checkpoint become paths: {"model": {"w":
 * tensor}} is "model.w". What is no tensor is left out. Errors: EM_ERR_RUNTIME, EM_ERR_OOM. */
EM_API EM_MUST_CHECK em_status em_weights_load(const char *path, em_weights **out);
EM_API void em_weights_free(em_weights *w); /* NULL is fine */
EM_API size_t em_weights_count(const em_weights *w);
EM_API const char *em_weights_name(const em_weights *w, size_t i); /* NULL beyond the last */
EM_API em_tensor *em_weights_tensor(const em_weights *w, size_t i); /* borrowed; NULL beyond the last */
EM_API em_tensor *em_weights_find(const em_weights *w, const char *name); /* borrowed; NULL if there is none */
/* Copies into tensors[n] the weights named names[n], as load_state_dict does. Errors: EM_ERR_RUNTIME for a name that the
 * file lacks, a shape that differs, or a weight of the file that is not asked for; then no tensor was changed. */
EM_API EM_MUST_CHECK em_status em_weights_copy_to(const em_weights *w, const char *const *names, em_tensor *const *tensors,
                                                  size_t n);

/* Writes tensors under their names, for torch.load / safetensors and em_weights_load. Any layout; graphs are not written.
 * Errors: EM_ERR_RUNTIME for what the system refuses, for a dtype that the format lacks, and for names given twice. */
EM_API EM_MUST_CHECK em_status em_save_checkpoint(const char *path, const char *const *names, em_tensor *const *tensors,
                                                  size_t n);
EM_API EM_MUST_CHECK em_status em_save_safetensors(const char *path, const char *const *names, em_tensor *const *tensors,
                                                   size_t n);

#ifdef __cplusplus
}
#endif
#endif
