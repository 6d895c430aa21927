// SPDX-License-Identifier: Apache-2.0
// round.h — the random bits of stochastic rounding.
//
// An engine that rounds stochastically adds random bits below the last one it keeps, then cuts: the chance to go
// up is what would be cut off. The bits are a hash of a key (the run's seed and the number of the instruction
// in that run) and of a counter (partition * 65536 + element in flat order), so they depend neither on host nor
// on threads. Both are bijections of 32 bits with full avalanche (two multiplications, three shifts).
#ifndef OTRN_BASE_ROUND_H
#define OTRN_BASE_ROUND_H

#include <stdint.h>

static inline uint32_t round_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}
static inline uint32_t round_key(uint64_t seed, uint64_t instruction) {
    uint32_t low = round_mix((uint32_t)seed + 0x9e3779b9u), high = round_mix((uint32_t)(seed >> 32) ^ low);
    return round_mix((uint32_t)instruction + round_mix((uint32_t)(instruction >> 32) ^ high));
}
static inline uint32_t round_bits(uint32_t key, uint32_t counter) {
    return round_mix(counter * 0x9e3779b9u + key);
}

#endif
