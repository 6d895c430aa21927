// SPDX-License-Identifier: Apache-2.0
// lie.c — shardings as artifacts keep them: read, and followed.
#include "rt/lie.h"

#include <string.h>

#include "base/dtype.h"

// The next number of a sharding, and what stands before it.
static uint32_t number_next(const char **s, char *before) {
    uint32_t v = 0;
    *before = **s == '+' || **s == '|' || **s == ',' ? *(*s)++ : 0;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        v = v * 10 + (uint32_t)(**s - '0');
    return v;
}

// The devices as the first dimension.
static void lie_stack(Arena *a, Lie *l, uint32_t devices) {
    uint32_t *slot = ARENA_NEWN(a, uint32_t, devices);
    for (uint32_t d = 0; d < devices; d++)
        slot[d] = d;
    memmove(l->part.dims + 1, l->part.dims, (size_t)l->part.rank * sizeof *l->part.dims);
    l->part.dims[0] = 1;
    l->part.rank++;
    l->whole = l->part;
    l->whole.dims[0] = devices;
    l->slot = slot;
}

// text is "2,1+2|0,1,2,3" (spec/artifact.md), as artifact_verify left it.
static Lie lie_parse(Ctx *ctx, Arena *a, const otrn_type *part, const char *text, uint32_t devices) {
    Lie l = {.whole = *part, .part = *part};
    char before = 0;
    uint32_t parts = 1;
    if (!*text)
        return l;
    if (strchr(text, '+')) {
        if (part->rank == OTRN_MAX_RANK)
            ctx_fail(ctx, OTRN_UNSUPPORTED, NO_PLACE, "terms of a tensor of rank %d have no file", part->rank);
        lie_stack(a, &l, devices);
        return l;
    }
    for (int i = 0; i < part->rank; i++) {
        uint32_t n = number_next(&text, &before);
        l.whole.dims[i] *= n;
        parts *= n;
    }
    uint32_t *slot = ARENA_NEWN(a, uint32_t, devices);
    for (uint32_t i = 0; i < devices; i++)
        slot[number_next(&text, &before)] = i / (devices / parts);
    l.slot = slot;
    return l;
}

// Copies a part out of the whole, or into it.
static void part_copy(const Lie *l, uint32_t slot, uint8_t *whole, uint8_t *part, bool out) {
    size_t elem = dtype_bytes(l->part.dtype), rows = 1;
    int rank = l->part.rank;
    int64_t first[OTRN_MAX_RANK];
    for (int d = rank - 1; d >= 0; d--) {
        int64_t n = l->part.dims[d] ? l->whole.dims[d] / l->part.dims[d] : 1;
        first[d] = (int64_t)slot % n * l->part.dims[d];
        slot /= (uint32_t)n;
    }
    for (int d = 0; d + 1 < rank; d++)
        rows *= (size_t)l->part.dims[d];
    size_t bytes = (rank ? (size_t)l->part.dims[rank - 1] : 1) * elem;
    for (size_t row = 0; row < rows && bytes; row++) {
        size_t at = rank ? (size_t)first[rank - 1] : 0, left = row, stride = rank ? (size_t)l->whole.dims[rank - 1] : 1;
        for (int d = rank - 2; d >= 0; d--) {
            at += ((size_t)first[d] + left % (size_t)l->part.dims[d]) * stride;
            left /= (size_t)l->part.dims[d];
            stride *= (size_t)l->whole.dims[d];
        }
        memcpy(out ? part + row * bytes : whole + at * elem, out ? whole + at * elem : part + row * bytes, bytes);
    }
}

void lie_take(const Lie *l, uint32_t device, const void *whole, void *part) {
    if (l->slot)
        part_copy(l, l->slot[device], (uint8_t *)whole, part, true);
    else if (whole != part)
        memcpy(part, whole, otrn_type_bytes(&l->whole));
}

void lie_put(const Lie *l, uint32_t device, const void *part, void *whole) {
    if (l->slot)
        part_copy(l, l->slot[device], whole, (uint8_t *)part, false);
    else if (whole != part)
        memcpy(whole, part, otrn_type_bytes(&l->whole));
}

Lie lie_arg(Ctx *ctx, Arena *a, const otrn_exe *exe, size_t i) {
    return lie_parse(ctx, a, otrn_exe_arg_type(exe, i), otrn_exe_arg_sharding(exe, i), otrn_exe_partitions(exe));
}

Lie lie_result(Ctx *ctx, Arena *a, const otrn_exe *exe, size_t i) {
    return lie_parse(ctx, a, otrn_exe_result_type(exe, i), otrn_exe_result_sharding(exe, i), otrn_exe_partitions(exe));
}
