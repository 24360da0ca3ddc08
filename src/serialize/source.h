// source.h: where a file's bytes come from and where they go. A source is a file read in pieces, a file mapped into
// memory, or a block of memory; every read is checked against its size, so that no number found in a file can make a
// reader leave it. A sink takes bytes in order.
#ifndef EMBER_SERIALIZE_SOURCE_H
#define EMBER_SERIALIZE_SOURCE_H
#include "core/storage.h"

typedef struct em_source {
  em_ref rc;
  int fd;                 // -1: the bytes are at `base`
  uint8_t mapped;         // `base` came from mmap
  const uint8_t *base;    // NULL for files read in pieces
  uint64_t start;         // of byte 0 in the file: what precedes it is not part of the source
  uint64_t size;
  char *name;             // for messages: the path, or what the caller called it
  void (*release)(void *);  // of memory: runs when the last reader is gone
  void *context;
} em_source;

// A file read in pieces. *error: errno when the system refused, 0 when something else is wrong.
EM_PRIV em_status em_source_open(const char *path, em_source **out, int *error);
EM_PRIV em_status em_source_open_fd(int fd, uint64_t start, const char *name, em_source **out);  // fd is duplicated
// The whole file in memory, by the system's pager. Private: writes stay in this process. Shared: they change the file.
EM_PRIV em_status em_source_map(const char *path, bool shared, em_source **out, int *error);
// The first n bytes of a file, mapped. Shared: the file is made, or made longer, if need be.
EM_PRIV em_status em_source_map_bytes(const char *path, bool shared, uint64_t n, em_source **out);
EM_PRIV em_status em_source_memory(const void *p, size_t n, const char *name, void (*release)(void *), void *context,
                                   em_source **out);
EM_PRIV void em_source_free(em_source *s);
static inline em_source *em_source_retain(em_source *s) { em_ref_inc(&s->rc); return s; }
static inline void em_source_release(em_source *s) { if (s != NULL && em_ref_dec(&s->rc)) em_source_free(s); }

// Whether bytes [offset, offset + n) exist.
static inline bool em_source_has(const em_source *s, uint64_t offset, uint64_t n) {
  return offset <= s->size && n <= s->size - offset;
}
EM_PRIV em_status em_source_read(em_source *s, uint64_t offset, void *p, size_t n);
// New storage with n bytes from `offset`: read into fresh memory, or a window of the mapped file that keeps it mapped.
EM_PRIV em_status em_source_storage(em_source *s, uint64_t offset, uint64_t n, em_storage **out);
EM_PRIV em_status em_source_window(em_source *s, uint64_t offset, uint64_t n, em_storage **out);
// "NAME: not a FORMAT file: ..., at byte N. CAUSE". What the first bytes look like when they are no checkpoint at all
// (a Git LFS pointer, a web page, ...), or NULL.
EM_PRIV const char *em_source_guess(em_source *s);

typedef struct em_sink {
  em_status (*write)(struct em_sink *k, const void *p, size_t n);
  void *context;
  int fd;
  uint64_t written;
} em_sink;
EM_PRIV em_status em_sink_write(em_sink *k, const void *p, size_t n);
// Writes to a file that does not exist yet, or is emptied. *error: errno.
EM_PRIV em_status em_sink_open(const char *path, em_sink *k, int *error);
EM_PRIV em_status em_sink_close(em_sink *k);  // reports what the system only says on closing

// zlib's CRC-32 of n bytes, continued from `crc` (0 to begin).
EM_PRIV uint32_t em_crc32(uint32_t crc, const void *p, size_t n);
// Unpacks a raw deflate stream of n bytes into exactly `room` bytes.
EM_PRIV em_status em_inflate(const uint8_t *p, size_t n, uint8_t *out, size_t room, const char *name);

// Memory of readers and writers, from Ember's allocator: blocks that know their size, so that they can be resized and
// freed without it. NULL when there is none.
EM_PRIV void *em_block_alloc(size_t n);
EM_PRIV void *em_block_zeroed(size_t n);
EM_PRIV void *em_block_resize(void *p, size_t n);  // p NULL: a new one. On failure p stays
EM_PRIV char *em_block_text(const char *text);     // a copy
EM_PRIV void em_block_free(void *p);

// A little-endian number, whatever the machine and the alignment.
static inline uint64_t em_le(const uint8_t *p, int n) {
  uint64_t v = 0;
  for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
  return v;
}
static inline void em_put_le(uint8_t *p, uint64_t v, int n) {
  for (int i = 0; i < n; i++, v >>= 8) p[i] = (uint8_t)v;
}
#endif
