// SPDX-License-Identifier: Apache-2.0
// draw.h — the engines' random numbers: a function of a state of four words and an element's number, nothing else.
//
// So whoever draws element n of a tensor gets the same bits: any tile, any order, any thread, chip and evaluator, forward
// and again in the gradients. The state and the upper half of the number are mixed into three keys (splitmix64's finisher), the lower half goes
// through three rounds of xor with a key, shift and multiplication: a bijection of 32 bits.
#ifndef OTRN_BASE_DRAW_H
#define OTRN_BASE_DRAW_H

#include <stdint.h>

#define DRAW_WORDS 4 // of a state
#define DRAW_BITS 24 // the upper ones of a draw, compared for flags

typedef struct DrawKeys {
    uint32_t k[3];
} DrawKeys;

static inline uint64_t draw_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline DrawKeys draw_keys(uint64_t first, uint64_t second, uint32_t high) {
    const uint64_t step = 0x9e3779b97f4a7c15u;
    uint64_t x = draw_mix(draw_mix(first + step) ^ second) + high * step, y = draw_mix(x + step), z = draw_mix(x + 2 * step);
    return (DrawKeys){{(uint32_t)y, (uint32_t)(y >> 32), (uint32_t)z}};
}

static inline uint32_t draw_bits(DrawKeys d, uint32_t n) {
    uint32_t x = n ^ d.k[0];
    x = (x ^ x >> 16) * 0x85ebca6bu ^ d.k[1];
    x = (x ^ x >> 13) * 0xc2b2ae35u ^ d.k[2];
    x = (x ^ x >> 16) * 0x9e3779b1u;
    return x ^ x >> 16;
}

#endif
