// SPDX-License-Identifier: Apache-2.0
// twister.h — MT19937 (Matsumoto and Nishimura, 1998): the sequence of C++'s std::mt19937, NumPy's RandomState and PyTorch's CPU generator.
//
// A state is 624 words and, behind them, how many of these were given out; when all were, each becomes a function of itself, the next one
// and the one 397 further on. What is given out is tempered, which the state does not keep.
#ifndef OTRN_BASE_TWISTER_H
#define OTRN_BASE_TWISTER_H

#include <stdint.h>

#define TWISTER_WORDS 624
#define TWISTER_STATE (TWISTER_WORDS + 1)

static inline void twister_turn(uint32_t *s) {
    for (int i = 0; i < TWISTER_WORDS; i++) {
        uint32_t next = s[i + 1 < TWISTER_WORDS ? i + 1 : 0], far = s[i + 397 < TWISTER_WORDS ? i + 397 : i + 397 - TWISTER_WORDS];
        uint32_t joined = (s[i] & 0x80000000u) | (next & 0x7fffffffu);
        s[i] = far ^ joined >> 1 ^ (joined & 1 ? 0x9908b0dfu : 0);
    }
}

static inline uint32_t twister_word(uint32_t s[TWISTER_STATE]) {
    if (s[TWISTER_WORDS] >= TWISTER_WORDS) {
        twister_turn(s);
        s[TWISTER_WORDS] = 0;
    }
    uint32_t x = s[s[TWISTER_WORDS]++];
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680u;
    x ^= x << 15 & 0xefc60000u;
    return x ^ x >> 18;
}

// A word, or two of which the first is the upper one.
static inline uint64_t twister_bits(uint32_t s[TWISTER_STATE], int wide) {
    uint64_t first = twister_word(s);
    return wide ? first << 32 | twister_word(s) : first;
}

#endif
