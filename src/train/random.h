// SPDX-License-Identifier: Apache-2.0
// random.h — random numbers by place, not by turn: a function of seed, stream and number, so there is no state to keep.
#ifndef OTRN_TRAIN_RANDOM_H
#define OTRN_TRAIN_RANDOM_H

#include <stdint.h>

enum { STREAM_WEIGHTS = 1, STREAM_ORDER = 1 << 20, STREAM_OFFSET, STREAM_MASK, STREAM_DRAWN, STREAM_SAMPLE };

static inline uint64_t random_mix(uint64_t h) {
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9ull;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebull;
    return h ^ h >> 31;
}

static inline uint64_t random_key(uint64_t seed, uint64_t stream) {
    return random_mix(seed * 0x9e3779b97f4a7c15ull + random_mix(stream + 0x632be59bd9b4e019ull));
}

static inline uint64_t random_of(uint64_t key, uint64_t i) { return random_mix(key + (i + 1) * 0x9e3779b97f4a7c15ull); }

static inline uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t i) { return random_of(random_key(seed, stream), i); }

static inline double random_unit(uint64_t seed, uint64_t stream, uint64_t i) { // [0, 1)
    return (double)(random_at(seed, stream, i) >> 11) * 0x1p-53;
}

// The sum of four uniform numbers, of mean 0 and deviation 1: a bell without long tails, exact on every host.
static inline float random_bell_of(uint64_t r) {
    int64_t sum = (int64_t)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48)) - 2 * 65535;
    return (float)((double)sum * (1.7320508075688772 / 65536));
}

static inline float random_bell(uint64_t seed, uint64_t stream, uint64_t i) { return random_bell_of(random_at(seed, stream, i)); }

#endif
