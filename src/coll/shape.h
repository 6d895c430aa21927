// SPDX-License-Identifier: Apache-2.0
// shape.h — a table of device ids as a few counts and strides.
//
// The groups of a mesh axis are a grid: id = first + the sum of index times stride over its dimensions, the last one fastest.
// 100,000 devices in groups of 8 are {count 12500, stride 8}, {count 8, stride 1}, or one dimension of 100,000 by 1.
#ifndef OTRN_COLL_SHAPE_H
#define OTRN_COLL_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_DIMS 6
#define SHAPE_FROM 65           // ids from which on a table is kept and printed by its shape,
#define SHAPE_IDS_MAX (1 << 18) // and up to which: pairs of all devices a program may be written for
typedef struct IdShape {
    int64_t first;
    uint32_t dims;
    struct {
        uint32_t count;
        int64_t stride;
    } dim[SHAPE_DIMS];
} IdShape;

bool shape_of(const int64_t *ids, uint32_t n, IdShape *out); // false: they are no such grid; n is not 0
uint64_t shape_count(const IdShape *s);
void shape_fill(const IdShape *s, int64_t *ids); // shape_count of them
bool shape_is_whole(const IdShape *s);           // each id from the first on is there once

#endif
