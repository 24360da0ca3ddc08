// value.c: boxed values: copies that own, and letting go.
#include "value.h"
#include <string.h>
#include "rng.h"

em_status em_tensor_list_new(int64_t n, em_tensor_list *out) {
  out->n = 0;
  out->p = NULL;
  if (n < 0 || (uint64_t)n > SIZE_MAX / sizeof(em_tensor *) / 2) return EM_NOMEM(SIZE_MAX);
  out->n = n;
  out->p = em_alloc_zeroed(sizeof(em_tensor *) * (size_t)(n == 0 ? 1 : n));
  if (out->p == NULL) {
    out->n = 0;
    return EM_NOMEM(sizeof(em_tensor *) * (size_t)n);
  }
  return EM_OK;
}
void em_tensor_list_clear(em_tensor_list *l) {
  if (l == NULL || l->p == NULL) return;
  for (int64_t i = 0; i < l->n; i++) em_tensor_release(l->p[i]);
  em_free(l->p, sizeof(em_tensor *) * (size_t)(l->n == 0 ? 1 : l->n));
  l->p = NULL;
  l->n = 0;
}

static size_t element_size(int tag) {
  switch (tag) {
    case EM_TAG_INTS: return sizeof(int64_t);
    case EM_TAG_DOUBLES: return sizeof(double);
    case EM_TAG_BOOLS: return 1;
    case EM_TAG_SCALARS: return sizeof(em_scalar);
    case EM_TAG_TENSORS: return sizeof(em_tensor *);
    default: return 0;
  }
}
static size_t list_bytes(const em_value *v) { return element_size(v->tag) * (size_t)(v->list.n > 0 ? v->list.n : 1); }

em_status em_value_copy(const em_value *v, em_value *out) {
  if (v == NULL) return em_fail(EM_ERR_TYPE, "em_value_copy(): the value is NULL");
  *out = *v;
  out->owned = 1;
  switch (v->tag) {
    case EM_TAG_TENSOR: em_tensor_retain(v->tensor); break;
    case EM_TAG_GENERATOR: em_generator_retain(v->generator); break;
    case EM_TAG_STRING: {
      char *s = em_alloc(strlen(v->string) + 1);
      if (s == NULL) goto nomem;
      out->string = strcpy(s, v->string);
      break;
    }
    case EM_TAG_INTS: case EM_TAG_DOUBLES: case EM_TAG_BOOLS: case EM_TAG_SCALARS: case EM_TAG_TENSORS: {
      void *p = em_alloc(list_bytes(v));
      if (p == NULL) goto nomem;
      if (v->list.n > 0) memcpy(p, v->list.p, element_size(v->tag) * (size_t)v->list.n);
      out->list.p = p;
      if (v->tag == EM_TAG_TENSORS)
        for (int64_t i = 0; i < v->list.n; i++) em_tensor_retain(v->list.tensors[i]);
      break;
    }
    case EM_TAG_OPAQUE: out->owned = 0; break;  // opaque objects are not copied: the copy borrows
    default: break;
  }
  return EM_OK;
nomem:
  *out = em_value_none();
  return EM_NOMEM(64);
}

void em_value_clear(em_value *v) {
  if (v == NULL) return;
  em_value old = *v;
  *v = em_value_none();
  if (!old.owned) return;
  switch (old.tag) {
    case EM_TAG_TENSOR: em_tensor_release(old.tensor); break;
    case EM_TAG_GENERATOR: em_generator_release(old.generator); break;
    case EM_TAG_STRING: em_free((void *)(uintptr_t)old.string, strlen(old.string) + 1); break;
    case EM_TAG_TENSORS:
      for (int64_t i = 0; i < old.list.n; i++) em_tensor_release(old.list.tensors[i]);
      em_free((void *)(uintptr_t)old.list.p, list_bytes(&old));
      break;
    case EM_TAG_INTS:
    case EM_TAG_DOUBLES:
    case EM_TAG_BOOLS:
    case EM_TAG_SCALARS: em_free((void *)(uintptr_t)old.list.p, list_bytes(&old)); break;
    case EM_TAG_OPAQUE: if (old.opaque.release != NULL) old.opaque.release(old.opaque.ptr); break;
    default: break;
  }
}
