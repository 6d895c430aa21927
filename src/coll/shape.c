// SPDX-License-Identifier: Apache-2.0
// shape.c — finds the grid in a table of ids, and makes the table again; see shape.h.
#include "coll/shape.h"

uint64_t shape_count(const IdShape *s) {
    uint64_t n = 1;
    for (uint32_t d = 0; d < s->dims && n <= UINT32_MAX; d++)
        n *= s->dim[d].count;
    return n;
}

// Blocks of `block` ids that are evenly apart, from the first on.
static uint32_t even_blocks(const int64_t *ids, uint32_t n, uint32_t block, int64_t stride) {
    uint32_t count = 1;
    while ((uint64_t)(count + 1) * block <= n && ids[(uint64_t)count * block] == ids[0] + (int64_t)count * stride)
        count++;
    return count;
}

// As shape_fill makes it, dimension by dimension: loops without a branch in them.
static bool is_filled(const IdShape *s, const int64_t *ids) {
    uint64_t n = 1;
    for (int d = (int)s->dims - 1; d >= 0; n *= s->dim[d--].count) {
        const int64_t *next = ids + n;
        uint64_t rest = n * (s->dim[d].count - 1);
        uint64_t stride = (uint64_t)s->dim[d].stride, differ = 0; // ids may be any numbers
        for (uint64_t i = 0; i < rest; i++)
            differ |= (uint64_t)next[i] - (uint64_t)ids[i] - stride;
        if (differ)
            return false;
    }
    return true;
}

bool shape_of(const int64_t *ids, uint32_t n, IdShape *out) {
    IdShape s = {.first = ids[0]};
    const int64_t far = (1 << 30) - 1; // strides fit 32 bits, their sums stay in range
    if (n > 1u << 24)
        return false;
    for (uint32_t block = 1; block < n; block *= s.dim[0].count) {
        if (s.dims == SHAPE_DIMS || ids[block] < -far || ids[block] > far || ids[0] < -far || ids[0] > far)
            return false;
        for (uint32_t d = s.dims++; d > 0; d--) // the one found last is the slowest
            s.dim[d] = s.dim[d - 1];
        s.dim[0].stride = ids[block] - ids[0];
        s.dim[0].count = even_blocks(ids, n, block, s.dim[0].stride);
        if (n % ((uint64_t)block * s.dim[0].count))
            return false;
    }
    *out = s;
    return is_filled(&s, ids);
}

void shape_fill(const IdShape *s, int64_t *ids) {
    uint64_t n = 1;
    ids[0] = s->first;
    for (int d = (int)s->dims - 1; d >= 0; n *= s->dim[d--].count)
        for (uint64_t i = n; i < n * s->dim[d].count; i++)
            ids[i] = ids[i - n] + s->dim[d].stride;
}

bool shape_is_whole(const IdShape *s) {
    bool used[SHAPE_DIMS] = {false};
    int64_t next = 1; // the stride that is looked for
    for (uint32_t found = 0; found < s->dims; found++) {
        uint32_t d = 0;
        while (d < s->dims && (used[d] || s->dim[d].stride != next))
            d++;
        if (d == s->dims)
            return false;
        used[d] = true, next *= s->dim[d].count;
    }
    return true;
}
