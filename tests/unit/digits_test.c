// SPDX-License-Identifier: Apache-2.0
// digits_test.c — cuts as digits of a device's number, beside tables of every device: random axes of random meshes, in order and not.
#include <string.h>

#include "spmd/shard.h"
#include "unit.h"

enum { DEVICES = 96, ROUNDS = 3000 };

typedef struct Table { // the part of each device
    uint32_t parts, at[DEVICES];
} Table;

static const uint32_t factors[] = {2, 2, 2, 2, 2, 3}; // of DEVICES
enum { AXES = sizeof factors / sizeof *factors };

static Table table_of(Cut c) {
    Table t = {.parts = (uint32_t)c.parts};
    for (uint32_t d = 0; d < DEVICES; d++)
        for (uint32_t i = 0; i < c.n; i++) {
            const Digit *g = &c.digits[i];
            t.at[d] = t.at[d] * g->count + (g->position ? g->position[d] : d) / g->stride % g->count;
        }
    return t;
}

static bool same(const Table *a, const Table *b) { return a->parts == b->parts && !memcmp(a->at, b->at, sizeof a->at); }

// Some axes of a mesh, in any order: joined one by one, as a sharding names them.
static Cut random_cut(Arena *a, uint64_t *seed, const uint32_t *position) {
    Cut c = CUT_WHOLE;
    uint32_t used = 0;
    for (uint32_t n = rng_below(seed, 5); n > 0; n--) {
        uint32_t axis = rng_below(seed, AXES), stride = 1;
        if (used >> axis & 1)
            continue;
        used |= 1u << axis;
        for (uint32_t i = axis + 1; i < AXES; i++)
            stride *= factors[i];
        Digit *g = ARENA_NEW(a, Digit);
        *g = (Digit){.stride = stride, .count = factors[axis], .position = position};
        c = shard_cut_both(a, c, (Cut){.parts = factors[axis], .digits = g, .n = 1}, DEVICES);
    }
    return c;
}

static const uint32_t *random_position(Arena *a, uint64_t *seed) {
    uint32_t *p = ARENA_NEWN(a, uint32_t, DEVICES);
    for (uint32_t d = 0; d < DEVICES; d++) {
        uint32_t k = rng_below(seed, d + 1);
        p[d] = p[k];
        p[k] = d;
    }
    return rng_below(seed, 2) ? p : NULL;
}

static bool fit(const Table *a, const Table *b) {
    uint32_t all = a->parts * b->parts, count[DEVICES] = {0};
    if (all > DEVICES || DEVICES % all)
        return false;
    for (uint32_t d = 0; d < DEVICES; d++)
        count[a->at[d] * b->parts + b->at[d]]++;
    for (uint32_t i = 0; i < all; i++)
        if (count[i] != DEVICES / all)
            return false;
    return true;
}

static void split(Arena *a, Cut c, int64_t inner_parts, uint32_t *wrong) {
    Cut outer, inner;
    Table all = table_of(c);
    if (c.parts % inner_parts || !shard_cut_split(a, c, inner_parts, &outer, &inner))
        return;
    Table o = table_of(outer), i = table_of(inner);
    for (uint32_t d = 0; d < DEVICES; d++)
        *wrong += o.at[d] != all.at[d] / inner_parts || i.at[d] != all.at[d] % inner_parts;
    Cut again = shard_cut_both(a, outer, inner, DEVICES);
    *wrong += again.n != c.n || !shard_cut_same(again, c, DEVICES);
}

int main(void) {
    Arena arena;
    uint64_t seed = 1;
    uint32_t joins = 0, equals = 0, fits = 0, splits = 0, found = 0;
    arena_init(&arena, NULL);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t *p = random_position(&arena, &seed), *q = rng_below(&seed, 2) ? p : random_position(&arena, &seed);
        Cut x = random_cut(&arena, &seed, p), y = random_cut(&arena, &seed, q), both = shard_cut_both(&arena, x, y, DEVICES);
        Table a = table_of(x), b = table_of(y), want = {.parts = a.parts * b.parts}, got = table_of(both);
        for (uint32_t d = 0; d < DEVICES; d++)
            want.at[d] = a.at[d] * b.parts + b.at[d];
        joins += !same(&want, &got);
        equals += same(&a, &b) != shard_cut_same(x, y, DEVICES);
        found += same(&a, &b) && a.parts > 1;
        fits += fit(&a, &b) != shard_cuts_fit(&arena, (Cut[]){x, y}, 2, DEVICES);
        split(&arena, x, 1 + rng_below(&seed, 12), &splits);
        arena_reset(&arena);
    }
    arena_fini(&arena);
    expect(!joins, "digits/joined", "another table");
    expect(!equals && found, "digits/compared", "another answer");
    expect(!fits, "digits/together", "another answer");
    expect(!splits, "digits/taken-apart", "another table");
    return failures != 0;
}
