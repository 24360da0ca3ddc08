// safetensors.c: reading and writing the format. The header is hostile until every number in it was compared with the
// file: lengths, UTF-8, duplicate names, shapes that overflow, offsets that overlap or leave holes.
#include "safetensors.h"
#include "core/dtype.h"
#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS "Error while deserializing: "
#define MAX_HEADER 100000000u
typedef unsigned long long ull;

// The format's dtypes in its own order: larger element types come later, files have them first.
static const struct known { const char *name; int dtype, bits; } dtypes[] = {
    {"BOOL", EM_BOOL, 8}, {"F4", EM_DTYPE_NONE, 4}, {"F6_E2M3", EM_DTYPE_NONE, 6}, {"F6_E3M2", EM_DTYPE_NONE, 6},
    {"U8", EM_U8, 8}, {"I8", EM_I8, 8}, {"F8_E5M2", EM_DTYPE_NONE, 8}, {"F8_E4M3", EM_DTYPE_NONE, 8},
    {"F8_E8M0", EM_DTYPE_NONE, 8}, {"F8_E4M3FNUZ", EM_DTYPE_NONE, 8}, {"F8_E5M2FNUZ", EM_DTYPE_NONE, 8},
    {"I16", EM_I16, 16}, {"U16", EM_DTYPE_NONE, 16}, {"F16", EM_F16, 16}, {"BF16", EM_BF16, 16}, {"I32", EM_I32, 32},
    {"U32", EM_DTYPE_NONE, 32}, {"F32", EM_F32, 32}, {"C64", EM_C64, 64}, {"F64", EM_F64, 64}, {"I64", EM_I64, 64},
    {"U64", EM_DTYPE_NONE, 64}};
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

static int find_dtype(int dtype) {
  for (int i = 0; i < NDTYPES; i++)
    if (dtypes[i].dtype == dtype && dtype != EM_DTYPE_NONE) return i;
  return -1;
}
const char *em_safetensors_dtype(int dtype) {
  int i = find_dtype(dtype);
  return i < 0 ? NULL : dtypes[i].name;
}

// ---------------------------------------------------------------- reading
static void entry_clear(em_safetensors_entry *e) {
  em_block_free(e->name);
  em_block_free(e->sizes);
}
void em_safetensors_close(em_safetensors *f) {
  if (f == NULL) return;
  for (size_t i = 0; i < f->count; i++) entry_clear(f->entries + i);
  for (size_t i = 0; i < f->metadata_count; i++) em_block_free(f->metadata[i].key), em_block_free(f->metadata[i].value);
  em_block_free(f->entries);
  em_block_free(f->metadata);
  em_source_release(f->source);
  em_block_free(f);
}

static bool grow(void *array, size_t count, size_t size) {  // room for one more, doubling
  if (count & (count - 1) && count != 0) return true;
  void *p = em_block_resize(*(void **)array, (count == 0 ? 1 : count * 2) * size);
  if (p == NULL) return false;
  *(void **)array = p;
  return true;
}

static bool read_metadata(em_json *j, em_safetensors *f) {
  if (f->has_metadata) return em_json_fail(j, "duplicate field `__metadata__`");
  f->has_metadata = true;
  if (!em_json_expect(j, '{')) return false;
  if (em_json_take(j, '}')) return true;
  do {
    if (!grow(&f->metadata, f->metadata_count, sizeof *f->metadata)) return em_json_fail(j, "out of memory");
    em_safetensors_pair *pair = &f->metadata[f->metadata_count];
    if ((pair->key = em_json_string(j)) == NULL) return false;
    if (!em_json_expect(j, ':') || (pair->value = em_json_string(j)) == NULL) {
      em_block_free(pair->key);
      return false;
    }
    f->metadata_count++;
  } while (em_json_take(j, ','));
  return em_json_expect(j, '}');
}

static bool read_dtype(em_json *j, em_safetensors_entry *e) {
  char *text = em_json_string(j);
  if (text == NULL) return false;
  for (int i = 0; i < NDTYPES; i++)
    if (strcmp(text, dtypes[i].name) == 0) e->dtype = dtypes[i].dtype, e->dtype_name = dtypes[i].name;
  em_block_free(text);
  return e->dtype_name != NULL || em_json_fail(j, "unknown variant of dtype");
}
static bool read_shape(em_json *j, em_safetensors_entry *e) {
  uint64_t sizes[EM_MAX_DIMS];
  if (!em_json_expect(j, '[')) return false;
  while (!em_json_take(j, ']')) {
    if (e->ndim > 0 && !em_json_expect(j, ',')) return false;
    if (e->ndim == EM_MAX_DIMS) return em_json_fail(j, "a shape of more than 64 dimensions");
    if (!em_json_unsigned(j, &sizes[e->ndim])) return false;
    e->ndim++;
  }
  if ((e->sizes = em_block_alloc((size_t)(e->ndim + 1) * sizeof *e->sizes)) == NULL) return em_json_fail(j, "out of memory");
  for (int i = 0; i < e->ndim; i++) {
    if (sizes[i] > INT64_MAX) return em_json_fail(j, "overflow computing buffer size from shape and/or element type");
    e->sizes[i] = (int64_t)sizes[i];
  }
  return true;
}
static bool read_offsets(em_json *j, em_safetensors_entry *e) {
  return em_json_expect(j, '[') && em_json_unsigned(j, &e->begin) && em_json_expect(j, ',') &&
         em_json_unsigned(j, &e->end) && em_json_expect(j, ']');
}
static bool read_entry(em_json *j, em_safetensors_entry *e) {
  enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
  int seen = 0;
  if (!em_json_expect(j, '{')) return false;
  if (!em_json_take(j, '}')) {
    do {
      char *key = em_json_string(j);
      if (key == NULL) return false;
      int bit = strcmp(key, "dtype") == 0 ? DTYPE : strcmp(key, "shape") == 0 ? SHAPE : 0;
      if (strcmp(key, "data_offsets") == 0) bit = OFFSETS;
      em_block_free(key);
      if (seen & bit) return em_json_fail(j, "duplicate field");
      seen |= bit;
      if (!em_json_expect(j, ':')) return false;
      bool good = bit == DTYPE     ? read_dtype(j, e)
                  : bit == SHAPE   ? read_shape(j, e)
                  : bit == OFFSETS ? read_offsets(j, e)
                                   : em_json_skip(j);
      if (!good) return false;
    } while (em_json_take(j, ','));
    if (!em_json_expect(j, '}')) return false;
  }
  return seen == (DTYPE | SHAPE | OFFSETS) ||
         em_json_fail(j, !(seen & DTYPE)   ? "missing field `dtype`"
                         : !(seen & SHAPE) ? "missing field `shape`"
                                           : "missing field `data_offsets`");
}

static bool read_header(em_json *j, em_safetensors *f) {
  if (!em_json_expect(j, '{')) return false;
  if (!em_json_take(j, '}')) {
    do {
      char *name = em_json_string(j);
      if (name == NULL) return false;
      if (!em_json_expect(j, ':')) {
        em_block_free(name);
        return false;
      }
      if (strcmp(name, "__metadata__") == 0) {
        em_block_free(name);
        if (!read_metadata(j, f)) return false;
        continue;
      }
      if (!grow(&f->entries, f->count, sizeof *f->entries)) {
        em_block_free(name);
        return em_json_fail(j, "out of memory");
      }
      em_safetensors_entry *e = &f->entries[f->count++];
      *e = (em_safetensors_entry){.name = name, .dtype = EM_DTYPE_NONE};
      if (!read_entry(j, e)) return false;
    } while (em_json_take(j, ','));
    if (!em_json_expect(j, '}')) return false;
  }
  return !em_json_space(j) || em_json_fail(j, "trailing characters");
}

static int order_by_place(const void *a, const void *b) {
  const em_safetensors_entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}
static int order_by_name(const void *a, const void *b) {
  return strcmp((*(const em_safetensors_entry *const *)a)->name, (*(const em_safetensors_entry *const *)b)->name);
}

static em_status check_names(em_safetensors *f) {
  const em_safetensors_entry **sorted = em_block_alloc((f->count + 1) * sizeof *sorted);
  if (sorted == NULL) return EM_NOMEM(f->count * sizeof *sorted);
  for (size_t i = 0; i < f->count; i++) sorted[i] = f->entries + i;
  qsort(sorted, f->count, sizeof *sorted, order_by_name);
  em_status st = EM_OK;
  for (size_t i = 1; i < f->count && st == EM_OK; i++)
    if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
      st = em_fail(EM_ERR_RUNTIME, WORDS "the header of %s has two tensors named `%.200s`", f->source->name, sorted[i]->name);
  em_block_free(sorted);
  return st;
}

static em_status check_places(em_safetensors *f) {
  const char *file = f->source->name;
  uint64_t room = f->source->size - f->data, at = 0;
  if (f->count > 0) qsort(f->entries, f->count, sizeof *f->entries, order_by_place);
  for (size_t i = 0; i < f->count; i++) {
    em_safetensors_entry *e = f->entries + i;
    if (e->begin != at || e->end < e->begin)
      return em_fail(EM_ERR_RUNTIME, WORDS "invalid offset for tensor `%.200s`: it has bytes %llu to %llu of the data, but byte "
                     "%llu is next (%s): tensors may neither overlap nor leave holes", e->name, (ull)e->begin, (ull)e->end, (ull)at, file);
    uint64_t bits = 0, numel = 1;
    for (int k = 0; k < NDTYPES; k++)
      if (dtypes[k].name == e->dtype_name) bits = (uint64_t)dtypes[k].bits;
    bool over = false;
    for (int k = 0; k < e->ndim; k++) over |= __builtin_mul_overflow(numel, (uint64_t)e->sizes[k], &numel);
    over |= __builtin_mul_overflow(numel, bits, &bits) || numel > INT64_MAX;
    if (over)
      return em_fail(EM_ERR_RUNTIME, WORDS "overflow computing buffer size from shape and/or element type of tensor `%.200s` (%s)",
                     e->name, file);
    if (bits % 8 != 0 || bits / 8 != e->end - e->begin)
      return em_fail(EM_ERR_RUNTIME, WORDS "invalid shape, data type, or offset for tensor `%.200s`: its shape needs %llu bytes, its "
                     "offsets give it %llu (%s)", e->name, (ull)((bits + 7) / 8), (ull)(e->end - e->begin), file);
    at = e->end;
  }
  if (at != room)
    return em_fail(EM_ERR_RUNTIME, WORDS "incomplete metadata, file not fully covered: the header speaks of %llu bytes of data, "
                   "%s has %llu%s", (ull)at, file, (ull)room, at > room ? "; was the download interrupted?" : "");
  return EM_OK;
}

em_status em_safetensors_open(em_source *s, em_safetensors **out) {
  uint8_t length[8];
  const char *guess;
  if (s->size < 8) {
    guess = em_source_guess(s);
    return em_fail(EM_ERR_RUNTIME, WORDS "header too small: %s has %llu bytes%s%s", s->name, (ull)s->size, guess ? ": " : "",
                   guess ? guess : "");
  }
  EM_PASS(em_source_read(s, 0, length, 8));
  uint64_t n = em_le(length, 8);
  guess = em_source_guess(s);
  if (n > MAX_HEADER)
    return em_fail(EM_ERR_RUNTIME, WORDS "header too large: the first 8 bytes of %s give it %llu bytes; is it a safetensors "
                   "file?%s%s", s->name, (ull)n, guess ? " Rather, " : "", guess ? guess : "");
  if (n > s->size - 8)
    return em_fail(EM_ERR_RUNTIME, WORDS "invalid header length: the header ends at byte %llu, %s at byte %llu; was the download "
                   "interrupted?", (ull)(n + 8), s->name, (ull)s->size);
  char *text = em_block_alloc(n + 1);
  em_safetensors *f = em_block_zeroed(sizeof *f);
  em_status st = EM_OK;
  size_t bad = 0;
  if (text == NULL || f == NULL) {
    st = EM_NOMEM(n);
    goto fail;
  }
  f->source = em_source_retain(s);
  f->data = n + 8;
  EM_TRY(em_source_read(s, 8, text, n));
  if (!em_utf8_valid(text, n, &bad)) EM_FAIL(EM_ERR_RUNTIME, WORDS "invalid UTF-8 in header of %s, at byte %zu", s->name, bad + 8);
  em_json j = {text, text, text + n, NULL};
  bool read = read_header(&j, f);
  if (!read && strcmp(j.wrong, "out of memory") == 0) {
    st = EM_NOMEM(n);
    goto fail;
  }
  if (!read)
    EM_FAIL(EM_ERR_RUNTIME, WORDS "invalid JSON in header: %s, at byte %zu of %s", j.wrong, (size_t)(j.p - text) + 8, s->name);
  EM_TRY(check_names(f));
  EM_TRY(check_places(f));
  em_block_free(text);
  *out = f;
  return EM_OK;
fail:
  em_block_free(text);
  em_safetensors_close(f);
  return st;
}

em_status em_safetensors_tensor(em_safetensors *f, const em_safetensors_entry *e, bool share, em_tensor **out) {
  if (e->dtype == EM_DTYPE_NONE)
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "tensor `%.200s` of %s has dtype %s, which Ember does not have", e->name,
                   f->source->name, e->dtype_name);
  em_storage *s = NULL;
  int64_t strides[EM_MAX_DIMS], step = 1;
  for (int i = e->ndim - 1; i >= 0; i--) {
    strides[i] = step;
    step *= e->sizes[i] > 1 ? e->sizes[i] : 1;  // cannot overflow: see check_places, or a size is 0
    if (step <= 0) step = 1;
  }
  // Bytes in place must be aligned for their element type; headers of other writers need not make them so.
  bool aligned = f->source->base != NULL && ((uintptr_t)(f->source->base + f->data + e->begin)) % em_dtype_size(e->dtype) == 0;
  EM_PASS(share && aligned ? em_source_window(f->source, f->data + e->begin, e->end - e->begin, &s)
                           : em_source_storage(f->source, f->data + e->begin, e->end - e->begin, &s));
  em_status st = em_tensor_new_window(s, e->ndim, e->sizes, strides, 0, e->dtype, out);
  em_storage_release(s);
  return st;
}

// ---------------------------------------------------------------- writing
typedef struct item { const char *name; em_tensor *t; int rank; uint64_t nbytes; } item;
static int order_to_write(const void *a, const void *b) {
  const item *x = a, *y = b;
  return x->rank != y->rank ? y->rank - x->rank : strcmp(x->name, y->name);
}

typedef struct text { char *p; size_t n, room; bool failed; } text;
static void put(text *t, const char *p, size_t n) {
  if (t->n + n > t->room) {
    size_t room = (t->n + n) * 2 + 256;
    char *more = t->failed ? NULL : em_block_resize(t->p, room);
    if (more == NULL) {
      t->failed = true;
      return;
    }
    t->p = more, t->room = room;
  }
  memcpy(t->p + t->n, p, n);
  t->n += n;
}
static void put_text(text *t, const char *p) { put(t, p, strlen(p)); }
static void put_quoted(text *t, const char *p) {
  size_t n = em_json_quote(p, NULL, 0);
  char *q = em_block_alloc(n);
  if (q == NULL) {
    t->failed = true;
    return;
  }
  put(t, q, em_json_quote(p, q, n));
  em_block_free(q);
}
static void put_item(text *t, const item *it, uint64_t at) {
  char number[64];
  put_quoted(t, it->name);
  put_text(t, ":{\"dtype\":\"");
  put_text(t, dtypes[it->rank].name);
  put_text(t, "\",\"shape\":[");
  for (int i = 0; i < it->t->ndim; i++)
    put(t, number, (size_t)snprintf(number, sizeof number, "%s%lld", i > 0 ? "," : "", (long long)it->t->sizes[i]));
  put(t, number, (size_t)snprintf(number, sizeof number, "],\"data_offsets\":[%llu,%llu]}", (ull)at, (ull)(at + it->nbytes)));
}

static em_status gather(const char *const *names, em_tensor *const *tensors, size_t n, item *items) {
  for (size_t i = 0; i < n; i++) {
    em_tensor *t = tensors[i];
    int rank = find_dtype(t->dtype);
    if (rank < 0) return em_fail(EM_ERR_VALUE, "safetensors has no dtype for `%.200s` (%s)", names[i], em_dtype_name(t->dtype));
    if (t->numel > 0 && (t->storage == NULL || t->storage->data == NULL))
      return em_fail(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    if (!em_tensor_is_contiguous(t))
      return em_fail(EM_ERR_VALUE, "You are trying to save a non contiguous tensor: `%.200s` which is not allowed. It either "
                     "means you are trying to save tensors which are reference of each other in which case it's recommended to "
                     "save only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to "
                     "pack it before saving.", names[i]);
    items[i] = (item){names[i], t, rank, (uint64_t)t->numel * em_tensor_itemsize(t)};
  }
  qsort(items, n, sizeof *items, order_to_write);
  return EM_OK;
}

em_status em_safetensors_write(em_sink *k, const char *const *names, em_tensor *const *tensors, size_t n,
                               const em_safetensors_pair *metadata, size_t npairs, bool has_metadata) {
  item *items = em_block_alloc((n + 1) * sizeof *items);
  text t = {0};
  em_status st = EM_OK;
  if (items == NULL) return EM_NOMEM(n * sizeof *items);
  EM_TRY(gather(names, tensors, n, items));
  put_text(&t, "{");
  if (has_metadata) {
    put_text(&t, "\"__metadata__\":{");
    for (size_t i = 0; i < npairs; i++) {
      if (i > 0) put_text(&t, ",");
      put_quoted(&t, metadata[i].key);
      put_text(&t, ":");
      put_quoted(&t, metadata[i].value);
    }
    put_text(&t, n > 0 ? "}," : "}");
  }
  uint64_t at = 0;
  for (size_t i = 0; i < n; at += items[i++].nbytes) {
    if (i > 0) put_text(&t, ",");
    put_item(&t, items + i, at);
  }
  put_text(&t, "}");
  while (t.n % 8 != 0 && !t.failed) put_text(&t, " ");
  if (t.failed) {
    st = EM_NOMEM(t.room * 2);
    goto fail;
  }
  if (t.n > MAX_HEADER) EM_FAIL(EM_ERR_VALUE, "the header would have %zu bytes, at most %u are allowed", t.n, MAX_HEADER);
  uint8_t length[8];
  em_put_le(length, t.n, 8);
  EM_TRY(em_sink_write(k, length, 8));
  EM_TRY(em_sink_write(k, t.p, t.n));
  for (size_t i = 0; i < n; i++) EM_TRY(em_sink_write(k, em_tensor_data(items[i].t), items[i].nbytes));
fail:
  em_block_free(t.p);
  em_block_free(items);
  return st;
}
