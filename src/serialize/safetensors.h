// safetensors.h: the format of huggingface's library: 8 bytes of length, a JSON header, then the bytes of all tensors
// without holes. https://github.com/huggingface/safetensors has the format's description.
#ifndef EMBER_SERIALIZE_SAFETENSORS_H
#define EMBER_SERIALIZE_SAFETENSORS_H
#include "core/tensor.h"
#include "source.h"

typedef struct em_safetensors_entry {
  char *name;              // UTF-8, terminated; names with a zero byte are refused
  const char *dtype_name;  // "F32"
  int dtype;               // EM_DTYPE_NONE: a dtype of the format that Ember does not have
  int ndim;
  int64_t *sizes;
  uint64_t begin, end;     // from the first byte of data
} em_safetensors_entry;
typedef struct em_safetensors_pair { char *key, *value; } em_safetensors_pair;

typedef struct em_safetensors {
  em_source *source;
  em_safetensors_entry *entries;  // as their bytes lie in the file
  size_t count;
  em_safetensors_pair *metadata;
  size_t metadata_count;
  bool has_metadata;
  uint64_t data;                  // where the first tensor's bytes begin
} em_safetensors;

// Reads and checks the whole header: afterwards every entry's bytes are in the file, and as many as its shape needs.
EM_PRIV em_status em_safetensors_open(em_source *s, em_safetensors **out);
EM_PRIV void em_safetensors_close(em_safetensors *f);
// One tensor: its bytes read, or, when the source is mapped and `share`, in place.
EM_PRIV em_status em_safetensors_tensor(em_safetensors *f, const em_safetensors_entry *e, bool share, em_tensor **out);
// Writes n contiguous tensors in host memory: larger element types first, then by name.
EM_PRIV em_status em_safetensors_write(em_sink *k, const char *const *names, em_tensor *const *tensors, size_t n,
                                       const em_safetensors_pair *metadata, size_t npairs, bool has_metadata);
EM_PRIV const char *em_safetensors_dtype(int dtype);  // NULL: the format has none
#endif
