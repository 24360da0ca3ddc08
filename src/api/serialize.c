// serialize.c: ember/serialize.h, over the readers and writers of src/serialize.
#include "api.h"
#include <stdio.h>
#include <string.h>
#include "../autograd/node.h"
#include "../serialize/checkpoint.h"
#include "../serialize/safetensors.h"
#include "gen_ops.h"
#include <ember/serialize.h>  // after the library's own headers

struct em_weights {
  em_document *document;  // owns the tensors
  struct entry { char *name; size_t room; em_tensor *tensor; } *entries;
  size_t n, room;
  size_t visits;  // containers and items seen: they may be shared, and a small file then describes a vast tree
};

enum { MAX_DEPTH = 64, MAX_VISITS = 1 << 22 };

void em_weights_free(em_weights *w) {
  if (w == NULL) return;
  for (size_t i = 0; i < w->n; i++) em_free(w->entries[i].name, w->entries[i].room);
  if (w->entries != NULL) em_free(w->entries, w->room * sizeof *w->entries);
  if (w->document != NULL) em_document_close(w->document);
  em_free(w, sizeof *w);
}

static em_status add(em_weights *w, const char *name, em_tensor *tensor) {
  if (w->n == w->room) {
    size_t room = w->room == 0 ? 32 : 2 * w->room;
    struct entry *bigger = em_alloc(room * sizeof *bigger);
    if (bigger == NULL) return EM_NOMEM(room * sizeof *bigger);
    if (w->n > 0) memcpy(bigger, w->entries, w->n * sizeof *bigger);
    if (w->entries != NULL) em_free(w->entries, w->room * sizeof *bigger);
    w->entries = bigger;
    w->room = room;
  }
  size_t size = strlen(name) + 1;
  char *copy = em_alloc(size);
  if (copy == NULL) return EM_NOMEM(size);
  memcpy(copy, name, size);
  w->entries[w->n++] = (struct entry){copy, size, tensor};
  return EM_OK;
}

// Takes the tensors below `v`, whose path is the first `used` bytes of `path`. Depth is bounded, and so is the recursion.
static em_status collect(em_weights *w, const em_file_value *v, char *path, size_t used, size_t room, int depth) {
  if (v->kind == EM_FILE_TENSOR) return add(w, path, v->tensor);
  bool dict = v->kind == EM_FILE_DICT, list = v->kind == EM_FILE_LIST || v->kind == EM_FILE_TUPLE;
  if (!dict && !list) return EM_OK;
  if (depth == MAX_DEPTH) return em_fail(EM_ERR_RUNTIME, "em_weights_load(): containers lie in each other deeper than %d", MAX_DEPTH);
  for (size_t i = 0; i < v->count; i++) {
    if (++w->visits > MAX_VISITS)
      return em_fail(EM_ERR_RUNTIME, "em_weights_load(): the containers of this file hold each other more than %d times", MAX_VISITS);
    const em_file_value *key = dict ? v->items[2 * i] : NULL, *item = dict ? v->items[2 * i + 1] : v->items[i];
    char number[32];
    const char *name = number;
    if (key == NULL) snprintf(number, sizeof number, "%zu", i);
    else if (key->kind == EM_FILE_TEXT) name = key->text;
    else if (key->kind == EM_FILE_INT) snprintf(number, sizeof number, "%lld", (long long)key->integer);
    else continue;
    int more = snprintf(path + used, room - used, "%s%s", used > 0 ? "." : "", name);
    if (more < 0 || (size_t)more >= room - used)
      return em_fail(EM_ERR_RUNTIME, "em_weights_load(): a name is longer than %zu bytes", room - 1);
    EM_PASS(collect(w, item, path, used + (size_t)more, room, depth + 1));
  }
  path[used] = 0;
  return EM_OK;
}

em_status em_weights_load(const char *path, em_weights **out) {
  if (path == NULL) return em_fail(EM_ERR_TYPE, "em_weights_load(): path is NULL");
  em_status st = EM_OK;
  char name[2048] = "";
  em_weights *w = em_alloc_zeroed(sizeof *w);
  if (w == NULL) return EM_NOMEM(sizeof *w);
  EM_TRY(em_document_open(path, false, &w->document));
  EM_TRY(collect(w, w->document->root, name, 0, sizeof name, 0));
  *out = w;
  return EM_OK;
fail:
  em_weights_free(w);
  return st;
}

size_t em_weights_count(const em_weights *w) { return w == NULL ? 0 : w->n; }
const char *em_weights_name(const em_weights *w, size_t i) {
  return w != NULL && i < w->n ? w->entries[i].name : NULL;
}
em_tensor *em_weights_tensor(const em_weights *w, size_t i) {
  return w != NULL && i < w->n ? w->entries[i].tensor : NULL;
}
em_tensor *em_weights_find(const em_weights *w, const char *name) {
  for (size_t i = w == NULL || name == NULL ? 0 : w->n; i-- > 0;)
    if (strcmp(w->entries[i].name, name) == 0) return w->entries[i].tensor;
  return NULL;
}

static bool named(const char *const *names, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

em_status em_weights_copy_to(const em_weights *w, const char *const *names, em_tensor *const *tensors, size_t n) {
  if (w == NULL || (n > 0 && (names == NULL || tensors == NULL)))
    return em_fail(EM_ERR_TYPE, "em_weights_copy_to(): an argument is NULL");
  for (size_t i = 0; i < n; i++) {
    if (names[i] == NULL || tensors[i] == NULL) return em_fail_null_entry("em_weights_copy_to", "entry", (int64_t)i);
    const em_tensor *found = em_weights_find(w, names[i]);
    if (found == NULL) return em_fail(EM_ERR_RUNTIME, "Missing key(s) in state_dict: \"%s\"", names[i]);
    if (!em_tensor_same_sizes(found, tensors[i]))
      return em_fail(EM_ERR_RUNTIME, "size mismatch for %s: the file's tensor has %d dims and %lld elements, the given one "
                     "%d and %lld", names[i], found->ndim, (long long)found->numel, tensors[i]->ndim,
                     (long long)tensors[i]->numel);
  }
  for (size_t i = 0; i < w->n; i++)
    if (!named(names, n, w->entries[i].name))
      return em_fail(EM_ERR_RUNTIME, "Unexpected key(s) in state_dict: \"%s\"", w->entries[i].name);
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_status st = EM_OK;
  for (size_t i = 0; i < n && st == EM_OK; i++) st = em_call_copy_(tensors[i], em_weights_find(w, names[i]), false);
  em_guard_restore(guard);
  return st;
}

static em_status check_names(const char *who, const char *path, const char *const *names, em_tensor *const *tensors,
                             size_t n) {
  if (path == NULL || (n > 0 && (names == NULL || tensors == NULL))) return em_fail(EM_ERR_TYPE, "%s(): an argument is NULL", who);
  for (size_t i = 0; i < n; i++) {
    if (names[i] == NULL || tensors[i] == NULL) return em_fail_null_entry(who, "entry", (int64_t)i);
    if (named(names, i, names[i])) return em_fail(EM_ERR_RUNTIME, "%s(): the name \"%s\" is given twice", who, names[i]);
  }
  return EM_OK;
}

em_status em_save_checkpoint(const char *path, const char *const *names, em_tensor *const *tensors, size_t n) {
  EM_PASS(check_names("em_save_checkpoint", path, names, tensors, n));
  return em_checkpoint_save(path, names, tensors, n);
}

em_status em_save_safetensors(const char *path, const char *const *names, em_tensor *const *tensors, size_t n) {
  EM_PASS(check_names("em_save_safetensors", path, names, tensors, n));
  em_status st = EM_OK;
  em_sink sink;
  int error = 0;
  em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
  em_tensor **dense = em_alloc_zeroed((n + 1) * sizeof *dense);
  if (dense == NULL) {
    em_guard_restore(guard);
    return EM_NOMEM((n + 1) * sizeof *dense);
  }
  for (size_t i = 0; i < n; i++) EM_TRY(em_call_contiguous(tensors[i], EM_FORMAT_CONTIGUOUS, &dense[i]));
  EM_TRY(em_sink_open(path, &sink, &error));
  st = em_safetensors_write(&sink, names, dense, n, NULL, 0, false);
  em_status closed = em_sink_close(&sink);
  if (st == EM_OK) st = closed;
fail:
  for (size_t i = 0; i < n; i++) em_tensor_release(dense[i]);
  em_free(dense, (n + 1) * sizeof *dense);
  em_guard_restore(guard);
  return st;
}
