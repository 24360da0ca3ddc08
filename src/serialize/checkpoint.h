// checkpoint.h: weights in and out for programs without Python. A file becomes a document: a tree of values that lives
// until the document is closed. Checkpoints (.pt, new and old format) and safetensors files are told apart by their
// bytes; only tensors and plain containers are understood, everything else is refused by name.
#ifndef EMBER_SERIALIZE_CHECKPOINT_H
#define EMBER_SERIALIZE_CHECKPOINT_H
#include "core/tensor.h"
#include "source.h"

typedef enum em_file_kind {
  EM_FILE_NONE, EM_FILE_BOOL, EM_FILE_INT, EM_FILE_REAL, EM_FILE_COMPLEX, EM_FILE_TEXT, EM_FILE_BYTES,  // BYTES: big integers too
  EM_FILE_LIST, EM_FILE_TUPLE, EM_FILE_SET, EM_FILE_DICT, EM_FILE_TENSOR, EM_FILE_STORAGE, EM_FILE_DTYPE, EM_FILE_DEVICE,
  EM_FILE_NAME,  // a function or class that the pickle named: only within the reader
} em_file_kind;

// `dtype` of a NAME that stands for a storage class: untyped, or EM_NAME_STORAGES + the dtype. Smaller: a function.
enum { EM_NAME_UNTYPED = 100, EM_NAME_STORAGES };

typedef struct em_file_value em_file_value;
struct em_file_value {
  uint8_t kind;           // em_file_kind
  uint8_t requires_grad;  // TENSOR
  int dtype;              // DTYPE; STORAGE: as which elements it is seen; NAME: which one
  size_t count, room;     // LIST, TUPLE, SET: items; DICT: pairs, `items` has twice as many; TEXT, BYTES: bytes
  union {
    int64_t integer;
    double real[2];
    char *text;           // terminated; of DEVICE too
    em_file_value **items;
    em_tensor *tensor;
    em_storage *storage;
  };
  em_file_value *next;    // of all values of the document
};
typedef struct em_document {
  em_file_value *all, *root;
  size_t room;            // what calls in a pickle may still make
} em_document;

// Reads a whole file. map: tensors are windows of the mapped file, writes to them stay in this process.
EM_PRIV em_status em_document_open(const char *path, bool map, em_document **out);
EM_PRIV em_status em_document_read(em_source *s, em_document **out);
EM_PRIV void em_document_close(em_document *d);
// The value of a text key, NULL if it is not there or `dict` is none. The last one counts if a key is there twice.
EM_PRIV const em_file_value *em_file_find(const em_file_value *dict, const char *key);

// Writes a dict of tensors that both PyTorch and em_document_open read. Tensors that share a storage share it in the file.
EM_PRIV em_status em_checkpoint_write(em_sink *k, const char *folder, const char *const *names, em_tensor *const *tensors, size_t n);
EM_PRIV em_status em_checkpoint_save(const char *path, const char *const *names, em_tensor *const *tensors, size_t n);

// Within the reader: a pickle to values. `persistent` makes storages of what the pickle calls them.
typedef struct em_document_reader {
  em_document *document;
  em_status (*persistent)(struct em_document_reader *r, em_file_value *id, em_file_value **out);
  em_source *source;
  void *context;
} em_document_reader;
EM_PRIV em_status em_document_unpickle(em_document_reader *r, const uint8_t *p, size_t n, uint64_t first, em_file_value **out,
                                       size_t *used);
EM_PRIV em_status em_document_value(em_document *d, int kind, em_file_value **out);  // a new one
EM_PRIV em_status em_document_append(em_file_value *to, em_file_value *const *items, size_t n);
EM_PRIV em_status em_document_text(em_document *d, int kind, const void *p, size_t n, em_file_value **out);
#endif
