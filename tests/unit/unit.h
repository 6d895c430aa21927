// SPDX-License-Identifier: Apache-2.0
// unit.h — what unit tests share: lines "ok NAME" and "FAIL NAME: why", their count, and random numbers with a seed.
#ifndef OTRN_TESTS_UNIT_H
#define OTRN_TESTS_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int failures;

static inline void expect(bool ok, const char *name, const char *why) {
    if (ok)
        printf("ok %s\n", name);
    else
        printf("FAIL %s: %s\n", name, why), failures++;
}

// A test that finds a reason: NULL is none.
static inline void result(const char *name, const char *why) { expect(!why, name, why); }

static inline uint64_t rng_next(uint64_t *s) { // splitmix64
    uint64_t z = *s += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
static inline uint32_t rng_below(uint64_t *s, uint32_t n) { return (uint32_t)(rng_next(s) >> 32) % n; }

#endif
