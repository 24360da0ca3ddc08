// scope.c: ember/scope.h. A scope is a growing array of references; the innermost one is the thread's.
#include <ember/scope.h>
#include <stdio.h>
#include <string.h>
#include "../core/tensor.h"
#include "../core/value.h"

struct em_scope {
  em_scope *outer;
  em_tensor **kept;  // owned references
  int64_t n, room;
  em_tensor_list *lists;  // arrays of results of list operators; their tensors stand in `kept`
  int64_t n_lists, lists_room;
  em_failure first;  // EM_OK: none yet
};

static __thread em_scope *innermost;
static __thread int64_t lost;  // scopes that could not be opened, inside the innermost one: until they end, nothing goes there

// What calls that are given NULL say while `lost`.
static const em_failure no_scope = {EM_ERR_OOM, NULL, "em_scope_begin(): out of memory"};

em_scope *em_scope_begin(void) {
  em_scope *s = lost > 0 ? NULL : em_alloc_zeroed(sizeof *s);
  if (s == NULL) {
    lost++;
    em_priv_set_pending(&no_scope);
    (void)EM_NOMEM(sizeof *s);
    return NULL;
  }
  s->outer = innermost;
  innermost = s;
  return s;
}

// The failure in the record becomes the scope's, if it is the first.
static void note(em_scope *s, em_status status) {
  if (s == NULL || lost > 0 || s->first.code != EM_OK) return;
  s->first.code = status;
  s->first.op = em_error_operator();
  snprintf(s->first.message, sizeof s->first.message, "%s", em_error_message());
  em_priv_set_pending(&s->first);
}
// What the innermost of the open scopes that have failed remembers.
static const em_failure *pending(void) {
  for (const em_scope *s = innermost; s != NULL; s = s->outer)
    if (s->first.code != EM_OK) return &s->first;
  return NULL;
}

// Releases what s owns. The tensors go last to first: results before what they were made of.
static void empty(em_scope *s) {
  while (s->n > 0) em_tensor_release(s->kept[--s->n]);
  em_free(s->kept, (size_t)s->room * sizeof *s->kept);
  for (int64_t i = 0; i < s->n_lists; i++) em_free(s->lists[i].p, (size_t)s->lists[i].n * sizeof(em_tensor *));
  em_free(s->lists, (size_t)s->lists_room * sizeof *s->lists);
}

em_status em_scope_end(em_scope *scope) {
  if (scope == NULL) {
    if (lost > 0 && --lost == 0) em_priv_set_pending(pending());
    return EM_NOMEM(sizeof *scope);
  }
  em_scope *s = innermost;
  while (s != NULL && s != scope) s = s->outer;
  if (s == NULL) return em_fail(EM_ERR_RUNTIME, "em_scope_end(): this scope is not open in this thread");
  em_failure first = {.code = EM_OK};
  lost = 0;
  for (bool last = false; !last;) {  // inner scopes that were left open end too, and their failures count
    s = innermost;
    last = s == scope;
    innermost = s->outer;
    if (s->first.code != EM_OK) first = s->first;
    empty(s);
    em_free(s, sizeof *s);
  }
  em_priv_set_pending(pending());
  if (first.code == EM_OK) return EM_OK;
  em_fail(first.code, "%s", first.message);
  return first.op == NULL ? first.code : em_fail_operator(first.code, first.op);
}

// Room for one more entry of `size` bytes in an array.
static em_status grow(void *array, int64_t n, int64_t *room, size_t size) {
  if (n < *room) return EM_OK;
  int64_t more = *room < 16 ? 32 : 2 * *room;
  void *bigger = em_alloc((size_t)more * size), *old;
  if (bigger == NULL) return EM_NOMEM((size_t)more * size);
  memcpy(&old, array, sizeof old);
  if (n > 0) memcpy(bigger, old, (size_t)n * size);
  em_free(old, (size_t)*room * size);
  memcpy(array, &bigger, sizeof bigger);
  *room = more;
  return EM_OK;
}

static em_status open_scope(em_scope **out) {
  *out = innermost;
  if (lost > 0) return EM_NOMEM(sizeof **out);
  if (innermost != NULL) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "no scope is open in this thread: call em_scope_begin() before short forms, or use "
                 "em_call_* and own the results yourself");
}

em_tensor *em_scope_take(em_status status, em_tensor *result) {
  em_scope *s;
  if (status == EM_OK) status = open_scope(&s);
  if (status == EM_OK) status = grow(&s->kept, s->n, &s->room, sizeof *s->kept);
  if (status != EM_OK) {
    note(innermost, status);
    em_tensor_release(result);
    return NULL;
  }
  s->kept[s->n++] = result;
  return result;
}

em_tensors em_scope_take_list(em_status status, em_tensor_list *result) {
  em_scope *s;
  if (result == NULL) return (em_tensors){NULL, 0};
  if (status == EM_OK) status = open_scope(&s);
  if (status == EM_OK) status = grow(&s->lists, s->n_lists, &s->lists_room, sizeof *s->lists);
  for (int64_t i = 0; i < result->n && status == EM_OK; i++) {
    status = grow(&s->kept, s->n, &s->room, sizeof *s->kept);
    if (status == EM_OK) s->kept[s->n++] = em_tensor_retain(result->p[i]);
  }
  if (status != EM_OK) {
    note(innermost, status);
    em_tensor_list_clear(result);
    return (em_tensors){NULL, 0};
  }
  for (int64_t i = 0; i < result->n; i++) em_tensor_release(result->p[i]);  // the scope holds its own reference
  s->lists[s->n_lists++] = *result;
  return (em_tensors){result->p, result->n};
}

em_tensor *em_scope_note(em_status status, em_tensor *written) {
  if (status == EM_OK) return written;
  note(innermost, status);
  return NULL;
}

em_status em_scope_check(em_status status) {
  if (status != EM_OK) note(innermost, status);
  return status;
}

em_tensor *em_keep(em_tensor *t) { return em_tensor_retain(t); }
