// SPDX-License-Identifier: Apache-2.0
// bytes.c — writer, reader and hashes.
#include "base/bytes.h"

#include <assert.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are kept in host order: "
                                                          "big-endian hosts are not supported");

void buf_reserve(Buf *b, size_t more) {
    if (more <= b->cap - b->n)
        return;
    size_t cap = b->cap * 2 < 256 ? 256 : b->cap * 2;
    if (cap < b->n + more)
        cap = b->n + more;
    uint8_t *at = arena_alloc(b->arena, cap);
    if (b->n)
        memcpy(at, b->at, b->n);
    b->at = at;
    b->cap = cap;
}

void buf_put(Buf *b, const void *p, size_t n) {
    buf_reserve(b, n);
    if (n)
        memcpy(b->at + b->n, p, n);
    b->n += n;
}

void buf_puts(Buf *b, const char *s) { buf_put(b, s, strlen(s)); }

void buf_printf(Buf *b, const char *fmt, ...) {
    for (size_t room = 128;;) {
        buf_reserve(b, room);
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf((char *)b->at + b->n, b->cap - b->n, fmt, ap);
        va_end(ap);
        assert(n >= 0);
        if ((size_t)n < b->cap - b->n) {
            b->n += (size_t)n;
            return;
        }
        room = (size_t)n + 1;
    }
}

const char *buf_cstr(Buf *b) {
    buf_reserve(b, 1);
    b->at[b->n] = 0;
    return (const char *)b->at;
}

void put_u8(Buf *b, uint8_t v) { buf_put(b, &v, 1); }

void put_u16(Buf *b, uint16_t v) {
    buf_reserve(b, 2);
    le_store16(b->at + b->n, v);
    b->n += 2;
}

void put_u32(Buf *b, uint32_t v) {
    buf_reserve(b, 4);
    le_store32(b->at + b->n, v);
    b->n += 4;
}

void put_u64(Buf *b, uint64_t v) {
    buf_reserve(b, 8);
    le_store64(b->at + b->n, v);
    b->n += 8;
}

void put_align(Buf *b, size_t align) {
    while (b->n % align)
        put_u8(b, 0);
}

// --- reader ----------------------------------------------------------------------------------------

_Noreturn void rd_fail(Rd *r, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(r->ctx, OTRN_PARSE, (Place){.file = r->name}, "%s (at byte %zu of %zu)", text,
             (size_t)(r->at - r->base), (size_t)(r->end - r->base));
}

const uint8_t *rd_bytes(Rd *r, size_t n) {
    if (n > (size_t)(r->end - r->at))
        rd_fail(r, "truncated: %zu more bytes expected, %zu left", n, (size_t)(r->end - r->at));
    const uint8_t *p = r->at;
    r->at += n;
    return p;
}

uint8_t rd_u8(Rd *r) { return *rd_bytes(r, 1); }
uint16_t rd_u16(Rd *r) { return le_load16(rd_bytes(r, 2)); }
uint32_t rd_u32(Rd *r) { return le_load32(rd_bytes(r, 4)); }
uint64_t rd_u64(Rd *r) { return le_load64(rd_bytes(r, 8)); }

void rd_align(Rd *r, size_t align) {
    while ((size_t)(r->at - r->base) % align)
        if (rd_u8(r))
            rd_fail(r, "padding is not zero");
}

uint32_t rd_count(Rd *r, size_t min_bytes) {
    uint32_t n = rd_u32(r);
    if (min_bytes && n > (size_t)(r->end - r->at) / min_bytes)
        rd_fail(r, "a count of %u cannot be true: only %zu bytes are left", n,
                (size_t)(r->end - r->at));
    return n;
}

// --- hashes ----------------------------------------------------------------------------------------

// CRC-32C (Castagnoli), reflected polynomial 0x82f63b78, eight bytes a step by tables made on the
// first entry of each call: small, no static state to initialise.
static void crc_tables(uint32_t t[4][256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (0x82f63b78u & -(c & 1));
        t[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 4; k++)
            t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
}

#if defined(__x86_64__)
// The instruction takes three cycles and one can begin in each: three lanes of a large piece go side by side and are put together,
// for which a lane's register is moved over the bytes behind it, a product of polynomials.
#define CRC_POLY 0x82f63b78u
#define LANE_BITS 13 // of its bytes
#define LANE ((size_t)1 << LANE_BITS)

static uint32_t crc_multiply(uint32_t a, uint32_t b) { // mod the polynomial, the highest bit is x^0
    uint32_t sum = 0;
    for (; a; a <<= 1, b = b >> 1 ^ (CRC_POLY & -(b & 1)))
        sum ^= b & -(a >> 31);
    return sum;
}

__attribute__((target("sse4.2"))) static uint32_t crc_lanes(uint32_t c, const uint8_t *p, size_t triples) {
    uint32_t over = 1u << 30; // x, then x^(8 LANE)
    for (int i = 0; i < LANE_BITS + 3; i++)
        over = crc_multiply(over, over);
    for (; triples; triples--, p += 3 * LANE) {
        uint64_t one = c, two = 0, three = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            one = __builtin_ia32_crc32di(one, le_load64(p + i));
            two = __builtin_ia32_crc32di(two, le_load64(p + LANE + i));
            three = __builtin_ia32_crc32di(three, le_load64(p + 2 * LANE + i));
        }
        c = crc_multiply(crc_multiply((uint32_t)one, over) ^ (uint32_t)two, over) ^ (uint32_t)three;
    }
    return c;
}

__attribute__((target("sse4.2"))) static uint32_t crc_hw(uint32_t c, const uint8_t *p, size_t n) {
    size_t triples = n / (3 * LANE);
    if (triples)
        c = crc_lanes(c, p, triples), p += triples * 3 * LANE, n -= triples * 3 * LANE;
    uint64_t c64 = c;
    for (; n >= 8; n -= 8, p += 8)
        c64 = __builtin_ia32_crc32di(c64, le_load64(p));
    c = (uint32_t)c64;
    while (n--)
        c = __builtin_ia32_crc32qi(c, *p++);
    return c;
}
#endif

uint32_t crc32c(uint32_t seed, const void *data, size_t n) {
    const uint8_t *p = data;
    uint32_t c = ~seed;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_hw(c, p, n);
#endif
    uint32_t t[4][256];
    crc_tables(t);
    for (; n >= 4; n -= 4, p += 4) {
        c ^= le_load32(p);
        c = t[3][c & 255] ^ t[2][c >> 8 & 255] ^ t[1][c >> 16 & 255] ^ t[0][c >> 24];
    }
    while (n--)
        c = c >> 8 ^ t[0][(c ^ *p++) & 255];
    return ~c;
}

static uint64_t mix(uint64_t h) { // finaliser of a 64-bit multiplicative hash
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    return h ^ h >> 32;
}

uint64_t hash64(uint64_t seed, const void *data, size_t n) {
    const uint8_t *p = data;
    uint64_t h = seed ^ (n * 0x9e3779b97f4a7c15ull);
    for (; n >= 8; n -= 8, p += 8)
        h = mix(h ^ le_load64(p)) + 0x9e3779b97f4a7c15ull;
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++)
        tail |= (uint64_t)p[i] << (8 * i);
    return mix(h ^ tail);
}

Hash128 hash128(const void *p, size_t n) {
    return (Hash128){hash64(0x6f70656e74726e31ull, p, n), hash64(0x6f70656e74726e32ull, p, n)};
}
