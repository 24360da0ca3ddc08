// json.c: a reader without recursion and without trust.
#include "json.h"
#include "source.h"
#include <stdio.h>
#include <string.h>

bool em_json_fail(em_json *j, const char *what) {
  if (j->wrong == NULL) j->wrong = what;
  return false;
}
bool em_json_space(em_json *j) {
  while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r')) j->p++;
  return j->p < j->end;
}
bool em_json_take(em_json *j, char c) {
  if (!em_json_space(j) || *j->p != c) return false;
  j->p++;
  return true;
}
bool em_json_expect(em_json *j, char c) {
  static const char *const texts[] = {"expected `{`", "expected `}`", "expected `[`", "expected `]`",
                                      "expected `:`", "expected `,`", "expected a string"};
  if (em_json_take(j, c)) return true;
  const char *which = strchr("{}[]:,\"", c);
  return em_json_fail(j, which == NULL ? "unexpected character" : texts[which - "{}[]:,\""]);
}

bool em_utf8_valid(const char *text, size_t n, size_t *at) {
  const uint8_t *p = (const uint8_t *)text;
  for (size_t i = 0; i < n;) {
    *at = i;
    uint8_t c = p[i];
    int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
    if (more < 0 || n - i <= (size_t)more) return false;
    uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (more > 0 && (p[i + 1] < low || p[i + 1] > high)) return false;
    for (int k = 2; k <= more; k++)
      if ((p[i + k] & 0xc0) != 0x80) return false;
    i += (size_t)more + 1;
  }
  return true;
}

static bool hex4(em_json *j, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++) {
    if (j->p == j->end) return em_json_fail(j, "EOF while parsing a string");
    char c = *j->p++;
    int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (d < 0) return em_json_fail(j, "invalid escape");
    *out = *out << 4 | (uint32_t)d;
  }
  return true;
}
static char *put_utf8(char *q, uint32_t u) {
  if (u < 0x80) {
    *q++ = (char)u;
    return q;
  }
  if (u >= 0x10000) *q++ = (char)(0xf0 | u >> 18), *q++ = (char)(0x80 | (u >> 12 & 63));
  else if (u >= 0x800) *q++ = (char)(0xe0 | u >> 12);
  if (u >= 0x800) *q++ = (char)(0x80 | (u >> 6 & 63));
  else *q++ = (char)(0xc0 | u >> 6);
  *q++ = (char)(0x80 | (u & 63));
  return q;
}
static bool escape(em_json *j, char **q) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (j->p == j->end) return em_json_fail(j, "EOF while parsing a string");
  char c = *j->p++;
  const char *known = c == 0 ? NULL : strchr(from, c);
  if (known != NULL) {
    *(*q)++ = to[known - from];
    return true;
  }
  uint32_t u = 0, low = 0;
  if (c != 'u') return em_json_fail(j, "invalid escape");
  if (!hex4(j, &u)) return false;
  if (u >= 0xd800 && u < 0xdc00) {
    if (j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u') return em_json_fail(j, "lone leading surrogate in hex escape");
    j->p += 2;
    if (!hex4(j, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return em_json_fail(j, "lone leading surrogate in hex escape");
    u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
  } else if (u >= 0xdc00 && u < 0xe000) {
    return em_json_fail(j, "lone leading surrogate in hex escape");
  }
  if (u == 0) return em_json_fail(j, "a zero byte in a string");
  *q = put_utf8(*q, u);
  return true;
}

char *em_json_string(em_json *j) {
  if (!em_json_expect(j, '"')) return NULL;
  const char *stop = j->p;
  while (stop < j->end && *stop != '"') stop += *stop == '\\' && j->end - stop > 1 ? 2 : 1;
  if (stop >= j->end) {
    (void)em_json_fail(j, "EOF while parsing a string");
    return NULL;
  }
  char *text = em_block_alloc((size_t)(stop - j->p) + 1), *q = text;  // escapes only become shorter
  if (text == NULL) {
    (void)em_json_fail(j, "out of memory");
    return NULL;
  }
  while (j->p < stop) {
    if ((uint8_t)*j->p < 0x20) (void)em_json_fail(j, "control character (\\u0000-\\u001F) found while parsing a string");
    else if (*j->p != '\\') *q++ = *j->p;
    if (j->wrong != NULL) break;
    if (*j->p++ == '\\' && !escape(j, &q)) break;
  }
  if (j->wrong != NULL) {
    em_block_free(text);
    return NULL;
  }
  *q = 0;
  j->p = stop + 1;
  return text;
}

bool em_json_unsigned(em_json *j, uint64_t *out) {
  if (!em_json_space(j) || *j->p < '0' || *j->p > '9') return em_json_fail(j, "invalid value: expected usize");
  const char *first = j->p;
  for (*out = 0; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++) {
    uint64_t d = (uint64_t)(*j->p - '0');
    if (*out > (UINT64_MAX - d) / 10) return em_json_fail(j, "invalid value: number too large, expected usize");
    *out = *out * 10 + d;
  }
  if (*first == '0' && j->p - first > 1) return em_json_fail(j, "invalid number");
  if (j->p < j->end && (*j->p == '.' || *j->p == 'e' || *j->p == 'E'))
    return em_json_fail(j, "invalid type: floating point, expected usize");
  return true;
}

bool em_json_skip(em_json *j) {
  char open[100];
  int depth = 0;
  do {
    if (!em_json_space(j)) return em_json_fail(j, "EOF while parsing a value");
    char c = *j->p;
    if (c == '{' || c == '[') {
      if (depth == 100) return em_json_fail(j, "recursion limit exceeded");
      open[depth++] = c;
      j->p++;
    } else if (c == '}' || c == ']') {
      if (depth == 0 || open[--depth] != (c == '}' ? '{' : '[')) return em_json_fail(j, "unexpected closing bracket");
      j->p++;
    } else if (c == '"') {
      char *s = em_json_string(j);
      if (s == NULL) return false;
      em_block_free(s);
    } else if (c == ',' || c == ':') {
      if (depth == 0) return em_json_fail(j, "expected value");
      j->p++;
    } else {  // a number or a word
      const char *first = j->p;
      while (j->p < j->end && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *j->p) != NULL && *j->p != 0) j->p++;
      if (j->p == first) return em_json_fail(j, "expected value");
    }
  } while (depth > 0);
  return true;
}

size_t em_json_quote(const char *p, char *out, size_t room) {
  size_t n = 0;
  char piece[8];
#define PUT(text, len)                                       \
  do {                                                       \
    if (n + (len) <= room) memcpy(out + n, (text), (len));   \
    n += (len);                                              \
  } while (0)
  PUT("\"", 1);
  for (; *p != 0; p++) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *known = strchr(from, *p);
    if (known != NULL) {
      piece[0] = '\\', piece[1] = to[known - from];
      PUT(piece, 2);
    } else if ((uint8_t)*p < 0x20) {
      (void)snprintf(piece, sizeof piece, "\\u%04x", (unsigned)*p);
      PUT(piece, 6);
    } else {
      PUT(p, 1);
    }
  }
  PUT("\"", 1);
#undef PUT
  return n;
}
