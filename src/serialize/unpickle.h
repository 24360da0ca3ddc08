// unpickle.h: a machine for the part of pickle's language that describes data. It runs no code and knows no names: what
// a global is, what may be called and how containers look is up to the builder, which a reader of checkpoints without
// Python and the Python bridge each bring. The input is taken for hostile.
#ifndef EMBER_SERIALIZE_UNPICKLE_H
#define EMBER_SERIALIZE_UNPICKLE_H
#include "core/status.h"

// Objects are the builder's own pointers. Results are new references, arguments are borrowed.
typedef struct em_pickle_builder {
  void *context;
  em_status (*constant)(void *context, char which, void **out);  // 'N' None, 'T' True, 'F' False
  em_status (*integer)(void *context, int64_t v, void **out);
  em_status (*big_integer)(void *context, const uint8_t *le, size_t n, void **out);  // two's complement, n > 8
  em_status (*real)(void *context, double v, void **out);
  em_status (*text)(void *context, const char *p, size_t n, void **out);  // to be checked: UTF-8
  em_status (*bytes)(void *context, const uint8_t *p, size_t n, bool writable, void **out);
  em_status (*empty)(void *context, char which, void **out);  // '[', '{', or 's' a set
  em_status (*tuple)(void *context, void **items, size_t n, char which, void **out);  // '(', or 'f' a frozen set
  em_status (*append)(void *context, void *list, void **items, size_t n);
  em_status (*set_items)(void *context, void *dict, void **pairs, size_t n);  // n pairs
  em_status (*add)(void *context, void *set, void **items, size_t n);
  em_status (*global)(void *context, const char *module, size_t nm, const char *name, size_t nn, void **out);
  em_status (*text_of)(void *context, void *object, const char **p, size_t *n);  // of a name given as an object
  em_status (*call)(void *context, void *function, void *args, void **out);
  em_status (*make)(void *context, void *cls, void *args, void *kwargs, void **out);  // kwargs NULL: none
  em_status (*build)(void *context, void *object, void *state);
  em_status (*persistent)(void *context, void *id, void **out);
  void *(*retain)(void *context, void *object);
  void (*release)(void *context, void *object);
} em_pickle_builder;

// Reads one pickle at p; *used: its length. Errors say NAME and the byte, counted from `first`.
EM_PRIV em_status em_unpickle(const uint8_t *p, size_t n, const char *name, uint64_t first, const em_pickle_builder *b,
                              void **out, size_t *used);

// Replaces `from` by `to` (of the same length) in names of modules in a pickle that was just written: `from` itself
// and `from.more`. Strings that are data stay as they are.
EM_PRIV em_status em_pickle_rename(uint8_t *p, size_t n, const char *from, const char *to);
// The globals that a pickle names, in order: `found(context, module, name)` for each. Nothing is built.
EM_PRIV em_status em_pickle_globals(const uint8_t *p, size_t n, const char *name,
                                    em_status (*found)(void *context, const char *module, size_t nm, const char *global,
                                                       size_t nn), void *context, size_t *used);
#endif
