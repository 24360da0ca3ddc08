// zip_write.c: a zip archive as PyTorch's writer makes it, so that its own reader maps the records in place: flags
// 0x0808 (sizes behind the record, names in UTF-8), no time, padding in an extra field "FB".
#include "zip.h"
#include <stdio.h>
#include <string.h>

enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46 };

void em_zip_writer_init(em_zip_writer *w, em_sink *sink, uint32_t alignment, bool sums) {
  *w = (em_zip_writer){.sink = sink, .alignment = alignment, .sums = sums};
}
void em_zip_writer_clear(em_zip_writer *w) {
  for (size_t i = 0; i < w->count; i++) em_block_free(w->records[i].name);
  em_block_free(w->records);
  w->records = NULL;
  w->count = w->room = 0;
}

static em_status remember(em_zip_writer *w, const char *name, size_t n) {
  if (n == 0 || n > UINT16_MAX) return em_fail(EM_ERR_VALUE, "the name of a record has 1 to 65535 bytes, got %zu", n);
  if (w->count == w->room) {
    size_t room = w->room == 0 ? 64 : w->room * 2;
    struct em_zip_written *more = em_block_resize(w->records, room * sizeof *more);
    if (more == NULL) return EM_NOMEM(room * sizeof *more);
    w->records = more, w->room = room;
  }
  char *copy = em_block_alloc(n);
  if (copy == NULL) return EM_NOMEM(n);
  memcpy(copy, name, n);
  w->records[w->count++] = (struct em_zip_written){.name = copy, .name_size = n, .header = w->sink->written};
  return EM_OK;
}

static uint64_t combine(uint64_t seed, uint64_t v) { return seed ^ (v + 0x9e3779b9u + (seed << 6) + (seed >> 2)); }
static uint64_t hash(const char *p, size_t n) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)p[i]) * 0x100000001b3u;
  return h;
}

// Names are UTF-8; the sizes stand behind the record, if it has bytes.
static uint64_t flags_of(const struct em_zip_written *r) { return r->size == 0 ? 0x0800 : 0x0808; }

// The local header with its padding. Sizes that need zip64 put their field first.
static em_status write_header(em_zip_writer *w, const struct em_zip_written *r) {
  uint8_t h[LOCAL_SIZE] = "PK\3\4", extra[28], pad[256];
  size_t n = 0;
  em_put_le(h + 6, flags_of(r), 2);
  if (r->size >= UINT32_MAX || r->header >= UINT32_MAX) {
    n = 4;
    if (r->size >= UINT32_MAX) em_put_le(extra + n, r->size, 8), em_put_le(extra + n + 8, r->size, 8), n += 16;
    if (r->header >= UINT32_MAX) em_put_le(extra + n, r->header, 8), n += 8;
    em_put_le(extra, 1, 2);
    em_put_le(extra + 2, n - 4, 2);
  }
  uint64_t start = r->header + LOCAL_SIZE + r->name_size + n + 4;
  size_t padding = (size_t)((w->alignment - start % w->alignment) % w->alignment);
  em_put_le(h + 26, r->name_size, 2);
  em_put_le(h + 28, n + 4 + padding, 2);
  memcpy(pad, "FB", 2);
  em_put_le(pad + 2, padding, 2);
  EM_PASS(em_sink_write(w->sink, h, sizeof h));
  EM_PASS(em_sink_write(w->sink, r->name, r->name_size));
  EM_PASS(em_sink_write(w->sink, extra, n));
  EM_PASS(em_sink_write(w->sink, pad, 4));
  memset(pad, 'Z', sizeof pad);
  for (; padding > 0; padding -= padding < sizeof pad ? padding : sizeof pad)
    EM_PASS(em_sink_write(w->sink, pad, padding < sizeof pad ? padding : sizeof pad));
  return EM_OK;
}

em_status em_zip_write(em_zip_writer *w, const char *name, size_t name_size, const void *p, size_t n) {
  EM_PASS(remember(w, name, name_size));
  struct em_zip_written *r = &w->records[w->count - 1];
  r->size = n;
  r->crc = w->sums ? em_crc32(0, p, n) : 0;
  w->id_sums = combine(w->id_sums, r->crc);
  w->id_names = combine(w->id_names, hash(name, name_size));
  EM_PASS(write_header(w, r));
  if (n == 0) return EM_OK;
  EM_PASS(em_sink_write(w->sink, p, n));
  uint8_t d[24] = "PK\7\10";
  bool large = n >= UINT32_MAX;
  em_put_le(d + 4, r->crc, 4);
  em_put_le(d + 8, n, large ? 8 : 4);
  em_put_le(d + (large ? 16 : 12), n, large ? 8 : 4);
  return em_sink_write(w->sink, d, large ? 24 : 16);
}

em_status em_zip_write_storage(em_zip_writer *w, const char *name, size_t name_size, const em_storage *s) {
  if (s->nbytes > 0 && s->data == NULL)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
  return em_zip_write(w, name, name_size, s->data, s->nbytes);
}

em_status em_zip_write_id(em_zip_writer *w, const char *folder, size_t folder_size) {
  static const char record[] = ".data/serialization_id";
  char digits[48], *name = em_block_alloc(folder_size + sizeof record);
  if (name == NULL) return EM_NOMEM(folder_size);
  int n = snprintf(digits, sizeof digits, "%020llu%020llu", (unsigned long long)w->id_names, (unsigned long long)w->id_sums);
  memcpy(name, folder, folder_size);
  memcpy(name + folder_size, record, sizeof record);
  em_status st = em_zip_write(w, name, folder_size + sizeof record - 1, digits, (size_t)n);
  em_block_free(name);
  return st;
}

static em_status write_central(em_zip_writer *w, const struct em_zip_written *r) {
  uint8_t c[CENTRAL_SIZE] = "PK\1\2", extra[28];
  size_t n = 0;
  bool large = r->size >= UINT32_MAX, far = r->header >= UINT32_MAX;
  if (large || far) {
    n = 4;
    if (large) em_put_le(extra + n, r->size, 8), em_put_le(extra + n + 8, r->size, 8), n += 16;
    if (far) em_put_le(extra + n, r->header, 8), n += 8;
    em_put_le(extra, 1, 2);
    em_put_le(extra + 2, n - 4, 2);
  }
  em_put_le(c + 8, flags_of(r), 2);
  em_put_le(c + 16, r->crc, 4);
  em_put_le(c + 20, large ? UINT32_MAX : r->size, 4);
  em_put_le(c + 24, large ? UINT32_MAX : r->size, 4);
  em_put_le(c + 28, r->name_size, 2);
  em_put_le(c + 30, n, 2);
  em_put_le(c + 42, far ? UINT32_MAX : r->header, 4);
  EM_PASS(em_sink_write(w->sink, c, sizeof c));
  EM_PASS(em_sink_write(w->sink, r->name, r->name_size));
  return em_sink_write(w->sink, extra, n);
}

em_status em_zip_finish(em_zip_writer *w) {
  uint64_t start = w->sink->written;
  for (size_t i = 0; i < w->count; i++) EM_PASS(write_central(w, w->records + i));
  uint64_t end = w->sink->written, size = end - start;
  uint8_t e[56] = "PK\6\6", l[20] = "PK\6\7", f[22] = "PK\5\6";
  em_put_le(e + 4, 44, 8);
  em_put_le(e + 12, 0x031e, 2);
  em_put_le(e + 14, 0x002d, 2);
  em_put_le(e + 24, w->count, 8);
  em_put_le(e + 32, w->count, 8);
  em_put_le(e + 40, size, 8);
  em_put_le(e + 48, start, 8);
  em_put_le(l + 8, end, 8);
  em_put_le(l + 16, 1, 4);
  uint64_t count = w->count < UINT16_MAX ? w->count : UINT16_MAX;
  em_put_le(f + 8, count, 2);
  em_put_le(f + 10, count, 2);
  em_put_le(f + 12, size < UINT32_MAX ? size : UINT32_MAX, 4);
  em_put_le(f + 16, start < UINT32_MAX ? start : UINT32_MAX, 4);
  EM_PASS(em_sink_write(w->sink, e, sizeof e));
  EM_PASS(em_sink_write(w->sink, l, sizeof l));
  return em_sink_write(w->sink, f, sizeof f);
}
