// SPDX-License-Identifier: Apache-2.0
// cut.c — which part of a dimension each device has, as digits of the device's number; see shard.h.
//
// Devices are looked at one by one only where digits do not tell: between meshes that have the devices in different orders, and where
// digits overlap.
#include <string.h>

#include "spmd/shard.h"

#define DIGITS_MAX 20 // each has at least two values, and there are at most SHARD_DEVICES_MAX parts
static_assert(SHARD_DEVICES_MAX <= 1 << DIGITS_MAX, "parts have more digits");

static uint32_t digit_of(const Digit *g, uint32_t device) {
    return (g->position ? g->position[device] : device) / g->stride % g->count;
}

static uint32_t part_of(Cut c, uint32_t device) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < c.n; i++)
        at = at * c.digits[i].count + digit_of(&c.digits[i], device);
    return at;
}

uint32_t shard_index(const Shards *s, uint32_t dim, uint32_t device) {
    assert(dim <= s->rank && device < s->devices);
    return part_of(s->cut[dim], device);
}

Cut shard_cut(const Shards *s, uint32_t dim) {
    assert(dim <= s->rank && (s->cut[dim].parts <= 1 || s->cut[dim].n));
    return s->cut[dim];
}

static bool position_same(const Digit *x, const Digit *y, uint32_t devices) {
    return x->position == y->position ||
           (x->position && y->position && !memcmp(x->position, y->position, devices * sizeof *x->position));
}

bool shard_cut_same(Cut a, Cut b, uint32_t devices) {
    if (a.parts != b.parts || a.parts <= 1)
        return a.parts == b.parts;
    bool digits = a.n == b.n, positions = true;
    for (uint32_t i = 0; i < a.n; i++)
        positions = positions && position_same(&a.digits[i], &a.digits[0], devices);
    for (uint32_t i = 0; i < b.n; i++) {
        positions = positions && position_same(&b.digits[i], &a.digits[0], devices);
        digits = digits && a.digits[i].stride == b.digits[i].stride && a.digits[i].count == b.digits[i].count;
    }
    if (positions)
        return digits;
    for (uint32_t d = 0; d < devices; d++)
        if (part_of(a, d) != part_of(b, d))
            return false;
    return true;
}

// Digits of one number that do not overlap have every combination of values, each as often.
static bool digits_apart(const Cut *cuts, uint32_t n, uint32_t devices) {
    const Digit *all[DIGITS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; cuts[i].parts > 1 && k < cuts[i].n; k++) {
            uint32_t at = count++;
            if (count > DIGITS_MAX || !position_same(&cuts[i].digits[k], at ? all[0] : &cuts[i].digits[k], devices))
                return false;
            for (; at && all[at - 1]->stride > cuts[i].digits[k].stride; at--)
                all[at] = all[at - 1];
            all[at] = &cuts[i].digits[k];
        }
    for (uint32_t i = 0; i < count; i++)
        if ((i + 1 < count ? all[i + 1]->stride : devices) % ((uint64_t)all[i]->stride * all[i]->count))
            return false;
    return true;
}

bool shard_cuts_fit(Arena *a, const Cut *cuts, uint32_t n, uint32_t devices) {
    assert(devices && devices <= SHARD_DEVICES_MAX);
    uint64_t all = 1;
    for (uint32_t i = 0; i < n; i++)
        if (cuts[i].parts > 1 && (all *= (uint64_t)cuts[i].parts) > devices)
            return false;
    if (devices % all)
        return false;
    if (digits_apart(cuts, n, devices))
        return true;
    uint32_t *count = arena_zalloc(a, all * sizeof *count);
    for (uint32_t d = 0; d < devices; d++) {
        uint64_t at = 0;
        for (uint32_t i = 0; i < n; i++)
            if (cuts[i].parts > 1)
                at = at * (uint64_t)cuts[i].parts + part_of(cuts[i], d);
        count[at]++;
    }
    for (uint64_t i = 0; i < all; i++)
        if (count[i] != devices / all)
            return false;
    return true;
}

Cut shard_cut_both(Arena *a, Cut x, Cut y, uint32_t devices) {
    if (x.parts <= 1 || y.parts <= 1)
        return x.parts <= 1 ? y : x;
    Digit *digits = ARENA_NEWN(a, Digit, x.n + y.n);
    const Digit *last = &x.digits[x.n - 1], *next = &y.digits[0];
    bool one = position_same(last, next, devices) && last->stride == (uint64_t)next->stride * next->count;
    memcpy(digits, x.digits, x.n * sizeof *digits);
    memcpy(digits + x.n - one, y.digits, y.n * sizeof *digits);
    if (one)
        digits[x.n - 1].count = last->count * next->count;
    return (Cut){.parts = x.parts * y.parts, .digits = digits, .n = x.n + y.n - one};
}

bool shard_cut_split(Arena *a, Cut c, int64_t inner_parts, Cut *outer, Cut *inner) {
    assert(inner_parts > 0 && c.parts % inner_parts == 0);
    *outer = *inner = CUT_WHOLE;
    if (c.parts <= 1)
        return true;
    int64_t left = inner_parts;
    uint32_t n = c.n; // digits of outer, the last perhaps in part
    while (n && left > 1 && left % c.digits[n - 1].count == 0)
        left /= c.digits[--n].count;
    if (left > 1 && c.digits[n - 1].count % left)
        return false;
    Digit *digits = ARENA_NEWN(a, Digit, c.n + 1);
    bool part = left > 1;
    memcpy(digits, c.digits, n * sizeof *digits);
    memcpy(digits + n, c.digits + n - part, (c.n - n + part) * sizeof *digits);
    if (part) {
        digits[n].count = (uint32_t)left;
        digits[n - 1].count /= (uint32_t)left;
        digits[n - 1].stride *= (uint32_t)left;
    }
    if (c.parts > inner_parts)
        *outer = (Cut){.parts = c.parts / inner_parts, .digits = digits, .n = n};
    if (inner_parts > 1)
        *inner = (Cut){.parts = inner_parts, .digits = digits + n, .n = c.n - n + part};
    return true;
}
