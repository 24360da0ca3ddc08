// document.c: pickles as trees of plain values (unpickle.h's builder without Python). Values belong to the document and
// go with it: a pickle may make cycles and chains of any depth, and freeing them must neither leak nor recurse.
#include "checkpoint.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "json.h"
#include "unpickle.h"
#include <string.h>

em_status em_document_value(em_document *d, int kind, em_file_value **out) {
  em_file_value *v = em_block_zeroed(sizeof *v);
  if (v == NULL) return EM_NOMEM(sizeof *v);
  v->kind = (uint8_t)kind;
  v->next = d->all;
  d->all = v;
  *out = v;
  return EM_OK;
}

void em_document_close(em_document *d) {
  if (d == NULL) return;
  for (em_file_value *v = d->all, *next; v != NULL; v = next) {
    next = v->next;
    switch (v->kind) {
      case EM_FILE_TEXT: case EM_FILE_BYTES: case EM_FILE_DEVICE: em_block_free(v->text); break;
      case EM_FILE_LIST: case EM_FILE_TUPLE: case EM_FILE_SET: case EM_FILE_DICT: em_block_free(v->items); break;
      case EM_FILE_TENSOR: em_tensor_release(v->tensor); break;
      case EM_FILE_STORAGE: em_storage_release(v->storage); break;
      default: break;
    }
    em_block_free(v);
  }
  em_block_free(d);
}

em_status em_document_text(em_document *d, int kind, const void *p, size_t n, em_file_value **out) {
  em_file_value *v = NULL;
  EM_PASS(em_document_value(d, kind, &v));
  if ((v->text = em_block_alloc(n + 1)) == NULL) return EM_NOMEM(n);
  if (n > 0) memcpy(v->text, p, n);
  v->text[n] = 0;
  v->count = n;
  *out = v;
  return EM_OK;
}

em_status em_document_append(em_file_value *to, em_file_value *const *items, size_t n) {
  size_t have = to->kind == EM_FILE_DICT ? to->count * 2 : to->count;
  if (have + n > to->room) {
    size_t room = (have + n) * 2;
    em_file_value **more = em_block_resize(to->items, room * sizeof *more);
    if (more == NULL) return EM_NOMEM(room * sizeof *more);
    to->items = more, to->room = room;
  }
  if (n > 0) memcpy(to->items + have, items, n * sizeof *items);
  to->count += to->kind == EM_FILE_DICT ? n / 2 : n;
  return EM_OK;
}

const em_file_value *em_file_find(const em_file_value *dict, const char *key) {
  if (dict == NULL || dict->kind != EM_FILE_DICT) return NULL;
  for (size_t i = dict->count; i-- > 0;)
    if (dict->items[2 * i]->kind == EM_FILE_TEXT && strcmp(dict->items[2 * i]->text, key) == 0) return dict->items[2 * i + 1];
  return NULL;
}

// ---------------------------------------------------------------- the builder
#define D(context) (((em_document_reader *)(context))->document)
#define V(object) ((em_file_value *)(object))
#define OUT(out) ((em_file_value **)(out))

static em_status b_constant(void *context, char which, void **out) {
  EM_PASS(em_document_value(D(context), which == 'N' ? EM_FILE_NONE : EM_FILE_BOOL, OUT(out)));
  V(*out)->integer = which == 'T';
  return EM_OK;
}
static em_status b_integer(void *context, int64_t n, void **out) {
  EM_PASS(em_document_value(D(context), EM_FILE_INT, OUT(out)));
  V(*out)->integer = n;
  return EM_OK;
}
static em_status b_big(void *context, const uint8_t *le, size_t n, void **out) {
  return em_document_text(D(context), EM_FILE_BYTES, le, n, OUT(out));
}
static em_status b_real(void *context, double x, void **out) {
  EM_PASS(em_document_value(D(context), EM_FILE_REAL, OUT(out)));
  V(*out)->real[0] = x;
  return EM_OK;
}
static em_status b_text(void *context, const char *p, size_t n, void **out) {
  size_t at;
  if (!em_utf8_valid(p, n, &at)) return em_fail(EM_ERR_RUNTIME, "%s: a string is not UTF-8", ((em_document_reader *)context)->source->name);
  return em_document_text(D(context), EM_FILE_TEXT, p, n, OUT(out));
}
static em_status b_bytes(void *context, const uint8_t *p, size_t n, bool writable, void **out) {
  return em_document_text(D(context), EM_FILE_BYTES, p, n, OUT(out));
}
static em_status b_empty(void *context, char which, void **out) {
  return em_document_value(D(context), which == '[' ? EM_FILE_LIST : which == '{' ? EM_FILE_DICT : EM_FILE_SET, OUT(out));
}
static em_status b_tuple(void *context, void **items, size_t n, char which, void **out) {
  EM_PASS(em_document_value(D(context), which == '(' ? EM_FILE_TUPLE : EM_FILE_SET, OUT(out)));
  return em_document_append(*out, (em_file_value **)items, n);
}
static em_status expect(em_file_value *v, int kind, const char *what) {
  return v->kind == kind ? EM_OK : em_fail(EM_ERR_RUNTIME, "Can only %s", what);
}
static em_status b_append(void *context, void *list, void **items, size_t n) {
  EM_PASS(expect(list, EM_FILE_LIST, "append to lists"));
  return em_document_append(list, (em_file_value **)items, n);
}
static em_status b_set_items(void *context, void *dict, void **pairs, size_t n) {
  EM_PASS(expect(dict, EM_FILE_DICT, "SETITEMS for dict, collections.OrderedDict, collections.Counter"));
  return em_document_append(dict, (em_file_value **)pairs, 2 * n);
}
static em_status b_add(void *context, void *set, void **items, size_t n) {
  EM_PASS(expect(set, EM_FILE_SET, "add to sets"));
  return em_document_append(set, (em_file_value **)items, n);
}

// ---------------------------------------------------------------- names and what they make
enum { ORDERED_DICT, COUNTER, TENSOR_V2, TENSOR_V3, PARAMETER, PARAMETER_STATE, FROM_TYPE, SIZE, DEVICE, ENCODE, SET, COMPLEX,
       LAYOUT, CLASS /* never called */ };
static const struct { const char *module, *name; int which; } names[] = {
    {"collections", "OrderedDict", ORDERED_DICT},
    {"collections", "Counter", COUNTER},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR_V2},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_V3},
    {"torch._utils", "_rebuild_parameter", PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", PARAMETER_STATE},
    {"torch._tensor", "_rebuild_from_type_v2", FROM_TYPE},
    {"torch", "Size", SIZE},
    {"torch", "device", DEVICE},
    {"_codecs", "encode", ENCODE},
    {"__builtin__", "set", SET},
    {"builtins", "set", SET},
    {"__builtin__", "complex", COMPLEX},
    {"builtins", "complex", COMPLEX},
    {"torch.serialization", "_get_layout", LAYOUT},
    {"torch", "Tensor", CLASS},
    {"torch.nn.parameter", "Parameter", CLASS},
    {"torch.storage", "UntypedStorage", EM_NAME_UNTYPED},
};
static bool same(const char *p, size_t n, const char *text) { return strlen(text) == n && memcmp(p, text, n) == 0; }

static em_status b_global(void *context, const char *module, size_t nm, const char *name, size_t nn, void **out) {
  int which = -1;
  for (size_t i = 0; i < sizeof names / sizeof *names && which < 0; i++)
    if (same(module, nm, names[i].module) && same(name, nn, names[i].name)) which = names[i].which;
  for (int d = 0; which < 0 && d < EM_NUM_DTYPES && (same(module, nm, "torch") || same(module, nm, "torch.cuda")); d++) {
    size_t stem = strlen(em_priv_dtypes[d].storage) - strlen("Tensor");
    if (same(module, nm, "torch") && same(name, nn, em_dtype_name(d))) {
      EM_PASS(em_document_value(D(context), EM_FILE_DTYPE, OUT(out)));
      V(*out)->dtype = d;
      return EM_OK;
    }
    if (nn == stem + 7 && memcmp(name, em_priv_dtypes[d].storage, stem) == 0 && memcmp(name + stem, "Storage", 7) == 0)
      which = EM_NAME_STORAGES + d;
  }
  if (which < 0)
    return em_fail(EM_ERR_RUNTIME, "%s: Unsupported global: GLOBAL %.*s.%.*s was not an allowed global by default",
                   ((em_document_reader *)context)->source->name, (int)(nm < 100 ? nm : 100), module,
                   (int)(nn < 100 ? nn : 100), name);
  EM_PASS(em_document_value(D(context), EM_FILE_NAME, OUT(out)));
  V(*out)->dtype = which;
  return EM_OK;
}
static em_status b_text_of(void *context, void *object, const char **p, size_t *n) {
  EM_PASS(expect(object, EM_FILE_TEXT, "name a global by text"));
  *p = V(object)->text, *n = V(object)->count;
  return EM_OK;
}

static bool ints_of(const em_file_value *v, int64_t *out, size_t *n) {
  if ((v->kind != EM_FILE_TUPLE && v->kind != EM_FILE_LIST) || v->count > EM_MAX_DIMS) return false;
  for (size_t i = 0; i < v->count; i++) {
    if (v->items[i]->kind != EM_FILE_INT) return false;
    out[i] = v->items[i]->integer;
  }
  *n = v->count;
  return true;
}
// (storage, offset, sizes, strides, requires_grad, hooks[, dtype][, metadata])
static em_status make_tensor(em_document *d, int which, const em_file_value *a, em_file_value **out) {
  int64_t sizes[EM_MAX_DIMS], strides[EM_MAX_DIMS];
  size_t n = 0, m = 0, more = which == TENSOR_V3 ? 7 : 6;
  if (a->count < more || a->items[0]->kind != EM_FILE_STORAGE || a->items[1]->kind != EM_FILE_INT ||
      !ints_of(a->items[2], sizes, &n) || !ints_of(a->items[3], strides, &m) || n != m ||
      (which == TENSOR_V3 && a->items[6]->kind != EM_FILE_DTYPE))
    return em_fail(EM_ERR_RUNTIME, "a tensor's description is damaged");
  for (size_t i = more; i < a->count; i++)
    if (a->items[i]->kind == EM_FILE_DICT && (em_file_find(a->items[i], "conj") || em_file_find(a->items[i], "neg")))
      return em_fail(EM_ERR_NOT_IMPLEMENTED, "a conjugated or negated view: resolve it before saving");
  em_storage *s = a->items[0]->storage;
  int dtype = which == TENSOR_V3 ? a->items[6]->dtype : a->items[0]->dtype;
  EM_PASS(em_shape_check_storage(s, (int)n, sizes, strides, a->items[1]->integer, em_dtype_size(dtype)));
  em_tensor *t = NULL;
  EM_PASS(em_tensor_new_window(s, (int)n, sizes, strides, a->items[1]->integer, dtype, &t));
  em_status st = em_document_value(d, EM_FILE_TENSOR, out);
  if (st != EM_OK) {
    em_tensor_release(t);
    return st;
  }
  (*out)->tensor = t;
  (*out)->requires_grad = a->items[4]->kind == EM_FILE_BOOL && a->items[4]->integer;
  return EM_OK;
}
static em_status parameter(em_document *d, const em_file_value *a, em_file_value **out) {
  if (a->count < 2 || a->items[0]->kind != EM_FILE_TENSOR || a->items[1]->kind != EM_FILE_BOOL)
    return em_fail(EM_ERR_RUNTIME, "a parameter's description is damaged");
  EM_PASS(em_document_value(d, EM_FILE_TENSOR, out));
  (*out)->tensor = em_tensor_retain(a->items[0]->tensor);
  (*out)->requires_grad = a->items[1]->integer != 0;
  return EM_OK;
}
static em_status copy_items(em_document *d, int kind, const em_file_value *a, em_file_value **out) {
  EM_PASS(em_document_value(d, kind, out));
  if (a->count == 0) return EM_OK;
  const em_file_value *from = a->items[0];
  if ((from->kind != EM_FILE_LIST && from->kind != EM_FILE_TUPLE) || from->count > d->room)
    return em_fail(EM_ERR_RUNTIME, "a call in the pickle has a wrong argument");
  d->room -= from->count;
  return em_document_append(*out, from->items, from->count);
}
static em_status encoded(em_document *d, const em_file_value *a, em_file_value **out) {
  if (a->count != 2 || a->items[0]->kind != EM_FILE_TEXT || a->items[0]->count > d->room)
    return em_fail(EM_ERR_RUNTIME, "a call in the pickle has a wrong argument");
  d->room -= a->items[0]->count;
  EM_PASS(em_document_text(d, EM_FILE_BYTES, a->items[0]->text, a->items[0]->count, out));
  size_t n = 0;
  for (const uint8_t *p = (const uint8_t *)a->items[0]->text, *end = p + a->items[0]->count; p < end; p++)  // UTF-8 to latin1
    (*out)->text[n++] = (char)(*p < 0x80 || p + 1 == end ? *p : (p++, (p[-1] & 3) << 6 | (*p & 63)));
  (*out)->count = n;
  (*out)->text[n] = 0;
  return EM_OK;
}

static em_status b_call(void *context, void *function, void *args, void **out) {
  em_document *d = D(context);
  em_file_value *f = function, *a = args;
  if (f->kind != EM_FILE_NAME || a->kind != EM_FILE_TUPLE)
    return em_fail(EM_ERR_RUNTIME, "Trying to call reduce for unrecognized function");
  switch (f->dtype) {
    case ORDERED_DICT:
      if (a->count > 0) return em_fail(EM_ERR_RUNTIME, "an OrderedDict with arguments");
      return em_document_value(d, EM_FILE_DICT, OUT(out));
    case COUNTER:
      EM_PASS(em_document_value(d, EM_FILE_DICT, OUT(out)));
      if (a->count == 0) return EM_OK;
      if (a->items[0]->kind != EM_FILE_DICT || a->items[0]->count > d->room) return em_fail(EM_ERR_RUNTIME, "a Counter of no dict");
      d->room -= a->items[0]->count;
      return em_document_append(*out, a->items[0]->items, 2 * a->items[0]->count);
    case TENSOR_V2: case TENSOR_V3: return make_tensor(d, f->dtype, a, OUT(out));
    case PARAMETER: case PARAMETER_STATE: return parameter(d, a, OUT(out));
    case FROM_TYPE:
      if (a->count != 4) return em_fail(EM_ERR_RUNTIME, "a tensor's description is damaged");
      if (a->items[0]->kind == EM_FILE_NAME && a->items[0]->dtype == FROM_TYPE) return em_fail(EM_ERR_RUNTIME, "a type within a type");
      return b_call(context, a->items[0], a->items[2], out);
    case SIZE: return copy_items(d, EM_FILE_TUPLE, a, OUT(out));
    case SET: return copy_items(d, EM_FILE_SET, a, OUT(out));
    case ENCODE: return encoded(d, a, OUT(out));
    case DEVICE: case LAYOUT:
      if (a->count == 0 || a->items[0]->kind != EM_FILE_TEXT || a->items[0]->count > 64)
        return em_fail(EM_ERR_RUNTIME, "a device's description is damaged");
      return em_document_text(d, EM_FILE_DEVICE, a->items[0]->text, a->items[0]->count, OUT(out));
    case COMPLEX:
      if (a->count != 2 || a->items[0]->kind != EM_FILE_REAL || a->items[1]->kind != EM_FILE_REAL)
        return em_fail(EM_ERR_RUNTIME, "a complex number is damaged");
      EM_PASS(em_document_value(d, EM_FILE_COMPLEX, OUT(out)));
      V(*out)->real[0] = a->items[0]->real[0], V(*out)->real[1] = a->items[1]->real[0];
      return EM_OK;
    default: return em_fail(EM_ERR_RUNTIME, "Trying to call reduce for unrecognized function");
  }
}
static em_status b_make(void *context, void *cls, void *args, void *kwargs, void **out) {
  return em_fail(EM_ERR_RUNTIME, "Can only create new object for nn.Parameter");
}
// What an object has besides its contents (an OrderedDict's _metadata) is of no use to weights.
static em_status b_build(void *context, void *object, void *state) {
  return V(object)->kind == EM_FILE_DICT ? EM_OK : em_fail(EM_ERR_RUNTIME, "Can only build Tensor, Parameter, OrderedDict");
}
static em_status b_persistent(void *context, void *id, void **out) {
  em_document_reader *r = context;
  if (r->persistent == NULL) return em_fail(EM_ERR_RUNTIME, "unsupported persistent id encountered");
  return r->persistent(r, id, OUT(out));
}
static void *b_retain(void *context, void *object) { return object; }
static void b_release(void *context, void *object) {}

em_status em_document_unpickle(em_document_reader *r, const uint8_t *p, size_t n, uint64_t first, em_file_value **out, size_t *used) {
  const em_pickle_builder b = {r, b_constant, b_integer, b_big, b_real, b_text, b_bytes, b_empty, b_tuple, b_append,
                               b_set_items, b_add, b_global, b_text_of, b_call, b_make, b_build, b_persistent, b_retain,
                               b_release};
  void *object = NULL;
  EM_PASS(em_unpickle(p, n, r->source->name, first, &b, &object, used));
  *out = object;
  return EM_OK;
}
