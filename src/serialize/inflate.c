// inflate.c: unpacks deflate streams (RFC 1951), for archives that were compressed again after saving and for .npz.
// Output goes to a block of known size; input and output bounds are checked at every symbol.
#include "source.h"
#include <string.h>

typedef struct bits {
  const uint8_t *p, *end;
  uint64_t hold;
  int count;
  bool dry;  // more bits were asked for than there are
} bits;

static uint32_t take(bits *b, int n) {
  while (b->count < n) {
    if (b->p == b->end) {
      b->dry = true;
      return 0;
    }
    b->hold |= (uint64_t)*b->p++ << b->count;
    b->count += 8;
  }
  uint32_t v = (uint32_t)(b->hold & ((1ull << n) - 1));
  b->hold >>= n, b->count -= n;
  return v;
}

// A canonical code: how many codes of each length, and the symbols in order of their codes.
typedef struct code {
  uint16_t count[16], symbol[288];
} code;

// false: the lengths ask for more codes than there are
static bool code_make(code *c, const uint8_t *lengths, int n) {
  memset(c->count, 0, sizeof c->count);
  for (int i = 0; i < n; i++) c->count[lengths[i]]++;
  c->count[0] = 0;
  int left = 1;
  uint16_t first[16] = {0};
  for (int len = 1; len < 16; len++) {
    left = left * 2 - c->count[len];
    if (left < 0) return false;
    if (len < 15) first[len + 1] = (uint16_t)(first[len] + c->count[len]);
  }
  for (int i = 0; i < n; i++)
    if (lengths[i] != 0) c->symbol[first[lengths[i]]++] = (uint16_t)i;
  return true;
}

static int code_read(bits *b, const code *c) {  // -1: no such code, or the bits are out
  int value = 0, first = 0, index = 0;
  for (int len = 1; len < 16; len++) {
    value |= (int)take(b, 1);
    if (b->dry) return -1;
    int n = c->count[len];
    if (value - n < first) return c->symbol[index + value - first];
    index += n;
    first = (first + n) << 1;
    value <<= 1;
  }
  return -1;
}

static bool read_codes(bits *b, code *lit, code *dist) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  int nlit = (int)take(b, 5) + 257, ndist = (int)take(b, 5) + 1, nlen = (int)take(b, 4) + 4;
  uint8_t lengths[320] = {0};
  if (nlit > 286) return false;
  for (int i = 0; i < nlen; i++) lengths[order[i]] = (uint8_t)take(b, 3);
  if (!code_make(lit, lengths, 19)) return false;
  memset(lengths, 0, sizeof lengths);
  for (int i = 0; i < nlit + ndist;) {
    int s = code_read(b, lit);
    if (s < 0) return false;
    if (s < 16) {
      lengths[i++] = (uint8_t)s;
      continue;
    }
    if (s == 16 && i == 0) return false;
    uint8_t v = s == 16 ? lengths[i - 1] : 0;
    int again = s == 16 ? 3 + (int)take(b, 2) : s == 17 ? 3 + (int)take(b, 3) : 11 + (int)take(b, 7);
    if (b->dry || i + again > nlit + ndist) return false;
    while (again-- > 0) lengths[i++] = v;
  }
  return lengths[256] != 0 && code_make(lit, lengths, nlit) && code_make(dist, lengths + nlit, ndist);
}

static void fixed_codes(code *lit, code *dist) {
  uint8_t lengths[288];
  for (int i = 0; i < 288; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  (void)code_make(lit, lengths, 288);
  memset(lengths, 5, 30);
  (void)code_make(dist, lengths, 30);
}

static bool run_block(bits *b, const code *lit, const code *dist, uint8_t *out, size_t room, size_t *at) {
  static const uint16_t len_base[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99,
                                        115, 131, 163, 195, 227, 258};
  static const uint8_t len_more[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t far_base[30] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025,
                                        1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  for (;;) {
    int s = code_read(b, lit);
    if (s < 0 || s > 285) return false;
    if (s == 256) return true;
    if (s < 256) {
      if (*at == room) return false;
      out[(*at)++] = (uint8_t)s;
      continue;
    }
    size_t len = len_base[s - 257] + take(b, len_more[s - 257]);
    int d = code_read(b, dist);
    if (d < 0 || d > 29) return false;
    size_t far = far_base[d] + take(b, d < 4 ? 0 : d / 2 - 1);
    if (b->dry || far > *at || len > room - *at) return false;
    for (; len > 0; len--, (*at)++) out[*at] = out[*at - far];
  }
}

static bool stored_block(bits *b, uint8_t *out, size_t room, size_t *at) {
  (void)take(b, b->count & 7);
  uint32_t n = take(b, 16), check = take(b, 16);
  if (b->dry || (n ^ check) != 0xffff || n > room - *at) return false;
  for (; n > 0 && b->count > 0; n--) out[(*at)++] = (uint8_t)take(b, 8);
  if (n > (size_t)(b->end - b->p)) return false;
  memcpy(out + *at, b->p, n);
  b->p += n, *at += n;
  return true;
}

em_status em_inflate(const uint8_t *p, size_t n, uint8_t *out, size_t room, const char *name) {
  bits b = {p, p + n, 0, 0, false};
  code lit, dist;
  size_t at = 0;
  bool last = false, good = true;
  while (good && !last) {
    last = take(&b, 1);
    uint32_t kind = take(&b, 2);
    if (b.dry || kind == 3) good = false;
    else if (kind == 0) good = stored_block(&b, out, room, &at);
    else if (kind == 1) fixed_codes(&lit, &dist);
    else good = read_codes(&b, &lit, &dist);
    if (good && kind != 0) good = run_block(&b, &lit, &dist, out, room, &at);
  }
  if (good && at == room) return EM_OK;
  return em_fail(EM_ERR_RUNTIME, "%s: a compressed record is damaged at byte %zu of its %zu packed bytes", name,
                 (size_t)(b.p - p), n);
}
