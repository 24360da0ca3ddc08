// zip_read.c: finds records. Nothing that the file says is believed before it was compared with the file's size.
#include "zip.h"
#include <stdlib.h>
#include <string.h>

#define WORDS "PytorchStreamReader failed reading zip archive: "
enum { END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, CENTRAL_SIZE = 46, LOCAL_SIZE = 30, MAX_COMMENT = 65535 };
typedef unsigned long long ull;

// The end record is the last thing in the file, behind it at most a comment. Its position, or -1.
static int64_t find_end(const uint8_t *tail, size_t n, uint64_t size) {
  for (size_t i = n < END_SIZE ? 0 : n - END_SIZE + 1; i-- > 0;)
    if (memcmp(tail + i, "PK\5\6", 4) == 0 && i + END_SIZE + em_le(tail + i + 20, 2) == n)
      return (int64_t)(size - n + i);
  return -1;
}

typedef struct directory_place { uint64_t offset, size, count; } directory_place;

static em_status read_end64(em_source *s, uint64_t end, directory_place *d) {
  uint8_t loc[LOCATOR_SIZE], e[END64_SIZE];
  if (end < LOCATOR_SIZE) return EM_OK;
  EM_PASS(em_source_read(s, end - LOCATOR_SIZE, loc, sizeof loc));
  if (memcmp(loc, "PK\6\7", 4) != 0) return EM_OK;
  uint64_t at = em_le(loc + 8, 8);
  if (!em_source_has(s, at, END64_SIZE) || at > end - LOCATOR_SIZE)
    return em_fail(EM_ERR_RUNTIME, WORDS "the zip64 locator points outside of the file. %s is damaged at byte %llu",
                   s->name, (ull)(end - LOCATOR_SIZE));
  EM_PASS(em_source_read(s, at, e, sizeof e));
  if (memcmp(e, "PK\6\6", 4) != 0)
    return em_fail(EM_ERR_RUNTIME, WORDS "no zip64 end record where the locator says. %s is damaged at byte %llu",
                   s->name, (ull)at);
  d->count = em_le(e + 32, 8);
  d->size = em_le(e + 40, 8);
  d->offset = em_le(e + 48, 8);
  return EM_OK;
}

static em_status find_directory(em_source *s, directory_place *d) {
  size_t n = s->size < END_SIZE + MAX_COMMENT ? (size_t)s->size : END_SIZE + MAX_COMMENT;
  uint8_t *tail = em_block_alloc(n + 1);
  if (tail == NULL) return EM_NOMEM(n);
  em_status st;
  EM_TRY(em_source_read(s, s->size - n, tail, n));
  int64_t end = find_end(tail, n, s->size);
  if (end < 0) {
    uint8_t first[4] = {0};
    EM_TRY(em_source_read(s, 0, first, s->size < 4 ? (size_t)s->size : 4));
    const char *guess = em_source_guess(s);
    if (memcmp(first, "PK\3\4", 4) == 0)
      EM_FAIL(EM_ERR_RUNTIME, WORDS "failed finding central directory. %s is truncated: the zip's end record is missing "
                              "(the file ends at byte %llu); was the download or the save interrupted?", s->name,
              (ull)s->size);
    EM_FAIL(EM_ERR_RUNTIME, WORDS "failed finding central directory. %s is not a zip archive%s%s", s->name,
            guess ? ": " : "", guess ? guess : "");
  }
  const uint8_t *e = tail + (end - (int64_t)(s->size - n));
  *d = (directory_place){em_le(e + 16, 4), em_le(e + 12, 4), em_le(e + 10, 2)};
  if (em_le(e + 4, 2) != em_le(e + 6, 2)) EM_FAIL(EM_ERR_RUNTIME, WORDS "%s is a part of a split archive", s->name);
  EM_TRY(read_end64(s, (uint64_t)end, d));
  if (d->offset > (uint64_t)end || d->size > (uint64_t)end - d->offset || d->count > d->size / CENTRAL_SIZE)
    EM_FAIL(EM_ERR_RUNTIME, WORDS "the central directory (%llu records in %llu bytes at byte %llu) does not fit into "
                            "%s, which ends at byte %llu: bytes are missing or were changed",
            (ull)d->count, (ull)d->size, (ull)d->offset, s->name, (ull)s->size);
fail:
  em_block_free(tail);
  return st;
}

// The zip64 part of a record's extra field replaces the numbers that did not fit.
static em_status read_extra(em_source *s, em_zip_entry *e, const uint8_t *x, size_t n, uint64_t at) {
  while (n >= 4) {
    size_t id = em_le(x, 2), len = em_le(x + 2, 2);
    if (len > n - 4) break;
    if (id == 1) {
      uint64_t *fields[] = {&e->size, &e->packed, &e->header};
      const uint8_t *p = x + 4;
      for (int i = 0; i < 3; i++) {
        if (*fields[i] != UINT32_MAX) continue;
        if (len < 8)
          return em_fail(EM_ERR_RUNTIME, WORDS "a zip64 field is too short. %s is damaged at byte %llu", s->name, (ull)at);
        *fields[i] = em_le(p, 8);
        p += 8, len -= 8;
      }
      return EM_OK;
    }
    x += 4 + len, n -= 4 + len;
  }
  return EM_OK;
}

static int name_order(const em_zip_entry *a, const char *name, size_t n) {
  size_t shorter = a->name_size < n ? a->name_size : n;
  int c = shorter == 0 ? 0 : memcmp(a->name, name, shorter);
  return c != 0 ? c : (a->name_size > n) - (a->name_size < n);
}
static int by_name(const void *a, const void *b, void *entries) {
  const em_zip_entry *all = entries, *x = all + *(const uint32_t *)a, *y = all + *(const uint32_t *)b;
  return name_order(x, y->name, y->name_size);
}

static em_status read_entry(em_zip *z, em_zip_entry *e, size_t *at, uint64_t base, uint64_t *sum) {
  em_source *s = z->source;
  const uint8_t *p = z->directory + *at;
  size_t left = z->directory_size - *at;
  if (left < CENTRAL_SIZE || memcmp(p, "PK\1\2", 4) != 0)
    return em_fail(EM_ERR_RUNTIME, WORDS "the central directory is damaged in %s at byte %llu", s->name, (ull)(base + *at));
  size_t name = em_le(p + 28, 2), extra = em_le(p + 30, 2), comment = em_le(p + 32, 2);
  if (left - CENTRAL_SIZE < name + extra + comment)
    return em_fail(EM_ERR_RUNTIME, WORDS "the central directory ends within a record, in %s at byte %llu", s->name,
                   (ull)(base + *at));
  *e = (em_zip_entry){.name = (const char *)p + CENTRAL_SIZE, .name_size = (uint32_t)name, .flags = (uint16_t)em_le(p + 8, 2),
                      .method = (uint16_t)em_le(p + 10, 2), .crc = (uint32_t)em_le(p + 16, 4), .packed = em_le(p + 20, 4),
                      .size = em_le(p + 24, 4), .header = em_le(p + 42, 4)};
  EM_PASS(read_extra(s, e, p + CENTRAL_SIZE + name, extra, base + *at));
  if (!em_source_has(s, e->header, LOCAL_SIZE) || e->packed > base || (e->method == 0 && e->packed != e->size) ||
      e->size / 1100 > e->packed)
    return em_fail(EM_ERR_RUNTIME, WORDS "record '%.*s' (%llu bytes at byte %llu) does not fit into %s, which has %llu "
                   "bytes: bytes are missing or were changed", (int)(name < 200 ? name : 200), e->name, (ull)e->size,
                   (ull)e->header, s->name, (ull)s->size);
  if ((*sum += e->packed) > base)  // packed <= base: the sum cannot wrap
    return em_fail(EM_ERR_RUNTIME, WORDS "records overlap in %s", s->name);
  *at += CENTRAL_SIZE + name + extra + comment;
  return EM_OK;
}

em_status em_zip_open(em_source *s, em_zip **out) {
  directory_place d = {0, 0, 0};
  EM_PASS(find_directory(s, &d));
  em_status st = EM_OK;
  em_zip *z = em_block_zeroed(sizeof *z);
  if (z == NULL) return EM_NOMEM(sizeof *z);
  z->source = em_source_retain(s);
  z->directory_size = d.size;
  z->directory = em_block_alloc(d.size + 1);
  z->entries = em_block_zeroed((d.count + 1) * (sizeof *z->entries));
  z->by_name = em_block_alloc((d.count + 1) * sizeof *z->by_name);
  if (z->directory == NULL || z->entries == NULL || z->by_name == NULL || d.count >= UINT32_MAX) {
    st = EM_NOMEM(d.size);
    goto fail;
  }
  EM_TRY(em_source_read(s, d.offset, z->directory, d.size));
  size_t at = 0;
  uint64_t sum = 0;
  for (; z->count < d.count; z->count++) {
    EM_TRY(read_entry(z, z->entries + z->count, &at, d.offset, &sum));
    z->by_name[z->count] = (uint32_t)z->count;
  }
  qsort_r(z->by_name, z->count, sizeof *z->by_name, by_name, z->entries);
  for (size_t i = 1; i < z->count; i++) {
    em_zip_entry *a = z->entries + z->by_name[i - 1], *b = z->entries + z->by_name[i];
    if (name_order(a, b->name, b->name_size) == 0)
      EM_FAIL(EM_ERR_RUNTIME, WORDS "two records have the name '%.*s' in %s", (int)(a->name_size < 200 ? a->name_size : 200),
              a->name, s->name);
  }
  *out = z;
  return EM_OK;
fail:
  em_zip_close(z);
  return st;
}

void em_zip_close(em_zip *z) {
  if (z == NULL) return;
  em_source_release(z->source);
  em_block_free(z->directory);
  em_block_free(z->entries);
  em_block_free(z->by_name);
  em_block_free(z);
}

const em_zip_entry *em_zip_find(const em_zip *z, const char *name, size_t n) {
  size_t low = 0, high = z->count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    const em_zip_entry *e = z->entries + z->by_name[mid];
    int c = name_order(e, name, n);
    if (c == 0) return e;
    if (c < 0) low = mid + 1;
    else high = mid;
  }
  return NULL;
}

em_status em_zip_locate(em_zip *z, const em_zip_entry *e, uint64_t *offset) {
  uint8_t h[LOCAL_SIZE];
  EM_PASS(em_source_read(z->source, e->header, h, sizeof h));
  if (memcmp(h, "PK\3\4", 4) != 0)
    return em_fail(EM_ERR_RUNTIME, WORDS "no record header where '%.*s' should begin: %s is damaged at byte %llu",
                   (int)(e->name_size < 200 ? e->name_size : 200), e->name, z->source->name, (ull)e->header);
  *offset = e->header + LOCAL_SIZE + em_le(h + 26, 2) + em_le(h + 28, 2);
  if (!em_source_has(z->source, *offset, e->packed))
    return em_fail(EM_ERR_RUNTIME, WORDS "record '%.*s' runs over the end of %s: byte %llu of %llu",
                   (int)(e->name_size < 200 ? e->name_size : 200), e->name, z->source->name, (ull)(*offset + e->packed),
                   (ull)z->source->size);
  return EM_OK;
}

static em_status readable(em_zip *z, const em_zip_entry *e) {
  if (e->flags & 1)
    return em_fail(EM_ERR_RUNTIME, WORDS "record '%.*s' of %s is encrypted", (int)(e->name_size < 200 ? e->name_size : 200),
                   e->name, z->source->name);
  if (e->method != 0 && e->method != 8)
    return em_fail(EM_ERR_RUNTIME, WORDS "record '%.*s' of %s is compressed by method %d; stored and deflated are known",
                   (int)(e->name_size < 200 ? e->name_size : 200), e->name, z->source->name, e->method);
  return EM_OK;
}

em_status em_zip_read(em_zip *z, const em_zip_entry *e, void *p) {
  uint64_t at = 0;
  EM_PASS(readable(z, e));
  EM_PASS(em_zip_locate(z, e, &at));
  if (e->method == 0) {
    EM_PASS(em_source_read(z->source, at, p, e->size));
  } else {
    uint8_t *packed = em_block_alloc(e->packed + 1);
    if (packed == NULL) return EM_NOMEM(e->packed);
    em_status st = em_source_read(z->source, at, packed, e->packed);
    if (st == EM_OK) st = em_inflate(packed, e->packed, p, e->size, z->source->name);
    em_block_free(packed);
    EM_PASS(st);
  }
  // A check sum of 0 says that there is none (torch.serialization.set_crc32_options(False)).
  if (e->crc != 0 && em_crc32(0, p, e->size) != e->crc)
    return em_fail(EM_ERR_RUNTIME, WORDS "the check sum of record '%.*s' (byte %llu of %s) is wrong: its bytes were changed",
                   (int)(e->name_size < 200 ? e->name_size : 200), e->name, (ull)at, z->source->name);
  return EM_OK;
}

em_status em_zip_storage(em_zip *z, const em_zip_entry *e, em_storage **out) {
  em_storage *s = NULL;
  uint64_t at;
  uint8_t none;
  EM_PASS(readable(z, e));
  EM_PASS(em_zip_locate(z, e, &at));  // before the memory is asked for
  EM_PASS(em_storage_new(e->size, (em_device){EM_DEVICE_CPU, -1}, &s));
  em_status st = em_zip_read(z, e, e->size == 0 ? &none : s->data);
  if (st != EM_OK) em_storage_release(s);
  else *out = s;
  return st;
}

em_status em_zip_window(em_zip *z, const em_zip_entry *e, em_storage **out) {
  uint64_t at;
  EM_PASS(readable(z, e));
  EM_PASS(em_zip_locate(z, e, &at));
  if (e->method != 0 || z->source->base == NULL) return em_zip_storage(z, e, out);
  return em_source_window(z->source, at, e->size, out);
}
