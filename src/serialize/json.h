// json.h: as much of JSON as file headers need, read from untrusted bytes.
#ifndef EMBER_SERIALIZE_JSON_H
#define EMBER_SERIALIZE_JSON_H
#include "core/status.h"

typedef struct em_json {
  const char *start, *p, *end;
  const char *wrong;  // what is wrong at `p`, or NULL
} em_json;

bool em_json_space(em_json *j);           // skips white space; false at the end
bool em_json_take(em_json *j, char c);    // skips space; takes c if it is next
bool em_json_expect(em_json *j, char c);  // the same, and it is an error if it is not
char *em_json_string(em_json *j);         // UTF-8, terminated, to be freed; NULL with `wrong`
bool em_json_unsigned(em_json *j, uint64_t *out);
bool em_json_skip(em_json *j);            // any value, at most 100 levels deep
bool em_json_fail(em_json *j, const char *what);  // returns false
// Whether n bytes are UTF-8; *at: the first byte that is not.
bool em_utf8_valid(const char *p, size_t n, size_t *at);
// p as a JSON string with its quotes; returns the bytes needed, writes at most `room` of them.
size_t em_json_quote(const char *p, char *out, size_t room);
#endif
