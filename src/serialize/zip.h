// zip.h: the container of checkpoints (and of .npz): records found through the central directory at the end, zip64 when
// something is large. Written as PyTorch writes it: stored, not compressed, each record's bytes at a multiple of 64.
#ifndef EMBER_SERIALIZE_ZIP_H
#define EMBER_SERIALIZE_ZIP_H
#include "source.h"

typedef struct em_zip_entry {
  const char *name;  // not terminated; points into the directory
  uint32_t name_size;
  uint32_t crc;
  uint64_t header;   // where its local header stands
  uint64_t size, packed;
  uint16_t method, flags;
} em_zip_entry;

typedef struct em_zip {
  em_source *source;
  uint8_t *directory;
  size_t directory_size;
  em_zip_entry *entries;  // as in the directory
  uint32_t *by_name;      // indices, sorted
  size_t count;
} em_zip;

// Reads and checks the directory. Owns a reference of `s`.
EM_PRIV em_status em_zip_open(em_source *s, em_zip **out);
EM_PRIV void em_zip_close(em_zip *z);
EM_PRIV const em_zip_entry *em_zip_find(const em_zip *z, const char *name, size_t n);  // NULL: no such record
// Where the record's bytes begin.
EM_PRIV em_status em_zip_locate(em_zip *z, const em_zip_entry *e, uint64_t *offset);
// The record's contents, unpacked, check sum compared: into e->size bytes at p, or a new storage.
EM_PRIV em_status em_zip_read(em_zip *z, const em_zip_entry *e, void *p);
EM_PRIV em_status em_zip_storage(em_zip *z, const em_zip_entry *e, em_storage **out);
// A window of the file. Only for stored records of mapped or memory sources; the check sum is not compared.
EM_PRIV em_status em_zip_window(em_zip *z, const em_zip_entry *e, em_storage **out);

typedef struct em_zip_writer {
  em_sink *sink;
  struct em_zip_written { char *name; size_t name_size; uint64_t header, size; uint32_t crc; } *records;
  size_t count, room;
  uint64_t id_names, id_sums;  // of .data/serialization_id
  uint32_t alignment;
  bool sums;                   // false: check sums are written as 0
} em_zip_writer;
EM_PRIV void em_zip_writer_init(em_zip_writer *w, em_sink *sink, uint32_t alignment, bool sums);
EM_PRIV em_status em_zip_write(em_zip_writer *w, const char *name, size_t name_size, const void *p, size_t n);
// The bytes of a storage as a record: they must be in host memory.
EM_PRIV em_status em_zip_write_storage(em_zip_writer *w, const char *name, size_t name_size, const em_storage *s);
// PyTorch's last record: two numbers of 20 digits that say which records there are. `folder` as in the other names.
EM_PRIV em_status em_zip_write_id(em_zip_writer *w, const char *folder, size_t folder_size);
EM_PRIV em_status em_zip_finish(em_zip_writer *w);  // the directory
EM_PRIV void em_zip_writer_clear(em_zip_writer *w);
#endif
