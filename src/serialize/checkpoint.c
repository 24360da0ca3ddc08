// checkpoint.c: whole files to documents: PyTorch's zip format, its older stream of pickles, safetensors. And the zip
// format written, for dicts of tensors.
#include "checkpoint.h"
#include "core/dtype.h"
#include "safetensors.h"
#include "unpickle.h"
#include "zip.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

// ---------------------------------------------------------------- storages
// ("storage", class, key, location, number of elements[, view])
typedef struct description { int dtype; const char *key; uint64_t nbytes; const em_file_value *view; } description;

static em_status describe(em_document_reader *r, const em_file_value *id, description *d) {
  bool good = id->kind == EM_FILE_TUPLE && id->count >= 5 && id->items[0]->kind == EM_FILE_TEXT &&
              strcmp(id->items[0]->text, "storage") == 0 && id->items[1]->kind == EM_FILE_NAME && id->items[1]->dtype >= EM_NAME_UNTYPED &&
              id->items[2]->kind == EM_FILE_TEXT && id->items[3]->kind == EM_FILE_TEXT && id->items[4]->kind == EM_FILE_INT &&
              id->items[4]->integer >= 0 && id->items[2]->count < 100;
  if (!good) return em_fail(EM_ERR_RUNTIME, "%s: a storage's description is damaged", r->source->name);
  d->dtype = id->items[1]->dtype == EM_NAME_UNTYPED ? EM_U8 : id->items[1]->dtype - EM_NAME_STORAGES;
  d->key = id->items[2]->text;
  d->view = id->count > 5 && id->items[5]->kind != EM_FILE_NONE ? id->items[5] : NULL;
  if (__builtin_mul_overflow((uint64_t)id->items[4]->integer, em_dtype_size(d->dtype), &d->nbytes) || d->nbytes > r->source->size * 1100)
    return em_fail(EM_ERR_RUNTIME, "%s: storage has wrong size: '%s' is described with %lld elements, the whole file has %llu bytes",
                   r->source->name, d->key, (long long)id->items[4]->integer, (ull)r->source->size);
  return EM_OK;
}

// What was made for a key. `slots` finds it: a hash table of indices plus one, at most half full.
typedef struct made { char *key; em_storage *s; size_t width; } made;
typedef struct storages {
  made *all;
  uint32_t *slots;
  size_t count, room;  // slots has 2 * room
  em_zip *zip;
  char *folder;        // of the records' names, with its slash
  size_t folder_size;
  bool share, swap;
  uint64_t wanted;     // bytes asked for so far
} storages;

static size_t slot_of(const storages *st, const char *key) {  // where the key is, or where it would go
  uint64_t h = 0xcbf29ce484222325u;
  for (const char *p = key; *p != 0; p++) h = (h ^ (uint8_t)*p) * 0x100000001b3u;
  size_t mask = 2 * st->room - 1, i = (size_t)(h ^ h >> 29) & mask;
  while (st->slots[i] != 0 && strcmp(st->all[st->slots[i] - 1].key, key) != 0) i = (i + 1) & mask;
  return i;
}
static made *find_made(storages *st, const char *key) {
  uint32_t at = st->room == 0 ? 0 : st->slots[slot_of(st, key)];
  return at == 0 ? NULL : st->all + at - 1;
}
static em_status more_room(storages *st) {
  size_t room = st->room == 0 ? 16 : st->room * 2;
  made *all = em_block_resize(st->all, room * sizeof *all);
  if (all == NULL) return EM_NOMEM(room * sizeof *all);
  st->all = all;
  uint32_t *slots = em_block_zeroed((2 * room) * (sizeof *slots));
  if (slots == NULL) return EM_NOMEM(2 * room * sizeof *slots);
  em_block_free(st->slots);
  st->slots = slots, st->room = room;
  for (size_t i = 0; i < st->count; i++) st->slots[slot_of(st, st->all[i].key)] = (uint32_t)i + 1;
  return EM_OK;
}
static em_status add_made(storages *st, const char *key, em_storage *s, size_t width) {  // steals s
  char *copy = em_block_text(key);
  em_status status = copy == NULL ? EM_NOMEM(strlen(key)) : st->count == st->room ? more_room(st) : EM_OK;
  if (status != EM_OK) {
    em_block_free(copy);
    em_storage_release(s);
    return status;
  }
  st->slots[slot_of(st, key)] = (uint32_t)st->count + 1;
  st->all[st->count++] = (made){copy, s, width};
  return EM_OK;
}
static void clear_made(storages *st) {
  for (size_t i = 0; i < st->count; i++) em_block_free(st->all[i].key), em_storage_release(st->all[i].s);
  em_block_free(st->all);
  em_block_free(st->slots);
  em_block_free(st->folder);
}
static void swap_bytes(em_storage *s, size_t width) {
  uint8_t *p = s->data;
  for (size_t i = 0; p != NULL && i + width <= s->nbytes; i += width)
    for (size_t a = 0, b = width - 1; a < b; a++, b--) {
      uint8_t t = p[i + a];
      p[i + a] = p[i + b], p[i + b] = t;
    }
}
static em_status wrap(em_document_reader *r, const made *m, int dtype, em_file_value **out) {
  EM_PASS(em_document_value(r->document, EM_FILE_STORAGE, out));
  (*out)->storage = em_storage_retain(m->s);
  (*out)->dtype = dtype;
  return EM_OK;
}

// ---------------------------------------------------------------- the zip format
static const em_zip_entry *record(storages *st, const char *name) {
  char full[1024];
  int n = snprintf(full, sizeof full, "%.*s%s", (int)st->folder_size, st->folder, name);
  return n < 0 || (size_t)n >= sizeof full ? NULL : em_zip_find(st->zip, full, (size_t)n);
}
static em_status zip_persistent(em_document_reader *r, em_file_value *id, em_file_value **out) {
  storages *st = r->context;
  description d = {0};
  EM_PASS(describe(r, id, &d));
  made *m = find_made(st, d.key);
  if (m == NULL) {
    char name[128];
    (void)snprintf(name, sizeof name, "data/%s", d.key);
    const em_zip_entry *e = record(st, name);
    if (e == NULL)
      return em_fail(EM_ERR_RUNTIME, "PytorchStreamReader failed locating file %s: file not found in %s", name, r->source->name);
    em_storage *s = NULL;
    EM_PASS(st->share && !st->swap ? em_zip_window(st->zip, e, &s) : em_zip_storage(st->zip, e, &s));
    size_t size = em_dtype_size(d.dtype);
    if (st->swap) swap_bytes(s, em_dtype_is_complex(d.dtype) ? size / 2 : size);
    EM_PASS(add_made(st, d.key, s, size));
    m = st->all + st->count - 1;
  }
  if (m->s->nbytes < d.nbytes)
    return em_fail(EM_ERR_RUNTIME, "%s: storage has wrong size: expected %llu bytes, got %zu (record data/%s): the file is damaged",
                   r->source->name, (ull)d.nbytes, m->s->nbytes, d.key);
  return wrap(r, m, d.dtype, out);
}
static em_status read_record(storages *st, const em_zip_entry *e, uint8_t **out) {
  uint64_t at;
  EM_PASS(em_zip_locate(st->zip, e, &at));
  if ((*out = em_block_alloc(e->size + 1)) == NULL) return EM_NOMEM(e->size);
  return em_zip_read(st->zip, e, *out);
}
static em_status read_zip(em_document_reader *r, bool share) {
  storages s = {.share = share};
  uint8_t *pickle = NULL, *order = NULL;
  size_t used;
  em_status st;
  EM_TRY(em_zip_open(r->source, &s.zip));
  const em_zip_entry *first = s.zip->entries;
  const char *slash = s.zip->count == 0 ? NULL : memchr(first->name, '/', first->name_size);
  s.folder_size = slash == NULL ? 0 : (size_t)(slash - first->name) + 1;
  if ((s.folder = em_block_alloc(s.folder_size + 1)) == NULL) {
    st = EM_NOMEM(s.folder_size);
    goto fail;
  }
  memcpy(s.folder, s.zip->count == 0 ? "" : first->name, s.folder_size);
  s.folder[s.folder_size] = 0;
  const em_zip_entry *e = record(&s, "data.pkl"), *o = record(&s, "byteorder");
  if (e == NULL || record(&s, "constants.pkl") != NULL)
    EM_FAIL(EM_ERR_RUNTIME, "PytorchStreamReader failed locating file data.pkl: file not found. %s is a zip archive, but not a "
            "checkpoint%s", r->source->name, e == NULL ? "" : " of weights: it is a TorchScript program");
  if (o != NULL) {
    EM_TRY(read_record(&s, o, &order));
    if (!(o->size == 6 && memcmp(order, "little", 6) == 0) && !(o->size == 3 && memcmp(order, "big", 3) == 0))
      EM_FAIL(EM_ERR_VALUE, "%s: Unknown endianness type", r->source->name);
    s.swap = (order[0] == 'b') != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
  }
  EM_TRY(read_record(&s, e, &pickle));
  r->context = &s;
  r->persistent = zip_persistent;
  r->document->room = 8 * e->size + 100000;
  EM_TRY(em_document_unpickle(r, pickle, e->size, 0, &r->document->root, &used));
fail:
  em_block_free(pickle);
  em_block_free(order);
  clear_made(&s);
  em_zip_close(s.zip);
  return st;
}

// ---------------------------------------------------------------- the old stream of pickles
static em_status stream_persistent(em_document_reader *r, em_file_value *id, em_file_value **out) {
  storages *st = r->context;
  description d = {0};
  EM_PASS(describe(r, id, &d));
  if (d.view != NULL) return em_fail(EM_ERR_NOT_IMPLEMENTED, "%s: views of storages (files of PyTorch 0.3 and before)", r->source->name);
  made *m = find_made(st, d.key);
  if (m == NULL) {
    em_storage *s = NULL;
    if ((st->wanted += d.nbytes) > r->source->size)
      return em_fail(EM_ERR_RUNTIME, "%s: storage has wrong size: '%s' is described with %llu bytes, the whole file has %llu: it is "
                     "truncated or damaged", r->source->name, d.key, (ull)d.nbytes, (ull)r->source->size);
    EM_PASS(em_storage_new(d.nbytes, (em_device){EM_DEVICE_CPU, -1}, &s));
    if (s->data != NULL) memset(s->data, 0, s->nbytes);
    EM_PASS(add_made(st, d.key, s, em_dtype_size(d.dtype)));
    m = st->all + st->count - 1;
  }
  if (m->s->nbytes < d.nbytes) return em_fail(EM_ERR_RUNTIME, "%s: storage has wrong size: '%s'", r->source->name, d.key);
  return wrap(r, m, d.dtype, out);
}
static em_status fill(em_document_reader *r, storages *st, const em_file_value *keys, uint64_t at) {
  em_source *s = r->source;
  for (size_t i = 0; i < (keys->kind == EM_FILE_LIST ? keys->count : 0); i++) {
    made *m = keys->items[i]->kind == EM_FILE_TEXT ? find_made(st, keys->items[i]->text) : NULL;
    uint8_t count[8];
    if (m == NULL) return em_fail(EM_ERR_RUNTIME, "%s: the list of storages at the end does not fit the pickle", s->name);
    EM_PASS(em_source_read(s, at, count, 8));
    if (em_le(count, 8) > s->size || em_le(count, 8) * m->width != m->s->nbytes)
      return em_fail(EM_ERR_RUNTIME, "%s: storage has wrong size: expected %llu got %zu (at byte %llu): the file is damaged", s->name,
                     (ull)em_le(count, 8), m->s->nbytes / m->width, (ull)at);
    at += 8;
    if (!em_source_has(s, at, m->s->nbytes))
      return em_fail(EM_ERR_RUNTIME, "unexpected EOF, expected %llu more bytes. The file might be corrupted. %s is truncated at byte %llu",
                     (ull)(at + m->s->nbytes - s->size), s->name, (ull)s->size);
    if (m->s->nbytes > 0) EM_PASS(em_source_read(s, at, m->s->data, m->s->nbytes));
    at += m->s->nbytes;
  }
  return EM_OK;
}
static em_status read_stream(em_document_reader *r) {
  static const uint8_t magic[10] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  em_source *s = r->source;
  storages made_here = {0};
  em_file_value *part[5];
  size_t at = 0, used = 0;
  em_status st = EM_OK;
  uint8_t *all = em_block_alloc(s->size + 1);
  if (all == NULL) return EM_NOMEM(s->size);
  EM_TRY(em_source_read(s, 0, all, s->size));
  r->context = &made_here;
  r->document->room = 8 * s->size + 100000;
  for (int i = 0; i < 5; i++, at += used) {  // magic number, version, machine, the object, keys
    r->persistent = i == 3 ? stream_persistent : NULL;
    EM_TRY(em_document_unpickle(r, all + at, s->size - at, at, &part[i], &used));
    if (i == 0 && (part[0]->kind != EM_FILE_BYTES || part[0]->count != 10 || memcmp(part[0]->text, magic, 10) != 0))
      EM_FAIL(EM_ERR_RUNTIME, "Invalid magic number; corrupt file? %s is not a checkpoint", s->name);
    if (i == 1 && (part[1]->kind != EM_FILE_INT || part[1]->integer != 1001))
      EM_FAIL(EM_ERR_RUNTIME, "Invalid protocol version in %s", s->name);
  }
  r->document->root = part[3];
  EM_TRY(fill(r, &made_here, part[4], at));
fail:
  em_block_free(all);
  clear_made(&made_here);
  return st;
}

// ---------------------------------------------------------------- safetensors
static em_status read_safetensors(em_document_reader *r, bool share) {
  em_safetensors *f = NULL;
  em_document *d = r->document;
  em_status st;
  EM_TRY(em_safetensors_open(r->source, &f));
  EM_TRY(em_document_value(d, EM_FILE_DICT, &d->root));
  for (size_t i = 0; i < f->count; i++) {
    em_file_value *pair[2];
    EM_TRY(em_document_text(d, EM_FILE_TEXT, f->entries[i].name, strlen(f->entries[i].name), &pair[0]));
    EM_TRY(em_document_value(d, EM_FILE_TENSOR, &pair[1]));
    EM_TRY(em_safetensors_tensor(f, f->entries + i, share, &pair[1]->tensor));
    EM_TRY(em_document_append(d->root, pair, 2));
  }
fail:
  em_safetensors_close(f);
  return st;
}

em_status em_document_read(em_source *s, em_document **out) {
  em_document *d = em_block_zeroed(sizeof *d);
  if (d == NULL) return EM_NOMEM(sizeof *d);
  em_document_reader r = {.document = d, .source = s};
  uint8_t head[9] = {0};
  bool share = s->base != NULL && s->mapped;
  em_status st = em_source_read(s, 0, head, s->size < 9 ? (size_t)s->size : 9);
  if (st == EM_OK)
    st = memcmp(head, "PK\3\4", 4) == 0 ? read_zip(&r, share) : head[8] == '{' ? read_safetensors(&r, share) : read_stream(&r);
  if (st != EM_OK) em_document_close(d);
  else *out = d;
  return st;
}
em_status em_document_open(const char *path, bool map, em_document **out) {
  em_source *s = NULL;
  int error;
  EM_PASS(map ? em_source_map(path, false, &s, &error) : em_source_open(path, &s, &error));
  em_status st = em_document_read(s, out);
  em_source_release(s);
  return st;
}

// ---------------------------------------------------------------- writing
typedef struct text { uint8_t *p; size_t n, room; bool failed; } text;
static void put(text *t, const void *p, size_t n) {
  if (t->n + n > t->room) {
    size_t room = (t->n + n) * 2 + 1024;
    uint8_t *more = t->failed ? NULL : em_block_resize(t->p, room);
    if (more == NULL) {
      t->failed = true;
      return;
    }
    t->p = more, t->room = room;
  }
  memcpy(t->p + t->n, p, n);
  t->n += n;
}
static void put_ops(text *t, const char *ops) { put(t, ops, strlen(ops)); }
static void put_string(text *t, const char *s) {
  uint8_t head[5] = "X";
  em_put_le(head + 1, strlen(s), 4);
  put(t, head, 5);
  put_ops(t, s);
}
static void put_int(text *t, int64_t v) {
  uint8_t op[10] = {0x8a, 8};  // LONG1
  em_put_le(op + 2, (uint64_t)v, 8);
  put(t, op, 10);
}
static void put_ints(text *t, int n, const int64_t *v) {
  put_ops(t, "(");
  for (int i = 0; i < n; i++) put_int(t, v[i]);
  put_ops(t, "t");
}
static void put_tensor(text *t, const em_tensor *x, size_t key) {
  char name[64];
  const char *storage = em_priv_dtypes[x->dtype].storage;
  put_ops(t, "ctorch._utils\n_rebuild_tensor_v2\n((");
  put_string(t, "storage");
  (void)snprintf(name, sizeof name, "ctorch\n%.*sStorage\n", (int)(strlen(storage) - strlen("Tensor")), storage);
  put_ops(t, name);
  (void)snprintf(name, sizeof name, "%zu", key);
  put_string(t, name);
  put_string(t, "cpu");
  put_int(t, (int64_t)(x->storage->nbytes / em_tensor_itemsize(x)));
  put_ops(t, "tQ");
  put_int(t, x->offset);
  put_ints(t, x->ndim, x->sizes);
  put_ints(t, x->ndim, x->strides);
  put_ops(t, "\x89" "ccollections\nOrderedDict\n)RtR");
}
static int by_pointer(const void *a, const void *b) {
  const em_storage *x = *(em_storage *const *)a, *y = *(em_storage *const *)b;
  return (x > y) - (x < y);
}

em_status em_checkpoint_write(em_sink *k, const char *folder, const char *const *names, em_tensor *const *tensors, size_t n) {
  em_zip_writer w;
  text t = {0};
  char name[512];
  size_t count = 0, len = strlen(folder);
  em_storage **all = em_block_alloc((n + 1) * sizeof *all);
  em_status st = EM_OK;
  em_zip_writer_init(&w, k, 64, true);
  if (all == NULL) return EM_NOMEM(n * sizeof *all);
  if (len > 400) EM_FAIL(EM_ERR_VALUE, "a name of %zu bytes is too long", len);
  for (size_t i = 0; i < n; i++) {
    if (tensors[i]->storage == NULL || tensors[i]->device.type != EM_DEVICE_CPU)
      EM_FAIL(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    all[i] = tensors[i]->storage;
  }
  qsort(all, n, sizeof *all, by_pointer);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || all[i] != all[i - 1]) all[count++] = all[i];
  put_ops(&t, "\x80\x02}(");
  for (size_t i = 0; i < n; i++) {
    em_storage **at = bsearch(&tensors[i]->storage, all, count, sizeof *all, by_pointer);
    put_string(&t, names[i]);
    put_tensor(&t, tensors[i], (size_t)(at - all));
  }
  put_ops(&t, "u.");
  if (t.failed) {
    st = EM_NOMEM(t.room * 2);
    goto fail;
  }
  const struct { const char *name; const void *p; size_t n; } fixed[] = {
      {"data.pkl", t.p, t.n}, {".format_version", "1", 1}, {".storage_alignment", "64", 2},
      {"byteorder", __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "big" : "little", __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 3 : 6}};
  for (size_t i = 0; i < 4; i++) {
    int m = snprintf(name, sizeof name, "%s/%s", folder, fixed[i].name);
    EM_TRY(em_zip_write(&w, name, (size_t)m, fixed[i].p, fixed[i].n));
  }
  for (size_t i = 0; i < count; i++) {
    int m = snprintf(name, sizeof name, "%s/data/%zu", folder, i);
    EM_TRY(em_zip_write_storage(&w, name, (size_t)m, all[i]));
  }
  EM_TRY(em_zip_write(&w, name, (size_t)snprintf(name, sizeof name, "%s/version", folder), "3\n", 2));
  EM_TRY(em_zip_write_id(&w, name, len + 1));
  EM_TRY(em_zip_finish(&w));
fail:
  em_zip_writer_clear(&w);
  em_block_free(t.p);
  em_block_free(all);
  return st;
}
em_status em_checkpoint_save(const char *path, const char *const *names, em_tensor *const *tensors, size_t n) {
  em_sink k;
  int error;
  EM_PASS(em_sink_open(path, &k, &error));
  em_status st = em_checkpoint_write(&k, "archive", names, tensors, n), closed = em_sink_close(&k);
  return st != EM_OK ? st : closed;
}
