// unpickle.c: pickle's stack machine, without the parts that find and run code. Every operation's argument is found by
// one table (`shapes`), compared with what is left of the input. The machine does not recurse; the stack and the memo
// cannot outgrow the input by more than a constant factor, because each entry costs at least one byte of it.
#include "unpickle.h"
#include "source.h"
#include <string.h>

// How the argument of an operation is written: N bytes, a count of N bytes and so many bytes, lines.
enum { UNKNOWN = 0, FIXED = 16, COUNTED = 32, LINES = 48 };
static const uint8_t shapes[256] = {
    ['('] = FIXED,       ['.'] = FIXED,       ['0'] = FIXED,       ['1'] = FIXED,       ['2'] = FIXED,
    ['F'] = LINES + 1,   ['I'] = LINES + 1,   ['J'] = FIXED + 4,   ['K'] = FIXED + 1,   ['L'] = LINES + 1,
    ['M'] = FIXED + 2,   ['N'] = FIXED,       ['P'] = LINES + 1,   ['Q'] = FIXED,       ['R'] = FIXED,
    ['S'] = LINES + 1,   ['T'] = COUNTED + 4, ['U'] = COUNTED + 1, ['V'] = LINES + 1,   ['X'] = COUNTED + 4,
    ['a'] = FIXED,       ['b'] = FIXED,       ['c'] = LINES + 2,   ['d'] = FIXED,       ['}'] = FIXED,
    ['e'] = FIXED,       ['g'] = LINES + 1,   ['h'] = FIXED + 1,   ['i'] = LINES + 2,   ['j'] = FIXED + 4,
    ['l'] = FIXED,       [']'] = FIXED,       ['o'] = FIXED,       ['p'] = LINES + 1,   ['q'] = FIXED + 1,
    ['r'] = FIXED + 4,   ['s'] = FIXED,       ['t'] = FIXED,       [')'] = FIXED,       ['u'] = FIXED,
    ['G'] = FIXED + 8,   ['B'] = COUNTED + 4, ['C'] = COUNTED + 1, [0x80] = FIXED + 1,  [0x81] = FIXED,
    [0x82] = FIXED + 1,  [0x83] = FIXED + 2,  [0x84] = FIXED + 4,  [0x85] = FIXED,      [0x86] = FIXED,
    [0x87] = FIXED,      [0x88] = FIXED,      [0x89] = FIXED,      [0x8a] = COUNTED + 1, [0x8b] = COUNTED + 4,
    [0x8c] = COUNTED + 1, [0x8d] = COUNTED + 8, [0x8e] = COUNTED + 8, [0x8f] = FIXED,   [0x90] = FIXED,
    [0x91] = FIXED,      [0x92] = FIXED,      [0x93] = FIXED,      [0x94] = FIXED,      [0x95] = FIXED + 8,
    [0x96] = COUNTED + 8, [0x97] = FIXED,     [0x98] = FIXED,
};

typedef struct op {
  uint8_t code;
  const uint8_t *arg;   // FIXED and COUNTED: the payload. LINES: the first line
  size_t size;          // of the payload or the first line
  const uint8_t *arg2;  // the second line
  size_t size2;
} op;
typedef struct reader {
  const uint8_t *start, *p, *end, *at;  // `at`: the operation in work
  const char *name;
  uint64_t first;
} reader;

static em_status damaged(reader *r, const char *what) {
  return em_fail(EM_ERR_RUNTIME, "%s: the pickle is damaged at byte %llu: %s", r->name,
                 (unsigned long long)(r->first + (uint64_t)(r->at - r->start)), what);
}
static bool line(reader *r, const uint8_t **p, size_t *n) {
  const uint8_t *stop = memchr(r->p, '\n', (size_t)(r->end - r->p));
  if (stop == NULL) return false;
  *p = r->p, *n = (size_t)(stop - r->p);
  r->p = stop + 1;
  return true;
}
static em_status next_op(reader *r, op *o) {
  r->at = r->p;
  if (r->p == r->end)
    return em_fail(EM_ERR_RUNTIME, "%s: the pickle ends without its last operation, at byte %llu: the file is truncated",
                   r->name, (unsigned long long)(r->first + (uint64_t)(r->p - r->start)));
  o->code = *r->p++;
  uint8_t shape = shapes[o->code];
  int k = shape & 15;
  size_t left = (size_t)(r->end - r->p);
  if (shape == UNKNOWN)
    return em_fail(EM_ERR_RUNTIME, "Unsupported operand %d (%s, byte %llu)", o->code, r->name,
                   (unsigned long long)(r->first + (uint64_t)(r->at - r->start)));
  if (shape >= LINES) {
    if (line(r, &o->arg, &o->size) && (k == 1 || line(r, &o->arg2, &o->size2))) return EM_OK;
    return damaged(r, "a name without its end");
  }
  if (left < (size_t)k) return damaged(r, "it ends within an operation's argument");
  uint64_t n = (uint64_t)k;
  if (shape >= COUNTED) {
    n = em_le(r->p, k);
    r->p += k;
    if (n > left - (size_t)k) return damaged(r, "a string is longer than what is left");
  }
  o->arg = r->p, o->size = (size_t)n;
  r->p += n;
  return EM_OK;
}

// ---------------------------------------------------------------- the machine
typedef struct machine {
  reader r;
  const em_pickle_builder *b;
  void **stack, **memo;
  size_t *marks;
  size_t depth, stack_room, nmarks, marks_room, memo_room, memo_count;
} machine;

static em_status grow(void *array, size_t *room, size_t need, size_t size) {
  if (need <= *room) return EM_OK;
  size_t more = need + need / 2 + 32;
  void *p = em_block_resize(*(void **)array, more * size);
  if (p == NULL) return EM_NOMEM(more * size);
  memset((char *)p + *room * size, 0, (more - *room) * size);
  *(void **)array = p;
  *room = more;
  return EM_OK;
}
// Steals o.
static em_status push(machine *m, void *o) {
  em_status st = grow(&m->stack, &m->stack_room, m->depth + 1, sizeof(void *));
  if (st == EM_OK) m->stack[m->depth++] = o;
  else m->b->release(m->b->context, o);
  return st;
}
static size_t floor_of(const machine *m) { return m->nmarks == 0 ? 0 : m->marks[m->nmarks - 1]; }
static em_status need(machine *m, size_t n) {
  return m->depth - floor_of(m) >= n ? EM_OK : damaged(&m->r, "an operation finds too little on the stack");
}
static void drop(machine *m, size_t n) {
  while (n-- > 0) m->b->release(m->b->context, m->stack[--m->depth]);
}
// The items above the last mark, which goes.
static em_status to_mark(machine *m, void ***items, size_t *n) {
  if (m->nmarks == 0) return damaged(&m->r, "an operation finds no mark on the stack");
  size_t floor = m->marks[--m->nmarks];
  *items = m->stack + floor;
  *n = m->depth - floor;
  return EM_OK;
}
// Replaces the top n objects by o (stolen).
static em_status replace(machine *m, size_t n, em_status st, void *o) {
  if (st != EM_OK) return st;
  drop(m, n);
  return push(m, o);
}

static em_status memo_put(machine *m, uint64_t i) {
  EM_PASS(need(m, 1));
  if (i > (uint64_t)(m->r.end - m->r.start)) return damaged(&m->r, "a memo number is larger than the pickle");
  EM_PASS(grow(&m->memo, &m->memo_room, (size_t)i + 1, sizeof(void *)));
  void *old = m->memo[i];
  m->memo[i] = m->b->retain(m->b->context, m->stack[m->depth - 1]);
  if (old != NULL) m->b->release(m->b->context, old);
  else m->memo_count++;
  return EM_OK;
}
static em_status memo_get(machine *m, uint64_t i) {
  if (i >= m->memo_room || m->memo[i] == NULL) return damaged(&m->r, "a memo number that was not stored");
  return push(m, m->b->retain(m->b->context, m->memo[i]));
}

static em_status push_number(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  void *v = NULL;
  uint64_t u = em_le(o->arg, o->size < 8 ? (int)o->size : 8);
  if (o->code == 'G') {
    uint64_t bits = __builtin_bswap64(u);
    double d;
    memcpy(&d, &bits, sizeof d);
    EM_PASS(b->real(b->context, d, &v));
  } else if (o->code == 'J') {
    EM_PASS(b->integer(b->context, (int32_t)u, &v));
  } else if (o->code == 'K' || o->code == 'M') {
    EM_PASS(b->integer(b->context, (int64_t)u, &v));
  } else if (o->size > 8) {
    EM_PASS(b->big_integer(b->context, o->arg, o->size, &v));
  } else {  // two's complement of 0 to 8 bytes
    int shift = 64 - 8 * (int)o->size;
    EM_PASS(b->integer(b->context, o->size == 0 ? 0 : (int64_t)(u << shift) >> shift, &v));
  }
  return push(m, v);
}

static em_status push_string(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  void *v = NULL;
  bool bytes = o->code == 'B' || o->code == 'C' || o->code == 0x8e || o->code == 0x96;
  EM_PASS(bytes ? b->bytes(b->context, o->arg, o->size, o->code == 0x96, &v)
                : b->text(b->context, (const char *)o->arg, o->size, &v));
  return push(m, v);
}

static em_status push_tuple(machine *m, const op *o) {
  void *v = NULL, **items = m->stack + m->depth;
  size_t n = o->code >= 0x85 && o->code <= 0x87 ? o->code - 0x84u : 0;
  if (o->code == 't' || o->code == 0x91) {
    EM_PASS(to_mark(m, &items, &n));
  } else {
    EM_PASS(need(m, n));
    items -= n;
  }
  em_status st = m->b->tuple(m->b->context, items, n, o->code == 0x91 ? 'f' : '(', &v);
  return replace(m, n, st, v);
}

static em_status fill(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  void **items = NULL;
  size_t n = 0;
  if (o->code == 'a' || o->code == 's') {
    n = o->code == 'a' ? 1 : 2;
    EM_PASS(need(m, n + 1));
    items = m->stack + m->depth - n;
  } else {
    EM_PASS(to_mark(m, &items, &n));
    if (m->depth - n <= floor_of(m)) return damaged(&m->r, "there is no container below the mark");
  }
  void *into = items[-1];
  if ((o->code == 'u' || o->code == 's') && n % 2 != 0) return damaged(&m->r, "a key without a value");
  EM_PASS(o->code == 'a' || o->code == 'e' ? b->append(b->context, into, items, n)
          : o->code == 0x90                ? b->add(b->context, into, items, n)
                                           : b->set_items(b->context, into, items, n / 2));
  drop(m, n);
  return EM_OK;
}

static em_status push_global(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  const char *module = (const char *)o->arg, *name = (const char *)o->arg2;
  size_t nm = o->size, nn = o->size2;
  void *v = NULL;
  if (o->code == 0x93) {
    EM_PASS(need(m, 2));
    EM_PASS(b->text_of(b->context, m->stack[m->depth - 2], &module, &nm));
    EM_PASS(b->text_of(b->context, m->stack[m->depth - 1], &name, &nn));
  }
  em_status st = b->global(b->context, module, nm, name, nn, &v);
  return replace(m, o->code == 0x93 ? 2 : 0, st, v);
}

static em_status apply(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  size_t n = o->code == 0x92 ? 3 : o->code == 'Q' ? 1 : 2;
  void *v = NULL;
  EM_PASS(need(m, n));
  void **s = m->stack + m->depth - n;
  if (o->code == 'b') {
    EM_PASS(b->build(b->context, s[0], s[1]));
    drop(m, 1);
    return EM_OK;
  }
  em_status st = o->code == 'R'   ? b->call(b->context, s[0], s[1], &v)
                 : o->code == 'Q' ? b->persistent(b->context, s[0], &v)
                                  : b->make(b->context, s[0], s[1], o->code == 0x92 ? s[2] : NULL, &v);
  return replace(m, n, st, v);
}

static em_status move_stack(machine *m, const op *o) {
  void **items = NULL;
  size_t n = 0;
  switch (o->code) {
    case '(':
      EM_PASS(grow(&m->marks, &m->marks_room, m->nmarks + 1, sizeof *m->marks));
      m->marks[m->nmarks++] = m->depth;
      return EM_OK;
    case '1':
      EM_PASS(to_mark(m, &items, &n));
      drop(m, n);
      return EM_OK;
    case '0':
      EM_PASS(need(m, 1));
      drop(m, 1);
      return EM_OK;
    default:  // '2'
      EM_PASS(need(m, 1));
      return push(m, m->b->retain(m->b->context, m->stack[m->depth - 1]));
  }
}

static em_status step(machine *m, const op *o) {
  const em_pickle_builder *b = m->b;
  void *v = NULL;
  switch (o->code) {
    case 0x80:
      return o->arg[0] <= 5 ? EM_OK : damaged(&m->r, "a protocol above 5");
    case 0x95: return EM_OK;  // FRAME: the next bytes belong together, nothing more
    case 'N': case 0x88: case 0x89:
      EM_PASS(b->constant(b->context, o->code == 'N' ? 'N' : o->code == 0x88 ? 'T' : 'F', &v));
      return push(m, v);
    case 'J': case 'K': case 'M': case 'G': case 0x8a: case 0x8b: return push_number(m, o);
    case 'X': case 'T': case 'U': case 0x8c: case 0x8d: case 'B': case 'C': case 0x8e: case 0x96: return push_string(m, o);
    case ']': case '}': case 0x8f:
      EM_PASS(b->empty(b->context, o->code == 0x8f ? 's' : o->code == ']' ? '[' : '{', &v));
      return push(m, v);
    case ')': case 't': case 0x85: case 0x86: case 0x87: case 0x91: return push_tuple(m, o);
    case 'a': case 'e': case 's': case 'u': case 0x90: return fill(m, o);
    case 'c': case 0x93: return push_global(m, o);
    case 'R': case 'Q': case 'b': case 0x81: case 0x92: return apply(m, o);
    case '(': case '0': case '1': case '2': return move_stack(m, o);
    case 'q': case 'r': return memo_put(m, em_le(o->arg, (int)o->size));
    case 'h': case 'j': return memo_get(m, em_le(o->arg, (int)o->size));
    case 0x94: return memo_put(m, m->memo_count);
    default:
      return em_fail(EM_ERR_RUNTIME, "Unsupported operand %d (%s, byte %llu)", o->code, m->r.name,
                     (unsigned long long)(m->r.first + (uint64_t)(m->r.at - m->r.start)));
  }
}

em_status em_unpickle(const uint8_t *p, size_t n, const char *name, uint64_t first, const em_pickle_builder *b,
                      void **out, size_t *used) {
  machine m = {.r = {p, p, p + n, p, name, first}, .b = b};
  em_status st;
  for (;;) {
    op o = {0};
    EM_TRY(next_op(&m.r, &o));
    if (o.code == '.') break;
    EM_TRY(step(&m, &o));
  }
  if (m.depth == 0 || m.nmarks != 0) {
    st = damaged(&m.r, "it ends in the middle of an object");
    goto fail;
  }
  *out = b->retain(b->context, m.stack[m.depth - 1]);
  *used = (size_t)(m.r.p - p);
fail:
  while (m.depth > 0) b->release(b->context, m.stack[--m.depth]);
  for (size_t i = 0; i < m.memo_room; i++)
    if (m.memo[i] != NULL) b->release(b->context, m.memo[i]);
  em_block_free(m.stack);
  em_block_free(m.memo);
  em_block_free(m.marks);
  return st;
}

// ---------------------------------------------------------------- names in a pickle
// Which string each memo number and the top two of the stack are: enough to know a name given as objects.
typedef struct names {
  reader r;
  struct span { const uint8_t *p; size_t n; } *memo, last[2];
  size_t room, count;
} names;

static em_status follow(names *w, const op *o) {
  uint64_t i = o->size <= 8 ? em_le(o->arg, (int)o->size) : 0;
  switch (o->code) {
    case 'X': case 0x8c: case 0x8d: case 'T': case 'U':
      w->last[0] = w->last[1];
      w->last[1] = (struct span){o->arg, o->size};
      return EM_OK;
    case 'q': case 'r': case 0x94:
      if (o->code == 0x94) i = w->count;
      if (i > (uint64_t)(w->r.end - w->r.start)) return damaged(&w->r, "a memo number is larger than the pickle");
      EM_PASS(grow(&w->memo, &w->room, (size_t)i + 1, sizeof *w->memo));
      w->memo[i] = w->last[1];
      w->count++;
      return EM_OK;
    case 'h': case 'j':
      w->last[0] = w->last[1];
      w->last[1] = i < w->room ? w->memo[i] : (struct span){NULL, 0};
      return EM_OK;
    default:
      w->last[0] = w->last[1] = (struct span){NULL, 0};
      return EM_OK;
  }
}

em_status em_pickle_globals(const uint8_t *p, size_t n, const char *name,
                            em_status (*found)(void *context, const char *module, size_t nm, const char *global, size_t nn),
                            void *context, size_t *used) {
  names w = {.r = {p, p, p + n, p, name, 0}};
  em_status st;
  for (op o = {0}; o.code != '.';) {
    o = (op){0};
    EM_TRY(next_op(&w.r, &o));
    if (o.code == 'c' || o.code == 'i')
      EM_TRY(found(context, (const char *)o.arg, o.size, (const char *)o.arg2, o.size2));
    if (o.code == 0x93 && w.last[0].p != NULL && w.last[1].p != NULL)
      EM_TRY(found(context, (const char *)w.last[0].p, w.last[0].n, (const char *)w.last[1].p, w.last[1].n));
    EM_TRY(follow(&w, &o));
  }
  *used = (size_t)(w.r.p - p);
fail:
  em_block_free(w.memo);
  return st;
}

typedef struct renaming { const char *from, *to; size_t n; } renaming;
static em_status rename_module(void *context, const char *module, size_t nm, const char *global, size_t nn) {
  const renaming *r = context;
  if (nm >= r->n && memcmp(module, r->from, r->n) == 0 && (nm == r->n || module[r->n] == '.'))
    memcpy((char *)module, r->to, r->n);  // the caller's own, writable bytes
  return EM_OK;
}
em_status em_pickle_rename(uint8_t *p, size_t n, const char *from, const char *to) {
  renaming r = {from, to, strlen(from)};
  size_t used = 0;
  if (strlen(to) != r.n) return em_fail(EM_ERR_INTERNAL, "names of different length");
  return em_pickle_globals(p, n, "a new pickle", rename_module, &r, &used);
}
