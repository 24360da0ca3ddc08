// gradcheck.c: em_gradcheck: the gradients that backward gives against central differences.
#include "api.h"
#include <math.h>
#include <stdio.h>
#include "../autograd/engine.h"
#include "gen_ops.h"
#include <ember/autograd.h>  // after the library's own headers, whose inline forms win
#include <ember/scope.h>
#include <ember/tensor.h>

typedef struct check {
  em_function fn;
  void *context;
  em_tensor *const *inputs;
  int64_t n;
  double eps, atol, rtol;
  em_tensor *result;   // recorded, owned
  em_tensor **wanted;  // borrowed: the inputs that require grad
  int64_t *place;      // their positions among the inputs
  int64_t count;
  int64_t outs, elements;  // elements of the result, and of all wanted inputs
  double *analytical;      // [outs][elements]
  double *low, *high;      // [outs]: the result one step below and above
} check;

static em_status real(const char *what, int64_t i, const em_tensor *t) {
  if (t->dtype == EM_F64 && t->device.type == EM_DEVICE_CPU) return EM_OK;
  return em_fail(EM_ERR_VALUE, "em_gradcheck(): %s %lld is %s; differences need float64 on the CPU", what, (long long)i,
                 em_dtype_name(t->dtype));
}

// fn on the inputs as they are now, inside a scope of its own.
static em_status call(const check *c, em_tensor **out) {
  *out = NULL;
  em_scope *scope = em_scope_begin();
  em_status st = scope == NULL ? EM_NOMEM(1) : c->fn(c->context, c->inputs, c->n, out);
  if (scope != NULL) {
    em_status ended = em_scope_end(scope);
    if (ended != EM_OK) st = ended;  // the first failure of an expression says more than what it led to
  }
  if (st == EM_OK && *out == NULL) st = em_fail(EM_ERR_TYPE, "em_gradcheck(): the function gave no result");
  if (st == EM_OK) st = real("result", 0, *out);
  if (st != EM_OK) EM_CLEAR_TENSOR(out);
  return st;
}

static em_status choose(check *c) {
  for (int64_t i = 0; i < c->n; i++) {
    em_tensor *t = c->inputs[i];
    if (t == NULL) return em_fail_null_entry("em_gradcheck", "input", i);
    if (!em_tensor_requires_grad(t)) continue;
    EM_PASS(real("input", i, t));
    for (int d = 0; d < t->ndim; d++)
      if (t->strides[d] == 0 && t->sizes[d] > 1)
        return em_fail(EM_ERR_VALUE, "em_gradcheck(): input %lld is expanded: its elements share memory", (long long)i);
    c->wanted[c->count] = t;
    c->place[c->count++] = i;
    c->elements += t->numel;
  }
  return c->count > 0 ? EM_OK : em_fail(EM_ERR_VALUE, "em_gradcheck(): no input requires grad");
}

// One backward for each element of the result.
static em_status by_backward(check *c) {
  em_status st = EM_OK;
  em_tensor *one = NULL, **grads = em_alloc_zeroed((size_t)c->count * sizeof *grads);
  if (grads == NULL) return EM_NOMEM((size_t)c->count * sizeof *grads);
  for (int64_t j = 0; j < c->outs; j++) {
    EM_TRY(em_tensor_new(c->result->ndim, c->result->sizes, EM_F64, c->result->device, &one));
    double *p = em_tensor_data(one), *row = c->analytical + j * c->elements;
    for (int64_t k = 0; k < c->outs; k++) p[k] = k == j;
    EM_TRY(em_grad(&c->result, &one, 1, c->wanted, c->count, EM_KEEP_GRAPH | EM_ALLOW_UNUSED, grads));
    for (int64_t i = 0; i < c->count; i++) {
      const int64_t numel = c->wanted[i]->numel;
      if (grads[i] != NULL) EM_TRY(em_tensor_read(grads[i], EM_F64, row, (size_t)numel * sizeof *row));
      row += numel;  // without a gradient: the zeros that are there
      EM_CLEAR_TENSOR(&grads[i]);
    }
    EM_CLEAR_TENSOR(&one);
  }
fail:
  em_tensor_release(one);
  for (int64_t i = 0; i < c->count; i++) em_tensor_release(grads[i]);
  em_free(grads, (size_t)c->count * sizeof *grads);
  return st;
}

static em_status values(const check *c, double *to) {
  em_tensor *out;
  EM_PASS(call(c, &out));
  em_status st = out->numel == c->outs ? em_tensor_read(out, EM_F64, to, (size_t)c->outs * sizeof *to)
                                       : em_fail(EM_ERR_RUNTIME, "em_gradcheck(): the result's shape depends on the inputs' values");
  em_tensor_release(out);
  return st;
}

// "[1, 2]": the place of element k in t.
static const char *place_text(const em_tensor *t, int64_t k, char *text, size_t size) {
  int64_t index[EM_MAX_DIMS];
  for (int d = t->ndim; d-- > 0; k /= t->sizes[d]) index[d] = k % t->sizes[d];
  size_t used = (size_t)snprintf(text, size, "[");
  for (int d = 0; d < t->ndim && used < size; d++)
    used += (size_t)snprintf(text + used, size - used, "%s%lld", d > 0 ? ", " : "", (long long)index[d]);
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

static double *element(const em_tensor *t, int64_t k) {
  double *p = em_tensor_data(t);
  for (int d = t->ndim; d-- > 0; k /= t->sizes[d]) p += k % t->sizes[d] * t->strides[d];
  return p;
}

// The differences of one element against what backward gave for it.
static em_status compare(const check *c, int64_t i, int64_t k, const double *analytical) {
  const em_tensor *t = c->wanted[i];
  double *p = element(t, k), origin = *p;
  *p = origin - c->eps;
  em_status st = values(c, c->low);
  *p = origin + c->eps;
  if (st == EM_OK) st = values(c, c->high);
  *p = origin;
  for (int64_t j = 0; j < c->outs && st == EM_OK; j++) {
    double a = analytical[j * c->elements], b = (c->high[j] - c->low[j]) / (2 * c->eps);
    if (fabs(a - b) <= c->atol + c->rtol * fabs(b)) continue;
    char from[256], to[256];
    st = em_fail(EM_ERR_RUNTIME, "em_gradcheck(): input %lld, element %s (result element %s): backward gives %.10g, differences "
                 "give %.10g", (long long)c->place[i], place_text(t, k, from, sizeof from),
                 place_text(c->result, j, to, sizeof to), a, b);
  }
  return st;
}

static em_status by_differences(const check *c) {
  const double *analytical = c->analytical;
  for (int64_t i = 0; i < c->count; i++)
    for (int64_t k = 0; k < c->wanted[i]->numel; k++) EM_PASS(compare(c, i, k, analytical++));
  return EM_OK;
}

em_status em_gradcheck(em_function fn, void *context, em_tensor *const *inputs, int64_t n, double eps, double atol,
                       double rtol) {
  if (fn == NULL || inputs == NULL) return em_fail(EM_ERR_TYPE, "em_gradcheck(): the %s NULL", fn == NULL ? "function is" : "inputs are");
  if (n <= 0 || !(eps > 0) || !(atol >= 0) || !(rtol >= 0))
    return em_fail(EM_ERR_VALUE, "em_gradcheck(): needs at least one input, a positive eps, and tolerances that are not negative");
  check c = {.fn = fn, .context = context, .inputs = inputs, .n = n, .eps = eps, .atol = atol, .rtol = rtol};
  em_status st = EM_OK;
  size_t table = 0;
  const size_t lists = (size_t)n * (sizeof *c.wanted + sizeof *c.place);
  bool was = em_grad_set_enabled(true);
  c.wanted = em_alloc_zeroed(lists);
  if (c.wanted == NULL) EM_FAIL(EM_ERR_OOM, "em_gradcheck(): out of memory for %zu bytes", lists);
  c.place = (int64_t *)(void *)(c.wanted + n);
  EM_TRY(choose(&c));
  EM_TRY(call(&c, &c.result));
  if (!em_tensor_requires_grad(c.result)) EM_FAIL(EM_ERR_VALUE, "em_gradcheck(): the result does not depend on the inputs");
  c.outs = c.result->numel;
  int64_t doubles;
  if (__builtin_mul_overflow(c.outs, c.elements + 2, &doubles) || doubles > INT64_MAX / 8)
    EM_FAIL(EM_ERR_OVERFLOW, "em_gradcheck(): inputs and result have too many elements");
  table = (size_t)(doubles + 1) * sizeof(double);
  c.analytical = em_alloc_zeroed(table);
  if (c.analytical == NULL) EM_FAIL(EM_ERR_OOM, "em_gradcheck(): out of memory for %zu bytes", table);
  c.low = c.analytical + c.outs * c.elements;
  c.high = c.low + c.outs;
  EM_TRY(by_backward(&c));
  EM_TRY(by_differences(&c));
fail:
  em_grad_set_enabled(was);
  em_tensor_release(c.result);
  if (c.analytical != NULL) em_free(c.analytical, table);
  if (c.wanted != NULL) em_free(c.wanted, lists);
  return st;
}
