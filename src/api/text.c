// text.c: em_tensor_text: a tensor as Python prints it (python/ember/_tensor_str.py has the rules; here with PyTorch's
// default options: 4 digits, 80 columns, summaries with 3 elements at each edge from more than 1000 on).
#include "api.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "../autograd/node.h"
#include "../core/iterator.h"
#include "gen_ops.h"
#include <ember/autograd.h>  // after the library's own headers, whose inline forms win
#include <ember/tensor.h>

enum { EDGE = 3, COLUMNS = 80, THRESHOLD = 1000 };
typedef enum style { WORD, WHOLE, FIXED, SCIENTIFIC, DOTTED } style;

typedef struct printer {
  char *out;
  size_t room, used;  // used counts on when the room is full
  size_t line;        // where the last line begins
  const em_tensor *t;
  bool summary, complex;
  style style[2];     // of real and imaginary parts
  int width[2];
  size_t slack;       // what a suffix must leave of its line
} printer;

__attribute__((format(printf, 2, 3))) static void put(printer *p, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (int i = 0; i < n; i++, p->used++) {
    if (p->used + 1 < p->room) p->out[p->used] = text[i];
    if (text[i] == '\n') p->line = p->used + 1;
  }
}

// ---- elements ----
static em_c128 number(const printer *p, int64_t offset) {
  em_c128 v = {0, 0};
  const char *at = (const char *)em_tensor_data(p->t) + offset * (int64_t)em_tensor_itemsize(p->t);
  em_cast_load(&v, p->complex ? EM_C128 : EM_F64, at, p->t->dtype, 0, 1);
  return v;
}
static int text_of(const printer *p, int64_t offset, int part, style s, char *text, size_t size) {
  if (s == WORD) {
    int64_t i;
    em_cast_load(&i, EM_I64, (const char *)em_tensor_data(p->t) + offset * (int64_t)em_tensor_itemsize(p->t), p->t->dtype, 0, 1);
    if (p->t->dtype == EM_BOOL) return snprintf(text, size, "%s", i ? "True" : "False");
    return snprintf(text, size, "%" PRId64, i);
  }
  em_c128 c = number(p, offset);
  double v = part ? c.im : c.re;
  if (v != v) return snprintf(text, size, "nan");
  if (isinf(v)) return snprintf(text, size, v < 0 ? "-inf" : "inf");
  const char *format = s == SCIENTIFIC ? "%.4e" : s == WHOLE ? "%.0f." : "%.4f";
  return snprintf(text, size, format, v);
}

// Elements of dim d that are printed: all, or the edges.
static int64_t shown(const printer *p, int d) {
  int64_t n = p->t->sizes[d];
  return p->summary && n > 2 * EDGE ? 2 * EDGE : n;
}
static int64_t nth(const printer *p, int d, int64_t i) {
  int64_t n = p->t->sizes[d];
  return p->summary && n > 2 * EDGE && i >= EDGE ? n - 2 * EDGE + i : i;
}

typedef struct span { double low, high; bool whole, any; } span;
static void look(const printer *p, int d, int64_t offset, span s[2], int width[2], bool measure) {
  if (d < p->t->ndim) {
    for (int64_t i = 0; i < shown(p, d); i++) look(p, d + 1, offset + nth(p, d, i) * p->t->strides[d], s, width, measure);
    return;
  }
  for (int part = 0; part <= p->complex; part++) {
    em_c128 c = number(p, offset);
    double v = part ? c.im : c.re, size = fabs(v);
    if (measure) {
      char text[512];
      if (p->style[part] != WORD && (!isfinite(v) || v == 0)) continue;  // they have no say in the width
      int n = text_of(p, offset, part, p->style[part], text, sizeof text);
      if (n > width[part]) width[part] = n;
    } else if (isfinite(v) && v != 0) {
      s[part].whole = (s[part].whole || !s[part].any) && v == floor(v);
      s[part].low = s[part].any && s[part].low < size ? s[part].low : size;
      s[part].high = s[part].any && s[part].high > size ? s[part].high : size;
      s[part].any = true;
    }
  }
}
static void choose(printer *p) {
  span s[2] = {{0}};
  bool floating = em_dtype_is_float(p->t->dtype) || p->complex;
  if (floating) look(p, 0, 0, s, p->width, false);
  for (int part = 0; part < 2; part++) {
    bool whole = s[part].whole || !s[part].any;
    p->width[part] = 1;
    p->style[part] = !floating ? WORD : whole ? WHOLE : FIXED;
    if (floating && s[part].any && (s[part].high / s[part].low > 1000 || s[part].high > 1e8 || (!whole && s[part].low < 1e-4)))
      p->style[part] = SCIENTIFIC;
  }
  look(p, 0, 0, s, p->width, true);
}
static void put_element(printer *p, int64_t offset) {
  char text[512], imaginary[512];
  int n = text_of(p, offset, 0, p->style[0], text, sizeof text);
  put(p, "%*s%.255s", p->width[0] > n ? p->width[0] - n : 0, "", text);
  if (!p->complex) return;
  (void)text_of(p, offset, 1, p->style[1], imaginary, sizeof imaginary);
  put(p, "%s%.250sj", imaginary[0] == '-' ? "" : "+", imaginary);
}

// ---- brackets ----
static void put_rows(printer *p, int d, int64_t offset, int indent) {
  const em_tensor *t = p->t;
  if (d == t->ndim) {
    put_element(p, offset);
    return;
  }
  const int64_t n = shown(p, d);
  const bool gap = n < t->sizes[d], row = d == t->ndim - 1;
  const int width = p->width[0] + (p->complex ? p->width[1] + 1 : 0);
  const int64_t wide = (COLUMNS - indent) / (width + 2), per_line = wide > 1 ? wide : 1;
  int64_t item = 0;  // items with the gap
  put(p, "[");
  for (int64_t i = 0; i < n; i++, item++) {
    for (int filler = gap && i == EDGE ? 1 : 0; filler >= 0; filler--) {
      if (item > 0) {
        put(p, ",");
        int breaks = row ? item % per_line == 0 : t->ndim - 1 - d;
        for (int b = 0; b < breaks; b++) put(p, "\n");
        if (breaks == 0) put(p, " ");
        else put(p, "%*s", indent + 1, "");
      }
      if (filler) put(p, row ? " ..." : "..."), item++;
      else put_rows(p, d + 1, offset + nth(p, d, i) * t->strides[d], indent + 1);
    }
  }
  put(p, "]");
}

// ", suffix", on a line of its own where it does not fit.
static void put_suffix(printer *p, const char *suffix) {
  size_t line = p->used - p->line;
  bool wrap = line + strlen(suffix) + p->slack > COLUMNS;
  put(p, wrap ? ",\n       %s" : ", %s", suffix);
  if (wrap) p->slack = 2;
}
static void put_suffixes(printer *p, em_tensor *t) {
  char text[512];
  bool none = t->numel == 0, meta = t->device.type == EM_DEVICE_META;
  if (t->device.type != EM_DEVICE_CPU) {
    char device[24];
    snprintf(text, sizeof text, "device='%s'", em_device_format(t->device, device));
    put_suffix(p, text);
  }
  if (meta || (none && t->ndim != 1)) {
    size_t used = (size_t)snprintf(text, sizeof text, "size=(");
    for (int d = 0; d < t->ndim && used < sizeof text - 32; d++)
      used += (size_t)snprintf(text + used, sizeof text - used, d > 0 ? ", %lld" : "%lld", (long long)t->sizes[d]);
    snprintf(text + used, sizeof text - used, t->ndim == 1 ? ",)" : ")");
    put_suffix(p, text);
  }
  const int dtype = t->dtype;
  if (meta || none ? dtype != EM_F32 : dtype != EM_F32 && dtype != EM_C64 && dtype != EM_I64 && dtype != EM_BOOL) {
    snprintf(text, sizeof text, "dtype=torch.%s", em_dtype_name(dtype));
    put_suffix(p, text);
  }
  em_node *node = NULL;
  if (em_tensor_grad_fn(t, &node) != EM_OK) put_suffix(p, "grad_fn=<Invalid>");
  else if (node != NULL) {
    snprintf(text, sizeof text, "grad_fn=<%.200s>", em_node_name(node));
    put_suffix(p, text);
  } else if (em_tensor_requires_grad(t)) {
    put_suffix(p, "requires_grad=True");
  }
}

// Writes what fits; *needed counts the closing zero too.
static em_status render(em_tensor *t, char *out, size_t bytes, size_t *needed) {
  printer p = {.out = out, .room = bytes, .t = t, .complex = em_dtype_is_complex(t->dtype), .slack = 4};
  p.summary = t->numel > THRESHOLD;
  em_tensor *plain = NULL;
  em_status st = EM_OK;
  put(&p, "tensor(");
  if (t->device.type == EM_DEVICE_META) {
    put(&p, "...");
  } else if (t->numel == 0) {
    put(&p, "[]");
  } else {
    em_guard guard = em_guard_exclude(EM_KEYBIT(EM_KEY_Autograd));
    st = em_call_resolve_conj(t, &plain);
    em_guard_restore(guard);
    if (st != EM_OK) return st;
    p.t = plain;
    choose(&p);
    put_rows(&p, 0, 0, 7);
  }
  put_suffixes(&p, t);
  put(&p, ")");
  em_tensor_release(plain);
  if (bytes > 0) out[p.used < bytes ? p.used : bytes - 1] = 0;
  *needed = p.used + 1;
  return EM_OK;
}

em_status em_tensor_text(em_tensor *t, char *out, size_t bytes) {
  size_t needed;
  if (t == NULL || (out == NULL && bytes > 0)) return em_fail_null("em_tensor_text", t == NULL ? "tensor" : "text");
  EM_PASS(render(t, out, bytes, &needed));
  return needed <= bytes ? EM_OK : em_fail(EM_ERR_VALUE, "em_tensor_text(): %zu bytes are needed, got %zu", needed, bytes);
}

em_status em_print(em_tensor *t) {
  size_t needed;
  if (t == NULL) return em_fail_null("em_print", "tensor");
  EM_PASS(render(t, NULL, 0, &needed));
  char *text = em_alloc(needed);
  if (text == NULL) return EM_NOMEM(needed);
  size_t again;
  em_status st = render(t, text, needed, &again);
  if (st == EM_OK && puts(text) < 0) st = em_fail(EM_ERR_RUNTIME, "em_print(): stdout cannot be written");
  em_free(text, needed);
  return st;
}
