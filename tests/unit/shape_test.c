// SPDX-License-Identifier: Apache-2.0
// shape_test.c — tables of device ids as counts and strides, there and back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/shape.h"
#include "unit.h"

#define MOST 4096

// A mesh of a x b x c devices: groups along one axis, row by row.
static uint32_t groups(const uint32_t mesh[3], int axis, int64_t *ids) {
    uint32_t n = 0, at[3], stride[3] = {mesh[1] * mesh[2], mesh[2], 1};
    int outer = axis ? 0 : 1, inner = axis == 2 ? 1 : 2;
    for (at[outer] = 0; at[outer] < mesh[outer]; at[outer]++)
        for (at[inner] = 0; at[inner] < mesh[inner]; at[inner]++)
            for (at[axis] = 0; at[axis] < mesh[axis]; at[axis]++)
                ids[n++] = (int64_t)at[0] * stride[0] + (int64_t)at[1] * stride[1] + at[2];
    return n;
}

static const char *round_trip(const int64_t *ids, uint32_t n, bool whole) {
    static int64_t back[MOST];
    IdShape s;
    if (!shape_of(ids, n, &s))
        return "it has no shape";
    if (shape_count(&s) != n)
        return "its count is another";
    shape_fill(&s, back);
    if (memcmp(back, ids, n * sizeof *ids))
        return "other ids came back";
    return shape_is_whole(&s) == whole ? NULL : "whole or not";
}

int main(void) {
    static int64_t ids[MOST];
    const uint32_t meshes[][3] = {{1, 1, 1}, {1, 1, 8}, {2, 3, 5}, {16, 16, 16}, {7, 1, 9}, {1, 64, 2}, {4, 4, 1}};
    const char *why = NULL;
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes && !why; m++)
        for (int axis = 0; axis < 3 && !why; axis++)
            why = round_trip(ids, groups(meshes[m], axis, ids), true);
    result("groups of each axis of a mesh", why);
    uint32_t n = groups((uint32_t[]){4, 8, 2}, 1, ids);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = 3 * ids[i] + 5;
    result("some of the devices", round_trip(ids, n, false));
    result("they can go down", round_trip((int64_t[]){9, 7, 5, 3}, 4, false));
    IdShape s;
    result("no grid", !shape_of((int64_t[]){0, 1, 2, 3, 4, 6}, 6, &s) && !shape_of((int64_t[]){0, 1, 3, 2}, 4, &s) ? NULL : "it was taken for one");
    result("numbers too far apart", !shape_of((int64_t[]){0, INT64_MAX}, 2, &s) && !shape_of((int64_t[]){INT64_MIN, INT64_MAX}, 2, &s) ? NULL : "taken");
    srand(1);
    for (why = NULL, n = 0; n < 2000 && !why; n++) { // whatever is said to be a grid is one
        uint32_t count = 1 + (uint32_t)rand() % 12;
        for (uint32_t i = 0; i < count; i++)
            ids[i] = rand() % 3;
        if (shape_of(ids, count, &s)) {
            int64_t back[12];
            shape_fill(&s, back);
            why = shape_count(&s) == count && !memcmp(back, ids, count * sizeof *back) ? NULL : "it is none";
        }
    }
    result("random ids", why);
    return failures != 0;
}
