// SPDX-License-Identifier: Apache-2.0
// bytes.h — explicit little-endian bytes: a growing writer and a checked reader.
//
// Structs are never cast onto a buffer. The reader raises PARSE with the offset when it would run
// past the end, so decoders stay straight-line.
#ifndef OTRN_BASE_BYTES_H
#define OTRN_BASE_BYTES_H

#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"

typedef struct Buf { // growing bytes or text in an arena
    Arena *arena;
    uint8_t *at;
    size_t n, cap;
} Buf;

void buf_reserve(Buf *b, size_t more);
void buf_put(Buf *b, const void *p, size_t n);
void buf_printf(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_puts(Buf *b, const char *s);
void put_u8(Buf *b, uint8_t v);
void put_u16(Buf *b, uint16_t v);
void put_u32(Buf *b, uint32_t v);
void put_u64(Buf *b, uint64_t v);
void put_align(Buf *b, size_t align);  // zero bytes up to a multiple
const char *buf_cstr(Buf *b);          // NUL-terminated view

static inline void le_store16(uint8_t *p, uint16_t v) { p[0] = (uint8_t)v, p[1] = (uint8_t)(v >> 8); }
static inline void le_store32(uint8_t *p, uint32_t v) {
    le_store16(p, (uint16_t)v), le_store16(p + 2, (uint16_t)(v >> 16));
}
static inline void le_store64(uint8_t *p, uint64_t v) {
    le_store32(p, (uint32_t)v), le_store32(p + 4, (uint32_t)(v >> 32));
}
static inline uint16_t le_load16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t le_load32(const uint8_t *p) {
    return le_load16(p) | (uint32_t)le_load16(p + 2) << 16;
}
static inline uint64_t le_load64(const uint8_t *p) {
    return le_load32(p) | (uint64_t)le_load32(p + 4) << 32;
}

typedef struct Rd { // checked reader over borrowed bytes
    Ctx *ctx;
    const char *name; // file name for messages
    const uint8_t *base, *at, *end;
} Rd;

_Noreturn void rd_fail(Rd *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const uint8_t *rd_bytes(Rd *r, size_t n); // raises when fewer are left
uint8_t rd_u8(Rd *r);
uint16_t rd_u16(Rd *r);
uint32_t rd_u32(Rd *r);
uint64_t rd_u64(Rd *r);
void rd_align(Rd *r, size_t align);
// A count of items that take at least min_bytes each: raises when it cannot be true.
uint32_t rd_count(Rd *r, size_t min_bytes);

uint32_t crc32c(uint32_t seed, const void *p, size_t n);
uint64_t hash64(uint64_t seed, const void *p, size_t n); // fast, for tables
// 128-bit content hash for cache keys (stable across hosts and versions of this file).
typedef struct Hash128 {
    uint64_t lo, hi;
} Hash128;
Hash128 hash128(const void *p, size_t n);

#endif
