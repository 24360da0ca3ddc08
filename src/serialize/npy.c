// npy.c: reads and writes .npy files. Objects and records are refused: the first are pickles, the second no tensors.
#include "npy.h"
#include "core/dtype.h"
#include <stdio.h>
#include <string.h>

typedef struct header {
  const char *start, *p, *end;
  const char *wrong;
  int dtype, ndim;
  bool swapped, fortran;
  int64_t sizes[EM_MAX_DIMS];
  char descr[16];
} header;

static bool fail(header *h, const char *what) {
  if (h->wrong == NULL) h->wrong = what;
  return false;
}
static bool take(header *h, char c) {
  while (h->p < h->end && (*h->p == ' ' || *h->p == '\n' || *h->p == '\t')) h->p++;
  if (h->p == h->end || *h->p != c) return false;
  h->p++;
  return true;
}
static bool text(header *h, char *out, size_t room) {
  char quote = take(h, '\'') ? '\'' : take(h, '"') ? '"' : 0;
  if (quote == 0) return fail(h, "expected a string");
  size_t n = 0;
  for (; h->p < h->end && *h->p != quote; h->p++) {
    if (n + 1 == room) return fail(h, "a string is too long");
    out[n++] = *h->p;
  }
  if (h->p == h->end) return fail(h, "a string does not end");
  h->p++;
  out[n] = 0;
  return true;
}
static bool word(header *h, const char *w) {
  size_t n = strlen(w);
  while (h->p < h->end && *h->p == ' ') h->p++;
  if ((size_t)(h->end - h->p) < n || memcmp(h->p, w, n) != 0) return false;
  h->p += n;
  return true;
}

static bool read_descr(header *h) {
  if (take(h, '[')) return fail(h, "records (structured dtypes) are not tensors");
  if (!text(h, h->descr, sizeof h->descr)) return false;
  if (strchr(h->descr, 'O') != NULL) return fail(h, "it holds Python objects, which are never loaded");
  if (h->descr[0] == 0) return fail(h, "an empty dtype");
  for (int d = 0; d < EM_NUM_DTYPES; d++) {
    const char *np = em_priv_dtypes[d].np;
    if (np == NULL || strcmp(np + 1, h->descr + 1) != 0) continue;
    h->dtype = d;
    h->swapped = h->descr[0] == '>' && em_dtype_size(d) > 1;
    if (strchr("<>|=", h->descr[0]) != NULL) return true;
  }
  return fail(h, "Ember does not have this dtype");
}
static bool read_shape(header *h) {
  if (!take(h, '(')) return fail(h, "expected a shape in parentheses");
  for (h->ndim = 0; !take(h, ')'); h->ndim++) {
    if (h->ndim > 0 && !take(h, ',')) return fail(h, "expected a comma in the shape");
    if (take(h, ')')) break;
    if (h->ndim == EM_MAX_DIMS) return fail(h, "more than 64 dimensions");
    int64_t v = 0;
    bool any = false;
    for (; h->p < h->end && *h->p >= '0' && *h->p <= '9'; h->p++, any = true)
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *h->p - '0', &v)) return fail(h, "a size is too large");
    if (!any) return fail(h, "expected a size");
    (void)take(h, 'L');  // Python 2
    h->sizes[h->ndim] = v;
    while (h->p < h->end && *h->p == ' ') h->p++;
  }
  return true;
}
static bool read_header(header *h) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  int seen = 0;
  char key[16];
  if (!take(h, '{')) return fail(h, "expected a dict");
  while (!take(h, '}')) {
    if (!text(h, key, sizeof key)) return false;
    int bit = strcmp(key, "descr") == 0 ? DESCR : strcmp(key, "fortran_order") == 0 ? ORDER : strcmp(key, "shape") == 0 ? SHAPE : 0;
    if (bit == 0 || (seen & bit)) return fail(h, "an unknown or repeated key");
    seen |= bit;
    if (!take(h, ':')) return fail(h, "expected a colon");
    if (bit == DESCR && !read_descr(h)) return false;
    if (bit == SHAPE && !read_shape(h)) return false;
    if (bit == ORDER && !(h->fortran = word(h, "True")) && !word(h, "False")) return fail(h, "expected True or False");
    if (!take(h, ',') && (h->p == h->end || *h->p != '}')) return fail(h, "expected a comma or the end of the dict");
  }
  return seen == (DESCR | ORDER | SHAPE) || fail(h, "descr, fortran_order or shape is missing");
}

static void swap_bytes(uint8_t *p, size_t nbytes, size_t width) {
  for (size_t i = 0; i + width <= nbytes; i += width)
    for (size_t a = 0, b = width - 1; a < b; a++, b--) {
      uint8_t t = p[i + a];
      p[i + a] = p[i + b], p[i + b] = t;
    }
}

static em_status make(em_source *s, const header *h, uint64_t at, bool share, em_tensor **out) {
  uint64_t numel = 1, nbytes = 0, reach = 1;
  int64_t strides[EM_MAX_DIMS];
  bool over = false;
  for (int i = 0; i < h->ndim; i++) {
    int d = h->fortran ? i : h->ndim - 1 - i;
    strides[d] = (int64_t)reach;
    over |= __builtin_mul_overflow(reach, (uint64_t)(h->sizes[d] > 1 ? h->sizes[d] : 1), &reach);
    over |= __builtin_mul_overflow(numel, (uint64_t)h->sizes[d], &numel);
  }
  over |= __builtin_mul_overflow(numel, em_dtype_size(h->dtype), &nbytes) || reach > INT64_MAX;
  if (over || !em_source_has(s, at, nbytes))
    return em_fail(EM_ERR_RUNTIME, "%s is truncated or damaged: its header (.npy) speaks of %llu elements of %zu bytes from byte "
                   "%llu on, but it ends at byte %llu", s->name, (unsigned long long)numel, em_dtype_size(h->dtype),
                   (unsigned long long)at, (unsigned long long)s->size);
  em_storage *bytes = NULL;
  size_t size = em_dtype_size(h->dtype), width = em_dtype_is_complex(h->dtype) ? size / 2 : size;
  bool aligned = s->base != NULL && (uintptr_t)(s->base + at) % size == 0;
  EM_PASS(share && aligned && !h->swapped ? em_source_window(s, at, nbytes, &bytes) : em_source_storage(s, at, nbytes, &bytes));
  if (h->swapped && bytes->data != NULL) swap_bytes(bytes->data, bytes->nbytes, width);
  em_status st = em_tensor_new_window(bytes, h->ndim, h->sizes, strides, 0, h->dtype, out);
  em_storage_release(bytes);
  return st;
}

em_status em_npy_read(em_source *s, bool share, em_tensor **out) {
  uint8_t start[12];
  EM_PASS(s->size < 10 ? EM_OK : em_source_read(s, 0, start, s->size < 12 ? 10 : 12));
  if (s->size < 10 || memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3) {
    const char *guess = em_source_guess(s);
    return em_fail(EM_ERR_VALUE, "%s is not a .npy file: the magic string is missing at byte 0%s%s", s->name, guess ? "; " : "",
                   guess ? guess : "");
  }
  uint64_t at = start[6] == 1 ? 10 : 12, n = at == 12 && s->size < 12 ? UINT32_MAX : em_le(start + 8, start[6] == 1 ? 2 : 4);
  if (n > 1 << 20 || !em_source_has(s, at, n))
    return em_fail(EM_ERR_VALUE, "%s is truncated or damaged: its header (.npy) would end at byte %llu", s->name,
                   (unsigned long long)(at + n));
  char *p = em_block_alloc(n + 1);
  if (p == NULL) return EM_NOMEM(n);
  em_status st = em_source_read(s, at, p, n);
  header h = {p, p, p + n, NULL};
  if (st == EM_OK && !read_header(&h))
    st = em_fail(EM_ERR_VALUE, "%s: the header (.npy) cannot be read at byte %llu: %s%s%s", s->name,
                 (unsigned long long)(at + (uint64_t)(h.p - p)), h.wrong, h.descr[0] ? ": " : "", h.descr);
  em_block_free(p);
  return st == EM_OK ? make(s, &h, at + n, share, out) : st;
}

em_status em_npy_write(em_sink *k, const em_tensor *t) {
  char text[EM_MAX_DIMS * 24 + 256];
  const char *np = em_priv_dtypes[t->dtype].np;
  if (np == NULL) return em_fail(EM_ERR_TYPE, "Got unsupported ScalarType %s: numpy has no such dtype", em_dtype_scalar_name(t->dtype));
  if (!em_tensor_is_contiguous(t)) return em_fail(EM_ERR_VALUE, "save_npy: the tensor must be contiguous");
  if (t->numel > 0 && (t->storage == NULL || t->storage->data == NULL))
    return em_fail(EM_ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
  size_t n = 10;
  n += (size_t)snprintf(text + n, sizeof text - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", np);
  for (int i = 0; i < t->ndim; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, i + 1 < t->ndim ? "%lld, " : t->ndim == 1 ? "%lld," : "%lld", (long long)t->sizes[i]);
  n += (size_t)snprintf(text + n, sizeof text - n, "), }");
  while ((n + 1) % 64 != 0) text[n++] = ' ';
  text[n++] = '\n';
  memcpy(text, "\x93NUMPY\1", 8);  // and a zero: version 1.0
  em_put_le((uint8_t *)text + 8, n - 10, 2);
  EM_PASS(em_sink_write(k, text, n));
  return em_sink_write(k, em_tensor_data(t), (size_t)t->numel * em_tensor_itemsize(t));
}
