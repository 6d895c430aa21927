// SPDX-License-Identifier: Apache-2.0
// inflate.c — deflate backwards: blocks as they are, or of codes of two prefix codes, read bit by bit from the low end.
#include "base/inflate.h"

#include <string.h>

#define CODE_BITS 15
#define LITERALS 288
#define DISTANCES 32

typedef struct Bits {
    const uint8_t *at, *end;
    uint32_t hold, have; // bits
    bool bad;
} Bits;

static uint32_t bits_get(Bits *b, uint32_t n) {
    while (b->have < n) {
        if (b->at == b->end) {
            b->bad = true;
            return 0;
        }
        b->hold |= (uint32_t)*b->at++ << b->have, b->have += 8;
    }
    uint32_t v = b->hold & ((1u << n) - 1);
    b->hold >>= n, b->have -= n;
    return v;
}

typedef struct Codes { // canonical: how many of each length, and the symbols in order
    uint16_t count[CODE_BITS + 1], symbol[LITERALS];
} Codes;

// False: more codes than there is room for.
static bool codes_make(Codes *c, const uint8_t *lengths, uint32_t n) {
    uint16_t next[CODE_BITS + 2] = {0};
    int32_t left = 1;
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < n; i++)
        c->count[lengths[i]]++;
    c->count[0] = 0;
    for (int l = 1; l <= CODE_BITS; l++) {
        left = 2 * left - c->count[l];
        if (left < 0)
            return false;
        next[l + 1] = (uint16_t)(next[l] + c->count[l]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (lengths[i])
            c->symbol[next[lengths[i]]++] = (uint16_t)i;
    return true;
}

static uint32_t code_get(Bits *b, const Codes *c) {
    int32_t code = 0, first = 0, index = 0;
    for (int l = 1; l <= CODE_BITS; l++) {
        code |= (int32_t)bits_get(b, 1);
        if (b->bad)
            return 0;
        int32_t count = c->count[l];
        if (code - count < first)
            return c->symbol[index + code - first];
        index += count, first = (first + count) << 1, code <<= 1;
    }
    b->bad = true;
    return 0;
}

typedef struct Out {
    uint8_t *at;
    size_t n, bytes;
} Out;

static void copy_back(Bits *b, Out *out, uint32_t symbol, const Codes *distances) {
    static const uint16_t lengths[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t far[] = {1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289,
                                   16385, 24577};
    if (symbol > 28) {
        b->bad = true;
        return;
    }
    size_t length = lengths[symbol] + bits_get(b, length_bits[symbol]);
    uint32_t d = code_get(b, distances);
    if (b->bad || d > 29) {
        b->bad = true;
        return;
    }
    size_t back = far[d] + bits_get(b, d < 4 ? 0 : d / 2 - 1);
    if (b->bad || back > out->n || length > out->bytes - out->n) {
        b->bad = true;
        return;
    }
    for (; length; length--, out->n++) // what is copied may be what was just put there
        out->at[out->n] = out->at[out->n - back];
}

static void coded(Bits *b, Out *out, const Codes *literals, const Codes *distances) {
    while (!b->bad) {
        uint32_t symbol = code_get(b, literals);
        if (b->bad || symbol == 256)
            return;
        if (symbol > 256)
            copy_back(b, out, symbol - 257, distances);
        else if (out->n < out->bytes)
            out->at[out->n++] = (uint8_t)symbol;
        else
            b->bad = true;
    }
}

static void fixed(Bits *b, Out *out) {
    uint8_t lengths[LITERALS];
    Codes literals, distances;
    for (int i = 0; i < LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    codes_make(&literals, lengths, LITERALS);
    memset(lengths, 5, DISTANCES);
    codes_make(&distances, lengths, DISTANCES - 2);
    coded(b, out, &literals, &distances);
}

// The lengths of both codes are packed with a third.
static void dynamic(Bits *b, Out *out) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + DISTANCES] = {0}, third[19] = {0};
    Codes codes, literals, distances;
    uint32_t nl = bits_get(b, 5) + 257, nd = bits_get(b, 5) + 1, nc = bits_get(b, 4) + 4;
    for (uint32_t i = 0; i < nc; i++)
        third[order[i]] = (uint8_t)bits_get(b, 3);
    if (b->bad || nl > 286 || nd > 30 || !codes_make(&codes, third, 19)) {
        b->bad = true;
        return;
    }
    for (uint32_t i = 0; i < nl + nd && !b->bad;) {
        uint32_t s = code_get(b, &codes);
        uint8_t same = s < 16 ? (uint8_t)s : s == 16 && i ? lengths[i - 1] : 0;
        uint32_t times = s < 16 ? 1 : s == 16 ? 3 + bits_get(b, 2) : s == 17 ? 3 + bits_get(b, 3) : 11 + bits_get(b, 7);
        if ((s == 16 && !i) || i + times > nl + nd)
            b->bad = true;
        for (; times && !b->bad; times--)
            lengths[i++] = same;
    }
    if (b->bad || !codes_make(&literals, lengths, nl) || !codes_make(&distances, lengths + nl, nd)) {
        b->bad = true;
        return;
    }
    coded(b, out, &literals, &distances);
}

static void stored(Bits *b, Out *out) {
    b->at -= b->have / 8, b->hold = b->have = 0; // from the next whole byte
    size_t n = b->end - b->at >= 4 ? (size_t)(b->at[0] | b->at[1] << 8) : 0;
    if (b->end - b->at < 4 || (n ^ 0xffff) != (size_t)(b->at[2] | b->at[3] << 8) || n > (size_t)(b->end - b->at) - 4 || n > out->bytes - out->n) {
        b->bad = true;
        return;
    }
    memcpy(out->at + out->n, b->at + 4, n);
    b->at += 4 + n, out->n += n;
}

static uint32_t adler(const uint8_t *p, size_t n) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++)
        a = (a + p[i]) % 65521, b = (b + a) % 65521;
    return b << 16 | a;
}

bool inflate_zlib(const uint8_t *from, size_t n, uint8_t *to, size_t bytes) {
    if (n < 6 || (from[0] & 15) != 8 || (from[0] << 8 | from[1]) % 31 || from[1] & 32)
        return false;
    Bits b = {.at = from + 2, .end = from + n};
    Out out = {.at = to, .bytes = bytes};
    for (bool last = false; !last && !b.bad;) {
        last = bits_get(&b, 1);
        uint32_t kind = bits_get(&b, 2);
        if (kind == 0)
            stored(&b, &out);
        else if (kind == 1)
            fixed(&b, &out);
        else if (kind == 2)
            dynamic(&b, &out);
        else
            b.bad = true;
    }
    const uint8_t *sum = b.at - b.have / 8;
    return !b.bad && out.n == bytes && b.end - sum >= 4 &&
           adler(to, bytes) == ((uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3]);
}
